"""Gates: what `Evaluation.check` and the command line let pass, and what they refuse."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastbcubed as fb
from fastbcubed.cli import main as cli
from fastbcubed.errors import GateError, MetricError, OptionError, SliceError

#: W3 of the formulas, with a country: precision is (1/2 + 1 + 1/2) / 3 = 2/3, recall (1/2 + 1/2 + 1) / 3 = 2/3.
TRUTH = {"item": [1, 2, 3], "cluster": [0, 0, 1], "country": ["US", "US", None], "year": [2020, 2021, 2020]}
PREDICTION = {"item": [1, 2, 3], "cluster": [0, 1, 0]}


@pytest.fixture
def ev() -> fb.Evaluation:
    return fb.evaluate(pa.table(TRUTH), pa.table(PREDICTION))


@pytest.fixture
def paths(tmp_path: Path) -> list[str]:
    found = []
    for name, columns in (("truth", TRUTH), ("pred", PREDICTION)):
        pq.write_table(pa.table(columns), tmp_path / f"{name}.parquet")
        found.append(str(tmp_path / f"{name}.parquet"))
    return found


# -- check -----------------------------------------------------------------------------------------


def test_check_returns_what_was_passed(ev) -> None:
    found = ev.check(
        "f1 >= 0.6", "jaccard_distance<=0.6", precision=0.66, over_merge_rate=0.4, truth_coverage=1
    )
    assert found["gate"].to_pylist() == [
        "f1",
        "jaccard_distance",
        "precision",
        "over_merge_rate",
        "truth_coverage",
    ]
    assert found["passed"].to_pylist() == [True] * 5
    assert found["value"].to_pylist() == pytest.approx([2 / 3, 5 / 9, 2 / 3, 1 / 3, 1])
    assert found["at_least"].to_pylist() == [0.6, None, 0.66, None, 1]
    assert found["at_most"].to_pylist() == [None, 0.6, None, 0.4, None]


def test_check_lists_all_that_failed(ev) -> None:
    with pytest.raises(AssertionError) as told:
        ev.check("recall>=0.6", f1=0.9, over_merge_rate=0.1, truth_coverage=1)
    assert isinstance(told.value, GateError)
    assert str(told.value).splitlines() == [
        "2 of 4 gates failed",
        "failed: f1 is 0.66667, wanted at least 0.9",
        "failed: over_merge_rate is 0.33333, wanted at most 0.1",
    ]


def test_check_of_slices(ev) -> None:
    """Of the US items, precision is (1/2 + 1) / 2; the third item's is 1/2."""
    found = ev.check(
        "precision>=0.75@country=US", "precision>=0.5 @ country=(null), year=2020", "f1>=0.5@year=2020"
    )
    assert found["gate"].to_pylist()[1] == "precision of country=(null),year=2020"
    assert found["value"].to_pylist()[:2] == pytest.approx([0.75, 0.5])
    with pytest.raises(GateError, match=r"precision of country=US is 0\.75000, wanted at least 0\.8"):
        ev.check("precision>=0.8@country=US")
    with pytest.raises(SliceError, match=r"no slice is country=FR: there are 2 by country \('.*US"):
        ev.check("precision>=0.8@country=FR")


def test_digits_tell_a_failed_gate_from_a_passed_one() -> None:
    n = 1_000_000
    truth = [0, 1, *range(1, n - 1)]
    ev = fb.evaluate([0, 0, *truth[2:]], truth)  # recall is 1 - 1/n
    with pytest.raises(GateError, match=r"recall is 0\.999999, wanted at least 0\.9999995"):
        ev.check(recall=0.9999995)
    with pytest.raises(GateError, match=r"precision is 0\.6666666666666666, wanted at least 0\.66667"):
        fb.evaluate([0, 0, 1], [0, 1, 0]).check(precision=0.66667)


def test_a_score_that_is_not_defined_fails(ev) -> None:
    with pytest.raises(GateError, match="prediction_coverage is n/a"):
        weighted = {"a": 1.0, "b": 2.0}
        fb.evaluate({"a": 1, "b": 1}, {"a": 1, "b": 2, "c": 3}, weight=weighted).check(
            prediction_coverage=0.1
        )


@pytest.mark.parametrize(
    ("gates", "named", "error", "message"),
    [
        ((), {}, OptionError, "name what has to be reached"),
        (("f1>0.9",), {}, OptionError, "a gate is written as"),
        ((0.9,), {}, OptionError, "a gate is written as"),
        (("f1>=0.9@US",), {}, OptionError, "a slice is written as country=US"),
        (("f1<=0.9",), {}, OptionError, 'higher is better there; use "f1>=0.9"'),
        ((), {"f1": 90}, OptionError, "f1 is from 0 to 1. Write 90 % as 0.9"),
        ((), {"f1": "0.9"}, OptionError, "the value that f1 has to reach"),
        ((), {"truth_coverage": 1.1}, OptionError, "truth_coverage is from 0 to 1"),
        ((), {"f2": 0.9}, MetricError, "Unknown score 'f2'"),
        ((), {"elm": 0.9}, OptionError, "elm is a family"),
        ((), {"expected_mutual_info": 1}, OptionError, 'write "expected_mutual_info>=1" or "'),
        (("rand>=0.9@country=US",), {}, OptionError, "rand is of all items at once"),
        (("truth_coverage>=0.9@country=US",), {}, OptionError, "slices have none"),
        (("accuracy>=0.9@country=US",), {}, OptionError, "the slices have no accuracy"),
    ],
)
def test_check_refuses(ev, gates, named, error, message) -> None:
    with pytest.raises(error) as told:
        ev.check(*gates, **named)
    assert message in str(told.value) and not isinstance(told.value, GateError)


# -- Command line ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flags", "lines"),
    [
        ("--fail-under f1=0.6", ["passed: f1 is 0.66667, wanted at least 0.6"]),
        ("--fail-under truth_coverage=1", ["passed: truth_coverage is 1, wanted at least 1"]),
        (
            "--fail-under precision=0.7@country=US --fail-under precision=0.7@country=(null),year=2020",
            [
                "passed: precision of country=US is 0.75000, wanted at least 0.7",
                "failed: precision of country=(null),year=2020 is 0.50000, wanted at least 0.7",
            ],
        ),
        ("--fail-over accuracy=1@country=US", None),
        ("--fail-under accuracy=0.1@country=US", ["passed: accuracy of country=US is 0.50000, wanted at least 0.1"]),
        ("--fail-on-warning", ["passed: warnings: none, wanted none"]),
        ("--fail-on-warning few-units --fail-over over_merge_rate=0.1", [
            "failed: over_merge_rate is 0.33333, wanted at most 0.1",
            "passed: warning few-units: not given, wanted none",
        ]),
    ],
)  # fmt: skip
def test_a_line_for_each_gate(paths, capsys, flags: str, lines) -> None:
    code = cli.main(["evaluate", *paths, *flags.split()])
    out, err = capsys.readouterr()
    if lines is None:
        assert code == 2 and "higher is better there; use --fail-under accuracy=1" in err
        return
    assert out.splitlines()[-len(lines) :] == lines
    assert code == any(line.startswith("failed") for line in lines)


def test_gates_in_json(paths, capsys) -> None:
    flags = "--fail-under f1=0.9 --fail-over jaccard_distance=0.9 --fail-under recall=0.1@year=2020 --json"
    assert cli.main(["evaluate", *paths, *flags.split()]) == 1
    out, err = capsys.readouterr()
    first, second, third = json.loads(out)["gates"]
    assert first == {
        "gate": "f1", "passed": False, "score": "f1", "slice": None, "value": pytest.approx(2 / 3), "at_least": 0.9,
    }  # fmt: skip
    assert second["slice"] == {"year": "2020"} and third["at_most"] == 0.9
    assert err.splitlines() == ["fastbcubed: failed: f1 is 0.66667, wanted at least 0.9"]
    assert cli.main(["evaluate", *paths, "--json"]) == 0
    assert "gates" not in json.loads(capsys.readouterr().out)


def test_slices_that_were_asked_for_serve_gates(paths, capsys) -> None:
    flags = (
        "--slice year,country --fail-under f1=0.1@country=US,year=2020 --fail-under f1=0.1@year=2020 --json"
    )
    assert cli.main(["evaluate", *paths, *flags.split()]) == 0
    assert list(json.loads(capsys.readouterr().out)["slices"]) == ["year,country", "year"]


def test_fail_on_warning(tmp_path, paths, capsys) -> None:
    flagged = ["evaluate", paths[0], paths[0], "--fail-on-warning"]
    assert cli.main(flagged) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "failed: warnings: same-input, wanted none"
    assert cli.main([*flagged, "few-units"]) == 0
    assert cli.main([*flagged, "few-units", "--fail-on-warning=same-input"]) == 1
    capsys.readouterr()
    assert cli.main(["evaluate", "--fail-on-warning", *paths, "--json"]) == 2
    assert cli.main([*flagged, "same"]) == 2
    err = capsys.readouterr().err
    assert "no warning has the code 'same'" in err and "Codes: same-input" in err


def test_summary_is_added_to_a_file(tmp_path, paths) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Job\n\n")
    flags = ["--summary", str(page), "--fail-under", "f1=0.9", "--fail-under", "recall=0.5"]
    assert cli.main(["evaluate", *paths, *flags]) == 1
    assert cli.main(["evaluate", paths[0], paths[0], "--summary", str(page)]) == 0
    text = page.read_text()
    assert (
        text.startswith("# Job\n\n## fastbcubed: 3 items ✗\n") and text.count("## fastbcubed: 3 items") == 2
    )
    assert "| f1 | 0.66667 |" in text and "| mean\\_f1 | " in text
    assert "| **failed** | f1 | is 0.66667 | wanted at least 0.9 |" in text
    assert "| passed | recall | is 0.66667 | wanted at least 0.5 |" in text
    assert "> **warning** `same-input`: Truth and prediction are the same file" in text


def test_a_summary_that_cannot_be_written_is_said(tmp_path, paths, capsys) -> None:
    assert cli.main(["evaluate", *paths, "--summary", str(tmp_path / "no" / "page.md")]) == 2
    assert "No such file or directory" in capsys.readouterr().err
