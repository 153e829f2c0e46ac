"""Reviewing without a page: rules find, items are held, verdicts count once, undo opens again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import text

from pointsman.actions import review
from pointsman.actions.actor import Actor, actions_of
from pointsman.actions.review import Judgement, Taken
from pointsman.errors import UserError
from pointsman.queries.reviews import agreement, queues, verdicts
from pointsman.queries.worth import worth_reviewing

NOW = datetime.now(UTC)
SINCE = NOW - timedelta(days=30)
ANA, BEN, VIC = Actor("ana", "reviewer"), Actor("ben", "reviewer"), Actor("vic", "viewer")


@pytest.fixture
def log(empty_database, engine, seeding):
    return seeding.seed(empty_database, until=NOW - timedelta(minutes=1), number=120)


@pytest.fixture
def fill(log, engine):
    def filled(rule="random", limit=5, wanted=1):
        found = worth_reviewing(engine, log.project, rule, SINCE, limit)
        with engine.begin() as connection:
            return review.add_items(connection, ANA, log.project, rule, found, NOW, wanted=wanted)

    return filled


def take(engine, log, actor, token, now=NOW):
    with engine.begin() as connection:
        return review.take_next(connection, actor, log.project, None, token, now)


def judge(engine, log, actor, item, verdict="good_fit", token="t", now=NOW, **more):
    with engine.begin() as connection:
        return review.give_verdict(connection, actor, log.project, str(item.id), Judgement(verdict, **more), token, now)


def test_bad_outcomes_are_those_of_the_log(log, engine):
    found = dict(worth_reviewing(engine, log.project, "bad_outcome", SINCE, 500))
    ended = {key for key, row in log.outcomes.items() if row["status"] not in ("ok", "client_cancelled")}
    amended = {row["amends"] for row in log.rows["feedback"]}
    words = [row for row in log.rows["feedback"] if row["id"] not in amended]
    assert set(found) == ended | {row["decision_id"] for row in words if row["value"] is False}


def test_low_confidence_ranks_by_entropy(log, engine):
    with engine.begin() as connection:
        connection.execute(
            text('UPDATE decision SET forced = NULL, probabilities = \'{"atlas": 0.5, "brook": 0.5}\' WHERE id = :id'),
            {"id": log.decisions[7]["id"]},
        )
    found = worth_reviewing(engine, log.project, "low_confidence", SINCE, 3)
    assert found[0] == (log.decisions[7]["id"], pytest.approx(1.0))
    assert found[1][1] < 0.5


def test_a_watching_router_that_chose_otherwise_is_a_disagreement(log, engine):
    row = log.decisions[5]
    other = next(worker for worker in ("atlas", "brook") if worker != row["chosen"])
    assert worth_reviewing(engine, log.project, "disagreement", SINCE, 9) == []
    with engine.begin() as connection:
        picks = '{"picks": [{"part": "shadow", "worker": "%s"}]}'
        for decision, worker in ((row, other), (log.decisions[6], log.decisions[6]["chosen"])):
            connection.execute(
                text("UPDATE decision SET shadow_picks = CAST(:picks AS jsonb) WHERE id = :id"),
                {"id": decision["id"], "picks": picks % worker},
            )
    found = worth_reviewing(engine, log.project, "disagreement", SINCE, 9)
    assert found == [(row["id"], pytest.approx(1 - row["propensity"] / 2))]


def test_the_same_text_again_is_a_reask(log, engine):
    first, second = log.decisions[30], log.decisions[31]
    assert first["episode_id"] == second["episode_id"]
    with engine.begin() as connection:
        connection.execute(
            text("UPDATE request SET text_hash = 'same' WHERE id IN (:a, :b)"),
            {"a": first["request_id"], "b": second["request_id"]},
        )
    assert [one for one, _ in worth_reviewing(engine, log.project, "reask", SINCE, 9)] == [first["id"]]


def test_queueing_twice_queues_once(fill, log, engine):
    assert fill(limit=120) == 120
    assert fill(limit=120) == 0
    assert {queue.rule: queue.open for queue in queues(engine, log.project)}["random"] == 120


def test_two_people_get_two_items_and_the_lock_ends(fill, log, engine):
    fill(limit=2)
    mine, other = take(engine, log, ANA, "a"), take(engine, log, BEN, "b")
    assert mine.id != other.id
    assert take(engine, log, ANA, "a").id == mine.id  # the one that is held comes back
    assert take(engine, log, Actor("cy", "reviewer"), "c") is None
    late = NOW + review.HOLD + timedelta(seconds=1)
    assert take(engine, log, Actor("cy", "reviewer"), "c", late) is not None


def test_one_wins_and_the_other_is_told(fill, log, engine):
    fill(limit=1)
    item = take(engine, log, ANA, "a")
    with pytest.raises(Taken, match="ana has this item open until"):
        judge(engine, log, BEN, item, token="b")
    judge(engine, log, ANA, item, "failed", token="a")
    with pytest.raises(Taken, match="this item is done: ana said failed"):
        judge(engine, log, BEN, item, token="b")
    assert len(verdicts(engine, log.project)) == 1


def test_two_reviewers_each_once_and_then_it_is_done(fill, log, engine):
    fill(limit=1, wanted=2)
    item = take(engine, log, ANA, "a")
    judge(engine, log, ANA, item, "good_fit", "a")
    assert take(engine, log, ANA, "a") is None  # not twice by one person
    with pytest.raises(UserError, match="ana has judged this item already"):
        judge(engine, log, ANA, item, "failed", "a")
    assert take(engine, log, BEN, "b").id == item.id
    judge(engine, log, BEN, item, "failed", "b")
    assert [queue.done for queue in queues(engine, log.project) if queue.rule == "random"] == [1]
    assert agreement(engine, log.project).words == 2


def test_undo_opens_the_item_again(fill, log, engine):
    fill(limit=1)
    item = take(engine, log, ANA, "a")
    given = judge(engine, log, ANA, item, token="a")
    with engine.begin() as connection, pytest.raises(UserError, match="no such verdict of yours"):
        review.undo_verdict(connection, BEN, log.project, str(given.id), NOW)
    with engine.begin() as connection:
        review.undo_verdict(connection, ANA, log.project, str(given.id), NOW)
    assert take(engine, log, ANA, "a").id == item.id
    assert verdicts(engine, log.project)[0].undone_at is not None


def test_an_assigned_item_is_offered_to_nobody_else(fill, log, engine):
    fill(limit=1)
    item = take(engine, log, ANA, "a")
    with engine.begin() as connection:
        review.release(connection, log.project, str(item.id), "a")
        review.assign(connection, ANA, log.project, str(item.id), "ben", NOW)
    assert take(engine, log, ANA, "a") is None
    assert take(engine, log, BEN, "b").id == item.id


def test_lift_is_against_random(fill, log, engine):
    fill("bad_outcome", 2)
    fill("random", 4)
    for verdict_of in range(6):
        item = take(engine, log, ANA, "a")
        bad = item.rule == "bad_outcome" or verdict_of == 5
        judge(engine, log, ANA, item, "failed" if bad else "good_fit", "a")
    found = {queue.rule: queue for queue in queues(engine, log.project)}
    assert (found["random"].found.count, found["random"].found.n) == (1, 4)
    assert found["bad_outcome"].lift == pytest.approx(4.0)


def test_a_viewer_may_not(fill, log, engine):
    fill(limit=1)
    with engine.begin() as connection, pytest.raises(UserError, match="needs the role reviewer"):
        review.take_next(connection, VIC, log.project, None, "v", NOW)


def test_another_project_has_no_such_item(fill, log, engine):
    fill(limit=1)
    item = take(engine, log, ANA, "a")
    with engine.begin() as connection, pytest.raises(UserError, match="there is no item"):
        review.open_item(connection, BEN, "01900000-0000-8000-8000-000000000000", str(item.id), "b", NOW)


def test_a_verdict_as_feedback(fill, log, engine):
    fill(limit=1)
    row = judge(
        engine, log, ANA, take(engine, log, ANA, "a"), "overprovisioned", "a", better_worker="brook", comment="easy"
    )
    assert review.feedback_of(row) == {
        "decision_id": str(row.decision_id),
        "metric": "correct",
        "value": True,
        "source": "review",
        "rater": "ana",
        "comment": "overprovisioned: easy",
        "idempotency_key": f"verdict {row.id}",
        "better_worker": "brook",
    }


def test_every_action_leaves_its_record(fill, log, engine):
    fill(limit=1)
    judge(engine, log, ANA, take(engine, log, ANA, "a"), token="a")
    with engine.connect() as connection:
        rows = actions_of(connection, log.project)
    assert [(row.actor, row.action) for row in rows] == [("ana", "verdict"), ("ana", "review_fill")]
