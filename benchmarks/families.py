"""What each family adds to building the cells, and scikit-learn score by score: `python -m benchmarks.families`."""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

from benchmarks.shapes import generate

__all__ = ["SCORES", "added_by_family", "against_scikit_learn", "main"]

FAMILIES = ("pairs", "entropy", "edit")
#: Functions that both libraries have under one name.
SCORES = (
    "pair_confusion_matrix",
    "rand_score",
    "adjusted_rand_score",
    "fowlkes_mallows_score",
    "mutual_info_score",
    "homogeneity_score",
    "completeness_score",
    "v_measure_score",
    "normalized_mutual_info_score",
    "adjusted_mutual_info_score",
)
SLOW = ("adjusted_mutual_info_score",)  # quadratic in the clusters of scikit-learn


def seconds_of(call: Callable[[], Any], repeat: int) -> float:
    """Return the median seconds of some calls."""
    found = []
    for _ in range(repeat):
        start = time.perf_counter()
        call()
        found.append(time.perf_counter() - start)
    return statistics.median(found)


def added_by_family(n_items: int, repeat: int = 3, *, weighted: bool = False) -> dict[str, float]:
    """Return the seconds of building the cells of shape "er", and of all scores of each family after it."""
    import fastbcubed as fb
    from fastbcubed.aggregation import overall
    from fastbcubed.engines.pool import Pool
    from fastbcubed.metrics.registry import resolve

    rows = generate("er", n_items)
    weight = rows.weights if weighted else None

    def build() -> fb.Contingency:
        return fb.contingency(rows.labels_true, rows.labels_pred, weight=weight)

    found = {"cells": seconds_of(build, repeat + 1)}
    for family in FAMILIES:
        metrics = resolve(family, weighted=weighted)[0]
        overall(build(), metrics)  # compiles
        times = []
        for _ in range(repeat):
            cells = build()
            with Pool() as pool:
                times.append(seconds_of(lambda: overall(cells, metrics, pool=pool), 1))  # noqa: B023
        found[family] = statistics.median(times)
    return found


def against_scikit_learn(
    n_items: int, names: tuple[str, ...] = SCORES, repeat: int = 3
) -> dict[str, tuple[float, float]]:
    """Return, for each function, the seconds of fastbcubed and of scikit-learn, both from labels."""
    import sklearn.metrics

    import fastbcubed as fb

    rows = generate("er", n_items)
    labels = rows.labels_true, rows.labels_pred
    found = {}
    for name in names:
        ours, theirs = getattr(fb.metrics, name), getattr(sklearn.metrics.cluster, name)
        ours(*labels)  # compiles
        found[name] = seconds_of(lambda: ours(*labels), repeat), seconds_of(lambda: theirs(*labels), 1)  # noqa: B023
    return found


def main(arguments: list[str] | None = None) -> int:
    """Print both tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.families", description=__doc__)
    parser.add_argument("--items", type=float, default=1e7)
    parser.add_argument("--slow", action="store_true", help="also what is quadratic in scikit-learn")
    parser.add_argument("--scores", help="of scikit-learn's, with commas")
    options = parser.parse_args(arguments)
    n_items = int(options.items)
    for weighted in (False, True):
        found = added_by_family(n_items, weighted=weighted)
        print(f"{n_items:,} items, {'with' if weighted else 'without'} weights: ms, % of building the cells")
        for name, seconds in found.items():
            print(f"  {name:30}{seconds * 1e3:10.1f}{100 * seconds / found['cells']:8.0f} %")
    names = tuple(options.scores.split(",")) if options.scores else SCORES
    chosen = tuple(name for name in names if options.slow or name not in SLOW)
    print(f"{n_items:,} items: seconds of fastbcubed, of scikit-learn, and their ratio")
    for name, (ours, theirs) in against_scikit_learn(n_items, chosen).items():
        print(f"  {name:30}{ours:10.3f}{theirs:10.3f}{theirs / ours:8.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
