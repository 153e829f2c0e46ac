"""Background work. The job's row in Postgres is the truth; whatever wakes a worker is only a hint.

    kinds, params                  what jobs there are, and what each may be asked
    store, reading, view           what anybody may do with jobs: start, look, cancel, try again
    lease, claiming, ending        the right to run one: taken, kept, lost; every write names its fence
    runner, supervise, child       running one: in a process of its own, or many small ones between two commits
    context, attempt, runners      what the code of a job is given, and where it is found
    checkpoint, log, money, rates  what a job keeps, says, spends, and may take a minute
    chunks, fanout                 its small parts, shared by several workers
    files, artifacts, cleanup      what it leaves behind, and how that goes
    self_test, retention           the two kinds whose code is here
    broker, celery_app, dispatcher, reconciler, worker, schedules: wake-ups, and who sends them

Nothing is imported here: the gateway needs `kinds` and `store` alone.
"""
