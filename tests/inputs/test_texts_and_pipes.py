"""Text with any delimiter, JSON lines, compressed or not; standard input, pipes and paths at home."""

from __future__ import annotations

import bz2
import gzip
import io
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastbcubed as fb
from fastbcubed.cli import main as cli
from fastbcubed.errors import ColumnError, FileFormatError, IdTypeError, OptionError
from fastbcubed.inputs import pipes
from fastbcubed.inputs.file_formats import CsvFile, delimiter_of
from fastbcubed.inputs.files import read_integers, read_table

TRUTH = pa.table({"item": [1, 2, 3], "cluster": ["a", "a", "b"]})
PREDICTION = pa.table({"item": [1, 2, 3], "cluster": ["x", "y", "y"]})
# items 1, 2, 3: precisions 1, 1/2, 1/2 and recalls 1/2, 1/2, 1
SCORES = (pytest.approx(2 / 3), pytest.approx(2 / 3))
ENGINES = ("memory", "disk")


def scores(*given: Any, **options: Any) -> tuple[float, float]:
    ev = fb.evaluate(*given, **options)
    return ev.precision, ev.recall


# --- delimiters ---


@pytest.mark.cases(6, 99)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ["t.csv", "t.tsv"])
@pytest.mark.parametrize("mark", [",", "\t", ";", "|"])
def test_delimiters(mark: str, name: str, engine: str, tmp_path: Path) -> None:
    rows = ["item,cluster,note", '1,"a","x"', '2,"a",""', "3,b,z"]
    (tmp_path / name).write_text("\n".join(rows).replace(",", mark) + "\n", encoding="utf-8-sig")
    assert scores(tmp_path / name, PREDICTION, engine=engine) == SCORES
    assert read_table(tmp_path / name)["item"].to_pylist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("head", "mark"),
    [
        ("item,cluster\n1,a;b\n2,c;d\n", ","),
        ("item;weight\n1;0,5\n2;0,7\n", ";"),
        ('item;"a;b,c"\n1;"x;y"\n', ";"),
        ("item\n1\n", ","),
        ("item|cluster\n1|a\n\n2|b\n", "|"),
        ("name, first\tcluster\nA, B\tc\n", "\t"),
        ("", ","),
    ],
)
def test_the_delimiter_cuts_all_rows_alike(head: str, mark: str) -> None:
    assert delimiter_of(head, "t.csv") == (mark if mark != "\t" else ",")  # as its name says, if that fits


def test_a_delimiter_that_is_not_sure_is_asked_for() -> None:
    with pytest.raises(FileFormatError, match=r"separated by ';' or by '\|'.*first line is 'a;b\|c;d'"):
        delimiter_of("a;b|c;d\n1;2|3;4\n", "t.csv")
    assert delimiter_of("name, first\tcluster\nA, B\tc\n", "t.tsv") == "\t"


def test_a_long_first_row_is_cut_where_it_ends() -> None:
    assert delimiter_of("a;b\n" + "1;2\n" * 10_000 + "1;2;", "t.csv") == ";"


def test_no_file_is_read_when_it_has_been_closed(tmp_path: Path) -> None:
    """A thread that still reads would read what is opened next: its number is that of the file that was closed."""
    late = []

    class SlowFile(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            data = super().read(size)
            time.sleep(0.05)
            late.append(self.closed)
            return data

    class SlowPlace:
        def open_text(self, name: str) -> pa.NativeFile:
            return pa.PythonFile(SlowFile(Path(name).read_bytes()), "r")

    path = tmp_path / "t.csv"
    path.write_text(
        "item,cluster\n" + "".join(f"{k},{k // 3}\n" for k in range(400_000))
    )  # 5 MB, in five blocks
    assert CsvFile(str(path), SlowPlace()).n_rows == 400_000  # type: ignore[arg-type]
    time.sleep(0.2)
    assert len(late) > 5 and not any(late)


@pytest.mark.parametrize("options", [{}, {"engine": "disk"}, {"overlapping": True}], ids=str)
def test_a_file_without_a_header_says_what_to_pass(options: Any, tmp_path: Path) -> None:
    path = tmp_path / "pred.csv"
    path.write_text("17,a\n18,b\n")
    with pytest.raises(ColumnError) as caught:
        fb.evaluate(TRUTH, path, **options)
    told = str(caught.value)
    assert f"The first line of {path} is '17,a'. If that is not a header" in told
    assert 'header=None, names=["item", "cluster"])' in told
    assert f"(echo item,cluster; cat {path}) | fastbcubed evaluate TRUTH -" in told
    path.write_text("17,a,x\n18,b,x\n")
    with pytest.raises(ColumnError, match=r"names=\[\.\.\.\]\), with a name for each of the 3") as caught:
        fb.evaluate(TRUTH, path, **options)
    assert "echo" not in str(caught.value)
    path.write_text("ident,entity\n18,b\n")
    with pytest.raises(ColumnError) as caught:
        fb.evaluate(TRUTH, path, item="id")
    assert "first line" not in str(caught.value)


# --- JSON lines and compression ---

PACKED: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".zst": lambda data: pa.compress(data, "zstd", asbytes=True),
}
JSON = b"""{"item": 1, "cluster": "a", "seen": "2020-01-01", "tags": ["x"]}
{"cluster": "a", "item": 2, "seen": null}
{"item": 3, "cluster": "b", "seen": "2020-01-02T03:04:05", "more": {"x": 1}}
"""


@pytest.mark.cases(6)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("ending", PACKED)
@pytest.mark.parametrize("name", ["t.jsonl", "t.ndjson", "t.csv"])
def test_json_lines_and_csv_may_be_compressed(name: str, ending: str, engine: str, tmp_path: Path) -> None:
    data = b"item,cluster\n1,a\n2,a\n3,b\n" if name == "t.csv" else JSON
    (tmp_path / f"{name}{ending}").write_bytes(PACKED[ending](data))
    assert scores(tmp_path / f"{name}{ending}", PREDICTION, engine=engine) == SCORES
    assert scores(tmp_path, PREDICTION, engine=engine) == SCORES  # found in a directory


def test_text_of_json_stays_text(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_bytes(JSON)
    table = read_table(tmp_path / "t.jsonl")
    assert table["seen"].to_pylist() == ["2020-01-01", None, "2020-01-02T03:04:05"]
    (tmp_path / "t.jsonl").write_text('{"item": "007", "cluster": 1.0}\n{"item": "7", "cluster": 2}\n')
    ev = fb.evaluate(tmp_path / "t.jsonl", {"007": "x", "7": "x"})
    assert ev.precision == 0.5


@pytest.mark.parametrize("text", ['{"item": 1', '{"item": 1}\n{"item": "a"}\n', "[1]\n", "{}\n}"])
def test_damaged_json_is_named(text: str, tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text(text)
    with pytest.raises(FileFormatError, match=r"t\.jsonl cannot be read as JSON lines"):
        fb.evaluate(tmp_path / "t.jsonl", PREDICTION)


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["1.0", None, "-2.0", "0.0"], [1.0, None, -2.0, 0.0]),
        (["1.0", "1.00"], ["1.0", "1.00"]),
        (["1.0", "01.0"], ["1.0", "01.0"]),
        (["-0.0", "0.0"], ["-0.0", "0.0"]),
        (["1.0", "1"], [1.0, 1.0]),
        (["1.0", "1", "01"], ["1.0", "1", "01"]),
        (["1.0", "+1"], ["1.0", "+1"]),
        (["1.0", "1e3"], ["1.0", "1e3"]),
        (["1.0", "-0"], ["1.0", "-0"]),
        (["007", "7", "1e3", "1000"], ["007", "7", "1e3", "1000"]),
        (["123456789012345678.0", "-1"], [123456789012345678, -1]),
        (["1234567890123456789.0", "1"], ["1234567890123456789.0", "1"]),
        (["9223372036854775808", "1.0"], ["9223372036854775808", "1.0"]),
        (["1.5"], ["1.5"]),
    ],
)
def test_whole_floats_in_text(texts: list[Any], expected: list[Any]) -> None:
    assert read_integers(pa.chunked_array([pa.array(texts, pa.string())])).to_pylist() == expected


def test_ids_of_csv_that_pandas_made_float(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("item,cluster\n1,1.0\n2,1.0\n3,2.0\n")
    ev = fb.evaluate(tmp_path / "t.csv", PREDICTION)
    assert (ev.precision, ev.recall) == SCORES
    assert [w["code"] for w in ev.warnings] == ["few-units", "whole-floats"]


#: One column of ids in two files: whether its texts are numbers, and its distinct ids by the file of each.
COLUMNS_IN_TWO_FILES = {
    "a gap in one": (["10", "11"], ["10.0", "", "12.0"], [10, 11], [10, 12]),
    "leading zeros in one": (["10", "007"], ["10.0", "7"], ["10", "007"], ["10.0", "7"]),
    "an exponent in one": (["1000"], ["1e3", "1000.0"], ["1000"], ["1e3", "1000.0"]),
    "a long number in one": (
        ["10"],
        ["10.0", "9223372036854775808"],
        ["10"],
        ["10.0", "9223372036854775808"],
    ),
}


@pytest.mark.cases(3, 99)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", COLUMNS_IN_TWO_FILES)
def test_one_column_has_one_type_in_all_files(engine: str, name: str, tmp_path: Path) -> None:
    first, second, ids, more = COLUMNS_IN_TWO_FILES[name]
    folder = tmp_path / "parts"
    folder.mkdir()
    for k, labels in enumerate((first, second)):
        rows = [f"i{k}{n},{label},{label}" for n, label in enumerate(labels)]
        (folder / f"{k}.csv").write_text("\n".join(["item,cluster,year", *rows]) + "\n")
    for source in (folder, str(folder / "*.csv"), [str(folder / f"{k}.csv") for k in (0, 1)]):
        ev = fb.evaluate(source, source, nulls="singleton", slices="truth.year", engine=engine)
        found = ev.clusters("true")["cluster"].to_pylist()
        assert set(found) - {None} == {*ids, *more}
        years = ev.slices("truth.year")[0].to_pylist()
        assert len(years) == len(set(years)) == len({*ids, *more}) + ("" in second)


def test_numbers_written_with_and_without_a_point_are_one_id(tmp_path: Path) -> None:
    """Of both sides, links, weights, attributes and folders."""

    def csv(name: str, text: str) -> str:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
        return str(tmp_path / name)

    whole = csv("t.csv", "item,cluster\n1,5\n2,5\n3,6\n")
    points = csv("p.csv", "item,cluster\n1.0,7\n2.0,8\n3,8.0\n")
    weights = csv("w.csv", "item,weight\n1,1\n2.0,2\n3.0,1\n")
    kinds = csv("a.csv", "item,year\n1.0,2020\n2,2020.0\n3,2021\n")
    ev = fb.evaluate(whole, points, weight=Path(weights), attributes=kinds, slices="year")
    # weights 1, 2, 1: precision of 1 is 1, of 2 2/3, of 3 1/3; recall 1/3, 2/3, 1
    assert ev.precision == pytest.approx((1 + 2 * 2 / 3 + 1 / 3) / 4)
    assert ev.recall == pytest.approx((1 / 3 + 2 * 2 / 3 + 1) / 4)
    assert dict(zip(*(ev.slices("year")[k].to_pylist() for k in (0, 1)), strict=True)).keys() == {2020, 2021}
    links = csv("l.csv", "left,right\n1,2.0\n3,3.0\n")
    linked = fb.Clustering.from_links(links)
    assert fb.evaluate(whole, linked).f1 == 1
    for folder in ("year=2020", "year=2020.0", "year=2021"):
        csv(f"{folder}/rows.csv", f"item,cluster\n{folder},1\n")
    hive = str(tmp_path / "year=*" / "*.csv")
    assert fb.evaluate(hive, hive, slices="truth.year").slices("truth.year")[0].to_pylist() == [2020, 2021]


@pytest.mark.cases(0)
@pytest.mark.parametrize("engine", ENGINES)
def test_numbers_of_csv_match_text(engine: str, tmp_path: Path) -> None:
    numbers, texts = tmp_path / "numbers.csv", tmp_path / "texts.csv"
    numbers.write_text("item,cluster\n1,a\n2,a\n3,b\n")
    texts.write_text("item,cluster\n2,x\n1,x\nb2,x\n03,x\n")
    parquet = tmp_path / "texts.parquet"
    pq.write_table(pa.table({"item": ["2", "1", "b2", "03"], "cluster": list("xxxx")}), parquet)
    for other in (texts, parquet, fb.Clustering.from_table(texts)):  # alone on their side: 3; b2 and 03
        ev = fb.evaluate(numbers, other, unmatched="singleton", engine=engine, keep="items")
        # precision: 1 and 2 are 2 of 4, b2 and 03 1 of 4, and 3 is alone; recall 1
        assert ev.precision == pytest.approx((2 / 4 + 2 / 4 + 1 / 4 + 1 / 4 + 1) / 5)
        assert ev.recall == 1
        assert sorted(ev.items()["item"].to_pylist()) == ["03", "1", "2", "3", "b2"]
        assert fb.evaluate(other, numbers, engine=engine).precision == 1  # without 3; 1 and 2 are together

    weights, attributes = tmp_path / "weights.csv", tmp_path / "attributes.csv"
    weights.write_text("item,weight\n1,1\n2,2\n3,1\nb2,1\n")
    attributes.write_text("item,kind\n1,u\n2,u\n3,v\n03,v\n")
    ev = fb.evaluate(numbers, numbers, weight=weights, attributes=attributes, slices="kind", engine=engine)
    assert ev.slices("kind")["weight"].to_pylist() == [3, 1]

    table = tmp_path / "table.csv"
    table.write_text("item,t,p\n1,a,x\n2,a,x\n3,b,x\n")
    ev = fb.evaluate("t", "p", table=table, attributes=attributes, slices="kind", engine=engine)
    assert ev.slices("kind")["precision"].to_pylist() == [pytest.approx(2 / 3), pytest.approx(1 / 3)]

    pq.write_table(pa.table({"item": [1, 2, 3], "cluster": list("xxy")}), parquet)
    with pytest.raises(IdTypeError, match="never match"):
        fb.evaluate(parquet, texts, engine=engine)


@pytest.mark.parametrize("engine", ENGINES)
def test_numbers_in_parts_of_ids_of_csv_match_text(engine: str, tmp_path: Path) -> None:
    for name, source in (("a.csv", "7"), ("b.csv", "x7")):
        (tmp_path / name).write_text(f"source,id,cluster\n1,1,a\n1,2,a\n{source},1,b\n")
    ev = fb.evaluate(
        tmp_path / "a.csv", tmp_path / "b.csv", item=["source", "id"], engine=engine, keep="items"
    )
    assert [(each["source"], each["id"]) for each in ev.items()["item"].to_pylist()] == [("1", 1), ("1", 2)]


def test_runs_in_csv_have_ids_of_one_type(tmp_path: Path) -> None:
    for name, last in (("truth.csv", "3"), ("a.csv", "3"), ("b.csv", "b3")):
        (tmp_path / name).write_text(f"item,cluster\n1,a\n2,a\n{last},b\n")
    paths = [tmp_path / name for name in ("truth.csv", "a.csv", "b.csv")]
    assert fb.compare(paths[0], {"a": paths[1], "b": paths[2]}).scores()["n_items"].to_pylist() == [2, 2]
    assert fb.diff(paths[1], paths[2], truth=paths[0], unmatched="singleton").split_rate == 0


def test_links_in_csv_have_ids_of_one_type(tmp_path: Path) -> None:
    """Of two sources, one of which numbers its records; also against a truth and items that are text, or numbers."""
    links, numbers, texts = (tmp_path / f"{name}.csv" for name in ("links", "numbers", "texts"))
    links.write_text("left,right,score\n1,b1,0.9\n2,b2,0.8\n")
    numbers.write_text("item,cluster\n1,x\n2,x\n")
    texts.write_text("item,cluster\n1,x\nb1,x\n2,y\nb2,y\n")
    made = fb.Clustering.from_links(links).to_table()
    assert dict(zip(*made.to_pydict().values(), strict=True)) == {"1": 0, "b1": 0, "2": 1, "b2": 1}
    assert fb.sweep(texts, links).best().threshold == 0.8
    assert fb.evaluate(numbers, made, unmatched={"prediction": "outside"}).recall == 1 / 2
    alone = fb.Clustering.from_links(links, items=["1", "b1", "2", "b2"], threshold=0.9)
    assert fb.evaluate(texts, alone).recall == 3 / 4
    links.write_text("left,right,score\n1,2,0.9\n")
    assert fb.sweep(texts, links, unmatched="singleton").evaluate(0.9).precision == 3 / 4


# --- pipes ---


def forms() -> dict[str, bytes]:
    stream, file, parquet = io.BytesIO(), io.BytesIO(), io.BytesIO()
    with pa.ipc.new_stream(stream, TRUTH.schema) as writer:
        writer.write_table(TRUTH)
    with pa.ipc.new_file(file, TRUTH.schema) as writer:
        writer.write_table(TRUTH)
    pq.write_table(TRUTH, parquet)
    text = b"item\tcluster\n1\ta\n2\ta\n3\tb\n"
    return {
        "stream": stream.getvalue(), "file": file.getvalue(), "parquet": parquet.getvalue(), "text": text,
        "gzip": gzip.compress(text), "zstd": pa.compress(text, "zstd", asbytes=True), "json": JSON,
        "gzip of json": gzip.compress(JSON),
    }  # fmt: skip


@pytest.fixture
def stdin(monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes], None]:
    def give(data: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))

    return give


@pytest.mark.cases(6)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("form", forms())
def test_standard_input(form: str, engine: str, stdin: Callable[[bytes], None], tmp_path: Path) -> None:
    pq.write_table(PREDICTION, tmp_path / "p.parquet")
    limit = "1GiB" if engine == "disk" else None
    stdin(forms()[form])
    assert scores("-", tmp_path / "p.parquet", engine=engine, memory_limit=limit) == SCORES
    stdin(forms()[form])
    assert scores(PREDICTION, "-", engine=engine, memory_limit=limit) == SCORES
    stdin(forms()[form])
    assert len(fb.Clustering.from_table("-")) == 3


def test_other_arguments_from_standard_input(stdin: Callable[[bytes], None]) -> None:
    stdin(b"item,kind\n1,x\n2,y\n3,y\n")
    ev = fb.evaluate(TRUTH, PREDICTION, attributes="-", slices="kind")
    assert ev.sliced["kind"]["n_items"].to_pylist() == [1, 2]
    stdin(b"t,p\n1,1\n1,2\n2,2\n")
    assert scores("t", "p", table="-") == SCORES
    stdin(b"t,p\n1,1\n1,2\n2,2\n")
    assert fb.contingency("t", "p", table="-").n_items == 3


def test_standard_input_is_read_once(stdin: Callable[[bytes], None]) -> None:
    with pytest.raises(OptionError, match="truth and prediction are both -, which can be read only once"):
        fb.evaluate("-", "-")
    stdin(b"")
    with pytest.raises(FileFormatError, match="stdin is empty"):
        fb.evaluate("-", PREDICTION)
    stdin(b"\x00\x01\x02nonsense")
    with pytest.raises(FileFormatError, match=r"stdin cannot be read as CSV"):
        fb.evaluate("-", PREDICTION)


def test_no_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(FileFormatError, match="no standard input"):
        fb.evaluate("-", PREDICTION)

    class Terminal(io.TextIOWrapper):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stdin", Terminal(io.BytesIO()))
    with pytest.raises(FileFormatError, match="is a terminal, not a table"):
        fb.evaluate("-", PREDICTION)


@pytest.mark.parametrize("engine", ENGINES)
def test_more_than_is_held_in_memory(
    engine: str, stdin: Callable[[bytes], None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(pipes, "HELD", 100)
    pq.write_table(PREDICTION, tmp_path / "p.parquet")
    stdin(forms()["parquet"])
    assert scores("-", tmp_path / "p.parquet", engine=engine) == SCORES
    monkeypatch.setattr(pipes, "spill_directory", lambda _: tmp_path / "none")
    stdin(forms()["parquet"])
    with pytest.raises(fb.FastBCubedError, match=r"data from a pipe cannot be stored in .*none"):
        fb.evaluate("-", PREDICTION)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_named_pipe(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "pipe.parquet"
    os.mkfifo(path)
    pq.write_table(PREDICTION, tmp_path / "p.parquet")
    writer = threading.Thread(target=lambda: path.write_bytes(forms()["parquet"]))
    writer.start()
    assert cli.main(["evaluate", str(path), str(tmp_path / "p.parquet"), "--metric", "f1"]) == 0
    writer.join()
    assert path.name in capsys.readouterr().out
    with pytest.raises(OptionError, match=r"truth and prediction are both .*pipe\.parquet"):
        fb.evaluate(path, path)


@pytest.mark.process
@pytest.mark.skipif(sys.platform != "linux", reason="needs /dev/fd")
def test_process_substitution(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(gzip.compress(b"item;cluster\n1;a\n2;a\n3;b\n"))
    (tmp_path / "p.csv").write_text("1,x\n2,y\n3,y\n")
    run = f"{sys.executable} -m fastbcubed evaluate <(zcat < t.csv) - --metric f1 --json"
    done = subprocess.run(
        ["bash", "-c", f"(echo item,cluster; cat p.csv) | {run}"],
        cwd=tmp_path, capture_output=True, text=True, timeout=300,
        env={**os.environ, "PYTHONPATH": str(Path(fb.__file__).parents[1])},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert '"f1": 0.666' in done.stdout
    assert '"prediction": "stdin"' in done.stdout


# --- at home ---


def test_a_tilde_is_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    pq.write_table(TRUTH, tmp_path / "t.parquet")
    assert scores("~/t.parquet", PREDICTION, out="~/out") == SCORES
    assert scores("~/*.parquet", PREDICTION, engine="disk", spill_dir="~") == SCORES
    assert fb.load("~/out").f1 == pytest.approx(2 / 3)
    monkeypatch.chdir(tmp_path)
    pq.write_table(PREDICTION, tmp_path / "~odd.parquet")
    assert scores("~odd.parquet", TRUTH) == SCORES
