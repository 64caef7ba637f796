"""diff(): changes from the clusters of a baseline to those of an experiment and, with a truth, which are right."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, Literal

from fastbcubed.align.policies import Duplicates, Nulls, Policies, Weighting
from fastbcubed.align.rows import align
from fastbcubed.cells.build import build_cells
from fastbcubed.cells.contingency import MAX_PAIRS
from fastbcubed.diff_runs.diff_result import Diff
from fastbcubed.diff_runs.diff_summary import DEFAULT, JUDGING
from fastbcubed.diff_runs.judgement import Judgement, label, weighed_by
from fastbcubed.diff_runs.vocabulary import (
    NAMES,
    SIDES,
    as_policies,
    asked_slices,
    by_place,
    in_words_of_a_diff,
    meant,
    renamed_slices,
)
from fastbcubed.engines import memory
from fastbcubed.engines.request import Request, as_metrics, as_slices
from fastbcubed.errors import FastBCubedError, MetricError, OptionError, arg, quoted
from fastbcubed.evaluate import Keep, Progress, carry_out, evaluation
from fastbcubed.inputs.clustering import Clustering
from fastbcubed.inputs.files import as_rows
from fastbcubed.inputs.pair import Given, one_side, open_pair, pair_of_table
from fastbcubed.inputs.reading_notes import notes_of_side, reading_of
from fastbcubed.inputs.side_columns import SideRequest, named_alone, order_of, per_side
from fastbcubed.inputs.tables import CLUSTER, DEFAULTS, ITEM, ColumnName
from fastbcubed.inputs.typed_columns import Typed
from fastbcubed.metrics.metric import Metric
from fastbcubed.metrics.registry import METRICS, known_as, members
from fastbcubed.results import save
from fastbcubed.results.evaluation import Evaluation
from fastbcubed.results.items import AlignedItems
from fastbcubed.results.origin import by_names, not_default
from fastbcubed.results.slices import SliceKey, slice_name
from fastbcubed.results.warnings import OfRun, give, if_alone
from fastbcubed.runtime.arguments import is_one_of, refuse_bare, true_or_false
from fastbcubed.runtime.output_files import require_writable
from fastbcubed.runtime.threads import Pool

__all__ = ["diff"]

#: A column name for all sides, or a tuple of names: the baseline's, the experiment's and, with a truth, the truth's.
PerSide = ColumnName | tuple[ColumnName, ...]
#: Policies for items that one side lacks.
Unmatched = Literal["drop", "raise", "singleton", "outside"]


def diff(
    baseline: Any,
    experiment: Any,
    *,
    truth: Any = None,
    item: PerSide = ITEM,
    cluster: PerSide = CLUSTER,
    weight: Any = None,
    slices: SliceKey | Iterable[SliceKey] = (),
    attributes: Any = None,
    metrics: str | Iterable[str | Callable[..., Any]] | Callable[..., Any] | None = None,
    weighting: Weighting = "pointwise",
    unmatched: Unmatched | Mapping[str, Unmatched] | None = None,
    unlabelled: Literal["drop", "outside"] = "drop",
    nulls: Nulls = "raise",
    duplicates: Duplicates = "raise",
    noise: Any = None,
    overlapping: bool = False,
    max_pairs: float = MAX_PAIRS,
    table: Any = None,
    out: Any = None,
    keep: Keep = "cells",
    paths: bool = False,
    engine: Literal["memory", "disk"] | None = None,
    memory_limit: int | str | None = None,
    spill_dir: Any = None,
    threads: int | None = None,
    progress: Progress = None,
) -> Diff:
    """Compare one clustering with another: changes overall, by cluster, by slice and by item.

    No truth is needed. With a truth, the diff also says which changes are right.

    Parameters
    ----------
    baseline, experiment : Clustering, table, path, dict, or array-like of shape (n_items,)
        The clusterings before and after the change, in any form that `evaluate` accepts; with `table`, the names of two
        columns of the table.
    truth : Clustering, table, path, dict, or array-like of shape (n_items,), optional
        The truth by which the change is judged, in any form that `evaluate` accepts; with `table`, the name of a column
        of the table. The truth may label only some of the items. The attributes of the truth can be used for slices,
        and so can the true clusters, as the attribute "true_cluster".
    item, cluster : str, list of str, or tuple of two or three such values
        Columns of items and clusters: one name for all sides, or a tuple of the names for the baseline, the experiment
        and, if given, the truth; see `evaluate`.
    weight : str, array-like of shape (n_items,), or table, optional
        A column of the baseline (or, if the baseline has no such column, of the experiment or the truth), weights by
        position, or a table or dict from item to weight.
    slices : str, Bins, tuple of these, mapping, or a list of several of these
        Slices to compute with the diff; see `Diff.slices`.
    attributes : table, optional
        Attributes to slice by, matched by item or by position, in addition to the attributes in the other tables
        passed.
    metrics : str, callable, or iterable of these, optional
        Scores, families ("diff", "pairs", ...), "all", or formulas; by default split_rate, merge_rate,
        split_jaccard_distance, merge_jaccard_distance, jaccard_distance and affected_rate. With a truth, the default
        also includes the good and bad rates and distances, delta_precision, delta_recall and iq. Scores of `evaluate`,
        such as f1, treat the baseline as the truth.
    weighting : {"pointwise", "outer"}
        Whether weights count both inside the clusters and in the mean ("pointwise"), or only in the mean ("outer").
    unmatched : {"drop", "raise", "singleton", "outside"} or dict
        Policy for items missing from one side; a dict has a policy for "baseline" (items that have disappeared) and a
        policy for "experiment" (new items). By default, items missing from one side are dropped, so all rates describe
        the items on both sides. Under any policy, the result reports how many items and clusters have disappeared, and
        how many are new. An item missing from a clustering that was built from links is a singleton of that clustering
        by default. "outside" is for new items, which then count as merged with the items they are clustered with, but
        have no rates of their own. If the truth labels new items, merges with them can be judged, too.
    unlabelled : {"drop", "outside"}
        Policy for items without a true label when the change is judged. "drop" removes unlabelled items from all
        clusters. "outside", for complete true clusters, treats unlabelled items as belonging with no other item.
    nulls : {"raise", "singleton", "drop"}
        Policy for items with a null cluster.
    duplicates : {"raise", "drop"}
        Policy for rows that repeat an earlier row.
    noise : object, optional
        A label, such as -1, whose items are treated as singletons; or a dict with a noise label for "baseline",
        "experiment" or both. A noise label in a dict does not apply to the truth.
    overlapping : bool
        Whether items may be in several clusters. Overlapping clusterings have the scores split_rate and merge_rate, and
        accept no truth.
    max_pairs : float
        With `overlapping`, the maximum number of pairs of cells to compare.
    table : table or path, optional
        A single table that contains the clusters of all sides.
    out : path, optional
        A directory to write the result to; see `Diff.save`.
    keep : {"scores", "cells", "items"}
        How much of the result to write to `out` and, with the disk engine, how much of it remains available.
    paths : bool
        Whether the result contains the paths of input files, rather than only their names; see `evaluate`.
    engine : {"memory", "disk"}, optional
        The engine that does the work; see `evaluate`. A truth requires the memory engine.
    memory_limit : int or str, optional
        Bytes that the disk engine may use. With a truth, rows that need more memory than the limit raise an error.
    spill_dir : path, optional
        Directory for the disk engine's spill files.
    threads : int, optional
        Number of threads; by default, the number of available cores. Scores do not depend on the number of
        threads.
    progress : bool or callable, optional
        Whether to show progress on stderr; see `evaluate`.

    Returns
    -------
    Diff

    Raises
    ------
    FastBCubedError
        A subclass of FastBCubedError, if the input or an argument is invalid; the message says what is wrong, where,
        and what to do.

    Notes
    -----
    For an item, let B be its cluster in the baseline and E its cluster in the experiment, both including the item, and
    let w(S) be the total weight of the items in a set S. The split rate is the mean over items of w(B - E) / w(B), and
    the merge rate is the mean of w(E - B) / w(E). The Jaccard distance, the mean of (w(B - E) + w(E - B)) / w(B ∪ E),
    is a metric on clusterings. Given the item's true cluster I, each score has a good and a bad part: it is good to
    split off items that are not in I, and to merge with items that are in I. As in `evaluate`, all scores are computed
    from tables of cells, and the run time is proportional to the number of items.

    References
    ----------
    S. van Staden and A. Grubb, ABCDE: Application-Based Cluster Diff Evals, arXiv:2407.21430, 2024.

    Examples
    --------
    >>> import fastbcubed as fb
    >>> d = fb.diff({"a": 1, "b": 1, "c": 1, "d": 2}, {"a": "x", "b": "x", "c": "y", "d": "y"})
    >>> d.split_rate, d.merge_rate  # (1/3 + 1/3 + 2/3 + 0) / 4, (0 + 0 + 1/2 + 1/2) / 4
    (0.3333333333333333, 0.25)
    """
    paths = true_or_false(paths, "paths")
    arguments = not_default(diff, locals())
    if out is not None:
        out = save.as_path(out)
        require_writable(out)
    overlapping = true_or_false(overlapping, "overlapping")
    refuse_bare(metrics=metrics)
    _require_judgeable(truth, unlabelled, engine, overlapping)
    engine = engine if truth is None else "memory"
    names, judging = _split(metrics, judged=truth is not None, overlapping=overlapping)
    columns = {"item": _three(item, "item"), "cluster": _three(cluster, "cluster")}
    if truth is not None and table is not None:
        table = as_rows(table, "the table")  # it is read twice
    keys = as_slices(slices)
    known = None
    if truth is not None and table is None:
        *others, of_truth = (
            {name: (*per_side(of_both, name), own)[k] for name, (of_both, own) in columns.items()}
            for k in range(3)
        )
        own = named_alone({"item": item, "cluster": cluster}, of_truth)
        asked = SideRequest("the truth", of_truth, Typed(2, *others), order_of(item), own)
        known = one_side(truth, asked, weight, False)
    unmatched = as_policies(unmatched, baseline, experiment)
    with weighed_by(known), in_words_of_a_diff():
        policies = Policies.of(unmatched, nulls, duplicates, by_place(noise, "noise", "label"))
        request = Request(
            Given(
                baseline, experiment, columns["item"][0], columns["cluster"][0], weight, table, attributes, overlapping,
                known, NAMES,
            ),
            policies,
            weighting=weighting,
            metrics=as_metrics(names, outside=policies.prediction == "outside"),
            max_pairs=max_pairs,
            slices=[] if truth is not None else [asked_slices(key, judged=False) for key in keys],
            keep=keep,
            out=out,
            memory_limit=memory_limit,
            spill_dir=spill_dir,
            names_clusters=True,
        )  # fmt: skip
        how: dict[str, Any] = {"threads": threads, "progress": progress}
        ev = carry_out(request, arguments, engine=engine, **how)
    ev.sliced = {
        slice_name(key): renamed_slices(ev.sliced[slice_name(asked)])
        for key, asked in zip(keys, request.slices, strict=False)
    }
    found = Diff(ev, not_computed=dict(ev.not_computed))
    if truth is not None:
        if known is None:
            known, _ = pair_of_table(truth, baseline, request.given.table, columns["item"][1], None)
            known = replace(known, attributes=None)  # they are those of the baseline
        ev.origin = replace(ev.origin, notes=[*ev.origin.notes, *notes_of_side(known)])
        found = _judged(ev, known, judging, unlabelled)
        found._truth = by_names(arguments, [known.name])(known.name)
        found._reading_of_truth = reading_of(known)
        found.evaluation.sliced = {slice_name(key): found.slices(key) for key in keys}
    found.evaluation.figures.slicings = {slice_name(key): key for key in keys}
    give(found.warnings)
    if out is not None:
        found.save(out, keep=keep)
    return found


def _judged(ev: Evaluation, truth: Any, judging: list[Metric], unlabelled: str) -> Diff:
    with Pool() as pool:
        labelled, attributes = label(ev, truth, ev.policies, pool)
        ev = Evaluation(ev.figures, replace(ev.kept, attributes=attributes), ev.origin)
        alone = {}
        if labelled.rows.size < len(truth):
            with suppress(FastBCubedError):  # items outside the judgement may have no weight
                for k, side in enumerate(SIDES):
                    alone[side] = _alone(ev, k, truth, unlabelled, pool)
    names = {metric.name for metric in judging}
    left = {name: reason for name, reason in ev.not_computed.items() if name not in names}
    judgement = Judgement(ev, labelled, unlabelled, alone)
    found = Diff(ev, judgement=judgement, judging=judging, truth=truth.name, not_computed=left)
    if "iq" in names and found.overall["iq"] != found.overall["iq"]:
        left["iq"] = "nothing changed for the items that the truth labels"
    return found


def _alone(ev: Evaluation, k: int, truth: Clustering, unlabelled: str, pool: Pool) -> OfRun:
    """Return the coverage and scores of the baseline (k = 0) or the experiment (1) alone against the truth."""
    assert ev.origin.pair is not None
    pair = ev.origin.pair
    side, of_others = pair.first[k], (ev.policies.prediction, ev.policies.truth)[k]
    if pair.weight_table is not None:  # the table may include the truth's weights
        truth, side = replace(truth, weight=None), replace(side, weight=None)
    noise: Any = ev.policies.noise
    if isinstance(noise, Mapping):
        noise = None if (own := ev.policies.noise_of(k)) is None else {"prediction": own}
    policies = replace(ev.policies, truth="drop", prediction=unlabelled, noise=noise)
    table, outside = ev.contingency, unlabelled == "outside"
    how: dict[str, Any] = {"outer": table.weighting == "outer"}
    rows = align(truth, side, policies, pool, weight_table=pair.weight_table, **how)
    cells = build_cells(rows, pool, weighting=table.weighting, outside=outside)
    request = Request(
        Given(truth, side), policies, weighting=table.weighting, metrics=["precision", "recall"]
    )
    built = memory.Built(rows.coverage, cells, AlignedItems(rows))
    own = evaluation(request, memory.answer(open_pair(request.given), built, request, pool), {})
    return OfRun(own.coverage, if_alone(own), math.nan, drops=of_others != "singleton")


def _require_judgeable(truth: Any, unlabelled: Any, engine: Any, overlapping: bool) -> None:
    """Raise OptionError for options that require a truth, or that are incompatible with one."""
    if not is_one_of(unlabelled, ("drop", "outside")):
        raise OptionError(f'{arg("unlabelled")} must be "drop" or "outside", not {quoted(unlabelled)}')
    if truth is None:
        if unlabelled != "drop":
            raise OptionError(
                f"{arg('unlabelled', ...)} applies to items missing from the truth; pass {arg('truth', ...)} "
                "as well"
            )
        return
    if is_one_of(engine, ("disk",)):
        raise OptionError(
            "the disk engine cannot judge a diff against a truth, which needs all rows; pass "
            f"{arg('engine', 'memory')}, or leave {arg('truth', ...)} out. Two evaluations against the "
            "truth, each on disk, give precision and recall of both"
        )
    if overlapping:
        raise OptionError(
            f"a truth can only judge clusterings that do not overlap; leave {arg('truth', ...)} out, or "
            f"pass partitions, without {arg('overlapping', True)}"
        )


def _split(metrics: Any, *, judged: bool, overlapping: bool) -> tuple[list[Any], list[Metric]]:
    """Return the scores that compare baseline and experiment, and those that judge the change."""
    if metrics is None:
        defined = [name for name in DEFAULT if METRICS[name].on_covers or not overlapping]
        return defined, [METRICS[name] for name in JUDGING] if judged else []
    one = isinstance(metrics, str) or callable(metrics) or not isinstance(metrics, Iterable)
    asked = [known_as(meant(each)) for each in ([metrics] if one else metrics)]
    if not asked:
        raise MetricError(f"{arg('metrics')} is empty; omit it for the default scores")
    judging = {
        metric.name: metric
        for name in asked
        if not callable(name)
        for metric in members(name)
        if metric.takes_three
    }
    named = [name for name in asked if isinstance(name, str) and name in judging]
    if named and not judged:
        raise MetricError(f"{named[0]} judges a change against a truth; pass fb.diff(..., truth=truth)")
    rest = [name for name in asked if name not in named]
    return rest or ["split_rate", "merge_rate"], list(judging.values()) if judged else []


def _three(names: Any, argument: str) -> tuple[Any, Any]:
    """Return the column names of baseline and experiment, and that of the truth."""
    if not isinstance(names, tuple):
        return names, names
    if len(names) not in (2, 3):
        raise OptionError(
            f"{argument} must be a name, a list of names (a composite id), or a tuple of the baseline's, the "
            f"experiment's and the truth's, not a tuple of {len(names)}"
        )
    of_truth = names[2] if len(names) == 3 else None
    return names[:2], DEFAULTS[argument] if of_truth is None else of_truth
