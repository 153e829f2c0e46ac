"""Full-information rows as arrays: which rows and columns, what is NaN, what is a reward."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest
from sqlalchemy import text

from pointsman.ids import new_id
from pointsman.probing.matrix import full_information
from pointsman.rewards.compute import Window
from pointsman.rewards.spec import RewardSpec

NAN = float("nan")


@pytest.fixture
def read(engine, log):
    def matrix(*arguments, **options):
        with engine.connect() as connection:
            return full_information(connection, log.project, *arguments, **options)

    return matrix


def test_rows_columns_and_repeats(log, read):
    first = log.full(
        0,
        text="one",
        task="sums",
        split="train",
        cells=[
            ("a", 0, {"score": 1.0, "cost": Decimal("0.001"), "latency_ms": 500}),
            ("a", 1, {"score": 0.0, "cost": Decimal("0.003")}),
            ("b", 0, {"score": 0.5}),
        ],
    )
    episode = new_id()
    second = log.full(1, text="two", origin="replay", episode=episode, cells=[("b", 0, {"score": 0.25})])
    log.decision(2, score=1.0)  # traffic is no full information
    log.full(3, cells=[])  # a row without a single outcome says nothing
    matrix = read()
    assert matrix.ids == (first, second) and matrix.episodes == (first, episode)
    assert (matrix.texts, matrix.tasks, matrix.splits) == (("one", "two"), ("sums", None), ("train", None))
    assert matrix.origins == ("probe", "replay") and matrix.moments == (log.at(0), log.at(1))
    assert matrix.workers == ("endpoint-a", "endpoint-b") and matrix.names == ("a", "b")
    np.testing.assert_equal(matrix.scores, [[[1.0, 0.0], [0.5, NAN]], [[NAN, NAN], [0.25, NAN]]])
    np.testing.assert_equal(matrix.costs, [[[0.001, 0.003], [NAN, NAN]], [[NAN, NAN], [NAN, NAN]]])
    np.testing.assert_equal(matrix.seconds[0], [[0.5, NAN], [NAN, NAN]])
    np.testing.assert_equal(matrix.means, [[0.5, 0.5], [NAN, 0.25]])
    assert matrix.mean_costs[0, 0] == pytest.approx(0.002)
    assert matrix.complete.tolist() == [True, False] and not matrix.failed.any()
    taken = matrix.take(matrix.complete)
    assert taken.ids == (first,) and taken.scores.shape == (1, 2, 2) and len(taken) == 1
    assert matrix.take([1, 0]).ids == (second, first)


def test_which_rows_are_read(log, read):
    cells = [("a", 0, {"score": 1.0})]
    probe = log.full(0, cells=cells, tags=["probe:x", "other"])
    audit = log.full(10, origin="audit", cells=cells)
    kept = log.full(20, cells=cells, learn=False)
    assert read().ids == (probe, audit)
    assert read(learn_only=False).ids == (probe, audit, kept)
    assert read(("audit",)).ids == (audit,)
    assert read(window=Window(log.at(5), None)).ids == (audit,)
    assert read(window=Window(None, log.at(5))).ids == (probe,)
    assert read(tags=["probe:x", "probe:y"]).ids == (probe,)
    assert len(read(tags=["nothing"])) == 0 and read(tags=["nothing"]).scores.shape == (0, 0, 1)


def test_columns_are_endpoints_in_the_order_asked_for(log, read):
    log.full(0, cells=[("a", 0, {"score": 1.0, "endpoint": "old"}), ("b", 0, {"score": 0.5, "endpoint": "eb"})])
    log.full(1, cells=[("a", 0, {"score": 0.0, "endpoint": "new"})])
    assert read().names == ("a", "a", "b") and set(read().workers) == {"old", "new", "eb"}
    current = read(workers={"eb": "b", "new": "a", "unasked": "c"})
    assert (current.workers, current.names) == (("eb", "new", "unasked"), ("b", "a", "c"))
    np.testing.assert_equal(current.means, [[0.5, NAN, NAN], [NAN, 0.0, NAN]])


def test_a_failure_is_unknown_or_poor_and_an_answer_replaces_it(log, read):
    failure = {"status": "upstream_error"}
    log.full(0, cells=[("a", 0, failure), ("a", 0, {"score": 1.0}), ("b", 0, failure), ("b", 0, failure)])
    np.testing.assert_equal(read().means, [[1.0, NAN]])
    poor = read(failures="poor")
    np.testing.assert_equal(poor.means, [[1.0, 0.0]])
    assert poor.failed[0, :, 0].tolist() == [False, True]
    np.testing.assert_equal(read(spec=RewardSpec(), failures="poor").means, [[1.0, 0.0]])


def test_with_a_spec_scores_are_rewards_of_what_the_row_shares(log, engine, read):
    spec = RewardSpec(cost_weight=1.0, cost_scale=Decimal("0.01"))
    log.full(0, cells=[("a", 0, {"score": 1.0, "cost": Decimal("0.01")}), ("b", 0, {"score": 0.5, "cost": Decimal(0)})])
    log.full(1, cells=[("a", 0, {"score": 1.0, "cost": Decimal("0.01")}), ("b", 0, {"score": 0.5})])
    judged = log.full(2, origin="audit", cells=[("a", 0, {"score": 1.0}), ("b", 0, {})])
    np.testing.assert_allclose(read(spec=spec).means, [[0.5, 0.75], [1.0, 0.5], [NAN, NAN]])
    assert read(spec=spec).judge_units is False
    with engine.begin() as connection:
        connection.execute(
            text(
                "INSERT INTO judge_score (judge_hash, call_id, project_id, decision_id, worker, judge_worker, mode,"
                " score, created_at) SELECT 'j', id, project_id, decision_id, worker, 'a', 'grade', 0.25, now()"
                " FROM call WHERE decision_id = :d"
            ),
            {"d": judged},
        )
    with_judge = read(spec=spec, judge="j")
    np.testing.assert_allclose(with_judge.means[2], [0.25, 0.25])
    assert with_judge.judge_units is True
    np.testing.assert_allclose(read(spec=spec, workers={"endpoint-a": "a"}).means[:, 0], [0.5, 0.5, 1.0])


def test_many_rows_come_in_order_and_whole(log, read):
    ids = [log.full(minute, cells=[("a", 0, {"score": minute / 10}), ("b", 0, {"score": 0})]) for minute in range(8)]
    matrix = read(page=3)
    assert matrix.ids == tuple(ids)
    np.testing.assert_allclose(matrix.means[:, 0], [n / 10 for n in range(8)])
