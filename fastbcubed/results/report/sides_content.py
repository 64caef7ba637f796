"""The two sides on a page: sizes of their clusters, what became of them, and in how few of them the loss is."""

from __future__ import annotations

from typing import Any

from fastbcubed.cells.contingency import Contingency
from fastbcubed.cells.records import SIDES
from fastbcubed.errors import NotKeptError, OptionError
from fastbcubed.results.estimates import Estimated
from fastbcubed.results.listings.concentration import POINTS
from fastbcubed.results.slices.slicing import size_names
from fastbcubed.results.text.verdict import FEW_CELLS


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
        found = ev.size_classes(side)
        rows += [
            {"side": side, "size": name, "n_clusters": n, "share_clusters": n / found.n_clusters.sum(),
             "n_items": k, "share_items": k / found.n_items.sum()}
            for name, n, k in zip(
                size_names(found.smallest).to_pylist(), found.n_clusters.tolist(), found.n_items.tolist(), strict=False
            )
        ]  # fmt: skip
    return rows


def loss_curves_content(ev: Estimated) -> dict[str, Any] | None:
    """Return how the loss of either side is spread over its clusters; None where that takes too long or is unknown."""
    cells = ev.contingency
    if not isinstance(cells, Contingency) or (cells.overlapping and cells.n_cells > FEW_CELLS):
        return None
    try:
        return lorenz_curves(ev)
    except OptionError:  # there is no room
        return None


def lorenz_curves(ev: Estimated) -> dict[str, Any]:
    """Return the curves of the loss of either side, and what they come to."""
    return {
        side: {**ev.concentration[side], "curve": ev.lorenz(side, limit=POINTS).to_pylist()} for side in SIDES
    }


def extremes(ev: Estimated) -> dict[str, dict[str, float]]:
    """Return precision, recall and F1 if all items were alone in the prediction, and if all were in one cluster.

    What the cells do not tell is left out: where clusters overlap, prediction-only items count, or nothing was kept.
    """
    cells = ev.contingency
    if not isinstance(cells, Contingency) or cells.overlapping or cells.outside:
        return {}
    recall = ev.recall_alone()
    found = {} if recall is None else {"alone": (1.0, recall)}
    found["one"] = (_precision_in_one(ev), 1.0)
    return {
        name: {"precision": p, "recall": r, "f1": 2 * p * r / (p + r) if p + r else 0.0}
        for name, (p, r) in found.items()
    }


def _precision_in_one(ev: Estimated) -> float:
    """Return the mean over items of what their true cluster is of all items."""
    true, total = ev.size_classes("true"), ev.contingency.total_weight
    everything = true.n_items.sum() if ev.contingency.weighting == "outer" else total
    return float(true.squares.sum() / total / everything)
