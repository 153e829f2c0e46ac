"""A language model behind the one endpoint that a router LLM needs: chat completions with log-probabilities.

For benchmarks alone: one request at a time, greedy, nothing streamed. `transformers serve` gives no log-probabilities.
With `letters` every reply is one of these letters after the field's header, as servers do that constrain an answer's
form: the form is given, the choice is the model's.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from common.instance import free_port
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

NAME = "small"
HEADER = "[[ ## option ## ]]\n"
"""What the template asks every reply to begin with."""


@dataclass
class Model:
    """What answers, and what it took: seconds, prompt tokens and the text of every reply."""

    tokenizer: Any
    model: Any
    letters: str = ""
    seconds: list[float] = field(default_factory=list)
    prompts: list[int] = field(default_factory=list)
    replies: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def complete(self, body: dict[str, Any]) -> dict[str, Any]:
        """A chat completion of one choice."""
        with self.lock:
            started = time.monotonic()
            text = self.tokenizer.apply_chat_template(body["messages"], tokenize=False, add_generation_prompt=True)
            text += HEADER if self.letters else ""
            ids = self.tokenizer(text, return_tensors="pt", add_special_tokens=False)["input_ids"]
            tokens = self._greedy(ids, 1 if self.letters else int(body.get("max_tokens", 64)), body)
            self.seconds.append(time.monotonic() - started)
            self.prompts.append(ids.shape[1])
        said = "".join(token["token"] for token in tokens)
        self.replies.append(said)
        usage = {"prompt_tokens": ids.shape[1], "completion_tokens": len(tokens)}
        choice: dict[str, Any] = {
            "index": 0,
            "finish_reason": "stop",
            "message": {"role": "assistant", "content": said},
        }
        if body.get("logprobs"):
            choice["logprobs"] = {"content": tokens}
        return {"object": "chat.completion", "model": NAME, "choices": [choice], "usage": usage}

    def _greedy(self, ids: Any, most: int, body: dict[str, Any]) -> list[dict[str, Any]]:
        import torch

        allowed = [self.tokenizer.convert_tokens_to_ids(letter) for letter in self.letters]
        top = len(allowed) or int(body.get("top_logprobs") or 1)
        made: list[dict[str, Any]] = []
        past = None
        with torch.inference_mode():
            while len(made) < most:
                out = self.model(input_ids=ids, past_key_values=past, use_cache=True, logits_to_keep=1)
                past, logits = out.past_key_values, out.logits[0, -1].float()
                if allowed:
                    others = torch.ones_like(logits, dtype=torch.bool)
                    others[allowed] = False
                    logits = logits.masked_fill(others, -torch.inf)
                logprobs = torch.log_softmax(logits, dim=-1)
                values, best = logprobs.topk(top)
                token = int(best[0])
                if token == self.tokenizer.eos_token_id:
                    break
                listed = [
                    {"token": self.tokenizer.decode([int(one)]), "logprob": float(value)}
                    for one, value in zip(best, values, strict=True)
                ]
                made.append({**listed[0], "top_logprobs": listed})
                ids = torch.tensor([[token]])
        return made


@contextmanager
def answering(model: Model) -> Iterator[str]:
    """The base URL (it ends in /v1) while the block runs."""

    async def completions(request: Request) -> JSONResponse:
        return JSONResponse(await asyncio.to_thread(model.complete, await request.json()))

    port = free_port()
    routes = [Route("/v1/chat/completions", completions, methods=["POST"])]
    server = uvicorn.Server(uvicorn.Config(Starlette(routes=routes), port=port, log_level="error"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.05)
    try:
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        server.should_exit = True
        thread.join(10)
