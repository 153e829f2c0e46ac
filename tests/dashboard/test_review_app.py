"""The review queue as a reviewer uses it: filled, judged by button, sent as feedback, undone; and who is told what."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import text

from pointsman.actions import review
from pointsman.actions.actor import Actor
from pointsman.ids import new_id
from pointsman.queries.reviews import queues, verdicts

FEEDBACK = "0198a000-0000-7000-8000-000000000001"


@pytest.fixture
def page(page_of, configure, log, database_url, gateway, engine):
    with engine.begin() as connection:
        connection.execute(text("TRUNCATE review_item, verdict, actor_log"))
    gateway.reply = f'{{"id": "{FEEDBACK}", "joined": true}}'.encode()
    configure(database_url, port=gateway.server_port)
    made = page_of("review")
    made.session_state["person"] = "ana"
    return made


@pytest.fixture
def queued(log, engine):
    """Puts the newest decision into the random queue; its item's id."""

    def put(wanted=1):
        now = datetime.now(UTC)
        with engine.begin() as connection:
            review.add_items(
                connection, Actor("sys", "admin"), log.project, "random", [(log.decisions[-1]["id"], 0.5)], now,
                wanted=wanted,
            )  # fmt: skip
            return str(connection.execute(text("SELECT id FROM review_item")).scalar_one())

    return put


def button(page, label):
    return next(item for item in page.button if item.label == label)


def test_filling_and_taking_the_most_telling_one(page, log, engine):
    page.run()
    page.selectbox(key="fill-rule").set_value("bad_outcome")
    page.number_input(key="fill-most").set_value(5)
    button(page, "Fill").click().run()
    assert page.success[0].value == "5 new items in the queue bad\\_outcome."
    button(page, "Next item").click().run()
    assert not page.exception
    item = page.query_params["item"]
    asks = {row["text"] for row in log.rows["request"]}
    assert next(line.value for line in page.text if line.value in asks)
    assert all("answered by" not in line.value for line in page.caption)  # blind at first
    page.toggle(key="review-blind").set_value(False).run()
    assert any("answered by" in line.value for line in page.caption)
    button(page, "Put aside").click().run()
    assert page.query_params["item"] != item


def test_a_verdict_becomes_feedback_and_is_undone(page, log, engine, gateway, queued):
    item = queued()
    page.query_params["item"] = item
    page.run()
    page.selectbox(key=f"better-{item}").set_value("cinder")
    page.text_area(key=f"comment-{item}").set_value("=1+1 <b>no</b>")
    page.button(key="verdict-underpowered").click().run()
    assert not page.exception
    assert "item" not in page.query_params
    assert page.success[0].value == "Verdict kept: underpowered. It is feedback now."
    (path, _, sent) = gateway.seen[-1]
    assert path == "/v1/feedback"
    assert sent["decision_id"] == log.decisions[-1]["id"]
    assert (sent["value"], sent["better_worker"], sent["rater"], sent["source"]) == (False, "cinder", "ana", "review")
    (line,) = verdicts(engine, log.project)
    assert (line.reviewer, line.verdict, line.feedback_id) == ("ana", "underpowered", FEEDBACK)
    button(page, "Undo my last verdict").click().run()
    assert gateway.seen[-1][2]["amends"] == FEEDBACK and gateway.seen[-1][2]["retract"] is True
    assert verdicts(engine, log.project)[0].undone_at is not None
    assert next(line for line in queues(engine, log.project) if line.rule == "random").open == 1


def test_without_a_gateway_the_verdict_waits_and_is_sent_again(page, log, engine, gateway, queued):
    gateway.status = 503
    page.query_params["item"] = queued()
    page.run()
    page.button(key="verdict-good_fit").click().run()
    assert "refused it with status 503" in page.success[0].value
    gateway.status = 200
    button(page, "Send 1 again").click().run()
    assert page.success[0].value == "1 of 1 are feedback now."
    assert verdicts(engine, log.project)[0].feedback_id == FEEDBACK
    assert {sent["idempotency_key"] for _, _, sent in gateway.seen[-2:]} == {gateway.seen[-1][2]["idempotency_key"]}


def test_who_comes_second_is_told_by_whom_it_is_held_and_then_what_was_said(page, log, engine, queued):
    item, now, ben = queued(), datetime.now(UTC), Actor("ben", "reviewer")
    with engine.begin() as connection:
        review.open_item(connection, ben, log.project, item, "another window", now)
    page.query_params["item"] = item
    page.run()
    assert "ben has this item open until" in page.code[0].value
    with engine.begin() as connection:
        said = review.Judgement("failed")
        review.give_verdict(connection, ben, log.project, item, said, "another window", now + timedelta(seconds=1))
    page.run()
    assert page.code[0].value == "this item is done: ben said failed"


def test_two_reviewers_agree(page, log, engine, queued):
    item, now = queued(wanted=2), datetime.now(UTC)
    with engine.begin() as connection:
        ben = Actor("ben", "reviewer")
        review.give_verdict(connection, ben, log.project, item, review.Judgement("failed"), "t", now)
    page.query_params["item"] = item
    page.run()
    page.button(key="verdict-good_fit").click().run()
    alpha = next(metric for metric in page.metric if metric.label.startswith("Agreement"))
    assert (alpha.value, alpha.delta) == ("0.000", "n = 1 items with two words or more")


def test_a_viewer_sees_and_cannot_judge(page, configure, database_url, gateway, queued):
    configure(database_url, '[dashboard]\nrole = "viewer"', port=gateway.server_port)
    page.query_params["item"] = queued()
    page.run()
    assert any("needs the role reviewer" in line.value for line in page.caption)
    assert [item.label for item in page.button] == []


def test_a_verdict_shows_where_it_went(log, engine, queued, page, database_url):
    from pointsman.queries.reviews import trail

    since = datetime.now(UTC)
    assert trail(engine, log.project, since) == ()
    label_set, version = "ab" * 32, new_id()
    with engine.begin() as connection:
        connection.execute(
            text(
                "INSERT INTO label_set (id, project_id, hash, rows, data_hash, manifest_hash, manifest, created_at)"
                " VALUES (:id, :project, :hash, 12, 'd', 'm', '{}', now() + interval '1 second')"
            ),
            {"id": new_id(), "project": log.project, "hash": label_set},
        )
        connection.execute(
            text(
                "INSERT INTO router_version (id, kind, artifact_hash, config, state, created_at)"
                " VALUES (:id, 'classic', 'x', CAST(:config AS jsonb), 'candidate', now())"
            ),
            {"id": version, "config": f'{{"label_set": "{label_set}"}}'},
        )
    (line,) = trail(engine, log.project, since)
    assert (line.hash, line.rows, line.routers) == (label_set, 12, (version,))
