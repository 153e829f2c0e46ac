"""Any configured worker as a language model for reflection, through the one client to workers."""

from __future__ import annotations

from typing import Any

from harness.routing.prompted import Lm
from pointsman.errors import UpstreamError
from pointsman.pool import Worker
from pointsman.upstream.direct import Direct, chat_fields


def worker_lm(direct: Direct, worker: Worker) -> Lm:
    """A chat-completions body in, the same shape of reply out, whatever API the worker speaks."""

    async def ask(body: dict[str, Any]) -> dict[str, Any]:
        fields = chat_fields({name: value for name, value in body.items() if name != "model"})
        records = await direct.ask(worker, fields)
        if not records or records[-1].status != "ok":
            said = records[-1].error if records else None
            raise UpstreamError(
                "server", f"{worker.name} gave no answer to the reflection: {said or 'no call was possible'}"
            )
        last = records[-1]
        usage = last.usage
        tokens = {} if usage is None else {"prompt_tokens": usage.input, "completion_tokens": usage.output}
        message = {"role": "assistant", "content": last.seen.completion}
        return {"choices": [{"message": message}], "usage": tokens}

    return ask
