"""Fingerprints of clusterings: equal for equal rows, whatever their order and container; else different."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import fastbcubed as fb
from fastbcubed import Clustering, kernels
from fastbcubed.inputs import fingerprint
from fastbcubed.inputs.keys import write_both
from fastbcubed.runtime.threads import Pool

ITEMS, LABELS = ["a", "b", "c", "d"], [1, 1, 2, -7]
OTHER = {"a": 0, "b": 0, "c": 0, "d": 0}


def prints(truth: Any, prediction: Any = OTHER, **options: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    manifest = fb.evaluate(truth, prediction, **options).manifest
    return manifest["truth"], manifest["prediction"]


def table(items: Any = ITEMS, labels: Any = LABELS) -> pa.Table:
    return pa.table({"item": items, "cluster": labels})


def test_the_order_and_the_container_do_not_count(tmp_path) -> None:
    expected = prints(table())[0]
    assert expected["rows"] == 4 and len(expected["fingerprint"]) == 32
    reordered = table().take([2, 0, 3, 1])
    pq.write_table(reordered, tmp_path / "rows.parquet", row_group_size=2)
    pyarrow.csv.write_csv(reordered, tmp_path / "rows.csv")
    small = pa.table({"item": pa.array(ITEMS).dictionary_encode(), "cluster": pa.array(LABELS, pa.int8())})
    chunked = pa.concat_tables([reordered.slice(0, 1), reordered.slice(1)])
    large = pa.table({"item": pa.array(ITEMS, pa.large_string()), "cluster": LABELS})
    for same in (
        reordered, small, chunked, large, dict(zip(ITEMS, LABELS, strict=True)), table().to_pandas(),
        pl.DataFrame(table()), Clustering.from_labels(LABELS, items=ITEMS), tmp_path / "rows.parquet",
        tmp_path / "rows.csv", pd.DataFrame({"cluster": LABELS, "item": pd.Categorical(ITEMS)}),
    ):  # fmt: skip
        assert prints(same)[0] == expected, type(same)
    assert prints(OTHER, table())[1] == expected
    assert prints(tmp_path / "rows.parquet", engine="disk")[0] == expected


@pytest.mark.filterwarnings("ignore::fastbcubed.errors.EvaluationWarning")
@pytest.mark.parametrize("how", [{"nulls": "drop"}, {"duplicates": "drop"}, {"unmatched": "singleton"}])
def test_rows_that_are_scored_and_written_are_read_once(how, tmp_path, monkeypatch) -> None:
    rows = pa.table({"item": [*ITEMS, "a", "e"], "cluster": [*LABELS, 1, None if "nulls" in how else 3]})
    tables = (rows if "duplicates" in how else rows.take([0, 1, 2, 3, 5])), table()
    files = tmp_path / "truth.parquet", tmp_path / "prediction.parquet"
    for each, file in zip(tables, files, strict=True):
        pq.write_table(each, file, row_group_size=2)
    expected = prints(*tables, engine="memory", **how)
    monkeypatch.setattr(fingerprint, "contents", None)  # what reads them again
    assert prints(*files, engine="disk", out=tmp_path / "result", **how) == expected


@pytest.mark.filterwarnings("ignore::fastbcubed.errors.EvaluationWarning")
def test_what_differs_is_told() -> None:
    tables = [
        table(),
        table(ITEMS, [1, 1, 2, 7]),
        table(ITEMS, ["1", "1", "2", "-7"]),
        table(["a", "b", "d", "c"]),
        table(["a", "b", "c", "e"]),
        table(ITEMS[:3], LABELS[:3]),
        table(["ab", "", "c", "d"]),
        table(ITEMS, [1, 1, 2, None]),
        table(ITEMS, [1, 1, None, -7]),
    ]
    found = {prints(each, nulls="singleton")[0]["fingerprint"] for each in tables}
    assert len(found) == len(tables)
    pair = pa.table({"x": ["a", "ab"], "y": ["bc", "c"], "cluster": [1, 1]})
    swapped = pa.table({"x": ["ab", "a"], "y": ["c", "cb"], "cluster": [1, 1]})
    given = [fb.evaluate(each, each, item=["x", "y"]).manifest["truth"] for each in (pair, swapped)]
    assert given[0] != given[1]


def test_a_null_is_a_null_whatever_stands_under_it() -> None:
    sound = pa.array([5, None, 7], pa.int64())
    buffers = sound.buffers()
    other = pa.Array.from_buffers(pa.int64(), 3, [buffers[0], pa.py_buffer(np.array([5, 99, 7]))])
    found = [prints([1, 2, 3], labels, nulls="drop")[1] for labels in (sound, other)]
    assert found[0] == found[1]


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_items_by_position_are_told_by_it(engine, monkeypatch) -> None:
    n = 50
    labels = np.arange(n) // 3
    expected = prints(labels, labels[::-1].copy())
    monkeypatch.setattr(fingerprint, "ROWS_AT_ONCE", 7)
    assert prints(labels, labels[::-1].copy(), engine=engine) == expected
    assert expected[0] != expected[1]
    rows = pa.table({"t": labels, "p": labels[::-1].copy()})
    assert prints("t", "p", table=rows, engine=engine) == expected
    numbered = prints({int(k): int(c) for k, c in enumerate(labels)}, {k: 0 for k in range(n)})[0]
    assert numbered == expected[0]  # an id that is the position


@pytest.mark.cases(0)
def test_blocks_and_threads_do_not_count(tmp_path, many_shards) -> None:
    rng = np.random.default_rng(0)
    sides = [table([f"i{k}" for k in rng.permutation(300)], rng.integers(0, 90, 300)) for _ in range(2)]
    expected = prints(*sides)
    for k, side in enumerate(sides):
        pq.write_table(side, tmp_path / f"{k}.parquet", row_group_size=64)
    assert prints(tmp_path / "0.parquet", tmp_path / "1.parquet", engine="disk") == expected
    streams = [pa.RecordBatchReader.from_batches(side.schema, side.to_batches(50)) for side in sides]
    assert prints(*streams, engine="disk") == expected


def test_the_hash_is_written_from_its_definition() -> None:
    """The sum, modulo 2**64 each, of both words of item and label, folded as in composite ids."""
    labels, secret = [3, 4, 4], [int(word) for word in kernels.hashing.seed_words(fingerprint.SEED)]
    side = Clustering.from_labels(labels, items=["x", "y", "z"])
    with Pool(1) as pool:
        both = [write_both(column.plain, fingerprint.SEED, pool) for column in (side.items, side.labels)]
    items, codes = ([words.view(np.uint64).tolist() for words in pair] for pair in both)

    def folded(a: int, b: int) -> int:
        return (a * b ^ (a * b >> 64)) & (2**64 - 1)

    sums = [
        sum(folded(i ^ secret[2 + k], c ^ secret[4 + k]) for i, c in zip(items[k], codes[k], strict=True))
        % 2**64
        for k in (0, 1)
    ]
    ev = fb.evaluate(side, {"x": 0, "y": 0, "z": 0})
    assert ev.manifest["truth"] == {"rows": 3, "fingerprint": f"{sums[0]:016x}{sums[1]:016x}"}


def test_all_row_groups_of_a_file_are_read(tmp_path) -> None:
    """Row groups are read 64 at a time, so that 150 take three calls."""
    n = 150
    names = pa.array([f"n{k % 7}" for k in range(n)])
    rows = table([f"i{k}" for k in range(n)], [k // 3 for k in range(n)])
    rows = rows.append_column("name", names).append_column("coded", names.dictionary_encode())
    pq.write_table(rows, tmp_path / "truth.parquet", row_group_size=1)
    read, given = (
        fb.evaluate(truth, rows.select(["item", "cluster"]), keep="items").items().to_arrow()
        for truth in (tmp_path / "truth.parquet", rows)
    )
    assert read.num_rows == n and read.equals(given)
