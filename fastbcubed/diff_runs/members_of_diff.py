"""Clusters and items of a diff for display: members that left, joined and stayed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from fastbcubed.diff_runs.vocabulary import COLUMNS, OUTCOMES, SIDES, TRUE_CLUSTER, called, in_a_diff, renamed
from fastbcubed.render.wording import score_text
from fastbcubed.results.table import Table
from fastbcubed.results.views import PLACES, Cluster, Item

#: The sets of an item, by what an evaluation calls them.
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
    """Return a cluster of an evaluation as one of a diff."""
    sides = {old: new for new, old in SIDES.items()}
    found = _in_names(cluster)
    attributes = list(cluster["columns"])
    found["columns"] = list(map(called, attributes))
    found["parts"] = [{**_in_names(part), "members": _members(part)} for part in cluster["parts"]]
    found["one_sided"] = {**cluster["one_sided"], "members": _members(cluster["one_sided"])}
    found["side"] = sides[cluster["side"]]
    if found.get("outcome"):
        found["outcome"] = OUTCOMES[cluster["side"]][cluster["outcome"]]
    return ChangedCluster(found, renamed(cluster.parts), lambda: _table(cluster, attributes))


def _members(part: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the members of a part, whose attributes go by the names of a diff."""
    return [{**each, "attributes": _named(each["attributes"])} for each in part["members"]]


def _named(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {called(name): value for name, value in attributes.items()}


def _table(cluster: Cluster, attributes: list[str]) -> Table:
    table = cluster.table
    figures = {"true_cluster", "pred_cluster"} if TRUE_CLUSTER not in attributes else {"pred_cluster"}
    known = [name for name in table.column_names if name not in figures]
    return Table(in_a_diff(renamed(table, known).to_arrow(), attributes))


def _in_names(figures: Mapping[str, Any]) -> dict[str, Any]:
    """Return a dict of an evaluation with the keys of a diff, splits first."""
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
    places: ClassVar[tuple[str, ...]] = (*PLACES, *kinds, *sets, *filter(None, COLUMNS.values()))


def changed_item(
    item: Item, scores: Mapping[str, float], true_cluster: Any = None, *, judged: bool
) -> ChangedItem:
    """Return an item of an evaluation as one of a diff, with further scores and its true cluster if it is judged."""
    found = dict(item)
    members = found.pop("members")
    attributes = {"attributes": _named(found.pop("attributes"))} if "attributes" in found else {}
    figures = _in_names(found)
    own = {name: figures.pop(name) for name in ("item", "baseline_cluster", "experiment_cluster")}
    if judged:
        own[TRUE_CLUSTER] = true_cluster
    members = {SETS[name]: each for name, each in members.items()}
    order = {name: members[name] for name in SETS.values() if name in members}
    return ChangedItem({**own, **figures, **scores, **attributes, "members": order})
