"""Labels that are empty, look like missing values, or have surrounding white space."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from fastbcubed.inputs import arrow_compute as pc
from fastbcubed.inputs.arrays import from_numpy, is_view, wide_type
from fastbcubed.inputs.id_columns import Column
from fastbcubed.inputs.keys import offsets_and_bytes

#: Strings that stand for a missing value, in lower case.
MISSING = {"", "-", "?", "n/a", "#n/a", "na", "nan", "nat", "nil", "none", "null", "<na>", "(null)"}
#: Maximum number of odd labels kept per side, more than a message could name.
MOST = 4096

#: Tables of whether a string may stand for a missing value, by size and first byte, and of whether a byte at either end
#: may be white space: that of ASCII, and both bytes of a no-break space in UTF-8, which few letters share.
_MAY_BE_MISSING = np.zeros((1 + max(map(len, MISSING)), 256), np.bool_)
for _text in MISSING - {""}:
    _MAY_BE_MISSING[len(_text), [ord(_text[0]), ord(_text[0].upper())]] = True
_MAY_BE_SPACE = np.zeros(256, np.bool_)
_MAY_BE_SPACE[[*b" \t\n\r\x0b\x0c\x1c\x1d\x1e\x1f\xc2\xa0"]] = True


def is_missing(text: str) -> bool:
    """Return whether a string stands for a missing value, ignoring case and surrounding white space."""
    return text.strip().lower() in MISSING


def odd_texts(labels: Column) -> dict[str, int]:
    """Return the number of rows of each label that stands for a missing value or has surrounding white space.

    Examples
    --------
    >>> odd_texts(Column("cluster", [pa.chunked_array([["a", "", "NA", " a", None, "NA", "none of it"]])]))
    {'': 1, 'NA': 2, ' a': 1}
    """
    found: dict[str, int] = {}
    if labels.kind != "string":
        return found
    for chunk in labels.plain[0].chunks:
        coded = pa.types.is_dictionary(chunk.type)
        values = chunk.dictionary if coded else chunk
        values = values.cast(wide_type(values.type)) if is_view(values.type) else values
        rows = _likely(values)
        if not rows.size:
            continue
        if coded:
            likely = pc.is_in(chunk.indices, value_set=from_numpy(rows).cast(chunk.type.index_type))
            few = chunk.filter(likely).dictionary_decode()
        else:
            few = values.take(from_numpy(rows))
        for each in few.drop_null().value_counts().to_pylist():
            text = each["values"]
            if is_missing(text) or text != text.strip():
                found[text] = found.get(text, 0) + each["counts"]
    return found


def odd_and_alike(labels: Column) -> dict[str, int]:
    """Return the row counts of odd labels, and of labels that differ from one of them only in whitespace."""
    odd = odd_texts(labels)
    alike = [text for text in dict.fromkeys(map(str.strip, odd)) if text not in odd]
    return odd | {text: n for text in alike[:MOST] if (n := labels.find(text).size)}


def _likely(texts: pa.Array) -> np.ndarray:
    """Return the rows of strings that may be odd, by their size and their first and last bytes."""
    # Converting all strings to lower case and comparing them would take longer than hashing them.
    if not len(texts):
        return np.empty(0, np.int64)
    offsets, data = offsets_and_bytes(texts)
    sizes = np.diff(offsets)
    if not data.size:
        return np.flatnonzero(sizes == 0)
    first, last = data[np.minimum(offsets[:-1], data.size - 1)], data[np.maximum(offsets[1:] - 1, 0)]
    short = np.minimum(sizes, _MAY_BE_MISSING.shape[0] - 1)
    missing = _MAY_BE_MISSING[short, first] & (short == sizes)
    return np.flatnonzero((sizes == 0) | missing | _MAY_BE_SPACE[first] | _MAY_BE_SPACE[last])


class OddLabels:
    """The odd labels of a side and their numbers of rows, collected from blocks on any thread."""

    def __init__(self) -> None:
        self._of_blocks: list[dict[str, int]] = []

    def add(self, labels: Column) -> None:
        """Add the labels of a block."""
        if found := odd_texts(labels):
            self._of_blocks.append(found)

    def rows(self) -> dict[str, int]:
        """Return the number of rows of each of the first odd labels."""
        found: dict[str, int] = {}
        for own in self._of_blocks:
            for text, n in own.items():
                if text in found or len(found) < MOST:
                    found[text] = found.get(text, 0) + n
        return found
