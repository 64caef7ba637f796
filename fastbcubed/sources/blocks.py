"""Tables in blocks of rows, read one after the other, so that a table need not fit in memory.

A source is a run of blocks that one thread reads in order: a row group of a Parquet file, a file of Arrow IPC, a
piece of a spilled stream, a stretch of a table in memory. Sources of one table may be read side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import Any

import pyarrow as pa

from fastbcubed.errors import OptionError
from fastbcubed.runtime.gate import Gate
from fastbcubed.runtime.pool import blocks
from fastbcubed.sources.readers import SpooledRows
from fastbcubed.sources.tables import BaseRows, Rows

#: Rows of a block at most: a few columns of it are worked on at once by each thread.
BLOCK_ROWS = 1 << 20
#: Bytes of a row; wider rows, such as those with texts, come in smaller blocks,
USUAL_WIDTH = 24
#: down to an eighth of the rows, and from there on to so many bytes for each row of a usual block.
MOST_WIDTH = 64
#: What groups that are read at once may hold besides their blocks, such as dictionaries, for each row of a usual block.
HELD_WIDTH = 256
#: What one of them may hold at most: so many bytes, and so many more for each row of a usual block.
ROOM, ROOM_WIDTH = 64 << 20, 256

Read = Callable[[Sequence[str]], list[pa.ChunkedArray]]


class BlockRows(BaseRows):
    """Consecutive rows of a table; columns are read when asked for, those that are asked for together at once."""

    def __init__(self, table: Rows, first_row: int, n_rows: int, read: Read) -> None:
        super().__init__(table.names, table.where, table)
        self.first_row = first_row
        self._n_rows = n_rows
        self._table = table
        self._columns = read

    def __len__(self) -> int:
        return self._n_rows

    def type_of(self, name: str) -> pa.DataType:
        """Return the type that the column has in the whole table."""
        return self._table.type_of(name)

    def _read(self, names: Sequence[str]) -> list[pa.ChunkedArray]:
        return self._columns(names)


@dataclass(frozen=True)
class Source:
    """A run of blocks: the number of its first row, its rows, and what yields the blocks anew each time."""

    first_row: int
    n_rows: int
    blocks: Callable[[], Iterator[BlockRows]]


def sources_of(table: Rows, size: int = BLOCK_ROWS, names: Sequence[str] | None = None) -> list[Source]:
    """Cut a table into sources, whose blocks have `size` rows at most; fewer if rows of the columns read are wide."""
    from fastbcubed.sources.files import FileRows

    if isinstance(table, FileRows) and table.can_be_cut and len(table):
        return _of_files(table, size, table.names if names is None else names)
    if isinstance(table, SpooledRows) and len(table):
        return _of_pieces(table)
    return [_stretch(table, start, stop) for start, stop in blocks(len(table), size)]


def _stretch(table: Rows, start: int, stop: int) -> Source:
    """Return a source of one block, cut from a table in memory."""
    return _of_one_block(rows_between(table, start, stop))


def rows_between(table: Rows, start: int, stop: int) -> BlockRows:
    """Return consecutive rows of a table that is read as a whole."""

    def read(names: Sequence[str]) -> list[pa.ChunkedArray]:
        return [column.slice(start, stop - start) for column in table.columns(names)]

    return BlockRows(table, start, stop - start, read)


def _of_pieces(table: SpooledRows) -> list[Source]:
    """Return a source for each piece; it was cut to the rows of a block."""
    starts = accumulate((piece.n_rows for piece in table.pieces), initial=0)
    return [
        _of_one_block(BlockRows(table, start, piece.n_rows, partial(table.read_piece, piece)))
        for start, piece in zip(starts, table.pieces, strict=False)
    ]


def _of_one_block(block: BlockRows) -> Source:
    return Source(block.first_row, len(block), lambda: iter((block,)))


def _of_files(table: Rows, size: int, names: Sequence[str]) -> list[Source]:
    from fastbcubed.sources.files import FileRows

    assert isinstance(table, FileRows)
    width, usual = table.row_bytes(names), size
    least = min(size // 8, int(size * MOST_WIDTH / max(1.0, width)))
    size = max(1, least, int(size * min(1.0, USUAL_WIDTH / max(1.0, width))))
    found = []
    first = 0
    gate = Gate(usual * HELD_WIDTH)
    for group in table.groups():
        if group.n_rows:
            held = {name: group.held([name]) for name in names}
            _require_room(table, held, usual)
            holding = partial(gate.holding, sum(held.values()))
            found.append(_of_group(table, group, first, size, holding))
        first += group.n_rows
    return found


def _require_room(table: Rows, held: dict[str, int], usual: int) -> None:
    """Raise if a group of rows takes more than the limit, of which a usual block has a row for each KiB, allows."""
    most = ROOM + usual * ROOM_WIDTH
    if sum(held.values()) <= most or usual >= BLOCK_ROWS:
        return
    name = max(held, key=lambda name: held[name])
    least = ((sum(held.values()) - ROOM) // ROOM_WIDTH >> 10) + 1
    raise OptionError(
        f"column {name!r} of {table.where} has dictionaries of about {held[name] >> 20} MiB in a row group, which "
        f"are held while it is read. Raise memory_limit to at least {least} MiB, or write the column in smaller row "
        "groups, or as plain text"
    )


def _of_group(
    table: Rows, group: Any, first_row: int, size: int, holding: Callable[[], AbstractContextManager[None]]
) -> Source:
    def read_blocks() -> Iterator[BlockRows]:
        batches: dict[tuple[str, ...], Iterator[list[pa.ChunkedArray]]] = {}
        with holding():
            try:
                yield from blocks_of_group(batches)
            finally:
                batches.clear()  # a block that is kept holds on to no file

    def blocks_of_group(
        batches: dict[tuple[str, ...], Iterator[list[pa.ChunkedArray]]],
    ) -> Iterator[BlockRows]:
        for start in range(0, group.n_rows, size):  # one by one: a damaged file may claim any number of rows
            stop = min(start + size, group.n_rows)

            def read(
                names: Sequence[str], first: bool = start == 0, last: bool = stop == group.n_rows
            ) -> list[pa.ChunkedArray]:
                if tuple(names) not in batches:
                    assert first, "columns that are read in one block are read in all"
                    batches[tuple(names)] = group.read(names, size)
                found = next(batches[tuple(names)])
                if last:
                    next(batches[tuple(names)], None)  # what comes at the end: the file must not have changed
                return found

            yield BlockRows(table, first_row + start, stop - start, read)

    return Source(first_row, group.n_rows, read_blocks)
