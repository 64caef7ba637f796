"""The kernels of sweeps are plain Python, too: with NUMBA_DISABLE_JIT=1 they say the same."""

import json
import os
import random
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

import fastbcubed as fb

OPTIONS: list[dict[str, Any]] = [
    {},
    {"ascending": True, "unmatched": "drop"},
    {"weight": True},
    {"weight": True, "unmatched": "outside"},
]


def asked(options: dict[str, Any]) -> dict[str, Any]:
    """Return what a sweep of some links answers, with ties, repeated and reversed ones, and items outside the truth."""
    made = random.Random(5)
    links = [
        (made.randrange(30), made.randrange(30), made.choice([0.1, 0.5, 0.5, made.random()]))
        for _ in range(60)
    ]
    truth = {item: made.randrange(9) for item in range(33) if item % 7}
    weight = {item: made.uniform(0.1, 3.0) for item in range(33)} if options.get("weight") else None
    found = fb.sweep(truth, links, **{**options, "weight": weight}, threads=1, progress=False)
    return {
        "curve": found.curve(limit=None, errors=True).to_pylist(),
        "merges": found.merges(limit=None).to_pylist(),
        "weakest": found.weakest_links(limit=None).to_pylist(),
        "labels": found.at(0.5).labels.keys().tolist(),
        "slices": found.slices("true_size").to_pylist(),
        "f1": found.evaluate(0.5).f1,
    }


def all_answers() -> list[dict[str, Any]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fb.EvaluationWarning)
        return [asked(options) for options in OPTIONS]


@pytest.mark.process
def test_kernels_that_are_not_compiled_say_the_same() -> None:
    code = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import json, {__name__} as t; "
    code = code.replace(__name__, Path(__file__).stem) + "print(json.dumps(t.all_answers()))"
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(Path(fb.__file__).parents[1])}
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert ran.returncode == 0, ran.stderr[-2000:]
    assert_same(json.loads(ran.stdout), json.loads(json.dumps(all_answers())))


def assert_same(there: Any, here: Any) -> None:
    """Compare what lists and dicts hold, floats up to rounding."""
    if isinstance(here, dict):
        assert list(there) == list(here)
        there, here = list(there.values()), list(here.values())
    if isinstance(here, list):
        for one, other in zip(there, here, strict=True):
            assert_same(one, other)
    elif isinstance(here, float):
        assert there == pytest.approx(here, rel=1e-12, abs=1e-13, nan_ok=True)
    else:
        assert there == here
