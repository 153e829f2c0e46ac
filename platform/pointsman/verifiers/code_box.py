"""Ways to confine a program on this machine: bubblewrap, else namespaces of our own making; or none.

Either way the program has no network, sees a root of its own (the system's libraries and the interpreter,
read-only; nothing of anybody's data), its own processes only, and a small folder in memory to write to. It has
no capability and cannot get one. What it may use up is `code_run`'s part.

Nobody's namespaces make a user of their own. Root makes none: there the program runs under a number that no
account has, since the kernel does not count the processes of root, not even of one in a namespace. A way is
taken only after it has run a program here.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

Way = Literal["bubblewrap", "namespaces"]

FOLDER = "/box"
FOLDER_BYTES = 16 * 1024 * 1024
TOOLS = "/usr/bin:/bin:/usr/sbin:/sbin"
ENVIRONMENT = {"PATH": TOOLS, "HOME": FOLDER, "LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"}
STRANGER = 1_900_000_000
"""The first of the numbers under which root runs programs."""

_SYSTEM = ("/usr", "/bin", "/lib", "/lib32", "/lib64", "/etc/ld.so.cache")
_TRIAL_SECONDS = 20.0
_SAID = "confined"
_NO_CAPS = ("--no-new-privs", "--inh-caps=-all", "--bounding-set=-all")

# The same root as bubblewrap's, built by hand in a mount namespace of its own. Arguments: an empty folder, the
# bytes of the folder in memory, what is bound (until "--"), then the command. Every step must hold, or nothing runs.
_BUILD = """
set -eu
root=$1; size=$2; shift 2
mount -t tmpfs -o "size=$size,mode=755" none "$root"
while [ "$1" != -- ]; do
  if [ -L "$1" ]; then mkdir -p "$root${1%/*}"; ln -s "$(readlink "$1")" "$root$1"
  elif [ -d "$1" ]; then mkdir -p "$root$1"; mount --rbind "$1" "$root$1"; mount -o remount,bind,ro "$root$1"
  else mkdir -p "$root${1%/*}"; : > "$root$1"; mount --bind "$1" "$root$1"; mount -o remount,bind,ro "$root$1"; fi
  shift
done
shift
mkdir -p "$root/proc" "$root/dev" "$root/box" "$root/old"
mount -t proc proc "$root/proc"
for name in null zero urandom; do : > "$root/dev/$name"; mount --bind "/dev/$name" "$root/dev/$name"; done
mount -t tmpfs -o "size=$size,mode=1777" none "$root/box"
cd "$root"; pivot_root . old; umount -l /old; rmdir /old; mount -o remount,bind,ro /; cd /box
"$@"
"""


@dataclass(frozen=True)
class Box:
    """How a command is confined here."""

    way: Way
    prefix: tuple[str, ...]

    def command(self, *words: str) -> list[str]:
        """`words` confined."""
        return [*self.prefix, *words]


@cache
def find_box() -> Box | None:
    """The first way that works here, tried once in a process; None where none does."""
    return next((box for box in boxes() if works(box)), None)


def boxes() -> list[Box]:
    """The ways whose programs are installed, best first. Whether they work is for `works` to say."""
    found: list[Box] = []
    if not _has("setpriv"):
        return found
    if _has("bwrap"):
        found.append(Box("bubblewrap", _bubblewrap()))
    if _has("unshare") and _has("pivot_root"):
        found.append(Box("namespaces", _namespaces()))
    return found


def works(box: Box) -> bool:
    """Whether a program really runs in it, apart from this machine's files."""
    program = f"import os; print({_SAID!r} if os.listdir('.') == [] and not os.path.exists('/etc/passwd') else '')"
    try:
        done = subprocess.run(
            box.command(*interpreter(), "-c", program),
            capture_output=True,
            text=True,
            timeout=_TRIAL_SECONDS,
            env=ENVIRONMENT,
            cwd="/",
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0 and done.stdout.strip() == _SAID


def interpreter() -> list[str]:
    """The Python behind any virtual environment, without site packages and without reading our environment."""
    return [os.path.realpath(sys.executable), "-I", "-S"]


def _has(program: str) -> bool:
    return shutil.which(program, path=TOOLS) is not None


def _bound() -> list[str]:
    """What the program may read: the system's libraries, and the interpreter where it lives elsewhere."""
    system = [path for path in _SYSTEM if Path(path).exists()]
    home = os.path.realpath(sys.base_prefix)
    return system if home.startswith("/usr/") or home == "/usr" else [*system, home]


def _bubblewrap() -> tuple[str, ...]:
    words = ["bwrap", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
    words += ["--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    if _is_root():
        words += ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID", "--cap-add", "CAP_SETPCAP"]
    else:
        words += ["--unshare-user"]
    for path in _bound():
        link = Path(path)
        for parent in reversed(link.parents[:-1]):  # left to itself it makes them as closed as they are outside
            words += ["--perms", "0755", "--dir", str(parent)]
        words += ["--symlink", str(link.readlink()), path] if link.is_symlink() else ["--ro-bind", path, path]
    words += ["--proc", "/proc", "--dev", "/dev", "--size", "4096", "--tmpfs", "/dev/shm"]
    words += ["--perms", "1777", "--size", str(FOLDER_BYTES), "--tmpfs", FOLDER, "--chdir", FOLDER]
    return (*words, "--remount-ro", "/", *_as_stranger())


def _namespaces() -> tuple[str, ...]:
    kinds = ("--net", "--mount", "--pid", "--ipc", "--uts", "--fork", "--kill-child")
    ours = ("setpriv", "--pdeathsig", "KILL", "unshare", *(() if _is_root() else ("--map-root-user",)), *kinds)
    return (*ours, "sh", "-c", _BUILD, "sh", _empty_folder(), str(FOLDER_BYTES), *_bound(), "--", *_as_stranger())


def _as_stranger() -> tuple[str, ...]:
    """The last step inside. Each of our processes takes a number of its own: the kernel counts by number."""
    if not _is_root():
        return ("setpriv", *_NO_CAPS)
    number = STRANGER + os.getpid()
    return ("setpriv", f"--reuid={number}", f"--regid={number}", "--clear-groups", *_NO_CAPS)


def _empty_folder() -> str:
    """Where the new root is put together: a folder whose content nothing of ours needs meanwhile."""
    needed = _bound()
    usual = ("/mnt", "/media", "/srv", "/tmp")
    free = (path for path in usual if not any(f"{bound}/".startswith(f"{path}/") for bound in needed))
    return next((path for path in free if Path(path).is_dir()), usual[0])


def _is_root() -> bool:
    return os.geteuid() == 0
