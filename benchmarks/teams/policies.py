"""The patterns as they are compared, at their defaults, and the tasks that they are compared on."""

from __future__ import annotations

from itertools import islice

from teams.world import Scene

from harness.engine.acts import Policy
from harness.engine.patterns.cascade import Cascade, CascadeSettings
from harness.engine.patterns.handoff import Handoff, HandoffSettings
from harness.engine.patterns.sidekick import Sidekick, SidekickSettings
from harness.engine.patterns.single import Single
from harness.engine.patterns.trinity import Trinity
from harness.engine.patterns.vote import Vote, VoteSettings
from harness.engine.patterns.workflow import Workflow
from pointsman.sandbox.tasks import Task, tasks
from pointsman.sandbox.team_tasks import NAMES, team_tasks

ONE_SKILL = "one_skill"
FAMILIES = (*NAMES, ONE_SKILL)


def policies(scene: Scene) -> dict[str, Policy]:
    """Who is cheap goes by price alone; who is good is left to the router."""
    cheap = scene.by_price
    return {
        "single": Single(),
        "trinity": Trinity(),
        "workflow": Workflow(),
        "cascade": Cascade(CascadeSettings(((cheap[0],), ()))),
        "sidekick": Sidekick(SidekickSettings(tuple(cheap[:2]))),
        "handoff": Handoff(HandoffSettings(start=cheap[0])),
        "vote": Vote(VoteSettings()),
    }


def exam(seed: int, n: int) -> dict[str, list[Task]]:
    """`n` tasks of each family, of wordings that are asked nowhere else."""
    found = {name: list(team_tasks(seed, "held_out", n, [name])) for name in NAMES}
    return {**found, ONE_SKILL: list(islice(tasks(seed, "held_out"), n))}
