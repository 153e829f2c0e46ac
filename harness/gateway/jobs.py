"""`/v1/jobs`: background work asked for, looked at and ended over HTTP, each project's own.

A job is inserted here and announced; who runs it is not the gateway's concern, and no broker is known here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict
from decimal import Decimal
from typing import Any, TypeVar

import msgspec
from sqlalchemy.exc import DataError, SQLAlchemyError
from starlette.requests import Request
from starlette.responses import Response

from harness.gateway.access import Caller
from harness.gateway.bounds import check_json
from harness.gateway.state import State
from pointsman.errors import RequestError, UserError
from pointsman.ids import is_uuid
from pointsman.jobs.cleanup import delete_job
from pointsman.jobs.facts import read_facts
from pointsman.jobs.kinds import Estimate, estimate, kind_of
from pointsman.jobs.store import Jobs
from pointsman.jobs.view import JobView
from pointsman.jobs.workplace import Workplace
from pointsman.queries.record import plain
from pointsman.words import Scope

T = TypeVar("T")

PAGE = 50
LONGEST_PAGE = 500
LINES = 1_000
MAX_KEY = 200
HIDDEN = ("checkpoint", "effects", "fence")
"""What a job keeps for itself."""


class NewJob(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of `POST /v1/jobs`; `params` are judged by the kind."""

    kind: str
    params: dict[str, Any] = {}
    priority: int = 0
    budget: Decimal | None = None
    dedupe_key: str | None = None


class JobEndpoints:
    """The handlers. `identify` and `read` are the gateway's ways to a caller and a body."""

    def __init__(
        self,
        state: State,
        identify: Callable[[Request, Scope], Caller],
        read: Callable[[Request, Scope], Awaitable[tuple[Caller, bytes]]],
    ) -> None:
        self._state = state
        self._jobs = Jobs(state.engine)
        self._identify = identify
        self._read = read

    async def collection(self, request: Request) -> Response:
        """GET: a page, the newest first. POST: a new job."""
        return await (self._start(request) if request.method == "POST" else self._list(request))

    async def one(self, request: Request) -> Response:
        """GET: the job and its files. DELETE: ends one that has not ended; removes one that has, and its files."""
        caller = self._identify(request, "jobs")
        job = await self._find(request, caller)
        if request.method != "DELETE":
            artifacts = await self._query(self._jobs.artifacts, job.id)
            return _json(_shown(job) | {"artifacts": [_plain(asdict(each)) for each in artifacts]})
        if not job.finished:
            return _json(_shown(await self._query(self._jobs.cancel, job.id)), 202)
        await self._query(self._delete, job.id)
        return _json({"id": job.id, "deleted": True})

    async def cancel(self, request: Request) -> Response:
        job = await self._find(request, self._identify(request, "jobs"))
        return _json(_shown(await self._query(self._jobs.cancel, job.id)), 202)

    async def retry(self, request: Request) -> Response:
        """Queues a failed, cancelled or dead job again."""
        job = await self._find(request, self._identify(request, "jobs"))
        return _json(_shown(await self._query(self._jobs.retry, job.id, code="job_state", status=409)), 202)

    async def logs(self, request: Request) -> Response:
        """What it said, oldest first, after the line `after`."""
        job = await self._find(request, self._identify(request, "jobs"))
        after, limit = request.query_params.get("after"), _limit(request, LINES)
        if after is not None and not is_uuid(after):
            raise RequestError(f"after: expected the id of a line, got {after[:60]!r}", param="after")
        lines = await self._query(self._jobs.logs, job.id, after, limit)
        return _json({"object": "list", "data": [_plain(asdict(line)) for line in lines]})

    async def metrics(self, request: Request) -> Response:
        """Its metrics' points, by name and step."""
        job = await self._find(request, self._identify(request, "jobs"))
        points = await self._query(self._jobs.metrics, job.id)
        return _json({"object": "list", "data": [_plain(asdict(point)) for point in points]})

    async def _start(self, request: Request) -> Response:
        caller, body = await self._read(request, "jobs")
        asked = _new_job(body)

        def start() -> tuple[JobView, Estimate]:
            workers = len(self._state.generation.pool.workers)
            foretold = estimate(asked.kind, asked.params, read_facts(self._state.engine, workers))
            job = self._jobs.start(
                asked.kind,
                asked.params,
                project_id=caller.project_id,
                asked_by=f"key {caller.key_id}",
                budget=asked.budget,
                dedupe_key=asked.dedupe_key,
                priority=asked.priority,
            )
            return job, foretold

        job, foretold = await self._query(start)
        return _json(_shown(job) | {"estimate": _plain(asdict(foretold))}, 202)

    async def _list(self, request: Request) -> Response:
        caller, query = self._identify(request, "jobs"), request.query_params
        limit = _limit(request, PAGE)

        def page() -> Sequence[JobView]:
            kind = query.get("kind")
            return self._jobs.list(
                project_id=_visible(caller),
                kind=None if kind is None else kind_of(kind).name,
                state=query.get("state"),
                before=query.get("before"),
                limit=limit + 1,
            )

        jobs = await self._query(page)
        shown = [_shown(job) for job in jobs[:limit]]
        return _json({"object": "list", "data": shown, "has_more": len(jobs) > limit})

    async def _find(self, request: Request, caller: Caller) -> JobView:
        given = request.path_params["id"]
        job = await self._query(lambda: self._jobs.find(given, project_id=_visible(caller)))
        if job is None:
            raise RequestError(f"there is no job {given[:60]} here", status=404, code="job_not_found")
        return job

    def _delete(self, job_id: str) -> None:
        settings, config = self._state.settings, self._state.generation.config
        place = Workplace(settings, config, "", config.jobs.artifacts, config.jobs.lease)
        delete_job(self._state.engine, place.files(), job_id)

    async def _query(self, ask: Callable[..., T], *arguments: Any, code: str = "invalid_job", status: int = 400) -> T:
        """`ask` in a thread; a mistake becomes a 4xx, an absent database a 503."""
        try:
            return await asyncio.to_thread(ask, *arguments)
        except UserError as error:
            raise RequestError(str(error), status=status, code=code) from None
        except DataError:
            raise RequestError("a value is none that can be stored", code=code) from None
        except SQLAlchemyError:
            raise RequestError(
                "jobs are kept in Postgres, which does not answer now",
                status=503,
                type="server_error",
                code="database_unavailable",
                retry_after=2,
            ) from None


def _visible(caller: Caller) -> str | None:
    """Whose jobs a caller sees: its project's, or with `admin` everyone's."""
    return None if "admin" in caller.scopes else caller.project_id


def _new_job(body: bytes) -> NewJob:
    check_json(body)
    try:
        job = msgspec.json.decode(body, type=NewJob)
    except msgspec.ValidationError as error:
        raise RequestError(str(error), code="invalid_job") from None
    except msgspec.DecodeError as error:
        raise RequestError(f"the body is not valid JSON: {error}") from None
    if job.budget is not None and not job.budget.is_finite():
        raise RequestError("budget: expected an amount of USD", code="invalid_job", param="budget")
    if job.dedupe_key is not None and not (0 < len(job.dedupe_key) <= MAX_KEY and job.dedupe_key.isprintable()):
        message = f"dedupe_key: expected 1 to {MAX_KEY} printable characters"
        raise RequestError(message, code="invalid_job", param="dedupe_key")
    return job


def _limit(request: Request, default: int) -> int:
    text = request.query_params.get("limit", str(default))
    if not (text.isascii() and text.isdigit() and 1 <= len(text) <= 6 and int(text) >= 1):
        raise RequestError(f"limit: expected a whole number from 1, got {text[:60]!r}", param="limit")
    return min(int(text), max(default, LONGEST_PAGE))


def _shown(job: JobView) -> dict[str, Any]:
    return {"object": "job"} | _plain({name: value for name, value in asdict(job).items() if name not in HIDDEN})


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    return {name: plain(value) for name, value in values.items()}


def _json(value: Any, status: int = 200) -> Response:
    return Response(msgspec.json.encode(value), status, media_type="application/json")
