"""The command diff: its flags, what it prints, its gates, and what show makes of a saved diff."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastbcubed as fb
from fastbcubed.cli import main as cli

COLUMNS = {"old": list("xxxyyz"), "new": list("ppqqqr"), "true": list("uuvvww")}


@pytest.fixture
def paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.setenv("COLUMNS", "100")
    found = {}
    for name, labels in COLUMNS.items():
        table = pa.table({"item": list("abcdef"), "cluster": labels})
        if name == "old":
            table = table.append_column("colour", pa.array(list("rrggbb")))
        found[name] = str(tmp_path / f"{name}.parquet")
        pq.write_table(table, found[name])
    return found


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = cli.main(["diff", *arguments])
    out, err = capsys.readouterr()
    return code, out, err


def test_text(paths: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(
        capsys, paths["old"], paths["new"], "--truth", paths["true"], "--slice", "colour", "--show", "1"
    )
    assert code == 0 and err == ""
    for said in (
        "Of 6 items that both have, 5 (83.3 %) are with other items now.",
        "By colour",
        "Most changed baseline clusters: 2 of 3",
        "Most changed experiment clusters: 2 of 3",
        "Baseline cluster x: 3 items of 2 experiment clusters, split and merged",
    ):
        assert said in out, said
    assert "true_cluster" in out and "predicted" not in out


def test_json_equals_the_library(paths: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, paths["old"], paths["new"], "--json", "--show", "2", "--slice", "colour")
    found = json.loads(out)
    expected = json.loads(fb.diff(paths["old"], paths["new"], slices="colour").to_json())
    assert code == 0 and len(found.pop("opened")) == 2
    assert {k: v for k, v in found.items() if k != "manifest"} == {
        k: v for k, v in expected.items() if k != "manifest"
    }
    assert list(found)[:3] == ["fastbcubed", "baseline", "experiment"]


def test_one_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "wide.csv"
    path.write_text("\n".join(["old,new,true", *map(",".join, zip(*COLUMNS.values(), strict=True))]))
    code, out, _ = run(capsys, "old", "new", "--truth", "true", "--table", str(path), "--json")
    assert code == 0 and json.loads(out)["overall"]["iq"] == pytest.approx(5 / 8)


def test_gates(paths: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    sides = [paths["old"], paths["new"]]
    assert run(capsys, *sides, "--fail-over", "split_rate=0.3")[0] == 0
    code, out, _ = run(
        capsys, *sides, "--fail-over", "merge_distance=0.1", "--fail-over", "split_rate=0.1@colour=g"
    )
    assert code == 1
    assert "failed: merge_jaccard_distance is 0.17778, wanted at most 0.1" in out
    assert "failed: split_rate of colour=g is 0.33333, wanted at most 0.1" in out
    judged = ["--truth", paths["true"], "--fail-under", "iq=0.5", "--fail-over", "bad_index=0.05", "--json"]
    code, out, err = run(capsys, *sides, *judged)
    assert code == 1 and [gate["passed"] for gate in json.loads(out)["gates"]] == [True, False]
    assert "failed: bad_index" in err
    code, _, err = run(capsys, *sides, "--fail-over", "iq=0.5")
    assert code == 2 and "--fail-over iq=0.5: higher is better there; use --fail-under iq=0.5" in err
    code, _, err = run(capsys, *sides, "--fail-under", "iq=0.5")
    assert code == 2 and "truth" in err


def test_wrong_use(paths: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    sides = [paths["old"], paths["new"]]
    code, _, err = run(capsys, *sides, "--truth", paths["true"], "--engine", "disk")
    assert code == 2 and "pass --engine memory" in err
    code, _, err = run(capsys, *sides, "--item", "a,b,c,d")
    assert code == 2 and "baseline's,experiment's,truth's" in err
    code, _, err = run(capsys, *sides, "--unmatched", "truth=drop")
    assert code == 2 and "baseline and experiment" in err


def test_a_saved_diff_is_opened(
    paths: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "out")
    code, _, err = run(
        capsys, paths["old"], paths["new"], "--truth", paths["true"], "--out", out, "--keep", "items"
    )
    assert code == 0 and "fastbcubed.load" in err
    assert isinstance(fb.load(out), fb.Diff)
    assert cli.main(["show", out, "--baseline", "x", "--experiment", "q", "--item", "c"]) == 0
    shown = capsys.readouterr().out
    assert "Baseline cluster x: 3 items" in shown and "Experiment cluster q: 3 items" in shown
    assert "Item c: baseline cluster x, experiment cluster q, true cluster v" in shown
    assert cli.main(["show", out, "--baseline", "nope"]) == 2
    assert "no baseline cluster 'nope'" in capsys.readouterr().err


# -- Ids -------------------------------------------------------------------------------------------


def test_files_of_ids(paths: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """x keeps most of its items in p, y in q, and z in r."""
    files = {flag: str(tmp_path / f"{flag}.parquet") for flag in ("ids", "item-ids", "registry")}
    flags = [part for flag, path in files.items() for part in (f"--{flag}", path)]
    code, out, err = run(capsys, paths["old"], paths["new"], *flags, "--fail-ids-lost", "0.2")
    assert code == 0 and "wrote" in err and "3 rows: 3 kept" in err
    assert "passed: ids_lost is 0.16667, wanted at most 0.2" in out  # one item of six changed its cluster
    assert pq.read_table(files["ids"]).to_pylist()[1] == {
        "experiment_cluster": "q",
        "id": "y",
        "event": "kept",
    }
    assert pq.read_table(files["item-ids"])["cluster"].to_pylist() == list("xxyyyz")
    assert pq.read_table(files["registry"])["last_seen"].to_pylist() == ["new"] * 3
    # The next release, with today's ids as the baseline: a is alone, and its id is new.
    pq.write_table(pa.table({"item": list("abcdef"), "cluster": list("123334")}), tmp_path / "next.parquet")
    again = (
        files["item-ids"],
        str(tmp_path / "next.parquet"),
        "--registry",
        files["registry"],
        "--ids",
        files["ids"],
    )
    before = Path(files["registry"]).read_bytes()
    code, out, err = run(capsys, *again, "--mint", "n", "--fail-ids-lost", "0.1", "--json")
    gate = json.loads(out)["gates"][0]
    assert code == 1 and (gate["score"], gate["at_most"]) == ("ids_lost", 0.1) and gate["value"] == 1 - 5 / 6
    assert "because a gate failed" in err and Path(files["registry"]).read_bytes() == before
    code, _, err = run(capsys, *again, "--mint", "n")
    assert code == 0 and "3 kept, 1 split" in err
    assert pq.read_table(files["registry"]).to_pylist()[3] == {
        "id": "n1", "first_seen": "next", "last_seen": "next", "replaced_by": None,
    }  # fmt: skip
    code, _, err = run(capsys, *again, "--mint", "n")
    assert code == 2 and "already contains the release 'next'" in err and "--release" in err


def test_errors_about_the_smallest_item_name_its_flag(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Cluster 1 is split in two, so its second part needs a new id, but the items have ids of another kind."""
    old, new = (str(tmp_path / f"{name}.parquet") for name in ("old", "new"))
    for side, last in ((old, 1), (new, 2)):
        pq.write_table(pa.table({"item": list("abc"), "cluster": [1, 1, last]}), side)
    code, _, err = run(capsys, old, new, "--ids", str(tmp_path / "ids.parquet"), "--mint-item")
    assert code == 2 and "--mint-item gives strings" in err and "--mint " not in err


def test_ids_lost_as_they_are_named(paths: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, paths["old"], paths["new"], "--fail-ids-lost", "0.5", "--json")
    found = json.loads(out)
    assert code == 1 and found["gates"][0]["value"] == 1
    assert found["id_stability"] == {"as_named": 0.0, "best": pytest.approx(5 / 6)}
    assert run(capsys, paths["old"], paths["old"], "--fail-ids-lost", "0")[0] == 0


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--mint", "n"], "name a file"),
        (["--revive"], "--registry"),
        (["--ids", "ids.csv"], "--ids must name a Parquet file"),
        (["--ids", "a.parquet", "--registry", "a.parquet"], "are the same"),
        (["--fail-ids-lost", "5"], "is not a share from 0 to 1"),
    ],
)
def test_flags_of_ids_that_do_not_fit(
    paths: dict[str, str], flags: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run(capsys, paths["old"], paths["new"], *flags)
    assert code == 2 and said in err
