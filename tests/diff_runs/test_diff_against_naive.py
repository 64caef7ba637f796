"""Every figure of a diff equals its definition, worked out with sets and fractions."""

from __future__ import annotations

import math
import pickle
import tempfile
import warnings

import naive_diff
import pandas as pd
import pytest
from effort import examples
from hypothesis import given
from hypothesis import strategies as st
from naive_diff import GOOD_AND_BAD, IMPACT, QUALITY
from naive_errors import ByUnit, connected
from strategies import LABELS, pairs, weights

import fastbcubed as fb
from fastbcubed.errors import EvaluationWarning, FastBCubedError
from fastbcubed.metrics.registry import METRICS

BASELINE = dict(zip("abcdef", "xxxyyz", strict=True))
EXPERIMENT = dict(zip("abcdef", "ppqqqr", strict=True))
TRUTH = dict(zip("abcdef", "uuvvww", strict=True))
WEIGHT = dict(zip("abcdef", range(1, 7), strict=True))
POLICIES = [
    "drop",
    "singleton",
    "outside",
    {"baseline": "singleton"},
    {"experiment": "singleton"},
    {"baseline": "drop", "experiment": "outside"},
    {"baseline": "singleton", "experiment": "drop"},
    {"baseline": "singleton", "experiment": "outside"},
]
EVERY = [*QUALITY, "iq"]


def diff(*args, **options):
    """Return a diff without its warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EvaluationWarning)
        return fb.diff(*args, **options)


def close(value):
    return pytest.approx(float(value), rel=1e-12, abs=1e-12)


def check_quality(found, expected, items=None):
    """Compare a mapping of scores with the means over items."""
    for name in QUALITY:
        assert found[name] == close(expected.mean(name, items)), name
    iq = expected.iq(items)
    if iq is None:
        assert math.isnan(found["iq"])
    else:
        size = float(expected.mean("good_distance", items) + expected.mean("bad_distance", items))
        assert found["iq"] == pytest.approx(float(iq), rel=1e-12, abs=1e-12 / size)


@st.composite
def labelled(draw, truth_of):
    """Draw a truth of some of these items, and maybe of others."""
    items = list(truth_of)
    label = LABELS[draw(st.sampled_from(list(LABELS)))]
    codes = draw(st.lists(st.integers(0, max(0, len(items) - 1)), min_size=len(items), max_size=len(items)))
    there = draw(
        st.one_of(
            st.just([True] * len(items)), st.lists(st.booleans(), min_size=len(items), max_size=len(items))
        )
    )
    return {item: label(code) for item, code, known in zip(items, codes, there, strict=True) if known}


# Worked values (METRICS 11.2)


@pytest.mark.parametrize(
    ("weight", "expected"),
    [
        (
            None,
            {
                "split_rate": 2 / 9, "good_split_rate": 2 / 9, "bad_split_rate": 0, "merge_rate": 2 / 9,
                "good_merge_rate": 1 / 9, "bad_merge_rate": 1 / 9, "split_jaccard_distance": 8 / 45,
                "merge_jaccard_distance": 8 / 45, "jaccard_distance": 16 / 45, "delta_precision": 1 / 6,
                "delta_recall": 1 / 6, "delta_jaccard_distance": -2 / 9, "iq": 5 / 8, "affected_rate": 5 / 6,
            },
        ),
        (
            WEIGHT,
            {
                "split_rate": 1 / 7, "merge_rate": 3 / 14, "good_merge_rate": 2 / 21, "bad_merge_rate": 5 / 42,
                "jaccard_distance": 41 / 140, "delta_precision": 29 / 378, "delta_recall": 8 / 49, "iq": 553 / 1107,
                "affected_rate": 15 / 21,
            },
        ),
    ],
)  # fmt: skip
def test_worked_values(weight, expected):
    d = fb.diff(BASELINE, EXPERIMENT, truth=TRUTH, weight=weight, metrics="diff")
    for name, value in expected.items():
        assert d.overall[name] == pytest.approx(value, rel=1e-15, abs=1e-16), name
    twin = naive_diff.change(BASELINE, EXPERIMENT, TRUTH, weight)
    assert float(twin.iq()) == expected["iq"]
    assert {name: float(twin.mean(name)) for name in expected if name != "iq"} == pytest.approx(
        {name: value for name, value in expected.items() if name != "iq"}
    )


def test_names_of_the_paper():
    d = fb.diff(BASELINE, EXPERIMENT)
    assert (
        d.merge_distance
        == d.overall["merge_distance"]
        == d.overall["merge_jaccard_distance"]
        == close(8 / 45)
    )
    assert d.split_distance + d.merge_distance == close(d.jaccard_distance)
    other = fb.diff(BASELINE, EXPERIMENT, metrics=["merge_distance", "basic_merge_distance"])
    assert other.merge_distance == close(8 / 45)
    assert other.basic_merge_distance == 2  # split c off ab, join it to de


# Against the twin


@pytest.mark.cases(3, 99)
@pytest.mark.parametrize("policy", POLICIES, ids=str)
@examples(60)
@given(pair=pairs(), data=st.data())
def test_impact_of_generated_changes(policy, pair, data):
    weight = data.draw(weights(len(pair.items)))
    weight = None if weight is None else dict(zip(pair.items, weight, strict=True))
    weighting = data.draw(st.sampled_from(["pointwise", "outer"]))
    d = diff(*pair, unmatched=policy, weight=weight, weighting=weighting)
    twin = naive_diff.change(*pair, weight=weight, unmatched=policy, outer=weighting == "outer")
    for name in IMPACT:
        assert d.overall[name] == close(twin.mean(name)), name
    listed = {row["item"]: row for row in d.items().to_pylist()}
    assert listed.keys() == twin.of_item.keys()
    for item, scores in twin.of_item.items():
        for name in IMPACT:
            assert listed[item][name] == close(scores[name]), name
        assert listed[item]["baseline_cluster"] == pair.truth.get(item)
        assert listed[item]["experiment_cluster"] == pair.prediction.get(item)


@examples(100)
@given(pair=pairs())
def test_what_became_of_generated_clusters(pair):
    d = diff(*pair)
    expected = naive_diff.became(*pair)
    found = d.changes().to_pylist()
    assert {row["became"]: (row["n_clusters"], row["n_items"]) for row in found} == expected
    assert d.coverage.n_gone == len(pair.truth.keys() - pair.prediction.keys())
    assert d.coverage.n_new == len(pair.prediction.keys() - pair.truth.keys())
    for side, labels, name in (("baseline", pair.truth, "gone"), ("experiment", pair.prediction, "appeared")):
        listed = d.clusters(side, outcome=name)
        alone = {label: [i for i in labels if labels[i] == label] for label in set(labels.values())}
        other = pair.prediction if side == "baseline" else pair.truth
        wanted = {label: len(items) for label, items in alone.items() if not set(items) & other.keys()}
        assert dict(zip(listed["cluster"].to_pylist(), listed["n_items"].to_pylist(), strict=True)) == wanted


@pytest.mark.cases(2)
@pytest.mark.parametrize("policy", POLICIES, ids=str)
@examples(40)
@given(pair=pairs(), data=st.data())
def test_quality_of_generated_changes(policy, pair, data):
    truth = data.draw(labelled(pair.items))
    weight = data.draw(weights(len(pair.items)))
    weight = None if weight is None else dict(zip(pair.items, weight, strict=True))
    how = {"unmatched": policy, "unlabelled": data.draw(st.sampled_from(["drop", "outside"]))}
    outer = data.draw(st.booleans())
    twin = naive_diff.change(*pair, truth, weight, outer=outer, **how)
    weighting = "outer" if outer else "pointwise"
    if not twin.judged():
        with pytest.raises(FastBCubedError, match="truth"):
            diff(*pair, truth=truth, weight=weight, **how)
        return
    d = diff(*pair, truth=truth, weight=weight, weighting=weighting, metrics="diff", **how)
    check_quality(d.overall, twin)
    assert d.verdict.n_items == len(twin.judged())
    assert d.verdict.n_unlabelled == len(twin.of_item) - len(twin.judged())
    for side in ("baseline", "experiment"):
        for name in ("precision", "recall"):
            assert d.verdict.levels[side][name] == close(twin.mean(f"{name}_of_{side}"))
    for row in d.items().to_pylist():
        scores = twin.of_item[row["item"]]
        assert row["true_cluster"] == truth.get(row["item"])
        for name in QUALITY:
            assert row[name] == close(scores[name]) if name in scores else math.isnan(row[name])
    for side, labels in (("baseline", pair.truth), ("experiment", pair.prediction)):
        for row in d.clusters(side).to_pylist():
            if row["cluster"] is None:  # made by a policy
                continue
            members = [i for i in twin.judged() if labels.get(i) == row["cluster"]]
            assert row["n_labelled"] == len(members)
            if members:
                check_quality(row, twin, members)


@pytest.mark.parametrize("unlabelled", ["drop", "outside"])
def test_a_new_item_that_belongs_where_it_is(unlabelled):
    """A third of the cluster of a and of b is new, and right; the third item, c, is alone before and after."""
    new = {"a": "x", "b": "x", "n": "x", "c": "y"}
    how = {"unmatched": {"experiment": "outside"}, "unlabelled": unlabelled, "metrics": "diff"}
    d = fb.diff({"a": 1, "b": 1, "c": 2}, new, truth={"a": "t", "b": "t", "n": "t", "c": "u"}, **how)
    assert d.merge_rate == d.good_merge_rate == d.delta_recall == close(2 / 9)
    assert d.bad_merge_rate == d.delta_precision == 0 and d.iq == 1
    assert "100 % of the merging is right" in repr(d)
    assert (d.verdict.n_items, d.verdict.n_unlabelled) == (3, 0)
    d = diff({"a": 1, "b": 1, "c": 2}, new, truth={"a": "t", "b": "t", "n": "u", "c": "u"}, **how)
    assert d.merge_rate == d.bad_merge_rate == close(2 / 9) and d.good_merge_rate == 0 and d.iq == -1


@pytest.mark.cases(2)
@pytest.mark.parametrize("policy", POLICIES, ids=str)
@examples(20)
@given(pair=pairs(), data=st.data())
def test_errors_of_generated_changes(policy, pair, data):
    truth = data.draw(labelled(pair.items))
    twin = naive_diff.change(*pair, truth, unmatched=policy)
    if not twin.judged():
        return
    unit = connected(twin.mates)
    of_items = ByUnit({i: unit[i] for i in twin.judged()}, twin.weight)
    d = diff(*pair, truth=truth, unmatched=policy, metrics="diff")
    with tempfile.TemporaryDirectory() as directory:
        d.save(directory, keep="items")
        saved = fb.load(directory)
    for judgement in (d._judgement, saved._judgement, pickle.loads(pickle.dumps(d))._judgement):
        check_quality(judgement.overall(d._judging), twin)
        for name, error in judgement.errors(d._judging).of.items():
            if name != "iq":
                wanted = of_items.error(lambda i, name=name: twin.of_item[i][name])
                assert error == pytest.approx(wanted, rel=1e-9, abs=1e-12, nan_ok=True), name


@examples(50)
@given(pair=pairs(), data=st.data())
def test_slices_of_generated_changes(pair, data):
    """By an attribute of the truth."""
    truth = data.draw(labelled(pair.items))
    colours = {item: data.draw(st.sampled_from(["red", "green", None])) for item in truth}
    columns = {"item": list(truth), "cluster": list(truth.values()), "colour": list(colours.values())}
    table = pd.DataFrame({**columns, "colour": pd.Series(columns["colour"], dtype="string")})
    twin = naive_diff.change(*pair, truth)
    if not twin.judged():
        return
    d = diff(*pair, truth=table, metrics="diff", slices="colour")
    found = {row["colour"]: row for row in d.sliced["colour"].to_pylist()}
    wanted = {colours.get(item) for item in twin.of_item}
    assert found.keys() == wanted
    for colour, row in found.items():
        items = [i for i in twin.of_item if colours.get(i) == colour]
        assert row["n_items"] == len(items)
        for name in IMPACT:
            assert row[name] == close(twin.mean(name, items))
        judged = [i for i in items if i in twin.judged()]
        assert row["n_labelled"] == len(judged)
        if judged:
            check_quality(row, twin, judged)
    changes = d.changes("colour").to_pylist()
    for colour in found:
        items = {i for i in {*pair.truth, *pair.prediction} if colours.get(i) == colour}
        told = {row["became"]: row["n_items"] for row in changes if row["colour"] == colour}
        assert sum(told.values()) == len(items) - _left_or_joined(pair, items)


def _left_or_joined(pair, items):
    """Count the items of one side whose cluster has items of both."""
    n = 0
    for own, other in (pair, pair[::-1]):
        for item in items & (own.keys() - other.keys()):
            n += any(own[i] == own[item] for i in own.keys() & other.keys())
    return n


# Identities


@examples(100)
@given(pair=pairs(unmatched=False), data=st.data())
def test_identities(pair, data):
    truth = data.draw(labelled(pair.items).filter(lambda truth: len(truth) == len(pair.items)))
    weight = data.draw(weights(len(pair.items)))
    weight = None if weight is None else dict(zip(pair.items, weight, strict=True))
    scores = diff(*pair, truth=truth, weight=weight, metrics="diff").overall
    for whole, (good, bad) in GOOD_AND_BAD.items():
        assert scores[good] + scores[bad] == close(scores[whole]), whole
        assert scores[good] >= 0 and scores[bad] >= 0
    assert scores.split_jaccard_distance + scores.merge_jaccard_distance == close(scores.jaccard_distance)
    assert scores.good_index + scores.bad_index == close(1 - scores.jaccard_distance)
    assert math.isnan(scores.iq) == (scores.affected_rate == 0)
    assert math.isnan(scores.iq) or -1 <= scores.iq <= 1
    both = [
        fb.evaluate(truth, side, weight=weight, metrics=["precision", "recall", "jaccard_distance"])
        for side in pair
    ]
    for name in ("precision", "recall", "jaccard_distance"):
        assert scores[f"delta_{name}"] == close(both[1].overall[name] - both[0].overall[name])
    assert scores.jaccard_distance >= abs(both[1].jaccard_distance - both[0].jaccard_distance) - 1e-12
    evaluated = fb.evaluate(*pair, weight=weight, metrics=["over_merge_rate", "under_merge_rate"])
    assert scores.split_rate == evaluated.under_merge_rate
    assert scores.merge_rate == evaluated.over_merge_rate


@examples(50)
@given(pair=pairs(unmatched=False), data=st.data())
def test_the_other_way_round(pair, data):
    """What was split is merged, and what was good is bad."""
    truth = data.draw(labelled(pair.items).filter(bool))
    there, back = (diff(*sides, truth=truth, metrics="diff").overall for sides in (pair, pair[::-1]))
    for name in ("rate", "jaccard_distance"):
        assert there[f"split_{name}"] == close(back[f"merge_{name}"])
    for name in ("rate", "distance"):
        assert there[f"good_split_{name}"] == close(back[f"bad_merge_{name}"])
        assert there[f"bad_split_{name}"] == close(back[f"good_merge_{name}"])
    for name in ("delta_precision", "delta_recall", "delta_jaccard_distance", "iq"):
        assert there[name] == pytest.approx(-back[name], rel=1e-9, abs=1e-11, nan_ok=True)


@examples(50)
@given(pair=pairs(unmatched=False), data=st.data())
def test_deltas_compose(pair, data):
    truth, third = (
        data.draw(labelled(pair.items).filter(lambda t: len(t) == len(pair.items))) for _ in range(2)
    )
    a, b = pair
    names = ["delta_precision", "delta_recall", "delta_jaccard_distance"]
    first, second, both = (
        diff(*sides, truth=truth, metrics=names).overall for sides in ((a, b), (b, third), (a, third))
    )
    for name in names:
        assert first[name] + second[name] == close(both[name])


def test_nothing_changed():
    d = fb.diff(BASELINE, BASELINE | {}, truth=TRUTH)
    assert d.jaccard_distance == d.affected_rate == d.good_distance == d.delta_precision == 0
    assert math.isnan(d.iq) and "nothing changed" in d.not_computed["iq"]
    assert "Nothing changed for the 6 items" in repr(d)


@pytest.mark.cases(6, 99)
@pytest.mark.parametrize("name", [n for n, m in METRICS.items() if m.takes_three])
@examples(20)
@given(data=st.data())
def test_functions_equal_the_diff(name, data):
    n = data.draw(st.integers(1, 8))
    labels = [data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)) for _ in range(3)]
    weight = data.draw(weights(n))
    found = getattr(fb.metrics, name)(*labels, sample_weight=weight)
    d = fb.diff(*labels[:2], truth=labels[2], weight=weight, metrics=[name])
    assert found == pytest.approx(d.overall[name], rel=1e-12, abs=1e-12, nan_ok=True)
