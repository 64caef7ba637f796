"""Gates on a comparison: no run may be worse than the baseline by more than a value."""

from __future__ import annotations

import math

from fastbcubed.comparison.compared import Compared
from fastbcubed.errors import OptionError
from fastbcubed.results.gates.baseline import ROUNDED
from fastbcubed.results.gates.gating import COVERAGES, Bound, Gate, subject_of, value_of
from fastbcubed.results.text.wording import label, score


def try_worse(comparison: Compared, bound: Bound) -> list[Gate]:
    """Say of each run whether a score is no more than `bound.value` worse than the baseline's; NaN is not."""
    if not comparison.experiments:
        raise OptionError("there is one run, so that none can be worse than the baseline; name another one")
    before = _value(comparison, comparison.baseline, bound)
    higher = subject_of(bound, bound.name).best == "higher"
    found = []
    for name in comparison.experiments:
        now = _value(comparison, name, bound)
        worse = before - now if higher else now - before
        figures = {
            "run": name,
            "score": bound.name,
            "slice": bound.slice,
            "value": now,
            "baseline": before,
            "worse_by": worse,
            "at_most_worse_by": bound.value,
        }
        change = f"{abs(worse):.3g} {'worse' if worse > 0 else 'better'}" if worse else "the same"
        told = f"is {score(now)}, {score(before)} in {label(comparison.baseline)}: "
        told += "n/a" if math.isnan(worse) else change
        passed = worse <= bound.value + ROUNDED
        subject = f"{label(name)}: {bound.subject}"
        found.append(Gate(subject, f"wanted at most {bound.value:g} worse", told, passed, figures))
    return found


def _value(comparison: Compared, name: str, bound: Bound) -> float:
    """Return a score of a run, or its coverage before it was restricted to common items."""
    if bound.name not in COVERAGES:
        return value_of(bound, comparison[name])
    rows = {row["run"]: row for row in comparison.coverage().to_pylist()}
    return float(rows[name][bound.name])
