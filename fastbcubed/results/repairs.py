"""Repairs: which clusters to split or gather first, the gain from each alone, and from the first k together.

They are found from all cells or, for a large saved result, from the tables of clusters and a few cells.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.align.rows import WIDEST
from fastbcubed.cells.contingency import Contingency
from fastbcubed.cells.excerpts import Excerpt
from fastbcubed.errors import MetricError, OptionError, arg, quoted
from fastbcubed.inputs.arrays import combined, from_numpy, from_texts, id_kind, plain, table_of, to_numpy
from fastbcubed.metrics.metric import f_measure, gain_of_f1
from fastbcubed.metrics.registry import METRICS
from fastbcubed.render.number_formats import label
from fastbcubed.results.items import Kept
from fastbcubed.results.lazy_tables import MOST_GATHERS, ONLY_HERE
from fastbcubed.results.stored_tables import StoredTable
from fastbcubed.results.table import Table, first_rows, order_of, require_limit
from fastbcubed.runtime.arguments import as_several, is_one_of, whole_number
from fastbcubed.runtime.expressions import Expression, is_expression, parse_expression
from fastbcubed.runtime.spill import readable
from fastbcubed.runtime.threads import blocks
from fastbcubed.types import Floats

#: The side of the clusters that each kind of repair applies to.
KINDS = {"split": "pred", "gather": "true"}
#: Maximum number of cells in files that are read for the repairs on a page.
FEW_CELLS = 4_000_000
#: Function that returns the total loss of a side's clusters.
Lost = Callable[[str], float]
#: Approximate bytes per cluster and per cell for finding repairs; and bytes allowed beyond half of the memory limit.
CLUSTER_BYTES, CELL_BYTES, BESIDE = 100, 16, 128 << 20
#: Approximate bytes per repair that is listed.
LISTED_BYTES = 300


#: Figures by which repairs may be ordered, alone or in an expression.
FIGURES = ("gain", "precision_gain", "recall_gain", "n_items", "weight", "pair_fp", "pair_fn")


def list_repairs(
    kept: Kept, lost: Lost, kinds: str | Iterable[str], limit: int | None, order_by: str = "gain"
) -> Table:
    """Implement `Evaluation.repairs`."""
    limit = require_limit(limit)
    wanted = as_several(kinds)
    if not wanted or not all(is_one_of(kind, KINDS) for kind in wanted):
        raise OptionError(f'kinds must be "split", "gather" or both, not {quoted(kinds)}')
    wanted = [kind for kind in KINDS if kind in wanted]
    order = order_of_repairs(order_by, kept.cells)
    found = None if limit is None or order.text != "gain" else _in_tables(kept, lost, wanted, limit)
    if found is None:  # requires reading all cells
        require_repairable(1, keep="cells", overlapping=kept.cells.overlapping)
        if kept.ranges is not None:
            _require_room(kept.cells, kept.memory_limit, listed=limit is None)
        start = Start.of(kept.cells)
        every = Repairs.all_of(start, wanted)
        if order.text != "gain":
            every = replace(every, value=order.of(partial(_figure, start, every)))
        chosen = first_repairs(kept, wanted, every, limit)
        found = chosen, start.running(chosen)
    return _listing_of(kept, wanted, *found, with_value=is_expression(order_by))


def order_of_repairs(text: str, table: Contingency) -> Expression:
    """Return the expression to order repairs by; raise if it has unknown figures, or pairs are undefined here."""
    if not isinstance(text, str):
        raise OptionError(
            f"{arg('order_by')} must be a column of repairs or an expression of columns, not {quoted(text)}"
        )
    order = parse_expression(text, arg("order_by"))
    unknown = [name for name in order.names if name not in FIGURES]
    if unknown or not order.names:
        raise OptionError(
            f"{arg('order_by')} has no figure {unknown[0] if unknown else text!r}; figures are {', '.join(FIGURES)}"
        )
    for metric in (METRICS[name] for name in order.names if name in METRICS):
        reason = metric.undefined(weighted=table.weighted, weighting=table.weighting, outside=table.outside)
        if reason is not None:
            raise metric.not_defined(reason)
    return order


def _figure(start: Start, repairs: Repairs, name: str) -> Floats:
    """Return a figure of each repair. Shape (n_repairs,)."""
    if name in ("pair_fp", "pair_fn"):
        return start.pairs_mended(name)[np.where(repairs.splits, 0, 1), repairs.codes]
    return np.asarray(getattr(repairs, name.removesuffix("_gain")))


def repairs_at_hand(kept: Kept, lost: Lost, limit: int) -> Table | None:
    """Return the first repairs; None if this would require reading many cells from files."""
    if kept.lazy is None or kept.cells.n_cells <= FEW_CELLS:
        return list_repairs(kept, lost, list(KINDS), limit)
    found = _in_tables(kept, lost, list(KINDS), limit)
    return None if found is None else _listing_of(kept, list(KINDS), *found)


def _require_room(table: Contingency, limit: int | None, *, listed: bool) -> None:
    """Raise OptionError if finding repairs, which holds all clusters in memory, exceeds the memory limit.

    `listed` says that all repairs will also be listed.
    """
    n_clusters = sum(table.codes(side)[1] for side in KINDS.values())
    needed = (CLUSTER_BYTES + LISTED_BYTES * listed) * n_clusters + CELL_BYTES * table.n_cells
    if limit is not None and needed > limit // 2 + BESIDE:
        raise OptionError(
            f"repairs would take about {readable(needed)} of memory, because all clusters are held as a whole; "
            f"a memory_limit of at least {(2 * (needed - BESIDE) >> 20) + 1} MiB suffices, or save the result and "
            "load it with check=False, so that the first repairs are read from its tables"
        )


def require_repairable(n: int, *, keep: str, overlapping: bool) -> None:
    """Raise if this number of repairs cannot be listed for an evaluation of this kind."""
    whole_number(n, "repairs")
    if n and is_one_of(keep, ("scores",)):
        raise OptionError(
            f"{arg('repairs', ...)} needs the cells, which {arg('keep', 'scores')} does not keep; pass "
            f"{arg('keep', 'cells')}"
        )
    if n and overlapping:
        raise MetricError(
            "repairs are not defined for overlapping clusters; pass partitions, without "
            f"{arg('overlapping', True)}"
        )


@dataclass(frozen=True, eq=False)
class Start:
    """The state before any repair. Sums are stored as two numbers: the sum, and its rounding error."""

    table: Contingency
    pred: NDArray[np.integer]  #: the predicted cluster of each cell
    left: NDArray[np.int64]  #: number of cells in each predicted cluster
    mass: Floats  #: sum of tp over its cells; shape (n_pred, 2)
    correct: Floats  #: sum of weight * tp over its cells; shape (n_pred, 2)
    split: Floats  #: gain in precision from splitting this predicted cluster alone
    gather: Floats  #: gain in precision and recall from gathering this true cluster alone; shape (n_true, 2)
    lost: tuple[float, float]  #: total loss of precision and of recall
    #: number and mass of prediction-only items in each predicted cluster, if they count
    only: tuple[NDArray[np.int64], Floats] | None

    @classmethod
    def of(cls, table: Contingency) -> Start:
        """Compute the state from all cells."""
        cells, (pred, n_pred), outer = table.cells, table.codes("pred"), table.weighting == "outer"
        left, mass, correct = np.zeros(n_pred, np.int64), np.zeros((n_pred, 2)), np.zeros((n_pred, 2))
        kernels.clusters.add_cells(cells, pred, outer, left, mass, correct)
        split, gather = np.zeros((n_pred, 2)), np.zeros((table.codes("true")[1], 4))
        kernels.clusters.add_gains(cells, pred, outer, correct, split, gather)
        total = table.total_weight
        split, gather = split.sum(axis=1) / total, (gather[:, ::2] + gather[:, 1::2]) / total
        lost = split.sum(), gather[:, 1].sum()
        only = table.only("pred") if table.outside else None
        return cls(table, pred, left, mass, correct, split, gather, lost, only)

    def pairs_mended(self, name: str) -> Floats:
        """Return the number (or weight) of wrong or missing pairs that each repair alone removes.

        Splitting a predicted cluster removes its wrong pairs. Gathering a true cluster removes the wrong pairs of its
        items, and its missing pairs. Shape (2, n_clusters): splits, then gatherings.
        """
        cells = self.table.cells
        own, other = cells["weight"], cells["fp" if name == "pair_fp" else "fn"]
        n_true, n_pred = self.table.codes("true")[1], self.table.codes("pred")[1]
        found = np.zeros((2, max(n_true, n_pred)))
        halves = own * other / 2  # a pair of items in two cells is counted in both cells
        if name == "pair_fp":
            found[0, :n_pred] = np.bincount(self.pred, halves, n_pred)
            found[1, :n_true] = np.bincount(cells["true"], 2 * halves, n_true)
        else:
            found[1, :n_true] = np.bincount(cells["true"], halves, n_true)
        return found

    @property
    def outer(self) -> bool:
        """Whether weights count only in means."""
        return self.table.weighting == "outer"

    def running(self, repairs: Repairs) -> Floats:
        """Return precision and recall after each of these repairs in turn. Shape (n_repairs, 2)."""
        table = self.table
        mass, outside = self.mass.copy(), np.zeros(self.left.size, np.bool_)
        if self.only is not None:
            outside = self.only[0] > 0
            kernels.clusters.add_masses(mass, self.only[1])
        is_split, gathered = np.zeros(self.left.size, np.bool_), np.zeros(len(self.gather), np.bool_)
        clusters = (self.left.copy(), outside, mass, self.correct.copy(), is_split)
        wanted = (repairs.splits, repairs.codes, *self._cells_of(repairs))
        gains = np.empty((repairs.codes.size, 2))
        kernels.clusters.apply_repairs(table.cells, self.pred, self.outer, wanted, clusters, gathered, gains)
        return 1 - np.maximum(self.lost - gains / table.total_weight, 0.0)

    def _cells_of(self, repairs: Repairs) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the cells that each repair concerns: where they start for each repair, and their numbers."""
        numbers, cells = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for side, own in (("pred", repairs.splits), ("true", ~repairs.splits)):
            rank = np.full(self.table.codes(side)[1], -1)
            rank[repairs.codes[own]] = np.flatnonzero(own)
            codes = self.table.cells["true"] if side == "true" else self.pred  # not copied
            for start, stop in blocks(codes.size):
                found = rank[codes[start:stop]]
                there = np.flatnonzero(found >= 0)
                numbers.append(found[there])
                cells.append(there + start)
        number = np.concatenate(numbers)
        starts = np.append(0, np.cumsum(np.bincount(number, minlength=repairs.codes.size)))
        return starts, np.concatenate(cells)[np.argsort(number, kind="stable")]


@dataclass(frozen=True, eq=False)
class Repairs:
    """A list of repairs with the gain from each alone; all shapes are (n_repairs,)."""

    #: whether the repair splits a predicted cluster; otherwise it gathers a true one
    splits: NDArray[np.bool_]
    codes: NDArray[np.int64]  #: code of the cluster
    n_items: NDArray[np.int64]
    weight: Floats
    value: Floats  #: value to order by, largest first; by default the gain
    gain: Floats  #: gain in F1
    precision: Floats
    recall: Floats

    @classmethod
    def none(cls) -> Repairs:
        """Return an empty list of repairs."""
        return cls(np.zeros(0, np.bool_), *np.zeros((2, 0), np.int64), *np.zeros((5, 0)))

    @classmethod
    def all_of(cls, start: Start, kinds: Sequence[str]) -> Repairs:
        """Return all repairs of these kinds that gain precision or recall."""
        table, found = start.table, []
        for kind in kinds:
            both = start.gather.T if kind == "gather" else (start.split, np.zeros(1))
            codes = np.flatnonzero(both[0] + both[1])
            precision, recall = (np.broadcast_to(each, len(both[0]))[codes] for each in both)
            is_split = kind == "split"
            n, weight = (table.pred_n, table.pred_weight) if is_split else (table.true_n, table.true_weight)
            gain = gain_of_f1(start.lost, precision, recall)
            found.append(
                (np.full(codes.size, is_split), codes, n[codes], weight[codes], gain, gain, precision, recall)
            )
        return cls(*map(np.concatenate, zip(*found, strict=True)))

    def take(self, rows: NDArray[np.int64]) -> Repairs:
        """Return the repairs at these positions."""
        return Repairs(*(getattr(self, name)[rows] for name in self.__dataclass_fields__))


def first_repairs(kept: Kept, kinds: Sequence[str], every: Repairs, limit: int | None) -> Repairs:
    """Return the first repairs in order, leaving out clusters that have no label as they were created by a policy."""
    n, limit = every.codes.size, every.codes.size if limit is None else limit
    wanted = min(limit, n)
    while True:
        rows = first_rows(-every.value, -every.weight, wanted)
        labels = {kind: _labels(kept, every, rows, kind) for kind in kinds}
        rows, rank = _named(every, rows, labels)
        if rows.size >= limit or wanted == n:
            break
        wanted = min(2 * wanted + 1, n)
    order = np.lexsort((rank, ~every.splits[rows], -every.weight[rows], -every.value[rows]))[:limit]
    return every.take(rows[order])


def _labels(kept: Kept, repairs: Repairs, rows: NDArray[np.int64], kind: str) -> pa.Array:
    """Return the labels of the clusters of one kind of repair among these rows."""
    own = rows[repairs.splits[rows] == (kind == "split")]
    labels = kept.cluster_labels(KINDS[kind], repairs.codes[own])
    return combined(labels) if isinstance(labels, pa.ChunkedArray) else labels


def _named(
    repairs: Repairs, rows: NDArray[np.int64], labels: Mapping[str, pa.Array]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows whose clusters have labels, and the rank of each label among those of its kind."""
    found, ranks = [], []
    for kind, names in labels.items():
        own = rows[repairs.splits[rows] == (kind == "split")]
        rank = np.empty(own.size, np.int64)
        rank[to_numpy(order_of([], [names]))] = np.arange(own.size)
        there = names.is_valid().to_numpy(zero_copy_only=False)
        found.append(own[there])
        ranks.append(rank[there])
    return np.concatenate(found), np.concatenate(ranks)


def _in_one(labels: Mapping[str, pa.Array], splits: NDArray[np.bool_]) -> pa.Array:
    """Return the labels of repairs as one column, of a type common to both kinds, otherwise as text."""
    if len(labels) == 1:
        return next(iter(labels.values()))
    names = [combined(plain(pa.chunked_array([labels[kind]]))) for kind in KINDS]
    kind = _type_of_both(names[0].type, names[1].type)
    if kind is not None:
        names = [each if each.type == kind else each.cast(kind) for each in names]
    else:
        names = [from_texts([label(value) for value in each.to_pylist()]) for each in names]
    at = np.empty(splits.size, np.int64)
    at[splits] = np.arange(len(names[0]))
    at[~splits] = len(names[0]) + np.arange(len(names[1]))
    return pa.concat_arrays(names).take(from_numpy(at))


def _type_of_both(a: pa.DataType, b: pa.DataType) -> pa.DataType | None:
    """Return the type that can hold all values of two types of labels; None if there is none.

    Examples
    --------
    >>> _type_of_both(pa.int32(), pa.int64()), _type_of_both(pa.int64(), pa.string())
    (DataType(int64), None)
    """
    if a == b:
        return a
    if pa.types.is_struct(a) or pa.types.is_struct(b) or id_kind(a, "") != id_kind(b, ""):
        return None
    unsigned = [pa.types.is_unsigned_integer(kind) for kind in (a, b)]
    if all(unsigned):
        return pa.uint64()
    return None if pa.uint64() in (a, b) else WIDEST[id_kind(a, "")][0]


def _listing_of(
    kept: Kept, kinds: Sequence[str], repairs: Repairs, running: Floats, *, with_value: bool = False
) -> Table:
    """Return the table of repairs, given precision and recall after each."""
    precision, recall = running.T
    splits, every = repairs.splits.tolist(), np.arange(repairs.codes.size)
    clusters = _in_one({kind: _labels(kept, repairs, every, kind) for kind in kinds}, repairs.splits)
    columns = {
        "rank": every + 1,
        "kind": from_texts(["split" if split else "gather" for split in splits]),
        "side": from_texts(["pred" if split else "true" for split in splits]),
        "cluster": clusters,
        "n_items": repairs.n_items,
        "weight": repairs.weight,
        "gain": repairs.gain,
        "running": f_measure(precision, recall),
        "precision_gain": repairs.precision,
        "recall_gain": repairs.recall,
        "running_precision": np.ascontiguousarray(precision),
        "running_recall": np.ascontiguousarray(recall),
        **({"value": repairs.value} if with_value else {}),
    }
    return Table(table_of(columns))


def _in_tables(kept: Kept, lost_of: Lost, kinds: Sequence[str], limit: int) -> tuple[Repairs, Floats] | None:
    """Return the first repairs from tables of clusters; None if that would need all cells, or too many are tied.

    Splitting a predicted cluster gains its loss of precision; for gathering true clusters, see `MayGather`. Tables of
    clusters therefore show which repairs may be among the first. Weights must count in the confusion matrices.
    """
    tables = kept.lazy
    if tables is None or kept.cells.weighting == "outer":
        return None
    lost = lost_of("pred"), lost_of("true")
    gathers = splits = np.empty(0, np.int64)
    found, total = [Repairs.none()], kept.cells.total_weight
    if "gather" in kinds:
        gathers = tables.may_gather(lost, limit, named=kept.policies.may_leave_alone)
        if gathers.size > MOST_GATHERS:
            return None
    if "split" in kinds:
        listed = tables.costliest(
            "pred", limit, ("code", "cluster", lambda c: kept.cluster_labels("pred", c))
        )
        names = ("code", "n_items", "weight", "precision_loss")
        splits, n, weight, gain = (to_numpy(listed[name]) for name in names)
        none = np.zeros(gain.size)
        gain_of_f = gain_of_f1(lost, gain, none)
        found.append(Repairs(np.ones(gain.size, bool), splits, n, weight, gain_of_f, gain_of_f, gain, none))
    if not (gathers.size or splits.size):
        return found[0], np.empty((0, 2))
    preds = _Preds.of(tables.clusters["pred"], kept.excerpt({"true": gathers, "pred": splits}))
    found.append(_gathers(preds, gathers, total, lost))
    every = Repairs(*map(np.concatenate, zip(*(vars(each).values() for each in found), strict=True)))
    chosen = first_repairs(kept, kinds, every.take(np.flatnonzero(every.gain > 0)), limit)
    pred, true = (np.searchsorted(preds.cells.in_whole[side], chosen.codes) for side in ("pred", "true"))
    in_excerpt = replace(chosen, codes=np.where(chosen.splits, pred, true))
    return chosen, preds.start(total, lost).running(in_excerpt)


def _gathers(preds: _Preds, codes: NDArray[np.int64], total: float, lost: tuple[float, float]) -> Repairs:
    """Return the gatherings of these true clusters, given all of their cells."""
    (table, _, in_whole), correct = preds.cells, preds.correct(total)
    gains = np.zeros((table.n_codes["true"], 4))
    kernels.clusters.add_gains(table.cells, table.pred, False, correct, np.zeros_like(correct), gains)
    own = np.searchsorted(in_whole["true"], codes)
    precision, recall = ((gains[own, ::2] + gains[own, 1::2]) / total).T
    gain = gain_of_f1(lost, precision, recall)
    return Repairs(
        np.zeros(own.size, bool), codes, table.true_n[own], table.true_weight[own],
        gain, gain, precision, recall,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Preds:
    """Figures of the predicted clusters of some cells, read from the table of clusters; shapes are (n_pred,)."""

    cells: Excerpt
    weight: Floats
    lost: Floats
    n_parts: NDArray[np.int64]
    only: tuple[NDArray[np.int64], Floats] | None  #: as in `Start`

    @classmethod
    def of(cls, file: StoredTable, cells: Excerpt) -> _Preds:
        names = ["weight", "precision_loss", "n_parts"]
        if cells.table.outside and ONLY_HERE in file.column_names:
            names += [ONLY_HERE, "weight_only_here"]
        weight, lost, n_parts, *only = map(to_numpy, file.take(names, cells.in_whole["pred"]).columns)
        return cls(cells, weight, lost, n_parts, (only[0], only[1]) if only else None)

    def correct(self, total: float) -> Floats:
        """Return the sum of weight * tp over all cells of each predicted cluster. Shape (n_pred, 2)."""
        whole = self.weight if self.only is None else self.weight + self.only[1]
        return _as_sums((self.weight - self.lost * total) * whole)

    def start(self, total: float, lost: tuple[float, float]) -> Start:
        """Return the state before any repair, restricted to these cells."""
        table, none = self.cells.table, np.zeros(self.weight.size)
        sums = _as_sums(self.weight), self.correct(total)
        gather = np.zeros((table.n_codes["true"], 2))
        return Start(table, table.pred, self.n_parts.copy(), *sums, none, gather, lost, self.only)


def _as_sums(values: Floats) -> Floats:
    """Return sums in two columns: the sum, and a rounding error of 0."""
    return np.stack([values, np.zeros(values.size)], axis=1)
