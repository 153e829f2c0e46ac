"""Heavy reads are shared: equal ones are made once, two at a time, and nothing older than it may be is shown."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from dashboard.shared import KEPT, Shared


class Reads:
    """Counts how many run and how many ran at once."""

    def __init__(self):
        self.made, self.now, self.most = 0, 0, 0
        self.guard = threading.Lock()

    def __call__(self):
        with self.guard:
            self.made, self.now = self.made + 1, self.now + 1
            self.most = max(self.most, self.now)
        time.sleep(0.02)
        with self.guard:
            self.now -= 1
        return self.made


def test_ten_people_at_once_are_one_read():
    shared, read = Shared(), Reads()
    with ThreadPoolExecutor(10) as people:
        values = list(people.map(lambda _: shared.get("overview", read), range(10)))
    assert (read.made, values) == (1, [1] * 10)


def test_different_reads_run_two_at_a_time():
    shared, read = Shared(), Reads()
    with ThreadPoolExecutor(10) as people:
        list(people.map(lambda key: shared.get(key, read), range(10)))
    assert (read.made, read.most) == (10, 2)


def test_a_value_grows_old_and_an_error_is_not_kept():
    clock = [0.0]
    shared = Shared(clock=lambda: clock[0])
    assert shared.get("a", lambda: 1, fresh=5) == 1
    clock[0] = 4.9
    assert shared.get("a", lambda: 2, fresh=5) == 1
    clock[0] = 5.1
    assert shared.get("a", lambda: 3, fresh=5) == 3
    with pytest.raises(ZeroDivisionError):
        shared.get("b", lambda: 1 / 0)
    assert shared.get("b", lambda: 4) == 4


def test_memory_is_bounded():
    shared = Shared()
    for key in range(10 * KEPT):
        shared.get(key, lambda: "value")
    assert len(shared._values) == KEPT and shared._keys == {}
