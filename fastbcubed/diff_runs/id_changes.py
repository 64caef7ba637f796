"""Clusters that a change left as they are, but gave another id."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed.inputs import arrow_compute as pc
from fastbcubed.inputs.arrays import combined, from_numpy, plain, to_numpy
from fastbcubed.render.number_formats import label
from fastbcubed.results.evaluation import Evaluation
from fastbcubed.results.table import order_of
from fastbcubed.runtime.threads import blocks
from fastbcubed.types import RowNumbers


def clusters_with_new_ids(ev: Evaluation) -> pa.Table:
    """Return unchanged clusters whose id is another one in the experiment, the heaviest first.

    Columns are baseline_cluster, experiment_cluster, n_items, weight. A cluster that a policy made has no id.
    """
    table = ev.contingency
    cuts = blocks(table.n_cells)
    wholes = [a + np.flatnonzero((table.fp[a:b] == 0) & (table.fn[a:b] == 0)) for a, b in cuts]
    cells = np.concatenate([np.empty(0, np.int64), *wholes])
    codes = {"true": table.true[cells].astype(np.int64), "pred": table.pred[cells].astype(np.int64)}
    old, new = (_labels(ev.kept.cluster_labels, side, codes[side]) for side in codes)
    differ = np.flatnonzero(_differ(old, new))
    weight, at = table.weight[cells][differ], from_numpy(differ)
    columns = {
        "baseline_cluster": old.take(at),
        "experiment_cluster": new.take(at),
        "n_items": from_numpy(table.n[cells][differ].astype(np.int64)),
        "weight": from_numpy(np.asarray(weight, np.float64)),
    }
    found = pa.table(columns)
    return found.take(order_of([-np.asarray(weight, np.float64)], [columns["baseline_cluster"]]))


def _labels(labels: Callable[[str, RowNumbers], pa.Array], side: str, codes: RowNumbers) -> pa.Array:
    found = labels(side, codes)
    return combined(plain(found if isinstance(found, pa.ChunkedArray) else pa.chunked_array([found])))


def _differ(old: pa.Array, new: pa.Array) -> NDArray[np.bool_]:
    """Return where both clusters have an id, and not the same; 1 and "1" are the same."""
    there = pc.and_(old.is_valid(), new.is_valid())
    simple = old.type == new.type and not pa.types.is_nested(old.type)
    if not simple:
        old, new = (
            pa.array([label(value) for value in each.to_pylist()], pa.string()) for each in (old, new)
        )
    return np.asarray(to_numpy(pc.and_(there, pc.fill_null(pc.not_equal(old, new), False))), np.bool_)
