"""The router of a candidate, demonstrations included, and candidates as values."""

from __future__ import annotations

import json

from harness.optimise.build import RouterLlm, router_of
from harness.optimise.candidate import Candidate, Demonstration, worker_of
from harness.routing.base import Ask
from harness.routing.candidate import prompted_router
from harness.routing.template import default_template

INSTRUCTIONS = default_template().instructions


def test_a_candidate_is_its_configuration(toy):
    one = Candidate(toy.poor, INSTRUCTIONS)
    child = one.with_components({"card:amber-7b": "Units."}, "rewritten")
    assert child.parent == one.id and child.cards["basalt-pro"] == toy.poor["basalt-pro"]
    assert child.with_components({"card:amber-7b": toy.poor["amber-7b"]}, "back").id == one.id
    assert list(one.components) == ["instructions", "card:amber-7b", "card:basalt-pro", "card:cobalt-mini"]
    assert (worker_of("card:amber-7b"), worker_of("instructions")) == ("amber-7b", None)
    assert one.changed("scoring", scoring="structured").id != one.id


def test_demonstrations_stand_in_the_prompt_and_in_the_version(toy, stand_in, runner):
    shown = Demonstration('Convert 3 feet to "inches"', "amber-7b")
    candidate = Candidate(toy.good, INSTRUCTIONS, demonstrations=(shown,))
    router = router_of(candidate, RouterLlm("stand-in"), stand_in, "parent-id")
    scored = runner.run(router.score(Ask("Is 1900 a leap year?"), toy.workers, 1))
    assert max(scored.scores, key=scored.scores.get) == "cobalt-mini"
    contents = [message["content"] for message in stand_in.asked[0]["messages"]]
    assert json.dumps(shown.request) in contents[1] and contents[2].startswith("[[ ## option ## ]]\nA\n")
    stored = json.loads(json.dumps(dict(router.version.config)))
    again = prompted_router(stored, stand_in, deadline=1.0)
    assert again.version.id == router.version.id
    runner.run(again.score(Ask("Is 1900 a leap year?"), toy.workers, 1))
    assert stand_in.asked[0] == stand_in.asked[1]


def test_without_demonstrations_the_template_that_ships_serves(toy, stand_in):
    version = router_of(Candidate(toy.good, INSTRUCTIONS), RouterLlm("stand-in"), stand_in).version
    assert version.config["template"] == default_template().hash and "template_body" not in version.config
