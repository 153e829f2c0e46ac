"""One run of `pointsman optimize`, from configuration and log to log: what the command and the job call.

Reads the rows, searches, opens a certification set where something looked better, writes what was found. The router LLM
and the reflection LM are reached through `pointsman.upstream`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy import Engine

from harness.optimise.budget import Budget, OnCost
from harness.optimise.build import RouterLlm, router_of
from harness.optimise.candidate import Candidate
from harness.optimise.optimise import Reflection, Setting, optimise
from harness.optimise.reading import Read, read_full, read_traffic
from harness.optimise.release import (
    Opened,
    Place,
    last_window,
    open_certification,
    pool_epoch,
    write_certificates,
    write_version,
)
from harness.optimise.report import Report
from harness.optimise.rows import Rows, Splits, split
from harness.optimise.search import Plan
from harness.optimise.worker_lm import worker_lm
from harness.routing.base import RouterVersion
from harness.routing.lm import chat_lm
from harness.routing.prompted import Lm
from harness.routing.template import default_template
from pointsman.config import Config, Settings
from pointsman.errors import UserError
from pointsman.pool import Pool, Price, Worker
from pointsman.rewards.refresh import judge_of, kept, refresh
from pointsman.rewards.spec import DEFAULT, spec_of
from pointsman.upstream.direct import Direct
from pointsman.upstream.pooled import PooledTransport
from pointsman.words import Origin

LEAST_CERTIFIED = 50
DEADLINE = 60.0  # seconds for one call: a search is in no hurry


@dataclass(frozen=True)
class Wish:
    """What is asked for. `origins` empty: learn from traffic, by pseudo-outcomes. `reflect` names a worker."""

    origins: tuple[Origin, ...] = ("probe", "audit")
    tags: tuple[str, ...] = ()
    reward: str | None = None
    trade_off: float = 0.0
    calls: int = 1_000
    money: Decimal | None = None
    minutes: float | None = None
    reflect: str | None = None
    demonstrations: int = 0
    brief: bool = False
    mipro: bool = False
    seed: int = 1
    concurrency: int = 8
    keep: bool = False
    start: Path | None = None


@dataclass(frozen=True)
class Done:
    """A run that ended. `version` is the winner's id where it was written, `certificates` the rows' ids."""

    report: Report
    left_out: dict[str, int]
    version: str | None
    certificates: tuple[str, ...]
    uncertified: str | None

    def as_dict(self) -> dict[str, Any]:
        return {
            **self.report.as_dict(),
            "rows_left_out": self.left_out,
            "router_version": self.version,
            "certificate_rows": list(self.certificates),
            "not_certified_because": self.uncertified,
        }


Tell = Callable[[str], None]


def run(
    config: Config,
    settings: Settings,
    engine: Engine,
    project: str,
    wish: Wish,
    folder: Path | None,
    tell: Tell,
    on_cost: OnCost = lambda amount: None,
) -> Done:
    """Raises `UserError` where configuration or log lack what a search needs. `on_cost` hears of each call's cost."""
    workers = chat_workers(config)
    read = _read(engine, project, workers, config, wish)
    with engine.connect() as connection:
        splits = split(read.rows, spent=last_window(connection, project))
    start = start_of(config, workers, wish.start)
    llm = router_llm(config)
    with asyncio.Runner() as runner:
        transport, direct = runner.run(_opened(config, settings))
        try:
            key = settings.secret(config.router.api_key_env)
            lm = chat_lm(transport, str(config.router.base_url), key, config.timeouts.connect)
            setting = replace(_setting(config, wish, llm, direct, folder), on_cost=on_cost)
            incumbent = router_of(start, llm, lm).version.id
            endpoints = None if "replay" in wish.origins else {one.name: one.endpoint_hash for one in workers}
            epoch = pool_epoch(Pool.of(config).workers)
            place = Place(project, epoch, incumbent, _spec_hash(config, wish), read.judge_units, endpoints)
            release = _Release(engine, place, llm, lm)
            report = optimise(splits, start, workers, lm, setting, runner, tell, release.open)
        finally:
            runner.run(direct.__aexit__())
    version, certificates = release.close(report, keep=wish.keep)
    return Done(report, dict(read.left_out), version, certificates, _why_not(report, splits))


def chat_workers(config: Config) -> tuple[Worker, ...]:
    """The workers that a prompted router chooses among."""
    workers = tuple(worker for worker in Pool.of(config).workers if "embeddings" not in worker.capabilities)
    if len(workers) < 2:
        raise UserError(f"a search needs at least two workers that chat, the configuration has {len(workers)}")
    return workers


def router_llm(config: Config) -> RouterLlm:
    """The router LLM of the configuration; without one there is nothing to search for."""
    section = config.router
    if section.model is None or section.base_url is None:
        raise UserError("[router] model and base_url: a search needs the router LLM that the cards are written for")
    return RouterLlm(section.model, section.base_url, Price.of(section.price), section.deadline)


def start_of(config: Config, workers: tuple[Worker, ...], file: Path | None = None) -> Candidate:
    """The incumbent: what the configuration declares, with the cards of `file` (JSON, by worker) where given."""
    section = config.router
    instructions = section.instructions or default_template().instructions
    declared = {worker.name: worker.card for worker in workers}
    if file is not None:
        declared |= _cards_in(file, declared)
    return Candidate(declared, instructions, section.scoring, origin="configuration" if file is None else file.name)


class _Release:
    """Opens the certification set when the search has ended, and writes what came of it."""

    def __init__(self, engine: Engine, place: Place, llm: RouterLlm, lm: Lm) -> None:
        self._engine, self._place, self._llm, self._lm = engine, place, llm, lm
        self._opened: Opened | None = None

    def open(self, winner: Candidate, rows: Rows) -> float | None:
        """The error that may be spent; None where there are too few rows to open them for."""
        if rows.basis != "full" or len(rows) < LEAST_CERTIFIED:
            return None
        with self._engine.begin() as connection:
            self._opened = open_certification(
                connection, self._place, self._version(winner).id, rows, datetime.now(UTC)
            )
        return self._opened.alpha

    def close(self, report: Report, *, keep: bool) -> tuple[str | None, tuple[str, ...]]:
        """Writes the certificates, and with `keep` the certified winner as a candidate."""
        if report.certificate is None or self._opened is None:
            return None, ()
        version, now = self._version(report.winner), datetime.now(UTC)
        rows = report.splits.certification
        with self._engine.begin() as connection:
            made = write_certificates(connection, self._place, version.id, report.certificate, rows, self._opened, now)
            # A certificate names two versions: both must be there for it to be computed again.
            write_version(connection, router_of(report.found.start, self._llm, self._lm).version, "draft", now)
            wanted = keep and report.verdict == "certified"
            write_version(connection, version, "candidate" if wanted else "draft", now)
        return version.id if wanted else None, tuple(made)

    def _version(self, winner: Candidate) -> RouterVersion:
        return router_of(winner, self._llm, self._lm, self._place.incumbent).version


def _read(engine: Engine, project: str, workers: tuple[Worker, ...], config: Config, wish: Wish) -> Read:
    if wish.origins:
        spec = None if wish.reward is None else spec_of(config, wish.reward)
        with engine.connect() as connection:
            return read_full(connection, project, workers, wish.origins, tags=wish.tags, spec=spec)
    known = spec_of(config, wish.reward or DEFAULT)
    refresh(engine, known, datetime.now(UTC), kept=kept(config), judge=judge_of(config))
    with engine.connect() as connection:
        return read_traffic(connection, project, workers, known.hash, np.random.default_rng(wish.seed))


def _setting(config: Config, wish: Wish, llm: RouterLlm, direct: Direct, folder: Path | None) -> Setting:
    default = config.router.default or config.workers[0].name
    seconds = None if wish.minutes is None else 60 * wish.minutes
    reflection = None if wish.reflect is None else _reflection(config, direct, wish.reflect)
    if wish.mipro and reflection is None:
        raise UserError("--mipro writes instructions with a language model: name one with --reflect WORKER")
    return Setting(
        llm=replace(llm, deadline=DEADLINE),
        default=default,
        budget=Budget(wish.calls, wish.money, seconds),
        plan=Plan(seed=wish.seed, demonstrations=wish.demonstrations),
        trade_off=wish.trade_off,
        concurrency=wish.concurrency,
        brief_instructions=wish.brief,
        mipro=wish.mipro,
        reflection=reflection,
        folder=folder,
    )


def _reflection(config: Config, direct: Direct, name: str) -> Reflection:
    worker = Pool.of(config).by_name.get(name)
    if worker is None:
        raise UserError(
            f"--reflect: no worker {name!r}; the configuration has {', '.join(w.name for w in config.workers)}"
        )
    return Reflection(worker_lm(direct, worker), worker.model, worker.price)


def _spec_hash(config: Config, wish: Wish) -> str | None:
    return None if wish.reward is None else spec_of(config, wish.reward).hash


def _why_not(report: Report, splits: Splits) -> str | None:
    if report.certificate is not None or not report.found.better:
        return None
    if splits.certification.basis != "full":
        return "pseudo-outcomes of traffic certify nothing: full-information rows do (`pointsman audit`)"
    return (
        f"{len(splits.certification)} fresh rows to certify with, at least {LEAST_CERTIFIED} are needed; "
        "rows up to the last certificate are spent: collect more with `pointsman probe` or `pointsman audit`"
    )


def _cards_in(file: Path, declared: Collection[str]) -> dict[str, str]:
    import json

    try:
        cards = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"{file}: expected JSON, a card by worker: {error}") from None
    if not isinstance(cards, dict) or not all(isinstance(card, str) for card in cards.values()):
        raise UserError(f"{file}: expected an object from worker to card")
    if unknown := sorted(set(cards) - set(declared)):
        raise UserError(f"{file}: no such workers: {', '.join(unknown)}")
    return cards


async def _opened(config: Config, settings: Settings) -> tuple[PooledTransport, Direct]:
    """The transport of this event loop, and the client to workers over it, which closes it."""
    transport = PooledTransport()
    return transport, await Direct(config, settings.secret, transport=transport).__aenter__()
