"""Objects that are no labels, or look like some: scored as what they are, or refused by what to pass instead."""

from __future__ import annotations

import array
import collections
import contextlib
import dataclasses
import datetime
import decimal
import enum
import fractions
import io
import itertools
import sqlite3
import types
import uuid
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from odd_objects import odd_objects

import fastbcubed as fb
from fastbcubed.errors import ColumnError, FastBCubedError, OptionError

FRAME = pd.DataFrame({"item": [1, 2, 3], "cluster": [1, 1, 2]})
LABELS = [1, 1, 2]


class Columns:
    """A frame that iterates over the names of its columns, as Dask's do."""

    columns = ("item", "cluster")

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __len__(self) -> int:
        return 2


class Lazy(Columns):
    def compute(self) -> pd.DataFrame:
        return FRAME


class Convertible(Columns):
    def to_pandas(self) -> pd.DataFrame:
        return FRAME


class Exchanged:
    """A frame that has the interchange protocol alone."""

    def __dataframe__(self, *args: Any, **options: Any) -> Any:
        return FRAME.__dataframe__(*args, **options)


class ExchangedColumns(Exchanged, Columns):
    pass


class Broken(Exchanged):
    def __dataframe__(self, *args: Any, **options: Any) -> Any:
        raise RuntimeError("it cannot be exchanged")


class Iterates:
    def __iter__(self) -> Iterator[int]:
        return iter(LABELS)


class AsArray:
    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.array(LABELS)


class Sequenced:
    def __len__(self) -> int:
        return 3

    def __getitem__(self, k: int) -> int:
        return LABELS[k]


Named = collections.namedtuple("Named", "item cluster")


@dataclasses.dataclass
class Record:
    item: int
    cluster: int


@pytest.mark.parametrize(
    ("given", "advice"),
    [
        (Columns(), "pass it as a table of pandas, Polars or Arrow"),
        (Lazy(), r"call \.compute\(\) first"),
        (Convertible(), r"call \.to_pandas\(\) first"),
        (Broken(), "pass it as a table of pandas, Polars or Arrow"),
        (pd.DataFrame, "is the class DataFrame. Pass an instance of it"),
        (sp.coo_matrix(np.eye(3)), r"Clustering\.from_pairs\(m\.row, m\.col"),
        (sp.coo_array(np.array(LABELS)), "is a sparse matrix"),
    ],
    ids=["columns", "Dask's", "to_pandas", "broken exchange", "class", "sparse", "sparse labels"],
)
def test_tables_are_read_or_refused_by_what_to_call(given: Any, advice: str) -> None:
    calls: list[Callable[[], Any]] = [
        lambda: fb.evaluate(given, given),
        lambda: fb.evaluate(given, LABELS),
        lambda: fb.evaluate({1: 1}, given),
        lambda: fb.evaluate(given, LABELS, engine="disk"),
        lambda: fb.evaluate("item", "cluster", table=given),
        lambda: fb.evaluate(LABELS, LABELS, weight=given),
        lambda: fb.evaluate(LABELS, LABELS, attributes=given),
        lambda: fb.compare(LABELS, {"a": given}),
        lambda: fb.diff(given, LABELS),
        lambda: fb.metrics.precision(given, LABELS),
        lambda: fb.Clustering.from_links(given),
        lambda: fb.Clustering.from_table(given),
        lambda: fb.Clustering.from_labels(given),
        lambda: fb.Clustering.from_labels(LABELS, items=given),
    ]
    if hasattr(given, "tocoo"):
        calls.append(lambda: fb.Clustering.from_clusters(given))
    for call in calls:
        with pytest.raises((ColumnError, OptionError), match=advice):
            call()


def test_frames_of_the_interchange_protocol_are_tables() -> None:
    for given in (Exchanged(), ExchangedColumns()):
        ev = fb.evaluate(given, {1: 7, 2: 8, 3: 8})  # precision 1, 1/2, 1/2
        assert ev.precision == pytest.approx(2 / 3)
        assert len(fb.Clustering.from_table(given)) == 3
    assert fb.evaluate("cluster", "item", table=Exchanged()).recall == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    "given",
    [Iterates(), iter(LABELS), (k for k in LABELS), map(int, LABELS), zip(LABELS, LABELS, strict=True),
     {1: 1, 2: 1}.values(), {1: 1, 2: 1}.keys(), {1: 1, 2: 1}.items(), {1, 2}],
    ids=["iterable", "iterator", "generator", "map", "zip", "values", "keys", "items", "set"],
)  # fmt: skip
def test_only_sequences_and_arrays_are_labels(given: Any) -> None:
    for call in (lambda: fb.evaluate(given, LABELS), lambda: fb.metrics.precision(given, LABELS)):
        with pytest.raises(
            ColumnError, match=r"one-dimensional array or list, not .*list\(\.\.\.\) of it|not set"
        ):
            call()


def test_a_database_cursor_is_no_table_and_the_error_says_what_reads_its_rows() -> None:
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        query = "select 1 as item, 2 as cluster"
        with pytest.raises(ColumnError, match=r"not Cursor\. .*pandas\.read_sql\(query, connection\)"):
            fb.evaluate(connection.execute(query), {1: 1})
        assert fb.evaluate(pd.read_sql(query, connection), {1: 1}).f1 == 1


@pytest.mark.parametrize(
    "given", [AsArray(), Sequenced(), array.array("q", LABELS), collections.deque(LABELS)]
)
def test_sequences_and_arrays_are_labels(given: Any) -> None:
    ev = fb.evaluate(given, [7, 8, 8])
    assert (ev.precision, ev.recall) == (pytest.approx(2 / 3), pytest.approx(2 / 3))


def test_tables_with_columns_called_like_parts_of_a_matrix_are_tables() -> None:
    """Frames of Spark Connect have an attribute of any name."""
    sides = [pd.DataFrame({"tocoo": list("abc"), "nnz": labels}) for labels in ([1, 1, 2], [1, 1, 1])]
    found = fb.evaluate(*sides, item="tocoo", cluster="nnz").overall
    assert found["precision"] == pytest.approx(5 / 9)  # (2/3 + 2/3 + 1/3) / 3


def test_contingency_tables_that_are_counts() -> None:
    """Cells 2, 1 and 3: the two clusters of the prediction have 2 and 4 items, 1 of them foreign in the second."""
    counts = np.array([[2, 1], [0, 3]])
    labels = [0, 0, 0, 1, 1, 1], [5, 5, 6, 6, 6, 6]
    cells = fb.evaluate(*labels).cells()
    crossed = pd.DataFrame(counts, index=["a", "b"], columns=["x", "y"])
    for given in (counts, sp.csr_matrix(counts), sp.coo_array(counts), crossed, pd.crosstab(*map(np.array, labels)),
                  cells, cells.to_pandas()):  # fmt: skip
        assert fb.metrics.precision(contingency=given) == pytest.approx((2 + 1 / 4 + 3 * 3 / 4) / 6)
        # pairs: 1 + 3 in a cell, 1 + 6 predicted, 3 + 3 true
        assert fb.metrics.pair_precision(contingency=given) == pytest.approx(4 / 7)
        assert fb.metrics.pair_recall(contingency=given) == pytest.approx(4 / 6)
    for given in (
        counts * 1.0,
        sp.eye(3) / 2,
        counts.tolist(),
        3,
        "nowhere",
        np.array(LABELS),
        FRAME.astype(str),
    ):
        with pytest.raises(FastBCubedError):
            fb.metrics.precision(contingency=given)


OBJECTS: dict[str, Any] = {
    "set": {1, 2, 3},
    "frozenset": frozenset({1, 2, 3}),
    "dictkeys": {1: 1, 2: 2, 3: 3}.keys(),
    "dictvalues": {1: 1, 2: 1, 3: 3}.values(),
    "dictitems": {1: 1, 2: 1, 3: 3}.items(),
    "range": range(3),
    "array": array.array("q", [1, 1, 2]),
    "arrayd": array.array("d", [1, 1, 2]),
    "deque": collections.deque([1, 1, 2]),
    "userlist": collections.UserList([1, 1, 2]),
    "userdict": collections.UserDict({0: 1, 1: 1, 2: 2}),
    "counter": collections.Counter("aab"),
    "chain": itertools.chain([1], [1, 2]),
    "bytes": b"aab",
    "bytearray": bytearray(b"aab"),
    "memoryview": memoryview(b"aab"),
    "memoryview q": memoryview(array.array("q", [1, 1, 2])),
    "int": 3,
    "float": 1.5,
    "None": None,
    "bool": True,
    "complex": 1j,
    "type": int,
    "func": len,
    "module": np,
    "object": object(),
    "Ellipsis": ...,
    "slice": slice(3),
    "decimal": decimal.Decimal(3),
    "date": datetime.date(2020, 1, 1),
    "stringio": io.StringIO("item,cluster\n1,1\n"),
    "bytesio": io.BytesIO(b"item,cluster\n1,1\n2,1\n3,2\n"),
    "uuid": uuid.UUID(int=3),
    "np0d": np.array(3),
    "np2d": np.ones((3, 2), int),
    "np2d1": np.ones((3, 1), int),
    "np matrix": np.matrix([1, 1, 2]),
    "np scalar": np.int64(3),
    "rec": np.rec.array([(1, 1), (2, 1), (3, 2)], dtype=[("item", int), ("cluster", int)]),
    "struct": np.array([(1, 1), (2, 1), (3, 2)], dtype=[("item", int), ("cluster", int)]),
    "masked": np.ma.array([1, 1, 2], mask=[0, 0, 1]),
    "bool array": np.array([True, False, True]),
    "complex arr": np.array([1j, 2, 3]),
    "datetime arr": np.array(["2020", "2021", "2021"], "M8[Y]"),
    "void": np.zeros(3, "V4"),
    "objnest": np.array([[1], [1, 2], [3]], dtype=object),
    "csr": sp.csr_matrix(np.eye(3, dtype=int)),
    "coo": sp.coo_matrix(np.eye(3)),
    "coo_array": sp.coo_array(np.eye(3)),
    "dok": sp.dok_matrix(np.eye(3)),
    "lil": sp.lil_array(np.eye(3)),
    "coo1d": sp.coo_array(np.array([1, 1, 2])),
    "csr1": sp.csr_array(np.array([[1, 1, 2]])),
    "series": pd.Series([1, 1, 2]),
    "idx": pd.Index([1, 1, 2]),
    "multi": pd.MultiIndex.from_tuples([(1, 1), (1, 2), (2, 1)]),
    "cat": pd.Categorical([1, 1, 2]),
    "interval": pd.arrays.IntervalArray.from_breaks([0, 1, 2, 3]),
    "groupby": FRAME.groupby("cluster"),
    "pl gb": pl.DataFrame({"item": [1, 2, 3], "cluster": [1, 1, 2]}).group_by("cluster"),
    "period": pd.period_range("2020", periods=3),
    "df": FRAME,
    "df1": pd.DataFrame({"cluster": [1, 1, 2]}),
    "dftype": pd.DataFrame,
    "pl expr": pl.col("a"),
    "scalar": pa.scalar(3),
    "field": pa.schema([("item", pa.int64())]),
    "struct arr": pa.array([{"item": 1, "cluster": 1}] * 3),
    "list arr": pa.array([[1], [1], [2]]),
    "batches": pa.table({"item": [1, 2, 3], "cluster": [1, 1, 2]}).to_batches(),
    "tables": [pa.table({"item": [1, 2, 3], "cluster": [1, 1, 2]})],
    "frames": [FRAME],
    "nt": [Named(1, 1), Named(2, 1), Named(3, 2)],
    "dc": [Record(1, 1), Record(2, 1), Record(3, 2)],
    "records": [{"item": 1, "cluster": 1}, {"item": 2, "cluster": 1}, {"item": 3, "cluster": 2}],
    "lists": [[1, 1], [2, 1], [3, 2]],
    "tuples": [(1, 1), (2, 1), (3, 2)],
    "mixed": [1, "a", 2],
    "nested": [[1], [1], [2]],
    "sets": [{1}, {1}, {2}],
    "empty": [],
    "empty dict": {},
    "str": "abc",
    "Enum": list(enum.Enum("E", "a b c")),
    "fractions": [fractions.Fraction(1), fractions.Fraction(1), fractions.Fraction(2)],
    "objs": [object()] * 3,
    "big": [2**70, 2**70, 1],
    "Exc": [ValueError()] * 3,
    "nones": [None] * 3,
    "bytes l": [b"a", b"a", b"b"],
    "proxy": types.MappingProxyType({0: 1, 1: 1, 2: 2}),
    "np str": np.array(["a", "a", "b"]),
}


OBJECTS |= odd_objects()

#: Those that are labels 1, 1, 2 or a, a, b, whatever holds them.
AS_LABELS = [
    *(f"array {kind}" for kind in ("i1", "i2", "i4", "u1", "u2", "u8", ">i8", "S3", "U3", ">U2", "O")),
    *(f"Series {kind}" for kind in ("Int8", "Int64", "UInt64", "string", "category", "int64[pyarrow]")),
    *(f"arrow {kind}" for kind in ("uint64", "dictionary", "string view", "binary")),
    *(f"polars {kind}" for kind in ("series", "text", "categorical", "enum")),
    "extension Series Int64", "extension Series string[pyarrow]", "Categorical unused", "CategoricalIndex", "chunked",
    "Text", "Whole", "Listed", "NoTruth", "tuple", "array protocol", "chararray", "StrEnum",
]  # fmt: skip


@pytest.mark.parametrize("name", AS_LABELS)
def test_labels_of_many_kinds_have_one_score(name: str) -> None:
    ev = fb.evaluate(OBJECTS[name], [7, 8, 8])
    assert (ev.precision, ev.recall) == (pytest.approx(2 / 3), pytest.approx(2 / 3))


def test_what_an_object_raises_itself_is_said() -> None:
    for name, said in (("fails", "no stream"), ("Endless", "no element"), ("memoryview 2-d", "sub-views")):
        with pytest.raises(ColumnError, match=rf"cannot be read: it raises \w+ \(.*{said}") as caught:
            fb.evaluate(OBJECTS[name], LABELS)
        assert caught.value.__cause__ is not None


@pytest.mark.cases(0, 40)
@pytest.mark.parametrize("name", OBJECTS)
def test_no_object_raises_what_is_not_ours(name: str) -> None:
    given, items = OBJECTS[name], {1: 1, 2: 1, 3: 2}
    calls: list[Callable[[], Any]] = [
        lambda: fb.evaluate(given, LABELS),
        lambda: fb.evaluate(items, given),
        lambda: fb.evaluate("item", "cluster", table=given),
        lambda: fb.evaluate(LABELS, LABELS, weight=given),
        lambda: fb.evaluate(LABELS, LABELS, attributes=given),
        lambda: fb.compare(LABELS, {"a": given}),
        lambda: fb.metrics.precision(given, LABELS),
        lambda: fb.metrics.precision(contingency=given),
        lambda: fb.Clustering.from_links(given),
        lambda: fb.Clustering.from_pairs(given, given),
        lambda: fb.Clustering.from_table(given),
        lambda: fb.Clustering.from_labels(given),
        lambda: fb.Clustering.from_labels(LABELS, items=given),
        lambda: fb.Clustering.from_clusters(given),
        lambda: fb.Clustering.from_dict(given),
        lambda: fb.Clustering.from_links([("a", "b")], items=given),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for call in calls:
            try:
                call()
            except FastBCubedError as error:
                assert len(str(error)) > 20
