"""The columns that arguments name for the sides of an evaluation, and the requests by which the sides are read."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from fastbcubed.errors import OptionError, arg, quoted
from fastbcubed.inputs.id_columns import Order
from fastbcubed.inputs.tables import DEFAULTS, ColumnName
from fastbcubed.inputs.typed_columns import Typed
from fastbcubed.runtime.arguments import is_one_of

#: Default names of the sides in messages.
NAMES = ("the truth", "the prediction")
#: A column name for both sides, or a pair of them for truth and prediction.
PerSide = ColumnName | tuple[ColumnName | None, ColumnName | None]


def per_side(names: PerSide, argument: str) -> tuple[ColumnName, ColumnName]:
    """Return the column's name in the truth and in the prediction, from an argument; None means the default."""
    if not isinstance(names, tuple):
        return names, names
    if len(names) != 2:
        raise OptionError(
            f"{argument} must be a name, a list of names (a composite id), or a tuple with one of "
            f"these for each side, not a tuple of {len(names)}."
        )
    truth, prediction = (DEFAULTS[argument] if own is None else own for own in names)
    return truth, prediction


def order_of(item: Any) -> Order:
    """Return how the order of the parts of ids is determined, from the argument that names their columns."""
    return Order.PAIRED if isinstance(item, tuple) else Order.LISTED


def named_alone(named: Mapping[str, Any], own: Mapping[str, ColumnName]) -> dict[str, ColumnName]:
    """Return those of a side's `own` columns that arguments named for it alone, in tuples with a name for each side."""
    return {
        part: own[part]
        for part, names in named.items()
        if isinstance(names, tuple) and not is_one_of(own[part], (DEFAULTS[part],))
    }


class SideRequest(NamedTuple):
    """How to read one side: its name in messages, the columns of its table, and how to write these as arguments."""

    name: str
    columns: dict[str, ColumnName]
    typed: Typed
    order: Order = Order.LISTED
    #: the columns that were named for this side alone, by argument
    own: Mapping[str, ColumnName] = MappingProxyType({})

    def refuse_columns(self) -> None:
        """Raise OptionError if columns were named for this side, which has none."""
        for argument, column in self.own.items():
            raise OptionError(
                f"{arg(argument)} names a column of {self.name}, {quoted(column)}, but {self.name} is not a table. "
                f"Name columns of the other side only, or pass {self.name} as a table."
            )


def side_requests(
    item: PerSide,
    cluster: PerSide,
    names: tuple[str, str] = NAMES,
    run: str | None = None,
    *,
    joins: bool = False,
) -> tuple[SideRequest, SideRequest]:
    """Return how to read the truth and the prediction.

    If a table of weights or attributes `joins` by item, the truth's item column also names a column of that table.
    """
    named = {"item": item, "cluster": cluster}
    truth, prediction = ({part: per_side(own, part)[k] for part, own in named.items()} for k in (0, 1))
    of_truth, of_prediction = named_alone(named, truth), named_alone(named, prediction)
    if joins:
        of_truth.pop("item", None)
    order = order_of(item)
    return (
        SideRequest(names[0], truth, Typed(0, prediction), order, of_truth),
        SideRequest(names[1], prediction, Typed(1, truth, run=run), order, of_prediction),
    )
