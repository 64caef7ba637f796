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


def sample(seed: int, n: int = 24, most: int = 3) -> tuple[Cover, Cover]:
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


@pytest.mark.parametrize(("seed", "most"), [(1, 3), (2, 3), (3, 4)])
def test_errors_are_near_those_of_one_component_more_and_less(seed: int, most: int) -> None:
    truth, prediction = sample(seed, most=most)
    families = [clusters_of(truth), clusters_of(prediction)]
    units, moved = components(families), []
    for unit in units:
        scores = []
        for own in (2, 0):
            sides = times_of(families, {each: own if each == unit else 1 for each in units})
            scores.append({name: float(score(*sides)) for name, score in TWINS.items()})
        moved.append({name: (scores[0][name] - scores[1][name]) / 2 for name in TWINS})
    ev = fb.evaluate(truth, prediction, overlapping=True, metrics=NAMES)
    n = len(units)
    for name, score in TWINS.items():
        assert ev.overall[name] == pytest.approx(float(score(*families)), rel=1e-9)
        values = np.array([each[name] for each in moved])
        expected = math.sqrt(np.sum((values - values.mean()) ** 2) * n / (n - 1))
        room = 0.25 if name.startswith("onmi") else 0.05  # which jumps where one item more or less decides
        assert ev.errors[name] == pytest.approx(expected, rel=room), name


def test_values_behind_errors_are_the_scores() -> None:
    ev = fb.evaluate(*sample(3, most=4), overlapping=True, metrics=NAMES)
    found = ev.standard_errors.components
    by = SumsByUnit(ev.contingency, found.by_cell(), found.n, Pool(1))
    for name in NAMES:
        assert set(METRICS[name].sums) <= set(OF_COVERS)
        assert by.score(METRICS[name]) == pytest.approx(ev.overall[name], rel=1e-9), name


def test_a_partition_has_the_same_errors_as_a_cover() -> None:
    sides = sample(4, most=2)
    plain = [{item: min(own) for item, own in side.items()} for side in sides]
    covers = [{item: {own} for item, own in side.items()} for side in plain]
    expected = fb.evaluate(*plain, metrics=NAMES).errors
    found = fb.evaluate(*covers, overlapping=True, metrics=NAMES).errors
    assert dict(found) == pytest.approx(dict(expected), rel=1e-8)


def test_order_names_and_threads_do_not_count() -> None:
    sides = sample(5)
    expected = fb.evaluate(*sides, overlapping=True, metrics=NAMES, threads=1).errors
    order = np.random.default_rng(6).permutation(list(sides[0]))
    other = [{f"x{item}": {f"y{own}" for own in side[item]} for item in order} for side in sides]
    found = fb.evaluate(*other, overlapping=True, metrics=NAMES, threads=3).errors
    assert dict(found) == pytest.approx(dict(expected), rel=1e-8, abs=1e-12)


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
