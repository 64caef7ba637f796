"""What goes wrong on Spark: wrong input, lost executors, kernels that raise; and how much is shuffled."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
import threading
import time
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from on_spark import assert_same, both, frame
from test_spark import tables

import fastbcubed as fb
from fastbcubed import errors

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # Spark leaves its sockets to be collected
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

TRUTH = {"item": [1, 2, 3], "cluster": ["a", "a", "b"], "w": [1.0, 2.0, 3.0]}
PREDICTION = {"item": [1, 2, 3], "cluster": ["x", "y", "y"]}


def changed(table: dict[str, list[Any]], **columns: list[Any]) -> pa.Table:
    return pa.table({**table, **columns})


WRONG: dict[str, tuple[type[Exception], str, pa.Table, pa.Table, dict[str, Any]]] = {
    "null label": (errors.NullError, r"1 of 3 rows of the truth have a null in 'cluster' \(items 2\)",
                   changed(TRUTH, cluster=["a", None, "b"]), changed(PREDICTION), {}),
    "null item": (errors.NullError, "1 of 3 item ids are null",
                  changed(TRUTH), changed(PREDICTION, item=[1, None, 3]), {}),
    "repeated row": (errors.DuplicateItemError, r"1 of 3 rows of the truth repeat an earlier row \(1\)",
                     changed(TRUTH, item=[1, 1, 3], cluster=["a", "a", "b"]), changed(PREDICTION), {}),
    "two clusters": (errors.OverlapError, r"1 of 2 items of the truth are in more than one cluster \(2\)",
                     changed(TRUTH, item=[1, 2, 2]), changed(PREDICTION), {"duplicates": "drop"}),
    "ids of two sources": (errors.OverlapError, r"column 'source' may have equal ids, pass item=\[\"source",
                           changed(TRUTH, item=[1, 2, 2], source=["a", "a", "b"]), changed(PREDICTION), {}),
    "two weights": (errors.DuplicateItemError, "with a different weight",
                    changed(TRUTH, item=[1, 1, 3], cluster=["a", "a", "b"]), changed(PREDICTION),
                    {"weight": "w", "duplicates": "drop"}),
    "no weight": (errors.WeightError, r"1 of 3 weights of the truth are out of range \(0.0 for items 2\)",
                  changed(TRUTH, w=[1.0, 0.0, 2.0]), changed(PREDICTION), {"weight": "w"}),
    "NaN": (errors.WeightError, r"2 of 3 values of column 'w' of the truth are null or NaN \(first items: 1, 3\)",
            changed(TRUTH, w=[float("nan"), 1.0, None]), changed(PREDICTION), {"weight": "w"}),
    "negative and infinite": (errors.WeightError, r"2 of 3 weights of the truth are out of range \(-1.0, inf for items",
                              changed(TRUTH, w=[-1.0, 1.0, float("inf")]), changed(PREDICTION), {"weight": "w"}),
    "bad table": (errors.WeightError, r"1 of 3 weights of the weight table are out of range \(-1.0 for items 2\)",
                  changed(TRUTH), changed(PREDICTION),
                  {"weight": pa.table({"item": [1, 2, 3], "weight": [1.0, -1.0, 2.0]})}),
    "repeated in the table": (errors.DuplicateItemError, "the weight table",
                              changed(TRUTH), changed(PREDICTION),
                              {"weight": pa.table({"item": [1, 1, 2, 3], "weight": [1.0, 2.0, 2.0, 2.0]})}),
    "all repeated": (errors.DuplicateItemError, r"2 of 4 rows of the prediction repeat an earlier row \(1, 2\)",
                     changed(TRUTH), pa.table({"item": [1, 1, 2, 2], "cluster": list("xxyy")}), {}),
    "unmatched": (errors.AlignmentError, r"1 of 3 items of the truth are missing from the prediction \(first: 1\)",
                  changed(TRUTH), changed(PREDICTION, item=[4, 2, 3]), {"unmatched": "raise"}),
    "unweighted": (errors.WeightError, "1 of 4 scored or counted items have no weight",
                   changed(TRUTH), changed(PREDICTION, item=[4, 2, 3]), {"weight": "w", "unmatched": "singleton"}),
    "nothing common": (errors.EmptyInputError, "no item of the truth is in the prediction: 3 items are only in",
                       changed(TRUTH), changed(PREDICTION, item=[4, 5, 6]), {}),
    "empty": (errors.EmptyInputError, "there are no rows in the prediction",
              changed(TRUTH), changed(PREDICTION).slice(0, 0), {}),
    "other type": (errors.IdTypeError, "Ids of different types never match",
                   changed(TRUTH), changed(PREDICTION, item=["1", "2", "3"]), {}),
    "float": (errors.IdTypeError, "should be integers, strings or binary",
              changed(TRUTH), changed(PREDICTION, cluster=[1.5, 2.5, 3.5]), {}),
    "no column": (errors.ColumnError, "There is no weight column 'v'",
                  changed(TRUTH), changed(PREDICTION), {"weight": "v"}),
    "not served": (errors.OptionError, "cannot compute purity: it needs all cells at once",
                   changed(TRUTH), changed(PREDICTION), {"metrics": "purity"}),
}  # fmt: skip


@pytest.mark.parametrize("fault", WRONG)
def test_wrong_input_is_named(spark: Any, fault: str) -> None:
    kind, message, truth, prediction, options = WRONG[fault]
    sides = frame(spark, truth, 1), frame(spark, prediction, 1)
    there = {
        name: frame(spark, each, 1) if isinstance(each, pa.Table) else each for name, each in options.items()
    }
    with pytest.raises(kind, match=message):
        fb.evaluate(*sides, **there)
    here = {name: value for name, value in options.items() if name != "metrics"}
    if fault not in ("not served", "float"):  # the memory engine raises the same
        with pytest.raises(kind):
            fb.evaluate(truth, prediction, engine="memory", **here)


def test_a_formula_that_raises_is_named_without_the_stack_of_java(spark: Any) -> None:
    def formula(tp: Any, fp: Any, fn: Any, tn: Any) -> Any:
        raise ZeroDivisionError("on purpose")

    with pytest.raises(
        errors.MetricError, match="the formula formula failed: ZeroDivisionError: on purpose"
    ) as found:
        fb.evaluate(*(frame(spark, side) for side in tables(n=12, seed=31, extra=0)), metrics=[formula])
    assert "java" not in str(found.value)


def test_a_kernel_that_fails_is_an_error_of_ours(spark: Any) -> None:
    from fastbcubed.spark.aggregate import named_errors

    def fail(batches: Any) -> Any:
        raise RuntimeError("out of order")
        yield

    with pytest.raises(
        errors.SparkJobError, match="a kernel failed on an executor: RuntimeError: out of order"
    ):
        with named_errors():
            spark.range(3).mapInArrow(fail, "id long").collect()
    with pytest.raises(errors.SparkJobError, match="Spark failed"), named_errors():
        spark.range(3).select("nonsense").collect()


def test_shuffles_are_those_that_are_promised(spark: Any) -> None:
    """One for each side of the join, one by predicted and one by true cluster."""
    from fastbcubed.align.policies import Policies
    from fastbcubed.inputs.pair import Given
    from fastbcubed.spark.aggregate import Cells, Join
    from fastbcubed.spark.frames import open_sides

    policies = Policies()
    sides = open_sides(Given(*(frame(spark, side, 1) for side in tables(n=12, seed=32, extra=0))), policies)
    for carried in (({}, {}), ({"country": "s0"}, {})):
        plan = Cells(Join(sides, policies, False, carried))
        found = plan.with_margins(plan.grouped(plan.join.rows()))
        text = found._jdf.queryExecution().executedPlan().toString()
        shuffles = re.findall(r"Exchange hashpartitioning\((.*?)\)", text.partition("Initial Plan")[0])
        assert len(shuffles) == 4, text


def test_rows_that_change_between_readings_are_noticed(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from fastbcubed.spark import driver
    from fastbcubed.spark.frames import Looked, look

    sides = [frame(spark, table, 1) for table in (changed(TRUTH), changed(PREDICTION))]
    for change, message in (
        ({"n_rows": 4}, "2 of the 8 rows"),
        ({"weight": 7.0}, "add up to 7.0, but those"),
    ):

        def before(*args: Any, **options: Any) -> list[Looked]:
            return [replace(each, **change) for each in look(*args, **options)]  # noqa: B023

        monkeypatch.setattr(driver, "look", before)
        with pytest.raises(errors.SparkJobError, match=message):
            fb.evaluate(*sides, weight="w")


def test_a_lost_executor_changes_nothing(spark: Any) -> None:
    """One is killed while a stage runs; the status of the application tells that it was lost."""
    truth, prediction = tables(n=400, seed=33)
    tracker = spark.sparkContext._jsc.sc().statusTracker()
    before = {info.host() + str(info.port()) for info in tracker.getExecutorInfos()}
    killed = threading.Event()

    def slowly(tp: Any, fp: Any, fn: Any, tn: Any) -> Any:
        time.sleep(3)
        return tp / (tp + fp)

    def kill() -> None:
        time.sleep(1.5)
        found = subprocess.run(
            ["pgrep", "-f", f"CoarseGrainedExecutorBackend.*--app-id {spark.sparkContext.applicationId}"],
            capture_output=True, text=True,
        ).stdout.split()  # fmt: skip
        if found:
            subprocess.run(["kill", "-9", found[0]])
            killed.set()

    thread = threading.Thread(target=kill)
    thread.start()
    on_spark, in_memory = both(spark, truth, prediction, metrics=[slowly])
    thread.join()
    assert_same(on_spark, in_memory)
    assert killed.is_set()
    until = time.monotonic() + 30
    while time.monotonic() < until:
        now = {info.host() + str(info.port()) for info in tracker.getExecutorInfos()}
        if now - before or before - now:
            break
        time.sleep(0.5)
    assert before - now, "no executor was lost"


def test_spark_connect() -> None:
    """A server in a process of its own, and a client that knows nothing of Java."""
    pytest.importorskip("grpc", reason="Spark Connect needs grpcio")
    code = """
        import fastbcubed as fb, pyarrow as pa
        from pyspark.sql import SparkSession
        builder = SparkSession.builder.remote("local[1]")
        spark = builder.config("spark.sql.shuffle.partitions", "1").config("spark.driver.memory", "1g").getOrCreate()
        truth = spark.createDataFrame([(1, "a"), (2, "a"), (3, "b")], "item int, cluster string")
        prediction = spark.createDataFrame([(1, "x"), (2, "y"), (3, "y")], "item int, cluster string")
        ev = fb.evaluate(truth, prediction)
        assert "connect" in type(truth).__module__, type(truth)
        print("f1 is", round(ev.f1, 6))
        spark.stop()
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=200,
        env={**os.environ, "no_proxy": "localhost,127.0.0.1"},
    )
    assert "f1 is 0.666667" in done.stdout, done.stderr[-3000:]
