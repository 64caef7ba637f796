"""Scores by which an item leaves out its own weight, where items come in blocks: of each item, and summed over them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fastbcubed.cells.confusion import Confusion
from fastbcubed.cells.own_weights import WeighedItems
from fastbcubed.cells.records import add_products
from fastbcubed.metrics.formulas import WEIGHT, apply_formula
from fastbcubed.metrics.metric import Floats, Metric


class LeavingOut:
    """Scores with a formula that gets the matrix of an item without the item; none of them takes true negatives."""

    def __init__(self, metrics: Sequence[Metric]) -> None:
        self._metrics = metrics

    @property
    def names(self) -> list[str]:
        """What they are called."""
        return [metric.name for metric in self._metrics]

    def of(self, items: WeighedItems) -> list[Floats]:
        """Return the scores of items, each of shape (n_items,)."""
        matrix = Confusion(items.others, items.fp, items.fn, None)
        return [apply_formula(metric, matrix) for metric in self._metrics]

    def sums(self, items: WeighedItems, scores: Sequence[Floats]) -> dict[str, float]:
        """Return what items add to the sum of weights, and of weight * score, by name."""
        weighed = [np.ones(items.weight.size), *scores]
        return {
            name: add_products(items.weight, values)
            for name, values in zip([WEIGHT, *self.names], weighed, strict=True)
        }
