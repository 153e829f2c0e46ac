"""Replay workers over HTTP on loopback, asked by the OpenAI SDK and by hand."""

from __future__ import annotations

import socket
import threading
import time
from http.client import HTTPConnection

import msgspec
import openai
import pytest
import uvicorn

from pointsman.config import load_text
from pointsman.replay.answers import RecordedAnswers
from pointsman.replay.configuration import toml_text
from pointsman.replay.workers import app

LONG = "abcdefghij" * 55


@pytest.fixture
def port(make_folder):
    """A server of a small data set, on a free port."""
    queries = [
        {"id": 1, "text": "What is 2 + 2?"},
        {"id": 2, "text": "long"},
        {"id": 3, "text": "What is 2 + 2?"},
    ]
    outcomes = [
        {"query_id": 1, "model": "big", "score": 1, "response": "4", "input_tokens": 6, "output_tokens": 1},
        {"query_id": 1, "model": "big", "score": 0, "response": "5", "input_tokens": 6, "output_tokens": 1},
        {"query_id": 3, "model": "big", "score": 0, "response": "later", "input_tokens": 6, "output_tokens": 1},
        {"query_id": 2, "model": "big", "score": 1, "response": LONG},
        {"query_id": 3, "model": "small", "score": 0.5},
    ]
    folder = make_folder(queries, outcomes, form="jsonl")
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app(RecordedAnswers(folder)), log_level="error"))
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield listener.getsockname()[1]
    server.should_exit = True
    thread.join()
    listener.close()


@pytest.fixture
def client(port):
    with openai.OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="none", max_retries=0) as made:
        yield made


def ask(client, text, model="big", **options):
    return client.chat.completions.create(model=model, messages=[{"role": "user", "content": text}], **options)


def test_the_recorded_answer_comes_with_its_tokens(client):
    answer = ask(client, "What is 2 + 2?")
    assert answer.choices[0].message.content == "4"
    assert answer.choices[0].finish_reason == "stop"
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens, answer.usage.total_tokens) == (6, 1, 7)
    assert answer.id == ask(client, "What is 2 + 2?").id


def test_the_seed_chooses_the_repeat(client):
    answers = [ask(client, "What is 2 + 2?", seed=seed).choices[0].message.content for seed in (0, 1, 2)]
    assert answers == ["4", "5", "4"]


def test_without_response_text_the_answer_says_so(client):
    answer = ask(client, "What is 2 + 2?", model="small")
    assert answer.choices[0].message.content == "[recorded score 0.5; the data set has no response text]"
    assert answer.usage is None


def test_the_last_user_message_is_the_query(client):
    messages = [
        {"role": "user", "content": "something else"},
        {"role": "assistant", "content": "hm"},
        {"role": "user", "content": [{"type": "text", "text": "What is "}, {"type": "text", "text": "2 + 2?"}]},
        {"role": "assistant", "content": "a prefill"},
    ]
    answer = client.chat.completions.create(model="big", messages=messages)
    assert answer.choices[0].message.content == "4"


def test_a_stream_holds_the_same_text(client):
    chunks = list(ask(client, "long", stream=True))
    assert "".join(c.choices[0].delta.content or "" for c in chunks) == LONG
    assert len(chunks) == 1 + 3 + 1
    assert chunks[-1].choices[0].finish_reason == "stop"


def test_a_stream_gives_usage_where_it_is_asked_for(client):
    options = {"stream": True, "stream_options": {"include_usage": True}}
    *_, last = ask(client, "What is 2 + 2?", **options)
    assert (last.choices, last.usage.total_tokens) == ([], 7)
    assert all(chunk.usage is None for chunk in ask(client, "long", **options))  # no tokens recorded


def test_other_texts_and_models_are_not_found(client):
    with pytest.raises(openai.NotFoundError) as caught:
        ask(client, "What is 2 + 3?")
    assert caught.value.body == {
        "message": "not a recorded query of big",
        "type": "invalid_request_error",
        "code": "not_recorded",
        "param": "messages",
    }
    with pytest.raises(openai.NotFoundError, match="no recorded model 'huge'"):
        ask(client, "What is 2 + 2?", model="huge")
    with pytest.raises(openai.NotFoundError, match="not a recorded query of small"):
        ask(client, "long", model="small")


def test_the_models_are_listed(client):
    assert [model.id for model in client.models.list()] == ["big", "small"]


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "message"),
    [
        ("POST", "/v1/chat/completions", b"{", 400, "not a chat completion request: "),
        ("POST", "/v1/chat/completions", b'{"model": "big"}', 400, "not a chat completion request: "),
        ("POST", "/v1/chat/completions", b"[" * 100_000, 400, "not a chat completion request: "),
        ("POST", "/v1/chat/completions", b'{"model": "big", "messages": []}', 400, "messages: expected a user"),
        ("POST", "/v1/chat/completions", b"\xff\xfe", 400, "not a chat completion request: "),
        ("GET", "/v1/chat/completions", None, 404, "no such endpoint: GET /v1/chat/completions"),
        ("POST", "/v1/embeddings", b"{}", 404, "no such endpoint: POST /v1/embeddings"),
    ],
)
def test_faults_have_openai_s_shape(port, method, path, body, status, message):
    connection = HTTPConnection("127.0.0.1", port, timeout=5)
    connection.request(method, path, body)
    reply = connection.getresponse()
    error = msgspec.json.decode(reply.read())["error"]
    connection.close()
    assert reply.status == status
    assert error["message"].startswith(message)
    assert set(error) == {"message", "type", "code", "param"}


def test_the_configuration_reads_back_as_the_recorded_pool(make_folder, models):
    models["big"]["description"] = 'Says "hello" \\ and\nmore ☃ \x7f'
    models["big"]["cached_input_price"] = 0.00001
    models["big"]["context_window"] = 8192
    config = load_text(toml_text(make_folder(models=models), 8795, dataset="small-set"))
    big, small = config.workers
    assert config.router.chain == ["rule", "default"]
    assert config.router.default == "big"
    assert (big.name, big.model, big.base_url) == ("big", "big", "http://127.0.0.1:8795/v1")
    assert big.description == models["big"]["description"]
    assert [str(p) for p in (big.price.input, big.price.output, big.price.cached_input)] == [
        "2.5", "10", "0.00001",
    ]  # fmt: skip
    assert big.context_window == 8192
    assert (small.name, small.price) == ("small", None)
    assert small.description == "small: a model whose answers are recorded in the data set small-set."
