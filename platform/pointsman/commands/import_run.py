"""Runs an import for `pointsman import`: into the database, with a bar for each phase, then compared with it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from pointsman.commands.database import store_errors
from pointsman.config import Config, Settings
from pointsman.database.engine import make_engine
from pointsman.database.open import database_url
from pointsman.identity import ensure_project
from pointsman.replay import survey
from pointsman.replay.load import ImportReport, import_folder
from pointsman.replay.summary import differences, full_information_summary


def import_and_compare(
    settings: Settings, known: Config | None, folder: Path, dataset: str, project: str, learn: bool, notes: Console
) -> tuple[ImportReport, list[str]]:
    """Imports, and compares the database with the files."""
    with store_errors(), database_url(settings, known) as url:
        engine = make_engine(url, application="pointsman-import")
        try:
            with engine.begin() as connection:
                project_id = ensure_project(connection, project)
            with _progress(notes) as on_progress:
                report = import_folder(
                    url, folder, project_id=project_id, name=dataset, learn=learn, on_progress=on_progress
                )
            summary = full_information_summary(engine, project_id, dataset)
        finally:
            engine.dispose()
    return report, differences(report.numbers, summary)


@contextmanager
def _progress(notes: Console) -> Iterator[survey.OnProgress]:
    """A bar for each phase, on a terminal only."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=notes, transient=True, disable=not notes.is_terminal) as bars:
        tasks = {phase: bars.add_task(phase, total=None, start=False) for phase in ("checking", "outcomes", "queries")}

        def show(progress: survey.Progress) -> None:
            task = tasks[progress.phase]
            bars.start_task(task)
            bars.update(task, completed=progress.done, total=progress.total)

        yield show
