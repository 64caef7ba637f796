"""Search of slices on one half of the units, and sums of those proposed on the other.

Of a slice it is asked whether what its units lose beyond the mean of all is more than chance gives. With m and M the
mean losses of the slice and of all, a the share of the slice, and sums over the items of a unit u,
``e_u = Σ_slice w (l - M) - a Σ_all w (l - M)``; the score is ``Σ e_u / sqrt(Σ e_u²)``. Items of a unit
depend on each other, and so count once, together. The score of few units is never large: it is at most the root of
their number.
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

#: Slices that are looked at most, and steps of rows that takes.
MOST_SLICES, MOST_STEPS = 100_000_000, 200_000_000_000
#: Units that a slice has at least on the half that is searched; more of the items than this are no slice of them.
FEWEST_UNITS, LARGEST = 5, 0.9
#: The least score on the half that is searched of a slice to propose, and of what it says beyond others.
PROPOSED, BEYOND = 2.0, 2.0
#: Slices of each set of columns, and of all, that are looked at again; how much a further condition has to bring.
OF_EACH, LOOKED_AT, SIMPLER = 20, 200, 0.5
#: Slices that share this much of the items of both are one; less than this of one is no overlap.
ALIKE, APART = 0.9, 0.1


class Condition(NamedTuple):
    """A value of a coded column, by position."""

    column: int
    code: int


class Candidate(NamedTuple):
    """A slice, and its score on the half that is searched."""

    conditions: tuple[Condition, ...]
    score: float = 0.0
    share: float = 0.0  #: of the weight

    def values(self, columns: Sequence[CodedColumn]) -> list[Value]:
        """Return what its items have."""
        return [columns[at].values[code] for at, code in self.conditions]

    def rows(self, columns: Sequence[CodedColumn], part: slice) -> NDArray[np.bool_]:
        """Return which rows are in it."""
        found = None
        for at, code in self.conditions:
            own = columns[at].codes[part] == code
            found = own if found is None else np.logical_and(found, own, out=found)
        assert found is not None
        return found


@dataclass(frozen=True, eq=False)
class Losses:
    """What rows lose, in the order of units: beyond the mean of their half, times their weight."""

    order: UnitOrder
    moved: Floats  #: weight * (loss - mean of the half)
    weight: Floats  #: empty where all are 1

    @classmethod
    def of(cls, order: UnitOrder, losses: Floats, weight: Floats) -> Losses:
        """Take the losses of rows in the order of units."""
        moved = np.empty(losses.size)
        for half in order.halves:
            own, mass = losses[half], weight[half] if weight.size else None
            mean = 0.0 if not own.size else float(np.average(own, weights=mass))
            moved[half] = own - mean if mass is None else mass * (own - mean)
        return cls(order, moved, weight)

    def whole(self, part: slice) -> Floats:
        """Return the sums of units of some rows: their weight, and what they lose. Shape (n_units, 2)."""
        moved = self.moved[part]
        mass = self.weight[part] if self.weight.size else np.ones(moved.size)
        return np.stack([self.order.by_unit(part, mass), self.order.by_unit(part, moved)], axis=1)


def influences(part: Floats, whole: Floats) -> Floats:
    """Return what each unit adds to the loss of a slice beyond that of a whole that it is in; see the module.

    Shapes: (n_units, 2), of weight and loss.

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
    """Return the score of a claim from what units add to it."""
    squares = float(np.sum(moved * moved))
    return float(np.sum(moved)) / math.sqrt(squares) if squares > 0 else 0.0


# -- All slices ------------------------------------------------------------------------------------


def sets_of_columns(columns: Sequence[CodedColumn], depth: int) -> Iterator[tuple[int, ...]]:
    """Yield the sets of columns, of different attributes, that slices are made of."""
    for size in range(1, depth + 1):
        for each in itertools.combinations(range(len(columns)), size):
            if len({columns[at].attribute for at in each}) == size:
                yield each


def require_work(columns: Sequence[CodedColumn], depth: int, n_rows: int) -> int:
    """Return how many slices there are to look at; OptionError, before the work, if they are too many."""
    n_values: dict[str, list[int]] = {}
    for each in columns:
        n_values.setdefault(each.attribute, []).append(len(each.values))
    slices, sets = [1] + [0] * depth, [1] + [0] * depth
    for own in n_values.values():  # elementary symmetric sums, attribute by attribute
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
    """Return the slices of the highest scores on the half that is searched, best first."""
    half = losses.order.halves[0]
    unit, moved = losses.order.unit[half], losses.moved[half]
    weight = losses.weight[half] if losses.weight.size else losses.weight
    of_unit = losses.order.by_unit(half, moved)
    squares = float(np.sum(of_unit * of_unit))

    def look(first: tuple[int, ...]) -> list[Candidate]:
        """Look at the slices of some columns and each one behind them."""
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
    """Return what candidates are ordered by, in which rounding does not decide; of a slice and all else the smaller."""
    n, texts = len(each.conditions), [value.text for value in each.values(columns)]
    return -round(abs(each.score) - SIMPLER * (n - 1), 6), n, round(each.share, 6), texts


def _best(
    sums: Floats, sizes: Sequence[int], squares: float, min_items: int, signs: Sequence[int]
) -> tuple[NDArray[np.int64], Floats, Floats]:
    """Return the numbers, scores and shares of the slices of a set of columns that may be proposed.

    Of several columns, so has the score of what a slice loses beyond what its values add up to, each by itself.
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
    """Return, by slice, the mean that the value of one of the columns has. Shape (n_slices,)."""
    shape, others = sizes[::-1], tuple(k for k in range(len(sizes)) if k != len(sizes) - 1 - at)
    of_value = moved.reshape(shape).sum(axis=others, keepdims=True) / mass.reshape(shape).sum(
        axis=others, keepdims=True
    )
    return np.broadcast_to(of_value, shape).ravel()


# -- What to propose -------------------------------------------------------------------------------


@dataclass(eq=False)
class Proposal:
    """A slice that is to be tested, and what it has to say beyond others that are."""

    slice: Candidate
    alike: list[Candidate] = field(default_factory=list)
    within: list[Proposal] = field(default_factory=list)  #: slices of which it has to lose more than the rest
    beyond: list[Proposal] = field(
        default_factory=list
    )  #: slices without which it has to lose more than the rest


class Part:
    """Some rows, of whole units, in which slices are compared."""

    def __init__(self, columns: Sequence[CodedColumn], losses: Losses, rows: slice) -> None:
        self._columns, self._rows = columns, rows
        self.whole = losses.whole(rows)
        unit = losses.order.unit[rows]
        self._unit = unit - unit[0] if unit.size else unit
        self._moved = losses.moved[rows][None]
        self._weight = losses.weight[rows] if losses.weight.size else losses.weight

    def rows(self, each: Candidate) -> NDArray[np.bool_]:
        """Return which rows are in a slice."""
        return each.rows(self._columns, self._rows)

    def weight(self, rows: NDArray[np.bool_]) -> float:
        """Return the weight of rows."""
        return float(np.sum(self._weight[rows]) if self._weight.size else np.count_nonzero(rows))

    @property
    def total(self) -> float:
        """The weight of all rows."""
        return float(self.whole[:, 0].sum())

    def _by_unit(self, first: NDArray[np.bool_], second: NDArray[np.bool_]) -> Floats:
        """Return the sums of units, of rows in neither of two sets, the first, the second, both. Shape (n, 4, 2)."""
        sums = np.zeros((len(self.whole), 4, 2))
        parts = first.view(np.uint8) + 2 * second.view(np.uint8)
        kernels.slices.add_by_unit(parts, self._unit, self._moved, self._weight, sums)
        return sums

    def beyond_all(self, rows: NDArray[np.bool_], of: NDArray[np.bool_] | None = None) -> Floats:
        """Return what units add to the loss of rows beyond that of some that they are compared with, or of all."""
        sums = self._by_unit(rows, np.ones(rows.size, np.bool_) if of is None else of)
        return influences(sums[:, 3], self.whole if of is None else sums[:, 2] + sums[:, 3])

    def together(self, each: Candidate) -> list[Floats]:
        """Return what units add to the loss of a slice beyond the sum of what its conditions have each.

        That is its mean less those of rows that lack one condition, and of rows that lack the others, plus that of rows
        that lack both. One for each condition; of two these are the same.
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
        """Return what units add to each claim on a slice: first that it loses more than all else."""
        rows = self.rows(proposal.slice)
        found = [self.beyond_all(rows), *self.together(proposal.slice)]
        found += [self.beyond_all(rows, self.rows(each.slice)) for each in proposal.within]
        return found + [self.beyond_all(rows, ~self.rows(each.slice)) for each in proposal.beyond]


def propose(
    found: Sequence[Candidate], columns: Sequence[CodedColumn], losses: Losses, limit: int
) -> list[Proposal]:
    """Return slices to test: those that say something beyond the ones before, with what is to be tested of each.

    Candidates are looked at from the best on, on a sample of the half that is searched. One with nearly the same items
    as an earlier one is folded under it. A slice of several conditions has to lose more than these add up to.
    """
    part = Part(columns, losses, slice(0, losses.order.sampled))
    proposals: list[Proposal] = []
    masks: list[NDArray[np.bool_]] = []
    for each in found:
        rows, made = part.rows(each), Proposal(each)
        own, sign = part.weight(rows), math.copysign(1.0, each.score)
        alike = _alike(part, rows, proposals, masks)
        if alike is not None:
            if each.score * alike.slice.score > 0:  # all others say the same with the other sign
                if len(each.conditions) < len(alike.slice.conditions):
                    alike.slice, each = each, alike.slice
                alike.alike.append(each)
        elif own and _says_more(part, made, rows, sign, proposals, masks):
            for known, others in zip(proposals, masks, strict=True):  # earlier ones that are a part of it
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
    """Return the proposal with nearly the same items, or with nearly all others, if there is one."""
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
    """Return whether a slice says something beyond its conditions and the proposals, and note what is to be tested."""
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
