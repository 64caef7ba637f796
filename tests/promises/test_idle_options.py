"""Options that have no effect beside others are refused by name, in Python and on the command line."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from public_api import LINKS, NEW, OLD, TRUTH, write_files

import fastbcubed as fb
from fastbcubed.align.policies import Policies
from fastbcubed.choose_engine import choose
from fastbcubed.cli.idle_flags import IDLE
from fastbcubed.cli.main import main
from fastbcubed.engines import disk, memory
from fastbcubed.engines.request import Request
from fastbcubed.errors import OptionError
from fastbcubed.inputs.pair import Given

ITEMS, LABELS = TRUTH["item"], TRUTH["cluster"]
TABLES: dict[str, Any] = {
    name: pa.table(each) for name, each in {"t": TRUTH, "old": OLD, "new": NEW, "links": LINKS}.items()
}
T, A, B, L = TABLES.values()
MADE = fb.Clustering.from_dict(dict(zip(ITEMS, LABELS, strict=True)))
AS_DICT = dict(zip(ITEMS, LABELS, strict=True))
#: Two-sided calls that share a check, by name.
BOTH: dict[str, Any] = {
    "evaluate": lambda **how: fb.evaluate(T, A, **how),
    "contingency": lambda **how: fb.contingency(T, A, **how),
    "compare": lambda **how: fb.compare(T, {"a": A, "b": B}, **how),
    "diff": lambda **how: fb.diff(A, B, **how),
}
LIMITED = {name: call for name, call in BOTH.items() if name != "contingency"}
#: The name of an option, a call with it, and what it has no effect without.
IN_PYTHON: dict[str, tuple[Any, str]] = {
    **{
        f"max_pairs of {name}": (lambda call=call: call(max_pairs=5), "max_pairs .*overlapping=True")
        for name, call in BOTH.items()
    },
    "repairs of evaluate": (lambda: fb.evaluate(T, A, repairs=3), "repairs .*out="),
    "seed of compare": (lambda: fb.compare(T, {"a": A, "b": B}, seed=3), "seed .*bootstrap="),
    "bootstrap of one run": (lambda: fb.compare(T, {"a": A}, bootstrap=50), "bootstrap .*a second run"),
    "ascending links": (
        lambda: fb.Clustering.from_links(L, ascending=True),
        "ascending .*threshold=",
    ),
    "item of links": (lambda: fb.Clustering.from_links(L, threshold=0.5, item="id"), "item .*items="),
}


@pytest.mark.parametrize("name", IN_PYTHON)
def test_refused_in_python(name: str) -> None:
    call, message = IN_PYTHON[name]
    with pytest.raises(OptionError, match=message.replace(" .*", " has no effect without .*")):
        call()


#: Calls with a column of a side that is not a table, and the name of the side.
OF_SIDES: dict[str, tuple[Any, str]] = {
    "truth, a clustering": (lambda own: fb.evaluate(MADE, A, cluster=(own, None)), "the truth"),
    "truth, a dict": (lambda own: fb.evaluate(AS_DICT, A, cluster=(own, "cluster")), "the truth"),
    "prediction, a dict": (lambda own: fb.evaluate(T, AS_DICT, cluster=(None, own)), "the prediction"),
    "truth on disk": (lambda own: fb.evaluate(MADE, A, item=(own, None), engine="disk"), "the truth"),
    "one run": (lambda own: fb.compare(T, {"a": A, "b": MADE}, cluster={"b": own}), "the prediction"),
    "baseline": (lambda own: fb.diff(MADE, A, cluster=(own, None)), "the baseline"),
    "truth of a diff": (lambda own: fb.diff(A, B, truth=AS_DICT, cluster=(None, None, own)), "the truth"),
    "sample": (lambda own: fb.estimate(MADE, A, cluster=(own, None)), "the sample"),
    "estimated on disk": (
        lambda own: fb.estimate(T, MADE, cluster=(None, own), engine="disk"),
        "the prediction",
    ),
    "links of a sweep": (lambda own: fb.sweep(T, L, cluster=("cluster", own)), "the prediction"),
}


@pytest.mark.parametrize("name", OF_SIDES)
def test_columns_of_a_side_without_columns(name: str) -> None:
    call, side = OF_SIDES[name]
    message = f"names a column of {side}, 'strange', but {side} is not a table"
    with pytest.raises(OptionError, match=message):
        call("strange")


def test_columns_that_are_used() -> None:
    """A name for both sides is that of the one with columns, and a truth's items may be those of weights."""
    renamed = A.rename_columns([{"cluster": "c"}.get(name, name) for name in A.column_names])
    assert fb.evaluate(AS_DICT, renamed, cluster="c").f1 == fb.evaluate(AS_DICT, A).f1
    weights = pa.table({"id": ITEMS, "weight": [2.0] * len(ITEMS)})
    assert fb.evaluate(AS_DICT, A, item=("id", None), weight=weights).f1 == fb.evaluate(AS_DICT, A).f1


@pytest.mark.parametrize(("limit", "run"), [("64MiB", disk.run), ("1GiB", memory.run), (None, memory.run)])
def test_a_limit_of_what_is_in_memory(limit: str | None, run: Any) -> None:
    """A memory limit chooses the disk engine for arrays and dicts as for files: 64 bytes a row."""
    labels = np.broadcast_to(1, 600_000)  # both sides are 73 MiB
    policies = Policies.of(None, "raise", "raise", None, truth_only="drop")
    assert choose(None, Request(Given(labels, labels), policies, memory_limit=limit)) is run


@pytest.mark.parametrize("overlapping", [False, True])
def test_what_is_in_memory_has_no_limit_of_its_own(
    overlapping: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Labels that are in memory are scored there, however little memory is left; files are not."""
    for module in ("choose_engine", "runtime.memory_budget"):
        monkeypatch.setattr(f"fastbcubed.{module}.available_memory", lambda: 1 << 20)
    labels = np.broadcast_to(1, 600_000)
    policies = Policies.of(None, "raise", "raise", None, truth_only="drop")
    assert choose(None, Request(Given(labels, labels, overlapping=overlapping), policies)) is memory.run


def test_a_limit_of_the_memory_engine_is_kept() -> None:
    """Who names that engine gets it if there is room, and an error that says how much it takes if there is not."""
    labels = np.broadcast_to(1, 600_000)  # both sides are 73 MiB
    rows = pa.table({"item": np.arange(1_200_000), "cluster": np.zeros(1_200_000, np.int64)})
    for call in (
        lambda **how: fb.evaluate(labels, labels, engine="memory", **how),
        lambda **how: fb.compare(labels, {"a": labels, "b": labels}, engine="memory", **how),
        lambda **how: fb.diff(labels, labels, truth=labels, **how),
        lambda **how: fb.estimate(AS_DICT, rows, engine="memory", **how),
    ):
        with pytest.raises(OptionError, match=r"scoring in memory would take about .* Raise it to at least"):
            call(memory_limit="64MiB")
    for name, call in LIMITED.items():
        assert call(engine="memory", memory_limit="1GiB", spill_dir="."), name
    assert fb.diff(A, B, truth=T, memory_limit="1GiB")


#: Command lines with a flag that has no effect.
COMMANDS = {
    "evaluate truth new --json --worst 3": "--worst",
    "compare truth old new --json --worst 3": "--worst",
    "compare truth old new --seed 3": "--seed",
    "diff old new --json --worst 3": "--worst",
    "evaluate truth new --max-pairs 5": "--max-pairs",
    "evaluate truth links --links --ascending": "--ascending",
    "sweep truth links --rows 5": "--rows",
    "sweep truth links --seed 5": "--seed",
    "constraints --metric f1 --random 0 --seed 3": "--seed",
    "constraints --metric f1 --random 0 --json --examples": "--examples",
    "cluster links --ascending": "--ascending",
    "cluster links --item id": "--item",
    "show baseline --members 5": "--members",
    "show baseline --columns country": "--columns",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("files")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(made)
        write_files()
    return made


@pytest.mark.parametrize("command", COMMANDS)
def test_refused_on_the_command_line(
    command: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    files = [
        f"{word}.parquet" if word in ("truth", "old", "new", "links") else word for word in command.split()
    ]
    assert main(files) == 2
    assert re.search(rf"{COMMANDS[command]} has no effect with", capsys.readouterr().err)


def test_every_rule_is_tried() -> None:
    for each in IDLE:
        for command in each.commands:
            assert any(
                line.startswith(f"{command} ") and flag == f"--{each.flag}" for line, flag in COMMANDS.items()
            )
