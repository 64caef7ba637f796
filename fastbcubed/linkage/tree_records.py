"""Records of meetings and merges, as the kernels write them.

Weights need fields of their own, and so does what is scored where not all rows are. Without these, their names stand
for the same bytes as the counts, so that one formula serves all.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

import numpy as np


class Records(NamedTuple):
    """The records of one run of the kernels."""

    group: np.dtype  #: a part of a true cluster while it is put together
    meeting: np.dtype  #: two parts of a true cluster that come together: `at` a merge, of which `code`
    cluster: np.dtype  #: a cluster while it is put together, which reaches to another row, `far`
    merge: np.dtype  #: two clusters that become one, `at` a place and of a level


@lru_cache
def records(index: np.dtype, *, weighted: bool, scored: bool) -> Records:
    """Return the records for places of this type; `scored` if some rows count in clusters and are not scored.

    Both sides of a meeting or a merge have: n rows, of which s are scored; weight w, of which v is scored. A merge has
    also x rows of the dominant true cluster and r of others, and the `wrong` ordered pairs in either cluster and in
    both together, whose weight is `lost`.
    """
    i = np.dtype(index).str
    both = ("_a", "_b")
    mass = "w" if weighted else "n"
    count = "s" if scored else "n"
    scored_mass = "v" if weighted and scored else "w" if weighted else count

    def sides(names: str, kind: str) -> list[tuple[str, str]]:
        return [(f"{name}{side}", kind) for name in names.split() for side in both]

    def aliases(**meant: str) -> list[tuple[str, str]]:
        return [(f"{name}{side}", f"{own}{side}") for name, own in meant.items() for side in both]

    counted = sides("n s" if scored else "n", i)
    weighed = sides("w v" if scored else "w", "f8") if weighted else []
    same = aliases(s=count, w=mass, v=scored_mass)
    meeting = _record([("at", i), ("code", i), *counted, *weighed], same)
    state = [("n", i), ("s", i), ("w", "f8"), ("w_error", "f8"), ("v", "f8"), ("v_error", "f8")]
    kept = {"n"} | ({"s"} if scored else set()) | ({"w", "w_error"} if weighted else set())
    kept |= {"v", "v_error"} if weighted and scored else set()
    group = _record(
        [("gap", i), ("below", i), *(each for each in state if each[0] in kept)],
        [("s", count), *([("v", scored_mass), ("v_error", "w_error")] if weighted else [])],
    )
    masses = "mass_x error_x mass_r error_r lost error_lost" + (" mass_v error_v" if scored else "")
    held = [("wrong", "i8"), ("far", i), ("x", i), *([("s", i)] if scored else [])]
    cluster = _record(
        [*((name, "f8") for name in masses.split() if weighted), *held],
        [("s", "x"), *([("mass_v", "mass_r"), ("error_v", "error_r")] if weighted else [])],
    )
    wrong = [("wrong", "i8"), *sides("wrong", "i8")]
    lost = [("apart", "f8"), ("lost", "f8"), *sides("lost mass_x mass_r", "f8")] if weighted else []
    merge = _record(
        [("at", i), ("level", i), *counted, *sides("x r", i), *weighed, *wrong, *lost],
        [*same, *([] if weighted else [("lost", "wrong"), *aliases(lost="wrong", mass_x="x", mass_r="r")])],
    )
    return Records(group, meeting, cluster, merge)


def _record(fields: Iterable[tuple[str, str]], same: Iterable[tuple[str, str]] = ()) -> np.dtype:
    """Return a record of aligned fields, and further names for some of them."""
    own = np.dtype(list(fields), align=True)
    assert own.names is not None and own.fields is not None
    extra = {name: meant for name, meant in same if name not in own.names}
    places = {name: own.fields[name] for name in own.names}
    places |= {name: own.fields[meant] for name, meant in extra.items()}
    return np.dtype(
        {
            "names": list(places),
            "formats": [place[0] for place in places.values()],
            "offsets": [place[1] for place in places.values()],
            "itemsize": own.itemsize,
        }
    )
