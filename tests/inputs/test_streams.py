"""Tables by URI, and tables that pass by only once: the scores of the same table in memory, from both engines."""

from __future__ import annotations

import errno
import gc
import json
import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import fsspec
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
from containers import COLUMNS
from effort import pairwise
from growth import growth

import fastbcubed as fb
from fastbcubed.cli import main as cli
from fastbcubed.engines import disk as sharded
from fastbcubed.errors import (
    AlignmentError,
    ColumnError,
    EvaluationWarning,
    FileFormatError,
    IdTypeError,
    SpillError,
)
from fastbcubed.inputs import locations
from fastbcubed.inputs.file_formats import in_blocks
from fastbcubed.inputs.files import as_rows, block_rows, open_files, open_stream, read_table
from fastbcubed.runtime import spill

ENGINES = ("memory", "disk")


def rows(n: int = 500, seed: int = 0, *, text: bool = True) -> pa.Table:
    """Make a table of items in clusters of five or so, with weights and a column of no use."""
    rng = np.random.default_rng(seed)
    items = np.random.default_rng(1).permutation(n)
    clusters = items // 5 * 3 if seed == 0 else np.where(rng.random(n) < 0.8, items // 5 * 3, items % 7)
    columns: dict[str, Any] = {"other": rng.random(n), "item": items, "cluster": clusters}
    if text:
        columns["item"] = [f"item-{k}" for k in items]
        columns["cluster"] = [f"c{k}" for k in clusters]
    return pa.table({**columns, "w": 1 + items % 3 / 2})


TRUTH, PREDICTION = rows(), rows(seed=1).take(pa.array(np.random.default_rng(2).permutation(450)))
ONE = pa.table({"t": TRUTH["cluster"], "p": rows(seed=1)["cluster"], "id": TRUTH["item"], "w": TRUTH["w"]})


def scores(*given: Any, **options: Any) -> dict[str, float]:
    """Return the scores that an engine gives, in small blocks."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EvaluationWarning)
        limited = {} if options.get("engine") == "memory" else {"memory_limit": "64MiB"}
        found = fb.evaluate(*given, **limited, **options)
    return {**found.overall, "common": found.coverage.n_common, "true": found.summary["true"]["clusters"]}


def same(found: dict[str, float], expected: dict[str, float]) -> None:
    assert found == pytest.approx(expected, rel=1e-12)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharded, "block_rows", lambda *_: 64)


# --- URIs ---


@pytest.fixture
def memory() -> Iterator[Any]:
    """Return a file system that is known to fsspec alone, emptied in the end."""
    system = fsspec.filesystem("memory")
    yield system
    system.store.clear()
    system.pseudo_dirs[:] = [""]


def write(path: str, table: pa.Table) -> str:
    """Write a table to a path or URI, in the format that its name says."""
    with fsspec.open(path, "wb", auto_mkdir=True) as file:
        if path.endswith(".parquet"):
            pq.write_table(table, file, row_group_size=70)
        elif path.endswith(".arrow"):
            with pa.ipc.new_file(file, table.schema) as writer:
                writer.write_table(table, max_chunksize=70)
        elif path.endswith(".arrows"):
            with pa.ipc.new_stream(file, table.schema) as writer:
                writer.write_table(table, max_chunksize=70)
        else:
            pyarrow.csv.write_csv(table, file)
    return path


@pytest.mark.cases(2)
@pytest.mark.parametrize("ending", ["parquet", "arrow", "arrows", "csv"])
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("scheme", ["file", "memory"])
def test_a_file_by_uri(scheme: str, engine: str, ending: str, memory: Any, tmp_path: Path) -> None:
    base = f"file://{tmp_path}" if scheme == "file" else "memory://bucket"
    truth = write(f"{base}/true rows.{ending}", TRUTH)
    prediction = write(f"{base}/pred.{ending}", PREDICTION)
    if scheme == "file":
        truth = truth.replace(" ", "%20")
    expected = scores(TRUTH, PREDICTION, weight="w")
    same(scores(truth, prediction, weight="w", engine=engine), expected)
    same(scores(truth, PREDICTION, weight="w", engine=engine), expected)
    one = write(f"{base}/one.{ending}", ONE)
    same(scores("t", "p", table=one, engine=engine), scores("t", "p", table=ONE))


@pytest.mark.cases(0)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("base", ["memory://data/set", "memory:///set", "file://{}/set"])
def test_directories_and_globs(base: str, engine: str, memory: Any, tmp_path: Path) -> None:
    base = base.format(tmp_path)
    for k in range(3):
        write(f"{base}/part={k}/rows.parquet", TRUTH.slice(k * 200, 200))
    write(f"{base}/part=1/.rows.parquet.crc.parquet", PREDICTION)
    write(f"{base}/_tmp/rows.parquet", PREDICTION)
    expected = scores(TRUTH, PREDICTION)
    for truth in (
        base,
        f"{base}/",
        f"{base}/part*/rows.parquet",
        f"{base}/part=?/*",
        f"{base}/**/part=*/rows.parquet",
    ):
        assert open_files(truth).names[-1] == "part"
        same(scores(truth, PREDICTION, engine=engine), expected)
    by_part = {**dict.fromkeys(range(200), 0), **dict.fromkeys(range(200, 400), 1)}
    parts = [by_part.get(k, 2) for k in range(500)]
    same(scores("part", "cluster", table=base, engine=engine), scores(parts, TRUTH["cluster"]))
    same(
        scores("part", "cluster", table=f"{base}/part*/rows.parquet", engine=engine),
        scores(parts, TRUTH["cluster"]),
    )
    assert len(open_files(f"{base}/part=[01]/rows.parquet")) == 400


def test_globs_match_as_those_of_paths(memory: Any, tmp_path: Path) -> None:
    for name in ("a", "b1", "d/a", "d/e/a", "d/.h/a", ".a", "d/e/.a", "x=1/y=2/a"):
        for base in (f"file://{tmp_path}", "memory://"):
            write(f"{base}/{name}.csv", TRUTH.slice(0, 2))
    for pattern in (
        "*.csv",
        "**/*.csv",
        "d/**",
        "*/*.csv",
        "**/e/*",
        "d/*/?.csv",
        "[ab]*.csv",
        ".*",
        "x=*/*/a.csv",
    ):
        found = locations.locate(f"memory://{pattern}")[0].matching(f"memory://{pattern}")
        local = locations.LOCAL.matching(f"{tmp_path}/{pattern}")
        assert [f.removeprefix("memory://").lstrip("/") for f in found] == [
            os.path.relpath(f, tmp_path) for f in local
        ]


def test_only_the_needed_columns_are_read(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    read = pq.ParquetFile.iter_batches
    monkeypatch.setattr(
        pq.ParquetFile,
        "iter_batches",
        lambda self, size, groups, columns, **kw: (
            asked.append(columns) or read(self, size, groups, columns, **kw)
        ),
    )
    scores(write("memory://a.parquet", TRUTH), PREDICTION, engine="disk")
    assert asked and all(set(columns) <= {"item", "cluster"} for columns in asked)


def test_faults_of_uris(memory: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write("memory://d/a.parquet", TRUTH)
    whole = memory.cat("/d/a.parquet")
    memory.pipe("/d/short.parquet", whole[:-100])
    memory.pipe("/e/empty.csv", b"")
    memory.pipe("/d/page.html", b"<html>")
    for uri, said in {
        "memory://d/b.parquet": r"There is no file memory://d/b\.parquet",
        "memory://nowhere": "There is no file memory://nowhere",
        "memory://d/*.pq": r"No file matches memory://d/\*\.pq",
        "memory://d/short.parquet": r"memory://d/short\.parquet is truncated",
        "memory://e/empty.csv": r"memory://e/empty\.csv is empty",
        "memory://d/page.html": r"memory://d/page\.html is not Parquet",
        "memory://d": r"memory://d/short\.parquet is truncated",
        f"file://{tmp_path}/a.parquet": "There is no file",
        "warp://d/a.parquet": r"warp://d/a\.parquet cannot be reached: Protocol not known: warp",
        "s3://bucket/a.parquet?strange=1": r"s3://bucket/a\.parquet cannot be reached: Unexpected query parameter",
    }.items():
        for engine in ENGINES:
            with pytest.raises(FileFormatError, match=said):
                scores(uri, PREDICTION, engine=engine)
    with pytest.raises(FileFormatError, match="cannot be reached") as caught:
        read_table("s3://key:very-secret@bucket/a.parquet?strange=1")
    assert "very-secret" not in str(caught.value)
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(FileFormatError, match=r"pyarrow does not know memory://\. Install fsspec"):
        read_table("memory://d/a.parquet")


def test_the_command_line(memory: Any, capsys: pytest.CaptureFixture[str]) -> None:
    truth, prediction = (write(f"memory://{k}.parquet", t) for k, t in enumerate((TRUTH, rows(seed=1))))
    weight = write("memory://w.csv", TRUTH.select(["item", "w"]).rename_columns(["item", "weight"]))
    for engine in ENGINES:
        flags = ["--weight", weight, "--engine", engine, "--json"]
        assert cli.main(["evaluate", truth, prediction, *flags]) == 0
        found = json.loads(capsys.readouterr().out)["overall"]
        assert found == pytest.approx(dict(fb.evaluate(TRUTH, rows(seed=1), weight="w").overall), rel=1e-12)
    assert cli.main(["evaluate", truth, "memory://nowhere.parquet"]) == 2
    assert "There is no file memory://nowhere.parquet" in capsys.readouterr().err


def test_an_object_that_changes_is_noticed(memory: Any) -> None:
    table = open_files(write("memory://a.parquet", TRUTH))
    write("memory://a.parquet", TRUTH.slice(0, 70))
    with pytest.raises(FileFormatError, match="changed"):
        table.column("item")


# --- Streams ---


class Exporter:
    """What exports a stream once and says nothing of its length."""

    def __init__(self, table: pa.Table) -> None:
        self._reader = table.to_reader(max_chunksize=90)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._reader.__arrow_c_stream__(requested_schema)


class Cursor(Exporter):
    """A cursor of ADBC: what it shares with DuckDB takes no number of rows."""

    executemany = fetchall = None

    def fetch_record_batch(self) -> pa.RecordBatchReader:
        return self._reader

    def fetch_arrow_table(self) -> pa.Table:
        return self._reader.read_all()


def with_empty_batches(table: pa.Table) -> pa.RecordBatchReader:
    none = table.slice(0, 0).combine_chunks().to_batches()[0:1] or [
        pa.RecordBatch.from_pylist([], schema=table.schema)
    ]
    batches = [piece for batch in table.to_batches(max_chunksize=37) for piece in (*none, batch, *none)]
    return pa.RecordBatchReader.from_batches(table.schema, iter(batches))


STREAMS: dict[str, Callable[[pa.Table], Any]] = {
    "reader": lambda table: table.to_reader(max_chunksize=13),
    "reader of one batch": lambda table: table.combine_chunks().to_reader(),
    "exporter": Exporter,
    "cursor": Cursor,
    "empty batches": with_empty_batches,
    "relation": lambda table: duckdb.connect().from_arrow(table),
    "data set": pa.dataset.dataset,
}


@pytest.mark.cases(0)
@pairwise(name=list(STREAMS), engine=ENGINES, text=[True, False])
def test_streams(name: str, engine: str, text: bool) -> None:
    stream = STREAMS[name]
    truth, prediction = rows(text=text), rows(seed=1, text=text).slice(3, 440)
    expected = scores(truth, prediction, weight="w")
    same(scores(stream(truth), prediction, weight="w", engine=engine), expected)
    same(scores(truth, stream(prediction), weight="w", engine=engine), expected)
    same(scores(stream(truth), stream(prediction), weight="w", engine=engine), expected)
    by_item = dict(zip(truth["item"].to_pylist(), truth["w"].to_pylist(), strict=True))
    same(scores(stream(truth), stream(prediction), weight=by_item, engine=engine), expected)
    columns = {"item": ("item", ["item"]), "cluster": "cluster"}
    same(scores(stream(truth), prediction, engine=engine, **columns), scores(truth, prediction))
    for options in ({}, {"weight": "w"}, {"item": "id"}):
        same(
            scores("t", "p", table=stream(ONE), engine=engine, **options),
            scores("t", "p", table=ONE, **options),
        )


@pytest.mark.slow
def test_slices_of_a_stream() -> None:
    """Columns that no side uses are spilled where they are sliced by."""
    labels = pa.array([f"c{k % 3}" for k in range(500)])
    truth = TRUTH.append_column("kind", labels)
    for stream in STREAMS.values():
        for options in ({"slices": "kind"}, {"slices": "kind", "keep": "items"}):
            ev = fb.evaluate(stream(truth), rows(seed=1), engine="disk", **options)
            expected = fb.evaluate(truth, rows(seed=1)).slices("kind")
            assert ev.slices("kind")["kind"].to_pylist() == expected["kind"].to_pylist()
            assert ev.slices("kind")["f1"].to_pylist() == pytest.approx(expected["f1"].to_pylist())


def test_what_is_a_stream() -> None:
    for stream in STREAMS.values():
        assert open_stream(stream(TRUTH)) is not None
    frames = (TRUTH, TRUTH.to_pandas(), pl.from_arrow(TRUTH), TRUTH.to_batches()[0], TRUTH["item"])
    for other in (*frames, pd.Series([1]), pl.Series([1]), [1, 2], {"a": [1]}, np.zeros(3), None, "a"):
        assert open_stream(other) is None


@pytest.mark.cases(2)
@pytest.mark.parametrize("name", [name for name in COLUMNS if name.startswith("arrow")])
def test_every_type_of_column(name: str) -> None:
    """Sliced batches of every encoding, with dictionaries of their own."""
    clusters = [k // 3 for k in range(200)]
    ids = pa.chunked_array(COLUMNS[name](range(200)))
    ids = pa.chunked_array([chunk for chunk in ids.chunks if len(chunk)])
    truth = pa.table({"item": ids, "cluster": clusters})
    prediction = pa.table({"item": ids, "cluster": [k // 4 for k in range(200)]})
    reader = prediction.to_reader(max_chunksize=50)
    same(scores(truth.to_reader(), reader, engine="disk"), scores(truth, prediction))
    as_labels = pa.table({"t": ids, "p": clusters})
    same(scores("t", "p", table=as_labels.to_reader(), engine="disk"), scores("t", "p", table=as_labels))


def test_nulls_and_lists_and_nothing_at_all() -> None:
    holes = pa.table(
        {"t": pa.array([1, None, 2, 2]), "p": pa.array(["a", "a", None, "b"]).dictionary_encode()}
    )
    for nulls in ("drop", "singleton"):
        same(
            scores("t", "p", table=holes.to_reader(), nulls=nulls, engine="disk"),
            scores("t", "p", table=holes, nulls=nulls),
        )
    lists = pa.table({"item": [1, 2, 3], "cluster": [["a"], ["a"], ["b"]]})
    flat = pa.table({"item": [3, 2, 1], "cluster": [1, 1, 1]})
    same(scores(lists.to_reader(), flat, engine="disk"), scores(lists, flat))
    none = TRUTH.slice(0, 0)
    for empty in (none.to_reader(), pa.RecordBatchReader.from_batches(TRUTH.schema, iter([]))):
        with pytest.raises(fb.errors.EmptyInputError):
            scores(empty, TRUTH, engine="disk")


def test_faults_of_streams() -> None:
    def never() -> Iterator[pa.RecordBatch]:
        raise AssertionError("it was read")
        yield

    def unread() -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_batches(TRUTH.schema, never())

    for options, kind, said in (
        ({"cluster": "klass"}, ColumnError, "no column 'klass'"),
        ({"weight": pa.array([1.0])}, fb.errors.WeightError, "matched by item"),
    ):
        with pytest.raises(kind, match=said):
            scores(
                unread() if "weight" not in options else TRUTH.to_reader(), TRUTH, engine="disk", **options
            )
    with pytest.raises(AlignmentError, match="The prediction is an array of labels"):
        scores(unread(), [1, 2, 3], engine="disk")
    with pytest.raises(ColumnError, match="no weight column 'v'"):
        scores(TRUTH.to_reader(), PREDICTION, weight="v", engine="disk")
    with pytest.raises(ColumnError, match="no column 'v' in the table"):
        scores("cluster", "other", table=unread(), weight="v", engine="disk")
    bad = pa.DictionaryArray.from_arrays(pa.array([0, 7]), pa.array(["a"]), safe=False)
    table = pa.table({"item": bad, "cluster": [1, 1]})
    for engine in ENGINES:
        with pytest.raises(IdTypeError, match="1 of 2 codes in column 'item' of the truth"):
            scores(table.to_reader(), PREDICTION, engine=engine)


@pytest.mark.cases(0)
@pytest.mark.parametrize("engine", ENGINES)
def test_a_reader_that_raises_half_way(engine: str, tmp_path: Path) -> None:
    def half() -> Iterator[pa.RecordBatch]:
        yield from TRUTH.to_batches(max_chunksize=100)[:3]
        raise ConnectionError("the line is dead")

    reader = pa.RecordBatchReader.from_batches(TRUTH.schema, half())
    with pytest.raises(ConnectionError, match="the line is dead") as caught:
        scores(reader, PREDICTION, engine=engine, spill_dir=tmp_path if engine == "disk" else None)
    if engine == "disk":
        assert caught.value.__notes__ == ["It was raised by the reader of the truth, after 300 rows."]
    del caught
    assert_nothing_left(tmp_path)


def assert_nothing_left(folder: Path) -> None:
    gc.collect()
    assert not list(folder.iterdir())
    links = [f"/proc/self/fd/{entry}" for entry in os.listdir("/proc/self/fd")]
    assert not [link for link in links if os.path.islink(link) and str(folder) in os.readlink(link)]


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    ev = fb.evaluate(TRUTH.to_reader(), rows(seed=1).to_reader(), engine="disk", spill_dir=tmp_path)
    assert ev.engine == "disk" and ev.contingency.n_items == 500
    del ev
    assert_nothing_left(tmp_path)


def test_a_full_disk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(spill.Spill, "free", lambda self: spill.LEAVE_FREE + 100)
        with pytest.raises(SpillError, match="would be spilled to"):
            scores(TRUTH.to_reader(), PREDICTION, engine="disk", spill_dir=tmp_path)

    def full(*_: Any) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(SpillError, match=r"the disk of .* is full"):
        scores(TRUTH.to_reader(), PREDICTION, engine="disk", spill_dir=tmp_path)
    assert_nothing_left(tmp_path)


@pytest.mark.process
@pytest.mark.slow
def test_memory_stays_below_the_limit_with_a_long_reader() -> None:
    """6e6 rows with strings on each side, about 700 MB, of which each batch is made when it is asked for."""
    before = """
        import numpy as np, pyarrow as pa
        schema = pa.schema([("item", pa.int64()), ("cluster", pa.string()), ("text", pa.string())])
        def reader(n, size):
            def batches():
                for at in range(0, n, 50_000):
                    items = np.arange(at, min(at + 50_000, n))
                    clusters = pa.array(items // size).cast(pa.string())
                    text = pa.array(np.full(items.size, "a text that nobody needs " * 2))
                    yield pa.record_batch([pa.array(items), clusters, text], schema=schema)
            return pa.RecordBatchReader.from_batches(schema, batches())
        options = dict(engine="disk", memory_limit="64MiB", keep="scores")
        fb.evaluate(reader(100, 3), reader(100, 4), **options)
    """
    measured = """
        n = 6_000_000
        ev = fb.evaluate(reader(n, 3), reader(n, 3), **options)
        assert ev.overall["f1"] == 1 and ev.coverage.n_common == n
    """
    assert growth(before, measured) < 64 + 256


@pytest.mark.process
def test_files_are_read_without_importing_pandas(tmp_path: Path) -> None:
    """Which takes as long as a million rows do: by both engines, from Parquet and from a file that passes once."""
    pq.write_table(TRUTH, tmp_path / "t.parquet")
    pyarrow.csv.write_csv(TRUTH.select(["item", "cluster"]), tmp_path / "p.csv")
    code = (
        "import sys, fastbcubed as fb\nfor p in ('t.parquet', 'p.csv'):\n for engine in ('memory', 'disk'):\n"
    )
    code += "  fb.evaluate('t.parquet', p, engine=engine)\n  print('pandas' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": str(Path(fb.__file__).parents[1])}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path, timeout=300)
    assert done.stdout.split() == ["False"] * 4, done.stderr


def test_blocks_of_wide_rows_have_fewer() -> None:
    """Rows of 24 bytes or less come as many as are usual; of 1,000 bytes so many that a block has 64 a usual row."""
    narrow, wide = (pa.record_batch({"item": ["x" * width] * 500}) for width in (10, 992))
    for batch, rows in ((narrow, 1000), (wide, 64)):
        found = [table.num_rows for table in in_blocks([batch] * 10, 1000, partial(block_rows, 1000))]
        assert sum(found) == 5000 and set(found[:-1]) == {rows}, found


def test_numbers_that_repeat_are_counted_as_they_are_in_memory(tmp_path: Path) -> None:
    """A file has dictionaries of them, and a byte for each."""
    columns = {name: np.arange(10_000) % 7 for name in "abcd"} | {"e": np.arange(10_000) % 2 == 0}
    pq.write_table(pa.table(columns), tmp_path / "few.parquet")
    source = as_rows(tmp_path / "few.parquet", "the truth")
    assert source.row_bytes(list("abcde")) == 4 * 8 + 1 / 8
