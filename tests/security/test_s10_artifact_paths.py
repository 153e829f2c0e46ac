"""S10: what names an artifact is a hash and a suffix of a closed form: no other path is read, written or removed."""

from __future__ import annotations

from pathlib import Path

import pytest

from pointsman.errors import ArtifactError, UserError
from pointsman.jobs.files import ArtifactStore

HASH = "a" * 64
NAMES = [
    ("../../etc/passwd", ".json"),
    ("/etc/passwd", ".json"),
    ("%252e%252e%252fetc%252fpasswd", ".json"),
    ("file:///etc/passwd", ".json"),
    ("\\\\server\\share", ".json"),
    (f"{HASH[:-1]}\x00", ".json"),
    (f"{HASH}\n", ".json"),
    (HASH.upper(), ".json"),
    (HASH, "/../../../secret.json"),
    (HASH, ".json\x00"),
    (HASH, ""),
    (HASH, ".pkl"),
]


@pytest.fixture
def store(tmp_path: Path) -> ArtifactStore:
    (tmp_path / "secret.json").write_text("{}")
    return ArtifactStore(str(tmp_path / "artifacts"), cache=tmp_path / "cache")


@pytest.mark.parametrize(("hash", "suffix"), NAMES)
@pytest.mark.parametrize("act", ["read", "fetch", "delete", "exists"])
def test_another_name_is_refused_by_everything(store, tmp_path, act, hash, suffix):
    with pytest.raises(UserError, match="artifact: expected"):
        getattr(store, act)(hash, suffix)
    assert (tmp_path / "secret.json").read_text() == "{}"


def test_a_link_that_was_put_in_its_place_is_not_believed(store, tmp_path):
    stored = store.put(b"{}", ".json")
    place = tmp_path / "artifacts" / stored.hash[:2] / f"{stored.hash}.json"
    (tmp_path / "other.json").write_text('{"other": 1}')
    place.unlink()
    place.symlink_to(tmp_path / "other.json")
    with pytest.raises(ArtifactError, match="is damaged"):
        store.read(stored.hash, ".json")
    with pytest.raises(ArtifactError, match="is damaged"):
        store.fetch(stored.hash, ".json")
    store.delete(stored.hash, ".json")
    assert (tmp_path / "other.json").exists()
