"""Gates on a comparison: bounds on each run, and on how much worse than the baseline a run may be.

An evaluation may also have a baseline, which is an earlier, saved evaluation: see `Baseline`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from fastbcubed.compare_runs.comparison import Comparison
from fastbcubed.compare_runs.differences import adjusted
from fastbcubed.compare_runs.rankings import lacks_more, n_dropped
from fastbcubed.compare_runs.units import scores_without_errors, why_no_errors
from fastbcubed.errors import FileFormatError, Message, MetricError, OptionError, arg
from fastbcubed.metrics.metric import without_rounding
from fastbcubed.metrics.registry import computed_as
from fastbcubed.render.json import plain
from fastbcubed.render.number_formats import count, counted, label, score_text, with_interval
from fastbcubed.results.evaluation import Evaluation
from fastbcubed.results.gates import (
    COVERAGES,
    SIGNIFICANT,
    Bound,
    Gate,
    counts_mentions,
    exactly,
    gate_of,
    gate_on,
    is_score,
    on_part,
    require_interval,
    same_slicing,
    slice_of,
    slices_of,
    subject_of,
    value_of,
)
from fastbcubed.results.load import evaluation_of, read_saved
from fastbcubed.results.saved_files import MANIFEST, is_in_file, read_manifest
from fastbcubed.results.slices import name_columns, slice_name
from fastbcubed.results.standard_errors import COMPONENT
from fastbcubed.runtime.arguments import path_of
from fastbcubed.runtime.object_attributes import cached_property

#: The relative difference in the truth's weight that may come from another order of summation.
ROUNDING = 1e-9
#: The name of an evaluation in messages that compare it with its baseline.
NOW = "the prediction"


def require_worse(bound: Bound, written: str) -> Bound:
    """Return a bound on how much worse a score, or how different a size, may be; raise OptionError if invalid."""
    name, _, _, best = subject_of(bound, written)
    require_interval(bound, written)
    if best == "neither" and is_score(bound.name):
        raise OptionError(f"{written}: neither higher nor lower {name} is better, so no run can be worse")
    if not 0 <= bound.value < math.inf:
        raise OptionError(
            f"{written}: the allowed {'loss' if is_score(bound.name) else 'difference'} of {name} must be 0 or more"
        )
    return replace(bound, name=name)


def try_bound(comparison: Comparison, bound: Bound) -> list[Gate]:
    """Return for each run whether a score, or its coverage, is within a bound; NaN is not."""
    return [
        of_run(
            name,
            bound,
            on_part(
                _gate_on(comparison, name, bound), bound, comparison[name],
                comparison._coverage[name], partial(comparison._own_scores.__getitem__, name),
            ),
        )
        for name in comparison
    ]  # fmt: skip


def try_worse(comparison: Comparison, bound: Bound) -> list[Gate]:
    """Return for each run whether a score is at most `bound.value` worse than the baseline's; NaN is not.

    A run fails if it drops more of the truth than the baseline, or if at most half of the truth is compared.
    """
    return [
        of_run(name, bound, worse_in(comparison, name, bound)) for name in require_experiments(comparison)
    ]


def require_experiments(comparison: Comparison) -> tuple[str, ...]:
    """Return the runs that can be worse than the baseline; raise OptionError if there is none."""
    if not comparison.experiments:
        raise OptionError("there is only one run, so none can be worse than the baseline; name another run")
    return comparison.experiments


def worse_in(comparison: Comparison, name: str, bound: Bound) -> Gate:
    """Return whether a score of a run is at most `bound.value` worse than the baseline's, as `try_worse` does."""
    pair = name, comparison.baseline
    now, before = (_value(comparison, run, bound) for run in pair)
    if bound.end:
        gate = _gate_of_interval(comparison, name, bound)
    else:
        gate = gate_of_change(bound, now, before, label(comparison.baseline))
    n, n_before = (_n_items(comparison[run], bound) for run in pair)
    more = f", of {count(n)} items, {count(n_before)} in the baseline" if n != n_before else ""
    figures = {**gate.figures, "n_items": n, "baseline_n_items": n_before}
    whole = bound.name in COVERAGES or counts_mentions(bound, comparison[name])
    reason = "" if whole else _unlike_items(comparison, name)
    return replace(
        gate, found=gate.found + more, passed=gate.passed and not reason, figures=figures, reason=reason
    )


def _gate_of_interval(comparison: Comparison, name: str, bound: Bound) -> Gate:
    """Return whether a run is not significantly worse: the interval of the difference is not all on the worse side."""
    why = why_no_errors(comparison)
    if why is None:
        reasons = scores_without_errors(comparison, comparison._differences.warnings).items()
        why = next((Message(reason) for reason, scores in reasons if bound.name in scores), None)
    rows = comparison._deltas().to_pylist() if why is None else []
    here = name, computed_as(bound.name, [metric.name for metric in comparison.metrics])
    row = next((row for row in rows if (row["experiment"], row["score"]) == here), None)
    if row is None or row["holds"] is None:
        why = why or Message("the score is not defined, or all items are one unit")
        raise MetricError(f"{bound.name}={SIGNIFICANT}: no interval of the difference is known: {why.marked}")
    return gate_of_difference(comparison, bound, row)


def gate_of_difference(comparison: Comparison, bound: Bound, row: Mapping[str, Any]) -> Gate:
    """Return whether a difference, given as a row of `deltas`, is not significant on the worse side."""
    is_worse = row["delta"] < 0 if subject_of(bound, bound.name).best == "higher" else row["delta"] > 0
    named = {"value": "experiment_value", "baseline": "baseline_value"}
    figures = {"score": bound.name, "slice": None, **{key: row[of] for key, of in named.items()}}
    level = adjusted(comparison.level, len(comparison.experiments), "bonferroni")
    figures |= {key: row[key] for key in ("delta", "low", "high")} | {"level": level}
    change = with_interval(row["delta"], row["low"], row["high"], change=True)
    values = (score_text(row[f"{which}_value"]) for which in ("experiment", "baseline"))
    found = f"is {', '.join(values)} in {label(comparison.baseline)}: {change}"
    passed = not (row["holds"] and is_worse)
    return Gate(bound.subject, "wanted not significantly worse", found, passed, figures)


def gate_of_change(bound: Bound, now: float, before: float, where: str) -> Gate:
    """Return whether a score is at most `bound.value` worse than in the named result; False for NaN.

    A size may differ by as much in either direction.
    """
    figures = {"score": bound.name, "slice": bound.slice, "value": now, "baseline": before}
    found = f"is {score_text(now)}, {score_text(before)} in {where}: "
    if is_score(bound.name) or bound.name in COVERAGES:
        change = before - now if subject_of(bound, bound.name).best == "higher" else now - before
        by = float(without_rounding(change, now))
        figures |= {"worse_by": by, "at_most_worse_by": bound.value}
        text, wanted = f"{abs(by):.3g} {'worse' if by > 0 else 'better'}", f"{bound.value:g} worse"
    else:
        away = float(without_rounding(now - before, now))
        by = abs(away)
        figures |= {"away_by": by, "at_most_away_by": bound.value}
        text = f"{score_text(by)} {'more' if away > 0 else 'less'}"
        wanted = f"{score_text(bound.value)} more or less"
    found += "n/a" if math.isnan(by) else text if by else "the same"
    passed = bool(without_rounding(by - bound.value, now) <= 0)
    return Gate(bound.subject, f"wanted at most {wanted}", found, passed, figures)


def _n_items(ev: Evaluation, bound: Bound) -> int:
    """Return the number of items that a bounded score covers."""
    if bound.where:
        return int(slice_of(bound, slices_of(ev))["n_items"])
    return ev.coverage.n_scored(ev.policies)


def _unlike_items(comparison: Comparison, name: str) -> str:
    """Return why a gate on a run cannot pass on the items compared; "" if it can.

    It cannot if the run drops more of the truth than the baseline does, or if the baseline or, with common items, a
    third run covers at most half of the truth and drops more of it than the run or the baseline.
    """
    pair = name, comparison.baseline
    others = [each for each in comparison if each not in pair] if comparison.align == "common" else []
    for run in (*pair, *others):
        if run != name and comparison._coverage[run].truth_coverage > 0.5:
            continue  # items missing elsewhere do not make the run worse
        if other := next((each for each in pair if lacks_more(comparison, run, each)), None):
            n, n_other = (n_dropped(comparison, each) for each in (run, other))
            return Message(
                f"{label(run)} lacks {counted(n, 'item')} of the truth and {label(other)} lacks "
                f"{count(n_other)}; these are dropped. Pass {arg('unmatched', {'truth': 'singleton'})}"
            )
    return ""


def of_run(name: str, bound: Bound, gate: Gate) -> Gate:
    """Return a gate with the name of its run."""
    return replace(gate, subject=f"{label(name)}: {bound.subject}", figures={"run": name, **gate.figures})


def _gate_on(comparison: Comparison, name: str, bound: Bound) -> Gate:
    if bound.end:
        return gate_on(bound, comparison[name], level=comparison.level, unit=comparison.unit)
    return exactly(gate_of(bound, _value(comparison, name, bound)), bound, comparison[name])


def _value(comparison: Comparison, name: str, bound: Bound) -> float:
    """Return a score of a run, or its coverage before it was restricted to common items."""
    if bound.name not in COVERAGES:
        return value_of(bound, comparison[name])
    return float(getattr(comparison._coverage[name], bound.name))


# -- Saved baselines ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Baseline:
    """An earlier evaluation with the same truth, which was saved or written as JSON."""

    path: Path
    ev: Evaluation

    @classmethod
    def read(cls, path: Any) -> Baseline:
        """Read the directory of a saved evaluation, or a file with the output of `Evaluation.to_json`.

        Only scores and slices are read.
        """
        place = Path(path_of(path, "the baseline must be a path"))
        if place.is_dir() or place.name == MANIFEST:
            directory = place if place.is_dir() else place.parent
            head = read_manifest(directory)
            if "kind" in head:
                raise FileFormatError(
                    f"{path} contains no evaluation to compare with, but a result of kind {head['kind']}"
                )
            if any(map(is_in_file, head["slices"].values())):
                return cls(place, read_saved(directory, lambda ev, _: ev, check=False))
            return cls(place, evaluation_of(head))
        try:
            found = json.loads(place.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            reason = getattr(error, "strerror", None) or error
            raise FileFormatError(f"{path} cannot be read as the JSON of an evaluation: {reason}") from error
        try:  # JSON has no checksum, and may have been edited
            _require_figures(found)
            return cls(place, evaluation_of(found))
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise FileFormatError(
                f"{path} is not the JSON of an evaluation by this version ({type(error).__name__}: {error}). "
                "Write it again with Evaluation.to_json, or evaluate --json"
            ) from error

    def require_comparable(self, ev: Evaluation) -> None:
        """Raise OptionError if the baseline has other definitions of scores, or another truth, than `ev`."""
        refused = f"{self.path} cannot be the baseline:"
        here, there = plain(ev.definition), plain(self.ev.definition)
        differ = [name for name in here.keys() | there.keys() if here.get(name) != there.get(name)]
        if differ:
            named = "; ".join(f"{n}: {there.get(n)!r} there, {here.get(n)!r} here" for n in sorted(differ))
            raise OptionError(f"{refused} its scores are defined differently ({named})")
        truth, own = self.ev.manifest["truth"], ev.manifest["truth"]
        for what in ("rows", "fingerprint"):
            if truth.get(what) != own[what]:
                raise OptionError(
                    f"{refused} it used a different truth ({what} {truth.get(what)} there, {own[what]} here)"
                )
        weights = [each.weight_common + each.weight_truth_only for each in (self.ev.coverage, ev.coverage)]
        if abs(weights[0] - weights[1]) > ROUNDING * abs(weights[1]):
            raise OptionError(
                f"{refused} its truth had different weights ({weights[0]:.12g} there, {weights[1]:.12g} here)"
            )

    def try_worse(self, bound: Bound, ev: Evaluation) -> Gate:
        """Return whether a score of `ev` is at most `bound.value` worse than that of this baseline."""
        self._require(bound)
        before = self.with_cells if bound.end or bound.name == "cells" else self.ev
        if bound.end:
            before, ev = (each if each.kept.lazy is None else each.kept.lazy.whole() for each in (before, ev))
        gate = worse_in(self._beside(before, ev), NOW, bound)
        return replace(gate, reason=gate.reason and gate.reason + " in both runs")

    @cached_property
    def with_cells(self) -> Evaluation:
        """The evaluation with its cells; raise OptionError if they were not saved."""
        directory = self.path.parent if self.path.name == MANIFEST else self.path
        found = read_saved(directory, lambda ev, _: ev, check=False) if directory.is_dir() else self.ev
        if not found.has_clusters:
            raise OptionError(
                f"{self.path} has no cells; save it as a directory, with {arg('keep', 'cells')}"
            )
        return found

    def _beside(self, before: Evaluation, ev: Evaluation) -> Comparison:
        """Return the comparison of `ev` with this baseline, each on its own scored items."""
        called = self.path.absolute().name
        runs = {called if called != NOW else f"earlier {NOW}": before, NOW: ev}
        coverage = [each.coverage for each in runs.values()]
        return Comparison(
            runs, baseline=next(iter(runs)), align="each", level=0.95, unit=COMPONENT, coverage=coverage,
            n_scored=[each.n_scored(ev.policies) for each in coverage],
        )  # fmt: skip

    def _require(self, bound: Bound) -> None:
        """Raise OptionError if the bounded figure was not saved."""
        columns = (name_columns(table.column_names) for table in self.ev.sliced.values())
        if bound.where and not any(same_slicing(each, bound.by) for each in columns):
            by = slice_name(bound.by)
            raise OptionError(f"{self.path} has no slices by {by}; evaluate again with {arg('slices', by)}")
        if is_score(bound.name) and not bound.where and self.ev.overall.named(bound.name) is None:
            raise OptionError(
                f"{self.path} has no {bound.name}; evaluate again with {arg('metrics', bound.name)}"
            )


def _require_figures(found: Mapping[str, Any]) -> None:
    """Raise an error if the JSON of an evaluation lacks a figure that gates need."""
    counts = [each for name, each in found["coverage"].items() if name.startswith("n_")]
    figures = [*found["overall"].values()]
    figures += [each for name, each in found["coverage"].items() if name.startswith("weight_")]
    for row in (row for rows in found["slices"].values() for row in rows):
        counts.append(row["n_items"])
        figures += [row["weight"], *(row.get(name) for name in found["overall"])]
    for each in counts:
        int(each)
    for figure in figures:
        float(0 if figure is None else figure)
    dict(found["manifest"]["truth"])
