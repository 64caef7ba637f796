"""``fastbcubed explain``: what it prints is that of Python, of saved results and of inputs, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastbcubed as fb
from fastbcubed.cli import main as cli

#: Two items of each entity; both of two in ten are alone, and those are the ones from JP.
N = 400
TRUTH = {
    "item": list(range(N)), "cluster": [k // 2 for k in range(N)],
    "country": ["JP" if k % 20 < 4 else "US" for k in range(N)], "year": [1990 + k % 7 for k in range(N)],
}  # fmt: skip
PREDICTION = {"item": list(range(N)), "cluster": [-k if k % 20 < 4 else k // 2 for k in range(N)]}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    pq.write_table(pa.table(TRUTH), "truth.parquet")
    pq.write_table(pa.table(PREDICTION), "pred.parquet")
    pq.write_table(pa.table({name: TRUTH[name] for name in ("item", "cluster")}), "plain.parquet")
    return tmp_path


def saved(name: str, keep: str = "items") -> None:
    fb.evaluate("truth.parquet", "pred.parquet").save(name, keep=keep)


def found(capsys: Any, argv: str) -> dict[str, Any]:
    assert cli.main([*argv.split(), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("what", ["result", "truth.parquet pred.parquet"])
def test_a_planted_slice_is_found(here, capsys, what: str) -> None:
    saved("result")
    (row,) = found(capsys, f"explain {what} --loss recall")["slices"]
    assert (row["slice"], row["n_items"], row["n_units"]) == ("country=JP", 80, 40)
    assert row["conditions"] == [{"attribute": "country", "value": "JP"}]
    assert (row["inside"], row["outside"], row["share_of_loss"]) == (0.5, 1.0, 1.0)
    assert (
        row["excess"] == pytest.approx(0.1) and row["holds"]
    )  # a fifth of the items, half of whose recall is lost


def test_what_is_printed_is_that_of_python(here, capsys) -> None:
    saved("result")
    how = {"loss": "recall", "depth": 1, "min_items": 9, "level": 0.1, "limit": 3, "seed": 4}
    explained = fb.load("result").explain(["country", fb.bins("year", 2)], **how)
    argv = "explain result --attribute country,year:2 --loss recall --depth 1 --min-items 9 --level 0.1 --limit 3"
    assert found(capsys, f"{argv} --seed 4") == json.loads(explained.to_json())
    assert cli.main([*argv.split(), "--seed", "4"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("What kind of items lose recall?\n")
    assert all(text in " ".join(printed.split()) for text in explained.to_dict()["sentences"])
    repeated = argv.replace("country,year:2", "country --attribute year:2")
    assert found(capsys, f"{repeated} --seed 4") == json.loads(explained.to_json())


def test_short_heads_of_columns_are_explained_below_the_table(here, capsys) -> None:
    said = "p: probability of such a difference by chance, adjusted for all tested slices"
    whole = "loss that would vanish if the slice were like the rest"
    part = "what the slice adds to the change in the overall score"
    cmp = fb.compare("truth.parquet", {"old": "plain.parquet", "new": "pred.parquet"})
    for text, excess in (
        (str(fb.evaluate("truth.parquet", "pred.parquet").explain(loss="recall")), whole),
        (str(cmp.explain("new", loss="recall")), part),
    ):
        table = text.partition("excess  held out")[2]
        assert f"excess: {excess}; {said}" in " ".join(table.split())
        assert all(len(line) <= 80 for line in text.partition("excess: ")[2].splitlines())


def test_inputs_are_read_as_those_of_evaluate(here, capsys) -> None:
    pq.write_table(
        pa.table({**TRUTH, "cluster": PREDICTION["cluster"], "true": TRUTH["cluster"]}), "both.parquet"
    )
    by_table = found(capsys, "explain true cluster --table both.parquet --item item --loss recall")
    assert [row["slice"] for row in by_table["slices"]] == ["country=JP"]
    pq.write_table(pa.table({name: TRUTH[name] for name in ("item", "country")}), "more.parquet")
    by_table = found(capsys, "explain plain.parquet pred.parquet --attributes more.parquet --loss recall")
    assert [*by_table["attributes"]] == ["country"] and by_table["slices"][0]["slice"] == "country=JP"


def test_both_engines_find_the_same(here, capsys) -> None:
    both = [f"explain truth.parquet pred.parquet --engine {engine}" for engine in ("memory", "disk")]
    assert found(capsys, both[0]) == found(capsys, both[1])


@pytest.mark.slow
def test_warnings_of_the_evaluation_are_said(here, capsys) -> None:
    pq.write_table(pa.table(PREDICTION).slice(0, 300), "short.parquet")
    assert cli.main("explain truth.parquet short.parquet --loss recall".split()) == 0
    ev = fb.evaluate("truth.parquet", "short.parquet", keep="items")
    said = capsys.readouterr().err
    assert ev.warnings and all(f"[{each['code']}]" in said for each in ev.warnings)


def test_the_page_has_what_is_printed(here, capsys) -> None:
    assert cli.main("explain truth.parquet pred.parquet --loss recall --report page.html".split()) == 0
    shown = capsys.readouterr()
    assert "wrote page.html" in shown.err and "country=JP" in shown.out
    assert "country=JP" in Path("page.html").read_text(encoding="utf-8")


def sections_of(monkeypatch: pytest.MonkeyPatch, argv: str) -> list[str]:
    """Return the sections of the page that a command writes."""
    from fastbcubed.results import page

    found: list[str] = []
    whole = page.whole

    def noted(document: Any) -> Any:
        made = whole(document)
        found.extend(section.id for section in made.sections)
        return made

    monkeypatch.setattr(page, "whole", noted)
    assert cli.main(argv.split()) == 0
    return found


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    "argv",
    [
        "evaluate truth.parquet pred.parquet --report page.html --report-explain",
        "evaluate truth.parquet pred.parquet --report page.html --report-explain country,year:2",
        "compare truth.parquet old=plain.parquet new=pred.parquet --report page.html --report-explain",
        "report result --out page.html --explain",
        "report result --out page.html --explain country",
    ],
)
def test_reports_have_a_section_that_explains(here, monkeypatch, argv: str) -> None:
    saved("result")
    assert "explanation" in sections_of(monkeypatch, argv)
    page = Path("page.html").read_text(encoding="utf-8")
    assert "country=JP" in page
    assert "explanation" not in sections_of(
        monkeypatch, argv.partition(" --report-e")[0].partition(" --ex")[0]
    )


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ("evaluate truth.parquet pred.parquet --report-explain", "--report-explain goes with --report"),
        (
            "evaluate truth.parquet pred.parquet --report page.html --report-explain country,",
            "--report-explain takes one attribute or several",
        ),
        (
            "evaluate truth.parquet pred.parquet --report page.html --report-explain contry",
            "Did you mean 'country'",
        ),
        ("report cells --out page.html --explain", "the items were not kept"),
        ("report changes --out page.html --explain", "a diff has no loss to explain"),
        ("report result --out page.html --explain ,", "--explain takes one attribute or several"),
    ],
)
def test_reports_that_cannot_explain_are_not_written(here, capsys, argv: str, message: str) -> None:
    saved("result")
    saved("cells", keep="cells")
    fb.diff("plain.parquet", "pred.parquet").save("changes")
    capsys.readouterr()
    assert cli.main(argv.split()) == 2
    assert message in " ".join(capsys.readouterr().err.split()) and not Path("page.html").exists()


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (
            "explain cells",
            "cells has no items, so that there is nothing to slice by; write it with evaluate --out DIR",
        ),
        (
            "explain runs",
            "runs is a comparison of runs, which explain does not accept. Name an evaluation of one run",
        ),
        (
            "explain changes",
            ("changes is not an evaluation; name a directory written by evaluate --out DIR --keep items"),
        ),
        ("explain plain.parquet pred.parquet", "Evaluate tables with more columns, or with --attributes"),
        ("explain truth.parquet pred.parquet --attribute contry", "Did you mean 'country'?"),
        (
            "explain truth.parquet pred.parquet --attribute country,",
            "--attribute takes one attribute or several",
        ),
        ("explain truth.parquet pred.parquet --loss pair_f1", "pair_f1 is not a mean over items"),
        ("explain truth.parquet pred.parquet --depth 9", "depth must be a number of attributes"),
        ("explain truth.parquet pred.parquet --level 2", "--level must be a false discovery rate"),
        (
            "explain cells --weighting outer",
            "--weighting applies to TRUTH and PREDICTION, but cells is already evaluated",
        ),
        ("explain cells --item id", "--item applies to TRUTH and PREDICTION, but cells is already evaluated"),
        ("explain truth.parquet", "To evaluate first, name TRUTH and PREDICTION"),
        (
            "explain truth.parquet pred.parquet plain.parquet",
            "not 3 paths (truth.parquet, pred.parquet, plain.parquet)",
        ),
    ],
)
def test_what_is_refused(here, capsys, argv: str, message: str) -> None:
    what = argv.split()[1]
    if what == "cells":
        saved("cells", keep="cells")
    elif what == "runs":
        fb.compare("truth.parquet", {"old": "plain.parquet", "new": "pred.parquet"}).save("runs")
    elif what == "changes":
        fb.diff("plain.parquet", "pred.parquet").save("changes")
    capsys.readouterr()
    assert cli.main(argv.split()) == 2
    said = capsys.readouterr()
    assert message in said.err and not said.out
