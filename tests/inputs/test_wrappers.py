"""Lazy frames, results of DuckDB, frames of Splink: what they hold is read as if it had been given."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import fastbcubed as fb
from fastbcubed.errors import ColumnError, IdTypeError, OptionError, OverlapError

TRUTH = pa.table({"item": [1, 2, 3], "cluster": ["a", "a", "b"]})
PREDICTION = pa.table({"item": [1, 2, 3], "cluster": ["x", "y", "y"]})
SCORES = (pytest.approx(2 / 3), pytest.approx(2 / 3))  # 1, 1/2, 1/2 and 1/2, 1/2, 1
QUERY = "select * from (values (1, 'a'), (2, 'a'), (3, 'b')) as t(item, cluster)"


class SplinkFrame:
    """What is known of Splink's frames: those of DuckDB give a relation, others a frame of pandas."""

    physical_name = "__splink__df_clusters_1"

    def __init__(self, in_duckdb: bool) -> None:
        self._in_duckdb = in_duckdb

    def as_duckdbpyrelation(self, limit: int | None = None) -> Any:
        if not self._in_duckdb:
            raise NotImplementedError("as_dict not implemented for this backend")
        return duckdb.sql(
            "select 'k' || cluster as cluster_id, item as unique_id, 1 as age from (" + QUERY + ")"
        )

    def as_pandas_dataframe(self, limit: int | None = None) -> pd.DataFrame:
        return pd.DataFrame({"cluster_id": ["a", "a", "b"], "unique_id": [1, 2, 3], "age": [1, 2, 3]})


HOLDERS: dict[str, Any] = {
    "lazy frame": lambda: pl.from_arrow(TRUTH).lazy(),  # type: ignore[union-attr]
    "lazy query": lambda: pl.LazyFrame({"item": [1, 2, 3, 4], "cluster": list("aabb")}).filter(
        pl.col("item") < 4
    ),
    "relation": lambda: duckdb.sql(QUERY),
    "result": lambda: duckdb.connect().execute(QUERY),
    "cursor": lambda: duckdb.connect().cursor().execute(QUERY),
    "Splink in DuckDB": lambda: SplinkFrame(True),
    "Splink elsewhere": lambda: SplinkFrame(False),
}


@pytest.mark.cases(5)
@pytest.mark.parametrize("engine", ["memory", "disk"])
@pytest.mark.parametrize("name", HOLDERS)
def test_what_they_hold_is_read(name: str, engine: str) -> None:
    for sides in ((HOLDERS[name](), PREDICTION), (PREDICTION, HOLDERS[name]())):
        ev = fb.evaluate(*sides, engine=engine, memory_limit="1GiB" if engine == "disk" else None)
        assert (ev.precision, ev.recall) == SCORES
        assert [w["tool"] for w in ev.warnings if "tool" in w] == ["Splink"] * name.startswith("Splink")
    assert len(fb.Clustering.from_table(HOLDERS[name]())) == 3


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_results_that_are_gone_are_named(engine: str) -> None:
    connection = duckdb.connect()
    with pytest.raises(OptionError, match="the truth and the prediction are the same DuckDB connection"):
        fb.evaluate(connection.execute(QUERY), connection.execute(QUERY), engine=engine)
    with pytest.raises(ColumnError, match=r"has no result to read: .*pass con\.sql"):
        fb.evaluate(duckdb.connect(), TRUTH, engine=engine)


def test_lists_of_clusters_can_be_read_in_two_ways() -> None:
    for given in ([{1, 2}, {3}], [frozenset({1}), frozenset({2})], [None, {1}]):
        for sides in ((given, given), (given, [1, 2]), ([1, 2], given)):
            with pytest.raises(OverlapError, match=r"ambiguous.*Clustering\.from_clusters.*overlapping=True"):
                fb.evaluate(*sides)
    with pytest.raises(IdTypeError, match=r"Clustering\.from_clusters"):
        fb.evaluate([[1, 2], [3]], [[1], [2, 3]])
    with pytest.raises(OverlapError, match="ambiguous"):
        fb.contingency([{1}], [{1}])
    ev = fb.evaluate([{"a"}, {"a", "b"}], [{"x"}, {"x"}], overlapping=True)
    assert ev.recall == 0.875
    ev = fb.evaluate(fb.Clustering.from_clusters([{1, 2}, {3}]), fb.Clustering.from_clusters([{1}, {2, 3}]))
    assert (ev.precision, ev.recall) == SCORES


@pytest.mark.parametrize("lazy", [False, True])
def test_python_objects_in_polars(lazy: bool) -> None:
    """Arrow gets their addresses in memory: equal clusters were different ones, and equal items never met."""

    def frame(clusters: list[int]) -> pl.DataFrame | pl.LazyFrame:
        made = pl.DataFrame(
            {
                "item": [UUID(int=i) for i in range(3)],
                "cluster": [UUID(int=9 + c) for c in clusters],
                "w": [1, 1, 1],
            }
        )
        assert set(made.select("item", "cluster").dtypes) == {pl.Object}
        return made.lazy() if lazy else made

    ev = fb.evaluate(frame([0, 0, 1]), frame([5, 6, 6]), weight="w")
    assert (ev.precision, ev.recall) == SCORES
    assert ev.item(UUID(int=0))["weight"] == 1


def test_python_objects_in_series_of_polars() -> None:
    labels = [pl.Series([UUID(int=9 + c) for c in clusters]) for clusters in ([0, 0, 1], [5, 6, 6])]
    ev = fb.evaluate(*labels)
    assert (ev.precision, ev.recall) == SCORES
    with pytest.raises(IdTypeError, match="cannot be read as one column: Could not convert <object object"):
        fb.evaluate(pl.Series([object()], dtype=pl.Object), labels[0][:1])


def test_a_column_is_exported_once():
    """To export a column may take as long as all that is done with it; its type says that it is no table."""
    exported = []

    class Exporter:
        def __init__(self, values):
            self.values = pl.Series(values).cast(pl.Categorical)
            self.dtype = self.values.dtype

        def __len__(self):
            return len(self.values)

        def __iter__(self):
            return iter(self.values)

        def __arrow_c_stream__(self, requested_schema=None):
            exported.append(self)
            return self.values.__arrow_c_stream__(requested_schema)

    labels_true, labels_pred = Exporter(["a", "a", "b"]), Exporter(["x", "y", "y"])
    assert fb.evaluate(labels_true, labels_pred, progress=False).precision == pytest.approx(2 / 3)
    assert exported == [labels_true, labels_pred]
