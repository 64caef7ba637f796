"""evaluate(), contingency(), extended_bcubed() and cice_bcubed(): check the arguments, choose the engine, run it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Literal

from fastbcubed.align.policies import Duplicates, Nulls, Policies, Unmatched, Weighting
from fastbcubed.cells.contingency import MAX_PAIRS, Contingency
from fastbcubed.choose_engine import choose
from fastbcubed.engines import memory
from fastbcubed.engines.request import Answer, Request, as_metrics, as_slices
from fastbcubed.errors import OptionError, arg, quoted
from fastbcubed.inputs.arrays import is_spark
from fastbcubed.inputs.pair import Given, default_for_truth_only, open_pair
from fastbcubed.inputs.side_columns import PerSide
from fastbcubed.inputs.tables import CLUSTER, ITEM
from fastbcubed.metrics.overlap_scores import MATCHES, SIMILARITIES, Match, Similarity, cice
from fastbcubed.results import save
from fastbcubed.results.evaluation import Evaluation
from fastbcubed.results.figures import NOT_ALL_MENTIONS, Figures, Scores
from fastbcubed.results.items import Kept
from fastbcubed.results.origin import Origin, not_default
from fastbcubed.results.repairs import require_repairable
from fastbcubed.results.slices import SliceKey, slice_name
from fastbcubed.results.warnings import MAY_WARN, found_in, give
from fastbcubed.runtime.arguments import is_one_of, refuse_idle, true_or_false
from fastbcubed.runtime.output_files import require_writable
from fastbcubed.runtime.progress_bar import reporting
from fastbcubed.runtime.threads import Pool

__all__ = ["cice_bcubed", "contingency", "evaluate", "extended_bcubed"]

Keep = Literal["scores", "cells", "items"]
Progress = bool | Callable[[Any], None] | None


def evaluate(
    truth: Any,
    prediction: Any,
    *,
    item: PerSide = ITEM,
    cluster: PerSide = CLUSTER,
    weight: Any = None,
    slices: SliceKey | Iterable[SliceKey] = (),
    attributes: Any = None,
    metrics: str | Iterable[str | Callable[..., Any]] | Callable[..., Any] | None = None,
    beta: float = 1.0,
    weighting: Weighting = "pointwise",
    unmatched: Unmatched | Mapping[str, Unmatched] | None = None,
    nulls: Nulls = "raise",
    duplicates: Duplicates = "raise",
    noise: Any = None,
    overlapping: bool = False,
    max_pairs: float = MAX_PAIRS,
    table: Any = None,
    out: Any = None,
    keep: Keep | None = None,
    repairs: int = 0,
    paths: bool = False,
    engine: Literal["memory", "disk", "spark"] | None = None,
    memory_limit: int | str | None = None,
    spill_dir: Any = None,
    threads: int | None = None,
    progress: Progress = None,
) -> Evaluation:
    """Score a clustering against the truth: overall, by cluster, by slice and by item.

    Parameters
    ----------
    truth, prediction : Clustering, table, path, dict, or array-like of shape (n_items,)
        A table has one row per item, and tables are joined by item. A table may be a data frame, a lazy frame, an Arrow
        table or data set, anything that exports an Arrow stream, a DuckDB relation or result, or a Splink frame. To
        read a table from Parquet, Arrow IPC, CSV or JSON lines, pass the path or URI of a file or directory, a list of
        paths or URIs, a glob, a pipe, or "-" for standard input. A dict maps items to clusters. Two arrays of labels
        correspond by position; with `overlapping`, two lists with a set of labels for each item also correspond by
        position. With `table`, pass the names of two columns of the table.
    item, cluster : str, list of str, or tuple of two such values
        Columns of items and clusters: one name for both sides, or a pair of names for truth and prediction. A list of
        names makes a composite id. The parts of a composite id are matched by name if both sides have the same names;
        otherwise, and in a pair of lists, the parts are matched by position. If a table has no column of the default
        name, its only remaining column is used, or the column that Splink, Zingg, dedupe or Senzing writes, and a note
        in `Evaluation.warnings` says so.
    weight : str, array-like of shape (n_items,), or table, optional
        A column of the truth (or, if the truth has no such column, of the prediction), weights by position, or a table
        or dict from item to weight. Weights must be between 1e-120 and 1e120. Multiplying all weights by a common
        factor changes no score.
    slices : str, Bins, tuple of these, mapping, or a list of several of these
        Slices to score with the evaluation; see `Evaluation.slices`. A tuple of names is one crossed slicing; a list of
        names is several slicings. Masks refer to the truth's rows or, with overlapping clusters, to the items listed by
        `Evaluation.items`.
    attributes : table, optional
        Attributes to slice by, matched by item or by position, in addition to the attributes in the other tables
        passed.
    metrics : str, callable, or iterable of these, optional
        Scores, families ("pointwise", "matching", ...), "all", or formulas ``f(tp, fp, fn, tn)``. The
        default is precision, recall, f1, mean_f1, jaccard_distance, over_merge_rate and under_merge_rate.
    beta : float
        Weight of recall in F; any value other than 1 adds fbeta and mean_fbeta.
    weighting : {"pointwise", "outer"}
        Whether weights count both inside each item's confusion matrix and in the mean ("pointwise"), or only in the
        mean ("outer"). Outer weights may be zero.
    unmatched : {"drop", "raise", "singleton", "outside"} or dict
        Policy for items missing from one side; a dict has a policy for "truth" and a policy for "prediction". "outside"
        is for prediction-only items, which are then not scored, but count as false positives for the items they are
        clustered with. The default is "drop", except that truth-only items become singletons if the prediction was
        built from links without a list of all items.
    nulls : {"raise", "singleton", "drop"}
        Policy for items with a null cluster. "drop" treats an item with a null cluster as missing from the side with
        the null, so `unmatched` applies. "drop" is the usual choice with `table`, where the label of an item is null on
        a side without the item. Unless `overlapping` is true, it is an error if one side gives an item two
        clusters, or both a null and a cluster.
    duplicates : {"raise", "drop"}
        Policy for rows that repeat an earlier row.
    noise : object, optional
        A label, such as -1, whose items are treated as singletons; or a dict with a noise label for "truth",
        "prediction" or both.
    overlapping : bool
        Whether items may be in several clusters. Overlapping clusterings have a row per membership (or a list of
        clusters per item) and are scored by Extended BCubed; see `extended_bcubed`.
    max_pairs : float
        The maximum number of pairs of cells to compare; applies only with `overlapping`.
    table : table or path, optional
        One table with both labels of each item.
    out : path, optional
        A directory to write the result to; see `Evaluation.save`. Write access is checked before scoring starts.
    keep : {"scores", "cells", "items"}, optional
        How much of the result to write to `out` and, with the disk engine, how much of it remains available. The
        default is "cells". If neither `out` nor `repairs` is given and the cells do not fit on disk, the default is
        "scores", and a note says so.
    repairs : int
        Number of repairs to write as ``repairs.parquet``, which requires `out`; see `Evaluation.repairs`.
    paths : bool
        Whether the result, its reports and its saved files contain the paths of input files as given. With
        ``paths=False``, only the names of input files are included, not their location on the machine. Saved results
        never need the paths of input files, because the items and attributes are saved.
    engine : {"memory", "disk", "spark"}, optional
        The engine that does the work. The disk engine reads files block by block and spills data that do not fit in
        memory. To find cluster labels that are not integers, the disk engine reads the input again. By default, the
        disk engine is used for Parquet and Arrow IPC files that would not fit in memory, and for labels, dicts and
        frames whose rows would not fit within `memory_limit`, if a limit is set. Overlapping clusterings are scored
        only in memory, which takes about 160 bytes per row, or 320 bytes per row if the result is saved. The disk
        engine copies record-batch readers, data sets and DuckDB relations to disk while reading them; the memory engine
        reads them into memory. Spark DataFrames are scored on Spark, through the DataFrame API only, so Spark Connect
        works. Spark DataFrames are read two or three times, so persist DataFrames that are expensive to compute. On
        Spark, `attributes` and a `weight` by item must be DataFrames too, and `out` may be a URI. Scores that need all
        cells at once, and named subsets, are not available on Spark.
    memory_limit : int or str, optional
        Bytes that the disk engine may use, or a string such as "2GiB"; by default, half of the memory still available
        to the process. CSV or JSON lines that need more memory than the limit raise an error, even if no engine is
        named. With ``engine="memory"``, any input that needs more memory than the limit raises an error.
    spill_dir : path, optional
        Directory for the disk engine's spill files, which are deleted when the call ends; /var/tmp by default.
    threads : int, optional
        Number of threads; by default, the number of available cores. Scores do not depend on the number of
        threads.
    progress : bool or callable, optional
        Whether to show progress on stderr; by default, progress is shown only on a terminal. A callable receives a
        `fastbcubed.progress.Progress` after every block, with the attributes `stage`, `done` and `total` (blocks),
        `seconds`, `rows`, `total_rows`, `spilled` (bytes), `rows_per_second` and `seconds_left`. With the disk engine,
        and for large inputs in memory, the first `Progress` has the stage "plan", and its `message` says how the work
        will be done and what resources the work needs.

    Returns
    -------
    Evaluation

    Raises
    ------
    FastBCubedError
        A subclass of FastBCubedError, if the input or an argument is invalid; the message says what is wrong, where,
        and what to do.

    Notes
    -----
    All items that share a true and a predicted cluster share one confusion matrix, so each item is visited only once,
    to count the cells. The run time is proportional to the number of items. Peak memory, in addition to the input, is
    about 24 bytes per item (16 bytes without weights) and 36 bytes per cell.

    References
    ----------
    S. van Staden, Pointwise Metrics for Clustering Evaluation, 2024. E. Amigó et al., A comparison of
    extrinsic clustering evaluation metrics based on formal constraints, 2009.

    Examples
    --------
    >>> import fastbcubed as fb
    >>> ev = fb.evaluate({"a": 1, "b": 1, "c": 2}, {"a": "x", "b": "y", "c": "y"})
    >>> round(ev.precision, 6), round(ev.recall, 6)
    (0.666667, 0.666667)
    """
    paths = true_or_false(paths, "paths")
    arguments = not_default(evaluate, locals())
    if out is not None and not any(map(is_spark, (truth, prediction))):
        out = save.as_path(out)
        require_writable(out)
    narrows = keep is None and out is None
    keep = "cells" if keep is None else keep
    given = Given(truth, prediction, item, cluster, weight, table, attributes, overlapping)
    truth_only = default_for_truth_only(prediction)
    require_repairable(repairs, keep=keep, overlapping=given.overlapping)
    refuse_idle(out is None and repairs > 0, "repairs", arg("out", ...), "ask the result for its repairs()")
    policies = Policies.of(unmatched, nulls, duplicates, noise, truth_only=truth_only)
    request = Request(
        given,
        policies,
        weighting=weighting,
        metrics=as_metrics(metrics, outside=policies.prediction == "outside"),
        beta=beta,
        max_pairs=max_pairs,
        slices=as_slices(slices),
        keep=keep,
        narrows=narrows,
        out=out,
        memory_limit=memory_limit,
        spill_dir=spill_dir,
    )
    ev = carry_out(request, arguments, engine=engine, threads=threads, progress=progress)
    give([*found_in(ev, MAY_WARN), *ev.origin.notes])
    if out is not None:
        ev.save(out, keep=keep, repairs=repairs)
    return ev


def carry_out(
    request: Request,
    arguments: dict[str, Any],
    *,
    engine: str | None,
    threads: int | None,
    progress: Progress,
) -> Evaluation:
    """Run an engine and return its answer as an evaluation, without issuing warnings or writing files."""
    with reporting(progress) as report, Pool(threads, report) as pool:
        answer = choose(engine, request)(request, pool)
    return evaluation(request, answer, arguments)


def evaluation(request: Request, answer: Answer, arguments: dict[str, Any]) -> Evaluation:
    """Return the answer of an engine as an evaluation, with the requested slices."""
    mentions: Any = None if answer.complete else NOT_ALL_MENTIONS
    if answer.mentions is not None:
        mentions = evaluation(replace(request, of_mentions=True, slices=[]), answer.mentions, {})
    figures = Figures(
        answer.scored.metrics,
        request.beta,
        Scores(answer.scored.overall),
        answer.coverage,
        request.policies,
        answer.scored.not_computed,
        answer.sliced,
        summary=answer.summary,
        bounds=answer.bounds,
        change_if_alone=answer.change_if_alone,
        of_mentions=mentions,
        slicings={slice_name(key): key for key in request.slices},
    )
    kept = Kept(
        answer.cells,
        request.policies,
        answer.items,
        answer.labels,
        answer.attributes,
        answer.ranges,
        request.limit if answer.engine == "disk" or "memory_limit" in arguments else None,
        odd_labels=answer.odd_labels,
    )
    ev = answer.kind(figures, kept, Origin.of(request.given, arguments, answer))
    for name, key in figures.slicings.items():
        if name not in ev.sliced:
            ev.sliced[name] = ev.slices(key)
    return ev


def contingency(
    truth: Any,
    prediction: Any,
    *,
    item: PerSide = ITEM,
    cluster: PerSide = CLUSTER,
    weight: Any = None,
    weighting: Weighting = "pointwise",
    unmatched: Unmatched | Mapping[str, Unmatched] | None = None,
    nulls: Nulls = "raise",
    duplicates: Duplicates = "raise",
    noise: Any = None,
    overlapping: bool = False,
    max_pairs: float = MAX_PAIRS,
    table: Any = None,
    threads: int | None = None,
) -> Contingency:
    """Return the cells of the contingency table: pairs of a true and a predicted cluster that share items.

    The parameters are the same as for `evaluate`.

    Returns
    -------
    Contingency

    Raises
    ------
    FastBCubedError
        In the same cases as for `evaluate`.

    Examples
    --------
    >>> import fastbcubed as fb
    >>> fb.contingency([0, 0, 1], [5, 5, 6])
    Contingency(3 items, 2 true and 2 predicted clusters, 2 cells)

    Overlapping clusterings, and a score computed from their cells:

    >>> cells = fb.contingency({1: {"a"}, 2: {"a", "b"}}, {1: {"c"}, 2: {"c"}}, overlapping=True)
    >>> fb.metrics.extended_bcubed_recall(contingency=cells)
    0.875
    """
    truth_only = default_for_truth_only(prediction)
    request = Request(
        Given(truth, prediction, item, cluster, weight, table, overlapping=overlapping),
        Policies.of(unmatched, nulls, duplicates, noise, truth_only=truth_only),
        weighting,
        max_pairs=max_pairs,
    )
    with Pool(threads) as pool:
        return memory.build(open_pair(request.given), request, pool).cells


def extended_bcubed(truth: Any, prediction: Any, *, weight: Any = None, **options: Any) -> Evaluation:
    """Score an overlapping clustering by Extended BCubed: overall, by cluster, by slice and by item.

    Parameters
    ----------
    truth, prediction : Clustering, table, path, or dict
        A table with one row per membership (an item and one of its clusters), or a dict from item to a set of clusters.
    weight : str, table or dict, optional
        Weight of each item.
    **options
        Other arguments of `evaluate`.

    Returns
    -------
    Evaluation
        The result of `evaluate` with ``overlapping=True`` and the scores precision, recall, f1 and mean_f1.

    Raises
    ------
    TooMuchWorkError
        If the clusters overlap so much that more than `max_pairs` pairs of cells have to be compared.
    FastBCubedError
        In the same cases as for `evaluate`.

    Notes
    -----
    For two items, or an item and itself, let g be the number of predicted clusters and c the number of true clusters
    that contain both. The precision of an item is the mean of min(g, c) / g over all items with g > 0, and its recall
    is the mean of min(g, c) / c over all items with c > 0. In these means, each other item counts once, with its
    weight, no matter how many clusters the two items share. A cluster that occurs twice counts twice.

    Items in the same clusters on both sides form one cell. Pairs of items whose g and c are both 0 or 1 are counted
    through the intersections of true and predicted clusters; the cost is the sum, over cells, of the number of true
    clusters times the number of predicted clusters. Pairs of items with a larger g or c are found through pairs of
    clusters that two cells share or, for a cell with more than 8 clusters on a side, by searching all clusters of the
    cell except the largest. A cluster of a million items costs about a million steps, no matter how many of its items
    are in a second cluster.

    References
    ----------
    E. Amigó et al., A comparison of extrinsic clustering evaluation metrics based on formal constraints,
    2009.

    Examples
    --------
    Two clusters that share the items 1 and 2 are merged:

    >>> import fastbcubed as fb
    >>> truth = fb.Clustering.from_clusters([[1, 2, 3], [1, 2, 4, 5], [6, 7]])
    >>> merged = fb.Clustering.from_clusters([[1, 2, 3, 4, 5], [6, 7]])
    >>> ev = fb.extended_bcubed(truth, merged)
    >>> round(ev.precision, 6), round(ev.recall, 6)  # 31/35, 33/35
    (0.885714, 0.942857)
    """
    options.setdefault("metrics", ["precision", "recall", "f1", "mean_f1"])
    return evaluate(truth, prediction, weight=weight, overlapping=True, **options)


def cice_bcubed(
    truth: Any,
    prediction: Any,
    *,
    weight: Any = None,
    match: Match = "global",
    similarity: Similarity = "jaccard",
    **options: Any,
) -> Evaluation:
    """Score an overlapping clustering by CICE-BCubed: overall, by cluster, by slice and by item.

    Parameters
    ----------
    truth, prediction : Clustering, table, path, or dict
        A table with one row per membership (an item and one of its clusters), or a dict from item to a set of clusters.
    weight : str, table or dict, optional
        Weight of each item.
    match : {"global", "pair"}
        "global" matches a cluster with the most similar of all clusters of the other side, as in the formula of the
        paper. "pair" matches a cluster with the most similar of the other side's clusters that contain both items, as
        in the text of the paper. Only "pair" satisfies the homogeneity constraint, so use "pair" to rank systems.
    similarity : {"jaccard", "rand", "f1"}
        The measure of similarity of two clusters.
    **options
        Other arguments of `evaluate`.

    Returns
    -------
    Evaluation
        An evaluation with the scores cice_bcubed_precision, cice_bcubed_recall, cice_bcubed_f1 and cice_bcubed_mean_f1,
        whose `definition` states `match` and `similarity`.

    Raises
    ------
    FastBCubedError
        In the same cases as for `extended_bcubed`.

    Notes
    -----
    Each pair of items counts as in `extended_bcubed`, multiplied by the mean similarity between each cluster that both
    items share and the cluster matched with it. The run time is about twice that of `extended_bcubed`.

    References
    ----------
    H. Rosales-Méndez and Y. Ramírez-Cruz, CICE-BCubed: A New Evaluation Measure for Overlapping Clustering
    Algorithms, 2013.

    Examples
    --------
    In the paper's example, Extended BCubed finds no error:

    >>> import fastbcubed as fb
    >>> truth = fb.Clustering.from_clusters([[1, 2, 4], [1, 3], [3, 4], [3, 5, 6], [2, 5], [2, 6]])
    >>> other = fb.Clustering.from_clusters([[1, 3, 4], [1, 2], [2, 4], [2, 5, 6], [3, 5], [3, 6]])
    >>> fb.extended_bcubed(truth, other).f1
    1.0
    >>> round(fb.cice_bcubed(truth, other).cice_bcubed_f1, 6)  # 2/3
    0.666667
    >>> round(fb.cice_bcubed(truth, other, match="pair").cice_bcubed_f1, 6)  # 23/36
    0.638889
    """
    for name, value, known in (("match", match, MATCHES), ("similarity", similarity, SIMILARITIES)):
        if not is_one_of(value, known):
            raise OptionError(
                f"{arg(name)} must be one of {', '.join(map(repr, known))}, not {quoted(value)}"
            )
    options.setdefault("metrics", list(cice(match, similarity)))
    return evaluate(truth, prediction, weight=weight, overlapping=True, **options)
