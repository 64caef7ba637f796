"""Listings: worst first, then by weight, then by id, so that every engine gives the same order."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed.errors import MetricError, OptionError
from fastbcubed.metrics.losses import LOSSES
from fastbcubed.metrics.metric import Metric
from fastbcubed.results.listings.table import Table
from fastbcubed.runtime.choices import is_one_of
from fastbcubed.runtime.counts import whole_number
from fastbcubed.sources import arrow_functions as pc
from fastbcubed.sources.arrays import from_numpy, storage_of, to_numpy

#: What listings are ordered by to have first what costs most of either: the sum of both losses.
LOSS = "loss"
#: Rows beyond those wanted that are rather left out than sorted.
MANY = 1 << 16


def listed(
    table: pa.Table | Table,
    metrics: Iterable[Metric],
    order_by: str | None,
    limit: int | None,
    *,
    named_by: tuple[str, str, Callable[[NDArray[np.int64]], pa.Array]] | None = None,
) -> Table:
    """Return the rows of a table in order, the first `limit` of them."""
    return Table(_in_order(table, metrics, order_by, limit, named_by))


def _in_order(
    table: pa.Table | Table,
    metrics: Iterable[Metric],
    order_by: str | None,
    limit: int | None,
    named_by: tuple[str, str, Callable[[NDArray[np.int64]], pa.Array]] | None,
) -> pa.Table:
    table = table.to_arrow() if isinstance(table, Table) else table
    require_limit(limit)
    n = table.num_rows if limit is None else min(limit, table.num_rows)
    if order_by is None:
        return _with_names(table.slice(0, n), named_by)
    known = [name for name in table.column_names if named_by is None or name != named_by[0]]
    require_known(order_by, known)
    rank = rank_of(table, order_by, metrics)
    lightest_last = -to_numpy(table["weight"])
    rows = first_rows(rank, lightest_last, n)
    found = _with_names(table.take(from_numpy(rows)), named_by)
    keys = {"rank": from_numpy(rank[rows]), "weight": from_numpy(lightest_last[rows])}
    if named_by is not None:
        keys |= sortable(found[named_by[1]])
    return found.take(_order(keys, n))


def _order(keys: dict[str, pa.ChunkedArray], n: int) -> pa.Array:
    """Return the first n rows in ascending order of some keys, and then of their own."""
    if len(keys["rank"]) <= n + MANY:
        return pc.sort_indices(pa.table(keys), sort_keys=[(name, "ascending") for name in keys])[:n]
    keys = {**keys, "row": from_numpy(np.arange(len(keys["rank"])))}
    return pc.select_k_unstable(pa.table(keys), n, [(name, "ascending") for name in keys])


def require_limit(limit: int | None) -> None:
    """Raise if this is no number of rows."""
    if limit is not None:
        whole_number(limit, "limit", "rows")


def require_known(order_by: str, known: Collection[str]) -> None:
    """Raise if there is no such column to order by; where there are losses, there is their sum."""
    known = [*known, LOSS] if set(LOSSES) <= set(known) else list(known)
    if not is_one_of(order_by, known):
        raise MetricError(
            f"cannot order by {order_by!r}; there are {', '.join(known)}. Name a score in "
            "metrics= to have it in the tables"
        )


def contenders(table: pa.Table, metrics: Iterable[Metric], order_by: str, limit: int) -> pa.Table:
    """Return the rows that `listed` may list: the first `limit`, and all that tie with the last of them.

    Parameters are those of `listed`.
    """
    rank = rank_of(table, order_by, metrics)
    rows = first_rows(rank, -to_numpy(table["weight"]), min(limit, table.num_rows))
    return table.take(from_numpy(np.sort(rows)))


def rank_of(table: pa.Table, name: str, metrics: Iterable[Metric]) -> NDArray[np.float64]:
    """Return numbers that ascend from worst to best, NaN last."""
    higher_is_better = {m.name: m.best == "higher" for m in metrics}
    higher_is_better |= {m.item_name: m.best == "higher" for m in metrics if m.item_name}
    column = pc.add(*(table[loss] for loss in LOSSES)) if name == LOSS else table[name]
    try:
        rank = to_numpy(column.cast(pa.float64()))
    except pa.ArrowInvalid:
        raise OptionError(f"cannot order by {name!r}, which is not a number") from None
    rank = rank if higher_is_better.get(name, False) else -rank
    return np.where(np.isnan(rank), np.inf, rank)


def first_rows(rank: NDArray[np.float64], second: NDArray[np.float64], n: int) -> NDArray[np.int64]:
    """Return rows that are sure to hold the first n, by rank and then `second`: few where n is small."""
    if n in (0, rank.size):
        return np.arange(rank.size if n else 0)
    last = np.partition(rank, n - 1)[n - 1]
    before, ties = np.flatnonzero(rank < last), np.flatnonzero(rank == last)
    wanted = n - before.size
    if wanted < ties.size:
        among = second[ties]
        ties = ties[among <= np.partition(among, wanted - 1)[wanted - 1]]
    return np.concatenate([before, ties])


def _with_names(
    table: pa.Table, named_by: tuple[str, str, Callable[[NDArray[np.int64]], pa.Array]] | None
) -> pa.Table:
    if named_by is None:
        return table
    numbers, name, values = named_by
    at = table.column_names.index(numbers)
    return table.add_column(at, name, values(to_numpy(table[numbers])))


def sortable(column: pa.ChunkedArray) -> dict[str, pa.ChunkedArray]:
    """Return plain columns that sort as this one: parts of a struct, values of a dictionary."""
    if pa.types.is_struct(column.type):
        parts = [sortable(part) for part in column.flatten()]
        return {f"{k} {name}": part for k, each in enumerate(parts) for name, part in each.items()}
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return {"id": storage_of(column)}
