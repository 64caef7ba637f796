"""sweep(): score the clusters that links with scores form at every threshold."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed.align.policies import Duplicates, Nulls, Policies, Unmatched
from fastbcubed.align.rows import align
from fastbcubed.engines.request import as_metrics, as_slices
from fastbcubed.errors import (
    AlignmentError,
    EmptyInputError,
    IdTypeError,
    OptionError,
    arg,
    first_few,
    quoted,
    without_advice,
)
from fastbcubed.evaluate import Progress
from fastbcubed.inputs.arrays import to_numpy
from fastbcubed.inputs.clustering import Clustering
from fastbcubed.inputs.files import as_rows, bytes_of_text
from fastbcubed.inputs.link_clusters import as_thresholds, warn_if_out_of_range
from fastbcubed.inputs.link_columns import LinkRequest, Sources, VerdictColumn
from fastbcubed.inputs.links import JoinedLinks, Links, read_links, warn_if_distances
from fastbcubed.inputs.pair import Given, Pair, open_pair
from fastbcubed.inputs.tables import CLUSTER, ITEM, ColumnName
from fastbcubed.inputs.verdicts import Apart
from fastbcubed.metrics.metric import Metric, beta_of
from fastbcubed.results.slices import SliceKey, slice_name
from fastbcubed.results.warnings import give
from fastbcubed.runtime import buffers
from fastbcubed.runtime.arguments import true_or_false
from fastbcubed.runtime.memory_budget import Allowance
from fastbcubed.runtime.progress_bar import reporting, require_progress
from fastbcubed.runtime.threads import Pool
from fastbcubed.sweep_links.curve import Curve, Kept, as_given, choose_scores, family_of
from fastbcubed.sweep_links.evaluator import Evaluator, past_noise
from fastbcubed.sweep_links.level_sums import level_sums
from fastbcubed.sweep_links.merge_tree import (
    TO_ALIGN,
    TO_PLACE,
    TO_READ,
    TO_SORT,
    MergeTree,
    PlacedRows,
    merge_tree,
    place_rows,
    to_add_up,
    to_join,
)
from fastbcubed.sweep_links.sweep_result import Sweep

__all__ = ["sweep"]

#: More idle bytes than this are returned to the system before the clusters at the best threshold are evaluated, which
#: needs less memory than the sums by level did.
MUCH_IDLE = 1 << 29
#: The families of sums that every sweep has.
ALWAYS = {"clusters", "bcubed"}


def sweep(
    truth: Any,
    edges: Any,
    *,
    left: ColumnName | None = None,
    right: ColumnName | None = None,
    score: str | None = None,
    verdict: VerdictColumn = None,
    sources: Sources = None,
    items: Any = None,
    thresholds: Iterable[float] | None = None,
    ascending: bool = False,
    item: ColumnName = ITEM,
    cluster: ColumnName = CLUSTER,
    weight: Any = None,
    slices: SliceKey | Iterable[SliceKey] = (),
    attributes: Any = None,
    metrics: str | Iterable[str | Callable[..., Any]] | Callable[..., Any] | None = None,
    beta: float = 1.0,
    unmatched: Unmatched | Mapping[str, Unmatched] | None = None,
    nulls: Nulls = "raise",
    duplicates: Duplicates = "raise",
    noise: Any = None,
    memory_limit: int | str | None = None,
    threads: int | None = None,
    progress: Progress = None,
) -> Sweep:
    """Score the clusters formed by links at every threshold, to choose the best threshold and find costly merges.

    A threshold uses the links whose score is at least the threshold. The clusters at a threshold are the connected
    components of the links that it uses, and items without such a link are singletons. All scores equal those of
    `evaluate` for the same clusters.

    Parameters
    ----------
    truth : Clustering, table, path, dict, or array-like of shape (n_items,)
        As for `evaluate`. With an array of labels, links refer to items by position.
    edges : table, path, or list of tuples
        One row per link: two items and a score. Links may be repeated, reversed, or from an item to itself.
    left, right : str or list of str, optional
        Columns of the two items; a list makes a composite id. By default, the columns of Splink, dedupe, Zingg and
        other tools are recognised.
    score : str, optional
        Column of scores, probabilities or weights; recognised by default, like the columns of items.
    verdict : str or False, optional
        Column that says whether two items match, as for `Clustering.from_links`. Pairs that do not match are not
        linked at any threshold; a warning counts the non-matching pairs that other links connect. False means that the
        links have no column of verdicts.
    sources : tuple of str or False, optional
        Names of the tables of the left and the right items, as for `Clustering.from_links`.
    items : array-like or table, optional
        The complete list of items. If a list is passed, a link to any other item is an error, and items without a link
        are singletons.
    thresholds : list of float, optional
        Thresholds to list in `Sweep.points()`, which also has the scores that cannot be updated at every threshold.
    ascending : bool
        Whether low scores mean strong links, as with distances. With True, a threshold uses the links whose score is
        at most the threshold.
    item, cluster : str or list of str
        Columns of the truth, as for `evaluate`.
    weight, attributes, nulls, duplicates, noise
        As for `evaluate`; `noise` is a label of the truth.
    slices : str, Bins, tuple of these, or a list of several of these
        Slices for which `Sweep.sliced` lists the best threshold; see `Sweep.slices`.
    metrics : str, callable, or iterable of these, optional
        Scores or families. Precision, recall, their F, over- and under-merge rates, pair scores, ELM (without
        weights) and entropies are updated at every threshold; other scores require `thresholds`. The default is
        precision, recall, f1, the merge rates, pair precision, recall and F1, rand, adjusted_rand, ELM, homogeneity,
        completeness, v_measure and variation_of_information, except scores that are undefined for the input.
    beta : float
        Weight of recall in F; any value other than 1 adds the score fbeta.
    unmatched : {"drop", "raise", "singleton", "outside"} or dict, optional
        As for `evaluate`. By default, unless `items` lists all items, items that only the truth has are singletons,
        because they have no link. Links to items that are not scored still connect other items.
    memory_limit : int or str, optional
        Bytes by which the process may grow, or a string such as "8GiB"; no limit by default. Sweeps do not spill to
        disk. A sweep that needs more memory than the limit raises an error that states how much memory it needs, before
        the links are read or as soon as the need is known.
    threads, progress
        As for `evaluate`.

    Returns
    -------
    Sweep

    Raises
    ------
    OptionError
        If the sweep needs more than the memory limit.
    FastBCubedError
        A subclass of FastBCubedError, if the input or an argument is invalid; the message says what is wrong, where,
        and what to do.

    Notes
    -----
    Links are sorted by score and joined once, which gives a tree of merges. The overlaps of predicted and true
    clusters change only where two clusters merge. A pair of items in the same true cluster is counted once, at the
    merge that first joins the two items. The run time for all thresholds together is O((n + m) log n) for n items and m
    links. Memory is 32 bytes per link at first and 16 bytes per link after joining, plus 250 bytes per item with all
    scores, or 180 bytes per item with only precision, recall and F1. Methods of the result need further memory and
    check the limit first: `Sweep.merges` takes 130 bytes per item.

    Links with equal scores are used together, so clusters change only between two different scores.

    References
    ----------
    J. Gower and G. Ross, Minimum Spanning Trees and Single Linkage Cluster Analysis, 1969. E. Amigó et al., A
    comparison of extrinsic clustering evaluation metrics based on formal constraints, 2009.

    Examples
    --------
    >>> import fastbcubed as fb
    >>> links = [("a", "b", 0.9), ("b", "c", 0.4), ("c", "d", 0.8)]
    >>> sweep = fb.sweep({"a": 1, "b": 1, "c": 2, "d": 2}, links)
    >>> sweep.best("f1")
    f1 is best at threshold 0.8: 1 (precision 1, recall 1), with 2 clusters, the largest of 2 items.
    Any threshold from there to just before 0.4 gives the same clusters.
    """
    require_progress(progress)
    ascending = true_or_false(ascending, "ascending")
    truth_only = "singleton" if items is None else "drop"
    if isinstance(noise, Mapping):  # links have no labels
        if set(noise) != {"truth"}:
            raise OptionError(
                f"{arg('noise', ...)} of a sweep must be a label of the truth, not {quoted(noise)}"
            )
        noise = noise["truth"]
    policies = Policies.of(unmatched, nulls, duplicates, noise, truth_only=truth_only)
    outside = policies.prediction == "outside"
    wanted = as_metrics(metrics, outside=outside)
    beta = beta_of(beta)
    how_scored: dict[str, Any] = {"outside": outside, "beta": beta, "everywhere": thresholds is None}
    choose_scores(wanted, weighted=weight is not None, **how_scored)  # raises for wrong names early
    asked, cuts = [] if thresholds is None else as_thresholds(thresholds), as_slices(slices)
    everyone = items.items if isinstance(items, Clustering) else items
    allowance = Allowance(memory_limit)
    of_links = LinkRequest(left, right, score, True, verdict, sources)
    links = read_links(edges, of_links, items=everyone, item=item, allowance=allowance, later=TO_SORT)
    warn_if_distances(links.columns.score, links.name, ascending=ascending, stacklevel=3)
    warn_if_out_of_range(links, asked, ascending=ascending, stacklevel=2)
    if not len(links.items):
        raise EmptyInputError(
            f"{links.name} contains no link, and so no item. Pass {arg('items', ...)} to name the items, all of "
            "them singletons"
        )
    with without_advice(), reporting(progress) as report, Pool(threads, report) as pool:
        side, links, n_items = _beside(truth, links, item, cluster, weight, attributes, noise, allowance)
        assert links.scores is not None
        n_rows = side.pair.n_rows
        allowance.require(
            TO_ALIGN * n_rows, f"aligning {len(links):,} links with the truth of {n_rows:,} rows"
        )
        alignment = align(*side.pair.first, policies, pool, weight_table=side.pair.weight_table)
        allowance.require(to_join(len(links), n_items), f"joining {n_items:,} items by {len(links):,} links")
        pairs, joined = [links.left, links.right, links.scores], links.joined()
        del links
        keep = allowance.has_room(to_join(joined.n_links, n_items, keep=True))
        tree = merge_tree(n_items, pairs, pool, ascending=ascending, keep=keep)
        allowance.require(TO_PLACE * len(alignment), f"ordering {len(alignment):,} items")
        placed = place_rows(tree, alignment, pool, outside=outside)
        chosen = choose_scores(wanted, weighted=placed.rows.weights is not None, **how_scored)
        families = _families(chosen.kept)
        what = f"the scores of {len(placed.rows):,} items at {tree.n_levels:,} thresholds"
        fewer = "" if families <= ALWAYS else f", or name fewer scores, such as {arg('metrics', 'f1')}"
        if not allowance.has_room(to_add_up(placed.rows, families)):
            tree = replace(tree, pairs=None)  # only `Sweep.stages` needs them
        allowance.require(to_add_up(placed.rows, families), what, fewer)
        curve = _curve(joined, tree, placed, chosen.kept, beta, pool)
    allowance.release()
    if buffers.idle_bytes() > MUCH_IDLE:
        buffers.release()
    how = {
        "unmatched": {"truth": policies.truth, "prediction": policies.prediction},
        "nulls": nulls, "duplicates": duplicates, "noise": noise, "beta": beta, "threads": threads, "progress": False,
        "metrics": None if wanted is None else as_given(wanted),
    }  # fmt: skip
    found = Sweep(
        joined,
        tree,
        *chosen,
        alignment.coverage,
        policies,
        asked,
        curve,
        placed,
        alignment,
        Evaluator(side.pair, how | side.how),
    )
    give(found.warnings)
    found._allowance = allowance.at_rest()
    for key in cuts:
        found.sliced[slice_name(key)] = found.slices(key)
    return found


class _Beside(NamedTuple):
    """The truth and the items of the links as a pair of sides, and the arguments of `evaluate` that align them."""

    pair: Pair
    how: dict[str, Any]


def _beside(
    truth: Any,
    links: Links,
    item: ColumnName,
    cluster: ColumnName,
    weight: Any,
    attributes: Any,
    noise: Any,
    allowance: Allowance,
) -> tuple[_Beside, Links, int]:
    """Read the truth, and pair it with a clustering whose rows are the items of the links.

    Return the pair, the links, whose items may have become positions in the truth, and the number of items.
    """
    if allowance.limit is not None:
        allowance.require(bytes_of_text(truth), "the text of the truth, which is held as a whole,")
    if not isinstance(truth, (Clustering, Mapping)):
        truth = as_rows(truth, "the truth") or truth
    if getattr(truth, "can_be_cut", False):
        allowance.require(TO_READ * len(truth), f"the {len(truth):,} rows of {truth.where}")
    plain = not isinstance(truth, (Clustering, Mapping)) and as_rows(truth, "the truth") is None
    by_position = plain or (isinstance(truth, Clustering) and truth.items is None)
    if by_position:
        n_items = len(truth if isinstance(truth, Sized) else Clustering.from_labels(truth, name="the truth"))
        links, column = _by_position(links, n_items), None
    else:
        n_items, column = len(links.items), links.items
    dtype = np.int32 if n_items < 2**31 else np.int64
    leaves = Clustering.from_labels(np.arange(n_items, dtype=dtype), items=column, name=links.name)
    given = Given(truth, past_noise(noise, leaves), item, cluster, weight, attributes=attributes)
    how: dict[str, Any] = {"weight": given.weight, "attributes": given.attributes}
    pair = open_pair(given)
    if pair.weight_table is not None or pair.attribute_table is not None:
        how["item"] = item
    return _Beside(pair, how), links, n_items


def _by_position(links: Links, n_items: int) -> Links:
    """Return the links with positions in the truth instead of codes of items; raise if ids are not positions."""
    if len(links) and links.items.kind != "integer":
        raise IdTypeError(
            "the truth has labels without item ids, so links must name items by integer position, but the "
            f"ids in {links.name} are of kind {links.items.kind}. Give the truth as a table with its items"
        )
    positions = links.items.keys()
    strange = np.flatnonzero((positions < 0) | (positions >= n_items))
    if strange.size:
        raise AlignmentError(
            f"{strange.size} of {positions.size} items of {links.name} "
            f"{'is' if strange.size == 1 else 'are'} not a position among the {n_items} labels of the "
            f"truth (first: {first_few(positions[strange[:4]].tolist())}). Positions count from 0"
        )
    dtype = np.int32 if n_items < 2**31 else np.int64
    left, right = (positions[codes].astype(dtype) for codes in (links.left, links.right))
    apart = links.apart
    if apart is not None:
        apart = Apart(positions[apart.left], positions[apart.right], apart.n_unsure)
    return replace(links, left=left, right=right, apart=apart)


def _as_typed(scores: NDArray[np.float64], precision: np.dtype[Any]) -> NDArray[np.float64]:
    """Return float64 scores that read as the given shorter floats do: 0.9, not 0.8999999761581421."""
    if precision.itemsize == 4:
        texts = pa.array(scores.astype(precision)).cast(pa.string())
        return to_numpy(texts.cast(pa.float64()))
    return (
        np.array([float(str(score)) for score in scores.astype(precision)])
        if precision.itemsize < 4
        else scores
    )


def _families(metrics: Sequence[Metric]) -> set[str]:
    """Return the families of sums behind these scores, and those that every sweep has."""
    return {*ALWAYS, *(family for metric in metrics if (family := family_of(metric)) is not None)}


def _curve(
    links: JoinedLinks,
    tree: MergeTree,
    placed: PlacedRows,
    metrics: Sequence[Metric],
    beta: float,
    pool: Pool,
) -> Curve:
    """Return the curve; it has no point without links if a link has an infinite score."""
    sums = level_sums(placed.rows, _families(metrics), pool)
    skipped = int(tree.n_levels > 0 and tree.points[1] == tree.points[0])
    shown = {name: values[skipped:] if values.ndim else values for name, values in sums.items()}
    thresholds = _as_typed(tree.points, links.precision)[skipped:]
    return Curve(thresholds, Kept(shown, placed.rows.total, beta), metrics, placed.rows.weights is not None)
