"""The command line: flags, output for people and machines, exit codes, pipes."""

from __future__ import annotations

import argparse
import inspect
import json
import os
import re
import socket
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from versions import arrow_imports_no_pandas, rich_knows_widths

import fastbcubed as fb
from fastbcubed.cli import commands, demo_command, evaluate_command
from fastbcubed.cli import main as cli
from fastbcubed.cli.json_keys import help_text
from fastbcubed.cli.output import in_flags
from fastbcubed.errors import MORE_MEMORY, Message, arg
from fastbcubed.metrics.registry import ALSO_CALLED, FAMILIES, METRICS, SYNONYMS
from fastbcubed.runtime.exit_codes import FAILED_GATE

TRUTH = {
    "item": ["a", "b", "c", "d", "e"],
    "cluster": ["Zoë", "Zoë", "日本", "日本", "日本"],
    "w": [1.0, 2.0, 0.5, 0.5, 4.0],
    "country": ["DE", "DE", None, "FR", "FR"],
    "year": [1999, 2001, 2001, 2001, 1999],
}
PREDICTION = {"item": ["a", "b", "c", "d", "e"], "cluster": [1, 1, 1, 2, 2]}


@pytest.mark.process
@pytest.mark.parametrize("program", ["/usr/bin/fastbcubed", "-c"])
def test_the_command_line_alone_sets_up_its_process(program):
    code = "import gc, os, sys; usual = gc.get_threshold()[0]; "
    code += f"sys.argv[0] = {program!r}; import fastbcubed; "
    code += "print(gc.get_threshold()[0] > usual, os.environ.get('OPENBLAS_NUM_THREADS'))"
    environment = {**os.environ, "PYTHONPATH": str(Path(fb.__file__).parents[1])}
    environment.pop("OPENBLAS_NUM_THREADS", None)
    said = subprocess.check_output([sys.executable, "-c", code], env=environment, text=True)
    assert said.strip() == ("False None" if program == "-c" else "True 1")


def _write(path: Path, **columns: list[object]) -> str:
    pq.write_table(pa.table(columns), path)
    return str(path)


def _options(*flags: str):
    return commands.parser().parse_args(["evaluate", "truth", "prediction", *flags])


def _json(capsys, *argv: str) -> dict[str, object]:
    assert cli.main(["evaluate", *argv, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def _run(*argv: str, **options):
    environment = {**os.environ, "PYTHONPATH": str(Path(fb.__file__).parents[1]), **options.pop("env", {})}
    command = [sys.executable, *options.pop("python", ()), "-m", "fastbcubed", *argv]
    return subprocess.run(command, capture_output=True, env=environment, **{"timeout": 300, **options})


# Flags


def test_every_argument_has_a_flag_of_its_name_and_default(capsys) -> None:
    parameters = inspect.signature(fb.evaluate).parameters
    given = evaluate_command.evaluate_arguments(_options())
    assert set(given) == set(parameters)
    for name, parameter in parameters.items():
        if parameter.kind is parameter.KEYWORD_ONLY:
            default = list(parameter.default) if isinstance(parameter.default, tuple) else parameter.default
            assert given[name] == default, name
    assert cli.main(["evaluate", "--help"]) == 0
    shown = capsys.readouterr().out
    for name in list(parameters)[2:]:
        assert f"--{name.replace('_', '-')}" in shown


@pytest.mark.parametrize(
    ("flags", "name", "value"),
    [
        ("--item id", "item", "id"),
        ("--item id,rec_id", "item", ("id", "rec_id")),
        ("--item source+id", "item", ["source", "id"]),
        ("--item source+id,src+no", "item", (["source", "id"], ["src", "no"])),
        (r"--cluster a\,b,c\+d", "cluster", ("a,b", "c+d")),
        ("--weight w", "weight", "w"),
        ("--weight km/h", "weight", "km/h"),
        ("--weight w.parquet", "weight", Path("w.parquet")),
        ("--weight some/w.CSV", "weight", Path("some/w.CSV")),
        ("--slice country --slice country,year", "slices", ["country", ("country", "year")]),
        (r"--slice a\,b", "slices", ["a,b"]),
        ("--metric f1,pairs --metric all", "metrics", ["f1", "pairs", "all"]),
        ("--beta 2", "beta", 2.0),
        ("--unmatched singleton", "unmatched", "singleton"),
        (
            "--unmatched truth=singleton,prediction=outside", "unmatched",
            {"truth": "singleton", "prediction": "outside"},
        ),
        ("--noise -1", "noise", -1),
        ("--noise=-1", "noise", -1),
        ("--noise none", "noise", "none"),
        ("--threads 3", "threads", 3),
        ("--progress", "progress", True),
        ("--no-progress", "progress", False),
        ("--table t.parquet", "table", "t.parquet"),
        ("--out results --keep items", "keep", "items"),
        ("--json", "keep", None),  # cells, if there is room
        ("--worst 9", "keep", "cells"),
        ("--order-by f1", "keep", "cells"),
    ],
)  # fmt: skip
def test_flags_become_arguments(flags: str, name: str, value: object) -> None:
    assert evaluate_command.evaluate_arguments(_options(*flags.split()))[name] == value


def test_with_one_table_the_sides_are_columns() -> None:
    options = commands.parser().parse_args(["evaluate", "a+b", "c", "--table", "t"])
    given = evaluate_command.evaluate_arguments(options)
    assert (given["truth"], given["prediction"]) == (["a", "b"], "c")


def test_messages_speak_of_flags() -> None:
    def said(text: str) -> str:
        return in_flags(Message(text))

    policies = {"truth": "drop", "prediction": "outside"}
    assert said(f"Pass {arg('nulls', 'drop')}, or {arg('unmatched', policies)}.") == (
        "Pass --nulls drop, or --unmatched truth=drop,prediction=outside."
    )
    assert said(f"Name it in {arg('metrics', ...)}, or give {arg('table', ...)}.") == (
        "Name it in --metric, or give --table."
    )
    assert said(f"Pass {arg('unmatched', 'drop', 'singleton')}.") == "Pass --unmatched drop or singleton."
    assert said(f"{arg('memory_limit')} is 1,000 bytes") == "--memory-limit is 1,000 bytes"
    assert said(f"{arg('errors')} is True or False") == "errors is True or False"
    assert said('folder/item=5/part.parquet, nulls="drop"') == 'folder/item=5/part.parquet, nulls="drop"'


# Results


def test_the_result_is_that_of_the_library(paths, capsys) -> None:
    found = _json(capsys, *paths, "--weight", "w", "--slice", "country", "--slice", "country,year")
    ev = fb.evaluate(*paths, weight="w", slices=["country", ("country", "year")])
    assert found == json.loads(ev.to_json())
    assert found["overall"]["precision"] == ev.precision


def test_json_keeps_its_shape(paths, capsys) -> None:
    found = _json(capsys, *paths, "--slice", "country")
    assert list(found) == [
        "fastbcubed", "truth", "prediction", "definition", "overall", "coverage", "summary", "outcomes",
        "slices", "warnings", "not_computed", "reading", "manifest", "errors", "degrees_of_freedom",
        "not_drawn", "intervals", "units",
    ]  # fmt: skip
    assert set(found["definition"]) >= {
        "average", "weighted", "weighting", "beta", "unmatched", "nulls", "duplicates", "noise",
    }  # fmt: skip
    assert set(found["coverage"]) >= {
        "n_common", "n_truth_only", "n_prediction_only", "weight_common", "weight_truth_only",
        "weight_prediction_only", "n_null", "n_noise", "n_duplicates", "truth_coverage", "prediction_coverage",
        "bounds",
    }  # fmt: skip
    for side in ("true", "pred"):
        assert set(found["summary"][side]) >= {
            "items", "clusters", "singletons", "largest", "size_quantiles", "exact",
        }  # fmt: skip
    (first, *_) = found["slices"]["country"]
    assert list(first)[:3] == ["country", "n_items", "weight"] and "precision" in first
    assert found["slices"]["country"][-1]["country"] is None
    for key in (*found, *found["definition"], *found["summary"]["true"]):
        assert key in help_text("evaluate"), f"evaluate --help does not describe {key}"


def test_json_has_null_for_nan_and_describes_warnings(tmp_path, capsys) -> None:
    truth = _write(tmp_path / "t.parquet", item=[1, 2], cluster=[1, 2])
    prediction = _write(tmp_path / "p.parquet", item=[1, 2, 3, 4], cluster=[1, 2, 2, 2])
    assert cli.main(["evaluate", truth, prediction, "--json"]) == 0
    out, err = capsys.readouterr()
    found = json.loads(out, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    warning, note = found["warnings"]
    assert note["code"] == "few-units" and warning["code"] == "dropping-flatters" and "message" in warning
    assert set(found["coverage"]["bounds"]) == {"precision_lower", "precision_upper", "unlabelled_mates"}
    assert err.count("fastbcubed: warning: ") == 1 and "--unmatched prediction=outside" in err
    assert "UserWarning" not in err and "EvaluationWarning" not in err


def test_text_has_scores_slices_and_worst_clusters(paths, capsys) -> None:
    assert cli.main(["evaluate", *paths, "--slice", "country", "--slice", "true_size"]) == 0
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert lines[0] == "Evaluation of 5 items"
    assert any(line.split()[:2] == ["precision", "0.73333"] for line in lines)
    country = lines.index("By country")
    assert lines[country + 1].split()[:2] == ["country", "items"]
    assert [line.split()[0] for line in lines[country + 2 : country + 5]] == ["DE", "FR", "(null)"]
    pred = lines.index("Predicted clusters that cost most precision: 1 of 2, with 100 % of the loss")
    assert lines[pred + 2].split()[:4] == ["1", "mixed", "3", "2"]  # cluster, outcome, items, parts
    true = lines.index("True clusters that cost most recall: 1 of 2, with 100 % of the loss")
    assert lines[true + 2].startswith("日本 ")
    assert "\x1b" not in out and not any(line != line.rstrip() for line in lines)
    assert not [line for line in err.splitlines() if not re.search(r"compil|\[few-units\]", line)]


def test_a_perfect_clustering_has_no_worst_clusters(paths, capsys) -> None:
    assert cli.main(["evaluate", paths[0], paths[0]]) == 0
    out = capsys.readouterr().out
    assert "Every predicted cluster has the best precision." in out
    assert "Every true cluster has the best recall." in out


def test_clusters_by_score_instead_of_loss(tmp_path, capsys) -> None:
    """A pair of strangers has the worst precision, 1/2; a large cluster with one stranger costs 1.8 of 2.8."""
    truth = _write(tmp_path / "t.parquet", item=list(range(12)), cluster=[0, 1, *[2] * 9, 3])
    prediction = _write(tmp_path / "p.parquet", item=list(range(12)), cluster=["pair"] * 2 + ["big"] * 10)
    for flags, words, first in [
        ([], "that cost most precision: 2 of 2, with 100 % of the loss", "big"),
        (
            ["--order-by", "loss", "--worst", "1"],
            "that cost most precision: 1 of 2, with 64.3 % of the loss",
            "big",
        ),
        (["--order-by", "precision"], "of worst precision: 2 of 2, with 100 % of the loss", "pair"),
        (["--order-by", "mcc", "--worst", "1"], "of worst mcc: 1 of 2, with 35.7 % of the loss", "pair"),
        (["--order-by", "f1", "--metric", "precision,recall"], "of worst f1: 2 of 2, with", "pair"),
    ]:
        assert cli.main(["evaluate", truth, prediction, *flags]) == 0
        lines = capsys.readouterr().out.splitlines()
        (at,) = [k for k, line in enumerate(lines) if line.startswith(f"Predicted clusters {words}")]
        assert lines[at + 2].startswith(first)


@pytest.mark.parametrize(
    ("score", "said"),
    [
        ("elm", "a family of"),
        ("rand", "a score of all items at once"),
        ("presicion", "Did you mean 'precision'"),
    ],
)
def test_clusters_are_ordered_by_scores_that_they_have(paths, capsys, score, said) -> None:
    assert cli.main(["evaluate", *paths, "--order-by", score]) == 2
    assert said in capsys.readouterr().err


def test_worst_says_how_many(tmp_path, capsys) -> None:
    n = 60
    truth = _write(
        tmp_path / "t.parquet", item=list(range(n)), cluster=[i // 3 for i in range(n)],
        name=[f"a rather long name of slice {i // 2:03}" for i in range(n)],
    )  # fmt: skip
    prediction = _write(tmp_path / "p.parquet", item=list(range(n)), cluster=[i // 2 for i in range(n)])
    assert cli.main(["evaluate", truth, prediction, "--slice", "name", "--worst", "7"]) == 0
    out = capsys.readouterr().out
    assert "By name: the 7 of 30 slices that cost most" in out
    assert (
        len(re.findall("^a rather long name of slice", out, re.MULTILINE)) == 7
    )  # whole names: this is no terminal
    assert "Predicted clusters that cost most precision: 7 of 30" in out
    assert cli.main(["evaluate", truth, prediction, "--slice", "name", "--worst", "0"]) == 0
    out = capsys.readouterr().out
    assert "By name: 30 slices; --worst N" in out and "most precision" not in out


def test_slices_are_ordered_by_their_share_of_the_loss(tmp_path, capsys) -> None:
    # slice k < 19 has 2 items put together rightly, slice 19 has 2 that are split
    n = 40
    truth = _write(
        tmp_path / "t.parquet", item=list(range(n)), cluster=[i // 2 for i in range(n)],
        part=[i // 2 for i in range(n)],
    )  # fmt: skip
    prediction = _write(
        tmp_path / "p.parquet", item=list(range(n)), cluster=[*(i // 2 for i in range(n - 1)), 99]
    )
    assert cli.main(["evaluate", truth, prediction, "--slice", "part", "--worst", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    at = lines.index("By part: the 1 of 20 slices that cost most")
    assert lines[at + 2].split() == [
        "19",
        "2",
        "5.0",
        "%",
        "1",
        "0.50000",
        "0.66667",
        "0",
        "%",
        "100",
        "%",
        "+0.4750",
    ]
    assert lines[at + 4].startswith("of P loss, of R loss")


def test_scores_that_were_named_are_listed(paths, capsys) -> None:
    assert cli.main(["evaluate", *paths, "--metric", "mcc,elm_f1", "--slice", "country"]) == 0
    out = capsys.readouterr().out
    assert "Predicted clusters that cost most precision" in out
    header = next(line for line in out.splitlines() if line.startswith("country"))
    assert header.split() == [
        "country",
        "items",
        "of",
        "items",
        "mcc",
        "elm_f1",
        "of",
        "P",
        "loss",
        "of",
        "R",
        "loss",
        "excess",
    ]


def test_weights_and_attributes_from_tables_of_their_own(paths, tmp_path, capsys) -> None:
    weight = _write(tmp_path / "w.parquet", item=TRUTH["item"], weight=TRUTH["w"])
    attributes = _write(tmp_path / "a.parquet", item=TRUTH["item"], kind=list("xyxyx"))
    found = _json(capsys, *paths, "--weight", weight, "--attributes", attributes, "--slice", "kind")
    assert found["overall"] == _json(capsys, *paths, "--weight", "w")["overall"]
    assert [row["kind"] for row in found["slices"]["kind"]] == ["x", "y"]
    assert cli.main(["evaluate", *paths, "--weight", weight, "--slice", "country"]) == 0
    out = capsys.readouterr().out
    assert "Weights count inside" in out and "of weight" in out


def test_one_table(tmp_path, capsys) -> None:
    table = _write(tmp_path / "t.parquet", id=[1, 2, 3], true=["a", "a", "b"], pred=["x", "x", "x"])
    found = _json(capsys, "true", "pred", "--table", table, "--item", "id")
    assert found["overall"]["precision"] == pytest.approx(5 / 9)


def test_composite_ids_and_names_of_either_side(tmp_path, capsys) -> None:
    truth = _write(tmp_path / "t.parquet", source=["s", "s", "t"], no=[1, 2, 1], person=[1, 1, 2])
    prediction = _write(tmp_path / "p.parquet", src=["t", "s", "s"], id=[1, 1, 2], label=[1, 1, 1])
    flags = ("--item", "source+no,src+id", "--cluster", "person,label")
    assert _json(capsys, truth, prediction, *flags)["coverage"]["n_common"] == 3


@pytest.mark.parametrize("labels", [[-1, -1, 5], ["-1", "-1", "5"]])
def test_noise_is_of_the_type_of_the_labels(tmp_path, capsys, labels) -> None:
    truth = _write(tmp_path / "t.parquet", item=[1, 2, 3], cluster=labels)
    found = _json(capsys, truth, truth, "--noise", "-1")
    assert found["coverage"]["n_noise"] == 4


def test_csv_and_globs(tmp_path, capsys) -> None:
    for name in ("t0", "t1"):
        (tmp_path / f"{name}.csv").write_text(f"item,cluster\n{name},x\n")
    (tmp_path / "p.csv").write_text("item,cluster\nt0,1\nt1,2\n")
    found = _json(capsys, str(tmp_path / "t?.csv"), str(tmp_path / "p.csv"))
    assert found["overall"]["recall"] == 0.5


def test_out_is_written_and_can_be_loaded(paths, tmp_path, capsys) -> None:
    out = tmp_path / "results"
    assert cli.main(["evaluate", *paths, "--out", str(out), "--keep", "items"]) == 0
    assert f"wrote {out}" in capsys.readouterr().err
    assert fb.load(out).precision == fb.evaluate(*paths).precision


# Exit codes


@pytest.mark.parametrize(
    ("flags", "code"),
    [
        ("--fail-under f1=0.1", 0),
        ("--fail-under precision=0.99", 1),
        ("--fail-under f1=0.1 --fail-under recall=1", 1),
        ("--fail-under mcc=-1", 0),
        ("--fail-over jaccard_distance=1", 0),
        ("--fail-over jaccard_distance=0", 1),
        ("--fail-over=over_merge_rate=0.001", 1),
    ],
)
def test_gates(paths, capsys, flags: str, code: int) -> None:
    assert cli.main(["evaluate", *paths, *flags.split()]) == code
    assert ("failed: " in capsys.readouterr().out) == bool(code)


def test_a_perfect_score_passes_a_gate_of_1(paths) -> None:
    assert cli.main(["evaluate", paths[0], paths[0], "--fail-under", "f1=1"]) == 0


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ("", "required: COMMAND"),
        ("evaluat", "). Did you mean 'evaluate'?\nTry: fastbcubed --help"),
        ("evaluate T P --engine memroy", "invalid choice: 'memroy' (choose from "),
        ("evaluate T P --engine memroy", "). Did you mean 'memory'?\n"),
        ("evaluate T", "required: PREDICTION"),
        ("evaluate T P --metrik f1", "unrecognized arguments: --metrik f1. Did you mean '--metric'?"),
        ("evaluate T P --xyzzy", "unrecognized arguments: --xyzzy\nTry: fastbcubed evaluate --help"),
        ("evaluate T P Q", "unrecognized arguments: Q\nTry: fastbcubed evaluate --help"),
        ("evaluate T P T", "unrecognized arguments: truth.parquet. Quote a pattern for several files"),
        ("evaluate T P --metr f1", "unrecognized arguments: --metr"),
        ("evaluate T P --metric presicion", "Did you mean 'precision'"),
        ("evaluate T P --beta x", "invalid float value"),
        ("evaluate T P --beta -1", "beta"),
        ("evaluate T P --threads 0", "1 or more"),
        ("evaluate T P --keep everything", "\nTry: fastbcubed evaluate --help"),
        ("evaluate T P --nulls ignore", "invalid choice"),
        ("evaluate T P --worst -1", "0 or more"),
        (
            "evaluate T P --unmatched inner",
            "--unmatched must be drop, raise, singleton, or, for items that only the prediction has, outside, "
            "not 'inner'",
        ),
        (
            "evaluate T P --unmatched left=drop",
            "--unmatched has policies for 'left', but the sides are named truth",
        ),
        (
            "evaluate T P --unmatched truth=outside",
            "--unmatched cannot be outside for items that only the truth",
        ),
        ("evaluate T P --item a,b,c", "a pair of columns"),
        ("evaluate T P --item ,", "a pair of columns"),
        ("evaluate T P --item nothing", "nothing"),
        ("evaluate T P --weight nothing", "nothing"),
        ("evaluate T P --weight nothing.parquet", "no file nothing.parquet"),
        ("evaluate T P --slice nothing", "no attribute 'nothing'"),
        ("evaluate T P --fail-under f1", "SCORE=VALUE"),
        ("evaluate T P --fail-under f1=high", "SCORE=VALUE"),
        ("evaluate T P --fail-under f1=0.9@", "SCORE=VALUE@NAME=SLICE"),
        ("evaluate T P --fail-under nothing=1", "Unknown score 'nothing'"),
        ("evaluate T P --fail-under elm=1", "is a family"),
        ("evaluate T P --fail-under jaccard_distance=0.1", "use --fail-over jaccard_distance=0.1"),
        ("evaluate T P --fail-over f1=0.9", "use --fail-under f1=0.9"),
        ("evaluate T P --fail-under f1=95", "f1 ranges from 0 to 1. Write 95 % as 0.95"),
        ("evaluate T P --fail-under f1=-1", "f1 ranges from 0 to 1"),
        ("evaluate T P --fail-under f1=nan", "f1 ranges from 0 to 1"),
        (
            "evaluate T P --fail-over jaccard_distance=2",
            "jaccard_distance ranges from 0 to 1. Write 2 % as 0.02",
        ),
        ("evaluate columns.parquet P", "Name the right one with --item and --cluster."),
        ("evaluate /dev/null P", "/dev/null is a pipe or a device"),
        ("evaluate T P --out T", "--out truth.parquet would replace truth.parquet, which is an input"),
        ("evaluate T P --memory-limit 5x", "--memory-limit must be a number of bytes"),
        ("evaluate T P --engine disk --memory-limit 1KB", "--memory-limit is 1,000 bytes"),
        ("evaluate T P --beta nan", "--beta must be a number"),
        ("evaluate T P --metric f1,,mcc", "one of them is empty"),
        ("evaluate T P --slice country,", "such as country,year, not 'country,'"),
        ("evaluate T P --slice year,year", "different attributes"),
        ("evaluate T nowhere.parquet", "There is no file nowhere.parquet"),
        ("evaluate T broken.parquet", "truncated"),
        ("evaluate T other.parquet", "no item of"),
        ("evaluate T nulls.parquet", "--nulls singleton"),
        ("evaluate T twice.parquet", "--duplicates drop"),
        ("evaluate truth pred", "--table"),
        ("metrics presicion", "Did you mean 'precision'"),
    ],
)
def test_what_the_user_can_mend_exits_with_2(paths, tmp_path, monkeypatch, capsys, argv, message) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken.parquet").write_bytes(Path(paths[0]).read_bytes()[:-20])
    _write(tmp_path / "other.parquet", item=["p", "q"], cluster=[1, 2])
    _write(tmp_path / "nulls.parquet", item=["a", "b"], cluster=[1, None])
    _write(tmp_path / "columns.parquet", a=[1], b=[2], c=[3])
    _write(tmp_path / "twice.parquet", item=["a", "a", "b"], cluster=[1, 1, 2])
    words = [dict(T="truth.parquet", P="pred.parquet").get(word, word) for word in argv.split()]
    assert cli.main(words) == 2
    out, err = capsys.readouterr()
    assert message in err and "Traceback" not in err
    assert not out and len(err) < 1200


def test_ctrl_c_exits_with_130(paths, monkeypatch, capsys) -> None:
    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(fb, "evaluate", interrupted)
    assert cli.main(["evaluate", *paths]) == 130
    assert capsys.readouterr().err == "fastbcubed: stopped\n"


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(28, "No space left on device", "/results"), "No space left on device: /results"),
        (MemoryError(), f"out of memory. {MORE_MEMORY}"),
        (
            OSError(12, "Cannot allocate memory"),
            f"out of memory: [Errno 12] Cannot allocate memory. {MORE_MEMORY}",
        ),
        (RuntimeError("can't start new thread"), f"out of memory: can't start new thread. {MORE_MEMORY}"),
    ],
)
def test_a_full_machine_exits_with_2(paths, monkeypatch, capsys, error, said) -> None:
    def failing(*args, **kwargs):
        raise error

    monkeypatch.setattr(fb, "evaluate", failing)
    assert cli.main(["evaluate", *paths]) == 2
    assert capsys.readouterr().err == f"fastbcubed: {in_flags(said)}\n"


@pytest.mark.parametrize(
    "error", [TypeError("no such\nthing"), RuntimeError(), AssertionError("x"), OSError(9, "Bad")]
)
def test_an_error_of_ours_exits_with_70(paths, monkeypatch, capsys, error) -> None:
    def failing(*args, **kwargs):
        raise error

    monkeypatch.setattr(fb, "evaluate", failing)
    monkeypatch.delenv("FASTBCUBED_TRACEBACK", raising=False)
    assert cli.main(["evaluate", *paths, "--fail-under", "f1=0.9"]) == 70
    out, err = capsys.readouterr()
    (line,) = err.splitlines()
    assert not out and line.startswith(f"fastbcubed: unexpected {type(error).__name__}")
    assert "please report" in line and "FASTBCUBED_TRACEBACK=1" in line and fb.__version__ in line
    monkeypatch.setenv("FASTBCUBED_TRACEBACK", "1")
    assert cli.main(["evaluate", *paths]) == 70
    err = capsys.readouterr().err
    assert "Traceback (most recent call last)" in err and "in failing" in err and "please report" in err


def test_errors_of_every_command_exit_with_70(monkeypatch, capsys) -> None:
    def failing(*args, **kwargs):
        raise KeyError("x")

    two = ["a", "b"]
    of_two = ("evaluate", "show", "explain", "compare", "diff", "estimate", "sweep", "sample-pairs")
    needed = dict.fromkeys(of_two, two)
    needed |= {name: ["a"] for name in ("estimate-pairs", "cluster")}
    needed["report"] = ["a", "--out", "b"]
    for command in commands.COMMANDS:
        module = import_module(f"fastbcubed.cli.{command.module}")
        monkeypatch.setattr(module, "run", failing)
        assert cli.main([command.name, *needed.get(command.name, [])]) == 70
        assert "please report" in capsys.readouterr().err


def test_every_exit_code_is_in_the_help(capsys) -> None:
    for command in ([], ["evaluate"], ["warm-up"]):
        assert cli.main([*command, "--help"]) == 0
        codes = capsys.readouterr().out.split("Exit codes")[1]
        for code in (
            0,
            FAILED_GATE,
            cli.WRONG,
            cli.FAULT,
            cli.STOPPED,
            cli.READER_GONE,
            cli.TERMINATED,
        ):
            assert re.search(rf"\b{code}\b", codes), code


def test_a_socket_is_no_file(paths, tmp_path, capsys) -> None:
    with socket.socket(socket.AF_UNIX) as end:
        end.bind(str(tmp_path / "socket"))
        assert cli.main(["evaluate", str(tmp_path / "socket"), paths[1]]) == 2
    assert "socket is a pipe or a device" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "score"),
    [("ari", "adjusted_rand"), ("RI", "rand"), ("rand-index", "rand"), ("vi", "variation_of_information"),
     ("fmi", "pair_fowlkes_mallows"), ("b3_f1", "bcubed_f1"), ("pairwise_f1", "pair_f1"),
     ("normalized_mutual_info_score", "nmi"), ("v_measure_score", "v_measure")],
)  # fmt: skip
def test_names_that_scores_have_elsewhere(name, score, paths, capsys) -> None:
    assert cli.main(["metrics", name, "--json"]) == 0
    assert [entry["name"] for entry in json.loads(capsys.readouterr().out)] == [score]
    assert list(_json(capsys, *paths, "--metric", name)["overall"]) == [score]


@pytest.mark.parametrize(("name", "score"), ALSO_CALLED.items())
def test_names_that_may_mean_several_scores_are_suggestions(name, score, capsys) -> None:
    assert cli.main(["metrics", name]) == 2
    assert f"Did you mean {score!r}?" in capsys.readouterr().err


def test_what_scores_are_called_elsewhere_is_there() -> None:
    for names in (ALSO_CALLED, SYNONYMS):
        assert set(names.values()) <= {*METRICS, *FAMILIES} and not set(names) & {*METRICS, *FAMILIES}


def test_slices_without_a_score_are_warned_of(paths, capsys) -> None:
    flags = ["--metric", "pair_f1,rand", "--slice", "country"]
    assert _json(capsys, *paths, *flags)["warnings"][1]["code"] == "slices-without-scores"
    assert cli.main(["evaluate", *paths, *flags]) == 0
    assert (
        "warning: The slices have no scores: pair_f1, rand are defined only for all items"
        in capsys.readouterr().err
    )
    (note,) = _json(capsys, *paths, "--metric", "pair_f1,f1", "--slice", "country")["warnings"]
    assert note["code"] == "few-units"


# Other commands


def test_metrics_lists_every_score(capsys) -> None:
    assert cli.main(["metrics"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["name", "family", "range", "better", "definition", "source"]
    assert [line.split()[0] for line in lines[1:]] == list(METRICS)
    assert cli.main(["metrics", "--json"]) == 0
    entries = json.loads(capsys.readouterr().out)
    assert [entry["name"] for entry in entries] == list(METRICS)
    assert set(entries[0]) == {
        "name", "family", "range", "better", "summary", "definition", "source", "reference", "alias_of",
        "notes", "use", "caution",
    }  # fmt: skip
    without = [e["name"] for e in entries if not (e["use"].endswith(".") and e["caution"].endswith("."))]
    assert without == []


def test_metrics_fit_a_small_terminal(capsys, monkeypatch) -> None:
    """A page or two of names, not a table that wraps each sentence into three lines."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    assert cli.main(["metrics"]) == 0
    lines = re.sub(r"\x1b\[\d*m", "", capsys.readouterr().out).splitlines()
    assert len(lines) <= 200 and max(map(len, lines)) <= 80
    names = re.findall(
        r"[a-z]\w+(?=↓?[,\n])", "\n".join(line for line in lines if line.startswith("  ")) + "\n"
    )
    assert names == list(METRICS)
    assert "jaccard_distance↓, over_merge_rate↓" in " ".join(lines)


def test_metrics_in_full(capsys) -> None:
    assert cli.main(["metrics", "mcc", "elm", "bcubed_f1"]) == 0
    out = capsys.readouterr().out
    assert "mcc (pointwise; -1 to 1; higher is better)" in out
    assert "elm_mean_f1 (elm; 0 to 1" in out and "BCubed Revisited" in out
    assert "The score is the same as f1." in out


@pytest.mark.slow
def test_the_demo_explains_real_data(capsys, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(["demo"]) == 0
    out = capsys.readouterr().out
    for step in range(1, 6):
        assert f"\n{step}. " in out
    assert "0.906 (" in out and "0.807 (" in out and "0.976 (" in out and "0.935 (" in out
    for name in ("tp", "fp", "fn", "tn"):
        assert f"\n  {name} " in out
    assert max(map(len, out.splitlines())) <= 80 and len(out.splitlines()) <= 80
    assert not list(tmp_path.iterdir())


def test_what_the_demo_says_is_so() -> None:
    folder = Path(fb.__file__).parent / "data" / "patentsview"
    truth = folder / "truth.parquet"
    old, new = (
        fb.evaluate(truth, folder / name, slices=["country"]) for name in demo_command.RELEASES.values()
    )
    assert old.under_merge_rate > old.over_merge_rate
    assert new.precision > old.precision and new.recall > old.recall
    rows = {row["country"]: row for row in old.sliced["country"].to_pylist()}
    for country, score, of_items, of_loss in (("CN", "precision", 0.08, 0.22), ("US", "recall", 0.31, 0.41)):
        row, lost = rows[country], 1 - old.overall[score]
        assert round(row["n_items"] / old.contingency.n_items, 2) == of_items
        assert round(row["n_items"] * (1 - row[score]) / old.contingency.n_items / lost, 2) == of_loss
    assert old.clusters("pred", limit=1)["n_parts"][0].as_py() == 18
    suzuki = old.clusters("true", limit=1)["cluster"][0].as_py()
    firms = {row["assignee"].split(",")[0].split()[0] for row in pq.read_table(truth).to_pylist()
             if row["cluster"] == suzuki and row["assignee"]}  # fmt: skip
    assert {"Hitachi", "Fujitsu", "Ricoh", "Canon", "Nippon"} <= firms


# warm-up


@pytest.mark.process
def test_warm_up_says_if_it_is_of_no_use(tmp_path) -> None:
    done = _run("warm-up", env={"FASTBCUBED_CACHE": "0"})
    assert done.returncode == 2 and b"not kept (FASTBCUBED_CACHE=0)" in done.stderr
    (tmp_path / "file").touch()
    done = _run("warm-up", env={"NUMBA_CACHE_DIR": str(tmp_path / "file" / "kernels")}, timeout=300)
    assert done.returncode == 2 and b"named by NUMBA_CACHE_DIR, cannot be written to" in done.stderr


# As a process


@pytest.mark.process
def test_version_and_help_start_fast() -> None:
    code = "import sys; from fastbcubed.cli.main import main; main(['--version']); main(['evaluate', '--help'])\n"
    code += "print([name for name in ('numba', 'pandas', 'rich', 'scipy') if name in sys.modules])"
    environment = {**os.environ, "PYTHONPATH": str(Path(fb.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=300
    )
    assert done.stdout.startswith(f"fastbcubed {fb.__version__}\n")
    assert done.stdout.endswith("[]\n") and not done.stderr


def test_the_version_alone_imports_nothing_else() -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(fb.__file__).parents[1])}
    for prefix in ([], ["-S"]):  # -S: no installed package can be imported at all
        command = [sys.executable, *prefix, "-m", "fastbcubed", "--version"]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)
        assert (done.returncode, done.stdout, done.stderr) == (0, f"fastbcubed {fb.__version__}\n", "")


def test_tools_for_completion_see_the_flags_of_all_commands() -> None:
    (group,) = commands.whole_parser()._subparsers._group_actions
    assert list(group.choices) == [command.name for command in commands.COMMANDS]
    for name, parser in group.choices.items():
        flags = {flag for action in parser._actions for flag in action.option_strings}
        assert len(flags) > 2 or name in ("demo", "warm-up"), name  # more than -h, --help
    assert "--fail-under" in group.choices["evaluate"]._option_string_actions


@pytest.mark.process
@arrow_imports_no_pandas
@pytest.mark.parametrize(
    ("verb", "names", "said"),
    [
        ("evaluate", "truth pred", "Evaluation of"),
        ("compare", "truth pred truth", "truth is better"),
        ("diff", "truth pred", "Diff of"),
    ],
)
def test_what_is_printed_needs_no_pandas(paths, verb: str, names: str, said: str) -> None:
    """Its import takes as long as all else that a small evaluation does."""
    command = [verb, *(str(paths[name == "pred"]) for name in names.split())]
    code = f"import sys; from fastbcubed.cli.main import main; main({command!r})\n"
    code += "print('pandas' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": str(Path(fb.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=300
    )
    assert done.stdout.startswith(said) and done.stdout.endswith("False\n")
    assert done.returncode == 0


@pytest.mark.process
def test_results_go_to_stdout_and_the_rest_to_stderr(paths) -> None:
    done = _run("evaluate", *paths, "--json", python=("-W", "error::UserWarning"))
    assert done.returncode == 0
    assert json.loads(done.stdout)["summary"]["true"]["clusters"] == 2
    assert not [line for line in done.stderr.splitlines() if not re.search(rb"compil|\[few-units\]", line)]


@pytest.mark.process
def test_a_closed_pipe_is_no_error(paths) -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(fb.__file__).parents[1])}
    for command in (["evaluate", *paths], ["evaluate", *paths, "--json"], ["metrics"]):
        process = subprocess.Popen(
            [sys.executable, "-m", "fastbcubed", *command],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment,
        )  # fmt: skip
        process.stdout.close()
        err = process.stderr.read()
        process.stderr.close()
        assert process.wait(300) == 141
        assert b"Traceback" not in err and b"BrokenPipe" not in err


@pytest.mark.slow
def test_files_are_written_though_nobody_reads_the_output(paths, tmp_path, monkeypatch) -> None:
    """The work is done by then; lines of a terminal are flushed one by one."""
    pq.write_table(pa.table({"left": ["a"], "right": ["b"], "score": [0.5]}), tmp_path / "links.parquet")

    def closed(text: str) -> int:
        raise BrokenPipeError

    monkeypatch.setattr("fastbcubed.cli.main.give_up", lambda stream: None)
    swept = [paths[0], str(tmp_path / "links.parquet")]
    for command in (["evaluate", *paths], ["compare", *paths], ["diff", *paths], ["sweep", *swept]):
        out, page = tmp_path / command[0], tmp_path / f"{command[0]}.html"
        with monkeypatch.context() as patched:
            patched.setattr(sys.stdout, "write", closed)
            assert cli.main([*command, "--out", str(out), "--report", str(page)]) == 141
        assert (out / "overall.json").is_file() and page.is_file()


@pytest.mark.process
@pytest.mark.skipif(sys.platform == "win32", reason="needs a shell of POSIX")
@pytest.mark.parametrize(
    ("redirected", "code", "said"),
    [
        (">/dev/full", 2, "fastbcubed: No space left on device: standard output\n"),
        (">&-", 0, ""),
        (">/dev/null 2>&-", 0, ""),
        ("2>/dev/full", 0, ""),
        (">&- 2>&-", 0, ""),
    ],
)
def test_streams_that_are_full_or_closed(redirected, code, said) -> None:
    """There is one message, not another when Python ends; and a message never goes among the results."""
    environment = {**os.environ, "PYTHONPATH": str(Path(fb.__file__).parents[1])}
    for asked in ("metrics precision", "metrics all --json", "evaluate --help"):  # the first fits a buffer
        command = f'"{sys.executable}" -m fastbcubed {asked} {redirected}'
        done = subprocess.run(
            command, shell=True, capture_output=True, text=True, env=environment, timeout=300
        )
        assert (done.returncode, done.stderr) == (code, said)


@pytest.mark.process
def test_a_wrong_option_with_a_closed_stderr(tmp_path) -> None:
    command = f'"{sys.executable}" -m fastbcubed metrics absent 2>&-'
    environment = {**os.environ, "PYTHONPATH": str(Path(fb.__file__).parents[1])}
    done = subprocess.run(command, shell=True, capture_output=True, text=True, env=environment, timeout=300)
    assert (done.returncode, done.stdout) == (2, "")


@pytest.mark.process
def test_names_that_the_terminal_cannot_show(paths) -> None:
    ascii_only = {"PYTHONIOENCODING": "ascii"}
    done = _run("evaluate", *paths, env=ascii_only)
    assert done.returncode == 0 and rb"\u65e5\u672c" in done.stdout
    folder = Path(paths[0]).parent / "Größe"
    folder.mkdir()
    moved = str(Path(paths[0]).rename(folder / "truth.parquet"))
    done = _run("evaluate", moved, paths[1], "--json", env=ascii_only)
    assert json.loads(done.stdout)["truth"] == "truth.parquet"
    done = _run("evaluate", moved, paths[1], "--json", "--paths", env=ascii_only)
    assert json.loads(done.stdout)["truth"] == moved


@pytest.mark.process
@pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminals")
@rich_knows_widths
def test_on_a_terminal_names_go_on_below_beside_their_figures(tmp_path) -> None:
    import fcntl
    import pty
    import struct
    import termios

    name = "a cluster of a name that is much too long for a terminal of eighty columns, really"
    truth = _write(tmp_path / "t.parquet", item=[1, 2, 3], cluster=[name, name, "b"])
    prediction = _write(tmp_path / "p.parquet", item=[1, 2, 3], cluster=["x", "y", "y"])
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 80, 0, 0))
    environment = {**os.environ, "PYTHONPATH": str(Path(fb.__file__).parents[1]), "TERM": "xterm"}
    environment.pop("NO_COLOR", None)
    process = subprocess.Popen(
        [sys.executable, "-m", "fastbcubed", "evaluate", truth, prediction],
        stdout=theirs, stderr=subprocess.DEVNULL, env=environment,
    )  # fmt: skip
    assert process.wait(300) == 0
    os.close(theirs)
    shown = b""
    while True:
        try:
            piece = os.read(ours, 1 << 16)
        except OSError:  # Linux says so at the end
            break
        if not piece:
            break
        shown += piece
    os.close(ours)
    lines = shown.decode().splitlines()
    at = next(k for k, line in enumerate(lines) if line.startswith("a cluster of"))
    assert len(lines[at]) <= 80 and {"0.75000", "0.50000", "100"} <= {*lines[at].split()}
    names = (re.split(" {2,}", line)[0] for line in lines[at : at + 6])
    assert " ".join(names).startswith(name)
    assert any("\x1b[1m" in line for line in lines) and any(line.startswith("More: ") for line in lines[-3:])


def test_messages_fit_a_terminal_and_are_one_line_elsewhere(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, bound = "no/such/file/of/this/name/in/any/directory/at/all.parquet", ["--fail-under", "f1"]
    for terminal in (False, True):
        monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)  # noqa: B023 - called before it changes
        for argv in (["evaluate", path, path], ["evaluate", path, path, *bound]):
            assert cli.main(argv) == 2
            lines = capsys.readouterr().err.removesuffix("\nTry: fastbcubed evaluate --help\n").splitlines()
            assert len(lines) == 1 or terminal
            assert (max(map(len, lines)) <= 80) == terminal


def test_help_names_no_flag_that_a_command_lacks() -> None:
    """A flag of another command is named with it: "as for --slice of evaluate", "evaluate --out"."""
    names = "|".join(command.name for command in commands.COMMANDS)
    elsewhere = re.compile(rf"({names}) --[a-z-]+|--[a-z-]+ of ({names})")
    for command in commands.COMMANDS:
        module = import_module(f"fastbcubed.cli.{command.module}")
        parser = argparse.ArgumentParser(prog=command.name)
        module.add_flags(parser)
        own = {flag for action in parser._actions for flag in action.option_strings}
        for action in parser._actions:
            named = re.findall(r"(?<![\w-])--[a-z][a-z-]*", elsewhere.sub("", str(action.help)))
            assert own.issuperset(named), f"{command.name}: {action.option_strings or action.dest}: {named}"


def test_messages_and_tables_have_nothing_that_a_terminal_obeys(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is cut in a pipe: long texts go on below. A library for which there is no memory is no missing one."""
    from fastbcubed.cli.output import Terminal, say
    from fastbcubed.errors import ColumnError, lacks_memory
    from fastbcubed.render.document import Grid

    assert str(ColumnError("no column \x1b[2Jx,\nnor \x9by")) == "no column \\x1b[2Jx,\nnor \\x9by"
    say("no file \x1b[2J")
    assert capsys.readouterr().err == "fastbcubed: no file \\x1b[2J\n"
    for forms in ((), ("name", "count")):
        Terminal().grid(
            Grid(["\x1b[1ma", "n"], [["\x1b[2J" + "x" * 5000, "7"]], 1, forms and ("text", "text"))
        )
        header, row, *below = capsys.readouterr().out.splitlines()
        assert header.startswith("\\x1b[1ma ")
        assert (
            row.startswith("\\x1b[2Jxx")
            and row.endswith("x  7")
            and "".join([row, *below]).count("x") == 5001
        )
    unmapped = ImportError("numpy failed: libblas.so: failed to map segment from shared object")
    assert lacks_memory(unmapped) and not lacks_memory(ImportError("no module named numpy"))
