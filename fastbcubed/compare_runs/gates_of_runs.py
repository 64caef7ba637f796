"""Gates on a comparison: bounds on each run, and on how much worse than the baseline one may be."""

from __future__ import annotations

from dataclasses import replace

from fastbcubed.compare_runs.comparison_base import Compared
from fastbcubed.errors import OptionError
from fastbcubed.results.baseline import gate_of_change
from fastbcubed.results.gates import COVERAGES, Bound, Gate, gate_of, value_of
from fastbcubed.results.wording import count, label


def try_bound(comparison: Compared, bound: Bound) -> list[Gate]:
    """Say of each run whether a score, or its coverage, is within a bound; NaN is not."""
    return [_of_run(name, bound, gate_of(bound, _value(comparison, name, bound))) for name in comparison]


def try_worse(comparison: Compared, bound: Bound) -> list[Gate]:
    """Say of each run whether a score is no more than `bound.value` worse than the baseline's; NaN is not.

    One that drops more of the truth than the baseline does not pass either, as in `Baseline.try_bound`.
    """
    if not comparison.experiments:
        raise OptionError("there is one run, so that none can be worse than the baseline; name another one")
    before, baseline = _value(comparison, comparison.baseline, bound), label(comparison.baseline)
    found = []
    for name in comparison.experiments:
        gate = gate_of_change(bound, _value(comparison, name, bound), before, baseline)
        if bound.name not in COVERAGES and comparison.lacks_more(name, comparison.baseline):
            n, n_before = map(comparison.n_dropped, (name, comparison.baseline))
            reason = (
                f"It lacks {count(n)} items of the truth, and {baseline} {count(n_before)}, which are dropped; pass "
                'unmatched={"truth": "singleton"}'
            )
            gate = replace(gate, passed=False, reason=reason)
        found.append(_of_run(name, bound, gate))
    return found


def _of_run(name: str, bound: Bound, gate: Gate) -> Gate:
    return replace(gate, subject=f"{label(name)}: {bound.subject}", figures={"run": name, **gate.figures})


def _value(comparison: Compared, name: str, bound: Bound) -> float:
    """Return a score of a run, or its coverage before it was restricted to common items."""
    if bound.name not in COVERAGES:
        return value_of(bound, comparison[name])
    return float(getattr(comparison.coverage_of[name], bound.name))
