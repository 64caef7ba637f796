"""Scores of every type and size, and thresholds at, between and beyond them: all figures are those of `evaluate`."""

import math
import warnings
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from effort import examples
from hypothesis import given
from hypothesis import strategies as st
from naive_links import naive_components
from strategies import POLICIES
from test_sweep_against_naive import close, policy

import fastbcubed as fb

pytestmark = pytest.mark.filterwarnings("ignore::fastbcubed.errors.EvaluationWarning")
#: Types of scores, and hard values: zeros of either sign, neighbours, the least and the largest, infinite ones.
DOUBLES = [
    0.0, -0.0, 0.5, math.nextafter(0.5, 1), 5e-324, -5e-324, 1e308, -1e308, math.inf, -math.inf, 0.1 + 0.2, 0.3,
]  # fmt: skip
SHORT = [0.0, -0.0, 0.1, 0.9, 0.5, 6e-8, 65504.0, math.inf, -math.inf, -2.0]
WHOLE = [0, 1, 2, 50, 99, 100, 127]
HARD: dict[Any, list[Any]] = {
    np.float64: DOUBLES,
    np.float32: [*SHORT, 1e-45, 3.4e38, float(np.nextafter(np.float32(0.1), np.float32(1)))],
    np.float16: SHORT,
    np.int64: [*WHOLE, -(2**53), 2**53],
    np.int8: [*WHOLE, -128],
    np.uint8: [*WHOLE, 255],
}
SCORES = ["precision", "recall", "f1", "pair_f1", "adjusted_rand", "v_measure", "mean_f1", "jaccard_index"]


class Case(NamedTuple):
    truth: dict[str, int]
    links: list[tuple[str, str, Any]]
    dtype: Any
    items: list[str] | None
    unmatched: Any
    ascending: bool

    @property
    def table(self) -> pa.Table:
        left, right, scores = zip(*self.links, strict=True)
        return pa.table({"left": left, "right": right, "score": np.array(scores, self.dtype)})


@st.composite
def cases(draw: st.DrawFn) -> Case:
    n, dtype = draw(st.integers(2, 8)), draw(st.sampled_from(list(HARD)))
    number = st.integers(0, n - 1).map(str)
    links = draw(
        st.lists(st.tuples(number, number, st.sampled_from(HARD[dtype])), min_size=1, max_size=2 * n)
    )
    links += [(b, a, score) for a, b, score in links if draw(st.integers(0, 4)) == 0]
    truth = {str(k): draw(st.integers(0, 2)) for k in range(n + 2) if draw(st.integers(0, 4))}
    truth.setdefault(links[0][0], 0)
    items = [str(k) for k in range(n + 3)] if draw(st.booleans()) else None
    return Case(truth, links, dtype, items, draw(st.sampled_from([None, *POLICIES])), draw(st.booleans()))


def thresholds_around(case: Case) -> list[float]:
    """Return the scores, what lies just beside and between them, and what is beyond them all."""
    scores = sorted({float(np.array(score, case.dtype)) for _, _, score in case.links})
    beside = [math.nextafter(score, end) for score in scores for end in (-math.inf, math.inf)]
    between = [a / 2 + b / 2 for a, b in pairwise(scores) if math.isfinite(a + b)]
    return list(dict.fromkeys([-math.inf, -0.0, *scores, *beside, *between, math.inf]))


def reached(case: Case, threshold: float) -> list[tuple[str, str]]:
    """Return the links that a threshold uses, which is rounded as short scores are."""
    kind = case.dtype if issubclass(case.dtype, np.floating) else np.float64
    with np.errstate(over="ignore"):
        limit = kind(threshold)
    used = []
    for left, right, score in case.links:
        own = kind(case.dtype(score))
        if own <= limit if case.ascending else own >= limit:
            used.append((left, right))
    return used


@pytest.mark.slow
@examples(40)
@given(cases())
def test_any_threshold_has_the_figures_of_evaluate(case: Case) -> None:
    thresholds = thresholds_around(case)
    outside = "outside" in str(case.unmatched)
    names = [name for name in SCORES if not (outside and name in ("pair_f1", "adjusted_rand", "v_measure"))]
    how: dict[str, Any] = {"items": case.items, "ascending": case.ascending}
    unmatched = case.unmatched if case.items is not None else policy(case.unmatched)
    sweep = fb.sweep(
        case.truth, case.table, **how, unmatched=unmatched, metrics=names, thresholds=thresholds, threads=1
    )
    linked = case.items or list(dict.fromkeys(item for a, b, _ in case.links for item in (a, b)))
    for threshold, row in zip(thresholds, sweep.points().to_pylist(), strict=True):
        clusters = naive_components(reached(case, threshold), linked)
        made = fb.Clustering.from_links(case.table, **how, threshold=threshold)
        assert sweep.at(threshold).labels.keys().tolist() == made.labels.keys().tolist()
        found: dict[int, set[str]] = {}
        for item, label in zip(made.to_table()["item"].to_pylist(), made.labels.keys().tolist(), strict=True):
            found.setdefault(label, set()).add(item)
        assert set(map(frozenset, found.values())) == clusters
        prediction = {item: k for k, group in enumerate(clusters) for item in group}
        ev = fb.evaluate(case.truth, prediction, unmatched=unmatched, metrics=names, threads=1)
        assert {name: row[name] for name in names} == {name: close(ev.overall[name]) for name in names}
        assert sweep.at(threshold).links.n_connecting == len(reached(case, threshold))


@examples(25)
@given(cases())
def test_slices_at_any_threshold_are_those_of_evaluate(case: Case) -> None:
    labels = {"item": list(case.truth), "cluster": list(case.truth.values())}
    truth = pa.table({**labels, "even": [k % 2 for k in range(len(case.truth))]})
    how: dict[str, Any] = {"items": case.items, "ascending": case.ascending}
    unmatched = case.unmatched if case.items is not None else policy(case.unmatched)
    sweep = fb.sweep(truth, case.table, **how, unmatched=unmatched, threads=1)
    for threshold in thresholds_around(case)[::3]:
        made = fb.Clustering.from_links(case.table, **how, threshold=threshold)
        ev = fb.evaluate(truth, made, unmatched=unmatched, slices=["even"], threads=1)
        again = sweep.evaluate(threshold, slices=["even"]).sliced["even"].to_pylist()
        for one, other in zip(again, ev.sliced["even"].to_pylist(), strict=True):
            assert one == {k: close(v) if isinstance(v, float) else v for k, v in other.items()}


@pytest.mark.slow
def test_zeros_of_either_sign_are_one_score() -> None:
    links = pa.table({"left": ["a", "b"], "right": ["b", "c"], "score": [0.0, -0.0]})
    for zero in (0.0, -0.0):
        for ascending in (False, True):
            sweep = fb.sweep({"a": 1, "b": 1, "c": 1}, links, ascending=ascending)
            assert sweep.curve()["clusters"].to_pylist() == [3, 1]
            assert sweep.at(zero).labels.keys().tolist() == [0, 0, 0]


def test_whole_scores_are_thresholds_as_they_are_typed() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sweep = fb.sweep({"a": 1, "b": 1, "c": 2}, [("a", "b", 97), ("b", "c", 40)])
    assert sweep.best("f1").shown == "97"
    assert sweep.clusterings([97, 96.5]).column_names == ["item", "cluster_97", "cluster_96_5"]
