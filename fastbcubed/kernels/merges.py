"""The merges of a tree as records: what either cluster holds, and the pairs of items that they put together wrongly.

They are made in the order of their levels, so that what is added up by level is added up in one place after the other.
A cluster is a stretch of rows: what it holds stands at the first, and both its ends know each other.
"""

from __future__ import annotations

from fastbcubed.kernels.cells import add_exactly
from fastbcubed.kernels.fetching import fetch
from fastbcubed.kernels.jit import at, inlined, kernel

#: Merges whose clusters are fetched ahead, so that one does not wait for the memory of another.
AHEAD = 16


@kernel
def add_crosses(meetings, scored, crosses):
    """Count, by merge, the ordered pairs that rightly come together: a scored item, and one of its true cluster."""
    for i in range(meetings.size):
        m = meetings[i]
        if scored:
            crosses[at(m.at)] += m.s_a * m.n_b + m.s_b * m.n_a
        else:
            crosses[at(m.at)] += 2 * (m.n_a * m.n_b)


@kernel
def add_masses(meetings, scored, dominant, masses):
    """Weigh the same pairs, all but those of one true cluster; `masses` (n, 2) are sums and their errors."""
    for i in range(meetings.size):
        m = meetings[i]
        if m.code == dominant:
            continue
        mass = m.v_a * m.w_b + m.v_b * m.w_a if scored else 2.0 * (m.w_a * m.w_b)
        masses[at(m.at), 0], masses[at(m.at), 1] = add_exactly(masses[at(m.at), 0], masses[at(m.at), 1], mass)


@kernel
def start_clusters(codes, weights, scored, dominant, clusters):
    """Begin a cluster with each row."""
    for row in range(codes.size):
        cluster, is_dominant = clusters[at(row)], codes[at(row)] == dominant
        cluster.far = row
        cluster.x = 1 if is_dominant else 0
        cluster.wrong = 0
        if scored is not None:
            cluster.s = scored[at(row)]
        if weights is not None:
            cluster.mass_x = weights[at(row)] if is_dominant else 0.0
            cluster.mass_r = 0.0 if is_dominant else weights[at(row)]
            cluster.error_x = cluster.error_r = 0.0
            cluster.lost = cluster.error_lost = 0.0
            if scored is not None:
                cluster.mass_v = weights[at(row)] if scored[at(row)] else 0.0
                cluster.error_v = 0.0


@inlined
def join_counts(a, b, cross, scored, found):
    """Write the counts of two clusters, whose sizes are there, and make them those of one, which stand in the first."""
    found.x_a, found.x_b = a.x, b.x
    found.r_a, found.r_b = found.n_a - a.x, found.n_b - b.x
    found.wrong_a, found.wrong_b = a.wrong, b.wrong
    if scored:
        found.s_a, found.s_b = a.s, b.s
        a.wrong += b.wrong + (a.s * found.n_b + b.s * found.n_a - cross)
        a.s += b.s
    else:
        a.wrong += b.wrong + (2 * (found.n_a * found.n_b) - cross)
    a.x += b.x
    found.wrong = a.wrong


@inlined
def join_weights(a, b, cross, scored, found):
    """Do the same for weights, when the counts have been joined.

    `mass_x` is that of the dominant true cluster, and `mass_r` of the rest, so that little beside much loses no digits.
    """
    found.w_a = (a.mass_x + a.error_x) + (a.mass_r + a.error_r)
    found.w_b = (b.mass_x + b.error_x) + (b.mass_r + b.error_r)
    found.mass_x_a, found.mass_x_b = a.mass_x + a.error_x, b.mass_x + b.error_x
    found.mass_r_a, found.mass_r_b = a.mass_r + a.error_r, b.mass_r + b.error_r
    if scored:
        found.v_a, found.v_b = a.mass_v + a.error_v, b.mass_v + b.error_v
    if found.wrong == found.wrong_a + found.wrong_b:
        found.apart = 0.0
    elif scored:
        found.apart = max(0.0, found.v_a * found.w_b + found.v_b * found.w_a - cross)
    else:
        found.apart = max(0.0, 2.0 * (found.mass_r_a * found.mass_r_b) - cross)
        found.apart += 2.0 * (found.mass_x_a * found.mass_r_b + found.mass_r_a * found.mass_x_b)
    found.lost_a, found.lost_b = a.lost + a.error_lost, b.lost + b.error_lost
    a.lost, a.error_lost = add_exactly(a.lost, a.error_lost + b.error_lost, b.lost)
    a.lost, a.error_lost = add_exactly(a.lost, a.error_lost, found.apart)
    found.lost = a.lost + a.error_lost
    a.mass_x, a.error_x = add_exactly(a.mass_x, a.error_x + b.error_x, b.mass_x)
    a.mass_r, a.error_r = add_exactly(a.mass_r, a.error_r + b.error_r, b.mass_r)
    if scored:
        a.mass_v, a.error_v = add_exactly(a.mass_v, a.error_v + b.error_v, b.mass_v)


@kernel
def find_merges(first, places, levels, scored, crosses, masses, clusters, found):
    """Find merges, in the order of their `places` from the first on, until `found` is full; return how many were found.

    A merge is of what ends at a place and what begins behind it. Places of one level ascend, as they do where meetings
    are found, or a cluster would have pairs that come together elsewhere. `crosses` and `masses` (None without
    weights) are the pairs of each merge that belong together; `clusters` are as `start_clusters` makes them, and go
    from call to call.
    """
    stop = min(places.size, first + found.size)
    for k in range(first, stop):
        if k + AHEAD < places.size:
            coming = places[at(k + AHEAD)]
            fetch(clusters, coming)
            fetch(levels, coming)
            fetch(crosses, coming)
        place, merge = places[at(k)], found[at(k - first)]
        start, end = clusters[at(place)].far, clusters[at(place + 1)].far
        a, b = clusters[at(start)], clusters[at(place + 1)]
        merge.at, merge.level = place, levels[at(place)]
        merge.n_a, merge.n_b = place - start + 1, end - place
        join_counts(a, b, crosses[at(place)], scored is not None, merge)
        if masses is not None:
            join_weights(a, b, masses[at(place), 0] + masses[at(place), 1], scored is not None, merge)
        clusters[at(start)].far, clusters[at(end)].far = end, start
    return stop - first
