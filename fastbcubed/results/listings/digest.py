"""A digest of all clusters: what takes a look at each of them, and the few that are shown of so many."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fastbcubed.cells.excerpts import Codes
from fastbcubed.results.listings.concentration import POINTS, ROWS, LossCurve
from fastbcubed.results.listings.known_clusters import Keyed
from fastbcubed.results.listings.repairs import Ranked
from fastbcubed.results.listings.size_classes import SizeClasses

#: Clusters of a side and repairs that are listed, clusters that can be opened, and members of each that are shown.
LISTED, OPENED, MEMBERS = 1000, 50, 20
#: Rows of a curve that a digest can tell.
LIMITS = (POINTS, ROWS)


@dataclass(frozen=True, eq=False)
class Digest:
    """What all clusters come to by side, the first of listings by code, and clusters to open by side and code."""

    classes: Mapping[str, SizeClasses]
    curves: Mapping[str, LossCurve]
    codes: Mapping[str, NDArray[np.int64]]  #: of the costliest, as far as they cost anything
    repairs: Ranked | None  #: of both kinds; None if they are not known
    opened: Keyed

    def curve(self, side: str, limit: int | None) -> LossCurve | None:
        """Return a curve of the loss for a table of so many rows; None if it is not known that finely."""
        return self.curves[side] if limit in LIMITS else None

    def first_codes(self, side: str, limit: int) -> NDArray[np.int64] | None:
        """Return the costliest clusters of a side; None if fewer are known."""
        return None if limit > self.codes[side].size else self.codes[side][:limit]

    def first_repairs(self, limit: int) -> Ranked | None:
        """Return the first repairs; None if fewer are known, and there are more."""
        if self.repairs is None or limit > len(self.repairs.running) >= LISTED:
            return None
        return self.repairs.first(limit)

    def some_opened(self, codes: Codes, members: int) -> Keyed:
        """Return those of some clusters that can be opened with so many members."""
        if members > MEMBERS:
            return {}
        return {
            side: {code: self.opened[side][code] for code in own.tolist() if code in self.opened[side]}
            for side, own in codes.items()
        }
