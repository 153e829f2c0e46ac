"""What goes in and out over HTTP, as types: the OpenAPI document is made from them, and tests read answers by them.

The hot route does not: it keeps a request's bytes and looks only at what routing needs. So these say what is
checked of a request and no more; every other field is allowed, and reaches the worker as it came. Of a worker's
answer they say what the gateway itself relies on.
"""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

Text = Annotated[str, Meta(min_length=1)]
Count = Annotated[int, Meta(ge=0)]
MODEL = "`pointsman` (a worker is chosen), `pointsman@<version>` (by that router), or a worker's name"
Model = Annotated[str, Meta(min_length=1, description=MODEL, examples=["pointsman"])]


class Message(Struct, frozen=True):
    """One message of a conversation; a role that a worker does not know is the worker's to refuse."""

    role: str
    content: str | list[Any] | None = None


class StreamOptions(Struct, frozen=True):
    include_usage: bool | None = None


class ChatCompletionRequest(Struct, frozen=True):
    """The body of `/v1/chat/completions` and of `/v1/route`. Fields that are not here reach the worker untouched."""

    model: Model
    messages: Annotated[list[Message], Meta(min_length=1)]
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    store: bool | None = None
    metadata: Annotated[dict[str, Any] | None, Meta(description="`pointsman` in it holds hints")] = None


class Choice(Struct, frozen=True):
    message: dict[str, Any]
    index: int = 0
    finish_reason: str | None = None


class ChatCompletion(Struct, frozen=True):
    """A worker's answer as it came."""

    choices: Annotated[list[Choice], Meta(min_length=1)]
    id: str | UnsetType = UNSET
    model: str | UnsetType = UNSET
    usage: dict[str, Any] | None = None


class ResponsesRequest(Struct, frozen=True):
    """The body of `/v1/responses`: the previous turns stand in `input`."""

    model: Model
    input: Annotated[str, Meta(min_length=1)] | Annotated[list[dict[str, Any]], Meta(min_length=1)]
    instructions: str | None = None
    stream: bool | None = None
    store: bool | None = None
    metadata: dict[str, Any] | None = None


class ResponseObject(Struct, frozen=True):
    id: str
    object: str
    status: str
    model: str
    output: list[dict[str, Any]]
    created_at: int
    usage: dict[str, Any] | None = None
    error: dict[str, Any] | None = None


class TextMessage(Struct, frozen=True):
    role: Annotated[str, Meta(pattern="^(user|assistant)$")]
    content: Annotated[str, Meta(min_length=1)] | Annotated[list[dict[str, Any]], Meta(min_length=1)]


class CountTokensRequest(Struct, frozen=True):
    """The body of `/v1/messages/count_tokens`."""

    messages: Annotated[list[TextMessage], Meta(min_length=1)]
    model: str | None = None
    system: str | list[dict[str, Any]] | None = None
    tools: list[dict[str, Any]] | None = None


class MessagesRequest(Struct, frozen=True):
    """The body of `/v1/messages`."""

    model: Model
    max_tokens: Annotated[int, Meta(ge=1)]
    messages: Annotated[list[TextMessage], Meta(min_length=1)]
    system: str | list[dict[str, Any]] | None = None
    stream: bool | None = None
    temperature: Annotated[float, Meta(ge=0, le=1)] | None = None
    stop_sequences: list[str] | None = None
    tools: list[dict[str, Any]] | None = None
    metadata: dict[str, Any] | None = None


class MessageReply(Struct, frozen=True):
    id: str
    type: str
    role: str
    model: str
    content: list[dict[str, Any]]
    usage: dict[str, Any]
    stop_reason: str | None = None
    stop_sequence: str | None = None


class TokenCount(Struct, frozen=True):
    input_tokens: Count


class EmbeddingsRequest(Struct, frozen=True):
    """The body of `/v1/embeddings`: a text, texts, a text's tokens, or lists of tokens."""

    model: Model
    input: (
        Annotated[str, Meta(min_length=1)]
        | Annotated[
            list[Annotated[str, Meta(min_length=1)] | Count | Annotated[list[Count], Meta(min_length=1)]],
            Meta(min_length=1),
        ]
    )
    metadata: dict[str, Any] | None = None


class EmbeddingList(Struct, frozen=True):
    data: list[dict[str, Any]]
    usage: dict[str, Any] | None = None


class ModelEntry(Struct, frozen=True):
    id: str
    object: str
    created: int
    owned_by: str
    pointsman: dict[str, Any]


class ModelList(Struct, frozen=True):
    object: str
    data: list[ModelEntry]


class Foretold(Struct, frozen=True):
    """A decision alone. `expected` has cost and latency by worker; `eligible` why a worker is not offered, or null."""

    dry_run: bool
    decision_id: str
    episode_id: str
    worker: str
    pattern: str
    router: str
    propensity: Annotated[float, Meta(gt=0, le=1)]
    probabilities: dict[str, float]
    eligible: dict[str, str | None]
    expected: dict[str, dict[str, Any]]
    explored: bool
    pool_hash: str
    scores: dict[str, float] | None = None
    forced: str | None = None
    parse_status: str | None = None
    fail_open: list[str] | None = None


class FeedbackTaken(Struct, frozen=True):
    """`joined`: the decision or episode is known; else its row may still be on its way."""

    id: str
    joined: bool
    decision_id: str | None = None
    episode_id: str | None = None


class DecisionRecord(Struct, frozen=True):
    """Everything on record about one decision, by table."""

    decision: dict[str, Any]
    calls: list[dict[str, Any]]
    outcomes: list[dict[str, Any]]
    feedback: list[dict[str, Any]]
    cards: dict[str, str]
    prices: dict[str, dict[str, Any]]
    children: list[Any]
    request: dict[str, Any] | None = None
    outcome: dict[str, Any] | None = None
    router_version: dict[str, Any] | None = None


class Reloaded(Struct, frozen=True):
    generation: int
    hash: str


class Status(Struct, frozen=True):
    status: str


class Job(Struct, frozen=True):
    id: str
    object: str
    kind: str
    state: str


class JobDeleted(Struct, frozen=True):
    id: str
    deleted: bool


class Listing(Struct, frozen=True):
    object: str
    data: list[dict[str, Any]]


class ErrorDetail(Struct, frozen=True):
    message: str
    type: str
    param: str | None
    code: str | None


class Error(Struct, frozen=True):
    """OpenAI's error object; docs/api.md lists the codes."""

    error: ErrorDetail


class MessagesErrorDetail(Struct, frozen=True):
    type: str
    message: str


class MessagesError(Struct, frozen=True):
    """Anthropic's error object."""

    type: str
    error: MessagesErrorDetail
