"""Evolution on episodes of the engine and on replayed rows: plays, what is played again, roles learned, the jobs."""

from __future__ import annotations

import numpy as np
import pytest

from distill.evolve.episodes import Asked, EpisodeProblem, Ranked, Team, in_this_process
from distill.evolve.imitation import continued, start
from distill.evolve.loop import EvolveConfig, evolve
from harness.engine.acts import Roles
from harness.engine.workers import LocalWorkers
from harness.routing.base import Ask
from harness.routing.eligibility import Eligibility
from pointsman.pool import Endpoint, Pool, Worker

ARMS = ("ada", "bob", "cyd")
PROJECT = "018f0000-0000-7000-8000-000000000001"


def pool():
    return Pool(tuple(Worker(name, f"card of {name}", name, (Endpoint("http://127.0.0.1:9/v1"),)) for name in ARMS))


def problem(players, size=40, seed=0, **more):
    """Tasks of two kinds; their states tell the kind."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 2, size)
    states = np.stack([kind, 1 - kind, np.ones(size)], axis=1).astype(float)
    made = EpisodeProblem(states, ARMS, players, **more)
    made.kind = kind
    return made


def right(made):
    """A team is right where a task's first kind has ada think and bob solve, the other bob think and cyd solve."""

    def players(plays):
        wanted = {1: ("ada", "bob"), 0: ("bob", "cyd")}
        return [float((orders[0][0], orders[1][0]) == wanted[int(made[0].kind[row])]) for row, orders in plays]

    return players


def test_what_was_played_is_not_played_again_and_all_candidates_meet_the_same_tasks():
    seen = []
    made = problem(lambda plays: [seen.append(play) or float(play[1][1][0] == "ada") for play in plays], sample=10)
    candidates = np.random.default_rng(0).normal(size=(6, made.size))
    found = made.fitness(np.concatenate([candidates, candidates]), 3)
    assert found.pure[:6].tolist() == found.pure[6:].tolist() and len(seen) == len(set(seen)) == made.played
    assert len({row for row, _ in seen}) == 10
    played = made.played
    assert made.fitness(candidates, 3).shaped.tolist() == found.pure[:6].tolist() and made.played == played
    assert {row for row, _ in seen} != {row for row, _ in made.plays(candidates[0], made._rows(4))}


def test_a_roles_ranking_decides_among_who_is_offered():
    decider = Ranked((("cyd", "bob", "ada"), ("bob", "cyd", "ada"), ("ada", "bob", "cyd")))
    everybody = pool().workers
    roles = Roles(("thinker", "solver"), about={}, only={}, instead={}, forced=None)

    async def chosen(workers, roles=None):
        reasons = dict.fromkeys(ARMS)
        return await decider.decide("role", Ask("x"), Eligibility(reasons, False, workers), 1, roles)

    import asyncio

    first = asyncio.run(chosen(everybody, roles))
    assert first.draw.chosen == "cyd" and first.role.role == "thinker"
    assert asyncio.run(chosen(everybody[:2], roles)).draw.chosen == "bob"
    assert asyncio.run(chosen(everybody)).draw.chosen == "bob"  # without roles whoever solves best


def test_episodes_run_through_the_engine_and_the_verifier_says_what_they_earned():
    asked = []

    async def answering(name, messages, tools):
        asked.append(name)
        text = messages[-1]["content"]
        if "thinker of a team" in text:
            return f"Suggestion: {'begin with 5' if name == 'ada' else 'nothing'}\nNext role: solver"
        if "verifier of a team" in text:
            return "ACCEPT. fine"
        return "Answer: 7" if name == "bob" and "begin with 5" in text else "Answer: 1"

    task = Asked("What is it?", {"kind": "exact", "value": "7"})
    team = Team(pool(), LocalWorkers(answering), [task])
    good, bad = (("ada", "bob", "cyd"), ("bob", "ada", "cyd"), ("cyd", "ada", "bob")), (ARMS, ARMS, ARMS)
    players = in_this_process(team.play)
    assert players([(0, good)]) == [1.0] and asked == ["ada", "bob", "cyd"]
    assert players([(0, bad), (0, good)]) == [0.0, 1.0]


def test_evolution_and_imitation_both_learn_who_is_for_which_role():
    box = []
    train, validation, held = (problem(right(box), seed=seed) for seed in (1, 2, 3))
    alone = np.random.default_rng(0).random((40, 3)) * 0.1 + [0.1, 0.2, 0.15]

    def on(made):
        box[:] = [made]
        return made

    class Checked:
        """The problem, with the kinds of its own tasks."""

        def __init__(self, made):
            self.made = made
            self.states, self.arms = made.states, made.arms

        def __getattr__(self, name):
            return getattr(on(self.made), name)

    parts = [Checked(made) for made in (train, validation, held)]
    begun = start(parts[0], parts[1], alone, 1, epochs=15)
    found = evolve(*parts, begun.point, EvolveConfig(generations=40, sigma=0.5, population=12, seed=1))
    before, after = parts[2].rewards(begun.point).mean(), parts[2].rewards(found.chosen).mean()
    assert found.accepted and after > before + 0.3
    more = continued(parts[0], parts[1], begun, 1, seconds=0.0, episodes=200, epochs=15)
    assert parts[2].rewards(more.point).mean() > before and more.rounds > 0


def test_a_replayed_search_makes_a_candidate_only_where_it_is_better(world, keep_labels, run_job, tiny_qwen, engine):
    identity, _ = keep_labels(world(300, seed=31), PROJECT)
    train = {"labels": identity, "kind": "learned", "backbone": str(tiny_qwen)}
    base = run_job("train", {**train, "head": "index", "epochs": 1}, PROJECT).result["router_version"]
    done = run_job("evolve", {"router": base, "labels": identity, "generations": 6}, PROJECT)
    assert done.state == "done", done.reason
    told = done.result
    assert told["generations"] == 6 and told["from"] == base
    assert (told["router_version"] is not None) == told["accepted"] == (told["difference_interval"][0] > 0)
    assert set(told["controls"]) == {"start", "evolved", "shuffled", "random_search"}
    card = run_job("train", train, PROJECT).result["router_version"]
    assert "train with --head index" in run_job("evolve", {"router": card, "labels": identity}, PROJECT).reason
    assert "needs --router" in run_job("evolve", {}, PROJECT).reason


def test_a_team_is_evolved_in_the_sandbox_by_parts_that_workers_share(run_job):
    params = {"episodes": "sandbox", "world": 7, "generations": 2, "population": 4, "tasks": 20}
    done = run_job("evolve", params, PROJECT)
    assert done.state == "done", done.reason
    told = done.result
    assert told["generations"] == 2 and 0 < told["sft"] <= 1 and told["episodes_played"] > 60
    assert told["accepted"] == (told["difference_interval"][0] > 0)


@pytest.fixture(autouse=True)
def _one_thread():
    from distill.threads import one_thread

    with one_thread():
        yield
