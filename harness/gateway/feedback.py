"""`POST /v1/feedback`: a later word on a decision or an episode, through the journal like everything else."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec

from harness.gateway.access import Caller
from harness.gateway.bounds import check_json
from pointsman.errors import RequestError
from pointsman.ids import content_id, is_uuid, new_id
from pointsman.redaction import Redactor

if TYPE_CHECKING:
    from harness.gateway.subject import Subject

MAX_TEXT = 20_000
MAX_NAME = 200
BOOLEAN_METRICS = frozenset({"correct", "helpful", "thumbs", "accepted", "resolved"})
UNIT_METRICS = frozenset({"score", "rating", "quality"})
WORD_METRICS = frozenset({"comment", "demonstration", "better_worker"})


class Feedback(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body. One of `decision_id`, `completion_id`, `episode_id` says what it is about.

    `amends` names an earlier feedback that this one replaces; with `retract` it only takes that back.
    """

    decision_id: str | None = None
    completion_id: str | None = None
    episode_id: str | None = None
    metric: str = "comment"
    value: Any = None
    source: str = "person"
    rater: str | None = None
    comment: str | None = None
    better_worker: str | None = None
    demonstration: Any = None
    idempotency_key: str | None = None
    amends: str | None = None
    retract: bool = False


def read_feedback(body: bytes, header_key: str | None) -> Feedback:
    """Reads and checks a body; 422 where a value does not fit."""
    check_json(body)
    try:
        word = msgspec.json.decode(body, type=Feedback)
    except msgspec.ValidationError as error:
        raise _unfit(str(error)) from None
    except msgspec.DecodeError as error:
        raise RequestError(f"the body is not valid JSON: {error}") from None
    _check_target(word)
    _check_value(word)
    for name in ("completion_id", "episode_id", "comment", "rater", "metric", "source", "better_worker"):
        text = getattr(word, name)
        if text is not None and len(text) > (MAX_TEXT if name == "comment" else MAX_NAME):
            raise _unfit(f"{name}: too long", name)
    if word.amends is not None and not is_uuid(word.amends):
        raise _unfit("amends: expected the id of an earlier feedback", "amends")
    if word.retract and word.amends is None:
        raise _unfit("retract: expected amends, the id of the feedback that is taken back", "amends")
    key = word.idempotency_key or header_key
    if key is not None and not 0 < len(key) <= MAX_NAME:
        raise _unfit(f"idempotency_key: expected 1 to {MAX_NAME} characters", "idempotency_key")
    return msgspec.structs.replace(word, idempotency_key=key)


def feedback_row(word: Feedback, caller: Caller, subject: Subject, redactor: Redactor) -> dict[str, Any]:
    """The `feedback` row. With an idempotency key its id is a function of project and key."""
    identity = content_id("feedback", caller.project_id, word.idempotency_key) if word.idempotency_key else new_id()
    return {
        "id": identity,
        "project_id": caller.project_id,
        "key_id": caller.key_id,
        "decision_id": subject.decision_id,
        "episode_id": subject.episode_id,
        "completion_id": redactor.text(word.completion_id),
        "metric": redactor.text(word.metric),
        "value": redactor.value(word.value),
        "source": redactor.text(word.source),
        "rater": redactor.text(word.rater),
        "comment": redactor.text(word.comment),
        "better_worker": redactor.text(word.better_worker),
        "demonstration": redactor.value(word.demonstration),
        "idempotency_key": redactor.text(word.idempotency_key),
        "amends": word.amends,
        "retracted": word.retract,
        "created_at": datetime.now(UTC),
    }


def _check_target(word: Feedback) -> None:
    given = [t for t in (word.decision_id, word.completion_id, word.episode_id) if t]
    if len(given) != 1:
        raise _unfit("expected exactly one of decision_id, completion_id and episode_id", "decision_id")
    if word.decision_id is not None and not is_uuid(word.decision_id):
        raise _unfit("decision_id: expected the id from the x-pointsman-decision-id header", "decision_id")


def _check_value(word: Feedback) -> None:
    value, metric = word.value, word.metric
    if word.retract:
        return
    if metric in BOOLEAN_METRICS:
        if not isinstance(value, bool):
            raise _unfit(f"value: the metric {metric!r} is true or false", "value")
        return
    number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if metric in UNIT_METRICS:
        if not number or not 0 <= value <= 1:
            raise _unfit(f"value: the metric {metric!r} is a number from 0 to 1", "value")
        return
    if metric in WORD_METRICS:
        if (word.comment, word.demonstration, word.better_worker) == (None, None, None):
            raise _unfit(f"the metric {metric!r} expects comment, demonstration or better_worker", metric)
        return
    if not metric or not (isinstance(value, bool) or number):
        raise _unfit("value: expected true, false or a finite number", "value")


def _unfit(message: str, param: str | None = None) -> RequestError:
    return RequestError(message, status=422, param=param, code="unprocessable")
