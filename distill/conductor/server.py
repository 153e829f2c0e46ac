"""An OpenAI-compatible server of one conductor: `POST /v1/chat/completions`, `GET /v1/models`, `GET /healthz`.

For small models on a CPU; a big one belongs behind vLLM. Plans are written one after another, greedily unless asked
otherwise; streaming, tools and several choices are refused rather than ignored.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Any

import msgspec

from distill.conductor.checking import load_causal
from distill.conductor.generating import MAX_NEW, Said, generate
from harness.engine.request import Message
from pointsman.errors import UserError
from pointsman.ids import new_id

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import JSONResponse

MAX_PROMPT_CHARS = 200_000
MAX_WAITING = 64


class Planner:
    """The model with a queue of one: torch uses all threads it may for one batch. Nothing is kept of what is asked."""

    def __init__(self, folder: Path, *, constrained: bool = False, max_new: int = MAX_NEW) -> None:
        self.model, self.tokenizer, self.identity = load_causal(str(folder))
        self.name = f"conductor-{str(self.identity['files'])[:12]}"
        self._constrained = constrained
        self._max_new = max_new
        self._turn = asyncio.Lock()
        self._waiting = 0

    async def plan(self, messages: list[Message], max_new: int, temperature: float) -> Said:
        if self._waiting >= MAX_WAITING:
            raise OverflowError
        self._waiting += 1
        try:
            async with self._turn:
                return await asyncio.to_thread(self._written, messages, min(max_new, self._max_new), temperature)
        finally:
            self._waiting -= 1

    def _written(self, messages: list[Message], max_new: int, temperature: float) -> Said:
        return generate(
            self.model,
            self.tokenizer,
            [messages],
            max_new=max_new,
            temperature=temperature,
            constrained=self._constrained,
        )[0]


def app(planner: Planner) -> Starlette:
    """The ASGI application."""
    from starlette.applications import Starlette
    from starlette.routing import Route

    async def completions(request: Request) -> JSONResponse:
        return await _completion(planner, await request.body())

    async def models(request: Request) -> JSONResponse:
        return _json({"object": "list", "data": [{"id": planner.name, "object": "model", "owned_by": "pointsman"}]})

    async def healthy(request: Request) -> JSONResponse:
        return _json({"status": "ok", "model": planner.name})

    return Starlette(
        routes=[
            Route("/v1/chat/completions", completions, methods=["POST"]),
            Route("/v1/models", models),
            Route("/healthz", healthy),
        ]
    )


async def _completion(planner: Planner, raw: bytes) -> JSONResponse:
    try:
        asked = _asked(raw)
    except UserError as error:
        return _error(400, str(error))
    try:
        said = await planner.plan(*asked)
    except OverflowError:
        return _error(429, "too many plans are waiting")
    tokens_in, tokens_out = said.usage.input_tokens or 0, said.usage.output_tokens or 0
    return _json(
        {
            "id": f"chatcmpl-{new_id()}",
            "object": "chat.completion",
            "created": int(time()),
            "model": planner.name,
            "choices": [{"index": 0, "message": {"role": "assistant", "content": said.text}, "finish_reason": "stop"}],
            "usage": {
                "prompt_tokens": tokens_in,
                "completion_tokens": tokens_out,
                "total_tokens": tokens_in + tokens_out,
            },
        }
    )


def _asked(raw: bytes) -> tuple[list[Message], int, float]:
    """(messages, most new tokens, temperature). Raises `UserError` that names the field."""
    try:
        body = msgspec.json.decode(raw)
    except msgspec.MsgspecError:
        raise UserError("expected a JSON object") from None
    messages = body.get("messages") if isinstance(body, dict) else None
    if not isinstance(messages, list) or not messages or not all(map(_plain, messages)):
        raise UserError("messages: expected a list of messages with a role and a text")
    if sum(len(one["content"]) for one in messages) > MAX_PROMPT_CHARS:
        raise UserError(f"messages: expected at most {MAX_PROMPT_CHARS} characters")
    for name, fine in (("stream", (None, False)), ("n", (None, 1)), ("tools", (None, []))):
        if body.get(name) not in fine:
            raise UserError(f"{name}: a conductor only writes one plan, and not as a stream")
    most = body.get("max_completion_tokens", body.get("max_tokens", MAX_NEW))
    temperature = body.get("temperature", 0.0)
    if not _number(most) or most < 1:
        raise UserError("max_tokens: expected a number of 1 or more")
    if not _number(temperature) or not 0 <= temperature <= 2:
        raise UserError("temperature: expected a number from 0 to 2")
    return [{"role": one["role"], "content": one["content"]} for one in messages], int(most), float(temperature)


def _plain(message: Any) -> bool:
    return (
        isinstance(message, dict)
        and message.get("role") in ("system", "user", "assistant")
        and isinstance(message.get("content"), str)
    )


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _json(value: Any) -> JSONResponse:
    from starlette.responses import JSONResponse

    return JSONResponse(value)


def _error(status: int, message: str) -> JSONResponse:
    from starlette.responses import JSONResponse

    kind = "invalid_request_error" if status == 400 else "rate_limit_error"
    return JSONResponse({"error": {"message": message, "type": kind, "param": None, "code": None}}, status)
