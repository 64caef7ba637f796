"""The entropy family: what one clustering leaves open about the other, and what they have in common.

The conditional entropies are means over items of log(b / w) and log(a / w), where w weighs the cell of an
item, b its predicted and a its true cluster: sums of terms that are not negative, and 0 if both sides agree.
The registry answers in bits; here all is in nats until the end.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from math import inf
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.errors import OptionError
from fastbcubed.metrics.metric import Floats, Metric
from fastbcubed.runtime.pool import Pool, blocks

if TYPE_CHECKING:
    from fastbcubed.cells.contingency import Contingency

BITS = 1 / math.log(2)
#: Cluster sizes below this one are counted by the pass over the cells, and their logarithms kept in a table.
USUAL = 1 << 12
#: Sizes of one side whose chance is summed by one task.
SIZES_AT_ONCE = 16

Sizes = tuple[NDArray[np.int64], NDArray[np.int64]]


# Of an item


def cluster_entropy(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    """Return the bits that tell the true cluster of the item to somebody who knows the predicted one."""
    return np.log1p(fp / tp) * BITS


def class_entropy(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    """Return the bits that tell the predicted cluster of the item to somebody who knows the true one."""
    return np.log1p(fn / tp) * BITS


def variation_of_information(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    """Return the sum of both."""
    return (np.log1p(fp / tp) + np.log1p(fn / tp)) * BITS


# Of all items


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
        if average not in found:
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
        math.fsum((sizes * clusters * np.log(n / sizes)).tolist()) for sizes, clusters in counts[:2]
    )
    return Entropies(true / n, pred / n, counts.true_given_pred / n, counts.pred_given_true / n)


def count(contingency: Contingency, pool: Pool) -> Counts:
    """Return the cluster sizes of both sides, and the losses, all by counts."""
    logs = np.log(np.maximum(np.arange(USUAL), 1))

    def task(start: int, stop: int) -> tuple[list[float], NDArray[np.int64]]:
        runs, items = np.empty((-(-(stop - start) // kernels.entropy.RUN), 2)), np.zeros((2, USUAL), np.int64)
        kernels.entropy.count_losses(contingency.cells, start, stop, logs, *items, runs)
        return [math.fsum(column) for column in runs.T.tolist()], items

    losses, items = zip(*contingency.map(task, pool, "count cluster sizes"), strict=True)
    true_items, pred_items = np.sum(items, axis=0)
    return Counts(
        _sizes(true_items, contingency, "true"),
        _sizes(pred_items, contingency, "pred"),
        *(math.fsum(column) for column in zip(*losses, strict=True)),
    )


def _sizes(items: NDArray[np.int64], contingency: Contingency, side: str) -> Sizes:
    """Return the sizes that clusters have, ascending, and how many have each."""
    if items[0]:  # some are larger
        margin = contingency.true_n if side == "true" else contingency.pred_n
        return np.unique(margin[margin > 0], return_counts=True)
    sizes = np.flatnonzero(items)
    return sizes, items[sizes] // sizes


def _weigh(contingency: Contingency, pool: Pool) -> Entropies:
    total = contingency.total_weight

    def weigh(beside: tuple[float, float]) -> tuple[list[float], list[float]]:
        def task(start: int, stop: int) -> tuple[list[float], tuple[float, float]]:
            runs = np.empty((-(-(stop - start) // kernels.entropy.RUN), 4))
            most = kernels.entropy.weigh_losses(contingency.cells, start, stop, total, *beside, runs)
            return [math.fsum(column) for column in runs.T.tolist()], most

        sums, most = zip(*contingency.map(task, pool, "weigh losses"), strict=True)
        return [math.fsum(column) / total for column in zip(*sums, strict=True)], list(
            map(max, zip(*most, strict=True))
        )

    means, most = weigh((-1.0, -1.0))
    if max(most) > kernels.entropy.DOMINANT * total:
        means, _ = weigh((_beside(contingency.true_weight), _beside(contingency.pred_weight)))
    true_given_pred, pred_given_true, true, pred = means
    return Entropies(true, pred, true_given_pred, pred_given_true)


def _beside(weights: Floats) -> float:
    """Return the weight of all clusters but the heaviest, without subtraction."""
    heaviest = int(np.argmax(weights))
    return float(weights[:heaviest].sum() + weights[heaviest + 1 :].sum())


def mean_cluster_entropy(contingency: Contingency, pool: Pool) -> float:
    """Return H(C|K) in bits."""
    return contingency.once(entropies, pool).true_given_pred * BITS


def mean_class_entropy(contingency: Contingency, pool: Pool) -> float:
    """Return H(K|C) in bits."""
    return contingency.once(entropies, pool).pred_given_true * BITS


def mean_variation_of_information(contingency: Contingency, pool: Pool) -> float:
    """Return H(C|K) + H(K|C) in bits."""
    return mean_cluster_entropy(contingency, pool) + mean_class_entropy(contingency, pool)


def mutual_info(contingency: Contingency, pool: Pool) -> float:
    """Return the mutual information in bits."""
    return contingency.once(entropies, pool).shared * BITS


def _told(whole: float, left: float) -> float:
    """Return the share of an entropy that the other side tells, all of it where there is none."""
    return min(1.0, max(0.0, 1.0 - left / whole)) if whole else 1.0


def homogeneity(contingency: Contingency, pool: Pool) -> float:
    """Return the share of H(C) that the predicted clusters tell; 1 if there is one true cluster."""
    found = contingency.once(entropies, pool)
    return _told(found.true, found.true_given_pred)


def completeness(contingency: Contingency, pool: Pool) -> float:
    """Return the share of H(K) that the true clusters tell; 1 if there is one predicted cluster."""
    found = contingency.once(entropies, pool)
    return _told(found.pred, found.pred_given_true)


def v_measure(beta: float, contingency: Contingency, pool: Pool) -> float:
    """Return the weighted harmonic mean of homogeneity and completeness; 0 if both are."""
    return v_of(homogeneity(contingency, pool), completeness(contingency, pool), beta)


def v_of(homogeneity: float, completeness: float, beta: float) -> float:
    """Return (1 + beta) h c / (beta h + c), which is h for beta = 0 and c for infinity, whatever the other."""
    if beta in (0.0, inf):
        return completeness if beta else homogeneity
    below = beta * homogeneity + completeness
    return (1 + beta) * homogeneity * completeness / below if below else 0.0


def nmi(average: str, contingency: Contingency, pool: Pool) -> float:
    """Return the mutual information over an average of the entropies; 0 if one of them is 0."""
    found = contingency.once(entropies, pool)
    norm = found.norm(average)
    if found.same:
        return 1.0
    return min(1.0, found.shared / norm) if found.true and found.pred else 0.0


def expected_mutual_info(contingency: Contingency, pool: Pool) -> float:
    """Return the mean mutual information of shuffled items, in bits."""
    return contingency.once(_expected, pool) * BITS


def _expected(contingency: Contingency, pool: Pool) -> float:
    """Return the expected mutual information in nats; equal sizes are handled together."""
    counts, n = contingency.once(count, pool), contingency.n_items
    fewer, more = sorted((counts.true, counts.pred), key=lambda side: side[0].size)

    def task(start: int, stop: int) -> float:
        return float(kernels.entropy.expect_shared(n, *more, start, stop, *fewer))

    starts, stops = zip(*blocks(more[0].size, SIZES_AT_ONCE), strict=True)
    return math.fsum(pool.map(task, starts, stops, stage="expect by chance")) / n


def ami(average: str, contingency: Contingency, pool: Pool) -> float:
    """Return the mutual information beyond chance, 1 for the same clusterings.

    Where a side is one cluster, or singletons, shuffling changes nothing, and 0 is left.
    """
    found, counts, n = contingency.once(entropies, pool), contingency.once(count, pool), contingency.n_items
    norm = found.norm(average)
    if found.same:
        return 1.0
    if any(sizes[0] == n or sizes[-1] == 1 for sizes, _ in (counts.true, counts.pred)):
        return 0.0
    expected = contingency.once(_expected, pool)
    return (found.shared - expected) / (norm - expected)


def _code_length(side: Sizes, n_classes: int) -> float:
    """Return the nats that tell how many items of each class are in each cluster of a side."""
    sizes, clusters = side
    lengths = np.empty(sizes.size)
    kernels.entropy.log_choices(sizes, n_classes - 1, lengths)
    return math.fsum((clusters * lengths).tolist())


def dom_q0(contingency: Contingency, pool: Pool) -> float:
    """Return the bits per item that tell the classes to somebody who knows the clusters."""
    counts = contingency.once(count, pool)
    told = counts.true_given_pred + _code_length(counts.pred, int(counts.true[1].sum()))
    return told / contingency.n_items * BITS


def dom_q2(contingency: Contingency, pool: Pool) -> float:
    """Return the bits of a perfect prediction over those of this one; 1 if there is one class."""
    counts, q0 = contingency.once(count, pool), dom_q0(contingency, pool)
    if not q0:
        return 1.0
    return _code_length(counts.true, int(counts.true[1].sum())) / contingency.n_items * BITS / q0


NOTE = (
    "C and K are the true and the predicted cluster of a random item, drawn by weight if there are weights;"
    " n items in all."
)


def scores() -> Iterator[Metric]:
    """Yield the scores of the family "entropy"."""
    base = partial(Metric, family="entropy", low=0.0)
    lower = partial(base, high=inf, best="lower")
    whole = partial(base, labelled_only=True, weights_inside=True, note=NOTE)
    higher = partial(whole, high=1.0, best="higher")
    yield lower(
        "cluster_entropy",
        summary="Bits that a predicted cluster leaves open about the true cluster of an item, H(C|K).",
        definition="mean over items of log2((tp + fp) / tp)",
        source="Amigó et al. 2009",
        formula=cluster_entropy,
        mean=mean_cluster_entropy,
    )
    yield lower(
        "class_entropy",
        summary="Bits that a true cluster leaves open about the predicted cluster of an item, H(K|C).",
        definition="mean over items of log2((tp + fn) / tp)",
        source="Bakus et al. 2002",
        formula=class_entropy,
        mean=mean_class_entropy,
    )
    yield whole(
        "mutual_info",
        high=inf,
        best="higher",
        summary="Bits that one clustering tells about the other.",
        definition="I = H(C) - H(C|K)",
        source="Strehl and Ghosh 2002",
        score=mutual_info,
    )
    yield whole(
        "expected_mutual_info",
        high=inf,
        best="neither",
        unweighted_only=True,
        summary="Bits that one clustering tells about the other by chance: items shuffled, sizes kept.",
        definition="E[I] = sum over pairs of clusters of sizes a, b of E[(k / n) log2(n k / (a b))], where k"
        " is hypergeometric: b draws from n items, a of them marked",
        source="Vinh et al. 2010",
        score=expected_mutual_info,
    )
    yield lower(
        "variation_of_information",
        summary="Bits that each clustering leaves open about the other, a metric.",
        definition="mean over items of log2((tp + fp) / tp) + log2((tp + fn) / tp)",
        source="Meila 2003",
        formula=variation_of_information,
        mean=mean_variation_of_information,
    )
    yield higher(
        "homogeneity",
        summary="Share of the information on true clusters that the predicted ones hold.",
        definition="1 - H(C|K) / H(C), 1 if there is one true cluster",
        source="Rosenberg and Hirschberg 2007",
        score=homogeneity,
    )
    yield higher(
        "completeness",
        summary="Share of the information on predicted clusters that the true ones hold.",
        definition="1 - H(K|C) / H(K), 1 if there is one predicted cluster",
        source="Rosenberg and Hirschberg 2007",
        score=completeness,
    )
    yield higher(
        "v_measure",
        summary="Harmonic mean of homogeneity and completeness.",
        definition="2 h c / (h + c), with h = homogeneity and c = completeness; 0 if both are",
        source="Rosenberg and Hirschberg 2007",
        score=partial(v_measure, 1.0),
    )
    yield higher(
        "nmi",
        summary="Mutual information, relative to the mean entropy of the two sides.",
        definition="2 I / (H(C) + H(K)), with I = mutual_info; 1 if both sides are one cluster, 0 if one is",
        source="Strehl and Ghosh 2002",
        score=partial(nmi, "arithmetic"),
    )
    yield higher(
        "ami",
        low=-inf,
        unweighted_only=True,
        summary="Mutual information beyond chance: 0 is what shuffled items get on average, 1 is the best.",
        definition="(I - E[I]) / ((H(C) + H(K)) / 2 - E[I]), with I = mutual_info and E[I] ="
        " expected_mutual_info; 1 for the same clusterings, else 0 if a side is one cluster or singletons",
        source="Vinh et al. 2010",
        score=partial(ami, "arithmetic"),
    )
    dom = partial(whole, unweighted_only=True, source="Dom 2001")
    yield dom(
        "dom_q0",
        high=inf,
        best="lower",
        summary="Bits per item that tell the true clusters to somebody who knows the predicted ones.",
        definition="H(C|K) + (1 / n) sum over predicted clusters of size b of log2 binomial(b + c - 1, c - 1),"
        " for c true clusters",
        score=dom_q0,
    )
    yield dom(
        "dom_q2",
        high=1.0,
        best="higher",
        summary="Bits per item of a perfect prediction, relative to those of this one.",
        definition="(1 / n) sum over true clusters of size a of log2 binomial(a + c - 1, c - 1), over dom_q0,"
        " for c true clusters; 1 if there is one",
        score=dom_q2,
    )
