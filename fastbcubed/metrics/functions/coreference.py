"""Coreference scores as functions of two labelings, whose items may differ."""

from __future__ import annotations

from dataclasses import replace
from numbers import Real
from typing import TYPE_CHECKING, Protocol, TypeVar

from numpy.typing import ArrayLike

from fastbcubed.errors import OptionError
from fastbcubed.metrics import coreference as _coreference
from fastbcubed.metrics.documentation import document
from fastbcubed.metrics.labelings import PrecisionRecallFscore, as_contingency, check_defined, describe
from fastbcubed.metrics.registry import METRICS
from fastbcubed.runtime.pool import Pool

if TYPE_CHECKING:
    from fastbcubed.cells.contingency import Contingency

Result = TypeVar("Result", covariant=True)

_OPTIONS = """    A null says that the side lacks the item.
zero_division : float, default 0.0
    What 0 / 0 gives. Only MUC (entities of one mention) and BLANC (no link) ever come to that.
"""


class CoreferenceScore(Protocol[Result]):
    """A function from two labelings, or a contingency in their place, to coreference scores."""

    def __call__(
        self,
        labels_true: ArrayLike | None = None,
        labels_pred: ArrayLike | None = None,
        *,
        zero_division: float = 0.0,
        sample_weight: ArrayLike | None = None,
        contingency: Contingency | None = None,
    ) -> Result:
        """Return the score or scores."""
        ...


def _three_scores(name: str, example: str) -> CoreferenceScore[PrecisionRecallFscore]:
    """Make the function for precision, recall and F of a score."""
    metric = METRICS[f"{name}_f1"]

    def scores(
        labels_true: ArrayLike | None = None,
        labels_pred: ArrayLike | None = None,
        *,
        zero_division: float = 0.0,
        sample_weight: ArrayLike | None = None,
        contingency: Contingency | None = None,
    ) -> PrecisionRecallFscore:
        if not isinstance(zero_division, Real):
            raise OptionError(f"zero_division is a number, not {zero_division!r}")
        table = as_contingency(labels_true, labels_pred, sample_weight, contingency, nulls="drop")
        check_defined(table, [metric])
        with Pool() as pool:
            found = _coreference.SCORES[name].figures(table, pool, float(zero_division))
        return PrecisionRecallFscore(*found)

    together = replace(
        metric,
        summary=metric.summary.replace("F1 of", "Precision, recall and F1:"),
        definition=f"P = {name}_precision, R = {name}_recall, F1 = {metric.definition}",
    )
    returns = "PrecisionRecallFscore\n    Named tuple (precision, recall, f1)."
    page = document(together, example, options=_OPTIONS, or_option=_OR, returns=returns)
    describe(scores, f"{name}_precision_recall_fscore", page)
    return scores


def _score(name: str, example: str) -> CoreferenceScore[float]:
    """Make the function for one of the three."""
    stem, _, role = name.rpartition("_")
    position = _coreference.FIGURES.index(role)
    three = _three_scores(stem, example)

    def score(
        labels_true: ArrayLike | None = None,
        labels_pred: ArrayLike | None = None,
        *,
        zero_division: float = 0.0,
        sample_weight: ArrayLike | None = None,
        contingency: Contingency | None = None,
    ) -> float:
        found = three(
            labels_true,
            labels_pred,
            zero_division=zero_division,
            sample_weight=sample_weight,
            contingency=contingency,
        )
        return found[position]

    describe(score, name, document(METRICS[name], example, options=_OPTIONS, or_option=_OR))
    return score


_OR = ", or if zero_division is no number"

muc_precision = _score(
    "muc_precision",
    """
    The links a-b and f-g are right, of five that hold ab, cd and fghi together.

    >>> labels_true = ["x", "x", "x", "y", "y", "y", "y", None, None]  # abc and defg
    >>> muc_precision(labels_true, [1, 1, 2, 2, None, 3, 3, 3, 3])  # 2 / (1 + 1 + 3)
    0.4
    """,
)
muc_recall = _score(
    "muc_recall",
    """
    >>> muc_recall(list("xxxxx"), [1, 1, 1, 2, 2])  # two parts are one link short of 4
    0.75
    >>> muc_recall(list("xyz"), [1, 2, 3]), muc_recall(list("xyz"), [1, 2, 3], zero_division=1)
    (0.0, 1.0)
    """,
)
muc_f1 = _score(
    "muc_f1",
    """
    >>> score = muc_f1(list("xxxx"), [1, 1, 2, 2])
    >>> round(score, 12)  # P = 2/2, R = 2/3; 2 * 1 * 2/3 / (1 + 2/3)
    0.8
    """,
)
muc_precision_recall_fscore = _three_scores(
    "muc",
    """
    >>> muc_precision_recall_fscore(list("xxx"), [1, None, 1])  # b is missing, and so is one of two links
    PrecisionRecallFscore(precision=1.0, recall=0.5, f1=0.6666666666666666)
    """,
)
ceaf_m_precision = _score(
    "ceaf_m_precision",
    """
    >>> ceaf_m_precision(list("xxyyy"), [1, 1, 1, 1, 2])  # y with 1 shares 2, x no other; x with 1 and y with 2: 3
    0.6
    """,
)
ceaf_m_recall = _score(
    "ceaf_m_recall",
    """
    The entities a, bc and def, of which the response has a and de.

    >>> ceaf_m_recall([1, 2, 2, 3, 3, 3], ["a", None, None, "b", "b", None])  # (1 + 2) / 6
    0.5
    """,
)
ceaf_m_f1 = _score(
    "ceaf_m_f1",
    """
    >>> score = ceaf_m_f1([1, 2, 2, 3, 3, 3], ["a", None, None, "b", "b", None])
    >>> round(score, 12)  # P = 3/3, R = 3/6
    0.666666666667
    """,
)
ceaf_m_precision_recall_fscore = _three_scores(
    "ceaf_m",
    """
    >>> ceaf_m_precision_recall_fscore([1, 2, 2, 3, 3, 3], ["a", None, None, "b", "b", None])
    PrecisionRecallFscore(precision=1.0, recall=0.5, f1=0.6666666666666666)
    """,
)
ceaf_e_precision = _score(
    "ceaf_e_precision",
    """
    The entities a, bc and def, of which the response has a and de.

    >>> score = ceaf_e_precision([1, 2, 2, 3, 3, 3], ["a", None, None, "b", "b", None])
    >>> round(score, 12)  # (1 + 2 * 2 / (3 + 2)) / 2
    0.9
    """,
)
ceaf_e_recall = _score(
    "ceaf_e_recall",
    """
    >>> score = ceaf_e_recall([1, 2, 2, 3, 3, 3], ["a", None, None, "b", "b", None])
    >>> round(score, 12)  # (1 + 2 * 2 / (3 + 2)) / 3
    0.6
    """,
)
ceaf_e_f1 = _score(
    "ceaf_e_f1",
    """
    >>> score = ceaf_e_f1([1, 2, 2, 3, 3, 3], ["a", None, None, "b", "b", None])
    >>> round(score, 12)  # 2 * 9/10 * 3/5 / (9/10 + 3/5)
    0.72
    """,
)
ceaf_e_precision_recall_fscore = _three_scores(
    "ceaf_e",
    """
    >>> scores = ceaf_e_precision_recall_fscore([1, 2, 2, 3, 3, 3], ["a", None, None, "b", "b", None])
    >>> [round(score, 12) for score in scores]
    [0.9, 0.6, 0.72]
    """,
)
blanc_precision = _score(
    "blanc_precision",
    """
    The entities ab and cde against bcx and de: one of 4 links within is right, and two of 6 between.

    >>> score = blanc_precision(["x", "x", "y", "y", "y", None], [None, 1, 1, 2, 2, 1])
    >>> round(score, 6)  # (1/4 + 2/6) / 2 = 7/24
    0.291667
    """,
)
blanc_recall = _score(
    "blanc_recall",
    """
    >>> blanc_recall(list("xxyy"), [1, 1, 1, 1])  # (2/2 + 0/4) / 2
    0.5
    """,
)
blanc_f1 = _score(
    "blanc_f1",
    """
    The F1 of links within entities is 2/4 here, that of links between them 0.

    >>> blanc_f1(list("xxyy"), [1, 1, 1, 1])  # (2 * 2/6 * 2/2 / (2/6 + 2/2) + 0) / 2
    0.25
    """,
)
blanc_precision_recall_fscore = _three_scores(
    "blanc",
    """
    >>> blanc_precision_recall_fscore(list("xyz"), [1, 2, 3])  # no links within: those between alone
    PrecisionRecallFscore(precision=1.0, recall=1.0, f1=1.0)
    """,
)
lea_precision = _score(
    "lea_precision",
    """
    >>> lea_precision(list("xxyy"), [1, 1, 1, 2])  # (3 * 1/3 + 1 * 0) / 4; y is not alone in the key
    0.25
    """,
)
lea_recall = _score(
    "lea_recall",
    """
    >>> lea_recall(list("xxyy"), [1, 1, 1, 2])  # (2 * 1/1 + 2 * 0/1) / 4
    0.5
    """,
)
lea_f1 = _score(
    "lea_f1",
    """
    >>> score = lea_f1(list("xxyy"), [1, 1, 1, 2])
    >>> round(score, 12)  # 2 * 1/4 * 1/2 / (1/4 + 1/2)
    0.333333333333
    """,
)
lea_precision_recall_fscore = _three_scores(
    "lea",
    """
    The entities abc and defg against ab, cd and fghi: (2 * 1 + 2 * 0 + 4 * 1/6) / 8 and
    (3 * 1/3 + 4 * 1/6) / 7.

    >>> labels_true = ["x", "x", "x", "y", "y", "y", "y", None, None]
    >>> scores = lea_precision_recall_fscore(labels_true, [1, 1, 2, 2, None, 3, 3, 3, 3])
    >>> [round(score, 6) for score in scores]  # 1/3, 5/21, 5/18
    [0.333333, 0.238095, 0.277778]
    """,
)
coref_bcubed_precision = _score(
    "coref_bcubed_precision",
    """
    >>> score = coref_bcubed_precision(["x", "x", None], [1, 1, 1])
    >>> round(score, 12)  # (2/3 + 2/3 + 0) / 3 = 4/9
    0.444444444444
    """,
)
coref_bcubed_recall = _score(
    "coref_bcubed_recall",
    """
    >>> coref_bcubed_recall(list("xxyy"), [1, 1, 2, None])  # (1 + 1 + 1/2 + 0) / 4
    0.625
    """,
)
coref_bcubed_f1 = _score(
    "coref_bcubed_f1",
    """
    >>> coref_bcubed_f1(list("xxyy"), [1, 1, 1, 1])  # 2 * 1/2 * 1 / (1/2 + 1)
    0.6666666666666666
    """,
)
coref_bcubed_precision_recall_fscore = _three_scores(
    "coref_bcubed",
    """
    >>> coref_bcubed_precision_recall_fscore(list("xx"), [1, None])  # R = (1/2 + 0) / 2
    PrecisionRecallFscore(precision=1.0, recall=0.25, f1=0.4)
    """,
)
