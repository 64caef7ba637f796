"""The twins of the classical scores against values printed in METRICS.md or worked by hand."""

import itertools
import math
from fractions import Fraction as Fr

import naive_families
import pytest
from naive_families import Table, score
from test_naive import labels, partitions
from worked import (
    ALL_FAMILIES,
    COREFERENCE_CASES,
    DEGENERATE,
    E17,
    E17_SCORES,
    ENTROPY,
    EXAMPLES,
    OF_EQUALS,
    SIX,
    W3,
    W3_COUNTS,
    W3_SCORES,
    WEIGHTS,
    from_lists,
)

from fastbcubed.metrics.registry import METRICS

PARTITIONS_OF_4 = [labels(*p) for p in partitions(list("abcd"))]
PAIRS_OF_4 = list(itertools.product(PARTITIONS_OF_4, repeat=2))


def check(case, expected, weights=None):
    for name, value in expected.items():
        got = score(name, *case, weights)
        if isinstance(value, float):
            assert got == pytest.approx(value, rel=0, abs=6e-7), name  # as printed
        elif isinstance(got, float):
            assert got == pytest.approx(float(value), rel=0, abs=1e-15), name
        else:
            assert got == value, name


def test_every_score_has_a_twin():
    assert set(ALL_FAMILIES) <= set(naive_families.SCORES)


def test_seventeen_items():  # METRICS 14
    check(E17, E17_SCORES)


def test_three_weighted_items():  # METRICS 14
    check(W3, W3_SCORES, WEIGHTS)


def test_three_items_without_weights():
    check(W3, W3_COUNTS)


@pytest.mark.parametrize("name", [name for name in ENTROPY if METRICS[name].unweighted_only])
def test_counts_only(name):
    with pytest.raises(ValueError, match="counts"):
        score(name, *W3, WEIGHTS)


@pytest.mark.parametrize("name", [*EXAMPLES, *DEGENERATE, *COREFERENCE_CASES])
def test_examples(name):
    check(*(EXAMPLES | DEGENERATE | COREFERENCE_CASES)[name])


def test_norms():  # METRICS 8
    printed = {"arithmetic": 0.364562, "geometric": 0.364625, "min": 0.371468, "max": 0.357908}
    for norm, value in (printed | {"joint": 0.222914}).items():
        assert score("nmi", *E17, norm=norm) == pytest.approx(value, abs=6e-7)
    assert score("ami", *E17, norm="max") == pytest.approx(0.254669, abs=6e-7)
    assert score("ami", *SIX, norm="max") == pytest.approx(0.225042, abs=6e-7)


def test_v_measure_that_favours_one_side():  # METRICS 16.5: the guide's V(.6)
    assert score("v_measure", *SIX, beta=0.6) == pytest.approx(0.5467, abs=6e-5)


def test_merge_distance():  # METRICS 9.2
    t = Table(*E17)
    pairs = [score(name, *E17) for name in ("pair_tp", "pair_fp", "pair_fn", "pair_tn")]
    assert pairs == [20, 24, 20, 72]
    assert naive_families.merge_distance(t, split=lambda x, y: x * y, merge=lambda x, y: 0) == 24
    assert naive_families.merge_distance(t, split=lambda x, y: 0, merge=lambda x, y: x * y) == 20
    # V = 7 cells, 3 clusters and 3 classes: four splits at 5, four merges at 7
    assert naive_families.merge_distance(t, split=lambda x, y: 5, merge=lambda x, y: 7) == 48

    def h(x):
        return x / 17 * math.log2(x / 17)

    def information(x, y):
        return float(h(x + y) - h(x) - h(y))

    assert naive_families.merge_distance(t, information, information) == pytest.approx(1.9711632)
    assert score("basic_merge_distance", *from_lists(["ab", "cd"], ["ac", "bd"])) == 4


@pytest.mark.cases(0)
@pytest.mark.parametrize("weights", [None, {e: w for w, e in enumerate("abcd", 1)}])
def test_identities(weights):
    """What METRICS says is equal, on every pair of partitions of four items."""
    close = pytest.approx
    for case in PAIRS_OF_4:
        t = Table(*case, weights)
        n = t.total
        by = {name: score(name, *case, weights) for name in ("pair_fp", "pair_fn", "split_join", "mirkin")}
        assert by["mirkin"] == 2 * (by["pair_fp"] + by["pair_fn"])
        assert by["pair_fp"] == naive_families.merge_distance(t, lambda x, y: x * y, lambda x, y: 0)
        squares = sum(t.w(k) ** 2 for k in t.classes + t.clusters) - 2 * sum(
            t.w(cell) ** 2 for cell, _, _ in t.cells
        )
        assert by["mirkin"] == squares  # 6
        mean = sum(t.w([e]) * share for e, share in naive_families.item_purity(t).items()) / n
        assert mean == naive_families.purity(t)  # 7.1
        for form, whole in [
            (naive_families.item_cluster_entropy, naive_families.cluster_entropy),
            (naive_families.item_class_entropy, naive_families.class_entropy),
            (naive_families.item_variation_of_information, naive_families.variation_of_information),
        ]:
            mean = sum(t.w([e]) * bits for e, bits in form(t).items()) / n
            assert mean == close(whole(t), abs=1e-14)  # 8
        assert naive_families.v_measure(t) == close(naive_families.nmi(t), abs=1e-14)  # V_1 is NMI


def test_editing_by_search():
    """The closed form of Pantel and Lin's distance is the shortest path, for every pair (9.1)."""
    for case in PAIRS_OF_4:
        t = Table(*case)
        assert naive_families.pantel_lin_distance(t) == naive_families.pantel_lin_distance_by_search(t)
        cells, clusters, classes = len(t.cells), len(t.clusters), len(t.classes)
        assert naive_families.merge_distance(t) == 2 * cells - clusters - classes  # 9.2


def test_editing_by_search_with_ties():
    """Five items, where a majority may be tied in several clusters: ab|cd from ac|bd, and so on."""
    cases = [
        (["ab", "cd", "e"], ["ac", "bd", "e"]),
        (["ab", "cde"], ["acd", "be"]),
        (["abc", "de"], ["ad", "be", "c"]),
        (["abcde"], ["a", "b", "c", "d", "e"]),
    ]
    for case in itertools.starmap(from_lists, cases):
        for t in (Table(*case), Table(*case).swapped):
            searched = naive_families.pantel_lin_distance_by_search(t)
            assert naive_families.pantel_lin_distance(t) == searched


def test_coreference_on_the_same_items():
    """MUC from counts of cells, B-cubed as ever, and LEA's link to ELM (METRICS 3.2, 10)."""
    for case in PAIRS_OF_4:
        t = Table(*case)
        n, cells = 4, len(t.cells)
        if n > len(t.classes):
            assert score("muc_recall", *case) == Fr(n - cells, n - len(t.classes))
        p, r = score("coref_bcubed_precision", *case), score("coref_bcubed_recall", *case)
        assert score("k_measure", *case) == pytest.approx(math.sqrt(p * r), abs=1e-15)
        elm = sum(  # recall of e among the others of its class; 1 if there are none
            Fr(len(cell) - 1, len(c) - 1) if len(c) > 1 else Fr(1) for cell, c, _ in t.cells for _ in cell
        )
        alone = sum(len(c) == 1 < len(k) for _, c, k in t.cells)
        assert elm - n * score("lea_recall", *case) == alone


def test_equal_clusterings():
    check((labels("abc", "de", "f"),) * 2, OF_EQUALS)
