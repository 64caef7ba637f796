"""Suggestions for mistyped names, and text with marks such as commas that can be escaped."""

from __future__ import annotations

import re
from collections.abc import Iterable


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
