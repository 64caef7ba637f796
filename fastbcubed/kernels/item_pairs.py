"""Pairs of items that share two clusters or more on one side: the part of Omega that is counted singly.

A unit is a group of items that are in the same clusters. A unit's clusters stand in ascending order,
and codes ascend with size; so if two units share two clusters, the first of them is the largest of
neither. Only units that are in a larger cluster, too, are therefore paired within a cluster, and a
pair is counted in the first cluster that both share.
"""

from __future__ import annotations

from fastbcubed.kernels.jit import kernel


@kernel
def shared(starts, clusters, u, v):
    """Return how many clusters two units share, and the first of them, -1 if none."""
    a, b = starts[u], starts[v]
    end_a, end_b = starts[u + 1], starts[v + 1]
    common, first = 0, -1
    while a < end_a and b < end_b:
        if clusters[a] == clusters[b]:
            if common == 0:
                first = clusters[a]
            common += 1
            a += 1
            b += 1
        elif clusters[a] < clusters[b]:
            a += 1
        else:
            b += 1
    return common, first


@kernel
def count_shared(starts, clusters, n, keys, bounds, members, pairs):
    """Add to `pairs[t]` the pairs of items that share t clusters, for t of two and more.

    Shapes: (units + 1,), (memberships,), (units,), (groups,), (groups + 1,), (entries,), (most + 1,);
    `keys` are the clusters of the groups, and members of a group its units that are in a larger one.
    """
    for u in range(n.size):
        own = starts[u + 1] - starts[u]
        if own > 1:
            pairs[own] += n[u] * (n[u] - 1) // 2
    for c in range(keys.size):
        for k in range(bounds[c], bounds[c + 1]):
            u = members[k]
            for m in range(k + 1, bounds[c + 1]):
                v = members[m]
                common, first = shared(starts, clusters, u, v)
                if common > 1 and first == keys[c]:
                    pairs[common] += n[u] * n[v]


@kernel
def count_blocks(true_starts, pred_starts):
    """Count the entries that `list_blocks` makes. Shapes: (units + 1,), (units + 1,) -> int."""
    total = 0
    for u in range(true_starts.size - 1):
        of_true, of_pred = true_starts[u + 1] - true_starts[u], pred_starts[u + 1] - pred_starts[u]
        total += max(of_true * of_pred - 1, 0)
    return total


@kernel
def list_blocks(true_starts, true_clusters, pred_starts, pred_clusters, n_pred, keys, units):
    """List the pairs of a true and a predicted cluster of each unit, but for that of its largest.

    Entries get the key `true * n_pred + pred` and the unit.
    """
    end = 0
    for u in range(true_starts.size - 1):
        last_true, last_pred = true_starts[u + 1] - 1, pred_starts[u + 1] - 1
        for k in range(true_starts[u], last_true + 1):
            for m in range(pred_starts[u], last_pred + 1):
                if k < last_true or m < last_pred:
                    keys[end] = true_clusters[k] * n_pred + pred_clusters[m]
                    units[end] = u
                    end += 1


@kernel
def compare_shared(
    true_starts, true_clusters, pred_starts, pred_clusters, n, keys, bounds, members, n_pred, sums
):
    """Add up pairs of items that share t true and s predicted clusters, one of them two or more.

    `sums` gets the sum of t s, the number of pairs with t = s, and the number of pairs, where t and
    s are positive. A block has the key of its two clusters and the units that are in both and, on
    one side at least, in a larger cluster.
    """
    for u in range(n.size):
        t, s = true_starts[u + 1] - true_starts[u], pred_starts[u + 1] - pred_starts[u]
        if t * s > 1:
            add_pairs(t, s, n[u] * (n[u] - 1) // 2, sums)
    for c in range(keys.size):
        true, pred = keys[c] // n_pred, keys[c] % n_pred
        for k in range(bounds[c], bounds[c + 1]):
            u = members[k]
            for m in range(k + 1, bounds[c + 1]):
                v = members[m]
                t, first_true = shared(true_starts, true_clusters, u, v)
                if first_true == true:
                    s, first_pred = shared(pred_starts, pred_clusters, u, v)
                    if first_pred == pred and t * s > 1:
                        add_pairs(t, s, n[u] * n[v], sums)


@kernel
def add_pairs(t, s, count, sums):
    """Add `count` pairs that share t and s clusters to the three sums of `compare_shared`."""
    sums[0] += count * t * s
    sums[1] += count * (t == s)
    sums[2] += count
