"""Hostile bodies: an answer or an OpenAI-shaped 4xx, never a 500; what is accepted reads back from Postgres."""

from __future__ import annotations

import json

import pytest

OPEN = b'{"model":"pointsman","messages":[{"role":"user","content":"x"}]'


def with_field(value: bytes) -> bytes:
    return OPEN + b',"extra":' + value + b"}"


def saying(value: bytes) -> bytes:
    return b'{"model":"pointsman","messages":[{"role":"user","content":' + value + b"}]}"


REFUSED = {
    "empty": b"",
    "blank": b"  \n",
    "no json": b"hello",
    "a list": b"[]",
    "a number": b"1",
    "null": b"null",
    "BOM": b"\xef\xbb\xbf" + OPEN + b"}",
    "cut": OPEN,
    "trailing": OPEN + b"} x",
    "not UTF-8": saying(b'"\xff\xfe"'),
    "not UTF-8 in an unknown field": with_field(b'"\xff"'),
    "UTF-16": (OPEN + b"}").decode().encode("utf-16"),
    "lone surrogate": saying(b'"\\ud83d"'),
    "lone low surrogate in an unknown field": with_field(b'"\\udc00"'),
    "NaN": with_field(b"NaN"),
    "Infinity": with_field(b"-Infinity"),
    "raw newline in a text": saying(b'"a\nb"'),
    "raw NUL in a text": saying(b'"a\x00b"'),
    "5,000 deep": with_field(b"[" * 5000 + b"]" * 5000),
    "200,000 deep": with_field(b'{"a":' * 200_000 + b"1" + b"}" * 200_000),
    "200,000 open": OPEN + b',"extra":' + b"[" * 200_000,
    "101 deep content": saying(b"[" * 101 + b"]" * 101),
    "deep under NUL": with_field(b"[" * 600 + b'"\\u0000"' + b"]" * 600),
    "no model": b'{"messages":[{"role":"user","content":"x"}]}',
    "model a number": OPEN.replace(b'"pointsman"', b"7") + b"}",
    "no messages": b'{"model":"pointsman"}',
    "messages empty": b'{"model":"pointsman","messages":[]}',
    "messages a text": b'{"model":"pointsman","messages":"x"}',
    "a message a text": b'{"model":"pointsman","messages":["x"]}',
    "role a number": b'{"model":"pointsman","messages":[{"role":1,"content":"x"}]}',
    "no role": b'{"model":"pointsman","messages":[{"content":"x"}]}',
    "content a number": saying(b"5"),
    "content an object": saying(b"{}"),
    "stream a text": OPEN + b',"stream":"true"}',
    "metadata a list": OPEN + b',"metadata":[]}',
    "hints a number": OPEN + b',"metadata":{"pointsman":3}}',
}
ACCEPTED = {
    "NUL": saying(b'"a\\u0000b"'),
    "NUL as six characters": saying(b'"a\\\\u0000b"'),
    "U+2028": saying(b'"a\xe2\x80\xa8b"'),
    "emoji as a pair": saying(b'"\\ud83d\\ude00"'),
    "emoji": saying(b'"\xf0\x9f\x98\x80"'),
    "NUL in a key": OPEN + b',"ex\\u0000tra":{"a\\u0000":"\\u0000"}}',
    "integer of 4,301 digits": with_field(b"7" * 4301),
    "integer of 100 digits": with_field(b"7" * 100),
    "beyond doubles": with_field(b"1e999"),
    "beyond numeric": with_field(b"1e400000"),
    "100 deep": with_field(b"[" * 98 + b'"\\u0000"' + b"]" * 98),
    "pretty-printed": json.dumps(json.loads(OPEN + b"}"), indent=2).encode(),
    "pretty-printed with CR": json.dumps(json.loads(OPEN + b"}"), indent=2).replace("\n", "\r\n").encode(),
    "duplicate keys": OPEN + b',"model":"alpha"}',
    "1,000 tools": OPEN
    + b',"tools":'
    + json.dumps([{"type": "function", "function": {"name": f"f{n}"}} for n in range(1000)]).encode()
    + b"}",
    "braces": saying(b'"{{7*7}} {0.__class__} %(x)s { ${jndi:x} {% raw %}"'),
    "brackets in a text": saying(json.dumps("[{" * 5000).encode()),
    "quotes and brackets": saying(json.dumps('\\"[' * 500).encode()),
    "n of 8": OPEN + b',"n":8}',
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_an_openai_error(gateway, upstream, name):
    answer = gateway.post(REFUSED[name])
    assert answer.status_code == 400, answer.text
    error = answer.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert error["type"] == "invalid_request_error" and error["message"]
    assert upstream.calls == []
    assert answer.headers["x-pointsman-worker"] == "none"


def test_refused_requests_are_logged_as_rejected(gateway, upstream):
    answers = [gateway.post(REFUSED[name]) for name in ("empty", "NaN", "no model")]
    for answer in answers:
        record = gateway.record(answer)
        assert record["outcome"]["status"] == "rejected"
        assert record["outcome"]["http_status"] == 400
        assert record["decision"]["chosen"] is None
        assert record["request"]["body"] is None


@pytest.mark.parametrize("name", ACCEPTED)
def test_accepted_and_round_trips(gateway, upstream, name):
    body = ACCEPTED[name]
    answer = gateway.post(body)
    assert answer.status_code == 200, answer.text
    assert len(upstream.calls) == 1
    record = gateway.record(answer)
    assert record["outcome"]["status"] == "ok"
    stored = record["request"]["body"]
    sent = json.loads(body, parse_int=str, parse_float=str)
    said = sent["messages"][0]["content"]
    assert stored["messages"][0]["content"] == said.replace("\x00", "\ufffd")
    assert record["request"]["text"] == said.replace("\x00", "\ufffd")
    assert set(stored) == {key.replace("\x00", "\ufffd") for key in sent}


def test_ten_megabytes(make_gateway, upstream):
    gateway = make_gateway(
        "[router]\nchain = ['default']\n",
        '[[workers]]\nname = "wide"\ndescription = "x"\nmodel = "m-wide"\nbase_url = "{url}"\n',
    )
    text = "ab\x00 " * 1_500_000
    answer = gateway.chat(text)
    assert answer.status_code == 200
    assert upstream.calls[0].json["messages"][0]["content"] == text
    record = gateway.record(answer)
    assert len(record["request"]["body"]["messages"][0]["content"]) == len(text)
    gateway.close()


def test_a_body_beyond_the_limit_is_413(gateway, upstream):
    answer = gateway.post(saying(b'"' + b"a" * 20_000_001 + b'"'))
    assert answer.status_code == 413
    assert answer.json()["error"]["code"] == "body_too_large"
    assert gateway.chat().status_code == 200


def test_a_chunked_body_is_read_and_bounded(gateway, upstream):
    def parts(size):
        yield OPEN[:20]
        yield OPEN[20:] + b',"extra":"' + b"a" * size
        yield b'"}'

    headers = {"content-type": "application/json"}
    url = "/v1/chat/completions"
    assert gateway.client.post(url, content=parts(10), headers=headers).status_code == 200
    assert gateway.client.post(url, content=parts(20_000_000), headers=headers).status_code == 413


def test_the_process_goes_on_after_all_of_it(gateway, upstream):
    answer = gateway.chat("still there?")
    assert answer.status_code == 200
    assert gateway.client.get("/healthz").json() == {"status": "ok"}
    assert gateway.state.journal.lost == 0
