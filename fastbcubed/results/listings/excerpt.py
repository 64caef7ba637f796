"""Some clusters of an evaluation with their members, as an evaluation that is asked about these alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from fastbcubed.cells.cell_parts import NoCells
from fastbcubed.cells.excerpts import CellExcerpt, Codes, chosen_of
from fastbcubed.cells.scored_rows import ScoredRows
from fastbcubed.results.evaluated import Evaluated
from fastbcubed.results.items.picked_items import PickedAttributes, PickedItems
from fastbcubed.results.listings.opening import plain_id
from fastbcubed.sources.columns import as_column

Made = TypeVar("Made", bound=Evaluated)


def excerpt(ev: Evaluated, codes: Codes, make: Callable[..., Made], most: int) -> Made | None:
    """Return what `make` makes of the cells and rows of some clusters of an evaluation whose clusters do not overlap.

    All rows are gone through once, and each column that is asked for is read once. None of clusters that have more
    than `most` rows.
    """
    table, every = ev.cell_excerpt(codes), ev._rows()
    chosen = chosen_of(table.places, ev.contingency.n_cells)
    rows, cells = every.in_cells(chosen)
    alone = _one_sided(ev, codes)
    if rows.size + alone.size > most:
        return None
    order = np.argsort(np.concatenate([rows, alone]), kind="stable")
    rows = np.concatenate([rows, alone])[order]
    numbers = np.append(np.searchsorted(table.places, cells), np.full(alone.size, -1))[order]
    table.rows = ScoredRows.of(numbers, every.weights_of(rows))
    return of_rows(ev, table, rows, make)


def of_rows(
    ev: Evaluated,
    table: CellExcerpt | NoCells,
    rows: NDArray[np.int64],
    make: Callable[..., Made],
) -> Made:
    """Return what `make` makes of some cells and rows of an evaluation."""
    return make(
        table, ev.metrics, ev.beta, ev.coverage, ev.policies, ev.overall, PickedItems(ev.kept_items(), rows),
        attributes=None if ev.attributes is None else PickedAttributes(ev.attributes, rows),
    )  # fmt: skip


def _one_sided(ev: Evaluated, codes: Codes) -> NDArray[np.int64]:
    """Return the rows in some clusters that the other side lacks."""
    found = [np.empty(0, np.int64)]
    for side in codes:
        if getattr(ev.coverage, {"true": "n_truth_only", "pred": "n_prediction_only"}[side]):
            labels = ev.cluster_labels(side, codes[side]).to_pylist()
            found += _unscored_with(ev, side, [label for label in labels if label is not None])
    return np.unique(np.concatenate(found))


def _unscored_with(ev: Evaluated, side: str, labels: list[Any]) -> Iterator[NDArray[np.int64]]:
    """Yield rows that are not scored, and have one of some labels on a side."""
    for first, cell in ev._rows().stretches():
        rows = first + np.flatnonzero(cell < 0)
        if rows.size:
            column = as_column(ev.kept_items().labels(side, rows), f"{side}_cluster")
            for label in labels:
                yield rows[column.find(plain_id(label))]
