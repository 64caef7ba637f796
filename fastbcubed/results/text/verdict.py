"""The first lines of a result, in sentences: how good it is, which error dominates, what became of the clusters."""

from __future__ import annotations

from collections.abc import Mapping

from fastbcubed.cells.contingency import Contingency
from fastbcubed.errors import OptionError
from fastbcubed.metrics.losses import LOSSES
from fastbcubed.results.estimates import Estimated, are_uneven
from fastbcubed.results.listings.concentration import sentence
from fastbcubed.results.text.wording import count, outcomes_of, percent, with_error

#: Scores of the headline, and what they are called there.
HEADLINE = {"precision": "precision", "recall": "recall", "f1": "F1"}
#: One kind of error dominates where it costs so many times as much as the other.
DOMINATES = 3.0
#: Of so many cells where clusters overlap, what each cluster costs is worked out unasked.
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
        groups += (
            f", so uneven that {known.units.effective:.1f} equal ones would tell as much: it is too small"
        )
    return f"{text} (± is one standard error, from {groups}.)"


def _kind_of_error(ev: Estimated) -> str:
    """Say what share of an item's clusters is foreign and what share is missing, the larger first."""
    rates = _rates(ev)
    if rates is None:
        return ""
    merged, split = rates
    if not merged + split > 0:
        return "The two clusterings are the same on these items." if merged + split == 0 else ""
    foreign = f"{_share(merged)} of the predicted cluster of an item is foreign"
    missing = f"{_share(split)} of its true cluster is missing"
    if merged >= DOMINATES * split:
        return f"Merging dominates: on average {foreign}, and {missing}."
    if split >= DOMINATES * merged:
        missing = missing.replace("its true cluster", "the true cluster of an item")
        foreign = foreign.replace("the predicted cluster of an item", "its predicted cluster")
        return f"Splitting dominates: on average {missing}, and {foreign}."
    return f"Merging and splitting both cost: on average {foreign}, and {missing}."


def _share(rate: float) -> str:
    return percent(rate) if rate else "nothing"


def _where(ev: Estimated) -> str:
    """Say in how few clusters the loss is, where that is worked out in less time than the scores were."""
    cells = ev.contingency
    if not isinstance(cells, Contingency) or (cells.overlapping and cells.n_cells > FEW_CELLS):
        return ""
    try:
        return sentence(ev.concentration)
    except OptionError:  # there is no room
        return ""


def _rates(ev: Estimated) -> tuple[float, float] | None:
    """Return the over- and the under-merge rate; None if they are not there, and not quickly worked out."""
    known = all(metric.name in ev.overall for metric in LOSSES.values())
    if known or isinstance(ev.contingency, Contingency):  # else cells that overlap, or were not kept
        return ev.loss_of_all("pred"), ev.loss_of_all("true")
    return None


def outcomes(ev: Estimated) -> list[str]:
    """Return what became of the clusters of either side; nothing where clusters overlap."""
    lines = []
    for side, name in (("true", "true"), ("pred", "predicted")):
        counted: Mapping[str, int] = ev.summary[side].get("outcomes") or {}
        if counted:
            lines.append(f"{outcomes_of(name, ev.summary[side]['clusters'], counted)}.")
    return lines
