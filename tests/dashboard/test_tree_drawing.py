"""The drawing of a decision: every event is a node, and no name can end a label or add a line."""

from __future__ import annotations

import re

from dashboard.tree import MOST, dot, quoted


def decision(identity, **more):
    values = {"id": identity, "kind": "route", "chosen": "atlas", "router_kind": "harness", "forced": None,
              "propensity": 0.5, "role": None, "step": None}  # fmt: skip
    return values | more


def call(identity, worker="atlas", **more):
    values = {"id": identity, "worker": worker, "status": "ok", "fault": None, "input_tokens": 1200,
              "output_tokens": None, "cost": "0.01", "latency_ms": 850.0}  # fmt: skip
    return values | more


def record(**more):
    made = {"request": {"model": "pointsman"}, "decision": decision("d"), "calls": [call("c")],
            "outcome": {"status": "ok", "latency_ms": 900.0}, "children": []}  # fmt: skip
    return made | more


def edges(drawing):
    return re.findall(r'^"(.*)" -> "(.*)";$', drawing, flags=re.MULTILINE)


def test_a_request_its_choice_its_call_and_its_end():
    drawing = dot(record())
    assert edges(drawing) == [("request", "d"), ("d", "c"), ("c", "end d")]
    assert "1,200 in, – out" in drawing and "$0.0100, 850 ms" in drawing and "harness, p = 0.500" in drawing


def test_a_fallback_follows_the_call_that_failed():
    failed = call("c1", status="error", fault="timeout", cost=None)
    drawing = dot(record(calls=[failed, call("c2", "brook")]))
    assert edges(drawing)[1:3] == [("d", "c1"), ("c1", "c2")]
    assert "error: timeout" in drawing and "cost unknown" in drawing


def test_decisions_below_hang_from_theirs():
    grandchild = {"decision": decision("g", kind="role", role="verifier", step=2), "children": []}
    child = {"decision": decision("e", forced="direct"), "calls": [call("c9")], "children": [grandchild]}
    drawing = dot(record(children=[child]))
    assert ("d", "e") in edges(drawing) and ("e", "g") in edges(drawing) and ("e", "c9") in edges(drawing)
    assert "role 2, verifier" in drawing and "harness, direct" in drawing


def test_a_name_cannot_leave_its_label():
    hostile = 'x"]; a -> b; "\n<b>\\'
    drawing = dot(record(calls=[call("c", hostile)]))
    assert quoted(hostile) == 'x\\"]; a -> b; \\" <b>\\\\'
    assert len(edges(drawing)) == 3
    assert all(line.endswith(("];", '";', "{", ";", "}")) for line in drawing.split("\n"))


def test_a_large_tree_says_that_it_is_cut():
    children = [{"decision": decision(f"e{n}"), "children": []} for n in range(3 * MOST)]
    drawing = dot(record(children=children))
    assert "more than can be drawn" in drawing
    assert drawing.count("\n") < 2 * MOST + 4
