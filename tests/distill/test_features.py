"""Hashed text, surface counts, the cache, and reward tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distill.features.cache import VectorCache
from distill.features.extras import Extras
from distill.features.hashed import TfIdf, count_matrix
from distill.features.surface import NAMES, surface_features
from distill.table import Arm, RewardTable
from harness.routing.hashed_text import HashedText, tf_idf
from pointsman.errors import UserError


def test_digits_count_alike_and_order_of_a_pair_matters() -> None:
    text = HashedText()
    assert set(text.counts("What is 17?")[0]) == set(text.counts("what IS 23?")[0])
    assert set(text.counts("dog bites man")[0]) != set(text.counts("man bites dog")[0])


def test_counts_are_of_tokens_and_neighbours() -> None:
    buckets, counts = HashedText().counts("go go go stop")
    assert counts.sum() == 4 + 3
    assert sorted(counts.tolist(), reverse=True)[:2] == [3, 2]
    assert len(set(buckets.tolist())) == len(buckets)


@given(st.text(max_size=60) | st.just("\ud800 lone"))
def test_any_text_has_counts(text: str) -> None:
    buckets, counts = HashedText(bits=10).counts(text)
    assert len(buckets) == len(counts)
    assert not len(buckets) or (buckets.min() >= 0 and buckets.max() < 1024 and counts.min() >= 1)


def test_a_long_text_is_read_at_both_ends() -> None:
    text = HashedText(max_chars=60)
    middle = "alpha " * 10 + "x" * 500 + " omega" * 10
    other = "alpha " * 10 + "y" * 900 + " omega" * 10
    assert text.counts(middle)[0].tolist() == text.counts(other)[0].tolist()


def test_rows_equal_scikit_learns(table: RewardTable) -> None:
    from sklearn.feature_extraction.text import TfidfTransformer

    text = HashedText(bits=12)
    counts = count_matrix(table.texts, text)
    ours = TfIdf.fit(counts, text)
    theirs = TfidfTransformer(sublinear_tf=True).fit(counts).transform(counts)
    assert abs(ours.rows(counts) - theirs).max() < 1e-12
    buckets, found = text.counts(table.texts[0])
    assert np.abs(tf_idf(found, ours.idf[buckets]) - theirs[0, buckets].toarray()[0]).max() < 1e-12


def test_surface_sees_code_and_questions() -> None:
    rows = surface_features(["def f(x): return x", "Who wrote it?", ""])
    assert rows.shape == (3, 37) == (3, len(NAMES))
    column = {name: number for number, name in enumerate(NAMES)}
    assert rows[0, column["code_words"]] == pytest.approx(np.log1p(2))
    assert rows[1, column["ends_with_?"]] == 1
    assert rows[1, column["starts_with_question"]] == 1
    assert np.isfinite(rows).all()


def test_the_cache_encodes_each_text_once(tmp_path: Path) -> None:
    asked: list[list[str]] = []

    def encode(texts: Any) -> Any:
        asked.append(list(texts))
        return np.array([[len(text), 1.0] for text in texts])

    cache = VectorCache(tmp_path, {"model": "a"})
    assert cache.through(["a", "bb", "a"], encode).tolist() == [[1, 1], [2, 1], [1, 1]]
    assert VectorCache(tmp_path, {"model": "a"}).through(["ccc", "bb"], encode).tolist() == [[3, 1], [2, 1]]
    assert asked == [["a", "bb"], ["ccc"]]
    VectorCache(tmp_path, {"model": "b"}).through(["a"], encode)
    assert asked[-1] == ["a"], "another space shares nothing"


def test_a_spoiled_cache_names_its_file(tmp_path: Path) -> None:
    cache = VectorCache(tmp_path, 1)
    cache.file.write_bytes(b"spoiled")
    with pytest.raises(UserError, match=r"not a cache of vectors .* delete it"):
        cache.through(["a"], lambda texts: np.ones((1, 2)))


def test_extras_come_back_from_their_tensors(table: RewardTable) -> None:
    extras = Extras.fit(table.texts, 0)
    again = Extras.restored(extras.tensors(), extras.config)
    rows = extras.rows(table.texts[:5])
    assert rows.shape == (5, extras.width)
    assert np.array_equal(rows, again.rows(table.texts[:5]))


def test_a_table_refuses_what_cannot_be(table: RewardTable) -> None:
    arms = (Arm("one", "a"), Arm("one", "b"))
    rest = {"ids": ("1",), "texts": ("t",), "tasks": (None,), "splits": (None,)}
    with pytest.raises(UserError, match="same endpoint version"):
        RewardTable(arms=arms, rewards=np.zeros((1, 2)), **rest)
    with pytest.raises(UserError, match="from 0 to 1"):
        RewardTable(arms=arms[:1], rewards=np.full((1, 1), 1.5), **rest)
    with pytest.raises(UserError, match="no such endpoint version"):
        table.with_arms(["gone"])


def test_columns_follow_endpoints_not_numbers(table: RewardTable) -> None:
    turned = table.with_arms(table.endpoints[::-1])
    for endpoint in table.endpoints:
        mine, theirs = table.endpoints.index(endpoint), turned.endpoints.index(endpoint)
        assert np.array_equal(table.rewards[:, mine], turned.rewards[:, theirs])
    assert table.without(table.endpoints[1]).endpoints == (table.endpoints[0], *table.endpoints[2:])
