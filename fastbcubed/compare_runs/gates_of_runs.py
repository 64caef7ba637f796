"""Gates on a comparison: bounds on each run, and on how much worse than the baseline one may be."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from fastbcubed.compare_runs.rankings import lacks_more, n_dropped
from fastbcubed.errors import Message, OptionError, arg
from fastbcubed.render.number_formats import count, counted, label
from fastbcubed.results.baseline_gates import gate_of_change
from fastbcubed.results.gates import (
    COVERAGES,
    Bound,
    Gate,
    counts_mentions,
    exactly,
    gate_of,
    on_part,
    value_of,
)

if TYPE_CHECKING:
    from fastbcubed.compare_runs.comparison import Comparison


def try_bound(comparison: Comparison, bound: Bound) -> list[Gate]:
    """Say of each run whether a score, or its coverage, is within a bound; NaN is not."""
    return [
        _of_run(
            name,
            bound,
            on_part(
                exactly(gate_of(bound, _value(comparison, name, bound)), bound, comparison[name]),
                bound, comparison[name],
                comparison._coverage[name], partial(comparison._own_scores.__getitem__, name),
            ),
        )
        for name in comparison
    ]  # fmt: skip


def try_worse(comparison: Comparison, bound: Bound) -> list[Gate]:
    """Say of each run whether a score is no more than `bound.value` worse than the baseline's; NaN is not.

    None passes that drops more of the truth than the baseline, or where the items compared are half of it or less.
    """
    if not comparison.experiments:
        raise OptionError("there is one run, so that none can be worse than the baseline; name another one")
    before, baseline = _value(comparison, comparison.baseline, bound), label(comparison.baseline)
    found = []
    for name in comparison.experiments:
        gate = gate_of_change(bound, _value(comparison, name, bound), before, baseline)
        whole = bound.name in COVERAGES or counts_mentions(bound, comparison[name])
        if not whole and (reason := _unlike_items(comparison, name)):
            gate = replace(gate, passed=False, reason=reason)
        found.append(_of_run(name, bound, gate))
    return found


def _unlike_items(comparison: Comparison, name: str) -> str:
    """Return why a gate on a run and the baseline cannot pass on the items that both score; "" if it can.

    The run drops more of the truth than the baseline, or the baseline or, on common items, another run drops half.
    """
    pair = name, comparison.baseline
    others = [each for each in comparison if each not in pair] if comparison.align == "common" else []
    for run in (*pair, *others):
        if run != name and comparison._coverage[run].truth_coverage > 0.5:
            continue  # what the run itself scores is not worse for lacking items elsewhere
        if other := next((each for each in pair if lacks_more(comparison, run, each)), None):
            lacks = "It lacks" if run == name else f"{label(run)} lacks"
            than = "it" if other == name else label(other)
            n, n_other = (n_dropped(comparison, each) for each in (run, other))
            return Message(
                f"{lacks} {counted(n, 'item')} of the truth, and {than} {count(n_other)}, which are "
                f"dropped; pass {arg('unmatched', {'truth': 'singleton'})}"
            )
    return ""


def _of_run(name: str, bound: Bound, gate: Gate) -> Gate:
    return replace(gate, subject=f"{label(name)}: {bound.subject}", figures={"run": name, **gate.figures})


def _value(comparison: Comparison, name: str, bound: Bound) -> float:
    """Return a score of a run, or its coverage before it was restricted to common items."""
    if bound.name not in COVERAGES:
        return value_of(bound, comparison[name])
    return float(getattr(comparison._coverage[name], bound.name))
