"""Supervised distillation: forward KL from soft labels to a router's shares over workers.

loss    targets and the loss, with masks
states  where a batch's states come from: cached arrays, or a backbone that is being tuned
loop    AdamW, early stopping on held-out reward, checkpoints
"""
