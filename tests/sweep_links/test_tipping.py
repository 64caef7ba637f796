"""Merges and what each does, and the weakest links of true clusters: against clusters taken apart one by one."""

import math
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import naive
import naive_sweep
import numpy as np
import pytest
from effort import examples
from hypothesis import given
from hypothesis import strategies as st
from test_sweep_against_naive import Case, cases, plain, policy, swept

import fastbcubed as fb
from fastbcubed import kernels
from fastbcubed.inputs.id_columns import as_column
from fastbcubed.sweep_links import curve
from fastbcubed.sweep_links.curve import heap_of

pytestmark = pytest.mark.filterwarnings("ignore::fastbcubed.errors.EvaluationWarning")
CHANGES = {"precision_change": "precision", "recall_change": "recall", "f1_change": "f1"}


def close(value: float) -> Any:
    return pytest.approx(float(value), rel=1e-9, abs=1e-9)


def scores(case: Case, clusters: dict[Any, Any]) -> dict[str, Any]:
    twin = naive.evaluate(case.truth, clusters, case.weights, unmatched=policy(case.unmatched))
    return {change: twin.mean(name) for change, name in CHANGES.items()}


def merges(case: Case) -> list[dict[str, Any]]:
    """Return every merge: which clusters become one at a threshold, and how the scores are without it alone."""
    found = []
    before = naive_sweep.clusters_at(case.links, None)
    for threshold in naive_sweep.thresholds(case.links, case.ascending):
        after = naive_sweep.clusters_at(case.links, threshold, ascending=case.ascending)
        with_all = scores(case, after)
        for cluster in set(after.values()):
            items = [item for item in after if after[item] == cluster]
            parts = {before[item] for item in items}
            undone = {item: (own, before[item]) if own == cluster else own for item, own in after.items()}
            if len(parts) > 1:
                without = scores(case, undone)
                changes = {name: with_all[name] - without[name] for name in CHANGES}
                found.append(
                    {"threshold": threshold, "items": items, "n_clusters": len(parts), "before": before}
                    | changes
                )
        before = after
    return found


@pytest.mark.slow
@examples(80)
@given(cases(max_size=12))
def test_merges_are_those_of_the_clusters_and_change_what_they_change(case: Case) -> None:
    sweep = swept(case)
    expected = merges(case)
    table = sweep.merges(limit=None)
    rows = table.to_pylist()
    ids = {side: named(table[side]) for side in ("left", "right")}
    for k, row in enumerate(rows):
        left, right = ids["left"][k], ids["right"][k]
        merge = next(m for m in expected if m["threshold"] == row["threshold"] and left in m["items"])
        assert right in merge["items"] and merge["before"][left] != merge["before"][right]
        assert any({a, b} == {left, right} and s == row["threshold"] for a, b, s in case.links)
        assert (row["n_items"], row["n_clusters"]) == (len(merge["items"]), merge["n_clusters"])
        sizes = Counter(merge["before"].values())
        assert (row["n_left"], row["n_right"]) == (
            sizes[merge["before"][left]],
            sizes[merge["before"][right]],
        )
        assert {name: row[name] for name in CHANGES} == {name: close(merge[name]) for name in CHANGES}
    told = Counter((row["threshold"], row["n_items"], row["n_clusters"]) for row in rows)
    others = Counter((m["threshold"], len(m["items"]), m["n_clusters"]) for m in expected)
    silent = [m for m in expected if not any(m[name] for name in CHANGES)]
    assert told <= others and sum(others.values()) - sum(told.values()) <= len(silent)
    for name, sign in (("f1_change", 1), ("precision_change", 1), ("recall_change", -1)):
        values = [sign * row[name] for row in sweep.merges(order_by=name, limit=None).to_pylist()]
        assert values == sorted(values)


def named(column: Any) -> list[Any]:
    return plain(as_column(column, "item"))


def joins(case: Case, row: dict[str, Any]) -> bool:
    """Return whether a way between two clusters of stronger links, with items of a true cluster, uses a link once."""
    strength, least = -1 if case.ascending else 1, row["threshold"]
    stronger = [link for link in case.links if strength * link[2] > strength * least]
    items = [*case.truth, *(item for link in case.links for item in link[:2])]
    part = naive_sweep.clusters_at(stronger, least, items, ascending=case.ascending)
    mates: dict[int, set[int]] = {own: set() for own in part.values()}
    for left, right, score in case.links:
        if score == least and part[left] != part[right]:
            mates[part[left]].add(part[right])
            mates[part[right]].add(part[left])
    goals = {part[item] for item, label in case.truth.items() if label == row["cluster"]}

    def ways(way: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if way[-1] in goals:
            yield way
        for mate in mates[way[-1]] - {*way}:
            yield from ways((*way, mate))

    ends = [tuple(each.values()) if isinstance(each, dict) else each for each in (row["left"], row["right"])]
    link = {part[item] for item in ends}
    return any(link == {*step} for goal in goals for way in ways((goal,)) for step in pairwise(way))


def test_a_tied_link_is_one_that_the_true_cluster_needs() -> None:
    # All scores are equal. Of the links of the chain a-b-x-y only a-b joins items of 1.
    chain = fb.sweep({"a": 1, "b": 1, "x": 2, "y": 3}, [("a", "b", 0.5), ("b", "x", 0.5), ("x", "y", 0.5)])
    (row,) = chain.weakest_links().to_pylist()
    assert (row["cluster"], row["threshold"], row["left"], row["right"]) == (1, 0.5, "a", "b")
    # x-b is joined before a-b is: x stands between a and b, but not on the way.
    star = fb.sweep(
        {"a": 1, "c": 4, "d": 5, "x": 2, "b": 1},
        [("c", "d", 0.9), ("a", "c", 0.9), ("x", "b", 0.5), ("a", "b", 0.5)],
    )
    (row,) = star.weakest_links().to_pylist()
    assert (row["threshold"], row["left"], row["right"]) == (0.5, "a", "b")


@pytest.mark.slow
@examples(60)
@given(cases(max_size=10))
def test_true_clusters_hang_by_their_weakest_needed_link(case: Case) -> None:
    if case.unmatched is not None:
        case = case._replace(unmatched={"truth": "singleton", "prediction": "drop"})
    sweep = swept(case)
    expected = Counter()
    for cluster in set(case.truth.values()):
        items = [item for item in case.truth if case.truth[item] == cluster]
        whole = None
        for threshold in naive_sweep.thresholds(case.links, case.ascending):
            clusters = naive_sweep.clusters_at(case.links, threshold, case.truth, ascending=case.ascending)
            if whole is None and len({clusters[item] for item in items}) == 1:
                whole = threshold
        if len(items) > 1:
            expected[cluster, len(items), whole] += 1
    rows = sweep.weakest_links(limit=None).to_pylist()
    assert Counter((row["cluster"], row["n_items"], row["threshold"]) for row in rows) == expected
    order = [math.inf if row["threshold"] is None else row["threshold"] for row in rows]
    known = [x for x in order if x < math.inf]
    assert known == sorted(known, reverse=case.ascending) and order[: len(known)] == known
    for row in rows:
        assert (row["left"] is None) == (row["threshold"] is None)
        if row["left"] is not None:
            assert joins(case, row), row


def measured(levels: list[int], place: int, limit: int) -> tuple[int, int]:
    """Walk to both sides while levels are below a limit; count the items, and the clusters one level before."""
    start = stop = place
    while start > 0 and levels[start - 1] < limit:
        start -= 1
    while levels[stop] < limit:
        stop += 1
    return stop - start + 1, 1 + levels[start:stop].count(limit - 1)


@examples(200)
@given(
    st.integers(0, 5).flatmap(lambda top: st.tuples(st.just(top), st.lists(st.integers(0, top), max_size=40)))
)
def test_stretches_are_measured_as_one_would_walk_them(given_levels: tuple[int, list[int]]) -> None:
    top, levels = given_levels
    levels = [*levels, top]
    places = np.repeat(np.arange(len(levels)), top + 1)
    limits = np.tile(np.arange(top + 1, dtype=np.int32), len(levels))
    sizes, parts = np.empty((2, places.size), np.int64)
    heap = heap_of(np.array(levels, np.int32), top)
    kernels.merge_tree.measure_stretches(heap, places, limits, sizes, parts)
    expected = [measured(levels, place, limit) for place, limit in zip(places, limits, strict=True)]
    assert list(zip(sizes.tolist(), parts.tolist(), strict=True)) == expected


@pytest.mark.cases(0)
@pytest.mark.parametrize("order_by", ["f1_change", "precision_change", "recall_change"])
def test_the_first_merges_are_the_first_of_all_however_they_are_cut(order_by: str, monkeypatch: Any) -> None:
    rng = np.random.default_rng(4)
    left, right = rng.integers(0, 300, (2, 400))
    links = {"left": left, "right": right, "score": rng.integers(0, 90, 400)}
    sweep = fb.sweep(rng.integers(0, 80, 300), links)
    expected = sweep.merges(order_by=order_by, limit=None).to_pylist()
    monkeypatch.setattr(curve, "MERGES_AT_ONCE", 7)
    for limit in (0, 1, 10, 1000, None):
        assert sweep.merges(order_by=order_by, limit=limit).to_pylist() == expected[:limit]


@pytest.mark.slow
def test_all_merges_of_a_long_chain_take_no_square() -> None:
    n = 100_000
    left = np.arange(n - 1)
    links = {"left": left, "right": left + 1, "score": np.linspace(1.0, 0.0, n - 1)}
    sweep = fb.sweep({item: item // 4 for item in range(n)}, links)
    merges = sweep.merges(limit=None).to_arrow()
    assert sorted(merges["n_items"].to_pylist()) == list(range(2, n + 1))
    assert merges["n_right"].to_pylist() == [1] * (n - 1)
