"""The registry: all scores by name, and the resolution of names to scores.

Each family declares its own scores in its file. `resolve` turns the names that a user requests into scores that are
defined for the given input.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import lru_cache
from math import inf
from typing import Any

from fastbcubed.errors import Message, MetricError, quoted
from fastbcubed.metrics.bcubed import pointwise
from fastbcubed.metrics.bcubed_variants import bcubed, elm
from fastbcubed.metrics.change import diff, quality
from fastbcubed.metrics.coreference import coreference
from fastbcubed.metrics.edit import edit
from fastbcubed.metrics.entropy import entropy
from fastbcubed.metrics.matching import matching
from fastbcubed.metrics.metric import Formula, Metric, weight_of_precision
from fastbcubed.metrics.overlap_scores import cice, extended, overlap
from fastbcubed.metrics.pairs import pairs
from fastbcubed.runtime.suggestions import most_similar

_FAMILIES = (
    pointwise, bcubed, elm, pairs, matching, entropy, edit, coreference, extended, cice(), overlap, diff, quality,
)  # fmt: skip

METRICS: dict[str, Metric] = {metric.name: metric for family in _FAMILIES for metric in family}

#: Families of scores, and what the scores of each are.
FAMILIES = {
    "pointwise": "Pointwise scores: means over items",
    "bcubed": "BCubed and its variants",
    "elm": "ELM: BCubed without the item itself",
    "pairs": "Pairwise scores",
    "matching": "Matching of clusters",
    "entropy": "Information and entropy",
    "edit": "Edit distances",
    "coreference": "Coreference",
    "overlap": "Overlapping clusters",
    "diff": "Changes from one clustering to another",
}

DEFAULT = ("precision", "recall", "f1", "mean_f1", "jaccard_distance", "over_merge_rate", "under_merge_rate")

#: Scores that a family includes in addition to its own.
BORROWED = {"diff": ("jaccard_distance",)}

OF_BETA = ("fbeta", "mean_fbeta")  # added by a beta other than 1; no family includes them


def lifted(formula: Formula, *, outside: bool = False) -> Metric:
    """Return a user's own score, made from its formula.

    With `outside`, there are no true negatives, and the formula gets None for them.
    """
    name = getattr(formula, "__name__", "") or "formula"
    definition = f"mean over items of {name}(tp, fp, fn, tn)"
    return Metric(
        name,
        family="own",
        low=-inf,
        high=inf,
        best="neither",
        summary="A formula of the user's own, lifted by the mean over items.",
        definition=definition,
        source="the user",
        formula=formula,
        uses_tn=not outside,
    )


def resolve(
    names: str | Metric | Iterable[str | Metric] | None = None,
    *,
    weighted: bool = False,
    weighting: str = "pointwise",
    outside: bool = False,
    overlapping: bool = False,
    cells_alone: bool = False,
    beta: float = 1.0,
) -> tuple[list[Metric], list[tuple[str, str]]]:
    """Return the scores to compute, and those to list as not computed, each with the reason.

    None gives `DEFAULT`; a family or "all" gives its members. Returns the scores in the given order, each once; an
    alias is left out if the score it stands for was chosen. The second result is (name, reason) for scores that belong
    to a requested family but are not defined for the input. Raises MetricError if a name is unknown, or if a score
    requested by name is not defined. A beta other than 1 adds fbeta and mean_fbeta. `cells_alone` states that cells are
    never combined with the weights of their items, as on Spark.

    >>> metrics, not_computed = resolve(["f1", "elm"], beta=2.0)
    >>> [metric.name for metric in metrics]
    ['f1', 'elm_precision', 'elm_recall', 'elm_f1', 'elm_mean_f1', 'fbeta', 'mean_fbeta']
    """
    weight_of_precision(beta)  # raises for an invalid beta
    if names is None:
        names = [name for name in DEFAULT if METRICS[name].on_covers or not overlapping]
    elif isinstance(names, str | Metric) or not isinstance(names, Iterable):
        names = (names,)
    names = tuple(names)
    plain = all(isinstance(name, str) for name in names)
    metrics, left = (_resolved if plain else _resolved.__wrapped__)(
        names, beta, weighted=weighted, weighting=weighting, outside=outside, overlapping=overlapping,
        cells_alone=cells_alone,
    )  # fmt: skip
    return list(metrics), list(left)


@lru_cache  # callers ask for the same few lists of scores
def _resolved(
    names: tuple[str | Metric, ...], beta: float, **of_input: Any
) -> tuple[list[Metric], list[tuple[str, str]]]:
    """Return the result of `resolve` for a tuple of names; `of_input` are the arguments of `Metric.undefined`."""
    extra = OF_BETA if beta != 1 else ()
    chosen: dict[str, Metric] = {}
    left: dict[str, str] = {}
    for name in map(known_as, (*names, *extra)):
        for metric in members(name):
            reason = metric.undefined(**of_input)
            if reason is None:
                chosen.setdefault(metric.name, metric.at(beta))
            elif metric.name == name or metric is name:
                raise metric.not_defined(reason)
            else:
                left[metric.name] = Message(reason)
    metrics = [metric for metric in chosen.values() if metric.alias_of not in chosen]
    return metrics, list(left.items())


def members(name: object) -> list[Metric]:
    """Return the score with this name, or the members of the family with this name."""
    if isinstance(name, Metric):
        return [name]
    if not isinstance(name, str):
        raise MetricError(
            f"A score is named by a string, not {quoted(name)}. Make a score of your own formula"
            " with fastbcubed.metrics.pointwise_score, or with `metric` of an evaluation."
        )
    if name in METRICS:
        return [METRICS[name]]
    if name in FAMILIES or name == "all":
        everything = [metric for metric in METRICS.values() if metric.name not in OF_BETA]
        borrowed = BORROWED.get(name, ())
        return [m for m in everything if name in ("all", m.family) or m.name in borrowed]
    raise MetricError(f"Unknown score {quoted(name)}. {_suggestion(name)}")


#: Other names and short forms of scores, where only one score can be meant.
SYNONYMS = {
    "ari": "adjusted_rand", "adjusted_rand_score": "adjusted_rand", "adjusted_rand_index": "adjusted_rand",
    "ri": "rand", "rand_score": "rand", "rand_index": "rand",
    "fmi": "pair_fowlkes_mallows", "fowlkes_mallows_score": "pair_fowlkes_mallows",
    "ami_score": "ami", "adjusted_mutual_info_score": "ami", "adjusted_mutual_info": "ami",
    "nmi_score": "nmi", "normalized_mutual_info_score": "nmi", "normalized_mutual_info": "nmi",
    "homogeneity_score": "homogeneity", "completeness_score": "completeness",
    "v_measure_score": "v_measure", "vm": "v_measure", "vi": "variation_of_information",
    "b3": "bcubed", "b_cubed": "bcubed", "b3_precision": "bcubed_precision", "b3_recall": "bcubed_recall",
    "b3_f1": "bcubed_f1", "b3_mean_f1": "bcubed_mean_f1", "bcubed_fscore": "bcubed_f1",
    "pairwise": "pairs", "pairwise_precision": "pair_precision", "pairwise_recall": "pair_recall",
    "pairwise_f1": "pair_f1", "pairwise_fscore": "pair_f1", "gmd": "merge_distance",
    "generalized_merge_distance": "merge_distance", "van_dongen": "split_join", "purity_score": "purity",
    "split_distance": "split_jaccard_distance",
    "jaccard": "jaccard_index", "f": "f1", "f_measure": "f1", "f1_score": "f1", "fscore": "f1",
}  # fmt: skip
#: Ambiguous names, which only lead to suggestions; e.g. scikit-learn's mutual information is in nats.
ALSO_CALLED = {
    "mi": "mutual_info",
    "mutual_info_score": "mutual_info",
    "fowlkes_mallows": "pair_fowlkes_mallows",
}


def known_as(name: object) -> object:
    """Return our name for another name of a score or family; unknown names are returned unchanged.

    >>> known_as("ARI"), known_as("adjusted_rand"), known_as("b3-f1")
    ('adjusted_rand', 'adjusted_rand', 'bcubed_f1')
    """
    if not isinstance(name, str) or name in METRICS or name in FAMILIES:
        return name
    return SYNONYMS.get(_spelled(name), name)


def computed_as(name: str, computed: Collection[str]) -> str | None:
    """Return the name under which a score was computed: its own, a synonym or an alias; None if it was not."""
    meant = known_as(name)
    if meant in computed:
        return str(meant)
    root = _root(str(meant))
    return next((each for each in computed if root is not None and _root(each) == root), None)


def _root(name: str) -> str | None:
    """Return the score that a name of the registry stands for."""
    metric = METRICS.get(name)
    return None if metric is None else metric.alias_of or name


def _spelled(name: str) -> str:
    return name.lower().replace("-", "_").replace(" ", "_")


def _suggestion(name: str) -> str:
    if (called := ALSO_CALLED.get(_spelled(name))) is not None:
        return f"Did you mean {called!r}?"
    known = {metric.item_name: metric.name for metric in METRICS.values() if metric.item_name}
    known |= {each: each for each in (*METRICS, *FAMILIES)}
    near = most_similar(name.lower(), known)
    if near:
        return f"Did you mean {' or '.join(dict.fromkeys(repr(known[n]) for n in near))}?"
    families = ", ".join(map(repr, FAMILIES))
    return f'Pass names of scores, or a family ({families}), or "all".'
