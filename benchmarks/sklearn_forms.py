"""The work with scikit-learn, which counts cells but does not support weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.forms import Form, Limits, means
from benchmarks.shapes import Rows

__all__ = ["FORMS"]

UNWEIGHTED = "without weights, which it does not support"


def numpy_labels(rows: Rows, limits: Limits) -> tuple[Any, Any]:
    """Return the labels as NumPy arrays; strings become bytes of fixed length, which sort fastest."""
    return numpy_column(rows.labels_true), numpy_column(rows.labels_pred)


def numpy_column(labels: Any) -> Any:
    """Return labels as a NumPy array without Python objects."""
    if not isinstance(labels, pa.Array):
        return labels
    length = int(pc.max(pc.binary_length(labels)).as_py())
    fixed = labels.cast(pa.binary()).cast(pa.binary(length))
    return np.frombuffer(fixed.buffers()[1], f"S{length}", len(fixed), fixed.offset * length)


def sklearn_contingency(labels: tuple[Any, Any]) -> dict[str, float]:
    """Count cells with `contingency_matrix`, and compute the scores from its sparse form."""
    from sklearn.metrics.cluster import contingency_matrix

    counts = contingency_matrix(*labels, sparse=True).tocsr()
    w = counts.data.astype(np.float64)
    a = np.asarray(counts.sum(axis=1)).ravel()
    b = np.asarray(counts.sum(axis=0)).ravel()
    return means(w, np.repeat(a, np.diff(counts.indptr)), b[counts.indices])


def sklearn_factorized(labels: tuple[Any, Any]) -> dict[str, float]:
    """Compute the scores like `sklearn_contingency`, but factorize labels with pandas first."""
    import pandas as pd

    return sklearn_contingency((pd.factorize(labels[0])[0], pd.factorize(labels[1])[0]))


FORMS: tuple[Form, ...] = (
    Form(
        "scikit-learn",
        "contingency",
        ("sklearn.metrics.cluster",),
        numpy_labels,
        sklearn_contingency,
        weighted=False,
        note=UNWEIGHTED,
    ),
    Form(
        "scikit-learn",
        "factorized",
        ("sklearn.metrics.cluster", "pandas"),
        numpy_labels,
        sklearn_factorized,
        weighted=False,
        note=UNWEIGHTED,
    ),
)
