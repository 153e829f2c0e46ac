"""Working through a stage's parts with some threads: the job's own worker, and any number of helpers.

    results = fan_out(context, "answers", questions, concurrency=8)     # in the order of the questions

In the job's own worker it ends when the last part has, wherever that was; a part that fails anywhere ends
it with ChunkFailed within a second or two. Results are written each quarter of a second, so a worker that
is killed takes little with it, and many small parts share one transaction.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Any

from pointsman.errors import BrokenInvariant, ChunkFailed, JobCancelled, JobStopped, LeaseLost, PointsmanError
from pointsman.jobs.chunks import Chunk

if TYPE_CHECKING:
    from pointsman.jobs.context import JobContext

WRITE_EVERY = 0.25
LOOK_EVERY = 1.0
BATCH_SECONDS = 1.0
MOST = 256

Work = Callable[[Any], Any]


def fan_out(
    context: JobContext, stage: str, items: Sequence[Any], work: Work | None = None, *, concurrency: int = 4
) -> Iterator[Any]:
    """Does `work` (by default the kind's own `part`) on each item; the results in their order.

    Items and results are JSON. What an earlier attempt did is not done again. `work` runs in several
    threads at once; what it raises fails the job. Only a kind's own part can be helped with.
    """
    chosen = work or context.part
    if chosen is None:
        raise BrokenInvariant(f"{context.held.kind} jobs name no part, and fan_out was given no work")
    context.chunks.add(context.held, stage, items)
    context.chunks.recall(context.held, stage)
    crew = Crew(context, chosen, concurrency, stage)
    crew.run(total=len(items))
    return context.chunks.results(stage)


def lend_a_hand(context: JobContext, concurrency: int = 4) -> int:
    """A helper's whole work: parts of a job that another worker runs, until none are free; how many it did."""
    if context.part is None:
        return 0
    crew = Crew(context, context.part, concurrency, None)
    crew.run(total=None)
    return crew.ended


class Crew:
    """Some threads that work on claimed parts, and the one that claims, writes, renews and looks around."""

    def __init__(self, context: JobContext, work: Work, concurrency: int, stage: str | None) -> None:
        self.ended = 0
        self._context = context
        self._chunks = context.chunks
        self._work = work
        self._width = concurrency
        self._stage = stage
        self._under_way: dict[Future[Any], Chunk] = {}
        self._results: list[tuple[Chunk, Any]] = []
        self._began = self._written_at = self._looked_at = self._kept_at = time.monotonic()

    def run(self, total: int | None) -> None:
        """Until all parts are ended (`total` of them: the job's own worker) or none are free (a helper)."""
        executor = ThreadPoolExecutor(self._width, thread_name_prefix="part")
        try:
            while self._turn(executor, total):
                self._context.check()
        finally:
            # Threads that are still busy end with the process; what they do is no longer taken.
            executor.shutdown(wait=False, cancel_futures=True)

    def _turn(self, executor: ThreadPoolExecutor, total: int | None) -> bool:
        """Claims, waits a moment, takes in what has ended; False when there is nothing left to wait for."""
        self._fetch(executor)
        if self._under_way:
            wait(self._under_way, timeout=WRITE_EVERY, return_when=FIRST_COMPLETED)
            self._gather()
        else:
            self._write()
            self._look(total)
            if total is None or not self._chunks.open(self._stage):
                return False
            self._context.pause(WRITE_EVERY)
        now = time.monotonic()
        if now - self._written_at >= WRITE_EVERY:
            self._write()
        if now - self._looked_at >= LOOK_EVERY:
            self._look(total)
        return True

    def _fetch(self, executor: ThreadPoolExecutor) -> None:
        """Keeps the threads busy. What waits in the executor is claimed, so no more than they need soon."""
        if len(self._under_way) > self._batch() // 2:
            return
        for chunk in self._chunks.claim(self._batch() - len(self._under_way), self._stage):
            self._under_way[executor.submit(self._work, chunk.params)] = chunk

    def _batch(self) -> int:
        """As many as take about a second, so that none waits here while a helper is idle."""
        elapsed = max(time.monotonic() - self._began, WRITE_EVERY)
        return min(max(int(self.ended / elapsed * BATCH_SECONDS), self._width), MOST)

    def _gather(self) -> None:
        """Takes in the parts that ended; the first that failed ends it all, after the results are written."""
        failed: tuple[Chunk, BaseException] | None = None
        for future in [future for future in self._under_way if future.done()]:
            chunk = self._under_way.pop(future)
            if (error := future.exception()) is None:
                self._results.append((chunk, future.result()))
                self.ended += 1
            else:
                failed = failed or (chunk, error)
        if failed is not None:
            self._write()
            self._raise(*failed)

    def _raise(self, chunk: Chunk, error: BaseException) -> None:
        if isinstance(error, LeaseLost | JobCancelled) or (self._stage is not None and isinstance(error, JobStopped)):
            raise error
        reason = f"{type(error).__name__}: {error}" if not isinstance(error, PointsmanError) else str(error)
        self._context.log("".join(traceback.format_exception(error)), "error")
        self._chunks.fail(chunk, reason)
        raise _failed(chunk.stage, chunk.number, reason)

    def _write(self) -> None:
        results, self._results = self._results, []
        self._written_at = time.monotonic()
        self._chunks.finish(results)

    def _look(self, total: int | None) -> None:
        """What happened elsewhere; how far all are; and that we are still here."""
        self._looked_at = time.monotonic()
        if self._looked_at - self._kept_at >= self._context.lease_s / 4:
            self._kept_at = self._looked_at
            self._chunks.keep(list(self._under_way.values()))
        if total is None or self._stage is None:
            return
        if (failure := self._chunks.failure(self._stage)) is not None:
            raise _failed(self._stage, *failure)
        self._context.progress(total - self._chunks.open(self._stage), total)


def _failed(stage: str, number: int, reason: str) -> ChunkFailed:
    return ChunkFailed(f"part {number} of stage {stage} failed: {reason}")
