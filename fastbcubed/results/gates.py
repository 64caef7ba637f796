"""Gates: bounds on scores, coverage or sizes, their outcomes, and sentences that report these."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, product
from typing import Any, NamedTuple

import pyarrow as pa

from fastbcubed.align.policies import Coverage
from fastbcubed.errors import (
    GateError,
    MetricError,
    OptionError,
    SliceError,
    arg,
    first_few,
    quoted,
)
from fastbcubed.metrics.functions import as_contingency, compute
from fastbcubed.metrics.metric import Metric, meets, without_rounding
from fastbcubed.metrics.registry import METRICS, known_as, resolve
from fastbcubed.render.number_formats import count, counted, label, score_text, with_interval
from fastbcubed.results.intervals import Interval, interval
from fastbcubed.results.notices import NOTE, WARNING
from fastbcubed.results.slice_bins import Bins, element_of
from fastbcubed.results.slices import Element, name_columns, names_element
from fastbcubed.results.standard_errors import COMPONENT
from fastbcubed.results.table import Table
from fastbcubed.results.warnings import FLATTERED, MOSTLY_COMMON, covered, if_alone
from fastbcubed.runtime.arguments import number
from fastbcubed.runtime.expressions import parse_bound
from fastbcubed.runtime.suggestions import did_you_mean

#: Shares of one side's items that the other side has; from 0 to 1, higher is better.
COVERAGES = ("truth_coverage", "prediction_coverage")
#: Sides of an evaluation and of a diff, by what policies and coverage call them.
PLACES = {"true": "truth", "pred": "prediction", "baseline": "truth", "experiment": "prediction"}
#: Cluster sizes of a side, and counts of an evaluation: not scores, since no value is better than another.
SIZES = tuple(f"{figure}_{side}" for figure in ("clusters", "singletons", "largest") for side in PLACES)
NUMBERS = ("items", "cells")
#: Ends of an interval; and the requirement that a difference's interval must not exclude 0 on the worse side.
ENDS, SIGNIFICANT = ("low", "high"), "significant"
#: A comma between attributes of a slice: not after a backslash, and not within a bin such as [0.5, 1).
COMMA = re.compile(r"(?<!\\),(?!\s*[^,=]*\)\s*(?:,|$))")
#: Names of bins: 1990-1999, -10 to -1, [0.5, 1), <1990, >=1990.
BIN = re.compile(r"-?\d+(-| to )-?\d+|\[.*\)|(<|>=)-?[\d.]+")

Row = Mapping[str, Any]
#: Function that returns the table of a slicing by attributes or bins.
SlicesBy = Callable[[tuple[Element, ...]], Table]


@dataclass(frozen=True)
class Bound:
    """A bound on a score, coverage, size or count: a least or greatest value, over all items or in a slice."""

    name: str
    value: float
    at_least: bool = True
    where: Mapping[Element, str] = field(default_factory=dict)
    #: Bounded end of the interval, one of ENDS; SIGNIFICANT for a difference; "" for the score itself.
    end: str = ""

    @classmethod
    def of(cls, name: str, *limits: Any) -> Bound:
        """Return a bound on a score by name, or on an end of its interval, such as ``f1.low``."""
        score, _, end = name.rpartition(".")
        found = cls(name, *limits)
        return replace(found, name=score, end=end) if score and end in ENDS else found

    @property
    def called(self) -> str:
        """The name of the bounded figure, such as ``f1`` or ``f1.low``."""
        return f"{self.name}.{self.end}" if self.end in ENDS else self.name

    @property
    def by(self) -> tuple[Element, ...]:
        """The attributes or bins that define the slice; empty if the bound is on all items."""
        return tuple(self.where)

    @property
    def subject(self) -> str:
        """The subject of the gate, such as ``f1`` or ``f1 of country=US``."""
        named = ",".join(f"{name}={value}" for name, value in self.where.items())
        return f"{self.called} of {named}" if named else self.called

    @property
    def slice(self) -> dict[str, str] | None:
        """The slice as plain values; None if the bound is on all items."""
        return {str(name): value for name, value in self.where.items()} or None


class Subject(NamedTuple):
    """The subject of a bound: its name (for a score, that in the registry), its range, and which end is better."""

    name: str
    low: float
    high: float
    best: str


@dataclass(frozen=True)
class Gate:
    """The outcome of a gate: its subject, bound and value, and whether it passed."""

    subject: str
    wanted: str
    found: str
    passed: bool
    figures: Mapping[str, Any]
    reason: str = ""  #: why it failed, if the figures do not show it

    @property
    def line(self) -> str:
        """A line that says whether the gate passed, with the figures."""
        told = ", ".join(filter(None, [f"{self.subject} {self.found}".strip(), self.wanted]))
        return f"{'passed' if self.passed else 'failed'}: {told}{self.reason and f'. {self.reason}'}"

    def to_dict(self) -> dict[str, Any]:
        """Return the outcome as plain values."""
        reason = {"reason": self.reason} if self.reason else {}
        return {"gate": self.subject, "passed": self.passed, **self.figures, **reason}


# -- Bounds ----------------------------------------------------------------------------------------


def require_bound(bound: Bound, written: str, instead: str = "", scores: Sequence[Metric] = ()) -> Bound:
    """Return a valid bound on a score, coverage, size or count, under its name in the registry, or raise OptionError.

    `written` is the bound as the user wrote it, `instead` a bound in the opposite sense. `scores` are those of the
    result, which may include user-defined ones that the registry does not have.
    """
    name, low, high, best = subject_of(bound, written, scores)
    require_interval(bound, written)
    if best == ("lower" if bound.at_least else "higher"):
        instead = instead or f'"{bound.called}{"<=" if bound.at_least else ">="}{bound.value:g}"'
        raise OptionError(f"{written}: {best} is better there; use {instead}")
    if not low <= bound.value <= high:
        hint = f". Write {bound.value:g} % as {bound.value / 100:g}" if high == 1 < bound.value <= 100 else ""
        raise OptionError(f"{written}: {name} ranges from {low:g} to {high:g}{hint}")
    return replace(bound, name=name)


def require_interval(bound: Bound, written: str) -> None:
    """Raise OptionError if a bound is on an interval that is not defined, as for sizes and differences in slices."""
    if bound.end and not is_score(bound.name):
        raise OptionError(f"{written}: only scores have intervals, but {bound.name} is not a score")
    if bound.end == SIGNIFICANT and bound.where:
        raise OptionError(
            f"{written}: gates on the interval of a difference do not apply to slices; set a bound on the "
            "score there"
        )


def subject_of(bound: Bound, written: str, scores: Sequence[Metric] = ()) -> Subject:
    """Return the subject of a bound; raise OptionError for families, and in slices for scores undefined there."""
    here = {metric.name: metric for metric in scores}
    if bound.name in COVERAGES:
        found, overall_only = Subject(bound.name, 0.0, 1.0, "higher"), True
    elif not is_score(bound.name):
        high = 1.0 if bound.name.startswith("singletons_") else math.inf
        found, overall_only = Subject(bound.name, 0.0, high, "neither"), True
    else:
        metric = here.get(bound.name) or METRICS.get(str(known_as(bound.name)))
        if metric is None:
            resolve([bound.name])  # raises, with a suggestion, unless this is a family
            raise OptionError(f"{written}: {bound.name} is a family; name one of its scores")
        found = Subject(metric.name, metric.low, metric.high, metric.best)
        # slices of a saved score may have been saved, too
        overall_only = metric.overall_only and not metric.saved
    if bound.where and overall_only:
        raise OptionError(f"{written}: {found.name} is defined for all items at once, not for slices")
    return found


def is_score(name: str) -> bool:
    """Return whether the subject of a bound is a score rather than a coverage, size or count."""
    return name not in (*COVERAGES, *SIZES, *NUMBERS)


def as_bounds(
    written: Sequence[str], named: Mapping[str, float], scores: Sequence[Metric] = ()
) -> list[Bound]:
    """Return bounds from texts such as "f1>=0.9@country=US", and from values by name.

    `scores` are those of the result that the bounds apply to.
    """
    found = [require_bound(_parsed(text), quoted(text), scores=scores) for text in written]
    for name, given in named.items():
        value = number(given, f"{name}=", f"the bound of {name}", lambda _: True)
        best = subject_of(Bound.of(name, 0.0), f"{name}=", scores).best
        if best == "neither":
            raise OptionError(f'{name} has no direction; write "{name}>={value:g}" or "{name}<={value:g}"')
        found.append(
            require_bound(Bound.of(name, value, best == "higher"), f"{name}={value:g}", scores=scores)
        )
    if not found:
        raise OptionError('no bounds were given; pass some, such as f1=0.9 or "f1>=0.9@country=US"')
    return found


def _parsed(text: Any) -> Bound:
    bound, at, where = text.partition("@") if isinstance(text, str) else ("", "", "")
    try:
        name, sign, value = parse_bound(bound)
        if sign not in (">=", "<=") or (at and not where.strip()):
            raise ValueError
    except ValueError:
        raise OptionError(
            'write a gate as "f1>=0.9", "f1.low>=0.8", "jaccard_distance<=0.1" or '
            f'"f1>=0.9@country=US", not {quoted(text)}'
        ) from None
    return Bound.of(name, value, sign == ">=", as_where(where))


def as_where(text: str) -> dict[Element, str]:
    r"""Return the attributes or bins in a text such as ``country=US,year:10=1990-1999``, with their values.

    A comma in a value is written ``\,``; a colon in an attribute that would otherwise be read as a bin is ``\:``.
    """
    if not text:
        return {}
    parts = [part.partition("=") for part in COMMA.split(text)]
    found = {element_of(name.strip()): value.strip().replace("\\,", ",") for name, _, value in parts}
    if len(found) < len(parts) or any(not (name.strip() and sign) for name, sign, _ in parts):
        raise OptionError(f"write a slice as country=US or country=US,year=2020, not {quoted(text)}")
    return found


# -- Outcomes --------------------------------------------------------------------------------------


def try_bound(bound: Bound, ev: Any) -> Gate:
    """Return the outcome of a bound on an evaluation or diff; NaN fails."""
    gate = gate_on(bound, ev)
    if not isinstance(ev.coverage, Coverage):  # a diff; its coverage is not that of a truth
        return on_scored(gate, bound, ev.evaluation, ev.evaluation.coverage)
    return on_part(gate, bound, ev, ev.coverage, lambda: if_alone(ev))


def on_part(
    gate: Gate, bound: Bound, ev: Any, coverage: Coverage, alone: Callable[[], Mapping[str, float]]
) -> Gate:
    """Add to a gate's outcome on how few of the truth's items its score is based, if other items were dropped.

    This is added if most of the truth was dropped, or if F1 would be lower by 0.01 were the dropped items singletons.
    `coverage` is that before several runs were restricted to common items, and `alone` returns the result of
    `if_alone`. To a gate on sizes, the number of items is added unless it is all.
    """
    gate = on_scored(gate, bound, ev, coverage)
    n, n_truth = ev.coverage.n_common, coverage.n_common + coverage.n_truth_only
    if bound.where or not is_score(bound.name) or ev.policies.truth != "drop" or n == n_truth:
        return gate
    if counts_mentions(bound, ev):
        return gate
    known, shown = alone(), ev.overall.get("f1", math.nan)
    flattered = (known["f1"] if math.isnan(shown) else shown) - known["f1_if_alone"]
    if min(covered(coverage), n / n_truth) >= MOSTLY_COMMON and not flattered >= FLATTERED:
        return gate
    value = known.get(f"{bound.name}_if_alone", math.nan)
    others = "" if math.isnan(value) else f"; {score_text(value)} if the others were singletons"
    part = f"on {count(n)} of {count(n_truth)} items of the truth{others}"
    return replace(gate, found=f"{gate.found} ({part})")


def counts_mentions(bound: Bound, ev: Any) -> bool:
    """Return whether a bound is on a score that counts all mentions, for which no items are dropped."""
    return any(metric.name == bound.name and metric.of_mentions for metric in ev.metrics)


def on_scored(gate: Gate, bound: Bound, ev: Any, coverage: Coverage) -> Gate:
    """Add to a gate on sizes how many items of its side the clusters contain, unless all are scored."""
    side = bound.name.rpartition("_")[2]
    if bound.name not in SIZES:
        return gate
    place = PLACES[side]
    alone = getattr(ev.policies, place) == "singleton"
    n = ev.coverage.n_common + (getattr(ev.coverage, f"n_{place}_only") if alone else 0)
    n_all = coverage.n_common + getattr(coverage, f"n_{place}_only")
    if n == n_all:
        return gate
    whose = place if side in ("true", "pred") else side
    part = f"of the {count(n)} of {count(n_all)} items of the {whose} that are scored"
    return replace(gate, found=f"{gate.found} ({part})")


def gate_on(bound: Bound, ev: Any, **how: Any) -> Gate:
    """Return the outcome of a bound on a result's figure; `how` has arguments of `interval`."""
    value = value_of(bound, ev)
    if not bound.end:
        return exactly(gate_of(bound, value), bound, ev)
    found = _interval_in_slice(bound, ev, **how) if bound.where else ev.interval(bound.name, **how)
    return gate_on_end(bound, value, found, how.get("level", 0.95))


def gate_on_end(bound: Bound, value: float, found: Interval, level: float) -> Gate:
    """Return the outcome of a bound on one end of the interval of a value."""
    if math.isnan(found.low + found.high):
        why = "it is not defined" if math.isnan(value) else "it is 0, or all of its items are in one unit"
        raise MetricError(f"{bound.called}: no interval of {bound.name} is known, because {why}")
    gate = gate_of(bound, getattr(found, bound.end))
    figures = {**gate.figures, "of": value, **found._asdict(), "level": level}
    told = f"{gate.found}, {bound.name} {with_interval(value, *found)}"
    return replace(gate, found=told, figures=figures)


def _interval_in_slice(bound: Bound, ev: Any, level: float = 0.95, unit: str = COMPONENT) -> Interval:
    """Return the interval of a score in a slice, one-sided if the score is perfect; NaN if unknown."""
    if unit != COMPONENT:
        raise OptionError(
            f"{bound.subject}: intervals in slices are available only with {arg('unit', COMPONENT)}, not {quoted(unit)}"
        )
    row = slice_of(bound, slices_of(ev, errors=True))
    low, high = next((m.low, m.high) for m in ev.metrics if m.name == bound.name)
    value, error, n = row[bound.name], row.get(f"{bound.name}_se"), row.get("n_units") or 0
    if value is None or error is None or n < 2:
        return Interval(math.nan, math.nan)
    return interval(value, error, df=n - 1, level=level, low=low, high=high)


def gate_of(bound: Bound, value: float) -> Gate:
    """Return the outcome of a bound on a value; NaN fails."""
    passed = bool(meets(value, ">=" if bound.at_least else "<=", bound.value))
    sense = "at least" if bound.at_least else "at most"
    figures = {"score": bound.called, "slice": bound.slice, "value": value}
    figures["at_least" if bound.at_least else "at_most"] = bound.value
    found = f"is {_told(value, bound.value)}"
    return Gate(bound.subject, f"wanted {sense} {_exact(bound.value)}", found, passed, figures)


#: Labels of two clusters in which one side separates what the other joins.
APART, JOINED = [0, 0, 1, 1, 2], [0, 0, 0, 0, 1]


def exactly(gate: Gate, bound: Bound, ev: Any) -> Gate:
    """Return a gate on a perfect score as failed if the score is perfect only by rounding.

    A score of 10^13 pairs rounds to 1 even if a few pairs are wrong; whether clusters are merged or split is known
    exactly.
    """
    metric = METRICS.get(bound.name)
    end = math.nan if metric is None else metric.high if bound.at_least else metric.low
    if metric is None or bound.where or not gate.passed or bound.value != end or math.isinf(end):
        return gate
    ev = getattr(ev, "evaluation", ev)
    table = ev.contingency
    if table.overlapping or table.outside or table.weighting == "outer":
        return gate
    n_true, n_pred = (ev.summary[side]["clusters"] for side in ("true", "pred"))
    if table.has_cells:
        n_cells = table.n_cells
    else:  # at least so many: the same number of clusters on both sides, not all exact, has some merged and some split
        n_cells = max(n_true, n_pred) + (n_true == n_pred != ev.summary["true"]["exact"])
    sides = {"merged": (APART, JOINED, n_pred), "split": (JOINED, APART, n_true)}
    wrong = [
        word
        for word, (true, pred, n_clusters) in sides.items()
        if n_clusters < n_cells and _tells(metric, true, pred, end)
    ]
    if not wrong:
        return gate
    reason = f"It rounds to {_exact(end)}, but clusters are {' and '.join(wrong)}"
    return replace(gate, passed=False, reason=reason)


def _tells(metric: Metric, true: list[int], pred: list[int], end: float) -> bool:
    """Return whether a perfect score rules out that `pred` results from `true` by merging or splitting clusters."""
    try:
        return bool(without_rounding(compute(as_contingency(true, pred, None, None), [metric])[0] - end))
    except MetricError:  # a score that is undefined for such small clusterings
        return False


def _told(value: float, other: float) -> str:
    """Return a score as text, with all digits if fewer would look equal to the value it is compared with."""
    short = score_text(value)
    return _exact(value) if short == score_text(other) and without_rounding(value - other, other) else short


def _exact(value: float) -> str:
    if math.isnan(value):
        return "n/a"
    return f"{value:g}" if float(f"{value:g}") == value else repr(float(value))


def value_of(bound: Bound, ev: Any) -> float:
    """Return the figure that a bound applies to."""
    if bound.name in COVERAGES:
        return float(getattr(ev.coverage, bound.name))
    if bound.name in SIZES or bound.name == "items":
        return size_in(ev.summary, bound.name)
    if bound.name == "cells":
        return float(getattr(ev, "evaluation", ev).contingency.n_cells)
    return value_in_slice(bound, slices_of(ev)) if bound.where else float(ev.metric(bound.name))


def size_in(summary: Mapping[str, Mapping[str, Any]], name: str) -> float:
    """Return the size with this name in a summary; for singletons, their share of the clusters.

    >>> size_in({"pred": {"clusters": 4, "singletons": 1, "largest": 7}}, "singletons_pred")
    0.25
    """
    if name == "items":
        return float(next(iter(summary.values()))["items"])
    figure, _, side = name.rpartition("_")
    if side not in summary:
        names = " and ".join(f"{figure}_{each}" for each in summary)
        raise OptionError(f"there is no {name}; the sizes of the two sides are {names}")
    found = float(summary[side][figure])
    return found / summary[side]["clusters"] if figure == "singletons" else found


#: Number of slices among which a similar name is looked for if a slice does not exist.
MOST_LOOKED_AT = 1 << 14


def slices_of(ev: Any, *, errors: bool = False) -> SlicesBy:
    """Return a function that returns an evaluation's slices by some attributes, crossed in any order."""

    def slices(names: tuple[Element, ...]) -> Table:
        known = (each for each in ev.sliced.values() if same_slicing(name_columns(each.column_names), names))
        table: Table | None = None if errors else next(known, None)
        if table is None:
            # estimates always have errors of slices, and no such option
            table = ev.slices(names[0] if len(names) == 1 else names, **({"errors": True} if errors else {}))
        return table

    return slices


def same_slicing(columns: Iterable[str], names: Sequence[Element]) -> bool:
    """Return whether a table of slices with these name columns is the slicing by these attributes, in any order."""
    here = list(columns)
    return len(here) == len(names) and all(any(names_element(each, name) for each in here) for name in names)


def value_in_slice(bound: Bound, slices: SlicesBy) -> float:
    """Return a slice's score; raise OptionError if its slicing does not have this score."""
    row = slice_of(bound, slices)
    if bound.name not in row:
        raise OptionError(f"the slices have no {bound.name}; add it to {arg('metrics', ...)}")
    return math.nan if row[bound.name] is None else float(row[bound.name])


def slice_of(bound: Bound, slices: SlicesBy) -> Row:
    """Return the row of a slice; raise SliceError if it does not exist."""
    table = slices(bound.by)
    columns = name_columns(table.column_names)
    keys = {column: name for column in columns for name in bound.by if names_element(column, name)}

    def rows() -> Iterator[Row]:  # of which only some are in memory at a time
        return (row for some in table._batches() for row in some.to_pylist())

    for row in rows():
        if all(label(row[column]) == bound.where[name] for column, name in keys.items()):
            return row
    known = [",".join(label(row[column]) for column in keys) for row in islice(rows(), MOST_LOOKED_AT)]
    raise SliceError(
        f"no slice is {bound.subject.partition(' of ')[2]}: there are {len(table)} by "
        f"{','.join(map(str, keys.values()))} ({first_few(known)}).{_meant(bound.where, list(keys.values()), known)}"
    )


def _meant(where: Mapping[Element, str], names: Sequence[Element], known: Sequence[str]) -> str:
    """Return the end of a message on an unknown slice: which slice may have been meant."""
    for name in names:
        if isinstance(name, str) and BIN.fullmatch(where[name]):
            return f" Write a bin with its width or edges, such as {name}:10={where[name]}."
    bins = [{where[name], *(name.holding(where[name]) if isinstance(name, Bins) else ())} for name in names]
    exact = [each for each in map(",".join, product(*bins)) if each in known]
    if exact:
        return f" Did you mean {exact[0]!r}?"
    return did_you_mean(",".join(map(where.__getitem__, names)), known)


def try_warnings(codes: Sequence[str], ev: Any) -> list[Gate]:
    """Return a gate per warning code: a named code must not be given even as a note; "" stands for all warnings."""
    found = []
    for code in dict.fromkeys(codes):
        if code:
            given = [w["code"] for w in ev.warnings if w["code"] == code][:1]
            subject = f"warning {code}: {'given' if given else 'not given'}"
            found.append(Gate(subject, "wanted none", "", not given, {"warnings": given}))
        else:
            found.append(_try_all_warnings(ev))
    return found


def _try_all_warnings(ev: Any) -> Gate:
    """Return the gate that there is no warning; its outcome lists the remaining notes."""
    warnings, notes = (
        list(dict.fromkeys(w["code"] for w in ev.warnings if w["level"] == level))
        for level in (WARNING, NOTE)
    )
    found = f"({counted(len(notes), 'note')}: {', '.join(notes)})" if notes else ""
    figures = {"warnings": warnings, "notes": notes}
    if warnings:
        return Gate(f"warnings: {', '.join(warnings)}", "wanted none", found, False, figures)
    return Gate("no warning", "", found, True, figures)


def check(ev: Any, written: Sequence[str], named: Mapping[str, float]) -> Table:
    """Return the gates as a table, or raise GateError with a line for each that failed; see `Evaluation.check`."""
    return checked([try_bound(bound, ev) for bound in as_bounds(written, named, ev.metrics)])


def checked(gates: Sequence[Gate]) -> Table:
    """Return gates as a table, or raise GateError with a line for each that failed."""
    if failed := [gate for gate in gates if not gate.passed]:
        raise GateError(
            "\n".join([f"{len(failed)} of {len(gates)} gates failed", *(gate.line for gate in failed)])
        )
    figures = ("value", "at_least", "at_most")
    columns = {name: pa.array([gate.figures.get(name) for gate in gates], pa.float64()) for name in figures}
    results = {"gate": [gate.subject for gate in gates], "passed": [gate.passed for gate in gates]}
    return Table(pa.table({**results, **columns}))
