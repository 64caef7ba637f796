"""Verdicts on links: matches join, other pairs are kept apart and used, and a column that may have any is asked for."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import fastbcubed as fb
from fastbcubed.cli.main import main
from fastbcubed.errors import ColumnError, EvaluationWarning, FastBCubedError, JudgementError
from fastbcubed.inputs.verdicts import MEANT, NAMES, VERDICTS, as_verdicts

#: Truth a b | c d | e; of four pairs two match, so that all rows together would join a b c d.
TRUTH = {"a": 1, "b": 1, "c": 2, "d": 2, "e": 3}
LEFT, RIGHT, MATCH = ["a", "b", "c", "d"], ["b", "c", "d", "e"], [True, False, True, False]
SPELLINGS: dict[str, list[Any]] = {
    "0 and 1": [int(each) for each in MATCH],
    "floats": [float(each) for each in MATCH],
    "booleans": MATCH,
    "texts": ["1" if each else "0" for each in MATCH],
    "words": ["Yes" if each else "no" for each in MATCH],
    "true and false": [str(each) for each in MATCH],
    "verdicts": ["same" if each else "different" for each in MATCH],
    "matches": ["match" if each else "non-match" for each in MATCH],
}
WAYS: dict[str, Callable[[dict[str, Any], Path], Any]] = {
    "dict": lambda columns, _: columns,
    "pandas": lambda columns, _: pd.DataFrame(columns),
    "polars": lambda columns, _: pl.DataFrame(columns),
    "arrow": lambda columns, _: pa.table(columns),
    "stream": lambda columns, _: pa.table(columns).to_reader(),
    "data set": lambda columns, path: ds.dataset(written(columns, path)),
    "parquet": lambda columns, path: written(columns, path),
    "csv": lambda columns, path: as_csv(columns, path),
    "json lines": lambda columns, path: as_lines(columns, path),
}


def written(columns: dict[str, Any], path: Path) -> Path:
    pq.write_table(pa.table(columns), path / "links.parquet")
    return path / "links.parquet"


def as_csv(columns: dict[str, Any], path: Path) -> Path:
    pd.DataFrame(columns).to_csv(path / "links.csv", index=False)
    return path / "links.csv"


def as_lines(columns: dict[str, Any], path: Path) -> Path:
    pd.DataFrame(columns).to_json(path / "links.jsonl", orient="records", lines=True)
    return path / "links.jsonl"


def table(name: str, values: list[Any]) -> dict[str, Any]:
    return {"record_id_a": LEFT, "record_id_b": RIGHT, name: values}


def sets(clustering: fb.Clustering) -> set[frozenset[str]]:
    found = clustering.to_table()
    groups: dict[int, set[str]] = {}
    for item, label in zip(found.column(0).to_pylist(), found.column(1).to_pylist(), strict=True):
        groups.setdefault(label, set()).add(item)
    return set(map(frozenset, groups.values()))


RIGHT_SETS = {frozenset("ab"), frozenset("cd"), frozenset("e")}


@pytest.mark.cases(18)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_matches_join_and_other_pairs_do_not(way: str, spelling: str, tmp_path: Path) -> None:
    columns = table("is_match", SPELLINGS[spelling])
    with pytest.raises(ColumnError, match='Pass verdict="is_match"'):
        fb.Clustering.from_links(WAYS[way](columns, tmp_path))
    made = fb.Clustering.from_links(WAYS[way](columns, tmp_path), verdict="is_match")
    assert sets(made) == RIGHT_SETS
    ev = fb.evaluate(TRUTH, made)
    assert ev.overall["precision"] == ev.overall["recall"] == 1
    (note,) = [each for each in ev.warnings if each["code"] == "made-of-links"]
    assert (note["n_links"], note["n_judged_different"], note["verdict"]) == (2, 2, "is_match")


@pytest.mark.parametrize("name", NAMES)
def test_every_name_of_verdicts_is_asked_for(name: str) -> None:
    values = [1, 0, 1, 0]
    with pytest.raises(ColumnError, match=f'verdict="{name}"'):
        fb.Clustering.from_links(table(name, values))
    assert sets(fb.Clustering.from_links(table(name.upper(), values), verdict=name.upper())) == RIGHT_SETS


def test_columns_without_such_a_name_are_asked_for_by_their_values() -> None:
    for values in (MATCH, ["yes", "no", "yes", None]):
        with pytest.raises(ColumnError, match="verdict="):
            fb.Clustering.from_links(table("other", values))
    for values in ([1, 0, 1, 0], [0.9, 0.5, 1.0, 0.7], ["1", "0", "1", "0"], ["x", "no", "yes", "no"]):
        assert len(sets(fb.Clustering.from_links(table("other", values)))) == 1
    assert len(sets(fb.Clustering.from_links(table("is_match", [0.9, 0.5, 1.0, 0.8])))) == 1  # scores


def test_all_rows_join_if_no_column_has_verdicts() -> None:
    assert len(sets(fb.Clustering.from_links(table("is_match", MATCH), verdict=False))) == 1


def test_a_flag_beside_a_score_that_is_used_is_not_asked_for_but_a_verdict_is() -> None:
    scores = [0.9, 0.2, 0.9, 0.2]
    flagged = table("same_country", MATCH) | {"score": scores}
    assert sets(fb.Clustering.from_links(flagged, threshold=0.5)) == RIGHT_SETS
    assert fb.sweep(TRUTH, flagged).best("f1").threshold == 0.9
    for call in (fb.Clustering.from_links, lambda links: fb.sweep(TRUTH, links)):
        with pytest.raises(ColumnError, match='verdict="is_match"'):
            call(table("is_match", MATCH) | {"score": scores})


def test_columns_that_come_in_pairs_are_of_the_items() -> None:
    links = table("x", [0.6, 0.7, 0.8, 0.9]) | {"member_a": MATCH, "member_b": MATCH}
    assert len(sets(fb.Clustering.from_links(links, "record_id_a", "record_id_b"))) == 1


def test_pairs_without_verdict_and_unsure_ones_join_nothing() -> None:
    made = fb.Clustering.from_links(
        table("verdict", ["same", "unsure", "same", ""]), verdict="verdict", items=list("abcdef")
    )
    assert sets(made) == {*RIGHT_SETS, frozenset("f")}
    assert made.links is not None
    assert (made.links.n_links, made.links.n_apart, made.links.n_unsure) == (2, 0, 2)


def test_pairs_as_tuples_and_arrays() -> None:
    tuples = list(zip(LEFT, RIGHT, MATCH, strict=True))
    with pytest.raises(ColumnError, match='verdict="verdict"'):
        fb.Clustering.from_links(tuples)
    assert sets(fb.Clustering.from_links(tuples, verdict="verdict")) == RIGHT_SETS
    assert sets(fb.Clustering.from_pairs(LEFT, RIGHT, verdict=MATCH)) == RIGHT_SETS
    with pytest.raises(ColumnError, match="4 pairs, but 1 verdict"):
        fb.Clustering.from_pairs(LEFT, RIGHT, verdict=[True])


def test_a_pair_judged_different_that_matches_join_all_the_same_is_warned_of() -> None:
    """a–b and b–c match, so that a and c, judged different, are in one cluster; c–d is not contradicted."""
    links = [("a", "b", True), ("b", "c", True), ("a", "c", False), ("c", "d", False)]
    with pytest.warns(EvaluationWarning, match=r"1 of the 2 pairs of the links .*first: \('a', 'c'\)"):
        made = fb.Clustering.from_links(links, verdict="verdict")
    truth = dict.fromkeys("abcd", 1)
    for other in (
        fb.Clustering.from_labels(list("xxxy"), items=list("abcd")),
        fb.Clustering.from_dict(truth),
    ):
        for sides in ((other, made), (made, other)):
            with pytest.warns(EvaluationWarning, match="1 of the 2 pairs"):
                notes = fb.evaluate(*sides, metrics="f1").warnings
            (found,) = [each for each in notes if each["code"] == "verdicts-contradicted"]
            assert found["n_contradicted"] == 1 and found["n_judged_different"] == 2
            assert found["level"] == "warning" and found["first"] == [["a", "c"]]


def test_a_sweep_keeps_pairs_apart_and_warns_where_they_are_joined() -> None:
    """At 0.8 all of a, b and c are joined by matches, which is best; a–c is judged different, and no link."""
    links = {
        "left": list("aba"), "right": list("bcc"), "score": [0.9, 0.8, 0.99], "verdict": ["same", "same", "different"],
    }  # fmt: skip
    with pytest.warns(EvaluationWarning, match="1 of the 1 pairs"):
        sweep = fb.sweep({"a": 1, "b": 1, "c": 1}, links, verdict="verdict")
    assert sweep.best("f1").threshold == 0.8
    assert [each["first"] for each in sweep.warnings if each["code"] == "verdicts-contradicted"] == [
        [["a", "c"]]
    ]
    with pytest.warns(EvaluationWarning, match="1 of the 1 pairs"):
        by_position = fb.sweep([1, 1, 1], links | {"left": [0, 1, 0], "right": [1, 2, 2]}, verdict="verdict")
    assert [each["first"] for each in by_position.warnings if each["code"] == "verdicts-contradicted"] == [
        [[0, 2]]
    ]


def test_what_is_no_verdict_is_told_with_count() -> None:
    with pytest.raises(JudgementError, match=r"1 of 4 in column 'is_match' of the links .*first: 'perhaps'"):
        fb.Clustering.from_links(table("is_match", ["yes", "no", "perhaps", "yes"]), verdict="is_match")
    for wrong in (1, True, ["is_match"]):
        with pytest.raises(FastBCubedError, match="verdict must be the name of a column"):
            fb.Clustering.from_links(table("is_match", MATCH), verdict=wrong)
    with pytest.raises(ColumnError, match="no column 'x'"):
        fb.Clustering.from_links(table("is_match", MATCH), verdict="x")
    with pytest.raises(
        ColumnError, match="cannot hold verdicts, because it is already an item or score column"
    ):
        fb.Clustering.from_links(
            table("is_match", MATCH), "record_id_a", "record_id_b", verdict="record_id_a"
        )


def test_every_word_has_one_meaning() -> None:
    assert set(MEANT.values()) == set(VERDICTS)
    assert as_verdicts(pa.array([" Yes ", "NO", None, "not sure"]), "v", "x").tolist() == [
        1,
        0,
        -2,
        -1,
    ]  # -2: none
    assert as_verdicts(pa.array([0, 1, 2]), "z_isMatch", "x").tolist() == [0, 1, -1]


def test_the_command_line_takes_verdicts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    links = str(as_csv(table("is_match", [1, 0, 1, 0]), tmp_path))
    truth = str(tmp_path / "truth.csv")
    pd.DataFrame({"item": list(TRUTH), "cluster": list(TRUTH.values())}).to_csv(truth, index=False)
    out = str(tmp_path / "c.parquet")
    assert main(["cluster", links]) == 2
    assert "--verdict is_match" in (said := capsys.readouterr().err) and "--no-verdict" in said
    assert main(["cluster", links, "--verdict", "is_match", "--json", "--out", out]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["n_links"], found["n_judged_different"], found["columns"]["verdict"]) == (2, 2, "is_match")
    assert sets(fb.Clustering.from_table(out)) == RIGHT_SETS
    assert main(["cluster", links, "--no-verdict"]) == 0
    assert "4 links" in capsys.readouterr().out
    for engine in ("memory", "disk"):
        flags = ["--verdict", "is_match", "--engine", engine, "--json"]
        assert main(["evaluate", truth, links, "--links", *flags]) == 0
        assert json.loads(capsys.readouterr().out)["overall"]["f1"] == 1
    assert main(["evaluate", truth, links, "--verdict", "is_match"]) == 2
    assert "--verdict goes with --links" in capsys.readouterr().err
