"""`Idempotency-Key` at the gateway: one run, one answer, for 24 hours, within a project."""

from __future__ import annotations

import threading
import time
from uuid import uuid4

import pytest


def named() -> dict[str, str]:
    return {"idempotency-key": str(uuid4())}


def test_a_repeat_gets_the_stored_answer_and_calls_nobody(gateway, upstream, fake) -> None:
    upstream.script("m-alpha", fake.text("first"), fake.text("second"))
    headers = named()
    first, repeat = gateway.chat(headers=headers), gateway.chat(headers=headers)
    assert first.status_code == repeat.status_code == 200
    assert repeat.content == first.content
    assert repeat.headers["x-pointsman-decision-id"] == first.headers["x-pointsman-decision-id"]
    assert repeat.headers["x-pointsman-replayed"] == "true"
    assert "x-pointsman-replayed" not in first.headers
    assert len(upstream.calls) == 1


def test_a_stream_is_replayed_whole(gateway, upstream, fake) -> None:
    headers = named()
    body = {"stream": True}
    first = gateway.chat(headers=headers, **body)
    repeat = gateway.chat(headers=headers, **body)
    assert repeat.content == first.content
    assert repeat.headers["content-type"] == first.headers["content-type"]
    assert first.content.endswith(b"data: [DONE]\n\n")
    assert len(upstream.calls) == 1


def test_a_repeat_while_the_first_runs_is_told_to_come_back(gateway, upstream, fake) -> None:
    upstream.script("m-alpha", fake.reply(fake.completion("late"), after=0.8))
    headers = named()
    answers = []
    thread = threading.Thread(target=lambda: answers.append(gateway.chat(headers=headers)))
    thread.start()
    until = time.monotonic() + 3
    while not upstream.calls and time.monotonic() < until:
        time.sleep(0.01)
    repeat = gateway.chat(headers=headers)
    thread.join()
    assert repeat.status_code == 409
    assert repeat.json()["error"]["code"] == "request_in_progress"
    assert repeat.headers["retry-after"] == "1"


def test_another_body_under_the_same_key_is_refused(gateway, upstream) -> None:
    headers = named()
    assert gateway.chat("one", headers=headers).status_code == 200
    other = gateway.chat("two", headers=headers)
    assert other.status_code == 422
    assert other.json()["error"]["code"] == "idempotency_key_reused"
    assert len(upstream.calls) == 1


def test_a_failure_frees_the_key(gateway, upstream, fake) -> None:
    broken = fake.reply(b"{}", 500)
    upstream.script("m-alpha", broken, fake.text("now"))
    headers = named()
    metadata = {"metadata": {"pointsman": {"disable_fallbacks": True}}}
    failed = gateway.chat(headers=headers, **metadata)
    again = gateway.chat(headers=headers, **metadata)
    assert (failed.status_code, again.status_code) == (502, 200)
    assert "x-pointsman-replayed" not in again.headers


def test_a_refusal_that_would_come_again_is_kept(gateway, upstream) -> None:
    headers = named()
    first = gateway.chat(headers=headers, model="no-such-model")
    again = gateway.chat(headers=headers, model="no-such-model")
    assert first.status_code == again.status_code == 404
    assert again.headers["x-pointsman-replayed"] == "true"
    assert again.json() == first.json()


def test_text_that_may_not_be_stored_is_not_kept_for_a_repeat(gateway, upstream) -> None:
    headers = named()
    assert gateway.chat(headers=headers, store=False).status_code == 200
    again = gateway.chat(headers=headers, store=False)
    assert again.status_code == 409
    assert again.json()["error"]["code"] == "answer_not_kept"


def test_a_key_is_its_projects_own(gateway, upstream) -> None:
    headers = named()
    assert gateway.chat(headers=headers).status_code == 200
    other = gateway.key(project="another")
    answer = gateway.chat(headers={**headers, "authorization": f"Bearer {other}"})
    assert answer.status_code == 200
    assert "x-pointsman-replayed" not in answer.headers


@pytest.mark.parametrize("key", ["", "x" * 256])
def test_a_key_of_no_use_is_refused(gateway, upstream, key) -> None:
    answer = gateway.chat(headers={"idempotency-key": key})
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == "bad_idempotency_key"
    assert upstream.calls == []
