"""Clusters to open whose cells and rows were looked up before: they take the few rows that are shown, and no other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbcubed.cells.cell_parts import NoCells
from fastbcubed.cells.excerpts import CellExcerpt, Codes
from fastbcubed.cells.records import SIDES
from fastbcubed.cells.scored_rows import ScoredRows
from fastbcubed.results.listings.excerpt import of_rows
from fastbcubed.results.listings.first_members import FirstMembers
from fastbcubed.results.listings.opening import Opened, chosen_columns, plain_id, rows_of_cluster
from fastbcubed.results.listings.table import Table
from fastbcubed.results.openings import Openings
from fastbcubed.results.text.cluster_view import Cluster
from fastbcubed.sources.arrays import from_numpy, to_numpy

#: Where a part has the cluster of the other side, by code.
CODE = "code"
#: Clusters by side and code.
Keyed = Mapping[str, Mapping[int, "KnownCluster"]]


@dataclass(frozen=True, eq=False)
class KnownCluster:
    """What a cluster comes to, and its first parts, by code, with the rows of the first members of each."""

    figures: Mapping[str, Any]
    first: FirstMembers


class FirstOfCluster(Cluster):
    """A cluster of which the first members are known."""

    @property
    def n_listed(self) -> int:
        """How many parts it has."""
        return int(self["n_parts"])


def none_known() -> Keyed:
    """Return that nothing is known of any cluster."""
    return {side: {} for side in SIDES}


def look_up(ev: Openings, codes: Codes, members: int, most: int) -> Keyed:
    """Return what opens some clusters with so many members; none if they have more rows than `most` together."""
    part = ev.excerpt(codes, most=most) if any(own.size for own in codes.values()) else None
    if part is None:
        return none_known()
    rows = part.kept_items().rows  # type: ignore[attr-defined]
    return {
        side: {
            code: _looked_up(part, side, plain_id(label), members, rows)
            for code, label in zip(
                codes[side].tolist(), ev.cluster_labels(side, codes[side]).to_pylist(), strict=True
            )
            if label is not None
        }
        for side in SIDES
    }


def _looked_up(part: Openings, side: str, label: Any, members: int, rows: NDArray[np.int64]) -> KnownCluster:
    """Return what is known of a cluster of an excerpt, whose rows are these of the whole."""
    opened = Opened.of(part, side, rows_of_cluster(part, side, label))
    first, table = opened.first_members(part, members), part.contingency
    assert isinstance(table, CellExcerpt)
    codes = table.true if opened.other == "true" else table.pred
    whole = table.in_whole[opened.other][codes[opened.cells[: first.parts.num_rows]]]
    parts = first.parts.set_column(0, CODE, from_numpy(whole))
    return KnownCluster(opened.figures(part, label), replace(first, parts=parts).at(rows))


class KnownClusters:
    """Opens clusters that were looked up, each with so many members; each column of these is read once."""

    def __init__(self, ev: Openings, known: Keyed, members: int) -> None:
        self._ev = ev
        found = {(side, code): each for side, own in known.items() for code, each in own.items()}
        self._figures = {key: each.figures for key, each in found.items()}
        first = [each.first.fewer(members) for each in found.values()]
        rows = [each.every_row() for each in first]
        starts = np.cumsum([0, *(own.size for own in rows)]).tolist()
        first = [each.numbered_from(start) for each, start in zip(_named(ev, first), starts, strict=False)]
        self._first = dict(zip(found, first, strict=True))
        self._part = _of_rows(ev, np.concatenate([np.empty(0, np.int64), *rows]))

    def cluster(self, side: str, code: int, label: Any, columns: Any) -> Cluster:
        """Return a cluster as `Evaluation.cluster` does."""
        shown = self._first[side, code].shown(self._part, chosen_columns(self._part, columns))
        figures = {"side": side, "cluster": label, **self._figures[side, code], **shown}
        parts = Table(self._first[side, code].parts)
        return FirstOfCluster(figures, parts, lambda: self._ev.cluster(side, label, columns=columns).table)


def _of_rows(ev: Openings, rows: NDArray[np.int64]) -> Openings:
    """Return what tells of some rows, which have numbers of their own, and of no cell."""
    cells, own = ev.contingency, ScoredRows.of(np.full(rows.size, -1), ev._rows().weights_of(rows))
    none = NoCells(rows.size, cells.weighted, cells.weighting, cells.outside, rows=own)
    return of_rows(ev, none, rows, Openings)


def _named(ev: Openings, first: Sequence[FirstMembers]) -> list[FirstMembers]:
    """Return what clusters show with the labels of their parts in place of codes; these are read once a side."""
    named = list(first)
    for side, other in (SIDES, SIDES[::-1]):
        own = [k for k, each in enumerate(first) if each.side == side]
        codes = [to_numpy(first[k].parts[CODE]) for k in own]
        labels = ev.cluster_labels(other, np.concatenate([np.empty(0, np.int64), *codes]))
        start = 0
        for k, n in zip(own, map(len, codes), strict=True):
            parts = first[k].parts.set_column(0, f"{other}_cluster", labels.slice(start, n))
            named[k], start = replace(first[k], parts=parts), start + n
    return named
