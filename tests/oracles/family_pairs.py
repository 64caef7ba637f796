"""The classical families on generated clusterings, side by side with their naive twins."""

import math
import warnings
from fractions import Fraction

import naive_families

import fastbcubed as fb
from fastbcubed.errors import EvaluationWarning


def evaluate(pair, weight=None, **options):
    """Evaluate without the warning that dropping flatters."""
    if weight is not None:
        options["weight"] = by_item(pair, weight)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EvaluationWarning)
        return fb.evaluate(*pair, **options)


def by_item(pair, weight):
    return None if weight is None else dict(zip(pair.items, weight, strict=True))


def differences(pair, weight, names, room=1e-12):
    """Return the scores that differ from their twins by more than room * max(1, |score|)."""
    found = evaluate(pair, weight, metrics=names).overall
    wrong = {}
    for name in names:
        expected = Fraction(naive_families.score(name, *pair, by_item(pair, weight)))
        here = room.get(name, 1e-12) if isinstance(room, dict) else room
        if not (
            math.isfinite(found[name])
            and abs(Fraction(found[name]) - expected) <= here * max(1, abs(expected))
        ):
            wrong[name] = (found[name], float(expected))
    return wrong
