"""What a feedback is about: a decision or an episode of the caller's own project, known or still on its way."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import Engine, select
from sqlalchemy.exc import SQLAlchemyError

from harness.gateway.access import Caller
from harness.gateway.feedback import Feedback
from harness.gateway.records import find_by_completion, find_record, is_young
from harness.gateway.state import State
from harness.gateway.surfaces.responses import decision_id as decision_of_response
from harness.gateway.teams.telling import decision_of_team
from pointsman.errors import RequestError
from pointsman.ids import given_episode_id, is_uuid
from pointsman.tables import METADATA

MESSAGE = "msg_"
_EPISODE = METADATA.tables["episode"]


@dataclass(frozen=True, slots=True)
class Subject:
    """`known`: its row was found, here or in Postgres."""

    decision_id: str | None
    episode_id: str | None
    known: bool


async def find_subject(state: State, caller: Caller, word: Feedback) -> Subject:
    """Raises 404 for what is not there and will not come: an old unknown id, or another project's."""
    if word.decision_id is not None:
        identity = word.decision_id.lower()
        return Subject(identity, None, await _knows_decision(state, caller, identity))
    if word.completion_id is not None:
        if (named := decision_of_response(word.completion_id) or decision_of_team(word.completion_id)) is not None:
            return Subject(named, None, await _knows_decision(state, caller, named))
        # Completion ids have no time in them: an unknown one may be on its way from another process.
        found = await decision_named(state, caller.project_id, word.completion_id)
        return Subject(found, None, found is not None)
    assert word.episode_id is not None
    episode = given_episode_id(caller.secret, word.episode_id)
    return Subject(None, episode, await _knows_episode(state, caller, word.episode_id, episode))


async def decision_named(state: State, project_id: str, answer_id: str) -> str | None:
    """The decision behind the id of an answer, as any surface gave it: a completion's, a response's, a message's.

    A message's is the completion's behind `msg_`, unless the worker's own began so.
    """
    if (named := decision_of_response(answer_id) or decision_of_team(answer_id)) is not None:
        return named
    found = await find_by_completion(state, project_id, answer_id)
    plain = answer_id.removeprefix(MESSAGE)
    if found is None and plain != answer_id:
        found = await find_by_completion(state, project_id, plain)
    return found


async def _knows_decision(state: State, caller: Caller, decision_id: str) -> bool:
    local = state.recent.get(decision_id)
    if local is not None and local.project_id == caller.project_id:
        return True
    record = await find_record(state, caller.project_id, decision_id) if local is None else None
    if record is not None:
        return True
    if local is not None or not is_young(decision_id):
        raise RequestError(f"there is no decision {decision_id} here", status=404, code="decision_not_found")
    return False


async def _knows_episode(state: State, caller: Caller, given: str, episode: str) -> bool:
    if state.recent.has_episode(caller.project_id, episode):
        return True
    try:
        if state.database_up and await asyncio.to_thread(_has_episode, state.engine, caller.project_id, episode):
            return True
    except SQLAlchemyError:
        return False
    # A name that a client chose has no time in it, an id of ours has.
    if is_uuid(given) and UUID(given).version == 7 and state.database_up and not is_young(given):
        raise RequestError(f"there is no episode {given} here", status=404, code="episode_not_found")
    return False


def _has_episode(engine: Engine, project_id: str, episode: str) -> bool:
    query = select(_EPISODE.c.id).where(_EPISODE.c.id == episode, _EPISODE.c.project_id == project_id)
    with engine.connect() as connection:
        return connection.execute(query).first() is not None
