"""Where items of one true cluster meet: the merges that bring two parts of it together, counted once each.

Of the parts of a true cluster whose places ascend, two neighbours meet at the highest level between them; so the
meetings are the nodes of a tree over its gaps, which a stack finds in one look at each row.
"""

from __future__ import annotations

from fastbcubed.kernels.cells import add_exactly
from fastbcubed.kernels.jit import at, inlined, kernel


@inlined
def highest_from(bounds, depth, place):
    """Return where the highest level from a place on stands, and the last of these; `bounds` are where levels fall."""
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
    """Begin a part of a true cluster with one row."""
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
    """Write the meeting of a part with the part before it, and make them one."""
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
    """Do the same for weights."""
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
    """Find meetings from a place on until `found` is full; return the next place, the depth, and how many were found.

    The rows stand as the merge tree has them: `levels` (n,) are those between each and the next, `codes` (n,) the
    true clusters, -1 for none. `weights` and `scored` may be None. Scratch: `bounds` (n,), of which `depth` are in
    use; `last_of` (n_codes,), which comes as -1; `groups` (n,).
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
    """Find the meetings that are left when all places have been looked at, from a true cluster on.

    Returns the next true cluster, and how many were found; what else is given is as `find_meetings` leaves it.
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
