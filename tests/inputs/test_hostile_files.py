"""Damaged, empty, foreign and absent files: the right scores, or an error that names the file."""

from __future__ import annotations

import gzip
import json
import os
import random
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hostile import PREDICTION, SCORES, TRUTH, refused, scores

import fastbcubed as fb
from fastbcubed import evaluate
from fastbcubed.cli import evaluate_command
from fastbcubed.errors import (
    ColumnError,
    EmptyInputError,
    FileFormatError,
    NullError,
    OptionError,
    OutOfMemoryError,
    WeightError,
)
from fastbcubed.inputs import file_formats, files
from fastbcubed.inputs.file_formats import reading
from fastbcubed.inputs.files import RESULTS, open_files
from fastbcubed.inputs.json_depth import Nesting
from fastbcubed.results.save import KEEP


def write(path: Path, kind: str, table: pa.Table) -> Path:
    if kind == "arrow":
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table)
    elif kind == "arrows":
        with pa.ipc.new_stream(path, table.schema) as writer:
            writer.write_table(table)
    elif kind == "csv":
        pyarrow.csv.write_csv(table, path)
    else:
        pq.write_table(table, path, write_page_checksum=True)
    return path


def test_paths_that_lead_nowhere(tmp_path: Path) -> None:
    (tmp_path / "hollow").mkdir()
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "readme.txt").touch()
    for path, said in {
        tmp_path / "absent.parquet": "There is no file",
        tmp_path / "nowhere" / "a.parquet": "no folder",
        tmp_path / "*.pq": "No file matches",
        tmp_path / "note*": "note*/** for the files below",
        tmp_path / "hollow": "no files",
        tmp_path / "notes": "only readme.txt",
        tmp_path / "a\0b.parquet": "There is no file",
        "warp://example.org/a.parquet": "cannot be reached",
        "true_cluster": "table=",  # the name of a column where a path is expected
        "truth.csv": "truth.csv. Check the path.",
    }.items():
        for given in (path, str(path)):
            with refused(FileFormatError, said):
                evaluate(given, PREDICTION)
            with refused(FileFormatError, said):
                evaluate(TRUTH, given)
    with refused(FileFormatError, "absent.parquet"):
        evaluate("x", "y", table=tmp_path / "absent.parquet")
    with refused(FileFormatError, "absent.parquet"):
        evaluate(TRUTH, PREDICTION, weight=tmp_path / "absent.parquet")
    with refused(FileFormatError, "absent.parquet"):
        evaluate(TRUTH, PREDICTION, attributes=tmp_path / "absent.parquet")
    with refused(FileFormatError, "holds no saved evaluation"):
        fb.load(tmp_path / "hollow")


FOREIGN = {
    "nothing.parquet": (b"", "empty"),
    "nothing.csv": (b"", "empty"),
    "text.parquet": (b"item,cluster\na,1\n", "not Parquet"),
    "zeros.parquet": (b"\0" * 1000, "not Parquet"),
    "magic.parquet": (b"PAR1" * 3, "cannot be read as Parquet"),
    "footer.parquet": (b"PAR1" + b"\xff" * 100 + b"PAR1", "cannot be read as Parquet"),
    "begun.parquet": (b"PAR1" + b"\0" * 100, "truncated"),
    "begun.arrow": (b"ARROW1" + b"\0" * 100, "truncated"),
    "old.feather": (b"FEA1" + b"\0" * 100 + b"FEA1", "not Parquet"),
    "sheet.xlsx": (b"PK\3\4" + b"\0" * 100, "not Parquet"),
    "latin1.csv": (b"item,cluster\n\xe9,1\n", "Text must be UTF-8"),
    "utf16.csv": ("item,cluster\n1,1\n".encode("utf-16"), "is text in UTF-16. Text must be UTF-8"),
    "utf16be.jsonl": (b"\xfe\xff" + '{"item": 1}\n'.encode("utf-16-be"), "is text in UTF-16"),
    "short.csv": (
        b"item,cluster\na,1\n\nb\n",
        "has 1 field ('b'), but there are 2 column names. Add the missing fields",
    ),
    "long.csv": (
        b'item,cluster\n"a\n,a",1\nb,1\nc,Smith, John\n',
        "has 3 fields ('c', 'Smith', ' John'), but there are 2 column names. Quote values that contain ','",
    ),
    "long.tsv": (b"item\tcluster\na\t1\t\n", "Quote values that contain a tab"),
    "comment.csv": (
        b"# made by a tool\nitem,cluster\na,1\n",
        "has 2 fields ('item', 'cluster'), but there are 1 column names. The first line is a comment",
    ),
    "open quote.csv": (b'item,cluster\n"a,1\nb,1\nc,2\n', "cannot be read as CSV"),
    "not zipped.csv.gz": (b"item,cluster\na,1\n", "cannot be read as CSV"),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_foreign_files(name: str, tmp_path: Path) -> None:
    content, said = FOREIGN[name]
    path = tmp_path / name
    path.write_bytes(content)
    with refused(FileFormatError, name, said):
        evaluate(path, PREDICTION)
    with refused(FileFormatError, name, said):
        evaluate(TRUTH, str(path))


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_the_line_of_an_uneven_row(engine: Any, tmp_path: Path) -> None:
    """Empty lines count, and so do those within a value."""
    for name, line in (("short.csv", 4), ("long.csv", 5), ("long.tsv", 2), ("comment.csv", 2)):
        (tmp_path / name).write_bytes(FOREIGN[name][0])
        with refused(FileFormatError, f"line {line} of {tmp_path / name} has"):
            evaluate(tmp_path / name, PREDICTION, engine=engine)


LINE = b'{"item": "%s", "cluster": 1, "more": %s}\n'
#: Brackets and braces: too deep, in which line; and the deepest that are read.
NESTED = {
    "arrays": (LINE % (b"a", b"[" * 64 + b"]" * 64), "in line 1"),
    "objects": (LINE % (b"a", b"0") + LINE % (b"b", b'{"a": ' * 64 + b"0" + b"}" * 64), "in line 2"),
    "over lines": (b'{"item": "a", "cluster": 1, "more": ' + b"[\n" * 64, "in line 64"),
    "without an end": (b"[" * 40_000, "in line 1"),
    "after a text with brackets": (LINE % (b'\\"]]]]\\\\', b"[" * 64), "in line 1"),
    "after a text that goes on": (b'{"item": "a\n' + b"[" * 65, "in line 2"),
    "after too many ends": (b"]" * 100 + b"\n" + b"[" * 65, "in line 2"),
    "after many lines": (LINE % (b"a", b"[[0]]") * 40_000 + b"[" * 65, "in line 40,001"),
}
NOT_NESTED = {
    "the deepest": LINE % (b"a", b"[" * 63 + b"]" * 63),
    "in a text": LINE % (b"[" * 100, b"0"),
    "in a text after escapes": LINE % (b'\\\\\\"' + b"[" * 100 + b'\\"', b"0"),
    "in many lines": LINE % (b"[{[{", b"[[[{}]]]") * 40_000,
}


@pytest.mark.parametrize("end", ["", ".gz"])
def test_nested_lines_are_refused_before_arrow_parses_them(end: str, tmp_path: Path) -> None:
    """Of some thousand brackets, Arrow exhausts its stack, which ends the process."""
    pack = gzip.compress if end else bytes
    for name, (content, said) in NESTED.items():
        path = tmp_path / f"{name}.jsonl{end}"
        path.write_bytes(pack(content))
        with refused(FileFormatError, path.name, "nested more than 64 levels deep", said):
            evaluate(path, PREDICTION)
    for name, content in NOT_NESTED.items():
        path = tmp_path / f"{name}.jsonl{end}"
        path.write_bytes(pack(content))
        assert list(open_files(path).names) == ["item", "cluster", "more"], name


@pytest.mark.cases(2)
@pytest.mark.parametrize("cut", [1, 2, 3, 5, 64])
def test_blocks_may_end_anywhere_in_nested_lines(cut: int) -> None:
    """A twin walks over the signs one by one."""
    rng = random.Random(cut)
    for _ in range(20):
        text = bytes(rng.choices(b'[{]}"\\\na', (8, 8, 3, 3, 3, 2, 1, 3), k=400))
        nesting, line = Nesting("a.jsonl"), naive_line_too_deep(text)
        try:
            for at in range(0, len(text), cut):
                nesting.add(text[at : at + cut])
        except FileFormatError as error:
            assert f"in line {line}." in str(error)
        else:
            assert line is None


def naive_line_too_deep(text: bytes, deepest: int = 64) -> int | None:
    """Return the line in which brackets outside of texts are nested too deep, if any."""
    depth, line, in_text, escaped = 0, 1, False, False
    for sign in text.decode():
        if sign == "\n":
            line, in_text = line + 1, False
        elif sign == '"' and not escaped:
            in_text = not in_text
        elif not in_text and sign in "[{":
            depth += 1
        elif not in_text and sign in "]}":
            depth = max(0, depth - 1)
        escaped = sign == "\\" and not escaped
        if depth > deepest:
            return line
    return None


@pytest.mark.skipif(sys.platform != "linux", reason="needs a file system that takes any bytes for a name")
def test_a_path_that_is_not_utf_8(tmp_path: Path) -> None:
    path = write(tmp_path / "plain.parquet", "parquet", PREDICTION).rename(tmp_path / "tr\udcfcth.parquet")
    with refused(FileFormatError, "is not UTF-8, as paths must be"):
        evaluate(TRUTH, path)


@pytest.mark.parametrize("kind", ["parquet", "arrow", "arrows", "csv"])
def test_files_without_rows(kind: str, tmp_path: Path) -> None:
    path = write(tmp_path / f"none.{kind}", kind, TRUTH.slice(0, 0))
    with refused(EmptyInputError, f"none.{kind}", "no rows"):
        evaluate(path, PREDICTION)
    with refused(EmptyInputError, f"none.{kind}", "no rows"):
        evaluate(TRUTH, path)


def test_nothing_to_score_by_position(tmp_path: Path) -> None:
    path = write(tmp_path / "none.parquet", "parquet", TRUTH.slice(0, 0))
    for engine in ("memory", "disk"):
        with refused(EmptyInputError, "no rows"):
            evaluate([], [], engine=engine)
        with refused(EmptyInputError, "no rows"):
            evaluate("item", "cluster", table=path, engine=engine)


def test_long_texts_that_repeat_are_read_in_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between batches signals are heard; the file has each text once, so its size says nothing of the rows."""
    monkeypatch.setattr(file_formats, "BYTES_AT_ONCE", 100_000)
    texts = ["a" * 5000, "b" * 5000] * 50  # 500,000 bytes in memory, 10,000 in the file
    pq.write_table(pa.table({"item": range(100), "cluster": texts}), tmp_path / "a.parquet")
    (column,) = file_formats.ParquetFile(str(tmp_path / "a.parquet")).read(["cluster"])
    assert column.to_pylist() == texts
    assert [len(chunk) for chunk in column.chunks] == [19] * 5 + [
        5
    ]  # 5,004 bytes, offsets included, 19 times


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_every_truncation_is_noticed(kind: str, tmp_path: Path) -> None:
    whole = write(tmp_path / "whole", kind, TRUTH).read_bytes()
    short = tmp_path / f"short.{kind}"
    for length in range(0, len(whole), 13):
        short.write_bytes(whole[:length])
        with refused(FileFormatError, short.name):
            evaluate(short, PREDICTION)


CSV = {
    "with a byte order mark": (b"\xef\xbb\xbfitem,cluster\na,1\nb,1\nc,2\n", SCORES),
    "with Windows line ends": (b"item,cluster\r\na,1\r\nb,1\r\nc,2\r\n", SCORES),
    "with blank lines": (b"item,cluster\n\na,1\n\nb,1\nc,2\n\n", SCORES),
    "with quotes": (b'item,cluster\n"a","1"\nb,1\nc,"2"\n', SCORES),
    "names that look like nulls": (b"item,cluster\na,NA\nb,NA\nc,null\n", SCORES),
    "leading zeros": (b"item,cluster\na,01\nb,1\nc,1\n", (1.0, 1.0)),
    "an empty text": (b'item,cluster\na,""\nb,""\nc,x\n', SCORES),
    "no cluster": (b"item,cluster\na,\nb,1\nc,2\n", (NullError, "1 of 3 rows", "'a'", 'nulls="drop"')),
    "no item": (b"item,cluster\n,1\nb,1\nc,2\n", (NullError, "1 of 3", "rows: 0")),
    "semicolons": (b"item;cluster\na;1\nb;1\nc;2\n", SCORES),
    "semicolons that do not fit": (b"item;cluster\na;1;x\n", (ColumnError, "item;cluster", "item=")),
    "If that is not a header, name the columns": (b"a,1\nb,1\n", (ColumnError, "a, 1", "item=")),
    "the same header twice": (
        b"item,item,cluster\na,b,1\n",
        (ColumnError, "2 columns named 'item'", "Rename"),
    ),
    "decimal points": (b"item,cluster\na,1.0\nb,1.0\nc,2.5\n", SCORES),
    "texts that look like floats": (b"item,cluster\na,12e4\nb,120000\nc,120000.0\n", (2 / 3, 1.0)),
    "a header alone": (b"item,cluster\n", (EmptyInputError, "there are no rows in")),
    "a header alone, without its end": (b"item,cluster", (EmptyInputError, "there are no rows in")),
    "another header without its end": (b"\xef\xbb\xbfa,1", (ColumnError, "a, 1", "item=")),
    "nothing": (b"\r\n\n", (FileFormatError, "contains no text, not even column names")),
    "compressed in secret": (gzip.compress(b"item,cluster\na,1\n"), (FileFormatError, "rows.csv.gz")),
    "numbers for names": (b"item,cluster\n1,1\n2,1\n", (EmptyInputError, "'1', '2' against 'a', 'b', 'c'")),
}


@pytest.mark.filterwarnings("ignore:.*read as missing values:fastbcubed.errors.EvaluationWarning")
@pytest.mark.parametrize("content", CSV.values(), ids=CSV)
def test_csv(content: tuple[bytes, Any], tmp_path: Path) -> None:
    path, expected = tmp_path / "rows.csv", content[1]
    path.write_bytes(content[0])
    if isinstance(expected[0], float):
        assert scores(path, PREDICTION) == pytest.approx(expected, abs=1e-15)
    else:
        with refused(expected[0], "rows.csv" if expected[0] is not NullError else "", *expected[1:]):
            evaluate(path, PREDICTION)


def test_csv_weights(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    for values, said in {
        (1, "x", 2): "should be numbers",
        (1, "", 2): "1 of 3",
        (1, "inf", 2): "(inf in row 1)",
        (1, "nan", 2): "(nan in row 1)",
        (1, 0, 2): "(0.0 in row 1)",
        (1, -1e-5, 2): "(-1e-05 in row 1)",
    }.items():
        a, b, c = values
        path.write_text(f"item,cluster,w\na,1,{a}\nb,1,{b}\nc,2,{c}\n")
        with refused(WeightError, said, "rows.csv"):
            evaluate(path, PREDICTION, weight="w")
    path.write_text("item,cluster,w\na,1,0.5\nb,1,1\nc,2,1e3\n")
    assert evaluate(path, PREDICTION, weight="w").contingency.total_weight == 1001.5


@pytest.mark.parametrize(
    "error", [pa.ArrowMemoryError("malloc of size 5 failed"), OSError(12, "malloc of size 5")]
)
def test_lack_of_memory_is_not_called_damage(error: Exception) -> None:
    with refused(
        OutOfMemoryError, "a.parquet cannot be read as Parquet for lack of memory", "size 5", "ulimit"
    ):
        with reading("a.parquet", "Parquet"):
            raise error


DAMAGE = """
import sys, warnings
import fastbcubed as fb
warnings.simplefilter("ignore")
for path in sys.argv[1:]:
    with open(path, "rb") as file:
        whole = file.read()
    by = {key: {"item": key, "cluster": "cluster"} for key in ("item", "name")}
    own = {key: fb.Clustering.from_table(path, **how) for key, how in by.items()}
    right = fb.evaluate(path, own["item"], weight="w", item="item", cluster="cluster").to_dict()["overall"]
    faults = scored = 0
    for k, at in enumerate(range(0, len(whole), max(1, len(whole) // 110))):
        for flip in (1 << at % 8, 0xFF):
            key = ("item", "name")[k % 2]
            content = bytearray(whole)
            content[at] ^= flip
            damaged = path.replace("whole", "damaged")
            with open(damaged, "wb") as file:
                file.write(content)
            try:
                ev = fb.evaluate(damaged, own[key], weight="w", **by[key])
                ev.clusters("true")
            except fb.FastBCubedError as error:
                assert "damaged" in str(error) or "whole" in str(error), (path, error)
                assert len(str(error)) < 2000
                faults += 1
            else:
                scored += 1
                if path.endswith(".parquet"):  # which has checksums
                    assert dict(ev.overall) == right, (at, flip)
    assert faults > 20 and scored > 0, (path, faults, scored)
"""


@pytest.mark.process
def test_flipped_bytes(tmp_path: Path) -> None:
    """Never a crash or a foreign error; with checksums, never another score. In a process of its own."""
    numbers = np.arange(90)
    rows = {
        "item": numbers**2,
        "name": [f"n{k}" for k in numbers],
        "cluster": numbers // 4,
        "w": 1.0 + numbers % 7,
    }
    paths = [
        write(tmp_path / f"whole.{kind}", kind, pa.table(rows)) for kind in ("parquet", "arrow", "arrows")
    ]
    done = subprocess.run([sys.executable, "-c", DAMAGE, *paths], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def claiming(path: Path, n_rows: int, claimed: int) -> Path:
    """Write Parquet of so many rows whose footer claims others, wherever it speaks of them."""

    def number(n: int) -> bytes:  # zigzag, seven bits a byte
        n = 2 * n if n >= 0 else -2 * n - 1
        low = [n >> shift & 127 for shift in range(0, max(1, n.bit_length()), 7)]
        return bytes([*(each | 128 for each in low[:-1]), low[-1]])

    pq.write_table(pa.table({"t": [7] * n_rows, "p": [7] * n_rows}), path)
    data = path.read_bytes()
    size = int.from_bytes(data[-8:-4], "little")
    footer = data[-8 - size : -8].replace(number(n_rows), number(claimed))
    path.write_bytes(data[: -8 - size] + footer + len(footer).to_bytes(4, "little") + b"PAR1")
    assert pq.read_metadata(path).num_rows == claimed
    return path


@pytest.mark.parametrize("claimed", [1 << 62, 10**12, -12345])
@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_parquet_that_claims_rows_it_cannot_have(claimed: int, engine: Any, tmp_path: Path) -> None:
    path = claiming(tmp_path / "t.parquet", 12345, claimed)
    with pytest.raises(FileFormatError, match=rf"t.parquet claims {claimed:,} rows in .* damaged"):
        fb.evaluate("t", "p", table=path, engine=engine)


def test_rows_that_a_file_claims_take_no_memory_before_they_are_read(tmp_path: Path) -> None:
    """Ten thousand million equal rows may be in some kilobytes: blocks are cut as they are read, not listed."""
    path = claiming(tmp_path / "t.parquet", 12345, 10**10)
    (source,) = open_files(path).scan(100)
    tracemalloc.start()
    with pytest.raises(FileFormatError, match="had 10000000000 rows in group 0 and now has 12345"):
        for block in source.blocks():
            block.columns(["t"])
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()


@pytest.mark.parametrize("name", ["overall.json", "cells.parquet", "true_clusters.parquet", "items.parquet"])
def test_a_damaged_result_is_not_loaded(name: str, tmp_path: Path) -> None:
    evaluate(TRUTH, PREDICTION).save(tmp_path / "result")
    file = tmp_path / "result" / name
    whole = file.read_bytes()
    for content in (b"", whole[: len(whole) // 2], b"\0" * len(whole)):
        file.write_bytes(content)
        with refused(FileFormatError, name):
            fb.load(tmp_path / "result")
    file.unlink()
    with refused(FileFormatError, name):
        fb.load(tmp_path / "result")


def test_a_result_is_not_written_over_a_file(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("mine")
    with refused(FileFormatError, "taken"):
        evaluate(TRUTH, PREDICTION).save(tmp_path / "taken")
    with refused(FileFormatError, "taken"):
        evaluate(TRUTH, PREDICTION, out=tmp_path / "taken")
    assert (tmp_path / "taken").read_text() == "mine"


@pytest.mark.cases(3, 99)
@pytest.mark.parametrize("place", ["", "more/results", "."])
@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_results_among_the_input(place: str, engine: Any, tmp_path: Path) -> None:
    """They were written, and the next run read them as input."""
    (tmp_path / "d").mkdir()
    pq.write_table(TRUTH, tmp_path / "d" / "part-0.parquet")
    with refused(OptionError, "out= is", "would be read the next time", "begins with an underscore"):
        evaluate(tmp_path / "d", PREDICTION, out=tmp_path / "d" / place, engine=engine)
    with refused(OptionError, "out= is"):
        fb.diff(PREDICTION, tmp_path / "d", out=tmp_path / "d" / place)
    assert os.listdir(tmp_path / "d") == ["part-0.parquet"]
    evaluate(tmp_path / "d", PREDICTION, out=tmp_path / "d" / "_results", engine=engine)
    assert scores(tmp_path / "d", PREDICTION) == SCORES
    evaluate(tmp_path / "d" / "part-0.parquet", PREDICTION, out=tmp_path / "dd", engine=engine)


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    ("pattern", "place"),
    [
        ("*.parquet", ""),
        ("**/*.parquet", "results"),
        ("_*/*.parquet", "_results"),
        ("*/*.parquet", "results"),
        ("**/[pr]*s.parquet", "results"),
    ],
)
@pytest.mark.parametrize("uri", [False, True])
@pytest.mark.filterwarnings("ignore::fastbcubed.errors.EvaluationWarning")
def test_results_that_a_glob_matches(pattern: str, place: str, uri: bool, tmp_path: Path) -> None:
    """A glob that matches what has been written reads it the next time, as a directory does."""
    (tmp_path / "d" / "part").mkdir(parents=True)
    for folder in (tmp_path / "d", tmp_path / "d" / "part"):
        pq.write_table(TRUTH.slice(0, 2) if folder.name == "d" else TRUTH.slice(2), folder / "rows.parquet")
    truth = f"file://{tmp_path}/d/{pattern}" if uri else f"{tmp_path}/d/{pattern}"
    with refused(OptionError, "out= is", "all files that match", "would be read the next time"):
        evaluate(truth, PREDICTION, out=tmp_path / "d" / place)
    with refused(OptionError, "out= is"):
        fb.diff(PREDICTION, truth, out=tmp_path / "d" / place)
    assert sorted(os.listdir(tmp_path / "d")) == ["part", "rows.parquet"]
    evaluate(f"{tmp_path}/d/**/*.parquet", PREDICTION, out=tmp_path / "d" / "_out")
    evaluate(f"{tmp_path}/d/**/*.parquet", PREDICTION, out=tmp_path / "results")
    before = evaluate(f"{tmp_path}/d/*.parquet", PREDICTION, out=tmp_path / "d" / "part" / "results").overall
    assert evaluate(f"{tmp_path}/d/*.parquet", PREDICTION).overall == before


@pytest.mark.parametrize("remote", [False, True])
def test_a_glob_passes_over_marks_and_checksums(remote: bool, tmp_path: Path) -> None:
    """Spark and Hadoop leave them beside the data; a glob that asks for hidden files gets them."""
    for name in ("part-0.parquet", "_temporary/part-9.parquet", "year=1/part-1.parquet"):
        (tmp_path / "d" / name).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(TRUTH.slice(0, 2) if "-0" in name else TRUTH.slice(2), tmp_path / "d" / name)
    for name in ("_SUCCESS", "part-0.parquet.crc", "_common_metadata", "year=1/._SUCCESS.crc"):
        (tmp_path / "d" / name).write_bytes(b"")
    folder = str(tmp_path / "d")
    if remote:
        fsspec = pytest.importorskip("fsspec")
        folder = f"memory://{tmp_path.name}"
        fsspec.filesystem("memory").put(f"{tmp_path}/d", f"/{tmp_path.name}", recursive=True)
    assert len(open_files(f"{folder}/*")) == 2
    assert scores(f"{folder}/**", PREDICTION) == SCORES
    assert len(open_files(f"{folder}/_temp*/*")) == len(TRUTH) - 2
    with refused(FileFormatError, "No file matches", "_SUCCESS, which is ignored"):
        open_files(f"{folder}/[_]SUC*")


@pytest.mark.parametrize(
    "log", ["_delta_log/00000000000000000000.json", ".hoodie/x", "metadata/v1.metadata.json"]
)
def test_folders_whose_log_says_which_files_count(log: str, tmp_path: Path) -> None:
    """Files that a later commit removed would count."""
    (tmp_path / log).parent.mkdir()
    (tmp_path / log).write_text("{}")
    (tmp_path / "year=1").mkdir()
    pq.write_table(TRUTH, tmp_path / "year=1" / "part.parquet")
    with refused(
        FileFormatError, f"{log.partition('/')[0]} lists which of its files are current", "/**/*.parquet"
    ):
        evaluate(tmp_path, PREDICTION)
    assert scores(tmp_path / "**" / "*.parquet", PREDICTION) == SCORES
    (tmp_path / log).rename(tmp_path / "metadata.json")
    assert scores(tmp_path, PREDICTION) == SCORES


def test_text_by_the_name_txt(tmp_path: Path) -> None:
    """Its beginning tells what it is; below a directory it may be a note."""
    items, clusters = TRUTH["item"].to_pylist(), TRUTH["cluster"].to_pylist()
    for mark in ",\t;|":
        lines = [f"item{mark}cluster", *(f"{i}{mark}{c}" for i, c in zip(items, clusters, strict=True))]
        (tmp_path / "t.txt").write_text("\n".join(lines))
        assert scores(tmp_path / "t.txt", PREDICTION) == SCORES
        assert scores(tmp_path / "*.txt", PREDICTION) == SCORES
    (tmp_path / "t.txt.gz").write_bytes(gzip.compress((tmp_path / "t.txt").read_bytes()))
    assert scores(tmp_path / "t.txt.gz", PREDICTION) == SCORES
    (tmp_path / "t.txt").write_text("\n".join(map(json.dumps, TRUTH.to_pylist())))
    assert scores(tmp_path / "t.txt", PREDICTION, engine="disk") == SCORES
    pq.write_table(TRUTH, tmp_path / "t.parquet")
    assert scores(tmp_path, PREDICTION) == SCORES


def test_all_files_of_results_are_known_to_globs() -> None:
    """Those that a glob is looked at for are those that are written."""
    assert {*RESULTS} > {"repairs"}.union(*KEEP.values())


def test_spark_is_given_no_files_whose_log_says_which_count(tmp_path: Path) -> None:
    (tmp_path / "_delta_log").mkdir()
    with refused(FileFormatError, "Delta Lake"):
        evaluate_command._read(None, str(tmp_path))


def test_compressed_text_is_judged_by_what_is_in_it(tmp_path: Path) -> None:
    """Three million rows in some kilobytes: 12 MB of text, held twice, and 128 bytes for each row of two columns."""
    path = tmp_path / "rows.csv.gz"
    path.write_bytes(gzip.compress(b"item,cluster\n" + b"1,1\n" * 3_000_000))
    assert path.stat().st_size < 20_000
    wanted = 3_000_000 * (2 * 4 + 2 * 16 + 2 * 48)
    assert 0.99 * wanted < files.bytes_of_text(path) < 1.01 * wanted
    with pytest.raises(OptionError, match=r"rows.csv.gz, given as truth= would take about .*held as a whole"):
        fb.evaluate(path, path, engine="disk", memory_limit="64MiB")
    with pytest.raises(OptionError, match=r"rows.csv.gz, given as truth= would take about .*held as a whole"):
        fb.evaluate(path, path, memory_limit="64MiB")
    path.write_bytes(b"nonsense")
    with pytest.raises(FileFormatError, match=r"rows.csv.gz cannot be read"):
        files.bytes_of_text(path)


@pytest.mark.slow
def test_parquet_of_wide_texts_is_read_in_batches_of_bytes(tmp_path: Path) -> None:
    """A signal is heard between batches; 1,500 rows of 100 kB are 150 MB, in batches of at most 64 MiB."""
    texts = [f"{i:08d}" + "ab" * 50_000 for i in range(1500)]
    path = tmp_path / "wide.parquet"
    pq.write_table(pa.table({"item": texts, "n": range(1500)}), path, compression="zstd")
    read, numbers = open_files(path).columns(["item", "n"])
    assert max(chunk.nbytes for chunk in read.chunks) <= 64 << 20
    assert read.to_pylist() == texts
    assert numbers.to_pylist() == list(range(1500))
