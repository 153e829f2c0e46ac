"""The Responses API as a translation to chat completions and back; this page is what the gateway imports.

`to_chat` reads a request; `from_chat` and `ResponsesStream` write its answer, whole or as events. Refusals
are `RequestError`s in OpenAI's one shape; `in_own_words` gives those of the core this API's names.
"""

from harness.gateway.surfaces.responses_context import (
    ChatBody,
    ResponsesContext,
    decision_id,
    in_own_words,
)
from harness.gateway.surfaces.responses_reply import from_chat
from harness.gateway.surfaces.responses_request import to_chat
from harness.gateway.surfaces.responses_stream import DONE, ResponsesStream

__all__ = [
    "DONE",
    "ChatBody",
    "ResponsesContext",
    "ResponsesStream",
    "decision_id",
    "from_chat",
    "in_own_words",
    "to_chat",
]
