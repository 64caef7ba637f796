"""Verdicts on pairs of items, in one vocabulary for links, judged pairs and labelled pairs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from fastbcubed.errors import ColumnError, Either, JudgementError, arg, first_few
from fastbcubed.inputs.arrays import combined, plain, plain_type, to_numpy
from fastbcubed.runtime.suggestions import did_you_mean
from fastbcubed.types import Int64s

SAME, DIFFERENT, UNSURE = VERDICTS = ("same", "different", "unsure")

#: Synonyms of the verdicts, as tools and spreadsheets write them, in lower case.
SYNONYMS = {
    SAME: ("yes", "y", "true", "t", "match", "matched", "duplicate", "1", "1.0"),
    DIFFERENT: (
        "no", "n", "false", "f", "distinct", "nonmatch", "non-match", "non_match", "no match", "not a match",
        "no_match", "unmatched", "non-duplicate", "0", "0.0",
    ),
    UNSURE: ("maybe", "uncertain", "unknown", "not sure", "undecided"),
}  # fmt: skip
MEANT = {word: verdict for verdict, words in SYNONYMS.items() for word in (verdict, *words)}
#: Words that count as verdicts only in a column that is named accordingly.
DIGITS = {"0", "1", "0.0", "1.0"}
#: Names of columns of verdicts, in lower case. The last one is Zingg's, where 2 means "not sure".
NAMES = (
    "verdict", "is_match", "match", "is_duplicate", "duplicate", "predicted", "label", "clerical_match_score", "gold",
    "gold_label", "is_same", "same", "true_match", "ground_truth", "z_ismatch",
)  # fmt: skip
OF_ZINGG = {"2": UNSURE, "2.0": UNSURE}

#: Verdicts as numbers in arrays.
CODES = {SAME: 1, DIFFERENT: 0, UNSURE: -1}
#: The number for a row without a verdict.
UNJUDGED = -2
#: Number of rows in which verdicts are looked for in columns that are not named accordingly.
LOOKED_AT = 1 << 14


def word_of(value: Any) -> str | None:
    """Return a value as text without surrounding space, for comparison with verdicts; None if it is missing or empty.

    >>> word_of(" Yes "), word_of(True), word_of(float("nan")), word_of("")
    ('Yes', 'True', None, None)
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    return str(value).strip() or None


def refuse_strange(strange: Iterable[str], n: int, n_rows: int, where: str) -> None:
    """Raise JudgementError for texts that are not verdicts, in `n` of `n_rows` rows."""
    listed = list(strange)
    raise JudgementError(
        f"a verdict must be {', '.join(map(repr, VERDICTS))}, yes, no, 1, 0 or empty, but {n} of {n_rows} in "
        f"{where} are not (first: {first_few(listed)}).{did_you_mean(listed[0], VERDICTS)}"
    )


def as_verdicts(values: Any, name: str, where: str) -> Int64s:
    """Return verdicts as numbers: 1 same, 0 different, -1 unsure, -2 none. Shape: (n_rows,)."""
    texts, codes = _encoded(values)
    known = {**MEANT, **OF_ZINGG} if name.lower() == NAMES[-1] else MEANT
    strange = [word for word in texts if word is not None and word.lower() not in known]
    if strange:
        wrong = [k for k, word in enumerate(texts) if word in strange]
        refuse_strange(strange, int(np.isin(codes, wrong).sum()), codes.size, f"column {name!r} of {where}")
    table = [UNJUDGED if word is None else CODES[known[word.lower()]] for word in texts]
    return np.array([*table, UNJUDGED], np.int64)[codes]


def are_verdicts(name: str, values: Any) -> bool:
    """Return whether a column holds verdicts: booleans, words for verdicts, or 0 and 1 if its name says so."""
    kind = plain_type(values.type)
    if pa.types.is_boolean(kind):
        return True
    named = name.lower() in NAMES
    if not (
        named or pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    ):
        return False
    words = {word.lower() for word in _encoded(values.slice(0, LOOKED_AT))[0] if word is not None}
    if named:
        known = MEANT.keys() | OF_ZINGG.keys() if name.lower() == NAMES[-1] else MEANT.keys()
        return bool(words) and words <= known
    said = {MEANT.get(word) for word in words}
    return bool(words - DIGITS) and None not in said and said != {UNSURE}


def refuse_verdicts(found: Mapping[str, Any], where: str) -> None:
    """Raise ColumnError if columns that were not named hold verdicts on links."""
    names = [name for name, values in found.items() if are_verdicts(name, values)]
    if not names:
        return
    names.sort(key=lambda name: name.lower() != "predicted")  # columns of the tool before those of its input
    values = found[names[0]].slice(0, LOOKED_AT)
    first = [word for word in _encoded(values)[0] if word is not None]
    columns = f"Column {names[0]!r} of {where} has" if len(names) == 1 else f"Columns {names} of {where} have"
    raise ColumnError(
        f"{columns} verdicts on pairs (such as {first_few(first)}), so not every row is a link. Pass "
        f"{arg('verdict', *names)}: matches are joined, other pairs kept apart. If all rows are links, pass "
        f"{Either('verdict=False', '--no-verdict')}."
    )


def _encoded(values: Any) -> tuple[list[str | None], Int64s]:
    """Return the distinct values as text, and for each row the position of its value, -1 for null."""
    data = plain(values) if isinstance(values, pa.ChunkedArray) else pa.chunked_array([values])
    whole = combined(data)
    whole = whole if pa.types.is_dictionary(whole.type) else whole.dictionary_encode()
    codes = whole.indices.fill_null(-1) if whole.indices.null_count else whole.indices
    return [word_of(value) for value in whole.dictionary.to_pylist()], to_numpy(codes).astype(np.int64)


class Apart:
    """Pairs judged not to match, as codes of their items; they do not connect."""

    def __init__(self, left: Any, right: Any, n_unsure: int) -> None:
        self.left, self.right, self.n_unsure = left, right, n_unsure

    def __len__(self) -> int:
        return int(self.left.size)
