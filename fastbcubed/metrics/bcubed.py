"""BCubed beyond the mean over items: means by cluster, a variant for unbalanced data, chance.

BCubed precision, recall and F themselves are the pointwise scores, under another name.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Literal

import numpy as np

from fastbcubed.metrics import pointwise
from fastbcubed.metrics.metric import Floats, Metric
from fastbcubed.metrics.pointwise import f1_of, f_measure

if TYPE_CHECKING:
    from fastbcubed.cells.contingency import Contingency
    from fastbcubed.runtime.pool import Pool

Side = Literal["true", "pred"]


def adapted_precision(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    """Return the chance that two members of the predicted cluster, drawn anew, both belong."""
    share = tp / (tp + fp)
    return share * share


def adapted_recall(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    """Return the chance that two members of the true cluster, drawn anew, were both found."""
    share = tp / (tp + fn)
    return share * share


def mean_of_clusters(side: Side, name: str, contingency: Contingency, pool: Pool) -> float:
    """Average the score `name` over the items of each cluster, then over clusters, each once."""
    from fastbcubed.metrics.aggregation import cluster_means

    return float(np.mean(cluster_means(contingency, side, name)))


def f1_of_clusters(side: Side, contingency: Contingency, pool: Pool) -> float:
    """Return the F1 of precision and recall, each averaged over clusters."""
    p, r = (mean_of_clusters(side, name, contingency, pool) for name in ("precision", "recall"))
    return float(f_measure(p, r))


def expected_loss(clusters: Side, contingency: Contingency) -> float:
    """Return the expected loss of precision (`clusters` = "pred") or recall ("true") by chance.

    When n items are shuffled, and the sizes on both sides stay, an item shares its cluster with
    others at a rate of (n - M) / n for M clusters, and each of them is wrong with the chance that
    a random pair is in two clusters of the other side: sum of a (n - a), over n (n - 1).
    """
    sizes, n_clusters = contingency.true_n, contingency.n_pred
    if clusters == "true":
        sizes, n_clusters = contingency.pred_n, contingency.n_true
    n = contingency.n_items
    if n == n_clusters:  # n = 1, too
        return 0.0
    a = sizes.astype(np.float64)
    apart = float(np.sum(a * (n - a))) / (float(n) * float(n - 1))
    return (n - n_clusters) / n * apart


def chance(clusters: Side, contingency: Contingency, pool: Pool) -> float:
    """Return the expected BCubed precision ("pred") or recall ("true") of shuffled items."""
    return 1.0 - expected_loss(clusters, contingency)


def adjusted(clusters: Side, contingency: Contingency, pool: Pool) -> float:
    """Return (score - expected) / (1 - expected), from the loss and its expectation.

    Where nothing can be lost, it is 1 for identical clusterings and 0 for others.
    """
    from fastbcubed.metrics.aggregation import overall

    most = expected_loss(clusters, contingency)
    if most == 0:
        same = contingency.n_cells == contingency.n_true == contingency.n_pred
        return 1.0 if same else 0.0
    loss = "over_merge_rate" if clusters == "pred" else "under_merge_rate"
    return float(1.0 - overall(contingency, [loss], pool=pool)[loss] / most)


def scores() -> Iterator[Metric]:
    """Yield the scores of the family "bcubed", the four aliases first."""
    for metric in pointwise.scores():
        name = metric.name
        if name in ("precision", "recall", "f1", "mean_f1"):
            source = "van Heusden et al. 2022" if name == "mean_f1" else "Bagga and Baldwin 1998"
            alias = f"bcubed_{name}"
            yield replace(metric, name=alias, family="bcubed", source=source, alias_of=name)
    higher = partial(Metric, family="bcubed", low=0.0, high=1.0, best="higher")
    sides: dict[Side, str] = {"true": "true", "pred": "predicted"}
    for side, adjective in sides.items():
        average = f"mean over {adjective} clusters, each once, of the mean over its items of"
        end = f"by_{side}_cluster"
        for name, share in ("precision", "tp / (tp + fp)"), ("recall", "tp / (tp + fn)"):
            yield higher(
                f"bcubed_{name}_{end}",
                summary=f"BCubed {name}, where every {adjective} cluster counts equally.",
                definition=f"{average} {share}",
                source="er-evaluation",
                score=partial(mean_of_clusters, side, name),
            )
        p, r = f"bcubed_precision_{end}", f"bcubed_recall_{end}"
        yield higher(
            f"bcubed_f1_{end}",
            summary=f"F1 of BCubed precision and recall, where every {adjective} cluster counts equally.",
            definition=f"2 P R / (P + R), with P = {p} and R = {r}",
            source="er-evaluation",
            score=partial(f1_of_clusters, side),
        )
    adapted = partial(higher, source="Moreno and Dias 2015", unweighted_only=True, experimental=True)
    yield adapted(
        "adapted_bcubed_precision",
        summary="BCubed precision for unbalanced data: two members of the predicted cluster must belong.",
        definition="mean over items of (tp / (tp + fp))^2",
        formula=adapted_precision,
    )
    yield adapted(
        "adapted_bcubed_recall",
        summary="BCubed recall for unbalanced data: two members of the true cluster must be found.",
        definition="mean over items of (tp / (tp + fn))^2",
        formula=adapted_recall,
    )
    needs = "adapted_bcubed_precision", "adapted_bcubed_recall"
    yield adapted(
        "adapted_bcubed_f1",
        summary="F1 of BCubed precision and recall for unbalanced data.",
        definition=f"2 P R / (P + R), with P = {needs[0]} and R = {needs[1]}",
        combine=partial(f1_of, *needs),
        needs=needs,
    )
    by_chance = partial(
        Metric,
        family="bcubed",
        source="fastbcubed",
        unweighted_only=True,
        labelled_only=True,
    )
    roles: dict[str, Side] = {"precision": "pred", "recall": "true"}
    for name, own in roles.items():
        share, apart = ("M / n", "a") if own == "pred" else ("K / n", "b")
        yield by_chance(
            f"chance_bcubed_{name}",
            low=0.0,
            high=1.0,
            best="neither",
            summary=f"BCubed {name} to expect by chance: items shuffled, cluster sizes kept.",
            definition=f"s + (1 - s) sum of {apart} ({apart} - 1) / (n (n - 1)), with s = {share};"
            " n items, K true clusters of sizes a, M predicted clusters of sizes b",
            score=partial(chance, own),
        )
    for name, own in roles.items():
        yield by_chance(
            f"adjusted_bcubed_{name}",
            low=-inf,
            high=1.0,
            best="higher",
            summary=f"BCubed {name} beyond chance: 0 is what shuffled items get, 1 is the best.",
            definition=f"(bcubed_{name} - E) / (1 - E), with E = chance_bcubed_{name};"
            " where E = 1: 1 if the clusterings are identical, else 0",
            score=partial(adjusted, own),
        )
