"""Audits: the gateway draws, and all eligible workers are asked; never without consent, never twice."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from harness.auditing import audit, read_stored
from pointsman.errors import UserError
from pointsman.probing.asking import Nobody
from pointsman.probing.audit import audit_live, audit_log
from pointsman.probing.drawn import REDACTED
from pointsman.probing.matrix import full_information
from pointsman.probing.probe import Terms
from pointsman.probing.reports import audit_figures, audit_lines
from pointsman.probing.subjects import draws_repeat
from pointsman.redaction import MARK
from pointsman.rewards.spec import RewardSpec

HEAD = """
[router]
chain = ["default"]
default = "alpha"
[exploration]
epsilon = 0
seed = 1
[log]
redact = ["4711-[0-9]+"]
"""
TOOLS = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]
LOOP = [
    {"role": "user", "content": "look it up"},
    {"role": "assistant", "content": None, "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}]},
    {"role": "tool", "tool_call_id": "c1", "content": "found"},
]  # fmt: skip
PRICE = "price = { input = 1, output = 1 }\n"
CAPABLE = 'capabilities = ["tools"]\n'


@pytest.fixture
def serve(running, upstream, empty_database, tmp_path):
    """`serve(rate)`: a gateway with alpha, beta and gamma that draws at that rate; all stop at the test's end."""
    made = []

    def start(rate=1.0, *, log="", repeat_share=0.0, budget=5, unpriced="", judge=""):
        workers = "".join(
            f'[[workers]]\nname = "{name}"\ndescription = "{name}"\nmodel = "m-{name}"\nbase_url = "{upstream.url}"\n'
            f"{'' if name == unpriced else PRICE}max_output_tokens = 100\n{CAPABLE}"
            for name in ("alpha", "beta", "gamma")
        )
        drawn = f"[audit]\nrate = {rate}\nbudget = {budget}\nrepeat_share = {repeat_share}\n"
        home = tmp_path / f"home-{len(made)}"
        home.mkdir()
        made.append(running.RunningGateway(f"{HEAD}{log}\n{drawn}{judge}{workers}", home, empty_database, {}))
        return made[-1]

    yield start
    for gateway in made:
        gateway.close()


@pytest.fixture
def auditing(here):
    async def live(gateway, **options):
        return await here.run(audit_live, config=gateway.config, read=read_stored, **options)

    async def log(gateway, number, **options):
        return await here.run(audit_log, number, config=gateway.config, read=read_stored, **options)

    live.log = log
    return live


def logged(gateway, number, **fields):
    """Chats, and their records once they are in Postgres."""
    answers = [gateway.chat(f"question {n}", **fields) for n in range(number)]
    return [gateway.record(answer)["decision"] for answer in answers]


async def test_what_the_gateway_drew_is_asked_of_all(serve, auditing, here, upstream):
    gateway = serve()
    decisions = logged(gateway, 4, temperature=0.5, metadata={"team": "x", "pointsman": {"tags": ["t"]}}, stream=True)
    assert {(decision["audited"], decision["audit_rate"]) for decision in decisions} == {(True, 1.0)}
    upstream.calls.clear()
    audited = await auditing(gateway)
    assert (audited.drawn.population, audited.asked.answered, audited.asked.left) == (4, 12, 0)
    assert Counter(call.json["model"] for call in upstream.calls) == {"m-alpha": 4, "m-beta": 4, "m-gamma": 4}
    for call in upstream.calls:  # what is asked is sent, and nothing of how this client wanted it delivered
        assert set(call.json) == {"model", "messages", "temperature"} and call.json["temperature"] == 0.5
    rows = here.sql("SELECT * FROM decision WHERE origin = 'audit' ORDER BY id")
    assert [str(row.parent_id) for row in rows] == [decision["id"] for decision in decisions]
    assert [str(row.request_id) for row in rows] == [decision["request_id"] for decision in decisions]
    assert {(row.audit_rate, row.chosen, row.audited) for row in rows} == {(1.0, None, False)}
    assert here.count("call", "purpose = 'audit'") == 12 and here.count("request") == 4
    with here.engine.connect() as connection:
        matrix = full_information(connection, here.project, ("audit",))
    assert matrix.names == ("alpha", "beta", "gamma") and matrix.texts == tuple(f"question {n}" for n in range(4))
    assert matrix.episodes == tuple(decision["episode_id"] for decision in decisions)
    again = await auditing(gateway)
    assert (again.asked.known, again.asked.answered) == (12, 0) and len(upstream.calls) == 12


async def test_nothing_is_sent_without_consent(serve, auditing, here, upstream):
    gateway = serve()
    silent = gateway.key(learn=False)
    later = gateway.key()
    asks = {
        "store": gateway.chat("canary store", store=False),
        "key": gateway.chat("canary key", headers={"authorization": f"Bearer {silent}"}),
        "withdrawn": gateway.chat("canary withdrawn", headers={"authorization": f"Bearer {later}"}),
        "direct": gateway.chat("canary direct", model="beta"),
        "only one": gateway.chat("canary only", metadata={"pointsman": {"allowed_workers": ["beta"]}}),
        "loop": gateway.chat(messages=LOOP, tools=TOOLS),
        "several": gateway.chat("canary several", n=2),
        "redacted": gateway.chat("canary 4711-123"),
        "some": gateway.chat("for some", metadata={"pointsman": {"excluded_workers": ["gamma"]}}),
    }
    records = {name: gateway.record(answer) for name, answer in asks.items()}
    drawn = {name for name, record in records.items() if record["decision"]["audited"]}
    assert drawn == {"withdrawn", "loop", "several", "redacted", "some"}
    assert {records[name]["decision"]["audit_rate"] for name in ("store", "key", "direct", "only one")} == {None}
    with here.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE api_key SET learn = false")
    upstream.calls.clear()
    audited = await auditing(gateway)
    assert audited.drawn.refused == {"tool_loop": 1, "several_answers": 1, "redacted": 1}
    assert [call.json["messages"][-1]["content"] for call in upstream.calls] == ["for some"] * 2
    assert {call.json["model"] for call in upstream.calls} == {"m-alpha", "m-beta"}
    row = here.sql("SELECT eligible FROM decision WHERE origin = 'audit'")[0]
    assert row.eligible == {"alpha": None, "beta": None, "gamma": "excluded"}


async def test_texts_that_are_not_stored_are_not_drawn(serve, auditing, upstream):
    silent = serve(log="store_text = false")
    assert logged(silent, 1)[0]["audit_rate"] is None
    quiet = serve(0.0)
    assert logged(quiet, 1)[0]["audit_rate"] is None
    audited = await auditing(silent)
    assert (audited.drawn.population, audited.asked.cells) == (0, 0)


async def test_other_apis_are_asked_again_as_chats(serve, auditing, upstream):
    gateway = serve()
    message = {"model": "pointsman", "max_tokens": 50, "messages": [{"role": "user", "content": "by messages"}]}
    response = {"model": "pointsman", "input": "by responses"}
    for path, body in (("/v1/messages", message), ("/v1/responses", response)):
        answer = gateway.client.post(path, json=body)
        assert answer.status_code == 200, answer.text
        gateway.record(answer)
    upstream.calls.clear()
    audited = await auditing(gateway)
    assert (audited.asked.answered, audited.drawn.refused) == (6, {})
    asked = {(call.path, json.dumps(call.json["messages"])) for call in upstream.calls}
    assert {path for path, _ in asked} == {"/v1/chat/completions"}
    assert {"by messages" in text or "by responses" in text for _, text in asked} == {True}


async def test_the_share_that_is_drawn_is_the_rate(serve):
    gateway = serve(0.3)
    decisions = logged(gateway, 150)
    assert {decision["audit_rate"] for decision in decisions} == {0.3}
    drawn = sum(decision["audited"] for decision in decisions)
    assert 20 <= drawn <= 72  # more than four standard deviations on both sides
    assert {decision["audited"] for decision in decisions} == {True, False}


async def test_a_day_has_one_budget(serve, auditing, here):
    gateway = serve(budget=0.0002)
    logged(gateway, 6)
    first = await auditing(gateway)
    assert first.asked.stopped == "the budget is spent" and 0 < first.asked.answered < 18
    assert first.asked.cost <= Decimal("0.0002")
    second = await auditing(gateway)
    spent = here.sql("SELECT cost, name FROM audit_run")
    assert len(spent) == 1 and spent[0].cost <= Decimal("0.0002") and spent[0].name.startswith("live-")
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    third = await auditing(gateway, now=tomorrow)
    assert third.asked.known == first.asked.answered + second.asked.answered and third.asked.answered > 0
    assert here.count("audit_run") == 2


async def test_some_are_asked_twice(serve, auditing, here):
    gateway = serve(repeat_share=1.0)
    logged(gateway, 2)
    audited = await auditing(gateway)
    assert audited.asked.answered == 12
    with here.engine.connect() as connection:
        assert full_information(connection, here.project, ("audit",)).scores.shape == (2, 3, 2)
    keys = [f"audit/{n}" for n in range(4000)]
    share = sum(draws_repeat(key, 0.1) for key in keys) / 4000
    assert 0.08 < share < 0.12 and not any(draws_repeat(key, 0.0) for key in keys)


async def test_the_log_is_sampled_at_a_known_rate(serve, auditing, here, upstream):
    gateway = serve(0.0)
    logged(gateway, 20)
    upstream.calls.clear()
    audited = await auditing.log(gateway, 5, name="sample")
    assert (audited.drawn.population, audited.drawn.looked_at, len(audited.drawn.subjects)) == (20, 5, 5)
    assert {row.audit_rate for row in here.sql("SELECT audit_rate FROM decision WHERE origin = 'audit'")} == {0.25}
    assert len(upstream.calls) == 15
    logged(gateway, 10)  # what comes later is not in this run's window
    upstream.calls.clear()
    again = await auditing.log(gateway, 5, name="sample")
    assert (again.asked.known, again.asked.answered) == (15, 0) and upstream.calls == []
    with pytest.raises(UserError, match="log 'sample': it was started with number = 5, not 6"):
        await auditing.log(gateway, 6, name="sample")
    other = await auditing.log(gateway, 30, name="all", seed=2)
    assert (other.asked.known, other.asked.answered) == (15, 75)
    more = await auditing.log(gateway, 100, name="more", terms=Terms(concurrency=2))
    assert (more.drawn.population, more.asked.known) == (30, 90)


async def test_nothing_past_its_retention_is_read(serve, auditing):
    gateway = serve(log="retention = 30")
    logged(gateway, 2)
    old = await auditing(gateway, now=datetime.now(UTC) + timedelta(days=31))
    assert (old.drawn.population, old.asked.cells) == (0, 0)


def test_what_marks_a_redacted_text_is_one_word():
    assert REDACTED == MARK


@pytest.mark.parametrize(
    ("surface", "body", "why"),
    [
        ("embeddings", {"model": "pointsman", "input": "x"}, "surface"),
        ("route", {"model": "pointsman", "messages": []}, "surface"),
        ("chat.completions", {"model": "pointsman"}, "unreadable"),
        ("chat.completions", {"model": "pointsman", "messages": LOOP}, "tool_loop"),
        ("chat.completions", {"model": "pointsman", "n": 3, "messages": LOOP[:1]}, "several_answers"),
    ],
)
def test_what_cannot_be_asked_again(surface, body, why):
    assert read_stored(surface, json.dumps(body).encode()) == why


async def test_a_budget_counts_an_unknown_price_as_the_dearest(serve, auditing, here):
    gateway = serve(budget=0.0003, unpriced="gamma")
    logged(gateway, 6)
    first = await auditing(gateway)
    assert (first.asked.cost, first.asked.stopped) == (None, "the budget is spent")
    run = here.sql("SELECT * FROM audit_run")[0]
    assert run.cost is None and 0 < run.counted <= Decimal("0.0003")
    await auditing(gateway)  # the same day: what is left of the same budget
    assert here.sql("SELECT counted FROM audit_run")[0].counted <= Decimal("0.0003")


async def test_a_judge_scores_what_no_verifier_can(serve, auditing, here, upstream, fake):
    gateway = serve(judge='[judge]\nworker = "alpha"\n')
    logged(gateway, 2)
    upstream.script("m-alpha", fake.text('{"grade": 4}'))
    audited = await audit(
        0, config=gateway.config, secret=lambda name: None, engine=here.engine, project_id=here.project, name="x",
        seed=1, judge=True, terms=Terms(), watch=Nobody(),
    )  # fmt: skip
    assert audited.judged is not None and (audited.judged.rows, audited.judged.scored) == (2, 6)
    lines = audit_lines(audited)
    assert "the judge scored 6 answers of 2 rows; $0.0001" in lines
    assert audit_figures(audited)["judged"]["scored"] == 6
    hash_ = here.sql("SELECT judge_hash FROM judge_score")[0].judge_hash
    with here.engine.connect() as connection:
        matrix = full_information(connection, here.project, ("audit",), spec=RewardSpec(), judge=hash_)
    assert matrix.judge_units and matrix.means.tolist() == [[0.75] * 3] * 2
    with pytest.raises(UserError, match=r"no judge is configured: \[judge\] worker names the worker"):
        await audit(
            0, config=serve().config, secret=lambda name: None, engine=here.engine, project_id=here.project, name="x",
            seed=1, judge=True, terms=Terms(), watch=Nobody(),
        )  # fmt: skip
