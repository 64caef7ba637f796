"""Scores of a change, estimated from judged pairs: checked tables of verdicts, estimates and their text."""

from __future__ import annotations

import math
import re
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from fastbcubed.errors import (
    ColumnError,
    DuplicateItemError,
    Either,
    EvaluationWarning,
    JudgementError,
    MetricError,
    first_few,
    quoted,
)
from fastbcubed.inputs.arrays import from_texts, table_of
from fastbcubed.inputs.files import as_rows
from fastbcubed.inputs.tables import Source, listed
from fastbcubed.inputs.verdicts import DIFFERENT, MEANT, SAME, UNSURE, VERDICTS, refuse_strange, word_of
from fastbcubed.render import html, text
from fastbcubed.render.document import Document, Grid, Prose, Section
from fastbcubed.render.number_formats import (
    count,
    label,
    percent,
    with_interval,
)
from fastbcubed.results.intervals import check_level, sum_of_shares
from fastbcubed.results.result import Result
from fastbcubed.results.save import save_tables
from fastbcubed.results.table import Table
from fastbcubed.runtime.suggestions import did_you_mean
from fastbcubed.sample.spreadsheets import as_it_was

if TYPE_CHECKING:
    from fastbcubed.results.page import Asked

#: The most strata or runs that have a sentence of their own.
TOLD = 10
#: Figures, and widths of intervals, below this share of the weight of all pairs are rounding errors.
NEGLIGIBLE = 1e-12
#: What pairs are called, by what the change did to them.
KINDS = {"split": "splitting", "merge": "merging"}


class PairEstimates(Table, Result):
    """Scores of a change, or of clusterings, estimated from judged pairs, as a table that prints the verdict first.

    `fastbcubed.estimate_pairs` returns a PairEstimates object.

    Attributes
    ----------
    sentences : list of str
        Sentences on how much of the splitting and merging is right, with intervals; by stratum, if there are strata.
        For labelled pairs, the sentences give the share of pairs in one cluster that match and the share of matches
        that are in one cluster, and say what the two shares do not cover.
    level : float
        The confidence level of the intervals.
    weight : str or None
        The column of weights of labelled pairs, if any.
    reading : dict
        How the columns of labelled pairs, and of each run, were read; see `Evaluation`.
    """

    __slots__ = ("level", "reading", "weight")

    def __init__(
        self,
        arrow: pa.Table,
        level: float,
        weight: str | None = None,
        reading: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(arrow)
        self.level, self.weight, self.reading = level, weight, dict(reading or {})

    @property
    def sentences(self) -> list[str]:
        """The verdict in sentences; see the attributes of the class."""
        by_stratum: dict[Any, dict[str, Any]] = {}
        for row in self.to_pylist():
            by_stratum.setdefault(row.get("stratum"), {})[row["score"]] = row
        if "n_components" in self.column_names:
            lines = of_labelled(self.to_pylist(), weighted=self.weight is not None)
        else:
            lines = [_verdict(rows) for rows in list(by_stratum.values())[:TOLD]]
        if "stratum" in self.column_names:
            lines = [f"{label(name)}: {line}" for name, line in zip(by_stratum, lines, strict=False)]
        if len(by_stratum) > TOLD:
            lines.append(f"And {count(len(by_stratum) - TOLD)} more strata.")
        note = f"(In parentheses, {100 * self.level:g} % intervals.)"
        return [*lines, note] if "(" in "".join(lines) else lines

    def to_dict(self) -> dict[str, Any]:
        """Return the content of `to_json` as plain dicts, lists, numbers and strings."""
        estimates = self.to_pylist()
        return {"level": self.level, "weight": self.weight, "estimates": estimates, "reading": self.reading}

    def save(self, directory: Any) -> None:
        """Write the estimates as JSON and Parquet; `fastbcubed.load` reads them back.

        Parameters
        ----------
        directory : path
            The directory to write to; a missing directory is created. Files of an earlier result in the directory are
            replaced together, after the new files have been written.
        """
        save_tables(directory, "pairs", self.to_dict(), {"estimates": self})

    @classmethod
    def _restored(cls, head: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> PairEstimates:
        return cls(tables["estimates"], head["level"], head.get("weight"), head.get("reading"))

    def _document(self, asked: Asked | None = None) -> Document:
        """Return the document of the estimates: the verdict, the table, and what its columns mean."""
        from fastbcubed.results.page import IN_BRIEF
        from fastbcubed.sample.estimates import LISTED, charts

        asked = asked or IN_BRIEF
        rows, unsure = [*map(_settled, self.to_pylist())], any(self["n_unsure"].to_pylist())
        columns: list[tuple[Any, ...]] = [
            (name, name, "name") for name in ("stratum", "run", "score") if name in self.column_names
        ]
        names = len(columns)
        columns += [("estimate", ("estimate", "low", "high"), "interval")]
        judged = {"judged": "n_judged", "unsure": "n_unsure", "not judged": "n_unjudged"}
        columns += [(title, name, "count") for title, name in judged.items()]
        columns += [
            ("low if unsure", "low_unsure", "score"),
            ("high if unsure", "high_unsure", "score"),
        ] * unsure
        of_labelled = "n_components" in self.column_names
        notes = [
            f"In parentheses, {100 * self.level:g} % intervals; judged, unsure, not judged: "
            f"{'pairs' if of_labelled else 'draws of pairs'} of the score"
        ]
        notes += ["if unsure: the estimates if all unsure pairs were decided one way or the other"] * unsure
        most = min(LISTED, len(rows)) if asked.page else len(rows)
        notes += [f"The first {most} of {count(len(rows))} rows."] * (most < len(rows))
        grid = Grid.of(rows[:most], columns, names, about="Figures")
        sections = [
            Section("verdict", "Verdict", [Prose(self.sentences, "lead"), *charts(rows, self.level)]),
            Section("figures", "Figures", [grid, Prose(notes)]),
        ]
        title = f"Human verdicts on the {'clusters' if of_labelled else 'change'}"
        return Document("judged pairs", asked.title or title, [], sections)

    def __repr__(self) -> str:
        return f"{text.drawn([Prose(self.sentences)])}\n\n{super().__repr__()}"

    def _repr_html_(self) -> str:
        return f"<div>{html.drawn([Prose(self.sentences)])}{super()._repr_html_()}</div>"

    def __reduce__(self) -> tuple[Any, ...]:
        return PairEstimates, (self.to_arrow(), self.level, self.weight, self.reading)


#: The limits of labelled pairs without weights, and with them.
NOT_SAID = (
    "Shares describe pairs like the labelled ones, not all pairs, unless they were drawn at random or "
    "weight= holds the inverse of each pair's sampling probability. Recall covers labelled matches: pairs "
    "that no blocking rule proposed are missing.",
    "Recall covers matches that could be drawn: pairs that no blocking rule proposed are missing.",
)


def of_labelled(rows: Sequence[Mapping[str, Any]], *, weighted: bool) -> list[str]:
    """Return a sentence on the pairs of each run, and one on the limits of such samples."""
    lines = []
    for start in range(0, len(rows), 3):
        precision, recall, f1 = rows[start : start + 3]
        told = []
        for row, what, none in (
            (precision, "of the pairs within predicted clusters match", "no judged pair is within a cluster"),
            (recall, "of the matches are within predicted clusters", "no judged pair matches"),
        ):
            share = "" if math.isnan(row["estimate"]) else percent(row["estimate"])
            told.append(f"{share} {what}{_ends(row, percent)}" if share else none)
        text = f"{', and '.join(told)}."
        if not math.isnan(f1["estimate"]):
            text = f"{text[:-1]}; F1 is {with_interval(f1['estimate'], f1['low'], f1['high'])}."
        if "run" in precision:
            text = f"{label(precision['run'])}: {text}"
        if n := precision["n_outside"]:
            have = "pair has" if n == 1 else "pairs have"
            text += (
                f" {count(n)} {have} an item in no cluster and count{'s' * (n == 1)} as not within a cluster."
            )
        if any(math.isnan(row["se"]) and row["n_components"] == 1 for row in (precision, recall)):
            text += " Shared items connect all pairs into one component, so no interval is known."
        lines.append(text[0].upper() + text[1:] if "run" not in precision else text)
    return [*lines, NOT_SAID[weighted]]


def _verdict(rows: Mapping[str, Mapping[str, Any]]) -> str:
    """Return a sentence on the shares of splitting and merging that are right, from rates or else from distances."""
    told: list[str] = []
    without: list[str] = []
    for kind, name in KINDS.items():
        known = (
            (rows[f"good_{kind}_{unit}"], rows[f"bad_{kind}_{unit}"])
            for unit in ("rate", "distance")
            if {f"good_{kind}_{unit}", f"bad_{kind}_{unit}"} <= rows.keys()
        )
        good, bad = next(known, (None, None))
        if good is None or bad is None:
            without.append(f"{name} was not judged")
        elif math.isnan(good["estimate"]):
            without.append(f"nothing is known about the {name} because all verdicts are unsure")
        elif not (whole := good["estimate"] + bad["estimate"]) > 0:
            without.append(f"there was no {name}")
        else:
            good = _settled(good, whole)
            share = percent(good["estimate"] / whole)
            ends = _ends(good, percent, whole)
            told.append(f"{share} of the {name}{'' if told else ' is right'}{ends}")
    text = f"{' and '.join(told)}{'; ' if told and without else ''}{' and '.join(without)}."
    delta = rows.get("delta_precision")
    if delta is not None and math.isnan(delta["estimate"]):
        text += " The change in precision is unknown."
    elif delta is not None:
        delta = _settled(delta)
        change = [delta[name] for name in ("estimate", "low", "high")[: 1 if _is_exact(delta) else 3]]
        text += f" Precision changes by {with_interval(*change, change=True)}."
    return text[0].upper() + text[1:]


def _settled(row: Mapping[str, Any], whole: float = 1.0) -> Mapping[str, Any]:
    """Return a row whose estimate is replaced by the exact score if all pairs were judged."""
    return {**row, "estimate": row["low"]} if _is_exact(row, whole) else row


def _is_exact(row: Mapping[str, Any], whole: float = 1.0) -> bool:
    return bool(row["high"] - row["low"] < NEGLIGIBLE * whole)


def _ends(row: Mapping[str, Any], write: Callable[[float], str], whole: float = 1.0) -> str:
    """Return an interval in parentheses; an empty text if it is unknown, or if the score is exact."""
    if math.isnan(row["low"]) or _is_exact(row, whole):
        return ""
    return f" ({' to '.join(write(row[end] / whole) for end in ('low', 'high'))})"


#: What the change did to a pair of items: it separated them, joined them, or left them together.
SPLIT, MERGED, STABLE = CHANGES = ("split", "merged", "stable")


@dataclass(frozen=True)
class PairScore:
    """A score that is a weighted sum over ordered pairs of items with a certain verdict."""

    name: str
    #: the verdict that counts, by what the change did to the pair
    counts: Mapping[str, str] = field(hash=False)
    #: whether weights are relative to the union of the item's old and new cluster; else, to one of the two
    by_union: bool = False
    signed: bool = False  #: whether separated pairs have a negative sign

    @property
    def answers(self) -> list[PairScore]:
        """The scores that the same pairs estimate: this one, unless it is `RATES`, and those that need some of them."""
        others = (
            other
            for other in PAIR_SCORES.values()
            if other is not self
            and other.by_union == self.by_union
            and other.counts.keys() <= self.counts.keys()
        )
        return [*others] if self is RATES else [self, *others]


def _quality(kind: str, split: str, merged: str) -> list[PairScore]:
    """Return the scores of good or bad changes, given the verdicts that count on separated and on joined pairs."""
    return [
        PairScore(f"{kind}_split_rate", {SPLIT: split}),
        PairScore(f"{kind}_merge_rate", {MERGED: merged}),
        PairScore(f"{kind}_split_distance", {SPLIT: split}, by_union=True),
        PairScore(f"{kind}_merge_distance", {MERGED: merged}, by_union=True),
        PairScore(f"{kind}_distance", {SPLIT: split, MERGED: merged}, by_union=True),
    ]


#: All scores of judged pairs, by name.
PAIR_SCORES = {
    each.name: each
    for each in (
        *_quality("good", split=DIFFERENT, merged=SAME),
        *_quality("bad", split=SAME, merged=DIFFERENT),
        PairScore("delta_precision", {SPLIT: SAME, MERGED: SAME, STABLE: SAME}, signed=True),
    )
}

#: A sample for all four rates: half of its pairs were separated, and half joined.
RATES = PairScore("rates", {SPLIT: DIFFERENT, MERGED: SAME})


def pair_score(name: object) -> PairScore:
    """Return the score of this name, or `RATES`; raise MetricError if there is none."""
    known = {RATES.name: RATES} | PAIR_SCORES
    if isinstance(name, str) and name in known:
        return known[name]
    asked = did_you_mean(name, known)
    raise MetricError(f"judged pairs can estimate {', '.join(known)}, not {quoted(name)}.{asked}")


#: Names of the columns that the estimate needs, by content: texts, whole numbers, numbers.
TEXTS, WHOLE, NUMBERS = (
    ("score", "change", "verdict"),
    ("pair", "repeats", "n_pairs", "sign"),
    ("probability", "z"),
)
#: Further columns of samples that were drawn by stratum, and of those for `delta_precision`.
OF_STRATA, OF_ITEMS = ("stratum", "share"), "self_pairs"
#: Figures whose relative difference is smaller than this differ only by rounding.
ROUNDING = 1e-6
#: The advice on a table that was changed after sampling.
AS_DRAWN = "change only the column verdict, and keep all rows as they were drawn"

#: A number with a decimal comma, as spreadsheets in many languages write it.
DECIMAL_COMMA = re.compile(r"-?\d+,\d+([eE][+-]?\d+)?")

Row = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Stratum:
    """The pairs drawn from one stratum with one change and sign, and their verdicts."""

    name: str | None
    change: str
    sign: int
    z: float
    share: float  #: share of the weight that items of strata of this name have
    self_pairs: float  #: contribution of pairs of such an item with itself
    drawn: Mapping[str | None, int]  #: number of draws by verdict; None if there is no verdict
    known: Mapping[str | None, float]  #: share of z of the distinct pairs drawn, by verdict
    pairs: list[int]  #: numbers of the pairs

    @property
    def n_judged(self) -> int:
        """Number of draws judged "same" or "different"; raises JudgementError if there is no verdict at all."""
        n = self.drawn.get(SAME, 0) + self.drawn.get(DIFFERENT, 0)
        if not n and not self.drawn.get(UNSURE, 0):
            raise JudgementError(
                f'no pair{self.of_name} with change "{self.change}" and sign {self.sign} has the verdict "{SAME}" or '
                f'"{DIFFERENT}"; judge some of these pairs: {first_few(self.pairs)}'
            )
        return n

    @property
    def of_name(self) -> str:
        """The name, as messages append it; empty if there is no name."""
        return "" if self.name is None else f" of stratum {self.name!r}"


@dataclass(frozen=True, eq=False)
class Judged:
    """A judged sample: the score for which it was drawn, its strata, and the pairs skipped before the last verdict."""

    score: PairScore
    strata: list[Stratum]
    skipped: list[int]


def read_judged(labelled: Any) -> Judged:
    """Read and check a table of judged pairs."""
    source = as_rows(labelled, "the judged pairs")
    if source is None:
        raise ColumnError(
            "the judged pairs must be a table (path, data frame, Arrow table, dict of columns), not "
            f"{type(labelled).__name__}"
        )
    where = source.where
    if not {"pair", "probability", "z"} & set(source.names):
        raise ColumnError(
            f"There is no column 'pair' in {where} ({listed(source.names)}), as sample_pairs writes it. For "
            f"other labelled pairs, pass the clusters to score as {Either('prediction=', '--prediction')}."
        )
    rows = _read(source)
    score = _one_score(rows, source)
    _require_as_drawn(rows, score, where)
    rows.sort(key=lambda row: row["pair"])
    _share_verdicts(rows, where)
    by_stratum: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        by_stratum.setdefault((row["stratum"], row["change"], row["sign"]), []).append(row)
    first_open = _first_open(rows)
    strata = [_stratum(own, first_open, where) for own in by_stratum.values()]
    skipped = [
        r["pair"] for r in rows if r["verdict"] is None and not r["repeats"] and r["pair"] < first_open
    ]
    return Judged(score, strata, skipped)


def _read(source: Source) -> list[Row]:
    """Return the rows as dicts of the columns that the estimate needs, with figures parsed."""
    if not len(source):
        raise JudgementError(
            f"there is no pair in {source.where}; pass the result of sample_pairs, with verdicts"
        )
    names = [*WHOLE, *NUMBERS, *TEXTS]
    names += OF_STRATA if set(OF_STRATA) & set(source.names) else ()
    names += [OF_ITEMS] if OF_ITEMS in source.names else []
    columns = {
        name: [word_of(value) for value in column.to_pylist()]
        for name, column in zip(names, source.columns(names), strict=True)
    }
    if "stratum" in columns and "stratum" in source.untyped:
        columns["stratum"] = [text and as_it_was(text) for text in columns["stratum"]]
    for name in columns.keys() - {*TEXTS, "stratum"}:
        columns[name] = _numbers(columns[name], name, source.where)  # type: ignore[assignment]
    absent = {"stratum": None, "share": 1.0, OF_ITEMS: 0.0}
    return [absent | dict(zip(columns, each, strict=True)) for each in zip(*columns.values(), strict=True)]


def count_verdicts(source: Any) -> int:
    """Return how many rows of a table of pairs have a verdict."""
    rows = as_rows(source, "the pairs")
    values = rows.columns(["verdict"])[0].to_pylist() if rows is not None and "verdict" in rows.names else []
    return sum(word_of(value) is not None for value in values)


def _numbers(texts: list[str | None], name: str, where: str) -> list[float]:
    """Return the values of a column as numbers; an empty value of `repeats` becomes 0."""
    found: list[float] = []
    strange: list[str | None] = []
    for each in texts:
        try:
            value = 0.0 if each is None and name == "repeats" else float(each or "")
            found.append(int(value) if name in WHOLE and value == int(value) else value)
            if not math.isfinite(value) or (name in WHOLE and value != int(value)):
                strange.append(each)
        except (OverflowError, ValueError):
            strange.append(each)
    if strange:
        what = "whole numbers" if name in WHOLE else "numbers"
        comma = all(text is not None and DECIMAL_COMMA.fullmatch(text) for text in strange)
        advice = (
            "a spreadsheet wrote them with a decimal comma: save it with decimal points"
            if comma
            else AS_DRAWN
        )
        raise ColumnError(
            f"column {name!r} of {where} should be {what}, but {len(strange)} of {len(texts)} values are not (first: "
            f"{first_few(strange)}); {advice}"
        )
    return found


def _one_score(rows: list[Row], source: Source) -> PairScore:
    names = list(dict.fromkeys(row["score"] for row in rows))
    if len(names) > 1:
        raise JudgementError(
            f"{source.where} has pairs of several samples, for {first_few(names)}; estimate from each sample "
            "separately"
        )
    score = pair_score(names[0])
    if score.signed:
        source.columns([OF_ITEMS])  # raises if it is missing
    return score


def _require_as_drawn(rows: list[Row], score: PairScore, where: str) -> None:
    """Raise if rows are missing or repeated, or if figures cannot be those of a sample."""
    count = Counter(row["pair"] for row in rows)
    if twice := [pair for pair, times in count.items() if times > 1]:
        raise DuplicateItemError(
            f"{len(twice)} of {len(count)} pairs are in {where} more than once (first: {first_few(twice)}); keep one "
            "row of each, with one verdict"
        )
    n = rows[0]["n_pairs"]
    holds: dict[str, tuple[str, Callable[[Any], bool]]] = {
        "n_pairs": (f"{n}, as in the first row", lambda value: value == n),
        "pair": (f"a number from 1 to {n}", lambda value: 1 <= value <= n),
        "repeats": ("empty, or the number of a pair", lambda value: value == 0 or value in count),
        "change": (" or ".join(map(repr, score.counts)), lambda value: value in score.counts),
        "sign": (
            "1 or -1" if score.signed else "1",
            lambda value: value == 1 or (score.signed and value == -1),
        ),
        "probability": ("between 0 and 1", lambda value: 0 <= value <= 1 + ROUNDING),
        "share": ("between 0 and 1", lambda value: 0 < value <= 1 + ROUNDING),
        "z": ("a positive number", lambda value: value > 0),
    }
    for name, (what, is_right) in holds.items():
        wrong = [row for row in rows if not is_right(row[name])]
        if wrong:
            raise JudgementError(
                f"{name} should be {what}, but is {wrong[0][name]!r} in pair {wrong[0]['pair']}, and wrong in "
                f"{len(wrong)} of {len(rows)} rows of {where}; {AS_DRAWN}"
            )
    if lost := [pair for pair in range(1, n + 1) if pair not in count]:
        raise JudgementError(
            f"{len(lost)} of the {n} pairs that were drawn are not in {where} (first: {first_few(lost)}); "
            "keep unjudged pairs, with an empty verdict"
        )


def _share_verdicts(rows: list[Row], where: str) -> None:
    """Check the verdicts, and give all draws of the same two items the same verdict."""
    strange = []
    by_items: dict[int, Row] = {}
    for row in rows:
        given = row["verdict"]
        row["verdict"] = None if given is None else MEANT.get(given.lower(), given.lower())
        if row["verdict"] not in (None, *VERDICTS):
            strange.append((given, row["pair"]))
        first = by_items.setdefault(row["repeats"] or row["pair"], row)
        if row["verdict"] is not None and first["verdict"] not in (None, row["verdict"]):
            raise JudgementError(
                f"pair {row['pair']} of {where} repeats pair {first['pair']}, but one is "
                f"{first['verdict']!r}, the other {row['verdict']!r}; keep one verdict, and leave the other "
                "row empty"
            )
        first["verdict"] = first["verdict"] or row["verdict"]
    if strange:
        refuse_strange(
            [given for given, _ in strange], len(strange), len(rows), f"{where}, of pair {strange[0][1]}"
        )
    for row in rows:
        row["verdict"] = by_items[row["repeats"] or row["pair"]]["verdict"]


def _first_open(rows: list[Row]) -> int:
    """Return the number of the first pair after the last judged one: from here on, pairs count as not judged.

    A later pair that repeats a judged one does not count either: its verdict is known only because it was drawn
    repeatedly, so pairs that are drawn often would count too much.
    """
    last = max((row["pair"] for row in rows if row["verdict"] and not row["repeats"]), default=0)
    after = (row["pair"] for row in rows if not row["repeats"] and row["pair"] > last)
    return min(after, default=len(rows) + 1)


def _stratum(rows: list[Row], first_open: int, where: str) -> Stratum:
    first = rows[0]
    for name in ("z", "share", OF_ITEMS):
        if any(not math.isclose(row[name], first[name], rel_tol=ROUNDING) for row in rows):
            raise JudgementError(
                f"{name} differs between pairs of one stratum in {where} ({first['stratum'] or first['change']}); "
                f"{AS_DRAWN}"
            )
    drawn = Counter(row["verdict"] if row["pair"] < first_open else None for row in rows)
    once = {row["repeats"] or row["pair"]: row for row in rows}
    known: dict[str | None, float] = {}
    for row in once.values():
        known[row["verdict"]] = known.get(row["verdict"], 0.0) + row["probability"]
    if math.fsum(known.values()) > 1 + ROUNDING:
        raise JudgementError(
            f"the probabilities of the pairs of one stratum add up to more than 1 in {where}; {AS_DRAWN}"
        )
    figures = {name: first[name] for name in ("change", "sign", "z", "share", OF_ITEMS)}
    return Stratum(first["stratum"], **figures, drawn=drawn, known=known, pairs=[row["pair"] for row in rows])


class Estimate(NamedTuple):
    """A score estimated from judged pairs; each figure is a column of the result."""

    estimate: float
    se: float
    low: float
    high: float
    n_judged: int
    n_unsure: int
    n_unjudged: int
    low_unsure: float
    high_unsure: float


def estimate(labelled: Any, by_stratum: bool, level: float) -> PairEstimates:
    """Estimate scores from judged pairs, as `fastbcubed.estimate_pairs` does."""
    level, judged = check_level(level), read_judged(labelled)
    if not any(verdict for stratum in judged.strata for verdict in stratum.drawn):
        raise JudgementError(
            'no pair has a verdict; write "same", "different" or "unsure" into the column verdict'
        )
    if judged.skipped:
        warnings.warn(EvaluationWarning(_of_skipped(judged)), stacklevel=3)
    if unsure := [each for each in judged.strata if not each.n_judged]:
        warnings.warn(EvaluationWarning(_of_unsure(unsure)), stacklevel=3)
    names = dict.fromkeys(stratum.name for stratum in judged.strata)
    found: list[tuple[str | None, str, Estimate]] = []
    for name in names if by_stratum else (None,):
        own = [each for each in judged.strata if not by_stratum or each.name == name]
        share = own[0].share if by_stratum else 1.0
        found += [(name, score.name, estimated(score, own, share, level)) for score in judged.score.answers]
    return PairEstimates(listed_estimates(found, "stratum" if by_stratum else None), level)


def listed_estimates(found: Sequence[tuple[str | None, str, Estimate]], of: str | None) -> Any:
    """Return the table of estimates, given as (name, score, estimate); `of` is the header of names, or None."""
    names, scores, estimates = zip(*found, strict=True)
    columns: dict[str, Any] = {} if of is None else {of: from_texts(list(names))}
    columns["score"] = from_texts(list(scores))
    for name, values in zip(Estimate._fields, zip(*estimates, strict=True), strict=True):
        columns[name] = np.array(values)
    return table_of(columns)


def _of_skipped(judged: Judged) -> str:
    n = len(judged.skipped)
    return (
        f"{n} pair{'s' if n > 1 else ''} before the last one judged {'have' if n > 1 else 'has'} no verdict (first: "
        f"{first_few(judged.skipped)}). Skipped pairs are assumed to be like the judged ones, which is wrong if they "
        'were skipped because they are hard; mark hard pairs "unsure"'
    )


def _of_unsure(strata: list[Stratum]) -> str:
    named = ", ".join(f'pairs{each.of_name} with change "{each.change}"' for each in strata[:3])
    more = f" and of {len(strata) - 3} more" * (len(strata) > 3)
    return (
        f'all verdicts are "unsure" on {named}{more}: their scores are unknown (NaN), and those of all strata are '
        "estimated from the others"
    )


def estimated(score: PairScore, strata: list[Stratum], share: float, level: float) -> Estimate:
    """Estimate a score from its strata, which have this share of the weight.

    A stratum of n judged draws, k of which count, contributes z k / n. The interval is limited to the values that the
    verdicts leave possible; the estimate is not, because this would bias it. If all verdicts of a stratum are unsure,
    the score is that of the items of the other strata.
    """
    every = [each for each in strata if each.change in score.counts]
    if not every:  # the change separated or joined no such pair
        return Estimate(0.0, 0.0, 0.0, 0.0, 0, 0, 0, 0.0, 0.0)
    if left := {each.name for each in every if not each.n_judged}:
        return _without(left, score, strata, share, level)
    own = [_Counted.of(each, score) for each in every]
    self_pairs = {each.name: each.self_pairs for each in strata} if score.signed else {}
    known = math.fsum(self_pairs.values())

    whole = math.fsum(each.z for each in own)

    def added(values: Any) -> float:
        total = known + math.fsum(values)
        return 0.0 if abs(total) < NEGLIGIBLE * whole else total / share

    value = added(each.sign * each.z * (each.k / each.n) for each in own)
    se = math.sqrt(math.fsum((each.z * each.error) ** 2 for each in own)) / share
    low, high = (
        (known + end) / share
        for end in sum_of_shares(
            [each.sign * each.z for each in own], [each.k for each in own], [each.n for each in own], level
        )
    )
    least, most = (
        added(each.sign * each.z * each.bound[side * each.sign] for each in own) for side in (-1, 1)
    )
    unsure = (added(each.sign * each.z * each.unsure[side * each.sign] for each in own) for side in (-1, 1))
    low, high = max(low, least), min(high, most)
    if low > high:  # the draws contradict the few values still possible
        low, high = least, most
    n_unsure, n_unjudged = (sum(each.drawn.get(verdict, 0) for each in own) for verdict in (UNSURE, None))
    return Estimate(value, se, low, high, sum(each.n for each in own), n_unsure, n_unjudged, *unsure)


def _without(
    unsure: set[str | None], score: PairScore, strata: list[Stratum], share: float, level: float
) -> Estimate:
    """Estimate a score from the strata with other names than these unsure ones; NaN if none is left."""
    shares = {each.name: each.share for each in strata if each.name not in unsure}
    own = [each for each in strata if each.change in score.counts]
    left = [each for each in own if each.name in unsure]
    n_unsure, n_unjudged = (sum(each.drawn.get(verdict, 0) for each in left) for verdict in (UNSURE, None))
    if any(each.name not in unsure for each in own):
        rest = [each for each in strata if each.name not in unsure]
        found = estimated(score, rest, math.fsum(shares.values()), level)
        return found._replace(n_unsure=found.n_unsure + n_unsure, n_unjudged=found.n_unjudged + n_unjudged)
    known = math.fsum({each.name: each.self_pairs for each in strata}.values()) if score.signed else 0.0
    signs = [(each.sign if score.signed else 1, each.z) for each in own]
    low, high = ((known + math.fsum(sign * z for sign, z in signs if sign == end)) / share for end in (-1, 1))
    return Estimate(math.nan, math.nan, low, high, 0, n_unsure, n_unjudged, low, high)


class _Counted(NamedTuple):
    """The k of n judged draws of a stratum that count for a score. Dicts have keys -1 (lower end) and 1 (upper end)."""

    sign: int
    z: float
    k: int
    n: int
    error: float  #: the standard error of k / n; NaN for a single draw, unless it is of the only pair
    unsure: dict[int, float]  #: k / n if no unsure draw counted, and if all did
    bound: dict[int, float]  #: the smallest and the largest share that the verdicts leave possible
    drawn: Any

    @classmethod
    def of(cls, stratum: Stratum, score: PairScore) -> _Counted:
        """Count the verdicts of a stratum with judged pairs."""
        verdict, n = score.counts[stratum.change], stratum.n_judged
        k, more = stratum.drawn.get(verdict, 0), stratum.drawn.get(UNSURE, 0)
        seen = stratum.known.get(verdict, 0.0)
        left = 1.0 - stratum.known.get(SAME, 0.0) - stratum.known.get(DIFFERENT, 0.0)
        left = left if left > NEGLIGIBLE else 0.0
        return cls(
            sign=stratum.sign if score.signed else 1,
            z=stratum.z,
            k=k,
            n=n,
            error=math.sqrt(k / n * (1 - k / n) / (n - 1)) if n > 1 else math.nan if left else 0.0,
            unsure={-1: k / (n + more), 1: (k + more) / (n + more)},
            bound={-1: seen, 1: seen + left},
            drawn=stratum.drawn,
        )
