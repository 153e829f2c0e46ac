"""Which broker carries the wake-ups, and the dispatcher's end of it: how many wait in a queue, and sending one.

Redis, RabbitMQ, or the embedded one; nothing beyond a queue's length and a message is asked of it.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pointsman.config import Config, Settings
from pointsman.config.model import BROKER_SCHEMES
from pointsman.errors import BrokerAway, UserError
from pointsman.jobs.embedded_broker import EmbeddedBroker
from pointsman.words import JobQueue

if TYPE_CHECKING:
    from celery import Celery
    from kombu import Connection

MISSING = "workers need Celery and its Redis client: pip install 'pointsman[jobs]'"
CONNECT_SECONDS = 4.0
WAKE = "pointsman.wake"
HELP = "pointsman.help"


def installed() -> bool:
    """Whether the extra `jobs` is here; nothing is imported."""
    return all(importlib.util.find_spec(name) is not None for name in ("celery", "croniter", "redis"))


def configured_broker(settings: Settings, config: Config) -> str | None:
    """The broker's address by the configuration; None: the embedded one."""
    if config.jobs.broker_env is None:
        return config.jobs.broker
    address = settings.secret(config.jobs.broker_env)
    if address is None:
        raise UserError(f"${config.jobs.broker_env} is not set; [jobs] broker_env names it")
    if address.partition("://")[0] not in BROKER_SCHEMES:
        raise UserError(f"${config.jobs.broker_env}: expected an address of {', '.join(BROKER_SCHEMES)}")
    return address


def broker_url(settings: Settings, config: Config) -> str:
    """The address that workers use; nothing is started."""
    return configured_broker(settings, config) or EmbeddedBroker(settings.home).url


def queue_name(queue: JobQueue) -> str:
    """Its name in the broker, which others may share."""
    return f"pointsman.{queue}"


class Wire:
    """A connection that is opened when it is needed, and anew after a failure. Every failure is `BrokerAway`."""

    def __init__(self, app: Celery) -> None:
        self._app = app
        self._connection: Connection | None = None

    def waiting(self, queue: JobQueue) -> int:
        """Wake-ups in the queue that no worker has taken yet."""
        with self._channel() as channel:
            declared = channel.queue_declare(queue_name(queue), durable=True, auto_delete=False)
            return int(declared.message_count)

    def send(self, queue: JobQueue, task: str, job_ids: Sequence[str]) -> None:
        """A message of this task for each job."""
        with self._channel() as channel, self._app.amqp.Producer(channel) as producer:
            for job_id in job_ids:
                self._app.send_task(task, [job_id], queue=queue_name(queue), producer=producer, retry=False)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.release()
            self._connection = None

    @contextmanager
    def _channel(self) -> Iterator[Any]:
        connection = self._connection or self._app.connection_for_write(connect_timeout=CONNECT_SECONDS)
        self._connection = connection
        known = connection.connection_errors + connection.channel_errors
        try:
            yield connection.default_channel
        except known as error:
            self.close()
            raise BrokerAway(f"the broker does not answer ({type(error).__name__})") from error
