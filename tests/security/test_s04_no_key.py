"""S4: beyond loopback every route wants a key, but for the two that say whether the process is well."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from harness.gateway.app import Gateway
from harness.gateway.openapi import OPERATIONS, Operation

OPEN = {"/healthz", "/readyz"}
STRANGER = ("203.0.113.9", 4711)


def asked(gateway, operation: Operation, **headers: str) -> httpx.Response:
    """The answer to a client of another machine, from the application itself."""

    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(Gateway(gateway.state), client=STRANGER)
        async with httpx.AsyncClient(transport=transport, base_url="http://gateway.example") as client:
            path = operation.path.replace("{id}", "1").replace("{name}", "alpha")
            body = {} if operation.body is not None else None
            return await client.request(operation.method.upper(), path, json=body, headers=headers)

    return asyncio.run_coroutine_threadsafe(ask(), gateway.loop).result(20)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: f"{each.method} {each.path}")
def test_a_stranger_needs_a_key(gateway, operation):
    answer = asked(gateway, operation)
    if operation.path in OPEN:
        assert answer.status_code == 200
    else:
        assert answer.status_code == 401, answer.text
        assert answer.json()["error"]["type"] == "authentication_error"


def test_what_claims_to_come_from_here_does_not(gateway):
    """Neither a Host nor a forwarded address makes a stranger local."""
    models = next(each for each in OPERATIONS if each.path == "/v1/models")
    for name, value in (("host", "localhost"), ("x-forwarded-for", "127.0.0.1"), ("forwarded", "for=127.0.0.1")):
        assert asked(gateway, models, **{name: value}).status_code == 401


def test_a_path_that_is_nowhere_says_nothing_more(gateway):
    answer = asked(gateway, Operation("get", "/v1/secrets", "", None, {}))
    assert answer.status_code == 404 and answer.json()["error"]["message"] == "there is no /v1/secrets here"
