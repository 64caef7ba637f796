"""How the loss is spread over clusters: curves, the figures that come from them, and the sentence."""

import math

import numpy as np
import pytest
from both_engines import SETTINGS, both
from effort import examples
from hypothesis import given
from hypothesis import strategies as st
from strategies import POLICIES, pairs, weights

import fastbcubed as fb
from fastbcubed.errors import NotKeptError, OptionError, SliceError
from fastbcubed.results import concentration
from fastbcubed.results.concentration import LossCurve, SizeClasses, concentration_sentence, loss_curves

LOSS = {"true": "recall_loss", "pred": "precision_loss"}
COLUMNS = ["n_clusters", "share_clusters", "share_loss"]


def naive_curve(ev, side):
    """Return, for each number of clusters, the share of the loss that the costliest of them have."""
    losses = sorted(ev.clusters(side)[LOSS[side]].to_pylist(), reverse=True)
    total = math.fsum(losses)
    return [math.fsum(losses[:n]) / total if total else math.nan for n in range(1, len(losses) + 1)]


@pytest.mark.cases(1)
@SETTINGS
@given(pairs(max_size=30), st.data())
def test_curves_of_both_engines(many_shards, tmp_path, pair, data):
    weighting = data.draw(st.sampled_from(["pointwise", "outer"]))
    options = {"unmatched": data.draw(st.sampled_from(POLICIES)), "weighting": weighting, "metrics": ["f1"]}
    weight = data.draw(weights(len(pair.items), zeros=weighting == "outer"))
    if weight is not None:
        options["weight"] = dict(zip(pair.items, weight, strict=True))
    engines = both(*pair, **options)
    engines[1].save(tmp_path, keep="cells")
    for ev in (*engines, fb.load(tmp_path)):
        for side in LOSS:
            expected = naive_curve(engines[1], side)
            curve = ev.lorenz(side)
            assert curve.column_names == COLUMNS
            assert curve["n_clusters"].to_pylist() == list(range(1, len(expected) + 1))
            assert curve["share_clusters"].to_pylist() == pytest.approx(
                [n / len(expected) for n in range(1, len(expected) + 1)]
            )
            assert curve["share_loss"].to_pylist() == pytest.approx(
                expected, rel=1e-9, abs=1e-12, nan_ok=True
            )
            figures = ev.concentration[side]
            assert figures["n_clusters"] == len(expected)
            rate = "under_merge_rate" if side == "true" else "over_merge_rate"
            assert figures["loss"] == pytest.approx(ev.metric(rate), rel=1e-12, abs=1e-12)
            lossy = np.count_nonzero(np.array(ev.clusters(side)[LOSS[side]].to_pylist()) > 0)
            assert figures["n_lossy"] == lossy
            few = figures["n_half"]
            if not lossy:
                assert few == 0
                continue
            assert expected[few - 1] >= 0.5 - 1e-9 and (few == 1 or expected[few - 2] < 0.5 + 1e-9)


@examples(100)
@given(st.lists(st.integers(0, 5), min_size=1, max_size=60), st.one_of(st.none(), st.integers(0, 70)))
def test_rows_that_are_left_are_right(losses, limit):
    curve = LossCurve.of(len(losses), np.array(losses, float))
    table = curve.table(limit)
    n = table["n_clusters"].to_pylist()
    assert len(n) <= len(losses) and (limit is None or len(n) <= limit)
    assert n == sorted(set(n))
    if limit is None or limit >= len(losses):
        assert n == list(range(1, len(losses) + 1))
    if limit is None or limit >= 3:
        assert {1, len(losses), max(1, sum(loss > 0 for loss in losses))} <= set(n)
    total = sum(losses)
    for rows, share in zip(n, table["share_loss"].to_pylist(), strict=True):
        upto = sum(sorted(losses, reverse=True)[:rows])
        assert share == pytest.approx(upto / total) if total else math.isnan(share)
    if total:
        (half,) = [k for k in range(1, len(losses) + 1) if curve.first_with(0.5) == k]
        assert 2 * sum(sorted(losses, reverse=True)[:half]) >= total
        assert half == 1 or 2 * sum(sorted(losses, reverse=True)[: half - 1]) < total


@examples(30)
@given(pairs(max_size=30), st.integers(1, 3000))
def test_little_room_takes_many_passes(pair, room):
    _, ev = both(*pair)
    table = ev.contingency
    whole = loss_curves(table, {"true": table.n_true, "pred": table.n_pred})
    try:
        found = loss_curves(table, {"true": table.n_true, "pred": table.n_pred}, room)
    except OptionError as error:
        assert "raise memory_limit" in str(error)
        return
    for side, curve in whole.items():
        assert np.array_equal(found[side].counts, curve.counts) and np.array_equal(
            found[side].losses, curve.losses
        )


@examples(50)
@given(
    st.lists(st.tuples(st.integers(0, 70), st.floats(0.5, 2.0)), max_size=40),
    st.booleans(),
    st.integers(1, 9),
)
def test_clusters_by_size(clusters, outer, at_once):
    n, weight = (np.array([each[k] for each in clusters], kind) for k, kind in enumerate((np.int64, float)))
    lost = {"precision_loss": weight / 2, "recall_loss": weight / 4}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(concentration, "AT_ONCE", at_once)
        found = SizeClasses.of(n, weight, lost, outer=outer)
    for power in range(8):
        own = [(m, w) for m, w in clusters if 2**power <= m < 2 ** (power + 1)]
        assert (found.n_clusters[power], found.n_items[power]) == (len(own), sum(m for m, _ in own))
        sums = {
            "weight": sum(w for _, w in own),
            "per_item": sum(w / m for m, w in own),
            "squares": sum(w * m if outer else w * w for m, w in own),
            "precision_loss": sum(w for _, w in own) / 2,
            "recall_loss": sum(w for _, w in own) / 4,
        }
        assert {name: getattr(found, name)[power] for name in sums} == pytest.approx(sums)


def test_a_long_curve_is_thinned():
    """One cluster of two strangers, costing 2 * 1/2; 30,000 pairs of mates; then singletons."""
    truth = [0, 1, *np.repeat(np.arange(2, 30_002), 2), *range(40_000, 50_000)]
    prediction = [0, 0, *truth[2:]]
    curve = fb.evaluate(truth, prediction).lorenz("pred", limit=50)
    assert len(curve) <= 50
    assert curve["n_clusters"].to_pylist()[:3] == [1, 2, 3] and curve["n_clusters"].to_pylist()[-1] == 40_001
    assert set(curve["share_loss"].to_pylist()) == {1.0}


def test_sides_go_by_either_name():
    ev = fb.evaluate([0, 0, 1], [0, 1, 1])
    assert ev.lorenz("truth") == ev.lorenz("true") and ev.lorenz("prediction") == ev.lorenz("pred")
    assert ev.clusters("truth") == ev.clusters("true") and ev.clusters("prediction") == ev.clusters("pred")
    for wrong in ("both", 3, ["true"], None):
        for ask in (ev.lorenz, ev.clusters):
            with pytest.raises(SliceError, match='side must be "true" or "pred"'):
                ask(wrong)
    with pytest.raises(OptionError, match="limit"):
        ev.lorenz("true", limit=-1)


def test_cells_have_to_be_kept(tmp_path):
    ev = fb.evaluate([0, 0, 1], [0, 1, 1])
    ev.save(tmp_path, keep="scores")
    with pytest.raises(NotKeptError, match="keep="):
        fb.load(tmp_path).lorenz("true")


PRECISION, RECALL = "Half of the precision loss is in", "Half of the recall loss is in"
AND_PRECISION, AND_RECALL = "half of the precision loss in", "half of the recall loss in"
FIRST, CAUSE = ": look at these first.", ": look for a systematic cause."


@pytest.mark.parametrize(
    ("pred", "true", "expected"),
    [
        ((0.2, 9, 300), (0.2, 20, 400), f"{PRECISION} 9 predicted clusters, {AND_RECALL} 20 true ones{FIRST}"),
        ((0.2, 9, 300), (0.3, 20, 400), f"{RECALL} 20 true clusters, {AND_PRECISION} 9 predicted ones{FIRST}"),
        ((0.2, 9, 300), (0.1, 1084, 4000), f"{PRECISION} 9 predicted clusters{FIRST} {RECALL} 1,084 true clusters{CAUSE}"),  # noqa: E501
        ((0.2, 9, 300), (0.5, 1084, 4000), f"{RECALL} 1,084 true clusters{CAUSE} {PRECISION} 9 predicted clusters{FIRST}"),  # noqa: E501
        ((0.2, 60, 300), (0.1, 1084, 4000), f"{PRECISION} 60 predicted clusters, {AND_RECALL} 1,084 true ones{CAUSE}"),
        ((0.1, 9, 300), (0.5, 1084, 4000), f"{RECALL} 1,084 true clusters{CAUSE} {PRECISION} 9 predicted clusters."),
        ((0.01, 9, 300), (0.5, 1084, 4000), f"{RECALL} 1,084 true clusters{CAUSE}"),
        ((0, 0, 0), (0.5, 1, 1), f"{RECALL} 1 true cluster: fix it first."),
        ((0.1, 200, 10_000), (0, 0, 0), f"{PRECISION} 200 predicted clusters."),
        ((0, 0, 0), (0, 0, 0), ""),
    ],
)  # fmt: skip
def test_sentences(pred, true, expected):
    figures = {
        side: dict(zip(("loss", "n_half", "n_lossy"), n, strict=True))
        for side, n in (("pred", pred), ("true", true))
    }
    assert concentration_sentence(figures) == expected
