"""Runs whose columns have names of their own, in one comparison."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastbcubed as fb
from fastbcubed.cli import main as cli
from fastbcubed.errors import ColumnError, OptionError

TRUTH = pa.table({"unique_id": [1, 2, 3, 4, 5], "cluster": [0, 0, 1, 1, 2]})
#: Precision 2/3, 2/3, 1/3, 1, 1.
SPLINK = TRUTH.append_column("cluster_id", pa.array([1, 1, 1, 4, 5]))
#: All alone: recall 1/2 but for the last.
OWN = pa.table({"my_id": [1, 2, 3, 4, 5], "entity": list("abcde"), "more": [0.0] * 5})


def write(folder: Path) -> list[Path]:
    paths = [folder / f"{name}.parquet" for name in ("truth", "splink", "own")]
    for path, table in zip(paths, (TRUTH, SPLINK, OWN), strict=True):
        pq.write_table(table, path)
    return paths


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_columns_by_run(engine: Any, tmp_path: Path) -> None:
    truth, splink, own = write(tmp_path)
    for cluster, item in (
        (("cluster", {"splink": "cluster_id", "own": "entity"}), ("unique_id", {"own": "my_id"})),
        ({"splink": "cluster_id", "own": "entity"}, {"own": "my_id"}),
    ):
        cmp = fb.compare(truth, {"splink": splink, "own": own}, cluster=cluster, item=item, engine=engine)
        assert cmp["splink"].precision == pytest.approx(11 / 15)
        assert (cmp["own"].precision, cmp["own"].recall) == (1, pytest.approx(3 / 5))
    with pytest.raises(
        OptionError, match="item names a column of 'ours', which is not one of the runs 'splink', 'own'"
    ):
        fb.compare(truth, {"splink": splink, "own": own}, item={"ours": "my_id"})


def test_the_same_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    truth, splink, own = map(str, write(tmp_path))
    asked = ["compare", truth, f"splink={splink}", f"ours={own}"]
    flags = ["--run-cluster", "splink=cluster_id", "--run-cluster", "ours=entity", "--run-item", "ours=my_id"]
    for more in ([], ["--cluster", "cluster,cluster_id"]):
        assert cli.main([*asked, *(flags[2:] if more else flags), *more, "--json"]) == 0
        runs = json.loads(capsys.readouterr().out)["runs"]
        assert runs["splink"]["overall"]["precision"] == pytest.approx(11 / 15)
        assert runs["ours"]["overall"]["recall"] == pytest.approx(3 / 5)
    assert cli.main([*asked, "--run-item", "my_id"]) == 2
    assert "--run-item takes RUN=COLUMN" in capsys.readouterr().err
    assert cli.main([*asked, "--run-item", "other=my_id"]) == 2
    assert (
        "--run-item names a column of 'other', which is not one of the runs 'splink', 'ours'\n"
        in capsys.readouterr().err
    )


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_a_question_about_one_run_names_it(
    engine: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The other run has columns of its own, so that a pair of names would be wrong for it."""
    truth, splink, own = write(tmp_path)
    runs = {"own": own, "kept": splink}
    how: dict[str, Any] = {"item": ("unique_id", {"own": "my_id", "kept": "unique_id"}), "engine": engine}
    with pytest.raises(ColumnError, match=re.escape('cluster=("cluster", {"kept": "cluster_id"})')):
        fb.compare(truth, runs, cluster=("cluster", {"own": "entity"}), **how)
    with pytest.raises(ColumnError, match=re.escape('cluster=(None, {"kept": "cluster_id"})')):
        fb.compare(truth, runs, cluster={"own": "entity"}, **how)
    asked = ["compare", str(truth), f"own={own}", f"kept={splink}", "--run-cluster", "own=entity"]
    asked += ["--item", "unique_id", "--run-item", "own=my_id", "--engine", engine]
    assert cli.main(asked) == 2
    assert (
        "Say which: --run-cluster kept=cluster_id; or --run-cluster kept=cluster." in capsys.readouterr().err
    )


def test_links_on_both_sides(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Truth 1 2, 3 4; prediction 1 2 3, 4: precisions 2/3, 2/3, 1/3, 1, recalls 1, 1, 1/2, 1/2."""
    pq.write_table(pa.table({"p": [1, 3], "q": [2, 4], "r": [0, 0]}), tmp_path / "truth.parquet")
    links = {"unique_id_l": [1, 1, 3], "unique_id_r": [2, 3, 4], "match_probability": [0.9, 0.8, 0.2]}
    pq.write_table(pa.table(links), tmp_path / "links.parquet")
    sides = [str(tmp_path / name) for name in ("truth.parquet", "links.parquet")]
    how = [
        "--links",
        "both",
        "--threshold",
        "0.5",
        "--link-left",
        "p,unique_id_l",
        "--link-right",
        "q,unique_id_r",
    ]
    assert cli.main(["evaluate", *sides, *how, "--json"]) == 0
    scores = json.loads(capsys.readouterr().out)["overall"]
    assert (scores["precision"], scores["recall"]) == pytest.approx((2 / 3, 3 / 4))


def test_names_of_the_truth_alone_where_runs_have_no_columns() -> None:
    """They were used when the first run was read, and were refused with the second."""
    truth = pa.table({"id": [1, 2, 3], "person": [1, 1, 2]})
    runs = {name: {1: name, 2: "x", 3: name} for name in ("a", "b", "c")}
    for how in ({"item": "id", "cluster": "person"}, {"item": ("id", None), "cluster": ("person", None)}):
        cmp = fb.compare(truth, runs, **how)
        assert [cmp[name].recall for name in runs] == pytest.approx([2 / 3] * 3)
