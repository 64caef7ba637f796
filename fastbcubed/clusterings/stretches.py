"""What is given to evaluate() → two clusterings, whole or in blocks that are read when their turn comes."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fastbcubed.clusterings.clustering import Clustering
from fastbcubed.clusterings.inputs import (
    Given,
    Inputs,
    asked_of_sides,
    one_side,
    own_weight,
    pair_of_table,
    read_pair,
    refuse_one_result,
    require_weight,
)
from fastbcubed.clusterings.part_order import in_one_order
from fastbcubed.errors import AlignmentError, FastBCubedError, OptionError, naming
from fastbcubed.runtime.pool import blocks
from fastbcubed.runtime.spill import Spill
from fastbcubed.sources.arrays import no_rows
from fastbcubed.sources.blocks import Source, sources_of
from fastbcubed.sources.columns import Column
from fastbcubed.sources.nulls import Nulls
from fastbcubed.sources.open import as_rows
from fastbcubed.sources.readers import Stream, columns_used, open_stream, spool
from fastbcubed.sources.tables import Rows, is_path


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
    """The two sides of an evaluation, in blocks."""

    #: one list if the rows of the two sides correspond, so that every block has both; else one for the truth
    #: and one for the prediction, to be joined by item
    stretches: tuple[list[Stretch], ...]
    names: tuple[str, str]  #: what the sides are called
    weight_table: tuple[Column, np.ndarray] | None = None  #: items and weights, which are held in memory
    attribute_table: tuple[Column, Rows] | None = None  #: items and attributes, likewise

    @property
    def first(self) -> tuple[Clustering, Clustering]:
        """The first block of the truth and of the prediction."""
        found = [clustering for side in self.stretches for clustering in _first(side)]
        return found[0], found[1]

    @property
    def n_rows(self) -> int:
        """Rows to be aligned at most: those of both sides, unless they correspond."""
        return sum(stretch.n_rows for side in self.stretches for stretch in side)


@dataclass(frozen=True)
class Cut:
    """How to read what is read block by block."""

    size: int  #: rows of a block at most
    spill_dir: Any = None  #: where streams are spilled
    #: whether to spill all columns of them: those that are no part of a clustering are used, too
    every: bool = False


def open_pair(given: Given, cut: Cut | None = None) -> Pair:
    """Open the two sides of an evaluation: each whole and in one block, or cut into blocks.

    In blocks, files are read when their turn comes, and what passes by only once, such as a record-batch reader, is
    written to the disk and read from there.
    """
    return open_pairs([given], [None], cut)[0]


def open_pairs(given: Sequence[Given], runs: Sequence[str | None], cut: Cut | None = None) -> list[Pair]:
    """Open evaluations of runs, which differ in their predictions alone, as `open_pair` does; what they share once."""
    opened = None if cut is None else _Opening(cut, [each.prediction for each in given])
    whole: Inputs | None = None
    pairs: list[Pair] = []
    for each, run in zip(given, runs, strict=True):
        weight = each.weight
        if pairs:
            weight = None if pairs[0].weight_table is not None else weight
            each = replace(each, attributes=None, weight=weight)
        with naming(run, *map(_called, (each.truth, each.prediction), ("the truth", "the prediction"))):
            pair = None if opened is None else _in_blocks(each, opened)
            if pair is None:
                if whole is None:
                    rows = None if each.table is None else as_rows(each.table, "the table")
                else:
                    each = _with_truth_of(whole, each)
                inputs = (each if rows is None else replace(each, table=rows)).read()
                if whole is not None:
                    inputs = _with_own_weight(inputs, weight)
                whole = whole or inputs
                pair = _of_inputs(inputs, None if cut is None else cut.size)
        if pairs:
            tables = pairs[0].weight_table, pairs[0].attribute_table
            pair = replace(pair, weight_table=tables[0], attribute_table=tables[1])
        pairs.append(pair)
    return pairs


def _with_truth_of(read: Inputs, given: Given) -> Given:
    """Return what is given of a further prediction, with the truth and its weights as they have been read."""
    if given.table is not None:
        return given
    return replace(given, truth=read.truth, weight=None if read.truth.weight is not None else given.weight)


def _called(given: Any, otherwise: str) -> str:
    """Return what messages call what is given of a side: its path, the name of a clustering, or what else it is."""
    if isinstance(given, Clustering):
        return given.name
    return os.fspath(given) if is_path(given) else otherwise


def _with_own_weight(inputs: Inputs, weight: Any) -> Inputs:
    """Return inputs whose truth had been read, weights and all, with the weights that the prediction may have."""
    own = own_weight(inputs.prediction, weight)
    return inputs if own is None else inputs._replace(prediction=replace(inputs.prediction, weight=own))


def _in_blocks(given: Given, opened: _Opening) -> Pair | None:
    """Open what is read block by block; None if all lies in memory."""
    found = None
    if given.table is not None and (given.weight is None or isinstance(given.weight, str)):
        if given.cluster == "cluster" and (source := opened.source(given.table)) is not None:
            found = _of_table(given, source, opened)
    elif given.table is None:
        refuse_one_result(given.truth, given.prediction)
        sources = opened.source(given.truth), opened.source(given.prediction)
        if sources != (None, None):
            found = _of_sources(given, sources, opened)
    if found is None or given.attributes is None:
        return found
    first = replace(found.first[0], attributes=None)
    joined = read_pair(first, first, item=given.item, attributes=given.attributes)
    if joined.attribute_table is None:
        raise OptionError("attributes= needs item ids when the labels come from a table; pass item=.")
    return replace(found, attribute_table=joined.attribute_table)


Make = Callable[[Rows], tuple[Clustering, ...]]


class _Opening:
    """Opens what is read block by block; what passes by once is spilled once, whoever asks for it."""

    def __init__(self, cut: Cut, predictions: Sequence[Any]) -> None:
        self.size, self._spill_dir, self._every = cut.size, cut.spill_dir, cut.every
        self.predictions = predictions
        self._streams: list[tuple[Any, Stream | Rows]] = []

    def source(self, given: Any) -> Rows | Stream | None:
        """Return the rows of files, or a stream, or what was spilled of it; None for what lies in memory."""
        if is_path(given):
            return as_rows(given, "the table")
        for known, source in self._streams:
            if known is given:
                return source
        if (stream := open_stream(given)) is not None:
            self._streams.append((given, stream))
        return stream

    def stretches(
        self, source: Rows | Stream, name: str, make: Make, use: Callable[[Rows], Any] | None = None
    ) -> list[Stretch]:
        """Return blocks, each made into the clusterings of its rows; `use` is all that is made of them, if more."""
        if isinstance(source, Stream):
            spill = Spill(self._spill_dir, named=self._spill_dir is not None)
            rows = spool(source, name, use or make, spill, self.size, every=self._every)
            self._streams = [(known, rows if own is source else own) for known, own in self._streams]
            source = rows
        names = None if self._every else columns_used(source, make)
        sources = sources_of(source, self.size, names)
        nulls = _NullsOfAll(sources, make)
        return [_stretch(each, make, nulls) for each in sources]


def _of_table(given: Given, source: Rows | Stream, opened: _Opening) -> Pair:
    def make(block: Rows, prediction: Any = given.prediction) -> tuple[Clustering, ...]:
        return pair_of_table(given.truth, prediction, block, given.item, given.weight)

    def use(block: Rows) -> None:
        for prediction in opened.predictions:
            make(block, prediction)

    stretches = opened.stretches(source, "the table", make, use)
    return Pair((stretches,), _names(stretches, stretches))


def _of_sources(
    given: Given, sources: tuple[Rows | Stream | None, Rows | Stream | None], opened: _Opening
) -> Pair:
    """Open two tables, at least one of them in files or passing by."""
    item, cluster, weight = given.item, given.cluster, given.weight
    name_of_weight = weight if isinstance(weight, str) else None
    asked = asked_of_sides(item, cluster)

    def make(k: int, rows: Any) -> tuple[Clustering, ...]:
        return (one_side(rows, asked[k], name_of_weight, False),)

    whole = [make(k, given.sources[k]) if source is None else () for k, source in enumerate(sources)]
    if any(side.items is None for sides in whole for side in sides):  # labels alone, which raises
        shown = [
            no_rows(each.schema) if isinstance(each, Stream) else given.sources[k]
            for k, each in enumerate(sources)
        ]
        return _of_inputs(read_pair(*shown, item=item, cluster=cluster, weight=weight), opened.size)

    def cut(k: int, like: Clustering | None = None) -> list[Stretch]:
        def ordered(found: tuple[Clustering, ...]) -> tuple[Clustering, ...]:
            return found if like is None else (in_one_order(like, *found),)

        source = sources[k]
        if source is None:
            return _cut(ordered(whole[k]), opened.size)
        return opened.stretches(source, asked[k].name, lambda rows: ordered(make(k, rows)))

    truth = cut(0)
    first = _first(truth)[0]
    prediction = cut(1, first)
    firsts = first, _first(prediction)[0]
    weight_table = None
    if name_of_weight is not None:
        require_weight(firsts, name_of_weight)
    elif weight is not None:
        weight_table = read_pair(firsts[0], firsts[0], weight=weight).weight_table
    return Pair((truth, prediction), _names(truth, prediction), weight_table)


def _of_inputs(inputs: Inputs, size: int | None) -> Pair:
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


def _cut(sides: tuple[Clustering, ...], size: int | None) -> list[Stretch]:
    """Cut clusterings in memory, whose rows correspond, into blocks; into one where no size is given."""
    if size is None:
        return [Stretch(0, len(sides[0]), lambda: iter((Block(0, sides),)))]

    def stretch(start: int, stop: int) -> Stretch:
        def once() -> Iterator[Block]:
            found = [side.slice(start, stop) for side in sides]
            for shared in ("items", "attributes"):
                if len(sides) == 2 and getattr(sides[0], shared) is getattr(sides[1], shared):
                    found[1] = replace(found[1], **{shared: getattr(found[0], shared)})
            yield Block(start, tuple(found))

        return Stretch(start, stop - start, once)

    return [stretch(start, stop) for start, stop in blocks(len(sides[0]), size)]


class _NullsOfAll:
    """Counts the nulls of all blocks, once, when one turns out to have some where there may be none."""

    def __init__(self, sources: list[Source], make: Make) -> None:
        self._sources, self._make = sources, make
        self._lock = threading.Lock()
        self._found: Nulls | None = None

    def error(self) -> FastBCubedError:
        """Return the error that tells them."""
        with self._lock:
            self._found = self._found or self._count()
        return self._found.error()

    def _count(self) -> Nulls:
        found: list[Nulls] = []
        for source in self._sources:
            for block in source.blocks():
                try:
                    self._make(block)
                except FastBCubedError as error:
                    if error.nulls is None:
                        raise
                    found.append(error.nulls.moved(block.first_row))
        return Nulls.sum(found, sum(source.n_rows for source in self._sources))


def _stretch(source: Source, make: Make, nulls: _NullsOfAll) -> Stretch:
    def sound() -> Iterator[Block]:
        for block in source.blocks():
            yield Block(block.first_row, make(block))

    def read() -> Iterator[Block]:
        try:
            yield from sound()
        except FastBCubedError as error:
            if error.nulls is None:
                raise
        else:
            return
        raise nulls.error()  # when the source is closed, since all of them are read again

    return Stretch(source.first_row, source.n_rows, read)


def _names(truth: list[Stretch], prediction: list[Stretch]) -> tuple[str, str]:
    first, second = _first(truth), _first(prediction)
    return first[0].name, second[-1].name


def _first(side: list[Stretch]) -> tuple[Clustering, ...]:
    return next(side[0].blocks()).sides
