"""Children that are kept running, and a port that is waited for a moment."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import time

import pytest

from harness.gateway.serve import listen
from pointsman.errors import UserError
from pointsman.processes import LONGEST_PAUSE, RESTART_PAUSE, Child

SLEEPER = [sys.executable, "-c", "import time; time.sleep(60)"]


def test_a_child_that_ends_starts_again_more_slowly_each_time() -> None:
    child = Child("child", [sys.executable, "-c", ""])
    pauses = []
    for _ in range(6):
        child.not_before = 0.0
        child.watch(dict(os.environ))
        assert child.process is not None
        child.process.wait(10)
        child.watch(dict(os.environ))
        assert child.process is None
        pauses.append(round(child.not_before - time.monotonic(), 1))
    assert pauses == [RESTART_PAUSE, 0.4, 0.8, 1.6, 3.2, LONGEST_PAUSE]


def test_before_its_pause_is_over_nothing_starts() -> None:
    child = Child("child", SLEEPER, not_before=time.monotonic() + 60)
    child.watch(dict(os.environ))
    assert child.process is None
    child.signal(signal.SIGTERM)
    child.wait(0.1)


def test_a_child_starts_deaf_to_reload_until_it_can_take_one() -> None:
    child = Child("child", SLEEPER)
    child.start(dict(os.environ))
    try:
        child.signal(signal.SIGHUP)
        time.sleep(0.3)
        assert child.process is not None and child.process.poll() is None
        assert signal.SIGHUP not in signal.pthread_sigmask(signal.SIG_BLOCK, ())  # ours is as it was
    finally:
        child.signal(signal.SIGTERM)
        child.wait(10)


def test_a_child_that_does_not_stop_is_killed(caplog: pytest.LogCaptureFixture) -> None:
    child = Child("deaf", [sys.executable, "-c", "import signal,time; signal.signal(15, lambda *a: 0); time.sleep(60)"])
    child.start(dict(os.environ))
    time.sleep(0.5)
    child.signal(signal.SIGTERM)
    child.wait(0.3)
    assert child.process is not None and child.process.returncode == -signal.SIGKILL
    assert "deaf did not stop within 0 s; killed" in caplog.text


def test_a_port_that_is_just_being_left_is_waited_for() -> None:
    leaving = socket.create_server(("127.0.0.1", 0))
    port = leaving.getsockname()[1]
    threading.Timer(0.4, leaving.close).start()
    with listen("127.0.0.1", port) as listener:
        assert listener.getsockname()[1] == port


def test_an_address_that_is_not_ours_is_said() -> None:
    with pytest.raises(
        UserError, match=r"cannot listen on 203\.0\.113\.7:9: .*; stop what runs there or set POINTSMAN_PORT"
    ):
        listen("203.0.113.7", 9)
