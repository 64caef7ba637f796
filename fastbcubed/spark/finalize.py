"""Sums of all cells → scores and slices."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from fastbcubed.align.policies import Coverage
from fastbcubed.engines.request import Request, Scored
from fastbcubed.errors import Message, OptionError, SliceError, WeightError, arg
from fastbcubed.metrics import aggregation
from fastbcubed.metrics.score import Metric
from fastbcubed.metrics.sums import (
    PRECISION,
    RECALL,
    SizeCounts,
    chance_of_counts,
    code_lengths_of_counts,
    entropies_of_counts,
    entropies_of_sums,
    sums_of_counts,
)
from fastbcubed.results.bins import Bins
from fastbcubed.results.slice_sums import SliceSums
from fastbcubed.results.slices import ID, Element, SliceKey, attribute_home, elements, size_named, slice_name
from fastbcubed.results.summary import Bounds, bounds_from, describe
from fastbcubed.runtime.threads import Pool
from fastbcubed.spark.aggregate import MEAN, Question, Sums
from fastbcubed.spark.frames import FrameRows, FrameSide, Looked, item_names
from fastbcubed.spark.grouping import JoinedTable
from fastbcubed.types import Sizes

#: The sums over all cells that parts of the cells add up to, by kind.
OF_PAIRS, OF_ENTROPIES = ("pairs", "wrong pairs"), ("entropies", "chance", "code lengths")
OF_CLUSTERS = {"means of true clusters": "true", "means of pred clusters": "pred"}
SERVED = (*OF_PAIRS, *OF_ENTROPIES, *OF_CLUSTERS)
WAY_OUT = (
    "it takes all cells at once, which on Spark are in many places; evaluate tables that one machine can read with "
    f"{arg('engine', 'disk')} or {arg('engine', 'memory')}"
)


class Asked:
    """The scores of a request that Spark can compute, and why others are not computed."""

    def __init__(self, request: Request, *, weighted: bool) -> None:
        self.request, self.weighted = request, weighted
        metrics, self.not_computed = request.resolve(weighted=weighted, cells_alone=True)
        reasons = {m.name: WAY_OUT for m in metrics if not _is_served(m)}
        for name in sorted(request.named_metrics & reasons.keys()):
            raise OptionError(f"cannot compute {name}: {reasons[name]}")
        self.metrics = [m for m in metrics if m.name not in reasons]
        self.not_computed |= {name: Message(reason) for name, reason in reasons.items()}
        self.needed = aggregation.with_needs(self.metrics, request.beta)
        self.sums = {name for m in self.needed if m.overall_only for name in m.sums}  #: over all cells

    @property
    def needs_total(self) -> bool:
        """Whether some scores need the number or weight of all scored items, so that cells pass twice."""
        return any(m.uses_tn for m in self.needed) or (
            self.weighted and not self.sums.isdisjoint(OF_ENTROPIES)
        )

    def question(self, **about: Any) -> Question:
        """Return the sums requested of the cells."""
        request = self.request
        sides = [side for name, side in OF_CLUSTERS.items() if name in self.sums]
        return Question(
            weighted=self.weighted, outer=request.outer, outside=request.outside,
            bounded=request.policies.prediction == "drop",
            metrics=list({m.name: m for m in (*self.needed, PRECISION, RECALL) if m.formula is not None}.values()),
            by_cluster=[(side, metric) for side in sides for metric in (PRECISION, RECALL)],
            pairs=not self.sums.isdisjoint(OF_PAIRS),
            entropies=not self.sums.isdisjoint(OF_ENTROPIES),
            grouped=self.metrics, beta=request.beta, **about,
        )  # fmt: skip

    def counting(self, **about: Any) -> Question:
        """Return a request for counts only."""
        return Question(self.weighted, self.request.outer, self.request.outside, **about)


def _is_served(metric: Metric) -> bool:
    """Return whether Spark can compute a score, and all scores it is combined from, from sums of cells."""
    own = not metric.overall_only or set(metric.sums) <= set(SERVED)
    return own and all(map(_is_served, metric.needs))


def sums_of_scores(asked: Asked, sums: Sums, question: Question, pool: Pool) -> dict[str, Any]:
    """Return the sums over all cells that the scores are computed from, by the names of `metrics.sums`."""
    floats, n_items = sums.floats, sums.counts["n_items"]
    found: dict[str, Any] = {}
    for name, side in OF_CLUSTERS.items():
        if name in asked.sums:
            added = (floats[f"cluster {side} {metric.name}"] for metric in (PRECISION, RECALL))
            found[name] = [each / round(floats[f"clusters {side}"]) for each in added]
    if question.pairs:
        tp, fp, fn = (sums.counts[f"pairs {name}"] for name in ("tp", "fp", "fn"))
        counted = sums_of_counts(tp, fp, fn, n_items)
        found["pairs"] = counted.tp, counted.fp, counted.fn, counted.tn
        found["wrong pairs"] = counted.fp, counted.fn
    if question.entropies and question.weighted:
        found["entropies"] = entropies_of_sums([floats[f"entropy {k}"] for k in range(4)], floats["weight"])
    elif question.entropies:
        true, pred = (clusters_of(sums.sizes[side]) for side in ("true", "pred"))
        counts = SizeCounts(true, pred, floats["loss 0"], floats["loss 1"])
        found["entropies"] = entropies_of_counts(counts, n_items)
        found["code lengths"] = code_lengths_of_counts(counts, n_items)
        if "chance" in asked.sums:
            found["chance"] = chance_of_counts(counts, n_items, pool)
    return found


def clusters_of(sizes: Sizes) -> Sizes:
    """Return cluster sizes and the number of clusters of each, from the items in clusters of each size."""
    known, items = sizes
    return known, items // known


def means_of(sums: Sums) -> dict[str, float]:
    """Return the means over items of scores."""
    total = sums.floats["weight"]
    if not 0 < total < math.inf:
        raise WeightError(f"the weights of the scored items add up to {total}; there is no mean over them")
    return {
        name.removeprefix(MEAN): value / total for name, value in sums.floats.items() if name.startswith(MEAN)
    }


def scored(asked: Asked, sums: Sums, question: Question, pool: Pool) -> Scored:
    """Return the scores over all items."""
    of_all = sums_of_scores(asked, sums, question, pool)
    overall = aggregation.finished(asked.metrics, means_of(sums), asked.request.beta, of_all)
    return Scored(overall, asked.metrics, asked.not_computed)


def coverage_of(sums: Sums, looked: Iterable[Looked]) -> Coverage:
    """Return the counts of items of both sides, and of one side only."""
    sides = list(looked)
    counts, weights = sums.counts, sums.floats
    return Coverage(
        counts["n_0"], counts["n_1"], counts["n_2"],
        weights["weight_0"], weights["weight_1"], weights["weight_2"],
        n_null=sum(side.n_null for side in sides),
        n_noise=sum(side.n_noise for side in sides),
        n_duplicates=counts["again"],
    )  # fmt: skip


def bounds_of(sums: Sums, question: Question, coverage: Coverage) -> Bounds | None:
    """Return the bounds of the precision over all possible labels of the prediction-only items that were dropped."""
    if not question.bounded or not coverage.n_prediction_only:
        return None
    return bounds_from(np.array([sums.floats[f"bound {k}"] for k in range(3)]), sums.floats["weight"])


def summary_of(sums: Sums) -> dict[str, dict[str, Any]]:
    """Return items, clusters, singletons, largest, size quantiles and exactly recovered, of each side."""
    counts = sums.counts
    sizes = {side: clusters_of(own) for side, own in sums.sizes.items()}
    return describe(sizes, counts["n_items"], dict.fromkeys(sizes, counts["n_exact"]))


#: Reason why an attribute of both sides needs a prefix here.
NOT_COMPARED = "the Spark engine does not look whether they are equal"


@dataclass(frozen=True)
class Slicing:
    """The slices of a request: the columns to carry with the rows, and the names of attributes there."""

    keys: list[SliceKey]
    names: list[dict[str, Element]]
    carried: tuple[Mapping[str, str], Mapping[str, str]]
    tables: tuple[JoinedTable, ...]
    parts: Mapping[str, str]  #: parts of ids, by new name

    def tables_of(self, sums: Sums, question: Question, total: float) -> dict[str, pa.Table]:
        """Return the slices by name."""
        found = {}
        for key, names, part in zip(self.keys, self.names, sums.slices, strict=True):
            own = SliceSums(names, question.grouped, question.beta, None)
            own.add(part)
            found[slice_name(key)] = own.result(total)
        return found


def find(request: Request, sides: tuple[FrameSide, FrameSide]) -> Slicing:
    """Find the requested attributes; unknown ones raise before the work."""
    truth, prediction = sides
    given = request.given
    for key in request.slices:
        if isinstance(key, Mapping):
            raise OptionError(
                f"the Spark engine does not serve subsets by name ({', '.join(map(repr, key))}), as rows have no order "
                "there; add a column that tells them, and slice by it"
            )
    extra, tables = _tables(request, truth)
    parts = truth.items if len(truth.items) > 1 else ()
    known = {"truth": truth.attributes, "prediction": prediction.attributes, ID: parts}
    asked = dict.fromkeys(
        each.name if isinstance(each, Bins) else each for key in request.slices for each in elements(key)
    )
    names: dict[str, str] = {}
    of_ids: dict[str, str] = {}
    carried: dict[str, dict[str, str]] = {"truth": {}, "prediction": {}, "": {}}
    for k, name in enumerate(each for each in asked if size_named(each, known, tuple(extra)) is None):
        side, own = attribute_home(name, known, tuple(extra), NOT_COMPARED)
        new = f"s{k}"
        if side == ID:
            of_ids[new] = own
            names[name] = f"attributes.{new}"
            continue
        rows = extra[own] if side == "" else (truth if side == "truth" else prediction).rows
        if rows.is_nested(own):
            raise SliceError(f"cannot slice by {name!r}, which is nested; use a plain column")
        new = carried[side].setdefault(own, new)
        names[name] = f"attributes.{new}"
    if given.attributes is not None and carried[""]:
        rows = next(iter(extra.values()))
        ids = item_names(rows, given.item, truth)
        tables.append(JoinedTable(rows, ids, carried[""], "attributes", "one row"))
    located = [{str(each): _located(each, names) for each in elements(key)} for key in request.slices]
    return Slicing(request.slices, located, (carried["truth"], carried["prediction"]), tuple(tables), of_ids)


def _tables(request: Request, truth: FrameSide) -> tuple[dict[str, FrameRows], list[JoinedTable]]:
    """Return the columns of a table of attributes, and the table of weights."""
    given, tables = request.given, []
    extra: dict[str, FrameRows] = {}
    if given.attributes is not None:
        rows = FrameRows(given.attributes, "the attributes")
        ids = item_names(rows, given.item, truth)
        extra = {name: rows for name in rows.names if name not in ids}
    if given.weight is not None and not isinstance(given.weight, str):
        rows = FrameRows(given.weight, "the weight table")
        ids = item_names(rows, given.item, truth)
        rest = [name for name in rows.names if name not in ids]
        name = "weight" if "weight" in rest or len(rest) != 1 else rest[0]
        rows.columns([name])
        tables.append(JoinedTable(rows, ids, {name: "w_table"}, "weight", "one weight"))
    return extra, tables


def _located(element: Element, names: Mapping[str, str]) -> Element:
    """Return an attribute, or bins of it, under the name of its column."""
    if isinstance(element, Bins):
        return replace(element, name=names[element.name])
    return names.get(element, element)
