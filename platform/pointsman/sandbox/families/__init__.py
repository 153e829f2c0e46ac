"""The exam: families of tasks with checkable answers, each with its wordings and gold.

A worker never sees this package: it has to solve the prompt's text by itself (`sandbox.solvers`).
The families of this release need one skill each; `skills` is a tuple, so that families that need two
in a row, a plan or tools are further modules here.
"""

from __future__ import annotations

from pointsman.sandbox.families import (
    arithmetic,
    codes,
    dates,
    extraction,
    logic,
    lookup,
    ordering,
    percentages,
    stories,
    text,
    units,
)
from pointsman.sandbox.families.base import Family, Template

__all__ = ["FAMILIES", "Family", "Template"]

FAMILIES: tuple[Family, ...] = (
    arithmetic.FAMILY,
    percentages.FAMILY,
    dates.FAMILY,
    units.FAMILY,
    text.FAMILY,
    ordering.FAMILY,
    logic.FAMILY,
    extraction.FAMILY,
    lookup.FAMILY,
    codes.FAMILY,
    stories.FAMILY,
)
