"""A saved result too large to be read as a whole unasked: what is asked is read part by part, where that suffices."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from fastbcubed.cells.excerpts import Codes
from fastbcubed.cells.records import SIDES, side_of
from fastbcubed.results.evaluation import Evaluation
from fastbcubed.results.files.unread import InFiles, same
from fastbcubed.results.listings.concentration import ROWS, LossCurve
from fastbcubed.results.listings.known_clusters import KnownClusters
from fastbcubed.results.listings.listing import require_limit
from fastbcubed.results.listings.repairs import KINDS, Ranked, kinds_asked, listing_of
from fastbcubed.results.listings.repairs_in_files import rank_first_repairs
from fastbcubed.results.listings.saved_clusters import SavedClusters
from fastbcubed.results.listings.size_classes import SizeClasses
from fastbcubed.results.listings.table import Table
from fastbcubed.results.openings import OpenOne
from fastbcubed.results.text.cluster_view import Cluster
from fastbcubed.runtime.cached import cached_property

#: Cells of which all are read for the repairs of a page, where that is the only way to tell the first.
FEW_CELLS = 4_000_000


class LargeResult(InFiles, Evaluation):
    """An evaluation that was saved; what it says of all clusters is read from their tables, or from a digest of these.

    Attributes
    ----------
    whole : callable
        Reads all files, checks them, and returns the evaluation as it was.
    alone : float or None
        Recall if all items were alone, where it was saved.
    """

    in_files = True
    whole: Callable[[], Evaluation]
    alone: float | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return same, (self.whole(),)

    @property
    def _lister(self) -> SavedClusters:
        return self.saved_clusters

    def lorenz(self, side: str, *, limit: int | None = ROWS) -> Table:
        """Return how the loss is spread over clusters; see `Evaluation.lorenz`."""
        require_limit(limit)
        return Table(self.saved_clusters.curve(side_of(side), limit).table(limit))

    @cached_property
    def _loss_curves(self) -> dict[str, LossCurve]:
        """The loss of clusters, by side; what is asked of these are figures."""
        return {side: self.saved_clusters.curve(side) for side in SIDES}

    def size_classes(self, side: str) -> SizeClasses:
        """Return what the clusters of a side come to by size, in powers of two."""
        return self.saved_clusters.classes(side)

    def recall_alone(self) -> float | None:
        """Return the recall if all items were alone in the prediction; None if that was not saved."""
        by_weight = self.contingency.weighted and self.contingency.weighting != "outer"
        return self.alone if by_weight else super().recall_alone()

    @cached_property
    def _losses_of_all(self) -> dict[str, float]:
        return {side: curve.loss for side, curve in self._loss_curves.items()}

    def repairs(self, kinds: str | Iterable[str] = ("split", "gather"), *, limit: int | None = 200) -> Table:
        """Return which clusters to repair first; see `Evaluation.repairs`."""
        known = kinds_asked(kinds, limit)
        found = None if limit is None else self._first_repairs(known, limit)
        return super().repairs(known, limit=limit) if found is None else listing_of(self, known, found)

    def _first_repairs(self, kinds: list[str], limit: int) -> Ranked | None:
        """Return the first repairs from a digest or from some cells; None where that takes all cells."""
        digest, found = self.saved_clusters.digest, None
        if digest is not None and kinds == list(KINDS):
            found = digest.first_repairs(limit)
        if found is None and self.contingency.weighting != "outer":
            lost = self.loss_of_all("pred"), self.loss_of_all("true")
            found = rank_first_repairs(self, self.saved_clusters, self.cell_excerpt, lost, kinds, limit)
        return found

    def repairs_at_hand(self, limit: int) -> Table | None:
        """Return the first repairs; None where that takes all of many cells."""
        if self.contingency.n_cells <= FEW_CELLS:
            return self.repairs(limit=limit)
        found = self._first_repairs(list(KINDS), limit)
        return None if found is None else listing_of(self, list(KINDS), found)

    def opener(self, codes: Codes, columns: Sequence[str], members: int) -> OpenOne:
        """Return what opens some clusters; see `Openings.opener`."""
        digest = self.saved_clusters.digest
        found = {} if digest is None else digest.some_opened(codes, members)
        known = KnownClusters(self, found, members)
        rest = {side: np.setdiff1d(own, list(found.get(side, ()))) for side, own in codes.items()}
        others = super().opener(rest, columns, members)

        def open_one(side: str, code: int, label: Any) -> Cluster:
            if code in found.get(side, ()):
                return known.cluster(side, code, label, columns)
            return others(side, code, label)

        return open_one

    def save(self, directory: Any, *, keep: str = "items", repairs: int = 0) -> None:
        """Write the evaluation; see `Evaluation.save`."""
        self.whole().save(directory, keep=keep, repairs=repairs)
