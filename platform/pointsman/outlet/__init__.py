"""Outlet: the log as files that other tools read.

`subjects` says what can be asked for and which columns it has, `reading` pages through the database in the order of
ids, `writing` makes JSONL, CSV or Parquet of it, `export` joins the three. Texts leave as the log holds them, redacted
before they were ever kept, and once more by the patterns of today. Label sets and routers are `distill.outlet`'s.
"""
