"""How deep JSON is nested, found in its bytes before a parser sees them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fastbcubed.errors import FileFormatError

#: Arrays and objects within each other that are read, as many as Arrow's own files may have; more exhaust its stack.
DEEPEST = 64
#: Bytes examined at once.
BLOCK = 1 << 20

_QUOTE, _NEWLINE, _RETURN = b'"\n\r'
_NO_MARKS = bytes(set(range(256)) - set(b'"[]{}\r\n'))
_STEPS = np.zeros(256, np.int8)
_STEPS[[*b"[{"]], _STEPS[[*b"]}"]] = 1, -1
#: Pairs that are left out first, and how often: plain objects and arrays, and what has only these.
_PAIRS, _ROUNDS = (b"{}", b"[]"), 2


class Nesting:
    r"""The depth of JSON lines that come in blocks; the first that is too deep raises FileFormatError.

    Arrow parses blocks of lines one beside the other, so a line end ends a text, as no JSON text has one, and a
    bracket too many cannot make up for those that follow.

    Examples
    --------
    >>> nesting = Nesting("a.jsonl")
    >>> nesting.add(b'{"item": "[[[\\"", "tags"'), nesting.add(b': [1, [2]]}\n')
    (None, None)
    >>> nesting.add(b"[" * 65)
    Traceback (most recent call last):
    fastbcubed.errors.FileFormatError: a.jsonl has arrays or objects nested more than 64 levels deep, in line 2. ...
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._depth, self._line, self._in_text, self._held = 0, 1, False, b""

    def add(self, block: bytes) -> None:
        """Examine the next block."""
        # Idea: all but quotes, brackets and line ends is deleted, at the speed of copying; after that two quotes side
        # by side leave everything else on the side of a text that it was on, so they go, too. Of plain lines hardly
        # anything is left for NumPy, which takes a third of the time of parsing if it gets all brackets.
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
                f"{self._path} has arrays or objects nested more than {DEEPEST} levels deep, in line "
                f"{line:,}. Each line should be an object of plain values: remove nested values, or write "
                "them as text."
            )
        self._depth = int(depths[-1]) if depths.size else self._depth
        self._line += marks.count(b"\n")

    def _walk(self, marks: NDArray[np.uint8]) -> tuple[NDArray[np.int32], bool]:
        """Return the depth after each mark, never below 0, and whether the last is in a text."""
        quotes = np.cumsum(marks == _QUOTE, dtype=np.int32)
        ends = (marks == _NEWLINE) | (marks == _RETURN)
        in_text = (quotes - np.maximum.accumulate(np.where(ends, quotes, 0))) & 1
        depths = self._depth + np.cumsum(_STEPS[marks] * (1 - in_text), dtype=np.int32)
        depths -= np.minimum(np.minimum.accumulate(depths), 0)
        return depths, bool(in_text[-1]) if marks.size else False
