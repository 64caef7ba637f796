"""What a reader of estimates should know: missing items, few or uneven clusters, what cannot be."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from fastbcubed.results.text.wording import count, percent, score
from fastbcubed.results.warnings.notices import FEW_ITEMS, NOTE, WARNING, Notice
from fastbcubed.results.warnings.of_coverage import FLATTERED
from fastbcubed.sampling.estimators import Estimate

#: With fewer degrees of freedom than this, intervals turned out too small in simulations.
FEW = 5
#: Where the prediction lacks most of the sample, the two may not name items in the same way.
MOSTLY_MISSING = 0.5


def cautions(
    estimated: Mapping[str, Estimate],
    ranges: Mapping[str, tuple[float, float]],
    sample: Mapping[str, Any],
    missing: str,
    alone: Mapping[str, float],
) -> list[dict[str, Any]]:
    """Return warnings and notes: code, level, message, figures; `alone` is F1, and if dropped items were alone."""
    found = {
        "sample-items-missing": _missing(sample, missing, alone),
        "few-clusters": _few(estimated, sample),
        "nothing-observed": _nothing(estimated),
        "beyond-range": _beyond(estimated, ranges),
    }
    return [
        {"code": code, "level": notice.level, "message": notice.message, **notice.figures}
        for code, notices in found.items()
        for notice in notices
    ]


def _missing(sample: Mapping[str, Any], missing: str, alone: Mapping[str, float]) -> Iterator[Notice]:
    n = sample["n_missing"]
    if not n:
        return
    share = n / (sample["n_items"] + (n if missing == "drop" else 0))
    message = f"{count(n)} item{'' if n == 1 else 's'} of the sample ({percent(share)}) "
    message += "is not in the prediction" if n == 1 else "are not in the prediction"
    if missing == "drop":
        message += (
            ", and left out of the true clusters, which are then scored as if complete. If each were alone in the "
            f"prediction, f1 would be {score(alone['f1_if_alone'])} instead of {score(alone['f1'])}."
        )
    else:
        message += ": each is taken as predicted to be alone."
        message += ' If the prediction was not given these items, pass missing="drop".'
    much = share > MOSTLY_MISSING and sample["n_items"] >= FEW_ITEMS
    if much:
        message += " Check that the item columns name the same things in the same way."
    flattered = missing == "drop" and alone["f1"] - alone["f1_if_alone"] >= FLATTERED
    level = WARNING if much or (flattered and sample["n_items"] >= FEW_ITEMS) else NOTE
    yield Notice(level, message, {"n_items": n, "share": share, **alone})


def _few(estimated: Mapping[str, Estimate], sample: Mapping[str, Any]) -> Iterator[Notice]:
    """Note that there are few draws, or scores of which a few draws tell most."""
    if sample["n_draws"] == 1:
        message = "A single cluster shows no standard error, and its estimates are not adjusted."
        yield Notice(NOTE, message, {"scores": list(estimated), "df": 0.0})
        return
    few = {name: each.df for name, each in estimated.items() if each.df < FEW and each.error > 0}
    if not few:
        return
    if sample["n_draws"] <= FEW:
        message = (
            f"{count(sample['n_draws'])} clusters are few: intervals are wide, and may still be too narrow."
        )
    else:
        message = (
            f"A few of the sampled clusters decide {', '.join(few)}: the intervals are wide for that, and may still be "
            "too narrow. Take a larger sample, or draw clusters in proportion to their size."
        )
    yield Notice(NOTE, message, {"scores": list(few), "df": min(few.values())})


def _nothing(estimated: Mapping[str, Estimate]) -> Iterator[Notice]:
    names = [name for name, each in estimated.items() if math.isnan(each.unadjusted)]
    if names:
        message = (
            f"Nothing observed of {', '.join(names)}: no sampled cluster has what it is a share of, so it is not known "
            "(NaN)."
        )
        yield Notice(NOTE, message, {"scores": names})


def _beyond(estimated: Mapping[str, Estimate], ranges: Mapping[str, tuple[float, float]]) -> Iterator[Notice]:
    names = [
        name
        for name, each in estimated.items()
        if not math.isnan(each.value) and not ranges[name][0] <= each.value <= ranges[name][1]
    ]
    if names:
        told = ", ".join(f"{name} {score(estimated[name].value)}" for name in names)
        message = (
            f"Estimates are not cut off at the ends of the range: {told}. Read them as close to that end; their "
            "intervals are symmetric."
        )
        yield Notice(NOTE, message, {"scores": names})
