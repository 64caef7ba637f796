"""Sums from which scores are computed, by name. Each sum is written once, by unit; over all cells, there is one unit.

A function takes the cells with their units, and returns additive quantities by unit (numbers of items, clusters or
pairs, logarithms of sizes), and a function from their totals to the arguments of scores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from fastbcubed import kernels
from fastbcubed.cells.contingency import SIDES, Contingency, confusion
from fastbcubed.metrics import fast_sums
from fastbcubed.metrics.aggregation import finished, item_means, item_sums, means_by_cluster, with_needs
from fastbcubed.metrics.bcubed import pointwise
from fastbcubed.metrics.cells_by_unit import Additive, CellsByUnit, OneUnit
from fastbcubed.metrics.counterparts import (
    Fit,
    Links,
    Paired,
    Side,
    best_overlaps,
    best_pairs,
    counterparts,
    majorities,
    mentions,
    mentions_of_cells,
    pairs_by_similarity,
    pairs_by_weight,
    pairs_of_mentions,
)
from fastbcubed.metrics.metric import Metric
from fastbcubed.overlap.omega_and_nmi import (
    Left,
    entropies_by_cluster,
    shared_clusters_by_unit,
    sides_of,
)
from fastbcubed.runtime.threads import Pool
from fastbcubed.types import Floats, Sizes

#: The step of difference quotients relative to a total.
STEP = 2.0**-9


# Pairs
def _pairs(by: CellsByUnit) -> Additive:
    table = by.table
    w: Floats = table.weight
    of_items: Any = w
    if table.weighted:
        assert table.rows is not None
        scored = table.rows.cell >= 0
        of_items = np.bincount(table.rows.cell[scored], table.rows.weight[scored] ** 2, table.n_cells)
    together = np.where(table.n == 1, 0.0, w * w - of_items)

    def counts(weight: float, squares: float, tp: float, fp: float, fn: float) -> fast_sums.PairCounts:
        return fast_sums.PairCounts(tp, fp, fn, (weight * weight - squares) / 2 - tp - fp - fn)  # type: ignore[arg-type]

    pairs = (together / 2, w * table.fp / 2, w * table.fn / 2)
    return Additive([by.cells(each) for each in (w, of_items, *pairs)], counts)


def _wrong_pairs(by: CellsByUnit) -> Additive:
    table = by.table

    def wrong(cells: slice) -> list[Floats]:
        return [table.weight[cells] * others[cells] / 2 for others in (table.fp, table.fn)]

    return Additive(by.in_ranges(wrong), lambda *pairs: pairs)


def _shared_clusters(by: CellsByUnit) -> Additive:
    """Return the sums of pairs for Omega, by the number of clusters that a pair shares: 0 or 1, or more in a cover."""
    table = by.table
    if table.overlapping:
        found = shared_clusters_by_unit(table.once(sides_of, by.pool), by.units, by.n, table.max_pairs)
        return Additive([by.cells(table.n), *found], found.fields)
    pairs = by.once(_pairs)
    return Additive(pairs.by_unit, lambda *totals: fast_sums.shared_by_pairs(*pairs.fields(*totals)))


# Entropies
def _entropies(by: CellsByUnit) -> Additive:
    """Return the sums for entropies: weights, w log(N / a) of true clusters of weight a, and both losses."""
    table = by.table
    w, whole = table.weight, table.total_weight
    open_true = w * np.log(whole / (w + table.fn))
    losses = [w * np.log1p(wrong / w) for wrong in (table.fp, table.fn)]

    def entropies(
        weight: float, true: float, true_given_pred: float, pred_given_true: float
    ) -> fast_sums.Entropies:
        pred = true - true_given_pred + pred_given_true
        more = np.log(weight / whole)
        true, pred = (
            np.maximum(more + each / weight, 0.0) for each in (true, pred)
        )  # rounding must not make the entropy of a single cluster negative
        return fast_sums.Entropies(true, pred, true_given_pred / weight, pred_given_true / weight)

    return Additive([by.cells(each) for each in (w, open_true, *losses)], entropies)


def _entropies_of_clusters(by: CellsByUnit) -> Additive:
    """Return the number of items, and for each side the number of clusters and the sums of `Left`.

    The sums depend on the number of items, with jumps where the number decides whether a cluster is informative about
    another. Derivatives by the number of items are therefore slopes over a range as wide as its variation between
    samples.
    """
    sides, n, items = by.table.once(sides_of, by.pool), float(by.table.n_items), by.cells(by.table.n)
    spread = max(float(np.sqrt(by.add((items - n / by.count(by.n)) ** 2))) / n, STEP)
    step = n * min(spread, 0.5 * (1.0 - float(items.max()) / n))  # 0 for one unit
    found = entropies_by_cluster(sides, n)
    up, down = (entropies_by_cluster(sides, n + s) if step else found for s in (step, -step))
    figures, slopes = [items], []
    for k, side in enumerate(SIDES):
        figures.append(by.clusters(side, (sides.sizes[k].n > 0).astype(np.float64)))
        figures += [by.clusters(side, own) for own in found[k]]
        changes = (by.add(by.clusters(side, more - less)) for more, less in zip(up[k], down[k], strict=True))
        slopes.append([change / (2.0 * step) if step else 0.0 for change in changes])

    def fields(items: float, *totals: float) -> tuple[Left, ...]:
        sides = ((totals[4 * k], totals[4 * k + 1 : 4 * k + 4], slopes[k]) for k in (0, 1))
        return tuple(
            Left(clusters, *(own + slope * (items - n) for own, slope in zip(added, by_item, strict=True)))
            for clusters, added, by_item in sides
        )

    return Additive(figures, fields)


def _chance(by: CellsByUnit) -> Additive:
    """Return the number of items, and what each side's clusters contribute to the information by chance."""
    table, n = by.table, by.table.n_items
    counts = by.whole.once(fast_sums.count, by.pool)
    chance = fast_sums.chance_of_counts(counts, n, by.pool)
    around = [
        kernels.metrics.expect_shared(n + step, *counts.true, 0, counts.true[0].size, *counts.pred)
        for step in (1, -1)
    ]
    slope, nats = (around[0] - around[1]) / 2, chance.expected * n

    def of_side(own: Sizes, other: Sizes) -> Floats:
        once = own[0], np.ones_like(own[1])
        found = by.pool.map(
            lambda k: float(kernels.metrics.expect_shared(n, *once, k, k + 1, *other)), range(own[0].size)
        )
        return np.array(found)

    def fields(items: float, true: float, pred: float) -> fast_sums.Chance:
        return fast_sums.Chance((true + pred - nats + slope * (items - n)) / items, chance.fixed)

    sides = ((counts.true, counts.pred), (counts.pred, counts.true))
    by_side = []
    for side, (own, other), sizes in zip(SIDES, sides, (table.true_n, table.pred_n), strict=True):
        of_size = np.append(of_side(own, other), 0.0)
        by_side.append(by.clusters(side, of_size[np.searchsorted(own[0], sizes)]))
    return Additive([by.cells(table.n), *by_side], fields)


def _code_lengths(by: CellsByUnit) -> Additive:
    """Return the numbers of items and true clusters, one loss, and the code lengths of each side's clusters."""
    table, n_true = by.table, by.table.n_true
    n = table.n.astype(np.float64)
    loss = n * np.log1p(table.fp / n)
    lengths, slopes = [], []
    for side, sizes in zip(SIDES, (table.true_n, table.pred_n), strict=True):
        usual, place = np.unique(sizes, return_inverse=True)
        of_size, more, fewer = np.empty((3, usual.size))
        for others, out in ((n_true - 1, of_size), (n_true, more), (max(n_true - 2, 0), fewer)):
            kernels.metrics.log_choices(usual, others, out)
        lengths.append(by.clusters(side, of_size[place]))
        slopes.append(by.add(by.clusters(side, (more - fewer)[place])) / (2 if n_true > 1 else 1))

    def fields(items: float, clusters: float, lost: float, true: float, pred: float) -> fast_sums.CodeLengths:
        of_truth, of_prediction = (
            length + slope * (clusters - n_true) for length, slope in zip((true, pred), slopes, strict=True)
        )
        return fast_sums.CodeLengths(of_truth, lost + of_prediction, items)  # type: ignore[arg-type]

    ones = np.ones(table.n_codes["true"])
    return Additive([by.cells(n), by.clusters("true", ones), by.cells(loss), *lengths], fields)


# Clusters
def _clusters(by: CellsByUnit) -> Additive:
    n_clusters = [by.clusters(side, np.ones(by.table.n_codes[side])) for side in SIDES]
    return Additive([by.cells(by.table.n), by.cells(1.0), *n_clusters], lambda *counts: counts)


def _means_of_clusters(side: str, by: CellsByUnit) -> Additive:
    """Return the number of clusters with weight, and the sums of their mean precision and recall."""
    groups = means_by_cluster(by.table, side, [PRECISION, RECALL], beta=1.0)
    weighed = groups["weight"] > 0  # a cluster whose items all have weight 0 is skipped
    means = (np.where(weighed, groups[metric.name], 0.0) for metric in (PRECISION, RECALL))
    by_unit = [by.clusters(side, values) for values in (weighed, *means)]
    return Additive(by_unit, lambda n, *added: [each / n for each in added])


def _losses(by: CellsByUnit) -> Additive:
    """Return the weight, and the weight times the losses of precision and of recall."""
    table = by.table

    def lost(cells: slice) -> list[Floats]:
        tp, fp, fn, _ = confusion(table, cells.start, cells.stop)
        weight = table.weight[cells]
        return [weight, weight * (fp / (tp + fp)), weight * (fn / (tp + fn))]

    return Additive(by.in_ranges(lost), lambda n, *lost: [each / n for each in lost])


def _losses_by_chance(by: CellsByUnit) -> Additive:
    """Return the numbers of items and clusters, and the ordered pairs of items in two clusters of each side.

    With M clusters, (n - M) / n is the mean share of other items in an item's cluster. Each other item is wrong with
    the probability that a random pair of items is in two clusters of the other side, sum of a (n - a) over n (n - 1).
    """
    table, n_items = by.table, float(by.table.n_items)
    same = by.whole.n_cells == table.n_true == table.n_pred

    def fields(n: float, n_true: float, n_pred: float, true: float, pred: float) -> tuple[float, float, bool]:
        # smooth even if each item is a cluster: n falls below the number of clusters only in difference quotients.
        # Sums of a (n_items - a), not n * n - sums of a * a, which loses the digits of a few items beside many.
        of_precision, of_recall = (
            (n - clusters) / n * ((apart + n * (n - n_items)) / (n * (n - 1))) if n > 1 else 0.0
            for clusters, apart in ((n_pred, true), (n_true, pred))
        )
        return of_precision, of_recall, same

    sizes = [own.astype(np.float64) for own in (table.true_n, table.pred_n)]
    counts = [by.clusters(side, own > 0) for side, own in zip(SIDES, sizes, strict=True)]
    apart = [by.clusters(side, own * (n_items - own)) for side, own in zip(SIDES, sizes, strict=True)]
    return Additive([by.cells(table.n), *counts, *apart], fields)


# Counterparts
def _counterparts(by: CellsByUnit) -> Additive:
    """Return the sums of `Fit` for both sides, where each cluster contributes to its own unit."""
    table, n = by.table, len(Fit._fields)
    if table.overlapping:
        of_sides = zip(SIDES, best_overlaps(table, by.pool), strict=True)
        added = [
            by.clusters("true" if name == "exact" else side, own)
            for side, best in of_sides
            for name, own in best._asdict().items()
        ]
        return Additive(added, lambda *fields: (Fit(*fields[:n]), Fit(*fields[n:])))
    own, fp, fn, _ = confusion(table)
    w, exact = table.weight, by.cells((fp == 0) & (fn == 0))
    f1, jaccard = 2 * own / (2 * own + fp + fn), own / (own + fp + fn)
    figures: list[Floats] = []
    for side, others in (("true", fn), ("pred", fp)):
        codes, size = table.codes(side)
        share, best_f1, best_jaccard = np.zeros((3, size))
        for best, values in ((share, own / (own + others)), (best_f1, f1), (best_jaccard, jaccard)):
            np.maximum.at(best, codes, values)
        of_cells = (w, w * share[codes], w * (1.0 - share[codes]), w * best_f1[codes])
        figures += [by.clusters(side, np.ones(size)), exact, *map(by.cells, of_cells)]
        figures.append(by.clusters(side, best_jaccard))
    return Additive(figures, lambda *fields: (Fit(*fields[:n]), Fit(*fields[n:])))


def _majorities(by: CellsByUnit) -> Additive:
    """Return the items in largest cells of predicted clusters, and the clusters matched with their majority classes."""
    table = by.table
    codes, size = table.codes("pred")
    largest = np.zeros(size, np.int64)
    np.maximum.at(largest, codes, table.n)
    exact = (table.fp == 0) & (table.fn == 0)
    rivals = np.flatnonzero((table.n == largest[codes]) & ~exact)
    pred, true = (own[rivals].astype(np.int64) for own in (codes, table.true))
    only = np.bincount(pred, minlength=size)[pred] == 1
    taken = np.zeros(table.n_codes["true"])
    taken[true[only]] = (
        1.0  # by a cluster that has no other choice; all such clusters of a class are in one unit
    )
    free = ~only & (taken[true] == 0.0)
    matched, _ = best_pairs(pred[free], true[free], np.ones(np.count_nonzero(free)), size, taken.size)
    ones = np.bincount(matched, minlength=size).astype(np.float64)
    both = by.cells(exact) + by.clusters("true", taken) + by.clusters("pred", ones)
    return Additive([by.clusters("pred", largest.astype(np.float64)), both], lambda *fields: fields)


# One-to-one pairings
def _paired(find: Callable[[Contingency, Pool], Paired], by: CellsByUnit) -> Additive:
    """Return the gains of the pairs, and those of all cells."""
    found = by.whole.once(find, by.pool)
    gains = by.of_whole(np.bincount(found.pred, found.gains, by.whole.n_codes["pred"]), "pred")
    of_cells, rivals = by.of_whole(found.of_cells), by.of_whole(found.rivals)
    sure, every = by.in_ranges(lambda cells: (np.where(rivals[cells], 0.0, of_cells[cells]), of_cells[cells]))
    return Additive([sure + by.clusters("pred", gains), every], lambda *fields: fields)


# Entities of key and response
def _entities(by: CellsByUnit) -> Additive:
    """Return the sums of `Side` for key and response, and the numbers of common mentions, cells and singletons."""
    table = by.table
    sizes_of = mentions_of_cells(table)
    figures: list[Floats] = []
    for side in SIDES:
        own = mentions(table, side)
        figures += [by.clusters(side, own, every=True), by.clusters(side, own > 0, every=True)]

    def common(cells: slice) -> list[Any]:
        n = table.n[cells].astype(np.float64)
        key, response = sizes_of(cells)
        shares = [
            each for own in (key, response) for each in (n * n / own, n * (n - 1) / np.maximum(own - 1, 1))
        ]
        return [*shares, n, np.maximum(key, response) == 1]

    *shares, n, alone = by.in_ranges(common)
    figures = [*figures[:2], *shares[:2], *figures[2:], *shares[2:]]

    def fields(*totals: float) -> tuple[Any, ...]:
        return Side(*totals[:4]), Side(*totals[4:8]), *totals[8:]

    return Additive([*figures, n, by.cells(1.0), alone], fields)


def _links(by: CellsByUnit) -> Additive:
    """Return mentions and ordered links within and between entities: of both sides, of the key, of the response.

    Links between entities are sums of a (N - a), not N * N - sums of a * a, which loses the digits of a few of them.
    """
    table = by.table

    def of_both(cells: slice) -> list[Floats]:
        n = table.n[cells].astype(np.float64)
        fp = table.pred_n[table.pred[cells]] - n if table.outside else table.fp[cells]
        return [n, n * (n - 1), n * (table.n_items - n - fp - table.fn[cells])]

    figures, totals = by.in_ranges(of_both), [float(table.n_items)]
    for side in SIDES:
        own = mentions(table, side).astype(np.float64)
        totals.append(float(mentions(by.whole, side).sum()))
        of_side = (own, own * (own - 1), own * (totals[-1] - own))
        figures += [by.clusters(side, each, every=True) for each in of_side]

    def fields(*added: float) -> tuple[Links, Links]:
        items, within, between = added[::3], added[1::3], added[2::3]
        between = tuple(b + m * (m - n) for b, m, n in zip(between, items, totals, strict=True))
        return Links(*within), Links(*between)

    return Additive(figures, fields)


#: Precision and recall, whose means over clusters are sums.
PRECISION, RECALL = pointwise["precision"], pointwise["recall"]

#: Function that computes each of the sums by unit.
BY_UNIT: Mapping[str, Callable[[CellsByUnit], Additive]] = {
    "pairs": _pairs,
    "wrong pairs": _wrong_pairs,
    "entropies": _entropies,
    "chance": _chance,
    "code lengths": _code_lengths,
    "clusters": _clusters,
    "means of true clusters": partial(_means_of_clusters, "true"),
    "means of pred clusters": partial(_means_of_clusters, "pred"),
    "losses": _losses,
    "losses by chance": _losses_by_chance,
    "counterparts": _counterparts,
    "majorities": _majorities,
    "pairing by weight": partial(_paired, pairs_by_weight),
    "entities": _entities,
    "links": _links,
    "pairing of mentions": partial(_paired, pairs_of_mentions),
    "shared clusters": _shared_clusters,
    "pairing of entities": partial(_paired, pairs_by_similarity),
    "entropies of clusters": _entropies_of_clusters,
}
#: Names of the sums that are also defined where clusters overlap.
OF_COVERS = ("counterparts", "shared clusters", "entropies of clusters")

#: Functions for sums that are faster over all cells than by unit, in four groups with the reason of each. The figures
#: say how much more processor time all scores of the family take by unit, for 2e6 items (9e5 cells) and for 1e7.
FAST: dict[str, Callable[[Contingency, Pool], Any]] = {
    # Exact counts: scores adjusted for chance subtract products of them, of which floats keep few digits. 39 and 76 %;
    # with weights 180 %, since those of items are read.
    "pairs": fast_sums.pair_counts,
    "shared clusters": fast_sums.pairs_by_shared_clusters,
    # One pass that counts clusters by size, so that logarithms are those of distinct sizes: entropies 63 and 64 %
    # (with weights 35 %), information by chance 70 and 77 %, code lengths 143 and 232 %.
    "entropies": fast_sums.entropies,
    "chance": fast_sums.chance,
    "code lengths": fast_sums.code_lengths,
    # Clusters of one cell are summed as they are read, half of all here; by unit, all are scattered. 54 and 96 %.
    "counterparts": counterparts,
    # Part by part of the cells, in a core's cache. 115 and 132 %.
    "majorities": majorities,
}


def over_all(make: Callable[[CellsByUnit], Additive], cells: Contingency, pool: Pool) -> tuple[Any, ...]:
    """Return a sum over all cells, which are one unit."""
    by_unit, fields = make(OneUnit(cells, pool))
    return tuple(fields(*(float(each.item()) for each in by_unit)))


#: Function that computes each of the sums over all cells.
OVERALL: dict[str, Callable[[Contingency, Pool], Any]] = {
    name: partial(over_all, make) for name, make in BY_UNIT.items()
} | FAST


class CellSums(Mapping[str, Any]):
    """The sums over all cells by name, each computed when first requested."""

    def __init__(self, contingency: Contingency, pool: Pool) -> None:
        self._contingency, self._pool = contingency, pool

    def __getitem__(self, name: str) -> Any:
        if name == "cells":  # requested by scores that are functions of all cells
            return self._contingency, self._pool
        return self._contingency.once(OVERALL[name], self._pool)

    def __iter__(self) -> Iterator[str]:
        return iter(("cells", *OVERALL))

    def __len__(self) -> int:
        return 1 + len(OVERALL)


def overall(
    contingency: Contingency, metrics: Iterable[Metric], *, beta: float = 1.0, pool: Pool | None = None
) -> dict[str, float]:
    """Return scores over all items by name, in the given order; without a pool, only the calling thread computes."""
    chosen = list(metrics)
    pool = pool or Pool(1)
    sums = CellSums(contingency, pool)
    means = item_means([item_sums(contingency, with_needs(chosen, beta), pool, sums)])
    return finished(chosen, means, beta, sums)
