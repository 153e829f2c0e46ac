"""Rates that all workers share: a token bucket per name, a row in Postgres, one statement to take from it.

A bucket holds a tenth of a minute's worth, so in any t seconds at most N/10 + N·t/60 get through,
over all machines. Unlike the gateway's budgets nothing is
leased, since jobs can wait for a round trip and a bucket must not be stranded in a slow worker.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from sqlalchemy import Engine, text

from pointsman.errors import UserError
from pointsman.jobs.patience import patiently

BURST = 10
"""A bucket holds this part of a minute's tokens, and at least one."""
LONGEST_WAIT = 1.0

# Refills by what has passed, then takes; where too little is there, nothing is updated and nothing returned.
_TAKE = text("""
INSERT INTO rate_bucket AS bucket ("name", "left", refilled_at) VALUES (:name, :size - :n, clock_timestamp())
ON CONFLICT ("name") DO UPDATE SET ("left", refilled_at) = (
    SELECT least(:size, bucket."left" + :per_second * seconds) - :n, clock_timestamp()
    FROM (SELECT extract(epoch FROM clock_timestamp() - bucket.refilled_at) AS seconds) AS passed
)
WHERE least(:size, bucket."left" + :per_second * extract(epoch FROM clock_timestamp() - bucket.refilled_at)) >= :n
RETURNING "left"
""")
_LACK = text("""
SELECT :n - least(:size, "left" + :per_second * extract(epoch FROM clock_timestamp() - refilled_at))
FROM rate_bucket WHERE "name" = :name
""")


def take(engine: Engine, name: str, per_minute: float, n: float = 1.0) -> float:
    """Takes `n` tokens from a bucket: 0 where they were there, else the seconds after which they may be."""
    size = max(per_minute / BURST, 1.0)
    if n > size:
        raise UserError(f"rate {name}: {n:g} at once can never be taken at {per_minute:g} a minute")
    per_second = per_minute / 60
    values = {"name": name, "size": size, "per_second": per_second, "n": n}
    with engine.begin() as connection:
        if connection.execute(_TAKE, values).one_or_none() is not None:
            return 0.0
        lack = connection.execute(_LACK, values).scalar_one_or_none()
    return max(float(lack or 0.0), 0.0) / per_second + 0.001


def wait_for(
    engine: Engine,
    name: str,
    per_minute: float,
    n: float = 1.0,
    *,
    check: Callable[[], None] = lambda: None,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Takes `n` tokens, waiting for them. `check` is called between, and may raise."""
    while (seconds := patiently(lambda: take(engine, name, per_minute, n), check=check)) > 0:
        check()
        sleep(min(seconds, LONGEST_WAIT))
