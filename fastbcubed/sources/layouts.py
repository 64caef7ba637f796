"""Columns that other tools give to items and clusters: one table of their layouts, and what of it a table has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple


@dataclass(frozen=True)
class Layout:
    """How a tool names the columns of its output; names are in lower case here, and stand for any case."""

    tool: str  #: the tool, as messages call it
    clusters: tuple[str, ...]  #: what its column of clusters may be called
    items: tuple[str, ...]  #: what the column of items may be called
    spare_items: tuple[str, ...] = ()  #: what it may be called if the table has none of these
    source: str | None = None  #: a column that makes a composite id with the item where it is there
    marks: tuple[str, ...] = ()  #: further columns that tell it from layouts with the same names
    #: a column that is not 0 in rows that link two clusters, which are no memberships
    links: str | None = None


#: The layouts that are recognised: to add one is to add a row.
LAYOUTS = (
    Layout("fastbcubed", ("cluster",), ("item",)),
    Layout("Splink", ("cluster_id",), ("unique_id",), source="source_dataset"),
    Layout(
        "Zingg", ("z_cluster", "zingg_id"), ("id", "recid", "rec_id", "record_id"), spare_items=("z_zid",),
        marks=("z_minscore", "z_maxscore", "z_zid"),
    ),
    Layout(
        "dedupe", ("cluster_id", "cluster id"), ("id", "record_id"),
        marks=("confidence_score", "confidence", "canonical_id"),
    ),
    Layout(
        "Senzing", ("resolved_entity_id", "cluster_id"), ("record_id",), source="data_source",
        marks=("data_source", "match_key", "match_level", "match_level_code"), links="related_entity_id",
    ),
)  # fmt: skip

#: How many layouts have a name.
_TOOLS = Counter(name for layout in LAYOUTS for name in {*layout.clusters, *layout.items})


class Reading(NamedTuple):
    """Columns of a table that may be its items and clusters, and whose layout that is."""

    items: tuple[str, ...]
    clusters: tuple[str, ...]
    layout: Layout
    marked: bool = False  #: whether the table has one of its marks

    @property
    def tool(self) -> str | None:
        """The tool that has written the table, if a column tells it."""
        own = {name.lower() for name in (*self.items, *self.clusters)}
        told = self.marked or any(_TOOLS[name] == 1 for name in own)
        return self.layout.tool if told and self.layout is not LAYOUTS[0] else None


def readings(
    names: Sequence[str], items: Sequence[str] | None, clusters: Sequence[str] | None
) -> list[Reading]:
    """Return how the columns of a table may be read, each way once.

    `items` and `clusters` are the columns that are known already, else None. Where a layout has its marks, those
    without do not count; nor do items without the source that another reading has.
    """
    known: dict[str, list[str]] = {}
    for name in names:
        known.setdefault(name.lower(), []).append(name)
    found = [each for layout in LAYOUTS for each in _of_layout(layout, known, items, clusters)]
    marked = [each for each in found if each.marked]
    found = marked or found
    found = [each for each in found if not any(set(each.items) < set(other.items) for other in found)]
    return list({(each.items, each.clusters): each for each in reversed(found)}.values())[::-1]


def _of_layout(
    layout: Layout,
    known: Mapping[str, list[str]],
    items: Sequence[str] | None,
    clusters: Sequence[str] | None,
) -> Iterator[Reading]:
    """Yield how a layout reads columns, which are known by their names in lower case."""

    def of(names: Sequence[str]) -> list[str]:
        return [name for each in names for name in known.get(each, ())]

    sources: list[str | None] = [*of([layout.source] if layout.source else ())] or [None]
    ids = of(layout.items) or of(layout.spare_items)
    all_items = (
        [tuple(items)]
        if items
        else [(each,) if s is None else (s, each) for s, each in product(sources, ids)]
    )
    all_clusters = [tuple(clusters)] if clusters else [(each,) for each in of(layout.clusters)]
    marked = any(mark in known for mark in layout.marks)
    for own, groups in product(all_items, all_clusters):
        if not set(own) & set(groups):
            yield Reading(own, groups, layout, marked)
