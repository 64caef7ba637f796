"""Estimates from sampled true clusters: worked values, the naive twin, censuses, both engines, what cannot be."""

from __future__ import annotations

import json
import math
import pickle
import re
import warnings
from fractions import Fraction as Fr
from itertools import groupby, product
from pathlib import Path
from typing import Any

import naive
import naive_coreference
import naive_families
import naive_sampling
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from both_engines import LIMIT
from effort import examples
from hypothesis import HealthCheck, assume, example, given
from hypothesis import strategies as st
from strategies import LABELS, Pair, pairs

import fastbcubed as fb
from fastbcubed.errors import (
    AlignmentError,
    ColumnError,
    DuplicateItemError,
    EmptyInputError,
    EvaluationWarning,
    FastBCubedError,
    IdTypeError,
    MetricError,
    NullError,
    OptionError,
    OverlapError,
    WeightError,
)
from fastbcubed.render.json import as_json

#: METRICS 14 and 12: prediction 1,1,2,3,2,4,4,4 against c1,c1,c1,c2,c2,c3,c3,c4.
PREDICTION = dict(zip(range(1, 9), [1, 1, 2, 3, 2, 4, 4, 4], strict=True))
TRUTH = dict(zip(range(1, 9), "aaabbccd", strict=True))
C1, C2, C3, C4 = {1, 2, 3}, {4, 5}, {6, 7, 8}, {8}
BY_CLASS = ("bcubed_precision_by_true_cluster", "bcubed_recall_by_true_cluster")
PAIRS = ("pair_precision", "pair_recall", "pair_f1")
CLUSTERS = ("cluster_precision", "cluster_recall", "cluster_f1")
ITEMS = ("precision", "recall", "jaccard_distance", "mean_f1", "elm_precision", "elm_recall")
SIZES = ("matching_rate", "mean_cluster_size")
MUC, LEA = ("muc_precision", "muc_recall", "muc_f1"), ("lea_precision", "lea_recall")
BEST = ("inverse_purity", "class_f1", "closest_cluster_recall")
RATIOS = (*ITEMS, *BY_CLASS, *PAIRS, *CLUSTERS, *SIZES, *MUC, *LEA, *BEST)
FS = ("f1", "elm_f1", "lea_f1", "bcubed_f1_by_true_cluster")

pytestmark = pytest.mark.filterwarnings("ignore::fastbcubed.errors.EvaluationWarning")


def sample_of(*clusters: set[Any]) -> dict[Any, int]:
    return {item: number for number, cluster in enumerate(clusters) for item in sorted(cluster)}


def table_of(clusters: list[set[Any]], **columns: list[Any]) -> pa.Table:
    """Return a sample with a row for each item, and columns that have a value for each cluster."""
    rows = [(item, k) for k, cluster in enumerate(clusters) for item in sorted(cluster)]
    found: dict[str, Any] = {"item": [item for item, _ in rows], "cluster": [k for _, k in rows]}
    return pa.table(found | {name: [values[k] for _, k in rows] for name, values in columns.items()})


def column(values: Any) -> pa.Array:
    """Return an array of ids, those beyond 2**63 as uint64."""
    values = list(values)
    large = any(isinstance(value, int) and value >= 2**63 for value in values)
    return pa.array(values, pa.uint64() if large else None)


def note_of(est: fb.Estimates, code: str) -> dict[str, Any]:
    (found,) = (each for each in est.warnings if each["code"] == code)
    return found


def told(est: fb.Estimates) -> str:
    """Return all figures of estimates, in a form in which NaN is the same as NaN."""
    return as_json(est.scores().to_pylist())


def same(found: float, wanted: Any) -> bool:
    if isinstance(wanted, float) and math.isnan(wanted):
        return math.isnan(found)
    return math.isclose(found, float(wanted), rel_tol=1e-12, abs_tol=1e-12)


# -- Worked values (METRICS 12) --------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["memory", "disk"])
@pytest.mark.parametrize(
    ("clusters", "score", "estimate", "error"),
    [
        ((C1, C2), "pair_f1", Fr(5, 12), Fr(1, 6)),
        ((C1, C2), "bcubed_precision_by_true_cluster", Fr(19, 24), Fr(1, 24)),
        ((C1, C2), "bcubed_recall_by_true_cluster", Fr(19, 36), Fr(1, 36)),
        ((C1, C2), "precision", 0.808, 0.040),
        ((C1, C2), "recall", 0.53867, 0.02667),
        ((C1, C2, C4), "pair_recall", Fr(19, 64), 0.1082532),
        ((C1, C2, C4), "pair_precision", Fr(7, 18), 0.2545875),
        ((C1, C2, C3), "cluster_precision", 0.26171875, 0.2359323),
        ((C1, C2, C3), "cluster_recall", Fr(1, 3), Fr(1, 3)),
        ((C1, C2, C3), "cluster_f1", 0.2944606, 2 / 7 * math.sqrt(1098 / 1176)),  # 0.2760765
    ],
)
def test_worked_values(clusters: Any, score: str, estimate: Any, error: Any, engine: Any) -> None:
    est = fb.estimate(sample_of(*clusters), PREDICTION, metrics=score, engine=engine)
    digits = 5e-6 if score in ("precision", "recall") else 5e-8
    assert est.overall[score] == pytest.approx(float(estimate), abs=digits)
    assert est.errors[score] == pytest.approx(float(error), abs=digits)


def test_f_of_two_means_by_hand() -> None:
    """P is 4/5 and R 8/15 of c1 and c2, F 16/25; P and R move as one (22/25 - 3/5 and so on are 1/20 apart).

    By item N of precision is 5/2 and 3/2, D is 3 and 2: N_c / N is 5/4 and 3/4, D_c / D is 6/5 and 4/5, so clusters
    move P by 1/20 and -1/20, R (5/3 and 1, mean 4/3) likewise. Both adjust by (6/5 - 4/5) / 20 / 2 = 1/100, and there
    is no curvature, as x = y.
    """
    est = fb.estimate(sample_of(C1, C2), PREDICTION, metrics=["f1", "precision", "recall"])
    assert est.unadjusted.f1 == pytest.approx(16 / 25, abs=1e-15)
    assert est.f1 == pytest.approx(16 / 25 * 1.01, abs=1e-15)
    assert est.errors.f1 == pytest.approx(16 / 25 / 20, abs=1e-15)


def test_sizes() -> None:
    summary = fb.estimate(sample_of(C1, C2, C4), PREDICTION).summary
    assert summary["sample"] == {
        "n_clusters": 3, "n_draws": 3, "n_items": 6, "n_missing": 0, "n_singletons": 1, "largest": 3,
        "effective": 3.0, "n_null": 0, "n_duplicates": 0,
    }  # fmt: skip
    assert summary["pred"] == {
        "n_items": 8, "n_clusters": 4, "mean_cluster_size": 2.0, "n_null": 0, "n_duplicates": 0,
    }  # fmt: skip
    assert summary["true"]["mean_cluster_size"] == 2.0
    assert {q: round(h, 12) for q, h in summary["true"]["hill"].items()} == {"0": 3, "1": 3, "2": 3}


# -- The naive twin --------------------------------------------------------------------------------


@st.composite
def samples(draw: st.DrawFn, most: int = 8) -> tuple[Pair, list[set[Any]], list[int], list[Fr]]:
    """Draw two clusterings, complete true clusters of the first, how often each was drawn, and a weight of each."""
    pair = draw(pairs(max_size=most))
    by_cluster: dict[Any, set[Any]] = {}
    for item, cluster in pair.truth.items():
        by_cluster.setdefault(cluster, set()).add(item)
    chosen = draw(st.lists(st.sampled_from(sorted(by_cluster, key=repr)), min_size=1, unique=True))
    clusters = [by_cluster[each] for each in chosen]
    assume(any(item in pair.prediction for cluster in clusters for item in cluster))
    draws = draw(st.lists(st.integers(1, 3), min_size=len(clusters), max_size=len(clusters)))
    weights = [Fr(draw(st.integers(1, 8)), draw(st.integers(1, 8))) for _ in clusters]
    return pair, clusters, draws, weights


@given(samples(), st.sampled_from(["uniform", "cluster_size", "p"]), st.sampled_from([1, 2, Fr(1, 3)]))
@examples(60)
def test_equals_the_naive_twin(drawn: Any, sampling: str, beta: Any) -> None:
    pair, clusters, draws, weights = drawn
    table = pa.table(
        {
            "item": column(e for c in clusters for e in c),
            "cluster": [k for k, c in enumerate(clusters) for _ in c],
            "draws": [draws[k] for k, c in enumerate(clusters) for _ in c],
            "p": [float(weights[k]) for k, c in enumerate(clusters) for _ in c],
        }
    )
    p = {"uniform": lambda k: 1, "cluster_size": lambda k: Fr(1, len(clusters[k])), "p": lambda k: weights[k]}
    listed = [(clusters[k], p[sampling](k)) for k, n in enumerate(draws) for _ in range(n)]
    names = [*RATIOS, *FS]
    est = fb.estimate(
        table, pair.prediction, sampling=sampling, draws="draws", metrics=names, beta=float(beta)
    )
    for name in est.overall:
        value, error, plain = naive_sampling.estimate(name, listed, pair.prediction, beta)
        assert same(est.unadjusted[name], plain), name
        if value is not None:
            assert same(est.overall[name], value) and same(est.errors[name], error), name


@pytest.mark.slow
def test_f_of_two_means_agrees_with_leaving_out_one_cluster_at_a_time() -> None:
    """The jackknife takes away the same bias, and has the same error, in large samples."""
    rng = np.random.default_rng(5)
    true = np.repeat(np.arange(120), rng.geometric(0.4, 120))
    pred = dict(enumerate(np.where(rng.random(true.size) < 0.2, true + 1, true).tolist()))
    clusters = [set(np.flatnonzero(true == k).tolist()) for k in range(120)]
    for sampling, names in (
        ("uniform", ("f1", "bcubed_fbeta_by_true_cluster")),
        ("cluster_size", ("fbeta", "bcubed_f1_by_true_cluster")),
    ):
        p = (lambda c: 1) if sampling == "uniform" else (lambda c: Fr(1, len(c)))
        listed = [(c, p(c)) for c in clusters]
        est = fb.estimate(sample_of(*clusters), pred, sampling=sampling, beta=2)
        for name in names:
            value, error = naive_sampling.jackknife(name, listed, pred, 2)
            change = value - est.unadjusted[name]
            assert est.overall[name] - est.unadjusted[name] == pytest.approx(change, rel=0.1, abs=1e-6), name
            assert est.errors[name] == pytest.approx(error, rel=0.03), name


# -- A census --------------------------------------------------------------------------------------


def exact(name: str, truth: dict[Any, Any], prediction: dict[Any, Any], beta: Fr) -> Any:
    """Return a score of all items, by the naive twins; NaN where there is nothing to observe."""
    if name.endswith("fbeta") and name.startswith(("pair", "cluster")):
        stem = name.split("_")[0]
        p, r = (naive_families.score(f"{stem}_{each}", truth, prediction) for each in ("precision", "recall"))
        return naive.f_measure(p, r, 1 / (1 + beta**2))
    if name.startswith(("pair_", "cluster_")):
        return naive_families.score(name, truth, prediction)
    if name.endswith("_by_true_cluster") and "_f" in name:
        p, r = (exact(each, truth, prediction, beta) for each in BY_CLASS)
        return naive.f_measure(p, r, 1 / (1 + beta**2) if "fbeta" in name else Fr(1, 2))
    sizes = [len(list(group)) for _, group in groupby(sorted(truth.values(), key=repr))]
    if name in (*MUC, *LEA, "lea_f1"):
        own, _, which = name.partition("_")
        key, response = (
            [{e for e in side if side[e] == k} for k in set(side.values())] for side in (truth, prediction)
        )
        recall = naive_coreference.RECALLS[own]
        p, r = recall(response, key), recall(key, response)
        return {"precision": p, "recall": r, "f1": naive.f_measure(p, r, Fr(1, 2))}[which]
    if name in BEST:
        return naive_families.score(name, truth, prediction)
    if name == "matching_rate":
        return Fr(sum(size for size in sizes if size > 1), sum(sizes))
    if name == "mean_cluster_size":
        return Fr(sum(sizes), len(sizes))
    return naive.evaluate(truth, prediction, beta=beta).mean(name)


@given(pairs(max_size=8), st.sampled_from([1, 2, Fr(1, 3)]), st.sampled_from(["uniform", "p"]))
@examples(40)
def test_a_census_gives_the_exact_scores(pair: Pair, beta: Any, sampling: str) -> None:
    """Items that the prediction lacks are alone in it; the truth has all items."""
    prediction = {item: label for item, label in pair.prediction.items() if item in pair.truth}
    assume(prediction)
    whole = prediction | {item: ("alone", item) for item in pair.truth if item not in prediction}
    table = pa.table({"item": column(pair.truth), "cluster": column(pair.truth.values())})
    table = table.append_column("p", pa.array([0.5] * len(table)))
    est = fb.estimate(table, prediction, sampling=sampling, metrics=[*RATIOS, *FS], beta=float(beta))
    for name, found in est.unadjusted.items():
        wanted = exact(name, pair.truth, whole, Fr(beta))
        if name.startswith(("pair", "muc")) and math.isnan(found):
            assert wanted in (0, 1), name  # 0.1, rule 2: no pair, so nothing could have gone wrong
            continue
        assert same(found, wanted), name
    every = fb.estimate(table, prediction, population_clusters=np.int64(len(set(pair.truth.values()))))
    assert isinstance(json.loads(every.to_json())["definition"]["population_clusters"], int)
    assert all(every.errors[name] in (0, math.nan) or math.isnan(every.errors[name]) for name in every.errors)
    assert {n: v for n, v in every.overall.items() if v == v} == {
        n: v for n, v in every.unadjusted.items() if v == v
    }


def test_every_score_that_can_be_estimated_is_that_of_evaluate_in_a_census() -> None:
    rng = np.random.default_rng(3)
    true, pred = rng.integers(0, 30, 200), rng.integers(0, 40, 200)
    truth, prediction = (dict(enumerate(side.tolist())) for side in (true, pred))
    est = fb.estimate(truth, prediction, metrics="all", beta=2.0)
    ev = fb.evaluate(truth, prediction, metrics="all", beta=2.0)
    compared = [name for name in est.overall if ev.overall.named(name) is not None]
    assert {"precision", "symmetric_difference", "variation_of_information", "elm_f1", "fbeta"} <= set(
        compared
    )
    assert len(compared) >= 30
    for name in compared:
        assert est.unadjusted[name] == pytest.approx(ev.overall[name], rel=1e-12), name
    assert set(est.overall) - set(compared) == {
        *SIZES, "pair_fbeta", "cluster_fbeta", "bcubed_fbeta_by_true_cluster",
    }  # fmt: skip
    assert {"adjusted_rand", "accuracy", "ami", "purity"} <= est.not_computed.keys()


@given(
    st.lists(st.integers(1, 12), min_size=1, max_size=30),
    st.sampled_from([1, 2, 0.5, 0.1, 1 / 3, 3.7]),
    st.sampled_from([0.1, 0.7, 1 / 3]),
)
@example(
    [1, 9, 11], 0.1, 0.1
)  # each blended denominator was rounded, so that their sum was not that of items
@examples(40)
def test_a_perfect_prediction_scores_1_to_the_last_bit(sizes: list[int], beta: float, weight: float) -> None:
    clusters = [
        set(range(end - size, end)) for size, end in zip(sizes, np.cumsum(sizes).tolist(), strict=True)
    ]
    sample = table_of(clusters, p=[weight * (k + 1) for k in range(len(sizes))])
    scores = [*(name for name in RATIOS if name not in (*SIZES, *CLUSTERS, *MUC, "jaccard_distance")), *FS]
    for sampling in ("uniform", "cluster_size", "p"):
        est = fb.estimate(sample, sample, sampling=sampling, metrics=scores, beta=beta)
        seen = [each for each in (*est.overall.values(), *est.unadjusted.values()) if each == each]
        assert set(seen) == {1.0}, est.overall
    census = fb.estimate(sample, sample, metrics=(*CLUSTERS, *MUC), beta=beta, population_clusters=len(sizes))
    assert {each for each in census.overall.values() if each == each} == {1.0}


@given(samples())
@examples(30)
def test_the_plain_row_of_bcubed_is_evaluate_with_outside(drawn: Any) -> None:
    pair, clusters, _, _ = drawn
    truth = {item: k for k, cluster in enumerate(clusters) for item in cluster}
    names = ["precision", "recall", "f1", "mean_f1", "jaccard_distance", "elm_precision", *BY_CLASS]
    est = fb.estimate(truth, pair.prediction, metrics=names)
    ev = fb.evaluate(truth, pair.prediction, metrics=names, unmatched={"prediction": "outside"})
    for name in names:
        assert est.unadjusted[name] == pytest.approx(ev.overall[name], rel=1e-12, abs=1e-15), name


# -- Engines, containers, threads ------------------------------------------------------------------


@given(samples(most=30))
@examples(20, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_engines_agree_to_the_last_bit(many_shards: Any, drawn: Any) -> None:
    pair, clusters, _, _ = drawn
    truth = {item: k for k, cluster in enumerate(clusters) for item in cluster}
    found = [
        fb.estimate(truth, pair.prediction, engine=engine, memory_limit=limit)
        for engine, limit in (("memory", None), ("disk", LIMIT))
    ]
    assert told(found[0]) == told(found[1])
    assert found[0].summary == found[1].summary


@pytest.mark.parametrize("label", LABELS)
def test_labels_of_any_type(label: str) -> None:
    write = LABELS[label]
    wanted = told(fb.estimate(sample_of(C1, C2, C4), PREDICTION))
    prediction = {item: write(cluster) for item, cluster in PREDICTION.items()}
    for engine in ("memory", "disk"):
        sample = {item: write(k) for item, k in sample_of(C1, C2, C4).items()}
        assert told(fb.estimate(sample, prediction, engine=engine)) == wanted


def test_files_and_composite_ids(tmp_path: Path) -> None:
    wanted = told(fb.estimate(sample_of(C1, C2), PREDICTION))
    sample = pa.table(
        {"s": ["x"] * 5, "id": [1, 2, 3, 4, 5], "person": ["a", "a", "a", "b", "b"], "w": [2.0] * 5}
    )
    prediction = pa.table({"s": ["x"] * 8, "id": list(PREDICTION), "cluster": list(PREDICTION.values())})
    pq.write_table(sample, tmp_path / "sample.parquet")
    pq.write_table(prediction, tmp_path / "prediction.parquet", row_group_size=3)
    ids = ["s", "id"]
    for engine, item in product(("memory", "disk", None), (ids, (ids, ids))):
        est = fb.estimate(
            str(tmp_path / "sample.parquet"), tmp_path / "prediction.parquet", item=item,
            cluster=("person", "cluster"), sampling="w", engine=engine, threads=1,
        )  # fmt: skip
        assert told(est) == wanted
    assert est.names["prediction"].endswith("prediction.parquet")
    assert (tmp_path / "sample.parquet").name in est.names["sample"]


@pytest.mark.parametrize("engine", [None, "memory", "disk"])
def test_what_passes_by_once(engine: Any) -> None:
    wanted = told(fb.estimate(sample_of(C1, C2), PREDICTION))
    prediction = pa.table({"item": list(PREDICTION), "cluster": list(PREDICTION.values())})
    readers = [each.to_reader(max_chunksize=3) for each in (table_of([C1, C2]), prediction)]
    assert told(fb.estimate(*readers, engine=engine)) == wanted


def test_estimates_can_be_sent_elsewhere() -> None:
    est = fb.estimate(sample_of(C1, C2, C4), PREDICTION)
    again = pickle.loads(pickle.dumps(est))
    assert repr(again) == repr(est) and again.pair_f1 == est.pair_f1


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_columns_of_the_sample_alone_may_be_named(engine: Any) -> None:
    sample = table_of([C1, C2]).rename_columns(["rec", "person"])
    est = fb.estimate(sample, PREDICTION, item="rec", cluster="person", engine=engine)
    assert told(est) == told(fb.estimate(sample_of(C1, C2), PREDICTION))


def test_large_files_are_read_block_by_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from fastbcubed.engines import sampled_cells

    used: list[str] = []
    for name in ("_in_blocks", "_as_a_whole"):
        inner = getattr(sampled_cells, name)
        monkeypatch.setattr(
            sampled_cells, name, lambda *a, inner=inner, name=name: (used.append(name), inner(*a))[1]
        )
    prediction = pa.table({"item": list(PREDICTION), "cluster": list(PREDICTION.values())})
    path = tmp_path / "prediction.parquet"
    pq.write_table(prediction, path)
    fb.estimate(sample_of(C1, C2), path)
    monkeypatch.setattr(sampled_cells, "READ_WHOLE", 7)
    fb.estimate(sample_of(C1, C2), path)
    fb.estimate(sample_of(C1, C2), path, engine="memory")
    fb.estimate(sample_of(C1, C2), prediction)
    assert used == ["_as_a_whole", "_in_blocks", "_as_a_whole", "_as_a_whole"]


def test_weights_that_clusterings_came_with_do_not_count() -> None:
    wanted = told(fb.estimate(sample_of(C1, C2), PREDICTION))
    sample = table_of([C1, C2], w=[2.0, 3.0])
    prediction = pa.table(
        {"item": list(PREDICTION), "cluster": list(PREDICTION.values()), "w": np.arange(8.0)}
    )
    weighted = [fb.Clustering.from_table(each, weight="w") for each in (sample, prediction)]
    for engine in ("memory", "disk"):
        assert told(fb.estimate(*weighted, engine=engine)) == wanted


# -- How clusters were drawn -----------------------------------------------------------------------


def test_a_cluster_drawn_twice_counts_twice() -> None:
    """As two clusters that are alike do: items 11, 12, 13 are like 1, 2, 3, the third of which is with another."""
    alike = {**PREDICTION, 11: 11, 12: 11, 13: 12, 15: 12}
    twice = fb.estimate(table_of([C1, C2], k=[2, 1]), PREDICTION, draws="k", metrics=RATIOS[:-5])
    copied = fb.estimate(sample_of(C1, C2, {11, 12, 13}), alike, metrics=RATIOS[:-5])
    for name in twice.overall:
        assert same(twice.overall[name], copied.overall[name]), name
        assert same(twice.errors[name], copied.errors[name]), name
    assert twice.summary["sample"]["n_draws"] == 3 and twice.summary["sample"]["n_clusters"] == 2


def test_sizes_as_a_column_of_weights() -> None:
    by_size = fb.estimate(sample_of(C1, C2, C4), PREDICTION, sampling="cluster_size")
    by_column = fb.estimate(table_of([C1, C2, C4], w=[1 / 3, 1 / 2, 1.0]), PREDICTION, sampling="w")
    assert told(by_size) == told(by_column)
    scaled = fb.estimate(table_of([C1, C2, C4], w=[2.0, 3.0, 6.0]), PREDICTION, sampling="w")
    for name in scaled.overall:
        assert same(scaled.overall[name], by_size.overall[name]), name


@pytest.mark.parametrize(
    ("columns", "options", "error", "message"),
    [
        ({"w": [0.0, 1.0]}, {"sampling": "w"}, WeightError, "1 of 2 sampled clusters.*not a positive number.*0: 0"),
        ({"w": [-1.0, math.inf]}, {"sampling": "w"}, WeightError, "2 of 2 sampled clusters"),
        ({"w": [None, 1.0]}, {"sampling": "w"}, WeightError, "null"),
        ({"w": ["x", "y"]}, {"sampling": "w"}, WeightError, "should be numbers"),
        ({"k": [0, 1]}, {"draws": "k"}, WeightError, "number of draws in column 'k'"),
        ({"k": [1.5, 1]}, {"draws": "k"}, WeightError, "not a positive integer .*0: 1.5"),
        ({"weight": [1, 1]}, {"sampling": "weigth"}, ColumnError, "Did you mean 'weight'"),
        ({}, {"sampling": "uniforn"}, ColumnError, "Did you mean 'uniform'"),
        ({}, {"sampling": 3}, OptionError, 'sampling must be "uniform", "cluster_size" or the name of a column'),
        ({}, {"draws": 3}, OptionError, "draws must be the name of a column"),
        ({}, {"missing": "raise"}, OptionError, "missing must be"),
        ({}, {"engine": "spark"}, OptionError, "engine must be"),
        ({}, {"level": 95}, OptionError, "level must be a confidence"),
        ({}, {"beta": -1}, OptionError, "beta must be a number"),
        ({}, {"population_clusters": 1}, OptionError, "but the sample has 2 true clusters"),
        ({}, {"population_clusters": 2.5}, OptionError, "population_clusters must be a number"),
        ({}, {"population_clusters": 9, "sampling": "cluster_size"}, OptionError, "without repetition"),
        ({"k": [1, 2]}, {"population_clusters": 9, "draws": "k"}, OptionError, "without repetition"),
        ({}, {"metrics": "adjusted_rand"}, MetricError, "adjusted_rand cannot be estimated"),
        ({}, {"metrics": "accuracy"}, MetricError, "means over items that need no true negatives, such"),
            ({}, {"metrics": "purity"}, MetricError, "the true clusters of all items in each predicted"),
            ({}, {"metrics": "pair_tp"}, MetricError, "it is not a ratio, and sampling probabilities may"),
            ({}, {"metrics": "v_measure"}, MetricError, "it depends on the sizes of all true clusters"),
            ({}, {"metrics": "rand"}, MetricError, "it needs the separated pairs of all items, most"),
        ({}, {"metrics": "nonsense"}, MetricError, "unknown score 'nonsense'"),
        ({}, {"metrics": len}, MetricError, "named by strings"),
        ({}, {"metrics": []}, MetricError, "metrics names no score"),
        ({}, {"metrics": "edit"}, MetricError, "metrics names no score"),
    ],
)  # fmt: skip
def test_what_cannot_be(columns: Any, options: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        fb.estimate(table_of([C1, C2], **columns), PREDICTION, **options)


@pytest.mark.parametrize("weight", [1e308, 5e-324, 1e-200])
def test_weights_whose_sums_no_float_holds(weight: float) -> None:
    with pytest.raises(WeightError, match=r"2 of 2 sampled clusters .* from 1e-120 to 1e\+120"):
        fb.estimate(table_of([C1, C2], p=[weight] * 2), PREDICTION, sampling="p")


def test_weights_differ_within_a_cluster() -> None:
    table = table_of([C1, C2]).append_column("w", pa.array([1.0, 1.0, 2.0, 3.0, 3.0]))
    with pytest.raises(
        WeightError, match=r"1 of 2 sampled clusters have items with different values of 'w' \(first: 0\)"
    ):
        fb.estimate(table, PREDICTION, sampling="w")


# -- What is wrong with the items ------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_items_of_the_sample(engine: Any) -> None:
    def estimate(items: list[Any], clusters: list[Any], **options: Any) -> fb.Estimates:
        return fb.estimate(
            pa.table({"item": items, "cluster": clusters}),
            PREDICTION,
            engine=engine,
            metrics=RATIOS,
            **options,
        )

    with pytest.raises(OverlapError, match="the sample"):
        estimate([1, 2, 1], ["a", "a", "b"])
    with pytest.raises(DuplicateItemError, match="the sample"):
        estimate([1, 2, 1], ["a", "a", "a"])
    wanted = told(estimate([1, 2], ["a", "a"]))
    dropped = estimate([1, 2, 1], ["a", "a", "a"], duplicates="drop")
    assert told(dropped) == wanted and dropped.summary["sample"]["n_duplicates"] == 1
    with pytest.raises(OverlapError):
        estimate([1, 2, 1], ["a", "a", "b"], duplicates="drop")
    with pytest.raises(NullError, match="the sample"):
        estimate([1, 2, 3], ["a", "a", None])
    dropped = estimate([1, 2, 3], ["a", "a", None], nulls="drop")
    assert told(dropped) == wanted and dropped.summary["sample"]["n_null"] == 1
    alone = estimate([1, 2, 3, 4], ["a", "a", None, None], nulls="singleton")
    assert told(alone) == told(estimate([1, 2, 3, 4], ["a", "a", "b", "c"]))
    with pytest.raises(EmptyInputError, match="no item in a cluster"):
        estimate([1, 2], pa.array([None, None], pa.string()), nulls="drop")
    with pytest.raises(EmptyInputError, match="no item of the sample is in"):
        estimate([101, 102], ["a", "a"])
    with pytest.raises(IdTypeError, match="Ids of different types never match"):
        estimate(["1", "2"], ["a", "a"])


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_items_of_the_prediction(engine: Any) -> None:
    sample = sample_of(C1, C2)

    def estimate(items: list[Any], clusters: list[Any], **options: Any) -> fb.Estimates:
        return fb.estimate(sample, pa.table({"item": items, "cluster": clusters}), engine=engine, **options)

    items, clusters = list(PREDICTION), list(PREDICTION.values())
    with pytest.raises(DuplicateItemError):
        estimate([*items, 8], [*clusters, 4])
    wanted = told(estimate(items, clusters))
    assert told(estimate([*items, 8], [*clusters, 4], duplicates="drop")) == wanted
    with pytest.raises(OverlapError):
        estimate([*items, 8], [*clusters, 3], duplicates="drop")
    with pytest.raises(NullError):
        estimate([*items, 9], [*clusters, None])
    assert told(estimate([*items, 9], [*clusters, None], nulls="drop")) == wanted
    more = estimate([*items, 9], [*clusters, None], nulls="singleton")
    assert (
        more.summary["pred"]["n_null"] == 1
        and more.summary["pred"]["n_clusters"] == 5
        and more.summary["pred"]["n_items"] == 9
    )


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_overlapping_clusters_are_not_told_of_an_argument_that_is_not_there(engine: Any) -> None:
    twice = pa.table({"item": [1, 1, 2], "cluster": ["a", "b", "b"]})
    for sample, prediction in ((twice, PREDICTION), (TRUTH, twice), ({1: {"a", "b"}}, PREDICTION)):
        with pytest.raises(
            OverlapError, match=r"1 of .* in more than one cluster.*: choose one for each"
        ) as caught:
            fb.estimate(sample, prediction, engine=engine)
        assert "overlapping=" not in str(caught.value)


def test_label_arrays_cannot_be_found() -> None:
    with pytest.raises(AlignmentError, match="the sample has labels without item ids"):
        fb.estimate([0, 0, 1], PREDICTION)
    with pytest.raises(FastBCubedError, match="without item ids"):
        fb.estimate(sample_of(C1), [0, 0, 1])


def test_missing_items_are_alone_or_left_out() -> None:
    """Of clusters {1, 2, 3, 9} and {4, 5, 10}, 9 and 10 are unknown; of {11} there is nothing."""
    sample = sample_of(C1 | {9}, C2 | {10}, {11})
    alone = fb.estimate(sample, PREDICTION)
    known = fb.estimate(sample, {**PREDICTION, 9: 9, 10: 10, 11: 11})
    for name in alone.overall:
        if not name.startswith("cluster_"):
            assert same(alone.overall[name], known.overall[name]), name
    assert alone.summary["sample"]["n_missing"] == 3
    note = note_of(alone, "sample-items-missing")
    assert (note["level"], note["n_items"], note["share"]) == ("note", 3, 3 / 8)
    assert "3 items of the sample (37.5 %) are not in the prediction" in note["message"]
    dropped = fb.estimate(sample, PREDICTION, missing="drop")
    assert told(dropped) == told(fb.estimate(sample_of(C1, C2), PREDICTION))
    assert "left out" in note_of(dropped, "sample-items-missing")["message"]


def test_left_out_items_that_flatter_are_a_warning() -> None:
    """Of 20 whole pairs 5 lose an item: recall is 1, and (30 + 10 / 2) / 40 if these were alone."""
    sample = {k: k // 2 for k in range(40)}
    some = {k: k // 2 for k in sample if k % 2 or k >= 10}
    with pytest.warns(EvaluationWarning, match="f1 would be"):
        est = fb.estimate(sample, some, missing="drop")
    warning = note_of(est, "sample-items-missing")
    assert (warning["level"], warning["f1"]) == ("warning", 1)
    assert warning["f1_if_alone"] == fb.estimate(sample, some).f1
    assert fb.estimate(sample, some).unadjusted.f1 == pytest.approx(2 * 0.875 / 1.875, abs=1e-15)
    assert note_of(fb.estimate(sample, some), "sample-items-missing")["level"] == "note"
    large = {k: k // 2 for k in range(4000)}
    most = {k: c for k, c in large.items() if k}
    assert note_of(fb.estimate(large, most, missing="drop"), "sample-items-missing")["level"] == "note"


def test_most_items_missing_is_a_warning() -> None:
    sample = {k: k // 2 for k in range(100)}
    with pytest.warns(EvaluationWarning, match="Check that both item columns"):
        fb.estimate(sample, {k: k for k in range(20)})


def test_whole_clusters_where_the_prediction_lists_linked_items_only() -> None:
    """Half of all items are alone on both sides, and the prediction does not list them: as if it did."""
    rng = np.random.default_rng(1)
    true = {k: k // 2 if k < 1000 else k for k in range(2000)}
    pred = {k: k // 2 if k % 4 < 3 else k for k in range(1000)}
    listed = {**pred, **{k: k for k in range(1000, 2000)}}
    clusters = rng.choice(sorted(set(true.values())), 300, replace=False)
    sample = {item: cluster for item, cluster in true.items() if cluster in set(clusters.tolist())}
    found, wanted = (fb.estimate(sample, each) for each in (pred, listed))
    for name in CLUSTERS:
        assert found.overall[name] == pytest.approx(wanted.overall[name], abs=0.02), name


# -- What a few clusters show ----------------------------------------------------------------------


def test_a_single_cluster() -> None:
    est = fb.estimate(sample_of(C1), PREDICTION)
    assert est.precision == est.unadjusted.precision == pytest.approx(5 / 6, abs=1e-15)
    assert math.isnan(est.errors.precision) and all(map(math.isnan, est.interval("precision")))
    assert "A single cluster gives no standard error, and its" in note_of(est, "few-clusters")["message"]


def test_nothing_observed() -> None:
    est = fb.estimate({8: "d", 3: "e"}, {3: 1, 8: 2, 9: 3})
    assert math.isnan(est.pair_recall) and math.isnan(est.pair_precision) and math.isnan(est.pair_f1)
    note = note_of(est, "nothing-observed")
    assert note["scores"] == list(PAIRS) and "No estimate of pair_precision" in note["message"]
    assert json.loads(est.to_json())["estimates"][6] == {
        "score": "pair_precision", "estimate": None, "se": None, "low": None, "high": None, "unadjusted": None,
        "n_clusters": 0, "df": 1.0,
    }  # fmt: skip


def test_what_no_sampled_cluster_shows_may_be_there() -> None:
    """Of n clusters none is wrong: with (1 - q)^n = 0.025, a share q may be. So may a share be right if none is.

    Of true clusters of 2, 1, 1 and 1 items D of precision is 2, 1, 1, 1: they tell as much as 25/7 equal ones.
    """
    right = {1: 1, 2: 1, 3: 3, 4: 4, 5: 5}
    est = fb.estimate(right, {**right, 6: 6}, metrics=["precision", "cluster_recall", "jaccard_distance"])
    assert dict(est.overall) == {"precision": 1.0, "cluster_recall": 1.0, "jaccard_distance": 0.0}
    assert est.interval("cluster_recall") == pytest.approx((0.025 ** (1 / 4), 1), abs=1e-12)
    assert est.interval("precision", level=0.5) == pytest.approx((0.25 ** (7 / 25), 1), abs=1e-12)
    assert est.interval("jaccard_distance") == pytest.approx((0, 1 - 0.025 ** (7 / 25)), abs=1e-12)
    all_in_one = dict.fromkeys(range(1, 9), 1)
    wrong = fb.estimate(right, all_in_one, metrics="cluster_precision")
    assert wrong.cluster_precision == 0 and math.isnan(wrong.errors.cluster_precision)
    assert wrong.interval("cluster_precision") == (0, 1)  # of the one predicted cluster nothing is known
    assert fb.estimate(right, right, population_clusters=4, metrics="f1").interval("f1") == (1, 1)


def test_no_interval_of_a_mean_size_where_all_sampled_clusters_are_of_one_size() -> None:
    sample, prediction = {1: "a", 2: "a", 3: "b", 4: "b"}, dict.fromkeys(range(1, 9), "x")
    for options in ({}, {"sampling": "cluster_size"}, {"population_clusters": 3}):
        est = fb.estimate(sample, prediction, metrics="mean_cluster_size", **options)
        assert est.mean_cluster_size == 2 and all(map(math.isnan, est.interval("mean_cluster_size"))), options
    census = fb.estimate(sample, sample, metrics="mean_cluster_size", population_clusters=2)
    assert census.interval("mean_cluster_size") == (2, 2)


def test_the_most_that_whole_clusters_can_be() -> None:
    """24 items in 20 predicted clusters: true ones, of 5/4 items on average, are 24/25 as many as these."""
    sample = {1: 1, 2: 1, 3: 3, 4: 4, 5: 5}
    prediction = {**dict.fromkeys(sample, 1), **{k: k for k in range(6, 25)}}
    est = fb.estimate(sample, prediction, metrics="cluster_precision")
    q = 1 - 0.025 ** (7 / 25)
    assert est.cluster_precision == 0
    assert est.interval("cluster_precision") == pytest.approx((0, q * 24 / 25), abs=1e-12)


def test_estimates_beyond_the_range_are_not_cut_off() -> None:
    """Two clusters of one item are right; of one of 5 items, four are apart. The adjustment passes 1."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        sizes = rng.integers(1, 8, 3)
        true = np.repeat(np.arange(3), sizes)
        pred = np.where(rng.random(true.size) < 0.1, true.size + np.arange(true.size), true)
        est = fb.estimate(dict(enumerate(true.tolist())), dict(enumerate(pred.tolist())), metrics=PAIRS)
        if est.pair_recall > 1:
            break
    low, high = est.interval("pair_recall")
    assert est.unadjusted.pair_recall <= 1 < est.pair_recall < high
    assert est.pair_recall - low == pytest.approx(high - est.pair_recall, rel=1e-9)
    note = note_of(est, "beyond-range")
    assert note["level"] == "note" and "pair_recall" in note["scores"]


def test_population_clusters_lessen_errors() -> None:
    plain = fb.estimate(sample_of(C1, C2), PREDICTION)
    of_eight = fb.estimate(sample_of(C1, C2), PREDICTION, population_clusters=8)
    assert of_eight.errors.f1 == pytest.approx(plain.errors.f1 * math.sqrt(6 / 8), rel=1e-12)
    change = plain.f1 - plain.unadjusted.f1
    assert of_eight.f1 - of_eight.unadjusted.f1 == pytest.approx(change * 6 / 8, rel=1e-12)
    census = fb.estimate(TRUTH, PREDICTION, population_clusters=4)
    assert census.precision == census.unadjusted.precision == pytest.approx(17 / 24, abs=1e-15)
    assert census.errors.precision == 0 and census.interval("precision") == (census.precision,) * 2


def test_few_clusters_that_tell_most_are_noted() -> None:
    """Of 61 clusters one has 40 items, one of which is apart, and 5 others are joined: 55 are right.

    So the share that is right moves by 61/55 - 1 with each of 55 clusters, and by -1 with each of 6.
    """
    sizes = [40, *([1] * 60)]
    sample = dict(enumerate(np.repeat(np.arange(61), sizes).tolist()))
    prediction = {**sample, 0: 1000, **dict.fromkeys(range(50, 55), 1001)}
    est = fb.estimate(sample, prediction, metrics=["cluster_recall", "recall"])
    note = note_of(est, "few-clusters")
    assert note["scores"] == ["recall"] and note["df"] == est.estimated["recall"].df < 5
    assert note["level"] == "warning" and note["effective"] == pytest.approx(100**2 / (40**2 + 60))
    assert note["message"] == (
        "A few large clusters dominate recall: the 61 drawn clusters have an effective number of 6.0, and "
        "intervals may be far too narrow. Draw clusters in proportion to their size, and pass "
        'sampling="cluster_size".'
    )
    two = note_of(fb.estimate(sample_of(C1, C2), PREDICTION), "few-clusters")
    assert two["message"] == (
        "With only 2 clusters, intervals are wide and may still be too narrow. No standard error is known for "
        "cluster_precision, cluster_recall, cluster_f1."
    )
    right, wrong = Fr(61, 55) - 1, -1
    uncertain = (6 * wrong**4 + 55 * right**4) / (6 * wrong**2 + 55 * right**2) ** 2 - Fr(1, 61)
    assert est.estimated["cluster_recall"].df == pytest.approx(float(2 / uncertain), rel=1e-9)


def test_scores_without_an_error_are_named() -> None:
    """No sampled cluster is a predicted one, so that the error of that share is not known."""
    note = note_of(
        fb.estimate(sample_of(C1, C2), PREDICTION, metrics=["recall", "cluster_recall"]), "few-clusters"
    )
    assert note["without_error"] == ["cluster_recall"]
    assert note["message"].endswith("too narrow. No standard error is known for cluster_recall.")
    one = note_of(fb.estimate(sample_of(C1), PREDICTION, metrics="recall"), "few-clusters")
    assert one["without_error"] == ["recall"]


# -- Samples that are not as stated ----------------------------------------------------------------

#: 100 true clusters of 1, 2, 3 and 8 items; every tenth merged with the next.
SIZES_OF_ALL = [1, 2, 3, 8] * 25
OF_ALL = [set(range(sum(SIZES_OF_ALL[:k]), sum(SIZES_OF_ALL[: k + 1]))) for k in range(100)]
FOUND = {item: k - (k % 10 == 9) for k, own in enumerate(OF_ALL) for item in own}


def codes_of(*clusters: set[int], **options: Any) -> dict[str, str]:
    est = fb.estimate(sample_of(*clusters), FOUND, **options)
    return {each["code"]: each["message"] for each in est.warnings if each["level"] == "warning"}


def test_a_good_sample_is_as_stated() -> None:
    assert not codes_of(*OF_ALL[:60]) and not codes_of(*OF_ALL[:60], population_clusters=100)
    assert not codes_of(*OF_ALL, population_clusters=100)


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_incomplete_clusters_are_warned_of(engine: Any) -> None:
    """Half of each cluster of 2 and more; then one item of each."""
    half = [set(sorted(own)[::2]) for own in OF_ALL[:60] if len(own) > 1]
    said = codes_of(*half, engine=engine)["partial-clusters"]
    assert said.startswith(
        "Of 45 predicted clusters that have several items and share some with a sampled cluster, 45 (100 %) also"
    )
    one = codes_of(*[{min(own)} for own in OF_ALL], engine=engine)
    assert one["partial-clusters"].startswith("Each of the 100 sampled clusters has one item, and ")


def test_estimates_far_beyond_what_can_be_are_warned_of() -> None:
    """Nearly all sampled clusters are true ones of one item: as many as that would be three times the prediction's."""
    sample = [own for own in OF_ALL if len(own) == 1] + [{min(own)} for own in OF_ALL if len(own) == 8][:5]
    assert fb.estimate(sample_of(*sample), FOUND).cluster_precision > 2
    said = codes_of(*sample)["beyond-range"]
    assert (
        said.startswith("Impossible estimates: cluster_precision ") and "not drawn as sampling says" in said
    )


def test_a_sample_by_size_that_is_taken_as_uniform_is_warned_of() -> None:
    """Of 100 draws in proportion to size 57 are of 8 items: the prediction would have far fewer clusters."""
    large = [own for own in OF_ALL if len(own) == 8] + [own for own in OF_ALL if len(own) == 3][:10]
    small = [own for own in OF_ALL if len(own) == 2][:6] + [own for own in OF_ALL if len(own) == 1][:3]
    said = codes_of(*large, *small)["sample-unlike-prediction"]
    assert said.startswith("According to the sample, the prediction would have ") and "but it has 90" in said
    assert 'pass sampling="cluster_size"' in said
    assert "sample-unlike-prediction" not in codes_of(*large, *small, sampling="cluster_size")
    assert (
        "were not drawn as sampling says"
        in codes_of(*[own for own in OF_ALL if len(own) < 3])["sample-unlike-prediction"]
    )


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (5_000, "population_clusters is 5,000, which leaves 4,940 true clusters outside the sample, but the "),
        (60, "population_clusters is 60, which leaves 0 true clusters outside the sample, but the "),
        (190, "According to the sample, 190 true clusters would have "),
    ],
)  # fmt: skip
def test_a_number_of_true_clusters_that_cannot_be_is_warned_of(number: int, said: str) -> None:
    assert codes_of(*OF_ALL[:60], population_clusters=number)["population-clusters"].startswith(said)


# -- What it looks like ----------------------------------------------------------------------------


def test_text_table_and_json() -> None:
    est = fb.estimate(sample_of(C1, C2, C4), PREDICTION, beta=2, population_clusters=10)
    table = est.scores()
    assert table.column_names == [
        "score", "estimate", "se", "low", "high", "unadjusted", "n_clusters", "df",
    ]  # fmt: skip
    rows = {row["score"]: row for row in table.to_pylist()}
    assert rows["pair_recall"]["n_clusters"] == 2 and rows["precision"]["n_clusters"] == 3
    assert rows["precision"]["df"] == 2
    assert list(rows)[:5] == ["precision", "recall", "f1", "fbeta", BY_CLASS[0]]
    text = " ".join(repr(est).split())
    assert text.startswith(
        "Scores of a prediction of 8 items in 4 clusters, estimated from 3 sampled true clusters (6 items)."
    )
    assert "by item. (In parentheses, 95 % intervals.)" in text
    # their error is sqrt(0.7 (1 + 0 + 1) / (3 * 2)); e^(4.30265 * 0.48305) = 7.992, so 1 + 1/7.992 and 1 + 7.992
    assert "A true cluster has 2 (1.13 to 8.99) items on average, a predicted one 2." in text
    for shown in (text, est._repr_html_()):  # the interval and no error beside it, which says something else
        assert "±" not in shown and "unadjusted" in shown and not re.search(r"\bse\b", shown)
    assert "Intervals are at the 95 % level, for 10 true clusters in all; beta is 2." in text
    assert "pair_fbeta" in repr(est) and "pair_fbeta" in est._repr_html_()
    found = json.loads(est.to_json())
    assert found["definition"]["sampling"] == "uniform" and found["sample"] == "the sample"
    assert {"overall", "pair_f1", "interval"} <= set(dir(est))
    narrow, wide = est.interval("f1", level=0.5), est.interval("f1")
    assert wide.low < narrow.low < est.f1 < narrow.high < wide.high
    assert est.b3_f1 == est.f1
    for wrong in ("ami", "nonsense"):
        with pytest.raises(MetricError, match="there is no estimate"):
            est.interval(wrong)
        with pytest.raises(AttributeError, match="there is no estimate"):
            getattr(est, wrong)


def test_scores_by_other_names_and_families() -> None:
    est = fb.estimate(sample_of(C1, C2), PREDICTION, metrics=["pairwise", "b3_precision", "sizes", "elm"])
    assert list(est.overall)[:4] == [*PAIRS, "bcubed_precision"]
    assert set(SIZES) < set(est.overall) and "elm_f1" in est.overall
    assert "adjusted_rand" in est.not_computed and re.search(
        "Not estimated: .*adjusted_rand", " ".join(repr(est).split())
    )
    assert list(fb.estimate(sample_of(C1), PREDICTION, metrics=["bcubed_f1", "f1"]).overall) == ["f1"]


def test_nothing_is_warned_of_in_a_good_sample() -> None:
    rng = np.random.default_rng(2)
    true = np.repeat(np.arange(400), rng.integers(1, 4, 400))
    pred = np.where(rng.random(true.size) < 0.1, true + 1, true)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        est = fb.estimate(dict(enumerate(true[:300].tolist())), dict(enumerate(pred.tolist())))
    assert est.warnings == []


def test_an_error_of_rounding_is_none() -> None:
    """Of each sampled cluster two items are together, one is alone: recall is (2/3 + 2/3 + 1/3) / 3 = 5/9."""
    prediction = {f"{k}.{i}": f"{k}.{'xxy'[i]}" for k in range(7) for i in range(3)}
    est = fb.estimate({item: item[0] for item in prediction if item[0] != "6"}, prediction)
    assert est.errors.recall == est.errors.f1 == 0 and est.recall == pytest.approx(5 / 9)
    assert est.interval("recall") == (est.recall, est.recall)
