"""Trivial predictions that ignore the items: baselines for every score."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbcubed.constraints.checker import (
    CHECKS,
    PROPERTIES,
    TOLERANCE,
    ConstraintReport,
    Finding,
    check,
    direction,
    named,
    to_try,
)
from fastbcubed.constraints.instances import CONSTRAINTS, Instance, as_text
from fastbcubed.errors import OptionError
from fastbcubed.metrics.registry import METRICS, OF_BETA, resolve
from fastbcubed.render.document import Grid
from fastbcubed.render.text import aligned
from fastbcubed.runtime.attributes import documented

Labels = NDArray[np.int64]


def all_singletons(n: int) -> Labels:
    """Put each of n items into its own cluster; returns int64 labels (n,).

    Examples
    --------
    >>> all_singletons(3)
    array([0, 1, 2])
    """
    return blocks(n, 1)


def all_in_one(n: int) -> Labels:
    """Put n items into one cluster; returns int64 labels (n,).

    Examples
    --------
    >>> all_in_one(3)
    array([0, 0, 0])
    """
    return blocks(n, max(n, 1))


def blocks(n: int, k: int) -> Labels:
    """Put every k consecutive items into a cluster; the last may be smaller.

    The baseline of van Heusden et al. (2022) for ordered items, such as the pages of a stream.

    Parameters
    ----------
    n : int
        Number of items.
    k : int
        Items of a cluster, one or more.

    Returns
    -------
    ndarray of int64 (n,)

    Raises
    ------
    OptionError
        If `n` is negative or `k` less than one.

    Examples
    --------
    >>> blocks(5, 2)
    array([0, 0, 1, 1, 2])
    """
    if n < 0 or k < 1:
        raise OptionError(f"n must not be negative and k be one or more, but n is {n} and k is {k}.")
    return np.arange(n, dtype=np.int64) // k


def cheat(items: Iterable[Hashable]) -> dict[Hashable, set[int]]:
    """Put every item into two clusters: one of all items, and a singleton.

    No score of overlapping clusterings should reward it, yet inverse purity and Extended BCubed recall are
    1 against any partition (Amigó et al. 2009, section 6).

    Parameters
    ----------
    items : iterable
        Distinct items.

    Returns
    -------
    dict
        The set of clusters of each item: 0, which holds all items, and its own.

    Examples
    --------
    >>> cheat("abc")
    {'a': {0, 1}, 'b': {0, 2}, 'c': {0, 3}}
    """
    return {item: {0, alone} for alone, item in enumerate(items, start=1)}


#: Two different overlapping clusterings of the items 1, 2, 3 in which every pair of items shares three
#: clusters and every item has six, so that purity, inverse purity, Extended BCubed and CICE are all 1.
#: Each is a list of clusters, possibly repeated. After figure 23 of Amigó et al.
PERFECT_WITHOUT_MATCH = (
    [(1, 2, 3)] * 2 + [(1, 2), (1, 3), (2, 3)] + [(1,), (2,), (3,)] * 2,
    [(1, 2, 3)] + [(1, 2), (1, 3), (2, 3)] * 2 + [(1,), (2,), (3,)],
)


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
#: Marks of verdicts in columns.
MARKS = {"strict": "yes", "tie": "tie", "violated": "NO", "holds": "yes"}

_STATEMENTS = {name: each.statement for name, each in (CONSTRAINTS | PROPERTIES).items()}


@dataclass(frozen=True, eq=False)
class ConstraintTable:
    """The outcomes of the checks of many scores.

    Attributes
    ----------
    reports : dict of str to ConstraintReport
        By score.
    seed, n_random : int
        Parameters of the random instances; equal ones give the same table.
    """

    reports: dict[str, ConstraintReport]
    seed: int
    n_random: int

    def grid(self) -> Grid:
        """Return the table as strings: scores down, checks across."""
        header = ["score", "Amigó", *HEADINGS.values()]
        rows = [
            [score, report.test_cases, *(MARKS[report[name].verdict] for name in HEADINGS)]
            for score, report in self.reports.items()
        ]
        return Grid(header, rows, 1)

    def legend(self) -> list[str]:
        """Return the meaning of the columns and their marks, one line each."""
        lines = ["Amigó: the four examples of the paper: Y prefers the better, = sees none, n the worse."]
        for report in list(self.reports.values())[:1]:  # all scores have the same instances
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
        Scores and families; by default every score with a direction. Scores of a family without a
        direction are left out.
    n_random : int
        Random instances per check, in addition to the small ones, which are always tried.
    seed : int
        Seed of the random instances.

    Returns
    -------
    ConstraintTable

    Raises
    ------
    MetricError
        If a score is unknown, or a named one has no direction.

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
