"""The cards that go along: what a router or a label set is, what it rests on, what was measured, whose words it saw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from distill.outlet.evaluations import Evaluation

NOT_STATED = "not stated: look up whether the provider's terms allow training on its outputs"
_METRICS = (
    ("mean reward", "value"),
    ("against the best single worker", "vs_best_single"),
    ("against the best cheap router", "vs_cheap"),
    ("share of the gap to the oracle that is closed", "gap"),
)


@dataclass(frozen=True)
class Source:
    """Where a router's knowledge comes from: a label set, and how many answers of each worker it had."""

    label_set: str
    hash: str
    data_hash: str
    parts: Mapping[str, int]
    origins: Mapping[str, int]
    answers: Mapping[str, int]


def licences(answers: Mapping[str, int], stated: Mapping[str, str]) -> list[str]:
    """The table of the workers whose outputs were used."""
    lines = ["| worker | answers used | licence or terms |", "|---|---|---|"]
    lines += [f"| {name} | {number} | {stated.get(name, NOT_STATED)} |" for name, number in sorted(answers.items())]
    return lines


def router_card(
    identity: str,
    kind: str,
    config: Mapping[str, Any],
    files: Sequence[str],
    source: Source | None,
    evaluation: Evaluation | None,
    stated: Mapping[str, str],
) -> str:
    """README.md of an exported router."""
    base = _base(config)
    adapted = any(name.startswith("adapter/") for name in files)
    lines = ["---", "license: other", f"library_name: {'peft' if adapted else 'pointsman'}"]
    lines += [f"base_model: {base}"] if base else []
    lines += ["tags: [llm-routing, pointsman]", "---", "", f"# Router {identity[:8]} ({kind})", ""]
    lines += [
        "Chooses among LLM workers for a request; it writes no text. Made by Pointsman.", "",
        f"* version `{identity}`, kind `{kind}`", *_made_of(config), "", "## Data", "", *_data(source), "",
        "## Measured", "", *_measured(evaluation), "", "## Whose outputs it learned from", "",
    ]  # fmt: skip
    lines += licences(source.answers if source else {}, stated)
    lines += ["", "## How to load it", "", *_loading(kind, base, adapted, config)]
    return "\n".join(lines) + "\n"


def labels_card(source: Source, rows: int, left_out: int, form: str, stated: Mapping[str, str]) -> str:
    """README.md of an exported label set."""
    splits = [f"  - split: {part}\n    path: {part}.{form}" for part, number in source.parts.items() if number]
    head = ["---", "license: other", "task_categories: [text-classification]", "configs:", "- config_name: default"]
    head += ["  data_files:", *splits, "tags: [llm-routing, pointsman]", "---", ""]
    return "\n".join([
        *head, f"# Label set {source.label_set[:8]}", "",
        "For each request, how good each worker would be, and how sure that is. Lists are in the order of `arms` in",
        "`labels.json`: `target` is what a router is trained towards (it sums to 1), `mean` and `deviation` are the",
        "estimate of the reward in [0, 1], `reward` is what was known of it (null: nothing). `weight` is what a row",
        "counts.", "",
        *_data(source), "",
        f"{rows} requests are here; {left_out} of the set are not, since they may no longer be learned from.", "",
        "## Whose outputs these are judgements of", "", *licences(source.answers, stated), "",
    ])  # fmt: skip


def _base(config: Mapping[str, Any]) -> str | None:
    backbone = config.get("identity", {}).get("backbone")
    return None if backbone is None else str(backbone)


def _made_of(config: Mapping[str, Any]) -> list[str]:
    identity = config.get("identity")
    if identity is None:
        return [f"* method `{config.get('method')}`, on hashed words of the ask; served by numpy alone"]
    commit = identity.get("commit")
    known = f"commit `{commit}`" if commit else "files as hashed in `learned.json`"
    return [
        f"* backbone `{identity.get('backbone')}`, {known}; reads position `{identity.get('position')}`",
        f"* head `{config.get('head')}` over {len(config.get('endpoints', ()))} endpoint versions",
    ]


def _data(source: Source | None) -> list[str]:
    if source is None:
        return ["The label set that it was trained on is not in this log any more, or was never named."]
    parts = ", ".join(f"{part} {number}" for part, number in source.parts.items())
    origins = ", ".join(f"{origin} {number}" for origin, number in sorted(source.origins.items()))
    return [
        f"* label set `{source.label_set}`", f"* hash of its content `{source.hash}`",
        f"* SHA-256 of its file `{source.data_hash}`", f"* requests: {parts}; by origin: {origins}",
    ]  # fmt: skip


def _measured(evaluation: Evaluation | None) -> list[str]:
    if evaluation is None:
        return ["Nothing: no `pointsman evaluate` has compared it. Do not serve it on the strength of this card."]
    frame, line = evaluation.frame, evaluation.line
    lines = [
        f"On {evaluation.rows} requests that no training saw ({evaluation.basis}), label set `{evaluation.label_set}`,",
        f"{evaluation.ended_at:%Y-%m-%d}; 95% intervals:", "", "| | estimate | interval |", "|---|---|---|",
    ]  # fmt: skip
    for words, name in _METRICS:
        value = line.get("gap_closed" if name == "gap" else name)
        interval = line.get(f"{name}_interval")
        if value is not None and interval is not None:
            lines.append(f"| {words} | {value} | [{interval[0]}, {interval[1]}] |")
    lines += [
        f"| best single worker ({frame.get('best_single')}) | {frame.get('best_single_value')} | |",
        f"| oracle | {frame.get('oracle')} | {frame.get('oracle_interval', '')} |",
    ]
    refused = line.get("refused")
    return [*lines, "", f"Speaks against it: {'; '.join(refused)}." if refused else "Nothing speaks against it."]


def _loading(kind: str, base: str | None, adapted: bool, config: Mapping[str, Any]) -> list[str]:
    if kind == "classic":
        return [
            "```python", "from pathlib import Path", "from harness.routing.classic_model import read_model", "",
            'model, content = read_model(Path("."))',
            'print(model.endpoints, model.scores("What is 2 + 2?", 0))', "```",
        ]  # fmt: skip
    lines = [
        "Whole, with Pointsman (`BASE` is the folder of the backbone):", "", "```python", "from pathlib import Path",
        "from distill.router_model.checkpoint import load_router", "",
        'router = load_router(Path("."), backbone_folder=BASE)',
        'print(router.head.endpoints, router.logits(["What is 2 + 2?"]))', "```",
    ]  # fmt: skip
    if not adapted:
        return [*lines, "", f"The backbone `{base}` is as it was published; `head.safetensors` reads its states."]
    registering = ["from distill.svf import register", ""] if config.get("svf") else [""]
    call = ["register()  # PEFT must know singular-value tuning first"] if config.get("svf") else []
    return [
        *lines, "", "Its adapted backbone alone, with transformers and PEFT:", "", "```python",
        "from peft import PeftModel", "from transformers import AutoModel", *registering, *call,
        'model = PeftModel.from_pretrained(AutoModel.from_pretrained(BASE), "adapter").eval()', "```",
    ]  # fmt: skip
