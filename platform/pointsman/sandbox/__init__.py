"""The sandbox: an honest simulation of a pool of workers, for trying, testing and comparing.

    world      a world from its seed: workers, prices, cards      tasks     its tasks, with verifiers
    server     the workers and the router LLM over HTTP           serve     runs it
    setup      a `pointsman.toml` for it                          drive     traffic and feedback

A world is a pure function of its seed. The exam (`families`) and what solves it (`solvers`) are written
apart; `truth`, the skill table, is read by the server, the cards' author and benchmarks alone. Nothing
measured here is a claim about real models: latencies are drawn, answers are computed.
"""
