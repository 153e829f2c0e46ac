"""The workers page: health, success by tag, who beats whom, and a card that becomes a candidate and serves nothing."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from pointsman.actions.actor import actions_of
from pointsman.promotion.versions import find_version
from pointsman.queries.workers import duels, success_by_tag


@pytest.fixture(scope="module")
def tagged(log, engine):
    """The seeded log; the asks about sums have a tag, and the version that serves has cards."""
    with engine.begin() as connection:
        connection.execute(text("UPDATE request SET tags = '{sums}' WHERE text LIKE '%sums of integers'"))
        connection.execute(
            text("UPDATE router_version SET config = CAST(:config AS jsonb)"),
            {"config": '{"cards": {"atlas": "Careful with sums.", "brook": "Quick."}}'},
        )
        connection.execute(text("UPDATE request SET model = 'pointsman'"))
    return log


@pytest.fixture
def page(page_of, configure, tagged, database_url):
    configure(database_url)
    made = page_of("workers")
    made.session_state["person"] = "ana"
    return made


def button(page, label):
    return next(item for item in page.button if item.label == label)


def test_health_of_every_worker_with_its_sample_size(page, tagged):
    page.run()
    assert not page.exception
    table = page.dataframe[0].value.set_index("Worker")
    assert list(table.index) == ["atlas", "brook", "cinder", "dune"]
    assert table["Calls"].sum() > 0 and table.loc["dune", "Calls"] == 0
    assert table.loc["dune", "Went well"] == "–"


def test_success_by_tag_counts_what_the_log_says(tagged, engine):
    requests, outcomes = tagged.requests, tagged.outcomes
    mine = [row for row in tagged.decisions if requests[row["request_id"]]["text"].endswith("sums of integers")]
    expected = {}
    for row in mine:
        ended = outcomes[row["id"]]
        good = ended["status"] == "ok" and ended["worker"] == row["chosen"]
        count, n = expected.get(row["chosen"], (0, 0))
        expected[row["chosen"]] = (count + good, n + 1)
    found = {line.worker: (line.ok.count, line.ok.n) for line in success_by_tag(engine, tagged.project)}
    assert found == expected
    assert success_by_tag(engine, "no project") == () and duels(engine, tagged.project) == ()


def test_a_card_becomes_a_candidate_with_a_record(page, tagged, engine):
    page.run()
    page.text_area(key="card-text-atlas").set_value("Careful with sums and units. <b>Slow</b>.")
    page.text_input(key="card-reason-atlas").set_value("it learned units")
    button(page, "Make a candidate").click().run()
    assert not page.exception
    assert page.success[0].value.startswith("Candidate")
    with engine.connect() as connection:
        (newest, *_) = actions_of(connection, tagged.project)
        assert (newest.actor, newest.action, newest.reason) == ("ana", "card_draft", "it learned units")
        version = find_version(connection, newest.subject)
    assert version.state == "candidate"
    assert version.config["cards"] == {"atlas": "Careful with sums and units. <b>Slow</b>.", "brook": "Quick."}


def test_a_card_without_a_change_is_refused(page):
    page.run()
    button(page, "Make a candidate").click().run()
    assert page.error[0].value == "That was refused."
    assert page.code[-1].value == "card: this is the text that it has already" or any(
        "has already" in item.value for item in page.code
    )
