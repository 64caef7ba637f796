"""Text in which marks such as commas mean something, unless a backslash is before them."""

from __future__ import annotations

import re


def split(text: str, mark: str) -> list[str]:
    r"""Split at a mark, unless a backslash is before it.

    Examples
    --------
    >>> split(r"a,b\,c,d", ",")
    ['a', 'b\\,c', 'd']
    """
    return [part.strip() for part in re.split(rf"(?<!\\){re.escape(mark)}", text)]


def plain(text: str) -> str:
    """Return a name without the backslashes before its marks."""
    return re.sub(r"\\([,:+\\])", r"\1", text)
