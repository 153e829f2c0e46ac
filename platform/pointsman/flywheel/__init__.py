"""The flywheel: when enough has come in, a turn makes a router of it and lets the gate decide.

rule     whether enough has come in
links    the links of a turn: which job each starts, and what is concluded from its result
waits    the links that wait for traffic: shadow and canary
turn     one look at an open turn: concludes what has ended, starts what comes next
store    the turn's row
pulse    starts those looks from the dispatcher
"""
