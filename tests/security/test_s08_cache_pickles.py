"""S8: DSPy's cache on disk holds pickles; whoever can write there must not get them run."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ASKING = {"LM", "configure", "settings", "context", "Embedder"}
"""What of DSPy brings a model into play, and with it the cache."""
PLANT = """
import sys, diskcache
from pathlib import Path

class Payload:
    def __reduce__(self):
        return (open, (sys.argv[2], "w"))

for shard in range(16):
    with diskcache.Cache(str(Path(sys.argv[1]) / f"{shard:03d}")) as cache:
        cache["key"] = Payload()
        cache[shard] = Payload()
"""


def asks(source: str) -> bool:
    return "dspy" in source and any(
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "dspy"
        and node.attr in ASKING
        for node in ast.walk(ast.parse(source))
    )


@pytest.mark.parametrize(
    ("source", "found"), [("dspy.LM('x')", True), ("dspy.Signature", False), ("dspy.x; y.LM()", False)]
)
def test_what_asks_a_model_is_seen(source, found):
    assert asks(source) is found


def test_where_dspy_asks_a_model_its_cache_on_disk_is_off(sources):
    asking = {file: source for file, source in sources.items() if asks(source)}
    assert {file for file, source in asking.items() if "enable_disk_cache=False" not in source} == set()


def test_what_is_planted_in_the_cache_does_not_run(tmp_path):
    cache, marker = tmp_path / "cache", tmp_path / "ran"
    subprocess.run([sys.executable, "-c", PLANT, str(cache), str(marker)], check=True, timeout=60)
    assert list(cache.rglob("cache.db"))
    marker.unlink(missing_ok=True)
    environment = {**os.environ, "DSPY_CACHEDIR": str(cache), "PYTHONPATH": f"{ROOT}:{ROOT / 'platform'}"}
    done = subprocess.run(
        [sys.executable, "-m", "harness.optimise.compile", "--check"],
        capture_output=True, text=True, cwd=ROOT, env=environment, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert not marker.exists()
