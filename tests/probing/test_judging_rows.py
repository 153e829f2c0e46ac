"""A judge asked about answers in the log: only what it may see, once, and within its budget."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from pointsman.config import load_text
from pointsman.judge.judging import JudgeSpec
from pointsman.pool import Pool
from pointsman.probing.judging import judge_rows
from pointsman.rewards.compute import Window, compute_rewards
from pointsman.rewards.spec import RewardSpec
from pointsman.upstream.direct import Direct

OPEN = {"alpha": None, "beta": None, "gamma": None}


@pytest.fixture
def judging(here, log):
    pool = Pool.of(here.config)

    async def run(mode="grade", worker="gamma", **options):
        spec = JudgeSpec(pool.by_name[worker], mode)
        async with Direct(here.config, lambda name: None) as asks:
            return await judge_rows(spec, asks=asks, engine=here.engine, pool=pool, project_id=log.project, **options)

    return run


def grades(fake, by_answer):
    """Grades by the quoted answer; says nonsense to any other."""

    async def behave(call):
        prompt = call.json["messages"][0]["content"]
        line = next(line for line in prompt.splitlines() if line.startswith("Answer: "))
        grade = by_answer.get(json.loads(line.removeprefix("Answer: ")))
        content = "no idea" if grade is None else json.dumps({"grade": grade})
        await fake.reply(fake.completion(content))(call)

    return behave


async def test_audited_answers_are_scored_once(here, log, judging, upstream, fake):
    upstream.script("m-gamma", grades(fake, {"alpha says": 5, "beta says": 2}))
    row = log.full(origin="audit", text="canary question", eligible=OPEN, cells=[("alpha", 0, {}), ("beta", 0, {})])
    failed = [("alpha", 0, {"status": "timeout"}), ("gamma", 0, {})]
    log.full(1, origin="audit", text="another", eligible=OPEN, cells=failed)
    done = await judging()
    assert (done.rows, done.scored, done.unread, done.stopped) == (2, 2, 1, None)
    assert len(upstream.calls) == 3 and all(call.json["model"] == "m-gamma" for call in upstream.calls)
    scores = here.sql("SELECT * FROM judge_score WHERE decision_id = :id ORDER BY worker", id=row)
    assert [(s.worker, s.score, s.judge_worker, s.mode) for s in scores] == [
        ("alpha", 1.0, "gamma", "grade"), ("beta", 0.25, "gamma", "grade"),
    ]  # fmt: skip
    calls = here.sql("SELECT id, completion, worker FROM call WHERE purpose = 'judge' AND decision_id = :id", id=row)
    assert sorted(str(call.id) for call in calls) == sorted(i for s in scores for i in s.detail["calls"])
    assert {call.worker for call in calls} == {"gamma"}
    again = await judging()
    assert (again.rows, len(upstream.calls)) == (0, 3)  # what could not be read is not asked for again either
    other = await judging(worker="alpha")
    assert other.rows == 2  # another judge


async def test_a_judge_sees_only_what_it_may_answer(here, log, judging, upstream):
    log.full(origin="audit", text="x", eligible={**OPEN, "gamma": "excluded"}, cells=[("alpha", 0, {})])
    log.full(1, origin="audit", text="y", eligible={"alpha": None}, cells=[("alpha", 0, {})])
    log.full(2, origin="audit", text="z", eligible=OPEN, learn=False, cells=[("alpha", 0, {})])
    done = await judging()
    assert (done.rows, done.left_out, upstream.calls) == (0, {"judge_not_eligible": 2}, [])
    log.full(3, origin="audit", text="ill then", eligible={**OPEN, "gamma": "unhealthy"}, cells=[("alpha", 0, {})])
    log.full(4, origin="probe", text="ours", eligible={"alpha": None}, cells=[("alpha", 0, {})])
    assert (await judging()).rows == 2


async def test_verified_answers_are_judged_only_to_calibrate(log, judging, upstream):
    log.full(eligible=OPEN, text="x", cells=[("alpha", 0, {"score": 1.0})])
    assert (await judging()).rows == 0
    assert (await judging(include_verified=True)).rows == 1


async def test_served_answers_can_be_judged_and_give_rewards(here, log, judging, upstream, fake):
    upstream.script("m-gamma", grades(fake, {"served": 3}))
    decision = log.decision(chosen="alpha", answered="alpha", eligible=OPEN)
    log.write(
        "call",
        {"id": log.id(), "project_id": log.project, "decision_id": decision, "worker": "alpha", "purpose": "serve",
         "started_at": log.at(0), "status": "ok", "completion": "served"},
    )  # fmt: skip
    assert (await judging()).rows == 0  # traffic is judged only where that is asked for
    assert (await judging(origins=["traffic"])).scored == 1
    spec, judge = RewardSpec(deadline=10**9), JudgeSpec(Pool.of(here.config).by_name["gamma"]).hash
    for known, value in ((judge, 0.5), (None, None)):
        with here.engine.begin() as connection:
            compute_rewards(connection, spec, Window(), now=datetime.now(UTC), judge=known)
        row = here.sql("SELECT value, source FROM reward")[0]
        assert (row.value, row.source) == (value, value and "judge")


async def test_pairs_are_compared_in_both_orders(here, log, judging, upstream, fake):
    upstream.script("m-gamma", fake.text('{"better": "A"}'))
    log.full(origin="audit", text="x", eligible=OPEN, cells=[("alpha", 0, {}), ("beta", 0, {})])
    done = await judging("pairwise")
    assert (done.scored, len(upstream.calls)) == (2, 2)
    assert {row.score for row in here.sql("SELECT score FROM judge_score")} == {0.5}


async def test_a_budget_stops_it(here, log, judging, upstream, fake):
    upstream.script("m-alpha", fake.text('{"grade": 4}'))
    for minute in range(6):
        log.full(minute, origin="audit", text="x", eligible=OPEN, cells=[("beta", 0, {})])
    done = await judging(worker="alpha", budget=Decimal("0.14"), concurrency=2)
    assert done.stopped == "the budget is spent" and 0 < done.rows < 6 and done.cost <= Decimal("0.14")
    assert here.count("judge_score") == done.rows == here.count("call", "purpose = 'judge'")


def test_the_judge_is_configured():
    text = (
        "[judge]\nworker = 'a'\nmode = 'pairwise'\nmax_tokens = 99\n"
        "[[workers]]\nname = 'a'\ndescription = 'x'\nmodel = 'm'\nbase_url = 'http://127.0.0.1:1/v1'\n"
    )
    config = load_text(text)
    spec = JudgeSpec.of(config, Pool.of(config))
    assert spec is not None and (spec.worker.name, spec.mode, spec.max_tokens) == ("a", "pairwise", 99)
    without = load_text(text[text.index("[[") :])
    assert JudgeSpec.of(without, Pool.of(without)) is None
