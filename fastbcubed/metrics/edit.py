"""Edit distances: the number of steps that turn the predicted clusters into the true ones."""

from __future__ import annotations

from functools import partial
from math import inf

from fastbcubed.metrics.metric import Family

edit = Family("edit", low=0.0, high=inf, best="lower", labelled_only=True)
STEPS = "Every step counts once; weights make no difference."


# Merges and moves
of_moves = partial(edit.of_sums, of=("clusters", "majorities"))


@of_moves(
    "(n - sum over predicted clusters of max over its cells of w) + (M - m), where n is the number of items, w is the"
    " number of items in a cell, M is the number of predicted clusters, and m is the largest number of predicted"
    " clusters that can each be assigned a different true cluster that contains one of their largest cells",
    source="Pantel and Lin 2002",
    note=STEPS,
    use="Use this score to measure how many merges of two clusters and moves of single items turn the prediction into"
    " the truth; basic_merge_distance counts splits instead of moves.",
    caution="The number of steps grows with the data: do not compare the number across data sets.",
    worked="(4 - (2 + 1)) + (2 - 2)",
    example="""
    >>> pantel_lin_distance(list("aaabb"), [1, 1, 2, 2, 2])  # move an a
    1.0
    """,
)
def pantel_lin_distance(
    n_items: int, n_cells: int, n_true: int, n_pred: int, kept: int, matched: int
) -> float:
    """Smallest number of merges of two clusters and moves of one item that turn the prediction into the truth."""
    return (n_items - kept) + (n_pred - matched)


@of_moves(
    "1 - D / (n - K), with D = pantel_lin_distance, where n is the number of items, and K is the number of true"
    " clusters; where n = K, the score is 1 if the clusterings are identical, else 0",
    low=-inf,
    high=1.0,
    best="higher",
    source="Pantel and Lin 2002",
    note=STEPS,
    use="Use this score to measure what share of the merges and moves a prediction saves, compared with starting from"
    " singletons; pantel_lin_distance counts the merges and moves.",
    caution="The score is negative if the prediction is further from the truth than singletons are.",
    worked="1 - 1 / (4 - 2)",
    example="""
    >>> score = pantel_lin(list("aaabb"), [1, 1, 2, 2, 2])
    >>> round(score, 12)  # 1 step instead of 5 - 2
    0.666666666667
    """,
)
def pantel_lin(n_items: int, n_cells: int, n_true: int, n_pred: int, kept: int, matched: int) -> float:
    """Share of the merges and moves that the prediction saves, compared with starting from singletons."""
    steps = pantel_lin_distance(n_items, n_cells, n_true, n_pred, kept, matched)
    most = n_items - n_true
    return (most - steps) / most if most else float(steps == 0)


# Splits and merges


@edit.of_sums(
    "(V - M) + (V - K), where V is the number of cells, and M and K are the numbers of predicted and true clusters",
    of="clusters",
    source="Menestrina et al. 2010",
    use="Use this score to measure how many splits and merges of clusters turn the prediction into the truth;"
    " split_join counts items.",
    caution="Splitting off one item costs as much as merging two clusters of a thousand items, and the distance grows"
    " with the data.",
    worked="(3 - 2) + (3 - 2)",
    example="""
    >>> basic_merge_distance(list("aaabb"), [1, 1, 2, 2, 2])  # split the second, merge the a's
    2.0
    """,
)
def basic_merge_distance(n_items: int, n_cells: int, n_true: int, n_pred: int) -> float:
    """Number of splits and merges that turn the predicted clusters into the true clusters, with all splits first."""
    return 2 * n_cells - n_true - n_pred


edit.alias("merge_distance", edit["basic_merge_distance"])
