"""Samples of clusters, and estimators of scores from them.

Each score is a ratio of two means over the m draws. With the numerator N_c and the denominator D_c of a cluster c, the
plain estimate is mean(N) / mean(D); a cluster that was drawn k times counts k times in the means.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from math import inf
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa

from fastbcubed import kernels
from fastbcubed.align.policies import Policies
from fastbcubed.align.sides import Side
from fastbcubed.errors import (
    AlignmentError,
    ColumnError,
    EmptyInputError,
    MetricError,
    OptionError,
    WeightError,
    arg,
    first_few,
    quoted,
)
from fastbcubed.inputs.arrays import from_numpy
from fastbcubed.inputs.clustering import Clustering
from fastbcubed.inputs.id_columns import Column
from fastbcubed.inputs.tables import read_columns
from fastbcubed.metrics import bcubed
from fastbcubed.metrics.metric import Formula, Metric, f_measure, weight_of_precision, without_rounding
from fastbcubed.metrics.registry import FAMILIES, METRICS, known_as
from fastbcubed.metrics.sums_by_unit import largest_share
from fastbcubed.results.intervals import share_of_another
from fastbcubed.results.standard_errors import error_and_freedom, powers_of
from fastbcubed.runtime.key_codes import number
from fastbcubed.runtime.suggestions import did_you_mean
from fastbcubed.runtime.threads import Pool
from fastbcubed.types import Counts, Floats

__all__ = ["DESCRIPTIVE", "Estimable", "choose"]

B = TypeVar("B", Floats, float)
#: Returns the ratio behind a score, or behind the precision or the recall of an F, for a sample.
MakeRatio = Callable[["Drawn"], "Ratio"]


def _blend(of_precision: B, of_recall: B, alpha: float) -> B:
    """Return the mean of two denominators, weighted by alpha; equal ones are returned unchanged, without rounding."""
    return of_recall + alpha * (of_precision - of_recall)


class Ratio(NamedTuple):
    """Numerator and denominator of a score by cluster, and the largest possible numerator if not the denominator."""

    numerator: Floats
    denominator: Floats
    most: Floats | None = None
    #: of an F: the denominators of precision and recall, and alpha; their sums are blended, so equal sums stay exact
    blended: tuple[Floats, Floats, float] | None = None

    def means(self, draws: Counts) -> tuple[float, float]:
        """Return the means of the numerator and the denominator over all draws."""
        m = int(draws.sum())

        def mean(values: Floats) -> float:
            return math.fsum((draws * values).tolist()) / m

        if self.blended is None:
            return mean(self.numerator), mean(self.denominator)
        of_precision, of_recall, alpha = self.blended
        return mean(self.numerator), _blend(mean(of_precision), mean(of_recall), alpha)


class Estimate(NamedTuple):
    """The estimate of a score of the population, its standard error, and the plain ratio in the sample."""

    value: float
    error: float
    unadjusted: float
    n_clusters: int  #: draws with a positive denominator
    df: float  #: degrees of freedom of the error
    effective: float  #: the effective number of draws
    ceiling: float  #: the plain ratio if all numerators had their largest possible value


#: For each score, its numerator, its denominator and, if not the denominator, the largest possible numerator, each by
#: cluster and before weighting. If an F is itself a ratio, its precision and recall have the same numerator.
RATIOS: dict[str, Callable[[Drawn], tuple[Any, ...]]] = {
    "bcubed_precision_by_true_cluster": lambda c: (c.sums(bcubed.precision) / c.size, c.one),
    "bcubed_recall_by_true_cluster": lambda c: (c.sums(bcubed.recall) / c.size, c.one),
    "pair_precision": lambda c: (c.found, c.linked),
    "pair_recall": lambda c: (c.found, c.pairs),
    "cluster_precision": lambda c: (c.n_items * c.hit, c.pred_clusters, c.n_items * c.one),
    "cluster_recall": lambda c: (c.n_items * c.hit, c.n_items * c.one),
    "inverse_purity": lambda c: (c.best(c.cells.n), c.size),
    "class_f1": lambda c: (c.size * c.best(c.scored(bcubed.mean_f1)), c.size),
    "closest_cluster_recall": lambda c: (c.best(c.scored(bcubed.jaccard_index)), c.one),
    "muc_precision": lambda c: (c.n_items * c.joined, c.pred_joined),
    "muc_recall": lambda c: (c.n_items * c.joined, c.n_items * (c.size - 1.0)),
    "lea_precision": lambda c: (c.links(c.cells.pred_n), c.size),
    "lea_recall": lambda c: (c.links(c.cells.true_n), c.size),
    "matching_rate": lambda c: (c.size * (c.size > 1), c.size),
    "mean_cluster_size": lambda c: (c.size, c.one),
}  # fmt: skip


class _Linear(NamedTuple):
    """The plain estimate; and, relative to it, the influence of each cluster and the bias correction."""

    plain: float
    moves: Floats
    adjustment: float


def estimate_ratio(ratio: Ratio, drawn: Drawn) -> Estimate:
    """Estimate a ratio of means, corrected for its bias, with its standard error.

        estimate = R [1 + 1 / (m - 1) mean(D_c / D (N_c / N - D_c / D))]        with R = N / D, N = mean(N_c) and so on
        error    = R sqrt(sum (N_c / N - D_c / D)^2 / (m (m - 1)))

    The estimate is NaN if the mean of D is 0, and the error is NaN for a single draw and if R is 0.
    """
    found = _linear(ratio, drawn)
    return _estimate(found.plain, found.moves, found.adjustment, ratio, drawn)


def estimate_f(precision: Ratio, recall: Ratio, alpha: float, drawn: Drawn) -> Estimate:
    """Estimate the F of two ratios with the same denominators by the delta method, with its standard error."""
    found = _linear_f(precision, recall, alpha, drawn)
    return _estimate(found.plain, found.moves, found.adjustment, precision, drawn)


def _linear_f(precision: Ratio, recall: Ratio, alpha: float, drawn: Drawn) -> _Linear:
    """Return the F of two ratios by the delta method to the second order.

    Let u = alpha F / P and v = (1 - alpha) F / R, so that u + v = 1, and let x and y be the relative influences of a
    cluster on P and R:

        estimate = F [1 + u adjustment(P) + v adjustment(R) + u v sum (x - y)^2 / (m (m - 1))]
        error    = F sqrt(sum (u x + v y)^2 / (m (m - 1)))
    """
    p, r = _linear(precision, drawn), _linear(recall, drawn)
    plain = float(f_measure(p.plain, r.plain, alpha))
    u, v = _shares_of_f(p.plain, r.plain, plain, alpha)
    moves = u * p.moves + v * r.moves
    curved = u * v * _squares(p.moves - r.moves, drawn)[0] ** 2
    adjustment = u * p.adjustment + v * r.adjustment + (0.0 if math.isnan(curved) else curved)
    return _Linear(plain, moves, adjustment)


def _shares_of_f(precision: float, recall: float, f: float, alpha: float) -> tuple[float, float]:
    """Return the shares of an F that depend on precision and on recall."""
    return (
        alpha * f / precision if precision > 0 else 0.0,
        (1 - alpha) * f / recall if recall > 0 else 0.0,
    )


def _linear(ratio: Ratio, drawn: Drawn) -> _Linear:
    m = int(drawn.draws.sum())
    numerator, denominator = ratio.means(drawn.draws)
    nothing = np.zeros(drawn.draws.size)
    if denominator == 0:
        return _Linear(math.nan, nothing, 0.0)
    if numerator == 0:
        return _Linear(0.0, nothing, 0.0)
    share = ratio.denominator / denominator
    moves = ratio.numerator / numerator - share
    adjustment = 0.0
    if m > 1:
        adjustment = drawn.left_to_draw * math.fsum((drawn.draws * share * moves).tolist()) / (m * (m - 1))
    return _Linear(numerator / denominator, moves, adjustment)


def _squares(moves: Floats, drawn: Drawn) -> tuple[float, float]:
    """Return the standard error of the mean of influences over draws, NaN for a single draw, and degrees of freedom.

    There are at most m - 1 degrees of freedom, and far fewer if a few draws have most of the influence.
    """
    return squares_of_draws(moves / int(drawn.draws.sum()), drawn.draws, drawn.left_to_draw)


def squares_of_draws(moved: Floats, draws: Counts, left_to_draw: float) -> tuple[float, float]:
    """Return the standard error and its degrees of freedom, given the influence of a draw of each cluster."""
    m = int(draws.sum())
    powers = powers_of(moved, lambda each: math.fsum((draws * each).tolist()))
    error, df = map(float, error_and_freedom(powers, m))
    return math.sqrt(left_to_draw) * error, df if m > 1 else 0.0


def _estimate(plain: float, moves: Floats, adjustment: float, ratio: Ratio, drawn: Drawn) -> Estimate:
    moves = without_rounding(moves)
    error, df = _squares(moves, drawn)
    n_clusters = int(drawn.draws[ratio.denominator > 0].sum())
    most = ratio.denominator if ratio.most is None else ratio.most
    total, of_squares, best = (
        math.fsum((drawn.draws * each).tolist()) for each in (ratio.denominator, ratio.denominator**2, most)
    )
    return Estimate(
        plain * (1 + adjustment), plain * error if plain > 0 else math.nan, plain, n_clusters, df,
        total * total / of_squares if total else 0.0, best / total if total else math.nan,
    )  # fmt: skip


class Estimable(NamedTuple):
    """A score that can be estimated: its range, and its ratio or, for some F, the ratios of precision and recall."""

    name: str
    low: float
    high: float
    ratios: tuple[MakeRatio, ...]
    alpha: float
    of_items: bool = False  #: whether it is a mean over items, or an F of two such means, which slices have

    @property
    def is_mean(self) -> bool:
        """Whether the score is a mean over items or by true cluster, or an F of two such means."""
        return self.of_items or self.name.endswith("_by_true_cluster")

    def estimate(self, drawn: Drawn) -> Estimate:
        """Estimate the score from a sample."""
        if len(self.ratios) == 1:
            return estimate_ratio(self.ratios[0](drawn), drawn)
        precision, recall = (make(drawn) for make in self.ratios)
        return estimate_f(precision, recall, self.alpha, drawn)

    def moved(self, drawn: Drawn, n_clusters: int) -> Moved:
        """Return how much one draw of each sampled cluster influences the score."""
        ratios = [make(drawn) for make in self.ratios]
        is_ratio = len(ratios) == 1
        found = _linear(ratios[0], drawn) if is_ratio else _linear_f(ratios[0], ratios[1], self.alpha, drawn)
        by_cluster = np.zeros(n_clusters)
        by_cluster[drawn.kept] = found.plain * without_rounding(found.moves) / max(int(drawn.draws.sum()), 1)
        parts = [each for own in ratios for each in (own.numerator, own.denominator)]
        drawn_once, sums = drawn.draws > 0, [own.denominator for own in ratios]
        others = [
            share_of_another(largest_share(each[drawn_once], float(drawn.draws @ each))) for each in sums
        ]
        if not is_ratio:
            p, r = (_linear(own, drawn).plain for own in ratios)
            others = [
                share * other
                for share, other in zip(_shares_of_f(p, r, found.plain, self.alpha), others, strict=True)
            ]
        uneven = max(_unevenness(each, drawn.draws) for each in parts)
        return Moved(by_cluster, uneven, max(others), self.is_mean)


class Moved(NamedTuple):
    """The influence on a score of one draw of each sampled cluster, and how unevenly clusters contribute to it."""

    by_cluster: Floats
    uneven: float
    another: float  #: share of the score that one more cluster, as large as the largest, could change
    mean: bool  #: whether the score is a mean over items or by true cluster, or an F of two such means


def _unevenness(values: Floats, draws: Counts) -> float:
    """Return the inverse of the effective number of draws with a positive value, minus the inverse of their number.

    The result is 0 if all positive values are equal.

    >>> _unevenness(np.array([3.0, 1.0, 0.0]), np.array([1, 1, 1]))  # (9 + 1) / 16 - 1 / 2
    0.125
    """
    total = float(draws @ values)
    return float(draws @ values**2) / total**2 - 1 / int(draws[values > 0].sum()) if total else 0.0


class MovedBy(NamedTuple):
    """The influences of sampled clusters on the scores of a run, and on those of its slices, by slicing and slice."""

    scores: Mapping[str, Moved]
    slicings: Mapping[str, Sequence[Mapping[str, Moved]]]


class Paired(NamedTuple):
    """A sample that several runs share, and the influences of its clusters on the scores of each run."""

    draws: Counts
    left_to_draw: float
    moved: Mapping[str, MovedBy]


class Difference(NamedTuple):
    """The standard error of the difference between two estimates from one sample, and its degrees of freedom."""

    error: float
    df: float
    not_drawn: float  #: the standard error due to clusters that were not drawn


#: The standard error due to clusters that were not drawn, as a fraction of what one more cluster, as large as the
#: largest, could change: for means, and for scores of pairs and whole clusters (see `benchmarks/sampled_runs.py`). It
#: is smaller than that of components (`results.intervals`), because a wrong merge does not enlarge a true cluster.
CLUSTER_NOT_DRAWN_OF_MEANS, CLUSTER_NOT_DRAWN_OF_OTHERS = 0.12, 0.2


def difference(before: Moved, after: Moved, draws: Counts, left_to_draw: float) -> Difference:
    """Return the error of the difference between two runs, whose influences are subtracted cluster by cluster.

    A sample may lack the few clusters that decide a score, which its variance does not show. The degrees of freedom
    allow for uneven clusters: with f the inverse of Satterthwaite's, and u the unevenness, their inverse is
    f (0.4 + 3 f) + u (1 + 5 u). `not_drawn` allows for a large cluster that runs treat differently, which matters only
    where sizes have heavy tails.
    """
    moved = without_rounding(
        after.by_cluster - before.by_cluster, np.max(np.abs(after.by_cluster), initial=0.0)
    )
    error, df = squares_of_draws(moved, draws, 1.0)
    fraction = CLUSTER_NOT_DRAWN_OF_MEANS if after.mean else CLUSTER_NOT_DRAWN_OF_OTHERS
    not_drawn = fraction * max(before.another, after.another) if error else 0.0
    left = math.sqrt(left_to_draw)
    if not df:
        return Difference(left * error, 0.0, 0.0)
    few, uneven = 1 / df, max(before.uneven, after.uneven)
    found = 1 / (few * (0.4 + 3 * few) + uneven * (1 + 5 * uneven))
    return Difference(left * error, min(max(1.0, found), int(draws.sum()) - 1.0), left * not_drawn)


#: Scores that describe the sizes of true clusters rather than the quality of the prediction.
DESCRIPTIVE = ("matching_rate", "mean_cluster_size")
RANGES = {"matching_rate": (0.0, 1.0), "mean_cluster_size": (1.0, inf)}
#: Scores that are estimated unless others are named.
DEFAULT = (
    "precision", "recall", "f1",
    "bcubed_precision_by_true_cluster", "bcubed_recall_by_true_cluster", "bcubed_f1_by_true_cluster",
    "pair_precision", "pair_recall", "pair_f1",
    "cluster_precision", "cluster_recall", "cluster_f1",
    *DESCRIPTIVE,
)  # fmt: skip
#: Each F1, and the corresponding F that is added to it if beta is not 1.
F_OF_BETA = {
    "f1": "fbeta",
    "mean_f1": "mean_fbeta",
    "bcubed_f1_by_true_cluster": "bcubed_fbeta_by_true_cluster",
    "pair_f1": "pair_fbeta",
    "cluster_f1": "cluster_fbeta",
}
#: Scores whose numerator may exceed the denominator for a sampled cluster, so estimates may exceed 1; their intervals
#: are therefore symmetric, even close to 1.
MAY_EXCEED = frozenset(
    f"{stem}_{kind}" for stem in ("cluster", "muc") for kind in ("precision", "f1", "fbeta")
)
BY_CLASS = "bcubed_precision_by_true_cluster", "bcubed_recall_by_true_cluster"
#: The precision and recall behind each F, and whether the F is itself a ratio because their numerators are the same.
F_OF: dict[str, tuple[tuple[str, str], bool]] = {
    **{
        f"{stem}_{kind}": ((f"{stem}_precision", f"{stem}_recall"), True)
        for stem in ("pair", "cluster", "muc")
        for kind in ("f1", "fbeta")
    },
    **{f"bcubed_{kind}_by_true_cluster": (BY_CLASS, False) for kind in ("f1", "fbeta")},
    "lea_f1": (("lea_precision", "lea_recall"), False),
}
#: The family of the descriptive scores.
SIZES = "sizes"


def choose(names: Any, beta: float) -> tuple[list[Estimable], dict[str, str]]:
    """Return the scores to estimate, in the order given, and the reasons why other members of families are omitted.

    >>> [each.name for each in choose(["pairs", "f1"], 2.0)[0]]
    ['pair_precision', 'pair_recall', 'pair_f1', 'pair_fbeta', 'f1', 'fbeta']
    """
    weight_of_precision(beta)  # raises for an invalid beta
    if names is None:
        names = DEFAULT
    elif isinstance(names, str) or not isinstance(names, Iterable):
        names = (names,)
    chosen: dict[str, Estimable] = {}
    left: dict[str, str] = {}
    for name in names:
        members = _members(name)
        for each in members:
            for known in (each, F_OF_BETA.get(each, "") if beta != 1 else ""):
                found = _estimable(known, beta)
                if found is not None:
                    chosen.setdefault(known, found)
                elif known and members == [name]:
                    raise MetricError(_why_not(known))
                elif known:
                    left[known] = _reason(METRICS[known])
    if not chosen:
        raise MetricError("metrics names no score that can be estimated; omit it for the default scores")
    roots = {name: METRICS[name].alias_of for name in chosen if name in METRICS}
    return [each for name, each in chosen.items() if roots.get(name) not in chosen], left


def _members(name: Any) -> list[str]:
    """Return the names of the scores that a name stands for: itself, or the members of a family."""
    if not isinstance(name, str):
        raise MetricError(
            f"scores must be named by strings, not {quoted(name)}; custom formulas are not supported"
        )
    known = str(known_as(name))
    if known == SIZES:
        return list(DESCRIPTIVE)
    if known == "all":
        return [*(m for m in METRICS if m not in F_OF_BETA.values()), *DESCRIPTIVE]
    if known in FAMILIES:
        return [m.name for m in METRICS.values() if m.family == known and m.name not in F_OF_BETA.values()]
    return [known]


def _why_not(name: str) -> str:
    if name not in METRICS and name not in (*F_OF_BETA.values(), *RATIOS):
        return f"unknown score {quoted(name)}; the default scores of estimate are {', '.join(DEFAULT)}"
    why = f": {_reason(METRICS[name])}" if name in METRICS else ""
    return (
        f"{name} cannot be estimated from a sample of true clusters{why}. These scores can: means over "
        f"items that need no true negatives, such as jaccard_distance, and {', '.join(DEFAULT[3:])}"
    )


#: Sums that need all items of each predicted cluster.
OF_PREDICTED = {
    "counterparts", "means of pred clusters", "majorities", "pairing by weight", "pairing of mentions",
    "pairing of entities",
}  # fmt: skip


def _reason(metric: Metric) -> str:
    if metric.takes_three or metric.covers_only:
        return "it compares overlapping clusterings, or judges a change against a truth"
    if metric.best == "neither" or metric.high == inf:
        return "it is not a ratio, and sampling probabilities may be known only up to a factor"
    if metric.uses_tn or {"pairs", "links", "shared clusters"} & {*metric.sums}:
        return (
            "it needs the separated pairs of all items, most of which are in true clusters that were not "
            "drawn"
        )
    if OF_PREDICTED & {*metric.sums}:
        return (
            "it needs the true clusters of all items in each predicted cluster, but the sample has only some"
        )
    return "it depends on the sizes of all true clusters in a way that is not a mean over them"


def _estimable(name: str, beta: float) -> Estimable | None:
    """Return how to estimate a score; None if it cannot be estimated."""
    alpha = weight_of_precision(beta if "fbeta" in name else 1.0)
    if name in F_OF or name in RATIOS:
        parts, is_ratio = F_OF.get(name, ((name,), False))
        made: tuple[MakeRatio, ...] = tuple(partial(ratio_of, each) for each in parts)
        made = (partial(_ratio_of_f, made[0], made[1], alpha=alpha),) if is_ratio else made
        return Estimable(name, *RANGES.get(name, (0.0, 1.0)), made, alpha)
    if name not in METRICS:
        return None
    root = METRICS[METRICS[name].alias_of or name]
    if _is_of_items(root):
        return Estimable(name, root.low, root.high, (_over_items(root, beta),), alpha, True)
    if root.name.endswith(("f1", "fbeta")) and len(root.needs) == 2 and all(map(_is_of_items, root.needs)):
        return Estimable(name, 0.0, 1.0, tuple(_over_items(need, beta) for need in root.needs), alpha, True)
    return None


def _is_of_items(metric: Metric) -> bool:
    """Return whether a score is a mean over items of a function of their tp, fp and fn."""
    return metric.formula is not None and not (metric.uses_tn or metric.labelled_only or metric.covers_only)


def ratio_of(name: str, drawn: Drawn) -> Ratio:
    """Return the weighted numerators and denominators of a score by cluster."""
    numerator, denominator, *most = (drawn.weight * each for each in RATIOS[name](drawn))
    return Ratio(numerator, denominator, *most[:1])


def _ratio_of_f(of_precision: MakeRatio, of_recall: MakeRatio, drawn: Drawn, *, alpha: float) -> Ratio:
    """Return the ratio of an F, whose denominator is the weighted mean of those of precision and recall."""
    p, r = of_precision(drawn), of_recall(drawn)
    blended = p.denominator, r.denominator, alpha
    return Ratio(p.numerator, _blend(*blended), blended=blended)


def _over_items(metric: Metric, beta: float) -> MakeRatio:
    """Return a function that makes the ratio of a mean over items: p |c| times the mean within c, to p |c|."""
    formula = metric.at(beta).formula
    assert formula is not None

    def ratio(drawn: Drawn) -> Ratio:
        sums = drawn.sums(formula, itself=0 if metric.leave_one_out else 1)
        return Ratio(drawn.weight * sums, drawn.weight * drawn.counted)

    return ratio


UNIFORM, CLUSTER_SIZE = "uniform", "cluster_size"


class ClusterSample(NamedTuple):
    """The complete true clusters that were drawn. All arrays but `rows` are by cluster."""

    clustering: Clustering  #: its labels are the numbers of the clusters
    size: Counts  #: number of items
    weight: Floats  #: inverse of the sampling probability, or proportional to it
    draws: Counts  #: how often the cluster was drawn
    n_null: int  #: rows whose cluster is null
    n_duplicates: int  #: rows dropped because they repeat an earlier one
    rows: Counts  #: numbers of the rows that remain


def read_sample(side: Clustering, policies: Policies, sampling: Any, draws: Any, pool: Pool) -> ClusterSample:
    """Return the sampled clusters with their sizes, weights and draws; raise if the sample is invalid."""
    if side.items is None:
        raise AlignmentError(
            "the sample has labels without item ids, so it cannot be matched to the prediction. Pass a "
            "table, a dict, or Clustering.from_labels(labels, items=ids)."
        )
    for name, value in (("sampling", sampling), ("draws", draws)):
        if not isinstance(value, str) and not (name == "draws" and value is None):
            known = '"uniform", "cluster_size" or ' if name == "sampling" else ""
            raise OptionError(
                f"{arg(name)} must be {known}the name of a column of the sample, not {quoted(value)}"
            )
    rows = Side.of(side, policies, side.labels.keys(pool), side.labels.null_rows)
    kept = rows.without_repeats(side.items.keys(pool), pool)
    if rows.absent is not None:
        kept = kept[~rows.absent[kept]]
    if not kept.size:
        raise EmptyInputError(f"{side.name} has no item in a cluster")
    codes = number(_keys_of(rows, kept), pool)
    size = np.bincount(codes.codes)
    by_cluster = _ByCluster(side, kept, codes.codes, codes.firsts)
    return ClusterSample(
        _numbered(side, kept, codes.codes),
        size,
        _weights(by_cluster, sampling, size),
        np.ones(size.size, np.int64) if draws is None else by_cluster.counts(draws),
        rows.n_null,
        rows.n_duplicates,
        kept,
    )


def _keys_of(rows: Side, kept: Counts) -> Counts:
    """Return the cluster keys of the kept rows; each row that is a singleton by policy gets a key of its own."""
    keys = rows.labels[kept]
    if rows.alone is None or not rows.alone[kept].any():
        return keys
    alone = rows.alone[kept]
    codes = np.unique(keys, return_inverse=True)[1]
    return np.where(alone, codes.size + np.arange(codes.size), codes)


def _numbered(side: Clustering, kept: Counts, codes: Counts) -> Clustering:
    """Return the clustering of the kept rows, labelled by cluster numbers."""
    assert side.items is not None
    items = side.items
    if kept.size < len(side):
        items = items.chosen(kept)
    labels = pa.chunked_array([from_numpy(codes)])
    return Clustering(
        Column("cluster", [labels], "the numbers of the sampled clusters"), items, name=side.name
    )


def _weights(by_cluster: _ByCluster, sampling: str, size: Counts) -> Floats:
    """Return the weight of each cluster: the inverse of its sampling probability, or proportional to that."""
    if sampling == UNIFORM:
        return np.ones(size.size)
    if sampling == CLUSTER_SIZE:
        return 1.0 / size
    found = by_cluster.values(sampling, "sampling")
    least, most = kernels.sums.LEAST, kernels.sums.MOST
    if (bad := np.flatnonzero(~((found >= least) & (found <= most)))).size:
        range_of = (
            f" from {least} to {most}" if (found[bad] > 0).all() and np.isfinite(found[bad]).all() else ""
        )
        raise WeightError(
            f"{bad.size} of {found.size} sampled clusters have a weight in column {sampling!r} that is not "
            f"a positive number{range_of} ({by_cluster.first(bad, found)}). It must be the inverse of the "
            "cluster's sampling probability."
        )
    return found


class _ByCluster(NamedTuple):
    """Reads those columns of a sample that must have one value per cluster."""

    side: Clustering
    kept: Counts  #: the rows that remain
    codes: Counts  #: the cluster of each kept row
    firsts: Counts  #: the position among the kept rows of the first row of each cluster

    def values(self, name: str, argument: str) -> Floats:
        """Return the value of each cluster; raise if the items of a cluster have different values."""
        table = self.side.attributes
        if table is None or name not in table.names:
            known = (UNIFORM, CLUSTER_SIZE) if argument == "sampling" else ()
            names = () if table is None else self.side.attribute_names
            raise ColumnError(
                f"{arg(argument, name)} is not a column of {self.side.name}"
                + (f" ({', '.join(names) or 'which has no other columns'})" if table is not None else "")
                + f"{''.join(f', nor {each!r}' for each in known)}.{did_you_mean(name, (*known, *names))}"
            )
        values = read_columns(table, [], name)[1]
        assert values is not None
        by_row = values[self.kept]
        by_cluster = by_row[self.firsts]
        differ = np.flatnonzero((by_row != by_cluster[self.codes]) & ~np.isnan(by_row))
        if differ.size:
            clusters = np.unique(self.codes[differ])
            raise WeightError(
                f"{clusters.size} of {by_cluster.size} sampled clusters have items with different values "
                f"of {name!r} (first: {first_few(self.labels(clusters[:4]))}). Clusters are drawn as a "
                "whole: give all items of a cluster the same value."
            )
        return by_cluster

    def counts(self, name: str) -> Counts:
        """Return the number of draws of each cluster; raise if one is not a positive integer."""
        found = self.values(name, "draws")
        if (bad := np.flatnonzero(~((found >= 1) & (found == np.floor(found)) & (found < 2**31)))).size:
            raise WeightError(
                f"{bad.size} of {found.size} sampled clusters have a number of draws in column {name!r} that "
                f"is not a positive integer ({self.first(bad, found)})."
            )
        return found.astype(np.int64)

    def labels(self, clusters: Counts) -> list[Any]:
        """Return the labels of some clusters."""
        return self.side.labels.take(self.kept[self.firsts[clusters]]).to_pylist()

    def first(self, clusters: Counts, values: Floats) -> str:
        """Return the labels and values of the first three of these clusters, for a message."""
        few = clusters[:3]
        named = zip(self.labels(few), values[few].tolist(), strict=True)
        shown = ", ".join(f"{first_few([label])}: {value:g}" for label, value in named)
        return f"first: {shown}{', …' if clusters.size > 3 else ''}"


class Cells(NamedTuple):
    """Cells of sampled clusters, each with n items that share a true and a predicted cluster."""

    cluster: Counts  #: the position of the true cluster
    n: Floats
    true_n: Floats  #: items of the true cluster
    pred_n: Floats  #: items of the predicted cluster, sampled or not
    times: Floats  #: how many equal cells this one stands for
    here: Floats  #: scored items of the cell: those in the slice, or all n


class Drawn(NamedTuple):
    """The sampled clusters and their cells in a prediction. All arrays but those of `cells` are by cluster."""

    draws: Counts  #: how often each cluster was drawn
    weight: Floats  #: inverse of the sampling probability, or proportional to it
    size: Counts  #: number of items
    missing: Counts  #: number of items that the prediction lacks and that count as predicted singletons
    cells: Cells
    n_items: int  #: items of the prediction
    n_clusters: int  #: clusters of the prediction
    kept: Counts  #: the numbers of these clusters in the sample
    left_to_draw: float = 1.0  #: share of the true clusters that were not drawn; 1 if their number is unknown

    @classmethod
    def of(
        cls,
        sample: ClusterSample,
        cells: tuple[Counts, Counts, Counts],
        prediction: tuple[int, int],
        *,
        missing: str,
        left_to_draw: float = 1.0,
    ) -> Drawn:
        """Combine a sample with its cells in a prediction.

        `cells` has the true cluster, the number of items and the size of the predicted cluster of each cell, and
        `prediction` the numbers of items and clusters. Items that are missing from the prediction become singletons of
        the prediction if `missing` is "singleton", and are dropped if `missing` is "drop".
        """
        true, n, pred_n = cells
        there = np.bincount(true, n, sample.size.size).astype(np.int64)
        size = there if missing == "drop" else sample.size
        kept = np.flatnonzero(size)
        found = cls(
            sample.draws[kept], sample.weight[kept], size[kept], (size - there)[kept],
            Cells(kept, *[np.zeros(0)] * 5), *prediction, kept, left_to_draw,
        )  # fmt: skip
        return found.of_items(true, n, pred_n, n, size - there)

    def of_items(self, true: Counts, n: Counts, pred_n: Counts, here: Counts, missing: Counts) -> Drawn:
        """Return the same clusters with these cells, plus a cell for the missing items of each cluster."""
        place = np.full(int(self.kept.max()) + 1, -1)
        place[self.kept] = np.arange(self.kept.size)
        alone = np.flatnonzero(missing)
        size, one = self.size.astype(np.float64), np.ones(alone.size)
        columns = (
            (n, one),
            (size[place[true]], size[place[alone]]),
            (pred_n, one),
            (np.ones(n.size), missing[alone]),
            (here, one),
        )
        cluster = np.concatenate((place[true], place[alone]))
        cells = Cells(cluster, *(np.concatenate(pair).astype(np.float64) for pair in columns))
        return self._replace(cells=cells)

    def add(self, by_cell: Floats) -> Floats:
        """Return, for each cluster, the sum over its scored items of a value that is given by cell."""
        cells = self.cells
        return _add(cells, cells.here * by_cell, self.size.size)

    def scored(self, formula: Formula, itself: int = 1) -> Floats:
        """Return the score of an item of each cell; with `itself=0`, the item does not count in its own clusters."""
        c = self.cells
        tp = c.n - (1 - itself)
        return np.asarray(formula(tp, c.pred_n - c.n, c.true_n - c.n, None))  # type: ignore[arg-type]

    def sums(self, formula: Formula, itself: int = 1) -> Floats:
        """Return the sum of a score over the scored items of each cluster."""
        return self.add(self.scored(formula, itself))

    @property
    def counted(self) -> Floats:
        """Number of scored items: those in the slice, or all."""
        return self.add(np.ones(self.cells.n.size))

    @property
    def one(self) -> Floats:
        """One for each cluster."""
        return np.ones(self.size.size)

    @property
    def found(self) -> Floats:
        """Ordered pairs of items of the cluster that are together in the prediction: |c| (|c| - 1 - miss)."""
        return self.add(self.cells.n - 1)

    @property
    def linked(self) -> Floats:
        """Ordered pairs of an item and another one of its predicted cluster: |c| (|c| - 1 + extra - miss)."""
        return self.add(self.cells.pred_n - 1)

    @property
    def pairs(self) -> Floats:
        """Ordered pairs of items of the cluster: |c| (|c| - 1)."""
        return self.size * (self.size - 1.0)

    @property
    def hit(self) -> Floats:
        """Whether the cluster is also a predicted cluster: 1 or 0."""
        c = self.cells
        whole = (c.n == c.true_n) & (c.n == c.pred_n)
        return _add(c, whole.astype(np.float64), self.size.size)

    def best(self, by_cell: Floats) -> Floats:
        """Return the largest value among the cells of each cluster."""
        found = np.zeros(self.size.size)
        np.maximum.at(found, self.cells.cluster, by_cell)
        return found

    @property
    def joined(self) -> Floats:
        """The least number of links that connect the items within each cell of the cluster: |c| minus its cells."""
        parts = _add(self.cells, np.ones(self.cells.n.size), self.size.size)
        return self.size - parts

    @property
    def pred_joined(self) -> Floats:
        """The least number of links that connect predicted clusters, n - M, times the cluster's number of items.

        Items that are missing from the prediction are singletons there, which need no links.
        """
        return np.asarray((self.size - self.missing) * float(self.n_items - self.n_clusters), np.float64)

    def links(self, sizes: Floats) -> Floats:
        """Return the sum over items of the share of the item's links that are within its cell.

        `sizes` are the sizes of the true or the predicted cluster of each cell. The share is 1 for a singleton on
        both sides.
        """
        c = self.cells
        share = np.divide(c.n - 1, sizes - 1, out=np.zeros(c.n.size), where=sizes > 1)
        return self.add(np.where((c.true_n == 1) & (c.pred_n == 1), 1.0, share))

    @property
    def pred_clusters(self) -> Floats:
        """The number of predicted clusters, M, times the cluster's number of items, plus n for each missing item.

        The values are whole numbers, whose sum is exact.
        """
        return (self.size - self.missing) * float(self.n_clusters) + self.missing * float(self.n_items)


def _add(cells: Cells, by_cell: Floats, n_clusters: int) -> Floats:
    return np.asarray(np.bincount(cells.cluster, cells.times * by_cell, n_clusters), np.float64)


def hill_numbers(drawn: Drawn) -> dict[str, float]:
    """Return the effective number of cluster sizes, by order 0, 1 and 2: (sum of p_s^q)^(1 / (1 - q)).

    p_s is the estimated share of clusters of size s; sizes that no sampled cluster has do not count.

    >>> one = np.ones(3)
    >>> drawn = Drawn(one.astype(int), one, np.array([1, 1, 2]), one, None, 4, 3, np.arange(3))
    >>> [round(number, 4) for number in hill_numbers(drawn).values()]  # shares 2/3 and 1/3
    [2.0, 1.8899, 1.8]
    """
    _, size = np.unique(drawn.size, return_inverse=True)
    weight = np.asarray(np.bincount(size, drawn.draws * drawn.weight), np.float64)
    share = weight / weight.sum()
    entropy = -math.fsum((share * np.log(share)).tolist())
    return {"0": float(share.size), "1": math.exp(entropy), "2": 1 / math.fsum((share**2).tolist())}
