"""S6: no release of a dependency runs code at the start of Python, or reaches out when it is imported."""

from __future__ import annotations

import re
import site
import subprocess
import sys
import sysconfig
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
KNOWN_PTH = {
    "distutils-precedence.pth": "setuptools: its own distutils in place of the standard library's",
}
"""Files that may run code at every start, and why each is there."""
UNPINNED = {"pointsman", "setuptools"}
"""Ourselves; and what pip brings along to install with."""
REACHING = """
import sys
reached = []

def watch(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "urllib.Request"):
        reached.append((event, str(arguments)))
        raise OSError("nothing is reached while modules are imported")
    if event in ("os.system", "subprocess.Popen", "os.exec", "os.posix_spawn"):
        reached.append((event, str(arguments[0])))

sys.addaudithook(watch)
{code}
print(reached)
"""
IMPORTS = {
    "gateway": "import harness.gateway.process, harness.gateway.serve",
    "shipper": "import pointsman.journal.process",
    "commands": "import pointsman.commands.app, pointsman.commands.doctor",
    "traces": "import harness.gateway.tracing",
    "litellm": "from pointsman.upstream.litellm_transport import LitellmTransport; LitellmTransport()",
    "dashboard": "import streamlit, dashboard.data, dashboard.views.decisions",
}


def running_files(folders: Iterable[Path]) -> list[str]:
    """The `.pth` files that run code, and the modules that Python imports unasked."""
    found = []
    for folder in folders:
        for file in sorted(folder.glob("*.pth")):
            lines = file.read_text(errors="replace").splitlines()
            if any(line.startswith(("import ", "import\t")) for line in lines):
                found.append(file.name)
        found += [name for name in ("sitecustomize.py", "usercustomize.py") if (folder / name).exists()]
    return found


def test_no_unknown_file_runs_code_at_start():
    folders = {Path(sysconfig.get_path(name)) for name in ("purelib", "platlib")}
    folders |= {Path(folder) for folder in site.getsitepackages()}
    assert set(running_files(folders)) - set(KNOWN_PTH) == set()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("litellm_init.pth", "import os, subprocess; subprocess.Popen(['x'])\n"),
        ("a.pth", "/some/folder\nimport\tbase64\n"),
        ("sitecustomize.py", ""),
    ],
)
def test_a_planted_one_is_seen(tmp_path, name, content):
    (tmp_path / "fine.pth").write_text("/some/folder\n# import nothing\n")
    (tmp_path / name).write_text(content)
    assert running_files([tmp_path]) == [name]


@pytest.mark.parametrize("name", IMPORTS)
def test_importing_reaches_nothing_and_starts_nothing(name, tmp_path):
    path = {"PYTHONPATH": f"{ROOT}:{ROOT / 'platform'}", "HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        [sys.executable, "-c", REACHING.format(code=IMPORTS[name])],
        capture_output=True, text=True, cwd=tmp_path, env=path, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[]"


def test_reaching_would_be_seen():
    code = REACHING.format(code="import socket\ntry: socket.create_connection(('192.0.2.1', 9))\nexcept OSError: pass")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert "socket" in done.stdout


def pinned() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    found = [re.fullmatch(r"([A-Za-z0-9._-]+)==(\S+)", line) for line in lines if line and not line.startswith("#")]
    assert all(found), "constraints.txt: expected name==version on every line"
    return {normal(match[1]): match[2] for match in found if match}


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def needed() -> dict[str, str]:
    """Every distribution that is installed for ours, by its extras, and its version."""
    found: dict[str, str] = {}
    waiting = [("pointsman", frozenset(distribution("pointsman").metadata.get_all("Provides-Extra") or ()))]
    seen = set()
    while waiting:
        name, extras = waiting.pop()
        if (name, extras) in seen:
            continue
        seen.add((name, extras))
        try:
            installed = distribution(name)
        except PackageNotFoundError:
            continue  # an extra that is not installed here
        found[normal(name)] = installed.version
        for line in installed.requires or ():
            wanted = Requirement(line)
            marker = wanted.marker
            if marker is None or any(marker.evaluate({"extra": extra}) for extra in (*extras, "")):
                waiting.append((wanted.name, frozenset(wanted.extras)))
    return found


def test_everything_that_comes_with_us_is_pinned_at_the_version_that_is_here():
    pins = pinned()
    here = {name: version.partition("+")[0] for name, version in needed().items() if name not in UNPINNED}
    assert {name: version for name, version in here.items() if pins.get(name) != version} == {}


def test_litellm_is_pinned_exactly_and_no_release_that_was_trojaned():
    wanted = [Requirement(line) for line in distribution("pointsman").requires or () if line.startswith("litellm")]
    for text in re.findall(r'"(litellm[^"]*)"', (ROOT / "pyproject.toml").read_text()):
        if text != "litellm":
            wanted.append(Requirement(text))
    assert wanted and all([spec.operator for spec in each.specifier] == ["=="] for each in wanted)
    assert pinned()["litellm"] not in ("1.82.7", "1.82.8")
    assert all(each.specifier.contains(pinned()["litellm"]) for each in wanted)
