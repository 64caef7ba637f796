"""Standard errors of differences of scores that are no means over items: against the twin, and by either engine."""

from __future__ import annotations

import math

import naive_resampling as twin
import numpy as np
import pytest
from scipy.stats import t as student

import fastbcubed as fb

pytestmark = pytest.mark.filterwarnings("ignore::fastbcubed.errors.EvaluationWarning")


def three_labelings(seed: int, n: int = 40) -> list[np.ndarray]:
    """Return a truth and two runs, of which each splits and merges some by itself."""
    rng = np.random.default_rng(seed)
    true = np.repeat(np.arange(3 * n), rng.geometric(0.4, 3 * n))
    runs = []
    for _ in range(2):
        merged = np.where(rng.random(3 * n) < 0.3, np.arange(3 * n) // 3 * 3, np.arange(3 * n))
        runs.append(2 * merged[true] + (rng.random(true.size) < 0.1))
    return [true, *runs]


def expected_errors(true: np.ndarray, runs: list[np.ndarray], step: float = 1e-4) -> dict[str, float]:
    """Return the root of U / (U - 1) times the squares of what a component of both runs moves in one less the other."""
    both = list(zip(*(run.tolist() for run in runs), strict=True))
    of_true = [("t", t) for t in true.tolist() for _ in runs]
    whole = twin.components(of_true, [(r, p) for own in both for r, p in enumerate(own)])
    component = {t: k for k, own in enumerate(whole) for (_, t), _ in own}
    n, moved = len(whole), []
    for run in runs:
        every = [twin.Component() for _ in whole]
        for t, p in zip(true.tolist(), run.tolist(), strict=True):
            every[component[t]][t, p] = every[component[t]].get((t, p), 0) + 1
        figures = [twin.figures(own) for own in every]
        up, down = (
            [twin.scores([(1 + (j == k) * d, own) for j, own in enumerate(figures)]) for k in range(n)]
            for d in (step, -step)
        )
        pairs = list(zip(up, down, strict=True))
        moved.append({name: [(a[name] - b[name]) / (2 * step) for a, b in pairs] for name in up[0]})
    found = {}
    for name, before in moved[0].items():
        d = np.array(moved[1][name]) - before
        found[name] = math.sqrt(float(np.sum((d - d.mean()) ** 2)) * n / (n - 1))
    return found


@pytest.mark.cases(0)
@pytest.mark.parametrize("seed", [1, 2])
def test_errors_of_deltas_are_those_of_the_twin(seed: int) -> None:
    true, *runs = three_labelings(seed)
    expected = expected_errors(true, runs)
    cmp = fb.compare(true, dict(zip(("old", "new"), runs, strict=True)), metrics=list(expected))
    found = {row["score"]: row["se"] for row in cmp.deltas().to_pylist()}
    for name, error in expected.items():
        assert found[name] == pytest.approx(error, rel=1e-4), name


@pytest.mark.slow
def test_either_engine_and_the_bootstrap_have_about_the_same() -> None:
    true, *runs = three_labelings(3, n=150)
    sides = [{f"i{k}": int(x) for k, x in enumerate(own)} for own in (true, *runs)]
    names = ["pair_f1", "adjusted_rand", "v_measure", "purity_f1", "muc_f1", "basic_merge_distance", "f1"]
    how = {"metrics": names, "threads": 1}
    both = {"old": sides[1], "new": sides[2]}
    memory, disk = (
        fb.compare(sides[0], both, engine=engine, **how).deltas() for engine in ("memory", "disk")
    )
    assert memory["se"].to_pylist() == pytest.approx(disk["se"].to_pylist(), rel=1e-9)
    drawn = fb.compare(sides[0], both, bootstrap=1000, **how)
    spread = [float(np.std(drawn._differences.replicates["new", name])) for name in names]
    assert spread == pytest.approx(memory["se"].to_pylist(), rel=0.15)


@pytest.mark.slow
def test_what_both_runs_have_alike_adds_nothing() -> None:
    true, old, _ = three_labelings(4)
    cmp = fb.compare(
        true, {"old": old, "same": old + 1}, metrics=["pairs", "entropy", "coreference", "matching"]
    )
    assert set(cmp.deltas()["se"].to_pylist()) == {0.0}
    loaded = cmp.deltas(adjust="none")
    assert not any(loaded["holds"].to_pylist())


@pytest.mark.filterwarnings("default:few of")
def test_a_score_that_rests_on_few_components_has_a_wide_interval_and_says_so() -> None:
    """Of 241 components one has 435 of 675 pairs, as 2.4 equal ones; each run splits 50 others, which alone differ."""
    true = np.repeat(np.arange(241), [30] + [2] * 240)
    runs = {"old": true + 0, "new": true + 0}
    for k, run in enumerate(runs.values()):
        run[30 + 2 * np.arange(50 * k, 50 * k + 50)] += 1000
    cmp = fb.compare(true, runs, metrics=["pair_recall", "cluster_f1"])
    told = r"^few of 241 units \(component\) account for 'pair_recall' or the error"
    with pytest.warns(fb.EvaluationWarning, match=told):
        rows = {row["score"]: row for row in cmp.deltas().to_pylist()}
    reach = {name: (row["high"] - row["delta"]) / row["se"] for name, row in rows.items()}
    assert reach["cluster_f1"] == pytest.approx(1.97, abs=0.02)
    assert reach["pair_recall"] > 6.0167  # Student's t, 1.5 degrees of freedom


def test_no_interval_of_a_difference_leaves_what_two_scores_can_differ_by() -> None:
    """One component of 375 pairs makes all of the difference, so that Student's t has one degree of freedom."""
    true = np.repeat(np.arange(1500), 2)
    bad = true.copy()
    bad[:750] = 0
    deltas = fb.compare(true, {"bad": bad, "good": true.copy()}, metrics=["f1", "precision", "mcc"]).deltas()
    rows = {row["score"]: row for row in deltas.to_pylist()}
    assert rows["f1"]["se"] > 0.1
    for name in ("f1", "precision"):
        row = rows[name]
        assert student.ppf(0.975, 1) * row["se"] > 1 + row["delta"]
        assert (row["low"], row["high"]) == (-1.0, 1.0)
    assert rows["mcc"]["high"] <= 2.0


def test_intervals_of_differences_allow_for_another_large_component() -> None:
    """Of 1,000 pairs, one run merges 40 times 5: a fifth of the items has precision 1/5, so that the mean is 21/25.

    Influences are 10 (4/5 - 4/25) for these 40 components and -2 * 4/25 for the other 800, which is 20 to -1. One more
    component of 10 items beside 2,000 could change 1/201. 2 / F1 is 25/21 + 1, so that 25/46 of it depend on precision.
    """
    true = np.repeat(np.arange(1000), 2)
    bad = np.where(true < 200, true // 5, true)
    deltas = fb.compare(true, {"bad": bad, "good": true.copy()}, metrics=["f1", "precision"]).deltas()
    rows = {row["score"]: row for row in deltas.to_pylist()}
    for name, share in (("precision", 1.0), ("f1", 25 / 46)):
        row = rows[name]
        few = (40 * 20**4 + 800) / (40 * 20**2 + 800) ** 2
        df = 2 / (few - 1 / 840) / (1 + few)
        reach = math.hypot(student.ppf(0.975, df) * row["se"], 1.959963985 * 0.36 * share / 201)
        assert row["high"] - row["delta"] == pytest.approx(reach, rel=1e-7)


def test_intervals_of_scores_of_pairs_are_said_to_be_too_narrow() -> None:
    true = np.repeat(np.arange(40), 2)
    runs = {"old": np.where(true < 8, true // 2, true), "new": np.where(true < 4, true // 2, true)}
    told = "Intervals of pair scores may be far too narrow"
    for metrics, said in ((["f1"], False), (["f1", "pair_f1"], True)):
        text = " ".join(repr(fb.compare(true, runs, metrics=metrics)).split())
        assert (told in text) == said
