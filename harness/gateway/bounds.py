"""What JSON from outside must keep to before it is read, forwarded and logged: UTF-8, and a bounded depth.

Everything behind the gateway walks JSON by recursion (redaction, cleaning, Postgres); one bound at the
edge keeps all of it safe.
"""

from __future__ import annotations

from pointsman.errors import RequestError

MAX_DEPTH = 100
_REST = bytes(set(range(256)) - set(b"[]{}"))
_ONE_KIND = bytes.maketrans(b"{}", b"[]")


def check_json(body: bytes) -> None:
    """Raises a 400 for bytes that are not UTF-8, and for JSON nested deeper than `MAX_DEPTH`."""
    try:
        str(body, "utf-8")
    except UnicodeDecodeError as error:
        raise RequestError(f"the body is not UTF-8: byte {error.start}") from None
    if body.count(b"[") + body.count(b"{") > MAX_DEPTH and _deeper(body):
        raise RequestError(f"the body is nested deeper than {MAX_DEPTH} levels", code="too_deep")


def _deeper(body: bytes) -> bool:
    """Each round takes out the innermost level; what is left after the allowed rounds is too deep."""
    # Without escapes every quote begins or ends a string; what stands between strings is structure.
    plain = body.replace(rb"\\", b"").replace(rb"\"", b"") if b"\\" in body else body
    brackets = b"".join(plain.split(b'"')[::2]).translate(_ONE_KIND, _REST)
    for _ in range(MAX_DEPTH):
        shorter = brackets.replace(b"[]", b"")
        if len(shorter) == len(brackets):
            return len(brackets) > MAX_DEPTH  # what is left is unbalanced: no JSON, but it may still be deep
        brackets = shorter
    return bool(brackets)
