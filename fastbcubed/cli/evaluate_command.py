"""``fastbcubed evaluate``; with ``--engine spark``, Spark reads the tables unless they are small."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fastbcubed._version import install
from fastbcubed.cli.flag_values import check_report, evaluate_arguments, with_links, with_order
from fastbcubed.cli.gate_options import Gates, add_gate_flags, code_of, write_page
from fastbcubed.cli.options import add_evaluate_flags, add_link_flags
from fastbcubed.cli.output import (
    Terminal,
    as_markdown,
    call,
    print_document,
    print_result,
    say_warnings,
    then,
)
from fastbcubed.errors import MissingPackageError, OptionError
from fastbcubed.inputs.files import refuse_logs
from fastbcubed.inputs.locations import is_uri
from fastbcubed.render.number_formats import counted, label
from fastbcubed.results.slice_bins import element_of
from fastbcubed.runtime.arguments import is_path
from fastbcubed.runtime.output_files import append_text

if TYPE_CHECKING:
    from fastbcubed.results.evaluation import Evaluation
    from fastbcubed.results.gates import Gate

#: Size of local files, in bytes, below which one machine is faster than Spark; see the benchmarks.
WORTH_IT = 20 << 30
#: Environment variables that are set if Spark started the process, or if the process uses a Spark server.
STARTED_BY = (
    "PYSPARK_GATEWAY_PORT",
    "SPARK_REMOTE",
    "SPARK_CONNECT_MODE_ENABLED",
    "DATABRICKS_RUNTIME_VERSION",
)
#: Arguments that may be tables.
TABLES = ("truth", "prediction", "attributes", "weight")


def with_frames(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of `evaluate`, with paths replaced by DataFrames if the engine is Spark."""
    if arguments.get("engine") != "spark":
        return dict(arguments)
    named = {name: arguments[name] for name in TABLES if is_path(arguments.get(name))}
    if isinstance(named.get("weight"), str):  # names a column, not a file
        del named["weight"]
    session = _session(named.values())
    return {**arguments, **{name: _read(session, os.fspath(path)) for name, path in named.items()}}


def _session(paths: Any) -> Any:
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise MissingPackageError(
            f"--engine spark needs Spark's Python package: run fastbcubed under spark-submit, or install "
            f"the package with {install('spark-local')}"
        ) from error
    running = SparkSession.getActiveSession()
    if running is not None:
        return running
    if not any(name in os.environ for name in STARTED_BY):
        _require_size([os.fspath(path) for path in paths])
    return SparkSession.builder.appName("fastbcubed").getOrCreate()


def _require_size(paths: list[str]) -> None:
    """Raise if files are too small to justify a new Spark session."""
    if any(is_uri(path) for path in paths):
        return
    size = sum(map(_bytes_of, paths))
    if size < WORTH_IT:
        raise OptionError(
            f"the files have {size / 2**30:.1f} GiB, which one machine scores faster than Spark starts: "
            "omit --engine, or pass --engine disk. To use an existing cluster, run this under "
            "spark-submit"
        )


def _bytes_of(path: str) -> int:
    if os.path.isdir(path):
        return sum(entry.stat().st_size for entry in os.scandir(path) if entry.is_file())
    return os.path.getsize(path) if os.path.exists(path) else 0


def _read(session: Any, path: str) -> Any:
    """Return a table as a DataFrame: Parquet unless its name ends in .csv or .json."""
    refuse_logs(path, os.listdir(path) if os.path.isdir(path) else ())
    plain = path.lower().removesuffix(".gz")
    if plain.endswith((".csv", ".tsv")):
        mark = "\t" if plain.endswith(".tsv") else ","
        return session.read.csv(path, header=True, inferSchema=True, sep=mark)
    return session.read.json(path) if plain.endswith((".json", ".jsonl")) else session.read.parquet(path)


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of ``fastbcubed evaluate``."""
    add_evaluate_flags(parser)
    add_link_flags(parser)
    add_gate_flags(parser)


def run(options: argparse.Namespace) -> int:
    """Evaluate, print the requested output, and return 1 if a gate failed, else 0."""
    import fastbcubed
    from fastbcubed.results.repairs import require_repairable

    check_report(options)
    gates = Gates(options)
    arguments, order_by = with_order(with_links(evaluate_arguments(options), options), options.order_by)
    if options.out is None and options.repairs:  # they are listed alone
        require_repairable(options.repairs, keep=arguments["keep"], overlapping=options.overlapping)
        arguments["repairs"] = 0
    ev = call(fastbcubed.evaluate, with_frames(gates.needs(arguments)), options.noise)
    ev.standard_errors.shown = options.intervals
    if options.json or not sys.stdout.isatty():  # on a terminal, they are shown with the scores
        say_warnings(ev.warnings)
    found = _found(ev, options)
    tried = gates.judge(ev)
    with then(lambda: _write(options, ev, tried, found)):
        if options.json:
            print_result(ev.to_dict(), tried, **found)
        else:
            terminal = Terminal()
            print_document(ev, terminal, options.worst, found, order_by=order_by)
            if terminal.to_people:
                terminal.line(f"\n{_more(ev, options)}")
            terminal.gates(tried)
    return code_of(tried)


def _found(ev: Evaluation, options: argparse.Namespace) -> dict[str, Any]:
    """Return what flags request in addition to the usual output, by its key in JSON."""
    found: dict[str, Any] = {}
    if options.show and (opened := _costliest(ev, options.show)):
        found["opened"] = opened
    if options.repairs:
        found["repairs"] = ev.repairs(limit=options.repairs).to_pylist()
    if options.slice_pairs:
        tables = {name: ev.source_pairs(element_of(name)) for name in options.slice_pairs}
        found["source_pairs"] = {name: table.to_pylist() for name, table in tables.items()}
    return found


def _write(options: argparse.Namespace, ev: Any, tried: Sequence[Gate], found: Mapping[str, Any]) -> None:
    """Write the summary and the report, where requested, and print their paths."""
    if options.summary is not None:  # appended, as other steps of the job may have written to the file
        names = [ev.names.get(side) for side in ("prediction", "truth")]
        sides = [f"Prediction: {label(names[0])}, truth: {label(names[1])}"] if all(names) else []
        title = counted(ev.coverage.n_scored(ev.policies), "item")
        append_text(options.summary, as_markdown(ev, title, sides, tried, found))
    write_page(options, ev, tried, found)


def _costliest(ev: Evaluation, n: int) -> list[Any]:
    """Return the clusters with the largest losses, opened: of precision for predicted, of recall for true clusters."""
    found: list[tuple[float, str, Any]] = []
    for side, loss in (("pred", "precision_loss"), ("true", "recall_loss")):
        rows = ev.clusters(side, order_by=loss, limit=n).to_pylist()
        found += [(-r[loss], side, r["cluster"]) for r in rows if r["cluster"] is not None and r[loss] > 0]
    found.sort(key=lambda each: each[0])
    return [ev.cluster(side, label) for _, side, label in found[:n]]


def _more(ev: Any, options: argparse.Namespace) -> str:
    """Return a hint that names flags for further output."""
    from fastbcubed.render.text import paragraph
    from fastbcubed.results.slices import id_parts

    hints = [f"--worst {max(20, 4 * options.worst)}"] if ev.has_clusters else []
    if ev.has_items:
        items = ev.kept_items()
        known = [name for side in items.attribute_sides().values() for name in side] + [*id_parts(items)]
        left = [label(n) for n in dict.fromkeys([*known, "true_size", "pred_size"]) if n not in ev.sliced]
        if left:
            hints.append(f"--slice NAME ({', '.join(left[:4])}{', …' if left[4:] else ''})")
    if options.out is None or not ev.has_clusters:
        hints.append(f"--out DIR --keep {'items' if ev.has_items else 'cells'}")
    return paragraph(f"More: {'; '.join(hints)}; see --help")
