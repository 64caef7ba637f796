"""Outcomes: every cluster has one, by its definition; how many have, and what they cost, adds up."""

import json
from fractions import Fraction

import naive
import numpy as np
import pyarrow.parquet as pq
import pytest
from both_engines import SETTINGS, both
from effort import examples
from hypothesis import given
from hypothesis import strategies as st
from strategies import POLICIES, pairs, weights

import fastbcubed as fb
from fastbcubed.errors import MetricError, NotKeptError, OptionError
from fastbcubed.results import cluster_outcomes
from fastbcubed.runtime.threads import Pool

NAMES = {
    "true": ["exact", "split", "merged", "split and merged"],
    "pred": ["exact", "fragment", "union", "mixed"],
}
LOSSES = ["precision_loss", "recall_loss"]
TOLERANCE = {"rel": 1e-12, "abs": 1e-12}


def naive_rows(pair, options):
    """Return the table of outcomes, by the definition."""
    twin = naive.evaluate(
        *pair, options.get("weight"), unmatched=options["unmatched"], weighting=options["weighting"]
    )
    for side, names in NAMES.items():
        groups = twin.clusters(side).values()
        for name in names:
            own = [group for group in groups if twin.outcome(side, group) == name]
            items = [e for group in own for e in group]
            yield {
                "side": side, "outcome": name, "n_clusters": len(own), "n_items": len(items),
                "weight": sum((twin.weight[e] for e in items), Fraction(0)),
            } | {loss: twin.loss(loss, items) for loss in LOSSES}  # fmt: skip


def options_of(data, pair):
    weighting = data.draw(st.sampled_from(["pointwise", "outer"]))
    options = {"unmatched": data.draw(st.sampled_from(POLICIES)), "weighting": weighting, "metrics": ["f1"]}
    weight = data.draw(weights(len(pair.items), zeros=weighting == "outer"))
    return options if weight is None else options | {"weight": dict(zip(pair.items, weight, strict=True))}


def assert_outcomes(ev, expected):
    table = ev.outcomes()
    assert table.column_names == ["side", "outcome", "n_clusters", "n_items", "weight", *LOSSES]
    for row, wanted in zip(table.to_pylist(), expected, strict=True):
        for name in ("side", "outcome", "n_clusters", "n_items"):
            assert row[name] == wanted[name], name
        for name in ("weight", *LOSSES):
            assert row[name] == pytest.approx(float(wanted[name]), **TOLERANCE), name
        assert ev.summary[row["side"]]["outcomes"][row["outcome"]] == row["n_clusters"]


@pytest.mark.cases(1)
@SETTINGS
@given(pairs(max_size=25), st.data())
def test_outcomes_by_definition(many_shards, tmp_path, pair, data):
    options = options_of(data, pair)
    engines = both(*pair, **options)
    expected = list(naive_rows(pair, options))
    for ev in engines:
        assert_outcomes(ev, expected)
        for keep in ("scores", "cells"):
            ev.save(tmp_path, keep=keep)
            loaded = fb.load(tmp_path)
            assert_outcomes(loaded, expected)
            assert loaded.summary == ev.summary
        for side in NAMES:
            stored = pq.read_table(tmp_path / f"{side}_clusters.parquet")["outcome"].to_pylist()
            for each in (ev, loaded):
                listed = each.clusters(side)
                found = listed["outcome"].to_pylist()
                counts = ev.summary[side]["outcomes"]
                assert {name: found.count(name) for name in NAMES[side]} == counts
                assert [name == "exact" for name in found] == listed["exact"].to_pylist()
                for name in NAMES[side]:
                    for limit in (None, 2):
                        own = each.clusters(side, outcome=name, limit=limit)
                        wanted = [row for row in listed.to_pylist() if row["outcome"] == name][:limit]
                        assert len(own) == len(wanted)
                        assert own[LOSSES[0]].to_pylist() == [row[LOSSES[0]] for row in wanted]
                        assert set(own["outcome"].to_pylist()) <= {name}
            assert len(stored) >= len(found)


@examples(30)
@given(pairs(max_size=25), st.data(), st.integers(1, 9))
def test_many_passes_come_to_the_same(pair, data, most):
    _, ev = both(*pair, **options_of(data, pair))
    found = cluster_outcomes.count_outcomes(ev.contingency, Pool(1), most)
    for name in found.column_names[:4]:
        assert found[name].equals(ev.outcomes()[name])
    for name in found.column_names[4:]:
        assert found[name].to_pylist() == pytest.approx(ev.outcomes()[name].to_pylist(), **TOLERANCE)


def test_worked_example():
    """One cluster of each kind, by hand.

    True: a = 1 2 exact; b = 3 4 split; c = 5 6 and d = 7 merged; e = 8 9 10 split and merged.
    Predicted: 1 2; 3 and 4, fragments; 5 6 7, a union of c and d; 8, a fragment; 9 to 12 mixed, of e and f = 11 12 13,
    which is split and merged; 13 a fragment.
    """
    truth = dict(zip(range(1, 14), "aabbccdeeefff", strict=True))
    prediction = dict(zip(range(1, 14), [1, 1, 2, 3, 4, 4, 4, 5, 6, 6, 6, 6, 7], strict=True))
    ev = fb.evaluate(truth, prediction)
    expected = {
        ("true", "exact"): (1, 2, 0, 0),
        ("true", "split"): (1, 2, 0, 2 * Fraction(1, 2)),
        ("true", "merged"): (2, 3, 2 * Fraction(1, 3) + Fraction(2, 3), 0),
        ("true", "split and merged"): (2, 6, 4 * Fraction(1, 2), 2 * (2 * Fraction(1, 3) + Fraction(2, 3))),
        ("pred", "exact"): (1, 2, 0, 0),
        ("pred", "fragment"): (4, 4, 0, 2 * Fraction(1, 2) + 2 * Fraction(2, 3)),
        ("pred", "union"): (1, 3, 2 * Fraction(1, 3) + Fraction(2, 3), 0),
        ("pred", "mixed"): (1, 4, 4 * Fraction(1, 2), 4 * Fraction(1, 3)),
    }
    rows = ev.outcomes().to_pylist()
    assert [(row["side"], row["outcome"]) for row in rows] == list(expected)
    for row in rows:
        clusters, items, *losses = expected[row["side"], row["outcome"]]
        assert (row["n_clusters"], row["n_items"], row["weight"]) == (clusters, items, items)
        assert [row[loss] for loss in LOSSES] == pytest.approx([float(loss) / 13 for loss in losses])


def test_items_outside_are_company():
    """Item 3 is unknown to the truth: a is whole, but with it, and nothing says that the cluster of 3 is whole.

    So the predicted cluster is mixed; the other one is a union of b and c.
    """
    truth, prediction = (
        dict(zip(range(1, 6), "aa bc", strict=True)),
        dict(zip(range(1, 6), "xxxyy", strict=True)),
    )
    del truth[3]
    ev = fb.evaluate(truth, prediction, unmatched="outside")
    assert ev.summary["true"]["outcomes"] == {"exact": 0, "split": 0, "merged": 3, "split and merged": 0}
    assert ev.summary["pred"]["outcomes"] == {"exact": 0, "fragment": 0, "union": 1, "mixed": 1}
    assert ev.clusters("pred", outcome="mixed")["cluster"].to_pylist() == ["x"]
    assert [ev.cluster("pred", label)["outcome"] for label in "xy"] == ["mixed", "union"]
    d = fb.diff(truth, prediction, unmatched={"experiment": "outside"})
    assert [d.cluster("experiment", label)["outcome"] for label in "xy"] == ["mixed", "union"]


def test_scores_alone_on_disk_have_no_outcomes():
    ev = fb.evaluate([0, 0, 1], [0, 1, 1], engine="disk", keep="scores")
    assert "outcomes" not in ev.summary["true"]
    assert json.loads(ev.to_json())["outcomes"] is None
    with pytest.raises(NotKeptError, match="keep="):
        ev.outcomes()


def test_overlapping_clusters_have_no_outcomes(tmp_path):
    ev = fb.evaluate({1: {0, 1}, 2: {0}}, {1: {0}, 2: {0}}, overlapping=True)
    for ask in (ev.outcomes, lambda: ev.clusters("true", outcome="split")):
        with pytest.raises(MetricError, match="overlap"):
            ask()
    assert "outcome" not in ev.clusters("true").column_names
    assert "outcomes" not in ev.summary["true"]
    ev.save(tmp_path)
    with pytest.raises(MetricError, match="overlap"):
        fb.load(tmp_path).outcomes()


def test_unknown_outcomes_are_refused():
    ev = fb.evaluate([0, 0, 1], [0, 1, 1])
    with pytest.raises(OptionError, match="'exact', 'split', 'merged', 'split and merged', not 'mixed'"):
        ev.clusters("true", outcome="mixed")
    with pytest.raises(OptionError, match="predicted cluster must be one of 'exact', 'fragment'"):
        ev.clusters("pred", outcome=3)


@pytest.mark.slow
def test_outcomes_are_the_same_for_any_number_of_threads():
    rng = np.random.default_rng(3)
    n = 700_000
    ev = fb.evaluate(
        rng.integers(0, 300_000, n), rng.integers(0, 300_000, n), weight=rng.random(n) + 0.1, metrics=["f1"]
    )
    tables = [cluster_outcomes.count_outcomes(ev.contingency, Pool(threads)) for threads in (1, 2)]
    assert tables[0].equals(tables[1])


def test_outcomes_are_not_worked_out_before_they_are_asked_for(monkeypatch):
    asked = []
    monkeypatch.setattr(cluster_outcomes, "count_outcomes", lambda *_: asked.append(1))
    ev = fb.evaluate([0, 0, 1, 1], [0, 1, 1, 1], slices=["true_size"])
    assert not asked and ev.warnings is not None and ev.f1 and not asked
    assert ev.summary["true"]["clusters"] == 2 and asked == [1]
