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


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Return a question to end a message with, after a space; empty if no name is similar."""
    found = similar(name, names)
    return "" if found is None else f" Did you mean {found!r}?"


class Typed:
    """Writes the columns of one side as arguments; those of the other side stay as given.

    `others` has the other side's columns by argument, and `side` is 0 for the truth and 1 for the prediction.
    Without them the arguments describe a single table.

    Examples
    --------
    >>> from fastbcubed.errors import Message
    >>> Message(Typed()({"item": ["source", "id"], "cluster": ["c"]}))
    'item=["source", "id"] and cluster="c"'
    >>> Message(Typed(1, {"item": "item"})({"item": ["id"]}))
    'item=("item", "id")'
    """

    def __init__(self, side: int = 0, others: Mapping[str, Names] | None = None) -> None:
        self._side, self._others = side, others or {}

    def __call__(self, columns: Mapping[str, Sequence[str]]) -> str:
        """Return arguments with these columns as values."""
        return " and ".join(f"{arg(name, self._value(name, own))}" for name, own in columns.items())

    def _value(self, argument: str, names: Names) -> Any:
        own, other = _column(names), _column(self._others.get(argument, names))
        if own == other:
            return own
        return (own, other) if self._side == 0 else (other, own)


def _column(names: Names) -> str | list[str]:
    listed = [names] if isinstance(names, str) else list(names)
    return listed[0] if len(listed) == 1 else listed


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
