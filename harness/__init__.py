"""The harness: routers that serve (`routing`), the gateway (`gateway`), prompt optimisation (`optimise`).

It leaves out training (`distill`) and never imports torch, transformers or scikit-learn; dspy is
imported in `optimise` alone.
"""
