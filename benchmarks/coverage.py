"""How often 95 % intervals cover the score of the population: `python -m benchmarks.coverage [samples]`.

A population has 3,000 components or those of real data, and a sample draws some of them with replacement. The score to
cover is that of the population, scaled to the number of components of the sample, because some scores depend on the
number of items. Sums by component are computed once, and those of all samples by one product of matrices; slopes,
degrees of freedom and intervals are computed by the package. Other tables show the coverage of differences between two
runs. `--data` names a folder with further real data, `historical_people` and `inspire_wang`.
"""

from __future__ import annotations

import argparse
import math
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

import fastbcubed as fb
from benchmarks.markdown import markdown
from fastbcubed.compare_runs.differences import freedom_of_difference
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
from fastbcubed.results.influences import Errors, is_mean, share_of_one_mean, slopes
from fastbcubed.results.intervals import (
    LESS_VARIANCE_OF_AMOUNTS,
    LESS_VARIANCE_OF_SUMS,
    Interval,
    degrees_of_freedom,
    of_difference,
    wilson,
)
from fastbcubed.results.standard_errors import error_not_drawn, freedom_of, standard_error
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
#: Sizes of samples of real data, and of the other populations by the size of their wrong components.
DRAWN_OF_REAL, DRAWN = 300, {"3": 1000, "5": 1000, "8": 1000, "10": 2000, "20": 2000, "50": 4000}
#: The share of components that are wrong, by their size.
WRONG = {"3": 0.1, "5": 0.03, "8": 0.03, "10": 0.01, "20": 0.005, "50": 0.003}


class Real(NamedTuple):
    """A data set of the package, or the folder of one, and its predictions."""

    source: str
    predictions: tuple[str, ...]

    def labels(self) -> list[list[Any]]:
        """Return the labels of truth and predictions on the items that all of them have."""
        if Path(self.source).is_dir():
            tables = [
                pq.read_table(Path(self.source, f"{name}.parquet")) for name in ("truth", *self.predictions)
            ]
        else:
            data = fb.example(self.source)
            tables = [data.truth, *(data.predictions[name] for name in self.predictions)]
        sides = [
            dict(zip(table["item"].to_pylist(), table["cluster"].to_pylist(), strict=True))
            for table in tables
        ]
        items = [item for item in sides[0] if all(item in side for side in sides)]
        return [[side[item] for item in items] for side in sides]


Kind = str | Real
#: Populations whose wrong components are large: a share of merges or splits of several pairs, among correctly found
#: pairs; sizes by a power law, a tenth of which are merged; and components of real data.
WRONG_LARGE: dict[str, tuple[Kind, int]] = {
    **{f"{n} merged": (f"merged {n} {WRONG[n]}", drawn) for n, drawn in DRAWN.items()},
    **{f"{n} split": (f"split {n} {WRONG[n]}", drawn) for n, drawn in DRAWN.items()},
    **{f"Pareto {exponent}": (f"power {exponent} 0.1", 1000) for exponent in ("1.1", "1.5", "2")},
}
RELEASES = "20200929", "20211230"


def real(folder: Path | None) -> tuple[dict[str, Real], dict[str, Real]]:
    """Return real data sets by name: with one prediction, and with two."""
    single = {f"patents {name[:4]}": Real("patentsview", (name,)) for name in RELEASES}
    double = {"patents": Real("patentsview", RELEASES)}
    if folder is not None:
        linkers, rules = ("pred_splink_p95", "pred_splink_p50"), ("pred_full_name", "pred_name_affiliation")
        persons, authors = str(folder / "historical_people"), str(folder / "inspire_wang")
        single |= {"persons": Real(persons, linkers[:1]), "authors": Real(authors, rules[1:])}
        double |= {"persons": Real(persons, linkers), "authors": Real(authors, rules)}
    return single, double


SEED, SEED_OF_TWO_RUNS, SEED_OF_LARGE, SEED_OF_TWO_LARGE = 20, 30, 40, 60
#: The least coverage that counts as sufficient.
ENOUGH = 0.93
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
    if kind in (large for large, _ in WRONG_LARGE.values()):
        true, old = labels_of_wrong_large(kind, rng)
        if old.max():  # a split, half of which is together in the second run
            return true, old, _half_apart(old, rng)
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


def components(sides: list[list[Any]]) -> Labels:
    """Return the connected component of each item in clusterings of the same items."""
    found: Any = sides[0]
    for side in sides[1:]:
        ev = fb.evaluate(found, side, metrics="f1")
        rows = ev.contingency.rows
        assert rows is not None
        found = ev.standard_errors.components.by_cell()[rows.cell].astype(np.int64)
    return np.unique(found, return_inverse=True)[1]


class Population(NamedTuple):
    """The evaluations of runs on a population, the component of each item, and the samples of components."""

    runs: list[fb.Evaluation]
    unit: Labels
    counts: Floats  #: how often each sample draws each component; shape (n_samples, n_components)
    drawn: int
    n_components: int

    @classmethod
    def of(
        cls,
        labels: Callable[[str, np.random.Generator], tuple[Labels, ...]],
        kind: Kind,
        drawn: int,
        n_samples: int,
        seed: int,
    ) -> Population:
        """Draw the components of a population, and samples of them."""
        rng = np.random.default_rng(seed)
        if isinstance(kind, Real):
            sides = kind.labels()
            runs, unit = (
                [fb.evaluate(sides[0], side, metrics=SCORES) for side in sides[1:]],
                components(sides),
            )
        else:
            people = [labels(kind, rng) for _ in range(N_COMPONENTS)]
            unit = np.repeat(np.arange(N_COMPONENTS), [true.size for true, *_ in people])
            true, *found = (np.concatenate(side) + 4000 * unit for side in zip(*people, strict=True))
            runs = [fb.evaluate(true, pred, metrics=SCORES) for pred in found]
        n = int(unit.max()) + 1
        samples = (rng.integers(0, n, drawn) for _ in range(n_samples))
        counts = np.array([np.bincount(rows, minlength=n) for rows in samples], np.float64)
        return cls(runs, unit, counts, drawn, n)

    def grouped(self, metric: Metric) -> tuple[Population, list[Summed]]:
        """Return the sums behind a score of each run, with equal components as one, whose draws are added up."""
        found = [sums_of(ev, self.unit, metric) for ev in self.runs]
        columns, kind, n = np.unique(
            np.concatenate([sums for sums, _ in found]), axis=1, return_inverse=True, return_counts=True
        )
        order = np.argsort(kind.ravel(), kind="stable")
        counts = np.add.reduceat(self.counts[:, order], np.cumsum(n) - n, axis=1)
        parts = np.split(columns, len(found))
        return self._replace(counts=counts), [
            Summed(sums, n, score) for sums, (_, score) in zip(parts, found, strict=True)
        ]


class Summed(NamedTuple):
    """The sums behind a score by kind of component, the number of such components, and the function of their totals."""

    sums: Floats
    n: Labels
    score: Callable[[Floats], Any]


class Sampled(NamedTuple):
    """A score of the population and of each sample, with the influence of each component on it."""

    wanted: float  #: score of the population
    values: Floats  #: scores of the samples; shape (n_samples,)
    sizes: Floats  #: magnitudes of the terms of the score; shape (n_samples,)
    moved: Floats  #: influences; shape (n_samples, n_components)
    effective: Callable[
        [int], float
    ]  #: function from a sample's number to the effective number of components
    not_drawn: list[
        float
    ]  #: error of components that were not drawn, by sample, as a share of the score's range

    @classmethod
    def of(cls, people: Population, summed: Summed, metric: Metric) -> Sampled:
        """Compute a score of a run in all samples."""
        counts, drawn = people.counts, people.drawn
        sums, n, score = summed
        totals = counts @ sums.T
        quotients = difference_quotients(score, totals.T).T
        moved = quotients @ sums
        moved -= np.sum(counts * moved, axis=1, keepdims=True) / drawn
        values = score(totals.T)

        def effective(k: int) -> float:
            own = np.repeat(sums, counts[k].astype(int), axis=1)
            return effective_units(
                own[:1] if is_mean(metric) else own, score if not is_mean(metric) else np.sum
            )

        wanted = float(score(sums @ n * (drawn / people.n_components)))
        sizes = np.max(np.abs(np.column_stack([values, quotients * totals])), axis=1)
        behind, not_drawn = behind_score(metric, sums), [0.0] * len(counts)
        if behind is not None:
            largest = np.max(np.where(counts > 0, behind, 0.0), axis=1) / (counts @ behind)
            of_one = np.ones(len(counts))
            if is_mean(metric) and metric.slopes is not None:
                means = zip((need.name for need in metric.needs), totals.T[1:] / totals.T[0], strict=True)
                by_name = dict(means)
                of_one = share_of_one_mean(slopes(metric, by_name, 1.0), by_name)
            found = zip(largest.tolist(), of_one.tolist(), strict=True)
            not_drawn = [error_not_drawn(metric, share, own) for share, own in found]
        return cls(wanted, values, sizes, moved, effective, not_drawn)


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
    """Yield the standard error of each sample and its degrees of freedom, in three digits, to reuse quantiles."""
    squares, fourths = (np.sum(people.counts * moved**power, axis=1) for power in (2, 4))
    found = standard_error(squares, people.drawn, sizes)
    df = degrees_of_freedom(squares, fourths, people.drawn, **how)
    return zip(found.tolist(), (float(f"{each:.3g}") for each in df.tolist()), strict=True)


class Held(NamedTuple):
    """The shares of samples whose intervals cover what is wanted, and the widths of these intervals."""

    ours: float
    earlier: (
        float  #: by Student's t with divisors, for means within Wilson's interval, for drawn components only
    )
    width: float  #: the median width of our intervals, relative to that of earlier ones

    @classmethod
    def of(cls, wanted: float, found: list[tuple[Interval, Interval]]) -> Held:
        """Compute these from our interval and the earlier one of each sample; unknown ones do not count."""
        ends = np.array(found).reshape(-1, 2, 2)
        ends = ends[~np.isnan(ends).any(axis=(1, 2))]
        ours, earlier = np.mean((ends[..., 0] <= wanted) & (wanted <= ends[..., 1]), axis=0).tolist()
        now, then = np.median(ends[..., 1] - ends[..., 0], axis=0).tolist()
        return cls(ours, earlier, now / then if then > 0 else math.nan)

    def told(self, *, widths: bool) -> str:
        """Return our coverage in percent and, if wanted, the relative width or the earlier coverage if too low."""
        ours = f"{100 * self.ours:.1f}"
        if not widths:
            return ours
        return (
            f"{ours} ({self.width:.2f})"
            if self.earlier >= ENOUGH
            else f"{ours} (was {100 * self.earlier:.1f})"
        )


def earlier_freedom(metric: Metric) -> dict[str, float]:
    """Return how degrees of freedom were computed before intervals allowed for components that were not drawn."""
    return (
        {"less": LESS_VARIANCE_OF_AMOUNTS}
        if is_mean(metric)
        else {"less": LESS_VARIANCE_OF_SUMS, "fewest": 1.5}
    )


def of_scores(people: Population, metric: Metric) -> Held:
    """Return how often intervals of a score cover the population's."""
    people, (summed,) = people.grouped(metric)
    own, name, mean = Sampled.of(people, summed, metric), metric.name, is_mean(metric)
    before = errors(people, own.moved, own.sizes, earlier_freedom(metric))
    now_and_then = zip(errors(people, own.moved, own.sizes, freedom_of(metric)), before, strict=True)
    found = []
    for k, ((error, df), (_, fewer)) in enumerate(now_and_then):
        effective = own.effective(k) if mean or not error else math.nan
        value, units = float(own.values[k]), Units(people.drawn, effective if mean else math.nan, math.nan)
        now = Errors({name: error}, {name: df if error else effective}, {name: own.not_drawn[k]}, units)
        without = now._replace(
            df={name: fewer if error else effective},
            not_drawn={name: 0.0},
            units=units._replace(effective=math.nan),
        )
        was = without.interval(metric, value, 0.95)
        if mean and error and 0 < value < 1 == metric.high:
            most = wilson(value, effective, 0.95)
            was = Interval(max(was.low, most.low), min(was.high, most.high))
        found.append((now.interval(metric, value, 0.95), was))
    return Held.of(own.wanted, found)


def of_differences(people: Population, metric: Metric) -> Held:
    """Return how often intervals of the difference between two runs cover the population's."""
    people, runs = people.grouped(metric)
    before, after = (Sampled.of(people, summed, metric) for summed in runs)
    how = {"less": freedom_of(metric)["less"]}
    changes, sizes = after.moved - before.moved, np.maximum(before.sizes, after.sizes)
    ways = (errors(people, changes, sizes, each) for each in (how, earlier_freedom(metric)))
    found = []
    for k, own in enumerate(zip(*ways, strict=True)):
        effective = min(each.effective(k) for each in (before, after))
        delta = float(after.values[k] - before.values[k]) if own[0][0] else 0.0
        not_drawn = max(before.not_drawn[k], after.not_drawn[k])
        ends = []
        for (error, df), missed in zip(own, (not_drawn, 0.0), strict=True):
            freedom = float(freedom_of_difference(df, effective)) if error else effective
            ends.append(of_difference(metric, delta, error, df=freedom, not_drawn=missed, level=0.95))
        found.append((ends[0], ends[1]))
    return Held.of(after.wanted - before.wanted, found)


def table(
    populations: dict[str, tuple[Any, int]],
    labels: Callable[[str, np.random.Generator], tuple[Labels, ...]],
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
        held = of_scores if len(people.runs) == 1 else of_differences
        for metric in (m for m in people.runs[0].metrics if m.name in scores):
            rows[metric.name].append(held(people, metric).told(widths=turned))
    found, names = [*rows.values()], [f"`{score}`" for score in scores]
    heads = [names, [*populations]] if turned else [[*populations], names]
    listed = zip(*found, strict=True) if turned else found
    lines = [(name, *own) for name, own in zip(heads[1], listed, strict=True)]
    print(markdown(("population" if turned else "score", *heads[0]), lines, 1), end="\n\n", flush=True)


def main() -> None:
    """Print the tables of scores and of differences."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.coverage", description=__doc__)
    parser.add_argument("samples", type=int, nargs="?", default=2000)
    parser.add_argument("--data", type=Path, help="folder of further real data sets")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    single, double = ({name: (data, DRAWN_OF_REAL) for name, data in of.items()} for of in real(options.data))
    n, large = options.samples, SCORES[:8]
    table(POPULATIONS, labels_of, n, SEED)
    table({**WRONG_LARGE, **single}, labels_of_wrong_large, n, SEED_OF_LARGE, large, turned=True)
    table(OF_TWO_RUNS, labels_of_two_runs, n, SEED_OF_TWO_RUNS)
    table({**WRONG_LARGE, **double}, labels_of_two_runs, n, SEED_OF_TWO_LARGE, large, turned=True)


if __name__ == "__main__":
    main()
