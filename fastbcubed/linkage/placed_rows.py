"""Aligned rows and the merge tree of their items → the rows that count, in the order of the tree."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.alignment.align import Alignment
from fastbcubed.errors import EmptyInputError
from fastbcubed.linkage.merge_tree import Codes, MergeTree
from fastbcubed.linkage.tree_rows import TreeRows
from fastbcubed.runtime.grouping import number
from fastbcubed.runtime.pool import Pool


class PlacedRows(NamedTuple):
    """The rows that count, in the order of the tree; those whose items have no place in it stand last."""

    rows: TreeRows
    aligned: Codes  #: the aligned row of each
    places: Codes  #: where in the tree the level after each stands; -1 after one that is not in it


def place_rows(tree: MergeTree, alignment: Alignment, pool: Pool, *, outside: bool) -> PlacedRows:
    """Put the rows that count in the order of the tree; the prediction's rows are its items.

    These are the rows that policies leave on both sides; if `outside`, also those that only the prediction has, which
    are in no true cluster. Items that do not count connect others all the same.
    """
    counted, is_outside = _counted(alignment, outside=outside)
    items = alignment.pred_rows
    whole = items is None or (items.size == tree.n_items and bool((items >= 0).all()))
    if whole and counted is None:
        order = tree.order if items is None else _inverse(items, tree)[tree.order]
        places = np.arange(len(alignment), dtype=order.dtype)
        return _placed(alignment, order, tree.levels, places, tree.n_levels, is_outside, pool, tree.merges)
    rows = np.arange(len(alignment)) if counted is None else np.flatnonzero(counted)
    if not rows.size:
        raise EmptyInputError("there is no item to score: no item is on both sides")
    items = rows if items is None else items[rows]
    row_of_item = np.full(tree.n_items, -1, tree.order.dtype)
    row_of_item[items[items >= 0]] = rows[items >= 0]
    order, levels, places = (np.empty(rows.size, tree.order.dtype) for _ in range(3))
    kept = kernels.merge_tree.keep_some(tree.order, tree.levels, row_of_item, order, levels, places)
    order[kept:], levels[kept:], places[kept:] = rows[items < 0], tree.n_levels, -1
    levels[kept - 1 : kept] = tree.n_levels
    return _placed(alignment, order, levels, places, tree.n_levels, is_outside, pool)


def _counted(alignment: Alignment, *, outside: bool) -> tuple[NDArray[np.bool_] | None, bool]:
    """Return the rows that count, None for all, and whether some of them are in no true cluster."""
    lacking = [
        None if absent is None else keys == absent
        for keys, absent in (
            (alignment.true_keys, alignment.absent_true),
            (alignment.pred_keys, alignment.absent_pred),
        )
    ]
    lacks_true, lacks_pred = lacking
    if outside:
        return None if lacks_pred is None else ~lacks_pred, lacks_true is not None
    if lacks_true is None or lacks_pred is None:
        lacks = lacks_pred if lacks_true is None else lacks_true
        return None if lacks is None else ~lacks, False
    return ~(lacks_true | lacks_pred), False


def _inverse(items: Codes, tree: MergeTree) -> Codes:
    """Return the row of each item, where every item has one."""
    rows = np.empty(tree.n_items, tree.order.dtype)
    rows[items] = np.arange(items.size)
    return rows


def _placed(
    alignment: Alignment,
    order: Codes,
    levels: Codes,
    places: Codes,
    n_levels: int,
    is_outside: bool,
    pool: Pool,
    merges: Codes | None = None,
) -> PlacedRows:
    """Return rows in this order; what is near in it gets codes of true clusters that are near."""
    keys = alignment.true_keys[order]
    codes: Codes = number(keys, pool).codes.astype(levels.dtype)
    if is_outside:
        codes[keys == alignment.absent_true] = -1
    weights = None if alignment.weight is None else alignment.weight[order]
    rows = TreeRows(levels, codes, n_levels, weights, codes >= 0 if is_outside else None, merges)
    if not rows.n_scored:
        raise EmptyInputError("there is no item to score: no item is on both sides")
    return PlacedRows(rows, order, places)
