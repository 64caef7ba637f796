"""``fastbcubed evaluate --engine spark``: tables that Spark reads, and files that are too small for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from test_spark import tables

import fastbcubed as fb
from fastbcubed.cli import evaluate_command
from fastbcubed.cli.main import main
from fastbcubed.errors import OptionError

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # Spark leaves its sockets to be collected
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture
def paths(tmp_path: Path) -> list[str]:
    found = []
    for name, table in zip(("truth", "prediction"), tables(seed=41, extra=0), strict=True):
        pq.write_table(table, tmp_path / f"{name}.parquet")
        found.append(str(tmp_path / f"{name}.parquet"))
    return found


def test_the_session_that_runs_reads_the_tables(
    spark: Any, paths: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["evaluate", *paths, "--engine", "spark", "--slice", "country", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    expected = fb.evaluate(*paths, slices="country")
    assert told["overall"]["f1"] == pytest.approx(expected.f1, rel=1e-12)
    assert told["manifest"]["engine"] == "spark"
    assert len(told["slices"]["country"]) == 3


def test_small_files_do_not_start_spark(paths: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from pyspark.sql import SparkSession

    monkeypatch.setattr(SparkSession, "getActiveSession", classmethod(lambda cls: None))
    for name in evaluate_command.STARTED_BY:
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(OptionError, match=r"one machine scores faster than Spark starts.*spark-submit"):
        evaluate_command.with_frames({"truth": paths[0], "prediction": paths[1], "engine": "spark"})
