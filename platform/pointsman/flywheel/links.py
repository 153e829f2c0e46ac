"""The links of a turn that are jobs: what each starts, and what is concluded from what came of it.

    audit      asks all workers logged requests (only where `[flywheel] audit` says how many)
    labels     makes a label set of the log
    baselines  trains classic routers on it
    sft        trains a learned router on it
    evolve     searches on from that one
    traces, conductor, grpo   the same for a conductor of teams: examples, SFT, GRPO
    evaluate   compares them all on rows that no training saw

A link whose job fails or skips may be done without (`optional`): the turn goes on and its story says so. `labels` and
`evaluate` may not: without them there is nothing to serve, or nothing known of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pointsman.config.model import FlywheelConfig
from pointsman.flywheel.results import best_candidate, router_numbers
from pointsman.flywheel.store import Turn
from pointsman.jobs.view import JobView
from pointsman.words import LinkState, TurnState


@dataclass(frozen=True)
class Order:
    """A job to start. `paid` jobs get what is left of the turn's budget."""

    kind: str
    params: Mapping[str, Any]
    paid: bool = False


@dataclass(frozen=True)
class Conclusion:
    """What a link has come to. `ends`: the state in which the turn ends here; `facts` are for later links."""

    state: LinkState
    reason: str | None = None
    numbers: Mapping[str, Any] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    ends: TurnState | None = None


@dataclass(frozen=True)
class JobLink:
    """One link. `orders` gives the jobs, or in a word why there are none; `conclude` reads the jobs that are done."""

    name: str
    orders: Callable[[Turn, FlywheelConfig], list[Order] | str]
    conclude: Callable[[Turn, Sequence[JobView]], Conclusion]
    optional: bool = True


def _audit(turn: Turn, config: FlywheelConfig) -> list[Order] | str:
    if not config.audit:
        return "[flywheel] audit is 0: the turn learns from what is there"
    return [Order("audit", {"from_log": config.audit, "name": f"turn-{turn.id}", "seed": config.seed}, paid=True)]


def _audited(turn: Turn, jobs: Sequence[JobView]) -> Conclusion:
    return Conclusion("done", numbers=_flat(jobs[0].result))


def _labels(turn: Turn, config: FlywheelConfig) -> list[Order] | str:
    origins = ["probe", "audit", "replay", "traffic"]
    return [Order("labels", {"origins": origins, "toy": config.toy, "seed": config.seed})]


def _labelled(turn: Turn, jobs: Sequence[JobView]) -> Conclusion:
    result = jobs[0].result or {}
    return Conclusion("done", numbers=_flat(result), facts={"labels": result["label_set"]})


def _baselines(turn: Turn, config: FlywheelConfig) -> list[Order] | str:
    common = {"labels": turn.facts["labels"], "kind": "classic", "seed": config.seed}
    return [Order("train", common | {"method": method}) for method in config.methods]


def _trained_baselines(turn: Turn, jobs: Sequence[JobView]) -> Conclusion:
    made = [job.result["router_version"] for job in jobs if job.result]
    numbers = {str(job.params.get("method")): router_numbers(job.result) for job in jobs}
    return Conclusion("done", numbers=numbers, facts=_with_routers(turn, made))


def _sft(turn: Turn, config: FlywheelConfig) -> list[Order] | str:
    if not config.learned:
        return "[flywheel] learned is off"
    chosen = {"labels": turn.facts["labels"], "kind": "learned", "tuner": config.tuner, "seed": config.seed}
    chosen |= {"backbone": config.backbone} if config.backbone else {}
    heads = ("card", "index") if config.evolve else ("card",)  # evolution starts from rows of weights
    return [Order("train", chosen | {"head": head}) for head in heads]


def _trained(turn: Turn, jobs: Sequence[JobView]) -> Conclusion:
    made = {str(job.params["head"]): job.result["router_version"] for job in jobs if job.result}
    numbers = {str(job.params["head"]): router_numbers(job.result) for job in jobs}
    return Conclusion("done", numbers=numbers, facts=_with_routers(turn, list(made.values())) | {"learned": made})


def _evolve(turn: Turn, config: FlywheelConfig) -> list[Order] | str:
    if not config.evolve:
        return "[flywheel] evolve is off"
    start = turn.facts.get("learned", {}).get("index")
    if start is None:
        return "there is no learned router with an index head to start from"
    chosen = {"router": start, "labels": turn.facts["labels"], "generations": config.generations}
    return [Order("evolve", chosen)]


def _evolved(turn: Turn, jobs: Sequence[JobView]) -> Conclusion:
    result = jobs[0].result or {}
    version = result.get("router_version")
    if version is None:
        return Conclusion("refused", "it is not shown to be better than what it began from", router_numbers(result))
    return Conclusion("done", numbers=router_numbers(result), facts=_with_routers(turn, [version]))


def _traces(turn: Turn, config: FlywheelConfig) -> list[Order] | str:
    if not config.conductor:
        return "[flywheel] conductor is off"
    return [Order("conductor_data", {"source": "log", "seed": config.seed})]


def _traced(turn: Turn, jobs: Sequence[JobView]) -> Conclusion:
    return Conclusion("done", numbers=_flat(jobs[0].result), facts={"traces": jobs[0].id})


def _conductor(turn: Turn, config: FlywheelConfig) -> list[Order] | str:
    if "traces" not in turn.facts:
        return "there are no traces to learn from"
    chosen = {"data": turn.facts["traces"], "seed": config.seed}
    return [Order("conductor_sft", chosen | ({"base": config.conductor_base} if config.conductor_base else {}))]


def _conducted(turn: Turn, jobs: Sequence[JobView]) -> Conclusion:
    return Conclusion("done", numbers=_flat(jobs[0].result), facts={"conductor": jobs[0].id})


def _grpo(turn: Turn, config: FlywheelConfig) -> list[Order] | str:
    if "conductor" not in turn.facts:
        return "there is no fine-tuned conductor to start from"
    chosen = {"start": turn.facts["conductor"], "seed": config.seed}
    return [
        Order("conductor_grpo", chosen | ({"file": config.conductor_tasks} if config.conductor_tasks else {}), True)
    ]


def _optimised(turn: Turn, jobs: Sequence[JobView]) -> Conclusion:
    result = jobs[0].result or {}
    if result.get("refused"):
        return Conclusion("refused", str(result.get("reason") or "it did not pay"), _flat(result))
    return Conclusion("done", "[conductor] names the server of what serves", _flat(result))


def _evaluate(turn: Turn, config: FlywheelConfig) -> list[Order] | str:
    chosen = {"labels": turn.facts["labels"], "routers": turn.facts["routers"], "ablations": config.ablations}
    return [Order("evaluate", chosen | {"seed": config.seed})]


def _evaluated(turn: Turn, jobs: Sequence[JobView]) -> Conclusion:
    result = jobs[0].result or {}
    found = best_candidate(result)
    if found.version is None:
        return Conclusion("refused", found.why, found.numbers, ends="refused")
    return Conclusion("done", found.why, found.numbers, facts={"candidate": found.version})


JOB_LINKS: tuple[JobLink, ...] = (
    JobLink("audit", _audit, _audited),
    JobLink("labels", _labels, _labelled, optional=False),
    JobLink("baselines", _baselines, _trained_baselines),
    JobLink("sft", _sft, _trained),
    JobLink("evolve", _evolve, _evolved),
    JobLink("traces", _traces, _traced),
    JobLink("conductor", _conductor, _conducted),
    JobLink("grpo", _grpo, _optimised),
    JobLink("evaluate", _evaluate, _evaluated, optional=False),
)


def _with_routers(turn: Turn, made: Sequence[str]) -> dict[str, Any]:
    return {"routers": list(dict.fromkeys([*turn.facts.get("routers", ()), *made]))}


def _flat(result: Mapping[str, Any] | None) -> dict[str, Any]:
    """The plain numbers and words of a job's result, for the story."""
    return {key: value for key, value in (result or {}).items() if isinstance(value, (int, float, str, bool))}
