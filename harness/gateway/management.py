"""Every endpoint but those that ask a worker, on Starlette: models, route, feedback, decisions, health and so on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from harness.gateway.access import Caller, header, identify, require
from harness.gateway.decide import MODEL
from harness.gateway.dry_run import dry_run
from harness.gateway.feedback import feedback_row, read_feedback
from harness.gateway.jobs import JobEndpoints
from harness.gateway.log_rows import log_rows
from harness.gateway.openapi import encoded
from harness.gateway.readiness import readiness
from harness.gateway.reading import read_body
from harness.gateway.records import find_record
from harness.gateway.responses import internal_fault, retry_after
from harness.gateway.state import State
from harness.gateway.subject import decision_named, find_subject
from harness.gateway.surfaces.anthropic import count_tokens_reply
from harness.gateway.surfaces.served import SURFACES, surface_of
from harness.gateway.teams.names import models as patterns
from pointsman.errors import BrokenInvariant, ConfigError, RequestError, UserError
from pointsman.ids import is_uuid
from pointsman.words import Scope

Handler = Callable[[Request], Awaitable[Response]]


class Management:
    """The management endpoints of one gateway process."""

    def __init__(self, state: State) -> None:
        self.state = state
        jobs = JobEndpoints(state, self._caller, self._body)
        self.app = Starlette(
            routes=[
                Route("/healthz", self.healthz),
                Route("/readyz", self.readyz),
                Route("/metrics", _guarded(self.metrics)),
                Route("/openapi.json", _guarded(self.openapi)),
                *(Route(path, _elsewhere, methods=["POST"]) for path in SURFACES),
                Route("/v1/messages/count_tokens", _guarded(self.count_tokens), methods=["POST"]),
                Route("/v1/models", _guarded(self.models)),
                Route("/v1/models/{name:path}", _guarded(self.model)),
                Route("/v1/route", _guarded(self.route), methods=["POST"]),
                Route("/v1/feedback", _guarded(self.feedback), methods=["POST"]),
                Route("/v1/decisions/{id}", _guarded(self.decision)),
                Route("/v1/reload", _guarded(self.reload), methods=["POST"]),
                Route("/v1/jobs", _guarded(jobs.collection), methods=["GET", "POST"]),
                Route("/v1/jobs/{id}", _guarded(jobs.one), methods=["GET", "DELETE"]),
                Route("/v1/jobs/{id}/cancel", _guarded(jobs.cancel), methods=["POST"]),
                Route("/v1/jobs/{id}/retry", _guarded(jobs.retry), methods=["POST"]),
                Route("/v1/jobs/{id}/logs", _guarded(jobs.logs)),
                Route("/v1/jobs/{id}/metrics", _guarded(jobs.metrics)),
            ],
            exception_handlers={404: _no_such_path, 405: _no_such_method, 500: _fault},
        )
        self.app.router.redirect_slashes = False

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

    async def openapi(self, request: Request) -> Response:
        self._caller(request, "serve")
        return Response(encoded(), media_type="application/json")

    async def models(self, request: Request) -> Response:
        caller = self._caller(request, "serve")
        return _json({"object": "list", "data": self._models(caller)})

    async def model(self, request: Request) -> Response:
        caller = self._caller(request, "serve")
        name = request.path_params["name"]
        found = next((model for model in self._models(caller) if model["id"] == name), None)
        if found is None:
            raise RequestError(f"model {name!r} does not exist here", status=404, code="model_not_found")
        return _json(found)

    async def count_tokens(self, request: Request) -> Response:
        """An estimate; Anthropic's clients ask before they send what may not fit."""
        _, body = await self._body(request, "serve")
        return Response(count_tokens_reply(body), media_type="application/json")

    async def route(self, request: Request) -> Response:
        """The decision alone: logged as a dry run, never learned from."""
        caller, body = await self._body(request, "serve")
        decision_id, foretold = await dry_run(self.state, caller, body, request.scope["headers"])
        return _json(foretold, headers={"x-pointsman-decision-id": decision_id})

    async def feedback(self, request: Request) -> Response:
        state = self.state
        caller, body = await self._body(request, "feedback")
        word = read_feedback(body, header(request.scope["headers"], b"idempotency-key"))
        subject = await find_subject(state, caller, word)
        row = feedback_row(word, caller, subject, state.redactor)
        await log_rows(state, [("feedback", row)])
        if subject.decision_id is not None:
            state.recent.rate(subject.decision_id, row, len(body))
        return _json(
            {
                "id": row["id"],
                "decision_id": subject.decision_id,
                "episode_id": subject.episode_id,
                "joined": subject.known,
            },
            200 if subject.known else 202,
        )

    async def decision(self, request: Request) -> Response:
        caller = self._caller(request, "serve")
        given = request.path_params["id"]
        decision_id = given.lower() if is_uuid(given) else await decision_named(self.state, caller.project_id, given)
        record = None
        if decision_id is not None:
            record = await find_record(self.state, _readable(caller), decision_id)
        if record is None:
            raise RequestError(f"there is no decision {given} here", status=404, code="decision_not_found")
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

    def _models(self, caller: Caller) -> list[dict[str, Any]]:
        generation = self.state.generation
        simulation = generation.config.sandbox is not None
        first = generation.serving(caller.project_id).chain.routers[0].version
        pins = [chain.routers[0].version for chain in generation.pinned.values()]
        named = [(MODEL, first), *((f"{MODEL}@{version.id}", version) for version in pins)]
        models: list[dict[str, Any]] = [
            {
                "id": name,
                "pointsman": {"kind": "router", "pattern": "single", "router": version.kind, "version": version.id},
            }
            for name, version in named
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
        models += patterns(generation.config)
        for model in models:
            model |= {"object": "model", "created": 0, "owned_by": "pointsman"}
            if simulation:
                model["pointsman"]["simulation"] = "these workers are a simulation (the sandbox), not real models"
        return models


def _readable(caller: Caller) -> str | None:
    """Whose decisions a caller may read: its project's, or with `admin` everyone's."""
    return None if "admin" in caller.scopes else caller.project_id


def _guarded(handler: Handler) -> Handler:
    """Turns a refusal into the error object of the client's API."""

    async def guarded(request: Request) -> Response:
        try:
            return await handler(request)
        except RequestError as error:
            headers = {"retry-after": retry_after(error.retry_after)} if error.retry_after is not None else None
            return _refusal(request, error, headers)

    return guarded


async def _elsewhere(request: Request) -> Response:
    raise BrokenInvariant("what asks a worker is served before this application is asked")


async def _no_such_path(request: Request, error: Exception) -> Response:
    message = f"there is no {request.scope['path']} here"
    return _refusal(request, RequestError(message, status=404, code="not_found"))


async def _no_such_method(request: Request, error: Exception) -> Response:
    message = f"{request.method} is not allowed on {request.scope['path']}"
    allowed = error.headers if isinstance(error, HTTPException) else None
    return _refusal(request, RequestError(message, status=405, code="method_not_allowed"), dict(allowed or {}))


async def _fault(request: Request, error: Exception) -> Response:
    """The gateway's edge logs the fault; the client gets no detail of it."""
    return _refusal(request, internal_fault())


def _refusal(request: Request, error: RequestError, headers: dict[str, str] | None = None) -> Response:
    body = surface_of(request.scope["path"]).error_body(error)
    return Response(body, error.status, headers, media_type="application/json")


def _json(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(msgspec.json.encode(value), status, headers, media_type="application/json")
