"""The description of all that is promised to stay, made from the package: names, keywords, columns, keys, flags.

`tests/promises/api.json` stores it, and `python tests/oracles/public_api.py` writes that file anew.
"""

from __future__ import annotations

import contextlib
import csv
import inspect
import io
import json
import os
import tempfile
import warnings
from argparse import SUPPRESS
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import fastbcubed as fb
from fastbcubed.cli import main as cli
from fastbcubed.cli.commands import COMMANDS, CommandParser
from fastbcubed.cli.metrics_command import range_of
from fastbcubed.metrics.metric import Metric
from fastbcubed.metrics.registry import METRICS, SYNONYMS
from fastbcubed.results.warnings import CODES
from fastbcubed.runtime import exit_codes

STORED = Path(__file__).parents[1] / "promises" / "api.json"
MODULES = {"fastbcubed": fb} | {
    f"fastbcubed.{name}": getattr(fb, name) for name in ("charts", "constraints", "errors", "metrics")
}

TRUTH = {
    "item": list("abcdefghij"), "cluster": [1, 1, 1, 2, 2, 3, 3, 4, 5, 5],
    "country": list("xxxyyyxxyy"), "source": list("pqpqpqpqpq"), "weight": [1.0, 2.0] * 5,
}  # fmt: skip
OLD = {"item": list("abcdefghij"), "cluster": [1, 1, 1, 1, 2, 3, 3, 4, 5, 6], "name": list("klmnopqrst")}
NEW = OLD | {"cluster": [1, 1, 2, 2, 2, 3, 4, 4, 5, 5]}
LINKS = {"left": list("abdfh"), "right": list("bcegi"), "score": [0.9, 0.8, 0.7, 0.6, 0.5]}
#: Pairs of items, of which those from one country are split: what kind of items lose is found.
PLANTED = {
    "item": list(range(400)), "cluster": [k // 2 for k in range(400)],
    "country": ["JP" if k % 20 < 4 else "US" for k in range(400)],
}  # fmt: skip
FOUND = {"item": list(range(400)), "cluster": [-k if k % 20 < 4 else k // 2 for k in range(400)]}

#: Listings of the results in `results`, by the name of the result there.
LISTINGS = {
    "ev": (
        "items()", "clusters('true')", "clusters('pred')", "cells()", "slices('country')", "slices('true_size')",
        "slices('country', errors=True)", "macro('country')", "scores()", "outcomes()", "repairs()", "lorenz('true')",
        "source_pairs('source')", "cluster('true', 1).table", "cluster('true', 1).parts",
    ),
    "cmp": (
        "scores()", "deltas()", "slices('country')", "clusters('true')", "cluster('true', 1).table", "items()",
    ),
    "diff": (
        "scores()", "clusters('baseline')", "clusters('experiment')", "cluster('baseline', 1).table", "items()",
        "cluster('baseline', 1).parts", "cells()", "changes()", "slices('country')",
        "ids()", "retired()", "registry()", "sample_pairs(9)",
    ),
    "est": ("scores()",),
    "pairs": ("",),
    "sweep": (
        "curve()", "curve(errors=True)", "merges()", "weakest_links()", "slices('country')",
    ),
    "clustering": ("to_table()",),
}  # fmt: skip

#: Commands whose JSON has all keys that their flags can add, by the files of `here`.
JSON = {
    "evaluate": "truth new --weight weight --slice country --slice-pairs source --show 1 --repairs 1 --fail-under "
    "f1=0.1 --fail-over largest_pred=9 --baseline baseline --fail-worse f1=0.9 --fail-on-warning giant-cluster",
    "show": "truth new --true 1 --item a",
    "explain": "planted found --loss recall",
    "compare": "truth old new --slice country --bootstrap 40",
    "diff": "old new --truth truth --slice country --show 1",
    "estimate": "truth new | truth old=old.parquet new=new.parquet --slice country --fail-worse f1=1",
    "sweep": "truth links --slice country --threshold 0.6 --stages --where precision>=0.1",
    "estimate-pairs": "pairs.csv",
    "cluster": "links --threshold 0.6",
    "metrics": "f1",
    "constraints": "--metric f1 --random 1",
}


#: Inputs for which not every score is defined.
INPUTS: dict[str, dict[str, Any]] = {
    "partitions": {}, "weights": {"weighted": True}, "weights in the mean": {"weighted": True, "weighting": "outer"},
    "items outside the truth": {"outside": True}, "overlapping clusters": {"overlapping": True},
}  # fmt: skip


def defined(metric: Metric) -> str:
    """Return the range and direction of a score, and the inputs for which it is defined."""
    plain = {"weighted": False, "weighting": "pointwise", "outside": False}
    known = [name for name, of in INPUTS.items() if metric.undefined(**plain | of) is None]
    return f"{metric.best}, {range_of(metric)}; {', '.join(known) or 'three clusterings'}"


def describe() -> dict[str, Any]:
    """Return the description: dicts by name, lists of names, and texts, as JSON has them."""
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        warnings.simplefilter("ignore", fb.EvaluationWarning)
        write_files()
        return {
            "names": {name: sorted(module.__all__) for name, module in MODULES.items()},
            "keywords": dict(sorted(keywords())),
            "attributes": {type(each).__name__: attributes(each) for each in results().values()},
            "fields of tuples": {
                name: list(found._fields)
                for name, found in sorted(vars(fb.metrics).items())
                if inspect.isclass(found) and hasattr(found, "_fields")
            },
            "scores": {name: defined(METRICS[name]) for name in sorted(METRICS)},
            "scores by names of other tools": dict(sorted(SYNONYMS.items())),
            "errors": {
                name: bases(kind)
                for name, kind in vars(fb.errors).items()
                if name in fb.errors.__all__ and inspect.isclass(kind)
            },
            "warnings": sorted(CODES),
            "columns of listings": {name: columns(table) for name, table in listings()},
            "columns of files": dict(files()),
            "keys of JSON": {command: json_keys(command) for command in JSON},
            "flags": {command.name: flags(command.module) for command in COMMANDS},
            "exit codes": {name: code for name, code in sorted(vars(exit_codes).items()) if name.isupper()},
        }


def broken(promised: Any, found: Any, *where: str) -> Iterator[str]:
    """Yield each promise that is not kept, with its place; what was added breaks none."""
    place = " → ".join(where)
    if where[:1] == ("keywords",) and isinstance(promised, list):
        yield from (f"{place}: {each}" for each in broken_keywords(promised, found))
    elif isinstance(promised, dict):
        for name, value in promised.items():
            if name in found:
                yield from broken(value, found[name], *where, name)
            else:
                yield f"{place}: {name!r} is gone"
    elif isinstance(promised, list):
        yield from (f"{place}: {each!r} is gone" for each in promised if each not in found)
    elif promised != found:
        yield f"{place}: {promised!r} has become {found!r}"


def broken_keywords(promised: list[str], found: list[str]) -> Iterator[str]:
    """Yield what a call that a signature promised would no longer be."""
    yield from (f"{each!r} is gone" for each in promised if each not in found and each != "*")
    known = {each.partition("=")[0] for each in promised}
    for each in found:
        if each not in promised and "=" not in each and not each.startswith("*") and each not in known:
            yield f"{each!r} is new and has no default"
    by_position = promised[: promised.index("*")] if "*" in promised else promised
    if found[: len(by_position)] != by_position and set(by_position) <= set(found):
        yield f"the order {', '.join(by_position)} has become {', '.join(found[: len(by_position)])}"


def keywords() -> Iterator[tuple[str, list[str]]]:
    """Yield the parameters of each public function, class and method: NAME or NAME=DEFAULT, `*` before keywords."""
    for module in MODULES.values():
        for name in module.__all__:
            thing = getattr(module, name)
            prefix = "" if module is fb else f"{module.__name__.removeprefix('fastbcubed.')}."
            if callable(thing) and not (inspect.isclass(thing) and not makes_them(thing)):
                yield prefix + name, parameters(thing)
    for result in results().values():
        yield from (
            (f"{type(result).__name__}.{n}", found) for n, found in methods(type(result), dir(result))
        )


def makes_them(kind: type) -> bool:
    """Return whether users make objects of a class themselves: all but results and errors."""
    return not issubclass(kind, BaseException) and kind not in {type(each) for each in results().values()}


def methods(kind: type, listed: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield those public methods that the package has defined, which `dir` of an object lists."""
    for name in listed:
        method = inspect.getattr_static(kind, name, None)
        inner = getattr(method, "__func__", method)
        if (
            not name.startswith("_")
            and inspect.isfunction(inner)
            and inner.__module__.startswith("fastbcubed")
        ):
            yield name, parameters(getattr(kind, name))


def parameters(function: Callable[..., Any]) -> list[str]:
    """Return the parameters of a function as texts."""
    found: list[str] = []
    for each in inspect.signature(function).parameters.values():
        if each.name == "self":
            continue
        if each.kind is each.KEYWORD_ONLY and not any(text.startswith("*") for text in found):
            found.append("*")
        stars = {each.VAR_POSITIONAL: "*", each.VAR_KEYWORD: "**"}.get(each.kind, "")
        default = "" if each.default is each.empty else f"={each.default!r}"
        found.append(f"{stars}{each.name}{default}")
    return found


def attributes(result: Any) -> list[str]:
    """Return the documented attributes of a result that are neither methods nor scores, nor Arrow's."""
    others = {*METRICS, *getattr(result, "overall", ()), *dir(pa.Table)}
    names = (name for name in dir(result) if not name.startswith("_") and name not in others)
    return [name for name in names if not callable(getattr(result, name))]


def bases(error: type) -> list[str]:
    """Return what `except` may name to catch an error."""
    return [kind.__name__ for kind in error.__mro__[:-1] if kind is not BaseException]


def results() -> dict[str, Any]:
    """Return a result of each kind."""
    truth, old, new = map(pa.table, (TRUTH, OLD, NEW))
    diff = fb.diff(old, new, truth=truth, slices="country")
    pairs = diff.sample_pairs(20)
    verdicts = pa.array(["same", "different"] * 10)
    judged = pairs.to_arrow().drop_columns(["verdict"]).append_column("verdict", verdicts)
    return {
        "ev": fb.evaluate(truth, new, slices="country"),
        "cmp": fb.compare(truth, {"old": old, "new": new}, slices="country"),
        "diff": diff,
        "est": fb.estimate(truth, new),
        "pairs": fb.estimate_pairs(judged),
        "sweep": fb.sweep(truth, pa.table(LINKS), slices="country"),
        "table": fb.contingency(truth, new),
        "clustering": fb.Clustering.from_links(pa.table(LINKS)),
    }


def listings() -> Iterator[tuple[str, Any]]:
    """Yield the tables of results, by the expression that makes them."""
    found = results()
    for name, questions in LISTINGS.items():
        for question in questions:
            place = f"{name}{question and '.'}{question}"
            yield place, eval(place, {}, found)


def columns(table: Any) -> list[str]:
    """Return NAME: KIND of each column of a table; how wide integers are, and whether texts have codes, may change."""
    schema = table.schema if hasattr(table, "schema") else pa.table(table).schema
    return [f"{field.name}: {kind_of(field.type)}" for field in schema]


def kind_of(kind: pa.DataType) -> str:
    """Return the kind of values that a type of Arrow has."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_integer(kind):
        return "integer"
    if pa.types.is_floating(kind):
        return "float"
    return "text" if pa.types.is_string(kind) or pa.types.is_large_string(kind) else str(kind)


def files() -> Iterator[tuple[str, list[str]]]:
    """Yield the columns of the files that results are saved as, and of those that commands write."""
    run("cluster links --threshold 0.6 --out clustered.parquet")
    yield "clustered", columns(pq.read_schema("clustered.parquet").empty_table())
    for name, result in results().items():
        if hasattr(result, "save"):
            result.save(name)
            for path in sorted(Path(name).glob("*.parquet")):
                yield f"{type(result).__name__}: {path.name}", columns(pq.read_schema(path).empty_table())


def write_files() -> None:
    """Write the tables of this module into the current directory, and a baseline and judged pairs."""
    tables = {"truth": TRUTH, "old": OLD, "new": NEW, "links": LINKS, "planted": PLANTED, "found": FOUND}
    for name, rows in tables.items():
        pq.write_table(pa.table(rows), name + ".parquet")
    run("evaluate truth.parquet old.parquet --weight weight --out baseline")
    run("sample-pairs old.parquet new.parquet -n 20 --out drawn.csv")
    with open("drawn.csv", newline="") as source, open("pairs.csv", "w", newline="") as target:
        rows = list(csv.DictReader(source))
        written = csv.DictWriter(target, rows[0])
        written.writeheader()
        written.writerows(row | {"verdict": ("same", "different")[k % 2]} for k, row in enumerate(rows))


def run(command: str) -> str:
    """Run a command in this process, and return what it prints."""
    words = [f"{word}.parquet" if os.path.isfile(f"{word}.parquet") else word for word in command.split()]
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        code = cli.main(words)
    assert code == 0, f"{command}: exit code {code}\n{err.getvalue()}"
    return out.getvalue()


def json_keys(command: str) -> list[str]:
    """Return the keys of a command's JSON, with those within as OUTER.INNER, and of lists OUTER[]."""
    answers = [json.loads(run(f"{command} {each} --json")) for each in JSON[command].split(" | ")]
    warned = ("code", "level", "message")  # and figures, by the code
    found = {key for answer in answers for key in keys_in(answer, "")}
    return sorted(key for key in found if "warnings[]." not in key or key.rpartition(".")[2] in warned)


def keys_in(value: Any, place: str) -> set[str]:
    """Return the places of all keys in a value of JSON."""
    if isinstance(value, list):
        return {key for each in value for key in keys_in(each, f"{place}[]")}
    if not isinstance(value, Mapping):
        return set()
    inner = {name: f"{place}.{name}" if place else name for name in value}
    return {*inner.values()}.union(*(keys_in(value[name], key) for name, key in inner.items()))


def flags(module: str) -> list[str]:
    """Return each spelling of the flags of a command, with the values that it takes."""
    parser = CommandParser(add_help=False)
    import_module(f"fastbcubed.cli.{module}").add_flags(parser)
    found = []
    for action in (each for each in parser._actions if each.help != SUPPRESS):
        takes = "" if action.nargs == 0 else " [VALUE]" if action.nargs == "?" else " VALUE"
        values = f" {'|'.join(map(str, action.choices))}" if action.choices else takes
        found += [f"{name}{values}" for name in action.option_strings]
    return found


def text_of(description: Any) -> str:
    """Return a description as JSON, with a line for each list."""

    def written(value: Any, indent: str) -> str:
        if not isinstance(value, dict) or not value:
            return json.dumps(value, ensure_ascii=False)
        inner = f"{indent} "
        lines = (f"{inner}{json.dumps(name)}: {written(each, inner)}" for name, each in value.items())
        return "{\n" + ",\n".join(lines) + f"\n{indent}}}"

    return written(description, "") + "\n"


if __name__ == "__main__":
    STORED.write_text(text_of(describe()), encoding="utf-8")
