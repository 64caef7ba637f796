"""Formal constraints: what the instances are, what the checker finds, what METRICS 13 says of each score."""

import itertools
import json
import math
import re
from collections import Counter
from fractions import Fraction as Fr
from functools import cache

import naive
import naive_families
import numpy as np
import pytest
from effort import examples
from hypothesis import given
from hypothesis import strategies as st
from test_naive import labels, partitions

import fastbcubed as fb
from fastbcubed.cli import main as cli
from fastbcubed.constraints import AMIGO_TEST_CASES, CHECKS, check_constraints
from fastbcubed.constraints.checker import named
from fastbcubed.errors import MetricError, OptionError
from fastbcubed.metrics.registry import METRICS

FOUR = ("homogeneity", "completeness", "rag_bag", "size_versus_quantity")

#: The verdict on the four test cases, in their order, by score (METRICS 13.2).
VERDICTS = {
    **dict.fromkeys(("f1", "mean_f1", "bcubed_f1", "bcubed_mean_f1"), "YYYY"),
    **{"bcubed_precision": "Y=Y=", "bcubed_recall": "=Y=Y"},
    **{"purity": "Y===", "inverse_purity": "===Y", "purity_f1": "Y==Y", "class_f1": "==YY"},
    **dict.fromkeys(("rand", "pair_jaccard", "pair_fowlkes_mallows", "adjusted_rand"), "YY=="),
    **dict.fromkeys(("cluster_entropy", "mutual_info"), "Y==="),
    "class_entropy": "=Y=Y",
    **dict.fromkeys(("variation_of_information", "v_measure", "dom_q0", "dom_q2", "ami"), "YY=Y"),
    "pantel_lin": "=Y=Y",
    **{"bcubed_f1_by_true_cluster": "YY=Y", "adapted_bcubed_f1": "YYYY"},
    **dict.fromkeys(("jaccard_distance", "informedness", "pointwise_ari", "mcc"), "YYYY"),
    **{"markedness": "YYYn", "accuracy": "YY=="},
    **dict.fromkeys(("elm_f1", "elm_mean_f1", "lea_f1"), "YYYY"),
    **{"muc_f1": "YY=Y", "blanc_f1": "YY=="},
    **dict.fromkeys(("basic_merge_distance", "talburt_wang"), "YY=Y"),
    **{"closest_cluster_f1": "nYYY", "cluster_f1": "==YY", "split_join": "Y==Y"},
}
LOWER = {
    *("cluster_entropy", "class_entropy", "variation_of_information", "dom_q0"),
    *("jaccard_distance", "basic_merge_distance", "split_join"),
}


def sides(instance):
    """Return truth, worse and better as dicts item -> cluster."""
    return (dict(enumerate(x.tolist())) for x in (instance.truth, instance.worse, instance.better))


def pairs_of(instance):
    """Return truth and worse, truth and better."""
    truth, worse, better = sides(instance)
    return (truth, worse), (truth, better)


def twin(name):
    """Return the naive score as a function of two labelings."""

    def score(labels_true, labels_pred):
        case = dict(enumerate(labels_true.tolist())), dict(enumerate(labels_pred.tolist()))
        if name in naive_families.SCORES:
            return naive_families.score(name, *case)
        return naive.evaluate(*case).mean(name)

    return score


def bcubed(instance, prediction):
    ev = naive.evaluate(*(dict(enumerate(x.tolist())) for x in (instance.truth, prediction)))
    return ev.mean("bcubed_precision"), ev.mean("bcubed_recall")


def clusters(labels_, of=None):
    """Return the clusters as sets of item numbers."""
    found = {}
    for item, label in enumerate(labels_.tolist()):
        found.setdefault(label, set()).add(item)
    return {frozenset(cluster) for cluster in found.values()}


# -- the four test cases -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "worse", "better"),
    [  # METRICS 16.2: P and R
        ("homogeneity", (Fr(88, 147), Fr(73, 105)), (Fr(34, 49), Fr(73, 105))),
        ("completeness", (Fr(34, 49), Fr(5, 7)), (Fr(34, 49), Fr(37, 49))),
        ("rag_bag", (Fr(22, 45), 1), (Fr(5, 9), 1)),
        ("size_versus_quantity", (1, Fr(9, 13)), (1, Fr(57, 65))),
    ],
)
def test_figures_of_the_test_cases(name, worse, better):
    case = AMIGO_TEST_CASES[name]
    assert (bcubed(case, case.worse), bcubed(case, case.better)) == (worse, better)


@pytest.mark.parametrize("name", VERDICTS)
def test_verdict_of_the_definition(name):
    report = check_constraints(twin(name), checks=[], greater_is_better=name not in LOWER)
    assert report.test_cases == VERDICTS[name]


@pytest.mark.cases(14, 99)
@pytest.mark.parametrize("name", VERDICTS)
def test_verdict_of_the_library(name):
    report = check_constraints(name, checks=[])
    assert report.test_cases == VERDICTS[name]
    assert report.greater_is_better == (name not in LOWER)


def test_adapted_bcubed_with_the_recommended_weight():  # |x| = 3, alpha = 0.9: beta = 1/3
    def adapted(labels_true, labels_pred):
        function = fb.metrics.adapted_bcubed_precision_recall_fscore
        return function(labels_true, labels_pred, beta=1 / 3).fbeta

    assert check_constraints(adapted, checks=[]).test_cases == "YYYY"


def test_class_wise_f_and_the_rag_bag():
    """The paper says that no matching of sets passes its third case; the one it prints does (13.2)."""
    truth, worse, better = sides(AMIGO_TEST_CASES["rag_bag"])
    assert naive_families.score("class_f1", truth, worse) == Fr(247, 405)
    assert naive_families.score("class_f1", truth, better) == Fr(17, 27)


# -- how much BCubed changes (METRICS 13.1) ------------------------------------------------------------


@pytest.mark.parametrize("context", ["bare", "amigo", "random"])
@pytest.mark.parametrize("n", range(1, 9))
def test_rag_bag_in_numbers(n, context):
    """From the odd item alone, P falls by 2n/(n + 1) items in clean company, by 1 in mixed company."""
    instance = fb.constraints.rag_bag(n, context=context, seed=n)
    alone = instance.better.copy()
    alone[2 * n] = alone.max() + 1
    (start, r), (worse, r1), (better, r2) = (
        bcubed(instance, prediction) for prediction in (alone, instance.worse, instance.better)
    )
    assert (start - worse) * instance.n_items == Fr(2 * n, n + 1)
    assert (start - better) * instance.n_items == 1
    assert r == r1 == r2


@pytest.mark.parametrize("context", ["bare", "amigo", "random"])
@pytest.mark.parametrize("n", range(1, 9))
def test_size_versus_quantity_in_numbers(n, context):
    """From whole clusters, R falls by n items when n pairs are cut, by 2n/(n + 1) when one item is."""
    instance = fb.constraints.size_versus_quantity(n, context=context, seed=n)
    whole = instance.better.copy()
    whole[n] = whole[0]
    (p, start), (p1, worse), (p2, better) = (
        bcubed(instance, prediction) for prediction in (whole, instance.worse, instance.better)
    )
    assert (start - worse) * instance.n_items == n
    assert (start - better) * instance.n_items == Fr(2 * n, n + 1)
    assert p == p1 == p2


@pytest.mark.parametrize("context", ["bare", "amigo", "random"])
@pytest.mark.parametrize("first", range(1, 5))
@pytest.mark.parametrize("second", range(1, 5))
def test_homogeneity_and_completeness_in_numbers(first, second, context):
    """A mixed cluster costs 2ab/(a + b) items of precision; two pieces cost 2ab/|class| of recall."""
    mixed = fb.constraints.homogeneity(first, second, context=context, seed=first)
    (p1, r1), (p2, r2) = bcubed(mixed, mixed.worse), bcubed(mixed, mixed.better)
    assert ((p2 - p1) * mixed.n_items, r2) == (Fr(2 * first * second, first + second), r1)
    cut = fb.constraints.completeness(first, second, context=context, seed=first)
    (p1, r1), (p2, r2) = bcubed(cut, cut.worse), bcubed(cut, cut.better)
    size = np.count_nonzero(cut.truth == cut.truth[0])
    assert (p2, (r2 - r1) * cut.n_items) == (p1, Fr(2 * first * second, int(size)))


def test_unbalanced_in_numbers():  # METRICS 2.4: classes of 10 and 2
    instance = fb.constraints.unbalanced(10, 2)
    (p1, r1), (p2, r2) = bcubed(instance, instance.worse), bcubed(instance, instance.better)
    f = naive.f_measure
    assert (f(p1, r1, Fr(1, 2)), f(p2, r2, Fr(1, 2))) == (Fr(616, 699), Fr(272, 313))  # wrong order
    assert (f(p1, r1, Fr(9, 10)), f(p2, r2, Fr(9, 10))) == (Fr(3080, 3603), Fr(1360, 1537))
    truth, worse, better = sides(instance)
    adapted = [naive.evaluate(truth, x, beta=Fr(1, 3)).mean("adapted_bcubed_fbeta") for x in (worse, better)]
    assert adapted == [Fr(595, 761), Fr(775, 937)]


def test_the_context_matters():
    """Bare completeness raises inverse purity by 1/2 and class-wise F by 1/3; in context both tie (13.1)."""
    for context, expected in [("bare", (Fr(1, 2), Fr(1, 3))), ("amigo", (0, 0))]:
        truth, worse, better = sides(fb.constraints.completeness(1, 1, context=context))
        gains = tuple(
            naive_families.score(name, truth, better) - naive_families.score(name, truth, worse)
            for name in ("inverse_purity", "class_f1")
        )
        assert gains == expected


# -- what instances are, in any context -----------------------------------------------------------------

SIZES = st.integers(1, 8)
CONTEXTS = st.sampled_from(["bare", "amigo", "random"])
SEEDS = st.integers(0, 2**32)


@given(SIZES, SIZES, CONTEXTS, SEEDS)
def test_what_homogeneity_is(first, second, context, seed):
    instance = fb.constraints.homogeneity(first, second, context=context, n_elsewhere=9, seed=seed)
    (mixed,) = clusters(instance.worse) - clusters(instance.better)
    parts = clusters(instance.better) - clusters(instance.worse)
    assert frozenset().union(*parts) == mixed
    assert sorted(map(len, parts)) == sorted((first, second))
    assert len({instance.truth[e] for e in mixed}) == 2
    assert all(len({instance.truth[e] for e in part}) == 1 for part in parts)


@given(SIZES, SIZES, CONTEXTS, SEEDS)
def test_what_completeness_is(first, second, context, seed):
    instance = fb.constraints.completeness(first, second, context=context, n_elsewhere=9, seed=seed)
    parts = clusters(instance.worse) - clusters(instance.better)
    (merged,) = clusters(instance.better) - clusters(instance.worse)
    assert frozenset().union(*parts) == merged
    assert len({instance.truth[e] for e in merged}) == 1
    if context == "amigo":  # a third cluster of the class, larger than the two
        others = [c for c in clusters(instance.worse) - parts if instance.truth[min(c)] == instance.truth[0]]
        assert [len(c) > first + second for c in others] == [True]


@given(SIZES, CONTEXTS, SEEDS)
def test_what_a_rag_bag_is(n, context, seed):
    instance = fb.constraints.rag_bag(n, context=context, n_elsewhere=9, seed=seed)
    sizes = Counter(instance.truth.tolist())
    odd = 2 * n
    clean = set(np.flatnonzero(instance.worse == instance.worse[odd]).tolist()) - {odd}
    noisy = set(np.flatnonzero(instance.better == instance.better[odd]).tolist()) - {odd}
    assert len(clean) == len(noisy) == n
    assert len({instance.truth[e] for e in clean}) == 1
    assert {sizes[instance.truth[e]] for e in noisy | {odd}} == {1}
    assert np.flatnonzero(instance.worse != instance.better).tolist() == [odd]


@given(SIZES, CONTEXTS, SEEDS)
def test_what_size_versus_quantity_is(n, context, seed):
    instance = fb.constraints.size_versus_quantity(n, context=context, n_elsewhere=9, seed=seed)
    classes, worse, better = map(clusters, (instance.truth, instance.worse, instance.better))
    large = frozenset(range(n + 1))
    pairs = {frozenset((n + 1 + 2 * k, n + 2 + 2 * k)) for k in range(n)}
    assert {large} | pairs <= classes
    assert worse - better == {large} | {frozenset([e]) for pair in pairs for e in pair}
    assert better - worse == {large - {n}, frozenset([n])} | pairs


@given(st.integers(2, 6), SIZES, CONTEXTS, SEEDS)
def test_what_unbalanced_is(small, more, context, seed):
    large = small + more
    instance = fb.constraints.unbalanced(large, small, context=context, n_elsewhere=9, seed=seed)
    one, other = frozenset(range(large)), frozenset(range(large, large + small))
    assert {one, other} <= clusters(instance.truth)
    assert clusters(instance.worse) - clusters(instance.better) == {one | {large}, other - {large}}
    assert clusters(instance.better) - clusters(instance.worse) == {one - {large - 1}, other | {large - 1}}


@given(st.integers(2, 9), SEEDS)
def test_what_a_perfect_match_is(n, seed):
    instance = fb.constraints.perfect_match(n, seed=seed)
    assert instance.n_items == n
    assert clusters(instance.truth) == clusters(instance.better) != clusters(instance.worse)


@pytest.mark.slow
def test_instances_of_any_size():
    instance = fb.constraints.homogeneity(200_000, 100_000, context="random", n_elsewhere=100_000, seed=1)
    assert instance.n_items == 400_000
    again = fb.constraints.homogeneity(200_000, 100_000, context="random", n_elsewhere=100_000, seed=1)
    assert np.array_equal(instance.truth, again.truth)
    assert np.array_equal(instance.worse, again.worse)
    worse = fb.metrics.bcubed_f1(instance.truth, instance.worse)
    assert worse < fb.metrics.bcubed_f1(instance.truth, instance.better)


def test_a_class_that_goes_on_elsewhere_is_no_rag_bag():
    """With most of the clean class elsewhere, mean F prefers the worse; so its classes are whole here.

    Ten items a of the clean class are elsewhere, two b in the clean cluster; c, d one of a kind; e odd.
    F of b falls from 2*2/(12 + 2) to 2*2/(12 + 3), for both 4/105; F of c and d from 2/3 to 1/2.
    """
    truth, worse, better = "aaaaaaaaaabbcde".replace("b", "a"), "111111111122332", "111111111122333"
    assert len(truth) == len(worse) == len(better) == 15
    worse_f, better_f = (
        naive.evaluate(dict(enumerate(truth)), dict(enumerate(x))).mean("mean_f1") for x in (worse, better)
    )
    # the odd item: 2/(1 + 3) in both
    assert (better_f - worse_f) * 15 == Fr(4, 105) - 2 * (Fr(2, 3) - Fr(1, 2))


# -- the checker ----------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", ["f1", "mean_f1", "jaccard_distance", "informedness"])
def test_scores_that_meet_all_four(name):
    report = check_constraints(name, checks=FOUR)
    assert {finding.verdict for finding in report.values()} == {"strict"}
    assert all(finding.smallest is None for finding in report.values())


@pytest.mark.slow
def test_elm_ties_on_homogeneity():  # METRICS 3.2: ab|cd predicted as ac|b|d, cut to singletons
    for name in ("elm_f1", "elm_mean_f1"):
        finding = check_constraints(name, checks=["homogeneity"])["homogeneity"]
        assert finding.verdict == "tie"
        assert finding.smallest.n_items == 4
        assert finding.scores == (0, 0)


@pytest.mark.slow
def test_closest_cluster_f_violates_homogeneity():  # METRICS 13.2
    finding = check_constraints("closest_cluster_f1", checks=["homogeneity"])["homogeneity"]
    assert finding.verdict == "violated"
    scores = [naive_families.score("closest_cluster_f1", *case) for case in pairs_of(finding.smallest)]
    assert scores[0] > scores[1]
    assert finding.scores == pytest.approx([float(score) for score in scores])


@pytest.mark.cases(0)
@pytest.mark.parametrize("name", ["mcc", "pointwise_ari", "markedness"])
def test_ties_of_a_single_class(name):  # METRICS 13.2, last paragraph
    finding = check_constraints(name, checks=["completeness"])["completeness"]
    assert (finding.verdict, len(set(finding.smallest.truth.tolist()))) == ("tie", 1)


@pytest.mark.cases(1, 5)
@pytest.mark.parametrize(
    ("name", "check", "verdict"),
    [
        ("precision", "perfect_match", "tie"),  # singletons
        ("f1", "perfect_match", "strict"),
        ("bcubed_f1", "n_invariance", "holds"),  # METRICS 17: BCubed and VI, not Rand nor ELM
        ("variation_of_information", "n_invariance", "holds"),
        ("rand", "n_invariance", "violated"),
        ("elm_f1", "n_invariance", "violated"),
        ("f1", "symmetry", "holds"),  # METRICS 1.1: swapped sides swap precision and recall
        ("precision", "symmetry", "violated"),
        ("class_f1", "symmetry", "violated"),
        ("jaccard_distance", "triangle", "holds"),  # METRICS 1.2, 7.7, 8: metrics
        ("symmetric_difference", "triangle", "holds"),
        ("split_join", "triangle", "holds"),
        ("variation_of_information", "triangle", "holds"),
        ("f1", "triangle", "violated"),
        ("mean_f1", "locality", "holds"),  # means over items
        ("specificity", "locality", "holds"),
        ("f1", "locality", "violated"),  # and an F of means
        ("v_measure", "locality", "violated"),
    ],
)
def test_other_verdicts(name, check, verdict):
    assert check_constraints(name, checks=[check], n_random=10)[check].verdict == verdict


@pytest.mark.cases(4, 99)
@pytest.mark.parametrize("name", ["closest_cluster_f1", "purity", "pair_f1"])
@pytest.mark.parametrize("check", [*FOUR, "perfect_match"])
def test_no_step_makes_a_counterexample_smaller(name, check):
    score = twin(name)
    finding = check_constraints(score, checks=[check], n_random=5)[check]
    if finding.verdict != "strict":
        signs = {"violated": -1, "tie": 0}

        def outcome(each):
            return np.sign(float(score(each.truth, each.better)) - float(score(each.truth, each.worse)))

        assert outcome(finding.smallest) == signs[finding.verdict]
        assert all(outcome(each) != signs[finding.verdict] for each in finding.smallest.smaller())


@pytest.mark.slow
def test_any_function_will_do():
    sklearn = pytest.importorskip("sklearn.metrics")
    report = check_constraints(sklearn.v_measure_score, checks=FOUR, n_random=10)
    assert (report.score, report.test_cases) == ("v_measure_score", "YY=Y")
    assert report["rag_bag"].verdict == "tie"
    lower = check_constraints(lambda t, p: len(set(p)), checks=["completeness"], greater_is_better=False)
    assert lower["completeness"].verdict == "strict"  # fewer clusters
    assert lower.score == "<lambda>"


def test_a_report_says_how_much_was_tried():
    report = check_constraints("f1", checks=["rag_bag", "triangle"], n_random=0)
    assert list(report) == ["rag_bag", "triangle"]
    # n = 2 to 5 bare and in context; n = 2, 3 with one other item in one way, with two in four ways
    assert report["rag_bag"].tried == 4 * 2 + 2 * (1 + 4)
    assert report["triangle"].tried == 1 + 2**3 + 5**3
    lines = repr(report).splitlines()
    assert lines[0] == "f1 (higher is better); examples of Amigó et al.: YYYY"
    assert lines[1] == "  rag_bag: strict in all 18 tried"
    # F of abc, a|b|c: 1/2; of abc, ab|c: 5/7; of ab|c, a|b|c: 4/5; 1/2 - 2/7 - 1/5 = 1/70
    assert lines[2].startswith("  triangle: violated, as in first abc; second ab|c; third a|b|c, by 0.014")


@pytest.mark.slow
def test_equal_seeds_equal_instances():
    seen = []
    for seed in (3, 3, 4):
        tried = []
        check_constraints(
            lambda t, p, tried=tried: tried.append((t.tobytes(), p.tobytes())) or 0.0,
            checks=CHECKS,
            seed=seed,
        )
        seen.append(tried)
    assert seen[0] == seen[1] != seen[2]


@pytest.mark.slow
def test_what_cannot_be_checked():
    with pytest.raises(MetricError, match="bcubed_f1"):
        check_constraints("bcubed_ff1")
    with pytest.raises(MetricError, match="family"):
        check_constraints("bcubed")
    with pytest.raises(OptionError, match="leave greater_is_better out"):
        check_constraints("f1", greater_is_better=True)
    assert check_constraints("bcubed_f1", checks="rag_bag")["rag_bag"].verdict == "strict"
    with pytest.raises(OptionError, match="There is no check 'homogenity'"):
        check_constraints("f1", checks=["homogenity"])
    for value in (float("nan"), None, "0.5 or so", [1.0, 2.0]):
        with pytest.raises(MetricError, match=re.escape(f" is {value!r}. Make the function return a number")):
            check_constraints(lambda t, p, value=value: value)
    with pytest.raises(MetricError, match="the score failed: ZeroDivisionError"):
        check_constraints(lambda t, p: 1 / 0)
    with pytest.raises(
        MetricError, match="read-only"
    ):  # later scores were checked with what is left of these
        check_constraints(lambda t, p: p.fill(0), checks="homogeneity")
    with pytest.raises(MetricError, match="a function of two labelings, not 3"):
        check_constraints(3)
    for name, value in (
        ("n_random", 1.5),
        ("n_random", -1),
        ("seed", None),
        ("tolerance", math.nan),
        ("checks", 5),
    ):
        with pytest.raises(OptionError, match=name if name != "checks" else "no check 5"):
            check_constraints("f1", **{name: value})
    with pytest.raises(OptionError, match="context"):
        fb.constraints.rag_bag(3, context="amigos")
    with pytest.raises(OptionError, match="from 1 to"):
        fb.constraints.homogeneity(0, 3)
    with pytest.raises(OptionError, match="n_elsewhere"):
        fb.constraints.homogeneity(context="random", n_elsewhere=-3)
    with pytest.raises(OptionError, match="larger"):
        fb.constraints.unbalanced(2, 2)
    with pytest.raises(OptionError, match="from 2 to 1,048,576, not 1"):
        fb.constraints.perfect_match(1)


# -- every step among all partitions of five items (METRICS 13.2, last paragraph) -------------------------

IMPROVES = [
    "f1",
    "mean_f1",
    "jaccard_distance",
    "informedness",
    "variation_of_information",
    "basic_merge_distance",
]
TIES = {
    "homogeneity": ["elm_f1", "elm_mean_f1", "lea_f1", "pair_f1", "adjusted_rand", "pantel_lin", "muc_f1"],
    "completeness": ["markedness", "pointwise_ari", "mcc", "adjusted_rand", "v_measure"],
}


@cache
def all_of_five():
    return [tuple(labels(*p)[item] for item in range(5)) for p in partitions(list(range(5)))]


@cache
def steps():
    """Every admissible step of the first two constraints but for the items' names: name, truth, worse, better."""
    found, by_sizes = [], {tuple(sorted(Counter(truth).values())): truth for truth in all_of_five()}
    for truth, pred in itertools.product(by_sizes.values(), all_of_five()):
        for cluster in set(pred):
            inside = [truth[e] for e in range(5) if pred[e] == cluster]
            if len(set(inside)) == 2:
                cut = tuple(
                    9 if (p, t) == (cluster, inside[0]) else p for t, p in zip(truth, pred, strict=True)
                )
                found.append(("homogeneity", truth, pred, cut))
        for one, other in itertools.combinations(sorted(set(pred)), 2):
            if len({truth[e] for e in range(5) if pred[e] in (one, other)}) == 1:
                merged = tuple(one if p == other else p for p in pred)
                found.append(("completeness", truth, pred, merged))
    return found


STEPPED = list(dict.fromkeys([*IMPROVES, *itertools.chain(*TIES.values())]))


@cache
def outcomes():
    """How often a step among five items raises (1), keeps (0) or lowers (-1) each score."""
    function = named(STEPPED)
    found = {(name, constraint): Counter() for name in STEPPED for constraint in TIES}
    for constraint, truth, *predictions in steps():
        worse, better = (np.array([p.index(label) for label in p]) for p in predictions)
        for name in STEPPED:
            score, sign = function(name), 1 if METRICS[name].best == "higher" else -1
            gain = sign * (score(np.array(truth), better) - score(np.array(truth), worse))
            found[name, constraint][0 if abs(gain) < 1e-12 else int(np.sign(gain))] += 1
    return found


@pytest.mark.slow
@pytest.mark.parametrize("constraint", TIES)
@pytest.mark.parametrize("name", STEPPED)
def test_every_step_among_five_items(name, constraint):
    found = outcomes()[name, constraint]
    assert found[1] > 0
    assert found[-1] == 0
    assert (found[0] > 0) == (name in TIES[constraint])


# -- baselines --------------------------------------------------------------------------------------------


def test_baselines():
    assert fb.constraints.all_singletons(3).tolist() == [0, 1, 2]
    assert fb.constraints.all_in_one(3).tolist() == [0, 0, 0]
    assert fb.constraints.blocks(7, 3).tolist() == [0, 0, 0, 1, 1, 1, 2]
    assert [f(0).tolist() for f in (fb.constraints.all_singletons, fb.constraints.all_in_one)] == [[], []]
    for n, k in [(-1, 2), (3, 0), (1.5, 1), ("3", 1)]:
        with pytest.raises(OptionError):
            fb.constraints.blocks(n, k)
    for n in (-1, 1.5, "3"):
        with pytest.raises(OptionError):
            fb.constraints.all_in_one(n)


@examples(20)
@given(st.integers(1, 9))
def test_singletons_and_one_cluster_in_numbers(n):  # METRICS 16.4: one true cluster of n items
    truth = fb.constraints.all_in_one(n)
    alone = fb.evaluate(truth, fb.constraints.all_singletons(n)).overall
    assert (alone["precision"], alone["recall"]) == (1, pytest.approx(1 / n))
    assert alone["f1"] == pytest.approx(2 / (n + 1))


def test_cheat():
    cheat = fb.constraints.cheat("abcd")
    members = Counter(cluster for own in cheat.values() for cluster in own)
    assert sorted(members.values()) == [1, 1, 1, 1, 4]
    assert [len(own) for own in cheat.values()] == [2, 2, 2, 2]


def test_perfect_without_match():  # METRICS 13.4
    truth, prediction = fb.constraints.PERFECT_WITHOUT_MATCH
    assert Counter(truth) != Counter(prediction)
    for side in (truth, prediction):
        assert [sum(item in cluster for cluster in side) for item in (1, 2, 3)] == [6, 6, 6]
        for pair in itertools.combinations((1, 2, 3), 2):
            assert sum(set(pair) <= set(cluster) for cluster in side) == 3


# -- the table and the command ------------------------------------------------------------------------------


@pytest.mark.slow
def test_table():
    table = fb.constraints.table(["elm", "f1"], n_random=1)
    assert list(table.reports) == ["elm_precision", "elm_recall", "elm_f1", "elm_mean_f1", "f1"]
    assert table.to_json() == fb.constraints.table(["elm", "f1"], n_random=1).to_json()
    head, *rows = repr(table).splitlines()
    assert head.split() == "score Amigó homog compl rag size unb match n-inv sym tri loc".split()
    assert rows[-1].split() == "f1 YYYY yes yes yes yes NO yes yes yes NO NO".split()
    with pytest.raises(MetricError):
        fb.constraints.table("elm_precission")


@pytest.mark.slow
def test_table_of_everything():
    table = fb.constraints.table(n_random=1)
    for_partitions = [m for m in METRICS.values() if not (m.covers_only or m.alias_of or m.takes_three)]
    with_direction = {m.name for m in for_partitions if m.best != "neither"}
    assert set(table.reports) == with_direction - {"fbeta", "mean_fbeta"}
    assert max(map(len, repr(table).splitlines())) < 100


@pytest.mark.slow
def test_command(capsys):
    assert cli.main(["constraints", "--metric", "f1,elm", "--random", "2", "--examples"]) == 0
    shown = capsys.readouterr().out
    assert shown.splitlines()[1].split()[:2] == ["f1", "YYYY"]
    assert "rag: rag_bag, adding an unrelated item" in shown
    assert "homogeneity: tie, as in truth" in shown
    assert cli.main(["constraints", "--metric", "f1", "--json", "--seed", "1"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["seed"], report["n_random"]) == (1, 20)
    entry = report["scores"]["f1"]["checks"]["unbalanced"]
    # 5 items: abcd|e, P = (3*3/4 + 1/4 + 1)/5 = 7/10, R = (3 + 2/2)/5 = 4/5; ab|cde, P = (2 + 1/3 + 4/3)/5
    # = 11/15, R = ((4 + 1)/3 + 2)/5 = 11/15
    assert entry["smallest"] == {"truth": "abc|de", "worse": "abcd|e", "better": "ab|cde"}
    assert entry["scores"] == {"worse": pytest.approx(56 / 75), "better": pytest.approx(11 / 15)}
    assert set(report["checks"]) == set(CHECKS)
    assert cli.main(["constraints", "--metric", "f2"]) == 2
    assert "Unknown score 'f2'" in capsys.readouterr().err
