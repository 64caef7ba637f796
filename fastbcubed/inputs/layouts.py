"""Choice of a table's columns of items and clusters: named ones, defaults, a tool's names, or the only column left."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from fastbcubed.errors import ColumnError, OptionError, arg, first_few, quoted
from fastbcubed.inputs import arrow_compute as pc
from fastbcubed.inputs.arrays import plain, to_numpy
from fastbcubed.inputs.link_columns import links_hint, require_columns
from fastbcubed.inputs.tables import (
    BY_TOOL,
    DEFAULT,
    LEFT,
    NAMED,
    ROW,
    ColumnName,
    Source,
    column_names,
    listed,
)
from fastbcubed.inputs.typed_columns import Typed, Unnamed

if TYPE_CHECKING:
    from fastbcubed.inputs.id_columns import Column


@dataclass(frozen=True)
class Layout:
    """The names that a tool gives to the columns of its output, here in lower case, matched in any case."""

    tool: str  #: name of the tool in messages
    clusters: tuple[str, ...]  #: possible names of its cluster column
    items: tuple[str, ...]  #: possible names of its item column, which make a composite id with `source`
    spare_items: tuple[str, ...] = ()  #: possible names of the item column if none of `items` is present
    source: str | None = None  #: name of a column that, if present, makes a composite id with the item
    marks: tuple[str, ...] = ()  #: further columns, which distinguish layouts with the same names
    #: a column that is nonzero in rows that link two clusters rather than give a membership
    links: str | None = None
    at: str = r"\0"  #: pattern of the names of its cluster columns, one per threshold

    def names_cluster(self, name: str) -> bool:
        """Return whether this layout has a column of clusters with this name."""
        return name.lower() in self.clusters or re.fullmatch(self.at, name.lower()) is not None


#: The layouts that are recognised; add a row to add one.
LAYOUTS = (
    Layout("Splink", ("cluster_id",), ("unique_id",), source="source_dataset", at=r"cluster_(p|mw)_[-\d_]+"),
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
#: Number of layouts that use each column name.
_TOOLS = Counter(name for layout in LAYOUTS for name in {*layout.clusters, *layout.items})

#: Words in names of files and columns that indicate the side.
TRUTH_WORDS = {"truth", "true", "gold", "golden", "reference", "gt", "labels", "labelled", "labeled"}
PREDICTION_WORDS = {"pred", "preds", "prediction", "predictions", "predicted", "output", "system", "response"}
#: Words that mean clusters, and words that may accompany them: a name made of these competes with a column `cluster`.
CLUSTER_WORDS = TRUTH_WORDS | PREDICTION_WORDS | {
    "cluster", "clusters", "clusterid", "entity", "entities", "entityid", "label", "group", "component",
    "community",
}  # fmt: skip
WITH_CLUSTERS = {
    "id", "ids", "no", "number", "name", "x", "y", "a", "b", "l", "r", "left", "right", "old", "new", "ground", "final",
    "resolved",
}  # fmt: skip


class Part(NamedTuple):
    """The columns of the item or of the cluster, why these were chosen, and which others were possible."""

    columns: tuple[str, ...]
    reason: str
    others: tuple[tuple[str, ...], ...] = ()


class Reading(NamedTuple):
    """How the columns of a table are read, as decided by `choose_columns`."""

    item: Part
    cluster: Part
    tool: str | None = None  #: the tool that wrote the table, if the column names identify it

    @property
    def is_obvious(self) -> bool:
        """Whether no note is needed: item columns are named or default, and so are cluster columns if items are."""
        clusters = (DEFAULT,) if self.item.reason == DEFAULT else ()
        return self.item.reason in (NAMED, DEFAULT, ROW) and self.cluster.reason in (NAMED, *clusters)

    def to_dict(self) -> dict[str, Any]:
        """Return the reading as JSON: columns, reason and alternatives of each part, and the tool."""
        parts = {"item": self.item, "cluster": self.cluster}
        return {
            name: {"columns": list(part.columns), "reason": part.reason, "others": [*map(list, part.others)]}
            for name, part in parts.items()
        } | {"tool": self.tool}


class _Way(NamedTuple):
    """One way to read a table whose columns were not all named."""

    item: Part
    cluster: Part
    layout: Layout | None = None
    marked: bool = False  #: whether the table has one of the columns `marks` of the layout

    @property
    def columns(self) -> dict[str, tuple[str, ...]]:
        return {"item": self.item.columns, "cluster": self.cluster.columns}

    @property
    def tool(self) -> str | None:
        own = {name.lower() for part in self.columns.values() for name in part}
        identified = self.marked or any(_TOOLS[name] == 1 for name in own)
        if self.layout is None or not self.layout.names_cluster(self.cluster.columns[0]):
            return None
        return self.layout.tool if identified else None


def says_cluster(name: str) -> bool:
    """Return whether a column's name consists of words for clusters, and is not a tool's name for items.

    Examples
    --------
    >>> [says_cluster(name) for name in ("entity_id", "Ground truth", "pred_cluster", "age_group", "id")]
    [True, True, True, False, False]
    """
    words = set(_words(name))
    return bool(words & CLUSTER_WORDS) and words <= CLUSTER_WORDS | WITH_CLUSTERS


def _words(name: str) -> list[str]:
    return re.findall(r"[a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower())


#: Words in the names of columns that say which table or system an item comes from.
SOURCE_WORDS = {"source", "sources", "src", "dataset", "system", "database", "origin", "provider", "registry"}


def sources_hint(items: Column | None, others: Iterable[str]) -> str:
    """Return advice for equal ids of several sources, to precede other advice; empty if no column names a source."""
    found = next((name for name in others if set(_words(name)) & SOURCE_WORDS), None)
    if found is None or items is None or len(items.names) > 1:
        return ""
    return (
        f"If two sources in column {found!r} may have equal ids, pass {arg('item', [found, *items.names])}. "
    )


def choose_columns(
    rows: Source, asked: Mapping[str, ColumnName], taken: str | None = None, typed: Typed | None = None
) -> Reading:
    """Return which columns of a table are the item and the cluster.

    `asked` has the column, or the columns of a composite id, for "item" and for "cluster"; a default name that the
    table lacks, or that the caller did not give (`Unnamed`), leaves the choice open. `taken` is a column with another
    use; `typed` writes arguments for messages. The rules are those of `docs/how-to/tools.md`. If they do not decide,
    raise ColumnError with the arguments that would.
    """
    typed = typed or Typed()
    named = {part: column_names(names, part) for part, names in asked.items()}
    for part, names in named.items():
        if names != [part]:
            require_columns(rows, part, names, typed)
        elif isinstance(asked[part], Unnamed) or part not in rows.names:
            named[part] = []
    # a repeated name raises when its column is read
    names = [name for name in dict.fromkeys(rows.names) if name != taken]
    ways = _ways(names, named["item"], named["cluster"])
    for part, other in (("item", "cluster"), ("cluster", "item")):
        # a column with a part's own name was named for the other part
        if part in named[other] and not named[part] and part in names:
            raise _twice(rows, [part])
    if not ways:
        raise _missing(rows, named, names)
    if len(ways) > 1:
        raise ColumnError(
            f"The columns of {rows.where} can be read in {len(ways)} ways ({listed(rows.names)}). Say "
            f"which: {'; or '.join(_alternatives(ways, typed))}."
        )
    (way,) = ways
    if common := [name for name in way.item.columns if name in way.cluster.columns]:
        raise _twice(rows, common)
    judged = next((name for name in rows.names if name.lower() == "z_ismatch"), None)
    if judged is not None and way.cluster.columns[0].lower() == "z_cluster":
        raise ColumnError(
            f"{rows.where} has a column {judged}: these are labelled pairs from Zingg, whose z_cluster "
            "numbers the pairs. Pass the output of its match phase."
        )
    for layout in LAYOUTS:
        if layout.links is not None and layout.names_cluster(way.cluster.columns[0]):
            _refuse_links(rows, layout.links)
    return Reading(way.item, way.cluster, way.tool)


def choose_weights(rows: Source, item: ColumnName) -> tuple[list[str], str]:
    """Return the columns of the item and of its weight in a table of weights; the only other column may be either."""
    ids = column_names(item, "item")
    missing = [name for name in (*ids, "weight") if name not in rows.names]
    left = [name for name in rows.names if name not in (*ids, "weight")]
    if missing and not (len(missing) == len(left) == 1):
        raise ColumnError(
            f"There is no column {missing[0]!r} in {rows.where} ({listed(rows.names)}). A table of weights "
            f"needs the item columns and a column weight; name the item columns with {arg('item', ...)}.{rows.hint}"
        )
    found = dict(zip(missing, left, strict=True)) if missing else {}
    return [found.get(name, name) for name in ids], found.get("weight", "weight")


def _ways(names: Sequence[str], items: Sequence[str], clusters: Sequence[str]) -> list[_Way]:
    """Return the possible readings of a table, a tool's own first, given the named columns of either part, if any."""
    free = [name for name in names if name not in items]
    known: dict[str, list[str]] = {}
    for name in names:
        known.setdefault(name.lower(), []).append(name)
    if clusters:
        return _with_items(Part(tuple(clusters), NAMED, _others(free, clusters)), names, known, items)
    own = [name for name in free if _is_of_tool(name)]
    default = [name for name in free if name.lower() == "cluster"]
    further = [name for name in free if says_cluster(name) and name not in (*own, *default)]
    if own or not default:
        further = []
    kept = [name for name in further if set(_words(name)) & TRUTH_WORDS]
    found = [*own, *(name for name in further if name not in kept), *default, *kept]
    if not found:
        return _only_cluster_left(names, known, items)
    reasons = [DEFAULT if name == "cluster" else BY_TOOL for name in found]
    parts = [Part((name,), why, _others(free, [name])) for name, why in zip(found, reasons, strict=True)]
    return [way for part in parts for way in _with_items(part, names, known, items)]


def _others(names: Sequence[str], chosen: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Return the columns, other than those chosen, whose names suggest clusters."""
    return tuple(
        (name,)
        for name in names
        if name not in chosen and (name.lower() == "cluster" or _is_of_tool(name) or says_cluster(name))
    )


def _is_of_tool(name: str) -> bool:
    return any(layout.names_cluster(name) for layout in LAYOUTS)


def _only_cluster_left(
    names: Sequence[str], known: Mapping[str, list[str]], items: Sequence[str]
) -> list[_Way]:
    """Return the reading in which the only column besides the item's holds the clusters, if there is one."""
    ids = [Part(tuple(items), NAMED)] if items else []
    if not items:
        ids = [Part((name,), DEFAULT if name == "item" else BY_TOOL) for name in known.get("item", ())]
    left = [name for name in names if len(ids) == 1 and name not in ids[0].columns]
    return [_Way(ids[0], Part((left[0],), LEFT))] if len(left) == 1 else []


def _with_items(
    cluster: Part, names: Sequence[str], known: Mapping[str, list[str]], items: Sequence[str]
) -> list[_Way]:
    """Return the possible readings of a table with this cluster column.

    The items are those in column `item`; if the tool that wrote the clusters has an item column of its own, both are
    possible. If there is neither, they are in a column that another tool names, or in the only one left.
    """
    writes = [layout for layout in LAYOUTS if layout.names_cluster(cluster.columns[0])]
    if items:
        layout = writes[0] if len(writes) == 1 else None
        return [_Way(Part(tuple(items), NAMED), cluster, layout)]
    default = [name for name in known.get("item", ()) if name not in cluster.columns]
    if "item" in default:
        default = ["item"]
    of_default = [_Way(Part((name,), DEFAULT if name == "item" else BY_TOOL), cluster) for name in default]
    of_tool = _of_layouts(cluster, known, writes)
    if (of_default and cluster.reason == DEFAULT) or (of_default and not of_tool):
        return of_default
    found = of_tool + of_default or _of_layouts(cluster, known, LAYOUTS)
    left = [name for name in names if name not in cluster.columns]
    if not found and len(left) == 1:
        found = [_Way(Part((left[0],), LEFT), cluster)]
    return found


def _of_layouts(cluster: Part, known: Mapping[str, list[str]], layouts: Sequence[Layout]) -> list[_Way]:
    """Return the readings of a table's items under these layouts, each once.

    If a layout's marks are present, layouts without marks are ignored, as are items without the source column that
    another reading includes.
    """
    found = [way for layout in layouts for way in _of_layout(layout, known, cluster, layout.items)]
    found = found or [
        way for layout in layouts for way in _of_layout(layout, known, cluster, layout.spare_items)
    ]
    found = [way for way in found if way.marked] or found
    found = [
        way for way in found if not any(set(way.item.columns) < set(other.item.columns) for other in found)
    ]
    return list({way.item.columns: way for way in reversed(found)}.values())[::-1]


def _of_layout(
    layout: Layout, known: Mapping[str, list[str]], cluster: Part, ids: Sequence[str]
) -> Iterator[_Way]:
    """Yield the readings of a table's items under one layout, given the lower-case names of item columns."""
    sources: list[str | None] = [None] if layout.source is None else [*known.get(layout.source, (None,))]
    marked = any(mark in known for mark in layout.marks)
    for source, name in product(sources, [name for each in ids for name in known.get(each, ())]):
        own = (name,) if source is None else (source, name)
        if not set(own) & set(cluster.columns):
            yield _Way(Part(own, BY_TOOL), cluster, layout, marked)


def _twice(rows: Source, names: Sequence[str]) -> ColumnError:
    return ColumnError(
        f"item and cluster are the same column of {rows.where}: {', '.join(names)}. Name two different ones."
    )


def _missing(rows: Source, named: Mapping[str, Sequence[str]], names: Sequence[str]) -> ColumnError:
    """Return the error for a table without a column that can be the item or the cluster."""
    clusters = [] if named["cluster"] else _others(names, named["item"])
    known = {name.lower(): [name] for name in names}
    there = {
        "item": "item" in names or _of_layouts(Part((), LEFT), known, LAYOUTS),
        "cluster": "cluster" in names,
    }
    missing = [part for part, own in named.items() if not own and not there[part]]
    wanted = " and no ".join(f"column {part!r}" for part in missing)
    hint = " and ".join(f"{arg(part, ...)}" for part in missing)
    advice = links_hint(rows.names)
    if "cluster" in missing and clusters and not advice:
        advice = f" It may be {', '.join(name for (name,) in clusters[:4])}."
    advice = f"{advice}{rows.hint}"
    return ColumnError(
        f"There is no {wanted} in {rows.where} ({listed(rows.names)}). Name the right one with {hint}.{advice}"
    )


def _alternatives(ways: Sequence[_Way], typed: Typed) -> list[str]:
    """Return, for each of several readings, the arguments that select it, limited to the parts in which they differ."""
    columns = [way.columns for way in ways]
    return [
        typed({part: names for part, names in own.items() if any(each[part] != names for each in columns)})
        for own in columns
    ]


def _refuse_links(rows: Source, column: str) -> None:
    """Raise if rows relate two clusters rather than an item and its cluster."""
    name = next((name for name in rows.names if name.lower() == column), None)
    if name is None:
        return
    values = plain(rows.column(name))
    texts = values if pa.types.is_string(values.type) else values.cast(pa.string())
    none = pc.is_in(texts, value_set=pa.array(["", "0", None], pa.string()))
    linking = np.flatnonzero(~to_numpy(none))
    if linking.size:
        raise ColumnError(
            f"{linking.size} of {len(values)} rows of {rows.where} have a {name} other than 0 (first: row "
            f"{first_few(linking[:4].tolist())}): these rows relate clusters to each other and assign no "
            "items. Remove them, or export without relations."
        )


def refuse_retrieved(mapping: Mapping[Any, Any], name: str, *, overlapping: bool) -> None:
    """Raise OptionError if a dict maps keys to lists or sets of its own keys, as from an image to its duplicates.

    Sets may also be of clusters that are named after one of their items: they are accepted if `overlapping`, or if
    each such item is in the cluster with its own name.
    """
    kinds = (list, tuple) if overlapping else (list, tuple, set, frozenset)
    for item, others in mapping.items():
        if not isinstance(item, str) or not isinstance(others, kinds):
            continue
        named = [each for each in others if isinstance(each, str) and each != item and each in mapping]
        if any(isinstance(others, list | tuple) or each not in mapping[each] for each in named):
            raise OptionError(
                f"{name}: a dict maps each item to a cluster or a set of clusters, but {quoted(item)} maps "
                f"to other items of the dict (such as {quoted(named[0])}), like a map from images to "
                "duplicates. These are links: pass Clustering.from_links([(item, other) for item, others "
                "in found.items() for other in others], items=list(found))."
            )
