"""Pairs to judge → a file for a labelling tool: CSV with plain columns, or Parquet."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from fastbcubed.errors import FastBCubedError, OptionError
from fastbcubed.results.listings.table import Table
from fastbcubed.runtime.written import written_aside
from fastbcubed.sampling.judged_table import count_verdicts
from fastbcubed.sources.arrays import from_texts
from fastbcubed.sources.text_files import no_formulas

CSV, PARQUET = ".csv", ".parquet"


def require_name(path: str | Path) -> None:
    """Raise OptionError unless the name of a file tells CSV or Parquet."""
    if Path(path).suffix.lower() not in (CSV, PARQUET):
        raise OptionError(f"pairs are written to a file that ends in {CSV} or {PARQUET}, not to {path}")


def require_place(path: str | Path) -> None:
    """Raise OptionError unless pairs can be written to a file of this name without loss of verdicts."""
    require_name(path)
    try:
        judged = count_verdicts(path) if os.path.isfile(path) else 0
    except FastBCubedError:  # it is no table of pairs
        judged = 0
    if judged:
        raise OptionError(
            f"{path} has {judged:,} verdict{'s' if judged > 1 else ''}, which would be lost; name another file, or "
            "move this one away"
        )


def write_pairs(pairs: Table, path: str | Path) -> None:
    """Write pairs to a file."""
    require_name(path)
    with written_aside(Path(path)) as aside:
        if Path(path).suffix.lower() == CSV:
            write_csv(pairs, aside)
        else:
            import pyarrow.parquet as pq

            pq.write_table(pairs.to_arrow(), aside)


def write_csv(pairs: Table, file: Any) -> None:
    """Write pairs as CSV to a path or an open file; parts of composite ids have columns of their own.

    No text is a formula to a spreadsheet.
    """
    import pyarrow.csv

    columns: dict[str, pa.ChunkedArray] = {}
    for name in pairs.column_names:
        for own, values in _plain(name, pairs[name]):
            # a part of an id that is asked for as an attribute is there already
            columns.setdefault(own, no_formulas(values))
    pyarrow.csv.write_csv(pa.table(columns), file)


def _plain(name: str, values: pa.ChunkedArray) -> Iterator[tuple[str, pa.ChunkedArray]]:
    """Yield columns that CSV can have: parts of a composite id, texts of what has no other form."""
    kind = values.type
    if pa.types.is_dictionary(kind):
        yield from _plain(name, values.cast(kind.value_type))
    elif pa.types.is_struct(kind) and name in ("item", "mate"):
        for field, part in zip(kind.fields, values.flatten(), strict=True):
            yield from _plain(f"{name}.{field.name}", part)
    elif (
        pa.types.is_nested(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or (pa.types.is_fixed_size_binary(kind))
    ):
        yield name, pa.chunked_array([from_texts([_text(value) for value in values.to_pylist()])])
    else:
        yield name, values


def _text(value: Any) -> str | None:
    if value is None:
        return None
    return value.hex() if isinstance(value, bytes) else json.dumps(value, ensure_ascii=False, default=str)
