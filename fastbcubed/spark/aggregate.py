"""Batches of cells with their margins → sums, on Spark's executors."""

from __future__ import annotations

import math
import pickle
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed import errors
from fastbcubed.cells.contingency import CELL, Contingency, ScoredRows, add_products
from fastbcubed.cells.stages import change_by_cell
from fastbcubed.errors import FastBCubedError, SparkJobError
from fastbcubed.metrics import aggregation
from fastbcubed.metrics.score import Metric
from fastbcubed.metrics.sums import count_part, ordered_pairs, weigh_part
from fastbcubed.results.slice_sums import Part, SliceSums
from fastbcubed.results.slices import Element
from fastbcubed.results.summary import bound_sums
from fastbcubed.runtime.threads import Pool
from fastbcubed.spark.grouping import COMMON, NEITHER, PREDICTION_ONLY
from fastbcubed.types import Counts, Floats, Sizes


@dataclass(frozen=True)
class Question:
    """The sums requested of streamed cells; it is sent to the executors."""

    weighted: bool
    outer: bool
    outside: bool
    bounded: bool = False  #: whether to bound the precision, as prediction-only items were dropped
    metrics: list[Metric] = field(default_factory=list)  #: means over items to sum
    #: and means over clusters of means, by side
    by_cluster: list[tuple[str, Metric]] = field(default_factory=list)
    pairs: bool = False
    entropies: bool = False
    #: attributes by name, under their internal names
    slices: list[dict[str, Element]] = field(default_factory=list)
    grouped: list[Metric] = field(default_factory=list)  #: the scores of slices
    beta: float = 1.0
    carried: list[str] = field(default_factory=list)  #: columns that cut the cells
    total: tuple[int, float] | None = None  #: scored items and their weight, where these are known

    @property
    def how(self) -> dict[str, Any]:
        """The arguments that describe the cells to a contingency."""
        weighting = "outer" if self.outer else "pointwise"
        return {"weighted": self.weighted, "weighting": weighting, "outside": self.outside}


class Margins:
    """The columns of cells: their own values, and the sums over their clusters; see `Cells.with_margins`."""

    def __init__(self, columns: dict[str, NDArray[Any]], question: Question) -> None:
        self._columns, self._question = columns, question

    def __getattr__(self, name: str) -> NDArray[Any]:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._columns[name]

    def get(self, name: str) -> NDArray[Any]:
        """Return a column; zeros if there is none, as a policy leaves nothing to count there."""
        return self._columns.get(name, np.zeros(1, np.int64))

    @property
    def kinds(self) -> NDArray[Any]:
        """The side that has the items: see `joined_items`. It follows from the clusters unless a policy made some."""
        if "kind" in self._columns:
            return self._columns["kind"]
        return np.where(self.t_there, np.where(self.p_there, 0, 1), np.where(self.p_there, 2, 3))

    def take(self, rows: NDArray[Any]) -> Margins:
        """Select some cells."""
        return Margins({name: each[rows] for name, each in self._columns.items()}, self._question)

    def n(self, prefix: str = "") -> Counts:
        """Return numbers of items: of the cell without a prefix, otherwise of its cluster; see `with_margins`."""
        return self._columns[f"{prefix}_n" if prefix else "n"]

    def weight(self, prefix: str = "") -> Floats:
        """Return the weights of these items; their number if there are no weights."""
        if not self._question.weighted:
            return self.n(prefix).astype(np.float64)
        return self._columns[f"{prefix}_w" if prefix else "w"]

    def mass(self, prefix: str = "") -> Floats:
        """Return the mass inside confusion matrices: weights, or numbers if weights affect the mean only."""
        return self.n(prefix).astype(np.float64) if self._question.outer else self.weight(prefix)

    @property
    def whole(self) -> str:
        """The prefix of the whole cell, which is cut where there are slices."""
        return "c" if self._question.carried else ""


class StreamedCells(Contingency):
    """Scored cells, or parts of them, each with its margins; rows stand for parts."""

    def __init__(self, found: Margins, question: Question) -> None:
        self.margins = found
        whole = found.whole
        n, mass = found.n(whole), found.mass(whole)
        cells = np.zeros(n.size, CELL)
        cells["n"], cells["weight"] = n, found.weight(whole)
        unlabelled = (found.n("u"), found.mass("u")) if question.outside else (0, 0.0)
        cells["fp"] = _beside(mass, found.mass("b") + unlabelled[1], n, found.n("b") + unlabelled[0])
        cells["fn"] = _beside(mass, found.mass("a"), n, found.n("a"))
        part_n = found.n()
        rows = ScoredRows(lambda: np.arange(n.size), found.weight(), n.size, lambda: part_n)
        super().__init__(cells, lambda: np.zeros(n.size, np.int64), (1, 1), rows=rows, **question.how)
        self._unlabelled = unlabelled[0]
        if question.total is not None and not question.outside:
            self.known_tn = self._true_negatives(*question.total)

    def _true_negatives(self, n_items: int, total: float) -> Floats:
        """Return the true negatives, zero where the counts leave none; see `TrueNegatives`."""
        left = n_items - (self.mates("true") + self.mates("pred") - self.n)
        if not self.weighted or self.weighting == "outer":
            return left.astype(np.float64)
        tn = np.maximum(0.0, (total - (self.weight + self.fp)) - self.fn)
        tn[left == 0] = 0.0
        return tn

    def mates(self, side: str) -> NDArray[np.integer]:
        """Return, by cell, the items in its cluster of this side."""
        return self.margins.n("a") if side == "true" else self.margins.n("b") + self._unlabelled

    def unlabelled_mates(self) -> tuple[Counts, Floats, Counts]:
        """Return number and mass of prediction-only mates, and the position of each cell's."""
        return self.margins.n("u"), self.margins.mass("u"), np.arange(self.n_cells)


def _beside(mass: Floats, whole: Floats, n: Counts, n_whole: Counts) -> Floats:
    """Return the rest of a cluster outside a cell; zero if the counts are equal."""
    return np.where(n == n_whole, 0.0, np.maximum(whole - mass, 0.0))


def columns_of(table: pa.Table, question: Question) -> dict[str, NDArray[Any]]:
    """Return the columns of a batch as arrays, except for those that cells are cut by."""
    names = [name for name in table.column_names if name not in question.carried]
    return {name: table[name].combine_chunks().to_numpy(zero_copy_only=False) for name in names}


#: Cells processed at once: Spark's batches are small compared with the cost of a kernel call.
AT_ONCE = 1 << 17
#: The column in which tasks send their sums.
PAYLOAD = "payload binary"
#: Prefix of the sums of weight * score of items, before the name of the score.
MEAN = "mean of "
#: Cluster sizes below this are counted by position.
USUAL = 1 << 16


@dataclass
class Sums:
    """Sums of cells, which can be added: of a batch, of a task, of all."""

    counts: dict[str, int] = field(default_factory=dict)
    floats: dict[str, float] = field(default_factory=dict)
    #: items by size of their cluster, by side
    sizes: dict[str, Sizes] = field(default_factory=dict)
    slices: list[Part] = field(default_factory=list)  #: the same slicings in the same order


def add_up(question: Question) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function that turns the batches of a task into one row: their sums, as bytes."""

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
    """Return items and weight by `kind`, rows left out, faults, and items that lack a required weight."""
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
    """Return the gain in the sum of recall if truth-only items were singletons in the prediction."""
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
    """Add the sums that the scores are computed from."""
    floats = sums.floats
    for name, value in aggregation.item_sums(cells, question.metrics, pool).items():
        floats[f"{MEAN}{name}"] = value
    if question.bounded:
        floats |= {f"bound {k}": float(value) for k, value in enumerate(bound_sums(cells))}
    if question.pairs:
        pairs = ordered_pairs(cells, pool)
        sums.counts |= dict(zip(("pairs tp", "pairs fp", "pairs fn"), pairs, strict=True))
    if question.entropies and not question.weighted:
        losses, _ = count_part(cells, pool)
        floats |= {f"loss {k}": value for k, value in enumerate(losses)}
    elif question.entropies and question.total is not None:
        values, _ = weigh_part(cells, question.total[1], (-1.0, -1.0), pool)
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
    """Return the cluster sizes that occur, ascending, and the items of these cells in each."""
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


#: The last line of a Python traceback on an executor.
RAISED = re.compile(r"^(?:fastbcubed\.errors\.)?(\w+): (.*)$", re.MULTILINE)
#: Further lines of Spark's message that an error shows.
SHOWN = 300


def sums_of_job(cells: Any, question: Question) -> Sums | None:
    """Stream cells past the kernels on the executors, and return the sums; None if there are no cells."""
    with named_errors():
        rows = cells.mapInArrow(add_up(question), PAYLOAD).collect()
    parts = [pickle.loads(row["payload"]) for row in rows]
    return added(parts, question) if parts else None


@contextmanager
def named_errors() -> Iterator[None]:
    """Convert failures of Spark into errors of this library, without Java's stack trace."""
    try:
        yield
    except FastBCubedError:
        raise
    except Exception as error:
        if not type(error).__module__.startswith(("pyspark", "py4j", "grpc")):
            raise
        raise _named(str(error)) from None


def _named(text: str) -> FastBCubedError:
    """Return the error of a kernel found in the text of one of Spark's, or one with Spark's message."""
    start = text.find("Traceback (most recent call last)")
    if start < 0:
        return SparkJobError(f"Spark could not do its part: {_first_lines(text)}")
    raised = RAISED.search(text, start)
    name, message = ("an error", _first_lines(text[start:])) if raised is None else raised.groups()
    kind = getattr(errors, name, None)
    if isinstance(kind, type) and issubclass(kind, FastBCubedError):
        return kind(message)
    if name == "ModuleNotFoundError" and "fastbcubed" in message:
        message += ". Install fastbcubed where the executors run, as well"
    return SparkJobError(f"a kernel failed on an executor: {name}: {message}")


def _first_lines(text: str) -> str:
    lines = [
        line.strip() for line in text.splitlines() if line.strip() and not line.strip().startswith("at ")
    ]
    return " ".join(lines)[:SHOWN]
