"""The work with DuckDB."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from benchmarks.forms import Form, Limits, with_f1
from benchmarks.shapes import Rows

__all__ = ["FORMS"]

MEANS = """
    SELECT sum(w * w / b) / sum(w), sum(w * w / a) / sum(w), sum(w * w / (a + b - w)) / sum(w)
"""
CELLS = "WITH cells AS MATERIALIZED (SELECT t, p, sum(w) AS w FROM items GROUP BY t, p)"
DUCKDB_JOINS = f"""
    {CELLS}, true_sums AS (SELECT t, sum(w) AS a FROM cells GROUP BY t),
    pred_sums AS (SELECT p, sum(w) AS b FROM cells GROUP BY p)
    {MEANS} FROM cells JOIN true_sums USING (t) JOIN pred_sums USING (p)
"""
DUCKDB_WINDOWS = f"""
    {CELLS} {MEANS} FROM (
        SELECT w, sum(w) OVER (PARTITION BY t) AS a, sum(w) OVER (PARTITION BY p) AS b FROM cells
    )
"""
DUCKDB_LISTS = f"""
    {CELLS}, by_true AS (
        SELECT sum(w) AS a, unnest(list({{'p': p, 'w': w}}), max_depth := 2) FROM cells GROUP BY t
    ), by_pred AS (
        SELECT sum(w) AS b, unnest(list({{'a': a, 'w': w}}), max_depth := 2) FROM by_true GROUP BY p
    )
    {MEANS} FROM by_pred
"""


def duckdb_connection(limits: Limits) -> Any:
    """Open a database in memory, with settings that help it."""
    import duckdb

    connection = duckdb.connect(":memory:")
    connection.execute(f"SET threads = {limits.threads}")
    mebibytes = limits.memory // 10 * 9 // 2**20  # the rest is for what it does not count
    connection.execute(f"SET memory_limit = '{mebibytes}MiB'")
    connection.execute(f"SET temp_directory = '{limits.directory}'")
    connection.execute("SET preserve_insertion_order = false")
    connection.execute("SET enable_progress_bar = false")
    return connection


def arrow_table(rows: Rows) -> pa.Table:
    """Put the rows into an Arrow table, without a copy."""
    return pa.table({"t": rows.labels_true, "p": rows.labels_pred, "w": rows.weights})


def duckdb_arrow(rows: Rows, limits: Limits) -> Any:
    """Let DuckDB read Arrow memory."""
    connection = duckdb_connection(limits)
    connection.register("items", arrow_table(rows))
    return connection


def duckdb_table(rows: Rows, limits: Limits) -> Any:
    """Load the rows into a table of DuckDB's own, in memory."""
    connection = duckdb_connection(limits)
    connection.register("arrow_items", arrow_table(rows))
    connection.execute("CREATE TABLE items AS SELECT * FROM arrow_items")
    connection.unregister("arrow_items")
    return connection


def duckdb_form(name: str, query: str, prepare: Callable[[Rows, Limits], Any]) -> Form:
    """Make an entry of the table: a query, and where its rows lie."""

    def score(connection: Any) -> dict[str, float]:
        return with_f1(*connection.execute(query).fetchone())

    return Form("duckdb", name, ("duckdb",), prepare, score)


FORMS: tuple[Form, ...] = (
    duckdb_form("joins-table", DUCKDB_JOINS, duckdb_table),
    duckdb_form("joins-arrow", DUCKDB_JOINS, duckdb_arrow),
    duckdb_form("windows-table", DUCKDB_WINDOWS, duckdb_table),
    duckdb_form("lists-table", DUCKDB_LISTS, duckdb_table),
)
