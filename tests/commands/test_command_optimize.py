"""`pointsman optimize` as a person runs it: its help, its refusals, its result, and as a job's parameters."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest
from typer.testing import CliRunner

from harness.optimise.job import wish_of
from pointsman.errors import UserError
from pointsman.jobs.kinds import KINDS, parse_params


def test_parameters_become_a_wish():
    params = parse_params("optimize", {"run": "tasks", "origins": ["probe"], "calls": 50, "promote_as_candidate": True})
    wish = wish_of(params, Decimal(2))
    assert (wish.origins, wish.tags, wish.calls, wish.money, wish.keep) == (
        ("probe",),
        ("probe:tasks",),
        50,
        Decimal(2),
        True,
    )
    assert wish_of(parse_params("optimize", {"origins": ["traffic"]}), None).origins == ()
    assert wish_of(parse_params("optimize", {}), None).origins == ("probe", "audit")


def test_wrong_parameters_are_named():
    with pytest.raises(
        UserError, match=r"params.origins: expected a list of texts out of probe, audit, replay, traffic"
    ):
        parse_params("optimize", {"origins": ["rumour"]})
    with pytest.raises(UserError, match=r"params.calls: expected a whole number from 1"):
        parse_params("optimize", {"calls": 0})
    with pytest.raises(UserError, match="traffic gives pseudo-outcomes and cannot be mixed"):
        wish_of(parse_params("optimize", {"origins": ["traffic", "probe"]}), None)


def test_the_kind_says_what_it_may_take():
    kind = KINDS["optimize"]
    assert (kind.extra, kind.stages) == ("optimize", ("search",))
    from pointsman.jobs.kinds import estimate

    assert estimate("optimize", {"calls": 70}).basis.startswith("at most 70 router calls")


@pytest.fixture
def invoke(tmp_path):
    from pointsman.commands.app import build_app

    def run(*arguments):
        environment = {"POINTSMAN_HOME": str(tmp_path), "POINTSMAN_CONFIG": "", "COLUMNS": "200"}
        return CliRunner().invoke(build_app(), ["optimize", *arguments], env=environment)

    return run


def test_help_and_mistakes(invoke, tmp_path):
    shown = invoke("--help")
    assert shown.exit_code == 0 and "Search for cards by which the router chooses better" in shown.output
    file = tmp_path / "pointsman.toml"
    file.write_text('[[workers]]\nname = "a"\ndescription = "A."\nmodel = "m"\nbase_url = "http://127.0.0.1:1/v1"\n')
    both = invoke("--config", str(file), "--tasks", "t.jsonl", "--from-log")
    assert both.exit_code == 2 and "--tasks and --from-log: name one of them" in both.output
    odd = invoke("--config", str(file), "--origin", "rumour")
    assert odd.exit_code == 2 and "params.origins" in odd.output
    job = invoke("--config", str(file), "--job", "--start-cards", "c.json")
    assert job.exit_code == 2 and "a job starts from the cards of the configuration" in job.output


def test_the_result_is_told_in_plain_lines():
    from harness.optimise.telling import lines

    result = json.loads(RESULT)
    said = "\n".join(lines(result))
    assert said.startswith("A set that looked better was found; the certification rows could not show that it is.")
    assert "better_than_incumbent: not shown to be better  [α = 0.00625]" in said
    assert "  small: Strong at sums." in said and "left out: 3 rows (no text)" in said
    assert "stopped by the limit on money" in said and "2.0% of the router's replies could not be used" in said
    assert "WARNING: not shown to be better than sending everything to big: -0.0200 [-0.0500, +0.0100]" in said
    assert "0.99" not in said  # the validation score


RESULT = """
{"verdict": "not_certified", "winner": {"id": "w", "origin": "written", "cards": {"small": "Strong at sums."}},
 "start": "s", "not_certified_because": null, "router_version": null, "unusable_replies": 0.02,
 "certificate": {"rows": 60, "episodes": 60,
                 "beside": {"worker": "big", "difference": -0.02, "low": -0.05, "high": 0.01},
                 "statements": [{"claim": "better_than_incumbent", "said": "not shown to be better",
                                 "alpha": 0.00625}]},
 "finalists": [{"id": "w", "validation_score_not_quality": 0.99}], "lineage": [{"id": "w"}],
 "rows": {"train": 100, "validation": 40, "certification": 60}, "rows_left_out": {"no text": 3},
 "search": {"router_calls": 9, "reflection_calls": 0, "money_usd": "0.1", "stopped_by": "money"},
 "certification": {"router_calls": 4}}
"""
