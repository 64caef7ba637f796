"""Sums by level, and scores by point, are made block by block: where blocks end changes no bit."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import fastbcubed as fb
from fastbcubed.sweep_links import curve, level_sums, merge_tree

pytestmark = pytest.mark.filterwarnings("ignore::fastbcubed.errors.EvaluationWarning")


def curve_of(truth: dict[int, int], links: Any, **options: Any) -> dict[str, bytes]:
    found = fb.sweep(truth, links, **options).curve(limit=None, errors=True).to_arrow()
    return {name: found[name].to_numpy().tobytes() for name in found.column_names}


@pytest.mark.cases(0, 3)
@pytest.mark.parametrize("decimals", [1, 9])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("unmatched", [None, {"prediction": "outside", "truth": "singleton"}])
def test_blocks_change_nothing(
    monkeypatch: pytest.MonkeyPatch, decimals: int, weighted: bool, unmatched: Any
) -> None:
    rng = np.random.default_rng(decimals)
    n, m = 300, 700
    truth = dict(enumerate(rng.integers(0, 90, n - 20).tolist()))
    left, right = rng.integers(0, n, (2, m))
    links = pa.table({"left": left, "right": right, "score": rng.random(m).round(decimals)})
    weights = {item: float(w) for item, w in enumerate(rng.lognormal(0, 3, n))} if weighted else None
    options = {"weight": weights, "unmatched": unmatched}
    whole = [curve_of(truth, links, **options, threads=threads) for threads in (1, 2)]
    monkeypatch.setattr(level_sums, "MERGES_AT_ONCE", 7)
    monkeypatch.setattr(merge_tree, "MERGES_AT_ONCE", 7)
    monkeypatch.setattr(merge_tree, "MEETINGS_AT_ONCE", 5)
    monkeypatch.setattr(curve, "POINTS_AT_ONCE", 3)
    cut = [curve_of(truth, links, **options, threads=threads) for threads in (1, 2)]
    assert all(found == whole[0] for found in [*whole, *cut])
