"""``fastbcubed estimate``: scores of a whole prediction, estimated from a sample of complete true clusters."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from fastbcubed.cli.compare_command import runs_of
from fastbcubed.cli.flag_values import (
    arguments_of,
    check_report,
    columns_by_run,
    columns_of_sides,
    score_names,
    slice_key,
)
from fastbcubed.cli.gate_options import BOUND, WORSE, bounds_of, code_of, gate_group, with_slices, write_page
from fastbcubed.cli.options import FILES, add_options
from fastbcubed.cli.output import Terminal, as_markdown, print_result, say_warnings, then
from fastbcubed.errors import OptionError
from fastbcubed.runtime.output_files import append_text

if TYPE_CHECKING:
    from fastbcubed.results.gates import Bound, Gate


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags, one for each argument of `fastbcubed.estimate`."""
    add = parser.add_argument
    add(
        "sample",
        metavar="SAMPLE",
        help=f"all items of each sampled true cluster, one row per item{FILES}",
    )
    add(
        "named", nargs="+", metavar="PREDICTION",
        help="the clustering of all items to score\ngiven in the same way; or several runs as NAME=PATH",
    )  # fmt: skip
    group = parser.add_argument_group("input")
    add_options(
        group, "item cluster run_item run_cluster sampling draws population_clusters missing nulls duplicates"
    )
    scores = "scores and families, such as pairs or jaccard_distance"
    usual = "\ndefault: item means, true-cluster means, pairs and whole clusters"
    group = parser.add_argument_group("scores")
    add_options(group, "metrics beta level", metrics=scores, usual=usual, beta="an F to each F1")
    group = parser.add_argument_group("slices and runs")
    group.add_argument(
        "--slice", "--slices", dest="slices", action="append", default=[], metavar="NAME[,NAME]",
        help="estimate means over items by a column of SAMPLE; repeatable\n"
            "several columns are crossed; year:10 makes bins",
    )  # fmt: skip
    add_options(group, "baseline")
    what = "estimates with intervals and sample sizes"
    add_options(parser.add_argument_group("output"), "json paths out report", report=what)
    group = gate_group(parser)
    add = group.add_argument
    under = (
        "fail if an estimate is below a value; repeatable\nf1.low=0.8 checks the lower end of its interval, "
        "f1=0.9@country=US a slice"
    )
    add("--fail-under", **BOUND, help=under)
    add(
        "--fail-over",
        **BOUND,
        help="fail if an estimate is above a value\nfor scores where lower is better",
    )
    worse = (
        "a run's estimate is worse than the baseline's; repeatable\nby more than a value, such as f1=0.002, or "
        "significantly (f1=significant: the interval of the difference excludes 0)"
    )
    add("--fail-worse", **WORSE, help=f"fail if {worse}")
    add_options(group, "summary", summary=" and estimates")
    engine = (
        "read PREDICTION into memory, or block by block (disk)\n"
        "default: disk for Parquet and Arrow files of over 1,000,000 rows"
    )
    names = "engine memory_limit spill_dir threads progress"
    add_options(parser.add_argument_group("work"), names, engine=engine, results="estimates do")


def run(options: argparse.Namespace) -> int:
    """Estimate the scores, and print them."""
    import warnings

    import fastbcubed

    check_report(options)
    bounds, worse = bounds_of(options)
    arguments = arguments_of(fastbcubed.estimate, options)
    runs = runs_of(options.named, in_table=False)
    alone = len(runs) == 1 and "=" not in options.named[0]
    arguments["prediction"] = next(iter(runs.values())) if alone else runs
    for name, given in (("item", options.run_item), ("cluster", options.run_cluster)):
        arguments[name] = columns_of_sides(arguments[name], name)
        if not alone:
            arguments[name] = columns_by_run(arguments[name], given, name, list(runs))
        elif given:
            raise OptionError(f"--run-{name} applies to several runs; for one run use --{name}")
    if worse and alone:
        raise OptionError(
            "--fail-worse compares runs, but only one was named; name two, such as old=PATH new=PATH"
        )
    arguments["slices"] = [slice_key(text) for text in options.slices]
    if options.metrics is not None:
        arguments["metrics"] = score_names(options.metrics)
    if asked := [*bounds, *worse]:
        from fastbcubed.sample.cluster_estimators import DEFAULT, choose

        known = [each.name for each in choose(arguments["metrics"], options.beta)[0]]
        more = [bound.name for bound in asked if bound.name not in known]
        if more:
            arguments["metrics"] = [*(arguments["metrics"] or DEFAULT), *dict.fromkeys(more)]
        arguments = with_slices({**arguments, "metrics": [*known, *more]}, asked) | {
            "metrics": arguments["metrics"]
        }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fastbcubed.EvaluationWarning)
        found = fastbcubed.estimate(**arguments)
    if options.json or not sys.stdout.isatty():  # on a terminal, they are shown with the estimates
        from fastbcubed.compare_runs.rankings import told

        say_warnings(found.warnings if alone else told(found))
    gates = _judged(found, bounds, worse, alone=alone)
    with then(lambda: _write(options, found, gates)):
        if options.json:
            print_result(found.to_dict(), gates)
        else:
            terminal = Terminal()
            terminal.show(found._document().blocks)
            terminal.gates(gates)
    return code_of(gates)


def _judged(found: Any, bounds: list[Bound], worse: list[Bound], *, alone: bool) -> list[Gate]:
    """Evaluate all gates, and return their outcomes."""
    if not (bounds or worse):
        return []
    if alone:
        from fastbcubed.sample.estimates import try_estimate

        return [try_estimate(bound, found) for bound in bounds]
    return [*found._try(bounds), *found._try_worse(worse)]


def _write(options: argparse.Namespace, found: Any, gates: list[Gate]) -> None:
    """Write the summary, the estimates and their report, where requested, and print their paths."""
    if options.summary is not None:
        append_text(options.summary, as_markdown(found, "estimates from a sample", [], gates))
    write_page(options, found, gates, save=True)
