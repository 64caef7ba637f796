"""Scores on Spark equal those of the memory engine, on tables of every shape and under every policy."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest
from on_spark import assert_same, both, frame

import fastbcubed as fb

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # Spark leaves its sockets to be collected
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

SERVED = [
    "pointwise",
    "bcubed_precision_by_true_cluster",
    "bcubed_f1_by_pred_cluster",
    "elm",
    "pairs",
    "entropy",
]
POLICIES: list[Any] = [
    "drop", "singleton", "outside", {"truth": "drop", "prediction": "singleton"},
]  # fmt: skip


def tables(
    n: int = 60, *, seed: int = 0, ids: str = "int", nulls: float = 0.0, extra: int = 8, shape: str = "any"
) -> tuple[pa.Table, pa.Table]:
    """Return a truth and a prediction, each with some items of its own."""
    random.seed(seed)
    items = list(range(n))
    own = {"truth": items[: n - extra], "prediction": items[extra // 2 :]}
    labels = {
        "any": lambda k: random.randrange(max(1, n // 4)), "singletons": lambda k: k,
        "giant": lambda k: 0 if random.random() < 0.7 else k, "one": lambda k: 7,
    }[shape]  # fmt: skip
    sides = []
    for k, (side, rows) in enumerate(own.items()):
        clusters = [None if random.random() < nulls else labels(row) for row in rows]
        if ids == "string":
            clusters = [None if c is None else f"cluster {c} of {side}" for c in clusters]
        columns: dict[str, Any] = {"item": rows, "cluster": clusters}
        if ids == "string":
            columns["item"] = [f"é{row:03}" for row in rows]
        if ids == "composite":
            del columns["item"]
            columns |= {"source": ["ab"[row % 2] for row in rows], "id": [row // 2 for row in rows]}
        columns["w"] = [random.choice([0.25, 1.0, 3.5]) for _ in rows]
        if k == 0:
            columns["country"] = [random.choice(["US", "DE", None]) for _ in rows]
            columns["year"] = [random.randrange(1990, 1996) for _ in rows]
        sides.append(pa.table(columns).take(pa.array(random.sample(range(len(rows)), len(rows)))))
    return sides[0], sides[1]


@pytest.mark.parametrize("unmatched", POLICIES, ids=str)
def test_every_policy(spark: Any, unmatched: Any) -> None:
    truth, prediction = tables(seed=1, nulls=0.15)
    nulls = "singleton" if unmatched in POLICIES[:3] else "drop"
    weight = {"weight": "w"} if unmatched in POLICIES[::2] else {}
    if unmatched == "drop":
        truth = truth.drop_columns(["w"])
        prediction = prediction.drop_columns(["w"])
        weight = {}
    assert_same(*both(spark, truth, prediction, unmatched=unmatched, nulls=nulls, metrics=SERVED, **weight))


@pytest.mark.parametrize("shape", ["giant", "one"])
def test_every_shape(spark: Any, shape: str) -> None:
    truth, _ = tables(seed=2, shape=shape, extra=0)
    _, prediction = tables(seed=3, extra=0)
    sides = (truth, prediction) if shape != "one" else (prediction, truth)
    assert_same(*both(spark, *sides, partitions=1 if shape == "one" else 5, metrics=SERVED))


@pytest.mark.parametrize("weighting", ["pointwise", "outer"])
def test_weights(spark: Any, weighting: str) -> None:
    truth, prediction = tables(seed=4)
    metrics = [name for name in SERVED if name not in ("pairs", "elm")] + ["accuracy"]
    if weighting == "outer":
        metrics = ["pointwise", "elm", "bcubed_f1_by_true_cluster"]
        zero = pa.array([0.0 if k % 5 == 0 else w for k, w in enumerate(truth["w"].to_pylist())])
        truth = truth.set_column(truth.column_names.index("w"), "w", zero)
    assert_same(*both(spark, truth, prediction, weight="w", weighting=weighting, metrics=metrics, beta=2.0))


def test_string_ids_and_noise(spark: Any) -> None:
    truth, prediction = tables(seed=5, ids="string")
    noise = "cluster 3 of prediction"
    assert_same(*both(spark, truth, prediction, noise=noise, metrics=["f1", "rand"]))


def test_composite_ids(spark: Any) -> None:
    truth, prediction = tables(seed=6, ids="composite", nulls=0.1)
    options = {"item": ["source", "id"], "nulls": "singleton", "unmatched": "singleton"}
    assert_same(*both(spark, truth, prediction, slices=["source"], metrics=["pointwise", "elm"], **options))


def test_composite_labels(spark: Any) -> None:
    truth, prediction = tables(seed=7)
    sides = [
        side.append_column("part", pa.array([k % 2 for k in range(len(side))]))
        for side in (truth, prediction)
    ]
    assert_same(*both(spark, *sides, cluster=["cluster", "part"]))


def test_repeated_rows_are_dropped_and_not_multiplied(spark: Any) -> None:
    truth, prediction = tables(seed=8)
    truth, prediction = (pa.concat_tables([side, side.slice(5, 20)]) for side in (truth, prediction))
    on_spark, in_memory = both(spark, truth, prediction, duplicates="drop", weight=None)
    assert_same(on_spark, in_memory)
    assert on_spark.coverage.n_duplicates == 40


def test_slices(spark: Any) -> None:
    truth, prediction = tables(seed=9)
    source = pa.table({"item": list(range(60)), "size": [k % 3 for k in range(60)]})
    slices = ["country", ("country", "year"), fb.bins("year", 2), ("size", "pred_size"), "true_size"]
    for options in ({"unmatched": "outside"}, {"weight": "w"}):
        metrics = ["pointwise", "rand"] if "weight" not in options else ["precision", "f1", "mcc"]
        if "weight" not in options:
            metrics = ["f1", "mean_f1", "jaccard_index"]
        assert_same(
            *both(spark, truth, prediction, slices=slices, attributes=source, metrics=metrics, **options)
        )


def test_weights_from_a_table(spark: Any) -> None:
    truth, prediction = tables(seed=10)
    weights = pa.table({"item": list(range(60)), "weight": [1.0 + k % 4 for k in range(60)]})
    assert_same(*both(spark, truth, prediction, weight=weights, unmatched="singleton"))


def test_many_partitions_without_adaptive_execution(spark: Any) -> None:
    truth, prediction = tables(seed=11, n=200)
    before = {
        name: spark.conf.get(name) for name in ("spark.sql.adaptive.enabled", "spark.sql.shuffle.partitions")
    }
    try:
        spark.conf.set("spark.sql.adaptive.enabled", "false")
        spark.conf.set("spark.sql.shuffle.partitions", "7")
        assert_same(*both(spark, truth, prediction, 9, metrics=SERVED, slices=["country"]))
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


def test_heavy_clusters_are_kept_apart(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from fastbcubed.spark import aggregate

    monkeypatch.setattr(aggregate, "SKEW_FROM", 1)
    monkeypatch.setattr(aggregate, "SAMPLE", 40)
    monkeypatch.setattr(aggregate, "HEAVY", 1 / 10)
    truth, _ = tables(seed=12, shape="giant", extra=0)
    _, prediction = tables(seed=13, shape="giant", extra=0)
    assert_same(*both(spark, truth, prediction, metrics=SERVED, slices=["year"]))


def test_own_formula(spark: Any) -> None:
    truth, prediction = tables(seed=14)

    def overlap(tp: Any, fp: Any, fn: Any, tn: Any) -> Any:
        return tp / (tp + fp + fn + 0 * tn)

    assert_same(*both(spark, truth, prediction, metrics=[overlap]))


def test_fb_evaluate_goes_where_the_frames_are(spark: Any) -> None:
    truth, prediction = (frame(spark, side) for side in tables(seed=15, extra=0))
    ev = fb.evaluate(truth, prediction, item="item", cluster="cluster")
    assert ev.engine == "spark"
    assert ev.manifest["engine"] == "spark"
    assert '"f1"' in ev.to_json()
    assert "f1" in repr(ev)


def test_dropped_items_of_the_truth_warn_as_in_memory(spark: Any) -> None:
    """Of 20 true pairs the prediction has ten: f1 is 1, and 6/7 if the other items were alone."""
    truth = pa.table({"item": list(range(40)), "cluster": [k // 2 for k in range(40)]})
    on_spark, in_memory = both(spark, truth, truth.slice(0, 20))
    for ev in (in_memory, on_spark):
        (warning,) = (found for found in ev.warnings if found["code"] == "dropping-truth-flatters")
        assert warning["level"] == "warning"
        assert warning["f1_if_alone"] == pytest.approx(6 / 7, abs=1e-12)
