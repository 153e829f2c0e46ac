"""S11: the dashboard's server gives no file of this machine, its pages no markup of other people."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import time
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from dashboard import launch
from pointsman.config import Settings, load_config

ROOT = Path(__file__).parents[2]
PATHS = [
    "/component/x/../../../../etc/passwd",
    "/component/x/..%2f..%2f..%2fetc%2fpasswd",
    "/component/x/%252e%252e/%252e%252e/etc/passwd",
    "/static/../../../../etc/passwd",
    "/media/../../../../etc/passwd",
    "/app/static/..%2f..%2f..%2f..%2fetc%2fpasswd",
    "//etc/passwd",
    "/component/x/\\\\server\\share",
    "/component/x/../../pointsman.toml",
]
TOML = """
[dashboard]
port = {port}
[[workers]]
name = "a"
description = "d"
model = "m"
base_url = "http://127.0.0.1:9"
"""


def fetched(port: int, path: str) -> bytes:
    """The answer to a path that no client would tidy up."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as sock:
        sock.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost:{port}\r\nConnection: close\r\n\r\n".encode())
        answer = b""
        while part := sock.recv(65536):
            answer += part
    return answer


@pytest.fixture(scope="module")
def port(tmp_path_factory):
    """A dashboard as `pointsman dashboard` starts it."""
    home = tmp_path_factory.mktemp("home")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        free = probe.getsockname()[1]
    file = home / "pointsman.toml"
    file.write_text(TOML.format(port=free))
    settings = Settings.read({**os.environ, "POINTSMAN_HOME": str(home), "POINTSMAN_CONFIG": str(file)})
    process = subprocess.Popen(
        launch.command(settings, load_config(file)),
        env={**launch.environment(settings), "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "platform")])},
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        until = time.monotonic() + 60
        while True:
            assert process.poll() is None and time.monotonic() < until, "streamlit did not start"
            try:
                if b"200" in fetched(free, "/_stcore/health").partition(b"\r\n")[0]:
                    break
            except OSError:
                time.sleep(0.1)
        yield free
    finally:
        process.terminate()
        process.wait(10)


@pytest.mark.parametrize("path", PATHS)
def test_no_path_leads_out_of_its_files(port, path):
    answer = fetched(port, path)
    assert b"root:" not in answer and b"base_url" not in answer


def test_the_floor_is_the_release_that_mended_the_last_known_hole():
    text = (ROOT / "pyproject.toml").read_text()
    (wanted,) = {Requirement(found) for found in re.findall(r'"(streamlit[<>=~][^"]*)"', text)}
    assert not wanted.specifier.contains("1.53.99") and wanted.specifier.contains("1.67.0")


def test_no_page_lets_markup_through(sources):
    pages = {file: text for file, text in sources.items() if file.startswith("dashboard/")}
    assert pages
    for file, text in pages.items():
        assert not re.search(r"unsafe_allow_html\s*=\s*True|st\.html\(|components\.v1|unsafe_allow_javascript", text), (
            file
        )
