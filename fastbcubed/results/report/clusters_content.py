"""Clusters on a page: those that cost most, each with its members by the clusters of the other side."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from fastbcubed.cells.records import SIDES
from fastbcubed.errors import MetricError, NotKeptError, OptionError
from fastbcubed.metrics.losses import LOSS_OF_SIDE
from fastbcubed.results.listings.summary import plain
from fastbcubed.results.openings import OpenOne
from fastbcubed.results.report.asked import Asked
from fastbcubed.results.text.cluster_view import differing
from fastbcubed.sources.arrays import to_numpy

#: Attributes that are shown beside members.
MOST_COLUMNS = 12
#: Figures of a cluster in a list.
FIGURES = ("cluster", "n_items", "weight", "n_parts", "outcome", "precision_loss", "recall_loss")


def clusters_content(ev: Any, asked: Asked) -> dict[str, Any] | None:
    """Return the clusters of either side that cost most; None if the clusters were not kept."""
    if not ev.has_clusters or not asked.worst:
        return None
    tables = {side: _costliest(ev, side, asked.worst) for side in SIDES[::-1]}
    codes = {side: to_numpy(table["code"]) for side, table in tables.items()}
    open_one = ev.opener(codes, asked.columns[:MOST_COLUMNS], asked.members) if ev.has_items else None
    return {side: _side(ev, side, table, open_one) for side, table in tables.items()}


def _costliest(ev: Any, side: str, limit: int) -> Any:
    """Return the clusters of a side that cost most, as far as they cost anything."""
    n_lossy = _n_lossy(ev, side)
    table = ev.coded_clusters(side, limit=limit if n_lossy is None else min(limit, n_lossy))
    return table.filter(table[LOSS_OF_SIDE[side]].to_numpy() > 0)


def _side(ev: Any, side: str, table: Any, open_one: OpenOne | None) -> dict[str, Any]:
    """Return the clusters of a side that cost most, and how many there are."""
    lost, total = LOSS_OF_SIDE[side], ev.loss_of_all(side)
    rows = []
    for row in table.to_pylist():
        own = {name: row[name] for name in FIGURES if name in row}
        own |= {name: row[name] for name in ("precision", "recall", "f1") if name in row}
        own["share_of_loss"] = row[lost] / total if total else None
        rows.append({"id": anchor(side, row["cluster"]), **own, "opened": _opened(open_one, side, row)})
    return {
        "loss": lost, "n": ev.summary[side]["clusters"], "n_lossy": _n_lossy(ev, side),
        "share_shown": sum(row[lost] for row in rows) / total if total else None,
        "opened": ev.has_items, "rows": rows,
    }  # fmt: skip


def anchor(side: str, cluster: Any) -> str:
    """Return where a cluster is on a page, of any result that has one of this name.

    Examples
    --------
    >>> anchor("pred", 7) == anchor("pred", 7), anchor("pred", 7) == anchor("pred", "7")
    (True, False)
    """
    text = json.dumps(plain(cluster), sort_keys=True, ensure_ascii=False)
    return f"{side}-{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}"


def _odd(values: list[Any]) -> list[bool]:
    """Return which values differ from the commonest one; none do unless most agree, as nothing is odd among many."""
    found = differing(values)
    known = sum(value is not None for value in values)
    return found if 2 * sum(found) < known else [False] * len(values)


def _n_lossy(ev: Any, side: str) -> int | None:
    try:
        return int(ev.concentration[side]["n_lossy"])
    except (OptionError, NotKeptError, AttributeError):
        return None


def _opened(open_one: OpenOne | None, side: str, row: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the members of a cluster; None of one that has no name, or whose items were not kept."""
    if row["cluster"] is None or open_one is None:
        return None
    try:
        return opened_content(open_one(side, row["code"], row["cluster"]))
    except (NotKeptError, MetricError):
        return None


def opened_content(found: Any) -> dict[str, Any]:
    """Return what an opened cluster shows, with the attributes that differ from the commonest value."""
    figures = dict(found)
    parts = [*figures["parts"], figures["one_sided"]]
    members = [member for part in parts for member in part["members"]]
    marked = {name: _odd([member["attributes"][name] for member in members]) for name in figures["columns"]}
    for k, member in enumerate(members):
        member["differs"] = [name for name, flags in marked.items() if flags[k]]
    other = next(side for side in found.kinds if side != found["side"])
    return figures | {
        "n_listed": found.n_listed,
        "other": other,
        "other_kind": found.kinds[other].capitalize(),
    }
