"""``--engine spark``: tables are read by Spark, where it runs; below a size that is worth it, it is not started."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from fastbcubed.errors import MissingPackageError, OptionError
from fastbcubed.sources.files import refuse_logs
from fastbcubed.sources.locations import is_uri
from fastbcubed.sources.tables import is_path

#: Bytes of local files below which one machine is faster; see the benchmarks.
WORTH_IT = 20 << 30
#: What is in the environment of a process that was started by Spark, or that is to use a server of it.
STARTED_BY = (
    "PYSPARK_GATEWAY_PORT",
    "SPARK_REMOTE",
    "SPARK_CONNECT_MODE_ENABLED",
    "DATABRICKS_RUNTIME_VERSION",
)
#: Arguments that may name tables.
TABLES = ("truth", "prediction", "attributes", "weight")


def with_frames(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of `evaluate` with DataFrames in the place of paths, if the engine is to be Spark."""
    if arguments.get("engine") != "spark":
        return dict(arguments)
    named = {name: arguments[name] for name in TABLES if is_path(arguments.get(name))}
    if isinstance(named.get("weight"), str):  # a column
        del named["weight"]
    session = _session(named.values())
    return {**arguments, **{name: _read(session, os.fspath(path)) for name, path in named.items()}}


def _session(paths: Any) -> Any:
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise MissingPackageError(
            "--engine spark needs Spark's Python package: run it under spark-submit, or install fastbcubed[spark-local]"
        ) from error
    running = SparkSession.getActiveSession()
    if running is not None:
        return running
    if not any(name in os.environ for name in STARTED_BY):
        _require_size([os.fspath(path) for path in paths])
    return SparkSession.builder.appName("fastbcubed").getOrCreate()


def _require_size(paths: list[str]) -> None:
    """Raise if files are so small that a session of Spark of their own is not worth it."""
    if any(is_uri(path) for path in paths):
        return
    size = sum(map(_bytes_of, paths))
    if size < WORTH_IT:
        raise OptionError(
            f"the files have {size / 2**30:.1f} GiB, which one machine scores faster than Spark starts: leave --engine "
            "out, or pass --engine disk. To use a cluster that is there, run this under spark-submit"
        )


def _bytes_of(path: str) -> int:
    if os.path.isdir(path):
        return sum(entry.stat().st_size for entry in os.scandir(path) if entry.is_file())
    return os.path.getsize(path) if os.path.exists(path) else 0


def _read(session: Any, path: str) -> Any:
    """Return a table as a DataFrame: Parquet unless it is called .csv or .json."""
    refuse_logs(path, os.listdir(path) if os.path.isdir(path) else ())
    plain = path.lower().removesuffix(".gz")
    if plain.endswith((".csv", ".tsv")):
        mark = "\t" if plain.endswith(".tsv") else ","
        return session.read.csv(path, header=True, inferSchema=True, sep=mark)
    return session.read.json(path) if plain.endswith((".json", ".jsonl")) else session.read.parquet(path)
