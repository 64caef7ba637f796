"""The merge tree: at every threshold its clusters are the connected components of the links that are used."""

import math

import naive_sweep
import numpy as np
import pytest
from effort import examples
from hypothesis import given
from hypothesis import strategies as st

from fastbcubed.runtime.threads import Pool
from fastbcubed.sweep_links.merge_tree import MergeTree, merge_tree

SCORES = st.one_of(st.sampled_from([0.0, -0.0, 0.5, 1.0]), st.floats(allow_nan=False))
LINKS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), SCORES), max_size=25)


def tree_of(n_items: int, links: list[tuple[int, int, float]], ascending: bool = False) -> MergeTree:
    left, right, scores = (np.array([link[k] for link in links]) for k in range(3))
    codes = left.astype(np.int32), right.astype(np.int32)
    return merge_tree(n_items, [*codes, scores.astype(np.float64)], Pool(1), ascending=ascending)


@examples(150)
@given(LINKS, st.booleans())
def test_clusters_at_every_threshold_are_components(
    links: list[tuple[int, int, float]], ascending: bool
) -> None:
    tree = tree_of(10, links, ascending)
    assert sorted(tree.order.tolist()) == list(range(10))
    changes = 0
    before = naive_sweep.clusters_at([], None, range(10))
    for threshold in naive_sweep.thresholds(links, ascending):
        labels, n = tree.labels(tree.n_used(threshold))
        expected = naive_sweep.clusters_at(links, threshold, range(10), ascending)
        assert labels.tolist() == list(expected.values())
        assert n == len(set(expected.values()))
        changes += expected != before
        before = expected
    assert tree.n_levels == changes


@examples(60)
@given(LINKS.filter(bool))
def test_each_level_is_joined_by_a_link_of_its_score(links: list[tuple[int, int, float]]) -> None:
    tree = tree_of(10, links)
    place = {item: k for k, item in enumerate(tree.order.tolist())}
    for k, (level, (left, right)) in enumerate(zip(tree.levels.tolist(), tree.links.tolist(), strict=True)):
        if level == tree.n_levels:
            assert left == right == -1
            continue
        assert (left, right, tree.thresholds[level]) in links
        low, high = sorted((place[left], place[right]))
        assert low <= k < high
        assert tree.levels[low:high].max() == level


def test_a_long_chain_and_many_ties() -> None:
    n = 500
    left = np.arange(n - 1, dtype=np.int32)
    scores = np.round(np.linspace(1.0, 0.0, n - 1), 2)
    tree = merge_tree(n, [left, left + 1, scores.copy()], Pool(1))
    assert tree.n_levels == np.unique(scores).size
    labels, count = tree.labels(tree.n_used(0.5))
    joined = scores >= 0.5
    assert count == n - np.count_nonzero(joined)
    assert labels.tolist() == np.concatenate([[0], np.cumsum(~joined)]).tolist()


def test_equal_scores_are_one_level_wherever_blocks_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "fastbcubed.sweep_links.merge_tree.blocks", lambda n, *_: [(k, k + 1) for k in range(n)]
    )
    tree = tree_of(5, [(0, 1, 0.5), (1, 2, 0.5), (2, 3, 0.5), (3, 4, 0.25)])
    assert tree.n_levels == 2 and tree.thresholds.tolist() == [0.5, 0.25]


def test_zeros_of_either_sign_are_one_score() -> None:
    tree = tree_of(3, [(0, 1, 0.0), (1, 2, -0.0)])
    assert tree.n_levels == 1
    assert tree.n_used(-0.0) == tree.n_used(0.0) == 1


@pytest.mark.slow
def test_threads_change_nothing() -> None:
    rng = np.random.default_rng(0)
    n, m = 50_000, 3 << 20
    left, right = rng.integers(0, n, (2, m)).astype(np.int32)
    scores = rng.random(m)
    with Pool(1) as one, Pool(4) as four:
        trees = [merge_tree(n, [left, right, scores.copy()], pool) for pool in (one, four)]
    for name in ("order", "levels", "links", "merges", "thresholds", "scores"):
        assert np.array_equal(getattr(trees[0], name), getattr(trees[1], name))


@pytest.mark.parametrize("n_items", [1, 5])
def test_without_links_every_item_is_alone(n_items: int) -> None:
    tree = tree_of(n_items, [])
    assert (tree.n_levels, tree.labels(0)[1]) == (0, n_items)


@examples(60)
@given(LINKS.filter(bool), st.booleans())
def test_merges_stand_by_level_and_scores_by_strength(
    links: list[tuple[int, int, float]], ascending: bool
) -> None:
    tree = tree_of(10, links, ascending)
    assert tree.merges.tolist() == np.argsort(tree.levels[:-1], kind="stable").tolist(), "ties by place"
    given_scores = [score for _, _, score in links]
    assert tree.scores.tolist() == sorted(given_scores, reverse=not ascending)
    for threshold in (*given_scores, -math.inf, 0.3, math.inf):
        reaching = [s <= threshold if ascending else s >= threshold for s in given_scores]
        assert tree.n_links_used(threshold) == sum(reaching)


def test_what_is_given_is_let_go() -> None:
    given_links = [np.zeros(1, np.int32), np.ones(1, np.int32), np.ones(1)]
    merge_tree(2, given_links, Pool(1))
    assert given_links == []
