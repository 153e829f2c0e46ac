"""The gateway as one ASGI callable: the hot route first, everything else behind it."""

from __future__ import annotations

import gc
import logging
from contextlib import suppress
from typing import Any

from harness.gateway.chat import Chat
from harness.gateway.management import Management
from harness.gateway.responses import Receive, Send, internal_fault, send_error
from harness.gateway.state import State
from harness.gateway.surfaces.served import SURFACES, surface_of
from pointsman.logs import place

log = logging.getLogger("pointsman.gateway")


class Gateway:
    """Opened and closed by the ASGI lifespan."""

    def __init__(self, state: State) -> None:
        self.state = state
        self._routes = {path: Chat(state, surface) for path, surface in SURFACES.items()}
        self._management = Management(state).app

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            try:
                if self.state.callers.is_stranger(scope["headers"], self.state.directory):
                    await self.state.read_keys_again()
                route = self._routes.get(scope["path"])
                if route is not None and scope["method"] == "POST":
                    await route(scope, receive, send)
                else:
                    await self._management(scope, receive, send)  # type: ignore[arg-type]
            except Exception as error:  # noqa: BLE001 - the edge of the process: log, answer, go on
                # The error's text may quote the request: only its type and place are logged.
                log.error("fault of ours in %s: %s", scope["path"], place(error))
                await _answer_fault(scope["path"], send)
        elif scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        else:
            await send({"type": "websocket.close", "code": 1000})  # before accepting: an HTTP 403

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        await self.state.open()
        gc.collect()
        gc.freeze()  # what is loaded now lives as long as the process
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self.state.close()
        await send({"type": "lifespan.shutdown.complete"})


async def _answer_fault(path: str, send: Send) -> None:
    fault = internal_fault()
    with suppress(RuntimeError):  # the answer had begun: the connection ends
        await send_error(send, fault, [], surface_of(path).error_body(fault))
