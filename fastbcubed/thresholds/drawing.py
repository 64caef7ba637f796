"""The curve as text: a letter for each score, thresholds from left to right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

#: What a place shows that several scores have.
SEVERAL = "*"


def draw(
    curves: Mapping[str, NDArray[np.float64]], ends: Sequence[str], marked: int | None, *, height: int = 11
) -> list[str]:
    """Return the lines of a chart of scores from 0 to 1, one letter for each, whose names are letters.

    Each column of it is a value of every curve; `ends` stand below the first and the last, and `marked` is a column
    to point at.

    >>> for line in draw({"P": np.array([1.0, 0.9, 0.2]), "R": np.array([0.0, 0.9, 1.0])}, ("1", "0"), 1, height=3):
    ...     print(line)
    1.0 |P*R
    0.5 |
    0.0 |R P
         ---
          ^
        1   0
    """
    width = next(iter(curves.values())).size
    grid = np.full((height, width), " ")
    for letter, values in curves.items():
        for column, value in enumerate(values):
            if np.isnan(value):
                continue
            row = round((1.0 - min(1.0, max(0.0, float(value)))) * (height - 1))
            grid[row, column] = letter if grid[row, column] == " " else SEVERAL
    lines = []
    for row, line in enumerate(grid):
        share = 1.0 - row / (height - 1)
        named = f"{share:.1f} " if row % 2 == 0 or height < 5 else "    "
        lines.append(f"{named}|{''.join(line)}".rstrip())
    lines.append("     " + "-" * width)
    if marked is not None:
        lines.append("     " + " " * marked + "^")
    between = max(1, width + 2 - len(ends[0]) - len(ends[1]))
    lines.append("    " + ends[0] + " " * between + ends[1])
    return lines
