"""Standard errors of scores of overlapping clusterings that are no means over items, and of overlapping information."""

from __future__ import annotations

import math
from collections import defaultdict

import naive_overlap as twin
import numpy as np
import pytest

import fastbcubed as fb
from fastbcubed.metrics.registry import METRICS
from fastbcubed.metrics.sums_by_unit import OF_COVERS, SumsByUnit
from fastbcubed.runtime.threads import Pool

pytestmark = pytest.mark.filterwarnings("ignore::fastbcubed.errors.EvaluationWarning")
NAMES = [m.name for m in METRICS.values() if m.on_covers and m.overall_only]
TWINS = {
    "purity": twin.purity,
    "inverse_purity": twin.inverse_purity,
    "purity_f1": twin.purity_f1,
    "class_f1": twin.class_f1,
    "closest_cluster_precision": lambda *sides: twin.closest_cluster(*sides).precision,
    "cluster_f1": lambda *sides: twin.exact_match(*sides).f1,
    "omega": twin.omega,
    "onmi_lfk": twin.onmi_lfk,
    "onmi_max": twin.onmi_max,
    "onmi_mean": twin.onmi_mean,
}
Cover = dict[str, set[str]]


def sample(seed: int, n: int = 16, most: int = 3) -> tuple[Cover, Cover]:
    """Return the clusters of items, one to `most`, of components in which the prediction differs from the truth."""
    rng = np.random.default_rng(seed)
    sides: tuple[Cover, Cover] = ({}, {})
    for unit in range(n):
        for item in range(int(rng.integers(2, 6))):
            own = {f"{unit}.{k}" for k in rng.integers(0, most, int(rng.integers(1, most)))}
            sides[0][f"{unit}i{item}"] = own
            wrong = rng.random() < 0.25
            sides[1][f"{unit}i{item}"] = {f"{unit}.{int(rng.integers(0, most))}"} if wrong else own
    return sides


def clusters_of(cover: Cover) -> list[set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for item, clusters in cover.items():
        for cluster in clusters:
            found[cluster].add(item)
    return list(found.values())


def times_of(families: list[list[set[str]]], times: dict[str, int]) -> list[list[set[str]]]:
    """Return families in which the clusters of each component stand so many times, with other items."""
    return [
        [
            {f"{item}#{copy}" for item in cluster}
            for cluster in family
            for copy in range(times[next(iter(cluster)).partition("i")[0]])
        ]
        for family in families
    ]


def components(families: list[list[set[str]]]) -> list[str]:
    return sorted({next(iter(cluster)).partition("i")[0] for family in families for cluster in family})


def moves(truth: Cover, prediction: Cover) -> dict[str, np.ndarray]:
    """Return how much each score moves with a component, from one more of it and one less."""
    families = [clusters_of(truth), clusters_of(prediction)]
    units = components(families)
    moved = []
    for unit in units:
        scores = []
        for own in (2, 0):
            sides = times_of(families, {each: own if each == unit else 1 for each in units})
            scores.append({name: float(score(*sides)) for name, score in TWINS.items()})
        moved.append({name: (scores[0][name] - scores[1][name]) / 2 for name in TWINS})
    return {name: np.array([each[name] for each in moved]) for name in TWINS}


def error(values: np.ndarray) -> float:
    n = values.size
    return math.sqrt(np.sum((values - values.mean()) ** 2) * n / (n - 1))


def room(name: str) -> float:
    return 0.25 if name.startswith("onmi") else 0.05  # which jumps where one item more or less decides


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "most"), [(1, 3), (3, 4)])
def test_errors_are_near_those_of_one_component_more_and_less(seed: int, most: int) -> None:
    truth, prediction = sample(seed, most=most)
    ev, moved = fb.evaluate(truth, prediction, overlapping=True, metrics=NAMES), moves(truth, prediction)
    for name, score in TWINS.items():
        expected = float(score(clusters_of(truth), clusters_of(prediction)))
        assert ev.overall[name] == pytest.approx(expected, rel=1e-9)
        assert ev.errors[name] == pytest.approx(error(moved[name]), rel=room(name)), name


@pytest.mark.slow
def test_errors_of_differences_are_near_those_of_one_component_more_and_less() -> None:
    truth, old = sample(1)
    _, new = sample(11)
    new = {item: new.get(item, own) for item, own in old.items()}
    found = fb.compare(truth, {"old": old, "new": new}, overlapping=True, metrics=NAMES).deltas()
    moved = moves(truth, old), moves(truth, new)
    se = dict(zip(found["score"].to_pylist(), found["se"].to_pylist(), strict=True))
    for name in TWINS:
        if not name.startswith("onmi"):
            assert se[name] == pytest.approx(error(moved[1][name] - moved[0][name]), rel=0.06), name


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True])
def test_errors_of_differences_of_means_are_those_of_their_items(weighted: bool) -> None:
    """Each component adds its items' deviations, times their share, in one run less in the other."""
    truth, old = sample(8)
    _, new = sample(9)
    new = {item: new.get(item, own) for item, own in old.items()}
    weight = {item: 1.0 + k % 3 for k, item in enumerate(truth)} if weighted else None
    options = {"overlapping": True, "weight": weight, "metrics": ["precision", "recall"]}
    component = {item: k for k, own in enumerate(joined(truth, old, new)) for item in own}
    changes: dict[str, list[np.ndarray]] = defaultdict(list)
    for run in (old, new):
        ev = fb.evaluate(truth, run, **options)
        items = ev.items().to_pydict()
        share = np.array(items["weight"] if weighted else np.ones(len(items["item"])))
        share = share / share.sum()
        codes = np.array([component[item] for item in items["item"]])
        for name in ("precision", "recall"):
            deviations = share * (np.array(items[name]) - ev.overall[name])
            changes[name].append(np.bincount(codes, deviations))
    found = fb.compare(truth, {"old": old, "new": new}, **options)
    assert found.units.n == len(set(component.values()))
    drawn = fb.compare(truth, {"old": old, "new": new}, bootstrap=2000, **options).deltas().to_pydict()
    for name, low, high in zip(drawn["score"], drawn["low"], drawn["high"], strict=True):
        before, after = changes[name]
        squares, n = np.sum((after - before) ** 2), found.units.n
        assert found.deltas().to_pandas().set_index("score").se[name] == pytest.approx(
            math.sqrt(squares * n / (n - 1))
        )
        assert (high - low) / 2 == pytest.approx(1.96 * math.sqrt(squares), rel=0.15)


def joined(*covers: Cover) -> list[set[str]]:
    """Return the items that are connected by clusters of any of the covers."""
    found: list[set[str]] = []
    for cover in covers:
        for cluster in clusters_of(cover):
            touched = [own for own in found if own & cluster]
            found = [own for own in found if not own & cluster] + [cluster.union(*touched)]
    return found


def test_values_behind_errors_are_the_scores() -> None:
    ev = fb.evaluate(*sample(3, most=4), overlapping=True, metrics=NAMES)
    found = ev.standard_errors.components
    by = SumsByUnit(ev.contingency, found.by_cell(), found.n, Pool(1))
    for name in NAMES:
        assert set(METRICS[name].sums) <= set(OF_COVERS)
        assert by.score(METRICS[name]) == pytest.approx(ev.overall[name], rel=1e-9), name


@pytest.mark.slow
def test_a_partition_has_the_same_errors_as_a_cover() -> None:
    sides = sample(4, most=2)
    plain = [{item: min(own) for item, own in side.items()} for side in sides]
    covers = [{item: {own} for item, own in side.items()} for side in plain]
    expected = fb.evaluate(*plain, metrics=NAMES).errors
    found = fb.evaluate(*covers, overlapping=True, metrics=NAMES).errors
    assert dict(found) == pytest.approx(dict(expected), rel=1e-8)


@pytest.mark.slow
def test_order_names_and_threads_do_not_count() -> None:
    sides = sample(5)
    expected = fb.evaluate(*sides, overlapping=True, metrics=NAMES, threads=1).errors
    order = np.random.default_rng(6).permutation(list(sides[0]))
    other = [{f"x{item}": {f"y{own}" for own in side[item]} for item in order} for side in sides]
    found = fb.evaluate(*other, overlapping=True, metrics=NAMES, threads=3).errors
    assert dict(found) == pytest.approx(dict(expected), rel=1e-8, abs=1e-12)


@pytest.mark.slow
def test_weights_of_one_change_nothing_and_others_do() -> None:
    sides, names = sample(7), ["purity", "purity_f1", "class_f1", "closest_cluster_f1"]
    items = list(sides[0])
    errors = [
        fb.evaluate(*sides, overlapping=True, metrics=names, weight=weight).errors
        for weight in (None, dict.fromkeys(items, 1.0), {item: 1 + k % 3 for k, item in enumerate(items)})
    ]
    assert dict(errors[1]) == pytest.approx(dict(errors[0]), rel=1e-9)
    assert errors[2].purity != pytest.approx(errors[0].purity, rel=1e-3)


def test_alike_components_have_no_error() -> None:
    sides = (
        {f"{k}{item}": {f"{k}.{c}" for c in own} for k in range(6) for item, own in side.items()}
        for side in ({"a": "x", "b": "xy", "c": "y"}, {"a": "x", "b": "x", "c": "y"})
    )
    ev = fb.evaluate(*sides, overlapping=True, metrics=NAMES)
    assert all(error < 1e-9 for error in ev.errors.values())
