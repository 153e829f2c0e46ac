"""How a candidate comes to serve, and what may be claimed of it.

    versions      router versions by id, and their states
    serving       what serves a project: promotions, newest last; the notification to gateways
    plan          everything that gateways serve from the database, read at once
    promote       make a version serve, undo it
    ledger        how much error a release may spend
    guards        limits on errors, latency and cost, and what they are measured by
    register      a gate with all its terms, before its first row
    episodes      a gate's episodes from the log, in order of assignment, each with its utility
    process       rows in, a verdict out: promotes, proposes or rolls back
    gate_proof    the certificate of a gate, and the gate computed again from the log
    offline       certificates from full-information rows that a search never saw
    certify       a certificate computed again: does it still hold?
    threshold     the dial: when a cheap worker may answer
    admit         let a candidate in by an offline certificate alone, where its ground is good enough
    pulse         starts `gates` jobs while gates run
    job           the runner of `gates` jobs

Nothing here asks a router or a worker. Import from the files.
"""
