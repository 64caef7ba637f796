"""Layouts: the columns of items, clusters, links and scores; and the clusters of each item where they overlap."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from fastbcubed import kernels
from fastbcubed.errors import ColumnError, Either, OptionError, arg, first_few
from fastbcubed.inputs import arrow_compute as pc
from fastbcubed.inputs.arrays import plain, to_numpy
from fastbcubed.inputs.suggestions import Typed, similar
from fastbcubed.inputs.tables import ColumnName, Source, column_names, listed
from fastbcubed.runtime import buffers
from fastbcubed.runtime.object_attributes import cached_property
from fastbcubed.runtime.threads import Pool, blocks

#: Codes of clusters, in 32 bits if they fit.
Codes = NDArray[np.int32] | NDArray[np.int64]
#: Maximum number of threads that each scan all rows for a range of items, and the items from which that pays.
MOST_RANGES = 4
SMALL = 1 << 14


def ranges(n: int, pool: Pool | None) -> tuple[list[int], list[int]]:
    """Return the bounds of the parts of `range(n)`, one per thread."""
    parts = min(MOST_RANGES, pool.threads if pool is not None and n >= SMALL else 1)
    cuts = [n * k // parts for k in range(parts + 1)]
    return cuts[:-1], cuts[1:]


@dataclass(frozen=True, eq=False)
class Memberships:
    """The clusters of each item, as compressed rows.

    Items and clusters are numbered from 0. The clusters of item `e` are
    ``codes[offsets[e]:offsets[e + 1]]``, ascending and distinct. `by_cluster` transposes items and clusters.
    A clustering with the same cluster twice has two codes for it.

    Examples
    --------
    >>> tags = Memberships.from_sets([{0, 2}, {1}, {2, 1}])
    >>> tags.of(0).tolist(), tags.sizes.tolist(), tags.by_cluster().of(1).tolist()
    ([0, 2], [1, 2, 2], [1, 2])
    """

    offsets: NDArray[np.int64]  #: start of each item's clusters; shape (n_items + 1,)
    codes: Codes  #: cluster of each membership; shape (n_memberships,)
    n_clusters: int  #: clusters, with or without items

    @classmethod
    def from_rows(
        cls,
        items: NDArray[np.int64],
        clusters: NDArray[np.int64],
        n_items: int,
        n_clusters: int,
        pool: Pool | None = None,
    ) -> Memberships:
        """Make memberships from one (item, cluster) pair per row, in any order.

        Rows with negative items are dropped. Duplicate pairs stay; see `without_repeats`. With a pool, each thread
        scans all rows and takes those of a range of items. Shapes: `items`, `clusters` (n_rows,).
        """
        offsets = np.zeros(n_items + 1, np.int64)
        lows, highs = ranges(n_items, pool)
        tasks = pool or Pool(1)
        tasks.map(
            lambda low, high: kernels.memberships.count_in_range(items, low, high, offsets[1:]),
            lows, highs, stage="count memberships",
        )  # fmt: skip
        np.cumsum(offsets, out=offsets)
        codes = np.empty(offsets[-1], np.int32 if n_clusters < 2**31 else np.int64)
        places = offsets[:-1].copy()
        tasks.map(
            lambda low, high: kernels.memberships.fill_rows(items, clusters, low, high, places, codes),
            lows, highs, stage="group memberships",
        )  # fmt: skip
        kernels.memberships.sort_rows(offsets, codes)
        return cls(offsets, codes, n_clusters)

    @classmethod
    def from_sets(cls, sets: Iterable[Iterable[int]], n_clusters: int | None = None) -> Memberships:
        """Make memberships from the cluster codes of each item."""
        listed = [sorted(set(each)) for each in sets]
        clusters = np.array([code for each in listed for code in each], np.int64)
        items = np.repeat(np.arange(len(listed)), [len(each) for each in listed])
        if n_clusters is None:
            n_clusters = int(clusters.max(initial=-1)) + 1
        return cls.from_rows(items, clusters, len(listed), n_clusters)

    def __len__(self) -> int:
        return self.offsets.size - 1

    def __repr__(self) -> str:
        return (
            f"Memberships({len(self):,} items, {self.n_clusters:,} clusters, {self.codes.size:,} memberships)"
        )

    def of(self, item: int) -> Codes:
        """Return the clusters of one item."""
        return self.codes[self.offsets[item] : self.offsets[item + 1]]

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """Number of clusters per item. Shape (n_items,)."""
        return np.diff(self.offsets)

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """Number of items per cluster. Shape (n_clusters,)."""
        sizes = np.zeros(self.n_clusters, np.int64)
        kernels.memberships.count_codes(self.codes, sizes)
        return sizes

    @property
    def overlaps(self) -> bool:
        """Whether an item is in more than one cluster."""
        return bool((self.counts > 1).any())

    def rows(self) -> NDArray[np.int64]:
        """Return the item of each membership. Shape (n_memberships,)."""
        return np.repeat(np.arange(len(self)), self.counts)

    def by_cluster(self) -> Memberships:
        """Return the items of each cluster, ascending: the transposed memberships."""
        offsets = np.zeros(self.n_clusters + 1, np.int64)
        np.cumsum(self.sizes, out=offsets[1:])
        items = buffers.empty(self.codes.size, np.int32 if len(self) < 2**31 else np.int64)
        kernels.memberships.turn_rows(self.offsets, self.codes, offsets[:-1].copy(), items)
        return Memberships(offsets, items, len(self))

    def take(self, items: ArrayLike, pool: Pool | None = None) -> Memberships:
        """Return the memberships of some items, in the order given."""
        rows = np.ascontiguousarray(items, np.int64)
        tasks, cuts = pool or Pool(1), list(zip(*blocks(rows.size), strict=True))
        offsets = buffers.empty(rows.size + 1, np.int64)
        offsets[0] = 0
        tasks.map(
            lambda a, b: kernels.memberships.count_taken(self.offsets, rows, a, b, offsets[1:]),
            *cuts, stage="count clusters",
        )  # fmt: skip
        np.cumsum(offsets, out=offsets)
        codes = buffers.empty(int(offsets[-1]), self.codes.dtype)
        tasks.map(
            lambda a, b: kernels.memberships.take_codes(self.offsets, self.codes, rows, a, b, offsets, codes),
            *cuts, stage="list clusters",
        )  # fmt: skip
        return Memberships(offsets, codes, self.n_clusters)

    def without_repeats(self) -> Memberships:
        """Return the memberships with each pair once; self if there are no duplicates."""
        keep = np.empty(self.codes.size, np.bool_)
        offsets = np.zeros_like(self.offsets)
        kernels.memberships.mark_repeats(self.offsets, self.codes, keep, offsets[1:])
        if keep.all():
            return self
        return Memberships(np.cumsum(offsets), self.codes[keep], self.n_clusters)


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


#: Case-insensitive suffixes and prefixes that distinguish the left and right item's names.
ENDINGS = (("_l", "_r"), ("left", "right"), ("1", "2"), ("_a", "_b"), ("_x", "_y"))
BEGINNINGS = (("left", "right"), ("l_", "r_"), ("ltable_", "rtable_"))
#: Pairs of entirely different names; the second is Zingg's.
WHOLE = (("source", "target"), ("z_zid", "z_z_zid"), ("src", "dst"))
#: Stems of the names of ids; other columns may also come in pairs.
IDS = (
    "unique_id", "", "item", "item_id", "id", "record", "record_id", "rec_id", "recid", "uid", "key", "node",
    "z_zid",
)  # fmt: skip
#: Stems of the names of columns that make a composite id with the item's.
SOURCES = ("source_dataset", "data_source")
#: Names of scores; the first one present is used.
SCORES = (
    "match_probability", "match_weight", "score", "z_score", "match_score", "probability", "similarity",
    "confidence", "weight",
)  # fmt: skip


class LinkColumns(NamedTuple):
    """The columns of a link's two items, of one or more parts each, and of its score."""

    left: list[str]
    right: list[str]
    score: str | None
    items: list[str]  #: names of the parts of an item
    tool: str | None = None  #: the tool that uses these names
    recognised: bool = False  #: whether the items were found by names other than left and right
    scores: tuple[str, ...] = ()  #: all columns with names of scores, in order of precedence


class _Pair(NamedTuple):
    """Two columns whose names differ only in their mark for left or right, and the rest of their names."""

    stem: str
    left: str
    right: str


def choose_links(
    rows: Source,
    left: ColumnName | None = None,
    right: ColumnName | None = None,
    score: str | None = None,
    *,
    scored: bool = False,
) -> LinkColumns:
    """Return the columns of a table of links; a score column is looked for if none is named.

    Without names, items are the columns written by a known tool, or the only two with paired left and right names, or
    the only two. Missing or ambiguous columns raise ColumnError; so does a missing score if links must be `scored`.
    """
    if (left is None) != (right is None):
        missing = "right" if right is None else "left"
        raise OptionError(
            f"A link has two items, so name the columns of both: {arg(missing, ...)} is missing."
        )
    named = {} if left is None or right is None else {"left": left, "right": right}
    asked = {part: column_names(names, part) for part, names in named.items()}
    if score is not None:
        if not isinstance(score, str):
            raise OptionError(f"{arg('score')} is the name of a column, not {type(score).__name__}.")
        asked["score"] = [score]
    for part, names in asked.items():
        _require_columns(rows, part, names, Typed())
    if named:
        found = _as_named(rows, asked["left"], asked["right"])
    else:
        found = _recognised(rows, score)
    rest = [name for name in rows.names if name not in (*found.left, *found.right)]
    known = {name.lower(): name for name in rest}
    scores = tuple(known[name] for name in SCORES if name in known)
    chosen = score or next(iter(scores or rest[: scored and len(rest) == 1]), None)
    if chosen is None and scored:
        hint = (
            f"Name the right one with {arg('score', ...)}."
            if rest
            else "Each link needs one, such as ('a', 'b', 0.9)."
        )
        raise ColumnError(f"There is no column of scores in {rows.where} ({listed(rows.names)}). {hint}")
    if chosen in (*found.left, *found.right):
        raise _score_of_item(rows, chosen)
    return found._replace(score=chosen, tool=_tool_of(found, chosen), scores=scores)


def _score_of_item(rows: Source, score: str | None) -> ColumnError:
    return ColumnError(
        f"The score of {rows.where} is the column of an item: {score}. Name another with {arg('score', ...)}."
    )


def _as_named(rows: Source, left: list[str], right: list[str]) -> LinkColumns:
    if len(left) != len(right):
        raise OptionError(
            f"{arg('left', ...)} and {arg('right', ...)} name {len(left)} and {len(right)} columns; an item has as "
            "many parts on either side."
        )
    if common := [name for name in left if name in right]:
        raise ColumnError(
            f"left and right are the same column of {rows.where}: {', '.join(common)}. Name two."
        )
    stems = {(pair.left, pair.right): pair.stem for pair in _pairs(rows.names)}
    items = [stems.get(names, "") for names in zip(left, right, strict=True)]
    return LinkColumns(left, right, None, _item_names(items))


def _item_names(stems: Sequence[str]) -> list[str]:
    """Return names of the parts of an item."""
    plain = ["item"] if len(stems) == 1 else [f"item_{k}" for k in range(len(stems))]
    own = [stem or other for stem, other in zip(stems, plain, strict=True)]
    return own if len(set(own)) == len(own) else plain


def _recognised(rows: Source, score: str | None) -> LinkColumns:
    """Return the columns of items not named by the caller."""
    names = [name for name in rows.names if name != score]
    pairs = list(_pairs(names))
    ids = [pair for pair in pairs if pair.stem.lower() in IDS] or pairs
    if len(ids) > 1 and "match_probability" in {
        name.lower() for name in names
    }:  # Splink's may be among others
        ids = [pair for pair in ids if pair.stem.lower() == "unique_id"] or ids
    if len(ids) > 1:
        ways = [Typed()({"left": [pair.left], "right": [pair.right]}) for pair in ids[:4]]
        raise ColumnError(
            f"The items of {rows.where} may be in {len(ids)} pairs of columns ({listed(rows.names)}). Say which: "
            f"{'; or '.join(ways)}."
        )
    if ids:
        sources = [pair for pair in pairs if pair.stem.lower() in SOURCES and pair not in ids]
        parts = [*sources[:1], *ids]
        return LinkColumns(
            [pair.left for pair in parts],
            [pair.right for pair in parts],
            None,
            _item_names([pair.stem for pair in parts]),
            recognised=len(parts) > 1 or bool(ids[0].stem),
        )
    rest = [name for name in names if name.lower() not in SCORES]
    if len(rest) == 2:
        return LinkColumns(rest[:1], rest[1:], None, ["item"], recognised=True)
    if score is not None and any(score in (pair.left, pair.right) for pair in _pairs(rows.names)):
        raise _score_of_item(rows, score)
    clusters = {"item", "cluster"} <= set(rows.names)
    hint = (
        " With item and cluster it looks like a clustering, which is no table of links." if clusters else ""
    )
    raise ColumnError(
        f"There are no columns left and right in {rows.where} ({listed(rows.names)}). Name the columns of the two "
        f"items of a link with {arg('left', ...)} and {arg('right', ...)}.{hint}{rows.hint}"
    )


def links_hint(names: Sequence[str]) -> str:
    """Return the end of a message that columns look like those of links; empty if they do not."""
    ids = [pair for pair in _pairs(names) if pair.stem.lower() in IDS]
    if not ids:
        return ""
    return (
        f" With {ids[0].left} and {ids[0].right} it looks like a table of links, pairs of items: pass "
        f"{Either('Clustering.from_links(...)', '--links')}."
    )


def _pairs(names: Sequence[str]) -> Iterator[_Pair]:
    """Yield the pairs of columns whose names differ as those of a left and a right item, each once."""
    known = {name.lower(): name for name in reversed(names)}
    found = set()
    for name in names:
        for stem, other in _counterparts(name.lower()):
            pair = (name, known.get(other, name))
            if pair[1] != name and pair not in found:
                found.add(pair)
                yield _Pair(name[stem].strip("_"), *pair)


def _counterparts(name: str) -> Iterator[tuple[slice, str]]:
    """Yield the possible stems of a left item's name, each with the corresponding right name."""
    for left, right in ENDINGS:
        if name.endswith(left):
            yield slice(0, len(name) - len(left)), name.removesuffix(left) + right
    for left, right in BEGINNINGS:
        if name.startswith(left):
            yield slice(len(left), len(name)), right + name.removeprefix(left)
    for left, right in WHOLE:
        if name == left:
            yield slice(0, len(name) if left == "z_zid" else 0), right


def _tool_of(found: LinkColumns, score: str | None) -> str | None:
    """Return the tool that uses these column names, if they identify one."""
    if found.items[-1].lower() == "unique_id" and (score or "").lower() in SCORES[:2]:
        return "Splink"
    return "Zingg" if found.items[-1].lower() == "z_zid" else None


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
            _require_columns(rows, part, names, typed)
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


def _require_columns(rows: Source, part: str, names: list[str], typed: Typed) -> None:
    """Raise if the table lacks a named column, with a suggestion."""
    absent = [name for name in names if name not in rows.names]
    if not absent:
        return
    found = [similar(name, rows.names) if name in absent else name for name in names]
    hint = f"Name the right one with {arg(part, ...)}."
    if None not in found and len(set(found)) == len(found):
        hint = f"Did you mean {typed({part: [name for name in found if name is not None]})}?"
    raise ColumnError(
        f"There is no column {absent[0]!r} in {rows.where} ({listed(rows.names)}). {hint}{rows.hint}"
    )


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
