"""`[patterns.NAME]` of cascades, sidekicks, handoffs and votes: what they become, and what is refused."""

from __future__ import annotations

import pytest

from harness.engine.configured import policy_of
from harness.engine.patterns.cascade import Cascade, CascadeSettings
from harness.engine.patterns.handoff import Handoff, HandoffSettings
from harness.engine.patterns.sidekick import Sidekick, SidekickSettings
from harness.engine.patterns.vote import Vote, VoteSettings
from pointsman.config.load import load_text
from pointsman.errors import ConfigError

WORKERS = "".join(
    f'\n[[workers]]\nname = "{name}"\ndescription = "d"\nmodel = "m"\nbase_url = "http://127.0.0.1:1/v1"\n'
    f"capabilities = {['tools'] if name == 'ada' else []}\n"
    for name in ("ada", "bob")
)


def config_of(text):
    return load_text(f"[patterns.x]\n{text}\n{WORKERS}").patterns["x"]


@pytest.mark.parametrize(("text", "kind", "settings"), [
    ('pattern = "cascade"\ntiers = [["ada"], []]\nverifier = "bob"\nthreshold = 0.7', Cascade,
     CascadeSettings((("ada",), ()), "bob", 0.7)),
    ('pattern = "sidekick"\nlead = "ada"\nsidekicks = ["bob"]\nmax_delegations = 2\nwithhold = 0.1\ncompact_at = 900',
     Sidekick, SidekickSettings(("bob",), "ada", 2, 0.1, 900)),
    ('pattern = "handoff"\nstart = "ada"\nworkers = ["ada", "bob"]\nmax_handoffs = 1\ncontext = "last"', Handoff,
     HandoffSettings("ada", frozenset({"ada", "bob"}), 1, "last")),
    ('pattern = "vote"\nn = 5\nworkers = ["ada", "bob"]\nmethod = "judge"\njudge = "bob"', Vote,
     VoteSettings(5, ("ada", "bob"), False, "judge", "bob")),
])  # fmt: skip
def test_what_a_pattern_becomes(text, kind, settings):
    policy = policy_of("x", config_of(text))
    assert type(policy) is kind and policy.name == "x"
    assert policy.settings == settings


def test_a_certified_threshold_stands_in_place_of_the_files():
    config = config_of('pattern = "cascade"\ntiers = [["ada"], ["bob"]]\nthreshold = 0.7')
    settings = policy_of("x", config, certified=0.83).settings
    assert (settings.threshold, settings.certified) == (0.83, True)


@pytest.mark.parametrize(("text", "problem"), [
    ('pattern = "cascade"', "patterns.x.tiers: expected at least one, a cascade is nothing without"),
    ('pattern = "sidekick"', "patterns.x.sidekicks: expected at least one, a sidekick is nothing without"),
    ('pattern = "cascade"\ntiers = [["ada"], ["zed"]]',
     "patterns.x.tiers[1]: \"zed\" is no worker, expected some of ['ada', 'bob']"),
    ('pattern = "cascade"\ntiers = [["ada"]]\nverifier = "zed"',
     "patterns.x.verifier: \"zed\" is no worker, expected one of ['ada', 'bob']"),
    ('pattern = "sidekick"\nsidekicks = ["bob"]\nlead = "zed"', 'patterns.x.lead: "zed" is no worker'),
    ('pattern = "sidekick"\nsidekicks = ["ada"]\nlead = "bob"',
     'patterns.x.lead: "bob" does not declare the capability tools, and a sidekick takes them'),
    ('pattern = "handoff"\nstart = "ada"\nworkers = ["bob"]', 'patterns.x.start: "ada" is not among workers'),
    ('pattern = "handoff"\nthreshold = 0.5', "patterns.x.threshold: belongs to cascade, and this is a handoff"),
    ('pattern = "vote"\nsame = true\nworkers = ["ada"]', "patterns.x.workers: with same the router draws the worker"),
    ('pattern = "vote"\nn = 2\nworkers = ["ada", "bob", "ada"]', "patterns.x.workers: 3 workers for n = 2 answers"),
    ('pattern = "vote"\njudge = "ada"', 'patterns.x.judge: only read where method is "judge"'),
])  # fmt: skip
def test_what_a_pattern_may_not_say(text, problem):
    with pytest.raises(ConfigError) as caught:
        config_of(text)
    assert problem in str(caught.value)
