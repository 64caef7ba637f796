"""The columns of items and clusters: as named, of default names, or as tools write them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from fastbcubed.errors import ColumnError, arg, first_few
from fastbcubed.inputs import arrow_compute as pc
from fastbcubed.inputs.arrays import plain, to_numpy
from fastbcubed.inputs.link_columns import links_hint, require_columns
from fastbcubed.inputs.suggestions import Typed
from fastbcubed.inputs.tables import ColumnName, Source, column_names, listed


@dataclass(frozen=True)
class Layout:
    """A tool's names for the columns of its output, in lower case here, matched in any case."""

    tool: str  #: name of the tool in messages
    clusters: tuple[str, ...]  #: possible names of its cluster column
    items: tuple[str, ...]  #: possible names of the item column
    spare_items: tuple[str, ...] = ()  #: possible names if the table has none of these
    source: str | None = None  #: a column that, if present, makes a composite id with the item
    marks: tuple[str, ...] = ()  #: further columns that distinguish it from layouts with the same names
    #: a column that is nonzero in rows that link two clusters rather than give a membership
    links: str | None = None


#: The layouts that are recognised; to add one, add a row.
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

#: Number of layouts per column name.
_TOOLS = Counter(name for layout in LAYOUTS for name in {*layout.clusters, *layout.items})


class Reading(NamedTuple):
    """Columns of a table that may be its items and clusters, and the layout they match."""

    items: tuple[str, ...]
    clusters: tuple[str, ...]
    layout: Layout
    marked: bool = False  #: whether the table has one of the layout's marks

    @property
    def tool(self) -> str | None:
        """The tool that wrote the table, if a column identifies it."""
        own = {name.lower() for name in (*self.items, *self.clusters)}
        identified = self.marked or any(_TOOLS[name] == 1 for name in own)
        return self.layout.tool if identified and self.layout is not LAYOUTS[0] else None


def readings(
    names: Sequence[str], items: Sequence[str] | None, clusters: Sequence[str] | None
) -> list[Reading]:
    """Return the possible readings of a table's columns, each once.

    `items` and `clusters` are the columns already known, else None. If a layout has its marks, those without are
    ignored, as are items without the source that another reading has.
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
    """Yield the readings of columns, given by lower-case names, under a layout."""

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


class Chosen(NamedTuple):
    """The chosen columns, in the order requested, and how they were recognised if they were."""

    columns: list[list[str]]
    reading: Reading | None = None


def choose_columns(
    rows: Source, asked: Mapping[str, ColumnName], taken: str | None = None, typed: Typed | None = None
) -> Chosen:
    """Return the columns for an item and a cluster, or for an item and a weight.

    `asked` has the requested columns by default name: a column, or the columns of a composite id; `taken` is a
    further column with another use; `typed` writes arguments for messages.

    If the table lacks a default name ("item" for the item, and so on), the only column left without the others is
    used, or a known tool's column.
    """
    typed = typed or Typed()
    chosen = {part: column_names(names, part) for part, names in asked.items()}
    for part, names in chosen.items():
        if names != [part]:
            require_columns(rows, part, names, typed)
    missing = [part for part, names in chosen.items() if names == [part] and part not in rows.names]
    used = {taken, *(name for names in chosen.values() for name in names)}
    left = [name for name in rows.names if name not in used]
    reading = None
    if len(missing) == 1 and len(left) == 1:
        chosen[missing.pop()] = left
    elif missing and "cluster" in asked:
        reading = _recognised_layout(rows, chosen, missing, taken, typed)
        if reading is not None:
            chosen = {"item": list(reading.items), "cluster": list(reading.clusters)}
            missing = []
    if missing:
        wanted = " and no ".join(f"column {part!r}" for part in missing)
        hint = " and ".join(f"{arg(part, ...)}" for part in missing)
        raise ColumnError(
            f"There is no {wanted} in {rows.where} ({listed(rows.names)}). Name the right one with {hint}."
            + (rows.hint or links_hint(rows.names))
        )
    first, second = chosen.values()
    if common := [name for name in first if name in second]:
        raise ColumnError(
            f"{' and '.join(chosen)} are the same column of {rows.where}: {', '.join(common)}. Name two."
        )
    return Chosen([first, second], reading)


def _recognised_layout(
    rows: Source, chosen: Mapping[str, list[str]], missing: list[str], taken: str | None, typed: Typed
) -> Reading | None:
    """Return the reading of a known tool's columns; None if there are none; raise if ambiguous."""
    names = [name for name in rows.names if name != taken]
    items, clusters = (None if part in missing else chosen[part] for part in ("item", "cluster"))
    found = readings(names, items, clusters)
    if clusters == ["cluster"]:  # the default, which may mean a tool's column
        found += [each for each in readings(names, items, None) if each.clusters != ("cluster",)]
    if items == ["item"]:
        found += [each for each in readings(names, None, clusters) if each.items != ("item",)]
    if len(found) < 2:
        return found[0] if found else None
    raise ColumnError(
        f"The columns of {rows.where} can be read in {len(found)} ways ({listed(rows.names)}). Say which: "
        f"{'; or '.join(_alternatives(found, typed))}."
    )


def _alternatives(found: list[Reading], typed: Typed) -> list[str]:
    """Return the arguments that select each of several readings: those that distinguish it and are not defaults."""
    ways = []
    for each in found:
        parts = {part: own for part, own in zip(("item", "cluster"), each[:2], strict=True) if own != (part,)}
        telling = {
            part: own for part, own in parts.items() if any(getattr(r, f"{part}s") != own for r in found)
        }
        ways.append(typed(telling or parts))
    return ways


def refuse_links(rows: Source, reading: Reading) -> None:
    """Raise if rows link two clusters rather than an item and its cluster."""
    name = next((name for name in rows.names if name.lower() == reading.layout.links), None)
    if name is None:
        return
    values = plain(rows.column(name))
    texts = values if pa.types.is_string(values.type) else values.cast(pa.string())
    none = pc.is_in(texts, value_set=pa.array(["", "0", None], pa.string()))
    linking = np.flatnonzero(~to_numpy(none))
    if linking.size:
        raise ColumnError(
            f"{linking.size} of {len(values)} rows of {rows.where} have a {name} other than 0 (first: row "
            f"{first_few(linking[:4].tolist())}): they tell which clusters are related, not which items are in one. "
            "Leave them out, or export without relations."
        )
