"""What a router is worth on full-information rows: values, gaps, paired intervals, ablations.

Pure functions over score arrays [n, k] and rewards [n, k]; a table's arms name the columns.
"""
