"""Tables of items, and of the cells that contain them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed.align.attributes import as_kept, attribute, refused
from fastbcubed.align.policies import Policies
from fastbcubed.align.rows import Alignment, either_id
from fastbcubed.align.sides import REPEATED_ATTRIBUTES, match_table
from fastbcubed.cells.contingency import SIDES, Contingency, ScoredRows
from fastbcubed.cells.excerpts import CodesBySide, Excerpt, excerpt_of
from fastbcubed.errors import (
    AlignmentError,
    ColumnError,
    EvaluationWarning,
    IdTypeError,
    NotKeptError,
    SliceError,
    Word,
    arg,
    first_few,
)
from fastbcubed.inputs import arrays
from fastbcubed.inputs import arrow_compute as pc
from fastbcubed.inputs.arrays import from_numpy, table_of, to_numpy
from fastbcubed.inputs.clustering import Clustering
from fastbcubed.inputs.files import as_rows
from fastbcubed.inputs.id_columns import Column, as_column, in_order_of, key_pair
from fastbcubed.inputs.reading_notes import unmatched_attributes
from fastbcubed.inputs.tables import Source, read_columns
from fastbcubed.metrics.bcubed import LOSSES
from fastbcubed.overlap.cover import Cover, Covered
from fastbcubed.overlap.memberships import Memberships
from fastbcubed.results.table import LOSS, NamedBy, Table, best, listed, require_known, require_limit
from fastbcubed.runtime.memory_budget import require_within
from fastbcubed.runtime.object_attributes import cached_property
from fastbcubed.runtime.threads import Pool, blocks
from fastbcubed.types import RowNumbers

if TYPE_CHECKING:
    from fastbcubed.results.cluster_ranges import ClusterRanges
    from fastbcubed.results.lazy_tables import LazyTables
    from fastbcubed.results.stored_tables import StoredTable


def without_noise(labels: pa.Array, policies: Policies, side: str) -> pa.Array:
    """Return cluster labels with null in place of the side's noise label, whose items are singletons by policy."""
    if policies.noise is None or (noise := policies.noise_of(side)) is None:
        return labels
    null = np.zeros(len(labels), np.bool_)
    with suppress(IdTypeError):  # the label is of another type, and so only occurs on the other side
        null[as_column(labels, "cluster").find(noise)] = True
    return labels.take(from_numpy(np.arange(len(labels)), null)) if null.any() else labels


class AlignedItems:
    """The items of an alignment, read from the input arrays, which are not copied."""

    def __init__(self, alignment: Alignment) -> None:
        self._alignment = alignment
        self._rows = {"true": alignment.true_rows, "pred": alignment.pred_rows}
        self._sides = {"true": alignment.truth, "pred": alignment.prediction}

    def __len__(self) -> int:
        return int(self._alignment.true_keys.size)

    @property
    def item_names(self) -> tuple[str, ...]:
        """Names of the item column, or of its parts; empty if items are identified by position."""
        items = self._alignment.truth.items
        return () if items is None else tuple(items.names)

    def ids(self, rows: RowNumbers | None = None) -> pa.Array:
        """Return the ids of these rows, or of all rows."""
        rows = np.arange(len(self)) if rows is None else rows
        truth, prediction = self._alignment.truth.items, self._alignment.prediction.items
        if truth is None or prediction is None:
            return from_numpy(rows)
        if self._rows["true"] is None:
            return truth.take(rows)
        return either_id(truth, _at(self._rows["true"], rows), prediction, _at(self._rows["pred"], rows))

    def labels(self, side: str, rows: RowNumbers | None = None) -> pa.Array:
        """Return the cluster labels of these rows, or of all; null if the side lacks the item."""
        rows = np.arange(len(self)) if rows is None else rows
        return self._sides[side].labels.take_or_null(_at(self._rows[side], rows))

    def rows_of(self, ids: Any) -> RowNumbers:
        """Return the row of each of these items, -1 if it does not exist."""
        truth, prediction = self._alignment.truth.items, self._alignment.prediction.items
        if truth is None or prediction is None:
            return self._positions(ids)
        column = in_order_of(truth, as_column(ids, "item", "the requested items"))
        found = np.full(len(column), -1)
        for side, items in (("pred", prediction), ("true", truth)):
            at = _find_all(items, column)
            rows = self._rows[side]
            if rows is not None:
                place = np.full(len(items) + 1, -1)  # the last element is for items that are not found
                here = np.flatnonzero(rows >= 0)
                place[rows[here]] = here
                at = place[at]
            found = np.where(at >= 0, at, found)
        return found

    def _positions(self, ids: Any) -> RowNumbers:
        wanted = list(ids)
        strange = [i for i in wanted if isinstance(i, bool) or not isinstance(i, int | np.integer)]
        if strange:
            raise SliceError(
                f"items without ids are named by position, an integer, not {first_few(strange[:4])}"
            )
        if len(set(map(int, wanted))) < len(wanted):
            raise SliceError("an item is requested twice; name each item once")
        return np.array([int(i) if 0 <= int(i) < len(self) else -1 for i in wanted], np.int64)

    def label_kind(self, side: str) -> str:
        """Return the kind of the cluster labels of a side: "integer", "string", "binary" or "composite"."""
        return self._sides[side].labels.kind

    def label_keys(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the keys of the labels of all rows, for the truth and for the prediction."""
        return self._alignment.true_keys, self._alignment.pred_keys

    def integer_labels(self) -> tuple[NDArray[Any], NDArray[Any]] | None:
        """Return the labels of both sides as integers, uint64 reinterpreted; None unless all rows have such labels."""
        plain = all(
            self._rows[side] is None and own.labels.kind == "integer" and own.labels.null_rows is None
            for side, own in self._sides.items()
        )
        return self.label_keys() if plain else None

    def in_prediction(self) -> tuple[NDArray[np.bool_], NDArray[Any]]:
        """Return the mask of rows that are in the prediction, with policies applied, and the keys of their clusters."""
        keys, absent = self._alignment.pred_keys, self._alignment.absent_pred
        return np.ones(keys.size, np.bool_) if absent is None else keys != absent, keys

    def same_label(self, side: str, row: int) -> NDArray[np.bool_]:
        """Return the mask of rows in the same cluster of a side as this row."""
        keys = self._alignment.true_keys if side == "true" else self._alignment.pred_keys
        return np.asarray(keys == keys[row])

    def rows_of_cluster(self, side: str, label: Any) -> RowNumbers:
        """Return the sorted rows in a side's cluster; empty if no row has this label."""
        labels, rows = self._sides[side].labels, self._rows[side]
        found = labels.find(label)
        if rows is None:
            return found
        wanted = np.zeros(len(labels) + 1, np.bool_)  # the last element is for items that the side lacks
        wanted[found] = True
        return np.flatnonzero(wanted[rows])

    @property
    def n_given(self) -> int:
        """Number of rows of the truth, or of the file in which items are stored."""
        return len(self._alignment.truth)

    def by_row(self, mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return a mask of the rows from a mask of the `n_given` rows of the truth or file."""
        rows = self._rows["true"]
        return mask if rows is None else mask[rows] & (rows >= 0)

    def attribute_sides(self) -> dict[str, tuple[str, ...]]:
        """Return the names of the attributes of "truth" and of "prediction"."""
        return attribute_sides(self._alignment.truth, self._alignment.prediction)

    def attribute(self, side: str, name: str, rows: RowNumbers | None = None) -> pa.ChunkedArray:
        """Return an attribute of these rows, or of all; null if the side lacks the item."""
        clustering = self._sides["true" if side == "truth" else "pred"]
        own = self._rows["true" if side == "truth" else "pred"]
        assert clustering.attributes is not None
        values = attribute(clustering.attributes, name)
        if rows is not None:
            return arrays.take_or_null(values, _at(own, rows))
        return values if own is None else arrays.take_or_null(values, own)

    def left_out(self) -> dict[str, str]:
        """Return the attributes that cannot be saved, such as "truth.shape", and why."""
        tables = {"truth": self._sides["true"].attributes, "prediction": self._sides["pred"].attributes}
        return {
            f"{side}.{name}": reason
            for side, names in self.attribute_sides().items()
            if (table := tables[side]) is not None
            for name, reason in refused(table, names).items()
        }


#: Items that are looked for in one row group of a file after the other.
FEW = 1000


class TableItems:
    """The items of a saved evaluation, in one table: item, true_cluster, pred_cluster, attributes."""

    def __init__(
        self, table: pa.Table | StoredTable, left_out: Mapping[str, str] = {}, *, coded: bool = False
    ) -> None:
        """Take over a table; if `coded`, whole columns of strings may be dictionaries."""
        self.table = table
        self._left_out = dict(left_out)
        self._coded = coded

    def coded(self) -> TableItems:
        """Return the same items, where whole columns of strings may be dictionaries."""
        return TableItems(self.table, self._left_out, coded=True)

    @cached_property
    def _column(self) -> Column:
        return as_column(self.table["item"], "item")

    def __len__(self) -> int:
        return self.table.num_rows

    @property
    def item_names(self) -> tuple[str, ...]:
        if "item" not in self.table.column_names:
            return ()
        none = self.table.slice(0, 0) if isinstance(self.table, pa.Table) else self.table.empty()
        return tuple(as_column(none["item"], "item").names)

    def _read(self, name: str, rows: RowNumbers | None) -> pa.ChunkedArray:
        """Return the values of a column in these rows, null for row -1; by default in all rows."""
        if rows is None:
            is_coded = self._coded and not isinstance(self.table, pa.Table)
            return self.table.coded(name) if is_coded else self.table[name]
        if isinstance(self.table, pa.Table):
            return self.table[name].take(from_numpy(rows, rows < 0))
        return self.table.take([name], rows)[name]

    def ids(self, rows: RowNumbers | None = None) -> pa.Array:
        column = self._column if rows is None else as_column(self._read("item", rows), "item")
        return column.take(np.arange(len(column)))

    def labels(self, side: str, rows: RowNumbers | None = None) -> pa.Array:
        return self._read(f"{side}_cluster", rows)

    def _stretches(self, name: str) -> Iterator[tuple[int, Column]]:
        """Yield the first row, and a column, of what is read at once: a row group of a file, or a table in memory."""
        if isinstance(self.table, pa.Table):
            yield 0, self._column if name == "item" else as_column(self.table[name], name)
            return
        for first, part in self.table.scan([name], 1):
            yield first, as_column(part[name], name)

    def rows_of(self, ids: Any) -> RowNumbers:
        wanted = as_column(ids, "item", "the requested items")
        if len(wanted) > FEW:  # which would be hashed again for each row group
            return _find_all(self._column, in_order_of(self._column, wanted))
        found = np.full(len(wanted), -1)
        for first, column in self._stretches("item"):
            at = _find_all(column, in_order_of(column, wanted))
            found = np.where(at >= 0, at + first, found)
        return found

    def same_label(self, side: str, row: int) -> NDArray[np.bool_]:
        name = f"{side}_cluster"
        if not isinstance(self.table, pa.Table) and not pa.types.is_nested(self.table.empty()[name].type):
            same = np.zeros(len(self), np.bool_)
            same[row] = True
            label = self._read(name, np.array([row]))[0]
            if label.is_valid:
                same[self.rows_of_cluster(side, label.as_py())] = True
            return same
        column = self.table[name]
        if pa.types.is_large_list(column.type):
            return _share_label(column, row)
        labels = as_column(column, f"{side}_cluster")
        keys, nulls = labels.keys(), labels.null_rows
        same = np.asarray(keys == keys[row])
        if nulls is not None:
            same &= ~nulls
            same[row] = True
        return same

    def rows_of_cluster(self, side: str, label: Any) -> RowNumbers:
        name = f"{side}_cluster"
        kept = self.table if isinstance(self.table, pa.Table) else self.table.empty()
        if not pa.types.is_large_list(kept[name].type):
            rows = [column.find(label) + first for first, column in self._stretches(name)]
            return np.concatenate([np.empty(0, np.int64), *rows])
        column = self.table[name]
        found = as_column(pc.list_flatten(column), f"{side}_cluster").find(label)
        return to_numpy(pc.list_parent_indices(column))[found]

    @property
    def n_given(self) -> int:
        return len(self)

    def by_row(self, mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
        return mask

    def attribute_sides(self) -> dict[str, tuple[str, ...]]:
        sides: dict[str, tuple[str, ...]] = {"truth": (), "prediction": (), "attributes": ()}
        for name in self.table.column_names:
            side, _, rest = name.partition(".")
            if rest:
                sides[side] += (rest,)
        return sides

    def attribute(self, side: str, name: str, rows: RowNumbers | None = None) -> pa.ChunkedArray:
        own = f"{side}.{name}"
        return as_kept(self._read(own, rows), f"column {own!r}")

    def left_out(self) -> dict[str, str]:
        return self._left_out


Items: TypeAlias = "AlignedItems | TableItems"  #: whose rows are those of the alignment


class AttributeTable:
    """Attributes from a separate table, joined by item."""

    def __init__(self, column: Column | None, table: Source, items: Items) -> None:
        self._column, self._table, self._items = column, table, items
        own = () if column is None else column.names
        self.names = tuple(name for name in table.names if name not in own)
        if column is None and len(table) != len(items):
            raise AlignmentError(
                f"the attributes have {len(table)} rows and no item column, but there are {len(items)} "
                "items; add an item column, or give one row per item in the same order"
            )

    @classmethod
    def of(cls, source: Any, items: Items) -> AttributeTable:
        """Read attributes from a table of any kind, whose item column is named as in the truth, or "item"."""
        table = as_rows(source, "the attributes")
        if table is None:
            raise ColumnError(
                "attributes is a table (path, data frame, Arrow table, dict of columns), not "
                f"{type(source).__name__}"
            )
        for names in (items.item_names, ("item",)):
            if names and set(names) <= set(table.names):
                found = cls(read_columns(table, [list(names)])[0][0], table, items)
                for note in found.notes():
                    warnings.warn(EvaluationWarning(note["message"], note["code"]), stacklevel=6)
                return found
        return cls(None, table, items)

    def notes(self) -> list[dict[str, Any]]:
        """Return a warning if the table matches none of the items although there are some."""
        if self._column is None or not len(self._table) or not len(self._items) or (self._rows >= 0).any():
            return []
        return [unmatched_attributes(len(self._table))]

    def attribute(self, name: str, rows: RowNumbers | None = None) -> pa.ChunkedArray:
        """Return an attribute of these rows, or of all; null if the table lacks the item."""
        values = attribute(self._table, name)
        if rows is not None:
            return arrays.take_or_null(values, _at(None if self._column is None else self._rows, rows))
        return values if self._column is None else arrays.take_or_null(values, self._rows)

    def left_out(self) -> dict[str, str]:
        """Return the attributes that cannot be saved, and why."""
        return {f"attributes.{name}": reason for name, reason in refused(self._table, self.names).items()}

    @cached_property
    def _rows(self) -> RowNumbers:
        assert self._column is not None
        ids = as_column(self._items.ids(), "item")
        with Pool() as pool:
            keys, first_of = key_pair(ids, self._column, pool), self._column.first_of
            return match_table(*keys, first_of, REPEATED_ATTRIBUTES, pool).pred_of_true


def attribute_sides(truth: Clustering, prediction: Clustering) -> dict[str, tuple[str, ...]]:
    """Return the names of the attributes of each side; for a single table, only the truth has any."""
    together = truth.attributes is prediction.attributes
    return {
        "truth": truth.attribute_names,
        "prediction": () if together else prediction.attribute_names,
    }


def _share_label(lists: pa.ChunkedArray, row: int) -> NDArray[np.bool_]:
    """Return the mask of rows whose lists share a label with that of this row; a null list has none."""
    labels = as_column(pc.list_flatten(lists), "cluster")
    parents, keys = to_numpy(pc.list_parent_indices(lists)), labels.keys()
    known = np.ones(keys.size, np.bool_) if labels.null_rows is None else ~labels.null_rows
    found = known & np.isin(keys, keys[known & (parents == row)])
    same = np.zeros(len(lists), np.bool_)
    same[parents[found]] = True
    same[row] = True
    return same


def _find_all(items: Column, wanted: Column) -> RowNumbers:
    """Return the row of each wanted item, -1 if it does not exist."""
    from fastbcubed.runtime.key_partitions import match

    with Pool() as pool:
        matches = match(*key_pair(items, wanted, pool), pool)
    if matches.pred_repeats:
        raise SliceError(
            f"{matches.pred_repeats} of the {len(wanted)} requested items are repeated; name each item once"
        )
    return matches.true_of_pred


def _at(rows: RowNumbers | None, wanted: RowNumbers) -> RowNumbers:
    return wanted if rows is None else np.where(wanted < 0, -1, rows[wanted])


def named_sides(sides: dict[str, Sequence[str]]) -> str:
    """Return text that lists the attributes of each side, for a message."""
    return "; ".join(f"{Word(side)}: {', '.join(names) or 'none'}" for side, names in sides.items())


class CoverItems(AlignedItems):
    """The items of overlapping clusterings, whose labels are lists."""

    def __init__(self, covered: Covered) -> None:
        super().__init__(covered.alignment)
        self._grouped = covered.grouped
        self._members = {"true": covered.grouped.truth, "pred": covered.grouped.prediction}
        self._names = covered.names

    def labels(self, side: str, rows: RowNumbers | None = None) -> pa.Array:
        cell = self._grouped.cell if rows is None else self._grouped.cell[rows]
        return list_labels(self._members[side], cell, lambda codes: self.cluster_labels(side, codes))

    def cluster_labels(self, side: str, codes: RowNumbers) -> pa.Array:
        """Return the labels of clusters by code; null for clusters created by a policy."""
        return self._names[side](codes)

    def same_label(self, side: str, row: int) -> NDArray[np.bool_]:
        members, cell = self._members[side], self._grouped.cell
        shared = np.isin(members.codes, members.of(int(cell[row])))
        cells = np.zeros(len(members) + 1, np.bool_)
        cells[members.rows()[shared]] = True  # the last element is for items in no cell
        return cells[cell]

    def rows_of_cluster(self, side: str, label: Any) -> RowNumbers:
        members, cell = self._members[side], self._grouped.cell
        labels = as_column(self.cluster_labels(side, np.arange(members.n_clusters)), f"{side}_cluster")
        cells = np.zeros(len(members) + 1, np.bool_)
        cells[members.rows()[np.isin(members.codes, labels.find(label))]] = True
        return np.flatnonzero(cells[cell])


def list_labels(
    members: Memberships, cells: NDArray[np.int64], label: Callable[[RowNumbers], pa.Array]
) -> pa.Array:
    """Return, for each of these cells, the list of its labels; null for cell -1 and for cells without clusters."""
    there = np.flatnonzero(cells >= 0)
    taken = members.take(cells[there])
    counts = np.zeros(cells.size, np.int64)
    counts[there] = taken.counts
    offsets = np.concatenate([[0], np.cumsum(counts)])
    values = label(taken.codes.astype(np.int64))
    return pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), values, mask=pa.array(counts == 0))


#: Bytes allowed beyond the memory limit, once the engine has freed its memory.
BESIDE = 64 << 20


@dataclass(eq=False)
class Kept:
    """The data kept by an evaluation: its cells and, optionally, items, cluster labels and attributes."""

    cells: Contingency
    policies: Policies
    items: Items | None = None
    labels: Callable[[str, RowNumbers], pa.Array] | None = None  #: labels of clusters, given a side and codes
    attributes: Any = None  #: an `AttributeTable`, or an object with its methods
    ranges: ClusterRanges | None = None  #: computes clusters of cells that are in a file
    memory_limit: int | None = None  #: maximum bytes for later computations
    #: the tables of a large saved result, from which defaults are computed without reading all items
    lazy: LazyTables | None = None
    #: labels that may mean missing values, with their rows, by side; found while blocks were read
    odd_labels: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    @property
    def cover(self) -> Cover | None:
        """The cells if clusters may overlap, otherwise None."""
        return self.cells if isinstance(self.cells, Cover) else None

    @property
    def has_clusters(self) -> bool:
        """Whether clusters can be listed."""
        return self.labels is not None or self.items is not None

    def require_items(self) -> Items:
        """Return the items, or raise NotKeptError."""
        if self.items is None or self.cells.rows is None:
            raise NotKeptError(
                "the items were not kept; to slice and to list them, evaluate or save with "
                f"{arg('keep', 'items')}"
            )
        return self.items

    @property
    def rows(self) -> ScoredRows:
        """The rows of the items; raises NotKeptError if these were not kept."""
        self.require_items()
        assert self.cells.rows is not None
        return self.cells.rows

    def require_room(self, of_row: float, what: str, more: float = 0.0, instead: str = "") -> None:
        """Raise OptionError if the run's memory limit does not allow for `of_row` bytes per row plus `more`."""
        if self.memory_limit is not None:
            needed = int(self.rows.n_rows * of_row + more) - BESIDE
            require_within(self.memory_limit, needed, what, "all rows", instead)

    @cached_property
    def first_rows(self) -> dict[str, RowNumbers]:
        """A row of each cluster by side and code, -1 for clusters without a scored item."""
        table, none = self.cells, self.rows.n_rows
        of_cell = self.rows.first_of(table.n_cells)
        found = {}
        for side in SIDES:
            codes, n, cells = table.memberships(side)
            first = np.full(n, none)
            np.minimum.at(first, codes, of_cell if cells is None else of_cell[cells])
            first[first == none] = -1
            found[side] = first
        return found

    def cluster_labels(self, side: str, codes: RowNumbers) -> pa.Array:
        """Return the labels of clusters by code; null for clusters created by a policy."""
        if self.labels is not None:
            labels = self.labels(side, codes)
        else:
            labels = self.require_items().labels(side, self.first_rows[side][codes])
        return without_noise(labels, self.policies, side)

    def all_labels(self, side: str) -> AbstractContextManager[Callable[[RowNumbers], pa.Array]]:
        """Return a context manager that yields a side's `cluster_labels`, for reading all labels in batches."""
        every = getattr(self.labels, "all_of", None)
        return nullcontext(partial(self.cluster_labels, side)) if every is None else every(side)

    def excerpt(self, codes: CodesBySide) -> Excerpt:
        """Return the cells of these clusters, given as codes by side."""
        return excerpt_of(self.cells, codes, None if self.lazy is None else self.lazy.sizes_of)

    def attributes_or(self, given: Any) -> Any:
        """Return the attributes in the given table, or those that were kept if none is given."""
        return self.attributes if given is None else AttributeTable.of(given, self.require_items())

    @cached_property
    def left_out(self) -> dict[str, str]:
        """Attributes that cannot be saved with the items, such as "truth.shape", and why."""
        found = {} if self.items is None else self.items.left_out()
        return found if self.attributes is None else found | self.attributes.left_out()


#: Number of cells processed at a time.
AT_ONCE = 1 << 20
COLUMNS = ("n_items", "weight", "fp", "fn", *LOSSES)


def list_cells(kept: Kept, order_by: str | None, limit: int | None) -> Table:
    """Implement `Evaluation.cells`."""
    limit = require_limit(limit)
    key, table = LOSS if order_by is None else order_by, kept.cells
    require_known(key, COLUMNS)
    n_cells = table.n_cells  # raises if cells were not kept
    named_by: NamedBy | None = ("cell", "clusters", lambda cells: _labels(kept, cells))
    if table.overlapping:
        named_by = None
    parts = (table_of(_columns(table, start, stop)) for start, stop in blocks(n_cells, AT_ONCE))
    if limit is None:
        found = pa.concat_tables(parts)
    else:
        found = best(parts, (), key, limit, named_by)
    return Table(_with_clusters(kept, listed(found, (), key, limit, named_by=named_by).to_arrow()))


def _columns(table: Contingency, start: int, stop: int) -> dict[str, NDArray[Any]]:
    """Return the figures of a range of cells as columns."""
    at = slice(start, stop)
    found: dict[str, Any] = {"cell": np.arange(start, stop), "n_items": table.n[at].astype(np.int64)}
    found |= {name: np.ascontiguousarray(getattr(table, name)[at]) for name in ("weight", "fp", "fn")}
    tp = found["n_items"].astype(np.float64) if table.weighting == "outer" else found["weight"]
    for name, wrong in zip(LOSSES, (found["fp"], found["fn"]), strict=True):
        found[name] = found["weight"] * (wrong / (tp + wrong)) / table.total_weight
    return found


def _labels(kept: Kept, cells: NDArray[np.int64]) -> pa.Array:
    """Return the labels of each cell's two clusters, as one composite id."""
    table = kept.cells
    labels = [
        kept.cluster_labels(side, codes[cells].astype(np.int64))
        for side, codes in (("true", table.true), ("pred", table.pred))
    ]
    return pa.StructArray.from_arrays(labels, [f"{side}_cluster" for side in SIDES])


def _with_clusters(kept: Kept, found: pa.Table) -> pa.Table:
    """Return the cells with the labels of their clusters as two columns, followed by the figures."""
    if (cover := kept.cover) is not None:
        cells = to_numpy(found["cell"]).astype(np.int64)
        names = [list_labels(cover.members(s), cells, partial(kept.cluster_labels, s)) for s in SIDES]
    else:
        names = found["clusters"].flatten()
    return pa.table(
        {f"{side}_cluster": each for side, each in zip(SIDES, names, strict=True)}
        | {name: found[name] for name in COLUMNS}
    )
