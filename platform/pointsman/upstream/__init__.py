"""The one client to workers: nothing else in Pointsman opens a connection to one.

`transport` sends bytes and reads bytes; `faults` turns what went wrong into `UpstreamError`; `sse`
splits and reads event streams; `usage` and `price` count tokens and money; `breaker` keeps dead
workers away; `body` writes a worker's request from the client's; `attempts` is the one retry loop; `listing` asks a
provider which models it has, for `pointsman init` and `doctor`.
"""
