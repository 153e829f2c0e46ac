"""A workflow's plan: one grammar (`grammar`), one renderer (`render`), one parser (`parse`), one check (`check`).

Conductor's output language (arXiv 2512.04388, §3) with workers named by option letter or name:

    workers = ["B", "A"]
    subtasks = ["Work out 17 times 23.", "Write the result in binary."]
    access = ["none", [1]]

Three lists of one length, in JSON or Python's spelling, behind any reasoning, in fences or not. The parser and the
renderer are each other's inverse: a learned conductor is trained on what this renderer writes.
"""
