"""Option log-probabilities from completions: where the answer stands, variants, floors, hostile numbers."""

from __future__ import annotations

import math
from typing import Any

import pytest

from harness.routing.logprobs import LOWEST, MARGIN, has_logprobs, letter_logprobs

LETTERS = ("A", "B", "C")
TOP = {"B": -0.2, "A": -2.0, "C": -4.0}
HEADER = ["[[", " ##", " option", " ##", " ]]", "\n"]
ENDING = ["\n\n", "[[", " ##", " completed", " ##", " ]]"]


def token(text: str, logprob: Any = -0.01, top: dict[str, Any] | None = None) -> dict[str, Any]:
    tops = [{"token": name, "logprob": value, "bytes": None} for name, value in (top or {}).items()]
    return {"token": text, "logprob": logprob, "bytes": None, "top_logprobs": tops}


def reply(tokens: list[dict[str, Any]]) -> dict[str, Any]:
    text = "".join(item["token"] for item in tokens)
    return {"choices": [{"message": {"content": text}, "logprobs": {"content": tokens}}]}


def answered(answer: str, top: dict[str, Any], logprob: Any = -0.2) -> dict[str, Any]:
    return reply([*map(token, HEADER), token(answer, logprob, top), *map(token, ENDING)])


def test_after_the_header() -> None:
    read = letter_logprobs(answered("B", TOP), LETTERS)
    assert read is not None
    assert read.by_letter == {"A": -2.0, "B": -0.2, "C": -4.0}
    assert (read.answer, read.floored) == ("B", False)


@pytest.mark.parametrize("answer", ["B", " B", "B\n", "\nB", "ĠB", "▁B", "ĊB", "BĊĊ", '"B"', "**B", "B.", "b"])
def test_spellings_of_the_sampled_token(answer: str) -> None:
    read = letter_logprobs(answered(answer, {answer: -0.2, "A": -2.0, "C": -4.0}), LETTERS)
    assert read is not None and read.answer == "B"
    assert read.by_letter == {"A": -2.0, "B": -0.2, "C": -4.0}


@pytest.mark.parametrize(
    "before",
    [
        [],
        ["\n"],
        ["**"],
        ["[[ ## option ## ]]\n"],
        ["[[Ġ##", "ĠoptionĠ", "##Ġ]]", "Ċ"],
        ["<think>", "A", " fits", "</think>", "\n\n", *HEADER],
        ["<think>", "A", "</think>"],
        ["[[ ## option ## ]]", "A", "\n[[ ## option ## ]]\n"],
    ],
)
def test_positions(before: list[str]) -> None:
    tokens = [token(text, -0.01, {text: -0.01, "A": -9.0}) for text in before]
    read = letter_logprobs(reply([*tokens, token("B", -0.2, TOP)]), LETTERS)
    assert read is not None and read.by_letter == {"A": -2.0, "B": -0.2, "C": -4.0}


def test_variants_of_a_letter_are_added() -> None:
    top = {"B": math.log(0.5), " B": math.log(0.2), "A": math.log(0.1), "ĠA": math.log(0.05), "C": math.log(0.1)}
    read = letter_logprobs(answered("B", top, math.log(0.5)), LETTERS)
    assert read is not None
    assert read.by_letter == pytest.approx({"A": math.log(0.15), "B": math.log(0.7), "C": math.log(0.1)})


def test_the_sampled_token_counts_once_and_also_when_it_is_not_in_its_top() -> None:
    read = letter_logprobs(answered("B", {"A": -2.0, "C": -4.0}, -0.2), LETTERS)
    assert read is not None and read.by_letter["B"] == -0.2


def test_a_letter_outside_the_top_k_is_floored_below_what_is_known() -> None:
    top = {"B": math.log(0.9), "A": math.log(0.05), "The": math.log(0.04)}
    read = letter_logprobs(answered("B", top, math.log(0.9)), LETTERS)
    assert read is not None and read.floored
    assert read.by_letter["C"] == pytest.approx(math.log(0.01) - MARGIN)  # the mass left over binds
    wide = {"B": math.log(0.5), "A": math.log(0.05)}
    read = letter_logprobs(answered("B", wide, math.log(0.5)), LETTERS)
    assert read is not None
    assert read.by_letter["C"] == pytest.approx(math.log(0.05) - MARGIN)  # the least seen binds
    assert read.by_letter["C"] < min(read.by_letter["A"], read.by_letter["B"])


@pytest.mark.parametrize("bad", [-math.inf, math.nan, -9999.0, -9999, None, "x", True])
def test_what_is_no_usable_number_is_clipped(bad: Any) -> None:
    read = letter_logprobs(answered("B", {"B": 0.0, "A": bad, "C": -3.0}, 0.0), LETTERS)
    assert read is not None
    assert read.by_letter == {"A": LOWEST, "B": 0.0, "C": -3.0}
    assert all(map(math.isfinite, read.by_letter.values()))


def test_positive_log_probabilities_are_clipped_and_floors_stay_finite() -> None:
    read = letter_logprobs(answered("B", {"B": 3.0}, math.inf), LETTERS)
    assert read is not None
    assert read.by_letter == {"A": LOWEST - MARGIN, "B": 0.0, "C": LOWEST - MARGIN}


@pytest.mark.parametrize(
    "completion",
    [
        reply([token("The", -0.1, TOP), token(" best"), token(" is"), token(" B")]),
        reply([*map(token, HEADER), token("Option", -0.1, TOP), token(" B")]),
        reply([*map(token, HEADER), token("Z", -0.1, TOP)]),
        reply([*map(token, HEADER)]),
        reply([token("Ｂ", -0.1, TOP)]),
    ],
)
def test_no_letter_at_the_position(completion: dict[str, Any]) -> None:
    assert has_logprobs(completion)
    assert letter_logprobs(completion, LETTERS) is None


@pytest.mark.parametrize(
    "completion",
    [
        None,
        {},
        [],
        {"choices": None},
        {"choices": []},
        {"choices": [None]},
        {"choices": [{"message": {"content": "B"}}]},
        {"choices": [{"logprobs": None}]},
        {"choices": [{"logprobs": {}}]},
        {"choices": [{"logprobs": {"content": None}}]},
        {"choices": [{"logprobs": {"content": []}}]},
        {"choices": [{"logprobs": {"content": ["B", None, 3]}}]},
        {"choices": [{"logprobs": "B"}]},
    ],
)
def test_no_log_probabilities(completion: Any) -> None:
    assert not has_logprobs(completion)
    assert letter_logprobs(completion, LETTERS) is None


@pytest.mark.parametrize("top", [None, "x", [None, 3, {"token": None}, {"logprob": -1}]])
def test_ill_formed_tops_leave_the_sampled_token(top: Any) -> None:
    completion = reply([{"token": "B", "logprob": -0.5, "top_logprobs": top}])
    read = letter_logprobs(completion, LETTERS)
    assert read is not None and read.by_letter["B"] == -0.5 and read.floored


def test_beyond_26_options_case_tells_letters_apart() -> None:
    letters = tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZab")
    read = letter_logprobs(reply([token("a", -0.2, {"a": -0.2, "A": -2.0, "c": -3.0})]), letters)
    assert read is not None
    assert (read.answer, read.by_letter["a"], read.by_letter["A"], read.by_letter["C"]) == ("a", -0.2, -2.0, -3.0)
