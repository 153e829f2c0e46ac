"""What a change of the workers would do, seen on logged decisions before it is made.

    remove      its traffic goes to the next worker of the same scores
    reversion   another model or address under the name: as removed, until it has been learned anew
    reprice     the same choices, other money
    add         nothing knows it: it gets what exploration gives it, until audits or probes say what it is worth

Scores are those that were logged, so a prompted router's second choice stands for what it would say without the
worker; a trained router that serves gives such requests to the next of its chain (`harness.routing.wary`). What the
move is worth is said where requests were audited, so that every worker's answer is on record: the same rows before and
after, paired.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any, Literal

import numpy as np
from sqlalchemy import Connection, func, select

from pointsman.errors import UserError
from pointsman.pool import Price
from pointsman.probing.matrix import full_information
from pointsman.queries.proportion import Proportion
from pointsman.queries.scope import CALL, DECISION, in_time, of_project
from pointsman.rewards.compute import Window
from pointsman.statistics.episodes import paired_bootstrap
from pointsman.upstream.price import MILLION
from pointsman.words import Origin

Kind = Literal["remove", "reversion", "reprice", "add"]
MOST = 100_000
AUDITED: tuple[Origin, ...] = ("audit",)


@dataclass(frozen=True)
class Value:
    """Mean reward on audited rows before and after, and the paired difference with its interval."""

    rows: int
    before: float
    after: float
    difference: float
    low: float
    high: float


@dataclass(frozen=True)
class Foretold:
    """`moved` of `decisions` had this worker first; `to` says where they would go; costs are USD a request."""

    kind: Kind
    worker: str
    decisions: int
    moved: int = 0
    share: tuple[float, float, float] | None = None
    to: Mapping[str, int] = field(default_factory=dict)
    stranded: int = 0
    cost_before: Decimal | None = None
    cost_after: Decimal | None = None
    value: Value | None = None
    answers_lost: int = 0
    notes: tuple[str, ...] = ()


def foretell(
    connection: Connection,
    project: str,
    kind: Kind,
    worker: str,
    *,
    since: datetime | None = None,
    price: Price | None = None,
    epsilon: float = 0.05,
) -> Foretold:
    """Raises `UserError` where the log has no decision to look at, or none with this worker."""
    scored = _decisions(connection, project, since)
    if not scored:
        raise UserError("the log has no decision with scores in this time; send traffic first, or look further back")
    if kind == "add":
        return _added(worker, scored, epsilon)
    if not any(worker in scores for _, scores in scored):
        names = sorted({name for _, scores in scored for name in scores})
        raise UserError(f"no logged decision could choose {worker!r}; those that could be chosen: {', '.join(names)}")
    if kind == "reprice":
        return _repriced(connection, project, worker, scored, since, price)
    return _without(connection, project, kind, worker, scored, since)


def _decisions(connection: Connection, project: str, since: datetime | None) -> list[tuple[str, Mapping[str, float]]]:
    """(request, scores) of traffic that was not forced, newest first."""
    d = DECISION.c
    query = (
        select(d.request_id, d.scores)
        .where(
            of_project(DECISION, project), in_time(d.id, since, None), d.origin == "traffic", d.kind == "route",
            d.parent_id.is_(None), d.forced.is_(None), d.scores.is_not(None),
        )
        .order_by(d.id.desc())
        .limit(MOST)
    )  # fmt: skip
    return [(str(row.request_id), row.scores) for row in connection.execute(query)]


def _added(worker: str, scored: Sequence[tuple[str, Mapping[str, float]]], epsilon: float) -> Foretold:
    known = {name for _, scores in scored for name in scores}
    if worker in known:
        raise UserError(f"{worker!r} is a worker of the log already; --remove, --reprice and --reversion are for those")
    share = float(np.mean([epsilon / (len(scores) + 1) for _, scores in scored]))
    note = (
        f"a prompted router reads its card at once; a trained one cannot choose it, so {share:.2%} of the requests "
        "reach it by exploration until it is probed and the flywheel has turned"
    )
    return Foretold("add", worker, len(scored), round(share * len(scored)), notes=(note,))


def _without(
    connection: Connection, project: str, kind: Kind, worker: str, scored: Sequence[tuple[str, Mapping[str, float]]],
    since: datetime | None,
) -> Foretold:  # fmt: skip
    first = [(request, scores) for request, scores in scored if _best(scores) == worker]
    nexts = [_best({name: score for name, score in scores.items() if name != worker}) for _, scores in first]
    to = Counter(name for name in nexts if name is not None)
    costs = _mean_costs(connection, project, since)
    stranded = sum(name is None for name in nexts)
    before = _cost(Counter(_best(scores) or worker for _, scores in scored), costs)
    after = _cost(Counter(_best({n: s for n, s in scores.items() if n != worker}) for _, scores in scored), costs)
    value, note = _value(connection, project, worker, dict(scored), since)
    notes = [note] if note else []
    if stranded:
        notes.append(f"{stranded} requests could go nowhere else: they would be refused")
    lost = _answers(connection, project, worker) if kind == "reversion" else 0
    if kind == "reversion":
        notes.append(f"{lost} answers of the old version stay in the log, and say nothing of the new one")
    low, high = Proportion(len(first), len(scored)).wilson() or (0.0, 1.0)
    return Foretold(
        kind, worker, len(scored), len(first), (len(first) / len(scored), low, high), dict(to.most_common()), stranded,
        before, after, value, lost, tuple(notes),
    )  # fmt: skip


def _repriced(
    connection: Connection, project: str, worker: str, scored: Sequence[tuple[str, Mapping[str, float]]],
    since: datetime | None, price: Price | None,
) -> Foretold:  # fmt: skip
    if price is None:
        raise UserError("a new price is needed: --input and --output, USD per million tokens")
    c = CALL.c
    sums = connection.execute(
        select(
            func.coalesce(func.sum(c.input_tokens), 0), func.coalesce(func.sum(c.cached_tokens), 0),
            func.coalesce(func.sum(c.output_tokens), 0), func.sum(c.cost), func.count(),
        ).where(of_project(CALL, project), in_time(c.id, since, None), c.worker == worker, c.purpose == "serve")
    ).one()  # fmt: skip
    tokens_in, cached, tokens_out, was, calls = sums
    now = (
        Decimal(tokens_in - cached) * price.input
        + Decimal(cached) * price.cached_input
        + Decimal(tokens_out) * price.output
    ) / MILLION
    moved = sum(_best(scores) == worker for _, scores in scored)
    notes = (
        f"{calls} calls with {tokens_in} tokens in and {tokens_out} out cost "
        f"{'an unknown sum' if was is None else f'${was:.4f}'}, and would cost ${now:.4f}",
        "choices stay as they are: rewards are kept in terms, and a spec that weighs cost is computed anew",
    )
    each = Decimal(len(scored))
    return Foretold(
        "reprice", worker, len(scored), moved, cost_before=None if was is None else was / each, cost_after=now / each,
        notes=notes,
    )  # fmt: skip


def _value(
    connection: Connection, project: str, worker: str, scored: Mapping[str, Mapping[str, float]], since: datetime | None
) -> tuple[Value | None, str | None]:
    matrix = full_information(connection, project, AUDITED, Window(since, None), failures="poor")
    names = {name: number for number, name in enumerate(matrix.names)}
    before, after = [], []
    for row, request in enumerate(matrix.requests):
        scores = {name: one for name, one in scored.get(request, {}).items() if name in names}
        first, second = _best(scores), _best({name: one for name, one in scores.items() if name != worker})
        if first is None or second is None:
            continue
        pair = matrix.scores[row, names[first], 0], matrix.scores[row, names[second], 0]
        if np.isfinite(pair).all():
            before.append(pair[0])
            after.append(pair[1])
    if len(before) < 2:
        return None, "what the move is worth is not known: no request with scores was audited (`pointsman audit`)"
    found = paired_bootstrap(after, before, np.random.default_rng(1))
    value = Value(
        len(before), float(np.mean(before)), float(np.mean(after)), found.estimate, found.low, found.high
    )  # fmt: skip
    return value, None


def _mean_costs(connection: Connection, project: str, since: datetime | None) -> dict[str, Decimal]:
    c = CALL.c
    rows = connection.execute(
        select(c.worker, func.avg(c.cost))
        .where(of_project(CALL, project), in_time(c.id, since, None), c.purpose == "serve", c.cost.is_not(None))
        .group_by(c.worker)
    )
    return {row[0]: row[1] for row in rows}


def _cost(picks: Counter[Any], costs: Mapping[str, Decimal]) -> Decimal | None:
    """Mean USD a request if every pick cost what its worker's calls cost; None where one's are not known."""
    served = {name: n for name, n in picks.items() if name is not None}
    if not served or any(name not in costs for name in served):
        return None
    return sum((costs[name] * n for name, n in served.items()), Decimal(0)) / sum(served.values())


def _answers(connection: Connection, project: str, worker: str) -> int:
    c = CALL.c
    query = select(func.count()).select_from(CALL).where(of_project(CALL, project), c.worker == worker)
    return int(connection.scalar(query) or 0)


def _best(scores: Mapping[str, float]) -> str | None:
    """The first in the order of names of those with the highest score."""
    return max(sorted(scores), key=lambda name: scores[name]) if scores else None
