"""The limit to compare with: a bare pass-through on uvicorn and aiohttp. No routing, no log, no keys.

It is fixed: not tuned, for us or against us. Status, headers but those of one hop, and body pass both ways as they
are, a stream chunk by chunk.

Run: python passthrough.py --port P --upstream URL
"""

from __future__ import annotations

import argparse

import aiohttp
import uvicorn

# RFC 9110 §7.6.1, and what the client of the other side writes itself.
ONE_HOP = {b"connection", b"keep-alive", b"proxy-connection", b"te", b"trailer", b"transfer-encoding", b"upgrade"}
OURS = ONE_HOP | {b"host", b"content-length"}


def app(upstream: str):
    session: aiohttp.ClientSession | None = None

    async def serve(scope, receive, send) -> None:
        nonlocal session
        if scope["type"] != "http":
            return
        if session is None:
            connector = aiohttp.TCPConnector(limit=0)
            limit = aiohttp.ClientTimeout(total=600)
            session = aiohttp.ClientSession(connector=connector, timeout=limit, auto_decompress=False)
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        headers = [(k.decode("latin-1"), v.decode("latin-1")) for k, v in scope["headers"] if k not in OURS]
        async with session.post(upstream + scope["path"], data=body, headers=headers) as reply:
            back = [(k.lower(), v) for k, v in reply.raw_headers if k.lower() not in ONE_HOP]
            await send({"type": "http.response.start", "status": reply.status, "headers": back})
            if reply.content_type == "text/event-stream":
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
