"""Other APIs over the one core: each surface translates a request into chat completions, and the answer back.

Pure translation, bytes in and bytes out; routing, logging and calling workers are the core's.
"""
