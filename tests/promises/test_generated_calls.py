"""Generated calls and command lines end well: in a result, or in an error or exit code that is promised."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from subprocess import run
from typing import Any

import pyarrow as pa
import pytest
from generated_calls import ORACLES, Generator, failures, tried
from generated_calls import by_kind as listed
from generated_commands import failures as failures_of_commands
from generated_inputs import differences
from odd_tables import ODD_TABLES
from public_api import LINKS, NEW, OLD, TRUTH

import fastbcubed as fb

TABLES = {
    name: pa.table(each) for name, each in {"truth": TRUTH, "old": OLD, "new": NEW, "links": LINKS}.items()
}
#: Seeds of `-m big`, each of so many calls, command lines, and pairs of inputs.
SEEDS, CALLS, COMMANDS, INPUTS = range(1, 21), 5_000, 250, 1_000


@pytest.mark.parametrize("n", [8, pytest.param(500, marks=pytest.mark.slow)])
def test_generated_calls(n: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = listed(failures(seed=0, n=n))
    assert not found, found


@pytest.mark.parametrize("n", [6, pytest.param(50, marks=pytest.mark.slow)])
def test_generated_commands(n: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = listed(failures_of_commands(seed=0, n=n))
    assert not found, found


def test_generated_inputs(tmp_path: Path) -> None:
    """Scores, and kinds of errors, are the same whatever the way in, the engine and the memory limit."""
    found = "\n".join(differences(seed=0, n=15, folder=tmp_path))
    assert not found, found


@pytest.mark.big
@pytest.mark.parametrize("seed", SEEDS)
def test_many_generated_inputs(seed: int, tmp_path: Path) -> None:
    found = "\n".join(differences(seed, INPUTS, tmp_path))
    assert not found, found


@pytest.mark.big
@pytest.mark.parametrize("seed", SEEDS)
def test_many_generated_calls(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = listed(failures(seed, CALLS))
    assert not found, found


@pytest.mark.big
@pytest.mark.parametrize("seed", SEEDS)
def test_many_generated_commands(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = listed(failures_of_commands(seed, COMMANDS))
    assert not found, found


@pytest.mark.big
@pytest.mark.parametrize("seed", range(200))
def test_commands_in_processes_of_their_own(seed: int, tmp_path: Path) -> None:
    """What ends a process, at its end too, is not seen from within."""
    found = run(
        [sys.executable, ORACLES / "generated_commands.py", str(seed), "1"],
        cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert (found.returncode, found.stdout.strip()) == (0, ""), found.stdout + found.stderr


#: Ways in which a table may be given.
WAYS: dict[str, Callable[[Any], Any]] = {
    "truth": lambda given: fb.evaluate(given, TABLES["new"]),
    "prediction": lambda given: fb.evaluate(TABLES["truth"], given),
    "both, on disk": lambda given: fb.evaluate(given, given, engine="disk"),
    "table": lambda given: fb.evaluate("cluster", "item", table=given),
    "attributes": lambda given: fb.evaluate(
        TABLES["truth"], TABLES["new"], attributes=given, slices="cluster"
    ),
    "weight": lambda given: fb.evaluate(TABLES["truth"], TABLES["new"], weight=given),
    "overlapping": lambda given: fb.evaluate(given, given, overlapping=True),
    "explained": lambda given: fb.evaluate(TABLES["truth"], TABLES["new"], keep="items").explain(given),
    "run": lambda given: fb.compare(TABLES["truth"], {"a": TABLES["new"], "b": given}),
    "baseline": lambda given: fb.diff(given, TABLES["new"]).ids(),
    "experiment": lambda given: fb.diff(TABLES["new"], given, truth=TABLES["truth"]).registry(),
    "registry": lambda given: fb.diff(TABLES["old"], TABLES["new"]).registry(given),
    "known ids": lambda given: fb.diff(TABLES["old"], TABLES["new"]).ids(known_ids=given),
    "sample": lambda given: fb.estimate(given, TABLES["new"]),
    "one of two estimated": lambda given: fb.estimate(TABLES["truth"], {"a": given, "b": TABLES["new"]}),
    "truth of links": lambda given: fb.sweep(given, TABLES["links"]),
    "links": lambda given: fb.sweep(TABLES["truth"], given),
    "items of links": lambda given: fb.sweep(TABLES["truth"], TABLES["links"], items=given),
    "clustered links": fb.Clustering.from_links,
    "clustering": lambda given: fb.Clustering.from_table(given).to_table(),
    "judged pairs": fb.estimate_pairs,
}
#: Those that failed once, which are tried each time; others take a second each.
QUICK = ("weight",)


@pytest.mark.parametrize(
    "way", [way if way in QUICK else pytest.param(way, marks=pytest.mark.slow) for way in WAYS]
)
def test_odd_tables(way: str) -> None:
    """Tables of odd shapes and types, in any place of a table, give a result or an error of the package."""
    found = {name: tried(lambda make=make: WAYS[way](make())) for name, make in ODD_TABLES.items()}
    assert not {name: failure for name, failure in found.items() if failure is not None}


def test_what_the_generator_sees() -> None:
    """It tells an error of the package from others, and a warning of it from others."""

    def warn(category: type[Warning]) -> None:
        warnings.warn("said", category, stacklevel=1)

    assert tried(lambda: fb.evaluate([1], [1], keep="nope")) is None
    assert tried(lambda: warn(fb.EvaluationWarning)) is None
    for call, what in {
        (lambda: 1 / 0): "ZeroDivisionError: division by zero",
        (lambda: warn(RuntimeWarning)): "RuntimeWarning: said",
        (lambda: sys.exit(3)): "SystemExit: 3",
    }.items():
        failure = tried(call)
        assert failure is not None
        assert failure[0] == what


def test_every_public_function_is_called() -> None:
    names = {subject.name for subject in Generator(0).subjects}
    for wanted in (
        "fastbcubed.evaluate",
        "fastbcubed.metrics.f1",
        "ev.interval",
        "sweep.save",
        "report.write",
    ):
        assert wanted in names
