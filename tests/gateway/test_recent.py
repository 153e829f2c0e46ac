"""The newest decisions in memory: bounded by what requests, answers and feedback take."""

from __future__ import annotations

from harness.gateway.recent import Entry, Recent


def entry(size: int, project: str = "p") -> Entry:
    return Entry(project, None, size, {"id": "x"})


def test_requests_answers_and_feedback_all_count():
    recent = Recent(max_entries=10, max_bytes=100)
    for name in ("a", "b", "c"):
        recent.add(name, entry(10))
    recent.end("b", [], {}, 60)  # 90 bytes
    assert recent.get("a") is not None
    recent.rate("b", {"comment": "x"}, 20)  # 110: the oldest goes
    assert recent.get("a") is None and recent.get("b").feedback == [{"comment": "x"}]
    recent.end("c", [], {}, 30)
    assert recent.get("b") is None and recent.get("c").size == 40
    recent.end("c", [], {}, 1000)  # alone too large
    assert recent.get("c") is None
    recent.add("d", entry(100))  # what left is counted no more
    assert recent.get("d") is not None


def test_the_number_is_bounded_and_what_left_is_not_found_by_its_answer():
    recent = Recent(max_entries=2, max_bytes=100)
    for name in ("a", "b"):
        recent.add(name, entry(1))
        recent.end(name, [{"completion_id": f"of-{name}"}], {}, 1)
    recent.add("c", entry(1))
    assert recent.by_completion("p", "of-a") is None
    assert recent.by_completion("p", "of-b") == "b" and recent.by_completion("q", "of-b") is None


def test_an_id_that_a_worker_gave_twice_stays_with_the_newer():
    recent = Recent(max_entries=2, max_bytes=100)
    for name in ("a", "b"):
        recent.add(name, entry(1))
        recent.end(name, [{"completion_id": "chatcmpl-1"}], {}, 1)
    recent.add("c", entry(1))
    assert recent.by_completion("p", "chatcmpl-1") == "b"


def test_what_comes_for_a_decision_that_left_is_dropped():
    recent = Recent(max_entries=1)
    recent.add("a", entry(1))
    recent.add("b", entry(1))
    recent.end("a", [{"completion_id": "x"}], {}, 5)
    recent.rate("a", {}, 5)
    assert recent.get("a") is None and recent.by_completion("p", "x") is None
