"""Reads `pointsman.toml`, turning every fault into a line that names file, key and what was expected."""

from __future__ import annotations

import re
import tomllib
from decimal import Decimal
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from pointsman.config.model import Config
from pointsman.config.patterns import pattern_problems
from pointsman.config.schedules import schedule_problems
from pointsman.errors import ConfigError
from pointsman.hashing import content_hash

RESERVED_NAMES = ("pointsman", "default", "none")


def load_config(file: Path) -> Config:
    """The configuration in `file`; raises `ConfigError` with one line per fault."""
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ConfigError([f"{file}: no such file; `pointsman init` writes one"]) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError([f"{file}: cannot be read as UTF-8 text: {error}"]) from None
    return load_text(text, str(file))


def load_text(text: str, file: str = "pointsman.toml") -> Config:
    """The configuration in `text`; `file` is the name that errors give."""
    try:
        raw = tomllib.loads(text, parse_float=Decimal)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError([f"{file}: not TOML: {error}"]) from None
    try:
        config = Config.model_validate(raw)
    except ValidationError as error:
        problems = [_line(file, raw, item) for item in error.errors()]
        raise ConfigError(problems) from None
    if problems := _cross_checks(file, config):
        raise ConfigError(problems)
    return config


def config_hash(config: Config) -> str:
    """What `pointsman reload` compares with `/readyz` to know that a gateway serves the new file."""
    return content_hash(config.model_dump(mode="json"))


def _line(file: str, raw: dict[str, Any], item: Any) -> str:
    key = _key(raw, item["loc"])
    if item["type"] == "extra_forbidden":
        return f"{file}: {key}: no such key; remove it or see `pointsman check --keys`"
    if item["type"] == "missing":
        return f"{file}: {key}: missing, expected a value"
    message = item["msg"].removeprefix("Value error, ")
    shown = "" if isinstance(item["input"], dict | list) else f", got {item['input']!r}"
    return f"{file}: {key}: {message[0].lower()}{message[1:]}{shown}"


def _key(raw: dict[str, Any], loc: tuple[int | str, ...]) -> str:
    """`workers[1] ("haiku").price.input` for the place that pydantic names by keys and indices."""
    key = ""
    value: Any = raw
    for part in loc:
        if isinstance(part, int):
            key += f"[{part}]"
            value = value[part] if isinstance(value, list) and part < len(value) else None
            if isinstance(value, dict) and isinstance(value.get("name"), str):
                key += f' ("{value["name"]}")'
        else:
            key += f".{part}" if key else part
            value = value.get(part) if isinstance(value, dict) else None
    return key or "(file)"


def _cross_checks(file: str, config: Config) -> list[str]:
    problems: list[str] = []
    names = [worker.name for worker in config.workers]
    for position, name in enumerate(names):
        if name in names[:position]:
            problems.append(f'{file}: workers[{position}].name: "{name}" is used twice, expected a name of its own')
        if name in RESERVED_NAMES or name.startswith(("pointsman-", "pointsman@")):
            problems.append(f'{file}: workers[{position}].name: "{name}" is reserved, expected another name')
    router = config.router
    if router.default is not None and router.default not in names:
        problems.append(f'{file}: router.default: "{router.default}" is no worker, expected one of {names}')
    for position, rule in enumerate(router.rules):
        if rule.worker not in names:
            problems.append(
                f'{file}: router.rules[{position}].worker: "{rule.worker}" is no worker, expected one of {names}'
            )
    if "harness" in router.chain and (router.model is None) != (router.base_url is None):
        absent = "model" if router.model is None else "base_url"
        problems.append(f"{file}: router.{absent}: missing, expected both model and base_url for the prompted router")
    for position, pattern in enumerate(config.log.redact):
        try:
            re.compile(pattern)
        except re.error as error:
            problems.append(f"{file}: log.redact[{position}]: expected a regular expression: {error}")
    problems += [f"{file}: {line}" for line in schedule_problems(config)]
    problems += [f"{file}: {line}" for line in pattern_problems(config)]
    if config.judge is not None and config.judge.worker not in names:
        problems.append(f'{file}: judge.worker: "{config.judge.worker}" is no worker, expected one of {names}')
    if config.dial is not None and config.dial.worker not in names:
        problems.append(f'{file}: dial.worker: "{config.dial.worker}" is no worker, expected one of {names}')
    for key, spec in (("gate", config.gate.reward), ("dial", config.dial.reward if config.dial else "default")):
        if spec not in (specs := ["default", *(name for name in config.reward if name != "default")]):
            problems.append(f'{file}: {key}.reward: "{spec}" is no [reward.NAME], expected one of {specs}')
    if config.dashboard.auth == "password" and config.dashboard.password_env is None:
        problems.append(f"{file}: dashboard.password_env: missing, expected the variable that holds the password")
    return problems
