"""The judged table, from whatever holds it → verdicts by stratum; what is wrong with it is said by name."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from fastbcubed.errors import ColumnError, DuplicateItemError, JudgementError, first_few
from fastbcubed.sampling.pair_scores import DIFFERENT, SAME, VERDICTS, PairScore, pair_score
from fastbcubed.sources import Rows, as_rows
from fastbcubed.sources.suggestions import did_you_mean
from fastbcubed.sources.text_files import as_it_was

#: What is in the columns that the estimate needs: texts, whole numbers, numbers.
TEXTS, WHOLE, NUMBERS = (
    ("score", "change", "verdict"),
    ("pair", "repeats", "n_pairs", "sign"),
    ("probability", "z"),
)
#: Columns of samples that were drawn by strata, and of those for a change of precision.
OF_STRATA, OF_ITEMS = ("stratum", "share"), "self_pairs"
#: Figures that differ by less than this share of themselves were rounded on the way.
ROUNDING = 1e-6
#: What to do about a table that is not as it was drawn.
AS_DRAWN = "leave all columns but verdict, and all rows, as they were drawn"

#: Other words for whether two items are the same, as tools and spreadsheets write them.
MEANT = dict.fromkeys(("yes", "y", "true", "1", "1.0"), SAME) | dict.fromkeys(
    ("no", "n", "false", "0", "0.0"), DIFFERENT
)

Row = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Stratum:
    """Pairs that were drawn apart, and what was said of them."""

    name: str | None
    change: str
    sign: int
    z: float
    share: float  #: of the weight, that items of this name have
    self_pairs: float  #: of items of this name
    drawn: Mapping[str | None, int]  #: how often pairs were drawn, by verdict; None for those that have none
    known: Mapping[str | None, float]  #: the share of z that pairs have, by verdict, each counted once
    pairs: list[int]  #: their numbers


@dataclass(frozen=True, eq=False)
class Judged:
    """A judged sample: the score for which it was drawn, its strata, and pairs skipped before the last verdict."""

    score: PairScore
    strata: list[Stratum]
    skipped: list[int]


def read_judged(labelled: Any) -> Judged:
    """Read and check a table of judged pairs."""
    source = as_rows(labelled, "the judged pairs")
    if source is None:
        raise ColumnError(
            "the judged pairs are a table (path, data frame, Arrow table, dict of columns), not "
            f"{type(labelled).__name__}"
        )
    where = source.where
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


def _read(source: Rows) -> list[Row]:
    """Return the rows, of the columns that the estimate needs, numbers as numbers."""
    if not len(source):
        raise JudgementError(
            f"there is no pair in {source.where}; give what sample_pairs returned, with verdicts"
        )
    names = [*WHOLE, *NUMBERS, *TEXTS]
    optional = [name for name in (*OF_STRATA, OF_ITEMS) if name in source.names]
    for name in OF_STRATA if set(OF_STRATA) & set(optional) else ():
        names += [] if name in names else [name]
    names += [OF_ITEMS] if OF_ITEMS in optional else []
    columns = {
        name: [_text(value) for value in column.to_pylist()]
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
    return sum(_text(value) is not None for value in values)


def _text(value: Any) -> str | None:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    return str(value).strip() or None


def _numbers(texts: list[str | None], name: str, where: str) -> list[float]:
    """Return numbers, whole ones as integers; a pair that repeats none has 0."""
    found: list[float] = []
    strange: list[str | None] = []
    for text in texts:
        try:
            value = 0.0 if text is None and name == "repeats" else float(text or "")
            found.append(int(value) if name in WHOLE and value == int(value) else value)
            if not math.isfinite(value) or (name in WHOLE and value != int(value)):
                strange.append(text)
        except (OverflowError, ValueError):
            strange.append(text)
    if strange:
        what = "whole numbers" if name in WHOLE else "numbers"
        raise ColumnError(
            f"column {name!r} of {where} should be {what}, but {len(strange)} of {len(texts)} values are not (first: "
            f"{first_few(strange)}); {AS_DRAWN}"
        )
    return found


def _one_score(rows: list[Row], source: Rows) -> PairScore:
    """Return the score that the pairs were drawn for."""
    names = list(dict.fromkeys(row["score"] for row in rows))
    if len(names) > 1:
        raise JudgementError(
            f"{source.where} has pairs of several samples, for {first_few(names)}; estimate from each of them alone"
        )
    score = pair_score(names[0])
    if score.signed:
        source.columns([OF_ITEMS])  # raises if it is not there
    return score


def _require_as_drawn(rows: list[Row], score: PairScore, where: str) -> None:
    """Raise if rows are lost or repeated, or figures are none that a sample has."""
    count = Counter(row["pair"] for row in rows)
    if twice := [pair for pair, times in count.items() if times > 1]:
        raise DuplicateItemError(
            f"{len(twice)} of {len(count)} pairs are in {where} more than once (first: {first_few(twice)}); leave one "
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
            f"{len(lost)} of the {n} pairs that were drawn are not in {where} (first: {first_few(lost)}); leave in "
            "what was not judged, with an empty verdict"
        )


def _share_verdicts(rows: list[Row], where: str) -> None:
    """Check the verdicts, and give each pair of items, however often it was drawn, the one that it has."""
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
                f"pair {row['pair']} of {where} repeats pair {first['pair']}, and one is {first['verdict']!r}, the "
                f"other {row['verdict']!r}; decide on one verdict, and leave the other row empty"
            )
        first["verdict"] = first["verdict"] or row["verdict"]
    if strange:
        given, pair = strange[0]
        raise JudgementError(
            f"a verdict is {', '.join(map(repr, VERDICTS))}, yes, no, 1, 0 or empty, and {len(strange)} of {len(rows)} "
            f"in {where} are not (first: {given!r} of pair {pair}).{did_you_mean(given, VERDICTS)}"
        )
    for row in rows:
        row["verdict"] = by_items[row["repeats"] or row["pair"]]["verdict"]


def _first_open(rows: list[Row]) -> int:
    """Return the pair at which the judges have stopped: all from here on count as not judged.

    A pair that repeats an earlier one has its verdict; it counts only if those beside it were judged as well, or
    pairs that are drawn often would count too much.
    """
    last = max((row["pair"] for row in rows if row["verdict"] and not row["repeats"]), default=0)
    after = (row["pair"] for row in rows if not row["repeats"] and row["pair"] > last)
    return min(after, default=len(rows) + 1)


def _stratum(rows: list[Row], first_open: int, where: str) -> Stratum:
    """Count the verdicts of a stratum."""
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
