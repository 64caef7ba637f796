"""The table of scores and constraints: which score meets which."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from fastbcubed.constraints.checker import (
    CHECKS,
    TOLERANCE,
    ConstraintReport,
    Finding,
    check,
    direction,
    named,
    to_try,
)
from fastbcubed.constraints.instances import CONSTRAINTS, Instance
from fastbcubed.constraints.notation import as_text
from fastbcubed.constraints.properties import PROPERTIES
from fastbcubed.metrics.registry import METRICS, OF_BETA, resolve
from fastbcubed.results.text.wording import Grid, aligned
from fastbcubed.runtime.completion import documented

#: The heading of each check's column.
HEADINGS = {
    "homogeneity": "homog",
    "completeness": "compl",
    "rag_bag": "rag",
    "size_versus_quantity": "size",
    "unbalanced": "unb",
    "perfect_match": "match",
    "n_invariance": "n-inv",
    "symmetry": "sym",
    "triangle": "tri",
    "locality": "loc",
}
#: How a verdict is shown in a column.
MARKS = {"strict": "yes", "tie": "tie", "violated": "NO", "holds": "yes"}

_STATEMENTS = {name: each.statement for name, each in (CONSTRAINTS | PROPERTIES).items()}


@dataclass(frozen=True, eq=False)
class ConstraintTable:
    """What came out of the checks of many scores.

    Attributes
    ----------
    reports : dict of str to ConstraintReport
        By score.
    seed, n_random : int
        What the random instances depend on; the same two give the same table.
    """

    reports: dict[str, ConstraintReport]
    seed: int
    n_random: int

    def grid(self) -> Grid:
        """Return the table as texts: scores down, checks across."""
        header = ["score", "Amigó", *HEADINGS.values()]
        rows = [
            [score, report.test_cases, *(MARKS[report[name].verdict] for name in HEADINGS)]
            for score, report in self.reports.items()
        ]
        return Grid(header, rows, 1)

    def legend(self) -> list[str]:
        """Return what the columns and their marks mean, a line each."""
        lines = ["Amigó: the four examples of the paper: Y prefers the better, = sees none, n the worse."]
        for report in list(self.reports.values())[:1]:  # all were tried on the same instances
            lines += [
                f"{HEADINGS[name]}: {name}, {_STATEMENTS[name]} ({report[name].tried} tried)"
                for name in report
            ]
        lines.append("yes: in all that was tried; tie: never worse, but not always better; NO: disproved.")
        return lines

    def to_json(self) -> str:
        """Return the table as JSON, with every smallest counterexample written out."""
        scores = {
            name: {
                "better": "higher" if report.greater_is_better else "lower",
                "amigo_test_cases": report.test_cases,
                "checks": {check: _entry(finding) for check, finding in report.items()},
            }
            for name, report in self.reports.items()
        }
        whole = {"seed": self.seed, "n_random": self.n_random, "checks": _STATEMENTS, "scores": scores}
        return json.dumps(whole, indent=2, ensure_ascii=False)

    __dir__ = documented

    def __repr__(self) -> str:
        return aligned(self.grid())


def table(
    metrics: str | Iterable[str] | None = None, *, n_random: int = 20, seed: int = 0
) -> ConstraintTable:
    """Check scores of the registry against every constraint and property.

    Parameters
    ----------
    metrics : str or iterable of str, optional
        Scores and families; every score that has a direction when absent. Of a family, those without
        are left out.
    n_random : int
        Random instances of each check, after the small ones that are always tried.
    seed : int
        Seed of the random instances.

    Returns
    -------
    ConstraintTable

    Raises
    ------
    MetricError
        If a score is unknown, or one that was named has no direction.

    Examples
    --------
    >>> table(["bcubed_f1", "mean_f1"], n_random=5).reports["mean_f1"].test_cases
    'YYYY'
    """
    names = _choose(("all",) if metrics is None else (metrics,) if isinstance(metrics, str) else metrics)
    function, tried = named(names), to_try(CHECKS, n_random, seed)
    reports = {name: check(name, function(name), direction(name) > 0, tried, TOLERANCE) for name in names}
    return ConstraintTable(reports, seed, n_random)


def _choose(names: Iterable[str]) -> list[str]:
    """Return the scores of these names and families, each once."""
    chosen: dict[str, None] = {}
    for name in names:
        if name in METRICS:
            direction(name)  # raises if it has none
            chosen[name] = None
        else:
            resolve([name])  # raises, with a suggestion, for all but families
            family = [m for m in METRICS.values() if name in ("all", m.family) and m.name not in OF_BETA]
            family = [m for m in family if not (m.alias_of or m.covers_only or m.takes_three)]
            chosen |= dict.fromkeys(m.name for m in family if m.best != "neither")
    return list(chosen)


def _entry(finding: Finding) -> dict[str, Any]:
    entry: dict[str, Any] = {"verdict": finding.verdict, "tried": finding.tried}
    if isinstance(finding.smallest, Instance):
        sides = (finding.smallest.truth, finding.smallest.worse, finding.smallest.better)
        texts = dict(zip(("truth", "worse", "better"), map(as_text, sides), strict=True))
        entry |= {"smallest": texts, "scores": dict(zip(("worse", "better"), finding.scores, strict=True))}
    elif finding.smallest is not None:
        entry |= {"smallest": str(finding.smallest), "by": finding.scores[0]}
    return entry
