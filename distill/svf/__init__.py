"""Singular-value fine-tuning as a PEFT tuner: W' = U diag(s · (1 + offset)) Vᵀ, offsets trained, U and V frozen.

Importing the package registers the method `SVF` with PEFT, so `get_peft_model`, `save_pretrained`,
`PeftModel.from_pretrained`, several adapters, `disable_adapter` and `merge_and_unload` work as for any
other tuner. PEFT is slow to import: import this package inside the functions that need it.

Source: Transformer² (arXiv 2501.06252) §3, with the additive offset of Trinity (arXiv 2512.04695).
"""

from distill.svf.config import SvfConfig
from distill.svf.layer import SvfLinear
from distill.svf.model import SvfModel, adapt, choose, count_offsets, layers, register, set_offsets

register()

__all__ = [
    "SvfConfig",
    "SvfLinear",
    "SvfModel",
    "adapt",
    "choose",
    "count_offsets",
    "layers",
    "register",
    "set_offsets",
]
