"""Charging: which part of what all items lose each cluster is charged, where clusters overlap."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fastbcubed.cells.contingency import Contingency
from fastbcubed.cells.records import SIDES, add_up
from fastbcubed.overlap.covers import Cover
from fastbcubed.runtime.pool import Pool

Floats = NDArray[np.float64]


def charged(cover: Cover, side: str) -> Floats:
    """Return what is lost through each cluster, of precision for predicted ones, of recall for true ones.

    What a pair of items loses is split equally among the clusters of the side that the two share. Over all clusters
    this adds up to what all items lose. The definition is ours.
    """
    return cover.once(_charges, Pool(1))[side]


def split_equally(cover: Cover, side: str, lost: Floats) -> Floats:
    """Return what each cluster is charged if what an item loses is split equally among its clusters of a side.

    Shapes: `lost` (n_cells,), times the weight of the items of each cell; the result (n_clusters,).
    """
    members = cover.members(side)
    cells = members.rows()
    return _by_cluster(cover, side, lost[cells] / members.counts[cells])


def _charges(cover: Contingency, pool: Pool) -> dict[str, Floats]:
    """Return the losses of all clusters by side, as `charged` does; the pool is that of the cover."""
    assert isinstance(cover, Cover)
    n = cover.n_cells
    truth, prediction = cover.members("true"), cover.members("pred")
    lost = cover.sides.charges(n)
    hit_pred, miss_pred, hit_true, miss_true = cover.sums(np.ascontiguousarray(cover.tp))
    mates = {"true": hit_true + miss_true, "pred": hit_pred + miss_pred}
    is_true = np.repeat(
        np.tile([True, False], n), np.column_stack([truth.counts, prediction.counts]).reshape(-1)
    )
    found = {}
    for side, own in zip(SIDES, (lost[is_true], lost[~is_true]), strict=True):
        cells = cover.members(side).rows()
        share = cover.weight[cells] / cover.total_weight / mates[side][cells]
        found[side] = _by_cluster(cover, side, own * share)
    return found


def _by_cluster(cover: Cover, side: str, values: Floats) -> Floats:
    """Add up what each cell says of each of its clusters."""
    codes, n_clusters, _ = cover.memberships(side)
    return np.add(*add_up(codes, n_clusters, values, np.ones(values.size)))
