"""Hourly sums of the log (`pointsman.tables.rollup`), made by the `rollup` job and read by `queries.rolled`.

    sums     the sums of a range of the log, as SQL: what is stored, and what the edges of a range are
    fill     whole hours, one transaction each; hours that changed since are made again
    job      the runner; `pulse` starts it while there is traffic

Import from the files.
"""
