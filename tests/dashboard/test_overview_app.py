"""The overview page over a real log: its figures are the log's, and it explains what it cannot show."""

from __future__ import annotations

import pytest

from dashboard.words import dollars, percent
from pointsman.queries import Proportion

BANNER = "Simulated workers: this pool is the sandbox; nothing here is a claim about real models."


@pytest.fixture
def shown(overview_app, configure, log, database_url):
    configure(database_url)
    return overview_app.run()


def metrics(app):
    return {metric.label: (metric.value, metric.delta) for metric in app.metric}


def test_key_figures_of_the_whole_log(shown, log):
    shown.segmented_control(key="range").set_value("All").run()
    assert not shown.exception
    figures = metrics(shown)
    outcomes = log.rows["outcome"]
    ok = sum(row["status"] == "ok" for row in outcomes)
    cost = sum(row["cost"] for row in outcomes if row["cost"] is not None)
    unknown = sum(row["cost"] is None for row in outcomes)
    assert figures["Decisions"] == ("300", "100 episodes")
    assert figures["Success"] == (percent(Proportion(ok, 300)), "n = 300")
    assert figures["Cost, USD"] == (dollars(cost), f"n = {300 - unknown} of 300")
    assert figures["Latency, p95"][1] == "n = 300"
    explored = sum(row["explored"] for row in log.decisions)
    assert figures["Explored"] == (percent(explored / 300), f"{explored} of 300")


def test_a_shorter_range_counts_less(shown):
    assert metrics(shown)["Decisions"][0] in ("49", "50")
    shown.segmented_control(key="range").set_value("Last hour").run()
    assert metrics(shown)["Decisions"][0] in ("2", "3")


def test_the_table_of_workers_has_intervals_and_names_unknown_costs(shown):
    shown.segmented_control(key="range").set_value("All").run()
    table = shown.dataframe[0].value.set_index("Worker")
    assert set(table.index) == {"atlas", "brook", "cinder"}
    assert table["Chosen"].sum() == 300
    assert table["95% interval"].str.fullmatch(r"\d+ to \d+ %").all()
    assert table.loc["cinder", "Cost"].endswith("unknown")
    assert table.loc["atlas", "Cost"].startswith("$")


def test_no_banner_without_a_sandbox(app, configure, log, database_url):
    configure(database_url)
    app.run()
    assert app.title[0].value == "Overview"
    assert [warning.value for warning in app.warning] == []


def test_the_sandbox_is_named_as_such(app, configure, log, database_url):
    configure(database_url, "[sandbox]\nseed = 1")
    assert [warning.value for warning in app.run().warning] == [BANNER]


def test_a_database_that_is_away_is_explained(app, configure, tmp_path):
    configure(f"postgresql://nobody@/none?host={tmp_path}")
    app.run()
    assert not app.exception
    assert [error.value for error in app.error] == ["The database does not answer."]
    assert "`[database] url`" in " ".join(text.value for text in app.markdown)
    assert "No such file" in app.code[0].value


def test_a_broken_configuration_is_shown_by_its_lines(app, configure, database_url):
    configure(database_url, "[gateway]\nprot = 1")
    app.run()
    assert [error.value for error in app.error] == ["The configuration cannot be read."]
    assert "gateway.prot: no such key" in app.code[0].value
