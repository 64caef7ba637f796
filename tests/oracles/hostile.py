"""What the tests of hostile input share: a small clustering, and how to expect an error."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pytest

from fastbcubed import Evaluation, EvaluationWarning, FastBCubedError, evaluate

__all__ = ["LABELS", "OTHER", "PREDICTION", "SCORES", "TRUTH", "quietly", "refused", "scores", "table"]

LABELS, OTHER = [1, 1, 2], [1, 2, 2]


def table(items: Any, clusters: Any, **others: Any) -> pa.Table:
    return pa.table({"item": items, "cluster": clusters, **others})


TRUTH, PREDICTION = table(["a", "b", "c"], LABELS), table(["a", "b", "c"], OTHER)
#: Precision and recall of these two, worked by hand: (1 + 1/2 + 1/2) / 3 and (1/2 + 1/2 + 1) / 3.
SCORES = (2 / 3, 2 / 3)


def scores(*sides: Any, **options: Any) -> tuple[float, float]:
    """Return precision and recall."""
    ev = evaluate(*sides, metrics=["precision", "recall"], **options)
    return ev.precision, ev.recall


def quietly(*sides: Any, **options: Any) -> Evaluation:
    """Evaluate where dropping items flatters, which warns."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EvaluationWarning)
        return evaluate(*sides, **options)


@contextmanager
def refused(error: type[FastBCubedError], *said: str) -> Iterator[None]:
    """Expect this very error, all of these words in its message, and a message that one can read."""
    with pytest.raises(FastBCubedError) as caught:
        yield
    message = str(caught.value)
    assert type(caught.value) is error, f"{type(caught.value).__name__}: {message}"
    for words in said:
        assert words in message, f"{words!r} is not in: {message}"
    assert len(message) < 1000
