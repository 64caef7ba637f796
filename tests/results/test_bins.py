"""Bins and parts of composite ids as slices: hand-made names and numbers, the same from both engines and loaded."""

from __future__ import annotations

import datetime
import decimal
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from effort import examples
from hypothesis import given
from hypothesis import strategies as st

import fastbcubed as fb
from fastbcubed.cli import main as cli
from fastbcubed.engines import disk
from fastbcubed.errors import ColumnError, SliceError
from fastbcubed.results.slice_bins import Bins

NAN = float("nan")
DATES = [datetime.date(1989, 12, 31), datetime.date(1990, 1, 1), datetime.date(1999, 12, 31), None]
YEARS = [1989, 1990, 1999, None]

#: Values, what they are binned by, and the names of their bins in order, with the number of values in each.
CASES: dict[str, tuple[Any, Any, list[tuple[str | None, int]]]] = {
    "width": (YEARS, 10, [("1980-1989", 1), ("1990-1999", 2), (None, 1)]),
    "edges": (YEARS, [1990, 1995], [("<1990", 1), ("1990-1994", 1), (">=1995", 1), (None, 1)]),
    "one edge": (YEARS, [1990], [("<1990", 1), (">=1990", 2), (None, 1)]),
    "numbers, not text, give the order": (
        [9, 10, 100, 1000], 10, [("0-9", 1), ("10-19", 1), ("100-109", 1), ("1000-1009", 1)]
    ),
    "width 1": ([3, 3, 5, None], 1, [("3", 2), ("5", 1), (None, 1)]),
    "edges next to each other": ([1, 2, 3, 4], [2, 3, 4], [("<2", 1), ("2", 1), ("3", 1), (">=4", 1)]),
    "below 0": ([-10, -1, 0, 9], 10, [("-10 to -1", 2), ("0-9", 2)]),
    "whole float for a width": (YEARS, 10.0, [("1980-1989", 1), ("1990-1999", 2), (None, 1)]),
    "floats": ([0.1, 0.3, 0.6, NAN], 0.3, [("[0, 0.3)", 1), ("[0.3, 0.6)", 1), ("[0.6, 0.9)", 1), (None, 1)]),
    "a width that is no binary fraction": (
        [0.1, 0.2, 0.3, 0.7], 0.1, [("[0.1, 0.2)", 1), ("[0.2, 0.3)", 1), ("[0.3, 0.4)", 1), ("[0.7, 0.8)", 1)]
    ),
    "floats with edges": ([0.1, 0.5, np.inf, -np.inf], [0.5, 0.75], [("<0.5", 2), ("[0.5, 0.75)", 1), (">=0.75", 1)]),
    "integers and a width that is not whole": ([1, 2, 3, 4], 2.5, [("[0, 2.5)", 2), ("[2.5, 5)", 2)]),
    "dates": (DATES, 10, [("1980-1989", 1), ("1990-1999", 2), (None, 1)]),
    "dates and edges": (DATES, [1990], [("<1990", 1), (">=1990", 2), (None, 1)]),
    "timestamps": (
        pa.array(DATES, pa.date32()).cast(pa.timestamp("us")), 1, [("1989", 1), ("1990", 1), ("1999", 1), (None, 1)]
    ),
    "dictionary": (pa.array(YEARS).dictionary_encode(), 10, [("1980-1989", 1), ("1990-1999", 2), (None, 1)]),
    "uint8": (pa.array([1, 200, 255, None], pa.uint8()), 100, [("0-99", 1), ("200-299", 2), (None, 1)]),
    "int64 at its ends": (
        [-(2**63), 2**63 - 1, 0, 0], 2**62,
        [
            ("-9223372036854775808 to -4611686018427387905", 1), ("0-4611686018427387903", 2),
            ("4611686018427387904-9223372036854775807", 1),
        ],
    ),
    "text of numbers": (["1989", "1990", "1999", None], 10, [("1980-1989", 1), ("1990-1999", 2), (None, 1)]),
    "decimals": (
        [decimal.Decimal("0.10"), decimal.Decimal("0.30"), None, None], 0.3,
        [("[0, 0.3)", 1), ("[0.3, 0.6)", 1), (None, 2)],
    ),
    "whole decimals": (
        pa.array([1989, 1990, None, None], pa.decimal128(20, 0)), 10, [("1980-1989", 1), ("1990-1999", 1), (None, 2)]
    ),
    "float16": (pa.array(np.array([0.5, 1.5, 2.5, 2.5], np.float16)), 1, [("[0, 1)", 1), ("[1, 2)", 1), ("[2, 3)", 2)]),
    "a dictionary of values that no row has, too": (
        pa.DictionaryArray.from_arrays(pa.array([1, 3, 3, None]), ["n/a", "10", "2.5", "25"]), 10,
        [("10-19", 1), ("20-29", 2), (None, 1)],
    ),
    "years of dates": (DATES, "year", [("1989", 1), ("1990", 1), ("1999", 1), (None, 1)]),
    "several years of dates": (DATES, "10y", [("1980-1989", 1), ("1990-1999", 2), (None, 1)]),
    "years of numbers": (YEARS, "5 years", [("1985-1989", 1), ("1990-1994", 1), ("1995-1999", 1), (None, 1)]),
    "quarters": (DATES, "1q", [("1989-Q4", 1), ("1990-Q1", 1), ("1999-Q4", 1), (None, 1)]),
    "halves of years": (
        DATES, "2 quarters",
        [("1989-Q3 to 1989-Q4", 1), ("1990-Q1 to 1990-Q2", 1), ("1999-Q3 to 1999-Q4", 1), (None, 1)],
    ),
    "months": (
        pa.array(DATES, pa.date32()).cast(pa.timestamp("us", "UTC")), "month",
        [("1989-12", 1), ("1990-01", 1), ("1999-12", 1), (None, 1)],
    ),
    # months since the year 0 are 23879, 23880 and 23999; 3411 * 7 = 23877 is October 1989, 3428 * 7 September 1999
    "several months, which go on over the year": (
        DATES, "7mo", [("1989-10 to 1990-04", 2), ("1999-09 to 2000-03", 1), (None, 1)]
    ),
    "text of dates": (
        ["1989-12-31", "1990-01", "1990-01-31T23:59:59Z", None], "month", [("1989-12", 1), ("1990-01", 2), (None, 1)]
    ),
    "text of years": (
        ["1989", "1990-01", "1999-12-31 08:00", None], "10 years", [("1980-1989", 1), ("1990-1999", 2), (None, 1)]
    ),
    "all null": (pa.nulls(4, pa.int32()), 10, [(None, 4)]),
}  # fmt: skip


def sides(tmp_path: Path, values: Any, n: int = 4) -> tuple[Path, Path]:
    truth = pa.table({"item": list(range(n)), "cluster": [0, 0, 1, 1][:n], "year": values})
    prediction = pa.table({"item": list(range(n)), "cluster": [0, 1, 1, 1][:n]})
    pq.write_table(truth, tmp_path / "t.parquet")
    pq.write_table(prediction, tmp_path / "p.parquet")
    return tmp_path / "t.parquet", tmp_path / "p.parquet"


@pytest.mark.cases(3)
@pytest.mark.parametrize("name", CASES)
def test_bins_of_both_engines_and_loaded(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "block_rows", lambda *_: 2)
    values, by, expected = CASES[name]
    given = sides(tmp_path, values)
    key = fb.bins("year", by)
    for engine in ("memory", "disk"):
        ev = fb.evaluate(*given, slices=key, engine=engine)
        found = ev.sliced[str(key)]
        assert list(zip(found[str(key)].to_pylist(), found["n_items"].to_pylist(), strict=True)) == expected
    ev.save(tmp_path / "scores", keep="scores")
    assert fb.load(tmp_path / "scores").slices(key)[str(key)].to_pylist() == [label for label, _ in expected]
    fb.evaluate(*given).save(tmp_path / "items")
    assert fb.load(tmp_path / "items").slices(key)["n_items"].to_pylist() == [n for _, n in expected]


def test_years_of_more_than_16_bits() -> None:
    days = pa.array(
        [0, 2**31 - 1, None, 14_611_000], pa.date32()
    )  # 5881580-07-11 is the last; 40003 * 365.2425 days
    ev = fb.evaluate([0, 0, 1, 1], [0, 1, 1, 1], attributes=pa.table({"day": days}))
    assert ev.slices(fb.bins("day", "year"))["day:year"].to_pylist() == ["1970", "41973", "5881580", None]
    quarters = ev.slices(fb.bins("day", "quarter"))["day:quarter"].to_pylist()
    assert quarters[0] == "1970-Q1" and quarters[2] == "5881580-Q3"


def test_a_dictionary_with_a_null_and_a_repeat() -> None:
    values = pa.DictionaryArray.from_arrays([0, 1, 2, 3], pa.array([7, 7, None, 12]))
    ev = fb.evaluate([0, 0, 1, 1], [0, 1, 1, 1], attributes=pa.table({"year": values}))
    found = ev.slices(fb.bins("year", 10))
    assert found["year:10"].to_pylist() == ["0-9", "10-19", None]
    assert found["n_items"].to_pylist() == [2, 1, 1]


def test_scores_of_bins_are_those_of_their_items(tmp_path: Path) -> None:
    ev = fb.evaluate(*sides(tmp_path, [1, 11, 12, 25]))
    # precisions 1, 1/3, 2/3, 2/3 and recalls 1/2, 1/2, 1, 1
    found = ev.slices(fb.bins("year", 10))
    assert found["precision"].to_pylist() == pytest.approx([1, 1 / 2, 2 / 3])
    assert found["recall"].to_pylist() == pytest.approx([1 / 2, 3 / 4, 1])


def test_bins_are_crossed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "block_rows", lambda *_: 2)
    key = ("true_size", fb.bins("year", 10), fb.bins("year", [11]), "year")
    expected = [
        {"true_size": "2-3", "year:10": "0-9", "year:11": "<11", "year": 1},
        {"true_size": "2-3", "year:10": "10-19", "year:11": ">=11", "year": 11},
        {"true_size": "2-3", "year:10": "10-19", "year:11": ">=11", "year": 12},
        {"true_size": "2-3", "year:10": None, "year:11": None, "year": None},
    ]
    for engine in ("memory", "disk"):
        ev = fb.evaluate(*sides(tmp_path, [12, 11, None, 1]), slices=key, engine=engine)
        (table,) = ev.sliced.values()
        assert table.select(list(expected[0])).to_pylist() == expected
        assert list(ev.sliced) == ["true_size,year:10,year:11,year"]


def test_both_engines_give_the_same_scores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "block_rows", lambda *_: 64)
    rng = np.random.default_rng(5)
    columns = {"item": np.arange(500), "cluster": rng.integers(0, 90, 500), "year": rng.normal(2000, 30, 500)}
    pq.write_table(pa.table(columns), tmp_path / "t.parquet", row_group_size=50)
    pq.write_table(
        pa.table({**columns, "cluster": rng.integers(0, 90, 500)}).drop_columns(["year"]),
        tmp_path / "p.parquet",
    )
    key = fb.bins("year", 7.5)
    found = [
        fb.evaluate(
            tmp_path / "t.parquet", tmp_path / "p.parquet", slices=[key, "pred_size"], engine=engine
        ).sliced[str(key)]
        for engine in ("memory", "disk")
    ]
    assert found[0].column_names == found[1].column_names
    assert found[0][str(key)].to_pylist() == found[1][str(key)].to_pylist()
    for name in found[0].column_names[1:]:
        assert found[0][name].to_pylist() == pytest.approx(found[1][name].to_pylist(), rel=1e-12)


@examples(200)
@given(st.lists(st.integers(-1000, 1000), min_size=1, max_size=20), st.integers(1, 50))
def test_bins_of_one_width_hold_what_their_names_say(values: list[int], width: int) -> None:
    cut = Bins("x", width)
    for value, label in zip(values, cut.labels(cut.numbers(pa.array(values))).to_pylist(), strict=True):
        low, high = label, label
        if width > 1:
            low, _, high = label.partition(" to ") if " to " in label else label.partition("-")
        assert int(low) <= value <= int(high)
        assert int(high) - int(low) + 1 == width


def test_bins_wider_than_64_bits() -> None:
    years = {"item": [1, 2, 3, 4], "year": [-1, 0, 2**62, None]}
    ev = fb.evaluate({1: 1, 2: 1, 3: 1, 4: 2}, {1: 1, 2: 1, 3: 2, 4: 2}, attributes=years)
    assert ev.slices(fb.bins("year", 2**63))["n_items"].to_pylist() == [1, 2, 1]
    assert ev.slices(fb.bins("year", [0, 2**64]))["n_items"].to_pylist() == [1, 2, 1]


def test_bins_show_how_they_are_made() -> None:
    assert [repr(fb.bins("d", by)) for by in ("year", "2y", "12mo")] == [
        'bins("d", "year")', 'bins("d", "2 years")', 'bins("d", "12 months")',
    ]  # fmt: skip
    assert str(fb.bins("d", "1q")) == "d:quarter"
    assert repr(fb.bins("year", 10)) == 'bins("year", 10)'
    assert repr(fb.bins('the "é"', [0.5, 2])) == r'bins("the \"é\"", [0.5, 2])'
    assert repr(("country", fb.bins("year", 2.5))) == """('country', bins("year", 2.5))"""


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_bins_in_the_words_of_the_command_line_are_hinted_at(engine: str, tmp_path: Path) -> None:
    given = sides(tmp_path, YEARS)
    for name, hint in (
        ("year:10", 'fb.bins("year", 10)'),
        ("year:1990:2000", 'fb.bins("year", [1990, 2000])'),
        ("yaer:2.5", 'fb.bins("year", 2.5)'),
    ):
        with pytest.raises(ColumnError, match=re.escape(f"no attribute '{name}'")) as told:
            fb.evaluate(*given, slices=[name], engine=engine)
        assert str(told.value).endswith(f" To slice by bins, pass {hint}.")
        with pytest.raises(ColumnError, match=re.escape(f"pass {hint}.")):
            fb.evaluate(*given).slices(("true_size", name))
    for name in ("year:0", "year:x", "zzz:10"):
        with pytest.raises(ColumnError, match=f"no attribute '{name}'") as told:
            fb.evaluate(*given, slices=[name], engine=engine)
        assert "fb.bins" not in str(told.value)


WRONG = {
    "width 0": (lambda: fb.bins("year", 0), "width of the bins of 'year' must be above 0"),
    "width below 0": (lambda: fb.bins("year", -1), "must be above 0"),
    "no number": (lambda: fb.bins("year", "10"), r"a width \(a number\) or a list of edges"),
    "true": (lambda: fb.bins("year", True), r"a width \(a number\)"),
    "no part of the calendar": (lambda: fb.bins("day", "week"), '"quarter", "month" or'),
    "no months": (lambda: fb.bins("day", "0 months"), '"quarter", "month" or'),
    "infinite": (lambda: fb.bins("year", np.inf), r"a width \(a number\)"),
    "no edges": (lambda: fb.bins("year", []), "ascending numbers"),
    "edges that do not ascend": (lambda: fb.bins("year", [2, 2]), "ascending numbers"),
    "no name": (lambda: fb.bins("", 2), "bins need the name of an attribute, not"),
    "text for an edge": (lambda: fb.bins("year", [1, "2"]), "ascending numbers"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_wrong_bins_are_named(name: str) -> None:
    make, message = WRONG[name]
    with pytest.raises(SliceError, match=message):
        make()


@pytest.mark.cases(0)
@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_values_that_have_no_bins(engine: str, tmp_path: Path) -> None:
    for values, by, message in (
        (
            list("abcd"),
            1,
            r"cannot make bins of 'year': some of its values are not numbers \(first: '[a-d]'.*\)\. Slice by",
        ),
        (
            ["1990", None, "", "1e3"],
            1,
            r"bins of 'year': some of its values are not numbers \(first: ''\)\. Slice by",
        ),
        (YEARS, "month", "'year' cannot be binned by month: it has type int64, not dates"),
        ([1.5, 2.5, 3.5, 4.5], "quarter", "'year' cannot be binned by quarter: it has type double"),
        (
            ["31/12/2020", None, "2020-13-01", "2020-01-02"],
            "month",
            "of its values are not dates such as 2020-03-31",
        ),
        (["2020", "2020-01", None, "2020-01-02"], "month", r"not dates such as 2020-03-31 \(first: '2020'\)"),
        ([True, False, True, None], 1, "has type bool; bins need numbers"),
        ([datetime.time(1)] * 4, 1, "has type time64"),
        ([1.0, np.inf, -np.inf, 2.0], 1, "some values of 'year' are in no bin of width 1"),
        ([1e300, 1.0, 1.0, 2.0], 1e-9, "some values of 'year' are in no bin of width 1e-09"),
        (pa.array([2**64 - 1, 1, 2, 3], pa.uint64()), 1, "cannot make bins of 'year'"),
        ([[1], [2], [3], [4]], 1, "cannot slice by 'year'"),
    ):
        with pytest.raises(SliceError, match=message.replace("'year'", "'(truth.)?year'")):
            fb.evaluate(*sides(tmp_path, values), slices=fb.bins("year", by), engine=engine)
    with pytest.raises(ColumnError, match=r"no attribute 'yaer'.*Did you mean 'year'\?"):
        fb.evaluate(*sides(tmp_path, YEARS), slices=fb.bins("yaer", 10), engine=engine)
    with pytest.raises(SliceError, match="true_size is always binned by powers of two"):
        fb.evaluate(*sides(tmp_path, YEARS), slices=("year", fb.bins("true_size", 10)), engine=engine)
    with pytest.raises(SliceError, match="different attributes"):
        fb.evaluate(
            *sides(tmp_path, YEARS), slices=[(fb.bins("year", 10), fb.bins("year", 10.0))], engine=engine
        )


def test_bins_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = list(map(str, sides(tmp_path, YEARS)))
    flags = ["--slice", "year:10", "--slice", "true_size,year:1990:1995", "--slice", r"year"]
    assert cli.main(["evaluate", *paths, *flags, "--json"]) == 0
    slices = json.loads(capsys.readouterr().out)["slices"]
    assert list(slices) == ["year:10", "true_size,year:1990:1995", "year"]
    assert [row["year:10"] for row in slices["year:10"]] == ["1980-1989", "1990-1999", None]
    assert [row["year:1990:1995"] for row in slices["true_size,year:1990:1995"]] == [
        "<1990",
        "1990-1994",
        ">=1995",
        None,
    ]
    assert cli.main(["evaluate", *paths, "--slice", "year:10"]) == 0
    assert "1990-1999" in capsys.readouterr().out
    texts = list(map(str, sides(tmp_path, ["2020-01-31", "2020-02-01", "2020-07-01", None])))
    asked = ["evaluate", *texts, "--slice", "year:month", "--slice", "true_size,year:6mo"]
    assert cli.main([*asked, "--json", "--fail-under", "recall=0.1@year:month=2020-02-15"]) == 2
    assert "Did you mean '2020-02'?" in capsys.readouterr().err
    assert cli.main([*asked, "--json", "--fail-under", "recall=0.1@year:month=2020-02"]) == 0
    slices = json.loads(capsys.readouterr().out)["slices"]
    assert [row["year:month"] for row in slices["year:month"]] == ["2020-01", "2020-02", "2020-07", None]
    assert [row["year:6 months"] for row in slices["true_size,year:6 months"]] == [
        "2020-01 to 2020-06", "2020-07 to 2020-12", None,
    ]  # fmt: skip
    assert cli.main(["evaluate", *paths, "--slice", r"year\:month"]) == 2
    assert "To slice by bins, pass year:month." in capsys.readouterr().err
    sides(tmp_path, YEARS)
    assert cli.main(["evaluate", *paths, "--slice", r"year\:10"]) == 2
    err = capsys.readouterr().err
    assert "there is no attribute 'year:10'" in err and "To slice by bins, pass year:10." in err
    assert cli.main(["evaluate", *paths, "--slice", "year:0"]) == 2
    assert "must be above 0" in capsys.readouterr().err


# --- parts of composite ids ---

IDS = {"DATA_SOURCE": ["C", "W", "W", "C"], "RECORD_ID": ["1", "1", "2", "2"]}


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_parts_of_ids_are_attributes(engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "block_rows", lambda *_: 2)
    truth = pa.table({**IDS, "RESOLVED_ENTITY_ID": [0, 0, 1, 1], "more": [1, 2, 3, 4]})
    prediction = pa.table({"src": IDS["DATA_SOURCE"], "no": IDS["RECORD_ID"], "cluster": [0, 1, 1, 1]}).take(
        [3, 1, 0, 2]
    )
    pq.write_table(truth, tmp_path / "t.parquet")
    pq.write_table(prediction, tmp_path / "p.parquet")
    slices = ["DATA_SOURCE", "item.DATA_SOURCE", ("RECORD_ID", "DATA_SOURCE"), fb.bins("RECORD_ID", 2)]
    ev = fb.evaluate(
        tmp_path / "t.parquet", tmp_path / "p.parquet", item=(list(IDS), ["src", "no"]), slices=slices, engine=engine,
        cluster=("RESOLVED_ENTITY_ID", "cluster"),
    )  # fmt: skip
    # precisions 1, 1/3, 2/3, 2/3: of C (1 + 2/3) / 2, of W (1/3 + 2/3) / 2
    assert ev.sliced["DATA_SOURCE"]["DATA_SOURCE"].to_pylist() == ["C", "W"]
    assert ev.sliced["DATA_SOURCE"]["precision"].to_pylist() == pytest.approx([5 / 6, 1 / 2])
    assert ev.sliced["item.DATA_SOURCE"]["precision"].to_pylist() == pytest.approx([5 / 6, 1 / 2])
    assert ev.sliced["RECORD_ID,DATA_SOURCE"]["n_items"].to_pylist() == [1, 1, 1, 1]
    assert ev.sliced["RECORD_ID:2"]["RECORD_ID:2"].to_pylist() == ["0-1", "2-3"]


def test_parts_of_ids_in_loaded_results_and_of_other_forms(tmp_path: Path) -> None:
    truth = pa.table({**IDS, "cluster": [0, 0, 1, 1]})
    ev = fb.evaluate(truth, truth, item=list(IDS))
    ev.save(tmp_path / "out")
    for each in (ev, fb.load(tmp_path / "out")):
        assert each.slices("DATA_SOURCE")["n_items"].to_pylist() == [2, 2]
        assert "DATA_SOURCE" in repr(each)
        with pytest.raises(
            ColumnError, match=r"There are: .*item: DATA_SOURCE, RECORD_ID.*Did you mean 'DATA_SOURCE'"
        ):
            each.slices("data_source")
    tuples = fb.Clustering.from_labels([0, 0, 1], items=[("a", 1), ("b", 1), ("b", 2)])
    assert fb.evaluate(tuples, tuples).slices("item_0")["n_items"].to_pylist() == [1, 2]


def test_a_part_that_is_an_attribute_elsewhere_needs_a_prefix() -> None:
    truth = pa.table({**IDS, "cluster": [0, 0, 1, 1]})
    prediction = pa.table(
        {"a": IDS["DATA_SOURCE"], "b": IDS["RECORD_ID"], "DATA_SOURCE": list("xxxy"), "cluster": [0] * 4}
    )
    ev = fb.evaluate(truth, prediction, item=(list(IDS), ["a", "b"]))
    with pytest.raises(ColumnError, match=r"write 'prediction\.DATA_SOURCE' or 'item\.DATA_SOURCE'"):
        ev.slices("DATA_SOURCE")
    assert ev.slices("prediction.DATA_SOURCE")["n_items"].to_pylist() == [3, 1]
    assert ev.slices("item.DATA_SOURCE")["n_items"].to_pylist() == [2, 2]


def test_parts_of_ids_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "export.csv"
    path.write_text("RESOLVED_ENTITY_ID,DATA_SOURCE,RECORD_ID,MATCH_KEY\n1,C,1,\n1,W,1,+NAME\n2,W,2,\n")
    assert cli.main(["evaluate", str(path), str(path), "--slice", "DATA_SOURCE", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["slices"]["DATA_SOURCE"]
    assert [(row["DATA_SOURCE"], row["n_items"]) for row in rows] == [("C", 1), ("W", 2)]
