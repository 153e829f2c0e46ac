"""What `pointsman import` prints: the numbers of a data set as a table, or as one JSON object."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from rich.console import Console
from rich.table import Table

from pointsman.replay.load import ImportReport
from pointsman.replay.tally import Numbers, WorkerNumbers


def as_json(report: ImportReport, unequal: list[str]) -> dict[str, Any]:
    """Everything that was computed, unrounded. Costs are decimal texts, in USD."""
    numbers = report.numbers
    return {
        "dataset": report.dataset,
        "project_id": report.project_id,
        "learn": report.learn,
        "queries": numbers.queries,
        "scored_queries": numbers.scored_queries,
        "outcomes": numbers.outcomes,
        "new_rows": report.new_rows,
        "workers": [_worker_json(worker) for worker in numbers.workers],
        "best_single": numbers.best_single,
        "best_single_score": _best_score(numbers),
        "oracle": numbers.oracle,
        "random": numbers.random,
        "oracle_cost": _cost(numbers.oracle_cost),
        "random_cost": _cost(numbers.random_cost),
        "database_agrees": not unequal,
        "differences": unequal,
    }


def show_report(out: Console, report: ImportReport, unequal: list[str]) -> None:
    """The table of numbers, what was new, and whether the database agrees with the files."""
    numbers = report.numbers
    out.print(
        f"{report.dataset}: {numbers.queries} queries, {numbers.outcomes} outcomes of {len(numbers.workers)} workers"
        + ("" if report.learn else " (replay only: never learned from)"),
        soft_wrap=True,
        highlight=False,
    )
    if numbers.scored_queries < numbers.queries:
        out.print(f"{numbers.queries - numbers.scored_queries} queries have no outcome and count in no mean")
    out.print(_table(numbers))
    new = ", ".join(f"{count} {table}" for table, count in report.new_rows.items() if count)
    out.print(f"new rows: {new or 'none, all were there'}", soft_wrap=True, highlight=False)
    if not unequal:
        out.print("database agrees with file")
        return
    out.print("database does not agree with file:", style="bold red")
    for line in unequal:
        out.print(f"  {line}", soft_wrap=True, highlight=False, markup=False)
    out.print("if the files have changed since they were imported, import them under another --name", soft_wrap=True)


def _table(numbers: Numbers) -> Table:
    table = Table(highlight=False)
    table.add_column("worker", overflow="fold")
    for column in ("outcomes", "mean score", "mean cost (USD)"):
        table.add_column(column, justify="right")
    for worker in sorted(numbers.workers, key=lambda item: (-item.mean_score, item.worker)):
        best = " (best single)" if worker.worker == numbers.best_single else ""
        table.add_row(
            worker.worker + best, str(worker.outcomes), f"{worker.mean_score:.4f}", _shown_cost(worker.mean_cost)
        )
    table.add_section()
    for label, score, cost in (
        ("oracle (best of each query)", numbers.oracle, numbers.oracle_cost),
        ("random", numbers.random, numbers.random_cost),
    ):
        table.add_row(label, "", "–" if score is None else f"{score:.4f}", _shown_cost(cost))
    return table


def _worker_json(worker: WorkerNumbers) -> dict[str, Any]:
    return {
        "worker": worker.worker,
        "outcomes": worker.outcomes,
        "queries": worker.queries,
        "mean_score": worker.mean_score,
        "costed": worker.costed,
        "mean_cost": _cost(worker.mean_cost),
    }


def _best_score(numbers: Numbers) -> float | None:
    return None if numbers.best_single is None else numbers.worker(numbers.best_single).mean_score


def _cost(cost: Decimal | None) -> str | None:
    return None if cost is None else f"{cost:f}"


def _shown_cost(cost: Decimal | None) -> str:
    return "–" if cost is None else f"{cost:.7f}"
