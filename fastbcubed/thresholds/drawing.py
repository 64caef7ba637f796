"""The curve as text, a letter for each score, thresholds from left to right; and the axis on which scores differ."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

#: What a place shows that several scores have.
SEVERAL = "*"
#: An axis shows where a score has up to so many times its least loss, and this loss at least.
TIMES, LEAST_LOSS = 2.0, 0.02
#: Parts of an axis between two labels.
PARTS = 5

Values = NDArray[np.float64]


def axis_of(curves: Mapping[str, Values], leading: str, marked: Sequence[float] = ()) -> tuple[float, float]:
    """Return the ends of an axis on which scores from 0 to 1 differ near the best value of the leading one.

    They are round, and `marked` are values that are between them, too. All values are, where those near the best one
    are alike.

    >>> axis_of({"p": np.array([0.99, 0.98, 0.2]), "f": np.array([0.91, 0.97, 0.33])}, "f")
    (0.95, 1.0)
    >>> axis_of({"p": np.array([0.6, 0.2]), "f": np.array([0.4, 0.3])}, "f", [0.05])
    (0.0, 1.0)
    >>> axis_of({"p": np.array([1.0, 1.0, 0.8]), "f": np.array([0.7, 1.0, 0.9])}, "f")
    (0.5, 1.0)
    """
    every = np.stack([*curves.values()])
    loss = 1.0 - curves[leading]
    shown = every[:, loss <= max(TIMES * np.nanmin(loss, initial=1.0), LEAST_LOSS)]
    if not (shown < np.nanmax(shown, initial=0.0)).any():
        shown = every
    low = float(np.nanmin([*shown.ravel(), *marked], initial=1.0 - LEAST_LOSS))
    step = 10.0 ** math.floor(math.log10((1.0 - low) / PARTS))
    step *= next(n for n in (1, 2, 3, 4, 5, 10) if n * step * PARTS >= 1.0 - low - 1e-9)
    return max(0.0, round(1.0 - PARTS * step, 9)), 1.0


def draw(
    curves: Mapping[str, Values],
    ends: Sequence[str],
    marked: int | None,
    *,
    height: int = 2 * PARTS + 1,
    axis: tuple[float, float] = (0.0, 1.0),
) -> list[str]:
    """Return the lines of a chart of scores, one letter for each, whose names are letters.

    Each column of it is a value of every curve; `ends` stand below the first and the last, and `marked` is a column
    to point at. Values that are not on the axis are left out.

    >>> for line in draw({"P": np.array([1.0, 0.9, 0.2]), "R": np.array([0.0, 0.9, 1.0])}, ("1", "0"), 1, height=3):
    ...     print(line)
    1.0 |P*R
    0.5 |
    0.0 |R P
         ---
          ^
        1   0
    """
    width, (low, high) = next(iter(curves.values())).size, axis
    grid = np.full((height, width), " ")
    for letter, values in curves.items():
        for column, value in enumerate(values):
            row = (high - value) / (high - low) * (height - 1)
            if -0.5 <= row <= height - 0.5:  # not if it is NaN
                at = round(min(max(row, 0.0), height - 1)), column
                grid[at] = letter if grid[at] == " " else SEVERAL
    levels = {
        k: high - (high - low) * k / (height - 1) for k in range(0, height, 2 if height >= PARTS else 1)
    }
    decimals = next((n for n in range(1, 9) if all(abs(round(v, n) - v) < 1e-9 for v in levels.values())), 9)
    margin = decimals + 2
    lines = []
    for row, line in enumerate(grid):
        named = f"{levels[row]:.{decimals}f}" if row in levels else ""
        lines.append(f"{named:{margin}} |{''.join(line)}".rstrip())
    lines.append(" " * (margin + 2) + "-" * width)
    if marked is not None:
        lines.append(" " * (margin + 2 + marked) + "^")
    between = max(1, width + 2 - len(ends[0]) - len(ends[1]))
    lines.append(" " * (margin + 1) + ends[0] + " " * between + ends[1])
    return lines
