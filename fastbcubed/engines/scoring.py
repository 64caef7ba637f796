"""Scoring of cells that come in parts, and the check that the memory limit has room for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from fastbcubed.align.policies import Coverage
from fastbcubed.cells.contingency import Contingency
from fastbcubed.cells.shards import require_limit
from fastbcubed.engines.request import Request, Scored
from fastbcubed.errors import Message, OptionError, PairingError, arg
from fastbcubed.inputs.files import bytes_of_text, open_files
from fastbcubed.inputs.side_columns import per_side
from fastbcubed.inputs.tables import column_names
from fastbcubed.metrics import aggregation
from fastbcubed.metrics.aggregation import LeavingOut
from fastbcubed.metrics.metric import Metric, Sums
from fastbcubed.metrics.sums import CellSums
from fastbcubed.results.figures import Bounds, bound_sums, bounds_from
from fastbcubed.results.slices import SliceKey, names_in
from fastbcubed.runtime.arguments import is_path, path_of
from fastbcubed.runtime.spill import readable
from fastbcubed.runtime.threads import Pool

#: Input held in memory may take this number of bytes, plus the limit divided by SHARE.
ROOM, SHARE = 128 << 20, 3
#: Bytes per row of a table joined by item, without its values; such tables may take ROOM_OF_JOINED bytes, plus the
#: limit divided by SHARE_OF_JOINED.
JOINED, ROOM_OF_JOINED, SHARE_OF_JOINED = 24, 24 << 20, 2
#: How often such a table's texts are held: as a table, and again in the order of the items; measured for 3e6 names.
TEXTS = 2.5
#: Bytes per item for scores that need all cells at once, measured by family; other families need hardly any.
OF_ALL_CELLS = {"overlap": 145, "matching": 52, "coreference": 52, "bcubed": 26, "pointwise": 10, "edit": 8}
#: Memory while cells are counted: bytes per item (up to the limit) and a constant; bytes by which the limit may be
#: exceeded.
COUNTED, BESIDE, ALLOWED = 40, 80 << 20, 256 << 20


def scores_without_room(metrics: Iterable[Metric], n_rows: int, limit: int) -> dict[str, str]:
    """Return the scores that need all cells at once and would exceed the limit, each with the reason."""
    base = min(limit, COUNTED * n_rows) + BESIDE
    return {
        metric.name: f"it needs all cells at once, which exceed the memory limit; raise memory_limit to at "
        f"least {((COUNTED + each) * n_rows + BESIDE - ALLOWED >> 20) + 1} MiB"
        for metric in metrics
        if (each := _held_by(metric)) * n_rows + base > limit + ALLOWED
    }


def _held_by(metric: Metric) -> int:
    """Return the bytes per item that a score needs in addition to sums over parts."""
    whole = (m for m in (metric, *metric.needs) if m.overall_only or m.uses_tn)
    return max((OF_ALL_CELLS.get(m.family, 0) for m in whole), default=0)


def require_room(request: Request) -> None:
    """Raise OptionError, before reading, if the limit is too small in general, or for files held in memory."""
    require_limit(request.limit)
    given = request.given
    names = ("table",) if given.table is not None else ("truth", "prediction")
    what = dict(zip(names, given.sources, strict=True))
    held = {name: bytes_of_text(source) for name, source in what.items()}
    what |= {"weight": given.weight, "attributes": given.attributes}
    held["weight"] = 0 if isinstance(given.weight, str) else _of_joined(given.weight, None)
    held["attributes"] = _of_joined(given.attributes, None if request.keep == "items" else _used(request))
    joined = {name: held[name] for name in ("weight", "attributes")}
    of_all = SHARE * (sum(held.values()) - ROOM)
    of_joined = SHARE_OF_JOINED * (sum(joined.values()) - ROOM_OF_JOINED)
    least = max(of_all, of_joined)
    if least <= request.limit:
        return
    name = max(held if of_all > of_joined else joined, key=lambda name: held[name])
    path = f"{path_of(what[name])}, given as " if is_path(what[name]) else "the table given as "
    way_out = "" if name in ("weight", "attributes") else ", or write it as Parquet, which is read in blocks"
    raise OptionError(
        f"{path}{arg(name, ...)} would take about {readable(held[name])} of memory, because it is held as a whole. "
        f"Raise memory_limit to at least {(least >> 20) + 1} MiB{way_out}"
    )


def _used(request: Request) -> set[str]:
    """Return the columns of a table of attributes that an evaluation uses if items are not kept."""
    items = [name for names in per_side(request.given.item, "item") for name in column_names(names, "item")]
    return {*columns_of_slices(request.slices), *items}


def columns_of_slices(keys: Iterable[SliceKey]) -> set[str]:
    """Return possible names of the columns that slices need: the requested names, with and without the side."""
    names = names_in(keys)
    return {*names, *(name.partition(".")[2] for name in names)}


def _of_joined(source: Any, used: set[str] | None) -> int:
    """Return the approximate bytes of a table joined by item in memory: of the used columns, or of all if None."""
    if not is_path(source):
        shape = getattr(source, "shape", (0,))
        return int(shape[0] * (JOINED + 16)) if len(shape) == 2 else 0
    table = open_files(source)
    if not table.can_be_cut or not len(table):
        return bytes_of_text(source)
    names = [name for name in table.names if used is None or name in used]
    numbers = 8 * len(names)
    return int(len(table) * (JOINED + numbers + TEXTS * max(0, table.row_bytes(names) - numbers)))


class Parts(Protocol):
    """The cells in parts; margins of each part cover all parts."""

    def __iter__(self) -> Iterator[Contingency]: ...

    @property
    def whole(self) -> Contingency | None:
        """All cells, available after the last part; None if they were not kept."""

    @property
    def of_items(self) -> Sequence[Mapping[str, float]]:
        """Contributions of blocks of items to sums, for `Scorer.own`; available after the last part."""


@dataclass(frozen=True)
class OnePart:
    """A single part with all cells."""

    whole: Contingency
    of_items: Sequence[Mapping[str, float]] = ()

    def __iter__(self) -> Iterator[Contingency]:
        return iter((self.whole,))


class Scorer:
    """Computes the scores of a request: means over items part by part, others from all cells after the last part."""

    def __init__(self, request: Request, *, weighted: bool, n_rows: int | None = None) -> None:
        """Choose the scores to compute; `n_rows` is given if the cells come in parts under a memory limit."""
        self._request, self._in_parts = request, n_rows is not None
        in_parts = self._in_parts
        self.metrics, self.not_computed = request.resolve(weighted=weighted)
        if n_rows is not None:
            self._leave_out(scores_without_room(self.metrics, n_rows, request.limit))
        needed = aggregation.with_needs(self.metrics, request.beta)
        lifted = [m for m in needed if m.formula is not None]
        by_weight = in_parts and weighted and not request.outer
        plain = [m for m in lifted if not (m.uses_tn or m.matrix or m.sums)]
        self._of_items = [m for m in plain if by_weight and m.leave_one_out]
        self._of_all = [m for m in lifted if in_parts and m.uses_tn]
        self._by_part = [m for m in lifted if m not in self._of_items and m not in self._of_all]
        self.needs_all = any(m.overall_only or m.uses_tn for m in needed)
        #: whether scores of weighted items need the weight of each item, which cells lack
        self.rows_need_negatives = any(m.uses_tn and not m.overall_only for m in needed)
        filed = request.keep == "items" and request.out is not None and not request.outside
        pairs = filed or any(m.family == "pairs" for m in needed)  # saved files need them for later requests
        #: scores that need each item's own weight, which cells lack; without scores if only pairs are needed
        self.own = LeavingOut(self._of_items) if self._of_items or (by_weight and pairs) else None

    def _leave_out(self, reasons: dict[str, str]) -> None:
        """List scores as not computed; raise OptionError for one that was requested by name."""
        for name in sorted(self._request.named_metrics & reasons.keys()):
            raise OptionError(f"cannot compute {name}: {reasons[name]}")
        self.metrics = [m for m in self.metrics if m.name not in reasons]
        self.not_computed |= {name: Message(reason) for name, reason in reasons.items()}

    def score_with_bounds(self, parts: Parts, coverage: Coverage, pool: Pool) -> tuple[Scored, Bounds | None]:
        """Score the parts; also return bounds of the precision if prediction-only items are dropped."""
        if self._request.policies.prediction != "drop" or not coverage.n_prediction_only:
            return self.score(parts, pool), None
        sums, weight = np.zeros(3), 0.0

        def add(part: Contingency) -> None:
            nonlocal sums, weight
            sums += bound_sums(part)
            weight += float(part.weight.sum(dtype=np.float64))

        scored = self.score(parts, pool, add)
        return scored, bounds_from(sums, weight)

    def score(self, parts: Parts, pool: Pool, each: Callable[[Contingency], None] | None = None) -> Scored:
        """Score the parts and then all cells; scores that need a pairing are left out if the search for it gives up.

        `each` is called with every part after it is scored.
        """

        def sums_of(part: Contingency) -> dict[str, float]:
            cell_sums = None if self._in_parts else CellSums(part, pool)
            sums = aggregation.item_sums(part, self._by_part, pool, cell_sums)
            if each is not None:
                each(part)
            return sums

        means = aggregation.item_means([sums_of(part) for part in parts])
        if parts.of_items:
            means |= aggregation.item_means(parts.of_items)
        if parts.whole is not None and self._of_all:
            means |= aggregation.item_means([aggregation.item_sums(parts.whole, self._of_all, pool)])
        sums: Sums = {} if parts.whole is None else CellSums(parts.whole, pool)
        metrics, not_computed = self.metrics, self.not_computed
        try:
            overall = aggregation.finished(metrics, means, self._request.beta, sums)
        except PairingError as error:
            hopeless: dict[str, str] = {m.name: error.message for m in metrics if m.pairs_clusters}
            if hopeless.keys() & self._request.named_metrics:
                raise
            metrics, not_computed = [m for m in metrics if not m.pairs_clusters], not_computed | hopeless
            overall = aggregation.finished(metrics, means, self._request.beta, sums)
        return Scored(overall, metrics, not_computed)
