"""What is allowed in `pointsman.toml` and yet seldom meant: warnings, never errors."""

from __future__ import annotations

from collections.abc import Iterator

from pointsman.config.home import Settings
from pointsman.config.model import Config, WorkerConfig


def warnings(config: Config, settings: Settings) -> list[str]:
    """A line each: what is odd, where, and what follows from it."""
    return [
        *_unset(config, settings),
        *_unpriced(config.workers),
        *_about_the_router(config),
        *_about_cards(config.workers),
    ]


def variable_users(config: Config) -> dict[str, list[str]]:
    """The keys of the file that name each environment variable."""
    users: dict[str, list[str]] = {}
    for key, variable in key_variables(config):
        users.setdefault(variable, []).append(key)
    return users


def key_variables(config: Config) -> Iterator[tuple[str, str]]:
    """(key of the file, environment variable) of every secret that the configuration names."""
    if config.router.api_key_env:
        yield "router.api_key_env", config.router.api_key_env
    for worker in config.workers:
        for name in worker_variables(worker):
            yield f'workers "{worker.name}".api_key_env', name
    if config.dashboard.password_env:
        yield "dashboard.password_env", config.dashboard.password_env
    if config.tracing.headers_env:
        yield "tracing.headers_env", config.tracing.headers_env
    if config.alarms.webhook_env:
        yield "alarms.webhook_env", config.alarms.webhook_env


def worker_variables(worker: WorkerConfig) -> tuple[str, ...]:
    """The variables that hold a worker's keys, each once."""
    names = [worker.api_key_env, *(endpoint.api_key_env for endpoint in worker.endpoints)]
    return tuple(dict.fromkeys(name for name in names if name))


def _unset(config: Config, settings: Settings) -> Iterator[str]:
    for variable, keys in variable_users(config).items():
        if settings.secret(variable) is None:
            yield f"${variable} is not set, and named by {', '.join(keys)}"


def _unpriced(workers: list[WorkerConfig]) -> Iterator[str]:
    if names := [worker.name for worker in workers if worker.price is None]:
        yield f"no price: {', '.join(names)}; their costs are logged as unknown, never as 0"


def _about_the_router(config: Config) -> Iterator[str]:
    router = config.router
    if "harness" not in router.chain:
        yield 'router.chain: no "harness"; no router LLM reads the cards, so requests are not told apart by them'
    elif router.model is None:
        yield "router.model: not set; the prompted router is left out of the chain"
    if router.default is None:
        yield "router.default: not set; the cheapest worker answers when nothing else decides"
    if len(config.workers) == 1:
        yield "workers: only one; there is nothing to choose between"


def _about_cards(workers: list[WorkerConfig]) -> Iterator[str]:
    by_text: dict[str, list[str]] = {}
    for worker in workers:
        by_text.setdefault(" ".join(worker.description.lower().split()), []).append(worker.name)
    for names in by_text.values():
        if len(names) > 1:
            yield f"workers {', '.join(names)}: one description for all; a router cannot tell them apart"
