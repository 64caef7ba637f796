"""Scores of overlapping clusterings, as functions of a contingency or of two labelings."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from numpy.typing import ArrayLike

from fastbcubed.metrics.labelings import as_contingency, compute, describe
from fastbcubed.metrics.labelings import make_score as _score
from fastbcubed.metrics.labelings import make_three_scores as _three_scores
from fastbcubed.metrics.registry import METRICS

if TYPE_CHECKING:
    from fastbcubed.cells.contingency import Contingency

__all__ = [
    "ExactMatch",
    "cice_bcubed_f1",
    "cice_bcubed_mean_f1",
    "cice_bcubed_precision",
    "cice_bcubed_precision_recall_fscore",
    "cice_bcubed_recall",
    "exact_match",
    "extended_bcubed_f1",
    "extended_bcubed_mean_f1",
    "extended_bcubed_precision",
    "extended_bcubed_precision_recall_fscore",
    "extended_bcubed_recall",
    "extended_elm_f1",
    "extended_elm_mean_f1",
    "extended_elm_precision",
    "extended_elm_precision_recall_fscore",
    "extended_elm_recall",
    "omega",
    "onmi_lfk",
    "onmi_max",
    "onmi_mean",
]

#: Two true clusters share an item; one predicted cluster holds them both.
_CELLS = """
    >>> import fastbcubed as fb
    >>> truth, prediction = {1: {"a"}, 2: {"a", "b"}, 3: {"b"}}, {1: {"c"}, 2: {"c"}, 3: {"c"}}
    >>> cells = fb.evaluate(truth, prediction, overlapping=True).contingency"""

extended_bcubed_precision = _score(
    "extended_bcubed_precision",
    f"""{_CELLS}
    >>> score = extended_bcubed_precision(contingency=cells)
    >>> round(score, 6)  # (2/3 + 1 + 2/3) / 3: items 1 and 3 share no true cluster
    0.777778
    """,
)
extended_bcubed_recall = _score(
    "extended_bcubed_recall",
    f"""{_CELLS}
    >>> score = extended_bcubed_recall(contingency=cells)
    >>> round(score, 6)  # (1 + 5/6 + 1) / 3: item 2 finds itself in one cluster, not two
    0.944444
    """,
)
extended_bcubed_f1 = _score(
    "extended_bcubed_f1",
    f"""{_CELLS}
    >>> score = extended_bcubed_f1(contingency=cells)
    >>> round(score, 6)  # 2 * 7/9 * 17/18 / (7/9 + 17/18)
    0.853047
    """,
)
extended_bcubed_mean_f1 = _score(
    "extended_bcubed_mean_f1",
    f"""{_CELLS}
    >>> score = extended_bcubed_mean_f1(contingency=cells)
    >>> round(score, 6)  # (4/5 + 10/11 + 4/5) / 3
    0.836364
    """,
)
extended_bcubed_precision_recall_fscore = _three_scores(
    "extended_bcubed_f1",
    f"""{_CELLS}
    >>> scores = extended_bcubed_precision_recall_fscore(contingency=cells)
    >>> [round(score, 6) for score in scores]
    [0.777778, 0.944444, 0.853047]
    """,
)
extended_elm_precision = _score(
    "extended_elm_precision",
    f"""{_CELLS}
    >>> score = extended_elm_precision(contingency=cells)
    >>> round(score, 6)  # (1/2 + 1 + 1/2) / 3: items 1 and 3 share no true cluster
    0.666667
    """,
)
extended_elm_recall = _score(
    "extended_elm_recall",
    f"""{_CELLS}
    >>> score = extended_elm_recall(contingency=cells)
    >>> round(score, 6)  # (1/1 + 2/2 + 1/1) / 3
    1.0
    """,
)
extended_elm_f1 = _score(
    "extended_elm_f1",
    f"""{_CELLS}
    >>> score = extended_elm_f1(contingency=cells)
    >>> round(score, 6)  # 2 * 2/3 * 1 / (2/3 + 1)
    0.8
    """,
)
extended_elm_mean_f1 = _score(
    "extended_elm_mean_f1",
    f"""{_CELLS}
    >>> score = extended_elm_mean_f1(contingency=cells)
    >>> round(score, 6)  # (2/3 + 1 + 2/3) / 3
    0.777778
    """,
)
extended_elm_precision_recall_fscore = _three_scores(
    "extended_elm_f1",
    f"""{_CELLS}
    >>> scores = extended_elm_precision_recall_fscore(contingency=cells)
    >>> [round(score, 6) for score in scores]
    [0.666667, 1.0, 0.8]
    """,
)
cice_bcubed_precision = _score(
    "cice_bcubed_precision",
    f"""{_CELLS}
    >>> score = cice_bcubed_precision(contingency=cells)
    >>> round(score, 6)  # (2/3 + 1 + 2/3) / 3, times the Jaccard index 2/3 of c and a, or b
    0.518519
    """,
)
cice_bcubed_recall = _score(
    "cice_bcubed_recall",
    f"""{_CELLS}
    >>> score = cice_bcubed_recall(contingency=cells)
    >>> round(score, 6)  # (1 + 5/6 + 1) / 3, times the Jaccard index 2/3 of a, or b, and c
    0.62963
    """,
)
cice_bcubed_f1 = _score(
    "cice_bcubed_f1",
    f"""{_CELLS}
    >>> score = cice_bcubed_f1(contingency=cells)
    >>> round(score, 6)  # 2 * 14/27 * 17/27 / (14/27 + 17/27)
    0.568698
    """,
)
cice_bcubed_mean_f1 = _score(
    "cice_bcubed_mean_f1",
    f"""{_CELLS}
    >>> score = cice_bcubed_mean_f1(contingency=cells)
    >>> round(score, 6)  # 2/3 * (4/5 + 10/11 + 4/5) / 3
    0.557576
    """,
)
cice_bcubed_precision_recall_fscore = _three_scores(
    "cice_bcubed_f1",
    f"""{_CELLS}
    >>> scores = cice_bcubed_precision_recall_fscore(contingency=cells)
    >>> [round(score, 6) for score in scores]
    [0.518519, 0.62963, 0.568698]
    """,
)
omega = _score(
    "omega",
    """
    >>> omega(list("aabb"), [1, 1, 1, 2])  # 3 of 6 pairs agree; expected (2 * 3 + 4 * 3) / 6**2
    0.0
    """,
)
onmi_lfk = _score(
    "onmi_lfk",
    """
    >>> score = onmi_lfk(list("aabb"), [1, 1, 1, 2])  # H(X) = 1, H(Y) = 0.8113, H(X, Y) = 1.5
    >>> round(score, 4)  # 1 - ((1.5 - 0.8113) / 1 + (1.5 - 1) / 0.8113) / 2
    0.3475
    """,
)
onmi_max = _score(
    "onmi_max",
    """
    >>> score = onmi_max(list("aabb"), [1, 1, 1, 2])  # H(X) = 1, H(Y) = 0.8113, H(X, Y) = 1.5
    >>> round(score, 4)  # (1 + 0.8113 - 1.5) / 1
    0.3113
    """,
)
onmi_mean = _score(
    "onmi_mean",
    """
    >>> score = onmi_mean(list("aabb"), [1, 1, 1, 2])  # H(X) = 1, H(Y) = 0.8113, H(X, Y) = 1.5
    >>> round(score, 4)  # (1 + 0.8113 - 1.5) / ((1 + 0.8113) / 2)
    0.3437
    """,
)


class ExactMatch(NamedTuple):
    """The shares of predicted and of true clusters that the other side has, too, and their F1."""

    precision: float
    recall: float
    f1: float


def exact_match(
    labels_true: ArrayLike | None = None,
    labels_pred: ArrayLike | None = None,
    *,
    contingency: Contingency | None = None,
) -> ExactMatch:
    """Compare the clusters of both sides as sets of items, each as often as it is there.

    Parameters
    ----------
    labels_true, labels_pred : array-like of shape (n_items,)
        Cluster label of each item, both in the same item order.
    contingency : Contingency, optional
        The cells, as `fastbcubed.contingency` makes them, in place of labels.

    Returns
    -------
    ExactMatch
        Named tuple (precision, recall, f1): the shares of predicted and of true clusters that the
        other side has, too, and their F1. All are 1 if and only if the clusterings are identical.

    Raises
    ------
    FastBCubedError
        If there is no item, if the two sides differ in length, or if a label is missing or cannot be
        one. Every error below is one, too.
    OptionError
        If there are neither labels nor a contingency, or both.

    Notes
    -----
    Where clusters overlap, CICE-BCubed and the others can be 1 for clusterings that differ in how often a
    cluster is there; this one cannot. Weights make no difference.

    Examples
    --------
    >>> exact_match(list("aabb"), [1, 1, 2, 3])  # one of three, one of two
    ExactMatch(precision=0.3333333333333333, recall=0.5, f1=0.4)
    """
    cells = as_contingency(labels_true, labels_pred, None, contingency)
    return ExactMatch(*compute(cells, [METRICS[f"cluster_{part}"] for part in ExactMatch._fields]))


describe(exact_match, "exact_match", exact_match.__doc__ or "")
