"""The pattern engine: one way to run any team of workers, in the gateway and in rollouts for learning alike.

**A run.** `Engine(pool, workers, deciders, log, eligible, memory).run(policy, request, limits, stream=…)` is an
async iterator of events (`events`): decision made, call started and ended, progress, pieces of the answer, and one
`Done` or `Failed` at the end. Close it (`contextlib.aclosing`) and all that runs is cancelled and logged. `final`
runs to the end.

**A pattern** (`acts.Policy`, one file each in `patterns`) computes and never waits. `next(state)` gives all that
may run now, as `Act`s with keys; what has begun is not begun again. An `Act` is one node of the tree: a choice
(`Route`: a worker is drawn; `Named`: it is given; `Pick`: an option is drawn; `Write`: an orchestrator LLM writes,
say, a plan) and, where `call` is given, one call. `read` makes something of a reply (a verdict, a plan). `End` names
the answer's node. Everything else (concurrency, calls, fallbacks, budgets, deadline, cancellation, streaming, logging,
resumption) is done here once. A new pattern is a new file with its settings and a line in `configured`; its own tools
(`Call.own_tools`) end a node without going to the client, `Call.keep` holds a node's messages for the next,
`keepsakes` and `recalls` remember across requests, `Route.avoid` masks workers.

**The seams**, each a protocol with what serves and what rolls out:

    Workers    `workers`    UpstreamWorkers (HTTP, the one retry loop)   LocalWorkers (an async function)
    Deciders   `deciders`   ChainDeciders (routers, then exploration)    a policy object of the trainer's own
    Log        `log`        JournalLog (the gateway's journal)           MemoryLog
    Memory     `memory`     PostgresMemory                               LocalMemory

**The log.** A team's root is a decision of kind `pattern`; every node is a decision below it, with its eligible set,
its vector where there is one, turn and step. A role is a second draw beside the worker's: its vector stands in `roles`,
and `propensity` is the worker's alone. A plan's decision has the plan as it was carried out in `plan`; what a prompted
conductor wrote has no propensities. Each call has the exact messages that its worker saw. An outcome's cost is of its
own node's calls, the root's of the whole tree. A fallback is a second call under the decision that meant another.

**Tool calls** of any step go out under ids of our own; `Engine.suspended(project, ids)` finds the run when a client
brings results, and `Engine.resume` goes on with exactly the steps that asked. A resumed run is a request of its own,
with a root and decisions of its own; a result may come twice.

**Draws** repeat: every node's seed is a function of the request's seed and the node's key, whatever finishes first.

Left out: HTTP to the client, keys, episodes, budgets across requests (`harness.gateway`); routers (`harness.routing`).
"""
