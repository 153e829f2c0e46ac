"""The routers page over a real gate: what serves, promoting with a reason, rolling back, and the evidence drawn."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from sqlalchemy import text

from dashboard.parts.version import changes, lineage
from pointsman.actions.actor import actions_of
from pointsman.identity import DEFAULT_PROJECT_ID, ensure_project
from pointsman.queries.gates import bound_of, effect_path
from pointsman.queries.routers import VersionLine, plane, promotion_history


@pytest.fixture
def story(empty, engine, gate_log):
    """Two routers that always disagree, a gate between them, thirty of its rows taken."""
    empty()
    with engine.begin() as connection:
        project = ensure_project(connection, "default")
    made = gate_log.Synthetic(engine, project)
    gate = made.gate(mode="propose")
    made.traffic(gate, 30, {"candidate": 0.9, "incumbent": 0.4})
    made.look(gate)
    return made


@pytest.fixture
def page(page_of, configure, story, database_url):
    configure(database_url)
    made = page_of("routers")
    made.session_state["person"] = "ana"
    return made


def button(page, label):
    return next(item for item in page.button if item.label == label)


def test_versions_gate_and_nothing_promoted(page, story):
    page.run()
    assert not page.exception
    assert page.code[0].value == "the chain of pointsman.toml"
    versions = page.dataframe[0].value
    assert set(versions["Version"]) == {story.incumbent[:8], story.candidate[:8]}
    assert versions["Decisions"].sum() == 30
    gates = page.dataframe[1].value
    assert list(gates["Rows"]) == [30]
    assert any("n = 30 rows" in line.value for line in page.caption)


def test_promote_wants_a_reason_and_a_certificate_and_then_can_be_rolled_back(page, story, engine):
    page.query_params["router"] = story.candidate
    page.run()
    button(page, "Promote").click().run()
    assert page.warning[0].value.startswith("Say why")
    page.text_input(key="promote-reason").set_value("better in the pilot")
    button(page, "Promote").click().run()
    assert page.error[0].value == "That was refused."
    assert "no certificate" in page.code[-1].value or any("no certificate" in item.value for item in page.code)
    page.checkbox(key="promote-uncertified").check()
    button(page, "Promote").click().run()
    assert not page.exception
    assert page.success[0].value.endswith("serves from now on.")
    assert page.code[0].value == story.candidate
    page.text_input(key="roll-back-reason").set_value("it is dearer")
    button(page, "Roll back").click().run()
    assert page.success[0].value == "Rolled back: the routers of the file serve again."
    kinds = [row["kind"] for row in promotion_history(engine, DEFAULT_PROJECT_ID)]
    assert kinds == ["roll_back", "promote"]
    with engine.connect() as connection:
        told = [(row.actor, row.action, row.reason) for row in actions_of(connection, DEFAULT_PROJECT_ID)]
    assert told[:2] == [("ana", "roll_back", "it is dearer"), ("ana", "promote", "better in the pilot")]


def test_a_viewer_can_do_nothing(page, configure, database_url, story):
    configure(database_url, '[dashboard]\nrole = "viewer"')
    page.query_params["router"] = story.candidate
    page.run()
    assert not page.exception
    assert [item.label for item in page.button] == []


def test_a_gate_is_stopped(page, story, engine):
    page.run()
    button(page, "Stop the gate").click().run()
    with engine.connect() as connection:
        assert connection.execute(text("SELECT state FROM gate")).scalar_one() == "stopped"


def test_the_plane_has_workers_and_the_oracle(story, engine):
    for scores in ({"alpha": 1.0, "beta": 0.0}, {"alpha": 0.0, "beta": 1.0}, {"alpha": 1.0, "beta": 1.0}):
        story.asked("audit", scores)
    story.flush()
    found = {point.name: (point.score, point.n) for point in plane(engine, DEFAULT_PROJECT_ID)}
    assert found == {
        "alpha": (pytest.approx(2 / 3), 3), "beta": (pytest.approx(2 / 3), 3), "oracle": (pytest.approx(1.0), 3)
    }  # fmt: skip


def test_the_confidence_sequence_closes_around_the_advantage():
    rng = random.Random(3)
    bound = bound_of({"steps": [[0, 0.1], [50, 0.5]]})
    assert bound == pytest.approx(10)
    path = effect_path([rng.choice((1.2, 0.0)) for _ in range(3_000)], 2.0)
    assert len(path) <= 201
    assert path[-1].row == 3_000
    assert path[-1].low < path[-1].mean < path[-1].high
    assert path[-1].mean == pytest.approx(0.6, abs=0.05)
    assert path[-1].low > 0.4 and path[0].low < 0
    assert all(b.high - b.low <= a.high - a.low + 1e-9 for a, b in pairwise(path))


def test_lineage_and_what_differs():
    def version(identity, parent=None):
        return VersionLine(identity, "harness", parent, "candidate", "h", None, {})

    known = {"c": version("c", "b"), "b": version("b", "a"), "a": version("a", "gone")}
    assert lineage("c", known) == ["c", "b", "a", "gone"]
    old, new = {"cards": {"a": "x", "b": "y"}, "t": 1}, {"cards": {"a": "x", "b": "z"}, "u": 2}
    assert changes(old, new) == [("cards.b", "y", "z"), ("t", 1, None), ("u", None, 2)]
