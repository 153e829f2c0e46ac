"""The embedded server's life: as whom, whose, after a kill, in odd places."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from pointsman.database.account import Account, choose_account, make_own, run_as
from pointsman.database.embedded import SOCKET_PATH_LIMIT, EmbeddedPostgres, embedded, find_binaries
from pointsman.database.engine import normalised_url, psycopg_url
from pointsman.errors import ConfigError, StoreError, UserError

AS_ROOT = os.geteuid() == 0

OWNER = """
import sys, time
from pathlib import Path
from pointsman.database.embedded import EmbeddedPostgres
print(EmbeddedPostgres(Path(sys.argv[1])).start(), flush=True)
time.sleep(120)
"""


@pytest.fixture
def home() -> Iterator[Path]:
    """A home that another account may enter."""
    made = Path(tempfile.mkdtemp(prefix="pointsman-pg-"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made, ignore_errors=True)


def say(url: str, query: str = "SELECT current_database()") -> str:
    with psycopg.connect(psycopg_url(url)) as connection:
        row = connection.execute(query).fetchone()
        assert row is not None
        return str(row[0])


def server_pid(home: Path) -> int:
    return int((home / "postgres" / "postmaster.pid").read_text().split()[0])


def test_first_start_second_user_kill_of_the_owner_and_stop(home: Path) -> None:
    """One cluster through its life: starting one takes seconds."""
    owner = subprocess.Popen([sys.executable, "-c", OWNER, str(home)], stdout=subprocess.PIPE)
    try:
        second = EmbeddedPostgres(home)
        assert not second.running()
        assert owner.stdout is not None
        url = owner.stdout.readline().decode().strip()
        assert url == second.url
        assert say(url) == "pointsman"
        assert say(url, "SHOW listen_addresses") == ""
        assert (home / "postgres-socket").stat().st_mode & 0o777 == 0o700
        # A second process only uses it.
        assert second.start() == url
        second.stop()
        assert second.running()
        pid = server_pid(home)
        # The owner is killed: the server goes on, and the next to start owns it.
        owner.kill()
        owner.wait()
        assert EmbeddedPostgres(home).running()
        third = EmbeddedPostgres(home)
        third.start()
        assert server_pid(home) == pid
        with psycopg.connect(psycopg_url(url)) as connection:
            connection.execute("CREATE TABLE kept AS SELECT 7 AS n")
        # The server itself is killed: it is started again, and recovers.
        os.kill(pid, signal.SIGKILL)
        third._lock.close() if third._lock else None  # as the owner's death would
        fourth = EmbeddedPostgres(home)
        fourth.start()
        assert server_pid(home) != pid
        assert say(url, "SELECT n FROM kept") == "7"
        fourth.stop()
        assert not fourth.running() and not (home / "postgres" / "postmaster.pid").exists()
        # A pid file left by a crash of the machine names a process that is not a server.
        (home / "postgres" / "postmaster.pid").write_text(f"{os.getpid()}\n{home / 'postgres'}\n1\n5432\n{home}\n\n")
        with embedded(home) as again:
            assert say(again, "SELECT n FROM kept") == "7"
    finally:
        owner.kill()
        owner.wait()
        if owner.stdout is not None:
            owner.stdout.close()


def test_two_that_start_at_once_both_get_a_database(home: Path) -> None:
    answers: list[str] = []
    servers = [EmbeddedPostgres(home) for _ in range(2)]

    def run(server: EmbeddedPostgres) -> None:
        answers.append(say(server.start()))

    threads = [threading.Thread(target=run, args=(server,)) for server in servers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    for server in servers:
        server.stop()
    assert answers == ["pointsman", "pointsman"]


def test_a_home_with_spaces_and_a_path_too_long_for_a_socket(home: Path) -> None:
    odd = home / "My Projects & 'more'" / ("x" * SOCKET_PATH_LIMIT)
    odd.mkdir(parents=True)
    (odd / "postgres.new").mkdir()  # what a start that was killed left half made
    (odd / "postgres.new" / "PG_VERSION").write_text("18")
    server = EmbeddedPostgres(odd)
    assert server.sockets.parent == Path("/tmp")
    try:
        assert say(server.start()) == "pointsman"
    finally:
        server.stop()
        shutil.rmtree(server.sockets, ignore_errors=True)


@pytest.mark.skipif(not AS_ROOT, reason="only root must become someone else")
def test_as_root_in_a_folder_nobody_else_can_enter_it_runs_in_a_user_namespace(home: Path) -> None:
    home.chmod(0o700)
    account = choose_account(home, home / "postgres", find_binaries())
    assert account.user is None and account.prefix[0] == "unshare"
    with embedded(home) as url:
        assert say(url) == "pointsman"
    home.chmod(0o755)  # now others could reach it, but the files are not theirs
    with embedded(home) as url:
        assert say(url) == "pointsman"
    assert not EmbeddedPostgres(home).running()


@pytest.mark.skipif(not AS_ROOT, reason="only root must become someone else")
def test_as_root_it_runs_as_an_account_that_can_reach_the_folders_and_has_no_groups_of_roots(home: Path) -> None:
    account = choose_account(home, home / "postgres", find_binaries())
    assert account.user not in (None, 0) and account.group not in (None, 0) and account.prefix == ()
    assert run_as(account, ["id", "-u"]).stdout.strip() == str(account.user)
    assert run_as(account, ["id", "-G"]).stdout.split() == [str(account.group)]


@pytest.mark.skipif(not AS_ROOT, reason="only root must become someone else")
def test_binaries_that_no_account_can_reach_do_not_break_the_choice(home: Path) -> None:
    hidden = home / "hidden"
    hidden.mkdir(mode=0o700)
    (hidden / "initdb").symlink_to(find_binaries() / "initdb")
    account = choose_account(home, home / "postgres", hidden)
    assert account.user is None and account.prefix[0] == "unshare"


def test_a_socket_folder_of_somebody_else_is_refused(home: Path) -> None:
    target = home / "precious"
    target.mkdir(mode=0o755)
    (home / "link").symlink_to(target)
    with pytest.raises(StoreError, match="belongs to somebody else"):
        make_own(home / "link", Account())
    assert target.stat().st_mode & 0o777 == 0o755
    if AS_ROOT:
        os.chown(target, 12345, -1)
        with pytest.raises(StoreError, match="belongs to somebody else"):
            make_own(target, Account())


def test_a_start_that_fails_says_why_and_lets_go_of_the_lock(home: Path) -> None:
    (home / "postgres").mkdir()
    (home / "postgres" / "PG_VERSION").write_text("18")
    for _ in range(2):  # the second would hang if the first still held the lock
        with pytest.raises(StoreError, match="pg_ctl failed"):
            EmbeddedPostgres(home).start()


def test_without_binaries_the_message_says_what_to_do(tmp_path: Path) -> None:
    assert find_binaries(str(tmp_path)) != tmp_path  # an empty PG_BIN is passed over
    with pytest.raises(ConfigError, match="expected a postgresql:// address, got sqlite://"):
        normalised_url("sqlite:///x")
    assert issubclass(StoreError, Exception) and issubclass(UserError, Exception)
