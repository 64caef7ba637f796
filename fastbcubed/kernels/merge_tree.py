"""From scored edges to an item order in which every cluster, at any threshold, is contiguous.

An item's position in this order is its place. A level is a score at which clusters merge, counted from the first
merge; `levels[place]` is the level at which the clusters on both sides of the gap after a place merge. So a cluster
lies between two higher levels, and the highest level between two items is the level at which they come together. A
merge point ("meeting") is a merge of two parts of one true cluster.
"""

from __future__ import annotations

import math

import numpy as np

from fastbcubed.kernels.hashing import number_codes
from fastbcubed.kernels.jit import at, inlined, kernel
from fastbcubed.kernels.partition import add_exactly, fetch

#: Bits of a key used by one pass of the radix sort.
DIGIT = 11
#: Number of links, merges or items by which memory accesses are prefetched, so that they overlap.
AHEAD = 16


@inlined
def add_zero(scores, start, stop):
    """Return the scores start..stop with -0.0 replaced by 0.0."""
    positive = np.empty(stop - start)
    for i in range(positive.size):
        positive[i] = scores[start + i] + 0.0
    return positive


@kernel(words=True)
def write_keys(scores, start, stop, ascending, keys):
    """Write integer keys that sort as links are processed, best score first; return the least and the greatest key.

    Shapes: (n,) -> (n,), which may be the same memory. Zeros of either sign get the same key; no score may be NaN.
    """
    bits = add_zero(scores, start, stop).view(np.int64)
    least, most = ~np.uint64(0), np.uint64(0)
    for i in range(bits.size):
        key = np.uint64(bits[i]) ^ np.uint64(0x8000000000000000)
        if bits[i] < 0:
            key = ~np.uint64(bits[i])
        key = key if ascending else ~key
        keys[start + i] = key
        least, most = min(least, key), max(most, key)
    return least, most


@kernel(words=True)
def count_ranges(keys, start, stop, least, shift, counts):
    """Count the keys of a block by range, 2**shift keys wide; the first range begins at the least key."""
    for i in range(start, stop):
        counts[at((keys[at(i)] - least) >> shift)] += 1


@kernel(words=True)
def scatter_links(keys, left, right, start, stop, least, shift, places, sorted_keys, links):
    """Write the keys of a block, and both items of their links, to their ranges; `places` is the next place of each."""
    for i in range(start, stop):
        key = keys[at(i)]
        value = at((key - least) >> shift)
        place = places[value]
        places[value] = place + 1
        sorted_keys[at(place)] = key
        links[at(place)].left, links[at(place)].right = left[at(i)], right[at(i)]


@kernel(words=True)
def sort_range(keys, links, least, shift, spare_keys, spare_links, counts):
    """Sort the keys of a range stably, and their links with them.

    Shapes: (n,) each of `keys`, `links` and both spare arrays; `counts` (2 ** DIGIT,) is scratch.
    """
    mask, in_place = np.uint64((1 << DIGIT) - 1), True
    for low in range(0, shift, DIGIT):
        counts[:] = 0
        for i in range(keys.size):
            counts[at(((keys[at(i)] - least) >> np.uint64(low)) & mask)] += 1
        if counts[at(((keys[0] - least) >> np.uint64(low)) & mask)] == keys.size:
            continue
        total = 0
        for value in range(counts.size):
            total, counts[value] = total + counts[value], total
        for i in range(keys.size):
            key = keys[at(i)]
            value = at(((key - least) >> np.uint64(low)) & mask)
            place = counts[value]
            counts[value] = place + 1
            spare_keys[at(place)] = key
            spare_links[at(place)] = links[at(i)]
        keys, spare_keys, links, spare_links = spare_keys, keys, spare_links, links
        in_place = not in_place
    if not in_place:
        for i in range(keys.size):
            spare_keys[at(i)] = keys[at(i)]
            spare_links[at(i)] = links[at(i)]


@inlined(words=True)
def bits_of(key, ascending):
    """Return the bits of the score that a key was made from."""
    key = key if ascending else ~key
    sign = np.uint64(0x8000000000000000)
    return key ^ sign if key & sign else ~key


@inlined
def root_of(parents, node):
    """Return the root of a node's tree, halving the path to it. The parent of a root is minus the size of its tree."""
    parent = parents[at(node)]
    while parent >= 0:
        above = parents[at(parent)]
        if above < 0:
            return parent
        parents[at(node)] = above
        node = above
        parent = parents[at(node)]
    return node


@kernel
def join_in_order(links, keys, start, stop, ascending, parents, merged, thresholds, state):
    """Join the items of links, in the order of their keys.

    `thresholds` receives the bits of the score of each level, where clusters merged. `parents`, by item, are
    initially -1. `merged` receives the merges: the root of the cluster that goes in front, the root of the other, the
    number of items in front, the level, and the link. `state`, passed in and returned, is the number of levels, the
    number of merges, and whether the last key has a level.
    """
    # Idea: Kruskal's algorithm. Joining the best links first gives the clusters at every threshold in one pass,
    # where clustering anew takes a pass for each. The smaller tree goes below the larger, and paths are halved,
    # so that trees stay flat.
    # Holds: a level is a score at which clusters merged; equal scores are one level, though blocks may divide
    # them.
    n_levels, n_merged, is_level = state
    for k in range(start, stop):
        if k + AHEAD < links.size:
            fetch(parents, links[at(k + AHEAD)].left)
            fetch(parents, links[at(k + AHEAD)].right)
        if k > 0 and keys[at(k)] != keys[at(k - 1)]:
            is_level = False
        a = root_of(parents, links[at(k)].left)
        b = root_of(parents, links[at(k)].right)
        if a == b:
            continue
        if not is_level:
            thresholds[n_levels] = bits_of(keys[at(k)], ascending)
            n_levels += 1
            is_level = True
        if parents[at(a)] > parents[at(b)]:  # the larger cluster remains a root, and goes in front
            a, b = b, a
        merge = at(n_merged)
        merged[merge].front, merged[merge].back, merged[merge].n_front = a, b, -parents[at(a)]
        merged[merge].level = n_levels - 1
        merged[merge].left, merged[merge].right = links[at(k)].left, links[at(k)].right
        n_merged += 1
        parents[at(a)] += parents[at(b)]
        parents[at(b)] = a
    return n_levels, n_merged, is_level


@kernel
def lay_out(parents, merged, places):
    """Place items cluster by cluster; `front` of each merge becomes the last place of its front cluster.

    Merges are processed in reverse, because the place where a merged cluster begins must be known.
    """
    place = 0
    for root in range(parents.size):
        if parents[root] < 0:
            places[root] = place
            place -= parents[root]
    for k in range(merged.size - 1, -1, -1):
        if k >= AHEAD:
            fetch(places, merged[at(k - AHEAD)].front)
            fetch(places, merged[at(k - AHEAD)].back)
        place = places[at(merged[at(k)].front)] + merged[at(k)].n_front
        places[at(merged[at(k)].back)] = place
        merged[at(k)].front = place - 1


@kernel
def write_between(merged, n_levels, levels, links, merges):
    """Write the level and the link between each item and the next, and the places of merges, sorted by level.

    Between clusters that no link joins, the level is `n_levels` and the items of the link are -1. Those places,
    except that of the last item, are listed after all merges.
    """
    levels[:] = n_levels
    for place in range(links.size):
        links[at(place)].left = links[at(place)].right = -1
    for k in range(merged.size):
        if k + AHEAD < merged.size:
            fetch(levels, merged[at(k + AHEAD)].front)
            fetch(links, merged[at(k + AHEAD)].front)
        place = merges[at(k)] = merged[at(k)].front
        levels[at(place)] = merged[at(k)].level
        links[at(place)].left, links[at(place)].right = merged[at(k)].left, merged[at(k)].right
    k = merged.size
    for place in range(levels.size - 1):
        if levels[at(place)] == n_levels:
            merges[at(k)] = place
            k += 1


@kernel
def write_order(places, order):
    """Write the items in the order of their places."""
    for item in range(places.size):
        if item + AHEAD < places.size:
            fetch(order, places[at(item + AHEAD)])
        order[at(places[at(item)])] = item


@kernel
def write_scores(keys, start, stop, ascending, scores):
    """Write the bits of the scores from which keys were made. Shapes: (n,) -> (n,), which may be the same memory."""
    for i in range(start, stop):
        scores[at(i)] = bits_of(keys[at(i)], ascending)


@kernel
def keep_some(order, levels, row_of_item, kept_rows, kept_levels, kept_at):
    """Drop the items without a row (-1); return the number of remaining items.

    The level between two remaining items is the highest level between them; `kept_at` is the last place of that
    level.
    """
    kept = 0
    for place in range(order.size):
        row = row_of_item[at(order[at(place)])]
        if row >= 0:
            kept_rows[kept] = row
            kept_levels[kept], kept_at[kept] = levels[at(place)], place
            kept += 1
        elif kept and levels[at(place)] >= kept_levels[kept - 1]:
            kept_levels[kept - 1], kept_at[kept - 1] = levels[at(place)], place
    return kept


@kernel
def order_by_level(levels, starts, order):
    """Sort places stably by level; `starts` (n_levels + 2,) is scratch."""
    starts[:] = 0
    for place in range(levels.size):
        starts[at(levels[at(place)] + 1)] += 1
    for level in range(1, starts.size):
        starts[level] += starts[level - 1]
    for place in range(levels.size):
        level = levels[at(place)]
        order[at(starts[at(level)])] = place
        starts[at(level)] += 1


@kernel
def label_clusters(order, levels, level, labels, numbers):
    """Label the clusters formed by all merges below a level, by their first items; return their number.

    `numbers` (n,) is scratch.
    """
    cluster = 0
    for place in range(order.size):
        labels[at(order[at(place)])] = cluster
        cluster += levels[at(place)] >= level
    numbers[:cluster] = -1
    return number_codes(labels, numbers)


@kernel
def add_crosses(meetings, scored, crosses):
    """Count, by merge, the correctly merged ordered pairs: a scored item, and another item of its true cluster."""
    for i in range(meetings.size):
        m = meetings[i]
        if scored:
            crosses[at(m.at)] += m.s_a * m.n_b + m.s_b * m.n_a
        else:
            crosses[at(m.at)] += 2 * (m.n_a * m.n_b)


@kernel
def add_masses(meetings, scored, dominant, masses):
    """Sum the weights of the pairs of `add_crosses` by merge, except those of the dominant true cluster.

    `masses` (n, 2) are sums and their rounding errors.
    """
    for i in range(meetings.size):
        m = meetings[i]
        if m.code == dominant:
            continue
        mass = m.v_a * m.w_b + m.v_b * m.w_a if scored else 2.0 * (m.w_a * m.w_b)
        masses[at(m.at), 0], masses[at(m.at), 1] = add_exactly(masses[at(m.at), 0], masses[at(m.at), 1], mass)


@kernel
def start_clusters(codes, weights, scored, dominant, clusters):
    """Initialize one cluster per row."""
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
    """Write the counts of two merging clusters, whose sizes are given in `found`, and add those of `b` to `a`."""
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
    """Write the weights of two merging clusters, and add those of `b` to `a`; call `join_counts` first.

    `mass_x` is the weight of the dominant true cluster and `mass_r` that of the others. They are kept in separate
    sums so that a small weight loses no digits.
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
    """Write the merges at `places[first:]`, in this order, until `found` is full; return the number written.

    A merge joins the cluster that ends at a place and the one that begins after it. Places of one level must ascend,
    as in `find_meetings`, so that each pair is assigned to the same merge. `crosses` and `masses` (None without
    weights) are the true pairs of each merge; `clusters` are initialized by `start_clusters` and persist between
    calls.
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


@inlined
def highest_from(bounds, depth, place):
    """Return the last place of the highest level at or after `place`; `bounds` are the places where levels fall."""
    low, high = 0, depth - 1
    while low < high:
        middle = (low + high) >> 1
        if bounds[at(middle)] < place:
            low = middle + 1
        else:
            high = middle
    return bounds[at(low)]


@inlined
def start_group(groups, place, weights, scored):
    """Start a part of a true cluster that consists of the row at `place`."""
    groups[at(place)].n = 1
    if scored is not None:
        groups[at(place)].s = scored[at(place)]
    if weights is not None:
        groups[at(place)].w = weights[at(place)]
        groups[at(place)].w_error = 0.0
        if scored is not None:
            groups[at(place)].v = weights[at(place)] if scored[at(place)] else 0.0
            groups[at(place)].v_error = 0.0


@inlined
def meet(groups, last, code, weights, scored, found):
    """Write the merge point of a part and the preceding part of its true cluster, and merge them."""
    before = groups[at(last)].below
    found.at, found.code = groups[at(last)].gap, code
    found.n_a, found.n_b = groups[at(before)].n, groups[at(last)].n
    if scored is not None:
        found.s_a, found.s_b = groups[at(before)].s, groups[at(last)].s
        groups[at(last)].s += groups[at(before)].s
    groups[at(last)].n += groups[at(before)].n
    if weights is not None:
        join_masses(groups, before, last, scored is not None, found)
    groups[at(last)].gap, groups[at(last)].below = groups[at(before)].gap, groups[at(before)].below


@inlined
def join_masses(groups, before, last, apart, found):
    """Write the weights of two merging parts, and add those of the preceding part to the last."""
    w, error = groups[at(before)].w, groups[at(before)].w_error
    found.w_a, found.w_b = w + error, groups[at(last)].w + groups[at(last)].w_error
    total, rest = add_exactly(groups[at(last)].w, groups[at(last)].w_error, w)
    groups[at(last)].w, groups[at(last)].w_error = total, rest + error
    if apart:
        v, error = groups[at(before)].v, groups[at(before)].v_error
        found.v_a, found.v_b = v + error, groups[at(last)].v + groups[at(last)].v_error
        total, rest = add_exactly(groups[at(last)].v, groups[at(last)].v_error, v)
        groups[at(last)].v, groups[at(last)].v_error = total, rest + error


@kernel
def find_meetings(place, depth, levels, codes, weights, scored, bounds, last_of, groups, found):
    """Find merge points, starting at a place, until `found` is full; return the next place, the depth, and how many.

    The rows are in merge tree order: `levels` (n,) are the levels between each row and the next, `codes` (n,) the
    true clusters, -1 for none. `weights` and `scored` may be None. Scratch: `bounds` (n,), of which `depth` entries
    are in use; `last_of` (n_codes,), initially -1; `groups` (n,).
    """
    n_found = 0
    while place < levels.size:
        code = codes[at(place)]
        if code >= 0:
            last = last_of[at(code)]
            if last >= 0:
                gap = highest_from(bounds, depth, last)
                while groups[at(last)].below >= 0 and levels[at(groups[at(last)].gap)] <= levels[at(gap)]:
                    if n_found == found.size:
                        return place, depth, n_found
                    meet(groups, last, code, weights, scored, found[at(n_found)])
                    n_found += 1
                groups[at(place)].gap = gap
            start_group(groups, place, weights, scored)
            groups[at(place)].below = last
            last_of[at(code)] = place
        while depth and levels[at(bounds[at(depth - 1)])] <= levels[at(place)]:
            depth -= 1
        bounds[at(depth)] = place
        depth += 1
        place += 1
    return place, depth, n_found


@kernel
def find_last_meetings(code, weights, scored, last_of, groups, found):
    """Find the merge points that remain after all places have been visited, starting at true cluster `code`.

    Returns the next true cluster, and the number found; the other arguments are as `find_meetings` left them.
    """
    n_found = 0
    while code < last_of.size:
        last = last_of[at(code)]
        while last >= 0 and groups[at(last)].below >= 0:
            if n_found == found.size:
                return code, n_found
            meet(groups, last, code, weights, scored, found[at(n_found)])
            n_found += 1
        code += 1
    return code, n_found


@kernel
def add_recall_by_merge(meetings, sizes, under):
    """Add, by merge, the weight of true pairs that merge, divided by the size of their true cluster."""
    for i in range(meetings.size):
        m = meetings[i]
        under[at(m.at)] += np.float64(m.v_a * m.w_b + m.v_b * m.w_a) / sizes[at(m.code)]


@kernel
def find_last_merges(meetings, levels, last):
    """Find, for each true cluster, the place of the highest merge that joins two of its parts."""
    for i in range(meetings.size):
        m = meetings[i]
        known = last[at(m.code)]
        if known < 0 or levels[at(m.at)] > levels[at(known)]:
            last[at(m.code)] = m.at


@kernel
def add_loss_by_merge(merges, over):
    """Write, by merge, the precision lost when two clusters merge."""
    for i in range(merges.size):
        m = merges[i]
        if m.lost == 0:
            continue
        loss = m.lost / np.float64(m.w_a + m.w_b)
        if m.lost_a > 0:
            loss -= m.lost_a / np.float64(m.w_a)
        if m.lost_b > 0:
            loss -= m.lost_b / np.float64(m.w_b)
        over[at(m.at)] = loss


@kernel
def join_ties(levels, n_levels, heads, open_places, over, under):
    """Combine merges of the same level that form one cluster into a single merge, at the last of their places.

    All arrays have shape (n,). `heads` receives the place of the combined merge for each place; `open_places` is
    scratch. `over` and `under` are summed at that place, and set to 0 at the others.
    """
    depth = 0
    for place in range(levels.size):
        heads[place] = place
        while depth and levels[open_places[depth - 1]] <= levels[place]:
            depth -= 1
            if levels[open_places[depth]] == levels[place]:
                heads[open_places[depth]] = place
        open_places[depth] = place
        depth += 1
    for place in range(levels.size - 1, -1, -1):
        head = heads[heads[place]]
        heads[place] = head
        if head != place and levels[place] < n_levels:
            over[head] += over[place]
            under[head] += under[place]
        if head != place or levels[place] == n_levels:
            over[place] = under[place] = 0.0


@kernel
def find_ends(codes, firsts, lasts):
    """Find the first and the last place of each true cluster; `firsts` is initially -1."""
    for place in range(codes.size):
        code = codes[place]
        if code >= 0:
            firsts[code] = place if firsts[code] < 0 else firsts[code]
            lasts[code] = place


@inlined
def reaching_from(highest, place, limit):
    """Return the first place, at or after `place`, whose level is at least `limit`; one must exist."""
    node = place + (highest.size >> 1)
    while highest[at(node)] < limit:
        node += 1
        while not node & 1:  # neither this node nor its sibling has been searched
            node >>= 1
    while node < highest.size >> 1:
        node <<= 1
        if highest[at(node)] < limit:
            node += 1
    return node - (highest.size >> 1)


@inlined
def reaching_before(highest, place, limit):
    """Return the last place before `place` whose level is at least `limit`; -1 if there is none."""
    node = place + (highest.size >> 1)
    if not node & (node - 1):
        return -1
    node -= 1
    while highest[at(node)] < limit:
        while not node & 1:
            node >>= 1
        if node == 1:
            return -1
        node -= 1
    while node < highest.size >> 1:
        node = (node << 1) + 1
        if highest[at(node)] < limit:
            node -= 1
    return node - (highest.size >> 1)


@kernel
def measure_stretches(highest, places, limits, sizes, parts):
    """Write the size of the cluster around each place after all merges below a level, and the number of its parts.

    The level of each place is its entry in `limits`. The parts are the clusters that the last level below it joins;
    they are not counted if `parts` is empty. `highest` is a tree of maxima stored as a heap: its second half is the
    levels, of which the last exceeds all limits, and each entry of the first half is the larger of two.
    """
    for k in range(places.size):
        start = reaching_before(highest, places[k], limits[k]) + 1
        stop = reaching_from(highest, places[k], limits[k])
        sizes[k] = stop - start + 1
        if not parts.size:
            continue
        parts[k] = 1
        place = reaching_from(highest, start, limits[k] - 1)
        while place < stop:
            parts[k] += 1
            place = reaching_from(highest, place + 1, limits[k] - 1)


@inlined
def add_to(sums, place, x):
    """Add `x` exactly to the sum at `place`, a row of the sum and its rounding error."""
    sums[at(place), 0], sums[at(place), 1] = add_exactly(sums[at(place), 0], sums[at(place), 1], x)


@inlined
def fetch_level(meetings, i, levels, sums):
    """Prefetch the sum of the merge point that comes AHEAD entries later."""
    if i + AHEAD < meetings.size:
        fetch(sums, 2 * levels[at(meetings[at(i + AHEAD)].at)])


# Sums over merge points: `sums` (n_levels + 1, 2) are sums by level and their rounding errors
@kernel
def add_recall(meetings, levels, sizes, less, sums):
    """Add, by level, the weight of true pairs that merge, divided by the size of their true cluster minus `less`."""
    for i in range(meetings.size):
        fetch_level(meetings, i, levels, sums)
        m = meetings[at(i)]
        pairs = np.float64(m.v_a * m.w_b + m.v_b * m.w_a)
        add_to(sums, levels[at(m.at)], pairs / (sizes[at(m.code)] - less))


@kernel
def add_weight_together(meetings, levels, sums):
    """Add, by level, the weight of true pairs that merge."""
    for i in range(meetings.size):
        fetch_level(meetings, i, levels, sums)
        m = meetings[at(i)]
        add_to(sums, levels[at(m.at)], m.w_a * m.w_b)


@inlined
def mixed(v_a, v_b, a, b):
    """Return v_a log((a + b) / a) + v_b log((a + b) / b).

    With v_a = a and v_b = b, this is a + b times the entropy of the split into a and b.
    """
    return v_a * math.log1p(b / a) + v_b * math.log1p(a / b)


@kernel
def add_entropy_of_parts(meetings, levels, dominant, by_merge, sums):
    """Add the entropy of true clusters' parts that merge: by level, and by merge without the dominant cluster's."""
    for i in range(meetings.size):
        fetch_level(meetings, i, levels, sums)
        m = meetings[at(i)]
        x = mixed(np.float64(m.v_a), np.float64(m.v_b), np.float64(m.w_a), np.float64(m.w_b))
        add_to(sums, levels[at(m.at)], x)
        if m.code != dominant:
            add_to(by_merge, m.at, x)


# Sums over merges
@inlined
def turn_to(level, state, sums):
    """Return `state` if its level is this one; otherwise store its sum, and return a new state with a zero sum.

    A state is (level, sum, rounding error).
    """
    last, total, error = state
    if last == level:
        return last, total, error
    if last >= 0:
        sums[at(last)] = total + error
    return np.int64(level), 0.0, 0.0


@inlined
def add_to_level(level, x, state, sums):
    """Add `x` to the sum of a level, and return the state; see `turn_to`."""
    level, total, error = turn_to(level, state, sums)
    total, error = add_exactly(total, error, x)
    return level, total, error


@kernel
def count_clusters(merges, clusters, singletons, largest):
    """Count, by level, how many clusters and singletons cease to exist, and find the largest new cluster.

    Only scored items count. Shapes: (n,), and (n_levels + 1,) of all others.
    """
    for i in range(merges.size):
        m = merges[i]
        level, size = m.level, m.s_a + m.s_b
        clusters[at(level)] += m.s_a > 0 and m.s_b > 0
        singletons[at(level)] += int(m.s_a == 1) + int(m.s_b == 1) - int(size == 1)
        largest[at(level)] = max(largest[at(level)], size)


@kernel
def add_precision_loss(merges, less, state, sums):
    """Add, by level, the precision lost when clusters merge: the weight of wrong pairs over cluster size minus `less`.

    A cluster of one item has no precision and loses none. `state`, here and below, is that of `turn_to`, returned for
    the next batch of merges.
    """
    for i in range(merges.size):
        m = merges[i]
        if m.lost == 0:
            continue
        state = add_to_level(m.level, m.lost / (np.float64(m.w_a + m.w_b) - less), state, sums)
        if m.lost_a > 0:
            state = add_to_level(m.level, -(m.lost_a / (np.float64(m.w_a) - less)), state, sums)
        if m.lost_b > 0:
            state = add_to_level(m.level, -(m.lost_b / (np.float64(m.w_b) - less)), state, sums)
    turn_to(-1, state, sums)
    return state


@kernel
def count_pairs(merges, right, wrong):
    """Count, by level, the pairs that merges join correctly and wrongly. Shapes: (n_levels + 1,)."""
    for i in range(merges.size):
        m = merges[i]
        new = (m.wrong - m.wrong_a - m.wrong_b) >> 1
        right[at(m.level)] += m.n_a * m.n_b - new
        wrong[at(m.level)] += new


@kernel
def add_weight_apart(merges, state, sums):
    """Add, by level, the weight of wrongly merged pairs."""
    for i in range(merges.size):
        m = merges[i]
        if m.apart > 0.0:
            state = add_to_level(m.level, 0.5 * m.apart, state, sums)
    turn_to(-1, state, sums)
    return state


@kernel
def add_entropy(merges, state, sums):
    """Add, by level, the entropy of the clusters that merge."""
    for i in range(merges.size):
        m = merges[i]
        a, b = np.float64(m.w_a), np.float64(m.w_b)
        state = add_to_level(m.level, mixed(a, b, a, b), state, sums)
    turn_to(-1, state, sums)
    return state


@inlined
def beside(x, r):
    """Return x log((x + r) / x), which is 0 for x = 0."""
    return x * math.log1p(r / x) if x > 0.0 else 0.0


@kernel
def add_untold_entropy(merges, scored, by_merge, state, sums):
    """Add, by level, the entropy of merging clusters that true clusters do not explain.

    `by_merge` is the entropy of the true clusters' parts except the dominant one's. The dominant one's is computed
    from the weight of the others, because it may be small.
    """
    for i in range(merges.size):
        if i + AHEAD < merges.size:
            fetch(by_merge, 2 * merges[at(i + AHEAD)].at)
        m = merges[at(i)]
        if m.wrong == m.wrong_a + m.wrong_b:
            continue
        x_a, x_b = np.float64(m.mass_x_a), np.float64(m.mass_x_b)
        r_a, r_b = np.float64(m.mass_r_a), np.float64(m.mass_r_b)
        if scored:
            untold = mixed(np.float64(m.v_a), np.float64(m.v_b), np.float64(m.w_a), np.float64(m.w_b))
        else:
            untold = mixed(r_a, r_b, np.float64(m.w_a), np.float64(m.w_b))
        untold -= by_merge[at(m.at), 0] + by_merge[at(m.at), 1]
        untold += beside(x_a + x_b, r_a + r_b) - beside(x_a, r_a) - beside(x_b, r_b)
        state = add_to_level(m.level, max(0.0, untold), state, sums)
    turn_to(-1, state, sums)
    return state


# Sums by level
@kernel
def sum_before(sums):
    """Replace each sum by the total of the levels before it. Shape: (n,)."""
    total, error = 0.0, 0.0
    for level in range(sums.size):
        own = sums[level]
        sums[level] = total + error
        total, error = add_exactly(total, error, own)


@kernel
def sum_from(sums):
    """Replace each sum by the total of its level and all later levels. Shape: (n,)."""
    total, error = 0.0, 0.0
    for level in range(sums.size - 1, -1, -1):
        total, error = add_exactly(total, error, sums[level])
        sums[level] = total + error


# Events of units
@kernel
def run_within(units, values, backwards, totals, before, after):
    """Add values to the totals of their units one by one, and write each unit's total before and after the addition.

    Shapes: `units`, `values` (n,), `totals` (n_units,), `before`, `after` (n,). Values are added last first if
    `backwards`.
    """
    for k in range(units.size):
        i = units.size - 1 - k if backwards else k
        u = at(units[i])
        before[i] = totals[u]
        totals[u] += values[i]
        after[i] = totals[u]
