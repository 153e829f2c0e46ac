"""Has something changed since we learned? Detectors over the log, and the alarms they raise.

    alarms      alarm rows: raised once, shown by gateways, sent to a webhook
    state       detectors' states in Postgres
    pool        an endpoint or a card has changed: what that invalidates restarts
    rewards     a worker's rewards have fallen
    canary      a fixed set of tasks, day by day, against its stored scores
    mix         today's requests are not like those that were learned from
    watch       all of them, for the runner of `drift` jobs

Import from the files.
"""
