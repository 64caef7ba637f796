"""Nesting depth of JSON, determined from its bytes before a parser sees them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fastbcubed.errors import FileFormatError

#: Maximum nesting depth that is read, the same as in Arrow's own files; much more exhausts the stack of its parser.
DEEPEST = 64
#: Advice on lines that are nested too deep.
LINES = "Each line should be an object of plain values: remove nested values, or write them as text."
#: Bytes examined at a time.
BLOCK = 1 << 20

_QUOTE, _NEWLINE, _RETURN = b'"\n\r'
_NO_MARKS = bytes(set(range(256)) - set(b'"[]{}\r\n'))
_STEPS = np.zeros(256, np.int8)
_STEPS[[*b"[{"]], _STEPS[[*b"]}"]] = 1, -1
#: Pairs of brackets removed first, and how often: those that enclose plain values, and then those that enclose these.
_PAIRS, _ROUNDS = (b"{}", b"[]"), 2


class Nesting:
    r"""Checks the nesting depth of JSON, block by block; too deep a line raises FileFormatError with this advice.

    Arrow parses blocks of lines in parallel, so each is checked by itself: a line end closes any open string, as JSON
    strings contain none, and surplus closing brackets do not offset later opening ones.

    Examples
    --------
    >>> nesting = Nesting("a.jsonl")
    >>> nesting.add(b'{"item": "[[[\\"", "tags"'), nesting.add(b': [1, [2]]}\n')
    (None, None)
    >>> nesting.add(b"[" * 65)
    Traceback (most recent call last):
    fastbcubed.errors.FileFormatError: a.jsonl has arrays or objects nested more than 64 levels deep, in line 2. ...
    """

    def __init__(self, path: str, advice: str = LINES) -> None:
        self._path, self._advice = path, advice
        self._depth, self._line, self._in_text, self._held = 0, 1, False, b""

    def add(self, block: bytes) -> None:
        """Check the next block of bytes."""
        # Idea: delete all bytes except quotes, brackets and line ends, at the speed of copying, and then adjacent
        # quotes, which do not change what is inside a string. Plain lines leave next to nothing for NumPy, which would
        # take a third of the parsing time for all brackets.
        block = self._held + block
        self._held = b""
        if b"\\" in block:
            block = block.replace(b"\\\\", b"")
            if block.endswith(b"\\"):
                self._held = b"\\"
            block = block.replace(b'\\"', b"")
        marks = (b'"' * self._in_text + block.translate(None, _NO_MARKS)).replace(b'""', b"")
        rest = marks
        for pair in _PAIRS * _ROUNDS:
            rest = rest.replace(pair, b"")
        if b'"' not in rest:
            rest = rest.translate(None, b"\r\n")
        most = self._depth + len(_PAIRS) * _ROUNDS + rest.count(b"[") + rest.count(b"{")
        shown = np.frombuffer(marks if most > DEEPEST else rest, np.uint8)
        depths, self._in_text = self._walk(shown)
        if (deep := np.flatnonzero(depths > DEEPEST)).size:
            line = self._line + np.count_nonzero(shown[: deep[0]] == _NEWLINE)
            raise FileFormatError(
                f"{self._path} has arrays or objects nested more than {DEEPEST} levels deep, in line {line:,}. "
                f"{self._advice}"
            )
        self._depth = int(depths[-1]) if depths.size else self._depth
        self._line += marks.count(b"\n")

    def _walk(self, marks: NDArray[np.uint8]) -> tuple[NDArray[np.int32], bool]:
        """Return the depth after each mark, at least 0, and whether the last mark is inside a string."""
        quotes = np.cumsum(marks == _QUOTE, dtype=np.int32)
        ends = (marks == _NEWLINE) | (marks == _RETURN)
        in_text = (quotes - np.maximum.accumulate(np.where(ends, quotes, 0))) & 1
        depths = self._depth + np.cumsum(_STEPS[marks] * (1 - in_text), dtype=np.int32)
        depths -= np.minimum(np.minimum.accumulate(depths), 0)
        return depths, bool(in_text[-1]) if marks.size else False
