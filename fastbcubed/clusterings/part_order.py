"""Two sides whose ids have several parts → both with the parts in one order."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

from fastbcubed.clusterings.labelled_rows import LabelledRows
from fastbcubed.sources.columns import Order
from fastbcubed.sources.part_names import in_order_of

Side = TypeVar("Side", bound=LabelledRows)


def order_of(item: Any) -> Order:
    """Return the order of the parts of ids in tables, from the argument that names their columns."""
    return Order.PAIRED if isinstance(item, tuple) else Order.LISTED


def in_order(side: Side, order: Order) -> Side:
    """Return a side that was read from a table, in which parts are in this order."""
    if side.items is not None and side.items.order is Order.LISTED:
        side.items.order = order
    return side


def in_one_order(truth: LabelledRows, prediction: Side) -> Side:
    """Return the prediction with the parts of its ids in the order of the truth's."""
    if truth.items is None or prediction.items is None:
        return prediction
    strict = truth.links is None and prediction.links is None  # these have names for the ends of a link
    moved = in_order_of(truth.items, prediction.items, strict=strict)
    return prediction if moved is prediction.items else replace(prediction, items=moved)
