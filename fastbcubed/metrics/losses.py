"""Losses: what an item, a cluster or a slice costs of the precision and the recall of all items.

They are shares of the weight of all items, so those of disjoint groups add up to what all items lose.
"""

from __future__ import annotations

from collections.abc import Mapping

from fastbcubed.metrics.metric import Floats
from fastbcubed.metrics.pointwise import pointwise

#: Losses, as columns of tables, and the score that they add up to over all items.
LOSSES = {
    "precision_loss": pointwise["over_merge_rate"],
    "recall_loss": pointwise["under_merge_rate"],
}
#: The loss that the clusters of a side are first blamed for.
LOSS_OF_SIDE = {"true": "recall_loss", "pred": "precision_loss"}


def losses_of(sums: Mapping[str, Floats], total: float) -> dict[str, Floats]:
    """Return losses from sums of weight * score, by the name of the score, and the weight of all items."""
    return {name: sums[metric.name] / total for name, metric in LOSSES.items()}
