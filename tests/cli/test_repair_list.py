"""``evaluate --repairs``: what is printed, what JSON says, what is written."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastbcubed as fb
from fastbcubed.cli import main as cli

# precision is (2/3 + 2/3 + 1/3 + 1/3 + 2/3 + 2/3) / 6 = 5/9, recall (1 + 1 + 1/2 + 1/2 + 1 + 1) / 6 = 5/6
TRUTH = {"item": list("abcdef"), "cluster": [0, 0, 1, 1, 2, 2]}
PREDICTION = {"item": list("abcdef"), "cluster": [5, 5, 5, 6, 6, 6]}
F1 = 2 * (5 / 9) * (5 / 6) / (5 / 9 + 5 / 6)


@pytest.fixture
def sides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.chdir(tmp_path)
    for name, columns in (("truth.parquet", TRUTH), ("pred.parquet", PREDICTION)):
        pq.write_table(pa.table(columns), name)
    return ["evaluate", "truth.parquet", "pred.parquet"]


def test_the_sum_comes_first_and_then_each(sides, capsys) -> None:
    assert cli.main([*sides, "--repairs", "2", "--worst", "0"]) == 0
    lines = capsys.readouterr().out.splitlines()
    at = lines.index(f"Repair these 2: F1 +{1 - F1:.5f}, from {F1:.5f} to 1")
    assert lines[at + 2].split() == ["gather", "true", "1", "2", f"{1 - F1:.5f}", "1"]
    assert lines[at + 3].split()[:4] == ["split", "predicted", "5", "3"]


def test_json_has_all_of_them(sides, capsys) -> None:
    assert cli.main([*sides, "--repairs", "9", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["repairs"] == fb.evaluate(*sides[1:]).repairs().to_pylist()
    assert found["overall"]["f1"] == pytest.approx(F1)


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_they_are_written_and_go_with_the_next_result(sides, capsys, engine) -> None:
    argv = [*sides, "--out", "result", "--engine", engine]
    assert cli.main([*argv, "--repairs", "3"]) == 0
    written: Any = pq.read_table("result/repairs.parquet")
    assert written.to_pylist() == fb.load("result").repairs(limit=3).to_pylist()
    assert cli.main(argv) == 0
    assert not Path("result", "repairs.parquet").exists() and fb.load("result").f1 == pytest.approx(F1)


def test_nothing_to_repair_is_said(sides, capsys) -> None:
    assert cli.main(["evaluate", "truth.parquet", "truth.parquet", "--repairs", "5"]) == 0
    assert "No repair would gain anything." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--repairs -1", "0 or more"),
        ("--repairs 5 --keep scores", "pass --keep cells"),
        ("--repairs 5 --overlapping", "not defined for overlapping clusters"),
    ],
)
def test_what_cannot_be_listed_is_said_before_the_work(sides, capsys, monkeypatch, flags, message) -> None:
    monkeypatch.setattr(sys.modules["fastbcubed.evaluate"], "choose", None)
    assert cli.main([*sides, *flags.split()]) == 2
    assert message in capsys.readouterr().err
