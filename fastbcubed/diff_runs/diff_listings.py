"""Listings of a diff: changes, clusters, items and slices; and a single cluster or item with its members."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed.cells.contingency import Contingency
from fastbcubed.diff_runs.vocabulary import (
    APPEARED,
    BACK,
    COLUMNS,
    GONE,
    OF_SIZES,
    OUTCOMES,
    PLACES,
    SIDES,
    TRUE_CLUSTER,
    asked_name,
    asked_order,
    asked_slices,
    called,
    called_as_slices,
    in_a_diff,
    in_words_of_a_diff,
    renamed,
    renamed_slices,
    side_of,
)
from fastbcubed.errors import IdTypeError, MetricError, OptionError, SliceError, arg, first_few, quoted
from fastbcubed.inputs import arrow_compute as pc
from fastbcubed.inputs.arrays import chunked, combined, from_numpy, from_texts, plain, table_of, to_numpy
from fastbcubed.inputs.id_columns import as_column
from fastbcubed.render.number_formats import score_text
from fastbcubed.results import clusters
from fastbcubed.results.cluster_outcomes import marked, require_defined
from fastbcubed.results.evaluation import Evaluation
from fastbcubed.results.evaluation_text import PLACES as PLACES_OF_ITEM
from fastbcubed.results.evaluation_text import Cluster, Item
from fastbcubed.results.items import Items, without_noise
from fastbcubed.results.members import chosen_columns, rows_in_clusters, with_attributes
from fastbcubed.results.slices import (
    SliceKey,
    beside,
    check_key,
    elements,
    known_within_limit,
    means_of_groups,
    require_clear,
    size_named,
    slice_codes,
    slice_name,
    slice_table,
)
from fastbcubed.results.table import Table, listed
from fastbcubed.runtime.arguments import as_several, is_one_of
from fastbcubed.runtime.key_codes import number
from fastbcubed.runtime.threads import Pool, blocks

if TYPE_CHECKING:
    from fastbcubed.diff_runs.diff_result import Diff

#: Outcomes of clusters, in the order of display.
BECAME = (*OUTCOMES["true"].values(), GONE, APPEARED)
#: Figures of each outcome.
FIGURES = {"n_clusters": pa.int64(), "n_items": pa.int64(), "weight": pa.float64(), "share": pa.float64()}
#: Outcomes of clusters whose items only one side has, by this side.
OF_ONE_SIDE = {"true": GONE, "pred": APPEARED}


def not_defined() -> MetricError:
    """Return the error for outcomes of overlapping clusters."""
    return MetricError(
        "the outcome of a cluster is not defined for overlapping clusters; pass partitions, without "
        f"{arg('overlapping', True)}"
    )


def _of_one_side(table: Contingency, side: str) -> dict[str, float]:
    """Count the clusters of a side without items of the other side, and their items; an unknown weight is NaN."""
    alone = table.alone(side)
    if alone is None:
        return {"n_clusters": 0, "n_items": 0, "weight": 0.0}
    scored = np.zeros(table.n_codes[side], np.bool_)
    codes = table.true if side == "true" else table.pred
    for start, stop in blocks(table.n_cells):
        scored[codes[start:stop]] = True
    there = ~scored[alone.codes]
    counted = np.zeros(scored.size, np.bool_)
    counted[alone.codes[there]] = True
    weight = math.nan if table.weighting == "outer" else math.fsum(alone.mass[there].tolist())
    n_items = int(alone.n[there].sum(dtype=np.int64))
    return {"n_clusters": int(np.count_nonzero(counted)), "n_items": n_items, "weight": weight}


def changes(ev: Evaluation) -> pa.Table:
    """Return the table of the outcomes of clusters, with the numbers of clusters and items."""
    outcomes = ev._outcomes
    if outcomes is None:
        raise not_defined()
    rows = outcomes.filter(pc.equal(outcomes["side"], "true")).to_pylist()
    rows += [_of_one_side(ev.contingency, side) for side in OF_ONE_SIDE]
    found, scored = ev.coverage, ev.contingency.total_weight
    only = found.n_truth_only and ev.policies.truth == "drop"
    before = scored + (found.weight_truth_only if only else 0.0)
    only = found.n_prediction_only and ev.policies.prediction in ("drop", "outside")
    after = scored + (found.weight_prediction_only if only else 0.0)
    for became, row in zip(BECAME, rows, strict=True):
        whole = after if became == APPEARED else before
        row |= {"became": became, "share": row["weight"] / whole if whole else None}
    return changes_of_rows(rows)


def changes_of_rows(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Return the table of outcomes from its rows; unknown figures are null."""
    became = from_texts([row["became"] for row in rows])
    figures = {name: [row[name] for row in rows] for name in FIGURES}
    return pa.table(
        {"became": became}
        | {name: pa.array(figures[name], kind, from_pandas=True) for name, kind in FIGURES.items()}
    )


# -- By slice --------------------------------------------------------------------------------------


def changes_by(ev: Evaluation, key: SliceKey) -> pa.Table:
    """Return the table of outcomes by slice, with the number of its items and of the clusters that have them."""
    if ev.contingency.overlapping:
        raise not_defined()
    if isinstance(key, Mapping):
        raise SliceError(
            f"changes can be listed by an attribute or by bins, not by subsets ({first_few(list(key))})"
        )
    items, rows = ev.kept_items(), ev.kept.rows
    fate, cluster, n_clusters = _fates(ev, items)
    by_size = any(map(size_named, elements(key)))
    counted = rows.cell >= 0 if by_size else fate >= 0
    cut = slice_codes(key, ev.contingency, items, ev.attributes, counted)
    n = len(BECAME)
    group = np.where((cut.codes >= 0) & counted, cut.codes * n + fate, -1)
    here = np.flatnonzero(group >= 0)
    n_groups = cut.n_slices * n
    columns: dict[str, NDArray[Any]] = {"n_items": np.bincount(group[here], minlength=n_groups)}
    with Pool() as pool:
        _, first = number(group[here] * n_clusters + cluster[here], pool)
    columns["n_clusters"] = np.bincount(group[here][first], minlength=n_groups)
    weight = np.bincount(group[here], rows.weight[here], n_groups)
    of_slice = weight.reshape(-1, n).sum(axis=1)
    share = weight.reshape(-1, n) / np.where(of_slice > 0, of_slice, np.nan)[:, None]
    columns |= {"weight": weight, "share": share.reshape(-1)}
    there = np.flatnonzero(columns["n_items"] > 0)
    names = {called_as_slices(k): v.take(from_numpy(there // n)) for k, v in cut.values.items()}
    became = pa.DictionaryArray.from_arrays(from_numpy((there % n).astype(np.int8)), from_texts(list(BECAME)))
    return table_of(beside(names, {"became": became, **{name: columns[name][there] for name in FIGURES}}))


def _fates(ev: Evaluation, items: Items) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """Return by row the outcome of its cluster (position in BECAME) and a code of the cluster, and the number of codes.

    A row that both sides have gets the outcome of its baseline cluster. A row that only one side has gets "gone" or
    "appeared" if all items of its cluster are on that side; otherwise, the outcome is -1.
    """
    table, cell = ev.contingency, ev.kept.rows.cell
    scored = np.flatnonzero(cell >= 0)
    fate, cluster = np.full(cell.size, -1), np.zeros(cell.size, np.int64)
    cluster[scored] = table.true[cell[scored]]
    fate[scored] = (marked(table, "true") >> 1)[cluster[scored]]
    n_clusters = table.n_codes["true"]
    for side, became in OF_ONE_SIDE.items():
        rows, codes, n = _clusters_of_one_side(ev, items, side)
        fate[rows], cluster[rows] = BECAME.index(became), n_clusters + codes
        n_clusters += n
    return fate, cluster, n_clusters


def _clusters_of_one_side(
    ev: Evaluation, items: Items, side: str
) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """Return the rows of a side's clusters without items of the other side, the clusters' codes, and their number."""
    cell, none = ev.kept.rows.cell, np.empty(0, np.int64)
    if ev.contingency.alone(side) is None:
        return none, none, 0
    labels = as_column(items.labels(side), f"{side}_cluster")
    keys = labels.keys()
    there = np.ones(cell.size, np.bool_) if labels.null_rows is None else ~labels.null_rows
    rows = np.flatnonzero((cell < 0) & there)
    lonely = np.zeros(cell.size, np.bool_)
    if (noise := ev.policies.noise_of(side)) is not None:
        with suppress(IdTypeError):  # the noise label may have the type of the other side's labels
            lonely[labels.find(noise)] = True
    rows = rows[lonely[rows] | ~np.isin(keys[rows], keys[(cell >= 0) & there & ~lonely])]
    with Pool() as pool:
        codes, first = number(keys[rows], pool)
    alone = lonely[rows]
    codes = np.where(alone, first.size + np.cumsum(alone), codes)
    return rows, codes, first.size + int(np.count_nonzero(alone)) + 1


def labels_of_one_side(ev: Evaluation, side: str) -> pa.Array:
    """Return the labels of a side's clusters without items of the other side; noise is omitted."""
    items = ev.kept_items()
    rows, codes, _ = _clusters_of_one_side(ev, items, side)
    with Pool() as pool:
        _, first = number(codes, pool)
    labels = without_noise(items.labels(side, rows[first]), ev.policies.noise_of(side))
    return plain_labels(labels).drop_null()


def plain_labels(labels: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return labels or ids as one array, without chunks or dictionary encoding."""
    return combined(plain(chunked(labels)))


#: The names of an item's sets in a diff, by those in an evaluation.
SETS = {"tp": "stable", "fn": "split", "fp": "merged", "tn": "apart"}


class ChangedCluster(Cluster):
    """A cluster of a diff, as a dict with a readable display; returned by `Diff.cluster`.

    Its keys are side, cluster, n_items, weight, n_parts, outcome (not of overlapping clusterings), split_change,
    merge_change, weighted, overlapping, columns; "parts", a list of the parts that are shown, each with the other
    side's cluster, figures and "members"; and "one_sided", the items that the other side lacks: n_items, policy,
    members. A member has item, weight and attributes.

    Attributes
    ----------
    parts : Table
        All parts, largest first.
    table : Table
        All members, part by part.

    Examples
    --------
    >>> import fastbcubed as fb
    >>> d = fb.diff({"a": 1, "b": 1, "c": 2, "d": 2}, {"a": "x", "b": "x", "c": "x", "d": "y"})
    >>> d.cluster("baseline", 2)
    Baseline cluster 2: 2 items of 2 experiment clusters, split and merged
    split change 0.25000, merge change 0.16667
    <BLANKLINE>
    experiment cluster  items   item
    x                   1 of 3  c
    y                   1 of 1  d
    """

    kinds: ClassVar[Mapping[str, str]] = {"baseline": "baseline", "experiment": "experiment"}
    others: ClassVar[Mapping[str, str]] = {"baseline": "experiment", "experiment": "baseline"}
    fates: ClassVar[Mapping[str, str]] = {"drop": "left out (drop)", "outside": "merged (outside)"}

    def _figures(self) -> list[str]:
        return [f"{name} change {score_text(self[f'{name}_change'])}" for name in ("split", "merge")]


def changed_cluster(cluster: Cluster) -> ChangedCluster:
    """Return the cluster of an evaluation in the names of a diff."""
    found, side, attributes = _in_names(cluster), cluster["side"], list(cluster["columns"])

    def members(part: Mapping[str, Any]) -> list[dict[str, Any]]:
        return [{**each, "attributes": _named(each["attributes"])} for each in part["members"]]

    def table() -> Table:
        every = cluster.table
        figures = {"pred_cluster"} if TRUE_CLUSTER in attributes else {"true_cluster", "pred_cluster"}
        known = [name for name in every.column_names if name not in figures]
        return Table(in_a_diff(renamed(every, known).to_arrow(), attributes))

    found["columns"] = list(map(called, attributes))
    found["parts"] = [{**_in_names(part), "members": members(part)} for part in cluster["parts"]]
    found["one_sided"] = {**cluster["one_sided"], "members": members(cluster["one_sided"])}
    found["side"] = next(new for new, old in SIDES.items() if old == side)
    if found.get("outcome"):
        found["outcome"] = OUTCOMES[side][cluster["outcome"]]
    return ChangedCluster(found, renamed(cluster.parts), table)


def _named(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {called(name): value for name, value in attributes.items()}


def _in_names(figures: Mapping[str, Any]) -> dict[str, Any]:
    """Return the figures of an evaluation under the names of a diff, splits first."""
    found = {COLUMNS.get(key, key): value for key, value in figures.items()}
    return {key: value for key, value in found.items() if key is not None}


class ChangedItem(Item):
    """An item of a diff, as a dict with a readable display; returned by `Diff.item`.

    Examples
    --------
    >>> import fastbcubed as fb
    >>> d = fb.diff({"a": 1, "b": 1, "c": 2}, {"a": "x", "b": "y", "c": "y"}, metrics=["split_rate", "merge_rate"])
    >>> d.item("b")
    Item b: baseline cluster 1, experiment cluster y, weight 1
      split_rate 0.50000, merge_rate 0.50000
    <BLANKLINE>
      stable  1  with it before and after: b
      split   1  no longer with it: a
      merged  1  with it now: c
      apart   0  never with it
    """

    kinds: ClassVar[Mapping[str, str]] = {
        "baseline_cluster": "baseline",
        "experiment_cluster": "experiment",
        TRUE_CLUSTER: "true",
    }
    sets: ClassVar[Mapping[str, str]] = {
        "stable": "with it before and after",
        "split": "no longer with it",
        "merged": "with it now",
        "apart": "never with it",
    }
    places: ClassVar[tuple[str, ...]] = (*PLACES_OF_ITEM, *kinds, *sets, *filter(None, COLUMNS.values()))


# -- Listings --------------------------------------------------------------------------------------


def clusters_of(diff: Diff, side: str, order_by: str | None, limit: int | None, outcome: str | None) -> Table:
    """Return changes and scores by cluster, as `Diff.clusters` does."""
    old, ev = side_of(side), diff.evaluation
    if is_one_of(outcome, (OF_ONE_SIDE[old],)):
        if ev.contingency.overlapping:
            raise not_defined()
        items = ev.kept_items()
        rows, codes, _ = _clusters_of_one_side(ev, items, old)
        with Pool() as pool:
            codes, first = number(codes, pool)
        weight = np.bincount(codes, ev.kept.rows.weight[rows], first.size)
        figures = {"n_items": np.bincount(codes, minlength=first.size).astype(np.int64), "weight": weight}
        one_sided = table_of({"cluster": items.labels(old, rows[first]), **figures})
        return listed(one_sided, (), "n_items" if order_by is None else order_by, limit)
    known = None
    if outcome is not None:
        by_name = {new: name for name, new in OUTCOMES[old].items()}
        if not is_one_of(outcome, by_name):
            names = ", ".join(map(repr, (*by_name, OF_ONE_SIDE[old])))
            kind = "a baseline" if old == "true" else "an experiment"
            raise OptionError(f"the outcome of {kind} cluster must be one of {names}, not {quoted(outcome)}")
        known = by_name[outcome]
    with in_words_of_a_diff():
        if known is not None:
            require_defined(ev.contingency)
        more = dict if diff._judgement is None else partial(diff._judgement.of_clusters, old, diff._judging)
        how = asked_order(order_by), limit, known, diff._judging
        found = clusters.clusters_in_order(ev.kept, ev.figures, old, *how, more)
    return renamed(_in_outcomes(found.to_arrow().drop_columns(["code"]), old), ["cluster"])


def _in_outcomes(table: pa.Table, side: str) -> pa.Table:
    """Return a listing of clusters with a diff's outcomes or, if clusters overlap, whether each is unchanged."""
    at = table.column_names.index("exact")
    if "outcome" not in table.column_names:
        return table.rename_columns({"exact": "unchanged"})
    outcomes = table["outcome"].combine_chunks()
    names = pa.array([OUTCOMES[side][name] for name in outcomes.dictionary.to_pylist()], pa.string())
    own = pa.DictionaryArray.from_arrays(outcomes.indices, names)
    found = table.set_column(table.column_names.index("outcome"), "outcome", own)
    return found.remove_column(at)


def items_of(
    diff: Diff, columns: str | Iterable[str], where: tuple[Any, Any], order_by: str | None, limit: int | None
) -> Table:
    """Return all items, or those of a baseline and an experiment cluster, as `Diff.items` does."""
    ev = diff.evaluation
    with in_words_of_a_diff():
        items = ev.kept_items()
        asked = asked_columns(diff, columns)
        here = rows_in_clusters(ev.kept, *where)
        table = clusters.item_columns(ev.contingency, ev.kept.rows, ev.metrics, np.flatnonzero(here))
        if diff._judgement is not None:
            for name, scores in diff._judgement.of_items(diff._judging).items():
                table = table.append_column(name, from_numpy(scores[here]))
        order = None if order_by is None else asked_order(order_by)
        found = listed(table, diff.metrics, order, limit, named_by=("row", "item", items.ids)).to_arrow()
    at = to_numpy(found["row"])
    found = renamed(found.drop_columns(["row"]), ["item"]).to_arrow()
    for k, (new, old) in enumerate(SIDES.items(), 1):
        found = found.add_column(k, f"{new}_cluster", items.labels(old, at))
    if diff._judgement is not None and TRUE_CLUSTER not in asked:
        asked = [TRUE_CLUSTER, *asked]
    return Table(in_a_diff(with_attributes(found, ev.kept, asked, at, 3), asked))


def item_of(diff: Diff, which: Any, columns: str | Iterable[str], members: int) -> ChangedItem:
    """Return one item, as `Diff.item` does."""
    ev = diff.evaluation
    with in_words_of_a_diff():
        found = dict(ev.item(which, columns=asked_columns(diff, columns), members=members))
    listed_sets = found.pop("members")
    attributes = {"attributes": _named(found.pop("attributes"))} if "attributes" in found else {}
    figures = _in_names(found)
    own = {name: figures.pop(name) for name in ("item", "baseline_cluster", "experiment_cluster")}
    if diff._judgement is not None:
        row = int(ev.kept_items().rows_of([which])[0])
        labels = with_attributes(pa.table({"row": [row]}), ev.kept, [TRUE_CLUSTER], np.array([row]), 1)
        own[TRUE_CLUSTER] = labels[TRUE_CLUSTER][0].as_py()
        figures |= {name: float(each[row]) for name, each in diff._judgement.of_items(diff._judging).items()}
    sets = {new: listed_sets[name] for name, new in SETS.items() if name in listed_sets}
    return ChangedItem({**own, **figures, **attributes, "members": sets})


def cluster_of(
    diff: Diff, side: str, which: Any, columns: str | Iterable[str] | None, members: int
) -> ChangedCluster:
    """Return a cluster, as `Diff.cluster` does."""
    old, ev = side_of(side), diff.evaluation
    with in_words_of_a_diff():
        if columns is not None:
            names = asked_columns(diff, columns)
        else:
            names = chosen_columns(ev.kept, None)
            if diff._judgement is not None:
                names = list(dict.fromkeys([TRUE_CLUSTER, *names]))[: max(1, len(names))]
        return changed_cluster(ev.cluster(old, which, columns=names, members=members))


def slices_of(
    diff: Diff, key: SliceKey, attributes: Any, errors: bool, order_by: str | None, limit: int | None
) -> Table:
    """Return changes and scores by slice, as `Diff.slices` does."""
    ev, name = diff.evaluation, slice_name(key)
    order = asked_order(order_by) if order_by is not None or limit is not None else None
    of_scores = ev.standard_errors if errors else None
    if known_within_limit(diff.sliced.get(name), ev.kept, key, attributes, of_scores):
        return requested_slices(diff, name, order, limit)
    with in_words_of_a_diff():
        ev.kept_items()
        by = key if isinstance(key, Mapping) else asked_key(diff, key)
        table = slice_table(ev.kept, by, attributes, of_scores, partial(_columns, diff, errors=errors))
        return renamed_slices(listed(table, diff.metrics, order, limit))


def requested_slices(diff: Diff, name: str, order: str | None, limit: int | None = None) -> Table:
    """Return slices that were requested when the diff was made, ordered by a column of the evaluation."""
    if order is None:
        return diff.sliced[name]
    kept = diff.sliced[name]
    ordered = kept._changed(lambda table: table.rename_columns([BACK.get(n, n) for n in table.column_names]))
    ordered = listed(ordered, diff.metrics, order, limit).to_arrow()
    return Table(ordered.rename_columns(kept.column_names))


def _columns(diff: Diff, codes: Any, n: int, *, errors: bool) -> dict[str, Any]:
    ev = diff.evaluation
    found = means_of_groups(ev.kept, ev.figures, codes, n, ev.standard_errors if errors else None)
    if diff._judgement is None:
        return found
    return found | diff._judgement.of_slices(codes, n, diff._judging, errors=errors)


def asked_key(diff: Diff, key: SliceKey) -> SliceKey:
    """Return the slicing that an evaluation takes for one of a diff."""
    _require_clear(diff, elements(check_key(key)))
    return asked_slices(key, judged=diff.verdict is not None)


def asked_columns(diff: Diff, columns: str | Iterable[str]) -> list[str]:
    """Return the names that an evaluation has for these attributes of a diff."""
    names, judged = as_several(columns), diff._judgement is not None
    _require_clear(diff, names)
    asked = [
        asked_name(name, judged=judged) if isinstance(name, str) and name not in OF_SIZES else name
        for name in names
    ]
    return chosen_columns(diff.evaluation.kept, asked)


def _require_clear(diff: Diff, names: Iterable[object]) -> None:
    """Raise ColumnError if the baseline or the experiment has a requested attribute named "true_cluster"."""
    if diff._judgement is not None and any(is_one_of(name, (TRUE_CLUSTER,)) for name in names):
        sides = diff.evaluation.kept_items().attribute_sides()
        own = {place: sides[place] for place in PLACES.values()}
        require_clear(TRUE_CLUSTER, "the cluster of the truth", own)
