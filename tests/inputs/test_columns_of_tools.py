"""Tools' output that keeps the input's columns, a true cluster among them: read right, or asked for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import fastbcubed as fb
from fastbcubed.cli import main as cli
from fastbcubed.errors import ColumnError

TRUE, FOUND = [0, 0, 1, 1, 2], [1, 1, 1, 4, 5]
#: Items 1 to 3 share a cluster of 2 and 1: precision 2/3, 2/3, 1/3, 1, 1 (mean 11/15); recall 1, 1, 1/2, 1/2, 1 (4/5).
SCORES = (11 / 15, 4 / 5)
IDS, NAMES = [1, 2, 3, 4, 5], list("abcde")

#: The documented columns of each tool's clusters, to which the input's `cluster`, the true one, is added: the output,
#: the item column, the column to propose first.
KEPT: dict[str, tuple[dict[str, list[Any]], str, str]] = {
    "Splink": ({"cluster_id": FOUND, "unique_id": IDS, "first_name": NAMES}, "unique_id", "cluster_id"),
    "Splink, linked": (
        {"cluster_id": FOUND, "source_dataset": list("xxyyy"), "unique_id": IDS, "first_name": NAMES},
        "unique_id", "cluster_id",
    ),
    "Zingg": (
        {"z_minScore": [1.0] * 5, "z_maxScore": [1.0] * 5, "z_cluster": FOUND, "recId": IDS, "fname": NAMES},
        "recId", "z_cluster",
    ),
    "dedupe": (
        {"Cluster ID": FOUND, "confidence_score": [0.9] * 5, "Id": IDS, "canonical_name": NAMES},
        "Id", "Cluster ID",
    ),
    "Senzing": (
        {"RESOLVED_ENTITY_ID": FOUND, "RELATED_ENTITY_ID": [0] * 5, "MATCH_KEY": [""] * 5, "RECORD_ID": IDS},
        "RECORD_ID", "RESOLVED_ENTITY_ID",
    ),
    "Splink, at a threshold": (
        {"unique_id": IDS, "cluster_p_0_95": FOUND, "dob": NAMES}, "unique_id", "cluster_p_0_95",
    ),
    "Splink, at a weight": ({"unique_id": IDS, "cluster_mw_-2": FOUND, "dob": NAMES}, "unique_id", "cluster_mw_-2"),
    "a merged frame": ({"item": IDS, "entity_id": FOUND}, "item", "entity_id"),
}  # fmt: skip


def sides(tool: str) -> tuple[pa.Table, pa.Table, str, str]:
    output, item, column = KEPT[tool]
    ids = {name: output[name] for name in ("source_dataset", item) if name in output}
    return pa.table({**ids, "cluster": TRUE}), pa.table({**output, "cluster": TRUE}), item, column


@pytest.mark.cases(8, 99)
@pytest.mark.parametrize("named", [False, True], ids=["nothing named", "item named"])
@pytest.mark.parametrize("engine", ["memory", "disk"])
@pytest.mark.parametrize("tool", KEPT)
def test_a_kept_truth_is_asked_for(tool: str, engine: Any, named: bool, tmp_path: Path) -> None:
    """It was read as the prediction, with every score 1, where the item alone was named."""
    *tables, item, column = sides(tool)
    how: dict[str, Any] = {"item": item} if named else {}
    paths = [tmp_path / "in.parquet", tmp_path / "out.parquet"]
    for path, table in zip(paths, tables, strict=True):
        pa.parquet.write_table(table, path)
    for given in (paths, tables) if engine == "memory" else (paths,):
        with pytest.raises(ColumnError) as caught:
            fb.evaluate(*given, engine=engine, **how)
        assert f'Say which: cluster=("cluster", "{column}"); or cluster="cluster".' in str(caught.value)
    ev = fb.evaluate(*paths, engine=engine, cluster=("cluster", column), **how)
    assert (ev.precision, ev.recall) == pytest.approx(SCORES)


@pytest.mark.parametrize("tool", KEPT)
def test_the_same_in_other_verbs(tool: str) -> None:
    truth, output, item, column = sides(tool)
    asked = "can be read in 2 ways"
    for ask in (
        lambda: fb.compare(truth, {"a": output, "b": output}, item=item),
        lambda: fb.diff(output, output, item=item),
        lambda: fb.diff(truth, truth, truth=output, item=item),
        lambda: fb.estimate(truth, output, item=item),
        lambda: fb.sweep(output, [(1, 2, 0.9)], item=item),
        lambda: fb.Clustering.from_table(output, item=item),
    ):
        with pytest.raises(ColumnError, match=asked):
            ask()
    cmp = fb.compare(truth, {"a": output}, cluster=("cluster", column), item=item)
    assert (cmp["a"].precision, cmp["a"].recall) == pytest.approx(SCORES)
    changed = fb.diff(output, output, cluster=("cluster", column), item=item)  # 1 - precision, 1 - recall
    assert changed.overall["merge_rate"] == pytest.approx(4 / 15)
    assert changed.overall["split_rate"] == pytest.approx(1 / 5)


@pytest.mark.cases(3, 99)
@pytest.mark.parametrize("tool", KEPT)
def test_without_a_kept_truth_nothing_is_asked(tool: str) -> None:
    truth, output, item, column = sides(tool)
    ev = fb.evaluate(truth, output.drop_columns(["cluster"]), item=item)
    assert (ev.precision, ev.recall) == pytest.approx(SCORES)
    note = [each for each in ev.warnings if each["code"] == "columns-recognised"][-1]
    assert (note["item"], note["cluster"]) == ([item], [column])
    assert note["reasons"]["item"] == "named"


def test_the_first_proposal_of_the_command_line_is_right(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    given = pd.DataFrame({"unique_id": IDS, "first_name": NAMES, "cluster": TRUE})
    given.to_csv("in.csv", index=False)
    given.assign(cluster_id=FOUND).to_csv("out.csv", index=False)
    for flags in ([], ["--item", "unique_id"]):
        assert cli.main(["evaluate", "in.csv", "out.csv", *flags]) == 2
        assert "Say which: --cluster cluster,cluster_id; or --cluster cluster." in capsys.readouterr().err
    assert cli.main(["evaluate", "in.csv", "out.csv", "--cluster", "cluster,cluster_id", "--json"]) == 0
    scores = json.loads(capsys.readouterr().out)["overall"]
    assert (scores["precision"], scores["recall"]) == pytest.approx(SCORES)
    assert cli.main(["diff", "out.csv", "out.csv"]) == 2
    assert "Say which: --cluster cluster_id,; or --cluster cluster,." in capsys.readouterr().err
    assert (
        cli.main(["diff", "out.csv", "out.csv", "--cluster", "cluster_id,"]) == 2
    )  # the experiment's is open yet
    assert "Say which: --cluster cluster_id; or --cluster cluster_id,cluster." in capsys.readouterr().err
    assert (
        cli.main(["diff", "out.csv", "out.csv", "--truth", "in.csv", "--cluster", "cluster_id,cluster_id,"])
        == 0
    )


def test_none_in_a_pair_names_none() -> None:
    truth = pa.table({"item": [1, 2], "cluster": [1, 1]})
    output = pa.table({"unique_id": [1, 2], "cluster_id": [1, 2], "more": [0, 0]})
    assert fb.evaluate(truth, output, cluster=(None, "cluster_id"), item=("item", None)).recall == 0.5


def test_what_else_may_be_clusters_is_said() -> None:
    output = pa.table({"unique_id": [1, 2], "cluster_id": [1, 2], "true_label": [0, 0]})
    ev = fb.evaluate({1: "x", 2: "x"}, output)
    note = ev.warnings[-1]
    assert note["message"].endswith("cluster = cluster_id. Not read as clusters: true_label.")
    assert (note["others"], note["tool"]) == (["true_label"], "Splink")


def test_a_column_that_may_be_clusters_is_proposed() -> None:
    table = pa.table({"unique_id": [1, 2], "entity": [1, 2], "more": [0, 0]})
    with pytest.raises(
        ColumnError, match=r"There is no column 'cluster' .* with cluster=\. It may be entity\."
    ):
        fb.evaluate({1: "x", 2: "x"}, table)


def test_clusters_at_several_thresholds_are_asked_for() -> None:
    """As Splink writes them, beside the truth of its input: `cluster` was taken, with every score 1."""
    wide = pa.table({"unique_id": IDS, "cluster_p_0_5": FOUND, "cluster_p_0_95": IDS, "cluster": TRUE})
    truth = pa.table({"unique_id": IDS, "cluster": TRUE})
    said = r'cluster=\("cluster", "cluster_p_0_5"\); or cluster=\("cluster", "cluster_p_0_95"\)'
    for table in (wide, wide.drop_columns(["cluster"])):
        with pytest.raises(ColumnError, match=said):
            fb.evaluate(truth, table)
    ev = fb.evaluate(truth, wide, cluster=("cluster", "cluster_p_0_5"))
    assert (ev.precision, ev.recall) == pytest.approx(SCORES)
    assert fb.evaluate("cluster", "cluster_p_0_5", table=wide).recall == pytest.approx(SCORES[1])


#: Pairs as Magellan predicts them: of A0-B1, A1-B0, A2-B2 and A0-B2 the first two, of which the first three match.
MAGELLAN = {
    "_id": [0, 1, 2, 3], "ltable_id": [0, 1, 2, 0], "rtable_id": [1, 0, 2, 2], "ltable_name": list("abcd"),
    "rtable_name": list("efgh"), "name_name_jac": [0.1, 0.2, 0.3, 0.4], "predicted": [1, 1, 0, 0],
}  # fmt: skip


@pytest.mark.parametrize("kept", [False, True])
def test_pairs_of_magellan(kept: bool) -> None:
    """The column of its predictions is no score, and comes before kept labels: 2 of 3 matches, none wrong."""
    pairs = pa.table(MAGELLAN | ({"label": [1, 1, 1, 0]} if kept else {}))
    with pytest.raises(ColumnError, match="which may use the same ids for different rows"):
        fb.Clustering.from_links(pairs)
    with pytest.raises(ColumnError, match='Pass verdict="predicted"'):
        fb.Clustering.from_links(pairs, sources=("a", "b"))
    made = fb.Clustering.from_links(pairs, sources=("a", "b"), verdict="predicted")
    truth = pa.table({"source": list("aaabbb"), "id": [0, 1, 2] * 2, "cluster": [1, 2, 3, 2, 1, 3]})
    ev = fb.evaluate(truth, made, item=["source", "id"])
    assert (ev.precision, ev.recall) == pytest.approx((1, (4 + 2 / 2) / 6))
    with pytest.raises(ColumnError, match=r"looks like a table of links.*from_links"):
        fb.evaluate(truth, pairs)


def test_pairs_of_recordlinkage() -> None:
    """A classifier returns a MultiIndex, a comparison a frame of features by it, or a Series of scores."""
    index = pd.MultiIndex.from_tuples([(1, 2), (2, 3)], names=["rec_id_1", "rec_id_2"])
    truth = dict(zip(IDS, TRUE, strict=True))
    for given in (index, pd.DataFrame({"name": [1.0, 0.5], "dob": [1, 0]}, index=index)):
        ev = fb.evaluate(truth, fb.Clustering.from_links(given))
        assert (ev.precision, ev.recall) == pytest.approx(SCORES)
    scores = pd.Series([0.9, 0.2], index=index)
    ev = fb.evaluate(truth, fb.Clustering.from_links(scores, threshold=0.5))
    assert (ev.precision, ev.recall) == pytest.approx((1, 4 / 5))


def test_pairs_that_zingg_had_labelled_are_no_clusters() -> None:
    table = pa.table({"z_zid": [1, 2], "z_cluster": ["p", "p"], "z_isMatch": [0, 0], "recId": [1, 2]})
    with pytest.raises(ColumnError, match="these are labelled pairs from Zingg, whose z_cluster numbers"):
        fb.evaluate({1: 1, 2: 2}, table)


def test_clusters_of_links_have_no_names_of_their_own() -> None:
    """They are numbered from 0, as the truth may be, which makes no copy of it."""
    truth = pa.table({"item": IDS, "cluster": [0, 0, 1, 1, 2]})
    made = fb.Clustering.from_links([(1, 2), (3, 4)], items=IDS)
    assert "same-input" not in [each["code"] for each in fb.evaluate(truth, made).warnings]
    assert "same-input" not in [each["code"] for each in fb.estimate(truth, made).warnings]
