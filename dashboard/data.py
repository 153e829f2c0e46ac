"""Where a page's data comes from: settings, configuration and engine, or a page that says what is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import streamlit as st
from sqlalchemy import Engine

from dashboard.people import projects_of, visitor
from pointsman.actions.actor import Actor
from pointsman.commands.client import gateway_address
from pointsman.config import Config, Settings, load_config
from pointsman.database.embedded import EmbeddedPostgres
from pointsman.database.engine import make_engine
from pointsman.errors import ConfigError, UserError
from pointsman.queries import DatabaseState, database_state, projects, worker_names

PROJECT = "project"
ALL_PROJECTS = "All projects"


@dataclass(frozen=True)
class Source:
    """What pages read from, and who reads. `project` is None where all projects are shown."""

    settings: Settings
    config: Config
    engine: Engine
    project: str | None
    state: DatabaseState
    actor: Actor
    names: Mapping[str, str]

    @property
    def one(self) -> str:
        """The one project that something can be done in; ends the script where one must be chosen first."""
        if self.project is None and len(self.names) != 1:
            st.info("Choose a project in the sidebar: what this page does belongs to one.")
            st.stop()
        return self.project or next(iter(self.names))

    @property
    def database(self) -> str:
        """Which database it is, without its password: part of what shared values are kept by."""
        return self.engine.url.render_as_string(hide_password=True)

    @property
    def gateway(self) -> str:
        """The gateway's address as this machine reaches it."""
        return f"{gateway_address(self.settings, self.config)}/v1"

    @property
    def workers(self) -> tuple[str, ...]:
        """Workers in the configuration's order, then those that only the log knows."""
        declared = [worker.name for worker in self.config.workers]
        return tuple(dict.fromkeys([*declared, *worker_names(self.engine)]))


def configured() -> tuple[Settings, Config]:
    """Settings and configuration, read at every run so that a changed file shows; a fault ends the script."""
    try:
        settings = Settings.read()
        return settings, load_config(settings.config_file)
    except ConfigError as error:
        st.error("The configuration cannot be read.")
        st.code("\n".join(error.problems), language=None, wrap_lines=True)
        st.write("Mend it, see `pointsman check`, and reload this page.")
        st.stop()


def source(*, empty: bool = False) -> Source:
    """The source of this page; ends the script with an explanation where there is nothing to read.

    `empty`: the page makes sense before the first decision.
    """
    settings, config = configured()
    try:
        engine = _engine(config.database.url or embedded_url(settings.home))
    except UserError as error:
        st.error("There is no database to read.")
        st.code(str(error), language=None, wrap_lines=True)
        st.stop()
    state = database_state(engine)
    _require_database(state, embedded=config.database.url is None)
    actor = visitor(config)
    allowed = projects_of(config, actor)
    names = {one.id: one.name for one in projects(engine) if allowed is None or one.name in allowed}
    made = Source(settings, config, engine, _project(names, every=allowed is None), state, actor, names)
    if state.newest_decision is None and not empty:
        _explain_empty(made)
        st.stop()
    return made


def embedded_url(home: Path) -> str:
    return EmbeddedPostgres(home).url


@st.cache_resource(show_spinner=False)
def _engine(url: str) -> Engine:
    return make_engine(url, pool_size=4, application="pointsman-dashboard")


def _require_database(state: DatabaseState, *, embedded: bool) -> None:
    if not state.reachable:
        st.error("The database does not answer.")
        if embedded:
            st.write("It is the embedded server of this data folder: `pointsman up` starts it.")
        else:
            st.write("Check that the server runs and that `[database] url` in `pointsman.toml` is right.")
        st.write("Traffic is not lost meanwhile: the gateway keeps it in its journal.")
        st.code(state.error or "", language=None, wrap_lines=True)
        st.button("Try again", icon=":material/refresh:")
        st.stop()
    if not state.migrated:
        st.error("The database holds no Pointsman tables yet.")
        st.write("`pointsman migrate` makes them; `pointsman up` does so by itself.")
        st.stop()
    if not state.current:
        st.warning(
            f"The database is at revision {state.revision}, this package expects {state.head}: run `pointsman migrate`."
        )
    misplaced = sum(state.default_rows.values())
    if misplaced:
        st.warning(
            f"{misplaced:,} rows are in default partitions: a month's partition is missing. "
            "`pointsman migrate` makes those to come."
        )


def _project(names: Mapping[str, str], *, every: bool) -> str | None:
    """The project that the sidebar chooses; no choice is offered where there is only one. `every`: all may be seen."""
    if not every and not names:
        st.error("None of the projects here is yours to see.")
        st.write("Whoever runs this dashboard can name you in `[pointsman.projects]` or `[dashboard] projects`.")
        st.stop()
    if len(names) < 2:
        return None if every else next(iter(names))
    offered = [ALL_PROJECTS, *names] if every else list(names)
    chosen = st.sidebar.selectbox(
        "Project", offered, format_func=lambda key: names.get(str(key), str(key)), key=PROJECT
    )
    return None if chosen == ALL_PROJECTS else chosen


def _explain_empty(source: Source) -> None:
    st.info("No decisions yet. Send a request, and it is here within a second or two:")
    st.code(
        f"curl {source.gateway}/chat/completions -H 'content-type: application/json' \\\n"
        '  -d \'{"model": "pointsman", "messages": [{"role": "user", "content": "What is 17 * 23?"}]}\'',
        language="bash",
        wrap_lines=True,
    )
    st.button("Look again", icon=":material/refresh:")
