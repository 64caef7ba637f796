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
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.errors import OptionError, Word, arg, first_few
from fastbcubed.find_slices.coded_columns import CodedColumn, Value
from fastbcubed.find_slices.losses_by_unit import Claim, Losses, Members, Parts
from fastbcubed.runtime.threads import Pool
from fastbcubed.types import Floats, Mask

#: Maximum number of slices examined, and of rows processed for them.
MOST_SLICES, MOST_STEPS = 100_000_000, 200_000_000_000
#: Minimum number of units of a slice on the searched half, and its maximum share of the weight.
FEWEST_UNITS, LARGEST = 5, 0.9
#: Minimum score on the searched half of a slice to be proposed, and of its difference from related slices.
PROPOSED, BEYOND = 2.0, 2.0
#: Maximum number of candidates per set of columns, and per number of conditions; score that a further condition costs.
OF_EACH, LOOKED_AT, SIMPLER = 20, 200, 0.5
#: Claims about different slices are computed at the same time, each in one thread.
ALONE = Pool(1)
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

    def rows(self, columns: Sequence[CodedColumn], part: slice) -> Mask:
        """Return the mask of its rows within a part of all rows."""
        found = None
        for at, code in self.conditions:
            own = columns[at].codes.of_rows(part) == code
            found = own if found is None else np.logical_and(found, own, out=found)
        assert found is not None
        return found


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
            f"fewer, {lower}fewer {arg('attributes', ...)} (those with most values: {first_few(largest)}), or a "
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
    codes, products = [each.codes for each in columns], losses.products(losses.order.halves[0])
    alone = pool.map(lambda own: next(losses.slice_sums([], [own], products)), codes, stage="slices")
    worth = _Worth.of(alone, losses, min_items, signs)

    def look(first: tuple[int, ...]) -> list[Candidate]:
        """Return candidates of the sets that consist of these columns and one further column."""
        sets, found = by_first[first], list[Candidate]()
        for own, sums in zip(
            sets,
            losses.slice_sums([codes[at] for at in first], [codes[own[-1]] for own in sets], products),
            strict=True,
        ):
            found += worth.best(own, sums)
        return found

    by_first: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
    for own in sets_of_columns(columns, depth):
        if len(own) > 1:
            by_first.setdefault(own[:-1], []).append(own)
    found = [each for at, sums in enumerate(alone) for each in worth.best((at,), sums)]
    found += [each for some in pool.map(look, list(by_first), stage="slices") for each in some]
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


class _Worth(NamedTuple):
    """The figures with which sums of slices on the searched half are compared."""

    mass: float  #: weight of all rows
    squares: float  #: sum of squares of the units' losses
    means: list[Floats]  #: mean loss of each code, by column
    min_items: int
    signs: Sequence[int]

    @classmethod
    def of(cls, alone: Sequence[Floats], losses: Losses, min_items: int, signs: Sequence[int]) -> _Worth:
        """Return the figures, given the sums of slices of single columns."""
        own = kernels.slices
        with np.errstate(divide="ignore", invalid="ignore"):
            means = [sums[:, own.MOVED] / sums[:, own.WEIGHT] for sums in alone]
        squares = float(np.sum(losses.of_unit * losses.of_unit))
        return cls(losses.mass(losses.order.halves[0]), squares, means, min_items, signs)

    def best(self, columns: tuple[int, ...], sums: Floats) -> list[Candidate]:
        """Return the slices of a set of columns that may be proposed.

        For several columns, the score of the loss beyond the sum of what each value contributes on its own must also
        be high.
        """
        n, mass, units, moved, own, product = sums[:, :6].T
        share = mass / max(self.mass, 1e-300)
        variance = own - 2 * share * product + share * share * self.squares
        with np.errstate(divide="ignore", invalid="ignore"):
            scores = np.where(variance > 1e-12 * self.squares, moved / np.sqrt(np.maximum(variance, 0)), 0.0)
        large = scores >= PROPOSED if -1 not in self.signs else np.abs(scores) >= PROPOSED
        enough = (2 * n >= self.min_items) & (units >= FEWEST_UNITS) & (share <= LARGEST)
        there = np.flatnonzero(large & enough)
        codes, left = [], there
        for at in columns:
            codes.append(left % self.means[at].size)
            left = left // self.means[at].size
        together = scores[there]
        if len(columns) > 1:
            added = np.sum([self.means[at][code] for at, code in zip(columns, codes, strict=True)], axis=0)
            together = together * (1 - mass[there] * added / moved[there])
        signed = np.max([np.minimum(sign * scores[there], sign * together) for sign in self.signs], axis=0)
        first = np.argsort(-np.round(signed, 6), kind="stable")[:OF_EACH]
        return [
            Candidate(
                tuple(Condition(at, int(code[k])) for at, code in zip(columns, codes, strict=True)),
                float(scores[there[k]]), float(share[there[k]]),
            )
            for k in first[signed[first] >= PROPOSED].tolist()
        ]  # fmt: skip


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
        self._columns, self._rows, self._valued = columns, rows, losses.rows
        self._weight = losses.weight[rows] if losses.weight.size else losses.weight
        self.total = losses.mass(rows)  #: the total weight of all rows

    def members(self, each: Candidate) -> Members:
        """Return a function for the mask of a slice's rows within a part of all rows."""
        return partial(each.rows, self._columns)

    def weight(self, rows: Mask) -> float:
        """Return the total weight of the rows in a mask."""
        return float(np.sum(self._weight[rows]) if self._weight.size else np.count_nonzero(rows))

    def beyond(self, inside: Members, of: Members | None = None) -> Claim:
        """Return the claim that rows lose more than the mean of all rows, or of the rows `of` among which they are."""

        def parts(rows: slice) -> NDArray[np.uint8]:
            own = inside(rows)
            if of is None:
                return own.view(np.uint8) + np.uint8(1)
            among = of(rows)
            return among.view(np.uint8) + (own & among).view(np.uint8)

        sums = self._by_part(parts, 3)
        return self._claim(parts, beyond_rest(sums[1:, 1:]))

    def _by_part(self, parts: Parts, n_parts: int) -> Floats:
        return self._valued.by_part(self._rows, [parts], n_parts, ALONE)[0]

    def _claim(self, parts: Parts, factors: Floats) -> Claim:
        return self._valued.claims(self._rows, [(parts, [factors])], ALONE)[0][0]

    def together(self, each: Candidate) -> list[Claim]:
        """Return the claims that a slice loses more than its conditions contribute separately.

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
            first, second = self.members(Candidate((one,))), self.members(others)

            def parts(rows: slice, first: Members = first, second: Members = second) -> NDArray[np.uint8]:
                return first(rows).view(np.uint8) + np.uint8(2) * second(rows).view(np.uint8)

            mass = np.maximum(self._by_part(parts, 4)[:, 1], 1e-300)
            factors = np.zeros((4, 2))
            factors[:, 1] = np.array([1.0, -1.0, -1.0, 1.0]) / mass
            found.append(self._claim(parts, factors))
        return found

    def claims(self, proposal: Proposal) -> list[Claim]:
        """Return the claims about a slice, first that it loses more than the rest."""
        inside = self.members(proposal.slice)
        found = [self.beyond(inside), *self.together(proposal.slice)]
        found += [self.beyond(inside, self.members(each.slice)) for each in proposal.within]
        return found + [self.beyond(inside, outside(self.members(each.slice))) for each in proposal.beyond]


def beyond_rest(sums: Floats) -> Floats:
    """Return the factors of weight and loss by which rows contribute to a slice's loss beyond a whole: to e_u above.

    Shapes: (2, 2), weight and loss of the whole outside and inside the slice, to (3, 2): of rows that are not in the
    whole, and of those outside and inside the slice.

    >>> beyond_rest(np.array([[2.0, 0.0], [2.0, 1.0]])).tolist()  # a is 1/2, M is 1/4
    [[0.0, 0.0], [0.125, -0.5], [-0.125, 0.5]]
    """
    factors, (mass, moved) = np.zeros((3, 2)), sums.sum(axis=0).tolist()
    if mass:
        mean, share = moved / mass, float(sums[1, 0]) / mass
        factors[1:] = np.array([[-share], [1 - share]]) * [-mean, 1.0]
    return factors


def outside(members: Members) -> Members:
    """Return the function for the mask of all other rows."""
    return lambda rows: ~members(rows)


def as_members(mask: Mask) -> Members:
    """Return the function for a mask that is known, of the first rows."""
    return lambda rows: mask[rows]


def propose(
    found: Sequence[Candidate], columns: Sequence[CodedColumn], losses: Losses, limit: int
) -> list[Proposal]:
    """Return the slices to test, each of which differs from the ones before, with the claims to be tested.

    Candidates are examined best first, on a sample of the searched half. A candidate with nearly the same items as an
    earlier proposal is listed with it as alike. A slice of several conditions must lose more than the sum of what its
    conditions contribute separately.
    """
    sample = slice(0, losses.order.sampled)
    part = Part(columns, losses, sample)
    proposals: list[Proposal] = []
    masks: list[Mask] = []
    for each in found:
        rows, made = each.rows(columns, sample), Proposal(each)
        own, sign = part.weight(rows), math.copysign(1.0, each.score)
        alike = _alike(part, rows, proposals, masks)
        if alike is not None:
            if each.score * alike.slice.score > 0:  # a complement, with the opposite sign, says nothing new
                if len(each.conditions) < len(alike.slice.conditions):
                    alike.slice, each = each, alike.slice
                alike.alike.append(each)
        elif own and _says_more(part, made, rows, sign, proposals, masks):
            for other, others in zip(proposals, masks, strict=True):  # finds earlier ones that it contains
                if part.weight(rows & others) >= ALIKE * part.weight(others):
                    other.within.append(made)
            proposals.append(made)
            masks.append(rows)
        if len(proposals) == limit:
            break
    return proposals


def _alike(part: Part, rows: Mask, proposals: Sequence[Proposal], masks: Sequence[Mask]) -> Proposal | None:
    """Return the proposal that has nearly the same items, or nearly the complement, if there is one."""
    own, total = part.weight(rows), part.total
    for other, others in zip(proposals, masks, strict=True):
        common, theirs = part.weight(rows & others), part.weight(others)
        for same, size in ((common, theirs), (own - common, total - theirs)):
            if same >= ALIKE * max(own, size):
                return other
    return None


def _says_more(
    part: Part,
    made: Proposal,
    rows: Mask,
    sign: float,
    proposals: Sequence[Proposal],
    masks: Sequence[Mask],
) -> bool:
    """Return whether a slice differs from its conditions and from the proposals; record which to compare it with."""
    if any(sign * each.score < BEYOND for each in part.together(made.slice)):
        return False
    own = part.weight(rows)
    for other, others in zip(proposals, masks, strict=True):
        common = part.weight(rows & others)
        if common <= APART * own or sign != math.copysign(1.0, other.slice.score):
            continue
        inside = common >= ALIKE * own
        if sign * part.beyond(as_members(rows), as_members(others if inside else ~others)).score < BEYOND:
            return False
        (made.within if inside else made.beyond).append(other)
    return True
