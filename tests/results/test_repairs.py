"""Repairs: what each brings alone and what the first k bring together, against rows labelled anew."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import naive_repairs
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from both_engines import SETTINGS, both
from hostile import refused
from hypothesis import given
from hypothesis import strategies as st
from naive import evaluate as naive_evaluate
from strategies import POLICIES, pairs, weights

import fastbcubed as fb
from fastbcubed.errors import FileFormatError, MetricError, NotKeptError, OptionError
from fastbcubed.results import repairs as inner

SCORES = ("running", "running_precision", "running_recall")
GAINS = ("gain", "precision_gain", "recall_gain")
TIGHT = {"rel": 1e-12, "abs": 1e-12}


def _array(values: list[Any]) -> pa.Array:
    unsigned = any(isinstance(value, int) and value >= 2**63 for value in values)
    return pa.array(values, pa.uint64() if unsigned else None)


def label_of(text: Any, labels: Any) -> Any:
    """Return the label that a cell of a table stands for, where labels of both sides had to become texts."""
    return next(each for each in labels if text in (each, str(each)))


@pytest.mark.cases(1)
@SETTINGS
@given(pairs(max_size=9), st.sampled_from(POLICIES), st.sampled_from(["pointwise", "outer"]), st.data())
def test_repairs_bring_what_rows_labelled_anew_bring(
    many_shards, tmp_path_factory, pair, policy, weighting, data
):
    weight = data.draw(weights(len(pair.items), zeros=weighting == "outer"))
    given_weights = None if weight is None else dict(zip(pair.items, weight, strict=True))
    options = {"unmatched": policy, "weighting": weighting}
    try:
        twin = naive_evaluate(*pair, given_weights, **options)
    except ValueError:  # all scored items may weigh 0
        return
    tables = [pa.table({"item": _array(list(s)), "cluster": _array(list(s.values()))}) for s in pair]
    on_disk, in_memory = both(*tables, weight=given_weights, **options)
    path = tmp_path_factory.mktemp("saved")
    in_memory.save(path, keep="cells")
    expected = naive_repairs.alone(twin, options)
    for ev in (in_memory, on_disk, fb.load(path)):
        rows = ev.repairs(limit=None).to_pylist()
        labels = {"split": set(pair.prediction.values()), "gather": set(pair.truth.values())}
        names = [(row["kind"], label_of(row["cluster"], labels[row["kind"]])) for row in rows]
        assert sorted(map(repr, names)) == sorted(map(repr, expected))
        prediction = pair.prediction
        for name, row in zip(names, rows, strict=True):
            assert [row[gain] for gain in GAINS] == pytest.approx(list(map(float, expected[name])), **TIGHT)
            prediction = naive_repairs.repaired(twin, prediction, *name)
            after = naive_repairs.scores(twin, prediction, options)
            assert [row[score] for score in SCORES] == pytest.approx(list(map(float, after)), **TIGHT)
        assert [row["gain"] for row in rows] == sorted((row["gain"] for row in rows), reverse=True)
        assert ev.repairs(limit=2).to_pylist() == rows[:2]


@SETTINGS
@given(pairs(max_size=9), st.sampled_from(POLICIES), st.data())
def test_running_scores_hold_in_any_order(pair, policy, data):
    weight = data.draw(weights(len(pair.items)))
    given_weights = None if weight is None else dict(zip(pair.items, weight, strict=True))
    twin = naive_evaluate(*pair, given_weights, unmatched=policy)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ev = fb.evaluate(pair.truth, pair.prediction, weight=given_weights, unmatched=policy)
    start = inner.Start.of(ev.contingency)
    every = inner.Repairs.all_of(start, ["split", "gather"])
    codes = np.array(data.draw(st.permutations(range(every.codes.size))), np.int64)
    chosen = every.take(codes)
    prediction = pair.prediction
    for (precision, recall), split, code in zip(
        start.running(chosen), chosen.splits.tolist(), chosen.codes.tolist(), strict=True
    ):
        side = "pred" if split else "true"
        label = ev.kept.cluster_labels(side, np.array([code]))[0].as_py()
        if label is None:  # made by a policy: the item that is alone on the other side
            return
        prediction = naive_repairs.repaired(twin, prediction, "split" if split else "gather", label)
        after = naive_repairs.scores(twin, prediction, {"unmatched": policy})
        assert [precision, recall] == pytest.approx(list(map(float, after[1:])), **TIGHT)


def test_repairs_worked_by_hand() -> None:
    # true {a b} {c d} {e}, predicted {a b c} {d e}: precision is (2/3 2/3 1/3 1/2 1/2), recall (1 1 1/2 1/2 1)
    ev = fb.evaluate([0, 0, 1, 1, 2], ["x", "x", "x", "y", "y"])
    precision, recall = (2 / 3 + 2 / 3 + 1 / 3 + 1 / 2 + 1 / 2) / 5, 4 / 5
    f1 = 2 * precision * recall / (precision + recall)
    first, *rest = ev.repairs().to_pylist()
    # gathering c and d makes the precision of all 1, and their recall
    assert (first["kind"], first["side"], first["cluster"], first["n_items"]) == ("gather", "true", "1", 2)
    assert first["precision_gain"] == pytest.approx(1 - precision)
    assert first["recall_gain"] == pytest.approx(1 - recall)
    assert first["gain"] == pytest.approx(1 - f1)
    assert first["running"] == 1.0
    assert [row["running"] for row in rest] == [1.0] * len(rest)
    assert {(row["kind"], row["cluster"]) for row in rest} == {
        ("split", "x"), ("split", "y"), ("gather", "0"), ("gather", "2"),
    }  # fmt: skip


def test_labels_of_one_kind_keep_their_type() -> None:
    ev = fb.evaluate([0, 0, 1, 1], [5, 6, 6, 6])
    assert ev.repairs()["cluster"].type == pa.int64()
    assert ev.repairs("split")["cluster"].to_pylist() == [6]
    composite = pa.table({"item": [1, 2, 3], "a": ["u", "u", "v"], "b": [1, 1, 2]})
    ev = fb.evaluate(composite, {1: "x", 2: "y", 3: "y"}, cluster=(["a", "b"], "cluster"))
    assert ev.repairs("gather")["cluster"][0].as_py() == {"a": "u", "b": 1}
    assert ev.repairs()["cluster"][0].as_py() == "u, 1"


@pytest.mark.slow
def test_small_gains_keep_their_digits() -> None:
    n = 10**6
    truth = np.arange(n) // 2
    prediction = truth.copy()
    prediction[1] = n
    (row,) = fb.evaluate(truth, prediction, metrics=["f1"]).repairs().to_pylist()
    loss = 1 / n  # two items of recall 1/2
    assert row["recall_gain"] == pytest.approx(loss, rel=1e-14)
    assert row["gain"] == pytest.approx(1 - 2 * (1 - loss) / (2 - loss), rel=1e-9)


def test_a_perfect_prediction_has_no_repairs() -> None:
    found = fb.evaluate([0, 0, 1], [0, 0, 1]).repairs()
    assert len(found) == 0 and found.column_names[:4] == ["rank", "kind", "side", "cluster"]


def test_what_cannot_be_repaired_is_refused(tmp_path: Path) -> None:
    ev = fb.evaluate([0, 0, 1], [0, 1, 1])
    for kinds in ("merge", (), ["split", "merge"]):
        with refused(OptionError, "kinds"):
            ev.repairs(kinds)
    with refused(OptionError, "limit"):
        ev.repairs(limit=-1)
    with refused(OptionError, "repairs must be a whole number"):
        fb.evaluate([0], [0], repairs=2.5)
    with refused(MetricError, "repairs", "overlap"):
        fb.evaluate({1: {1}, 2: {1, 2}}, {1: {1}, 2: {2}}, overlapping=True).repairs()
    ev.save(tmp_path, keep="scores")
    with pytest.raises(NotKeptError, match='keep="cells"'):
        fb.load(tmp_path).repairs()


def test_repairs_are_a_file_of_a_saved_result(tmp_path: Path) -> None:
    ev = fb.evaluate([0, 0, 1], [0, 1, 1], out=tmp_path, repairs=2)
    assert fb.load(tmp_path).repairs(limit=2) == ev.repairs(limit=2)
    assert pq.read_table(tmp_path / "repairs.parquet").to_pylist() == ev.repairs(limit=2).to_pylist()
    (tmp_path / "repairs.parquet").write_bytes(b"something else")
    with refused(FileFormatError, "repairs.parquet is not the file"):
        fb.load(tmp_path)
    ev.save(tmp_path)
    assert not (tmp_path / "repairs.parquet").exists()


# -- Orders ------------------------------------------------------------------------------------------


def wrong_pairs(true: list[int], pred: list[int], weight: list[int]) -> tuple[int, int]:
    """Return the weight of pairs that are wrongly together, and wrongly apart."""
    fp = fn = 0
    for a in range(len(true)):
        for b in range(a):
            here, there = true[a] == true[b], pred[a] == pred[b]
            fp += weight[a] * weight[b] * (there and not here)
            fn += weight[a] * weight[b] * (here and not there)
    return fp, fn


@given(st.data(), st.booleans())
def test_repairs_by_cost_remove_the_pairs_that_relabelled_rows_lack(data, weighted) -> None:
    n = data.draw(st.integers(2, 9))
    true, pred = (data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)) for _ in range(2))
    weight = data.draw(st.lists(st.integers(1, 5), min_size=n, max_size=n)) if weighted else [1] * n
    ev = fb.evaluate(true, pred, weight=weight if weighted else None)
    fp, fn = wrong_pairs(true, pred, weight)
    found = ev.repairs(limit=None, order_by="5*pair_fp + pair_fn").to_pylist()
    assert [row["value"] for row in found] == sorted((row["value"] for row in found), reverse=True)
    assert len(found) == len(ev.repairs(limit=None))
    for row in found:
        if row["kind"] == "split":
            after = [(p, t) if p == row["cluster"] else p for t, p in zip(true, pred, strict=True)]
        else:
            after = [-1 if t == row["cluster"] else p for t, p in zip(true, pred, strict=True)]
        left = wrong_pairs(true, after, weight)
        assert row["value"] == 5 * (fp - left[0]) + (fn - left[1])


def test_orders_of_repairs(tmp_path: Path) -> None:
    truth, prediction = [0, 0, 0, 1, 1, 2], [5, 5, 6, 6, 7, 7]
    ev = fb.evaluate(truth, prediction)
    usual = ev.repairs(limit=None)
    assert ev.repairs(limit=None, order_by="gain").equals(usual)
    for name in ("precision_gain", "recall_gain", "n_items"):
        found = ev.repairs(order_by=name)[name].to_pylist()
        assert found == sorted(usual[name].to_pylist(), reverse=True) and "value" not in usual.column_names
    ev.save(tmp_path / "saved", keep="cells")
    by = {"order_by": "gain / n_items", "limit": 2}
    disk = fb.evaluate(truth, prediction, engine="disk", spill_dir=tmp_path)
    for other in (disk, fb.load(tmp_path / "saved"), fb.load(tmp_path / "saved", check=False)):
        assert other.repairs(**by).to_pylist() == ev.repairs(**by).to_pylist()
    for wrong in ("f1", "gain**2", "2", "", None, "running", "gain, weight"):
        with pytest.raises(OptionError, match="order_by"):
            ev.repairs(order_by=wrong)
    outer = fb.evaluate(truth, prediction, weight=[1, 2, 3, 4, 5, 6], weighting="outer")
    with pytest.raises(MetricError, match="pair_fp is not defined here"):
        outer.repairs(order_by="pair_fp")
