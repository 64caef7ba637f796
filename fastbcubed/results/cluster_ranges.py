"""Columns of clusters by code; for cells that are mapped from a file, one range of codes at a time."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.cells.cell_parts import ClusterKeys
from fastbcubed.cells.contingency import Contingency, TrueNegatives
from fastbcubed.inputs.arrays import read_only, table_of
from fastbcubed.metrics import aggregation
from fastbcubed.metrics.aggregation import WEIGHT, cell_scores, means_of_groups, summed
from fastbcubed.metrics.bcubed import LOSS_OF_SIDE, LOSSES
from fastbcubed.metrics.metric import Metric
from fastbcubed.overlap.cover import Cover, split_equally
from fastbcubed.results.cluster_outcomes import marked, mixed, named, outcome_code, with_unlabelled
from fastbcubed.results.table import Listing, best, require_known
from fastbcubed.runtime.output_files import ROW_GROUP
from fastbcubed.runtime.spill import Spill, Spool
from fastbcubed.runtime.threads import Pool, blocks

Columns = dict[str, NDArray[Any]]
#: Maximum bytes per cell while its range is processed, without scores, and per score.
CELL_BYTES, SCORE_BYTES = 128, 24
#: Cells distributed to ranges at a time, and cells whose clusters are scored at a time, so that columns stay in cache.
BATCH, AT_ONCE = 1 << 16, 1 << 15
MAX_RANGES = 1 << 12
#: Approximate bytes per cluster whose columns are held while its label is looked up; and copies made of the label.
NAMED_BYTES, LABEL_COPIES = 256, 8
#: Number of clusters that are named and written at a time, if memory permits.
WRITTEN = 2 * ROW_GROUP
#: Name of the true negatives among the scores.
TN = "tn"


def listing_of(
    first: int, columns: dict[str, NDArray[Any]], side: str, outcome: str | None = None
) -> pa.Table:
    """Return a table of the clusters that have scored items and this outcome, with codes counted from `first`."""
    there = columns["n_items"] > 0
    if outcome is not None:
        there &= columns["outcome"] == outcome_code(side, outcome)
    chosen = np.flatnonzero(there)
    if chosen.size < there.size:  # otherwise no copy is needed
        columns = {name: values[chosen] for name, values in columns.items()}
    return table_of({"code": chosen + first} | named(columns, side))


def columns_by_code(
    table: Contingency, side: str, metrics: list[Metric], beta: float, total: float | None = None
) -> dict[str, NDArray[Any]]:
    """Return n_items, weight, n_parts, exact, outcome, losses and scores of each cluster, by code.

    `total` is the weight of all items, if `table` has only some of them.
    """
    total = table.total_weight if total is None else total
    scores = aggregation.means_by_cluster(table, side, metrics, beta=beta, total=total)
    columns = {name: scores.pop(name) for name in ("n_items", "weight")} | {"n_parts": table.n_met(side)}
    if isinstance(table, Cover):
        return columns | {"exact": table.exact(side)} | scores | losses_of_cover(table, side)
    outcome = marked(table, side) >> 1
    return columns | {"exact": outcome == 0, "outcome": outcome} | scores


def losses_of_cover(cover: Cover, side: str) -> dict[str, NDArray[np.float64]]:
    """Return the losses of overlapping clusters: charged to clusters that cause them, otherwise split equally."""
    losses = {}
    for name, metric in LOSSES.items():
        if name == LOSS_OF_SIDE[side]:
            losses[name] = cover.charges[side]
        else:
            lost = aggregation.cell_scores(cover, metric) * cover.weight / cover.total_weight
            losses[name] = split_equally(cover, side, lost)
    return losses


class ClusterRanges:
    """Computes the clusters of cells that are mapped from a file, one range of cluster codes at a time.

    Cells are stored by predicted cluster (`Contingency.parts`). To process true clusters, cells are first distributed
    to ranges of true codes. True clusters with very many cells ("heavy") are few; their sums are collected meanwhile.
    """

    def __init__(
        self,
        table: Contingency,
        keys: ClusterKeys,
        limit: int,
        directory: Path,
        threads: int,
        label_bytes: int,
    ) -> None:
        self._table = table
        self.label_bytes = label_bytes  #: approximate bytes of a label
        self.keys = keys  #: keys of the clusters, by code
        self.limit = limit
        self.directory = directory  #: where files are spilled
        self._threads = threads

    def best(self, side: str, asked: Listing) -> pa.Table:
        """Return clusters that include the first `limit` in this order, for `listed` to sort."""

        def ranges() -> Iterator[pa.Table]:
            for first, columns in self.by_code(side, asked.metrics, asked.beta):
                require_known(asked.order_by, columns)
                yield listing_of(first, columns, side, asked.outcome)

        return best(ranges(), asked.metrics, asked.order_by, asked.limit, asked.named_by, self.named_at_once)

    @property
    def named_at_once(self) -> int:
        """Number of clusters whose columns are held while their labels are looked up."""
        return max(1, self.limit // 2 // (NAMED_BYTES + LABEL_COPIES * self.label_bytes))

    def to_be_named(self, side: str, metrics: list[Metric], beta: float) -> Iterator[tuple[int, Columns]]:
        """Yield the columns of `by_code` in larger ranges, so that whole row groups can be written."""
        size = max(1, min(WRITTEN, self.named_at_once))
        size -= size % min(size, ROW_GROUP)
        first, n, held = 0, 0, list[Columns]()
        for _, columns in self.by_code(side, metrics, beta):
            held.append(columns)
            n += columns["n_items"].size
            if n >= size:
                found, whole = _joined(held), n - n % min(size, ROW_GROUP)
                for at in range(0, whole, size):
                    some = slice(at, min(at + size, whole))
                    yield first + at, {name: values[some] for name, values in found.items()}
                held = [{name: values[whole:] for name, values in found.items()}]
                first, n = first + whole, n - whole
        if n:
            yield first, _joined(held)

    def by_code(self, side: str, metrics: list[Metric], beta: float) -> Generator[tuple[int, Columns]]:
        """Yield the first code of each range of clusters, and the columns of these; see `columns_by_code`."""
        asked = _Asked([m for m in metrics if not m.overall_only], beta, self._table.total_weight)
        n_cells = max(1, self.limit // 4 // (CELL_BYTES + SCORE_BYTES * (len(metrics) + len(LOSSES))))
        beside = _Beside(self._table, asked.of_items)
        if side == "true":
            yield from self._true(asked, n_cells, beside)
            return
        unlabelled = with_unlabelled(self._table)
        for first, columns in self._pred(asked, n_cells, beside):
            mixed(columns["outcome"], first, unlabelled)
            yield first, columns

    def _pred(self, asked: _Asked, n_cells: int, beside: _Beside) -> Iterator[tuple[int, Columns]]:
        table, n_spread = self._table, self.keys.n_spread
        if n_spread:
            yield 0, self._spread(asked, beside)
        first = n_spread
        for start, stop in _runs(self.keys.parts.tolist(), min(n_cells, AT_ONCE)):
            cells, codes = table.cells[start:stop], table.pred[start:stop]
            known = beside.of(start, stop)
            if n_spread:
                own = codes >= n_spread
                cells, codes, known = cells[own], codes[own], _chosen(known, own)
            if codes.size:
                end = int(codes.max()) + 1
                yield first, asked.columns(self._excerpt(cells, codes, first, end, known))
                first = end
        if first < self.keys.pred.size:  # clusters without cells
            yield first, _blank(asked.metrics, self.keys.pred.size - first)

    def _spread(self, asked: _Asked, beside: _Beside) -> Columns:
        """Return the columns of the predicted clusters whose cells may be in any part of the file."""
        table, sums = self._table, _Sums(asked, self.keys.n_spread)
        for start, stop in blocks(table.n_cells, BATCH):
            own = np.flatnonzero(table.pred[start:stop] < self.keys.n_spread)
            if own.size:
                known = _chosen(beside.of(start, stop), own)
                cells = table.cells[start:stop][own]
                codes = table.pred[start:stop][own]
                found = self._excerpt(cells, codes, 0, self.keys.n_spread, known)
                sums.add(found, {m.name: cell_scores(found, m) for m in asked.of_items})
        return sums.columns()

    def _true(self, asked: _Asked, n_cells: int, beside: _Beside) -> Iterator[tuple[int, Columns]]:
        table, n_heavy, n_true = self._table, self.keys.n_heavy, self.keys.true.size
        n_ranges = min(-(-table.n_cells // n_cells), MAX_RANGES)
        width = max(1, -(-(n_true - n_heavy) // n_ranges))
        kind = np.dtype([("cell", table.cells.dtype), *((name, "f8") for name in beside.names)])
        with Spill(self.directory, named=True) as spill, Pool(self._threads) as pool:
            spill.require_free(max(0, table.n_cells * kind.itemsize - self.limit // 4))
            spool = Spool(kind, n_ranges, spill, self.limit // 4)

            def send(start: int, stop: int) -> tuple[Contingency, Columns] | None:
                """Distribute cells to the ranges; return the cells of heavy clusters, if any, and their scores."""
                cells = table.cells[start:stop]
                known = beside.of(start, stop)
                bounds, order = np.empty(n_ranges + 2, np.int64), np.empty(cells.size, np.int64)
                kernels.partition.order_by_range(cells, n_heavy, width, bounds, order)
                apart, rest = np.split(order, bounds[1:2])
                with spool.pages() as pages:
                    out = pages.empty(rest.size, kind)
                    if known:
                        out["cell"] = cells[rest]
                    else:
                        np.take(cells, rest, out=out.view(cells.dtype), mode="clip")
                    for name, values in known.items():
                        out[name] = values[rest]
                    spool.put(start, pages, bounds[1:] - bounds[1])
                if not apart.size:
                    return None
                cells = cells[apart]
                found = self._excerpt(cells, cells["true"], 0, n_heavy, _chosen(known, apart))
                return found, {m.name: cell_scores(found, m) for m in asked.of_items}

            sums = _Sums(asked, n_heavy)
            tasks = blocks(table.n_cells, BATCH)
            for found in pool.stream(send, tasks, stage="sort cells by true cluster"):
                if found is not None:
                    sums.add(*found)
            if n_heavy:
                yield 0, sums.columns()
            first = n_heavy
            for shard, records in spool.read_ahead(range(n_ranges), pool, "score clusters"):
                start, end = (min(n_heavy + each * width, n_true) for each in (shard, shard + 1))
                if first < start:  # clusters without cells
                    yield first, _blank(asked.metrics, start - first)
                first = end
                yield from self._by_true(asked, records, (start, end), beside)
            if first < n_true:
                yield first, _blank(asked.metrics, n_true - first)

    def _by_true(
        self, asked: _Asked, records: np.ndarray, codes: tuple[int, int], beside: _Beside
    ) -> Iterator[tuple[int, Columns]]:
        """Yield the columns of a range of true clusters, some clusters at a time, given all of their cells."""
        cells, (first, end) = read_only(np.ascontiguousarray(records["cell"])), codes
        width = max(1, (end - first) * AT_ONCE // max(AT_ONCE, cells.size))
        bounds = np.empty(-(-(end - first) // width) + 2, np.int64)
        order = np.empty(cells.size, np.int64)
        kernels.partition.order_by_range(cells, first, width, bounds, order)
        for k, (start, stop) in enumerate(pairwise(bounds[1:].tolist())):
            at, some = first + k * width, order[start:stop]
            last = min(at + width, end)
            if some.size:
                own = np.take(cells, some, mode="clip")
                known = {name: records[name][some] for name in beside.names}
                yield at, asked.columns(self._excerpt(own, own["true"], at, last, known))
            else:  # clusters without cells
                yield at, _blank(asked.metrics, last - at)

    def _excerpt(
        self, cells: np.ndarray, codes: NDArray[np.integer], first: int, end: int, known: Columns
    ) -> Contingency:
        """Return these cells as a table whose predicted clusters are those in `codes`, counted from `first`."""
        whole = self._table
        own = codes - first
        found = Contingency(
            cells,
            lambda: own,
            (end - first, end - first),
            weighted=whole.weighted,
            weighting=whole.weighting,
            outside=whole.outside,
            tn=known.get(TN),
        )
        found.known_scores = known
        return found


class _Beside:
    """Values that depend on all cells: true negatives, and scores that are already known."""

    def __init__(self, table: Contingency, metrics: list[Metric]) -> None:
        self._scores = {
            m.name: known for m in metrics if (known := table.known_scores.get(m.name)) is not None
        }
        self._negatives = TrueNegatives(table) if any(m.uses_tn for m in metrics) else None
        if self._negatives is not None:
            self._negatives(0, 1)  # fills the cache before threads share it
        self.names = [*self._scores, *([TN] if self._negatives is not None else [])]

    def of(self, start: int, stop: int) -> Columns:
        """Return these values, by name, for a range of cells."""
        found = {name: known[start:stop] for name, known in self._scores.items()}
        return found if self._negatives is None else found | {TN: self._negatives(start, stop)}


def _chosen(columns: Columns, rows: NDArray[Any]) -> Columns:
    return {name: values[rows] for name, values in columns.items()}


class _Asked:
    """The requested scores of clusters, the means over items that they depend on, and the weight of all items."""

    def __init__(self, metrics: list[Metric], beta: float, total: float) -> None:
        self.metrics = metrics
        self.beta = beta
        self.total = total
        self.of_items = summed(metrics, beta, losses=True)

    def columns(self, table: Contingency) -> Columns:
        """Return the columns of a table's predicted clusters, all of whose cells it must contain."""
        return columns_by_code(table, "pred", self.metrics, self.beta, self.total)


def _runs(parts: list[int], n_cells: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of at most `n_cells` cells that end where parts end; a larger part is a range of its own.

    Examples
    --------
    >>> list(_runs([0, 2, 3, 3, 9, 10], 4))
    [(0, 3), (3, 9), (9, 10)]
    """
    start = last = parts[0]
    for end in parts:
        if end - start > n_cells and last > start:
            yield start, last
            start = last
        last = end
    if last > start:
        yield start, last


def _joined(ranges: list[Columns]) -> Columns:
    """Return consecutive ranges joined; a single range is not copied."""
    if len(ranges) == 1:
        return ranges[0]
    return {name: np.concatenate([columns[name] for columns in ranges]) for name in ranges[0]}


def _blank(metrics: list[Metric], n: int) -> Columns:
    counts = {name: np.zeros(n, np.int64) for name in ("n_items", "n_parts")}
    columns = {"weight": np.zeros(n), "exact": np.ones(n, bool), "outcome": np.zeros(n, np.uint8), **counts}
    losses = {name: np.zeros(n) for name in LOSSES}
    scores = {m.name: np.full(n, np.nan) for m in metrics}
    names = ("n_items", "weight", "n_parts", "exact", "outcome")
    return {name: columns[name] for name in names} | losses | scores


class _Sums:
    """Sums the columns of clusters whose cells come in several tables."""

    def __init__(self, asked: _Asked, n: int) -> None:
        self._asked = asked
        self._found = _blank(asked.metrics, n)
        self._marks = np.zeros(n, np.uint8)
        self._weight = np.zeros((2, n))
        self._sums = {m.name: np.zeros((2, n)) for m in asked.of_items}

    def add(self, table: Contingency, scores: dict[str, NDArray[np.float64]]) -> None:
        """Add the cells of a table, by the codes in `table.pred`, and the scores of their items."""
        codes, found = table.pred, self._found
        kernels.sums.count_by_code(codes, table.n, found["n_items"])
        found["n_parts"] += np.bincount(codes, minlength=found["n_parts"].size)
        marked(table, "pred", self._marks)
        kernels.sums.add_by_code(codes, table.weight, np.ones(codes.size), None, *self._weight)
        for name, values in scores.items():
            kernels.sums.add_by_code(codes, table.weight, values, None, *self._sums[name])

    def columns(self) -> Columns:
        """Return the columns of the clusters."""
        sums = {"n_items": self._found["n_items"], WEIGHT: self._weight.sum(axis=0)}
        sums |= {name: both.sum(axis=0) for name, both in self._sums.items()}
        outcome = self._marks >> 1
        columns = self._found | {"exact": outcome == 0, "outcome": outcome}
        return columns | means_of_groups(sums, self._asked.metrics, self._asked.beta, self._asked.total)
