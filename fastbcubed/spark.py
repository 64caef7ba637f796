"""The same scores on Spark: two DataFrames are joined and scored where they are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

from fastbcubed.alignment.policies import Duplicates, Nulls, Unmatched, Weighting
from fastbcubed.clusterings.inputs import PerSide
from fastbcubed.engines.spark.frames import is_frame
from fastbcubed.engines.spark.spark_evaluation import SparkEvaluation
from fastbcubed.errors import OptionError
from fastbcubed.evaluate import evaluate as evaluate_any
from fastbcubed.results.slices.slicing import SliceKey

__all__ = ["SparkEvaluation", "evaluate"]


def evaluate(
    truth_df: Any,
    prediction_df: Any,
    *,
    item: PerSide = "item",
    cluster: PerSide = "cluster",
    weight: Any = None,
    slices: SliceKey | Iterable[SliceKey] = (),
    attributes: Any = None,
    metrics: str | Iterable[str | Callable[..., Any]] | Callable[..., Any] | None = None,
    beta: float = 1.0,
    weighting: Weighting = "pointwise",
    unmatched: Unmatched | Mapping[str, Unmatched] | None = None,
    nulls: Nulls = "raise",
    duplicates: Duplicates = "raise",
    noise: Any = None,
    out: Any = None,
    keep: Literal["scores", "cells", "items"] = "cells",
) -> SparkEvaluation:
    """Score a clustering against the truth where both are: on Spark.

    `fastbcubed.evaluate` does the same when it is given DataFrames of Spark. Nothing is set in the session, and only
    the API of DataFrames is used, so that Spark Connect will do.

    Parameters
    ----------
    truth_df, prediction_df : pyspark.sql.DataFrame
        One row for each item. They are read two or three times: persist what is expensive to compute.
    item, cluster, metrics, beta, weighting, unmatched, nulls, duplicates, noise
        As for `fastbcubed.evaluate`. Ids and labels are integers, strings or binary; floats have to be cast.
    weight : str or pyspark.sql.DataFrame, optional
        A column of the truth (else of the prediction), or a DataFrame of items and weights.
    slices : str, Bins, tuple of these, or a list of several of these
        Slices to score, as for `fastbcubed.evaluate`; no further ones can be made afterwards. Subsets by name are not
        served.
    attributes : pyspark.sql.DataFrame, optional
        Attributes to slice by, by item.
    out : path or URI, optional
        Where Spark writes the result to, as directories: ``overall`` (a text), and Parquet.
    keep : {"scores", "cells", "items"}
        How much of the result to write to `out`: with "cells" also ``cells``, ``true_clusters`` and
        ``pred_clusters``, with "items" also ``items``.

    Returns
    -------
    SparkEvaluation
        What `fastbcubed.evaluate` returns. What was written is listed by `items`, `cells` and `clusters`, and unread by
        `items_df`, `cells_df` and `clusters_df`.

    Raises
    ------
    OptionError
        If these are no DataFrames of Spark.
    FastBCubedError
        As `fastbcubed.evaluate` does; SparkJobError if Spark fails.

    Notes
    -----
    Spark joins the sides by item, adds up cells where their predicted cluster is, and sums them over the true ones: a
    shuffle for each side by item, one by predicted and one by true cluster. Where a sample shows that clusters are few
    or heavy, cells are added up first, in a shuffle of their own. The cells then stream past the kernels of the other
    engines. Scores that take all cells at once, such as those that pair clusters, are not computed.

    Examples
    --------
    >>> import fastbcubed.spark
    >>> fastbcubed.spark.evaluate([0, 0, 1], [0, 1, 1])
    Traceback (most recent call last):
        ...
    fastbcubed.errors.OptionError: the truth is no DataFrame of Spark but a list; fastbcubed.evaluate takes all else
    """
    for name, frame in (("truth", truth_df), ("prediction", prediction_df)):
        if not is_frame(frame):
            raise OptionError(
                f"the {name} is no DataFrame of Spark but a {type(frame).__name__}; fastbcubed.evaluate takes all else"
            )
    ev = evaluate_any(
        truth_df, prediction_df, item=item, cluster=cluster, weight=weight, slices=slices, attributes=attributes,
        metrics=metrics, beta=beta, weighting=weighting, unmatched=unmatched, nulls=nulls, duplicates=duplicates,
        noise=noise, out=out, keep=keep,
    )  # fmt: skip
    assert isinstance(ev, SparkEvaluation)
    return ev
