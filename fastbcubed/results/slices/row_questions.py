"""Slices and items.parquet of the disk engine: what is asked for row by row, answered and written as rows pass."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from fastbcubed.alignment.carried import Carried
from fastbcubed.cells.row_blocks import RowBlock, RowCells
from fastbcubed.clusterings.stretches import Pair
from fastbcubed.metrics.metric import Metric
from fastbcubed.results.items.held_rows import HeldRows
from fastbcubed.results.items.item_files import FIRST, destination, items_of_block
from fastbcubed.results.items.items import attribute_sides
from fastbcubed.results.items.stored_items import StoredTable
from fastbcubed.results.slices.bins import Bins
from fastbcubed.results.slices.slice_sums import SliceSums, SubsetSums, require_slices_fit
from fastbcubed.results.slices.slicing import (
    ID,
    Element,
    SliceKey,
    as_subset,
    attribute_home,
    elements,
    size_named,
    slice_name,
)
from fastbcubed.runtime.spill import Spill
from fastbcubed.runtime.table_files import TableWriter
from fastbcubed.sources.attributes import refused

__all__ = ["RowQuestions"]

#: Why an attribute of both sides needs a prefix here.
NOT_COMPARED = "the disk engine does not look whether they are equal"


@dataclass(frozen=True)
class RowQuestions:
    """What is asked for row by row.

    Attributes
    ----------
    slices : sequence
        What to slice by.
    columns : dict of str to str
        The column of each attribute among those that are carried along.
    carried : Carried
        The columns that have to go with the rows.
    n_rows : int
        Rows of the truth.
    items : bool
        Whether to write the items.
    left_out : dict of str to str
        The attributes that cannot be kept with them, and why.
    """

    slices: Sequence[SliceKey]
    columns: Mapping[str, str]
    carried: Carried
    n_rows: int
    items: bool
    left_out: Mapping[str, str]

    @classmethod
    def of(cls, pair: Pair, slices: Sequence[SliceKey], keep: str) -> RowQuestions:
        """Find the attributes that are asked for; unknown ones raise before the work."""
        truth, prediction = pair.first
        sides = attribute_sides(truth, prediction)
        extra: tuple[str, ...] = ()
        if pair.attribute_table is not None:
            column, table = pair.attribute_table
            extra = tuple(name for name in table.names if name not in column.names)
        parts = () if truth.items is None or truth.items.kind != "composite" else truth.items.names
        asked = {each.name if isinstance(each, Bins) else each for key in slices for each in elements(key)}
        homes = {
            name: attribute_home(name, {**sides, ID: parts}, extra, NOT_COMPARED)
            for name in asked
            if size_named(name, sides, extra) is None
        }
        wanted = {(side or "attributes", own) for side, own in homes.values() if side != ID}
        items, left_out = keep == "items", dict[str, str]()
        if items:
            tables = {"truth": truth.attributes, "prediction": prediction.attributes}
            if pair.attribute_table is not None:
                tables["attributes"] = pair.attribute_table[1]
            for side, names in {**sides, "attributes": extra}.items():
                reasons = refused(rows, names) if names and (rows := tables[side]) is not None else {}
                left_out |= {f"{side}.{own}": reason for own, reason in reasons.items()}
                wanted |= {(side, own) for own in names if own not in reasons}
        subsets = [subset for key in slices if isinstance(key, Mapping) for subset in key.items()]
        masks = [as_subset(which, repr(name))[0] for name, which in subsets]
        carried = Carried(
            ids=items or any(mask is None for mask in masks) or any(side == ID for side, _ in homes.values()),
            labels=items,
            numbers=any(mask is not None for mask in masks),
            attributes=frozenset(wanted),
        )
        columns = {name: f"{side or 'attributes'}.{own}" for name, (side, own) in homes.items()}
        n_rows = sum(stretch.n_rows for stretch in pair.stretches[0])
        return cls(slices, columns, carried, n_rows, items, left_out)

    def __bool__(self) -> bool:
        return bool(self.slices) or self.items

    @property
    def told(self) -> str | None:
        """What rows need to be told: see `cell_parts.Question`."""
        return "matrix" if self.slices else "cell" if self.items else None

    def answer(
        self,
        blocks: Iterable[RowBlock],
        kind: Mapping[str, Any],
        metrics: Sequence[Metric],
        beta: float,
        out: Path | None,
        spill: Spill,
        limit: int,
        held: HeldRows | None = None,
    ) -> tuple[dict[str, pa.Table], StoredTable | None]:
        """Return the slices by name, and the items.

        Parameters
        ----------
        blocks : iterable of RowBlock
            All rows.
        kind : dict
            `weighted`, `weighting` and `outside`, as of a contingency.
        metrics : sequence of Metric
            The scores.
        beta : float
            Weight of recall in F.
        out : Path or None
            Where the items go; to a file without a name beside `spill` if None.
        spill : Spill
            Where the sums of many slices go.
        limit : int
            The bytes that may be used.
        held : HeldRows, optional
            Takes rows as they are written.
        """
        sums = self.sums(metrics, beta, spill)
        if not self.items:
            total = _add(blocks, sums, kind, limit)
            return {name: each.result(total) for name, each in sums.items()}, None
        with destination(out, spill.directory) as to:
            with TableWriter(to.file) as writer:
                total = _add(blocks, sums, kind, limit, writer, held)
            stored = StoredTable(to.file, to.staging, writer.stamp, None if held is None else held.finished())
            sliced = {name: each.result(total) for name, each in sums.items()}
        return sliced, stored

    def sums(self, metrics: Sequence[Metric], beta: float, spill: Spill) -> dict[str, SliceSums]:
        """Return what adds up the slices, by name; it takes blocks of rows with their cells."""
        return {slice_name(key): self._sums(key, metrics, beta, spill) for key in self.slices}

    def _sums(self, key: SliceKey, metrics: Sequence[Metric], beta: float, spill: Spill) -> SliceSums:
        if isinstance(key, Mapping):
            return SubsetSums(key, self.n_rows, metrics, beta, spill)
        return SliceSums({str(each): self._located(each) for each in elements(key)}, metrics, beta, spill)

    def _located(self, element: Element) -> Element:
        """Return an attribute, or bins of it, under the name of its column."""
        if isinstance(element, Bins):
            return replace(element, name=self.columns[element.name])
        return self.columns.get(element, element)


def _add(
    blocks: Iterable[RowBlock],
    sums: Mapping[str, SliceSums],
    kind: Mapping[str, Any],
    limit: int,
    writer: TableWriter | None = None,
    held: HeldRows | None = None,
) -> float:
    """Add the blocks to the sums, and write the items; return the weight that is scored, if there are sums."""
    weights = [0.0]
    for block in blocks:
        if writer is not None:
            items = items_of_block(block)
            writer.add(items)
            if held is not None:
                held.take(block.found["cell"].astype(np.int64), items.select(FIRST))
        if sums:
            scored = block.found["cell"] >= 0
            cells = RowCells(block.found, block.weight, **kind) if scored.any() else None
            weights.append(float(np.sum(scored if block.weight is None else block.weight[scored])))
            for each in sums.values():
                each.add_block(block, cells)
            require_slices_fit(sums, limit)
    return math.fsum(weights)
