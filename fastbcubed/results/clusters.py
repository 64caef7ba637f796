"""Tables of clusters with their confusion matrices, and the labels of all clusters of a side."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.align.row_blocks import number_type, numbers_of_keys
from fastbcubed.align.stash import Stash
from fastbcubed.cells.cell_parts import ClusterKeys
from fastbcubed.cells.contingency import SIDES, Contingency, ScoredRows, TrueNegatives, side_of
from fastbcubed.errors import EvaluationWarning, FileFormatError, Message, NotKeptError, arg
from fastbcubed.inputs.arrays import combined, from_numpy, join_pieces, plain, table_of, to_numpy
from fastbcubed.inputs.id_columns import Column, seeded_keys
from fastbcubed.inputs.pair import Block, Pair
from fastbcubed.inputs.tables import Stretch
from fastbcubed.metrics import aggregation
from fastbcubed.metrics.bcubed import LOSS_OF_SIDE, LOSSES
from fastbcubed.metrics.metric import Metric
from fastbcubed.metrics.sums import overall
from fastbcubed.results.cluster_outcomes import outcome_code, require_defined
from fastbcubed.results.cluster_ranges import LABEL_COPIES, columns_by_code, listing_of
from fastbcubed.results.concentration import (
    LossCurve,
    SizeClasses,
    classes_of_cells,
    loss_curves,
    recall_alone,
)
from fastbcubed.results.figures import Figures, resolved
from fastbcubed.results.items import Items, Kept
from fastbcubed.results.table import LOSS, Listing, Table, listed
from fastbcubed.runtime import buffers
from fastbcubed.runtime.arguments import is_one_of
from fastbcubed.runtime.key_codes import number
from fastbcubed.runtime.key_partitions import MAX_BITS, match
from fastbcubed.runtime.memory_budget import require_within
from fastbcubed.runtime.object_attributes import cached_property
from fastbcubed.runtime.spill import Spill
from fastbcubed.runtime.threads import Pool


class LabelShards:
    """Labels by key, divided into shards by the bits of the key; a look-up reads a whole shard."""

    def __init__(
        self,
        stretches: Sequence[Stretch[Block]],
        labels_of: Callable[[Sequence[Any]], Column],
        seed: int | None,
        bits: int,
        spill: Spill,
        pool: Pool,
    ) -> None:
        self._stash = Stash(spill)
        self._bits = bits
        self._read: tuple[int, NDArray[np.int64], pa.Array] | None = None

        def put(stretch: Stretch[Block]) -> None:
            with Pool(1) as alone:
                for block in stretch.blocks():
                    self._put(block.first_row, labels_of(block.sides), seed, alone)

        pool.map(put, stretches, stage="bring the names of clusters together")

    def _put(self, index: int, labels: Column, seed: int | None, alone: Pool) -> None:
        """Store the labels of a block, each label once."""
        keys, _ = seeded_keys(labels, seed, alone)
        nulls = labels.null_rows
        if nulls is None:
            rows = number(keys, alone).firsts
        else:  # keys of nulls are arbitrary
            known = np.flatnonzero(~nulls)
            rows = known[number(keys[known], alone).firsts]
        mixed = kernels.partition.mix_all(keys[rows])
        home = self._home(mixed)
        order = np.argsort(home, kind="stable")
        bounds = np.append(0, np.cumsum(np.bincount(home, minlength=1 << self._bits)))
        table = pa.table({"key": from_numpy(mixed[order]), "label": labels.take(rows[order])})
        self._stash.put(index, table, bounds)

    def _home(self, mixed: NDArray[np.int64]) -> NDArray[np.int16]:
        """Return the shard of each key, given by the same bits that assign rows and cells to shards."""
        bits_of = kernels.partition.bits_of
        # the version for arrays, whether the kernel is compiled or not
        bits_of = getattr(bits_of, "py_func", bits_of)
        home: NDArray[np.int64] = bits_of(mixed, MAX_BITS, self._bits)
        return home.astype(np.int16)

    def find(self, mixed: NDArray[np.int64], pool: Pool) -> tuple[pa.Array, NDArray[np.bool_]]:
        """Return the label of each mixed key, null if there is none, and the mask of keys that have one. Shape (n,)."""
        home = self._home(mixed)
        pieces, at = [], np.full(mixed.size, -1)
        n_labels = 0
        for shard in np.unique(home).tolist():
            keys, labels = self._shard(shard)
            rows = np.flatnonzero(home == shard)
            found = match(mixed[rows], keys, pool).pred_of_true
            known = rows[found >= 0]
            pieces.append(labels.take(from_numpy(found[found >= 0])))
            at[known] = n_labels + np.arange(known.size)
            n_labels += known.size
        if not pieces:
            pieces = [self._shard(0)[1].slice(0, 0)]
        return combined(pa.chunked_array(pieces)).take(from_numpy(at, at < 0)), at >= 0

    def _shard(self, shard: int) -> tuple[NDArray[np.int64], pa.Array]:
        if self._read is None or self._read[0] != shard:
            self._read = None  # freed before the next shard is read
            table = self._stash.read(shard)
            self._read = (shard, to_numpy(table["key"].combine_chunks()), combined(table["label"]))
        return self._read[1:]


#: Number of rows from which the width of labels is estimated.
SHOWN = 1 << 12


def label_bytes(first: Column) -> int:
    """Return the estimated bytes per label, from the first rows; 0 for integers, which are their own keys."""
    if number_type(first) is not None or not len(first):
        return 0
    shown = [plain(column) for column in first.rows_of(np.arange(0, len(first), -(-len(first) // SHOWN)))]
    return sum(column.nbytes for column in shown) // len(shown[0])


class NamesByKey:
    """Finds the labels of clusters by code, reading the input again unless labels are integers."""

    def __init__(
        self,
        pair: Pair,
        labels: Sequence[Column],
        seeds: Sequence[int | None],
        made: tuple[int, int] | None,
        keys: ClusterKeys,
        bits: int,
        directory: Path,
        threads: int,
    ) -> None:
        self.made = made  #: the first key that policies made, and the most there are
        self._bits, self._directory = bits, directory
        self._threads = threads
        self._one_at_a_time = threading.Lock()  # since reading takes memory
        self._sides = {
            "true": _Labels(pair, 0, labels[0], seeds[0], keys.true),
            "pred": _Labels(pair, 1, labels[1], seeds[1], keys.pred),
        }

    def __call__(self, side: str, codes: NDArray[np.integer]) -> pa.Array:
        """Return the labels of clusters by code; null for clusters created by a policy."""
        own = self._sides[side]
        if own.kind is not None:
            return numbers_of_clusters(own.keys, codes, own.kind, self.made)
        keys = keys_of_clusters(own.keys, codes)
        made = are_made(keys, self.made)
        wanted, at = np.unique(keys[~made], return_inverse=True)
        with self._one_at_a_time, Pool(self._threads) as pool:
            found, place = own.look_for(wanted, pool)
        rows = np.zeros(keys.size, np.int64)
        rows[~made] = place[at]
        return found.take(from_numpy(rows, made))

    def are_numbers(self, side: str) -> bool:
        """Return whether the labels of a side are integers, which are their own keys."""
        return self._sides[side].kind is not None

    @contextmanager
    def all_of(self, side: str) -> Iterator[Callable[[NDArray[np.integer]], pa.Array]]:
        """Yield a function from codes to labels, for reading all labels of a side in the order of their codes."""
        own = self._sides[side]
        if own.kind is not None:
            yield partial(self, side)
            return
        # a single thread, as other threads work on tables meanwhile
        with Spill(self._directory, named=True) as spill, Pool(1) as pool:
            with self._one_at_a_time:
                shards = LabelShards(own.stretches, own.labels_of, own.seed, self._bits, spill, pool)
                buffers.release()  # frees the memory used for reading

            def labels(codes: NDArray[np.integer]) -> pa.Array:
                mixed = np.ascontiguousarray(own.keys[codes])
                found, known = shards.find(mixed, pool)
                missing = ~known & ~are_made(kernels.partition.unmix_all(mixed), self.made)
                own.require_found(int(np.count_nonzero(missing)), mixed.size)
                return own.in_own_type(found)

            yield labels

    def codes_of(self, side: str, labels: Sequence[str]) -> tuple[list[str], NDArray[np.int64]]:
        """Return the texts that are labels of a side, and the codes of their clusters."""
        own = self._sides[side]
        column = Column("cluster", [pa.chunked_array([list(labels)], pa.large_string())])
        keys, _ = seeded_keys(column, own.seed, Pool(1))
        order = np.argsort(mixed := kernels.partition.mix_all(keys))
        codes = np.flatnonzero(np.isin(own.keys, mixed))
        found = order[np.searchsorted(mixed, own.keys[codes], sorter=order)]
        return [labels[k] for k in found.tolist()], codes


@dataclass(frozen=True)
class NumbersByKey:
    """Finds the labels of clusters by code if they are integers, which are their own keys."""

    kinds: Mapping[str, pa.DataType]  #: the types of the labels by side
    keys: Mapping[str, NDArray[np.int64]]  #: mixed keys by side and code
    made: tuple[int, int] | None  #: the first key that policies made, and the most there are

    def __call__(self, side: str, codes: NDArray[np.integer]) -> pa.Array:
        """Return the labels of clusters by code; null for clusters created by a policy."""
        return numbers_of_clusters(self.keys[side], codes, self.kinds[side], self.made)

    def are_numbers(self, side: str) -> bool:
        """Return whether the labels of a side are integers."""
        return side in self.kinds


def numbers_of_clusters(
    mixed: NDArray[np.int64], codes: NDArray[np.integer], kind: pa.DataType, made: tuple[int, int] | None
) -> pa.Array:
    """Return the labels of clusters, integers of a type, from the mixed keys by code; see `NumbersByKey`."""
    keys = keys_of_clusters(mixed, codes)
    return numbers_of_keys(keys, kind, None if made is None else are_made(keys, made))


def keys_of_clusters(mixed: NDArray[np.int64], codes: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return the original keys of clusters by code, from the mixed keys by code."""
    keys = np.empty(codes.size, np.int64)
    kernels.partition.unmix_some(mixed, np.ascontiguousarray(codes), keys)
    return keys


def are_made(keys: NDArray[np.int64], made: tuple[int, int] | None) -> NDArray[np.bool_]:
    """Return whether a policy made each key; `made` is the first such key and an upper bound on their number."""
    if made is None:
        return np.zeros(keys.size, bool)
    start, n = made
    return keys.view(np.uint64) - np.uint64(start % 2**64) < np.uint64(n)


class _Labels:
    """The labels of one side, and how to find them."""

    def __init__(self, pair: Pair, k: int, first: Column, seed: int | None, keys: NDArray[np.int64]) -> None:
        self.keys = keys
        self.seed = seed
        self.kind = number_type(first)
        if self.kind is not None:
            return  # without references to the inputs
        self.none = first.take(np.empty(0, np.int64))
        self._name = pair.names[k]
        self.stretches = pair.stretches[k if len(pair.stretches) == 2 else 0]
        self._at = 0 if len(pair.stretches) == 2 else k

    def labels_of(self, sides: Sequence[Any]) -> Column:
        """Return the labels in a block, given the sides that the block has."""
        labels: Column = sides[self._at].labels
        return labels

    def in_own_type(self, found: pa.Array) -> pa.Array:
        """Return labels that were stored without dictionaries or views, converted to the type in the input.

        Codes of a dictionary become 32 bits wide if there may be more labels than the input's codes can represent.
        """
        kind = self.none.type
        if pa.types.is_dictionary(kind):
            found = found.dictionary_encode()
            return found.cast(kind) if self.keys.size < 1 << kind.index_type.bit_width - 1 else found
        return found if found.type == kind else found.cast(kind)

    def require_found(self, n_missing: int, n: int) -> None:
        """Raise FileFormatError if labels were not found."""
        if n_missing:
            raise FileFormatError(
                f"{n_missing} of {n} clusters of {self._name} were not found when it was read again for "
                "their names. Has it changed since it was evaluated? Evaluate it again"
            )

    def look_for(self, wanted: NDArray[np.int64], pool: Pool) -> tuple[pa.Array, NDArray[np.int64]]:
        """Read the input until the labels of all keys are found; return the labels, and each key's position there."""
        place = np.full(wanted.size, -1)
        low = (8 << wanted.size.bit_length()) - 1  # enough bits to rule out most other keys
        likely = np.zeros(low + 1, bool)
        likely[wanted & low] = True
        pieces = [self.none]
        n_found = 0
        lock = threading.Lock()  # guards `place`, `pieces` and `n_found`

        def look(stretch: Stretch[Block]) -> None:
            nonlocal n_found
            with Pool(1) as alone:
                blocks = stretch.blocks() if n_found < wanted.size else iter(())
                for block in blocks:
                    labels = self.labels_of(block.sides)
                    keys, _ = seeded_keys(labels, self.seed, alone)
                    nulls = labels.null_rows  # keys of nulls are arbitrary
                    there = likely[keys & low]
                    rows = np.flatnonzero(there if nulls is None else there & ~nulls)
                    at = np.minimum(np.searchsorted(wanted, keys[rows]), wanted.size - 1)
                    new = (wanted[at] == keys[rows]) & (place[at] < 0)
                    rows, at = rows[new], at[new]
                    with lock:
                        codes, first = np.unique(at, return_index=True)
                        fresh = place[codes] < 0
                        place[codes[fresh]] = n_found + np.arange(np.count_nonzero(fresh))
                        pieces.append(labels.take(rows[first[fresh]]))
                        n_found += len(pieces[-1])
                    if n_found == wanted.size:
                        return

        pool.map(look, self.stretches, stage="look for the names of clusters")
        self.require_found(wanted.size - n_found, wanted.size)
        return combined(join_pieces([pa.chunked_array([each]) for each in pieces], self._name)), place


def require_items(table: Contingency, metrics: list[Metric], beta: float, *, by_unit: bool = False) -> None:
    """Raise NotKeptError if a score needs the weights of items and these were not kept."""
    known = (known_by_unit if by_unit else known_by_cluster)(table, metrics, beta)
    for metric in metrics:
        if metric not in known:
            raise NotKeptError(_not_kept([metric.name]))


def _not_kept(names: Sequence[str]) -> Message:
    """Return a message that scores need the weights of items, which were not kept."""
    return Message(
        f"{', '.join(names)} need{'s' * (len(names) == 1)} the weight of each item, but the items were not "
        f"kept; evaluate or save with {arg('keep', 'items')} to have it"
    )


def warn_of_left_out(table: Contingency, metrics: list[Metric], beta: float, *, stacklevel: int) -> None:
    """Warn of scores missing from a listing of clusters because they need the weights of items."""
    known = known_by_cluster(table, metrics, beta)
    if left_out := [m.name for m in metrics if m not in known and not m.overall_only]:
        message = f"the listing of clusters lacks some scores: {_not_kept(left_out)}"
        warnings.warn(EvaluationWarning(message), stacklevel=stacklevel + 1)


def known_by_cluster(table: Contingency, metrics: list[Metric], beta: float) -> list[Metric]:
    """Return the scores that can be computed from the kept data."""
    if table.rows is not None:
        return metrics
    return [m for m in metrics if not aggregation.takes_items(table, m, beta)]


def known_by_unit(table: Contingency, metrics: list[Metric], beta: float) -> list[Metric]:
    """Return the scores that can be summed by unit from the kept data; pairs of weighted items need each item."""
    known, of_pairs = known_by_cluster(table, metrics, beta), table.rows is None and table.weighted
    return [m for m in known if not (of_pairs and "pairs" in m.sums)]


def item_columns(
    table: Contingency, rows: ScoredRows, metrics: list[Metric], here: NDArray[np.int64]
) -> pa.Table:
    """Return row, weight, tp, fp, fn, tn (null under "outside"), losses and scores of some scored rows.

    For overlapping clusterings, true_mates and pred_mates replace the confusion matrix.
    """
    cell = rows.cell[here]
    columns: dict[str, Any] = {"row": here, "weight": rows.weight[here]}
    if table.overlapping:
        columns |= {f"{side}_mates": table.mates(side)[cell] for side in SIDES}
    else:
        columns |= {"tp": table.tp[cell], "fp": table.fp[cell], "fn": table.fn[cell]}
        columns["tn"] = pa.nulls(here.size, pa.float64()) if table.outside else TrueNegatives(table)()[cell]
    for name, metric in LOSSES.items():
        columns[name] = aggregation.item_scores(table, metric)[here] * columns["weight"] / table.total_weight
    for metric in metrics:
        if metric.item_name and metric.item_name not in columns:
            columns[metric.item_name] = aggregation.item_scores(table, metric)[here]
    return table_of(columns)


def _mates(table: Contingency, rows: ScoredRows, side: str, cell: int) -> NDArray[np.bool_]:
    """Return the mask of rows whose cell shares a cluster of this side with this cell. Shape (n_rows,)."""
    codes, _, cells = table.memberships(side)
    shared = np.isin(codes, codes[cell] if cells is None else codes[cells == cell])
    if cells is not None:  # a cell may belong to several clusters
        shared = np.isin(np.arange(table.n_cells), cells[shared])
    return shared[rows.cell] & (rows.cell >= 0)


def _has_unscored_mates(table: Contingency, cell: int) -> bool:
    """Return whether a cell's predicted clusters may contain items outside the truth."""
    if not table.outside or table.overlapping:
        return table.outside
    only = table.only("pred")
    return only is not None and bool(only[0][table.pred[cell]])


def one_item(
    table: Contingency, rows: ScoredRows, items: Items, metrics: list[Metric], row: int, members: int
) -> dict[str, Any]:
    """Return an item, given by a scored row, in the form of `Evaluation.item`, with `members` members per set."""
    cell = int(rows.cell[row])
    scored = rows.cell >= 0
    same_true, same_pred = (_mates(table, rows, side, cell) for side in SIDES)
    if _has_unscored_mates(table, cell):  # such items are in no cell
        same_pred |= ~scored & items.same_label("pred", row)
    sets = {"tp": same_true & same_pred, "fp": same_pred & ~same_true, "fn": same_true & ~same_pred}
    if not table.outside:
        sets["tn"] = scored & ~same_true & ~same_pred
    own = np.array([row])
    result: dict[str, Any] = {
        "item": items.ids(own)[0].as_py(),
        "true_cluster": items.labels("true", own)[0].as_py(),
        "pred_cluster": items.labels("pred", own)[0].as_py(),
        "weight": float(rows.weight[row]),
    }
    if table.overlapping:
        result |= {f"{side}_mates": int(table.mates(side)[cell]) for side in SIDES}
    else:
        result |= {"tp": float(table.tp[cell]), "fp": float(table.fp[cell]), "fn": float(table.fn[cell])}
        result["tn"] = None if table.outside else float(TrueNegatives(table)(cell, cell + 1)[0])
    for name, metric in LOSSES.items():
        result[name] = aggregation.item_score(table, metric, row) * result["weight"] / table.total_weight
    for metric in metrics:
        if metric.item_name:
            result[metric.item_name] = aggregation.item_score(table, metric, row)
    result["members"] = {
        name: {
            "n_items": int(np.count_nonzero(mask)),
            "first": items.ids(np.flatnonzero(mask)[:members]).to_pylist(),
        }
        for name, mask in sets.items()
    }
    return result


def list_clusters(
    kept: Kept,
    figures: Figures,
    side: str,
    order_by: str | None,
    limit: int | None,
    outcome: str | None = None,
) -> Table:
    """Implement `Evaluation.clusters`; the table also has the code of each cluster."""
    side, table = side_of(side), kept.cells
    require_items(table, [m for m in figures.metrics if is_one_of(order_by, (m.name,))], figures.beta)
    order_by = LOSS_OF_SIDE[side] if order_by is None or is_one_of(order_by, (LOSS,)) else order_by
    if outcome is not None:
        require_defined(table)
        outcome_code(side, outcome)
    return clusters_in_order(kept, figures, side, order_by, limit, outcome)


def clusters_in_order(
    kept: Kept,
    figures: Figures,
    side: str,
    order_by: str,
    limit: int | None,
    outcome: str | None,
    others: Sequence[Metric] = (),
    more: Callable[[], dict[str, Any]] = dict,
) -> Table:
    """Return the clusters in order, with their codes; `more` returns further columns by code, with scores `others`."""
    named_by = ("code", "cluster", lambda found: kept.cluster_labels(side, found))
    metrics, ranges = known_by_cluster(kept.cells, figures.metrics, figures.beta), kept.lazy or kept.ranges
    if limit is None and not kept.cells.overlapping:
        _require_room(kept, side, len(metrics))
    if ranges is None or limit is None:
        columns = columns_by_code(kept.cells, side, metrics, figures.beta)
        found = listing_of(0, {**columns, **more()}, side, outcome)
    else:
        found = ranges.best(side, Listing(metrics, figures.beta, order_by, limit, named_by, outcome))
    return listed(found, [*metrics, *others], order_by, limit, named_by=named_by)


#: Bytes per cluster, and per score of a cluster, while all clusters are sorted, without their labels; and bytes allowed
#: beyond the limit, once the engine has freed its memory.
LISTED_BYTES, LISTED_SCORE_BYTES, BESIDE = 150, 24, 64 << 20


def bytes_of_label(kept: Kept) -> int:
    """Return the approximate bytes of the copies of a cluster's label while a table is made."""
    return 0 if kept.ranges is None else LABEL_COPIES * kept.ranges.label_bytes


def _require_room(kept: Kept, side: str, n_scores: int) -> None:
    """Raise OptionError if a listing of all clusters needs more memory than the run's limit."""
    of_cluster = LISTED_BYTES + LISTED_SCORE_BYTES * n_scores + bytes_of_label(kept)
    needed = kept.cells.n_codes[side] * of_cluster - BESIDE
    what, held = f"a listing of all {'true' if side == 'true' else 'predicted'} clusters", "their columns"
    require_within(kept.memory_limit, needed, what, held, f", or pass {arg('limit', 100)}")


class Losses:
    """The losses of an evaluation's clusters: Lorenz curves, and totals by cluster size."""

    def __init__(self, kept: Kept, figures: Figures) -> None:
        self._kept, self._figures = kept, figures

    @cached_property
    def curves(self) -> dict[str, LossCurve]:
        """The Lorenz curve of each side's loss."""
        if self._kept.lazy is not None:
            return {side: self._kept.lazy.totals(side).curve for side in SIDES}
        table, summary, ranges = self._kept.cells, self._figures.summary, self._kept.ranges
        if summary is None:
            n_clusters = {"true": table.n_true, "pred": table.n_pred}
        else:
            n_clusters = {side: figures["clusters"] for side, figures in summary.items()}
        if not table.overlapping:
            return loss_curves(table, n_clusters, None if ranges is None else ranges.limit)
        lost = {
            side: columns_by_code(table, side, [], self._figures.beta)[LOSS_OF_SIDE[side]] for side in SIDES
        }
        return {side: LossCurve.of(n_clusters[side], lost[side]) for side in SIDES}

    def of_all(self, side: str) -> float:
        """Return the total loss of a side's clusters: of recall for true, of precision for predicted clusters."""
        name = LOSSES[LOSS_OF_SIDE[side]].name
        return self._figures.overall[name] if name in self._figures.overall else self._of_all[side]

    @cached_property
    def _of_all(self) -> dict[str, float]:
        if self._kept.lazy is not None:
            return {side: curve.loss for side, curve in self.curves.items()}
        found = overall(self._kept.cells, LOSSES.values(), beta=self._figures.beta)
        return {side: found[LOSSES[LOSS_OF_SIDE[side]].name] for side in SIDES}

    def size_classes(self, side: str) -> SizeClasses:
        """Return totals of a side's clusters by size, in powers of two; of overlapping clusters without losses."""
        if self._kept.lazy is not None:
            return self._kept.lazy.totals(side).classes
        return classes_of_cells(self._kept.cells, side)

    def recall_alone(self) -> float | None:
        """Return the recall if the prediction had only singletons; None if the items' weights are unavailable."""
        table, lazy = self._kept.cells, self._kept.lazy
        if lazy is not None and table.weighted and table.weighting != "outer":
            return lazy.recall_alone
        return recall_alone(table, self.size_classes("true"))


def score_over_all(kept: Kept, figures: Figures, which: Any) -> float:
    """Return a score over all items, given by name or formula."""
    table, beta = kept.cells, figures.beta
    metric = resolved(table, which, beta)
    if (own := figures.elsewhere(metric)) is not None:
        return float(own.metric(metric))
    require_items(table, [metric], beta)
    return overall(table, [metric], beta=beta)[metric.name]
