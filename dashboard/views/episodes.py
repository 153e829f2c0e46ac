"""Episodes: conversations by their newest turn, and one of them turn by turn, with decisions, cost and outcome."""

from __future__ import annotations

from decimal import Decimal

import streamlit as st

from dashboard import data, go
from dashboard.parts.pager import Pager
from dashboard.words import NOTHING, dollars, milliseconds, moment, number, plain, summary
from pointsman.queries.conversations import EpisodeLine, Turn, conversation, episodes_page

PARAMETER = "episode"
PAGE_SIZE = 50


def page() -> None:
    source = data.source()
    wanted = st.query_params.get(PARAMETER)
    if wanted:
        _one(source, wanted)
    else:
        _list(source)


def _list(source: data.Source) -> None:
    st.title("Episodes")
    pager = Pager("episodes")
    found = episodes_page(source.engine, source.project, before=pager.before, limit=PAGE_SIZE)
    if not found.rows:
        st.info("No conversation yet: decisions without an episode are on the page Decisions.")
        return
    event = st.dataframe(
        [_row(line) for line in found.rows],
        hide_index=True,
        on_select="rerun",
        selection_mode="single-row",
        key=f"episodes-{found.rows[0].id}-{found.rows[-1].id}",
        alt="Episodes, newest first",
    )
    pager.buttons(found.older, f"{len(found.rows)} episodes, newest first. Select one to open it.")
    selected = event["selection"]["rows"]
    if selected and selected[0] < len(found.rows):
        st.query_params[PARAMETER] = found.rows[selected[0]].id
        st.rerun()


def _row(line: EpisodeLine) -> dict[str, object]:
    return {
        "Newest turn, UTC": moment(line.newest_at).removesuffix(" UTC"),
        "Began, UTC": moment(line.started_at).removesuffix(" UTC"),
        "Decisions": line.decisions,
        "Workers": ", ".join(line.workers) or NOTHING,
        "Outcomes": ", ".join(f"{count} {status}" for status, count in line.outcomes.items()),
        "Cost": dollars(line.cost) + (f" + {line.unknown_cost} unknown" if line.unknown_cost else ""),
        "Id": line.id,
    }


def _one(source: data.Source, wanted: str) -> None:
    st.button("All episodes", icon=":material/arrow_back:", on_click=st.query_params.clear)
    turns = conversation(source.engine, source.project, wanted)
    if not turns:
        st.error("There is no such episode.")
        st.text(wanted[:200])
        return
    st.title("Episode")
    st.code(wanted, language=None)
    traffic = [turn.line for turn in turns if turn.line.origin == "traffic"]
    known = [line.cost for line in traffic if line.cost is not None]
    with st.container(horizontal=True, gap="small"):
        st.metric("Decisions", str(len(turns)), border=True, width=170)
        st.metric("Workers", str(len({line.chosen for line in traffic if line.chosen})), border=True, width=170)
        st.metric(
            "Cost, USD", dollars(sum(known, Decimal(0))) if known else "unknown", f"n = {len(known)} of {len(traffic)}",
            delta_color="off", delta_arrow="off", border=True, width=170,
        )  # fmt: skip
        st.metric("Last outcome", (traffic[-1].outcome or "not ended") if traffic else NOTHING, border=True, width=220)
    for turn in turns:
        _turn(turn)


def _turn(turn: Turn) -> None:
    line = turn.line
    with st.container(border=True):
        st.caption(plain(f"{moment(line.decided_at)}, {line.origin}, pattern {line.pattern}"))
        with st.chat_message("user"):
            st.text(turn.ask if turn.ask is not None else "(not stored)")
        with st.chat_message("assistant"):
            st.text(turn.answer if turn.answer is not None else f"({line.outcome or 'not ended'}; no answer is stored)")
        words = f", feedback {summary(line.feedback)}" if line.feedback else ""
        facts = (
            f"chosen {line.chosen or 'nobody'} with p = {number(line.propensity)}"
            f"{', explored' if line.explored else ''}{f', forced: {line.forced}' if line.forced else ''}, "
            f"answered by {line.answered or 'nobody'}, {line.outcome or 'not ended'}, {milliseconds(line.latency_ms)}, "
            f"{dollars(line.cost) if line.cost is not None else 'cost unknown'}{words}"
        )
        told, button = st.columns([6, 1], vertical_alignment="center")
        told.caption(plain(facts))
        if button.button("Why?", key=f"why-{line.id}", help="Opens the decision.", width="stretch"):
            go.to("decisions", decision=line.id)
