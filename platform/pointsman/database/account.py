"""As whom the embedded PostgreSQL runs: as ourselves, or where we are root, which it refuses, as someone less.

That is an unprivileged account which can reach the folders, else root under another number in a user
namespace of its own.
"""

from __future__ import annotations

import os
import pwd
import shutil
import stat
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from pointsman.errors import StoreError, UserError

ACCOUNTS = ("postgres", "nobody")
NAMESPACE = ("unshare", "--user", "--map-user=1000", "--map-group=1000")


@dataclass(frozen=True)
class Account:
    """`user` and `group` are numbers to change to, None to stay who we are; `prefix` goes before a command."""

    user: int | None = None
    group: int | None = None
    prefix: tuple[str, ...] = ()


def choose_account(home: Path, data: Path, binaries: Path) -> Account:
    """As root: an account that may run the binaries and reach the data folder, else a user namespace."""
    if os.geteuid() != 0:
        return Account()
    for name in ACCOUNTS:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        account = Account(entry.pw_uid, entry.pw_gid)
        if _may_own(data, account) and _can_reach(account, home, binaries):
            return account
    if shutil.which(NAMESPACE[0]) and _succeeds([*NAMESPACE, "true"], Account()):
        return Account(prefix=NAMESPACE)
    raise UserError(
        f"PostgreSQL does not run as root, and no unprivileged account can reach {home} and {binaries}: run as "
        "another user, move POINTSMAN_HOME to a folder that others may enter, or set [database] url"
    )


def run_as(account: Account, command: list[str]) -> subprocess.CompletedProcess[str]:
    """Runs a command as the account, apart from our terminal, and gives its output."""
    # Output goes to files, not pipes: a server would inherit a pipe and keep its reader waiting.
    with tempfile.TemporaryFile("w+", errors="replace") as out, tempfile.TemporaryFile("w+", errors="replace") as err:
        done = subprocess.run(
            [*account.prefix, *command],
            stdout=out,
            stderr=err,
            stdin=subprocess.DEVNULL,
            cwd="/",
            user=account.user,
            group=account.group,
            extra_groups=[] if account.user is not None else None,
            start_new_session=True,
            check=False,
        )
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess(command, done.returncode, out.read(), err.read())


def make_own(folder: Path, account: Account) -> None:
    """The folder, made where it is absent, the account's alone. One that somebody else put there is refused."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid not in (os.geteuid(), account.user):
        raise StoreError(f"{folder} belongs to somebody else; remove it, or choose another POINTSMAN_HOME")
    folder.chmod(0o700)
    if account.user is not None:
        os.chown(folder, account.user, -1)


def _may_own(data: Path, account: Account) -> bool:
    """Whether the data folder, where it exists, is this account's: one of root's was made in a user namespace."""
    return not data.exists() or data.stat().st_uid == account.user


def _can_reach(account: Account, home: Path, binaries: Path) -> bool:
    checks = [[str(binaries / "initdb"), "--version"], ["test", "-x", str(home)]]
    return all(_succeeds(check, account) for check in checks)


def _succeeds(command: list[str], account: Account) -> bool:
    try:
        return run_as(account, command).returncode == 0
    except OSError:  # not even the program can be reached
        return False
