"""Columns of other tools' output: recognised where they can be read in one way, and said; else what to type."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import fastbcubed as fb
from fastbcubed.cli import main as cli
from fastbcubed.errors import ColumnError, IdTypeError
from fastbcubed.inputs.layouts import LAYOUTS

#: What the tools write of three records, of which the first two are one entity; the names are theirs.
OUTPUTS: dict[str, dict[str, list[Any]]] = {
    "Splink": {"cluster_id": ["7", "7", "9"], "unique_id": [7, 8, 9], "first_name": ["a", "b", "c"]},
    "Splink, linked": {
        "cluster_id": ["x-__-7", "x-__-7", "y-__-7"], "source_dataset": ["x", "y", "y"],
        "unique_id": [7, 8, 7], "dob": [1, 2, 3],
    },
    "Zingg": {
        "z_minScore": [0.9, 0.9, 1.0], "z_maxScore": [0.9, 0.9, 1.0], "z_cluster": [0, 0, 1],
        "recId": [7, 8, 9], "fname": ["a", "b", "c"],
    },
    "Zingg on Snowflake": {"Z_MINSCORE": [1.0] * 3, "Z_CLUSTER": [0, 0, 1], "ID": [7, 8, 9], "FNAME": [1, 2, 3]},
    "Zingg without ids": {"z_zid": [7, 8, 9], "z_cluster": [0, 0, 1], "fname": ["a", "b", "c"]},
    "dedupe": {
        "Cluster ID": [0, 0, 1], "confidence_score": [0.9, 0.9, 1.0], "Id": [7, 8, 9], "Site name": ["a", "b", "c"]
    },
    "csvdedupe": {"Cluster ID": [0, 0, 1], "id": [7, 8, 9], "name": ["a", "b", "c"]},
    "dedupe, canonical": {"cluster_id": [0, 0, 1], "canonical_id": [7, 7, 9], "id": [7, 8, 9], "unique_id": [1, 2, 3]},
    "Senzing": {
        "RESOLVED_ENTITY_ID": [1, 1, 2], "RELATED_ENTITY_ID": [0, 0, 0], "MATCH_LEVEL_CODE": ["", "RESOLVED", ""],
        "MATCH_KEY": ["", "+NAME+DOB", ""], "DATA_SOURCE": ["C", "W", "W"], "RECORD_ID": ["7", "8", "7"],
    },
    "Senzing, labels": {"CLUSTER_ID": [1, 1, 2], "RECORD_ID": ["7", "8", "7"], "DATA_SOURCE": ["C", "W", "W"]},
}  # fmt: skip
READ = {
    "Splink": ("Splink", ["unique_id"], ["cluster_id"]),
    "Splink, linked": ("Splink", ["source_dataset", "unique_id"], ["cluster_id"]),
    "Zingg": ("Zingg", ["recId"], ["z_cluster"]),
    "Zingg on Snowflake": ("Zingg", ["ID"], ["Z_CLUSTER"]),
    "Zingg without ids": ("Zingg", ["z_zid"], ["z_cluster"]),
    "dedupe": ("dedupe", ["Id"], ["Cluster ID"]),
    "csvdedupe": ("dedupe", ["id"], ["Cluster ID"]),
    "dedupe, canonical": ("dedupe", ["id"], ["cluster_id"]),
    "Senzing": ("Senzing", ["DATA_SOURCE", "RECORD_ID"], ["RESOLVED_ENTITY_ID"]),
    "Senzing, labels": ("Senzing", ["DATA_SOURCE", "RECORD_ID"], ["CLUSTER_ID"]),
}


def truth_for(name: str, cluster: str = "cluster") -> pa.Table:
    """Return a truth with the ids of an output, the last two records of which are one."""
    _, items, _ = READ[name]
    return pa.table({**{part: OUTPUTS[name][part] for part in items}, cluster: [1, 2, 2], "more": [5, 6, 7]})


@pytest.mark.cases(8)
@pytest.mark.parametrize("engine", ["memory", "disk"])
@pytest.mark.parametrize("name", OUTPUTS)
def test_outputs_are_recognised_and_it_is_said(name: str, engine: str, tmp_path: Path) -> None:
    tool, items, clusters = READ[name]
    paths = [tmp_path / "truth.parquet", tmp_path / "output.parquet"]
    for path, table in zip(paths, (truth_for(name), pa.table(OUTPUTS[name])), strict=True):
        pq.write_table(table, path)
    ev = fb.evaluate(*paths, engine=engine)
    # items 1, 2, 3: precisions 1/2, 1/2, 1 and recalls 1, 1/2, 1/2
    assert (ev.precision, ev.recall) == (pytest.approx(2 / 3), pytest.approx(2 / 3))
    (note,) = [w for w in ev.warnings if w["code"] == "columns-recognised" and paths[1].name in w["message"]]
    assert (note["level"], note["tool"], note["item"], note["cluster"]) == ("note", tool, items, clusters)
    assert f"as {tool} writes them: item = {' + '.join(items)}, cluster = {clusters[0]}" in note["message"]
    assert note in json.loads(ev.to_json())["warnings"]
    ev.save(tmp_path / "out", keep="scores")
    assert fb.load(tmp_path / "out").warnings == ev.warnings


def test_notes_are_no_warnings(recwarn: pytest.WarningsRecorder) -> None:
    ev = fb.evaluate(truth_for("Splink"), pa.table(OUTPUTS["Splink"]))
    assert not recwarn.list
    assert "Note: The columns of the prediction are read as Splink writes them" in " ".join(repr(ev).split())
    assert "Note: The columns of the prediction are read" in ev._repr_html_()


def test_the_command_line_recognises_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pyarrow.csv.write_csv(truth_for("Senzing"), tmp_path / "truth.csv")
    pyarrow.csv.write_csv(pa.table(OUTPUTS["Senzing"]), tmp_path / "export.csv")
    assert cli.main(["evaluate", str(tmp_path / "truth.csv"), str(tmp_path / "export.csv"), "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["warnings"][-1]["item"] == ["DATA_SOURCE", "RECORD_ID"]
    assert "fastbcubed: note: The columns of" in err


def test_names_that_are_given_or_of_default_come_first() -> None:
    truth = pa.table({"item": [7, 8, 9], "cluster": [1, 2, 2], "id": [1, 1, 1], "unique_id": [1, 2, 3]})
    ev = fb.evaluate(truth, pa.table(OUTPUTS["Splink"]))
    assert [w["message"][:29] for w in ev.warnings[1:]] == ["The columns of the prediction"]
    ev = fb.evaluate(truth, truth, cluster=("cluster", "id"))
    assert [w["code"] for w in ev.warnings] == ["few-units"]
    assert ev.recall == 1
    ev = fb.evaluate(pa.table({"id": [7, 8, 9], "cluster": [1, 2, 2]}), pa.table(OUTPUTS["csvdedupe"]))
    assert [w["reasons"]["item"] for w in ev.warnings[1:]] == ["name that a tool writes"] * 2


def test_one_part_may_be_given() -> None:
    output = pa.table({**OUTPUTS["Splink"], "my_id": [7, 8, 9]})
    ev = fb.evaluate(pa.table({"my_id": [7, 8, 9], "cluster": [1, 2, 2]}), output, item="my_id")
    assert [(w["tool"], w["item"], w["cluster"]) for w in ev.warnings[1:]] == [
        (None, ["my_id"], ["cluster"]),
        (None, ["my_id"], ["cluster_id"]),
    ]


def test_default_names_in_another_case() -> None:
    ev = fb.evaluate(
        pa.table({"Item": [1, 2], "Cluster": [1, 1], "x": [1, 2]}),
        pa.table({"ITEM": [1, 2], "CLUSTER": [1, 2], "y": [1, 2]}),
    )
    assert ev.recall == 0.5
    assert [w["item"] for w in ev.warnings[1:]] == [["Item"], ["ITEM"]]


AMBIGUOUS = {
    "the true clusters are in the output, too": (
        {**OUTPUTS["Splink"], "cluster": [1, 2, 2]},
        'Say which: cluster=("cluster", "cluster_id"); or cluster="cluster".',
    ),
    "two ids": (
        {**OUTPUTS["Zingg"], "id": [1, 2, 3]},
        'Say which: item=("item", "id"); or item=("item", "recId").',
    ),
    "ids of two tools": (
        {**OUTPUTS["Splink"], "id": [1, 2, 3]},
        'Say which: item=("item", "unique_id"); or item=("item", "id").',
    ),
    "clusters of two tools": (
        {**OUTPUTS["csvdedupe"], "z_cluster": [1, 2, 2]},
        'Say which: cluster=("cluster", "Cluster ID"); or cluster=("cluster", "z_cluster").',
    ),
    "cases": (
        {**OUTPUTS["csvdedupe"], "ID": [1, 2, 3]},
        'Say which: item=("item", "id"); or item=("item", "ID").',
    ),
    "an item that is a product": (
        {"item": ["tv", "pc", "tv"], "id": [7, 8, 9], "Cluster ID": [0, 0, 1]},
        'Say which: item=("item", "id"); or item="item".',
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", AMBIGUOUS)
def test_ambiguous_columns_raise_with_what_to_type(name: str) -> None:
    output, message = AMBIGUOUS[name]
    with pytest.raises(ColumnError) as caught:
        fb.evaluate(truth_for("Splink").rename_columns(["item", "cluster", "more"]), pa.table(output))
    assert message in str(caught.value)
    assert f"(columns: {', '.join(output)})" in str(caught.value)


def test_what_is_to_be_typed_works() -> None:
    truth = pa.table({"item": [7, 8, 9], "cluster": [1, 2, 2]})
    output = pa.table({**OUTPUTS["Splink"], "cluster": [1, 2, 2]})
    assert fb.evaluate(truth, output, cluster=("cluster", "cluster_id")).f1 == pytest.approx(2 / 3)
    assert fb.evaluate(truth, output, cluster="cluster").f1 == 1


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_relations_of_senzing_are_no_memberships(engine: str, tmp_path: Path) -> None:
    output = {**OUTPUTS["Senzing"], "RELATED_ENTITY_ID": [0, 2, 0]}
    pq.write_table(pa.table(output), tmp_path / "export.parquet")
    with pytest.raises(
        ColumnError, match=r"1 of 3 rows of .* have a RELATED_ENTITY_ID other than 0 \(first: row 1\)"
    ):
        fb.evaluate(truth_for("Senzing"), tmp_path / "export.parquet", engine=engine)


def test_columns_that_are_not_there_are_suggested(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    truth, prediction = truth_for("Splink"), pa.table(OUTPUTS["Splink"])
    for options, typed in (
        ({"item": "Unique_ID"}, 'Did you mean item=("unique_id", "Unique_ID")?'),
        ({"item": ("unique_id", "uniq_id")}, 'Did you mean item="unique_id"?'),
        ({"cluster": ("cluster", "clusterid")}, 'Did you mean cluster=("cluster", "cluster_id")?'),
        ({"item": ["uniqe_id", "first"]}, "Name the right one with item=."),
    ):
        with pytest.raises(ColumnError, match="There is no column") as caught:
            fb.evaluate(truth, prediction, **options)
        assert typed in str(caught.value)
    with pytest.raises(
        ColumnError, match=r"There is no column 'trueth' in the table .* Did you mean 'truth'\?"
    ):
        fb.evaluate("trueth", "pred", table={"truth": [1], "pred": [1]})
    with pytest.raises(ColumnError, match=r"There is no weight column 'wieght'.* Did you mean 'weight'\?"):
        fb.evaluate(
            pa.table({"item": [1], "cluster": [1], "weight": [1.0]}),
            pa.table({"item": [1], "cluster": [1]}),
            weight="wieght",
        )
    path = tmp_path / "weights.parquet"
    pq.write_table(pa.table({"item": [1], "weight": [1.0]}), path)
    with pytest.raises(
        ColumnError, match=r"for weights in a file pass pathlib\.Path\('.*weights\.parquet'\)"
    ):
        one = pa.table({"item": [1], "cluster": [1]})
        fb.evaluate(one, one, weight=str(path))
    pq.write_table(truth, tmp_path / "t.parquet")
    pq.write_table(pa.table({**OUTPUTS["Splink"], "cluster": [1, 2, 2]}), tmp_path / "p.parquet")
    assert cli.main(["evaluate", str(tmp_path / "t.parquet"), str(tmp_path / "p.parquet")]) == 2
    assert "Say which: --cluster cluster,cluster_id; or --cluster cluster." in capsys.readouterr().err


def test_a_source_on_one_side_only_says_what_to_type() -> None:
    linked = pa.table(OUTPUTS["Splink, linked"])
    truth = pa.table({"unique_id": [7, 8], "cluster": [1, 2], "dob": [1, 2]})
    with pytest.raises(IdTypeError, match=r'omit it on both sides instead: item="unique_id"'):
        fb.evaluate(truth, linked)


def test_layouts_are_in_lower_case() -> None:
    for layout in LAYOUTS:
        names = [
            *layout.clusters,
            *layout.items,
            *layout.spare_items,
            *layout.marks,
            layout.source,
            layout.links,
        ]
        assert all(name == name.lower() for name in names if name is not None)
