"""The cache of exact repeats: what may be in it, for whom, how long, and how much."""

from __future__ import annotations

import msgspec
import pytest

from harness.gateway.cache import CachedAnswer, ResponseCache, cache_key
from pointsman.config import load_text
from pointsman.errors import ConfigError

BODY = {"model": "pointsman", "messages": [{"role": "user", "content": "hi"}], "temperature": 0}
ANSWER = CachedAnswer(b'{"choices": []}', "brook", "d1")


def key(body=BODY, **options):
    fields = {name: msgspec.Raw(msgspec.json.encode(value)) for name, value in body.items()}
    return cache_key(fields, **({"project_id": "p", "pool_hash": "h"} | options))


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def cache(clock):
    return ResponseCache(ttl=60, max_bytes=80_000, clock=clock)


@pytest.mark.parametrize(
    "change",
    [
        {"metadata": {"team": "a"}},
        {"user": "ana"},
        {"store": True},
        {"stream": False},
    ],
)
def test_what_cannot_change_an_answer_does_not_change_its_key(change):
    assert key(BODY | change) == key()
    assert key(dict(reversed(BODY.items()))) == key()


@pytest.mark.parametrize(
    "change",
    [{"model": "brook"}, {"seed": 1}, {"max_tokens": 5}, {"messages": [{"role": "user", "content": "ho"}]}],
)
def test_what_can_does(change):
    assert key(BODY | change) not in (None, key())


def test_projects_pools_and_restrictions_are_apart():
    keys = {
        key(),
        key(project_id="q"),
        key(pool_hash="i"),
        key(restrictions={"allowed_workers": ["brook"]}),
    }
    assert len(keys) == 4 and None not in keys


@pytest.mark.parametrize(
    "change",
    [
        {"temperature": 0.2},
        {"temperature": None},
        {"temperature": False},
        {"stream": True},
        {"n": 2},
        {"tools": [{"type": "function"}]},
        {"messages": [{"role": "tool", "content": "42", "tool_call_id": "c"}]},
        {"messages": [{"role": "assistant", "tool_calls": [{"id": "c"}]}]},
    ],
)
def test_what_would_not_be_repeated_is_not_cached(change):
    assert key(BODY | change) is None


def test_any_temperature_is_a_choice_of_the_operator():
    assert key(BODY | {"temperature": 0.2}, any_temperature=True)
    assert key(BODY | {"stream": True}, any_temperature=True) is None


def test_an_answer_lives_as_long_as_configured(cache, clock):
    cache.put("k", ANSWER)
    clock.now = 59.9
    assert cache.get("k") is ANSWER
    clock.now = 60.0
    assert cache.get("k") is None
    assert (len(cache), cache.size) == (0, 0)


def test_the_least_recently_used_leave_when_it_is_full(cache):
    for name in range(8):
        cache.put(str(name), CachedAnswer(b"x" * 9_500, "w", "d"))
    assert len(cache) == 8 and cache.size == 80_000
    assert cache.get("0") is not None
    cache.put("new", CachedAnswer(b"x" * 9_500, "w", "d"))
    assert cache.get("1") is None
    assert cache.get("0") is not None and cache.get("new") is not None
    assert cache.size <= 80_000


def test_one_answer_must_not_push_out_the_rest(cache):
    cache.put("k", ANSWER)
    cache.put("large", CachedAnswer(b"x" * 10_000, "w", "d"))
    assert cache.get("large") is None
    assert cache.get("k") is ANSWER
    cache.put("k", CachedAnswer(b"x" * 10_000, "w", "d"))
    assert cache.get("k") is None and cache.size == 0


def test_the_section_is_off_by_default_and_checked():
    worker = '[[workers]]\nname = "a"\ndescription = "d"\nmodel = "m"\nbase_url = "http://127.0.0.1:9/v1"\n'
    cache = load_text(worker).cache
    assert (cache.enabled, cache.ttl, cache.max_bytes, cache.any_temperature) == (False, 3600, 64_000_000, False)
    assert load_text("[cache]\nenabled = true\nttl = 5\n" + worker).cache.ttl == 5
    with pytest.raises(ConfigError, match=r"cache\.max_bytes: "):
        load_text("[cache]\nmax_bytes = 1\n" + worker)
