"""Generated calls and command lines end well: in a result, or in an error or exit code that is promised."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from subprocess import run

import pytest
from generated_calls import ORACLES, Generator, failures, tried
from generated_calls import by_kind as listed
from generated_commands import failures as failures_of_commands
from generated_inputs import differences

import fastbcubed as fb

#: Seeds of `-m big`, each of so many calls, command lines, and pairs of inputs.
SEEDS, CALLS, COMMANDS, INPUTS = range(1, 21), 5_000, 250, 1_000


@pytest.mark.parametrize("n", [40, pytest.param(500, marks=pytest.mark.slow)])
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
