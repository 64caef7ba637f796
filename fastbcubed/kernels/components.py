"""Connected components by union-find, and the cells whose clusters share items with other clusters."""

from __future__ import annotations

from fastbcubed.kernels.jit import at, kernel

#: Number of pairs whose parents are read ahead of joining them.
AT_ONCE = 64


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


@kernel
def number_components(parents):
    """Assign numbers to the components by their first nodes; return how many there are.

    On return `parents` is the component of each node; nodes with parent -1 belong to none.
    """
    count = 0
    for node in range(parents.size):
        parent = parents[node]
        is_root = parent == node
        known = parents[
            max(parent, 0)
        ]  # the parent's component, unless the node is a root or in no component
        parents[node] = count if is_root else (known if parent >= 0 else parent)
        count += is_root
    return count


@kernel
def start_components(linked, parents):
    """Make each linked node a component of its own, and give the others parent -1. Shapes: (nodes,), (nodes,)."""
    for node in range(linked.size):
        parents[node] = node if linked[node] else -1


@kernel
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


@kernel
def find_cells(cells, wanted, linked, places, codes, merged):
    """Find the cells whose two clusters differ or whose true cluster is wanted, without a branch per cell.

    Their positions go to `places` and their true clusters to `codes`; positions of cells with false positives go to
    `merged`. An empty `wanted` selects none. Returns the lengths of `places` and `merged`, and for the remaining cells
    the number with positive weight, the sums of squared and fourth powers of the weight, and the largest weight.
    Shapes: records (n,), (n_true,), (n_true,), (n,), (n,), (n,).
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
    """Write pairs of true clusters that share a predicted one, (first, other); return the number of pairs.

    `merged` are the positions of cells with false positives. `firsts`, the first true cluster of each predicted
    cluster (`base` is the first of these), is initially -1. Shapes: records (n,), (n,), (n_merged,), (), (n_pred,),
    (n_merged,), (n_merged,).
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
    """Write the centre of the star that each edge belongs to: a row, n_rows + a column, or -1 for an edge in no star.

    A star's centre is a node all of whose neighbours have no other edge. `of_row` and `of_column` are the numbers of
    edges of each node, negated where a neighbour has several. Shapes: `rows`, `columns`, `centres` (n_edges,).
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
    """Find the edges of largest gain in each group; return the numbers of unique ones and of tied ones.

    `edges` are indices into `groups` and `gains`. Outputs: `best`, each group's largest gain, and `times`, how many
    edges reach it, both initially 0; `sure`, the edges that alone reach it, and `tied`, those that share it.
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
