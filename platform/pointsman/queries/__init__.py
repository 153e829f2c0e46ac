"""Reads of the log, for the dashboard, the gateway and the command line: plain functions, frozen values.

Each takes an engine and a project (None: all projects, for the operator). Nothing here writes; rows
come from the shipper. `overview` counts a time range, `decisions` lists, `record` gives one decision
whole, `state` says whether the database is there.
"""

from pointsman.queries.decisions import (
    DecisionLine,
    DecisionsPage,
    Word,
    decisions_page,
    episode_decisions,
    find_decision,
)
from pointsman.queries.filters import DecisionFilter
from pointsman.queries.overview import overview
from pointsman.queries.proportion import Proportion
from pointsman.queries.record import decision_record
from pointsman.queries.state import (
    DatabaseState,
    ProjectName,
    database_state,
    projects,
    traffic_span,
    worker_names,
)
from pointsman.queries.summaries import MetricLine, Overview, Percentiles, Point, Totals, WorkerLine

__all__ = [
    "DatabaseState",
    "DecisionFilter",
    "DecisionLine",
    "DecisionsPage",
    "MetricLine",
    "Overview",
    "Percentiles",
    "Point",
    "ProjectName",
    "Proportion",
    "Totals",
    "Word",
    "WorkerLine",
    "database_state",
    "decision_record",
    "decisions_page",
    "episode_decisions",
    "find_decision",
    "overview",
    "projects",
    "traffic_span",
    "worker_names",
]
