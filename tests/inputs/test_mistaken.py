"""What can be read, but looks as if something else was meant: refused, with what to pass instead."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hostile import LABELS, OTHER, PREDICTION, SCORES, TRUTH, quietly, refused, scores

import fastbcubed as fb
from fastbcubed import Clustering, evaluate
from fastbcubed.errors import (
    AlignmentError,
    ColumnError,
    FileFormatError,
    IdTypeError,
    OptionError,
    WeightError,
)


def test_lists_of_items_with_their_clusters() -> None:
    """They were taken as labels, all of them different: any prediction was perfect."""
    truth, prediction = [("a", 1), ("b", 1)], [("a", 1), ("b", 2)]
    for sides in ((truth, prediction), (truth, prediction[::-1]), (truth, [*prediction, ("c", 2)])):
        with refused(
            OptionError, "('a', 1)", "items and their clusters", "Pass dict(truth) and dict(prediction)"
        ):
            evaluate(*sides)
    assert scores(dict(truth), dict(prediction)) == (1, 1 / 2)
    labels = [("x", 1), ("x", 1), ("y", 1)]  # labels of two parts, as in other tests
    assert scores(labels, [("x", 1), ("x", 2), ("y", 1)]) == (1, 2 / 3)
    assert scores([("x", 1), ("y", 1)], [("z", 1), ("z", 1)]) == (1 / 2, 1)


def test_records() -> None:
    records = np.array([("a", 1), ("b", 1)], dtype=[("item", "U1"), ("cluster", int)])
    with refused(
        IdTypeError, "the labels of the truth", "records (item, cluster)", "pandas.DataFrame(records)"
    ):
        evaluate(records, records)
    with refused(IdTypeError, "the labels of the truth", "records, one per item, to pandas.DataFrame"):
        evaluate([{"item": 1, "cluster": 1}], [1])


def test_columns_called_by_numbers() -> None:
    frame = pd.DataFrame([["a", 1], ["b", 1]])
    with refused(OptionError, "item must be the name of a column", 'pass "0"'):
        evaluate(frame, frame, item=0, cluster=1)  # type: ignore[arg-type]
    assert scores(frame, frame, item="0", cluster="1") == (1, 1)


def test_lists_of_files(tmp_path: Path) -> None:
    """They were labels, all of them different: a prediction in as many files as the truth was perfect."""
    for given in (["d/a.parquet", "d/b.parquet"], ("d/a.CSV.gz",), [Path("d/a"), Path("d/b")]):
        for sides in ((given, given), (TRUTH, given), (given, LABELS)):
            with refused(FileFormatError, "There is no file d/a"):
                evaluate(*sides)
    parts = []
    for k, rows in enumerate((TRUTH.slice(0, 2), TRUTH.slice(2))):
        parts.append(tmp_path / f"year={k}" / "rows.parquet")
        parts[k].parent.mkdir()
        pq.write_table(rows, parts[k])
    texts = list(map(str, parts))
    for given in (parts, texts, tuple(texts), [parts[0].parent, texts[1]]):
        for engine in ("memory", "disk"):
            assert scores(given, PREDICTION, engine=engine) == SCORES
        assert len(Clustering.from_parquet(given)) == len(Clustering.from_table(given)) == 3
        assert fb.compare(given, {"a": given, "b": PREDICTION}).runs["a"].f1 == 1
        assert fb.diff(given, PREDICTION).overall["split_rate"] > 0
    ev = evaluate(TRUTH, PREDICTION, attributes=texts)
    assert ev.slices("year")["year"].to_pylist() == [0, 1]
    assert "same-input" in [each["code"] for each in quietly(texts, texts).warnings]
    with refused(OptionError, "more than once", "year=0", "Clustering.from_labels"):
        evaluate([*texts, texts[0]], PREDICTION)
    with refused(OptionError, "out= is", "would be read the next time"):
        evaluate([parts[0].parent, parts[1]], PREDICTION, out=parts[0].parent / "out")
    assert scores(["a.com", "a.com", "b"], ["a.com", "b", "b"]) == SCORES


def test_names_of_files_are_labels_where_there_are_no_such_files() -> None:
    """The file that each record came from is a cluster like any other."""
    labels = ["shop.csv", "shop.csv", "crm.parquet"]
    assert fb.evaluate(labels, [0, 0, 1]).f1 == 1.0


def test_open_files(tmp_path: Path) -> None:
    """Their lines were labels."""
    (tmp_path / "t.parquet").write_bytes(b"1\n1\n2\n")
    for text in (
        open(tmp_path / "t.parquet", "rb"),
        open(tmp_path / "t.parquet"),
        io.BytesIO(b"1\n"),
        io.StringIO("1\n"),
    ):
        with text, refused(ColumnError, "the labels of the truth", "an open file", "Pass its path"):
            evaluate(text, text)


def test_series_that_pandas_would_match_by_index() -> None:
    """Their rows were matched by position, though their indexes say otherwise."""
    truth, ids = pd.Series(LABELS, index=[5, 6, 7]), pd.Series(["a", "b", "c"], index=[5, 6, 7])
    prediction, weight = pd.Series(OTHER, index=[7, 6, 5]), pd.Series([1, 2, 3], index=[7, 6, 5])
    for make in (
        lambda: Clustering.from_labels(prediction, items=ids),
        lambda: Clustering.from_labels(truth, items=ids, weight=weight),
        lambda: Clustering.from_table({"item": ids, "cluster": prediction}),
        lambda: evaluate(truth, OTHER, attributes=pd.DataFrame({"g": weight})),
        lambda: evaluate(LABELS, truth, attributes={"g": weight}),
    ):
        with refused(AlignmentError, "different indexes", "to_numpy", "a DataFrame"):
            make()
    with refused(WeightError, "index differs"):
        evaluate(LABELS, truth, weight=weight)
    with refused(AlignmentError, "the table and the weights", "different indexes"):
        evaluate("x", "y", table=pd.DataFrame({"x": truth, "y": OTHER}), weight=weight)
    by_item = dict(zip("abc", OTHER, strict=True))
    for same in (
        Clustering.from_labels(truth, items=ids),
        Clustering.from_table({"item": ids, "cluster": LABELS}),
    ):
        assert scores(same, by_item) == SCORES
    expected = scores(LABELS, OTHER, weight=[1, 2, 3])
    assert scores(LABELS, pd.Series(OTHER), weight=pd.Series([1, 2, 3])) == expected


@pytest.mark.parametrize("column", [list, tuple, np.array, pd.Series, pl.Series, pa.array, pd.Categorical])
def test_dicts_of_columns(column: Any) -> None:
    """Tuples were two items, "item" and "cluster", of two clusters, and any prediction was perfect."""
    truth, prediction = (
        {"item": column(["a", "b", "c"]), "cluster": column(each)} for each in (LABELS, OTHER)
    )
    for sides in ((truth, prediction), (truth, PREDICTION), (TRUTH, prediction)):
        with refused(OptionError, "Clustering.from_table for a dict of columns"):
            evaluate(*sides)
    assert scores(Clustering.from_table(truth), Clustering.from_table(prediction)) == SCORES
    parts = {"item": ("x", 1), "b": ("x", 1), "c": ("y", 1)}
    assert scores(parts, {"item": ("x", 1), "b": ("x", 2), "c": ("x", 2)}) == SCORES


def test_lists_of_clusters_with_a_null() -> None:
    lists = pa.array([["a", "b"], None])
    with refused(OptionError, "every cluster should be a list of items", "None"):
        Clustering.from_clusters(lists)
    assert len(Clustering.from_clusters(lists.drop_null())) == 2


@pytest.mark.parametrize("tables", [list, iter])
@pytest.mark.parametrize("table", [pd.DataFrame, pl.DataFrame, pa.table, pa.RecordBatch.from_pydict])
def test_lists_of_tables(tables: Any, table: Any) -> None:
    """What reads a file in parts gives one after the other."""
    part = table({"item": ["a"], "cluster": [1]})
    for sides in ((tables([part]), PREDICTION), (TRUTH, tables([part]))):
        with refused(ColumnError, "Combine them into one table with pandas.concat"):
            evaluate(*sides)


@pytest.mark.parametrize("keep", ["scores", "cells", "items"])
def test_a_saved_result_is_no_clustering(tmp_path: Path, keep: Any) -> None:
    """Its tables of cells or clusters were looked through for columns of items."""
    result = tmp_path / "res"
    evaluate(TRUTH, PREDICTION, out=result, keep=keep)
    said = ("saved result", f"--baseline {result} --fail-worse", f"fastbcubed show {result}")
    for ask in (
        lambda: evaluate(TRUTH, result),
        lambda: fb.compare(TRUTH, {"old": result}),
        lambda: fb.diff(result, PREDICTION),
        lambda: fb.estimate(TRUTH, result),
        lambda: fb.sweep(TRUTH, result),
    ):
        with refused(FileFormatError, *said):
            ask()


def test_a_result_is_no_clustering() -> None:
    ev = evaluate(TRUTH, PREDICTION)
    for ask in (lambda: fb.compare(TRUTH, {"old": ev}), lambda: fb.diff(ev, PREDICTION)):
        with refused(ColumnError, "should be a clustering, not a result (Evaluation)"):
            ask()
