"""Scores over all items from cells that come in parts: one part in memory, one for each shard on disk."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

import numpy as np

from fastbcubed.alignment.policies import Coverage
from fastbcubed.cells.contingency import Contingency
from fastbcubed.engines.request import Request, Scored
from fastbcubed.engines.room import scores_of_whole_covers, scores_without_room
from fastbcubed.errors import OptionError, PairingError
from fastbcubed.metrics import aggregation, groups
from fastbcubed.metrics.leaving_out import LeavingOut
from fastbcubed.metrics.metric import Metric
from fastbcubed.results.listings.summary import Bounds, bound_sums, bounds_from
from fastbcubed.runtime.pool import Pool


class Parts(Protocol):
    """Parts of the cells, which know their mates in all parts."""

    def __iter__(self) -> Iterator[Contingency]: ...

    @property
    def whole(self) -> Contingency | None:
        """All cells, once the last part has come; None if they were not kept."""

    @property
    def of_items(self) -> Sequence[Mapping[str, float]]:
        """What blocks of items add to sums, for `Scorer.own`, once the last part has come."""


class OnePart:
    """All cells in one part."""

    of_items = ()

    def __init__(self, whole: Contingency) -> None:
        self.whole = whole

    def __iter__(self) -> Iterator[Contingency]:
        yield self.whole


class BoundedParts:
    """Parts whose bounds of the precision are added up on their way to the scorer."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._sums, self._weight = np.zeros(3), 0.0

    def __iter__(self) -> Iterator[Contingency]:
        for part in self._parts:
            yield part
            self._sums += bound_sums(part)
            self._weight += float(part.weight.sum(dtype=np.float64))

    @property
    def whole(self) -> Contingency | None:
        """All cells, once the last part has come; None if they were not kept."""
        return self._parts.whole

    @property
    def of_items(self) -> Sequence[Mapping[str, float]]:
        """What blocks of items add to sums, for `Scorer.own`, once the last part has come."""
        return self._parts.of_items

    def bounds(self) -> Bounds:
        """Return the bounds, when all parts have passed."""
        return bounds_from(self._sums, self._weight)


class Scorer:
    """Scores the cells of a request: those of items by part, others from all cells once the last part has come."""

    def __init__(self, request: Request, *, weighted: bool, n_rows: int | None = None) -> None:
        """Choose the scores; `n_rows` is given where the cells come in parts, as there is a limit then."""
        self._request, self._in_parts = request, n_rows is not None
        in_parts = self._in_parts
        self.metrics, self.not_computed = request.resolve(weighted=weighted)
        if n_rows is not None and request.given.overlapping:
            self._leave_out(scores_of_whole_covers(self.metrics))
        elif n_rows is not None:
            self._leave_out(scores_without_room(self.metrics, n_rows, request.limit))
        needed = aggregation.with_needs(self.metrics, request.beta)
        lifted = [m for m in needed if m.formula is not None]
        by_weight = in_parts and weighted and not (request.outer or request.given.overlapping)
        plain = [m for m in lifted if not (m.uses_tn or m.matrix or m.mean)]
        self._of_items = [m for m in plain if by_weight and m.leave_one_out]
        self._of_all = [m for m in lifted if in_parts and m.uses_tn]
        self._by_part = [m for m in lifted if m not in self._of_items and m not in self._of_all]
        self.needs_all = any(m.score is not None or m.uses_tn for m in needed)
        self.takes_items = any(m.leave_one_out for m in needed)  #: of several weights, beside their cells
        self.rows_need_negatives = any(m.uses_tn for m in groups.grouped(needed))
        filed = request.keep == "items" and request.out is not None and not request.outside
        pairs = filed or any(m.family == "pairs" for m in needed)  # files have them for later
        #: scores that take items with their own weights, which parts of the cells do not have; may be none, for pairs
        self.own = LeavingOut(self._of_items) if self._of_items or (by_weight and pairs) else None

    def _leave_out(self, reasons: dict[str, str]) -> None:
        """List scores as not computed, or raise if one of them was named."""
        for name in sorted(self._request.named_metrics & reasons.keys()):
            raise OptionError(f"cannot compute {name}: {reasons[name]}")
        self.metrics = [m for m in self.metrics if m.name not in reasons]
        self.not_computed |= reasons

    def score_with_bounds(self, parts: Parts, coverage: Coverage, pool: Pool) -> tuple[Scored, Bounds | None]:
        """Score the parts; return bounds of the precision, too, where items of the prediction alone are dropped."""
        if self._request.policies.prediction != "drop" or not coverage.n_prediction_only:
            return self.score(parts, pool), None
        bounded = BoundedParts(parts)
        return self.score(bounded, pool), bounded.bounds()

    def score(self, parts: Parts, pool: Pool) -> Scored:
        """Score the parts, and then all cells; where a search for a pairing gives up, a family does without it."""
        sums = [aggregation.item_sums(part, self._by_part, pool, whole=not self._in_parts) for part in parts]
        means = aggregation.item_means(sums) | aggregation.item_means(parts.of_items)
        if parts.whole is not None:
            means |= aggregation.item_means([aggregation.item_sums(parts.whole, self._of_all, pool)])
        try:
            return self._finished(self.metrics, {}, means, parts.whole, pool)
        except PairingError as error:
            hopeless = {m.name: str(error) for m in self.metrics if m.pairs_clusters}
            if hopeless.keys() & self._request.named_metrics:
                raise
            rest = [m for m in self.metrics if not m.pairs_clusters]
            return self._finished(rest, hopeless, means, parts.whole, pool)

    def _finished(
        self,
        metrics: list[Metric],
        hopeless: dict[str, str],
        means: dict[str, float],
        cells: Contingency | None,
        pool: Pool,
    ) -> Scored:
        overall = aggregation.finished(metrics, means, self._request.beta, cells, pool)
        return Scored(overall, metrics, self.not_computed | hopeless)
