"""Quantiles of Student's t against SciPy, and intervals that stay in the range of their score."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

import fastbcubed as fb
from fastbcubed.errors import OptionError
from fastbcubed.results.intervals import MANY, check_level, degrees_of_freedom, interval, of_slice, t_quantile

LEVELS = [0.5, 0.8, 0.9, 0.95, 0.99, 0.999]


@pytest.mark.cases(60, 99)
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    "df", [*range(1, 41), 1.5, 2.3, 17.5, 99, 199.9, 100, MANY - 1, MANY, MANY + 1, 1000, 10**6, 10**9]
)
def test_quantiles_of_t(df, level):
    assert t_quantile(level, df) == pytest.approx(stats.t.ppf((1 + level) / 2, df), rel=1e-9)


@given(st.floats(0.001, 0.999), st.floats(1e-6, 0.5), st.integers(2, 500), st.sampled_from(LEVELS))
def test_rates_are_symmetric_in_log_odds(score, error, n_units, level):
    found = interval(score, error, df=n_units - 1, level=level, low=0.0, high=1.0)
    reach = stats.t.ppf((1 + level) / 2, n_units - 1) * error / (score * (1 - score))
    expected = special.expit(special.logit(score) - reach), special.expit(special.logit(score) + reach)
    assert found == pytest.approx(expected, rel=1e-7, abs=1e-9)
    assert 0 <= found.low < score < found.high <= 1


def test_a_slice_has_a_degree_of_freedom_less_than_units():
    reach = stats.t.ppf(0.975, 4) * 0.1
    assert of_slice(0.4, 0.1, 5) == pytest.approx((0.4 - reach, 0.4 + reach), rel=1e-9)
    assert of_slice(0.4, 0.1, 1) is None


def test_degrees_of_freedom_are_between_one_and_one_by_unit_but_one():
    """Of influences of one size it is about the number of units; of one that carries all, 2, and less if divided."""
    assert degrees_of_freedom(100.0, 100.0, 100) == 99
    assert (
        degrees_of_freedom(1.0, 1.0, 10**9) == pytest.approx(2.0) and degrees_of_freedom(0.0, 0.0, 20) == 19
    )
    assert degrees_of_freedom(1.0, 1.0, 10**9, less=3.0) == 1
    of_eight = degrees_of_freedom(8.0, 8.0, 1000, less=8.0, fewest=1.5)
    assert of_eight == pytest.approx(128 / 7.936 / 2, rel=1e-12)
    assert degrees_of_freedom(1.0, 1.0, 10**9, less=8.0, fewest=1.5) == 1.5
    assert degrees_of_freedom(1.0, 0.5, 2, less=8.0, fewest=1.5) == 1
    rng = np.random.default_rng(0)
    squares = rng.normal(size=(2000, 60)) ** 2
    found = degrees_of_freedom(squares.sum(axis=1), (squares**2).sum(axis=1), 60)
    assert 38 < np.median(found) <= 59


@given(
    st.floats(0.001, 0.999),
    st.floats(1e-6, 0.3),
    st.floats(1, 500),
    st.sampled_from(LEVELS),
    st.floats(1, 1e6),
)
def test_no_cap_makes_an_interval_narrower_than_its_error(score, error, df, level, effective):
    """On the scale of log odds each end is at least the normal quantile times the error away, and at most that of t."""
    found = interval(score, error, df=df, level=level, low=0.0, high=1.0, effective=effective)
    slope, middle = 1 / (score * (1 - score)), special.logit(score)
    least, most = stats.norm.ppf((1 + level) / 2), stats.t.ppf((1 + level) / 2, df)
    for sign, end in ((-1, found.low), (1, found.high)):
        assert sign * end >= sign * special.expit(middle + sign * least * error * slope) - 1e-9
        assert sign * end <= sign * special.expit(middle + sign * most * error * slope) + 1e-9


@given(
    st.floats(0.001, 0.999),
    st.floats(1e-6, 0.3),
    st.floats(1, 500),
    st.sampled_from(LEVELS),
    st.floats(0, 1.5),
)
def test_each_end_allows_for_a_share_of_its_way(score, error, df, level, not_drawn):
    """On the scale of log odds each end is the quantile of t times the error away; a second error adds its square."""
    found = interval(score, error, df=df, level=level, low=0.0, high=1.0, not_drawn=not_drawn)
    reach, middle = stats.t.ppf((1 + level) / 2, df) * error / (score * (1 - score)), special.logit(score)
    low, high = special.expit(middle - reach), special.expit(middle + reach)
    more = stats.norm.ppf((1 + level) / 2) * min(not_drawn, 1)
    down, up = math.sqrt((score - low) ** 2 + (more * score) ** 2), high - score
    ends = max(score - down, 0.0), min(score + math.sqrt(up**2 + (more * (1 - score)) ** 2), 1.0)
    assert found == pytest.approx(ends, rel=1e-7, abs=1e-9)
    assert found.low <= low + 1e-9 and found.high >= high - 1e-9


def test_a_score_without_an_error_allows_for_others_only_if_it_shall():
    how = {"df": 100, "level": 0.95, "low": 0.0, "high": 1.0, "not_drawn": 0.1}
    assert interval(1.0, 0.0, **how) == interval(1.0, 0.0, **{**how, "not_drawn": 0.0})
    reach = math.sqrt((1 - 0.025 ** (1 / 100)) ** 2 + 0.1959964**2)
    assert interval(1.0, 0.0, always=True, **how).low == pytest.approx(1 - reach, rel=1e-7)
    assert interval(0.5, 0.0, **how) == (0.5, 0.5)


def test_an_amount_is_widened_down_alone_and_a_correlation_by_no_more_than_one():
    """Of 0.9, which is more than 1 above -1, the lower end allows for a fifth, the upper one for a fifth of 0.1."""
    how = {"df": 9, "level": 0.95}
    plain, found = (interval(0.9, 0.01, low=-1.0, high=1.0, not_drawn=k, **how) for k in (0.0, 0.2))
    down, up = math.hypot(0.9 - plain.low, 0.3919928), math.hypot(plain.high - 0.9, 0.0391993)
    assert found == pytest.approx((0.9 - down, 0.9 + up), rel=1e-6)
    plain, found = (interval(2.0, 0.1, low=0.0, high=math.inf, not_drawn=k, **how) for k in (0.0, 0.2))
    down = math.sqrt((2 - plain.low) ** 2 + 0.3919928**2)
    assert found == pytest.approx((2 - down, plain.high), rel=1e-6)


def test_shares_of_what_the_largest_component_could_change():
    """Truth aa|bbbb|c, found aa|bb|bb|c: components of 2, 4 and 1 items, 1, 6 and 0 true pairs; 1, 2 and 0 are found.

    One more of 4 items beside 7 has 4/11 of them. Of linked pairs the largest component has 2 of 3, and one more 2 of
    5; of true pairs 6 of 7, and 6 of 13; of both 8 of 10, and 8 of 18. Each component has one true cluster, and one
    more 1 of 4. It is 0.36 of each, and 0.3 for pairs. 2 / F is 1 / precision + 1 / recall = 1 + 7/5, so that
    7/12 of F1 depend on recall.
    """
    true, pred = list("aabbbbc"), list("ppqqrrs")
    names = [
        "recall",
        "f1",
        "pair_precision",
        "pair_recall",
        "pair_f1",
        "bcubed_recall_by_true_cluster",
        "v_measure",
    ]
    found = fb.evaluate(true, pred, metrics=names).standard_errors.by_component.not_drawn
    shares = {"recall": 0.36 * 4 / 11, "f1": 0.36 * 4 / 11 * 7 / 12, "v_measure": 0.0}
    shares |= {"pair_precision": 0.3 * 2 / 5, "pair_recall": 0.3 * 6 / 13, "pair_f1": 0.3 * 8 / 18}
    shares |= {"bcubed_recall_by_true_cluster": 0.36 / 4}
    assert found == pytest.approx(shares, rel=1e-12)


def test_large_clusters_that_are_wrong_widen_an_interval():
    """20 merges of 20 pairs among 3,980 pairs found exactly: 800 of 8,760 items, with precision 1/20."""
    true = np.repeat(np.arange(4380), 2)
    pred = np.where(true < 400, true // 20, true)
    ev = fb.evaluate(true, pred, metrics=["precision", "f1"])
    n, weight = 4000, 8760.0
    score = (7960 + 800 / 20) / weight
    squares = 20 * (40 * (1 / 20 - score)) ** 2 + 3980 * (2 * (1 - score)) ** 2
    error = math.sqrt(n / (n - 1) * squares) / weight
    assert ev.overall.precision == pytest.approx(score, rel=1e-12)
    assert ev.errors["precision"] == pytest.approx(error, rel=1e-9)
    found, reach = ev.interval("precision"), 1.9599 * error / (score * (1 - score))
    assert found.low <= special.expit(special.logit(score) - reach)
    assert found.high >= special.expit(special.logit(score) + reach)


def test_losses_mirror_rates():
    rate, loss = (interval(s, 0.02, df=29, level=0.95, low=0.0, high=1.0) for s in (0.97, 0.03))
    assert loss == pytest.approx((1 - rate.high, 1 - rate.low), rel=1e-12)


def test_the_range_of_the_score_says_the_scale():
    reach = stats.t.ppf(0.975, 9) * 0.1
    correlation = interval(0.0, 0.1, df=9, level=0.95, low=-1.0, high=1.0)
    assert correlation == pytest.approx((-math.tanh(reach), math.tanh(reach)), rel=1e-9)
    amount = interval(2.0, 0.1, df=9, level=0.95, low=0.0, high=math.inf)
    assert amount == pytest.approx((2 * math.exp(-reach / 2), 2 * math.exp(reach / 2)), rel=1e-9)
    anything = interval(-2.0, 0.1, df=9, level=0.95, low=-math.inf, high=math.inf)
    assert anything == pytest.approx((-2 - reach, -2 + reach), rel=1e-9)


def test_a_score_without_a_lower_end_stays_below_its_upper_one():
    """As the adjusted Rand index, from -1 to 1; below -1 it is on no other scale."""
    reach = stats.t.ppf(0.975, 9) * 0.1
    corrected = {end: interval(0.9, 0.1, df=9, level=0.95, low=end, high=1.0) for end in (-1.0, -math.inf)}
    assert corrected[-1.0] == corrected[-math.inf] and corrected[-math.inf].high < 1
    below = interval(-1.5, 0.1, df=9, level=0.95, low=-math.inf, high=1.0)
    assert below == pytest.approx((-1.5 - reach, -1.5 + reach), rel=1e-9)
    assert interval(-1.5, 3.0, df=1, level=0.95, low=-math.inf, high=1.0).high == 1


def test_ends_and_gaps():
    how = {"level": 0.95, "low": 0.0, "high": 1.0}
    others = 1 - 0.025 ** (1 / 4)
    assert interval(1.0, 0.0, df=4, **how) == pytest.approx((1 - others, 1.0), rel=1e-12)
    assert interval(0.0, 0.0, df=4, **how) == pytest.approx((0.0, others), rel=1e-12)
    assert interval(1 - 1e-15, 1e-17, df=4, **how).low == pytest.approx(1 - others, rel=1e-9)
    assert interval(0.5, 0.0, df=4, **how) == (0.5, 0.5)
    for low in (-1.0, -math.inf):  # what was not seen is at worst no better than chance
        end = interval(1.0, 0.0, df=4, level=0.95, low=low, high=1.0)
        assert end == pytest.approx((1 - others, 1.0), rel=1e-12)
    assert all(map(math.isnan, interval(0.0, 0.0, df=4, level=0.95, low=0.0, high=math.inf)))
    assert all(map(math.isnan, interval(0.5, math.nan, df=1, **how)))
    assert interval(0.5, 0.4, df=1, **how) == pytest.approx((0.0, 1.0), abs=1e-8)
    assert interval(1e-300, 1e-3, df=1, **how) == (0.0, 1.0)


@pytest.mark.parametrize("level", [0, 1, 95, -0.5, True, "0.95", None, math.nan])
def test_levels_that_are_none(level):
    with pytest.raises(OptionError, match="level must be a confidence between 0 and 1"):
        check_level(level)
