"""Going through pages by key: the cursors of the pages before this one are kept, so that one can go back."""

from __future__ import annotations

import streamlit as st


class Pager:
    """One list's pages in this visit, named so that lists do not share them."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._key = f"cursors-{name}"
        st.session_state.setdefault(self._key, [])

    @property
    def _cursors(self) -> list[str]:
        found: list[str] = st.session_state[self._key]
        return found

    @property
    def before(self) -> str | None:
        """The cursor of the page that is shown; None for the first."""
        return self._cursors[-1] if self._cursors else None

    def first(self) -> None:
        st.session_state[self._key] = []

    def buttons(self, older: str | None, below: str) -> None:
        """Newer and Older, and which page this is. `older`: the next page's cursor, None at the end."""
        back, on, where = st.columns([1, 1, 4], vertical_alignment="center")
        back.button(
            "Newer", icon=":material/chevron_left:", disabled=not self._cursors, on_click=self._newer,
            width="stretch", key=f"newer-{self.name}",
        )  # fmt: skip
        on.button(
            "Older", icon=":material/chevron_right:", icon_position="right", disabled=older is None,
            on_click=self._older, args=(older,), width="stretch", key=f"older-{self.name}",
        )  # fmt: skip
        where.caption(f"Page {len(self._cursors) + 1}, {below}")

    def _older(self, cursor: str | None) -> None:
        if cursor is not None:
            self._cursors.append(cursor)

    def _newer(self) -> None:
        self._cursors.pop()
