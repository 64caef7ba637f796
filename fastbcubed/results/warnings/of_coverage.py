"""Warnings of items that one side lacks: what dropping them hides, and whether ids match at all."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import asdict
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np

from fastbcubed.alignment.policies import Coverage
from fastbcubed.cells.cell_parts import NoCells
from fastbcubed.errors import first_few
from fastbcubed.metrics.rates import f_measure
from fastbcubed.results.text.wording import count, label, percent, score
from fastbcubed.results.warnings.notices import FEW_ITEMS, NOTE, WARNING, Notice
from fastbcubed.sources.arrays import to_numpy

#: A loss of F1 from here on is a warning, and such a share of the truth where F1 is not known; a smaller one a note.
FLATTERED = 0.01
#: Where the truth labels less than half of the prediction, the scores are about the smaller part of it.
MOSTLY_LABELLED = 0.5
#: Where the smaller side shares less than half of its items, neither side is a sample of the other.
MOSTLY_COMMON = 0.5
#: Rows at either end among which unmatched ids are looked for; both ends have them if there are many.
ROWS_LOOKED_AT = 1 << 12
#: Scores that leave out a larger share of the truth than another result's are of other items, easier ones as a rule.
LESS_COVERED = 0.01
#: A smaller change of F1 is not seen in what is printed.
VISIBLE = 1e-5
#: Runs that a message shows: those that lack most, and those whose F1 would change most.
RUNS_SHOWN = 5
#: Ids of each side that a message shows.
SHOWN = 3


def dropping_flatters(ev: Any) -> Iterator[Notice]:
    """Warn if complete labels could make the precision very different."""
    if ev.bounds is not None and (message := ev.bounds.warning(estimable=_is_estimable(ev))):
        yield Notice(WARNING, message, asdict(ev.bounds))


def dropping_truth_flatters(ev: Any) -> Iterator[Notice]:
    """Warn if the scores would be lower had the items that only the truth has been alone; note it if hardly so."""
    n = ev.coverage.n_truth_only
    if not n or ev.policies.truth != "drop":
        return
    share = n / (n + ev.coverage.n_common)
    figures = {"n_items": n, **if_alone(ev)}
    f1, alone = figures["f1"], figures["f1_if_alone"]
    known = not math.isnan(alone)
    loss = f1 - alone if known else share
    if loss <= 0 or (known and score(f1) == score(alone)):
        return
    linked = ev._sides["pred"]["singletons"] == 0 and ev._sides["pred"]["items"] > 1
    level = WARNING if loss >= FLATTERED and n + ev.coverage.n_common >= FEW_ITEMS else NOTE
    dropped = (
        f"{count(n)} item{' that' if n == 1 else 's that'} only the truth has ({percent(share)} of its items)"
    )
    message = f"{dropped} {'was' if n == 1 else 'were'} dropped."
    if known:
        about = "" if figures["exact"] else "about "
        message += (
            f" If each were alone in the prediction, f1 would be {about}{score(alone)} instead of {score(f1)} "
            f"(precision {score(figures['precision_if_alone'])}, recall {score(figures['recall_if_alone'])})."
        )
    who = (
        "If it lists linked records only"
        if linked
        else "If the prediction lacks items that nothing was linked to"
    )
    hint = "The prediction has no cluster of one item. " if linked else ""
    message += f' {hint}{who}, pass unmatched={{"truth": "singleton"}}.'
    yield Notice(level, message, figures)


def unlinked_alone(ev: Any) -> Iterator[Notice]:
    """Note that items that only the truth has are taken as alone, since the prediction was made of links."""
    n = ev.coverage.n_truth_only
    omits = any(note.get("omits_singletons") and note["side"] == "prediction" for note in ev._input_notes)
    if not n or not omits or ev.policies.truth != "singleton":
        return
    items = (
        "1 item that only the truth has is"
        if n == 1
        else f"{count(n)} items that only the truth has are each"
    )
    message = (
        f"{items} alone in the prediction, which was made of links: without a link an item is not missing."
    )
    yield Notice(NOTE, message, {"n_items": n})


def if_alone(ev: Any) -> dict[str, Any]:
    """Return F1, precision and recall, and the same if items that only the truth has were alone.

    They are NaN where that is not known, and the same where no such items were dropped. `exact` says whether the
    weights of the items of one cluster, which cells do not tell apart, need not be known.
    """
    found, dropped = ev.coverage, ev.policies.truth == "drop" and ev.coverage.n_truth_only > 0
    change = ev._change_if_alone if dropped else 0.0
    known = change is not None
    precision, recall = ((_score(ev, name) if known else math.nan) for name in ("precision", "recall"))
    p, r = precision, recall
    if dropped:
        scored, alone = found.weight_scored(ev.policies), found.weight_truth_only
        p = (precision * scored + alone) / (scored + alone)
        r = (recall * scored + (change or 0)) / (scored + alone)
    return {
        "precision": precision,
        "recall": recall,
        "f1": float(f_measure(precision, recall)),
        "f1_if_alone": float(f_measure(p, r)),
        "precision_if_alone": p,
        "recall_if_alone": r,
        "exact": not (ev.contingency.weighted and ev.contingency.weighting == "pointwise"),
    }


def _score(ev: Any, name: str) -> float:
    """Return a score over all items; NaN where it was not computed, and there are no cells to compute it from."""
    if name in ev.overall:
        return float(ev.overall[name])
    if isinstance(ev.contingency, NoCells):
        return ev.contingency.known.get(name, math.nan)
    return float(ev.metric(name))


class OfRun(NamedTuple):
    """A run, of several: its coverage, what `if_alone` says of it, F1 as shown, whether what it lacks is dropped."""

    coverage: Coverage
    own: Mapping[str, Any]
    shown_f1: float
    drops: bool

    @property
    def n_dropped(self) -> int:
        """Items of the truth that are dropped since it lacks them."""
        return self.coverage.n_truth_only if self.drops else 0

    @property
    def loss(self) -> float:
        """What F1 would lose if these were alone; their share of the truth where that is not known."""
        if math.isnan(self.own["f1_if_alone"]):
            return 1 - covered(self.coverage)
        return float(self.figures["shown_f1"] - self.own["f1_if_alone"])

    @property
    def figures(self) -> dict[str, Any]:
        """What a warning has of it."""
        counts = {"n_items": self.n_dropped, "truth_coverage": covered(self.coverage)}
        shown = self.own["f1"] if math.isnan(self.shown_f1) else self.shown_f1
        return {**counts, "shown_f1": shown, **self.own}


def runs_lack_items(
    runs: Mapping[str, OfRun], *, common: bool, policy: str = '{"truth": "singleton"}'
) -> Iterator[dict[str, Any]]:
    """Warn if runs drop items of the truth, and scores would be lower if these were alone, or runs lack unlike shares.

    The bounds are those of one evaluation, and of the baseline of a gate.
    """
    lacking = sorted(
        (name for name, run in runs.items() if run.n_dropped), key=lambda name: -runs[name].n_dropped
    )
    if not lacking:
        return
    unlike = any(a.drops and lacks_more(a.coverage, b.coverage) for a, b in permutations(runs.values(), 2))
    loss, n_truth = max(run.loss for run in runs.values()), _n_truth(runs[lacking[0]].coverage)
    if loss <= VISIBLE and not unlike:
        return
    level = WARNING if (unlike or loss >= FLATTERED) and n_truth >= FEW_ITEMS else NOTE
    figures = {name: run.figures for name, run in runs.items()}
    parts = [
        f"{label(name)} {count(runs[name].n_dropped)} ({percent(1 - covered(runs[name].coverage))})"
        for name in lacking[:RUNS_SHOWN]
    ]
    message = f"Items of the truth that runs lack are dropped: {', '.join(parts)}{_more(lacking)}."
    named = list(runs)
    if len(runs) > RUNS_SHOWN:
        named = sorted(runs, key=lambda name: -runs[name].loss)[:RUNS_SHOWN]
    if known := [name for name in named if not math.isnan(figures[name]["f1_if_alone"])]:
        kinds = ("shown_f1", "f1", "f1_if_alone") if common else ("f1", "f1_if_alone")
        what = "common items, own items" if common else "own items"
        of = "; ".join(f"{label(name)} {', '.join(score(figures[name][k]) for k in kinds)}" for name in known)
        about = "" if all(each["exact"] for each in figures.values()) else ", about,"
        message += f" F1 of {what}, and{about} if missing items were alone: {of}{_more(runs)}."
    message += f" If runs lack items that nothing was linked to, pass unmatched={policy}."
    yield {"code": "runs-lack-items", "level": level, "message": message, "runs": lacking, "by_run": figures}


def _more(runs: Collection[str]) -> str:
    return f" and {count(len(runs) - RUNS_SHOWN)} more" if len(runs) > RUNS_SHOWN else ""


def lacks_more(coverage: Coverage, other: Coverage) -> bool:
    """Tell whether items that only the truth has are so much more of it than in another result."""
    return covered(other) - covered(coverage) > LESS_COVERED


def covered(coverage: Coverage) -> float:
    """Return the share of the truth's weight that the prediction has; of its items where weights are not known."""
    of_weight = coverage.truth_coverage
    return coverage.n_common / _n_truth(coverage) if math.isnan(of_weight) else of_weight


def _n_truth(coverage: Coverage) -> int:
    return coverage.n_common + coverage.n_truth_only


def few_items_labelled(ev: Any) -> Iterator[Notice]:
    """Note that the truth labels less than half of the prediction; warn if the others are scored all the same."""
    n, common = ev.coverage.n_prediction_only, ev.coverage.n_common
    share = common / (n + common)
    if n + common < FEW_ITEMS or share >= MOSTLY_LABELLED:
        return
    message = f"The truth labels {percent(share)} of the prediction's {count(n + common)} items."
    if made_up := ev.policies.prediction == "singleton":
        message += (
            " The others are scored as if each were alone in the truth, and most of the score comes from them. If "
            'true clusters are complete, pass unmatched={"prediction": "outside"}'
        )
        message += ", or use fb.estimate if they are a random sample of all." if _is_estimable(ev) else "."
    else:
        message += (
            " The scores say nothing about the others, unless the labelled clusters were drawn at random"
        )
        message += "; fb.estimate says what they tell of all then." if _is_estimable(ev) else "."
    yield Notice(WARNING if made_up else NOTE, message, {"share": share, "n_items": n + common})


def _is_estimable(ev: Any) -> bool:
    """Tell whether scores of all items can be estimated from a sample of complete true clusters."""
    return not (ev.contingency.overlapping or ev.contingency.weighted)


def few_ids_match(ev: Any) -> Iterator[Notice]:
    """Warn if most items of either side are unknown to the other."""
    found = ev.coverage
    sides = found.n_common + found.n_truth_only, found.n_common + found.n_prediction_only
    share = found.n_common / min(sides)
    if min(sides) < FEW_ITEMS or share >= MOSTLY_COMMON:
        return
    message = (
        f"Only {count(found.n_common)} items are on both sides, of {count(sides[0])} in the truth and "
        f"{count(sides[1])} in the prediction."
    )
    ids = unmatched_ids(ev)
    if all(ids.values()):
        named = [first_few(own[: SHOWN + 1], SHOWN) for own in ids.values()]
        message += f" Only the truth has {named[0]}; only the prediction has {named[1]}."
        if alike := _alike(*ids.values()):
            message += f" {alike}"
    message += " Check that the item columns name the same things in the same way."
    shown = {f"{side}_only": list(map(str, own[:SHOWN])) for side, own in ids.items()}
    yield Notice(WARNING, message, {"share": share, "n_common": found.n_common, **shown})


def unmatched_ids(ev: Any) -> dict[str, list[Any]]:
    """Return a few ids that only the truth has, and only the prediction; none where the items were not kept."""
    ids: dict[str, list[Any]] = {"truth": [], "prediction": []}
    if not ev.has_items:
        return ids
    items = ev.kept_items()
    n = len(items)
    rows = np.unique(np.r_[: min(n, ROWS_LOOKED_AT), max(0, n - ROWS_LOOKED_AT) : n])
    lacks = {side: to_numpy(items.labels(side, rows).is_null()) for side in ("true", "pred")}
    ids["truth"] = items.ids(rows[lacks["pred"] & ~lacks["true"]]).to_pylist()
    ids["prediction"] = items.ids(rows[lacks["true"] & ~lacks["pred"]]).to_pylist()
    return ids


#: What ids of the two sides may differ in, and what is left without it.
WAYS: dict[str, Callable[[str], str]] = {
    "white space": str.strip,
    "upper and lower case": lambda text: text.strip().casefold(),
    "leading zeros": lambda text: text.strip().casefold().lstrip("0"),
    "what is before the last of : / - _ #": lambda text: re.split("[:/_#-]", text.strip().casefold())[-1],
}


def _alike(truth: list[Any], prediction: list[Any]) -> str:
    """Say in which way ids of both sides would match, if in any; judged by those that were looked at."""
    for way, plain in WAYS.items():
        sides = [{plain(str(value)): value for value in own} for own in (truth, prediction)]
        if common := sorted(sides[0].keys() & sides[1].keys()):
            first = [first_few([side[common[0]]]) for side in sides]
            return f"Without {way}, ids such as {first[0]} and {first[1]} would be the same."
    return ""
