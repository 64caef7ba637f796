"""Links, which are pairs of items, perhaps with a score → distinct items, and the codes of both items of each link."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed.clusterings.link_blocks import DOUBLE, HALF, Block, cut_columns, read_blocks
from fastbcubed.clusterings.link_faults import Faults, refuse_unknown, warn_if_no_probabilities
from fastbcubed.clusterings.link_tables import as_links
from fastbcubed.errors import ColumnError
from fastbcubed.runtime.allowance import Allowance
from fastbcubed.runtime.numbering import Numbering
from fastbcubed.runtime.pool import Pool, ahead, blocks
from fastbcubed.sources.arrays import from_numpy, join_pieces, no_rows, plain_type
from fastbcubed.sources.blocks import BLOCK_ROWS
from fastbcubed.sources.columns import Column, as_column
from fastbcubed.sources.keys import check_kinds, proved_keys, seeded_keys
from fastbcubed.sources.link_columns import LinkColumns, choose_links
from fastbcubed.sources.open import as_rows
from fastbcubed.sources.part_names import in_order_of
from fastbcubed.sources.readers import open_stream
from fastbcubed.sources.selection import combined, plain
from fastbcubed.sources.tables import (
    ArrowRows,
    ColumnName,
    Rows,
    column_names,
    is_array,
    listed,
    read_columns,
)
from fastbcubed.sources.text_size import bytes_of_text

#: Bytes of a link while it is read: two codes, perhaps a score, and either again while all are joined.
SCORED, UNSCORED, JOINED = 24, 12, 8


@dataclass(frozen=True, eq=False)
class Links:
    """Items, and pairs of them that are linked.

    Attributes
    ----------
    items : Column
        The distinct items: those that were given as all there are, in their order, else those of the links, in the
        order in which they first appear, link by link.
    left, right : numpy.ndarray of shape (n_links,)
        Codes of the two items of each link, int32 where they fit, else int64: places in `items`.
    scores : numpy.ndarray of shape (n_links,) or None
        float64, none of them NaN; None if they were not asked for.
    columns : LinkColumns
        The columns that were read.
    name : str
        What the links are called in messages.
    complete : bool
        Whether the items were given, so that no item is missing.
    precision : numpy.dtype
        The type of float that scores came as; see `reaches`.
    """

    items: Column
    left: NDArray[Any]
    right: NDArray[Any]
    scores: NDArray[np.float64] | None
    columns: LinkColumns
    name: str
    complete: bool
    precision: np.dtype[Any] = DOUBLE

    def __len__(self) -> int:
        return self.left.size

    def reaches(
        self, threshold: float, rows: slice = slice(None), *, ascending: bool = False
    ) -> NDArray[np.bool_]:
        """Return which links, or some of them, have a score of at least a threshold; of at most, if it is a distance.

        A threshold is rounded as scores are, so that 0.9 of 32 bits reaches 0.9.
        """
        assert self.scores is not None
        limit = as_score(threshold, self.precision)
        scores = self.scores[rows]
        return scores <= limit if ascending else scores >= limit

    def joined(self) -> JoinedLinks:
        """Return what is known of the links beside their pairs and scores."""
        return JoinedLinks(self.items, len(self), self.columns, self.name, self.complete, self.precision)


@dataclass(frozen=True, eq=False)
class JoinedLinks:
    """What is left of links that have been joined, pairs and scores being gone: other attributes of `Links`."""

    items: Column
    n_links: int
    columns: LinkColumns
    name: str
    complete: bool
    precision: np.dtype[Any] = DOUBLE

    def __len__(self) -> int:
        return self.n_links


def as_score(threshold: float, precision: np.dtype[Any]) -> float:
    """Return a threshold, rounded as scores of a type of float are."""
    with np.errstate(over="ignore"):
        return float(precision.type(threshold))


def read_links(
    table: Any,
    left: ColumnName | None = None,
    right: ColumnName | None = None,
    *,
    score: str | None = None,
    scored: bool = False,
    items: Any = None,
    item: ColumnName = "item",
    name: str = "the links",
    allowance: Allowance | None = None,
    later: int = 0,
) -> Links:
    """Read links, whatever holds them, block by block; ids become codes as they come.

    Parameters
    ----------
    table : path, URI, data frame, Arrow stream exporter, data set, relation, dict of columns, or list of tuples
        A row per link. Tuples are (left, right), (left, right, score) or ((left, right), score); an item that is a
        tuple itself is a composite id. Links may be repeated, reversed, or from an item to itself.
    left, right : str or list of str, optional
        The columns of the two items; a list makes a composite id. Those of known tools are recognised.
    score : str, optional
        The column of scores.
    scored : bool
        Whether scores are needed: they are looked for if no column is named. Else they are read if one is named.
    items : table, path, Column, or array-like, optional
        All items that there are; one that is listed twice counts once.
    item : str or list of str
        Its column, or columns, if that is a table with several.
    name : str
        What the links are called in messages; a path speaks for itself.
    allowance : Allowance, optional
        The memory that may be taken.
    later : int
        Bytes that each link takes later on, at least.

    Raises
    ------
    NullError
        If an id is null.
    LinkError
        If a score is null or NaN, or a link has an item that is not among `items`.
    OptionError
        If the links take more memory than may be taken.

    Warns
    -----
    EvaluationWarning
        If scores in a column of probabilities are not.

    Notes
    -----
    Links take 8 bytes each, 16 with scores; items about 24, texts and composite ids 32, besides their values.
    """
    given = as_links(table, name)
    stream = open_stream(given)
    rows = _rows(given, name) if stream is None else ArrowRows(no_rows(stream.schema), name)
    columns = choose_links(rows, left, right, score, scored=scored)
    if not scored and score is None:
        columns = columns._replace(score=None)
    allowance = allowance or Allowance()
    _require_room(rows, allowance, max(later, SCORED if columns.score is not None else UNSCORED), given)
    known = None if items is None else items_column(items, item, columns.items, f"the items of {rows.where}")
    source = rows if stream is None else stream
    parts = read_blocks(source, columns, rows.where, allowance.block_rows(BLOCK_ROWS))
    found = _number(parts, known, columns, rows.where, allowance)
    if found.scores is not None and columns.score is not None:
        warn_if_no_probabilities(found.scores, columns.score, found.name, stacklevel=4)
    return found


def links_of(left: Column, right: Column, others: Column | None, name: str) -> Links:
    """Return the links between corresponding rows of two columns; `others` are further items."""
    if len(left) != len(right):
        raise ColumnError(
            f"{name}: each pair has two items, but there are {len(left)} left and {len(right)} right ones."
        )
    right = in_order_of(left, right, strict=False)
    if others is not None:
        others.refuse_nulls()
        others = in_order_of(left, others, strict=False)
    columns = LinkColumns(list(left.names), list(right.names), None, list(left.names))
    return _number(cut_columns(left, right), others, columns, name, Allowance(), strict=False)


def _require_room(rows: Rows, allowance: Allowance, of_link: int, given: Any) -> None:
    """Raise, before they are read, if links whose number is known, or the text that they are, take too much."""
    if allowance.limit is None:
        return
    if text := bytes_of_text(given):
        what = f"the text of {rows.where}, which is held as a whole,"
        allowance.require(text, what, ", or write it as Parquet, which is read in blocks")
    else:
        allowance.require(of_link * len(rows), f"the {len(rows):,} links of {rows.where}")


def _rows(source: Any, name: str) -> Rows:
    if isinstance(source, Mapping) and not any(map(is_array, source.values())):
        raise ColumnError(
            f"{name} should be a table of links, or a list of pairs, not a dict of single values. Items and their "
            "clusters are given before links."
        )
    rows = as_rows(source, name)
    if rows is None:
        raise ColumnError(
            f"{name} should be a table of links, or a list of pairs, not {type(source).__name__}."
        )
    return rows


def items_column(items: Any, item: ColumnName, names: list[str], where: str) -> Column:
    """Return all items that there are: a column, or one of a table; `names` is what links call an item."""
    rows = None if isinstance(items, Column) else as_rows(items, where)
    if rows is None:
        column = as_column(items, names[0] if len(names) == 1 else "item", where)
    else:
        asked = column_names(item, "item")
        if asked == ["item"] and "item" not in rows.names:
            asked = (
                names if set(names) <= set(rows.names) else list(rows.names)[: len(rows.names) == 1] or asked
            )
        if missing := [name for name in asked if name not in rows.names]:
            raise ColumnError(
                f"There is no column {missing[0]!r} in {rows.where} ({listed(rows.names)}), which should have all "
                f"items. Name the right one with item=.{rows.hint}"
            )
        column = read_columns(rows, [asked])[0][0]
    column.refuse_nulls()
    return column


def _number(
    parts: Iterator[Block],
    known: Column | None,
    columns: LinkColumns,
    name: str,
    allowance: Allowance,
    *,
    strict: bool = True,
) -> Links:
    """Give items codes as they come, those that are known first; if `strict` there are no others."""
    numbering, faults, values = Numbering(), Faults(name), list[list[pa.ChunkedArray]]()
    found: list[list[NDArray[Any]]] = [[], [], []]  # left, right, scores
    like, precision = known, HALF
    with Pool() as pool:
        if known is not None:
            for start, stop in blocks(len(known), BLOCK_ROWS):
                stretch = known.stretch(start, stop)
                _, firsts = numbering.add(*_words(stretch, pool))
                values.append(list(map(plain, stretch.rows_of(firsts))))
        n_known, n_links = numbering.n, 0
        for block in ahead(parts):
            like = like or block.left
            if faults.are_in(block):
                continue
            check_kinds([like, block.left, block.right])
            n_links += len(block.left)
            more = numbering.growth(2 * len(block.left)) + JOINED * n_links
            allowance.require(more, f"the first {n_links:,} links of {name}, with {numbering.n:,} items,")
            codes, firsts = numbering.add(*_interleaved(_words(block.left, pool), _words(block.right, pool)))
            values.append(_taken(block, firsts))
            for pieces, piece in zip(found, (codes[::2], codes[1::2], block.scores), strict=True):
                if piece is not None:
                    pieces.append(piece.copy())
            precision = np.promote_types(precision, block.precision)
    assert like is not None
    faults.refuse()
    joined = [_joined(pieces, like.where) for pieces in zip(*values, strict=True)]
    items = Column(like.names, joined, f"the items of {name}")
    left, right = map(_in_one, found[:2])
    scores = _in_one(found[2]) if found[2] else None
    links = Links(items, left, right, scores, columns, name, known is not None, precision)
    if known is not None and strict:
        refuse_unknown(items, n_known, left, right, name)
    return links


def _in_one(pieces: list[NDArray[Any]]) -> NDArray[Any]:
    """Put arrays one after the other, and let go of them."""
    whole = np.concatenate(pieces)
    pieces.clear()
    return whole


def _words(column: Column, pool: Pool) -> tuple[NDArray[np.int64], NDArray[np.uint64] | None]:
    """Return keys, and the words that tell apart values with equal keys, if there may be any."""
    if column.kind != "integer":
        return proved_keys(column, 0, pool)
    keys, _ = seeded_keys(column, None, pool)
    if pa.types.is_uint64(plain_type(column.plain[0].type)) and (keys < 0).any():
        return keys, (keys < 0).astype(np.uint64)  # 2**63 and more, which are no negative integers
    return keys, None


def _interleaved(
    left: tuple[NDArray[np.int64], NDArray[np.uint64] | None],
    right: tuple[NDArray[np.int64], NDArray[np.uint64] | None],
) -> tuple[NDArray[np.int64], NDArray[np.uint64] | None]:
    """Return the words of both items of the first link, then of the second, and so on."""
    keys, proofs = np.empty(2 * left[0].size, np.int64), None
    keys[::2], keys[1::2] = left[0], right[0]
    if left[1] is not None or right[1] is not None:
        proofs = np.zeros(keys.size, np.uint64)
        for side, words in enumerate((left[1], right[1])):
            if words is not None:
                proofs[side::2] = words
    return keys, proofs


def _taken(block: Block, places: NDArray[np.int64]) -> list[pa.ChunkedArray]:
    """Return the items at places where left and right ones take turns, part by part."""
    rows, on_left = places >> 1, places & 1 == 0
    sides = block.left.rows_of(rows[on_left]), block.right.rows_of(rows[~on_left])
    order = np.empty(places.size, np.int64)
    order[on_left] = np.arange(len(sides[0][0]))
    order[~on_left] = np.arange(len(sides[1][0])) + len(sides[0][0])
    joined = (_joined((plain(a), plain(b)), block.left.where) for a, b in zip(*sides, strict=True))
    return [pa.chunked_array([combined(values).take(from_numpy(order))]) for values in joined]


def _joined(pieces: Sequence[pa.ChunkedArray], where: str) -> pa.ChunkedArray:
    """Put values one after the other; pieces without any may be of another type."""
    return join_pieces([piece for piece in pieces if len(piece)] or [pieces[0]], where)
