"""Rows that are held while all are written, against looking at all of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from effort import examples
from hypothesis import given
from hypothesis import strategies as st
from test_saved_pages import HOW, saved

import fastbcubed as fb
from fastbcubed.results import saved as manifest
from fastbcubed.results import stored_items
from fastbcubed.results.stored_items import HeldRows, StoredTable
from fastbcubed.runtime.threads import Pool


def held(truth: np.ndarray, prediction: np.ndarray, room: int = 1 << 20, step: int = 7, **how: Any) -> Any:
    """Return the contingency, the table of all rows, and those at hand; every fifth row is not scored."""
    table = fb.contingency(truth, prediction, **how)
    cell = np.where(np.arange(truth.size) % 5 == 4, -1, table.rows.cell)
    every = pa.table({"item": [f"i{k}" for k in range(truth.size)], "label": pa.array(truth.tolist())})
    with Pool(2) as pool:
        found = HeldRows(table, room, pool)
    for start in range(0, truth.size, step):
        found.take(cell[start : start + step].astype(np.int64), every.slice(start, step))
    return table, cell, every, found.finished()


@examples(60)
@given(
    st.integers(1, 12), st.integers(1, 12), st.integers(8, 120), st.sampled_from([3, 20, 1 << 18]),
    st.sampled_from(["none", "pointwise", "outer"]), st.integers(0, 2**32),
)  # fmt: skip
def test_rows_of_the_largest_clusters(
    n_true: int, n_pred: int, n: int, most: int, weighting: str, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    truth, prediction, weight = (
        rng.integers(n_true, size=n),
        rng.integers(n_pred, size=n),
        rng.random(n) + 0.1,
    )
    how = {} if weighting == "none" else {"weight": weight, "weighting": weighting}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stored_items, "MOST_ROWS", most)
        patch.setattr(stored_items, "CELLS_AT_ONCE", 8)
        table, cell, every, found = held(truth, prediction, **how)
    size = table.tp + np.maximum(table.fp, table.fn)
    lossy = (table.fp != 0) | (table.fn != 0)
    here = found.in_cells(np.zeros(table.n_cells, bool))
    assert here is not None and here[0].size == 0
    known = np.array(
        [found.in_cells(np.arange(table.n_cells) == k) is not None for k in range(table.n_cells)]
    )
    assert table.n[known].sum() <= most
    assert not known[~lossy].any()
    if known.any():  # no larger one is left out
        assert size[known].min() > size[lossy & ~known].max(initial=0)
    elif lossy.any():
        assert table.n[lossy & (size * 17 / 16 >= size[lossy].max())].sum() > most
    rows, cells = found.in_cells(known)
    assert rows.tolist() == [k for k in range(n) if cell[k] >= 0 and known[cell[k]]]
    assert cells.tolist() == cell[rows].tolist()
    asked = rng.permutation(np.append(rows, -1))
    got = found.columns(["label", "item"], asked) if rows.size else None
    if got is not None:
        assert got.equals(
            every.select(["label", "item"]).take(pa.array([None if k < 0 else k for k in asked]))
        )
        assert found.columns(["item", "other"], rows) is None
    strange = np.setdiff1d(np.arange(n), rows)
    if strange.size:
        assert found.columns(["item"], np.append(rows, strange[:1])) is None


def test_nothing_is_held_that_has_no_room() -> None:
    rng = np.random.default_rng(0)
    truth, prediction = rng.integers(9, size=200), rng.integers(9, size=200)
    assert held(truth, prediction)[-1] is not None
    assert held(truth, prediction, room=500)[-1] is None


@pytest.mark.parametrize("name", HOW)
@pytest.mark.parametrize("most", [20, 1 << 18])
def test_a_page_of_rows_at_hand_is_the_same(
    name: str, most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manifest, "LARGE", 0)
    monkeypatch.setattr(stored_items, "MOST_ROWS", most)
    read: list[tuple[str, ...]] = []
    plain = StoredTable._read
    monkeypatch.setattr(
        StoredTable,
        "_read",
        lambda own, parts, names: (read.append(tuple(names)), plain(own, parts, names))[1],
    )
    pages, n_read = [], []
    for fewest in (0, 1 << 40):
        monkeypatch.setattr(stored_items, "FEWEST_CELLS", fewest)
        out = tmp_path / str(fewest)
        read.clear()
        saved(out, name, engine="disk")
        n_read.append(sum("item" in names or "true_cluster" in names for names in read))
        pages.append((out / "page.json").read_bytes())
        assert json.loads((out / "overall.json").read_text())["overall"]
    assert json.loads(pages[0])["clusters"] == json.loads(pages[1])["clusters"]
    if name in ("plain", "weighted") and most > 20:  # no item is of one side alone
        assert n_read[0] == 0 < n_read[1]
