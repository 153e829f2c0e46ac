"""Feedback and dry runs over HTTP: to the gateway the dashboard is one client more, with no other way to the log."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import ProxyHandler, Request, build_opener

KEY_FILE = "admin.key"
TIMEOUT = 5.0  # seconds
MAX_REPLY = 4_000  # characters of the gateway's answer that are kept


@dataclass(frozen=True)
class Reply:
    """What the gateway said. `status` is None where it did not answer; `text` then says why."""

    status: int | None
    text: str

    @property
    def accepted(self) -> bool:
        return self.status is not None and 200 <= self.status < 300


def read_key(home: Path) -> str | None:
    """The key that `pointsman up` wrote for this machine, None where there is none."""
    try:
        return (home / KEY_FILE).read_text(encoding="utf-8").strip() or None
    except OSError:
        return None


def send_feedback(gateway: str, body: Mapping[str, Any], key: str | None, *, timeout: float = TIMEOUT) -> Reply:
    """POSTs one feedback."""
    return post(f"{gateway}/feedback", body, key, timeout=timeout)


def dry_run(gateway: str, body: Mapping[str, Any], key: str | None, *, timeout: float = 20.0) -> Reply:
    """What a router would choose for a body of chat completions; no worker is called."""
    return post(f"{gateway}/route", body, key, timeout=timeout)


def post(url: str, body: Mapping[str, Any], key: str | None, *, timeout: float) -> Reply:
    """POSTs a JSON body. Proxies of the environment are not used."""
    headers = {"content-type": "application/json"}
    if key:
        headers["authorization"] = f"Bearer {key}"
    request = Request(url, json.dumps(body).encode(), headers, method="POST")
    try:
        with build_opener(ProxyHandler({})).open(request, timeout=timeout) as response:
            return Reply(response.status, _text(response.read()))
    except HTTPError as error:
        with error:
            return Reply(error.code, _text(error.read()))
    except (OSError, HTTPException) as error:
        return Reply(None, str(error))


def readiness(gateway: str, *, timeout: float = 1.0) -> dict[str, Any] | None:
    """What `/readyz` says, ready or not; None where nothing that is JSON comes back in time."""
    request = Request(f"{gateway.removesuffix('/v1')}/readyz")
    try:
        with build_opener(ProxyHandler({})).open(request, timeout=timeout) as response:
            return _object(response.read())
    except HTTPError as error:
        with error:
            return _object(error.read())
    except (OSError, HTTPException):
        return None


def serving(gateway: str, key: str | None, *, timeout: float = 1.0) -> str | None:
    """The router version that the gateway says it serves the default project with; None where it does not say."""
    headers = {"authorization": f"Bearer {key}"} if key else {}
    request = Request(f"{gateway}/models/pointsman", headers=headers)
    try:
        with build_opener(ProxyHandler({})).open(request, timeout=timeout) as response:
            found = (_object(response.read()) or {}).get("pointsman")
    except (OSError, HTTPException):
        return None
    version = found.get("version") if isinstance(found, dict) else None
    return version if isinstance(version, str) else None


def _object(raw: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(raw)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")[:MAX_REPLY].strip()
