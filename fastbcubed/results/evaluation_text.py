"""The text of a result: its verdict in sentences, one cluster, one item."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from fastbcubed.align.policies import Policies
from fastbcubed.errors import OptionError
from fastbcubed.metrics.bcubed import LOSSES
from fastbcubed.render.document import Beside, Document, Grid, Prose, in_blocks
from fastbcubed.render.html import Shown
from fastbcubed.render.number_formats import (
    amount,
    count,
    counted,
    label,
    listed,
    outcomes_of,
    percent,
    score_text,
    with_interval,
)
from fastbcubed.results.concentration import concentration_sentence
from fastbcubed.results.evaluation_data import EvaluationData
from fastbcubed.results.standard_errors import are_uneven
from fastbcubed.results.table import Table
from fastbcubed.results.unit_cells import Units
from fastbcubed.results.warnings import if_alone
from fastbcubed.runtime.object_attributes import documented

#: Scores of the headline, and their names in it.
HEADLINE = {"precision": "precision", "recall": "recall", "f1": "F1"}
#: Scores that the verdict mentions.
NAMED = 5
#: One kind of error dominates if it costs this many times as much as the other.
DOMINATES = 3.0
#: Maximum number of cells of overlapping clusterings for which the loss by cluster is computed by default.
FEW_CELLS = 200_000


def verdict(ev: EvaluationData) -> list[str]:
    """Return the verdict in sentences: scores with intervals, and the dominant kind of error."""
    return [line for line in (_headline(ev), _kind_of_error(ev), _where(ev)) if line]


def _headline(ev: EvaluationData) -> str:
    names = [name for name in HEADLINE if name in ev.overall]
    if not names:
        return ""
    errors = ev.standard_errors
    ends, known = errors.intervals_at_hand(), errors.at_hand()
    few = errors.carried_by_few(names)
    text = ", ".join(
        f"{HEADLINE[name]} {with_interval(ev.overall[name], *ends.get(name, ()))}" for name in names
    )
    text = f"{text[0].upper()}{text[1:]}."
    if known is None or "(" not in text:
        return f"{text} (No interval is shown: {errors.no_room}.)" if errors.no_room else text
    return f"{text} (In parentheses, 95 % intervals, from {groups_of(known.units, few)}.)"


def groups_of(units: Units, few: Mapping[str, int]) -> str:
    """Return text on how many groups intervals are from, and which scores' errors come from `few` of them."""
    text = f"{count(units.n)} groups of items that share clusters"
    if are_uneven(units):
        text += f", so uneven that their effective number is only {units.effective:.1f}: "
        text += "these intervals are too narrow"
    elif few:
        scores = listed([HEADLINE.get(name, name) for name in list(few)[:NAMED]])
        text += f", about {count(min(few.values()))} of which account for the error of {scores}"
    return text


def _kind_of_error(ev: EvaluationData) -> str:
    """Return a sentence on the wrong share of an item's predicted cluster and the missing share of its true one."""
    rates = _rates(ev)
    if rates is None:
        return ""
    merged, split = rates
    if not merged + split > 0:
        return "The two clusterings are the same on these items." if merged + split == 0 else ""
    foreign = f"{_rate(merged)} of an item's predicted cluster does not belong with it"
    missing = f"{_rate(split)} of its true cluster is missing"
    if merged >= DOMINATES * split:
        return f"Merging dominates: on average, {foreign}, and {missing}."
    if split >= DOMINATES * merged:
        missing = missing.replace("its true cluster", "an item's true cluster")
        foreign = (
            foreign.replace("an item's", "its") if merged else "all of its predicted cluster belongs with it"
        )
        return f"Splitting dominates: on average, {missing}, and {foreign}."
    return f"Both wrong merges and wrong splits contribute: on average, {foreign}, and {missing}."


def _rate(rate: float) -> str:
    return percent(rate) if rate else "nothing"


def _where(ev: EvaluationData) -> str:
    """Return a sentence on how concentrated the loss is, if computing this takes less time than the scores did."""
    cells = ev.contingency
    if not cells.has_cells or (cells.overlapping and cells.n_cells > FEW_CELLS):
        return ""
    try:
        return concentration_sentence(ev.concentration)
    except OptionError:  # the memory limit is too low
        return ""


def _rates(ev: EvaluationData) -> tuple[float, float] | None:
    """Return the over- and the under-merge rate; None if unknown or not quickly computed."""
    known = all(metric.name in ev.overall for metric in LOSSES.values())
    if known or ev.contingency.has_cells:  # otherwise overlapping cells, or none
        return ev.losses.of_all("pred"), ev.losses.of_all("true")
    return None


def outcomes(ev: EvaluationData) -> list[str]:
    """Return sentences on the outcomes of both sides' clusters; none if clusters overlap."""
    lines = []
    for side, name in (("true", "true"), ("pred", "predicted")):
        found: Mapping[str, int] = ev.summary[side].get("outcomes") or {}
        if found:
            lines.append(f"{outcomes_of(name, ev.summary[side]['clusters'], found)}.")
    return lines


#: What was done with items that only one side has, for a sentence.
FATES = {
    "drop": "left out (drop)",
    "singleton": "singletons on the other side (singleton)",
    "outside": "not scored, but counted as false positives for the items they are clustered with (outside)",
}
#: What was done with items whose cluster is null. If both sides are in one table, null means that the side lacks the
#: item.
FATES_OF_NULLS = {
    "drop": "taken as missing on that side (drop)",
    "singleton": "each in a cluster of its own (singleton)",
    "raise": "taken as missing on that side",
}


def coverage(evaluation: EvaluationData) -> list[str]:
    """Return sentences on the coverage and the effects of the policies; none if there were no effects."""
    found, policies = evaluation.coverage, evaluation.policies
    lines = []
    if found.n_truth_only or found.n_prediction_only:
        shares = (
            _share(evaluation, "truth", found.n_truth_only, found.truth_coverage),
            _share(evaluation, "prediction", found.n_prediction_only, found.prediction_coverage),
        )
        lines.append(f"Coverage: {counted(found.n_common, 'item')} on both sides, {' and '.join(shares)}.")
    for side, number in (("truth", found.n_truth_only), ("prediction", found.n_prediction_only)):
        if number:
            fate = getattr(policies, side)
            lines.append(f"{counted(number, 'item')} only in the {side}: {FATES.get(fate, fate)}.")
    bounds = evaluation.bounds
    if bounds is not None and not math.isnan(bounds.precision_lower + bounds.precision_upper):
        low, high = score_text(bounds.precision_lower), score_text(bounds.precision_upper)
        if low != high:
            lines.append(
                f"If the truth labelled all items of the prediction, precision would be between {low} and {high}."
            )
    return [*lines, *rows_lines(found, policies)]


def rows_lines(found: Any, policies: Policies) -> list[str]:
    """Return sentences on rows that were changed or dropped while reading, given the coverage."""
    lines = []
    if found.n_null:
        lines.append(f"{counted(found.n_null, 'row')} with a null cluster: {FATES_OF_NULLS[policies.nulls]}.")
    if found.n_noise:
        noise = policies.noise
        if isinstance(noise, Mapping):
            only = " on one side" if len(noise) == 1 else ""
            noise = " or ".join(dict.fromkeys(map(label, noise.values()))) + only
        else:
            noise = label(noise)
        lines.append(
            f"{counted(found.n_noise, 'row')} labelled {noise} (noise): each in a cluster of its own."
        )
    if found.n_duplicates:
        lines.append(f"{counted(found.n_duplicates, 'row')} repeated an earlier one: left out (drop).")
    return lines


def _share(evaluation: EvaluationData, side: str, only: int, of_weight: float) -> str:
    """Return the share of a side's items (and of their weight, if known) that are on both sides."""
    n_common = evaluation.coverage.n_common
    text = f"{percent(n_common / max(1, n_common + only))} of the {side}'s {count(n_common + only)}"
    if evaluation.contingency.weighted and not math.isnan(of_weight):
        text += f" ({percent(of_weight)} of their weight)"
    return text


def definition(evaluation: EvaluationData) -> list[str]:
    """Return sentences on what is unusual in the definition of the scores: weights, overlap, beta."""
    table, lines = evaluation.contingency, []
    if table.weighted:
        outer = table.weighting == "outer"
        where = "in the mean alone" if outer else "inside each item's confusion matrix and in the mean"
        lines.append(f"Weights count {where}.")
    if table.overlapping:
        lines.append(
            "Clusters may overlap (Extended BCubed): tp, fp and fn are proportional to the mean share of "
            "common clusters over the items that an item is clustered with."
        )
    return [*lines, *[f"Beta is {evaluation.beta:g}."] * (evaluation.beta != 1)]


def title_lines(evaluation: EvaluationData) -> list[str]:
    """Return the title: the number of items and, if known, the names of both sides."""
    return [
        f"Evaluation of {counted(evaluation.summary['true']['items'], 'item')}",
        *lines_of_names(evaluation.names),
    ]


def lines_of_names(names: Mapping[str, str | None]) -> list[str]:
    """Return lines with the names of the sides, if any side was named, to go below a title."""
    if all(name in (None, "", f"the {side}") for side, name in names.items()):
        return []
    return [f"  {side:<12}{label(name)}" for side, name in names.items() if name]


def if_otherwise(ev: EvaluationData) -> Iterator[str]:
    """Yield sentences on the scores under other policies, where known."""
    found = ev.coverage
    if not {"precision", "recall"} <= set(ev.overall):  # computing these would take all cells
        return
    if found.n_truth_only and ev.policies.truth == "drop" and ev.figures.change_if_alone is not None:
        figures = if_alone(ev)
        if figures["f1_if_alone"] == figures["f1_if_alone"]:
            yield (
                f'With unmatched={{"truth": "singleton"}}, the {counted(found.n_truth_only, "item")} that only the '
                f"truth has would be singletons in the prediction: {'' if figures['exact'] else 'about '}precision "
                f"{score_text(figures['precision_if_alone'])}, recall {score_text(figures['recall_if_alone'])}, F1 "
                f"{score_text(figures['f1_if_alone'])}."
            )
    bounds = ev.bounds
    if bounds is not None and bounds.precision_lower == bounds.precision_lower:
        yield (
            f"If the {counted(found.n_prediction_only, 'item')} that only the prediction has were labelled, precision "
            f"would be between {score_text(bounds.precision_lower)} and {score_text(bounds.precision_upper)}."
        )
    if not (found.n_truth_only or found.n_prediction_only):
        yield "Both sides have the same items, so policies for unmatched items change nothing."


def believe(ev: EvaluationData) -> str:
    """Return a sentence on how reliable the scores are: coverage, independent groups, warnings."""
    found = ev.coverage
    if found.n_truth_only or found.n_prediction_only:
        shares = [
            percent(found.n_common / max(1, found.n_common + only))
            for only in (found.n_truth_only, found.n_prediction_only)
        ]
        said = [f"{shares[0]} of the truth's items and {shares[1]} of the prediction's are on both sides"]
    else:
        said = ["Truth and prediction have the same items"]
    known = ev.standard_errors.at_hand()
    if known is not None:
        said.append(
            f"the effective sample size is {count(round(known.units.effective))} of {count(known.units.n)} independent "
            "groups"
            if known.units.n > 1
            else "all items are connected by shared clusters, so no standard error is known"
        )
    levels = [each["level"] for each in ev.warnings]
    warned, noted = levels.count("warning"), levels.count("note")
    told = [f"{n} {kind}{'s' * (n != 1)}" for n, kind in ((warned, "warning"), (noted, "note")) if n]
    said.append(
        f"there {'is' if (warned or noted) == 1 else 'are'} {' and '.join(told)}"
        if told
        else "nothing to warn of"
    )
    return "; ".join(said) + "."


#: Names of a side's clusters, and of items that only this side has.
KINDS = {"true": "true", "pred": "predicted"}
FATES_IN_MEMBERS = {"drop": "left out (drop)", "outside": "false positives (outside)"}
#: Mark of a value that differs from the most common one, and maximum characters of a value.
MARK, LONGEST = "*", 32
#: Position in a line of the flag that it shows a member.
MEMBER = -1


class Cluster(Shown, dict[str, Any]):
    """The result of `Evaluation.cluster`: a dict with a readable text form.

    The keys are side, cluster, n_items, weight, n_parts, outcome (not for overlapping clusterings), precision_loss,
    recall_loss, weighted, overlapping and columns; "parts", a list of the parts shown, each with the other side's
    cluster (a list if clusters overlap), figures and "members"; and "one_sided", which describes the items that the
    other side does not have: n_items, policy and members. A member has an item, a weight and attributes.

    Attributes
    ----------
    parts : Table
        A table of all parts of the cluster, largest part first.
    table : Table
        A table of all members of the cluster, part by part.

    Examples
    --------
    >>> import fastbcubed as fb
    >>> ev = fb.evaluate({"a": 1, "b": 1, "c": 2, "d": 2}, {"a": "x", "b": "x", "c": "x", "d": "y"})
    >>> ev.cluster("pred", "x")
    Predicted cluster x: 3 items of 2 true clusters, mixed
    precision loss 0.33333, recall loss 0.12500
    <BLANKLINE>
    true cluster  items   item
    1             2 of 2  a
                          b
    2             1 of 2  c
    >>> ev.cluster("pred", "x").parts["n_items"].to_pylist()
    [2, 1]
    """

    #: name of a side's clusters; name of the other side, which may lack items
    kinds: ClassVar[Mapping[str, str]] = KINDS
    others: ClassVar[Mapping[str, str]] = {"true": "prediction", "pred": "truth"}
    fates: ClassVar[Mapping[str, str]] = FATES_IN_MEMBERS

    def __init__(self, figures: Mapping[str, Any], parts: Table, table: Callable[[], Table]) -> None:
        super().__init__(figures)
        self.parts = parts
        self._make = table

    @property
    def table(self) -> Table:
        """All members, part by part: item, its cluster on the other side, attributes, whether scored, weight."""
        return self._make()

    @property
    def n_listed(self) -> int:
        """Number of parts that are listed."""
        return len(self.parts)

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (type(self), dict(self), self.parts, self.table)

    __dir__ = documented

    def _document(self) -> Document:
        return in_blocks("cluster", [Prose(self._heading(), "title"), self._grid(), Prose(self._notes())])

    # Parts of the text form

    def _heading(self) -> list[str]:
        """Return the name of the cluster and its losses as lines."""
        n_parts = self["n_parts"]
        kinds = f"of {counted(n_parts, f'{self.kinds[self._other]} cluster')}"
        if self["overlapping"]:
            kinds += f", in {counted(len(self.parts), 'combination')}"
        title = (
            f"{self.kinds[self['side']].capitalize()} cluster {_name(self['cluster'], overlapping=False)}: "
        )
        if not n_parts:
            return [f"{title}none of its items is scored"]
        title += f"{counted(self['n_items'], 'item')} {kinds}"
        title += f", {self['outcome']}" if self.get("outcome") else ""
        weight = [f"weight {amount(self['weight'])}"] if self["weighted"] else []
        return [title, ", ".join([*self._figures(), *weight])]

    def _figures(self) -> list[str]:
        return [f"{name} loss {score_text(self[f'{name}_loss'])}" for name in ("precision", "recall")]

    def _notes(self) -> list[str]:
        """Return the notes below the members."""
        found = []
        if any(text.endswith(MARK) for column in self._texts().values() for text in column):
            found.append(f"{MARK} differs from the most common value of the members shown")
        alone = self["one_sided"]
        if alone["n_items"]:
            items, lacking = counted(alone["n_items"], "item"), self.others[self["side"]]
            found.append(f"{items} not in the {lacking}: {self.fates.get(alone['policy'], alone['policy'])}")
        return found

    def _grid(self) -> Grid:
        """Return the members as a grid whose last columns are attributes."""
        weight = ["weight"] if self["weighted"] else []
        header = [f"{self.kinds[self._other]} cluster", "items", "item", *weight]
        own, texts = list(self._rows()), self._texts()
        columns = [[row[at] for row in own] for at in range(len(header))]
        for values in texts.values():
            left = iter(values)
            columns.append([next(left) if row[MEMBER] else "" for row in own])
        rows = list(zip(*columns, strict=True))
        ranks = [0] * len(header) + [1] * len(texts)
        return Grid([*header, *map(label, texts)], rows, len(ranks), ranks=ranks)

    @property
    def _other(self) -> str:
        return next(side for side in self.kinds if side != self["side"])

    def _rows(self) -> Iterator[list[str]]:
        """Yield the first cells of each line, the last of which says whether the line shows a member."""
        for part in self["parts"]:
            clusters = part[f"{self._other}_cluster"]
            shared = count(part["n_items"])
            if "n_items_of_cluster" in part:
                shared += f" of {count(part['n_items_of_cluster'])}"
            yield from self._lines(part, _name(clusters, overlapping=self["overlapping"]), shared)
        left = len(self.parts) - len(self["parts"])
        if left:
            n = self["n_items"] - sum(part["n_items"] for part in self["parts"])
            yield self._line(f"… {count(left)} more", count(n))
        alone = self["one_sided"]
        if alone["n_items"]:
            yield from self._lines(alone, "(none)", count(alone["n_items"]))

    def _lines(self, part: Mapping[str, Any], name: str, shared: str) -> Iterator[list[str]]:
        for member in part["members"]:
            weight = "" if member["weight"] is None else amount(member["weight"])
            yield self._line(name, shared, label(member["item"]), weight, MARK)
            name = shared = ""
        left = part["n_items"] - len(part["members"])
        if left:
            yield self._line(name, shared, f"… {count(left)} more")

    def _line(self, name: str, shared: str, item: str = "", weight: str = "", member: str = "") -> list[str]:
        return [name, shared, item, *([weight] if self["weighted"] else []), member]

    def _texts(self) -> dict[str, list[str]]:
        """Return the attributes of the members shown, as text in which unusual values are marked."""
        members = [m for part in (*self["parts"], self["one_sided"]) for m in part["members"]]
        return {name: _marked([m["attributes"][name] for m in members]) for name in self["columns"]}


def _marked(values: Sequence[Any]) -> list[str]:
    """Return values as text, marking those that differ from the most common one, if any occurs twice.

    Examples
    --------
    >>> _marked(["Smith", "Smyth", None, "Smith"]), _marked([1, 2, 3])
    (['Smith', 'Smyth*', '(null)', 'Smith'], ['1', '2', '3'])
    """
    found = []
    for value, differs in zip(values, differing(values), strict=True):
        text = label(value)
        short = text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
        found.append(f"{short}{MARK}" if differs else short)
    return found


def differing(values: Sequence[Any]) -> list[bool]:
    """Return flags for values that differ from the most common one, if any occurs twice; nulls are never flagged.

    Examples
    --------
    >>> differing(["Smith", "Smyth", None, "Smith"]), differing([1, 2, 3])
    ([False, True, False, False], [False, False, False])
    """
    texts = [None if value is None else label(value) for value in values]
    counts = Counter(text for text in texts if text is not None)
    commonest, n = counts.most_common(1)[0] if counts else ("", 0)
    return [n > 1 and text is not None and text != commonest for text in texts]


def _name(cluster: Any, *, overlapping: bool) -> str:
    """Return the name of a part: the label of the other side's cluster, or all labels if clusters overlap."""
    if overlapping:
        return " + ".join(_name(each, overlapping=False) for each in cluster or [None])
    if isinstance(cluster, tuple):
        return ", ".join(map(label, cluster))
    return "(alone by policy)" if cluster is None else label(cluster)


def _clusters(clusters: Any) -> str:
    """Return the label of a cluster, or the labels of an item's clusters if they overlap."""
    return ", ".join(map(label, clusters)) if isinstance(clusters, list) else label(clusters)


def _again(kind: type[Cluster], figures: Mapping[str, Any], parts: Table, table: Table) -> Cluster:
    """Rebuild a cluster from its pickled parts."""
    return kind(figures, parts, lambda: table)


#: How the items of each set relate to the item.
SETS = {
    "tp": "in both of its clusters",
    "fp": "only in its predicted cluster",
    "fn": "only in its true cluster",
    "tn": "in neither",
}
#: Note on scores of overlapping clusterings, which are not ratios of the counts below them.
OF_SHARED = " (means over the items below, by their shares of common clusters)"
#: Keys of an item that are not scores.
PLACES = (
    "item", "true_cluster", "pred_cluster", "weight", *SETS, "true_mates", "pred_mates", *LOSSES, "attributes",
    "members",
)  # fmt: skip


class Item(Shown, dict[str, Any]):
    """The result of `Evaluation.item`: a dict with a readable text form.

    Examples
    --------
    >>> import fastbcubed as fb
    >>> ev = fb.evaluate({"a": 1, "b": 1, "c": 2}, {"a": "x", "b": "y", "c": "y"}, metrics=["precision"])
    >>> ev.item("b")
    Item b: true cluster 1, predicted cluster y, weight 1
      precision 0.50000
    <BLANKLINE>
      tp  1  in both of its clusters: b
      fp  1  only in its predicted cluster: c
      fn  1  only in its true cluster: a
      tn  0  in neither
    """

    #: names of its clusters, by key; relation of each set's items to the item; keys that are not scores
    kinds: ClassVar[Mapping[str, str]] = {"true_cluster": "true", "pred_cluster": "predicted"}
    sets: ClassVar[Mapping[str, str]] = SETS
    places: ClassVar[tuple[str, ...]] = PLACES

    __dir__ = documented

    def _document(self) -> Document:
        told = [text for text in (self._scores(), self._attributes()) if text]
        sets = Grid(("", "", ""), list(self._sets()), 1, ("text", "figure", "text"), about="Sets of items")
        return in_blocks("item", [Beside([[Prose([self._title()], "title"), Prose(told, "indented")]]), sets])

    def __reduce__(self) -> tuple[type[Item], tuple[dict[str, Any]]]:
        return type(self), (dict(self),)

    def _title(self) -> str:
        places = [
            f"{kind} cluster{'s' * (isinstance(self[key], list) and len(self[key]) > 1)} {_clusters(self[key])}"
            for key, kind in self.kinds.items()
            if key in self
        ]
        return f"Item {label(self['item'])}: {', '.join(places)}, weight {amount(self['weight'])}"

    def _scores(self) -> str:
        shown = [f"{name} {score_text(value)}" for name, value in self.items() if name not in self.places]
        overlap = any(isinstance(self.get(key), list) for key in self.kinds)
        return ", ".join(shown) + OF_SHARED * (
            overlap and any(name in self for name in ("precision", "recall"))
        )

    def _attributes(self) -> str:
        return ", ".join(
            f"{label(name)}: {label(value)}" for name, value in self.get("attributes", {}).items()
        )

    def _sets(self) -> Iterator[tuple[str, str, str]]:
        """Yield, for each set, its name, number of items, description and first items."""
        for name, members in self["members"].items():
            first = ", ".join(map(label, members["first"]))
            more = ", …" if first and len(members["first"]) < members["n_items"] else ""
            text = f"{self.sets[name]}: {first}{more}" if first else self.sets[name]
            yield f"  {name}", count(members["n_items"]), text
