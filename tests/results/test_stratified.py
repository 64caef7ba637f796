"""Intervals of sums of shares: Wilson's for one share, and the score test for several."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from effort import examples
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, stats

from fastbcubed.results.intervals import sum_of_shares

LEVELS = [0.5, 0.9, 0.95, 0.999]


def wilson(k, n, level):
    z = stats.norm.ppf((1 + level) / 2)
    centre, reach = k + z * z / 2, z * math.sqrt(k * (n - k) / n + z * z / 4)
    return (centre - reach) / (n + z * z), (centre + reach) / (n + z * z)


@given(st.integers(1, 500), st.data(), st.sampled_from(LEVELS), st.sampled_from([1.0, -1.0, 1e-9, -3e5]))
def test_one_share_has_the_interval_of_wilson(n, data, level, weight):
    k = data.draw(st.integers(0, n))
    found = sum_of_shares([weight], [k], [n], level)
    assert found == pytest.approx(
        sorted(weight * end for end in wilson(k, n, level)), rel=1e-9, abs=1e-12 * abs(weight)
    )


@st.composite
def samples(draw, most=4):
    n = draw(st.lists(st.integers(1, 12), min_size=2, max_size=most))
    k = [draw(st.integers(0, each)) for each in n]
    sizes = st.floats(0.05, 3) | st.floats(-3, -0.05)
    return draw(st.lists(sizes, min_size=len(n), max_size=len(n))), k, n


def fitted(w, k, n, value):
    """Return the shares that make what was seen most likely and whose weighted sum is this value."""

    def unlikely(p):
        p = np.clip(p, 1e-12, 1 - 1e-12)
        return -float(np.sum(k * np.log(p) + (n - k) * np.log(1 - p)))

    start = np.full(w.size, 0.5)
    found = optimize.minimize(
        unlikely, start, bounds=[(0, 1)] * w.size, constraints={"type": "eq", "fun": lambda p: w @ p - value},
        options={"ftol": 1e-14, "maxiter": 500},
    )  # fmt: skip
    assert abs(w @ found.x - value) < 1e-6
    return found.x


@given(samples(), st.sampled_from([0.8, 0.95]))
@examples(40)
def test_ends_are_where_the_score_test_rejects(sample, level):
    """At either end, what was seen is as far away as the fitted variance allows; by a general optimizer."""
    w, k, n = (np.array(each, float) for each in sample)
    found = sum_of_shares(w, k, n, level)
    seen, lost = float(w @ (k / n)), (n.sum() - 1) / max(n.sum() - n.size, 0.5)
    least, most = float(w[w < 0].sum()), float(w[w > 0].sum())
    assert least - 1e-9 <= found.low <= seen + 1e-9 and seen - 1e-9 <= found.high <= most + 1e-9
    for end, edge in ((found.low, least), (found.high, most)):
        if abs(end - edge) < 1e-6:
            continue
        p = fitted(w, k, n, end)
        variance = float(np.sum(w * w * p * (1 - p) / n)) * lost
        assert abs(end - seen) == pytest.approx(
            stats.norm.ppf((1 + level) / 2) * math.sqrt(variance), rel=2e-2
        )


@given(samples(), st.sampled_from(LEVELS), st.floats(0.01, 100))
def test_signs_and_scale(sample, level, scale):
    w, k, n = sample
    found = sum_of_shares(w, k, n, level)
    assert sum_of_shares([scale * each for each in w], k, n, level) == pytest.approx(
        [scale * end for end in found], rel=1e-6, abs=1e-9
    )
    turned = sum_of_shares([-each for each in w], k, n, level)
    assert (-turned.high, -turned.low) == pytest.approx(found, rel=1e-6, abs=1e-9)
    others = sum_of_shares(w, [b - a for a, b in zip(k, n, strict=True)], n, level)
    assert (sum(w) - others.high, sum(w) - others.low) == pytest.approx(found, rel=1e-6, abs=1e-6)


def test_equal_samples_are_almost_one_sample():
    """Nine samples of 11, one seen in five of them: about what 5 of 99 give."""
    found = sum_of_shares([1 / 9] * 9, [1] * 5 + [0] * 4, [11] * 9, 0.95)
    assert found == pytest.approx(wilson(5, 99, 0.95), rel=0.03)


def test_weights_over_many_orders_of_magnitude():
    wide = sum_of_shares([1e-12, 1.0, 1e12], [1, 3, 5], [2, 9, 20], 0.95)
    alone = [1e12 * end for end in wilson(5, 20, 0.95)]
    assert wide == pytest.approx(alone, rel=0.1)


def chance(n, p, k):
    return math.prod(stats.binom.pmf(*each) for each in zip(k, n, p, strict=True))


@pytest.mark.cases(0, 1)
@pytest.mark.parametrize(
    "w, n, p",
    [
        ([0.5, 0.5], [15, 15], [0.2, 0.6]),
        ([0.7, 0.3], [20, 8], [0.05, 0.5]),
        ([0.6, -0.4], [18, 12], [0.3, 0.3]),
        ([0.5, 0.3, 0.2], [10, 6, 4], [0.5, 0.1, 0.9]),
        ([0.4, 0.3, 0.3], [2, 2, 2], [0.4, 0.4, 0.4]),
    ],
)
def test_coverage_by_all_outcomes(w, n, p):
    """The chance that the 95 % interval holds the sum, added up over every outcome of the samples."""
    target, covered = float(np.dot(w, p)), 0.0
    for k in itertools.product(*(range(each + 1) for each in n)):
        low, high = sum_of_shares(w, k, n, 0.95)
        covered += chance(n, p, k) * (low <= target <= high)
    assert 0.92 <= covered <= 0.997, covered
