"""The router LLM as a function: a chat-completions body in, the decoded reply out, through the one transport."""

from __future__ import annotations

from typing import Any

import msgspec

from harness.routing.prompted import Lm
from pointsman.upstream.outgoing import COMPLETIONS
from pointsman.upstream.transport import Transport


def chat_lm(transport: Transport, base_url: str, key: str | None, connect: float) -> Lm:
    """Posts to `base_url`. A reply that is no JSON object is an empty one; other faults are `UpstreamError`s."""
    url = base_url.rstrip("/") + COMPLETIONS
    headers = {"content-type": "application/json"}
    if key:
        headers["authorization"] = f"Bearer {key}"

    async def ask(body: dict[str, Any]) -> dict[str, Any]:
        reply = await transport.post(url, headers, msgspec.json.encode(body), connect)
        try:
            value = msgspec.json.decode(await reply.read())
        except msgspec.MsgspecError:
            return {}
        finally:
            reply.close()
        return value if isinstance(value, dict) else {}

    return ask
