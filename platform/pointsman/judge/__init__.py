"""An LLM of the pool as judge, where no verifier and nobody says how good an answer is.

    prompts      what the judge is asked, and how its reply is read
    judging      one answer graded; two answers compared, in both orders
    scores       a request's answers scored, one by one or pair by pair
    calibration  the mean of verified truth, from a few verified rows and many judged ones (PPI++)

Its scores are **judge units**: they order answers as this judge does, with its biases (length, form, answers like
its own). They are a claim about quality only after calibration. Import from the files.
"""
