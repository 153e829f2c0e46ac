"""The process's settings from its environment, read once and passed down.

`POINTSMAN_HOME` is the data folder, `POINTSMAN_PORT` the first of a block of ports (gateway, +1
dashboard, +2 sandbox, +3 broker), `POINTSMAN_CONFIG` the configuration file (else `pointsman.toml`
here, else the one that `pointsman up` wrote in the home). Nothing else in Pointsman reads the
environment, except secrets by the names that `*_env` keys give; and only `settle_litellm` changes it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pointsman.errors import ConfigError

DEFAULT_PORT = 8790
EXAMPLE = "change-this-example"
"""The value of every secret in `.env.example`. Whoever starts with it has published the password."""


@dataclass(frozen=True)
class Settings:
    """Where this copy of Pointsman lives and listens."""

    home: Path
    port: int
    config_file: Path
    environment: Mapping[str, str]

    @classmethod
    def read(
        cls,
        environment: Mapping[str, str] | None = None,
        *,
        config: Path | None = None,
        cwd: Path | None = None,
    ) -> Settings:
        """Settings from `environment`; `config` (a flag of the command line) wins over the variable."""
        env = dict(os.environ if environment is None else environment)
        _refuse_examples(env)
        here = cwd or Path.cwd()
        home = Path(env.get("POINTSMAN_HOME") or here / ".pointsman").expanduser().absolute()
        text = env.get("POINTSMAN_PORT") or str(DEFAULT_PORT)
        if not text.isdigit() or not 1 <= int(text) <= 65532:
            raise ConfigError([f"POINTSMAN_PORT: expected a port from 1 to 65532, got {text!r}"])
        return cls(home, int(text), _config_file(config, env, here, home).expanduser().absolute(), env)

    @property
    def dashboard_port(self) -> int:
        return self.port + 1

    @property
    def sandbox_port(self) -> int:
        return self.port + 2

    def secret(self, name: str | None) -> str | None:
        """The secret held by the environment variable `name`, None where it is unset or empty."""
        return self.environment.get(name) or None if name else None


def settle_litellm() -> None:
    """To be called before LiteLLM's SDK is imported: it then fetches no price map and reads no `.env` file."""
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "true"
    os.environ["LITELLM_MODE"] = "PRODUCTION"


def _refuse_examples(env: Mapping[str, str]) -> None:
    """ConfigError naming each variable that was left as the example has it, alone or within an address."""
    left = sorted(name for name, value in env.items() if EXAMPLE in value)
    if left:
        raise ConfigError(
            [f"${name} has the value of .env.example, which everybody knows: choose one of your own" for name in left]
        )


def _config_file(flag: Path | None, env: Mapping[str, str], here: Path, home: Path) -> Path:
    if flag is not None:
        return flag
    if env.get("POINTSMAN_CONFIG"):
        return Path(env["POINTSMAN_CONFIG"])
    local, own = here / "pointsman.toml", home / "pointsman.toml"
    return own if own.exists() and not local.exists() else local
