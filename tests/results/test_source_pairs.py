"""Links within and across sources: counted from cells, as by looking at every pair of items."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from effort import examples
from hypothesis import given
from hypothesis import strategies as st

import fastbcubed as fb
from fastbcubed.cli import main as cli
from fastbcubed.errors import ColumnError, MetricError, NotKeptError, SliceError
from fastbcubed.results import source_pairs

pytestmark = pytest.mark.filterwarnings("ignore::fastbcubed.EvaluationWarning")


def by_pairs(
    true: list[int], pred: list[int], sources: list[Any]
) -> dict[frozenset[Any], tuple[int, int, int]]:
    """Count tp, fp, fn of all pairs of items by their sources, pair by pair."""
    found: dict[frozenset[Any], Counter[str]] = {}
    for pair in itertools.combinations_with_replacement(sorted(set(sources), key=str), 2):
        found[frozenset(pair)] = Counter()
    for i, j in itertools.combinations(range(len(true)), 2):
        together = (true[i] == true[j], pred[i] == pred[j])
        found[frozenset((sources[i], sources[j]))][str(together)] += 1
    return {pair: (n["(True, True)"], n["(False, True)"], n["(True, False)"]) for pair, n in found.items()}


def listed(table: Any) -> dict[frozenset[Any], tuple[int, int, int]]:
    return {
        frozenset((row["source"], row["other_source"])): (row["pair_tp"], row["pair_fp"], row["pair_fn"])
        for row in table.to_pylist()
    }


@examples(150)
@given(
    st.lists(
        st.tuples(*[st.integers(0, 4)] * 2, st.sampled_from(["a", "b", "c", None])), min_size=1, max_size=25
    )
)
def test_every_pair_of_items_is_counted_once(rows: list[tuple[int, int, str | None]]) -> None:
    true, pred, sources = map(list, zip(*rows, strict=True))
    ev = fb.evaluate(
        true, pred, attributes=pa.table({"source": pa.array(sources, pa.string())}), metrics="pairs"
    )
    table = ev.source_pairs("source")
    assert listed(table) == by_pairs(true, pred, sources)
    for name in ("pair_tp", "pair_fp", "pair_fn"):
        assert sum(table[name].to_pylist()) == ev.overall[name]
    for row in table.to_pylist():
        tp, fp, fn = row["pair_tp"], row["pair_fp"], row["pair_fn"]
        assert row["pair_precision"] == (tp / (tp + fp) if tp + fp else 1)
        assert row["pair_recall"] == (tp / (tp + fn) if tp + fn else 1)
        assert row["pair_f1"] == (2 * tp / (2 * tp + fp + fn) if tp + fp + fn else 1)


#: C1 and W1 are one entity, W2 and C2 another; the prediction links C2, W1, W2.
IDS = {"DATA_SOURCE": ["C", "W", "W", "C"], "RECORD_ID": ["1", "1", "2", "2"]}
EXPECTED = [
    ("within C", 0, 0, 0, 1.0, 1.0),
    ("C × W", 1, 1, 1, 0.5, 0.5),  # right W2-C2; wrong W1-C2; missed C1-W1
    ("within W", 0, 1, 0, 0.0, 1.0),  # wrong W1-W2
]


def tables() -> tuple[pa.Table, pa.Table]:
    truth = pa.table({**IDS, "cluster": [0, 0, 1, 1], "weight": [1.0, 2.0, 3.0, 4.0]})
    return truth, pa.table({**IDS, "cluster": [0, 1, 1, 1]})


@pytest.mark.cases(1)
@pytest.mark.parametrize("weight", [None, "weight"])
def test_a_small_case_by_hand(weight: str | None, tmp_path: Path) -> None:
    ev = fb.evaluate(*tables(), item=list(IDS), weight=weight)
    ev.save(tmp_path / "out")
    paths = [tmp_path / "t.parquet", tmp_path / "p.parquet"]
    for path, table in zip(paths, tables(), strict=True):
        pq.write_table(table, path)
    on_disk = fb.evaluate(*paths, item=list(IDS), weight=weight, engine="disk", keep="items")
    for each in (ev, fb.load(tmp_path / "out"), on_disk):
        found = [tuple(row.values()) for row in each.source_pairs("DATA_SOURCE").to_pylist()]
        assert [(row[0], *row[3:8]) for row in found] == EXPECTED
        assert [row[1:3] for row in found] == [("C", "C"), ("C", "W"), ("W", "W")]
    by_number = ev.source_pairs(fb.bins("RECORD_ID", 1))
    assert by_number["pair"].to_pylist() == ["within 1", "1 × 2", "within 2"]


def test_items_that_are_not_scored_do_not_count() -> None:
    truth = pa.table({"item": [1, 2, 3], "cluster": [0, 0, 0], "s": ["a", "a", "b"]})
    ev = fb.evaluate(truth, {1: 0, 2: 0, 9: 0})
    assert ev.source_pairs("s")["pair"].to_pylist() == ["within a"]
    assert ev.source_pairs("s")["pair_tp"].to_pylist() == [1]
    alone = fb.evaluate(truth, {1: 0, 2: 0, 9: 0}, unmatched="singleton")
    # item 9 has no source: it is together with 1 and 2 in the prediction alone
    assert listed(alone.source_pairs("s"))[frozenset(("a", None))] == (0, 2, 0)
    assert alone.source_pairs("s")["pair"].to_pylist()[-1] == "within (null)"


def test_counts_do_not_wrap() -> None:
    n = 1 << 40
    units, sources, counts = np.array([0, 0, 1]), np.array([0, 1, 1]), np.array([n, n + 1, 3])
    found = source_pairs._pairs(units, sources, counts, 2, False)
    assert found.tolist() == [[n * (n - 1) // 2, n * (n + 1)], [0, (n + 1) * n // 2 + 3]]
    small = source_pairs._pairs(units, sources, np.array([5, 6, 3]), 2, True)
    assert small.tolist() == source_pairs._pairs(units, sources, np.array([5, 6, 3]), 2, False).tolist()
    assert small.tolist() == [[10, 30], [0, 15 + 3]]
    table = source_pairs._listed(pa.array(["a", "b"]), {"tp": found, "true": found, "pred": found})
    assert int(table["pair_tp"][1].as_py()) == n * (n + 1)
    assert table["pair_f1"].to_pylist() == [1.0, 1.0, 1.0]


def test_what_cannot_be_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ev = fb.evaluate(*tables(), item=list(IDS))
    for by in (("DATA_SOURCE", "RECORD_ID"), "", None, {"a": [0]}):
        with pytest.raises(SliceError, match="one attribute"):
            ev.source_pairs(by)
    with pytest.raises(ColumnError, match="Did you mean 'DATA_SOURCE'"):
        ev.source_pairs("DATASOURCE")
    monkeypatch.setattr(source_pairs, "MOST", 2)
    with pytest.raises(
        SliceError, match="has 2 values, which make 3 pairs of sources, more than the limit of 2"
    ):
        ev.source_pairs("DATA_SOURCE")
    monkeypatch.undo()
    ev.save(tmp_path / "cells", keep="cells")
    with pytest.raises(NotKeptError, match='keep="items"'):
        fb.load(tmp_path / "cells").source_pairs("DATA_SOURCE")
    outside = fb.evaluate(*tables(), item=list(IDS), unmatched={"prediction": "outside"})
    with pytest.raises(MetricError, match="outside"):
        outside.source_pairs("DATA_SOURCE")
    with pytest.raises(MetricError, match="overlap"):
        fb.evaluate(*tables(), item=list(IDS), overlapping=True).source_pairs("DATA_SOURCE")


def test_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [str(tmp_path / "t.parquet"), str(tmp_path / "p.parquet")]
    for path, table in zip(paths, tables(), strict=True):
        pq.write_table(table, path)
    flags = ["--item", "DATA_SOURCE+RECORD_ID", "--slice-pairs", "DATA_SOURCE"]
    for engine in ("memory", "disk"):
        assert cli.main(["evaluate", *paths, *flags, "--json", "--engine", engine]) == 0
        rows = json.loads(capsys.readouterr().out)["source_pairs"]["DATA_SOURCE"]
        assert [(row["pair"], row["pair_tp"], row["pair_fp"]) for row in rows] == [
            row[:3] for row in EXPECTED
        ]
    assert cli.main(["evaluate", *paths, *flags]) == 0
    out = capsys.readouterr().out
    assert "Links within and across DATA_SOURCE" in out
    (line,) = (line for line in out.splitlines() if line.startswith("C × W"))
    assert line.split()[3:6] == ["1", "1", "1"]
