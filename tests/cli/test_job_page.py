"""The page of a job: an evaluation as Markdown, whatever its names are."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastbcubed as fb
from fastbcubed.cli import main as cli

#: Precision is (1/2 + 1 + 1/2) / 3 = 2/3, recall (1/2 + 1/2 + 1) / 3 = 2/3: items 1 and 3 are merged, 1 and 2 split.
TRUTH = {"item": [1, 2, 3], "cluster": ["t|1", "t|1", "`t`2"], "country": ["a|b", "a|b", "*x*\ny"]}
PREDICTION = {"item": [1, 2, 3], "cluster": ["<p>", "_q_", "<p>"]}


def write(tmp_path: Path, name: str, columns: dict[str, list]) -> str:
    pq.write_table(pa.table(columns), tmp_path / f"{name}.parquet")
    return str(tmp_path / f"{name}.parquet")


def page_of(tmp_path: Path, *arguments: str, code: int = 0) -> str:
    """Return the page that `evaluate` writes."""
    page = tmp_path / "page.md"
    page.unlink(missing_ok=True)
    assert cli.main(["evaluate", *arguments, "--summary", str(page)]) == code
    return page.read_text(encoding="utf-8")


def cells(line: str) -> list[str]:
    """Return the cells of a row of a table, as a reader of Markdown sees them."""
    found = re.split(r"(?<!\\)\|", line.strip())
    return [re.sub(r"\\(\W|_)", r"\1", cell.strip()) for cell in found[1:-1]]


def table_below(text: str, header: str) -> list[list[str]]:
    """Return the rows of the table whose header begins like this."""
    lines = text[text.index(f"| {header} |") :].split("\n\n")[0].splitlines()
    return [cells(line) for line in lines[2:]]


def test_it_is_added_to_a_file(tmp_path, paths) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Job\n\n")
    assert cli.main(["evaluate", *paths, "--summary", str(page), "--fail-under", "f1=0.9"]) == 1
    assert cli.main(["evaluate", paths[0], paths[0], "--summary", str(page), "--fail-under", "f1=0.9"]) == 0
    text = page.read_text()
    assert text.startswith("# Job\n\n## fastbcubed: 3 items ✗\n") and text.endswith("\n\n")
    assert "\n\n## fastbcubed: 3 items ✓\n" in text


def test_a_page_that_cannot_be_written_is_said(tmp_path, paths, capsys) -> None:
    assert cli.main(["evaluate", *paths, "--summary", str(tmp_path / "no" / "page.md")]) == 2
    assert "No such file or directory" in capsys.readouterr().err


def test_the_verdict_comes_first_and_scores_have_errors(tmp_path, paths) -> None:
    text = page_of(tmp_path, *paths)
    assert (
        "Both wrong merges and wrong splits contribute: on average, 33.3 % of an item's predicted cluster"
        in text
    )
    assert "Of 2 true clusters 0 (0 %) are exact" in text
    assert text.index("F1 0.6") < text.index("Of 2 true clusters") < text.index("| score | value |")
    rows = table_below(text, "score | value")
    # there is one unit
    assert [row[:2] for row in rows[:3]] == [
        ["precision", "0.66667"],
        ["recall", "0.66667"],
        ["f1", "0.66667"],
    ]
    assert rows[0][2] == "mean of tp / (tp + fp)" and not any(row[0].startswith("over") for row in rows)
    pairs = {"item": list(range(8)), "cluster": [0, 0, 1, 1, 2, 2, 3, 3]}
    cut = {"item": list(range(8)), "cluster": [0, 0, 1, 1, 2, 2, 3, 4]}
    text = page_of(tmp_path, write(tmp_path, "a", pairs), write(tmp_path, "b", cut))
    rows = table_below(text, "score | value")
    # four pairs, one of which is cut: an error of sqrt(4/3 * (3 * 0.25**2 + 0.75**2)) / 8 = 0.125
    low, high = fb.evaluate(pairs["cluster"], cut["cluster"]).interval("recall")
    assert rows[1][:2] == ["recall", f"0.875 ({low:.3f} to {high:.3f})"]


def test_rates_that_are_asked_for_alone_are_there(tmp_path, paths) -> None:
    (row,) = table_below(page_of(tmp_path, *paths, "--metric", "over_merge_rate"), "score | value")
    assert row[:2] == ["over_merge_rate", "0.33333"]


def test_gates_are_a_table(tmp_path, paths) -> None:
    flags = ["--fail-under", "f1=0.9", "--fail-under", "recall=0.5@country=a|b", "--fail-on-warning"]
    text = page_of(tmp_path, *paths, *flags, code=1)
    assert table_below(text, "gate | score") == [
        ["**failed**", "f1", "", "0.66667", "at least 0.9"],
        ["passed", "recall", "country=a|b", "0.50000", "at least 0.5"],
        ["passed", "no warning", "", "(1 note: few-units)", "none"],
    ]
    text = page_of(
        tmp_path, paths[0], paths[0], "--fail-on-warning", "--fail-on-warning=giant-cluster", code=1
    )
    assert table_below(text, "gate | score") == [
        ["**failed**", "warnings: same-input", "", "(1 note: few-units)", "none"],
        ["passed", "warning giant-cluster: not given", "", "", "none"],
    ]


def test_a_reason_stands_below_the_gates_once(tmp_path, paths, capsys) -> None:
    few = write(tmp_path, "few", {"item": [1, 2], "cluster": [1, 1]})
    assert cli.main(["evaluate", *paths, "--out", str(tmp_path / "old")]) == 0
    flags = ["--baseline", str(tmp_path / "old"), "--fail-worse", "f1=0.5", "--fail-worse", "recall=0.5"]
    text = page_of(tmp_path, paths[0], few, *flags, code=1)
    first = table_below(text, "gate | score")[0]
    assert first[3].endswith("old: 0.333 better, of 2 items, 3 in the baseline")
    assert first[4] == "at most 0.5 worse"
    reason = (
        "the prediction lacks 1 item of the truth and old lacks 0; these are dropped. Pass --unmatched "
        "truth=singleton in both runs."
    )
    assert text.count(reason) == 1


def test_slices_that_were_asked_for_and_clusters_that_cost_most(tmp_path, paths) -> None:
    text = page_of(tmp_path, *paths, "--slice", "country")
    assert (
        "### By country\n\n| country | items | of items | precision | recall | f1 | of P loss | of R loss | excess |"
        in text
    )
    rows = table_below(text, "country")
    assert sorted(rows) == [
        ["*x*\\ny", "1", "33.3 %", "0.50000", "1", "0.66667", "50.0 %", "0 %", "-0.1667"],
        ["a|b", "2", "66.7 %", "0.75000", "0.50000", "0.60000", "50.0 %", "100 %", "+0.0833"],
    ]
    predicted, true = text.split("### Predicted clusters that cost most precision")[1].split(
        "### True clusters"
    )
    assert [row[0] for row in table_below(predicted, "cluster")] == ["<p>"]
    assert [row[0] for row in table_below(true, "cluster")] == ["t|1"] and "cost most recall" in true
    assert table_below(predicted, "cluster")[0][-1] == "100 %"
    assert "###" not in page_of(tmp_path, paths[0], paths[0])


def test_of_many_slices_those_that_cost_most_are_shown(tmp_path) -> None:
    """40 slices of two items each; in the last five the items are wrongly apart."""
    n, columns = 80, {"item": list(range(80)), "cluster": [k // 2 for k in range(80)]}
    truth = write(tmp_path, "truth", {**columns, "of": [f"s{k // 2:02}" for k in range(n)]})
    pred = write(tmp_path, "pred", {**columns, "cluster": [k // 2 if k < 70 else k for k in range(n)]})
    text = page_of(tmp_path, truth, pred, "--slice", "of")
    rows = table_below(text, "of")
    assert "### By of: the 10 of 40 slices that cost most" in text and len(rows) == 10
    assert [row[0] for row in rows[:5]] == ["s35", "s36", "s37", "s38", "s39"]
    assert {row[-2] for row in rows[:5]} == {"20.0 %"} and {row[-2] for row in rows[5:]} == {"0 %"}
    assert len(table_below(text.split("### True")[1], "cluster")) == 3


def test_messages_speak_of_flags_and_names_are_shown_as_they_are(tmp_path, paths) -> None:
    few = write(tmp_path, "a_*b*|c", {"item": [1, 2], "cluster": [0, 1]})
    text = page_of(tmp_path, write(tmp_path, "whole", {"item": [1, 2, 3], "cluster": [0, 0, 0]}), few)
    assert "pass --unmatched truth=singleton." in text and "unmatched=" not in text
    assert "`dropping-truth-flatters`" in text and "a\\_\\*b\\*\\|c.parquet, truth: " in text


@pytest.mark.parametrize("engine", ["memory", "disk"])
@pytest.mark.parametrize("keep", ["scores", "cells"])
def test_either_engine_writes_one(tmp_path, paths, engine, keep) -> None:
    text = page_of(tmp_path, *paths, "--engine", engine, "--keep", keep, "--out", str(tmp_path / "out"))
    assert "| f1 | 0.66667 |" in text and "contribute: on average" in text


def test_clusters_that_overlap(tmp_path) -> None:
    truth = write(tmp_path, "truth", {"item": [1, 1, 2, 3], "cluster": [0, 1, 0, 1]})
    pred = write(tmp_path, "pred", {"item": [1, 2, 3], "cluster": [0, 0, 0]})
    text = page_of(tmp_path, truth, pred, "--overlapping")
    ev = fb.evaluate(truth, pred, overlapping=True)
    assert table_below(text, "score | value")[0][:2] == ["precision", f"{ev.precision:.5f}"]
    assert "### Predicted clusters that cost most precision" in text


def test_slices_are_shown_where_no_cells_are_kept(tmp_path, paths, capsys) -> None:
    """Of three items, each side loses a third; the two of a|b lose half of that precision, and all of the recall."""
    asked = [*paths, "--engine", "disk", "--keep", "scores", "--slice", "country"]
    text = page_of(tmp_path, *asked)
    assert table_below(text, "country")[1][-3:] == ["50.0 %", "100 %", "+0.0833"]
    assert re.search(r"^a\|b +2 +66.7 % .* 50.0 % +100 % +[+]0.0833$", capsys.readouterr().out, re.MULTILINE)
    assert "R loss" not in page_of(tmp_path, *asked, "--metric", "elm")
