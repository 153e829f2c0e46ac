"""S1: nothing that a request holds becomes an upstream's address, key or header, at any endpoint that reads a body."""

from __future__ import annotations

import socket

import pytest

CHAT = {"model": "pointsman", "messages": [{"role": "user", "content": "x"}]}
BODIES = {
    "/v1/chat/completions": CHAT,
    "/v1/route": CHAT,
    "/v1/responses": {"model": "pointsman", "input": "x"},
    "/v1/messages": {**CHAT, "max_tokens": 9},
    "/v1/embeddings": {"model": "pointsman", "input": "x"},
}
NAMES = ("api_base", "base_url", "api_key", "extra_headers", "proxies", "azure_ad_token", "aws_region_name")


@pytest.fixture
def canary():
    """A listener that nothing may connect to."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.05)
        yield listener
        with pytest.raises(TimeoutError):
            listener.accept()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("path", BODIES)
def test_every_endpoint_refuses_it(gateway, upstream, canary, path, name):
    url = f"http://127.0.0.1:{canary.getsockname()[1]}/v1"
    for place in ({name: url}, {"metadata": {name: url}}, {"extra_body": {name: url}}):
        answer = gateway.client.post(path, json={**BODIES[path], **place})
        assert answer.status_code == 400, answer.text
        assert name in answer.json()["error"]["message"]
    assert upstream.calls == []


def test_addresses_of_the_metadata_service_are_only_text(gateway, upstream):
    """An image's address goes to the worker as it is: this machine fetches nothing."""
    image = {"type": "image_url", "image_url": {"url": "http://169.254.169.254/latest/meta-data"}}
    answer = gateway.chat([{"type": "text", "text": "see"}, image])
    assert answer.status_code == 200
    assert upstream.calls[0].json["messages"][0]["content"][1] == image
