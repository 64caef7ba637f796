"""A result that is read part by part says what the same result says when it is read as a whole."""

from __future__ import annotations

import copy
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from documents import parts
from effort import examples
from hypothesis import given
from hypothesis import strategies as st

import fastbcubed as fb
from fastbcubed.cells import excerpts
from fastbcubed.cli.main import main
from fastbcubed.errors import EvaluationWarning, FileFormatError, OptionError
from fastbcubed.results import load, saved_files, standard_errors

HOW: dict[str, dict[str, Any]] = {
    "plain": {},
    "outside": {"unmatched": "outside"},
    "dropped": {"unmatched": "drop"},
    "weighted": {"weight": "w"},
    "outer": {"weight": "w", "weighting": "outer"},
    "few scores": {"metrics": ["recall"]},
}


@pytest.fixture(autouse=True)
def _every_result_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saved_files, "LARGE", 0)


def evaluated(seed: int, how: dict[str, Any], n: int = 400) -> fb.Evaluation:
    rng = np.random.default_rng(seed)
    sides = []
    for first in (0, 0 if how in ({}, HOW["weighted"]) else 40):
        labels = rng.choice([f"c{k}" for k in range(90)], n)
        kind = rng.choice(["x", "y", "z"], n)
        sides.append(
            pa.table(
                {
                    "item": np.arange(first, first + n),
                    "cluster": labels,
                    "kind": kind,
                    "w": rng.random(n) + 0.1,
                }
            )
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EvaluationWarning)
        return fb.evaluate(*sides, slices=["truth.kind"], **how)


def same(found: Any, wanted: Any, where: str = "") -> None:
    """Compare content; figures may differ in their last digits."""
    if isinstance(wanted, dict):
        assert found.keys() == wanted.keys(), where
        for key, value in wanted.items():
            same(found[key], value, f"{where}/{key}")
    elif isinstance(wanted, list):
        assert len(found) == len(wanted), where
        for k, value in enumerate(wanted):
            same(found[k], value, f"{where}/{k}")
    elif isinstance(wanted, float):
        assert found == pytest.approx(wanted, rel=1e-12, abs=1e-12), where
    else:
        assert found == wanted, where


def content_of(result: Any, **asked: Any) -> dict[str, Any]:
    """Return the content of the page of a result, without drawing it."""
    found: dict[str, Any] = json.loads(json.dumps(result.report(**asked).content))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", HOW)
def test_a_page_has_the_figures_of_the_result(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # as of so many cells that errors of slices take too long
    monkeypatch.setattr(standard_errors, "ALWAYS", 0)
    evaluated(3, HOW[name]).save(tmp_path / "r")
    asked: dict[str, Any] = {"worst": 6, "members": 8, "columns": ["truth.kind", "prediction.kind"]}
    wanted = content_of(fb.load(tmp_path / "r"), **asked)
    if name != "outer":  # whose repairs take all cells
        monkeypatch.setattr(excerpts.UnreadCells, "__getattr__", None)
    large = fb.load(tmp_path / "r", check=False)
    assert large.kept.lazy is not None
    same(content_of(large, **asked), wanted)
    assert parts(wanted, "Members")


@pytest.mark.slow
@examples(50)
@given(
    seed=st.integers(0, 10_000),
    limit=st.integers(1, 30),
    name=st.sampled_from(["plain", "outside", "weighted"]),
)
def test_first_repairs_are_those_of_all_cells(
    seed: int, limit: int, name: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("result")
    ev = evaluated(seed, HOW[name], 120)
    ev.save(path)
    found = fb.load(path, check=False).repairs(limit=limit).to_pylist()
    wanted = ev.repairs(limit=limit).to_pylist()
    same([row["gain"] for row in found], [row["gain"] for row in wanted])
    same(told_apart(found), told_apart(wanted))


def told_apart(repairs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Leave out what rounding decides: the order of repairs that gain the same, and which of them come last."""
    kept = [row for row in repairs if row["gain"] > repairs[-1]["gain"] + 1e-12]
    depends = ("rank", "running", "running_precision", "running_recall")
    rows = [{name: value for name, value in row.items() if name not in depends} for row in kept]
    return sorted(rows, key=lambda row: (-round(row["gain"], 12), row["kind"], row["cluster"]))


@pytest.mark.slow
def test_whatever_else_is_asked_is_answered(tmp_path: Path) -> None:
    ev = evaluated(5, {})
    ev.save(tmp_path / "r")
    large = fb.load(tmp_path / "r", check=False)
    assert large.contingency.n_items == ev.contingency.n_items
    assert large.slices("pred_size").equals(ev.slices("pred_size"))
    assert large.item(7) == ev.item(7)
    for asked in (
        {},
        {"limit": 9, "outcome": "split"},
        {"limit": 9, "order_by": "loss"},
        {"limit": 5, "order_by": "f1"},
    ):
        assert large.clusters("true", **asked).to_pylist() == ev.clusters("true", **asked).to_pylist()
    assert copy.deepcopy(large).f1 == ev.f1
    cells = fb.load(tmp_path / "r", check=False).contingency
    assert repr(cells) == f"Contingency({ev.contingency.n_items} items, cells in a file)"
    assert repr(copy.deepcopy(cells)) == repr(ev.contingency)  # as ordinary cells
    large.save(tmp_path / "again")
    assert fb.load(tmp_path / "again").f1 == ev.f1


def test_what_was_damaged_is_refused_when_it_is_read(tmp_path: Path) -> None:
    evaluated(5, {}).save(tmp_path / "r")
    file = tmp_path / "r" / "true_clusters.parquet"
    data = bytearray(file.read_bytes())
    group = pq.read_metadata(file).row_group(0)
    for column in map(group.column, range(group.num_columns)):  # of which a page reads some
        data[column.data_page_offset + column.total_compressed_size // 2] ^= 1
    file.write_bytes(data)
    (tmp_path / "r" / "page.json").unlink()
    with pytest.raises(FileFormatError):
        fb.load(tmp_path / "r", check=False).report()
    file.write_bytes(data[:-1])
    with pytest.raises(FileFormatError, match="is not the file"):
        fb.load(tmp_path / "r", check=False)


@pytest.mark.slow
def test_a_result_that_was_replaced_is_not_mixed_with_the_next(tmp_path: Path) -> None:
    evaluated(5, {}).save(tmp_path / "r")
    large = fb.load(tmp_path / "r", check=False)
    evaluated(6, {}).save(tmp_path / "r")
    assert large.clusters("true", limit=2).num_rows == 2  # of the files that were opened
    with pytest.raises(FileFormatError, match="a different result"):
        large.item(7)


@pytest.fixture(scope="module")
def intact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Save a result once, to be copied and damaged."""
    path = tmp_path_factory.mktemp("intact") / "r"
    evaluated(5, {}).save(path)
    return path


def test_a_result_without_room_is_read_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a limit it is checked as ever, but not held; what takes all cells is refused by name."""
    ev = evaluated(5, {})
    ev.save(tmp_path / "r", keep="cells")
    assert fb.load(tmp_path / "r", memory_limit="1GiB").kept.lazy is None
    monkeypatch.setattr(load, "BESIDE", 0)
    found = fb.load(tmp_path / "r", memory_limit=1)
    assert (found.f1, repr(found)) == (ev.f1, repr(fb.load(tmp_path / "r")))
    assert found.clusters("true", limit=9).equals(ev.clusters("true", limit=9))
    with pytest.raises(OptionError, match=r"all cells and clusters of .* a memory_limit of at least 1 MiB"):
        found.clusters("true", limit=None)
    assert found.report().content["kind"] == "evaluation"
    (tmp_path / "r" / "cells.parquet").write_bytes(b"")
    with pytest.raises(FileFormatError, match="is not the file"):
        fb.load(tmp_path / "r", memory_limit=1)


@pytest.mark.parametrize("kind", ["diff", "sweep", "overlapping"])
def test_a_result_without_room_that_is_read_whole_is_refused(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sides = {"a": 1, "b": 1, "c": 2}, {"a": 1, "b": 2, "c": 2}
    made = {
        "diff": lambda: fb.diff(*sides),
        "sweep": lambda: fb.sweep(sides[0], [("a", "b", 0.9), ("b", "c", 0.5)]),
        "overlapping": lambda: fb.evaluate(*sides, overlapping=True),
    }
    made[kind]().save(tmp_path / "r")
    fb.load(tmp_path / "r", memory_limit="1MiB")
    monkeypatch.setattr(load, "BESIDE", 0)
    with pytest.raises(
        OptionError, match=r"r would take about .* its tables .* a memory_limit of at least 1 "
    ):
        fb.load(tmp_path / "r", memory_limit=1)


def test_a_limit_that_is_no_size_is_refused(tmp_path: Path) -> None:
    evaluated(5, {}).save(tmp_path / "r")
    for limit in (0, "much", float("nan")):
        with pytest.raises(OptionError, match="memory_limit must be a number of bytes"):
            fb.load(tmp_path / "r", memory_limit=limit)


def test_show_and_report_take_a_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    evaluated(5, {}).save(tmp_path / "r")
    path, limited = str(tmp_path / "r"), ["--memory-limit", "1"]
    assert main(["show", path]) == 0
    shown = capsys.readouterr().out
    monkeypatch.setattr(load, "BESIDE", 0)
    assert main(["show", path, *limited]) == 0
    assert capsys.readouterr().out == shown
    assert main(["report", path, "--out", str(tmp_path / "page.html"), *limited]) == 0
    fb.diff({"a": 1}, {"a": 1}).save(tmp_path / "d")
    capsys.readouterr()
    assert main(["show", str(tmp_path / "d"), *limited]) == 2
    assert "a memory_limit of at least 1 MiB" in capsys.readouterr().err
