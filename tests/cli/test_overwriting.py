"""No command writes over what it reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from fastbcubed.cli.main import main


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Go to a folder with two clusterings, links, and a saved result."""
    monkeypatch.chdir(tmp_path)
    for name in ("t.csv", "p.csv"):
        Path(name).write_text("item,cluster\na,1\nb,1\n")
    Path("links.csv").write_text("left,right,score\na,b,0.5\n")
    assert main(["evaluate", "t.csv", "p.csv", "--out", "result"]) == 0
    return tmp_path


@pytest.mark.cases(3, 99)
@pytest.mark.parametrize(
    ("command", "flag", "read"),
    [
        ("evaluate t.csv p.csv --report p.csv", "--report", "p.csv"),
        ("evaluate t.csv p.csv --summary ./t.csv", "--summary", "t.csv"),
        ("evaluate t.csv p.csv --weight w=t.csv --report t.csv", "--report", "t.csv"),
        ("compare t.csv a=p.csv b=t.csv --report p.csv", "--report", "p.csv"),
        ("explain t.csv p.csv --report p.csv", "--report", "p.csv"),
        ("cluster links.csv --out links.csv", "--out", "links.csv"),
        ("sample-pairs t.csv p.csv -n 1 --out p.csv", "--out", "p.csv"),
        ("evaluate result/cells.parquet p.csv --out ./result", "--out", "result/cells.parquet"),
    ],
)
def test_a_file_that_is_read_is_not_replaced(
    files: Path, command: str, flag: str, read: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {path: path.read_bytes() for path in files.rglob("*") if path.is_file()}
    assert main(command.split()) == 2
    said = capsys.readouterr().err
    assert f"{flag} " in said and f"would replace {read}, which is an input" in said
    assert {path: path.read_bytes() for path in files.rglob("*") if path.is_file()} == before


@pytest.mark.slow
def test_other_files_are_replaced_as_before(files: Path) -> None:
    """Those of an earlier run of the same command."""
    for _ in range(2):
        command = "evaluate t.csv p.csv --baseline result/overall.json --fail-worse f1=0 --out result --report r.html"
        assert main(command.split()) == 0
        assert main("cluster links.csv --out c.parquet".split()) == 0


def test_columns_of_a_page_go_with_the_page(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main("evaluate t.csv p.csv --report-columns g".split()) == 2
    assert "--report-columns goes with --report" in capsys.readouterr().err
