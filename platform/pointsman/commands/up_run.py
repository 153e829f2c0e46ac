"""What `pointsman up` does: starts the other commands as processes in order, watches them, stops them in reverse."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from urllib.parse import urlsplit

from rich.console import Console
from rich.markup import escape

from pointsman.config import Config, Settings, load_config
from pointsman.database.open import database_url
from pointsman.errors import StoreError, UserError
from pointsman.jobs.broker import MISSING, installed

READY_SECONDS = 60.0
STOP_SECONDS = 30.0
LEARNED_NEEDS = ("torch", "transformers")
"""Where the extra `distill` is installed, learned routers are served, too."""


def up(settings: Settings, *, seed: int, requests: int, stay: bool) -> None:
    """Starts everything and stays until Ctrl-C (`stay`), or stops again at once."""
    settings = with_configuration(settings, seed)
    Up(settings, load_config(settings.config_file), Console(), requests).run(stay=stay)


def with_configuration(settings: Settings, seed: int) -> Settings:
    """The settings with a configuration file that exists: the sandbox's, in the home, where there is none."""
    if settings.config_file.exists():
        return settings
    from pointsman.sandbox.setup import toml_text

    settings.home.mkdir(parents=True, exist_ok=True)
    file = settings.home / "pointsman.toml"
    if not file.exists():
        file.write_text(toml_text(seed, settings.sandbox_port, "world"), encoding="utf-8")
    return Settings(settings.home, settings.port, file, settings.environment)


@dataclass
class Up:
    """The processes of one `up`, in the order they were started."""

    settings: Settings
    config: Config
    console: Console
    requests: int
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    stopping: threading.Event = field(default_factory=threading.Event)

    @property
    def gateway_url(self) -> str:
        return f"http://127.0.0.1:{self.config.gateway.port or self.settings.port}"

    @property
    def dashboard_url(self) -> str:
        return f"http://127.0.0.1:{self.config.dashboard.port or self.settings.dashboard_port}"

    def run(self, *, stay: bool) -> None:
        signal.signal(signal.SIGINT, self._stop)
        signal.signal(signal.SIGTERM, self._stop)
        say = self.console.print
        say(f"Pointsman starts; its data is in {self.settings.home}")
        with database_url(self.settings, self.config):
            try:
                self._start()
                if stay:
                    self._watch()
            finally:
                self._end()
        say("Stopped. The data stays; `pointsman up` finds it again.")

    def _start(self) -> None:
        if self.config.sandbox is not None:
            self._spawn("sandbox", "sandbox", "serve", "--port", str(self._sandbox_port()))
            self._await(f"http://127.0.0.1:{self._sandbox_port()}/healthz", "sandbox")
        self._spawn("gateway", "serve")
        self._await(f"{self.gateway_url}/readyz", "gateway")
        has_worker = installed()
        if has_worker:
            self._spawn("worker", "worker")
        if all(importlib.util.find_spec(name) is not None for name in LEARNED_NEEDS):
            self._spawn("router-server", "router-server")
        has_dashboard = importlib.util.find_spec("streamlit") is not None
        if has_dashboard:
            self._spawn("dashboard", "dashboard")
        if self.requests and self.config.sandbox is not None:
            self._drive()
        if has_dashboard:
            self._await(f"{self.dashboard_url}/_stcore/health", "dashboard")
        self._explain(has_dashboard, has_worker)

    def _spawn(self, name: str, *arguments: str) -> None:
        environment = {
            **self.settings.environment,
            "POINTSMAN_HOME": str(self.settings.home),
            "POINTSMAN_PORT": str(self.settings.port),
            "POINTSMAN_CONFIG": str(self.settings.config_file),
        }
        with self._log(name).open("ab", buffering=0) as output:
            self.processes[name] = subprocess.Popen(
                [sys.executable, "-m", "pointsman.commands", *arguments],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # a Ctrl-C in the terminal reaches us, and we stop the others in order
            )

    def _log(self, name: str) -> Path:
        folder = self.settings.home / "logs"
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        return folder / f"{name}.log"

    def _await(self, url: str, name: str) -> None:
        until = time.monotonic() + READY_SECONDS
        while not self.stopping.is_set():
            if self.processes[name].poll() is not None or time.monotonic() > until:
                raise StoreError(f"{name} did not start; the end of its log:\n{self._tail(name)}")
            if _answers(url):
                return
            time.sleep(0.1)
        raise UserError("stopped before everything had started")

    def _sandbox_port(self) -> int:
        """The port that the configuration's workers name."""
        address = self.config.workers[0].base_url or self.config.workers[0].endpoints[0].base_url
        return urlsplit(address).port or self.settings.sandbox_port

    def _drive(self) -> None:
        from pointsman.sandbox.drive import drive

        assert self.config.sandbox is not None
        report = asyncio.run(drive(f"{self.gateway_url}/v1", self.requests, self.config.sandbox.seed))
        self.console.print(f"Sent {report.requests} requests to the sandbox's workers: {report.ok} answered.")
        if report.failed:
            self.console.print(f"[red]The others failed ({dict(report.failed)}); see {self._log('gateway')}[/red]")

    def _explain(self, has_dashboard: bool, has_worker: bool) -> None:
        body = {"model": "pointsman", "messages": [{"role": "user", "content": "What is 17 times 23?"}]}
        say = self.console.print
        say()
        say(
            f"[bold]Gateway[/bold]        {self.gateway_url}/v1   (readiness: {self.gateway_url}/readyz)",
            soft_wrap=True,
        )
        if has_dashboard:
            say(f"[bold]Dashboard[/bold]      {self.dashboard_url}")
        jobs = "a worker runs them: pointsman jobs start self-test --watch" if has_worker else f"none run: {MISSING}"
        say(f"[bold]Jobs[/bold]           {escape(jobs)}", soft_wrap=True)
        say(f"[bold]Configuration[/bold]  {self.settings.config_file}", soft_wrap=True)
        if self.config.sandbox is not None:
            say("[bold]Workers[/bold]        the sandbox: a simulation, not real models")
        say("\nTry it:\n")
        say(
            f"  curl -i {self.gateway_url}/v1/chat/completions -H 'content-type: application/json' "
            f"-d '{json.dumps(body)}'",
            soft_wrap=True,
            markup=False,
            highlight=False,
        )
        say("\nor in Python (pip install openai):\n")
        say(
            f"  from openai import OpenAI\n"
            f'  client = OpenAI(base_url="{self.gateway_url}/v1", api_key="unused-on-this-machine")\n'
            f'  answer = client.chat.completions.create(model="pointsman", messages={body["messages"]})\n'
            f"  print(answer.choices[0].message.content)",
            soft_wrap=True,
            markup=False,
            highlight=False,
        )
        say("\nCtrl-C stops all of it.")

    def _watch(self) -> None:
        while not self.stopping.wait(0.2):
            for name, process in self.processes.items():
                if process.poll() is not None:
                    raise StoreError(f"{name} ended by itself; the end of its log:\n{self._tail(name)}")

    def _end(self) -> None:
        for name, process in reversed(list(self.processes.items())):
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
                try:
                    process.wait(STOP_SECONDS)
                except subprocess.TimeoutExpired:
                    self.console.print(f"{name} did not stop in time; killed")
                    process.kill()
                    process.wait()

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self.stopping.set()

    def _tail(self, name: str) -> str:
        text = self._log(name).read_text(errors="replace")
        return "\n".join(text.splitlines()[-15:])


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2) as reply:
            return bool(reply.status == 200)
    except (urllib.error.URLError, OSError):
        return False
