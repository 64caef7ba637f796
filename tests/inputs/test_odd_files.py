"""Some 200 odd files: each is scored as by hand, or refused by an error that names the file."""

from __future__ import annotations

import bz2
import datetime
import decimal
import gzip
import json
import lzma
import pickle
import sqlite3
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hostile import LABELS, PREDICTION, SCORES

from fastbcubed import FastBCubedError, evaluate
from fastbcubed.cli.main import main

pytestmark = pytest.mark.filterwarnings("ignore::fastbcubed.errors.EvaluationWarning")

#: The right answer of a file: the scores of the small truth, or an error that has the name of the file in it.
RIGHT, REFUSED = "right", "refused"
TEXT = "item,cluster\na,1\nb,1\nc,2\n"
TABLE = pa.table({"item": ["a", "b", "c"], "cluster": LABELS})
LINES = '{"item": "a", "cluster": 1}\n{"item": "b", "cluster": 1}\n{"item": "c", "cluster": 2}\n'
RECORDS = "[" + ",".join(LINES.split("\n")[:3]) + "]"


def parquet(table: pa.Table, **options: Any) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, **options)
    return sink.getvalue().to_pybytes()


def ipc(table: pa.Table, new: Callable[..., Any]) -> bytes:
    sink = pa.BufferOutputStream()
    with new(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def zstd(content: bytes) -> bytes:
    return pa.compress(content, codec="zstd", asbytes=True)


def columns(**changed: Any) -> pa.Table:
    return pa.table({"item": ["a", "b", "c"], "cluster": LABELS} | changed)


PLAIN = TEXT.encode()
PARQUET, STREAM = parquet(TABLE), ipc(TABLE, pa.ipc.new_stream)
IPC = ipc(TABLE, pa.ipc.new_file)

#: Texts of CSV, and what they give.
CSV: dict[str, tuple[str | bytes, str]] = {
    "plain": (TEXT, RIGHT),
    "empty": ("", REFUSED),
    "a line end": ("\n", REFUSED),
    "spaces": ("   ", REFUSED),
    "byte order mark": ("\ufeff" + TEXT, RIGHT),
    "byte order mark alone": ("\ufeff", REFUSED),
    "two byte order marks": ("\ufeff\ufeff" + TEXT, RIGHT),
    "utf-16": (TEXT.encode("utf-16"), REFUSED),
    "utf-16 le": (TEXT.encode("utf-16-le"), REFUSED),
    "utf-16 be": (TEXT.encode("utf-16-be"), REFUSED),
    "utf-32": (TEXT.encode("utf-32"), REFUSED),
    "latin-1": ("item,cluster\né,1\n".encode("latin-1"), REFUSED),
    "cr": (TEXT.replace("\n", "\r"), RIGHT),
    "crlf": (TEXT.replace("\n", "\r\n"), RIGHT),
    "without the last line end": (TEXT[:-1], RIGHT),
    "blank lines at the end": (TEXT + "\n\n\n", RIGHT),
    "quoted": ('"item","cluster"\n"a","1"\n"b","1"\n"c","2"\n', RIGHT),
    "quotes unclosed": ('item,cluster\n"a,1\nb,1\nc,2\n', REFUSED),
    "quotes in quotes": ('item,cluster\n"a",1\nb,1\nc,2\n"d""d",3\n', RIGHT),
    "a line end in quotes": ('item,cluster,note\na,1,"x\ny"\nb,1,\nc,2,\n', RIGHT),
    "a separator in quotes": ('item,cluster,note\na,1,"x,y"\nb,1,\nc,2,\n', RIGHT),
    "a row too long": (TEXT + "d,3,4\n", REFUSED),
    "a row too short": (TEXT + "d\n", REFUSED),
    "a separator at the end of rows": ("item,cluster,\na,1,\nb,1,\nc,2,\n", RIGHT),
    "a comment before": ("# made by a tool\n" + TEXT, REFUSED),
    "a comment after": (TEXT + "# the end\n", REFUSED),
    "a comment between": ("item,cluster\na,1\n# half\nb,1\nc,2\n", REFUSED),
    "sep line of Excel": ("sep=,\n" + TEXT, REFUSED),
    "the same header twice": ("item,cluster,cluster\na,1,2\n", REFUSED),
    "If that is not a header, name the columns": ("a,1\nb,1\nc,2\n", REFUSED),
    "only a header": ("item,cluster\n", REFUSED),
    "a header without names": (",\na,1\n", REFUSED),
    "one column": ("item\na\nb\n", REFUSED),
    "headers with spaces": ("item, cluster\na,1\nb,1\nc,2\n", RIGHT),
    "headers in upper case": ("ITEM,CLUSTER\na,1\nb,1\nc,2\n", RIGHT),
    "an index of pandas": (",item,cluster\n0,a,1\n1,b,1\n2,c,2\n", RIGHT),
    "semicolons": (TEXT.replace(",", ";"), RIGHT),
    "tabs": (TEXT.replace(",", "\t"), RIGHT),
    "bars": (TEXT.replace(",", "|"), RIGHT),
    "colons": (TEXT.replace(",", ":"), REFUSED),
    "NUL in a value": ("item,cluster\na,1\nb,1\nc,2\n\0,3\n", RIGHT),
    "NUL after": (PLAIN + b"\0" * 64, REFUSED),
    "NUL alone": (b"\0" * 64, REFUSED),
    "floats": ("item,cluster\na,1.0\nb,1.0\nc,2.0\n", RIGHT),
    "fractions": ("item,cluster\na,1.5\nb,1.5\nc,2.5\n", RIGHT),
    "text among numbers": ("item,cluster\na,1\nb,1\nc,x\n", RIGHT),
    "an empty cluster": ("item,cluster\na,1\nb,\nc,2\n", REFUSED),
    "an empty item": ("item,cluster\na,1\n,1\nc,2\n", REFUSED),
    "an item twice": (TEXT + "a,2\n", REFUSED),
    "a row twice": (TEXT + "a,1\n", REFUSED),
    "very long integers": (f"item,cluster\na,{10**30}\nb,{10**30}\nc,{10**30 + 1}\n", RIGHT),
    "above 2**63": (f"item,cluster\na,{2**64 - 1}\nb,{2**64 - 1}\nc,{2**64 - 2}\n", RIGHT),
    "dates": ("item,cluster\na,2020-01-01\nb,2020-01-01\nc,2021-01-01\n", RIGHT),
    "booleans": ("item,cluster\na,true\nb,true\nc,false\n", RIGHT),
    "html": ("<html><body>404 Not Found</body></html>", REFUSED),
    "a pointer of Git LFS": ("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 3\n", REFUSED),
    "parquet": (PARQUET, RIGHT),
    "arrow": (IPC, RIGHT),
    "json lines": (LINES, REFUSED),
    "json": (RECORDS, REFUSED),
    "gzip": (gzip.compress(PLAIN, mtime=0), REFUSED),
    "zip": (b"PK\3\4" + bytes(60), REFUSED),
}

#: Texts of JSON lines.
JSONL: dict[str, tuple[str | bytes, str]] = {
    "plain": (LINES, RIGHT),
    "empty": ("", REFUSED),
    "blank lines": (LINES.replace("\n", "\n\n"), RIGHT),
    "byte order mark": ("\ufeff" + LINES, RIGHT),
    "crlf": (LINES.replace("\n", "\r\n"), RIGHT),
    "keys in any order": (
        '{"cluster": 1, "item": "a"}\n{"item": "b", "cluster": 1}\n{"cluster": 2, "item": "c"}\n',
        RIGHT,
    ),
    "nested values": (LINES.replace("}", ', "more": {"x": [1, 2], "y": {"z": 3}}}'), RIGHT),
    "a cluster is an object": (LINES.replace("2}", '{"x": 1}}'), REFUSED),
    "clusters are objects": (LINES.replace("1}", '{"x": 1}}').replace("2}", '{"x": 2}}'), RIGHT),
    "values of two types in an array": (LINES.replace("}", ', "more": [1, {"y": 2}]}'), REFUSED),
    "arrays": ('["a", 1]\n["b", 1]\n["c", 2]\n', REFUSED),
    "scalars": ("1\n2\n3\n", REFUSED),
    "a trailing comma": (LINES.replace("}\n", "},\n"), REFUSED),
    "a trailing comma within": (LINES.replace("1}", "1,}"), REFUSED),
    "truncated": (LINES[:-10], REFUSED),
    "single quotes": (LINES.replace('"', "'"), REFUSED),
    "NaN": (LINES.replace("2}", "NaN}"), REFUSED),
    "null": (LINES.replace("2}", "null}"), REFUSED),
    "text and number": (LINES.replace("2}", '"x"}'), REFUSED),
    "a key is missing": (LINES + '{"item": "d"}\n', REFUSED),
    "records": (RECORDS, REFUSED),
    "csv": (TEXT, REFUSED),
    "parquet": (PARQUET, RIGHT),
    "utf-16": (LINES.encode("utf-16"), REFUSED),
    "NUL": (b"\0" * 20, REFUSED),
    "above 2**63": (LINES.replace("1}", f"{2**64 - 1}}}"), REFUSED),
}

#: Documents of JSON.
JSON: dict[str, tuple[str | bytes, str]] = {
    "records": (RECORDS, RIGHT),
    "item to label": ('{"a": 1, "b": 1, "c": 2}', RIGHT),
    "lists of items": ('[["a", "b"], ["c"]]', RIGHT),
    "columns": ('{"item": ["a", "b", "c"], "cluster": [1, 1, 2]}', RIGHT),
    "a frame": ('{"item": {"0": "a", "1": "b", "2": "c"}, "cluster": {"0": 1, "1": 1, "2": 2}}', RIGHT),
    "lines": (LINES, RIGHT),
    "byte order mark": ("\ufeff" + RECORDS, RIGHT),
    "with line ends": (json.dumps(json.loads(RECORDS), indent=2), RIGHT),
    "empty": ("", REFUSED),
    "an empty list": ("[]", REFUSED),
    "an empty object": ("{}", REFUSED),
    "a number": ("7", REFUSED),
    "a text": ('"x"', REFUSED),
    "null": ("null", REFUSED),
    "numbers": ("[1, 2, 3]", REFUSED),
    "rows": ('[["a", 1], ["b", 1], ["c", 2]]', REFUSED),
    "deep lists": ('[[["a"], ["b"]]]', REFUSED),
    "a trailing comma": (RECORDS[:-1] + ",]", REFUSED),
    "truncated": (RECORDS[:-4], REFUSED),
    "two documents": (RECORDS + RECORDS, REFUSED),
    "utf-16": (RECORDS.encode("utf-16"), RIGHT),
    "bytes": (b'["\xff"]', REFUSED),
    "csv": (TEXT, REFUSED),
    "parquet": (PARQUET, RIGHT),
    "mixed labels": ('{"a": 1, "b": "x"}', REFUSED),
    "items of two types": ('[["a", 1], ["c"]]', REFUSED),
    "a cluster is a list": ('[{"item": "a", "cluster": [1, 2]}]', REFUSED),
    "clusters are objects": (RECORDS.replace("1}", '{"x": 1}}').replace("2}", '{"x": 2}}'), RIGHT),
    "records and numbers": ('[{"item": "a", "cluster": 1}, 7]', REFUSED),
    "booleans": ('{"a": true, "b": true, "c": false}', REFUSED),
    "very long integers": (f'{{"a": {10**30}, "b": {10**30}, "c": 1}}', REFUSED),
    "deeply nested": ("[" * 5000 + "]" * 5000, REFUSED),
    "NaN": ('{"a": NaN, "b": 1, "c": 1}', REFUSED),
    "an empty name": (RECORDS.replace("item", ""), RIGHT),
    "an empty record": ("[{}]", REFUSED),
    "empty lists": ("[[], []]", REFUSED),
}

D, T = decimal.Decimal, datetime.date
#: Columns of types, of items and of clusters.
TYPES: dict[str, tuple[pa.Array, str]] = {
    "int8": (pa.array(LABELS, pa.int8()), RIGHT),
    "uint64": (pa.array([2**64 - 1, 2**64 - 1, 2**63], pa.uint64()), RIGHT),
    "whole floats": (pa.array([1.0, 1.0, 2.0]), RIGHT),
    "halves": (pa.array([1.5, 1.5, 2.5]), REFUSED),
    "NaN": (pa.array([1.0, 1.0, float("nan")]), REFUSED),
    "infinite": (pa.array([1.0, 1.0, float("inf")]), REFUSED),
    "whole decimals": (pa.array([D("1.0"), D("1.0"), D("2.0")]), RIGHT),
    "decimals": (pa.array([D("1.5"), D("1.5"), D("2.5")]), REFUSED),
    "dates": (pa.array([T(2020, 1, 1)] * 2 + [T(2021, 1, 1)]), REFUSED),
    "times": (pa.array([1, 1, 2], pa.timestamp("us")), REFUSED),
    "time of day": (pa.array([1, 1, 2], pa.time64("us")), REFUSED),
    "durations": (pa.array([1, 1, 2], pa.duration("us")), REFUSED),
    "booleans": (pa.array([True, True, False]), REFUSED),
    "nulls alone": (pa.nulls(3), REFUSED),
    "text nulls alone": (pa.nulls(3, pa.string()), REFUSED),
    "one null": (pa.array([1, 1, None]), REFUSED),
    "structs": (pa.array([{"x": 1}, {"x": 1}, {"x": 2}]), RIGHT),
    "maps": (pa.array([[("k", 1)]] * 3, pa.map_(pa.string(), pa.int64())), REFUSED),
    "binary": (pa.array([b"\xff", b"\xff", b"\0"]), RIGHT),
    "fixed binary": (pa.array([b"aa", b"aa", b"bb"], pa.binary(2)), RIGHT),
    "large text": (pa.array(["x", "x", "y"], pa.large_string()), RIGHT),
    "dictionary": (pa.array(["x", "x", "y"]).dictionary_encode(), RIGHT),
    "dictionary with a null": (pa.array(["x", "x", None]).dictionary_encode(), REFUSED),
    "dictionary with values twice": (
        pa.DictionaryArray.from_arrays(pa.array([0, 1, 2], pa.int8()), pa.array(["x", "x", "y"])),
        RIGHT,
    ),
    "empty texts": (pa.array(["", "", "x"]), RIGHT),
}


def raised(*sides: Any) -> str | None:
    """Return the message of an error; None where the scores are right."""
    try:
        ev = evaluate(*sides, metrics=["precision", "recall"])
    except FastBCubedError as error:
        return str(error)
    assert (ev.precision, ev.recall) == pytest.approx(SCORES)
    return None


def judge(path: Path, expected: str) -> None:
    message = raised(path, PREDICTION)
    assert (REFUSED if message else RIGHT) == expected, message
    assert message is None or (path.name in message and len(message) < 1000), message


def texts() -> Iterator[tuple[str, str, str | bytes, str]]:
    for end, files in (("csv", CSV), ("jsonl", JSONL), ("json", JSON)):
        for name, (content, expected) in files.items():
            yield name, end, content, expected


@pytest.mark.cases(48)
@pytest.mark.parametrize(
    ("name", "end", "content", "expected"), list(texts()), ids=lambda value: str(value)[:20]
)
def test_texts(name: str, end: str, content: str | bytes, expected: str, tmp_path: Path) -> None:
    path = tmp_path / f"{name.replace('*', '')}.{end}"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    judge(path, expected)


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("form", ["parquet", pytest.param("arrow", marks=pytest.mark.slow)])
def test_types_of_clusters(name: str, form: str, tmp_path: Path) -> None:
    values, expected = TYPES[name]
    path = tmp_path / f"t.{form}"
    table = columns(cluster=values)
    try:
        content = parquet(table) if form == "parquet" else ipc(table, pa.ipc.new_file)
    except pa.ArrowNotImplementedError:
        pytest.skip("Parquet has no such type")
    path.write_bytes(content)
    judge(path, expected)


@pytest.mark.parametrize("name", TYPES)
def test_types_of_items(name: str, tmp_path: Path) -> None:
    """Most repeat an item, and none matches those of the prediction, which is said."""
    path = tmp_path / "t.arrow"
    path.write_bytes(ipc(columns(item=TYPES[name][0]), pa.ipc.new_file))
    message = raised(path, PREDICTION)
    assert message is not None and path.name in message, message


PACKED = {"gz": gzip.compress, "bz2": bz2.compress, "zst": zstd, "xz": lzma.compress}


@pytest.mark.parametrize("end", PACKED)
def test_compressed_texts(end: str, tmp_path: Path) -> None:
    whole = PACKED[end]((TEXT + "".join(f"x{k},{k}\n" for k in range(50))).encode())
    for cut, content in {
        "whole": whole,
        "cut": whole[:-9],
        "begun": whole[:5],
        "none": b"",
        "plain": PLAIN,
    }.items():
        path = tmp_path / f"{cut}.csv.{end}"
        path.write_bytes(content)
        judge(path, RIGHT if cut == "whole" and end != "xz" else REFUSED)


def foreign() -> dict[str, tuple[bytes, str]]:
    return {
        "text.parquet": (PLAIN, REFUSED),
        "text.arrow": (PLAIN, REFUSED),
        "stream.parquet": (STREAM, RIGHT),
        "file.feather": (IPC, RIGHT),
        "no ending": (PARQUET, RIGHT),
        "text without an ending": (PLAIN, REFUSED),
        "cut.parquet": (PARQUET[:-9], REFUSED),
        "cut.arrow": (IPC[:-9], REFUSED),
        "cut stream.arrow": (STREAM[:-40], REFUSED),
        "half stream.arrow": (STREAM[: len(STREAM) // 2], REFUSED),
        "twice.parquet": (PARQUET + PARQUET, RIGHT),
        "after.parquet": (PARQUET + b"\n", REFUSED),
        "no rows.parquet": (parquet(TABLE.slice(0, 0)), REFUSED),
        "no columns.parquet": (parquet(pa.table({})), REFUSED),
        "one column.parquet": (parquet(TABLE.select(["item"])), REFUSED),
        "zipped.parquet": (parquet(TABLE, compression="zstd"), RIGHT),
        "zipped whole.parquet.gz": (gzip.compress(PARQUET), REFUSED),
        "sheet.xlsx": (b"PK\3\4" + bytes(60), REFUSED),
        "old sheet.xls": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), REFUSED),
        "table.orc": (b"ORC" + bytes(60), REFUSED),
        "table.avro": (b"Obj\1" + bytes(60), REFUSED),
        "object.pkl": (pickle.dumps({"a": 1}), REFUSED),
        "array.npy": (b"\x93NUMPY\1\0" + bytes(60), REFUSED),
        "list.txt": (b"1\n1\n2\n", REFUSED),
        "text.txt": (PLAIN, RIGHT),
        "text.tsv": (PLAIN.replace(b",", b"\t"), RIGHT),
        "text.CSV": (PLAIN, RIGHT),
        "text.psv": (PLAIN.replace(b",", b"|"), REFUSED),
        "text.dat": (PLAIN, REFUSED),
        "data.yaml": (b"a: 1\nb: 1\nc: 2\n", REFUSED),
        "data.xml": (b"<?xml version='1.0'?><a/>", REFUSED),
        "data.h5": (b"\x89HDF\r\n\x1a\n" + bytes(60), REFUSED),
        "data.rds": (gzip.compress(b"X\n" + bytes(60)), REFUSED),
        "data.zip": (b"PK\3\4" + bytes(60), REFUSED),
        "data.tar": (bytes(1024), REFUSED),
    }


@pytest.mark.parametrize("name", foreign())
def test_formats(name: str, tmp_path: Path) -> None:
    content, expected = foreign()[name]
    path = tmp_path / name
    path.write_bytes(content)
    judge(path, expected)


def test_a_database(tmp_path: Path) -> None:
    path = tmp_path / "crm.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("create table truth (item, cluster)")
    connection.close()
    judge(path, REFUSED)


def folder(tmp_path: Path, files: dict[str, bytes]) -> Path:
    place = tmp_path / "run"
    for name, content in files.items():
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return place


FIRST, LAST = TABLE.slice(0, 2), TABLE.slice(2)
FOLDERS: dict[str, tuple[dict[str, bytes], str]] = {
    "parts": ({"0.parquet": parquet(FIRST), "1.parquet": parquet(LAST)}, RIGHT),
    "parts of CSV": ({"0.csv": b"item,cluster\na,1\nb,1\n", "1.csv": b"item,cluster\nc,2\n"}, RIGHT),
    "a part without rows": ({"0.parquet": PARQUET, "1.parquet": parquet(TABLE.slice(0, 0))}, RIGHT),
    "mixed formats": ({"0.parquet": parquet(FIRST), "1.csv": b"item,cluster\nc,2\n"}, REFUSED),
    "hidden files": ({"0.parquet": PARQUET, ".1.parquet": b"x", "_SUCCESS": b"", "._0.parquet": b"y"}, RIGHT),
    "a readme": ({"0.parquet": PARQUET, "README.md": b"about"}, RIGHT),
    "nested": ({"a/0.parquet": parquet(FIRST), "b/1.parquet": parquet(LAST)}, RIGHT),
    "hive": ({"year=2020/0.parquet": parquet(FIRST), "year=2021/0.parquet": parquet(LAST)}, RIGHT),
    "a damaged part": ({"0.parquet": PARQUET, "1.parquet": PARQUET[:-9]}, REFUSED),
    "an empty part": ({"0.parquet": PARQUET, "1.parquet": b""}, REFUSED),
    "integers and texts": (
        {"0.parquet": parquet(FIRST), "1.parquet": parquet(pa.table({"item": ["c"], "cluster": ["x"]}))},
        REFUSED,
    ),
    "other columns": (
        {"0.parquet": parquet(FIRST), "1.parquet": parquet(pa.table({"item": ["c"], "entity": [2]}))},
        REFUSED,
    ),
    "int32 and int64": (
        {
            "0.parquet": parquet(FIRST),
            "1.parquet": parquet(pa.table({"item": ["c"], "cluster": pa.array([2], pa.int32())})),
        },
        RIGHT,
    ),
}


@pytest.mark.parametrize("name", FOLDERS)
def test_folders(name: str, tmp_path: Path) -> None:
    files, expected = FOLDERS[name]
    place = folder(tmp_path, files)
    message = raised(place, PREDICTION)
    assert (REFUSED if message else RIGHT) == expected, message
    assert message is None or "run" in message


@pytest.mark.skipif(sys.platform == "win32", reason="links take a privilege there")
def test_links_that_lead_in_a_circle(tmp_path: Path) -> None:
    place = folder(tmp_path, {"0.parquet": PARQUET})
    (place / "again").symlink_to(place, target_is_directory=True)
    message = raised(place, PREDICTION)
    assert message is None or "run" in message
    (tmp_path / "self.csv").symlink_to(tmp_path / "self.csv")
    judge(tmp_path / "self.csv", REFUSED)


@pytest.mark.parametrize("name", ["sheet.xlsx", "cut.arrow", "list.txt", "table.avro"])
def test_the_command_ends_with_2(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / name
    path.write_bytes(foreign()[name][0])
    other = tmp_path / "p.parquet"
    pq.write_table(PREDICTION, other)
    assert main(["evaluate", str(path), str(other)]) == 2
    said = capsys.readouterr().err
    assert name in said and "Traceback" not in said
