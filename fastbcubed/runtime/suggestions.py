"""Suggestions for mistyped names, and strings with separators that can be escaped."""

from __future__ import annotations

import re
from collections.abc import Iterable


def most_similar(name: str, names: Iterable[str], n: int = 3) -> list[str]:
    """Return a few of `names` that are similar to a name, most similar first."""
    import difflib

    return difflib.get_close_matches(name, list(names), n)


def similar(name: str, names: Iterable[str]) -> str | None:
    """Return the most similar of `names`, ignoring case; None if none is similar.

    Examples
    --------
    >>> similar("contry", ["year", "country"]), similar("ID", ["id", "idx"]), similar("a", ["xyz"])
    ('country', 'id', None)
    """
    lower = {each.lower(): each for each in reversed(list(names))}
    found = most_similar(name.lower(), lower, 1)
    return lower[found[0]] if found else None


def did_you_mean(name: object, names: Iterable[str]) -> str:
    """Return a question, preceded by a space, to append to a message; empty if no name is similar."""
    found = similar(name, names) if isinstance(name, str) else None
    return "" if found is None else f" Did you mean {found!r}?"


def split(text: str, mark: str) -> list[str]:
    r"""Split a string at each separator that is not escaped by a backslash.

    Examples
    --------
    >>> split(r"a,b\,c,d", ",")
    ['a', 'b\\,c', 'd']
    """
    return [part.strip() for part in re.split(rf"(?<!\\){re.escape(mark)}", text)]


def plain(text: str) -> str:
    """Return a name without the backslashes that escape separators."""
    return re.sub(r"\\([,:+\\])", r"\1", text)
