"""The closed sets of words that code, tables, configuration and interface share.

Each is a `Literal` for the type checker and a tuple for the database's check constraints.
"""

from __future__ import annotations

from typing import Literal, get_args

RouterKind = Literal["learned", "harness", "classic", "rule", "default"]
Pattern = Literal["single", "trinity", "workflow", "cascade", "sidekick", "handoff", "vote"]
DecisionKind = Literal["route", "role", "delegate", "escalate", "vote", "stop", "pattern"]
Origin = Literal["traffic", "audit", "probe", "replay", "rollout", "shadow", "dry_run"]
Forced = Literal["sticky", "direct", "only_one", "fallback", "plan", "rule", "suggested"]
OutcomeStatus = Literal["ok", "upstream_error", "truncated", "client_cancelled", "timeout", "rejected", "abandoned"]
CallStatus = Literal["ok", "error", "truncated", "cancelled", "timeout"]
Surface = Literal["chat.completions", "responses", "messages", "embeddings", "route"]
WorkerApi = Literal["openai", "anthropic", "litellm"]
CallPurpose = Literal["serve", "route", "audit", "probe", "judge", "rollout", "shadow", "replay"]
EpisodeSource = Literal["given", "inferred", "new"]
RouterState = Literal["draft", "candidate", "shadow", "canary", "serving", "retired"]
Capability = Literal["tools", "images", "json_schema", "logprobs", "audio", "reasoning", "embeddings"]
ParseStatus = Literal[
    "ok",  # the reply named one eligible worker in the form asked for
    "repaired",  # it did, after fences, prose, case or aliases were dealt with
    "ambiguous",  # it named several
    "unknown",  # it named none that is eligible
    "empty",  # there was no text
    "not_parsed",  # this router has no reply to parse (rule, default)
]
BudgetPeriod = Literal["day", "month", "total"]
IdempotencyState = Literal["running", "done"]
MemoryKind = Literal["tool", "context", "state"]
JobState = Literal["queued", "running", "cancelling", "cancelled", "failed", "done", "skipped", "dead"]
JobQueue = Literal["default", "probe", "train"]
ChunkState = Literal["queued", "running", "done", "failed"]
JobLogLevel = Literal["info", "warning", "error", "metric"]
RewardSource = Literal["verifier", "feedback", "judge"]
RewardReason = Literal[
    "unknown",  # no verifier, feedback or judge has said anything
    "no_cost",  # the spec weighs cost, and it is not known
    "no_latency",  # the spec weighs latency, and it is not known
    "fallback",  # another worker answered for the intended one
    "upstream_error",  # no worker answered, or the answer broke off
    "timeout",
    "truncated",
]
JudgeMode = Literal["grade", "pairwise"]
AuditKind = Literal["probe", "log", "live"]
AuditState = Literal["running", "done", "stopped"]
GateState = Literal["registered", "running", "ready", "promoted", "rolled_back", "expired", "stopped"]
GateArm = Literal["candidate", "incumbent"]
GateUnit = Literal["episode", "request"]
Claim = Literal["better_than_incumbent", "best_of_finalists", "oracle_of_pool", "cheap_routing"]
AlphaPurpose = Literal["certification", "gate"]
AlarmKind = Literal["worker_reward", "silent_update", "input_mix", "guardrail", "endpoint_changed", "card_changed"]
GateMode = Literal["auto", "propose"]
PromotionKind = Literal["promote", "roll_back"]
DetectorKind = Literal["worker_reward", "silent_update", "input_mix", "pool"]
ReviewRule = Literal["disagreement", "low_confidence", "bad_outcome", "reask", "random"]
ReviewState = Literal["open", "done"]
ReviewVerdict = Literal["good_fit", "underpowered", "overprovisioned", "failed"]
TurnState = Literal["running", "proposed", "promoted", "refused", "stopped", "failed"]
LinkState = Literal["running", "done", "skipped", "refused", "failed"]
ActorRole = Literal["viewer", "reviewer", "operator", "admin"]
Scope = Literal["serve", "feedback", "jobs", "admin"]


def members(literal: object) -> tuple[str, ...]:
    """The words of one closed set, in the order they are written above."""
    return get_args(literal)
