"""Gates: what `Evaluation.check` and the command line let pass, and what they refuse."""

from __future__ import annotations

import json
import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastbcubed as fb
from fastbcubed.cli import main as cli
from fastbcubed.compare_runs import gates_of_runs
from fastbcubed.errors import GateError, MetricError, OptionError, SliceError
from fastbcubed.results import save
from fastbcubed.results.gates import Bound

#: W3 of the formulas, with a country: precision is (1/2 + 1 + 1/2) / 3 = 2/3, recall (1/2 + 1/2 + 1) / 3 = 2/3.
TRUTH = {"item": [1, 2, 3], "cluster": [0, 0, 1], "country": ["US", "US", None], "year": [2020, 2021, 2020]}
PREDICTION = {"item": [1, 2, 3], "cluster": [0, 1, 0]}


@pytest.fixture
def ev() -> fb.Evaluation:
    return fb.evaluate(pa.table(TRUTH), pa.table(PREDICTION))


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


@pytest.mark.slow
def test_digits_tell_a_failed_gate_from_a_passed_one() -> None:
    n = 1_000_000
    truth = [0, 1, *range(1, n - 1)]
    ev = fb.evaluate([0, 0, *truth[2:]], truth)  # recall is 1 - 1/n
    with pytest.raises(GateError, match=r"recall is 0\.999999, wanted at least 0\.9999995"):
        ev.check(recall=0.9999995)
    with pytest.raises(GateError, match=r"precision is 0\.6666666666666666, wanted at least 0\.66667"):
        fb.evaluate([0, 0, 1], [0, 1, 0]).check(precision=0.66667)


def test_the_order_of_rows_decides_no_gate() -> None:
    """Precision is ((16 + 16) / 8 + (16 + 4 + 1) / 7 + (4 + 4 + 1) / 5) / 20 = 11/25; one order of rows gives less."""
    truth = [1, 2, 2, 1, 1, 0, 0, 0, 1, 2, 2, 0, 1, 1, 2, 1, 0, 1, 2, 0]
    prediction = [2, 0, 0, 2, 1, 2, 2, 0, 2, 1, 0, 1, 0, 2, 1, 0, 2, 1, 0, 2]
    order = [19, 14, 3, 7, 12, 10, 15, 4, 6, 0, 2, 1, 16, 5, 17, 8, 18, 9, 11, 13]
    less = fb.evaluate(truth, prediction)
    other = fb.evaluate([truth[i] for i in order], [prediction[i] for i in order])
    assert less.overall["precision"] < 0.44 <= other.overall["precision"]
    for ev in (less, other):
        assert ev.check(precision=0.44)["passed"].to_pylist() == [True]
        with pytest.raises(GateError, match=r"precision is 0\.4\d+, wanted at least 0\.44000000001"):
            ev.check(precision=0.44000000001)


def test_a_score_that_is_not_defined_fails(ev) -> None:
    with pytest.raises(GateError, match="prediction_coverage is n/a"):
        weighted = {"a": 1.0, "b": 2.0}
        fb.evaluate({"a": 1, "b": 1}, {"a": 1, "b": 2, "c": 3}, weight=weighted).check(
            prediction_coverage=0.1
        )


@pytest.mark.parametrize(
    ("gates", "named", "error", "message"),
    [
        ((), {}, OptionError, "no bounds were given; pass some, such as"),
        (("f1>0.9",), {}, OptionError, "write a gate as"),
        ((0.9,), {}, OptionError, "write a gate as"),
        (("f1>=0.9@",), {}, OptionError, "write a gate as"),
        (("f1>=0.9@ ",), {}, OptionError, "write a gate as"),
        (("f1>=0,9",), {}, OptionError, "write a gate as"),
        (("f1>=0.9@US",), {}, OptionError, "write a slice as country=US or country=US,year=2020, not"),
        (("f1<=0.9",), {}, OptionError, 'higher is better there; use "f1>=0.9"'),
        ((), {"f1": 90}, OptionError, "f1 ranges from 0 to 1. Write 90 % as 0.9"),
        ((), {"f1": "0.9"}, OptionError, "the bound of f1"),
        ((), {"truth_coverage": 1.1}, OptionError, "truth_coverage ranges from 0 to 1"),
        ((), {"f2": 0.9}, MetricError, "Unknown score 'f2'"),
        ((), {"elm": 0.9}, OptionError, "elm is a family"),
        ((), {"expected_mutual_info": 1}, OptionError, 'write "expected_mutual_info>=1" or "'),
        (("rand>=0.9@country=US",), {}, OptionError, "rand is defined for all items at once"),
        (
            ("truth_coverage>=0.9@country=US",),
            {},
            OptionError,
            "defined for all items at once, not for slices",
        ),
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
        ("--fail-on-warning", ["passed: no warning (1 note: few-units)"]),
        ("--fail-on-warning giant-cluster --fail-over over_merge_rate=0.1", [
            "failed: over_merge_rate is 0.33333, wanted at most 0.1",
            "passed: warning giant-cluster: not given, wanted none",
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
    assert [line for line in err.splitlines() if "note" not in line and "compiling" not in line] == [
        "fastbcubed: failed: f1 is 0.66667, wanted at least 0.9"
    ]
    assert cli.main(["evaluate", *paths, "--json"]) == 0
    assert "gates" not in json.loads(capsys.readouterr().out)


def test_scores_keep_their_order_where_a_gate_needs_another(paths, capsys) -> None:
    flags = ["--fail-under", "mcc=-1@country=US", "--fail-under", "f1=0@country=US", "--json"]
    assert cli.main(["evaluate", *paths, *flags]) == 0
    found = json.loads(capsys.readouterr().out)["overall"]
    assert list(found) == [*fb.evaluate(*paths).overall, "mcc"]


def test_slices_that_were_asked_for_serve_gates(paths, capsys) -> None:
    flags = (
        "--slice year,country --fail-under f1=0.1@country=US,year=2020 --fail-under f1=0.1@year=2020 --json"
    )
    assert cli.main(["evaluate", *paths, *flags.split()]) == 0
    assert list(json.loads(capsys.readouterr().out)["slices"]) == ["year,country", "year"]


def test_fail_on_warning(tmp_path, paths, capsys) -> None:
    flagged = ["evaluate", paths[0], paths[0], "--fail-on-warning"]
    assert cli.main(flagged) == 1
    assert (
        capsys.readouterr().out.splitlines()[-1]
        == "failed: warnings: same-input (1 note: few-units), wanted none"
    )
    assert cli.main([*flagged, "giant-cluster"]) == 0
    assert cli.main([*flagged, "giant-cluster", "--fail-on-warning=same-input"]) == 1
    capsys.readouterr()
    assert cli.main(["evaluate", "--fail-on-warning", *paths, "--json"]) == 2
    assert cli.main([*flagged, "same"]) == 2
    err = capsys.readouterr().err
    assert "no warning has the code 'same'" in err and "Codes: same-input" in err


def test_notes_are_named_where_no_warning_is_wanted(tmp_path, capsys) -> None:
    """Two of 130 items are lacking: f1 is 2 r / (1 + r) of r = 129 / 130 if they were alone, which is a note."""
    for name, n in (("truth", 130), ("pred", 128)):
        clusters = [f"{name} {k // 2 if k % 5 else 99 + k}" for k in range(n)]
        pq.write_table(pa.table({"item": range(n), "cluster": clusters}), tmp_path / f"{name}.parquet")
    files = [str(tmp_path / f"{name}.parquet") for name in ("truth", "pred")]
    assert cli.main(["evaluate", *files, "--fail-on-warning"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "passed: no warning (1 note: dropping-truth-flatters)"
    assert cli.main(["evaluate", *files, "--fail-on-warning", "--json"]) == 0
    (gate,) = json.loads(capsys.readouterr().out)["gates"]
    assert gate == {
        "gate": "no warning",
        "passed": True,
        "warnings": [],
        "notes": ["dropping-truth-flatters"],
    }


# -- Manifest and baseline -------------------------------------------------------------------------


def test_the_manifest_says_how_a_result_came_about(tmp_path, paths) -> None:
    ev = fb.evaluate(
        *paths, metrics=["f1", max_of], weight=None, unmatched={"truth": "drop"}, threads=1, beta=1.0
    )
    manifest = json.loads(ev.to_json())["manifest"]
    assert manifest["arguments"] == {"metrics": ["f1", "max_of"], "unmatched": {"truth": "drop"}}
    assert list(manifest["versions"]) == ["fastbcubed", "numpy", "numba", "pyarrow", "python"]
    assert (manifest["engine"], manifest["memory_limit"]) == ("memory", None)
    assert manifest["truth"]["rows"] == 3 and manifest["truth"] != manifest["prediction"]
    on_disk = fb.evaluate(*paths, engine="disk", memory_limit="64MiB").manifest
    assert (on_disk["engine"], on_disk["memory_limit"]) == ("disk", 64 << 20)
    assert on_disk["arguments"] == {"engine": "disk", "memory_limit": "64MiB"}
    assert {side: on_disk[side] for side in ("truth", "prediction")} == {
        side: manifest[side] for side in ("truth", "prediction")
    }


def max_of(tp, fp, fn, tn):
    return tp / (tp + fp + fn)


@pytest.mark.parametrize("keep", ["scores", "cells", "items"])
def test_the_manifest_is_kept(tmp_path, paths, keep) -> None:
    ev = fb.evaluate(*paths)
    expected = ev.manifest
    ev.save(tmp_path / "a", keep=keep)
    again = fb.load(tmp_path / "a")
    assert again.manifest == expected == pickle.loads(pickle.dumps(ev)).manifest
    again.save(tmp_path / "b", keep="scores")
    assert fb.load(tmp_path / "b").manifest == expected


def test_json_is_the_same_each_time(paths) -> None:
    assert fb.evaluate(*paths).to_json() == fb.evaluate(*paths, threads=1).to_json()


def test_files_that_are_gone_have_no_fingerprint(tmp_path, paths) -> None:
    ev = fb.evaluate(*paths, engine="disk")
    for path in paths:
        Path(path).unlink()
    assert ev.manifest["truth"] == {"rows": None, "fingerprint": None}


@pytest.fixture
def baseline(tmp_path, paths) -> Path:
    """A better result of the same truth: everything is right."""
    fb.evaluate(paths[0], {1: 0, 2: 0, 3: 1}, slices="year").save(tmp_path / "best")
    return tmp_path / "best"


def test_a_baseline_may_be_a_directory_or_json(tmp_path, paths, baseline, capsys) -> None:
    text = tmp_path / "best.json"
    text.write_text(fb.load(baseline).to_json())
    for given in (baseline, baseline / "overall.json", text):
        flags = ["--baseline", str(given), "--fail-worse", "f1=0.3", "--fail-worse", "jaccard_distance=0.6"]
        assert cli.main(["evaluate", *paths, *flags]) == 1
        lines = capsys.readouterr().out.splitlines()[-2:]
        assert lines == [
            f"failed: f1 is 0.66667, 1 in {Path(given).name}: 0.333 worse, wanted at most 0.3 worse",
            f"passed: jaccard_distance is 0.55556, 0 in {Path(given).name}: 0.556 worse, wanted at most 0.6 worse",
        ]


def test_the_same_result_is_not_worse_and_a_better_one_passes(tmp_path, paths, baseline, capsys) -> None:
    fb.evaluate(*paths).save(tmp_path / "own")
    flags = ["--fail-worse", "f1=0", "--fail-worse", "over_merge_rate=0", "--fail-worse", "truth_coverage=0"]
    assert cli.main(["evaluate", *paths, "--baseline", str(tmp_path / "own"), *flags]) == 0
    assert "the same, wanted at most 0 worse" in capsys.readouterr().out
    assert (
        cli.main(["evaluate", *paths, "--engine", "disk", "--baseline", str(tmp_path / "own"), *flags]) == 0
    )
    pq.write_table(pa.table({"item": [3, 2, 1], "cluster": [1, 0, 0]}), paths[1])
    assert cli.main(["evaluate", *paths, "--baseline", str(tmp_path / "own"), *flags, "--json"]) == 0
    out = capsys.readouterr().out
    gates = json.loads(out[out.index("{\n") :])["gates"]
    assert [gate["worse_by"] for gate in gates] == pytest.approx([-1 / 3, -1 / 3, 0])


def test_a_slice_may_not_be_worse(paths, baseline, capsys) -> None:
    flags = ["--baseline", str(baseline), "--fail-worse"]
    assert cli.main(["evaluate", *paths, *flags, "recall=0.3@year=2020", "--json"]) == 0
    (gate,) = json.loads(capsys.readouterr().out)["gates"]
    assert gate["slice"] == {"year": "2020"} and gate["worse_by"] == pytest.approx(0.25)
    assert cli.main(["evaluate", *paths, *flags, "recall=0.2@year=2020"]) == 1
    assert cli.main(["evaluate", *paths, *flags, "recall=0.2@country=US"]) == 2
    assert "has no slices by country" in capsys.readouterr().err


def test_a_slice_of_many_may_not_be_worse(paths, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(save, "SLICES_IN_MANIFEST", 0)
    fb.evaluate(paths[0], {1: 0, 2: 0, 3: 1}, slices="year").save(tmp_path / "best")
    for given in (tmp_path / "best", tmp_path / "best" / "overall.json"):
        flags = ["--baseline", str(given), "--fail-worse"]
        assert cli.main(["evaluate", *paths, *flags, "recall=0.3@year=2020"]) == 0
        assert cli.main(["evaluate", *paths, *flags, "recall=0.2@year=2020"]) == 1
        assert cli.main(["evaluate", *paths, *flags, "recall=0.2@country=US"]) == 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["--unmatched", "singleton"], "defined differently (unmatched:"),
        (["--weighting", "outer"], "defined differently (weighting: 'pointwise' there, 'outer' here)"),
        (["--beta", "2"], "defined differently (beta"),
        (["--weight", "w"], "defined differently (weighted"),
    ],
)
def test_a_baseline_of_another_definition_is_refused(
    tmp_path, paths, baseline, capsys, change, message
) -> None:
    pq.write_table(pa.table({**TRUTH, "w": [1.0, 2.0, 3.0]}), paths[0])
    assert cli.main(["evaluate", *paths, *change, "--baseline", str(baseline), "--fail-worse", "f1=1"]) == 2
    assert message in capsys.readouterr().err


def test_a_baseline_of_another_truth_is_refused(tmp_path, paths, baseline, capsys) -> None:
    flags = ["--baseline", str(baseline), "--fail-worse", "f1=1"]
    pq.write_table(pa.table({**TRUTH, "cluster": [0, 0, 2]}), paths[0])
    assert cli.main(["evaluate", *paths, *flags]) == 2
    assert "it used a different truth (fingerprint " in capsys.readouterr().err
    pq.write_table(pa.table(TRUTH).slice(0, 2), paths[0])
    assert cli.main(["evaluate", *paths, *flags]) == 2
    assert "it used a different truth (rows 3 there, 2 here)" in capsys.readouterr().err


def test_a_baseline_of_other_weights_is_refused(tmp_path, paths, capsys) -> None:
    for weights, code in (([1.0, 2.0, 3.0], 0), ([1.0, 2.0, 3.5], 2)):
        pq.write_table(pa.table({**TRUTH, "w": weights}), paths[0])
        if code == 0:
            fb.evaluate(*paths, weight="w").save(tmp_path / "old")
        flags = ["--weight", "w", "--baseline", str(tmp_path / "old"), "--fail-worse", "f1=0"]
        assert cli.main(["evaluate", *paths, *flags]) == code
    assert "its truth had different weights (6 there, 6.5 here)" in capsys.readouterr().err


@pytest.fixture
def linked(tmp_path) -> tuple[list[str], Path]:
    """Ten items in pairs, six of them alone in the prediction; the second prediction leaves these out.

    All ten have precision 1 and recall (4 + 6 / 2) / 10; the four that are left have recall 1.
    """
    clusters = {k: k // 2 if k < 4 else 10 + k for k in range(10)}
    tables = {
        "truth": ({k: k // 2 for k in range(10)}, {"half": [k < 5 for k in range(10)]}),
        "whole": (clusters, {}),
        "linked": ({k: c for k, c in clusters.items() if k < 4}, {}),
    }
    for name, (of, more) in tables.items():
        columns = {
            "item": list(of),
            "cluster": list(of.values()),
            **{n: list(map(str, v)) for n, v in more.items()},
        }
        pq.write_table(pa.table(columns), tmp_path / f"{name}.parquet")
    paths = [str(tmp_path / f"{name}.parquet") for name in tables]
    fb.evaluate(*paths[:2], slices="half").save(tmp_path / "old")
    return paths, tmp_path / "old"


@pytest.mark.cases(1)
@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_a_gate_says_of_how_few_items_a_score_is(linked, capsys, engine) -> None:
    """Were the six others alone, recall would be (4 + 6 / 2) / 10; of other scores that is not known."""
    (truth, whole, pred), _ = linked
    flags = ["--engine", engine, "--fail-under", "recall=0.9", "--fail-over", "jaccard_distance=0.1"]
    few = "on 4 of 10 items of the truth"
    assert cli.main(["evaluate", truth, pred, *flags]) == 0
    assert capsys.readouterr().out.splitlines()[-2:] == [
        f"passed: recall is 1 ({few}; 0.70000 if the others were singletons), wanted at least 0.9",
        f"passed: jaccard_distance is 0 ({few}), wanted at most 0.1",
    ]
    assert cli.main(["evaluate", truth, pred, *flags, "--unmatched", "truth=singleton"]) == 1
    assert cli.main(["evaluate", truth, whole, *flags]) == 1
    assert "items of the truth" not in capsys.readouterr().out


@pytest.mark.parametrize("engine", ["memory", "disk"])
@pytest.mark.filterwarnings("ignore::fastbcubed.errors.EvaluationWarning")
def test_leaving_items_out_makes_no_score_better(linked, capsys, engine) -> None:
    (truth, _, pred), old = linked
    flags = ["--engine", engine, "--baseline", str(old), "--fail-worse", "recall=0.1", "--json"]
    flags += ["--fail-worse", "recall=0.1@half=True", "--fail-worse", "truth_coverage=0.7"]
    assert cli.main(["evaluate", truth, pred, *flags]) == 1
    out, err = capsys.readouterr()
    recall, sliced, covered = json.loads(out)["gates"]
    assert (recall["passed"], recall["n_items"], recall["baseline_n_items"]) == (False, 4, 10)
    assert (sliced["passed"], sliced["n_items"], sliced["baseline_n_items"]) == (False, 4, 5)
    assert (covered["passed"], covered["n_items"], covered["baseline_n_items"]) == (True, 4, 10)
    reason = (
        "the prediction lacks 6 items of the truth and old lacks 0; these are dropped. Pass --unmatched "
        "truth=singleton in both runs"
    )
    assert recall["reason"] == reason == sliced["reason"] and "reason" not in covered
    assert (
        f"failed: recall is 1, 0.70000 in {old.name}: 0.3 better, of 4 items, 10 in the baseline, wanted at most 0.1 "
        f"worse. {reason}\n" in err
    )


def test_the_same_items_or_nearly_so_are_compared(linked, capsys) -> None:
    """Alone, the items that were left out are scored; one of 200 may be lacking, and more in the baseline."""
    (truth, whole, pred), old = linked
    alone = ["--unmatched", "truth=singleton"]
    flags = ["--fail-worse", "f1=0"]
    assert cli.main(["evaluate", truth, whole, *alone, "--out", f"{old}-alone"]) == 0
    assert cli.main(["evaluate", truth, pred, *alone, "--baseline", f"{old}-alone", *flags]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == f"passed: f1 is 0.82353, 0.82353 in {old.name}-alone: the same, wanted at most 0 worse"
    for n, name in ((200, "many"), (199, "fewer"), (197, "few")):
        pq.write_table(pa.table({"item": range(n), "cluster": range(n)}), old.parent / f"{name}.parquet")
    many, fewer, few = (str(old.parent / f"{name}.parquet") for name in ("many", "fewer", "few"))
    for pred, base, code in ((fewer, many, 0), (few, many, 1), (many, few, 0), (many, many, 0)):
        out = f"{old}-{Path(base).stem}-{Path(pred).stem}"
        assert cli.main(["evaluate", many, base, "--out", out]) == 0
        assert cli.main(["evaluate", many, pred, "--baseline", out, *flags]) == code
        line = capsys.readouterr().out.splitlines()[-1]
        assert (", of 199 items, 200 in the baseline, wanted" in line) == (pred == fewer)
        assert (", of 200 items, 197 in the baseline, wanted" in line) == (base == few)
        assert ("in the baseline" in line) == (pred != base)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--fail-worse f1=0.1", "--baseline is missing"),
        ("--baseline nowhere", "--fail-worse is missing"),
        ("--baseline nowhere --fail-worse f1=0.1", "nowhere cannot be read as the JSON of an evaluation"),
        ("--baseline X --fail-worse f1=-0.1", "the allowed loss of f1 must be 0 or more"),
        ("--baseline X --fail-worse expected_mutual_info=1", "so no run can be worse"),
        ("--baseline X --fail-worse nothing=1", "Unknown score 'nothing'"),
        ("--baseline X --fail-worse f1", "SCORE=VALUE"),
    ],
)
def test_a_baseline_is_refused(paths, capsys, flags, message) -> None:
    assert cli.main(["evaluate", *paths, *flags.split()]) == 2
    assert message in capsys.readouterr().err


def test_json_of_something_else_is_no_baseline(tmp_path, paths, capsys) -> None:
    for text in ("[]", '{"overall": {}}', "{"):
        (tmp_path / "x.json").write_text(text)
        flags = ["--baseline", str(tmp_path / "x.json"), "--fail-worse", "f1=0"]
        assert cli.main(["evaluate", *paths, *flags]) == 2
        assert "x.json" in capsys.readouterr().err


def test_a_score_that_the_baseline_lacks_is_said(paths, baseline, capsys) -> None:
    assert cli.main(["evaluate", *paths, "--baseline", str(baseline), "--fail-worse", "rand=0"]) == 2
    assert "has no rand; evaluate again with --metric rand" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("part", "name", "value"),
    [
        ("coverage", "n_common", None),
        ("coverage", "weight_common", "x"),
        ("coverage", "n_noise", {}),
        ("overall", "f1", "x"),
        ("manifest", "truth", None),
        ("slices", "year", [{"year": 2020, "n_items": 2, "weight": 2.0, "f1": "x"}]),
        ("slices", "year", [{"year": 2020, "weight": 2.0}]),
    ],
)
def test_json_of_an_evaluation_that_was_changed_is_no_baseline(
    tmp_path, paths, capsys, part: str, name: str, value: object
) -> None:
    result = json.loads(fb.evaluate(*paths, slices="year").to_json())
    assert set(result[part]) >= {name}
    result[part][name] = value
    (tmp_path / "x.json").write_text(json.dumps(result))
    flags = ["--baseline", str(tmp_path / "x.json"), "--fail-worse", "f1=0"]
    assert cli.main(["evaluate", *paths, *flags]) == 2
    assert "x.json is not the JSON of an evaluation by this version" in capsys.readouterr().err


# -- sizes and numbers -------------------------------------------------------------------------------

#: Two clusters against a pair and three items alone, in four cells.
SIZED = [0, 0, 0, 1, 1], [0, 0, 1, 2, 3]


def test_check_of_sizes() -> None:
    found = fb.evaluate(*SIZED).check(
        "largest_pred<=2", "singletons_pred<=0.75", "clusters_true>=2", "items>=5", "cells<=4", f1=0.1
    )
    assert found["value"].to_pylist()[:-1] == [2, 0.75, 2, 5, 4]
    with pytest.raises(GateError, match="failed: largest_true is 3, wanted at most 2"):
        fb.evaluate(*SIZED).check("largest_true<=2")
    with pytest.raises(GateError, match=r"singletons_pred is 0\.75000, wanted at most 0\.4"):
        fb.evaluate(*SIZED).check("singletons_pred<=0.4")


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ("singletons_pred<=40", "singletons_pred ranges from 0 to 1. Write 40 % as 0.4"),
        ("largest_pred<=-1", "largest_pred ranges from 0 to inf"),
        ("largest_pred<=9@country=US", "is defined for all items at once, not for"),
        ("largest_experiment<=9", "the sizes of the two sides are largest_true and largest_pred"),
        ("largest_items<=9", "Unknown score 'largest_items'"),
    ],
)
def test_sizes_that_there_are_not(wrong: str, reason: str) -> None:
    with pytest.raises(fb.errors.FastBCubedError, match=reason):
        fb.evaluate(*SIZED).check(wrong)


def test_no_size_is_better() -> None:
    with pytest.raises(OptionError, match='write "largest_pred>=9" or "largest_pred<=9"'):
        fb.evaluate(*SIZED).check(largest_pred=9)


def test_sizes_on_both_engines_and_where_no_cells_were_kept(tmp_path: Path) -> None:
    gates = ("largest_pred<=2", "singletons_pred<=0.75", "clusters_true<=2", "items>=5")
    disk = fb.evaluate(*SIZED, engine="disk", keep="scores", spill_dir=tmp_path)
    assert disk.check(*gates) == fb.evaluate(*SIZED).check(*gates)
    with pytest.raises(fb.errors.NotKeptError, match="cells were not kept"):
        disk.check("cells<=4")


def test_sizes_of_a_diff(capsys, tmp_path: Path) -> None:
    for name, labels in zip(("a.parquet", "b.parquet"), SIZED, strict=True):
        pq.write_table(pa.table({"item": range(5), "cluster": labels}), tmp_path / name)
    files = [str(tmp_path / "a.parquet"), str(tmp_path / "b.parquet")]
    assert cli.main(["diff", *files, "--fail-over", "largest_experiment=2"]) == 0
    assert cli.main(["diff", *files, "--fail-over", "singletons_experiment=0.5"]) == 1
    assert "failed: singletons_experiment is 0.75000, wanted at most 0.5" in capsys.readouterr().out


def test_sizes_say_of_how_many_items_they_are(capsys, tmp_path: Path) -> None:
    """Of a predicted cluster of five items two are in the truth, and of these runs two or one in both runs."""
    small, large = tmp_path / "small.parquet", tmp_path / "large.parquet"
    pq.write_table(pa.table({"item": [0, 1], "cluster": [7, 7]}), small)
    pq.write_table(pa.table({"item": range(5), "cluster": [1] * 5}), large)
    for command, flags, said in (
        (
            ["evaluate", small, large],
            ["largest_pred=2"],
            "is 2 (of the 2 of 5 items of the prediction that are scored)",
        ),
        (["evaluate", small, large], ["largest_true=2"], "is 2, wanted"),
        (
            ["evaluate", small, large, "--unmatched", "prediction=singleton"],
            ["largest_pred=5"],
            "is 5, wanted",
        ),
        (
            ["evaluate", large, small],
            ["largest_true=2"],
            "is 2 (of the 2 of 5 items of the truth that are scored)",
        ),
        (
            ["diff", small, large],
            ["largest_experiment=2"],
            "is 2 (of the 2 of 5 items of the experiment that are scored)",
        ),
        (
            ["compare", large, large, f"x={small}"],
            ["largest_pred=2"],
            "large: largest_pred is 2 (of the 2 of 5 items",
        ),
    ):
        assert cli.main([*map(str, command), "--fail-over", *flags]) == 0
        assert said in capsys.readouterr().out


def test_sizes_against_a_baseline(capsys, tmp_path: Path) -> None:
    truth, before, now = (tmp_path / f"{name}.parquet" for name in ("truth", "before", "now"))
    for path, labels in ((truth, SIZED[0]), (before, SIZED[1]), (now, [0, 0, 0, 1, 2])):
        pq.write_table(pa.table({"item": range(5), "cluster": labels}), path)
    fb.evaluate(truth, before, out=tmp_path / "old")
    (tmp_path / "old.json").write_text(fb.evaluate(truth, before).to_json())

    def compared(*flags: str, baseline: str = "old") -> tuple[int, str]:
        code = cli.main(["evaluate", str(truth), str(now), "--baseline", str(tmp_path / baseline), *flags])
        told = capsys.readouterr()
        return code, told.out + told.err

    assert compared("--fail-worse", "clusters_pred=1", "--fail-worse", "cells=1")[0] == 0
    code, told = compared("--fail-worse", "clusters_pred=0.5", baseline="old.json")
    assert code == 1
    assert "failed: clusters_pred is 3, 4 in old.json: 1 less, wanted at most 0.50000 more or less" in told
    code, told = compared("--fail-worse", "largest_pred=0", baseline="old.json")
    assert code == 1 and "largest_pred is 3, 2 in old.json: 1 more" in told
    code, told = compared("--fail-worse", "cells=1", baseline="old.json")
    assert code == 2 and "has no cells; save it as a directory, with --keep cells" in told


def test_sizes_of_compared_runs() -> None:
    from fastbcubed.compare_runs.gates_of_runs import try_bound, try_worse
    from fastbcubed.results.gates import Bound

    cmp = fb.compare(SIZED[0], {"old": SIZED[1], "new": [0, 0, 0, 1, 2]})
    assert [gate.passed for gate in try_bound(cmp, Bound("largest_pred", 2.0, at_least=False))] == [
        True,
        False,
    ]
    assert [gate.passed for gate in try_worse(cmp, Bound("clusters_pred", 1.0))] == [True]


@pytest.mark.slow
def test_scores_that_round_to_their_best_end(tmp_path: Path) -> None:
    """One of two million single items is put to another: one wrong pair of 2e12."""
    n = 2_000_000
    truth = np.arange(n, dtype=np.int64)
    merged = truth.copy()
    merged[1] = 0
    ev = fb.evaluate(truth, merged, metrics=["rand", "recall", "specificity"])
    assert 1 - ev.rand < 1e-12
    assert ev.check("recall>=1")["passed"].to_pylist() == [True]  # nothing is split
    for gate in ("rand>=1", "specificity>=1"):
        with pytest.raises(GateError, match="It rounds to 1, but clusters are merged"):
            ev.check(gate)
    ev.save(tmp_path, keep="scores")
    scores = fb.load(tmp_path)
    assert scores.check("recall>=1")["passed"].to_pylist() == [True]
    with pytest.raises(GateError, match="It rounds to 1, but clusters are merged"):
        scores.check("rand>=1")
    pairs = np.arange(2 * n) // 2
    moved = pairs.copy()
    moved[1:3] = 1, 0  # four wrong pairs of 8e12, in as many clusters as before
    fb.evaluate(pairs, moved, metrics=["rand"]).save(tmp_path, keep="scores")
    with pytest.raises(GateError, match="It rounds to 1, but clusters are merged and split"):
        fb.load(tmp_path).check("rand>=1")
    back = fb.evaluate(merged, truth, metrics=["rand", "specificity"])
    assert back.check("specificity>=1")["passed"].to_pylist() == [True]
    with pytest.raises(GateError, match="It rounds to 1, but clusters are split"):
        back.check("rand>=1")
    cmp = fb.compare(truth, {"same": truth, "merged": merged}, metrics=["rand"])
    assert [gate.passed for gate in gates_of_runs.try_bound(cmp, Bound("rand", 1.0))] == [True, False]


def test_perfect_scores_pass_at_their_best_end() -> None:
    labels = [0, 0, 1, 2, 2, 2]
    ev = fb.evaluate(labels, labels, metrics="all")
    ends = {
        m.name: (m.high, ">=") if m.best == "higher" else (m.low, "<=")
        for m in ev.metrics
        if m.best != "neither"
    }
    perfect = {name: f"{name}{sign}{end:g}" for name, (end, sign) in ends.items() if ev.overall[name] == end}
    assert {"f1", "rand", "jaccard_distance"} <= set(perfect)
    assert all(ev.check(*perfect.values())["passed"].to_pylist())


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_perfect_scores_pass_without_cells(engine: Any, tmp_path: Path) -> None:
    labels = [0, 0, 1, 2, 2, 2]
    ev = fb.evaluate(labels, labels, metrics=["f1", "rand"], engine=engine, keep="scores", out=tmp_path)
    for each in (ev, fb.load(tmp_path)):
        assert each.check("f1>=1", "rand>=1")["passed"].to_pylist() == [True, True]


# -- Intervals -------------------------------------------------------------------------------------

#: Of four pairs one is cut: recall is 7/8, with the interval of the example of `Evaluation.interval`.
PAIRS, CUT = list("aabbccdd"), [1, 1, 2, 2, 3, 3, 4, 5]


def test_gates_on_the_ends_of_an_interval() -> None:
    """The interval of recall goes from 0.380 to 0.988: Wilson's of 3.5 of 4 goes from 0.396 to 0.987.

    One more pair could change a fifth of 7/8 and of 1/8: 0.875 - hypot(0.479, 1.96 * 0.36 * 0.175) = 0.380.
    """
    ev = fb.evaluate(PAIRS, CUT)
    found = ev.check("recall.low>=0.38", "recall.high>=0.98", **{"recall.low": 0.38})
    assert found["gate"].to_pylist() == ["recall.low", "recall.high", "recall.low"]
    assert found["value"].to_pylist() == pytest.approx([0.380, 0.988, 0.380], abs=0.0005)
    with pytest.raises(GateError, match=r"failed: recall.low is 0\.380.*, recall .*\(0\.380.* to 0\.988"):
        ev.check("recall.low>=0.39")
    with pytest.raises(GateError, match=r"over_merge_rate.high"):  # of 0: to one side
        ev.check("over_merge_rate.high<=0.1")


def test_gates_on_an_interval_in_a_slice(tmp_path, capsys) -> None:
    """Log odds of 7/8, more and less 3.1824 (Student's t, 3 degrees) errors over 7/64; whole, saved, and by command."""
    table = pa.table({"item": range(10), "cluster": [*PAIRS, "e", "e"], "part": ["x"] * 8 + ["y"] * 2})
    cut = pa.table({"item": range(10), "cluster": [*CUT, 9, 9]})
    ev = fb.evaluate(table, cut, slices=["part"])
    error = ev.slices("part", errors=True).to_pylist()[0]["recall_se"]
    low, high = (1 / (1 + math.exp(-math.log(7) - sign * 3.1824 * error * 64 / 7)) for sign in (-1, 1))
    found = ev.check("recall.low>=0.1@part=x", "recall.high>=0.9@part=x")
    assert found["gate"].to_pylist() == ["recall.low of part=x", "recall.high of part=x"]
    assert found["value"].to_pylist() == pytest.approx([low, high], abs=1e-5)
    with pytest.raises(GateError, match=r"recall.low of part=x is .*, recall 0\.875 \("):
        ev.check("recall.low>=0.85@part=x")
    with pytest.raises(MetricError, match="no interval of recall is known"):  # one unit
        ev.check("recall.low>=0.1@part=y")
    paths = [str(tmp_path / name) for name in ("truth.parquet", "cut.parquet")]
    for path, each in zip(paths, (table, cut), strict=True):
        pq.write_table(each, path)
    code, (gate,) = judged(capsys, "evaluate", *paths, "--fail-under", "recall.low=0.85@part=x")
    assert (code, gate["slice"]) == (1, {"part": "x"}) and gate["value"] == pytest.approx(low, abs=1e-5)
    code, told = judged(capsys, "compare", *paths, paths[0], "--fail-under", "recall.low=0.1@part=x")
    assert code == 0 and told[0]["value"] == pytest.approx(low, abs=1e-5)


@pytest.mark.parametrize(
    ("gate", "error", "message"),
    [
        (
            "f1.low>=0.1",
            MetricError,
            "f1.low: no interval of f1 is known, because it is 0, or all of its items are in",
        ),
        ("f1.middle>=0.1", MetricError, "Unknown score 'f1.middle'"),
        ("f1.low<=0.1", OptionError, 'higher is better there; use "f1.low>=0.1"'),
        ("f1.low>=10", OptionError, "f1 ranges from 0 to 1. Write 10 % as 0.1"),
        (
            "truth_coverage.low>=0.1",
            OptionError,
            "only scores have intervals, but truth_coverage is not a score",
        ),
        ("largest_pred.high<=9", OptionError, "only scores have intervals, but largest_pred is not a score"),
        ("f1.low>=0.1@country=AQ", SliceError, "no slice is country=AQ"),
    ],
)
@pytest.mark.filterwarnings("ignore:there is no standard error")
def test_no_interval_is_an_error(ev, gate, error, message) -> None:
    with pytest.raises(error) as told:
        ev.check(gate)
    assert message in str(told.value) and not isinstance(told.value, GateError)


def test_no_interval_of_a_result_without_cells(tmp_path) -> None:
    fb.evaluate(PAIRS, CUT, engine="disk", keep="scores", out=tmp_path)
    with pytest.raises(fb.errors.NotKeptError, match="neither standard errors nor the cells"):
        fb.load(tmp_path).check("recall.low>=0.1")


@pytest.fixture
def pairs(tmp_path) -> dict[str, str]:
    """Sixty pairs; `old` cuts two, `bad` 30, and `new` none of them."""
    n = 120
    found = {}
    for name, n_cut in (("truth", 0), ("old", 2), ("bad", 30), ("new", 0)):
        clusters = [k // 2 if k % 2 == 0 or k // 2 >= n_cut else 1000 + k for k in range(n)]
        found[name] = str(tmp_path / f"{name}.parquet")
        part = [f"p{k % 3}" for k in range(n)]
        pq.write_table(pa.table({"item": range(n), "cluster": clusters, "part": part}), found[name])
    return found


def judged(capsys, *command: str) -> tuple[int, list[dict]]:
    code = cli.main([*command, "--json"])
    return code, json.loads(capsys.readouterr().out)["gates"]


@pytest.mark.cases(1)
@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_a_run_that_is_significantly_worse_fails(tmp_path, pairs, capsys, engine) -> None:
    """Against a saved run as in a comparison of both: the same difference, and the same interval of it."""
    assert cli.main(["evaluate", pairs["truth"], pairs["old"], "--out", str(tmp_path / "old")]) == 0
    capsys.readouterr()
    for name, code in (("bad", 1), ("new", 0), ("old", 0)):
        worse = ["--fail-worse", "f1=significant", "--fail-worse", "jaccard_distance=significant"]
        saved = ["--baseline", str(tmp_path / "old"), "--engine", engine]
        found = judged(capsys, "evaluate", pairs["truth"], pairs[name], *saved, *worse)
        beside = judged(capsys, "compare", pairs["truth"], pairs["old"], f"x={pairs[name]}", *worse)
        cmp = fb.compare(pairs["truth"], {"old": pairs["old"], "x": pairs[name]})
        deltas = {row["score"]: row for row in cmp.deltas().to_pylist()}
        assert found[0] == beside[0] == code
        for gate, other in zip(found[1], beside[1], strict=True):
            assert gate["passed"] == other["passed"] == (code == 0)
            for key in ("delta", "low", "high"):
                assert gate[key] == pytest.approx(other[key], abs=1e-12) == deltas[gate["score"]][key]
    line = "f1 is 1, 0.99160 in old: +0.0084 ("
    assert cli.main(["evaluate", pairs["truth"], pairs["new"], *saved, *worse[:2]]) == 0
    assert f"passed: {line}" in capsys.readouterr().out  # 2 r / (1 + r) of r = 118/120


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (
            "--fail-worse largest_pred=significant",
            "only scores have intervals, but largest_pred is not a score",
        ),
        ("--fail-worse f1=significant@part=p1", "gates on the interval of a difference do not"),
        ("--fail-worse expected_mutual_info=significant", "so no run can be worse"),
        ("--fail-worse f1.low=0.1", "Unknown score 'f1.low'"),
        ("--fail-under f1=significant", "is not of the form SCORE=VALUE"),
    ],
)
def test_what_cannot_be_significant(pairs, capsys, flags, message) -> None:
    assert cli.main(["compare", pairs["truth"], pairs["old"], pairs["new"], *flags.split()]) == 2
    assert message in capsys.readouterr().err


def test_no_interval_of_a_difference_is_an_error(tmp_path, pairs, paths, capsys) -> None:
    fb.evaluate(*paths).save(tmp_path / "one")  # all items are one unit
    (tmp_path / "one.json").write_text(fb.evaluate(*paths).to_json())
    flags = ["--fail-worse", "f1=significant", "--baseline"]
    assert cli.main(["evaluate", *paths, *flags, str(tmp_path / "one")]) == 2
    assert "f1=significant: no interval of the difference is known" in capsys.readouterr().err
    assert cli.main(["evaluate", *paths, *flags, str(tmp_path / "one.json")]) == 2
    assert "one.json has no cells; save it as a directory, with --keep cells" in capsys.readouterr().err
    assert (
        cli.main(["evaluate", *paths, *flags, str(tmp_path / "one"), "--keep", "scores", "--engine", "disk"])
        == 2
    )
    assert "the cells were not kept; evaluate with --keep cells" in capsys.readouterr().err


def test_gates_of_runs_on_intervals(pairs, capsys) -> None:
    """The interval is that of the run at the level of the comparison."""
    command = [
        "compare",
        pairs["truth"],
        pairs["old"],
        pairs["bad"],
        "--level",
        "0.8",
        "--fail-under",
        "f1.low=0.9",
    ]
    code, (old, bad) = judged(capsys, *command)
    assert code == 1 and (old["passed"], bad["passed"]) == (True, False)
    low, high = fb.evaluate(pairs["truth"], pairs["bad"]).interval("f1", level=0.8)
    assert (bad["value"], bad["low"], bad["high"], bad["level"]) == (low, low, high, 0.8)
    assert bad["score"] == "f1.low" and bad["gate"] == "bad: f1.low" and bad["of"] == pytest.approx(6 / 7)


def test_a_diff_has_gates_on_intervals(pairs) -> None:
    diff = fb.diff(pairs["old"], pairs["bad"])
    assert diff.check("split_rate.high<=1")["value"].to_pylist() == [diff.interval("split_rate").high]


def test_the_summary_of_a_comparison(tmp_path, pairs) -> None:
    command = ["compare", pairs["truth"], pairs["old"], pairs["bad"], "--fail-worse", "f1=significant"]
    assert cli.main([*command, "--slice", "part", "--summary", str(tmp_path / "s.md")]) == 1
    text = (tmp_path / "s.md").read_text()
    assert text.startswith("## fastbcubed: 2 runs on 120 items ✗\n\nbad is worse: F1 0.992 → 0.857, -0.134 (")
    assert "\n| gate | run | score | slice | value | wanted |\n" in text
    assert "\n| **failed** | bad | f1 |  | 0.85714, 0.99160 in old: -0.134 (" in text
    assert "By part" in text
