"""Entropies of the clusters of each side, and of each side given the other, in nats.

The conditional entropies are means over items of log(b / w) and log(a / w), where w weighs the cell of an
item, b its predicted and a its true cluster: sums of terms that are not negative, and 0 if both sides agree.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.errors import OptionError
from fastbcubed.metrics.metric import Floats
from fastbcubed.runtime.choices import is_one_of
from fastbcubed.runtime.pool import Pool, blocks

if TYPE_CHECKING:
    from fastbcubed.cells.contingency import Contingency

#: Cluster sizes below this one are counted by the pass over the cells, and their logarithms kept in a table.
USUAL = 1 << 12
#: Sizes of one side whose chance is summed by one task.
SIZES_AT_ONCE = 16

Sizes = tuple[NDArray[np.int64], NDArray[np.int64]]


class Entropies(NamedTuple):
    """Entropies in nats: of each side, and of each given the other. Exactly 0 where nothing is open."""

    true: float
    pred: float
    true_given_pred: float
    pred_given_true: float

    @property
    def shared(self) -> float:
        """The mutual information, from the side with less to lose."""
        if self.true <= self.pred:
            return max(0.0, self.true - self.true_given_pred)
        return max(0.0, self.pred - self.pred_given_true)

    @property
    def same(self) -> bool:
        """Whether the clusterings are the same."""
        return self.true_given_pred == 0 == self.pred_given_true

    def norm(self, average: str) -> float:
        """Return the entropy that bounds the mutual information: an average of both, or the joint one."""
        x, y = self.true, self.pred
        found = {
            "arithmetic": (x + y) / 2,
            "geometric": math.sqrt(x) * math.sqrt(y),
            "min": min(x, y),
            "max": max(x, y),
            "joint": x + self.pred_given_true,
        }
        if not is_one_of(average, found):
            raise OptionError(f"average_method is one of {', '.join(found)}, not {average!r}")
        return found[average]


class Counts(NamedTuple):
    """The cluster sizes of each side with how many clusters have them, and n times both losses."""

    true: Sizes
    pred: Sizes
    true_given_pred: float
    pred_given_true: float


def entropies(contingency: Contingency, pool: Pool) -> Entropies:
    """Return the entropies of both sides; with weights those of a random item drawn by weight."""
    if contingency.weighted:
        return _weigh(contingency, pool)
    counts, n = contingency.once(count, pool), contingency.n_items
    true, pred = (
        math.fsum((sizes * clusters * _logs_of_shares(sizes, n)).tolist()) for sizes, clusters in counts[:2]
    )
    return Entropies(true / n, pred / n, counts.true_given_pred / n, counts.pred_given_true / n)


def _logs_of_shares(sizes: NDArray[np.int64], n: int) -> Floats:
    """Return log(n / size), from the items beside a cluster where it has nearly all of them."""
    logs = np.log(n / sizes)
    large = sizes > kernels.entropy.DOMINANT * n
    logs[large] = np.log1p((n - sizes[large]) / sizes[large])
    return logs


def count(contingency: Contingency, pool: Pool) -> Counts:
    """Return the cluster sizes of both sides, and the losses, all by counts."""
    losses, (true_items, pred_items) = count_part(contingency, pool)
    return Counts(_sizes(true_items, contingency, "true"), _sizes(pred_items, contingency, "pred"), *losses)


def count_part(contingency: Contingency, pool: Pool) -> tuple[list[float], NDArray[np.int64]]:
    """Return n times both losses, and the items in clusters of each usual size of either side, 0 for larger ones.

    Those of parts of the cells, which know their mates in all parts, add up.
    """
    logs = np.log(np.maximum(np.arange(USUAL), 1))

    def task(start: int, stop: int) -> tuple[list[float], NDArray[np.int64]]:
        runs, items = np.empty((-(-(stop - start) // kernels.runs.RUN), 2)), np.zeros((2, USUAL), np.int64)
        kernels.entropy.count_losses(contingency.cells, start, stop, logs, *items, runs)
        return [math.fsum(column) for column in runs.T.tolist()], items

    losses, items = zip(*contingency.map(task, pool, "count cluster sizes"), strict=True)
    return [math.fsum(column) for column in zip(*losses, strict=True)], np.sum(items, axis=0)


def _sizes(items: NDArray[np.int64], contingency: Contingency, side: str) -> Sizes:
    """Return the sizes that clusters have, ascending, and how many have each."""
    if items[0]:  # some are larger
        margin = contingency.true_n if side == "true" else contingency.pred_n
        return np.unique(margin[margin > 0], return_counts=True)
    sizes = np.flatnonzero(items)
    return sizes, items[sizes] // sizes


def _weigh(contingency: Contingency, pool: Pool) -> Entropies:
    total = contingency.total_weight
    sums, most = weigh_part(contingency, total, (-1.0, -1.0), pool)
    if max(most) > kernels.entropy.DOMINANT * total:
        beside = _beside(contingency.true_weight), _beside(contingency.pred_weight)
        sums, _ = weigh_part(contingency, total, beside, pool)
    return entropies_of_sums(sums, total)


def weigh_part(
    contingency: Contingency, total: float, beside: tuple[float, float], pool: Pool
) -> tuple[list[float], list[float]]:
    """Return what `entropies_of_sums` takes, and the weight of the heaviest cluster of either side.

    `total` is the weight of all items; the sums of parts of the cells, which know their mates in all parts, add up.
    """

    def task(start: int, stop: int) -> tuple[list[float], tuple[float, float]]:
        runs = np.empty((-(-(stop - start) // kernels.runs.RUN), 4))
        most = kernels.entropy.weigh_losses(contingency.cells, start, stop, total, *beside, runs)
        return [math.fsum(column) for column in runs.T.tolist()], most

    sums, most = zip(*contingency.map(task, pool, "weigh losses"), strict=True)
    added = [math.fsum(column) for column in zip(*sums, strict=True)]
    return added, list(map(max, zip(*most, strict=True)))


def entropies_of_sums(sums: list[float], total: float) -> Entropies:
    """Return the entropies from total times each: of truth and prediction given the other, then of each alone."""
    true_given_pred, pred_given_true, true, pred = (each / total for each in sums)
    return Entropies(true, pred, true_given_pred, pred_given_true)


def _beside(weights: Floats) -> float:
    """Return the weight of all clusters but the heaviest, without subtraction."""
    heaviest = int(np.argmax(weights))
    return float(weights[:heaviest].sum() + weights[heaviest + 1 :].sum())


def expected_shared(contingency: Contingency, pool: Pool) -> float:
    """Return the expected mutual information in nats; equal sizes are handled together."""
    counts, n = contingency.once(count, pool), contingency.n_items
    fewer, more = sorted((counts.true, counts.pred), key=lambda side: side[0].size)

    def task(start: int, stop: int) -> float:
        return float(kernels.entropy.expect_shared(n, *more, start, stop, *fewer))

    starts, stops = zip(*blocks(more[0].size, SIZES_AT_ONCE), strict=True)
    return math.fsum(pool.map(task, starts, stops, stage="expect by chance")) / n


def code_length(side: Sizes, n_classes: int) -> float:
    """Return the nats that tell how many items of each class are in each cluster of a side."""
    sizes, clusters = side
    lengths = np.empty(sizes.size)
    kernels.entropy.log_choices(sizes, n_classes - 1, lengths)
    return math.fsum((clusters * lengths).tolist())
