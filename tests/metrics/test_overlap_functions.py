"""Overlapping clusterings in every form, in the functions of fastbcubed.metrics and in contingency."""

import numpy as np
import pyarrow as pa
import pytest

import fastbcubed as fb
from fastbcubed.constraints import check_constraints
from fastbcubed.errors import AlignmentError, MetricError, OptionError, OverlapError, WeightError

# Items 1 and 2 are in the true cluster a, items 2 and 3 in b; the predicted cluster c holds all three.
TRUTH = {1: {"a"}, 2: {"a", "b"}, 3: {"b"}}
PREDICTION = {1: {"c"}, 2: {"c"}, 3: {"c"}}
FORMS = {
    "dicts of sets": (TRUTH, PREDICTION),
    "lists of sets": (list(TRUTH.values()), list(PREDICTION.values())),
    "a list of sets, and labels": (tuple(TRUTH.values()), ["c"] * 3),
    "arrays of sets": (np.array(list(TRUTH.values())), np.array(list(PREDICTION.values()))),
    "Clusterings": (
        fb.Clustering.from_clusters({"a": [1, 2], "b": [2, 3]}),
        fb.Clustering.from_clusters({"c": [1, 2, 3]}),
    ),
    "a Clustering and a dict": (fb.Clustering.from_clusters([[1, 2], [2, 3]]), PREDICTION),
    "tables": (
        pa.table({"item": [1, 2, 2, 3], "cluster": list("aabb")}),
        pa.table({"item": [1, 2, 3], "cluster": list("ccc")}),
    ),
}
# Precision of the items: 2/3, 1, 2/3 (1 and 3 share no true cluster); recall: 1, 5/6, 1 (item 2 shares one
# cluster of two with itself). ELM without the item itself: 1/2, 1, 1/2 and 1, 1, 1. For CICE each hit counts by
# the Jaccard index of c and a, or of c and b: 2/3.
EXPECTED = {
    "extended_bcubed_precision": 7 / 9,
    "extended_bcubed_recall": 17 / 18,
    "extended_bcubed_f1": 238 / 279,
    "extended_bcubed_mean_f1": (4 / 5 + 10 / 11 + 4 / 5) / 3,
    "extended_bcubed_precision_recall_fscore": (7 / 9, 17 / 18, 238 / 279),
    "extended_elm_precision": 2 / 3,
    "extended_elm_recall": 1.0,
    "extended_elm_f1": 4 / 5,
    "extended_elm_mean_f1": (2 / 3 + 1 + 2 / 3) / 3,
    "extended_elm_precision_recall_fscore": (2 / 3, 1.0, 4 / 5),
    "cice_bcubed_precision": 14 / 27,
    "cice_bcubed_recall": 17 / 27,
    "cice_bcubed_f1": 476 / 837,
    "cice_bcubed_mean_f1": (4 / 5 + 10 / 11 + 4 / 5) * 2 / 9,
    "cice_bcubed_precision_recall_fscore": (14 / 27, 17 / 27, 476 / 837),
    # all pairs share one predicted cluster, of which two share a true one: O = E = 2/3
    "omega": 0.0,
    # the predicted cluster holds all items: nothing is told, and it has no entropy, which counts as nothing told
    "onmi_lfk": 0.0,
    "onmi_max": 0.0,
    "onmi_mean": 0.0,
    "exact_match": (0.0, 0.0, 0.0),
}


@pytest.mark.cases(12)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", EXPECTED)
def test_every_form_of_overlapping_clusterings(name, form):
    assert getattr(fb.metrics, name)(*FORMS[form]) == pytest.approx(EXPECTED[name], abs=1e-15)


@pytest.mark.cases(4, 40)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", EXPECTED)
def test_cells_of_overlapping_clusterings(name, form):
    cells = fb.contingency(*FORMS[form], overlapping=True)
    assert (cells.n_items, cells.n_true, cells.n_pred) == (3, 2, 1)
    assert getattr(fb.metrics, name)(contingency=cells) == pytest.approx(EXPECTED[name], abs=1e-15)


@pytest.mark.parametrize("form", ["dicts of sets", "lists of sets", "a list of sets, and labels"])
def test_weights_of_overlapping_clusterings(form):
    """Weights 1, 2, 3: precision 3/6, 1, 5/6; recall 1, (1 + 2 * 1/2 + 3) / 6, 1."""
    weight = {1: 1.0, 2: 2.0, 3: 3.0} if form == "dicts of sets" else [1.0, 2.0, 3.0]
    precision = fb.metrics.extended_bcubed_precision(*FORMS[form], sample_weight=weight)
    recall = fb.metrics.extended_bcubed_recall(*FORMS[form], sample_weight=weight)
    assert precision == pytest.approx((1 * 3 / 6 + 2 * 1 + 3 * 5 / 6) / 6, abs=1e-15)
    assert recall == pytest.approx((1 * 1 + 2 * 5 / 6 + 3 * 1) / 6, abs=1e-15)
    ev = fb.evaluate(*FORMS[form], weight=weight, overlapping=True)
    assert (ev.precision, ev.recall) == (precision, recall)
    assert fb.contingency(*FORMS[form], weight=weight, overlapping=True).total_weight == 6


def test_partitions_have_scores_of_overlap_too():
    labels = [1, 1, 2], [1, 2, 2]
    assert fb.metrics.extended_bcubed_precision(*labels) == fb.metrics.bcubed_precision(*labels)
    assert fb.metrics.omega(*labels) == fb.metrics.adjusted_rand(*labels)
    # the hits of the items: 1 of 1 by 1/2; 1 of 2 by 1/2; 1 of 2 by 1/2
    assert fb.metrics.cice_bcubed_precision(*labels) == pytest.approx((1 / 2 + 1 / 4 + 1 / 4) / 3, abs=1e-15)


def test_other_functions_say_what_takes_overlapping_clusterings():
    for form in ("dicts of sets", "Clusterings", "lists of sets"):
        with pytest.raises(
            OverlapError, match=r"contingency=fastbcubed.contingency\(\.\.\., overlapping=True"
        ):
            fb.metrics.precision(*FORMS[form])
    cells = fb.contingency(TRUTH, PREDICTION, overlapping=True)
    assert fb.metrics.precision(contingency=cells) == pytest.approx(7 / 9, abs=1e-15)
    with pytest.raises(MetricError, match="where clusters may overlap"):
        fb.metrics.rand(contingency=cells)
    with pytest.raises(MetricError, match="overlapping=True to evaluate or contingency"):
        fb.metrics.cice_bcubed_f1(contingency=fb.contingency([1, 1], [1, 2]))


def test_lists_of_sets_that_do_not_match():
    with pytest.raises(AlignmentError, match="truth has 3 and the prediction 2"):
        fb.contingency(list(TRUTH.values()), ["c", "c"], overlapping=True)
    with pytest.raises(AlignmentError, match="the prediction is a dict"):
        fb.metrics.omega(list(TRUTH.values()), PREDICTION)
    with pytest.raises(WeightError, match=r"shape \(2,\) for 3 items"):
        fb.contingency(list(TRUTH.values()), ["c"] * 3, weight=[1, 2], overlapping=True)
    with pytest.raises(OptionError, match="labels_true and labels_pred"):
        fb.metrics.omega(TRUTH)
    for score in (fb.evaluate, fb.contingency):
        with pytest.raises(OptionError, match="weighting"):
            score(TRUTH, PREDICTION, overlapping=True, weighting="inner")


@pytest.mark.slow
def test_constraints_of_a_score_of_overlapping_clusterings():
    report = check_constraints("cice_bcubed_f1", checks=["completeness"], n_random=5)
    assert (report["completeness"].verdict, report.test_cases) == ("strict", "YYYY")
