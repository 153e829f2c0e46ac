"""A reward spec: what counts for a reward, and how much. Versioned by the hash of its name and content."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from functools import cached_property
from typing import Any

from pointsman.config.model import METRICS, Config, RewardConfig
from pointsman.errors import UserError
from pointsman.hashing import content_hash
from pointsman.words import RewardSource

DEFAULT = "default"


@dataclass(frozen=True)
class RewardSpec:
    """Quality is the first of `quality` that is known; cost (USD) and latency (seconds) are taken from it.

    With Q in [0, 1], c = min(cost / cost_scale, 1) and l = min(seconds / latency_scale, 1), a reward is

        (Q + w_c (1 − c) + w_l (1 − l)) / (1 + w_c + w_l),

    which lies in [0, 1] and orders outcomes as Q − w_c c − w_l l does.
    """

    name: str = DEFAULT
    quality: tuple[RewardSource, ...] = ("verifier", "feedback", "judge")
    metrics: Mapping[str, float] = field(default_factory=lambda: dict.fromkeys(METRICS, 1.0))
    sources: Mapping[str, float] = field(default_factory=dict)
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    cost_weight: float = 0.0
    cost_scale: Decimal = Decimal("0.01")
    latency_weight: float = 0.0
    latency_scale: float = 10.0
    deadline: float = 900.0

    @classmethod
    def of(cls, name: str, config: RewardConfig) -> RewardSpec:
        values = config.model_dump()
        values["quality"] = tuple(config.quality)
        values["ranges"] = {metric: (worst, best) for metric, (worst, best) in config.ranges.items()}
        return cls(name=name, **values)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> RewardSpec:
        """From `content`, as it comes back from JSON."""
        return cls(
            **{
                **stored,
                "quality": tuple(stored["quality"]),
                "ranges": {metric: (worst, best) for metric, (worst, best) in stored["ranges"].items()},
                "cost_scale": Decimal(stored["cost_scale"]),
            }
        )

    @cached_property
    def content(self) -> dict[str, Any]:
        """Everything, as JSON: equal specs have equal content."""
        ranges = {metric: list(ends) for metric, ends in self.ranges.items()}
        scale = format(self.cost_scale.normalize(), "f")
        return {**asdict(self), "quality": list(self.quality), "ranges": ranges, "cost_scale": scale}

    @cached_property
    def hash(self) -> str:
        return content_hash(self.content)


def specs_of(config: Config | None) -> list[RewardSpec]:
    """`default`, and every other that is declared."""
    declared = config.reward if config is not None else {}
    return [spec_of(config, name) for name in sorted({DEFAULT, *declared})]


def spec_of(config: Config | None, name: str = DEFAULT) -> RewardSpec:
    """The spec `[reward.NAME]`; `default` exists without one. Raises `UserError` for any other that is not there."""
    sections = config.reward if config is not None else {}
    if name in sections:
        return RewardSpec.of(name, sections[name])
    if name == DEFAULT:
        return RewardSpec()
    known = ", ".join(sorted({DEFAULT, *sections}))
    raise UserError(f"no reward spec {name!r}, expected one of {known}; [reward.{name}] would declare it")
