"""Links between two tables whose rows are numbered alike: an item is the name of its table and its number."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import fastbcubed as fb
from fastbcubed.cli.main import main
from fastbcubed.errors import ColumnError, OptionError

#: A0–B1, A1–B0 and A2–B2 are six items of three clusters; as numbers alone they would be three items of two clusters.
LINKS = {"ltable_id": [0, 1, 2], "rtable_id": [1, 0, 2]}
TRUTH = {"source": list("AAABBB"), "id": [0, 1, 2, 1, 0, 2], "cluster": [1, 2, 3, 1, 2, 3]}


@pytest.mark.parametrize("made", [dict, pd.DataFrame, pa.table, lambda links: pa.table(links).to_reader()])
def test_two_tables_have_six_items(made: Any) -> None:
    with pytest.raises(ColumnError, match=r'ids of two tables.*sources=\("a", "b"\).*sources=False'):
        fb.Clustering.from_links(made(LINKS))
    found = fb.Clustering.from_links(made(LINKS), sources=("A", "B"))
    assert found.to_table().to_pydict() == {
        "source": list("ABABAB"), "id": [0, 1, 1, 0, 2, 2], "cluster": [0, 0, 1, 1, 2, 2],
    }  # fmt: skip
    ev = fb.evaluate(fb.Clustering.from_table(TRUTH, item=["source", "id"]), found)
    assert (len(found), ev.precision, ev.recall) == (6, 1.0, 1.0)
    assert len(fb.Clustering.from_links(made(LINKS), sources=False)) == 3


def test_a_multiindex_of_two_frames_and_the_list_of_all_items() -> None:
    pairs = pd.MultiIndex.from_arrays(list(LINKS.values()), names=["rec_id_1", "rec_id_2"])
    for given in (pairs, pairs[:2], pd.Series(1.0, index=pairs), pd.DataFrame({"score": 1.0}, index=pairs)):
        with pytest.raises(
            ColumnError, match=r"MultiIndex.*with (itself|another in both orders).*sources="
        ) as said:
            fb.Clustering.from_links(given)
    assert "pairs id 2 with itself" in str(said.value) or "pairs id 0 with another in both orders" in str(
        said.value
    )
    assert len(fb.Clustering.from_links(pairs, sources=False)) == 3
    assert (
        len(fb.Clustering.from_links(pd.MultiIndex.from_arrays([[1, 2, 2], [0, 0, 1]]))) == 3
    )  # of one frame
    beside = pd.DataFrame({"left": [1], "right": [2]}, index=pd.MultiIndex.from_arrays([[0], [0]]))
    assert len(fb.Clustering.from_links(beside)) == 2
    items = pd.DataFrame({"source": list("AAABBBB"), "id": [0, 1, 2, 0, 1, 2, 3]})
    found = fb.Clustering.from_links(pairs, sources=["A", "B"], items=items, item=["source", "id"])
    assert found.labels.keys().tolist() == [0, 1, 2, 1, 0, 2, 3]


def test_arrays_of_pairs_take_sources() -> None:
    left, right = LINKS.values()
    found = fb.Clustering.from_pairs(left, right, sources=("A", "B"))
    assert found.to_table().to_pydict()["source"] == list("ABABAB")
    assert fb.evaluate(fb.Clustering.from_table(TRUTH, item=["source", "id"]), found).f1 == 1.0
    assert len(fb.Clustering.from_pairs(left, right)) == 3
    with pytest.raises(OptionError, match="names the tables"):
        fb.Clustering.from_pairs(left, right, sources="ab")  # type: ignore[arg-type]


def test_a_sweep_takes_sources() -> None:
    links = LINKS | {"score": [0.9, 0.8, 0.7]}
    sweep = fb.sweep(pd.DataFrame(TRUTH), links, sources=("A", "B"), item=["source", "id"])
    best = sweep.best("f1")
    assert (best.threshold, best.value) == (0.7, 1.0)


@pytest.mark.parametrize("sources", ["ab", ("a",), ("a", 1), ("a", ""), True])
def test_sources_that_are_none(sources: Any) -> None:
    with pytest.raises(OptionError, match="names the tables of the left and the right items"):
        fb.Clustering.from_links(LINKS, sources=sources)


def test_a_source_that_is_there_is_not_named_again() -> None:
    links = {"source_dataset_l": ["a"], "source_dataset_r": ["b"], "unique_id_l": [1], "unique_id_r": [1]}
    with pytest.raises(OptionError, match="omit it"):
        fb.Clustering.from_links(links, sources=("a", "b"))


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    links, truth = str(tmp_path / "links.csv"), str(tmp_path / "truth.csv")
    pd.DataFrame(LINKS).to_csv(links, index=False)
    pd.DataFrame(TRUTH).to_csv(truth, index=False)
    assert main(["cluster", links]) == 2
    assert "--link-sources a,b" in (said := capsys.readouterr().err) and "--no-link-sources" in said
    assert main(["cluster", links, "--link-sources", "A,B", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["n_items"] == 6
    assert (
        main(["evaluate", truth, links, "--links", "--link-sources", "A,B", "--item", "source+id", "--json"])
        == 0
    )
    assert json.loads(capsys.readouterr().out)["overall"]["f1"] == 1
