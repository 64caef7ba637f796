"""Links, i.e. pairs of items, optionally scored, in any container, read as numbered items."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed.errors import (
    ColumnError,
    EvaluationWarning,
    FastBCubedError,
    LinkError,
    arg,
    first_few,
    quoted,
)
from fastbcubed.inputs import arrow_compute as pc
from fastbcubed.inputs.arrays import (
    Nulls,
    combined,
    from_numpy,
    has_columns,
    is_dataset,
    is_pandas,
    is_sparse,
    join_pieces,
    no_rows,
    plain,
    plain_type,
    refuse_unread,
    storage_of,
    to_arrow,
    to_numpy,
)
from fastbcubed.inputs.file_formats import in_blocks
from fastbcubed.inputs.files import Stream, as_rows, bytes_of_text, open_stream
from fastbcubed.inputs.id_columns import (
    Column,
    as_column,
    check_kinds,
    in_order_of,
    proved_keys,
    seeded_keys,
    text_parts,
)
from fastbcubed.inputs.link_columns import (
    LinkColumns,
    LinkRequest,
    Sources,
    ask_sources,
    both_sources,
    choose_links,
)
from fastbcubed.inputs.tables import (
    BLOCK_ROWS,
    ITEM,
    ColumnName,
    Source,
    column_names,
    column_of,
    float_column,
    is_array,
    is_hugging_face,
    listed,
    listed_paths,
    of_arrow,
    read_columns,
)
from fastbcubed.inputs.verdicts import (
    CODES,
    DIFFERENT,
    LOOKED_AT,
    SAME,
    Apart,
    are_verdicts,
    as_verdicts,
    refuse_verdicts,
)
from fastbcubed.inputs.verdicts import NAMES as VERDICT_NAMES
from fastbcubed.runtime.arguments import is_path, naming_faults_of
from fastbcubed.runtime.key_codes import Numbering
from fastbcubed.runtime.memory_budget import Allowance
from fastbcubed.runtime.threads import Pool, ahead, blocks

#: The widest and narrowest float types.
DOUBLE: np.dtype[Any] = np.dtype(np.float64)
HALF: np.dtype[Any] = np.dtype(np.float16)


class Span(NamedTuple):
    """The smallest and the largest of some scores."""

    least: float
    most: float


class Block(NamedTuple):
    """Consecutive links: number of the first, both items, scores with NaN for null, and the scores' original type.

    `rounded` has the rows of scores that were rounded to float64; `verdicts` are numbers as in `as_verdicts`.
    """

    first_row: int
    left: Column
    right: Column
    scores: NDArray[np.float64] | None = None
    precision: np.dtype[Any] = HALF
    rounded: NDArray[np.int64] | None = None
    verdicts: NDArray[np.int64] | None = None
    span: Span | None = None


def read_blocks(
    source: Source | Stream, columns: LinkColumns, where: str, size: int = BLOCK_ROWS
) -> Iterator[Block]:
    """Yield the links of a table or stream, at most `size` at a time; raise for verdicts in columns not named."""
    # a stream can be read only once, so it is checked here
    doubtful = columns.doubtful if isinstance(source, Stream) else ()
    # Scores that were not requested are read for their range, which shows whether weak links are among those connected.
    unused = (
        columns.scores[0] if columns.score is None and columns.scores and columns.verdict is None else None
    )
    others = [name for name in (columns.score, columns.verdict, unused, *doubtful) if name is not None]
    needed = [*columns.left, *columns.right, *others]
    names, untyped = list(dict.fromkeys(needed)), () if isinstance(source, Stream) else source.untyped
    first_row = 0
    for found in _blocks(source, names, columns.score, size):
        data = dict(zip(names, found, strict=True))
        if doubtful and len(found[0]):
            refuse_verdicts({name: data[name] for name in doubtful}, where)
            doubtful = ()
        ids = columns.items if columns.sources is None else columns.items[1:]
        left, right = (column_of(data, own, ids, where, untyped) for own in (columns.left, columns.right))
        if columns.sources is not None:
            left, right = map(of_source, (left, right), columns.sources)
        scores, precision, rounded = None, HALF, None
        if columns.score is not None:
            values = storage_of(data[columns.score])
            scores = _without_nulls(_numbers(values, f"column {columns.score!r} of {where}", SCORES_ADVICE))
            short = pa.types.is_float16(values.type) or pa.types.is_float32(values.type)
            precision = np.dtype(values.type.to_pandas_dtype()) if short else DOUBLE
            if not pa.types.is_floating(values.type):
                rounded = _rounded_rows(values, scores)
        verdicts = None
        if columns.verdict is not None:
            verdicts = as_verdicts(data[columns.verdict], columns.verdict, where)
        span = span_of(data[unused]) if unused is not None else None
        yield Block(first_row, left, right, scores, precision, rounded, verdicts, span)
        first_row += len(left)


def _ask_of_two_frames(links: Any, columns: LinkColumns, name: str) -> None:
    """Raise if a MultiIndex pairs an id with itself, or two ids in both orders, as only happens with two frames."""
    index: Any = links if is_pandas(links, "MultiIndex") else None
    if is_pandas(links, "Series", "DataFrame"):
        index = links.index
    if not is_pandas(index, "MultiIndex") or index.nlevels != 2:
        return
    if is_pandas(links, "DataFrame") and columns.left[0] in links.columns:
        return
    ids, names = index.get_level_values(0).append(index.get_level_values(1)).factorize()
    left, right = ids[: len(index)], ids[len(index) :]
    there, back = left * len(names) + right, right * len(names) + left
    if twice := np.flatnonzero((left >= 0) & (right >= 0) & np.isin(back, there)).tolist():
        how = "itself" if left[twice[0]] == right[twice[0]] else "another in both orders"
        first = quoted(names[left[twice[:1]]].tolist()[0])
        ask_sources(f"The MultiIndex of {name} pairs id {first} with {how}, like pairs of two frames")


def of_source(column: Column, source: str) -> Column:
    """Return ids preceded by the name of their table."""
    parts = [pa.chunked_array([pa.repeat(source, len(column))]), *column.parts]
    found = Column(["source", *column.names], parts, column.where)
    found.untyped = column.untyped
    return found


def cut_columns(left: Column, right: Column, verdicts: NDArray[np.int64] | None = None) -> Iterator[Block]:
    """Yield the links between corresponding rows of two columns, block by block."""
    for start, stop in blocks(len(left), BLOCK_ROWS):
        own = None if verdicts is None else verdicts[start:stop]
        yield Block(start, left.stretch(start, stop), right.stretch(start, stop), verdicts=own)


def refuse_judged(given: Any, rows: Source, columns: LinkColumns) -> None:
    """Raise ColumnError if the first rows of a column that was not named hold verdicts."""
    if not columns.doubtful:
        return
    if is_pandas(given, "DataFrame"):  # so that only the first rows of these columns are converted
        rows = as_rows(given.iloc[:LOOKED_AT], rows.where) or rows
    found = {}
    for name in columns.doubtful:
        with suppress(FastBCubedError):  # a column of a type that cannot be read does not matter here
            stretch = next(iter(rows.scan(LOOKED_AT, [name])), None)
            if stretch is not None:
                found[name] = next(iter(stretch.blocks())).columns([name])[0]
    refuse_verdicts(found, rows.where)


def _blocks(
    source: Source | Stream, names: list[str], score: str | None, size: int
) -> Iterator[list[pa.ChunkedArray]]:
    """Yield columns block by block, at least one block; tables that cannot be read in blocks are read whole."""
    if isinstance(source, Stream):
        none = no_rows(source.schema).select(names)
        for table in chain(in_blocks(source.batches(names), size), [none]):
            yield table.columns
        return
    if not source.can_be_cut:
        whole = dict(zip(names, source.columns(names), strict=True))
        if score is not None and score in source.untyped:
            texts = whole[score]
            whole[score] = _numbers(
                texts, f"column {quoted(score)} of {source.where}", SCORES_ADVICE, text=True
            )
            _refuse_rounded(texts, whole[score], source.where)
        source = of_arrow(pa.table(whole), source.where)
    for part in source.scan(size, names):
        for block in part.blocks():
            yield block.columns(names)


def span_of(values: pa.ChunkedArray | NDArray[np.float64]) -> Span | None:
    """Return the range of scores; None if there are none or they are not numbers."""
    if isinstance(values, pa.ChunkedArray):
        try:
            values = _without_nulls(float_column(values, "the scores", LinkError, text=True))
        except FastBCubedError:
            return None
    known = values[~np.isnan(values)]
    return Span(float(known.min()), float(known.max())) if known.size else None


def _without_nulls(scores: pa.ChunkedArray) -> NDArray[np.float64]:
    return to_numpy(pc.fill_null(scores, np.nan) if scores.null_count else scores)


#: Advice for a column of scores that are not numbers.
SCORES_ADVICE = f"Name the column of scores with {arg('score', ...)}, or cast it."


def _numbers(values: Any, where: str, advice: str, *, text: bool = False) -> pa.ChunkedArray:
    """Return scores as float64, or raise LinkError with this advice."""
    try:
        return float_column(values, where, LinkError, text=text)
    except LinkError as error:
        raise LinkError(f"{error} {advice}") from error


#: Floats represent all integers up to this one; larger ones may be rounded.
EXACT = 2.0**53


def _rounded_rows(values: pa.ChunkedArray | list[Any], scores: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the rows of integers that were rounded to floats, so that different integers may be equal as scores."""
    rows = np.flatnonzero((np.abs(scores) >= EXACT) & np.isfinite(scores))
    if isinstance(values, pa.ChunkedArray):
        given = values.take(from_numpy(rows)).to_pylist()
    else:
        given = [values[row] for row in rows]
    wrong = [_is_rounded(*each) for each in zip(given, scores[rows].tolist(), strict=True)]
    return rows[np.array(wrong, np.bool_)]


def _is_rounded(value: Any, score: float) -> bool:
    try:
        return int(value) != int(score)
    except (TypeError, ValueError):  # text of a float
        return False


def _refuse_rounded(values: pa.ChunkedArray | list[Any], scores: pa.ChunkedArray, name: str) -> None:
    if (rows := _rounded_rows(values, _without_nulls(scores))).size:
        raise _of_scores(INEXACT, rows.size, len(scores), name, rows.tolist())


#: Pattern in names of distance columns.
DISTANCE = re.compile(r"distance|(^|_)dist($|_)", re.IGNORECASE)


#: What may be wrong with scores, and advice on each.
NO_NUMBER = "null or NaN"
INEXACT = "beyond 2**53, where rounding to float makes different integers equal"
ADVICE = {
    NO_NUMBER: "Give each link a score, or drop these rows.",
    INEXACT: "Make the scores smaller: subtract a constant from all of them, or replace them by their ranks.",
}


def _of_scores(wrong: str, n: int, n_rows: int, name: str, rows: list[int]) -> LinkError:
    return LinkError(
        f"{n} of {n_rows} scores of {name} {_are(n)} {wrong} (first rows: {first_few(rows)}). {ADVICE[wrong]}"
    )


class Faults:
    """Invalid links, collected block by block: null ids, and scores that are missing or were rounded."""

    def __init__(self, name: str) -> None:
        self._name, self._n_rows = name, 0
        self._nulls: list[Nulls] = []
        #: number of affected rows, and the first few, by what is wrong
        self._scores: dict[str, tuple[int, list[int]]] = {}

    def are_in(self, block: Block) -> bool:
        """Record what is wrong in a block, and return whether any block so far was invalid."""
        n = len(block.left)
        for column in (block.left, block.right):
            if (mask := column.null_rows) is not None:
                rows = np.flatnonzero(mask)
                found = Nulls(True, column.where, rows.size, n, rows[:4].tolist())
                self._nulls.append(found.moved(block.first_row))
        if block.scores is not None:
            self._add(NO_NUMBER, np.flatnonzero(np.isnan(block.scores)), block.first_row)
        if block.rounded is not None:
            self._add(INEXACT, block.rounded, block.first_row)
        self._n_rows += n
        return bool(self._nulls or self._scores)

    def _add(self, wrong: str, rows: NDArray[np.int64], first_row: int) -> None:
        if rows.size:
            n, first = self._scores.get(wrong, (0, []))
            self._scores[wrong] = n + rows.size, first + (rows[: 4 - len(first)] + first_row).tolist()

    def refuse(self) -> None:
        """Raise if anything was wrong."""
        if self._nulls:
            raise Nulls.sum(self._nulls, self._n_rows).error()
        for wrong, (n, rows) in self._scores.items():
            raise _of_scores(wrong, n, self._n_rows, self._name, rows)


def warn_if_distances(column: str | None, name: str, *, ascending: bool, stacklevel: int) -> None:
    """Warn if scores are named distances although large scores are treated as strong links."""
    if not ascending and column is not None and DISTANCE.search(column):
        warnings.warn(
            f"Column {column!r} of {name} is named like a distance, but large scores are read as strong "
            f"links. Pass {arg('ascending', True)} if small distances mean strong links.",
            EvaluationWarning,
            stacklevel=stacklevel,
        )


def _are(n: int) -> str:
    return "is" if n == 1 else "are"


def refuse_unknown(items: Column, n_known: int, left: NDArray[Any], right: NDArray[Any], name: str) -> None:
    """Raise LinkError if links have items beyond the first `n_known`, which are the complete list."""
    n = len(items) - n_known
    if n:
        touching = int(np.count_nonzero((left >= n_known) | (right >= n_known)))
        first = items.first_of(np.arange(n_known, n_known + min(n, 4)))
        raise LinkError(
            f"{n} item{' of' if n == 1 else 's of'} {name} {_are(n)} not among the {n_known} items given "
            f"with {arg('items', ...)} (first: {first_few(first)}). They occur in {touching} of "
            f"{left.size} links. Add these items, or drop these links."
        )


def warn_if_no_probabilities(scores: NDArray[np.float64], column: str, name: str) -> None:
    """Warn if scores in a column named as probabilities lie outside [0, 1]."""
    if "probability" not in column.lower():
        return
    strange = scores[(scores < 0) | (scores > 1)]
    if strange.size:
        warnings.warn(
            f"{strange.size} of {scores.size} scores in column {column!r} of {name} {_are(strange.size)} not "
            f"between 0 and 1, as probabilities must be (first: {first_few(strange[:4].tolist())}). If the "
            "column holds match weights, thresholds are match weights, too.",
            EvaluationWarning,
            stacklevel=4,
        )


def as_links(links: Any, name: str) -> Any:
    """Return pairs of items as a table; return tables unchanged.

    dedupe returns an array with the fields "pairs" and "score", or lists of ((left, right), score); recordlinkage
    returns a MultiIndex, or a frame indexed by one.
    """
    links = listed_paths(links)
    if isinstance(links, type) or is_sparse(links):
        refuse_unread(links, name)
    if is_pandas(links, "MultiIndex"):
        return _table([links.get_level_values(level) for level in range(links.nlevels)], name)
    if is_pandas(links, "Series") and is_pandas(links.index, "MultiIndex"):
        return _table([*(links.index.get_level_values(k) for k in range(links.index.nlevels)), links], name)
    if isinstance(links, np.ndarray):
        return _of_array(links, name)
    exports = hasattr(links, "__arrow_c_stream__") or hasattr(links, "__arrow_c_array__")
    if exports or has_columns(links) or is_path(links) or is_dataset(links) or is_hugging_face(links):
        return links
    if isinstance(links, (Mapping, bytes)) or not isinstance(links, Iterable):
        return links
    unordered = isinstance(links, (set, frozenset))  # a set is sorted for the same order in every process
    with naming_faults_of(links):
        listed = sorted(links, key=repr) if unordered else list(links)
    return _of_tuples(listed, name)


def _of_array(links: np.ndarray, name: str) -> pa.Table:
    if links.dtype.names == ("pairs", "score"):
        pairs = links["pairs"]
        return _table([pairs[:, 0], pairs[:, 1], links["score"]], name)
    if links.dtype.names:
        return {field: links[field] for field in links.dtype.names}
    if links.ndim == 2 and links.shape[1] in (2, 3):
        return _table(list(links.T), name)
    if links.ndim == 1 and links.dtype == object:
        return _of_tuples(links.tolist(), name)
    raise ColumnError(
        f"{name}: an array of links has two columns, or three with scores, but its shape is {links.shape}."
    )


def _of_tuples(links: list[Any], name: str) -> pa.Table:
    rows = [_link_parts(link) for link in links]
    wrong = [
        link for link, row in zip(links, rows, strict=True) if row is None or len(row) != len(rows[0] or ())
    ]
    if wrong:
        raise ColumnError(
            f"{name}: like the first, each link must be a tuple of two items, or of two items and a score, "
            f"but {len(wrong)} of {len(links)} are not (first: {first_few(wrong[:4])})."
        )
    return _table(list(zip(*rows, strict=True)) if rows else [(), (), ()], name)


def _link_parts(link: Any) -> tuple[Any, ...] | None:
    """Return the two items of a link, and its score if it has one; None if this is not a link."""
    if not isinstance(link, (tuple, list)) or len(link) not in (2, 3):
        return None
    if len(link) == 2 and isinstance(link[0], (tuple, list)) and isinstance(link[1], (float, np.floating)):
        return (*link[0], link[1]) if len(link[0]) == 2 else None
    return tuple(link)


def _table(columns: list[Any], name: str) -> pa.Table:
    if len(columns) not in (2, 3):
        raise ColumnError(
            f"{name}: a link has two items and perhaps a score, but there are {len(columns)} columns."
        )
    made: dict[str, Any] = {}
    for side, values in zip(("left", "right"), columns, strict=False):
        column = as_column(
            list(values) if isinstance(values, tuple) else values, "item", f"the {side} items of {name}"
        )
        parts = [combined(part) for part in column.parts]
        one = len(parts) == 1
        made[side] = parts[0] if one else pa.StructArray.from_arrays(parts, names=list(column.names))
    if len(columns) == 3:
        third = list(columns[2]) if isinstance(columns[2], tuple) else columns[2]
        if (verdicts := _verdicts_in(third)) is not None:
            made["verdict"] = verdicts
        elif isinstance(third, list):
            made["score"] = _numbers(
                third, f"the scores of {name}", "Give each link a number of the same type."
            )
            _refuse_rounded(third, made["score"], name)
        else:
            made["score"] = pa.array(third)
    return pa.table(made)


def _verdicts_in(values: Any) -> pa.Array | None:
    """Return the third values of links as a column if they are verdicts; None if they are scores."""
    try:
        found = pa.array(values, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return None
    named = isinstance(getattr(values, "name", None), str) and values.name.lower() in VERDICT_NAMES
    return found if are_verdicts("verdict" if named else "", found) else None


#: Bytes per link while reading, with and without scores: two codes and the score, twice while pieces are concatenated;
#: and of the codes while joining.
SCORED, UNSCORED, JOINED = 24, 12, 8


@dataclass(frozen=True, eq=False)
class JoinedLinks:
    """Items, counts and columns of links, without the pairs and scores themselves."""

    #: the distinct items: the complete list if given, in its order, else in order of first appearance
    items: Column
    n_links: int
    columns: LinkColumns  #: the columns that the links were read from
    name: str  #: name of the links in messages
    complete: bool  #: whether the complete list of items was given
    precision: np.dtype[Any] = DOUBLE  #: the original float type of the scores; see `Links.reaches`
    apart: Apart | None = None  #: the pairs judged not to match, which do not connect; None without verdicts
    span: Span | None = None  #: the range of the scores, even if they were not requested; None without scores

    def __len__(self) -> int:
        return self.n_links


@dataclass(frozen=True, eq=False, kw_only=True)
class Links(JoinedLinks):
    """Distinct items and the links between them, as codes of the items."""

    left: NDArray[
        Any
    ]  #: codes of the left item of each link, i.e. positions in `items`; int32 if they fit; shape (n_links,)
    right: NDArray[Any]
    scores: NDArray[np.float64] | None  #: scores without NaN, shape (n_links,); None if not requested

    def reaches(
        self, threshold: float, rows: slice = slice(None), *, ascending: bool = False
    ) -> NDArray[np.bool_]:
        """Return the mask of links, or of some of them, with scores at or above a threshold (for distances, below).

        The threshold is rounded like the scores, so that a 32-bit score of 0.9 reaches 0.9.
        """
        assert self.scores is not None
        limit = as_score(threshold, self.precision)
        scores = self.scores[rows]
        return scores <= limit if ascending else scores >= limit

    def joined(self) -> JoinedLinks:
        """Return the links without pairs and scores, as kept after they have been connected."""
        return JoinedLinks(**{each.name: getattr(self, each.name) for each in fields(JoinedLinks)})


def as_score(threshold: float, precision: np.dtype[Any]) -> float:
    """Return a threshold rounded to the float type of the scores."""
    with np.errstate(over="ignore"):
        return float(precision.type(threshold))


def read_links(
    table: Any,
    asked: LinkRequest,
    *,
    items: Any = None,
    item: ColumnName = ITEM,
    name: str = "the links",
    allowance: Allowance | None = None,
    later: int = 0,
) -> Links:
    """Read links from any source, block by block; ids are converted to codes while reading.

    Parameters and errors are those of `Clustering.from_links`; `asked` has the named columns. An `allowance` limits
    memory: 8 bytes per link, 16 with scores, at least `later` bytes after that, and about 24 per item, 32 for strings
    and composite ids, plus the values.
    """
    given = as_links(table, name)
    stream = open_stream(given)
    rows = rows_of_links(given, name) if stream is None else stream.without_rows(name)
    columns = choose_links(rows, asked)
    if asked.sources is None:
        _ask_of_two_frames(table, columns, name)
    if stream is None:
        refuse_judged(given, rows, columns)
    if not asked.scored and asked.score is None:
        columns = columns._replace(score=None)
    allowance = allowance or Allowance()
    _require_room(rows, allowance, max(later, SCORED if columns.score is not None else UNSCORED), given)
    known = None if items is None else items_column(items, item, columns.items, f"the items of {rows.where}")
    source = rows if stream is None else stream
    parts = read_blocks(source, columns, rows.where, allowance.block_rows(BLOCK_ROWS))
    found = _number(parts, known, columns, rows.where, allowance)
    if found.scores is not None and columns.score is not None:
        warn_if_no_probabilities(found.scores, columns.score, found.name)
    return found


def links_of(
    left: Column,
    right: Column,
    others: Column | None,
    name: str,
    verdicts: Any = None,
    sources: Sources = None,
) -> Links:
    """Return the links between corresponding rows of two columns; `others` has further items."""
    if (both := both_sources(sources)) is not None:
        left, right = map(of_source, (left, right), both)
    if len(left) != len(right):
        raise ColumnError(
            f"{name}: each pair has two items, but there are {len(left)} left and {len(right)} right ones."
        )
    right = in_order_of(left, right, strict=False)
    if others is not None:
        others.refuse_nulls()
        others = in_order_of(left, others, strict=False)
    columns = LinkColumns(list(left.names), list(right.names), None, list(left.names))
    if verdicts is not None:
        if len(verdicts) != len(left):
            raise ColumnError(f"{name}: there are {len(left)} pairs, but {len(verdicts)} verdicts.")
        verdicts = as_verdicts(to_arrow(verdicts, f"the verdicts of {name}"), "verdict", name)
        columns = columns._replace(verdict="verdict")
    return _number(cut_columns(left, right, verdicts), others, columns, name, Allowance(), strict=False)


def _require_room(rows: Source, allowance: Allowance, of_link: int, given: Any) -> None:
    """Raise, before reading, if the links or their text need more memory than allowed."""
    if allowance.limit is None:
        return
    if text := bytes_of_text(given):
        what = f"the text of {rows.where}, which is held as a whole,"
        allowance.require(text, what, ", or write it as Parquet, which is read in blocks")
    else:
        allowance.require(of_link * len(rows), f"the {len(rows):,} links of {rows.where}")


def rows_of_links(source: Any, name: str) -> Source:
    """Return a table of links, or raise ColumnError if this is not one."""
    if isinstance(source, Mapping) and not any(map(is_array, source.values())):
        raise ColumnError(
            f"{name} should be a table of links, or a list of pairs, not a dict of single values. Pass items "
            "and their clusters as the argument before the links."
        )
    rows = as_rows(source, name)
    if rows is None:
        raise ColumnError(
            f"{name} should be a table of links, or a list of pairs, not {type(source).__name__}."
        )
    return rows


def items_column(items: Any, item: ColumnName, names: list[str], where: str) -> Column:
    """Return the complete list of items, given as a column or table; `names` are the links' item columns."""
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
                f"There is no column {missing[0]!r} in {rows.where} ({listed(rows.names)}), which should "
                f"list all items. Name the right column with {arg('item', ...)}.{rows.hint}"
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
    """Read links as codes of their items, numbered by appearance after the known ones; `strict` forbids others."""
    numbering, faults, values = Numbering(), Faults(name), list[list[pa.ChunkedArray]]()
    found: list[list[NDArray[Any]]] = [[], [], []]  # left, right, scores
    apart: list[list[NDArray[Any]]] = [[], []]  # left and right codes of pairs judged not to match
    n_unsure, spans = 0, list[Span]()
    first = next(parts)
    texts = text_parts([each for each in (known, first.left, first.right) if each is not None])
    known, precision = known and known.with_text(texts), HALF
    like = known or first.left.with_text(texts)
    with Pool() as pool:
        if known is not None:
            for start, stop in blocks(len(known), BLOCK_ROWS):
                stretch = known.stretch(start, stop)
                _, firsts = numbering.add(*_words(stretch, pool))
                values.append(list(map(plain, stretch.rows_of(firsts))))
        n_known, n_links = numbering.n, 0
        for block in ahead(chain([first], parts)):
            block = block._replace(left=block.left.with_text(texts), right=block.right.with_text(texts))
            if faults.are_in(block):
                continue
            check_kinds([like, block.left, block.right])
            n_links += len(block.left)
            more = numbering.growth(2 * len(block.left)) + JOINED * n_links
            allowance.require(more, f"the first {n_links:,} links of {name}, with {numbering.n:,} items,")
            codes, firsts = numbering.add(*_interleaved(_words(block.left, pool), _words(block.right, pool)))
            values.append(_take_interleaved(block, firsts))
            spans += [block.span] if block.span is not None else []
            same: Any = slice(None)
            if (verdicts := block.verdicts) is not None:
                n_unsure += int(np.count_nonzero(verdicts < 0))
                different = verdicts == CODES[DIFFERENT]
                for pieces, codes_of in zip(apart, (codes[::2], codes[1::2]), strict=True):
                    pieces.append(codes_of[different])
                same = verdicts == CODES[SAME]
            for pieces, piece in zip(found, (codes[::2], codes[1::2], block.scores), strict=True):
                if piece is not None:
                    pieces.append(piece[same].copy())
            precision = np.promote_types(precision, block.precision)
    faults.refuse()
    joined = [join_pieces(pieces, like.where) for pieces in zip(*values, strict=True)]
    items = Column(like.names, joined, f"the items of {name}")
    items.untyped = like.untyped
    left, right = map(_concatenated, found[:2])
    scores = _concatenated(found[2]) if found[2] else None
    kept = None
    if columns.verdict is not None:
        kept = Apart(_concatenated(apart[0]), _concatenated(apart[1]), n_unsure)
    span = span_of(scores) if scores is not None else None
    if spans:
        span = Span(min(each.least for each in spans), max(each.most for each in spans))
    links = Links(
        items, left.size, columns, name, known is not None, precision, kept, span,
        left=left, right=right, scores=scores,
    )  # fmt: skip
    if known is not None and strict:
        refuse_unknown(items, n_known, left, right, name)
    return links


def _concatenated(pieces: list[NDArray[Any]]) -> NDArray[Any]:
    """Concatenate arrays and empty the list, which frees them."""
    whole = np.concatenate(pieces)
    pieces.clear()
    return whole


def _words(column: Column, pool: Pool) -> tuple[NDArray[np.int64], NDArray[np.uint64] | None]:
    """Return keys, and words that distinguish different values with equal keys; None if keys are unique."""
    if column.kind != "integer":
        return proved_keys(column, 0, pool)
    keys, _ = seeded_keys(column, None, pool)
    if pa.types.is_uint64(plain_type(column.plain[0].type)) and (keys < 0).any():
        return keys, (keys < 0).astype(np.uint64)  # distinguishes integers from 2**63 on from negative ones
    return keys, None


def _interleaved(
    left: tuple[NDArray[np.int64], NDArray[np.uint64] | None],
    right: tuple[NDArray[np.int64], NDArray[np.uint64] | None],
) -> tuple[NDArray[np.int64], NDArray[np.uint64] | None]:
    keys, proofs = np.empty(2 * left[0].size, np.int64), None
    keys[::2], keys[1::2] = left[0], right[0]
    if left[1] is not None or right[1] is not None:
        proofs = np.zeros(keys.size, np.uint64)
        for side, words in enumerate((left[1], right[1])):
            if words is not None:
                proofs[side::2] = words
    return keys, proofs


def _take_interleaved(block: Block, places: NDArray[np.int64]) -> list[pa.ChunkedArray]:
    """Return the items at these places in the sequence of left and right items in turn, part by part."""
    rows, on_left = places >> 1, places & 1 == 0
    sides = block.left.rows_of(rows[on_left]), block.right.rows_of(rows[~on_left])
    order = np.empty(places.size, np.int64)
    order[on_left] = np.arange(len(sides[0][0]))
    order[~on_left] = np.arange(len(sides[1][0])) + len(sides[0][0])
    joined = (join_pieces([plain(a), plain(b)], block.left.where) for a, b in zip(*sides, strict=True))
    return [pa.chunked_array([combined(values).take(from_numpy(order))]) for values in joined]
