"""`POST /v1/feedback`: a later word on a decision or an episode, through the journal like everything else."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from harness.gateway.access import Caller
from harness.gateway.state import State
from pointsman.errors import RequestError
from pointsman.ids import content_id, given_episode_id, is_uuid, new_id, time_of

YOUNG = timedelta(minutes=10)
MAX_TEXT = 20_000
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
    try:
        word = msgspec.json.decode(body, type=Feedback)
    except msgspec.ValidationError as error:
        raise _unfit(str(error)) from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise RequestError(f"the body is not valid JSON: {error}") from None
    _check_target(word)
    _check_value(word)
    for name in ("comment", "rater", "metric", "source", "idempotency_key"):
        text = getattr(word, name)
        if text is not None and len(text) > (MAX_TEXT if name == "comment" else 200):
            raise _unfit(f"{name}: too long", name)
    if word.amends is not None and not is_uuid(word.amends):
        raise _unfit("amends: expected the id of an earlier feedback", "amends")
    if word.retract and word.amends is None:
        raise _unfit("retract: expected amends, the id of the feedback that is taken back", "amends")
    return msgspec.structs.replace(word, idempotency_key=word.idempotency_key or header_key)


def feedback_row(word: Feedback, caller: Caller, decision_id: str | None, state: State) -> dict[str, Any]:
    """The `feedback` row. With an idempotency key its id is a function of project and key."""
    identity = content_id("feedback", caller.project_id, word.idempotency_key) if word.idempotency_key else new_id()
    redactor = state.redactor
    episode = given_episode_id(caller.secret, word.episode_id) if word.episode_id else None
    return {
        "id": identity,
        "project_id": caller.project_id,
        "key_id": caller.key_id,
        "decision_id": decision_id,
        "episode_id": episode,
        "completion_id": word.completion_id,
        "metric": word.metric,
        "value": word.value,
        "source": word.source,
        "rater": word.rater,
        "comment": redactor.text(word.comment),
        "better_worker": word.better_worker,
        "demonstration": redactor.value(word.demonstration),
        "idempotency_key": word.idempotency_key,
        "amends": word.amends,
        "retracted": word.retract,
        "created_at": datetime.now(UTC),
    }


def is_young(decision_id: str) -> bool:
    """Whether an id is so new that its row may still be on its way."""
    return datetime.now(UTC) - time_of(decision_id) < YOUNG


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
