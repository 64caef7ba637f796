"""The twin against values worked by hand or printed in METRICS.md (named in the comments)."""

import itertools
import math
from collections import Counter
from fractions import Fraction as Fr

import pytest
from naive import Alone, evaluate, f_measure
from worked import E17_MEANS


def labels(*clusters):
    return {item: number for number, cluster in enumerate(clusters) for item in cluster}


def partitions(items):
    """Every partition of a list of items, as lists of lists."""
    if not items:
        yield []
        return
    for rest in partitions(items[1:]):
        yield [[items[0]], *rest]
        for k in range(len(rest)):
            yield [*rest[:k], [items[0], *rest[k]], *rest[k + 1 :]]


def every_pair(n):
    ways = [labels(*p) for p in partitions(list(range(n)))]
    return [evaluate(t, p) for t in ways for p in ways]


def e17():
    """Table rows (5,1,0), (1,4,1), (2,0,3); METRICS 14."""
    truth, prediction = {}, {}
    for i, row in enumerate([(5, 1, 0), (1, 4, 1), (2, 0, 3)]):
        for j, count in enumerate(row):
            for k in range(count):
                truth[i, j, k], prediction[i, j, k] = i, j
    return evaluate(truth, prediction)


def w3(weighting="pointwise", weights=(1, 2, 3)):
    """VS Figure 2."""
    weights = None if weights is None else dict(zip([1, 2, 3], weights, strict=True))
    return evaluate({1: "A", 2: "A", 3: "B"}, {1: 8, 2: 9, 3: 8}, weights, weighting=weighting)


def check(ev, expected, subset=None):
    assert {name: ev.mean(name, subset) for name in expected} == expected


# -- VS Figure 2 (METRICS 1 and 16.1) -------------------------------------------------------------


def test_w3_sets():  # Figure 2(d)
    ev = w3()
    assert ev.items == [1, 2, 3]
    assert ev.sets(1) == {"tp": {1}, "fp": {3}, "fn": {2}, "tn": set()}
    assert ev.sets(2) == {"tp": {2}, "fp": set(), "fn": {1}, "tn": {3}}
    assert ev.sets(3) == {"tp": {3}, "fp": {1}, "fn": set(), "tn": {2}}
    assert all(isinstance(s, frozenset) for e in ev.items for s in ev.sets(e).values())


def test_w3_matrices():  # Figure 2(e); under "outer" the same sets are counted
    assert [w3().matrix(e) for e in (1, 2, 3)] == [(1, 3, 2, 0), (2, 0, 1, 3), (3, 1, 0, 2)]
    outer = w3("outer")
    assert [outer.matrix(e) for e in (1, 2, 3)] == [(1, 1, 1, 0), (1, 0, 1, 1), (1, 1, 0, 1)]


W3 = {  # item 1, item 2, item 3, overall: the table of METRICS 1
    "precision": (Fr(1, 4), 1, Fr(3, 4), Fr(3, 4)),
    "recall": (Fr(1, 3), Fr(2, 3), 1, Fr(7, 9)),
    "over_merge_rate": (Fr(3, 4), 0, Fr(1, 4), Fr(1, 4)),
    "under_merge_rate": (Fr(2, 3), Fr(1, 3), 0, Fr(2, 9)),
    "jaccard_distance": (Fr(5, 6), Fr(1, 3), Fr(1, 4), Fr(3, 8)),
    "jaccard_index": (Fr(1, 6), Fr(2, 3), Fr(3, 4), Fr(5, 8)),
    "item_f1": (Fr(2, 7), Fr(4, 5), Fr(6, 7), Fr(26, 35)),
    "accuracy": (Fr(1, 6), Fr(5, 6), Fr(5, 6), Fr(13, 18)),
    "specificity": (0, 1, Fr(2, 3), Fr(2, 3)),
    "npv": (0, Fr(3, 4), 1, Fr(3, 4)),
    # (R + TNR)/2: (1/3 + 0)/2, (2/3 + 1)/2, (1 + 2/3)/2; overall (7/9 + 2/3)/2
    "balanced_accuracy": (Fr(1, 6), Fr(5, 6), Fr(5, 6), Fr(13, 18)),
    "informedness": (Fr(-2, 3), Fr(2, 3), Fr(2, 3), Fr(4, 9)),
    "markedness": (Fr(-3, 4), Fr(3, 4), Fr(3, 4), Fr(1, 2)),
    "pointwise_ari": (Fr(-2, 3), Fr(2, 3), Fr(2, 3), Fr(4, 9)),
    "symmetric_difference": (5, 1, 1, Fr(5, 3)),
    "bcubed_precision": (Fr(1, 4), 1, Fr(3, 4), Fr(3, 4)),
    "bcubed_recall": (Fr(1, 3), Fr(2, 3), 1, Fr(7, 9)),
    "elm_precision": (0, 1, 0, Fr(1, 3)),
    "elm_recall": (0, 0, 1, Fr(1, 2)),
    "elm_item_f1": (0, 0, 0, 0),
}


@pytest.mark.parametrize("name", W3)
def test_w3_scores(name):
    ev = w3()
    scores = *(ev.score(name, e) for e in (1, 2, 3)), ev.mean(name)
    assert scores == W3[name]
    assert all(isinstance(s, Fr) for s in scores)


def test_w3_roots():
    ev, h = w3(), math.sqrt(1 / 2)
    # MCC -1/sqrt 2, 1/sqrt 2, 1/sqrt 2, overall (2/3)/sqrt 2 = 0.4714045
    mcc = [*(ev.score("mcc", e) for e in (1, 2, 3)), ev.mean("mcc")]
    assert mcc == pytest.approx([-h, h, h, h * 2 / 3], rel=1e-15)
    assert ev.mean("mcc") == pytest.approx(0.4714045, abs=5e-8)
    # Fowlkes-Mallows sqrt(P R): sqrt(1/12), sqrt(2/3), sqrt(3/4), weights 1, 2, 3
    fm = [math.sqrt(x) for x in (1 / 12, 2 / 3, 3 / 4)]
    name = "pointwise_fowlkes_mallows"
    assert [ev.score(name, e) for e in (1, 2, 3)] == pytest.approx(fm, rel=1e-15)
    assert ev.mean(name) == pytest.approx((fm[0] + 2 * fm[1] + 3 * fm[2]) / 6, rel=1e-15)
    assert isinstance(ev.mean("mcc"), float) and isinstance(ev.mean(name), float)


def test_w3_slices():  # Figure 2(g) and 16.1: precision, recall, Jaccard distance
    ev = w3()
    assert ev.clusters("true") == {"A": [1, 2], "B": [3]}
    assert ev.clusters("pred") == {8: [1, 3], 9: [2]}
    for subset, p, r, jd in [
        ([1, 2], Fr(3, 4), Fr(5, 9), Fr(1, 2)),
        ([1, 3], Fr(5, 8), Fr(5, 6), Fr(19, 48)),
        ([2, 3], Fr(17, 20), Fr(13, 15), Fr(17, 60)),
        ([3], Fr(3, 4), 1, Fr(1, 4)),
        ([2], 1, Fr(2, 3), Fr(1, 3)),
    ]:
        check(ev, {"precision": p, "recall": r, "jaccard_distance": jd}, subset)
    # F of the means of {1,2}: 2 (3/4)(5/9) / (3/4 + 5/9) = 30/47; a generator is read once
    assert ev.mean("f1", (e for e in (1, 2))) == Fr(30, 47)
    assert (4 * Fr(5, 8) + 2 * 1) / 6 == ev.mean("precision")


def test_w3_overall():  # METRICS 14
    ev = w3()
    check(ev, {"f1": Fr(42, 55), "mean_f1": Fr(26, 35)})
    check(ev, {"bcubed_f1": Fr(42, 55), "bcubed_mean_f1": Fr(26, 35)})
    check(ev, {"elm_f1": Fr(2, 5), "elm_mean_f1": 0})
    per_class = {"precision": Fr(3, 4), "recall": Fr(7, 9), "f1": Fr(42, 55)}
    per_cluster = {"precision": Fr(13, 16), "recall": Fr(3, 4), "f1": Fr(39, 50)}
    check(ev, {f"bcubed_{k}_by_true_cluster": v for k, v in per_class.items()})
    check(ev, {f"bcubed_{k}_by_pred_cluster": v for k, v in per_cluster.items()})
    adapted = {f"adapted_bcubed_{k}": Fr(1, 2) for k in ("precision", "recall", "f1")}
    check(w3(weights=None), adapted)  # unweighted


def test_lift():
    ev = w3()
    assert ev.lift(lambda tp, fp, fn, tn: tp / (tp + fp)) == Fr(3, 4)
    # TP 1, 2, 3 with weights 1, 2, 3: (1 + 4 + 9)/6; items 2 and 3: (4 + 9)/5
    assert ev.lift(lambda tp, fp, fn, tn: tp) == Fr(7, 3)
    assert ev.lift(lambda tp, fp, fn, tn: tp, [2, 3]) == Fr(13, 5)
    assert ev.lift(lambda tp, fp, fn, tn: float(tp)) == 14 / 6


def test_splitting_items_inside_a_cell():  # VS Figure 3 and METRICS 1.1(4)
    truth, prediction = {1: "A", 2: "A", 3: "B", 4: "B"}, {1: 8, 2: 9, 3: 8, 4: 8}
    ev = evaluate(truth, prediction, {1: 1, 2: 2, 3: Fr(1, 2), 4: 2.5})  # item 3 in two parts
    check(ev, {"precision": Fr(3, 4), "recall": Fr(7, 9), "jaccard_distance": Fr(3, 8)})
    # Not so for ELM: items 3 and 4 now find each other. P: 0, 1, (5/2)/(7/2) = 5/7, (1/2)/(3/2) =
    # 1/3, so (2 + 5/14 + 5/6)/6 = 67/126, where W3 has 1/3
    check(ev, {"elm_precision": Fr(67, 126)})


def test_scale_of_the_weights():  # METRICS 1.1(1)
    ev, big = w3(), w3(weights=(7, 14, 21))
    for name in W3.keys() - {"symmetric_difference"}:
        assert big.mean(name) == ev.mean(name)
    assert big.mean("symmetric_difference") == Fr(35, 3)


def test_float_weights_are_exact():  # 1 + 2^-52 is not rounded away; P(1) = w1/(w1 + w3)
    ev = w3(weights=(1 + 2**-52, 2, 3))
    assert ev.score("precision", 1) == Fr(2**52 + 1, 2**54 + 1)


# -- E17, E8 (METRICS 14 and 2.3) -----------------------------------------------------------------


def test_e17():
    check(e17(), E17_MEANS)
    assert e17().mean("mcc") == pytest.approx(0.3415151, abs=5e-8)


def test_e17_summary():  # rows of 6, 6, 5; columns of 8, 5, 4; no row is a column
    sizes = {"n_items": 17, "n_clusters": 3, "n_singletons": 0, "n_exact": 0}
    assert e17().summary == {"true": sizes | {"largest": 6}, "pred": sizes | {"largest": 8}}


def test_e8():
    truth = ["c1", "c1", "c1", "c2", "c2", "c3", "c3", "c4"]
    ev = evaluate(dict(enumerate(truth)), dict(enumerate([1, 1, 2, 3, 2, 4, 4, 4])))
    check(ev, {"bcubed_precision": Fr(17, 24), "bcubed_recall": Fr(17, 24)})
    check(ev, {"bcubed_precision_by_true_cluster": Fr(31, 48)})
    check(ev, {"bcubed_recall_by_true_cluster": Fr(55, 72)})


# -- F, weighting, 0/0 ----------------------------------------------------------------------------


def test_f_measure():
    assert f_measure(Fr(1, 2), Fr(1, 4), Fr(1, 5)) == Fr(5, 18)  # METRICS 0.2, beta = 2
    assert f_measure(Fr(0), Fr(1), Fr(1, 2)) == f_measure(Fr(1), Fr(0), Fr(1, 2)) == 0
    assert f_measure(Fr(0), Fr(1), 0) == f_measure(Fr(1), Fr(0), 1) == 1  # alpha 0: R; 1: P


def test_beta():
    truth, prediction = labels("ab", "c"), labels("ac", "b")
    ev = evaluate(truth, prediction, beta=2)
    # P 1/2, 1, 1/2; R 1/2, 1/2, 1; alpha = 1/5, F(e) = 1/(1/(5P) + 4/(5R)): 1/2, 5/9, 5/6
    assert [ev.score("item_fbeta", e) for e in "abc"] == [Fr(1, 2), Fr(5, 9), Fr(5, 6)]
    check(ev, {"mean_fbeta": Fr(17, 27), "bcubed_mean_fbeta": Fr(17, 27)})
    check(ev, {"fbeta": Fr(2, 3), "mean_f1": Fr(11, 18)})  # P = R = 2/3; F1: 1/2, 2/3, 2/3
    for beta, same in [(0, "precision"), (math.inf, "recall")]:
        ev = evaluate(truth, prediction, beta=beta)
        for name in ("", "bcubed_", "elm_"):
            p_or_r = ev.mean(name + same)
            assert ev.mean(name + "fbeta") == ev.mean(name + "mean_fbeta") == p_or_r
    # ELM, beta = 2: truth {1,2,3}, prediction {1,2},{3}: R = 1/2, 1/2, 0 and FN = 1, 1, 2, so
    # F = 1/(1 + 4/5) = 5/9 twice and 0
    ev = evaluate(labels([1, 2, 3]), labels([1, 2], [3]), beta=2)
    assert [ev.score("elm_item_fbeta", e) for e in (1, 2, 3)] == [Fr(5, 9), Fr(5, 9), 0]


def test_outer_weighting():
    # counts: P 1/2, 1, 1/2; R 1/2, 1/2, 1; ELM P 0, 1, 0. Weights 1, 2, 3 in the mean only
    ev = w3("outer")
    check(ev, {"precision": Fr(2, 3), "bcubed_precision": Fr(2, 3)})
    check(ev, {"recall": Fr(3, 4), "bcubed_recall": Fr(3, 4), "elm_precision": Fr(1, 3)})
    # weights 0, 2, 3: item 1 still counts as a false positive of item 3: (2 + 3/2)/5
    ev = w3("outer", (0, 2, 3))
    assert ev.sets(3)["fp"] == {1}
    check(ev, {"precision": Fr(7, 10)})
    for name in W3:  # equal weights: the same as pointwise, symmetric difference apart by scale
        assert w3("outer", (1, 1, 1)).mean(name) == w3(weights=None).mean(name)


def test_empty_margins():
    one = evaluate({1: "A"}, {1: "B"})
    zero = {"over_merge_rate", "under_merge_rate", "jaccard_distance", "symmetric_difference"}
    for name in [*W3, "mcc", "pointwise_fowlkes_mallows", "elm_mean_f1", "f1"]:
        assert one.mean(name) == (0 if name in zero else 1)
    # METRICS 0.1(4), matrix 2,3,0,0: truth {1,2},{3,4,5}, one predicted cluster, item 1
    ev = evaluate(labels([1, 2], [3, 4, 5]), labels([1, 2, 3, 4, 5]))
    assert ev.matrix(1) == (2, 3, 0, 0)
    assert ev.score("markedness", 1) == Fr(2, 5)
    assert ev.score("informedness", 1) == ev.score("mcc", 1) == ev.score("pointwise_ari", 1) == 0
    # the other way round the negatives are empty: informedness equals R = 2/5
    ev = evaluate(labels([1, 2, 3, 4, 5]), labels([1, 2], [3, 4, 5]))
    assert ev.score("specificity", 1) == 1
    assert ev.score("informedness", 1) == Fr(2, 5)


# -- Items that only one side has (METRICS 0.3), by hand ------------------------------------------

# a, b in X and c, d in Y; predicted a, c, y together, b and z alone; d only in the truth
TRUTH = {"a": "X", "b": "X", "c": "Y", "d": "Y"}
PREDICTION = {"a": 1, "b": 2, "c": 1, "y": 1, "z": 3}
WEIGHTS = {"a": 1, "b": 2, "c": 3, "d": 4, "y": 5, "z": 6}


def test_drop():
    ev = evaluate(TRUTH, PREDICTION)
    assert ev.items == ["a", "b", "c"]
    # P 1/2, 1, 1/2; R 1/2, 1/2, 1; with y wrong P is 1/3, 1, 1/3, with y right 2/3, 1, 2/3
    check(ev, {"precision": Fr(2, 3), "recall": Fr(2, 3)})
    assert ev.coverage == {
        "n_common": 3,
        "n_truth_only": 1,
        "n_prediction_only": 2,
        "w_common": 3,
        "w_truth_only": 1,
        "w_prediction_only": 2,
        "truth_coverage": Fr(3, 4),
        "precision_lower": Fr(5, 9),
        "precision_upper": Fr(7, 9),
        "mates_unlabelled": Fr(2, 3),
    }
    sizes = {"n_items": 3, "n_clusters": 2, "n_singletons": 1, "largest": 2, "n_exact": 0}
    assert ev.summary == {"true": sizes, "pred": sizes}


def test_drop_weighted():
    cover = evaluate(TRUTH, PREDICTION, WEIGHTS).coverage
    assert (cover["w_common"], cover["w_truth_only"], cover["w_prediction_only"]) == (6, 4, 11)
    assert cover["truth_coverage"] == Fr(6, 10)
    # u = 5 beside b = 1 + 3. Wrong: a 1/9, b 1, c 3/9, so (1/9 + 2 + 1)/6; right: 6/9, 1, 8/9,
    # so (2/3 + 2 + 8/3)/6. a and c, 4 of the weight of 6, have y as a mate
    assert (cover["precision_lower"], cover["precision_upper"]) == (Fr(14, 27), Fr(8, 9))
    assert cover["mates_unlabelled"] == Fr(2, 3)
    # outer: the counts of the plain case, weights 1, 2, 3: (1/3 + 2 + 1)/6, (2/3 + 2 + 2)/6
    cover = evaluate(TRUTH, PREDICTION, WEIGHTS, weighting="outer").coverage
    assert (cover["precision_lower"], cover["precision_upper"]) == (Fr(5, 9), Fr(7, 9))


def test_dropped_items_need_no_weight():
    cover = evaluate(TRUTH, PREDICTION, {"a": 1, "b": 2, "c": 3}).coverage
    assert (cover["n_prediction_only"], cover["w_prediction_only"]) == (2, None)
    assert cover["w_common"] == 6
    assert cover["truth_coverage"] is cover["precision_lower"] is cover["precision_upper"] is None
    with pytest.raises(ValueError):
        evaluate(TRUTH, PREDICTION, {"a": 1, "b": 2, "c": 3}, unmatched="singleton")
    with pytest.raises(ValueError):  # y stays in its cluster, so it is counted
        evaluate(TRUTH, PREDICTION, {"a": 1, "b": 2, "c": 3, "d": 4}, unmatched="outside")


def test_singleton():
    ev = evaluate(TRUTH, PREDICTION, unmatched="singleton")
    assert ev.items == ["a", "b", "c", "d", "y", "z"]
    assert ev.sets("a") == {"tp": {"a"}, "fp": {"c", "y"}, "fn": {"b"}, "tn": {"d", "z"}}
    assert ev.clusters("pred")[Alone("d")] == ["d"]
    assert ev.clusters("true")[Alone("y")] == ["y"]
    # P 1/3, 1, 1/3, 1, 1/3, 1; R 1/2, 1/2, 1/2, 1/2, 1, 1
    check(ev, {"precision": Fr(2, 3), "recall": Fr(2, 3)})
    assert "precision_lower" not in ev.coverage
    assert ev.coverage["truth_coverage"] == Fr(3, 4)
    # true X, Y, {y}, {z}; predicted {a,c,y}, {b}, {z}, {d}; z is recovered exactly
    true = {"n_items": 6, "n_clusters": 4, "n_singletons": 2, "largest": 2, "n_exact": 1}
    pred = {"n_items": 6, "n_clusters": 4, "n_singletons": 3, "largest": 3, "n_exact": 1}
    assert ev.summary == {"true": true, "pred": pred}
    # one side each: a, b, c, d with P 1/2, 1, 1/2, 1, or a, b, c, y, z with R 1/2, 1/2, 1, 1, 1
    ev = evaluate(TRUTH, PREDICTION, unmatched={"truth": "singleton"})
    check(ev, {"precision": Fr(3, 4), "recall": Fr(1, 2)})
    assert ev.coverage["mates_unlabelled"] == Fr(1, 2)
    ev = evaluate(TRUTH, PREDICTION, unmatched={"prediction": "singleton"})
    check(ev, {"precision": Fr(3, 5), "recall": Fr(4, 5)})


def test_outside():
    ev = evaluate(TRUTH, PREDICTION, unmatched="outside")
    assert ev.items == ["a", "b", "c", "d"]
    assert ev.sets("a") == {"tp": {"a"}, "fp": {"c", "y"}, "fn": {"b"}, "tn": None}
    assert ev.matrix("a") == (1, 2, 1, None)
    # P 1/3, 1, 1/3, 1 and R all 1/2, by sets and by AM's double loop
    check(ev, {"precision": Fr(2, 3), "bcubed_precision": Fr(2, 3)})
    check(ev, {"recall": Fr(1, 2), "bcubed_recall": Fr(1, 2)})
    for name in ("accuracy", "mcc", "npv", "adjusted_bcubed_precision"):
        with pytest.raises(ValueError):
            ev.mean(name)
    # weights: P of a 1/(1+3+5), of b 1, of c 3/9, of d 1: (1/9 + 2 + 1 + 4)/10
    check(evaluate(TRUTH, PREDICTION, WEIGHTS, unmatched="outside"), {"precision": Fr(32, 45)})
    # without d it is the lower bound of drop, here and with weights
    policy = {"truth": "drop", "prediction": "outside"}
    check(evaluate(TRUTH, PREDICTION, unmatched=policy), {"precision": Fr(5, 9)})
    check(evaluate(TRUTH, PREDICTION, WEIGHTS, unmatched=policy), {"precision": Fr(14, 27)})


def test_outside_mate_spoils_an_exact_cluster():
    truth, prediction = labels("ab", "c"), labels("aby", "c")
    assert evaluate(truth, prediction).summary["true"]["n_exact"] == 2
    assert evaluate(truth, prediction, unmatched="outside").summary["pred"]["n_exact"] == 1
    # ELM: a has mates b and y, so P = 1/2; c is alone, so P = 1: (1/2 + 1/2 + 1)/3
    check(evaluate(truth, prediction, unmatched="outside"), {"elm_precision": Fr(2, 3)})


@pytest.mark.parametrize(
    "arguments",
    [
        {"truth": {}, "prediction": {}},
        {"truth": {1: 1}, "prediction": {2: 1}},
        {"truth": {1: 1}, "prediction": {2: 1}, "unmatched": "singleton"},
        {"unmatched": "raise"},
        {"unmatched": {"truth": "raise"}},
        {"unmatched": {"prediction": "raise"}},
        {"unmatched": "ignore"},
        {"unmatched": {"truth": "outside"}},
        {"unmatched": {"pred": "drop"}},
        {"weighting": "inner"},
        {"beta": -1},
        {"beta": math.nan},
        {"weights": {"a": 1, "b": 1}},
        {"weights": WEIGHTS | {"a": 0}},
        {"weights": WEIGHTS | {"a": -1}},
        {"weights": WEIGHTS | {"a": -1}, "weighting": "outer"},
        {"weights": WEIGHTS | {"a": math.nan}},
        {"weights": WEIGHTS | {"a": math.inf}},
        {"weights": dict.fromkeys("abcdyz", 0), "weighting": "outer"},
    ],
)
def test_errors(arguments):
    with pytest.raises(ValueError):
        evaluate(**{"truth": TRUTH, "prediction": PREDICTION} | arguments)


def test_errors_of_means():
    ev = evaluate(TRUTH, PREDICTION)
    for name, subset in [("precision", []), ("precision", ["d"]), ("bcubed", None), ("f2", None)]:
        with pytest.raises(ValueError):
            ev.mean(name, subset)
    with pytest.raises(ValueError):  # unequal weights
        w3().mean("chance_bcubed_precision")


# -- BCubed: adapted, against chance, the two F (METRICS 2) ---------------------------------------


def test_adapted_bcubed_orders_unbalanced_data():
    """METRICS 2.4: classes of 10 and 2. A small-class item lost in the big cluster; a converse."""
    truth = labels(range(10), [10, 11])
    lost, converse = labels(range(11), [11]), labels(range(9), [9, 10, 11])
    check(evaluate(truth, lost), {"bcubed_f1": Fr(616, 699)})
    check(evaluate(truth, converse), {"bcubed_f1": Fr(272, 313)})
    third = Fr(1, 3)  # alpha = 1/(1 + 1/9) = .9
    ev = evaluate(truth, lost, beta=third)
    check(ev, {"adapted_bcubed_fbeta": Fr(595, 761), "bcubed_fbeta": Fr(3080, 3603)})
    ev = evaluate(truth, converse, beta=third)
    check(ev, {"adapted_bcubed_fbeta": Fr(775, 937), "bcubed_fbeta": Fr(1360, 1537)})


@pytest.mark.parametrize(
    ("true_sizes", "pred_sizes", "p", "r", "elm_p", "elm_r"),
    [
        # A = 4/20 = 1/5, B = 6/20 = 3/10: 3/5 + 2/5 A, 3/5 + 2/5 B; ELM 2/5 + 3/5 A, 1/5 + 4/5 B
        ((2, 2, 1), (3, 1, 1), Fr(17, 25), Fr(18, 25), Fr(13, 25), Fr(11, 25)),
        # A = 6/12 = 1/2, B = 4/12 = 1/3: 1/2 + 1/2 A, 1/2 + 1/2 B; ELM A, 1/4 + 3/4 B
        ((3, 1), (2, 2), Fr(3, 4), Fr(2, 3), Fr(1, 2), Fr(1, 2)),
        # A = 1 (one class), B = 2/12 = 1/6: 1, 1/4 + 3/4 B; ELM 1, B
        ((4,), (2, 1, 1), Fr(1), Fr(3, 8), Fr(1), Fr(1, 6)),
    ],
)
def test_chance_is_the_mean_over_all_permutations(true_sizes, pred_sizes, p, r, elm_p, elm_r):
    """METRICS 2.5, and its remark on ELM."""
    true = [i for i, size in enumerate(true_sizes) for _ in range(size)]
    pred = [j for j, size in enumerate(pred_sizes) for _ in range(size)]
    expected = {"bcubed_precision": p, "bcubed_recall": r}
    total, ways = Counter(), 0
    for shuffled in itertools.permutations(pred):
        ev, ways = evaluate(dict(enumerate(true)), dict(enumerate(shuffled))), ways + 1
        for name in (*expected, "elm_precision", "elm_recall"):
            total[name] += ev.mean(name)
    check(ev, {f"chance_{name}": value for name, value in expected.items()})
    means = {name: value / ways for name, value in total.items()}
    assert means == expected | {"elm_precision": elm_p, "elm_recall": elm_r}


def test_adjusted_bcubed():
    # no room above chance: all predicted alone, then also all truly alone; and one cluster
    names = "adjusted_bcubed_precision", "adjusted_bcubed_recall"
    alone, pairs, one = labels("a", "b", "c", "d"), labels("ab", "cd"), labels("abcd")
    assert evaluate(pairs, alone).mean(names[0]) == evaluate(one, pairs).mean(names[0]) == 0
    assert evaluate(alone, pairs).mean(names[1]) == 0
    for truth in (alone, pairs, one, {1: 1}):
        check(evaluate(truth, truth), dict.fromkeys(names, 1))


def test_mean_f_and_f_of_means():
    """METRICS 2.2: mean F <= F of means, equal iff P(e)/R(e) is one number; n = 4."""
    for ev in every_pair(4):
        ratios = {ev.score("precision", e) / ev.score("recall", e) for e in ev.items}
        mean_f, f = ev.mean("mean_f1"), ev.mean("f1")
        assert mean_f == f if len(ratios) == 1 else mean_f < f


# -- ELM (METRICS 3 and 16.4) ---------------------------------------------------------------------


def test_elm_of_weights():  # METRICS 3.3
    truth, prediction = labels([1, 2, 3]), labels([1, 2], [3])
    ev = evaluate(truth, prediction, {1: 1, 2: 2, 3: 3})
    names = "elm_precision", "elm_recall", "elm_item_f1"
    assert [ev.score(name, 1) for name in names] == [1, Fr(2, 5), Fr(4, 7)]
    assert [ev.score(name, 2) for name in names] == [1, Fr(1, 4), Fr(2, 5)]
    assert [ev.score(name, 3) for name in names] == [1, 0, 0]
    # means: R (2/5 + 1/2)/6 = 3/20, F (4/7 + 4/5)/6 = 8/35; F of means (3/10)/(23/20) = 6/23
    check(ev, {"elm_precision": 1, "elm_recall": Fr(3, 20), "elm_mean_f1": Fr(8, 35)})
    check(ev, {"elm_f1": Fr(6, 23)})


def test_elm_is_at_most_bcubed():
    """METRICS 3.2, n = 4; equality only at 1, and also where clusters differ (the last lines)."""
    for ev in every_pair(4):
        for e in ev.items:
            for name in ("precision", "recall", "item_f1"):
                elm, plain = ev.score(f"elm_{name}", e), ev.score(name, e)
                assert elm == plain == 1 or elm < plain
            elm = ev.score("elm_precision", e), ev.score("elm_recall", e)
            assert ev.score("elm_item_f1", e) == f_measure(*elm, Fr(1, 2))
    ev = evaluate(labels("abc"), labels("ab", "c"))
    assert ev.score("elm_precision", "a") == ev.score("precision", "a") == 1


def test_elm_of_all_predicted_singletons():  # METRICS 3.2: c is 1 of 3 items, and 1 of 2 clusters
    ev = evaluate(labels("ab", "c"), labels("a", "b", "c"))
    check(ev, {"elm_precision": 1, "elm_recall": Fr(1, 3), "elm_mean_f1": Fr(1, 3)})


def test_elm_homogeneity_is_not_strict():  # METRICS 3.2
    truth = labels("ab", "cd")
    before = {"elm_precision": Fr(1, 2), "elm_recall": 0, "elm_f1": 0, "elm_mean_f1": 0}
    check(evaluate(truth, labels("ac", "b", "d")), before)
    check(evaluate(truth, labels("a", "b", "c", "d")), before | {"elm_precision": 1})


def test_el_two_items():  # 16.4 and 2.3: P 1, R 1/2, F 2/3, the dual, and the average of both
    block, alone = labels([1, 2]), labels([1], [2])
    both = evaluate(block, alone), evaluate(alone, block)
    check(both[0], {"precision": 1, "recall": Fr(1, 2), "mean_f1": Fr(2, 3), "f1": Fr(2, 3)})
    check(both[1], {"precision": Fr(1, 2), "recall": 1, "mean_f1": Fr(2, 3), "f1": Fr(2, 3)})
    means = {k: sum(ev.mean(k) for ev in both) / 2 for k in ("precision", "recall", "mean_f1")}
    assert means == {"precision": Fr(3, 4), "recall": Fr(3, 4), "mean_f1": Fr(2, 3)}
    assert f_measure(means["precision"], means["recall"], Fr(1, 2)) == Fr(3, 4)


@pytest.mark.parametrize("n", range(2, 9))
def test_el_extremes(n):  # 16.4: 1, 1/n, 2/(n+1) and dual; ELM's F is 0; perfect is 1
    block, alone = labels(range(n)), labels(*([k] for k in range(n)))
    f = {"mean_f1": Fr(2, n + 1), "elm_mean_f1": 0}
    check(evaluate(block, alone), f | {"precision": 1, "recall": Fr(1, n)})
    check(evaluate(alone, block), f | {"precision": Fr(1, n), "recall": 1})
    for truth in (block, alone):
        names = "precision", "mean_f1", "elm_precision", "elm_recall", "elm_mean_f1", "elm_f1"
        check(evaluate(truth, truth), dict.fromkeys(names, 1))
    for m in range(1, n):  # (m-1)/(n-1) < m/n: a predicted cluster of n with m of one class
        ev = evaluate(labels(range(m), range(m, n)), block)
        assert ev.score("elm_precision", 0) == Fr(m - 1, n - 1)
        assert ev.score("precision", 0) == Fr(m, n)


def test_el_size_and_quantity():  # 16.4
    truth = labels("abcd", "ef", "gh")
    ev = evaluate(truth, labels("abc", "d", "ef", "gh"))  # one item leaves the big cluster
    assert [ev.score("elm_recall", e) for e in "abcd"] == [Fr(2, 3)] * 3 + [0]
    assert [ev.score("elm_item_f1", e) for e in "abcd"] == [Fr(4, 5)] * 3 + [0]
    check(ev, {"elm_mean_f1": Fr(4, 5)})  # drop 4 - 12/5 = 8/5 of 8
    ev = evaluate(truth, labels("abcd", "e", "f", "g", "h"))  # two pairs are broken: 4 - 0
    assert [ev.score("elm_item_f1", e) for e in "efgh"] == [0] * 4
    check(ev, {"elm_mean_f1": Fr(1, 2)})  # drop 4 of 8


@pytest.mark.parametrize("n", [3, 4])
def test_el_rag_bag(n):
    """16.4: e of its own class has P = 0 in either cluster, and so has each of the n rags.

    Each of the n clean items has P = 1 without e, and (n-1)/n with it.
    """
    clean, rags = [("clean", k) for k in range(n)], [("rag", k) for k in range(n)]
    truth = labels(clean, *([r] for r in rags), ["e"])
    for prediction, p in [
        (labels([*clean, "e"], rags), Fr(n - 1, n)),
        (labels(clean, [*rags, "e"]), 1),
    ]:
        ev = evaluate(truth, prediction)
        assert {ev.score("elm_precision", c) for c in clean} == {p}
        assert {ev.score("elm_precision", r) for r in [*rags, "e"]} == {0}


# -- Properties (METRICS 1.1, 1.2) ----------------------------------------------------------------


def test_swapping_the_sides():
    swaps = {"precision": "recall", "specificity": "npv", "informedness": "markedness"}
    swaps |= {"over_merge_rate": "under_merge_rate", "elm_precision": "elm_recall"}
    swaps |= {"bcubed_precision": "bcubed_recall"}
    swaps |= {k: k for k in ("jaccard_distance", "accuracy", "pointwise_ari", "mcc", "item_f1")}
    truth, prediction = labels("abd", "c", "ef"), labels("ab", "cdf", "e")
    weights = {e: k for k, e in enumerate("abcdef", 1)}
    one, two = evaluate(truth, prediction, weights), evaluate(prediction, truth, weights)
    for name, other in swaps.items():
        assert [one.score(name, e) for e in "abcdef"] == [two.score(other, e) for e in "abcdef"]
    name = "bcubed_precision_by_true_cluster"
    assert one.mean(name) == two.mean("bcubed_recall_by_pred_cluster")


def test_mcc_squared():
    """MCC^2 = informedness * markedness where all four margins are positive (METRICS 1); n = 4."""
    for ev in every_pair(4):
        for e in ev.items:
            tp, fp, fn, tn = ev.matrix(e)
            if tn + fp and tn + fn:
                square = ev.score("informedness", e) * ev.score("markedness", e)
                assert ev.score("mcc", e) ** 2 == pytest.approx(float(square), abs=1e-15)
                assert (ev.score("mcc", e) < 0) == (tp * tn < fp * fn)


def test_distances():
    """METRICS 1.1(6), 1.2: Jaccard distance and symmetric difference are metrics; n = 4."""
    ways = [labels(*p) for p in partitions([0, 1, 2, 3])]
    weights = {0: 1, 1: 2, 2: 5, 3: 9}
    for name in ("jaccard_distance", "symmetric_difference"):
        d = [[evaluate(a, b, weights).mean(name) for b in ways] for a in ways]
        for i, j, k in itertools.product(range(len(ways)), repeat=3):
            assert d[i][j] == d[j][i] <= d[i][k] + d[k][j]
            assert (d[i][j] == 0) == (i == j)


def test_closed_forms():
    """METRICS 1 and 2.1: sums over the cells of W3."""
    ev = w3()  # w 1, 2, 3; a 3, 3, 3; b 4, 2, 4; N 6
    cells = [(1, 3, 4), (2, 3, 2), (3, 3, 4)]
    assert ev.mean("bcubed_precision") == sum(Fr(w * w, b) for w, _, b in cells) / 6
    assert ev.mean("bcubed_recall") == sum(Fr(w * w, a) for w, a, _ in cells) / 6
    # accuracy 1 - (sum a^2 + sum b^2 - 2 sum w^2)/N^2, a = 3, 3; b = 4, 2; w = 1, 2, 3
    assert ev.mean("accuracy") == 1 - Fr(18 + 20 - 28, 36)
    assert ev.mean("symmetric_difference") == Fr(18 + 20 - 28, 6)
