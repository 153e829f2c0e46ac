"""The runner of `optimize` jobs, and how parameters become a wish. A job that starts anew goes on where it stopped."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any, cast

from harness.optimise.run import Wish
from harness.optimise.run import run as search
from harness.optimise.telling import lines
from pointsman.config import Settings
from pointsman.errors import UserError
from pointsman.jobs.context import JobContext
from pointsman.jobs.kinds import Optimize
from pointsman.probing.job import budget_left
from pointsman.words import Origin


def wish_of(params: Optimize, money: Decimal | None, start: Path | None = None) -> Wish:
    """`traffic` among the origins means pseudo-outcomes, and stands alone."""
    origins = params.origins
    if "traffic" in origins and len(origins) > 1:
        raise UserError("origins: traffic gives pseudo-outcomes and cannot be mixed with full-information rows")
    return Wish(
        origins=() if origins == ("traffic",) else cast(tuple[Origin, ...], origins),
        tags=() if params.run is None else (f"probe:{params.run}",),
        reward=params.reward,
        trade_off=params.trade_off,
        calls=params.calls,
        money=money,
        minutes=params.minutes,
        reflect=params.reflect,
        demonstrations=params.demonstrations,
        brief=params.brief,
        mipro=params.mipro,
        seed=params.seed,
        concurrency=params.concurrency,
        keep=params.promote_as_candidate,
        start=start,
    )


def state_folder(settings: Settings) -> Path:
    """Where searches keep their replies, each in a folder of its own name: the same search finds them again."""
    return settings.home / "optimize"


def run(context: JobContext, params: Optimize) -> dict[str, Any]:
    """Searches; the result is the report."""
    wish = wish_of(params, budget_left(context))

    def pay(amount: Decimal) -> None:
        context.spend(amount)
        context.check()

    with context.stage("search") as stage:
        if not stage.todo:
            return {}
        folder = state_folder(context.settings)
        config, settings, engine = context.config, context.settings, context.engine
        done = search(config, settings, engine, context.project_id, wish, folder, context.log, pay)
    result = done.as_dict()
    for line in lines(result):
        context.log(line)
    return result
