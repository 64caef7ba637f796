"""Names of columns as they are typed: defaults that nobody named, and the arguments that a message proposes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fastbcubed.errors import arg

#: One column, or the columns of a composite id.
Names = str | Sequence[str]


class Unnamed(str):
    """A default name of a column, which is known not to have been named: a table may have better."""

    __slots__ = ()


class Typed:
    """Writes the columns of one side as arguments; those of the other sides stay as given.

    `others` have the other sides' columns by argument, in order; `side` is the place among them: of the truth 0, of
    the prediction 1, of the truth of a diff, which is read first, 2. Without them the arguments are of a single table.
    A prediction that is a `run` among several has its columns named for it alone.

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
        """Return arguments with these columns as values."""
        return " and ".join(f"{arg(name, self._value(name, own))}" for name, own in columns.items())

    def _value(self, argument: str, names: Names) -> Any:
        own = _column(names)
        found: list[Names | None] = [_column(other.get(argument, names)) for other in self._others]
        if self._run is not None:
            (truth,) = found
            return (None if isinstance(truth, Unnamed) else truth), {self._run: own}
        if self._side != 1:  # sides that are read later, and not named, stay so
            found = [None if isinstance(each, Unnamed) else each for each in found]
        found.insert(self._side, own)
        return own if all(each == own for each in found) else tuple(found)


def _column(names: Names) -> str | list[str]:
    return names if isinstance(names, str) else names[0] if len(names) == 1 else list(names)
