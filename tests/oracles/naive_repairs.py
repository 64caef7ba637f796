"""The naive twin of repairs: rows of the prediction that are labelled anew, and everything evaluated again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from naive import Alone, Naive, evaluate


def repaired(naive: Naive, prediction: dict[Any, Any], kind: str, label: Any) -> dict[Any, Any]:
    """Return the prediction with a repair made, after others; `naive` is what it was made from at first."""
    after = dict(prediction)
    if kind == "gather":  # also items that the prediction lacks
        return after | {e: ("gathered", label) for e, cluster in naive.true.items() if cluster == label}
    for e, cluster in prediction.items():
        if cluster == label:  # what the truth says nothing of goes together
            after[e] = ("split", label, naive.true.get(e))
    return after


def scores(naive: Naive, prediction: dict[Any, Any], options: dict[str, Any]) -> tuple[Any, Any, Any]:
    """Return F1, precision and recall of a prediction that repairs have made."""
    again = evaluate(naive.truth, prediction, naive.weight, **options)
    return tuple(again.mean(name) for name in ("f1", "precision", "recall"))


def alone(naive: Naive, options: dict[str, Any]) -> dict[tuple[str, Any], tuple[Any, ...]]:
    """Return what each repair that has a name, and brings something, adds to F1, precision and recall."""
    before = scores(naive, naive.prediction, options)
    found = {}
    for kind, label in _named(naive):
        after = scores(naive, repaired(naive, naive.prediction, kind, label), options)
        gains = tuple(b - a for a, b in zip(before, after, strict=True))
        if gains[0] > 0:
            found[kind, label] = gains
    return found


def _named(naive: Naive) -> Iterable[tuple[str, Any]]:
    for kind, labels in (("split", naive.pred.values()), ("gather", naive.true.values())):
        yield from ((kind, label) for label in set(labels) if not isinstance(label, Alone))
