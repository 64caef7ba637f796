"""NumPy arrays without dimensions, which look like lists and are none: refused by name wherever a list may be given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fastbcubed as fb
from fastbcubed.constraints import check_constraints
from fastbcubed.errors import FastBCubedError

TRUE, PRED, SOME = list("aabb"), list("xxxy"), {"country": list("uuvv")}
EV = fb.evaluate(TRUE, PRED, attributes=SOME)
TRUTH, LINKS = {"a": 1, "b": 1}, [("a", "b", 0.5)]


@pytest.mark.parametrize(
    "argument, value, call",
    [
        ("slices", "country", lambda given: fb.evaluate(TRUE, PRED, attributes=SOME, slices=given)),
        ("slices", "country", lambda given: fb.compare(TRUE, {"a": PRED}, attributes=SOME, slices=given)),
        ("slices", "country", lambda given: fb.diff(TRUE, PRED, attributes=SOME, slices=given)),
        ("slices", "true_size", lambda given: fb.sweep(TRUTH, LINKS, slices=given)),
        ("metrics", "f1", lambda given: fb.evaluate(TRUE, PRED, metrics=given)),
        ("metrics", "f1", lambda given: fb.compare(TRUE, {"a": PRED}, metrics=given)),
        ("metrics", "split_rate", lambda given: fb.diff(TRUE, PRED, metrics=given)),
        ("metrics", "f1", lambda given: fb.sweep(TRUTH, LINKS, metrics=given)),
        ("metrics", "f1", lambda given: fb.estimate(TRUTH, TRUTH, metrics=given)),
        ("checks", "rag_bag", lambda given: check_constraints("bcubed_f1", checks=given)),
        ("thresholds", 0.5, lambda given: fb.sweep(TRUTH, LINKS, thresholds=given)),
        (r"a width \(a number\) or a list of edges", 10, lambda given: fb.bins("year", given)),
        ("the subset must be a list of items or a mask", 1, EV.subset),
        ("'VIP' must be a list of items or a mask", 1, lambda given: EV.slices({"VIP": given})),
        ("a list of clusters", "ab", fb.Clustering.from_clusters),
        ("a list of items", "ab", lambda given: fb.Clustering.from_clusters([given])),
    ],
)
def test_arrays_without_dimensions(argument: str, value: Any, call: Callable[[Any], Any]) -> None:
    with pytest.raises(FastBCubedError, match=argument):
        call(np.array(value))


def test_what_to_pass_is_said() -> None:
    with pytest.raises(FastBCubedError, match=r"^metrics is a NumPy array .*array\('f1'.*\); pass \['f1'\]$"):
        fb.evaluate(TRUE, PRED, metrics=np.array("f1"))
    assert fb.evaluate(TRUE, PRED, metrics=np.array(["f1"])).f1 == EV.f1
    assert fb.evaluate(TRUE, PRED, metrics=np.str_("f1")).f1 == EV.f1
