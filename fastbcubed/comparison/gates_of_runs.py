"""Gates on a comparison: no run may be worse than the baseline by more than a value."""

from __future__ import annotations

from dataclasses import replace

from fastbcubed.comparison.compared import Compared
from fastbcubed.errors import OptionError
from fastbcubed.results.gates.baseline import gate_of_change
from fastbcubed.results.gates.gating import COVERAGES, Bound, Gate, value_of
from fastbcubed.results.text.wording import label


def try_worse(comparison: Compared, bound: Bound) -> list[Gate]:
    """Say of each run whether a score is no more than `bound.value` worse than the baseline's; NaN is not."""
    if not comparison.experiments:
        raise OptionError("there is one run, so that none can be worse than the baseline; name another one")
    before, baseline = _value(comparison, comparison.baseline, bound), label(comparison.baseline)
    found = []
    for name in comparison.experiments:
        gate = gate_of_change(bound, _value(comparison, name, bound), before, baseline)
        figures = {"run": name, **gate.figures}
        found.append(replace(gate, subject=f"{label(name)}: {bound.subject}", figures=figures))
    return found


def _value(comparison: Compared, name: str, bound: Bound) -> float:
    """Return a score of a run, or its coverage before it was restricted to common items."""
    if bound.name not in COVERAGES:
        return value_of(bound, comparison[name])
    rows = {row["run"]: row for row in comparison.coverage().to_pylist()}
    return float(rows[name][bound.name])
