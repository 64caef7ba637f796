"""The work with pandas."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.forms import Form, Limits, means
from benchmarks.shapes import Rows

__all__ = ["FORMS"]


def pandas_frame(rows: Rows, limits: Limits) -> Any:
    """Return a pandas data frame, whose strings are in Arrow memory, the default of pandas."""
    import pandas as pd

    labels_true, labels_pred, weights = rows
    if isinstance(labels_true, pa.Array):
        dtype = pd.StringDtype("pyarrow", na_value=np.nan)
        labels_true = pd.array(labels_true, dtype=dtype)
        labels_pred = pd.array(labels_pred, dtype=dtype)
    return pd.DataFrame({"t": labels_true, "p": labels_pred, "w": weights}, copy=False)


def pandas_factorize(frame: Any) -> dict[str, float]:
    """Factorize both labels, and the pairs of their codes; sum with `numpy.bincount`."""
    import pandas as pd

    true_codes, _ = pd.factorize(frame["t"])
    pred_codes, pred_labels = pd.factorize(frame["p"])
    width = len(pred_labels)
    del pred_labels
    cell_codes, cell_keys = pd.factorize(true_codes * width + pred_codes)
    w = np.bincount(cell_codes, frame["w"])
    a = np.bincount(true_codes, frame["w"])
    b = np.bincount(pred_codes, frame["w"])
    del cell_codes, true_codes, pred_codes
    return means(w, a[cell_keys // width], b[cell_keys % width])


def pandas_codes_groupby(frame: Any) -> dict[str, float]:
    """Factorize both labels, group by the pairs of their codes; sum with `numpy.bincount`."""
    import pandas as pd

    true_codes, _ = pd.factorize(frame["t"])
    pred_codes, pred_labels = pd.factorize(frame["p"])
    width = len(pred_labels)
    del pred_labels
    cells = frame["w"].groupby(true_codes * width + pred_codes, sort=False).sum()
    del true_codes, pred_codes
    w = cells.to_numpy()
    rows, columns = np.divmod(cells.index.to_numpy(), width)
    return means(w, np.bincount(rows, w)[rows], np.bincount(columns, w)[columns])


def pandas_groupby(frame: Any) -> dict[str, float]:
    """Group by both labels, then sum over each cluster with `transform`."""
    cells = frame.groupby(["t", "p"], sort=False)["w"].sum()
    a = cells.groupby("t", sort=False).transform("sum")
    b = cells.groupby("p", sort=False).transform("sum")
    return means(cells.to_numpy(), a.to_numpy(), b.to_numpy())


FORMS: tuple[Form, ...] = (
    Form("pandas", "factorize", ("pandas",), pandas_frame, pandas_factorize),
    Form("pandas", "codes-groupby", ("pandas",), pandas_frame, pandas_codes_groupby),
    Form("pandas", "groupby", ("pandas",), pandas_frame, pandas_groupby),
)
