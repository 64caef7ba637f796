"""Errors that name what is wrong: two sources in one table, comments in CSV, links; and JSON from a pipe."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastbcubed as fb
from fastbcubed.errors import (
    ColumnError,
    FastBCubedError,
    FileFormatError,
    IdTypeError,
    LinkError,
    OptionError,
)

pytestmark = pytest.mark.filterwarnings("ignore::fastbcubed.EvaluationWarning")

#: Records of two sources that number their rows alike, and clusters of them.
SOURCES = {"source_dataset": ["a", "b", "a", "b"], "unique_id": [1, 1, 2, 2]}
TRUTH, SAME = pa.table({**SOURCES, "cluster": [1, 2, 3, 4]}), pa.table({**SOURCES, "cluster": [1, 1, 2, 2]})
ADVICE = r"two sources in column '{}' may have equal ids, pass item=\[\"{}\", \"unique_id\"\]"


@pytest.mark.cases(4, 99)
@pytest.mark.parametrize("engine", ["memory", "disk"])
@pytest.mark.parametrize("table", [TRUTH, SAME], ids=["overlap", "repeated"])
@pytest.mark.parametrize("name", ["source_dataset", "data_source", "Registry"])
def test_equal_ids_of_two_sources(name: str, table: pa.Table, engine: Any, tmp_path: Path) -> None:
    table = table.rename_columns({"source_dataset": name})
    path = tmp_path / "records.parquet"
    pq.write_table(table, path)
    for call in (fb.evaluate, fb.diff, fb.estimate):
        with pytest.raises(FastBCubedError, match=ADVICE.format(name, name)):
            call(path, path, item="unique_id", engine=engine)
    assert fb.evaluate(path, path, item=[name, "unique_id"], engine=engine).recall == 1


def test_no_source_is_named_where_there_is_none() -> None:
    table = pa.table({"unique_id": [1, 1], "cluster": [1, 2], "first_name": ["a", "b"]})
    with pytest.raises(FastBCubedError, match="more than one cluster") as caught:
        fb.evaluate(table, table, item="unique_id")
    assert "source" not in str(caught.value)


def test_ids_of_two_columns_against_one() -> None:
    names = ("source_dataset_l", "source_dataset_r", "unique_id_l", "unique_id_r")
    links = pa.table(dict(zip(names, (["a"], ["b"], [1], [1]), strict=True)))
    made = fb.Clustering.from_links(links)
    for given in ({"item": "unique_id"}, {}):
        with pytest.raises(IdTypeError) as caught:
            fb.evaluate(TRUTH.drop_columns(["source_dataset"]), made, **given)
        assert 'on both sides: item=["source_dataset", "unique_id"]' in str(caught.value)
        assert "(for links, with left= and right=)" in str(caught.value)
    with pytest.raises(ColumnError, match=r"looks like a table of links.*Clustering\.from_links"):
        fb.evaluate(TRUTH, links, item="unique_id")


BODY = "item,cluster\na,x\n{}b,x\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("# by a tool\n" + BODY.format(""), "The first line is a comment"),
        (
            "# by a tool, today\n" + BODY.format(""),
            "remove the line if it is a comment, or",
        ),
        ("# a, b\n# c, d\n" + BODY.format(""), r"begin with '# ' \(first: row 0, '# c'\)"),
        (BODY.format("# half\n"), "line 3 .* looks like a comment"),
        (BODY.format("# half, of it\n"), r"1 of 3 rows .* begin with '# ' \(first: row 1, '# half'\)"),
        (BODY.format("") + "# the end, of it\n", r"begin with '# ' \(first: row 2"),
        (BODY.format("c,x,y\n"), "line 3 .* has 3 fields .* remove the extra fields"),
    ],
)
def test_comments_and_long_rows_of_csv(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(text)
    with pytest.raises((FileFormatError, ColumnError), match=said):
        fb.evaluate({"a": 1, "b": 1}, path)


def test_ids_that_begin_with_a_hash_are_no_comments(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    for text, truth in (
        ("item,cluster\n#1,x\n2,x\n", {"#1": 1, "2": 1}),
        ("item,cluster\n# 1,x\n# 2,x\n", {"# 1": 1, "# 2": 1}),
        ("#item,cluster\na,x\nb,x\n", {"a": 1, "b": 1}),
    ):
        path.write_text(text)
        assert fb.evaluate(truth, path).recall == 1


@pytest.mark.parametrize(
    "text",
    [
        '[{"item": "a", "cluster": 1}, {"item": "b", "cluster": 1}]', '{"a": 1, "b": 1}', '{\n "a": 1,\n "b": 1}',
        ' [["a", "b"]]', '{"item": "a", "cluster": 1}\n{"item": "b", "cluster": 1}\n',
        '{"item": ["a", "b"], "cluster": [1, 1]}', '{"item":{"0":"a","1":"b"},"cluster":{"0":1,"1":1}}',
        "item,cluster\na,1\nb,1\n",
    ],
)  # fmt: skip
def test_json_from_a_pipe(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    ev = fb.evaluate({"a": 1, "b": 1}, "-")
    assert (ev.coverage.n_common, ev.recall) == (2, 1)


@pytest.mark.parametrize(
    ("text", "n"), [('{"item": "a", "cluster": 1}\n', 1), ("[item],[cluster]\na,1\nb,1\n", 2)]
)
def test_what_else_begins_so(text: str, n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    item, cluster = ("item", "cluster") if n == 1 else ("[item]", "[cluster]")
    assert len(fb.Clustering.from_table("-", item=item, cluster=cluster)) == n


def test_a_column_without_a_name_makes_no_composite_id(tmp_path: Path) -> None:
    """pandas writes its index as a first column without a name: true pairs ab, cd; predicted bc; tools' layouts."""
    path = tmp_path / "clusters.csv"
    for cluster, item in (("cluster_id", "id"), ("z_cluster", "record_id"), ("Cluster ID", "id")):
        path.write_text(f",{item},{cluster}\n7,a,1\n8,b,2\n9,c,2\n")
        ev = fb.evaluate({"a": 1, "b": 1, "c": 2}, path)
        assert ev.reading["prediction"]["item"]["columns"] == [item]
        assert ev.precision == pytest.approx(2 / 3)  # 1, 1/2, 1/2


@pytest.mark.parametrize(
    "names", [["item", "cluster", "cluster"], ["item", "item", "cluster"], ["id", "cluster_id", "id"]]
)
def test_a_name_of_two_columns_is_said_to_be_that(names: list[str], tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text(",".join(names) + "\na,b,c\n")
    for given in (path, pa.table([pa.array(["a"])] * 3, names=names)):
        for engine in ("memory", "disk"):
            with pytest.raises(
                ColumnError, match=r"There are 2 columns named '\w+' in .* Rename all but one of them"
            ):
                fb.evaluate(given, {"a": 1} if engine == "memory" else given, engine=engine)


def test_rows_in_groups_and_fitted_models_are_refused_by_what_to_pass() -> None:
    import polars as pl

    class KMeans:
        """What a fitted model is known by."""

        labels_ = (0, 0, 1)

    table = {"item": [1, 2], "cluster": ["a", "a"]}
    for groups in (pd.DataFrame(table).groupby("cluster"), pl.DataFrame(table).group_by("cluster")):
        for call in (fb.evaluate, fb.diff):
            with pytest.raises(
                ColumnError, match=r"a grouped table \(.*GroupBy\)\. Pass the ungrouped table"
            ):
                call(groups, groups)
    with pytest.raises(ColumnError, match=r"not KMeans\. Pass its labels_\."):
        fb.evaluate([1, 1], KMeans())
    with pytest.raises(ColumnError, match=r"not bytes\.$"):
        fb.evaluate(b"aab", [1, 1, 2])


def test_values_of_wrapped_types_are_no_ids_as_little_as_without_the_wrapping() -> None:
    periods = pd.period_range("2020", periods=2, freq="Y")  # held as 50 and 51
    for values in (periods, pd.cut(pd.Series([1, 2]), 2).astype(pd.IntervalDtype())):
        for table in ({"item": values, "cluster": [1, 1]}, {"item": [50, 51], "cluster": values}):
            with pytest.raises(IdTypeError, match="Cast to string"):
                fb.evaluate(pd.DataFrame(table), {50: 1, 51: 1})
    flags = pa.ExtensionArray.from_storage(pa.bool8(), pa.array([0, 1], pa.int8()))
    with pytest.raises(IdTypeError, match="true and false"):
        fb.evaluate(pa.table({"item": [0, 1], "cluster": flags}), {0: 1, 1: 1})


def test_clusters_and_their_items_in_dicts_of_sets_are_asked_for_without_overlaps_too() -> None:
    truth, prediction = {"a": {1, 2}, "b": {3, 4}}, {10: {1, 2, 3}, 20: {4}}
    for options in ({}, {"overlapping": True}):
        with pytest.raises(OptionError, match=r"from cluster to items.*from_clusters\(\.\.\.\) for both"):
            fb.evaluate(truth, prediction, **options)


def test_columns_of_links_are_not_proposed_as_clusters() -> None:
    """Splink keeps the truth of its input beside both ids."""
    names = ("unique_id_l", "unique_id_r", "cluster_l", "cluster_r", "match_weight")
    with pytest.raises(
        ColumnError, match="A table with unique_id_l and unique_id_r looks like a table of links"
    ) as caught:
        fb.evaluate({1: 1}, pa.table([pa.array([1])] * 5, names=names))
    assert "It may be" not in str(caught.value)


def test_scores_of_links_that_are_no_numbers_in_csv(tmp_path: Path) -> None:
    path = tmp_path / "links.csv"
    path.write_text("left,right,score\n1,2,90%\n3,4,80%\n")
    with pytest.raises(
        LinkError, match=r"'90%', '80%' in rows 0, 1\)\. Name the column of scores with score="
    ):
        fb.Clustering.from_links(path, threshold=0.5)
