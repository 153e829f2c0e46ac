"""Runs `pointsman import FILE`, and says what came of it: a few lines, or one JSON object."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from pointsman.commands.edge import USER_ERROR, show_error
from pointsman.commands.options import opened
from pointsman.commands.output import notes, out, print_json, say, visible
from pointsman.errors import UserError

if TYPE_CHECKING:
    from rich.console import Console

    from pointsman.config import Config, Settings
    from pointsman.intake.load import Report, Wish
    from pointsman.intake.survey import OnLines

PROPENSITY = "propensities: another system decided, so no off-policy estimate uses these rows"


@dataclass(frozen=True)
class FileImport:
    """The command's arguments."""

    file: Path
    form: str | None
    name: str | None
    project: str
    learn: bool
    map_file: Path | None
    scores: Path | None
    metric: str | None
    rejects: Path | None
    dry_run: bool


def import_file(wanted: FileImport, config: Path | None, *, json: bool) -> int:
    """Imports, prints, and returns how many lines were rejected."""
    try:
        settings, known = opened(config)
        wish = _wish(wanted, settings, known)
        report = _run(wanted, wish, settings, known)
    except UserError as error:
        show_error(error)
        raise typer.Exit(USER_ERROR) from None
    if json:
        print_json(as_json(report))
    else:
        _show(out(), report)
    return report.rejects.count


def as_json(report: Report) -> dict[str, Any]:
    """Everything that was counted."""
    made = report.survey
    return {
        "dataset": report.wish.dataset,
        "format": report.wish.source.form,
        "origin": "replay",
        "learn": report.learn,
        "lines": made.lines,
        "answers": made.records,
        "questions": len(made.questions) or made.records,
        "workers": dict(sorted(made.answers.items())),
        "first": made.first,
        "last": made.last,
        "lacking": {"propensity": made.records, **{name: made.lacking[name] for name in _lacking_words()}},
        "priced_by_configuration": report.priced,
        "left_out": dict(made.left_out),
        "scores_unused": dict(report.wish.source.scores.unused) if report.wish.source.scores else {},
        "rejected": report.rejects.count,
        "rejects_file": str(report.rejects.file) if report.rejects.count else None,
        "first_rejects": [{"line": fault.number, "reason": fault.reason} for fault in report.rejects.first],
        "new_rows": report.new_rows,
    }


def _wish(wanted: FileImport, settings: Settings, known: Config | None) -> Wish:
    from pointsman.intake.load import Wish
    from pointsman.intake.maps import FORMATS, column_map
    from pointsman.intake.reading import Source
    from pointsman.intake.scores import read_scores
    from pointsman.pool import Pool

    if not wanted.file.exists():
        raise UserError(f"{wanted.file}: no such file or folder")
    if wanted.form is None:
        raise UserError(f"--format: say what {wanted.file.name} is: {', '.join(FORMATS)}")
    columns = column_map(wanted.form, wanted.map_file)
    if wanted.metric is not None and wanted.scores is None:
        raise UserError("--metric: names a metric of --scores FILE, which was not given")
    scores = read_scores(wanted.scores, wanted.metric) if wanted.scores else None
    dataset = wanted.name or wanted.file.name.partition(".")[0]
    return Wish(
        source=Source(wanted.file, wanted.form, columns, scores),
        dataset=dataset,
        rejects=wanted.rejects or settings.home / "imports" / f"{dataset}.jsonl",
        learn=wanted.learn,
        redact=known.log.redact if known else (),
        store_text=known.log.store_text if known else True,
        configured=Pool.of(known).by_name if known else None,
    )


def _run(wanted: FileImport, wish: Wish, settings: Settings, known: Config | None) -> Report:
    from pointsman.commands.database import store_errors
    from pointsman.database.engine import make_engine
    from pointsman.database.open import database_url
    from pointsman.identity import ensure_project
    from pointsman.intake.load import load, look

    with _progress(notes()) as on_lines:
        if wanted.dry_run:
            return look(wish, on_lines)
        with store_errors(), database_url(settings, known) as url:
            engine = make_engine(url, application="pointsman-import")
            try:
                with engine.begin() as connection:
                    project_id = ensure_project(connection, wanted.project)
            finally:
                engine.dispose()
            return load(url, wish, project_id, on_lines)


@contextmanager
def _progress(console: Console) -> Iterator[OnLines]:
    """One line that counts, on a terminal only."""
    if not console.is_terminal:
        yield lambda phase, lines: None
        return
    with console.status("reading …") as status:
        yield lambda phase, lines: status.update(f"{phase}: {lines} lines")


def _lacking_words() -> dict[str, str]:
    from pointsman.intake.survey import LACKING

    return dict(LACKING)


def _show(console: Console, report: Report) -> None:
    made, wish = report.survey, report.wish
    questions = f" to {len(made.questions)} questions" if made.questions else ""
    learned = "" if report.learn else " (never learned from)"
    say(console, f"{wish.dataset}: {made.records} answers of {len(made.models)} workers{questions}{learned}")
    for worker, number in made.answers.most_common():
        say(console, f"  {visible(worker)}  {number}")
    if made.first and made.last:
        say(console, f"asked from {made.first:%Y-%m-%d %H:%M} to {made.last:%Y-%m-%d %H:%M} UTC")
    say(console, f"not in the file, so not known: {PROPENSITY}")
    for name, words in _lacking_words().items():
        if number := made.lacking[name]:
            say(console, f"  {words}: of {number} of {made.records} answers")
    if report.priced:
        say(console, f"cost of {report.priced} answers: computed from tokens and the configured prices")
    for kind, number in made.left_out.most_common():
        say(console, f"left out: {number} rows of type {visible(kind)}")
    if wish.source.scores:
        for reason, number in wish.source.scores.unused.items():
            say(console, f"scores not used: {number} with {reason}")
    if report.new_rows is None:
        say(console, "nothing was written (--dry-run)")
    else:
        new = ", ".join(f"{count} {table}" for table, count in report.new_rows.items() if count)
        say(console, f"new rows, of origin replay: {new or 'none, all were there'}")
    _show_rejects(console, report)


def _show_rejects(console: Console, report: Report) -> None:
    rejects = report.rejects
    if not rejects.count:
        return
    say(console, f"{rejects.count} lines were rejected; they are kept in {rejects.file}", "red")
    for fault in rejects.first:
        say(console, f"  line {fault.number}: {visible(fault.reason)}")
    if rejects.count > len(rejects.first):
        say(console, "  …")
