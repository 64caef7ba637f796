"""Composite ids in two columns → the parts of both in one order: by their names where both have the same ones."""

from __future__ import annotations

from typing import TypeVar

from fastbcubed.errors import AlignmentError, first_few
from fastbcubed.sources.columns import Column, Order, unnamed

T = TypeVar("T")


def joined_in_order(ids: Column | None, joined: tuple[Column, T] | None) -> tuple[Column, T] | None:
    """Return what is joined by item with the parts of its ids in the order of those of the truth."""
    return joined if ids is None or joined is None else (in_order_of(ids, joined[0]), joined[1])


def in_order_of(ids: Column, column: Column, *, strict: bool = True) -> Column:
    """Return a column with its parts in the order of those of `ids`.

    They go by name where both have the same names, else by position, as do columns that were listed for each side. If
    `strict`, names that differ raise AlignmentError, unless those of both are columns that were listed.

    Examples
    --------
    >>> import pyarrow as pa
    >>> parts = [pa.chunked_array([["a"]]), pa.chunked_array([[1]])]
    >>> ids, column = Column(["source", "id"], parts), Column(["id", "source"], parts[::-1])
    >>> in_order_of(ids, column).names
    ('source', 'id')
    """
    names, own, orders = ids.names, column.names, {ids.order, column.order}
    if names == own or not len(names) == len(own) > 1 or orders == {Order.PAIRED}:
        return column
    if set(names) == set(own) and len(set(own)) == len(own):
        return column.reordered([own.index(name) for name in names])
    if strict and Order.OWN in orders and _differ(names, own):
        raise AlignmentError(
            f"The parts of ids have other names in {ids.where} ({first_few(names, 9)}) than in {column.where} "
            f"({first_few(own, 9)}), so it cannot be told which part is which. Give both the same names, in any order "
            f"(levels of a pandas index with .rename_axis({list(names)!r})); parts without names go by position."
        )
    return column


def _differ(names: tuple[str, ...], own: tuple[str, ...]) -> bool:
    """Tell whether names contradict that parts go by position: two differ, or one is elsewhere."""
    placed = enumerate(zip(names, own, strict=True))
    other = any(
        first != second and unnamed("item", k) not in (first, second) for k, (first, second) in placed
    )
    return other or any(name in own and own.index(name) != k for k, name in enumerate(names))
