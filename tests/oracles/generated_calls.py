"""Generated calls of all that is public, with good and odd arguments, and what they may not do.

A call may return, or raise an error of the package. It fails if it raises anything else, gives a warning that is not
the package's own, or does not end. Calls that Python itself refuses, for a missing argument or an unknown keyword, are
not made.
"""

from __future__ import annotations

import contextlib
import copy
import inspect
import io
import os
import pickle
import random
import signal
import sys
import tempfile
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from odd_tables import ODD_TABLES
from odd_values import ODD
from public_api import LINKS, MODULES, NEW, OLD, TRUTH, results

import fastbcubed as fb

ORACLES = Path(__file__).parent
#: Seconds of processor time, and of waiting, after which a call hangs; on small input, any takes a fraction of one.
HANGS, WAITS = 60, 600
LABELS = [1, 1, 1, 2, 2, 3, 3, 4, 5, 5]
OTHERS = [1, 1, 2, 2, 2, 3, 4, 4, 5, 5]
SIDES = [LABELS, OTHERS, np.array(LABELS), pa.array(OTHERS), dict(zip("abcdefghij", LABELS, strict=True))]
#: Where the results and files are that calls are made of.
_SAVED = tempfile.TemporaryDirectory()
FILES = [f"{_SAVED.name}/truth.parquet", Path(f"{_SAVED.name}/truth.csv")]
TABLES = [
    pa.table(TRUTH), pa.table(OLD), pa.table(NEW), SIDES[-1], pd.DataFrame(OLD), pl.DataFrame(NEW), *FILES,
]  # fmt: skip
RUNS = {"old": pa.table(OLD), "new": pa.table(NEW)}

#: Tables of which a column is replaced by an odd one, and the arguments that may be such tables.
COLUMNS = {"TRUTH": TRUTH, "OLD": OLD, "NEW": NEW, "LINKS": LINKS}
TAKE_TABLES = (
    "truth",
    "prediction",
    "baseline",
    "experiment",
    "sample",
    "edges",
    "table",
    "runs",
    "labels_pred",
)
#: Results that arguments are given, such as those of charts: names of `objects`.
RESULTS = {
    "ev": ("ev", "ev of items", "ev of labels", "ev on disk", "loaded ev", "cmp", "diff"),
    "diff": ("diff", "diff of two", "loaded diff", "ev"),
    "cmp": ("cmp", "cmp of labels", "loaded cmp", "sweep"),
    "sweep": ("sweep", "sweep of labels", "loaded sweep", "est"),
    "result": ("est", "est of runs", "pairs", "loaded est", "loaded est of runs", "ev"),
}
#: Conditions of gates: of scores, intervals, slices, and of what is none.
GATES = [
    "f1>=0", "f1>=1", "f1.low>=0.1", "f1.high<=0.2", "f1.middle>0", "precision.low >= 0.5 @ country=x", "items>=1",
    "f1>=0.5@country=nope", "largest_pred<=1e999", "f1>=nan", "f1", ">=1", "", "f1=>1", "f1 >= significant", "nope>=1",
    "f1>=0.1 and f1<=1", "pair_f1.low>=0.1", "\0>=1", "a\udc80>=1", "1>=f1", "f1>=1e-400", "f1>=" + "9" * 400,
]  # fmt: skip
#: Functions that take long for all scores, and are given one.
OF_ONE = ("fastbcubed.constraints.table",)
#: What is drawn: functions of one score, all other functions, methods of results and their parts.
SHARES = {"score": 1, "function": 4, "method": 5}
#: Arguments that are always given, as their defaults take long.
LONG = ("metrics", "n_random", "draws")


def spread(names: tuple[str, ...], values: list[Any]) -> dict[str, list[Any]]:
    return {name: values for name in names}


#: Good values of arguments, by their names.
GOOD: dict[str, list[Any]] = {
    **spread(("labels_true", "labels_pred", "labels_baseline", "labels_experiment", "labels"), SIDES[:4]),
    **spread(("truth", "prediction", "baseline", "experiment", "sample"), TABLES),
    **spread(("sample_weight", "weight"), [None, [1.0, 2.0] * 5, np.ones(10)]),
    **spread(("limit", "members", "worst", "merges", "min_items", "n"), [0, 1, 3, None]),
    **spread(("draws", "bootstrap", "n_random"), [9, 0, 1]),
    **spread(("level", "beta", "threshold", "zero_division", "tolerance"), [0.5, 0.9, 0.95]),
    **spread(("columns", "slices", "by", "attributes", "key"), ["country", ["country"], (), "true_size"]),
    **spread(
        ("metrics", "score", "scores", "which", "order_by"),
        ["f1", "precision", ["f1", "rand"], "pairs", None],
    ),
    **spread(("path", "directory", "out"), ["here.html", "folder", "here.json", None]),
    **spread(("n_elsewhere", "first", "second", "large", "small", "k", "of"), [2, 3, 4]),
    "n_elsewhere": [0, 3],
    "side": ["true", "pred", "baseline", "experiment"],
    "runs": [
        {"old": pa.table(OLD)},
        TABLES[:2],
        {"old": pa.table(OLD), "new": pa.table(NEW), "": TABLES[-1]},
    ],
    "edges": [pa.table(LINKS)],
    "table": [pa.table(LINKS), pa.table(TRUTH), None],
    "left": ["left", None, list("ab")],
    "right": ["right", None, list("bc")],
    "item": ["item", "a", ("item", "item")],
    "cluster": ["cluster", "cluster"],
    "items": [None, list("abcdefghij")],
    "thresholds": [None, [0.5, 0.7], 0.6],
    "ascending": [False, True],
    "name": ["people", "small", "country"],
    "seed": [0, 7],
    "keep": ["items", "cells", "scores", None],
    "engine": [None, "memory", "disk"],
    "weighting": ["pointwise", "outer"],
    "unmatched": [None, "drop", "singleton", {"truth": "drop"}],
    "nulls": ["raise", "drop", "singleton"],
    "duplicates": ["raise", "drop"],
    "noise": [None, -1],
    "overlapping": [False, True],
    "max_pairs": [1e10, 5],
    "threads": [None, 1, 2],
    "memory_limit": [None, "512 MiB", 1 << 29],
    "spill_dir": [None, "spilled"],
    "progress": [None, False],
    "paths": [False, True],
    "repairs": [0, 3],
    "unit": ["component", "item", "cluster"],
    "align": ["common", "each"],
    "run": [None, "old", "new"],
    "context": ["bare", "with clusters"],
    "adjust": ["bonferroni", None, "holm"],
    "errors": [False, True],
    "deltas": [False, True],
    "mapping": [dict(zip("abcdefghij", LABELS, strict=True)), {"a": [1, 2]}],
    "clusters": [[["a", "b"], ["c"]], {1: ["a"]}],
    "series": [LABELS],
    "values": [["a", "b"]],
    "groups": [[["a", "b"], ["c"]]],
    "where": [None, {"precision": 0.1}, "precision>=0.1"],
    "indent": [2, None],
    "overwrite": [True],
    "title": [None, "A title"],
    "average_method": ["arithmetic", "max"],
    "base": [2, None],
    "kinds": [("split", "gather"), "split"],
    "outcome": [None, "exact"],
    "sampling": ["uniform", "size"],
    "missing": ["singleton", "drop"],
    "match": ["global", "local"],
    "similarity": ["jaccard"],
    "child": [["a", "b"]],
    "parent": [["b", "c"]],
    "start": [0, 1],
    "stop": [3, None],
    "population_clusters": [None, 100],
    "unlabelled": ["drop", "outside"],
    "chosen": [None],
    "best": [None, "f1"],
    "stages": [False, True],
    "split_cost": [lambda a, b: a * b],
    "merge_cost": [lambda a, b: a * b],
    "formula": [lambda tp, fp, fn, tn: tp / (tp + fp)],
    "loss": ["f1", "precision", "recall", "elm_f1"],
    "depth": [1, 2],
    "known_ids": [None, [6, 7], ["x"]],
    "previous": [None, pa.table({name: [] for name in ("id", "first_seen", "last_seen", "replaced_by")})],
    "release": [None, "May"],
    "revive": [False, True],
    "mint": [None, "new-", "smallest", lambda items: min(items)],
    "verdict": [None, False],
    "sources": [None, False],
    "draw": ["draws"],
    "stratum": [None, "country"],
    # of one function or method
    "evaluate.attributes": [None, pa.table(TRUTH), FILES[0], {"kind": list("xxxyyyxxyy")}],
    "evaluate.unit": ["component", "item"],
    "compare.baseline": [None, "old", "new"],
    "compare.attributes": [None, pa.table(TRUTH)],
    "diff.truth": [None, pa.table(TRUTH), SIDES[-1]],
    "estimate.prediction": [*TABLES, RUNS, TABLES[:2]],
    "estimate.baseline": [None, "old", "new"],
    "sweep.items": [None, pa.table(TRUTH), list("abcdefghijk")],
    "load.directory": [f"{_SAVED.name}/saved {name}" for name in ("ev", "cmp", "diff", "est", "sweep")],
    "from_parquet.path": FILES,
    "example.name": ["patentsview", "wordnet_verbs"],
    "cluster.which": [1, 2, "1", 5.0, -1],
    "item.which": ["a", "j", "z"],
    "items.true_cluster": [None, 1, 9],
    "items.pred_cluster": [None, 1, 9],
    "subset.which": [[True] * 5 + [False] * 5, np.arange(10) % 2 == 0, pa.array([True, None] * 5)],
    "report.explain": [None, "country", ["country", "true_size"], False],
    "report.path": ["here.html", "folder", None],
    "ids.by": ["cluster", "item"],
    "changes.by": [None, "country"],
    "check.worse": [{"f1": 0.1}, {"f1": "significant"}, {"nope": 0}, {"f1": np.zeros(2)}, {1: 2}, None],
    "at.threshold": [0.5, 0.7, 0.65, 2, -1],
}
#: Keywords of functions that take any: scores of gates, and options that are handed on.
ANY: dict[str, tuple[str, ...]] = {
    "check": ("f1", "precision", "pair_f1", "nope", "items"),
    "evaluate": ("metrics", "slices", "keep", "engine", "unmatched", "beta"),
    "extended_bcubed": ("unmatched", "nulls", "engine", "duplicates"),
    "cice_bcubed": ("unmatched", "nulls", "duplicates"),
}
#: What objects do without a method of their own.
OPERATORS: dict[str, Callable[[Any], Any]] = {
    "copied": copy.copy,
    "deeply copied": copy.deepcopy,
    "pickled": lambda each: pickle.loads(pickle.dumps(each)),
    "equal": lambda each: each == each,
    "str": str,
}


class Hang(BaseException):
    """A call did not end in time."""


class Subject(NamedTuple):
    """What is called, and its name in reproducers."""

    name: str
    function: Callable[..., Any]

    @property
    def is_value(self) -> bool:
        """Whether this is a property of a result."""
        return isinstance(self.function, partial) and self.function.func is _get

    @property
    def share(self) -> str:
        """The key of `SHARES` that it is drawn by."""
        if not self.name.startswith("fastbcubed."):
            return "method"
        return "score" if self.name.startswith("fastbcubed.metrics.") else "function"


class Failure(NamedTuple):
    """What a call did that it may not, and how to call it again."""

    call: str
    what: str
    where: str

    @property
    def kind(self) -> str:
        """The kind of failure: the same for calls that fail alike."""
        return f"{self.what.partition(':')[0]} {self.where}"

    def __str__(self) -> str:
        return f"{self.call}\n    {self.what[:300]}\n    {self.where}"


@cache
def subjects() -> list[Subject]:
    """Return all that may be called: functions, classes that users make, and methods of the results and their parts."""
    made = objects()
    found: dict[str, Any] = {"Table": fb.Table}
    for place, module in MODULES.items():
        names = () if module is fb.errors else module.__all__
        found |= {
            f"{place}.{n}": getattr(module, n) for n in names if not inspect.isclass(getattr(module, n))
        }
    others = [method for name, thing in made.items() for method in methods(name, thing)]
    return [Subject(name, function) for name, function in found.items() if callable(function)] + others


def methods(name: str, thing: Any) -> list[Subject]:
    """Return the public methods of a result, or of a part of one, its properties, and what any object does."""
    names = [each for each in dir(thing) if not each.startswith("_")]  # what is promised alone
    fixed = {each: inspect.getattr_static(type(thing), each, None) for each in names}
    found = [Subject(f"{name}.{each}", getattr(thing, each)) for each in names if ours(fixed[each])]
    if type(thing).__module__.startswith("fastbcubed"):
        values = [
            each
            for each in names
            if hasattr(fixed[each], "__get__") and not callable(fixed[each]) and not ours(fixed[each])
        ]
        found += [Subject(f"{name}.{each}", partial(_get, thing, each)) for each in values]
        found += [Subject(f"{name} {each}", partial(_of, how, thing)) for each, how in OPERATORS.items()]
    return found


def _get(thing: Any, name: str, /) -> Any:
    return getattr(thing, name)


def _of(how: Callable[[Any], Any], thing: Any, /) -> Any:
    return how(thing)


def ours(function: Any) -> bool:
    """Whether this is a function or method of the package."""
    inner = getattr(function, "__func__", function)
    return (
        inspect.isfunction(inner)
        and inner.__module__.startswith("fastbcubed")
        and not inner.__code__.co_filename.endswith("old_names.py")
    )


@cache
def objects() -> dict[str, Any]:
    """Return a result of each kind, and what results hand out, by names."""
    with warnings.catch_warnings(), contextlib.chdir(_SAVED.name):
        warnings.simplefilter("ignore", fb.EvaluationWarning)
        return _objects()


def _objects() -> dict[str, Any]:
    found = {**results(), "bins": fb.bins("weight", 10)}
    links, truth, new = pa.table(LINKS), pa.table(TRUTH), pa.table(NEW)
    pq.write_table(truth, FILES[0])
    pyarrow.csv.write_csv(truth, FILES[1])
    found["ev of items"] = fb.evaluate(truth, new, slices="country", keep="items", attributes=truth)
    found["ev of labels"] = fb.evaluate(LABELS, OTHERS)
    found["ev on disk"] = fb.evaluate(truth, new, engine="disk", out=f"{_SAVED.name}/of items", keep="items")
    found["diff of two"] = fb.diff(pa.table(OLD), new)
    found["cmp of labels"] = fb.compare(LABELS, {"a": OTHERS, "b": LABELS})
    found["sweep of labels"] = fb.sweep(SIDES[-1], links)
    found["est of runs"] = fb.estimate(truth, {"old": pa.table(OLD), "new": new})
    many = pa.table(
        {"item": range(120), "cluster": [k // 3 for k in range(120)], "country": list("xyz") * 40}
    )
    alone = {"old": 7, "new": 9}
    runs = {name: {k: k // 3 if k % each else -k for k in range(120)} for name, each in alone.items()}
    found["explanation"] = fb.evaluate(many, runs["new"], keep="items").explain("country", min_items=5)
    found["explanation of runs"] = fb.compare(many, runs).explain("new", "country", min_items=5)
    found["sides"] = fb.Clustering.from_labels(LABELS, items=list("abcdefghij"), weight=[1.0] * 10)
    found["constraints"] = fb.constraints.check_constraints("f1", n_random=2)
    of_sweep = {"stages": True}
    for name, (kept, how) in {
        "ev": ("ev of items", {}),
        "cmp": ("cmp", {}),
        "diff": ("diff", {}),
        "est": ("est", {}),
        "est of runs": ("est of runs", {}),
        "sweep": ("sweep", of_sweep),
    }.items():
        found[kept].save(f"{_SAVED.name}/saved {name}", **how)
        found[f"loaded {name}"] = fb.load(f"{_SAVED.name}/saved {name}")
    found["report"] = found["ev of items"].report()
    found["listing"] = found["ev of items"].clusters("true")
    found["cluster"] = found["ev of items"].cluster("true", 1)
    found["item"] = found["ev of items"].item("a")
    found["best"] = found["sweep"].best("f1")
    found["stages"] = found["sweep"].stages(0.7)
    return found


class Generator:
    """Calls in an order that a seed decides."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.subjects = subjects()
        self.shares = {share: [each for each in self.subjects if each.share == share] for share in SHARES}

    def argument(self, name: str, function: str = "") -> tuple[str, Any]:
        """Return a value and its name: good, odd, a table with an odd column, or odd values in a list."""
        lot = self.random.random()
        own = f"{function}.{name}"
        if name == "gates":
            text = self.random.choice(GATES)
            return repr(text), text
        if name in TAKE_TABLES and lot > 0.92:
            key = self.random.choice(list(ODD_TABLES))
            return f"ODD_TABLES[{key!r}]()", ODD_TABLES[key]()
        if name in TAKE_TABLES and lot > 0.75:
            table = self.random.choice(list(COLUMNS))
            column = self.random.choice(list(COLUMNS[table]))
            key = self.random.choice(ten_rows())
            return f"with_column({table!r}, {column!r}, {key!r})", with_column(table, column, key)
        if lot < 0.6 and name in RESULTS:
            key = self.random.choice(RESULTS[name])
            return f"objects()[{key!r}]", objects()[key]
        if lot < 0.6 and (key := own if own in GOOD else name) in GOOD:
            k = self.random.randrange(len(GOOD[key]))
            return f"GOOD[{key!r}][{k}]", GOOD[key][k]
        key = self.random.choice(list(ODD))
        if lot > 0.97:
            return f"[ODD[{key!r}]()] * 10", [ODD[key]()] * 10
        return f"ODD[{key!r}]()", ODD[key]()

    def subject(self) -> Subject:
        """Return what is called next."""
        (share,) = self.random.choices(list(SHARES), SHARES.values())
        return self.random.choice(self.shares[share])

    def arguments(self, subject: Subject) -> tuple[list[tuple[str, Any]], dict[str, tuple[str, Any]]]:
        """Return arguments by position and by name."""
        by_position, by_name = [], {}
        argument = partial(self.argument, function=subject.name.rpartition(".")[2])
        for each in inspect.signature(subject.function).parameters.values():
            wanted = each.default is each.empty or each.name in LONG or self.random.random() < 0.3
            if each.kind is each.VAR_POSITIONAL:
                by_position += [argument(each.name) for _ in range(self.random.randrange(3))]
            elif each.kind is each.VAR_KEYWORD:
                names = ANY.get(argument.keywords["function"], ())
                chosen = self.random.sample(names, k=min(len(names), self.random.choice([0, 0, 1, 2])))
                by_name |= {name: argument(name) for name in chosen}
            elif each.kind is each.KEYWORD_ONLY:
                by_name |= {each.name: argument(each.name)} if wanted else {}
            elif each.kind is each.POSITIONAL_ONLY or (wanted and each.default is each.empty):
                by_position.append(argument(each.name))
            elif wanted:
                by_name[each.name] = argument(each.name)
        if subject.name in OF_ONE:
            by_name["metrics"] = "['f1']", ["f1"]
        return by_position, by_name


@cache
def ten_rows() -> list[str]:
    """Return the names of the odd values that may be a column of ten rows."""

    def rows(value: Any) -> int:
        try:
            return len(value)
        except TypeError:
            return 0

    return [
        key
        for key, make in ODD.items()
        if rows(value := make()) == 10
        and not hasattr(value, "columns")
        and not isinstance(value, str | bytes)
        and getattr(value, "ndim", 1) == 1
    ]


def with_column(table: str, column: str, key: str) -> Any:
    """Return a table of `COLUMNS` with an odd column: of Arrow, or of what holds it."""
    columns = COLUMNS[table]
    n = len(columns[column])
    values = ODD[key]()[:n]
    try:
        return pa.table(
            columns | {column: pa.array(values) if not isinstance(values, pa.ChunkedArray) else values}
        )
    except (pa.ArrowException, TypeError, OverflowError, ValueError):
        return pd.DataFrame({name: list(each) for name, each in (columns | {column: values}).items()})


def failures(seed: int, n: int) -> Iterator[Failure]:
    """Make generated calls in the current directory, and yield those that fail."""
    made = Generator(seed)
    asked: list[tuple[Subject, str]] = []
    Path("spilled").mkdir(exist_ok=True)
    for _ in range(n):
        # a result of an odd call is asked further, before it is forgotten
        subject, before = asked.pop() if asked else (made.subject(), "")
        by_position, by_name = made.arguments(subject)
        texts = [text for text, _ in by_position]
        texts += [f"{name}={text}" for name, (text, _) in by_name.items()]
        call = f"{before}{subject.name}({', '.join(texts)})"
        returned: list[Any] = []
        values, named = [value for _, value in by_position], {name: each[1] for name, each in by_name.items()}
        failure = tried(partial(subject.function, *values, **named), returned.append)
        if failure is not None:
            yield Failure(call, *failure)
        elif hidden := [path for path in (*os.listdir(), *os.listdir("spilled")) if path.startswith(".")]:
            yield Failure(call, f"leftover: {hidden}", subject.name)
            for path in hidden:
                (Path("spilled", path) if os.path.lexists(f"spilled/{path}") else Path(path)).unlink()
        elif subject.is_value:
            pass  # values have methods that are not promised
        elif returned and len(before) < 1000 and (further := methods("it", returned[0])):
            asked += [
                (made.random.choice(further), f"it = {call}; ") for _ in range(made.random.randrange(3))
            ]


def tried(call: Callable[[], Any], then: Callable[[Any], Any] = lambda _: None) -> tuple[str, str] | None:
    """Make a call, and return what it did that it may not, and where; hand on what it returned, and return None."""
    with warnings.catch_warnings(record=True) as given, ends_in_time():
        warnings.simplefilter("always")
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                result = call()
                repr(result)
                if hasattr(type(result), "_repr_html_") and type(result).__module__.startswith("fastbcubed"):
                    result._repr_html_()
        except fb.FastBCubedError as error:
            if not str(error).strip():
                return "no message", place_of(error)
            str(error).encode("utf-8", "surrogatepass")
        except (KeyboardInterrupt, MemoryError):
            raise
        except BaseException as error:
            return f"{type(error).__name__}: {error}", place_of(error)
        else:
            then(result)
    for each in given:
        if not issubclass(each.category, fb.EvaluationWarning):
            return f"{each.category.__name__}: {each.message}", f"{each.filename}:{each.lineno}"
    return None


def place_of(error: BaseException) -> str:
    """Return the innermost line of the package that raised an error, and the line within it."""
    frames = traceback.extract_tb(error.__traceback__)
    here = [frame for frame in frames if "/fastbcubed/" in frame.filename] or list(frames)
    last = here[-1]
    return f"{last.filename.rpartition('/fastbcubed/')[2]}:{last.lineno} {last.line}"


@contextlib.contextmanager
def ends_in_time() -> Iterator[None]:
    """Raise Hang in what takes too long, where signals can be had."""
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def late(number: int, _: Any) -> None:
        raise Hang(f"over {HANGS} s of work" if number == signal.SIGPROF else f"over {WAITS} s")

    timers = {
        signal.SIGPROF: (signal.ITIMER_PROF, HANGS),
        signal.SIGALRM: (signal.ITIMER_REAL, WAITS),
    }
    before = {number: signal.signal(number, late) for number in timers}
    for timer, seconds in timers.values():
        signal.setitimer(timer, seconds)
    try:
        yield
    finally:
        for number, (timer, _) in timers.items():
            signal.setitimer(timer, 0)
            signal.signal(number, before[number])


def by_kind(found: Iterator[Failure]) -> str:
    """Return failures as text: of each kind how many, and the first."""
    kinds: dict[str, list[Failure]] = {}
    for each in found:
        kinds.setdefault(each.kind, []).append(each)
    return "\n".join(f"{len(each)} x {each[0]}" for each in sorted(kinds.values(), key=len, reverse=True))


if __name__ == "__main__":  # python tests/oracles/generated_calls.py SEED N
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        print(by_kind(failures(int(sys.argv[1]), int(sys.argv[2]))))
