"""The result of an explanation: slices that lose more than the rest, or change otherwise, and how certain they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from fastbcubed._version import __version__
from fastbcubed.inputs.arrays import from_texts, table_of
from fastbcubed.render.document import Block, Document, Facts, Grid, Only, Prose, Section
from fastbcubed.render.number_formats import count, counted, label, percent, with_interval
from fastbcubed.results.evaluation_text import HEADLINE, lines_of_names
from fastbcubed.results.page import IN_BRIEF, Asked
from fastbcubed.results.result import Result
from fastbcubed.results.table import Table
from fastbcubed.runtime.object_attributes import documented

#: Numeric columns of `Explanation.slices`, which follow the name of the slice.
COUNTS = ("n_items", "n_units")
FIGURES = (
    "share", "inside", "inside_low", "inside_high", "outside", "outside_low", "outside_high", "share_of_loss", "excess",
    "held_out_inside", "held_out_outside", "p", "p_adjusted",
)  # fmt: skip
#: Number of slices described in sentences, and number of names listed in one.
SPOKEN, NAMED = 5, 6


@dataclass(frozen=True, eq=False, repr=False)
class Explanation(Result):
    """Kinds of items that lose more than other items or, for two runs, changed more or less than other items.

    `Evaluation.explain` and `Comparison.explain` return explanations.

    Attributes
    ----------
    slices : Table
        The slices confirmed on the half of the components that was not searched, largest excess first. The columns:

        - slice, n_items, and n_units, the number of components with items in the slice;
        - share, the slice's share of the total weight;
        - inside and outside, the scores inside and outside the slice, with the 95 % intervals inside_low, inside_high,
          outside_low and outside_high; for two runs, the changes in the score;
        - share_of_loss, the slice's share of the total loss; null for two runs;
        - excess, how much higher the overall score would be, to first order, if the slice scored like all other items;
          for two runs, how much the slice adds to the change;
        - held_out_inside and held_out_outside, the scores on the held-out half;
        - p, the p-value of the difference between inside and outside on the held-out half, one-sided for one run and
          two-sided for two runs;
        - p_adjusted, p adjusted for all tested slices by the method of Benjamini and Hochberg;
        - holds, whether the slice was confirmed;
        - alike, other slices with nearly the same items as the slice or its complement: their overlap has at least 90 %
          of the weight of each.
    proposed : Table
        All slices proposed by the search on one half of the components, with the same columns as `slices`.
    conditions : dict
        For each slice, the list of its conditions. A condition is a dict with the attribute and a value, several
        values, the bounds low and high (both inclusive), or null.
    loss : str
        The score whose loss is explained.
    run, baseline : str or None
        For two runs, the run that is compared and the baseline.
    looked_at : int
        Number of slices examined on the searched half.
    attributes : dict
        The attributes examined, each with its kind (categories, number, date, …), n_values (the number of values), and
        rare (the values that are pooled).
    left_out : dict of str to str
        Attributes that were not examined, and the reasons.
    power : list of dict
        The power of the test: for slices with a given share of the items, the difference in score that would be found 8
        times in 10, or null if there is no such difference.
    units : dict
        Numbers of components in the searched half ("searched") and in the tested half ("tested").
    options : dict
        The options depth, min_items, level, limit and seed.

    Examples
    --------
    >>> import fastbcubed as fb
    >>> truth = {k: k // 2 for k in range(2000)}
    >>> prediction = {k: k // 2 if k % 20 >= 4 else -k for k in truth}  # 4 of every 20 are singletons
    >>> where = {"item": list(truth), "country": ["JP" if k % 20 < 4 else "US" for k in truth]}
    >>> found = fb.evaluate(truth, prediction, attributes=where).explain(loss="recall")
    >>> found.slices.select(["slice", "n_items", "inside", "outside", "share_of_loss"])
    slice       n_items   inside  outside  share_of_loss
    country=JP      400  0.50000        1              1
    <BLANKLINE>
    1 row
    """

    loss: str
    options: Mapping[str, Any]
    rows: Sequence[Mapping[str, Any]]
    conditions: Mapping[str, list[dict[str, Any]]]
    overall: float
    looked_at: int
    attributes: Mapping[str, dict[str, Any]]
    left_out: Mapping[str, str]
    power: Sequence[Mapping[str, Any]]
    units: Mapping[str, int]
    names: Mapping[str, str] = field(default_factory=dict)
    run: str | None = None
    baseline: str | None = None

    __dir__ = documented

    @property
    def slices(self) -> Table:
        """The confirmed slices."""
        return _table([row for row in self.rows if row["holds"]])

    @property
    def proposed(self) -> Table:
        """All slices that were proposed and tested."""
        return _table(self.rows)

    def _main_table(self) -> Table:
        return self.slices

    def to_dict(self) -> dict[str, Any]:
        """Return the content of `to_json` as plain dicts, lists, numbers and strings."""
        head = {"fastbcubed": __version__, **self.names, "loss": self.loss}
        runs = {} if self.run is None else {"run": self.run, "baseline": self.baseline}
        rows = [{**row, "conditions": self.conditions[row["slice"]]} for row in self.rows]
        return head | runs | {
            "options": dict(self.options), "overall": self.overall, "sentences": sentences(self),
            "slices": [row for row in rows if row["holds"]],
            "not_confirmed": [row for row in rows if not row["holds"]],
            "looked_at": self.looked_at, "units": dict(self.units), "power": list(self.power),
            "attributes": dict(self.attributes), "left_out": dict(self.left_out),
        }  # fmt: skip

    def _document(self, asked: Asked | None = None) -> Document:
        return document(self, asked or IN_BRIEF)


def _table(rows: Sequence[Mapping[str, Any]]) -> Table:
    columns: dict[str, Any] = {"slice": from_texts([row["slice"] for row in rows])}
    columns |= {name: np.array([row[name] for row in rows], np.int64) for name in COUNTS}
    columns |= {name: pa.array([row[name] for row in rows], pa.float64()) for name in FIGURES}
    columns |= {"holds": pa.array([row["holds"] for row in rows], pa.bool_())}
    columns |= {"alike": pa.array([row["alike"] for row in rows], pa.list_(pa.string()))}
    return Table(table_of(columns))


# -- Sentences -------------------------------------------------------------------------------------


def sentences(found: Explanation) -> list[str]:
    """Return sentences on the slices found, largest first; or that none was found, and what could have been."""
    rows = [row for row in found.rows if row["holds"]]
    if not rows:
        return [_nothing(found), power_sentence(found)]
    texts = [_said(found, row) for row in rows[:SPOKEN]]
    if len(rows) > SPOKEN:
        texts.append(f"{counted(len(rows) - SPOKEN, 'more slice')} below.")
    return texts


def _said(found: Explanation, row: Mapping[str, Any]) -> str:
    name = score_name(found.loss)
    inside, outside = (_ends(row, where, found.run is not None) for where in ("inside", "outside"))
    again = [_one(row[f"held_out_{where}"], found.run is not None) for where in ("inside", "outside")]
    held = f"holds on the held-out half ({again[0]} against {again[1]})"
    share = f"Items where {row['slice']} are {percent(row['share'])} of the items"
    if found.run is None:
        whole = f" and {percent(row['share_of_loss'])} of the {name} loss" * (
            row["share_of_loss"] is not None
        )
        return f"{share}{whole} ({name} {inside} against {outside} elsewhere); {held}."
    how = "better" if row["inside"] > 0 else "worse" if row["inside"] < 0 else "as good"
    return (
        f"{share}; there {label(found.run)} is {how} ({name} {inside} against {outside} elsewhere); {held}."
    )


def _ends(row: Mapping[str, Any], where: str, change: bool) -> str:
    return with_interval(row[where], row[f"{where}_low"], row[f"{where}_high"], change=change)


def _one(value: float | None, change: bool) -> str:
    return "n/a" if value is None else f"{value:{'+' * change}.3f}"


def _nothing(found: Explanation) -> str:
    tested = len(found.rows)
    what = "differs significantly from" if found.run is not None else "loses significantly more than"
    looked = f"None of {counted(found.looked_at, 'slice')} {what} the rest"
    if not tested:
        return f"{looked}: the searched half of the components proposes none."
    such = "one, which does not hold" if tested == 1 else f"{count(tested)}, none of which holds"
    return f"{looked}: the searched half of the components proposes {such} on the other half."


def power_sentence(found: Explanation) -> str:
    """Return a sentence on the size of effects that these data could have shown."""
    name, parts = score_name(found.loss), list[str]()
    how = "differ by" if found.run is not None else "be lower by"
    for row in found.power:
        by = "the whole range" if row["difference"] is None else f"{row['difference']:.3f}"
        parts.append(
            f"by {by} in one of {percent(row['share'])}"
            if parts
            else f"{by} in a slice of {percent(row['share'])} of the items"
        )
    return f"To be found 8 times in 10, a slice's {name} has to {how} {', '.join(parts)}."


def score_name(loss: str) -> str:
    """Return the name of a score in a sentence."""
    return HEADLINE.get(loss, label(loss))


# -- The document ----------------------------------------------------------------------------------


def document(found: Explanation, asked: Asked = IN_BRIEF) -> Document:
    """Return an explanation as a document."""
    title = asked.title or f"What kind of items lose {score_name(found.loss)}?"
    if found.run is not None:
        title = asked.title or f"Which slices differ in {label(found.run)}?"
    facts = [("Run", label(found.run)), ("Baseline", label(found.baseline))]
    if found.run is None:
        facts = [("Prediction", found.names.get("prediction") or "the prediction")]
    facts.append(("Truth", found.names.get("truth") or "the truth"))
    head = [
        Only("text", [Prose([title, *lines_of_names(found.names if found.run is None else {})], "title")]),
        Only("page", [Facts(facts, "sides", ("pred", "true") if found.run is None else ())]),
    ]
    return Document("explanation", title, head, [
        Section("explanation", "Where it is worse" if found.run is None else "Where it differs", list(blocks(found))),
        Section("looked-at", "What was searched", [Prose(looked_at(found), "note")]),
    ])  # fmt: skip


def whole_blocks(found: Explanation) -> list[Block]:
    """Return all blocks that a page shows of an explanation, for a section of another page."""
    return [*blocks(found), Prose(looked_at(found), "note")]


def blocks(found: Explanation) -> list[Block]:
    """Return the sentences and the table as blocks."""
    rows = [{**row, "alike": "; ".join(row["alike"][:2])} for row in found.rows if row["holds"]]
    shown: list[Block] = [Prose(sentences(found), "lead")]
    form = "interval" if found.run is None else "change"
    columns: list[tuple[Any, ...]] = [("slice", "slice", "name"), ("items", "n_items", "count", 3)]
    columns += [("share", "share", "percent")]
    columns += [("of loss", "share_of_loss", "percent", 1)] * (found.run is None)
    columns += [
        (name, (where, f"{where}_low", f"{where}_high"), form, rank)
        for name, where, rank in (("inside", "inside", 0), ("elsewhere", "outside", 2))
    ]
    columns += [("excess", "excess", "delta", 1), ("held out", "held_out_inside", "score", 2)]
    columns += [("p", "p_adjusted", "figure", 2)]
    for row in rows:
        row["p_adjusted"] = p_text(row["p_adjusted"])
    if rows:
        shown.append(Grid.of(rows, columns, about="Slices that hold on the held-out half"))
        shown.append(Prose([about_columns(found)], "note"))
    return shown


def about_columns(found: Explanation) -> str:
    """Return the meaning of the columns with short heads."""
    excess = "loss that would vanish if the slice were like the rest"
    if found.run is not None:
        excess = "what the slice adds to the change in the overall score"
    chance = "probability of such a difference by chance, adjusted for all tested slices"
    return f"excess: {excess}; p: {chance}"


def p_text(p: float) -> str:
    """Return a p-value as text.

    >>> p_text(0.01234), p_text(1e-9)
    ('0.0123', '<0.0001')
    """
    return "<0.0001" if p < 1e-4 else f"{p:.4f}"


def looked_at(found: Explanation) -> list[str]:
    """Return sentences on what was examined, what was left out, and what could have been found."""
    units, tested = found.units, len(found.rows)
    holding = sum(row["holds"] for row in found.rows)
    lines = [
        f"{counted(found.looked_at, 'slice')} of {counted(len(found.attributes), 'attribute')} (up to "
        f"{found.options['depth']} together, at least {found.options['min_items']:,} items) on {units['searched']:,} "
        f"of {units['searched'] + units['tested']:,} components; {count(tested)} tested on the other "
        f"{units['tested']:,}, {count(holding)} hold (false discovery rate "
        f"{percent(found.options['level'])}, Benjamini–Hochberg).",
    ]
    if holding:
        lines.append(power_sentence(found))
    rare = {name: own["rare"] for name, own in found.attributes.items() if len(own["rare"]) > 1}
    if rare:
        said = [f"{label(name)} ({count(len(own))})" for name, own in list(rare.items())[:NAMED]]
        lines.append(f"Rare values are grouped: {', '.join(said)}{', …' if len(rare) > NAMED else ''}.")
    by_reason: dict[str, list[str]] = {}
    for name, reason in found.left_out.items():
        by_reason.setdefault(reason, []).append(label(name))
    lines += [
        f"Left out: {', '.join(names[:NAMED])}{', …' if len(names) > NAMED else ''}: {reason}."
        for reason, names in by_reason.items()
    ]
    return lines
