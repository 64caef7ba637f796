"""The bootstrap of deltas: each replicate is whole components drawn anew, the same ones for every run."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal

import naive_compare as twin
import numpy as np
import pyarrow as pa
import pytest
from asking_compare import CELLWISE, close, compared, deltas, number, on_disk
from effort import examples
from hypothesis import HealthCheck, assume, given
from hypothesis import strategies as st
from strategies_compare import comparisons

import fastbcubed as fb

pytestmark = pytest.mark.filterwarnings("ignore::fastbcubed.errors.EvaluationWarning")
SCORES = ["precision", "recall", "f1", "mean_f1", "jaccard_distance", "over_merge_rate", "under_merge_rate"]
#: Five in a million units are drawn more often.
MOST = 8


def ends(cmp):
    """Return the ends of the intervals by experiment and score."""
    return {key: (number(row["low"]), number(row["high"])) for key, row in deltas(cmp).items()}


# Replicates against drawing rows


class Replicates:
    """Deltas of a comparison for any number of copies of its components, from exact scores of its items."""

    def __init__(self, cmp, unit):
        self.cmp, self.unit = cmp, unit
        self.scores = {
            (name, score): {e: float(run.score(score.replace("mean_", "item_"), e)) for e in run.true}
            for name, run in cmp.runs.items()
            for score in SCORES
            if score != "f1"
        }

    def mean(self, name, score, copies):
        run = self.cmp.runs[name]
        weight = {e: float(run.weight[e]) * copies[self.unit[e]] for e in run.true}
        whole = math.fsum(weight.values())
        if not whole:
            return math.nan
        if score == "f1":
            p, r = (self.mean(name, part, copies) for part in ("precision", "recall"))
            return 2 * p * r / (p + r) if p and r else 0.0
        return math.fsum(w * self.scores[name, score][e] for e, w in weight.items()) / whole

    def fit(self, copies, found):
        """Tell whether these copies give all deltas that were found."""
        return all(
            self.mean(experiment, score, copies) - self.mean(self.cmp.baseline, score, copies) == close(delta)
            for (experiment, score), delta in found.items()
        )

    def copies(self, found):
        """Return copies that give all deltas that were found, the likeliest of them; None if there are none."""
        units = sorted(set(self.unit.values()))
        ways = itertools.product(range(MOST), repeat=len(units))
        for way in sorted(ways, key=lambda way: math.prod(map(math.factorial, way))):
            copies = dict(zip(units, way, strict=True))
            if any(way) and self.fit(copies, found):
                return copies
        return None


@pytest.mark.slow
@examples(100)
@given(comparisons(6, least_runs=2, most_runs=3), st.integers(0, 2**31))
def test_a_replicate_is_rows_of_whole_components_drawn_anew(case, seed):
    """The deltas of the first replicate: one drawing has to explain them.

    Of several experiments each is drawn by the components of its pair of runs, as all have over a tenth of the weight.
    """
    case = case._replace(options={**case.options, "beta": 1})  # others add scores
    cmp = compared(case, metrics=SCORES, bootstrap=120, seed=seed)
    expected = twin.compare(case.truth, case.runs, case.weight, **case.options)
    every = {key: number(drawn[0]) for key, drawn in cmp._differences.replicates.items()}
    for experiment in expected.experiments:
        unit = expected.components_for(experiment)
        if len(expected.units(unit)) < 2 or len(set(unit.values())) > 3:
            continue
        found = {key: delta for key, delta in every.items() if key[0] == experiment}
        if any(map(math.isnan, found.values())):
            continue  # nothing was drawn
        pair = twin.Compared(
            {name: expected.runs[name] for name in (expected.baseline, experiment)}, expected.baseline
        )
        copies = Replicates(pair, unit).copies(found)
        assert copies is not None, found
        drawn = pair.resampled(copies, unit)
        for (_, score), delta in found.items():
            assert delta == close(float(drawn.delta(experiment, score)))


# The same replicates


@pytest.mark.slow
@examples(25)
@given(comparisons(20, least_runs=2), st.data())
def test_order_of_rows_and_runs(case, data):
    baseline = data.draw(st.sampled_from(list(case.runs)))
    case = case._replace(options={**case.options, "baseline": baseline})

    def shuffled(rows):
        return {key: rows[key] for key in data.draw(st.permutations(list(rows)))}

    runs = shuffled({name: shuffled(run) for name, run in case.runs.items()})
    found = ends(compared(case._replace(truth=shuffled(case.truth), runs=runs), bootstrap=120))
    expected = ends(compared(case, bootstrap=120))
    assert set(found) == set(expected)
    assert all(found[key] == close(expected[key]) for key in expected)


@pytest.mark.parametrize("unmatched", ["singleton", "drop"])
def test_order_of_runs_where_one_has_more_true_clusters(unmatched):
    """A component draws the same though one run has only some of its true clusters."""
    truth = {item: item // 2 for item in range(40)}
    merged = {item: item // 4 if item % 8 < 4 else item for item in range(60)}
    runs = {"old": {item: item // 2 for item in truth if item % 4 < 2}, "new": merged}
    options = {"baseline": "old", "align": "each", "unmatched": unmatched, "bootstrap": 40}
    found, turned = (
        ends(fb.compare(truth, {name: runs[name] for name in names}, **options))
        for names in (("old", "new"), ("new", "old"))
    )
    assert all(turned[key] == close(found[key]) for key in found)
    low, high = found["new", "precision"]
    assert low < high


@examples(25)
@given(comparisons(20, least_runs=2))
def test_threads(case):
    one, four = (ends(compared(case, bootstrap=120, threads=n)) for n in (1, 4))
    assert str(one) == str(four)


@pytest.mark.slow
@examples(25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(case=comparisons(20, least_runs=2))
def test_engines(many_shards, case):
    said = str(case.options["unmatched"])
    assume("singleton" not in said and "outside" not in said)  # whose clusters have no label to draw them by
    expected = ends(compared(case, bootstrap=120, engine="memory", metrics=CELLWISE))
    found = ends(on_disk(case, bootstrap=120))
    assert all(found[key] == close(expected[key]) for key in expected)


@examples(25)
@given(comparisons(20, least_runs=2))
def test_seeds(case):
    first, again = (ends(compared(case, bootstrap=120, seed=7)) for _ in range(2))
    assert str(first) == str(again)


# What it comes to


def rows(n, seed):
    """Return labels of many small components: a truth, and two runs that each move some items next door."""
    rng = np.random.default_rng(seed)
    true = np.repeat(np.arange(n), rng.geometric(0.4, n))
    moved = [
        np.where(rng.random(true.size) < share, true // 4 * 4 + rng.integers(0, 4, true.size), true)
        for share in (0.15, 0.1)
    ]
    return true, dict(zip(("old", "new"), moved, strict=True))


def test_seeds_differ():
    true, runs = rows(100, seed=1)
    first, other = (ends(fb.compare(true, runs, bootstrap=50, seed=seed)) for seed in (1, 2))
    assert all(first[key] != other[key] for key in first)


@pytest.mark.cases(1, 99)
@pytest.mark.parametrize("level", [0.5, 0.95])
def test_percentiles_are_those_of_drawing_components_with_poisson_copies(level):
    """Beside NumPy's draws of the sums of each component; 2,000 replicates know a tail to 1 / sqrt(2000)."""
    true, runs = rows(160, seed=2)
    cmp = fb.compare(true, runs, metrics=["precision", "recall"], bootstrap=2000, level=level)
    items = np.arange(true.size)
    codes = [true, *runs.values()]
    block = true // 4  # components lie within, and whole blocks of them may be one
    unit = np.full(true.size, -1)
    connected = twin.connected(
        {
            int(e): {int(x) for each in codes for x in items[block == block[e]] if each[x] == each[e]}
            for e in items
        }
    )
    for e, u in connected.items():
        unit[e] = u
    sums = {
        name: {
            score: np.bincount(unit, cmp[name].items()[score].to_numpy()) for score in ("precision", "recall")
        }
        for name in runs
    }
    sizes = np.bincount(unit)
    copies = np.random.default_rng(3).poisson(1, (20_000, sizes.size))
    for score in ("precision", "recall"):
        drawn = copies @ (sums["new"][score] - sums["old"][score]) / (copies @ sizes)
        low, high = ends(cmp)["new", score]
        for end, tail in ((low, (1 - level) / 2), (high, (1 + level) / 2)):
            room = 4 * math.sqrt(tail * (1 - tail) / 2000)
            assert np.mean(drawn < end) <= tail + room and np.mean(drawn <= end) >= tail - room


@pytest.mark.slow
def test_it_agrees_with_linearised_errors_where_components_are_many():
    true, runs = rows(1500, seed=4)
    plain, drawn = (fb.compare(true, runs, bootstrap=n) for n in (0, 2000))
    for key, (low, high) in ends(drawn).items():
        row = deltas(plain)[key]
        width = (
            2 * 1.96 * row["se"]
        )  # intervals by Student's t move on by units that were not drawn; these do not
        assert high - low == pytest.approx(width, rel=0.1), key
        assert deltas(drawn)[key]["delta"] == row["delta"]


def test_equal_runs():
    true, runs = rows(50, seed=5)
    cmp = fb.compare(true, {"old": runs["old"], "same": runs["old"].copy(), "new": runs["new"]}, bootstrap=80)
    for (experiment, _), each in ends(cmp).items():
        if experiment == "same":
            assert each == (0, 0)


def test_one_component():
    """There is nothing to draw from."""
    cmp = asked_of_one_component()
    assert all(math.isnan(low) and math.isnan(high) for low, high in ends(cmp).values())
    assert {row["holds"] for row in deltas(cmp).values()} == {None}


def asked_of_one_component():
    return fb.compare([1, 1, 1], {"old": [1, 1, 2], "new": [1, 2, 3]}, bootstrap=40)


@pytest.mark.parametrize(
    "values",
    [
        pa.array([True, False, None]),
        pa.array([0.5, 1.5, None]),
        pa.array([1, 2, None]).cast(pa.timestamp("s", "UTC")),
        pa.array([1, 2, None], pa.int32()).cast(pa.date32()),
        pa.array([Decimal("0.5"), Decimal("1.5"), None]),
    ],
)
def test_units_of_a_column_of_any_type(values):
    """What cannot name an item can be a unit all the same, and draws the same whatever the order of rows."""
    truth = pa.table({"item": [1, 2, 3], "cluster": [1, 2, 3], "block": values})
    runs = {"old": {1: 1, 2: 2, 3: 3}, "new": {1: 1, 2: 1, 3: 2}}
    found = [fb.compare(t, runs, unit="block", bootstrap=50) for t in (truth, truth.take([2, 0, 1]))]
    assert [cmp.units.n for cmp in found] == [3, 3]
    assert ends(found[0]) == ends(found[1])
    low, high = ends(found[0])["new", "precision"]
    assert low < high


def test_units_of_a_column_where_runs_have_other_items_too():
    """Replicates are those of the items that all runs score, whatever else the runs and the truth have."""
    truth = {
        "item": list(range(12)),
        "cluster": [k // 3 for k in range(12)],
        "town": [k // 6 for k in range(12)],
    }
    runs = {
        "old": {k: k // 2 for k in range(2, 11)},
        "new": {k: k // 4 for k in (*range(30, 34), *range(1, 12))},
    }
    common = {k for k in range(12) if all(k in run for run in runs.values())}
    only = {name: {k: c for k, c in run.items() if k in common} for name, run in runs.items()}
    found, expected = (
        fb.compare(pa.table(truth), each, unit="town", bootstrap=100, seed=3).deltas().to_pylist()
        for each in (runs, only)
    )
    assert found == expected
