"""What holds a table without being one (lazy frames, results of DuckDB, frames of Splink) → what it holds.

These are known by their methods, so that none of the libraries is needed.
"""

from __future__ import annotations

import warnings
from typing import Any

from fastbcubed.errors import ColumnError
from fastbcubed.sources.arrays import is_object

#: What a relation or result of DuckDB calls its ways to Arrow, by age.
TO_TABLE = ("to_arrow_table", "fetch_arrow_table")
TO_READER = ("to_arrow_reader", "fetch_arrow_reader", "fetch_record_batch")


def unwrapped(source: Any) -> Any:
    """Return the frame or relation behind a lazy frame of Polars or a frame of Splink; anything else as it is.

    A frame of Polars with Python objects becomes a dict of its columns.
    """
    if hasattr(source, "collect_schema"):
        frame = source.collect() if hasattr(source, "collect") else source
        return _by_column(frame) if any(map(is_object, frame.schema.values())) else frame
    if hasattr(source, "physical_name") and hasattr(source, "as_pandas_dataframe"):
        return _of_splink(source)
    return source


def _by_column(frame: Any) -> dict[str, Any]:
    return {name: frame[name] for name in frame.columns}


def _of_splink(frame: Any) -> Any:
    """Return a relation of DuckDB, where that is where the frame lives, else a frame of pandas."""
    try:
        return frame.as_duckdbpyrelation()
    except (AttributeError, NotImplementedError, TypeError):  # another backend
        return frame.as_pandas_dataframe()


def is_result(source: Any) -> bool:
    """Say whether this is a connection of DuckDB, which holds the result of its last query."""
    return type(source).__name__ == "DuckDBPyConnection"


def arrow_table(source: Any) -> Any:
    """Return what a relation or result of DuckDB holds, as an Arrow table; None for anything else."""
    return _asked(source, TO_TABLE)


def relation_schema(source: Any) -> Any:
    """Return the schema of a relation of DuckDB, which is run for that without its rows; None for anything else."""
    if is_result(source) or not (hasattr(source, "limit") and hasattr(source, "fetchall")):
        return None
    found = arrow_table(source.limit(0))
    return None if found is None else found.schema


def arrow_reader(source: Any, size: int) -> Any:
    """Return the batches of a relation or result of DuckDB; None for anything else."""
    return _asked(source, TO_READER, size)


def _asked(source: Any, methods: tuple[str, ...], *arguments: int) -> Any:
    ask = next((getattr(source, name) for name in methods if hasattr(source, name)), None)
    if ask is None or not (is_result(source) or hasattr(source, "fetchall")):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # results take a copy, which cannot be helped here
            return ask(*arguments)
    except Exception as error:
        if not is_result(source):
            raise
        cause = str(error).splitlines()[0].rstrip(".")
        raise ColumnError(
            f"The connection of DuckDB has no result to read: {cause}. It holds that of its last execute(), which can "
            "be read once; pass con.sql(...) instead."
        ) from error
