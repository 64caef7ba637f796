"""The merge tree of links with scores, which represents the clusters at all thresholds at once.

    links --by score--> sorted --join_in_order--> forest --lay_out--> order of items, levels between neighbours

A level is a score at which clusters merge; links with equal scores merge together. Levels are numbered from 0, the
strongest score; the level between neighbours that no link joins is `n_levels`.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.align.rows import Alignment
from fastbcubed.cells.contingency import add_up
from fastbcubed.errors import EmptyInputError
from fastbcubed.runtime import buffers
from fastbcubed.runtime.key_codes import number
from fastbcubed.runtime.key_partitions import PARTS_AT_ONCE, offsets, part_bits, row_blocks
from fastbcubed.runtime.object_attributes import cached_property
from fastbcubed.runtime.threads import Pool, blocks
from fastbcubed.types import Codes, Counts, Floats


@dataclass(frozen=True, eq=False)
class MergeTree:
    """All items in an order in which every cluster at every threshold is contiguous.

    A place is a position in this order; the level and the link of a place are between its item and the next.
    """

    order: Codes  #: the item at each place; shape (n_items,), as of `levels` and `links`
    levels: Codes  #: the level at which the clusters of this item and the next merge
    links: np.ndarray  #: `left` and `right` item of a link that causes this merge, -1 if there is none
    merges: Codes  #: all places but the last, sorted by level, then by place; shape (n_items - 1,)
    points: Floats  #: the infinite threshold without links, then the score of each level, strongest first
    scores: Floats  #: the score of each link, strongest first; shape (n_links,)
    ascending: bool  #: whether low scores mean strong links, as with distances
    pairs: np.ndarray | None = None  #: `left` and `right` items of each link, strongest first, if kept

    @property
    def n_items(self) -> int:
        """Number of items, including those without a link."""
        return int(self.order.size)

    @property
    def thresholds(self) -> Floats:
        """The score of each level, strongest first; shape (n_levels,)."""
        return self.points[1:]

    @property
    def n_levels(self) -> int:
        """Number of scores at which clusters merge."""
        return int(self.points.size - 1)

    def n_used(self, threshold: float) -> int:
        """Return the number of levels that a threshold uses: those with at least as strong scores."""
        return _n_reaching(self.thresholds, threshold, ascending=self.ascending)

    def n_links_used(self, threshold: float) -> int:
        """Return the number of links that a threshold uses."""
        return _n_reaching(self.scores, threshold, ascending=self.ascending)

    def labels(self, n_used: int) -> tuple[NDArray[np.int64], int]:
        """Return the cluster of each item after `n_used` levels, numbered by first items, and their number."""
        labels, numbers = np.empty(self.n_items, np.int64), np.empty(self.n_items, self.order.dtype)
        n = kernels.merge_tree.label_clusters(self.order, self.levels, n_used, labels, numbers)
        return labels, int(n)


def merge_tree(
    n_items: int, given: list[NDArray[Any]], pool: Pool, *, ascending: bool = False, keep: bool = False
) -> MergeTree:
    """Build the tree of the merges that links cause, from the strongest link to the weakest; `keep` stores the links.

    `given` has the numbers of left items, those of right items, and the scores of the links, none of them NaN. To save
    memory, the list is emptied, and the memory of the scores is reused.
    """
    n_links = given[0].size
    dtype = np.dtype(np.int32 if max(n_items, n_links) < 2**31 - 1 else np.int64)
    pair = np.dtype([("left", dtype), ("right", dtype)])
    links, keys = _by_score(given, pair, pool, ascending=ascending)
    merged, points, parents = _join(n_items, links, keys, pool, ascending=ascending)
    pairs = links if keep else None
    del links
    cuts = blocks(n_links)
    pool.map(
        lambda a, b: kernels.merge_tree.write_scores(keys, a, b, ascending, keys), *zip(*cuts, strict=True)
    )
    places, order, levels = (buffers.empty(n_items, dtype) for _ in range(3))
    merges, between = buffers.empty(max(0, n_items - 1), dtype), buffers.empty(n_items, pair)
    kernels.merge_tree.lay_out(parents, merged, places)
    tasks: list[tuple[Any, ...]] = [
        (kernels.merge_tree.write_between, merged, points.size - 1, levels, between, merges),
        (kernels.merge_tree.write_order, places, order),
    ]
    pool.map(lambda task: task[0](*task[1:]), tasks)
    if points.size - 1 < merged.size:  # merges of one level were written in the order of their links
        merges = order_of_merges(levels, points.size - 1)
    return MergeTree(order, levels, between, merges, points, keys.view(np.float64), ascending, pairs)


def joining_places(tree: MergeTree, pairs: NDArray[np.integer], pool: Pool) -> NDArray[np.integer]:
    """Return the place of the link that first joins each pair of items: the weakest on the path between them.

    Shapes: (2, n) -> (n,). If several links have the same score, their places do not show which link it is. All links
    of the tree are therefore joined again, into a forest of short paths in which each item has its parent since a
    known merge.
    """
    places = tree.merges[: np.count_nonzero(tree.levels < tree.n_levels)]
    order = np.arange(places.size)
    merged, _, _ = _join(
        tree.n_items, tree.links[places], order.astype(np.uint64), pool, ascending=tree.ascending
    )
    above, since = np.arange(tree.n_items), np.full(tree.n_items, places.size)
    above[merged["back"]], since[merged["back"]] = merged["front"], order
    ends, found = pairs.copy(), np.zeros(pairs.shape[1], np.int64)
    while (apart := np.flatnonzero(ends[0] != ends[1])).size:
        at = since[ends[:, apart]]
        lower = at.argmin(0), apart
        found[apart], ends[lower] = at.min(0), above[ends[lower]]
    return np.asarray(places[found])


def order_of_merges(levels: Codes, n_levels: int) -> Codes:
    """Return all places but the last, sorted by level, then by place, as the search for meetings needs them."""
    starts, order = (buffers.empty(size, levels.dtype) for size in (n_levels + 2, levels.size))
    kernels.merge_tree.order_by_level(levels, starts, order)
    return order[: levels.size - 1]


def _join(
    n_items: int, links: np.ndarray, keys: NDArray[np.uint64], pool: Pool, *, ascending: bool
) -> tuple[np.ndarray, Floats, Codes]:
    """Return the merges, the thresholds of all points (see `MergeTree.points`), and the parent of each item."""
    dtype = links.dtype["left"]
    parents, points = buffers.empty(n_items, dtype), np.empty(1 + min(n_items, keys.size))
    parents[:], points[0] = -1, -np.inf if ascending else np.inf
    thresholds = points[1:].view(np.uint64)
    merge = [(name, dtype) for name in ("front", "back", "n_front", "level", "left", "right")]
    merged: np.ndarray = buffers.empty(n_items, np.dtype(merge))
    state, cuts = (0, 0, False), blocks(keys.size)
    with pool.stage("join items", len(cuts), keys.size) as step:
        for start, stop in cuts:
            state = kernels.merge_tree.join_in_order(
                links, keys, start, stop, ascending, parents, merged, thresholds, state
            )
            step(stop - start)
    n_levels, n_merged, _ = state
    return merged[:n_merged], points[: 1 + n_levels].copy(), parents


def _n_reaching(scores: Floats, threshold: float, *, ascending: bool) -> int:
    """Return how many scores, sorted from the strongest, are at least as strong as a threshold."""
    sign = 1.0 if ascending else -1.0
    return bisect_right(scores, sign * threshold, key=lambda score: sign * score)


class Ranges(NamedTuple):
    """Links distributed to ranges of keys, unsorted within a range; weaker links have larger keys."""

    keys: NDArray[np.uint64]
    links: np.ndarray
    spare: NDArray[np.uint64]  #: spare memory of the size of `keys`
    bounds: NDArray[np.int64]  #: where each range begins, and the end of the last
    least: np.uint64
    shift: int  #: bits by which keys of a range differ, after subtraction of `least`


def _by_score(
    given: list[NDArray[Any]], pair: np.dtype, pool: Pool, *, ascending: bool
) -> tuple[np.ndarray, NDArray[np.uint64]]:
    """Return the links, stably sorted from the strongest, and their ascending keys.

    Links are first scattered into ranges of scores that fit a core's cache, and then sorted within each range.
    """
    ranges = _in_ranges(given, pair, pool, ascending=ascending)
    keys, links, spare_keys, bounds, least, shift = ranges
    module = kernels.merge_tree

    def sort(first: int, last: int) -> None:
        digits = np.empty(1 << module.DIGIT, np.int64)
        spare = np.empty(int(np.diff(bounds[first : last + 1]).max()), pair)
        for start, stop in pairwise(bounds[first : last + 1].tolist()):
            if stop - start > 1:
                own = slice(start, stop)
                module.sort_range(
                    keys[own], links[own], least, shift, spare_keys[own], spare[: stop - start], digits
                )

    pool.map(sort, *zip(*blocks(bounds.size - 1, PARTS_AT_ONCE), strict=True), stage="sort links")
    return links, keys


def _in_ranges(given: list[NDArray[Any]], pair: np.dtype, pool: Pool, *, ascending: bool) -> Ranges:
    """Scatter links into ranges of keys, and free the given arrays."""
    left, right, scores = given
    given.clear()
    n, module, keys = scores.size, kernels.merge_tree, scores.view(np.uint64)
    cuts = list(zip(*row_blocks(n), strict=True))
    found = pool.map(lambda a, b: module.write_keys(scores, a, b, ascending, keys), *cuts, stage="sort links")
    least, most = min(int(low) for low, _ in found), max(int(high) for _, high in found)
    bits = max(1, part_bits(n))
    shift, low = max(0, (most - least).bit_length() - bits), np.uint64(min(least, most))
    width = np.uint64(shift)
    counts = np.zeros((len(cuts[0]), 1 << bits), np.int64)
    pool.map(
        lambda a, b, own: module.count_ranges(keys, a, b, low, width, own), *cuts, counts, stage="sort links"
    )
    bounds, places = offsets(counts)
    ranges = Ranges(buffers.empty(n, np.uint64), buffers.empty(n, pair), keys, bounds, low, shift)
    pool.map(
        lambda a, b, own: module.scatter_links(
            keys, left, right, a, b, low, width, own, ranges.keys, ranges.links
        ),
        *cuts, places, stage="sort links",
    )  # fmt: skip
    return ranges


class Records(NamedTuple):
    """The types of the records that the kernels of the merge tree use."""

    group: np.dtype  #: a growing part of a true cluster
    meeting: np.dtype  #: two parts of the true cluster `code` that are joined `at` a merge
    cluster: np.dtype  #: a growing cluster, whose other end is at row `far`
    merge: np.dtype  #: two clusters that merge `at` a place and a level


@lru_cache
def records(index: np.dtype, *, weighted: bool, scored: bool) -> Records:
    """Return the record types for places of this type; `scored` means that not all rows are scored.

    Each side of a meeting or a merge has n rows, of which s are scored, and weight w, of which v is scored. Each side
    of a merge also has x rows of the dominant true cluster and r others. For each side and for both together, `wrong`
    is the number and `lost` the weight of the ordered pairs of different true clusters.
    """
    i = np.dtype(index).str
    both = ("_a", "_b")
    mass = "w" if weighted else "n"
    count = "s" if scored else "n"
    scored_mass = "v" if weighted and scored else "w" if weighted else count

    def sides(names: str, kind: str) -> list[tuple[str, str]]:
        return [(f"{name}{side}", kind) for name in names.split() for side in both]

    def aliases(**meant: str) -> list[tuple[str, str]]:
        return [(f"{name}{side}", f"{own}{side}") for name, own in meant.items() for side in both]

    counted = sides("n s" if scored else "n", i)
    weighed = sides("w v" if scored else "w", "f8") if weighted else []
    same = aliases(s=count, w=mass, v=scored_mass)
    meeting = _record([("at", i), ("code", i), *counted, *weighed], same)
    state = [("n", i), ("s", i), ("w", "f8"), ("w_error", "f8"), ("v", "f8"), ("v_error", "f8")]
    kept = {"n"} | ({"s"} if scored else set()) | ({"w", "w_error"} if weighted else set())
    kept |= {"v", "v_error"} if weighted and scored else set()
    group = _record(
        [("gap", i), ("below", i), *(each for each in state if each[0] in kept)],
        [("s", count), *([("v", scored_mass), ("v_error", "w_error")] if weighted else [])],
    )
    masses = "mass_x error_x mass_r error_r lost error_lost" + (" mass_v error_v" if scored else "")
    held = [("wrong", "i8"), ("far", i), ("x", i), *([("s", i)] if scored else [])]
    cluster = _record(
        [*((name, "f8") for name in masses.split() if weighted), *held],
        [("s", "x"), *([("mass_v", "mass_r"), ("error_v", "error_r")] if weighted else [])],
    )
    wrong = [("wrong", "i8"), *sides("wrong", "i8")]
    lost = [("apart", "f8"), ("lost", "f8"), *sides("lost mass_x mass_r", "f8")] if weighted else []
    merge = _record(
        [("at", i), ("level", i), *counted, *sides("x r", i), *weighed, *wrong, *lost],
        [*same, *([] if weighted else [("lost", "wrong"), *aliases(lost="wrong", mass_x="x", mass_r="r")])],
    )
    return Records(group, meeting, cluster, merge)


def _record(fields: Iterable[tuple[str, str]], same: Iterable[tuple[str, str]] = ()) -> np.dtype:
    """Return a record type of aligned fields; `same` has further names for some fields."""
    own = np.dtype(list(fields), align=True)
    assert own.names is not None and own.fields is not None
    extra = {name: meant for name, meant in same if name not in own.names}
    places = {name: own.fields[name] for name in own.names}
    places |= {name: own.fields[meant] for name, meant in extra.items()}
    return np.dtype(
        {
            "names": list(places),
            "formats": [place[0] for place in places.values()],
            "offsets": [place[1] for place in places.values()],
            "itemsize": own.itemsize,
        }
    )


#: The most meetings that one call of a kernel finds.
MEETINGS_AT_ONCE = 1 << 18
#: Merges of a block: few enough for a core's cache, and enough for a task of the pool.
MERGES_AT_ONCE = 1 << 15
#: Values that are summed plainly; the sums of such blocks are added exactly.
SUMMED_AT_ONCE = 1 << 13
#: A true cluster above this share of the weight is dominant: subtracting its weight would cancel digits.
DOMINANT = 0.75
#: A code that no row has.
NONE = -2


def total_of(values: Floats) -> float:
    """Return the sum of many values, adding the sums of blocks exactly."""
    return math.fsum(float(values[start:stop].sum()) for start, stop in blocks(values.size, SUMMED_AT_ONCE))


@dataclass(frozen=True, eq=False)
class TreeRows:
    """The rows that count in clusters, in the order of the tree. Arrays are by row, (n_rows,).

    The level of a row is the one at which its cluster and that of the next row merge; `n_levels` if no link joins them.
    """

    levels: Codes
    codes: Codes  #: true cluster of each row, -1 for none
    n_levels: int
    weights: Floats | None = None
    scored: NDArray[np.bool_] | None = None  #: whether each row is scored; None if all are
    known_merges: Codes | None = None  #: `merges`, if already known

    def __len__(self) -> int:
        return int(self.levels.size)

    @cached_property
    def records(self) -> Records:
        """The types of the kernels' records for these rows."""
        return records(self.levels.dtype, weighted=self.weights is not None, scored=self.scored is not None)

    @cached_property
    def merges(self) -> Codes:
        """The places of all rows but the last, sorted by level, then by place."""
        if self.known_merges is not None:
            return self.known_merges
        return order_of_merges(self.levels, self.n_levels)

    @cached_property
    def true_sizes(self) -> Counts:
        """Number of rows of each true cluster."""
        return np.bincount(self.codes[self.codes >= 0] if (self.codes < 0).any() else self.codes)

    @cached_property
    def true_masses(self) -> Floats:
        """Weight of each true cluster."""
        if self.weights is None:
            return self.true_sizes.astype(np.float64)
        return np.add(*add_up(self.codes, self.true_sizes.size, self.weights, np.ones(len(self))))

    @property
    def scored_in_truth(self) -> NDArray[np.bool_]:
        """Whether each row is scored and in a true cluster."""
        there = self.codes >= 0
        return there if self.scored is None else there & self.scored

    @cached_property
    def n_scored(self) -> int:
        """Number of scored rows."""
        return len(self) if self.scored is None else int(np.count_nonzero(self.scored))

    @cached_property
    def total(self) -> float:
        """Total weight of the scored rows."""
        if self.weights is None:
            return float(self.n_scored)
        return total_of(self.weights if self.scored is None else self.weights[self.scored])

    @cached_property
    def dominant(self) -> int:
        """The true cluster with nearly all weight; `NONE` if there is none, or if not all rows are scored."""
        if self.scored is not None:
            return NONE
        heaviest = int(np.argmax(self.true_masses))
        return heaviest if self.true_masses[heaviest] > DOMINANT * self.total else NONE


@dataclass(frozen=True, eq=False)
class Meetings:
    """The meetings of a tree: merges that join two parts of a true cluster."""

    records: np.ndarray  #: one record for each meeting
    crosses: (
        Counts  #: by merge: number of ordered pairs of a scored row and one of its true cluster that it joins
    )
    #: by merge: weight of these pairs and its rounding error, without the dominant true cluster; shape (n, 2)
    masses: Floats | None


def find_meetings(rows: TreeRows, pool: Pool) -> Meetings:
    """Return the meetings of the parts of true clusters, of which there are fewer than rows."""
    n, index = len(rows), rows.levels.dtype
    bounds, groups = buffers.empty(n, index), buffers.empty(n, rows.records.group)
    last_of = np.full(rows.true_sizes.size, -1, index)
    given = rows.weights, rows.scored
    found: np.ndarray = buffers.empty(n, rows.records.meeting)
    place = depth = code = count = 0
    with pool.stage("find meetings", n) as step:
        while place < n:
            some, before = found[count : count + MEETINGS_AT_ONCE], place
            place, depth, n_found = kernels.merge_tree.find_meetings(
                place, depth, rows.levels, rows.codes, *given, bounds, last_of, groups, some
            )
            count += n_found
            step(place - before)
        while code < last_of.size:
            some = found[count : count + MEETINGS_AT_ONCE]
            code, n_found = kernels.merge_tree.find_last_meetings(code, *given, last_of, groups, some)
            count += n_found
    found, scored = found[:count], rows.scored is not None
    crosses, masses = buffers.empty(n, np.int64), None
    crosses[:] = 0
    kernels.merge_tree.add_crosses(found, scored, crosses)
    if rows.weights is not None:
        masses = np.zeros((n, 2))
        kernels.merge_tree.add_masses(found, scored, rows.dominant, masses)
    return Meetings(found, crosses, masses)


def merges_of(rows: TreeRows, crosses: Counts, masses: Floats | None) -> Iterator[np.ndarray]:
    """Yield blocks of merges in the order of levels; the memory of a block is reused for the next but one.

    `crosses` and `masses` are those of the meetings of these rows.
    """
    module, places = kernels.merge_tree, rows.merges
    clusters = buffers.empty(len(rows), rows.records.cluster)
    module.start_clusters(rows.codes, rows.weights, rows.scored, rows.dominant, clusters)
    both = [np.empty(min(MERGES_AT_ONCE, max(1, places.size)), rows.records.merge) for _ in range(2)]
    for k, (start, _) in enumerate(blocks(places.size, MERGES_AT_ONCE)):
        found = both[k % 2]
        n_found = module.find_merges(
            start, places, rows.levels, rows.scored, crosses, masses, clusters, found
        )
        yield found[:n_found]


class PlacedRows(NamedTuple):
    """The rows that count in clusters, in the order of the tree; rows whose items are not in the tree come last."""

    rows: TreeRows
    aligned: Codes  #: the aligned row of each row
    places: Codes  #: the place in the tree of the level after each row; -1 if its item is not in the tree


def place_rows(tree: MergeTree, alignment: Alignment, pool: Pool, *, outside: bool) -> PlacedRows:
    """Return the rows that count in clusters, in the order of the tree, whose items are the prediction's rows.

    Rows that policies keep on both sides count; if `outside`, rows that only the prediction has count as well, and are
    in no true cluster. Items that do not count still connect others.
    """
    counted, is_outside = _counted(alignment, outside=outside)
    items = alignment.pred_rows
    whole = items is None or (items.size == tree.n_items and bool((items >= 0).all()))
    if whole and counted is None:
        order = tree.order if items is None else _inverse(items, tree)[tree.order]
        places = np.arange(len(alignment), dtype=order.dtype)
        return _placed(alignment, order, tree.levels, places, tree.n_levels, is_outside, pool, tree.merges)
    rows = np.arange(len(alignment)) if counted is None else np.flatnonzero(counted)
    if not rows.size:
        raise EmptyInputError("there is no item to score: no item is on both sides")
    items = rows if items is None else items[rows]
    row_of_item = np.full(tree.n_items, -1, tree.order.dtype)
    row_of_item[items[items >= 0]] = rows[items >= 0]
    order, levels, places = (np.empty(rows.size, tree.order.dtype) for _ in range(3))
    kept = kernels.merge_tree.keep_some(tree.order, tree.levels, row_of_item, order, levels, places)
    order[kept:], levels[kept:], places[kept:] = rows[items < 0], tree.n_levels, -1
    levels[kept - 1 : kept] = tree.n_levels
    return _placed(alignment, order, levels, places, tree.n_levels, is_outside, pool)


def _counted(alignment: Alignment, *, outside: bool) -> tuple[NDArray[np.bool_] | None, bool]:
    """Return whether each aligned row counts, None if all do, and whether some of them may be in no true cluster."""
    lacking = [
        None if absent is None else keys == absent
        for keys, absent in (
            (alignment.true_keys, alignment.absent_true),
            (alignment.pred_keys, alignment.absent_pred),
        )
    ]
    lacks_true, lacks_pred = lacking
    if outside:
        return None if lacks_pred is None else ~lacks_pred, lacks_true is not None
    if lacks_true is None or lacks_pred is None:
        lacks = lacks_pred if lacks_true is None else lacks_true
        return None if lacks is None else ~lacks, False
    return ~(lacks_true | lacks_pred), False


def _inverse(items: Codes, tree: MergeTree) -> Codes:
    """Return the row of each item, given the item of each row."""
    rows = np.empty(tree.n_items, tree.order.dtype)
    rows[items] = np.arange(items.size)
    return rows


def _placed(
    alignment: Alignment,
    order: Codes,
    levels: Codes,
    places: Codes,
    n_levels: int,
    is_outside: bool,
    pool: Pool,
    merges: Codes | None = None,
) -> PlacedRows:
    """Return the rows in this order, with true clusters numbered so that neighbouring rows have similar codes."""
    keys = alignment.true_keys[order]
    codes: Codes = number(keys, pool).codes.astype(levels.dtype)
    if is_outside:
        codes[keys == alignment.absent_true] = -1
    weights = None if alignment.weight is None else alignment.weight[order]
    rows = TreeRows(levels, codes, n_levels, weights, codes >= 0 if is_outside else None, merges)
    if not rows.n_scored:
        raise EmptyInputError("there is no item to score: no item is on both sides")
    return PlacedRows(rows, order, places)


#: Bytes per link while links are sorted, including the links themselves.
TO_SORT = 32
#: Bytes per row of a truth that is read from a file: item, cluster and their keys.
TO_READ = 32
#: Bytes per item of either side during alignment, and per row while rows get their places in the tree.
TO_ALIGN, TO_PLACE = 36, 64
#: Bytes per row while the clusters at the best threshold are evaluated.
TO_EVALUATE = 48
#: Bytes per row that stay allocated whatever the families: cached figures of true clusters, and idle buffers.
OF_ALL = 24
#: Bytes per level that the sums of a family hold, and the part of them that sums over meetings hold.
OF_LEVELS = {"clusters": (12, 0), "bcubed": (16, 8), "elm": (16, 8), "pairs": (32, 8), "entropy": (24, 8)}


def to_join(n_links: int, n_items: int, *, keep: bool = False) -> int:
    """Return the bytes needed to build a merge tree from links in memory; `keep` says whether the links stay."""
    index = 4 if max(n_links, n_items) < 2**31 - 1 else 8
    sorting = n_links * (8 + 2 * index)
    laying_out = n_items * (8 + 13 * index) - (not keep) * n_links * 2 * index
    return max(sorting, n_items * (8 + 7 * index), laying_out)


def to_add_up(rows: TreeRows, families: Collection[str]) -> int:
    """Return the bytes needed for the sums of these families and the evaluation at the best threshold."""
    weighted, n = rows.weights is not None, len(rows)
    meetings = held = 0
    for family in families:
        by_level, by_meeting = OF_LEVELS[family]
        held, meetings = held + by_level * rows.n_levels, meetings + by_meeting * rows.n_levels
    of_meeting = 8 + 16 * weighted + 16 * ("entropy" in families)
    a_group, a_meeting, a_cluster, _ = (each.itemsize for each in rows.records)
    finding = n * (of_meeting + rows.levels.itemsize + a_group + a_meeting) + meetings + 16 * rows.n_levels
    return max(finding, n * (of_meeting + a_cluster + OF_ALL) + held, n * (OF_ALL + TO_EVALUATE) + held)


class Subset(NamedTuple):
    """Rows of a tree for one scored subset, and the levels and places that they have in the whole tree."""

    rows: TreeRows
    levels: NDArray[np.integer]
    places: NDArray[np.integer]


class Subsets:
    """Makes the rows of a tree that are needed to score one subset of items after another.

    The score of an item depends only on its cluster at the weakest threshold and on its true cluster, so a subset has
    only the rows of these clusters.
    """

    def __init__(self, rows: TreeRows) -> None:
        self._rows = rows

    @cached_property
    def _ends(self) -> NDArray[np.integer]:
        """The ends of the clusters at the weakest threshold, as places."""
        return np.flatnonzero(self._rows.levels == self._rows.n_levels) + 1

    @cached_property
    def _by_code(self) -> tuple[NDArray[np.integer], NDArray[np.integer]]:
        """Places sorted by true cluster, where each true cluster begins among them, and the end."""
        order = np.argsort(self._rows.codes, kind="stable")
        n_none = int(np.count_nonzero(self._rows.codes < 0))
        return order[n_none:], np.concatenate([[0], np.cumsum(self._rows.true_sizes)])

    def take(self, members: NDArray[np.integer]) -> Subset:
        """Return the rows needed to score only the members, which are given as ascending places."""
        rows, ends = self._rows, self._ends
        clusters = _once(np.searchsorted(ends, members, side="right"))
        begins = np.concatenate([[0], ends[:-1]])[clusters]
        if 2 * int((ends[clusters] - begins).sum()) > len(rows):  # selecting most rows would take longer
            scored = np.zeros(len(rows), np.bool_)
            scored[members] = True
            return Subset(replace(rows, scored=scored), np.arange(rows.n_levels), np.arange(len(rows)))
        codes = np.unique(rows.codes[members])
        whole = _ranges(begins, ends[clusters])
        places, offsets = self._by_code
        others = places[_ranges(offsets[codes], offsets[codes + 1])]
        kept = np.union1d(whole, others)
        levels = np.full(kept.size, rows.n_levels, rows.levels.dtype)
        at = np.searchsorted(kept, whole)
        levels[at] = rows.levels[whole]
        used = np.unique(levels[levels < rows.n_levels])
        known, numbers = np.unique(rows.codes[kept], return_inverse=True)
        numbers = numbers.astype(rows.codes.dtype) - np.count_nonzero(known < 0)
        scored = np.zeros(kept.size, np.bool_)
        scored[np.searchsorted(kept, members)] = True
        weights = None if rows.weights is None else rows.weights[kept]
        own = np.searchsorted(used, levels).astype(rows.levels.dtype)
        return Subset(TreeRows(own, numbers, used.size, weights, scored), used, kept)


def _once(numbers: NDArray[np.integer]) -> NDArray[np.integer]:
    """Return the distinct values of numbers in ascending order."""
    return numbers[np.flatnonzero(np.diff(numbers, prepend=-1))]


def _ranges(starts: NDArray[np.integer], stops: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return the concatenation of the integer ranges from `starts` to `stops`."""
    sizes = stops - starts
    before = np.concatenate([[0], np.cumsum(sizes)])
    return np.arange(before[-1]) + np.repeat(starts - before[:-1], sizes)


@dataclass(frozen=True, eq=False)
class Effects:
    """Effects of merges; merges of one level into one cluster count as one, at the place of the last.

    `over` and `under` are by place, not divided by the total weight, and 0 at places without a merge.
    """

    over: Floats  #: loss of precision
    under: Floats  #: gain of recall
    merged: NDArray[np.bool_]  #: whether a place has a merge
    whole_at: Counts  #: by true cluster: the place of a merge that completes it, -1 for a single row


def merge_effects(rows: TreeRows, pool: Pool) -> Effects:
    """Compute the effect of each merge."""
    n = len(rows)
    over, under = np.zeros(n), np.zeros(n)
    whole_at = np.full(rows.true_sizes.size, -1)
    module, meetings = kernels.merge_tree, find_meetings(rows, pool)
    module.add_recall_by_merge(meetings.records, rows.true_masses, under)
    module.find_last_merges(meetings.records, rows.levels, whole_at)
    made = merges_of(rows, meetings.crosses, meetings.masses)
    del meetings  # frees the records before the clusters are allocated
    for merges in made:
        module.add_loss_by_merge(merges, over)
    heads = np.empty(n, rows.levels.dtype)
    module.join_ties(rows.levels, rows.n_levels, heads, np.empty_like(heads), over, under)
    merged = (rows.levels < rows.n_levels) & (heads == np.arange(n))
    return Effects(over, under, merged, whole_at)
