"""Labels that are blank, read as missing values, or have white space around them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from fastbcubed.inputs import arrow_compute as pc
from fastbcubed.inputs.arrays import from_numpy, is_view, wide_type
from fastbcubed.inputs.id_columns import Column
from fastbcubed.inputs.keys import offsets_and_bytes

#: Texts that stand for a missing value, in lower case.
MISSING = {"", "-", "?", "n/a", "#n/a", "na", "nan", "nat", "nil", "none", "null", "<na>", "(null)"}
#: Such texts that are kept of a side; more are nothing that a message could name.
MOST = 4096

#: Whether a text of a size may be one of these, by its first byte; and whether a byte at either end may be white space:
#: that of ASCII, and the two bytes of a no-break space in UTF-8, which few letters share.
_MAY_BE_MISSING = np.zeros((1 + max(map(len, MISSING)), 256), np.bool_)
for _text in MISSING - {""}:
    _MAY_BE_MISSING[len(_text), [ord(_text[0]), ord(_text[0].upper())]] = True
_MAY_BE_SPACE = np.zeros(256, np.bool_)
_MAY_BE_SPACE[[*b" \t\n\r\x0b\x0c\x1c\x1d\x1e\x1f\xc2\xa0"]] = True


def is_missing(text: str) -> bool:
    """Return whether a text stands for a missing value, whatever its case and the white space around it."""
    return text.strip().lower() in MISSING


def odd_texts(labels: Column) -> dict[str, int]:
    """Return the texts of labels that stand for a missing value or have white space around them, and their rows.

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
    """Return odd texts, and others that differ from them by white space alone, with their rows."""
    odd = odd_texts(labels)
    alike = [text for text in dict.fromkeys(map(str.strip, odd)) if text not in odd]
    return odd | {text: n for text in alike[:MOST] if (n := labels.find(text).size)}


def _likely(texts: pa.Array) -> np.ndarray:
    """Return the rows of texts that may be odd, by their size and the bytes at their ends: few of usual labels."""
    # Changing the case of all texts, and comparing them, would take longer than hashing them does.
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
    """The odd texts among the labels of a side, and their rows, gathered while blocks are read, from any thread."""

    def __init__(self) -> None:
        self._of_blocks: list[dict[str, int]] = []

    def add(self, labels: Column) -> None:
        """Add the labels of a block."""
        if found := odd_texts(labels):
            self._of_blocks.append(found)

    def rows(self) -> dict[str, int]:
        """Return the first of these texts, and the number of rows of each."""
        found: dict[str, int] = {}
        for own in self._of_blocks:
            for text, n in own.items():
                if text in found or len(found) < MOST:
                    found[text] = found.get(text, 0) + n
        return found
