"""Coreference scores of several runs, which cover all mentions of the truth and of each run."""

from __future__ import annotations

from dataclasses import replace

from fastbcubed.compare_runs.differences import Differences, estimated
from fastbcubed.compare_runs.units import ComparisonData
from fastbcubed.results.standard_errors import COMPONENT, TRUE_CLUSTER


def differences_of_all(comparison: ComparisonData) -> Differences:
    """Return the standard errors of the differences, including scores that count all mentions.

    The latter use the units of all mentions. They have no errors by a column, because mentions that only one run has
    are not in the common rows.
    """
    apart = comparison._counted_apart
    if not apart or comparison.unit not in (COMPONENT, TRUE_CLUSTER):
        return estimated(comparison)
    of_mentions = estimated(on_own_mentions(comparison))
    if len(apart) == len(comparison.metrics):
        return of_mentions
    found = estimated(comparison)
    return replace(
        found,
        errors={**found.errors, **of_mentions.errors},
        df={**found.df, **of_mentions.df},
        replicates={**found.replicates, **of_mentions.replicates},
    )


def on_own_mentions(comparison: ComparisonData) -> ComparisonData:
    """Return the comparison of the scores that count all mentions, with each run on its own mentions."""
    evs = {name: ev.figures.of_mentions or ev for name, ev in comparison.runs.items()}
    evs = {
        name: type(ev)(
            replace(ev.figures, metrics=[m for m in ev.metrics if m.of_mentions]), ev.kept, ev.origin
        )
        for name, ev in evs.items()
    }
    ranges = [ev.kept.ranges for ev in evs.values()]
    return type(comparison)(
        evs,
        baseline=comparison.baseline,
        align="each",
        level=comparison.level,
        unit=comparison.unit,
        n_bootstrap=comparison.n_bootstrap,
        seed=comparison.seed,
        n_scored=[ev.contingency.n_items for ev in evs.values()],
        coverage=[ev.coverage for ev in evs.values()],
        true_keys=None if None in ranges else [each.keys.true for each in ranges if each is not None],
    )
