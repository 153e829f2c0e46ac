"""The examples, and the Python in README and the quick start, run as they stand against a real gateway."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ADDRESS = "http://127.0.0.1:8790/v1"


def run(*command: str, url: str) -> str:
    environment = {**os.environ, "POINTSMAN_URL": f"{url}/v1"}
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_chat_and_stream(gateway, upstream, fake) -> None:
    upstream.script("m-alpha", fake.text("391"))
    said = run(sys.executable, "examples/chat.py", "What is 17 times 23?", url=gateway.url)
    assert said.startswith("391\ndecision-id: ") and "worker: alpha" in said and "propensity: " in said
    upstream.script("m-alpha", fake.text("rivers"))
    assert run(sys.executable, "examples/stream.py", "A sonnet.", url=gateway.url) == "rivers\n"


def test_feedback_finds_its_decision(gateway, upstream, fake) -> None:
    upstream.script("m-alpha", fake.text("It is 391."))
    said = run(sys.executable, "examples/feedback.py", "What is 17 times 23?", "391", url=gateway.url)
    assert said.endswith("correct = True\n")
    gateway.ship()
    rows = gateway.sql("SELECT metric, value, comment FROM feedback WHERE comment = 'expected 391'")
    assert [(row.metric, row.value) for row in rows] == [("correct", True)]


@pytest.mark.parametrize("page", ["README.md", "docs/quickstart.md"])
def test_the_python_of_a_page(gateway, upstream, fake, page: str) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    assert ADDRESS in code
    upstream.script("m-alpha", fake.text("391"))
    assert run(sys.executable, "-c", code.replace(ADDRESS, f"{gateway.url}/v1"), url=gateway.url).startswith("391\n")
