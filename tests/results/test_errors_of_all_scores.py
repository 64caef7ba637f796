"""Standard errors of scores that are no means over items: against the twin, and properties of all scores."""

from __future__ import annotations

import math
from fractions import Fraction

import naive_resampling as twin
import numpy as np
import pytest

import fastbcubed as fb
from fastbcubed.metrics.registry import METRICS
from fastbcubed.results.influences import is_mean

pytestmark = pytest.mark.filterwarnings("ignore::fastbcubed.errors.EvaluationWarning")


def sample(seed: int, n: int = 60) -> tuple[np.ndarray, np.ndarray]:
    """Return labels of components, some of which merge true clusters and some of which split one."""
    rng = np.random.default_rng(seed)
    true, pred = [], []
    for k in range(n):
        merged = int(rng.integers(2, 6)) if rng.random() < 0.3 else 1
        own = np.repeat(np.arange(merged), rng.geometric(0.3, merged))
        parts = rng.integers(0, 2, own.size) if rng.random() < 0.4 else np.zeros(own.size, int)
        true.append(own + 10 * k)
        pred.append(parts + 10 * k)
    return np.concatenate(true), np.concatenate(pred)


def patents(name: str) -> tuple[list[str], list[str]]:
    """Return the labels of the mentions that both sides have."""
    data = fb.example("patentsview")
    sides = [
        dict(zip(table["item"].to_pylist(), table["cluster"].to_pylist(), strict=True))
        for table in (data.truth, data.predictions[name])
    ]
    items = [item for item in sides[0] if item in sides[1]]
    return [sides[0][item] for item in items], [sides[1][item] for item in items]


@pytest.mark.parametrize("seed", [1, 2])
def test_errors_are_those_of_the_twin(seed: int) -> None:
    true, pred = sample(seed)
    every = [twin.figures(own) for own in twin.components(true.tolist(), pred.tolist())]
    expected = twin.errors_by_shares(every)
    ev = fb.evaluate(true, pred, metrics=list(expected))
    assert ev.units.n == len(every)
    values = twin.scores([(1, own) for own in every])
    assert dict(ev.overall) == pytest.approx(values, rel=1e-9)
    for name, error in expected.items():
        assert ev.errors[name] == pytest.approx(error, rel=1e-5), name


@pytest.mark.slow
@pytest.mark.parametrize(("name", "room"), [("20200929", 0.15), ("20211230", 0.05)])
def test_errors_are_near_those_without_each_component(name: str, room: float) -> None:
    """Few large components have most of the pairs, so that curvature counts; less so if they have few wrong ones."""
    true, pred = patents(name)
    every = [twin.figures(own) for own in twin.components(true, pred)]
    expected = twin.errors_by_deletion(every)
    ev = fb.evaluate(true, pred, metrics=list(expected))
    for score, error in expected.items():
        assert ev.errors[score] == pytest.approx(error, rel=room), score


@pytest.mark.slow
def test_alike_components_have_no_error() -> None:
    """All components are the same, so that no share changes with them, and no total of as many of them."""
    true = [f"{k}.{label}" for k in range(7) for label in (0, 2, 1, 1, 2)]
    pred = [f"{k}.{label}" for k in range(7) for label in (0, 2, 0, 1, 0)]
    assert set(fb.evaluate(true, pred, metrics="all").errors.values()) == {0.0}


@pytest.mark.slow
def test_components_without_weight_count_where_they_move_a_score() -> None:
    """Scores of clusters take no weights, so that they count all components; those of items lack the others."""
    true, pred = sample(1)
    heavy = true // 10 % 2 == 0  # whole components
    options = {"metrics": ["cluster_precision", "cluster_recall", "talburt_wang", "purity", "class_f1"]}
    runs = {"before": pred, "after": true}
    found = fb.compare(true, runs, weight=heavy.astype(float), weighting="outer", **options)
    of_all, of_heavy = (
        fb.compare(true[rows], {name: run[rows] for name, run in runs.items()}, **options)
        for rows in (np.ones(true.size, bool), heavy)
    )
    for score in options["metrics"]:
        same = of_heavy if score in ("purity", "class_f1") else of_all
        assert found["before"].errors[score] == pytest.approx(same["before"].errors[score], rel=1e-9), score
        of_delta, expected = (
            next(row["se"] for row in each.deltas().to_pylist() if row["score"] == score)
            for each in (found, same)
        )
        assert expected > 0 and of_delta == pytest.approx(expected, rel=1e-9), score


@pytest.mark.slow
def test_one_item_has_no_errors_and_no_warnings_of_numpy() -> None:
    errors = fb.evaluate([1], [1], metrics="all").errors
    assert len(errors) > 50 and all(map(math.isnan, errors.values()))


def test_shares_that_all_components_have_have_no_error() -> None:
    """Components of different sizes, of which each has a pair precision of 1/3 and a purity of 1/2."""
    true, pred = [], []
    for k, times in enumerate((1, 2, 5, 1, 3)):
        for copy in range(times):
            true += [f"{k}.{copy}.a"] * 2 + [f"{k}.{copy}.b"] * 2
            pred += [f"{k}.{copy}"] * 4
    ev = fb.evaluate(true, pred, metrics=["pair_precision", "purity", "muc_precision", "pair_f1"])
    assert dict(ev.errors) == {"pair_precision": 0.0, "purity": 0.0, "muc_precision": 0.0, "pair_f1": 0.0}


@pytest.mark.slow
def test_order_names_and_threads_do_not_count() -> None:
    true, pred = sample(3)
    order = np.random.default_rng(4).permutation(true.size)
    expected = fb.evaluate(true, pred, metrics="all", threads=1).errors
    other = fb.evaluate([f"t{x}" for x in true[order]], -pred[order], metrics="all", threads=4)
    assert dict(other.errors) == pytest.approx(dict(expected), rel=1e-9, abs=1e-11)


@pytest.mark.slow
def test_sides_trade_places() -> None:
    true, pred = sample(5)
    found, swapped = (fb.evaluate(*sides, metrics="all").errors for sides in ((true, pred), (pred, true)))
    for name in (
        "adjusted_rand",
        "pair_f1",
        "v_measure",
        "ami",
        "cluster_f1",
        "muc_f1",
        "ceaf_e_f1",
        "omega",
    ):
        assert swapped[name] == pytest.approx(found[name], rel=1e-9), name
    for one, other in (
        ("homogeneity", "completeness"),
        ("purity", "inverse_purity"),
        ("lea_precision", "lea_recall"),
    ):
        assert swapped[one] == pytest.approx(found[other], rel=1e-9)


def test_variances_of_independent_data_add_up() -> None:
    """Totals of two data sets together: their variances add up, but that all have one mean."""
    sides = [sample(seed, n=200) for seed in (6, 7)]
    whole = tuple(np.concatenate([a, b + 10_000]) for a, b in zip(*sides, strict=True))
    names = ["pair_fp", "pair_fn", "pair_tp", "split_join", "basic_merge_distance"]
    parts = [fb.evaluate(*own, metrics=names) for own in sides]
    found = fb.evaluate(*whole, metrics=names)
    n = [ev.units.n for ev in parts]
    for name in names:
        between = (parts[0].overall[name] / n[0] - parts[1].overall[name] / n[1]) ** 2 * n[0] * n[1] / sum(n)
        squares = sum(ev.errors[name] ** 2 * (k - 1) / k for ev, k in zip(parts, n, strict=True)) + between
        assert found.errors[name] ** 2 == pytest.approx(squares * sum(n) / (sum(n) - 1), rel=1e-9)


def test_errors_of_weighted_pairs_scale_with_nothing() -> None:
    true, pred = sample(8)
    weight = np.random.default_rng(9).uniform(0.5, 2.0, true.size)
    names = ["pair_f1", "adjusted_rand", "v_measure", "purity_f1", "accuracy"]
    ones, plain = (
        fb.evaluate(true, pred, weight=w, metrics=names).errors for w in (np.ones(true.size), None)
    )
    assert dict(ones) == pytest.approx(dict(plain), rel=1e-9)
    one, double = (fb.evaluate(true, pred, weight=w, metrics=names).errors for w in (weight, 2.0 * weight))
    assert dict(one) == pytest.approx(dict(double), rel=1e-9)
    assert one.pair_f1 != pytest.approx(plain.pair_f1, rel=1e-3)


def test_an_entity_that_the_other_side_lacks_is_a_unit() -> None:
    """Of three entities the response has two; recall is 1, 1 and 0."""
    truth = {"a": 1, "b": 1, "c": 2, "d": 2, "e": 3, "f": 3}
    ev = fb.evaluate(truth, {"a": 1, "b": 1, "c": 2, "d": 2}, metrics=["muc_recall", "muc_precision"])
    assert ev.errors.muc_precision == 0
    assert ev.errors.muc_recall == pytest.approx(math.sqrt(3 / 2 * (2 * (1 / 3) ** 2 + (2 / 3) ** 2) / 9))


@pytest.mark.parametrize("n_large", [10, 1_000, 100_000])
def test_errors_hold_where_one_cluster_has_nearly_all_items(n_large: int) -> None:
    """Its share leaves so little for chance that the score is smooth in a small part of the usual step only."""
    true, pred = [0] * n_large + [1, 1, 2, 2, 3, 3], [0] * n_large + [1, 1, 2, 3, 4, 4]
    pairs = n_large * (n_large - 1) // 2
    # items, pairs that both join, pairs that the truth joins
    units = [(n_large, pairs, 0), (2, 1, 0), (2, 0, 1), (2, 1, 0)]

    def adjusted_rand(of_unit: tuple[int, int, int], share: Fraction) -> Fraction:
        n, both, truth = (
            sum(own) + share * more for own, more in zip(zip(*units, strict=True), of_unit, strict=True)
        )
        neither = n * n / 2 - Fraction(sum(own[0] for own in units) + share * of_unit[0]) / 2 - both - truth
        return 2 * both * neither / ((both + truth) * (truth + neither) + both * neither)

    little = Fraction(1, 10**40)
    moved = [(adjusted_rand(own, little) - adjusted_rand(own, Fraction(0))) / little for own in units]
    mean = sum(moved) / 4
    exact = math.sqrt(Fraction(4, 3) * sum((own - mean) ** 2 for own in moved))
    errors = fb.evaluate(true, pred, metrics=["adjusted_rand", "nmi", "v_measure"]).errors
    assert errors.adjusted_rand == pytest.approx(exact, rel=1e-6)
    assert errors.nmi == pytest.approx(errors.v_measure, rel=1e-6)  # the same score


@pytest.mark.cases(0)
@pytest.mark.parametrize("merged", [False, True])
def test_values_behind_errors_are_the_scores(merged: bool) -> None:
    """Sums by unit add up to the scores that are shown, so that their slopes are those of these scores."""
    from fastbcubed.metrics.sums_by_unit import SumsByUnit
    from fastbcubed.runtime.threads import Pool

    ev = fb.evaluate(*sample(10), metrics="all")
    components = ev.standard_errors.components
    units, n_joined = components.by_cell(), components.n_joined
    by_unit = SumsByUnit(ev.contingency, units, components.n, Pool(1), n_joined if merged else None)
    assert (by_unit.n < components.n) == merged
    for name in ev.errors:
        if not is_mean(METRICS[name]):
            assert by_unit.score(METRICS[name]) == pytest.approx(ev.overall[name], rel=1e-9, abs=1e-12), name


@pytest.mark.slow
@pytest.mark.parametrize("seed", [11, 12])
def test_equal_units_that_stand_once_have_the_errors_of_all(seed: int) -> None:
    """With weights of 1 no unit stands for others; some clusters have items of one side only."""
    true, pred = sample(seed)
    items = np.arange(true.size)
    truth, runs = dict(zip(items[8:], true[8:], strict=True)), {}
    for name, own in (("a", pred), ("b", np.where(items % 40 == 0, true, pred))):
        runs[name] = dict(zip(items[:-8], own[:-8], strict=True))
    ones = dict.fromkeys(items, 1.0)
    once, all_units = (fb.evaluate(truth, runs["a"], weight=w, metrics="all") for w in (None, ones))
    found = [name for name in once.errors if name in all_units.errors]
    assert len(found) > 60
    for name in found:
        assert once.errors[name] == pytest.approx(all_units.errors[name], rel=1e-9, abs=1e-12), name
    for kept in (0, 8):  # with items of one side only, and without
        shared = {item: truth[item] for item in list(truth)[: len(truth) - 8]} if kept else truth
        both = {name: {item: own[item] for item in shared if item in own} for name, own in runs.items()}
        plain, weighed = (fb.compare(shared, both, weight=w, metrics=found) for w in (None, ones))
        se = [each.deltas().to_pandas().set_index("score").se for each in (plain, weighed)]
        assert se[0].notna().sum() > 60
        assert np.allclose(se[0], se[1], rtol=1e-9, atol=1e-12, equal_nan=True)


@pytest.mark.cases(0, 2)
@pytest.mark.parametrize("seed", range(8))
def test_intervals_stay_in_the_range_of_their_score(seed: int) -> None:
    """Omega is the adjusted Rand index where clusters do not overlap, and has its error."""
    ev = fb.evaluate(*sample(seed, n=12), metrics=["all", "omega"])
    for name in ev.errors:
        low, high = ev.interval(name)
        assert math.isnan(low) or METRICS[name].low <= low <= high <= METRICS[name].high, name
    assert ev.errors["omega"] == pytest.approx(ev.errors["adjusted_rand"], abs=1e-9, nan_ok=True)


def test_singletons_of_the_truth_are_found_by_chance_for_certain() -> None:
    """Any labeling has the recall 1 then, whatever is drawn; and one of singletons has the precision 1."""
    sizes = [1] * 10 + [2] * 5 + [4] * 10
    pred = np.repeat(np.arange(len(sizes)), sizes)
    alone = np.arange(pred.size)
    names = ["chance_bcubed_precision", "chance_bcubed_recall"]
    found, swapped = (fb.evaluate(*sides, metrics=names) for sides in ((alone, pred), (pred, alone)))
    assert found.overall.chance_bcubed_recall == swapped.overall.chance_bcubed_precision == 1
    assert found.errors.chance_bcubed_recall == swapped.errors.chance_bcubed_precision == 0
    # 25 of 60 labels; a cluster of a items moves that by (1 - 25 / 60 a) / 60
    squares = sum((1 - 25 / 60 * size) ** 2 for size in sizes) / 60**2
    assert found.errors.chance_bcubed_precision == pytest.approx(math.sqrt(25 / 24 * squares), rel=1e-9)
    # the difference from a run of singletons is that of this run alone
    row = next(iter(fb.compare(alone, {"alone": alone, "run": pred}, metrics=names).deltas().to_pylist()))
    assert row["delta"] == pytest.approx(25 / 60 - 1, rel=1e-12)
    assert row["se"] == pytest.approx(math.sqrt(25 / 24 * squares), rel=1e-9)


def test_rounding_is_no_slope_of_mutual_information() -> None:
    """Each component splits one true cluster or merges two, so that both sides have one entropy, I that of components.

    A component of a share s moves that by s (1 / ln 2 - log2 s - I), less the mean. By the loss of one side alone it
    does not move, and the steps of the quotient that would be the shortest show rounding.
    """
    halves = [3, 3, 3, 2, 2, 2, 1, 2]
    true, pred = [], []
    for k, half in enumerate(halves):
        whole, parts = [f"{k}"] * 2 * half, [f"{k}.{i % 2}" for i in range(2 * half)]
        true += whole + [f"x{own}" for own in parts]
        pred += parts + [f"x{own}" for own in whole]
    shares = np.repeat(halves, 2) / (2.0 * sum(halves))
    entropy = -float(np.sum(shares * np.log2(shares)))
    moved = shares * (1 / math.log(2) - np.log2(shares) - entropy)
    expected = math.sqrt(16 / 15 * np.sum((moved - moved.mean()) ** 2))
    ev = fb.evaluate(true, pred, metrics=["mutual_info"])
    assert ev.overall.mutual_info == pytest.approx(entropy, rel=1e-12)
    assert ev.errors.mutual_info == pytest.approx(expected, rel=1e-11)


@pytest.mark.cases(0)
@pytest.mark.parametrize("seed", [13, 14])
@pytest.mark.parametrize("n", [6, 60])
def test_no_interval_is_narrower_than_the_error_says(seed: int, n: int) -> None:
    """On the scale of the interval each end is 1.96 errors away at least, whatever cap or move there is."""
    ev = fb.evaluate(*sample(seed, n), metrics="all")
    for row in ev.scores().to_pylist():
        metric, value, error = METRICS[row["score"]], row["value"], row["se"]
        if error is None or not error > 0 or not value > max(metric.low, -1.0):
            continue  # it has no interval, or one to one side
        low = max(metric.low, -1.0)
        away = 1.9599 * error / (value - low)
        if math.isinf(metric.high):
            ends = [low + (value - low) * math.exp(sign * away) for sign in (-1, 1)]
        elif value < metric.high:
            width = metric.high - low
            odds, away = (value - low) / (metric.high - value), away * width / (metric.high - value)
            # 0 to 1 where the power overflows
            shares = [1 / (1 + math.exp(min(-sign * away, 700.0)) / odds) for sign in (-1, 1)]
            ends = [low + width * share for share in shares]
        else:
            continue
        assert row["low"] <= ends[0] + 1e-9 and row["high"] >= ends[1] - 1e-9, row
