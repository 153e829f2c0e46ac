"""From a label set to a router that serves: classic in the gateway, learned over the router server's socket."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import time
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import numpy as np
import pytest

from distill.evaluate.values import realised
from distill.router_model.checkpoint import load_router
from distill.server.models import Models, fetched
from distill.server.serve import serve
from harness.routing.base import Ask, RouterFailed
from harness.routing.chain import Chain
from harness.routing.classic import UNKNOWN
from harness.routing.default import DefaultRouter
from harness.routing.learned import LearnedRouter, read_frame
from harness.routing.stored import stored_router
from pointsman.config import load_text
from pointsman.errors import UserError
from pointsman.pool import Endpoint, Worker
from pointsman.promotion.versions import StoredVersion, find_version

PROJECT = "018f0000-0000-7000-8000-000000000001"
CONFIG = load_text(
    '[router]\ndefault = "w"\n[[workers]]\nname = "w"\ndescription = "d"\nmodel = "m"\nbase_url = "http://127.0.0.1:1"\n'
)


class Known(Worker):
    """A worker whose endpoint version is that of an arm."""

    @property
    def endpoint_hash(self):
        return f"endpoint-{self.name}"


def workers(table):
    return tuple(Known(arm.worker, arm.card, "m", (Endpoint("http://127.0.0.1:1"),)) for arm in table.arms)


def version_of(engine, result):
    with engine.connect() as connection:
        return find_version(connection, result["router_version"])


def trained(run_job, **params):
    done = run_job("train", params, PROJECT)
    assert done.state == "done", done.reason
    return done.result


def test_a_classic_router_is_chosen_on_validation_rows_stored_and_served(world, keep_labels, run_job, engine):
    table = world(400, seed=11)
    identity, labels = keep_labels(table, PROJECT)
    result = trained(run_job, labels=identity, kind="classic")
    assert result["validation"][result["method"]] == max(result["validation"].values())
    assert result["validation"][result["method"]] > result["validation"]["constant"] + 0.1
    version = version_of(engine, result)
    assert (version.kind, version.state) == ("classic", "candidate")
    served = stored_router(version, CONFIG, run_job.place.settings)
    assert served.version.id == version.id
    test = labels.of("test")
    scores = np.array([list(served.score_now(Ask(labels.texts[n]), workers(table), 0).scores.values()) for n in test])
    single = labels.rewards[test][:, labels.rewards[labels.of("train")].mean(axis=0).argmax()].mean()
    assert realised(labels.rewards[test], scores).mean() > single + 0.1
    again = trained(run_job, labels=identity, kind="classic")
    assert again["router_version"] == result["router_version"]  # the same training makes the same version


def test_a_classic_version_whose_files_are_gone_or_changed_is_refused(world, keep_labels, run_job, engine):
    identity, _ = keep_labels(world(200, seed=12), PROJECT)
    version = version_of(engine, trained(run_job, labels=identity, kind="classic", method="linear"))
    other = StoredVersion(version.id, "classic", version.config | {"tensors": "0" * 64})
    with pytest.raises(UserError, match="not in the artifact store"):
        stored_router(other, CONFIG, run_job.place.settings)
    with pytest.raises(UserError, match="a mixture router needs values"):
        stored_router(
            StoredVersion("x", "classic", version.config | {"method": "mixture"}), CONFIG, run_job.place.settings
        )
    with pytest.raises(UserError, match="a rule router serves where"):
        stored_router(StoredVersion("x", "rule", {}), CONFIG, run_job.place.settings)


def test_training_says_what_it_lacks(world, keep_labels, run_job):
    identity, _ = keep_labels(world(120, seed=12), PROJECT)
    assert "this project has no label set" in run_job("train", {"labels": "0" * 8}, PROJECT).reason
    done = run_job("train", {"labels": identity, "kind": "learned", "backbone": "/nowhere"}, PROJECT)
    assert done.state == "failed" and "/nowhere: no such folder" in done.reason


@asynccontextmanager
async def server(score):
    """A router server on a socket of a short path; `path` and a client's maker."""
    folder = Path(tempfile.mkdtemp(prefix="rs-"))
    ready = asyncio.Event()
    task = asyncio.create_task(serve(folder / "s", score, ready))
    await ready.wait()
    try:
        yield folder / "s"
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        shutil.rmtree(folder)


@pytest.fixture
def learned(world, keep_labels, run_job, engine, tiny_qwen):
    """A learned version on a tiny backbone, its label set, and the models of a server."""
    table = world(300, seed=13)
    identity, labels = keep_labels(table, PROJECT)
    result = trained(run_job, labels=identity, kind="learned", backbone=str(tiny_qwen), head="index", epochs=30)
    files = run_job.place.files()
    models = Models(engine, files, run_job.place.settings.home / "cache" / "routers")
    return table, labels, version_of(engine, result), models, result


async def test_a_learned_router_answers_over_the_socket_as_it_was_trained(learned, run_job):
    table, labels, version, models, result = learned
    assert result["validation"] > result["best_single"] and result["epochs"] > 0
    assert models.preload() == [version.id]
    loaded = load_router(fetched(version, run_job.place.files(), run_job.place.settings.home / "again"))
    pool = workers(table)
    async with server(models.scores) as path:
        client = stored_router(version, CONFIG, run_job.place.settings)
        assert isinstance(client, LearnedRouter) and client.version.id == version.id
        client = LearnedRouter(client.version, path)
        texts = [labels.texts[n] for n in labels.of("test")[:12]]
        asked = await asyncio.gather(*(client.score(Ask(text), pool[::-1], 0) for text in texts))
        expected = loaded.logits(texts)
        for one, row in zip(asked, expected, strict=True):
            assert [one.scores[arm.worker] for arm in table.arms] == pytest.approx(row.tolist(), abs=1e-4)
        stranger = Worker("new", "card", "m", (Endpoint("http://127.0.0.1:1"),))
        scored = await client.score(Ask(texts[0]), (*pool, stranger), 0)
        assert scored.scores["new"] == UNKNOWN and scored.flags == ("unknown_workers",)
        with pytest.raises(RouterFailed, match="no_known_worker"):
            await client.score(Ask("x"), (stranger,), 0)


async def test_questions_that_come_together_share_a_pass_and_repeats_cost_none(learned):
    table, _, version, models, _ = learned
    seen = []

    def score(name, texts):
        seen.append(len(texts))
        time.sleep(0.05)
        return models.scores(name, texts)

    async with server(score) as path:
        client = LearnedRouter(stored_router(version, CONFIG, _Home(path)).version, path)
        await asyncio.gather(*(client.score(Ask(f"text {n}"), workers(table), 0) for n in range(20)))
        assert sum(seen) == 20 and len(seen) <= 4
        before = models._states.hits
        await client.score(Ask("text 3"), workers(table), 0)
        assert models._states.hits == before + 1


class _Home:
    def __init__(self, path):
        self.home = path.parent


async def test_while_the_server_is_away_or_wrong_the_chain_goes_on(learned, run_job):
    table, _, version, models, _ = learned
    pool = workers(table)
    named = stored_router(version, CONFIG, run_job.place.settings).version
    away = LearnedRouter(named, Path("/tmp/nobody-listens-here"))
    chain = Chain([away, DefaultRouter(pool[0].name)], time.monotonic)
    assert (await chain.decide(Ask("x"), pool, 0)).fail_open == ("learned:server_away",)
    assert (await chain.decide(Ask("x"), pool, 0)).fail_open == (
        "learned:server_away",
    )  # and is not asked again at once

    def slow(name, texts):
        time.sleep(0.6)
        return models.scores(name, texts)

    async with server(slow) as path:
        late = LearnedRouter(named, path, deadline=0.1)
        chain = Chain([late, DefaultRouter(pool[0].name)], time.monotonic)
        assert (await chain.decide(Ask("x"), pool, 0)).fail_open == ("learned:timeout",)
        unknown = LearnedRouter(named, path)
        unknown.version = type(named)("learned", {"other": 1})
        with pytest.raises(RouterFailed, match="server_error") as caught:
            await unknown.score(Ask("x"), pool, 0)
        assert "there is no learned router version" in (caught.value.raw_reply or "")


async def test_the_server_outlives_what_is_no_question():
    def score(name, texts):
        return ("e",), np.zeros((len(texts), 1))

    async with server(score) as path:
        reader, writer = await asyncio.open_unix_connection(str(path))
        writer.write(b"\x00\x00\x00\x02{}")
        assert "expected an object" in (await read_frame(reader))["error"]
        writer.write(b"\xff\xff\xff\xff")
        with pytest.raises(ConnectionError):
            await read_frame(reader)
        reader, writer = await asyncio.open_unix_connection(str(path))
        writer.write(b'\x00\x00\x00\x3b{"id":7,"version":"v","text":"t","endpoints":["e","other"]}')
        assert (await read_frame(reader)) == {"id": 7, "scores": [0.0, None]}
        writer.close()
