"""Estimates from judged pairs: a table, and sentences on the share of a change that is right."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from fastbcubed.render import html, text
from fastbcubed.render.document import Prose
from fastbcubed.render.wording import count, label, percent, percent_with_error, score_text, with_error
from fastbcubed.results.table import Table

if TYPE_CHECKING:
    from fastbcubed.render.report import Report

#: Strata that have a sentence of their own.
TOLD = 10
#: Intervals that are no wider, as a share of all pairs, are rounding.
ROUNDING = 1e-12
#: What pairs are called, by what the change did to them.
KINDS = {"split": "splitting", "merge": "merging"}


class PairEstimates(Table):
    """Scores of a change, estimated from judged pairs: a table of them, which begins with the verdict.

    Made by `fastbcubed.estimate_pairs`.

    Attributes
    ----------
    sentences : list of str
        How much of the splitting and of the merging is right, and how sure that is; by stratum, if there are any.
    level : float
        The confidence of the intervals.
    """

    __slots__ = ("level",)

    def __init__(self, arrow: pa.Table, level: float) -> None:
        super().__init__(arrow)
        self.level = level

    @property
    def sentences(self) -> list[str]:
        """The verdict for people."""
        by_stratum: dict[Any, dict[str, Any]] = {}
        for row in self.to_pylist():
            by_stratum.setdefault(row.get("stratum"), {})[row["score"]] = row
        lines = [_verdict(rows) for rows in list(by_stratum.values())[:TOLD]]
        if "stratum" in self.column_names:
            lines = [f"{label(name)}: {line}" for name, line in zip(by_stratum, lines, strict=False)]
        if len(by_stratum) > TOLD:
            lines.append(f"And {count(len(by_stratum) - TOLD)} more strata.")
        notes = {"±": "± is one standard error", "(": f"in parentheses, intervals of {100 * self.level:g} %"}
        if said := [note for sign, note in notes.items() if sign in "".join(lines)]:
            lines.append(f"({'; '.join(said)}.)")
        return lines

    def report(self, path: Any = None, *, title: str | None = None, overwrite: bool = False) -> Report:
        """Write a page for people: how much of the change is right, and the estimates with their intervals.

        Parameters
        ----------
        path : path, optional
            The file to write. Without it, what is returned shows itself in a notebook.
        title : str, optional
            The heading.
        overwrite : bool
            Whether a file that is there may be replaced.

        Returns
        -------
        Report
        """
        from fastbcubed.results.page import report_of
        from fastbcubed.sample.estimate_page import pairs_page

        return report_of(lambda asked: pairs_page(self, asked), path, {"title": title}, overwrite=overwrite)

    def __repr__(self) -> str:
        return f"{text.drawn([Prose(self.sentences)])}\n\n{super().__repr__()}"

    def _repr_html_(self) -> str:
        return f"<div>{html.drawn([Prose(self.sentences)])}{super()._repr_html_()}</div>"

    def __reduce__(self) -> tuple[Any, ...]:
        return PairEstimates, (self.to_arrow(), self.level)


def _verdict(rows: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the share of a change that is right, by rates if drawn so, otherwise by distances."""
    told: list[str] = []
    without: list[str] = []
    for kind, name in KINDS.items():
        known = (
            (rows[f"good_{kind}_{unit}"], rows[f"bad_{kind}_{unit}"])
            for unit in ("rate", "distance")
            if f"good_{kind}_{unit}" in rows
        )
        good, bad = next(known, (None, None))
        if good is None or bad is None:
            without.append(f"{name} was not judged")
        elif math.isnan(good["estimate"]):
            without.append(f"of the {name} nothing is known, as all verdicts are unsure")
        elif not (whole := good["estimate"] + bad["estimate"]) > 0:
            without.append(f"there was no {name}")
        else:
            good = _settled(good, whole)
            share = percent_with_error(good["estimate"] / whole, good["se"] / whole)
            ends = _ends(good, percent, whole)
            told.append(f"{share} of the {name}{'' if told else ' is right'}{ends}")
    text = f"{' and '.join(told)}{'; ' if told and without else ''}{', '.join(without)}."
    delta = rows.get("delta_precision")
    if delta is not None and math.isnan(delta["estimate"]):
        text += " The change of precision is not known."
    elif delta is not None:
        delta = _settled(delta)
        sign = "+" if delta["estimate"] > 0 else ""
        change = with_error(delta["estimate"], delta["se"])
        text += f" Precision changes by {sign}{change}{_ends(delta, score_text)}."
    return text[0].upper() + text[1:]


def _settled(row: Mapping[str, Any], whole: float = 1.0) -> Mapping[str, Any]:
    """Return a row with the score itself in place of its estimate, where all pairs were judged: the interval is it."""
    return {**row, "estimate": row["low"], "se": 0.0} if row["high"] - row["low"] < ROUNDING * whole else row


def _ends(row: Mapping[str, Any], write: Callable[[float], str], whole: float = 1.0) -> str:
    """Return an interval in parentheses; nothing of an estimate that is exact, as all pairs were judged."""
    if row["high"] - row["low"] < ROUNDING * whole:
        return ""
    return f" ({' to '.join(write(row[end] / whole) for end in ('low', 'high'))})"
