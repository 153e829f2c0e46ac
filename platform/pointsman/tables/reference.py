"""docs/data-model.md, made from the tables: every column with its type and what it means.

    python -m pointsman.tables.reference

Types, closed sets and keys are the metadata's, a table's words are its class's, a column's stand in `meanings.toml`.
"""

from __future__ import annotations

import inspect
import re
import sys
import tomllib
from pathlib import Path

from sqlalchemy import CheckConstraint, Column, Table
from sqlalchemy.dialects import postgresql
from sqlmodel import SQLModel

import pointsman.tables as tables
from pointsman.tables.base import METADATA, PARTITIONED

MEANINGS = Path(__file__).with_name("meanings.toml")
_PARTS = {
    "Who asks, and what they may spend": ("project", "api_key", "budget", "budget_lease", "idempotency"),
    "The log": ("request", "episode", "decision", "call", "outcome", "feedback"),
    "The pool and the routers": ("worker", "worker_endpoint", "card", "price", "pool_snapshot", "router_version"),
    "Rewards, probes, judges": ("reward_spec", "reward", "reward_mark", "judge_score", "audit_run"),
    "Letting a router in": (
        "gate", "gate_row", "certificate", "alpha_ledger", "promotion", "dial", "alarm", "detector", "actor_log",
    ),
    "Background work": ("job", "job_chunk", "job_log", "artifact", "schedule", "rate_bucket"),
}  # fmt: skip
_REST = "The rest"
_DIALECT = postgresql.dialect()  # type: ignore[no-untyped-call]
_HEAD = """# Data model: every table, every column

Made from the code by `make docs`. All of it lives in PostgreSQL 15+. Ids are UUIDv7, times `timestamptz` in UTC, money
exact decimals in USD; NULL means *not known*, never 0. Where a column takes a closed set of words, they are named.

`request`, `decision`, `call` and `outcome` are partitioned by month of their id ([scale.md](scale.md)); the tables of
the log have no foreign keys, because rows arrive in any order. `pointsman export` writes them as files.
"""


def meanings() -> dict[str, dict[str, str]]:
    """{table: {column: meaning}}, with what is common to all under `common`."""
    return tomllib.loads(MEANINGS.read_text(encoding="utf-8"))


def markdown() -> str:
    """The whole page."""
    told = meanings()
    named = {name for names in _PARTS.values() for name in names}
    rest = [name for name in sorted(METADATA.tables) if name not in named]
    lines = [_HEAD]
    for part, names in {**_PARTS, _REST: tuple(rest)}.items():
        lines.append(f"## {part}\n")
        for name in names:
            lines += _table(METADATA.tables[name], {**told["common"], **told.get(name, {})})
    return "\n".join(lines)


def _table(table: Table, told: dict[str, str]) -> list[str]:
    partitioned = " Partitioned by month." if table.name in PARTITIONED else ""
    words = _closed_sets(table)
    lines = [f"### `{table.name}`\n", _described(table.name) + partitioned + "\n"]
    lines += ["| column | type | meaning |", "|---|---|---|"]
    for column in table.columns:
        choices = words.get(column.name)
        among = f" Among {', '.join(f'`{word}`' for word in choices)}." if choices else ""
        meaning = told.get(column.name, "")
        ended = meaning if not among or meaning.endswith(".") else meaning + "."
        lines.append(f"| `{column.name}` | {_type(column)} | {ended}{among} |".replace("\n", " "))
    return [*lines, ""]


def _type(column: Column[object]) -> str:
    compiled = str(column.type.compile(dialect=_DIALECT)).lower().replace(" with time zone", "tz")
    compiled = "text" if compiled == "varchar" else compiled
    key = ", key" if column.primary_key else ""
    return f"{compiled}{key}{'' if column.primary_key or not column.nullable else ', or NULL'}"


def _closed_sets(table: Table) -> dict[str, list[str]]:
    """{column: words} of the checks that name a closed set."""
    found = {}
    for constraint in table.constraints:
        if isinstance(constraint, CheckConstraint):
            match = re.fullmatch(r"(\w+) IN \((.*)\)", str(constraint.sqltext))
            if match:
                found[match[1]] = re.findall(r"'([^']*)'", match[2])
    return found


def _described(name: str) -> str:
    """The words of the class of a table, as one paragraph each."""
    for model in vars(tables).values():
        if inspect.isclass(model) and issubclass(model, SQLModel) and getattr(model, "__tablename__", None) == name:
            return inspect.cleandoc(model.__doc__ or "")
    return ""


if __name__ == "__main__":
    sys.stdout.write(markdown())
