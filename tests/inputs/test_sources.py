"""Sources: keys of every id type, values back, nulls, wrong types, damaged files."""

from __future__ import annotations

import itertools
import subprocess
import sys
import uuid
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from containers import COLUMNS, TABLES, text
from effort import examples
from hypothesis import given
from hypothesis import strategies as st
from versions import ARROW, arrow_imports_no_pandas

import fastbcubed as fb
from fastbcubed.errors import (
    ColumnError,
    FileFormatError,
    IdTypeError,
    NullError,
    WeightError,
)
from fastbcubed.inputs import id_columns, keys
from fastbcubed.inputs import keys as fingerprints
from fastbcubed.inputs.arrays import from_numpy, from_texts, is_null, to_numpy
from fastbcubed.inputs.files import as_rows, open_files, read_integers, read_table
from fastbcubed.inputs.id_columns import as_column, comparable_keys, key_pair
from fastbcubed.inputs.tables import Source, read_columns, weight_array
from fastbcubed.runtime.threads import Pool

IDS = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 0]


def groups(values: Any) -> list[int]:
    """Give values numbers by first appearance, so that equal groupings compare equal."""
    seen: dict[Any, int] = {}
    return [seen.setdefault(value, len(seen)) for value in values]


@pytest.fixture(params=COLUMNS)
def build(request: pytest.FixtureRequest) -> Any:
    return COLUMNS[request.param]


def test_keys_are_equal_where_values_are(build: Any) -> None:
    column = as_column(build(IDS), "item")
    found = column.keys()
    assert found.dtype == np.int64
    assert not found.flags.writeable
    assert groups(found) == groups(IDS)
    assert column.null_rows is None
    assert len(column) == len(IDS)


def test_keys_of_two_columns_compare(build: Any) -> None:
    a, b = key_pair(as_column(build(IDS), "item"), as_column(build(IDS[::-1]), "item"))
    assert (a == b[::-1]).all()


def test_values_come_back(build: Any) -> None:
    column = as_column(build(IDS), "item")
    everything = column.take(np.arange(len(IDS))).to_pylist()
    assert groups(list(map(str, everything))) == groups(IDS)
    rows = np.array([11, 0, 5, 5])
    assert column.take(rows).to_pylist() == [everything[row] for row in rows]
    assert column.slice(2, 9).to_pylist() == everything[2:9]
    assert column.take(np.array([], dtype=np.int64)).to_pylist() == []


def test_values_are_found(build: Any) -> None:
    column = as_column(build(IDS), "item")
    values = column.take(np.arange(len(IDS))).to_pylist()
    value = tuple(values[4].values()) if column.kind == "composite" else values[4]
    assert column.find(value).tolist() == [4, 8, 10]


def test_empty_columns(build: Any) -> None:
    column = as_column(build(IDS), "item")
    empty = as_column(pa.chunked_array([], type=column.parts[0].type), "item")
    assert empty.keys().tolist() == []
    if column.kind != "composite":
        assert [len(found) for found in key_pair(column, empty)] == [len(IDS), 0]
        assert empty.take(np.array([], dtype=np.int64)).to_pylist() == []
        assert empty.slice(0, 0).to_pylist() == []


def test_same_keys_for_strings_in_every_type() -> None:
    kinds = [
        pa.string(),
        pa.large_string(),
        pa.string_view(),
        pa.dictionary(pa.int8(), pa.string()),
    ]
    columns = [as_column(pa.array(text(IDS), kind), "item") for kind in kinds]
    first, *others = comparable_keys(columns)
    assert all((first == other).all() for other in others)


def test_same_keys_for_integers_in_every_type() -> None:
    found = comparable_keys(
        [
            as_column(values, "item")
            for values in (
                IDS,
                np.array(IDS, np.int8),
                np.array(IDS, np.uint64),
                pd.Series(IDS, dtype="category"),
                pa.array(IDS).dictionary_encode(),
            )
        ]
    )
    assert all(keys.tolist() == IDS for keys in found)


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_keys_do_not_depend_on_threads(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        fingerprints, "blocks", lambda n, size=0: [(i, min(i + 100, n)) for i in range(0, n, 100)]
    )
    monkeypatch.setattr(fingerprints, "FEW_VALUES", 0)  # of few, texts are compared themselves
    names = text(range(1000))
    columns = [pa.chunked_array([names[:333], names[333:]]), pa.array(names).dictionary_encode()]
    with Pool(threads) as pool:
        found = comparable_keys([as_column(column, "item") for column in columns], pool)
    alone = as_column(names, "item").keys()
    assert all((keys == alone).all() for keys in found)


@given(st.lists(st.binary(max_size=40), max_size=60))
def test_bytes_of_any_length(values: list[bytes]) -> None:
    for kind in (pa.binary(), pa.large_binary(), pa.binary_view()):
        assert groups(as_column(pa.array(values, kind), "item").keys()) == groups(values)


@given(st.lists(st.tuples(st.text(max_size=3), st.text(max_size=3)), max_size=20))
def test_composites_do_not_run_together(values: list[tuple[str, str]]) -> None:
    parts = [pa.chunked_array([pa.array(part, pa.string())]) for part in zip(*values, strict=True)]
    if parts:
        column = as_column(pa.StructArray.from_arrays([p.combine_chunks() for p in parts], ["a", "b"]), "id")
        assert groups(column.keys()) == groups(values)


def test_zeros_and_lengths_differ() -> None:
    values = [b"\0" * size for size in range(70)] + [b"a" * size for size in range(1, 70)]
    assert len(set(as_column(values, "item").keys().tolist())) == len(values)


def test_many_strings_do_not_collide() -> None:
    column = as_column(pa.array(np.arange(100_000)).cast(pa.string()), "item")
    assert len(np.unique(column.keys())) == 100_000


# --- narrow keys ---


def test_narrow_keys_are_equal_where_values_are(build: Any) -> None:
    column = as_column(build(IDS), "item")
    found = column.keys(narrow=True)
    assert found.dtype in (np.int32, np.int64)
    assert not found.flags.writeable
    assert groups(found) == groups(IDS)
    assert keys.widened(found, Pool(1)).tolist() == found.tolist()


@pytest.mark.parametrize("kind", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"])
def test_integers_of_at_most_32_bits_are_narrow(kind: str) -> None:
    bounds = np.iinfo(kind)
    values = np.array([bounds.min, 0, 1, bounds.max, 1], kind)
    for data in (
        values,
        pa.chunked_array([values[:2], values[2:]]),
        pa.chunked_array([], pa.from_numpy_dtype(values.dtype)),
    ):
        column = as_column(data, "item")
        found = column.keys(narrow=True)
        assert found.dtype == (
            np.int32 if kind in ("i1", "u1", "i2", "u2", "i4") or not len(data) else np.int64
        )
        assert found.tolist() == column.keys().tolist()
    shared = np.shares_memory(as_column(values, "item").keys(narrow=True), values)
    assert shared == (kind in ("i4", "i8", "u8"))


@pytest.mark.parametrize(
    ("values", "narrow"), [([-(2**31), 2**31 - 1], True), ([0, 2**31], False), ([], True)]
)
def test_integers_of_dictionaries_are_narrow_where_all_are(values: list[int], narrow: bool) -> None:
    codes = pa.array([0, 1, 1, 0][: 2 * len(values)], pa.int8())
    data = pa.chunked_array([pa.DictionaryArray.from_arrays(codes, pa.array(values, pa.int64()))])
    column = as_column(data, "item")
    found = column.keys(narrow=True)
    assert found.dtype == (np.int32 if narrow else np.int64)
    assert found.tolist() == column.keys().tolist() == [values[code] for code in codes.to_pylist()]


# --- integers at the border ---


def test_integers_are_not_copied() -> None:
    values = np.arange(1000)
    for given_values in (values, pa.array(values), pa.array(values).slice(10)):
        found = as_column(given_values, "item").keys()
        assert np.shares_memory(found, values)
    assert np.shares_memory(as_column(values.astype(np.uint64), "item").keys(), values) is False
    wide = values.astype(np.uint64)
    assert np.shares_memory(as_column(wide, "item").keys(), wide)


def test_integers_with_nulls_beyond_2_53() -> None:
    for values in (
        pd.Series([2**53, None, 2**53 + 1], dtype="Int64"),
        pa.array([2**53, None, 2**53 + 1]),
        [2**53, None, 2**53 + 1],
        pd.Series([2**53, None, 2**53 + 1], dtype=object),
        pl.Series([2**53, None, 2**53 + 1]),
    ):
        column = as_column(values, "item")
        assert column.null_rows is not None
        assert column.null_rows.tolist() == [False, True, False]
        assert column.keys()[[0, 2]].tolist() == [2**53, 2**53 + 1]


@pytest.mark.parametrize("coded", [False, True])
def test_wide_unsigned_does_not_meet_negative(coded: bool) -> None:
    signed, unsigned = pa.array([-1, 5, 7]), pa.array([2**64 - 1, 5, 8], pa.uint64())
    if coded:
        signed = signed.dictionary_encode()
    a, b = key_pair(as_column(signed, "item"), as_column(unsigned, "item"))
    assert a[0] != b[0]
    assert a[1] == b[1]
    assert len({*a.tolist(), *b.tolist()}) == 5


def test_python_integers_beyond_int64() -> None:
    assert as_column([2**63, 2**63 + 1], "item").keys().tolist() == [-(2**63), -(2**63) + 1]
    for values in ([-1, 2**63], [2**64], [10**400], pd.Series([2**64], dtype=object)):
        with pytest.raises(IdTypeError, match="int64 or uint64, cannot hold"):
            as_column(values, "item")


# --- numbers to Arrow and back ---


@pytest.mark.parametrize("kind", "i1 i2 i4 i8 u1 u2 u4 u8 f2 f4 f8 ? >i4 >f8".split())
def test_numbers_to_arrow_and_back(kind: str) -> None:
    numbers = np.arange(20).astype(kind)
    for values in (numbers, numbers[::2], numbers[3:], numbers[:0]):
        mask = np.arange(len(values)) % 3 == 0
        plain, masked = from_numpy(values), from_numpy(values, mask)
        plain.validate(full=True)
        masked.validate(full=True)
        assert plain.to_pylist() == values.tolist()
        assert masked.to_pylist() == [None if m else v for m, v in zip(mask, values.tolist(), strict=True)]
        for start in range(len(values) + 1):
            assert to_numpy(plain[start:]).tolist() == values[start:].tolist()
            assert is_null(masked[start:]).tolist() == mask[start:].tolist()
            assert not is_null(plain[start:]).any()


def test_numbers_are_not_copied_to_arrow() -> None:
    values = np.arange(9)
    values.flags.writeable = False
    assert np.shares_memory(to_numpy(from_numpy(values)), values)
    odd = np.frombuffer(b"-" + values.tobytes(), dtype=np.int64, offset=1)  # not aligned
    assert from_numpy(odd).to_pylist() == values.tolist()
    assert is_null(pa.nulls(2)).all()
    assert to_numpy(pa.chunked_array([[1, 2], [3]])).tolist() == [1, 2, 3]
    assert to_numpy(pa.chunked_array([], pa.int8())).dtype == np.int8
    assert np.shares_memory(to_numpy(pa.chunked_array([from_numpy(values)])), values)


@pytest.mark.parametrize("values", [[], [None], ["a", None, "", "ü"] * 5])
def test_texts_to_arrow(values: list[str | None]) -> None:
    made = from_texts(values)
    made.validate(full=True)
    assert made.to_pylist() == values


WITHOUT_PANDAS = """
import sys
import numpy as np
import pyarrow.parquet as pq
from fastbcubed.runtime.threads import Pool
from fastbcubed.inputs.pair import Given, read_pair
from fastbcubed.inputs.id_columns import key_pair
folder = sys.argv[1]
labels = np.arange(4)
pair = read_pair(Given(labels, labels, weight=labels + 0.5))
pair.first[0].labels.keys()
for path in (f"{folder}/rows.parquet", f"{folder}/hive", f"{folder}/rows.arrow"):
    truth, prediction = read_pair(Given(path, path, weight="w")).first
    with Pool(1) as pool:
        key_pair(truth.items, prediction.items, pool)
        truth.labels.keys(pool)
    truth.labels.null_rows, truth.labels.take(labels), truth.attributes.column("g")
assert "pandas" not in sys.modules
"""


@pytest.mark.process
@arrow_imports_no_pandas
def test_pandas_is_not_imported(tmp_path: Path) -> None:
    """It takes longer to import than the rest."""
    rows = pa.table(
        {
            "item": text(range(4)),
            "cluster": pa.array([1, None, 1, 2]),
            "w": [1.0, 2.0, 3.0, 4.0],
            "g": pa.array(["x", "y", None, "y"]).dictionary_encode(),
        }
    )
    pq.write_table(rows, tmp_path / "rows.parquet")
    (tmp_path / "hive" / "part=1").mkdir(parents=True)
    pq.write_table(rows, tmp_path / "hive" / "part=1" / "a.parquet", row_group_size=2)
    with pa.ipc.new_file(tmp_path / "rows.arrow", rows.schema) as file:
        file.write_table(rows)
    command = [sys.executable, "-c", WITHOUT_PANDAS, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


# --- nulls ---


def test_null_rows() -> None:
    nothing = None
    cases: list[tuple[Any, list[bool]]] = [
        (["a", nothing, float("nan")], [False, True, True]),
        ([nothing, nothing], [True, True]),
        (pd.Series(["a", nothing], dtype="category"), [False, True]),
        (pd.Series(["a", np.nan], dtype=object), [False, True]),
        (np.ma.masked_array([1, 2], mask=[False, True]), [False, True]),
        ([("a", 1), ("b", nothing), nothing], [False, True, True]),
        (pa.DictionaryArray.from_arrays([0, 1, nothing], ["a", nothing]), [False, True, True]),
        (
            pa.DictionaryArray.from_arrays(pa.array([nothing], pa.int8()), pa.array([], pa.string())),
            [True],
        ),
        (pa.chunked_array([["a"], [nothing]]), [False, True]),
    ]
    for values, expected in cases:
        column = as_column(values, "item")
        assert column.null_rows is not None, values
        assert column.null_rows.tolist() == expected
        assert len(column.keys()) == len(expected)


def test_null_ids_are_refused_where_ids_are_matched() -> None:
    for values in ([1, None], pd.Series([1, None], dtype="Int64"), pa.array(["", None]), [(1, 2), (3, None)]):
        column = as_column(values, "item", "the requested items")
        column.keys()  # fine for labels
        sound = as_column(column.slice(0, 1), "item")
        for pair in ((column, sound), (sound, column)):
            with pytest.raises(
                NullError, match=r"1 of 2 item ids are null in the (requested )?items .*first rows: 1"
            ):
                key_pair(*pair)


# --- types ---


@pytest.mark.parametrize(
    ("values", "hint"),
    [
        ([1.5, 2.0], "cast them to int64"),
        (np.array([1.5, np.nan]), "1 of 2 values are not whole"),
        (pd.Series([1.5, None]), "Int64"),
        (pd.Series([1.5, 2.0], dtype="category"), "cast them to int64"),
        ([2.0**53, 1.0], "1 of 2 values are 9,007,199,254,740,992 or more"),
        ([True, False], "Cast to int64 or string"),
        (pl.Series([True]), "Cast to int64 or string"),
        (pd.to_datetime(pd.Series(["2020-01-01"])), "Cast to string"),
        (pa.array([[1], [2]]), "several columns"),
        ([1, "a"], "one type"),
        ([1, True], "one type"),
        (["a", b"a"], "1 of 2 values are text"),
        (pd.Series([b"a", "a", "b"], dtype=object), "2 of 3 values are text"),
        (pd.Categorical(["a", b"a"]), "mixes bytes and text"),
        (np.array([b"a", "a"], dtype=object), "mixes bytes and text"),
        (pd.Index(["a", b"a"]), "mixes bytes and text"),
        ([("a", 1), (b"a", 1)], "mixes bytes and text"),
        (["\ud800"], "one type"),
        (["x" * 10**6, 1], "one type"),
        ([("a", 1), ("a",)], r"column 'item': .*tuples of 2 values.* 1 of 2 are not"),
        (np.array([1, "a"], dtype=object), "one type"),
    ],
)
def test_types_that_name_nothing(values: Any, hint: str) -> None:
    with pytest.raises(IdTypeError, match=hint) as caught:
        as_column(values, "item")
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    "values",
    [np.array([]), np.array([], dtype=bool), pd.Series([], dtype=float), pd.Series([], dtype=object), []],
)
def test_nothing_is_of_any_type(values: Any) -> None:
    column = as_column(values, "item")
    assert len(column) == len(column.keys()) == len(column.take(np.array([], dtype=np.int64))) == 0
    key_pair(column, as_column(["a"], "item"))


@pytest.mark.parametrize("values", [[()], pa.array([{}], pa.struct([]))])
def test_ids_without_parts(values: Any) -> None:
    with pytest.raises(ColumnError, match="An id needs at least one part, but"):
        as_column(values, "item")


@pytest.mark.parametrize(
    "values",
    [
        pd.DataFrame({"a": [1]}),
        pl.DataFrame({"a": [1]}),
        pl.DataFrame({"a": [1]}).lazy(),
        pa.table({"a": [1]}),
        {"a": [1]},
        {1, 2},
        "abc",
        5,
        np.ones((2, 2), dtype=int),
        np.array(5),
    ],
)
def test_what_is_not_a_column(values: Any) -> None:
    with pytest.raises(ColumnError):
        as_column(values, "item")


@pytest.mark.parametrize(
    ("a", "b"),
    [([1], ["1"]), (["1"], [b"1"]), ([(1, "a")], [("a", 1)]), ([(1, "a")], [1]), ([1], [(1, 2)])],
)
def test_kinds_that_never_match(a: Any, b: Any) -> None:
    with pytest.raises(IdTypeError, match="never match"):
        key_pair(as_column(a, "item"), as_column(b, "item"))


def test_find_rejects_other_types() -> None:
    with pytest.raises(IdTypeError, match="'1' cannot be in column 'item', which has type int64"):
        as_column([1, 2], "item").find("1")
    with pytest.raises(IdTypeError, match="it is not valid text"):
        as_column(["a"], "item").find("\ud800")
    with pytest.raises(IdTypeError, match="tuples of 2"):
        as_column([(1, 2)], "item").find(1)
    assert as_column([1, 2], "item").find(2**70).tolist() == []
    assert as_column([1, None], "item").find(np.int32(1)).tolist() == [0]
    name = uuid.uuid4()
    assert as_column(pa.array([name.bytes], pa.uuid()), "item").find(name).tolist() == [0]


# --- data that are not valid ---


def mislabelled(values: list[bytes | None], kind: pa.DataType) -> pa.Array:
    """Return bytes that claim to be text."""
    width = {pa.string(): pa.binary(), pa.large_string(): pa.large_binary()}.get(kind, pa.binary_view())
    return pa.Array.from_buffers(kind, len(values), pa.array(values, width).buffers())


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()], ids=str)
def test_text_that_is_not_utf8(kind: pa.DataType, tmp_path: Path) -> None:
    bad = mislabelled([b"a", b"\xff", None, "ü".encode(), b"b" * 20 + b"\xe9", b"\xff"], kind)
    said = r"3 of 6 strings in .* are not UTF-8 \(first: b'.xff', b'b{20}.xe9', b'.xff' in rows 1, 4, 5\)"
    coded = pa.DictionaryArray.from_arrays(pa.array(range(6)), bad)
    for values in (bad, pa.chunked_array([bad[:2], bad[2:]]), coded, bad[:].dictionary_encode()):
        with pytest.raises(IdTypeError, match=said):
            as_column(values, "item").keys()
        with pytest.raises(IdTypeError, match=said):
            as_rows(pa.table({"g": values}), "the attributes").column("g")  # type: ignore[union-attr]
    with pytest.raises(IdTypeError, match=r"1 of 1 strings in the ids"):
        as_column(pa.StructArray.from_arrays([bad[1:2], pa.array([1])], ["a", "b"]), "id", "the ids").keys()
    as_column(bad[2:4], "item").keys()
    if ARROW < 21 and kind == pa.string_view():
        return  # it writes none
    pq.write_table(pa.table({"item": bad}), tmp_path / "a.parquet")
    with pytest.raises(IdTypeError, match=r"strings in column 'item' of .*a\.parquet"):
        open_files(tmp_path / "a.parquet").column("item")


@pytest.mark.parametrize("values", [["a", "b"], [7, 8]])
@pytest.mark.parametrize("kind", [pa.int8(), pa.uint64()], ids=str)
def test_codes_that_are_not_in_the_dictionary(values: list[Any], kind: pa.DataType) -> None:
    def coded(codes: list[Any]) -> pa.DictionaryArray:
        return pa.DictionaryArray.from_arrays(pa.array(codes, kind), pa.array(values), safe=False)

    with pytest.raises(IdTypeError, match=r"2 of 4 codes in column 'item' .*first rows: 1, 3"):
        as_column(pa.chunked_array([coded([0, 5]), coded([1, 2])]), "item").keys()
    with pytest.raises(IdTypeError, match="1 of 1 codes"):
        as_column(coded([0, 2])[1:], "item").keys()
    assert groups(as_column(coded([0, 5, 1, 0])[2:], "item").keys()) == [0, 1]
    hidden = from_numpy(np.array([0, 9, 1], kind.to_pandas_dtype()), np.array([False, True, False]))
    column = as_column(pa.DictionaryArray.from_arrays(hidden, pa.array(values), safe=False), "item")
    assert groups(column.keys()[[0, 2]]) == [0, 1]
    assert column.find(values[1]).tolist() == [2]
    if kind == pa.int8():
        with pytest.raises(IdTypeError, match="1 of 2 codes"):
            as_column(coded([0, -1]), "item").keys()


@pytest.mark.slow
def test_dictionaries_that_hold_a_null_beside_empty_ones() -> None:
    """A null is a null as code, as value, in an empty dictionary, and where its code is of no value."""

    def coded(codes: list[int], nulls: list[bool], values: list[str | None]) -> pa.DictionaryArray:
        indices = from_numpy(np.array(codes, np.int32), np.array(nulls))
        return pa.DictionaryArray.from_arrays(indices, pa.array(values, pa.string()), safe=False)

    chunks = [
        (coded([1, 0], [False, False], ["a", None]), [None, "a"]),
        (coded([0, 0], [True, True], []), [None, None]),
        (coded([0, 0, 9], [False, True, True], ["b"]), ["b", None, None]),
        (coded([2, 9, 0], [False, True, False], [None, "b", "a"]), ["a", None, None]),
        (coded([0], [False], [None]), [None]),
    ]
    for order in itertools.permutations(chunks):
        column = as_column(pa.chunked_array([chunk for chunk, _ in order]), "item")
        values = [value for _, expected in order for value in expected]
        assert column.null_rows is not None
        assert column.null_rows.tolist() == [value is None for value in values]
        known = [row for row, value in enumerate(values) if value is not None]
        assert groups(column.keys()[known]) == groups([values[row] for row in known])


# --- the proof ---


def pairs(first: list[int], second: list[int]) -> tuple[np.ndarray, np.ndarray]:
    return np.array(first, dtype=np.uint64), np.array(second, dtype=np.uint64)


def test_collisions_are_found() -> None:
    with Pool(2) as pool:
        assert not fingerprints.find_collision([], pool)
        assert not fingerprints.find_collision([pairs([1, 2, 1], [5, 5, 5])], pool)
        assert fingerprints.find_collision([pairs([1, 2, 1], [5, 5, 6])], pool)
        assert fingerprints.find_collision([pairs([1], [5]), pairs([2, 1], [5, 6])], pool)


@pytest.mark.parametrize("planted", [False, True])
@pytest.mark.parametrize("heavy", [False, True])
def test_collisions_among_many(planted: bool, heavy: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many partitions in several rounds; one partition is too large to copy if heavy."""
    monkeypatch.setattr(fingerprints, "PARTITION", 64)
    monkeypatch.setattr(fingerprints, "HEAVY", 512)
    monkeypatch.setattr(fingerprints, "SCRATCH", 1024)
    monkeypatch.setattr(fingerprints, "BLOCK", 256)
    rng = np.random.default_rng(7)
    first = rng.integers(0, 2**64, 5000, dtype=np.uint64)
    if heavy:
        first[rng.random(5000) < 0.5] = first[0]
        first[1000:3000] = (first[0] >> np.uint64(50) << np.uint64(50)) + first[1000:3000] % np.uint64(2**40)
    second = first ^ np.uint64(12345)
    if planted:
        first[4321] = first[0]
        second[4321] = second[0] + np.uint64(1)
    with Pool(2) as pool:
        assert fingerprints.find_collision([(first, second)], pool) is planted
        halves = [(first[:2000], second[:2000]), (first[2000:], second[2000:])]
        assert fingerprints.find_collision(halves, pool) is planted


@pytest.mark.parametrize("planted", [False, True])
@examples(30)
@given(st.lists(st.integers(0, 30), min_size=20, max_size=300), st.integers(0, 9), st.integers(0, 2**20))
def test_collisions_where_pairs_repeat(planted: bool, values: list[int], bits: int, seed: int) -> None:
    """Of pairs that repeat most are dropped, and none that is alone."""
    first = np.array([v << bits | v for v in values], dtype=np.uint64)  # slots that several share
    second = first ^ np.uint64(12345)
    kept: list[Any] = []
    with pytest.MonkeyPatch().context() as patch, Pool(2) as pool:
        for name, value in {
            "FEWEST_TO_SAMPLE": 1,
            "MANY_REPEATS": 0.0,
            "SEEN": 4,
            "ROWS_AT_ONCE": 64,
        }.items():
            patch.setattr(fingerprints, name, value)
        row = seed % first.size
        if planted:
            second[row] += np.uint64(1)
        alone = int((first == first[row]).sum()) == 1
        assert fingerprints.find_collision([(first, second)], pool) is (planted and not alone)
        kept = fingerprints._without_repeats(first, second, pool)
    found = {pair for one, other in kept for pair in zip(one.tolist(), other.tolist(), strict=True)}
    assert found == set(zip(first.tolist(), second.tolist(), strict=True))
    assert sum(one.size for one, _ in kept) <= first.size


def test_a_collision_leads_to_another_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = as_column(["a", "b"], "item").keys()
    write, seeds = fingerprints.write_pairs, []
    monkeypatch.setattr(keys, "FEW_VALUES", 0)  # of few, texts are compared themselves

    def collide_first(parts: Any, seed: int, pool: Pool) -> Any:
        seeds.append(seed)
        found, checked = write(parts, seed, pool)
        if seed == 0:
            found[:] = 1
        return found, checked

    monkeypatch.setattr(id_columns, "write_pairs", collide_first)
    a, b = key_pair(as_column(["a", "b"], "item"), as_column(["b"], "item"))
    assert seeds == [0, 0, 1, 1]
    assert a[1] == b[0] != a[0]
    assert a[0] != plain[0]
    monkeypatch.setattr(id_columns, "HASH_SEEDS", 1)
    with pytest.raises(IdTypeError, match="collide"):
        as_column(["a", "b"], "item").keys()


# --- tables and files ---


@pytest.mark.parametrize("build_table", TABLES.values(), ids=TABLES)
def test_tables_of_every_container(build_table: Any, tmp_path: Path) -> None:
    items, clusters = text(range(8)), [5, 5, 6, 7, 7, 7, -1, 5]
    table = read_table(build_table(items, clusters, tmp_path), ["item", "cluster"])
    assert table.column_names == ["item", "cluster"]
    assert list(map(str, table.column("item").to_pylist())) == items
    assert table.column("cluster").to_pylist() == clusters


def test_dict_of_columns() -> None:
    assert read_table({"a": [1, 2], "b": np.array([3, 4])}).to_pydict() == {
        "a": [1, 2],
        "b": [3, 4],
    }
    with pytest.raises(ColumnError, match="a has 2, b has 1"):
        read_table({"a": [1, 2], "b": [3]})
    with pytest.raises(ColumnError, match="is neither"):
        read_table({"a": 1})
    with pytest.raises(ColumnError, match="Expected a table"):
        read_table([1, 2])


def test_unknown_and_repeated_columns() -> None:
    with pytest.raises(ColumnError, match=r"no column 'c' in the table \(columns: a, b\)"):
        read_table(pa.table({"a": [1], "b": [2]}), ["c"])
    with pytest.raises(ColumnError, match="are 2 columns named 'a'"):
        read_table(pa.table([[1], [2]], names=["a", "a"]), ["a"])
    with pytest.raises(ColumnError, match=r"no column 'a' in the table \(which has none\)"):
        read_table(pd.DataFrame(), ["a"])


def test_folders_are_columns(tmp_path: Path) -> None:
    path = TABLES["parquet hive"](text(range(4)), [1, 1, 2, 2], tmp_path)
    rows = open_files(path)
    assert rows.names == ("item", "cluster", "extra", "part")
    assert rows.column("part").to_pylist() == [1, 1, 2, 2]
    assert len(rows) == 4
    (tmp_path / "hive" / "part=1").rename(tmp_path / "hive" / "part=x")
    assert open_files(tmp_path / "hive" / "*" / "*.parquet").column("part").to_pylist() == [
        "2",
        "2",
        "x",
        "x",
    ]


def test_files_of_different_columns_and_types(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"a": ["x"], "b": [1]}), tmp_path / "2.parquet")
    rows = open_files(tmp_path)
    with pytest.raises(ColumnError, match="several types"):
        rows.column("a")
    pq.write_table(pa.table({"b": [1]}), tmp_path / "2.parquet")
    with pytest.raises(ColumnError, match="lacks the column 'a'"):
        open_files(tmp_path).column("a")


def test_only_what_is_needed_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = TABLES["parquet"](["a"], [1], tmp_path)
    rows = open_files(path)
    read: list[Any] = []
    original = pq.ParquetFile.read_row_groups
    monkeypatch.setattr(
        pq.ParquetFile,
        "read_row_groups",
        lambda self, groups, columns: read.append(columns) or original(self, groups, columns),
    )
    rows.columns(["item", "cluster"])
    assert read == [["item", "cluster"]]


def test_csv_types() -> None:
    def types(*values: str | None) -> str:
        return str(read_integers(pa.chunked_array([pa.array(values, pa.string())])).type)

    assert types("1", "-2", None) == "int64"
    assert types("007", "8") == "string"
    assert types("1.0", "2") == "double"  # whole numbers, as pandas writes them beside a gap
    assert types("12e4", "13e5") == types("+1", "2") == "string"
    assert types("12345678901234567890", "1") == "string"
    assert types("a", "1") == "string"
    assert types(None, None) == "string"


def test_csv_names_stay_as_written(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('item,cluster\n"NA",1\n007,2\n,3\n')
    table = read_table(tmp_path / "a.csv")
    assert table.column("item").to_pylist() == ["NA", "007", None]
    (tmp_path / "b.csv").write_text("item,cluster\n8,1\n9,2\n")
    assert read_table(tmp_path).column("item").to_pylist() == ["NA", "007", None, "8", "9"]


def test_faults_of_files(tmp_path: Path) -> None:
    good = TABLES["parquet"](["a", "b"], [1, 1], tmp_path)
    whole = good.read_bytes()
    cases: dict[str, bytes] = {
        "empty.parquet": b"",
        "text.parquet": b"item,cluster\na,1\n",
        "short.parquet": whole[: len(whole) // 2],
        "tiny.parquet": b"PAR1",
        "hollow.parquet": b"PAR1PAR1PAR1",
        "footer.parquet": whole[:-20] + b"\xff" * 12 + whole[-8:],
        "encrypted.parquet": b"PARE" + whole[4:-4] + b"PARE",
        "short.arrow": TABLES["ipc file"](["a"], [1], tmp_path).read_bytes()[:-9],
        "stream.arrows": b"\xff\xff\xff\xff" + b"\x10\0\0\0" + b"x" * 30,
        "ragged.csv": b"item,cluster\na,1\nb\n",
        "empty.csv": b"",
    }
    for name, content in cases.items():
        path = tmp_path / name
        path.write_bytes(content)
        with pytest.raises(FileFormatError, match=name):
            read_table(path)
    for absent, found in {
        tmp_path / "absent.parquet": "There is no file",
        tmp_path / "nowhere" / "a.parquet": "no folder",
        tmp_path / "*.pq": "No file matches",
        "warp://bucket/a.parquet": "warp://bucket/a.parquet cannot be",
    }.items():
        with pytest.raises(FileFormatError, match=found):
            read_table(absent)
    (tmp_path / "hollow").mkdir()
    with pytest.raises(FileFormatError, match="no files"):
        read_table(tmp_path / "hollow")
    (tmp_path / "hollow" / "notes.txt").touch()
    with pytest.raises(FileFormatError, match=r"only notes\.txt"):
        read_table(tmp_path / "hollow")
    (tmp_path / "mixed").mkdir()
    (tmp_path / "mixed" / "a.parquet").write_bytes(whole)
    TABLES["ipc file"](["a"], [1], tmp_path).rename(tmp_path / "mixed" / "b.parquet")
    with pytest.raises(FileFormatError, match="mixes formats"):
        read_table(tmp_path / "mixed")
    (tmp_path / "mixed" / "c.csv").write_text("item,cluster\nc,2\n")  # it was left out, without a word
    with pytest.raises(
        FileFormatError, match=r"several formats: a\.parquet among 2 and c\.csv among 1\. Select"
    ):
        read_table(tmp_path / "mixed")


def test_a_file_that_changes_is_noticed(tmp_path: Path) -> None:
    path = TABLES["parquet"](["a", "b"], [1, 1], tmp_path)
    rows = open_files(path)
    TABLES["parquet"](["a"], [1], tmp_path)
    with pytest.raises(FileFormatError, match="changed"):
        rows.column("item")


def test_checksums_are_verified(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    table = pa.table({"item": np.arange(1000), "cluster": np.arange(1000)})
    pq.write_table(table, path, write_page_checksum=True, use_dictionary=False, compression="none")
    content = bytearray(path.read_bytes())
    content[2000] ^= 1
    path.write_bytes(content)
    with pytest.raises(FileFormatError, match="damaged"):
        read_table(path)


# --- weights ---


def test_weights() -> None:
    values = np.array([1.0, 2.0])
    assert np.shares_memory(weight_array(values, "weight"), values)
    assert weight_array(pa.chunked_array([[1], [2]]), "weight").tolist() == [1.0, 2.0]
    assert weight_array([1, 2], "weight").dtype == np.float64
    assert weight_array([], "weight").tolist() == []
    assert weight_array(pa.array([1, 2, 3])[1:], "weight").tolist() == [2.0, 3.0]
    assert weight_array(np.ma.masked_array([1.0, 2.0], mask=[False, False]), "weight").tolist() == [1.0, 2.0]
    chunks = [pa.DictionaryArray.from_arrays([1, 0], [1.0, 2.5]), pa.DictionaryArray.from_arrays([0], [7.0])]
    assert weight_array(pa.chunked_array(chunks), "weight").tolist() == [2.5, 1.0, 7.0]
    assert weight_array(pd.Categorical([3, 1, 3]), "weight").tolist() == [3.0, 1.0, 3.0]
    runs = pa.RunEndEncodedArray.from_arrays([2, 3], [1.5, 4.0])
    assert weight_array(runs, "weight").tolist() == [1.5, 1.5, 4.0]
    for bad, found in (
        (["a"], "numbers"),
        (pd.Categorical([3, None]), "1 of 2"),
        (pd.Categorical(["a"]), "should be numbers, but the type is .*string"),
        ([True], "numbers"),
        (pd.Series([1.0, np.nan]), "1 of 2 .*first rows: 1"),
        ([1.0, None], "null"),
        (np.ma.masked_array([1.0, 2.0], mask=[False, True]), "1 of 2"),
        ([1, 2, "x"], "should be numbers"),
        (["1", "2"], "should be numbers, but the type is string"),
        ([1 + 2j], "should be numbers"),
        ([10**400, 1], "should be numbers"),
        ([Fraction(1, 2)], "should be numbers"),
        (np.array([1, 2], dtype=np.longdouble), "should be numbers"),
        (2.0, "one-dimensional array or list, not float"),
        ({1, 2}, "one-dimensional array or list, not set"),
        (np.ones((2, 1)), r"shape \(2, 1\)"),
    ):
        with pytest.raises(WeightError, match=found):
            weight_array(bad, "weight")


def test_weights_of_a_csv(tmp_path: Path) -> None:
    """Whatever reads as a number is one; ids of the same form stay text."""
    path = tmp_path / "a.csv"

    def weights(*written: str) -> list[float]:
        path.write_text("".join(f"{one}\n" for one in ("w", *written)))
        _, values = read_columns(open_files(path), [], "w")
        assert values is not None
        return values.tolist()

    assert weights("01", "+5", "1e3", ".5", "5.", "-2E-1") == [1.0, 5.0, 1000.0, 0.5, 5.0, -0.2]
    assert weights("99999999999999999999", "1") == [1e20, 1.0]
    assert weights("1", "2") == [1.0, 2.0]
    with pytest.raises(
        WeightError, match=r"'w' of .*a.csv .* 3 of 5 .*first: 'x', '1,5', '0x10' in rows 1, 3, 4"
    ):
        weights("01", "x", "inf", '"1,5"', "0x10")
    path.write_text("a,w\n1,01\n2,\n")
    with pytest.raises(WeightError, match=r"1 of 2 values .*null"):
        read_columns(open_files(path), [], "w")


def test_inputs_are_not_changed() -> None:
    for build_column in COLUMNS.values():
        given_values = build_column(IDS)
        before = repr(given_values)
        key_pair(as_column(given_values, "a"), as_column(given_values, "b"))
        assert repr(given_values) == before


def test_a_frame_that_is_changed_afterwards_is_read_as_it_was() -> None:
    """Attributes are read when they are asked for, which may be later."""
    truth = pd.DataFrame({"item": list("abcd"), "cluster": [1, 1, 2, 2], "g": list("xxyy")})
    prediction = truth.assign(cluster=[1, 1, 2, 3]).drop(columns="g")
    ev = fb.evaluate(truth, prediction, progress=False)
    truth["g"] = list("zzzz")
    truth.loc[4] = ["e", 5, "z"]
    assert ev.slices("g").to_arrow()["recall"].to_pylist() == [1.0, 0.5]
    assert ev.items(["g"]).to_pandas().set_index("item")["g"].to_dict() == dict(
        zip("abcd", "xxyy", strict=True)
    )


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_a_file_that_is_replaced_afterwards_is_refused(form: str, tmp_path: Path) -> None:
    """Its rows may stand in another order, and attributes would be those of other items."""
    truth = pd.DataFrame({"item": list("abcd"), "cluster": [1, 1, 2, 2], "g": list("xxyy")})
    path = tmp_path / f"truth.{form}"
    write = truth.to_parquet if form == "parquet" else truth.to_feather
    write(path)
    ev = fb.evaluate(path, {"a": 1, "b": 1, "c": 2, "d": 3}, progress=False)
    write(path.with_suffix(".new"))
    path.with_suffix(".new").replace(path)
    with pytest.raises(FileFormatError, match="changed after its first rows were read"):
        ev.slices("g")
    path.unlink()
    with pytest.raises(FileFormatError, match="It existed before"):
        ev.slices("g")


def test_an_index_without_a_name_may_hold_the_items() -> None:
    frame = pd.DataFrame({"cluster": [1, 1, 2]}, index=list("abc"))
    with pytest.raises(ColumnError, match=r"no column 'item' .*frame\.rename_axis\('item'\)"):
        fb.evaluate(frame, frame)
    with pytest.raises(ColumnError) as caught:
        fb.evaluate(frame.reset_index(drop=True), frame)
    assert "index" not in str(caught.value)
    assert fb.evaluate(*[frame.rename_axis("item")] * 2, metrics=["f1"]).f1 == 1


def test_blocks_of_columns_that_are_read_whole_read_them_once() -> None:
    """Each block of a CSV file or a DataFrame converted all of its rows."""
    reads: list[str] = []

    def read(names):
        reads.extend(names)
        return [pa.chunked_array([range(7)]) for _ in names]

    blocks = [next(iter(each.blocks())) for each in Source(["a", "b"], "the table", 7, read).scan(3)]
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(lambda block: block.columns(["b", "a"])[0].to_pylist(), blocks))
    assert found == [[0, 1, 2], [3, 4, 5], [6]] and sorted(reads) == ["a", "b"]
