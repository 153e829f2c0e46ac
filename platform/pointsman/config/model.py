"""The sections and keys of `pointsman.toml`. Unknown keys are errors; types are not coerced.

Money is `Decimal` (the loader reads TOML floats as decimals), durations are seconds. Secrets
stand here only by the name of the environment variable that holds them (`*_env`).
"""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from pointsman.words import Capability, RouterKind, WorkerApi


def _to_float(value: Any) -> Any:
    return float(value) if isinstance(value, Decimal) else value


def _to_decimal(value: Any) -> Any:
    return Decimal(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _http_url(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("expected an http:// or https:// address")
    if parts.username or parts.password:
        raise ValueError("an address must not carry a user or password; name the key in api_key_env")
    return value.rstrip("/")


Number = Annotated[float, BeforeValidator(_to_float)]
Share = Annotated[Number, Field(ge=0, le=1)]
Seconds = Annotated[Number, Field(gt=0, le=86_400)]
Money = Annotated[Decimal, BeforeValidator(_to_decimal), Field(ge=0, max_digits=20, decimal_places=10)]
HttpUrl = Annotated[str, AfterValidator(_http_url)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:/-]{0,99}$")]
EnvName = Annotated[str, Field(pattern=r"^[A-Z_][A-Z0-9_]*$")]


class Section(BaseModel):
    """What every section has: no unknown keys, no coercion, no change after reading."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class DatabaseConfig(Section):
    url: str | None = Field(None, description="PostgreSQL 15+; absent: the embedded server")


class GatewayConfig(Section):
    host: str = "127.0.0.1"
    port: int | None = Field(None, ge=1, le=65535)
    workers: int = Field(1, ge=1, le=64)
    grace: Seconds = 20
    max_body_bytes: int = Field(20_000_000, ge=1_000)
    max_in_flight: int = Field(1_000, ge=1)
    keep_alive: Seconds = 15


class DashboardConfig(Section):
    port: int | None = Field(None, ge=1, le=65535)
    host: str = "127.0.0.1"
    auth: Literal["none", "password", "oidc"] = "none"
    password_env: EnvName | None = None


class LogConfig(Section):
    dir: str | None = Field(None, description="the journal's folder; absent: HOME/journal")
    mode: Literal["spool", "strict"] = "spool"
    max_bytes: int = Field(2_000_000_000, ge=1_000_000)
    retention: int = Field(90, ge=1, description="days that rows are kept")
    redact: list[str] = Field(default_factory=list, description="regular expressions blacked out before the journal")
    store_text: bool = True


class RuleConfig(Section):
    """One ordered condition of the rule router: all that are given must hold."""

    worker: Name
    words: list[str] = Field(default_factory=list, description="any of these words stands in the ask")
    min_chars: int | None = Field(None, ge=0)
    max_chars: int | None = Field(None, ge=0)
    tags: list[str] = Field(default_factory=list, description="all of these tags are on the request")


class RouterConfig(Section):
    chain: list[RouterKind] = Field(default=["harness", "rule", "default"], min_length=1)
    model: str | None = Field(None, description="provider model id of the router LLM")
    base_url: HttpUrl | None = None
    api_key_env: EnvName | None = None
    price: PriceConfig | None = Field(None, description="of the router LLM, USD per million tokens")
    scoring: Literal["auto", "logprobs", "structured"] = "auto"
    deadline: Seconds = 1.5
    cards: Literal["file", "promoted"] = "file"
    default: Name | None = Field(None, description="the worker that answers when nothing else decides")
    instructions: str | None = Field(None, description="in place of the template's own instructions")
    rules: list[RuleConfig] = Field(default_factory=list)


class TimeoutsConfig(Section):
    connect: Seconds = 5
    first_token: Seconds = 60
    gap: Seconds = 60
    total: Seconds = 600


class RetriesConfig(Section):
    attempts: int = Field(3, ge=1, le=10, description="calls in all for one request, fallbacks included")
    max_retry_after: Seconds = 10
    backoff: Seconds = 0.2


class BreakerConfig(Section):
    failures: int = Field(5, ge=1)
    open_seconds: Seconds = 5


class CacheConfig(Section):
    enabled: bool = False
    ttl: Seconds = 3_600
    max_bytes: int = Field(64_000_000, ge=1_000_000)
    any_temperature: bool = False


class ExplorationConfig(Section):
    epsilon: Share = 0.05
    seed: int | None = Field(None, description="absent: drawn from the system at start")


class SandboxConfig(Section):
    seed: int = 1
    cards: Literal["world", "truthful", "nonsense"] = "world"
    feedback: Share = 0.5


class PriceConfig(Section):
    """USD per million tokens. A worker without a price costs NULL, never 0."""

    input: Money
    output: Money
    cached_input: Money | None = None


class QuirksConfig(Section):
    """How a worker departs from OpenAI's API."""

    api: WorkerApi = "openai"
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] | None = None
    stream_usage: bool = True
    auth_header: str = "authorization"
    system_role: Literal["system", "developer"] | None = None

    @model_validator(mode="before")
    @classmethod
    def _anthropics_header(cls, value: Any) -> Any:
        if isinstance(value, dict) and value.get("api") == "anthropic":
            return {"auth_header": "x-api-key", **value}
        return value


class EndpointConfig(Section):
    base_url: HttpUrl
    api_key_env: EnvName | None = None
    weight: Annotated[Number, Field(gt=0)] = 1.0


class WorkerConfig(Section):
    """An LLM that can be chosen. `description` is its initial card."""

    name: Name
    description: str = Field(min_length=1, max_length=4000)
    model: str = Field(min_length=1)
    base_url: HttpUrl | None = None
    api_key_env: EnvName | None = None
    endpoints: list[EndpointConfig] = Field(default_factory=list)
    price: PriceConfig | None = None
    context_window: int | None = Field(None, ge=1)
    max_output_tokens: int | None = Field(None, ge=1)
    capabilities: list[Capability] = Field(default_factory=list)
    tags: list[str] = Field(default_factory=list)
    quirks: QuirksConfig = Field(default_factory=QuirksConfig)

    @model_validator(mode="after")
    def _one_address(self) -> WorkerConfig:
        if bool(self.base_url) == bool(self.endpoints):
            raise ValueError("expected either base_url or endpoints, and not both")
        return self


class Config(Section):
    """All of `pointsman.toml`."""

    database: DatabaseConfig = Field(default_factory=DatabaseConfig)
    gateway: GatewayConfig = Field(default_factory=GatewayConfig)
    dashboard: DashboardConfig = Field(default_factory=DashboardConfig)
    log: LogConfig = Field(default_factory=LogConfig)
    router: RouterConfig = Field(default_factory=RouterConfig)
    timeouts: TimeoutsConfig = Field(default_factory=TimeoutsConfig)
    retries: RetriesConfig = Field(default_factory=RetriesConfig)
    breaker: BreakerConfig = Field(default_factory=BreakerConfig)
    cache: CacheConfig = Field(default_factory=CacheConfig)
    exploration: ExplorationConfig = Field(default_factory=ExplorationConfig)
    sandbox: SandboxConfig | None = None
    workers: list[WorkerConfig] = Field(min_length=1)
