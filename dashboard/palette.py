"""Colours that colour-blind people tell apart (Okabe and Ito, 2008), for light and dark backgrounds.

Black is left out (unreadable on dark) and yellow comes last (weak on white). A worker keeps its colour
on every page, whatever the time range shows, as long as the pool stays the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import altair as alt

OKABE_ITO = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442")
GREY = "#999999"
OTHERS = "other workers"

OUTCOME_COLOURS = {
    "ok": "#009E73",
    "upstream_error": "#D55E00",
    "timeout": "#E69F00",
    "truncated": "#CC79A7",
    "client_cancelled": "#56B4E9",
    "rejected": "#0072B2",
    "abandoned": GREY,
}


def named(worker: str, workers: Sequence[str]) -> str:
    """The worker's own name where it has a colour of its own, else the name of the rest."""
    return worker if worker in workers[: len(OKABE_ITO)] else OTHERS


def worker_scale(workers: Sequence[str], shown: Iterable[str]) -> alt.Scale:
    """Colours for the workers that a chart shows, each always the same one."""
    colours = dict(zip(workers, OKABE_ITO, strict=False)) | {OTHERS: GREY}
    present = set(shown)
    domain = [name for name in colours if name in present]
    return alt.Scale(domain=domain, range=[colours[name] for name in domain])
