"""From one page to another within a visit: `app` leaves its pages here, so that pages need not know each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

PAGES = "pages"


def known(pages: Mapping[str, Any]) -> None:
    """To be called by every run of the app, with its pages by the path of their address."""
    st.session_state[PAGES] = dict(pages)


def to(page: str, **query: str) -> None:
    """Opens a page with these parameters in its address; ends the script. A page that runs alone only gets them."""
    found = st.session_state.get(PAGES, {}).get(page)
    if found is not None:
        st.switch_page(found, query_params=query)
    st.query_params.from_dict(query)
    st.rerun()
