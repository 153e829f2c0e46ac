"""What can be guaranteed about a router: pure functions and small states on numpy arrays, one idea per file.

    arrays            checked arrays and the interval every estimate is reported with
    episodes          the unit is the episode: averages per episode, paired bootstrap
    bounded_mean      betting confidence sequence of a mean in [0, 1]; `sequence` is its growing form
    paired            the difference of two routers on the same items
    promotion, gate   the e-process that promotes or rolls back a candidate; `guardrails`, `ramp`, `alpha_ledger`
    overlap           may a log answer the question at all?
    off_policy        IPS, SNIPS, DM, doubly robust values and differences, SWITCH
    anytime_dr        a doubly robust lower bound that holds at every moment
    ridge             reward models in closed form, cross-fitted or fitted on the past
    halving           which candidate: paired sequential halving
    finalists         within ε of the best of the finalists
    oracle            within ε of the oracle of the pool, from full-information rows
    threshold         a cheap-worker threshold with a guarantee (Learn then Test)
    judged            a mean from few true labels and many judged ones (PPI++)
    change            has a mean fallen? (Shiryaev–Roberts)
    canary            has a worker changed silently? a fixed set of requests, day by day
    input_mix         are today's requests like those we learned from?
    inverse_gap       exploration by inverse gap weighting

Randomness and data are arguments; nothing here reads the log or a clock. Every state has `to_json` and
`from_json`, and taking the same rows again gives the same numbers bit for bit. Import from the files: this
module imports nothing, so that naming the package costs no numpy.
"""
