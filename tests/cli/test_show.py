"""``fastbcubed show`` and ``evaluate --show``: what is opened, in which types, and what is refused."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastbcubed as fb
from fastbcubed.cli import main as cli
from fastbcubed.cli import output

TRUTH = {"item": ["a", "b", "c", "d"], "cluster": [1, 1, -2, -2], "name": ["Ann", "Ann", "Bob", None]}
PREDICTION = {"item": ["a", "b", "c", "d"], "cluster": ["x", "x", "x", "y,z"]}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    pq.write_table(pa.table(TRUTH), "truth.parquet")
    pq.write_table(pa.table(PREDICTION), "pred.parquet")
    fb.evaluate("truth.parquet", "pred.parquet").save("result")
    fb.evaluate("truth.parquet", "pred.parquet").save("cells", keep="cells")
    fb.diff("truth.parquet", "pred.parquet").save("changes", keep="cells")
    return tmp_path


def opened(capsys: Any, argv: str) -> list[dict[str, Any]]:
    assert cli.main([*argv.split(), "--json"]) == 0
    return json.loads(capsys.readouterr().out)["opened"]


@pytest.mark.parametrize("what", ["result", "truth.parquet pred.parquet"])
def test_clusters_and_items_are_opened(here, capsys, what) -> None:
    found = opened(capsys, f"show {what} --pred x --pred y,z --true -2 --item c --columns name --members 1")
    assert [each.get("cluster", each.get("item")) for each in found] == ["x", "y,z", -2, "c"]
    assert found[0]["parts"][0]["members"] == [{"item": "a", "weight": 1.0, "attributes": {"name": "Ann"}}]
    assert found[3]["attributes"] == {"name": "Bob"} and found[3]["members"]["fp"]["first"] == ["a"]


def test_the_text_is_that_of_python(here, capsys) -> None:
    assert cli.main("show result --pred x --columns name --item d".split()) == 0
    ev = fb.load("result")
    text = "\n\n".join([repr(ev.cluster("pred", "x", columns="name")), repr(ev.item("d", columns=["name"]))])
    assert capsys.readouterr().out == f"{text}\n"


@pytest.mark.cases(0)
@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("evaluate lacking.parquet pred.parquet --slice name --keep items", "--unmatched truth=singleton"),
        (
            "diff truth.parquet pred.parquet --truth truth.parquet --slice baseline.name --keep items",
            "By baseline.name",
        ),
        ("estimate truth.parquet pred.parquet", "Scores of a prediction of 4 items"),
        ("estimate-pairs judged.csv", "not judged"),
    ],
)
def test_a_result_is_shown_as_it_was_printed(here, capsys, command: str, said: str) -> None:
    more = {"item": ["e", "f"], "cluster": [1, 1], "name": ["Cy", "Di"]}
    pq.write_table(pa.concat_tables([pa.table(TRUTH), pa.table(more)]), "lacking.parquet")
    judged = fb.diff("truth.parquet", "pred.parquet").sample_pairs(4).to_pandas()
    judged.assign(verdict=["same", "different"] * 2).to_csv("judged.csv", index=False)
    assert cli.main([*command.split(), "--out", "again"]) == 0
    printed = capsys.readouterr().out
    assert said in " ".join(printed.split())
    assert cli.main("show again".split()) == 0
    assert capsys.readouterr().out == printed


def test_both_engines_open_the_same(here, capsys) -> None:
    both = [f"show truth.parquet pred.parquet --pred x --engine {engine}" for engine in ("memory", "disk")]
    assert opened(capsys, both[0]) == opened(capsys, both[1])


def test_parts_of_an_id_have_commas_between_them(here, capsys) -> None:
    columns = {"source": ["A,1", "A,1", "B"], "no": [1, 2, 1], "cluster": [b"\x01\xff", b"\x01\xff", b"\x02"]}
    pq.write_table(pa.table(columns), "composite.parquet")
    what = "show composite.parquet composite.parquet --item-column source+no"
    found = opened(capsys, rf"{what} --item A\,1,2 --true 01ff")
    assert found[0]["cluster"] == str(b"\x01\xff") and found[1]["item"] == {"source": "A,1", "no": 2}


def test_one_table_has_columns_for_sides(here, capsys) -> None:
    pq.write_table(pa.table({"t": [1, 1, 2], "p": [5, 5, 5]}), "both.parquet")
    found = opened(capsys, "show t p --table both.parquet --pred 5 --item 2")
    assert [part["n_items"] for part in found[0]["parts"]] == [2, 1] and found[1]["item"] == 2


@pytest.mark.cases(0)
@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_evaluate_opens_the_costliest(here, capsys, engine) -> None:
    argv = f"evaluate truth.parquet pred.parquet --engine {engine} --show 2"
    assert [(each["side"], each["cluster"]) for each in opened(capsys, argv)] == [("pred", "x"), ("true", -2)]
    assert cli.main(argv.split()) == 0
    assert "\n\nPredicted cluster x: 3 items of 2 true clusters, mixed\n" in capsys.readouterr().out
    assert cli.main(["evaluate", "truth.parquet", "truth.parquet", "--show", "2"]) == 0
    assert "cluster 1:" not in capsys.readouterr().out  # nothing costs anything


@pytest.mark.cases(3)
@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ("show truth.parquet pred.parquet", "name what to open: --pred ID, --true ID or --item ID"),
        ("show result --true x", "--true x: an integer is needed"),
        ("show result --true 7", "no true cluster 7"),
        ("show result --pred X", "no predicted cluster 'X'"),
        ("show result --item z", "item 'z' is not in the evaluation"),
        ("show result --pred x --columns nam", "no attribute 'nam'"),
        ("show result --pred x --weighting outer", "--weighting applies to TRUTH and PREDICTION"),
        ("show result --pred x --item-column id", "--item-column applies to TRUTH and PREDICTION"),
        ("show cells --pred x", "write it with evaluate --out DIR --keep items"),
        ("show changes --baseline 1", "write it with diff --out DIR --keep items"),
        ("show nowhere --pred x", "To evaluate first, name TRUTH and PREDICTION"),
        ("show a b c --pred x", "not 3 paths (a, b, c)"),
        ("show truth.parquet pred.parquet --pred x --item-column id", "'id'"),
        ("show truth.parquet pred.parquet --pred x --unmatched inner", "--unmatched must be drop"),
        ("show wide.parquet pred.parquet --pred x", "--item-column and --cluster"),
        ("show result --pred x --members -1", "0 or more"),
        ("evaluate truth.parquet pred.parquet --show few", "0 or more"),
    ],
)
def test_what_can_be_mended_exits_with_2(here, capsys, argv, message) -> None:
    pq.write_table(pa.table({"a": [1], "b": [2], "c": [3]}), "wide.parquet")
    assert cli.main(argv.split()) == 2
    out, err = capsys.readouterr()
    assert message in err and "Traceback" not in err
    assert not out and len(err) < 1200


@pytest.mark.parametrize("given", ["1", "01"])
def test_leading_zeros_are_suggested(tmp_path: Path, capsys: pytest.CaptureFixture[str], given: str) -> None:
    """Of "1" it said that the first ones are 000, 001 and so on."""
    rows = {"item": [f"i{k}" for k in range(30)], "cluster": [f"{k // 3:03d}" for k in range(30)]}
    pq.write_table(pa.table(rows), tmp_path / "t.parquet")
    assert cli.main(["show", str(tmp_path / "t.parquet"), str(tmp_path / "t.parquet"), "--true", given]) == 2
    assert "Did you mean '001'?" in capsys.readouterr().err


def test_lines_and_titles_fit_a_terminal(monkeypatch, capsys) -> None:
    """Words go on below, as far in as the line begins; ids without spaces stay whole, and a pipe has whole lines."""
    long = "  Items of " + "fl:yo_ln:li-278 " * 6 + "end"
    output.Terminal().line(long)
    assert capsys.readouterr().out == f"{long}\n"
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    output.Terminal().line(long)
    output.Terminal().title(long.strip())
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80 and lines[1].startswith("  fl:yo") and lines[-1].startswith("fl:yo")
    assert " ".join(" ".join(lines).split()) == " ".join([long.strip()] * 2)
