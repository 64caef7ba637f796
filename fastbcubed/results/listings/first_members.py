"""The members of a cluster that are shown: the heaviest few of each part, dealt out part by part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed.results.evaluated import Evaluated
from fastbcubed.results.items.items import RowNumbers
from fastbcubed.results.slices.slicing import attribute_values
from fastbcubed.sources.attributes import readable


@dataclass(frozen=True, eq=False)
class FirstMembers:
    """The first parts of a cluster, the rows of the first members of each, and those that the other side lacks."""

    side: str
    parts: pa.Table  #: the other side's cluster, and figures
    rows: Sequence[RowNumbers]  #: by part
    n_alone: int  #: items that the other side lacks
    alone: RowNumbers

    def fewer(self, members: int) -> FirstMembers:
        """Return what is shown of the same cluster with fewer members."""
        dealt = deal(np.append(self.parts["n_items"].to_numpy(), self.n_alone), members)
        n = int(np.count_nonzero(dealt[:-1]))
        rows = [own[:k] for own, k in zip(self.rows[:n], dealt.tolist(), strict=False)]
        return FirstMembers(self.side, self.parts.slice(0, n), rows, self.n_alone, self.alone[: dealt[-1]])

    def at(self, rows: RowNumbers) -> FirstMembers:
        """Return the same members where row k is called `rows[k]`."""
        return replace(self, rows=[rows[own] for own in self.rows], alone=rows[self.alone])

    def numbered_from(self, start: int) -> FirstMembers:
        """Return the same members where they are consecutive rows from a number on."""
        ends = (start + np.cumsum([own.size for own in (*self.rows, self.alone)])).tolist()
        *rows, alone = (np.arange(a, b) for a, b in zip([start, *ends], ends, strict=False))
        return replace(self, rows=rows, alone=alone)

    def every_row(self) -> RowNumbers:
        """Return the rows of all members, part by part."""
        return np.concatenate([*self.rows, self.alone])

    def shown(self, ev: Evaluated, names: Sequence[str]) -> dict[str, Any]:
        """Return the parts with their members, and the items that the other side lacks."""
        members = iter(_members(ev, names, self.every_row()))
        parts = [
            {**part, "members": [next(members) for _ in own]}
            for part, own in zip(self.parts.to_pylist(), self.rows, strict=True)
        ]
        fate = ev.policies.prediction if self.side == "pred" else ev.policies.truth
        alone = {"n_items": self.n_alone, "policy": fate, "members": list(members)}
        return {"columns": list(names), "parts": parts, "one_sided": alone}


def _members(ev: Evaluated, names: Sequence[str], rows: RowNumbers) -> list[dict[str, Any]]:
    items = ev.kept_items()
    ids = items.ids(rows).to_pylist()
    values = [readable(attribute_values(n, items, ev.attributes, rows)).to_pylist() for n in names]
    weights = [None if w != w else w for w in ev._rows().weights_of(rows).tolist()]
    return [
        {"item": each, "weight": weight, "attributes": dict(zip(names, own, strict=True))}
        for each, weight, *own in zip(ids, weights, *values, strict=True)
    ]


def deal(sizes: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """Return how many of n members each part shows: one each in their order, then another each, while they last.

    Examples
    --------
    >>> deal(np.array([50, 5, 1]), 20).tolist(), deal(np.array([3, 3, 3]), 2).tolist()
    ([14, 5, 1], [1, 1, 0])
    """
    low, high = 0, int(sizes.max(initial=0))  # the rounds that all of them go along with
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if np.minimum(sizes, middle).sum() <= n else (low, middle - 1)
    dealt = np.minimum(sizes, low)
    more = np.flatnonzero(sizes > low)[: n - int(dealt.sum())]
    dealt[more] += 1
    return dealt
