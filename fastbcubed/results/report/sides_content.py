"""The two sides on a page: sizes of their clusters, what became of them, and in how few of them the loss is."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbcubed.cells.contingency import Contingency
from fastbcubed.cells.records import SIDES
from fastbcubed.errors import NotKeptError, OptionError
from fastbcubed.results.estimates import Estimated
from fastbcubed.results.slices.slicing import size_names
from fastbcubed.results.text.verdict import FEW_CELLS

#: Points of a curve: more than can be seen.
POINTS = 120


def sides_content(ev: Estimated) -> dict[str, Any]:
    """Return what is known of both sides: the summary, sizes, outcomes, curves of the loss."""
    return {
        "summary": ev.summary,
        "sizes": size_rows(ev) if isinstance(ev.contingency, Contingency) else None,
        "outcomes": None if ev._outcomes is None else ev._outcomes.to_pylist(),
        "lorenz": loss_curves_content(ev),
    }


def size_rows(ev: Estimated) -> list[dict[str, Any]]:
    """Return clusters and items by the size of the cluster, in powers of two, of each side.

    Raises
    ------
    NotKeptError
        If the cells were not kept.
    """
    if not isinstance(ev.contingency, Contingency):
        raise NotKeptError(
            'the cells were not kept; evaluate or save with keep="cells" to have cluster sizes'
        )
    rows = []
    for side in SIDES:
        sizes = ev.contingency.true_n if side == "true" else ev.contingency.pred_n
        sizes = sizes[sizes > 0]
        power = np.frexp(sizes.astype(np.float64))[1] - 1
        clusters = np.bincount(power)
        items = np.bincount(power, sizes).astype(np.int64)
        names = size_names(2 ** np.arange(clusters.size, dtype=np.int64)).to_pylist()
        rows += [
            {"side": side, "size": name, "n_clusters": int(n), "share_clusters": n / sizes.size,
             "n_items": int(k), "share_items": k / items.sum()}
            for name, n, k in zip(names, clusters.tolist(), items.tolist(), strict=True)
        ]  # fmt: skip
    return rows


def loss_curves_content(ev: Estimated) -> dict[str, Any] | None:
    """Return how the loss of either side is spread over its clusters; None where that takes too long or is unknown."""
    cells = ev.contingency
    if not isinstance(cells, Contingency) or (cells.overlapping and cells.n_cells > FEW_CELLS):
        return None
    try:
        return {
            side: {**ev.concentration[side], "curve": ev.lorenz(side, limit=POINTS).to_pylist()}
            for side in SIDES
        }
    except OptionError:  # there is no room
        return None


def extremes(ev: Estimated) -> dict[str, dict[str, float]]:
    """Return precision, recall and F1 if all items were alone in the prediction, and if all were in one cluster.

    What the cells do not tell is left out: where clusters overlap, prediction-only items count, or nothing was kept.
    """
    cells = ev.contingency
    if not isinstance(cells, Contingency) or cells.overlapping or cells.outside:
        return {}
    recall = _recall_alone(cells)
    found = {} if recall is None else {"alone": (1.0, recall)}
    found["one"] = (_precision_in_one(cells), 1.0)
    return {
        name: {"precision": p, "recall": r, "f1": 2 * p * r / (p + r) if p + r else 0.0}
        for name, (p, r) in found.items()
    }


def _recall_alone(cells: Contingency) -> float | None:
    """Return the mean over items of what each is of its true cluster; None if their weights are not at hand."""
    n, weight = cells.true_n, cells.true_weight
    if not cells.weighted or cells.weighting == "outer":  # an item is 1 of n, whatever it weighs in the mean
        return float(np.sum(weight[n > 0] / n[n > 0]) / cells.total_weight)
    if cells.rows is None:
        return None
    scored = cells.rows.cell >= 0
    own = cells.rows.weight[scored]
    return float(np.sum(own * (own / weight[cells.true[cells.rows.cell[scored]]])) / cells.total_weight)


def _precision_in_one(cells: Contingency) -> float:
    """Return the mean over items of what their true cluster is of all items."""
    inside: NDArray[np.float64] = (
        cells.true_n.astype(np.float64) if cells.weighting == "outer" else cells.true_weight
    )
    return float(np.sum(cells.true_weight / cells.total_weight * (inside / inside.sum())))
