"""A world: a function of its seed, without a worker that dominates, with cards that differ in truth."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from pointsman.config import load_text
from pointsman.config.model import WorkerConfig
from pointsman.errors import UserError
from pointsman.sandbox.cards import misdescribed
from pointsman.sandbox.lexicon import TOPICS_OF
from pointsman.sandbox.setup import toml_text, worker_configs
from pointsman.sandbox.tasks import tasks
from pointsman.sandbox.truth import mean_success, routing_accuracy, truth
from pointsman.sandbox.vocabulary import content_words, stem
from pointsman.sandbox.world import World

ROOT = Path(__file__).parents[2]
SEEDS = (*range(1, 13), 1000, 1001, 1002)
MAY_READ_TRUTH = {"platform/pointsman/sandbox/server.py", "platform/pointsman/sandbox/cards.py"}


def test_a_world_is_a_function_of_its_seed_across_processes():
    code = (
        "from pointsman.sandbox.world import World; from pointsman.sandbox.truth import truth\n"
        "w = World(7); print(w.workers, dict(w.mix), w.cards('world'), truth(7))"
    )
    runs = {
        subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": str(ROOT / "platform"), "PYTHONHASHSEED": seed},
                       capture_output=True, text=True, check=True).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert len(runs) == 1
    assert World(7).workers[0].name in runs.pop()


@pytest.mark.parametrize("seed", SEEDS)
def test_what_a_world_holds(seed):
    world = World(seed)
    assert 5 <= len(world.workers) <= 7
    assert len(set(world.names)) == len(world.names)
    assert sum(world.mix.values()) == pytest.approx(1)
    assert any("tools" in worker.capabilities for worker in world.workers)
    assert world.default in world.names
    for worker in world.workers:
        assert 0 < worker.price_cached < worker.price_input < worker.price_output
        assert 0.1 < worker.first_token < 2
        assert worker.tokens_per_second > 20


def test_worlds_differ():
    assert len({World(seed).names for seed in SEEDS}) == len(SEEDS)


@pytest.mark.parametrize("seed", SEEDS)
def test_no_worker_dominates(seed):
    world, table = World(seed), truth(seed)
    exam = list(tasks(seed, "train", 400))
    accuracy = {name: routing_accuracy(seed, [(task, name) for task in exam]) for name in world.names}
    success = {name: mean_success(seed, [(task, name) for task in exam]) for name in world.names}
    oracle = mean_success(seed, [(task, min(table.best(task.skills))) for task in exam])
    assert max(accuracy.values()) <= 0.45
    assert max(success.values()) <= 0.70
    assert 0.85 <= oracle <= 0.95
    assert routing_accuracy(seed, [(task, min(table.best(task.skills))) for task in exam]) == 1


def test_best_is_within_two_hundredths_of_the_top():
    table = truth(3)
    for skill in next(iter(table.success.values())):
        top = max(by_skill[skill] for by_skill in table.success.values())
        for worker, by_skill in table.success.items():
            assert (worker in table.best((skill,))) == (by_skill[skill] >= top - 0.02)
        assert set(table.experts[skill]) == table.best((skill,))


def test_two_skills_in_a_row_multiply():
    table = truth(1)
    worker, by_skill = next(iter(table.success.items()))
    first, second = list(by_skill)[:2]
    assert table.probability(worker, (first, second)) == pytest.approx(by_skill[first] * by_skill[second])


def test_accuracy_of_nothing_is_an_error():
    with pytest.raises(UserError, match="expected at least one pick"):
        routing_accuracy(1, [])


@pytest.mark.parametrize("seed", SEEDS)
def test_cards_of_the_three_kinds(seed):
    world = World(seed)
    truthful, own, nonsense = (world.cards(kind) for kind in ("truthful", "world", "nonsense"))
    assert list(truthful) == list(own) == list(nonsense) == list(world.names)
    assert 1 <= len(misdescribed(seed)) <= 2
    for worker, claimed in misdescribed(seed).items():
        assert all(worker not in truth(seed).experts[skill] for skill in claimed)
    for card in nonsense.values():
        assert not any(word in TOPICS_OF for word in content_words(card))
        assert 60 <= len(card) <= 200
    assert len(set(nonsense.values())) == len(nonsense)


@pytest.mark.parametrize("seed", (1, 2, 3, 1001))
def test_nonsense_cards_share_no_word_with_any_prompt(seed):
    said = frozenset().union(*map(content_words, World(seed).cards("nonsense").values()))
    for split in ("train", "held_out"):
        assert not [task.prompt for task in tasks(seed, split, 400) if content_words(task.prompt) & said]


def test_an_unknown_kind_of_cards_is_an_error():
    with pytest.raises(UserError, match="expected world, truthful, nonsense or false, got 'honest'"):
        World(1).cards("honest")


def test_the_lexicon_names_no_worker():
    names = {stem(name.partition("-")[0]) for seed in range(200) for name in World(seed).names}
    assert not names & TOPICS_OF.keys()


def imports(file: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def sources(*rooms: str) -> list[Path]:
    return [file for room in rooms for file in (ROOT / room).rglob("*.py")]


def test_only_the_server_and_the_cards_author_read_the_skill_table():
    files = sources("platform", "harness", "distill", "dashboard")
    assert len(files) > 40
    readers = {str(f.relative_to(ROOT)) for f in files if "pointsman.sandbox.truth" in imports(f)}
    assert readers == MAY_READ_TRUTH
    for file in files:
        if file.parts[-2:] != ("sandbox", "truth.py"):
            mentions = re.findall(r"importlib|__import__", file.read_text(encoding="utf-8"))
            assert not (mentions and "sandbox.truth" in file.read_text(encoding="utf-8")), file


def test_the_router_llm_reads_messages_alone():
    """What it imports, directly or not, of the sandbox: nothing that knows a world."""
    folder = ROOT / "platform" / "pointsman" / "sandbox"
    reached, todo = set(), {"router_llm"}
    while todo:
        name = todo.pop()
        reached.add(name)
        inner = {m.group(1) for i in imports(folder / f"{name}.py") if (m := re.match(r"pointsman\.sandbox\.(\w+)", i))}
        todo |= {n for n in inner if (folder / f"{n}.py").exists()} - reached
    assert reached == {"router_llm", "overlap", "lexicon", "vocabulary", "prompts", "planning", "parts"}


@pytest.mark.parametrize("kind", ["world", "truthful", "nonsense"])
def test_the_configuration_of_a_sandbox_loads(kind):
    config = load_text(toml_text(4, 8792, kind))
    world = World(4)
    assert config.router.model == "stand-in-router"
    assert config.router.base_url == "http://127.0.0.1:8792/v1"
    assert config.router.default == world.default
    assert (config.sandbox.seed, config.sandbox.cards) == (4, kind)
    assert {worker.name: worker.description for worker in config.workers} == world.cards(kind)
    for worker, simulated in zip(config.workers, world.workers, strict=True):
        assert worker.price.input == simulated.price_input
        assert worker.price.cached_input == simulated.price_cached
        assert worker.context_window == simulated.context_window
        assert tuple(worker.capabilities) == simulated.capabilities


def test_worker_configs_are_valid_entries():
    entries = worker_configs(2, "http://127.0.0.1:1/v1")
    assert [WorkerConfig.model_validate(entry).name for entry in entries] == list(World(2).names)
    assert "first_token" not in entries[0]
    assert asdict(World(2).workers[0])["first_token"] > 0
