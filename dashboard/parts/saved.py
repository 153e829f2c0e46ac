"""What routing saved against always asking one worker: the dearest, unless another is chosen."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import streamlit as st

from dashboard.data import Source
from dashboard.words import dollars, percent
from pointsman.config import WorkerConfig
from pointsman.queries import Overview
from pointsman.queries.savings import LEAST_CHOSEN, LEAST_HOURS, Saved, saved_against


def section(source: Source, shown: Overview) -> None:
    st.subheader("Saved")
    against = st.selectbox(
        "Against always asking", source.workers, index=source.workers.index(dearest(source)), key="against", width=320
    )
    if against is None:
        return
    saved = saved_against(shown.costs, against)
    if saved is None:
        st.caption(
            f"Too little to say: it takes {LEAST_HOURS} hours with drawn decisions of known cost, and draws of this "
            f"worker that weigh as {LEAST_CHOSEN:.0f} decisions."
        )
        return
    with st.container(horizontal=True, gap="small"):
        st.metric(
            "Saved, USD", signed(saved.usd), _n(saved), delta_color="off", delta_arrow="off", border=True, width=220
        )
        bounds = f"{signed(saved.low)} to {signed(saved.high)}"
        st.metric("95% interval, USD", bounds, _n(saved), delta_color="off", delta_arrow="off", border=True, width=320)
        st.metric(
            "Share of its cost", percent(saved.share) if (saved.share or 0) >= 0 else "none", border=True, width=220
        )
    st.caption(
        "What the drawn decisions of this time would have cost with this worker alone, estimated from their logged "
        "propensities (self-normalised, hours as clusters), less what they did cost. Negative: routing cost more. "
        "Money only: it says nothing of quality."
    )


def dearest(source: Source) -> str:
    """The worker with the highest price of output; the first where none has a price."""
    priced = {worker.name: _output(worker) for worker in source.config.workers}
    names: Sequence[str] = source.workers
    return max(names, key=lambda name: priced.get(name, Decimal(-1)))


def signed(usd: float) -> str:
    shown = dollars(Decimal(repr(abs(usd))))
    return f"−{shown}" if usd < 0 else shown


def _output(worker: WorkerConfig) -> Decimal:
    return Decimal(-1) if worker.price is None else Decimal(str(worker.price.output))


def _n(saved: Saved) -> str:
    return f"n = {saved.decisions:,} drawn decisions"
