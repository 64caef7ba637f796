"""How much a test tries: all of it in CI, a share where somebody waits."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

__all__ = ["covering", "examples", "pairwise"]


def examples(n: int, *, suppress_health_check: Sequence[HealthCheck] = (), **options: Any) -> settings:
    """Return settings that try n examples under a profile of 100 examples, and a share under one of fewer.

    Health checks that the profile suppresses stay suppressed beside those named here.
    """
    profile = settings()
    return settings(
        max_examples=math.ceil(n * profile.max_examples / 100),
        suppress_health_check=[*profile.suppress_health_check, *suppress_health_check],
        **options,
    )


def covering(axes: Sequence[Sequence[Any]]) -> list[tuple[int, ...]]:
    """Return rows of places in the axes, such that any two values of two axes meet in a row.

    Greedy: each row is the combination, the earliest of those, that brings most pairs not seen before.
    """
    rows = list(itertools.product(*(range(len(axis)) for axis in axes)))
    missing = set().union(*map(_pairs, rows))
    chosen = []
    while missing:
        chosen.append(max(rows, key=lambda row: len(_pairs(row) & missing)))
        missing -= _pairs(chosen[-1])
    return sorted(chosen)


def pairwise(*, indirect: Sequence[str] = (), **axes: Sequence[Any]) -> pytest.MarkDecorator:
    """Parametrize a test over all combinations; those that no pair of values needs are slow."""
    needed = set(covering(list(axes.values())))
    combinations = itertools.product(*(enumerate(axis) for axis in axes.values()))
    rows = []
    for combination in combinations:
        places, values = zip(*combination, strict=True)
        rows.append(pytest.param(*values, marks=() if places in needed else pytest.mark.slow))
    return pytest.mark.parametrize(list(axes), rows, indirect=list(indirect))


def _pairs(row: Sequence[int]) -> set[tuple[tuple[int, int], tuple[int, int]]]:
    """Return the pairs of values of a row, each value with its axis."""
    return set(itertools.combinations(enumerate(row), 2))
