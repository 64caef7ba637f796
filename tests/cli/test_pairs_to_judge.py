"""``fastbcubed sample-pairs`` and ``estimate-pairs``: the file in between, what is printed, and what is refused."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastbcubed as fb
from fastbcubed.cli import main as cli

BASE = {
    "item": list("abcdef"),
    "cluster": [1, 1, 1, 2, 2, 3],
    "name": ["Ann", "Ann", "Bob", "Cy", "Cy", None],
}
EXP = {"item": list("abcdef"), "cluster": list("xxyyyz")}
IDEAL = dict(zip("abcdef", "uuvvww", strict=True))


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    pq.write_table(pa.table(BASE), "old.parquet")
    pq.write_table(pa.table(EXP), "new.parquet")
    Path("twice.csv").write_text("item,cluster\na,1\na,2\n")
    return tmp_path


def judge(path: str) -> None:
    """Write verdicts into a CSV file, as a labelling tool would: all columns as text."""
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        if not row["repeats"]:
            row["verdict"] = "same" if IDEAL[row["item"]] == IDEAL[row["mate"]] else "different"
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)


def test_from_change_to_estimate(here, capsys) -> None:
    argv = "sample-pairs old.parquet new.parquet -n 400 --score delta_precision --column name --out pairs.csv"
    assert cli.main(argv.split()) == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert "wrote pairs.csv: 400 pairs, 394 of which repeat others and need no verdict" in err
    assert err.rstrip().endswith("fastbcubed estimate-pairs pairs.csv")
    read = pd.read_csv("pairs.csv")
    assert {"item.name", "mate.name"} <= {*read.columns} and read.columns[-1] == "verdict"
    judge("pairs.csv")
    assert cli.main(["estimate-pairs", "pairs.csv", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    found = {
        row["score"]: row["low"] for row in answer["estimates"]
    }  # which is the score itself, as all is judged
    assert found == {row["score"]: row["high"] for row in answer["estimates"]}
    assert answer["level"] == 0.95 and found == pytest.approx(
        {
            "delta_precision": 1 / 6, "good_split_rate": 2 / 9, "bad_split_rate": 0, "good_merge_rate": 1 / 9,
            "bad_merge_rate": 1 / 9,
        },
        abs=1e-12,
    )  # fmt: skip
    assert cli.main(["estimate-pairs", "pairs.csv", "--report", "page.html"]) == 0
    assert "100 % of the splitting is right" in Path("page.html").read_text(encoding="utf-8")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "100 % of the splitting is right and 50.0 % of the merging. Precision changes by"
    header = "score estimate judged unsure not judged".split()
    (at,) = (k for k, line in enumerate(lines) if line.split() == header)
    assert lines[at + 1].split()[0] == "delta_precision" and lines[at + 1].split()[1] == "0.16667"
    assert "if unsure" not in "".join(lines)


@pytest.mark.parametrize("name", ["pairs.csv", "pairs.parquet"])
def test_verdicts_are_not_written_over(here, capsys, name) -> None:
    argv = ["sample-pairs", "old.parquet", "new.parquet", "-n", "20", "--out", name]
    assert cli.main(argv) == cli.main(argv) == 0  # nobody has judged anything
    (here / "other.csv").write_text("not, a table\nof pairs\n")
    assert cli.main([*argv[:-1], "other.csv"]) == 0
    judge("other.csv")
    judged = pd.read_csv("other.csv", dtype=str)
    judged.to_csv(name, index=False) if name.endswith("csv") else judged.to_parquet(name)
    before = Path(name).read_bytes()
    capsys.readouterr()
    assert cli.main(argv) == 2
    n = judged["verdict"].notna().sum()
    assert f"{name} has {n} verdicts, which would be lost; name another file" in capsys.readouterr().err
    assert Path(name).read_bytes() == before


def test_the_pairs_are_those_of_python(here, capsys) -> None:
    argv = (
        "sample-pairs old.parquet new.parquet -n 20 --by name --columns name --seed 5 --score good_distance"
    )
    assert cli.main([*argv.split(), "--out", "pairs.parquet"]) == 0
    from fastbcubed.sample.pair_sample import sample_pairs

    ev = fb.evaluate("old.parquet", "new.parquet")
    expected = sample_pairs(ev, 20, by="name", columns="name", seed=5, score="good_distance")
    assert pq.read_table("pairs.parquet").equals(expected.to_arrow())
    capsys.readouterr()
    for engine in ("memory", "disk"):
        assert cli.main([*argv.split(), "--engine", engine]) == 0
        found = pd.read_csv(io.StringIO(capsys.readouterr().out))
        assert found["item"].tolist() == expected["item"].to_pylist()
        assert found["stratum"].tolist() == expected["stratum"].to_pylist()


def test_strata_unsure_and_skipped(here, capsys) -> None:
    items = list(range(20))
    pd.DataFrame({"item": items, "cluster": 1, "name": ["Ann", "Bob"] * 10}).to_csv("old.csv", index=False)
    pd.DataFrame({"item": items, "cluster": items}).to_csv("new.csv", index=False)
    assert cli.main("sample-pairs old.csv new.csv -n 60 --by name --out pairs.csv".split()) == 0
    read = pd.read_csv("pairs.csv", dtype=str)
    read["verdict"] = ["same", "different", "unsure"] * 20
    read.loc[read["repeats"].notna() | (read.index == 1), "verdict"] = None
    read.to_csv("pairs.csv", index=False)
    capsys.readouterr()
    assert cli.main(["estimate-pairs", "pairs.csv", "--by-stratum", "--level", "0.9"]) == 0
    out, err = capsys.readouterr()
    assert "warning: 1 pair before the last one judged has no verdict" in err
    assert {"Ann", "Bob"} <= {line.split()[0] for line in out.splitlines() if line}
    assert (
        "90 % intervals" in out
        and "high if unsure" in out
        and "unsure pairs were decided one way or the other" in out
    )


@pytest.mark.parametrize(
    "argv, message",
    [
        (
            "sample-pairs old.parquet new.parquet --out pairs.xlsx",
            "ends in .csv or .parquet, not to pairs.xlsx",
        ),
        ("sample-pairs old.parquet new.parquet --score good", "not 'good'"),
        ("sample-pairs old.parquet new.parquet -n 1", "n must be a number of pairs, 2 or more, not 1"),
        ("sample-pairs old.parquet old.parquet", "there is no pair to judge"),
        ("sample-pairs old.parquet new.parquet --by nmae", "no attribute 'nmae'"),
        ("sample-pairs old.parquet new.parquet --overlapping", "unrecognized arguments: --overlapping"),
        ("sample-pairs twice.csv new.parquet", "overlapping clusters are not supported: choose one for each"),
        ("estimate-pairs old.parquet", "There is no column 'pair'"),
        ("estimate-pairs nothing.csv", "nothing.csv"),
    ],
)
def test_what_is_refused(here, capsys, argv, message) -> None:
    assert cli.main(argv.split()) == 2
    out, err = capsys.readouterr()
    assert out == "" and message in err and not list(here.glob("pairs*"))


def test_composite_ids_have_columns_of_their_own(here, capsys) -> None:
    for name, side in (("old", BASE), ("new", EXP)):
        ids = {
            "source": list("pqpqpq"),
            "no": ["01", "02", "03", "04", "05", "06"],
            "cluster": side["cluster"],
        }
        pd.DataFrame(ids).to_csv(f"{name}.csv", index=False)
    argv = "sample-pairs old.csv new.csv -n 10 --item source+no --column source"
    assert cli.main(argv.split()) == 0
    found = pd.read_csv(io.StringIO(capsys.readouterr().out), dtype=str)
    assert [*found.columns[:6]] == ["pair", "repeats", "item.source", "item.no", "mate.source", "mate.no"]
    assert (
        set(found["item.no"]) <= {"01", "02", "03", "04", "05"}
        and list(found.columns).count("item.source") == 1
    )
