"""Prompt optimisation: the router as a DSPy program, and its compilation to a plain template.

The only part of the harness that imports dspy (`pip install pointsman[optimize]`); the gateway
never imports this package.
"""
