"""Losses: what items, clusters and slices cost add up to what all items lose, in every listing that has them."""

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from both_engines import SETTINGS, both
from hypothesis import given
from hypothesis import strategies as st
from strategies import POLICIES, pairs, weights

import fastbcubed as fb

LOSSES = {"precision_loss": "over_merge_rate", "recall_loss": "under_merge_rate"}


def options_of(data, pair):
    weighting = data.draw(st.sampled_from(["pointwise", "outer"]))
    options = {"unmatched": data.draw(st.sampled_from(POLICIES)), "weighting": weighting}
    weight = data.draw(weights(len(pair.items), zeros=weighting == "outer"))
    if weight is not None:
        options["weight"] = dict(zip(pair.items, weight, strict=True))
    return options | {"metrics": ["f1"]}  # losses are there whatever is asked for


def assert_adds_up(table, ev):
    for loss, rate in LOSSES.items():
        expected = ev.metric(rate)
        assert sum(table[loss].to_pylist()) == pytest.approx(expected, rel=1e-12, abs=1e-12), loss
        assert min(table[loss].to_pylist()) >= 0


@SETTINGS
@given(pairs(max_size=30), st.data())
def test_losses_add_up(many_shards, tmp_path, pair, data):
    options = options_of(data, pair)
    slices = ["true_size", ("true_size", "pred_size")]
    for ev in both(*pair, slices=slices, keep="items", **options):
        assert_adds_up(ev.items(), ev)
        ev.save(tmp_path, keep="items")
        loaded = fb.load(tmp_path)
        for each in (ev, loaded):
            for side in ("true", "pred"):
                assert_adds_up(each.clusters(side), ev)
                assert_adds_up(pq.read_table(tmp_path / f"{side}_clusters.parquet"), ev)
            for by in slices:
                assert_adds_up(each.slices(by), ev)
            for table in each.sliced.values():
                assert_adds_up(table, ev)
        assert_adds_up(loaded.items(), ev)
        table = pq.read_table(tmp_path / "slices.parquet")
        for by in ("true_size", "true_size,pred_size"):
            assert_adds_up(table.filter(pc.equal(table["by"], by)), ev)


@SETTINGS
@given(pairs(max_size=30), st.data())
def test_subsets_have_their_share(many_shards, pair, data):
    """Every item is in both subsets, so that each of them loses all there is to lose."""
    options = options_of(data, pair) | {"unmatched": "drop"}
    everyone = [item for item in pair.truth if item in pair.prediction]
    for ev in both(*pair, slices=[{"a": everyone, "b": everyone}], **options):
        (rows,) = (table.to_pylist() for table in ev.sliced.values())
        for row in rows:
            for loss, rate in LOSSES.items():
                assert row[loss] == pytest.approx(ev.metric(rate), rel=1e-12, abs=1e-12)


def test_columns_stand_before_the_scores():
    ev = fb.evaluate([0, 0, 1, 1], [0, 0, 0, 1], metrics=["f1"])
    counts = ["n_items", "weight", "n_parts", "exact", "outcome"]
    assert ev.clusters("true").column_names == ["cluster", *counts, *LOSSES, "f1"]
    assert ev.slices("true_size").column_names == ["true_size", "n_items", "weight", *LOSSES, "f1"]
    assert ev.items().column_names[4:] == ["tp", "fp", "fn", "tn", *LOSSES]


def test_clusters_are_listed_by_what_they_cost():
    """One pair of strangers has the worst precision; a large cluster with one stranger costs most.

    Predicted: "pair" of two strangers, 1/2 lost by each of 2 items; "big" of 9 and 1 strangers: 9 items lose 1/10
    and one 9/10; "whole" of 8 items loses nothing. Of 20 items.
    """
    truth = [0, 1, *[2] * 9, 3, *[4] * 8]
    prediction = ["pair"] * 2 + ["big"] * 10 + ["whole"] * 8
    ev = fb.evaluate(truth, prediction)
    listed = ev.clusters("pred")
    assert listed["cluster"].to_pylist() == ["big", "pair", "whole"]
    assert listed["precision_loss"].to_pylist() == pytest.approx([1.8 / 20, 1 / 20, 0])
    assert ev.clusters("pred", order_by="precision")["cluster"].to_pylist() == ["pair", "big", "whole"]
    assert ev.clusters("pred", order_by="recall_loss")["cluster"].to_pylist() == ["big", "whole", "pair"]
    assert ev.clusters("true")["recall_loss"].to_pylist() == [0] * 5
    assert ev.clusters("true", order_by="precision_loss", limit=2)["cluster"].to_pylist() == [2, 3]
