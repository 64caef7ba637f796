"""Pair counting as functions of two labelings, under the names of the registry and of scikit-learn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastbcubed.metrics.labelings import as_contingency, check_defined
from fastbcubed.metrics.labelings import describe as _describe
from fastbcubed.metrics.labelings import make_score as _score
from fastbcubed.metrics.labelings import make_three_scores as _three_scores
from fastbcubed.metrics.pairs import pair_counts
from fastbcubed.metrics.registry import METRICS
from fastbcubed.runtime.pool import Pool

if TYPE_CHECKING:
    from fastbcubed.cells.contingency import Contingency


pair_tp = _score(
    "pair_tp",
    """
    >>> pair_tp(list("aaabb"), [1, 1, 2, 2, 2])  # one pair of a, one of b
    2.0
    """,
)
pair_fp = _score(
    "pair_fp",
    """
    >>> pair_fp(list("aaabb"), [1, 1, 2, 2, 2])  # an a with each b
    2.0
    """,
)
pair_fn = _score(
    "pair_fn",
    """
    >>> pair_fn(list("aaabb"), [1, 1, 2, 2, 2])  # an a from each other a
    2.0
    >>> pair_fn(list("aab"), [1, 2, 1], sample_weight=[1, 2, 3])  # 1 * 2
    2.0
    """,
)
pair_tn = _score(
    "pair_tn",
    """
    >>> pair_tn(list("aaabb"), [1, 1, 2, 2, 2])  # 10 pairs in all, less 2 + 2 + 2
    4.0
    """,
)
pair_precision = _score(
    "pair_precision",
    """
    >>> pair_precision(list("aaabb"), [1, 1, 2, 2, 2])  # 2 / (2 + 2)
    0.5
    """,
)
pair_recall = _score(
    "pair_recall",
    """
    >>> pair_recall(list("aaabb"), [1, 1, 2, 2, 2])  # 2 / (2 + 2)
    0.5
    """,
)
pair_f1 = _score(
    "pair_f1",
    """
    >>> pair_f1(list("aaab"), [1, 1, 1, 1])  # 2 * 1/2 * 1 / (1/2 + 1), with P = 3 / 6
    0.6666666666666666
    """,
)
pair_precision_recall_fscore = _three_scores(
    "pair_f1",
    """
    >>> pair_precision_recall_fscore(list("aaab"), [1, 1, 1, 1])
    PrecisionRecallFscore(precision=0.5, recall=1.0, f1=0.6666666666666666)
    """,
)
rand = _score(
    "rand",
    """
    >>> rand(list("aaabb"), [1, 1, 2, 2, 2])  # (2 + 4) / 10
    0.6
    """,
)
rand_score = _score(
    "rand",
    """
    >>> rand_score(list("aaabb"), [1, 1, 2, 2, 2])  # (2 + 4) / 10
    0.6
    """,
    called="rand_score",
    note="As in scikit-learn, which has no weights.",
)
adjusted_rand = _score(
    "adjusted_rand",
    """
    >>> score = adjusted_rand(list("aaabb"), [1, 1, 2, 2, 2])
    >>> round(score, 12)  # 2 * (2 * 4 - 2 * 2) / (4 * 6 + 4 * 6) = 1/6
    0.166666666667
    """,
)
adjusted_rand_score = _score(
    "adjusted_rand",
    """
    >>> score = adjusted_rand_score(list("aaabb"), [1, 1, 2, 2, 2])
    >>> round(score, 12)  # 2 * (2 * 4 - 2 * 2) / (4 * 6 + 4 * 6) = 1/6
    0.166666666667
    """,
    called="adjusted_rand_score",
    note="As in scikit-learn, which has no weights.",
)
pair_jaccard = _score(
    "pair_jaccard",
    """
    >>> pair_jaccard(list("aaab"), [1, 1, 1, 1])  # 3 / (3 + 3 + 0)
    0.5
    """,
)
pair_fowlkes_mallows = _score(
    "pair_fowlkes_mallows",
    """
    >>> pair_fowlkes_mallows(list("aaabb"), [1, 1, 2, 2, 2])  # sqrt(2/4 * 2/4)
    0.5
    """,
)
fowlkes_mallows_score = _score(
    "pair_fowlkes_mallows",
    """
    >>> fowlkes_mallows_score(list("aaabb"), [1, 1, 2, 2, 2])  # sqrt(2/4 * 2/4)
    0.5
    >>> fowlkes_mallows_score(list("ab"), [1, 2])
    1.0
    """,
    called="fowlkes_mallows_score",
    note="As in scikit-learn, which has no weights, but for singletons on both sides: these are the same"
    " clustering and have 1 here, as for every other score of this family, but 0 there.",
)
mirkin = _score(
    "mirkin",
    """
    >>> mirkin(list("aaabb"), [1, 1, 2, 2, 2])  # 2 * (2 + 2)
    8.0
    """,
)


def pair_confusion_matrix(
    labels_true: ArrayLike | None = None,
    labels_pred: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    contingency: Contingency | None = None,
) -> NDArray[Any]:
    """Count the ordered pairs of items that are together or apart on each side, exactly.

    Parameters
    ----------
    labels_true, labels_pred : array-like of shape (n_items,)
        Cluster label of each item, both in the same item order.
    sample_weight : array-like of shape (n_items,), optional
        Positive weight of each item; a pair then counts the product of its items' weights.
    contingency : Contingency, optional
        The cells, as `fastbcubed.contingency` makes them, in place of labels and weights.

    Returns
    -------
    ndarray of shape (2, 2)
        Rows are apart and together in the truth, columns apart and together in the prediction: ordered
        pairs, so each pair counts twice. int64; Python integers where that is too small; float64 with
        weights.

    Raises
    ------
    FastBCubedError
        If there is no item, if the two sides differ in length, or if a label or a weight is missing
        or cannot be one.
    MetricError
        If the contingency counts items outside the truth, or if it has weights but not the items.

    Notes
    -----
    As in scikit-learn, which has no weights, and whose int64 overflow silently from 3e9 items on.

    Examples
    --------
    >>> pair_confusion_matrix(list("aaab"), [1, 1, 1, 1])
    array([[0, 6],
           [0, 6]])
    """
    table = as_contingency(labels_true, labels_pred, sample_weight, contingency)
    check_defined(table, [METRICS["pair_tp"]])
    with Pool() as pool:
        tp, fp, fn, tn = (2 * pairs for pairs in table.once(pair_counts, pool))
    matrix = [[tn, fp], [fn, tp]]
    if table.weighted:
        return np.array(matrix, np.float64)
    fits = max(tp, fp, fn, tn) <= np.iinfo(np.int64).max
    return np.array([[int(pairs) for pairs in row] for row in matrix], np.int64 if fits else object)


_describe(pair_confusion_matrix, "pair_confusion_matrix", pair_confusion_matrix.__doc__ or "")
