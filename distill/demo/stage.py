"""What a demo runs on: the processes of `pointsman up` in a home of its own, its configuration, its log."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, text

from pointsman.config import Config, Settings, load_config
from pointsman.database.engine import make_engine
from pointsman.database.open import configured_url
from pointsman.errors import StoreError
from pointsman.identity import DEFAULT_PROJECT_ID
from pointsman.jobs.store import Jobs
from pointsman.jobs.view import JobView
from pointsman.sandbox.drive import DriveReport, drive
from pointsman.sandbox.setup import toml_text
from pointsman.sandbox.tasks import Split, tasks

START_SECONDS = 120.0
MORE = """
[reward.default]
quality = ["verifier", "feedback"]
deadline = 2

[gate]
mode = "auto"
ramp = [[0, 0.5]]

[flywheel]
mode = "auto"
rows = 300
hours = 0
shadow_rows = 60
generations = 20
backbone = "minilm"
ablations = false
"""


@dataclass
class Stage:
    """One demo's home. `sent` counts the requests that were answered, to be found again in the log."""

    seed: int
    settings: Settings
    engine: Engine
    process: subprocess.Popen[bytes]
    project: str = DEFAULT_PROJECT_ID
    sent: int = 0
    driven: int = field(default=0)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.settings.port}"

    @property
    def dashboard(self) -> str:
        return f"http://127.0.0.1:{self.settings.dashboard_port}"

    @property
    def config(self) -> Config:
        """The file as it is now."""
        return load_config(self.settings.config_file)

    def drive(self, requests: int, *, concurrency: int = 16) -> DriveReport:
        """New requests of the world's traffic, each with a word on its answer."""
        report = asyncio.run(
            drive(
                f"{self.url}/v1", requests, self.seed, concurrency=concurrency, stream_share=0.25, feedback_share=1.0,
                skip=self.driven,
            )
        )  # fmt: skip
        self.driven += requests
        self.sent += report.ok
        return report

    def job(self, kind: str, params: dict[str, Any], *, project: str | None = None, patience: float = 600) -> JobView:
        """A job, run by the worker to its end."""
        jobs = Jobs(self.engine)
        started = jobs.start(kind, params, project_id=project or self.project, asked_by="demo")
        until = time.monotonic() + patience
        while not (job := jobs.get(started.id)).finished:
            if time.monotonic() > until:
                jobs.cancel(job.id)
                raise StoreError(f"{kind} job {job.id} did not end within {patience:g} s; it stood at {job.stage}")
            time.sleep(0.2)
        return job

    def write_tasks(self, name: str, split: Split, n: int, skip: int = 0) -> str:
        """A file of tasks for a probe; its name."""
        folder = self.settings.home / "tasks"
        folder.mkdir(parents=True, exist_ok=True)
        lines = []
        for number, task in enumerate(tasks(self.seed, split, skip + n)):
            if number >= skip:
                line = {"id": task.id, "prompt": task.prompt, "verifier": task.verifier, "task": task.family}
                lines.append(json.dumps(line | {"split": split}, ensure_ascii=False))
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
        return name

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """A request to the gateway, as any client makes it."""
        request = urllib.request.Request(
            f"{self.url}{path}", json.dumps(body).encode(), {"content-type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=60) as reply:
            answer: dict[str, Any] = json.loads(reply.read())
        return answer

    def known(self, version: str) -> str:
        """The model that names a version, once the gateway has taken it up. Raises `StoreError` where it does not."""
        model, until = f"pointsman@{version}", time.monotonic() + 60
        body = {"model": model, "messages": [{"role": "user", "content": "Hello?"}]}
        while True:
            try:
                self.post("/v1/route", body)
                return model
            except urllib.error.HTTPError as error:
                if error.code != 404 or time.monotonic() > until:
                    raise StoreError(f"the gateway does not serve {model}: {error}") from None
                time.sleep(0.5)

    def pointsman(self, *arguments: str) -> None:
        """A command, as a person would type it."""
        done = subprocess.run(
            [sys.executable, "-m", "pointsman.commands", *arguments],
            env=_environment(self.settings), capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        if done.returncode:
            raise StoreError(f"pointsman {' '.join(arguments)} failed: {(done.stdout + done.stderr).strip()[-1_000:]}")

    def remove_worker(self, name: str) -> None:
        """Takes a worker out of the file, and has the gateway read it."""
        file = self.settings.config_file
        head, *blocks = file.read_text(encoding="utf-8").split("\n[[workers]]\n")
        kept = [block for block in blocks if f'name = "{name}"' not in block.splitlines()[0]]
        file.write_text("\n[[workers]]\n".join([head, *kept]), encoding="utf-8")
        self.pointsman("reload")

    def logged(self) -> int:
        """Requests in the log that were answered, once everything has been shipped."""
        until, before = time.monotonic() + 30, -1
        query = text(
            "SELECT count(*) FROM outcome o JOIN decision d ON d.id = o.decision_id"
            " WHERE o.origin = 'traffic' AND o.status = 'ok' AND d.parent_id IS NULL AND d.project_id = :project"
        )
        while True:
            with self.engine.connect() as connection:
                now = int(connection.scalar(query, {"project": self.project}) or 0)
            if now >= self.sent or (now == before and time.monotonic() > until):
                return now
            before = now
            time.sleep(1)


@contextmanager
def staged(home: Path, port: int, seed: int, cards: str) -> Iterator[Stage]:
    """Starts everything, and stops it at the end; the home stays. Raises `StoreError` with the end of a log."""
    home.mkdir(parents=True, exist_ok=True)
    file = home / "pointsman.toml"
    environment = {
        **os.environ,
        "POINTSMAN_HOME": str(home),
        "POINTSMAN_PORT": str(port),
        "POINTSMAN_CONFIG": str(file),
    }
    settings = Settings.read(environment)
    head, workers = toml_text(seed, settings.sandbox_port, cards, feedback=1.0).split("\n[[workers]]\n", 1)  # type: ignore[arg-type]
    file.write_text(f"{head}{MORE}\n[[workers]]\n{workers}", encoding="utf-8")
    log = home / "up.log"
    with log.open("ab", buffering=0) as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "pointsman.commands", "up", "--requests", "0"],
            env=_environment(settings), stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
            start_new_session=True,
        )  # fmt: skip
    engine: Engine | None = None
    try:
        _await(f"http://127.0.0.1:{port}/readyz", process, log)
        _await(f"http://127.0.0.1:{settings.dashboard_port}/_stcore/health", process, log)
        engine = make_engine(configured_url(settings, load_config(file)), application="pointsman-demo")
        yield Stage(seed, settings, engine, process)
    finally:
        if engine is not None:
            engine.dispose()
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def processes(root: int) -> Sequence[tuple[int, str]]:
    """The descendants of a process: (pid, command line)."""
    found: list[tuple[int, str]] = []
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
            parents.setdefault(parent, []).append(int(entry.name))
    waiting = [root]
    while waiting:
        for child in parents.get(waiting.pop(), ()):
            waiting.append(child)
            try:
                line = Path(f"/proc/{child}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            found.append((child, line.strip()))
    return found


def _environment(settings: Settings) -> dict[str, str]:
    return {
        **os.environ,
        "POINTSMAN_HOME": str(settings.home),
        "POINTSMAN_PORT": str(settings.port),
        "POINTSMAN_CONFIG": str(settings.config_file),
    }


def _await(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + START_SECONDS
    while True:
        try:
            with urllib.request.urlopen(url, timeout=2) as reply:
                if reply.status == 200:
                    return
        except (urllib.error.URLError, OSError):
            pass
        if process.poll() is not None or time.monotonic() > until:
            end = "\n".join(log.read_text(errors="replace").splitlines()[-20:])
            raise StoreError(f"the demo's processes did not start; the end of {log}:\n{end}")
        time.sleep(0.2)
