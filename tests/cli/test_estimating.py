"""fastbcubed estimate: what is printed, JSON, how columns are named, what is wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastbcubed as fb
from fastbcubed.cli.main import main

PREDICTION = {"rec": list(range(1, 9)), "entity": [1, 1, 2, 3, 2, 4, 4, 4]}
SAMPLE = {"id": [1, 2, 3, 4, 5], "person": list("aaabb"), "times": [2, 2, 2, 1, 1], "w": [1.0, 1, 1, 2, 2]}
COLUMNS = ["--item", "id,rec", "--cluster", "person,entity"]


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.chdir(tmp_path)
    for name, columns in (("sample.parquet", SAMPLE), ("pred.parquet", PREDICTION)):
        pq.write_table(pa.table(columns), name)
    return ["estimate", "sample.parquet", "pred.parquet", *COLUMNS]


def test_what_is_printed(command, capsys) -> None:
    assert main(command) == 0
    found = capsys.readouterr()
    text = " ".join(found.out.split())
    assert "a prediction of 8 items in 4 clusters, estimated from 2 sampled true clusters (5 items)." in text
    assert "sample sample.parquet prediction pred.parquet" in text
    # 1.5 items more than one, with an error of 0.5: times and over e^(12.7062 * 0.5 / 1.5) = 69.09
    assert "A true cluster has 2.5 (1.02 to 104.63) items on average, a predicted one 2." in text
    assert "pair_f1 0.417 (0.000 to 1.000)" in text
    assert "fastbcubed: note: With only 2 clusters" in found.err


def test_a_page(command, capsys) -> None:
    pytest.importorskip("altair")
    assert main([*command, "--report", "page.html"]) == 0
    assert capsys.readouterr().err.rstrip().endswith("wrote page.html")
    page = Path("page.html").read_text(encoding="utf-8")
    for told in (
        "Scores of a prediction of 8 items in 4 clusters",
        "With only 2 clusters",
        "Intervals are at the",
        "<svg",
    ):
        assert told in page
    assert '<th scope="row">pair_f1</th>' in page and "0.417 (" in page and str(Path.cwd()) not in page


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_json_has_what_the_library_says(command, capsys, engine) -> None:
    flags = "--sampling w --draws times --metric pairs,f1 --metric sizes --beta 2 --level 0.9 --threads 1"
    assert main([*command, *flags.split(), "--engine", engine, "--json"]) == 0
    est = fb.estimate(
        "sample.parquet", "pred.parquet", item=("id", "rec"), cluster=("person", "entity"), sampling="w",
        draws="times", metrics=["pairs", "f1", "sizes"], beta=2.0, level=0.9,
    )  # fmt: skip
    assert json.loads(capsys.readouterr().out) == json.loads(est.to_json())


def test_warnings_name_flags(command, capsys) -> None:
    pq.write_table(pa.table(PREDICTION).slice(0, 2), "pred.parquet")
    assert main(command) == 0
    assert "pass --missing drop. [sample-items-missing]" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (
            "--sampling weight",
            "--sampling weight is not a column of sample.parquet (times, w), nor 'uniform', nor",
        ),
        ("--draws time", "--draws time is not a column of sample.parquet (times, w). Did you mean 'times'?"),
        ("--population-clusters 1", "--population-clusters is 1, but the sample has 2 true clusters"),
        (
            "--population-clusters 9 --sampling w",
            "--population-clusters applies to --sampling uniform without",
        ),
        ("--metric ami", "ami cannot be estimated from a sample of true clusters"),
        ("--level 95", "--level must be a confidence between 0 and 1"),
        ("--item a,b,c", "--item takes a column, a pair of columns"),
    ],
)
def test_what_is_wrong(command, capsys, flags, said) -> None:
    assert main([*command, *flags.split()]) == 2
    assert said in capsys.readouterr().err


def test_help(capsys) -> None:
    assert main(["estimate", "--help"]) == 0
    assert "fastbcubed estimate labelled.csv run7.parquet --sampling cluster_size" in capsys.readouterr().out
