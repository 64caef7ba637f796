"""Whether a score is better than chance: against a twin that permutes raw labels."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import permutations
from typing import Any

import naive_families
import numpy as np
import pytest
from effort import examples
from hypothesis import given
from hypothesis import strategies as st

import fastbcubed as fb
from fastbcubed.errors import MetricError, NotKeptError, OptionError, TooMuchWorkError
from fastbcubed.results import better_than_chance

pytestmark = pytest.mark.filterwarnings("ignore::fastbcubed.errors.EvaluationWarning")
NAMES = ("adjusted_rand", "pair_f1", "v_measure", "rand", "variation_of_information")
LESS = ("variation_of_information",)


def by_all_permutations(name: str, true: list[int], pred: list[int]) -> tuple[float, float, int]:
    """Return p-value, mean and number of labelings, all permutations of the labels counted once each."""

    def score(labels: tuple[int, ...]) -> float:
        sides = (dict(enumerate(true)), dict(enumerate(labels)))
        return float(naive_families.score(name, *sides, dict.fromkeys(sides[0], Fraction(1))))

    every = [score(labels) for labels in sorted(set(permutations(pred)))]
    own = score(tuple(pred))
    good = sum(s <= own + 1e-9 if name in LESS else s >= own - 1e-9 for s in every)
    return good / len(every), math.fsum(every) / len(every), len(every)


@examples(30)
@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=2, max_size=6), st.sampled_from(NAMES)
)
def test_few_labelings_are_all_looked_at(items: list[tuple[int, int]], name: str) -> None:
    true, pred = (list(side) for side in zip(*items, strict=True))
    p_value, expected, n = by_all_permutations(name, true, pred)
    found = fb.evaluate(true, pred).test(name)
    assert found.exact and found.seed is None and found.draws == n
    assert found.p_value == pytest.approx(p_value, rel=1e-12)
    assert found.expected == pytest.approx(expected, rel=1e-9, abs=1e-9)


def sample(n: int, noise: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    true = rng.integers(0, n // 4, n)
    return true, np.where(rng.random(n) < noise, rng.integers(0, n // 4, n), true)


@pytest.mark.weekly
def test_random_labelings_are_shuffled_labels() -> None:
    """Mean and deviation are those of as many shuffles by the twin's own generator, within their errors."""
    true, pred = sample(48, 0.5)
    found = fb.evaluate(true, pred).test("pair_f1", draws=400)
    rng, scores = np.random.default_rng(99), []
    for _ in range(400):
        sides = dict(enumerate(true.tolist())), dict(enumerate(rng.permutation(pred).tolist()))
        scores.append(float(naive_families.score("pair_f1", *sides, dict.fromkeys(sides[0], Fraction(1)))))
    assert not found.exact and found.draws == 400 and found.seed == 0
    assert found.expected == pytest.approx(np.mean(scores), abs=5 * np.std(scores) / 20)
    assert found.deviation == pytest.approx(np.std(scores), rel=0.25)
    assert found.p_value == 1 / 401 and found.as_good == 0


@pytest.mark.slow
def test_p_values_of_chance_are_uniform() -> None:
    """Of unrelated labels, p-values are below 0.2 in a fifth: 60 tests, of which 4 to 22 are with probability 0.999."""
    values = [
        fb.evaluate(*sample(60, 1.0, seed)).test("adjusted_rand", draws=49).p_value for seed in range(60)
    ]
    assert 4 <= sum(value <= 0.2 for value in values) <= 22


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_labels_order_and_engine_do_not_count(engine: Any) -> None:
    true, pred = sample(60, 0.5)
    expected = fb.evaluate(true, pred).test("adjusted_rand", draws=60, seed=3)
    assert (expected.as_good, expected.p_value) == (0, 1 / 61)  # the prediction itself is one more labeling
    order = np.random.default_rng(1).permutation(true.size)
    sides = [{f"i{k}": f"{name}{side[k]}" for k in order} for name, side in (("t", true), ("p", pred))]
    found = fb.evaluate(*sides, engine=engine, threads=2).test("ari", draws=60, seed=3)
    for name, value in expected.to_dict().items():
        assert getattr(found, name) == (pytest.approx(value, rel=1e-9) if isinstance(value, float) else value)
    assert found != fb.evaluate(*sides).test("ari", draws=60, seed=4)


@pytest.mark.slow
def test_scores_of_any_kind_and_their_text() -> None:
    ev = fb.evaluate(*sample(40, 0.3))
    for name in ("f1", "muc_f1", "accuracy", "over_merge_rate", "ami", "ceaf_e_f1", "purity"):
        found = ev.test(name, draws=19)
        assert 0 < found.p_value <= 1 and found.statistic == pytest.approx(ev.metric(name))
        assert f"{found.score} is " in str(
            found
        ) and "random labelings with clusters of these sizes (seed 0)" in str(found)
    assert str(fb.evaluate([0, 0, 1], [0, 0, 1]).test("rand")).endswith(
        "1 of all 3 labelings with clusters of these sizes is at least as good."
    )


def test_what_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    true, pred = sample(40, 0.3)
    ev = fb.evaluate(true, pred)
    with pytest.raises(MetricError, match="expected_mutual_info has no direction"):
        ev.test("expected_mutual_info")
    with pytest.raises(OptionError, match="draws must be a number of labelings, 1 or more, not 0"):
        ev.test("rand", draws=0)
    with pytest.raises(OptionError, match="items have weights"):
        fb.evaluate(true, pred, weight=np.arange(1.0, 41.0)).test("f1")
    with pytest.raises(OptionError, match="clusters overlap"):
        fb.evaluate({1: {1}, 2: {1, 2}}, {1: {1}, 2: {1}}, overlapping=True).test("omega")
    outside = fb.evaluate({1: 1, 2: 1}, {1: 1, 2: 1, 3: 1}, unmatched="outside")
    with pytest.raises(OptionError, match="the prediction has items that the truth lacks"):
        outside.test("f1")
    lacking = fb.evaluate({1: 1, 2: 1, 3: 2, 4: 2}, {1: 1, 2: 1, 3: 2})
    with pytest.raises(MetricError, match="counts items missing from one side, which cannot be"):
        lacking.test("muc_recall")
    monkeypatch.setattr(better_than_chance, "MOST", 1000)
    with pytest.raises(TooMuchWorkError, match=r"pass draws=25 or fewer"):
        ev.test("rand")
    ev.save(tmp_path / "scores", keep="scores")
    with pytest.raises(NotKeptError, match="test needs the cluster sizes, which were not kept"):
        fb.load(tmp_path / "scores").test("rand")
