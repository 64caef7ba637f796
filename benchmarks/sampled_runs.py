"""The coverage of intervals of differences between runs that are compared on samples of true clusters.

`python -m benchmarks.sampled_runs` prints the tables. All true clusters of a population are known, and with them the
difference between two runs; a sample draws some of the clusters with replacement. The package computes the ratios of
scores by cluster, and the standard errors and degrees of freedom of each sample; the estimates of all samples
are computed at once. For comparison, there are intervals by Student's t with one degree of freedom less than clusters.
The package's rule was chosen with other samples of the first three data sets. `--data` names a folder with further real
data, as for `benchmarks.coverage`.
"""

from __future__ import annotations

import argparse
import statistics
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import fastbcubed as fb
from benchmarks.coverage import Real
from benchmarks.coverage import real as real_data
from benchmarks.markdown import markdown
from fastbcubed.results.intervals import share_not_seen, share_of_another, t_quantile, widened
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
#: The least coverage, in percent of samples, that counts as sufficient.
ENOUGH = 93.0


class Runs(NamedTuple):
    """A truth and two runs, as cluster codes by item."""

    truth: Labels
    before: Labels
    after: Labels


def real(data: Real) -> Runs:
    """Return two real systems on the items that they share with the truth."""
    return Runs(*(np.unique(list(map(str, side)), return_inverse=True)[1] for side in data.labels()))


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


def populations(folder: Path | None) -> dict[str, Runs]:
    """Return real data sets, clusters of one to nine items, and sizes by laws with heavier and lighter tails."""
    rng = np.random.default_rng(7)
    patents, *others = ((name, real(data)) for name, data in real_data(folder)[1].items())
    return {
        **dict([patents]),
        "small": synthetic(rng.geometric(0.4, 3000).clip(max=9), 8),
        "heavy tails": synthetic((rng.pareto(1.3, 3000) + 1).astype(np.int64).clip(max=1000), 9),
        "Pareto 1.1": synthetic((rng.pareto(1.1, 3000) + 1).astype(np.int64).clip(max=2000), 10),
        "Pareto 1.8": synthetic((rng.pareto(1.8, 3000) + 1).astype(np.int64).clip(max=1000), 11),
        "geometric": synthetic(rng.geometric(0.2, 3000), 12),
        **dict(others),
    }


def whole(truth: Labels, pred: Labels) -> Drawn:
    """Return all true clusters as a sample that draws each once."""
    table = fb.contingency(truth, pred)
    size = np.bincount(table.true, table.n).astype(np.int64)
    sample: Any = SimpleNamespace(draws=np.ones(size.size, np.int64), weight=np.ones(size.size), size=size)
    cells = tuple(np.asarray(each, np.int64) for each in (table.true, table.n, table.pred_n[table.pred]))
    return Drawn.of(sample, cells, (truth.size, table.n_pred), missing="drop")  # type: ignore[arg-type]


class Estimated(NamedTuple):
    """A score of a run in each sample, with the influences of draws, their unevenness, and that of another cluster."""

    values: Floats  #: shape (n_samples,)
    moves: Floats  #: shape (n_samples, n_draws)
    uneven: Floats
    effective: Floats
    another: Floats  #: share of the score that one more cluster, as large as the largest, could change


def estimated(score: Estimable, drawn: Drawn, rows: Labels) -> Estimated:
    """Estimate a score in all samples at once, as `cluster_estimators` does in one; `rows` has the clusters drawn."""
    ratios = [make(drawn) for make in score.ratios]
    found = [_linear(ratio, rows) for ratio in ratios]
    m = rows.shape[1]
    others = [
        share_of_another(own.max(axis=1) / own.sum(axis=1))
        for own in (each.denominator[rows] for each in ratios)
    ]
    if len(found) == 1:
        plain, moves, adjustment = found[0]
    else:
        (p, of_p, more_p), (r, of_r, more_r) = found
        plain = 1 / (score.alpha / p + (1 - score.alpha) / r)
        u, v = score.alpha * plain / p, (1 - score.alpha) * plain / r
        moves = u[:, None] * of_p + v[:, None] * of_r
        curved = np.sum((of_p - of_r) ** 2, axis=1)
        adjustment = u * more_p + v * more_r + u * v * curved / (m * (m - 1))
        others = [share * other for share, other in zip((u, v), others, strict=True)]
    parts = [each[rows] for ratio in ratios for each in (ratio.numerator, ratio.denominator)]
    uneven = [np.sum(own**2, axis=1) / own.sum(axis=1) ** 2 - 1 / np.sum(own > 0, axis=1) for own in parts]
    weight = parts[1]
    effective = weight.sum(axis=1) ** 2 / np.sum(weight**2, axis=1)
    return Estimated(
        plain * (1 + adjustment),
        plain[:, None] * moves / m,
        np.max(uneven, axis=0),
        effective,
        np.max(others, axis=0),
    )


def _linear(ratio: Ratio, rows: Labels) -> tuple[Floats, Floats, Floats]:
    m = rows.shape[1]
    numerators, denominators = ratio.numerator[rows], ratio.denominator[rows]
    numerator, denominator = numerators.mean(axis=1), denominators.mean(axis=1)
    share = denominators / denominator[:, None]
    moves = numerators / numerator[:, None] - share
    return numerator / denominator, moves, np.sum(share * moves, axis=1) / (m * (m - 1))


class Held(NamedTuple):
    """The coverage of two kinds of intervals in percent of samples, and the median width relative to Student's t."""

    ours: float
    student: float
    width: float


def held(score: Estimable, runs: tuple[Drawn, Drawn], rows: Labels) -> Held:
    """Return the coverage of the population's difference by the intervals of all samples."""
    before, after = (estimated(score, run, rows) for run in runs)
    wanted = [score.estimate(run).unadjusted for run in runs]
    reach = np.zeros((2, len(rows)))
    n = rows.shape[1]
    once = np.ones(n, np.int64)
    for k in range(len(rows)):
        own, other = (
            Moved(each.moves[k], float(each.uneven[k]), float(each.another[k]), score.is_mean)
            for each in (before, after)
        )
        error, df, not_drawn = difference(own, other, once, 1.0)
        if error:  # degrees of freedom in three digits, to reuse quantiles
            reach[0, k] = widened(t_quantile(LEVEL, float(f"{df:.3g}")) * error, not_drawn, LEVEL)
            reach[1, k] = t_quantile(LEVEL, n - 1.0) * error
        else:
            reach[0, k] = share_not_seen(min(float(each.effective[k]) for each in (before, after)), LEVEL)
    holds = np.abs(after.values - before.values - (wanted[1] - wanted[0])) <= reach + 1e-12
    ours, student = (100 * holds.mean(axis=1)).tolist()
    wide = np.median(reach, axis=1)
    return Held(ours, student, float(wide[0] / wide[1]))


def table(of: dict[str, Runs], scores: tuple[str, ...], n_samples: int, seed: int) -> str:
    """Return a table with a row for each data set and sample size: the lowest and the median coverage of scores."""
    lines = []
    for k, (name, runs) in enumerate(of.items()):
        sides = whole(runs.truth, runs.before), whole(runs.truth, runs.after)
        n = sides[0].size.size
        for m in SIZES:
            rows = np.random.default_rng([seed, k, m]).integers(0, n, (n_samples, m))
            found = {
                each.name: held(each, sides, rows) for each in choose(scores, 1.0)[0] if each.name in scores
            }
            name_of = min(found, key=lambda name: found[name].ours)
            lowest = Held(*map(min, zip(*found.values(), strict=True)))
            median = Held(*map(statistics.median, zip(*found.values(), strict=True)))
            where = {name: each.width for name, each in found.items() if each.student >= ENOUGH}
            widest = max(where, key=lambda name: where[name], default="")
            lines.append(
                (
                    name, str(m), f"{lowest.ours:.1f} (`{name_of}`)", f"{median.ours:.1f}", f"{median.width:.2f}",
                    f"{lowest.student:.1f}", f"{where[widest]:.2f} (`{widest}`)" if widest else "",
                )
            )  # fmt: skip
    head = "data", "clusters", "lowest", "median", "width", "Student's t, lowest", "widest where t covers"
    return markdown(head, lines, 1)


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sampled_runs", description=__doc__)
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--data", type=Path, help="folder of further real data sets")
    options = parser.parse_args()
    of = populations(options.data)
    with np.errstate(all="ignore"):
        for scores in (OF_ITEMS, OF_OTHERS):
            print(f"{', '.join(scores)}:\n\n{table(of, scores, options.samples, options.seed)}\n", flush=True)


if __name__ == "__main__":
    main()
