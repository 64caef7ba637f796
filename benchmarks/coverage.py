"""How often intervals of 95 % hold the score of the population: `python -m benchmarks.coverage [samples]`.

A population has 3,000 components, and a sample draws some with replacement. The score to hold is that of the population
scaled to as many components: some scores depend on the number of items. Sums by component are added up once, so that a
sample is a sum of columns; slopes, degrees of freedom and intervals are those of the package.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

import fastbcubed as fb
from fastbcubed.metrics.aggregation import cell_scores
from fastbcubed.metrics.metric import Metric
from fastbcubed.metrics.sums_by_unit import SumsByUnit, difference_quotients
from fastbcubed.results.intervals import degrees_of_freedom, interval
from fastbcubed.results.standard_errors import is_mean
from fastbcubed.runtime.threads import Pool

Floats = NDArray[np.float64]
N_COMPONENTS = 3000
#: Populations, and how many components a sample draws.
POPULATIONS = {
    "small": ("small", 300),
    "merges": ("merges", 300),
    "heavy tails": ("heavy", 300),
    "30 components": ("small", 30),
}
SCORES = (
    "precision", "recall", "f1", "mean_f1", "pair_precision", "pair_recall", "pair_f1", "adjusted_rand", "v_measure",
    "variation_of_information", "purity_f1", "cluster_f1", "closest_cluster_f1", "muc_f1", "ceaf_e_f1", "lea_f1",
    "bcubed_f1_by_true_cluster", "basic_merge_distance", "accuracy",
)  # fmt: skip


def labels_of(kind: str, rng: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return true and predicted labels of a component."""
    if kind == "merges":  # one in ten has 3 to 15 true clusters
        merged = int(rng.integers(3, 16)) if rng.random() < 0.1 else 1
        true = np.repeat(np.arange(merged), rng.geometric(0.4, merged))
        return true, rng.integers(0, 2, true.size) * int(merged == 1 and rng.random() < 0.15)
    size = min(300, int(rng.pareto(1.3) * 2) + 1) if kind == "heavy" else int(rng.geometric(0.5))
    split = rng.random() < 0.15
    pred = (rng.random(size) < rng.random() / 2).astype(int) * int(split)
    true = np.zeros(size, int)
    if rng.random() < 0.1:
        more = min(300, int(rng.pareto(1.3) * 2) + 1) if kind == "heavy" else int(rng.geometric(0.5))
        true, pred = np.append(true, np.ones(more, int)), np.append(pred, np.zeros(more, int))
    return true, pred


def sums_of(
    ev: fb.Evaluation, unit: NDArray[np.int64], metric: Metric
) -> tuple[Floats, Callable[[Floats], float]]:
    """Return the sums of a score by component, and the score by their totals."""
    table = ev.contingency
    assert table.rows is not None
    units = np.zeros(table.n_cells, np.int64)
    units[table.rows.cell] = unit
    by_unit = SumsByUnit(table, units, N_COMPONENTS, Pool(1))
    if not is_mean(metric):
        found, function = by_unit.function(metric)
        return np.array(found), function
    parts = metric.needs or (metric,)
    sums = [
        by_unit.cells(table.weight),
        *(by_unit.cells(table.weight * cell_scores(table, part)) for part in parts),
    ]

    def score(totals: Floats) -> float:
        means = dict(zip((part.name for part in parts), totals[1:] / totals[0], strict=True))
        return float(means[metric.name] if metric.combine is None else metric.combine(means, 1.0))

    return np.array(sums), score


def covered(kind: str, drawn: int, n_samples: int, seed: int) -> dict[str, float]:
    """Return the share of samples whose intervals hold the score, by score."""
    rng = np.random.default_rng(seed)
    people = [labels_of(kind, rng) for _ in range(N_COMPONENTS)]
    unit = np.repeat(np.arange(N_COMPONENTS), [true.size for true, _ in people])
    true, pred = (np.concatenate(side) + 100 * unit for side in zip(*people, strict=True))
    ev = fb.evaluate(true, pred, metrics=SCORES)
    samples = rng.integers(0, N_COMPONENTS, (n_samples, drawn))
    found = {}
    for metric in ev.metrics:
        sums, score = sums_of(ev, unit, metric)
        wanted, hits = score(sums.sum(axis=1) * drawn / N_COMPONENTS), 0
        for rows in samples:
            own = sums[:, rows]
            totals = own.sum(axis=1)
            moved = difference_quotients(score, totals) @ own
            squares = (moved - moved.mean()) ** 2
            error = float(np.sqrt(np.sum(squares) * drawn / (drawn - 1)))
            df = float(degrees_of_freedom(np.sum(squares), squares @ squares, drawn))
            low, high = interval(score(totals), error, df=df, level=0.95, low=metric.low, high=metric.high)
            hits += low <= wanted <= high
        found[metric.name] = hits / n_samples
    return found


def main(n_samples: int) -> None:
    """Print a table of coverage in percent."""
    warnings.simplefilter("ignore")
    columns = {
        name: covered(kind, drawn, n_samples, seed)
        for seed, (name, (kind, drawn)) in enumerate(POPULATIONS.items(), 20)
    }
    print("| score |", " | ".join(columns), "|")
    print("| --- |", " | ".join("---:" for _ in columns), "|")
    for score in SCORES:
        print(f"| {score} |", " | ".join(f"{100 * own[score]:.1f}" for own in columns.values()), "|")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000)
