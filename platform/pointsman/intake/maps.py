"""Column maps: where each field of a record stands in another system's rows.

A map is a field → a path, or several of which the first that holds something is taken. A path is a column's name;
dots go into objects (and into texts that hold JSON). A file given by `--map` (TOML or JSON) replaces the built-in
map's entries field by field:

    [fields]
    model = "metadata.deployment"
    score = ["human_score", "auto_score"]
    [wide]
    models = ["gpt-4o", "small"]       # score tables only: the columns that are models
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec

from pointsman.errors import UserError

Format = Literal["openai-jsonl", "scores", "litellm", "langfuse", "tensorzero"]
FORMATS: tuple[str, ...] = get_args(Format)

FIELDS: Mapping[str, str] = {
    "id": "the row's own id: the same id is imported once (absent: a hash of the row)",
    "asked_at": "when it was asked: ISO 8601, seconds or milliseconds since 1970, or a UUIDv7",
    "ended_at": "when the answer was complete; gives the latency where that is absent",
    "request": "the whole request body, as OpenAI's API takes it",
    "messages": "the messages: a list, or an object with `messages` and `system`, or a text",
    "model": "who answered: becomes the worker's name",
    "provider_model": "the provider's name of the model, where `model` is an alias",
    "response": "the answer: a chat completion, content blocks, or a text",
    "input_tokens": "tokens of the prompt",
    "cached_tokens": "of them, read from a cache",
    "output_tokens": "tokens of the answer",
    "cost": "USD",
    "latency_ms": "milliseconds until the answer was complete",
    "latency_s": "the same in seconds",
    "first_token_ms": "milliseconds until the first token",
    "first_token_s": "the same in seconds",
    "status": "how it ended: success and failure, HTTP codes, log levels are known words",
    "error": "what went wrong",
    "score": "how good the answer was, 0 to 1, or a truth value",
    "episode": "the conversation it belongs to",
    "trace": "the task it was a call of: scores of `--scores` may name it",
    "task": "what kind of question it is",
    "split": "`train`, `test`, …: kept as it is",
    "type": "rows of another type than a model's answer are left out, and counted",
    "repeat": "score tables: which of several answers of one model this is",
    "text": "score tables: the question",
}


@dataclass(frozen=True)
class ColumnMap:
    """`fields` {field: paths}; `models` names the model columns of a wide score table (empty: found out)."""

    fields: Mapping[str, tuple[str, ...]]
    models: tuple[str, ...] = ()
    types: frozenset[str] = field(default_factory=frozenset)


def _paths(**fields: str) -> dict[str, tuple[str, ...]]:
    return {name: tuple(paths.split()) for name, paths in fields.items()}


BUILT_IN: Mapping[str, ColumnMap] = {
    # Logged bodies, OpenAI's batch files, fine-tuning files (whose last message is the answer).
    "openai-jsonl": ColumnMap(
        _paths(
            id="id custom_id request_id response.id",
            asked_at="created_at timestamp asked_at created response.created response.body.created",
            ended_at="completed_at ended_at",
            request="request.body request body",
            messages="messages input.messages",
            model="response.body.model response.model model request.body.model request.model body.model",
            response="response.body response completion output choices",
            input_tokens="usage.prompt_tokens response.usage.prompt_tokens response.body.usage.prompt_tokens",
            cached_tokens="usage.prompt_tokens_details.cached_tokens "
            "response.usage.prompt_tokens_details.cached_tokens "
            "response.body.usage.prompt_tokens_details.cached_tokens",
            output_tokens="usage.completion_tokens response.usage.completion_tokens "
            "response.body.usage.completion_tokens",
            cost="cost cost_usd usage.cost response.usage.cost",
            latency_ms="latency_ms duration_ms",
            latency_s="latency_s latency duration",
            first_token_ms="ttft_ms first_token_ms",
            status="response.status_code status_code status",
            error="error.message error",
            score="score rating reward",
            episode="conversation_id session_id episode_id metadata.conversation_id metadata.session_id",
            task="task metadata.task",
            split="split",
        )
    ),
    "scores": ColumnMap(
        _paths(
            id="query_id sample_id question_id id",
            text="prompt text query question input",
            model="model model_name worker llm",
            score="score performance correct reward accuracy",
            response="response model_response completion output answer_text",
            input_tokens="input_tokens prompt_tokens",
            output_tokens="output_tokens completion_tokens",
            cost="cost total_cost cost_usd",
            latency_ms="latency_ms",
            latency_s="latency_s latency",
            asked_at="asked_at timestamp",
            task="eval_name task dataset category",
            split="split",
            repeat="repeat",
        )
    ),
    # Rows of LiteLLM_SpendLogs, and the standard logging payload that its callbacks write.
    "litellm": ColumnMap(
        _paths(
            id="request_id id",
            asked_at="startTime start_time",
            ended_at="endTime end_time",
            request="proxy_server_request",
            messages="messages",
            model="model_group model",
            provider_model="model",
            response="response",
            input_tokens="prompt_tokens",
            output_tokens="completion_tokens",
            cost="spend response_cost",
            first_token_s="time_to_first_token",
            status="status metadata.status",
            error="error_str error_information.error_message metadata.error_information.error_message",
            episode="session_id trace_id metadata.session_id",
            trace="trace_id",
            type="call_type",
        ),
        types=frozenset(["completion", "acompletion", "chat_completion", "chat.completions"]),
    ),
    # Observations of the blob storage export and of the API (snake and camel case).
    "langfuse": ColumnMap(
        _paths(
            id="id",
            asked_at="start_time startTime",
            ended_at="end_time endTime",
            messages="input",
            model="provided_model_name model",
            response="output",
            input_tokens="usage_details.input usageDetails.input usage.input promptTokens",
            cached_tokens="usage_details.input_cached_tokens usageDetails.input_cached_tokens",
            output_tokens="usage_details.output usageDetails.output usage.output completionTokens",
            cost="total_cost cost_details.total costDetails.total calculatedTotalCost totalCost",
            latency_s="latency",
            first_token_s="time_to_first_token timeToFirstToken",
            status="level",
            error="status_message statusMessage",
            episode="session_id sessionId trace_id traceId",
            trace="trace_id traceId",
            task="name",
            type="type",
        ),
        types=frozenset(["GENERATION"]),
    ),
    # ModelInference rows (a call of a provider), or ChatInference rows (whose variant is the model).
    "tensorzero": ColumnMap(
        _paths(
            id="inference_id id",
            asked_at="timestamp inference_id id",
            messages="input input_messages",
            model="model_name variant_name",
            provider_model="model_provider_name",
            response="output raw_response",
            input_tokens="input_tokens",
            output_tokens="output_tokens",
            latency_ms="response_time_ms processing_time_ms",
            first_token_ms="ttft_ms",
            episode="episode_id",
            trace="episode_id",
            task="function_name",
        )
    ),
}


class _MapFile(msgspec.Struct, forbid_unknown_fields=True):
    fields: dict[str, str | list[str]] = {}
    wide: dict[str, list[str]] = {}


def column_map(form: str, file: Path | None = None) -> ColumnMap:
    """The built-in map of a format, with what `file` says instead."""
    if form not in BUILT_IN:
        raise UserError(f"--format: expected one of {', '.join(FORMATS)}, got {form!r}")
    known = BUILT_IN[form]
    if file is None:
        return known
    given = _read(file)
    if unknown := sorted(given.fields.keys() - FIELDS.keys()):
        raise UserError(f"{file}: no field {unknown[0]!r}; the fields are {', '.join(FIELDS)}")
    if unknown := sorted(given.wide.keys() - {"models"}):
        raise UserError(f"{file}: wide.{unknown[0]}: expected wide.models only")
    named = {name: (paths,) if isinstance(paths, str) else tuple(paths) for name, paths in given.fields.items()}
    return ColumnMap({**known.fields, **named}, tuple(given.wide.get("models", ())), known.types)


def _read(file: Path) -> _MapFile:
    try:
        raw = file.read_bytes()
        content: Any = msgspec.json.decode(raw) if file.suffix == ".json" else tomllib.loads(raw.decode())
        return msgspec.convert(content, _MapFile)
    except OSError as error:
        raise UserError(f"{file}: cannot be read: {error.strerror}") from None
    except (msgspec.MsgspecError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{file}: not a column map: {error}") from None
