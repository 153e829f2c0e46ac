"""The learned conductor: a small language model that writes workflows, trained on what workflows earned.

example     one training example: the prompt that serving would send, a plan in the one grammar, what it earned
pointing    subtasks that point at the request instead of repeating it
traces      examples from logged workflow and trinity episodes
rollouts    plans carried out by the serving engine, and what they earned (`reward`)
sampling    examples from rollouts of the prompted conductor and of random assignments
tiny        a Qwen3 of a few million parameters, for worlds of the sandbox
checking    tokenizer, template, pad token: what is wrong is said before training begins
tuning      what is trained (all, low-rank updates, singular values), merging, saving
sft         TRL's SFTTrainer, best of several learning rates by validation reward
grpo        TRL's GRPOTrainer on rollouts
controls    the same reward and samples by other methods: continued SFT, expert iteration, evolution
single_turn the single-turn head by policy gradients, for comparison
server      an OpenAI-compatible server of a small checkpoint

torch, transformers, trl and peft are slow to import: modules import them inside functions.
"""
