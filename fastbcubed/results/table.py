"""Tables of results, in memory or read from files on demand."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed.align.attributes import readable
from fastbcubed.cells.contingency import SIDES
from fastbcubed.errors import MetricError, MissingPackageError, OptionError, Word, arg, quoted
from fastbcubed.inputs import arrow_compute as pc
from fastbcubed.inputs.arrays import as_floats, combined, from_numpy, storage_of, to_numpy, values_of_codes
from fastbcubed.inputs.id_order import order_of_words, words_of
from fastbcubed.metrics.bcubed import LOSSES
from fastbcubed.metrics.metric import Metric
from fastbcubed.render.document import Grid
from fastbcubed.render.html import escaped, html_table
from fastbcubed.render.number_formats import amount, count, label, score_text
from fastbcubed.render.text import WIDTH, aligned, fitted
from fastbcubed.runtime.arguments import is_one_of, limit_of
from fastbcubed.runtime.object_attributes import documented

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

#: Number of rows that a table displays: all up to FEW, otherwise the first FIRST.
FEW, FIRST = 20, 10
#: Ranks of columns that are left out before the last columns if a line is too narrow.
RANKS = {"exact": 4, "weight": 3}
#: Columns of sums of weights, formatted differently from scores.
AMOUNTS = ("weight", "tp", "fp", "fn", "tn")


class Table:
    """A listing: an Arrow table that prints well in a terminal and in a notebook.

    Anything that accepts an Arrow stream accepts a `Table` (``pa.table(t)``, ``pl.DataFrame(t)``,
    ``duckdb.sql("from t")``). A `Table` has the methods, attributes and columns of `pyarrow.Table`; methods that return
    a table return a `Table`.

    Parameters
    ----------
    arrow : pyarrow.Table
        The table to list.

    Raises
    ------
    OptionError
        If `arrow` is not a pyarrow table.

    Examples
    --------
    >>> import fastbcubed as fb
    >>> ev = fb.evaluate([0, 0, 1, 1], [5, 5, 5, 6], metrics=["precision", "recall"])
    >>> ev.clusters("pred")
    cluster  n_items  n_parts   outcome  precision_loss  recall_loss  precision
    5              3        2     mixed         0.33333      0.12500    0.55556
    6              1        1  fragment               0      0.12500          1
    <BLANKLINE>
    2 rows; 3 more columns: weight, exact, recall
    >>> ev.clusters("pred")["n_items"].to_pylist()
    [3, 1]
    """

    __slots__ = ("_arrow",)

    #: whether rows are read from a file on demand
    is_large = False

    def __init__(self, arrow: pa.Table) -> None:
        if not isinstance(arrow, pa.Table):
            raise OptionError(f"arrow must be a pyarrow table, not {quoted(arrow)}")
        self._arrow = arrow

    def to_arrow(self) -> pa.Table:
        """Return the pyarrow table, for functions that require one, such as `pyarrow.parquet.write_table`.

        Returns
        -------
        pyarrow.Table

        Examples
        --------
        >>> import fastbcubed as fb
        >>> fb.evaluate([0, 0, 1], [0, 1, 1]).clusters("pred").to_arrow().num_rows
        2
        """
        return self._arrow

    def to_pandas(self, **options: Any) -> pd.DataFrame:
        """Return a data frame, in which integers with nulls remain integers, with pandas' nullable types.

        Parameters
        ----------
        **options
            Options of `pyarrow.Table.to_pandas`.

        Returns
        -------
        pandas.DataFrame

        Examples
        --------
        >>> import pyarrow as pa
        >>> Table(pa.table({"n": [2**60 + 1, None]})).to_pandas()["n"].tolist()
        [1152921504606846977, <NA>]
        """
        frame = self._arrow
        for at, column in enumerate(frame.columns):
            if _repeats_values(column):  # which categoricals of pandas do not allow
                plain = values_of_codes(column).dictionary_encode()
                frame = frame.set_column(at, frame.field(at).with_type(plain.type), plain)
        frame = frame.to_pandas(**options)
        if "types_mapper" not in options:
            for field in self._arrow.schema:
                column = self._arrow[field.name]
                if pa.types.is_integer(field.type) and column.null_count:
                    frame[field.name] = column.to_pandas(types_mapper=_nullable).array
        return frame

    def to_polars(self) -> pl.DataFrame:
        """Return a Polars data frame, without copying the data if Polars allows it.

        Returns
        -------
        polars.DataFrame

        Raises
        ------
        MissingPackageError
            If Polars is not installed.
        """
        try:
            import polars
        except ImportError:
            raise MissingPackageError("to_polars() needs Polars: pip install polars") from None
        return polars.DataFrame(self._arrow)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._arrow.__arrow_c_stream__(requested_schema)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_arrow":
            raise AttributeError(name)
        return _handed_on(getattr(self._arrow, name))

    def __getitem__(self, key: Any) -> Any:
        found = self._arrow[key]
        return Table(found) if isinstance(found, pa.Table) else found

    def __len__(self) -> int:
        return int(self._arrow.num_rows)

    def __eq__(self, other: object) -> bool:
        mine = other._arrow if isinstance(other, Table) else other
        return bool(isinstance(mine, pa.Table) and self._arrow.equals(mine))

    __hash__ = None  # type: ignore[assignment]  # as for any table

    def __dir__(self) -> list[str]:
        return documented(self, dir(self._arrow))

    def __reduce__(self) -> tuple[type[Table], tuple[pa.Table]]:
        return Table, (self._arrow,)

    def _batches(self, names: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Yield all rows in consecutive parts, with some columns or all; this class yields a single part."""
        yield self._arrow if names is None else self._arrow.select(names)

    def _first(self, metrics: Iterable[Metric], order_by: str | None, limit: int) -> pa.Table:
        """Return rows that include the first `limit` in this order."""
        return self._arrow

    def _changed(self, change: Callable[[pa.Table], pa.Table]) -> Table:
        """Return the table with its rows converted by `change`, which may be applied to parts of it."""
        return Table(change(self._arrow))

    def __repr__(self) -> str:
        grid, left_out = fitted(_grid(self._arrow), WIDTH)
        return f"{aligned(grid)}\n\n{_extent(self._arrow, len(grid.rows), left_out)}"

    def _repr_html_(self) -> str:
        grid = _grid(self._arrow)
        return f"<div>{html_table(grid)}<p>{escaped(_extent(self._arrow, len(grid.rows), ()))}</p></div>"


def refuse_table_verb(name: str, what: str, tables: str) -> None:
    """Raise AttributeError for a method that only tables have: `what` is not a table, but has the `tables`."""
    if hasattr(Table, name) or hasattr(pa.Table, name):
        raise AttributeError(f"{what} is not a table and has no {name!r}; its tables do, such as {tables}")


def _handed_on(thing: Any) -> Any:
    """Return an attribute of the Arrow table, with resulting tables wrapped as `Table`."""
    if isinstance(thing, pa.Table):
        return Table(thing)
    if not callable(thing):
        return thing

    @functools.wraps(thing)
    def method(*args: Any, **options: Any) -> Any:
        found = thing(*map(_arrow_of, args), **{name: _arrow_of(value) for name, value in options.items()})
        return Table(found) if isinstance(found, pa.Table) else found

    return method


def _arrow_of(thing: Any) -> Any:
    return thing.to_arrow() if isinstance(thing, Table) else thing


def _nullable(kind: pa.DataType) -> Any:
    """Return the nullable pandas type for integers."""
    import pandas as pd

    return pd.api.types.pandas_dtype(str(kind).replace("i", "I").replace("uI", "UI"))


def _grid(table: pa.Table, few: int = FEW) -> Grid:
    """Return the first rows as text; if a line is too narrow, the last columns are left out first."""
    shown = table if table.num_rows <= few else table.slice(0, FIRST)
    texts = [
        [_text(name, column.type)(value) for value in readable(column).to_pylist()]
        for name, column in zip(shown.column_names, shown.columns, strict=True)
    ]
    ranks = [RANKS.get(name, 1) if at else 0 for at, name in enumerate(shown.column_names)]
    rows, names = list(zip(*texts, strict=True)), _names_of_rows(table.schema)
    return Grid([*map(label, shown.column_names)], rows, names, ranks=ranks)


def _names_of_rows(schema: pa.Schema) -> int:
    """Return how many leading columns identify a row; figures begin with n_items, weight or the first number."""
    for at, column in enumerate(schema):
        if column.name in ("n_clusters", "n_items", *AMOUNTS) or pa.types.is_floating(column.type):
            return at
    return len(schema)


def _text(name: str, kind: pa.DataType) -> Callable[[Any], str]:
    """Return a function that formats the values of a column."""
    if pa.types.is_boolean(kind):
        return lambda value: "" if value is None else "yes" if value else "no"
    if pa.types.is_floating(kind):
        write = amount if name in AMOUNTS else score_text
        return lambda value: "" if value is None else write(value)
    if pa.types.is_integer(kind) and name.startswith("n_"):
        return lambda value: "" if value is None else count(value)
    return label


def _extent(table: pa.Table, shown: int, left_out: Sequence[str]) -> str:
    """Return text on the size of a table, and on how much of it is not shown."""
    rows = f"{count(table.num_rows)} row{'' if table.num_rows == 1 else 's'}"
    if shown < table.num_rows:
        rows = f"{rows}, the first {count(shown)} shown"
    if not left_out:
        return rows
    named = ", ".join(map(label, left_out[:6])) + (", …" if len(left_out) > 6 else "")
    return f"{rows}; {count(len(left_out))} more column{'' if len(left_out) == 1 else 's'}: {named}"


def _repeats_values(column: pa.ChunkedArray) -> bool:
    if not pa.types.is_dictionary(column.type):
        return False
    return any(len(chunk.dictionary.unique()) < len(chunk.dictionary) for chunk in column.chunks)


#: Name of the order by the sum of both losses, largest first.
LOSS = "loss"
#: Unwanted rows above which selecting is faster than sorting; any number, if at most a few rows are wanted.
MANY, FEW_WANTED = 1 << 16, 1000
#: Rows above which sorting by words is faster than by Arrow.
WORTH_WORDS = 1 << 12
#: Maximum number of rows held that tie with the last wanted one; beyond it, names decide.
TIES = 1 << 16
#: A column of numbers, the column of names for these, and a function from numbers to names; None if the table has the
#: names.
NamedBy = tuple[str, str, Callable[[NDArray[np.int64]], pa.Array] | None]


class Listing(NamedTuple):
    """What a listing of clusters consists of: its columns of scores, its order, and which clusters it has."""

    metrics: list[Metric]
    beta: float
    order_by: str
    limit: int
    named_by: NamedBy
    outcome: str | None = None


def listed(
    table: pa.Table | Table,
    metrics: Iterable[Metric],
    order_by: str | None,
    limit: int | None,
    *,
    named_by: NamedBy | None = None,
) -> Table:
    """Return the rows of a table in order, or the first `limit` of them."""
    return Table(_in_order(table, metrics, order_by, limit, named_by))


def _in_order(
    table: pa.Table | Table,
    metrics: Iterable[Metric],
    order_by: str | None,
    limit: int | None,
    named_by: NamedBy | None,
) -> pa.Table:
    limit = require_limit(limit)
    if isinstance(table, Table):
        if limit is not None and order_by is not None:
            require_known(order_by, table.column_names)
        table = table.to_arrow() if limit is None else table._first(metrics, order_by, limit)
    n = table.num_rows if limit is None else min(limit, table.num_rows)
    if order_by is None:
        return _with_names(table.slice(0, n), named_by)
    known = [name for name in table.column_names if named_by is None or name != named_by[0]]
    require_known(order_by, known)
    rank = rank_of(table, order_by, metrics)
    lightest_last = -to_numpy(table["weight"])
    rows = first_rows(rank, lightest_last, n)
    found = _with_names(table.take(from_numpy(rows)), named_by)
    names = [] if named_by is None else [found[named_by[1]]]
    return found.take(order_of([rank[rows], lightest_last[rows]], names, n))


def order_of(figures: Sequence[NDArray[Any]], names: Sequence[Any] = (), n: int | None = None) -> pa.Array:
    """Return the rows in ascending order of figures, then of ids, ties in row order; `n` limits their number."""
    keys: dict[str, Any] = {f"figure {k}": from_numpy(values) for k, values in enumerate(figures)}
    for k, ids in enumerate(names):
        column = ids if isinstance(ids, pa.ChunkedArray) else pa.chunked_array([ids])
        keys |= {f"{k} {part}": each for part, each in sortable(column).items()}
    table = pa.table(keys)
    if n is None or table.num_rows <= n + (MANY if n > FEW_WANTED else 0):
        if table.num_rows >= WORTH_WORDS and not any(column.null_count for column in table.columns):
            words = [word for column in table.columns for word in words_of(combined(column))]
            return from_numpy(order_of_words(words, table.num_rows)[:n])
        return pc.sort_indices(table, sort_keys=[(name, "ascending") for name in keys])[:n]
    table = table.append_column("row", from_numpy(np.arange(table.num_rows)))
    return pc.select_k_unstable(table, n, [(name, "ascending") for name in table.column_names])


def require_limit(limit: Any) -> int | None:
    """Return the number of rows to list, None for all; raise OptionError if it is not a number."""
    return None if limit is None else limit_of(limit)


def require_known(order_by: str, known: Collection[str]) -> None:
    """Raise MetricError for an unknown column to order by; with losses, their sum is also known."""
    known = [*known, LOSS] if set(LOSSES) <= set(known) else list(known)
    if not is_one_of(order_by, known):
        raise MetricError(
            f"cannot order by {quoted(order_by)}; there are {', '.join(f'{Word(each)}' for each in known)}. "
            f"Name a score in {arg('metrics', ...)} to have it in the tables"
        )


class Top:
    """Collects the rows of a table that `listed` may list first, if the table comes in parts.

    Rows that tie with the last wanted one are held; if they become more than `ties`, their names decide.
    """

    def __init__(
        self, metrics: Iterable[Metric], order_by: str, limit: int, named_by: NamedBy | None, ties: int = TIES
    ) -> None:
        self._metrics, self._order_by, self.limit = list(metrics), order_by, limit_of(limit)
        self._named_by, self._ties = named_by, ties
        self._worst = np.inf  # rank of the last row held, once there are enough rows
        self.found: pa.Table | None = None

    def add(self, part: pa.Table) -> None:
        """Add the next rows."""
        if np.isfinite(self._worst):
            part = part.filter(pa.array(self._rank(part) <= self._worst))
        found = part if self.found is None else pa.concat_tables([self.found, part])
        rows = first_rows(self._rank(found), -to_numpy(found["weight"]), min(self.limit, found.num_rows))
        found = found.take(from_numpy(np.sort(rows)))
        if found.num_rows > self.limit + self._ties:
            found = self._without_last_ties(found) if self._named_by is None else self._in_order(found)
        self.found = found.combine_chunks()
        if self.found.num_rows >= self.limit > 0:
            self._worst = float(self._rank(self.found).max())

    def in_order(self) -> pa.Table:
        """Return the first `limit` rows, in order."""
        assert self.found is not None
        return self._in_order(self.found)

    def _without_last_ties(self, found: pa.Table) -> pa.Table:
        """Return the first `limit` rows, with ties decided by row order."""
        rows = order_of([self._rank(found), -to_numpy(found["weight"])], n=self.limit)
        return found.take(from_numpy(np.sort(to_numpy(rows))))

    def _in_order(self, found: pa.Table) -> pa.Table:
        listing = _in_order(found, self._metrics, self._order_by, self.limit, self._named_by)
        return listing.select(found.column_names)

    def _rank(self, table: pa.Table) -> NDArray[np.float64]:
        return rank_of(table, self._order_by, self._metrics)


def best(
    batches: Iterable[pa.Table],
    metrics: Iterable[Metric],
    order_by: str,
    limit: int,
    named_by: NamedBy | None = None,
    ties: int = TIES,
) -> pa.Table:
    """Return rows that include the first `limit` in this order, of a table that is read in batches."""
    top = Top(metrics, order_by, limit, named_by, ties)
    for batch in batches:
        top.add(batch)
    assert top.found is not None
    return top.found


def is_higher_better(name: str, metrics: Iterable[Metric]) -> bool:
    """Return whether larger values of a column are better; false for losses, sizes and columns that are not scores."""
    return any(metric.best == "higher" for metric in metrics if name in (metric.name, metric.item_name))


def rank_of(table: pa.Table, name: str, metrics: Iterable[Metric]) -> NDArray[np.float64]:
    """Return numbers that ascend from worst to best, with NaN last."""
    ascends = is_higher_better(name, metrics)
    column = pc.add(*(table[loss] for loss in LOSSES)) if name == LOSS else table[name]
    try:
        rank = to_numpy(_as_numbers(column))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise not_ordered(name) from None
    rank = rank if ascends else -rank
    return np.where(np.isnan(rank), np.inf, rank)


def not_ordered(name: str) -> OptionError:
    """Return the error for a column whose values have no order from worst to best."""
    return OptionError(f"cannot order by {name!r}, which is neither a number nor a time")


def _as_numbers(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return numbers, dates, times or durations as float64, with null as NaN."""
    column = storage_of(column)
    if pa.types.is_dictionary(column.type):
        return _as_numbers(values_of_codes(column))
    # casting text would accept digits
    if pa.types.is_large_string(column.type) or pa.types.is_string(column.type):
        raise pa.ArrowInvalid(str(column.type))
    if pa.types.is_temporal(column.type):
        column = column.cast(pa.int32() if column.type.bit_width == 32 else pa.int64())
    numbers = as_floats(column)
    return pc.fill_null(numbers, np.nan) if numbers.null_count else numbers


def first_rows(rank: NDArray[np.float64], second: NDArray[np.float64], n: int) -> NDArray[np.int64]:
    """Return rows that include the first `n` by rank, then `second`, and not many more."""
    if n in (0, rank.size):
        return np.arange(rank.size if n else 0)
    last = np.partition(rank, n - 1)[n - 1]
    before, ties = np.flatnonzero(rank < last), np.flatnonzero(rank == last)
    wanted = n - before.size
    if wanted < ties.size:
        among = second[ties]
        ties = ties[among <= np.partition(among, wanted - 1)[wanted - 1]]
    return np.concatenate([before, ties])


def _with_names(table: pa.Table, named_by: NamedBy | None) -> pa.Table:
    numbers, name, values = named_by or ("", "", None)
    if values is None:
        return table
    at = table.column_names.index(numbers)
    return table.add_column(at, name, values(to_numpy(table[numbers])))


def sortable(column: pa.ChunkedArray) -> dict[str, pa.ChunkedArray]:
    """Return plain columns that sort like this one: the parts of a struct, the values of a dictionary."""
    if pa.types.is_struct(column.type):
        parts = [sortable(part) for part in column.flatten()]
        return {f"{k} {name}": part for k, each in enumerate(parts) for name, part in each.items()}
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return {"id": storage_of(column)}


#: Figures in a table of clusters, besides labels and scores.
FIGURES = ("n_items", "weight", "n_parts", "exact", "outcome", *LOSSES)
#: Columns of listings that are not scores; user-defined scores must not have these names.
COLUMNS = frozenset(FIGURES + AMOUNTS) | {
    LOSS, "item", "cluster", "slice", "run", "row", "code", "n_units",
    *(f"{side}_{each}" for side in SIDES for each in ("cluster", "mates")),
}  # fmt: skip
#: Suffixes of columns for standard errors and differences, which follow the name of a score.
COLUMN_ENDINGS = ("_se", "_delta")
