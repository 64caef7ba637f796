"""Scores answer to every name that they go by."""

import pytest

import fastbcubed as fb
from fastbcubed.errors import MetricError
from fastbcubed.results.figures import Scores

TRUTH, PREDICTION = list("aabbb"), [1, 1, 1, 2, 2]


@pytest.mark.parametrize(
    ("computed", "asked"),
    [("f1", "bcubed_f1"), ("f1", "b3_f1"), ("bcubed_f1", "f1"), ("adjusted_rand", "ari"),
     ("precision", "extended_bcubed_precision"),
     ("pair_f1", "pairwise_f1"), ("merge_distance", "basic_merge_distance"), ("nmi", "normalized_mutual_info_score")],
)  # fmt: skip
def test_a_computed_score_answers_to_its_other_names(computed, asked) -> None:
    ev = fb.evaluate(TRUTH, PREDICTION, metrics=[computed])
    expected = ev.overall[computed]
    assert list(ev.overall) == [computed]
    assert (
        getattr(ev, asked) == getattr(ev.overall, asked) == ev.overall[asked] == ev.metric(asked) == expected
    )


def test_a_score_asked_for_by_another_name_is_listed_under_its_own() -> None:
    ev = fb.evaluate(TRUTH, PREDICTION, metrics=["ari", "b3"])
    assert list(ev.overall)[:2] == [
        "adjusted_rand",
        "bcubed_precision",
    ]


def test_a_score_named_twice_is_there_once() -> None:
    assert list(fb.evaluate(TRUTH, PREDICTION, metrics=["ari", "adjusted_rand"]).overall) == ["adjusted_rand"]


def test_a_score_that_was_not_computed_has_no_name_either() -> None:
    ev = fb.evaluate(TRUTH, PREDICTION)
    with pytest.raises(AttributeError, match="ari"):
        ev.ari  # noqa: B018
    with pytest.raises(MetricError, match=r"'f1' was not computed; there is none\. Name it in metrics="):
        Scores({})["f1"]
    with pytest.raises(MetricError, match="'ari' was not computed"):
        ev.overall["ari"]
    assert ev.metric("ari") == ev.metric("adjusted_rand")
    assert (ev.overall.get("ari"), ev.overall.get("ari", 0.5)) == (None, 0.5)
    assert ev.overall.get("bcubed_f1", 0.5) == ev.f1


def test_the_index_by_name_is_that_of_scikit_learn() -> None:
    sklearn = pytest.importorskip("sklearn.metrics")
    ev = fb.evaluate(TRUTH, PREDICTION, metrics=["adjusted_rand_score", "v_measure_score"])
    assert ev.adjusted_rand_score == pytest.approx(sklearn.adjusted_rand_score(TRUTH, PREDICTION), abs=1e-12)
    assert ev.v_measure_score == pytest.approx(sklearn.v_measure_score(TRUTH, PREDICTION), abs=1e-12)
