"""What runs where the cells are: batches of cells with their margins → sums, a few numbers for each task."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed.cells.if_alone import change_by_cell
from fastbcubed.cells.records import add_products
from fastbcubed.engines.spark.joined_items import COMMON, NEITHER, PREDICTION_ONLY
from fastbcubed.engines.spark.streamed_cells import Margins, Question, StreamedCells, columns_of
from fastbcubed.metrics import aggregation, entropies, pair_counts
from fastbcubed.results.listings.summary import bound_sums
from fastbcubed.results.slices.slice_sums import Part, SliceSums
from fastbcubed.runtime.pool import Pool

#: Cells that are worked on at once: batches of Spark are small beside what a call of a kernel costs.
AT_ONCE = 1 << 17
#: The column in which tasks send their sums.
PAYLOAD = "payload binary"
#: What the sums of weight * score of items are called by, before the name of the score.
MEAN = "mean of "
#: Cluster sizes below this one are counted by position.
USUAL = 1 << 16

Sizes = tuple[NDArray[np.int64], NDArray[np.int64]]


@dataclass
class Sums:
    """Sums of cells, which add up: of a batch, of a task, of all."""

    counts: dict[str, int] = field(default_factory=dict)
    floats: dict[str, float] = field(default_factory=dict)
    #: items by size of their cluster, by side
    sizes: dict[str, Sizes] = field(default_factory=dict)
    slices: list[Part] = field(default_factory=list)  #: the same slicings in the same order


def add_up(question: Question) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return what makes one row of the batches of a task: their sums, as bytes."""

    def task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found = [sums_of(table, question) for table in gathered(batches)]
        if found:
            payload = pickle.dumps(added(found, question))
            yield pa.RecordBatch.from_arrays([pa.array([payload], pa.binary())], ["payload"])

    return task


def gathered(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Yield tables of several batches each."""
    held, n = list[pa.RecordBatch](), 0
    for batch in batches:
        if batch.num_rows:
            held.append(batch)
            n += batch.num_rows
        if n >= AT_ONCE:
            yield pa.Table.from_batches(held)
            held, n = [], 0
    if held:
        yield pa.Table.from_batches(held)


def added(parts: list[Sums], question: Question) -> Sums:
    """Add up sums."""
    slices = []
    for k, names in enumerate(question.slices):
        sums = SliceSums(names, question.grouped, question.beta, None)
        own = [part.slices[k] for part in parts if part.slices]
        for each in own:
            sums.add(each)
        slices += [sums.added_up()] if own else []
    return Sums(
        {name: sum(part.counts[name] for part in parts) for name in parts[0].counts},
        {
            name: math.fsum(part.floats.get(name, 0.0) for part in parts)
            for name in dict.fromkeys(name for part in parts for name in part.floats)
        },
        {
            side: _sizes_added([part.sizes[side] for part in parts if side in part.sizes])
            for side in ("true", "pred")
        },
        slices,
    )


def sums_of(table: pa.Table, question: Question) -> Sums:
    """Return the sums of a batch."""
    found = Margins(columns_of(table, question), question)
    counts, floats = _coverage(found, question)
    scored = found.t_there & found.p_there
    sums = Sums(counts, floats)
    floats["if alone"] = _if_alone(found, scored)
    counts["n_exact"] = counts["n_items"] = 0
    if not scored.any():
        return sums
    parts = found.take(scored)
    cells = StreamedCells(parts, question)
    if question.slices:
        carried = table.select(question.carried).filter(pa.array(scored))
        carried = carried.rename_columns([f"attributes.{name}" for name in question.carried])
        sums.slices = [
            SliceSums(names, question.grouped, question.beta, None).of_rows(carried, cells)
            for names in question.slices
        ]
    if question.carried:
        parts = parts.take(parts.head)
        if not parts.n().size:
            return sums
        cells = StreamedCells(parts, question)
    counts["n_exact"], counts["n_items"] = cells.n_exact, cells.n_items
    floats["weight"] = float(math.fsum(cells.weight.tolist()))
    sums.sizes = {"true": sizes_of(parts.n("a"), cells.n), "pred": sizes_of(parts.n("b"), cells.n)}
    with Pool(1) as pool:
        _add_scores(sums, cells, question, pool)
    return sums


def _coverage(found: Margins, question: Question) -> tuple[dict[str, int], dict[str, float]]:
    """Return items and weight by `kind`, rows left out, faults, and items without a weight that need one."""
    n, kind = found.n(), found.kinds
    counts = {f"n_{k}": int(n[kind == k].sum()) for k in range(NEITHER)}
    counts |= {name: int(found.get(name).sum()) for name in ("again", "fault")}
    weight = found.weight()
    floats = {f"weight_{k}": float(weight[kind == k].sum()) for k in range(COMMON, NEITHER)}
    needed = found.t_there & found.p_there
    if question.outside:
        needed = needed | (kind == PREDICTION_ONLY)
    counts["n_unweighted"] = int(n[needed & np.isnan(weight)].sum())
    return counts, floats


def _if_alone(found: Margins, scored: NDArray[np.bool_]) -> float:
    """Return what the sum of recall would gain if items that only the truth has were alone in the prediction."""
    heads = scored & found.head if found.whole else scored
    left = found.t_there & ~found.p_there
    touched = (heads | left) & (found.n("l") > 0)
    if not touched.any():
        return 0.0
    some = found.take(touched)
    own = np.where(left[touched], some.n() / some.n("l"), 0.0)
    product = np.where(left[touched], 0.0, some.weight(some.whole) * some.mass(some.whole))
    alone = some.weight("l") * (some.mass("l") / some.n("l"))
    return change_by_cell(product, own * alone, some.mass("a"), some.mass("l"))


def _add_scores(sums: Sums, cells: StreamedCells, question: Question, pool: Pool) -> None:
    """Add what the scores are made of."""
    floats = sums.floats
    for name, value in aggregation.item_sums(cells, question.metrics, pool, whole=False).items():
        floats[f"{MEAN}{name}"] = value
    if question.bounded:
        floats |= {f"bound {k}": float(value) for k, value in enumerate(bound_sums(cells))}
    if question.pairs:
        pairs = pair_counts.ordered_pairs(cells, pool)
        sums.counts |= dict(zip(("pairs tp", "pairs fp", "pairs fn"), pairs, strict=True))
    if question.entropies and not question.weighted:
        losses, _ = entropies.count_part(cells, pool)
        floats |= {f"loss {k}": value for k, value in enumerate(losses)}
    elif question.entropies and question.total is not None:
        values, _ = entropies.weigh_part(cells, question.total[1], (-1.0, -1.0), pool)
        floats |= {f"entropy {k}": value for k, value in enumerate(values)}
    for side, metric in question.by_cluster:
        prefix = "a" if side == "true" else "b"
        whole = cells.margins.weight(prefix)
        weighs = whole > 0
        shares = np.divide(cells.weight, whole, out=np.zeros(whole.size), where=weighs)
        floats[f"cluster {side} {metric.name}"] = add_products(shares, aggregation.cell_scores(cells, metric))
        floats[f"clusters {side}"] = add_products(
            weighs / cells.margins.n(prefix), cells.n.astype(np.float64)
        )


def sizes_of(sizes: NDArray[np.int64], n: NDArray[np.integer]) -> Sizes:
    """Return the sizes of clusters that there are, ascending, and the items of these cells in each."""
    if sizes.max(initial=0) < USUAL:
        items = np.bincount(sizes, n).astype(np.int64)
        known = np.flatnonzero(items)
        return known, items[known]
    known, places = np.unique(sizes, return_inverse=True)
    items = np.zeros(known.size, np.int64)
    np.add.at(items, places, n)
    return known, items


def _sizes_added(parts: list[Sizes]) -> Sizes:
    if not parts:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    sizes, items = (np.concatenate(column) for column in zip(*parts, strict=True))
    return sizes_of(sizes, items)
