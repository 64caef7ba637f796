"""The coverage of intervals of differences between runs that are compared on samples of true clusters.

`python -m benchmarks.sampled_runs` prints the tables. All true clusters of a population are known, and with them the
difference between two runs; a sample draws some of the clusters with replacement. The package computes the ratios of
scores by cluster, and the standard errors and degrees of freedom of each sample; the estimates of all samples are
products of matrices. For comparison, there are intervals by Student's t with one degree of freedom less than clusters,
and the package's, widened by what one more cluster, as large as the largest, could change.
"""

from __future__ import annotations

import argparse
import statistics
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import fastbcubed as fb
from benchmarks.markdown import markdown
from fastbcubed.results.intervals import share_not_seen, t_quantile
from fastbcubed.sample.cluster_estimators import Drawn, Estimable, Moved, Ratio, choose, difference

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]
LEVEL = 0.95
SIZES = (50, 300, 1000)
#: Scores for which the package claims coverage, and those of pairs and whole clusters, which few clusters dominate.
OF_ITEMS = (
    "precision", "recall", "f1",
    "bcubed_precision_by_true_cluster", "bcubed_recall_by_true_cluster", "bcubed_f1_by_true_cluster",
)  # fmt: skip
OF_OTHERS = (
    "pair_precision", "pair_recall", "pair_f1", "cluster_precision", "cluster_recall", "cluster_f1",
)  # fmt: skip
#: The share of the change by one more cluster, as large as the largest, by which intervals are widened.
MOVED = 0.5
#: The least coverage, in percent of samples, that counts as sufficient.
ENOUGH = 93.0


class Runs(NamedTuple):
    """A truth and two runs, as cluster codes by item."""

    truth: Labels
    before: Labels
    after: Labels


def patents() -> Runs:
    """Return two real systems on the patents' mentions that they share with the truth."""
    data = fb.example("patentsview")
    names = list(data.predictions)[:2]
    of = [
        dict(zip(table["item"].to_pylist(), table["cluster"].to_pylist(), strict=True))
        for table in (data.truth, *(data.predictions[name] for name in names))
    ]
    items = [item for item in of[0] if all(item in each for each in of[1:])]
    return Runs(*(np.unique([str(each[item]) for item in items], return_inverse=True)[1] for each in of))


def changed(truth: Labels, rng: np.random.Generator, *, split: float, merged: float) -> Labels:
    """Return a run that splits some clusters randomly in two, and merges some with the next one."""
    n = int(truth.max()) + 1
    to = np.where(rng.random(n) < merged, (np.arange(n) + 1) % n, np.arange(n))
    halves = (rng.random(n) < split)[truth] & (rng.random(truth.size) < 0.5)
    return np.where(halves, n + truth, to[truth])


def synthetic(sizes: Labels, seed: int) -> Runs:
    """Return a truth with clusters of these sizes, and two runs with partly the same errors."""
    rng = np.random.default_rng(seed)
    truth = np.repeat(np.arange(sizes.size), sizes)
    before = changed(truth, rng, split=0.1, merged=0.1)
    elsewhere = (rng.random(sizes.size) < 0.3)[truth]
    return Runs(
        truth,
        before,
        np.where(elsewhere, 3 * sizes.size + changed(truth, rng, split=0.05, merged=0.08), before),
    )


def populations() -> dict[str, Runs]:
    """Return the data sets: a real one, clusters of one to nine items, and sizes by a power law up to a thousand."""
    rng = np.random.default_rng(7)
    return {
        "patents": patents(),
        "small": synthetic(rng.geometric(0.4, 3000).clip(max=9), 8),
        "heavy tails": synthetic((rng.pareto(1.3, 3000) + 1).astype(np.int64).clip(max=1000), 9),
    }


def whole(truth: Labels, pred: Labels) -> Drawn:
    """Return all true clusters as a sample that draws each once."""
    table = fb.contingency(truth, pred)
    size = np.bincount(table.true, table.n).astype(np.int64)
    sample: Any = SimpleNamespace(draws=np.ones(size.size, np.int64), weight=np.ones(size.size), size=size)
    cells = tuple(np.asarray(each, np.int64) for each in (table.true, table.n, table.pred_n[table.pred]))
    return Drawn.of(sample, cells, (truth.size, table.n_pred), missing="drop")  # type: ignore[arg-type]


class Estimated(NamedTuple):
    """A score of a run in each sample, with the influences of clusters, their unevenness, and the largest share."""

    values: Floats  #: shape (n_samples,)
    moves: Floats  #: shape (n_samples, n_clusters)
    uneven: Floats
    effective: Floats
    largest: Floats  #: the share of the largest cluster


def estimated(score: Estimable, drawn: Drawn, counts: Floats) -> Estimated:
    """Estimate a score in all samples at once, as `cluster_estimators` does in one."""
    ratios = [make(drawn) for make in score.ratios]
    found = [_linear(ratio, counts) for ratio in ratios]
    m = counts.sum(axis=1)
    if len(found) == 1:
        plain, moves, adjustment = found[0]
    else:
        (p, of_p, more_p), (r, of_r, more_r) = found
        plain = 1 / (score.alpha / p + (1 - score.alpha) / r)
        u, v = score.alpha * plain / p, (1 - score.alpha) * plain / r
        moves = u[:, None] * of_p + v[:, None] * of_r
        curved = np.einsum("ij,ij->i", counts, (of_p - of_r) ** 2)
        adjustment = u * more_p + v * more_r + u * v * curved / (m * (m - 1))
    parts = [each for ratio in ratios for each in (ratio.numerator, ratio.denominator)]
    sums = [(counts @ each, counts @ each**2, counts @ (each > 0)) for each in parts]
    uneven = np.max([square / total**2 - 1 / n for total, square, n in sums], axis=0)
    weight = ratios[0].denominator
    total = counts @ weight
    largest = np.max(np.where(counts > 0, weight, 0.0), axis=1) / total
    effective = total**2 / (counts @ weight**2)
    return Estimated(plain * (1 + adjustment), plain[:, None] * moves, uneven, effective, largest)


def _linear(ratio: Ratio, counts: Floats) -> tuple[Floats, Floats, Floats]:
    m = counts.sum(axis=1)
    numerator, denominator = counts @ ratio.numerator / m, counts @ ratio.denominator / m
    share = ratio.denominator / denominator[:, None]
    moves = ratio.numerator / numerator[:, None] - share
    adjustment = np.einsum("ij,ij->i", counts, share * moves) / (m * (m - 1))
    return numerator / denominator, moves, adjustment


class Held(NamedTuple):
    """The coverage of three kinds of intervals in percent of samples, and the median width relative to Student's t."""

    ours: float
    width: float
    student: float
    moved: float
    moved_width: float


def held(score: Estimable, runs: tuple[Drawn, Drawn], counts: Floats) -> Held:
    """Return the coverage of the population's difference by the intervals of all samples."""
    before, after = (estimated(score, run, counts) for run in runs)
    wanted = [score.estimate(run).unadjusted for run in runs]
    reach = np.empty((3, len(counts)))
    delta = after.values - before.values
    for k, draws in enumerate(counts):
        there = np.flatnonzero(draws)
        n = int(draws.sum())
        own, other = (Moved(each.moves[k, there] / n, float(each.uneven[k])) for each in (before, after))
        error, df = difference(own, other, draws[there].astype(np.int64), 1.0)
        if error:
            reach[0, k], reach[1, k] = t_quantile(LEVEL, df) * error, t_quantile(LEVEL, n - 1.0) * error
        else:
            effective = min(float(each.effective[k]) for each in (before, after))
            reach[:2, k] = share_not_seen(effective, LEVEL), 0.0
        share = max(float(each.largest[k]) for each in (before, after))
        reach[2, k] = reach[0, k] + MOVED * share / (1 + share)
    holds = np.abs(delta - (wanted[1] - wanted[0])) <= reach + 1e-12
    ours, student, moved = (100 * holds.mean(axis=1)).tolist()
    wide = np.median(reach, axis=1)
    return Held(ours, float(wide[0] / wide[1]), student, moved, float(wide[2] / wide[1]))


def table(of: dict[str, Runs], scores: tuple[str, ...], n_samples: int, seed: int) -> str:
    """Return a table with a row for each data set and sample size: the lowest and the median coverage of scores."""
    rows = []
    for k, (name, runs) in enumerate(of.items()):
        sides = whole(runs.truth, runs.before), whole(runs.truth, runs.after)
        n = sides[0].size.size
        for m in SIZES:
            rng = np.random.default_rng([seed, k, m])
            counts = rng.multinomial(m, np.full(n, 1 / n), n_samples).astype(np.float64)
            found = {
                each.name: held(each, sides, counts) for each in choose(scores, 1.0)[0] if each.name in scores
            }
            name_of = min(found, key=lambda name: found[name].ours)
            lowest = Held(*map(min, zip(*found.values(), strict=True)))
            median = Held(*map(statistics.median, zip(*found.values(), strict=True)))
            where = [each.width for each in found.values() if each.student >= ENOUGH]
            rows.append(
                (
                    name, str(m), f"{lowest.ours:.1f} (`{name_of}`)", f"{median.ours:.1f}", f"{median.width:.2f}",
                    f"{lowest.student:.1f}", f"{max(where):.2f}" if where else "",
                    f"{lowest.moved:.1f}", f"{median.moved_width:.2f}",
                )
            )  # fmt: skip
            print(" | ".join(rows[-1]), flush=True)
    head = (
        "data", "clusters", "lowest", "median", "width", "Student's t, lowest", "widest where t covers",
        "moved, lowest", "width",
    )  # fmt: skip
    return markdown(head, rows, 1)


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sampled_runs", description=__doc__)
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    of = populations()
    with np.errstate(all="ignore"):
        for scores in (OF_ITEMS, OF_OTHERS):
            print(f"{', '.join(scores)}:\n\n{table(of, scores, options.samples, options.seed)}\n", flush=True)


if __name__ == "__main__":
    main()
