"""Some clusters opened together say what each says when it is opened alone."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import fastbcubed as fb
from fastbcubed.errors import EvaluationWarning
from fastbcubed.results.clusters import list_clusters
from fastbcubed.results.members import excerpt, open_cluster

RNG = np.random.default_rng(11)


def table(first: int, n: int, kind: str) -> pa.Table:
    labels = RNG.integers(0, 12, n)
    texts = pa.array([f"c{k}" for k in labels]) if kind == "texts" else pa.array(labels)
    of_each = {"colour": RNG.integers(0, 3, n).astype(str), "size": RNG.integers(0, 9, n)}
    return pa.table({"item": np.arange(first, first + n), "cluster": texts, **of_each})


CASES: dict[str, dict[str, Any]] = {
    "same items": {},
    "outside": {"first": 15, "unmatched": "outside"},
    "dropped": {"first": 15, "unmatched": "drop"},
    "weights": {"weight": "size", "weighting": "outer"},
    "noise": {"first": 15, "noise": 3, "unmatched": "singleton"},
    "texts": {"first": 15, "kind": "texts", "unmatched": {"truth": "singleton", "prediction": "drop"}},
}


@pytest.fixture(params=CASES)
def ev(request: pytest.FixtureRequest) -> fb.Evaluation:
    how = dict(CASES[request.param])
    first, kind = how.pop("first", 0), how.pop("kind", "integers")
    attributes = pa.table({"item": np.arange(80), "extra": RNG.integers(0, 5, 80)})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EvaluationWarning)
        return fb.evaluate(table(0, 60, kind), table(first, 60, kind), attributes=attributes, **how)


@pytest.mark.cases(3)
@pytest.mark.parametrize("engine", ["memory", "saved"])
def test_an_excerpt_opens_clusters_as_the_whole_does(ev: fb.Evaluation, engine: str, tmp_path: Path) -> None:
    if engine == "saved":
        ev.save(tmp_path / "result")
        ev = fb.load(tmp_path / "result")
    listed = {side: list_clusters(ev.kept, ev.figures, side, None, 5) for side in ("true", "pred")}
    how: dict[str, Any] = {"columns": ["truth.colour", "prediction.size", "extra"], "members": 7}
    if engine == "saved":
        how["columns"][2] = "attributes.extra"
    codes = {side: each["code"].to_numpy() for side, each in listed.items()}
    part = excerpt(ev.kept, ev.coverage, codes, how["columns"])
    for side, each in listed.items():
        for label in each["cluster"].to_pylist():
            if label is not None:
                alone, together = ev.cluster(side, label, **how), open_cluster(part, side, label, **how)
                assert together == alone
                assert together.table.equals(alone.table)
