"""Scores of the user's own: a function of the matrix of an item, or a declared Metric."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest

import fastbcubed as fb
from fastbcubed.errors import GateError, MetricError, NotKeptError, OptionError
from fastbcubed.metrics.metric import Metric

#: Of the items, four have tp 2 and one mate that is missing or wrong, and one has tp 1, fp 2 and fn 2.
TRUE, PRED = [0, 0, 0, 1, 1], [5, 5, 6, 6, 6]


def jaccard(tp, fp, fn, tn):
    return tp / (tp + fp + fn)


def wrong(tp, fp, fn, tn):
    return fp


def declared(function, **more):
    """Declare a mean over items of which less is better."""
    how = {"family": "pointwise", "low": 0.0, "high": 5.0, "best": "lower", "source": "fastbcubed", **more}
    return Metric(function.__name__, summary="Wrong mates.", definition="fp", formula=function, **how)


@pytest.fixture
def ev():
    return fb.evaluate(
        TRUE, PRED, metrics=["f1", jaccard, declared(wrong)], attributes={"half": list("xxyyy")}
    )


def test_gates_know_the_scores_of_the_result(ev):
    """Jaccard is 2/3 four times and 1/5: 43/75; here it is no other name of jaccard_index. fp is 0, 0, 2, 1, 1."""
    found = ev.check("jaccard>=0.57", "jaccard<=0.58", "jaccard>=0.66@half=x", "wrong<=1.4@half=y", wrong=0.8)
    assert found["value"].to_pylist() == pytest.approx([43 / 75, 43 / 75, 2 / 3, 4 / 3, 0.8])
    with pytest.raises(GateError, match=r"jaccard is 0.57333, wanted at least 0.6"):
        ev.check("jaccard>=0.6")
    with pytest.raises(GateError, match=r"wrong is 0.80000, wanted at most 0.7"):
        ev.check(wrong=0.7)
    with pytest.raises(OptionError, match=r'lower is better there; use "wrong<=0.5"'):
        ev.check("wrong>=0.5")
    with pytest.raises(OptionError, match=r"wrong ranges from 0 to 5"):
        ev.check("wrong<=6")
    with pytest.raises(OptionError, match=r'jaccard has no direction; write "jaccard>=0.1"'):
        ev.check(jaccard=0.1)
    with pytest.raises(MetricError, match="Unknown score 'jacard'"):
        ev.check("jacard>=0.1")


def test_gates_on_a_diff_know_its_scores():
    diff = fb.diff(TRUE, PRED, metrics=["split_rate", jaccard])
    assert diff.check("jaccard>=0.5")["value"].to_pylist() == pytest.approx([43 / 75])


@pytest.mark.parametrize("which", ["jaccard", jaccard])
def test_a_test_takes_a_score_by_name_or_function(ev, which):
    with pytest.raises(MetricError, match="jaccard has no direction"):
        ev.test(which)


def undefined(tp, fp, fn, tn):
    """Return 0 / 0 for the items of an exact cluster."""
    return np.divide(fp, fp + fn, out=np.full(fp.shape, np.nan), where=fp + fn > 0)


def infinite(tp, fp, fn, tn):
    return np.divide(tp, fn, out=np.full(fn.shape, np.inf), where=fn > 0)


@pytest.mark.parametrize("function", [undefined, infinite])
@pytest.mark.parametrize("score", [lambda function: function, declared])
def test_a_score_that_is_not_finite_has_no_standard_error(function, score):
    """It was 0, which means that all components are alike; and where it is a mean without negatives, recall had none.

    Of four components three have recall 1 and one 1/2: sqrt(4/3 * (3 * 0.25**2 + 0.75**2)) / 8 = 1/8. The other run has
    recall 1/2 everywhere: differences of -1/2 three times and 0 once, and the same error.
    """
    name, truth, pred = function.__name__, list("aabbccdd"), [1, 1, 2, 2, 3, 3, 4, 5]
    ev = fb.evaluate(truth, pred, metrics=["recall", score(function)])
    assert ev.errors.recall == pytest.approx(1 / 8)
    assert not math.isfinite(ev.overall[name])
    assert math.isnan(ev.errors[name])
    assert math.isnan(ev.scores()["se"][1].as_py())
    assert all(map(math.isnan, ev.interval(name)))
    deltas = fb.compare(truth, {"a": pred, "b": list(range(8))}, metrics=ev.metrics).deltas()
    assert deltas["se"].to_pylist() == pytest.approx([1 / 8, math.nan], nan_ok=True)


def agreement(tp, fp, fn, tn):
    return (tp + tn) / (tp + fp + fn + tn)


def test_a_formula_that_lacks_true_negatives_says_what_to_do():
    """An item that the truth does not have leaves open who else is not in its cluster."""
    truth, pred = dict(enumerate(TRUE)), dict(enumerate([*PRED, 6]))
    reason = (
        r'^agreement is not .* true negatives, which unmatched="outside" leaves open; pass unmatched="drop"'
    )
    with pytest.raises(MetricError, match=reason):
        fb.evaluate(truth, pred, metrics=[agreement], unmatched="outside")
    with pytest.raises(MetricError, match=reason):
        fb.evaluate(truth, pred, unmatched="outside").metric(agreement)
    ev = fb.evaluate(
        truth, pred, metrics=lambda tp, fp, fn, tn: tp > 1 if tn is None else 0, unmatched="outside"
    )
    assert list(ev.overall.values()) == [4 / 5]
    with pytest.raises(MetricError, match="its formula takes true negatives; declare it with uses_tn=True"):
        fb.evaluate(TRUE, PRED, metrics=[declared(agreement)])
    assert fb.evaluate(TRUE, PRED, metrics=[declared(agreement, uses_tn=True)]).agreement == pytest.approx(
        17 / 25
    )


def test_the_best_run_takes_a_score_that_is_best_somewhere():
    """The first run was taken without a word. fp is 0, 0, 2, 1 and 1 in the one, and 0 in the other."""
    runs = {"a": PRED, "b": [1, 2, 3, 4, 5]}
    with pytest.raises(
        OptionError, match="no run is best: 'jaccard' has no direction or no values that differ"
    ):
        fb.compare(TRUE, runs, metrics=jaccard, baseline="best")
    cmp = fb.compare(TRUE, runs, metrics=jaccard)
    with pytest.raises(OptionError, match='Name the run, or add another score, such as metrics="f1"'):
        _ = cmp.best
    assert cmp.ranking == [] and cmp.to_dict()["baseline"] == "a" and "jaccard" in str(cmp)
    assert fb.compare(TRUE, runs, metrics=[jaccard, declared(wrong)], baseline="best").baseline == "b"


def size(tp, fp, fn, tn):
    return tp


@pytest.mark.parametrize("score", [size, declared(size)])
def test_exact_clusters_differ_in_scores_of_users(score):
    """The mean is (1 + 3 * 3) / 4, and its error sqrt(2 * (2 * (3/8)**2)); where declared, they were thought equal."""
    ev = fb.evaluate(list("abbb"), list("abbb"), metrics=[score])
    assert ev.errors.size == pytest.approx(3 / 4)
    assert pickle.loads(pickle.dumps(ev)).overall == ev.overall


def share(tp, fp, fn, tn):
    return tp / (tp + fn)


#: A score of all cells at once, which has no standard error.
PARTS = Metric(
    "parts", "matching", 1.0, math.inf, "lower", "Parts of a true cluster.", "V / K", "fastbcubed",
    score=lambda cells, pool: cells.n_cells / cells.n_true,
)  # fmt: skip


@pytest.mark.parametrize("keep", ["scores", "items"])
def test_a_loaded_result_has_value_error_and_interval_of_scores_of_users(tmp_path, keep):
    """Of four clusters one is split, and recall is 7/8 +- 1/8; that of a mean in 0 to 1 has the interval of Wilson.

    Its ends, .39577 and .98681, move on by half of what a fifth cluster, a fifth of the items, could change: by a tenth
    of 7/8 and of 1/8.
    """
    metrics = ["recall", jaccard, declared(share, low=0.0, high=1.0, best="higher"), declared(wrong), PARTS]
    part = list("xxxxyyyy")
    ev = fb.evaluate(
        list("aabbccdd"), [1, 1, 2, 2, 3, 3, 4, 5], metrics=metrics, attributes={"part": part}, slices="part"
    )
    ev.save(tmp_path / "once", keep=keep)
    fb.load(tmp_path / "once").save(tmp_path / "twice", keep=keep)
    for loaded in (fb.load(tmp_path / "twice"), pickle.loads(pickle.dumps(fb.load(tmp_path / "once")))):
        assert loaded.scores() == ev.scores()
        assert loaded.scores()["se"].to_pylist() == [1 / 8, 1 / 8, 1 / 8, 0, None]
        assert tuple(loaded.interval("share")) == pytest.approx((0.38012, 0.98819), abs=1e-5)
        for name in ("recall", "jaccard", "share", "wrong"):
            assert loaded.interval(name) == ev.interval(name)
        assert loaded.check("jaccard>=0.7@part=y", parts=1.25)["value"].to_pylist() == [3 / 4, 5 / 4]
        with pytest.raises(OptionError, match="wrong>=1': lower is better"):
            loaded.check("wrong>=1")
        with pytest.raises(MetricError, match="neither the standard error of parts"):
            loaded.interval("parts")
    if keep == "items":
        assert loaded.clusters("true").column_names[-1] == "recall"
        assert loaded.metric(jaccard) == 7 / 8
        assert loaded.scores(unit="part")["se"].to_pylist() == [1 / 8, None, None, None, None]  # of 1 and 3/4
        with pytest.raises(NotKeptError, match="results are saved without the function of parts"):
            loaded.test("parts")


def test_a_loaded_result_without_standard_errors_says_so(tmp_path):
    ev = fb.evaluate(list("aabb"), [1, 2, 3, 3], metrics=["f1", jaccard])
    ev.standard_errors.shown = False
    ev.save(tmp_path)
    loaded = fb.load(tmp_path)
    assert loaded.metric("jaccard") == ev.overall.jaccard
    with pytest.raises(MetricError, match=r"neither the standard error of jaccard .* access \.errors before"):
        _ = loaded.errors["jaccard"]


def test_a_loaded_comparison_knows_which_value_is_better(tmp_path):
    cmp = fb.compare(TRUE, {"a": PRED, "b": [1, 2, 3, 4, 5]}, metrics=[declared(wrong)])
    cmp.save(tmp_path)
    assert fb.load(tmp_path).ranks() == cmp.ranks() and fb.load(tmp_path).best == "b"
