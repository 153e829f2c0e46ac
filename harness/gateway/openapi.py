"""The OpenAPI 3.1 document of the gateway, `GET /openapi.json`: a table of operations over `openapi_models`.

`python -m harness.gateway.openapi` prints it, as docs/openapi.json keeps it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from typing import Any

import msgspec

from harness.gateway import openapi_models as models
from harness.gateway.feedback import Feedback
from harness.gateway.hints import NAMES
from harness.gateway.jobs import NewJob
from pointsman.words import Scope

Document = dict[str, Any]

_REASONS = {
    200: "done",
    202: "accepted; the rest follows",
    400: "the request is not what was expected, or no worker may answer it",
    401: "no key, or one that is not known",
    403: "the key lacks the scope, or the Host is not this machine's",
    404: "it does not exist here",
    405: "another method is expected",
    408: "the request did not arrive in time",
    409: "it conflicts with what is there, or its first run still goes on",
    413: "too large",
    415: "JSON is expected",
    422: "it cannot be taken as it is",
    429: "a limit or a budget is reached",
    502: "the worker failed",
    503: "it cannot be logged now, or the gateway stops",
    504: "the worker took too long",
}
_EVENT: Document = {
    "type": "object",
    "description": "one event of the stream; it ends with the event that says it is whole, or with an error",
    "properties": {"data": {"type": "string"}, "event": {"type": "string"}},
    "required": ["data"],
}
_ALWAYS = (401, 403)
_BODY = (400, 408, 413, 415)
_SERVED = (404, 409, 422, 429, 502, 503, 504)
_WAITING = (429, 503)  # with Retry-After


@dataclass(frozen=True)
class Operation:
    """One method of one path. `replies` are types by status, `faults` the statuses of an error object.

    `asks`: a worker answers, so the answer carries the decision's headers; `streams`: or events do.
    """

    method: str
    path: str
    summary: str
    scope: Scope | None
    replies: dict[int, type | None]
    body: type | None = None
    faults: tuple[int, ...] = ()
    asks: bool = False
    streams: bool = False
    query: tuple[str, ...] = ()

    @property
    def error(self) -> type:
        return models.MessagesError if self.path.startswith("/v1/messages") else models.Error

    @property
    def statuses(self) -> tuple[int, ...]:
        """Of error objects."""
        if self.scope is None:
            return self.faults
        return tuple(sorted({*_ALWAYS, *self.faults, *(_BODY if self.body else ())}))


OPERATIONS = (
    Operation(
        "post", "/v1/chat/completions", "OpenAI's chat completions", "serve", {200: models.ChatCompletion},
        models.ChatCompletionRequest, _SERVED, asks=True, streams=True,
    ),
    Operation(
        "post", "/v1/responses", "OpenAI's Responses API", "serve", {200: models.ResponseObject},
        models.ResponsesRequest, _SERVED, asks=True, streams=True,
    ),
    Operation(
        "post", "/v1/messages", "Anthropic's Messages API", "serve", {200: models.MessageReply},
        models.MessagesRequest, _SERVED, asks=True, streams=True,
    ),
    Operation(
        "post", "/v1/messages/count_tokens", "An estimate; no worker is asked", "serve", {200: models.TokenCount},
        models.CountTokensRequest,
    ),
    Operation(
        "post", "/v1/embeddings", "Passed through to a worker that makes them", "serve", {200: models.EmbeddingList},
        models.EmbeddingsRequest, _SERVED, asks=True,
    ),
    Operation("get", "/v1/models", "Routers and workers", "serve", {200: models.ModelList}),
    Operation("get", "/v1/models/{name}", "One of them", "serve", {200: models.ModelEntry}, faults=(404,)),
    Operation(
        "post", "/v1/route", "The decision alone: no worker is called", "serve", {200: models.Foretold},
        models.ChatCompletionRequest, (404, 503),
    ),
    Operation(
        "post", "/v1/feedback", "A later word on a decision or an episode", "feedback",
        {200: models.FeedbackTaken, 202: models.FeedbackTaken}, Feedback, (404, 422, 503),
    ),
    Operation(
        "get", "/v1/decisions/{id}", "One decision whole, by its id or its answer's", "serve",
        {200: models.DecisionRecord}, faults=(404,),
    ),
    Operation("post", "/v1/reload", "Read the configuration anew", "admin", {200: models.Reloaded}, faults=(422,)),
    Operation(
        "get", "/v1/jobs", "A page of jobs, the newest first", "jobs", {200: models.Listing},
        faults=(400, 503), query=("kind", "state", "before", "limit"),
    ),
    Operation("post", "/v1/jobs", "A new job", "jobs", {202: models.Job}, NewJob, (503,)),
    Operation("get", "/v1/jobs/{id}", "A job and its files", "jobs", {200: models.Job}, faults=(400, 404, 503)),
    Operation(
        "delete", "/v1/jobs/{id}", "Ends a job; removes one that has ended", "jobs",
        {200: models.JobDeleted, 202: models.Job}, faults=(400, 404, 503),
    ),
    Operation("post", "/v1/jobs/{id}/cancel", "Ends it", "jobs", {202: models.Job}, faults=(400, 404, 503)),
    Operation("post", "/v1/jobs/{id}/retry", "Queues it again", "jobs", {202: models.Job}, faults=(400, 404, 409, 503)),
    Operation(
        "get", "/v1/jobs/{id}/logs", "What it said", "jobs", {200: models.Listing},
        faults=(400, 404, 503), query=("after", "limit"),
    ),
    Operation(
        "get", "/v1/jobs/{id}/metrics", "Its metrics' points", "jobs", {200: models.Listing}, faults=(400, 404, 503)
    ),
    Operation("get", "/metrics", "Prometheus", "serve", {200: None}),
    Operation("get", "/openapi.json", "This document", "serve", {200: dict}),
    Operation("get", "/healthz", "Alive", None, {200: models.Status}),
    Operation("get", "/readyz", "Able to serve and to log", None, {200: models.Status, 503: models.Status}),
)  # fmt: skip


@cache
def document() -> Document:
    """The whole document, in JSON's values."""
    named: set[type] = {models.Error, models.MessagesError}
    for operation in OPERATIONS:
        named |= {typ for typ in (*operation.replies.values(), operation.body) if typ not in (None, dict)}
    types = sorted(named, key=lambda typ: typ.__name__)
    _, schemas = msgspec.json.schema_components(types, ref_template="#/components/schemas/{name}")
    paths: dict[str, dict[str, Any]] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method] = _operation(operation)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Pointsman",
            "version": version("pointsman"),
            "description": "One model behind several APIs; docs/api.md says more.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {
            "schemas": dict(sorted(schemas.items())),
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer", "description": "a key: `pm_…`"},
                "key": {"type": "apiKey", "in": "header", "name": "x-api-key"},
            },
        },
    }


def encoded() -> bytes:
    return msgspec.json.encode(document())


def _operation(operation: Operation) -> Document:
    made: Document = {"summary": operation.summary, "operationId": _identity(operation)}
    if operation.scope is not None:
        keyless: list[Document] = [] if operation.scope in ("admin", "jobs") else [{}]  # on loopback
        made["security"] = [*keyless, {"bearer": []}, {"key": []}]
        made["description"] = f"Needs a key with the scope `{operation.scope}`" + (
            "; on loopback none." if keyless else "."
        )
    if parameters := _parameters(operation):
        made["parameters"] = parameters
    if operation.body is not None:
        made["requestBody"] = {"required": True, "content": {"application/json": {"schema": _ref(operation.body)}}}
    made["responses"] = {
        **{str(status): _reply(operation, status, typ) for status, typ in operation.replies.items()},
        **{str(status): _fault(operation, status) for status in operation.statuses},
    }
    return made


def _identity(operation: Operation) -> str:
    words = operation.path.replace("/v1", "").replace("{", "").replace("}", "").replace(".json", "")
    return "_".join([operation.method, *words.strip("/").replace("/", "_").split("_")])


def _parameters(operation: Operation) -> list[Document]:
    parameters: list[Document] = []
    if "{" in operation.path:
        name = operation.path.partition("{")[2].partition("}")[0]
        parameters.append({"name": name, "in": "path", "required": True, "schema": {"type": "string"}})
    parameters += [{"name": name, "in": "query", "schema": {"type": "string"}} for name in operation.query]
    if operation.asks or operation.path == "/v1/route":
        parameters += [
            {"name": f"x-pointsman-{name.replace('_', '-')}", "in": "header", "schema": {"type": "string"}}
            for name in NAMES
        ]
    if operation.asks or operation.path == "/v1/feedback":
        parameters.append({"name": "Idempotency-Key", "in": "header", "schema": {"type": "string"}})
    return parameters


def _reply(operation: Operation, status: int, typ: type | None) -> Document:
    content: Document = {"text/plain": {"schema": {"type": "string"}}}
    if typ is not None:
        content = {"application/json": {"schema": _ref(typ)}}
    if operation.streams:
        content["text/event-stream"] = {"schema": _EVENT}
    made: Document = {"description": _REASONS[status], "content": content}
    if operation.asks:
        made["headers"] = {"x-pointsman-decision-id": {"schema": {"type": "string"}}}
    return made


def _fault(operation: Operation, status: int) -> Document:
    made: Document = {
        "description": _REASONS[status],
        "content": {"application/json": {"schema": _ref(operation.error)}},
    }
    if status in _WAITING:
        made["headers"] = {"Retry-After": {"schema": {"type": "integer", "minimum": 1}}}
    return made


def _ref(typ: type) -> Document:
    return {"type": "object"} if typ is dict else {"$ref": f"#/components/schemas/{typ.__name__}"}


def main() -> None:
    print(json.dumps(document(), indent=1))  # noqa: T201 - what this command is for


if __name__ == "__main__":
    main()
