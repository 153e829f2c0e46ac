"""A consumer that takes nothing any more is told to connect anew; one that only has nothing to do is left alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pointsman.errors import BrokerAway
from pointsman.jobs.watching import Watch
from pointsman.words import JobQueue


class Broker:
    """So many messages wait in it; None: it is away."""

    def __init__(self, waiting: int | None) -> None:
        self.messages = waiting

    def waiting(self, queue: JobQueue) -> int:
        if self.messages is None:
            raise BrokerAway("away")
        return self.messages


class Consumer:
    """Notes what is to be run in its loop."""

    def __init__(self) -> None:
        self.soon: list[Callable[[], Any]] = []

    def call_soon(self, action: Callable[[], Any]) -> None:
        self.soon.append(action)


def test_it_connects_anew_when_messages_wait_and_none_comes() -> None:
    consumer = Consumer()
    watch = Watch(Broker(3), "default", 1, [])
    assert watch.look() is False, "there is no consumer yet"
    watch.follow(consumer)
    assert [watch.look() for _ in range(3)] == [False, True, False]
    with pytest.raises(OSError, match="no message comes in"):  # which is what Celery takes as a lost connection
        consumer.soon[0]()
    watch.follow(consumer)
    assert watch.look() is False, "it looks twice again"


@pytest.mark.parametrize(("waiting", "busy"), [(0, []), (None, []), (3, ["a", "b"])], ids=["empty", "away", "all busy"])
def test_it_is_left_alone(waiting: int | None, busy: list[str]) -> None:
    consumer = Consumer()
    watch = Watch(Broker(waiting), "default", 2, busy)
    watch.follow(consumer)
    assert not any(watch.look() for _ in range(5)) and consumer.soon == []


def test_what_comes_in_between_clears_it() -> None:
    watch = Watch(Broker(3), "default", 2, ["a"])
    watch.follow(Consumer())
    found = []
    for _ in range(4):
        watch.received()
        found.append(watch.look())
    assert not any(found)
