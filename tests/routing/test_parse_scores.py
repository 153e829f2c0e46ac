"""The structured reply: points for every option, whatever the reply is like."""

from __future__ import annotations

import json

import pytest

from harness.routing.parse_scores import Points, parse_scores

OPTIONS = {"A": "worker-c", "B": "worker-a", "C": "gpt-4o"}
FULL = {"worker-c": 10.0, "worker-a": 90.0, "gpt-4o": 50.0}
JSON = '{"A": 10, "B": 90, "C": 50}'


def form(value: str) -> str:
    return f"[[ ## scores ## ]]\n{value}\n\n[[ ## completed ## ]]"


@pytest.mark.parametrize(
    "reply", [form(JSON), form('{"A": 10.0,\n "B": 90,\n "C": 50}'), f"[[ ## scores ## ]]\n{JSON}"]
)
def test_ok(reply: str) -> None:
    assert parse_scores(reply, OPTIONS) == Points(FULL, "ok")


@pytest.mark.parametrize(
    "reply",
    [
        JSON,
        f"```json\n{JSON}\n```",
        f"Here you are:\n{JSON}\nDone.",
        form(f"```\n{JSON}\n```"),
        f"<think>{{'A': 1}}</think>{form(JSON)}",
        form('{"A": "10", "B": "90%", "C": "50/100"}'),
        form('{"a": 10, "b": 90, "c": 50}'),
        form('{"worker-c": 10, "worker_a": 90, "GPT-4o": 50}'),
        form('{"A": 10, "B": 90, "C": 50, "D": 70, "why": "sums"}'),
        form('{"scores": {"A": 10, "B": 90, "C": 50}}'),
        form(JSON) + form(JSON),
    ],
)
def test_repaired(reply: str) -> None:
    assert parse_scores(reply, OPTIONS) == Points(FULL, "repaired")


@pytest.mark.parametrize(
    ("value", "score"),
    [
        ("-5", 0.0),
        ("120", 100.0),
        ("1" * 400, 100.0),
        ('"-3"', 0.0),
        ("0", 0.0),
        ("100", 100.0),
        ("1e999", None),
        ("-1e999", None),
        ("NaN", None),
        ("Infinity", None),
        ("true", None),
        ("null", None),
        ('"high"', None),
        ("[90]", None),
    ],
)
def test_points_are_finite_and_within_0_and_100(value: str, score: float | None) -> None:
    points = parse_scores(form(f'{{"A": 10, "B": {value}, "C": 50}}'), OPTIONS)
    assert points.scores == {"worker-c": 10.0, "worker-a": score or 0.0, "gpt-4o": 50.0}
    assert points.status == ("ok" if value in ("0", "100") else "repaired")
    assert points.flags == (("floored",) if score is None else ())


def test_a_missing_option_gets_0_and_a_flag() -> None:
    points = parse_scores(form('{"B": 90}'), OPTIONS)
    assert points == Points({"worker-c": 0.0, "worker-a": 90.0, "gpt-4o": 0.0}, "repaired", ("floored",))


@pytest.mark.parametrize(
    "reply", ["B", "[[ ## option ## ]]\nB", form("B"), '{"option": "B"}', "worker-a", form("Option B.")]
)
def test_no_points_but_a_pick(reply: str) -> None:
    points = parse_scores(reply, OPTIONS)
    assert points == Points({"worker-c": 0.0, "worker-a": 1.0, "gpt-4o": 0.0}, "repaired", ("pick_only",))


@pytest.mark.parametrize(
    ("reply", "status"),
    [
        (None, "empty"),
        (" ", "empty"),
        ("<think>A: 90", "empty"),
        ("I can't help with that.", "unknown"),
        ('{"D": 90, "2": 10}', "unknown"),
        ('{"A": 10, "B": 9', "ambiguous"),
        ("[90, 10, 50]", "unknown"),
        ("A or B", "ambiguous"),
        (form(JSON) + form('{"A": 90, "B": 10, "C": 50}'), "ambiguous"),
        ("{" * 100_000, "unknown"),
        ('{"x":' * 900 + "1" + "}" * 900, "unknown"),
    ],
)
def test_nothing_to_use(reply: str | None, status: str) -> None:
    assert parse_scores(reply, OPTIONS) == Points(None, status)  # type: ignore[arg-type]


def test_scores_come_in_the_order_of_the_options() -> None:
    points = parse_scores(json.dumps({"C": 1, "B": 2, "A": 3}), OPTIONS)
    assert list(points.scores or {}) == ["worker-c", "worker-a", "gpt-4o"]
