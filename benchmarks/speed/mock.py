"""A fast mock upstream: bare ASGI on uvicorn, a fixed JSON answer or a fixed stream of N chunks.

Run: python mock.py --port P [--chunks N]
"""

from __future__ import annotations

import argparse
import json

import uvicorn


def chunk(delta: dict, finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    body = {
        "id": "chatcmpl-mock",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "mock",
        "choices": [choice],
    }
    return b"data: " + json.dumps(body).encode() + b"\n\n"


ANSWER = json.dumps(
    {
        "id": "chatcmpl-mock",
        "object": "chat.completion",
        "created": 1,
        "model": "mock",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "word " * 60}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 300, "completion_tokens": 60, "total_tokens": 360},
    }
).encode()
USAGE = (
    b'data: {"id":"chatcmpl-mock","object":"chat.completion.chunk","created":1,"model":"mock","choices":[],'
    b'"usage":{"prompt_tokens":300,"completion_tokens":60,"total_tokens":360}}\n\n'
)


def app(chunks: int):
    parts = [chunk({"role": "assistant", "content": ""}), *[chunk({"content": f"word{i} "}) for i in range(chunks)]]
    tail = [chunk({}, "stop"), USAGE, b"data: [DONE]\n\n"]

    async def serve(scope, receive, send) -> None:
        if scope["type"] != "http":
            return
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        if b'"stream":true' in body or b'"stream": true' in body:
            headers = [(b"content-type", b"text/event-stream")]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            for part in (*parts, *tail[:-1]):
                await send({"type": "http.response.body", "body": part, "more_body": True})
            await send({"type": "http.response.body", "body": tail[-1]})
            return
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(ANSWER)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": ANSWER})

    return serve


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--chunks", type=int, default=100)
    arguments = parser.parse_args()
    uvicorn.run(
        app(arguments.chunks), port=arguments.port, loop="uvloop", http="httptools", lifespan="off",
        log_level="error", access_log=False, timeout_keep_alive=600,
    )  # fmt: skip


if __name__ == "__main__":
    main()
