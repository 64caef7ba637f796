"""The same ids in every container and type that a user may have, and the same table likewise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

__all__ = ["COLUMNS", "TABLES", "text"]

Ids = Sequence[int]


def text(ids: Ids) -> list[str]:
    """Name integers: short names and, for every third, one that needs more than 16 bytes."""
    return [f"id-{i}" + "-and-a-long-tail" * (i % 3 == 0) for i in ids]


def _raw(ids: Ids) -> list[bytes]:
    return [name.encode() for name in text(ids)]


def _halves(values: list[Any], make: Callable[[list[Any]], pa.Array]) -> pa.ChunkedArray:
    """Make chunks that are encoded apart, an empty one and a sliced one among them."""
    middle = len(values) // 2
    first = make(values[:1] + values[:middle]).slice(1)
    return pa.chunked_array([first, make(values[:1]).slice(1), make(values[middle:])])


def _run_ends(values: list[int]) -> pa.Array:
    return pa.RunEndEncodedArray.from_arrays(
        pa.array(range(1, len(values) + 1), pa.int32()), pa.array(values, pa.int64())
    )


def _fixed(ids: Ids) -> pa.Array:
    return pa.array([i.to_bytes(20, "big", signed=True) for i in ids], pa.binary(20))


def _coded(kind: pa.DataType) -> Callable[[list[Any]], pa.Array]:
    return lambda values: (
        pa.array(values[::-1], kind)
        .dictionary_encode()
        .take(pa.array(range(len(values) - 1, -1, -1), pa.int64()))
    )


#: Builders of a one-dimensional column from small non-negative integers.
COLUMNS: dict[str, Callable[[Ids], Any]] = {
    "list of int": list,
    "tuple of int": tuple,
    "list of str": text,
    "list of tuples": lambda ids: [(i % 2, name) for i, name in zip(ids, text(ids), strict=True)],
    "numpy int8": lambda ids: np.array(ids, dtype=np.int8),
    "numpy int32": lambda ids: np.array(ids, dtype=np.int32),
    "numpy int64": lambda ids: np.array(ids, dtype=np.int64),
    "numpy int64, strided": lambda ids: np.repeat(np.array(ids, dtype=np.int64), 2)[::2],
    "numpy int64, big-endian": lambda ids: np.array(ids, dtype=">i8"),
    "numpy uint64": lambda ids: np.array(ids, dtype=np.uint64),
    "numpy uint64, wide": lambda ids: np.array(ids, dtype=np.uint64) + np.uint64(2**63),
    "numpy str": lambda ids: np.array(text(ids)),
    "numpy bytes": lambda ids: np.array(_raw(ids)),
    "numpy StringDType": lambda ids: np.array(text(ids), dtype=np.dtypes.StringDType()),
    "numpy object": lambda ids: np.array(text(ids), dtype=object),
    "pandas int64": lambda ids: pd.Series(ids, dtype="int64"),
    "pandas int64, big-endian": lambda ids: pd.Series(np.array(ids, dtype=">i8")),
    "pandas Int64": lambda ids: pd.Series(ids, dtype="Int64"),
    "pandas str": lambda ids: pd.Series(text(ids)),
    "pandas object": lambda ids: pd.Series(text(ids), dtype=object),
    "pandas string[python]": lambda ids: pd.Series(text(ids), dtype="string[python]"),
    "pandas string[pyarrow]": lambda ids: pd.Series(text(ids), dtype="string[pyarrow]"),
    "pandas category": lambda ids: pd.Series(text(ids), dtype="category"),
    "pandas category of int": lambda ids: pd.Series(ids, dtype="int64").astype("category"),
    "pandas Categorical": lambda ids: pd.Categorical(text(ids)),
    "pandas array": lambda ids: pd.array(ids, dtype="Int64"),
    "pandas arrow dtype": lambda ids: pd.Series(ids, dtype="int64[pyarrow]"),
    "pandas Index": lambda ids: pd.Index(text(ids)),
    "pandas MultiIndex": lambda ids: pd.MultiIndex.from_arrays([text(ids), ids]),
    "arrow int16": lambda ids: pa.array(ids, pa.int16()),
    "arrow int64": lambda ids: pa.array(ids, pa.int64()),
    "arrow int64, chunks": lambda ids: _halves(list(ids), lambda v: pa.array(v, pa.int64())),
    "arrow string": lambda ids: pa.array(text(ids)),
    "arrow string, sliced": lambda ids: pa.array(["x", *text(ids), "y"]).slice(1, len(ids)),
    "arrow string, chunks": lambda ids: _halves(text(ids), lambda v: pa.array(v, pa.string())),
    "arrow large_string": lambda ids: pa.array(text(ids), pa.large_string()),
    "arrow string_view": lambda ids: _halves(text(ids), lambda v: pa.array(v, pa.string_view())),
    "arrow binary": lambda ids: pa.array(_raw(ids), pa.binary()),
    "arrow large_binary": lambda ids: pa.array(_raw(ids), pa.large_binary()),
    "arrow binary_view": lambda ids: pa.array(_raw(ids), pa.binary_view()),
    "arrow fixed binary": _fixed,
    "arrow fixed binary, sliced": lambda ids: _fixed([7, *ids, 7]).slice(1, len(ids)),
    "arrow uuid": lambda ids: pa.array([i.to_bytes(16, "big") for i in ids], pa.uuid()),
    "arrow run-end encoded": lambda ids: _run_ends(list(ids)),
    "arrow dictionary": lambda ids: _coded(pa.string())(text(ids)),
    "arrow dictionary of int": lambda ids: _coded(pa.int32())(list(ids)),
    "arrow dictionaries by chunk": lambda ids: _halves(text(ids), _coded(pa.string())),
    "arrow dictionaries of int by chunk": lambda ids: _halves(list(ids), _coded(pa.int64())),
    "arrow dictionaries of views": lambda ids: _halves(text(ids), _coded(pa.string_view())),
    "arrow struct": lambda ids: pa.StructArray.from_arrays(
        [pa.array(ids, pa.int64()), pa.array(text(ids))], names=["number", "name"]
    ),
    "polars int": lambda ids: pl.Series(ids, dtype=pl.Int32),
    "polars str": lambda ids: pl.Series(text(ids), dtype=pl.String),
    "polars categorical": lambda ids: pl.Series(text(ids), dtype=pl.Categorical),
    "polars binary": lambda ids: pl.Series(_raw(ids), dtype=pl.Binary),
}


def _arrow(items: list[Any], clusters: list[Any]) -> pa.Table:
    return pa.table({"item": items, "cluster": clusters, "extra": range(len(items))})


def _pandas(items: list[Any], clusters: list[Any]) -> pd.DataFrame:
    return _arrow(items, clusters).to_pandas()


def _parquet(items: list[Any], clusters: list[Any], folder: Path) -> Path:
    pq.write_table(_arrow(items, clusters), folder / "rows.parquet", row_group_size=3)
    return folder / "rows.parquet"


def _parts(items: list[Any], clusters: list[Any], folder: Path) -> Path:
    """Write two files whose types differ in width and encoding, and one that is to be skipped."""
    table, middle = _arrow(items, clusters), len(items) // 2
    (folder / "parts").mkdir()
    (folder / "parts" / "_SUCCESS").touch()
    pq.write_table(table.slice(0, middle), folder / "parts" / "a.parquet")
    rest = table.slice(middle)
    coded = rest.column("item").dictionary_encode()
    pq.write_table(rest.set_column(0, "item", coded), folder / "parts" / "b.parquet")
    return folder / "parts"


def _hive(items: list[Any], clusters: list[Any], folder: Path) -> Path:
    table, middle = _arrow(items, clusters), len(items) // 2
    for part, rows in (("1", table.slice(0, middle)), ("2", table.slice(middle))):
        (folder / "hive" / f"part={part}").mkdir(parents=True)
        pq.write_table(rows, folder / "hive" / f"part={part}" / "rows.parquet")
    return folder / "hive"


def _ipc(items: list[Any], clusters: list[Any], folder: Path) -> Path:
    with pa.ipc.new_file(folder / "rows.arrow", _arrow([], []).schema) as writer:
        pass
    table = _arrow(items, clusters)
    with pa.ipc.new_file(folder / "rows.arrow", table.schema) as writer:
        writer.write_table(table, max_chunksize=3)
    return folder / "rows.arrow"


def _stream(items: list[Any], clusters: list[Any], folder: Path) -> Path:
    table = _arrow(items, clusters)
    with pa.ipc.new_stream(folder / "rows.arrows", table.schema) as writer:
        writer.write_table(table)
    return folder / "rows.arrows"


def _csv(items: list[Any], clusters: list[Any], folder: Path) -> Path:
    pyarrow.csv.write_csv(_arrow(items, clusters), folder / "rows.csv")
    return folder / "rows.csv"


def _tsv(items: list[Any], clusters: list[Any], folder: Path) -> Path:
    _pandas(items, clusters).to_csv(folder / "rows.tsv.gz", sep="\t", index=False)
    return folder / "rows.tsv.gz"


def _duckdb(items: list[Any], clusters: list[Any], folder: Path) -> Any:
    return duckdb.connect().from_arrow(_arrow(items, clusters))


#: Builders of a table with the columns item, cluster, extra; the last argument is a folder for
#: files.
TABLES: dict[str, Callable[[list[Any], list[Any], Path], Any]] = {
    "arrow": lambda items, clusters, _: _arrow(items, clusters),
    "arrow, chunks": lambda items, clusters, _: pa.concat_tables(
        [_arrow(items[:2], clusters[:2]), _arrow(items[2:], clusters[2:])]
    ),
    "arrow batch": lambda items, clusters, _: _arrow(items, clusters).to_batches()[0],
    "arrow reader": lambda items, clusters, _: _arrow(items, clusters).to_reader(max_chunksize=2),
    "pandas": lambda items, clusters, _: _pandas(items, clusters),
    "pandas, item in the index": lambda items, clusters, _: _pandas(items, clusters).set_index("item"),
    "pandas, filtered index": lambda items, clusters, _: _pandas(
        [items[0], *items], [clusters[0], *clusters]
    ).iloc[1:],
    "polars": lambda items, clusters, _: pl.from_arrow(_arrow(items, clusters)),
    "duckdb": _duckdb,
    "parquet": _parquet,
    "parquet path as str": lambda *rows: str(_parquet(*rows)),
    "parquet glob": lambda *rows: str(_parts(*rows) / "*.parquet"),
    "parquet directory": _parts,
    "parquet hive": _hive,
    "ipc file": _ipc,
    "ipc stream": _stream,
    "csv": _csv,
    "tsv, compressed": _tsv,
}
