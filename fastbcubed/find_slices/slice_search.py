"""Search for slices on one half of the units, and sums of the proposed slices on the other half.

The question is whether the units of a slice lose more, beyond the mean of all items, than chance would explain. With
m and M the mean losses of the slice and of all items, a the slice's share of the weight, and sums over the items of a
unit u, ``e_u = Σ_slice w (l - M) - a Σ_all w (l - M)``; the score is ``Σ e_u / sqrt(Σ e_u²)``. Items of a unit depend
on each other, so each unit contributes one term. The score of a few units is never large: it is at most the square
root of their number.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.errors import OptionError, Word, arg, first_few
from fastbcubed.find_slices.coded_columns import CodedColumn, Value, slice_sums
from fastbcubed.find_slices.unit_order import UnitOrder
from fastbcubed.runtime.threads import Pool
from fastbcubed.types import Floats

#: Maximum number of slices examined, and of rows processed for them.
MOST_SLICES, MOST_STEPS = 100_000_000, 200_000_000_000
#: Minimum number of units of a slice on the searched half, and its maximum share of the weight.
FEWEST_UNITS, LARGEST = 5, 0.9
#: Minimum score on the searched half of a slice to be proposed, and of its difference from related slices.
PROPOSED, BEYOND = 2.0, 2.0
#: Maximum number of candidates per set of columns, and per number of conditions; score that a further condition costs.
OF_EACH, LOOKED_AT, SIMPLER = 20, 200, 0.5
#: Slices that share at least this share of both slices' weight are alike; a smaller share of one is no overlap.
ALIKE, APART = 0.9, 0.1


class Condition(NamedTuple):
    """A condition of a slice: the position of a coded column, and one of its codes."""

    column: int
    code: int


class Candidate(NamedTuple):
    """A slice, with its score and share on the searched half."""

    conditions: tuple[Condition, ...]
    score: float = 0.0
    share: float = 0.0  #: share of the weight

    def values(self, columns: Sequence[CodedColumn]) -> list[Value]:
        """Return the values of its conditions."""
        return [columns[at].values[code] for at, code in self.conditions]

    def rows(self, columns: Sequence[CodedColumn], part: slice) -> NDArray[np.bool_]:
        """Return the mask of its rows within a part of all rows."""
        found = None
        for at, code in self.conditions:
            own = columns[at].codes[part] == code
            found = own if found is None else np.logical_and(found, own, out=found)
        assert found is not None
        return found


@dataclass(frozen=True, eq=False)
class Losses:
    """The losses of rows, sorted by unit, beyond the mean of their half."""

    order: UnitOrder
    moved: Floats  #: weight * (loss - mean of the half)
    weight: Floats  #: empty if all weights are 1

    @classmethod
    def of(cls, order: UnitOrder, losses: Floats, weight: Floats) -> Losses:
        """Return the losses, given in the order of units, relative to the mean of each half."""
        moved = np.empty(losses.size)
        for half in order.halves:
            own, mass = losses[half], weight[half] if weight.size else None
            mean = 0.0 if not own.size else float(np.average(own, weights=mass))
            moved[half] = own - mean if mass is None else mass * (own - mean)
        return cls(order, moved, weight)

    def whole(self, part: slice) -> Floats:
        """Return the weight and the summed `moved` of each unit in a part of the rows. Shape (n_units, 2)."""
        moved = self.moved[part]
        mass = self.weight[part] if self.weight.size else np.ones(moved.size)
        return np.stack([self.order.by_unit(part, mass), self.order.by_unit(part, moved)], axis=1)


def influences(part: Floats, whole: Floats) -> Floats:
    """Return each unit's contribution to a slice's loss beyond the mean of a whole that contains it: e_u above.

    Shapes: (n_units, 2), weight and loss of each unit in the slice and in the whole.

    >>> whole = np.array([[2.0, 1.0], [2.0, 0.0]])  # of mean 1/4
    >>> influences(np.array([[1.0, 1.0], [1.0, 0.0]]), whole).tolist()  # a is 1/2
    [0.5, 0.0]
    """
    (mass, moved), (mass_of_whole, of_whole) = part.T, whole.T
    total = float(mass_of_whole.sum())
    if not total:
        return np.zeros(moved.size)
    mean, share = float(of_whole.sum()) / total, float(mass.sum()) / total
    return (moved - mean * mass) - share * (of_whole - mean * mass_of_whole)


def score(moved: Floats) -> float:
    """Return the sum of the units' contributions, divided by the square root of the sum of their squares."""
    squares = float(np.sum(moved * moved))
    return float(np.sum(moved)) / math.sqrt(squares) if squares > 0 else 0.0


# -- Candidates ------------------------------------------------------------------------------------


def sets_of_columns(columns: Sequence[CodedColumn], depth: int) -> Iterator[tuple[int, ...]]:
    """Yield the sets of up to `depth` columns of different attributes, by whose values slices are defined."""
    for size in range(1, depth + 1):
        for each in itertools.combinations(range(len(columns)), size):
            if len({columns[at].attribute for at in each}) == size:
                yield each


def require_work(columns: Sequence[CodedColumn], depth: int, n_rows: int) -> int:
    """Return the number of slices to examine; raise OptionError before the work if it is too large."""
    n_values: dict[str, list[int]] = {}
    for each in columns:
        n_values.setdefault(each.attribute, []).append(len(each.values))
    slices, sets = [1] + [0] * depth, [1] + [0] * depth
    for own in n_values.values():  # computes elementary symmetric sums, attribute by attribute
        for size in range(depth, 0, -1):
            slices[size] += slices[size - 1] * sum(own)
            sets[size] += sets[size - 1] * len(own)
    n, steps = sum(slices[1:]), sum(sets[1:]) * n_rows
    if n > MOST_SLICES or steps > MOST_STEPS:
        largest = sorted(n_values, key=lambda name: -max(n_values[name]))
        lower = f"pass {arg('depth', depth - 1)}, " if depth > 1 else "pass "
        raise OptionError(
            f"{arg('depth', depth)} would search {n:,} slices of {len(n_values):,} {Word('attributes')} in "
            f"{steps:,} steps; the limits are {MOST_SLICES:,} slices and {MOST_STEPS:,} steps. To search "
            f"fewer, {lower}fewer {arg('attributes', ...)} (most values have {first_few(largest)}), or a "
            f"larger {arg('min_items', ...)}"
        )
    return n


def candidates(
    columns: Sequence[CodedColumn],
    losses: Losses,
    depth: int,
    min_items: int,
    signs: Sequence[int],
    pool: Pool,
) -> list[Candidate]:
    """Return the slices with the highest scores on the searched half, best first."""
    half = losses.order.halves[0]
    unit, moved = losses.order.unit[half], losses.moved[half]
    weight = losses.weight[half] if losses.weight.size else losses.weight
    of_unit = losses.order.by_unit(half, moved)
    squares = float(np.sum(of_unit * of_unit))

    def look(first: tuple[int, ...]) -> list[Candidate]:
        """Return candidates of the sets that consist of these columns and one further column."""
        base, found = np.zeros(unit.size, np.int32), list[Candidate]()
        sizes = [len(columns[at].values) for at in first]
        strides = [math.prod(sizes[:k]) for k in range(len(sizes) + 1)]
        for at, stride in zip(first, strides, strict=False):
            base += columns[at].codes[half] * np.int32(stride)
        for own in by_first[first]:
            last = columns[own[-1]]
            every = [*sizes, len(last.values)]
            sums = slice_sums(
                math.prod(every), base, last.codes[half], strides[-1], unit, moved, weight, of_unit
            )
            for key, *figures in zip(*_best(sums, every, squares, min_items, signs), strict=True):
                codes = [int(key // stride % size) for stride, size in zip(strides, every, strict=True)]
                found.append(Candidate(tuple(map(Condition, own, codes)), *map(float, figures)))
        return found

    by_first: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
    for own in sets_of_columns(columns, depth):
        by_first.setdefault(own[:-1], []).append(own)
    found = [each for some in pool.map(look, list(by_first), stage="slices") for each in some]
    ranked = sorted(found, key=lambda each: _rank(each, columns))
    by_size = [
        [each for each in ranked if len(each.conditions) == size][:LOOKED_AT] for size in range(1, depth + 1)
    ]
    return sorted(itertools.chain(*by_size), key=lambda each: _rank(each, columns))


def _rank(each: Candidate, columns: Sequence[CodedColumn]) -> tuple[float, int, float, list[str]]:
    """Return the sort key of candidates: score less the cost of conditions, then number of conditions, share and text.

    Scores are rounded, so that rounding errors do not change the order; of a slice and its complement, the smaller
    comes first.
    """
    n, texts = len(each.conditions), [value.text for value in each.values(columns)]
    return -round(abs(each.score) - SIMPLER * (n - 1), 6), n, round(each.share, 6), texts


def _best(
    sums: Floats, sizes: Sequence[int], squares: float, min_items: int, signs: Sequence[int]
) -> tuple[NDArray[np.int64], Floats, Floats]:
    """Return the numbers, scores and shares of the slices of a set of columns that may be proposed.

    For several columns, the score of the loss beyond the sum of what each value contributes on its own must also be
    high.
    """
    n, mass, units, moved, own, product = (sums[:, k] for k in range(6))
    share = mass / max(float(mass.sum()), 1e-300)
    variance = own - 2 * share * product + share * share * squares
    with np.errstate(divide="ignore", invalid="ignore"):
        scores = np.where(variance > 1e-12 * squares, moved / np.sqrt(np.maximum(variance, 0)), 0.0)
    together = scores
    if len(sizes) > 1:
        with np.errstate(divide="ignore", invalid="ignore"):
            added = np.sum([_means(moved, mass, sizes, at) for at in range(len(sizes))], axis=0)
            together = np.where(scores != 0, scores * (1 - mass * added / moved), 0.0)
    enough = (2 * n >= min_items) & (units >= FEWEST_UNITS) & (share <= LARGEST)
    signed = np.max([np.minimum(sign * scores, sign * together) for sign in signs], axis=0)
    there = np.flatnonzero(enough & (signed >= PROPOSED))
    first = there[np.argsort(-np.round(signed[there], 6), kind="stable")[:OF_EACH]]
    return first, scores[first], share[first]


def _means(moved: Floats, mass: Floats, sizes: Sequence[int], at: int) -> Floats:
    """Return, for each slice, the mean of all rows that have its value in one of the columns. Shape (n_slices,)."""
    shape, others = sizes[::-1], tuple(k for k in range(len(sizes)) if k != len(sizes) - 1 - at)
    of_value = moved.reshape(shape).sum(axis=others, keepdims=True) / mass.reshape(shape).sum(
        axis=others, keepdims=True
    )
    return np.broadcast_to(of_value, shape).ravel()


# -- Proposals -------------------------------------------------------------------------------------


@dataclass(eq=False)
class Proposal:
    """A slice to be tested, slices with nearly the same items, and the proposals with which it is compared.

    It must lose more than the other items of each slice in `within`, and still lose more than the rest when the items
    of a slice in `beyond` are left out.
    """

    slice: Candidate
    alike: list[Candidate] = field(default_factory=list)
    within: list[Proposal] = field(default_factory=list)  #: slices that contain it
    beyond: list[Proposal] = field(default_factory=list)  #: slices that overlap it


class Part:
    """A range of rows, consisting of whole units, on which slices are compared."""

    def __init__(self, columns: Sequence[CodedColumn], losses: Losses, rows: slice) -> None:
        self._columns, self._rows = columns, rows
        self.whole = losses.whole(rows)
        unit = losses.order.unit[rows]
        self._unit = unit - unit[0] if unit.size else unit
        self._moved = losses.moved[rows][None]
        self._weight = losses.weight[rows] if losses.weight.size else losses.weight

    def rows(self, each: Candidate) -> NDArray[np.bool_]:
        """Return the mask of a slice's rows."""
        return each.rows(self._columns, self._rows)

    def weight(self, rows: NDArray[np.bool_]) -> float:
        """Return the total weight of the rows in a mask."""
        return float(np.sum(self._weight[rows]) if self._weight.size else np.count_nonzero(rows))

    @property
    def total(self) -> float:
        """The total weight of all rows."""
        return float(self.whole[:, 0].sum())

    def _by_unit(self, first: NDArray[np.bool_], second: NDArray[np.bool_]) -> Floats:
        """Return weight and loss of each unit's rows: in neither mask, the first, the second, both. Shape (n, 4, 2)."""
        sums = np.zeros((len(self.whole), 4, 2))
        parts = first.view(np.uint8) + 2 * second.view(np.uint8)
        kernels.slices.add_by_unit(parts, self._unit, self._moved, self._weight, sums)
        return sums

    def beyond_all(self, rows: NDArray[np.bool_], of: NDArray[np.bool_] | None = None) -> Floats:
        """Return each unit's contribution to the loss of `rows` beyond the mean of all rows, or of the rows `of`."""
        sums = self._by_unit(rows, np.ones(rows.size, np.bool_) if of is None else of)
        return influences(sums[:, 3], self.whole if of is None else sums[:, 2] + sums[:, 3])

    def together(self, each: Candidate) -> list[Floats]:
        """Return each unit's contribution to a slice's loss beyond what its conditions contribute separately.

        This is the slice's mean, minus that of rows that lack one condition, minus that of rows that lack the others,
        plus that of rows that lack both. There is one array per condition, except that two conditions give the same
        array.
        """
        splits = (
            each.conditions[: 1 if len(each.conditions) == 2 else None] if len(each.conditions) > 1 else ()
        )
        found = []
        for one in splits:
            others = Candidate(tuple(other for other in each.conditions if other != one))
            sums = self._by_unit(self.rows(Candidate((one,))), self.rows(others))
            mass = np.maximum(sums[:, :, 0].sum(axis=0), 1e-300)
            found.append(sums[:, :, 1] @ (np.array([1.0, -1.0, -1.0, 1.0]) / mass))
        return found

    def claims(self, proposal: Proposal) -> list[Floats]:
        """Return each unit's contribution to the claims about a slice, first that it loses more than the rest."""
        rows = self.rows(proposal.slice)
        found = [self.beyond_all(rows), *self.together(proposal.slice)]
        found += [self.beyond_all(rows, self.rows(each.slice)) for each in proposal.within]
        return found + [self.beyond_all(rows, ~self.rows(each.slice)) for each in proposal.beyond]


def propose(
    found: Sequence[Candidate], columns: Sequence[CodedColumn], losses: Losses, limit: int
) -> list[Proposal]:
    """Return the slices to test, each of which differs from the ones before, with the claims to be tested.

    Candidates are examined best first, on a sample of the searched half. A candidate with nearly the same items as an
    earlier proposal is listed with it as alike. A slice of several conditions must lose more than the sum of what its
    conditions contribute separately.
    """
    part = Part(columns, losses, slice(0, losses.order.sampled))
    proposals: list[Proposal] = []
    masks: list[NDArray[np.bool_]] = []
    for each in found:
        rows, made = part.rows(each), Proposal(each)
        own, sign = part.weight(rows), math.copysign(1.0, each.score)
        alike = _alike(part, rows, proposals, masks)
        if alike is not None:
            if each.score * alike.slice.score > 0:  # a complement, with the opposite sign, says nothing new
                if len(each.conditions) < len(alike.slice.conditions):
                    alike.slice, each = each, alike.slice
                alike.alike.append(each)
        elif own and _says_more(part, made, rows, sign, proposals, masks):
            for known, others in zip(
                proposals, masks, strict=True
            ):  # finds earlier proposals that it contains
                if part.weight(rows & others) >= ALIKE * part.weight(others):
                    known.within.append(made)
            proposals.append(made)
            masks.append(rows)
        if len(proposals) == limit:
            break
    return proposals


def _alike(
    part: Part, rows: NDArray[np.bool_], proposals: Sequence[Proposal], masks: Sequence[NDArray[np.bool_]]
) -> Proposal | None:
    """Return the proposal that has nearly the same items, or nearly the complement, if there is one."""
    own, total = part.weight(rows), part.total
    for known, others in zip(proposals, masks, strict=True):
        common, theirs = part.weight(rows & others), part.weight(others)
        for same, size in ((common, theirs), (own - common, total - theirs)):
            if same >= ALIKE * max(own, size):
                return known
    return None


def _says_more(
    part: Part,
    made: Proposal,
    rows: NDArray[np.bool_],
    sign: float,
    proposals: Sequence[Proposal],
    masks: Sequence[NDArray[np.bool_]],
) -> bool:
    """Return whether a slice differs from its conditions and from the proposals; record which to compare it with."""
    if any(sign * score(each) < BEYOND for each in part.together(made.slice)):
        return False
    own = part.weight(rows)
    for known, others in zip(proposals, masks, strict=True):
        common = part.weight(rows & others)
        if common <= APART * own or sign != math.copysign(1.0, known.slice.score):
            continue
        inside = common >= ALIKE * own
        of = others if inside else ~others
        if sign * score(part.beyond_all(rows, of)) < BEYOND:
            return False
        (made.within if inside else made.beyond).append(known)
    return True
