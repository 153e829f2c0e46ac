"""A node's choice, by whichever way its act says: drawn, named, picked among options, or written by an LLM."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from harness.engine import rows
from harness.engine.acts import Act, Named, Pick, Route, Write, usable
from harness.engine.request import seed_of
from harness.engine.state import Node
from harness.routing.exploration import Draw, forced
from pointsman.ids import new_id

if TYPE_CHECKING:
    from harness.engine.run import Run


class Chosen(NamedTuple):
    """The decision's columns, and the orchestrator's call where one was asked."""

    row: dict[str, Any]
    call: dict[str, Any] | None = None


async def choose(run: Run, act: Act, node: Node) -> Chosen | None:
    """Fills `node` with the choice. None where there is nobody to choose: then the node has failed."""
    match act.choose:
        case Route():
            return await _routed(run, act, act.choose, node)
        case Named():
            return _named(run, act.choose, node)
        case Pick():
            return _picked(run, act.choose, node)
        case Write():
            return await _written(run, act.choose, node)


async def _routed(run: Run, act: Act, route: Route, node: Node) -> Chosen | None:
    eligible = usable(run.engine.eligible(), route)
    if not eligible.workers:
        node.nobody()
        return None
    seed = seed_of(run.state.request.seed, node.key)
    choice = await run.engine.deciders.decide(act.kind, route.ask, eligible, seed, route.roles)
    run.purse.routed(rows.router_tokens(choice), rows.router_cost(choice))
    name = choice.draw.chosen
    node.worker = node.chosen = name
    node.propensity = choice.draw.probabilities[name]
    node.role = choice.role.role if choice.role is not None else None
    others = [worker.name for worker in eligible.workers if worker.name != name]
    node.fallbacks = sorted(others, key=lambda other: -choice.scores.get(other, 0.0))
    return Chosen(rows.chosen(choice, eligible))


def _named(run: Run, named: Named, node: Node) -> Chosen:
    eligible = run.engine.eligible()
    node.worker = node.chosen = named.worker
    node.propensity = 1.0
    node.fallbacks = [worker.name for worker in eligible.workers if worker.name != named.worker]
    masked = eligible.reasons.get(named.worker, "gone") not in (None, "unhealthy")
    row = {"eligible": eligible.reasons, **rows.drawn(forced(named.worker, named.forced))}
    return Chosen(row | {"flags": ["masked"]} if masked else row)


def _picked(run: Run, pick: Pick, node: Node) -> Chosen:
    options = dict(sorted(pick.probabilities.items()))
    if len(options) == 1:
        (name,) = options
        drawn = Draw({name: 1.0}, name, forced=pick.forced)
    else:
        uniform = random.Random(seed_of(run.state.request.seed, node.key)).random()
        drawn = Draw(options, _at(options, uniform), (uniform,))
    node.chosen, node.propensity = drawn.chosen, drawn.probabilities[drawn.chosen]
    return Chosen({"eligible": dict.fromkeys(options), **rows.drawn(drawn)})


async def _written(run: Run, write: Write, node: Node) -> Chosen | None:
    eligible = run.engine.eligible()
    if not eligible.workers:
        node.nobody()
        return None
    seed = seed_of(run.state.request.seed, node.key)
    prompt = write.prompt(eligible.workers, seed)
    node.options = dict(prompt.options)
    said = await run.engine.deciders.write(prompt.messages, prompt.max_tokens, seed)
    run.purse.routed((said.usage.input_tokens or 0, said.usage.output_tokens or 0), said.usage.cost)
    node.text, node.fault = said.text, said.fault
    if said.fault is not None:
        node.status, node.reason = "failed", f"the orchestrator failed: {said.fault}"
    row = rows.written(node, said, eligible, prompt.template_hash)
    reading = run.read(node)
    if reading is not None:
        node.chosen = reading.chosen
        row |= {"chosen": reading.chosen, "parse_status": reading.parse_status, "flags": list(reading.flags) or None}
        row |= {"plan": dict(reading.plan)} if reading.plan is not None else {}
    return Chosen(row, rows.orchestrator_call(run.state, node, said, prompt.messages, new_id()))


def _at(options: Mapping[str, float], uniform: float) -> str:
    """The option at `uniform` of the cumulated probabilities, in the order of their names."""
    total = 0.0
    for name, probability in options.items():
        total += probability
        if uniform < total:
            return name
    return list(options)[-1]
