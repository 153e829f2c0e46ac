"""Asking every worker: probes (tasks with verifiers), audits (logged requests), and what they show.

    tasks     tasks from a JSONL file
    subjects  what is asked: a request, its workers, how often, and its ids in the log
    asking    the engine: bounded, paced, paid for, resumable
    purse     a budget that calls under way cannot overrun
    pace      a limit of requests a minute for each worker
    records   what goes to the log
    runs      named runs: what was asked for, how far it is, what it cost
    probe     every worker on every task
    audit     every eligible worker on logged requests, drawn at a known rate
    judging   a judge's scores for answers that are in the log
    matrix    full-information rows as arrays, for optimisers, bounds and labels

A full-information row is a decision without a choice, and a call and an outcome for each worker and repeat. It is
no traffic. Import from the files.
"""
