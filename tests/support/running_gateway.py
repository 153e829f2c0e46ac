"""The real gateway in a thread: its application, state and protocol under uvicorn (uvloop) on loopback."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import psycopg
import uvicorn
from sqlalchemy import Engine, text

from harness.gateway.app import Gateway
from harness.gateway.protocol import RequestProtocol
from harness.gateway.state import State
from pointsman.config import Settings, load_text
from pointsman.database.engine import make_engine, psycopg_url
from pointsman.identity import create_key, ensure_project
from pointsman.journal.shipper import Shipper
from pointsman.queries import decision_record

CHAT = "/v1/chat/completions"
WORDS = {"messages": [{"role": "user", "content": "hello"}], "model": "pointsman"}


class RunningGateway:
    """`client` is an httpx client at the gateway's address; rows are read back after `ship`."""

    def __init__(self, toml: str, home: Path, database_url: str, environment: Mapping[str, str]) -> None:
        self.home = home
        self.database_url = database_url
        self.engine: Engine = make_engine(database_url, application="gateway-tests")
        with self.engine.begin() as connection:
            ensure_project(connection)
        self.file = home / "pointsman.toml"
        self.file.write_text(toml, encoding="utf-8")
        self.settings = Settings(home, 1, self.file, dict(environment))
        self.config = load_text(toml)
        self.start()

    def start(self) -> None:
        """Serves with a fresh state, as a process does that has just started."""
        self.state = State(self.settings, self.config, self.database_url)
        listener = socket.create_server(("127.0.0.1", 0))
        self.port = listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.server = uvicorn.Server(
            uvicorn.Config(
                Gateway(self.state),
                loop="uvloop",
                http=RequestProtocol,
                ws="none",
                lifespan="on",
                log_config=None,
                access_log=False,
                timeout_keep_alive=75,
                timeout_graceful_shutdown=1,
            )
        )
        self.thread = threading.Thread(target=self.server.run, kwargs={"sockets": [listener]}, daemon=True)
        self.thread.start()
        until = time.monotonic() + 10
        while not self.server.started:
            assert self.thread.is_alive() and time.monotonic() < until, "the gateway did not start"
            time.sleep(0.005)
        self.client = httpx.Client(base_url=self.url, timeout=30, trust_env=False)

    def stop(self) -> None:
        self.client.close()
        self.server.should_exit = True
        self.thread.join(10)
        assert not self.thread.is_alive(), "the gateway did not stop"

    def close(self) -> None:
        self.stop()
        self.engine.dispose()

    def chat(self, content: Any = "hello", *, headers: dict[str, str] | None = None, **fields: Any) -> httpx.Response:
        """A chat completion for one user message, unless `messages` are given."""
        body = {"model": "pointsman", "messages": [{"role": "user", "content": content}], **fields}
        return self.client.post(CHAT, json=body, headers=headers)

    def post(self, body: bytes, **headers: str) -> httpx.Response:
        """A chat completion of raw bytes."""
        return self.client.post(CHAT, content=body, headers={"content-type": "application/json", **headers})

    @contextmanager
    def streaming(self, **fields: Any) -> Iterator[httpx.Response]:
        body = {**WORDS, "stream": True, **fields}
        with self.client.stream("POST", CHAT, json=body) as response:
            yield response

    def ship(self) -> None:
        shipper = Shipper(self.home / "journal", lambda: psycopg.connect(psycopg_url(self.database_url)))
        try:
            shipper.drain()
        finally:
            shipper.close()
        assert (shipper.rejected, shipper.damaged) == (0, 0), "Postgres or the reader refused a row"

    def record(self, answer: httpx.Response | str, *, seconds: float = 3.0) -> dict[str, Any]:
        """The record in Postgres of an answer's decision, once its outcome is there."""
        identity = answer if isinstance(answer, str) else answer.headers["x-pointsman-decision-id"]
        until = time.monotonic() + seconds
        while True:
            self.ship()
            record = decision_record(self.engine, None, identity)
            if record is not None and record["outcome"] is not None:
                return record
            assert time.monotonic() < until, f"no outcome of {identity}: {record and record['decision']}"
            time.sleep(0.05)

    def sql(self, query: str, **values: Any) -> list[Any]:
        with self.engine.connect() as connection:
            return list(connection.execute(text(query), values))

    def key(self, **fields: Any) -> str:
        """A new key, known to the gateway when this returns."""
        with self.engine.begin() as connection:
            made = create_key(connection, **fields)
        self.refresh()
        return made

    def refresh(self) -> None:
        asyncio.run_coroutine_threadsafe(self.state.refresh(), self.loop).result(5)

    @property
    def loop(self) -> Any:
        """The serving event loop."""
        return self.state._tasks[0].get_loop()

    def journal_bytes(self) -> bytes:
        """Everything under the journal's folder."""
        files = sorted(file for file in (self.home / "journal").rglob("*") if file.is_file())
        return b"".join(file.read_bytes() for file in files)


def events(response: httpx.Response) -> list[str]:
    """The data of a stream's events."""
    raw = response.read().decode()
    return [line[6:] for line in raw.split("\n") if line.startswith("data: ")]


def contents(response: httpx.Response) -> str:
    """The text that a stream says."""
    chunks = [json.loads(data) for data in events(response) if data != "[DONE]"]
    parts = [choice["delta"].get("content") for chunk in chunks for choice in chunk.get("choices", ())]
    return "".join(part for part in parts if part)
