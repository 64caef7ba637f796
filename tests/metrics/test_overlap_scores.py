"""Scores of overlapping clusterings by clusters and by pairs of items, against the twin and by hand."""

import itertools
import math
from decimal import Decimal, localcontext

import naive_overlap as twin
import numpy as np
import pytest
from effort import examples
from hypothesis import given
from hypothesis import strategies as st
from naive_overlap import items_of
from strategies_overlap import covers, item_weights, memberships_of
from worked_covers import EXAMPLES, WORKED

from fastbcubed.errors import TooMuchWorkError
from fastbcubed.metrics import overlap_scores as overlap
from fastbcubed.overlap.extended_bcubed import Sides
from fastbcubed.overlap.memberships import Memberships
from fastbcubed.overlap.omega_and_nmi import Left, entropies_by_cluster, shared_clusters
from fastbcubed.runtime.threads import Pool

many = examples(200)
ONMIS = ("onmi_lfk", "onmi_max", "onmi_mean")


def memberships(family, items) -> Memberships:
    return memberships_of([twin.held(family, e) for e in items], len(family))


def both(truth, prediction, items=None) -> tuple[Memberships, Memberships]:
    items = items_of([*truth, *prediction]) if items is None else items
    return memberships(truth, items), memberships(prediction, items)


def sides_of(truth: Memberships, prediction: Memberships, weight=None) -> Sides:
    """Every item a cell of its own."""
    return Sides(truth, prediction, np.ones(len(truth), np.int64), weight, Pool(1))


def table(truth, prediction, items=None, weight=None) -> Sides:
    items = items_of([*truth, *prediction]) if items is None else items
    values = None if weight is None else np.array([float(weight[e]) for e in items])
    return sides_of(*both(truth, prediction, items), values)


def omega(sides: Sides, max_pairs: float = 1e10) -> float:
    return overlap.omega(*shared_clusters(sides, max_pairs))


def onmi(name: str, sides: Sides) -> float:
    found = entropies_by_cluster(sides, float(sides.n.sum()))
    sums = (
        Left(int(np.count_nonzero(size.n)), *map(math.fsum, own))
        for size, own in zip(sides.sizes, found, strict=True)
    )
    return getattr(overlap, name)(*sums)


@many
@given(covers())
def test_overlaps_are_those_of_sets(pair):
    truth, prediction = pair
    overlaps = table(*pair).overlaps
    shared = zip(overlaps.true.tolist(), overlaps.pred.tolist(), overlaps.sizes.n, strict=True)
    found = {(i, j): n for i, j, n in shared}
    expected = {(i, j): len(t & p) for i, t in enumerate(truth) for j, p in enumerate(prediction)}
    assert found == {pair: n for pair, n in expected.items() if n}


@many
@given(covers(), st.integers(0, 3))
def test_omega(pair, more):
    items = [*pair.items, *(f"in no cluster {k}" for k in range(more))]
    expected = float(twin.omega(*pair, items))
    assert omega(table(*pair, items)) == pytest.approx(expected, abs=1e-14)


@many
@given(covers(), st.integers(0, 3))
def test_onmi(pair, more):
    items = [*pair.items, *(f"in no cluster {k}" for k in range(more))]
    found = table(*pair, items)
    for name in ONMIS:
        expected = getattr(twin, name)(*pair, items)
        assert onmi(name, found) == pytest.approx(expected, abs=1e-12)


@many
@given(covers(), st.data())
def test_identical_covers_score_exactly_one(pair, data):
    truth, n = pair.truth, len(items_of(pair.truth))
    weight = data.draw(st.none() | item_weights(pair.items))
    again = data.draw(st.permutations(truth))
    found = table(truth, again, items_of(truth), weight)
    assert omega(table(truth, again)) == 1
    assert onmi("onmi_max", found) == onmi("onmi_mean", found) == 1
    share = sum(len(cluster) == n for cluster in truth) / len(truth)
    assert onmi("onmi_lfk", found) == pytest.approx(1 - share, abs=1e-15)
    assert share or onmi("onmi_lfk", found) == 1


SCORED = {
    **{name: lambda pair, name=name: onmi(name, table(*pair)) for name in ONMIS},
    "omega": lambda pair: omega(table(*pair)),
}


@pytest.mark.parametrize(
    ("example", "name"), [(e, name) for e in WORKED for name in WORKED[e] if name in SCORED]
)
def test_worked_values(example, name):
    expected = WORKED[example][name]
    tolerance = 5.1e-7 if isinstance(expected, float) else 1e-15
    assert SCORED[name](EXAMPLES[example]) == pytest.approx(float(expected), abs=tolerance)


def test_what_clusters_that_lie_apart_tell_of_each_other_does_not_count():
    """The twin's case of 60 and 1 of 100 items, where H(X|Y) = .9576 of .9710 over all clusters (METRICS 5.3)."""
    found = table([set(range(60))], [{60}], range(100))
    assert onmi("onmi_lfk", found) == onmi("onmi_max", found) == 0


@pytest.mark.slow
def test_small_clusters_of_many_items_keep_their_digits():
    """{0, 1, 2} against {0, 1, 3} among 10,000,000 items, worked in 40 digits.

    The entropies are of the order 1e-5, and their difference is one of numbers near 1.
    """
    n = 10_000_000
    truth = Memberships.from_rows(np.arange(3), np.zeros(3, np.int64), n, 1)
    prediction = Memberships.from_rows(np.array([0, 1, 3]), np.zeros(3, np.int64), n, 1)
    with localcontext(prec=40):

        def h(*counts):
            shares = [Decimal(count) / n for count in counts]
            return -sum(p * p.ln() for p in shares)

        expected = 1 - (h(2, 1, 1, n - 4) - h(3, n - 3)) / h(3, n - 3)
    found = onmi("onmi_lfk", sides_of(truth, prediction))
    assert found == pytest.approx(float(expected), abs=1e-14)


@pytest.mark.slow
def test_a_cluster_of_many_items_costs_no_pairs():
    """Half a million items in one cluster, which the truth has in tens, and one item in two of these."""
    n = 500_000
    items, blocks = np.arange(n), np.arange(n) // 10
    truth = Memberships.from_rows(np.append(items, 0), np.append(blocks, 1), n, n // 10)
    prediction = Memberships.from_rows(items, np.zeros(n, np.int64), n, 1)
    assert omega(sides_of(truth, prediction)) == 0  # nothing else to expect: every pair shares one


@pytest.mark.slow
def test_the_cheat_is_cheap():
    """One cluster of all and a singleton each: singletons hold no pair, so there is none to look at."""
    n = 300_000
    items = np.arange(n)
    truth = Memberships.from_rows(items, items // 3, n, n // 3)
    cheat = Memberships.from_rows(np.tile(items, 2), np.append(np.zeros(n, np.int64), items + 1), n, n + 1)
    assert omega(sides_of(truth, cheat)) == 0


@pytest.mark.slow
def test_levels_of_a_hierarchy_are_paired_below_the_top():
    """All items in a root, and in pairs below it, against the pairs alone: found by hand.

    n/2 pairs share 2 against 1, and all others share 1 against 0: no pair agrees, and none is
    expected to but by #{t=1} #{s=1}.
    """
    n = 200_000
    items = np.arange(n)
    truth = Memberships.from_rows(
        np.tile(items, 2), np.append(np.zeros(n, np.int64), 1 + items // 2), n, 1 + n // 2
    )
    prediction = Memberships.from_rows(items, items // 2, n, n // 2)
    pairs, together = n * (n - 1) // 2, n // 2
    expected = (pairs - together) * together
    assert omega(sides_of(truth, prediction)) == -expected / (pairs**2 - expected)


def test_too_many_pairs_to_compare_are_refused():
    """Every two of 50 items are in a cluster of their own, and all are in one: 1,225 pairs of 50 cells.

    In each of the small clusters there is one pair of cells to look at, in the large one none.
    """
    pairs = list(itertools.combinations(range(50), 2))
    truth = [set(range(50)), *map(set, pairs)]
    found = table(truth, [set(range(50))])
    assert omega(found, max_pairs=2 * len(pairs)) == 0
    with pytest.raises(TooMuchWorkError, match="more than max_pairs=900") as caught:
        omega(found, max_pairs=900)
    assert "pass max_pairs" in str(caught.value)
