"""The patterns, one file each: `single`, `trinity` (`roles`, `verdict`), `workflow` (`rounds`).

Further ones are a `Policy` in a file of their own, with their settings beside it and an entry in `configured`.
"""
