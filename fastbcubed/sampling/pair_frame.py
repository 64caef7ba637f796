"""What pairs are drawn from: the items whose clusters differ, what the pairs of each add up to, and all of a stratum.

With B and E the clusters of an item before and now, the pairs of a score are those with the mates in B but not in E
(split), in E but not in B (merged), in both (stable). A pair weighs c = (w_i / N) w_j u, where u depends on the cell of
the item alone: 1/w(B), 1/w(E) or 1/w(B ∪ E), and for stable pairs |1/w(E) - 1/w(B)|. So an item's pairs of one kind add
up to (w_i / N) u times what these mates weigh, which the cell knows, and no pair need be looked at to add them up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.cells.confusion import Confusion, confusion
from fastbcubed.cells.contingency import Contingency
from fastbcubed.cells.scored_rows import ScoredRows
from fastbcubed.errors import MetricError, SliceError
from fastbcubed.results.evaluation import Evaluation
from fastbcubed.results.items.items import RowNumbers, without_noise
from fastbcubed.results.slices.slicing import SliceKey, check_key, slice_codes
from fastbcubed.results.text.wording import label
from fastbcubed.runtime.cached import cached_property
from fastbcubed.runtime.pool import Pool
from fastbcubed.sampling.pair_draws import Floats, Keys, Places, draw_mates, sums_by_stratum
from fastbcubed.sampling.pair_scores import MERGED, SPLIT, STABLE, PairScore
from fastbcubed.sources import as_column, comparable_keys
from fastbcubed.sources.fingerprints import write_both

#: Two weights this close beside the larger one are taken as equal: what is left of them is rounding.
ROUNDING = 1e-12


class Kind(NamedTuple):
    """Pairs of one kind: what the change did to them, whether they count for the score, and u by cell."""

    change: str
    sign: int
    unit: Floats


def kinds_of(score: PairScore, table: Contingency) -> list[Kind]:
    """Return the kinds of pairs that a score adds up."""
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
    """Return 1/w(E) - 1/w(B) by cell, from what differs."""
    return (matrix.fn - matrix.fp) / (matrix.tp + matrix.fp) / (matrix.tp + matrix.fn)


@dataclass(frozen=True, eq=False)
class Slicing:
    """The slices that strata are in: the slice of each row, their names, their shares of the weight."""

    codes: Places
    names: list[str | None]
    shares: Floats

    @classmethod
    def of(cls, ev: Evaluation, by: SliceKey | None) -> Slicing:
        """Cut the items by attributes; without any, all are one slice, which has no name."""
        table, rows = ev.contingency, _rows(ev)
        if by is None:
            return cls(np.zeros(rows.cell.size, np.int64), [None], np.ones(1))
        key = check_key(by)
        if isinstance(key, Mapping):
            raise SliceError(
                "strata are by an attribute, bins of one, or several of these crossed; subsets may share items"
            )
        cut = slice_codes(key, table, ev.kept_items(), ev.attributes)
        parts = [[label(value) for value in column.to_pylist()] for column in cut.values.values()]
        names = [", ".join(each) for each in zip(*parts, strict=True)]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise SliceError(
                f"two strata would be written alike, as {twice!r}; rename these values of the attribute"
            )
        scored = (rows.cell >= 0) & (cut.codes >= 0)
        weights = sums_by_stratum(rows.weight[scored], cut.codes[scored], len(names))
        return cls(cut.codes, list(names), weights / table.total_weight)


@dataclass(frozen=True, eq=False)
class Frame:
    """The items whose clusters differ. Arrays have one entry for each of them."""

    ev: Evaluation
    kinds: list[Kind]
    slicing: Slicing
    rows: RowNumbers
    cell: Places
    weight: Floats  #: in means

    @classmethod
    def of(cls, ev: Evaluation, score: PairScore, by: SliceKey | None) -> Frame:
        """Find the items that are in a pair of the score."""
        table = ev.contingency
        if table.overlapping:
            raise MetricError("pairs are drawn from changed partitions; here, clusters may overlap")
        slicing, rows = Slicing.of(ev, by), _rows(ev)
        differs = (table.fp > 0) | (table.fn > 0)
        chosen = np.flatnonzero((rows.cell >= 0) & differs[rows.cell])
        return cls(
            ev,
            kinds_of(score, table),
            slicing,
            chosen,
            rows.cell[chosen].astype(np.int64),
            rows.weight[chosen],
        )

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
        """What each item weighs as a mate."""
        return np.ones(self.rows.size) if self.ev.contingency.weighting == "outer" else self.weight

    @cached_property
    def keys(self) -> Keys:
        """A number for each item that depends on its id alone, by which rows are put in order."""
        return _keys(self.ev, self.rows)

    @cached_property
    def beside(self) -> Floats:
        """What the cell of each item holds besides it, from a sum of twice the digits."""
        table = self.ev.contingency
        if not table.weighted or table.weighting == "outer":
            return np.asarray(table.n[self.cell] - 1.0, np.float64)
        totals, errors = np.zeros(table.n_cells), np.zeros(table.n_cells)
        kernels.sums.add_by_code(self.cell, self.mass, np.ones(self.cell.size), None, totals, errors)
        beside = (totals[self.cell] - self.mass) + errors[self.cell]
        beside[table.n[self.cell] == 1] = 0.0
        return beside

    def sums(self, kind: Kind) -> Floats:
        """Return what the pairs of each item add up to, but for the weight of all items."""
        table = self.ev.contingency
        mates = {SPLIT: table.fn, MERGED: table.fp}
        of_mates = self.beside if kind.change == STABLE else mates[kind.change][self.cell]
        return self.weight * (kind.unit[self.cell] * of_mates)

    def weigh(self, kind: Kind, item: Places, mass: Floats) -> Floats:
        """Return c of pairs: an item, and what its mate weighs."""
        return self.weight[item] / self.total * (kind.unit[self.cell[item]] * mass)

    @cached_property
    def self_pairs(self) -> Floats:
        """What pairs of an item with itself add to the change of precision, by slice."""
        gain = _gain(confusion(self.ev.contingency))[self.cell]
        sums = sums_by_stratum(self.weight * (self.mass * gain), self.slices, len(self.slicing.names))
        return sums / self.total

    def mates(self, kind: Kind, item: Places, shares: Floats) -> tuple[RowNumbers, Floats, Places]:
        """Draw a mate for each of some items; return its row, what it weighs, and its place in the frame or -1."""
        table = self.ev.contingency
        if kind.change == STABLE:
            own = np.arange(self.rows.size)
            drawn = draw_mates(self.cell, own, self.keys, self.mass, item, shares)
            return self.rows[drawn], self.mass[drawn], drawn
        codes = np.asarray(table.true if kind.change == SPLIT else table.pred, np.int64)[self.cell]
        more = self._outsiders(codes, item) if kind.change == MERGED and table.outside else _Outsiders.none()
        rows = np.append(self.rows, more.rows)
        mass = np.append(self.mass, more.mass)
        drawn = draw_mates(
            np.append(codes, more.codes),
            np.append(self.cell, np.full(more.rows.size, -1)),
            np.append(self.keys, more.keys),
            mass,
            item,
            shares,
        )
        return rows[drawn], mass[drawn], np.where(drawn < self.rows.size, drawn, -1)

    def _outsiders(self, codes: Places, item: Places) -> _Outsiders:
        """Return the items that only the prediction has, and that are in clusters of some items."""
        items, rows = self.ev.kept_items(), _rows(self.ev)
        alone = np.flatnonzero(rows.cell < 0)
        clusters, first = np.unique(codes[item], return_index=True)
        labels = [
            without_noise(_whole(items.labels("pred", some)), self.ev.policies.noise)
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
    """Items that only the prediction has: their rows, predicted clusters, what they weigh as mates, their keys."""

    rows: RowNumbers
    codes: Places
    mass: Floats
    keys: Keys

    @classmethod
    def none(cls) -> _Outsiders:
        empty = np.empty(0, np.int64)
        return cls(empty, empty, np.empty(0), np.empty(0, np.uint64))


def _rows(ev: Evaluation) -> ScoredRows:
    """Return the rows behind the cells, or raise NotKeptError."""
    ev.kept_items()
    assert ev.contingency.rows is not None
    return ev.contingency.rows


def _keys(ev: Evaluation, rows: RowNumbers) -> NDArray[np.uint64]:
    """Return the hashes of the ids of some rows, which are equal in every container."""
    if not rows.size:
        return np.empty(0, np.uint64)
    with Pool(1) as pool:
        return write_both(as_column(ev.kept_items().ids(rows), "item").plain, 0, pool)[0].view(np.uint64)


def _whole(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
