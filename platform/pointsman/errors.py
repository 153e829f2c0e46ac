"""The one tree of errors.

    PointsmanError
    ├── UserError            the caller's mistake; the message says what was wrong and what to do
    │   ├── ConfigError      pointsman.toml: file, key, what was expected
    │   ├── NotEvaluable     the log cannot answer this question; the message says what is missing
    │   └── RequestError     an HTTP request: status, OpenAI error type and code, parameter
    ├── UpstreamError        a worker or router LLM failed: class, HTTP status, retry-after
    ├── StoreError           the journal or Postgres cannot take or give a row now
    ├── JobStopped           a job's runner must end now
    │   ├── LeaseLost        another worker has the job, or it is finished
    │   ├── JobCancelled     somebody asked for its end
    │   ├── JobSkipped       there is nothing to do; the message says why
    │   ├── BudgetSpent      the job's money is used up
    │   └── ChunkFailed      a part of a fanned-out job failed
    ├── BrokerAway           the broker of the jobs does not answer: wake-ups wait, jobs do not get lost
    ├── ArtifactError        a file of a job is absent, or is not what its hash says
    ├── GatewayError         the command line could not get an answer from the gateway (`commands/client.py`)
    └── BrokenInvariant      our own fault: a thing that must hold did not

Broad `except` exists only at the two edges of a process (HTTP handler, command or job runner).
"""

from __future__ import annotations

from typing import Literal


class PointsmanError(Exception):
    """Root of every error that Pointsman raises on purpose."""


class UserError(PointsmanError):
    """The caller's mistake. The message is shown to the caller as it is."""


class ConfigError(UserError):
    """One or more faults in `pointsman.toml`; `problems` holds a line each: file, key, expectation."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class NotEvaluable(UserError):
    """The log cannot answer this question: no overlap, or too few rows. Never answered by a guess instead."""


class RequestError(UserError):
    """A request that is refused, in the shape of OpenAI's error object."""

    def __init__(
        self,
        message: str,
        *,
        status: int = 400,
        type: str = "invalid_request_error",
        code: str | None = None,
        param: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.type = type
        self.code = code
        self.param = param
        self.retry_after = retry_after


UpstreamFault = Literal[
    "connect",  # no connection, or it was reset before an answer
    "timeout",  # connect, first token, gap or total limit passed
    "rate_limited",  # 429
    "server",  # 5xx, or a 200 that carries an error body
    "malformed",  # bytes that are not the protocol
    "context_exceeded",  # the prompt does not fit: not the worker's fault
    "bad_request",  # 4xx: the request itself was refused
    "auth",  # 401 or 403: our key for this worker
    "truncated",  # the answer stopped after content
]


class UpstreamError(PointsmanError):
    """A call to a worker or router LLM failed.

    `retry_after` is in seconds, already parsed from either form of the header.
    `status` is the upstream's HTTP status where it gave one. `body` is the upstream's
    error text, bounded; it never holds our key.
    """

    def __init__(
        self,
        fault: UpstreamFault,
        message: str,
        *,
        status: int | None = None,
        retry_after: float | None = None,
        body: str | None = None,
    ) -> None:
        super().__init__(message)
        self.fault: UpstreamFault = fault
        self.message = message
        self.status = status
        self.retry_after = retry_after
        self.body = body


class StoreError(PointsmanError):
    """The journal is full or cannot be written, or Postgres cannot answer now."""


class JobStopped(PointsmanError):
    """A job's runner must end now. Runners let it pass; the job's state is set from its class."""


class LeaseLost(JobStopped):
    """This worker's right to run the job is gone: whatever it still does must have no effect."""


class JobCancelled(JobStopped):
    """Somebody cancelled the job."""


class JobSkipped(JobStopped):
    """The runner found nothing to do; the message is the reason that the job's row keeps."""


class BudgetSpent(JobStopped):
    """The job has spent its budget, or cannot afford what comes next."""


class ChunkFailed(JobStopped):
    """One part of a fanned-out job failed for good, and the job with it."""


class BrokerAway(PointsmanError):
    """The broker does not answer now."""


class ArtifactError(PointsmanError):
    """A job's file is absent, or its bytes are not those that its hash names. Nothing is loaded from it."""


class BrokenInvariant(PointsmanError):
    """Something that must hold did not; always a fault in Pointsman."""
