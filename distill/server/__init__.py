"""The router server: scores of learned routers for gateways on the same machine, over a unix socket.

models   versions loaded by hash from the log and the artifact store, kept while they may serve
batches  questions gathered for a few milliseconds and answered by one forward pass
serve    the socket, and the command `pointsman router-server`
"""
