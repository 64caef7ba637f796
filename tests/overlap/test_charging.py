"""What overlapping clusters cost: each pair's loss is split among the clusters that the two share."""

from fractions import Fraction

import naive_overlap as twin
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies_overlap import covers
from test_against_naive_overlap import NARROW, evaluate, exact, finding, many, weighted_or_not

import fastbcubed as fb

pytestmark = pytest.mark.filterwarnings("ignore::fastbcubed.errors.EvaluationWarning")
LOSSES = {"precision_loss": "over_merge_rate", "recall_loss": "under_merge_rate"}
TOLERANCE = {"rel": 1e-12, "abs": 1e-12}


def losses_of(ev, side):
    return sorted(zip(*(ev.clusters(side)[name].to_pylist() for name in LOSSES), strict=True))


@pytest.mark.slow
@many
@given(covers(), st.data(), st.sampled_from(["drop", "singleton", "outside"]))
def test_losses_by_definition(tmp_path_factory, pair, data, unmatched):
    weight = data.draw(weighted_or_not(pair))
    with finding(data.draw(NARROW)):
        ev = evaluate(pair, weight, unmatched=unmatched)
    families = twin.align(*pair, unmatched)
    expected = twin.losses_by_cluster(*families, exact(weight))
    directory = tmp_path_factory.mktemp("saved")
    ev.save(directory, keep="cells")
    for each in (ev, fb.load(directory)):
        for side, family in zip(("true", "pred"), families, strict=True):
            scored = [
                k
                for k, cluster in enumerate(family)
                if cluster & set(twin.items_of(families[side == "true"]))
            ]
            rows = sorted(
                (expected[side]["precision_loss"][k], expected[side]["recall_loss"][k]) for k in scored
            )
            found = losses_of(each, side)
            for column in range(2):
                assert sorted(row[column] for row in found) == pytest.approx(
                    sorted(float(row[column]) for row in rows), **TOLERANCE
                )
            for k, rate in enumerate(LOSSES.values()):
                assert sum(row[k] for row in found) == pytest.approx(ev.metric(rate), **TOLERANCE)


def test_exact_clusters_do_not_lead_the_list():
    """Items 1 to 6 are alone on both sides, and in a cluster of all of them on one: the large one is to blame.

    Predicted: {1} … {6} and {1, …, 6}; true: {1} … {6}. Item 1 shares both predicted clusters with itself, and one true
    one: it loses 1/2, split on the two. It shares the large one with five strangers, and loses 1 with each. Of 6 mates.
    """
    items = range(1, 7)
    truth = {item: {f"t{item}"} for item in items}
    prediction = {item: {f"p{item}", "all"} for item in items}
    ev = fb.evaluate(truth, prediction, overlapping=True)
    rows = {row["cluster"]: row for row in ev.clusters("pred").to_pylist()}
    assert ev.clusters("pred", limit=1)["cluster"].to_pylist() == ["all"]
    assert rows["all"]["precision_loss"] == pytest.approx(float(Fraction(5 + Fraction(1, 4), 6)))
    assert rows["p1"]["precision_loss"] == pytest.approx(float(Fraction(1, 4) / 6 / 6))
    curve = ev.lorenz("pred")
    assert curve["share_loss"].to_pylist()[0] == pytest.approx(
        rows["all"]["precision_loss"] / ev.metric("over_merge_rate")
    )
    assert ev.concentration["pred"]["n_half"] == 1 and ev.concentration["true"]["n_half"] == 0


def test_partitions_as_covers_cost_the_same():
    truth = {item: item // 3 for item in range(60)}
    prediction = {item: item // 4 + (item % 7 == 0) * 100 for item in range(60)}
    weight = {item: 1 + item % 5 for item in range(60)}
    for options in ({}, {"weight": weight}, {"weight": weight, "weighting": "outer"}):
        plain = fb.evaluate(truth, prediction, **options)
        sets = [{item: {label} for item, label in side.items()} for side in (truth, prediction)]
        cover = fb.evaluate(*sets, overlapping=True, **options)
        for side in ("true", "pred"):
            ours, theirs = (
                {row["cluster"]: row for row in ev.clusters(side).to_pylist()} for ev in (cover, plain)
            )
            assert ours.keys() == theirs.keys()
            for cluster, row in ours.items():
                for loss in LOSSES:
                    assert row[loss] == pytest.approx(theirs[cluster][loss], **TOLERANCE)
