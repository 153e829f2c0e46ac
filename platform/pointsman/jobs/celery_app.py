"""The Celery application: it carries wake-ups and nothing else.

    app = make_app(url)        # a queue each for default, probe, train; JSON both ways; no results

A message carries a job's id, and says only that there is work: the worker that gets it claims from
Postgres what is most urgent. It may therefore be acknowledged before the work is done, doubled, delivered
late or lost. There are no chords, no results, and nothing ever waits for a task.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

from celery import Celery
from kombu import Exchange, Queue

from pointsman.jobs.broker import HELP, WAKE, queue_name
from pointsman.words import JobQueue

VISIBILITY_SECONDS = 60.0
CHILD_START_SECONDS = 60.0
LOST_CHILD_SECONDS = 1.0


def make_app(url: str, *, visibility_timeout: float = VISIBILITY_SECONDS) -> Celery:
    """An application for one broker. It connects when it is used."""
    app = Celery("pointsman", broker=url, set_as_current=False)
    app.conf.update(
        task_queues=[_queue(name) for name in get_args(JobQueue)],
        task_default_queue=queue_name("default"),
        task_create_missing_queues=False,
        task_serializer="json",
        accept_content=["json"],
        task_ignore_result=True,
        task_acks_late=False,
        worker_prefetch_multiplier=1,
        worker_enable_remote_control=False,
        worker_hijack_root_logger=False,
        worker_redirect_stdouts=False,
        worker_cancel_long_running_tasks_on_connection_loss=False,
        worker_proc_alive_timeout=CHILD_START_SECONDS,
        worker_lost_wait=LOST_CHILD_SECONDS,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        broker_transport_options=_transport_options(url, visibility_timeout),
    )
    return app


def add_tasks(app: Celery, turn: Callable[[], None], help: Callable[[str], None]) -> None:
    """The two tasks. A turn is at whatever waits: `job_id` is for the eyes of whoever looks into the broker."""

    @app.task(name=WAKE)
    def wake(job_id: str) -> None:
        turn()

    @app.task(name=HELP)
    def help_out(job_id: str) -> None:
        help(job_id)


def _queue(queue: JobQueue) -> Queue:
    """Through the default exchange: there is no binding that a flushed broker could lose."""
    name = queue_name(queue)
    return Queue(name, Exchange(""), routing_key=name, durable=True)


def _transport_options(url: str, visibility_timeout: float) -> dict[str, Any]:
    """Redis has no word from a dead worker: what it held is given out again after the visibility timeout."""
    if url.startswith("amqp"):
        return {}
    return {
        "visibility_timeout": visibility_timeout,
        "unacked_restore_interval": max(min(visibility_timeout / 4, 10), 1),
        "unacked_restore_throttle": 1,
        "socket_connect_timeout": 4,
        "socket_timeout": 10,
        "socket_keepalive": True,
        "health_check_interval": 5,
    }
