"""What a change of the workers would do, on a log whose every number is known."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import insert
from typer.testing import CliRunner

from pointsman.commands.app import build_app
from pointsman.errors import UserError
from pointsman.flywheel.pool_change import Foretold, foretell
from pointsman.ids import id_at, new_id
from pointsman.pool import Price
from pointsman.tables import METADATA

TWO = {"alpha": 1.0, "beta": 0.5}
OTHER = {"alpha": 0.2, "beta": 0.5}


@pytest.fixture
def told(synthetic: Callable[..., Any]) -> Callable[..., Foretold]:
    """A log of 30 decisions for alpha and 10 for beta; 20 of alpha's were audited: 1 for alpha, .4 for beta."""
    log_ = synthetic()
    for number in range(30):
        decision = log_.decision(None, "incumbent", scores=TWO)
        if number < 20:
            request = next(row["request_id"] for row in log_.rows["decision"] if row["id"] == decision)
            log_.asked("audit", {"alpha": 1.0, "beta": 0.4 + 0.01 * (number % 2)}, request)
    for _ in range(10):
        log_.decision(None, "candidate", scores=OTHER)
    log_.decision(None, "candidate", scores=TWO, forced="direct")
    log_.flush()

    def ask(*arguments: Any, **more: Any) -> Foretold:
        with log_.engine.connect() as connection:
            return foretell(connection, log_.project, *arguments, **more)

    return ask


def test_a_removed_workers_traffic_goes_to_the_next_of_the_same_scores(told: Callable[..., Foretold]) -> None:
    found = told("remove", "alpha")
    assert (found.decisions, found.moved, found.to, found.stranded) == (40, 30, {"beta": 30}, 0)
    assert found.share is not None and found.share[0] == 0.75 and found.share[1] < 0.75 < found.share[2]
    assert found.value is not None
    assert (found.value.rows, found.value.before) == (20, 1.0)
    assert found.value.difference == pytest.approx(-0.595) and found.value.high < -0.59
    assert told("remove", "beta").moved == 10


def test_a_worker_that_is_alone_strands_its_requests(synthetic: Callable[..., Any]) -> None:
    log_ = synthetic()
    log_.decision(None, "incumbent", scores={"alpha": 1.0})
    log_.flush()
    with log_.engine.connect() as connection:
        found = foretell(connection, log_.project, "remove", "alpha")
    assert found.stranded == 1 and any("they would be refused" in note for note in found.notes)
    assert found.value is None and any("pointsman audit" in note for note in found.notes)


def test_a_new_version_says_what_is_lost_and_a_new_worker_what_reaches_it(told: Callable[..., Foretold]) -> None:
    assert told("reversion", "alpha").answers_lost == 20  # the audits' calls
    added = told("add", "gamma", epsilon=0.3)
    assert added.moved == 4 and "10.00% of the requests" in added.notes[0]  # .3 / 3 of 40


def test_a_new_price_changes_money_and_no_choice(synthetic: Callable[..., Any]) -> None:
    log_ = synthetic()
    decision = log_.decision(None, "incumbent", scores=TWO)
    log_.flush()
    call = {
        "id": id_at(log_.clock), "project_id": log_.project, "decision_id": decision, "worker": "alpha",
        "purpose": "serve", "status": "ok", "started_at": log_.clock, "input_tokens": 1_000_000, "cached_tokens": 0,
        "output_tokens": 500_000, "cost": Decimal("2"),
    }  # fmt: skip
    with log_.engine.begin() as connection:
        connection.execute(insert(METADATA.tables["call"]).values(call))
        price = Price(Decimal("0.5"), Decimal("1"), Decimal("0.5"))
        found = foretell(connection, log_.project, "reprice", "alpha", price=price)
    assert (found.cost_before, found.cost_after) == (Decimal(2), Decimal(1))


def test_what_cannot_be_answered_is_said(told: Callable[..., Foretold], engine: Any) -> None:
    with pytest.raises(UserError, match="those that could be chosen: alpha, beta"):
        told("remove", "gamma")
    with pytest.raises(UserError, match="is a worker of the log already"):
        told("add", "alpha")
    with pytest.raises(UserError, match="a new price is needed"):
        told("reprice", "alpha")
    with engine.connect() as connection, pytest.raises(UserError, match="no decision with scores"):
        foretell(connection, new_id(), "remove", "alpha")


def test_the_command_says_it_in_words_and_in_json(
    told: Callable[..., Foretold], database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POINTSMAN_HOME", str(tmp_path))
    file = tmp_path / "pointsman.toml"
    file.write_text(
        f'[database]\nurl = "{database_url}"\n[router]\nchain = ["default"]\n'
        '[[workers]]\nname = "alpha"\ndescription = "a"\nmodel = "m"\nbase_url = "http://127.0.0.1:9/v1"\n'
    )
    run = CliRunner().invoke
    base = ["simulate", "pool-change", "--config", str(file), "--days", "3650"]
    said = run(build_app(()), [*base, "--remove", "alpha"], env=dict(os.environ))
    assert said.exit_code == 0, said.output
    assert "30 of them chose it first: 75.0%" in said.output and "30 would go to beta" in said.output
    value = json.loads(run(build_app(()), [*base, "--remove", "alpha", "--json"]).output)
    assert value["moved"] == 30 and value["value"]["rows"] == 20
    both = run(build_app(()), [*base, "--remove", "alpha", "--add", "x"])
    assert both.exit_code == 2
