"""Different spellings of the same ids on two sides, and the changes that would make them equal."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from fastbcubed.inputs import arrow_compute as pc
from fastbcubed.inputs.arrays import to_numpy

#: Separators between the parts of an id.
SEPARATOR = "\x1f"
Change = Callable[[pa.ChunkedArray], pa.ChunkedArray]


def _replaced(pattern: str, by: str = "") -> Change:
    return lambda texts: pc.replace_substring_regex(texts, pattern, by)


#: Differences between spellings, as errors describe them, and the changes that remove them. Changes are tried one by
#: one, in pairs, and all together.
WAYS: dict[str, Change] = {
    "without surrounding spaces": lambda texts: pc.utf8_trim_whitespace(texts),
    "in lower case": lambda texts: pc.utf8_lower(texts),
    "in one Unicode normal form (NFC)": lambda texts: pc.utf8_normalize(texts, "NFC"),
    "without the .0 of whole numbers": _replaced(rf"(^|{SEPARATOR})(-?\d+)\.0+($|{SEPARATOR})", r"\1\2\3"),
    "without everything up to the last : / _ # or -": _replaced(
        rf"[^{SEPARATOR}]*[:/#_-]([^:/#_{SEPARATOR}-])", r"\1"
    ),
    "without leading zeros": _replaced(rf"(^|{SEPARATOR})0+(\w)", r"\1\2"),
}


def way_alike(first: pa.ChunkedArray, second: pa.ChunkedArray) -> tuple[str, int] | None:
    """Return the first change that makes texts of both sides equal, and the row of a text; None if no change does.

    Examples
    --------
    >>> way_alike(pa.chunked_array([["007"]]), pa.chunked_array([["7"]]))
    ('without leading zeros', 0)
    >>> way_alike(pa.chunked_array([["x", "crm:1"]]), pa.chunked_array([["1"]]))
    ('without everything up to the last : / _ # or -', 1)
    """
    names = list(WAYS)
    pairs = [(j, k) for k in range(len(names)) for j in range(k)]
    for some in (*((k,) for k in range(len(names))), *pairs, tuple(range(len(names)))):
        changed = [first, second]
        for k in some:
            changed = [WAYS[names[k]](texts) for texts in changed]
        rows = np.flatnonzero(to_numpy(pc.is_in(changed[0], value_set=pc.unique(changed[1]))))
        if rows.size:
            return ", ".join(names[k] for k in reversed(some)), int(rows[0])
    return None
