"""Parameters of jobs: strict types, bounds, and errors that a person can act on."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

import pytest

from pointsman.errors import UserError
from pointsman.jobs.kinds import KINDS, estimate, kind_of, parse_params
from pointsman.jobs.params import from_text, option, options, parse, to_json
from pointsman.jobs.runners import runner_of
from pointsman.words import JobQueue, members


@dataclass(frozen=True)
class Everything:
    """One of each."""

    name: str = option(help="a name", least=1, most=5)
    count: int = option(3, "how many", least=0, most=10)
    share: float = option(0.5, least=0, most=1)
    on: bool = option(False)
    colour: Literal["red", "blue"] = option("red")
    size: str = option("s", choices=("s", "m"))
    workers: tuple[str, ...] = option((), least=0, most=2)
    table: dict[str, Any] | None = option(None)


def test_values_that_are_right_become_the_dataclass() -> None:
    raw = {"name": "a", "count": 10, "share": 1, "on": True, "colour": "blue", "workers": ["x", "y"], "table": {"a": 1}}
    assert parse(Everything, raw) == Everything("a", 10, 1.0, True, "blue", "s", ("x", "y"), {"a": 1})
    assert parse(Everything, {"name": "a"}) == Everything("a")


def test_what_is_stored_reads_back_the_same() -> None:
    params = Everything("a", workers=("x",))
    assert parse(Everything, to_json(params)) == params
    assert to_json(params)["count"] == 3, "defaults are stored, so that a queued job keeps them"


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("name", "", 'params.name: expected a text of from 1 to 5 characters, got ""'),
        ("name", 5, "params.name: expected a text of from 1 to 5 characters, got 5"),
        ("count", 11, "params.count: expected a whole number from 0 to 10, got 11"),
        ("count", 1.5, "params.count: expected a whole number from 0 to 10, got 1.5"),
        ("count", True, "params.count: expected a whole number from 0 to 10, got true"),
        ("count", "3", 'params.count: expected a whole number from 0 to 10, got "3"'),
        ("count", None, "params.count: expected a whole number from 0 to 10, got null"),
        ("share", float("nan"), "params.share: expected a number from 0 to 1, got NaN"),
        ("share", 10**400, "params.share: expected a number from 0 to 1, got 1000"),
        ("on", 1, "params.on: expected true or false, got 1"),
        ("colour", "green", 'params.colour: expected one of red, blue, got "green"'),
        ("colour", ["red"], 'params.colour: expected one of red, blue, got ["red"]'),
        ("size", "xl", 'params.size: expected one of s, m, got "xl"'),
        ("workers", ["a", 1], 'params.workers: expected a list of texts of from 0 to 2 entries, got ["a", 1]'),
        ("workers", ["a", "b", "c"], "params.workers: expected a list of texts of from 0 to 2 entries"),
        ("table", [], "params.table: expected an object or null, got []"),
        ("colours", 1, "params.colours: no such parameter, expected name, count, share, on"),
    ],
)
def test_what_is_wrong_is_named_with_what_was_expected(key: str, value: object, expected: str) -> None:
    with pytest.raises(UserError) as caught:
        parse(Everything, {"name": "a", key: value})
    assert str(caught.value).startswith(expected)
    assert len(str(caught.value)) < 400


def test_every_fault_is_named_at_once() -> None:
    with pytest.raises(UserError) as caught:
        parse(Everything, {"count": -1, "on": "no"})
    assert [line.split(":")[0] for line in str(caught.value).splitlines()] == [
        "params.name",
        "params.count",
        "params.on",
    ]


@pytest.mark.parametrize("raw", [[], "x", 3, None])
def test_parameters_are_an_object(raw: object) -> None:
    with pytest.raises(UserError, match="params: expected an object, got"):
        parse(Everything, raw)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("name", "5", "5"),
        ("count", "5", 5),
        ("share", "0.25", 0.25),
        ("on", "true", True),
        ("colour", "blue", "blue"),
        ("workers", "a, b", ["a", "b"]),
        ("workers", '["a"]', ["a"]),
        ("table", "none", None),
        ("table", '{"a": 1}', {"a": 1}),
        ("count", "five", "five"),
    ],
)
def test_what_a_person_typed_becomes_a_value(name: str, text: str, value: object) -> None:
    assert from_text(Everything, name, text) == value


def test_a_parameter_that_is_not_there_is_named() -> None:
    with pytest.raises(UserError, match=r"params.colours: no such parameter, expected name, count"):
        from_text(Everything, "colours", "1")


def test_options_tell_what_a_form_needs() -> None:
    told = {item.name: item for item in options(Everything)}
    assert told["name"].required and not told["count"].required
    assert (told["count"].default, told["count"].least, told["count"].most) == (3, 0, 10)
    assert told["count"].help == "how many"
    assert told["count"].type == "a whole number from 0 to 10"
    assert told["colour"].choices == ("red", "blue")


@pytest.mark.parametrize("kind", KINDS.values(), ids=list(KINDS))
def test_every_kind_is_whole(kind: Any) -> None:
    assert KINDS[kind.name] is kind
    assert kind.queue in members(JobQueue) and kind.stages and kind.summary
    assert all(item.help for item in options(kind.params)), "every parameter says what it is"


def test_a_kind_that_is_not_there_is_named_with_those_that_are() -> None:
    with pytest.raises(UserError, match="kind: no job kind 'selftest', expected one of self-test, "):
        kind_of("selftest")


def test_the_self_test_is_estimated_from_its_parameters() -> None:
    told = estimate("self-test", {"steps": 10, "seconds": 0.5, "chunks": 8, "chunk_seconds": 1, "cost": 0.25})
    assert (told.seconds, told.cost_usd) == (10 * 0.5 + 8 / 4, Decimal("2.50"))
    assert "parameters" in told.basis


def test_the_kinds_of_the_base_have_their_runners() -> None:
    assert runner_of("self-test").part is not None
    assert runner_of("retention").part is None
    assert parse_params("retention", None).days is None
