"""Objects of many kinds, for labels, items, weights, links or tables; with three rows where they have rows."""

from __future__ import annotations

import collections
import datetime
import decimal
import enum
import itertools
import pathlib
import queue
import types
import uuid
import warnings
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import scipy.sparse as sp

LABELS = [1, 1, 2]
NAMES = ["a", "a", "b"]
FRAME = pd.DataFrame({"item": [1, 2, 3], "cluster": LABELS})
TABLE = pa.table({"item": [1, 2, 3], "cluster": LABELS})
UTC = datetime.UTC
DAYS = [datetime.date(2020, 1, 1), datetime.date(2020, 1, 1), datetime.date(2021, 1, 1)]
TIMES = [datetime.datetime(day.year, 1, 1, tzinfo=UTC) for day in DAYS]


class Text(str):
    """A text of a class of its own."""


class Whole(int):
    """An integer of a class of its own."""


class Color(enum.IntEnum):
    RED = 1
    BLUE = 2


class Word(enum.StrEnum):
    RED = "r"
    BLUE = "b"


class Listed(list):
    """A list of a class of its own."""


class Keyed(dict):
    """A dict of a class of its own."""


class Protocol:
    """Objects with one protocol each."""

    def __init__(self, given: Any) -> None:
        self.given = given


class Streams(Protocol):
    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.given.__arrow_c_stream__(requested_schema)


class ArrowArray(Protocol):
    def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
        return self.given.__arrow_c_array__(requested_schema)


class Interface(Protocol):
    @property
    def __array_interface__(self) -> Any:
        return self.given.__array_interface__


class Arrays(Protocol):
    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.given


class Fails:
    """Every protocol fails."""

    def __array__(self, *args: Any, **options: Any) -> Any:
        raise RuntimeError("no array")

    def __arrow_c_stream__(self, *args: Any) -> Any:
        raise RuntimeError("no stream")


class Endless:
    """It has a length and elements, which fail."""

    def __len__(self) -> int:
        return 3

    def __getitem__(self, k: int) -> int:
        raise RuntimeError("no element")


class NoTruth(list):
    """A list that is neither true nor false."""

    def __bool__(self) -> bool:
        raise ValueError("ambiguous")


class Unhashable:
    __hash__ = None  # type: ignore[assignment]


class NeverEqual:
    def __eq__(self, other: object) -> Any:
        raise RuntimeError("not comparable")

    __hash__ = object.__hash__


class BadRepr:
    def __repr__(self) -> str:
        raise RuntimeError("no repr")


def _generated() -> Iterator[int]:
    yield from LABELS


def _chararray() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # by NumPy 2.5
        return np.char.array(NAMES)


def _arrays() -> dict[str, Any]:
    kinds = [
        "?",
        "i1",
        "i2",
        "i4",
        "i8",
        "u1",
        "u2",
        "u4",
        "u8",
        "f2",
        "f4",
        "f8",
        "g",
        "c8",
        "c16",
        "S3",
        "U3",
        ">i8",
        ">f4",
        ">U2",
        "M8[ns]",
        "M8[D]",
        "M8[Y]",
        "m8[ns]",
        "m8[D]",
        "O",
    ]
    found: dict[str, Any] = {f"array {kind}": np.array(LABELS, "i8").astype(kind) for kind in kinds}
    found |= {f"scalar {kind}": each[0] for kind, each in found.items()}
    whole = np.array(LABELS)
    found |= {
        "0-d text": np.array("aab"),
        "2-d row": whole[None],
        "2-d text": np.array([NAMES, NAMES]),
        "3-d": whole.reshape(1, 3, 1),
        "empty 2-d": np.empty((0, 3), int),
        "strided": np.arange(6)[::2],
        "reversed": whole[::-1],
        "broadcast": np.broadcast_to(1, 3),
        "read-only": np.frombuffer(whole.tobytes(), whole.dtype),
        "ragged": np.array([[1], [1, 2], None], object),
        "NaN": np.array([1.0, np.nan, 2.0]),
        "inf": np.array([1.0, np.inf, 2.0]),
        "NaT": np.array(["2020", "NaT", "2021"], "M8[D]"),
        "minus zero": np.array([0.0, -0.0, 1.0]),
        "nested structs": np.zeros(3, [("a", [("b", int)])]),
        "masked all": np.ma.masked_all(3, int),
        "masked text": np.ma.array(NAMES, mask=[0, 0, 1]),
        "chararray": _chararray(),
        "mixed None": np.array([1, None, 2], object),
        "mixed pd.NA": np.array([1, pd.NA, 2], object),
        "poly1d": np.poly1d(LABELS),
        "mixed NaN text": np.array(["a", np.nan, "b"], object),
        "objects of sets": np.array([{1}, {1}, {2}], object),
        "nditer": np.nditer(whole),
        "flatiter": whole.flat,
        "ndenumerate": np.ndenumerate(whole),
        "dtype": np.dtype("i8"),
        "memmap-like": whole.view(np.ndarray),
        "rec 1": np.rec.array(LABELS),
        "generator of numpy": np.random.default_rng(0),
    }
    return found


def _pandas() -> dict[str, Any]:
    kinds = [
        "Int8",
        "Int64",
        "UInt64",
        "Float32",
        "Float64",
        "bool",
        "string",
        "category",
        "object",
        "int64[pyarrow]",
        "string[pyarrow]",
        "double[pyarrow]",
        "Sparse[int]",
        "timedelta64[ns]",
        "datetime64[ns, UTC]",
        "datetime64[s]",
    ]
    series = pd.Series(LABELS)
    found: dict[str, Any] = {f"Series {kind}": series.astype(kind) for kind in kinds}
    found |= {f"extension {name}": each.array for name, each in found.items()}
    two = pd.MultiIndex.from_tuples([(1, "a"), (1, "b"), (2, "a")], names=["x", "y"])
    found |= {
        "Series with MultiIndex": pd.Series(LABELS, index=two),
        "Series of lists": pd.Series([[1], [1], [2]]),
        "Series of dicts": pd.Series([{"a": 1}] * 3),
        "Series of sets": pd.Series([{1}, {1}, {2}]),
        "Series empty": pd.Series([], dtype=object),
        "Series of Decimal": pd.Series([decimal.Decimal(1)] * 3),
        "Series of UUID": pd.Series([uuid.UUID(int=1)] * 3),
        "Series of NA": pd.Series([pd.NA] * 3),
        "Series of mixes": pd.Series([1, "a", None]),
        "Series of Interval": pd.Series(pd.interval_range(0, 3)),
        "Series of Period": pd.Series(pd.period_range("2020", periods=3)),
        "Series, twice the index": pd.Series(LABELS, index=[0, 0, 1]),
        "Series named": pd.Series(LABELS, name=("a", 1)),
        "Categorical unused": pd.Categorical(["a", "a", "b"], categories=list("zab")),
        "Categorical of floats": pd.Categorical([1.5, 1.5, 2]),
        "Categorical null": pd.Categorical(["a", None, "b"]),
        "CategoricalIndex": pd.CategoricalIndex(NAMES),
        "RangeIndex": pd.RangeIndex(3),
        "DatetimeIndex": pd.DatetimeIndex(DAYS),
        "TimedeltaIndex": pd.to_timedelta(LABELS),
        "IntervalIndex": pd.interval_range(0, 3),
        "Timestamp": pd.Timestamp("2020"),
        "Timedelta": pd.Timedelta(1),
        "NaT": pd.NaT,
        "NA": pd.NA,
        "Interval": pd.Interval(0, 1),
        "Period": pd.Period("2020"),
        "frame empty": pd.DataFrame(),
        "frame without rows": FRAME.iloc[:0],
        "frame with twice a name": pd.concat([FRAME, FRAME], axis=1),
        "frame with MultiIndex": FRAME.set_index(two),
        "frame of index": FRAME.set_index("item"),
        "frame of two levels": FRAME.T.T,
        "frame transposed": FRAME.T,
        "frame with MultiIndex of columns": pd.DataFrame([[1, 1]] * 3, columns=two[:2]),
        "frame of numbered columns": pd.DataFrame([[1, 1], [2, 1], [3, 2]]),
        "frame of NaN": FRAME.astype(float).where(FRAME > 1),
        "frame of attrs": FRAME.assign(item=NAMES).astype("category"),
        "rolling": FRAME.rolling(2),
        "Series groupby": FRAME["item"].groupby(FRAME["cluster"]),
        "loc": FRAME.loc,
        "dtype": FRAME.dtypes,
        "itertuples": FRAME.itertuples(),
        "iterrows": FRAME.iterrows(),
        "str accessor": pd.Series(NAMES).str,
    }
    return found


def _arrow_and_polars() -> dict[str, Any]:
    whole, texts = pa.array(LABELS), pa.array(NAMES)
    kinds = [
        pa.int8(),
        pa.uint64(),
        pa.float16(),
        pa.float32(),
        pa.decimal128(5, 0),
        pa.decimal128(5, 2),
        pa.date32(),
        pa.date64(),
        pa.time32("s"),
        pa.timestamp("ns"),
        pa.timestamp("us", "UTC"),
        pa.duration("s"),
    ]
    found: dict[str, Any] = {}
    for kind in kinds:
        through = pa.int32() if pa.types.is_date32(kind) or pa.types.is_time32(kind) else pa.int64()
        try:
            found[f"arrow {kind}"] = whole.cast(through).cast(kind)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            found[f"arrow {kind}"] = pa.array([1.0, 1.0, 2.0]).cast(kind)
    found |= {
        "arrow null": pa.nulls(3),
        "arrow bool": pa.array([True, True, False]),
        "arrow large string": texts.cast(pa.large_string()),
        "arrow string view": texts.cast(pa.string_view()),
        "arrow binary": texts.cast(pa.binary()),
        "arrow fixed": pa.array([b"ab"] * 3, pa.binary(2)),
        "arrow dictionary": texts.dictionary_encode(),
        "arrow run ends": pa.RunEndEncodedArray.from_arrays([2, 3], NAMES[1:]),
        "arrow large list": pa.array([[1], [1], [2]], pa.large_list(pa.int64())),
        "arrow map": pa.array([[("a", 1)]] * 3, pa.map_(pa.string(), pa.int64())),
        "arrow union": pa.UnionArray.from_dense(
            pa.array([0, 0, 1], pa.int8()), pa.array([0, 1, 0], pa.int32()), [whole, texts]
        ),
        "arrow fixed list": pa.array([[1, 2]] * 3, pa.list_(pa.int64(), 2)),
        "arrow struct of text": pa.array([{"item": "a"}] * 3),
        "chunked": pa.chunked_array([LABELS, []]),
        "chunked empty": pa.chunked_array([], pa.int64()),
        "record batch": TABLE.to_batches()[0],
        "reader": TABLE.to_reader(),
        "arrow schema": TABLE.schema,
        "arrow type": pa.int64(),
        "arrow buffer": pa.py_buffer(b"aab"),
        "arrow tensor": pa.Tensor.from_numpy(np.ones((3, 2))),
        "arrow table empty": pa.table({}),
        "arrow twice a name": pa.table([whole, whole], ["item"] * 2),
        "streams": Streams(TABLE),
        "streams of columns": Streams(pa.chunked_array([LABELS])),
        "arrow array protocol": ArrowArray(whole),
        "array interface": Interface(np.array(LABELS)),
        "array protocol": Arrays(np.array(LABELS)),
        "array protocol 2-d": Arrays(np.ones((3, 2))),
        "array protocol no array": Arrays(LABELS),
        "fails": Fails(),
        "polars series": pl.Series(LABELS),
        "polars text": pl.Series(NAMES),
        "polars categorical": pl.Series(NAMES, dtype=pl.Categorical),
        "polars enum": pl.Series(NAMES, dtype=pl.Enum(["a", "b"])),
        "polars list": pl.Series([[1], [1], [2]]),
        "polars struct": pl.Series([{"item": 1, "cluster": 1}] * 3),
        "polars object": pl.Series([object()] * 3),
        "polars null": pl.Series([None] * 3),
        "polars decimal": pl.Series([decimal.Decimal("1.0")] * 3),
        "polars date": pl.Series(DAYS),
        "polars int128": pl.Series(LABELS, dtype=pl.Int128),
        "polars frame": pl.from_arrow(TABLE),
        "polars lazy": pl.from_arrow(TABLE).lazy(),  # type: ignore[union-attr]
        "polars empty": pl.DataFrame(),
        "polars type": pl.Int64,
        "polars group": pl.from_arrow(TABLE).group_by("item"),  # type: ignore[union-attr]
    }
    return found


def _plain() -> dict[str, Any]:
    return {
        "Text": list(map(Text, NAMES)),
        "Whole": list(map(Whole, LABELS)),
        "Text alone": Text("aab"),
        "IntEnum": [Color.RED, Color.RED, Color.BLUE],
        "StrEnum": [Word.RED, Word.RED, Word.BLUE],
        "Listed": Listed(LABELS),
        "Keyed": Keyed({1: 1, 2: 1, 3: 2}),
        "NoTruth": NoTruth(LABELS),
        "OrderedDict": collections.OrderedDict({1: 1, 2: 1, 3: 2}),
        "defaultdict": collections.defaultdict(int, {1: 1, 2: 2}),
        "ChainMap": collections.ChainMap({1: 1}, {2: 1, 3: 2}),
        "dict of None": {1: None, 2: 1},
        "dict of NaN": {float("nan"): 1, 2: 1},
        "dict of lists": {"item": [1, 2, 3], "cluster": LABELS},
        "dict of arrays": {"item": np.arange(3), "cluster": np.array(LABELS)},
        "dict of dicts": {1: {"cluster": 1}, 2: {"cluster": 2}},
        "dict of tuples": {(1, 2): 1, (2, 3): 1},
        "dict of floats": {1.0: 1, 2.5: 1},
        "dict of bytes": {b"a": 1, b"b": 1},
        "dict of mixed ids": {1: 1, "a": 1},
        "dict of booleans": {True: 1, False: 2},
        "dict of sets": {1: {1}, 2: set()},
        "dict of frozensets": {frozenset({1}): 1},
        "tuple": (1, 1, 2),
        "tuple of three": ([1], [2], [3]),
        "list of None": [1, None, 2],
        "list of NaN": [1.0, float("nan"), 2.0],
        "list of NA": [1, pd.NA, 2],
        "list of NaT": [pd.NaT] * 3,
        "list of bool": [True, False, True],
        "list of numpy": [np.int64(1), np.int8(1), np.uint64(2)],
        "list of 0-d": [np.array(1)] * 3,
        "list of arrays": [np.array([1, 2])] * 3,
        "list of complex": [1j, 2j, 3j],
        "list of dates": DAYS,
        "list of times": TIMES,
        "list of deltas": [datetime.timedelta(1)] * 3,
        "list of clock times": [datetime.time(1)] * 3,
        "list of Decimal": [decimal.Decimal(1)] * 3,
        "list of odd Decimal": [decimal.Decimal("1.5")] * 3,
        "list of UUID": [uuid.UUID(int=1)] * 3,
        "list of bytearray": [bytearray(b"a")] * 3,
        "list of frozensets": [frozenset({1})] * 3,
        "list of dicts": [{"a": 1}] * 3,
        "list of lists of three": [[1, 1, 0.9], [2, 1, 0.8]],
        "list of empty": [[], [], []],
        "list of paths": [pathlib.Path("a")] * 3,
        "list of types": [int, str, float],
        "list of Unhashable": [Unhashable()] * 3,
        "list of NeverEqual": [NeverEqual()] * 3,
        "list of BadRepr": [BadRepr()] * 3,
        "list of surrogates": ["\ud800"] * 3,
        "list of zero bytes": ["a\0b", "a", "a\0b"],
        "list of NFC and NFD": ["\u00e9", "e\u0301", "b"],
        "list of huge": [-(2**63), 2**64 - 1, 0],
        "list of beyond": [2**64, 1, 1],
        "BadRepr": BadRepr(),
        "NeverEqual": NeverEqual(),
        "Endless": Endless(),
        "function": _generated,
        "generator": _generated(),
        "repeat": itertools.repeat(1, 3),
        "count": itertools.islice(itertools.count(), 3),
        "reversed": reversed(LABELS),
        "enumerate": enumerate(LABELS),
        "zip_longest": itertools.zip_longest(LABELS, NAMES),
        "filter": filter(None, LABELS),
        "groupby": itertools.groupby(LABELS),
        "Queue": queue.Queue(),
        "namespace": types.SimpleNamespace(item=1, cluster=1),
        "weakref": weakref.ref(Unhashable),
        "range empty": range(0),
        "range down": range(3, 0, -1),
        "path": pathlib.Path("nowhere.csv"),
        "URI": "s3://",
        "glob": "*.nothing",
        "text empty": "",
        "bytes empty": b"",
        "memoryview 2-d": memoryview(np.ones((3, 2))),
        "memoryview of float": memoryview(np.ones(3)),
        "datetime": TIMES[0],
        "time": datetime.time(1),
        "timedelta": datetime.timedelta(1),
        "zone": UTC,
        "NotImplemented": NotImplemented,
        "exception": ValueError("x"),
        "property": property(),
        "sparse diagonal": sp.dia_array(np.eye(3)),
        "sparse blocks": sp.bsr_array(np.eye(3)),
        "sparse columns": sp.csc_array(np.eye(3)),
        "int huge": 10**5000,
        "nan": float("nan"),
    }


def odd_objects() -> dict[str, Any]:
    """Return them by name."""
    return _arrays() | _pandas() | _arrow_and_polars() | _plain()
