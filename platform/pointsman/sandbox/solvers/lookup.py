"""Solves questions about a table, drawn with pipes or as comma-separated values."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from pointsman.sandbox.solvers.base import Answer, rule

Table = Mapping[str, Mapping[str, int]]
"""Row name to column name to value."""

_PIPES = re.compile(r"(?:^\|.*\|$\n?)+", re.MULTILINE)
_COMMAS = re.compile(r"(?:^\w+(?:,\w+)+$\n?)+", re.MULTILINE)


def table_in(prompt: str) -> Table:
    """The first table of a prompt; empty where there is none."""
    if piped := _PIPES.search(prompt):
        lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in piped[0].splitlines()]
    elif commas := _COMMAS.search(prompt):
        lines = [line.split(",") for line in commas[0].splitlines()]
    else:
        return {}
    head, *body = [line for line in lines if not set("".join(line)) <= {"-"}]
    return {row[0]: {name: int(cell) for name, cell in zip(head[1:], row[1:], strict=True)} for row in body}


def _cell(match: re.Match[str]) -> Answer:
    row, column = match["row"], match["col"]
    return str(table_in(match.string)[row][column]), "number"


def _extreme(pick: Callable[..., str]) -> Callable[[re.Match[str]], Answer]:
    def solve(match: re.Match[str]) -> Answer:
        table, column = table_in(match.string), match["col"]
        best = pick(table, key=lambda row: table[row][column])
        return best, "word", tuple(row for row in table if row != best)

    return solve


def _above(match: re.Match[str]) -> Answer:
    column, limit = match["col"], int(match["n"])
    return str(sum(row[column] > limit for row in table_in(match.string).values())), "number"


def _total(match: re.Match[str]) -> Answer:
    return str(sum(row[match["col"]] for row in table_in(match.string).values())), "number"


def _owner(match: re.Match[str]) -> Answer:
    table, column, value = table_in(match.string), match["col"], int(match["v"])
    owner = next(row for row in table if table[row][column] == value)
    return owner, "word", tuple(row for row in table if row != owner)


RULES = (
    rule(r"What is the figure for (?P<row>\w+) under (?P<col>\w+)\?", _cell),
    rule(r"Using this table, which \w+ has the highest (?P<col>\w+)\?", _extreme(max)),
    rule(r"How many rows have (?P<col>\w+) above (?P<n>\d+)\?", _above),
    rule(r"\n(?P<row>\w+) / (?P<col>\w+) = \?", _cell),
    rule(r"Who has the most (?P<col>\w+)\?", _extreme(max)),
    rule(r"→ (?P<row>\w+), (?P<col>\w+)\?", _cell),
    rule(r"what do the (?P<col>\w+) values come to in all\?", _total),
    rule(r"Which \w+ has a (?P<col>\w+) of (?P<v>\d+)\?", _owner),
    rule(r"Lowest (?P<col>\w+) below belongs to whom\?", _extreme(min)),
    rule(r"min\((?P<col>\w+)\) is at", _extreme(min)),
)
