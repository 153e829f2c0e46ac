"""From how a request ended to the one number in [0, 1] by which routers are compared.

    spec      what counts, and how much: a named spec, versioned by its content
    words     feedback: which words stand at a moment, and what they say together
    reward    the pure function, for one outcome and for a full-information row
    compute   the rows of a time range, written idempotently
    store     specs and rewards in Postgres

A reward is kept as its terms, so that costs can be priced anew, and is None where nothing is known: it is never
guessed. Import from the files.
"""
