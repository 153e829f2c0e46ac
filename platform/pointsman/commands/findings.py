"""What one check of `pointsman doctor` found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["ok", "warn", "fail"]


@dataclass(frozen=True)
class Finding:
    """`advice` says what to do, and is empty where all is well."""

    name: str
    state: State
    message: str
    advice: str = ""
