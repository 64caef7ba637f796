"""How often 95 % intervals cover the score of the population: `python -m benchmarks.coverage [samples]`.

A population has 3,000 components, and a sample draws some of them with replacement. The score to cover is that of the
population, scaled to the number of components of the sample, because some scores depend on the number of items. Sums by
component are computed once, and those of all samples by one product of matrices; slopes, degrees of freedom and
intervals are computed by the package. A second table shows the coverage of differences between two runs.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import fastbcubed as fb
from fastbcubed.compare_runs.differences import Differences, freedom_of_difference
from fastbcubed.metrics.aggregation import cell_scores
from fastbcubed.metrics.metric import Metric
from fastbcubed.metrics.sums_by_unit import (
    SumsByUnit,
    difference_quotients,
    effective_units,
    is_mean_of_clusters,
    is_share_of_pairs,
    pairs_of,
)
from fastbcubed.results.influences import Errors, is_mean
from fastbcubed.results.intervals import LESS_VARIANCE_OF_AMOUNTS, LESS_VARIANCE_OF_SUMS, degrees_of_freedom
from fastbcubed.results.standard_errors import freedom_of, moved_by_another, standard_error
from fastbcubed.results.unit_cells import Units
from fastbcubed.runtime.threads import Pool

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]
N_COMPONENTS = 3000
#: Populations, and the number of components in a sample.
POPULATIONS = {
    "small": ("small", 300),
    "merges": ("merges", 300),
    "heavy tails": ("heavy", 300),
    "30 components": ("small", 30),
}
#: Populations of two runs, which in the last one differ in about eight components of a sample.
OF_TWO_RUNS = {**POPULATIONS, "eight differ": ("eight", 300)}
#: Populations whose wrong components are large: a share of merges or splits of several pairs, among correctly found
#: pairs; sizes by a power law, a tenth of which are merged; and components of real data.
WRONG_LARGE = {
    "3 merged": ("merged 3 0.1", 1000),
    "5 merged": ("merged 5 0.03", 1000),
    "8 merged": ("merged 8 0.03", 1000),
    "10 merged": ("merged 10 0.01", 2000),
    "20 merged": ("merged 20 0.005", 2000),
    "50 merged": ("merged 50 0.003", 4000),
    "3 split": ("split 3 0.1", 1000),
    "8 split": ("split 8 0.03", 1000),
    "20 split": ("split 20 0.005", 2000),
    "Pareto 1.1": ("power 1.1 0.1", 1000),
    "Pareto 1.5": ("power 1.5 0.1", 1000),
    "Pareto 2": ("power 2 0.1", 1000),
    "patents 2020": ("20200929", 300),
    "patents 2021": ("20211230", 300),
}
#: Some of these populations, with two runs.
OF_TWO_LARGE = {
    name: WRONG_LARGE[name] for name in ("3 merged", "8 merged", "20 merged", "Pareto 1.5", "Pareto 2")
}
SEED, SEED_OF_TWO_RUNS, SEED_OF_LARGE, SEED_OF_TWO_LARGE = 20, 30, 40, 60
SCORES = (
    "precision", "recall", "f1", "mean_f1", "pair_precision", "pair_recall", "pair_f1", "adjusted_rand", "v_measure",
    "variation_of_information", "purity_f1", "cluster_f1", "closest_cluster_f1", "muc_f1", "ceaf_e_f1", "lea_f1",
    "bcubed_f1_by_true_cluster", "basic_merge_distance", "accuracy",
)  # fmt: skip


def labels_of(kind: str, rng: np.random.Generator) -> tuple[Labels, Labels]:
    """Return true and predicted labels of a random component of a population."""
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


def labels_of_wrong_large(kind: str, rng: np.random.Generator) -> tuple[Labels, Labels]:
    """Return true and predicted labels of a component of a population whose wrong components are large."""
    what, figure, share = kind.split()
    wrong, n = rng.random() < float(share), 1
    if what == "power":
        n = min(2000, int(np.ceil(rng.pareto(float(figure)) + 1)))
    elif wrong:
        n = int(figure)
    pairs, whole = np.repeat(np.arange(n), 2), np.zeros(2 * n, int)
    if not wrong:
        return whole, whole
    return (whole, pairs) if what == "split" else (pairs, whole)


def labels_of_two_runs(kind: str, rng: np.random.Generator) -> tuple[Labels, Labels, Labels]:
    """Return the true labels of a component, and those of two runs, the second of which has half of the merges."""
    if kind == "eight" and rng.random() < 8 / 300:
        merged = int(rng.choice([3, 6, 15]))
        true = np.repeat(np.arange(merged), rng.geometric(0.4, merged))
        return true, np.zeros_like(true), _half_apart(true, rng)
    if kind in (large for large, _ in OF_TWO_LARGE.values()):
        true, old = labels_of_wrong_large(kind, rng)
        return true, old, _half_apart(true, rng) if true.max() else old
    true, old = labels_of("merges" if kind == "eight" else kind, rng)
    if kind == "eight":
        return true, old, old
    if kind == "merges":
        apart = _half_apart(true, rng)
        return true, old, apart if true.max() else rng.integers(0, 2, true.size) * int(rng.random() < 0.15)
    new = (rng.random(true.size) < rng.random() / 2).astype(int) * int(rng.random() < 0.15)
    return true, old, np.where(true == 0, new, 2 * int(rng.random() < 0.5))


def _half_apart(true: Labels, rng: np.random.Generator) -> Labels:
    """Return labels of one cluster from which half of the true clusters, chosen at random, are separated."""
    stays = rng.random(true.max() + 1) < 0.5
    return np.where(stays[true], 0, 1 + true)


def patents(name: str) -> fb.Evaluation:
    """Return the evaluation of a real system on the mentions that it shares with the truth."""
    data = fb.example("patentsview")
    sides = [
        dict(zip(table["item"].to_pylist(), table["cluster"].to_pylist(), strict=True))
        for table in (data.truth, data.predictions[name])
    ]
    items = [item for item in sides[0] if item in sides[1]]
    return fb.evaluate(*([side[item] for item in items] for side in sides), metrics=SCORES)


class Population(NamedTuple):
    """The evaluations of runs on a population, the component of each item, and the samples of components."""

    runs: list[fb.Evaluation]
    unit: Labels
    counts: Floats  #: how often each sample draws each component; shape (n_samples, n_components)
    drawn: int

    @classmethod
    def of(
        cls,
        labels: Callable[[str, np.random.Generator], tuple[Labels, ...]],
        kind: str,
        drawn: int,
        n_samples: int,
        seed: int,
    ) -> Population:
        """Draw the components of a population, and samples of them."""
        rng = np.random.default_rng(seed)
        if kind.isdigit():
            runs = [patents(kind)]
            rows = runs[0].contingency.rows
            assert rows is not None
            unit = runs[0].standard_errors.components.by_cell()[rows.cell].astype(np.int64)
        else:
            people = [labels(kind, rng) for _ in range(N_COMPONENTS)]
            unit = np.repeat(np.arange(N_COMPONENTS), [true.size for true, *_ in people])
            true, *found = (np.concatenate(side) + 4000 * unit for side in zip(*people, strict=True))
            runs = [fb.evaluate(true, pred, metrics=SCORES) for pred in found]
        n = int(unit.max()) + 1
        samples = (rng.integers(0, n, drawn) for _ in range(n_samples))
        counts = np.array([np.bincount(rows, minlength=n) for rows in samples], np.float64)
        return cls(runs, unit, counts, drawn)


class Sampled(NamedTuple):
    """A score of the population and of each sample, with the influence of each component on it."""

    wanted: float  #: score of the population
    values: Floats  #: scores of the samples; shape (n_samples,)
    sizes: Floats  #: magnitudes of the terms of the score; shape (n_samples,)
    moved: Floats  #: influences; shape (n_samples, n_components)
    effective: Callable[
        [int], float
    ]  #: function from a sample's number to the effective number of components
    largest: Floats | None  #: share of the largest component in the denominator; shape (n_samples,)

    @classmethod
    def of(cls, people: Population, ev: fb.Evaluation, metric: Metric) -> Sampled:
        """Compute a score of a run in all samples."""
        counts, drawn = people.counts, people.drawn
        sums, score = sums_of(ev, people.unit, metric)
        totals = counts @ sums.T
        slopes = difference_quotients(score, totals.T).T
        moved = slopes @ sums
        moved -= np.sum(counts * moved, axis=1, keepdims=True) / drawn
        values = score(totals.T)

        def effective(k: int) -> float:
            own = np.repeat(sums, counts[k].astype(int), axis=1)
            return effective_units(
                own[:1] if is_mean(metric) else own, score if not is_mean(metric) else np.sum
            )

        wanted = float(score(sums.sum(axis=1) * drawn / counts.shape[1]))
        sizes = np.max(np.abs(np.column_stack([values, slopes * totals])), axis=1)
        behind = behind_score(metric, sums)
        largest = (
            None if behind is None else np.max(np.where(counts > 0, behind, 0.0), axis=1) / (counts @ behind)
        )
        return cls(wanted, values, sizes, moved, effective, largest)


def behind_score(metric: Metric, sums: Floats) -> Floats | None:
    """Return the denominator of a share or mean by component; None for other scores."""
    if is_share_of_pairs(metric):
        _, _, tp, fp, fn = sums
        return pairs_of(metric, tp + fp, tp + fn)
    return sums[0] if is_mean(metric) or is_mean_of_clusters(metric) else None


def sums_of(ev: fb.Evaluation, unit: Labels, metric: Metric) -> tuple[Floats, Callable[[Floats], Any]]:
    """Return the sums behind a score by component, and the function from their totals to the score."""
    table = ev.contingency
    assert table.rows is not None
    units = np.zeros(table.n_cells, np.int64)
    units[table.rows.cell] = unit
    by_unit = SumsByUnit(table, units, int(unit.max()) + 1, Pool(1))
    if not is_mean(metric):
        found, function = by_unit.function(metric)

        def of_columns(totals: Floats) -> Any:
            try:
                return function(totals)
            except (TypeError, ValueError):  # the formula takes plain numbers only
                return np.array([function(column) for column in totals.T])

        return np.array(found), of_columns
    parts = metric.needs or (metric,)
    sums = [
        by_unit.cells(table.weight),
        *(by_unit.cells(table.weight * cell_scores(table, part)) for part in parts),
    ]

    def score(totals: Floats) -> Any:
        means = dict(zip((part.name for part in parts), totals[1:] / totals[0], strict=True))
        return means[metric.name] if metric.combine is None else metric.combine(means, 1.0)

    return np.array(sums), score


def errors(
    people: Population, moved: Floats, sizes: Floats, how: dict[str, float]
) -> Iterator[tuple[float, float]]:
    """Yield the standard error of each sample and its degrees of freedom."""
    squares, fourths = (np.sum(people.counts * moved**power, axis=1) for power in (2, 4))
    found = standard_error(squares, people.drawn, sizes)
    df = degrees_of_freedom(squares, fourths, people.drawn, **how)
    return zip(found.tolist(), df.tolist(), strict=True)


def covered(people: Population, metric: Metric) -> str:
    """Return the percentage of samples, among those with an interval, whose interval covers the population's score."""
    return f"{100 * of_samples(people, metric)[0]:.1f}"


def covered_with_width(people: Population, metric: Metric) -> str:
    """Return the percentage of samples whose interval covers the score, and the relative median width of intervals.

    Widths are relative to those without an allowance for one more component, which have fewer degrees of freedom.
    """
    share, width = of_samples(people, metric)
    return f"{100 * share:.1f} ({width:.2f})"


def of_samples(people: Population, metric: Metric) -> tuple[float, float]:
    """Return the share of samples whose interval covers the population's score, and the relative median width."""
    own, hits, n = Sampled.of(people, people.runs[0], metric), 0, 0
    widths: list[tuple[float, float]] = []
    less = LESS_VARIANCE_OF_AMOUNTS if is_mean(metric) else LESS_VARIANCE_OF_SUMS
    before = errors(people, own.moved, own.sizes, {"less": less, "fewest": 1.0 if is_mean(metric) else 1.5})
    how = freedom_of(metric, moved_by_another(metric, None if own.largest is None else 1.0))
    for k, ((error, df), (_, fewer)) in enumerate(
        zip(errors(people, own.moved, own.sizes, how), before, strict=True)
    ):
        df, largest = (
            df if error else own.effective(k),
            None if own.largest is None else float(own.largest[k]),
        )
        units = Units(people.drawn, own.effective(k) if is_mean(metric) else math.nan, math.nan)
        moved, name = moved_by_another(metric, largest), metric.name
        found = Errors({name: error}, {name: float(df)}, {name: moved}, units)
        low, high = found.interval(metric, float(own.values[k]), 0.95)
        hits, n = hits + (low <= own.wanted <= high), n + (low == low)
        plain = found._replace(df={name: fewer if error else df}, moved={name: 0.0})
        was = plain.interval(metric, float(own.values[k]), 0.95)
        widths.append((high - low, was.high - was.low))
    now, then = np.nanmedian(np.array(widths), axis=0)
    return hits / n, float(now / then) if then > 0 else math.nan


def covered_difference(people: Population, metric: Metric) -> str:
    """Return the percentage of samples whose interval covers the difference between two runs."""
    before, after = (Sampled.of(people, ev, metric) for ev in people.runs)
    wanted, hits, key = after.wanted - before.wanted, 0, ("new", metric.name)
    sizes = np.maximum(before.sizes, after.sizes)
    how, mean = freedom_of(metric, 0.0), is_mean(metric)
    for k, (error, df) in enumerate(errors(people, after.moved - before.moved, sizes, how)):
        effective = min(own.effective(k) for own in (before, after))
        df = float(freedom_of_difference(df, effective)) if error else effective
        delta = float(after.values[k] - before.values[k]) if error else 0.0
        share = float(before.largest[k]) if mean and before.largest is not None else math.nan
        units = {"new": Units(people.drawn, math.nan, share)}
        low, high = Differences(None, {key: error}, {key: df}, units).interval("new", metric, delta, 0.95)
        hits += low <= wanted <= high
    return f"{100 * hits / people.counts.shape[0]:.1f}"


def table(
    populations: dict[str, tuple[str, int]],
    labels: Callable[[str, np.random.Generator], tuple[Labels, ...]],
    count: Callable[[Population, Metric], str],
    n_samples: int,
    seed: int,
    scores: tuple[str, ...] = SCORES,
    *,
    turned: bool = False,
) -> None:
    """Print a table of coverage in percent, with a row for each score or, if `turned`, for each population."""
    rows: dict[str, list[str]] = {score: [] for score in scores}
    for k, (kind, drawn) in enumerate(populations.values()):
        people = Population.of(labels, kind, drawn, n_samples, seed + k)
        for metric in (m for m in people.runs[0].metrics if m.name in scores):
            rows[metric.name].append(count(people, metric))
    found, names = [*rows.values()], [f"`{score}`" for score in scores]
    heads = [names, [*populations]] if turned else [[*populations], names]
    columns, first = heads[0], heads[1]
    print("|", " | ".join(["population" if turned else "score", *columns]), "|")
    print("|", " | ".join(["---", *("---:" for _ in columns)]), "|")
    for name, own in zip(first, zip(*found, strict=True) if turned else found, strict=True):
        print("|", " | ".join([name, *own]), "|", flush=True)


def main(n_samples: int) -> None:
    """Print the tables of scores and of differences."""
    warnings.simplefilter("ignore")
    table(POPULATIONS, labels_of, covered, n_samples, SEED)
    print()
    table(
        WRONG_LARGE,
        labels_of_wrong_large,
        covered_with_width,
        n_samples,
        SEED_OF_LARGE,
        SCORES[:8],
        turned=True,
    )
    print()
    table(OF_TWO_RUNS, labels_of_two_runs, covered_difference, n_samples, SEED_OF_TWO_RUNS)
    print()
    of_two = labels_of_two_runs, covered_difference, n_samples, SEED_OF_TWO_LARGE, SCORES[:8]
    table(OF_TWO_LARGE, *of_two, turned=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000)
