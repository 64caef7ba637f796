"""fastbcubed compare: names of runs, what is printed, JSON, gates."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastbcubed as fb
from fastbcubed.cli.compare_command import runs_of
from fastbcubed.cli.main import main
from fastbcubed.errors import OptionError

TRUTH = {"item": list("abcdefgh"), "cluster": list("11223344"), "part": list("xxxxyyyy")}
OLD = {"item": list("abcdefgh"), "cluster": [1, 1, 2, 2, 3, 4, 5, 6]}
NEW = {"item": list("abcdefgh"), "cluster": [1, 1, 2, 2, 3, 3, 4, 5]}


@pytest.fixture
def paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, columns in (("truth", TRUTH), ("old", OLD), ("new", NEW)):
        pq.write_table(pa.table(columns), f"{name}.parquet")
    wide = {"truth": TRUTH["cluster"], "p50": OLD["cluster"], "p95": NEW["cluster"]}
    pq.write_table(pa.table(wide), "wide.parquet")


@pytest.mark.parametrize(
    ("named", "runs"),
    [
        (["new=a.parquet"], {"new": "a.parquet"}),
        (["run-7.b=a=b.parquet"], {"run-7.b": "a=b.parquet"}),
        (["out/day=5/a.parquet"], {"a": "out/day=5/a.parquet"}),
        (["a.csv.gz", "-"], {"a": "a.csv.gz", "-": "-"}),
        (["s3://bucket/a.parquet?region=eu"], {"a": "s3://bucket/a.parquet?region=eu"}),
    ],
)
def test_runs_are_named_by_a_word_or_by_their_file(named, runs):
    assert runs_of(named, in_table=False) == runs


def test_in_a_table_runs_are_columns():
    assert runs_of(["p50=cluster_50", "other", "two=a+b"], in_table=True) == {
        "p50": "cluster_50", "other": "other", "two": ["a", "b"],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("named", "said"), [(["a=x", "a=y"], "two runs are named 'a'"), (["a="], "has no path")]
)
def test_wrong_names_say_so(named, said):
    with pytest.raises(OptionError, match=said):
        runs_of(named, in_table=False)


def test_show_has_the_slices_that_were_printed(paths, capsys):
    """In part x the runs are the same; in part y, new finds the third cluster: recall from 1/2 to 3/4."""
    command = "compare truth.parquet old=old.parquet new=new.parquet --slice part --out compared"
    assert main(f"{command} --json".split()) == 0
    printed = capsys.readouterr().out
    assert main("show compared --json".split()) == 0
    assert capsys.readouterr().out == printed
    rows = [(row["run"], row["part"], row["recall_delta"]) for row in json.loads(printed)["slices"]["part"]]
    assert rows == [("old", "x", None), ("new", "x", 0.0), ("old", "y", None), ("new", "y", 0.25)]
    assert main("show compared".split()) == 0
    assert "By part: most changed slices, against old" in capsys.readouterr().out


def test_what_is_printed(paths, capsys):
    command = "compare truth.parquet old=old.parquet new=new.parquet --slice part --show 1 --worst 2"
    assert main(command.split()) == 0
    out = capsys.readouterr().out
    # f1: old 2 * 0.75 / 1.75, new 2 * 0.875 / 1.875
    assert out.startswith(
        "No clear difference between old and new: F1 0.8571 → 0.9333, +0.0762 (-0.4045 to\n"
        "+0.5568), which stems from few groups"
    )
    assert "Comparison of 2 runs on 8 items that all of them score" in out
    # recall: old (1 + 1 + 1/2 + 1/2) / 4, new (1 + 1 + 1 + 1/2) / 4
    said = "new against old: precision the same; recall +0.125 (-"
    assert said in " ".join(out.split())
    assert "By part: most changed slices, against old" in out
    assert "Most changed true clusters from old to new" in out
    assert "True cluster 3: 2 items; in old in 2 clusters, in new in 1" in out


def test_json_has_all_of_it(paths, capsys):
    command = (
        "compare truth.parquet old.parquet new.parquet --json --slice part --show 1 --fail-worse recall=0"
    )
    assert main(command.split()) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["baseline"], found["n_items"], list(found["runs"])) == ("old", 8, ["old", "new"])
    (recall,) = (row for row in found["deltas"] if row["score"] == "recall")
    assert (recall["baseline_value"], recall["experiment_value"], recall["delta"]) == (0.75, 0.875, 0.125)
    assert found["gates"] == [
        {
            "gate": "new: recall", "passed": True, "run": "new", "score": "recall", "slice": None, "value": 0.875,
            "baseline": 0.75, "worse_by": -0.125, "at_most_worse_by": 0.0, "n_items": 8, "baseline_n_items": 8,
        }
    ]  # fmt: skip
    assert [(row["run"], row["part"]) for row in found["slices"]["part"]] == [
        ("old", "x"), ("new", "x"), ("old", "y"), ("new", "y"),
    ]  # fmt: skip
    assert found["opened"][0]["members"][0] == {
        "item": "e", "true_cluster": "3", "old.pred_cluster": 3, "new.pred_cluster": 3, "part": 0,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("gate", "code"),
    [
        ("recall=0.2", 0),
        ("recall=0.1", 1),
        ("recall=0.3@part=y", 0),
        ("recall=0.2@part=y", 1),
        ("truth_coverage=0", 0),
    ],
)
def test_a_run_that_is_worse_fails(paths, capsys, gate, code):
    # against new, recall of old is worse by 1/8, and in part y by 1/4
    command = f"compare truth.parquet old.parquet new.parquet --baseline new --fail-worse {gate}"
    assert main(command.split()) == code
    assert ("passed" if code == 0 else "failed") + ": old: " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ("--baseline nix", "the baseline 'nix' is not one of the runs"),
        ("--level 2", "level must be a confidence"),
        ("--unit nix", "there is no attribute 'nix'"),
        ("--fail-worse f1=-1", "the allowed loss of f1"),
        ("--fail-worse pairs=0.1", "is a family"),
    ],
)
def test_wrong_flags_exit_with_2(paths, capsys, flags, said):
    assert main(f"compare truth.parquet old.parquet new.parquet {flags}".split()) == 2
    assert said in capsys.readouterr().err


def test_runs_of_a_wide_table(paths, capsys):
    assert main("compare truth p50=p50 p95 --table wide.parquet --json".split()) == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["recall"] for row in found["scores"]] == [0.75, 0.875]


def test_what_holds_for_several_runs_is_told_once(tmp_path, capsys):
    """Slices of the truth are as small in every run; one run alone lacks most of the truth."""
    items = list(range(400))
    pq.write_table(pa.table({"item": items, "cluster": items, "k": ["a"] + ["b"] * 399}), tmp_path / "t")
    for name, n in (("old", 400), ("new", 400), ("few", 50)):
        pq.write_table(pa.table({"item": items[:n], "cluster": items[:n]}), tmp_path / name)
    paths = {name: str(tmp_path / name) for name in ("t", "old", "new", "few")}
    assert main(["compare", paths["t"], paths["old"], paths["new"], "--slice", "k"]) == 0
    lines = [line for line in capsys.readouterr().err.splitlines() if "[small-slice]" in line]
    assert len(lines) == 1 and lines[0].startswith("fastbcubed: note: all runs: By k, 1 of 2 slices has")
    with pytest.warns(fb.EvaluationWarning) as said:
        fb.compare(paths["t"], {name: paths[name] for name in ("old", "new", "few")}, align="each")
    texts = [str(each.message).partition(": ") for each in said]
    lacking = "Items of the truth missing from runs are dropped"  # which names the runs
    assert {names for names, _, _ in texts} <= {"few", "old, new", "all runs", lacking}
    assert len({text for _, _, text in texts}) == len(texts)


@pytest.mark.slow
def test_slices_without_errors_have_no_column_for_these(tmp_path, capsys):
    truth = pa.table({"item": [1, 1, 2, 3], "cluster": [1, 2, 1, 2], "k": list("aabb")})
    pq.write_table(truth, tmp_path / "t")
    for name, clusters in (("old", [1, 2, 3]), ("new", [1, 1, 2])):
        pq.write_table(pa.table({"item": [1, 2, 3], "cluster": clusters}), tmp_path / name)
    argv = [
        "compare",
        *(str(tmp_path / name) for name in ("t", "old", "new")),
        "--overlapping",
        "--slice",
        "k",
    ]
    assert main(argv) == 0
    header = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("k  items"))
    assert "Δ" in header


# Runs that lack items of the truth


@pytest.fixture
def lacking(paths):
    """Of 20 pairs `full` cuts ten, and `linked` lacks the items of these; on the other 20 items both are right."""
    items = list(range(40))
    full = [k // 2 if k < 20 else 100 + k for k in items]
    for name, n, labels in (("truth", 40, [k // 2 for k in items]), ("full", 40, full), ("linked", 20, full)):
        pq.write_table(pa.table({"item": items[:n], "cluster": labels[:n]}), f"{name}.parquet")


@pytest.mark.cases(4, 99)
@pytest.mark.parametrize(
    ("gate", "code", "said"),
    [
        (
            "--fail-worse f1=0.9",
            1,
            "linked lacks 20 items of the truth and full lacks 0; these are dropped. Pass --unmatched",
        ),
        (
            "--fail-worse f1=0 --unmatched truth=singleton",
            0,
            "passed: linked: f1 is 0.85714, 0.85714 in full",
        ),
        (
            "--fail-worse f1=0 --baseline linked",
            1,
            "failed: full: f1 is 1, 1 in linked: the same, wanted at most 0 worse. linked lacks 20 items of "
            "the truth and full lacks 0; these are dropped. Pass --unmatched",
        ),
        (
            "same=full.parquet --fail-worse f1=0 --baseline full",
            1,
            "failed: same: f1 is 1, 1 in full: the same, wanted at most 0 worse. linked lacks 20 items of "
            "the truth and same lacks 0",
        ),
        (
            "same=full.parquet --fail-worse f1=0 --align each",
            1,
            "passed: same: f1 is 0.85714, 0.85714 in full",
        ),
        ("--fail-worse truth_coverage=0.4", 1, "failed: linked: truth_coverage is 0.50000, 1 in full"),
        ("--fail-on-warning", 1, "failed: warnings: runs-lack-items"),
        ("--fail-on-warning runs-lack-items", 1, "failed: warning runs-lack-items: given"),
        ("--fail-on-warning few-ids-match", 0, "passed: warning few-ids-match: not given"),
        (
            "--fail-under truth_coverage=0.9",
            1,
            "failed: linked: truth_coverage is 0.50000, wanted at least 0.9",
        ),
        (
            "--fail-under truth_coverage=0.5 --fail-under f1=1",
            0,
            "passed: linked: f1 is 1 (on 20 of 40 items of the truth; 0.85714 if the others were singletons), "
            "wanted at least 1",
        ),
        ("--fail-over jaccard_distance=0.1 --align each", 1, "failed: full: jaccard_distance is 0.25"),
    ],
)
def test_a_run_that_lacks_rows_does_not_pass(lacking, capsys, gate, code, said):
    assert main(f"compare truth.parquet full.parquet linked.parquet {gate} --worst 0".split()) == code
    out, err = capsys.readouterr()
    assert said in out
    assert ("[runs-lack-items]" in err) == ("singleton" not in gate)
    assert "dropping-truth-flatters" not in err


def test_json_of_runs_that_lack_rows(lacking, capsys):
    assert main("compare truth.parquet full.parquet linked.parquet --json --fail-worse recall=1".split()) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["ranks"] is None
    assert [row["recall_if_alone"] for row in found["coverage"]] == [0.75, 0.75]
    (warning,) = (each for each in found["warnings"] if each["code"] == "runs-lack-items")
    assert warning["by_run"]["linked"]["truth_coverage"] == 0.5
    assert "lacks 20 items" in found["gates"][0]["reason"]


def test_clusters_that_did_not_change_are_not_listed(lacking, capsys):
    assert main("compare truth.parquet full.parquet linked.parquet".split()) == 0
    out = capsys.readouterr().out
    assert out.rstrip().endswith("Most changed true clusters from full to linked\nNone changed.")
