"""The benchmark of the guarantees: its name hides the standard library's module from nobody, and it has its keys."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
KEYS = {
    "reps",
    "cs_miscoverage",
    "peeking_miscoverage",
    "gate_false_promotion",
    "peeking_false_promotion",
    "dr_coverage",
    "dm_coverage",
    "median_requests_to_promote",
    "median_requests_with_ramp",
}


def test_scripts_of_its_folder_still_get_the_standard_library() -> None:
    code = "import sys; sys.path.insert(0, 'benchmarks'); import statistics; print(statistics.mean([1, 2]))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "1.5"


def test_it_runs_from_anywhere_and_names_every_figure(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "benchmarks" / "statistics.py"), "--reps", "4", "--seed", "5", "--json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    assert found.keys() >= KEYS and found["reps"] == 4
    assert found["median_requests_to_promote"] > 0
