"""Connected components by union-find, and the cells whose clusters share items with other clusters."""

from __future__ import annotations

import numpy as np

from fastbcubed.kernels.jit import at, kernel
from fastbcubed.kernels.partition import RUN, fetch

#: Number of pairs whose parents are read ahead of joining them.
AT_ONCE = 64
#: With more parents than this for each pair, it takes longer to make a list of them than to read a few from the array.
PARENTS_PER_PAIR = 50


@kernel
def find_root(parents, node):
    """Return the smallest node known to be connected with `node`, halving the path to it."""
    while parents[node] != node:
        parents[node] = parents[parents[node]]
        node = parents[node]
    return node


@kernel
def join_nodes(parents, a, b):
    """Connect two nodes. The smaller root becomes the root of both, so no parent exceeds its node."""
    a = find_root(parents, a)
    b = find_root(parents, b)
    if a < b:
        parents[b] = a
    else:
        parents[a] = b


def number_components_by_numpy(parents):
    """Do the same as `number_components`, on arrays."""
    nodes = np.arange(parents.size)
    is_root, roots = parents == nodes, np.where(parents < 0, nodes, parents)
    while (roots != (above := roots[roots])).any():
        roots = above
    parents[:] = np.where(parents < 0, parents, (np.cumsum(is_root) - 1)[roots])
    return int(is_root.sum())


@kernel(by_numpy=number_components_by_numpy)
def number_components(parents):
    """Assign numbers to the components by their first nodes; return how many there are.

    On return `parents` is the component of each node; nodes with parent -1 belong to none.
    """
    count, others = 0, np.empty(RUN, np.int64)
    for begin in range(0, parents.size, RUN):
        n = 0
        for node in range(begin, min(begin + RUN, parents.size)):
            parent = parents[at(node)]
            is_root = parent == node
            others[at(n)] = node
            n += (parent >= 0) & (not is_root)
            parents[at(node)] = count if is_root else parent
            count += is_root
        # These by themselves, so that many cache misses overlap; the parent, a smaller node, has its number.
        for k in range(n):
            parents[at(others[at(k)])] = parents[at(parents[at(others[at(k)])])]
    return count


def start_components_by_numpy(linked, parents):
    """Do the same as `start_components`, on arrays."""
    parents[:] = np.where(linked, np.arange(linked.size), -1)


@kernel(by_numpy=start_components_by_numpy)
def start_components(linked, parents):
    """Make each linked node a component of its own, and give the others parent -1. Shapes: (nodes,), (nodes,)."""
    for node in range(linked.size):
        parents[node] = node if linked[node] else -1


def join_pairs_in_lists(left, right, parents):
    """Do the same as `join_pairs`, on lists, whose elements Python reads faster than those of arrays."""
    if parents.size > PARENTS_PER_PAIR * left.size:
        return NotImplemented
    own = parents.tolist()
    for a, b in zip(left.tolist(), right.tolist(), strict=True):
        while (parent := own[a]) != a:
            own[a] = a = own[parent]
        while (parent := own[b]) != b:
            own[b] = b = own[parent]
        if a < b:
            own[b] = a
        else:
            own[a] = b
    parents[:] = own
    return 0


@kernel(by_numpy=join_pairs_in_lists)
def join_pairs(left, right, parents):
    """Connect the nodes of each pair. Shapes: (pairs,), (pairs,), (nodes,); `parents` is initially 0 to nodes - 1.

    The parents of several pairs are read before these are joined, so that their cache misses overlap; each join must
    wait for the one before it. Returns the smallest parent that was read.
    """
    least = 0
    for start in range(0, left.size, AT_ONCE):
        stop = min(start + AT_ONCE, left.size)
        for i in range(start, stop):
            least = min(least, parents[at(left[at(i)])], parents[at(right[at(i)])])
        for i in range(start, stop):
            join_nodes(parents, left[at(i)], right[at(i)])
    return least


def join_alike_by_numpy(pairs, nodes, parents):
    """Do the same as `join_alike`, on arrays."""
    left, right = nodes[pairs["left"]], nodes[pairs["right"]]
    known = (left["code"] >= 0) & (right["code"] >= 0)
    alike = known & (left["code"] == right["code"])
    join_pairs(left["row"][alike], right["row"][alike], parents)
    return int(alike.sum()), int((~known).sum())


@kernel(by_numpy=join_alike_by_numpy)
def join_alike(pairs, nodes, parents):
    """Connect the rows of the two items of each pair if they have the same code; see `join_pairs`.

    `pairs` are records (left, right) of items, `nodes` records (code, row) by item, and `parents` are by row. Returns
    how many pairs were connected, and how many have an item with code -1.
    """
    # Idea: items are at random places in memory, so each pair of them takes two cache misses, which overlap with those
    # of other pairs. Rows of one true cluster are close to each other, so joining them takes few more.
    n_alike, n_unknown = 0, 0
    left, right = np.empty(AT_ONCE, np.int64), np.empty(AT_ONCE, np.int64)
    for start in range(0, pairs.size, AT_ONCE):
        stop, n = min(start + AT_ONCE, pairs.size), 0
        for i in range(start, stop):
            fetch(nodes, pairs[at(i)].left)
            fetch(nodes, pairs[at(i)].right)
        for i in range(start, stop):
            one, other = pairs[at(i)].left, pairs[at(i)].right
            code = nodes[at(one)].code
            left[at(n)], right[at(n)] = nodes[at(one)].row, nodes[at(other)].row
            n_unknown += (code < 0) | (nodes[at(other)].code < 0)
            n += (code >= 0) & (code == nodes[at(other)].code)
        for k in range(n):
            fetch(parents, left[at(k)])
            fetch(parents, right[at(k)])
        for k in range(n):
            join_nodes(parents, left[at(k)], right[at(k)])
        n_alike += n
    return n_alike, n_unknown


@kernel
def find_components(left, right, parents):
    """Connect the nodes of each pair, then number the components.

    Shapes: (pairs,), (pairs,), (nodes,) -> number of components; `parents` is initially 0 to nodes - 1
    and on return the component of each node.
    """
    join_pairs(left, right, parents)
    return number_components(parents)


@kernel
def join_sets(offsets, codes, base, nodes, parents):
    """Connect all clusters of each row of memberships; the node of a cluster is `base` plus its code.

    Shapes: (n + 1,), (n_memberships,), (), (n,), (n_nodes,). `nodes` holds a node to connect each row to, or -1; rows
    with -1 get the node of their first cluster.
    """
    for row in range(nodes.size):
        for k in range(offsets[row], offsets[row + 1]):
            node = base + codes[k]
            if nodes[row] < 0:
                nodes[row] = node
            join_nodes(parents, nodes[row], node)


def find_cells_by_numpy(cells, wanted, linked, places, codes, merged):
    """Do the same as `find_cells`, on arrays."""
    true, others = cells["true"], cells["fp"] != 0.0
    differs = others | (cells["fn"] != 0.0)
    if wanted.size:
        differs |= wanted[true]
    found = np.flatnonzero(differs)
    of_others = np.flatnonzero(others[found])
    weight = np.where(differs, 0.0, cells["weight"])
    squares = weight * weight
    sums = (float(np.add.accumulate(each)[-1]) if each.size else 0.0 for each in (squares, squares * squares))
    places[: found.size], codes[: found.size], merged[: of_others.size] = found, true[found], of_others
    linked[true[found]] = True
    return found.size, of_others.size, int((weight > 0.0).sum()), *sums, float(weight.max(initial=0.0))


@kernel(by_numpy=find_cells_by_numpy)
def find_cells(cells, wanted, linked, places, codes, merged):
    """Find the cells whose two clusters differ or whose true cluster is wanted, without a branch per cell.

    Their positions go to `places` and their true clusters to `codes`; which of these have false positives goes to
    `merged`. An empty `wanted` selects none. Returns the lengths of `places` and `merged`, and for the remaining cells
    the number with positive weight, the sums of squared and fourth powers of the weight, and the largest weight.
    Shapes: records (n,), (n_true,), (n_true,), (n,), (n,), (n,).
    """
    n, n_merged, alone = 0, 0, (0, 0.0, 0.0, 0.0)
    for begin in range(0, cells.size, RUN):  # whose cells stay in a core's cache
        stop = min(begin + RUN, cells.size)
        first = n
        for i in range(begin, stop):
            true = cells[at(i)].true
            others = cells[at(i)].fp != 0.0
            differs = others | (cells[at(i)].fn != 0.0)
            if wanted.size:
                differs |= wanted[at(true)]
            places[at(n)], codes[at(n)], merged[at(n_merged)] = i, true, n
            n += differs
            n_merged += others
        for k in range(first, n):
            linked[at(codes[at(k)])] = True
        alone = weigh_alone(cells, wanted, begin, stop, alone)
    return n, n_merged, *alone


@kernel
def weigh_alone(cells, wanted, start, stop, alone):
    """Add a range of cells to what `find_cells` returns of the cells that it does not find."""
    n, squares, fourths, largest = alone
    for i in range(start, stop):
        weight = cells[at(i)].weight
        differs = (cells[at(i)].fp != 0.0) | (cells[at(i)].fn != 0.0)
        if wanted.size:
            differs |= wanted[at(cells[at(i)].true)]
        weight = 0.0 if differs else weight
        n += weight > 0.0
        squares += weight * weight
        fourths += weight * weight * (weight * weight)
        largest = weight if weight > largest else largest
    return n, squares, fourths, largest


def pair_clusters_by_numpy(places, codes, pred, merged, base, firsts, left, right):
    """Do the same as `pair_clusters`, on arrays."""
    true, k = codes[merged], pred[places[merged]] - base
    known = np.where(firsts[k] < 0, true, firsts[k])
    firsts[k[::-1]] = known[::-1]  # of several, the last one assigned stays
    first = firsts[k]
    pairs = first != true
    n = int(pairs.sum())
    left[:n], right[:n] = first[pairs], true[pairs]
    return n


@kernel(by_numpy=pair_clusters_by_numpy)
def pair_clusters(places, codes, pred, merged, base, firsts, left, right):
    """Write pairs of true clusters that share a predicted one, (first, other); return the number of pairs.

    `places`, `codes` and `merged` are those of `find_cells`. `firsts`, the first true cluster of each predicted cluster
    (`base` is the first of these), is initially -1. Shapes: (n_found,), (n_found,), (n,), (n_merged,), (), (n_pred,),
    (n_merged,), (n_merged,).
    """
    n = 0
    for m in range(merged.size):
        found = merged[at(m)]
        k = pred[at(places[at(found)])] - base
        true, first = codes[at(found)], firsts[at(k)]
        firsts[at(k)] = true if first < 0 else first
        left[at(n)], right[at(n)] = first, true
        n += (first >= 0) & (first != true)
    return n


#: Added to a number below it and taken away again, it leaves the nearest whole number, the even one of two.
WHOLE = 2.0**52


@kernel
def find_rivals(cells, pred, labelled, unit, outer, twins, rivals):
    """Pair identical clusters, and write the cells whose two clusters differ; return how many of these there are.

    Cells of clusters without a label are left out: `labelled` are masks of true and of predicted clusters, or empty if
    all have one. Outputs: `twins`, the true cluster that each predicted one is identical to; records (gain, share, row,
    column) with the weight in units, at least 1, the share of both clusters in units of 2**-40, and the two clusters.
    """
    has_true, has_pred = labelled
    n = 0
    for i in range(cells.size):
        row, column = cells[at(i)].true, pred[at(i)]
        if has_true.size and not has_true[at(row)]:
            continue
        if has_pred.size and not has_pred[at(column)]:
            continue
        others = cells[at(i)].fp + cells[at(i)].fn
        if others == 0.0:
            twins[at(column)] = row
            continue
        weight = cells[at(i)].weight
        common = 1.0 * cells[at(i)].n if outer else weight
        rivals[at(n)].gain = max(weight / unit + WHOLE - WHOLE, 1.0)
        rivals[at(n)].share = common / (common + others) * 2.0**40 + WHOLE - WHOLE
        rivals[at(n)].row, rivals[at(n)].column = row, column
        n += 1
    return n


@kernel
def assign_components(nodes, parents, groups, group_of):
    """Assign each node to one of `groups` groups of whole components. Shapes: (n,), (n_nodes,), (), (n,)."""
    for i in range(nodes.size):
        group_of[i] = find_root(parents, nodes[i]) % groups


@kernel
def weigh_kept(cells, pred, start, same, keeps, has_true, has_pred):
    """Sum the weight of a range of cells, leaving out those of clusters without a label.

    Returns the weight of cells whose clusters are the `same` by name, of those in which `keeps` names the true cluster
    for the predicted one, and of all. Shapes: records (n,), (n,), (), (n_range,), (n_pred,); empty masks as in
    `find_rivals`.
    """
    named, kept, total = 0.0, 0.0, 0.0
    for i in range(same.size):
        row, column = cells[at(start + i)].true, pred[at(start + i)]
        if (has_true.size and not has_true[at(row)]) or (has_pred.size and not has_pred[at(column)]):
            continue
        weight = cells[at(start + i)].weight
        total += weight
        if same[at(i)]:
            named += weight
        if keeps[at(column)] == row:
            kept += weight
    return named, kept, total


@kernel
def find_stars(rows, columns, of_row, of_column, of_rows, of_columns, others):
    """Write the edges of stars around a row, of stars around a column, and of no star; return the three numbers.

    A star's centre is a node all of whose neighbours have no other edge. `of_row` and `of_column` are the numbers of
    edges of each node, negated where a neighbour has several. Shapes: (n_edges,), (n_rows,), (n_columns,).
    """
    for k in range(rows.size):
        row, column = rows[at(k)], columns[at(k)]
        if abs(of_column[at(column)]) > 1:
            of_row[at(row)] = -abs(of_row[at(row)])
        if abs(of_row[at(row)]) > 1:
            of_column[at(column)] = -abs(of_column[at(column)])
    n_rows, n_columns, n_others = 0, 0, 0
    for k in range(rows.size):
        around_row = of_row[at(rows[at(k)])] > 0
        around_column = (not around_row) & (of_column[at(columns[at(k)])] > 0)
        of_rows[at(n_rows)], of_columns[at(n_columns)], others[at(n_others)] = k, k, k
        n_rows += around_row
        n_columns += around_column
        n_others += not (around_row | around_column)
    return n_rows, n_columns, n_others


@kernel
def find_least(edges, groups, words, least, times, found):
    """Find the edges that alone have the least word of their group, and keep those that share it with others.

    `words` are by edge, `groups` by edge number, and `least` and `times` are workspace by group; `times` is 0 before
    and for groups of kept edges afterwards. The kept edges are at the front of `edges`. Returns the numbers of edges
    found and kept.
    """
    for e in range(edges.size):
        group, word = groups[at(edges[at(e)])], words[at(e)]
        if times[at(group)] == 0 or word < least[at(group)]:
            least[at(group)] = word
            times[at(group)] = 1
        elif word == least[at(group)]:
            times[at(group)] += 1
    n_found, n_kept = 0, 0
    for e in range(edges.size):
        edge = edges[at(e)]
        group = groups[at(edge)]
        if words[at(e)] == least[at(group)]:
            if times[at(group)] == 1:
                found[at(n_found)] = edge
                n_found += 1
            else:
                edges[at(n_kept)] = edge
                n_kept += 1
    for e in range(n_kept):
        times[at(groups[at(edges[at(e)])])] = 0
    return n_found, n_kept
