"""The dashboard's entry: Streamlit runs this file for every visit. Access first, then the pages."""

from __future__ import annotations

import streamlit as st

from dashboard import access, data
from dashboard.parts.notices import sandbox_banner
from dashboard.views import decisions, jobs, overview, workers


def main() -> None:
    st.set_page_config(page_title="Pointsman", page_icon=":material/alt_route:", layout="wide")
    settings, config = data.configured()
    access.require(settings, config)
    chosen = st.navigation(
        [
            st.Page(overview.page, title="Overview", icon=":material/monitoring:", url_path="overview", default=True),
            st.Page(decisions.page, title="Decisions", icon=":material/alt_route:", url_path="decisions"),
            st.Page(workers.page, title="Workers", icon=":material/smart_toy:", url_path="workers"),
            st.Page(jobs.page, title="Jobs", icon=":material/work_history:", url_path="jobs"),
        ],
        position="top",
    )
    sandbox_banner(config)
    chosen.run()


main()
