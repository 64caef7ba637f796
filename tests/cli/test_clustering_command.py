"""``fastbcubed cluster``, and links as input of ``evaluate``: flags, files, messages."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from versions import rich_knows_widths

import fastbcubed as fb
from fastbcubed.cli import main as cli

LINKS = {
    "unique_id_l": ["a", "b", "d", "a"],
    "unique_id_r": ["b", "c", "e", "a"],
    "match_probability": [0.95, 0.5, 0.9, 1.0],
}
TRUTH = {"item": list("abcdef"), "cluster": [1, 1, 1, 2, 2, 2]}


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pq.write_table(pa.table(LINKS), "links.parquet")
    pq.write_table(pa.table(TRUTH), "truth.parquet")


def test_clusters_are_written_and_told(capsys: pytest.CaptureFixture[str]) -> None:
    argv = [
        "cluster",
        "links.parquet",
        "--threshold",
        "0.9",
        "--items",
        "truth.parquet",
        "--out",
        "c.parquet",
    ]
    assert cli.main(argv) == 0
    assert pq.read_table("c.parquet").to_pydict() == {"item": list("abcdef"), "cluster": [0, 0, 1, 2, 2, 3]}
    shown = capsys.readouterr()
    assert "4 links of 6 items (links.parquet)" in shown.out
    assert "read as left = unique_id_l, right = unique_id_r, score = match_probability" in shown.out
    assert shown.out.splitlines()[-1].split() == ["0.9", "3", "4", "2", "2"]
    assert "--items" not in shown.out
    assert shown.err.splitlines()[-1] == "fastbcubed: wrote c.parquet: 6 rows"


def test_several_thresholds_give_a_column_each(capsys: pytest.CaptureFixture[str]) -> None:
    argv = [
        "cluster",
        "links.parquet",
        "--threshold",
        "0.4,0.9",
        "--threshold",
        "1",
        "--out",
        "c.parquet",
        "--json",
    ]
    assert cli.main(argv) == 0
    table = pq.read_table("c.parquet")
    assert table.to_pydict() == {
        "unique_id": list("abcde"),
        "cluster_p_0_4": [0, 0, 0, 1, 1],
        "cluster_p_0_9": [0, 0, 1, 2, 2],
        "cluster_p_1_0": [0, 1, 2, 3, 4],
    }
    told = json.loads(capsys.readouterr().out)
    assert told["clusterings"][1] == {
        "threshold": 0.9, "column": "cluster_p_0_9", "n_connecting": 3, "clusters": 3, "singletons": 1, "largest": 2,
        "n_contradicted": 0,
    }  # fmt: skip
    assert (told["n_links"], told["n_items"], told["all_items_given"]) == (4, 5, False)
    assert told["columns"] == {
        "left": ["unique_id_l"], "right": ["unique_id_r"], "score": "match_probability", "verdict": None,
        "tool": "Splink",
    }  # fmt: skip
    for column in table.column_names[1:]:
        ev = fb.evaluate("cluster_p_0_4", column, table=table)
        assert (ev.precision, ev.recall == 1) == (1.0, column == "cluster_p_0_4")


def test_a_threshold_that_is_named_twice_gives_one_column() -> None:
    assert cli.main(["cluster", "links.parquet", "--threshold", ".9,.4,.9", "--out", "c.parquet"]) == 0
    assert pq.read_table("c.parquet").column_names == ["unique_id", "cluster_p_0_9", "cluster_p_0_4"]


@rich_knows_widths
def test_all_links_connect_without_a_threshold(capsys: pytest.CaptureFixture[str]) -> None:
    Path("links.csv").write_text("a b,b,dist\n1,2,0.5\n2,3,2\n4,4,9\n")
    assert cli.main(["cluster", "links.csv", "--left", "a b", "--right", "b", "--out", "c.parquet"]) == 0
    assert pq.read_table("c.parquet").to_pydict() == {"item": [1, 2, 3, 4], "cluster": [0, 0, 0, 1]}
    shown = capsys.readouterr().out
    assert "\nall            3         2           1        3\n" in shown
    assert "Items without links are not included" in shown
    argv = ["cluster", "links.csv", "--left", "a b", "--right", "b", "--ascending", "--threshold", "1,5"]
    assert cli.main([*argv, "--out", "d.parquet"]) == 0
    assert pq.read_table("d.parquet").column_names == ["item", "cluster_1", "cluster_5"]
    assert pq.read_table("d.parquet")["cluster_1"].to_pylist() == [0, 0, 1, 2]


def test_no_links(capsys: pytest.CaptureFixture[str]) -> None:
    pq.write_table(
        pa.table({"left": pa.array([], pa.string()), "right": pa.array([], pa.string())}), "none.parquet"
    )
    assert cli.main(["cluster", "none.parquet"]) == 0
    assert cli.main(["cluster", "none.parquet", "--items", "truth.parquet", "--out", "c.parquet"]) == 0
    assert pq.read_table("c.parquet")["cluster"].to_pylist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--threshold high", "--threshold takes a number, or several separated by commas, not 'high'"),
        ("--threshold nan", "--threshold must be a number, the minimum link score, not nan"),
        ("--out clusters.csv", "--out must name a Parquet file"),
        ("--out no/where/c.parquet --threshold 0.9", ""),
        ("--left unique_id_l", "--right is missing"),
        ("--left unique_id_l --right unique_idr", "Did you mean --right unique_id_r?"),
        (
            "--threshold 0.9 --items few.parquet",
            "4 items of links.parquet are not among the 1 items given",
        ),
    ],
)
def test_wrong_use(flags: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    pq.write_table(pa.table({"unique_id": ["a"], "x": [1]}), "few.parquet")
    code = cli.main(["cluster", "links.parquet", *flags.split()])
    assert code == (2 if message else 0)
    assert message in capsys.readouterr().err


def test_warnings_are_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["cluster", "links.parquet", "--threshold", "5"]) == 0
    assert "fastbcubed: warning: No link of links.parquet has a score of 5 or more" in capsys.readouterr().err
    assert cli.main(["cluster", "links.parquet", "--threshold", "1.000000001"]) == 0
    said = capsys.readouterr()
    assert (
        "a score of 1.000000001 or more: those in column 'match_probability' range from 0.5 to 1." in said.err
    )
    assert "1.000000001" in said.out


# -- evaluate --------------------------------------------------------------------------------------


def _scores(capsys: pytest.CaptureFixture[str], *argv: str) -> dict[str, object]:
    assert cli.main(["evaluate", *argv, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_evaluate_takes_links(capsys: pytest.CaptureFixture[str]) -> None:
    found = _scores(capsys, "truth.parquet", "links.parquet", "--links", "--threshold", "0.9")
    made = fb.Clustering.from_links(LINKS, threshold=0.9)
    expected = fb.evaluate(TRUTH_BY_ITEM, made)
    assert found["overall"] == expected.overall
    assert found["definition"]["unmatched"] == {"truth": "singleton", "prediction": "drop"}  # type: ignore[index]
    assert {"unlinked-alone", "made-of-links"} <= {warning["code"] for warning in found["warnings"]}  # type: ignore[attr-defined]
    swapped = _scores(capsys, "links.parquet", "truth.parquet", "--links=truth", "--threshold", "0.9")
    assert swapped["truth"] == "links.parquet"
    dropped = _scores(
        capsys, "truth.parquet", "links.parquet", "--links", "--threshold", "0.4", "--unmatched", "drop"
    )
    assert dropped["overall"]["recall"] == 1  # type: ignore[index]
    given = _scores(
        capsys, "truth.parquet", "links.parquet", "--links", "--threshold", "0.9", "--link-items", "truth.parquet",
        "--link-left", "unique_id_l", "--link-right", "unique_id_r", "--link-score", "match_probability",
    )  # fmt: skip
    assert (given["overall"], given["coverage"]["n_truth_only"]) == (found["overall"], 0)  # type: ignore[index]


TRUTH_BY_ITEM = dict(zip(TRUTH["item"], TRUTH["cluster"], strict=True))


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--threshold 0.9", "--threshold goes with --links"),
        ("--link-score x", "--link-score goes with --links"),
        ("--links --table truth.parquet", "--links needs two inputs"),
        ("--links --link-left unique_id_l", "--link-right is missing"),
        ("--links --link-left unique_id_l --link-right unique_idr", "Did you mean --link-right unique_id_r?"),
        ("--links --link-score prob", "Name the right one with --link-score."),
        ("--links=all", "invalid choice: 'all'"),
    ],
)
def test_wrong_use_of_links(flags: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["evaluate", "truth.parquet", "links.parquet", *flags.split()]) == 2
    assert message in capsys.readouterr().err


def test_links_without_the_flag(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["evaluate", "truth.parquet", "links.parquet"]) == 2
    assert "looks like a table of links, pairs of items: pass --links." in capsys.readouterr().err


def test_clusters_of_links_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    argv = [
        "show",
        "truth.parquet",
        "links.parquet",
        "--links",
        "--threshold",
        "0.9",
        "--item",
        "c",
        "--json",
    ]
    assert cli.main(argv) == 0
    (opened,) = json.loads(capsys.readouterr().out)["opened"]
    assert (opened["tp"], opened["fn"]) == (1.0, 2.0)
