"""The router LLM as a search calls it: each distinct prompt once, counted, paid for, kept.

`CountedLm` is an `Lm` of the prompted router, so a candidate is evaluated by the code that serves. What is
kept of a reply is what routing reads: text, log-probabilities, usage.
"""

from __future__ import annotations

import asyncio
from typing import Any

from harness.optimise.budget import Spending
from harness.optimise.memory import Memory
from harness.routing.completion import first_choice, usage_of
from harness.routing.prompted import Lm
from pointsman.errors import UpstreamError
from pointsman.hashing import content_hash
from pointsman.pool import Price

ATTEMPTS = 3
_AGAIN = ("connect", "timeout", "rate_limited", "server", "malformed", "truncated")


class CountedLm:
    """Asks `lm` for what is not in `memory` yet; a failure that may pass is tried again.

    A call is counted once per prompt and search, whether it was answered now or is on record from before.
    A refusal (`bad_request`) is a reply too: asked again, it would be refused again.
    """

    def __init__(
        self, lm: Lm, spending: Spending, memory: Memory, price: Price | None = None, pause: float = 0.5
    ) -> None:
        self._lm = lm
        self._price = price
        self._pause = pause
        self._running: dict[str, asyncio.Future[dict[str, Any]]] = {}
        self._counted: set[str] = set()
        self.spending = spending
        self.memory = memory

    async def __call__(self, body: dict[str, Any]) -> dict[str, Any]:
        prompt = content_hash(body)
        if (running := self._running.get(prompt)) is not None:
            return _given(await asyncio.shield(running))
        if prompt not in self._counted:
            self.spending.admit()
            self._counted.add(prompt)
        elif (known := self.memory.get(prompt)) is not None:
            return _given(known)
        return _given(await self._answer(prompt, body))

    async def _answer(self, prompt: str, body: dict[str, Any]) -> dict[str, Any]:
        future = self._running[prompt] = asyncio.get_running_loop().create_future()
        try:
            known = self.memory.get(prompt)
            reply = await self._ask(body) if known is None else known
            if known is None:
                self.memory.put(prompt, reply)
            self.spending.pay(usage_of(reply, self._price).cost, now=known is None)
        except BaseException as error:
            future.set_exception(error)
            future.exception()  # read, whether somebody waits for it or not
            raise
        else:
            future.set_result(reply)
            return reply
        finally:
            del self._running[prompt]

    async def _ask(self, body: dict[str, Any]) -> dict[str, Any]:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return _kept(await self._lm(body))
            except UpstreamError as error:
                if error.fault == "bad_request":
                    return {"refused": error.message}
                if error.fault not in _AGAIN or attempt == ATTEMPTS:
                    raise
                await asyncio.sleep(error.retry_after or self._pause * attempt)
        raise AssertionError("unreachable: the last attempt returns or raises")


def _kept(reply: dict[str, Any]) -> dict[str, Any]:
    choice = first_choice(reply)
    if not isinstance(choice, dict):
        return {"usage": reply.get("usage")}
    parts = {name: choice.get(name) for name in ("message", "logprobs", "finish_reason")}
    return {"choices": [parts], "usage": reply.get("usage")}


def _given(reply: dict[str, Any]) -> dict[str, Any]:
    if "refused" in reply:
        raise UpstreamError("bad_request", str(reply["refused"]))
    return reply
