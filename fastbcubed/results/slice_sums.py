"""Scores by slice, added up block by block of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from fastbcubed import kernels
from fastbcubed.cells.row_blocks import RowBlock, RowCells
from fastbcubed.errors import SliceError
from fastbcubed.metrics import aggregation
from fastbcubed.metrics.metric import Metric
from fastbcubed.results.items import TableItems
from fastbcubed.results.listing import listed
from fastbcubed.results.slicing import (
    SIZES,
    as_subset,
    crossed,
    encoded,
    missing_items,
    nothing_scored,
    size_names,
    slice_codes,
)
from fastbcubed.sources.arrays import from_numpy, from_texts, table_of, to_numpy

__all__ = ["SliceSums", "SubsetSums"]

#: So many rows of sums are collected before those of equal slices are added up.
MANY = 1 << 18


class SliceSums:
    """What the scores of the slices by some attributes are made of.

    Parameters
    ----------
    names : dict of str to str
        The attributes as results name them, and as the columns of the blocks are called.
    metrics : sequence of Metric
        Scores that groups of items have.
    beta : float
        Weight of recall in F.
    """

    def __init__(self, names: dict[str, str], metrics: Sequence[Metric], beta: float) -> None:
        self._names = names
        self._metrics = aggregation.grouped(metrics)
        self._beta = beta
        self._needed = [m for m in aggregation.with_needs(self._metrics, beta) if m.formula is not None]
        self._tables: list[pa.Table] = []
        self._rows = 0

    def add_block(self, block: RowBlock, cells: RowCells | None) -> None:
        """Add the rows of a block, in the order of blocks; `cells` is None if none of them is scored."""
        if cells is not None:
            self._add(self._of_block(block, cells))

    def _of_block(self, block: RowBlock, cells: RowCells) -> pa.Table:
        """Return the sums of a block of rows by slice."""
        cut = slice_codes(tuple(self._names.values()), cells, TableItems(block.columns), None)
        sums = aggregation.group_sums(cells, cut.codes, cut.n_slices, self._needed, by_row=True)
        columns = {
            name: _lower_bounds(cut.values[own]) if own in SIZES else cut.values[own]
            for name, own in self._names.items()
        }
        return pa.table(columns | _of_sums(sums))

    def _add(self, table: pa.Table) -> None:
        self._tables.append(table)
        self._rows += table.num_rows
        if self._rows > MANY:
            self._tables, self._rows = [self._added_up()], 0

    def _added_up(self) -> pa.Table:
        """Add up the sums of equal slices; slices come out in ascending order, nulls last."""
        whole = pa.concat_tables(self._tables, promote_options="permissive").combine_chunks()
        keys = [encoded(name, whole[name]) for name in self._names]
        cut = crossed(keys, np.ones(whole.num_rows, np.bool_))
        columns = dict(cut.values)
        ones = np.ones(whole.num_rows)
        for name in ("n_items", aggregation.WEIGHT, *(m.name for m in self._needed)):
            total, error = (to_numpy(whole[each(name)].combine_chunks()) for each in (_total, _error))
            added, rest = np.zeros(cut.n_slices, total.dtype), np.zeros(cut.n_slices, total.dtype)
            if total.dtype.kind == "i":
                kernels.sums.count_by_code(cut.codes, total, added)
            else:
                for values in (total, error):
                    kernels.sums.add_by_code(cut.codes, values, ones, None, added, rest)
            columns |= _of_sums({name: (added, rest)})
        return pa.table(columns)

    def result(self) -> pa.Table:
        """Return the slices with their scores, as `Evaluation.slices` does."""
        whole = self._added_up()
        columns = {}
        for name, own in self._names.items():
            columns[name] = (
                size_names(to_numpy(whole[name].combine_chunks())) if own in SIZES else whole[name]
            )
        sums = {}
        for name in ("n_items", aggregation.WEIGHT, *(m.name for m in self._needed)):
            total, error = (to_numpy(whole[each(name)].combine_chunks()) for each in (_total, _error))
            sums[name] = total + error
        columns |= aggregation.means_of_groups(sums, self._metrics, self._beta)
        return listed(table_of(columns), self._metrics, None, None)


class SubsetSums(SliceSums):
    """The same for subsets by name.

    Parameters
    ----------
    subsets : mapping
        Names, and for each a mask of the truth's rows or a list of items.
    n_rows : int
        Rows of the truth.
    metrics, beta
        As for `SliceSums`.
    """

    def __init__(
        self, subsets: Mapping[str, Any], n_rows: int, metrics: Sequence[Metric], beta: float
    ) -> None:
        super().__init__({"slice": "slice"}, metrics, beta)
        self._subsets = {str(name): as_subset(which, repr(name)) for name, which in subsets.items()}
        self._seen = {
            name: np.zeros(len(which), np.bool_)
            for name, (mask, which) in self._subsets.items()
            if mask is None
        }
        for name, (mask, _) in self._subsets.items():
            if mask is not None and mask.size != n_rows:
                raise SliceError(
                    f"the mask of {name!r} has {mask.size} values; it needs one for each of the {n_rows} rows of "
                    "the truth"
                )

    def add_block(self, block: RowBlock, cells: RowCells | None) -> None:
        """Add the rows of a block, and note which items are seen."""
        tables = []
        for k, (name, (mask, which)) in enumerate(self._subsets.items()):
            if mask is None:
                rows = TableItems(block.columns).rows_of(which)
                self._seen[name][rows >= 0] = True
                here = np.zeros(block.found.size, np.bool_)
                here[rows[rows >= 0]] = True
            else:
                here = np.append(mask, False)[to_numpy(block.columns["row"].fill_null(-1).combine_chunks())]
            if cells is not None:
                sums = aggregation.group_sums(cells, np.where(here, 0, -1), 1, self._needed, by_row=True)
                tables.append(pa.table({"slice": from_numpy(np.array([k]))} | _of_sums(sums)))
        if tables:
            self._add(pa.concat_tables(tables))

    def result(self) -> pa.Table:
        """Return the subsets in the order given, with their scores."""
        for name, seen in self._seen.items():
            if (missing := np.flatnonzero(~seen)).size:
                which = list(self._subsets[name][1])
                raise missing_items(repr(name), [which[k] for k in missing[:4]], missing.size, seen.size)
        table = super().result()
        for name, n_items in zip(self._subsets, table["n_items"].to_pylist(), strict=True):
            if not n_items:
                raise nothing_scored(repr(name))
        return table.set_column(0, "slice", from_texts(list(self._subsets)))


def _of_sums(sums: Mapping[str, tuple[np.ndarray, np.ndarray]]) -> dict[str, pa.Array]:
    columns: dict[str, pa.Array] = {}
    for name, (total, error) in sums.items():
        columns |= {_total(name): from_numpy(total), _error(name): from_numpy(error)}
    return columns


def _total(name: str) -> str:
    return f"total {name}"


def _error(name: str) -> str:
    return f"error {name}"


def _lower_bounds(texts: pa.Array) -> pa.Array:
    """Return the smallest size of each slice by size, which sorts as a number."""
    return pa.array([int(text.partition("-")[0]) for text in texts.to_pylist()], pa.int64())
