"""Results as plain data: JSON, and versions short enough for a page."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from fastbcubed.runtime.arguments import whole_number

#: Maximum characters of a name.
LONGEST = 200
#: Maximum characters of a message, which may quote several names.
LONGEST_TEXT = 1200
#: Keys whose values are sentences.
SENTENCES = frozenset({"message", "text", "sentences", "facts"})
#: Maximum entries of a list or mapping in a manifest.
MOST_ENTRIES = 20


def cut(text: str, longest: int = LONGEST) -> str:
    """Return a text, shortened if necessary with the number of characters left out.

    Examples
    --------
    >>> cut("abc", 5), cut("a" * 12, 5)
    ('abc', 'aaaaa… (7 more characters)')
    """
    left = len(text) - longest
    return text if left <= 0 else f"{text[:longest]}… ({left:,} more character{'' if left == 1 else 's'})"


def shortened(value: Any, longest: int = LONGEST) -> Any:
    """Return content as plain values, with texts shortened to fit a page."""
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
    """Return a value with lists and mappings cut to `most` entries, followed by the number left out."""
    if isinstance(value, Mapping):
        kept = {key: few_entries(each, most) for key, each in list(value.items())[:most]}
        return kept if len(value) <= most else kept | {"…": f"{len(value) - most:,} more"}
    if isinstance(value, list | tuple):
        kept_list = [few_entries(each, most) for each in value[:most]]
        return kept_list if len(value) <= most else [*kept_list, f"… {len(value) - most:,} more"]
    return value


def halved(content: Any) -> Any:
    """Return a document (as plain data) with half of the rows of each listing, but at least one."""
    if isinstance(content, Mapping):
        return {
            key: each[: max(1, len(each) // 2)]
            if key in ("rows", "groups") and isinstance(each, list)
            else each
            for key, each in ((key, halved(each)) for key, each in content.items())
        }
    return [halved(each) for each in content] if isinstance(content, list) else content


def as_json(value: Any, indent: int | None = 2) -> str:
    """Return a value as JSON; NaN and infinities become null, keys and odd types strings."""
    if indent is not None:
        indent = whole_number(indent, "indent", "spaces", most=100)
    return json.dumps(plain(value), indent=indent, ensure_ascii=False, allow_nan=False)


def plain(value: Any) -> Any:
    """Return a value that JSON can represent: NaN and infinities become null, keys and other types strings."""
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)
