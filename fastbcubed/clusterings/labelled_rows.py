"""What a clustering holds: the item and the cluster of each row, and what the table that it came from has besides."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np
import pyarrow as pa

from fastbcubed.errors import ColumnError
from fastbcubed.sources.blocks import rows_between
from fastbcubed.sources.columns import Column
from fastbcubed.sources.layouts import Reading
from fastbcubed.sources.tables import Rows

if TYPE_CHECKING:
    from fastbcubed.clusterings.components import Connected

#: What a clustering is called that was given no name.
UNNAMED = "the clustering"


@dataclass(frozen=True, eq=False, repr=False)
class LabelledRows:
    """The rows of a clustering; the attributes are described at `Clustering`."""

    labels: Column
    items: Column | None = None
    weight: np.ndarray | None = None
    attributes: Rows | None = None
    name: str = UNNAMED
    reading: Reading | None = None
    links: Connected | None = None

    def __post_init__(self) -> None:
        lengths = {"labels": len(self.labels)}
        if self.items is not None:
            lengths["items"] = len(self.items)
        if self.weight is not None:
            lengths["weights"] = len(self.weight)
        if len(set(lengths.values())) > 1:
            listed = ", ".join(f"{count} {what}" for what, count in lengths.items())
            raise ColumnError(f"{self.name} should have one of each per row, but has {listed}.")
        if self.items is not None:
            self.items.refuse_nulls()

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        def describe(column: Column) -> str:
            return f"{column.name!r} ({' and '.join(str(part.type) for part in column.parts)})"

        items = "none, by position" if self.items is None else describe(self.items)
        lines = [
            f"Clustering: {self.name}, {len(self):,} rows",
            f"  items   {items}",
            f"  labels  {describe(self.labels)}",
        ]
        if self.weight is not None:
            lines.append("  weight  given")
        others = self.attribute_names
        if others:
            lines.append(f"  other   {', '.join(others)}")
        return "\n".join(lines)

    def slice(self, start: int, stop: int) -> Self:
        """Return the clustering of consecutive rows; nothing is copied.

        Parameters
        ----------
        start, stop : int
            First row, and the row after the last.
        """
        items = None if self.items is None else self.items.stretch(start, stop)
        weight = None if self.weight is None else self.weight[start:stop]
        others = None if self.attributes is None else rows_between(self.attributes, start, stop)
        labels = self.labels.stretch(start, stop)
        return replace(self, labels=labels, items=items, weight=weight, attributes=others)

    def as_side(self, name: str, weight: np.ndarray | None) -> Self:
        """Return the clustering with these weights, and with a name if it has none of its own."""
        return replace(self, weight=weight, name=name if self.name == UNNAMED else self.name)

    @property
    def attribute_names(self) -> tuple[str, ...]:
        """Names of the columns of the table other than the items and labels."""
        if self.attributes is None:
            return ()
        used = {*self.labels.names, *(self.items.names if self.items is not None else ())}
        return tuple(name for name in self.attributes.names if name not in used)

    @property
    def omits_singletons(self) -> bool:
        """Whether it has only the items that are in a link, so that those it lacks are alone, not missing."""
        return self.links is not None and not self.links.complete

    def to_table(self) -> pa.Table:
        """Return the items and the cluster of each as a table, which `from_table` reads again.

        Returns
        -------
        pyarrow.Table
            The columns of the items, one for each part of a composite id and none for items by position; then those
            of the labels. A row per membership, in the order of the clustering.

        Examples
        --------
        >>> import fastbcubed as fb
        >>> fb.Clustering.from_clusters({"x": ["a", "b"], "y": ["c"]}).to_table().to_pydict()
        {'item': ['a', 'b', 'c'], 'cluster': ['x', 'x', 'y']}
        """
        columns = [self.labels] if self.items is None else [self.items, self.labels]
        names = [name for column in columns for name in column.names]
        return pa.table([part for column in columns for part in column.parts], names=names)
