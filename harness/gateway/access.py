"""Who may ask: keys by their whole hash, and without a key only a loopback client with a loopback `Host`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address

from pointsman.errors import RequestError
from pointsman.identity import DEFAULT_PROJECT_ID, Directory
from pointsman.words import Scope

Headers = list[tuple[bytes, bytes]]

KEYLESS_SCOPES = frozenset({"serve", "feedback"})
KEY_PREFIX = "pm_"
KNOWN_CALLERS = 4_096
_OURS = b"bearer pm_"
# RFC 6750 §2.1. OpenAI's clients always send a key; one that is not of our form is such a
# client's placeholder, and counts as none. What is no bearer token at all is refused.
_TOKEN = re.compile(r"[A-Za-z0-9\-._~+/]{1,256}=*")


@dataclass(frozen=True, slots=True)
class Caller:
    """The project a request belongs to, and what its key allows."""

    project_id: str
    key_id: str | None
    scopes: frozenset[str]
    secret: bytes
    learn: bool = True
    explore: bool = True


def header(headers: Headers, name: bytes) -> str | None:
    """A header's first value; ASGI gives names in lower case."""
    for key, value in headers:
        if key == name:
            return value.decode("latin-1")
    return None


class Known:
    """Callers by the header that named them, as long as the directory is the same: most requests come from a few."""

    def __init__(self) -> None:
        self._directory: Directory | None = None
        self._callers: dict[bytes, Caller] = {}

    def identify(
        self, headers: Headers, client: tuple[str, int] | None, directory: Directory | None, *, has_body: bool
    ) -> Caller:
        """What the function of this name gives."""
        if directory is not self._directory:
            self._directory, self._callers = directory, {}
        said = _authorization(headers)
        caller = self._callers.get(said)
        if caller is None:
            caller = identify(headers, client, directory, has_body=has_body)
            if caller.key_id is not None and said[: len(_OURS)].lower() == _OURS:  # and not by another header
                if len(self._callers) >= KNOWN_CALLERS:
                    self._callers.clear()
                self._callers[said] = caller
        return caller

    def is_stranger(self, headers: Headers, directory: Directory | None) -> bool:
        """Whether a request names a key of our form that the directory does not hold: made a moment ago, perhaps."""
        if directory is None or (directory is self._directory and _authorization(headers) in self._callers):
            return False
        try:
            key = _key(headers)
        except RequestError:
            return False
        return key is not None and directory.find(key) is None


def identify(
    headers: Headers, client: tuple[str, int] | None, directory: Directory | None, *, has_body: bool
) -> Caller:
    """The caller of a request. Raises 401, 403, or 503 while keys cannot be read."""
    key = _key(headers)
    if key is None:
        return _keyless(headers, client, directory, has_body=has_body)
    if directory is None:
        raise RequestError(
            "keys cannot be checked: Postgres is away and no earlier directory of keys is at hand",
            status=503,
            type="server_error",
            retry_after=2,
        )
    entry = directory.find(key)
    if entry is None:
        raise _unauthorised("this key is not known, or was revoked")
    return Caller(
        entry.project_id,
        entry.id,
        entry.scopes,
        project_secret(directory, entry.project_id),
        entry.learn,
        entry.explore,
    )


def require(caller: Caller, scope: Scope) -> None:
    """Raises 403 where the caller's key lacks a scope; `admin` has every scope."""
    if scope not in caller.scopes and "admin" not in caller.scopes:
        raise RequestError(
            f"this needs a key with the scope {scope!r}; `pointsman up` writes one to admin.key in the data folder",
            status=403,
            type="permission_error",
            code="missing_scope",
        )


def is_loopback(host: str) -> bool:
    """Whether a host name or address is this machine's own."""
    if host.lower() == "localhost":
        return True
    try:
        address = ip_address(host)
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return (mapped or address).is_loopback


def _authorization(headers: Headers) -> bytes:
    return next((value for name, value in headers if name == b"authorization"), b"")


def _key(headers: Headers) -> str | None:
    given = header(headers, b"authorization")
    token = ""
    if given is not None:
        kind, _, token = given.partition(" ")
        token = token.strip()
        if kind.lower() != "bearer" or not _TOKEN.fullmatch(token):
            raise _unauthorised("expected `Authorization: Bearer <key>`")
    if not token.startswith(KEY_PREFIX):
        # An Anthropic client may hold a login of its own beside the key for here.
        token = header(headers, b"x-api-key") or ""
    return token if token.startswith(KEY_PREFIX) else None


def _keyless(
    headers: Headers, client: tuple[str, int] | None, directory: Directory | None, *, has_body: bool
) -> Caller:
    if client is None or not is_loopback(client[0]):
        raise _unauthorised("a key is needed from beyond this machine; `pointsman keys create` makes one")
    if not is_loopback(_host_name(header(headers, b"host") or "")):
        raise RequestError(
            "without a key only a loopback Host is served, such as localhost",
            status=403,
            type="permission_error",
            code="foreign_host",
        )
    media_type = (header(headers, b"content-type") or "").partition(";")[0].strip().lower()
    if has_body and media_type != "application/json":
        raise RequestError("expected Content-Type: application/json", status=415, code="unsupported_media_type")
    return Caller(DEFAULT_PROJECT_ID, None, KEYLESS_SCOPES, project_secret(directory, DEFAULT_PROJECT_ID))


def project_secret(directory: Directory | None, project_id: str) -> bytes:
    """What keys a project's HMACs: its id and its secret, so that two projects never share an episode."""
    secret = directory.secrets.get(project_id, "") if directory else ""
    return project_id.encode() + bytes.fromhex(secret)


def _host_name(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.rpartition(":")[0] if ":" in host else host


def _unauthorised(message: str) -> RequestError:
    return RequestError(message, status=401, type="authentication_error", code="invalid_api_key")
