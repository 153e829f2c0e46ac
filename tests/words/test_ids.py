"""Identities: time-ordered, content-made, and episode ids that prove where they come from."""

from __future__ import annotations

import hmac
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from pointsman import ids

SECRET, OTHER = b"project-a" + b"\x01" * 32, b"project-b" + b"\x02" * 32


def test_ids_are_version_7_and_in_order_of_time() -> None:
    made = [ids.new_id() for _ in range(200)]
    assert [UUID(i).version for i in made] == [7] * 200
    assert len(set(made)) == 200
    assert made == sorted(made)
    assert abs(datetime.now(UTC) - ids.time_of(made[-1])) < timedelta(seconds=5)


def test_an_id_of_an_earlier_moment_has_its_time_and_is_reproducible() -> None:
    moment = datetime(2024, 2, 29, 12, 30, 15, 250_000, tzinfo=UTC)
    first, again = ids.id_at(moment, b"0123456789"), ids.id_at(moment, b"0123456789")
    assert first == again
    assert ids.time_of(first) == moment
    assert UUID(first).version == 7
    assert ids.lowest_id(moment) <= first < ids.lowest_id(moment + timedelta(milliseconds=1))


def test_a_content_id_is_a_function_of_its_parts_alone() -> None:
    assert ids.content_id("worker", "a") == ids.content_id("worker", "a")
    assert ids.content_id("worker", "a") != ids.content_id("worke", "ra")
    assert UUID(ids.content_id("x")).version == 8


def test_an_episode_id_of_ours_comes_back_as_itself() -> None:
    made = ids.new_episode_id(SECRET)
    assert UUID(made).version == 7
    assert ids.given_episode_id(SECRET, made) == made
    assert ids.given_episode_id(SECRET, made.upper()) == made


def test_an_episode_id_of_another_project_is_only_a_name() -> None:
    made = ids.new_episode_id(OTHER)
    assert ids.given_episode_id(SECRET, made) != made
    forged = made[:-8] + "00000000"
    assert ids.given_episode_id(OTHER, forged) != forged


@pytest.mark.parametrize("name", ["conversation-17", "", "ünïcode", "01a227fe-not-a-uuid", "{" + "a" * 34 + "}"])
def test_a_clients_own_name_maps_into_its_projects_space(name: str) -> None:
    mapped = ids.given_episode_id(SECRET, name)
    assert UUID(mapped).version == 8
    assert mapped == ids.given_episode_id(SECRET, name)
    assert mapped != ids.given_episode_id(OTHER, name)


@pytest.mark.parametrize("size", [0, 1, 32, 63, 64, 65, 200])
def test_the_mac_is_hmac_sha_256(size: int) -> None:
    key = bytes(range(256))[:size]
    for message in (b"", b"abc", b"x" * 1000):
        assert ids.mac(key, message) == hmac.new(key, message, "sha256").hexdigest()


@pytest.mark.parametrize(
    "text", ["", "x" * 36, "01a227fe868c74ed92cedfab8dca5fa5", "01a227fe-868c-74ed-92ce-dfab8dca5fag"]
)
def test_what_is_no_uuid(text: str) -> None:
    assert not ids.is_uuid(text)
