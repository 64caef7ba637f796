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


def covering(
    axes: Sequence[Sequence[Any]], strength: int = 2, chosen: Sequence[tuple[int, ...]] = ()
) -> list[tuple[int, ...]]:
    """Return rows of places in the axes, `chosen` ones among them, such that any values of so many axes meet in a row.

    Greedy: each row is the combination, the earliest of those, that brings most meetings not seen before.
    """
    left = {row: _meetings(row, strength) for row in itertools.product(*(range(len(axis)) for axis in axes))}
    rows = list(chosen)
    seen = set().union(*(left.pop(row) for row in rows))
    while left := {row: new for row, own in left.items() if (new := own - seen)}:
        rows.append(max(left, key=lambda row: len(left[row])))
        seen |= left[rows[-1]]
    return sorted(rows)


def pairwise(*, indirect: Sequence[str] = (), **axes: Sequence[Any]) -> pytest.MarkDecorator:
    """Parametrize a test so that any three values of different axes meet; rows that no pair of values needs are big.

    What goes wrong does so where two options meet, seldom where three do: with more axes, most combinations would tell
    nothing.
    """
    values = list(axes.values())
    pairs = covering(values)
    rows = [
        pytest.param(
            *(axis[k] for axis, k in zip(values, row, strict=True)),
            marks=() if row in pairs else pytest.mark.big,
        )
        for row in covering(values, 3, pairs)
    ]
    return pytest.mark.parametrize(list(axes), rows, indirect=list(indirect))


def _meetings(row: Sequence[int], strength: int) -> set[tuple[tuple[int, int], ...]]:
    """Return the meetings of so many values of a row, each value with its axis; of all where there are fewer."""
    return set(itertools.combinations(enumerate(row), min(strength, len(row))))
