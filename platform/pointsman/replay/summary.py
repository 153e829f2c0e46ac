"""The numbers of a replayed data set as the database holds it, to be compared with those of its files."""

from __future__ import annotations

from dataclasses import fields

from sqlalchemy import Engine, text

from pointsman.replay.records import dataset_tag
from pointsman.replay.tally import Numbers, Tally

FETCH = 5000
_FULL_INFORMATION = text(
    "SELECT decision.id AS decision_id, outcome.worker, outcome.score, outcome.cost "
    "FROM request "
    "JOIN decision ON decision.request_id = request.id AND decision.origin = 'replay' "
    "LEFT JOIN outcome ON outcome.decision_id = decision.id AND outcome.call_id IS NOT NULL "
    "WHERE request.project_id = :project_id AND request.tags @> ARRAY[:tag]"
)


def full_information_summary(engine: Engine, project_id: str, dataset: str) -> Numbers:
    """The same numbers that an import computes from the files, from the rows of the log.

    Rows are streamed, `FETCH` at a time. No rows give numbers with zero queries.
    """
    tally = Tally()
    with engine.connect().execution_options(stream_results=True, max_row_buffer=FETCH) as connection:
        found = connection.execute(_FULL_INFORMATION, {"project_id": project_id, "tag": dataset_tag(dataset)})
        for decision_id, worker, score, cost in found:
            tally.add_query(decision_id)
            if worker is not None:
                tally.add(decision_id, worker, score, cost)
    return tally.numbers()


def differences(file: Numbers, database: Numbers) -> list[str]:
    """A line for each number in which the two differ; none where they agree to the last bit."""
    lines = [
        f"{field.name}: {getattr(file, field.name)} in the file, {getattr(database, field.name)} in the database"
        for field in fields(Numbers)
        if field.name != "workers" and getattr(file, field.name) != getattr(database, field.name)
    ]
    ours = {worker.worker: worker for worker in file.workers}
    theirs = {worker.worker: worker for worker in database.workers}
    for name in sorted(ours.keys() | theirs.keys()):
        if ours.get(name) != theirs.get(name):
            lines.append(f"{name}: {ours.get(name)} in the file, {theirs.get(name)} in the database")
    return lines
