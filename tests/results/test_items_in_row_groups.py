"""Questions about an item or a cluster of a file read one row group at a time, whatever the length of its texts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fastbcubed.errors import SliceError
from fastbcubed.results.items import TableItems
from fastbcubed.results.stored_tables import StoredTable

TABLE = pa.table(
    {
        "item": list("abcdefgh"),
        "true_cluster": pa.array(["x", None, "y", "x", None, "z", "y", "x"]),
        "pred_cluster": pa.array([1, 1, 2, 3, 3, 1, None, 2]),
    }
)


@pytest.fixture
def stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TableItems:
    pq.write_table(TABLE, tmp_path / "items.parquet", row_group_size=3)
    table = StoredTable(str(tmp_path / "items.parquet"))
    read = table._read

    def of_one(parts: Iterable[int], names: Sequence[str]) -> Any:
        own = list(parts)
        assert len(own) <= 1, f"{len(own)} row groups of {names} at once"
        return read(own, names)

    monkeypatch.setattr(table, "_read", of_one)
    return TableItems(table)


def test_rows_of_items(stored: TableItems) -> None:
    assert stored.rows_of(["h", "nope", "a", "d"]).tolist() == [7, -1, 0, 3]
    with pytest.raises(SliceError, match="1 of the 3 requested items are repeated"):
        stored.rows_of(["a", "h", "a"])


@pytest.mark.parametrize(
    ("side", "label", "rows"),
    [("true", "x", [0, 3, 7]), ("true", "z", [5]), ("pred", 2, [2, 7]), ("pred", 9, [])],
)
def test_rows_of_clusters(stored: TableItems, side: str, label: Any, rows: list[int]) -> None:
    assert stored.rows_of_cluster(side, label).tolist() == rows


@pytest.mark.parametrize(
    ("side", "row", "rows"), [("true", 3, [0, 3, 7]), ("true", 1, [1]), ("pred", 5, [0, 1, 5])]
)
def test_items_of_the_same_label(stored: TableItems, side: str, row: int, rows: list[int]) -> None:
    for items in (stored, TableItems(TABLE)):
        assert np.flatnonzero(items.same_label(side, row)).tolist() == rows
