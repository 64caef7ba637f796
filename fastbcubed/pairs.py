"""What is given to evaluate() → two clusterings in blocks, each read when its turn comes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fastbcubed.clustering import Clustering
from fastbcubed.engines.pool import blocks
from fastbcubed.errors import AlignmentError, OptionError
from fastbcubed.inputs import Inputs, PerSide, one_side, pair_of_table, per_side, read_pair
from fastbcubed.sources.blocks import BLOCK_ROWS, Source, sources_of
from fastbcubed.sources.columns import Column
from fastbcubed.sources.tables import Rows, as_rows, is_path

__all__ = ["Block", "Pair", "Stretch", "open_pair"]


@dataclass(frozen=True)
class Block:
    """Consecutive rows: the clustering of one side, or of both where rows correspond."""

    first_row: int
    sides: tuple[Clustering, ...]


@dataclass(frozen=True)
class Stretch:
    """A run of blocks that one thread reads in order."""

    first_row: int
    n_rows: int
    blocks: Callable[[], Iterator[Block]]


@dataclass(frozen=True)
class Pair:
    """The two sides of an evaluation, in blocks.

    Attributes
    ----------
    stretches : tuple of lists of Stretch
        One list if the rows of the two sides correspond, so that every block has both; else one for the
        truth and one for the prediction, to be joined by item.
    names : (str, str)
        What the sides are called.
    weight_table : (Column, ndarray) or None
        Items and weights, which are held in memory.
    attribute_table : (Column, Rows) or None
        Items and attributes, likewise.
    """

    stretches: tuple[list[Stretch], ...]
    names: tuple[str, str]
    weight_table: tuple[Column, np.ndarray] | None = None
    attribute_table: tuple[Column, Rows] | None = None

    @property
    def first(self) -> tuple[Clustering, Clustering]:
        """The first block of the truth and of the prediction."""
        found = [clustering for side in self.stretches for clustering in _first(side)]
        return found[0], found[1]

    @property
    def n_rows(self) -> int:
        """Rows to be aligned at most: those of both sides, unless they correspond."""
        return sum(stretch.n_rows for side in self.stretches for stretch in side)


def open_pair(
    truth: Any,
    prediction: Any,
    *,
    item: PerSide,
    cluster: PerSide,
    weight: Any,
    table: Any,
    attributes: Any = None,
    size: int = BLOCK_ROWS,
) -> Pair:
    """Open the two sides of an evaluation; files are read in blocks, what lies in memory is cut into them.

    Parameters
    ----------
    truth, prediction, item, cluster, weight, table, attributes
        As for `evaluate`.
    size : int
        Rows of a block at most.
    """
    found = None
    if table is not None and is_path(table) and (weight is None or isinstance(weight, str)):
        found = _of_table(truth, prediction, table, item, cluster, weight, size)
    elif table is None and (is_path(truth) or is_path(prediction)):
        found = _of_files(truth, prediction, item, cluster, weight, size)
    if found is None:
        inputs = read_pair(
            truth, prediction, item=item, cluster=cluster, weight=weight, table=table, attributes=attributes
        )
        return _of_inputs(inputs, size)
    if attributes is None:
        return found
    first = replace(found.first[0], attributes=None)
    joined = read_pair(first, first, item=item, attributes=attributes)
    if joined.attribute_table is None:
        raise OptionError("attributes= needs item ids when the labels come from a table; pass item=.")
    return replace(found, attribute_table=joined.attribute_table)


def _of_table(
    truth: Any, prediction: Any, table: Any, item: PerSide, cluster: PerSide, weight: Any, size: int
) -> Pair:
    if cluster != "cluster":
        read_pair(truth, prediction, item=item, cluster=cluster, weight=weight, table=table)  # raises
    rows = as_rows(table, "the table")
    assert rows is not None

    def make(block: Rows) -> tuple[Clustering, ...]:
        return pair_of_table(truth, prediction, block, item, weight)

    stretches = _stretches(rows, make, size)
    return Pair((stretches,), _names(stretches, stretches))


def _of_files(
    truth: Any, prediction: Any, item: PerSide, cluster: PerSide, weight: Any, size: int
) -> Pair | None:
    """Open two tables, at least one of them in files; None if the sides are of no such form."""
    table = None
    name_of_weight = weight if isinstance(weight, str) else None
    stretches = []
    sides = zip(
        (truth, prediction),
        ("the truth", "the prediction"),
        per_side(item, "item"),
        per_side(cluster, "cluster"),
        strict=True,
    )
    for given, name, own_item, own_cluster in sides:
        rows = as_rows(given, name) if is_path(given) else None
        if rows is None:
            whole = one_side(given, name, own_item, own_cluster, name_of_weight, False)
            if whole.items is None:
                return None  # raises what is wrong with that
            stretches.append(_cut((whole,), size))
            continue

        def make(
            block: Rows, name: str = name, own_item: Any = own_item, own_cluster: Any = own_cluster
        ) -> tuple[Clustering, ...]:
            return (one_side(block, name, own_item, own_cluster, name_of_weight, False),)

        stretches.append(_stretches(rows, make, size))
    names = _names(*stretches)
    if weight is not None and name_of_weight is None:
        first = next(stretches[0][0].blocks()).sides[0]
        table = read_pair(first, first, weight=weight).weight_table
    elif name_of_weight is not None and not any(_has_weight(side) for side in stretches):
        read_pair(truth, prediction, item=item, cluster=cluster, weight=weight)  # raises
        raise OptionError(f"there is no weight column {weight!r}")
    return Pair((stretches[0], stretches[1]), names, table)


def _of_inputs(inputs: Inputs, size: int) -> Pair:
    truth, prediction = inputs.truth, inputs.prediction
    names = truth.name, prediction.name
    together = truth.items is None or truth.items is prediction.items
    if together:
        if len(truth) != len(prediction):
            raise AlignmentError(
                f"{truth.name} has {len(truth)} labels and {prediction.name} {len(prediction)}"
            )
        sides: tuple[list[Stretch], ...] = (_cut((truth, prediction), size),)
    else:
        sides = (_cut((truth,), size), _cut((prediction,), size))
    return Pair(sides, names, inputs.weight_table, inputs.attribute_table)


def _cut(sides: tuple[Clustering, ...], size: int) -> list[Stretch]:
    """Cut clusterings in memory, whose rows correspond, into blocks."""

    def stretch(start: int, stop: int) -> Stretch:
        def once() -> Iterator[Block]:
            found = [side.slice(start, stop) for side in sides]
            for shared in ("items", "attributes"):
                if len(sides) == 2 and getattr(sides[0], shared) is getattr(sides[1], shared):
                    found[1] = replace(found[1], **{shared: getattr(found[0], shared)})
            yield Block(start, tuple(found))

        return Stretch(start, stop - start, once)

    return [stretch(start, stop) for start, stop in blocks(len(sides[0]), size)]


def _stretches(rows: Rows, make: Callable[[Rows], tuple[Clustering, ...]], size: int) -> list[Stretch]:
    def stretch(source: Source) -> Stretch:
        def read() -> Iterator[Block]:
            for block in source.blocks():
                yield Block(block.first_row, make(block))

        return Stretch(source.first_row, source.n_rows, read)

    return [stretch(source) for source in sources_of(rows, size)]


def _names(truth: list[Stretch], prediction: list[Stretch]) -> tuple[str, str]:
    first, second = _first(truth), _first(prediction)
    return first[0].name, second[-1].name


def _first(side: list[Stretch]) -> tuple[Clustering, ...]:
    return next(side[0].blocks()).sides


def _has_weight(side: list[Stretch]) -> bool:
    return _first(side)[0].weight is not None
