"""``fastbcubed sweep``: flags, what is printed and written, messages."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastbcubed as fb
from fastbcubed.cli import main as cli
from fastbcubed.render.json import as_json

LINKS = {
    "unique_id_l": ["a", "b", "d", "a", "c"],
    "unique_id_r": ["b", "c", "e", "a", "d"],
    "match_probability": [0.95, 0.8, 0.9, 1.0, 0.85],
}
TRUTH = {"item": list("abcdef"), "cluster": [1, 1, 1, 2, 2, 2], "country": list("xxxyyy")}


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pq.write_table(pa.table(LINKS), "links.parquet")
    pq.write_table(pa.table(TRUTH), "truth.parquet")


def ran(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[str, str]:
    assert cli.main(["sweep", "truth.parquet", "links.parquet", *argv]) == 0
    shown = capsys.readouterr()
    return shown.out, shown.err


def test_the_best_threshold_the_curve_and_merges_to_look_at(capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = ran(capsys)
    best = fb.sweep("truth.parquet", "links.parquet").best("f1")
    assert out.startswith("Sweep of 5 links over 5 items: clusters change at 4 scores of links")
    assert "Read as left = unique_id_l, right = unique_id_r, score = match_probability." in out
    assert best.sentence in " ".join(out.split())
    assert "P precision, R recall, F f1" in out and "1.0 |" in out
    lines = out.splitlines()
    merge = next(line for line in lines if line.startswith("0.85")).split()
    assert merge[:6] == ["0.85", "c", "d", "1", "+", "2"]
    assert "threshold  left item  right item  cluster sizes  F1 change  P change  R change" in out
    assert "No merge at threshold 0.9 lowers F1; a weaker threshold makes these merges" in out
    used, _ = ran(capsys, "--best", "recall")
    assert "Costliest merges at threshold 0.8; a stronger threshold undoes them" in used


def test_the_choice_of_the_threshold_is_allowed_for_with_draws(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.warns(fb.EvaluationWarning, match="all items are in one unit"):
        expected = fb.sweep("truth.parquet", "links.parquet").chosen("recall", draws=30, seed=2)
    flags = ("--best", "recall", "--draws", "30", "--seed", "2")
    out, err = ran(capsys, *flags)
    assert expected.sentence in " ".join(out.split())
    assert "warning: there is no standard error because all items are in one unit (component)" in err
    out, _ = ran(capsys, *flags, "--json")
    assert json.loads(out)["chosen"] == json.loads(as_json(expected.to_dict()))  # all is one component: null
    assert "chosen" not in json.loads(ran(capsys, "--json")[0])


def test_the_best_under_a_condition(capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = ran(capsys, "--best", "recall", "--where", "precision>=0.98", "--where", "largest <= 2")
    assert "recall is best at threshold 0.9, where precision >= 0.98 and largest <= 2" in " ".join(
        out.split()
    )
    assert "threshold 0.9 lowers F1; a weaker threshold makes these merges" in out
    out, _ = ran(capsys, "--best", "pair_f1", "--merges", "0")
    assert "B pair_f1" in out and "erge" not in out.partition("B pair_f1")[2]


def test_thresholds_and_slices(capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = ran(capsys, "--metric", "f1,mean_f1", "--threshold", "0.9,0.8", "--slice", "country")
    sweep = fb.sweep("truth.parquet", "links.parquet", metrics=["f1", "mean_f1"], thresholds=[0.9, 0.8])
    assert "At the requested thresholds" in out
    row = next(line for line in out.splitlines() if re.match(r"0\.9 +\d", line)).split()
    assert float(row[-1]) == pytest.approx(sweep.points()["mean_f1"][0].as_py(), abs=1e-4)
    assert "By country: best threshold per slice, and F1 lost by using one for all" in out


@pytest.mark.slow
def test_of_many_slices_those_that_lose_most_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """A city has two items of one true cluster, whose link has a score of its own, and a wrong link across cities.

    The link across cities k and k + 1 is as strong as the right one of city k + 1, so that these lose by any threshold.
    """
    n = 30
    items = [f"{k}{side}" for k in range(n) for side in "ab"]
    truth = {
        "item": items,
        "cluster": [item[:-1] for item in items],
        "city": [f"c{item[:-1]}" for item in items],
    }
    pq.write_table(pa.table(truth), "truth.parquet")
    links = [(f"{k}a", f"{k}b", 0.9 - k / 100) for k in range(n)]
    links += [(f"{k}a", f"{k + 1}b", 0.8 - k / 50) for k in range(n - 1)]
    pq.write_table(
        pa.table(dict(zip(("left", "right", "score"), map(list, zip(*links, strict=True)), strict=True))),
        "links.parquet",
    )
    costs = fb.sweep("truth.parquet", "links.parquet").slices("city")["cost"].to_pylist()
    assert len(costs) == n and costs == sorted(costs, reverse=True)
    out, _ = ran(capsys, "--slice", "city", "--merges", "0")
    heading, _, rest = out.partition(
        "By city: the 5 of 30 slices that lose most F1 by sharing one threshold\n"
    )
    assert heading and len([line for line in rest.splitlines() if line.startswith("c")]) == 1 + 5
    assert "weight" not in rest  # it is the number of items
    found = json.loads(ran(capsys, "--slice", "city", "--json")[0])
    assert len(found["slices"]["city"]) == n


def test_a_slice_that_is_best_without_a_link_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    """The only link between items of y is wrong; of x all are right."""
    links = pa.table({"left": ["a", "b", "d"], "right": ["b", "c", "e"], "score": [0.9, 0.8, 0.7]})
    truth = TRUTH | {"cluster": [1, 1, 1, 2, 3, 4]}
    pq.write_table(links, "links.parquet")
    pq.write_table(pa.table(truth), "truth.parquet")
    out, _ = ran(capsys, "--slice", "country")
    (row,) = (line for line in out.splitlines() if line.startswith("y "))
    assert "no link" in row and "inf" not in row


def test_what_is_wrong_with_the_links_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    weights = {**LINKS, "match_probability": [7.5, 2.0, -1.0, 9.0, 3.0]}
    pq.write_table(pa.table(weights), "links.parquet")
    _, err = ran(capsys, "--merges", "0")
    assert (
        "warning: 5 of 5 scores in column 'match_probability' of links.parquet are not between 0 and 1" in err
    )
    pq.write_table(pa.table(LINKS).rename_columns(["id1", "id2", "distance"]), "links.parquet")
    _, err = ran(capsys, "--merges", "0")
    assert err.count("Pass --ascending if small distances mean strong links.") == 1
    assert "distances" not in ran(capsys, "--merges", "0", "--ascending")[1]


def test_a_threshold_that_is_no_number(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["sweep", "truth.parquet", "links.parquet", "--threshold", "0.5,high"]) == 2
    told = "--threshold takes a number, or several separated by commas, not '0.5,high'"
    assert told in capsys.readouterr().err
    assert cli.main(["cluster", "links.parquet", "--threshold", "high"]) == 2
    assert told.replace("0.5,high", "high") in capsys.readouterr().err


def test_truth_and_links_in_each_others_place(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["sweep", "links.parquet", "truth.parquet"]) == 2
    assert "A table with item and cluster looks like a clustering" in capsys.readouterr().err


def test_json_is_what_the_library_says(capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = ran(capsys, "--json", "--slice", "country", "--rows", "3")
    found = json.loads(out)
    sweep = fb.sweep("truth.parquet", "links.parquet", slices="country")
    low, high = sweep.at_best.interval("f1")
    assert found["best"] == sweep.best("f1").to_dict() | {"where": None, "low": low, "high": high}
    assert len(found["curve"]) == 3 and found["curve"][0]["threshold"] is None
    assert found["slices"]["country"] == sweep.sliced["country"].to_pylist()
    assert found["merges"] == sweep.merges(limit=3, threshold=sweep.best("f1").threshold).to_pylist()


def test_what_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    _, err = ran(capsys, "--out", "swept", "--best", "precision", "--where", "clusters <= 4")
    assert "wrote swept; in Python, load it with fastbcubed.load('swept')" in err
    sweep = fb.sweep("truth.parquet", "links.parquet")
    best = sweep.best("precision", where="clusters <= 4")
    assert pq.read_table("swept/curve.parquet").equals(sweep.curve(limit=None).to_arrow())
    assert (
        pq.read_table("swept/clusters.parquet").to_pydict() == sweep.at(best.threshold).to_table().to_pydict()
    )
    assert pq.read_table("swept/merges.parquet").num_rows == 4
    assert pq.read_table("swept/weakest_links.parquet").num_rows == 2
    told = json.loads(Path("swept/overall.json").read_text(encoding="utf-8"))
    assert told["best"]["score"] == "precision" and set(told["files"]) == {
        path.name for path in Path("swept").iterdir()
    } - {"overall.json"}
    assert (
        fb.evaluate("truth.parquet", "swept/clusters.parquet", unmatched={"truth": "singleton"}).f1
        == sweep.evaluate(best.threshold).f1
    )


@pytest.mark.cases(1)
@pytest.mark.parametrize("form", [[], ["--json"]], ids=str)
def test_show_prints_what_was_printed(capsys: pytest.CaptureFixture[str], form: list[str]) -> None:
    pytest.importorskip("altair")
    best = "--best recall --where largest<=2 --draws 9 --threshold 0.9 --slice country".split()
    out, _ = ran(capsys, *best, "--merges", "2", *form, "--out", "swept", "--report", "page.html")
    assert "largest <= 2" in out and "expect" in out
    assert cli.main(["show", "swept", *form]) == 0
    assert capsys.readouterr().out == out
    assert cli.main(["report", "swept", "--out", "again.html", "--worst", "2"]) == 0
    assert Path("again.html").read_bytes() == Path("page.html").read_bytes()


def test_a_cost_without_a_score_to_draw(capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = ran(capsys, "--best", "pair_fp + pair_fn", "--metric", "pair_f1")
    assert "pair_fp + pair_fn is lowest at threshold" in out and "by threshold; ^" not in out


def test_columns_ascending_and_items(capsys: pytest.CaptureFixture[str]) -> None:
    table = pa.table(LINKS).rename_columns(["one", "two", "far"])
    pq.write_table(table, "far.parquet")
    argv = [
        "sweep",
        "truth.parquet",
        "far.parquet",
        "--left",
        "one",
        "--right",
        "two",
        "--score",
        "far",
        "--ascending",
    ]
    assert cli.main([*argv, "--items", "truth.parquet", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["items"], found["ascending"]) == (6, True)
    assert [row["threshold"] for row in found["curve"]] == [None, 0.8, 0.85, 0.9, 0.95]


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (["--threshold", "x"], "--threshold takes a number"),
        (["--where", "precision"], "--where must be a condition"),
        (["--best", "f9"], "the curve has no score 'f9'"),
        (["--best", "f1*"], "--best must be a name, or numbers and names with"),
        (["--best", "1"], "--best is the same at every threshold"),
        (["--metric", "mean_f1"], "Pass --threshold"),
        (["--score", "weight"], "There is no column 'weight'"),
        (["--unmatched", "raise"], "--unmatched"),
    ],
)
def test_what_is_wrong_is_said_in_flags(
    capsys: pytest.CaptureFixture[str], argv: list[str], told: str
) -> None:
    assert cli.main(["sweep", "truth.parquet", "links.parquet", *argv]) == 2
    assert told in capsys.readouterr().err


def test_a_page(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("altair")
    assert cli.main("sweep truth.parquet links.parquet --report links.parquet".split()) == 2
    assert "--report links.parquet would replace links.parquet, which is an input" in capsys.readouterr().err
    _, err = ran(
        capsys, "--best", "recall", "--slice", "country", "--threshold", "0.9", "--report", "page.html"
    )
    assert err.rstrip().endswith("wrote page.html")
    page = Path("page.html").read_text(encoding="utf-8")
    best = fb.sweep("truth.parquet", "links.parquet").best("recall")
    told = (
        best.sentence,
        "By country: best threshold per slice",
        "At the requested thresholds",
        "undoes them",
    )
    assert all(each in page for each in told) and page.count("<svg") == 2
    assert str(Path.cwd()) not in page


def test_help_names_every_key_of_the_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["sweep", "--help"]) == 0
    shown = capsys.readouterr().out
    out, _ = ran(capsys, "--json")
    assert all(key in shown for key in json.loads(out))
