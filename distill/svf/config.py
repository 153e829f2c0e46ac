"""What SVF adapts. Saved by PEFT as `adapter_config.json`."""

from __future__ import annotations

from dataclasses import dataclass, field

from peft import PeftConfig

METHOD = "SVF"


@dataclass
class SvfConfig(PeftConfig):
    """`target_modules` chooses matrices as in other PEFT tuners; `model.choose` names those of some layers.

    `renormalise` scales every adapted matrix by Σs / Σ s(1 + offset), so that its nuclear norm stays:
    in the authors' code, not in the paper's equation.
    """

    target_modules: list[str] | str | None = field(default=None)
    exclude_modules: list[str] | str | None = field(default=None)
    modules_to_save: list[str] | None = field(default=None)
    renormalise: bool = field(default=True)

    def __post_init__(self) -> None:
        super().__post_init__()  # type: ignore[no-untyped-call]
        self.peft_type = METHOD
