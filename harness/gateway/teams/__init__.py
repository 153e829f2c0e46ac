"""Teams behind the gateway: a request that names a pattern as its model is answered by the engine's tree of decisions.

    names      which models are patterns, and their cards
    choice     a router draws the pattern, where the configuration offers several
    forecast   what a pattern will take: calls, USD, time, each with an interval
    shared     what all teams of a process share: memory, the router LLM, the tallies of the forecast
    opening    everything that one request's run needs, its reservation included
    rows       its rows: redacted, in the journal, in this process's memory; what was spent
    telling    the answer, its stream and its progress in the words of chat completions
    exchange   one request from its root decision to its one outcome

One deadline, one budget and one outcome bind the whole tree. The core speaks chat completions here as everywhere, so
every surface has teams.
"""
