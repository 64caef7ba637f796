"""Tables of ten items as few are: of odd shapes, of types that few have, and of columns that are not as named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

__all__ = ["ODD_TABLES"]

ITEMS, CLUSTERS = list("abcdefghij"), [1, 1, 2, 2, 3, 3, 4, 4, 5, 5]


def table(item: Any = ITEMS, cluster: Any = CLUSTERS, **others: Any) -> pa.Table:
    return pa.table({"item": item, "cluster": cluster, **others})


def frame(**changed: Any) -> pd.DataFrame:
    return pd.DataFrame({"item": ITEMS, "cluster": CLUSTERS, **changed})


def named(columns: list[str], *values: Any) -> pa.Table:
    return pa.Table.from_arrays([pa.array(each) for each in values], names=columns)


def indexed() -> pd.DataFrame:
    index = pd.MultiIndex.from_product([["x", "y"], range(5)], names=["item", "country"])
    return pd.DataFrame({"cluster": CLUSTERS}, index=index)


def lists(kind: pa.DataType) -> pa.Array:
    return pa.array([[each] for each in CLUSTERS]).cast(kind)


def nested() -> pa.Array:
    return pa.array([{"a": {"b": [each]}} for each in CLUSTERS])


def mapping(keys: Any, values: Any) -> pa.Array:
    return pa.array(
        [[(key, value)] for key, value in zip(keys, values, strict=True)], pa.map_(pa.string(), pa.int64())
    )


#: Each table by its name in reproducers.
ODD_TABLES: dict[str, Callable[[], Any]] = {
    # shapes
    "no rows": lambda: table().slice(0, 0),
    "no columns": lambda: pa.table({}),
    "no columns, ten rows": lambda: table().select([]),
    "frame without rows": lambda: frame().iloc[:0],
    "frame without columns": lambda: pd.DataFrame(index=range(10)),
    "one row": lambda: table().slice(0, 1),
    "one column": lambda: table().select(["item"]),
    "empty chunks": lambda: pa.concat_tables([table().slice(0, 0), table(), table().slice(0, 0)]),
    "a batch": lambda: table().to_batches()[0],
    "a reader": lambda: table().to_reader(),
    "a used reader": lambda: (reader := table().to_reader(), reader.read_all())[0],
    # names
    "twice": lambda: named(["item", "cluster", "cluster"], ITEMS, CLUSTERS, CLUSTERS[::-1]),
    "item twice": lambda: named(["item", "item", "cluster"], ITEMS, ITEMS, CLUSTERS),
    "frame twice": lambda: pd.concat([frame(), frame()], axis=1),
    "empty name": lambda: named(["item", ""], ITEMS, CLUSTERS),
    "odd names": lambda: named(["item", "cluster", "\0", "\u202e"], ITEMS, CLUSTERS, ITEMS, ITEMS),
    "names of numbers": lambda: pd.DataFrame({0: ITEMS, 1: CLUSTERS}),
    "names of levels": lambda: pd.DataFrame(
        [[*row] for row in zip(ITEMS, CLUSTERS, strict=True)],
        columns=pd.MultiIndex.from_tuples([("item", "x"), ("cluster", "y")]),
    ),
    "upper": lambda: named(["ITEM", "CLUSTER"], ITEMS, CLUSTERS),
    "scores' names": lambda: table(f1=CLUSTERS, precision=CLUSTERS, weight=CLUSTERS, n_items=CLUSTERS),
    # indexes
    "MultiIndex": indexed,
    "index of dates": lambda: frame().set_index(pd.date_range("2020", periods=10)),
    "index twice": lambda: frame().set_index(pd.Index([0] * 10)),
    # nullable and extension types
    "Int64": lambda: frame(cluster=pd.array([1, None, *CLUSTERS[2:]], "Int64")),
    "boolean": lambda: frame(cluster=pd.array([True, None] * 5, "boolean")),
    "string[pyarrow]": lambda: frame(item=pd.array(ITEMS, "string")),
    "category": lambda: frame(cluster=pd.Categorical([None, *CLUSTERS[1:]])),
    "empty category": lambda: frame(cluster=pd.Categorical([None] * 10)),
    "interval": lambda: frame(cluster=pd.interval_range(0, 10)),
    "period": lambda: frame(cluster=pd.period_range("2020", periods=10, freq="M")),
    "dates with zone": lambda: frame(cluster=pd.date_range("2020", periods=10, tz="Asia/Tokyo")),
    "sparse": lambda: frame(cluster=pd.arrays.SparseArray(CLUSTERS)),
    "mixed": lambda: frame(cluster=[1, "1", 1.0, None, b"1", (1,), {}, [], set(), np.int8(1)]),
    "mixed ids": lambda: frame(item=[1, "1", 1.5, "b", b"b", (1,), None, np.nan, pd.NA, pd.NaT]),
    # encodings and views
    "dictionary": lambda: table(cluster=pa.array(CLUSTERS).dictionary_encode()),
    "dictionary of nulls": lambda: table(
        cluster=pa.DictionaryArray.from_arrays(pa.array([0] * 10), pa.array([None], pa.string()))
    ),
    "dictionary with repeats": lambda: table(
        cluster=pa.DictionaryArray.from_arrays(pa.array([0, 1] * 5), pa.array(["x", "x"]))
    ),
    "run ends": lambda: table(cluster=pa.RunEndEncodedArray.from_arrays([4, 10], pa.array([1, 2]))),
    "run ends of nulls": lambda: table(
        cluster=pa.RunEndEncodedArray.from_arrays([10], pa.nulls(1, pa.int64()))
    ),
    "string_view": lambda: table(item=pa.array(ITEMS, pa.string_view())),
    "binary_view": lambda: table(cluster=pa.array([b"x"] * 10, pa.binary_view())),
    "large_string": lambda: table(item=pa.array(ITEMS, pa.large_string())),
    "fixed size": lambda: table(item=pa.array([each.encode() for each in ITEMS], pa.binary(1))),
    "fixed size 0": lambda: table(cluster=pa.array([b""] * 10, pa.binary(0))),
    "decimal": lambda: table(cluster=pa.array(CLUSTERS).cast(pa.decimal128(30, 3))),
    "decimal256": lambda: table(cluster=pa.array(CLUSTERS).cast(pa.decimal256(60, 0))),
    "half": lambda: table(cluster=pa.array(np.arange(10).astype(np.float16))),
    "time": lambda: table(cluster=pa.array(CLUSTERS, pa.int32()).cast(pa.time32("s"))),
    "month_day_nano": lambda: table(cluster=pa.array([pa.MonthDayNano([1, 2, 3])] * 10)),
    "null": lambda: table(cluster=pa.nulls(10)),
    "invalid utf-8": lambda: table(
        item=pa.StringArray.from_buffers(
            10, pa.py_buffer(np.arange(11, dtype=np.int32)), pa.py_buffer(b"\xff\xfeabcdefgh")
        )
    ),
    # nested types
    "lists": lambda: table(cluster=lists(pa.list_(pa.int64()))),
    "fixed lists": lambda: table(cluster=lists(pa.list_(pa.int64(), 1))),
    "list_view": lambda: table(cluster=pa.array([[each] for each in CLUSTERS], pa.list_view(pa.int64()))),
    "lists of nulls": lambda: table(cluster=pa.array([[None], [], None, [1]] + [[2]] * 6)),
    "lists of lists": lambda: table(cluster=pa.array([[[1]]] * 10)),
    "struct": lambda: table(cluster=nested()),
    "struct ids": lambda: table(item=nested()),
    "map": lambda: table(cluster=mapping(ITEMS, CLUSTERS)),
    "union": lambda: table(
        cluster=pa.UnionArray.from_sparse(
            pa.array([0] * 10, pa.int8()), [pa.array(CLUSTERS), pa.array(ITEMS)]
        )
    ),
    # Polars
    "polars": lambda: pl.DataFrame({"item": ITEMS, "cluster": CLUSTERS}),
    "polars object": lambda: pl.DataFrame(
        {"item": ITEMS, "cluster": pl.Series([object()] * 10, dtype=pl.Object)}
    ),
    "polars enum": lambda: pl.DataFrame(
        {"item": ITEMS, "cluster": pl.Series(["x"] * 10, dtype=pl.Enum(["x"]))}
    ),
    "polars array": lambda: pl.DataFrame({"item": ITEMS, "cluster": np.zeros((10, 2))}),
    "polars Int128": lambda: pl.DataFrame({"item": ITEMS, "cluster": pl.Series(CLUSTERS, dtype=pl.Int128)}),
    "polars lazy": lambda: pl.LazyFrame({"item": ITEMS, "cluster": CLUSTERS}),
    "polars lazy, failing": lambda: pl.LazyFrame({"item": ITEMS}).with_columns(
        pl.col("item").cast(pl.Int64).alias("cluster")
    ),
    "polars lazy, raising": lambda: pl.LazyFrame({"item": ITEMS}).map_batches(lambda each: 1 / 0),
}
