"""Keys and projects: whole hashes only, revoked means gone, files for their owner alone."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from sqlalchemy import Engine, text

from pointsman.errors import UserError
from pointsman.identity import (
    ADMIN_KEY_FILE,
    DEFAULT_PROJECT_ID,
    DIRECTORY_FILE,
    Directory,
    create_key,
    ensure_admin_key,
    ensure_project,
    hash_key,
    list_keys,
    read_directory,
    revoke_key,
    write_private,
)


@pytest.fixture
def empty_engine(engine: Engine, empty_database: str) -> Engine:
    return engine


def test_a_key_is_kept_as_its_hash_alone(empty_engine: Engine) -> None:
    with empty_engine.begin() as connection:
        key = create_key(connection, owner="ada", note="n")
    assert re.fullmatch(r"pm_[A-Za-z0-9_-]{43}", key)
    with empty_engine.connect() as connection:
        stored = str(connection.execute(text("SELECT * FROM api_key")).mappings().one())
    assert key not in stored and hash_key(key) in stored
    entry = read_directory(empty_engine).find(key)
    assert entry is not None
    assert (entry.project_id, entry.scopes, entry.learn, entry.explore) == (
        DEFAULT_PROJECT_ID,
        {"serve", "feedback"},
        True,
        True,
    )


def test_a_part_of_a_key_or_one_with_its_prefix_finds_nothing(empty_engine: Engine) -> None:
    with empty_engine.begin() as connection:
        key, other = create_key(connection), create_key(connection, scopes=("admin",))
    directory = read_directory(empty_engine)
    for wrong in (key[:-1], key + "x", key[:7], "", "pm_", key.swapcase(), "\ud800"):
        assert directory.find(wrong) is None
    found = directory.find(other)
    assert found is not None and found.scopes == {"admin"}


def test_a_revoked_key_is_gone_and_is_revoked_once(empty_engine: Engine) -> None:
    with empty_engine.begin() as connection:
        key, other = create_key(connection), create_key(connection, owner="eve")
        identity = next(row.id for row in list_keys(connection) if row.owner is None)
        revoke_key(connection, identity)
    directory = read_directory(empty_engine)
    assert directory.find(key) is None and directory.find(other) is not None
    with empty_engine.begin() as connection:
        for absent in (identity, "not-an-id", "00000000-0000-0000-0000-000000000000"):
            with pytest.raises(UserError, match=f"no key with id {absent} is in force"):
                revoke_key(connection, absent)
        newest, oldest = list_keys(connection)
        assert newest.owner == "eve" and newest.revoked_at is None and oldest.revoked_at is not None


def test_an_unknown_scope_is_refused(empty_engine: Engine) -> None:
    with (
        empty_engine.begin() as connection,
        pytest.raises(UserError, match=r"scopes: \['root'\] unknown, expected some"),
    ):
        create_key(connection, scopes=("serve", "root"))  # type: ignore[arg-type]


def test_projects_are_made_once_with_a_secret_of_their_own(empty_engine: Engine) -> None:
    with empty_engine.begin() as connection:
        first, again, other = (ensure_project(connection, name) for name in ("a", "a", "b"))
        assert first == again != other
    secrets = read_directory(empty_engine).secrets
    assert set(secrets) == {first, other}
    assert all(re.fullmatch("[0-9a-f]{64}", secret) for secret in secrets.values())
    assert secrets[first] != secrets[other]
    with empty_engine.begin() as connection:
        ensure_project(connection, "a")
    assert read_directory(empty_engine).secrets == secrets


def test_the_admin_key_is_private_and_made_again_only_when_it_no_longer_opens(
    empty_engine: Engine, tmp_path: Path
) -> None:
    with empty_engine.begin() as connection:
        file = ensure_admin_key(connection, tmp_path)
    key = file.read_text()
    assert file == tmp_path / ADMIN_KEY_FILE and file.stat().st_mode & 0o777 == 0o600
    with empty_engine.begin() as connection:
        assert ensure_admin_key(connection, tmp_path).read_text() == key
        revoke_key(connection, list_keys(connection)[0].id)
    with empty_engine.begin() as connection:
        assert ensure_admin_key(connection, tmp_path).read_text() != key
    entry = read_directory(empty_engine).find(file.read_text())
    assert entry is not None and entry.scopes == {"serve", "feedback", "jobs", "admin"}


def test_the_directory_is_saved_privately_and_without_a_key(empty_engine: Engine, tmp_path: Path) -> None:
    assert Directory.saved(tmp_path) is None
    with empty_engine.begin() as connection:
        key = create_key(connection, learn=False)
    directory = read_directory(empty_engine)
    directory.save(tmp_path)
    file = tmp_path / DIRECTORY_FILE
    assert file.stat().st_mode & 0o777 == 0o600
    assert key not in file.read_text()
    assert Directory.saved(tmp_path) == directory
    for broken in (b"", b"{", b"[]", b'{"keys":1}'):
        file.write_bytes(broken)
        assert Directory.saved(tmp_path) is None


def test_a_private_file_is_never_readable_by_others(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"old")
    file.chmod(0o644)
    write_private(file, b"new")
    assert (file.read_bytes(), file.stat().st_mode & 0o777) == (b"new", 0o600)
    assert [path.name for path in tmp_path.iterdir()] == ["f"]
