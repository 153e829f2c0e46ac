"""Pointsman's ground floor: the words, the rows, the one client to workers, the command line.

It leaves out everything that routes (`harness`), trains (`distill`) or draws (`dashboard`); those
rooms import this one, never the other way round.
"""
