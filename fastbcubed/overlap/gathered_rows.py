"""Rows of memberships in a shard, brought together by item: the disk engine's gathering, shard by shard."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fastbcubed.alignment.item_shards import ItemRows
from fastbcubed.alignment.row_aligner import GatheredSide
from fastbcubed.alignment.side import Side
from fastbcubed.overlap.gathering import gather_sets
from fastbcubed.runtime.pool import Pool


def gather_rows(side: Side, items: ItemRows, pool: Pool) -> GatheredSide:
    """Return the items of the rows of a side, and the clusters of each.

    `side` has a row per membership, `items` the key of the item of each; what may not be is reported.
    """
    found, rows = gather_sets(side, items.keys, pool)
    firsts = found.firsts
    keys = items.keys[firsts]
    alone = np.zeros(rows.size, np.bool_) if side.alone is None else side.alone[rows]
    lacking = found.codes < 0
    by_item = Side(
        side.name,
        found.codes,
        replace(side.policies, noise=None, duplicates="raise"),
        absent=lacking if lacking.any() else None,
        weight=None if side.weight is None else side.weight[firsts],
        items=ItemRows(keys, np.searchsorted(firsts, items.bounds)),
        report=side.report,
        n_duplicates=found.n_repeated,
    )
    cluster_keys = np.where(alone, items.keys[rows], side.labels[rows])
    return GatheredSide(by_item, keys, firsts, found.sets, cluster_keys, alone)
