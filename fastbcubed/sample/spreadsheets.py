"""Strings that a spreadsheet would take for formulas: how they are escaped, and read back."""

from __future__ import annotations

import re

import pyarrow as pa

from fastbcubed.inputs import arrow_compute as pc

#: First characters of strings that spreadsheets take for formulas.
FORMULA = "[=+@＝＋－＠\t\r\n-]"


def no_formulas(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return strings for a spreadsheet, with an apostrophe before those that it would take for formulas."""
    if not (pa.types.is_string(values.type) or pa.types.is_large_string(values.type)):
        return values
    return pc.replace_substring_regex(values, f"\\A('*{FORMULA})", r"'\1")


def as_it_was(text: str) -> str:
    """Return the original of a string that `no_formulas` escaped.

    Examples
    --------
    >>> as_it_was("'=A1"), as_it_was("''-5"), as_it_was("'n Sync"), as_it_was("+49")
    ('=A1', "'-5", "'n Sync", '+49')
    """
    return text[1:] if re.match(f"'+{FORMULA}", text) else text
