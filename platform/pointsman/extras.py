"""The optional parts that a configuration asks for: a missing one is said before anything starts, with its remedy."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec

from pointsman.config.model import Config
from pointsman.errors import ConfigError


def require_extras(
    config: Config, file: str = "pointsman.toml", *, find: Callable[[str], object | None] = find_spec
) -> None:
    """Raises `ConfigError` where the file names what is not installed; `find` finds a module, or gives None."""
    problems = [
        f"{file}: {key}: {what} is not installed, expected `pip install 'pointsman[{extra}]'`"
        for key, what, extra, module in _wanted(config)
        if not _is_there(module, find)
    ]
    if problems:
        raise ConfigError(problems)


def uses_litellm(config: Config) -> bool:
    return any(worker.quirks.api == "litellm" for worker in config.workers)


def _wanted(config: Config) -> list[tuple[str, str, str, str]]:
    wanted: list[tuple[str, str, str, str]] = []
    if config.tracing.endpoint is not None:
        module = "opentelemetry.exporter.otlp.proto.http"
        wanted.append(("tracing.endpoint", "the OpenTelemetry SDK", "tracing", module))
    if uses_litellm(config):
        wanted.append(("workers[].quirks.api", "LiteLLM's SDK", "providers", "litellm"))
    return wanted


def _is_there(module: str, find: Callable[[str], object | None]) -> bool:
    """Whether a module can be found; nothing of it is run but its parents."""
    try:
        return find(module) is not None
    except ModuleNotFoundError:
        return False
