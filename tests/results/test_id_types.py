"""Ids and labels of every type in listings and files: null labels, ids that match across types, rows twice."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from both_engines import LIMIT
from hostile import quietly, refused

import fastbcubed as fb
from fastbcubed.errors import OverlapError

ENGINES: dict[str, dict[str, Any]] = {
    "memory": {"engine": "memory"},
    "disk": {"engine": "disk", "memory_limit": LIMIT},
}
engines = pytest.mark.parametrize("engine", ENGINES)


def side(items: Any, labels: Any, **others: Any) -> fb.Clustering:
    return fb.Clustering.from_table({"item": items, "cluster": labels, **others})


# --- null labels ---

NULLS = {
    "list": [None, "", "a"],
    "dictionary": pa.array([None, "", "a"]).dictionary_encode(),
    "dictionary with a null": pa.DictionaryArray.from_arrays(pa.array([0, 1, 2]), [None, "", "a"]),
    "view": pa.array([None, "", "a"], pa.string_view()),
    "binary": pa.array([None, b"", b"a"]),
    "polars": pl.Series([None, "", "a"]),
}


@pytest.mark.cases(4)
@engines
@pytest.mark.parametrize("labels", NULLS.values(), ids=NULLS)
@pytest.mark.parametrize(("nulls", "expected"), [("drop", ["", "a"]), ("singleton", ["", "a", None])])
def test_a_null_beside_an_empty_text(
    nulls: str, expected: Any, labels: Any, engine: str, tmp_path: Any
) -> None:
    """The key of a null is arbitrary, and may be that of another label."""
    truth, prediction = side([1, 2, 3], labels), side([1, 2, 3], [1, 1, 2])
    ev = quietly(truth, prediction, nulls=nulls, keep="items", out=tmp_path, **ENGINES[engine])
    for each in (ev, fb.load(tmp_path)):
        names = [
            n.decode() if isinstance(n, bytes) else n for n in each.clusters("true")["cluster"].to_pylist()
        ]
        assert sorted(names, key=lambda name: (name is None, name)) == expected
        shown = dict(
            zip(each.items()["item"].to_pylist(), each.items()["true_cluster"].to_pylist(), strict=True)
        )
        assert shown[2] in ("", b"") and shown[3] in ("a", b"a") and shown.get(1) is None


@pytest.mark.parametrize("labels", NULLS.values(), ids=NULLS)
def test_a_null_beside_an_empty_text_of_overlapping_clusterings(labels: Any) -> None:
    ev = quietly(side([1, 2, 3], labels), side([1, 2, 3], [1, 1, 2]), nulls="drop", overlapping=True)
    assert set(ev.clusters("true")["cluster"].to_pylist()) in ({"", "a"}, {b"", b"a"})


def hidden(values: list[int], valid: list[bool]) -> pa.Array:
    """Return integers, some of them null, with these values below the nulls."""
    bits = np.packbits(valid, bitorder="little")
    buffers = [pa.py_buffer(bits), pa.py_buffer(np.array(values, np.int64))]
    return pa.Array.from_buffers(pa.int64(), len(values), buffers)


@engines
@pytest.mark.parametrize("nulls", ["drop", "singleton"])
def test_a_null_twice_is_the_same_row_twice(nulls: str, engine: str) -> None:
    truth = side(["a", "a", "b"], hidden([5, 6, 7], [False, False, True]))
    prediction = side(["a", "b"], [1, 1])
    ev = quietly(truth, prediction, nulls=nulls, duplicates="drop", **ENGINES[engine])
    assert ev.coverage.n_duplicates == 1
    assert ev.recall == 1
    assert ev.precision == (1 if nulls == "drop" else 1 / 2)
    with refused(OverlapError, "1 of 2 items"):  # null and a label are two rows
        quietly(
            side(["a", "a", "b"], hidden([5, 5, 7], [False, True, True])), prediction,
            nulls=nulls, duplicates="drop", **ENGINES[engine],
        )  # fmt: skip


def test_a_null_twice_of_overlapping_clusterings() -> None:
    truth = side(["a", "a", "b"], hidden([5, 6, 7], [False, False, True]))
    ev = quietly(truth, side(["a", "b"], [1, 1]), nulls="singleton", duplicates="drop", overlapping=True)
    assert (ev.coverage.n_duplicates, ev.coverage.n_null) == (1, 2)
    assert (ev.precision, ev.recall) == (1 / 2, 1)


# --- ids that match across types ---

ACROSS: dict[str, tuple[Any, Any, list[Any]]] = {
    "integers": (pa.array([1, 2], pa.int32()), pa.array([1, 2, 2**40], pa.int64()), [1, 2, 2**40]),
    "signs": (pa.array([1, 2], pa.uint64()), pa.array([1, 2, -3], pa.int64()), [1, 2, -3]),
    "wide": (pa.array([1, 2], pa.int8()), pa.array([1, 2, 2**63], pa.uint64()), [1, 2, 2**63]),
    "texts": (pa.array(["a", "b"]), pa.array(["a", "b", "c"], pa.string_view()), ["a", "b", "c"]),
    "codes": (pa.array(["a", "b"]).dictionary_encode(), pa.array(["a", "b", "c"]), ["a", "b", "c"]),
    "bytes": (pa.array([b"\xff", b"b"]), pa.array([b"\xff", b"b", b"c"], pa.binary(1)), [b"\xff", b"b", b"c"]),
    "fixed bytes": (pa.array([b"\xff", b"b"], pa.binary(1)), pa.array([b"\xff", b"b", b"cc"]), [b"\xff", b"b", b"cc"]),
    "uuid": (
        pa.array([b"a" * 16, b"b" * 16], pa.uuid()),
        pa.array([b"a" * 16, b"b" * 16, b"c" * 16]),
        [b"a" * 16, b"b" * 16, b"c" * 16],
    ),
}  # fmt: skip


@pytest.mark.cases(4)
@engines
@pytest.mark.parametrize(("first", "second", "expected"), ACROSS.values(), ids=ACROSS)
def test_ids_that_match_across_types(
    first: Any, second: Any, expected: Any, engine: str, tmp_path: Any
) -> None:
    """The prediction has an item more, so that listings hold ids of both sides."""
    options = {"keep": "items", "unmatched": "singleton", "out": tmp_path, **ENGINES[engine]}
    ev = quietly(side(first, [1, 1]), side(second, [1, 1, 1]), **options)
    for each in (ev, fb.load(tmp_path)):
        found = each.items(order_by="item_f1")["item"].to_pylist()
        assert sorted(found) == sorted(expected)
        assert each.item(expected[2])["fp"] == 2
        assert each.subset(expected[:2]).keys() == ev.overall.keys()


@pytest.mark.cases(4)
@engines
@pytest.mark.parametrize(("first", "second", "expected"), ACROSS.values(), ids=ACROSS)
def test_parts_of_ids_that_match_across_types(
    first: Any, second: Any, expected: Any, engine: str, tmp_path: Any
) -> None:
    """Also where the parts have other names on the other side."""
    truth = fb.Clustering.from_table(
        {"source": ["x"] * 2, "id": first, "cluster": [1, 1]}, item=["source", "id"]
    )
    prediction = fb.Clustering.from_table(
        {"from": pa.array(["x"] * 3, pa.large_string()), "number": second, "cluster": [1, 1, 1]},
        item=["from", "number"],
    )
    options = {"keep": "items", "unmatched": "singleton", "out": tmp_path, **ENGINES[engine]}
    ev = quietly(truth, prediction, **options)
    for each in (ev, fb.load(tmp_path)):
        found = each.items(order_by="item_f1")["item"].to_pylist()
        assert sorted(item["id"] for item in found) == sorted(expected)
        assert {item["source"] for item in found} == {"x"}
        assert each.item(("x", expected[2]))["fp"] == 2


@pytest.mark.slow
@engines
def test_ids_that_match_across_types_in_many_blocks(engine: str, tmp_path: Any) -> None:
    """The block that has the wide id is not the first."""
    n = 3 * 4096
    truth = side(pa.array(np.arange(n), pa.int32()), np.arange(n) // 2)
    ids = np.append(np.arange(n), 2**40)
    ev = quietly(
        truth, side(ids, np.arange(n + 1) // 3), keep="items", unmatched="singleton", out=tmp_path, **ENGINES[engine]
    )  # fmt: skip
    assert ev.item(2**40)["item"] == fb.load(tmp_path).item(2**40)["item"] == 2**40


@engines
def test_labels_with_full_dictionaries(engine: str, tmp_path: Any) -> None:
    """Codes of 8 bits, of another dictionary in each chunk, and more values than 8 bits tell apart."""
    chunks = [
        pa.DictionaryArray.from_arrays(pa.array(range(128), pa.int8()), [f"{k}-{i}" for i in range(128)])
        for k in range(2)
    ]
    texts = pa.chunked_array(chunks)
    ev = quietly(
        side(np.arange(256), texts),
        side(np.arange(257), np.arange(257)),
        out=tmp_path / "labels",
        **ENGINES[engine],
    )
    for each in (ev, fb.load(tmp_path / "labels")):
        assert set(each.clusters("true")["cluster"].to_pylist()) == set(texts.to_pylist())
    ev = quietly(
        side(texts, np.arange(256)),
        side(texts, np.arange(256)),
        keep="items",
        out=tmp_path / "ids",
        **ENGINES[engine],
    )
    for each in (ev, fb.load(tmp_path / "ids")):
        assert set(each.items()["item"].to_pylist()) == set(texts.to_pylist())


@engines
def test_ids_of_ordered_categories_that_outnumber_them(engine: str, tmp_path: Any) -> None:
    """Precision is (2/3 + 2/3 + 1/3 + 1 + 1) / 5, and so is recall; links are of such ids, too."""
    letters = pa.array(list("abcdefgh"))

    def named(codes: list[int]) -> pa.DictionaryArray:
        return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int8()), letters, ordered=True)

    truth, labels = dict(zip("abcde", [5, 5, 6, 6, 6], strict=True)), [0, 0, 0, 1, 1]
    table = pa.table({"item": named([0, 1, 2, 3, 4]), "cluster": labels})
    pq.write_table(table, tmp_path / "p.parquet")
    for each in (table, table.to_pandas(), tmp_path / "p.parquet"):
        ev = quietly(truth, each, **ENGINES[engine])
        assert (ev.precision, ev.recall) == pytest.approx((11 / 15, 11 / 15))
    links = pa.table({"left": named([0, 1, 3]), "right": named([1, 2, 4]), "score": [0.9, 0.8, 0.7]})
    assert fb.sweep(truth, links).evaluate(0.7).f1 == pytest.approx(11 / 15)


LABELS = {
    "uuid": pa.array([b"a" * 16, b"b" * 16, b"c" * 16, None], pa.uuid()),
    "json": pa.array(["1", "2", "3", None], pa.json_()),
    "dictionary of uuid": pa.DictionaryArray.from_arrays(
        pa.array([0, 1, 2, None]), pa.array([b"a" * 16, b"b" * 16, b"c" * 16], pa.uuid())
    ),
    "run-end encoded": pa.RunEndEncodedArray.from_arrays([1, 2, 3, 4], pa.array(["a", "b", "c", None])),
    "struct": pa.array([{"x": 1, "y": "a"}, {"x": 1, "y": "b"}, {"x": 2, "y": "c"}, None]),
}


@pytest.mark.cases(4, 99)
@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
@pytest.mark.parametrize("overlapping", [False, True])
def test_clusters_in_order_of_labels_of_any_type(overlapping: bool, labels: Any, tmp_path: Any) -> None:
    """All true clusters score the same, so that their labels decide; one is null, and its item alone."""
    ev = quietly(
        side(range(4), labels), side(range(4), [1, 1, 1, 1]), nulls="singleton", overlapping=overlapping
    )
    ev.save(tmp_path)
    for each in (ev, fb.load(tmp_path)):
        shown = each.clusters("true")["cluster"].to_pylist()
        assert len(shown) == 4
        values = [list(name.values()) if isinstance(name, dict) else name for name in shown[:3]]
        assert values == sorted(values)
