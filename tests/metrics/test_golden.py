"""Printed values: the worked examples of METRICS.md and of the papers, and real data.

Every expected value is a literal from METRICS.md (the section is named) or worked in a comment; none
comes from running the package.
"""

import math
import warnings
from collections import defaultdict
from fractions import Fraction as Fr
from functools import cache
from pathlib import Path

import naive
import numpy as np
import pyarrow.parquet as pq
import pytest
from worked import E17_MEANS

import fastbcubed as fb
from fastbcubed.errors import EvaluationWarning

PATENTS = Path(fb.__file__).parent / "data" / "patentsview"


def exactly(value):
    """Compare with a literal; 1e-15 leaves room for the rounding of one division and a mean."""
    return pytest.approx(float(value), rel=0, abs=1e-15 * max(1, abs(value)))


def check(scores, expected):
    for name, value in expected.items():
        assert scores[name] == exactly(value), name


# -- VS Figure 2, W3 (METRICS 1, 14, 16.1): truth {1, 2}, {3}; prediction {1, 3}, {2}; weights 1, 2, 3

ITEMS = ["i1", "i2", "i3"]
W3_TRUTH = dict(zip(ITEMS, ["i1 i2", "i1 i2", "i3"], strict=True))
W3_PREDICTION = dict(zip(ITEMS, ["i1 i3", "i2", "i1 i3"], strict=True))
W3_WEIGHTS = dict(zip(ITEMS, [1, 2, 3], strict=True))
ROOT = math.sqrt(1 / 2)

#: i1, i2, i3, overall (METRICS 1)
W3_SCORES = {
    "precision": (Fr(1, 4), 1, Fr(3, 4), Fr(3, 4)),
    "recall": (Fr(1, 3), Fr(2, 3), 1, Fr(7, 9)),
    "jaccard_distance": (Fr(5, 6), Fr(1, 3), Fr(1, 4), Fr(3, 8)),
    "mean_f1": (Fr(2, 7), Fr(4, 5), Fr(6, 7), Fr(26, 35)),
    "accuracy": (Fr(1, 6), Fr(5, 6), Fr(5, 6), Fr(13, 18)),
    "specificity": (0, 1, Fr(2, 3), Fr(2, 3)),
    "npv": (0, Fr(3, 4), 1, Fr(3, 4)),
    "informedness": (Fr(-2, 3), Fr(2, 3), Fr(2, 3), Fr(4, 9)),
    "markedness": (Fr(-3, 4), Fr(3, 4), Fr(3, 4), Fr(1, 2)),
    "pointwise_ari": (Fr(-2, 3), Fr(2, 3), Fr(2, 3), Fr(4, 9)),
    "mcc": (-ROOT, ROOT, ROOT, 2 / 3 * ROOT),
    "symmetric_difference": (5, 1, 1, Fr(5, 3)),
}


@cache
def w3():
    return fb.evaluate(W3_TRUTH, W3_PREDICTION, weight=W3_WEIGHTS, metrics="all")


def test_figure_2_sets():  # (d): TP, FP, FN, TN of the three items
    expected = {
        "i1": (["i1"], ["i3"], ["i2"], []),
        "i2": (["i2"], [], ["i1"], ["i3"]),
        "i3": (["i3"], ["i1"], [], ["i2"]),
    }
    for item, sets in expected.items():
        members = w3().item(item)["members"]
        assert [members[name]["first"] for name in ("tp", "fp", "fn", "tn")] == list(sets)
        assert [members[name]["n_items"] for name in ("tp", "fp", "fn", "tn")] == list(map(len, sets))


def test_figure_2_matrices():  # (e)
    expected = {"i1": (1, 3, 2, 0), "i2": (2, 0, 1, 3), "i3": (3, 1, 0, 2)}
    for row in w3().items().to_pylist():
        assert tuple(row[name] for name in ("tp", "fp", "fn", "tn")) == expected[row["item"]]
        assert row["weight"] == W3_WEIGHTS[row["item"]]
        assert row["true_cluster"] == W3_TRUTH[row["item"]]
        assert row["pred_cluster"] == W3_PREDICTION[row["item"]]


@pytest.mark.parametrize("name", W3_SCORES)
def test_figure_2_scores(name):  # (f) and (g)
    *items, overall = W3_SCORES[name]
    column = name.replace("mean_", "item_")
    found = dict(zip(w3().items()["item"].to_pylist(), w3().items()[column].to_pylist(), strict=True))
    for item, expected in zip(ITEMS, items, strict=True):
        assert found[item] == exactly(expected)
        assert w3().item(item)[column] == exactly(expected)
    assert w3().overall[name] == exactly(overall)


def test_figure_2_overall():  # 14 and 16.1
    check(w3().overall, {"precision": Fr(3, 4), "recall": Fr(7, 9), "jaccard_distance": Fr(3, 8)})
    check(w3().overall, {"over_merge_rate": Fr(1, 4), "under_merge_rate": Fr(2, 9)})
    check(w3().overall, {"f1": Fr(42, 55), "mean_f1": Fr(26, 35)})
    check(
        w3().overall,
        {
            "bcubed_precision_by_true_cluster": Fr(3, 4),
            "bcubed_recall_by_true_cluster": Fr(7, 9),
            "bcubed_f1_by_true_cluster": Fr(42, 55),
            "bcubed_precision_by_pred_cluster": Fr(13, 16),
            "bcubed_recall_by_pred_cluster": Fr(3, 4),
            "bcubed_f1_by_pred_cluster": Fr(39, 50),
            "elm_precision": Fr(1, 3),
            "elm_recall": Fr(1, 2),
            "elm_f1": Fr(2, 5),
            "elm_mean_f1": 0,
        },
    )
    assert w3().mcc == pytest.approx(0.4714045, abs=5e-8)
    unweighted = fb.evaluate(W3_TRUTH, W3_PREDICTION, metrics="bcubed")
    check(unweighted.overall, dict.fromkeys(["adapted_bcubed_precision", "adapted_bcubed_recall"], Fr(1, 2)))
    check(unweighted.overall, {"adapted_bcubed_f1": Fr(1, 2)})


# 16.1: precision, recall, Jaccard distance
SLICES = {
    ("i1", "i2"): (Fr(3, 4), Fr(5, 9), Fr(1, 2)),  # ideal {i1, i2}
    ("i3",): (Fr(3, 4), 1, Fr(1, 4)),  # ideal {i3}
    ("i1", "i3"): (Fr(5, 8), Fr(5, 6), Fr(19, 48)),  # actual {i1, i3}
    ("i2",): (1, Fr(2, 3), Fr(1, 3)),  # actual {i2}
    ("i2", "i3"): (Fr(17, 20), Fr(13, 15), Fr(17, 60)),
}
THREE = ("precision", "recall", "jaccard_distance")


@pytest.mark.parametrize("items", SLICES)
def test_figure_2_slices(items):
    expected = dict(zip(THREE, SLICES[items], strict=True))
    check(w3().subset(list(items)), expected)
    (row,) = w3().slices({"these": list(items)}).to_pylist()
    check(row, expected)
    mask = np.array([item in items for item in ITEMS])
    check(w3().subset(mask), expected)


def test_figure_2_clusters():
    for side in ("true", "pred"):
        rows = w3().clusters(side).to_pylist()
        assert {row["cluster"] for row in rows} == {"i1 i2", "i3"} if side == "true" else {"i1 i3", "i2"}
        for row in rows:
            items = tuple(row["cluster"].split())
            check(row, dict(zip(THREE, SLICES[items], strict=True)))
            assert row["weight"] == sum(W3_WEIGHTS[item] for item in items)
    # each cluster adds its share: (4 * 5/8 + 2 * 1) / 6 = 3/4
    table = w3().clusters("pred")
    share = np.dot(table["weight"].to_numpy(), table["precision"].to_numpy()) / 6
    assert share == exactly(Fr(3, 4))


def test_figure_2_losses():
    """Of weight 6 in all: i1 and i3 share an actual cluster, i1 and i2 an ideal one; see SLICES."""
    losses = {
        "pred": {
            "i1 i3": (4 * (1 - Fr(5, 8)) / 6, 4 * (1 - Fr(5, 6)) / 6),
            "i2": (0, 2 * (1 - Fr(2, 3)) / 6),
        },
        "true": {
            "i1 i2": (3 * (1 - Fr(3, 4)) / 6, 3 * (1 - Fr(5, 9)) / 6),
            "i3": (3 * (1 - Fr(3, 4)) / 6, 0),
        },
    }
    for side, expected in losses.items():
        rows = w3().clusters(side).to_pylist()
        for row, (name, (of_precision, of_recall)) in zip(rows, expected.items(), strict=True):
            assert row["cluster"] == name  # the costliest first
            check(row, {"precision_loss": of_precision, "recall_loss": of_recall})


def test_printed_percentages():  # 16.1, two decimals, rounded
    i12, i13, i23 = (w3().subset(items) for items in (["i1", "i2"], ["i1", "i3"], ["i2", "i3"]))
    item = {row["item"]: row for row in w3().items().to_pylist()}
    printed = {
        75.00: w3().precision,
        77.78: w3().recall,
        37.50: w3().jaccard_distance,
        33.33: item["i1"]["recall"],
        83.33: item["i1"]["jaccard_distance"],
        66.67: item["i2"]["recall"],
        55.56: i12.recall,
        39.58: i13.jaccard_distance,
        86.67: i23.recall,
        28.33: i23.jaccard_distance,
    }
    for percent, score in printed.items():
        assert f"{100 * score:.2f}" == f"{percent:.2f}"


@pytest.mark.parametrize("shares", [(3.0,), (1.5, 1.5), (1.0, 2.0), (0.5, 1.0, 1.5)])
def test_figure_3(shares):
    """Items inside a cell are split or fused at constant weight: nothing changes overall."""
    n = len(shares)
    ev = fb.evaluate([0, 0] + [1] * n, [0, 1] + [0] * n, weight=[1, 2, *shares])
    check(ev.overall, {"precision": Fr(3, 4), "recall": Fr(7, 9), "jaccard_distance": Fr(3, 8)})


# -- E17 and E8 (METRICS 14, 2.3) ----------------------------------------------------------------


def e17():
    rows = [(5, 1, 0), (1, 4, 1), (2, 0, 3)]
    cells = [(i, j, n) for i, row in enumerate(rows) for j, n in enumerate(row)]
    return zip(*((i, j) for i, j, n in cells for _ in range(n)), strict=True)


@pytest.mark.parametrize("name", E17_MEANS)
def test_e17(name):
    truth, prediction = map(list, e17())
    ev = fb.evaluate(truth, prediction, metrics=name)
    assert ev.overall[name] == exactly(E17_MEANS[name])
    table = fb.Contingency.from_cells([0, 0, 1, 1, 1, 2, 2], [0, 1, 0, 1, 2, 0, 2], [5, 1, 1, 4, 1, 2, 3])
    assert getattr(fb.metrics, name)(contingency=table) == exactly(E17_MEANS[name])


def test_e17_mcc():
    truth, prediction = map(list, e17())
    assert fb.metrics.mcc(truth, prediction) == pytest.approx(0.3415151, abs=5e-8)


def test_e17_weights_make_what_rows_make():
    """A weight of k counts as k items in one cell do, but for ELM."""
    cells = [(0, 0, 5), (0, 1, 1), (1, 0, 1), (1, 1, 4), (1, 2, 1), (2, 0, 2), (2, 2, 3)]
    truth, prediction, weight = zip(*cells, strict=True)
    ev = fb.evaluate(truth, prediction, weight=weight, metrics=["pointwise", "bcubed"])
    weighted = [name for name in E17_MEANS if name in ev.overall]
    assert len(weighted) == 17
    check(ev.overall, {name: E17_MEANS[name] for name in weighted})


def test_e8():  # prediction 1,1,2,3,2,4,4,4 against c1,c1,c1,c2,c2,c3,c3,c4
    truth = ["c1", "c1", "c1", "c2", "c2", "c3", "c3", "c4"]
    ev = fb.evaluate(truth, [1, 1, 2, 3, 2, 4, 4, 4], metrics="all")
    check(ev.overall, {"precision": Fr(17, 24), "recall": Fr(17, 24), "f1": Fr(17, 24)})
    check(
        ev.overall,
        {"bcubed_precision_by_true_cluster": Fr(31, 48), "bcubed_recall_by_true_cluster": Fr(55, 72)},
    )


def test_fbeta():  # METRICS 0.2: P = 1/2, R = 1/4, beta = 2: 5/18
    ev = fb.evaluate(list("aaaabbbb"), [1, 2, 3, 4, 1, 2, 3, 4], beta=2)
    check(ev.overall, {"precision": Fr(1, 2), "recall": Fr(1, 4), "fbeta": Fr(5, 18), "f1": Fr(1, 3)})
    # all items alike, so the mean of F is the F of means: tp 1, fp 1, fn 3: 1 / (1 + 1/5 + 12/5)
    check(ev.overall, {"mean_fbeta": Fr(5, 18)})


def test_adapted_bcubed_for_unbalanced_data():
    """METRICS 2.4: classes of 10 and 2; one item of either strays to the other's cluster.

    alpha = 0.9, which is beta = 1/3. F of the plain scores is 616/699 > 272/313, though the first is
    the worse mistake; with three items it is 595/761 < 775/937, the right way round.
    """
    truth = [0] * 10 + [1] * 2
    small_into_big = [0] * 10 + [0, 1]
    big_into_small = [0] * 9 + [1] + [1] * 2
    scores = ["precision", "recall", "f1", "adapted_bcubed_precision", "adapted_bcubed_recall"]
    first, second = (fb.evaluate(truth, p, metrics=scores) for p in (small_into_big, big_into_small))

    def f(p, r, alpha=0.9):
        return 1 / (alpha / p + (1 - alpha) / r)

    adapted = [f(ev.adapted_bcubed_precision, ev.adapted_bcubed_recall) for ev in (first, second)]
    leaning = [f(ev.precision, ev.recall) for ev in (first, second)]
    assert first.f1 == exactly(Fr(616, 699)) and second.f1 == exactly(Fr(272, 313))
    assert adapted == [exactly(Fr(595, 761)), exactly(Fr(775, 937))]
    assert leaning == [exactly(Fr(3080, 3603)), exactly(Fr(1360, 1537))]
    thirds = fb.evaluate(truth, small_into_big, beta=1 / 3)
    assert thirds.fbeta == pytest.approx(3080 / 3603, abs=1e-15)


# -- ELM (METRICS 3.3, 16.4) -----------------------------------------------------------------------


def test_weighted_elm():
    """METRICS 3.3: truth {1, 2, 3}, prediction {1, 2}, {3}, weights 1, 2, 3."""
    ev = fb.evaluate([0, 0, 0], [0, 0, 1], weight=[1, 2, 3], metrics="elm")
    expected = [(1, Fr(2, 5), Fr(4, 7)), (1, Fr(1, 4), Fr(2, 5)), (1, 0, 0)]
    for row, values in zip(ev.items().to_pylist(), expected, strict=True):
        check(row, dict(zip(("elm_precision", "elm_recall", "elm_item_f1"), values, strict=True)))
    # weighted means: R (1 * 2/5 + 2 * 1/4) / 6 = 3/20, F (1 * 4/7 + 2 * 2/5) / 6 = 8/35
    check(ev.overall, {"elm_precision": 1, "elm_recall": Fr(3, 20), "elm_mean_f1": Fr(8, 35)})
    check(ev.overall, {"elm_f1": Fr(6, 23)})  # 2 * 3/20 / (23/20)


def test_outer_weights_and_elm():
    """Counts inside, weights in the mean alone: R = 1/2, 1/2, 0 and F = 2/3, 2/3, 0."""
    ev = fb.evaluate([0, 0, 0], [0, 0, 1], weight=[1, 2, 3], weighting="outer", metrics="elm")
    check(ev.overall, {"elm_precision": 1, "elm_recall": Fr(1, 4), "elm_mean_f1": Fr(1, 3)})


@pytest.mark.parametrize("n", range(2, 9))
def test_one_block_and_singletons(n):
    """n items in one block, all predicted singletons: BCubed 1, 1/n, 2/(n + 1), and the dual; ELM 0."""
    block, singletons = [0] * n, list(range(n))
    ev = fb.evaluate(block, singletons, metrics="all")
    check(ev.overall, {"precision": 1, "recall": Fr(1, n), "mean_f1": Fr(2, n + 1)})
    check(ev.overall, {"elm_precision": 1, "elm_recall": 0, "elm_f1": 0, "elm_mean_f1": 0})
    dual = fb.evaluate(singletons, block, metrics="all")
    check(dual.overall, {"precision": Fr(1, n), "recall": 1, "mean_f1": Fr(2, n + 1)})
    check(dual.overall, {"elm_precision": 0, "elm_recall": 1, "elm_f1": 0, "elm_mean_f1": 0})


def test_two_documents_averaged():  # n = 2 and its dual: P = R = 3/4, F averaged 2/3
    both = [fb.evaluate([0, 0], [0, 1]), fb.evaluate([0, 1], [0, 0])]
    assert np.mean([ev.precision for ev in both]) == 0.75 == np.mean([ev.recall for ev in both])
    assert np.mean([ev.mean_f1 for ev in both]) == exactly(Fr(2, 3))


def test_perfect_prediction():
    ev = fb.evaluate([0, 0, 1, 2], ["x", "x", "y", "z"], metrics="elm")
    assert set(ev.overall.values()) == {1.0}


def test_elm_on_size_and_quantity():
    """One big cluster that loses an item against small ones that are split (sums of F over items).

    Truth {1..5}, {a, b}, {c, d}, .... Moving item 5 of five away: the four that stay have P = 1, R = 3/4,
    F = 6/7 with ELM and 8/9 with BCubed; the two forms of the figures of EL are 2/3 and 4/5 for a
    cluster of three: its two that stay have ELM R = 1/2, F = 2/3; BCubed R = 2/3, F = 4/5.
    """
    ev = fb.evaluate([0, 0, 0], [0, 0, 1], metrics="all")
    rows = ev.items().to_pylist()
    assert [row["elm_item_f1"] for row in rows] == [exactly(Fr(2, 3)), exactly(Fr(2, 3)), 0]
    assert [row["item_f1"] for row in rows] == [exactly(Fr(4, 5)), exactly(Fr(4, 5)), exactly(Fr(1, 2))]


@pytest.mark.parametrize("n", [3, 4])
def test_rag_bag(n):
    """A stray item joins a clean cluster of n - 1, or a rag bag: ELM P of the stray and its mates.

    In the clean cluster the n - 1 items each have P = (n - 2)/(n - 1) and the stray 0: the mean is
    (n - 2)/n, where it was (n - 1)/(n - 1); alone it would be 1.
    """
    truth = [0] * (n - 1) + [1]
    ev = fb.evaluate(truth, [0] * n, metrics="elm")
    check(ev.overall, {"elm_precision": Fr(n - 2, n), "elm_recall": 1})
    assert [row["elm_precision"] for row in ev.items().to_pylist()] == [
        *[exactly(Fr(n - 2, n - 1))] * (n - 1),
        0,
    ]
    bag = fb.evaluate(range(n), [0] * n, metrics="elm")
    check(bag.overall, {"elm_precision": 0, "elm_recall": 1, "elm_f1": 0})


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_each_item_of_one_side_is_a_cluster_of_its_own(engine):
    """Truth {a, b, c, d}, {e}; prediction {e, f, g}: a to d have P = 1 and R = 1/4, e to g have P = 1/3 and R = 1."""
    truth, prediction = dict(zip("abcde", [1, 1, 1, 1, 2], strict=True)), dict.fromkeys("efg", 1)
    ev = fb.evaluate(truth, prediction, unmatched="singleton", engine=engine)
    check(ev.overall, {"precision": Fr(5, 7), "recall": Fr(4, 7)})


def test_singletons_get_the_share_of_items():
    """METRICS 3.2: truth {1, 2}, {3}; all predicted singletons: R = F = 1/3, a third of the items."""
    ev = fb.evaluate([0, 0, 1], [0, 1, 2], metrics="elm")
    check(ev.overall, {"elm_precision": 1, "elm_recall": Fr(1, 3), "elm_mean_f1": Fr(1, 3)})


# -- Edges (METRICS 0.1) ---------------------------------------------------------------------------


def test_one_item():
    ev = fb.evaluate(["a"], [7], metrics=["pointwise", "bcubed", "elm"], beta=2)
    for metric in ev.metrics:
        if metric.name == "onmi_lfk":  # a cluster of all items has no entropy to be told
            continue
        # nothing to lose by chance: E = 1, and the clusterings are identical
        assert ev.overall[metric.name] == (0.0 if metric.best == "lower" else 1.0), metric.name


def test_rates_of_empty_sets():
    """One true cluster has all: there are no negatives, so specificity is 1, informedness R."""
    ev = fb.evaluate([0, 0, 0], [0, 0, 1], metrics="pointwise")
    # R = 2/3, 2/3, 1/3; NPV: tn = 0, fn = 1, 1, 2: 0 for all
    check(ev.overall, {"specificity": 1, "npv": 0, "recall": Fr(5, 9), "informedness": Fr(5, 9)})
    check(ev.overall, {"markedness": 0, "mcc": 0, "pointwise_ari": 0, "balanced_accuracy": Fr(7, 9)})
    dual = fb.evaluate([0, 0, 1], [0, 0, 0], metrics="pointwise")
    check(dual.overall, {"npv": 1, "specificity": 0, "precision": Fr(5, 9), "markedness": Fr(5, 9)})


def test_chance():
    """METRICS 2.5: truth {1, 2}, {3}, prediction {1, 3}, {2}: A = B = 1/3, K = M = 2, n = 3.

    E = 2/3 + 1/3 * 1/3 = 7/9. P = R = (1/2 + 1 + 1/2) / 3 = 2/3, adjusted (2/3 - 7/9) / (2/9) = -1/2.
    """
    ev = fb.evaluate([0, 0, 1], [0, 1, 0], metrics="bcubed")
    for which in ("precision", "recall"):
        check(ev.overall, {f"chance_bcubed_{which}": Fr(7, 9), f"adjusted_bcubed_{which}": Fr(-1, 2)})


def test_markedness_of_a_table():  # METRICS 0.1.4: 2, 3, 0, 0 has markedness 2/5
    cells = fb.Contingency.from_cells([0, 1], [0, 0], [2, 3])
    # the items of the first cell have tp, fp, fn, tn = 2, 3, 0, 0; those of the second 3, 2, 0, 0
    assert fb.metrics.markedness(contingency=cells) == exactly((2 * Fr(2, 5) + 3 * Fr(3, 5)) / 5)


# -- Real data: the figures that come with the bundled patents, and the twin's -----------------------


@cache
def patents(name):
    table = pq.read_table(PATENTS / f"{name}.parquet", columns=["item", "cluster"])
    return dict(zip(table["item"].to_pylist(), table["cluster"].to_pylist(), strict=True))


#: Printed with the data, on the items both have: precision, recall; items of the release.
RELEASES = {"pred_20200929": ("0.9063", "0.8072", 17_186), "pred_20211230": ("0.9756", "0.9352", 19_235)}


@pytest.mark.parametrize("release", RELEASES)
def test_patents(release):
    precision, recall, n = RELEASES[release]
    ev = fb.evaluate(PATENTS / "truth.parquet", PATENTS / f"{release}.parquet")
    assert (f"{ev.precision:.4f}", f"{ev.recall:.4f}") == (precision, recall)
    assert ev.coverage.n_common == n
    assert ev.coverage.n_truth_only == 19_602 - n
    assert ev.coverage.n_prediction_only == 0
    assert ev.coverage.truth_coverage == n / 19_602
    assert ev.bounds is None
    assert [(w["code"], w["level"]) for w in ev.warnings] == [("dropping-truth-flatters", "warning")]


def test_patents_from_china_are_merged_most():
    """Of the countries with a thousand mentions or more, CN has the lowest precision in 2020."""
    ev = fb.evaluate(PATENTS / "truth.parquet", PATENTS / "pred_20200929.parquet", slices="country")
    large = [row for row in ev.sliced["country"].to_pylist() if row["n_items"] >= 1000]
    assert min(large, key=lambda row: row["precision"])["country"] == "CN"
    assert sum(ev.sliced["country"]["n_items"].to_pylist()) == 17_186


def shards(truth, prediction):
    """Cut two clusterings where no cluster is cut, so that the slow twin can score them bit by bit.

    Each shard holds an item that both sides have.
    """
    of_cluster = defaultdict(list)
    for side, labels in enumerate((truth, prediction)):
        for item, label in labels.items():
            of_cluster[side, label].append(item)
    seen, groups, group = set(), [], []
    for start in truth | prediction:
        if start in seen:
            continue
        seen.add(start)
        queue = [start]
        while queue:
            item = queue.pop()
            group.append(item)
            for side, labels in enumerate((truth, prediction)):
                for mate in of_cluster.pop((side, labels.get(item)), ()):
                    if mate not in seen:
                        seen.add(mate)
                        queue.append(mate)
        if len(group) >= 20 and any(item in truth and item in prediction for item in group):
            groups.append(group)
            group = []
    groups[-1] += group
    for group in groups:
        yield [{e: side[e] for e in group if e in side} for side in (truth, prediction)]


FAMILIAR = ["precision", "recall", "mean_f1", "jaccard_distance", "elm_precision", "elm_recall"]


def by_the_twin(cuts, unmatched):
    """Return what the twin says of all shards together, exactly; bounds as well.

    Without weights its matrices may count items instead of adding weights of 1, which is faster.
    """
    sums, whole = defaultdict(Fr), Fr(0)
    for pair in cuts:
        ev = remembering(naive.evaluate(*pair, unmatched=unmatched, weighting="outer"))
        n = len(ev.items)
        whole += n
        for name in FAMILIAR:
            sums[name] += n * ev.mean(name)
        for name in ("precision_lower", "precision_upper", "mates_unlabelled"):
            sums[name] += n * (ev.coverage.get(name) or 0)
    return {name: value / whole for name, value in sums.items()}, int(whole)


def remembering(ev):
    """Let the twin work out the mates of a cell once."""
    for name in ("true_mates", "pred_mates"):
        found, once = getattr(ev, name), {}

        def mates(e, found=found, once=once):
            cell = ev.true[e], ev.pred[e]
            if cell not in once:
                once[cell] = found(e)
            return once[cell]

        setattr(ev, name, mates)
    return ev


@pytest.mark.cases(0, 2)
@pytest.mark.parametrize("unmatched", ["drop", "singleton", "outside"])
@pytest.mark.parametrize("labelled", [pytest.param("all", marks=pytest.mark.slow), "a fifth"])
def test_patents_by_the_twin(labelled, unmatched):
    """With all labels, and a ninth of it with those of every fifth true cluster alone (METRICS 0.3).

    Items that hang together with 90 others or more are left out, for the twin takes cubic time.
    """
    truth, prediction = patents("truth"), patents("pred_20200929")
    if labelled == "a fifth":
        chosen = set(sorted(set(truth.values()))[::5])
        truth = {e: cluster for e, cluster in truth.items() if cluster in chosen}
    cuts = [pair for pair in shards(truth, prediction) if len(pair[0] | pair[1]) < 90]
    cuts = cuts if labelled == "all" else cuts[::9]
    truth, prediction = ({e: pair[k][e] for pair in cuts for e in pair[k]} for k in (0, 1))
    assert len(truth | prediction) > (8_000 if labelled == "all" else 300)
    expected, n = by_the_twin(cuts, unmatched)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EvaluationWarning)
        ev = fb.evaluate(truth, prediction, unmatched=unmatched, metrics=FAMILIAR)
    assert ev.contingency.n_items == n
    for name in FAMILIAR:
        assert ev.overall[name] == pytest.approx(float(expected[name]), rel=0, abs=1e-12), name
    if (labelled, unmatched) == ("a fifth", "drop"):
        assert "dropping-flatters" in {warning["code"] for warning in ev.warnings}
        assert ev.bounds.precision_lower == pytest.approx(float(expected["precision_lower"]), abs=1e-12)
        assert ev.bounds.precision_upper == pytest.approx(float(expected["precision_upper"]), abs=1e-12)
        assert ev.bounds.unlabelled_mates == pytest.approx(float(expected["mates_unlabelled"]), abs=1e-12)
    else:
        assert ev.bounds is None


@pytest.mark.slow
def test_outside_finds_the_precision_that_dropping_hides():
    """True clusters are complete, a fifth of them labelled: outside is near the truth, drop is not."""
    truth, prediction = patents("truth"), patents("pred_20200929")
    whole = fb.evaluate(truth, prediction).precision
    chosen = set(sorted(set(truth.values()))[::5])
    some = {e: cluster for e, cluster in truth.items() if cluster in chosen}
    options = {"metrics": "precision"}
    with pytest.warns(EvaluationWarning, match="does not label"):
        dropped = fb.evaluate(some, prediction, **options).precision
    outside = fb.evaluate(
        some, prediction, unmatched={"truth": "drop", "prediction": "outside"}, **options
    ).precision
    assert abs(outside - whole) < abs(dropped - whole) / 2
