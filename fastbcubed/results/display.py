"""The first sentences of a result: quality, dominant error, outcomes of the clusters."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from fastbcubed.align.policies import Policies
from fastbcubed.cells.contingency import Contingency
from fastbcubed.errors import OptionError
from fastbcubed.metrics.pointwise import LOSSES
from fastbcubed.metrics.score import Metric
from fastbcubed.render.document import Beside, Block, Grid, Notices, Prose
from fastbcubed.render.wording import (
    count,
    counted,
    label,
    not_computed,
    outcomes_of,
    percent,
    plus_minus,
    score_text,
    with_error,
)
from fastbcubed.results.concentration import concentration_sentence
from fastbcubed.results.evaluation_scores import Estimated, are_uneven
from fastbcubed.results.slices import id_parts

#: Scores of the headline, and their names there.
HEADLINE = {"precision": "precision", "recall": "recall", "f1": "F1"}
#: One kind of error dominates if it costs this many times as much as the other.
DOMINATES = 3.0
#: Up to this many cells of overlapping clusters, the loss of each cluster is computed by default.
FEW_CELLS = 200_000


def verdict(ev: Estimated) -> list[str]:
    """Return sentences for people: the scores and their standard errors, and the kind of error."""
    return [line for line in (_headline(ev), _kind_of_error(ev), _where(ev)) if line]


def _headline(ev: Estimated) -> str:
    names = [name for name in HEADLINE if name in ev.overall]
    if not names:
        return ""
    known = ev.errors_at_hand()
    errors: Mapping[str, float] = {} if known is None else known.of
    text = ", ".join(f"{HEADLINE[name]} {with_error(ev.overall[name], errors.get(name))}" for name in names)
    text = f"{text[0].upper()}{text[1:]}."
    if known is None or "±" not in text:
        return text
    groups = f"{count(known.units.n)} groups of items that share clusters"
    if are_uneven(known.units):
        effective = f"{known.units.effective:.1f}"
        groups += f", so uneven that they carry no more information than {effective} equal ones: "
        groups += "this standard error is too small"
    return f"{text} (± is one standard error, from {groups}.)"


def _kind_of_error(ev: Estimated) -> str:
    """Describe the foreign and the missing share of an item's clusters, the larger first."""
    rates = _rates(ev)
    if rates is None:
        return ""
    merged, split = rates
    if not merged + split > 0:
        return "The two clusterings are the same on these items." if merged + split == 0 else ""
    foreign = f"{_rate(merged)} of the predicted cluster of an item is foreign"
    missing = f"{_rate(split)} of its true cluster is missing"
    if merged >= DOMINATES * split:
        return f"Merging dominates: on average {foreign}, and {missing}."
    if split >= DOMINATES * merged:
        missing = missing.replace("its true cluster", "the true cluster of an item")
        foreign = foreign.replace("the predicted cluster of an item", "its predicted cluster")
        return f"Splitting dominates: on average {missing}, and {foreign}."
    return f"Merging and splitting both cost: on average {foreign}, and {missing}."


def _rate(rate: float) -> str:
    return percent(rate) if rate else "nothing"


def _where(ev: Estimated) -> str:
    """Describe how few clusters have the loss, where this takes less time than the scores did."""
    cells = ev.contingency
    if not isinstance(cells, Contingency) or (cells.overlapping and cells.n_cells > FEW_CELLS):
        return ""
    try:
        return concentration_sentence(ev.concentration)
    except OptionError:  # there is no room
        return ""


def _rates(ev: Estimated) -> tuple[float, float] | None:
    """Return the over- and the under-merge rate; None if not known or not quickly computed."""
    known = all(metric.name in ev.overall for metric in LOSSES.values())
    if known or isinstance(ev.contingency, Contingency):  # else cells that overlap, or were not kept
        return ev.loss_of_all("pred"), ev.loss_of_all("true")
    return None


def outcomes(ev: Estimated) -> list[str]:
    """Return the outcomes of the clusters of both sides; nothing where clusters overlap."""
    lines = []
    for side, name in (("true", "true"), ("pred", "predicted")):
        found: Mapping[str, int] = ev.summary[side].get("outcomes") or {}
        if found:
            lines.append(f"{outcomes_of(name, ev.summary[side]['clusters'], found)}.")
    return lines


#: What became of items that one side lacks, in a sentence.
FATES = {
    "drop": "left out (drop)",
    "singleton": "each in a cluster of its own on the other side (singleton)",
    "outside": "not scored, but false positives for the items they are clustered with (outside)",
}
#: What became of items with a null cluster; in one table a null always means that the side lacks the item.
FATES_OF_NULLS = {
    "drop": "taken as missing on that side (drop)",
    "singleton": "each in a cluster of its own (singleton)",
    "raise": "taken as missing on that side",
}
NOTHING = "No warnings."
#: Scores that are 1 minus another, which people need not read twice.
REPEATED = {"over_merge_rate": "precision", "under_merge_rate": "recall"}


def document(evaluation: Estimated) -> list[Block]:
    """Return an evaluation as a document: the overview, and what to ask next."""
    return [*overview(evaluation), *_next_steps(evaluation)]


def overview(evaluation: Estimated) -> list[Block]:
    """Return the inputs, the verdict, the coverage and the scores."""
    return [
        Prose(_heading(evaluation), "title"),
        Prose(verdict(evaluation)),
        Notices.of(evaluation.warnings, none=NOTHING),
        Beside([[_sides(evaluation)], [Prose(outcomes(evaluation))]]),
        Prose(coverage(evaluation), "indented"),
        scores_grid(score_rows(evaluation), evaluation.metrics),
        Prose([definition(evaluation), *not_computed(evaluation.not_computed)]),
    ]


# Parts of an evaluation
def coverage(evaluation: Estimated) -> list[str]:
    """Return the coverage and the effects of the policies; nothing if there are none."""
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
            lines.append(f"{counted(number, 'item')} only in the {side}: {_fate(getattr(policies, side))}.")
    if lines:
        lines.append("Items that are not scored count in no cluster and no size above.")
    bounds = evaluation.bounds
    if bounds is not None and not math.isnan(bounds.precision_lower + bounds.precision_upper):
        low, high = score_text(bounds.precision_lower), score_text(bounds.precision_upper)
        lines.append(f"If the truth labelled them too, precision would be between {low} and {high}.")
    return [*lines, *rows_lines(found, policies)]


def rows_lines(found: Any, policies: Policies) -> list[str]:
    """Return the numbers of rows that are not taken as they are, by coverage, and their fates."""
    lines = []
    if found.n_null:
        lines.append(f"{counted(found.n_null, 'row')} with a null cluster: {FATES_OF_NULLS[policies.nulls]}.")
    if found.n_noise:
        noise = label(policies.noise)
        lines.append(
            f"{counted(found.n_noise, 'row')} labelled {noise} (noise): each in a cluster of its own."
        )
    if found.n_duplicates:
        lines.append(f"{counted(found.n_duplicates, 'row')} repeated an earlier one: left out (drop).")
    return lines


def _share(evaluation: Estimated, side: str, only: int, of_weight: float) -> str:
    """Return the share of a side's items, and of their weight if known, that both sides have."""
    n_common = evaluation.coverage.n_common
    text = f"{percent(n_common / (n_common + only))} of the {side}'s {count(n_common + only)}"
    if evaluation.contingency.weighted and not math.isnan(of_weight):
        text += f" ({percent(of_weight)} of their weight)"
    return text


def definition(evaluation: Estimated) -> str:
    """Return the definition of the scores in a sentence or two: average, weighting, beta."""
    table = evaluation.contingency
    if not table.weighted:
        how = "every item counts equally"
    elif table.weighting == "outer":
        how = "weights count in the mean alone"
    else:
        how = "weights count inside each item's confusion matrix and in the mean"
    if any(m.overall_only or "_by_" in m.name for m in evaluation.metrics):
        how += ". Scores that are means over clusters, or of all items at once, say so"
    if table.overlapping:
        how += (
            ". Clusters may overlap (Extended BCubed): tp, fp and fn are in proportion to the mean share of the "
            "common clusters over the items that an item is clustered with"
        )
    of_beta = f" Beta is {evaluation.beta:g}." if evaluation.beta != 1 else ""
    return f"Means are over items; {how}.{of_beta}"


def _heading(evaluation: Estimated) -> list[str]:
    lines = [f"Evaluation of {counted(evaluation.summary['true']['items'], 'item')}"]
    names = {side: evaluation.names.get(side) or "" for side in ("truth", "prediction")}
    if any(name not in ("", f"the {side}") for side, name in names.items()):
        lines += [f"  {side:<12}{label(name)}" for side, name in names.items()]
    return lines


def _sides(evaluation: Estimated) -> Grid:
    header, rows = ["", "items", "clusters", "singletons", "largest"], []
    overlapping = evaluation.contingency.overlapping
    for side, key in (("truth", "true"), ("prediction", "pred")):
        figures = evaluation.summary[key]
        row = [side, *(count(figures[name]) for name in header[1:])]
        exact = f"{count(figures['exact'])} ({percent(figures['exact'] / figures['clusters'])})"
        rows.append([*row, exact] if overlapping else row)
    return Grid([*header, "exactly recovered"] if overlapping else header, rows)


def score_rows(evaluation: Estimated) -> Iterator[tuple[str, str, str]]:
    """Yield name, value and standard error of each score over all items, but those that are 1 minus another one."""
    found = evaluation.errors_at_hand()
    for name, value in evaluation.overall.items():
        if REPEATED.get(name) not in evaluation.overall:
            error = None if found is None else found.of.get(name)
            yield name, score_text(value), plus_minus(error, value)


def scores_grid(rows: Iterable[tuple[str, str, str]], metrics: Iterable[Metric]) -> Grid:
    """Return scores, as `score_rows` yields them, with their definitions."""
    known = {metric.name: metric for metric in metrics}
    shown = [[*row, _meaning(known.get(row[0]))] for row in rows]
    if any(row[2] for row in shown):
        return Grid(
            ["score", "", "±", "definition"], shown, 1, ("text", "figure", "figure", "text"), left=True
        )
    shown = [[name, value, meaning] for name, value, _, meaning in shown]
    return Grid(["score", "", "definition"], shown, 1, ("text", "figure", "text"), left=True)


def _meaning(metric: Metric | None) -> str:
    """Return the definition of a score in few words."""
    if metric is None:
        return ""
    meaning = metric.definition.replace("mean over items of ", "mean of ", 1)
    meaning = meaning.replace("with P = precision and R = recall", "of precision and recall")
    return f"low is good; {meaning}" if metric.best == "lower" else meaning


def steps_grid(steps: Iterable[tuple[str, str]]) -> list[Block]:
    """Return calls to make next, each with its effect."""
    return [Grid(["Next:", ""], [[f"  {call}", effect] for call, effect in steps], 2)]


def _next_steps(evaluation: Estimated) -> list[Block]:
    """Return two or three calls for finding the lost score."""
    if not evaluation.has_clusters:
        return []
    steps = [('.clusters("pred", limit=5)', 'the worst predicted clusters; or "true"')]
    try:
        items = evaluation.kept_items()
    except ValueError:  # there are clusters alone
        return steps_grid(steps)
    attributes = [name for names in items.attribute_sides().values() for name in names] + [*id_parts(items)]
    if evaluation.attributes is not None:
        attributes += evaluation.attributes.names
    by = label(attributes[0] if attributes else "true_size")
    others = [o for o in dict.fromkeys(map(label, [*attributes[1:], "true_size", "pred_size"])) if o != by]
    listed = ", ".join(others[:3]) + (", …" if len(others) > 3 else "")
    steps.append((f'.slices("{by}")', f"scores by {by}; or {listed}"))
    steps.append((".item(id)", "one item: its confusion matrix, and who is in it"))
    return steps_grid(steps)


def _fate(policy: str) -> str:
    return FATES.get(policy, policy)
