"""Limits on the command line: made with a key, listed with what was spent, changed, removed."""

from __future__ import annotations

import asyncio
import json
from decimal import Decimal

import pytest

from pointsman.budgets import Ledger, Store


@pytest.fixture
def file(database_url, config, empty_database):
    return config(f'[database]\nurl = "{database_url}"\n')


@pytest.fixture
def key_id(run, file):
    made = run(
        "keys", "create", "--budget", "$5", "--period", "month", "--requests-per-minute", "60",
        "--tokens-per-minute", "100000", "--json",
    )  # fmt: skip
    assert made.exit_code == 0
    content = json.loads(made.stdout)
    [budget] = content["budgets"]
    assert (budget["period"], Decimal(budget["limit_usd"]), Decimal(budget["spent_usd"])) == ("month", 5, 0)
    assert (budget["requests_per_minute"], budget["tokens_per_minute"]) == (60, 100_000)
    return content["id"]


def test_a_list_says_what_was_spent_of_it(run, key_id, engine):
    ledger = Ledger(Store(engine, "gateway"))
    assert asyncio.run(ledger.refresh())
    own = ledger.catalogue.budgets
    ledger.take(own, Decimal("1.5")).settle(Decimal("1.25"))
    asyncio.run(ledger.refresh())
    listed = run("keys", "list").stdout
    assert "    spent $1.25 of $5.00 a month, resets " in listed
    assert " UTC; 60 requests a minute; 100000 tokens a minute\n" in listed
    [row] = json.loads(run("keys", "list", "--json").stdout)
    assert Decimal(row["budgets"][0]["spent_usd"]) == Decimal("1.25")


def test_a_budget_is_changed_limit_by_limit(run, key_id):
    changed = run("keys", "budget", key_id, "--budget", "20", "--period", "month")
    assert changed.exit_code == 0
    assert changed.stdout.startswith("spent $0.00 of $20.00 a month, resets ")
    assert changed.stdout.endswith(" UTC; 60 requests a minute; 100000 tokens a minute\n")
    assert run("keys", "budget", key_id).stdout == changed.stdout
    second = run("keys", "budget", key_id, "--budget", "100", "--period", "total").stdout.splitlines()
    assert second[1:] == ["spent $0.00 of $100.00 in all"]
    assert run("keys", "budget", key_id, "--remove").stdout == "no limits\n"
    assert json.loads(run("keys", "budget", key_id, "--json").stdout) == []


def test_a_key_without_limits_has_none(run, file):
    made = json.loads(run("keys", "create", "--json").stdout)
    assert made["budgets"] == []
    assert run("keys", "budget", made["id"]).stdout == "no limits\n"
    assert "spent" not in run("keys", "list").stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--budget", "five"], "--budget: expected an amount of USD, such as 5 or 0.50, got 'five'"),
        (["--budget", "-1"], "limit_usd: expected a number from 0 to 2000000000, got -1"),
        (["--budget", "NaN"], "limit_usd: expected a number from 0 to 2000000000, got NaN"),
        (["--period", "week"], "--period: expected one of day, month, total, got 'week'"),
        (["--requests-per-minute", "0"], "requests_per_minute: expected a number from 1 to 2000000000, got 0"),
    ],
)
def test_mistakes_are_said_and_nothing_is_made(run, file, options, message):
    result = run("keys", "create", *options)
    assert (result.exit_code, result.stderr) == (2, f"{message}\n")
    assert run("keys", "list").stdout.startswith("no keys")


def test_a_key_that_is_not_there(run, file):
    unknown = "0198c5a2-3f10-7c1e-9a53-0242ac120002"
    result = run("keys", "budget", unknown, "--budget", "1")
    assert result.exit_code == 2
    assert result.stderr == f"no key has the id '{unknown}'; `pointsman keys list` shows them\n"
    pasted = run("keys", "budget", "pm_a-whole-key-pasted-by-mistake")
    assert pasted.exit_code == 2 and "pasted" not in pasted.stderr
    assert run("keys", "budget", unknown, "--remove", "--budget", "1").exit_code == 2


def test_a_project_has_a_budget_of_its_own(run, key_id):
    done = run("keys", "budget", "--project", "default", "--budget", "1000", "--period", "total")
    assert (done.exit_code, done.stdout) == (0, "spent $0.00 of $1000.00 in all\n")
    listed = run("keys", "list").stdout
    assert listed.endswith("the whole of project default: spent $0.00 of $1000.00 in all\n")
    assert run("keys", "budget", "--project", "default", "--remove").stdout == "no limits\n"
    assert "spent $0.00 of $5.00 a month" in run("keys", "budget", key_id).stdout
    both = run("keys", "budget", key_id, "--project", "default")
    assert (both.exit_code, both.stderr) == (2, "expected either a key's ID or --project, and not both\n")
