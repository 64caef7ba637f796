"""Where recall is lost: links that were never proposed, links below the threshold, and what wrong links regain."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from fastbcubed import kernels
from fastbcubed.errors import NotKeptError, arg
from fastbcubed.metrics.registry import METRICS
from fastbcubed.render.number_formats import count, counted
from fastbcubed.results.notices import NOTE, Notice, with_codes
from fastbcubed.results.table import Table
from fastbcubed.runtime.threads import blocks
from fastbcubed.sweep_links.curve import score_of
from fastbcubed.sweep_links.merge_tree import SUMMED_AT_ONCE, TreeRows
from fastbcubed.types import Codes

#: The scores and their names in sentences; the sentence is on the first that is known.
RECALLS = {"pair_recall": "pair recall", "recall": "recall"}
NOT_THERE = (
    "stages need the links, which a sweep drops when they exceed its memory limit, and which are not saved "
    f"with it; sweep again with a larger {arg('memory_limit', ...)}, or compute stages before saving"
)


class Recalls(NamedTuple):
    """A recall in three cases: every link judged correctly, only the used links judged correctly, actual clusters."""

    candidates: float
    used: float
    found: float

    @property
    def lost(self) -> dict[str, float]:
        """Recall lost at each stage; the losses sum to 1 minus the recall achieved."""
        blocking, threshold = 1.0 - self.candidates, self.candidates - self.used
        return {"blocking": blocking, "threshold": threshold, "merging": self.used - self.found}


@dataclass(frozen=True)
class Stages:
    """The recall lost before scoring, by the threshold, and by merging, as returned by `Sweep.stages`.

    Attributes
    ----------
    threshold : float
        The threshold; `shown` is its text form.
    n_links, n_right : int
        Number of candidate links, and number of candidate links whose items are in the same true cluster.
    n_used, n_used_right : int
        Number of links that the threshold uses, and number of such links whose items are in the same true cluster.
    n_unjudged : int
        Number of links with an item whose true cluster is unknown, such as an item that only the links have.
    recalls : dict of str to Recalls
        For recall and pair_recall, if defined: candidates (if every link were judged correctly), used (if the links
        that the threshold uses were judged correctly), found (for the actual clusters), and `lost`, the loss at each
        stage.
    one_score : bool
        Whether all links have the same score.
    """

    threshold: float
    shown: str
    n_links: int
    n_right: int
    n_used: int
    n_used_right: int
    n_unjudged: int
    recalls: Mapping[str, Recalls]
    one_score: bool

    def __repr__(self) -> str:
        return f"{self.sentence}\n{self.table()!r}"

    @property
    def sentence(self) -> str:
        """The sentence on where most recall is lost, and whether another threshold can regain it."""
        name = next(name for name in RECALLS if name in self.recalls)
        found = self.recalls[name]
        lost, whole = found.lost, 1.0 - found.found
        if not round(100 * whole, 1):
            return f"At threshold {self.shown} no {RECALLS[name]} is lost."
        if self.cut:
            part = _points(lost["blocking"] + lost["threshold"])
            told = f"{part} of {RECALLS[name]} are lost by blocking and scoring, which cannot be separated"
            return f"At threshold {self.shown} {told}."
        stage = max(("blocking", "threshold"), key=lambda each: lost[each])
        where, then = {
            "blocking": ("before scoring", "no threshold brings them back"),
            "threshold": ("by the threshold", "a weaker threshold brings them back, with wrong links"),
        }[stage]
        of = f"the {_points(whole)}" if lost[stage] <= whole else "points"
        part = f"{100 * lost[stage]:.1f} of {of} of {RECALLS[name]} lost at threshold {self.shown}"
        regained = (
            f" Wrong links regain {_points(-lost['merging'])}." if round(-100 * lost["merging"], 1) else ""
        )
        return f"{part} are lost {where}: {then}.{regained}"

    @property
    def cut(self) -> bool:
        """Whether weaker links may have been removed before the sweep."""
        return self.one_score or self.n_used == self.n_links

    @property
    def notes(self) -> list[dict[str, Any]]:
        """Notes on the links: code, level, message, figures."""
        found = {}
        if self.cut:
            why = (
                "all links have one score"
                if self.one_score
                else f"no link is weaker than threshold {self.shown}"
            )
            message = (
                f"Blocking and scoring cannot be separated because {why}: weaker links may have been left "
                "out, and then their recall counts as lost by blocking. Sweep all candidate links with "
                "their scores."
            )
            found["links-cut"] = [Notice(NOTE, message, {"n_links": self.n_links})]
        if self.n_unjudged:
            message = (
                f"{count(self.n_unjudged)} of {counted(self.n_links, 'link')} have an item without a true "
                "cluster. The truth cannot confirm these links, so they count as wrong; recall gained "
                "through them counts as regained."
            )
            found["links-not-judged"] = [Notice(NOTE, message, {"n_unjudged": self.n_unjudged})]
        return with_codes(found)

    def table(self) -> Table:
        """Return the table of stages, with the number of links, each recall, and the recall that the stage loses."""
        columns: dict[str, Any] = {
            "stage": ["blocking", "threshold", "merging"],
            "links": [self.n_right, self.n_used_right, self.n_used],
        }
        for name, found in self.recalls.items():
            columns |= {name: list(found), f"{name}_lost": list(found.lost.values())}
        return Table(pa.table(columns))

    def to_dict(self) -> dict[str, Any]:
        """Return the stages and notes as plain values."""
        recalls = {name: {**found._asdict(), "lost": found.lost} for name, found in self.recalls.items()}
        return {**asdict(self), "recalls": recalls, "notes": self.notes}

    @classmethod
    def _restored(cls, told: Mapping[str, Any], threshold: float) -> Stages:
        """Return the stages that `to_dict` described; the threshold is given, because JSON has no infinite numbers."""
        kept = {name: value for name, value in told.items() if name != "notes"}
        recalls = {
            name: Recalls(*(each[part] for part in Recalls._fields)) for name, each in told["recalls"].items()
        }
        return cls(**{**kept, "recalls": recalls, "threshold": threshold})


def _points(share: float) -> str:
    """Return a share as text in percentage points."""
    text = f"{100 * share:.1f}"
    return f"{text} point{'s' * (text != '1.0')}"


def stages_of(sweep: Any, threshold: float) -> Stages:
    """Return where recall is lost at a threshold; see `Sweep.stages`."""
    tree, rows = sweep.tree, sweep._placed.rows
    if tree.pairs is None:
        raise NotKeptError(NOT_THERE)
    point = sweep._point(threshold)
    aligned, of_rows = sweep._placed.aligned, sweep._alignment.pred_rows
    nodes = _nodes(rows, aligned if of_rows is None else of_rows[aligned], tree.n_items)
    n_used = sweep._n_links_used(threshold)
    parents = np.arange(len(rows), dtype=nodes["row"].dtype)
    labels, numbers, n_unjudged = list[Codes](), list[int](), 0
    # Each link is joined once: first the used ones, whose components give `used`, then the others for `candidates`.
    for first, last in ((0, n_used), (n_used, len(tree.pairs))):
        n_right = 0
        for start, stop in blocks(last - first):
            own = tree.pairs[first + start : first + stop]
            joined, unjudged = kernels.components.join_alike(own, nodes, parents)
            n_right, n_unjudged = n_right + joined, n_unjudged + unjudged
        numbers.append(n_right)
        labels.append(parents if labels else parents.copy())
        kernels.components.number_components(labels[-1])
    del nodes
    used, candidates = _recalls(rows, labels, with_pairs=_has_pairs(sweep))
    found = _found(sweep, point, threshold)
    return Stages(
        threshold,
        sweep.shown(threshold),
        len(tree.pairs),
        sum(numbers),
        n_used,
        numbers[0],
        n_unjudged,
        {name: Recalls(candidates[name], used[name], found[name]) for name in used},
        bool(tree.scores.size and tree.scores[0] == tree.scores[-1]),
    )


def _has_pairs(sweep: Any) -> bool:
    """Return whether pair scores are defined for the input."""
    how = {"weighted": sweep._curve.weighted, "outside": sweep.policies.prediction == "outside"}
    return METRICS["pair_recall"].undefined(weighting="pointwise", **how) is None


def _found(sweep: Any, point: int, threshold: float) -> dict[str, float]:
    """Return recall and, if defined, pair recall at a point, from the sums of the curve or by an evaluation."""
    kept = sweep._curve.kept.take(np.array([point]))
    found = {"recall": score_of(METRICS["recall"], kept).item()}
    if not _has_pairs(sweep):
        return found
    if "tp" in kept.sums:
        return found | {"pair_recall": score_of(METRICS["pair_recall"], kept).item()}
    ev = sweep._evaluated(threshold, {"metrics": ["pair_recall"]})
    return found | {"pair_recall": float(ev.overall["pair_recall"])}


def _nodes(rows: TreeRows, items: Codes, n_items: int) -> np.ndarray:
    """Return the true cluster and the row of each item of the tree, -1 for none, given the item of each row."""
    kind = np.dtype(np.int32 if max(len(rows), n_items) < 2**31 else np.int64)
    nodes = np.full(n_items, -1, kind).astype([("code", kind), ("row", kind)])
    for start, stop in blocks(len(rows)):
        own = np.empty(stop - start, nodes.dtype)
        own["code"], own["row"] = rows.codes[start:stop], np.arange(start, stop)
        there = items[start:stop] >= 0
        nodes[items[start:stop][there]] = own[there]
    return nodes


def _recalls(rows: TreeRows, partitions: list[Codes], *, with_pairs: bool) -> list[dict[str, float]]:
    """Return recall and pair recall of partitions of the rows, whose clusters lie within true clusters."""
    masses = [np.bincount(labels, rows.weights) for labels in partitions]
    there = np.flatnonzero(rows.scored_in_truth)
    lost, joined = ([list[float]() for _ in partitions] for _ in range(2))
    of_all = list[float]()
    # Block by block, as rows of a cluster are close to each other; blocks are those of `total_of`.
    for start, stop in blocks(there.size, SUMMED_AT_ONCE):
        own = there[start:stop]
        weight = np.ones(own.size) if rows.weights is None else rows.weights[own]
        of_true = rows.true_masses[rows.codes[own]]
        of_all.append(float((weight * (of_true - weight)).sum()))
        for k, (labels, mass) in enumerate(zip(partitions, masses, strict=True)):
            of_cluster = mass[labels[own]]
            lost[k].append(float(((1.0 - of_cluster / of_true) * weight).sum()))
            joined[k].append(float((weight * (of_cluster - weight)).sum()))
    whole, found = math.fsum(of_all), []
    for losses, pairs in zip(lost, joined, strict=True):
        recalls = {"recall": 1.0 - math.fsum(losses) / rows.total}
        if with_pairs:
            recalls["pair_recall"] = math.fsum(pairs) / whole if whole > 0 else 1.0  # as in `evaluate`
        found.append(recalls)
    return found
