"""From the log to a label set: for each request, how good each worker would be, and how sure that is.

evidence  what is known: cells (request, worker's endpoint version, value, source, propensity)
reading   the log's rows as evidence: full information, traffic, verdicts
weighing  what each source counts, and the caps that no source or rater exceeds
estimate  shrunk estimates per request, cross-fitted; doubly robust where there are enough draws
targets   soft labels and what each request counts
parts     training, validation and test rows that share no episode and no text
report    what is odd about the data
store     a label set as Parquet and JSON, and its row

Labels key by endpoint version, never by a worker's place in a list.
"""
