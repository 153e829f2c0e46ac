"""S2: no text of a request or of a filter is ever part of a statement."""

from __future__ import annotations

import ast
import re
import time

import pytest

from pointsman.queries import decisions_page, find_decision
from pointsman.queries.filters import DecisionFilter

HOSTILE = ["x' OR '1'='1", "'; select pg_sleep(30)--", '"); drop table decision; --', "\\'", "%s %(x)s {0}", "$1"]
RUNS = frozenset(
    {"execute", "executemany", "text", "scalar", "scalars", "exec_driver_sql", "copy", "SQL", "literal_column"}
)


STATEMENT = re.compile(
    r"\b(SELECT|INSERT|UPDATE|DELETE|CREATE|DROP|ALTER|LOCK|WITH|GRANT|TRUNCATE|NOTIFY|LISTEN|COPY|SET)\b",
    re.IGNORECASE,
)
DDL = {
    "platform/pointsman/database/partitions.py": "DDL takes no parameters; names, dates and checked UUIDs of ours",
    "platform/pointsman/migrations/versions/": "as above: the names of our own tables",
    "platform/pointsman/jobs/dispatcher.py": "LISTEN takes none either; the channel is a constant",
}
"""Where statements are made of pieces, and why no piece can be anybody else's."""


def built(source: str) -> list[int]:
    """The lines on which a statement is made of pieces: an f-string, `%`, `+` or `.format` handed to what runs it."""
    return [
        node.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call) and node.args and _name(node.func) in RUNS and _pieced(node.args[0])
    ]


def _name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _pieced(given: ast.expr) -> bool:
    """psycopg's own `SQL(…).format(Identifier(…))` quotes what it is given; a text's `format`, `%` and `+` do not."""
    if isinstance(given, ast.Call) and isinstance(given.func, ast.Attribute) and given.func.attr == "format":
        return _says(given.func.value)
    if isinstance(given, ast.BinOp):
        return any(_says(side) or _pieced(side) for side in (given.left, given.right))
    return (
        isinstance(given, ast.JoinedStr)
        and any(isinstance(part, ast.FormattedValue) for part in given.values)
        and any(_says(part) for part in given.values)
    )


def _says(part: ast.expr) -> bool:
    return isinstance(part, ast.Constant) and isinstance(part.value, str) and STATEMENT.search(part.value) is not None


@pytest.mark.parametrize(
    "line",
    [
        'connection.execute(f"SELECT {name}")',
        'text("SELECT " + name)',
        'cursor.execute("SELECT %s" % name)',
        'text("SELECT {}".format(name))',
        'sql.SQL(f"DROP {name}")',
    ],
)
def test_the_gate_sees_a_built_statement(line):
    assert built(line) == [1]


def test_the_gate_lets_parameters_pass():
    assert built('connection.execute(text("SELECT :a"), {"a": name})\nsql.SQL("DROP {}").format(x)') == []


def test_no_statement_of_ours_is_built_of_pieces(sources):
    judged = {file: source for file, source in sources.items() if not file.startswith(tuple(DDL))}
    assert {f"{file}:{line}" for file, source in judged.items() for line in built(source)} == set()
    assert all(any(file.startswith(place) for file in sources) for place in DDL)


@pytest.mark.parametrize("hostile", HOSTILE)
def test_filters_take_it_as_text(engine, empty_database, hostile):
    began = time.monotonic()
    for filters in (
        DecisionFilter(worker=hostile),
        DecisionFilter(search=hostile),
        DecisionFilter(status=hostile),
        DecisionFilter(router_kind=hostile, forced=hostile),
        DecisionFilter(episode_id=hostile),
    ):
        assert decisions_page(engine, None, filters).rows == ()
    assert find_decision(engine, None, hostile) is None
    assert time.monotonic() - began < 15  # nothing slept
