"""The job kinds that learn from the log: labels, training of routers, search by evolution, comparison.

Their runners are in `distill` (extra `distill`). A label set, a router version or a job is named by its id, or by
its first eight characters.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from pointsman.jobs.kind import Estimate, JobKind
from pointsman.jobs.params import option

Encoder = Literal["minilm", "text"]
Target = Literal["softmax", "best"]
SplitBy = Literal["time", "given"]
Trained = Literal["classic", "learned"]
ClassicMethod = Literal["auto", "constant", "random", "linear", "logistic", "mixture", "clusters", "neighbours"]
Tuner = Literal["none", "svf", "lora"]
HeadName = Literal["card", "index"]
Episodes = Literal["replay", "sandbox"]


@dataclass(frozen=True)
class Labels:
    """Makes a label set of the log: for each request, how good each worker would be, and how sure that is."""

    origins: tuple[str, ...] = option(
        ("probe", "audit", "traffic"), "rows to learn from", least=1, choices=("probe", "audit", "replay", "traffic")
    )
    run: str | None = option(None, "only rows of the probe run or import of this name", least=1, most=100)
    reward: str = option("default", "the reward spec that traffic is read under", least=1, most=100)
    encoder: Encoder = option("minilm", "what estimates read of a text: a sentence encoder, or counts of words")
    target: Target = option("softmax", "labels: softmax of the estimate, or the probability of being best")
    temperature: float = option(0.03, "of the softmax", least=0.001, most=10)
    own_strength: float = option(200.0, "answers of its group that its own are weighed against", least=0, most=1e6)
    doubly_robust_from: int = option(2_000, "drawn decisions below which the direct method is used", least=0)
    feedback_weight: float = option(1.0, "what a rating weighs against a verifier's score", least=0, most=1)
    judge_weight: float = option(0.5, "what a judge's score weighs", least=0, most=1)
    verdict_weight: float = option(0.5, "what a word that another worker is better weighs", least=0, most=1)
    source_cap: float = option(0.5, "the most that ratings, judges and verdicts each weigh of all", least=0, most=1)
    rater_cap: float = option(0.2, "the most that one rater weighs of all ratings", least=0.01, most=1)
    split: SplitBy = option("time", "held-out rows: the latest, or those that the data names")
    least: int = option(600, "requests below which no set is made", least=1)
    toy: bool = option(False, "make a set of however few requests, to try things out")
    seed: int = option(1, "another one takes other folds", least=0, most=2**53)


@dataclass(frozen=True)
class Train:
    """Trains a router on a label set, and writes it as a candidate."""

    labels: str = option(help="the label set", least=8, most=36)
    kind: Trained = option("classic", "served by the gateway itself, or by the router server")
    method: ClassicMethod = option("auto", "of a classic router; auto: the best on validation rows")
    backbone: str | None = option(None, "of a learned router: `minilm`, a folder or a hub name; null: by the machine")
    revision: str | None = option(None, "the hub's revision of the backbone", least=1, most=200)
    head: HeadName = option("card", "scores workers by values per latent type, or by a row of weights each")
    tuner: Tuner = option("none", "what of the backbone is trained: nothing, singular values, or low-rank updates")
    layers: int = option(2, "how many of the last layers are tuned", least=1, most=1_000)
    epochs: int = option(60, "at most", least=1, most=100_000)
    learning_rate: float = option(0.01, "of the head", least=1e-7, most=10)
    keep_arms: int = option(0, "workers that each training row shows, at random; 0: all", least=0, most=1_000)
    candidate: bool = option(True, "write it as a candidate; else as a draft, which nothing serves")
    seed: int = option(1, "another one takes other steps", least=0, most=2**53)


@dataclass(frozen=True)
class Evolve:
    """Searches on from a learned router by evolution of its numbers, on the reward of whole episodes."""

    router: str | None = option(None, "the learned version to start from, on replay", least=8, most=36)
    labels: str | None = option(None, "the label set that is replayed", least=8, most=36)
    episodes: Episodes = option("replay", "what a candidate is judged by: logged rows, or turns in the sandbox")
    generations: int = option(60, "at most", least=1, most=100_000)
    sigma: float = option(0.03, "the first step size", least=1e-6, most=10)
    population: int = option(0, "candidates of a generation; 0: 4 + 3 ln n", least=0, most=10_000)
    tasks: int = option(200, "sandbox tasks that are searched on", least=20, most=100_000)
    world: int = option(1, "the seed of the sandbox's world", least=0, most=2**31)
    seed: int = option(42, "another one takes other steps", least=0, most=2**53)


@dataclass(frozen=True)
class Evaluate:
    """Compares routers on a label set's untouched part, with intervals, ablations and plots."""

    labels: str = option(help="the label set", least=8, most=36)
    routers: tuple[str, ...] = option((), "router versions; none named: the newest trained on this set", most=20)
    ablations: bool = option(True, "mask, drop and retrain, add by card and probes, rename, version bump")
    probes: int = option(100, "probes by which a worker is added", least=1, most=100_000)
    seed: int = option(1, "another one draws other probes", least=0, most=2**53)


def _nothing_called(what: str) -> Estimate:
    return Estimate(None, Decimal(0), f"no calls are made; the time depends on {what}")


LEARNING: tuple[JobKind, ...] = (
    JobKind(
        "labels",
        Labels,
        "train",
        ("rewards", "estimate", "store"),
        "make a label set of the log: how good each worker would be for each request",
        lambda params, facts: _nothing_called("the log: about 20 s for 5,000 requests"),
        extra="distill",
    ),
    JobKind(
        "train",
        Train,
        "train",
        ("train", "store"),
        "train a router on a label set",
        lambda params, facts: _nothing_called("backbone and label set"),
        extra="distill",
    ),
    JobKind(
        "evolve",
        Evolve,
        "train",
        ("search", "judge", "store"),
        "search on from a learned router by evolution, on the reward of whole episodes",
        lambda params, facts: _nothing_called(f"{params.generations} generations"),
        extra="distill",
        shared=True,
    ),
    JobKind(
        "evaluate",
        Evaluate,
        "train",
        ("compare", "ablate", "store"),
        "compare routers on rows that no training saw, with intervals, ablations and plots",
        lambda params, facts: _nothing_called("the label set; ablations fit a router for each worker"),
        extra="distill",
    ),
)
