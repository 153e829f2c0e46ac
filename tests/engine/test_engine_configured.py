"""Patterns from `pointsman.toml`: what they become, their limits, and what is refused with which words."""

from __future__ import annotations

from decimal import Decimal

import pytest

from harness.engine.configured import BUILT_IN, limits_of, policy_of
from harness.engine.limits import Limits
from harness.engine.patterns.roles import Role
from harness.engine.patterns.single import Single, SingleOfTeam
from harness.engine.patterns.trinity import Trinity
from harness.engine.patterns.workflow import Workflow
from harness.engine.plan.grammar import Plan, Step
from pointsman.config.load import load_text
from pointsman.errors import ConfigError

WORKERS = "".join(
    f'\n[[workers]]\nname = "{name}"\ndescription = "d"\nmodel = "m"\nbase_url = "http://127.0.0.1:1/v1"\n'
    for name in ("ada", "bob")
)


def config_of(text):
    return load_text(text + WORKERS).patterns


def test_a_trinity_with_roles_of_its_own():
    patterns = config_of("""
[patterns.review]
pattern = "trinity"
max_turns = 4
stop_score = 0.8
feedback = true
[[patterns.review.roles]]
name = "writer"
part = "solver"
[[patterns.review.roles]]
name = "critic"
part = "verifier"
prompt = "Judge."
workers = ["bob"]
""")
    policy = policy_of("review", patterns["review"])
    assert isinstance(policy, Trinity) and policy.name == "review"
    settings = policy.settings
    assert settings.roles == (Role("writer", "solver"), Role("critic", "verifier", "Judge.", ("bob",)))
    assert (settings.max_turns, settings.stop_score, settings.feedback) == (4, 0.8, True)


def test_a_chain_with_gates_and_a_routed_step():
    patterns = config_of("""
[patterns.chain]
pattern = "workflow"
[[patterns.chain.steps]]
subtask = "Draft."
worker = "ada"
gate = "DRAFT"
[[patterns.chain.steps]]
subtask = "Check."
access = "none"
[[patterns.chain.steps]]
subtask = "Join."
access = [1, 2]
""")
    policy = policy_of("chain", patterns["chain"])
    assert isinstance(policy, Workflow)
    assert policy.settings.fixed == Plan(
        (Step("ada", "Draft.", "all", "DRAFT"), Step(None, "Check."), Step(None, "Join.", (1, 2)))
    )


def test_the_patterns_that_are_there_without_configuration():
    assert {name: type(policy_of(name, config)) for name, config in BUILT_IN.items()} == {
        "single": SingleOfTeam, "trinity": Trinity, "ultra": Workflow,
    }  # fmt: skip
    assert isinstance(policy_of("plain", config_of('[patterns.plain]\npattern = "single"\n')["plain"]), Single)


def test_a_requests_limits_only_narrow_the_patterns():
    config = config_of("""
[patterns.team]
pattern = "trinity"
max_calls = 6
max_tokens = 9000
budget = 0.02
deadline = 30
""")["team"]
    assert limits_of(config, money=None, now=100.0, seconds=600) == Limits(6, 9000, Decimal("0.02"), 130.0)
    assert limits_of(config, money=Decimal("0.01"), now=100.0, seconds=5).money == Decimal("0.01")
    assert limits_of(config, money=Decimal(1), now=100.0, seconds=5) == Limits(6, 9000, Decimal("0.02"), 105.0)


@pytest.mark.parametrize(("text", "problem"), [
    ('[patterns.x]\npattern = "trio"', "patterns.x.pattern: input should be 'single', 'trinity'"),
    ('[patterns.x]\npattern = "trinity"\nrounds = 2',
     "patterns.x.rounds: belongs to workflow, and this is a trinity; remove it"),
    ('[patterns.x]\npattern = "workflow"\nstop_score = 0.5',
     "patterns.x.stop_score: belongs to trinity, and this is a workflow"),
    ('[patterns.ada]\npattern = "trinity"', 'patterns.ada: "ada" is a worker\'s name, expected a name of its own'),
    ('[patterns.x]\npattern = "trinity"\nroles = [{ name = "a", part = "thinker" }]',
     'patterns.x.roles: expected at least one role whose part is "solver"'),
    ('[patterns.x]\npattern = "trinity"\nroles = [{ name = "a", part = "solver" }, { name = "a", part = "thinker" }]',
     'patterns.x.roles[1].name: "a" is used twice, expected a name of its own'),
    ('[patterns.x]\npattern = "trinity"\nroles = [{ name = "a", part = "solver", workers = ["zed"] }]',
     "patterns.x.roles[0].workers: \"zed\" is no worker, expected some of ['ada', 'bob']"),
    ('[patterns.x]\npattern = "workflow"\nsteps = [{ subtask = "a", worker = "zed" }]',
     "patterns.x.steps[0].worker: \"zed\" is no worker, expected one of ['ada', 'bob']"),
    ('[patterns.x]\npattern = "workflow"\nsteps = [{ subtask = "a" }, { subtask = "b", access = [2] }]',
     "patterns.x.steps[1].access: 2 is no earlier step; they are counted from 1"),
    ('[patterns.x]\npattern = "workflow"\nsteps = [{ subtask = "a" }, { subtask = "b", access = "none" }]',
     "patterns.x.steps[0]: no later step sees its output; name it in an access or leave it out"),
    ('[patterns.x]\npattern = "workflow"\nsteps = [{ subtask = "a", gate = "(" }]',
     "patterns.x.steps[0].gate: expected a regular expression"),
    ('[patterns.x]\npattern = "workflow"\nmax_steps = 1\nsteps = [{ subtask = "a" }, { subtask = "b" }]',
     "patterns.x.steps: expected at most max_steps = 1 steps, got 2"),
])  # fmt: skip
def test_what_a_pattern_may_not_say(text, problem):
    with pytest.raises(ConfigError) as caught:
        config_of(text + "\n")
    assert problem in str(caught.value)
