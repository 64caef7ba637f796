"""Column names as the caller types them: defaults that nobody typed, and the arguments that messages propose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fastbcubed.errors import arg

#: The name of a column, or a list of those of a composite id.
Names = str | Sequence[str]


class Unnamed(str):
    """A default column name that the caller did not type, so that another column may be preferred."""

    __slots__ = ()


class Typed:
    """Writes the columns of one side as arguments that leave the other sides' columns as given.

    `others` has the other sides' columns by argument, in order. `side` is the position among them: 0 for the truth, 1
    for the prediction, 2 for the truth of a diff, which is read first. Without `others`, the arguments are those of a
    single table. If the prediction is a `run` among several, its columns are named for that run only.

    Examples
    --------
    >>> from fastbcubed.errors import Message
    >>> Message(Typed()({"item": ["source", "id"], "cluster": ["c"]}))
    'item=["source", "id"] and cluster="c"'
    >>> Message(Typed(1, {"item": "item"})({"item": ["id"]}))
    'item=("item", "id")'
    >>> Message(Typed(1, {"cluster": Unnamed("cluster")}, run="new")({"cluster": ["entity"]}))
    'cluster=(None, {"new": "entity"})'
    """

    def __init__(self, side: int = 0, *others: Mapping[str, Names], run: str | None = None) -> None:
        self._side, self._others, self._run = side, others, run

    def __call__(self, columns: Mapping[str, Sequence[str]]) -> str:
        """Return, as text, the arguments with these columns as values."""
        return " and ".join(f"{arg(name, self._value(name, own))}" for name, own in columns.items())

    def _value(self, argument: str, names: Names) -> Any:
        own = _column(names)
        found: list[Names | None] = [_column(other.get(argument, names)) for other in self._others]
        if self._run is not None:
            (truth,) = found
            return (None if isinstance(truth, Unnamed) else truth), {self._run: own}
        if self._side != 1:  # sides that are read later keep their defaults
            found = [None if isinstance(each, Unnamed) else each for each in found]
        found.insert(self._side, own)
        return own if all(each == own for each in found) else tuple(found)


def _column(names: Names) -> str | list[str]:
    return names if isinstance(names, str) else names[0] if len(names) == 1 else list(names)
