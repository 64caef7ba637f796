"""What is written on Spark: the rows of the other engines' tables, and listings that Spark sorts and cuts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from on_spark import assert_tables, both
from test_spark import tables

import fastbcubed as fb
from fastbcubed.errors import ColumnError, NotKeptError, OptionError

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # Spark leaves its sockets to be collected
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def kept(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any, Path]:
    """Return an evaluation whose items were written, the same in memory, and the directory."""
    out = tmp_path_factory.mktemp("kept") / "result"
    truth, prediction = tables(seed=21, ids="string")
    seen = pa.array([None if k % 9 == 0 else k * 86_399 % 10_007 for k in range(len(truth))], pa.int64())
    truth = truth.append_column("seen", seen.cast(pa.timestamp("us", "UTC")))
    truth = truth.append_column("day", seen.cast(pa.int32()).cast(pa.date32()))
    options = {"slices": ["country", "year", "seen", "day"], "weight": "w", "keep": "items", "out": str(out)}
    return *both(spark, truth, prediction, **options), out


def test_written_tables_are_those_of_the_memory_engine(kept: tuple[Any, Any, Path]) -> None:
    on_spark, in_memory, _ = kept
    assert_tables(on_spark.cells(), in_memory.cells())
    for side in ("true", "pred"):
        assert_tables(on_spark.clusters(side), in_memory.clusters(side))
    found = on_spark.items(["country", "year"], order_by="precision", limit=None)
    assert_tables(found, in_memory.items(["country", "year"], order_by="precision"))
    assert_tables(on_spark.outcomes(), in_memory.outcomes())
    assert on_spark.summary == in_memory.summary


def test_listings_are_cut_and_chosen(kept: tuple[Any, Any, Path]) -> None:
    on_spark, in_memory, _ = kept
    assert_tables(
        on_spark.clusters("pred", order_by="f1", limit=4), in_memory.clusters("pred", order_by="f1", limit=4)
    )
    assert_tables(
        on_spark.clusters("true", outcome="split", limit=3),
        in_memory.clusters("true", outcome="split", limit=3),
    )
    label = in_memory.clusters("pred", limit=1)["cluster"][0].as_py()
    found = on_spark.items(pred_cluster=label, order_by="loss")
    assert_tables(found, in_memory.items(pred_cluster=label, order_by="loss"))
    with pytest.raises(ColumnError, match="no attribute 'nonsense'"):
        on_spark.items("nonsense")


def test_listings_are_ordered_by_numbers_and_times(kept: tuple[Any, Any, Path]) -> None:
    on_spark, in_memory, _ = kept
    for ev in (on_spark, in_memory):
        with pytest.raises(OptionError, match="by 'outcome', which is neither a number nor a time"):
            ev.clusters("pred", order_by="outcome")
    assert_tables(on_spark.clusters("pred", order_by="exact"), in_memory.clusters("pred", order_by="exact"))
    for name in ("seen", "day"):  # the latest come first
        assert_tables(on_spark.items([name], order_by=name), in_memory.items([name], order_by=name))


def test_what_was_written_is_loaded_as_far_as_it_fits(kept: tuple[Any, Any, Path]) -> None:
    on_spark, _, out = kept
    loaded = fb.load(out)
    assert dict(loaded.overall) == dict(on_spark.overall)
    assert loaded.slices("country")["f1"].to_pylist() == on_spark.slices("country")["f1"].to_pylist()
    assert {path.name for path in out.iterdir()} >= {
        "overall",
        "cells",
        "items",
        "true_clusters",
        "pred_clusters",
    }


def test_what_was_not_kept_says_so(spark: Any) -> None:
    ev, _ = both(spark, *tables(n=12, seed=22, extra=0))
    for ask in (ev.items, ev.cells, lambda: ev.clusters("true"), ev.cells_df, lambda: ev.slices("country")):
        with pytest.raises(NotKeptError, match=r"on Spark"):
            ask()
    with pytest.raises(NotKeptError, match=r"outcomes need the written clusters.* evaluate with out=URI"):
        ev.outcomes()
    with pytest.raises(NotKeptError, match="name this score in metrics="):
        ev.metric("mcc")
    with pytest.raises(OptionError, match="repairs"):
        ev.save("nowhere", repairs=3)
