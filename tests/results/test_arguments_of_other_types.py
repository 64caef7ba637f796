"""Arrays, lists and other things that cannot be compared, where an argument is a text or a number: named errors."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hostile import LABELS, OTHER, PREDICTION, TRUTH, refused

import fastbcubed as fb
from fastbcubed.errors import ColumnError, MetricError, OptionError, SliceError

ODD = [
    ["f1", "recall"],
    np.array([1, 2]),
    np.array(["f1"]),
    pd.Series(["f1"]),
    pa.array(["f1"]),
    {},
    date(2020, 1, 1),
]
LINKS = {"left": ["a"], "right": ["b"], "score": [0.5]}
SIDES = {"a": 1, "b": 1, "c": 2}, {"a": 1, "b": 2, "c": 2}
ev = fb.evaluate(TRUTH, PREDICTION)
cmp = fb.compare(TRUTH, {"old": PREDICTION, "new": TRUTH})
diff = fb.diff(PREDICTION, TRUTH)
sweep = fb.sweep(SIDES[0], LINKS)

CALLS: dict[str, tuple[type[fb.FastBCubedError], str, Callable[[Any], Any]]] = {
    "keep": (OptionError, "keep must be", lambda odd: fb.evaluate(*SIDES, keep=odd)),
    "engine": (OptionError, "engine must be", lambda odd: fb.evaluate(*SIDES, engine=odd)),
    "weighting": (OptionError, "weighting must be", lambda odd: fb.evaluate(*SIDES, weighting=odd)),
    "nulls": (OptionError, "nulls= must be", lambda odd: fb.evaluate(*SIDES, nulls=odd)),
    "unmatched": (OptionError, "unmatched", lambda odd: fb.evaluate(*SIDES, unmatched={"truth": odd})),
    "clusters": (MetricError, "by", lambda odd: ev.clusters("pred", order_by=odd)),
    "outcome": (OptionError, "the outcome of", lambda odd: ev.clusters("pred", outcome=odd)),
    "items": (MetricError, "cannot order by", lambda odd: ev.items(order_by=odd)),
    "slices": (MetricError, "cannot order by", lambda odd: ev.slices("true_size", order_by=odd)),
    "cells": (MetricError, "cannot order by", lambda odd: ev.cells(order_by=odd)),
    "baseline": (
        OptionError,
        "the baseline",
        lambda odd: fb.compare(SIDES[0], {"new": SIDES[1]}, baseline=odd),
    ),
    "align": (OptionError, "align must be", lambda odd: fb.compare(SIDES[0], {"new": SIDES[1]}, align=odd)),
    "run": (OptionError, "there is no run", lambda odd: cmp[odd]),
    "run of clusters": (OptionError, "there is no run", lambda odd: cmp.clusters(run=odd)),
    "order of runs": (OptionError, "order_by must be", lambda odd: cmp.items(order_by=odd)),
    "side of runs": (OptionError, "side must be", lambda odd: cmp.cluster(odd, 1)),
    "adjust": (OptionError, "adjust must be", lambda odd: cmp.deltas(adjust=odd)),
    "unlabelled": (
        OptionError,
        "unlabelled must be",
        lambda odd: fb.diff(*SIDES, truth=SIDES[0], unlabelled=odd),
    ),
    "order in a diff": (MetricError, "ordered by", lambda odd: diff.items(order_by=odd)),
    "outcome in a diff": (OptionError, "the outcome of", lambda odd: diff.clusters("baseline", outcome=odd)),
    "average": (
        OptionError,
        "average_method must be",
        lambda odd: fb.metrics.ami(LABELS, OTHER, average_method=odd),
    ),
    "missing": (OptionError, "missing must be", lambda odd: fb.estimate(*SIDES, missing=odd)),
    "best": (MetricError, "no score", lambda odd: sweep.best(odd)),
    "JSON": (OptionError, "indent must be a number of spaces", lambda odd: ev.to_json(indent=odd)),
    "JSON of runs": (OptionError, "indent must be a number of spaces", lambda odd: cmp.to_json(indent=odd)),
}


@pytest.mark.parametrize(
    "odd", ODD, ids=lambda odd: type(odd).__name__ + str(len(odd) if hasattr(odd, "__len__") else "")
)
@pytest.mark.parametrize("call", CALLS)
def test_what_is_no_text_or_number(call: str, odd: Any) -> None:
    error, said, asked = CALLS[call]
    with refused(error, said):
        asked(odd)


def test_arrays_without_dimensions() -> None:
    """NumPy says that they can be iterated over."""
    none = np.array(3)
    for columns in (lambda: ev.items(none), lambda: ev.item("a", columns=none), lambda: diff.items(none)):
        with refused(OptionError, "columns must be names of attributes, not"):
            columns()
    with refused(OptionError, "kinds must be"):
        ev.repairs(none)


def test_orders_that_are_empty() -> None:
    for order_by in ("", 0, False, [], {}):
        with refused(MetricError, "cannot order by", repr(order_by)):
            ev.cells(order_by=order_by)


def test_spaces_of_json() -> None:
    assert ev.to_json(indent=None).count("\n") == 0
    assert ev.to_json(indent=np.int64(1)).startswith('{\n "')
    for indent in ("\t", "nope", True, -1, 1.5, 10**30):
        with refused(OptionError, "indent must be a number of spaces", repr(indent)):
            ev.to_json(indent=indent)


def test_limits_beyond_64_bits() -> None:
    assert len(cmp.slices("true_size", limit=2**63)) == len(cmp.slices("true_size"))
    assert fb.sweep(SIDES[0], LINKS, noise=10**30).best().threshold == sweep.best().threshold


def test_slices_that_are_a_number_of_numpy() -> None:
    with refused(SliceError, "slices must be an attribute"):
        fb.evaluate(*SIDES, slices=np.float64(2.0))
    with refused(ColumnError, "'nope'"):
        fb.evaluate(LABELS, OTHER, slices=np.array(["nope"]))


#: What takes a beta, by its name.
OF_BETA: dict[str, Callable[[Any], Any]] = {
    "evaluate": lambda beta: fb.evaluate(*SIDES, beta=beta),
    "overlapping": lambda beta: fb.evaluate(*SIDES, beta=beta, overlapping=True),
    "compare": lambda beta: fb.compare(SIDES[0], dict(zip("xy", SIDES, strict=True)), beta=beta),
    "sweep": lambda beta: fb.sweep(SIDES[0], LINKS, beta=beta),
    "estimate": lambda beta: fb.estimate(SIDES[0], SIDES[1], beta=beta),
    "estimate runs": lambda beta: fb.estimate(SIDES[0], dict(zip("xy", SIDES, strict=True)), beta=beta),
}


@pytest.mark.filterwarnings("ignore::fastbcubed.EvaluationWarning")
@pytest.mark.parametrize("way", OF_BETA)
@pytest.mark.parametrize(
    ("beta", "as_float"),
    [
        (np.float64(2), 2.0),
        (np.float32(0.5), 0.5),
        (np.int8(2), 2.0),
        (Fraction(1, 2), 0.5),
        (10**400, float("inf")),
        (float("inf"), float("inf")),
    ],
    ids=["float64", "float32", "int8", "Fraction", "10**400", "inf"],
)
def test_a_beta_of_any_type_is_a_float(way: str, beta: Any, as_float: float, tmp_path: Path) -> None:
    found, usual = OF_BETA[way](beta), OF_BETA[way](as_float)
    assert repr(found) == repr(usual)
    assert found._repr_html_() == usual._repr_html_()
    assert found.to_json()
    assert found.report().html
    found.save(tmp_path)
    assert repr(fb.load(tmp_path)) == repr(found)
