"""Generated command lines, run in one process, and what they may not do.

A command ends with 0, with 1 if a gate fails, or with 2 after a message. Gates are built so that one either always
passes or always fails, which says which of 0 and 1 it is. It fails if it ends otherwise, reports an error of its own,
gives a warning past `fastbcubed`, prints what is not JSON under `--json`, or does not end.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import shutil
import sys
import tempfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from generated_calls import Failure, by_kind, tried
from public_api import NEW, TRUTH, write_files
from public_api import run as succeed

from fastbcubed.cli import main as cli
from fastbcubed.cli.commands import COMMANDS, CommandParser

#: Commands that take long, or whose work is not that of their arguments.
LEFT_OUT = ("warm-up", "demo")
#: What the positional arguments of each command are usually given.
POSITIONAL = {
    "evaluate": ["truth.parquet", "new.parquet"],
    "show": ["baseline"],
    "explain": ["baseline"],
    "report": ["baseline"],
    "compare": ["truth.parquet", "old.parquet", "new.parquet"],
    "sample-pairs": ["old.parquet", "new.parquet"],
    "estimate-pairs": ["pairs.csv"],
    "diff": ["old.parquet", "new.parquet"],
    "cluster": ["links.parquet"],
    "estimate": ["truth.parquet", "new.parquet"],
    "sweep": ["truth.parquet", "links.parquet"],
    "metrics": [],
    "constraints": [],
}
#: Flags that are always given, as their defaults take long.
ALWAYS = {
    "constraints": ["--metric", "f1", "--random", "0"],
    "cluster": ["--threshold", "0.6"], "sample-pairs": ["-n", "20"],
}  # fmt: skip
#: Saved results that are no evaluations, by the commands that save them.
SAVED = {
    "saved sweep": "sweep truth links --slice country",
    "saved stages": "sweep truth links --best precision --stages",
    "saved diff": "diff old new --truth truth",
    "saved comparison": "compare truth old new --slice country",
    "saved estimates": "estimate truth new",
}
#: Files of the directory, good and odd.
FILES = [
    "truth.parquet", "new.parquet", "links.parquet", "pairs.csv", "baseline", "empty.csv", "empty.parquet",
    "text.parquet", "planted.parquet",
    "odd.csv", "half.parquet", "twice.csv", "objects.jsonl", "deep.jsonl", "no rows.parquet", "nulls.parquet", "folder",
    "nowhere.parquet", "binary", "latin.csv", "names.csv", "kinds.parquet", "damaged", *SAVED,
]  # fmt: skip
#: Values of flags, good and odd.
VALUES = [
    "f1", "precision,recall", "pairs", "rand", "nope", "country", "country,source", "weight", "weight:1", "item",
    "cluster",
    "true_size", "a", "1", "0", "-1", "3", "0.5", "0.9,0.7", "1e999", "nan", "inf", "-inf", str(10**400), "1_000",
    "0x10",
    "", " ", ",", "+", "=", "a=b", "=b", "\\", "a\\,b", "a:b:c", "country=x", "\0", "a\udc80", "\u202e\x1b[31m",
    "é" * 500,
    "drop", "singleton", "truth=drop", "prediction=drop,truth=singleton", "1GiB", "1e9GiB", "12 parsecs", "2", "1or 2",
    "5*pair_fp + pair_fn", "((((", "f1()", "precision>=0.9", "f1>=", "~x/y",
    "f1=0.5", "f1.low=0.5", "f1.high=0.2", "f1.low=0.5@country=x", "f1.middle=0", "f1=significant",
    "f1.low=significant", "=significant", "items.low=3",
    "s3://", "file:///nowhere/x.parquet", "http://[", "*.parquet", "**", "[", "--json", "-h",
]  # fmt: skip
#: What is written, below the directory alone, and where nothing can be.
WRITES = [
    "out",
    "out.json",
    "out.csv",
    "out.parquet",
    "page.html",
    "",
    "a\0",
    "a\udc80",
    "in/it",
    "binary/x",
    "é" * 500,
]
#: Flags that name what is written.
WRITING = ("--out", "--report", "--summary", "--spill-dir", "--prediction-out", "--ids", "--item-ids")
#: Gates that always pass, and some that always fail: scores are between, and the files are of ten items.
PASS = ["--fail-under=f1=0", "--fail-over=largest_pred=1000", "--fail-under=items=1", "--fail-under=f1.low=0"]
FAIL = ["--fail-under=f1=1", "--fail-over=largest_pred=1", "--fail-under=items=1000", "--fail-under=f1.low=1"]


def write_odd_files() -> None:
    """Write the files of `FILES` into the current directory."""
    with contextlib.redirect_stderr(io.StringIO()):
        write_files()
    for name, command in SAVED.items():
        with contextlib.redirect_stderr(io.StringIO()):
            succeed(f"{command} --out {name.replace(' ', '_')}")
        Path(name.replace(" ", "_")).rename(name)
    shutil.copytree("saved sweep", "damaged")
    for table in Path("damaged").glob("*.parquet"):
        table.write_bytes(table.read_bytes()[:-9])
    Path("empty.csv").touch()
    Path("empty.parquet").touch()
    Path("folder").mkdir()
    Path("binary").write_bytes(bytes(range(256)) * 20)
    Path("text.parquet").write_text("item,cluster\na,1\n")
    Path("half.parquet").write_bytes(Path("truth.parquet").read_bytes()[:200])
    Path("odd.csv").write_text('item;cluster\na;1\n"b;2\n')
    Path("twice.csv").write_text("item,cluster,cluster\na,1,2\nb,2,2\n")
    Path("names.csv").write_text("\x1b[31mitem,\u202ecluster,\n1,2,3\n")
    Path("latin.csv").write_bytes("item,cluster\né,1\nb,ü\n".encode("latin-1"))
    Path("objects.jsonl").write_text('{"item": {"a": 1}, "cluster": [1]}\n{"item": null, "cluster": {}}\n')
    Path("deep.jsonl").write_text("[" * 60 + "]" * 60 + "\n")
    pq.write_table(pa.table(TRUTH).slice(0, 0), "no rows.parquet")
    pq.write_table(pa.table({name: pa.nulls(10) for name in NEW}), "nulls.parquet")
    kinds: dict[str, Any] = NEW | {
        "item": pa.array([{"a": k} for k in range(10)]),
        "cluster": np.arange(10) / 3,
    }
    pq.write_table(pa.table(kinds), "kinds.parquet")


def flags_of(module: str) -> list[tuple[str, bool, list[str]]]:
    """Return the flags of a command, whether each takes a value, and its choices."""
    parser = CommandParser(add_help=False)
    import_module(f"fastbcubed.cli.{module}").add_flags(parser)
    return [
        (each.option_strings[0], each.nargs != 0, list(map(str, each.choices or ())))
        for each in parser._actions
        if each.option_strings and "progress" not in each.dest
    ]


class Commands:
    """Command lines in an order that a seed decides."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.flags = {each.name: flags_of(each.module) for each in COMMANDS if each.name not in LEFT_OUT}

    def odd_file(self) -> str:
        likely = FILES if self.random.random() < 0.8 else VALUES
        return self.random.choice(likely)

    def command(self) -> list[str]:
        """Return the words of a command line."""
        pick, lot = self.random, self.random.random
        name = pick.choice(list(self.flags))
        files = [self.odd_file() if lot() < 0.25 else file for file in POSITIONAL[name]]
        if name in ("show", "explain", "report") and lot() < 0.5:
            files = [pick.choice([*SAVED, "damaged"])]
        if name == "explain" and lot() < 0.4:  # something to be found
            files = ["planted.parquet", "found.parquet"]
        if name in ("compare", "estimate") and lot() < 0.3:  # more runs, some with names
            files += pick.choice(
                [["third=new.parquet"], ["new.parquet", "old.parquet"], ["x=baseline", "new.parquet"]]
            )
        words = [name, *(files if lot() < 0.95 else files[1:])]
        if name in ("evaluate", "compare") and lot() < 0.5:
            words.append(pick.choice(PASS + FAIL))
        for flag, takes, choices in pick.sample(
            self.flags[name], k=min(len(self.flags[name]), pick.choice([0, 1, 1, 2, 3]))
        ):
            if not flag.startswith("--fail") or lot() < 0.2:
                likely = choices if choices and lot() < 0.7 else FILES if lot() < 0.3 else VALUES
                value = pick.choice(WRITES if flag in WRITING else likely)
                words += [f"{flag}={value}"] if takes else [flag]
        return words + ALWAYS.get(name, [])


def failures(seed: int, n: int) -> Iterator[Failure]:
    """Run generated commands in the current directory, and yield those that fail."""
    write_odd_files()
    made = Commands(seed)
    before = set(os.listdir())
    for _ in range(n):
        words = made.command()
        failure = tried(lambda words=words: run(words))
        if failure is not None:
            yield Failure(f"main({words!r})", *failure)
        for path in set(os.listdir()) - before:
            shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)


def run(words: list[str]) -> None:
    """Run a command; raise AssertionError if it ends as it may not."""
    out, err = (
        io.TextIOWrapper(io.BytesIO(), "utf-8"),
        io.TextIOWrapper(io.BytesIO(), "utf-8", "backslashreplace"),
    )
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = cli.main(words)
        err.flush()
    said = err.buffer.getvalue().decode()
    assert "Traceback" not in said and "please report" not in said, said
    assert code in (0, 1, 2), f"exit code {code}: {said}"
    assert code != 2 or said.strip(), "exit code 2 without a message"
    gates = [word for word in words if word.startswith(("--fail", "--baseline"))]
    if "--json" in words and code != 2 and not {"-h", "--help"} & {*words}:
        answer = out.buffer.getvalue().decode()
        json.loads(answer, parse_constant=no_json)
    if not gates:
        assert code != 1, f"exit code 1 without a gate: {said}"
    elif code != 2 and set(gates) <= {*PASS, *FAIL}:
        assert code == int(not set(gates) <= set(PASS)), f"exit code {code}: {said}"
    out.detach()
    err.detach()


def no_json(word: str) -> None:
    raise AssertionError(f"{word} in JSON")


if __name__ == "__main__":  # python tests/oracles/generated_commands.py SEED N
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        print(by_kind(failures(int(sys.argv[1]), int(sys.argv[2]))))
