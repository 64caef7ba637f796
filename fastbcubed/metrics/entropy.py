"""Entropies of the clusters of each side, and of each side given the other, in nats.

The conditional entropies are means over items of log(b / w) and log(a / w), where w weighs the cell of an
item, b its predicted and a its true cluster: sums of terms that are not negative, and 0 if both sides agree.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.errors import OptionError
from fastbcubed.metrics.score import LIKE_SKLEARN, Family, Page, rate
from fastbcubed.runtime.arguments import is_one_of
from fastbcubed.runtime.threads import Pool, blocks
from fastbcubed.types import Floats, Sizes

if TYPE_CHECKING:
    from fastbcubed.cells.contingency import Contingency
    from fastbcubed.runtime.threads import Pool

#: Cluster sizes below this one are counted by the pass over the cells, and their logarithms kept in a table.
USUAL = 1 << 12
#: Sizes of one side whose chance is summed by one task.
SIZES_AT_ONCE = 16


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
    """Return log(n / size), from the items outside a cluster where it has nearly all of them."""
    logs = np.log(n / sizes)
    large = sizes > kernels.metrics.DOMINANT * n
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
        kernels.metrics.count_losses(contingency.cells, start, stop, logs, *items, runs)
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
    if max(most) > kernels.metrics.DOMINANT * total:
        beside = _beside(contingency.true_weight), _beside(contingency.pred_weight)
        sums, _ = weigh_part(contingency, total, beside, pool)
    return entropies_of_sums(sums, total)


def weigh_part(
    contingency: Contingency, total: float, beside: tuple[float, float], pool: Pool
) -> tuple[list[float], list[float]]:
    """Return the arguments of `entropies_of_sums`, and the weight of the heaviest cluster of either side.

    `total` is the weight of all items; the sums of parts of the cells, which know their mates in all parts, add up.
    """

    def task(start: int, stop: int) -> tuple[list[float], tuple[float, float]]:
        runs = np.empty((-(-(stop - start) // kernels.runs.RUN), 4))
        most = kernels.metrics.weigh_losses(contingency.cells, start, stop, total, *beside, runs)
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
        return float(kernels.metrics.expect_shared(n, *more, start, stop, *fewer))

    starts, stops = zip(*blocks(more[0].size, SIZES_AT_ONCE), strict=True)
    return math.fsum(pool.map(task, starts, stops, stage="expect by chance")) / n


def code_length(side: Sizes, n_classes: int) -> float:
    """Return the code length, in nats, of the numbers of items of each class in each cluster of a side."""
    sizes, clusters = side
    lengths = np.empty(sizes.size)
    kernels.metrics.log_choices(sizes, n_classes - 1, lengths)
    return math.fsum((clusters * lengths).tolist())


#: A float, or an array of floats.
Amount = Any
BITS = 1 / math.log(2)
NOTE = (
    "C and K are the true and the predicted cluster of a random item, drawn by weight if there are weights;"
    " n items in all."
)

entropy = Family("entropy", low=0.0)
#: What scores of all items have in common that are no means over items.
WHOLE: dict[str, Any] = {"labelled_only": True, "weights_inside": True, "note": NOTE}
#: And those that are relative to another amount.
SHARE: dict[str, Any] = {**WHOLE, "high": 1.0, "best": "higher"}
#: What the losses of items have in common.
LOSS: dict[str, Any] = {"high": inf, "best": "lower"}


def _from_entropies(formula: Callable[..., Amount], contingency: Contingency, pool: Pool) -> float:
    return float(formula(*contingency.once(entropies, pool)))


#: Declare a score of the entropies of both sides, and of each given the other, in any unit.
of_entropies = partial(entropy.of_cells, by=_from_entropies)


# Of an item
def mean_cluster_entropy(contingency: Contingency, pool: Pool) -> float:
    """Return H(C|K) in bits."""
    return contingency.once(entropies, pool).true_given_pred * BITS


def mean_class_entropy(contingency: Contingency, pool: Pool) -> float:
    """Return H(K|C) in bits."""
    return contingency.once(entropies, pool).pred_given_true * BITS


def mean_variation_of_information(contingency: Contingency, pool: Pool) -> float:
    """Return H(C|K) + H(K|C) in bits."""
    return mean_cluster_entropy(contingency, pool) + mean_class_entropy(contingency, pool)


@entropy.mean_over_items(
    "log2((tp + fp) / tp)",
    mean=mean_cluster_entropy,
    **LOSS,
    source="Amigó et al. 2009",
    example="""
    >>> cluster_entropy(list("aabb"), [1, 1, 1, 1])  # log2(4/2) for each item
    1.0
    """,
)
def cluster_entropy(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    """Bits that a predicted cluster leaves open about the true cluster of an item, H(C|K)."""
    return np.log1p(fp / tp) * BITS


@entropy.mean_over_items(
    "log2((tp + fn) / tp)",
    mean=mean_class_entropy,
    **LOSS,
    source="Bakus et al. 2002",
    example="""
    >>> class_entropy(list("aabb"), [1, 1, 2, 3])  # (0 + 0 + log2(2/1) + log2(2/1)) / 4
    0.5
    """,
)
def class_entropy(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    """Bits that a true cluster leaves open about the predicted cluster of an item, H(K|C)."""
    return np.log1p(fn / tp) * BITS


# What the sides have in common
@entropy.of_cells(
    "I = H(C) - H(C|K)",
    **WHOLE,
    high=inf,
    best="higher",
    source="Strehl and Ghosh 2002",
    example="""
    >>> mutual_info(list("aabb"), [1, 1, 2, 3])  # log2(2) - 0
    1.0
    """,
    also={
        "mutual_info_score": Page(
            """
            >>> score = mutual_info_score(list("aabb"), [1, 1, 2, 3])
            >>> round(score, 12)  # log(2) - 0
            0.69314718056
            """,
            note="As in scikit-learn, in nats, which has no weights.",
        )
    },
)
def mutual_info(contingency: Contingency, pool: Pool) -> float:
    """Mutual information of the clusterings, in bits."""
    return contingency.once(entropies, pool).shared * BITS


@entropy.of_cells(
    "E[I] = sum over pairs of clusters of sizes a, b of E[(k / n) log2(n k / (a b))], where k is hypergeometric:"
    " b draws from n items, a of them marked",
    **WHOLE,
    high=inf,
    best="neither",
    source="Vinh et al. 2010",
    unweighted_only=True,
    example="""
    A class of 2 and a cluster of 2 share both items with the chance 1/6: 1/6 * 2/4 * log2(4 * 2 / 4), for
    two such pairs. With a cluster of 1 they share it with the chance 1/2: 1/2 * 1/4 * log2(4 / 2), four times.

    >>> score = expected_mutual_info(list("aabb"), [1, 1, 2, 3])
    >>> round(score, 12)  # 2 * 1/12 + 4 * 1/8
    0.666666666667
    """,
)
def expected_mutual_info(contingency: Contingency, pool: Pool) -> float:
    """Expected mutual information by chance (items shuffled, sizes kept), in bits."""
    return contingency.once(expected_shared, pool) * BITS


@entropy.mean_over_items(
    "log2((tp + fp) / tp) + log2((tp + fn) / tp)",
    mean=mean_variation_of_information,
    **LOSS,
    source="Meila 2003",
    example="""
    >>> variation_of_information(list("aabb"), [1, 1, 2, 3])  # 0 + 1/2
    0.5
    """,
    also={
        "combined_entropy": Page(
            """
            >>> combined_entropy(list("aabb"), [1, 1, 1, 1], beta=0.25)  # 1/4 of log2(4/2), and 3/4 of 0
            0.25
            """
        )
    },
)
def variation_of_information(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    """Bits that each clustering leaves open about the other, a metric."""
    return (np.log1p(fp / tp) + np.log1p(fn / tp)) * BITS


# Relative to the entropies of the sides
def _explained(whole: Amount, left: Amount) -> Amount:
    """Return the share of an entropy that the other side explains, all of it where there is none."""
    return np.clip(1.0 - rate(left, np.broadcast_to(whole, np.shape(left)), empty=0.0), 0.0, 1.0)


@of_entropies(
    "1 - H(C|K) / H(C), 1 if there is one true cluster",
    **SHARE,
    source="Rosenberg and Hirschberg 2007",
    example="""
    >>> score = homogeneity([1, 1, 2, 3], list("aabb"))
    >>> round(score, 12)  # 1 - (1/2) / (3/2)
    0.666666666667
    """,
    also={"homogeneity_score": Page(note=LIKE_SKLEARN)},
)
def homogeneity(true: Amount, pred: Amount, true_given_pred: Amount, pred_given_true: Amount) -> Amount:
    """Share of the information on true clusters that the predicted ones hold."""
    return _explained(true, true_given_pred)


@of_entropies(
    "1 - H(K|C) / H(K), 1 if there is one predicted cluster",
    **SHARE,
    source="Rosenberg and Hirschberg 2007",
    example="""
    >>> score = completeness(list("aabb"), [1, 1, 2, 3])
    >>> round(score, 12)  # 1 - (1/2) / (3/2)
    0.666666666667
    """,
    also={"completeness_score": Page(note=LIKE_SKLEARN)},
)
def completeness(true: Amount, pred: Amount, true_given_pred: Amount, pred_given_true: Amount) -> Amount:
    """Share of the information on predicted clusters that the true ones hold."""
    return _explained(pred, pred_given_true)


def v_of(homogeneity: Amount, completeness: Amount, beta: float) -> Amount:
    """Return (1 + beta) h c / (beta h + c), which is h for beta = 0 and c for infinity, whatever the other."""
    if beta in (0.0, inf):
        return completeness if beta else homogeneity
    below = beta * homogeneity + completeness
    return rate((1 + beta) * homogeneity * completeness, below, empty=0.0)


@of_entropies(
    "2 h c / (h + c), with h = homogeneity and c = completeness; 0 if both are",
    **SHARE,
    source="Rosenberg and Hirschberg 2007",
    example="""
    >>> score = v_measure(list("aabb"), [1, 1, 2, 3])
    >>> round(score, 12)  # 2 * 1 * 2/3 / (1 + 2/3)
    0.8
    """,
    also={
        "v_measure_score": Page(
            """
            >>> score = v_measure_score(list("aabb"), [1, 1, 2, 3], beta=2)
            >>> round(score, 12)  # 3 * 1 * 2/3 / (2 + 2/3)
            0.75
            """,
            note=LIKE_SKLEARN,
        ),
        "homogeneity_completeness_v_measure": Page(
            """
            >>> scores = homogeneity_completeness_v_measure(list("aabb"), [1, 1, 2, 3])
            >>> [round(score, 12) for score in scores]
            [1.0, 0.666666666667, 0.8]
            """,
            note=LIKE_SKLEARN,
        ),
    },
)
def v_measure(true: Amount, pred: Amount, true_given_pred: Amount, pred_given_true: Amount) -> Amount:
    """Harmonic mean of homogeneity and completeness."""
    sums = true, pred, true_given_pred, pred_given_true
    return v_of(homogeneity(*sums), completeness(*sums), 1.0)


@entropy.of_cells(
    "2 I / (H(C) + H(K)), with I = mutual_info; 1 if both sides are one cluster, 0 if one is",
    **SHARE,
    source="Strehl and Ghosh 2002",
    example="""
    >>> score = nmi(list("aabb"), [1, 1, 2, 3])
    >>> round(score, 12)  # 2 * 1 / (1 + 3/2)
    0.8
    """,
    also={
        "normalized_mutual_info_score": Page(
            """
            >>> score = normalized_mutual_info_score(list("aabb"), [1, 1, 2, 3], average_method="max")
            >>> round(score, 12)  # 1 / (3/2)
            0.666666666667
            """,
            note="As in scikit-learn, which has no weights and does not offer the joint entropy.",
        )
    },
)
def nmi(contingency: Contingency, pool: Pool, average: str = "arithmetic") -> float:
    """Mutual information, relative to the mean entropy of the two sides."""
    found = contingency.once(entropies, pool)
    norm = found.norm(average)
    if found.same:
        return 1.0
    return min(1.0, found.shared / norm) if found.true and found.pred else 0.0


@entropy.of_cells(
    "(I - E[I]) / ((H(C) + H(K)) / 2 - E[I]), with I = mutual_info and E[I] = expected_mutual_info; 1 for the same"
    " clusterings, else 0 if a side is one cluster or singletons",
    **SHARE,
    low=-inf,
    source="Vinh et al. 2010",
    unweighted_only=True,
    example="""
    >>> score = ami(list("aabb"), [1, 1, 2, 3])
    >>> round(score, 12)  # (1 - 2/3) / (5/4 - 2/3) = 4/7
    0.571428571429
    """,
    also={
        "adjusted_mutual_info_score": Page(
            """
            >>> score = adjusted_mutual_info_score(list("aabb"), [1, 1, 2, 3], average_method="max")
            >>> round(score, 12)  # (1 - 2/3) / (3/2 - 2/3) = 2/5
            0.4
            """,
            note="As in scikit-learn, to 1e-9, where neither side is one cluster or singletons. If one is, shuffling"
            " changes nothing, and what is left is 0 / 0 or 0 over something: 1 here if the clusterings are the"
            " same, else 0; scikit-learn divides rounding errors by the smallest float there.",
        )
    },
)
def ami(contingency: Contingency, pool: Pool, average: str = "arithmetic") -> float:
    """Mutual information adjusted for chance: 0 is the mean of shuffled items, 1 is the best."""
    found, counts, n = contingency.once(entropies, pool), contingency.once(count, pool), contingency.n_items
    norm = found.norm(average)
    if found.same:
        return 1.0
    if any(sizes[0] == n or sizes[-1] == 1 for sizes, _ in (counts.true, counts.pred)):
        return 0.0  # shuffling changes nothing
    expected = contingency.once(expected_shared, pool)
    return (found.shared - expected) / (norm - expected)


# Dom's code lengths
@entropy.of_cells(
    "H(C|K) + (1 / n) sum over predicted clusters of size b of log2 binomial(b + c - 1, c - 1), for c true clusters",
    **WHOLE,
    **LOSS,
    source="Dom 2001",
    unweighted_only=True,
    example="""
    >>> score = dom_q0(list("aabb"), [1, 1, 2, 3])
    >>> round(score, 12)  # 0 + (log2(3) + log2(2) + log2(2)) / 4
    0.89624062518
    """,
)
def dom_q0(contingency: Contingency, pool: Pool) -> float:
    """Bits per item that encode the true clusters given the predicted ones."""
    counts = contingency.once(count, pool)
    told = counts.true_given_pred + code_length(counts.pred, int(counts.true[1].sum()))
    return told / contingency.n_items * BITS


@entropy.of_cells(
    "(1 / n) sum over true clusters of size a of log2 binomial(a + c - 1, c - 1), over dom_q0, for c true clusters;"
    " 1 if there is one",
    **SHARE,
    source="Dom 2001",
    unweighted_only=True,
    example="""
    >>> score = dom_q2(list("aabb"), [1, 1, 2, 3])
    >>> round(score, 12)  # (log2(3) + log2(3)) / (log2(3) + log2(2) + log2(2))
    0.884228217395
    """,
)
def dom_q2(contingency: Contingency, pool: Pool) -> float:
    """Bits per item of a perfect prediction, relative to those of this one."""
    counts, q0 = contingency.once(count, pool), dom_q0(contingency, pool)
    if not q0:
        return 1.0
    return code_length(counts.true, int(counts.true[1].sum())) / contingency.n_items * BITS / q0
