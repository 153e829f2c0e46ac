"""One turn of the flywheel over a synthetic log, whose jobs a test ends by hand."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from pointsman.flywheel.job import start
from pointsman.flywheel.store import Turn
from pointsman.flywheel.turn import advance
from pointsman.ids import new_id
from pointsman.jobs.store import Jobs


class Drive:
    """One turn over a synthetic log, whose clock is the turn's."""

    LABELS = new_id()

    def __init__(self, log_: Any, end: Callable[..., None]) -> None:
        self.log, self.end = log_, end
        for _ in range(12):
            log_.asked("audit", {"alpha": 1.0, "beta": 0.0})
        log_.word(log_.decision(None, "incumbent", gate_id=None), True)
        log_.flush()
        with log_.engine.begin() as connection:
            turn = start(connection, log_.project, log_.config, "ana", log_.clock)
            assert isinstance(turn, Turn), turn
        self.id = turn.id

    def step(self, minutes: float = 1) -> Turn:
        self.log.clock += timedelta(minutes=minutes)
        found = advance(self.log.engine, self.id, self.log.config, self.log.clock)
        assert found is not None
        return found

    def jobs(self) -> list[Any]:
        """Of the present link."""
        return [Jobs(self.log.engine).get(job) for job in self.step(0).links[-1].jobs]

    def finish(self, **more: Any) -> Turn:
        """Ends the present link's jobs with what such a job finds, and looks again."""
        for job in self.jobs():
            self.end(job.id, **({"result": self.result(job)} | more))
        return self.step()

    def result(self, job: Any) -> dict[str, Any]:
        if job.kind == "labels":
            return {"label_set": self.LABELS, "requests": 900, "method": "direct"}
        if job.kind == "evaluate":
            return self.evaluation(refused=False)
        return {"router_version": self.log.candidate, "value": 0.8}

    def evaluation(self, *, refused: bool) -> dict[str, Any]:
        why = ["it is not shown to be better than the best cheap router"] if refused else []
        mine = {"router": "mine", "value": 0.8, "vs_best_single_interval": [0.02, 0.06], "refused": why}
        cheap = {"router": "clusters", "value": 0.9, "vs_best_single_interval": [0.1, 0.2], "refused": []}
        frame = {"best_single_value": 0.7, "oracle": 0.9}
        return {"routers": [self.log.candidate], "rows": 300, "frame": frame, "comparison": [mine, cheap]}

    def to(self, link: str) -> Turn:
        turn = self.step()
        while turn.links[-1].name != link:
            turn = self.finish()
        return turn

    def shadow(self, n: int, *, otherwise: bool = True) -> None:
        """Requests for which the candidate chose beside what serves."""
        for _ in range(n):
            picks = [
                {"part": "serving", "version": self.log.incumbent, "worker": "alpha"},
                {"part": "shadow", "version": self.log.candidate, "worker": "beta" if otherwise else "alpha"},
            ]
            self.log.decision(None, "incumbent", shadow_picks={"picks": picks})
        self.log.flush()
