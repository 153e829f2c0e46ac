"""Intake: what other systems logged, brought into the log as rows that say where they came from.

`lines` reads a file row by row, a column map (`maps`) says where each field stands, `logs` and `score_tables`
make `record`s of it, `load` writes them. Every row has the origin `replay`: nothing that another system decided
counts as traffic, and none of it has a propensity, so no off-policy estimate uses it. A line that cannot be
taken goes to a file of rejects with its number and the reason (`rejects`), and never stops the others.

Data sets of several files (`queries`, `outcomes`) are `pointsman.replay`'s.
"""
