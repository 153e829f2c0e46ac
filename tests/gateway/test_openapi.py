"""The OpenAPI document is what is served: every route, docs/openapi.json the same, and schemathesis finds nothing.

The run is bounded and the same each time: few examples an operation, from no random seed.
"""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from harness.gateway import openapi_models as models
from harness.gateway.management import Management
from harness.gateway.openapi import OPERATIONS, Operation, document
from harness.gateway.surfaces.served import SURFACES

ROOT = Path(__file__).parents[2]
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    response_headers_conformance,
    negative_data_rejection,
]
EXAMPLES = settings(
    max_examples=10, derandomize=True, database=None, deadline=None, print_blob=False,
    phases=[Phase.explicit, Phase.generate], suppress_health_check=list(HealthCheck),
)  # fmt: skip


def named(operation: Operation) -> str:
    return f"{operation.method} {operation.path}"


@pytest.fixture(scope="module")
def gateway(make_gateway, shared_upstream):
    """With a worker for every route."""
    embedder = '[[workers]]\nname = "embedder"\ndescription = "E"\nmodel = "m-e"\ncapabilities = ["embeddings"]\n'
    return make_gateway(more=f'{embedder}base_url = "{shared_upstream.url}"\n')


@pytest.fixture(scope="module")
def fuzz(gateway):
    """Sends examples of an operation, of its schema or against it, and checks every answer against the document."""
    schema = schemathesis.openapi.from_dict(gateway.client.get("/openapi.json").json())
    headers = {"authorization": f"Bearer {gateway.key(project='fuzzed', scopes=('admin',))}"}

    def send(operation: Operation, mode: GenerationMode) -> list[int]:
        statuses: list[int] = []
        strategy = schema[operation.path][operation.method.upper()].as_strategy(generation_mode=mode)
        with requests.Session() as session:

            @EXAMPLES
            @given(case=strategy)
            def run(case):
                # Every second request names a model that is there, so that a worker answers it.
                if mode is GenerationMode.POSITIVE and operation.asks and len(statuses) % 2 == 0:
                    case.body["model"] = "pointsman"
                answer = case.call_and_validate(
                    base_url=gateway.url, session=session, headers=headers, checks=CHECKS, timeout=10
                )
                statuses.append(answer.status_code)

            run()
        return statuses

    return send


@pytest.mark.parametrize("operation", OPERATIONS, ids=named)
def test_what_fits_the_schema(fuzz, operation):
    statuses = fuzz(operation, GenerationMode.POSITIVE)
    assert statuses and max(statuses) < 500
    assert 200 in statuses or not operation.asks


@pytest.mark.parametrize("operation", [each for each in OPERATIONS if each.body is not None], ids=named)
def test_what_does_not_fit_is_refused(fuzz, operation):
    statuses = fuzz(operation, GenerationMode.NEGATIVE)
    assert statuses and max(statuses) < 500 and any(400 <= status < 500 for status in statuses)


def test_every_route_is_in_the_document(gateway):
    served = {
        (method.lower(), route.path.replace(":path", ""))
        for route in Management(gateway.state).app.routes
        for method in route.methods - {"HEAD"}
    }
    assert served == {(operation.method, operation.path) for operation in OPERATIONS}
    assert set(SURFACES) == {operation.path for operation in OPERATIONS if operation.asks}


def test_the_page_in_docs_is_made_from_the_code():
    assert json.loads((ROOT / "docs" / "openapi.json").read_text()) == document(), "run: make docs"


def test_what_is_served_is_the_document(gateway):
    answer = gateway.client.get("/openapi.json")
    assert answer.headers["content-type"] == "application/json" and answer.json() == document()
    assert answer.json()["openapi"] == "3.1.0"


def test_who_needs_a_key_is_said():
    paths = document()["paths"]
    assert {} in paths["/v1/chat/completions"]["post"]["security"]  # on loopback
    assert paths["/v1/reload"]["post"]["security"] == [{"bearer": []}, {"key": []}]
    assert [path for path, item in paths.items() if "security" not in next(iter(item.values()))] == [
        "/healthz",
        "/readyz",
    ]


ANSWERS = [
    ("/v1/chat/completions", {"model": "pointsman", "messages": [{"role": "user", "content": "x"}]}),
    ("/v1/responses", {"model": "pointsman", "input": "x"}),
    ("/v1/messages", {"model": "pointsman", "messages": [{"role": "user", "content": "x"}], "max_tokens": 9}),
    ("/v1/messages/count_tokens", {"messages": [{"role": "user", "content": "x"}]}),
    ("/v1/embeddings", {"model": "pointsman", "input": ["x", "y"]}),
    ("/v1/route", {"model": "pointsman", "messages": [{"role": "user", "content": "x"}]}),
]


@pytest.mark.parametrize(("path", "body"), ANSWERS, ids=[path for path, _ in ANSWERS])
def test_requests_and_answers_are_those_of_the_models(gateway, path, body):
    (operation,) = [each for each in OPERATIONS if (each.method, each.path) == ("post", path)]
    msgspec.convert(body, operation.body)
    answer = gateway.client.post(path, json=body)
    assert answer.status_code == 200, answer.text
    msgspec.json.decode(answer.content, type=operation.replies[200])
    if operation.streams:
        streamed = gateway.client.post(path, json={**body, "stream": True})
        media = streamed.headers["content-type"].partition(";")[0]
        assert media in document()["paths"][path]["post"]["responses"]["200"]["content"]


def test_records_and_errors_are_those_of_the_models(gateway):
    identity = gateway.chat("x").headers["x-pointsman-decision-id"]
    record = msgspec.json.decode(gateway.client.get(f"/v1/decisions/{identity}").content, type=models.DecisionRecord)
    assert record.decision["id"] == identity
    listed = msgspec.json.decode(gateway.client.get("/v1/models").content, type=models.ModelList)
    assert "embedder" in [entry.id for entry in listed.data if entry.pointsman["kind"] == "worker"]
    refused = msgspec.json.decode(gateway.chat("x", model="nobody").content, type=models.Error)
    assert refused.error.code == "model_not_found"
    answer = gateway.client.post("/v1/messages", json={"model": "pointsman"})
    assert msgspec.json.decode(answer.content, type=models.MessagesError).error.type == "invalid_request_error"
    comment = {"decision_id": identity, "comment": "fine"}
    taken = gateway.client.post("/v1/feedback", json=comment)
    assert msgspec.json.decode(taken.content, type=models.FeedbackTaken).joined is True
