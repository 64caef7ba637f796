"""The work with Polars."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks.forms import Form, Limits, with_f1
from benchmarks.shapes import Rows

__all__ = ["FORMS"]


def polars_frame(rows: Rows, limits: Limits) -> Any:
    """Return a Polars data frame (POLARS_MAX_THREADS sets its threads)."""
    import polars as pl

    def column(labels: Any) -> Any:
        return pl.from_arrow(labels) if isinstance(labels, pa.Array) else pl.Series(labels)

    labels_true, labels_pred, weights = rows
    frame = {"t": column(labels_true), "p": column(labels_pred), "w": weights}
    return pl.DataFrame(frame).rechunk()


def polars_tables(path: Path, limits: Limits) -> Any:
    """Return the lazy join of two Parquet files by item; nothing is read yet."""
    import polars as pl

    truth, prediction = (pl.scan_parquet(path / f"{name}.parquet") for name in ("truth", "prediction"))
    joined = truth.join(prediction, on="item")
    return joined.select(t="cluster", p="cluster_right", w=pl.lit(1.0))


def polars_means(cells: Any) -> Any:
    """Return the expressions of the scores from cells with columns w, a and b."""
    import polars as pl

    w, a, b = pl.col("w"), pl.col("a"), pl.col("b")
    square = w * w
    return cells.select(
        precision=(square / b).sum() / w.sum(),
        recall=(square / a).sum() / w.sum(),
        jaccard_index=(square / (a + b - w)).sum() / w.sum(),
    )


def polars_windows(frame: Any) -> Any:
    """Group into cells, then sum over each cluster with window expressions."""
    import polars as pl

    cells = frame.lazy().group_by("t", "p").agg(pl.col("w").sum())
    w = pl.col("w")
    return polars_means(cells.with_columns(a=w.sum().over("t"), b=w.sum().over("p")))


def polars_joins(frame: Any) -> Any:
    """Group into cells, group these by each side, and join the sums back."""
    import polars as pl

    w = pl.col("w")
    cells = frame.lazy().group_by("t", "p").agg(w.sum())
    true_sums = cells.group_by("t").agg(a=w.sum())
    pred_sums = cells.group_by("p").agg(b=w.sum())
    return polars_means(cells.join(true_sums, on="t").join(pred_sums, on="p"))


def polars_lists(frame: Any) -> Any:
    """Group into cells; for each side, gather the cells of each cluster in lists and explode these."""
    import polars as pl

    w = pl.col("w")
    cells = frame.lazy().group_by("t", "p").agg(w.sum())
    by_true = cells.group_by("t").agg("p", "w", a=w.sum()).drop("t").explode("p", "w")
    by_pred = by_true.group_by("p").agg("w", "a", b=w.sum()).drop("p").explode("w", "a")
    return polars_means(by_pred)


def polars_rows(frame: Any) -> Any:
    """Sum over cells and clusters with window expressions on the items."""
    import polars as pl

    w = pl.col("w")
    columns = frame.lazy().select("w", n=w.sum().over("t", "p"), a=w.sum().over("t"), b=w.sum().over("p"))
    n, a, b = pl.col("n"), pl.col("a"), pl.col("b")
    return columns.select(
        precision=(w * n / b).sum() / w.sum(),
        recall=(w * n / a).sum() / w.sum(),
        jaccard_index=(w * n / (a + b - n)).sum() / w.sum(),
    )


def polars_form(
    name: str, query: Callable[[Any], Any], engine: str = "in-memory", *, files: bool = False
) -> Form:
    """Return the form of a query, given the Polars engine that runs it, and whether it joins files."""

    def score(frame: Any) -> dict[str, float]:
        return with_f1(*query(frame).collect(engine=engine).row(0))

    if files:
        note = "has no memory limit; its process is killed at the limit shown"
        return Form(
            "polars", name, ("polars",), polars_tables, score, note=note, reads="tables", bounded=False
        )
    return Form("polars", name, ("polars",), polars_frame, score)


FORMS: tuple[Form, ...] = (
    polars_form("windows-streaming", polars_windows, "streaming"),
    polars_form("joins-streaming", polars_joins, "streaming"),
    polars_form("lists-streaming", polars_lists, "streaming"),
    polars_form("rows-streaming", polars_rows, "streaming"),
    polars_form("windows", polars_windows),
    polars_form("joins", polars_joins),
    polars_form("lists", polars_lists),
    polars_form("rows", polars_rows),
    polars_form("windows-streaming", polars_windows, "streaming", files=True),
    polars_form("joins-streaming", polars_joins, "streaming", files=True),
    polars_form("lists-streaming", polars_lists, "streaming", files=True),
)
