"""Sums of all cells → scores: what a contingency is asked by the scores of all items is answered from sums."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from fastbcubed.alignment.policies import Coverage
from fastbcubed.engines.request import Request, Scored
from fastbcubed.engines.spark.adding_up import MEAN, Sizes, Sums
from fastbcubed.engines.spark.looking import Looked
from fastbcubed.engines.spark.streamed_cells import Question
from fastbcubed.errors import OptionError, WeightError
from fastbcubed.metrics import aggregation, entropies, pair_counts
from fastbcubed.metrics.bcubed import PRECISION, RECALL
from fastbcubed.metrics.metric import Metric
from fastbcubed.results.listings.summary import Bounds, bounds_from, describe
from fastbcubed.runtime.pool import Pool

#: Families whose scores of all items are made of sums.
SUMMED = ("pairs", "entropy")
#: Scores that are means over the clusters of a side.
BY_CLUSTER = {
    f"bcubed_{name}_by_{side}_cluster": side
    for side in ("true", "pred")
    for name in ("precision", "recall", "f1")
}
WAY_OUT = (
    "it takes all cells at once, which on Spark are in many places; evaluate tables that one machine can read with "
    'engine="disk" or engine="memory"'
)


class Asked:
    """The scores of a request that Spark serves, and why others are not computed."""

    def __init__(self, request: Request, *, weighted: bool) -> None:
        self.request, self.weighted = request, weighted
        metrics, self.not_computed = request.resolve(weighted=weighted, cells_alone=True)
        reasons = {m.name: WAY_OUT for m in metrics if not _is_served(m)}
        for name in sorted(request.named_metrics & reasons.keys()):
            raise OptionError(f"cannot compute {name}: {reasons[name]}")
        self.metrics = [m for m in metrics if m.name not in reasons]
        self.not_computed |= reasons
        self.needed = aggregation.with_needs(self.metrics, request.beta)

    @property
    def needs_total(self) -> bool:
        """Whether some scores take the number of all scored items, or their weight, so that cells pass twice."""
        entropy = any(m.family == "entropy" and m.score is not None for m in self.needed)
        return any(m.uses_tn for m in self.needed) or (self.weighted and entropy)

    def question(self, **about: Any) -> Question:
        """Return what is asked of the cells."""
        request = self.request
        names = {m.name for m in self.needed}
        sides = dict.fromkeys(side for name, side in BY_CLUSTER.items() if name in names)
        scores = [m for m in self.needed if m.score is not None]
        return Question(
            weighted=self.weighted, outer=request.outer, outside=request.outside,
            bounded=request.policies.prediction == "drop",
            metrics=list({m.name: m for m in (*self.needed, PRECISION, RECALL) if m.formula is not None}.values()),
            by_cluster=[(side, metric) for side in sides for metric in (PRECISION, RECALL)],
            pairs=any(m.family == "pairs" for m in scores),
            entropies=any(m.family == "entropy" for m in scores),
            grouped=self.metrics, beta=request.beta, **about,
        )  # fmt: skip

    def counting(self, **about: Any) -> Question:
        """Return a question of counts alone."""
        return Question(self.weighted, self.request.outer, self.request.outside, **about)


def _is_served(metric: Metric) -> bool:
    """Tell whether a score, and all that it is combined from, can be made of sums of cells."""
    own = metric.score is None or metric.family in SUMMED or metric.name in BY_CLUSTER
    return own and all(map(_is_served, metric.needs))


class AddedUp:
    """What sums say of all cells, in the place of a contingency, to scores that ask for no more."""

    overlapping = False

    def __init__(self, sums: Sums, question: Question) -> None:
        self._floats, self._counts, self._sizes = sums.floats, sums.counts, sums.sizes
        self.n_items = sums.counts["n_items"]
        self.weighted, self.weighting = question.weighted, question.how["weighting"]
        self.outside = question.outside
        self.known_means = {
            (side, metric.name): sums.floats[f"cluster {side} {metric.name}"]
            / round(sums.floats[f"clusters {side}"])
            for side, metric in question.by_cluster
        }
        self._made: dict[Any, Any] = {}
        if question.pairs:
            tp, fp, fn = (sums.counts[f"pairs {name}"] for name in ("tp", "fp", "fn"))
            self._made[pair_counts.pair_sums] = pair_counts.sums_of_counts(tp, fp, fn, self.n_items)
        if question.entropies and not question.weighted:
            true, pred = (clusters_of(self._sizes[side]) for side in ("true", "pred"))
            losses = sums.floats["loss 0"], sums.floats["loss 1"]
            self._made[entropies.count] = entropies.Counts(true, pred, *losses)
        elif question.entropies:
            values = [sums.floats[f"entropy {k}"] for k in range(4)]
            self._made[entropies.entropies] = entropies.entropies_of_sums(values, sums.floats["weight"])

    def once(self, make: Any, pool: Pool) -> Any:
        """Return what `make` would make of all cells."""
        if make not in self._made:
            self._made[make] = make(self, pool)
        return self._made[make]


def clusters_of(sizes: Sizes) -> Sizes:
    """Return sizes of clusters and how many have each, from the items in clusters of each size."""
    known, items = sizes
    return known, items // known


def means_of(sums: Sums) -> dict[str, float]:
    """Return the means over items of scores."""
    total = sums.floats["weight"]
    if not 0 < total < math.inf:
        raise WeightError(f"the weights of the scored items add up to {total}; there is no mean over them")
    return {
        name.removeprefix(MEAN): value / total for name, value in sums.floats.items() if name.startswith(MEAN)
    }


def scored(asked: Asked, sums: Sums, question: Question, pool: Pool) -> Scored:
    """Return the scores over all items."""
    cells: Any = AddedUp(sums, question)
    overall = aggregation.finished(asked.metrics, means_of(sums), asked.request.beta, cells, pool)
    return Scored(overall, asked.metrics, asked.not_computed)


def coverage_of(sums: Sums, looked: Iterable[Looked]) -> Coverage:
    """Return how far the two sides have the same items."""
    sides = list(looked)
    counts, weights = sums.counts, sums.floats
    return Coverage(
        counts["n_0"], counts["n_1"], counts["n_2"],
        weights["weight_0"], weights["weight_1"], weights["weight_2"],
        n_null=sum(side.n_null for side in sides),
        n_noise=sum(side.n_noise for side in sides),
        n_duplicates=counts["again"],
    )  # fmt: skip


def bounds_of(sums: Sums, question: Question, coverage: Coverage) -> Bounds | None:
    """Return what complete labels could make of the precision, where prediction-only items were dropped."""
    if not question.bounded or not coverage.n_prediction_only:
        return None
    return bounds_from(np.array([sums.floats[f"bound {k}"] for k in range(3)]), sums.floats["weight"])


def summary_of(sums: Sums) -> dict[str, dict[str, Any]]:
    """Return items, clusters, singletons, largest, size quantiles and exactly recovered, of each side."""
    counts = sums.counts
    sizes = {side: clusters_of(own) for side, own in sums.sizes.items()}
    return describe(sizes, counts["n_items"], dict.fromkeys(sizes, counts["n_exact"]))
