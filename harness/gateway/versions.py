"""Router versions from the database, built and put in their places: what serves each project, canaries, shadows, pins.

A prompted version is built from its own configuration, a trained one from its files in the artifact store; a rule
serves where the file declares it. What cannot be built is logged and left out, and the file's routers serve in its
place.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from harness.gateway.canary import Canary
from harness.gateway.dial import Dial
from harness.routing.base import Router
from harness.routing.candidate import prompted_router
from harness.routing.chain import Chain
from harness.routing.lm import chat_lm
from harness.routing.stored import stored_router
from harness.routing.wary import wary
from pointsman.config import Config, Settings
from pointsman.errors import UserError
from pointsman.pool import Pool, Price
from pointsman.promotion.plan import Plan, Standing
from pointsman.promotion.versions import StoredVersion
from pointsman.upstream.transport import Transport

log = logging.getLogger("pointsman.gateway")


@dataclass(frozen=True)
class Served:
    """What decides for a project. `candidate` is the gate's, None without one; `notes` say what could not be."""

    chain: Chain
    canary: Canary | None = None
    candidate: Chain | None = None
    shadows: tuple[Chain, ...] = ()
    dial: Dial | None = None
    notes: tuple[str, ...] = field(default=(), compare=False)


class Versions:
    """The routers of one generation: the file's, in the order of its chain, and those of the plan."""

    def __init__(self, config: Config, pool: Pool, file: Sequence[Router], clock: object, plan: Plan) -> None:
        self.config = config
        self.pool = pool
        self.file = tuple(file)
        self.plan = plan
        self.notes: list[str] = []
        self._clock = clock
        self._routers: dict[str, Router] = {router.version.id: router for router in file}

    def build(self, settings: Settings, transport: Transport, known: Mapping[str, Router]) -> None:
        """Builds what the plan names and the file does not. `known` are routers of the generation before."""
        for version in self.plan.versions.values():
            if version.id in self._routers:
                continue
            try:
                router = known.get(version.id) or _built(version, self.config, settings, transport)
                if router.version.id != version.id:
                    raise UserError(f"its configuration makes {router.version.id}: it was changed after it was made")
                self._routers[version.id] = router
            except UserError as error:
                self._note(f"router version {version.id} cannot serve: {error}")

    @property
    def routers(self) -> Mapping[str, Router]:
        return self._routers

    def pinned(self) -> dict[str, Chain]:
        """By version, the chain that begins with it."""
        pins = {router.version.id: self._chain(self.file[n:]) for n, router in enumerate(self.file)}
        for version in self._routers:
            if version not in pins and (chain := self.chain_of(version)) is not None:
                pins[version] = chain
        return pins

    def served(self) -> dict[str, Served]:
        """By project; one that is not here is served by the file."""
        return {project: self._served(project, standing) for project, standing in self.plan.projects.items()}

    def shadows(self, but: Chain) -> tuple[Chain, ...]:
        """The shadows' chains, but for one that serves already."""
        chains = (self.chain_of(version) for version in self.plan.shadows)
        return tuple(chain for chain in chains if chain is not None and chain.routers[0] is not but.routers[0])

    def chain_of(
        self, version: str | None, fallback: str | None = None, doubted: Sequence[str] | None = None
    ) -> Chain | None:
        """A version, its fallback, then the file's routers of other kinds; None where it cannot be built.

        With `doubted` (endpoints under a drift alarm) it serves, and gives way where what it knows has changed.
        """
        first = self._routers.get(version or "")
        if first is None:
            return None
        if doubted is not None:
            first = wary(first, self.pool, doubted)
        second = [self._routers[fallback]] if fallback in self._routers and fallback != version else []
        kinds = {first.kind, *(router.kind for router in second)} - {"default"}
        return self._chain([first, *second, *(router for router in self.file if router.kind not in kinds)])

    def file_serves(self, standing: Standing) -> bool:
        """Whether the file's routers serve although something was promoted: a description was changed since."""
        if self.config.router.cards != "file" or standing.cards_hash in (None, self.pool.cards_hash):
            return False
        if standing.cards is None:
            return True
        now = {worker.name: worker.card_hash for worker in self.pool.workers}
        return any(now.get(worker, card) != card for worker, card in standing.cards.items())

    def _served(self, project: str, standing: Standing) -> Served:
        chain = self._base(project, standing)
        served = Served(chain, shadows=self.shadows(chain), dial=Dial.of(standing.dial, chain, self.pool))
        gate = standing.gate
        if gate is None:
            return served
        candidate = self.chain_of(gate.candidate)
        fault = self._fault(standing, chain, candidate)
        if fault is not None:
            self._note(f"gate {gate.id} has no canary here: {fault}")
            return served
        return Served(chain, Canary(gate.id, gate.rho), candidate, served.shadows, served.dial)

    def _base(self, project: str, standing: Standing) -> Chain:
        if standing.promoted is None:
            return self._chain(self.file)
        if self.file_serves(standing):
            self._note(f"project {project}: the file's descriptions were changed, and serve again ([router] cards)")
            return self._chain(self.file)
        served = self.chain_of(standing.promoted, standing.fallback, standing.doubted)
        return served or self._chain(self.file)

    def _fault(self, standing: Standing, chain: Chain, candidate: Chain | None) -> str | None:
        gate = standing.gate
        assert gate is not None
        if gate.pool_epoch != self.pool.epoch:
            return "its workers were others"
        if candidate is None:
            return "its candidate cannot be built"
        serving = chain.routers[0].version.id
        return None if serving == gate.incumbent else f"{serving} serves, and not its incumbent {gate.incumbent}"

    def _chain(self, routers: Sequence[Router]) -> Chain:
        return Chain(routers, self._clock)  # type: ignore[arg-type]

    def _note(self, text: str) -> None:
        self.notes.append(text)


def _built(version: StoredVersion, config: Config, settings: Settings, transport: Transport) -> Router:
    if version.kind != "harness":
        return stored_router(version, config, settings)
    section = config.router
    address = version.config.get("base_url")
    if section.base_url is None or address != section.base_url:
        # An address from a row of the database gets no request and no key.
        raise UserError(f"its router LLM is at {address!r}, and [router] base_url is {section.base_url!r}")
    connect = min(config.timeouts.connect, section.deadline)
    lm = chat_lm(transport, section.base_url, settings.secret(section.api_key_env), connect)
    price = Price.of(section.price) if version.config.get("model") == section.model else None
    return prompted_router(
        version.config, lm, deadline=section.deadline, price=price, parent_id=version.parent_id
    )  # fmt: skip
