"""What all runs of a comparison share is read once, and serves all of them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import fastbcubed as fb
from fastbcubed.align import sides as weights

ROWS = pa.table({"t": [1, 1, 2], "p": [1, 1, 1], "q": [1, 2, 3], "w": [1.0, 2.0, 4.0]})
RUNS = {"a": "p", "b": "q"}


def clustering(labels):
    return pa.table({"item": [1, 2, 3], "cluster": labels})


def test_a_reader_of_the_truth_or_of_all_runs():
    truth, a, b = (clustering(ROWS[name]) for name in "tpq")
    expected = fb.compare(truth, {"a": a, "b": b}).scores().to_pylist()
    found = fb.compare(truth.to_reader(), {"a": a, "b": b.to_reader()})
    assert found.scores().to_pylist() == expected
    assert fb.compare("t", RUNS, table=ROWS.to_reader()).scores().to_pylist() == expected


@pytest.mark.parametrize("weight", ["w", np.array([1.0, 2.0, 4.0])])
def test_weights_of_one_table(weight):
    rows = fb.compare("t", RUNS, table=ROWS, weight=weight).scores().to_pylist()
    arrays = fb.compare(ROWS["t"], {"a": ROWS["p"], "b": ROWS["q"]}, weight=ROWS["w"].to_numpy())
    assert rows == arrays.scores().to_pylist() and rows[0]["weight"] == 7


def test_weights_of_the_truth_are_checked_once(monkeypatch):
    checked, check = [], weights.check_weights
    monkeypatch.setattr(weights, "check_weights", lambda *a, **k: checked.append(a[1]) or check(*a, **k))
    truth = clustering(ROWS["t"]).append_column("w", ROWS["w"])
    runs = {name: clustering(ROWS[column]) for name, column in RUNS.items()}
    fb.compare(truth, runs, weight="w")
    fb.compare(ROWS["t"], {name: ROWS[column] for name, column in RUNS.items()}, weight=ROWS["w"])
    table = {"item": [1, 2, 3], "weight": [1.0, 2.0, 4.0]}
    fb.compare(clustering(ROWS["t"]), runs, weight=pa.table(table))
    assert len(checked) == 3, checked
