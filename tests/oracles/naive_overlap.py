"""The naive twin of the scores of overlapping clusterings: sets, counters, loops, exact fractions.

It restates METRICS.md sections 3.4, 4, 5 and 7.3 and shares no code with the package. A clustering
is a list of sets of items, in which the same set may stand several times. An item of both families
is scored; its mates are all items of the family, so that families cut with `align` follow a policy,
and uncut ones keep items of the prediction alone as false mates ("outside").
"""

import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from typing import NamedTuple

from naive import HALF, f_measure, rate

Item = Hashable
Family = Sequence[set[Item]]
Weights = Mapping[Item, Fraction] | None


class Scores(NamedTuple):
    precision: Fraction
    recall: Fraction
    f1: Fraction  # of the two means
    mean_f1: Fraction  # mean of the items' F
    by_item: dict[Item, tuple[Fraction, Fraction, Fraction]]


class Shares(NamedTuple):
    precision: Fraction
    recall: Fraction
    f1: Fraction


def items_of(family: Family) -> list[Item]:
    return list(dict.fromkeys(e for cluster in family for e in cluster))


def cut(family: Family, items) -> list[set[Item]]:
    """Return the clusters without other items; a cluster left empty is no cluster."""
    return [cluster & set(items) for cluster in family if cluster & set(items)]


def align(truth: Family, prediction: Family, unmatched="drop") -> tuple[list, list]:
    """Cut both families to their common items, or let the others be alone on the other side (0.3)."""
    ours, theirs = items_of(truth), items_of(prediction)
    if unmatched == "drop":
        common = set(ours) & set(theirs)
        return cut(truth, common), cut(prediction, common)
    if unmatched == "outside":
        return list(truth), [*prediction, *({e} for e in ours if e not in theirs)]
    assert unmatched == "singleton"
    true = [*truth, *({e} for e in theirs if e not in ours)]
    return true, [*prediction, *({e} for e in ours if e not in theirs)]


def held(family: Family, *items: Item) -> list[int]:
    """Return the numbers of the clusters that hold all these items: G(e), or G(e) ∩ G(e')."""
    return [k for k, cluster in enumerate(family) if cluster.issuperset(items)]


def union(family: Family, e: Item) -> set[Item]:
    """Return the distinct items that share a cluster with e, and e itself."""
    return set().union(*(family[k] for k in held(family, e)))


def measure(items, weight: Weights) -> Fraction:
    """Return the weight of a set; without weights its number of items."""
    return Fraction(len(items)) if weight is None else sum((weight[e] for e in items), Fraction(0))


def mean(values: Mapping[Item, Fraction], weight: Weights) -> Fraction:
    return sum(measure([e], weight) * values[e] for e in values) / measure(values, weight)


def _scores(truth, prediction, weight, score_of_item) -> Scores:
    """Average score_of_item(e, own, other) over items: precision, and recall with roles swapped."""
    both = set(items_of(truth)) & set(items_of(prediction))
    p = {e: score_of_item(e, prediction, truth) for e in both}
    r = {e: score_of_item(e, truth, prediction) for e in both}
    f = {e: f_measure(p[e], r[e], HALF) for e in both}
    precision, recall, mean_f = (mean(values, weight) for values in (p, r, f))
    by_item = {e: (p[e], r[e], f[e]) for e in both}
    return Scores(precision, recall, f_measure(precision, recall, HALF), mean_f, by_item)


# -- Extended BCubed, overlapping ELM, CICE (METRICS 4 and 3.4) -----------------------------------


def multiplicity(e: Item, other: Item, own: Family, opposite: Family) -> Fraction:
    """min(g, c) / g, where the two items share g clusters and, on the opposite side, c."""
    g, c = len(held(own, e, other)), len(held(opposite, e, other))
    return Fraction(min(g, c), g)


def extended_bcubed(truth: Family, prediction: Family, weight: Weights = None) -> Scores:
    def of_item(e, own, opposite):
        mates = union(own, e)
        total = sum(multiplicity(e, x, own, opposite) * measure([x], weight) for x in mates)
        return total / measure(mates, weight)

    return _scores(truth, prediction, weight, of_item)


def losses_by_cluster(
    truth: Family, prediction: Family, weight: Weights = None
) -> dict[str, dict[str, list[Fraction]]]:
    """Return, by side and loss, what each cluster is charged, by the loop over all pairs of items.

    A pair's loss of precision is split among the predicted clusters that the two share, of recall among the true ones;
    what an item loses of the other is split among its own clusters.
    """
    both = set(items_of(truth)) & set(items_of(prediction))
    families = {"true": (truth, prediction), "pred": (prediction, truth)}
    names = {"true": "recall_loss", "pred": "precision_loss"}
    found = {
        side: {name: [Fraction(0)] * len(families[side][0]) for name in names.values()} for side in names
    }
    for side, (own, opposite) in families.items():
        (other,) = {"true", "pred"} - {side}
        for e in both:
            mates = union(own, e)
            for x in mates:
                share = (
                    measure([e], weight)
                    / measure(both, weight)
                    * measure([x], weight)
                    / measure(mates, weight)
                )
                lost = share * (1 - multiplicity(e, x, own, opposite))
                for charged_side, clusters in ((side, held(own, e, x)), (other, held(opposite, e))):
                    for k in clusters:
                        found[charged_side][names[side]][k] += lost / len(clusters)
    return found


def extended_elm(truth: Family, prediction: Family, weight: Weights = None) -> Scores:
    def of_item(e, own, opposite):
        mates = union(own, e) - {e}
        total = sum(multiplicity(e, x, own, opposite) * measure([x], weight) for x in mates)
        return rate(total, measure(mates, weight))

    return _scores(truth, prediction, weight, of_item)


def similarity_of(a: set, b: set, name: str, everyone: set, weight: Weights) -> Fraction:
    if name == "jaccard":
        return measure(a & b, weight) / measure(a | b, weight)
    if name == "f1":
        return 2 * measure(a & b, weight) / (measure(a, weight) + measure(b, weight))
    assert name == "rand"  # share of items on which the two sets agree, inside or outside
    return measure(everyone - (a ^ b), weight) / measure(everyone, weight)


def cice_bcubed(
    truth: Family, prediction: Family, weight: Weights = None, *, match="global", similarity="jaccard"
) -> Scores:
    everyone = set(items_of(truth)) | set(items_of(prediction))

    def best(cluster, family, e, other):
        """Similarity of a cluster and its best match: in the family, or among those with the pair."""
        candidates = family if match == "global" else [family[k] for k in held(family, e, other)]
        return max(similarity_of(cluster, b, similarity, everyone, weight) for b in candidates)

    def phi(e, other, own, opposite):
        """Mean over the clusters that hold both items of their likeness to the best match."""
        together = held(own, e, other)
        return sum(best(own[k], opposite, e, other) for k in together) / len(together)

    def of_item(e, own, opposite):
        total = Fraction(0)
        for x in union(own, e):
            if shared := multiplicity(e, x, own, opposite):
                total += shared * phi(e, x, own, opposite) * measure([x], weight)
        return total / measure(union(own, e), weight)

    assert match in ("global", "pair")
    return _scores(truth, prediction, weight, of_item)


# -- purity, best F, exact matches (METRICS 5.1, 7.2, 7.3) ----------------------------------------


def purity(truth: Family, prediction: Family, weight: Weights = None) -> Fraction:
    """Sum over clusters of the largest overlap with one class, over the sum of the sizes."""
    overlaps = [max(measure(c & t, weight) for t in truth) for c in prediction]
    return sum(overlaps) / sum(measure(c, weight) for c in prediction)


def inverse_purity(truth: Family, prediction: Family, weight: Weights = None) -> Fraction:
    return purity(prediction, truth, weight)


def purity_f1(truth: Family, prediction: Family, weight: Weights = None) -> Fraction:
    p, r = purity(truth, prediction, weight), inverse_purity(truth, prediction, weight)
    return f_measure(p, r, HALF)


def class_f1(truth: Family, prediction: Family, weight: Weights = None) -> Fraction:
    """Mean over classes, by size, of the best F of a cluster for the class."""

    def f(t, c):
        overlap = measure(t & c, weight)
        return f_measure(overlap / measure(c, weight), overlap / measure(t, weight), HALF)

    best = sum(measure(t, weight) * max(f(t, c) for c in prediction) for t in truth)
    return best / sum(measure(t, weight) for t in truth)


def closest_cluster(truth: Family, prediction: Family, weight: Weights = None) -> Shares:
    """Means over clusters, and over classes, of the largest Jaccard index (METRICS 7.4)."""

    def best(cluster, family):
        return max(measure(cluster & c, weight) / measure(cluster | c, weight) for c in family)

    p = sum(best(c, truth) for c in prediction) / len(prediction)
    r = sum(best(t, prediction) for t in truth) / len(truth)
    return Shares(p, r, f_measure(p, r, HALF))


def exact_match(truth: Family, prediction: Family) -> Shares:
    """Clusters that both families have, each as often as both have it."""
    ours, theirs = (Counter(map(frozenset, family)) for family in (truth, prediction))
    common = sum((ours & theirs).values())
    p, r = Fraction(common, len(prediction)), Fraction(common, len(truth))
    return Shares(p, r, f_measure(p, r, HALF))


def identical(truth: Family, prediction: Family) -> bool:
    return Counter(map(frozenset, truth)) == Counter(map(frozenset, prediction))


# -- Omega (METRICS 5.2) --------------------------------------------------------------------------


def omega(truth: Family, prediction: Family, universe=None) -> Fraction:
    """Agreement of pairs on the number of clusters they share, beyond chance."""
    items = items_of([*truth, *prediction]) if universe is None else list(universe)
    pairs = list(combinations(items, 2))
    if not pairs:
        return Fraction(1)
    t = [len(held(truth, *pair)) for pair in pairs]
    s = [len(held(prediction, *pair)) for pair in pairs]
    observed = Fraction(sum(a == b for a, b in zip(t, s, strict=True)), len(pairs))
    in_truth, in_prediction = Counter(t), Counter(s)
    expected = Fraction(sum(in_truth[k] * in_prediction[k] for k in in_truth), len(pairs) ** 2)
    if expected == 1:
        return Fraction(observed == 1)
    return (observed - expected) / (1 - expected)


# -- overlapping NMI (METRICS 5.3) ----------------------------------------------------------------


def h(share: Fraction) -> float:
    """-p log2 p; 0 at p = 0."""
    return -float(share) * (math.log2(share.numerator) - math.log2(share.denominator)) if share else 0.0


def entropy(cluster: set, n: int) -> float:
    p = Fraction(len(cluster), n)
    return h(p) + h(1 - p)


def tells_more(both: int, one: int, other: int, none: int) -> bool:
    """h(P11) + h(P00) > h(P10) + h(P01), decided in integers, by the powers of both sides."""
    n = both + one + other + none
    left = both**both * none**none * n ** (one + other)
    return left < one**one * other**other * n ** (both + none)


def conditional(x: set, y: set, n: int) -> float:
    """H(X|Y) of two clusters as binary variables; H(X) where Y is of no use for X."""
    counts = len(x & y), len(x - y), len(y - x), n - len(x | y)
    if not tells_more(*counts):
        return entropy(x, n)
    return math.fsum(h(Fraction(count, n)) for count in counts) - entropy(y, n)


def least(x: set, family: Family, n: int, minimum: str) -> float:
    """H(X|Y): the least over the clusters of the family, or over those that overlap X."""
    assert minimum in ("overlapping", "all")
    candidates = [y for y in family if x & y or minimum == "all"]
    return min((conditional(x, y, n) for y in candidates), default=entropy(x, n))


def _universe(truth, prediction, universe) -> int:
    return len(items_of([*truth, *prediction]) if universe is None else set(universe))


def onmi_lfk(truth: Family, prediction: Family, universe=None, *, minimum="overlapping") -> float:
    n = _universe(truth, prediction, universe)

    def lost(own, other):
        shares = []
        for x in own:
            before, after = entropy(x, n), least(x, other, n, minimum)
            shares.append(after / before if before else 1.0)
        return math.fsum(shares) / len(shares)

    return 1 - (lost(truth, prediction) + lost(prediction, truth)) / 2


def _onmi(truth, prediction, universe, minimum, norm) -> float:
    n = _universe(truth, prediction, universe)

    def sides(own, other):
        before = math.fsum(entropy(x, n) for x in own)
        return before, before - math.fsum(least(x, other, n, minimum) for x in own)

    (h_true, gain_true), (h_pred, gain_pred) = sides(truth, prediction), sides(prediction, truth)
    whole = norm(h_true, h_pred)
    if whole == 0:
        return float(identical(truth, prediction))
    return (gain_true + gain_pred) / 2 / whole


def onmi_max(truth: Family, prediction: Family, universe=None, *, minimum="overlapping") -> float:
    return _onmi(truth, prediction, universe, minimum, max)


def onmi_mean(truth: Family, prediction: Family, universe=None, *, minimum="overlapping") -> float:
    """The mutual information over the mean of both entropies."""
    return _onmi(truth, prediction, universe, minimum, lambda a, b: (a + b) / 2)
