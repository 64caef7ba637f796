"""Losses: what items, clusters and slices cost add up to what all items lose, in every listing that has them."""

import pyarrow as pa
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


@pytest.mark.cases(1)
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


@pytest.mark.cases(1)
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


#: Precisions are 2/3, 2/3, 1/3, 1, 1, 1, 1 and recalls 1, 1, 1/2, 1/2, 1, 1, 1.
SEVEN = ([0, 0, 1, 1, 2, 2, 2], [0, 0, 0, 1, 2, 2, 2])
BY_NAME, BY_LOSS = list("abpqyz"), list("zyabqp")
LOST = [7 / 6, 1 / 2, 1 / 3, 1 / 3, 0, 0]


@pytest.mark.parametrize("name", ["part", "loss"])
def test_slices_are_listed_by_what_they_cost(name, tmp_path):
    """By both losses, then by weight ("q" has two items), then by slice."""
    ev = fb.evaluate(*SEVEN, attributes={name: list("abzypqq")}, slices=name)
    ev.save(tmp_path / "items")
    ev.save(tmp_path / "scores", keep="scores")
    for each in (ev, fb.load(tmp_path / "items"), fb.load(tmp_path / "scores")):
        found = each.slices(name, order_by="loss")
        assert found[name].to_pylist() == BY_LOSS
        lost = [row["precision_loss"] + row["recall_loss"] for row in found.to_pylist()]
        assert lost == pytest.approx([each / 7 for each in LOST])
        for limit in range(8):
            assert each.slices(name, limit=limit)[name].to_pylist() == BY_LOSS[:limit]
        assert each.slices(name)[name].to_pylist() == BY_NAME
        assert each.slices(name, order_by="precision_loss", limit=4)[name].to_pylist() == list("zabq")
        assert each.slices(name, order_by="n_items", limit=2)[name].to_pylist() == list("qa")
    own = {"few": [0], "many": [2, 3]}
    assert ev.slices(own)["slice"].to_pylist() == ["few", "many"]
    assert ev.slices(own, limit=1)["slice"].to_pylist() == ["many"]


@pytest.mark.cases(0)
def test_all_listings_take_loss_for_an_order(many_shards):
    truth, prediction = ({f"i{k}": label for k, label in enumerate(side)} for side in SEVEN)
    for ev in both(truth, prediction, keep="items"):
        for side, loss in (("true", "recall_loss"), ("pred", "precision_loss")):
            for limit in (None, 2):
                assert ev.clusters(side, order_by="loss", limit=limit) == ev.clusters(side, limit=limit)
                assert ev.clusters(side, order_by=loss, limit=limit) == ev.clusters(side, limit=limit)
        assert ev.cells(order_by="loss", limit=2) == ev.cells(limit=2)
        assert ev.cells(limit=2)["n_items"].to_pylist() == [1, 2]  # 7/6, 2/3
        assert ev.items(order_by="loss", limit=2)["item"].to_pylist() == ["i2", "i3"]
        with pytest.raises(fb.errors.MetricError, match=r"there are .*, loss\. Name a score"):
            ev.slices("true_size", order_by="nope")


def test_overlapping_slices_are_listed_by_what_they_cost():
    """Items 0 and 1 are rightly together, 2 and 3 are not."""
    pair = [
        pa.table(side)
        for side in (
            {"item": [0, 1, 2, 3], "cluster": [0, 0, 1, 2]},
            {"item": [0, 1, 2, 3], "cluster": [0, 0, 1, 1]},
        )
    ]
    ev = fb.evaluate(*pair, attributes={"item": [0, 1, 2, 3], "part": list("abxx")}, overlapping=True)
    assert ev.slices("part", limit=2)["part"].to_pylist() == ["x", "a"]
