"""From log to log: probes of a sandbox world on record, a search over real HTTP, and what it leaves behind."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import psycopg
import pytest
from sqlalchemy import text

from harness.optimise.reading import read_full, read_traffic
from harness.optimise.release import last_window, open_certification, pool_epoch
from harness.optimise.run import Wish, chat_workers, run, start_of
from harness.routing.candidate import prompted_router
from pointsman.config import Settings, load_text
from pointsman.database.copy import copy_rows
from pointsman.database.engine import psycopg_url
from pointsman.errors import UserError
from pointsman.hashing import text_hash
from pointsman.identity import ensure_project
from pointsman.ids import content_id, id_at, new_id
from pointsman.promotion.certify import recheck
from pointsman.sandbox.serve import serving
from pointsman.sandbox.setup import toml_text
from pointsman.sandbox.tasks import tasks
from pointsman.sandbox.worker_program import WorkerProgram
from pointsman.sandbox.world import World
from pointsman.verifiers import verify

SEED, TASKS = 7, 200
BEGAN = datetime(2026, 5, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def sandbox():
    with serving(SEED) as url:
        yield url


@pytest.fixture
def config(sandbox):
    return load_text(toml_text(SEED, int(sandbox.rpartition(":")[2]), "nonsense"), "pointsman.toml")


@pytest.fixture
def project(engine, empty_database):
    with engine.begin() as connection:
        return ensure_project(connection, "default")


@pytest.fixture
def write(empty_database, project):
    def rows_of(by_table):
        with psycopg.connect(psycopg_url(empty_database)) as connection:
            for table, rows in by_table.items():
                copy_rows(connection, table, rows)

    return rows_of


@pytest.fixture
def search(config, engine, project, tmp_path):
    def made(**wish):
        settings = Settings.read(config=tmp_path / "pointsman.toml", environment={"POINTSMAN_HOME": str(tmp_path)})
        asked = Wish(**{"calls": 150, "seed": 2, **wish})
        return run(config, settings, engine, project, asked, tmp_path / "optimize", lambda stage: None)

    return made


def probed(config, project, *, first=0, origin="probe", names=None, score=None, body=None, key=None):
    """Full-information rows of the world's tasks: what its worker programs answer, marked by the verifiers."""
    from pointsman.sandbox.truth import truth

    programs = {w.name: WorkerProgram(w, SEED, truth(SEED).success[w.name]) for w in World(SEED).workers}
    endpoints = {worker.name: worker.endpoint_hash for worker in chat_workers(config)}
    rows: dict[str, list[dict[str, Any]]] = {"request": [], "decision": [], "call": [], "outcome": []}
    for n, task in enumerate(list(tasks(SEED, "train", first + TASKS))[first:]):
        at = BEGAN + timedelta(minutes=first + n)
        decision, request = id_at(at), id_at(at)
        common = {"project_id": project, "id": request, "received_at": at, "text_hash": text_hash(task.prompt)}
        rows["request"].append({**common, "text": task.prompt, "task": task.family, "body": body, "key_id": key})
        rows["decision"].append(
            {"id": decision, "project_id": project, "request_id": request, "origin": origin, "decided_at": at,
             "eligible": {}}
        )  # fmt: skip
        for name in names or endpoints:
            answer = programs[name].reply({"messages": [{"role": "user", "content": task.prompt}]}).text
            call = id_at(at)
            mark = verify(task.verifier, answer) if score is None else score
            here = {"project_id": project, "decision_id": decision, "worker": name, "status": "ok"}
            rows["call"].append(
                {**here, "id": call, "request_id": request, "endpoint_hash": endpoints[name], "purpose": "probe",
                 "started_at": at, "cost": "0.001"}
            )  # fmt: skip
            rows["outcome"].append(
                {**here, "id": call, "call_id": call, "origin": origin, "score": mark, "cost": "0.001", "ended_at": at}
            )
    return rows


def count(engine, query, **values):
    with engine.connect() as connection:
        return connection.execute(text(query), values).all()


def test_a_certified_winner_becomes_a_candidate_that_can_be_served(config, engine, project, write, search):
    write(probed(config, project))
    done = search(keep=True)
    assert done.report.verdict == "certified" and done.uncertified is None
    ((kind, state, config_row, parent),) = count(
        engine, "SELECT kind, state, config, parent_id FROM router_version WHERE id = :id", id=done.version
    )
    assert (kind, state) == ("harness", "candidate")
    router = prompted_router(config_row, lambda body: None, deadline=1.0, parent_id=str(parent))
    assert router.version.id == done.version and router.cards == dict(done.report.winner.cards)
    ((incumbent_state,),) = count(engine, "SELECT state FROM router_version WHERE id = :id", id=parent)
    assert incumbent_state == "draft"
    sources = dict(count(engine, "SELECT worker, max(source) FROM card GROUP BY worker"))
    assert set(sources.values()) == {"optimised"} and len(sources) == len(World(SEED).names)


def test_certificates_name_everything_that_computes_them_again(config, engine, project, write, search):
    write(probed(config, project))
    done = search()
    assert done.version is None
    claims = count(
        engine,
        "SELECT claim, alpha, numbers, data_hash, alpha_id, holds, window_start, window_end, pool_epoch,"
        " assumptions FROM certificate ORDER BY claim",
    )
    assert [row.claim for row in claims] == ["best_of_finalists", "better_than_incumbent", "oracle_of_pool"]
    rows = done.report.splits.certification
    assert all(row.data_hash == rows.hash and row.numbers["rows"] == [one.id for one in rows.rows] for row in claims)
    assert sum(row.alpha for row in claims) == pytest.approx(0.05 / 2 / 2)
    assert all(row.pool_epoch == pool_epoch(chat_workers(config)) and row.assumptions for row in claims)
    assert claims[0].window_end == BEGAN + timedelta(minutes=TASKS - 1)
    ((purpose, index, alpha, spent, opened),) = count(
        engine, "SELECT purpose, index, alpha, spent, data_hash FROM alpha_ledger WHERE id = :id", id=claims[0].alpha_id
    )
    assert (purpose, index, opened) == ("certification", 1, rows.hash)
    assert (alpha, spent) == (pytest.approx(0.0125), pytest.approx(0.0125))


def test_each_certificate_comes_out_again_from_the_log_without_a_router(config, engine, project, write, search):
    write(probed(config, project))
    done = search()
    with engine.begin() as connection:
        for identity in done.certificates:
            checked = recheck(connection, project, identity, BEGAN)
            assert (checked.holds, checked.faults, checked.remarks) == (True, (), ())
            assert checked.numbers["episodes"] == len(done.report.splits.certification)


def test_a_second_search_certifies_with_later_rows_and_less_error(config, engine, project, write, search):
    write(probed(config, project))
    first = search()
    again = search()
    assert again.report.verdict == "uncertified" and "0 fresh rows to certify with" in again.uncertified
    assert len(again.report.splits.train) > len(first.report.splits.train)
    write(probed(config, project, first=TASKS))
    third = search()
    assert third.report.certificate.alpha == pytest.approx(0.05 / 2 / 6)
    spent = {row.id for row in first.report.splits.certification.rows}
    assert not spent & {row.id for row in third.report.splits.certification.rows}
    assert [row.index for row in count(engine, "SELECT index FROM alpha_ledger ORDER BY index")] == [1, 2]


def test_a_set_is_opened_once(config, engine, project, toy):
    from harness.optimise.release import Place

    rows, place = toy.rows(60), Place(project, "epoch", new_id())
    version, other = content_id("a"), content_id("b")
    with engine.begin() as connection:
        opened = open_certification(connection, place, version, rows, BEGAN)
        assert open_certification(connection, place, version, rows, BEGAN) == opened
        with pytest.raises(UserError, match="was opened for another candidate and is spent"):
            open_certification(connection, place, other, rows, BEGAN)
        later = open_certification(connection, place, other, toy.rows(60, 2), BEGAN)
        elsewhere = open_certification(connection, replace(place, epoch="next"), other, toy.rows(60, 3), BEGAN)
        assert (opened.alpha, later.alpha, elsewhere.alpha) == pytest.approx((0.0125, 0.05 / 12, 0.0125))
        assert last_window(connection, project) is None


def test_what_rows_say_around_the_ask(config, engine, project, write):
    key = new_id()
    body = {
        "model": "pointsman",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "ignored"}],
    }
    made = probed(config, project, body=body, key=key)
    made = {
        table: rows[: 3 if table in ("request", "decision") else 3 * len(World(SEED).names)]
        for table, rows in made.items()
    }
    traffic = {
        "id": new_id(),
        "project_id": project,
        "request_id": made["request"][0]["id"],
        "decided_at": BEGAN,
        "eligible": {},
    }
    word = {
        "project_id": project,
        "metric": "comment",
        "source": "person",
        "created_at": BEGAN,
        "decision_id": traffic["id"],
    }
    made["decision"].append(traffic)
    made["feedback"] = [
        {**word, "id": new_id(), "comment": "too long", "key_id": key},
        {**word, "id": new_id(), "comment": "taken back", "retracted": True},
    ]
    write(made)
    with engine.connect() as connection:
        read = read_full(connection, project, chat_workers(config), ("probe",))
    first = read.rows.rows[0]
    assert "Be brief." in first.ask.context
    assert (first.key, [c.text for c in first.comments]) == (key, ["too long"])
    assert first.task == made["request"][0]["task"] and len(read.rows) == 3


def test_rows_that_lack_a_worker_are_left_out_and_counted(config, engine, project, write):
    names = World(SEED).names
    whole, part = probed(config, project), probed(config, project, first=TASKS, names=names[:2])
    write(whole)
    write(part)
    with engine.connect() as connection:
        read = read_full(connection, project, chat_workers(config), ("probe",))
        assert len(read.rows) == TASKS
        assert read.left_out == {"not every worker has a reward, or the text is not stored": TASKS}
        with pytest.raises(UserError, match=f"no full-information rows of {', '.join(names)} at the present endpoint"):
            read_full(connection, project, chat_workers(config), ("audit",))


def test_recorded_answers_are_taken_by_name(config, engine, project, write):
    rows = probed(config, project, origin="replay")
    for call in rows["call"]:
        call["endpoint_hash"] = f"recorded-{call['worker']}"
    write(rows)
    with engine.connect() as connection:
        assert len(read_full(connection, project, chat_workers(config), ("replay",)).rows) == TASKS
        with pytest.raises(UserError, match="at the present endpoint"):
            read_full(connection, project, chat_workers(config), ("probe",))


def test_traffic_gives_pseudo_outcomes_and_no_certificate(config, engine, project, write, search):
    from pointsman.rewards.spec import spec_of
    from pointsman.rewards.store import save_spec

    names, rng = list(World(SEED).names), np.random.default_rng(1)
    with engine.begin() as connection:
        spec = save_spec(connection, spec_of(config), BEGAN)
    rows = probed(config, project)
    marks = {(o["decision_id"], o["worker"]): o["score"] for o in rows["outcome"]}
    decisions, rewards = [], []
    for decision in rows["decision"]:
        p = rng.dirichlet(np.ones(len(names)))
        chosen = str(rng.choice(names, p=p))
        decisions.append(
            {
                **decision,
                "origin": "traffic",
                "chosen": chosen,
                "probabilities": dict(zip(names, map(float, p), strict=True)),
            }
        )
        rewards.append({
            "spec_hash": spec, "outcome_id": decision["id"], "project_id": project, "decision_id": decision["id"],
            "origin": "traffic", "arm": chosen, "value": marks[decision["id"], chosen], "source": "verifier",
            "terms": {}, "computed_at": BEGAN,
        })  # fmt: skip
    decisions[0]["forced"], decisions[1]["probabilities"] = "direct", {names[0]: 1.0}
    write({"request": rows["request"], "decision": decisions})
    _insert(engine, rewards)
    with engine.connect() as connection:
        read = read_traffic(connection, project, chat_workers(config), spec, np.random.default_rng(2))
    assert len(read.rows) == TASKS - 2 and read.rows.basis == "dr"
    assert read.left_out == {"a worker could not have had it, or would not": 1}
    done = search(origins=())
    assert done.report.certificate is None
    assert done.uncertified is None or "certify nothing" in done.uncertified


def _insert(engine, rewards):
    from pointsman.tables import METADATA

    with engine.begin() as connection:
        connection.execute(METADATA.tables["reward"].insert(), rewards)


def test_what_a_search_lacks_is_said(config, search, project, tmp_path, sandbox):
    port = int(sandbox.rpartition(":")[2])
    with pytest.raises(
        UserError, match=r"no full-information rows of .* run `pointsman probe` or `pointsman audit` first"
    ):
        search()
    without = load_text(toml_text(SEED, port).replace('model = "stand-in-router"\n', "", 1).replace(
        f'base_url = "http://127.0.0.1:{port}/v1"\n', "", 1), "pointsman.toml")  # fmt: skip
    from harness.optimise.run import router_llm

    with pytest.raises(UserError, match="a search needs the router LLM"):
        router_llm(without)
    workers = chat_workers(config)
    cards = tmp_path / "cards.json"
    cards.write_text(json.dumps({workers[0].name: "Sums."}))
    assert start_of(config, workers, cards).cards[workers[0].name] == "Sums."
    cards.write_text(json.dumps({"nobody": "Sums."}))
    with pytest.raises(UserError, match="no such workers: nobody"):
        start_of(config, workers, cards)
    cards.write_text("[]")
    with pytest.raises(UserError, match="expected an object from worker to card"):
        start_of(config, workers, cards)


def test_reflection_needs_a_worker_that_is_there(config, project, write, search):
    write(probed(config, project))
    with pytest.raises(UserError, match="--reflect: no worker 'nobody'; the configuration has"):
        search(reflect="nobody")
    with pytest.raises(UserError, match="--mipro writes instructions with a language model"):
        search(mipro=True)


def test_any_worker_can_reflect(config, project, write, search):
    write(probed(config, project))
    # A sandbox worker only solves exercises: its texts are none, and the search ends well without them.
    done = search(reflect=World(SEED).names[0], calls=400)
    assert done.report.spent.reflections > 0
    assert done.report.verdict in ("certified", "not_certified")
