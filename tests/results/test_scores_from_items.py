"""Listed items, compared row by row, give their own confusion matrices and the scores: kept labels fit the cells."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest
from both_engines import LIMIT, SETTINGS
from hypothesis import given
from hypothesis import strategies as st
from strategies import POLICIES, pairs
from strategies_overlap import covers

import fastbcubed as fb

pytestmark = pytest.mark.filterwarnings("ignore::fastbcubed.errors.EvaluationWarning")

#: Policies under which no item counts that is not listed.
LISTED = [policy for policy in POLICIES if "outside" not in str(policy)]


@pytest.mark.cases(1)
@pytest.mark.parametrize("engine", ["memory", "disk"])
@SETTINGS
@given(pair=pairs(), policy=st.sampled_from(LISTED), weighted=st.booleans(), data=st.data())
def test_items_give_the_scores(engine, many_shards, pair, policy, weighted, data) -> None:
    options: dict[str, Any] = {"engine": engine, "unmatched": policy, "keep": "items"}
    if engine == "disk":
        options["memory_limit"] = LIMIT
    if weighted:
        options["weight"] = {item: data.draw(st.floats(1e-3, 1e3)) for item in pair.items}
    ev = fb.evaluate(*pair, **options)
    rows = ev.items(limit=None).to_pylist()
    clusters: dict[str, dict[Any, set[int]]] = {"true": defaultdict(set), "pred": defaultdict(set)}
    for k, row in enumerate(rows):
        for side, members in clusters.items():
            label = row[f"{side}_cluster"]  # none: the item is alone
            members[("alone", k) if label is None else label].add(k)
    own = {side: {k: each for each in of.values() for k in each} for side, of in clusters.items()}
    weight = [row["weight"] if weighted else 1.0 for row in rows]
    mean = {"precision": 0.0, "recall": 0.0}
    for k, row in enumerate(rows):
        true, pred = own["true"][k], own["pred"][k]
        tp, fp, fn = (sum(weight[j] for j in some) for some in (true & pred, pred - true, true - pred))
        assert (row["tp"], row["fp"], row["fn"]) == pytest.approx((tp, fp, fn), rel=1e-9, abs=1e-9)
        mean["precision"] += weight[k] * tp / (tp + fp) / sum(weight)
        mean["recall"] += weight[k] * tp / (tp + fn) / sum(weight)
    assert (ev.precision, ev.recall) == pytest.approx(tuple(mean.values()), rel=1e-9)


@SETTINGS
@given(case=covers())
def test_items_of_overlapping_clusters_give_the_scores(case) -> None:
    """By Extended BCubed: an item and a mate share min(true, pred) of the clusters that they share on one side."""
    ev = fb.evaluate(*map(fb.Clustering.from_clusters, case), overlapping=True, unmatched="drop")
    rows = ev.items(limit=None).to_pylist()
    shared = [
        [[len({*a[side]} & {*b[side]}) for b in rows] for a in rows]
        for side in ("true_cluster", "pred_cluster")
    ]
    for name, own, other in (("precision", shared[1], shared[0]), ("recall", *shared)):
        mean = []
        for k, row in enumerate(rows):
            ratios = [min(n, m) / n for n, m in zip(own[k], other[k], strict=True) if n]
            mean.append(sum(ratios) / len(ratios))
            assert row[name] == pytest.approx(mean[-1])
        assert getattr(ev, name) == pytest.approx(sum(mean) / len(mean))
