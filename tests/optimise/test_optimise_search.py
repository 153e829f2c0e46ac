"""A whole search on the toy pool, with the sandbox's stand-in router: it finds, certifies, stops, and goes on."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest

from harness.optimise.budget import Budget
from harness.optimise.build import RouterLlm
from harness.optimise.candidate import Candidate
from harness.optimise.optimise import Reflection, Setting, optimise
from harness.optimise.report import NOT_QUALITY
from harness.optimise.rows import Rows, split
from harness.optimise.search import Plan
from harness.optimise.telling import lines
from harness.routing.template import default_template
from pointsman.errors import UpstreamError
from pointsman.pool import Price

INSTRUCTIONS = default_template().instructions
LLM = RouterLlm("stand-in", price=Price(Decimal(1), Decimal(1), Decimal(1)))


@pytest.fixture
def search(toy, stand_in, runner):
    def run(cards=None, rows=None, open_set=None, lm=None, **changes):
        settings = {"budget": Budget(calls=260), "plan": Plan(seed=3), **changes}
        setting = Setting(LLM, default="basalt-pro", clock=lambda: 0.0, **settings)
        start = Candidate(cards or toy.poor, INSTRUCTIONS)
        return optimise(
            split(rows or toy.rows(200)), start, toy.workers, lm or stand_in, setting, runner, open_set=open_set
        )

    return run


def test_poor_cards_are_replaced_and_the_certificate_says_by_how_much(search, stand_in):
    report = search()
    assert report.verdict == "certified"
    better, near, oracle = report.certificate.statements
    assert better.claim == "better_than_incumbent" and better.numbers["low"] > 0.1
    assert near.numbers["epsilon"] < 0.3 and oracle.numbers["epsilon"] < 0.5
    assert better.alpha == pytest.approx(0.00625) and near.alpha == oracle.alpha == pytest.approx(0.003125)
    # Poor cards route by chance (0.52); the experts are right 95 times in 100.
    assert better.numbers["difference"] > 0.3
    assert report.spent.calls <= 260
    assert report.spent.calls + report.certification.calls == len(stand_in.asked)
    assert report.spent.money == report.spent.calls * Decimal("0.00011")


def test_the_report_has_lineage_and_shows_no_validation_score_as_quality(search):
    report = search()
    told = report.as_dict()
    json.dumps(told)
    assert told["note"] == NOT_QUALITY
    assert all("validation_score_not_quality" in one for one in told["finalists"])
    by_id = {one["id"]: one for one in told["lineage"]}
    assert by_id[told["winner"]["id"]]["parent"] in by_id
    assert by_id[told["start"]]["origin"] == "start"
    said = "\n".join(lines({**told, "rows_left_out": {}}))
    assert "certified" in said and "0.9" not in said.split("Winner")[0].split("certified.")[0]
    assert "validation_score" not in said


def test_good_cards_stay_and_no_certification_set_is_opened(search, toy):
    opened = []
    report = search(cards=toy.good, open_set=lambda winner, rows: opened.append(winner) or 0.01)
    assert report.verdict == "nothing_better" and report.winner.cards == toy.good
    assert opened == [] and report.certification.calls == 0 and report.certificate is None


def test_a_set_that_stays_closed_certifies_nothing(search):
    report = search(open_set=lambda winner, rows: None)
    assert report.verdict == "uncertified" and report.certification.calls == 0


def test_certification_rows_are_not_asked_before_the_set_is_opened(search, toy, stand_in):
    rows = toy.rows(200)
    late = {row.ask.text for row in split(rows).certification.rows}
    at_opening = []

    def open_set(winner, certified):
        asked = " ".join(body["messages"][-1]["content"] for body in stand_in.asked)
        at_opening.extend(text for text in late if json.dumps(text) in asked)
        assert {row.ask.text for row in certified.rows} == late
        return 0.01

    assert search(rows=rows, open_set=open_set).certificate.alpha == 0.01
    assert at_opening == []


def test_the_same_seed_takes_the_same_steps(search):
    one, other = search(), search()
    assert [c.id for c in one.found.candidates] == [c.id for c in other.found.candidates]
    assert one.certificate == other.certificate


def test_a_search_that_was_cut_off_goes_on_where_it_stopped(search, stand_in, tmp_path):
    whole = search(folder=tmp_path / "whole")
    asked = len(stand_in.asked)
    stand_in.asked.clear()
    stand_in.fail_after, stand_in.error = 100, UpstreamError("auth", "the key was revoked")
    with pytest.raises(UpstreamError, match="the key was revoked"):
        search(folder=tmp_path / "cut")
    stand_in.fail_after = None
    again = search(folder=tmp_path / "cut")
    assert len(stand_in.asked) == asked
    assert again.certificate == whole.certificate and again.spent.calls == whole.spent.calls
    state = json.loads(next((tmp_path / "cut").glob("*/state.json")).read_text())
    assert state["stage"] == "done" and state["spent"]["router_calls"] == whole.spent.calls
    assert {one["origin"] for one in state["candidates"]} >= {"start", "written: 8 terms, precision 0.5, tolerance 0.1"}


@pytest.mark.parametrize("calls", [1, 30, 90])
def test_a_small_budget_is_kept_and_ends_in_an_answer(search, calls):
    report = search(budget=Budget(calls=calls))
    assert report.spent.calls <= calls
    assert report.verdict in ("nothing_better", "certified", "not_certified")


def test_a_limit_on_money_stops_it_and_what_is_known_decides(search):
    report = search(budget=Budget(calls=None, money=Decimal("0.02")))
    assert report.found.stopped == "money"
    assert Decimal("0.02") <= report.spent.money < Decimal("0.021")
    assert report.found.better


def test_costs_count_where_a_dollar_is_worth_something(search, toy):
    rows = toy.rows(200)
    costs = np.tile([0.001, 0.001, 0.5], (200, 1))
    dear = Rows(rows.workers, rows.rows, rows.rewards, costs)
    cards = search(rows=dear, trade_off=2.0).winner.cards
    assert "weekday" not in cards["cobalt-mini"].lower() and "leap" not in cards["cobalt-mini"].lower()


def test_pseudo_outcomes_search_and_certify_nothing(search, toy):
    rows = replace(toy.rows(200), basis="dr")
    with pytest.raises(Exception, match="a certificate needs rows that every worker answered"):
        search(rows=rows)
    assert search(rows=rows, open_set=lambda winner, rows: None).verdict == "uncertified"


def test_a_reflection_model_rewrites_cards_and_is_counted(search, toy):
    class Writing:
        calls = 0

        async def __call__(self, body):
            Writing.calls += 1
            card = (
                toy.good["amber-7b"] if "instructions of a router" not in body["messages"][0]["content"] else "Choose."
            )
            return {"choices": [{"message": {"content": f"<text>{card}</text>"}}], "usage": {}}

    report = search(reflection=Reflection(Writing(), "writer"))
    assert report.spent.reflections >= 1 and Writing.calls >= 1
    assert report.spent.calls <= 260


def test_demonstrations_and_brief_instructions_join_the_finals(search):
    report = search(plan=Plan(seed=3, demonstrations=2), brief_instructions=True, budget=Budget(calls=300))
    origins = {one.origin for one in report.found.candidates}
    assert "demonstrations: 2" in origins and "scoring: structured" in origins
    assert "hand-written: brief instructions" in origins
