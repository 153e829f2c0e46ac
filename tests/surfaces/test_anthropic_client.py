"""Anthropic's own Python client against the translators, behind a small server on loopback.

The server is the surface over an Anthropic-native worker whose replies are canned: it asserts that the
worker's request is one that Anthropic's types describe, and answers by what the request asks.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import anthropic
import pytest
from anthropic.types import MessageParam, ThinkingBlock, ToolParam, ToolUseBlock
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming
from pydantic import TypeAdapter

from harness.gateway.request import parse_chat
from harness.gateway.surfaces.anthropic import count_tokens_reply, to_chat
from harness.gateway.surfaces.anthropic_errors import error_body
from harness.gateway.surfaces.anthropic_reply import from_chat
from harness.gateway.surfaces.anthropic_stream import PING, AnthropicStream
from pointsman.errors import RequestError
from pointsman.upstream.anthropic import request_of
from pointsman.upstream.anthropic_reply import reply_to_chat
from pointsman.upstream.anthropic_stream import StreamToChat
from tests.support.anthropic_traffic import message, stream_of

WEATHER: ToolParam = {
    "name": "get_weather",
    "description": "The weather of a city.",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
QUESTION: MessageParam = {"role": "user", "content": "What is the weather in Oslo?"}
THOUGHT = {"type": "thinking", "thinking": "I must look.", "signature": "c2ln"}
CALL = {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {"city": "Oslo"}}
_params = TypeAdapter(MessageCreateParamsNonStreaming)


def worker(request: dict[str, Any]) -> dict[str, Any]:
    """What the canned worker answers: a call where it has tools, and the result's text where that has come."""
    _params.validate_python({name: value for name, value in request.items() if name != "stream"})
    last = request["messages"][-1]["content"]
    if last[0]["type"] == "tool_result":
        assert request["messages"][-2]["content"] == [THOUGHT, CALL], "the worker's own blocks, signature and all"
        return message([{"type": "text", "text": f"It is {last[0]['content'][0]['text']}."}])
    if request.get("tools"):
        return message([THOUGHT, CALL], "tool_use")
    return message([{"type": "text", "text": f"You said: {last[-1].get('text', 'nothing')}"}])


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        try:
            if self.path.startswith("/v1/messages/count_tokens"):
                self.reply(200, count_tokens_reply(body))
            elif self.path.split("?")[0] == "/v1/messages":
                self.messages(body)
            else:
                raise RequestError("no such path", status=404)
        except RequestError as error:
            self.reply(error.status, error_body(error))

    def messages(self, body: bytes) -> None:
        chat = to_chat(body, [(name.lower().encode(), value.encode()) for name, value in self.headers.items()])
        fields = parse_chat(chat.body, []).fields
        answer = worker(json.loads(request_of(fields, "claude-x", 4096, origin="opus")))
        if not chat.context.stream:
            self.reply(200, from_chat(reply_to_chat(json.dumps(answer).encode(), origin="opus"), chat.context))
            return
        inward, outward, events = StreamToChat(origin="opus"), AnthropicStream(chat.context), PING
        for data in stream_of(answer, 4):
            for chunk in inward.feed(data):
                if chunk == b"[DONE]":
                    events += outward.finish()
                elif b"break now" in body and b"content" in chunk and b"You" in chunk:
                    events += outward.feed(chunk) + outward.fail(RequestError("the worker is gone", status=529))
                else:
                    events += outward.feed(chunk)
        self.reply(200, events, "text/event-stream; charset=utf-8")

    def reply(self, status: int, body: bytes, kind: str = "application/json") -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing on the test's output."""


@pytest.fixture(scope="module")
def client() -> Iterator[anthropic.Anthropic]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    url = f"http://127.0.0.1:{server.server_address[1]}"
    with anthropic.Anthropic(base_url=url, api_key="test", max_retries=0) as made:
        yield made
    server.shutdown()
    server.server_close()
    thread.join()


def test_create(client: anthropic.Anthropic) -> None:
    made = client.messages.create(
        model="pointsman", max_tokens=64, messages=[{"role": "user", "content": "hello"}], system="Be brief."
    )
    assert made.id == "msg_01XYZ" and made.stop_reason == "end_turn"
    assert made.content[0].type == "text" and made.content[0].text == "You said: hello"
    assert (made.usage.input_tokens, made.usage.output_tokens) == (11, 47)
    assert (made.usage.cache_read_input_tokens, made.usage.cache_creation_input_tokens) == (3000, 200)


def test_a_tool_loop_with_signed_thinking(client: anthropic.Anthropic) -> None:
    settings: dict[str, Any] = {
        "model": "pointsman",
        "max_tokens": 4096,
        "tools": [WEATHER],
        "thinking": {"type": "enabled", "budget_tokens": 1024},
    }
    first = client.messages.create(messages=[QUESTION], **settings)
    thought, call = first.content
    assert isinstance(thought, ThinkingBlock) and thought.signature and thought.signature != "c2ln"
    assert isinstance(call, ToolUseBlock) and call.input == {"city": "Oslo"} and first.stop_reason == "tool_use"
    second = client.messages.create(
        messages=[QUESTION, {"role": "assistant", "content": first.content}, result(call)], **settings
    )
    assert second.content[0].type == "text" and second.content[0].text == "It is 7 °C."


def test_a_streamed_tool_loop(client: anthropic.Anthropic) -> None:
    with client.messages.stream(model="pointsman", max_tokens=64, messages=[QUESTION], tools=[WEATHER]) as stream:
        kinds = [event.type for event in stream]
        first = stream.get_final_message()
    assert kinds[0] == "message_start" and kinds[-1] == "message_stop"
    assert kinds.count("content_block_start") == kinds.count("content_block_stop") == 2
    call = first.content[1]
    assert isinstance(call, ToolUseBlock) and call.input == {"city": "Oslo"} and first.stop_reason == "tool_use"
    assert (first.usage.input_tokens, first.usage.output_tokens, first.usage.cache_read_input_tokens) == (11, 47, 3000)
    turns: list[MessageParam] = [QUESTION, {"role": "assistant", "content": first.content}, result(call)]
    with client.messages.stream(model="pointsman", max_tokens=64, messages=turns, tools=[WEATHER]) as stream:
        assert "".join(stream.text_stream) == "It is 7 °C."


def test_beta_calls_as_claude_code_makes_them(client: anthropic.Anthropic) -> None:
    made = client.beta.messages.create(
        model="pointsman",
        max_tokens=64,
        betas=["interleaved-thinking-2025-05-14"],
        messages=[
            {"role": "user", "content": [{"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}]}
        ],
        metadata={"user_id": "u"},
    )
    assert made.content[0].type == "text" and made.content[0].text == "You said: hi"


def test_count_tokens(client: anthropic.Anthropic) -> None:
    counted = client.messages.count_tokens(model="pointsman", messages=[QUESTION], tools=[WEATHER])
    assert 30 < counted.input_tokens < 100


def test_errors_are_the_clients_own(client: anthropic.Anthropic) -> None:
    with pytest.raises(anthropic.BadRequestError, match=r"tools\[0\]\.type"):
        client.messages.create(
            model="pointsman",
            max_tokens=64,
            messages=[QUESTION],
            tools=[{"type": "web_search_20250305", "name": "web_search"}],
        )


def test_an_error_in_the_middle_of_a_stream_is_raised(client: anthropic.Anthropic) -> None:
    turns: list[MessageParam] = [{"role": "user", "content": "break now"}]
    with (
        pytest.raises(anthropic.APIStatusError, match="the worker is gone"),
        client.messages.stream(model="pointsman", max_tokens=64, messages=turns) as stream,
    ):
        stream.until_done()


def result(call: ToolUseBlock) -> MessageParam:
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": "7 °C"}]}
