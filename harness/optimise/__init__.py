"""Prompt optimisation: the search for cards and instructions, and the router as a DSPy program.

    run, job          a whole run, from configuration and log to log; `optimise` is the same on rows in memory
    rows, reading     what is learned from; `pseudo` for traffic
    search            drafts, texts (`components`, gepa), other parts (`discrete`), finals
    writer, reflection  the two proposers; `lessons` is what they learn from, `guard` what they may say
    calls, budget, memory  calls to the router LLM: counted, bounded, kept
    certify, release  what may be claimed, and what is written
    program, compile  the DSPy program and its template

The only part of the harness that imports dspy and gepa (`pip install pointsman[optimize]`), where they are used; the
gateway never imports this package.
"""
