"""Samples of pairs, drawn by weight with replacement; draws depend on ids, not on the order of rows.

Each row has a key, the hash of its id. The rows form a line in the order of their keys, each as long as its weight, and
a draw is a random point on this line. Only those parts of the line on which points fall are sorted.
"""

from __future__ import annotations

import heapq
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed.cells.contingency import Confusion, Contingency, add_up, confusion
from fastbcubed.errors import EmptyInputError, FastBCubedError, MetricError, OptionError, SliceError
from fastbcubed.inputs.arrays import chunked, combined, from_numpy, from_texts
from fastbcubed.inputs.id_columns import as_column, comparable_keys
from fastbcubed.inputs.keys import write_both
from fastbcubed.render.number_formats import label
from fastbcubed.results.evaluation import Evaluation
from fastbcubed.results.items import without_noise
from fastbcubed.results.members import chosen_columns
from fastbcubed.results.slices import SliceKey, attribute_values, check_key, slice_codes
from fastbcubed.results.table import Table
from fastbcubed.runtime.arguments import path_of, seed_of, whole_number
from fastbcubed.runtime.object_attributes import cached_property
from fastbcubed.runtime.output_files import written_aside
from fastbcubed.runtime.threads import Pool
from fastbcubed.sample.judged_pairs import MERGED, RATES, SPLIT, STABLE, PairScore, count_verdicts, pair_score
from fastbcubed.sample.spreadsheets import no_formulas
from fastbcubed.types import Floats, RowNumbers

Places = NDArray[np.int64]
Keys = NDArray[np.uint64]

#: The least number of draws from each stratum, from which the variance of its pairs can be estimated.
LEAST = 2
#: Bytes per row, and per item whose cluster changed, while pairs are drawn.
ROW_BYTES, CHANGED_BYTES = 48, 170
#: The most parts into which the line of all strata is divided, and the average number of rows of a part at least.
STRETCHES, FEW_ROWS = 1 << 16, 1 << 8


def allot(sizes: Floats, n: int) -> Places:
    """Return the stratum of each of n draws: LEAST from each stratum, and the others in proportion to the sizes.

    Draws are allotted one by one, by Webster's method, so a longer list begins with a shorter one.

    >>> allot(np.array([3.0, 1.0]), 8).tolist()
    [0, 1, 0, 1, 0, 0, 0, 0]
    """
    n_strata = sizes.size
    first = np.tile(np.arange(n_strata), LEAST)
    due = [(-float(size) / (2 * LEAST + 1), stratum, LEAST) for stratum, size in enumerate(sizes)]
    heapq.heapify(due)
    more = []
    for _ in range(n - first.size):
        _, stratum, drawn = due[0]
        more.append(stratum)
        heapq.heapreplace(due, (-float(sizes[stratum]) / (2 * drawn + 3), stratum, drawn + 1))
    return np.append(first, np.array(more, np.int64))


def sums_by_stratum(mass: Floats, strata: Places, n_strata: int) -> Floats:
    """Return the sum of the mass by stratum."""
    return np.add(*add_up(strata, n_strata, mass, np.ones(mass.size)))


def draw_rows(mass: Floats, keys: Keys, strata: Places, points: Sequence[Floats]) -> list[Places]:
    """Return the row on which each point falls, by stratum; a point is a share, below 1, of its stratum's line.

    Shapes: `mass`, `keys` and `strata` (n_rows,); `points` has one array for each stratum. Masses are positive.
    """
    n_strata = len(points)
    bits = max(0, min(STRETCHES // n_strata, mass.size // FEW_ROWS).bit_length() - 1)
    stretch = strata << bits
    if bits:
        stretch = stretch | (keys >> np.uint64(64 - bits)).astype(np.int64)
    sizes = sums_by_stratum(mass, stretch, n_strata << bits).reshape(n_strata, -1)
    homes, rests = [], []
    for stratum, shares in enumerate(points):
        ends = np.cumsum(sizes[stratum])
        target = shares * ends[-1]
        home = _first_above(ends, target)
        rests.append(target - np.append(0.0, ends)[home])
        homes.append(home + (stratum << bits))
    drawn = np.zeros(sizes.size, np.bool_)
    drawn[np.concatenate(homes)] = True
    near = np.flatnonzero(drawn[stretch])
    near = near[np.lexsort((keys[near], stretch[near]))]
    rows_of = {own: near[a:b] for own, a, b in _runs(stretch[near])}
    found = []
    for home, rest in zip(homes, rests, strict=True):
        rows = np.empty(home.size, np.int64)
        for own, at in _grouped(home):
            here = rows_of[own]
            rows[at] = here[_first_above(np.cumsum(mass[here]), rest[at])]
        found.append(rows)
    return found


def draw_mates(
    groups: Places, blocks: Places, keys: Keys, mass: Floats, drawn: Places, shares: Floats
) -> Places:
    """Return for each drawn row a mate from another block of the same group, drawn by mass.

    Shapes: `groups`, `blocks`, `keys` and `mass` (n_rows,), `drawn` and `shares` (n_drawn,). Each block is in one
    group, and the group of each drawn row has at least two blocks.
    """
    near = np.flatnonzero(np.isin(groups, groups[drawn]))
    near = near[_block_by_block(groups[near], blocks[near], keys[near])]
    place = np.empty(groups.size, np.int64)
    place[near] = np.arange(near.size)
    bounds = np.append(_begins(blocks[near]), near.size)
    block = np.searchsorted(bounds, place[drawn], side="right") - 1
    begin, end = bounds[block], bounds[block + 1]
    mates = np.empty(drawn.size, np.int64)
    spans = {group: (a, b) for group, a, b in _runs(groups[near])}
    for group, at in _grouped(groups[drawn]):
        a, b = spans[group]
        mates[at] = near[a + _beside(mass[near[a:b]], begin[at] - a, end[at] - a, shares[at])]
    return mates


def _block_by_block(groups: Places, blocks: Places, keys: Keys) -> Places:
    """Return the order of rows by group, then by the least key of their block, then by key."""
    order = np.lexsort((keys, blocks))
    begins = _begins(blocks[order])
    least = np.repeat(keys[order][begins], np.diff(np.append(begins, order.size)))
    return order[np.lexsort((blocks[order], least, groups[order]))]


def _beside(mass: Floats, begin: Places, end: Places, shares: Floats) -> Places:
    """Return the row on which each point falls, on a line without the rows from `begin` to `end`.

    Rows before the gap are summed from the front, and rows after it from the back, so the sums stay precise even if the
    omitted rows are heavy.
    """
    before = np.append(0.0, np.cumsum(mass))
    after = np.append(0.0, np.cumsum(mass[::-1]))
    left, right = before[begin], after[mass.size - end]
    target = shares * (left + right)
    in_front = (target < left) | (right == 0)
    found = np.where(
        in_front,
        np.minimum(_first_above(before[1:], target), begin - 1),
        np.maximum(mass.size - 1 - _first_above(after[1:], np.maximum(target - left, 0.0)), end),
    )
    return found.astype(np.int64)


def _first_above(ends: Floats, target: Floats) -> Places:
    """Return the part of a line on which each point falls; points rounded beyond the end fall on the last part."""
    last = int(np.searchsorted(ends, ends[-1], side="left"))
    return np.minimum(np.searchsorted(ends, target, side="right"), last)


def _begins(values: NDArray[Any]) -> Places:
    return np.flatnonzero(np.append(values.size > 0, values[1:] != values[:-1]))


def _runs(values: Places) -> Iterator[tuple[int, int, int]]:
    """Yield each run of equal values: the value, and where it begins and ends."""
    begins = _begins(values)
    ends = np.append(begins[1:], values.size)
    yield from zip(values[begins].tolist(), begins.tolist(), ends.tolist(), strict=False)


def _grouped(values: Places) -> Iterator[tuple[int, Places]]:
    """Yield each distinct value and its positions."""
    order = np.argsort(values, kind="stable")
    for value, a, b in _runs(values[order]):
        yield value, order[a:b]


#: Two weights whose relative difference is at most this are taken as equal: they differ by rounding.
ROUNDING = 1e-12


class Kind(NamedTuple):
    """Pairs with the same change and sign in a score; `unit` has by cell the weight per unit of a mate's weight."""

    change: str
    sign: int
    unit: Floats


def kinds_of(score: PairScore, table: Contingency) -> list[Kind]:
    """Return the kinds of pairs that contribute to a score."""
    tp, fp, fn, _ = confusion(table)
    union = tp + fp + fn
    found = []
    if SPLIT in score.counts:
        found.append(Kind(SPLIT, -1 if score.signed else 1, 1 / (union if score.by_union else tp + fn)))
    if MERGED in score.counts:
        found.append(Kind(MERGED, 1, 1 / (union if score.by_union else tp + fp)))
    if STABLE in score.counts:
        gain = _gain(Confusion(tp, fp, fn, None))
        gain[np.abs(fn - fp) <= ROUNDING * np.maximum(fn, fp)] = 0.0
        found += [Kind(STABLE, sign, np.maximum(sign * gain, 0.0)) for sign in (1, -1)]
    return found


def _gain(matrix: Confusion) -> Floats:
    """Return 1 / w(E) - 1 / w(B) by cell, without cancellation; E is an item's new cluster, and B its old one."""
    return (matrix.fn - matrix.fp) / (matrix.tp + matrix.fp) / (matrix.tp + matrix.fn)


@dataclass(frozen=True, eq=False)
class Slicing:
    """The slices by which strata are formed: the slice of each row, and the names and weight shares of slices."""

    codes: Places
    names: list[str | None]
    shares: Floats

    @classmethod
    def of(cls, ev: Evaluation, by: SliceKey | None) -> Slicing:
        """Slice the items by attributes; without attributes, all items form one slice without a name."""
        table, rows = ev.contingency, ev.kept.rows
        if by is None:
            return cls(np.zeros(rows.cell.size, np.int64), [None], np.ones(1))
        key = check_key(by)
        if isinstance(key, Mapping):
            raise SliceError(
                "strata must be given by an attribute, bins of one, or several of these crossed, because "
                "subsets may share items"
            )
        cut = slice_codes(key, table, ev.kept_items(), ev.attributes)
        parts = [[label(value) for value in column.to_pylist()] for column in cut.values.values()]
        names = [", ".join(each) for each in zip(*parts, strict=True)]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise SliceError(
                f"two strata would have the same name, {twice!r}; rename these values of the attribute"
            )
        scored = (rows.cell >= 0) & (cut.codes >= 0)
        weights = sums_by_stratum(rows.weight[scored], cut.codes[scored], len(names))
        return cls(cut.codes, list(names), weights / table.total_weight)


@dataclass(frozen=True, eq=False)
class Frame:
    """The items whose cluster changed. Arrays are by item."""

    ev: Evaluation
    kinds: list[Kind]
    slicing: Slicing
    rows: RowNumbers
    cell: Places
    weight: Floats  #: weight in means over items

    @classmethod
    def of(cls, ev: Evaluation, score: PairScore, by: SliceKey | None) -> Frame:
        """Collect the items whose cluster changed, and the kinds of pairs that a score needs."""
        table = ev.contingency
        if table.overlapping:
            raise MetricError("pairs can only be drawn from partitions, but clusters may overlap here")
        rows, differs = ev.kept.rows, (table.fp > 0) | (table.fn > 0)
        ev.kept.require_room(ROW_BYTES, "a sample of pairs", CHANGED_BYTES * float(table.n[differs].sum()))
        slicing = Slicing.of(ev, by)
        chosen = np.flatnonzero((rows.cell >= 0) & differs[rows.cell])
        cell, weight = rows.cell[chosen].astype(np.int64), rows.weight[chosen]
        return cls(ev, kinds_of(score, table), slicing, chosen, cell, weight)

    @property
    def total(self) -> float:
        """The weight of all scored items."""
        return self.ev.contingency.total_weight

    @cached_property
    def slices(self) -> Places:
        """The slice of each item."""
        return self.slicing.codes[self.rows]

    @cached_property
    def mass(self) -> Floats:
        """The weight of each item as a mate."""
        return np.ones(self.rows.size) if self.ev.contingency.weighting == "outer" else self.weight

    @cached_property
    def keys(self) -> Keys:
        """The sort key of each item, a hash of its id."""
        return _keys(self.ev, self.rows)

    @cached_property
    def beside(self) -> Floats:
        """The weight of each item's cell without the item itself, computed in double-double precision."""
        table = self.ev.contingency
        if not table.weighted or table.weighting == "outer":
            return np.asarray(table.n[self.cell] - 1.0, np.float64)
        totals, errors = add_up(self.cell, table.n_cells, self.mass, np.ones(self.cell.size))
        beside = (totals[self.cell] - self.mass) + errors[self.cell]
        beside[table.n[self.cell] == 1] = 0.0
        return beside

    def sums(self, kind: Kind) -> Floats:
        """Return the weight of all pairs of each item, before division by the total weight."""
        table = self.ev.contingency
        mates = {SPLIT: table.fn, MERGED: table.fp}
        of_mates = self.beside if kind.change == STABLE else mates[kind.change][self.cell]
        return self.weight * (kind.unit[self.cell] * of_mates)

    def weigh(self, kind: Kind, item: Places, mass: Floats) -> Floats:
        """Return the weight c of each pair in the score, given the item and the weight of its mate."""
        return self.weight[item] / self.total * (kind.unit[self.cell[item]] * mass)

    @cached_property
    def self_pairs(self) -> Floats:
        """The contribution of pairs of an item with itself to the change of precision, by slice."""
        gain = _gain(confusion(self.ev.contingency))[self.cell]
        sums = sums_by_stratum(self.weight * (self.mass * gain), self.slices, len(self.slicing.names))
        return sums / self.total

    def mates(self, kind: Kind, item: Places, shares: Floats) -> tuple[RowNumbers, Floats, Places]:
        """Draw a mate for each item; return its row, its weight, and its position in the frame, or -1 if not in it."""
        table = self.ev.contingency
        if kind.change == STABLE:
            own = np.arange(self.rows.size)
            drawn = draw_mates(self.cell, own, self.keys, self.mass, item, shares)
            return self.rows[drawn], self.mass[drawn], drawn
        codes = np.asarray(table.true if kind.change == SPLIT else table.pred, np.int64)[self.cell]
        rows, cell, keys, mass = self.rows, self.cell, self.keys, self.mass
        if kind.change == MERGED and table.outside:
            more = self._outsiders(codes, item)
            rows, codes = np.append(rows, more.rows), np.append(codes, more.codes)
            cell = np.append(cell, np.full(more.rows.size, -1))
            mass, keys = np.append(mass, more.mass), np.append(keys, more.keys)
        drawn = draw_mates(codes, cell, keys, mass, item, shares)
        return rows[drawn], mass[drawn], np.where(drawn < self.rows.size, drawn, -1)

    def _outsiders(self, codes: Places, item: Places) -> _Outsiders:
        """Return the items that only the prediction has and that share a predicted cluster with one of these items."""
        items, rows = self.ev.kept_items(), self.ev.kept.rows
        alone = np.flatnonzero(rows.cell < 0)
        clusters, first = np.unique(codes[item], return_index=True)
        labels = [
            without_noise(combined(chunked(items.labels("pred", some))), self.ev.policies, "pred")
            for some in (alone, self.rows[item[first]])
        ]
        alone, known = alone[~np.asarray(labels[0].is_null())], labels[0].drop_null()
        columns = [as_column(each, "cluster") for each in (known, labels[1])]
        theirs, ours = comparable_keys(columns)
        order = np.argsort(ours)
        at = np.minimum(np.searchsorted(ours, theirs, sorter=order), ours.size - 1)
        here = ours[order[at]] == theirs
        chosen = alone[here]
        outer = self.ev.contingency.weighting == "outer"
        mass = np.ones(chosen.size) if outer else rows.weight[chosen]
        return _Outsiders(chosen, clusters[order[at[here]]], mass, _keys(self.ev, chosen))


class _Outsiders(NamedTuple):
    """Items that only the prediction has: their rows, predicted clusters, weights as mates, and keys."""

    rows: RowNumbers
    codes: Places
    mass: Floats
    keys: Keys


def _keys(ev: Evaluation, rows: RowNumbers) -> NDArray[np.uint64]:
    """Return the hashes of the ids of these rows, which do not depend on the container of the data."""
    if not rows.size:
        return np.empty(0, np.uint64)
    with Pool(1) as pool:
        return write_both(as_column(ev.kept_items().ids(rows), "item").plain, 0, pool)[0].view(np.uint64)


def sample_pairs(
    ev: Evaluation,
    n: int,
    *,
    score: str = "rates",
    by: SliceKey | None = None,
    columns: str | Iterable[str] = (),
    seed: int = 0,
) -> Table:
    """Draw pairs of items from a change for people to judge, as `Diff.sample_pairs` does.

    Each pair (i, j) is drawn with replacement in proportion to its weight c in the score, as (w_i / N) w_j / w(B): the
    item by the total weight of its pairs, then the mate by its own weight. Split pairs, merged pairs, and stable pairs
    of either sign are separate strata. Each stratum has at least two draws, and further ones are allotted in proportion
    to its total weight z; for "rates", half of the pairs were split and half merged. A longer sample begins with the
    shorter sample of the same seed. Pairs are never enumerated: the cost is linear in the numbers of cells and items,
    and in the sizes of the clusters drawn. Items are ordered by a hash of their ids, so the sample depends neither on
    the engine nor on the order of rows; the same ids as integers and as strings give different samples.

    The table has a row for each draw: pair, its number; repeats, the number of the first row with the same two items in
    either order, whose verdict it shares; item, mate; score, n_pairs (the number of draws), stratum and share (its name
    and its share of the weight, with `by`), change ("split", "merged", "stable"), probability (that a draw from the
    stratum, change and sign gives these two items), sign, z (the total weight of the pairs of the stratum, change and
    sign), self_pairs (for delta_precision: the contribution of pairs of an item with itself, which need no verdict);
    ``item.name`` and ``mate.name`` for each attribute; and verdict, which is empty.
    """
    asked = pair_score(score)
    n, seed = whole_number(n, "n", "pairs", least=LEAST), seed_of(seed)
    frame = Frame.of(ev, asked, by)
    names = chosen_columns(ev.kept, columns)
    strata = _strata(frame, asked)
    if n < LEAST * len(strata):
        raise OptionError(
            f"n is {n}, but there are {len(strata)} strata ({_told(frame, strata)}) that need {LEAST} pairs "
            f"each: draw {LEAST * len(strata)} or "
            f"more{'' if by is None else ', or stratify by an attribute with fewer values'}"
        )
    sizes = np.array([each.z for each in strata])
    if asked is RATES:  # split and merged pairs get equal numbers of draws, even if one kind is rare
        kinds = np.array([each.kind for each in strata])
        sizes /= np.bincount(kinds, sizes)[kinds]
    drawn = _draw(frame, strata, allot(sizes, n), seed)
    return Table(_table(frame, asked, strata, drawn, names))


class Stratum(NamedTuple):
    """The pairs of one kind whose item is in one slice."""

    kind: int
    slice: int
    z: float  #: total weight of the pairs


class Drawn(NamedTuple):
    """The pairs drawn, (n_drawn,): strata, positions of items and mates in the frame, rows of mates, probabilities."""

    stratum: Places
    item: Places
    mate: Places  #: -1 if the mate is not in the frame
    mate_row: RowNumbers
    probability: Floats


def _strata(frame: Frame, score: PairScore) -> list[Stratum]:
    """Return the strata with at least one pair; raise EmptyInputError if there is none."""
    found = []
    for k, kind in enumerate(frame.kinds):
        z = sums_by_stratum(frame.sums(kind), frame.slices, len(frame.slicing.names)) / frame.total
        found += [Stratum(k, int(h), float(z[h])) for h in np.flatnonzero(z > 0)]
    if found:
        return found
    changed = "separated from another or joined with one"
    if len(score.counts) == 1:
        changed = "separated from another" if SPLIT in score.counts else "joined with another"
    which = "each rate" if score is RATES else score.name
    raise EmptyInputError(
        f"there is no pair to judge: no item was {changed}, so {which} is 0 whatever the truth"
    )


def _told(frame: Frame, strata: list[Stratum]) -> str:
    names = []
    for each in strata[:4]:
        kind, name = frame.kinds[each.kind], frame.slicing.names[each.slice]
        sign = f" {kind.sign:+d}" if any(k.sign < 0 for k in frame.kinds) else ""
        names.append(f"{'' if name is None else f'{name} '}{kind.change}{sign}")
    return ", ".join(names) + (", …" if len(strata) > 4 else "")


def _draw(frame: Frame, strata: list[Stratum], order: Places, seed: int) -> Drawn:
    item, mate, mate_row = (np.empty(order.size, np.int64) for _ in range(3))
    probability = np.empty(order.size)
    for k, kind in enumerate(frame.kinds):
        own = {h: each for h, each in enumerate(strata) if each.kind == k}
        if not own:
            continue
        slices = [each.slice for each in own.values()]
        number = np.full(len(frame.slicing.names), -1)
        number[slices] = np.arange(len(own))
        at = [np.flatnonzero(order == h) for h in own]
        points = [
            np.random.default_rng([seed, k, each]).random((here.size, 2))
            for each, here in zip(slices, at, strict=True)
        ]
        sums = frame.sums(kind)
        some = np.flatnonzero((sums > 0) & (frame.slices >= 0))
        rows = draw_rows(
            sums[some], frame.keys[some], number[frame.slices[some]], [each[:, 0] for each in points]
        )
        here, first = np.concatenate(at), some[np.concatenate(rows)]
        second_row, mass, second = frame.mates(kind, first, np.concatenate([each[:, 1] for each in points]))
        back = frame.weigh(kind, second, frame.mass[first])  # weight of the pair with item and mate exchanged
        back[(second < 0) | (frame.slices[second] != frame.slices[first])] = 0.0
        c = frame.weigh(kind, first, mass) + back
        item[here], mate[here], mate_row[here] = first, second, second_row
        probability[here] = c / np.array([strata[h].z for h in order[here]])
    return Drawn(order, item, mate, mate_row, probability)


def _table(frame: Frame, score: PairScore, strata: list[Stratum], drawn: Drawn, names: list[str]) -> pa.Table:
    """Return the table of drawn pairs: figures for the estimate, attributes of both items, and empty verdicts."""
    n = drawn.item.size
    items, rows = frame.ev.kept_items(), {"item": frame.rows[drawn.item], "mate": drawn.mate_row}
    kinds = [frame.kinds[strata[h].kind] for h in drawn.stratum]
    slices = np.array([strata[h].slice for h in drawn.stratum])
    repeats = _repeats(rows["item"], rows["mate"])
    columns: dict[str, Any] = {"pair": from_numpy(np.arange(1, n + 1))}
    columns["repeats"] = from_numpy(repeats, repeats == 0)
    columns |= {side: items.ids(own) for side, own in rows.items()}
    columns |= {"score": from_texts([score.name] * n), "n_pairs": from_numpy(np.full(n, n))}
    if frame.slicing.names != [None]:
        columns["stratum"] = from_texts([frame.slicing.names[h] for h in slices])
        columns["share"] = from_numpy(frame.slicing.shares[slices])
    columns["change"] = from_texts([kind.change for kind in kinds])
    columns["probability"] = from_numpy(drawn.probability)
    columns["sign"] = from_numpy(np.array([kind.sign for kind in kinds]))
    columns["z"] = from_numpy(np.array([strata[h].z for h in drawn.stratum]))
    if score.signed:
        columns["self_pairs"] = from_numpy(frame.self_pairs[slices])
    for name in names:
        for side, own in rows.items():
            columns[f"{side}.{name}"] = attribute_values(name, items, frame.ev.attributes, own)
    return pa.table({**columns, "verdict": pa.nulls(n, pa.string())})


def _repeats(item: RowNumbers, mate: RowNumbers) -> Places:
    """Return the number of the first draw of the same two items, and 0 for that draw itself."""
    both = np.stack([np.minimum(item, mate), np.maximum(item, mate)])
    _, first, which = np.unique(both, axis=1, return_index=True, return_inverse=True)
    found = first[which.reshape(-1)] + 1
    found[found == np.arange(1, found.size + 1)] = 0
    return found


CSV, PARQUET = ".csv", ".parquet"
#: Tests for types of columns that CSV cannot hold, and that are written as strings.
NOT_IN_CSV = pa.types.is_nested, pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary


def require_name(path: str | Path) -> None:
    """Raise OptionError unless a file name ends in .csv or .parquet."""
    if Path(path_of(path)).suffix.lower() not in (CSV, PARQUET):
        raise OptionError(f"pairs must be written to a file that ends in {CSV} or {PARQUET}, not to {path}")


def require_place(path: str | Path) -> None:
    """Raise OptionError if the file name has another extension, or if writing would overwrite verdicts."""
    require_name(path)
    try:
        judged = count_verdicts(path) if os.path.isfile(path) else 0
    except FastBCubedError:  # not a table of pairs
        judged = 0
    if judged:
        raise OptionError(
            f"{path} has {judged:,} verdict{'s' if judged > 1 else ''}, which would be lost; name another "
            "file, or move this one"
        )


def write_pairs(pairs: Table, path: str | Path) -> None:
    """Write pairs to a CSV or Parquet file."""
    require_name(path)
    with written_aside(Path(path)) as aside:
        if Path(path).suffix.lower() == CSV:
            write_csv(pairs, aside)
        else:
            import pyarrow.parquet as pq

            pq.write_table(pairs.to_arrow(), aside)


def write_csv(pairs: Table, file: Any) -> None:
    """Write pairs as CSV to a path or an open file, with one column for each part of a composite id.

    Strings that a spreadsheet would take for formulas are escaped.
    """
    import pyarrow.csv

    columns: dict[str, pa.ChunkedArray] = {}
    for name in pairs.column_names:
        for own, values in _plain(name, pairs[name]):
            # a part of an id that is also requested as an attribute is written once
            columns.setdefault(own, no_formulas(values))
    pyarrow.csv.write_csv(pa.table(columns), file)


def _plain(name: str, values: pa.ChunkedArray) -> Iterator[tuple[str, pa.ChunkedArray]]:
    """Yield columns that CSV can hold: the parts of composite ids, and strings for other unsupported types."""
    kind = values.type
    if pa.types.is_dictionary(kind):
        yield from _plain(name, values.cast(kind.value_type))
    elif pa.types.is_struct(kind) and name in ("item", "mate"):
        for field, part in zip(kind.fields, values.flatten(), strict=True):
            yield from _plain(f"{name}.{field.name}", part)
    elif any(test(kind) for test in NOT_IN_CSV):
        yield name, pa.chunked_array([from_texts([_text(value) for value in values.to_pylist()])])
    else:
        yield name, values


def _text(value: Any) -> str | None:
    if value is None:
        return None
    return value.hex() if isinstance(value, bytes) else json.dumps(value, ensure_ascii=False, default=str)
