"""What a pattern will take on a request: calls, USD, milliseconds, each as low, expected and high.

From the pattern's shape alone at first; once enough runs of it have ended here, from those: the tenth and ninetieth
of a hundred, and the mean. USD are kept in units of one call of the request at the pool's mean price, so that a long
prompt's forecast is not a short one's.
"""

from __future__ import annotations

import statistics
from collections import OrderedDict, deque
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import NamedTuple

from harness.engine.patterns.sidekick import SPARE_TURNS
from pointsman.budgets import dearest
from pointsman.config.model import PatternConfig
from pointsman.pool import Worker
from pointsman.upstream.price import MILLION

OUTPUT_GUESS = 300
"""Tokens of output of a call where the request sets no limit."""
ENOUGH = 20
"""Runs from which on they are believed."""
KEPT = 200
LATENCY_GUESS = 2_000.0
"""Milliseconds of a call of a worker that has not answered here yet."""


class Shape(NamedTuple):
    """Calls to workers at least and at most, how many of them stand one behind another, and plans by a router LLM."""

    calls: tuple[int, int]
    depth: tuple[int, int]
    plans: int = 0


class Span(NamedTuple):
    low: float
    expected: float
    high: float


class Forecast(NamedTuple):
    """`usd` and `milliseconds` of a whole run. `runs` that it rests on; 0: the shape alone."""

    calls: Span
    usd: Span
    milliseconds: Span
    runs: int


class Ran(NamedTuple):
    """What one run took; `units` of USD, None where its cost is unknown."""

    calls: int
    units: float | None
    milliseconds: float


class Tallies:
    """The newest runs of every pattern, in this process."""

    def __init__(self, patterns: int = 200) -> None:
        self._patterns = patterns
        self._runs: OrderedDict[str, deque[Ran]] = OrderedDict()

    def note(self, name: str, ran: Ran) -> None:
        self._runs.setdefault(name, deque(maxlen=KEPT)).append(ran)
        if len(self._runs) > self._patterns:
            self._runs.popitem(last=False)

    def of(self, name: str) -> Sequence[Ran]:
        return self._runs.get(name, ())


def shape_of(pattern: PatternConfig) -> Shape:
    """What the pattern's settings allow, retries apart."""
    match pattern.pattern:
        case "single":
            return Shape((1, 1), (1, 1))
        case "trinity":
            return Shape((min(2, pattern.max_turns), pattern.max_turns), (min(2, pattern.max_turns), pattern.max_turns))
        case "workflow":
            if pattern.steps:
                return Shape((1, len(pattern.steps)), (1, len(pattern.steps)))
            most = pattern.max_steps * pattern.rounds
            return Shape((1, most), (1, most), pattern.rounds + pattern.repairs)
        case "cascade":
            most = 2 * len(pattern.tiers) - 1
            return Shape((min(2, most), most), (min(2, most), most))
        case "sidekick":
            most = 1 + SPARE_TURNS + 2 * pattern.max_delegations
            return Shape((1, most), (1, most))
        case "handoff":
            return Shape((1, 1 + pattern.max_handoffs), (1, 1 + pattern.max_handoffs))
        case "vote":
            judged = int(pattern.method == "judge")
            return Shape((pattern.n, pattern.n + judged), (1, 1 + judged))


def unit(prompt_tokens: int, output_tokens: int, workers: Sequence[Worker]) -> float:
    """USD of one call of this request at the mean price of `workers`; an unknown price is the dearest."""
    return statistics.mean(_costs(prompt_tokens, output_tokens, workers)) if workers else 0.0


def foretell(
    pattern: PatternConfig,
    prompt_tokens: int,
    output_tokens: int,
    workers: Sequence[Worker],
    latencies: Mapping[str, float],
    runs: Sequence[Ran],
) -> Forecast:
    """For one request among the eligible `workers`, with what each of them takes for a call (milliseconds)."""
    one = unit(prompt_tokens, output_tokens, workers)
    if len(runs) >= ENOUGH:
        units = [ran.units for ran in runs if ran.units is not None]
        return Forecast(
            _span([float(ran.calls) for ran in runs]),
            _scaled(_span(units), one) if units else _by_shape(pattern, prompt_tokens, output_tokens, workers),
            _span([ran.milliseconds for ran in runs]),
            len(runs),
        )
    shape = shape_of(pattern)
    times = [latencies.get(worker.name, LATENCY_GUESS) for worker in workers] or [LATENCY_GUESS]
    least, most = shape.depth
    return Forecast(
        Span(shape.calls[0], statistics.mean(shape.calls), shape.calls[1]),
        _by_shape(pattern, prompt_tokens, output_tokens, workers),
        Span(least * min(times), statistics.mean(shape.depth) * statistics.mean(times), most * max(times)),
        0,
    )


def at_most(pattern: PatternConfig, prompt_tokens: int, output_tokens: int, workers: Sequence[Worker]) -> Decimal:
    """USD that a run may cost: what is reserved for it."""
    return Decimal(repr(_by_shape(pattern, prompt_tokens, output_tokens, workers).high))


def at_least(pattern: PatternConfig, prompt_tokens: int, output_tokens: int, workers: Sequence[Worker]) -> Decimal:
    """USD without which a run need not begin: its fewest calls at the dearest price."""
    costs = _costs(prompt_tokens, output_tokens, workers)
    return Decimal(repr(shape_of(pattern).calls[0] * max(costs, default=0.0)))


def _by_shape(pattern: PatternConfig, prompt_tokens: int, output_tokens: int, workers: Sequence[Worker]) -> Span:
    """Every later call reads what the earlier ones wrote, and each plan reads the request."""
    shape, output = shape_of(pattern), output_tokens or OUTPUT_GUESS
    if not workers:
        return Span(0.0, 0.0, 0.0)
    least, most = shape.calls
    low = least * min(_costs(prompt_tokens, output_tokens, workers))
    grown = [max(_costs(prompt_tokens + n * output, output_tokens, workers)) for n in range(most)]
    middle = round((least + most) / 2)
    means = [statistics.mean(_costs(prompt_tokens + n * output, output_tokens, workers)) for n in range(middle)]
    plans = shape.plans * max(_costs(prompt_tokens, output_tokens, workers))
    return Span(low, sum(means) + plans / 2, sum(grown) + plans)


def _costs(prompt_tokens: int, output_tokens: int, workers: Sequence[Worker]) -> list[float]:
    top = dearest(worker.price for worker in workers)
    output = output_tokens or OUTPUT_GUESS
    prices = [worker.price or top for worker in workers]
    return [float((prompt_tokens * price.input + output * price.output) / MILLION) for price in prices]


def _span(values: Sequence[float]) -> Span:
    if len(values) < 2:
        return Span(values[0], values[0], values[0])
    tenths = statistics.quantiles(values, n=10, method="inclusive")
    mean = statistics.mean(values)
    return Span(min(tenths[0], mean), mean, max(tenths[-1], mean))


def _scaled(span: Span, by: float) -> Span:
    return Span(span.low * by, span.expected * by, span.high * by)
