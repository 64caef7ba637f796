"""The cells of an evaluation as a table with labels, worst first, however many there are."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed.cells.contingency import SIDES, Contingency
from fastbcubed.inputs.arrays import table_of, to_numpy
from fastbcubed.metrics.pointwise import LOSSES
from fastbcubed.overlap.cover import Cover
from fastbcubed.results.evaluation_base import Evaluated
from fastbcubed.results.items import list_labels
from fastbcubed.results.table import LOSS, NamedBy, Table, Top, listed, require_known, require_limit
from fastbcubed.runtime.threads import blocks

#: Cells that are looked at together.
AT_ONCE = 1 << 20
COLUMNS = ("n_items", "weight", "fp", "fn", *LOSSES)


def list_cells(ev: Evaluated, order_by: str | None, limit: int | None) -> Table:
    """Return the cells as `Evaluation.cells` does."""
    require_limit(limit)
    key, table = LOSS if order_by is None else order_by, ev.contingency
    require_known(key, COLUMNS)
    n_cells = table.n_cells  # raises if they were not kept
    named_by: NamedBy | None = ("cell", "clusters", lambda cells: _labels(ev, cells))
    if table.overlapping:
        named_by = None
    parts = (table_of(_columns(table, start, stop)) for start, stop in blocks(n_cells, AT_ONCE))
    if limit is None:
        found = pa.concat_tables(parts)
    else:
        top = Top((), key, limit, named_by)
        for part in parts:
            top.add(part)
        found = top.found
    return Table(_with_clusters(ev, listed(found, (), key, limit, named_by=named_by).to_arrow()))


def _columns(table: Contingency, start: int, stop: int) -> dict[str, NDArray[Any]]:
    """Return the figures of a range of cells."""
    at = slice(start, stop)
    found: dict[str, Any] = {"cell": np.arange(start, stop), "n_items": table.n[at].astype(np.int64)}
    found |= {name: np.ascontiguousarray(getattr(table, name)[at]) for name in ("weight", "fp", "fn")}
    tp = found["n_items"].astype(np.float64) if table.weighting == "outer" else found["weight"]
    for name, wrong in zip(LOSSES, (found["fp"], found["fn"]), strict=True):
        found[name] = found["weight"] * (wrong / (tp + wrong)) / table.total_weight
    return found


def _labels(ev: Evaluated, cells: NDArray[np.int64]) -> pa.Array:
    """Return the labels of the two clusters of each cell, as one id."""
    table = ev.contingency
    labels = [
        ev.cluster_labels(side, codes[cells].astype(np.int64))
        for side, codes in (("true", table.true), ("pred", table.pred))
    ]
    return pa.StructArray.from_arrays(labels, [f"{side}_cluster" for side in SIDES])


def _with_clusters(ev: Evaluated, found: pa.Table) -> pa.Table:
    """Return the cells with their clusters as two columns, and nothing else but figures."""
    table = ev.contingency
    cells = to_numpy(found["cell"]).astype(np.int64)
    if isinstance(table, Cover):
        names = [list_labels(table.members(s), cells, partial(ev.cluster_labels, s)) for s in SIDES]
    else:
        names = found["clusters"].flatten()
    return pa.table(
        {f"{side}_cluster": each for side, each in zip(SIDES, names, strict=True)}
        | {name: found[name] for name in COLUMNS}
    )
