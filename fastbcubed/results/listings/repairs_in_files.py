"""The first repairs of a saved result, from its tables of clusters and the cells of those that may be among them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.cells.excerpts import CellExcerpt, Codes
from fastbcubed.cells.one_sided import OneSided
from fastbcubed.metrics.losses import LOSSES
from fastbcubed.results.evaluated import Evaluated
from fastbcubed.results.listings.passing_clusters import Costliest, MayGather
from fastbcubed.results.listings.repairs import Floats, Ranked, Repairs, Start, f_gain, first_repairs
from fastbcubed.results.listings.saved_clusters import ONLY_HERE, SavedClusters
from fastbcubed.sources.arrays import to_numpy

#: True clusters that may be among the first, beyond which all cells are read.
MOST = 1 << 20
Lost = tuple[float, float]


def rank_first_repairs(
    ev: Evaluated,
    clusters: SavedClusters,
    cells_of: Callable[[Codes], CellExcerpt],
    lost: Lost,
    kinds: Sequence[str],
    limit: int,
) -> Ranked | None:
    """Return the first repairs of some kinds, as `rank_repairs` does; None if too many clusters tie to be told apart.

    Splitting a predicted cluster brings what it loses of precision; of gathering a true one see `MayGather`: so the
    tables tell which clusters may be among the first. Weights have to count in the confusion matrices.
    """
    costliest = Costliest("precision_loss", limit, lossy=True)
    splits = clusters.passed("pred", costliest) if "split" in kinds else None
    gathers = _that_may_be_first(ev, clusters, lost, limit) if "gather" in kinds else None
    return rank_some(ev, clusters, cells_of, lost, splits, gathers, limit)


def rank_some(
    ev: Evaluated,
    clusters: SavedClusters,
    cells_of: Callable[[Codes], CellExcerpt],
    lost: Lost,
    splits: pa.Table | None,
    gathers: NDArray[np.int64] | None,
    limit: int,
) -> Ranked | None:
    """Return the first repairs among splits of listed clusters and gatherings of some; None if these are too many."""
    if gathers is not None and gathers.size > MOST:
        return None
    found, total = [Repairs.none()], ev.contingency.total_weight
    if splits is not None:
        found.append(_splits(splits, lost))
    if gathers is not None and gathers.size:
        found.append(_gathers(_Preds.of(clusters, cells_of({"true": gathers})), total, lost))
    every = Repairs(*map(np.concatenate, zip(*(vars(each).values() for each in found), strict=True)))
    every = every.take(np.flatnonzero(every.gain > 0))
    kinds = [kind for kind, there in (("split", splits), ("gather", gathers)) if there is not None]
    chosen = first_repairs(ev, kinds, every, limit)
    if not chosen.codes.size:
        return Ranked(chosen, np.empty((0, 2)))
    own = {"true": np.unique(chosen.codes[~chosen.splits]), "pred": np.unique(chosen.codes[chosen.splits])}
    table = cells_of(own)
    start = _Preds.of(clusters, table).start(total, lost)
    return Ranked(chosen, start.running(_in_excerpt(chosen, table)))


def _splits(table: pa.Table, lost: Lost) -> Repairs:
    """Return the splits of listed predicted clusters."""
    names = ("code", "n_items", "weight", "precision_loss")
    code, n, weight, gain = (to_numpy(table[name]) for name in names)
    none = np.zeros(gain.size)
    return Repairs(np.ones(gain.size, bool), code, n, weight, f_gain(lost, gain, none), gain, none)


def _that_may_be_first(ev: Evaluated, clusters: SavedClusters, lost: Lost, limit: int) -> NDArray[np.int64]:
    """Return the true clusters of which gathering may be among the first `limit` repairs."""
    found = MayGather(lost, limit)
    names = [*LOSSES, *(["cluster"] if ev.policies.may_leave_alone else [])]
    for first, table in clusters.files["true"].stretches(names):
        found.add(first, table)
    return found.codes


def _gathers(preds: _Preds, total: float, lost: Lost) -> Repairs:
    """Return the gatherings of all true clusters of some cells."""
    table, correct = preds.table, preds.correct(total)
    gains = np.zeros((table.n_codes["true"], 4))
    kernels.repairs.add_gains(table.cells, table.pred, False, correct, np.zeros_like(correct), gains)
    precision, recall = ((gains[:, ::2] + gains[:, 1::2]) / total).T
    return Repairs(
        np.zeros(recall.size, bool), table.in_whole["true"], table.true_n, table.true_weight,
        f_gain(lost, precision, recall), precision, recall,
    )  # fmt: skip


def _in_excerpt(repairs: Repairs, table: CellExcerpt) -> Repairs:
    """Return repairs with the codes that their clusters have in an excerpt."""
    own = np.where(
        repairs.splits,
        np.searchsorted(table.in_whole["pred"], repairs.codes),
        np.searchsorted(table.in_whole["true"], repairs.codes),
    )
    return replace(repairs, codes=own)


@dataclass(frozen=True, eq=False)
class _Preds:
    """What the table of predicted clusters tells of those that some cells are in; shapes are (n_pred,)."""

    table: CellExcerpt
    weight: Floats
    lost: Floats
    n_parts: NDArray[np.int64]
    strangers: OneSided | None  #: items that only the prediction has, if they count

    @classmethod
    def of(cls, clusters: SavedClusters, table: CellExcerpt) -> _Preds:
        """Look them up."""
        file = clusters.files["pred"]
        names = ["weight", "precision_loss", "n_parts"]
        has_strangers = table.outside and ONLY_HERE in file.column_names
        names += [ONLY_HERE, "weight_only_here"] if has_strangers else []
        weight, lost, n_parts, *own = map(to_numpy, file.take_columns(names, table.in_whole["pred"]).columns)
        return cls(table, weight, lost, n_parts, OneSided(np.arange(weight.size), *own) if own else None)

    def correct(self, total: float) -> Floats:
        """Return, for each predicted cluster, weight * tp of all of its cells, added up. Shape (n_pred, 2)."""
        whole = self.weight if self.strangers is None else self.weight + self.strangers.mass
        return _as_sums((self.weight - self.lost * total) * whole)

    def start(self, total: float, lost: Lost) -> Start:
        """Return what repairs start from whose clusters have these cells."""
        if self.strangers is not None:
            self.table.take_one_sided({"pred": self.strangers})
        none = np.zeros(self.weight.size), np.zeros((self.table.n_codes["true"], 2))
        sums = _as_sums(self.weight), self.correct(total)
        return Start(self.table, self.table.pred, self.n_parts.copy(), *sums, *none, lost)


def _as_sums(values: Floats) -> Floats:
    """Return sums as two numbers side by side: the sum, and what it lacks in digits."""
    return np.stack([values, np.zeros(values.size)], axis=1)
