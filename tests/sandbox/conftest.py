"""A client of the sandbox's server over real HTTP on loopback."""

from __future__ import annotations

import json

import aiohttp
import pytest

from pointsman.sandbox.serve import serving
from pointsman.sandbox.world import World

SEED = 1
WORKER = World(SEED).names[0]
ASK = [{"role": "user", "content": "What is 17 times 23?"}]


class SandboxClient:
    """Asks the first worker what 17 times 23 is, unless told otherwise."""

    def __init__(self, session):
        self.session = session
        self.get, self.post, self.put, self.delete = session.get, session.post, session.put, session.delete

    async def chat(self, **body):
        async with self.post("/v1/chat/completions", json={"model": WORKER, "messages": ASK} | body) as response:
            return response.status, await response.json(), response.headers

    async def raw_chat(self, **body):
        async with self.post("/v1/chat/completions", json={"model": WORKER, "messages": ASK} | body) as response:
            return response.status, await response.read()

    async def fault(self, kind, **options):
        async with self.post("/faults", json={"worker": WORKER, "fault": kind} | options) as response:
            return response.status, await response.json()

    async def journal(self):
        async with self.get("/journal") as response:
            return await response.json()

    @staticmethod
    def events(raw):
        return [line[6:] for line in raw.decode().split("\n\n") if line]

    @staticmethod
    def is_json(text):
        try:
            json.loads(text)
        except ValueError:
            return False
        return True


@pytest.fixture(scope="session")
def base():
    with serving(SEED) as url:
        yield url


@pytest.fixture
async def http(base):
    async with aiohttp.ClientSession(base) as session:
        yield SandboxClient(session)
        await session.delete("/faults")
        await session.delete("/journal")


@pytest.fixture
def client_of():
    return SandboxClient
