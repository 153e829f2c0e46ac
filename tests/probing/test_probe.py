"""Probes over real HTTP: what is logged, scored, resumed, paid and given up."""

from __future__ import annotations

import asyncio
import json
from decimal import Decimal

import pytest

from pointsman.config import load_text
from pointsman.errors import UserError
from pointsman.probing.matrix import full_information
from pointsman.probing.pace import Pace
from pointsman.probing.probe import Terms, probe
from pointsman.probing.tasks import read_tasks, task_of

FOUR = {"kind": "numeric", "value": 4}


def tasks(number=3):
    return [
        task_of({"id": str(n), "prompt": f"What is {n} + {4 - n}?", "verifier": FOUR, "task": "sums", "split": "train"})
        for n in range(number)
    ]


def answers(upstream, fake, **texts):
    for name, answer in texts.items():
        upstream.script(f"m-{name}", fake.text(answer))


async def test_every_worker_answers_every_task_and_is_scored(here, upstream, fake, watching):
    answers(upstream, fake, alpha="Answer: 4", beta="I think\nAnswer: 5", gamma="4")
    watch = watching()
    asked = await here.run(probe, tasks(), name="first", repeats=2, watch=watch)
    assert (asked.subjects, asked.cells, asked.answered, asked.left, asked.stopped) == (3, 18, 18, 0, None)
    assert len(upstream.calls) == 18 and upstream.of("m-vectors") == []
    assert watch.seen[0] == (0, 18) and watch.seen[-1] == (18, 18)
    decision = here.sql("SELECT * FROM decision ORDER BY id")[0]
    assert (decision.origin, decision.chosen, decision.probabilities, decision.propensity) == (
        "probe",
        None,
        None,
        None,
    )
    assert decision.eligible == {"alpha": None, "beta": None, "gamma": None, "vectors": "not_allowed"}
    request = here.sql("SELECT * FROM request WHERE id = :id", id=decision.request_id)[0]
    assert request.text.startswith("What is ") and (request.task, request.split, request.learn) == (
        "sums",
        "train",
        True,
    )
    assert request.tags == ["probe:first"] and request.hints["probe"]["verifier"] == FOUR
    calls = here.sql("SELECT * FROM call WHERE decision_id = :id", id=decision.id)
    assert sorted((call.worker, call.repeat, call.purpose) for call in calls) == [
        (name, repeat, "probe") for name in ("alpha", "beta", "gamma") for repeat in (0, 1)
    ]
    assert {(call.input_tokens, call.output_tokens) for call in calls} == {(10, 5)}
    outcomes = here.sql("SELECT * FROM outcome WHERE decision_id = :id", id=decision.id)
    assert {(outcome.worker, outcome.score) for outcome in outcomes} == {("alpha", 1), ("beta", 0), ("gamma", 1)}
    assert all(outcome.id == outcome.call_id and outcome.origin == "probe" for outcome in outcomes)
    assert here.sql("SELECT cost FROM outcome WHERE worker = 'alpha'")[0].cost == Decimal("0.006")
    assert asked.cost is None  # gamma's price is not known
    run = here.sql("SELECT * FROM audit_run")[0]
    assert (run.kind, run.name, run.state, run.rows, run.cells, run.done) == ("probe", "first", "done", 3, 18, 18)


async def test_a_repeat_is_a_request_of_its_own(here, upstream):
    await here.run(probe, tasks(1), name="seeds", repeats=3, workers=["alpha"])
    assert sorted(str(call.json.get("seed")) for call in upstream.calls) == ["1", "2", "None"]
    assert all(call.json["model"] == "m-alpha" and "stream" not in call.json for call in upstream.calls)


async def test_a_run_that_is_broken_off_goes_on_where_it_stopped(here, upstream, watching):
    with pytest.raises(InterruptedError):
        await here.run(
            probe, tasks(12), name="broken", watch=watching(limit=4), terms=Terms(concurrency=1, per_minute=120)
        )
    run = here.sql("SELECT * FROM audit_run")[0]
    assert (run.state, run.reason) == ("stopped", "InterruptedError")
    first = here.count("outcome")
    assert 4 <= first < 36
    asked = await here.run(probe, tasks(12), name="broken")
    assert (asked.known, asked.answered, asked.left) == (first, 36 - first, 0)
    assert here.count("outcome") == 36 and here.count("decision") == 12 and here.count("request") == 12
    # Whatever was under way when it was broken off may be asked twice, and nothing else.
    bodies = [json.dumps(call.json, sort_keys=True) for call in upstream.calls]
    assert len(set(bodies)) == 36 and len(bodies) <= 36 + 3
    again = await here.run(probe, tasks(12), name="broken")
    assert (again.known, again.answered) == (36, 0) and len(upstream.calls) == len(bodies)
    assert here.sql("SELECT state FROM audit_run")[0].state == "done"
    await here.run(probe, tasks(1), name="fresh")
    assert here.count("outcome") == 39


async def test_a_name_means_one_thing(here):
    await here.run(probe, tasks(1), name="set", workers=["alpha"])
    with pytest.raises(UserError, match=r"probe 'set': it was started with repeats = 1, not 2; give it another name"):
        await here.run(probe, tasks(1), name="set", repeats=2)
    with pytest.raises(UserError, match=r"started with tasks = "):
        await here.run(probe, tasks(2), name="set")
    with pytest.raises(UserError, match=r"name: expected letters, digits and ._:- \(100 at most\), got 'a b'"):
        await here.run(probe, tasks(1), name="a b")
    joined = await here.run(probe, tasks(1), name="set", workers=["alpha", "beta"])
    assert (joined.known, joined.answered) == (1, 1)  # a worker may join later


async def test_workers_that_are_not_there(here):
    with pytest.raises(UserError, match=r"'delta' is no worker, expected some of alpha, beta, gamma, vectors"):
        await here.run(probe, tasks(1), name="x", workers=["delta"])
    with pytest.raises(UserError, match="can chat: they make embeddings only"):
        await here.run(probe, tasks(1), name="x", workers=["vectors"])
    assert here.count("audit_run") == 0


async def test_a_changed_endpoint_is_another_arm(here, upstream):
    await here.run(probe, tasks(1), name="arms", workers=["alpha"])
    moved = here.config.model_copy(
        update={"workers": [w.model_copy(update={"model": f"{w.model}-2"}) for w in here.config.workers]}
    )
    asked = await here.run(probe, tasks(1), name="arms", workers=["alpha"], config=moved)
    assert (asked.known, asked.answered) == (0, 1)
    with here.engine.connect() as connection:
        matrix = full_information(connection, here.project)
    assert matrix.names == ("alpha", "alpha") and matrix.scores.shape == (1, 2, 1)


async def test_another_name_is_the_same_arm(here, upstream):
    await here.run(probe, tasks(1), name="names", workers=["alpha"])
    called = [w.model_copy(update={"name": "renamed"}) if w.name == "alpha" else w for w in here.config.workers]
    config = here.config.model_copy(update={"workers": called})
    asked = await here.run(probe, tasks(1), name="names", workers=["renamed"], config=config)
    assert (asked.known, asked.answered) == (1, 0) and len(upstream.calls) == 1


async def test_one_model_under_two_names_is_asked_under_each(here, upstream):
    alpha = next(w for w in here.config.workers if w.name == "alpha")
    config = here.config.model_copy(
        update={"workers": [*here.config.workers, alpha.model_copy(update={"name": "alias"})]}
    )
    asked = await here.run(probe, tasks(2), name="aliases", workers=["alpha", "alias"], config=config)
    assert (asked.cells, asked.answered, here.count("outcome")) == (4, 4, 4)


async def test_the_budget_is_not_overrun(here, upstream):
    """An alpha call is taken to cost 0.1 + a little (its longest answer), and costs 0.006."""
    config = load_text("\n".join(_priced(here.config)))
    asked = await here.run(
        probe, tasks(12), name="dear", config=config, workers=["alpha"], terms=Terms(8, None, Decimal("0.14"))
    )
    assert asked.stopped == "the budget is spent" and 0 < asked.answered < 12
    assert asked.cost == Decimal("0.006") * asked.answered <= Decimal("0.14")
    run = here.sql("SELECT * FROM audit_run")[0]
    assert (run.state, run.reason, run.cost) == ("stopped", "the budget is spent", asked.cost)
    more = await here.run(probe, tasks(12), name="dear", config=config, workers=["alpha"])
    assert more.left == 0 and here.sql("SELECT cost FROM audit_run")[0].cost == Decimal("0.072")


async def test_a_budget_needs_a_price(here):
    config = load_text("\n".join(_priced(here.config, priced=False)))
    with pytest.raises(UserError, match="a budget was given, and no worker has a price"):
        await here.run(probe, tasks(1), name="x", config=config, terms=Terms(budget=Decimal(1)))


def _priced(config, priced=True):
    for worker in config.workers:
        yield f'[[workers]]\nname = "{worker.name}"\ndescription = "x"\nmodel = "{worker.model}"'
        yield f'base_url = "{worker.base_url}"\nmax_output_tokens = 100'
        if priced and worker.price is not None:
            yield f"price = {{ input = {worker.price.input}, output = {worker.price.output} }}"


async def test_failures_are_logged_given_up_and_asked_again(here, upstream, fake):
    upstream.script("m-beta", fake.reply({"error": {"message": "no"}}, 500))
    asked = await here.run(probe, tasks(12), name="ill", workers=["alpha", "beta"], terms=Terms(concurrency=2))
    assert asked.given_up == ["beta"] and asked.answered == 12
    assert 5 <= asked.failed <= 7 and asked.faults == {"server": asked.failed}
    assert len(upstream.of("m-beta")) == 2 * asked.failed  # each with its one retry
    assert asked.left == 12
    failed = here.sql("SELECT * FROM outcome WHERE worker = 'beta'")
    assert {(row.status, row.score, row.reason) for row in failed} == {("upstream_error", None, "server")}
    assert here.count("call", "worker = 'beta' AND status = 'error' AND purpose = 'probe'") == 2 * asked.failed
    run = here.sql("SELECT * FROM audit_run")[0]
    assert (run.state, run.reason) == ("stopped", "given up: beta")
    with here.engine.connect() as connection:
        ill = full_information(connection, here.project, failures="poor")
    assert (ill.failed[:, 1, 0].sum(), (ill.scores[:, 1, 0] == 0).sum()) == (asked.failed, asked.failed)
    answers(upstream, fake, beta="4")
    well = await here.run(probe, tasks(12), name="ill", workers=["alpha", "beta"])
    assert (well.known, well.answered, well.left, well.failed) == (12, 12, 0, 0)
    with here.engine.connect() as connection:
        matrix = full_information(connection, here.project)
    assert matrix.complete.all() and matrix.means[:, 1].tolist() == [1.0] * 12


async def test_calls_at_a_time_are_bounded(here, upstream, fake):
    now, most = 0, 0

    async def counted(call):
        nonlocal now, most
        now += 1
        most = max(most, now)
        await fake.reply(fake.completion("4"), after=0.01)(call)
        now -= 1

    for name in ("alpha", "beta", "gamma"):
        upstream.script(f"m-{name}", counted)
    await here.run(probe, tasks(10), name="many", terms=Terms(concurrency=3))
    assert most == 3


async def test_one_run_is_asked_by_one_at_a_time(here, upstream, fake):
    upstream.script("m-alpha", fake.reply(fake.completion("4"), after=0.3))
    both = await asyncio.gather(
        here.run(probe, tasks(2), name="twice", workers=["alpha"]),
        here.run(probe, tasks(2), name="twice", workers=["alpha"]),
        return_exceptions=True,
    )
    refused = [one for one in both if isinstance(one, UserError)]
    assert [str(one) for one in refused] == [
        "'twice' is under way elsewhere; wait for it, or give this run another name"
    ]
    assert len(upstream.calls) == 2
    again = await here.run(probe, tasks(2), name="twice", workers=["alpha"])
    assert again.known == 2


async def test_the_pace_of_each_worker():
    time, slept = 0.0, []

    async def sleep(seconds):
        nonlocal time
        slept.append(seconds)
        time += seconds

    pace = Pace(30, clock=lambda: time, sleep=sleep)
    for worker in ("a", "a", "b", "a"):
        await pace.turn(worker)
    assert slept == [2.0, 2.0]  # 'b' has a pace of its own
    time += 10
    await pace.turn("a")
    assert slept == [2.0, 2.0]
    await Pace(None, clock=lambda: time, sleep=sleep).turn("a")
    assert len(slept) == 2


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("", "no tasks; expected one JSON object a line, with id, prompt and verifier"),
        ("{", "line 1: expected one JSON object"),
        ('{"id": 1, "prompt": "x"}', "line 1: Object missing required field `verifier`"),
        ('{"id": 1, "prompt": "x", "verifier": {}, "gold": 4}', "line 1: Object contains unknown field `gold`"),
        ('{"id": 1, "verifier": {"kind": "exact", "value": "a"}}', "line 1: expected either prompt or messages"),
        ('{"id": 1, "messages": [], "verifier": {"kind": "exact", "value": "a"}}', "line 1: messages: expected a list"),
        (
            '{"id": 1, "prompt": " ", "verifier": {"kind": "exact", "value": "a"}}',
            "expected a user message with",
        ),
        ('{"id": "", "prompt": "x", "verifier": {"kind": "exact", "value": "a"}}', "id: expected 1 to 200 characters"),
        ('{"id": 1, "prompt": "x", "verifier": {"kind": "magic"}}', "line 1: verifier: kind: expected one of"),
        ('{"id": 1, "prompt": "x", "verifier": {"kind": "code", "tests": []}}', "verifier code: tests: expected"),
    ],
)
def test_faults_of_a_tasks_file(tmp_path, lines, message):
    file = tmp_path / "tasks.jsonl"
    file.write_text(lines)
    with pytest.raises(UserError) as caught:
        read_tasks(file)
    assert str(caught.value).startswith(str(file)) and message in str(caught.value)


def test_a_tasks_file(tmp_path):
    file = tmp_path / "tasks.jsonl"
    chat = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "2 + 2?"}]},
    ]
    one = {"id": 1, "prompt": "2 + 2?", "verifier": FOUR}
    file.write_text(
        f"{json.dumps(one)}\n\n{json.dumps({'id': 'b', 'messages': chat, 'verifier': FOUR, 'task': 's'})}\n"
    )
    first, second = read_tasks(file)
    assert (first.id, first.text, first.task) == ("1", "2 + 2?", None)
    assert (second.text, second.task, len(second.messages)) == ("2 + 2?", "s", 2)
    file.write_text(f"{json.dumps(one)}\n{json.dumps(one)}\n")
    with pytest.raises(UserError, match=r"line 2: id: '1' is line 1's already"):
        read_tasks(file)
    with pytest.raises(UserError, match=r"none.jsonl: cannot be read: No such file"):
        read_tasks(tmp_path / "none.jsonl")
