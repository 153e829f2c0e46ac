"""The text of a `pointsman.toml` for the workers that were found. It always passes `pointsman check`."""

from __future__ import annotations

import json
from collections.abc import Sequence

from pointsman.commands.providers import Offer

_HEAD = """\
# Pointsman's configuration. `pointsman check` says what is wrong with it, `pointsman check --keys`
# lists every key, `pointsman reload` brings a change to a running gateway without a restart.
# Keys of providers never stand here: api_key_env names the variable that holds one.

[router]
# The router LLM reads each request and the descriptions below, and scores the workers.
# A small, quick model is enough; it is asked once per routed request.
model = {model}
base_url = {base_url}
{key}# Seconds that it may take; then the next in the chain decides and the answer still comes.
deadline = {deadline}
# Who decides, in order: the prompted router, ordered rules ([[router.rules]]), the default worker.
chain = ["harness", "rule", "default"]
# Answers when nothing else decides.
default = {default}

[exploration]
# The share of requests that go to a worker drawn at random, so that the log can be learned from.
# 0 turns it off.
epsilon = 0.05
"""

_WORKER = """
# {source}
[[workers]]
name = {name}
# What the router knows of this worker. Say what it is good and bad at, in your own words.
description = {description}
model = {model}
base_url = {base_url}
{key}# USD per million tokens. Until you fill it in, costs are logged as unknown (never as 0).
# price = {{ input = 0.00, output = 0.00, cached_input = 0.00 }}
{window}{capabilities}{quirks}"""

_REMOTE_DEADLINE = 1.5
_LOCAL_DEADLINE = 5.0


def config_text(offers: Sequence[Offer]) -> str:
    """A whole file for at least one worker."""
    router = router_offer(offers)
    head = _HEAD.format(
        model=_text(router.model),
        base_url=_text(router.base_url),
        key=_line("api_key_env", router.api_key_env),
        deadline=_REMOTE_DEADLINE if router.api_key_env else _LOCAL_DEADLINE,
        default=_text(offers[0].name),
    )
    return head + "".join(_worker(offer) for offer in offers)


def router_offer(offers: Sequence[Offer]) -> Offer:
    """Whose model is asked to route: the quick model of the first source, which stands last there."""
    first = [offer for offer in offers if offer.source == offers[0].source]
    return first[-1]


def _worker(offer: Offer) -> str:
    return _WORKER.format(
        source=offer.source,
        name=_text(offer.name),
        description=_text(offer.description),
        model=_text(offer.model),
        base_url=_text(offer.base_url),
        key=_line("api_key_env", offer.api_key_env),
        window=f"context_window = {offer.context_window}\n" if offer.context_window else "",
        capabilities=f"capabilities = {json.dumps(list(offer.capabilities))}\n" if offer.capabilities else "",
        quirks="quirks = { " + ", ".join(f"{k} = {_text(v)}" for k, v in offer.quirks) + " }\n" if offer.quirks else "",
    )


def _line(key: str, value: str | None) -> str:
    return f"{key} = {_text(value)}\n" if value else ""


def _text(value: str) -> str:
    """A TOML basic string. Texts here are printable ASCII, for which JSON's form is TOML's."""
    return json.dumps(value)
