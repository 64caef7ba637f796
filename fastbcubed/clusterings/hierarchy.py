"""Hierarchies of clusters: an item of a cluster is in all its ancestors, too."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed.clusterings.memberships import Memberships
from fastbcubed.errors import ColumnError, NullError, OptionError, first_few
from fastbcubed.runtime.pool import Pool
from fastbcubed.sources.arrays import join_pieces
from fastbcubed.sources.columns import Column
from fastbcubed.sources.keys import comparable_keys

RowNumbers = NDArray[np.int64]


def lift(labels: Column, items: RowNumbers, child: Column, parent: Column) -> tuple[RowNumbers, Column]:
    """Return the memberships in ancestors that are not there yet.

    `items` is the key of the item of each row; each cluster of `child` is within that of `parent`. Return a
    row of the item of each new membership, and its cluster. Raise OptionError if a cluster is within itself,
    ColumnError or NullError if these are no links. A row without label has no ancestors.
    Shapes: `items` (n_rows,), `rows` (n_new,).
    """
    from fastbcubed.runtime.grouping import number

    _check(child, parent)
    if (nulls := parent.null_rows) is not None:  # roots
        kept = np.flatnonzero(~nulls)
        child, parent = (
            Column(column.names, column.rows_of(kept), column.where) for column in (child, parent)
        )
    with Pool() as pool:
        columns = [labels, child, parent]
        keys = np.concatenate(comparable_keys(columns, pool))
        codes, firsts = number(keys, pool)
        values = _end_to_end(columns)
        cuts = np.cumsum([len(column) for column in columns])[:-1]
        own, low, high = np.split(codes, cuts)
        steps = Memberships.from_rows(low, high, firsts.size, firsts.size).without_repeats()
        above = _ancestors(steps)
        circular = np.flatnonzero(above.rows() == above.codes)
        if circular.size:
            names = values.take(firsts[above.codes[circular[:4]]]).to_pylist()
            raise OptionError(
                f"{circular.size} clusters are each its own ancestor ({first_few(names)}); a hierarchy has no cycle"
            )
        labelled = np.arange(len(labels)) if labels.null_rows is None else np.flatnonzero(~labels.null_rows)
        taken = above.take(own[labelled])
        rows = np.repeat(labelled, taken.counts)
        who, n = number(items, pool).codes, firsts.size
        pairs = who[rows] * n + taken.codes
        _, first = np.unique(pairs, return_index=True)
        new = np.sort(first[~np.isin(pairs[first], (who * n + own)[labelled])])
        found = pa.chunked_array([values.take(firsts[taken.codes[new]])])
    return rows[new], Column(labels.name, [found], labels.where)


def _check(child: Column, parent: Column) -> None:
    """Raise if these are not a cluster for each, and one or none that it is within."""
    if len(child) != len(parent):
        raise ColumnError(
            f"each link has a child and a parent, but there are {len(child)} children and {len(parent)} parents"
        )
    if child.null_rows is not None:
        rows = np.flatnonzero(child.null_rows)
        raise NullError(
            f"{rows.size} of {len(child)} children are null (first rows: {first_few(rows[:4].tolist())}); a null "
            "parent says that a cluster is within no other, but a null child says nothing"
        )


def _ancestors(steps: Memberships) -> Memberships:
    """Return all that can be reached from each cluster by one step or more."""
    n = len(steps)
    known = steps
    while True:  # each round doubles the length of the ways that are known
        further = known.take(known.codes)
        starts = np.concatenate([known.rows(), np.repeat(known.rows(), further.counts)])
        ends = np.concatenate([known.codes, further.codes]).astype(np.int64)
        longer = Memberships.from_rows(starts, ends, n, n).without_repeats()
        if longer.codes.size == known.codes.size:
            return known
        known = longer


def _end_to_end(columns: list[Column]) -> Column:
    """Return the values of several columns in one."""
    return Column(columns[0].name, [join_pieces([column.parts[0] for column in columns], "the hierarchy")])
