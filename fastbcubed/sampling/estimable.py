"""The scores that a sample of true clusters can tell, by name, and what a user's choice of them comes to."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import inf
from typing import Any, NamedTuple

from fastbcubed.errors import MetricError
from fastbcubed.metrics.metric import Metric
from fastbcubed.metrics.rates import weight_of_precision
from fastbcubed.metrics.registry import FAMILIES, METRICS, known_as
from fastbcubed.sampling.drawn import Drawn
from fastbcubed.sampling.estimators import (
    RATIOS,
    Estimate,
    Ratio,
    estimate_f,
    estimate_ratio,
    over_items,
)

__all__ = ["DESCRIPTIVE", "Estimable", "choose"]


class Estimable(NamedTuple):
    """A score that can be estimated: its range, and what estimates it."""

    name: str
    low: float
    high: float
    estimate: Callable[[Drawn], Estimate]


#: What says how large true clusters are, rather than how good the prediction is.
DESCRIPTIVE = ("matching_rate", "mean_cluster_size")
RANGES = {"matching_rate": (0.0, 1.0), "mean_cluster_size": (1.0, inf)}
#: Scores that are estimated unless others are named.
DEFAULT = (
    "precision", "recall", "f1",
    "bcubed_precision_by_true_cluster", "bcubed_recall_by_true_cluster", "bcubed_f1_by_true_cluster",
    "pair_precision", "pair_recall", "pair_f1",
    "cluster_precision", "cluster_recall", "cluster_f1",
    *DESCRIPTIVE,
)  # fmt: skip
#: F1 and the F of another beta, which comes with it where there is one.
F_OF_BETA = {
    "f1": "fbeta",
    "mean_f1": "mean_fbeta",
    "bcubed_f1_by_true_cluster": "bcubed_fbeta_by_true_cluster",
    "pair_f1": "pair_fbeta",
    "cluster_f1": "cluster_fbeta",
}
#: Scores that are one ratio for each alpha, and those that are an F of two of them.
F_RATIOS = {"pair": "pair_f", "cluster": "cluster_f"}
BY_CLASS = "bcubed_precision_by_true_cluster", "bcubed_recall_by_true_cluster"
#: The family of what describes the true clusters.
SIZES = "sizes"


def choose(names: Any, beta: float) -> tuple[list[Estimable], dict[str, str]]:
    """Return the scores to estimate, in the order given, and those of a family that cannot be, with the reason.

    >>> [each.name for each in choose(["pairs", "f1"], 2.0)[0]]
    ['pair_precision', 'pair_recall', 'pair_f1', 'pair_fbeta', 'f1', 'fbeta']
    """
    weight_of_precision(beta)  # raises for a beta that is none
    if names is None:
        names = DEFAULT
    elif isinstance(names, str) or not isinstance(names, Iterable):
        names = (names,)
    chosen: dict[str, Estimable] = {}
    left: dict[str, str] = {}
    for name in names:
        members = _members(name)
        for each in members:
            for known in (each, F_OF_BETA.get(each, "") if beta != 1 else ""):
                found = _estimable(known, beta)
                if found is not None:
                    chosen.setdefault(known, found)
                elif known and members == [name]:
                    raise MetricError(_why_not(known))
                elif known:
                    left[known] = "not told by a sample of true clusters"
    if not chosen:
        raise MetricError("metrics names no score that can be estimated; leave it out for the usual ones")
    roots = {name: METRICS[name].alias_of for name in chosen if name in METRICS}
    return [each for name, each in chosen.items() if roots.get(name) not in chosen], left


def _members(name: Any) -> list[str]:
    """Return a score, or the members of a family, by the names that they have here."""
    if not isinstance(name, str):
        raise MetricError(f"a score is named by a string, not {name!r}; formulas of one's own are not served")
    known = str(known_as(name))
    if known == SIZES:
        return list(DESCRIPTIVE)
    if known == "all":
        return [*(m for m in METRICS if m not in F_OF_BETA.values()), *DESCRIPTIVE]
    if known in FAMILIES:
        return [m.name for m in METRICS.values() if m.family == known and m.name not in F_OF_BETA.values()]
    return [known]


def _why_not(name: str) -> str:
    if name not in METRICS and name not in (*F_OF_BETA.values(), *RATIOS):
        return f"unknown score {name!r}; fastbcubed.estimate has {', '.join(DEFAULT)} by default"
    return (
        f"{name} cannot be estimated from a sample of true clusters. What can: means over items that take no true "
        f"negatives, such as jaccard_distance, and {', '.join(DEFAULT[3:])}"
    )


def _estimable(name: str, beta: float) -> Estimable | None:
    """Return a score that can be estimated; None for any other."""
    metric = METRICS.get(name)
    root = METRICS[metric.alias_of] if metric is not None and metric.alias_of else metric
    stem, _, kind = name.rpartition("_f")
    if name in RATIOS and name not in F_RATIOS.values():
        low, high = RANGES.get(name, (0.0, 1.0))
        return Estimable(name, low, high, lambda drawn: estimate_ratio(RATIOS[name](drawn, 0.5), drawn))
    if kind in ("1", "beta") and stem in F_RATIOS:
        alpha = weight_of_precision(beta if kind == "beta" else 1.0)
        ratio = RATIOS[F_RATIOS[stem]]
        return Estimable(name, 0.0, 1.0, lambda drawn: estimate_ratio(ratio(drawn, alpha), drawn))
    if name in ("bcubed_f1_by_true_cluster", "bcubed_fbeta_by_true_cluster"):
        alpha = weight_of_precision(beta if "fbeta" in name else 1.0)
        of_class = [RATIOS[each] for each in BY_CLASS]
        return Estimable(
            name, 0.0, 1.0, _f_of(lambda drawn: [make(drawn, alpha) for make in of_class], alpha)
        )
    if root is None:
        return None
    if _is_of_items(root):
        return Estimable(
            name, root.low, root.high, lambda drawn: estimate_ratio(_of_items(root, beta, drawn), drawn)
        )
    if root.name.endswith(("f1", "fbeta")) and len(root.needs) == 2 and all(map(_is_of_items, root.needs)):
        alpha = weight_of_precision(beta if root.name.endswith("fbeta") else 1.0)
        return Estimable(
            name, 0.0, 1.0, _f_of(lambda drawn: [_of_items(need, beta, drawn) for need in root.needs], alpha)
        )
    return None


def _is_of_items(metric: Metric) -> bool:
    """Tell whether a score is a mean over items that takes tp, fp and fn of each alone."""
    return metric.formula is not None and not (metric.uses_tn or metric.labelled_only or metric.covers_only)


def _of_items(metric: Metric, beta: float, drawn: Drawn) -> Ratio:
    formula = metric.at(beta).formula
    assert formula is not None
    return over_items(drawn, formula, leave_one_out=metric.leave_one_out)


def _f_of(ratios: Callable[[Drawn], list[Ratio]], alpha: float) -> Callable[[Drawn], Estimate]:
    def estimate(drawn: Drawn) -> Estimate:
        precision, recall = ratios(drawn)
        return estimate_f(precision, recall, alpha, drawn)

    return estimate
