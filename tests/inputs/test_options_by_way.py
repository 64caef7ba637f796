"""Every option by every way in: each cell is that of the naive twin, or refuses by name; none is ignored."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import naive
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import fastbcubed as fb
from fastbcubed.cli.main import main
from fastbcubed.errors import (
    AlignmentError,
    ColumnError,
    DuplicateItemError,
    EvaluationWarning,
    FastBCubedError,
    NullError,
    OptionError,
)

#: A side lacks the item.
GONE = "gone"
#: item, true label, predicted label, weight, group
Row = tuple[str, Any, Any, float, str]


def rows(true: list[Any], pred: list[Any]) -> list[Row]:
    """Return rows with weights 1, 2, 4, 1, … and the groups u, u, v, v, …"""
    return [
        (chr(97 + k), *labels, float(1 << k % 3), "uv"[k // 2 % 2])
        for k, labels in enumerate(zip(true, pred, strict=True))
    ]


PLAIN = rows([1, 1, 1, 2, 3, 3], [7, 7, 8, 8, 8, 9])
NULLS = rows([1, 1, 2, 2, 3, None], [7, 7, None, None, 8, 8])
NOISE = rows([1, 1, -1, -1, 3, 3], [7, -1, -1, 8, 8, -1])
LACKS = rows([1, 1, 1, GONE, 3, 3, GONE], [7, 7, GONE, 7, 8, 9, 9])


BOTH = ["precision", "recall"]


class Setting(NamedTuple):
    """Rows, the options of `evaluate`, and the error that they are."""

    rows: list[Row]
    options: dict[str, Any]
    error: type[FastBCubedError] | None = None


SETTINGS = {
    "nothing": Setting(PLAIN, {}),
    "weights": Setting(PLAIN, {"weight": True}),
    "outer weights": Setting(PLAIN, {"weight": True, "weighting": "outer"}),
    "beta": Setting(PLAIN, {"beta": 2.0, "metrics": ["precision", "fbeta"]}),
    "metrics": Setting(PLAIN, {"metrics": ["elm_precision", "jaccard_index", "mean_f1"]}),
    "slices": Setting(PLAIN, {"slices": "kind"}),
    "attributes": Setting(PLAIN, {"slices": "kind", "attributes": True}),
    "nulls": Setting(NULLS, {}, NullError),
    "nulls raise": Setting(NULLS, {"nulls": "raise"}, NullError),
    "nulls singleton": Setting(NULLS, {"nulls": "singleton"}),
    "nulls drop": Setting(NULLS, {"nulls": "drop"}),
    "nulls drop, unmatched": Setting(NULLS, {"nulls": "drop", "unmatched": "singleton"}),
    "nulls drop, raise": Setting(NULLS, {"nulls": "drop", "unmatched": "raise"}, AlignmentError),
    "nulls drop, outside": Setting(NULLS, {"nulls": "drop", "unmatched": "outside", "weight": True}),
    "noise": Setting(NOISE, {"noise": -1}),
    "noise of the prediction": Setting(NOISE, {"noise": {"prediction": -1}}),
    "noise of both": Setting(NOISE, {"noise": {"truth": -1, "prediction": 8}, "weight": True}),
    "noise of a side that there is not": Setting(NOISE, {"noise": {"pred": -1}}, OptionError),
    "noise of the prediction, overlapping": Setting(
        NOISE, {"noise": {"prediction": -1}, "overlapping": True, "metrics": BOTH}
    ),
    "noise and weights": Setting(NOISE, {"noise": -1, "weight": True}),
    "noise and nulls": Setting([*NOISE[:5], ("f", None, -1, 1.0, "u")], {"noise": -1, "nulls": "singleton"}),
    "unmatched": Setting(LACKS, {}),
    "unmatched raise": Setting(LACKS, {"unmatched": "raise"}, AlignmentError),
    "unmatched singleton": Setting(LACKS, {"unmatched": "singleton", "weight": True}),
    "unmatched outside": Setting(LACKS, {"unmatched": "outside"}),
    "unmatched by side": Setting(LACKS, {"unmatched": {"truth": "singleton", "prediction": "drop"}}),
    "duplicates": Setting([*PLAIN, PLAIN[2]], {}, DuplicateItemError),
    "duplicates drop": Setting([*PLAIN, PLAIN[2]], {"duplicates": "drop", "weight": True}),
    "overlapping": Setting(PLAIN, {"overlapping": True, "metrics": BOTH}),
    "overlapping, nulls": Setting(NULLS, {"overlapping": True, "metrics": BOTH, "nulls": "singleton"}),
    "overlapping, drop": Setting(
        NULLS, {"overlapping": True, "metrics": BOTH, "nulls": "drop", "weight": True}
    ),
    "overlapping, nulls raise": Setting(NULLS, {"overlapping": True}, NullError),
}


def expected(setting: Setting) -> dict[str, Any]:
    """Return the twin's scores, overall and by group, of a setting without an error."""
    options = setting.options
    nulls, noise = options.get("nulls"), options.get("noise")
    sides: list[dict[str, Any]] = []
    for k, side in ((1, "truth"), (2, "prediction")):
        of_side = noise.get(side) if isinstance(noise, dict) else noise
        labels = {}
        for row in setting.rows:
            if row[k] == GONE or (row[k] is None and nulls == "drop"):
                continue
            alone = row[k] is None or (of_side is not None and row[k] == of_side)
            labels[row[0]] = naive.Alone(row[0]) if alone else row[k]
        sides.append(labels)
    weights = {row[0]: row[3] for row in setting.rows} if "weight" in options else None
    known = {name: options[name] for name in ("unmatched", "weighting", "beta") if name in options}
    twin = naive.evaluate(*sides, weights, **known)
    names = options.get("metrics", ["precision", "recall", "f1"])
    found = {name: float(twin.mean(name)) for name in names}
    if "slices" in options:
        for group in "uv":
            items = [row[0] for row in setting.rows if row[4] == group]
            found[group] = float(twin.mean("precision", items))
    return found


class Call(NamedTuple):
    """Positional arguments, and keywords of a way, which has weights and attributes in its own form."""

    sides: tuple[Any, Any]
    options: dict[str, Any]


Way = Callable[[list[Row], Path], Call | None]


def complete(given: list[Row]) -> bool:
    """Return whether rows correspond: no side lacks an item, and none comes twice."""
    return all(GONE not in row for row in given) and len({row[0] for row in given}) == len(given)


def by_position(make: Callable[[list[Any]], Any]) -> Way:
    """Return a way with labels, weights and attributes by position."""

    def way(given: list[Row], _: Path) -> Call | None:
        if not complete(given):
            return None
        _, true, pred, weight, group = map(list, zip(*given, strict=True))
        return Call((make(true), make(pred)), {"weight": make(weight), "attributes": {"kind": group}})

    return way


def columns(given: list[Row], k: int) -> dict[str, list[Any]]:
    """Return the table of a side; the truth has the groups."""
    own = [row for row in given if row[k] != GONE]
    found = {
        "item": [row[0] for row in own],
        "cluster": [row[k] for row in own],
        "w": [row[3] for row in own],
    }
    return found | ({"kind": [row[4] for row in own]} if k == 1 else {})


def arrow(data: dict[str, list[Any]]) -> pa.Table:
    return pa.table(data, schema=pa.schema([pa.field(name, TYPES[name]) for name in data]))


TYPES = {name: pa.int64() for name in ("cluster", "t", "p")} | {
    "item": pa.string(), "kind": pa.string(), "w": pa.float64(),
}  # fmt: skip


def table(make: Callable[[pa.Table, Path], Any]) -> Way:
    """Return a way with a table for each side, the weights in a column of it."""

    def way(given: list[Row], folder: Path) -> Call:
        attributes = {"item": [row[0] for row in dict.fromkeys(given)]}
        attributes["kind"] = [row[4] for row in dict.fromkeys(given)]
        sides = [make(arrow(columns(given, k)), folder / f"side{k}") for k in (1, 2)]
        return Call((sides[0], sides[1]), {"weight": "w", "attributes": attributes})

    return way


def one_table(make: Callable[[pa.Table, Path], Any], *, item: bool = True) -> Way:
    """Return a way with one table of both sides."""

    def way(given: list[Row], folder: Path) -> Call | None:
        if any(GONE in row for row in given) or not (item or complete(given)):
            return None
        names = ["item", "t", "p", "w", "kind"][not item :]
        parts = list(zip(*given, strict=True))[not item :]
        source = make(
            arrow({name: list(part) for name, part in zip(names, parts, strict=True)}), folder / "both"
        )
        attributes = {"item": parts[0], "kind": parts[-1]} if item else None
        return Call(("t", "p"), {"table": source, "weight": "w", "attributes": attributes})

    return way


def clusterings(make: Callable[[dict[str, list[Any]]], fb.Clustering]) -> Way:
    """Return a way with clusterings, weights and attributes by item."""

    def way(given: list[Row], _: Path) -> Call | None:
        weights, groups = ({row[0]: row[k] for row in given} for k in (3, 4))
        attributes = {"item": list(groups), "kind": list(groups.values())}
        try:
            sides = [make(columns(given, k)) for k in (1, 2)]
        except KeyError:
            return None
        return Call((sides[0], sides[1]), {"weight": weights, "attributes": attributes})

    return way


def as_dict(data: dict[str, list[Any]]) -> dict[str, Any]:
    """Return item to label; raise KeyError where an item comes twice."""
    if len(set(data["item"])) < len(data["item"]):
        raise KeyError("twice")
    return dict(zip(data["item"], data["cluster"], strict=True))


def as_clusters(data: dict[str, list[Any]]) -> fb.Clustering:
    """Return clusters by label, which have no nulls."""
    if None in data["cluster"]:
        raise KeyError("null")
    found: dict[Any, list[str]] = {}
    for item, label in zip(data["item"], data["cluster"], strict=True):
        found.setdefault(label, []).append(item)
    return fb.Clustering.from_clusters(found)


def as_links(data: dict[str, list[Any]]) -> fb.Clustering:
    """Return connected components, each row linked with the next of its cluster; there is neither noise nor null."""
    if None in data["cluster"] or -1 in data["cluster"]:
        raise KeyError("no such label")
    clusters: dict[Any, list[str]] = {}
    for item, label in as_dict(data).items():
        clusters.setdefault(label, []).append(item)
    links = [pair for each in clusters.values() for pair in pairwise(each)]
    return fb.Clustering.from_pairs([a for a, _ in links], [b for _, b in links], items=data["item"])


def written(suffix: str, write: Callable[[pa.Table, Path], Any]) -> Callable[[pa.Table, Path], str]:
    def make(rows: pa.Table, path: Path) -> str:
        path = path.with_name(path.name + suffix)
        write(rows, path)
        return str(path)

    return make


def parts(rows: pa.Table, path: Path) -> Path:
    """Write a directory of three files."""
    path.mkdir(exist_ok=True)
    for k, start in enumerate((0, 1, 4)):
        pq.write_table(rows.slice(start, (1, 3, 99)[k]), path / f"{k}.parquet")
    return path


def ipc(rows: pa.Table, path: Path) -> None:
    with pa.ipc.new_file(path, rows.schema) as writer:
        writer.write_table(rows, max_chunksize=2)


parquet = written(".parquet", lambda rows, path: pq.write_table(rows, path, row_group_size=2))
csv = written(".csv", pyarrow.csv.write_csv)
lines = written(".jsonl", lambda rows, path: rows.to_pandas().to_json(path, orient="records", lines=True))

WAYS: dict[str, Way] = {
    "lists": by_position(list),
    "NumPy objects": by_position(lambda values: np.array(values, dtype=object)),
    "pandas Series": by_position(lambda values: pd.Series(values, dtype="Float64" if 4.0 in values else "Int64")),
    "Polars Series": by_position(pl.Series),
    "Arrow arrays": by_position(pa.array),
    "pandas frames": table(lambda rows, _: rows.to_pandas(types_mapper=pd.ArrowDtype)),
    "pandas frames of objects": table(lambda rows, _: rows.to_pandas().astype({"cluster": "Int64"}).astype(object)),
    "Polars frames": table(lambda rows, _: pl.from_arrow(rows)),
    "lazy Polars": table(lambda rows, _: pl.from_arrow(rows).lazy()),  # type: ignore[union-attr]
    "Arrow tables": table(lambda rows, _: rows),
    "Arrow readers": table(lambda rows, _: rows.to_reader(max_chunksize=2)),
    "DuckDB": table(lambda rows, _: duckdb.connect().from_arrow(rows)),
    "Parquet": table(parquet),
    "CSV": table(csv),
    "JSON lines": table(lines),
    "Arrow IPC": table(written(".arrow", ipc)),
    "directory": table(parts),
    "list of files": table(lambda rows, path: sorted(map(str, parts(rows, path).iterdir()))),
    "glob": table(lambda rows, path: str(parts(rows, path) / "*.parquet")),
    "table= pandas": one_table(lambda rows, _: rows.to_pandas(types_mapper=pd.ArrowDtype)),
    "table= columns": one_table(lambda rows, _: rows.to_pydict()),
    "table= Polars": one_table(lambda rows, _: pl.from_arrow(rows)),
    "table= Arrow": one_table(lambda rows, _: rows),
    "table= without items": one_table(lambda rows, _: rows, item=False),
    "table= Parquet": one_table(parquet),
    "table= Parquet without items": one_table(parquet, item=False),
    "table= CSV": one_table(csv),
    "table= directory": one_table(parts),
    "table= reader": one_table(lambda rows, _: rows.to_reader(max_chunksize=2)),
    "dicts": clusterings(as_dict),  # type: ignore[arg-type]
    "from_dict": clusterings(lambda data: fb.Clustering.from_dict(as_dict(data))),
    "from_labels": clusterings(
        lambda data: fb.Clustering.from_labels(pa.array(data["cluster"], pa.int64()), items=data["item"])
    ),
    "from_series": clusterings(
        lambda data: fb.Clustering.from_series(pd.Series(data["cluster"], data["item"], dtype="Int64"))
    ),
    "from_table": clusterings(lambda data: fb.Clustering.from_table(arrow(data))),
    "from_clusters": clusterings(as_clusters),
    "from_pairs": clusterings(as_links),
}  # fmt: skip

#: Ways in that have further columns.
TABLES = [*list(WAYS)[5 : list(WAYS).index("dicts")], "from_table"]

#: Ways in that the disk engine reads block by block.
ON_DISK = [
    *(
        "Parquet",
        "CSV",
        "Arrow IPC",
        "directory",
        "Arrow readers",
        "table= Parquet",
        "table= Parquet without items",
    ),
    *("table= CSV", "table= directory", "table= reader"),
]


def call(way: Way, setting: Setting, folder: Path, **more: Any) -> fb.Evaluation | None:
    """Evaluate; None if the way in cannot express the rows."""
    made = way(setting.rows, folder)
    if made is None:
        return None
    own = {name: value for name, value in made.options.items() if name == "table" or name in setting.options}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EvaluationWarning)
        return fb.evaluate(*made.sides, **{**setting.options, **own}, **more)


def outcome(way: str, setting: Setting, folder: Path, **more: Any) -> dict[str, Any] | str | None:
    """Return the scores, the error's name if it is the one that the setting is, or None."""
    try:
        ev = call(WAYS[way], setting, folder, **more)
    except FastBCubedError as error:
        if type(error) is not setting.error:
            raise
        return type(error).__name__
    if ev is None:
        return None
    found = {name: ev.overall[name] for name in setting.options.get("metrics", ["precision", "recall", "f1"])}
    if "slices" in setting.options:
        listed = ev.slices("kind")
        found |= dict(zip(listed["kind"].to_pylist(), listed["precision"].to_pylist(), strict=True))
    return found


#: Ways whose code is that of others but for how they are opened.
ALIKE = {
    "NumPy objects",
    "Polars Series",
    "pandas frames",
    "lazy Polars",
    "DuckDB",
    "Arrow IPC",
    "list of files",
} | {
    *(
        "glob",
        "table= Polars",
        "table= columns",
        "table= directory",
        "table= reader",
        "from_dict",
        "from_table",
    ),
}


@pytest.mark.cases(0)
@pytest.mark.parametrize(
    "way", [pytest.param(way, marks=[pytest.mark.slow] * (way in ALIKE)) for way in WAYS]
)
def test_each_option_is_obeyed(way: str, tmp_path: Path) -> None:
    wrong = {}
    for name, setting in SETTINGS.items():
        right = setting.error.__name__ if setting.error else expected(setting)
        engines = (
            ["memory", "disk"] if way in ON_DISK and "overlapping" not in setting.options else ["memory"]
        )
        for engine in engines:
            folder = tmp_path / f"{len(wrong)} {name} {engine}"
            folder.mkdir()
            try:
                found = outcome(way, setting, folder, engine=engine)
            except ColumnError as error:  # a way in without columns
                found = str(error)
                if name == "slices" and "there is no attribute 'kind'" in found and way not in TABLES:
                    continue
            if found is not None and found != pytest.approx(right, abs=1e-12) and found != right:
                wrong[name, engine] = found, right
    assert not wrong


#: Items with a null on one side: with each of them alone, e and f lose half of their precision, c and d of recall.
HOLES = {"gold": ["a", "a", "b", "b", "c", None], "pred": ["x", "x", None, None, "z", "z"]}


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_nulls_of_one_table_in_all_verbs(
    engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(".csv", pyarrow.csv.write_csv)(pa.table(HOLES), tmp_path / "holes")
    rest: dict[str, Any] = {"table": path, "engine": engine}
    right = pytest.approx(5 / 6, abs=1e-15)
    ev = fb.evaluate("gold", "pred", nulls="singleton", **rest)
    assert (ev.precision, ev.recall, ev.coverage.n_null) == (right, right, 3)
    assert "3 rows with a null cluster: each in a cluster of its own (singleton)." in str(ev)
    run = fb.compare("gold", {"run": "pred"}, nulls="singleton", **rest)["run"]
    assert (run.precision, run.recall) == (right, right)
    diff = fb.diff("gold", "pred", nulls="singleton", **rest)
    assert (diff.split_rate, diff.merge_rate) == pytest.approx((1 / 6, 1 / 6), abs=1e-15)
    if engine == "memory":
        cells = fb.contingency("gold", "pred", table=path, nulls="singleton")
        assert fb.metrics.precision(contingency=cells) == right
        judged = fb.diff("gold", "pred", truth="gold", nulls="singleton", **rest)
        assert judged.split_rate == pytest.approx(1 / 6, abs=1e-15)
    for call in (
        lambda **how: fb.evaluate("gold", "pred", **rest, **how),
        lambda **how: fb.compare("gold", {"run": "pred"}, **rest, **how),
        lambda **how: fb.diff("gold", "pred", **rest, **how),
    ):
        for how in ({}, {"nulls": "raise"}):
            with pytest.raises(
                NullError, match=r'nulls="drop" if a null means that the item is missing from this side'
            ):
                call(**how)
    with pytest.warns(EvaluationWarning, match="kept its singletons|50.0|flatter"):
        dropped = fb.evaluate("gold", "pred", nulls="drop", **rest)
    assert (dropped.precision, dropped.contingency.n_items) == (1.0, 3)
    words = ["evaluate", "gold", "pred", "--table", path, "--engine", engine]
    assert main([*words, "--nulls", "singleton", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["overall"]["precision"] == right
    assert main(words) == 2
    assert "--nulls drop if a null means that the item is missing from this side" in capsys.readouterr().err


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_noise_of_one_side_in_all_verbs(
    engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The truth has a cluster -1 of two items; in the prediction, -1 is what no cluster was found for."""
    columns = {"true": [1, 1, -1, -1], "pred": [7, 7, -1, -1]}
    path = written(".csv", pyarrow.csv.write_csv)(pa.table(columns), tmp_path / "noise")
    rest: dict[str, Any] = {"table": path, "engine": engine}
    ev = fb.evaluate("true", "pred", noise={"prediction": -1}, **rest)
    assert (ev.precision, ev.recall, ev.coverage.n_noise) == (1, 3 / 4, 2)
    assert "2 rows labelled -1 on one side (noise)" in str(ev)
    assert ev.clusters("true")["cluster"].to_pylist() == [-1, 1]
    assert ev.clusters("pred")["cluster"].to_pylist().count(None) == 2
    ev.save(tmp_path / "saved", keep="cells")
    loaded = fb.load(tmp_path / "saved")
    assert (loaded.recall, loaded.definition["noise"]) == (3 / 4, {"prediction": -1})
    assert fb.compare("true", {"a": "pred"}, noise={"prediction": -1}, **rest)["a"].recall == 3 / 4
    diff = fb.diff("true", "pred", noise={"experiment": -1}, **rest)
    assert (diff.split_rate, diff.merge_rate) == (1 / 4, 0)
    with pytest.raises(OptionError, match="but the sides are named baseline and experiment"):
        fb.diff("true", "pred", noise={"prediction": -1}, **rest)
    words = ["evaluate", "true", "pred", "--table", path, "--engine", engine, "--json"]
    assert main([*words, "--noise", "prediction=-1"]) == 0
    assert json.loads(capsys.readouterr().out)["overall"]["recall"] == 3 / 4
    assert main([*words, "--noise=truth=-1,prediction=-1"]) == 0
    assert json.loads(capsys.readouterr().out)["overall"]["recall"] == 1
