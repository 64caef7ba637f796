"""Content made fit for a page: plain values, long names cut, and less of all lists until the page is small enough."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

from fastbcubed.results.listings.summary import plain

#: Characters of a name that are kept.
LONGEST = 200
#: Characters of a message, which may quote several names.
LONGEST_TEXT = 1200
#: Keys of texts that are sentences.
SENTENCES = frozenset({"message", "command", "text", "sentences", "lines"})
#: Entries of a list or mapping of a manifest.
MOST_ENTRIES = 20


def cut(text: str, longest: int = LONGEST) -> str:
    """Return a text, or its beginning and how much is left out.

    Examples
    --------
    >>> cut("abc", 5), cut("a" * 12, 5)
    ('abc', 'aaaaa… (7 more characters)')
    """
    left = len(text) - longest
    return text if left <= 0 else f"{text[:longest]}… ({left:,} more character{'' if left == 1 else 's'})"


def shortened(value: Any, longest: int = LONGEST) -> Any:
    """Return content as plain values whose texts are not longer than a page has room for."""
    if isinstance(value, Mapping):
        return {
            cut(str(key)): shortened(each, LONGEST_TEXT if key in SENTENCES else longest)
            for key, each in value.items()
        }
    if isinstance(value, list | tuple):
        return [shortened(each, longest) for each in value]
    if isinstance(value, bytes):
        value = value.hex()
    if isinstance(value, datetime.date | datetime.time | datetime.timedelta):
        value = str(value)
    value = plain(value)
    return cut(value, longest) if isinstance(value, str) else value


def few_entries(value: Any, most: int = MOST_ENTRIES) -> Any:
    """Return a value without the entries of its lists and mappings beyond a number, which is said in their place."""
    if isinstance(value, Mapping):
        kept = {key: few_entries(each, most) for key, each in list(value.items())[:most]}
        return kept if len(value) <= most else kept | {"…": f"{len(value) - most:,} more"}
    if isinstance(value, list | tuple):
        kept_list = [few_entries(each, most) for each in value[:most]]
        return kept_list if len(value) <= most else [*kept_list, f"… {len(value) - most:,} more"]
    return value


def halved(content: Any) -> Any:
    """Return content with half as many rows of every listing, at least one; how many there are stays as it was."""
    if isinstance(content, Mapping):
        return {
            key: each[: max(1, len(each) // 2)]
            if key in ("rows", "members", "parts", "sentences", "lines") and isinstance(each, list)
            else each
            for key, each in ((key, halved(each)) for key, each in content.items())
        }
    return [halved(each) for each in content] if isinstance(content, list) else content
