"""The distillery: from the log to labels, classic and learned routers, evaluation and the router server.

Nothing is trained yet: this room is empty but for its name, so that the contracts between rooms hold
from the first day. It may import `harness` and `pointsman`, never `dashboard`.
"""
