"""Where an evaluation comes from: what was given to it, as far as results tell of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fastbcubed.results.warned_input import same_source, swapped_names
from fastbcubed.sources.tables import is_path


@dataclass(frozen=True)
class Origin:
    """Where an evaluation comes from."""

    same_source: str | None = None  #: what both sides are, if they are one thing
    swapped_names: str | None = None  #: why the sides may be in the wrong order, by their names
    by_name: bool = False  #: whether the sides are named: by path or column

    @classmethod
    def of(cls, given: Any) -> Origin:
        """Look at what was given; nothing is read."""
        named = given.table is not None or is_path(given.truth)
        return cls(same_source(given), swapped_names(given), named)
