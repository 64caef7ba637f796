"""Naive twins of the coreference scores: MUC, BCubed, CEAF, BLANC and LEA.

They restate METRICS.md section 10. Key and response are lists of sets of items, which may differ on
the two sides; 0/0 is 0, as the reference scorer has it (0.1, rule 5).
"""

import math
from fractions import Fraction
from itertools import combinations

from naive import HALF, f_measure


def best_matching(rows, columns, value):
    """Largest sum of values over all one-to-one pairings of rows and columns, by trying them all.

    A row may stay alone; only pairs of value > 0 are tried, as the others add nothing.
    """
    if not rows:
        return Fraction(0)
    first, rest = rows[0], rows[1:]
    best = best_matching(rest, columns, value)
    for column in columns:
        if value(first, column) > 0:
            others = [other for other in columns if other is not column]
            best = max(best, value(first, column) + best_matching(rest, others, value))
    return best


def over(part, whole):
    """part / whole, and 0 for 0/0."""
    return Fraction(part) / whole if whole else Fraction(0)


def muc(key, response):
    """Recall: links that remain when each entity is cut as the response cuts it."""
    kept = links = 0
    for entity in key:
        seen = [entity & other for other in response if entity & other]
        unseen = len(entity) - sum(map(len, seen))
        kept += len(entity) - len(seen) - unseen
        links += len(entity) - 1
    return over(kept, links)


def coref_bcubed(key, response):
    """Recall: the share of its entity that a mention finds in the response; unseen mentions 0."""
    shares = [over(len(k & r) ** 2, len(k)) for k in key for r in response]
    return over(sum(shares), sum(map(len, key)))


def ceaf_m(key, response):
    return over(best_matching(key, response, lambda k, r: len(k & r)), sum(map(len, key)))


def ceaf_e(key, response):
    def phi4(k, r):
        return Fraction(2 * len(k & r), len(k) + len(r))

    return over(best_matching(key, response, phi4), len(key))


def lea(key, response):
    """Recall: how much of each entity is kept together, weighted by its size."""

    def links(entity):
        return math.comb(len(entity), 2)

    total = Fraction(0)
    for entity in key:
        if len(entity) == 1:
            total += entity in response
        else:
            total += len(entity) * over(sum(links(entity & r) for r in response), links(entity))
    return over(total, sum(map(len, key)))


RECALLS = {"muc": muc, "coref_bcubed": coref_bcubed, "ceaf_m": ceaf_m, "ceaf_e": ceaf_e, "lea": lea}


def three_figures(recall, key, response):
    """Precision is the recall with the sides swapped; F is the harmonic mean."""
    p, r = recall(response, key), recall(key, response)
    return p, r, f_measure(p, r, HALF)


def links_of(clusters):
    """Return the pairs of mentions that are together, and those that are apart."""
    together = {frozenset(pair) for cluster in clusters for pair in combinations(cluster, 2)}
    everyone = frozenset().union(*clusters)
    return together, {frozenset(pair) for pair in combinations(everyone, 2)} - together


def blanc(key, response):
    """Mean of P, R, F over the links together and the links apart; one kind, if the key has one."""
    figures = []
    for of_key, of_response in zip(links_of(key), links_of(response), strict=True):
        if of_key:
            right = len(of_key & of_response)
            p, r = over(right, len(of_response)), over(right, len(of_key))
            figures.append((p, r, f_measure(p, r, HALF)))
    if not figures:
        return Fraction(0), Fraction(0), Fraction(0)
    return tuple(sum(column) / len(figures) for column in zip(*figures, strict=True))


SCORES = {}
for position, figure in enumerate(("precision", "recall", "f1")):
    SCORES[f"blanc_{figure}"] = lambda key, response, i=position: blanc(key, response)[i]
    for name, f in RECALLS.items():
        SCORES[f"{name}_{figure}"] = lambda k, r, f=f, i=position: three_figures(f, k, r)[i]
SCORES["conll_f1"] = lambda k, r: (
    sum(SCORES[f"{name}_f1"](k, r) for name in ("muc", "coref_bcubed", "ceaf_e")) / 3
)
