"""A URI given for output is refused by name, and nothing is written to a local directory of that name."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import fastbcubed as fb
from fastbcubed.cli.main import main
from fastbcubed.errors import OptionError

TRUTH, PREDICTION = {"a": 1, "b": 1, "c": 2}, {"a": 1, "b": 2, "c": 2}
URIS = [
    "s3://bucket/x",
    "gs://b/x",
    "memory://x",
    "abfss://c@a.dfs.core.windows.net/x",
    "file:///tmp/x",
    "hf://d/x",
]


@pytest.mark.cases(3, 99)
@pytest.mark.parametrize("uri", URIS)
def test_python_refuses_uris_for_output(uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ev = fb.evaluate(TRUTH, PREDICTION)
    cmp, diff = fb.compare(TRUTH, {"a": PREDICTION}), fb.diff(TRUTH, PREDICTION)
    sweep = fb.sweep(TRUTH, [("a", "b", 0.9), ("b", "c", 0.1)])
    calls: list[Callable[[], Any]] = [
        lambda: fb.evaluate(TRUTH, PREDICTION, out=uri),
        lambda: fb.evaluate(TRUTH, PREDICTION, out=Path(uri)),
        lambda: fb.evaluate(TRUTH, PREDICTION, spill_dir=uri),
        lambda: fb.diff(TRUTH, PREDICTION, out=uri),
        lambda: ev.save(uri),
        lambda: cmp.save(uri),
        lambda: diff.save(uri),
        lambda: sweep.save(uri),
        lambda: ev.report(uri + ".html"),
        lambda: cmp.report(uri + ".html"),
        lambda: fb.load(uri),
    ]
    for call in calls:
        with pytest.raises(OptionError, match=r"is a URI, and results are written to.*fsspec\.filesystem\("):
            call()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "words",
    [
        "evaluate t.csv p.csv --out URI", "evaluate t.csv p.csv --report URI.html",
        "evaluate t.csv p.csv --summary URI",
        "evaluate t.csv p.csv --spill-dir URI", "compare t.csv a=p.csv --out URI", "diff t.csv p.csv --out URI",
        "cluster l.csv --out URI.parquet", "sweep t.csv l.csv --out URI", "show URI --pred 1", "report URI --out x",
        "explain URI", "sample-pairs t.csv p.csv -n 2 --out URI.csv",
    ],
)  # fmt: skip
def test_the_command_line_refuses_uris_for_output(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text("item,cluster\na,1\nb,1\nc,2\n")
    Path("p.csv").write_text("item,cluster\na,1\nb,2\nc,2\n")
    Path("l.csv").write_text("left,right,score\na,b,0.9\nb,c,0.1\n")
    before = sorted(os.listdir())
    assert main(words.replace("URI", "s3://bucket/x").split()) == 2
    said = capsys.readouterr()
    assert "is a URI, and results are written to" in said.err
    assert not said.out
    assert sorted(os.listdir()) == before
