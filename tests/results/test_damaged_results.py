"""Directories that are loaded hold anything: what was damaged is refused, and nothing crashes or hangs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import saved_results
from forging import sealed_anew

import fastbcubed as fb
from fastbcubed.errors import FileFormatError

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs pipes and devices")

TESTS = Path(__file__).parents[1]


def damage(path: Path, seed: int, share: float, script: str = "damaging.py") -> Counter[str]:
    """Return how many edits ended in which way."""
    folders = (Path(fb.__file__).parents[1], TESTS / "oracles", TESTS / "results")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders))}
    command = [sys.executable, str(TESTS / "results" / script), str(path), str(seed), str(share)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=1800)
    assert done.returncode == 0, done.stdout[-300:] + done.stderr
    assert "FAILED" not in done.stdout, "\n".join(
        line for line in done.stdout.splitlines() if "FAILED" in line
    )
    return Counter(line.split()[0] for line in done.stdout.splitlines())


@pytest.mark.process
def test_some_edits(tmp_path: Path) -> None:
    found = damage(tmp_path, 0, 0.03)
    assert found["refused"] > 40


@pytest.mark.process
@pytest.mark.weekly
def test_more_edits(tmp_path: Path) -> None:
    """A share of 1 tries them all, in minutes: `python tests/results/damaging.py DIRECTORY 1 1`."""
    found = damage(tmp_path, 1, 0.5)
    assert found["refused"] > 600


@pytest.mark.slow
def test_some_forgeries(tmp_path: Path) -> None:
    """Their checksums are right, and what they say is not: no crash, and no error that is not ours."""
    found = damage(tmp_path, 0, 0.02, "forging.py")
    assert found["refused"] > 10


@pytest.mark.weekly
def test_more_forgeries(tmp_path: Path) -> None:
    found = damage(tmp_path, 1, 0.3, "forging.py")
    assert found["refused"] > 300


@pytest.mark.parametrize(
    "name", ["../secret.parquet", "/etc/passwd", "a/b.parquet", "..", "a\\b.parquet", ""]
)
def test_files_of_a_manifest_stay_in_its_directory(name: str, tmp_path: Path) -> None:
    fb.evaluate([0, 0, 1], [0, 1, 1]).save(tmp_path)
    stamp = {"bytes": 1, "crc32": 1}
    sealed_anew(tmp_path, lambda head: head["files"].update({name: stamp}))
    with pytest.raises(FileFormatError, match="it names files outside its directory"):
        fb.load(tmp_path)
    for wrong in ({"bytes": 1}, {"bytes": "1", "crc32": 1}, [1], None):
        sealed_anew(tmp_path, lambda head, wrong=wrong: head.update(files={"items.parquet": wrong}))
        with pytest.raises(FileFormatError, match="holds no saved evaluation"):
            fb.load(tmp_path)


def test_a_code_out_of_range_is_named(tmp_path: Path) -> None:
    fb.extended_bcubed({"a": {1}, "b": {1, 2}}, {"a": {1}, "b": {1}}).save(tmp_path)
    cells = pq.read_table(tmp_path / "cells.parquet")
    codes = pa.array([[0]] + [[7]] * (cells.num_rows - 1), cells["true_clusters"].type)
    at = cells.column_names.index("true_clusters")
    pq.write_table(cells.set_column(at, "true_clusters", codes), tmp_path / "cells.parquet")
    sealed_anew(tmp_path)
    with pytest.raises(
        FileFormatError, match=r"'true_clusters' must range from 0 to 1, but ranges from 0 to 7"
    ):
        fb.load(tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        lambda head: head["runs"]["new"]["summary"]["true"].update(clusters="many"),
        lambda head: head["runs"]["new"]["summary"]["pred"].update(size_quantiles=-1),
        lambda head: head["runs"]["new"]["outcomes"][0].update(side="x"),
        lambda head: head["runs"]["new"]["degrees_of_freedom"].update(f1=None),
        lambda head: head["coverage"][0].update(n_scored=[]),
        lambda head: head["saved"]["own_scores"]["new"].update(recall={}),
        lambda head: head["runs"]["new"].update(truth=["the truth"]),
        lambda head: head["saved"]["own_scores"]["new"].pop("f1"),
        lambda head: head.update(warnings=[{"code": "same-input", "level": -1, "message": ""}]),
        lambda head: head.update(warnings=[{"level": "note", "message": ""}]),
        lambda head: head.update(warnings=[{"code": "a", "level": "note", "message": "", "runs": True}]),
    ],
)
def test_figures_of_a_saved_comparison_are_checked(change: Any, tmp_path: Path) -> None:
    truth, old, new = ({f"{k}": k // n for k in range(24)} for n in (2, 3, 4))
    new["0"] = -1
    fb.compare(truth, {"old": old, "new": new}).save(tmp_path)
    sealed_anew(tmp_path, change)
    with pytest.raises(FileFormatError, match="contains no saved evaluation"):
        fb.load(tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        lambda head: head["summary"].update(sample="x"),
        lambda head: head["summary"]["pred"].pop("n_items"),
        lambda head: head["summary"]["pred"].update(n_items=1 << 62),
        lambda head: head["definition"].update(sampling=[]),
        lambda head: head.update(not_computed=-1),
    ],
)
def test_figures_of_saved_estimates_are_checked(change: Any, tmp_path: Path) -> None:
    truth, old = ({f"{k}": k // n for k in range(600)} for n in (2, 1))
    fb.estimate(truth, old).save(tmp_path)
    sealed_anew(tmp_path, change)
    with pytest.raises(FileFormatError, match="contains no saved evaluation"):
        fb.load(tmp_path)


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("evaluation", lambda head: head["definition"].update(weighting=["unweighted"])),
        ("evaluation", lambda head: head["units"].update(n=None)),
        ("evaluation", lambda head: head["units"].update(n=1e300)),
        ("diff", lambda head: head["diff"]["changes"][0].update(n_clusters=-2)),
        ("diff", lambda head: head["diff"]["changes"][0].update(n_clusters=None)),
        ("diff", lambda head: head["diff"]["id_stability"].update(best=None)),
        ("sweep", lambda head: head["best"].update(score={"a": 1})),
    ],
)
def test_figures_of_other_saved_results_are_checked(kind: str, change: Any, tmp_path: Path) -> None:
    saved_results.KINDS[kind](tmp_path)
    sealed_anew(tmp_path, change)
    with pytest.raises(FileFormatError, match="contains no saved"):
        fb.load(tmp_path)


def test_a_run_without_an_estimate_is_refused(tmp_path: Path) -> None:
    truth, old = ({f"{k}": k // n for k in range(600)} for n in (2, 1))
    fb.estimate(truth, {"old": old, "new": truth}).save(tmp_path)
    path = tmp_path / "estimates.parquet"
    table = pq.read_table(path)
    pq.write_table(table.slice(0, table.num_rows - 1), path)
    sealed_anew(tmp_path)
    with pytest.raises(FileFormatError, match="the runs do not have estimates of the same scores"):
        fb.load(tmp_path)


@pytest.mark.parametrize("value", [1 << 62, {"a": 1}, "x"])
@pytest.mark.parametrize("name", ["iq", "bad_distance"])
def test_scores_of_a_saved_judgement_are_numbers(name: str, value: Any, tmp_path: Path) -> None:
    old, new, truth = ({f"{k}": k // n for k in range(24)} for n in (2, 3, 4))
    fb.diff(old, new, truth=truth).save(tmp_path)
    sealed_anew(tmp_path, lambda head: head["diff"]["verdict"]["scores"].update({name: value}))
    with pytest.raises(FileFormatError, match=f"'verdict.scores.{name}' is not a number"):
        fb.load(tmp_path)


@pytest.mark.parametrize("level", [{"a": 1}, 2, None])
def test_the_level_of_a_saved_result_is_a_confidence(level: Any, tmp_path: Path) -> None:
    truth, old = ({f"{k}": k // n for k in range(24)} for n in (2, 1))
    results = {
        "compared": fb.compare(truth, {"old": old, "new": truth}),
        "estimated": fb.estimate(truth, old),
    }
    for name, result in results.items():
        result.save(tmp_path / name)
        sealed_anew(
            tmp_path / name,
            lambda head: (head if "level" in head else head["definition"]).update(level=level),
        )
        with pytest.raises(FileFormatError, match="level must be a confidence"):
            fb.load(tmp_path / name)


@pytest.mark.parametrize(
    ("save", "file", "name", "column", "why"),
    [
        (
            lambda path: fb.compare({"a": 1}, {"x": {"a": 1}, "y": {"a": 2}}, bootstrap=50).save(path),
            "deltas", "replicates", pa.array([["x"]]), "lists of numbers",
        ),
        (
            lambda path: fb.sweep({"a": 1, "b": 1}, [("a", "b", 0.5)]).save(path),
            "curve", "elm_f1", pa.nulls(1), "nulls",
        ),
    ],
)  # fmt: skip
def test_columns_of_figures_are_checked(
    save: Any, file: str, name: str, column: Any, why: str, tmp_path: Path
) -> None:
    save(tmp_path)
    path = tmp_path / f"{file}.parquet"
    table = pq.read_table(path)
    forged = pa.chunked_array([column] * table.num_rows, column.type)
    pq.write_table(table.set_column(table.column_names.index(name), name, forged), path)
    sealed_anew(tmp_path)
    with pytest.raises(FileFormatError, match=f"column {name!r} .*{why}"):
        fb.load(tmp_path)


@pytest.mark.parametrize("name", ["estimate", "unadjusted", "n_clusters", "df", "effective", "ceiling"])
@pytest.mark.parametrize("kind", [None, pa.null()])
def test_saved_estimates_have_no_nulls(name: str, kind: pa.DataType | None, tmp_path: Path) -> None:
    """Each is needed for an interval; an undefined one is NaN."""
    fb.estimate(*({f"{k}": k // n for k in range(60)} for n in (2, 1))).save(tmp_path)
    path = tmp_path / "estimates.parquet"
    table = pq.read_table(path)
    nulls = pa.nulls(table.num_rows, kind or table[name].type)
    pq.write_table(table.set_column(table.column_names.index(name), name, nulls), path)
    sealed_anew(tmp_path)
    with pytest.raises(FileFormatError, match=f"column '{name}' has {table.num_rows:,} nulls"):
        fb.load(tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        lambda head: head.update(links=-1),
        lambda head: head["saved"]["columns"].update(sources=True),
        lambda head: head["saved"]["columns"].update(verdict="same"),
        lambda head: head["saved"]["columns"]["reasons"].pop("left"),
        lambda head: head["saved"]["at_best"]["warnings"][0].pop("message"),
        lambda head: head.update(slices=-1),
    ],
)
def test_figures_of_a_saved_sweep_are_checked(change: Any, tmp_path: Path) -> None:
    links = {"left": list("abd"), "right": list("bce"), "score": [0.9, 0.5, 0.8]}
    fb.sweep({"a": 1, "b": 1, "c": 2, "d": 2, "e": 2, "f": 3}, links).save(tmp_path)
    sealed_anew(tmp_path, change)
    with pytest.raises(FileFormatError, match="contains no saved evaluation"):
        fb.load(tmp_path)


@pytest.mark.parametrize("file", ["merges", "merges_at_best", "weakest_links"])
def test_tables_of_a_saved_sweep_have_their_columns(file: str, tmp_path: Path) -> None:
    """One of them in the place of another would end pages, and `merges`, in a KeyError."""
    fb.sweep({"a": 1, "b": 1, "c": 2}, [("a", "b", 0.5), ("b", "c", 0.4)]).save(tmp_path)
    other = "merges" if file == "weakest_links" else "weakest_links"
    shutil.copy(tmp_path / f"{other}.parquet", tmp_path / f"{file}.parquet")
    sealed_anew(tmp_path)
    with pytest.raises(FileFormatError, match=rf"{file}\.parquet has no column"):
        fb.load(tmp_path)


def test_a_long_value_of_a_manifest_is_cut(tmp_path: Path) -> None:
    old, new = ({f"{k}": k // n for k in range(24)} for n in (2, 3))
    fb.evaluate(old, new, slices={"few": list("012")}).save(tmp_path)
    sealed_anew(tmp_path, lambda head: next(iter(head["slices"].values()))[0].update(weight="x" * 10**5))
    with pytest.raises(FileFormatError, match="contains no saved evaluation") as caught:
        fb.load(tmp_path)
    assert len(str(caught.value)) < 2000


@pytest.mark.parametrize(
    "change",
    [
        lambda head: head["overall"].update(f1=[]),
        lambda head: head["overall"].update(f1="0.5"),
        lambda head: head["errors"].update(f1=True),
        lambda head: head["not_drawn"].update(dict.fromkeys(head["not_drawn"], "../secret")),
        lambda head: head["degrees_of_freedom"].popitem(),
        lambda head: head["units"].update(n="many"),
        lambda head: head["coverage"].update(n_noise="many"),
        lambda head: head.update(not_computed=0),
        lambda head: head.update(not_computed={"f1": 1}),
        lambda head: head["diff"].update(not_computed={"f1": None}),
        lambda head: head["diff"]["changes"].__setitem__(0, None),
        lambda head: head["diff"]["changes"][0].pop("became"),
        lambda head: head["diff"]["changes"][0].update(n_clusters=None),
        lambda head: head["diff"]["changes"][0].update(n_items=[]),
        lambda head: head["diff"].update(reading=-2),
        lambda head: head["manifest"].pop("truth"),
        lambda head: head.update(prediction=True),
    ],
)
@pytest.mark.parametrize("check", [False, True])
def test_figures_of_a_manifest_are_numbers(change: Any, check: bool, tmp_path: Path) -> None:
    old, new = ({f"{k}": k // n for k in range(24)} for n in (2, 3))
    fb.diff(old, new).save(tmp_path)
    sealed_anew(tmp_path, change)
    with pytest.raises(FileFormatError):
        fb.load(tmp_path, check=check)
