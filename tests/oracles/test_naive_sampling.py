"""The twin of sampled clusters meets the worked values of METRICS 12, the exact ones and those printed."""

import math
from fractions import Fraction as Fr

import naive_sampling
import pytest

PREDICTION = dict(zip(range(1, 9), [1, 1, 2, 3, 2, 4, 4, 4], strict=True))
C1, C2, C3, C4 = {1, 2, 3}, {4, 5}, {6, 7, 8}, {8}


@pytest.mark.parametrize(
    ("clusters", "name", "estimate", "std"),
    [
        ((C1, C2), "pair_f1", Fr(5, 12), Fr(1, 6)),
        ((C1, C2), "bcubed_precision_by_true_cluster", Fr(19, 24), Fr(1, 24)),
        ((C1, C2), "bcubed_recall_by_true_cluster", Fr(19, 36), Fr(1, 36)),
        ((C1, C2), "precision", Fr(808, 1000), 0.040),
        ((C1, C2), "recall", Fr(101, 100) * Fr(8, 15), 0.0266667),
        ((C1, C2, C4), "pair_recall", Fr(19, 64), 0.1082532),
        ((C1, C2, C4), "pair_precision", Fr(7, 18), 0.2545875),
        ((C1, C2, C3), "cluster_precision", Fr(67, 256), 0.2359323),
        ((C1, C2, C3), "cluster_recall", Fr(1, 3), Fr(1, 3)),
        ((C1, C2, C3), "cluster_f1", Fr(101, 343), 0.2760765),
    ],
)
def test_worked_values(clusters, name, estimate, std):
    value, error, _ = naive_sampling.estimate(name, [(cluster, 1) for cluster in clusters], PREDICTION)
    assert value == estimate
    assert math.isclose(error, std, abs_tol=5e-8)


def test_printed_values():
    printed = {Fr(101, 100) * Fr(8, 15): 0.53867, Fr(67, 256): 0.26171875, Fr(101, 343): 0.2944606}
    for exact, shown in printed.items():
        assert math.isclose(exact, shown, abs_tol=5e-6)


def test_what_is_not_known():
    assert all(map(math.isnan, naive_sampling.estimate("pair_recall", [(C4, 1)], PREDICTION)))
    assert naive_sampling.estimate("cluster_recall", [(C1, 1), (C2, 1)], PREDICTION)[0] == 0
    assert math.isnan(naive_sampling.estimate("precision", [(C1, 1)], PREDICTION)[1])
