"""Verification: sound results hold, and those whose files were changed do not, whatever their checksums say."""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from both_engines import LIMIT, SETTINGS
from hypothesis import given
from hypothesis import strategies as st
from strategies import POLICIES, pairs
from strategies_overlap import covers

import fastbcubed as fb
from fastbcubed.cli import main as cli
from fastbcubed.errors import NotKeptError, OptionError, VerificationError
from fastbcubed.runtime.output_files import Stamp, stamp_of

pytestmark = pytest.mark.filterwarnings("ignore::fastbcubed.errors.EvaluationWarning")

TRUTH = {"item": list("abcdefgh"), "cluster": [0, 0, 0, 1, 1, 2, 2, 3], "country": ["US", "FR"] * 4}
PREDICTION = {"item": list("abcdefgh"), "cluster": [0, 0, 1, 1, 1, 2, 3, 3]}


WEIGHTINGS = st.sampled_from([None, "pointwise", "outer"])


def result(**options: Any) -> fb.Evaluation:
    return fb.evaluate(pa.table(TRUTH), pa.table(PREDICTION), slices=["country", "true_size"], **options)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    result(metrics=["precision", "recall", "f1", "mean_f1", "adjusted_rand"]).save(tmp_path / "out")
    return tmp_path / "out"


@pytest.mark.parametrize("engine", ["memory", "disk"])
@SETTINGS
@given(pair=pairs(), policy=st.sampled_from(POLICIES), weighting=WEIGHTINGS, data=st.data())
def test_sound_results_hold(engine, many_shards, pair, policy, weighting, data) -> None:
    options: dict[str, Any] = {"engine": engine, "memory_limit": LIMIT, "unmatched": policy}
    if weighting is not None:
        weights = st.floats(1e-6, 1e6)
        options |= {"weighting": weighting, "weight": {item: data.draw(weights) for item in pair.items}}
    ev = fb.evaluate(*pair[:2], keep="items", slices="pred_size", **options)
    found = ev.verify()
    assert found.n_items == min(100, ev.contingency.n_items)
    assert (found.scores, found.slices) == (tuple(ev.overall), ("pred_size",))


@SETTINGS
@given(case=covers(), policy=st.sampled_from(POLICIES))
def test_sound_results_of_overlapping_clusterings_hold(case, policy) -> None:
    sides = [fb.Clustering.from_clusters(side) for side in case]
    ev = fb.evaluate(*sides, overlapping=True, unmatched=policy)
    assert ev.verify().n_items == min(100, ev.contingency.n_items)


def test_nulls_and_noise_are_alone() -> None:
    labels = [1, None, None, -1, -1, 1, 2]
    ev = fb.evaluate(labels, [0, 0, 1, 1, -1, -1, 0], nulls="singleton", noise=-1)
    assert ev.verify().n_items == 7
    texts = [None if label is None else f"c{label}" for label in labels]
    assert fb.evaluate(texts, ["c0"] * 7, nulls="drop", noise="c-1").verify().n_items == 5


@pytest.mark.parametrize("weighted", ["truth", "prediction"])
@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_items_that_are_left_out_may_have_no_weight(engine: Any, weighted: str) -> None:
    sides = {"truth": dict(TRUTH), "prediction": dict(PREDICTION)}
    sides[weighted] = {name: values[:-1] for name, values in sides[weighted].items()} | {"w": range(1, 8)}
    ev = fb.evaluate(*map(pa.table, sides.values()), weight="w", engine=engine, keep="items")
    assert ev.verify().n_items == 7


def test_labels_of_any_kind() -> None:
    for kind in (pa.array([(1 << 62) + k // 2 for k in range(6)]), pa.array([b"a", b"a", b"b", b"b", b"c", b"c"]),
                 pa.array(["x", "x", "y", "y", "z", "z"]).dictionary_encode()):  # fmt: skip
        assert fb.evaluate(kind, [0, 0, 0, 1, 1, 1]).verify().n_items == 6
    rows = pa.table({"a": ["x", "x", "y"], "b": [1, 2, 1], "item": [1, 2, 3], "p": [0, 0, 0]})
    assert fb.evaluate(rows, rows, cluster=(["a", "b"], "p")).verify().n_items == 3


def test_rows_that_take_more_than_the_limit_are_refused() -> None:
    n = 500_000  # of 150 bytes
    columns = pa.table({"t": np.arange(n) // 2, "p": np.arange(n) // 3})
    ev = fb.evaluate("t", "p", table=columns, engine="disk", keep="items", memory_limit="64MiB")
    with pytest.raises(
        OptionError, match=r"verification would take about .* memory_limit of at least 72 MiB"
    ):
        ev.verify(1)


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_saved_results_hold(tmp_path, engine) -> None:
    for file, columns in (("t", TRUTH), ("p", PREDICTION)):
        pq.write_table(pa.table(columns), tmp_path / f"{file}.parquet")
    options: dict[str, Any] = {"engine": engine, "out": tmp_path / "out", "keep": "items"}
    fb.evaluate(tmp_path / "t.parquet", tmp_path / "p.parquet", slices="country", **options)
    found = fb.load(tmp_path / "out").verify(5)
    assert (
        repr(found)
        == "verified: 5 items agree with the rows, and so do 7 scores over all items and 1 slicing"
    )


def reseal(directory: Path, change: Any = None, **files: pa.Table) -> None:
    """Write files of a saved result anew, and the checksums with them, as somebody who means to deceive."""
    head = json.loads((directory / "overall.json").read_text())
    for name, table in files.items():
        pq.write_table(table, directory / f"{name}.parquet")
        with open(directory / f"{name}.parquet", "rb") as file:
            stamp: Stamp = stamp_of(file)
        head["files"][f"{name}.parquet"] = stamp._asdict()
    if change is not None:
        change(head)
    head.pop("crc32")
    text = json.dumps(head, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    (directory / "overall.json").write_text(json.dumps({**head, "crc32": zlib.crc32(text.encode())}))


def edited(table: pa.Table, column: str, row: int, value: Any) -> pa.Table:
    values = table[column].to_pylist()
    values[row] = value
    at, field = table.column_names.index(column), table.schema.field(column)
    return table.set_column(at, field, pa.chunked_array([pa.array(values, field.type)]))


def test_resealed_files_that_were_not_changed_hold(saved) -> None:
    reseal(saved, items=pq.read_table(saved / "items.parquet"))
    assert fb.load(saved).verify().n_items == 8


def test_an_edited_label_is_found(saved) -> None:
    """Item c, of true cluster 0 and predicted cluster 1, is said to be in predicted cluster 0."""
    reseal(saved, items=edited(pq.read_table(saved / "items.parquet"), "pred_cluster", 2, 0))
    with pytest.raises(VerificationError) as told:
        fb.load(saved).verify()
    for part in (
        "5 of 8 items differ from what their rows say (item 'a': tp is 2, and 3 from the rows",
        "precision is 0.7083333333, and 0.875 from the rows",
        "its files were changed",
    ):
        assert part in str(told.value)


def test_an_edited_label_is_found_even_if_no_item_drawn_shows_it(tmp_path) -> None:
    n = 3000
    fb.evaluate(np.arange(n) // 3, np.arange(n) // 2).save(tmp_path / "out")
    items = pq.read_table(tmp_path / "out" / "items.parquet")
    reseal(tmp_path / "out", items=edited(items, "true_cluster", n - 1, 0))
    with pytest.raises(
        VerificationError, match=r"over all items, .*recall is 0\.\d+, and 0\.\d+ from the rows"
    ):
        fb.load(tmp_path / "out").verify(1)


@pytest.mark.parametrize("name", ["precision", "f1", "mean_f1", "adjusted_rand"])
def test_an_edited_score_is_found(saved, name) -> None:
    def better(head: dict[str, Any]) -> None:
        head["overall"][name] += 0.01

    reseal(saved, better)
    with pytest.raises(VerificationError, match=rf"the result does not hold: over all items, .*{name} is"):
        fb.load(saved).verify()


def test_an_edited_slice_is_found(saved) -> None:
    def better(head: dict[str, Any]) -> None:
        head["slices"]["country"][0]["f1"] = 1.0

    reseal(saved, better)
    with pytest.raises(VerificationError, match="slices by country are not those that the cells give"):
        fb.load(saved).verify()


def test_an_edited_weight_is_found(tmp_path) -> None:
    """Weights are moved within a cell, so that its sum stays."""
    weight = [1.0, 2.0, 4.0, 1.0]
    ev = fb.evaluate([0, 0, 0, 1], [0, 0, 1, 1], weight=weight)
    assert ev.verify().n_items == 4
    ev.save(tmp_path / "out")
    items = pq.read_table(tmp_path / "out" / "items.parquet")
    reseal(tmp_path / "out", items=edited(edited(items, "weight", 2, 1.0), "weight", 3, 4.0))
    with pytest.raises((VerificationError, fb.errors.FileFormatError)):
        fb.load(tmp_path / "out").verify()


def test_what_is_needed_is_said(tmp_path) -> None:
    ev = result()
    ev.save(tmp_path / "cells", keep="cells")
    with pytest.raises(NotKeptError, match='keep="items"'):
        fb.load(tmp_path / "cells").verify()
    for n in (0, True, 2.5):
        with pytest.raises(OptionError, match="a number of items, 1 or more"):
            ev.verify(n)


def test_command_line(tmp_path, capsys, monkeypatch) -> None:
    paths = []
    for file, columns in (("t", TRUTH), ("p", PREDICTION)):
        pq.write_table(pa.table(columns), tmp_path / f"{file}.parquet")
        paths.append(str(tmp_path / f"{file}.parquet"))
    for flags in ([], ["--engine", "disk"]):
        assert cli.main(["evaluate", *paths, "--verify", "5", *flags]) == 0
        assert "verified: 5 items agree with the rows, and so do 7 scores" in capsys.readouterr().out
    assert cli.main(["evaluate", *paths, "--verify", "5", "--json"]) == 0
    assert "verified: 5 items" in capsys.readouterr().err

    def refuse(ev: fb.Evaluation, n: int) -> None:
        raise VerificationError("it does not hold")

    monkeypatch.setattr(fb.Evaluation, "verify", refuse)
    assert cli.main(["evaluate", *paths, "--verify", "5"]) == 70
    assert "fastbcubed: it does not hold" in capsys.readouterr().err
