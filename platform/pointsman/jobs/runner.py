"""Running jobs, as a worker does: claim, run, settle. Knows nothing of brokers.

    runner = Runner(Workplace.read(settings), new_owner())
    runner.run_next(("default",))      # the most urgent waiting job, or a batch of small ones; [] if there is none
    runner.run(job_id)                 # this one, if it waits; None if not
    runner.help(job_id)                # parts of a job that another worker runs

Each blocks until the job has ended, or `stop` is set: then what runs is given back unharmed. A job runs
in a child process (`supervise`); small ones run here, several between two transactions.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Collection
from dataclasses import dataclass

from pointsman.jobs import claiming, ending
from pointsman.jobs.attempt import attempt
from pointsman.jobs.context import JobContext
from pointsman.jobs.ending import End
from pointsman.jobs.lease import Claim
from pointsman.jobs.patience import patiently
from pointsman.jobs.supervise import Supervisor
from pointsman.jobs.workplace import Workplace
from pointsman.words import JobQueue, JobState

SMALL_TOGETHER = 64
SMALL_SECONDS = 1.0
"""After so long the rest of a batch is given back, so that something urgent need not wait for it."""

log = logging.getLogger("pointsman.jobs")


@dataclass(frozen=True, slots=True)
class Ran:
    """A job that was run here, and the state that it then had: `queued` where it is to go on elsewhere."""

    job_id: str
    state: JobState


class Runner:
    """Runs jobs one at a time in the thread that asks; `owner` names it in their leases."""

    def __init__(self, place: Workplace, owner: str) -> None:
        self.place = place
        self.owner = owner
        self.engine = place.engine("pointsman-worker")
        self._supervisor = Supervisor(place, self.engine)

    def run(self, job_id: str, stop: threading.Event | None = None) -> JobState | None:
        """Runs this job if it waits, or if its worker is gone. None: it is not ours to run, now or ever."""
        held = claiming.claim(self.engine, job_id, self.owner, self.place.lease_s)
        if held is None:
            return None
        if held.inside:
            return self._run_small([held], stop)[0].state
        return self._supervisor.run(held, stop)

    def run_next(self, queues: Collection[JobQueue], stop: threading.Event | None = None) -> list[Ran]:
        """Runs what is most urgent on these queues; empty where nothing waits."""
        held = claiming.claim_next(self.engine, queues, self.owner, self.place.lease_s, small_together=SMALL_TOGETHER)
        if held and held[0].inside:
            return self._run_small(held, stop)
        return [Ran(one.job_id, state) for one in held if (state := self._supervisor.run(one, stop)) is not None]

    def help(self, job_id: str, stop: threading.Event | None = None) -> bool:
        """Works on the open parts of a running job until there are none. False where its kind shares none."""
        return self._supervisor.help(job_id, self.owner, stop)

    def close(self) -> None:
        self.engine.dispose()

    def _run_small(self, held: list[Claim], stop: threading.Event | None) -> list[Ran]:
        """Runs several in this process; their ends are one transaction."""
        until = time.monotonic() + SMALL_SECONDS
        ends: list[End] = []
        for one in held:
            if (stop is not None and stop.is_set()) or (ends and time.monotonic() > until):
                break
            with JobContext.open(self.place, self.engine, one) as context:
                ends.append(attempt(context))
        patiently(lambda: ending.finish_many(self.engine, ends))
        patiently(lambda: ending.release_many(self.engine, held[len(ends) :], "given back by a busy worker"))
        return [Ran(end.held.job_id, end.state) for end in ends]
