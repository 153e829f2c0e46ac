"""The CPU that choosing costs: the learned router's, and that of a small language model as router LLM.

CPU seconds of the process that computes, not time on the clock: simulated latencies never count. The language model
is SmolLM2-135M-Instruct, converted once by `make install`; it reads the very prompts that the prompted router sends.
"""

from __future__ import annotations

import subprocess
import sys
from itertools import islice
from pathlib import Path

from distill.demo.measure import picks
from distill.demo.stage import Stage, processes
from pointsman.sandbox.tasks import tasks
from pointsman.sandbox.world import World

REQUESTS = 20
MODEL_FOLDER = Path(sys.prefix) / "share" / "pointsman" / "smollm2-135m-instruct"


def fresh(stage: Stage, after: int) -> tuple[str, ...]:
    """Requests that nothing has read yet: a router server keeps the states of texts."""
    return tuple(task.prompt for task in islice(tasks(stage.seed, "held_out"), after, after + REQUESTS + 1))


def learned_seconds(stage: Stage, texts: tuple[str, ...], version: str) -> float | None:
    """CPU seconds of the router server for all but the first of these requests; None where it does not run."""
    servers = [pid for pid, line in processes(stage.process.pid) if line.endswith("router-server")]
    if not servers:
        return None
    picks(stage, texts[:1], f"pointsman@{version}")  # what is loaded once is loaded
    before = _cpu(servers[0])
    picks(stage, texts[1:], f"pointsman@{version}")
    return max(_cpu(servers[0]) - before, 0.01)  # the kernel counts in hundredths


def language_model_seconds(stage: Stage, texts: tuple[str, ...], folder: Path = MODEL_FOLDER) -> float | None:
    """CPU seconds of the language model for the same requests, its loading apart; None where it was not converted."""
    if not (folder / "config.json").exists():
        return None
    cards = World(stage.seed).cards("truthful")
    lines = "\n".join(f"{name}: {card}" for name, card in cards.items())
    done = subprocess.run(
        [sys.executable, "-m", "distill.demo.language_model", str(folder)],
        input="\0".join(f"{lines}\n\nRequest: {text}\nThe best of them is" for text in texts),
        capture_output=True, text=True, timeout=300, check=True,
    )  # fmt: skip
    return float(done.stdout.strip().splitlines()[-1])


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100.0
