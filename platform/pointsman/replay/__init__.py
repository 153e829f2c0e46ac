"""Replay: recorded queries and outcomes as full-information rows of the log, and as workers that answer again.

`source` reads a folder, `load` brings it into the database, `summary` computes the same numbers from
the database, `workers` serves the recorded models over HTTP. `pointsman import` drives all of it.
"""
