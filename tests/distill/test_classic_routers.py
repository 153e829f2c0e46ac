"""Classic routers: what scikit-learn computes, what the gateway's numpy computes, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from distill.classic.clusters import fit_clusters
from distill.classic.heads import fit_posterior
from distill.classic.means import arm_means, shrunk_means
from distill.classic.text_routers import TextRouterConfig, fit, write
from distill.evaluate.values import realised
from distill.features.hashed import TfIdf, count_matrix
from distill.mathematics import one_hot
from distill.table import RewardTable
from harness.routing.base import Ask, RouterFailed
from harness.routing.classic import UNKNOWN, load, load_classic
from harness.routing.hashed_text import HashedText
from pointsman.config import Settings
from pointsman.config.load import load_text
from pointsman.errors import UserError
from pointsman.pool import Endpoint, Worker

METHODS = ("constant", "random", "mixture", "linear", "logistic", "clusters", "neighbours")


def config(method: Any) -> TextRouterConfig:
    return TextRouterConfig(method, bits=12, dimensions=16, neighbours=20)


def workers(table: RewardTable) -> tuple[Worker, ...]:
    """Workers whose endpoint hashes are the table's."""
    made = []
    for arm in table.arms:
        worker = Worker(arm.worker, arm.card, "m", (Endpoint("http://127.0.0.1:1"),))
        worker.__dict__["endpoint_hash"] = arm.endpoint
        made.append(worker)
    return tuple(made)


def test_shrunk_means_against_the_formula() -> None:
    rewards = np.array([[1.0, np.nan], [0.0, 1.0], [1.0, 0.0]])
    shares = one_hot(np.array([0, 0, 1]), 2)
    assert arm_means(rewards).tolist() == [2 / 3, 0.5]
    values = shrunk_means(shares, rewards, strength=2)
    assert values[0] == pytest.approx([(1 + 2 * 2 / 3) / 4, (1 + 2 * 0.5) / 3])
    assert values[1] == pytest.approx([(1 + 2 * 2 / 3) / 3, (0 + 2 * 0.5) / 3])


def test_an_arm_never_tried_has_the_others_mean() -> None:
    assert arm_means(np.array([[0.2, np.nan], [0.6, np.nan]])).tolist() == pytest.approx([0.4, 0.4])


@pytest.mark.parametrize("method", METHODS)
def test_what_is_written_is_what_is_served(tmp_path: Path, table: RewardTable, method: str) -> None:
    router = fit(table, config(method), seed=3)
    write(tmp_path, router)
    served = load_classic(tmp_path)
    offered = workers(table)
    for text in table.texts[:20]:
        scored = served.score_now(Ask(text), offered, 7)
        assert list(scored.scores) == [worker.name for worker in offered]
        assert list(scored.scores.values()) == pytest.approx(router.scores([text], 7)[0].tolist(), abs=1e-12)
        assert not scored.flags


def test_the_mixture_equals_scikit_learns_pipeline(table: RewardTable) -> None:
    from sklearn.linear_model import LogisticRegression

    text = HashedText(12, 1000)
    counts = count_matrix(table.texts, text)
    rows = TfIdf.fit(counts, text).rows(counts)
    names, numbers = table.task_numbers()
    fitted = LogisticRegression(C=30.0, max_iter=60, tol=1e-3).fit(rows.astype(np.float32), numbers)
    values = shrunk_means(one_hot(numbers, len(names)), table.rewards)
    expected = fitted.predict_proba(rows) @ values
    assert np.abs(fit(table, config("mixture"), 0).scores(table.texts) - expected).max() < 1e-6


def test_ridge_and_logistic_equal_scikit_learns(table: RewardTable) -> None:
    from scipy.sparse import vstack
    from sklearn.linear_model import LogisticRegression, Ridge

    text = HashedText(12, 1000)
    counts = count_matrix(table.texts, text)
    rows = TfIdf.fit(counts, text).rows(counts)
    ridge = Ridge(alpha=1.0, solver="lsqr", tol=1e-6).fit(rows, table.rewards[:, 0])
    assert np.abs(fit(table, config("linear"), 0).scores(table.texts)[:, 0] - ridge.predict(rows)).max() < 1e-6
    share = np.concatenate([table.rewards[:, 1], 1 - table.rewards[:, 1]])
    outcome = np.repeat([1, 0], len(table))
    logistic = LogisticRegression(C=30.0, max_iter=100).fit(vstack([rows, rows]).tocsr(), outcome, sample_weight=share)
    ours = fit(table, config("logistic"), 0).scores(table.texts)[:, 1]
    assert np.abs(ours - logistic.predict_proba(rows)[:, 1]).max() < 1e-6


@pytest.mark.parametrize("method", ["mixture", "linear", "logistic", "clusters", "neighbours"])
def test_routers_that_read_the_text_beat_the_best_single(world: Any, method: str) -> None:
    taught, fresh = world(600, seed=1), world(400, seed=2)
    earned = realised(fresh.rewards, fit(taught, config(method), 0).scores(fresh.texts)).mean()
    single = fresh.rewards[:, int(arm_means(taught.rewards).argmax())].mean()
    assert earned > single + 0.15


def test_methods_learn_from_rows_with_untried_arms(world: Any) -> None:
    taught, fresh = world(900, seed=3, untried=0.5), world(300, seed=4)
    for method in ("mixture", "linear", "logistic", "clusters"):
        scores = fit(taught, config(method), 0).scores(fresh.texts)
        assert np.isfinite(scores).all()
        assert realised(fresh.rewards, scores).mean() > 0.7


def test_reordering_and_renaming_change_nothing(table: RewardTable) -> None:
    turned = table.with_arms(table.endpoints[::-1])
    first = fit(table, config("mixture"), 0).scores(table.texts[:30])
    again = fit(turned, config("mixture"), 0).scores(table.texts[:30])
    assert np.abs(first - again[:, ::-1]).max() < 1e-9


def test_an_unknown_worker_is_never_chosen(tmp_path: Path, table: RewardTable) -> None:
    write(tmp_path, fit(table, config("mixture"), 0))
    served = load_classic(tmp_path)
    stranger = Worker("new", "card", "m", (Endpoint("http://127.0.0.1:1"),))
    scored = served.score_now(Ask(table.texts[0]), (*workers(table)[:2], stranger), 0)
    assert scored.scores["new"] == UNKNOWN < min(scored.scores["worker-0"], scored.scores["worker-1"])
    assert scored.flags == ("unknown_workers",)
    with pytest.raises(RouterFailed, match="no_known_worker"):
        served.score_now(Ask("x"), (stranger,), 0)


def test_spoiled_artefacts_are_refused(tmp_path: Path, table: RewardTable) -> None:
    write(tmp_path, fit(table, config("constant"), 0))
    tensors = tmp_path / "router.safetensors"
    good = tensors.read_bytes()
    tensors.write_bytes(good[:-1] + b"\x00" if good[-1:] != b"\x00" else good[:-1] + b"\x01")
    with pytest.raises(UserError, match="bytes are not those that"):
        load_classic(tmp_path)
    tensors.write_bytes(good)
    content = json.loads((tmp_path / "router.json").read_text())
    (tmp_path / "router.json").write_text(json.dumps(content | {"method": "mixture"}))
    with pytest.raises(UserError, match="a mixture router needs idf, weight, bias, values"):
        load_classic(tmp_path)
    (tmp_path / "router.json").write_text(json.dumps(content | {"method": "magic"}))
    with pytest.raises(UserError, match="not a classic router"):
        load_classic(tmp_path)


def test_refusals_say_what_is_missing(world: Any) -> None:
    empty = world(30)
    with pytest.raises(UserError, match="no requests to train on"):
        fit(empty.rows(np.array([], np.int64)), config("constant"), 0)
    with pytest.raises(UserError, match=r"at least two tasks, found 1"):
        fit_posterior(np.ones((3, 2)), np.array([0, 0, -1]), ("only",), c=1, iterations=5)
    with pytest.raises(UserError, match=r"40 wanted of only 30"):
        fit(empty, TextRouterConfig("neighbours", bits=10, dimensions=4, neighbours=40), 0)


def test_two_tasks_give_two_shares() -> None:
    rng = np.random.default_rng(0)
    rows = np.vstack([rng.normal(-1, 1, (50, 3)), rng.normal(1, 1, (50, 3))])
    posterior = fit_posterior(rows, np.repeat([0, 1], 50), ("a", "b"), c=1.0, iterations=50)
    shares = posterior.shares(rows)
    assert shares.sum(axis=1) == pytest.approx(1)
    assert (shares.argmax(axis=1) == np.repeat([0, 1], 50)).mean() > 0.85


def test_clusters_find_groups_without_labels() -> None:
    rng = np.random.default_rng(1)
    side = rng.integers(0, 2, 400)
    points = rng.normal(0, 0.1, (400, 2)) + np.where(side[:, None] == 0, [-1.0, 0.0], [1.0, 0.0])
    rewards = np.stack([side == 0, side == 1], axis=1).astype(np.float64)
    clusters = fit_clusters(points, rewards, seed=0)
    assert (clusters.scores(points).argmax(axis=1) == side).mean() == 1.0


def test_the_gateways_configuration_names_a_folder(tmp_path: Path, table: RewardTable) -> None:
    write(tmp_path / "routers" / "one", fit(table, config("constant"), 0))
    workers_toml = '[[workers]]\nname = "a"\ndescription = "d"\nmodel = "m"\nbase_url = "http://127.0.0.1:1"\n'
    settings = Settings(tmp_path, 8790, tmp_path / "pointsman.toml", {})
    assert load(load_text(workers_toml), settings, None) is None
    router = load(load_text('[router]\nclassic = "routers/one"\n' + workers_toml), settings, "parent")
    assert router is not None
    assert router.version.kind == "classic"
    assert router.version.parent_id == "parent"
    assert router.version.config["method"] == "constant"
