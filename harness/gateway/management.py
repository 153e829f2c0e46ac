"""Every endpoint but the hot one, on Starlette: models, route, feedback, decisions, reload, health, metrics."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from decimal import Decimal
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from harness.gateway.access import Caller, header, identify, require
from harness.gateway.decide import MODEL, Decision, decide
from harness.gateway.feedback import feedback_row, is_young, read_feedback
from harness.gateway.readiness import readiness
from harness.gateway.reading import read_body
from harness.gateway.recent import Entry
from harness.gateway.records import find_by_completion, find_record
from harness.gateway.request import ChatRequest, parse_chat
from harness.gateway.responses import error_body
from harness.gateway.rows import decision_row, episode_row, request_row
from harness.gateway.state import State
from pointsman.errors import ConfigError, RequestError, StoreError, UserError
from pointsman.ids import is_uuid, new_id
from pointsman.upstream.price import cost
from pointsman.upstream.usage import Usage
from pointsman.words import Scope

OUTPUT_GUESS = 300
"""Tokens of output that a forecast assumes where the request sets no limit."""

Handler = Callable[[Request], Awaitable[Response]]


class Management:
    """The management endpoints of one gateway process."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.app = Starlette(
            routes=[
                Route("/healthz", self.healthz),
                Route("/readyz", self.readyz),
                Route("/metrics", _guarded(self.metrics)),
                Route("/v1/models", _guarded(self.models)),
                Route("/v1/models/{name:path}", _guarded(self.model)),
                Route("/v1/route", _guarded(self.route), methods=["POST"]),
                Route("/v1/feedback", _guarded(self.feedback), methods=["POST"]),
                Route("/v1/decisions/{id}", _guarded(self.decision)),
                Route("/v1/reload", _guarded(self.reload), methods=["POST"]),
            ],
            exception_handlers={404: _no_such_path, 405: _no_such_method},
        )

    async def healthz(self, request: Request) -> Response:
        """Alive: the event loop answers."""
        return _json({"status": "ok"})

    async def readyz(self, request: Request) -> Response:
        """Able to serve and to log; says what is away."""
        ready, details = readiness(self.state)
        return _json(details, 200 if ready else 503)

    async def metrics(self, request: Request) -> Response:
        self._caller(request, "serve")
        return Response(self.state.metrics.render(), media_type="text/plain; version=0.0.4")

    async def models(self, request: Request) -> Response:
        self._caller(request, "serve")
        return _json({"object": "list", "data": self._models()})

    async def model(self, request: Request) -> Response:
        self._caller(request, "serve")
        name = request.path_params["name"]
        found = next((model for model in self._models() if model["id"] == name), None)
        if found is None:
            raise RequestError(f"model {name!r} does not exist here", status=404, code="model_not_found")
        return _json(found)

    async def route(self, request: Request) -> Response:
        """The decision alone: logged as a dry run, never learned from."""
        state = self.state
        caller, body = await self._body(request, "serve")
        chat = parse_chat(body, request.scope["headers"])
        episode = await state.episodes.find(caller, chat.conversation, chat.hints.episode_id)
        decision = await decide(
            chat,
            caller,
            episode,
            state.generation,
            state.breaker,
            state.rng,
            ids=(new_id(), new_id()),
            origin="dry_run",
        )
        await self._log_dry_run(caller, chat, decision, body)
        return _json(self._foretold(chat, decision), headers={"x-pointsman-decision-id": decision.id})

    async def feedback(self, request: Request) -> Response:
        state = self.state
        caller, body = await self._body(request, "feedback")
        word = read_feedback(body, header(request.scope["headers"], b"idempotency-key"))
        decision_id, known = word.decision_id, True
        if word.completion_id is not None:
            decision_id = await find_by_completion(state, caller.project_id, word.completion_id)
            if decision_id is None and state.database_up:
                # Completion ids have no time in them: the row may be on its way from another process.
                known = False
        elif decision_id is not None:
            known = await self._knows(caller, decision_id)
        row = feedback_row(word, caller, decision_id, state)
        await self._append([("feedback", row)])
        if decision_id is not None and (entry := state.recent.get(decision_id)) is not None:
            entry.feedback.append(row)
        return _json(
            {"id": row["id"], "decision_id": decision_id, "episode_id": row["episode_id"], "joined": known},
            200 if known else 202,
        )

    async def decision(self, request: Request) -> Response:
        caller = self._caller(request, "serve")
        decision_id = request.path_params["id"]
        record = None
        if is_uuid(decision_id):
            record = await find_record(self.state, _readable(caller), decision_id)
        if record is None:
            raise RequestError(f"there is no decision {decision_id} here", status=404, code="decision_not_found")
        return _json(record)

    async def reload(self, request: Request) -> Response:
        """Reads the configuration file anew in this process; `pointsman reload` signals every process."""
        self._caller(request, "admin")
        try:
            generation = self.state.reload()
        except ConfigError as error:
            raise RequestError("\n".join(error.problems), status=422, code="bad_configuration") from None
        except UserError as error:
            raise RequestError(str(error), status=422, code="bad_configuration") from None
        return _json({"generation": generation.number, "hash": generation.hash})

    def _caller(self, request: Request, scope: Scope, *, has_body: bool = False) -> Caller:
        client = request.scope.get("client")
        caller = identify(request.scope["headers"], client, self.state.directory, has_body=has_body)
        require(caller, scope)
        return caller

    async def _body(self, request: Request, scope: Scope) -> tuple[Caller, bytes]:
        caller = self._caller(request, scope, has_body=True)
        limit = self.state.generation.config.gateway.max_body_bytes
        body = await read_body(request.receive, request.scope["headers"], limit)  # type: ignore[arg-type]
        if body is None:
            raise RequestError("the client left", status=408)
        return caller, body

    async def _knows(self, caller: Caller, decision_id: str) -> bool:
        """True: a decision of this project. False: may still come. Raises 404 for one that never will."""
        state = self.state
        local = state.recent.get(decision_id)
        if local is not None and local.project_id == caller.project_id:
            return True
        record = await find_record(state, caller.project_id, decision_id) if local is None else None
        if record is not None:
            return True
        if local is not None or not is_young(decision_id):
            raise RequestError(f"there is no decision {decision_id} here", status=404, code="decision_not_found")
        return False

    async def _append(self, rows: list[tuple[str, dict[str, Any]]]) -> None:
        journal = self.state.journal
        try:
            journal.check_room()
            journal.append(rows)
            await journal.synced()
        except StoreError as error:
            raise RequestError(
                f"this cannot be logged now: {error}",
                status=503,
                type="server_error",
                code="log_unavailable",
                retry_after=2,
            ) from error

    async def _log_dry_run(self, caller: Caller, chat: ChatRequest, decision: Decision, body: bytes) -> None:
        state = self.state
        stored = decision.generation.config.log.store_text and chat.store
        row = request_row(
            decision.request_id,
            caller,
            decision.decided_at,
            episode_id=decision.episode.id,
            request=chat,
            body=state.redactor.json(body) if stored else None,
            text=state.redactor.text(chat.conversation.ask) if stored else None,
        )
        row |= {"surface": "route", "learn": False}
        rows = [
            episode_row(decision, caller),
            ("request", row),
            ("decision", decision_row(decision, caller, state.redactor)),
        ]
        await self._append(rows)
        state.recent.add(
            decision.id,
            Entry(caller.project_id, decision.episode.id, chat.size, rows[2][1], request=row),
        )

    def _foretold(self, chat: ChatRequest, decision: Decision) -> dict[str, Any]:
        output = chat.output_tokens or OUTPUT_GUESS
        usage = Usage(chat.prompt_tokens, output, estimated=True)
        scored = decision.decided.scored if decision.decided else None
        return {
            "dry_run": True,
            "decision_id": decision.id,
            "episode_id": decision.episode.id,
            "pattern": "single",
            "worker": decision.draw.chosen,
            "propensity": decision.propensity,
            "probabilities": decision.draw.probabilities,
            "scores": scored.scores if scored else None,
            "parse_status": scored.parse_status if scored else None,
            "explored": decision.draw.explored,
            "forced": decision.draw.forced,
            "router": decision.router,
            "fail_open": decision.decided.fail_open if decision.decided else (),
            "pool_hash": decision.generation.pool.hash,
            "eligible": decision.eligibility.reasons,
            "expected": {
                worker.name: {
                    "cost_usd": _number(cost(usage, worker.price)),
                    "latency_ms": self.state.latencies.get(worker.name),
                    "input_tokens": chat.prompt_tokens,
                    "output_tokens": output,
                }
                for worker in decision.eligibility.workers
            },
        }

    def _models(self) -> list[dict[str, Any]]:
        generation = self.state.generation
        simulation = generation.config.sandbox is not None
        router = generation.chain.routers[0].version
        models: list[dict[str, Any]] = [
            {"id": MODEL, "pointsman": {"kind": "router", "pattern": "single", "version": router.id}},
            {"id": f"{MODEL}@{router.id}", "pointsman": {"kind": "router", "pattern": "single", "version": router.id}},
        ]
        models += [
            {
                "id": worker.name,
                "pointsman": {
                    "kind": "worker",
                    "description": worker.card,
                    "capabilities": sorted(worker.capabilities),
                    "context_window": worker.context_window,
                    "healthy": self.state.breaker.healthy(worker.name),
                },
            }
            for worker in generation.pool.workers
        ]
        for model in models:
            model |= {"object": "model", "created": 0, "owned_by": "pointsman"}
            if simulation:
                model["pointsman"]["simulation"] = "these workers are a simulation (the sandbox), not real models"
        return models


def _readable(caller: Caller) -> str | None:
    """Whose decisions a caller may read: its project's, or with `admin` everyone's."""
    return None if "admin" in caller.scopes else caller.project_id


def _guarded(handler: Handler) -> Handler:
    """Turns a refusal into OpenAI's error object."""

    async def guarded(request: Request) -> Response:
        try:
            return await handler(request)
        except RequestError as error:
            headers = {"retry-after": str(int(error.retry_after))} if error.retry_after else None
            return Response(error_body(error), error.status, headers, media_type="application/json")

    return guarded


async def _no_such_path(request: Request, error: Exception) -> Response:
    message = f"there is no {request.url.path} here"
    return Response(error_body(RequestError(message, code="not_found")), 404, media_type="application/json")


async def _no_such_method(request: Request, error: Exception) -> Response:
    message = f"{request.method} is not allowed on {request.url.path}"
    return Response(error_body(RequestError(message, code="method_not_allowed")), 405, media_type="application/json")


def _json(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(msgspec.json.encode(value), status, headers, media_type="application/json")


def _number(amount: Decimal | None) -> str | None:
    return None if amount is None else format(amount, "f")
