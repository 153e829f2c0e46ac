"""The runners of learning's jobs, and how they find label sets and router versions. The work itself is elsewhere.

labels, train, evolve, evaluate   one runner each
found                             label sets and versions by id, files by hash
"""
