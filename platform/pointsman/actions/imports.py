"""What other systems logged, taken in by a person: `pointsman.intake` with a record of who did it."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from sqlalchemy import Engine

from pointsman.actions.actor import Actor, record, require
from pointsman.config import Config, Settings
from pointsman.errors import UserError
from pointsman.intake.load import Report, Wish, load
from pointsman.intake.maps import column_map
from pointsman.intake.reading import Source
from pointsman.pool import Pool


def import_log(
    engine: Engine,
    actor: Actor,
    project: str,
    settings: Settings,
    config: Config,
    file: Path,
    form: str,
    dataset: str,
    now: datetime,
    *,
    learn: bool,
) -> Report:
    """Imports a file into the project; lines that cannot be taken go to HOME/imports/DATASET.jsonl."""
    require(actor, "operator", "import a log")
    if not dataset.strip():
        raise UserError("dataset: expected a name")
    wish = Wish(
        source=Source(file, form, column_map(form)),
        dataset=dataset.strip(),
        rejects=settings.home / "imports" / f"{dataset.strip()}.jsonl",
        learn=learn,
        redact=config.log.redact,
        store_text=config.log.store_text,
        configured=Pool.of(config).by_name,
    )
    made = load(engine.url.render_as_string(hide_password=False), wish, project)
    with engine.begin() as connection:
        detail = {"dataset": wish.dataset, "form": form, "records": made.survey.records, "rejected": made.rejects.count}
        record(connection, actor, project, "import", now, subject=wish.dataset, detail=detail)
    return made
