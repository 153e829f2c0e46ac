"""What `[patterns.NAME]` must hold beyond the types of its keys."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from pointsman.config.model import Config, PatternConfig, StepConfig

BUILT_IN = ("single", "trinity", "ultra")
"""The patterns that are there without a section of their own."""
_OF_ALL = ("pattern", "description", "max_calls", "max_tokens", "budget", "deadline")
_OF: Mapping[str, tuple[str, ...]] = {
    "trinity": ("max_turns", "roles", "role_choice", "stop_score", "feedback"),
    "workflow": ("max_steps", "rounds", "repairs", "steps"),
    "cascade": ("tiers", "verifier", "threshold"),
    "sidekick": ("lead", "sidekicks", "max_delegations", "withhold", "compact_at"),
    "handoff": ("start", "workers", "max_handoffs", "context"),
    "vote": ("n", "workers", "same", "method", "judge"),
}
_NEEDED: Mapping[str, str] = {"cascade": "tiers", "sidekick": "sidekicks"}
"""The one list without which a pattern is nothing."""


def pattern_problems(config: Config) -> Iterator[str]:
    """A line per fault: key, what is wrong, what was expected."""
    names = [worker.name for worker in config.workers]
    yield from _offered(config)
    for name, pattern in config.patterns.items():
        place = f"patterns.{name}"
        if name in names or name == "default":
            yield f'{place}: "{name}" is a worker\'s name, expected a name of its own'
        yield from _foreign_keys(place, pattern)
        yield from _roles(place, pattern, names)
        yield from _steps(place, pattern.steps, names, pattern.max_steps)
        yield from _named(place, pattern, names)
        yield from _able(place, pattern, config)
        yield from _teams(place, pattern)


def _offered(config: Config) -> Iterator[str]:
    """What the router may choose from for the model `pointsman`."""
    offered, known = config.router.patterns, dict.fromkeys([*BUILT_IN, *config.patterns])
    for name in offered:
        if name not in known:
            yield f'router.patterns: "{name}" is no pattern, expected some of {list(known)}'
    if offered and config.router.model is None:
        yield "router.patterns: a router LLM chooses among them; set router.model, or remove them"
    if len(set(offered)) < len(offered):
        yield "router.patterns: expected each name once"


def _foreign_keys(place: str, pattern: PatternConfig) -> Iterator[str]:
    allowed = {*_OF_ALL, *_OF.get(pattern.pattern, ())}
    for key in sorted(pattern.model_fields_set - allowed):
        owner = next((kind for kind, keys in _OF.items() if key in keys), "another pattern")
        yield f"{place}.{key}: belongs to {owner}, and this is a {pattern.pattern}; remove it"


def _roles(place: str, pattern: PatternConfig, names: Sequence[str]) -> Iterator[str]:
    if pattern.roles and not any(role.part == "solver" for role in pattern.roles):
        yield f'{place}.roles: expected at least one role whose part is "solver"'
    seen: set[str] = set()
    for position, role in enumerate(pattern.roles):
        if role.name in seen:
            yield f'{place}.roles[{position}].name: "{role.name}" is used twice, expected a name of its own'
        seen.add(role.name)
        for worker in role.workers:
            if worker not in names:
                yield f'{place}.roles[{position}].workers: "{worker}" is no worker, expected some of {list(names)}'


def _steps(place: str, steps: Sequence[StepConfig], names: Sequence[str], max_steps: int) -> Iterator[str]:
    if len(steps) > max_steps:
        yield f"{place}.steps: expected at most max_steps = {max_steps} steps, got {len(steps)}"
    used: set[int] = set()
    for number, step in enumerate(steps, 1):
        where = f"{place}.steps[{number - 1}]"
        if step.worker is not None and step.worker not in names:
            yield f'{where}.worker: "{step.worker}" is no worker, expected one of {list(names)}'
        reads = range(1, number) if step.access == "all" else () if step.access == "none" else step.access
        used.update(reads)
        if wrong := [read for read in reads if not 1 <= read < number]:
            yield f"{where}.access: {wrong[0]} is no earlier step; they are counted from 1"
        if step.gate is not None:
            try:
                re.compile(step.gate)
            except re.error as error:
                yield f"{where}.gate: expected a regular expression: {error}"
    for number in range(1, len(steps)):
        if number not in used:
            yield f"{place}.steps[{number - 1}]: no later step sees its output; name it in an access or leave it out"


def _named(place: str, pattern: PatternConfig, names: Sequence[str]) -> Iterator[str]:
    """Every worker that a key names must be one."""
    for key in ("verifier", "lead", "start", "judge"):
        name = getattr(pattern, key)
        if name is not None and name not in names:
            yield f'{place}.{key}: "{name}" is no worker, expected one of {list(names)}'
    lists = {"sidekicks": pattern.sidekicks, "workers": pattern.workers}
    lists |= {f"tiers[{number}]": tier for number, tier in enumerate(pattern.tiers)}
    for key, listed in lists.items():
        for name in listed:
            if name not in names:
                yield f'{place}.{key}: "{name}" is no worker, expected some of {list(names)}'


def _able(place: str, pattern: PatternConfig, config: Config) -> Iterator[str]:
    """Who delegates or hands over does it by calling a tool."""
    unable = [worker.name for worker in config.workers if "tools" not in worker.capabilities]
    for key in ("lead", "start"):
        if (name := getattr(pattern, key)) in unable:
            yield f'{place}.{key}: "{name}" does not declare the capability tools, and a {pattern.pattern} takes them'


def _teams(place: str, pattern: PatternConfig) -> Iterator[str]:
    needed = _NEEDED.get(pattern.pattern)
    if needed is not None and not getattr(pattern, needed):
        yield f"{place}.{needed}: expected at least one, a {pattern.pattern} is nothing without"
    if pattern.pattern == "handoff" and pattern.start and pattern.workers and pattern.start not in pattern.workers:
        yield f'{place}.start: "{pattern.start}" is not among workers, expected one of {pattern.workers}'
    if pattern.pattern == "vote":
        if pattern.same and pattern.workers:
            yield f"{place}.workers: with same the router draws the worker; remove one of the two"
        if len(pattern.workers) > pattern.n:
            yield f"{place}.workers: {len(pattern.workers)} workers for n = {pattern.n} answers; raise n"
        if pattern.judge is not None and pattern.method != "judge":
            yield f'{place}.judge: only read where method is "judge"; remove it or set method'
