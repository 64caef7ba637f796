"""Ids, labels and columns of every type and container: told apart exactly, or refused by name."""

from __future__ import annotations

import copy
import datetime
import decimal
import math
import uuid
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hostile import LABELS, OTHER, PREDICTION, SCORES, TRUTH, quietly, refused, scores, table
from versions import PANDAS

import fastbcubed as fb
from fastbcubed import Clustering, evaluate
from fastbcubed.errors import (
    AlignmentError,
    ColumnError,
    EmptyInputError,
    IdTypeError,
    NullError,
    OptionError,
    SliceError,
    WeightError,
)

NAN = math.nan


# --- ids and labels of every type ---

BAD_TYPES = {
    "float": ([1.0, 2.5, 2.0], "1 of 3 values are not whole numbers (first: 2.5)"),
    "infinity": (np.array([1.0, math.inf, 2.0]), "1 of 3 values are 9,007,199,254,740,992 or more"),
    "float16": (np.array([1, 2048, 2], np.float16), "1 of 3 values are 2,048 or more"),
    "integers made float by a null": (pd.Series([2**53, 2**53 + 1, None]), "Int64"),
    "pandas Float64": (pd.array([1.0, 2.5, None], dtype="Float64"), "Int64"),
    "category of floats": (pd.Categorical([1.5, 1.5, 2.0]), "int64"),
    "bool": ([True, False, True], "Cast to int64 or string"),
    "pandas boolean": (pd.array([True, None, False], dtype="boolean"), "Cast to int64 or string"),
    "dictionary of bools": (pa.array([True, True, False]).dictionary_encode(), "Cast to int64 or string"),
    "date": ([datetime.date(2020, 1, 1)] * 3, "Cast to string"),
    "timestamp": (pd.Series(pd.to_datetime(["2020-01-01"] * 3)), "Cast to string"),
    "duration": (np.array([1, 2, 2], "m8[s]"), "Cast to string"),
    "decimal": ([decimal.Decimal("1.5")] * 3, "3 of 3 values are not whole numbers"),
    "decimal beyond 64 bits": ([decimal.Decimal(2**70)] * 3, "not all within 64 bits"),
    "complex": (np.array([1j, 1, 2]), "one type"),
    "list": ([[1], [1], [2]], "several columns"),
    "map": (pa.array([[("a", 1)]] * 3, pa.map_(pa.string(), pa.int64())), "several columns"),
    "nested tuple": ([((1, 2), 3)] * 3, "several columns"),
    "int and str": ([1, "a", 2], "one type"),
    "str and int": (["a", 1, "b"], "one type"),
    "int and bool": ([1, True, 2], "one type"),
    "float and bool": ([1.0, True, 2], "one type"),
    "category of both": (pd.Categorical(["a", 1, "a"]), "one type"),
    "object": ([object()] * 3, "one type"),
    "beyond 64 bits": ([2**64, 1, 1], "Cast them to str"),
    "int64 and uint64 at once": ([-1, 2**63, 1], "Cast them to str"),
    "integers of 128 bits": (pl.Series([1, 1, 2**100], dtype=pl.Int128), "i128"),
    "lone surrogate": (["\ud800", "a", "b"], ""),
    "str and bytes": (["a", b"a", "b"], "mixes bytes and text: 2 of 3"),
    "no UTF-8": (pa.array([b"\xff", b"\xfe", b"c"]).view(pa.string()), "2 of 3"),
    "codes beyond the dictionary": (
        pa.DictionaryArray.from_arrays(pa.array([0, 5, 1]), ["a", "b"], safe=False),
        "1 of 3 codes",
    ),
    "tuples of two lengths": ([("a", 1), ("a",), ("b", 1)], "tuples of 2"),
    "records": (np.array([(1, 2)] * 3, dtype=[("a", int), ("b", int)]), "Pass one field"),
}


@pytest.mark.parametrize(("values", "hint"), BAD_TYPES.values(), ids=BAD_TYPES)
def test_types_that_cannot_name_things(values: Any, hint: str) -> None:
    with refused(IdTypeError, hint):
        evaluate(values, LABELS)
    with refused(IdTypeError, hint):
        evaluate(
            Clustering.from_labels(LABELS, items=["a", "b", "c"]),
            Clustering.from_labels(LABELS, items=values),
        )
    with refused(IdTypeError, hint):
        fb.metrics.precision(LABELS, values)


def test_the_message_says_which_column() -> None:
    for key in ("item", "cluster"):
        bad = pd.DataFrame({"item": [1, 2, 3], "cluster": LABELS, key: [1.5, NAN, 2.0]})
        with refused(IdTypeError, f"'{key}'", "the truth", "double"):
            evaluate(bad, TRUTH)
        with refused(IdTypeError, f"'{key}'", "the prediction", "double"):
            evaluate(table([1, 2, 3], LABELS), bad)


def test_sides_of_different_kinds() -> None:
    pairs = [
        (["1", "2"], [1, 2], "string", "int64"),
        ([b"1", b"2"], ["1", "2"], "binary", "string"),
        ([("a", 1), ("b", 2)], ["a", "b"], "string and int64", "string"),
        ([("a", 1), ("b", 2)], [(1, "a"), (2, "b")], "string and int64", "int64 and string"),
        ([("a", 1), ("b", 2)], [("a", "1"), ("b", "2")], "string and int64", "string and string"),
    ]
    for first, second, kind, other in pairs:
        sides = [Clustering.from_labels([1, 2], items=items) for items in (first, second)]
        for given in (sides, sides[::-1]):
            with refused(IdTypeError, "items", kind, other, "never match", "cast"):
                evaluate(*given)
        several = isinstance(second[0], tuple)
        index = pd.MultiIndex.from_tuples(second) if several else pd.Index(second)
        with refused(IdTypeError, "items of weight", kind, "never match", "cast"):
            evaluate(sides[0], sides[0], weight=pd.Series([1.0, 2.0], index=index))
    assert scores(["x", "x", "y"], [7, 8, 8]) == SCORES  # labels are never compared across the sides


def test_integers_beyond_2_53_stay_apart() -> None:
    big = 2**53
    for ids in (
        [big, big + 1, big + 2],
        pa.array([big, big + 1, big + 2]),
        pd.Series([big, big + 1, big + 2], dtype="Int64"),
        pd.Series([big, big + 1, big + 2], dtype=object),
        pl.Series([big, big + 1, big + 2]),
    ):
        assert evaluate(ids, [0, 1, 2]).contingency.n_true == 3
    for ids in (
        pa.array([big, big + 1, None]),
        pd.Series([big, big + 1, None], dtype="Int64"),
        pd.Series([big, big + 1, None], dtype=object),
        [big, big + 1, None],
    ):
        ev = evaluate(ids, [0, 1, 2], nulls="singleton")
        assert ev.precision == ev.recall == 1.0
        assert set(ev.clusters("true")["cluster"].to_pylist()) == {big, big + 1, None}


def test_uint64_never_meets_negative_int64() -> None:
    wide = pa.array([2**64 - 1, 2**63, 5], pa.uint64())
    with refused(EmptyInputError, "2 items", "18446744073709551615", "-1"):
        evaluate(table(wide[:2], [1, 1]), table([-1, -(2**63)], [1, 1]))
    ev = quietly(table(wide, LABELS), table([-1, -(2**63), 5], LABELS))
    assert (ev.coverage.n_common, ev.coverage.n_truth_only, ev.coverage.n_prediction_only) == (1, 2, 2)
    both = table(wide, LABELS)
    ev = evaluate(both, both)
    assert ev.item(2**64 - 1)["item"] == 2**64 - 1
    for absent in (-1, -(2**63)):
        with refused(SliceError, str(absent)):
            ev.item(absent)
    with refused(WeightError, "2 of 3", "no weight"):
        evaluate(both, both, weight=pa.table({"item": [-1, -(2**63), 5], "weight": [1.0, 1.0, 1.0]}))
    assert evaluate(wide, LABELS, noise=-1).coverage.n_noise == 0
    assert evaluate([-1, -1, 1], LABELS, noise=2**64 - 1).coverage.n_noise == 0


STRINGS = [
    "",
    "\0",
    "a\0",
    "a",
    "a\0b",
    "é",
    "e\u0301",
    "A",
    " a",
    "a ",
    "\u200b",
    "x" * 10**5,
    "x" * 10**5 + "y",
]
STRINGS += ["日本", "𝄞", "-1", "NaN", "None", "null", "nan", "1e5", "\n", "\t", "\ufeff", "\ufffd"]


@pytest.mark.filterwarnings("ignore::fastbcubed.errors.EvaluationWarning")
def test_strange_strings_stay_apart() -> None:
    n = len(STRINGS)
    for labels in (
        STRINGS,
        np.array(STRINGS, object),
        pd.Series(STRINGS),
        pd.Categorical(STRINGS if PANDAS >= 3 else range(n)),  # before, to pandas a text ended at a NUL
        pa.array(STRINGS, pa.large_string()),
        pa.array(STRINGS, pa.string_view()),
        pl.Series(STRINGS),
        [name.encode() for name in STRINGS],
    ):
        ev = evaluate(labels, np.arange(n))
        assert ev.contingency.n_true == n
        assert ev.precision == ev.recall == 1.0
    ev = evaluate(dict.fromkeys(STRINGS, 1), dict.fromkeys(STRINGS, 1))
    for name in STRINGS:
        assert ev.item(name, members=0)["item"] == name
    with refused(EmptyInputError, "'é'", "'é'"):
        evaluate({"é": 1}, {"e\u0301": 1})


def test_composite_ids_do_not_run_together() -> None:
    ids = [("a", "bc"), ("ab", "c"), ("", "abc"), ("abc", ""), ("a\0b", "c"), ("a", "\0bc")]
    ev = evaluate(dict.fromkeys(ids, 1), {name: k for k, name in enumerate(ids)})
    assert ev.contingency.n_pred == len(ids)
    assert ev.coverage.complete
    for p, q in ((["a", "b", None], [1, 2, 3]), (["a", "b", "c"], [1, 2, None])):
        rows = pa.table({"p": p, "q": q, "cluster": LABELS})
        with refused(NullError, "1 of 3", "rows: 2", "the truth"):
            evaluate(rows, rows.slice(0, 2), item=["p", "q"])
    with refused(AlignmentError, "1 of 2 items", "'a'", "2"):
        evaluate({("a", 1): 1, ("a", 2): 1}, {("a", 1): 1}, unmatched="raise")


SAME = [3, 0, 3, 1, 0, 2, 2, 3, 0]
SAME_TYPES = {
    "int8": lambda ids: np.array(ids, np.int8),
    "int32": lambda ids: np.array(ids, np.int32),
    "int64": lambda ids: np.array(ids, np.int64),
    "uint64": lambda ids: np.array(ids, np.uint64),
    "uint64 above 2**63": lambda ids: np.array(ids, np.uint64) + np.uint64(2**63),
    "negative": lambda ids: -np.array(ids),
    "hashed": lambda ids: (np.array(ids, np.uint64) * np.uint64(0x9E3779B97F4A7C15)).view(np.int64),
    "big-endian": lambda ids: np.array(ids, ">i4"),
    "strided": lambda ids: np.repeat(np.array(ids), 3)[::3],
    "reversed view": lambda ids: np.array(ids)[::-1][::-1],
    "string": lambda ids: pa.array(map(str, ids), pa.string()),
    "large string": lambda ids: pa.array(map(str, ids), pa.large_string()),
    "fixed binary": lambda ids: pa.array([i.to_bytes(5, "big") for i in ids], pa.binary(5)),
    "uuid": lambda ids: [uuid.UUID(int=i) for i in ids],
    "category": lambda ids: pd.Categorical(ids),
    "dictionary by chunk": lambda ids: pa.chunked_array(
        [pa.array(map(str, part), pa.string()).dictionary_encode() for part in (ids[:4], [], ids[4:])]
    ),
    "runs of a dictionary": lambda ids: pa.RunEndEncodedArray.from_arrays(
        pa.array(range(2, len(ids) + 2), pa.int32()), pa.array(["x", *map(str, ids)][1:]).dictionary_encode()
    ).slice(1),
    "dictionary that repeats a value": lambda ids: pa.DictionaryArray.from_arrays(
        [i + 4 * (k % 2) for k, i in enumerate(ids)], [*"abcd", *"abcd"]
    ),
    "tuples": lambda ids: [(i // 2, str(i % 2)) for i in ids],
    "pandas Index": lambda ids: pd.Index(ids),
}


@pytest.mark.cases(7)
@pytest.mark.parametrize("kind", SAME_TYPES)
def test_every_type_scores_the_same(kind: str) -> None:
    make, weight = SAME_TYPES[kind], np.arange(1.0, 10.0)
    pred = [1, 1, 0, 0, 2, 2, 2, 1, 1]
    expected = pytest.approx(dict(evaluate(SAME, pred, weight=weight, metrics="all").overall), abs=1e-12)
    for sides in ((make(SAME), make(pred)), (make(SAME), pred), (SAME, make(pred))):
        assert dict(evaluate(*sides, weight=weight, metrics="all").overall) == expected
    if kind == "dictionary that repeats a value":
        return  # its maker knows four values only, and items are nine
    ids, order = np.arange(9), np.array([5, 8, 0, 2, 1, 7, 6, 4, 3])
    truth = Clustering.from_labels(SAME, items=make(ids.tolist()), weight=weight)
    prediction = Clustering.from_labels(np.array(pred)[order], items=make(ids[order].tolist()))
    assert dict(evaluate(truth, prediction, metrics="all").overall) == expected


# --- columns, containers ---


def test_missing_and_ambiguous_columns() -> None:
    odd = TRUTH.rename_columns(["id", "label"])
    for side, sides in (("the truth", (odd, PREDICTION)), ("the prediction", (TRUTH, odd))):
        with refused(ColumnError, side, "'cluster'", "id, label", "cluster=", "may be label"):
            evaluate(*sides)
    assert scores(TRUTH.rename_columns(["id", "cluster"]), PREDICTION) == SCORES  # only one is left
    with refused(ColumnError, "the truth", "no column 'item'", "key, cluster, x", "item="):
        evaluate(TRUTH.rename_columns(["key", "cluster"]).append_column("x", pa.array([1, 2, 3])), PREDICTION)
    with refused(ColumnError, "the prediction", "'nope'", "item, cluster"):
        evaluate(TRUTH, PREDICTION, item=("item", "nope"))
    with refused(ColumnError, "the truth", "'nope'", "item, cluster"):
        evaluate(TRUTH, PREDICTION, cluster=("nope", "cluster"))
    with refused(ColumnError, "'nope'"):
        evaluate(TRUTH, PREDICTION, item=["item", "nope"])
    with refused(OptionError, "item", "tuple of 3"):
        evaluate(TRUTH, PREDICTION, item=("item", "item", "item"))
    for names in (5, None, []):
        with refused(OptionError, "item", "name of a column", repr(names)):
            evaluate(TRUTH, PREDICTION, item=names)
    with refused(OptionError, "item", "twice"):
        evaluate(TRUTH, PREDICTION, item=["item", "item"])
    with refused(ColumnError, "same column", "the truth", "Name two"):
        evaluate(TRUTH, PREDICTION, item=["item", "cluster"])
    for option in ({"item": "id"}, {"cluster": "label"}):
        with refused(OptionError, "no table", *option.values()):
            evaluate(LABELS, OTHER, **option)
    with refused(ColumnError, "same column", "the truth"):
        evaluate(TRUTH, PREDICTION, cluster="item")
    for twice in (
        pa.table([["a"], ["b"], [1]], names=["item", "item", "cluster"]),
        pd.DataFrame([["a", "b", 1]], columns=["item", "item", "cluster"]),
    ):
        with refused(ColumnError, "2 columns named 'item'", "the truth"):
            evaluate(twice, PREDICTION)


def test_the_one_table_form_takes_names() -> None:
    rows = {"x": LABELS, "y": OTHER, "i": [1, 2, 3]}
    assert scores("x", "y", table=rows, item="i") == SCORES
    with refused(ColumnError, "no column 'z'", "x, y, i"):
        evaluate("x", "z", table=rows)
    with refused(ColumnError, "no column 'j'", "x, y, i"):
        evaluate("x", "y", table=rows, item="j")
    with refused(OptionError, "truth", "name of a column", "list"):
        evaluate([1, 1, 2], "y", table=rows)
    with refused(OptionError, "one item column"):
        evaluate("x", "y", table=rows, item=("i", "x"))
    for wrong in (5, [1, 2], np.ones((2, 2)), pd.Series([1, 2])):
        with refused(ColumnError, "table should be a table", type(wrong).__name__):
            evaluate("x", "y", table=wrong)
    with refused(ColumnError, "2 columns named '0'"):
        evaluate("0", "1", table={0: [1], "0": [1], 1: [1]})


@pytest.mark.parametrize(
    "given",
    [5, {1, 2}, b"abc", object(), np.ones((2, 2), int), np.array(1), pl.DataFrame({"a": [1]}).lazy()],
)
def test_what_is_no_clustering(given: Any) -> None:
    with refused(ColumnError, "the truth"):
        evaluate(given, [1, 1])
    with refused(ColumnError, "the prediction"):
        evaluate([1, 1], given)
    with refused(ColumnError, "the prediction"):
        fb.metrics.f1([1, 1], given)
    with refused(ColumnError, "NoneType"):
        evaluate(None, [1, 1])


def test_makers_of_clusterings() -> None:
    for wrong in ([1], None, 5):
        with refused(OptionError, "from_dict", "dict", type(wrong).__name__):
            Clustering.from_dict(wrong)
        with refused(OptionError, "from_series", "pandas Series", type(wrong).__name__):
            Clustering.from_series(wrong)
    for wrong in (5, None):
        with refused(OptionError, "from_clusters", "list of clusters", type(wrong).__name__):
            Clustering.from_clusters(wrong)
        with refused(ColumnError, "left items", type(wrong).__name__):
            Clustering.from_pairs(wrong, wrong)
        with refused(ColumnError, "table", type(wrong).__name__, "from_labels"):
            Clustering.from_table(wrong)
        with refused(OptionError, "path", repr(wrong)):
            Clustering.from_parquet(wrong)
    for wrong in (["ab"], [None], [1]):
        with refused(OptionError, "list of items", repr(wrong[0])):
            Clustering.from_clusters(wrong)
    with refused(ColumnError, "part"):
        Clustering.from_dict({(): 1})


def test_tables_and_labels_are_never_joined() -> None:
    frame = pd.DataFrame({"item": ["a", "b", "c"], "cluster": LABELS})
    with refused(AlignmentError, "The prediction is an array", "the truth has item ids", "items=ids"):
        evaluate(frame, LABELS)
    with refused(AlignmentError, "The truth is an array", "the prediction has item ids", "items=ids"):
        evaluate(LABELS, frame)
    with refused(ColumnError, "the truth", "x, y, z", "item="):
        evaluate(pd.DataFrame({"x": [1], "y": [2], "z": [3]}), frame)
    with refused(OptionError, "dict", "from_table", "sets"):
        evaluate({"item": ["a"], "cluster": [1]}, frame)


def test_series_with_different_indexes() -> None:
    truth, prediction = pd.Series(LABELS, index=[5, 6, 7]), pd.Series(OTHER, index=[7, 6, 5])
    for compare in (evaluate, fb.metrics.precision):
        with refused(AlignmentError, "different indexes", "from_series", "to_numpy"):
            compare(truth, prediction)
    assert scores(truth, pd.Series(OTHER, index=[5, 6, 7])) == SCORES
    assert scores(Clustering.from_series(truth), Clustering.from_series(prediction)) == (1.0, 1.0)
    with refused(ColumnError, "a different index"):
        Clustering.from_series(truth, weight=pd.Series([1, 2, 3], index=[1, 2, 3]))


# --- what the caller gave stays as it was ---


def test_inputs_are_not_changed() -> None:
    clusters = np.array([3, -1, 3, 3, 7, -1])
    frame = pd.DataFrame(
        {"item": list("fabcda"), "cluster": clusters, "w": 1.5, "g": pd.Categorical(list("xyxyxy"))}
    )
    given = [
        frame,
        pd.DataFrame({"item": list("abcdefg"), "cluster": [1, 1, None, 2, 2, 3, 3]}, dtype=object),
        {"w": np.array([1.0, 2.0])},
        {"truth": "singleton", "prediction": "outside"},
    ]
    before = copy.deepcopy(given)
    options = {"nulls": "singleton", "duplicates": "drop", "noise": -1, "metrics": "all"}
    ev = evaluate(given[0], given[1], weight={**dict.fromkeys("abcdefg", 2.0)}, unmatched=given[3], **options)
    ev.items(), ev.clusters("true"), ev.slices("g"), ev.item("a"), ev.subset(["a"]), ev.to_json()
    pd.testing.assert_frame_equal(given[0], before[0])
    pd.testing.assert_frame_equal(given[1], before[1])
    assert given[3] == before[3]

    arrays = [clusters.copy(), np.array([1, 1, -1, 1, 2, 2]), np.arange(1.0, 7.0)]
    for array in arrays:
        array.flags.writeable = False
    kept = [array.copy() for array in arrays]
    read_only = evaluate(arrays[0], arrays[1], weight=arrays[2], noise=-1, metrics="all")
    read_only.items(order_by="precision"), read_only.subset(np.array([True] * 3 + [False] * 3))
    assert all((array == old).all() for array, old in zip(arrays, kept, strict=True))
    writable = evaluate(*[old.copy() for old in kept[:2]], weight=kept[2].copy(), noise=-1, metrics="all")
    assert dict(read_only.overall) == dict(writable.overall)


def test_results_do_not_lend_out_the_input() -> None:
    labels, weight = np.array(LABELS), np.array([1.0, 2.0, 3.0])
    ev = evaluate(labels, OTHER, weight=weight)
    before = ev.items().to_pylist()
    for name in ("weight", "precision"):
        np.array(ev.items()[name].to_numpy(), copy=True)[:] = 9
    assert ev.items().to_pylist() == before
    assert labels.flags.writeable and weight.flags.writeable


# --- files whose columns have other types ---

LARGE = 2**64 - 1  # the bits of -1
#: Types of the clusters of two files, the first of two items and the second of three, and precision and recall.
PARTS = {
    "all null, as pandas writes it": (["a", "a"], pa.nulls(3), (1.0, 1.0)),
    "dictionary": (pa.array(["a", "a"]).dictionary_encode(), ["a", "b", "c"], (1.0, 1.0)),
    "narrow": (pa.array([1, 1], pa.int8()), [1, 2, 3], (1.0, 1.0)),
    "whole floats": ([1.0, 1.0], [1, 2, 3], (1.0, 1.0)),
    "text and bytes": ([b"a", b"a"], ["a", "b", "c"], None),
    "signed and unsigned": ([-1, -1], pa.array([LARGE, 2, 3], pa.uint64()), None),
    "list": ([["a"], ["a"]], ["a", "b", "c"], None),
    "integers that no float holds": ([1.0, 1.0], [2**53 + 1, 2, 3], None),
}


@pytest.mark.cases(10, 99)
@pytest.mark.parametrize("engine", ["memory", "disk"])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(("first", "second", "expected"), PARTS.values(), ids=list(PARTS))
def test_parts_of_a_table_are_of_one_type_or_refused(
    tmp_path, first, second, expected, turned, engine
) -> None:
    """Items 1 to 3 are together on both sides, where the clusters of the second file are not null."""
    places = ["b.parquet", "a.parquet"] if turned else ["a.parquet", "b.parquet"]
    (tmp_path / "parts").mkdir()
    for place, items, clusters in zip(places, ([1, 2], [3, 4, 5]), (first, second), strict=True):
        pq.write_table(pa.table({"item": items, "cluster": clusters}), tmp_path / "parts" / place)
    null = isinstance(second, pa.NullArray)
    prediction = {1: "x", 2: "x", 3: "z" if null else "x", 4: "y", 5: "u"}
    how = dict(engine=engine, nulls="singleton")
    if expected is None:
        with pytest.raises(
            ColumnError, match=r"Column 'cluster' in the files of .* has several types: .* Use one"
        ):
            evaluate(tmp_path / "parts", prediction, **how)
    else:
        ev = evaluate(tmp_path / "parts", prediction, **how)
        assert (ev.precision, ev.recall) == pytest.approx(expected) and ev.contingency.n_items == 5


@pytest.mark.parametrize("engine", ["memory", "disk"])
@pytest.mark.parametrize("column", ["item", "cluster"])
def test_a_file_without_rows_is_named_whatever_its_types(tmp_path, column, engine) -> None:
    pq.write_table(pa.table({"item": [1, 2], "cluster": [1, 1]}), tmp_path / "full.parquet")
    none = {
        "item": pa.array([], pa.int64()),
        "cluster": pa.array([], pa.int64()),
        column: pa.array([], pa.string()),
    }
    pq.write_table(pa.table(none), tmp_path / "none.parquet")
    for pair in (("full.parquet", "none.parquet"), ("none.parquet", "full.parquet")):
        with pytest.raises(EmptyInputError, match=r"no rows in .*none\.parquet"):
            evaluate(*(tmp_path / name for name in pair), engine=engine)


@pytest.mark.parametrize("weight", [[1.0, True, 2.0], np.array([1.0, True, 2.0], object)])
def test_true_is_no_weight(weight) -> None:
    with pytest.raises(
        WeightError, match="weight cannot be read as one column: it mixes True or False with numbers"
    ):
        evaluate([1, 1, 2], [1, 1, 2], weight=weight)


@pytest.mark.parametrize(
    "values", [pd.arrays.SparseArray([1, 1, 2]), pd.Series([1, 1, 2], dtype="Sparse[int64]")]
)
def test_sparse_labels_of_pandas_are_read(values) -> None:
    assert evaluate(values, [1, 1, 2]).f1 == 1


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_items_left_out_are_named_where_none_is_in_common(engine) -> None:
    with pytest.raises(
        EmptyInputError, match=r"cluster is null were left out \(1 of the prediction\): fill in"
    ):
        evaluate({0: "a"}, {-2: "b", 0: None}, nulls="drop", engine=engine)


@pytest.mark.filterwarnings("ignore::fastbcubed.errors.EvaluationWarning")
@pytest.mark.parametrize("kind", ["S", "U", ">U", "T"])
def test_texts_of_fixed_length_go_on_behind_a_nul(kind) -> None:
    """Arrow would cut them there; NUL characters at the end are NumPy's padding."""
    texts = ["k\0a", "k\0a", "k\0b", "\0", "\0c"] * 3
    dtype = kind if kind != "T" else np.dtypes.StringDType()
    values = np.array([each.encode() for each in texts] if kind == "S" else texts, dtype)
    numbers = [0, 0, 1, 2, 3] * 3
    for given in (values, values[::-1], np.repeat(values, 2)[::2]):
        own = numbers[::-1] if given[0] == values[-1] else numbers
        ev = evaluate(given, own)
        assert (ev.precision, ev.recall) == (1, 1) and ev.contingency.n_true == 4
    assert fb.metrics.bcubed_recall(values, numbers) == 1
    items = {"item": values[:3:2], "cluster": [1, 1]}
    ev = evaluate(Clustering.from_table(items), Clustering.from_table(items))
    assert ev.contingency.n_items == 2
