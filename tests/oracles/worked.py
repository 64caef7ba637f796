"""Worked values of the classical scores: literals of METRICS.md, of the papers, or worked by hand.

The twins and the library are both held against them. A float is a printed value, to be met to the
digits printed (seven at most); a fraction or an integer is exact.
"""

import math
from fractions import Fraction as Fr

from fastbcubed.metrics.registry import METRICS

PAIRS, MATCHING, ENTROPY, EDIT, COREFERENCE = (
    [metric.name for metric in METRICS.values() if metric.family == family]
    for family in ("pairs", "matching", "entropy", "edit", "coreference")
)
ALL_FAMILIES = [*PAIRS, *MATCHING, *ENTROPY, *EDIT, *COREFERENCE]


def from_lists(*sides):
    """Return each side, a list of clusters that are iterables of items, as a dict item -> cluster."""
    return tuple({e: number for number, cluster in enumerate(side) for e in cluster} for side in sides)


def three(stem, precision, recall, f1):
    return {f"{stem}_precision": precision, f"{stem}_recall": recall, f"{stem}_f1": f1}


# -- METRICS 14: the table with rows (5,1,0), (1,4,1), (2,0,3); VS Figure 2 with weights 1, 2, 3 ----

E17 = from_lists(
    ["abcdef", "ghijkl", "mnopq"],
    ["abcde" + "g" + "mn", "f" + "hijk", "l" + "opq"],
)
E17_SCORES = {
    **{"pair_tp": 20, "pair_fp": 24, "pair_fn": 20, "pair_tn": 72, "mirkin": 88},
    **three("pair", Fr(5, 11), Fr(1, 2), Fr(10, 21)),
    **{"rand": Fr(23, 34), "adjusted_rand": Fr(60, 247), "pair_jaccard": Fr(5, 16)},
    "pair_fowlkes_mallows": 0.4767313,
    **{"purity": Fr(12, 17), "inverse_purity": Fr(12, 17), "purity_f1": Fr(12, 17)},
    "class_f1": Fr(2768, 3927),
    **three("cluster", 0, 0, 0),
    **three("closest_cluster", Fr(205, 378), Fr(205, 378), Fr(205, 378)),
    **{"talburt_wang": Fr(3, 7), "k_measure": 0.5759201, "split_join": 10},
    "matching_accuracy": Fr(12, 17),
    **{"cluster_entropy": 1.0144184, "class_entropy": 0.9567449, "mutual_info": 0.5654450},
    "variation_of_information": 1.9711632,
    **{"homogeneity": 0.3579075, "completeness": 0.3714681, "v_measure": 0.3645618, "nmi": 0.364562},
    **{"ami": 0.260181, "dom_q0": 1.8256573, "dom_q2": 0.4513130},
    **{"pantel_lin_distance": 5, "pantel_lin": Fr(9, 14)},
    **{"merge_distance": 8, "basic_merge_distance": 8},
    **three("muc", Fr(5, 7), Fr(5, 7), Fr(5, 7)),
    **three("ceaf_m", Fr(12, 17), Fr(12, 17), Fr(12, 17)),
    **three("ceaf_e", Fr(487, 693), Fr(487, 693), Fr(487, 693)),
    **three("blanc", Fr(313, 506), Fr(5, 8), Fr(613, 987)),
    **three("lea", Fr(57, 119), Fr(42, 85), Fr(1596, 3281)),  # ELM's, as no item is alone
    **three("coref_bcubed", Fr(193, 340), Fr(149, 255), Fr(57514, 99875)),
}

#: The means over items and over clusters, and what they are by chance.
E17_MEANS = {
    "precision": Fr(193, 340),
    "recall": Fr(149, 255),
    "f1": Fr(57514, 99875),
    "mean_f1": Fr(48151, 85085),
    "accuracy": Fr(201, 289),
    "jaccard_distance": Fr(440758, 765765),
    "specificity": Fr(3, 4),
    "npv": Fr(6221, 7956),
    "informedness": Fr(341, 1020),
    "markedness": Fr(409, 1170),
    "pointwise_ari": Fr(982748789, 2921246507),
    "bcubed_precision": Fr(193, 340),
    "bcubed_recall": Fr(149, 255),
    "bcubed_f1": Fr(57514, 99875),
    "bcubed_mean_f1": Fr(48151, 85085),
    "bcubed_precision_by_true_cluster": Fr(17, 30),
    "bcubed_recall_by_true_cluster": Fr(392, 675),
    "bcubed_f1_by_true_cluster": Fr(13328, 23235),
    "bcubed_precision_by_pred_cluster": Fr(473, 800),
    "bcubed_recall_by_pred_cluster": Fr(17, 30),
    "bcubed_f1_by_pred_cluster": Fr(8041, 13895),
    "adapted_bcubed_precision": Fr(1031, 2720),
    "adapted_bcubed_recall": Fr(101, 255),
    "adapted_bcubed_f1": Fr(208262, 537625),
    "elm_precision": Fr(57, 119),
    "elm_recall": Fr(42, 85),
    "elm_f1": Fr(1596, 3281),
    "elm_mean_f1": Fr(622, 1309),
    # E[P] = 3/17 + 14/17 * (6 * 5 + 6 * 5 + 5 * 4) / (17 * 16) = 3/17 + 14/17 * 5/17 = 121/289
    "chance_bcubed_precision": Fr(121, 289),
    # E[R] = 3/17 + 14/17 * (8 * 7 + 5 * 4 + 4 * 3) / (17 * 16) = 3/17 + 14/17 * 11/34 = 128/289
    "chance_bcubed_recall": Fr(128, 289),
    # (193/340 - 121/289) / (168/289) = (3281 - 2420) / 5780 * 289/168 = 861/3360 = 41/160
    "adjusted_bcubed_precision": Fr(41, 160),
    # (149/255 - 128/289) / (161/289) = (2533 - 1920) / 4335 * 289/161 = 613/2415
    "adjusted_bcubed_recall": Fr(613, 2415),
}

W3 = from_lists([[1, 2], [3]], [[1, 3], [2]])
WEIGHTS = {1: 1, 2: 2, 3: 3}
W3_SCORES = {  # with weights
    # pairs: 12 weighs 2, together in the truth; 13 weighs 3, in the prediction; 23 weighs 6, apart
    **{"pair_tp": 0, "pair_fp": 3, "pair_fn": 2, "pair_tn": 6, "mirkin": 10},
    **three("pair", 0, 0, 0),
    **{"rand": Fr(6, 11), "adjusted_rand": Fr(-12, 43), "pair_jaccard": 0, "pair_fowlkes_mallows": 0},
    **{"purity": Fr(5, 6), "inverse_purity": Fr(5, 6), "purity_f1": Fr(5, 6), "class_f1": Fr(29, 35)},
    **three("closest_cluster", Fr(17, 24), Fr(17, 24), Fr(17, 24)),
    "k_measure": math.sqrt(3 / 4 * 7 / 9),
    "split_join": 2,
    "matching_accuracy": Fr(5, 6),  # {1, 2} with {2}, {3} with {1, 3}: 2 + 3 of 6
    **{"cluster_entropy": 0.540852, "class_entropy": 0.459148, "variation_of_information": Fr(1)},
    **{"homogeneity": 0.459148, "completeness": Fr(1, 2), "v_measure": 0.478704},
}
W3_COUNTS = {  # without weights
    "adjusted_rand": Fr(-1, 2),  # METRICS 6
    **{"ami": Fr(-1, 2), "dom_q0": 1.528321, "dom_q2": 0.563791},
    **three("cluster", 0, 0, 0),
    "talburt_wang": Fr(2, 3),
    **{"pantel_lin_distance": 1, "pantel_lin": 0, "basic_merge_distance": 2, "merge_distance": 2},
    **three("muc", 0, 0, 0),
    **three("ceaf_m", Fr(2, 3), Fr(2, 3), Fr(2, 3)),
    **three("ceaf_e", Fr(2, 3), Fr(2, 3), Fr(2, 3)),
    **three("blanc", Fr(1, 4), Fr(1, 4), Fr(1, 4)),
    **three("lea", 0, 0, 0),
}

# -- METRICS 6 to 10 and 16.5: other examples -------------------------------------------------------

E8_EXACT = from_lists([[1, 2, 3], [4, 5], [6, 7], [8]], [[1, 2], [3, 5], [4], [6, 7], [8]])
SIX = from_lists(["abc", "def"], ["ab", "cd", "ef"])

EXAMPLES = {
    "six items": (
        SIX,
        {
            **{"adjusted_rand": Fr(8, 33), "rand": Fr(2, 3), "pair_fowlkes_mallows": 0.471405},
            **{"v_measure": 0.5158037, "ami": 0.298792},
        },
    ),
    "exact clusters": (E8_EXACT, three("cluster", Fr(2, 5), Fr(1, 2), Fr(4, 9))),
    # the pairs as classes, the triples as clusters: C(3 + 2, 2) = 10 twice, C(2 + 2, 2) = 6 three times
    "Dom's scores": (
        SIX[::-1],
        {"cluster_entropy": 0.918296, "dom_q0": 2.025605, "dom_q2": math.log2(6) / 2 / 2.0256050},
    ),
    "the worst for merging": (from_lists(["ab", "cd"], ["ac", "bd"]), {"basic_merge_distance": 4}),
}

DEGENERATE = {
    "one item": (
        from_lists(["a"], ["a"]),
        {
            **three("pair", 1, 1, 1),
            **{"rand": 1, "adjusted_rand": 1, "pair_jaccard": 1, "pair_fowlkes_mallows": 1, "mirkin": 0},
            **{"homogeneity": 1, "completeness": 1, "v_measure": 1, "nmi": 1, "ami": 1},
            **{"dom_q0": 0, "dom_q2": 1, "pantel_lin": 1, "talburt_wang": 1, "split_join": 0},
            **three("muc", 0, 0, 0),  # no link in the key: 0/0 is 0
            **three("blanc", 0, 0, 0),  # neither kind of link
            **three("lea", 1, 1, 1),
            **three("ceaf_e", 1, 1, 1),
        },
    ),
    "singletons on both sides": (
        from_lists("abc", "abc"),
        {
            **three("pair", 1, 1, 1),
            **{"rand": 1, "adjusted_rand": 1, "pair_jaccard": 1, "pair_fowlkes_mallows": 1},
            **{"nmi": 1, "ami": 1, "v_measure": 1, "pantel_lin": 1, "dom_q2": 1},
            **three("muc", 0, 0, 0),
            **three("blanc", 1, 1, 1),  # the links apart alone
            **three("lea", 1, 1, 1),
        },
    ),
    "one class, singletons predicted": (
        from_lists(["abc"], "abc"),
        {
            **three("pair", 1, 0, 0),
            **{"rand": 0, "adjusted_rand": 0, "pair_jaccard": 0, "pair_fowlkes_mallows": 0},
            **{"homogeneity": 1, "completeness": 0, "v_measure": 0, "nmi": 0, "ami": 0},
            **{"dom_q0": 0, "dom_q2": 1},  # with one class there is nothing to tell
            **{"pantel_lin_distance": 2, "pantel_lin": 0},
            **three("muc", 0, 0, 0),
            **three("lea", 0, 0, 0),
            **{"purity": 1, "inverse_purity": Fr(1, 3), "split_join": 2},
        },
    ),
    "singletons, one cluster predicted": (
        from_lists("abc", ["abc"]),
        {
            **three("pair", 0, 1, 0),
            **{"homogeneity": 0, "completeness": 1, "v_measure": 0, "nmi": 0, "ami": 0},
            "dom_q0": math.log2(3) + math.log2(10) / 3,  # C(3 + 2, 2) = 10
            "dom_q2": math.log2(3) / (math.log2(3) + math.log2(10) / 3),  # C(1 + 2, 2) = 3
            **{"pantel_lin_distance": 2, "pantel_lin": 0},  # nothing to compare with, and not equal
            **{"purity": Fr(1, 3), "inverse_purity": 1, "split_join": 2},
        },
    ),
}


def of_scorer(key, response, **expected):
    """Return a test case of the CoNLL scorer, from its TestCases.README: precision, recall, perhaps F1 by score."""
    figures = {
        f"{stem}_{figure}": value
        for stem, known in expected.items()
        for figure, value in zip(("precision", "recall", "f1"), known, strict=False)
    }
    return from_lists(key, response), figures


KEY = ["a", "bc", "def"]
COREFERENCE_CASES = {
    "A2": of_scorer(
        *(KEY, ["a", "de"]),
        **{"muc": (1, Fr(1, 3)), "coref_bcubed": (1, Fr(7, 18)), "ceaf_m": (1, Fr(1, 2))},
        **{"ceaf_e": (Fr(9, 10), Fr(3, 5)), "blanc": (1, (Fr(1, 4) + Fr(2, 11)) / 2), "lea": (1, Fr(1, 3))},
    ),
    "A3": of_scorer(
        *(KEY, ["a", "bcx", "defy", "z"]),
        **{"muc": (Fr(3, 5), 1), "coref_bcubed": (Fr(55, 108), 1), "ceaf_m": (Fr(2, 3), 1)},
        **{"blanc": ((Fr(4, 9) + Fr(11, 27)) / 2, 1), "lea": (Fr(4, 9), 1)},
    ),
    "A4": of_scorer(
        *(KEY, ["a", "bcx", "dy", "z"]),
        **{
            "muc": (Fr(1, 3), Fr(1, 3)),
            "coref_bcubed": (Fr(17, 42), Fr(5, 9)),
            "ceaf_m": (Fr(4, 7), Fr(2, 3)),
        },
        **{"ceaf_e": (Fr(11, 20), Fr(11, 15)), "lea": (Fr(2, 7), Fr(1, 2))},
        blanc=((Fr(1, 4) + Fr(5, 17)) / 2, (Fr(1, 4) + Fr(5, 11)) / 2),
    ),
    "A5": of_scorer(
        *(KEY, ["a", "bcxB", "dy", "z"]),
        **{
            "muc": (Fr(1, 4), Fr(1, 3)),
            "coref_bcubed": (Fr(5, 16), Fr(5, 9)),
            "ceaf_m": (Fr(1, 2), Fr(2, 3)),
        },
        **{"blanc": ((Fr(1, 7) + Fr(5, 21)) / 2, (Fr(1, 4) + Fr(5, 11)) / 2), "lea": (Fr(5, 24), Fr(1, 2))},
    ),
    "A6": of_scorer(
        *(KEY, ["a", "bcx", "dy", "Bz"]),
        **{
            "muc": (Fr(1, 4), Fr(1, 3)),
            "coref_bcubed": (Fr(17, 48), Fr(5, 9)),
            "ceaf_m": (Fr(1, 2), Fr(2, 3)),
        },
        **{"ceaf_e": (Fr(11, 20), Fr(11, 15)), "lea": (Fr(1, 4), Fr(1, 2))},
        blanc=((Fr(1, 5) + Fr(5, 23)) / 2, (Fr(1, 4) + Fr(5, 11)) / 2),
    ),
    "A10": of_scorer(
        *(KEY, "abcdef"),
        **{
            "muc": (0, 0),
            "coref_bcubed": (1, Fr(1, 2)),
            "blanc": (Fr(11, 30), Fr(1, 2)),
            "lea": (Fr(1, 6),) * 2,
        },
    ),
    "A11": of_scorer(
        *(KEY, ["abcdef"]),
        **{"muc": (Fr(3, 5), 1), "coref_bcubed": (Fr(7, 18), 1), "blanc": (Fr(2, 15), Fr(1, 2))},
        lea=(Fr(4, 15), Fr(5, 6)),
    ),
    "A12": of_scorer(
        *(KEY, "axycdez"),
        **{"muc": (0, 0), "coref_bcubed": (Fr(4, 7), Fr(13, 36)), "blanc": (Fr(5, 42), Fr(5, 22))},
        lea=(Fr(1, 7), Fr(1, 6)),
    ),
    "A13": of_scorer(
        *(KEY, ["axycdez"]),
        **{
            "muc": (Fr(1, 6), Fr(1, 3)),
            "coref_bcubed": (Fr(6, 49), Fr(17, 36)),
            "blanc": (Fr(1, 42), Fr(1, 8)),
        },
        lea=(Fr(1, 21), Fr(1, 6)),
    ),
    "B1": of_scorer(["ab", "cde"], ["bcx", "de"], blanc=(Fr(7, 24),) * 3, lea=(Fr(2, 5), Fr(1, 5))),
    "C1": of_scorer(
        ["ab", "cde", "fg"], ["bcx", "de", "fg"], blanc=(Fr(41, 80),) * 3, lea=(Fr(4, 7), Fr(3, 7))
    ),
    # Bagga and Baldwin's paper
    "D1": of_scorer(
        *(["12345", "67", "89ABC"], ["12345", "6789ABC"]),
        **{"coref_bcubed": (Fr(16, 21), 1, Fr(32, 37)), "muc": (Fr(9, 10), 1), "lea": (Fr(13, 18), 1)},
    ),
    "E1": of_scorer(
        *(["12345", "67", "89ABC"], ["1234589ABC", "67"]),
        **{"coref_bcubed": (Fr(7, 12), 1, Fr(14, 19)), "muc": (Fr(9, 10), 1), "lea": (Fr(29, 54), 1)},
    ),
    # the paper of MUC
    "F1": of_scorer(["ABCD"], ["AB", "CD"], muc=(1, Fr(2, 3), Fr(4, 5)), lea=(1, Fr(1, 3))),
    "J1": of_scorer(["ABC"], ["AC"], muc=(1, Fr(1, 2)), lea=(1, Fr(1, 3))),
    "K1": of_scorer(["BCDEGHJ"], ["ABC", "DEF", "GHI"], muc=(Fr(1, 2), Fr(1, 2)), lea=(Fr(1, 3), Fr(1, 7))),
    "L1": of_scorer(
        ["ABC", "DEFG"], ["AB", "CD", "FGH"], muc=(Fr(1, 2), Fr(2, 5)), lea=(Fr(3, 7), Fr(5, 21))
    ),
    # one kind of link only in the key
    "M3": of_scorer(["abcdef"], ["ab", "cde", "f"], blanc=(1, Fr(4, 15)), lea=(Fr(5, 6), Fr(4, 15))),
    "M6": of_scorer(["abcdef"], ["ab", "cxy", "z"], blanc=(Fr(1, 4), Fr(1, 15)), lea=(Fr(1, 3), Fr(1, 15))),
    "N3": of_scorer("abcdef", ["ab", "cde", "f"], blanc=(1, Fr(11, 15)), lea=(Fr(1, 6), Fr(1, 6))),
    "N4": of_scorer("abcdef", "abcxyz", muc=(0, 0), blanc=(Fr(1, 5), Fr(1, 5)), lea=(Fr(1, 2), Fr(1, 2))),
    "N6": of_scorer("abcdef", ["ab", "cxy", "z"], blanc=(Fr(2, 11), Fr(2, 15)), lea=(0, 0)),
    # links of entities, LEA; key: 3 items with 1 of 3 links, 4 items with 1 of 6: (1 + 2/3)/7
    # response: 2 with 1 of 1, 2 with 0 of 1, 4 with 1 of 6: (2 + 2/3)/8
    "links of entities": (
        from_lists(["abc", "defg"], ["ab", "cd", "fghi"]),
        three("lea", Fr(1, 3), Fr(5, 21), Fr(5, 18)),
    ),
}

# -- the value of each score for two equal clusterings abc, de, f -----------------------------------

OF_EQUALS = {name: METRICS[name].high for name in ALL_FAMILIES if METRICS[name].best == "higher"}
OF_EQUALS |= {name: METRICS[name].low for name in ALL_FAMILIES if METRICS[name].best == "lower"}
OF_EQUALS = {name: end for name, end in OF_EQUALS.items() if math.isfinite(end)} | {
    **{"pair_tp": 4, "pair_tn": 11},
    "mutual_info": 1 / 2 + math.log2(3) / 3 + math.log2(6) / 6,
    "dom_q0": math.log2(10 * 6 * 3) / 6,  # C(3 + 2, 2), C(2 + 2, 2), C(1 + 2, 2)
}
