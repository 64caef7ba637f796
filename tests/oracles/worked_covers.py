"""Worked examples of overlapping clusterings: the figures of the papers, with the values they print.

A clustering is a list of sets. `EXAMPLES` has a truth and a prediction by name, `WORKED` the exact
values of their scores; where a paper prints a truncated decimal it stands in the comment.
"""

from fractions import Fraction as Fr
from typing import Any


def sets(*clusters: str) -> list[set[int]]:
    """Return sets of numbers: "123" is {1, 2, 3}."""
    return [set(map(int, cluster)) for cluster in clusters]


GREY, BLACK, WHITE = "123", "1245", "67"
IDEAL = sets(GREY, BLACK, WHITE)  # Amigó et al., Figure 16

#: The example of Rosales-Méndez and Ramírez-Cruz: both sides differ by the names of items 2 and 3.
CLASSES = sets("124", "13", "34", "356", "25", "26")
CANDIDATES = sets("134", "12", "24", "256", "35", "36")

EXAMPLES = {
    "figure 16": (IDEAL, IDEAL),
    "figure 17": (IDEAL, [*IDEAL, *sets("12345")]),  # the one added cluster that gives 0.60
    "figure 18": (IDEAL, [*IDEAL, *sets("12345", GREY)]),  # and a repeated one on top: 0.56
    "figure 19": (IDEAL, sets(GREY, "45", WHITE)),
    "figure 20": (IDEAL, sets(GREY, "12", "45", WHITE)),
    "figure 21": (IDEAL, sets("12345", WHITE)),
    "grey twice": (IDEAL, [*IDEAL, *sets(GREY)]),
    "black twice": (IDEAL, [*IDEAL, *sets(BLACK)]),
    "white twice": (IDEAL, [*IDEAL, *sets(WHITE)]),
    "grey thrice": (IDEAL, [*IDEAL, *sets(GREY, GREY)]),
    "black thrice": (IDEAL, [*IDEAL, *sets(BLACK, BLACK)]),
    "white thrice": (IDEAL, [*IDEAL, *sets(WHITE, WHITE)]),
    # every pair shares three clusters on both sides, and every item has six, yet they differ
    "figure 23": (
        sets("123", "123", "12", "13", "23", "1", "1", "2", "2", "3", "3"),
        sets("123", "12", "12", "13", "13", "23", "23", "1", "2", "3"),
    ),
    "hierarchy": (sets("123", "12", "3"), sets("123")),  # a root with two children, and the root
    "six objects": (CLASSES, CANDIDATES),
    "repeated singleton": (sets("1", "23"), sets("1", "1", "1", "23")),
    "cheat": (IDEAL, sets("1234567", *"1234567")),
}

#: name -> score -> value. An `int` or a `Fraction` is exact; a float has the digits printed.
WORKED: dict[str, dict[str, Any]] = {
    "figure 16": {
        "extended_bcubed_precision": 1,
        "extended_bcubed_recall": 1,
        "extended_elm_f1": 1,
        "cice_bcubed_f1": 1,
        "purity_f1": 1,
        "class_f1": 1,
        "omega": 1,
        "onmi_lfk": 1,
        "onmi_max": 1,
        "onmi_mean": 1,
    },
    "figure 17": {"extended_bcubed_precision": Fr(127, 210), "extended_bcubed_recall": 1},  # .60
    "figure 18": {"extended_bcubed_precision": Fr(59, 105), "extended_bcubed_recall": 1},  # .56
    "figure 19": {
        "extended_bcubed_precision": 1,
        "extended_bcubed_recall": Fr(24, 35),  # .68
        "extended_elm_precision": 1,
        "extended_elm_recall": Fr(53, 84),
        "cice_bcubed_precision": Fr(6, 7),
        "cice_bcubed_recall": Fr(3, 5),
        "cice_bcubed_f1": Fr(12, 17),
        "pair_cice_bcubed_precision": Fr(6, 7),
        "pair_cice_bcubed_recall": Fr(209, 350),
        "pair_cice_bcubed_f1": Fr(2508, 3563),
    },
    "figure 20": {"extended_bcubed_precision": 1, "extended_bcubed_recall": Fr(26, 35)},  # .74
    "figure 21": {
        "extended_bcubed_precision": Fr(31, 35),  # .88
        "extended_bcubed_recall": Fr(33, 35),  # .94
        "extended_bcubed_f1": Fr(1023, 1120),
        "cice_bcubed_precision": Fr(134, 175),
        "cice_bcubed_recall": Fr(134, 175),
        "cice_bcubed_f1": Fr(134, 175),
        "pair_cice_bcubed_precision": Fr(129, 175),
        "pair_cice_bcubed_recall": Fr(134, 175),
        "purity": Fr(6, 7),
        "inverse_purity": 1,
        "class_f1": Fr(281, 324),
        "omega": Fr(170, 233),
        "onmi_lfk": 0.681453,
        "onmi_max": 0.521790,
        "onmi_mean": 0.648505,
    },
    "grey twice": {"extended_bcubed_precision": Fr(181, 210), "extended_bcubed_recall": 1},
    "black twice": {"extended_bcubed_precision": Fr(16, 21), "extended_bcubed_recall": 1},
    "white twice": {"extended_bcubed_precision": Fr(6, 7), "extended_bcubed_recall": 1},
    "grey thrice": {"extended_bcubed_precision": Fr(17, 21), "extended_bcubed_recall": 1},
    "black thrice": {"extended_bcubed_precision": Fr(71, 105), "extended_bcubed_recall": 1},
    "white thrice": {"extended_bcubed_precision": Fr(17, 21), "extended_bcubed_recall": 1},
    "figure 23": {
        "extended_bcubed_f1": 1,
        "cice_bcubed_f1": 1,
        "purity": 1,
        "inverse_purity": 1,
        "class_f1": 1,
        "exact_match_f1": Fr(2, 3),  # of 11 and of 10 clusters, 7 are the same
    },
    "hierarchy": {"purity": 1, "inverse_purity": 1, "extended_bcubed_recall": Fr(13, 18)},
    "six objects": {
        "extended_bcubed_precision": 1,
        "extended_bcubed_recall": 1,
        "extended_bcubed_f1": 1,
        "extended_elm_precision": 1,
        "extended_elm_recall": 1,
        "extended_elm_f1": 1,
        "cice_bcubed_precision": Fr(2, 3),
        "cice_bcubed_recall": Fr(2, 3),
        "cice_bcubed_f1": Fr(2, 3),
        "pair_cice_bcubed_precision": Fr(23, 36),
        "pair_cice_bcubed_recall": Fr(23, 36),
        "pair_cice_bcubed_f1": Fr(23, 36),
        "purity": Fr(6, 7),
        "inverse_purity": Fr(6, 7),
        "class_f1": Fr(4, 5),
        "exact_match_f1": 0,
        "omega": 1,
        "onmi_lfk": 0.486383,
        "onmi_max": 0.485598,
    },
    "repeated singleton": {"extended_elm_precision": 1, "extended_bcubed_precision": Fr(7, 9)},
    "cheat": {
        "extended_bcubed_precision": Fr(45, 98),
        "extended_bcubed_recall": Fr(34, 35),
        "purity": Fr(11, 14),
        "inverse_purity": 1,
    },
}


def homogeneity() -> tuple[list[set], list[set], list[set]]:
    """Return a truth, a prediction with one mixed cluster, and one in which it is cut in two.

    Class A has 5 items: one in the mixed cluster, four alone. Class B has 81: three in the mixed
    cluster, 78 together. To cut the mixed cluster can only help, says the first formal constraint.
    """
    a, b = [f"a{k}" for k in range(5)], [f"b{k}" for k in range(81)]
    rest = [*({e} for e in a[1:]), set(b[3:])]
    return [set(a), set(b)], [{a[0], *b[:3]}, *rest], [{a[0]}, set(b[:3]), *rest]
