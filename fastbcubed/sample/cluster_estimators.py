"""Samples of clusters, and estimators of scores from them.

A sampled cluster c that was drawn k times counts k times; m is the number of draws, and a bar is the mean over these.
With N_c and D_c of each cluster, the plain estimate is mean(N) / mean(D).
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
from fastbcubed.results.standard_errors import error_and_freedom, powers_of
from fastbcubed.runtime.key_codes import number
from fastbcubed.runtime.suggestions import did_you_mean
from fastbcubed.runtime.threads import Pool
from fastbcubed.types import Counts, Floats

__all__ = ["DESCRIPTIVE", "Estimable", "choose"]

B = TypeVar("B", Floats, float)
#: Makes the ratio that a score is, or that of two that it is an F of.
MakeRatio = Callable[["Drawn"], "Ratio"]


def _blend(of_precision: B, of_recall: B, alpha: float) -> B:
    """Return a mean of two denominators, of which equal ones have themselves, whatever alpha is."""
    return of_recall + alpha * (of_precision - of_recall)


class Ratio(NamedTuple):
    """Numerators and denominators of a score by cluster, and the largest possible numerators, if different."""

    numerator: Floats
    denominator: Floats
    most: Floats | None = None
    #: what a denominator of an F is blended from, and alpha: blended sums are exact where both have the same sum
    blended: tuple[Floats, Floats, float] | None = None

    def means(self, draws: Counts) -> tuple[float, float]:
        """Return the means of numerator and denominator over draws."""
        m = int(draws.sum())

        def mean(values: Floats) -> float:
            return math.fsum((draws * values).tolist()) / m

        if self.blended is None:
            return mean(self.numerator), mean(self.denominator)
        of_precision, of_recall, alpha = self.blended
        return mean(self.numerator), _blend(mean(of_precision), mean(of_recall), alpha)


class Estimate(NamedTuple):
    """A score of the population: the estimate, its standard error, and the plain ratio."""

    value: float
    error: float
    unadjusted: float
    n_clusters: int  #: draws that say something of it
    df: float  #: degrees of freedom of the error
    effective: float  #: the effective number of draws
    ceiling: float  #: the plain ratio if all numerators were as large as can be


#: Numerator, denominator and, if it is another, the largest numerator of each score by cluster; `ratio_of` weighs them.
#: Numerators of precision and recall of one kind are the same where their F is a ratio, too.
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
    """A plain estimate, by how much each cluster moves it relative to itself, and its relative adjustment."""

    plain: float
    moves: Floats
    adjustment: float


def estimate_ratio(ratio: Ratio, drawn: Drawn) -> Estimate:
    """Estimate a ratio of means.

        estimate = R [1 + 1 / (m - 1) mean(D_c / D (N_c / N - D_c / D))]        with R = N / D, N = mean(N_c) and so on
        error    = R sqrt(sum (N_c / N - D_c / D)^2 / (m (m - 1)))

    NaN where the mean of D is 0, as nothing was observed; the error is NaN of a single draw, and where R is 0.
    """
    found = _linear(ratio, drawn)
    return _estimate(found.plain, found.moves, found.adjustment, ratio, drawn)


def estimate_f(precision: Ratio, recall: Ratio, alpha: float, drawn: Drawn) -> Estimate:
    """Estimate F of two ratios that have the same denominators, as `_linear_f` does."""
    found = _linear_f(precision, recall, alpha, drawn)
    return _estimate(found.plain, found.moves, found.adjustment, precision, drawn)


def _linear_f(precision: Ratio, recall: Ratio, alpha: float, drawn: Drawn) -> _Linear:
    """Return F of two ratios by the delta method to the second order.

    With u = alpha F / P and v = (1 - alpha) F / R, of which u + v = 1, and x and y by how much a cluster moves P and R
    relative to themselves:

        estimate = F [1 + u adjustment(P) + v adjustment(R) + u v sum (x - y)^2 / (m (m - 1))]
        error    = F sqrt(sum (u x + v y)^2 / (m (m - 1)))
    """
    p, r = _linear(precision, drawn), _linear(recall, drawn)
    plain = float(f_measure(p.plain, r.plain, alpha))
    u = alpha * plain / p.plain if p.plain > 0 else 0.0
    v = (1 - alpha) * plain / r.plain if r.plain > 0 else 0.0
    moves = u * p.moves + v * r.moves
    curved = u * v * _squares(p.moves - r.moves, drawn)[0] ** 2
    adjustment = u * p.adjustment + v * r.adjustment + (0.0 if math.isnan(curved) else curved)
    return _Linear(plain, moves, adjustment)


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

    These are m - 1 at most; those of a score that few draws decide are few.
    """
    return squares_of_draws(moves / int(drawn.draws.sum()), drawn.draws, drawn.left_to_draw)


def squares_of_draws(moved: Floats, draws: Counts, left_to_draw: float) -> tuple[float, float]:
    """Return the same from what a draw of each cluster moves."""
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
    """A score that can be estimated: its range, and the ratio that it is, or the two that it is an F of."""

    name: str
    low: float
    high: float
    ratios: tuple[MakeRatio, ...]
    alpha: float
    of_items: bool = False  #: whether it is a mean over items, or an F of two, so that slices have it

    def estimate(self, drawn: Drawn) -> Estimate:
        """Estimate the score from a sample."""
        if len(self.ratios) == 1:
            return estimate_ratio(self.ratios[0](drawn), drawn)
        precision, recall = (make(drawn) for make in self.ratios)
        return estimate_f(precision, recall, self.alpha, drawn)

    def moved(self, drawn: Drawn, n_clusters: int) -> Moved:
        """Return what each cluster of the sample moves the score by."""
        ratios = [make(drawn) for make in self.ratios]
        is_ratio = len(ratios) == 1
        found = _linear(ratios[0], drawn) if is_ratio else _linear_f(ratios[0], ratios[1], self.alpha, drawn)
        by_cluster = np.zeros(n_clusters)
        by_cluster[drawn.kept] = found.plain * without_rounding(found.moves) / max(int(drawn.draws.sum()), 1)
        parts = [each for own in ratios for each in (own.numerator, own.denominator)]
        return Moved(by_cluster, max(_unevenness(each, drawn.draws) for each in parts))


class Moved(NamedTuple):
    """What a draw of each cluster of a sample moves a score by, and how uneven these are in it."""

    by_cluster: Floats
    uneven: float


def _unevenness(values: Floats, draws: Counts) -> float:
    """Return one over the effective number of draws with a value, less one over their number: 0 where they are equal.

    >>> _unevenness(np.array([3.0, 1.0, 0.0]), np.array([1, 1, 1]))  # (9 + 1) / 16 - 1 / 2
    0.125
    """
    total = float(draws @ values)
    return float(draws @ values**2) / total**2 - 1 / int(draws[values > 0].sum()) if total else 0.0


class MovedBy(NamedTuple):
    """What clusters of a sample move the scores of a run by, and those of slices, by slicing and slice."""

    scores: Mapping[str, Moved]
    slicings: Mapping[str, Sequence[Mapping[str, Moved]]]


class Paired(NamedTuple):
    """A sample that several runs share, and what its clusters move the scores of each by."""

    draws: Counts
    left_to_draw: float
    moved: Mapping[str, MovedBy]


class Difference(NamedTuple):
    """The standard error of a difference of two estimates from one sample, and its degrees of freedom."""

    error: float
    df: float


def difference(before: Moved, after: Moved, draws: Counts, left_to_draw: float) -> Difference:
    """Return the error of a difference: that of the mean of what draws move, in which clusters are paired.

    A sample may lack the clusters that decide a score, and its variance does not say so: the more so, the fewer carry
    the error, and the more uneven they are in the score. With f one over the degrees of freedom by Satterthwaite, and u
    the unevenness, one over those of the difference is f (1 + 4 f) + u (1 + 10 f). The multipliers were chosen by
    1,000 samples each of 50, 300 and 1,000 clusters of three data sets, where differences of precision, recall and F1
    then held in 93 % or more, and those of pairs and whole clusters, with 50 clusters, in 73 to 95 %. Where one cluster
    in thousands has most of the difference, they hold in no more samples than have it (see
    `benchmarks/sampled_runs.py`).
    """
    moved = without_rounding(
        after.by_cluster - before.by_cluster, np.max(np.abs(after.by_cluster), initial=0.0)
    )
    error, df = squares_of_draws(moved, draws, left_to_draw)
    if not df:
        return Difference(error, 0.0)
    few, uneven = 1 / df, max(before.uneven, after.uneven)
    return Difference(error, max(1.0, 1 / (few * (1 + 4 * few) + uneven * (1 + 10 * few))))


#: What says how large true clusters are, rather than how good the prediction is.
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
#: F1 and the F of another beta, which comes with it where there is one.
F_OF_BETA = {
    "f1": "fbeta",
    "mean_f1": "mean_fbeta",
    "bcubed_f1_by_true_cluster": "bcubed_fbeta_by_true_cluster",
    "pair_f1": "pair_fbeta",
    "cluster_f1": "cluster_fbeta",
}
#: Scores whose numerator may be larger than the denominator for a sampled cluster, so that estimates may pass 1: their
#: errors are as large on both sides, however near to 1 they are.
MAY_EXCEED = frozenset(
    f"{stem}_{kind}" for stem in ("cluster", "muc") for kind in ("precision", "f1", "fbeta")
)
BY_CLASS = "bcubed_precision_by_true_cluster", "bcubed_recall_by_true_cluster"
#: What an F is of, and whether it is one ratio, as the two have the same numerators.
F_OF: dict[str, tuple[tuple[str, str], bool]] = {
    **{
        f"{stem}_{kind}": ((f"{stem}_precision", f"{stem}_recall"), True)
        for stem in ("pair", "cluster", "muc")
        for kind in ("f1", "fbeta")
    },
    **{f"bcubed_{kind}_by_true_cluster": (BY_CLASS, False) for kind in ("f1", "fbeta")},
    "lea_f1": (("lea_precision", "lea_recall"), False),
}
#: The family of what describes the true clusters.
SIZES = "sizes"


def choose(names: Any, beta: float) -> tuple[list[Estimable], dict[str, str]]:
    """Return the scores to estimate, in the order given, and those of a family that cannot be, with the reason.

    >>> [each.name for each in choose(["pairs", "f1"], 2.0)[0]]
    ['pair_precision', 'pair_recall', 'pair_f1', 'pair_fbeta', 'f1', 'fbeta']
    """
    weight_of_precision(beta)  # raises for a beta that is none
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
    """Return a score, or the members of a family, by the names that they have here."""
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
        return f"unknown score {quoted(name)}; fastbcubed.estimate has {', '.join(DEFAULT)} by default"
    why = f": {_reason(METRICS[name])}" if name in METRICS else ""
    return (
        f"{name} cannot be estimated from a sample of true clusters{why}. Scores that can: means over items "
        f"that need no true negatives, such as jaccard_distance, and {', '.join(DEFAULT[3:])}"
    )


#: Sums over predicted clusters, each with all of its items.
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
    """Return a score that can be estimated; None for any other."""
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
    """Return whether a score is a mean over items of a function of tp, fp and fn of each."""
    return metric.formula is not None and not (metric.uses_tn or metric.labelled_only or metric.covers_only)


def ratio_of(name: str, drawn: Drawn) -> Ratio:
    """Return the ratio that a score is."""
    numerator, denominator, *most = (drawn.weight * each for each in RATIOS[name](drawn))
    return Ratio(numerator, denominator, *most[:1])


def _ratio_of_f(of_precision: MakeRatio, of_recall: MakeRatio, drawn: Drawn, *, alpha: float) -> Ratio:
    """Return the ratio of an F, whose denominator is a mean of those of precision and recall."""
    p, r = of_precision(drawn), of_recall(drawn)
    blended = p.denominator, r.denominator, alpha
    return Ratio(p.numerator, _blend(*blended), blended=blended)


def _over_items(metric: Metric, beta: float) -> MakeRatio:
    """Return the ratio behind a mean over items: p |c| times the mean over the items of c, and p |c|."""
    formula = metric.at(beta).formula
    assert formula is not None

    def ratio(drawn: Drawn) -> Ratio:
        sums = drawn.sums(formula, itself=0 if metric.leave_one_out else 1)
        return Ratio(drawn.weight * sums, drawn.weight * drawn.counted)

    return ratio


UNIFORM, CLUSTER_SIZE = "uniform", "cluster_size"


class ClusterSample(NamedTuple):
    """True clusters that were drawn, each complete. All arrays are by cluster."""

    clustering: Clustering  #: whose labels are the numbers of the clusters
    size: Counts  #: items
    weight: Floats  #: one over the chance to be drawn, or in proportion to that
    draws: Counts  #: how often it was drawn
    n_null: int  #: rows whose cluster is null
    n_duplicates: int  #: rows left out since they repeat an earlier one
    rows: Counts  #: the rows of the sample that count


def read_sample(side: Clustering, policies: Policies, sampling: Any, draws: Any, pool: Pool) -> ClusterSample:
    """Return the clusters of a sample by number, with their draws; raise for an impossible sample."""
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
    items = side.items.keys(pool)
    kept = np.arange(len(side))
    if number(items, pool).firsts.size < len(side):
        kept = rows.without_repeats(items)
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
    """Return keys of the clusters of some rows, in which those that are alone have keys of their own."""
    keys = rows.labels[kept]
    if rows.alone is None or not rows.alone[kept].any():
        return keys
    alone = rows.alone[kept]
    codes = np.unique(keys, return_inverse=True)[1]
    return np.where(alone, codes.size + np.arange(codes.size), codes)


def _numbered(side: Clustering, kept: Counts, codes: Counts) -> Clustering:
    """Return the clustering of some rows by number of the cluster."""
    assert side.items is not None
    items = side.items
    if kept.size < len(side):
        items = items.chosen(kept)
    labels = pa.chunked_array([from_numpy(codes)])
    return Clustering(
        Column("cluster", [labels], "the numbers of the sampled clusters"), items, name=side.name
    )


def _weights(by_cluster: _ByCluster, sampling: str, size: Counts) -> Floats:
    """Return the weight of each cluster: one over the chance to be drawn, or in proportion to that."""
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
    """Reads columns of a sample that have one value for each cluster."""

    side: Clustering
    kept: Counts  #: the rows that count
    codes: Counts  #: the cluster of each
    firsts: Counts  #: which of these is the first of each cluster

    def values(self, name: str, argument: str) -> Floats:
        """Return the value of each cluster; raise where its items have different ones."""
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
        """Return a number of draws of each cluster."""
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
        """Return the first few of some clusters with their values, for a message."""
        few = clusters[:3]
        named = zip(self.labels(few), values[few].tolist(), strict=True)
        shown = ", ".join(f"{first_few([label])}: {value:g}" for label, value in named)
        return f"first: {shown}{', …' if clusters.size > 3 else ''}"


class Cells(NamedTuple):
    """Cells of sampled clusters: `times` times n items of a true cluster that share a predicted one."""

    cluster: Counts  #: the number of the true cluster
    n: Floats
    true_n: Floats  #: items of the true cluster
    pred_n: Floats  #: items of the predicted cluster, sampled or not
    times: Floats
    here: Floats  #: those of the n items that count: all, but for a slice


class Drawn(NamedTuple):
    """Sampled clusters in a prediction. All arrays but those of `cells` are by cluster."""

    draws: Counts  #: how often each was drawn
    weight: Floats  #: one over the chance to be drawn, or in proportion to that
    size: Counts  #: items
    missing: Counts  #: those of them that the prediction lacks, where these are alone; else 0
    cells: Cells
    n_items: int  #: items of the prediction
    n_clusters: int  #: its clusters
    kept: Counts  #: which of the clusters of the sample these are
    left_to_draw: float = 1.0  #: the share of the population that is not in the sample, where that matters

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
        """Put together a sample and its cells in the prediction: cluster, items, items of the predicted cluster.

        The prediction has so many items and clusters. Items that it lacks are alone there if `missing` is "singleton",
        and no items if it is "drop".
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
        """Return the same clusters with the cells of some of their items, and those that are alone."""
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
        """Add up values of the items of each cell by cluster."""
        cells = self.cells
        return _add(cells, cells.here * by_cell, self.size.size)

    def scored(self, formula: Formula, itself: int = 1) -> Floats:
        """Return a score of the items of each cell; without `itself`, an item is left out of its sets."""
        c = self.cells
        tp = c.n - (1 - itself)
        return np.asarray(formula(tp, c.pred_n - c.n, c.true_n - c.n, None))  # type: ignore[arg-type]

    def sums(self, formula: Formula, itself: int = 1) -> Floats:
        """Add up a score of items by cluster."""
        return self.add(self.scored(formula, itself))

    @property
    def counted(self) -> Floats:
        """Items that count: all, but for a slice."""
        return self.add(np.ones(self.cells.n.size))

    @property
    def one(self) -> Floats:
        """Each cluster, counted once."""
        return np.ones(self.size.size)

    @property
    def found(self) -> Floats:
        """Ordered pairs of its items that are together in the prediction: |c| (|c| - 1 - miss)."""
        return self.add(self.cells.n - 1)

    @property
    def linked(self) -> Floats:
        """Ordered pairs of one of its items and another of the predicted cluster: |c| (|c| - 1 + extra - miss)."""
        return self.add(self.cells.pred_n - 1)

    @property
    def pairs(self) -> Floats:
        """Ordered pairs of its items: |c| (|c| - 1)."""
        return self.size * (self.size - 1.0)

    @property
    def hit(self) -> Floats:
        """Whether it is a predicted cluster: 1 or 0."""
        c = self.cells
        whole = (c.n == c.true_n) & (c.n == c.pred_n)
        return _add(c, whole.astype(np.float64), self.size.size)

    def best(self, by_cell: Floats) -> Floats:
        """Return the largest value of a cell of each cluster."""
        found = np.zeros(self.size.size)
        np.maximum.at(found, self.cells.cluster, by_cell)
        return found

    @property
    def joined(self) -> Floats:
        """Links that connect its items where they are together in the prediction: |c| less the number of its cells."""
        parts = _add(self.cells, np.ones(self.cells.n.size), self.size.size)
        return self.size - parts

    @property
    def pred_joined(self) -> Floats:
        """Links that connect the items of predicted clusters, |c| (n - M) / n, as many as its items have; times n.

        Items that are missing there are alone, and have none.
        """
        return np.asarray((self.size - self.missing) * float(self.n_items - self.n_clusters), np.float64)

    def links(self, sizes: Floats) -> Floats:
        """Return the share of links of clusters of these sizes that cells have, added up over items.

        An item alone on both sides has all of none.
        """
        c = self.cells
        share = np.divide(c.n - 1, sizes - 1, out=np.zeros(c.n.size), where=sizes > 1)
        return self.add(np.where((c.true_n == 1) & (c.pred_n == 1), 1.0, share))

    @property
    def pred_clusters(self) -> Floats:
        """Predicted clusters that as many items have, |c| M / n, and one for each that is missing there; times n.

        These are whole numbers, whose sum over all clusters is exact.
        """
        return (self.size - self.missing) * float(self.n_clusters) + self.missing * float(self.n_items)


def _add(cells: Cells, by_cell: Floats, n_clusters: int) -> Floats:
    return np.asarray(np.bincount(cells.cluster, cells.times * by_cell, n_clusters), np.float64)


def hill_numbers(drawn: Drawn) -> dict[str, float]:
    """Return the effective number of cluster sizes, by order 0, 1 and 2: (sum of p_s^q)^(1 / (1 - q)).

    p_s is the estimated share of clusters that have size s; sizes that no sampled cluster has are not there.

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
