"""13. The corpus of nasty inputs: none gets a 500, all get an answer or an OpenAI-shaped error, and the process stays.

What is accepted has to read back from Postgres as it was sent, but for NUL, which Postgres has not and
the log holds as U+FFFD. A worker that answers with nonsense is a 502 in the same shape.
"""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import psycopg

from benchmarks.stress.client import Ask
from benchmarks.stress.corpus import Nasty, load_corpus
from benchmarks.stress.load import Load
from benchmarks.stress.scene import stage
from benchmarks.stress.verdict import Size, Verdict
from pointsman.database.engine import psycopg_url

ERROR = {"message", "type", "param", "code"}
LARGEST_QUICK = 1_000_000


def run(size: Size) -> dict[str, Any]:
    verdict = Verdict()
    corpus = [one for one in load_corpus() if not size.quick or len(one.body) < LARGEST_QUICK]
    with stage(pause=0.0) as at:
        (pid,) = at.gateways()
        born = _born(pid)
        load = Load(at.url)
        began = time.monotonic()
        answers = asyncio.run(send_all(load, corpus))
        seconds = time.monotonic() - began
        same = at.gateways() == [pid] and _born(pid) == born
        found = at.settle(load.asks)
        stored = stored_messages(at.database_url)
        rejected = (at.served.home / "journal" / "rejected.log").exists()
    trouble = {one.name: why for one, ask in answers if (why := wrong(one, ask))}
    unlike = [one.name for one, ask in answers if ask.whole and not reads_back(one, stored.get(ask.decision or ""))]
    verdict.at_least("inputs", len(corpus), 150)
    verdict.is_("status_500", sum(ask.status == 500 for _, ask in answers), 0)
    verdict.is_("answered_wrongly", trouble, {})
    verdict.is_("not_read_back", unlike, [])
    verdict.is_("refused_rows", rejected, False)
    verdict.is_("same_process", same, True)
    verdict.is_("serves_after", load.asks[-1].whole, True)
    verdict.matched(found)
    verdict.note(accepted=sum(ask.status == 200 for _, ask in answers), seconds=seconds)
    return verdict.as_dict()


async def send_all(load: Load, corpus: list[Nasty]) -> list[tuple[Nasty, Ask]]:
    """Every input in turn over one client, then an ordinary ask."""
    client = load.client()
    answers = []
    for one in corpus:
        ask = Ask(0, one.stream or b'"stream":true' in one.body[-200:])
        load.asks.append(ask)
        answers.append((one, await client.send(ask, one.body)))
    await load.one(client)
    client.close()
    return answers


def wrong(one: Nasty, ask: Ask) -> str | None:
    """What is wrong with an answer, None where nothing is."""
    if ask.status is None:
        return f"no answer: {ask.error}"
    if ask.status == 200:
        if one.expect == "refused":
            return "accepted"
        return None if ask.whole or ask.told else "neither whole nor an error"
    fits = ask.status == 502 if one.from_worker else 400 <= ask.status < 500
    if not fits or one.expect == "ok":
        return f"status {ask.status}"
    error = json.loads(ask.body).get("error")
    return None if isinstance(error, dict) and set(error) == ERROR and error["message"] else "not OpenAI's error"


def stored_messages(url: str) -> dict[str, Any]:
    """The messages of each decision's request, as Postgres has them."""
    query = (
        "SELECT d.id::text, (r.body -> 'messages')::text FROM decision d"
        " JOIN request r ON r.id = d.request_id WHERE r.body IS NOT NULL"
    )
    with psycopg.connect(psycopg_url(url)) as connection:
        return dict(connection.execute(query).fetchall())


def reads_back(one: Nasty, stored: str | None) -> bool:
    sent = json.loads(one.body, parse_int=str, parse_float=str)
    if stored is None:
        return bool(sent.get("store") is False)  # then nothing may be stored
    return bool(_plain(sent["messages"]) == _plain(json.loads(stored, parse_int=str, parse_float=str)))


def _plain(value: Any) -> Any:
    """A JSON value with NUL as the log has it; numbers are texts, which may be written in another way."""
    if isinstance(value, dict):
        return {_plain(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value.replace("\x00", "\ufffd") if isinstance(value, str) else value


def _born(pid: int) -> int:
    """When a process started, in the kernel's ticks."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
