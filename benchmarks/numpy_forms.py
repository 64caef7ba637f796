"""The work with NumPy alone, in two lines, if labels are small numbers and the table of all pairs of labels fits."""

from __future__ import annotations

import numpy as np

from benchmarks.forms import Form, Limits, NotPossible, means
from benchmarks.shapes import Rows

__all__ = ["FORMS"]

#: The most pairs of labels for which the table is tried.
MOST_PAIRS = 10**8


def small_numbers(rows: Rows, limits: Limits) -> Rows:
    """Return the rows unchanged; raise if labels are not numbers from 0 up, or too large."""
    if not isinstance(rows.labels_true, np.ndarray):
        raise NotPossible("labels have to be numbers")
    if rows.labels_true.min() < 0 or rows.labels_pred.min() < 0:
        raise NotPossible("labels have to be numbers from 0 up")
    if (int(rows.labels_true.max()) + 1) * (int(rows.labels_pred.max()) + 1) > MOST_PAIRS:
        raise NotPossible(f"a table of all pairs of labels would have more than {MOST_PAIRS:,} entries")
    return rows


def bincount(rows: Rows) -> dict[str, float]:
    """Sum the weights of each pair of labels with `bincount`, and compute the scores from this table."""
    k = int(rows.labels_pred.max()) + 1
    table = np.bincount(rows.labels_true * k + rows.labels_pred, rows.weights)
    table = np.resize(np.append(table, np.zeros(-table.size % k)), (-(-table.size // k), k))
    true, pred = np.nonzero(table)
    return means(table[true, pred], table.sum(axis=1)[true], table.sum(axis=0)[pred])


def unweighted(rows: Rows) -> dict[str, float]:
    """Compute the scores without weights from `bincount`."""
    return bincount(rows._replace(weights=None))  # type: ignore[arg-type]


FORMS: tuple[Form, ...] = (
    Form("numpy", "bincount", ("numpy",), small_numbers, bincount, unweighted, note="labels from 0 up"),
)
