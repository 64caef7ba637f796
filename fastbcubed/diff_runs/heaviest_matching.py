"""The heaviest one-to-one matching of clusters that share items, the first of equally heavy ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.inputs.id_order import WordOf, order_of_words
from fastbcubed.metrics.counterparts import CELLS_AT_ONCE, PATIENCE, unpaired
from fastbcubed.runtime import buffers
from fastbcubed.runtime.threads import blocks
from fastbcubed.types import Codes, Floats, RowNumbers, Words

#: Number of tied cells in a component up to which the first of equally heavy matchings is found; and number up to which
#: the sum of squared ranks, which decides among more cells, is exact.
TIED, SQUARED = 48, 100_000


@dataclass(frozen=True, eq=False)
class Rivals:
    """Cells of clusters that differ, each pair of codes at most once, and the order in which they are preferred.

    Gains are positive integers whose sum is exact as a float. A larger gain is preferred; among equal gains, the words
    of a cell decide, then those of its row, then those of its column.
    """

    rows: Codes
    columns: Codes
    gains: Floats
    of_row: NDArray[np.int32]  #: number of cells of each row, by code; the search uses it as workspace
    of_column: NDArray[np.int32]
    words: Sequence[WordOf]  #: of the cells
    row_words: Sequence[WordOf]  #: of the codes of rows
    column_words: Sequence[WordOf]

    def _words(self, *sides: str) -> list[WordOf]:
        """Return words of cells by which these are preferred; those of a side without differences are left out."""

        def of_side(word: WordOf, codes: Codes) -> WordOf:
            return lambda cells: word(codes[cells])

        found = [largest_first(self.gains), *self.words]
        if "row" in sides:
            found += [of_side(word, self.rows) for word in self.row_words]
        if "column" in sides:
            found += [of_side(word, self.columns) for word in self.column_words]
        return found

    def ordered(self, cells: RowNumbers) -> RowNumbers:
        """Return cells, which ascend, in order of preference."""

        def among(word: WordOf) -> WordOf:
            return lambda rows: word(cells)[rows]  # in this order, memory is read from front to back

        return cells[order_of_words([among(word) for word in self._words("row", "column")], cells.size)]

    def first_of_rows(self, cells: RowNumbers) -> RowNumbers:
        """Return the preferred one of the given cells of each row."""
        return _first_of_each(cells, self.rows, self._words("column"), self.of_row.size)

    def first_of_columns(self, cells: RowNumbers) -> RowNumbers:
        """Return the preferred one of the given cells of each column."""
        return _first_of_each(cells, self.columns, self._words("row"), self.of_column.size)


def largest_first(values: Floats) -> WordOf:
    """Return words of positive numbers, the largest first."""
    return lambda rows: ~values[rows].view(np.uint64)


def _first_of_each(cells: RowNumbers, groups: Codes, words: Sequence[WordOf], n_groups: int) -> RowNumbers:
    """Return the cell with the least words in each group."""
    # Idea: each word leaves only the cells that tie in it, which are few after the first, so nothing is sorted. The
    # cell's number decides last: words of composite labels with nulls may be equal.
    least: Words = buffers.empty(n_groups, np.uint64)
    times, found = np.zeros(n_groups, np.int32), buffers.empty(cells.size, np.int64)
    n, cells = 0, cells.copy()
    for word in (*words, _number):
        if not cells.size:
            break
        n_found, n_tied = kernels.components.find_least(cells, groups, word(cells), least, times, found[n:])
        n, cells = n + n_found, cells[:n_tied]
    return found[:n]


def _number(cells: Codes | slice) -> Words:
    return np.asarray(cells).astype(np.uint64)


class Matched(NamedTuple):
    """The cells of the heaviest matching, and how many components and cells were matched greedily instead."""

    cells: RowNumbers
    n_greedy: int  #: number of components in which the search was given up
    cells_of_greedy: int


def match_first(rivals: Rivals, limit: int) -> Matched:
    """Match rows and columns one to one so as to maximize the sum of gains; break ties by the order of preference.

    Of two equally heavy matchings, the one that contains the first cell in which they differ is returned; if more than
    `TIED` cells are tied with each other, one that contains early cells. A component that takes more than `limit`
    visits to cells is matched greedily in the order of preference.

    >>> rows, columns = np.array([0, 0, 1]), np.array([0, 1, 0])
    >>> degrees = np.array([2, 1], np.int32)
    >>> rivals = Rivals(rows, columns, np.array([3.0, 2.0, 2.0]), degrees, degrees.copy(), [], [], [])
    >>> match_first(rivals, 1000).cells.tolist()  # 2 + 2 beats 3
    [1, 2]
    """
    # Most components are stars, i.e. one cluster that was split or merged: the best cell of each is its matching.
    n = rivals.rows.size
    of_rows, of_columns, rest = (buffers.empty(n, np.int64) for _ in range(3))
    sizes = kernels.components.find_stars(
        rivals.rows, rivals.columns, rivals.of_row, rivals.of_column, of_rows, of_columns, rest
    )
    of_rows, of_columns, rest = (
        each[:size] for each, size in zip((of_rows, of_columns, rest), sizes, strict=True)
    )
    chosen, n_greedy, n_cells = _match_tangles(rivals, rest, limit)
    stars = rivals.first_of_rows(of_rows), rivals.first_of_columns(of_columns)
    return Matched(np.concatenate([*stars, chosen]), n_greedy, n_cells)


def _match_tangles(rivals: Rivals, cells: RowNumbers, limit: int) -> tuple[RowNumbers, int, int]:
    """Return the matched ones of these cells, and the numbers of components and cells matched greedily."""
    if not cells.size:
        return cells, 0, 0
    cells = rivals.ordered(cells)
    rows, columns = (_numbered(codes[cells]) for codes in (rivals.rows, rivals.columns))
    gains = rivals.gains[cells]
    found = _search(rows, columns, gains, limit)
    # A matching is heaviest if its cells have no slack (gain = sum of prices) and it covers every cluster with a
    # positive price. Ties occur in components of such cells; there, a matching that covers these clusters is searched
    # for again, with ranks instead of gains.
    row_price, column_price = found.row_price[rows], found.column_price[columns]
    tight = np.flatnonzero((row_price + column_price == gains) & ~found.greedy)
    component, n = _components(rows[tight], columns[tight])
    loose = np.bincount(component[~found.chosen[tight]], minlength=n) > 0
    again = tight[loose[component]]
    if again.size:
        own, others = _numbered(rows[again]), _numbered(columns[again])
        component, n = _components(own, others)
        by_component, starts = _grouped(component, n)
        sizes = np.diff(starts)
        rank = np.empty(again.size, np.int64)
        rank[by_component] = np.repeat(starts[1:], sizes) - np.arange(again.size)
        m = sizes[component].astype(np.float64)
        value = np.where(
            m <= TIED, 2.0 ** np.minimum(rank - 1, TIED), np.where(m <= SQUARED, 1.0 * rank * rank, rank)
        )
        more = np.where(m <= TIED, 2.0 ** np.minimum(m, TIED), np.where(m <= SQUARED, m**3, m * m))
        needed = (row_price[again] > 0) * 1.0 + (column_price[again] > 0)
        settled = _search(own, others, value + more * needed, limit)
        found.chosen[again[~settled.greedy]] = settled.chosen[~settled.greedy]
    return cells[found.chosen], found.n_greedy, int(np.count_nonzero(found.greedy))


class _Searched(NamedTuple):
    """For each cell, whether it is matched, and whether greedily; and the prices of rows and columns by code."""

    chosen: NDArray[np.bool_]
    greedy: NDArray[np.bool_]
    row_price: Floats
    column_price: Floats
    n_greedy: int


def _numbered(codes: Codes) -> NDArray[np.int64]:
    """Return the rank of each code in order of first appearance."""
    found = codes.astype(np.int64)
    kernels.hashing.number_codes(found, np.full(int(codes.max(initial=-1)) + 1, -1, np.int32))
    return found


def _components(rows: Codes, columns: Codes) -> tuple[NDArray[np.int64], int]:
    """Return the component of each cell, and the number of components, including codes without cells."""
    if not rows.size:
        return np.empty(0, np.int64), 0
    base = int(rows.max()) + 1
    parents = np.arange(base + int(columns.max()) + 1)
    edges = (each.astype(np.int32) for each in (rows, columns + base))
    count = kernels.components.find_components(*edges, parents)
    return parents[rows], int(count)


def _grouped(groups: Codes, n: int) -> tuple[NDArray[np.int32], RowNumbers]:
    """Return the positions sorted stably by group, and where each group begins; the last one is the end."""
    starts = np.concatenate([[0], np.cumsum(np.bincount(groups, minlength=n))])
    order = np.empty(groups.size, np.int32)
    kernels.slices.place_rows(groups.astype(np.int32), starts[:-1].copy(), order)
    return order, starts


def _search(rows: Codes, columns: Codes, gains: Floats, limit: int) -> _Searched:
    """Search for the heaviest matching of each component; cells are given in order of preference."""
    component, n = _components(rows, columns)
    order, _ = _grouped(component, n)  # makes the rows of a component contiguous
    component = component[order]
    own, others = rows[order], columns[order]
    numbers = np.full(int(rows.max()) + 1, -1, np.int32), np.full(int(columns.max()) + 1, -1, np.int32)
    n_rows, n_columns = (
        kernels.hashing.number_codes(each, to) for each, to in zip((own, others), numbers, strict=True)
    )
    places, starts = _grouped(own, n_rows)
    edges = starts, others[places].astype(np.int32), gains[order][places]
    state = prices, pairs, _ = unpaired(starts, edges[2], n_columns)
    of_row = component[places][starts[:-1]]
    chosen, greedy = np.zeros(gains.size, np.bool_), np.zeros(gains.size, np.bool_)
    done, looks, n_greedy, patience = 0, 0, 0, min(PATIENCE, limit)
    while done < n_rows:
        before = of_row[done]
        done, more = kernels.metrics.pair_rows(done, edges, *state, patience)
        if done == n_rows or of_row[done] != before:
            looks = 0
            continue
        looks += more
        if looks > limit:
            here = np.flatnonzero(component == before)
            greedy[order[here]], n_greedy = True, n_greedy + 1
            done, looks = int(np.searchsorted(of_row, before, "right")), 0
    paired = pairs[0][pairs[0] >= 0]
    chosen[order[places[paired]]] = True
    chosen[greedy] = _greedily(rows[greedy], columns[greedy])
    row_price, column_price = (price[number] for price, number in zip(prices, numbers, strict=True))
    return _Searched(chosen, greedy, row_price, column_price, n_greedy)


def _greedily(rows: Codes, columns: Codes) -> NDArray[np.bool_]:
    """Return whether each cell is matched when cells are taken in order if both of their clusters are free."""
    chosen = np.zeros(rows.size, np.bool_)
    taken, others = (bytearray(int(codes.max(initial=-1)) + 1) for codes in (rows, columns))
    for start, stop in blocks(rows.size, CELLS_AT_ONCE):
        cells = zip(rows[start:stop].tolist(), columns[start:stop].tolist(), strict=True)
        for k, (row, column) in enumerate(cells, start):
            if not (taken[row] or others[column]):
                chosen[k] = taken[row] = others[column] = True
    return chosen
