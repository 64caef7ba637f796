"""Checks of scores: formal constraints, equal values, the triangle inequality, and trivial predictions."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal

import numpy as np

from fastbcubed.constraints.formal_constraints import (
    AMIGO_TEST_CASES,
    CONSTRAINTS,
    Constraint,
    Instance,
    as_text,
    partitions,
)
from fastbcubed.errors import MetricError, OptionError, arg, calling, quoted
from fastbcubed.inputs.arrays import read_only
from fastbcubed.metrics.functions import as_cover, compute
from fastbcubed.metrics.registry import METRICS, OF_BETA, resolve
from fastbcubed.render.document import Grid
from fastbcubed.render.text import aligned
from fastbcubed.runtime.arguments import (
    as_several,
    is_one_of,
    number_of,
    refuse_bare,
    seed_of,
    true_or_false,
    whole_number,
)
from fastbcubed.runtime.object_attributes import documented
from fastbcubed.types import Int64s

Score = Callable[[Int64s, Int64s], float]
#: Maximum number of items of a trivial prediction, and of random instances of a check.
MOST_ITEMS, MOST_RANDOM = (1 << 31) - 1, 1 << 20


@dataclass(frozen=True, eq=False)
class Case:
    """Clusterings of some items on which a property is tested.

    Attributes
    ----------
    of : str
        Name of the property.
    groups : tuple of ndarray of int64 (n_items, n_clusterings)
        Cluster labels, one column per clustering. Each group has items and clusters of its own.
    """

    of: str
    groups: tuple[Int64s, ...]

    @property
    def n_items(self) -> int:
        """The number of items in all groups."""
        return sum(len(group) for group in self.groups)

    def smaller(self) -> Iterator[Case]:
        """Yield the cases that have one item fewer."""
        for at, group in enumerate(self.groups):
            for row in range(len(group) if len(group) > 1 else 0):
                less = np.delete(group, row, axis=0)
                yield Case(self.of, (*self.groups[:at], less, *self.groups[at + 1 :]))

    def __str__(self) -> str:
        names = PROPERTIES[self.of].clusterings
        shown = [labels for group in self.groups for labels in group.T]
        return "; ".join(f"{name} {as_text(labels)}" for name, labels in zip(names, shown, strict=True))


@dataclass(frozen=True)
class Property:
    """A property: its statement, its clusterings, and the function that measures by how much a score violates it."""

    name: str
    statement: str
    clusterings: tuple[str, ...]  # names of the clusterings of all groups
    columns: tuple[int, ...]  # number of clusterings in each group
    gap: Callable[..., float]  # a function of the score, its direction (1 or -1), and the groups

    def cases(self, n_random: int, rng: np.random.Generator) -> Iterator[Case]:
        """Yield all cases of up to three items (two per group if there are two groups), then larger random cases."""
        most = 3 if len(self.columns) == 1 else 2
        for n in range(1, most + 1):
            for chosen in product(partitions(n), repeat=sum(self.columns)):
                groups = np.split(np.column_stack(chosen), np.cumsum(self.columns)[:-1], axis=1)
                yield Case(self.name, tuple(groups))
        for n in sorted(rng.integers(most + 1, 9, size=n_random)):
            groups = [rng.integers(0, rng.integers(1, n + 1, size=c), size=(n, c)) for c in self.columns]
            yield Case(self.name, tuple(groups))


#: Every property by name.
PROPERTIES: dict[str, Property] = {}
Gap = Callable[..., float]


def holds(statement: str, clusterings: tuple[str, ...], columns: tuple[int, ...]) -> Callable[[Gap], Gap]:
    """Declare a property with the name of the decorated function, which measures by how much a score violates it."""

    def declare(gap: Gap) -> Gap:
        name = gap.__name__.lstrip("_")
        PROPERTIES[name] = Property(name, statement, clusterings, columns, gap)
        return gap

    return declare


@holds("the score is unchanged when every item is duplicated", ("truth", "prediction"), (2,))
def _n_invariance(score: Score, sign: int, pair: Int64s) -> float:
    true, pred = pair.T
    return abs(score(np.repeat(true, 2), np.repeat(pred, 2)) - score(true, pred))


@holds("the score is unchanged when truth and prediction are swapped", ("truth", "prediction"), (2,))
def _symmetry(score: Score, sign: int, pair: Int64s) -> float:
    true, pred = pair.T
    return abs(score(true, pred) - score(pred, true))


@holds(
    "the loss against a perfect score satisfies the triangle inequality",
    ("first", "second", "third"),
    (3,),
)
def _triangle(score: Score, sign: int, three: Int64s) -> float:
    a, b, c = three.T

    def distance(first: Int64s, second: Int64s) -> float:
        return sign * (score(first, first) - score(first, second))

    return distance(a, c) - distance(a, b) - distance(b, c)


@holds(
    "a change has the same effect whatever the other items are",
    ("truth", "before", "after", "other truth", "other prediction", "or truth", "or prediction"),
    (3, 4),
)
def _locality(score: Score, sign: int, here: Int64s, there: Int64s) -> float:
    true, before, after = here.T
    changes = [
        score(_disjoint_union(true, other_true), _disjoint_union(after, other_pred))
        - score(_disjoint_union(true, other_true), _disjoint_union(before, other_pred))
        for other_true, other_pred in (there.T[:2], there.T[2:])
    ]
    return abs(changes[0] - changes[1])


def _disjoint_union(labels: Int64s, others: Int64s) -> Int64s:
    return np.concatenate([labels, others + labels.max() + 1])


Verdict = Literal["strict", "tie", "violated", "holds"]

#: All checks by name.
CHECKED: dict[str, Constraint | Property] = {**CONSTRAINTS, **PROPERTIES}
CHECKS = tuple(CHECKED)
#: Differences of scores up to this size are ties; it exceeds the rounding errors of logarithms.
TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class Finding:
    """The outcome of one check.

    Attributes
    ----------
    name : str
        Name of the constraint or property.
    verdict : {"strict", "tie", "violated", "holds"}
        For a constraint, "strict" if the better prediction scored better in every instance tried, "tie" if it never
        scored worse but sometimes equally well, and "violated" if it scored worse in any instance. For a property,
        "holds" if it held in every case tried; otherwise "violated".
    tried : int
        Number of instances tried; other instances may fail even if none of these does.
    smallest : Instance, Case or None
        The smallest instance found with a tie or violation.
    scores : tuple of float
        For an instance of a constraint, the scores of the worse and the better prediction; for a case of a property,
        by how much the property is violated.
    """

    name: str
    verdict: Verdict
    tried: int
    smallest: Instance | Case | None = None
    scores: tuple[float, ...] = ()

    def __str__(self) -> str:
        if self.smallest is None:
            return f"{self.name}: {self.verdict} in all {self.tried} tried"
        values = " to ".join(f"{value:.6g}" for value in self.scores)
        what = "scored" if isinstance(self.smallest, Instance) else "by"
        return f"{self.name}: {self.verdict}, as in {self.smallest}, {what} {values}"


@dataclass(frozen=True, eq=False)
class ConstraintReport(Mapping[str, Finding]):
    """The outcomes of a score's checks: a mapping from the name of each check to its `Finding`.

    Attributes
    ----------
    score : str
        Name of the score.
    greater_is_better : bool
        Whether higher values of the score count as better.
    findings : dict of str to Finding
        The outcome of each check, by name of the constraint or property.
    test_cases : str
        One character for each of the four examples of Amigó et al.: Y if the score prefers the better prediction, = for
        a tie, n if it prefers the worse prediction.
    """

    score: str
    greater_is_better: bool
    findings: dict[str, Finding]
    test_cases: str

    def __getitem__(self, name: str) -> Finding:
        return self.findings[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.findings)

    def __len__(self) -> int:
        return len(self.findings)

    def __repr__(self) -> str:
        better = "higher" if self.greater_is_better else "lower"
        lines = [f"{self.score} ({better} is better); examples of Amigó et al.: {self.test_cases}"]
        return "\n".join([*lines, *(f"  {finding}" for finding in self.findings.values())])


def check_constraints(
    score: str | Callable[[Any, Any], float],
    *,
    checks: str | Iterable[str] | None = None,
    greater_is_better: bool | None = None,
    n_random: int = 50,
    seed: int = 0,
    tolerance: float = TOLERANCE,
) -> ConstraintReport:
    """Check a score against the formal constraints.

    The check of a constraint first tries small instances, both without other items and in the context "amigo" (see
    `homogeneity`). The check of a property first tries all clusterings of a few items. Every check then tries random
    instances. A verdict covers only the instances tried: the counterexample of "violated" is a proof, but "strict"
    proves nothing.

    Parameters
    ----------
    score : str or callable
        Name of a score, or a function that takes two labelings (int64 arrays, the truth first) and returns a
        number.
    checks : str or iterable of str, optional
        One or more names from `CHECKS`; all by default.
    greater_is_better : bool, optional
        If the score is a function, whether its higher values are better; True by default. Omit this argument for a
        score given by name.
    n_random : int
        Number of random instances per check.
    seed : int
        Seed of the random instances; the same seed gives the same instances.
    tolerance : float
        Differences up to this size are ties; for scores above 1, the size is relative to the score.

    Returns
    -------
    ConstraintReport

    Raises
    ------
    MetricError
        If the score is unknown or has no direction, or if it returns NaN or something other than a number.
    OptionError
        If a check is unknown, `greater_is_better` is given with the name of a score, or an argument is invalid.

    Notes
    -----
    The constraints were defined by E. Amigó, J. Gonzalo, J. Artiles and F. Verdejo, A comparison of extrinsic
    clustering evaluation metrics based on formal constraints, Information Retrieval 12, 2009, and by J. G. Moreno and
    G. Dias, Adapted B-CUBED Metrics to Unbalanced Datasets, SIGIR 2015.

    Examples
    --------
    >>> report = check_constraints("bcubed_f1", checks=["homogeneity", "rag_bag"])
    >>> report["homogeneity"].verdict, report["rag_bag"].verdict
    ('strict', 'strict')
    >>> def purity(labels_true, labels_pred):
    ...     best = [np.bincount(labels_true[labels_pred == k]).max() for k in set(labels_pred)]
    ...     return sum(best) / len(labels_true)
    >>> print(check_constraints(purity, checks=["perfect_match"])["perfect_match"])
    perfect_match: tie, as in truth ab; worse a|b; better ab, scored 1 to 1
    """
    refuse_bare(checks=checks)
    names = as_several(CHECKS if checks is None else checks)
    if unknown := [name for name in names if not is_one_of(name, CHECKS)]:
        raise OptionError(f"There is no check {quoted(unknown[0])}. The checks are {', '.join(CHECKS)}.")
    tolerance = number_of(tolerance, "tolerance")
    if not (isinstance(score, str) or callable(score)):
        raise MetricError(
            f"{arg('score')} must be the name of a score or a function of two labelings, not {quoted(score)}"
        )
    if isinstance(score, str):
        if greater_is_better is not None:
            raise OptionError(f"The direction of {score} is known; leave greater_is_better out.")
        title, greater_is_better = score, direction(score) > 0
        function = named([score])(score)
    else:
        title = getattr(score, "__name__", "score")
        greater_is_better = greater_is_better is None or true_or_false(greater_is_better, "greater_is_better")
        function = score
    return check(title, function, greater_is_better, to_try(names, n_random, seed), tolerance)


def to_try(names: Iterable[str], n_random: int, seed: int) -> dict[str, list[Any]]:
    """Return the instances and cases of each check, which depend only on the seed and the check."""
    n_random, seed = whole_number(n_random, "n_random", "random instances", most=MOST_RANDOM), seed_of(seed)
    return {
        name: list(CHECKED[name].cases(n_random, np.random.default_rng([seed, CHECKS.index(name)])))
        for name in names
    }


def check(
    title: str,
    score: Callable[[Any, Any], float],
    greater_is_better: bool,
    tried: Mapping[str, list[Any]],
    tolerance: float,
) -> ConstraintReport:
    """Check a function on the instances and cases of `to_try`; the report names it `title`."""
    trial = _Trial(score, 1 if greater_is_better else -1, tolerance)
    findings = {name: trial.finding(name, cases) for name, cases in tried.items()}
    marks = {1: "Y", 0: "=", -1: "n"}
    test_cases = "".join(marks[trial.outcome(case)] for case in AMIGO_TEST_CASES.values())
    return ConstraintReport(title, greater_is_better, findings, test_cases)


def named(names: Iterable[str]) -> Callable[[str], Score]:
    """Return, for each name, a function of two labelings that returns that score.

    The functions share a cache: all scores of two labelings are computed when the first one is requested.
    """
    metrics = [METRICS[name] for name in names]
    known: dict[tuple[bytes, bytes], dict[str, float]] = {}

    def function(name: str) -> Score:
        def score(labels_true: Int64s, labels_pred: Int64s) -> float:
            key = labels_true.tobytes(), labels_pred.tobytes()
            if key not in known:
                known[key] = {}
                for always in {metric.covers_only for metric in metrics}:
                    group = [metric for metric in metrics if metric.covers_only == always]
                    cells = as_cover(labels_true, labels_pred, None, None, always=always)
                    known[key].update(zip((m.name for m in group), compute(cells, group), strict=True))
            return known[key][name]

        return score

    return function


def direction(name: str) -> int:
    """Return 1 if higher scores are better, -1 if lower scores are; raise MetricError if neither or unknown."""
    if name not in METRICS:
        resolve([name])  # raises, with a suggestion, unless it is a family
        raise MetricError(f"{name} is a family; name one of its scores.")
    if METRICS[name].best == "neither":
        raise MetricError(f"{name} has no direction, so no constraint applies to it.")
    return 1 if METRICS[name].best == "higher" else -1


class _Trial:
    """A score being checked, with its direction and its tolerance for ties."""

    def __init__(self, score: Callable[[Any, Any], float], sign: int, tolerance: float) -> None:
        self._score, self._sign, self._tolerance = score, sign, tolerance

    def of(self, labels_true: Int64s, labels_pred: Int64s) -> float:
        labels = read_only(labels_true), read_only(labels_pred)  # later scores see the same arrays
        with calling("the score"):
            value = self._score(*labels)
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = math.nan
        if math.isnan(number):
            raise MetricError(
                f"The score of prediction {labels_pred.tolist()} against truth {labels_true.tolist()}"
                f" is {quoted(value)}. Make the function return a number there, and try again."
            )
        return number

    def scores(self, case: Instance | Case) -> tuple[float, ...]:
        """Return the scores of the worse and the better prediction, or by how much a property is violated."""
        if isinstance(case, Case):
            return (PROPERTIES[case.of].gap(self.of, self._sign, *case.groups),)
        return self.of(case.truth, case.worse), self.of(case.truth, case.better)

    def outcome(self, case: Instance | Case) -> int:
        """Return 1 if the better prediction scores better or the property holds, 0 for a tie, -1 otherwise."""
        if isinstance(case, Case):
            return -1 if self.scores(case)[0] > self._tolerance else 1
        worse, better = self.scores(case)
        gain = self._sign * (better - worse)
        room = self._tolerance * max(1.0, abs(worse), abs(better))
        return 0 if abs(gain) <= room or worse == better else int(np.sign(gain))

    def finding(self, name: str, tried: list[Any]) -> Finding:
        smallest: dict[int, Any] = {}
        for case in tried:
            outcome = self.outcome(case)
            if outcome not in smallest or case.n_items < smallest[outcome].n_items:
                smallest[outcome] = case
        worst = min(smallest)
        if worst == 1:
            return Finding(name, "holds" if name in PROPERTIES else "strict", len(tried))
        found = smallest[worst]
        while less := next((each for each in found.smaller() if self.outcome(each) == worst), None):
            found = less
        return Finding(name, "tie" if worst == 0 else "violated", len(tried), found, self.scores(found))


def all_singletons(n: int) -> Int64s:
    """Put each of n items into its own cluster, and return int64 labels of shape (n,).

    Examples
    --------
    >>> all_singletons(3)
    array([0, 1, 2])
    """
    return blocks(n, 1)


def all_in_one(n: int) -> Int64s:
    """Put n items into one cluster, and return int64 labels of shape (n,).

    Examples
    --------
    >>> all_in_one(3)
    array([0, 0, 0])
    """
    return np.zeros(whole_number(n, "n", "items", most=MOST_ITEMS), np.int64)


def blocks(n: int, k: int) -> Int64s:
    """Put every k consecutive items into one cluster; the last cluster may be smaller.

    Blocks of k items are the baseline that van Heusden et al. (2022) use for ordered items, such as the pages of a
    stream.

    Parameters
    ----------
    n : int
        Number of items.
    k : int
        Number of items in a cluster, at least one.

    Returns
    -------
    ndarray of int64 (n,)

    Raises
    ------
    OptionError
        If `n` is negative or `k` is less than one.

    Examples
    --------
    >>> blocks(5, 2)
    array([0, 0, 1, 1, 2])
    """
    n, k = whole_number(n, "n", "items", most=MOST_ITEMS), whole_number(k, "k", "items", least=1)
    return np.arange(n, dtype=np.int64) // k


def cheat(items: Iterable[Hashable]) -> dict[Hashable, set[int]]:
    """Put every item into two clusters: a cluster of all items, and a singleton.

    A score of overlapping clusterings should not reward adding a cluster of all items to the singletons, but inverse
    purity and Extended BCubed recall are then 1 against any partition (Amigó et al. 2009, section 6).

    Parameters
    ----------
    items : iterable
        Distinct items.

    Returns
    -------
    dict
        The set of clusters of each item: 0, which contains all items, and the item's own cluster.

    Examples
    --------
    >>> cheat("abc")
    {'a': {0, 1}, 'b': {0, 2}, 'c': {0, 3}}
    """
    refuse_bare(items=items)
    if not isinstance(items, Iterable):
        raise OptionError(f"items must be an iterable of ids, not {quoted(items)}")
    try:
        return {item: {0, alone} for alone, item in enumerate(items, start=1)}
    except TypeError as error:
        raise OptionError(
            f"items must be ids, such as strings and integers, but there is an {error}"
        ) from error


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
#: Marks of verdicts in the table.
MARKS = {"strict": "yes", "tie": "tie", "violated": "NO", "holds": "yes"}


@dataclass(frozen=True, eq=False)
class ConstraintTable:
    """The outcomes of the checks of many scores.

    Attributes
    ----------
    reports : dict of str to ConstraintReport
        The outcomes of the checks of each score, by name of the score.
    seed, n_random : int
        Parameters of the random instances; the same parameters give the same table.
    """

    reports: dict[str, ConstraintReport]
    seed: int
    n_random: int

    def grid(self) -> Grid:
        """Return the table as strings: one row per score, one column per check."""
        header = ["score", "Amigó", *HEADINGS.values()]
        rows = [
            [score, report.test_cases, *(MARKS[report[name].verdict] for name in HEADINGS)]
            for score, report in self.reports.items()
        ]
        return Grid(header, rows, 1)

    def legend(self) -> list[str]:
        """Return the meaning of the columns and marks, one line each."""
        lines = [
            (
                "Amigó: the four examples of the paper. Y: prefers the better prediction; =: sees no "
                "difference; n: prefers the worse."
            )
        ]
        for report in list(self.reports.values())[:1]:  # all scores are checked on the same instances
            lines += [
                f"{HEADINGS[name]}: {name}, {CHECKED[name].statement} ({report[name].tried} tried)"
                for name in report
            ]
        lines.append(
            "yes: held in all instances tried; tie: never worse, but not always better; NO: disproved."
        )
        return lines

    def to_json(self) -> str:
        """Return the table as JSON, including the smallest counterexamples."""
        scores = {
            name: {
                "better": "higher" if report.greater_is_better else "lower",
                "amigo_test_cases": report.test_cases,
                "checks": {check: _entry(finding) for check, finding in report.items()},
            }
            for name, report in self.reports.items()
        }
        statements = {name: each.statement for name, each in CHECKED.items()}
        whole = {"seed": self.seed, "n_random": self.n_random, "checks": statements, "scores": scores}
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
        Names of scores and families; by default, every score that has a direction. A family's scores without a
        direction are left out.
    n_random : int
        Number of random instances per check, in addition to the small instances, which are always tried.
    seed : int
        Seed of the random instances.

    Returns
    -------
    ConstraintTable

    Raises
    ------
    MetricError
        If a score is unknown, or if a score given by name has no direction.

    Examples
    --------
    >>> table(["bcubed_f1", "mean_f1"], n_random=5).reports["mean_f1"].test_cases
    'YYYY'
    """
    refuse_bare(metrics=metrics)
    names = _choose(("all",) if metrics is None else as_several(metrics))
    function, tried = named(names), to_try(CHECKS, n_random, seed)
    reports = {name: check(name, function(name), direction(name) > 0, tried, TOLERANCE) for name in names}
    return ConstraintTable(reports, int(seed), int(n_random))


def _choose(names: Iterable[str]) -> list[str]:
    """Return the names of scores with these names or in these families, each once."""
    chosen: dict[str, None] = {}
    for name in names:
        if is_one_of(name, METRICS):
            direction(name)  # raises if it has none
            chosen[name] = None
        else:
            resolve([name])  # raises, with a suggestion, unless it is a family
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
