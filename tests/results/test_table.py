"""Tables to read: Arrow tables to all who take these, and texts to people."""

from __future__ import annotations

import copy
import pickle
import sys

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import fastbcubed as fb
from fastbcubed import Table
from fastbcubed.errors import MissingPackageError

ROWS = pa.table(
    {
        "country": ["US", None, "D<E>"],
        "year": pa.array([2**60 + 1, None, 1999]),
        "n_items": [12345, 1, 2],
        "weight": [12345.5, 1.0, 2.0],
        "exact": [True, False, None],
        "f1": [0.9999996, 0.5, float("nan")],
    }
)


def test_whatever_takes_an_arrow_stream_takes_it() -> None:
    plain = ROWS.drop_columns(["f1"])
    table = Table(plain)
    assert pa.table(table).equals(plain)
    assert pa.RecordBatchReader.from_stream(table).read_all().equals(plain)
    assert pl.DataFrame(table)["n_items"].to_list() == [12345, 1, 2]
    listing = table
    assert duckdb.sql("select sum(n_items) from listing").fetchall() == [(12348,)]
    assert listing is table
    assert table.to_polars().equals(pl.DataFrame(plain))
    assert table.to_arrow() is plain


def test_it_has_what_an_arrow_table_has() -> None:
    table = Table(ROWS)
    assert table.num_rows == len(table) == 3
    assert table.column_names == ROWS.column_names
    assert table["n_items"].to_pylist() == table.column("n_items").to_pylist() == [12345, 1, 2]
    assert table.slice(0, 2).to_pylist() == ROWS.slice(0, 2).to_pylist()
    assert table.schema == ROWS.schema
    assert "to_pandas" in dir(table) and "drop_columns" in dir(table)
    with pytest.raises(AttributeError, match="no_such_thing"):
        _ = table.no_such_thing


def test_tables_made_with_it_are_tables_to_read() -> None:
    table = Table(ROWS)
    parts = [
        table.slice(0, 2),
        table.select(["country", "f1"]),
        table.filter(pc.field("n_items") > 1),
        table[1:],
    ]
    assert all(isinstance(part, Table) for part in parts)
    assert [len(part) for part in parts] == [2, 3, 2, 2]
    assert table.join(Table(pa.table({"country": ["US"], "more": [7]})), "country")["more"].null_count == 2


def test_equality_looks_at_what_is_held() -> None:
    table = Table(ROWS.drop_columns(["f1"]))
    assert table == Table(ROWS.drop_columns(["f1"])) == ROWS.drop_columns(["f1"])
    assert table != table.slice(1) and table != "a table"


@pytest.mark.parametrize("again", [lambda t: pickle.loads(pickle.dumps(t)), copy.copy, copy.deepcopy])
def test_it_is_copied_and_pickled(again) -> None:
    assert again(Table(ROWS.drop_columns(["f1"]))) == ROWS.drop_columns(["f1"])


@pytest.mark.parametrize("kind", ["int8", "int64", "uint16", "uint64"])
def test_integers_with_nulls_stay_integers_in_pandas(kind: str) -> None:
    column = pa.array([7, None, 100], pa.type_for_alias(kind))
    frame = Table(pa.table({"a": column, "b": [1, 2, 3], "c": ["x", "y", None]})).to_pandas()
    assert frame["a"].dtype == pd.api.types.pandas_dtype(
        kind.replace("uint", "UInt").replace("int", "Int", 1)
    )
    assert frame["a"].isna().tolist() == [False, True, False] and frame["a"][0] == 7
    assert frame["b"].dtype == "int64"
    large = Table(ROWS).to_pandas()["year"]
    assert large[0] == 2**60 + 1


def test_without_polars_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(MissingPackageError, match="pip install polars"):
        Table(ROWS).to_polars()


def test_the_text_is_a_grid() -> None:
    assert repr(Table(ROWS)).splitlines() == [
        "country  year                 n_items    weight  exact         f1",
        "US       1152921504606846977   12,345  12,345.5    yes  0.9999996",
        "(null)   (null)                     1         1     no    0.50000",
        "D<E>     1999                       2         2               n/a",
        "",
        "3 rows",
    ]


def test_long_tables_show_their_first_rows_and_wide_ones_name_the_rest() -> None:
    long = pa.table({"item": list(range(21)), "n_items": list(range(21))})
    lines = repr(Table(long)).splitlines()
    assert len(lines) == 1 + 10 + 2
    assert lines[-1] == "21 rows, the first 10 shown"
    wide = pa.table({f"{'column'} {at:02}": [0.5] for at in range(20)})
    lines = repr(Table(wide)).splitlines()
    assert max(map(len, lines[:2])) <= 80
    assert lines[-1].startswith("1 row; 13 more columns: column 07, column 08")


def test_an_empty_table_says_so() -> None:
    assert repr(Table(ROWS.slice(0, 0))).splitlines()[-1] == "0 rows"
    assert "0 rows" in repr(Table(pa.table({})))


def test_html_is_escaped() -> None:
    text = Table(ROWS)._repr_html_()
    assert "D&lt;E&gt;" in text and "<E>" not in text
    assert text.count("<tr>") == 4 and "3 rows" in text


def test_a_dictionary_that_repeats_a_value_becomes_a_categorical() -> None:
    labels = pa.DictionaryArray.from_arrays(
        pa.array([0, 1, 2, 3], pa.int32()), pa.array(["a", "b", "a", "b"])
    )
    ev = fb.evaluate(labels, [1, 1, 2, 2], progress=False)
    assert ev.clusters("true").to_pandas()["cluster"].tolist() == ["a", "b"]
    assert sorted(ev.items().to_pandas()["true_cluster"]) == ["a", "a", "b", "b"]
    assert ev.cells().to_pandas()["true_cluster"].dtype == "category"


def test_results_that_are_no_tables_say_which_of_theirs_are() -> None:
    ev = fb.evaluate([0, 0, 1], [0, 1, 1])
    for result, hint in ((ev, r"\.clusters\(\"true\"\)"), (fb.diff([0, 0, 1], [0, 1, 1]), r"\.changes\(\)")):
        for name in ("column_names", "filter"):
            with pytest.raises(AttributeError, match=f"is not a table and has no '{name}'.*{hint}"):
                getattr(result, name)


def test_results_are_converted_as_their_main_table() -> None:
    """Of pairs of clusters, one is whole and one is torn: items of the latter keep half of theirs."""
    truth, pred = [0, 0, 1, 1, 2, 2], [0, 0, 1, 3, 2, 2]
    ev = fb.evaluate(truth, pred, metrics=["recall", "pair_recall", "onmi_lfk"])
    assert ev.to_arrow().to_pylist() == ev.scores().to_pylist()
    values = ev.to_pandas().set_index("score")["value"].to_dict()
    assert values == pytest.approx({"recall": 5 / 6, "pair_recall": 2 / 3, "onmi_lfk": ev.onmi_lfk})
    assert ev.to_polars()["se"].is_null().to_list() == [False, False, False]
    with pytest.warns(DeprecationWarning, match=r"estimates\(\) has been renamed scores\(\)"):
        assert ev.estimates() == ev.scores()
    cmp = fb.compare(truth, {"a": pred, "b": truth})
    assert cmp.to_pandas()["run"].tolist() == ["a", "b"] and cmp.to_arrow() == cmp.scores().to_arrow()
    d = fb.diff(truth, pred)
    assert d.to_polars()["score"].to_list() == list(d.overall)
    sweep = fb.sweep({"x": 1, "y": 1}, [("x", "y", 0.5)])
    assert sweep.to_pandas()["threshold"].tolist() == [float("inf"), 0.5]


def test_estimates_are_converted_as_the_table_that_they_are() -> None:
    """All four items of a sampled cluster are found: recall is 1, and 1 it is in any frame."""
    est = fb.estimate(dict.fromkeys("abcd", 1), dict.fromkeys("abcd", 1), metrics="recall")
    assert est.to_pandas()["estimate"].tolist() == est.to_polars()["estimate"].to_list() == [1.0]
    assert pa.table(est).schema.equals(est.scores().schema) and est.to_arrow()["score"].to_pylist() == [
        "recall"
    ]
    with pytest.raises(AttributeError, match=r"its tables do, such as \.scores\(\)"):
        est.column_names  # noqa: B018
    with pytest.raises(AttributeError, match="there is no estimate of 'nonsense'"):
        est.nonsense  # noqa: B018


def test_among_equal_figures_the_heaviest_come_first_and_then_names() -> None:
    labels = list("abbbddcc")
    ev = fb.evaluate(labels, labels, keep="items")
    for side in ("true", "pred"):
        listed = ev.clusters(side, order_by="precision")
        assert listed["cluster"].to_pylist() == list("bcda")
        assert ev.clusters(side, order_by="precision", limit=2) == listed.slice(0, 2)
