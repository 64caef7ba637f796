"""Arguments that ended in raw errors of Python, pandas, Arrow or Polars."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hostile import LABELS, OTHER, refused

import fastbcubed as fb
from fastbcubed.errors import AlignmentError, ColumnError, EmptyInputError, FileFormatError, OptionError

HUGE, LONG = 10**400, 10**5000
SIDES = {"a": 1, "b": 1, "c": 2}, {"a": 1, "b": 2, "c": 2}
LINKS = {"left": ["a"], "right": ["b"], "score": [0.5]}
EMPTY = pd.Categorical([])
LAZY = pl.LazyFrame({"item": ["a"], "cluster": [1]}).select("nowhere")
ev = fb.evaluate(*SIDES)
kept = fb.evaluate(*SIDES, attributes={"item": ["a", "b", "c"], "town": ["x", "y", "y"]})
sweep = fb.sweep(SIDES[0], LINKS)

CALLS: dict[str, tuple[type[fb.FastBCubedError], str, Callable[[], Any]]] = {
    "empty categorical": (EmptyInputError, "no rows", lambda: fb.evaluate(EMPTY, EMPTY)),
    "level": (OptionError, "level must be a confidence", lambda: ev.interval("f1", level=HUGE)),
    "digits": (OptionError, "an integer of about 5,000 digits", lambda: ev.interval("f1", level=LONG)),
    "threshold": (OptionError, "rounded to inf", lambda: sweep.at(HUGE)),
    "tolerance": (OptionError, "tolerance", lambda: fb.constraints.check_constraints("f1", tolerance=-HUGE)),
    "engine": (OptionError, "engine", lambda: fb.compare(LABELS, {"a": OTHER}, engine=pl.Series([]))),
    "where": (OptionError, "where must be conditions", lambda: sweep.best(where=[LAZY])),
    "long condition": (OptionError, "aaa...aaa", lambda: sweep.best(where="a" * 10**4)),
    "long score": (OptionError, "aaa...aaa", lambda: sweep.best(where=f"{'a' * 10**4} >= 1")),
    "long run": (
        OptionError,
        "aaa...aaa",
        lambda: fb.compare(LABELS, {"a" * 10**4: OTHER}, baseline="b"),
    ),
    "long path read": (
        FileFormatError,
        "aaa...aaa",
        lambda: fb.evaluate("/x" + "a" * 10**4, "b"),
    ),
    "long path loaded": (
        FileFormatError,
        "a' holds no saved evaluation: cannot read '/xa",
        lambda: fb.load("/x" + "a" * 10**4),
    ),
    "overlapping": (
        OptionError,
        "overlapping must be",
        lambda: fb.evaluate(LABELS, OTHER, overlapping=np.arange(3), repairs=3),
    ),
    "edges": (fb.errors.SliceError, "the edges of the bins", lambda: fb.bins("year", [1, HUGE])),
    "gate": (OptionError, "f1 ranges from 0 to 1", lambda: ev.check(f1=HUGE)),
    "long gate": (OptionError, "999...999", lambda: ev.check(f"f1>={'9' * 10**4}")),
    "long path written": (FileFormatError, "aaa...aaa", lambda: ev.save("/tmp/" + "a" * 10**4)),
    "long path spilled to": (
        fb.errors.SpillError,
        "aaa...aaa",
        lambda: fb.evaluate(LABELS, OTHER, engine="disk", spill_dir="/tmp/" + "a" * 10**4),
    ),
    "long weight": (ColumnError, "aaa...aaa", lambda: fb.evaluate(*SIDES, weight="a" * 10**4)),
    "population": (OptionError, "population_clusters", lambda: fb.estimate(*SIDES, population_clusters=HUGE)),
    "repairs": (OptionError, "repairs", lambda: fb.evaluate(LABELS, OTHER, repairs=pd.NA)),
    "explained number": (fb.errors.SliceError, "explain", lambda: kept.report(explain=Decimal("sNaN"))),
    "explained lists": (fb.errors.SliceError, "explain", lambda: kept.report(explain=[["town"]])),
    "lazy": (ColumnError, "a lazy frame cannot be collected", lambda: fb.evaluate(LAZY, LAZY)),
    "sets": (
        AlignmentError,
        "cannot be matched",
        lambda: fb.evaluate(fb.Clustering.from_labels(LABELS), [{1}, {2}, {1, 2}], overlapping=True),
    ),
    "merges": (OptionError, "merges", lambda: sweep.save("out", merges="3")),
    "chosen": (
        OptionError,
        "chosen must be the result of `chosen`, not",
        lambda: sweep.save("out", chosen=0.5),
    ),
    "best": (OptionError, "best must be the result of `best`, not", lambda: sweep.to_dict(best=0.5)),
    "unit": (OptionError, "unit must be", lambda: ev.scores(unit=pd.Series([1, 2]))),
    "table": (OptionError, "arrow must be a pyarrow table, not", lambda: fb.Table([1])),
    "spilled": (FileFormatError, "zero byte", lambda: fb.evaluate(*SIDES, engine="disk", spill_dir="a\0")),
    "size": (OptionError, "from 1 to", lambda: fb.constraints.homogeneity(2**64)),
    "cheat": (OptionError, "items must be an iterable", lambda: fb.constraints.cheat(3)),
    "similarity": (
        OptionError,
        "similarity must be one of",
        lambda: fb.cice_bcubed(*SIDES, similarity=pd.Series([1, 2])),
    ),
    "order": (fb.errors.MetricError, "about 5,000 digits", lambda: ev.cells(order_by=LONG)),
    "score": (fb.errors.MetricError, "the curve has no score", lambda: sweep.best(LONG)),
    "long path": (FileFormatError, "cannot write", lambda: ev.report("x" * 300)),
    "name": (OptionError, "name must be a string", lambda: fb.Clustering.from_labels(LABELS, name=LONG)),
    "name of links": (
        OptionError,
        "name must be a string",
        lambda: fb.Clustering.from_links(LINKS, name=LAZY),
    ),
    "name of pairs": (
        OptionError,
        "name must be a string",
        lambda: fb.Clustering.from_pairs("a", "b", name=LAZY),
    ),
    "name of a table": (
        OptionError,
        "name must be a string",
        lambda: fb.Clustering.from_table(LINKS, name=LAZY),
    ),
    "name of a dict": (
        OptionError,
        "name must be a string",
        lambda: fb.Clustering.from_dict(SIDES[0], name=LONG),
    ),
    "name of clusters": (
        OptionError,
        "name must be a string",
        lambda: fb.Clustering.from_clusters([["a"]], name=LONG),
    ),
    "name of a series": (
        OptionError,
        "name must be a string",
        lambda: fb.Clustering.from_series([1], name=LONG),
    ),
    "example": (OptionError, "there is no example", lambda: fb.example(LAZY)),
    "ids": (OptionError, "items must be ids", lambda: fb.constraints.cheat([[1]])),
    "order of items": (
        fb.errors.MetricError,
        "cannot order by",
        lambda: kept.items(order_by=pd.Series([1, 2])),
    ),
    "check": (OptionError, "There is no check", lambda: fb.constraints.check_constraints("f1", checks=LONG)),
    "cluster": (fb.errors.SliceError, "there is no true cluster", lambda: kept.items(true_cluster=LONG)),
    "masked": (ColumnError, "masked values", lambda: fb.Contingency.from_cells([np.ma.masked], [0], [1])),
    "interval of a diff": (fb.errors.MetricError, "digits", lambda: fb.diff(*SIDES).interval(LONG)),
    "source": (OptionError, "score must be a name", lambda: sweep.best("1or 2")),
}


@pytest.mark.parametrize("call", CALLS)
def test_arguments_that_ended_in_raw_errors(call: str) -> None:
    error, said, asked = CALLS[call]
    with refused(error, said):
        asked()


def test_scores_of_links_by_runs() -> None:
    """Links of .5, .5, .6, .6, .6, .6 in a column of run ends: at .55 the last four are left, and tie c to f and a."""
    scores = pa.RunEndEncodedArray.from_arrays([2, 6], pa.array([0.5, 0.6]))
    links = pa.table({"left": list("abcdef"), "right": list("bcdefa"), "score": scores})
    found = fb.Clustering.from_links(links, threshold=0.55)
    table = found.to_table().to_pandas()
    assert sorted(table.groupby("cluster").size()) == [1, 5]
    assert fb.sweep(dict.fromkeys("abcdef", 1), links).best().threshold == 0.5


def test_noise_that_no_integer_holds() -> None:
    """It is no label of these, and so changes nothing."""
    assert fb.evaluate(*SIDES, noise=Decimal("1e999")).overall == ev.overall


def test_order_of_the_merges_of_a_saved_sweep(tmp_path: Path) -> None:
    sweep.save(tmp_path / "sweep")
    with refused(fb.errors.NotKeptError, "a sweep is saved with"):
        fb.load(tmp_path / "sweep").merges(order_by=pd.DataFrame({"a": [1, 2]}))


def test_limits_beyond_all_rows() -> None:
    assert ev.clusters("true", limit=HUGE).num_rows == ev.clusters("true").num_rows == 2


def test_the_home_of_nobody_is_refused() -> None:
    with pytest.raises(fb.errors.SpillError, match="cannot spill to ~nobody-here/x: No such file"):
        fb.evaluate([1, 1, 2], [1, 2, 2], engine="disk", spill_dir="~nobody-here/x")


@pytest.mark.parametrize("score", [pd.Series(["f1", "recall"]), pd.RangeIndex(2)], ids=["series", "index"])
def test_a_chart_of_several_scores_is_refused(score) -> None:
    ev = fb.evaluate([1, 1, 2, 2], [1, 1, 1, 2], attributes={"part": list("xxyy")})
    with pytest.raises(fb.errors.MetricError, match="there is no chart of"):
        fb.charts.slices(ev, "part", score=score)


def test_keep_that_is_a_column_is_refused() -> None:
    with pytest.raises(OptionError, match="keep"):
        fb.evaluate([1, 1, 2], [1, 2, 2], repairs=3, out="unused", keep=pd.Series(["scores", "cells"]))


def test_numbers_of_numpy_are_written_as_json() -> None:
    table = fb.constraints.table(["f1"], n_random=np.int64(2), seed=np.int64(3))
    assert json.loads(table.to_json())["n_random"] == 2


def test_a_huge_tolerance_takes_all_for_ties():
    found = fb.constraints.check_constraints("f1", checks=["homogeneity"], n_random=2, tolerance=HUGE)
    assert found["homogeneity"].verdict == "tie"
