"""Naive twins of the classical scores: pair counting, matching, entropy, edit distances.

They restate METRICS.md sections 6 to 9 with sets, loops and exact fractions (floats where there is
a root, 120 digits where there is a logarithm), and share no code with the package.
`score(name, truth, prediction)` answers for every name in `SCORES`, the names of the registry, with
those of naive_coreference.py among them; truth and prediction are dicts item -> cluster.
"""

import math
from collections import deque
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache, cached_property
from itertools import combinations

import naive_coreference
from naive import HALF, f_measure, rate, root
from naive_coreference import best_matching


class Table:
    """Two clusterings as lists of sets of items, and the weight of a set.

    `classes` and `clusters` hold the items that both sides have; `key` and `response`, which the
    coreference scores read, all items of their side.
    """

    def __init__(self, truth, prediction, weights=None):
        common = [e for e in truth if e in prediction]
        self.truth, self.prediction, self.weights = truth, prediction, weights
        self.items = frozenset(common)
        self.key, self.response = blocks(truth, truth), blocks(prediction, prediction)
        self.classes, self.clusters = blocks(truth, common), blocks(prediction, common)

    def w(self, items):
        """Return the weight of a set: the number of its items when there are no weights."""
        if self.weights is None:
            return Fraction(len(items))
        return sum((Fraction(self.weights[e]) for e in items), Fraction(0))

    @cached_property
    def total(self):
        return self.w(self.items)

    @property
    def swapped(self):
        return Table(self.prediction, self.truth, self.weights)

    @property
    def identical(self):
        return set(self.classes) == set(self.clusters)

    @property
    def cells(self):
        """Return the non-empty cells as triples: the common items, their class, their cluster."""
        return [(c & k, c, k) for c in self.classes for k in self.clusters if c & k]


def blocks(labels, items):
    """Return the clusters of some items as sets, in the order in which they appear."""
    clusters = {}
    for e in items:
        clusters.setdefault(labels[e], set()).add(e)
    return [frozenset(cluster) for cluster in clusters.values()]


def score(name, truth, prediction, weights=None, **options):
    """Return the score of that name in the registry."""
    return SCORES[name](Table(truth, prediction, weights), **options)


def counted(t):
    """Return the table, after making sure that no weights came with it."""
    if t.weights is not None:
        raise ValueError("this score is defined for counts only")
    return t


# -- pair counting (6): every unordered pair of items, one by one -----------------------------------


def pair_confusion(t):
    """Weight of the pairs that are together on both sides, in the prediction, the truth, neither."""
    tp = fp = fn = tn = Fraction(0)
    for x, y in combinations(t.items, 2):
        pair = t.w([x]) * t.w([y])
        match t.truth[x] == t.truth[y], t.prediction[x] == t.prediction[y]:
            case True, True:
                tp += pair
            case False, True:
                fp += pair
            case True, False:
                fn += pair
            case _:
                tn += pair
    return tp, fp, fn, tn


def adjusted_rand(tp, fp, fn, tn):
    below = (tp + fn) * (fn + tn) + (tp + fp) * (fp + tn)
    return 2 * (tp * tn - fp * fn) / below if below else Fraction(1)  # 0/0: both trivial and equal


OF_PAIRS = {
    "pair_tp": lambda tp, fp, fn, tn: tp,
    "pair_fp": lambda tp, fp, fn, tn: fp,
    "pair_fn": lambda tp, fp, fn, tn: fn,
    "pair_tn": lambda tp, fp, fn, tn: tn,
    "pair_precision": lambda tp, fp, fn, tn: rate(tp, tp + fp),
    "pair_recall": lambda tp, fp, fn, tn: rate(tp, tp + fn),
    "pair_f1": lambda tp, fp, fn, tn: f_measure(rate(tp, tp + fp), rate(tp, tp + fn), HALF),
    "rand": lambda tp, fp, fn, tn: rate(tp + tn, tp + fp + fn + tn),
    "pair_jaccard": lambda tp, fp, fn, tn: rate(tp, tp + fp + fn),
    "pair_fowlkes_mallows": lambda tp, fp, fn, tn: root(rate(tp, tp + fp) * rate(tp, tp + fn)),
    "adjusted_rand": adjusted_rand,
    "mirkin": lambda tp, fp, fn, tn: 2 * (fp + fn),
}


# -- matching clusters to classes (7) ---------------------------------------------------------------


def purity(t):
    return sum(max(t.w(k & c) for c in t.classes) for k in t.clusters) / t.total


def item_purity(t):
    """Return the best share in the cluster of each item; its weighted mean is the purity (7.1)."""
    best = {k: max(t.w(k & c) for c in t.classes) / t.w(k) for k in t.clusters}
    return {e: best[k] for k in t.clusters for e in k}


def inverse_purity(t):
    return purity(t.swapped)


def purity_f1(t, alpha=HALF):
    return f_measure(purity(t), inverse_purity(t), alpha)


def class_f1(t, alpha=HALF):
    """Each class with the cluster that fits it best, weighted by the size of the class (7.2)."""

    def f(c, k):
        return f_measure(t.w(c & k) / t.w(k), t.w(c & k) / t.w(c), alpha)

    return sum(t.w(c) / t.total * max(f(c, k) for k in t.clusters) for c in t.classes)


def cluster_precision(t):
    return Fraction(sum(k in t.classes for k in t.clusters), len(t.clusters))


def cluster_recall(t):
    return cluster_precision(t.swapped)


def cluster_f1(t, alpha=HALF):
    return f_measure(cluster_precision(t), cluster_recall(t), alpha)


def closest_cluster_precision(t):
    nearest = [max(t.w(k & c) / t.w(k | c) for c in t.classes) for k in t.clusters]
    return sum(nearest) / len(nearest)


def closest_cluster_recall(t):
    return closest_cluster_precision(t.swapped)


def closest_cluster_f1(t, alpha=HALF):
    return f_measure(closest_cluster_precision(t), closest_cluster_recall(t), alpha)


def talburt_wang(t):
    return root(Fraction(len(t.classes) * len(t.clusters), len(t.cells) ** 2))


def k_measure(t):
    p = sum(t.w(cell) ** 2 / t.w(k) for cell, _, k in t.cells) / t.total
    r = sum(t.w(cell) ** 2 / t.w(c) for cell, c, _ in t.cells) / t.total
    return root(p * r)


def split_join(t):
    return t.total * (2 - purity(t) - inverse_purity(t))


def matching_accuracy(t):
    return best_matching(t.classes, t.clusters, lambda c, k: t.w(c & k)) / t.total


# -- entropy (8), in bits ---------------------------------------------------------------------------


@cache
def log2(x):
    """Return the binary logarithm as a fraction, with so many digits that differences of sums keep enough."""
    x = Fraction(x)
    with localcontext(prec=120):
        return Fraction((Decimal(x.numerator) / Decimal(x.denominator)).ln() / Decimal(2).ln())


def entropy(t):
    """H(C): how uncertain the class of an item is."""
    return sum(-p * log2(p) for p in (t.w(c) / t.total for c in t.classes))


def item_cluster_entropy(t):
    """-log P(e) of each item; its weighted mean is H(C|K)."""
    return {e: log2(t.w(k) / t.w(cell)) for cell, _, k in t.cells for e in cell}


def item_class_entropy(t):
    return item_cluster_entropy(t.swapped)


def item_variation_of_information(t):
    of_cluster, of_class = item_cluster_entropy(t), item_class_entropy(t)
    return {e: of_cluster[e] + of_class[e] for e in t.items}


def cluster_entropy(t):
    """H(C|K): what the cluster of an item leaves open about its class."""
    shares = [(k, t.w(cell) / t.w(k)) for cell, _, k in t.cells]
    return sum(t.w(k) / t.total * share * -log2(share) for k, share in shares)


def class_entropy(t):
    return cluster_entropy(t.swapped)


def mutual_info(t):
    terms = []
    for cell, c, k in t.cells:
        p, p_c, p_k = (t.w(items) / t.total for items in (cell, c, k))
        terms.append(p * log2(p / (p_c * p_k)))
    return sum(terms)


def variation_of_information(t):
    return cluster_entropy(t) + class_entropy(t)


def homogeneity(t):
    return 1 - cluster_entropy(t) / entropy(t) if len(t.classes) > 1 else 1.0


def completeness(t):
    return homogeneity(t.swapped)


def v_measure(t, beta=1):
    h, c = homogeneity(t), completeness(t)
    return (1 + beta) * h * c / (beta * h + c) if h + c else 0.0


NORMS = {
    "arithmetic": lambda hc, hk, _: (hc + hk) / 2,
    "geometric": lambda hc, hk, _: math.sqrt(hc * hk),
    "min": lambda hc, hk, _: min(hc, hk),
    "max": lambda hc, hk, _: max(hc, hk),
    "joint": lambda hc, hk, joint: joint,
}


def norm_of(t, norm):
    joint = mutual_info(t) + variation_of_information(t)
    return NORMS[norm](entropy(t), entropy(t.swapped), joint)


def nmi(t, norm="arithmetic"):
    one_class, one_cluster = len(t.classes) == 1, len(t.clusters) == 1
    if one_class or one_cluster:
        return float(one_class and one_cluster)
    return mutual_info(t) / norm_of(t, norm)


def expected_mutual_info(t):
    """Mean mutual information over all ways to shuffle the items: a hypergeometric sum."""
    n, terms = len(counted(t).items), []
    for a in map(len, t.classes):
        for b in map(len, t.clusters):
            for k in range(max(1, a + b - n), min(a, b) + 1):
                chance = Fraction(math.comb(a, k) * math.comb(n - a, b - k), math.comb(n, b))
                terms.append(chance * k / n * log2(Fraction(n * k, a * b)))
    return sum(terms)


def ami(t, norm="arithmetic"):
    if t.identical:
        return 1.0
    if {len(t.classes), len(t.clusters)} & {1, len(t.items)}:
        return 0.0  # shuffling changes nothing, so the information is just what chance gives
    expected = expected_mutual_info(t)
    return (mutual_info(t) - expected) / (norm_of(t, norm) - expected)


def dom_q0(t):
    """Bits per item that tell the classes to somebody who knows the clusters."""
    k = len(counted(t).classes)
    tables = [log2(math.comb(len(cluster) + k - 1, k - 1)) for cluster in t.clusters]
    return cluster_entropy(t) + sum(tables) / len(t.items)


def dom_q2(t):
    if len(t.classes) == 1:
        return 1.0
    known = {e: t.truth[e] for e in t.items}  # the classes of the items that are scored, told by themselves
    return dom_q0(Table(known, known, t.weights)) / dom_q0(t)


# -- edit distances (9) -----------------------------------------------------------------------------


def pantel_lin_distance(t):
    """Merges and moves of one item that lead to the classes: the closed form of 9.1."""
    largest = {k: max(len(k & c) for c in t.classes) for k in t.clusters}
    kept = best_matching(t.clusters, t.classes, lambda k, c: int(len(k & c) == largest[k]))
    return len(t.items) - sum(largest.values()) + len(t.clusters) - kept


def pantel_lin(t):
    alone = len(t.items) - len(t.classes)
    distance = pantel_lin_distance(t)
    return 1 - Fraction(distance, alone) if alone else Fraction(distance == 0)


def pantel_lin_distance_by_search(t):
    """Return the same distance, by a breadth-first search over all partitions: few items only."""
    start, goal = frozenset(t.clusters), frozenset(t.classes)
    distance, queue = {start: 0}, deque([start])
    while goal not in distance:
        here = queue.popleft()
        for there in one_merge_or_move(here):
            if there not in distance:
                distance[there] = distance[here] + 1
                queue.append(there)
    return distance[goal]


def one_merge_or_move(partition):
    for x, y in combinations(partition, 2):
        yield partition - {x, y} | {x | y}
    for cluster in partition:
        for e in cluster:
            rest = partition - {cluster} | ({cluster - {e}} - {frozenset()})
            yield rest | {frozenset([e])}
            for other in rest - {cluster - {e}}:
                yield rest - {other} | {other | {e}}


def merge_distance(t, split=lambda x, y: 1, merge=lambda x, y: 1):
    """Cost of cutting the clusters into their cells, then gluing the cells into the classes.

    split(x, y) and merge(x, y) are the prices of parting or joining blocks of sizes x and y.
    """
    cost, uncut = 0, {k: t.w(k) for k in t.clusters}
    for c in t.classes:
        gathered = 0
        for k in t.clusters:
            if cell := t.w(c & k):
                uncut[k] -= cell
                cost += split(cell, uncut[k]) if uncut[k] else 0
                cost += merge(cell, gathered) if gathered else 0
                gathered += cell
    return cost


SCORES = {
    f.__name__: f
    for f in (
        *(purity, inverse_purity, purity_f1, class_f1, cluster_precision, cluster_recall),
        *(cluster_f1, closest_cluster_precision, closest_cluster_recall, closest_cluster_f1),
        *(talburt_wang, k_measure, split_join, matching_accuracy),
        *(pantel_lin_distance, pantel_lin, merge_distance),
    )
}
for f in (
    *(cluster_entropy, class_entropy, mutual_info, expected_mutual_info, variation_of_information),
    *(homogeneity, completeness, v_measure, nmi, ami, dom_q0, dom_q2),
):
    SCORES[f.__name__] = lambda t, f=f, **options: float(f(t, **options))
SCORES["basic_merge_distance"] = merge_distance
for name, f in OF_PAIRS.items():
    SCORES[name] = lambda t, f=f: f(*pair_confusion(t))
for name, f in naive_coreference.SCORES.items():
    SCORES[name] = lambda t, f=f: f(t.key, t.response)
