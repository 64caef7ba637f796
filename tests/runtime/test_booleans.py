"""Arguments that are True or False: all else is refused, wherever there is one."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import fastbcubed as fb
from fastbcubed.constraints import check_constraints
from fastbcubed.errors import OptionError

EV = fb.evaluate(list("aabb"), list("xxxy"), attributes={"country": list("uuvv")})
CMP = fb.compare(list("aabb"), {"old": list("xxxy"), "new": list("xyzz")})
DIFF = fb.diff(list("aabb"), list("xxxy"))
LINKS = [("a", "b", 0.9), ("b", "c", 0.5)]
TRUTH = {"a": 1, "b": 1, "c": 2}
SWEEP = fb.sweep(TRUTH, LINKS)
ESTIMATES = fb.estimate({"a": 1, "b": 1, "c": 2, "d": 2}, {"a": 1, "b": 2, "c": 2, "d": 2})
PAIRS = {
    "item": list(range(60)),
    "cluster": [k // 2 for k in range(60)],
    "country": ["at"] * 30 + ["de"] * 30,
}
ESTIMATED = fb.estimate(pa.table(PAIRS), {"old": {k: k for k in range(60)}}, slices=["country"])
EXPLAINED = fb.evaluate(pa.table(PAIRS), {k: k // 2 if k % 7 else -k for k in range(60)}).explain(min_items=5)
JUDGED = DIFF.sample_pairs(4).to_pandas().assign(verdict="same")

#: What takes a boolean, by what it is called and the name of the argument.
CALLS: dict[str, Callable[[Any, Path], Any]] = {
    "evaluate overlapping": lambda given, _: fb.evaluate([0, 1], [0, 1], overlapping=given),
    "evaluate paths": lambda given, _: fb.evaluate([0, 1], [0, 1], paths=given),
    "compare paths": lambda given, _: fb.compare([0, 1], {"a": [0, 1]}, paths=given),
    "diff paths": lambda given, _: fb.diff([0, 1], [0, 1], paths=given),
    "estimate paths": lambda given, _: fb.estimate(TRUTH, TRUTH, paths=given),
    "contingency overlapping": lambda given, _: fb.contingency([0, 1], [0, 1], overlapping=given),
    "compare overlapping": lambda given, _: fb.compare([0, 1], {"a": [0, 1]}, overlapping=given),
    "diff overlapping": lambda given, _: fb.diff([0, 1], [0, 1], truth=[0, 0], overlapping=given),
    "Clustering.from_dict overlapping": lambda given, _: fb.Clustering.from_dict(TRUTH, overlapping=given),
    "Clustering.from_links ascending": lambda given, _: fb.Clustering.from_links(
        LINKS, threshold=0.7, ascending=given
    ),
    "sweep ascending": lambda given, _: fb.sweep(TRUTH, LINKS, ascending=given),
    "Sweep.curve errors": lambda given, _: SWEEP.curve(errors=given),
    "Sweep.slices errors": lambda given, _: SWEEP.slices("true_size", errors=given),
    "Sweep.shown stronger": lambda given, _: SWEEP.shown(0.5, stronger=given),
    "Sweep.report overwrite": lambda given, path: SWEEP.report(path / "sweep.html", overwrite=given),
    "Sweep.report stages": lambda given, _: SWEEP.report(stages=given),
    "Sweep.save stages": lambda given, path: SWEEP.save(path / "sweep", stages=given),
    "Estimates.report overwrite": lambda given, path: ESTIMATES.report(
        path / "estimates.html", overwrite=given
    ),
    "Evaluation.slices errors": lambda given, _: EV.slices("country", errors=given),
    "Evaluation.source_pairs by_slice": lambda given, _: EV.source_pairs("country", by_slice=given),
    "Evaluation.macro f_of_means": lambda given, _: EV.macro("country", f_of_means=given),
    "Evaluation.report overwrite": lambda given, _: EV.report(overwrite=given),
    "Comparison.slices deltas": lambda given, _: CMP.slices("true_size", deltas=given),
    "Comparison.report overwrite": lambda given, _: CMP.report(overwrite=given),
    "Diff.ids revive": lambda given, _: fb.diff([1, 2], [1, 1]).ids(revive=given),
    "Diff.registry revive": lambda given, _: fb.diff([1, 2], [1, 1]).registry(revive=given),
    "Explanation.report overwrite": lambda given, path: EXPLAINED.report(overwrite=given),
    "EstimatedComparison.slices deltas": lambda given, _: ESTIMATED.slices("country", deltas=given),
    "EstimatedComparison.report overwrite": lambda given, path: ESTIMATED.report(overwrite=given),
    "Diff.slices errors": lambda given, _: DIFF.slices("baseline_size", errors=given),
    "Diff.report overwrite": lambda given, _: DIFF.report(overwrite=given),
    "estimate_pairs by_stratum": lambda given, _: fb.estimate_pairs(JUDGED, by_stratum=given),
    "load check": lambda given, path: fb.load(_saved(path), check=given),
    "check_constraints greater_is_better": lambda given, _: check_constraints(
        lambda true, pred: 1.0, checks=["rag_bag"], n_random=1, greater_is_better=given
    ),
}


def _saved(path: Path) -> Path:
    EV.save(path / "saved")
    return path / "saved"


@pytest.mark.cases(12, 99)
@pytest.mark.parametrize("name", CALLS)
def test_what_is_no_boolean_is_refused(name: str, tmp_path: Path) -> None:
    argument = name.split()[1]
    for given, shown in (("no", "'no'"), (1, "1"), ([], r"\[\]"), (np.ones(2, bool), "array")):
        with pytest.raises(OptionError, match=f"^{argument} must be True or False, not {shown}"):
            CALLS[name](given, tmp_path)
    if name != "diff overlapping":
        CALLS[name](np.False_, tmp_path)


def test_no_boolean_is_left_out() -> None:
    """Of functions, and of methods; classes and contingencies are made by these."""
    shown = {name: getattr(fb, name) for name in fb.__all__}
    named = {f"{name} {each}" for name, value in shown.items() for each in _booleans(value)}
    for name, value in shown.items():
        if inspect.isclass(value) and name != "Contingency":
            methods = {own: each for own, each in inspect.getmembers(value, callable) if own[0] != "_"}
            named |= {f"{name}.{own} {each}" for own, method in methods.items() for each in _booleans(method)}
    assert named == CALLS.keys() - {"check_constraints greater_is_better"}


def _booleans(function: Any) -> list[str]:
    """Return the arguments of a function whose defaults are True or False."""
    if not inspect.isroutine(function) or inspect.isbuiltin(function) or inspect.ismethoddescriptor(function):
        return []
    parameters = inspect.signature(function).parameters.values()
    return [each.name for each in parameters if isinstance(each.default, bool)]
