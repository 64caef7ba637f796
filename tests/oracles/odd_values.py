"""Values that no argument expects, for generated calls: each made anew, as generators are used up, and with a name."""

from __future__ import annotations

import datetime
import os
import pathlib
import uuid
import zoneinfo
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

__all__ = ["ODD", "Hostile"]

ZONES = [zoneinfo.ZoneInfo("Asia/Tokyo"), datetime.UTC]


class Hostile:
    """An object of a class of the user's own, with nothing in it."""

    def __repr__(self) -> str:
        return "Hostile()"


class PathOf(os.PathLike):
    """A path in the user's own class, of text or bytes, or of what is neither."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def __fspath__(self) -> Any:
        return self.inner

    def __repr__(self) -> str:
        return f"PathOf({self.inner!r})"


def run_ends(values: Any) -> pa.RunEndEncodedArray:
    return pa.RunEndEncodedArray.from_arrays([2, 6], values)


def frame(**others: Any) -> dict[str, Any]:
    """Return columns of a clustering of ten items, some of other types."""
    return {"item": list("abcdefghij"), "cluster": [1, 1, 2, 2, 3, 3, 4, 4, 5, 5], **others}


def object_frame() -> pd.DataFrame:
    return pd.DataFrame(
        frame(cluster=pd.Series([1, "x", None, 2.5, b"y", (1,), {}, [], set(), 3], dtype=object))
    )


def lazy_that_fails() -> pl.LazyFrame:
    return pl.LazyFrame(frame()).with_columns(pl.col("nowhere") + 1)


def lazy_that_fails_late() -> pl.LazyFrame:
    return pl.LazyFrame(frame()).with_columns(pl.col("item").cast(pl.Int64).alias("weight"))


def ten_run_ends(values: Any) -> pa.RunEndEncodedArray:
    return pa.RunEndEncodedArray.from_arrays(pa.array([4, 10], pa.int32()), values)


def twice_encoded() -> pa.DictionaryArray:
    """Return a dictionary whose values are a dictionary themselves."""
    inner = pa.array(["a", "b", "a"]).dictionary_encode()
    return pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 0, 1] * 2, pa.int8()), inner)


def fail(*_: Any) -> Any:
    raise RuntimeError("of the user's own")


#: Each odd value by its name in reproducers.
ODD: dict[str, Callable[[], Any]] = {
    # nothing
    "None": lambda: None,
    "''": lambda: "",
    "' '": lambda: " ",
    "()": lambda: (),
    "[]": list,
    "{}": dict,
    "set()": set,
    "...": lambda: ...,
    "NotImplemented": lambda: NotImplemented,
    "pd.NA": lambda: pd.NA,
    "pd.NaT": lambda: pd.NaT,
    "[None]": lambda: [None],
    "(None, None)": lambda: (None, None),
    # numbers
    "True": lambda: True,
    "False": lambda: False,
    "0": lambda: 0,
    "-1": lambda: -1,
    "1": lambda: 1,
    "0.0": lambda: 0.0,
    "-0.0": lambda: -0.0,
    "0.5": lambda: 0.5,
    "1.5": lambda: 1.5,
    "nan": lambda: float("nan"),
    "inf": lambda: float("inf"),
    "-inf": lambda: float("-inf"),
    "10**400": lambda: 10**400,
    "-10**400": lambda: -(10**400),
    "10**5000": lambda: 10**5000,
    "5e-324": lambda: 5e-324,
    "1e308": lambda: 1e308,
    "2**63": lambda: 2**63,
    "-2**63": lambda: -(2**63),
    "2**64": lambda: 2**64,
    "1j": lambda: 1j,
    "Decimal('0.5')": lambda: Decimal("0.5"),
    "Decimal('NaN')": lambda: Decimal("NaN"),
    "Decimal('sNaN')": lambda: Decimal("sNaN"),
    "Decimal('1e999')": lambda: Decimal("1e999"),
    "Fraction(1, 2)": lambda: Fraction(1, 2),
    "Fraction(10**400)": lambda: Fraction(10**400),
    "np.float64(0.5)": lambda: np.float64(0.5),
    "np.float64('nan')": lambda: np.float64("nan"),
    "np.float32(0.5)": lambda: np.float32(0.5),
    "np.float16(inf)": lambda: np.float16("inf"),
    "np.longdouble('1e400')": lambda: np.longdouble("1e400"),
    "np.int64(2)": lambda: np.int64(2),
    "np.uint64(2**64-1)": lambda: np.uint64(2**64 - 1),
    "np.int8(-1)": lambda: np.int8(-1),
    "np.bool_(True)": lambda: np.bool_(True),
    "np.str_('f1')": lambda: np.str_("f1"),
    "np.bytes_": lambda: np.bytes_(b"f1"),
    "np.complex128(1)": lambda: np.complex128(1),
    "np.datetime64('NaT')": lambda: np.datetime64("NaT"),
    "np.timedelta64(1)": lambda: np.timedelta64(1, "s"),
    "np.void": lambda: np.void(b"ab"),
    "pa.scalar(1)": lambda: pa.scalar(1),
    "pa.scalar(None)": lambda: pa.scalar(None),
    # arrays without dimensions, and of odd shapes
    "np.array(1)": lambda: np.array(1),
    "np.array(0.5)": lambda: np.array(0.5),
    "np.array('f1')": lambda: np.array("f1"),
    "np.array(None)": lambda: np.array(None),
    "np.zeros(0)": lambda: np.zeros(0),
    "np.zeros((2, 2))": lambda: np.zeros((2, 2)),
    "np.zeros((10, 0))": lambda: np.zeros((10, 0)),
    "np.arange(10)[::-2]": lambda: np.arange(10)[::-2],
    "np.ma": lambda: np.ma.masked_array([1, 2, 3], [0, 1, 0]),
    "np.ma.masked": lambda: np.ma.masked,
    "np.record": lambda: np.zeros(3, [("item", "i8"), ("cluster", "i8")]),
    "np.array(object)": lambda: np.array([1, "a", None, [1]], object),
    "np.zeros(10)": lambda: np.zeros(10),
    "np.full(10, nan)": lambda: np.full(10, np.nan),
    "np.float16": lambda: np.arange(10).astype(np.float16),
    "np.complex": lambda: np.arange(10) * 1j,
    "np.longdouble": lambda: np.arange(10).astype(np.longdouble),
    "np.big": lambda: np.arange(10, dtype=">i8"),
    "np.datetime": lambda: np.array(["NaT", "2020-01-01"], "M8[D]"),
    "np.S0": lambda: np.array([b"", b"a"]),
    # texts and bytes
    "'f1'": lambda: "f1",
    "'nope'": lambda: "nope",
    "b'f1'": lambda: b"f1",
    "bytearray": lambda: bytearray(b"ab"),
    "memoryview": lambda: memoryview(b"ab"),
    "memoryview.cast": lambda: memoryview(np.arange(4.0)),
    "surrogate": lambda: "a\udc80",
    "NUL": lambda: "a\0b",
    "long": lambda: "x" * 10_000,
    "'1or 2'": lambda: "1or 2",
    "'0x1for x'": lambda: "0x1for x",
    "'f1()'": lambda: "f1()",
    "'f1**2'": lambda: "f1**2",
    "'f1/0'": lambda: "f1/0",
    "'1e999*f1'": lambda: "1e999*f1",
    "'(('": lambda: "((" * 300,
    "'f1>=0.9'": lambda: "f1>=0.9",
    "'f1>=1e999'": lambda: "f1>=1e999",
    "'f1>=nan'": lambda: "f1>=nan",
    "'country:0'": lambda: "country:0",
    "'weight:1e999'": lambda: "weight:1e999",
    "'true_size:nan'": lambda: "true_size:nan",
    "'country=x'": lambda: "country=x",
    "'a:b:c'": lambda: "a:b:c",
    "'\\u202e'": lambda: "\u202e\x1b[31m",
    "'s3://'": lambda: "s3://",
    "'file://x'": lambda: "file://x",
    "'~nobody-here/x'": lambda: "~nobody-here/x",
    "'a,b'": lambda: "a,b",
    "'a+b'": lambda: "a+b",
    "'5*'": lambda: "5*",
    "'10**400'": lambda: str(10**400),
    "'1GiB'": lambda: "1GiB",
    "'1e999GiB'": lambda: "1e999GiB",
    "'-1GiB'": lambda: "-1GiB",
    "[surrogate]": lambda: ["a\udc80", "b"],
    "[NUL]": lambda: ["a\0", "b"],
    "['f1']": lambda: ["f1"],
    "('f1',)": lambda: ("f1",),
    "['f1', 1]": lambda: ["f1", 1],
    "['f1', 'f1']": lambda: ["f1", "f1"],
    "{'f1': 1}": lambda: {"f1": 1},
    "{'f1'}": lambda: {"f1"},
    "{1: 2}": lambda: {1: 2},
    "{'truth': 1}": lambda: {"truth": 1},
    "[[[]]]": lambda: [[[]]],
    "frozenset": lambda: frozenset("ab"),
    "dict_keys": lambda: {"a": 1}.keys(),
    "range": lambda: range(10),
    # paths
    "Path('nowhere')": lambda: pathlib.Path("nowhere"),
    "Path('a\\0')": lambda: pathlib.Path("a\0b"),
    "Path(surrogate)": lambda: pathlib.Path("a\udc80"),
    "Path('.')": lambda: pathlib.Path(),
    "PathOf(b)": lambda: PathOf(b"x"),
    "PathOf(1)": lambda: PathOf(1),
    "PathOf('\\0')": lambda: PathOf("\0"),
    "b'\\xff'": lambda: b"\xff.parquet",
    "Path(long)": lambda: pathlib.Path("x" * 5000),
    "[Path]": lambda: [pathlib.Path("a"), pathlib.Path("b\0")],
    "'truth.parquet'": lambda: "truth.parquet",
    "'truth.parquet/x'": lambda: "truth.parquet/x",
    # things of other kinds
    "object()": object,
    "Hostile()": Hostile,
    "Hostile": lambda: Hostile,
    "int": lambda: int,
    "print": lambda: print,
    "lambda": lambda: lambda *a, **k: None,
    "fail": lambda: fail,
    "slice(0, 1)": lambda: slice(0, 1),
    "generator": lambda: (k for k in [1, 1, 2, 2, 3, 3, 4, 4, 5, 5]),
    "zip": lambda: zip("ab", [1, 2], strict=True),
    "datetime": lambda: datetime.datetime(2020, 1, 1),
    "timedelta": lambda: datetime.timedelta(1),
    "Exception": lambda: ValueError("x"),
    "np": lambda: np,
    # pandas
    "pd.Series([])": lambda: pd.Series([], dtype=object),
    "pd.Series(Int64)": lambda: pd.Series([1, None] * 5, dtype="Int64"),
    "pd.Categorical([])": lambda: pd.Categorical([]),
    "pd.Categorical(nan)": lambda: pd.Categorical([None] * 10, ["a"]),
    "pd.Categorical": lambda: pd.Categorical(list("aabbccddee")),
    "pd.CategoricalIndex": lambda: pd.CategoricalIndex([]),
    "pd.Series(cat[])": lambda: pd.Series(pd.Categorical([])),
    "pd.Series(period)": lambda: pd.Series(pd.period_range("2020", periods=10)),
    "pd.Series(interval)": lambda: pd.Series(pd.interval_range(0, 10)),
    "pd.Series(sparse)": lambda: pd.Series(pd.arrays.SparseArray([0, 0, 1] * 3 + [2])),
    "pd.Series(complex)": lambda: pd.Series([1j] * 10),
    "pd.Series(object)": lambda: pd.Series([1, "a", None, [], {}] * 2, dtype=object),
    "pd.Series(tz)": lambda: pd.Series(pd.date_range("2020", periods=10, tz="Asia/Tokyo")),
    "pd.Series(10**400)": lambda: pd.Series([10**400] * 10),
    "pd.Series(twice)": lambda: pd.Series(range(10), index=[0] * 10),
    "pd.MultiIndex": lambda: pd.MultiIndex.from_product([[1, 2], list("abcde")]),
    "pd.RangeIndex": lambda: pd.RangeIndex(10),
    "pd.DataFrame()": pd.DataFrame,
    "pd.DataFrame": lambda: pd.DataFrame(frame()),
    "pd.DataFrame(object)": object_frame,
    "pd.DataFrame(twice)": lambda: pd.DataFrame([[1, 2]] * 10, columns=["item", "item"]),
    "pd.DataFrame(0 rows)": lambda: pd.DataFrame(frame()).iloc[:0],
    "pd.DataFrame(int names)": lambda: pd.DataFrame({0: [1], 1: [2]}),
    "pd.DataFrame(multi)": lambda: pd.DataFrame(
        [[1, 2]], columns=pd.MultiIndex.from_tuples([("item", "a"), ("cluster", "b")])
    ),
    "pd.DataFrame(cat)": lambda: pd.DataFrame(frame(cluster=pd.Categorical(list("aabbccddee")))),
    "pd.DataFrame(cat[])": lambda: pd.DataFrame({"item": pd.Categorical([]), "cluster": pd.Categorical([])}),
    # Polars
    "pl.Series": lambda: pl.Series([1, 1, 2, 2, 3, 3, 4, 4, 5, 5]),
    "pl.Series([])": lambda: pl.Series([], dtype=pl.Null),
    "pl.Series(list)": lambda: pl.Series([[1], [2], []]),
    "pl.Series(cat)": lambda: pl.Series(list("aabbccddee"), dtype=pl.Categorical),
    "pl.Series(enum)": lambda: pl.Series(["a", None], dtype=pl.Enum(["a"])),
    "pl.Series(object)": lambda: pl.Series([object()] * 3, dtype=pl.Object),
    "pl.Series(decimal)": lambda: pl.Series([Decimal("1.5")] * 10),
    "pl.DataFrame()": pl.DataFrame,
    "pl.DataFrame": lambda: pl.DataFrame(frame()),
    "pl.DataFrame(object)": lambda: pl.DataFrame(
        {"item": [1, 2], "cluster": pl.Series([object(), object()], dtype=pl.Object)}
    ),
    "pl.LazyFrame": lambda: pl.LazyFrame(frame()),
    "pl.LazyFrame(fails)": lazy_that_fails,
    "pl.LazyFrame(fails late)": lazy_that_fails_late,
    "pl.col": lambda: pl.col("item"),
    # Arrow
    "pa.array": lambda: pa.array([1, 1, 2, 2, 3, 3, 4, 4, 5, 5]),
    "pa.array([])": lambda: pa.array([]),
    "pa.nulls(10)": lambda: pa.nulls(10),
    "pa.array(run ends)": lambda: run_ends(pa.array([1.0, 2.0])),
    "pa.array(run ends of text)": lambda: run_ends(pa.array(["a", None])),
    "pa.array(view)": lambda: pa.array(list("aabbccddee"), pa.string_view()),
    "pa.array(dictionary)": lambda: pa.array(list("aabbccddee")).dictionary_encode(),
    "pa.array(dictionary[])": lambda: pa.array([], pa.string()).dictionary_encode(),
    "pa.array(union)": lambda: pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1])]),
    "pa.array(struct)": lambda: pa.array([{"a": 1}] * 10),
    "pa.array(struct{})": lambda: pa.array([{}] * 10, pa.struct([])),
    "pa.array(list)": lambda: pa.array([[1], None]),
    "pa.array(map)": lambda: pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())),
    "pa.array(duration)": lambda: pa.array([1] * 10, pa.duration("s")),
    "pa.array(decimal256)": lambda: pa.array([Decimal(1)] * 10, pa.decimal256(70, 2)),
    "pa.array(binary)": lambda: pa.array([b"\xff"] * 10),
    "pa.array(fixed)": lambda: pa.array([b"ab"] * 10, pa.binary(2)),
    "pa.array(time)": lambda: pa.array([datetime.time(1)] * 10),
    "pa.array(bool)": lambda: pa.array([True, None] * 5),
    "pa.array(half)": lambda: pa.array(np.arange(10).astype(np.float16)),
    "pa.chunked([])": lambda: pa.chunked_array([], pa.int64()),
    "pa.chunked": lambda: pa.chunked_array([[1] * 5, [], [2] * 5]),
    "pa.table({})": lambda: pa.table({}),
    "pa.table": lambda: pa.table(frame()),
    "pa.table(twice)": lambda: pa.table([pa.array([1]), pa.array([2])], ["item", "item"]),
    "pa.table(0 rows)": lambda: pa.table(frame()).slice(0, 0),
    "pa.table(run ends)": lambda: pa.table({"item": list("abcdef"), "cluster": run_ends(pa.array([1, 2]))}),
    "pa.table(run-end links)": lambda: pa.table(
        {"left": list("abcdef"), "right": list("bcdefa"), "score": run_ends(pa.array([0.5, 0.6]))}
    ),
    "pa.table(view)": lambda: pa.table(frame(item=pa.array(list("abcdefghij"), pa.string_view()))),
    "pa.table(null names)": lambda: pa.table([pa.array([1])], [""]),
    "pa.reader": lambda: pa.table(frame()).to_reader(),
    # labels that are equal in one type and not in another, and mixtures
    "[10, 10.0]": lambda: [10, 10.0] * 5,
    "[True, 1]": lambda: [True, 1] * 5,
    "[0.0, -0.0]": lambda: [0.0, -0.0] * 5,
    "['10', 10]": lambda: ["10", 10] * 5,
    "[2**63, 0.5]": lambda: [2**63, 0.5] * 5,
    "[2**64, -1]": lambda: [2**64, -1] * 5,
    "[Decimal]": lambda: [Decimal("1.0"), Decimal("1.00"), Decimal("1E+30"), Decimal("NaN"), 1] * 2,
    "[Fraction]": lambda: [Fraction(1, 3), Fraction(2)] * 5,
    "[dates of two zones]": lambda: (
        [datetime.datetime(2020, 1, 1, k, tzinfo=zone) for k, zone in enumerate(ZONES)] * 5
    ),
    "[date, datetime]": lambda: [datetime.date(2020, 1, 1), datetime.datetime(2020, 1, 1)] * 5,
    "[aware, naive]": lambda: (
        [datetime.datetime(2020, 1, 1, tzinfo=ZONES[0]), datetime.datetime(2020, 1, 1)] * 5
    ),
    "[far dates]": lambda: [datetime.date(1, 1, 1), datetime.date(9999, 12, 31)] * 5,
    "[UUID]": lambda: [uuid.UUID(int=k // 2) for k in range(10)],
    "[np scalars]": lambda: (
        [np.int8(1), np.uint64(2**64 - 1), np.float32(0.1), np.str_("a"), np.bool_(True)] * 2
    ),
    "[pd.Timestamp]": lambda: [pd.Timestamp("2020", tz="UTC"), pd.NaT] * 5,
    "pd.Series(datetimes mixed)": lambda: pd.Series(
        [pd.Timestamp("2020"), "2020", 2020, None, 2.5] * 2, dtype=object
    ),
    "pd.Categorical(unused)": lambda: pd.Series(pd.Categorical([1, 1, 2, 2, 3] * 2, [0, 1, 2, 3, 4, 5])),
    "pd.Categorical(mixed)": lambda: pd.Categorical(["a", 1, 1.5, None, "a"] * 2),
    "pd.Categorical(intervals)": lambda: pd.cut(pd.Series(range(10)), 3),
    "pd.Series(string)": lambda: pd.Series(["a", None] * 5, dtype="string"),
    "pd.Series(Float64)": lambda: pd.Series([1.0, None] * 5, dtype="Float64"),
    "pd.Series(arrow decimal)": lambda: pd.Series(
        [Decimal(1), None] * 5, dtype=pd.ArrowDtype(pa.decimal128(9, 2))
    ),
    "pd.Series(arrow tz)": lambda: pd.Series(range(10)).astype("timestamp[us, tz=America/Lima][pyarrow]"),
    "pd.DataFrame(mixed)": lambda: pd.DataFrame(
        frame(cluster=pd.Series([10, 10.0, "10", True, 1] * 2, dtype=object))
    ),
    "pd.DataFrame(unused)": lambda: pd.DataFrame(
        frame(cluster=pd.Categorical([2, 2, 3, 3, 4] * 2, [1, 2, 3, 4]))
    ),
    "pl.Series(tz)": lambda: pl.Series(
        [datetime.datetime(2020, 1, k + 1) for k in range(10)]
    ).dt.replace_time_zone("Asia/Tokyo"),
    "pl.Series(struct)": lambda: pl.Series([{"a": 1}] * 10),
    "pl.Series(null)": lambda: pl.Series([None] * 10),
    "pl.Series(duration)": lambda: pl.Series([datetime.timedelta(k) for k in range(10)]),
    "pa.array(tz)": lambda: pa.array([datetime.datetime(2020, 1, 1)] * 10, pa.timestamp("us", "Asia/Tokyo")),
    "pa.array(decimal128)": lambda: pa.array([Decimal("1.50"), None] * 5, pa.decimal128(10, 2)),
    "pa.array(dictionary of dictionary)": lambda: twice_encoded(),
    "pa.array(run ends of dictionary)": lambda: ten_run_ends(pa.array(["a", "b"]).dictionary_encode()),
    "pa.array(run ends of lists)": lambda: ten_run_ends(pa.array([[1], [2]])),
    "pa.array(dictionary of decimals)": lambda: pa.array([Decimal("1.5"), None] * 5).dictionary_encode(),
    "pa.array(null codes)": lambda: pa.DictionaryArray.from_arrays(
        pa.array([0, None] * 5, pa.int8()), pa.array(["a", "unused"])
    ),
    "pa.array(uint64)": lambda: pa.array([2**64 - 1, 0] * 5, pa.uint64()),
    "pa.array(extension)": lambda: pa.array([bytes(16)] * 10, pa.binary(16)).cast(pa.uuid()),
    "pa.chunked(dictionaries)": lambda: pa.chunked_array(
        [pa.array(list("aabbc")).dictionary_encode(), pa.array(list("cbaab")).dictionary_encode()]
    ),
    "pa.table(tz)": lambda: pa.table(frame(cluster=pa.array([0] * 10, pa.timestamp("ns", "Europe/Paris")))),
    "pa.table(decimal)": lambda: pa.table(
        frame(cluster=pa.array([Decimal("1.50"), None] * 5, pa.decimal128(10, 2)))
    ),
    "pa.batch": lambda: pa.table(frame()).to_batches()[0],
}
