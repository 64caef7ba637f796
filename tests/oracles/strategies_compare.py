"""Generated comparisons: a truth, one to four runs that lack items or have more of them, weights, options."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any, NamedTuple

from hypothesis import strategies as st
from strategies import LABELS, POLICIES, aligned_pairs, weights

__all__ = ["NAMES", "Case", "comparisons", "run_names"]

Run = dict[Hashable, Hashable]

#: Names of runs; many are those of columns, scores or sides.
NAMES = [
    *("old", "new", "p50", "a b", "é", "a.b", "item", "cluster", "weight", "score", "run", "baseline"),
    *("experiment", "delta", "se", "truth", "true_cluster", "pred_cluster", "precision", "n_items", "low"),
]
SHAPES = ("unrelated", "unrelated", "identical", "refined", "merged", "as before", "singletons")
ROWS = ("all", "all", "some missing", "more", "no singletons", "some missing, and more")


class Case(NamedTuple):
    """What `compare` is asked."""

    truth: Run
    runs: dict[str, Run]
    weight: dict[Hashable, float] | None
    options: dict[str, Any]

    @property
    def items(self) -> list[Hashable]:
        return list(self.truth | {e: None for run in self.runs.values() for e in run})


def run_names(most: int, least: int = 1) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(NAMES), min_size=least, max_size=most, unique=True)


def _numbered(keys: list[Hashable]) -> list[int]:
    numbers: dict[Hashable, int] = {}
    return [numbers.setdefault(key, len(numbers)) for key in keys]


@st.composite
def _codes_of_runs(draw: st.DrawFn, true: list[int], n_runs: int) -> list[list[int]]:
    """Draw a partition for each run: like the truth, finer, coarser, as the run before, or unrelated."""
    n, found = len(true), []
    for _ in range(n_runs):
        shape = draw(st.sampled_from(SHAPES))
        _, other = draw(aligned_pairs(n, n))
        codes = {
            "unrelated": other,
            "identical": true,
            "refined": _numbered(list(zip(true, other, strict=True))),
            "merged": [other[true.index(code)] for code in true],  # a true cluster goes as a whole
            "as before": found[-1] if found else other,
            "singletons": list(range(n)),
        }[shape]
        found.append(codes)
    return found


@st.composite
def _rows(draw: st.DrawFn, codes: list[int], in_truth: list[bool]) -> set[int]:
    """Draw which items a run has rows for; item 0 is always among them."""
    kind = draw(st.sampled_from(ROWS))
    rows = {k for k, known in enumerate(in_truth) if known or kind.endswith("more")}
    if kind.startswith("some missing"):
        rows -= draw(st.sets(st.sampled_from(sorted(rows))))
    if kind == "no singletons":
        rows = {k for k in rows if codes.count(codes[k]) > 1}
    return rows | {0}


@st.composite
def comparisons(
    draw: st.DrawFn,
    max_size: int = 9,
    *,
    least_runs: int = 1,
    most_runs: int = 4,
    unmatched: bool = True,
    align: tuple[str, ...] = ("common", "common", "each"),
    outer: bool = True,
) -> Case:
    """Draw a truth and runs that have an item in common; with `unmatched`, often items that some of them lack."""
    names = draw(run_names(most_runs, least_runs))
    true, _ = draw(aligned_pairs(max_size=max_size))
    n = len(true)
    codes = draw(_codes_of_runs(true, len(names)))
    in_truth = [True] * n
    if unmatched and draw(st.booleans()):
        in_truth = [True, *draw(st.lists(st.booleans(), min_size=n - 1, max_size=n - 1))]
    rows = [draw(_rows(each, in_truth)) if unmatched else set(range(n)) for each in codes]
    item, true_label = (LABELS[draw(st.sampled_from(list(LABELS)))] for _ in range(2))
    runs = {}
    for name, own, has in zip(names, codes, rows, strict=True):
        label = LABELS[draw(st.sampled_from(list(LABELS)))]
        runs[name] = {item(k): label(own[k]) for k in draw(st.permutations(range(n))) if k in has}
    truth = {item(k): true_label(true[k]) for k in range(n) if in_truth[k]}
    weighting = draw(st.sampled_from(["pointwise", "pointwise", "outer"])) if outer else "pointwise"
    case = Case(truth, runs, None, {})
    weight = draw(weights(len(case.items), zeros=weighting == "outer"))
    options = {
        "unmatched": draw(st.sampled_from(POLICIES)) if unmatched else "drop",
        "align": draw(st.sampled_from(align)),
        "baseline": draw(st.sampled_from([None, *names])),
        "weighting": weighting,
        "beta": draw(st.sampled_from([1, 1, 2, 0.5, 0, math.inf])),
    }
    by_item = None if weight is None else dict(zip(case.items, weight, strict=True))
    return case._replace(weight=by_item, options=options)
