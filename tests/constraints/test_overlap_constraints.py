"""Scores of overlapping clusterings against the formal constraints and the outputs that deceive others."""

import pytest

import fastbcubed as fb
from fastbcubed.constraints import PERFECT_WITHOUT_MATCH, cheat, check_constraints

CONSTRAINTS = ("homogeneity", "completeness", "rag_bag", "size_versus_quantity")


def cice(match):
    def score(labels_true, labels_pred):
        return fb.cice_bcubed(labels_true, labels_pred, match=match).cice_bcubed_f1

    return score


def extended(labels_true, labels_pred):
    return fb.extended_bcubed(labels_true, labels_pred).f1


@pytest.mark.parametrize("score", [extended, cice("global"), cice("pair")])
def test_the_four_test_cases(score):  # METRICS 13.2
    assert check_constraints(score, checks=[]).test_cases == "YYYY"


@pytest.mark.slow
@pytest.mark.parametrize("score", [extended, cice("pair")])
def test_constraints_that_are_met(score):  # METRICS 4.2: with match="pair" all four are kept
    report = check_constraints(score, checks=CONSTRAINTS, n_random=5)
    assert {name: report[name].verdict for name in CONSTRAINTS} == dict.fromkeys(CONSTRAINTS, "strict")


def test_the_cheat_gets_recall_and_half_of_purity():
    """METRICS 13.3 on classes of 4, 2 and 1: P = (4 * 3.5 + 2 * 1.5 + 1 * 0.5) / 49; purity (4 + 7) / 14."""
    truth = dict(zip("abcdefg", "1111223", strict=True))
    names = ["precision", "recall", "purity", "inverse_purity"]
    scores = fb.evaluate(truth, cheat(truth), overlapping=True, metrics=names).overall
    assert (scores["recall"], scores["inverse_purity"]) == (1, 1)
    assert scores["precision"] == pytest.approx(17.5 / 49, abs=1e-15)
    assert scores["purity"] == pytest.approx(11 / 14, abs=1e-15)


def test_only_exact_matches_tell_of_a_perfect_score_without_match():
    """METRICS 13.4: all are 1 but for the exact matches, 7 of 10 predicted and of 11 true clusters."""
    truth, prediction = map(fb.Clustering.from_clusters, PERFECT_WITHOUT_MATCH)
    names = ["extended_bcubed_f1", "extended_bcubed_mean_f1", "purity", "inverse_purity", "class_f1"]
    ev = fb.evaluate(
        truth, prediction, overlapping=True, metrics=[*names, "cluster_precision", "cluster_recall"]
    )
    assert [ev.overall[name] for name in names] == [1.0] * len(names)
    for match in ("global", "pair"):
        assert fb.cice_bcubed(truth, prediction, match=match).cice_bcubed_f1 == 1
    assert (ev.overall["cluster_precision"], ev.overall["cluster_recall"]) == (7 / 10, 7 / 11)
