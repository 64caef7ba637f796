"""What each column was taken for: one object, in JSON and saved results of every verb, and in the note."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastbcubed as fb
from fastbcubed.cli import main as cli
from fastbcubed.errors import ColumnError

TRUTH = pa.table({"id": [1, 2, 3, 4], "person": ["a", "a", "b", "b"]})
FOUND = pa.table({"cluster_id": [1, 1, 2, 3], "unique_id": [1, 2, 3, 4], "label": [0, 0, 0, 0]})
LINKS = pa.table(
    {"unique_id_l": [1, 3], "unique_id_r": [2, 4], "match_probability": [0.9, 0.6], "score": [1, 2]}
)
NAMES: dict[str, Any] = {"item": ("id", None), "cluster": ("person", None)}


def part(*columns: str, why: str, others: tuple[str, ...] = ()) -> dict[str, Any]:
    return {"columns": list(columns), "reason": why, "others": [[name] for name in others]}


OF_TRUTH = {"item": part("id", why="named"), "cluster": part("person", why="named"), "tool": None}
OF_FOUND = {
    "item": part("unique_id", why="name that a tool writes"),
    "cluster": part("cluster_id", why="name that a tool writes", others=("label",)),
    "tool": "Splink",
}
OF_LINKS = {
    "left": part("unique_id_l", why="name that a tool writes"),
    "right": part("unique_id_r", why="name that a tool writes"),
    "score": part("match_probability", why="default name", others=("score",)),
    "sources": None,
    "tool": "Splink",
}


@pytest.fixture
def paths(tmp_path: Path) -> tuple[str, str]:
    for name, table in (("truth", TRUTH), ("found", FOUND)):
        pq.write_table(table, tmp_path / f"{name}.parquet")
    return str(tmp_path / "truth.parquet"), str(tmp_path / "found.parquet")


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_evaluations(engine: Any, paths: tuple[str, str], tmp_path: Path) -> None:
    ev = fb.evaluate(*paths, **NAMES, engine=engine, out=tmp_path / "out")
    assert ev.reading == {"truth": OF_TRUTH, "prediction": OF_FOUND}
    note = next(each for each in ev.warnings if each["code"] == "columns-recognised")
    for name in ("item", "cluster"):
        own = ev.reading["prediction"][name]
        assert note[name] == own["columns"] and note["reasons"][name] == own["reason"]
    assert [[name] for name in note["others"]] == ev.reading["prediction"]["cluster"]["others"]
    saved = json.loads((tmp_path / "out" / "overall.json").read_text())
    for found in (json.loads(ev.to_json()), saved, fb.load(tmp_path / "out").to_dict()):
        assert found["reading"] == ev.reading


def test_ways_in_without_columns_and_with_one_table() -> None:
    assert fb.evaluate([0, 0], [1, 2]).reading == {"truth": None, "prediction": None}
    wide = pa.table({"a": [1, 1], "b": [1, 2], "item": [7, 8]})
    named = {"item": part("item", why="default name"), "tool": None}
    assert fb.evaluate("a", "b", table=wide).reading == {
        "truth": {**named, "cluster": part("a", why="named")},
        "prediction": {**named, "cluster": part("b", why="named")},
    }
    by_row = fb.evaluate("a", "b", table=wide.drop_columns(["item"])).reading
    assert by_row["truth"]["item"] == part(why="row number")


def test_links_and_sweeps(tmp_path: Path) -> None:
    truth = fb.Clustering.from_table(TRUTH, item="id", cluster="person")
    ev = fb.evaluate(truth, fb.Clustering.from_links(LINKS, threshold=0.7))
    assert ev.reading == {"truth": OF_TRUTH, "prediction": OF_LINKS}
    sweep = fb.sweep(truth, LINKS)
    assert sweep.reading == sweep.to_dict()["reading"] == {"truth": OF_TRUTH, "links": OF_LINKS}
    sweep.save(tmp_path)
    assert fb.load(tmp_path).reading == sweep.reading
    judged = pa.table({"a": [1, 3], "b": [2, 4], "same": ["yes", "no"]})
    made = fb.evaluate(truth, fb.Clustering.from_links(judged, "a", "b", verdict="same")).reading[
        "prediction"
    ]
    assert (made["left"], made["verdict"]) == (part("a", why="named"), part("same", why="named"))
    assert fb.evaluate(truth, fb.Clustering.from_pairs([1, 3], [2, 4])).reading["prediction"] is None


def test_comparisons_and_diffs(tmp_path: Path) -> None:
    cmp = fb.compare(TRUTH, {"a": FOUND, "b": FOUND}, **NAMES)
    assert cmp.to_dict()["runs"]["b"]["reading"] == {"truth": OF_TRUTH, "prediction": OF_FOUND}
    cmp.save(tmp_path / "cmp")
    assert fb.load(tmp_path / "cmp")["a"].reading == cmp["a"].reading
    diff = fb.diff(FOUND, FOUND, truth=TRUTH, item=(None, None, "id"), cluster=(None, None, "person"))
    sides = {"baseline": OF_FOUND, "experiment": OF_FOUND, "truth": OF_TRUTH}
    assert diff.reading == diff.to_dict()["reading"] == sides
    diff.save(tmp_path / "diff")
    assert fb.load(tmp_path / "diff").reading == sides
    assert fb.diff(FOUND, {1: 0, 2: 0}).reading == {"baseline": OF_FOUND, "experiment": None}
    judged = fb.diff(TRUTH, TRUTH, truth=FOUND, item=("id", "id", None), cluster=("person", "person", None))
    said = [each["message"] for each in judged.warnings if each["code"] == "columns-recognised"]
    assert said == [
        "The columns of the truth are read as Splink writes them: item = unique_id, cluster = cluster_id. "
        "Not read as clusters: label."
    ]


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_estimates(engine: Any, paths: tuple[str, str], tmp_path: Path) -> None:
    found = fb.estimate(*paths, **NAMES, engine=engine)
    assert found.reading == found.to_dict()["reading"] == {"sample": OF_TRUTH, "prediction": OF_FOUND}
    found.save(tmp_path / "out")
    assert fb.load(tmp_path / "out").reading == found.reading
    pairs = pa.table({"left": [1, 1], "right": [2, 3], "verdict": ["same", "different"]})
    judged = fb.estimate_pairs(pairs, prediction={"new": FOUND})
    own = {name: part(name, why="default name") for name in ("left", "right")}
    own |= {"verdict": part("verdict", why="default name"), "sources": None, "tool": None}
    assert judged.reading == {"labelled": own, "prediction": {"new": OF_FOUND}}
    assert fb.estimate_pairs(pairs, prediction=FOUND).to_dict()["reading"]["prediction"] == OF_FOUND
    judged.save(tmp_path / "pairs")
    assert fb.load(tmp_path / "pairs").reading == judged.reading


def test_the_command_line(paths: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["evaluate", *paths, "--item", "id,", "--cluster", "person,", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["reading"] == {"truth": OF_TRUTH, "prediction": OF_FOUND}


@pytest.mark.parametrize("name", ["entity_id", "label", "group", "Group_ID", "predicted"])
def test_columns_beside_cluster_are_asked_for(name: str) -> None:
    table = pa.table({"item": [1, 2], "cluster": [1, 1], name: [1, 2]})
    with pytest.raises(
        ColumnError, match=f'in 2 ways .* cluster=\\("cluster", "{name}"\\); or cluster="cluster"'
    ):
        fb.evaluate({1: 1, 2: 2}, table, cluster=("cluster", None))
