"""Scores of whole clusters and of pairs of items, as functions of two labelings or of a contingency."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from numpy.typing import ArrayLike

from fastbcubed.metrics.labelings import as_contingency, compute, describe
from fastbcubed.metrics.labelings import make_score as _score
from fastbcubed.metrics.registry import METRICS

if TYPE_CHECKING:
    from fastbcubed.contingency import Contingency

__all__ = ["ExactMatch", "exact_match", "omega", "onmi_lfk", "onmi_max", "onmi_mean"]

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
