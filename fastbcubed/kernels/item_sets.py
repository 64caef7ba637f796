"""Rows of memberships, part by part → the set of clusters of each item, where its first row stands."""

from __future__ import annotations

import numpy as np

from fastbcubed.kernels.cells import table_size
from fastbcubed.kernels.fetching import fetch
from fastbcubed.kernels.jit import at, inlined, kernel
from fastbcubed.kernels.join import row_of
from fastbcubed.kernels.memberships import sort_codes
from fastbcubed.kernels.partition import mix

#: What a row is marked with: that an item has come before; that it is one in no cluster. An item in one cluster has its
#: code, counted from `IN_ONE`; one in several has where these stand, counted down from `IN_SEVERAL`.
REPEATED, IN_NONE, IN_ONE, IN_SEVERAL = -1, 0, 1, -2
#: How many sets ahead memory is asked for.
AHEAD = 16


@kernel
def gather_parts(keys, rows, codes, bounds, part_from, part_to, weight, space, marks):
    """Mark the first row of each item of several parts with its clusters; return repeated and reweighted rows.

    `codes` are the clusters of the rows, -1 for none. They are overwritten from where the first part begins by those of
    items in several, ascending, the last of an item as -1 - code. Rows of a part ascend; `rows` may be None where rows
    stand in their order, and `weight` where there is none. `space` is room for a table, the item of each row of a part,
    where items end, and the rows and clusters in the order of items.
    """
    slots, item_of, ends, order, taken = space
    place, repeated, reweighted = bounds[part_from], 0, 0
    for part in range(part_from, part_to):
        begin, stop = bounds[part], bounds[part + 1]
        n_items = find_items(keys, begin, stop, rows is not None, slots, item_of, ends)
        sort_by_item(codes, begin, stop, item_of, ends[: n_items + 1], order, taken)
        first = 0
        for e in range(n_items):
            last = ends[at(e)]
            place, item_of[at(e)], again = write_set(taken, first, last, codes, place)
            repeated += again
            first = last
        write_marks(rows, begin, ends[:n_items], order, item_of, marks)
        if weight is not None:
            reweighted += count_reweighted(rows, begin, ends[:n_items], order, weight)
    return repeated, reweighted


@kernel
def find_items(keys, begin, stop, mixed, slots, item_of, ends):
    """Give numbers to the items of a part by their first row; count the rows of item e in `ends[e + 1]`."""
    size = table_size(stop - begin)
    table = slots[:size] if size <= slots.size else np.empty(size, slots.dtype)
    table[:] = -1
    n_items = 0
    ends[0] = 0
    for i in range(stop - begin):
        key = keys[at(begin + i)]
        s = (key if mixed else mix(key)) & (size - 1)
        while table[at(s)] >= 0 and keys[at(begin + table[at(s)])] != key:
            s = (s + 1) & (size - 1)
        if table[at(s)] < 0:
            table[at(s)] = i
            item_of[at(i)] = n_items
            n_items += 1
            ends[at(n_items)] = 0
        else:
            item_of[at(i)] = item_of[at(table[at(s)])]
        ends[at(item_of[at(i)] + 1)] += 1
    return n_items


@inlined
def sort_by_item(codes, begin, stop, item_of, ends, order, taken):
    """Bring the rows of each item together, in their order, and their clusters; write where each item ends."""
    for e in range(1, ends.size):
        ends[at(e)] += ends[at(e - 1)]
    for i in range(stop - begin):
        e = item_of[at(i)]
        place = ends[at(e)]
        ends[at(e)] = place + 1
        order[at(place)] = i
        taken[at(place)] = codes[at(begin + i)]


@inlined
def write_set(taken, first, last, codes, place):
    """Sort the clusters of an item, and write them if they are several, each once.

    Returns where the next ones go, what the item is marked with, and how many rows repeat a cluster.
    """
    if last - first == 1:
        return place, IN_ONE + taken[at(first)], 0  # of a row without one: IN_NONE
    sort_codes(taken, first, last)
    while first < last and taken[at(first)] < 0:
        first += 1
    if first == last:
        return place, IN_NONE, 0
    start = place
    for i in range(first, last):
        if i + 1 == last or taken[at(i + 1)] != taken[at(i)]:
            codes[at(place)] = taken[at(i)]
            place += 1
    again = last - first - (place - start)
    if place - start == 1:
        return start, IN_ONE + taken[at(first)], again
    codes[at(place - 1)] = -1 - codes[at(place - 1)]
    return place, IN_SEVERAL - start, again


@inlined
def write_marks(rows, begin, ends, order, found, marks):
    """Write what each item of a part is marked with at its first row: apart, as each is far from the one before."""
    first = 0
    for e in range(ends.size):
        marks[at(row_of(rows, begin + order[at(first)]))] = found[at(e)]
        first = ends[at(e)]


@kernel
def count_reweighted(rows, begin, ends, order, weight):
    """Count the rows of a part with another weight than the first one of their item."""
    found = first = 0
    for e in range(ends.size):
        own = weight[at(row_of(rows, begin + order[at(first)]))]
        for i in range(first + 1, ends[at(e)]):
            found += differ(own, weight[at(row_of(rows, begin + order[at(i)]))])
        first = ends[at(e)]
    return found


@inlined
def differ(a, b):
    """Tell whether two weights differ; one that is not known is like another such."""
    return a != b and not (np.isnan(a) and np.isnan(b))


@kernel
def count_marks(marks, start, stop):
    """Return how many items begin in a block of rows, and how many of them are in several clusters."""
    n_items = n_several = 0
    for row in range(start, stop):
        n_items += marks[at(row)] != REPEATED
        n_several += marks[at(row)] <= IN_SEVERAL
    return n_items, n_several


@kernel
def list_items(marks, start, stop, item, k, firsts, codes, several, starts):
    """List the items that begin in a block of rows: the row of each, and the code of its cluster, -1 for none.

    `item` and `k` are the number of the first of them, and of the first in several clusters. These are listed, too, and
    where their clusters stand.
    """
    for row in range(start, stop):
        mark = marks[at(row)]
        if mark != REPEATED:
            firsts[at(item)] = row
            codes[at(item)] = max(mark, IN_NONE) - IN_ONE
            if mark <= IN_SEVERAL:
                several[at(k)] = item
                starts[at(k)] = IN_SEVERAL - mark
                k += 1
            item += 1


@kernel
def hash_sets(codes, starts, start, stop, seed, out):
    """Fingerprint a block of sets, whose codes begin at `starts` and end with a negative one."""
    for k in range(start, stop):
        if k + AHEAD < stop:
            fetch(codes, starts[at(k + AHEAD)])
        h, i = mix(seed), starts[at(k)]
        while codes[at(i)] >= 0:
            h = mix(h ^ (np.int64(codes[at(i)]) + 1))
            i += 1
        out[at(k)] = mix(h ^ -np.int64(codes[at(i)]))


@kernel
def is_unequal(codes, starts, firsts, numbers, start, stop):
    """Tell whether one of a block of sets is not the one whose number it has; `firsts` has a set of each number."""
    for k in range(start, stop):
        if k + AHEAD < stop:
            fetch(codes, starts[at(firsts[at(numbers[at(k + AHEAD)])])])
        a, b = starts[at(k)], starts[at(firsts[at(numbers[at(k)])])]
        while codes[at(a)] == codes[at(b)] and codes[at(a)] >= 0:
            a += 1
            b += 1
        if codes[at(a)] != codes[at(b)]:
            return True
    return False


@kernel
def count_sets(codes, starts, counts):
    """Count the codes of each set."""
    for k in range(starts.size):
        i = starts[at(k)]
        while codes[at(i)] >= 0:
            i += 1
        counts[at(k)] = i + 1 - starts[at(k)]


@kernel
def take_sets(codes, starts, offsets, out):
    """Copy the codes of each set to its offset."""
    for k in range(starts.size):
        last = offsets[at(k + 1)] - 1
        for i in range(offsets[at(k)], last):
            out[at(i)] = codes[at(starts[at(k)] + i - offsets[at(k)])]
        out[at(last)] = -1 - codes[at(starts[at(k)] + last - offsets[at(k)])]
