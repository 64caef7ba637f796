"""Saved sweeps: how a sweep is written to files, and restored from them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from fastbcubed.align.policies import Coverage
from fastbcubed.inputs.link_columns import LinkColumns
from fastbcubed.inputs.links import JoinedLinks
from fastbcubed.results.large_tables import apart
from fastbcubed.results.load import evaluation_of
from fastbcubed.results.save import save_tables, scores_to_save
from fastbcubed.results.saved_files import NotKept, metrics_by_name
from fastbcubed.results.table import Table
from fastbcubed.runtime.saved_figures import NUMBER, require_shape, texts_in, with_nan
from fastbcubed.sweep_links.curve import Kept, StoredCurve
from fastbcubed.sweep_links.merge_tree import MergeTree
from fastbcubed.sweep_links.question_memory import curve_in_parts
from fastbcubed.sweep_links.recall_stages import Stages
from fastbcubed.sweep_links.threshold_choice import Chosen, Leading

#: The most merges, and true clusters, that are saved.
LISTED = 1000
#: The columns of links in a manifest.
_COLUMNS = {
    **{part: [str] for part in ("left", "right", "items", "scores", "doubtful")},
    **dict.fromkeys(("score", "tool", "verdict"), (str, None)),
    "sources": ([str], None),
    "reasons": {str: str},
}
#: The best threshold in a manifest.
_BEST = {"score": str, "value": NUMBER, "where": (str, None)}
#: The advice on parts of a sweep that were not saved.
NOT_SAVED = (
    "a sweep is saved with its scores, the clusters at one threshold (clusters.parquet), and the first "
    f"{LISTED:,} of its weakest links and of its merges, at that threshold and overall; sweep again to get more"
)


def save(sweep: Any, directory: Any, leading: Leading) -> None:
    """Write a sweep and the results that it shows; see `Sweep.save`."""
    best, chosen, merges, _ = leading
    assert best is not None
    tables = {
        "curve": lambda: curve_in_parts(sweep),
        "clusters": sweep.at(best.threshold).to_table(),
        "merges": sweep.merges(limit=LISTED),
        "merges_at_best": sweep.merges(limit=LISTED, threshold=best.threshold),
        "weakest_links": sweep.weakest_links(limit=LISTED),
        "points": sweep.points(),
    }
    links, named = sweep.links, [best.threshold]
    named += [] if chosen is None else [chosen.threshold_low, chosen.threshold_high]
    own = {
        "at_best": scores_to_save(sweep.at_best),
        "columns": links.columns._asdict(),
        "complete": links.complete,
        "precision": links.precision.str,
        "metrics": [[metric.name for metric in each] for each in (sweep.metrics, sweep.others)],
        "weighted": sweep._curve.weighted,
        "points": [sweep._point(threshold) for threshold in named],
        "as_good": [sweep._point(threshold) for threshold in best.as_good],
        "merges": None if merges is None else min(merges, LISTED),
    }
    content = {**sweep._content(leading), "saved": own}
    save_tables(directory, "sweep", content, tables, sweep.sliced)


def restored(cls: type[Any], head: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> Any:
    """Return the sweep that `save` wrote, as an object of this class."""
    own, ascending, curve = head["saved"], head["ascending"], tables["curve"]
    for name in ("links", "items", "thresholds"):
        require_shape(head[name], int, name)
    lacking: Any = NotKept(NOT_SAVED)
    ev, precision = evaluation_of(own["at_best"]), np.dtype(own["precision"])
    fields = {name: each for name, each in own["columns"].items() if name in LinkColumns._fields}
    columns, known = LinkColumns(**fields), (own["complete"], precision)
    # Earlier versions did not save all columns, so the defaults count.
    require_shape(columns._asdict(), _COLUMNS, "columns")
    columns.to_dict()  # raises if a column has no reason
    links = JoinedLinks(lacking, head["links"], columns, "the links", *known)
    sums = {name: curve[name].to_numpy() for name in curve.column_names}
    thresholds = sums["threshold"]
    scores = thresholds[thresholds.size - head["thresholds"] :].astype(precision).astype(np.float64)
    points = np.append(-math.inf if ascending else math.inf, scores)
    order = np.broadcast_to(np.int64(0), head["items"])
    tree = MergeTree(order, lacking, lacking, lacking, points, lacking, ascending)
    metrics, others = (metrics_by_name(names, ev.beta, ev.definition) for names in own["metrics"])
    sliced = apart(tables.get("slices"), own["sliced"])
    found = cls(
        links,
        tree,
        metrics,
        others,
        texts_in(head["not_computed"]),
        Coverage.of(head["coverage"]),
        ev.policies,
        tables["points"]["threshold"].to_pylist(),
        StoredCurve(thresholds, Kept(sums, math.nan, ev.beta), metrics, own["weighted"]),
        lacking,
        lacking,
        lacking,
        sliced,
        tables,
    )
    found.__dict__ |= {"at_best": ev, "_points": Table(tables["points"])}
    if "points" in own:
        found.__dict__["_leading"] = _leading(found, head)
    return found


def _leading(sweep: Any, head: Mapping[str, Any]) -> Leading:
    """Return the results that the saved sweep shows; thresholds, which may be infinite, were saved as points."""
    require_shape(head["best"], _BEST, "best")
    own, best, chosen = head["saved"], with_nan(head["best"]), None
    point, *ends = own["points"]
    as_good = own.get("as_good", [point, point])  # missing from results of earlier versions
    found = sweep._best_at(point, best["score"], best["value"], head["best"]["where"] or "", as_good)
    if ends:
        low, high = sweep._curve.thresholds[ends].tolist()
        shown = {"threshold_low": low, "threshold_high": high}
        shown |= {"shown_low": sweep.shown(low), "shown_high": sweep.shown(high)}
        chosen = Chosen(found, **{**with_nan(head["chosen"]), **shown})
    stages = (
        None if head.get("stages") is None else Stages._restored(with_nan(head["stages"]), found.threshold)
    )
    return Leading(found, chosen, own["merges"], stages)
