"""Replies of router LLMs in every wrapping, against offered letters and names."""

from __future__ import annotations

import time

import pytest

from harness.routing.parse import Pick, parse_pick

# Letters are in a drawn order on purpose: the letter B is not the second name's initial.
OPTIONS = {"A": "worker-c", "B": "worker-a", "C": "gpt-4o", "D": "gpt-4o-mini", "E": "a", "F": "Code.Llama/70b"}
A, B, C, D, E, F = (OPTIONS[letter] for letter in "ABCDEF")
FORM = "[[ ## option ## ]]\n{}\n\n[[ ## completed ## ]]"


def form(value: str) -> str:
    return FORM.replace("{}", value)


OK = [
    (form("B"), B),
    (form("B") + "\n", B),
    ("[[ ## option ## ]]\nB", B),  # cut by max_tokens after the answer
    ("[[ ## option ## ]] B [[ ## completed ## ]]", B),
    ("B", B),
    ("  B\n", B),
]
REPAIRED = [
    ("b", B),
    ("B.", B),
    ('"B"', B),
    (' "b".', B),
    ("**B**", B),
    ("`B`", B),
    ("(B)", B),
    ("[B]", B),
    ("Option B", B),
    ("option: b", B),
    ("The best option is B.", B),
    ("My answer: B", B),
    ("Answer = `B`", B),
    ("Worker B", B),
    (form("Option B"), B),
    (form('"B"'), B),
    (form("B: it is good at sums"), B),
    (form("I pick option B because it is cheap."), B),
    (form('{"option": "B"}'), B),
    (form("worker-a"), B),
    (form("B") + form("B"), B),
    ("Here is my choice.\n" + form("B"), B),
    ("worker-a", B),
    ("worker_a", B),
    ("WORKER A", B),
    ("Worker.A", B),
    ('"worker-a".', B),
    ("a", E),
    ('"a"', E),
    ("a\u200b", E),
    ("\ufeffB", B),
    ("B\u00ad\u2060", B),
    ("code-llama-70B", F),
    ("CODE.LLAMA/70b", F),
    ("gpt-4o", C),
    ("gpt-4o-mini", D),
    ("gpt_4o", C),
    ("GPT 4o mini", D),
    ("I would take gpt-4o-mini here.", D),
    ("I would take gpt-4o.", C),
    ("(gpt-4o)", C),
    ("gpt-4o-mini, since gpt-4o-mini is cheap", D),
    ('{"worker": "a"}', E),
    ('{"worker":"worker-a"}', B),
    ('```json\n{"worker":"worker-a"}\n```', B),
    ('```\n{"worker":"worker-a"}\n```', B),
    ("```B```", B),
    ("```\nB\n```", B),
    ('```bash\necho "{no json}"\n```\nSo:\n```json\n{"option": "B"}\n```', B),
    ('```python\nx = {"k": 1}\n```\n{"option": "B"}', B),
    ('Sure! {"option": "B", "why": "sums"} Hope that helps.', B),
    ('{"worker":"worker-a","why":"use `print`"}', B),
    ('{"why":"use ```json fences```","worker":"worker-a"}', B),
    ('{"why":"line\nline","worker":"worker-a"}', B),
    ('{"why":"not worker-c, not A","option":"B"}', B),
    ('{"Option": "B"}', B),
    ('{"option": ["B"]}', B),
    ('{"option": "Option B, it is cheap"}', B),
    ('{"option": "B", "worker": "worker-a"}', B),
    ('{broken {"option": "B"}', B),
    ('<think>A or C? {"option": "A"}</think>B', B),
    ("<think>\nA\n</think>\n\n" + form("B"), B),
    ("option A seems fine, hmm</think>\nB", B),
    ("<THINKING>A</THINKING> B", B),
    ("<think>A</think><think>C</think>B", B),
    ("A is for prose, C for code.\nFinal answer: B", B),
    ("Considering gpt-4o and worker-c at length.\nSo the best option is B.", B),
    ("The request is about sums.\n\nB", B),
    ("B) sums", B),
    ("x " * 4000 + "\nI choose option B", B),
    ('"a"' + " because of what it says", E),
]
AMBIGUOUS = [
    "A or B",
    "A, B",
    "worker-a / gpt-4o",
    form("A or option B"),
    form("A") + form("B"),
    '{"option": "A"} {"option": "B"}',
    '{"option": "A", "worker": "worker-a"}',
    "Either option A or option B would do.",
    "gpt-4o or gpt-4o-mini",
    "Option A is good. Option B is better.",
    '{"A": 90, "B": 10}',
    "A) code\nB) sums",
    "I choose worker-a, not worker-c.",
]
UNKNOWN = [
    "2",
    "1",
    "option 2",
    "Z",
    "G",
    form("G"),
    form(""),
    form("none of them"),
    form("2"),
    '{"option": 2}',
    '{"option": null}',
    '{"option": "gpt-5"}',
    '{"worker": "opus"}',
    "opus",
    "а",  # Cyrillic
    "А",  # Cyrillic capital
    "wоrker-a",  # Cyrillic o
    "worker-а",
    "Ｂ",  # full width
    "worker-b",  # in the pool, not eligible now
    "worker_b",
    "gpt-4o-mini-high",
    "x-gpt-4o",
    "gpt-4",
    "gpt",
    "I'm sorry, but I can't help with that.",
    "As a router I cannot decide what a person wants.",
    "A good question. I think any of them would do.",
    "the worker a person would take",
    "{" * 500,
    "lorem ipsum dolor sit amet " * 300,
    "[[ ## option ## ]]",
    "[[ ## completed ## ]]",
    "none",
    "AB",
    "!",
]
EMPTY = [
    None,
    "",
    "   \n\t",
    "\u200b\ufeff",
    "<think>A",
    "<think>A</think>",
    "<think>A</think>\n\n",
    "A</think>",
    "\x00",
]


@pytest.mark.parametrize(("reply", "worker"), OK)
def test_ok(reply: str, worker: str) -> None:
    assert parse_pick(reply, OPTIONS) == Pick(worker, "ok")


@pytest.mark.parametrize(("reply", "worker"), REPAIRED)
def test_repaired(reply: str, worker: str) -> None:
    assert parse_pick(reply, OPTIONS) == Pick(worker, "repaired")


@pytest.mark.parametrize("reply", AMBIGUOUS)
def test_ambiguous(reply: str) -> None:
    assert parse_pick(reply, OPTIONS) == Pick(None, "ambiguous")


@pytest.mark.parametrize("reply", UNKNOWN)
def test_unknown(reply: str) -> None:
    assert parse_pick(reply, OPTIONS) == Pick(None, "unknown")


@pytest.mark.parametrize("reply", EMPTY)
def test_empty(reply: str | None) -> None:
    assert parse_pick(reply, OPTIONS) == Pick(None, "empty")


def test_names_that_are_aliases_of_each_other_are_ambiguous_but_exact_names_are_not() -> None:
    options = {"A": "worker-a", "B": "worker_a"}
    assert parse_pick("worker.a", options) == Pick(None, "ambiguous")
    assert parse_pick("worker-a", options) == Pick("worker-a", "repaired")
    assert parse_pick("worker_a", options) == Pick("worker_a", "repaired")


def test_beyond_26_options_case_tells_letters_apart() -> None:
    letters = [chr(65 + i) for i in range(26)] + ["a", "b"]
    options = {letter: f"w{place}" for place, letter in enumerate(letters)}
    assert parse_pick(form("a"), options) == Pick("w26", "ok")
    assert parse_pick(form("A"), options) == Pick("w0", "ok")
    assert parse_pick(form("c"), options) == Pick("w2", "repaired")


HOSTILE_REPLIES = [
    "{" * 200_000,
    '{"x":' * 40_000,
    "<think>" * 30_000,
    "[[ ## option ## ]]" * 10_000,
    "option " * 30_000,
    "the best final " * 20_000 + "option",
    " , " * 60_000 + "x",
    "`" * 200_000,
    "gpt-4o-" * 30_000,
    "a" * 1_000_000,
    "(" * 100_000,
    "worker" + " " * 100_000 + "!",
]


@pytest.mark.parametrize("reply", HOSTILE_REPLIES, ids=[reply[:12] for reply in HOSTILE_REPLIES])
def test_a_hostile_reply_is_parsed_in_bounded_time(reply: str) -> None:
    started = time.process_time()
    assert parse_pick(reply, OPTIONS).worker is None
    assert time.process_time() - started < 10  # what grows with the square would take far longer
