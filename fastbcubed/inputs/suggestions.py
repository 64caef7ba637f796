"""Suggestions for mistyped names, and text with marks such as commas that can be escaped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fastbcubed.errors import arg

#: One column, or the columns of a composite id.
Names = str | Sequence[str]


def most_similar(name: str, names: Iterable[str], n: int = 3) -> list[str]:
    """Return a few names similar to one, most similar first; empty if there are none."""
    import difflib

    return difflib.get_close_matches(name, list(names), n)


def similar(name: str, names: Iterable[str]) -> str | None:
    """Return the most similar name, ignoring case; None if there is none.

    Examples
    --------
    >>> similar("contry", ["year", "country"]), similar("ID", ["id", "idx"]), similar("a", ["xyz"])
    ('country', 'id', None)
    """
    lower = {each.lower(): each for each in reversed(list(names))}
    found = most_similar(name.lower(), lower, 1)
    return lower[found[0]] if found else None


def did_you_mean(name: object, names: Iterable[str]) -> str:
    """Return a question to end a message with, after a space; empty if it is no name, or none is similar."""
    found = similar(name, names) if isinstance(name, str) else None
    return "" if found is None else f" Did you mean {found!r}?"


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
    if isinstance(names, str):
        return names
    return names[0] if len(names) == 1 else list(names)


def split(text: str, mark: str) -> list[str]:
    r"""Split at a mark, unless it is escaped by a backslash.

    Examples
    --------
    >>> split(r"a,b\,c,d", ",")
    ['a', 'b\\,c', 'd']
    """
    return [part.strip() for part in re.split(rf"(?<!\\){re.escape(mark)}", text)]


def plain(text: str) -> str:
    """Return a name without the backslashes before its marks."""
    return re.sub(r"\\([,:+\\])", r"\1", text)
