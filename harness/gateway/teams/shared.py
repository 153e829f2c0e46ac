"""What all teams of one gateway process share: memory, the router LLM, and what their runs took."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.engine.deciders import Orchestrator
from harness.engine.engine import Engine
from harness.engine.postgres_memory import PostgresMemory
from harness.engine.state import State as RunState
from harness.gateway.access import Caller
from harness.gateway.decide import ask_of, consents
from harness.gateway.generation import Generation
from harness.gateway.request import ChatRequest
from harness.gateway.teams import forecast
from harness.gateway.teams.choice import Drawn, draw_pattern, pattern_chain
from harness.gateway.teams.names import patterns_of
from harness.routing.chain import Chain
from harness.routing.lm import chat_lm
from pointsman.pool import Price

if TYPE_CHECKING:
    from harness.gateway.state import State

PLAN_SECONDS = 30.0
"""The longest that a router LLM may take over a plan, where the request's own deadline is not shorter."""


class Teams:
    """One per process."""

    def __init__(self, state: State) -> None:
        self._state = state
        self.memory = PostgresMemory(state.engine, redact=lambda value: state.redactor.value(value))
        self.tallies = forecast.Tallies()
        self._built: tuple[Generation, Orchestrator | None, Chain | None, Orchestrator | None] | None = None

    def orchestrator(self, generation: Generation) -> Orchestrator | None:
        """The router LLM as a writer of plans; None where none is configured."""
        return self._of(generation)[0]

    def conductor(self, generation: Generation) -> Orchestrator | None:
        """The learned conductor; None where none is configured."""
        return self._of(generation)[2]

    async def draw(self, names: Sequence[str], generation: Generation, request: ChatRequest, caller: Caller) -> Drawn:
        """One of several patterns, by the router."""
        chain = self._of(generation)[1]
        assert chain is not None, "several patterns are only offered where a router LLM is configured"
        epsilon = generation.config.exploration.epsilon if consents(request, caller) else 0.0
        return await draw_pattern(chain, names, generation, ask_of(request), epsilon, self._state.rng)

    async def waiting(self, caller: Caller, request: ChatRequest, generation: Generation) -> RunState | None:
        """The run whose tool calls this request answers, if its pattern is still what it was."""
        if not request.conversation.tool_call_ids:
            return None
        item = await self.memory.waiting(caller.project_id, request.conversation.tool_call_ids)
        run = Engine.revived(item)
        pattern = patterns_of(generation.config).get(run.name) if run is not None else None
        return run if pattern is not None and run is not None and pattern.pattern == run.pattern else None

    def _of(self, generation: Generation) -> tuple[Orchestrator | None, Chain | None, Orchestrator | None]:
        if self._built is None or self._built[0] is not generation:
            self._built = (generation, *self._build(generation), self._learned(generation))
        return self._built[1:]

    def _build(self, generation: Generation) -> tuple[Orchestrator | None, Chain | None]:
        state, section = self._state, generation.config.router
        if section.model is None or section.base_url is None:
            return None, None
        connect = min(generation.config.timeouts.connect, section.deadline)
        lm = chat_lm(state.transport, section.base_url, state.settings.secret(section.api_key_env), connect)
        asked = Orchestrator(lm, section.model, Price.of(section.price), PLAN_SECONDS)
        return asked, pattern_chain(generation, lm) if section.patterns else None

    def _learned(self, generation: Generation) -> Orchestrator | None:
        state, section = self._state, generation.config.conductor
        if section is None:
            return None
        connect = min(generation.config.timeouts.connect, section.deadline)
        lm = chat_lm(state.transport, section.base_url, state.settings.secret(section.api_key_env), connect)
        return Orchestrator(lm, section.model, Price.of(section.price), section.deadline)
