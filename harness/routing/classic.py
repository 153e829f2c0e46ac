"""The classic router: scores of a trained model, computed in the gateway by numpy in under a tenth of a millisecond.

It reads the person's ask alone. Its columns are endpoint versions: a worker whose model or address
changed since training has none and gets `UNKNOWN`, below every reward, so that only exploration tries it.
"""

from __future__ import annotations

from pathlib import Path

from harness.routing.base import Ask, RouterFailed, RouterVersion, Scored
from harness.routing.classic_model import ClassicModel, read_model
from pointsman.config import Config, Settings
from pointsman.pool import Worker
from pointsman.words import RouterKind

DEADLINE = 0.05
UNKNOWN = -1.0


class ClassicRouter:
    """Scores by one model. The flag `unknown_workers` says that some worker offered has no column."""

    kind: RouterKind = "classic"
    deadline = DEADLINE

    def __init__(self, model: ClassicModel, version: RouterVersion) -> None:
        self.version = version
        self._model = model
        self._columns = {endpoint: number for number, endpoint in enumerate(model.endpoints)}

    async def score(self, ask: Ask, workers: tuple[Worker, ...], seed: int) -> Scored:
        return self.score_now(ask, workers, seed)

    def score_now(self, ask: Ask, workers: tuple[Worker, ...], seed: int) -> Scored:
        """The same without suspending. Raises `RouterFailed` where no worker offered has a column."""
        columns = self._columns
        known = sum(worker.endpoint_hash in columns for worker in workers)
        if not known:
            raise RouterFailed("no_known_worker")
        scores = self._model.scores(ask.text, seed).tolist()
        by_worker = {
            worker.name: UNKNOWN if (column := columns.get(worker.endpoint_hash)) is None else scores[column]
            for worker in workers
        }
        return Scored(by_worker, flags=() if known == len(workers) else ("unknown_workers",))


def load_classic(folder: Path, parent_id: str | None = None) -> ClassicRouter:
    """The router of a model's folder. Raises `UserError` where it cannot serve."""
    model, content = read_model(folder)
    return ClassicRouter(model, RouterVersion("classic", content, parent_id))


def load(config: Config, settings: Settings, parent_id: str | None) -> ClassicRouter | None:
    """Entry point `pointsman.routers`: the router that `[router] classic` names, None where it names none."""
    if config.router.classic is None:
        return None
    return load_classic(settings.home / config.router.classic, parent_id)
