"""The twin of overlapping scores against worked values, and against the twin of partitions."""

import itertools
import math
from fractions import Fraction as Fr

import naive
import naive_overlap as overlap
import pytest
from effort import examples
from hypothesis import given
from hypothesis import strategies as st
from strategies_overlap import covers, item_weights
from test_naive import e17, partitions, w3
from worked_covers import CANDIDATES, CLASSES, EXAMPLES, WORKED, homogeneity, sets


def score(name, truth, prediction, weight=None):
    """A score by its name in the table of worked values."""
    family, _, part = name.rpartition("_")
    part = "mean_f1" if name.endswith("mean_f1") else part
    options = {"match": "pair"} if family.startswith("pair_") else {}
    of_families = {
        "extended_bcubed": overlap.extended_bcubed,
        "extended_elm": overlap.extended_elm,
        "cice_bcubed": overlap.cice_bcubed,
    }
    if family == "exact_match":
        return getattr(overlap.exact_match(truth, prediction), part)
    if scores := of_families.get(family.removeprefix("pair_")):
        return getattr(scores(truth, prediction, weight, **options), part)
    return getattr(overlap, name)(truth, prediction)


@pytest.mark.parametrize(("example", "name"), [(e, name) for e in WORKED for name in WORKED[e]])
def test_worked_values(example, name):
    """METRICS 3.4, 4.1, 4.2, 5, 13.3, 13.4, 16.2, 16.3."""
    expected = WORKED[example][name]
    found = score(name, *EXAMPLES[example])
    if isinstance(expected, float):
        assert found == pytest.approx(expected, abs=5.1e-7)
    elif name.startswith("onmi"):
        assert found == pytest.approx(expected, abs=1e-15)
    else:
        assert found == expected


@pytest.mark.parametrize(
    ("example", "precision", "recall"),
    [
        ("figure 16", "1.00", "1.00"),
        ("figure 17", "0.60", "1.00"),
        ("figure 18", "0.56", "1.00"),
        ("figure 19", "1.00", "0.68"),
        ("figure 20", "1.00", "0.74"),
        ("figure 21", "0.88", "0.94"),
    ],
)
def test_digits_that_the_figures_print(example, precision, recall):
    """The paper cuts its decimals off (METRICS 15, 26)."""
    scores = overlap.extended_bcubed(*EXAMPLES[example])
    for value, printed in [(scores.precision, precision), (scores.recall, recall)]:
        assert f"{math.floor(100 * value) / 100:.2f}" == printed


def test_items_of_figure_21():  # METRICS 4.1
    by_item = overlap.extended_bcubed(*EXAMPLES["figure 21"]).by_item
    expected = {1: (1, Fr(4, 5)), 2: (1, Fr(4, 5)), 3: (Fr(3, 5), 1), 4: (Fr(4, 5), 1)}
    expected |= {5: (Fr(4, 5), 1), 6: (1, 1), 7: (1, 1)}
    assert {e: (p, r) for e, (p, r, _) in by_item.items()} == expected


def test_six_objects_are_symmetric():
    """The example gives all shares of pairs twice: both sides swap when items 2 and 3 do."""
    swap = {2: 3, 3: 2}
    swapped = [{swap.get(e, e) for e in cluster} for cluster in CLASSES]
    assert overlap.identical(swapped, CANDIDATES)
    assert not overlap.identical(CLASSES, CANDIDATES)


@pytest.mark.slow
def test_global_cice_can_punish_a_cut_of_a_mixed_cluster():  # METRICS 4.2, finding 1
    truth, mixed, cut = homogeneity()
    before, after = (overlap.cice_bcubed(truth, p) for p in (mixed, cut))
    assert (before.f1, after.f1) == (Fr(4843412893, 5599570725), Fr(60541558, 69993981))
    assert (before.precision, after.precision) == (Fr(54881, 61920), Fr(343, 387))
    assert before.recall == after.recall
    assert after.f1 < before.f1
    before, after = (overlap.cice_bcubed(truth, p, match="pair") for p in (mixed, cut))
    assert float(before.f1) == pytest.approx(0.8631407, abs=5.1e-8)
    assert float(after.f1) == pytest.approx(0.8643260, abs=5.1e-8)


def test_cice_of_partitions():  # METRICS 14
    pair = as_families(e17())
    assert overlap.cice_bcubed(*pair)[:2] == (Fr(554, 1785), Fr(10247, 32130))
    by_pair = overlap.cice_bcubed(*pair, match="pair")
    assert by_pair[:2] == (Fr(8717081, 30630600), Fr(296221, 1021020))
    pair, weight = as_families(w3()), {1: Fr(1), 2: Fr(2), 3: Fr(3)}
    assert overlap.cice_bcubed(*pair, weight)[:2] == (Fr(77, 144), Fr(121, 216))
    assert overlap.cice_bcubed(*pair, weight, match="pair")[:2] == (Fr(49, 96), Fr(115, 216))


def test_similarities_of_cice():
    """Truth {1,2}, {3}, prediction {1,2,3}; each score worked by hand.

    Rand of {1,2} and {1,2,3}: they agree on 2 of 3 items; {3}: on 1. Jaccard 2/3, 1/3; F 4/5, 1/2.
    Items 1, 2: P = 2/3 sim, R = sim({1,2}); item 3: P = 1/3 sim, R = sim({3}); in the global mode
    the cluster's best match is {1,2}, in the pair mode {3} for item 3.
    """
    truth, prediction = sets("12", "3"), sets("123")
    for name, big, small in [
        ("jaccard", Fr(2, 3), Fr(1, 3)),
        ("f1", Fr(4, 5), Fr(1, 2)),
        ("rand", Fr(2, 3), Fr(1, 3)),
    ]:
        scores = overlap.cice_bcubed(truth, prediction, similarity=name)
        assert scores.precision == (2 * Fr(2, 3) * big + Fr(1, 3) * big) / 3
        assert scores.recall == (2 * big + small) / 3
        scores = overlap.cice_bcubed(truth, prediction, match="pair", similarity=name)
        assert scores.precision == (2 * Fr(2, 3) * big + Fr(1, 3) * small) / 3
        assert scores.recall == (2 * big + small) / 3


def test_rand_can_match_a_cluster_that_shares_no_item():
    """Of 7 items, {1,2,3} agrees with {3,4,5,6,7} on one, with {4} on three, with {1} on five.

    Item 3 has the class {1,2,3}, of which it finds only itself: R = 1/3 of the best likeness.
    """
    truth = sets("123", "4567")
    for more, agreed in [("1", 5), ("4", 3)]:
        scores = overlap.cice_bcubed(truth, sets("34567", more), similarity="rand")
        assert scores.by_item[3][1] == Fr(1, 3) * Fr(agreed, 7)


@pytest.mark.parametrize("sizes", [(1,), (3,), (1, 1, 2), (4, 2, 1), (3, 3)])
def test_cheat_output(sizes):  # METRICS 13.3
    n, start, truth = sum(sizes), 0, []
    for size in sizes:
        truth.append(set(range(start, start + size)))
        start += size
    cheat = [set(range(n)), *({e} for e in range(n))]
    assert overlap.inverse_purity(truth, cheat) == 1
    assert overlap.purity(truth, cheat) == Fr(max(sizes) + n, 2 * n)
    scores = overlap.extended_bcubed(truth, cheat)
    assert scores.precision == sum(s * (s - Fr(1, 2)) for s in sizes) / n**2
    assert scores.recall == 1


def test_purity_with_weights():
    """{1,2,3} holds 1 + 2 of its 6 for {1,2}; {3} holds 3 of 3: (3 + 3) / 9; backwards 6 of 6."""
    weight = {1: Fr(1), 2: Fr(2), 3: Fr(3)}
    truth, prediction = sets("12", "3"), sets("123", "3")
    assert overlap.purity(truth, prediction, weight) == Fr(6, 9)
    assert overlap.inverse_purity(truth, prediction, weight) == 1
    assert overlap.purity_f1(truth, prediction, weight) == Fr(4, 5)
    # best F: {1,2} with {1,2,3}: 2 * 3 / (3 + 6) = 2/3; {3} with {3}: 1
    assert overlap.class_f1(truth, prediction, weight) == (3 * Fr(2, 3) + 3) / 6


def test_exact_match_counts_repeats():
    truth, prediction = sets("12", "12", "3"), sets("12", "3", "3", "45")
    assert overlap.exact_match(truth, prediction) == (Fr(2, 4), Fr(2, 3), Fr(4, 7))


def test_universe_of_omega():
    """{1,2} against {1,2}, of 2 or of 3 items; {1,2} against {1,3}: one pair of three agrees.

    Expected there: two pairs share 0 and one shares 1 on both sides, (2 * 2 + 1) / 9.
    """
    assert overlap.omega(sets("12"), sets("12")) == 1
    assert overlap.omega(sets("12"), sets("12"), {1, 2, 3}) == 1
    assert overlap.omega(sets("12"), sets("13")) == (Fr(1, 3) - Fr(5, 9)) / (1 - Fr(5, 9))
    assert overlap.omega(sets("1"), sets("1")) == 1  # no pair at all
    assert overlap.omega(sets("12"), sets("12", "12")) == 0  # expected 0, observed 0


def test_both_minima_of_onmi():
    """A cluster of 60 of 100 items, and one of 1 of the others, lie apart, and yet tell something.

    h(0) + h(.39) = .5298 exceeds h(.6) + h(.01) = .4422 + .0664, so over all clusters
    H(X|Y) = .5298 + .4422 + .0664 - H(.01) = .9576 < H(X) = .9710, and likewise backwards.
    """
    x, y, universe = [set(range(60))], [{60}], range(100)
    apart = overlap.onmi_lfk(x, y, universe, minimum="overlapping")
    assert apart == 0
    h = [-p * math.log2(p) for p in (0.39, 0.6, 0.01, 0.4, 0.99)]
    joint, h_x, h_y = h[0] + h[1] + h[2], h[1] + h[3], h[2] + h[4]
    expected = 1 - ((joint - h_y) / h_x + (joint - h_x) / h_y) / 2
    assert overlap.onmi_lfk(x, y, universe, minimum="all") == pytest.approx(expected, abs=1e-15)
    gain = h_x + h_y - joint
    found = overlap.onmi_max(x, y, universe, minimum="all")
    assert found == pytest.approx(gain / max(h_x, h_y), abs=1e-15)
    found = overlap.onmi_mean(x, y, universe, minimum="all")
    assert found == pytest.approx(gain / ((h_x + h_y) / 2), abs=1e-15)


def test_onmi_without_entropy():
    """A cluster of all items has no entropy: LFK counts it as lost, the others compare (5.3)."""
    assert overlap.onmi_lfk(sets("12"), sets("12")) == 0
    assert overlap.onmi_max(sets("12"), sets("12")) == 1
    assert overlap.onmi_mean(sets("12"), sets("12", "12")) == 0


def test_ties_of_onmi_are_exact():
    """P11 = 1/2, P10 = 1/4, P01 = P00 = 1/8: .5 + .375 is not greater than .5 + .375."""
    assert not overlap.tells_more(4, 2, 1, 1)
    assert overlap.tells_more(4, 1, 1, 2)  # .5 + .5 is greater than .375 + .375
    assert overlap.conditional({0, 1, 2, 3, 4, 5}, {0, 1, 2, 3, 6}, 8) == overlap.entropy(set(range(6)), 8)


# -- without overlap they are the scores of partitions --------------------------------------------


def as_families(ev):
    return [[set(c) for c in ev.clusters(side).values()] for side in ("true", "pred")]


def labels(family):
    return {item: number for number, cluster in enumerate(family) for item in cluster}


def ways(n):
    return [[set(c) for c in p] for p in partitions(list(range(n)))]


@pytest.mark.cases(0)
@pytest.mark.parametrize("weight", [None, {e: Fr(2 * e + 1, 3) for e in range(4)}])
def test_partitions(weight):
    for truth, prediction in itertools.product(ways(4), repeat=2):
        ev = naive.evaluate(labels(truth), labels(prediction), weight)
        scores = overlap.extended_bcubed(truth, prediction, weight)
        names = ["precision", "recall", "f1", "mean_f1"]
        assert list(scores[:4]) == [ev.mean(name) for name in names]
        assert {e: s[0] for e, s in scores.by_item.items()} == {e: ev.score("precision", e) for e in ev.items}
        scores = overlap.extended_elm(truth, prediction, weight)
        assert list(scores[:4]) == [ev.mean(f"elm_{name}") for name in names]
        by_pair = overlap.cice_bcubed(truth, prediction, weight, match="pair").by_item
        for e in ev.items:  # precision times Jaccard (4.2)
            jaccard = ev.score("jaccard_index", e)
            assert by_pair[e][0] == ev.score("precision", e) * jaccard
            assert by_pair[e][1] == ev.score("recall", e) * jaccard


def test_omega_of_partitions_is_the_adjusted_rand_index():
    for truth, prediction in itertools.product(ways(4), repeat=2):
        pairs = list(itertools.combinations(range(4), 2))
        t, p = ([any({a, b} <= c for c in f) for a, b in pairs] for f in (truth, prediction))
        tp = sum(a and b for a, b in zip(t, p, strict=True))
        fp, fn = sum(p) - tp, sum(t) - tp
        tn = len(pairs) - tp - fp - fn
        below = (tp + fn) * (fn + tn) + (tp + fp) * (fp + tn)
        ari = Fr(2 * (tp * tn - fp * fn), below) if below else Fr(1)
        assert overlap.omega(truth, prediction) == ari


# -- on covers ------------------------------------------------------------------------------------

few = examples(60)


@few
@given(covers(unmatched=False))
def test_sides_swap(pair):
    for function in (overlap.extended_bcubed, overlap.extended_elm, overlap.cice_bcubed):
        there, back = function(*pair), function(*reversed(pair))
        assert (there.precision, there.recall, there.f1) == (back.recall, back.precision, back.f1)
    assert overlap.omega(*pair) == overlap.omega(*reversed(pair))
    assert overlap.onmi_max(*pair) == pytest.approx(overlap.onmi_max(*reversed(pair)), abs=1e-14)


@few
@given(covers(unmatched=False))
def test_identical_covers_are_perfect(pair):
    truth = pair.truth
    for function in (overlap.extended_bcubed, overlap.extended_elm, overlap.cice_bcubed):
        assert function(truth, list(reversed(truth)))[:4] == (1, 1, 1, 1)
    assert overlap.exact_match(truth, truth).f1 == overlap.omega(truth, truth) == 1
    assert overlap.exact_match(*pair).f1 == 1 or not overlap.identical(*pair)


@few
@given(covers(), st.data())
def test_equal_weights_are_none(pair, data):
    pair = overlap.align(*pair)
    weight = dict.fromkeys(overlap.items_of(pair[0]), Fr(data.draw(st.integers(1, 5)), 3))
    for function in (overlap.extended_bcubed, overlap.extended_elm, overlap.cice_bcubed):
        assert function(*pair, weight) == function(*pair)
    assert overlap.class_f1(*pair, weight) == overlap.class_f1(*pair)


@few
@given(covers(), st.data())
def test_policies_leave_no_item_without_a_cluster(pair, data):
    weight = data.draw(item_weights(pair.items))
    for policy in ("drop", "singleton"):
        truth, prediction = overlap.align(*pair, policy)
        assert set(overlap.items_of(truth)) == set(overlap.items_of(prediction))
    truth, prediction = overlap.align(*pair, "outside")
    assert set(overlap.items_of(truth)) <= set(overlap.items_of(prediction))
    assert min(weight.values()) > 0
