"""Warnings, notes and pages of results that were saved: the same figures as before."""

import json
import math

import pytest
from documents import lines, of_section

import fastbcubed as fb
from fastbcubed.render.json import as_json
from fastbcubed.results.warnings import from_saved, to_saved

pytestmark = pytest.mark.filterwarnings("ignore::fastbcubed.EvaluationWarning")

TRUTH = {"a": 1, "b": 1, "c": 2, "d": 2}
HALF = {"a": 1, "b": 1, "x": 2}
#: Links that no threshold should use: at the best one, which is infinite, all items are alone.
WRONG = [("a", "b", 0.9), ("b", "c", 0.4)]


@pytest.mark.parametrize("figure", [math.inf, -math.inf, math.nan, 0.5, None, "inf"])
@pytest.mark.parametrize("where", ["alone", "by_run", "in a list"])
def test_figures_that_json_has_no_number_for(figure, where):
    own = {
        "alone": {"x": figure},
        "by_run": {"x": {"old": {"f1": figure}}},
        "in a list": {"x": [1.0, [figure]]},
    }
    note = {"level": "note", "message": "Few units."}
    said = [{"code": "few-units", **note, **own[where]}, {"code": "same-input", **note}]
    assert repr(from_saved(json.loads(as_json(to_saved(said))))) == repr(said)


def made(kind):
    """Return a result of each kind that has warnings or notes."""
    return {
        "evaluation": lambda: fb.evaluate(TRUTH, HALF),
        "evaluation of a clustering made of links": lambda: fb.sweep(TRUTH, WRONG).at_best,
        "comparison": lambda: fb.compare(TRUTH, {"half": HALF, "all": TRUTH}),
        "comparison of overlapping runs": lambda: fb.compare(TRUTH, {"half": HALF}, overlapping=True),
        "diff": lambda: fb.diff(HALF, TRUTH, truth=TRUTH),
        "sweep": lambda: fb.sweep(dict(zip("abcd", range(4), strict=True)), WRONG),
        "estimates": lambda: fb.estimate({"a": 1, "b": 1, "c": 2}, {**HALF, "c": 2}),
        "estimated runs": lambda: fb.estimate(
            {"a": 1, "b": 1, "c": 2}, {"half": {**HALF, "c": 2}, "all": TRUTH}
        ),
    }[kind]()


KINDS = ["evaluation", "evaluation of a clustering made of links", "comparison", "comparison of overlapping runs",
         "diff", "sweep", "estimates", "estimated runs"]  # fmt: skip


@pytest.mark.cases(3, 99)
@pytest.mark.parametrize("kind", KINDS)
def test_a_loaded_result_has_the_same_warnings(kind, tmp_path):
    found = made(kind)
    found.save(tmp_path)
    assert repr(fb.load(tmp_path).warnings) == repr(found.warnings)


def test_a_loaded_sweep_knows_the_infinite_threshold_of_a_note(tmp_path):
    sweep = made("sweep")
    assert sweep.best("f1").threshold == math.inf
    sweep.save(tmp_path)
    (note,) = [each for each in fb.load(tmp_path).warnings if each["code"] == "made-of-links"]
    assert note["threshold"] == math.inf
    written = json.loads((tmp_path / "overall.json").read_text())
    (own,) = [each for each in written["warnings"] if each["code"] == "made-of-links"]
    assert own["threshold"] is None


@pytest.mark.cases(0)
@pytest.mark.parametrize(("keep", "check"), [("scores", True), ("cells", False), ("items", True)])
def test_the_page_of_a_loaded_evaluation_says_what_missing_items_would_change(keep, check, tmp_path):
    """c and d, alone in the prediction, have precision 1 and recall 1/2: the means of all four are 1 and 3/4."""
    ev = fb.evaluate(TRUTH, HALF)
    ev.save(tmp_path, keep=keep)
    loaded = fb.load(tmp_path, check=check)
    said = lines(of_section(loaded.report().content, "sides"))
    assert "precision 1, recall 0.75000, F1 0.85714" in " ".join(said)
    assert said == lines(of_section(ev.report().content, "sides"))


def test_the_page_of_a_run_of_a_loaded_comparison_says_it_too(tmp_path):
    cmp = fb.compare(TRUTH, {"half": HALF}, align="each")
    cmp.save(tmp_path)
    said = lines(of_section(fb.load(tmp_path)["half"].report().content, "sides"))
    assert said == lines(of_section(cmp["half"].report().content, "sides"))
    assert "recall 0.75000" in " ".join(said)
