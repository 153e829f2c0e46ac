"""A canary by disagreement: where the picks of two routers differ, the candidate's is taken with probability ρ.

    ε draw → explored: any worker, and no gate's business
           → else, where the picks differ: the arm, drawn once per episode at its first disagreement, and kept

The logged vector is the exact mixture of the draw. With π_i and π_c what each router would be drawn from (ties share),

    p(a) = ε/K + (1 − ε) [(1 − ρ) π_i(a) + ρ π_c(a)]         before the episode's arm is drawn
    p(a) = ε/K + (1 − ε) π_arm(a)                             afterwards

The arm's uniform is a MAC of gate and episode under the project's secret: every gateway draws the same one, and
nobody outside can tell it beforehand. Which arm an episode has is remembered, since ρ changes as a gate goes on.
"""

from __future__ import annotations

import random
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence

import msgspec

from harness.gateway.episodes import Episode
from harness.routing.exploration import Draw
from pointsman.errors import BrokenInvariant
from pointsman.ids import mac
from pointsman.words import GateArm

REMEMBERED = 20_000
_DIGITS = 13  # hexadecimal: 52 bits, what a double holds exactly

Lookup = Callable[[str, str], Awaitable[GateArm | None]]
"""(gate id, episode id) → the arm that the episode was given, from Postgres; None: none, or not known in time."""


class Canary(msgspec.Struct, frozen=True):
    """A gate that runs: its id, and the candidate's share of the disagreements now."""

    gate_id: str
    rho: float


class Mixed(msgspec.Struct, frozen=True):
    """What was drawn under a gate. `arm` None: the picks were one, or it was explored. `fresh`: drawn just now.

    `incumbent` and `candidate` are the picks; `draw.draw` holds the uniforms of ε, of the worker and of the arm.
    """

    draw: Draw
    incumbent: str
    candidate: str
    arm: GateArm | None
    fresh: bool


class Arms:
    """Which arm each episode has, in one gateway process; what another one drew is looked up in Postgres."""

    def __init__(self, lookup: Lookup) -> None:
        self._lookup = lookup
        self._arms: OrderedDict[tuple[str, str], GateArm] = OrderedDict()

    async def find(self, gate_id: str, episode: Episode) -> GateArm | None:
        """The arm of an episode, None where none was drawn yet. A new episode is not looked up."""
        known = self._arms.get((gate_id, episode.id))
        if known is not None or episode.source == "new":
            return known
        found = await self._lookup(gate_id, episode.id)
        if found is not None:
            self.keep(gate_id, episode.id, found)
        return found

    def keep(self, gate_id: str, episode_id: str, arm: GateArm) -> None:
        self._arms[gate_id, episode_id] = arm
        if len(self._arms) > REMEMBERED:
            self._arms.popitem(last=False)


def arm_uniform(secret: bytes, gate_id: str, episode_id: str) -> float:
    """In [0, 1): the episode's own number in this gate."""
    digits = mac(secret, f"arm\x1f{gate_id}\x1f{episode_id}".encode())[:_DIGITS]
    return int(digits, 16) / float(16**_DIGITS)


def may_differ(incumbent: Mapping[str, float], candidate: Mapping[str, float]) -> bool:
    """Whether an arm can make a difference here."""
    return best(incumbent) != best(candidate)


def mixed_draw(
    incumbent: Mapping[str, float],
    candidate: Mapping[str, float],
    *,
    epsilon: float,
    rho: float,
    arm_at: float,
    kept: GateArm | None,
    rng: random.Random,
) -> Mixed:
    """A draw under a gate. `arm_at` is the episode's uniform, `kept` the arm that it has already."""
    if not 0 < rho < 1 or set(incumbent) != set(candidate):
        raise BrokenInvariant(f"a gate needs 0 < ρ < 1 and two scorings of the same workers, got ρ = {rho}")
    uniforms = (rng.random(), rng.random(), arm_at)
    return _mixed(incumbent, candidate, epsilon, rho, uniforms, kept)


def drawn_again(
    incumbent: Mapping[str, float],
    candidate: Mapping[str, float],
    epsilon: float,
    rho: float,
    uniforms: Sequence[float],
    kept: GateArm | None,
) -> Mixed:
    """What a stored row's uniforms drew."""
    first, second, third = uniforms
    return _mixed(incumbent, candidate, epsilon, rho, (first, second, third), kept)


def best(scores: Mapping[str, float]) -> list[str]:
    """The workers with the highest score, in the order of their names."""
    highest = max(scores.values())
    return [name for name in sorted(scores) if scores[name] == highest]


def _mixed(
    incumbent: Mapping[str, float],
    candidate: Mapping[str, float],
    epsilon: float,
    rho: float,
    uniforms: tuple[float, float, float],
    kept: GateArm | None,
) -> Mixed:
    names, ours, theirs = sorted(incumbent), best(incumbent), best(candidate)
    pick_i, pick_c = _at(ours, uniforms[1]), _at(theirs, uniforms[1])
    share = {None: rho, "incumbent": 0.0, "candidate": 1.0}[kept]
    vector = _vector(names, ours, theirs, epsilon, share)
    if uniforms[0] < epsilon:
        drawn = Draw(vector, _at(names, uniforms[1]), uniforms, explored=True)
        return Mixed(drawn, pick_i, pick_c, None, fresh=False)
    if pick_i == pick_c:
        return Mixed(Draw(vector, pick_i, uniforms), pick_i, pick_c, None, fresh=False)
    arm: GateArm = kept or ("candidate" if uniforms[2] < rho else "incumbent")
    chosen = pick_c if arm == "candidate" else pick_i
    return Mixed(Draw(vector, chosen, uniforms), pick_i, pick_c, arm, fresh=kept is None)


def _vector(
    names: Sequence[str], ours: Sequence[str], theirs: Sequence[str], epsilon: float, share: float
) -> dict[str, float]:
    floor = epsilon / len(names)
    vector = dict.fromkeys(names, floor)
    for chosen, weight in ((ours, 1 - share), (theirs, share)):
        for name in chosen:
            vector[name] += (1 - epsilon) * weight / len(chosen)
    return vector


def _at(names: Sequence[str], uniform: float) -> str:
    return names[int(uniform * len(names))]
