"""Gates on bins and on slices that are not there, of evaluations, loaded results, baselines and JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

import fastbcubed as fb
from fastbcubed.cli import main as cli
from fastbcubed.errors import ColumnError, OptionError, SliceError

#: Precisions are 1/2, 1, 1/2 and recalls 1/2, 1/2, 1.
TRUTH = {
    "item": [1, 2, 3], "cluster": [0, 0, 1], "country": ["US", "US", "FR"],
    "year": [1989, 1990, 1995], "share": [0.1, 0.6, 0.9],
}  # fmt: skip
PREDICTION = {"item": [1, 2, 3], "cluster": [0, 1, 0]}
DECADE = "precision>=0.75@year:10=1990-1999"


@pytest.fixture
def ev() -> fb.Evaluation:
    return fb.evaluate(pa.table(TRUTH), pa.table(PREDICTION))


@pytest.mark.parametrize(
    ("where", "precision"),
    [
        ("year:10=1990-1999", 0.75),
        ("year:1990:1995=<1990", 0.5),
        ("year:1990:1995=>=1995", 0.5),
        ("year:10.0=1990-1999", 0.75),
        ("share:0.5=[0.5, 1)", 0.75),
        (r"share:0.5=[0.5\, 1)", 0.75),
        ("share:0.5=[0.5, 1),country=US", 1.0),
        ("country=FR,year:10=1990-1999", 0.5),
    ],
)
def test_check_of_bins(ev, where: str, precision: float) -> None:
    assert ev.check(f"precision>=0.1@{where}")["value"].to_pylist() == pytest.approx([precision])


@pytest.mark.parametrize("keep", ["scores", "items"])
def test_check_of_bins_of_a_loaded_result(tmp_path: Path, paths, keep: str) -> None:
    slices = [fb.bins("year", 10), ("country", fb.bins("year", 10))]
    fb.evaluate(*paths, slices=slices, out=tmp_path / "r", keep=keep)
    loaded = fb.load(tmp_path / "r")
    assert list(loaded.sliced) == ["year:10", "country,year:10"]
    assert loaded.check(DECADE, "f1>=0.1@year:10=1980-1989,country=US")["passed"].to_pylist() == [True, True]
    assert (
        json.loads(loaded.to_json())["slices"]
        == json.loads(fb.evaluate(*paths, slices=slices).to_json())["slices"]
    )
    assert loaded.manifest["arguments"]["slices"] == ["year:10", ["country", "year:10"]]


def test_an_attribute_whose_name_reads_like_bins() -> None:
    truth = pa.table({**TRUTH, "year:10": ["a", "b", "b"]})
    ev = fb.evaluate(truth, pa.table(PREDICTION), slices="year:10")
    assert ev.check(r"f1>=0.1@year\:10=b", "precision>=0.75@year:10=b")["passed"].to_pylist() == [True, True]


@pytest.mark.cases(0)
@pytest.mark.parametrize("engine", ["memory", "disk"])
@pytest.mark.parametrize(
    "slices",
    [
        [],
        ["year:10"],
        ["year:10", "country"],
        ["country,year:10"],
        ["year", "true_size,year:10", "year:1990:1995"],
    ],
)
def test_bins_beside_gates_on_the_command_line(paths, capsys, engine: str, slices: list[str]) -> None:
    flags = [part for each in slices for part in ("--slice", each)]
    for gate, value in (
        ("country=US", 0.75), ("year:10=1990-1999", 0.75), ("year=1990", 1.0), ("year:10=1990-1999,country=US", 1.0),
    ):  # fmt: skip
        asked = ["evaluate", *paths, "--engine", engine, *flags, "--fail-under", f"precision=0.1@{gate}"]
        assert cli.main([*asked, "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert found["gates"][0]["value"] == pytest.approx(value)
        assert list(found["gates"][0]["slice"].items()) == [
            tuple(part.split("=")) for part in gate.split(",")
        ]
        assert len(found["slices"]) == len({*slices, gate.split("=")[0]}) or "," in gate
    assert (
        cli.main(["evaluate", *paths, "--engine", engine, *flags, "--fail-under", "f1=0.9@year:10=1990-1999"])
        == 1
    )
    assert "failed: f1 of year:10=1990-1999 is" in capsys.readouterr().out


def test_bins_beside_all_else(tmp_path: Path, paths, capsys) -> None:
    flags = "--slice year:10 --slice country,year:10 --repairs 2 --show 1"
    flags += " --fail-under precision=0.7@year:10=1990-1999"
    out = ["--out", str(tmp_path / "r"), "--keep", "items", "--summary", str(tmp_path / "page.md")]
    for json_flag in ([], ["--json"]):
        assert cli.main(["evaluate", *paths, *flags.split(), *out, *json_flag]) == 0
    assert "year:10=1990-1999" in (tmp_path / "page.md").read_text()


def test_a_baseline_has_bins(tmp_path: Path, paths, capsys) -> None:
    fb.evaluate(
        paths[0], {1: 0, 2: 0, 3: 1}, slices=[fb.bins("year", 10), ("country", fb.bins("year", 10))]
    ).save(tmp_path / "best")
    asked = ["evaluate", *paths, "--baseline", str(tmp_path / "best"), "--fail-worse"]
    assert cli.main([*asked, "precision=0.3@year:10=1990-1999"]) == 0
    assert cli.main([*asked, "precision=0.2@year:10=1990-1999"]) == 1
    assert cli.main([*asked, "precision=0.5@year:10=1990-1999,country=FR", "--json"]) == 0
    capsys.readouterr()
    assert cli.main([*asked, "precision=0.2@year:5=1990-1994"]) == 2
    assert "has no slices by year:5; evaluate again with --slice year:5" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("country=USA", "no slice is country=USA: there are 2 by country ('FR', 'US'). Did you mean 'US'?"),
        ("country=us", "Did you mean 'US'?"),
        ("country=USA,year=1990", "Did you mean 'US,1990'?"),
        ("year:10=1990", "there are 2 by year:10 ('1980-1989', '1990-1999'). Did you mean '1990-1999'?"),
        ("year:1990:1995=1992", "Did you mean '1990-1994'?"),
        ("share:0.5=0.7", "Did you mean '[0.5, 1)'?"),
        ("year:10=1992,country=US", "Did you mean '1990-1999,US'?"),
        ("year=1990-1999", "Write a bin with its width or edges, such as year:10=1990-1999."),
        ("year:10=nan", "no slice is year:10=nan"),
        ("year:10=1e300", "no slice is year:10=1e300"),
        ("year:10=zzz", "no slice is year:10=zzz"),
    ],
)  # fmt: skip
def test_what_was_meant_by_a_slice_that_is_not_there(ev, paths, capsys, where: str, message: str) -> None:
    with pytest.raises(SliceError) as told:
        ev.check(f"f1>=0.9@{where}")
    assert message in str(told.value)
    assert cli.main(["evaluate", *paths, "--slice", "year:10", "--fail-under", f"f1=0.9@{where}"]) == 2
    assert message in capsys.readouterr().err


def test_bins_of_gates_that_are_none(ev, paths, capsys) -> None:
    with pytest.raises(SliceError, match="must be above 0"):
        ev.check("f1>=0.9@year:0=1")
    with pytest.raises(OptionError, match="write a slice as country=US or country=US,year=2020, not"):
        ev.check("f1>=0.9@year:10")
    assert cli.main(["evaluate", *paths, "--fail-under", "f1=0.9@year:0=1"]) == 2
    assert "must be above 0" in capsys.readouterr().err
    assert cli.main(["evaluate", *paths, "--fail-under", "f1=0.9@country:10=1"]) == 2
    assert "cannot make bins of" in capsys.readouterr().err


def test_gates_on_own_subsets() -> None:
    ev = fb.evaluate(pa.table(TRUTH), pa.table(PREDICTION), slices={"old": [1], "new": [2, 3]})
    assert ev.check("precision>=0.75@slice=new")["value"].to_pylist() == [0.75]
    with pytest.raises(SliceError, match=r"no slice is slice=newer: .* Did you mean 'new'\?"):
        ev.check("precision>=0.75@slice=newer")
    for where in ("old=1", "old=1,new=2"):
        with pytest.raises(ColumnError, match="no attribute 'old'"):
            ev.check(f"precision>=0.75@{where}")
