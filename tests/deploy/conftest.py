"""Fixtures for the deployment: the reader of Compose files, and Pointsman's command line as a container runs it."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from benchmarks.jobwork.servers import program


@pytest.fixture(scope="session")
def compose() -> Any:
    """The module tests/support/compose.py."""
    file = Path(__file__).parent.parent / "support" / "compose.py"
    spec = importlib.util.spec_from_file_location("pointsman_tests_compose", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def nginx() -> str:
    """The proxy's program; the test fails and names the package where it is missing."""
    return program("nginx")


@pytest.fixture
def pointsman(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """`pointsman(command, environment)` in a data folder of its own."""

    def run(command: Sequence[str], environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "pointsman.commands", *command],
            env={"PATH": os.environ["PATH"], "POINTSMAN_HOME": str(tmp_path), **environment},
            cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip

    return run
