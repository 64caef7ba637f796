"""The classical scores of the library, by name, against printed values and values worked by hand."""

import warnings

import pytest
from worked import (
    COREFERENCE_CASES,
    DEGENERATE,
    E17,
    E17_SCORES,
    ENTROPY,
    EXAMPLES,
    OF_EQUALS,
    W3,
    W3_COUNTS,
    W3_SCORES,
    WEIGHTS,
    from_lists,
)

import fastbcubed as fb
from fastbcubed.errors import EvaluationWarning, MetricError
from fastbcubed.metrics.registry import METRICS

CASES = {
    "seventeen items": (E17, E17_SCORES),
    "three items": (W3, W3_COUNTS),
    "equal clusterings": (from_lists(*[["abc", "de", "f"]] * 2), OF_EQUALS),
    **EXAMPLES,
    **DEGENERATE,
    **COREFERENCE_CASES,
}
EVERY_VALUE = [(case, name) for case, (_, expected) in CASES.items() for name in expected]


def score(name, truth, prediction, weight=None):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EvaluationWarning)  # of items that one side lacks
        return fb.evaluate(truth, prediction, weight=weight, metrics=[name]).overall[name]


def check(name, got, expected):
    """A float was printed to seven digits at most; what is rational is met to the last bits."""
    room = 6e-7 if isinstance(expected, float) else 1e-12
    assert got == pytest.approx(float(expected), rel=0, abs=room), name


@pytest.mark.parametrize(("case", "name"), EVERY_VALUE)
def test_value(case, name):
    sides, expected = CASES[case]
    check(name, score(name, *sides), expected[name])


@pytest.mark.parametrize("name", W3_SCORES)
def test_value_with_weights(name):
    check(name, score(name, *W3, WEIGHTS), W3_SCORES[name])


@pytest.mark.parametrize("name", [name for name in ENTROPY if METRICS[name].unweighted_only])
def test_scores_of_counts_refuse_weights(name):
    with pytest.raises(MetricError, match=name):
        score(name, *W3, WEIGHTS)
