"""What is wrong with the schedules of a configuration: expressions by croniter, kinds and parameters by the jobs' own.

croniter comes with the extra `jobs`. Where it is not installed nothing runs schedules either, and
expressions are held against their number of fields alone.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator

from pointsman.config.model import Config, ScheduleConfig
from pointsman.errors import UserError

EXPECTED = "expected a cron expression of five fields, such as 0 3 * * *"
NICKNAMES = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")


def schedule_problems(config: Config) -> Iterator[str]:
    """A line for each fault: key, what was expected."""
    for name, schedule in config.schedules.items():
        if problem := cron_problem(schedule.cron):
            yield f"schedules.{name}.cron: {problem}, got {schedule.cron!r}"
        yield from _job_problems(name, schedule)


def cron_problem(cron: str) -> str | None:
    """What is wrong with a cron expression, None where nothing is."""
    if cron not in NICKNAMES and len(cron.split()) != 5:
        return EXPECTED
    if importlib.util.find_spec("croniter") is None:
        return None
    from croniter import CroniterError, croniter

    try:
        if not croniter.is_valid(cron):
            return EXPECTED
        croniter(cron, 0).get_next()
    except CroniterError:  # such as the 31st of February
        return "expected a time that comes"
    return None


def _job_problems(name: str, schedule: ScheduleConfig) -> Iterator[str]:
    from pointsman.jobs.kinds import parse_params

    try:
        parse_params(schedule.kind, schedule.params)
    except UserError as error:
        yield from (f"schedules.{name}.{line}" for line in str(error).splitlines())
