"""What flags ask for beside the usual is in all outputs of a command: text, Markdown, page, JSON."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fastbcubed.cli import main as cli

#: Sources c and w; the prediction joins item 3 to 1 and 2, and cuts item 4 off.
TRUTH = {"item": [1, 2, 3, 4], "cluster": ["t", "t", "u", "u"], "source": ["c", "c", "w", "w"]}
PREDICTION = {"item": [1, 2, 3, 4], "cluster": ["x", "x", "x", "y"]}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    pq.write_table(pa.table(TRUTH), "truth.parquet")
    pq.write_table(pa.table(PREDICTION), "pred.parquet")
    return tmp_path


def outputs(capsys: Any, command: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Return what a command says as JSON, as text, as Markdown where it writes that, and the data of its page."""
    assert cli.main([*command.split(), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    summary = [] if command.startswith("diff") else ["--summary", "job.md"]
    assert cli.main([*command.split(), "--report", "page.html", *summary]) == 0
    texts = {"text": capsys.readouterr().out, "page": page()}
    if summary:
        texts["markdown"] = re.sub(r"\\(\W|_)", r"\1", Path("job.md").read_text(encoding="utf-8"))
    return found, {kind: " ".join(text.split()) for kind, text in texts.items()}


def sections() -> list[dict[str, Any]]:
    """Return the sections of the page that was written."""
    text = Path("page.html").read_text(encoding="utf-8")
    data = re.search(r'<script type="application/json"[^>]*>(.*?)</script>', text, re.DOTALL)
    assert data is not None
    found: list[dict[str, Any]] = json.loads(data[1])["sections"]
    return found


def page() -> str:
    """Return the data of the page that was written, without its manifest."""
    return json.dumps([each for each in sections() if each["id"] != "origin"], ensure_ascii=False)


def command_on_page() -> list[str]:
    """Return the words of the command that the page says reproduces its result."""
    (origin,) = (each for each in sections() if each["id"] == "origin")
    return shlex.split(next(block["text"] for block in origin["blocks"] if block["block"] == "Code"))


def test_evaluate_has_all_of_it_in_every_output(here, capsys) -> None:
    flags = "--show 2 --repairs 2 --slice-pairs truth.source"
    found, texts = outputs(capsys, f"evaluate truth.parquet pred.parquet {flags}")
    assert [each["cluster"] for each in found["opened"]] == ["x", "u"]
    # precision (2/3 + 2/3 + 1/3 + 1) / 4 = 2/3, recall (1 + 1 + 1/2 + 1/2) / 4 = 3/4, F1 12/17; both repairs make it 1
    assert [row["running"] for row in found["repairs"]][-1] == 1
    assert {row["pair"]: row["pair_fn"] for row in found["source_pairs"]["truth.source"]}["within w"] == 1
    for kind, text in texts.items():
        assert (
            f"Repair these {len(found['repairs'])}: F1 +{1 - 12 / 17:.5f}, from {12 / 17:.5f} to 1" in text
        ), kind
        assert "Links within and across truth.source, in pairs of items" in text, kind
        assert all(row["pair"] in text for row in found["source_pairs"]["truth.source"]), kind
    assert "Predicted cluster x: 3 items of 2 true clusters, mixed" in texts["text"]
    assert "Predicted cluster x: 3 items of 2 true clusters, mixed" in texts["markdown"]


def test_all_opened_clusters_are_on_the_page(tmp_path, monkeypatch, capsys) -> None:
    """Of 21 predicted clusters with an error each, a page lists 20 unless more are opened, and 10 of 12 members."""
    monkeypatch.chdir(tmp_path)
    items = [f"i{k}" for k in range(21 * 12)]
    pred, true = [k // 12 for k in range(21 * 12)], [k // 12 * 2 + (k % 12 == 0) for k in range(21 * 12)]
    pq.write_table(pa.table({"item": items, "cluster": true}), "truth.parquet")
    pq.write_table(pa.table({"item": items, "cluster": pred}), "pred.parquet")
    assert cli.main("evaluate truth.parquet pred.parquet --report page.html --worst 0".split()) == 0
    shown = page()
    assert sum(f'"i{k}"' in shown for k in range(21 * 12)) == 20 * 10
    assert cli.main("evaluate truth.parquet pred.parquet --report page.html --show 21".split()) == 0
    shown = page()
    assert sum(f'"i{k}"' in shown for k in range(21 * 12)) == 21 * 12


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (
            "compare truth.parquet old=pred.parquet new=truth.parquet --show 5",
            "True cluster u: 2 items; in old in 2",
        ),
        ("diff pred.parquet truth.parquet --show 5", "Baseline cluster x: 3 items of 2 experiment clusters"),
    ],
)
def test_compare_and_diff_open_what_changed(here, capsys, command, said) -> None:
    found, texts = outputs(capsys, command)
    assert all(said in text for kind, text in texts.items() if kind != "page")
    for each in found["opened"]:
        assert f'"name": "{each["cluster"]}"' in texts["page"]


@pytest.mark.parametrize(
    ("command", "flags"),
    [
        (
            "evaluate truth.parquet pred.parquet",
            "--show 2 --repairs 2 --slice-pairs truth.source --slice-pairs true_size",
        ),
        ("compare truth.parquet old=pred.parquet new=truth.parquet", "--show 5"),
        ("diff pred.parquet truth.parquet", "--show 5"),
    ],
)
def test_the_command_on_a_page_requests_all_that_it_shows(here, command, flags) -> None:
    """The command had none of these flags, so that the page it made had fewer figures."""
    assert cli.main([*command.split(), *flags.split(), "--report", "page.html"]) == 0
    first, again = page(), command_on_page()
    assert again[-len(flags.split()) :] == flags.split()
    assert cli.main([*again[1:], "--report", "page.html"]) == 0
    assert page() == first and command_on_page() == again


def test_what_did_not_change_is_not_opened(here, capsys) -> None:
    """It opened the first true clusters of two equal runs, of which none changed."""
    assert cli.main("compare truth.parquet a=pred.parquet b=pred.parquet --show 5 --json".split()) == 0
    assert "opened" not in json.loads(capsys.readouterr().out)


def test_of_many_repairs_a_text_has_the_first(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    pq.write_table(
        pa.table({"item": list(range(44)), "cluster": [k // 2 for k in range(44)]}), "truth.parquet"
    )
    pq.write_table(pa.table({"item": list(range(44)), "cluster": list(range(44))}), "pred.parquet")
    assert cli.main("evaluate truth.parquet pred.parquet --repairs 22 --worst 0".split()) == 0
    out = capsys.readouterr().out
    assert out.count("gather true") == 10 and "… 12 more; --out DIR writes all, as repairs.parquet" in out
