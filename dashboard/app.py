"""The dashboard's entry: Streamlit runs this file for every visit. Access first, then the pages."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from dashboard import access, data, go
from dashboard.parts.notices import sandbox_banner
from dashboard.views import data_sets, decisions, episodes, flywheel, jobs, overview, review, routers, workers

PAGES: dict[str, tuple[Callable[[], None], str, str]] = {
    "overview": (overview.page, "Overview", "monitoring"),
    "decisions": (decisions.page, "Decisions", "alt_route"),
    "episodes": (episodes.page, "Episodes", "forum"),
    "review": (review.page, "Review", "rate_review"),
    "workers": (workers.page, "Workers", "smart_toy"),
    "routers": (routers.page, "Routers", "route"),
    "flywheel": (flywheel.page, "Flywheel", "autorenew"),
    "jobs": (jobs.page, "Jobs", "work_history"),
    "data": (data_sets.page, "Data", "database"),
}


def main() -> None:
    st.set_page_config(page_title="Pointsman", page_icon=":material/alt_route:", layout="wide")
    settings, config = data.configured()
    access.require(settings, config)
    pages = {
        path: st.Page(page, title=title, icon=f":material/{icon}:", url_path=path, default=path == "overview")
        for path, (page, title, icon) in PAGES.items()
    }
    go.known(pages)
    chosen = st.navigation(list(pages.values()), position="top")
    sandbox_banner(config)
    chosen.run()


main()
