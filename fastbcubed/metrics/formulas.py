"""Formulas of scores, called on the confusion matrices of many items or cells at once."""

from __future__ import annotations

import numpy as np

from fastbcubed.cells.confusion import Confusion
from fastbcubed.errors import MetricError
from fastbcubed.metrics.metric import Floats, Metric

#: The name of the sum of weights among sums of scores.
WEIGHT = ""


def apply_formula(metric: Metric, matrix: Confusion) -> Floats:
    """Call the formula of a score, which gives one float per matrix and leaves the matrix as it is."""
    assert metric.formula is not None
    for part in matrix:
        if part is not None:
            part.flags.writeable = False
    try:
        scores = np.asarray(metric.formula(*matrix))  # type: ignore[arg-type]
    except MetricError:
        raise
    except Exception as error:
        raise MetricError(f"the formula {metric.name} failed: {type(error).__name__}: {error}") from error
    if scores.dtype.kind not in "biuf" or scores.shape not in (matrix.tp.shape, ()):
        raise MetricError(
            f"the formula {metric.name} gave {scores.dtype} of shape {scores.shape} for matrices of shape "
            f"{matrix.tp.shape}; a formula (tp, fp, fn, tn) gives one real number for each"
        )
    if not scores.ndim:
        return np.full(matrix.tp.shape, float(scores))
    return np.asarray(scores, np.float64)
