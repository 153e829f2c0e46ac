"""The patterns, one file each.

    single     one worker per input
    trinity    thinker, solver, verifier in turns (`roles`, `verdict`)
    workflow   a plan of steps (`rounds`)
    cascade    tiers, a verifier, escalation
    sidekick   a lead that delegates to a cheap worker (`sidekick_tools`, `sidekick_context`, `ownership`)
    handoff    the conversation is handed over (`transfer_tools`, `ownership`)
    vote       several answers, and what most say (`ballots`)

Further ones are a `Policy` in a file of their own, with their settings beside it and an entry in `configured`.
"""
