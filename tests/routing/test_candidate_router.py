"""A router version's configuration makes the router that it came from: same id, same prompt."""

from __future__ import annotations

import json

import pytest

from harness.routing.base import Ask
from harness.routing.candidate import prompted_router, version_template
from harness.routing.prompted import PromptedRouter
from harness.routing.template import default_template
from pointsman.errors import UserError
from pointsman.pool import Worker

WORKERS = tuple(Worker(name=name, card=f"declared {name}", model=name, endpoints=()) for name in ("a", "b"))


class Recording:
    def __init__(self):
        self.bodies = []

    async def __call__(self, body):
        self.bodies.append(body)
        return {"choices": [{"message": {"content": "A"}}]}


def made(lm, **changes):
    settings = {"model": "m", "cards": {"a": "sums", "b": "verse"}, "deadline": 1.0, "instructions": "Choose."}
    return PromptedRouter(default_template(), lm, base_url="http://127.0.0.1:1/v1", **{**settings, **changes})


async def test_a_version_comes_back_from_its_row():
    first, second = Recording(), Recording()
    router = made(first, scoring="logprobs")
    stored = json.loads(json.dumps(dict(router.version.config)))
    again = prompted_router(stored, second, deadline=2.0, parent_id="parent")
    assert again.version.id == router.version.id
    assert (again.deadline, again.version.parent_id) == (2.0, "parent")
    for one in (router, again):
        await one.score(Ask("What is 2 + 2?"), WORKERS, 7)
    assert first.bodies == second.bodies
    assert '"description": "sums"' in first.bodies[0]["messages"][1]["content"]


async def test_a_template_of_its_own_stands_in_the_version():
    body = json.loads(default_text())
    body["modes"]["option"][0]["parts"][0] = "Another opening. "
    stored = {**made(Recording()).version.config, "template_body": body}
    with pytest.raises(UserError, match=r"its template \([0-9a-f]{12}\) is not known here"):
        version_template(stored)
    stored["template"] = template_hash(body)
    lm = Recording()
    router = prompted_router(stored, lm, deadline=1.0)
    await router.score(Ask("x"), WORKERS, 1)
    assert lm.bodies[0]["messages"][0]["content"].startswith("Another opening. ")
    assert router.version.config == stored


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cards": None}, "expected cards, a text per worker"),
        ({"cards": {"a": 1}}, "expected cards, a text per worker"),
        ({"scoring": "guess"}, "expected instructions, scoring and model"),
        ({"model": None}, "expected instructions, scoring and model"),
        ({"template": "0" * 64}, r"its template \(0{12}\) is not known here"),
    ],
)
def test_a_broken_row_says_what_it_lacks(change, message):
    with pytest.raises(UserError, match=message):
        prompted_router({**made(Recording()).version.config, **change}, Recording(), deadline=1.0)


def default_text():
    from importlib import resources

    return resources.files("harness.routing").joinpath("templates/default.json").read_text(encoding="utf-8")


def template_hash(body):
    from harness.routing.template import template_of

    return template_of(body).hash
