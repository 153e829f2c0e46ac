"""Doctor's checks of this machine: Python, the data folder, the file, the journal, the database."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pointsman.commands.findings import Finding
from pointsman.errors import ConfigError, PointsmanError, StoreError, UserError

if TYPE_CHECKING:
    from pointsman.config import Config, Settings

OLDEST_PYTHON = (3, 11)
PRIVATE_FILES = ("admin.key", "directory.json")
MUCH_WAITING = 0.5
"""The share of the journal's limit from which on a person should look."""


def python(version: tuple[int, int, int] = sys.version_info[:3]) -> Finding:
    """The interpreter is recent enough."""
    words = ".".join(map(str, version))
    if version[:2] < OLDEST_PYTHON:
        return Finding("python", "fail", f"{words}, expected 3.11 or newer", "make the environment with a newer Python")
    return Finding("python", "ok", words)


def configuration(settings: Settings, config: Config) -> Finding:
    """The file is right; how many warnings `check` has."""
    from pointsman.config.advice import warnings

    count = len(warnings(config, settings))
    workers = f"{len(config.workers)} worker{'s' if len(config.workers) != 1 else ''}"
    message = f"{settings.config_file}: right, {workers}"
    if config.sandbox is not None:
        message += " (the sandbox's: a simulation)"
    if count:
        return Finding("configuration", "warn", f"{message}, {count} to look at", "`pointsman check` shows them")
    return Finding("configuration", "ok", message)


def faulty(error: ConfigError) -> Finding:
    """The file has faults, or is not there."""
    missing = "no such file" in error.problems[0]
    advice = "`pointsman init` writes one" if missing else "mend the file; `pointsman check` lists every fault"
    rest = len(error.problems) - 1
    more = f" (and {rest} more)" if rest else ""
    return Finding("configuration", "fail", error.problems[0] + more, advice)


def folder(settings: Settings) -> Finding:
    """The data folder can be written, and what is private in it is private."""
    home = settings.home
    if not home.exists():
        above = next(parent for parent in home.parents if parent.exists())
        if os.access(above, os.W_OK | os.X_OK):
            return Finding("data folder", "ok", f"{home} is not there yet; it is made at the first start")
        return Finding("data folder", "fail", f"{home} cannot be made: {above} is not writable", "set POINTSMAN_HOME")
    if not home.is_dir() or not os.access(home, os.W_OK | os.X_OK):
        return Finding("data folder", "fail", f"{home} is not a folder that can be written", "set POINTSMAN_HOME")
    open_files = [str(home / name) for name in PRIVATE_FILES if _others_may_read(home / name)]
    if open_files:
        return Finding(
            "data folder", "fail", f"others may read {', '.join(open_files)}", f"chmod 600 {' '.join(open_files)}"
        )
    if home.stat().st_mode & stat.S_IWOTH:
        return Finding("data folder", "warn", f"anyone may write into {home}", f"chmod o-w {home}")
    return Finding("data folder", "ok", str(home))


def journal(settings: Settings, config: Config) -> Finding:
    """How much of the log waits on disk for Postgres, and whether Postgres refused any row."""
    from pointsman.journal.folder import waiting_bytes
    from pointsman.journal.rejected import REJECTED

    root = Path(config.log.dir).expanduser() if config.log.dir else settings.home / "journal"
    if (root / REJECTED).exists():
        return Finding(
            "journal",
            "warn",
            f"Postgres refused rows; they are kept in {root / REJECTED}",
            "look at them",
        )
    waiting = waiting_bytes(root)
    limit = config.log.max_bytes
    if waiting >= MUCH_WAITING * limit:
        message = f"{waiting:,} of {limit:,} bytes wait for Postgres; when it is full the gateway answers 503"
        return Finding("journal", "warn", message, "see the database below; `pointsman serve` ships the rest")
    return Finding("journal", "ok", f"{waiting:,} bytes wait for Postgres" if waiting else "nothing waits for Postgres")


def database(settings: Settings, config: Config | None) -> list[Finding]:
    """The database answers, and its schema is this package's. An embedded server is not started for this."""
    try:
        url = config.database.url if config and config.database.url else _embedded(settings)
    except PointsmanError as error:
        return [Finding("database", "fail", str(error), "")]
    if url is None:
        return [
            Finding(
                "database",
                "ok",
                "the embedded server's programs are here; it does not run now",
                "`pointsman up` or `pointsman serve` starts it",
            )
        ]
    return _answering(url, "the configured database" if config and config.database.url else "the embedded server")


def _embedded(settings: Settings) -> str | None:
    """The URL of the embedded server where it runs."""
    from pointsman.database.embedded import EmbeddedPostgres

    server = EmbeddedPostgres(settings.home, pg_bin=settings.environment.get("PG_BIN"))
    return server.url if server.running() else None


def _answering(url: str, which: str) -> list[Finding]:
    from pointsman.commands.database import store_errors
    from pointsman.database.engine import make_engine
    from pointsman.queries import database_state

    try:
        with store_errors():
            engine = make_engine(url, application="pointsman-doctor")
            try:
                state = database_state(engine)
            finally:
                engine.dispose()
    except (UserError, StoreError) as error:
        return [Finding("database", "fail", str(error), "mend [database] url")]
    if not state.reachable:
        error_text = (state.error or "no answer").splitlines()[0]
        return [Finding("database", "fail", f"{which}: {error_text}", "start it, or mend [database] url")]
    findings = [Finding("database", "ok", f"{which} answers")]
    if state.current:
        findings.append(Finding("schema", "ok", f"at {state.revision}, the newest revision"))
    elif state.revision is None:
        findings.append(Finding("schema", "fail", "there is none yet", "`pointsman migrate`"))
    else:
        findings.append(
            Finding("schema", "fail", f"at {state.revision}, the newest is {state.head}", "`pointsman migrate`")
        )
    if stray := sum(state.default_rows.values()):
        advice = "imported rows of past months belong there; for others `pointsman migrate` is due"
        findings.append(Finding("partitions", "warn", f"{stray} rows are in no month's partition", advice))
    return findings


def _others_may_read(file: Path) -> bool:
    try:
        return bool(file.stat().st_mode & 0o077)
    except FileNotFoundError:
        return False
