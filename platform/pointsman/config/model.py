"""The sections and keys of `pointsman.toml`. Unknown keys are errors; types are not coerced.

Money is `Decimal` (the loader reads TOML floats as decimals), durations are seconds. Secrets
stand here only by the name of the environment variable that holds them (`*_env`).
"""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from pointsman.words import ActorRole, Capability, GateMode, JudgeMode, Pattern, RewardSource, RouterKind, WorkerApi


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


def _broker_url(value: str) -> str:
    if urlsplit(value).scheme not in BROKER_SCHEMES:
        raise ValueError(f"expected an address that begins with one of {', '.join(BROKER_SCHEMES)}")
    if urlsplit(value).password:
        raise ValueError("an address must not carry a password; name the variable that holds it in broker_env")
    return value


def _plain_numbers(value: Any) -> Any:
    """The file's numbers as JSON has them: the loader reads fractions as decimals, which only money wants."""
    if isinstance(value, dict):
        return {key: _plain_numbers(item) for key, item in value.items()}
    return [_plain_numbers(item) for item in value] if isinstance(value, list) else _to_float(value)


METRICS = ("correct", "helpful", "thumbs", "accepted", "resolved", "score", "rating", "quality")
"""The metrics of feedback whose meaning is fixed: true or 1 is good."""
BROKER_SCHEMES = ("redis", "rediss", "redis+socket", "amqp", "amqps")
Number = Annotated[float, BeforeValidator(_to_float)]
Share = Annotated[Number, Field(ge=0, le=1)]
Seconds = Annotated[Number, Field(gt=0, le=86_400)]
Weight = Annotated[Number, Field(ge=0, le=1_000)]
Money = Annotated[Decimal, BeforeValidator(_to_decimal), Field(ge=0, max_digits=20, decimal_places=10)]
HttpUrl = Annotated[str, AfterValidator(_http_url)]
BrokerUrl = Annotated[str, AfterValidator(_broker_url)]
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
    role: ActorRole = Field("admin", description="of whoever comes in by loopback or with the password")
    projects: list[str] = Field(default_factory=list, description="those that are shown; empty: all")


class LogConfig(Section):
    dir: str | None = Field(None, description="the journal's folder; absent: HOME/journal")
    mode: Literal["spool", "strict"] = "spool"
    max_bytes: int = Field(2_000_000_000, ge=1_000_000)
    retention: int = Field(90, ge=1, description="days that rows are kept")
    redact: list[str] = Field(default_factory=list, description="regular expressions blacked out before the journal")
    store_text: bool = True
    format: Literal["text", "json"] = "text"


class RuleConfig(Section):
    """One ordered condition of the rule router: all that are given must hold."""

    worker: Name
    words: list[str] = Field(default_factory=list, description="any of these words stands in the ask")
    min_chars: int | None = Field(None, ge=0)
    max_chars: int | None = Field(None, ge=0)
    tags: list[str] = Field(default_factory=list, description="all of these tags are on the request")


class RouterConfig(Section):
    chain: list[RouterKind] = Field(default=["harness", "classic", "rule", "default"], min_length=1)
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
    classic: str | None = Field(None, description="the folder of a trained classic router, seen from the data folder")
    patterns: list[Name] = Field(default_factory=list)


class ConductorConfig(Section):
    model: str
    base_url: HttpUrl
    api_key_env: EnvName | None = None
    price: PriceConfig | None = None
    form: Literal["short", "full"] = "short"
    deadline: Seconds = 30


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


class TracingConfig(Section):
    endpoint: HttpUrl | None = None
    headers_env: EnvName | None = None
    sample: Share = 1
    propagate: bool = False

    @model_validator(mode="after")
    def _somewhere_to_go(self) -> TracingConfig:
        if self.endpoint is None and self.model_fields_set:
            raise ValueError("expected endpoint, the address that spans are sent to")
        return self


class ExplorationConfig(Section):
    epsilon: Share = 0.05
    seed: int | None = Field(None, description="absent: drawn from the system at start")


class RewardConfig(Section):
    """How an outcome becomes the one number in [0, 1] that routers are compared by."""

    quality: list[RewardSource] = Field(default=["verifier", "feedback", "judge"], min_length=1)
    metrics: dict[str, Weight] = Field(default_factory=lambda: dict.fromkeys(METRICS, 1.0))
    sources: dict[str, Weight] = Field(default_factory=dict)
    ranges: dict[str, Annotated[list[Number], Field(min_length=2, max_length=2)]] = Field(default_factory=dict)
    cost_weight: Weight = 0.0
    cost_scale: Annotated[Money, Field(gt=0)] = Decimal("0.01")
    latency_weight: Weight = 0.0
    latency_scale: Seconds = 10
    deadline: Annotated[Number, Field(ge=0, le=2_592_000)] = 900

    @model_validator(mode="after")
    def _ranges_have_ends(self) -> RewardConfig:
        for metric, (worst, best) in self.ranges.items():
            if worst == best:
                raise ValueError(f"ranges.{metric}: expected two different numbers, the worst and the best value")
        return self


class AuditConfig(Section):
    rate: Share = 0.01
    budget: Money = Decimal(1)
    repeat_share: Share = 0.1


class JudgeConfig(Section):
    worker: Name
    mode: JudgeMode = "grade"
    max_tokens: int = Field(400, ge=16, le=20_000)


class GateConfig(Section):
    """How a candidate is let in. A gate keeps what it was registered with, whatever is changed here later."""

    mode: GateMode = "propose"
    alpha: Annotated[Number, Field(gt=0, le=0.5)] = 0.05
    epsilon: Annotated[Number, Field(ge=0, lt=1)] = 0.0
    alpha_rollback: Annotated[Number, Field(gt=0, le=0.5)] = 0.01
    epsilon_rollback: Annotated[Number, Field(ge=0, lt=1)] = 0.0
    ramp: list[Annotated[list[Number], Field(min_length=2, max_length=2)]] = Field(
        default=[[0, 0.05], [100, 0.25], [300, 0.5]], min_length=1
    )
    reward: Name = "default"
    timeout_value: Share = 0.5
    days: int = Field(30, ge=1, le=365)
    alpha_guards: Annotated[Number, Field(gt=0, le=0.5)] = 0.01
    max_errors: Annotated[Number, Field(gt=0, lt=1)] | None = None
    max_latency: Seconds | None = None
    max_cost: Annotated[Money, Field(gt=0)] | None = None
    offline_rows: int | None = Field(None, ge=100)

    @model_validator(mode="after")
    def _ramp_rises(self) -> GateConfig:
        begins = [step[0] for step in self.ramp]
        if begins[0] != 0 or sorted(set(begins)) != begins or any(begin % 1 for begin in begins):
            raise ValueError("ramp: expected steps [rows, share] that begin after 0 rows and then after more and more")
        if not all(0 < share < 1 for _, share in self.ramp):
            raise ValueError("ramp: expected every share to lie between 0 and 1")
        return self


class FlywheelConfig(Section):
    """When the log has enough for a new router, and how far the way there goes by itself."""

    enabled: bool = False
    mode: GateMode = "propose"
    rows: int = Field(600, ge=1)
    growth: Annotated[Number, Field(gt=0, le=10)] = 0.5
    hours: Annotated[Number, Field(ge=0, le=8_760)] = 24
    budget: Money = Decimal(5)
    audit: int = Field(0, ge=0, le=1_000_000)
    toy: bool = False
    methods: list[Literal["linear", "logistic", "mixture", "clusters", "neighbours"]] = Field(
        default=["mixture"], min_length=1
    )
    learned: bool = True
    backbone: str | None = None
    tuner: Literal["none", "svf", "lora"] = "none"
    evolve: bool = True
    generations: int = Field(60, ge=1, le=100_000)
    ablations: bool = True
    conductor: bool = False
    conductor_base: str | None = None
    conductor_tasks: str | None = None
    shadow_rows: int = Field(50, ge=0, le=1_000_000)
    shadow_hours: Annotated[Number, Field(gt=0, le=8_760)] = 24
    seed: int = 1


class DialConfig(Section):
    """The worker that answers what it can be trusted with, and how often it may fail there."""

    worker: Name
    max_failures: Annotated[Number, Field(gt=0, lt=1)] = 0.1
    delta: Annotated[Number, Field(gt=0, le=0.5)] = 0.05
    good: Annotated[Number, Field(gt=0, le=1)] = 0.5
    reward: Name = "default"


class AlarmsConfig(Section):
    webhook_env: EnvName | None = None


class JobsConfig(Section):
    broker: BrokerUrl | None = None
    broker_env: EnvName | None = None
    concurrency: int = Field(2, ge=1, le=64)
    probe_concurrency: int = Field(2, ge=1, le=64)
    train_concurrency: int = Field(1, ge=1, le=64)
    artifacts: str | None = None
    lease: Annotated[Number, Field(ge=2, le=600)] = 15
    visibility_timeout: Annotated[Number, Field(ge=1, le=86_400)] = 60

    @model_validator(mode="after")
    def _one_broker(self) -> JobsConfig:
        if self.broker and self.broker_env:
            raise ValueError("expected broker or broker_env, and not both")
        return self


class ScheduleConfig(Section):
    """A job that is started by the clock."""

    cron: str = Field(min_length=1, max_length=200)
    kind: str
    params: Annotated[dict[str, Any], BeforeValidator(_plain_numbers)] = Field(default_factory=dict)
    project: Name = "default"


class RoleConfig(Section):
    """A role of a trinity by its own name. `part` is what it does in the protocol."""

    name: Name
    part: Literal["thinker", "solver", "verifier"]
    prompt: str | None = Field(None, min_length=1, max_length=20_000)
    workers: list[Name] = Field(default_factory=list)


class StepConfig(Section):
    """One step of a workflow that the configuration plans."""

    subtask: str = Field(min_length=1, max_length=20_000)
    worker: Name | None = None
    access: Literal["none", "all"] | list[int] = "all"
    gate: str | None = None


class PatternConfig(Section):
    """A team of workers that requests may name as a model."""

    pattern: Pattern
    description: str | None = None
    max_calls: int | None = Field(None, ge=1)
    max_tokens: int | None = Field(None, ge=1)
    budget: Money | None = None
    deadline: Seconds | None = None
    max_turns: int = Field(5, ge=1, le=20)
    roles: list[RoleConfig] = Field(default_factory=list)
    role_choice: Literal["rule", "router"] = "rule"
    stop_score: Share | None = None
    feedback: bool = False
    max_steps: int = Field(5, ge=1, le=20)
    rounds: int = Field(1, ge=1, le=5)
    repairs: int = Field(1, ge=0, le=3)
    steps: list[StepConfig] = Field(default_factory=list)
    tiers: list[list[Name]] = Field(default_factory=list)
    verifier: Name | None = None
    threshold: Share = 0.5
    lead: Name | None = None
    sidekicks: list[Name] = Field(default_factory=list)
    max_delegations: int = Field(4, ge=1, le=20)
    withhold: Share = 0.0
    compact_at: int = Field(16_000, ge=500)
    start: Name | None = None
    workers: list[Name] = Field(default_factory=list)
    max_handoffs: int = Field(3, ge=0, le=20)
    context: Literal["all", "no_tools", "last"] = "all"
    n: int = Field(3, ge=2, le=20)
    same: bool = False
    method: Literal["majority", "judge"] = "majority"
    judge: Name | None = None


class SandboxConfig(Section):
    seed: int = 1
    cards: Literal["world", "truthful", "nonsense", "false"] = "world"
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
        if not self.base_url and not self.endpoints and self.quirks.api == "litellm":
            return self  # the SDK knows its providers' addresses
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
    conductor: ConductorConfig | None = None
    timeouts: TimeoutsConfig = Field(default_factory=TimeoutsConfig)
    retries: RetriesConfig = Field(default_factory=RetriesConfig)
    breaker: BreakerConfig = Field(default_factory=BreakerConfig)
    cache: CacheConfig = Field(default_factory=CacheConfig)
    exploration: ExplorationConfig = Field(default_factory=ExplorationConfig)
    audit: AuditConfig = Field(default_factory=AuditConfig)
    reward: dict[Name, RewardConfig] = Field(default_factory=dict)
    judge: JudgeConfig | None = None
    gate: GateConfig = Field(default_factory=GateConfig)
    dial: DialConfig | None = None
    flywheel: FlywheelConfig = Field(default_factory=FlywheelConfig)
    alarms: AlarmsConfig = Field(default_factory=AlarmsConfig)
    tracing: TracingConfig = Field(default_factory=TracingConfig)
    jobs: JobsConfig = Field(default_factory=JobsConfig)
    schedules: dict[Name, ScheduleConfig] = Field(default_factory=dict)
    patterns: dict[Name, PatternConfig] = Field(default_factory=dict)
    sandbox: SandboxConfig | None = None
    workers: list[WorkerConfig] = Field(min_length=1)
