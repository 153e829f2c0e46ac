"""A time limit on the hot path keeps to the rules of `asyncio.timeout_at`."""

from __future__ import annotations

import asyncio

import pytest

from pointsman.time_limit import TimeLimit


def soon(seconds: float = 0.02) -> float:
    return asyncio.get_running_loop().time() + seconds


async def test_what_is_late_ends_with_a_timeout_and_the_task_lives_on() -> None:
    with pytest.raises(TimeoutError), TimeLimit(soon()):
        await asyncio.sleep(5)
    task = asyncio.current_task()
    assert task is not None and task.cancelling() == 0
    await asyncio.sleep(0)


async def test_what_is_in_time_is_left_alone() -> None:
    with TimeLimit(soon()):
        await asyncio.sleep(0)
    await asyncio.sleep(0.04)
    with pytest.raises(ValueError, match="inside"), TimeLimit(soon()):
        raise ValueError("inside")


async def test_a_limit_moves() -> None:
    with TimeLimit(soon()) as limit:
        limit.move(soon(0.2))
        await asyncio.sleep(0.05)
        with pytest.raises(TimeoutError), TimeLimit(soon()):
            await asyncio.sleep(5)
    with pytest.raises(TimeoutError), TimeLimit(soon(5)) as limit:
        limit.move(soon(0.01))
        await asyncio.sleep(5)


async def test_the_outer_limit_is_not_taken_for_the_inner() -> None:
    inner = None
    with pytest.raises(TimeoutError), TimeLimit(soon()):
        try:
            with TimeLimit(soon(5)):
                await asyncio.sleep(5)
        except TimeoutError:
            inner = "inner"
    assert inner is None


async def test_a_cancelling_from_elsewhere_passes_through() -> None:
    async def work() -> None:
        with TimeLimit(soon(5)):
            await asyncio.sleep(5)

    task = asyncio.create_task(work())
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
