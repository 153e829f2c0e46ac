"""Label sets and trained routers as folders that other tools load: JSONL or Parquet, safetensors, PEFT, with a card.

`label_sets` and `routers` write them, `cards` says what they are and where they come from, `evaluations` finds what
was measured of a router. Nothing that names this machine goes along.
"""
