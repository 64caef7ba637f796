"""Connected components by union-find, and the cells of clusters that share items."""

from __future__ import annotations

from fastbcubed.kernels.jit import at, kernel

#: Number of pairs whose parents are read at once.
AT_ONCE = 64


@kernel
def find_root(parents, node):
    """Return the smallest node known to be connected with a node, and halve the path to it."""
    while parents[node] != node:
        parents[node] = parents[parents[node]]
        node = parents[node]
    return node


@kernel
def join_nodes(parents, a, b):
    """Connect two nodes. The smaller root becomes the root of both, so a parent is never larger than its node."""
    a = find_root(parents, a)
    b = find_root(parents, b)
    if a < b:
        parents[b] = a
    else:
        parents[a] = b


@kernel
def number_components(parents):
    """Assign numbers to components in order of their first node, and return their number.

    On return `parents` is the component of each node; a node with parent -1 is in none.
    """
    count = 0
    for node in range(parents.size):
        parent = parents[node]
        is_root = parent == node
        known = parents[max(parent, 0)]  # the component of the parent, unless the node is a root or in none
        parents[node] = count if is_root else (known if parent >= 0 else parent)
        count += is_root
    return count


@kernel
def start_components(linked, parents):
    """Make each linked node a component by itself, and put the others, at -1, in none. Shapes: (nodes,), (nodes,)."""
    for node in range(linked.size):
        parents[node] = node if linked[node] else -1


@kernel
def join_pairs(left, right, parents):
    """Join the nodes of each pair. Shapes: (pairs,), (pairs,), (nodes,); `parents` is initially 0 to nodes - 1.

    The parents of a few pairs are read before these are joined: their cache misses overlap, whereas each
    join waits for the one before it. Returns the smallest parent that was read.
    """
    least = 0
    for start in range(0, left.size, AT_ONCE):
        stop = min(start + AT_ONCE, left.size)
        for i in range(start, stop):
            least = min(least, parents[at(left[at(i)])], parents[at(right[at(i)])])
        for i in range(start, stop):
            join_nodes(parents, left[at(i)], right[at(i)])
    return least


@kernel
def find_components(left, right, parents):
    """Join the nodes of each pair, then number the components.

    Shapes: (pairs,), (pairs,), (nodes,) -> number of components; `parents` is initially 0 to nodes - 1
    and on return the component of each node.
    """
    join_pairs(left, right, parents)
    return number_components(parents)


@kernel
def join_sets(offsets, codes, base, nodes, parents):
    """Join all clusters of each row of memberships; the node of a cluster is `base` plus its code.

    Shapes: (n + 1,), (n_memberships,), (n,), (n_nodes,); `nodes` is a node to which each row is joined, or -1, and
    is assigned one.
    """
    for row in range(nodes.size):
        for k in range(offsets[row], offsets[row + 1]):
            node = base + codes[k]
            if nodes[row] < 0:
                nodes[row] = node
            join_nodes(parents, nodes[row], node)


@kernel
def find_cells(cells, wanted, linked, places, codes, merged):
    """Find cells whose two clusters differ, or whose true cluster is wanted, without branching on the cell.

    They go to `places`, and their true clusters to `codes`; those with items of other true clusters go to `merged`.
    `wanted` is empty for none. Returns the numbers of both, and for the other cells the number with weight, the sums
    of its second and fourth powers, and the largest. Shapes: records (n,), (n_true,), (n_true,), (n,), (n,), (n,).
    """
    n, n_merged, n_alone, squares, fourths, largest = 0, 0, 0, 0.0, 0.0, 0.0
    for i in range(cells.size):
        true, weight = cells[at(i)].true, cells[at(i)].weight
        others = cells[at(i)].fp != 0.0
        differs = others | (cells[at(i)].fn != 0.0)
        if wanted.size:
            differs |= wanted[at(true)]
        places[at(n)], codes[at(n)], merged[at(n_merged)] = i, true, i
        n += differs
        n_merged += others
        weight = 0.0 if differs else weight
        n_alone += weight > 0.0
        squares += weight * weight
        fourths += weight * weight * (weight * weight)
        largest = weight if weight > largest else largest
    for k in range(n):
        linked[at(codes[at(k)])] = True
    return n, n_merged, n_alone, squares, fourths, largest


@kernel
def pair_clusters(cells, pred, merged, base, firsts, left, right):
    """Find the true clusters that share a predicted one; return the number of pairs.

    `merged` are the cells with items of other true clusters. `firsts`, the first true cluster of each predicted
    one from code `base` on, is initially -1. Shapes: records (n,), (n,), (n_merged,), (n_pred,), (n_merged,),
    (n_merged,).
    """
    n = 0
    for k in range(merged.size):
        i = merged[at(k)]
        k = pred[at(i)] - base
        true, first = cells[at(i)].true, firsts[at(k)]
        firsts[at(k)] = true if first < 0 else first
        left[at(n)], right[at(n)] = first, true
        n += (first >= 0) & (first != true)
    return n


@kernel
def find_centres(rows, columns, of_row, of_column, centres):
    """Write the centre of the star of each edge: its row, its column behind the rows, or -1 if it is in no star.

    `of_row` and `of_column` are the numbers of edges of each; they come back negative where a neighbour has several.
    """
    for k in range(rows.size):
        row, column = rows[at(k)], columns[at(k)]
        if abs(of_column[at(column)]) > 1:
            of_row[at(row)] = -abs(of_row[at(row)])
        if abs(of_row[at(row)]) > 1:
            of_column[at(column)] = -abs(of_column[at(column)])
    for k in range(rows.size):
        row, column = rows[at(k)], columns[at(k)]
        if of_row[at(row)] > 0:
            centres[at(k)] = row
        elif of_column[at(column)] > 0:
            centres[at(k)] = of_row.size + column
        else:
            centres[at(k)] = -1


@kernel
def find_best(edges, groups, gains, best, times, sure, tied):
    """Find the heaviest of some edges in each group; return how many are alone so, and how many tie.

    Outputs: `best` gain of each group, and how many edges have it, both 0 before; the edges `sure` and `tied`.
    """
    for e in range(edges.size):
        group, gain = groups[at(edges[at(e)])], gains[at(edges[at(e)])]
        if gain > best[at(group)]:
            best[at(group)] = gain
            times[at(group)] = 1
        elif gain == best[at(group)]:
            times[at(group)] += 1
    n_sure, n_tied = 0, 0
    for e in range(edges.size):
        k = edges[at(e)]
        group = groups[at(k)]
        if gains[at(k)] == best[at(group)]:
            if times[at(group)] == 1:
                sure[at(n_sure)] = k
                n_sure += 1
            else:
                tied[at(n_tied)] = k
                n_tied += 1
    return n_sure, n_tied
