"""The decisions page: the list, its filters and pages, one decision, feedback over HTTP."""

from __future__ import annotations

import json

import pytest

from dashboard.views.decisions import PAGE_SIZE


@pytest.fixture
def page(decisions_app, configure, log, database_url):
    configure(database_url)
    return decisions_app


def listed(page):
    return list(page.dataframe[0].value["Id"])


def button(page, label):
    return next(item for item in page.button if item.label == label)


def newest(log):
    return [row["id"] for row in reversed(log.decisions)]


def test_the_list_is_newest_first_and_pages_by_key(page, log):
    page.run()
    assert not page.exception
    assert listed(page) == newest(log)[:PAGE_SIZE]
    assert button(page, "Newer").disabled
    button(page, "Older").click().run()
    assert listed(page) == newest(log)[PAGE_SIZE : 2 * PAGE_SIZE]
    button(page, "Newer").click().run()
    assert listed(page) == newest(log)[:PAGE_SIZE]


def test_the_last_page_has_nothing_older(page, log):
    page.run()
    for _ in range(len(log.decisions) // PAGE_SIZE - 1):
        button(page, "Older").click().run()
    assert listed(page)[-1] == log.decisions[0]["id"]
    assert button(page, "Older").disabled


def test_filters_are_applied_together_and_from_the_first_page(page, log):
    page.run()
    button(page, "Older").click().run()
    page.text_input(key="search").set_value("sonnet")
    page.selectbox(key="filter-worker").set_value("brook")
    button(page, "Apply").click().run()
    requests = log.requests
    assert listed(page) == [
        row["id"]
        for row in reversed(log.decisions)
        if row["chosen"] == "brook" and "sonnet" in requests[row["request_id"]]["text"]
    ]
    assert button(page, "Newer").disabled


def test_filters_that_nothing_passes(page):
    page.run()
    page.text_input(key="search").set_value("nowhere")
    button(page, "Apply").click().run()
    assert [info.value for info in page.info] == ["No decision passes these filters."]


def test_filters_are_kept_while_one_decision_is_open(page, log):
    page.run()
    page.selectbox(key="filter-explored").set_value("yes")
    button(page, "Apply").click().run()
    before = listed(page)
    page.text_input(key="open-id").set_value(before[0])
    button(page, "Open").click().run()
    assert page.title[0].value == "Decision"
    button(page, "All decisions").click().run()
    assert listed(page) == before


def test_a_completion_id_opens_its_decision(page, log):
    page.run()
    page.text_input(key="open-id").set_value(log.rows["call"][3]["completion_id"])
    button(page, "Open").click().run()
    assert page.code[0].value == log.rows["call"][3]["decision_id"]
    assert page.query_params["decision"] == log.rows["call"][3]["decision_id"]


def test_one_decision_whole(page, log, seeding):
    decision = log.decisions[-1]
    page.query_params["decision"] = decision["id"]
    page.run()
    assert not page.exception
    code = [item.value for item in page.code]
    assert code[:2] == [decision["id"], seeding.HOSTILE]
    assert decision["raw_reply"] in code
    assert {worker.card for worker in log.pool.workers if worker.name != "dune"} <= set(code)
    assert "<b>Answer</b> to question 299" in code
    assert "server: upstream said 503" in code
    facts = {metric.label: metric.value for metric in page.metric}
    assert facts["Chosen"] == decision["chosen"]
    assert facts["Propensity"] == f"{decision['propensity']:.4f}"
    assert facts["Answered by"] == log.outcomes[decision["id"]]["worker"] != facts["Chosen"]
    workers = page.dataframe[0].value.set_index("Worker")
    assert workers.loc["dune", "Eligible"] == "no: the request has no image"
    assert workers.loc[decision["chosen"], "Chosen"] == "▶ chosen"
    assert any("parse status: repaired" in item.value for item in page.text)
    assert list(page.dataframe[1].value["Status"]) == ["error", "ok"]
    badges = " ".join(item.value for item in page.markdown)
    assert "explored" in badges and "answered by a fallback" in badges


def test_what_people_wrote_never_reaches_markdown(page, log):
    page.query_params["decision"] = log.decisions[-1]["id"]
    page.run()
    shown = [item.value for kind in (page.markdown, page.caption, page.title, page.subheader) for item in kind]
    assert not any("onerror" in text or "<b>" in text or "<i>" in text for text in shown)
    assert not any(item.allow_html for item in page.markdown)


def test_a_forced_decision_says_why(page, log):
    forced = next(row for row in log.decisions if row["forced"])
    page.query_params["decision"] = forced["id"]
    page.run()
    assert "Forced: the client named the worker. There was no draw." in [c.value for c in page.caption]


@pytest.mark.parametrize("identity", ["nonsense", "01900000-0000-7000-8000-000000000000"])
def test_an_unknown_link_is_explained(page, identity):
    page.query_params["decision"] = identity
    page.run()
    assert [error.value for error in page.error] == ["There is no such decision."]
    assert page.text[0].value == identity


def give(page):
    page.selectbox(key="feedback-metric").set_value("thumbs")
    page.radio(key="feedback-verdict").set_value("bad")
    page.selectbox(key="feedback-better").set_value("cinder")
    page.text_area(key="feedback-comment").set_value("too long")
    button(page, "Give feedback").click().run()
    assert not page.exception


def open_with_gateway(page, configure, database_url, log, port):
    file = configure(database_url, port=port)
    page.query_params["decision"] = log.decisions[-1]["id"]
    page.run()
    return file


def test_feedback_goes_to_the_gateway_with_the_key(page, configure, database_url, log, gateway):
    file = open_with_gateway(page, configure, database_url, log, gateway.server_port)
    (file.parent / "admin.key").write_text("pk-test\n")
    give(page)
    ((path, headers, body),) = gateway.seen
    assert path == "/v1/feedback"
    assert headers["Authorization"] == "Bearer pk-test"
    assert body == {
        "decision_id": log.decisions[-1]["id"],
        "metric": "thumbs",
        "value": False,
        "source": "person",
        "comment": "too long",
        "better_worker": "cinder",
    }
    assert page.success[0].value.startswith("Thank you")


def test_without_a_key_none_is_sent_and_a_refusal_is_shown(page, configure, database_url, log, gateway):
    gateway.status, gateway.reply = 401, b'{"error": {"message": "no key"}}'
    open_with_gateway(page, configure, database_url, log, gateway.server_port)
    give(page)
    assert "Authorization" not in gateway.seen[0][1]
    assert page.error[0].value == "The gateway refused the feedback with status 401."
    assert '{"error": {"message": "no key"}}' in [item.value for item in page.code]


def test_a_gateway_that_is_away_is_named(page, configure, database_url, log):
    open_with_gateway(page, configure, database_url, log, 1)
    give(page)
    assert page.error[0].value.startswith("The gateway does not answer")


def test_another_router_is_asked_without_a_call(page, log, gateway, configure, database_url):
    gateway.reply = json.dumps(
        {"worker": "brook", "propensity": 0.95, "probabilities": {"atlas": 0.05, "brook": 0.95}, "scores": None}
    ).encode()
    configure(database_url, port=gateway.server_port)
    row = log.decisions[0]
    page.query_params["decision"] = row["id"]
    page.run()
    button(page, "What would it choose?").click().run()
    assert not page.exception
    (path, _, sent) = gateway.seen[-1]
    assert path == "/v1/route"
    assert sent["model"] == f"pointsman@{row['router_version_id']}"
    assert sent["messages"] == log.requests[row["request_id"]]["body"]["messages"]
    assert "It would draw brook" in page.info[0].value


def test_a_filter_by_routers_that_disagree(page, log):
    page.run()
    page.selectbox(key="filter-disagree").set_value("yes")
    button(page, "Apply").click().run()
    assert [info.value for info in page.info] == ["No decision passes these filters."]
    page.selectbox(key="filter-disagree").set_value("no")
    button(page, "Apply").click().run()
    assert listed(page) == newest(log)[:PAGE_SIZE]
