"""The router server's socket, for the account that runs it alone; frames are those of `harness.routing.learned`."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from distill.server.batches import Batches, Score
from harness.routing.learned import framed, read_frame
from pointsman.errors import UserError

LONGEST_PATH = 100
"""Bytes of a socket's path that every system takes."""
log = logging.getLogger("pointsman.router_server")


async def serve(socket: Path, score: Score, ready: asyncio.Event | None = None) -> None:
    """Answers until it is cancelled or told to end by a signal. Raises `UserError` where the path is too long."""
    if len(str(socket).encode()) > LONGEST_PATH:
        raise UserError(f"{socket}: longer than {LONGEST_PATH} bytes; set POINTSMAN_HOME to a shorter folder")
    socket.unlink(missing_ok=True)
    with ThreadPoolExecutor(1, thread_name_prefix="router") as executor:
        batches = Batches(score, executor)
        running = asyncio.create_task(batches.run())
        connections: set[asyncio.Task[None]] = set()

        def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.create_task(_connection(reader, writer, batches))
            connections.add(task)
            task.add_done_callback(connections.discard)

        server = await asyncio.start_unix_server(connected, str(socket))
        socket.chmod(0o600)
        if ready is not None:
            ready.set()
        try:
            async with server:
                await server.serve_forever()
        finally:
            ending = [running, *connections]
            for one in ending:
                one.cancel()
            await asyncio.gather(*ending, return_exceptions=True)
            socket.unlink(missing_ok=True)


def run(socket: Path, score: Score) -> None:
    """Serves in this process until SIGTERM or Ctrl-C."""

    async def main() -> None:
        serving = asyncio.create_task(serve(socket, score))
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, serving.cancel)
        with contextlib.suppress(asyncio.CancelledError):
            await serving

    asyncio.run(main())


async def _connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, batches: Batches) -> None:
    tasks: set[asyncio.Task[None]] = set()
    try:
        while True:
            question = await read_frame(reader)
            task = asyncio.create_task(_answer(question, writer, batches))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
    except (ConnectionError, OSError):
        pass
    finally:
        for task in tasks:
            task.cancel()
        writer.close()


async def _answer(question: Any, writer: asyncio.StreamWriter, batches: Batches) -> None:
    answer = await _answered(question, batches)
    with contextlib.suppress(ConnectionError, OSError):
        writer.write(framed(answer))
        await writer.drain()


async def _answered(question: Any, batches: Batches) -> dict[str, Any]:
    if not isinstance(question, dict) or not isinstance(question.get("id"), int):
        return {"id": 0, "error": "expected an object with id, version, text, endpoints"}
    version, text, endpoints = (question.get(name) for name in ("version", "text", "endpoints"))
    if not (isinstance(version, str) and isinstance(text, str) and isinstance(endpoints, list)):
        return {"id": question["id"], "error": "expected version and text as texts, endpoints as a list"}
    return {"id": question["id"], **await batches.ask(version, text, tuple(map(str, endpoints)))}
