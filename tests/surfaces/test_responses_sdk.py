"""OpenAI's own SDK against the Responses surface, over loopback: canned chat replies behind a tiny server."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import openai
import pytest
from pydantic import BaseModel

from harness.gateway.responses import error_body
from harness.gateway.surfaces.responses import ResponsesStream, from_chat, to_chat
from pointsman.errors import RequestError

DECISION = "0199a3c4-5e6f-7a8b-9c0d-1e2f3a4b5c6d"
Canned = dict[str, Any] | list[dict[str, Any] | bytes]
Model = Callable[[dict[str, Any]], Canned]


class Loopback(ThreadingHTTPServer):
    """Answers `/v1/responses` by what `model` makes of the chat request; a list is a stream's chunks."""

    daemon_threads = True
    model: Model
    asked: list[dict[str, Any]]


class Handler(BaseHTTPRequestHandler):
    server: Loopback

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        assert self.path == "/v1/responses"
        try:
            chat = to_chat(body)
        except RequestError as error:
            self._send(error.status, "application/json", error_body(error))
            return
        asked = json.loads(chat.body)
        self.server.asked.append(asked)
        canned = self.server.model(asked)
        naming: dict[str, Any] = {"identity": DECISION, "created_at": 1_760_000_000.5, "clock": lambda: 1_760_000_003.0}
        if isinstance(canned, dict):
            self._send(200, "application/json", from_chat(canned, chat.context, **naming))
            return
        stream = ResponsesStream(chat.context, **naming)
        events = [stream.feed(chunk if isinstance(chunk, bytes) else json.dumps(chunk).encode()) for chunk in canned]
        self._send(200, "text/event-stream", b"".join(events) + stream.close())

    def _send(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing to the test's output."""


@pytest.fixture
def loopback() -> Iterator[Loopback]:
    server = Loopback(("127.0.0.1", 0), Handler)
    server.asked = []
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def client(loopback: Loopback) -> Iterator[openai.OpenAI]:
    url = f"http://127.0.0.1:{loopback.server_address[1]}/v1"
    with openai.OpenAI(base_url=url, api_key="none", max_retries=0) as made:
        yield made


def completion(**message: Any) -> dict[str, Any]:
    finish = message.pop("finish", "stop")
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "model": "small-1",
        "choices": [{"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}],
        "usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18},
    }


def chunk(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"id": "c", "model": "small-1", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def call_delta(index: int, identity: str | None = None, name: str | None = None, arguments: str = "") -> dict[str, Any]:
    return {"index": index, "id": identity, "function": {"name": name, "arguments": arguments}}


WEATHER: Any = {
    "type": "function",
    "name": "weather",
    "description": "The weather of a city",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    "strict": True,
}


def test_a_text_is_answered(loopback: Loopback, client: openai.OpenAI) -> None:
    loopback.model = lambda asked: completion(content="Bonjour.")
    response = client.responses.create(model="pointsman", instructions="Be brief.", input="Say hello in French")
    assert response.output_text == "Bonjour."
    assert response.status == "completed"
    assert response.usage is not None
    assert (response.usage.input_tokens, response.usage.output_tokens, response.usage.total_tokens) == (11, 7, 18)
    assert loopback.asked[0]["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Say hello in French"},
    ]


def weather_model(asked: dict[str, Any]) -> dict[str, Any]:
    """Asks for two cities, then says what it was told."""
    results = [message["content"] for message in asked["messages"] if message["role"] == "tool"]
    if results:
        return completion(content=" and ".join(results))
    calls = [
        {"id": f"call_{city}", "type": "function", "function": {"name": "weather", "arguments": f'{{"city":"{city}"}}'}}
        for city in ("Paris", "Oslo")
    ]
    return completion(content=None, tool_calls=calls, finish="tool_calls")


def weather_chunks(asked: dict[str, Any]) -> list[dict[str, Any] | bytes]:
    """The same, as a stream whose parallel calls interleave and whose names come in pieces."""
    reply = weather_model(asked)["choices"][0]["message"]
    if reply["content"]:
        middle = [chunk(content=piece) for piece in reply["content"].partition(" and ")]
        return [chunk(role="assistant", content=""), *middle, chunk("stop"), b"[DONE]"]
    return [
        chunk(role="assistant", content=None),
        chunk(tool_calls=[call_delta(0, "call_Paris", "wea")]),
        chunk(tool_calls=[call_delta(0, None, "ther")]),
        chunk(tool_calls=[call_delta(0, None, None, '{"city":')]),
        chunk(tool_calls=[call_delta(1, "call_Oslo", "weather")]),
        chunk(tool_calls=[call_delta(1, None, None, '{"city":"Oslo"}')]),
        chunk(tool_calls=[call_delta(0, None, None, '"Paris"}')]),
        chunk("tool_calls"),
        b"[DONE]",
    ]


@pytest.mark.parametrize("stream", [False, True])
def test_a_tool_loop_of_two_turns(loopback: Loopback, client: openai.OpenAI, stream: bool) -> None:
    loopback.model = weather_chunks if stream else weather_model
    turns: list[Any] = [{"role": "user", "content": "Weather in Paris and Oslo?"}]

    def turn() -> Any:
        if not stream:
            return client.responses.create(model="pointsman", input=turns, tools=[WEATHER], store=False)
        with client.responses.stream(model="pointsman", input=turns, tools=[WEATHER], store=False) as events:
            return events.get_final_response()

    first = turn()
    calls = [item for item in first.output if item.type == "function_call"]
    assert [(call.name, json.loads(call.arguments)["city"]) for call in calls] == [
        ("weather", "Paris"),
        ("weather", "Oslo"),
    ]
    turns += [item.model_dump(exclude_none=True, exclude={"parsed_arguments"}) for item in first.output]
    turns += [
        {"type": "function_call_output", "call_id": call.call_id, "output": f"{call.call_id} is dry"} for call in calls
    ]
    assert turn().output_text == "call_Paris is dry and call_Oslo is dry"
    roles = [message["role"] for message in loopback.asked[1]["messages"]]
    assert roles == ["user", "assistant", "tool", "tool"]


def test_the_stream_helper_sees_every_kind_of_event(loopback: Loopback, client: openai.OpenAI) -> None:
    loopback.model = lambda asked: [
        chunk(reasoning_content="Think"),
        chunk(reasoning_content="ing."),
        chunk(content="Hel"),
        chunk(content="lo"),
        chunk(tool_calls=[call_delta(0, "call_1", "weather", '{"city":"Oslo"}')]),
        chunk("tool_calls"),
        {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}},
        b"[DONE]",
    ]
    with client.responses.stream(model="pointsman", input="hi", tools=[WEATHER]) as stream:
        kinds, texts, arguments = [], [], ""
        for event in stream:
            kinds.append(event.type)
            if event.type == "response.output_text.delta":
                texts.append(event.snapshot)
            if event.type == "response.function_call_arguments.delta":
                arguments = event.snapshot
        final = stream.get_final_response()
    assert texts == ["Hel", "Hello"]
    assert arguments == '{"city":"Oslo"}'
    assert kinds[:2] == ["response.created", "response.in_progress"]
    assert kinds[-1] == "response.completed"
    assert [item.type for item in final.output] == ["reasoning", "message", "function_call"]
    assert final.usage is not None and final.usage.total_tokens == 7


class Person(BaseModel):
    name: str
    age: int


def test_structured_output_is_parsed(loopback: Loopback, client: openai.OpenAI) -> None:
    loopback.model = lambda asked: completion(content='{"name":"Ada","age":36}')
    parsed = client.responses.parse(model="pointsman", input="Who?", text_format=Person)
    assert parsed.output_parsed == Person(name="Ada", age=36)
    form = loopback.asked[0]["response_format"]
    assert form["type"] == "json_schema"
    assert form["json_schema"]["name"] == "Person"
    assert form["json_schema"]["strict"] is True
    assert set(form["json_schema"]["schema"]["properties"]) == {"name", "age"}


def test_an_answer_cut_by_its_limit_is_incomplete(loopback: Loopback, client: openai.OpenAI) -> None:
    loopback.model = lambda asked: completion(content="To be or", finish="length")
    response = client.responses.create(model="pointsman", input="Hamlet", max_output_tokens=16)
    assert response.status == "incomplete"
    assert response.incomplete_details is not None
    assert response.incomplete_details.reason == "max_output_tokens"
    assert loopback.asked[0]["max_completion_tokens"] == 16


def test_an_error_in_the_middle_raises(loopback: Loopback, client: openai.OpenAI) -> None:
    loopback.model = lambda asked: [
        chunk(content="Half an ans"),
        {"error": {"message": "the worker did not answer", "type": "upstream_error", "code": "truncated"}},
    ]
    texts = []
    with pytest.raises(openai.APIError, match="the worker did not answer") as raised:
        for event in client.responses.create(model="pointsman", input="hi", stream=True):
            if event.type == "response.output_text.delta":
                texts.append(event.delta)
    assert texts == ["Half an ans"]
    assert raised.value.code == "truncated"


def test_a_refusal_is_a_bad_request(loopback: Loopback, client: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as raised:
        client.responses.create(model="pointsman", input="hi", previous_response_id="resp_1")
    assert raised.value.param == "previous_response_id"
    assert raised.value.code == "unsupported_parameter"
    assert "give the previous turns inline" in raised.value.message
    assert loopback.asked == []
