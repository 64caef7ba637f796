"""Warnings of estimates: missing items, few or uneven clusters, samples that cannot be as stated."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from fastbcubed.errors import Message, arg
from fastbcubed.render.wording import amount, count, percent, score_text
from fastbcubed.results.standard_errors import Interval, t_quantile
from fastbcubed.results.warnings import FEW_ITEMS, FEW_UNITS, FLATTERED, NOTE, WARNING, Notice
from fastbcubed.sample.cluster_sample import CLUSTER_SIZE, UNIFORM, Drawn
from fastbcubed.sample.estimators import Estimate, Ratio, estimate_ratio

#: With fewer degrees of freedom than this, intervals turned out too small in simulations.
FEW = 5
#: Where the prediction lacks most of the sample, the two may not name items in the same way.
MOSTLY_MISSING = 0.5


#: Fewer effective clusters than these are warned of: intervals of heavy-tailed samples were far too narrow.
VERY_FEW = 10
#: Sampled clusters, at least, that show whether a sample is of whole clusters, and drawn as stated.
ENOUGH = 10
#: Where more predicted clusters than this share have items of others, sampled ones may be incomplete: it was 2 to 40 %
#: of good predictions, and 84 to 98 % where half of the items of each sampled cluster were left out.
MOSTLY_PARTS = 2 / 3
#: The confidence with which a sample is said to contradict what is known.
SURE = 0.999


def cautions(
    estimated: Mapping[str, Estimate],
    ranges: Mapping[str, tuple[float, float]],
    sample: Mapping[str, Any],
    drawn: Drawn,
    definition: Mapping[str, Any],
    alone: Mapping[str, float],
) -> list[dict[str, Any]]:
    """Return warnings and notes: code, level, message, figures; `alone` is F1, and if dropped items were alone."""
    found = {
        "sample-items-missing": _missing(sample, definition["missing"], alone),
        "partial-clusters": _partial(drawn),
        "sample-unlike-prediction": _unlike(drawn, definition["sampling"]),
        "population-clusters": _population(drawn, definition["population_clusters"]),
        "few-clusters": _few(estimated, sample, definition["sampling"]),
        "nothing-observed": _nothing(estimated),
        "beyond-range": _beyond(estimated, ranges),
    }
    return [
        {"code": code, "level": notice.level, "message": Message(notice.message), **notice.figures}
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
            f"prediction, f1 would be {score_text(alone['f1_if_alone'])} instead of {score_text(alone['f1'])}."
        )
    else:
        message += ": each is taken as predicted to be alone."
        message += f" If the prediction was not given these items, pass {arg('missing', 'drop')}."
    much = share > MOSTLY_MISSING and sample["n_items"] >= FEW_ITEMS
    if much:
        message += " Check that the item columns name the same things in the same way."
    flattered = missing == "drop" and alone["f1"] - alone["f1_if_alone"] >= FLATTERED
    level = WARNING if much or (flattered and sample["n_items"] >= FEW_ITEMS) else NOTE
    yield Notice(level, message, {"n_items": n, "share": share, **alone})


def _partial(drawn: Drawn) -> Iterator[Notice]:
    """Warn that most predicted clusters of sampled items have others, as if sampled clusters were not complete."""
    cells = drawn.cells
    times = drawn.draws[cells.cluster] * cells.times * (cells.pred_n > 1)
    n, mixed = int(times.sum()), int(times[cells.pred_n > cells.n].sum())
    if n < ENOUGH or mixed <= n * MOSTLY_PARTS:
        return
    if drawn.size.max() == 1:
        message = (
            f"Each of the {count(int(drawn.draws.sum()))} sampled clusters has one item, and {count(mixed)} of these "
            "are in a larger predicted cluster. The sample is of whole true clusters: give all items of each."
        )
    else:
        message = (
            f"Of {count(n)} predicted clusters with several items, some of a sampled cluster, {count(mixed)} "
            f"({percent(mixed / n)}) have items of others. If the sample does not have all items of its clusters, "
            "precision is underestimated and recall overestimated; if it does, the prediction merges most clusters."
        )
    yield Notice(WARNING, message, {"n_clusters": mixed, "share": mixed / n})


def _unlike(drawn: Drawn, sampling: str) -> Iterator[Notice]:
    """Warn if the number of predicted clusters, as estimated from the sample, cannot be the one there is."""
    if int(drawn.draws.sum()) < ENOUGH:
        return
    found = _pred_clusters(drawn, drawn.weight)
    if found is None or found.low <= drawn.n_clusters <= found.high:
        return
    message = f"By the sample the prediction would have {_between(found)} clusters. It has {count(drawn.n_clusters)}: "
    by_size = _pred_clusters(drawn, 1.0 / drawn.size)
    if sampling == UNIFORM and by_size is not None and by_size.low <= drawn.n_clusters <= by_size.high:
        message += (
            "the sampled clusters are as large as if drawn in proportion to their size. If they were, as when items "
            f"are drawn, pass {arg('sampling', 'cluster_size')}."
        )
    else:
        message += (
            f"the sampled clusters are of other sizes than the rest, were not drawn as {arg('sampling')} says, or are "
            "not of all items of the prediction."
        )
    yield Notice(WARNING, message, {"n_clusters": drawn.n_clusters, "low": found.low, "high": found.high})


def _pred_clusters(drawn: Drawn, weight: np.ndarray) -> Interval | None:
    """Return the interval of the number of predicted clusters if sampled ones have this weight; None if not known.

    That is the items of the prediction times the mean over items of one over the size of the predicted cluster.
    """
    there = drawn.size - drawn.missing
    inverse = drawn.add(1.0 / drawn.cells.pred_n) - drawn.missing
    return _sure(estimate_ratio(Ratio(weight * inverse, weight * there), drawn), drawn.n_items)


def _population(drawn: Drawn, population_clusters: int | None) -> Iterator[Notice]:
    """Warn if that number of true clusters cannot have the items of the prediction."""
    if population_clusters is None:
        return
    rest = drawn.n_items - int((drawn.size - drawn.missing).sum())
    to_draw = population_clusters - drawn.size.size
    if not drawn.missing.any() and (to_draw > rest or (rest and not to_draw)):
        message = (
            f"{arg('population_clusters')} is {count(population_clusters)}, which leaves {count(to_draw)} true "
            f"clusters beside those of the sample, and the prediction has {count(rest)} other items: errors and "
            "intervals are wrong."
        )
        yield Notice(WARNING, message, {"n_items": rest, "n_clusters": to_draw})
        return
    if int(drawn.draws.sum()) < ENOUGH:
        return
    of_mean = estimate_ratio(Ratio(drawn.weight * (drawn.size - drawn.missing), drawn.weight), drawn)
    found = _sure(of_mean, population_clusters)
    if found is None or found.low <= drawn.n_items <= found.high:
        return
    message = (
        f"By the sample {count(population_clusters)} true clusters would have {_between(found)} items, and the "
        f"prediction has {count(drawn.n_items)}: {arg('population_clusters')} is not their number, or clusters of some "
        "sizes were drawn more often than others."
    )
    yield Notice(WARNING, message, {"n_items": drawn.n_items, "low": found.low, "high": found.high})


def _sure(own: Estimate, times: float) -> Interval | None:
    """Return an interval in which a positive multiple of an estimate surely is; None where no error is known."""
    if not (own.error > 0 and own.value > 0):
        return None
    reach = math.exp(t_quantile(SURE, max(1, int(own.df))) * own.error / own.value)
    return Interval(times * own.value / reach, times * own.value * reach)


def _between(found: Interval) -> str:
    low, high = (amount(round(end)) for end in found)
    return low if low == high else f"{low} to {high}"


def _few(estimated: Mapping[str, Estimate], sample: Mapping[str, Any], sampling: str) -> Iterator[Notice]:
    """Note that there are few draws, or scores that few of them decide, and for which scores there is no error."""
    n, unknown = sample["n_draws"], [name for name, each in estimated.items() if math.isnan(each.error)]
    without = f" No standard error is known for {', '.join(unknown)}." if unknown else ""
    if n == 1:
        message = "A single cluster shows no standard error, and its estimates are not adjusted."
        yield Notice(
            NOTE, message + without, {"scores": list(estimated), "df": 0.0, "without_error": unknown}
        )
        return
    uneven = {
        name: each.effective
        for name, each in estimated.items()
        if 0 < each.effective < min(FEW_UNITS, each.n_clusters / 2)
    }
    few = {name: each.df for name, each in estimated.items() if each.df < FEW and each.error > 0}
    figures: dict[str, Any] = {
        "scores": [name for name in estimated if name in few or name in uneven],
        "df": min((estimated[name].df for name in few or uneven), default=math.nan),
        "without_error": unknown,
    }
    if few and n <= FEW:
        message = f"{count(n)} clusters are few: intervals are wide, and may still be too narrow."
        yield Notice(NOTE, message + without, figures)
    elif uneven and n > FEW:
        effective, larger = (
            min(uneven.values()),
            f"Draw clusters in proportion to their size, and pass {arg('sampling', 'cluster_size')}.",
        )
        message = (
            f"A few large clusters decide {', '.join(uneven)}: {effective:.1f} equal ones would be as informative as "
            f"the {count(n)} that were drawn, and intervals may be far too narrow. "
        )
        message += "Take a larger sample." if sampling == CLUSTER_SIZE else larger
        level = WARNING if effective < VERY_FEW else NOTE
        yield Notice(level, message + without, figures | {"effective": effective})
    elif few:
        message = (
            f"A few of the sampled clusters decide {', '.join(few)}: the intervals are wide for that, and may still be "
            "too narrow. Take a larger sample, or draw clusters in proportion to their size."
        )
        yield Notice(NOTE, message + without, figures)


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
    if not names:
        return
    told = ", ".join(f"{name} {score_text(estimated[name].value)}" for name in names)
    surely = [name for name in names if _is_surely_beyond(estimated[name], *ranges[name])]
    if surely:
        message = (
            f"Estimates that cannot be: {told}. They are beyond the range by more than their errors: the sample was "
            f"not drawn as {arg('sampling')} says, or does not have all items of its clusters."
        )
    else:
        message = (
            f"Estimates are not cut off at the ends of the range: {told}. Read them as close to that end; their "
            "intervals are symmetric."
        )
    yield Notice(WARNING if surely else NOTE, message, {"scores": names})


def _is_surely_beyond(own: Estimate, low: float, high: float) -> bool:
    """Return whether an estimate is out of its range by more than errors of 95 % allow; that of one draw never is."""
    if not own.error >= 0:
        return False
    reach = t_quantile(0.95, max(1, int(own.df))) * own.error
    return own.value - reach > high or own.value + reach < low
