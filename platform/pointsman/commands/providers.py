"""Providers that `pointsman init` knows: the variable of the key, the address, two models each.

Prices are left out: they change, and an unknown price is logged as unknown. So do model ids;
`pointsman doctor` asks each provider whether it has them.
"""

from __future__ import annotations

from dataclasses import dataclass

from pointsman.words import Capability

TOOLS: tuple[Capability, ...] = ("tools",)
SEES: tuple[Capability, ...] = ("tools", "images", "json_schema")


@dataclass(frozen=True)
class Offer:
    """A worker to write into the file. `model` is the provider's id, `quirks` departures from OpenAI's API."""

    name: str
    model: str
    base_url: str
    description: str
    source: str
    api_key_env: str | None = None
    context_window: int | None = None
    capabilities: tuple[Capability, ...] = ()
    quirks: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class KnownModel:
    name: str
    model: str
    description: str
    context_window: int
    capabilities: tuple[Capability, ...] = TOOLS


@dataclass(frozen=True)
class Provider:
    """`models`: the strong one first, the quick one last, which also suits as router LLM."""

    title: str
    api_key_env: str
    base_url: str
    models: tuple[KnownModel, ...]
    quirks: tuple[tuple[str, str], ...] = ()

    def offers(self) -> tuple[Offer, ...]:
        return tuple(
            Offer(
                name=model.name,
                model=model.model,
                base_url=self.base_url,
                description=model.description,
                source=self.title,
                api_key_env=self.api_key_env,
                context_window=model.context_window,
                capabilities=model.capabilities,
                quirks=self.quirks,
            )
            for model in self.models
        )


STRONG = (
    "Strong general model: hard reasoning, mathematics, long or delicate writing, difficult code. "
    "Slower and dearer than the small ones; worth it where a mistake is costly."
)
QUICK = (
    "Small and quick: short questions, summaries, extraction, classification, simple edits and code. "
    "Cheap; weaker at long chains of reasoning."
)
SIGHTED = " Reads images."

PROVIDERS: tuple[Provider, ...] = (
    Provider(
        "OpenAI",
        "OPENAI_API_KEY",
        "https://api.openai.com/v1",
        (
            KnownModel("gpt-5", "gpt-5", STRONG + SIGHTED, 400_000, SEES),
            KnownModel("gpt-5-mini", "gpt-5-mini", QUICK + SIGHTED, 400_000, SEES),
        ),
        (("max_tokens_field", "max_completion_tokens"),),
    ),
    Provider(
        "Anthropic (its OpenAI-compatible endpoint)",
        "ANTHROPIC_API_KEY",
        "https://api.anthropic.com/v1",
        (
            KnownModel("claude-sonnet", "claude-sonnet-4-5", STRONG + SIGHTED, 200_000, ("tools", "images")),
            KnownModel("claude-haiku", "claude-haiku-4-5", QUICK + SIGHTED, 200_000, ("tools", "images")),
        ),
    ),
    Provider(
        "Google Gemini (its OpenAI-compatible endpoint)",
        "GEMINI_API_KEY",
        "https://generativelanguage.googleapis.com/v1beta/openai",
        (
            KnownModel("gemini-pro", "gemini-2.5-pro", STRONG + SIGHTED + " Very long documents.", 1_048_576, SEES),
            KnownModel("gemini-flash", "gemini-2.5-flash", QUICK + SIGHTED + " Very long documents.", 1_048_576, SEES),
        ),
    ),
    Provider(
        "Mistral",
        "MISTRAL_API_KEY",
        "https://api.mistral.ai/v1",
        (
            KnownModel("mistral-large", "mistral-large-latest", STRONG + " European languages.", 128_000),
            KnownModel("mistral-small", "mistral-small-latest", QUICK + " European languages.", 128_000),
        ),
    ),
    Provider(
        "DeepSeek",
        "DEEPSEEK_API_KEY",
        "https://api.deepseek.com/v1",
        (
            KnownModel(
                "deepseek-reasoner",
                "deepseek-reasoner",
                "Thinks at length before it answers: mathematics, logic, hard code. Slow.",
                128_000,
            ),
            KnownModel("deepseek-chat", "deepseek-chat", "General chat, writing and code; cheap.", 128_000),
        ),
    ),
    Provider(
        "Groq",
        "GROQ_API_KEY",
        "https://api.groq.com/openai/v1",
        (
            KnownModel(
                "groq-llama-70b",
                "llama-3.3-70b-versatile",
                "General open model served very fast: conversation, writing, everyday code and reasoning.",
                131_072,
            ),
            KnownModel("groq-llama-8b", "llama-3.1-8b-instant", QUICK + " Answers at once.", 131_072),
        ),
    ),
    Provider(
        "Together",
        "TOGETHER_API_KEY",
        "https://api.together.xyz/v1",
        (
            KnownModel(
                "together-llama-70b",
                "meta-llama/Llama-3.3-70B-Instruct-Turbo",
                "General open model: conversation, writing, everyday code and reasoning.",
                131_072,
            ),
            KnownModel("together-qwen-7b", "Qwen/Qwen2.5-7B-Instruct-Turbo", QUICK, 32_768),
        ),
    ),
    Provider(
        "OpenRouter",
        "OPENROUTER_API_KEY",
        "https://openrouter.ai/api/v1",
        (
            KnownModel(
                "openrouter-llama-70b",
                "meta-llama/llama-3.3-70b-instruct",
                "General open model: conversation, writing, everyday code and reasoning.",
                131_072,
            ),
            KnownModel("openrouter-llama-8b", "meta-llama/llama-3.1-8b-instruct", QUICK, 131_072),
        ),
    ),
)
