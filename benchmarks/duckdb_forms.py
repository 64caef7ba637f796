"""The work with DuckDB."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks.datasets import Layout
from benchmarks.forms import Form, Limits, with_f1
from benchmarks.shapes import Rows

__all__ = ["FORMS"]

MEANS = """
    SELECT sum(w * w / b) / sum(w), sum(w * w / a) / sum(w), sum(w * w / (a + b - w)) / sum(w)
"""
READ_TABLE = """
    CREATE VIEW items AS
    SELECT truth AS t, prediction AS p, weight AS w FROM read_parquet('{path}/items.parquet')
"""
READ_TABLES = """
    CREATE VIEW items AS
    SELECT a.cluster AS t, b.cluster AS p
    FROM read_parquet('{path}/truth.parquet') AS a JOIN read_parquet('{path}/prediction.parquet') AS b USING (item)
"""


def queries(weight: str) -> dict[str, str]:
    """Return the queries that do the work, by name; `weight` is the expression of the total weight of a cell."""
    cells = f"WITH cells AS MATERIALIZED (SELECT t, p, {weight} AS w FROM items GROUP BY t, p)"
    joins = f"""
        {cells}, true_sums AS (SELECT t, sum(w) AS a FROM cells GROUP BY t),
        pred_sums AS (SELECT p, sum(w) AS b FROM cells GROUP BY p)
        {MEANS} FROM cells JOIN true_sums USING (t) JOIN pred_sums USING (p)
    """
    windows = f"""
        {cells} {MEANS} FROM (
            SELECT w, sum(w) OVER (PARTITION BY t) AS a, sum(w) OVER (PARTITION BY p) AS b FROM cells
        )
    """
    lists = f"""
        {cells}, by_true AS (
            SELECT sum(w) AS a, unnest(list({{'p': p, 'w': w}}), max_depth := 2) FROM cells GROUP BY t
        ), by_pred AS (
            SELECT sum(w) AS b, unnest(list({{'a': a, 'w': w}}), max_depth := 2) FROM by_true GROUP BY p
        )
        {MEANS} FROM by_pred
    """
    return {"joins": joins, "windows": windows, "lists": lists}


def duckdb_connection(limits: Limits, memory: int) -> Any:
    """Open an in-memory database with favourable settings and a memory limit in bytes."""
    import duckdb

    connection = duckdb.connect(":memory:")
    connection.execute(f"SET threads = {limits.threads}")
    connection.execute(f"SET memory_limit = '{memory // 2**20}MiB'")
    connection.execute(f"SET temp_directory = '{limits.directory}'")
    connection.execute("SET preserve_insertion_order = false")
    connection.execute("SET enable_progress_bar = false")
    return connection


def own_share(limits: Limits) -> int:
    """Return nine tenths of the process's memory limit; the rest is for memory that DuckDB does not count."""
    return limits.memory // 10 * 9


def arrow_table(rows: Rows) -> pa.Table:
    """Return the rows as an Arrow table, without a copy."""
    return pa.table({"t": rows.labels_true, "p": rows.labels_pred, "w": rows.weights})


def duckdb_arrow(rows: Rows, limits: Limits) -> Any:
    """Return a connection that queries the rows as an Arrow table."""
    connection = duckdb_connection(limits, own_share(limits))
    connection.register("items", arrow_table(rows))
    return connection


def duckdb_table(rows: Rows, limits: Limits) -> Any:
    """Return a connection with the rows in a native in-memory table."""
    connection = duckdb_connection(limits, own_share(limits))
    connection.register("arrow_items", arrow_table(rows))
    connection.execute("CREATE TABLE items AS SELECT * FROM arrow_items")
    connection.unregister("arrow_items")
    return connection


def duckdb_files(view: str) -> Callable[[Path, Limits], Any]:
    """Return a function that makes a connection whose queries read Parquet files each time."""

    def prepare(path: Path, limits: Limits) -> Any:
        connection = duckdb_connection(limits, limits.memory)
        connection.execute(view.format(path=path))
        return connection

    return prepare


def duckdb_form(
    name: str, query: str, prepare: Callable[[Any, Limits], Any], reads: Layout = "arrays"
) -> Form:
    """Return the form of a query on rows that `prepare` provides."""

    def score(connection: Any) -> dict[str, float]:
        return with_f1(*connection.execute(query).fetchone())

    return Form("duckdb", name, ("duckdb",), prepare, score, reads=reads)


WEIGHTS, COUNTS = queries("sum(w)"), queries("count(*)::DOUBLE")
FORMS: tuple[Form, ...] = (
    duckdb_form("joins-table", WEIGHTS["joins"], duckdb_table),
    duckdb_form("joins-arrow", WEIGHTS["joins"], duckdb_arrow),
    duckdb_form("windows-table", WEIGHTS["windows"], duckdb_table),
    duckdb_form("lists-table", WEIGHTS["lists"], duckdb_table),
    *(duckdb_form(name, query, duckdb_files(READ_TABLE), "table") for name, query in WEIGHTS.items()),
    *(duckdb_form(name, query, duckdb_files(READ_TABLES), "tables") for name, query in COUNTS.items()),
)
