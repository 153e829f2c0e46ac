"""The artifact store: files by the SHA-256 of their bytes, in a local folder or at any fsspec address.

    files = ArtifactStore(f"file://{home}/artifacts", cache=home / "cache" / "artifacts")
    stored = files.put(b"{}", ".json")
    files.read(stored.hash, ".json")          # its bytes, checked; ArtifactError if they are not those

A place is made from a hash and a suffix, both checked against closed forms, and from nothing else. A
file appears whole or not at all: it is written beside its place and moved there. No format that can
run code (pickle and its kin) has a suffix here. Which job a file belongs to is in `artifacts`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from pointsman.errors import ArtifactError, UserError
from pointsman.ids import new_id

if TYPE_CHECKING:
    from pointsman.config import Settings

MEDIA = {
    ".safetensors": "application/octet-stream",
    ".json": "application/json",
    ".jsonl": "application/jsonl",
    ".parquet": "application/vnd.apache.parquet",
    ".md": "text/markdown",
    ".csv": "text/csv",
    ".png": "image/png",
}
"""The suffixes that there are, and what they hold."""
_HASH = re.compile(r"[0-9a-f]{64}")
_PLACE = re.compile(r"([0-9a-f]{64})(\.[a-z]+)")
_BLOCK = 1 << 20
UNFINISHED = "unfinished"
"""The folder of files that are being written. What a killed process left there is swept by its age."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A file of the store."""

    hash: str
    suffix: str
    size: int

    @property
    def media(self) -> str:
        return MEDIA[self.suffix]


@dataclass(frozen=True, slots=True)
class Found:
    """A file that lies in the store, referred to or not."""

    hash: str
    suffix: str
    modified: datetime


def artifact_store(settings: Settings, url: str | None = None) -> ArtifactStore:
    """The store at `url`, by default the folder `artifacts` of the data folder."""
    return ArtifactStore(url or str(settings.home / "artifacts"), cache=settings.home / "cache" / "artifacts")


class ArtifactStore:
    """Files at `url`; `cache` is a local folder for copies of those that lie elsewhere."""

    def __init__(self, url: str, *, cache: Path) -> None:
        from fsspec.core import url_to_fs

        try:
            self._fs, self._root = url_to_fs(url)
        except (ValueError, ImportError) as error:
            raise UserError(f"artifacts: {url!r} cannot be used: {error}") from None
        self._root = self._root.rstrip("/")
        self._cache = cache
        self._local = "file" in (self._fs.protocol if isinstance(self._fs.protocol, tuple) else (self._fs.protocol,))

    def put(self, content: bytes | Path, suffix: str) -> Stored:
        """Stores bytes or a local file; once is enough, however often it is put."""
        stored = describe(content, suffix)
        self.put_described(stored, content)
        return stored

    def put_described(self, stored: Stored, content: bytes | Path) -> None:
        """As `put`, for content whose hash is known. ArtifactError where it is not that of `content`."""
        place = self._place(stored.hash, stored.suffix)
        if self._fs.exists(place):
            return
        with BytesIO(content) if isinstance(content, bytes) else content.open("rb") as source:
            self._write(stored, source, place)

    def exists(self, hash: str, suffix: str) -> bool:
        return bool(self._fs.exists(self._place(hash, suffix)))

    def read(self, hash: str, suffix: str) -> bytes:
        """All bytes of a file, checked against its hash."""
        place = self._place(hash, suffix)
        try:
            data: bytes = self._fs.cat_file(place)
        except FileNotFoundError:
            raise _absent(hash, suffix) from None
        _same(hash, sha256(data).hexdigest(), suffix)
        return data

    def fetch(self, hash: str, suffix: str) -> Path:
        """A local path to a file whose bytes were checked just now: for libraries that open files themselves."""
        place = self._place(hash, suffix)
        local = Path(place) if self._local else self._cache / f"{hash}{suffix}"
        if not self._local and not local.exists():
            self._download(place, local)
        try:
            with local.open("rb") as file:
                found = _digest(file)
        except FileNotFoundError:
            raise _absent(hash, suffix) from None
        if found != hash and not self._local:
            local.unlink(missing_ok=True)
        _same(hash, found, suffix)
        return local

    def delete(self, hash: str, suffix: str) -> None:
        """Removes a file, if it is there."""
        try:
            self._fs.rm_file(self._place(hash, suffix))
        except FileNotFoundError:
            return

    def found(self) -> Iterator[Found]:
        """Every file that lies in the store."""
        for path, modified in self._listed():
            match = _PLACE.fullmatch(path.rpartition("/")[2])
            if match and match[2] in MEDIA:
                yield Found(match[1], match[2], modified)

    def sweep_unfinished(self, before: datetime) -> int:
        """Removes what killed writers left half written before a time; how many files."""
        old = [path for path, modified in self._listed(UNFINISHED) if modified < before]
        for path in old:
            self._fs.rm_file(path)
        return len(old)

    def _place(self, hash: str, suffix: str) -> str:
        """The only place where a path is made. Both parts may come from a request."""
        if not _HASH.fullmatch(hash):
            raise UserError(f"artifact: expected a hash of 64 hexadecimal digits, got {hash[:80]!r}")
        if suffix not in MEDIA:
            raise UserError(f"artifact: expected one of {', '.join(MEDIA)}, got {suffix[:20]!r}")
        return f"{self._root}/{hash[:2]}/{hash}{suffix}"

    def _write(self, stored: Stored, source: IO[bytes], place: str) -> None:
        """Writes a file beside its place and moves it there whole."""
        beside = f"{self._root}/{UNFINISHED}/{new_id()}"
        for path in (beside, place):
            self._fs.makedirs(path.rpartition("/")[0], exist_ok=True)
        try:
            with self._fs.open(beside, "wb") as target:
                _same(stored.hash, _copied(source, target), stored.suffix)
            self._fs.mv(beside, place)
        except BaseException:
            if self._fs.exists(beside):
                self._fs.rm_file(beside)
            raise

    def _download(self, place: str, local: Path) -> None:
        local.parent.mkdir(parents=True, exist_ok=True)
        beside = local.with_name(new_id())
        try:
            self._fs.get_file(place, str(beside))
        except FileNotFoundError:
            return
        beside.replace(local)

    def _listed(self, folder: str | None = None) -> Iterator[tuple[str, datetime]]:
        root = f"{self._root}/{folder}" if folder else self._root
        self._fs.invalidate_cache()
        try:
            details: dict[str, Any] = self._fs.find(root, detail=True)
        except FileNotFoundError:
            return
        for path, info in details.items():
            if folder or f"/{UNFINISHED}/" not in path:
                yield path, _moment(info.get("mtime") or info.get("LastModified") or info.get("created"))


def describe(content: bytes | Path, suffix: str) -> Stored:
    """What bytes or a local file would be in the store."""
    if suffix not in MEDIA:
        raise UserError(f"artifact: expected one of {', '.join(MEDIA)}, got {suffix[:20]!r}")
    if isinstance(content, bytes):
        return Stored(sha256(content).hexdigest(), suffix, len(content))
    with content.open("rb") as source:
        return Stored(_digest(source), suffix, source.tell())


def _copied(source: IO[bytes], target: Any) -> str:
    """Copies all of a file; the digest of what was copied."""
    digest = sha256()
    while block := source.read(_BLOCK):
        digest.update(block)
        target.write(block)
    return digest.hexdigest()


def _digest(file: IO[bytes]) -> str:
    digest = sha256()
    while block := file.read(_BLOCK):
        digest.update(block)
    return digest.hexdigest()


def _same(expected: str, found: str, suffix: str) -> None:
    if found != expected:
        raise ArtifactError(f"artifact {expected}{suffix} is damaged: its bytes have the hash {found}")


def _absent(hash: str, suffix: str) -> ArtifactError:
    return ArtifactError(f"artifact {hash}{suffix} is not in the store")


def _moment(value: Any) -> datetime:
    """A file's time, which file systems give as seconds, as a datetime, or as text."""
    if isinstance(value, datetime):
        return value if value.tzinfo else value.replace(tzinfo=UTC)
    if isinstance(value, str):
        return _moment(datetime.fromisoformat(value))
    return datetime.fromtimestamp(float(value or 0), tz=UTC)
