"""Results that released versions have saved load for ever, with the figures that were worked by hand then."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import saved_results

import fastbcubed as fb
from fastbcubed.load_result import KINDS

CASES = [
    (path.parent, name)
    for path in sorted(saved_results.SAVED.glob("*/figures.json"))
    for name in json.loads(path.read_text(encoding="utf-8"))
    if name != "worked by hand"
]


@pytest.mark.filterwarnings("ignore::fastbcubed.EvaluationWarning")
@pytest.mark.parametrize(("folder", "name"), CASES, ids=lambda value: getattr(value, "name", value))
def test_a_saved_result_loads_and_has_its_figures(folder: Path, name: str) -> None:
    result = fb.load(folder / name)
    figures = json.loads((folder / "figures.json").read_text(encoding="utf-8"))[name]
    for question, expected in figures.items():
        assert eval(question, {"result": result}) == approximately(expected), question
    assert repr(result) and result._repr_html_()
    if hasattr(result, "to_json"):
        assert json.loads(result.to_json())
    assert result.to_arrow().num_rows


def test_results_of_all_kinds_are_saved() -> None:
    for folder in {folder for folder, _ in CASES}:
        names = {path.name for path in folder.iterdir() if path.is_dir()}
        heads = [json.loads((folder / name / "overall.json").read_text(encoding="utf-8")) for name in names]
        assert {head["kind"] for head in heads if "kind" in head} >= {*KINDS}
        assert names == {name for at, name in CASES if at == folder} == {*saved_results.KINDS}


@pytest.fixture(scope="module")
def saved_now(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of results that this version has saved, beside the same figures."""
    folder = tmp_path_factory.mktemp("saved")
    saved_results.write(folder)
    figures = saved_results.SAVED / saved_results.VERSION / "figures.json"
    (folder / "figures.json").write_bytes(figures.read_bytes())
    return folder


@pytest.mark.cases(4, 99)
@pytest.mark.filterwarnings("ignore::fastbcubed.EvaluationWarning")
@pytest.mark.parametrize("name", saved_results.KINDS)
def test_what_this_version_saves_has_the_same_figures(name: str, saved_now: Path) -> None:
    test_a_saved_result_loads_and_has_its_figures(saved_now, name)


def approximately(expected: Any) -> Any:
    """Return what JSON has as what compares: fractions as numbers within rounding, other texts as they are."""
    if isinstance(expected, list):
        return list(map(approximately, expected))
    if isinstance(expected, dict):
        return {name: approximately(value) for name, value in expected.items()}
    try:
        return pytest.approx(float(Fraction(expected)), abs=1e-12)
    except ValueError:
        return expected
