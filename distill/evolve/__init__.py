"""sep-CMA-ES on a router's head and SVF scales: fitness is the reward of what would be served.

sepcma   the search itself, batched, resumable
replay   full-information fitness: all candidates in one product over cached states
guards   what a broken fitness may do (nothing)
loop     generations, validation, acceptance, checkpoints
controls shuffled θ and random search, at equal cost
"""
