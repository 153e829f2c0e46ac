"""A learned conductor at the gateway: it is asked first, in its own form; the router LLM plans where it cannot."""

from __future__ import annotations

import pytest

PLAN = 'workers = ["A"]\nsubtasks = ["Do the request."]\naccess = ["none"]'


@pytest.fixture(scope="module")
def planned(make_gateway, shared_upstream):
    more = f"""
[conductor]
model = "m-learned"
base_url = "{shared_upstream.url}"
price = {{ input = 1, output = 1 }}
"""
    settings = f"""
[router]
model = "m-router"
base_url = "{shared_upstream.url}"
chain = ["default"]
default = "alpha"
"""
    return make_gateway(settings, more=more)


def asked_of(upstream, model):
    return [call.json for call in upstream.of(model)]


def planning(gateway, answer):
    record = gateway.record(answer)
    (plan,) = [child["decision"] for child in record["children"] if child["decision"]["kind"] == "delegate"]
    return plan


def test_the_learned_conductor_plans(planned, upstream, fake):
    upstream.script("m-learned", fake.text(PLAN))
    answer = planned.chat("What is 2 plus 2?", model="pointsman-ultra")
    assert answer.status_code == 200
    plan = planning(planned, answer)
    assert plan["parse_status"] == "ok" and len(plan["plan"]["steps"]) == 1
    (body,) = asked_of(upstream, "m-learned")
    assert len(body["messages"]) == 1 and body["messages"][0]["content"].startswith('request "What is 2 plus 2?"\nA ')
    assert asked_of(upstream, "m-router") == []


@pytest.mark.parametrize("said", ["no plan at all", None])
def test_the_router_llm_plans_where_it_cannot(planned, upstream, fake, said):
    upstream.script("m-learned", fake.text(said) if said else fake.reply({"error": {"message": "down"}}, status=500))
    upstream.script("m-router", fake.text(PLAN))
    answer = planned.chat("What is 2 plus 2?", model="pointsman-ultra")
    assert answer.status_code == 200 and planning(planned, answer)["parse_status"] == "ok"
    (body,) = asked_of(upstream, "m-router")
    assert body["messages"][0]["role"] == "system"
