"""Warnings and notes on an evaluation, with one function per code."""

from __future__ import annotations

import math
import os
import re
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed.align.policies import Coverage
from fastbcubed.cells.contingency import SIDES, Contingency
from fastbcubed.cells.partitioned import frequent_keys
from fastbcubed.errors import (
    PREDICTION,
    TRUTH,
    EvaluationWarning,
    Message,
    OptionError,
    Word,
    arg,
    first_few,
    quoted,
)
from fastbcubed.inputs import arrow_compute as pc
from fastbcubed.inputs.arrays import to_numpy
from fastbcubed.inputs.layouts import PREDICTION_WORDS, TRUTH_WORDS
from fastbcubed.inputs.link_clusters import CODES as OF_LINKS
from fastbcubed.inputs.side_columns import per_side
from fastbcubed.inputs.spellings import SEPARATOR, way_alike
from fastbcubed.metrics.metric import f_measure
from fastbcubed.render.number_formats import count, label, percent, score_text
from fastbcubed.results.items import without_noise
from fastbcubed.results.label_checks import (
    FEW_ITEMS,
    counts_as_weights,
    few_items_labelled,
    is_estimable,
    labels_like_nulls,
    labels_with_spaces,
    several_in_one_label,
)
from fastbcubed.results.notices import NOTE, WARNING, Notice, with_codes
from fastbcubed.results.slices import name_columns
from fastbcubed.runtime.arguments import is_path, path_of
from fastbcubed.runtime.key_partitions import sampled_rows
from fastbcubed.runtime.saved_figures import require_shape


def sentence(found: Mapping[str, Any]) -> Message:
    """Return an entry of `Evaluation.warnings` as a sentence with its code."""
    marked = Message(found["message"]).marked
    return Message(f"{found['level'].capitalize()}: {marked} [{found['code']}]")


#: Loss of F1 (or share of the truth, if F1 is unknown) from which dropped items are a warning rather than a note.
FLATTERED = 0.01
#: If the smaller side shares less than this part of its items, neither side is a sample of the other.
MOSTLY_COMMON = 0.5
#: Number of rows at the beginning and the end among which unmatched ids are looked for.
ROWS_LOOKED_AT = 1 << 12
#: Scores of two results are on different items if one covers this much less of the truth; these tend to be easier.
LESS_COVERED = 0.01
#: Smaller changes of F1 are not visible when printed.
VISIBLE = 1e-5
#: Number of runs in a message: those that lack most items, and those whose F1 would change most.
RUNS_SHOWN = 5
#: Number of ids of each side in a message.
SHOWN = 3


def dropping_flatters(ev: Any, n_items: int) -> Iterator[Notice]:
    """Warn if precision could be very different with complete labels."""
    if ev.bounds is not None and (message := ev.bounds.warning(estimable=is_estimable(ev))):
        yield Notice(WARNING, message, asdict(ev.bounds))


def dropping_truth_flatters(ev: Any, n_items: int) -> Iterator[Notice]:
    """Warn that scores would be lower if dropped truth-only items were singletons; a note if only slightly."""
    n = ev.coverage.n_truth_only
    if not n or ev.policies.truth != "drop" or all(metric.of_mentions for metric in ev.metrics):
        return
    share = n / (n + ev.coverage.n_common)
    figures = {"n_items": n, **if_alone(ev)}
    f1, alone = figures["f1"], figures["f1_if_alone"]
    known = not math.isnan(alone)
    loss = f1 - alone if known else share
    if loss <= 0 or (known and score_text(f1) == score_text(alone)):
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
            f" If each were a singleton in the prediction, f1 would be {about}{score_text(alone)} instead of "
            f"{score_text(f1)} (precision {score_text(figures['precision_if_alone'])}, "
            f"recall {score_text(figures['recall_if_alone'])})."
        )
    who = "If it lists linked records only" if linked else "If the prediction omits unlinked items"
    hint = "The prediction has no cluster of one item. " if linked else ""
    message += f" {hint}{who}, pass {arg('unmatched', {'truth': 'singleton'})}."
    yield Notice(level, message, figures)


def unlinked_alone(ev: Any, n_items: int) -> Iterator[Notice]:
    """Note that truth-only items count as singletons, as the prediction was made from links."""
    n = ev.coverage.n_truth_only
    omits = any(note.get("omits_singletons") and note["side"] == "prediction" for note in ev.origin.notes)
    if not n or not omits or ev.policies.truth != "singleton":
        return
    items = (
        f"1 item that only the {TRUTH} has is"
        if n == 1
        else f"{count(n)} items that only the {TRUTH} has are each"
    )
    message = (
        f"{items} a singleton in the {PREDICTION}, which was built from links: items without links are not "
        "missing."
    )
    yield Notice(NOTE, message, {"n_items": n})


def if_alone(ev: Any) -> dict[str, Any]:
    """Return F1, precision and recall, and the same scores if truth-only items were singletons.

    The latter are NaN if unknown, and unchanged if no such items were dropped. `exact` says that they do not depend on
    the weights of single items, which cells do not have.
    """
    found, dropped = ev.coverage, ev.policies.truth == "drop" and ev.coverage.n_truth_only > 0
    change = ev.figures.change_if_alone if dropped else 0.0
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
    """Return a score over all items; NaN if it was not computed and cannot be computed from cells."""
    if name in ev.overall:
        return float(ev.overall[name])
    return float(
        ev.metric(name) if ev.contingency.has_cells else ev.contingency.known_means.get(name, math.nan)
    )


def give(notices: Iterable[Mapping[str, Any]]) -> None:
    """Issue the warnings, but not the notes, as if from the first caller outside the package."""
    frame, stacklevel = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("fastbcubed."):
        frame, stacklevel = frame.f_back, stacklevel + 1
    for each in notices:
        if each["level"] == WARNING:
            warnings.warn(EvaluationWarning(each["message"], each["code"]), stacklevel=stacklevel + 1)


#: Key in a saved warning for figures that are NaN or infinite, which JSON cannot represent: their paths and values.
NOT_FINITE = "not_finite"


def to_saved(notices: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return warnings and notes as manifests store them; `from_saved` restores all of their figures."""
    lost = [(each, list(_not_finite(each, []))) for each in notices]
    return [{**each, NOT_FINITE: found} if found else dict(each) for each, found in lost]


def _not_finite(value: Any, way: list[Any]) -> Iterator[list[Any]]:
    if isinstance(value, Mapping | list | tuple):
        for key, each in value.items() if isinstance(value, Mapping) else enumerate(value):
            yield from _not_finite(each, [*way, key])
    elif isinstance(value, float | np.floating) and not math.isfinite(value):
        yield [way, str(float(value))]


def from_saved(notices: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the warnings and notes stored in a manifest.

    Examples
    --------
    >>> import json
    >>> note = {"code": "made-of-links", "level": "note", "message": "There are links."}
    >>> saved = to_saved([note | {"threshold": math.inf}])
    >>> from_saved([{**saved[0], "threshold": None}])[0]["threshold"]
    inf
    """
    found = []
    require_shape(notices, [{"code": str, "level": str, "message": str}], "warnings")
    for each in notices:
        require_shape(each.get("runs", []), [str], "runs")
        own = dict(each)
        for (*way, last), text in own.pop(NOT_FINITE, ()):
            place: Any = own
            for key in way:
                place = place[key]
            place[last] = float(text)
        found.append(own)
    return found


class OfRun(NamedTuple):
    """One of several runs: its coverage, result of `if_alone`, F1 as shown, and whether missing items are dropped."""

    coverage: Coverage
    own: Mapping[str, Any]
    shown_f1: float
    drops: bool

    @property
    def n_dropped(self) -> int:
        """Number of truth-only items that are dropped."""
        return self.coverage.n_truth_only if self.drops else 0

    @property
    def loss(self) -> float:
        """Loss of F1 if the dropped items were singletons; their share of the truth if that is unknown."""
        if math.isnan(self.own["f1_if_alone"]):
            return 1 - covered(self.coverage)
        return float(self.figures["shown_f1"] - self.own["f1_if_alone"])

    @property
    def figures(self) -> dict[str, Any]:
        """The figures of the run in a warning."""
        counts = {"n_items": self.n_dropped, "truth_coverage": covered(self.coverage)}
        shown = self.own["f1"] if math.isnan(self.shown_f1) else self.shown_f1
        return {**counts, "shown_f1": shown, **self.own}


def runs_lack_items(
    runs: Mapping[str, OfRun],
    *,
    common: bool,
    policy: dict[str, str] | str | None = None,
    mentions: bool = False,
) -> Iterator[dict[str, Any]]:
    """Warn if runs drop items of the truth to different extents, or scores would be lower were these singletons.

    The thresholds are those for a single evaluation, and for the baseline of a gate. `mentions` says that there are
    also scores that count all mentions.
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
    message = f"Items of the truth missing from runs are dropped: {', '.join(parts)}{_more(lacking)}."
    named = list(runs)
    if len(runs) > RUNS_SHOWN:
        named = sorted(runs, key=lambda name: -runs[name].loss)[:RUNS_SHOWN]
    if known := [name for name in named if not math.isnan(figures[name]["f1_if_alone"])]:
        kinds = ("shown_f1", "f1", "f1_if_alone") if common else ("f1", "f1_if_alone")
        what = "common items, on own items" if common else "own items"
        of = "; ".join(
            f"{label(name)} {', '.join(score_text(figures[name][k]) for k in kinds)}" for name in known
        )
        about = "" if all(each["exact"] for each in figures.values()) else " (approximately)"
        message += f" F1 on {what}, and with missing items as singletons{about}: {of}{_more(runs)}."
    alone = arg("unmatched", policy or {"truth": "singleton"})
    message += f" If runs omit unlinked items, pass {alone}."
    message += " Coreference scores count these items, too." * mentions
    yield {
        "code": "runs-lack-items",
        "level": level,
        "message": Message(message),
        "runs": lacking,
        "by_run": figures,
    }


def _more(runs: Collection[str]) -> str:
    return f" and {count(len(runs) - RUNS_SHOWN)} more" if len(runs) > RUNS_SHOWN else ""


def lacks_more(coverage: Coverage, other: Coverage) -> bool:
    """Return whether a result lacks a much larger share of the truth's items than another."""
    return covered(other) - covered(coverage) > LESS_COVERED


def covered(coverage: Coverage) -> float:
    """Return the share of the truth's weight that the prediction covers; of its items if weights are unknown."""
    of_weight = coverage.truth_coverage
    return coverage.n_common / _n_truth(coverage) if math.isnan(of_weight) else of_weight


def _n_truth(coverage: Coverage) -> int:
    return coverage.n_common + coverage.n_truth_only


def few_ids_match(ev: Any, n_items: int) -> Iterator[Notice]:
    """Warn if most items of the smaller side are not on the other side."""
    found = ev.coverage
    sides = found.n_common + found.n_truth_only, found.n_common + found.n_prediction_only
    if min(sides) < FEW_ITEMS or (share := found.n_common / min(sides)) >= MOSTLY_COMMON:
        return
    message = (
        f"Only {count(found.n_common)} items are on both sides, of {count(sides[0])} in the {TRUTH} and "
        f"{count(sides[1])} in the {PREDICTION}."
    )
    ids = unmatched_ids(ev)
    if all(ids.values()):
        named = [first_few(own[: SHOWN + 1], SHOWN) for own in ids.values()]
        message += f" Only the {TRUTH} has {named[0]}; only the {PREDICTION} has {named[1]}."
        if alike := _alike(*ids.values()):
            message += f" {alike}"
    message += " Check that both item columns write the same ids in the same way."
    shown = {f"{side}_only": list(map(str, own[:SHOWN])) for side, own in ids.items()}
    yield Notice(WARNING, message, {"share": share, "n_common": found.n_common, **shown})


def unmatched_ids(ev: Any) -> dict[str, list[Any]]:
    """Return a few ids that only the truth has, and a few that only the prediction has; none if items were not kept."""
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


def _alike(truth: list[Any], prediction: list[Any]) -> str:
    """Return a sentence on the difference in spelling that keeps ids from matching; "" if a sample shows none."""
    found = way_alike(
        *(pa.chunked_array([list(map(_id_text, own))], pa.string()) for own in (truth, prediction))
    )
    return "" if found is None else f"Ids such as {first_few([truth[found[1]]])} would match {found[0]}."


def _id_text(value: Any) -> str:
    return SEPARATOR.join(map(str, value)) if isinstance(value, tuple) else str(value)


#: Number of rows whose labels are compared if the sides are alike; usually the first row already shows different names.
ROWS_COMPARED = 1 << 16
#: Number of cells whose labels are compared before those of all cells.
CELLS_COMPARED = 64
#: Numbers of rows, spread over all, whose labels are compared before each row's cell is found: few, then more.
ROWS_FIRST = 64, 1 << 12
#: Maximum number of cells whose codes are held at once; beyond it, rows are compared, if all clusters are exact.
CELLS_AT_ONCE = 1 << 20
#: Share of the truth's items below which a prediction without other items may be a labelled sample.
SAMPLE = 0.1


def same_input(ev: Any, n_items: int) -> Iterator[Notice]:
    """Warn if truth and prediction are the same file, column or object, or if their clusters have the same names."""
    source = ev.origin.same_source
    if source is not None and (ev.origin.by_name or n_items >= FEW_ITEMS):
        yield Notice(WARNING, f"Truth and prediction are the same {source}, so every score is perfect.", {})
    elif any(note["code"] == "made-of-links" for note in ev.origin.notes):
        return  # such clusters are numbered, not named
    elif source is None and (n_items >= FEW_ITEMS or (ev.origin.by_name and n_items > 2)):
        if not ev.contingency.has_cells or (_is_large(ev.contingency) and not ev.has_items):
            if n_items >= FEW_ITEMS and _is_perfect(ev):
                keep = "cells" if not ev.contingency.has_cells else "items"
                how = f"pass {arg('keep', keep)} to check whether their names are the same, too, as in a copy"
                yield Notice(NOTE, f"{_same_clusters(ev)}; {how}.", {})
        elif _same_names(ev):
            yield Notice(WARNING, f"{_same_clusters(ev)} under the same names: {COPY}", {})


def _same_clusters(ev: Any) -> str:
    whole, common = "Truth and prediction have", "All items that both sides have are in"
    return f"{whole if ev.coverage.complete else common} the same clusters"


#: Question about clusters that have the same names.
COPY = "is one a copy of the other, or are both read from a column of the truth?"


def _is_large(table: Any) -> bool:
    """Return whether labels are to be compared by item, as clusters overlap or there may be too many cells."""
    return bool(table.overlapping) or table.n_cells > CELLS_AT_ONCE


def _is_perfect(ev: Any) -> bool:
    """Return whether each cluster of scored items equals one of the other side; cells are only read if necessary."""
    table = ev.contingency
    if table.overlapping or not table.has_cells:
        return all(s["exact"] == s["clusters"] for s in ev._sides.values())
    may_be = table.n_cells <= min(table.n_codes.values())  # one code may have no cluster
    return bool(may_be and table.n_exact == table.n_cells)


def _same_names(ev: Any) -> bool:
    """Return whether clusters that share items have equal labels of any types; false if there are no labels."""
    table = ev.contingency
    if _is_large(table):
        if not _is_perfect(ev):
            return False
        items = ev.kept_items()
        rows = np.arange(min(len(items), ROWS_COMPARED))
        return agree(items.labels("true", rows), items.labels("pred", rows))
    if ev.kept.labels is None and ev.has_items and any(_some_differ(ev.kept, n) for n in ROWS_FIRST):
        return False
    codes = [table.codes(side)[0] for side in ("true", "pred")]
    for some in (slice(0, CELLS_COMPARED), slice(None)):  # usually, the first few differ
        labels = [
            ev.kept.cluster_labels(side, own[some]) for side, own in zip(("true", "pred"), codes, strict=True)
        ]
        if not agree(*labels):
            return False
    return True


def _some_differ(kept: Any, most: int) -> bool:
    """Return whether labels differ in these rows where both sides have one, which can be seen without finding cells."""
    items = kept.require_items()
    rows = np.linspace(0, max((n := len(items)) - 1, 0), min(most, n)).astype(np.int64)
    plain = hasattr(items, "integer_labels") and kept.policies.noise is None
    if plain and (integers := items.integer_labels()) is not None:
        true, pred = integers
        return bool((true[rows] != pred[rows]).any())
    labels = [without_noise(items.labels(side, rows), kept.policies, side) for side in SIDES]
    both = pc.and_(pc.is_valid(labels[0]), pc.is_valid(labels[1]))
    return bool(pc.any(both).as_py()) and not agree(*(own.filter(both) for own in labels))


def agree(first: pa.Array, second: pa.Array) -> bool:
    """Return whether labels are equal by value wherever both sides have one, and some rows have both.

    Examples
    --------
    >>> agree(pa.array([1, 2, None]), pa.array(["1.0", "2", "x"])), agree(pa.array(["a"]), pa.array([1]))
    (True, False)
    """
    try:
        alike = first.type == second.type and pa.types.is_integer(first.type)
        texts = [first, second] if alike else [_as_text(values) for values in (first, second)]
    # labels of types that do not compare, such as composite ones
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return first.type == second.type and len(first) > 0 and bool(first.equals(second))
    equal = pc.equal(*texts)
    return equal.null_count < len(equal) and bool(pc.all(equal).as_py())


def _as_text(values: pa.Array) -> pa.Array:
    plain = values.dictionary_decode() if pa.types.is_dictionary(values.type) else values
    return pc.replace_substring_regex(plain.cast(pa.string()), r"^(-?\d+)\.0+$", r"\1")


def maybe_swapped(ev: Any, n_items: int) -> Iterator[Notice]:
    """Note that names or sizes suggest that truth and prediction are swapped."""
    swap = "The truth comes first: if they are swapped, so are precision and recall."
    if ev.origin.swapped_names is not None:
        yield Notice(NOTE, f"{ev.origin.swapped_names} {swap}", {"by": "name"})
        return
    found = ev.coverage
    of_truth = found.n_common / (found.n_common + found.n_truth_only)
    if found.n_common >= FEW_ITEMS and not found.n_prediction_only and of_truth <= SAMPLE:
        yield Notice(
            NOTE,
            f"The prediction has {count(found.n_common)} of the truth's {count(found.n_common + found.n_truth_only)} "
            f"items and no others, as a labelled sample would. {swap}",
            {"by": "size"},
        )


def same_source(given: Any) -> str | None:
    """Return what both sides were read from if it is the same: "file", "column" or "object"; otherwise None."""
    truth, prediction = given.truth, given.prediction
    if given.table is not None:
        return "column" if truth == prediction else None
    of_files = is_path(truth) and is_path(prediction)
    if not (_same_file(path_of(truth), path_of(prediction)) if of_files else truth is prediction):
        return None
    columns = per_side(given.item, "item"), per_side(given.cluster, "cluster")
    return None if any(str(true) != str(pred) for true, pred in columns) else "file" if of_files else "object"


def _same_file(a: str, b: str) -> bool:
    if a == b:
        return True
    try:
        return os.path.samefile(a, b)
    except (OSError, ValueError):
        return False


def swapped_names(given: Any) -> str | None:
    """Return a sentence if one side's name sounds like the other side's, and the other name does not."""
    if not any(isinstance(side, str | os.PathLike | list) for side in (given.truth, given.prediction)):
        return None
    names = [_name(side) for side in (given.truth, given.prediction)]
    looks = [_looks_like(name) for name in names]
    if "prediction" == looks[0] != looks[1]:
        return f"The truth is called {names[0]!r}, which sounds like a prediction."
    if "truth" == looks[1] != looks[0]:
        return f"The prediction is called {names[1]!r}, which sounds like a truth."
    return None


def _name(given: Any) -> str:
    if isinstance(given, str | os.PathLike):
        return os.path.basename(path_of(given).rstrip("/"))
    return ", ".join(given) if isinstance(given, list) and all(isinstance(n, str) for n in given[:8]) else ""


def _looks_like(name: str) -> str | None:
    """Return the side that a name suggests, if any.

    Examples
    --------
    >>> _looks_like("pred_2021.parquet"), _looks_like("gold.csv"), _looks_like("truth_vs_pred.csv")
    ('prediction', 'truth', None)
    """
    words = set(re.split(r"[^a-z]+", name.lower()))
    sounds = [bool(words & TRUTH_WORDS), bool(words & PREDICTION_WORDS)]
    if sounds[0] == sounds[1]:
        return None
    return "truth" if sounds[0] else "prediction"


#: Number of scored items above which a sample is used first; below, counting all clusters takes 1 to 2 ms.
LARGE = 1 << 17
#: Clusters with a smaller share of the sample surely have less than a tenth of all rows, or 1,600 rows of the sample.
SURELY_SMALL = 0.08
#: Up to this number of clusters, sizes are always counted.
FEW_CLUSTERS = 100


class Shape(NamedTuple):
    """The number of clusters of a side, and of items in the largest."""

    clusters: int
    largest: int


def shape_of(ev: Any, side: str, n_items: int) -> Shape:
    """Return the number of clusters of a side, and the size of the largest.

    For large inputs, the number of clusters is an upper bound, and the size of the largest is counted only if a sample
    shows that it is large; otherwise it is given as 2.
    """
    counted = vars(ev).get("_sides", ev.figures.summary)
    if counted is not None:
        return Shape(counted[side]["clusters"], counted[side]["largest"])
    if is_sampled(ev, n_items):
        keys = ev.kept.items.label_keys()[SIDES.index(side)]
        return _large_shape(ev.contingency, side, keys, n_items)
    return _counted_shape(ev.contingency, side)


def is_sampled(ev: Any, n_items: int) -> bool:
    """Return whether the sides are so large that a sample of rows is examined before clusters are counted."""
    return (
        n_items >= LARGE
        and hasattr(ev.kept.items, "label_keys")
        and "_sides" not in vars(ev)  # and have not been counted
        and ev.figures.summary is None
    )


def _large_shape(table: Contingency, side: str, keys: NDArray[Any], n: int) -> Shape:
    n_clusters = table.n_codes[side]
    if table.is_complete and n_clusters == n:
        return Shape(n, 1)
    if FEW_CLUSTERS <= n_clusters < n:
        key = _large_key(keys)
        if key is None:
            return Shape(n_clusters, 2)
        if keys.size == n:
            return Shape(n_clusters, int(np.count_nonzero(keys == key)))
    return _counted_shape(table, side)


def _counted_shape(table: Contingency, side: str) -> Shape:
    counts = table.true_n if side == "true" else table.pred_n
    return Shape(int(np.count_nonzero(counts)), int(counts.max()))


def _large_key(keys: NDArray[Any]) -> int | None:
    """Return the most frequent key in a sample of rows; None if its cluster is surely small."""
    sample = keys[sampled_rows(keys.size)].astype(np.int64, copy=False)
    found, counts = frequent_keys(sample, SURELY_SMALL * sample.size)
    return int(found[np.argmax(counts)]) if found.size else None


#: A cluster with this share of all items dominates the score, since its items are scored by its purity.
GIANT = 0.1
#: A giant cluster that mixes fewer true clusters than this may consist mostly of one of them.
MANY_MIXED = 10
#: With fewer units than this, standard results on means of independent units do not apply.
FEW_UNITS = 30
#: A unit with a larger share of all items than this dominates the score.
HEAVY_UNIT = 0.1
#: Maximum number of cells from which units are found, in a few milliseconds; if clusters overlap, it takes ten times
#: longer.
FEW_CELLS, FEW_OVERLAPPING = 200_000, 20_000
#: With fewer items than this, a single item changes a mean by several hundredths.
SMALL_SLICE = 30


def all_singleton_truth(ev: Any, n_items: int) -> Iterator[Notice]:
    """Warn if every item is a singleton in the truth, which often results from a wrong column."""
    table = ev.contingency
    if table.has_cells and table.n_codes["true"] < n_items:  # some cluster has two items
        return
    if n_items >= FEW_ITEMS and shape_of(ev, "true", n_items).largest == 1:
        yield Notice(
            WARNING,
            f"Each of the {count(n_items)} items is a singleton in the truth, so recall is 1 whatever the "
            "prediction. Check that the truth's cluster column does not contain item ids.",
            {"n_items": n_items},
        )


#: Why precision is 1 if a step found no links.
ALONE = "every item is a singleton in the prediction"


def pure_by_construction(ev: Any, n_items: int) -> Iterator[Notice]:
    """Note that precision or recall is 1, as a side has one cluster; warn if the prediction has only singletons."""
    table = ev.contingency
    if table.overlapping or n_items < FEW_ITEMS:
        return
    if table.has_cells and table.n_codes["true"] > 2 and 2 < table.n_codes["pred"] < n_items:
        return  # one code may have no cluster
    true, pred = (shape_of(ev, side, n_items) for side in SIDES)
    found = (
        ("precision", pred.largest == 1, ALONE),
        ("recall", pred.clusters == 1, "the prediction is one cluster"),
        ("precision", true.clusters == 1, "the truth is one cluster"),
    )
    for name, so, why in found:
        if so and (name not in ev.overall or ev.overall[name] == 1):
            other = "recall" if name == "precision" else "precision"
            message = f"{name} is 1 by construction: {why}. Look at {other} alone."
            level = WARNING if why is ALONE else NOTE
            yield Notice(level, message[0].upper() + message[1:], {"score": name})


def giant_cluster(ev: Any, n_items: int) -> Iterator[Notice]:
    """Warn if one predicted cluster has a large share of all items and mixes many true clusters."""
    largest = shape_of(ev, "pred", n_items).largest
    share = largest / n_items
    if n_items < FEW_ITEMS or share < GIANT:
        return
    mixed = _mixed_by_giant(ev, n_items)
    if mixed >= MANY_MIXED:
        yield Notice(
            WARNING,
            f"One {Word('predicted cluster')} has {count(largest)} items, {percent(share)} of all, from at "
            f"least {count(mixed)} {Word('true cluster')}s. A few wrong links, or a placeholder for "
            f"missing values, can join that many: look at the worst {Word('predicted cluster')} first.",
            {"n_items": largest, "share": share, "n_true_clusters": mixed},
        )


def _mixed_by_giant(ev: Any, n_items: int) -> int:
    """Return the number of true clusters in the largest predicted one, or a lower bound."""
    table = ev.contingency
    if table.overlapping or not table.has_cells:
        true, pred = (shape_of(ev, side, n_items).largest for side in SIDES)
        return -(-pred // true)
    if table.n_cells > FEW_CELLS and is_sampled(ev, n_items):
        true_keys, pred_keys = ev.kept.items.label_keys()
        rows = sampled_rows(pred_keys.size)
        return int(np.unique(true_keys[rows[pred_keys[rows] == _large_key(pred_keys)]]).size)
    return int(np.count_nonzero(table.pred == np.argmax(table.pred_n)))


def few_units(ev: Any, n_items: int) -> Iterator[Notice]:
    """Note that there are few independent units, or that one has a large share of the weight."""
    most, share, exact = _units(ev, n_items)
    if most >= FEW_UNITS and share <= HEAVY_UNIT:
        return
    if most < FEW_UNITS:
        number = f"{most:.1f}".removesuffix(".0") if most < 10 else count(int(most))
        groups = "group" if number == "1" else "groups"
        message = (
            f"These scores rest on {'only about' if exact else 'at most'} {number} independent {groups} and"
        )
    else:
        least = "" if exact else "at least "
        message = (
            f"One group of items that share clusters has {least}{percent(share)} of the weight; the scores"
        )
    message += " may differ widely on new data."
    yield Notice(NOTE, message, {"n_units_at_most": most, "largest_share": share})


def _units(ev: Any, n_items: int) -> tuple[float, float, bool]:
    """Return the effective number of units and the largest share, or an upper and a lower bound; and whether exact.

    Items that clusters of either side connect are in one unit, so there are no more units than clusters of either side,
    and the largest unit is at least as large as the largest cluster. The figures are exact if there are few cells.
    """
    few = FEW_OVERLAPPING if ev.contingency.overlapping else FEW_CELLS
    if ev.contingency.has_cells and ev.contingency.n_cells <= few:
        with suppress(OptionError):  # the memory limit is too low
            units = ev.units
            return units.effective, units.largest_share, True
    sides = [shape_of(ev, side, n_items) for side in SIDES]
    return min(side.clusters for side in sides), max(side.largest for side in sides) / n_items, False


def slices_without_scores(ev: Any, n_items: int) -> Iterator[Notice]:
    """Warn if there are slices but no score is defined for slices."""
    if not ev.sliced or any(not metric.overall_only for metric in ev.metrics):
        return
    names = [metric.name for metric in ev.metrics]
    are = "is" if len(names) == 1 else "are"
    message = (
        f"The slices have no scores: {', '.join(names)} {are} defined only for all items at once. Add a mean "
        "over items, such as f1."
    )
    yield Notice(WARNING, message, {"scores": names})


def slices_of_nulls(ev: Any, n_items: int) -> Iterator[Notice]:
    """Warn of attributes to slice by for which no item has a value."""
    lacking: dict[str, None] = {}
    for table in ev.sliced.values():
        names, n_nulls = name_columns(table.column_names), Counter[str]()
        for some in table._batches(names):
            n_nulls.update({name: some[name].null_count for name in names})
        lacking |= dict.fromkeys(name for name in names if n_nulls[name] == table.num_rows > 0)
    for name in lacking:
        message = (
            f"No item has a value for {name}, so slices by it are empty. Check the column and, if it comes "
            "from a table of attributes, that this table uses the same item ids."
        )
        yield Notice(WARNING, message, {"by": name})


def small_slices(ev: Any, n_items: int) -> Iterator[Notice]:
    """Note, for each slicing, which slices have very few items."""
    if n_items < SMALL_SLICE:  # all slices are small
        return
    for by, table in ev.sliced.items():
        names, n_small, first = name_columns(table.column_names), 0, list[dict[str, Any]]()
        for some in table._batches([*names, "n_items"]):
            small = np.flatnonzero(to_numpy(some["n_items"]) < SMALL_SLICE)
            first += some.select(names).take(small[: SHOWN - len(first)]).to_pylist()
            n_small += small.size
        if not n_small:
            continue
        named = [", ".join(label(value) for value in row.values()) for row in first]
        more = ", …" if n_small > SHOWN else ""
        have = f"slice{'s' if table.num_rows > 1 else ''} {'has' if n_small == 1 else 'have'}"
        message = (
            f"By {Word(label(by))}, {count(n_small)} of {count(table.num_rows)} {have} fewer than {SMALL_SLICE} items "
            f"({'; '.join(named)}{more}): one item can change the score of such a slice by 0.01 or more."
        )
        yield Notice(NOTE, message, {"by": by, "n_slices": n_small, "slices": named})


def not_checked(ev: Any, n_items: int) -> Iterator[Notice]:
    """Note which warnings were not checked, as they need cells or items, which were not kept."""
    if ev.contingency.has_cells or n_items < FEW_ITEMS:
        return
    finds = {"same-input": same_input, "giant-cluster": giant_cluster, "few-units": few_units}
    codes = [code for code, find in finds.items() if not any(find(ev, n_items))]
    codes += ["labels-like-nulls", "labels-with-spaces"] * any(ev.kept.odd_labels.values())
    if codes:
        why = f"the disk engine keeps no cells with {arg('keep', 'scores')}. Pass {arg('keep', 'cells')} to check."
        if any(note["code"] == "cells-not-kept" for note in ev.origin.notes):
            why = "the disk had no room for them."
        message = f"Not checked in full: {', '.join(codes)}; these checks need cells, and {why}"
        yield Notice(NOTE, message, {"codes": codes})


@dataclass(frozen=True)
class Code:
    """A code of a warning or note: its condition as a sentence, and its check; None if checked elsewhere."""

    meaning: str
    #: checks an evaluation, given its number of items
    find: Callable[[Any, int], Iterable[Notice]] | None = None


#: In the order in which they are given.
CODES = {
    "same-input": Code("Truth and prediction are the same data.", same_input),
    "maybe-swapped": Code("Truth and prediction may be in the wrong order.", maybe_swapped),
    "few-ids-match": Code(
        "Most items of one side are missing from the other; ids may be written in different ways.",
        few_ids_match,
    ),
    "dropping-truth-flatters": Code(
        "Items that only the truth has were dropped; as singletons they would lower the scores.",
        dropping_truth_flatters,
    ),
    "runs-lack-items": Code(
        "Runs lack items of the truth, which were dropped; scores would be lower with these as singletons, or one run "
        "is scored on a smaller part of the truth than another."
    ),
    "unlinked-alone": Code(
        "Items that only the truth has are singletons in the {PREDICTION}, which was built from links.",
        unlinked_alone,
    ),
    "dropping-flatters": Code(
        "Items that the truth does not label were dropped; the precision could be very different.",
        dropping_flatters,
    ),
    "few-items-labelled": Code("The truth labels a small share of the prediction.", few_items_labelled),
    "all-singleton-truth": Code("Every item is a singleton in the truth.", all_singleton_truth),
    "pure-by-construction": Code("Precision or recall is 1 whatever the clusters are.", pure_by_construction),
    "giant-cluster": Code(
        "One predicted cluster has a large share of all items, from many true clusters.",
        giant_cluster,
    ),
    "labels-like-nulls": Code("Labels that read as missing values form clusters.", labels_like_nulls),
    "labels-with-spaces": Code("Labels differ only by surrounding white space.", labels_with_spaces),
    "several-in-one-label": Code("Labels look like several clusters in one string.", several_in_one_label),
    "counts-as-weights": Code("Weights look like the counts of a contingency table.", counts_as_weights),
    "few-units": Code("The scores rest on few clusters, or on one of large weight.", few_units),
    "slices-without-scores": Code(
        "Slices were requested, but no score is defined for slices.", slices_without_scores
    ),
    "slices-of-nulls": Code("No item has a value in any of the columns to slice by.", slices_of_nulls),
    "small-slice": Code("Some slices have very few items.", small_slices),
    "not-checked": Code("Some checks need cells, which were not kept.", not_checked),
    "cells-not-kept": Code("The disk had no room for the cells, so that only scores were kept."),
    "few-carry-error": Code(
        "Few components account for a score or its error, so its interval may be too narrow."
    ),
    "best-at-end": Code("The best threshold of a sweep is the score of the weakest or the strongest link."),
    "links-cut": Code(
        "Weak links seem to be missing, so that losses from blocking and scoring cannot be distinguished."
    ),
    "links-not-judged": Code("Some links in the stages of a sweep have items without a true cluster."),
    "columns-recognised": Code("Columns of ids and clusters were found by their names."),
    "whole-floats": Code("Floats or decimals were read as integers."),
    "made-of-links": Code("The clusters of a side are the connected components of links."),
    "ids-partly-greedy": Code(
        "Ids of some clusters were carried over greedily, because the search took too long."
    ),
    "attributes-match-none": Code("A table of attributes contains none of the items."),
    **{code: Code(meaning) for code, meaning in OF_LINKS.items()},
}
#: Codes that may be warnings; other codes are notes, which are checked when they are first read.
MAY_WARN = CODES.keys() - {"counts-as-weights", "few-units", "small-slice", "not-checked"}


def found_in(ev: Any, codes: Collection[str] = CODES) -> list[dict[str, Any]]:
    """Return an evaluation's warnings and notes with these codes: code, level, message, figures."""
    finders = {code: CODES[code].find for code in CODES if code in codes}
    n_items = ev.contingency.n_items
    return with_codes({code: find(ev, n_items) for code, find in finders.items() if find is not None})


def require_code(code: str) -> str:
    """Return a code, or raise OptionError that lists the known ones if it is unknown."""
    if code in CODES:
        return code
    raise OptionError(f"no warning has the code {quoted(code)}. Codes: {', '.join(CODES)}")
