"""Attributes of every type: slices with both engines and of saved results; what files have to leave out."""

from __future__ import annotations

import datetime
import decimal
import json
import uuid
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from both_engines import LIMIT
from hostile import quietly, refused
from versions import ARROW

import fastbcubed as fb
from fastbcubed.cli.main import main
from fastbcubed.errors import ColumnError, EvaluationWarning, IdTypeError, OptionError, SliceError
from fastbcubed.inputs.files import as_rows

#: The group of each of the truth's items: nulls in both halves.
GROUPS = [1, 1, None, 2, None, 1]
#: How many items are in the slice of each; the prediction has an item more, which no group is known of.
COUNTS = {1: 3, 2: 1, None: 3}
ITEMS, TRUE, PRED = list("abcdef"), [1, 1, 1, 2, 2, 3], [1, 1, 2, 2, 2, 3, 3]
ENGINES: dict[str, dict[str, Any]] = {
    "memory": {"engine": "memory"},
    "disk": {"engine": "disk", "memory_limit": LIMIT},
}
NUMBERS = {1: 1, 2: 2}
TEXTS = {1: "one", 2: "two"}
RAW = {1: b"one", 2: b"two"}


def halves(kind: pa.DataType, values: dict[int, Any]) -> pa.ChunkedArray:
    """Return two chunks, and an empty one between them."""
    data = [None if group is None else values[group] for group in GROUPS]
    return pa.chunked_array([pa.array(data[:3], kind), pa.array([], kind), pa.array(data[3:], kind)])


def coded(values: pa.Array, codes: list[int | None], kind: pa.DataType) -> pa.ChunkedArray:
    chunks = [pa.DictionaryArray.from_arrays(pa.array(c, kind), values) for c in (codes[:3], codes[3:])]
    return pa.chunked_array(chunks)


def run_ends(values: pa.ChunkedArray) -> pa.ChunkedArray:
    return pa.chunked_array(
        [
            pa.RunEndEncodedArray.from_arrays(pa.array(range(1, len(chunk) + 1), pa.int32()), chunk)
            for chunk in (values.chunk(0), values.chunk(2))
        ]
    )


def full_dictionaries() -> pa.ChunkedArray:
    """Return chunks whose codes of 8 bits are all in use, with another dictionary in each."""
    texts = [f"text {k}" for k in range(126)]
    first = pa.DictionaryArray.from_arrays(pa.array([0, 0, None], pa.int8()), ["one", "two", *texts])
    rest = [f"more {k}" for k in range(126)]
    second = pa.DictionaryArray.from_arrays(pa.array([127, None, 126], pa.int8()), [*rest, "one", "two"])
    return pa.chunked_array([first, second])


def named(values: dict[int, Any]) -> list[Any]:
    return [None if group is None else values[group] for group in GROUPS]


DAY = datetime.date(2020, 1, 1), datetime.date(2020, 1, 2)
#: What databases write for infinity.
INFINITE_DAY, INFINITE = 2**31 - 1, 2**63 - 1
UUIDS = {1: uuid.UUID(int=1), 2: uuid.UUID(int=2)}
#: Columns, and how results show their two values.
KINDS: dict[str, tuple[Callable[[], Any], tuple[Any, Any]]] = {
    "int64": (lambda: halves(pa.int64(), NUMBERS), (1, 2)),
    "uint64": (lambda: halves(pa.uint64(), {1: 1, 2: 2**62}), (1, 2**62)),
    "double": (lambda: halves(pa.float64(), NUMBERS), (1.0, 2.0)),
    "zeros of either sign": (
        lambda: pa.chunked_array([[0.0, -0.0, None], [2.0, None, 0.0]]),
        (0.0, 2.0),
    ),
    "float16": (lambda: halves(pa.float16(), {k: np.float16(v) for k, v in NUMBERS.items()}), (1.0, 2.0)),
    "bool": (lambda: halves(pa.bool_(), {1: False, 2: True}), (False, True)),
    "string": (lambda: halves(pa.string(), TEXTS), ("one", "two")),
    "large_string": (lambda: halves(pa.large_string(), TEXTS), ("one", "two")),
    "string_view": (lambda: halves(pa.string_view(), TEXTS), ("one", "two")),
    "binary": (lambda: halves(pa.binary(), RAW), (b"one", b"two")),
    "binary_view": (lambda: halves(pa.binary_view(), RAW), (b"one", b"two")),
    "fixed binary": (lambda: halves(pa.binary(3), RAW), (b"one", b"two")),
    "date": (lambda: halves(pa.date32(), dict(enumerate(DAY, 1))), DAY),
    "date that is infinite": (
        lambda: halves(pa.int32(), {1: 1, 2: INFINITE_DAY}).cast(pa.date32()),
        ("1970-01-02", f"<value out of range: {INFINITE_DAY}>"),
    ),
    "timestamp that is infinite": (
        lambda: halves(pa.int64(), {1: 1, 2: INFINITE}).cast(pa.timestamp("us")),
        ("1970-01-01 00:00:00.000001", f"<value out of range: {INFINITE}>"),
    ),
    "timestamp of an unknown zone": (
        lambda: halves(pa.int64(), {1: 0, 2: 10**6}).cast(pa.timestamp("us", "Nowhere/Town")),
        (datetime.datetime(1970, 1, 1), datetime.datetime(1970, 1, 1, 0, 0, 1)),
    ),
    "duration": (
        lambda: halves(pa.duration("s"), NUMBERS),
        (datetime.timedelta(0, 1), datetime.timedelta(0, 2)),
    ),
    "decimal": (
        lambda: halves(pa.decimal128(5, 1), {1: decimal.Decimal(1), 2: decimal.Decimal(2)}),
        (decimal.Decimal("1.0"), decimal.Decimal("2.0")),
    ),
    "decimal32": (
        lambda: halves(pa.decimal32(5, 1), {1: decimal.Decimal(1), 2: decimal.Decimal(2)}),
        (decimal.Decimal("1.0"), decimal.Decimal("2.0")),
    ),
    "uuid": (
        lambda: halves(pa.uuid(), {k: v.bytes for k, v in UUIDS.items()}),
        tuple(map(str, UUIDS.values())),
    ),
    "run-end encoded": (lambda: run_ends(halves(pa.string(), TEXTS)), ("one", "two")),
    "dictionary": (
        lambda: coded(pa.array(["two", "one"]), [1, 1, None, 0, None, 1], pa.int32()),
        ("one", "two"),
    ),
    "dictionary that repeats a value": (
        lambda: coded(pa.array(["one", "two", "one"]), [0, 2, None, 1, None, 0], pa.int8()),
        ("one", "two"),
    ),
    "dictionary with a null": (
        lambda: coded(pa.array([None, "two", "one"]), [2, 2, 0, 1, None, 2], pa.int8()),
        ("one", "two"),
    ),
    "dictionary of views": (
        lambda: coded(pa.array(["one", "two"], pa.string_view()), [0, 0, None, 1, None, 0], pa.uint8()),
        ("one", "two"),
    ),
    "dictionary of float16": (
        lambda: coded(pa.array([np.float16(1), np.float16(2)]), [0, 0, None, 1, None, 0], pa.int16()),
        (1.0, 2.0),
    ),
    "dictionary of uuid": (
        lambda: coded(
            pa.array([v.bytes for v in UUIDS.values()], pa.uuid()), [0, 0, None, 1, None, 0], pa.int16()
        ),
        tuple(map(str, UUIDS.values())),
    ),
    "full dictionaries": (full_dictionaries, ("one", "two")),
    "pandas Int64": (lambda: pd.Series(named(NUMBERS), dtype="Int64"), (1, 2)),
    "pandas boolean": (lambda: pd.array(named({1: False, 2: True}), dtype="boolean"), (False, True)),
    "pandas category": (lambda: pd.Categorical(named(TEXTS)), ("one", "two")),
    "pandas Period": (
        lambda: pd.Series(pd.PeriodIndex(named({1: "2020-01", 2: "2020-02"}), freq="M")),
        ("2020-01", "2020-02"),
    ),
    "pandas interval": (
        lambda: pd.Series(pd.arrays.IntervalArray.from_tuples(named({1: (0, 1), 2: (1, 2)}))),
        ("(0.0, 1.0]", "(1.0, 2.0]"),
    ),
    "pandas cut": (lambda: pd.cut(pd.Series(named(NUMBERS)), [0, 1, 2]), ("(0, 1]", "(1, 2]")),
    "pandas string of Arrow": (lambda: pd.Series(named(TEXTS), dtype="string[pyarrow]"), ("one", "two")),
    "pandas uuid": (lambda: pd.Series(named(UUIDS), dtype=object), tuple(map(str, UUIDS.values()))),
    "polars string": (lambda: pl.Series(named(TEXTS)), ("one", "two")),
    "polars categorical": (lambda: pl.Series(named(TEXTS), dtype=pl.Categorical), ("one", "two")),
    "polars enum": (lambda: pl.Series(named(TEXTS), dtype=pl.Enum(["two", "one"])), ("one", "two")),
}


def sides(column: Any) -> tuple[fb.Clustering, pa.Table]:
    """Return a truth with an attribute, and a prediction that has an item more."""
    truth = fb.Clustering.from_table({"item": ITEMS, "cluster": TRUE, "kind": column}, name="the truth")
    return truth, pa.table({"item": [*ITEMS, "g"], "cluster": PRED})


def counted(table: Any) -> dict[Any, int]:
    """Return the number of items of each slice, in the order of the slices."""
    return dict(zip(table.column(0).to_pylist(), table["n_items"].to_pylist(), strict=True))


@pytest.mark.cases(3, 40)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", KINDS)
def test_slices_by_any_type(kind: str, engine: str, tmp_path: Any) -> None:
    make, (first, second) = KINDS[kind]
    expected = {first: COUNTS[1], second: COUNTS[2], None: COUNTS[None]}
    options = {**ENGINES[engine], "slices": ["kind"], "keep": "items", "unmatched": "singleton"}
    ev = quietly(*sides(make()), out=tmp_path / "out", **options)
    assert counted(ev.sliced["kind"]) == counted(ev.slices("kind")) == expected
    assert list(counted(ev.slices("kind"))) == [first, second, None]  # ascending, null last
    loaded = fb.load(tmp_path / "out")
    assert counted(loaded.slices("kind")) == expected
    shown = ev if engine == "memory" else loaded
    assert repr(shown.items("kind")) and repr(shown.cluster("pred", 1)) and shown.to_json()
    assert repr(shown.item("a", columns="kind")) and shown.source_pairs("kind").num_rows == 6
    crossed = ev.slices(("kind", "true_size"))
    assert sum(crossed["n_items"].to_pylist()) == 7
    given = {"item": ITEMS, "kind": make()}
    bare = pa.table({"item": ITEMS, "cluster": TRUE})
    ev = quietly(bare, sides(make())[1], attributes=given, **options)
    assert counted(ev.sliced["kind"]) == expected
    assert counted(loaded.slices("kind", attributes=given)) == expected


@pytest.mark.cases(4, 99)
@pytest.mark.parametrize("keep", ["cells", "items"])
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("make", [pa.nulls, lambda n: [None] * n, lambda n: pd.Series([None] * n)])
def test_a_column_of_nulls_is_one_slice(make: Any, engine: str, keep: Any) -> None:
    for by in ("kind", fb.bins("kind", 10)):
        ev = quietly(*sides(make(6)), slices=[by], unmatched="singleton", keep=keep, **ENGINES[engine])
        assert counted(ev.slices(by)) == {None: 7}


@pytest.mark.cases(4)
@pytest.mark.parametrize("kind", KINDS)
def test_slices_of_overlapping_clusterings_by_any_type(kind: str, tmp_path: Any) -> None:
    make, (first, second) = KINDS[kind]
    column = as_rows({"kind": make()}, "").column("kind")
    again = pa.chunked_array([*column.chunks, column.chunk(0).slice(0, 1)])
    truth = fb.Clustering.from_table({"item": [*ITEMS, "a"], "cluster": [*TRUE, 3], "kind": again})
    ev = quietly(truth, sides(make())[1], overlapping=True, slices=["kind"], unmatched="singleton")
    assert counted(ev.sliced["kind"]) == {first: COUNTS[1], second: COUNTS[2], None: COUNTS[None]}
    ev.save(tmp_path)
    assert counted(fb.load(tmp_path).slices("kind")) == counted(ev.sliced["kind"])


UNFIT: dict[str, tuple[Callable[[], Any], str]] = {
    "interval of time": (lambda: pa.array([(1, 2, 3)] * 6, pa.month_day_nano_interval()), "month_day_nano"),
    "union": (
        lambda: pa.UnionArray.from_sparse(pa.array([0] * 6, pa.int8()), [pa.array(range(6))]),
        "sparse_union",
    ),
    "struct without fields": (lambda: pa.array([{}] * 6, pa.struct([])), "struct<>"),
    "of mixed types": (lambda: pd.Series([1, "a"] * 3, dtype=object), "one type"),
    "complex": (lambda: np.arange(6) * 1j, "one type"),
}


@pytest.mark.cases(4, 99)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", UNFIT)
def test_what_cannot_be_written_is_left_out_by_name(kind: str, engine: str, tmp_path: Any) -> None:
    make, said = UNFIT[kind]
    with pytest.warns(EvaluationWarning, match="column 'kind' of the truth"):
        ev = fb.evaluate(*sides(make()), out=tmp_path, keep="items", unmatched="singleton", **ENGINES[engine])
    left_out = json.loads((tmp_path / "overall.json").read_text())["left_out"]
    assert list(left_out) == list(ev.kept.left_out) == ["truth.kind"]
    assert said in left_out["truth.kind"]
    loaded = fb.load(tmp_path)
    assert loaded.f1 == ev.f1
    assert loaded.kept.left_out == ev.kept.left_out
    assert "kind" not in " ".join(pq.read_schema(tmp_path / "items.parquet").names)
    error: Any = IdTypeError if "type" in said else ColumnError
    with refused(error, "'kind'", said):
        fb.evaluate(*sides(make()), slices=["kind"], **ENGINES[engine])
    with refused(error if engine == "memory" else ColumnError, "'kind'", said):
        ev.slices("kind")
    with refused(ColumnError, "'kind'", said):
        loaded.slices("kind")


NESTED = {
    "list": lambda: pa.array([["a"]] * 6),
    "list of views": lambda: pl.Series([["a"]] * 6),
    "struct": lambda: pa.array([{"a": 1}] * 6),
    "struct of views": lambda: pl.Series([{"a": "x"}] * 6).to_arrow(),
    "map": lambda: pa.array([[("a", 1)]] * 6, pa.map_(pa.string(), pa.int64())),
}
if ARROW >= 24:  # before, it does not read those that it has written where one is null
    NESTED["tensor"] = lambda: pa.FixedShapeTensorArray.from_numpy_ndarray(np.zeros((6, 2, 2)))


@pytest.mark.cases(4, 99)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", NESTED)
def test_nested_types_are_written_but_not_sliced_by(kind: str, engine: str, tmp_path: Any) -> None:
    ev = quietly(*sides(NESTED[kind]()), out=tmp_path, keep="items", unmatched="singleton", **ENGINES[engine])
    stored = pq.read_table(tmp_path / "items.parquet", columns=["truth.kind"]).column(0)
    assert (len(stored), stored.null_count) == (7, 1)
    for each in (ev, fb.load(tmp_path)):
        with refused(SliceError, "cannot slice by 'kind'"):
            each.slices("kind")


NOON, MIDNIGHT = datetime.datetime(2020, 1, 2, 12), datetime.datetime(2020, 1, 1)
ORDERED = {
    "integer beyond doubles": (pa.int64(), (1 << 53) + 1, 5),
    "date": (pa.date32(), NOON.date(), MIDNIGHT.date()),
    "date in ms": (pa.date64(), NOON.date(), MIDNIGHT.date()),
    "time in s": (pa.time32("s"), NOON.time(), MIDNIGHT.time()),
    "time in ns": (pa.time64("ns"), NOON.time(), MIDNIGHT.time()),
    "timestamp": (pa.timestamp("ns"), NOON, MIDNIGHT),
    "duration": (pa.duration("us"), NOON - MIDNIGHT, MIDNIGHT - NOON),
}


@pytest.mark.cases(5, 99)
@pytest.mark.parametrize("encoded", [False, True])
@pytest.mark.parametrize("kind", ORDERED)
def test_rows_are_ordered_by_numbers_and_times_largest_first(kind: str, encoded: bool) -> None:
    """Also where they are crossed, and in a diff; a null is last."""
    type_, *expected = ORDERED[kind]
    column = halves(type_, dict(enumerate(expected, 1)))
    truth, prediction = sides(column.dictionary_encode() if encoded else column)
    ev = quietly(truth, prediction, keep="items", unmatched="singleton")
    for found in (
        ev.slices("kind", order_by="kind"),
        ev.slices(("kind", "pred_size"), order_by="kind"),
        ev.items("kind", order_by="kind"),
        fb.diff(truth, prediction.slice(0, 6)).slices("kind", order_by="kind"),
    ):
        assert list(dict.fromkeys(map(plain, found["kind"]))) == [*expected, None]


def plain(value: pa.Scalar) -> Any:
    """Return a Python value; of times in nanoseconds the standard library's, not that of pandas."""
    found = value.as_py()
    return getattr(found, "to_pydatetime", lambda: found)()


@pytest.mark.cases(2, 99)
@pytest.mark.parametrize("kind", ["date", "binary", "decimal", "duration", "infinite"])
def test_names_of_slices_are_plain_in_all_results(kind: str) -> None:
    """A comparison and a sweep had dates that JSON does not know, and null for infinity."""
    infinite = pa.array([1.0, 1.0, None, float("inf"), None, 1.0])
    truth, prediction = sides(infinite if kind == "infinite" else KINDS[kind][0]())
    links = pa.table({"left": ITEMS[:5], "right": ITEMS[1:], "score": [1.0, 0.9, 0.8, 0.7, 0.6]})
    for result in (
        quietly(truth, prediction, unmatched="singleton", slices="kind"),
        fb.compare(truth, {"old": prediction, "new": prediction}, unmatched="singleton", slices="kind"),
        fb.sweep(truth, links, slices="kind"),
    ):
        (rows,) = result.to_dict()["slices"].values()
        names = {row["kind"] for row in rows}
        assert set(json.loads(json.dumps(list(names)))) == names and len(names) == 3


@pytest.mark.parametrize("letters", ["xyzxyz", "123123"])
def test_rows_are_not_ordered_by_text(letters: str) -> None:
    ev = quietly(*sides(pa.array(list(letters))), keep="items", unmatched="singleton")
    for listing in (ev.slices, ev.items):
        with refused(OptionError, "cannot order by 'kind', which is neither a number nor a time"):
            listing("kind", order_by="kind")


def test_types_that_differ_from_block_to_block(tmp_path: Any) -> None:
    """Row groups of two files: a width more is a width more, and text among numbers is refused by name."""
    prediction = pa.table({"item": range(4), "cluster": [1, 1, 2, 2]})
    for k, group in enumerate([pa.array([1, None], pa.int8()), pa.array([2**40, None], pa.int64())]):
        rows = pa.table({"item": [2 * k, 2 * k + 1], "cluster": [k, k], "kind": group})
        pq.write_table(rows, tmp_path / f"{k}.parquet")
    for options in ENGINES.values():
        found = fb.evaluate(tmp_path, prediction, slices=["kind"], keep="items", **options).sliced["kind"]
        assert counted(found) == {1: 1, 2**40: 1, None: 2}
    pq.write_table(rows.set_column(2, "kind", pa.array(["a", None])), tmp_path / "1.parquet")
    for options in ENGINES.values():
        with refused(ColumnError, "kind", "int8", "string"):
            fb.evaluate(tmp_path, prediction, slices=["kind"], **options)


#: Names that tables of slices have for themselves.
TAKEN = ("n_items", "weight", "precision", "recall_loss", "f1_se")


@pytest.mark.cases(2)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", TAKEN)
def test_attributes_may_be_called_as_columns_of_results(name: str, engine: str, tmp_path: Any) -> None:
    truth = pa.table({"item": ITEMS, "cluster": TRUE, name: halves(pa.string(), TEXTS)})
    prediction = pa.table({"item": ITEMS, "cluster": PRED[:6]})
    keys = [name, ("true_size", name)]
    ev = quietly(truth, prediction, slices=keys, out=tmp_path, keep="items", **ENGINES[engine])
    shown = name if name == "f1_se" else f"attribute.{name}"  # there are no standard errors here
    scores = [*fb.evaluate(truth, prediction).slices("true_size").column_names[1:]]
    for each in (ev, fb.load(tmp_path)):
        for table in (each.sliced[name], each.slices(name)):
            assert table.column_names == [shown, *scores]
            assert counted(table) == {"one": 3, "two": 1, None: 2}
        assert each.sliced[f"true_size,{name}"].column_names == ["true_size", shown, *scores]
        assert each.slices(name, errors=True).column_names[0] == f"attribute.{name}"
        assert each.check(f"f1>=0@{name}=two")["value"].to_pylist() == [
            row["f1"] for row in ev.slices(name).to_pylist() if row[shown] == "two"
        ]
    gates = ["--fail-under", f"f1=0@{name}=two", "--slice", name]
    paths = [tmp_path / "truth.parquet", tmp_path / "pred.parquet"]
    for path, table in zip(paths, (truth, prediction), strict=True):
        pq.write_table(table, path)
    base = ["evaluate", *map(str, paths)]
    assert main([*base, "--baseline", str(tmp_path), "--fail-worse", f"f1=0@{name}=two", *gates]) == 0


@pytest.mark.parametrize("engine", ENGINES)
def test_lists_of_dictionary_values_are_listed(engine: str) -> None:
    values = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0]), pa.array(["x", "y"]))
    lists = pa.ListArray.from_arrays(pa.array([0, 2, 3]), values)
    truth = pa.table({"item": ["a", "b"], "cluster": [1, 2], "tags": lists})
    ev = fb.evaluate(truth, {"a": 1, "b": 2}, keep="items", progress=False, **ENGINES[engine])
    found = {row["item"]: row["tags"] for row in ev.items(columns="tags").to_pylist()}
    assert found == {"a": ["x", "y"], "b": ["x"]}
