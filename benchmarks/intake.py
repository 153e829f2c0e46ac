"""How fast do logs and score tables come in, and does memory grow with the file?

Writes a request log (JSONL, about 1 kB a line, one line in a hundred broken) and a wide score table (CSV, four models),
imports each into an embedded PostgreSQL of its own, twice, and exports what came in. Memory is the process's peak
beyond what it had before, for a file and for one of a tenth of its lines.

    python benchmarks/intake.py --json
"""

from __future__ import annotations

import argparse
import csv
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from common.report import run
from scaling.rows import text

from pointsman.database.embedded import embedded
from pointsman.database.engine import make_engine
from pointsman.database.schema import migrate
from pointsman.ids import content_id
from pointsman.intake.load import Wish, load
from pointsman.intake.maps import column_map
from pointsman.intake.reading import Source
from pointsman.outlet.export import export
from pointsman.outlet.reading import Selection

PROJECT = content_id("project", "intake")
BRING = "--bring"
MODELS = ("large", "medium", "small", "tiny")


def request_log(file: Path, lines: int, rng: random.Random) -> None:
    with file.open("w") as stream:
        for n in range(lines):
            if n % 100 == 99:
                stream.write('{"id": "broken"\n')
                continue
            body = {"model": rng.choice(MODELS), "messages": [{"role": "user", "content": text(rng, 60)}]}
            usage = {"prompt_tokens": 90, "completion_tokens": 80}
            row = {"id": f"r{n}", "created_at": 1_750_000_000 + n, "request": body, "response": text(rng, 60)}
            row |= {"usage": usage, "conversation_id": f"c{n // 3}"}
            stream.write(json.dumps(row) + "\n")


def score_table(file: Path, lines: int, rng: random.Random) -> None:
    with file.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["sample_id", "prompt", *MODELS, *(f"{model}|total_cost" for model in MODELS)])
        for n in range(lines):
            scores = [rng.randint(0, 1) for _ in MODELS]
            writer.writerow([f"q{n}", text(rng, 60), *scores, *(0.001 for _ in MODELS)])


def brought(url: str, file: str, form: str) -> dict[str, Any]:
    """One import in a process of its own: seconds, rejects, new rows, megabytes of memory beyond the start's."""
    path, before = Path(file), _peak()
    began, cpu = time.perf_counter(), time.process_time()
    wish = Wish(Source(path, form, column_map(form)), path.stem, path.with_suffix(".rejects"))
    report = load(url, wish, PROJECT)
    assert report.new_rows is not None
    return {"seconds": time.perf_counter() - began, "cpu": time.process_time() - cpu, "rejected": report.rejects.count,
            "new": sum(report.new_rows.values()), "megabytes": round(_peak() - before, 1)}  # fmt: skip


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    lines = 5_000 if arguments.quick else 50_000
    rng = random.Random(arguments.seed)
    found: dict[str, Any] = {"lines": lines}
    with tempfile.TemporaryDirectory(prefix="pointsman-intake-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        home = Path(folder)
        home.chmod(0o755)  # PostgreSQL runs as another user where we are root
        with embedded(home) as url:
            migrate(url)
            kinds: tuple[tuple[str, str, Callable[..., None]], ...] = (
                ("openai-jsonl", "jsonl", request_log), ("scores", "csv", score_table),
            )  # fmt: skip
            for form, suffix, write in kinds:
                small, large = home / f"{form}-small.{suffix}", home / f"{form}-large.{suffix}"
                write(small, lines // 10, rng)
                write(large, lines, rng)
                few, first, second = (_in_a_process(url, str(file), form) for file in (small, large, large))
                found[form] = {
                    "lines_per_second": round(lines / first["seconds"]),
                    "client_cpu_ms_per_line": round(1000 * first["cpu"] / lines, 3), "megabytes": first["megabytes"],
                    "megabytes_of_a_tenth": few["megabytes"], "rejected": first["rejected"], "new": first["new"],
                    "new_the_second_time": second["new"], "second_lines_per_second": round(lines / second["seconds"]),
                }  # fmt: skip
            engine = make_engine(url, application="pointsman-intake")
            began = time.perf_counter()
            written = export(engine, "decisions", Selection(PROJECT), home / "decisions.parquet")
            found["export_rows_per_second"] = round(written.rows / (time.perf_counter() - began))
            engine.dispose()
    return found


def _in_a_process(*arguments: str) -> dict[str, Any]:
    """`brought`, in a process that has done nothing else."""
    done = subprocess.run([sys.executable, __file__, BRING, *arguments], capture_output=True, text=True, check=True)
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def _peak() -> float:
    """Megabytes, of this program alone: what `getrusage` says is inherited from whoever started it."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


if __name__ == "__main__" and sys.argv[1:2] == [BRING]:
    print(json.dumps(brought(*sys.argv[2:])))
elif __name__ == "__main__":
    run(__doc__, measure, "5,000 lines")
