"""Directories that are loaded hold anything: what was damaged is refused, and nothing crashes or hangs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import fastbcubed as fb

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs pipes and devices")

TESTS = Path(__file__).parents[1]


def damage(path: Path, seed: int, share: float) -> Counter[str]:
    """Return how many edits ended in which way."""
    folders = (Path(fb.__file__).parents[1], TESTS / "oracles", TESTS / "results")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders))}
    command = [sys.executable, str(TESTS / "results" / "damaging.py"), str(path), str(seed), str(share)]
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
@pytest.mark.slow
def test_more_edits(tmp_path: Path) -> None:
    """A share of 1 tries them all, in minutes: `python tests/results/damaging.py DIRECTORY 1 1`."""
    found = damage(tmp_path, 1, 0.5)
    assert found["refused"] > 600
