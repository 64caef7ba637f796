"""Ranks of runs, the agreement of scores on them, and notices on runs that lack items."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations, permutations
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from fastbcubed.errors import Message, OptionError, arg, first_few
from fastbcubed.inputs.arrays import from_texts, table_of
from fastbcubed.metrics.metric import Metric, directed, lead_score, without_rounding
from fastbcubed.render.number_formats import label
from fastbcubed.results.warnings import OfRun, runs_lack_items
from fastbcubed.results.warnings import lacks_more as coverage_lacks_more

if TYPE_CHECKING:
    from fastbcubed.compare_runs.comparison import Comparison

#: The warning about runs that lack items, and the warning of their evaluations that it replaces.
LACKING, INSTEAD_OF = "runs-lack-items", "dropping-truth-flatters"


def ranks(comparison: Comparison) -> pa.Table:
    """Return the rank of each run by each score; equal runs share the best of their ranks."""
    columns: dict[str, pa.Array] = {"run": from_texts(list(comparison))}
    for metric in directed(comparison.metrics):
        values = _goodness(comparison, metric)
        own = [
            None if math.isnan(value) else 1 + sum(_order(other, value) > 0 for other in values)
            for value in values
        ]
        columns[metric.name] = pa.array(own, pa.int64())
    return table_of(columns)


def agreement(comparison: Comparison) -> pa.Table:
    """Return Kendall's tau-b between the rankings of the runs by each pair of scores."""
    orders = {
        metric.name: [_order(a, b) for a, b in combinations(_goodness(comparison, metric), 2)]
        for metric in directed(comparison.metrics)
    }
    columns: dict[str, pa.Array] = {"score": from_texts(list(orders))}
    for name, own in orders.items():
        columns[name] = np.array([_tau(own, other) for other in orders.values()], np.float64)
    return table_of(columns)


def _goodness(comparison: Comparison, metric: Metric) -> list[float]:
    """Return the score of each run, negated if lower is better."""
    sign = 1.0 if metric.best == "higher" else -1.0
    return [sign * ev.overall[metric.name] for ev in comparison.runs.values()]


def _order(a: float, b: float) -> int:
    """Return 1 if a is higher than b, -1 if it is lower, and 0 if they are equal or one is NaN."""
    delta = without_rounding(a - b, max(abs(a), abs(b)))
    return int(delta > 0) - int(delta < 0)


def _tau(a: Sequence[int], b: Sequence[int]) -> float:
    """Return tau-b from the orders of pairs by two scores; NaN if all runs are equal by one of them.

    >>> round(_tau([1, 1, 0], [1, -1, 1]), 6), _tau([0, 0], [1, 1])
    (0.0, nan)
    """
    both = math.sqrt(sum(map(abs, a)) * sum(map(abs, b)))
    return sum(x * y for x, y in zip(a, b, strict=True)) / both if both else math.nan


def coverage(comparison: Comparison) -> pa.Table:
    """Return the coverage of the truth by each run, and its scores on its own items."""
    of, own = comparison._coverage.values(), comparison._own_scores.values()
    columns: dict[str, Any] = {"run": from_texts(list(comparison))}
    for name in ("n_common", "n_truth_only", "n_prediction_only"):
        columns[name] = np.array([getattr(each, name) for each in of], np.int64)
    for name in ("truth_coverage", "prediction_coverage"):
        columns[name] = np.array([getattr(each, name) for each in of], np.float64)
    scored = np.array(list(comparison._n_scored.values()), np.int64)
    kept = np.array([ev.contingency.n_items for ev in comparison.runs.values()], np.int64)
    columns |= {"n_scored": scored, "n_left_out": scored - kept}
    for before, after in (("own_", ""), ("", "_if_alone")):
        for name in ("precision", "recall", "f1"):
            columns[f"{before}{name}{after}"] = np.array([each[name + after] for each in own], np.float64)
    return table_of(columns)


def n_dropped(comparison: Comparison, run: str) -> int:
    """Return the number of items of the truth that are dropped because a run lacks them."""
    return comparison._coverage[run].n_truth_only if comparison._drops else 0


def lacks_more(comparison: Comparison, run: str, other: str) -> bool:
    """Return whether a run lacks so much more of the truth than another that their scores are not comparable."""
    coverage = comparison._coverage
    return comparison._drops and coverage_lacks_more(coverage[run], coverage[other])


def why_no_ranks(comparison: Comparison) -> Message | None:
    """Return why runs are not ranked; None if they are."""
    by_run = {row["run"]: row for row in comparison._ranks().to_pylist()}
    names = [metric.name for metric in directed(comparison.metrics) if not metric.of_mentions]
    for run, other in permutations(comparison, 2):
        places = ((by_run[run][name], by_run[other][name]) for name in names)
        if lacks_more(comparison, run, other) and any(
            a is not None and b is not None and a <= b for a, b in places
        ):
            return Message(
                f"{run!r} lacks more items of the truth than {other!r}, and since these are dropped, some "
                f"scores would rank it higher. Pass {comparison._without_drops}, or compare runs of the "
                "same items"
            )
    return None


def ranked(comparison: Comparison) -> list[str]:
    """Return the names of the runs, the best first; raise OptionError if no score distinguishes them."""
    score, names = lead_score(comparison.metrics), list(comparison)
    if score is None:
        scores = first_few([metric.name for metric in comparison.metrics])
        raise OptionError(
            f"no run is best: {scores} has no direction or no values that differ. Name the run, or add "
            f"another score, such as {arg('metrics', 'f1')}"
        )
    rank = dict(zip(names, comparison.ranks()[score].to_pylist(), strict=True))
    return sorted(names, key=lambda name: rank[name] or len(names) + 1)


def ranking(comparison: Comparison) -> list[dict[str, Any]]:
    """Return the runs, ordered by the score that `Comparison.best` uses, with their differences from the best."""
    score = lead_score(comparison.metrics)
    if score is None or why_no_ranks(comparison) is not None:
        return []
    best = comparison._against_best
    shown = ("delta", "se", "low", "high")
    found = {
        row["experiment"]: {name: row[name] for name in shown}
        | {"as_good": None if row["holds"] is None and row["delta"] else not row["holds"]}
        for row in best._deltas().to_pylist()
        if row["score"] == score
    } | {best.baseline: dict.fromkeys(shown) | {"as_good": True}}
    return [
        {"run": name, "score": score, "value": comparison[name].overall[score], **found[name]}
        for name in ranked(comparison)
    ]


#: The most runs that have messages of their own if these differ.
FEW_RUNS = 3


def notices_of_runs(comparison: Comparison) -> list[dict[str, Any]]:
    """Return the warnings and notes: first that runs lack items, then those of the runs, without repetition."""
    notices = shared_notices(comparison)
    of_items = [metric for metric in comparison.metrics if not metric.of_mentions]
    if not of_items or not any(n_dropped(comparison, name) for name in comparison):
        return notices
    runs = {
        name: OfRun(comparison._coverage[name], own, comparison[name].overall.get("f1", math.nan), drops=True)
        for name, own in comparison._own_scores.items()
    }
    common, mentions = comparison.align == "common", len(of_items) < len(comparison.metrics)
    return [*runs_lack_items(runs, common=common, mentions=mentions), *notices]


def shared_notices(comparison: Comparison) -> list[dict[str, Any]]:
    """Return the warnings and notes of the runs, in order and without repetition.

    If the messages of a code differ, each of a few runs has its own; of many runs, only the first is quoted.
    """
    found: dict[tuple[Any, ...], dict[str, dict[str, Any]]] = {}
    for name, ev in comparison.runs.items():
        for said in ev.warnings:
            kind = said["code"], said["level"], *(said.get(key) for key in ("side", "by", "score"))
            if said["code"] != INSTEAD_OF:
                found.setdefault(kind, {})[name] = said
    notices = []
    for by_run in found.values():
        if len(by_run) <= FEW_RUNS:
            notices += _each_once(by_run)
            continue
        first, said = next(iter(by_run.items()))
        differ = any(each["message"] != said["message"] for each in by_run.values())
        details = f" (Details are for {label(first)}.)" if differ else ""
        notices.append({**said, "message": said["message"] + details, "runs": list(by_run)})
    return notices


def _each_once(by_run: Mapping[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the distinct messages, each with the runs that have it."""
    runs: dict[str, list[str]] = {}
    for name, said in by_run.items():
        runs.setdefault(said["message"], []).append(name)
    return [{**by_run[names[0]], "runs": names} for names in runs.values()]


def told(comparison: Comparison) -> list[dict[str, Any]]:
    """Return the warnings and notes, whose messages now begin with the names of their runs."""
    found = []
    for said in comparison.warnings:
        every = 1 < len(said["runs"]) == len(comparison)
        whose = "all runs" if every else ", ".join(map(label, said["runs"]))
        of_runs = "" if said["code"] == LACKING else f"{whose}: "
        found.append({**said, "message": Message(of_runs + Message(said["message"]).marked)})
    return found
