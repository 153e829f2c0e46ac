"""Whoever looks at a turn may be killed at any statement and at any commit: the turn ends as if undisturbed."""

from __future__ import annotations

import os
import signal
import traceback
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import event

from pointsman.database.engine import make_engine
from pointsman.flywheel.store import turn_of
from pointsman.flywheel.turn import advance

LINKS_WITH_JOBS = ("audit", "labels", "baselines", "sft", "evolve", "evaluate")
STATEMENTS = 400  # more than a look has


@pytest.fixture
def killed_looks(database_url: str) -> Callable[[Any], int]:
    """`killed_looks(drive)`: looks that die at their first, second, … statement or commit; how many died."""

    def look(one: Any, point: int) -> None:
        engine = make_engine(database_url, pool_size=2, application="pointsman-killed")
        left = point

        def count(*_: Any) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

        event.listen(engine, "before_cursor_execute", count)
        event.listen(engine, "commit", count)
        advance(engine, one.id, one.log.config, one.log.clock)

    def until_one_lives(one: Any) -> int:
        for point in range(1, STATEMENTS):
            child = os.fork()
            if child == 0:
                status = 1
                try:
                    look(one, point)
                    status = 0
                except BaseException:  # noqa: BLE001 - the edge of a process: nothing may run on in it
                    traceback.print_exc()
                finally:
                    os._exit(status)
            _, ended = os.waitpid(child, 0)
            if os.WIFSIGNALED(ended):
                continue
            assert os.WEXITSTATUS(ended) == 0
            return point - 1
        raise AssertionError(f"a look of more than {STATEMENTS} statements")

    return until_one_lives


def _to_the_end(one: Any, look: Callable[[Any], int]) -> tuple[Any, list[int]]:
    """A turn that is promoted in the end, and what `look` returned each time."""
    died = []

    def step() -> Any:
        died.append(look(one))
        with one.log.engine.connect() as connection:
            return turn_of(connection, one.log.project, one.id)

    turn = step()
    while turn.links[-1].name != "shadow":
        for job in one.jobs():
            one.end(job.id, result=one.result(job))
        turn = step()
    one.shadow(20)
    turn = step()
    one.log.traffic(turn.gate_id, 200, {"candidate": 0.9, "incumbent": 0.3})
    one.log.look(turn.gate_id)
    return step(), died


def _undisturbed(one: Any) -> int:
    advance(one.log.engine, one.id, one.log.config, one.log.clock)
    return 0


def _story(one: Any, turn: Any) -> dict[str, Any]:
    counts = {
        table: one.log.sql(f"SELECT count(*) AS n FROM {table}")[0].n
        for table in ("job", "gate", "promotion", "alpha_ledger", "flywheel_turn")
    }
    links = [(link.name, link.state, link.reason, len(link.jobs), link.numbers) for link in turn.links]
    kinds = sorted(row.kind for row in one.log.sql("SELECT kind FROM job"))
    actions = sorted(row.action for row in one.log.sql("SELECT action FROM actor_log"))
    return {"state": turn.state, "links": links, "kinds": kinds, "actions": actions, "counts": counts}


def test_a_turn_whose_every_look_is_killed_at_every_point_ends_as_if_undisturbed(
    drive: Callable[..., Any], killed_looks: Callable[[Any], int]
) -> None:
    settings = 'mode = "auto"\naudit = 5\nbudget = 2\n'
    calm, _ = _to_the_end(one := drive(settings), _undisturbed)
    expected = _story(one, calm)
    assert expected["state"] == "promoted" and expected["counts"]["promotion"] == 1
    disturbed, died = _to_the_end(one := drive(settings), killed_looks)
    found = _story(one, disturbed)
    assert min(died) >= 3 and len(died) == len(LINKS_WITH_JOBS) + 3
    assert found == expected
