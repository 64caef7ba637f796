"""Listings of a diff: clusters, items and slices; and a single cluster or item with its members."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa

from fastbcubed.diff_runs.cluster_changes import OF_ONE_SIDE, clusters_of_one_side, not_defined
from fastbcubed.diff_runs.vocabulary import (
    BACK,
    COLUMNS,
    OF_SIZES,
    OUTCOMES,
    PLACES,
    SIDES,
    TRUE_CLUSTER,
    asked_name,
    asked_order,
    asked_slices,
    called,
    in_a_diff,
    in_words_of_a_diff,
    renamed,
    renamed_slices,
    side_of,
)
from fastbcubed.errors import OptionError, quoted
from fastbcubed.inputs.arrays import from_numpy, from_texts, table_of, to_numpy
from fastbcubed.render.number_formats import score_text
from fastbcubed.results import clusters
from fastbcubed.results.cluster_outcomes import require_defined
from fastbcubed.results.evaluation_data import with_quick_errors
from fastbcubed.results.evaluation_text import PLACES as PLACES_OF_ITEM
from fastbcubed.results.evaluation_text import Cluster, Item
from fastbcubed.results.members import chosen_columns, rows_in_clusters, with_attributes
from fastbcubed.results.slices import (
    SliceKey,
    check_key,
    elements,
    known_within_limit,
    means_of_groups,
    require_clear,
    slice_name,
    slice_table,
)
from fastbcubed.results.table import Table, listed
from fastbcubed.runtime.arguments import as_several, is_one_of

if TYPE_CHECKING:
    from fastbcubed.diff_runs.diff_summary import DiffData

#: The names of an item's sets in a diff, by those in an evaluation.
SETS = {"tp": "stable", "fn": "split", "fp": "merged", "tn": "apart"}


class ChangedCluster(Cluster):
    """The result of `Diff.cluster`: a dict with a readable text form.

    The keys are side, cluster, n_items, weight, n_parts, outcome (not for overlapping clusterings), split_change,
    merge_change, weighted, overlapping and columns; "parts", a list of the parts shown, each with the other side's
    cluster, figures and "members"; and "one_sided", which describes the items that the other side does not have:
    n_items, policy and members. A member has an item, a weight and attributes.

    Attributes
    ----------
    parts : Table
        A table of all parts of the cluster, largest part first.
    table : Table
        A table of all members of the cluster, part by part.

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
    """The result of `Diff.item`: a dict with a readable text form.

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


def clusters_of(
    diff: DiffData, side: str, order_by: str | None, limit: int | None, outcome: str | None
) -> Table:
    """Return changes and scores by cluster, as `Diff.clusters` does."""
    old, ev = side_of(side), diff.evaluation
    if is_one_of(outcome, (OF_ONE_SIDE[old],)):
        if ev.contingency.overlapping:
            raise not_defined()
        items = ev.kept_items()
        rows, codes, first = clusters_of_one_side(ev, items, old)
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
    names = from_texts([OUTCOMES[side][name] for name in outcomes.dictionary.to_pylist()])
    own = pa.DictionaryArray.from_arrays(outcomes.indices, names)
    found = table.set_column(table.column_names.index("outcome"), "outcome", own)
    return found.remove_column(at)


def items_of(
    diff: DiffData,
    columns: str | Iterable[str],
    where: tuple[Any, Any],
    order_by: str | None,
    limit: int | None,
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


def item_of(diff: DiffData, which: Any, columns: str | Iterable[str], members: int) -> ChangedItem:
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
    diff: DiffData, side: str, which: Any, columns: str | Iterable[str] | None, members: int
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
    diff: DiffData,
    key: SliceKey,
    attributes: Any = None,
    errors: bool = False,
    order_by: str | None = None,
    limit: int | None = None,
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


def shown_slices(diff: DiffData) -> dict[str, Table]:
    """Return the requested slices as printed and written: with standard errors if there are few."""
    if diff._shown_slices is None:
        diff._shown_slices = with_quick_errors(diff.evaluation, diff.sliced, partial(slices_of, diff))
    return diff._shown_slices


def requested_slices(diff: DiffData, name: str, order: str | None, limit: int | None = None) -> Table:
    """Return slices that were requested when the diff was made, ordered by a column of the evaluation."""
    if order is None:
        return diff.sliced[name]
    kept = diff.sliced[name]
    ordered = kept._changed(lambda table: table.rename_columns([BACK.get(n, n) for n in table.column_names]))
    ordered = listed(ordered, diff.metrics, order, limit).to_arrow()
    return Table(ordered.rename_columns(kept.column_names))


def _columns(diff: DiffData, codes: Any, n: int, *, errors: bool) -> dict[str, Any]:
    ev = diff.evaluation
    found = means_of_groups(ev.kept, ev.figures, codes, n, ev.standard_errors if errors else None)
    if diff._judgement is None:
        return found
    return found | diff._judgement.of_slices(codes, n, diff._judging, errors=errors)


def asked_key(diff: DiffData, key: SliceKey) -> SliceKey:
    """Return the slicing that an evaluation takes for one of a diff."""
    _require_clear(diff, elements(check_key(key)))
    return asked_slices(key, judged=diff.verdict is not None)


def asked_columns(diff: DiffData, columns: str | Iterable[str]) -> list[str]:
    """Return the names that an evaluation has for these attributes of a diff."""
    names, judged = as_several(columns), diff._judgement is not None
    _require_clear(diff, names)
    asked = [
        asked_name(name, judged=judged) if isinstance(name, str) and name not in OF_SIZES else name
        for name in names
    ]
    return chosen_columns(diff.evaluation.kept, asked)


def _require_clear(diff: DiffData, names: Iterable[object]) -> None:
    """Raise ColumnError if the baseline or the experiment has a requested attribute named "true_cluster"."""
    if diff._judgement is not None and any(is_one_of(name, (TRUE_CLUSTER,)) for name in names):
        sides = diff.evaluation.kept_items().attribute_sides()
        own = {place: sides[place] for place in PLACES.values()}
        require_clear(TRUE_CLUSTER, "the cluster of the truth", own)
