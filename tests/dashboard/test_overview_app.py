"""The overview page over a real log: its figures are the log's, and it explains what it cannot show."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from dashboard.parts.now import budget_line, gateway_lines
from dashboard.words import dollars, percent
from pointsman.queries import Proportion
from pointsman.queries.spending import BudgetLine

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


def test_what_routing_saved_has_an_interval_and_says_against_whom(shown):
    shown.segmented_control(key="range").set_value("All").run()
    assert shown.selectbox(key="against").value == "atlas"  # the dearest
    figures = metrics(shown)
    saved, (bounds, n) = float(figures["Saved, USD"][0].strip("$")), figures["95% interval, USD"]
    low, high = (float(part.replace("−", "-").replace("$", "")) for part in bounds.split(" to "))
    assert low < saved < high
    assert n.endswith("drawn decisions")
    shown.selectbox(key="against").set_value("cinder").run()  # it has no price
    assert "Saved, USD" not in metrics(shown)
    assert any("Too little to say" in text.value for text in shown.caption)


def test_the_time_before_stands_below_each_figure(shown, log):
    shown.toggle(key="compare").set_value(True).run()
    assert not shown.exception
    below = metrics(shown)["Decisions"][1]
    assert below in ("before: 50 (17 episodes)", "before: 50 (18 episodes)")
    shown.segmented_control(key="range").set_value("All").run()
    assert shown.toggle(key="compare").disabled
    assert not metrics(shown)["Decisions"][1].startswith("before")


def test_patterns_and_router_versions_have_their_charts(shown):
    shown.segmented_control(key="range").set_value("All").run()
    headings = [item.value for item in shown.subheader]
    assert "Patterns" in headings and "Router versions" in headings


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({"workers": {"a_b": "unhealthy", "c": "ok"}}, r"a\_b: the breaker keeps it out"),
        ({"database": "away"}, "does not reach the database"),
        ({"journal": {"waiting_bytes": 90, "limit_bytes": 100, "waiting_lines": 7}}, "7 lines wait, 90.0 %"),
        ({"journal": {"rows_lost": 3}}, "3 rows were lost"),
    ],
)
def test_what_the_gateway_says_is_wrong(told, said):
    (line,) = gateway_lines(told)
    assert said in line


def test_nothing_wrong_is_nothing_said():
    assert gateway_lines({"workers": {"a": "ok"}, "database": "ok", "journal": {"waiting_bytes": 1}}) == []


def test_a_budget_is_named_when_it_is_nearly_spent():
    half = BudgetLine("main", None, "day", Decimal(1), Decimal(2))
    assert budget_line(half) is None
    assert "$1.90 of \\$2.00 spent this day (95.0 %)" in budget_line(replace(half, spent=Decimal("1.9")))
