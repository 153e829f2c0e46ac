"""From a request to a chosen worker: eligibility, routers and their chain, exploration.

A router only gives scores. What is drawn from them, and with which probability, is decided in
`exploration`, the only source of propensities.
"""
