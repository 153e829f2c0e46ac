"""Exam: reading a table."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from pointsman.sandbox.families.base import Asked, family, number, text

_SUBJECTS = (
    ("city", ("Lisbon", "Turin", "Bergen", "Krakow", "Ghent", "Graz"), ("museums", "bridges", "trams")),
    ("plant", ("fern", "basil", "cactus", "ivy", "lupin", "thyme", "sorrel"), ("pots", "leaves", "seeds")),
    ("team", ("Reds", "Owls", "Bears", "Foxes", "Hawks", "Lions", "Wolves"), ("wins", "draws", "goals")),
    ("model", ("T10", "T20", "K5", "K7", "Z1", "Z3", "R8"), ("watts", "volts", "stock")),
)


@dataclass(frozen=True)
class _Table:
    key: str
    columns: tuple[str, ...]
    rows: dict[str, tuple[int, ...]]

    def lines(self, separator: str) -> str:
        head = separator.join((self.key, *self.columns))
        body = (separator.join((name, *map(str, values))) for name, values in self.rows.items())
        return "\n".join((head, *body))

    def fields(self, column: int) -> dict[str, str]:
        pipes = "\n".join(f"| {line} |" for line in self.lines(" | ").split("\n"))
        head, _, body = pipes.partition("\n")
        rule = "|" + "---|" * (len(self.columns) + 1)
        table = f"{head}\n{rule}\n{body}"
        return {"table": table, "csv": self.lines(","), "key": self.key, "col": self.columns[column]}


def _table(rng: Random) -> tuple[_Table, int]:
    key, names, columns = rng.choice(_SUBJECTS)
    chosen = rng.sample(names, rng.randint(4, 6))
    values = [rng.sample(range(3, 400), len(chosen)) for _ in columns]
    rows = {name: tuple(column[i] for column in values) for i, name in enumerate(chosen)}
    return _Table(key, columns, rows), rng.randrange(len(columns))


def cell(rng: Random) -> Asked:
    table, column = _table(rng)
    row = rng.choice(list(table.rows))
    return table.fields(column) | {"row": row}, number(table.rows[row][column])


def highest(rng: Random) -> Asked:
    table, column = _table(rng)
    return table.fields(column), text(max(table.rows, key=lambda name: table.rows[name][column]))


def lowest(rng: Random) -> Asked:
    table, column = _table(rng)
    return table.fields(column), text(min(table.rows, key=lambda name: table.rows[name][column]))


def above(rng: Random) -> Asked:
    table, column = _table(rng)
    limit = rng.randint(60, 300)
    count = sum(values[column] > limit for values in table.rows.values())
    return table.fields(column) | {"n": str(limit)}, number(count)


def total(rng: Random) -> Asked:
    table, column = _table(rng)
    return table.fields(column), number(sum(values[column] for values in table.rows.values()))


def owner(rng: Random) -> Asked:
    table, column = _table(rng)
    row = rng.choice(list(table.rows))
    return table.fields(column) | {"v": str(table.rows[row][column])}, text(row)


FAMILY = family(
    "lookup",
    {
        "{table}\n\nWhat is the figure for {row} under {col}?": cell,
        "Using this table, which {key} has the highest {col}?\n\n{table}": highest,
        "Here is some CSV:\n\n{csv}\n\nHow many rows have {col} above {n}?": above,
        "{table}\n\n{row} / {col} = ?": cell,
        "{csv}\n\nWho has the most {col}?": highest,
    },
    {
        "{csv}\n\n→ {row}, {col}?": cell,
        "Given\n\n{table}\n\nwhat do the {col} values come to in all?": total,
        "Which {key} has a {col} of {v}?\n\n{table}": owner,
        "Lowest {col} below belongs to whom?\n\n{csv}": lowest,
        "{table}\n\nmin({col}) is at ...?": lowest,
    },
)
