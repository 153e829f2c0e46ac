"""A process that another keeps running: started, watched, signalled, waited for; and how the kept one notices its end.

A child's standard input is a pipe whose other end only its parent holds: when the parent is gone,
however it went, the pipe ends.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

RESTART_PAUSE = 0.2
LONGEST_PAUSE = 5.0
STEADY_SECONDS = 3.0

log = logging.getLogger("pointsman.processes")


@dataclass
class Child:
    """A process that is kept running. Its standard input is a pipe that ends when we do."""

    name: str
    command: list[str]
    fds: tuple[int, ...] = ()
    process: subprocess.Popen[bytes] | None = None
    started: float = 0.0
    pause: float = RESTART_PAUSE
    not_before: float = 0.0

    def start(self, environment: dict[str, str]) -> None:
        # A reload must not end a child that cannot take one yet: the signal waits until it can.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})
        try:
            self.process = subprocess.Popen(
                self.command, stdin=subprocess.PIPE, pass_fds=self.fds, env=environment, start_new_session=True
            )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        self.started = time.monotonic()

    def watch(self, environment: dict[str, str]) -> None:
        """Starts the process again if it has ended, more slowly when it ends at once every time."""
        now = time.monotonic()
        if self.process is None:
            if now >= self.not_before:
                self.start(environment)
            return
        code = self.process.poll()
        if code is None:
            return
        if now - self.started > STEADY_SECONDS:
            self.pause = RESTART_PAUSE
        log.error("%s ended with %s; it starts again in %.1f s", self.name, code, self.pause)
        self.process, self.not_before = None, now + self.pause
        self.pause = min(self.pause * 2, LONGEST_PAUSE)

    def signal(self, number: int) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(number)

    def wait(self, seconds: float) -> None:
        if self.process is None:
            return
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            log.error("%s did not stop within %.0f s; killed", self.name, seconds)
            self.process.kill()
            self.process.wait()


def when_parent_ends(leave: Callable[[], None]) -> None:
    """Calls `leave`, in a thread of its own, when the pipe on standard input ends."""

    def watch() -> None:
        while os.read(0, 1):
            pass
        leave()

    threading.Thread(target=watch, daemon=True).start()
