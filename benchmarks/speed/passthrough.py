"""The limit to compare with: a bare pass-through on uvicorn and aiohttp. No routing, no log, no keys.

Run: python passthrough.py --port P --upstream URL
"""

from __future__ import annotations

import argparse

import aiohttp
import uvicorn


def app(upstream: str):
    session: aiohttp.ClientSession | None = None

    async def serve(scope, receive, send) -> None:
        nonlocal session
        if scope["type"] != "http":
            return
        if session is None:
            connector = aiohttp.TCPConnector(limit=0)
            session = aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=600))
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        async with session.post(
            upstream + scope["path"], data=body, headers={"content-type": "application/json"}
        ) as reply:
            kind = reply.headers["content-type"].encode()
            await send({"type": "http.response.start", "status": reply.status, "headers": [(b"content-type", kind)]})
            if kind.startswith(b"text/event-stream"):
                async for part in reply.content.iter_any():
                    await send({"type": "http.response.body", "body": part, "more_body": True})
                await send({"type": "http.response.body", "body": b""})
            else:
                await send({"type": "http.response.body", "body": await reply.read()})

    return serve


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--upstream", required=True)
    arguments = parser.parse_args()
    uvicorn.run(
        app(arguments.upstream), port=arguments.port, loop="uvloop", http="httptools", lifespan="off",
        log_level="error", access_log=False,
    )  # fmt: skip


if __name__ == "__main__":
    main()
