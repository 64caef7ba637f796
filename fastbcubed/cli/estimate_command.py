"""``fastbcubed estimate``: scores of a whole prediction from a sample of complete true clusters."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from fastbcubed.cli.flag_values import arguments_of, check_report, columns_of_sides, score_names, write_result
from fastbcubed.cli.options import FILES, add_options
from fastbcubed.cli.output import Terminal, print_json, say_warnings, then

if TYPE_CHECKING:
    from fastbcubed.sample.estimates import Estimates


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags, one for each argument of `fastbcubed.estimate`."""
    add = parser.add_argument
    add(
        "sample",
        metavar="SAMPLE",
        help=f"all items of each true cluster that was drawn, a row for each: {FILES}",
    )
    add(
        "prediction",
        metavar="PREDICTION",
        help="the clustering to score, of all items, given in the same way",
    )
    group = parser.add_argument_group("input")
    add_options(group, "item cluster sampling draws population_clusters missing nulls duplicates")
    scores = (
        "scores and families, such as pairs or jaccard_distance (default: by item, by true cluster, of pairs and of "
        "whole clusters)"
    )
    add_options(
        parser.add_argument_group("scores"), "metrics beta level", metrics=scores, beta="an F to each F1"
    )
    what = "the estimates with their intervals, and what they rest on,"
    add_options(parser.add_argument_group("output"), "json paths out report", report=what)
    engine = (
        "read PREDICTION whole, or block by block (disk; default for Parquet and Arrow files of over 1,000,000 "
        "rows)"
    )
    names = "engine memory_limit spill_dir threads progress"
    add_options(parser.add_argument_group("work"), names, engine=engine, results="estimates do")


def run(options: argparse.Namespace) -> int:
    """Estimate, and print the result."""
    import warnings

    import fastbcubed

    check_report(options)
    arguments = arguments_of(fastbcubed.estimate, options)
    for name in ("item", "cluster"):
        arguments[name] = columns_of_sides(arguments[name], name)
    if options.metrics is not None:
        arguments["metrics"] = score_names(options.metrics)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fastbcubed.EvaluationWarning)
        found = fastbcubed.estimate(**arguments)
    if options.json or not sys.stdout.isatty():  # a terminal shows them with the estimates
        say_warnings(found.warnings)
    with then(lambda: write_result(options, found, {})):
        if options.json:
            print_json(found.to_json())
        else:
            print_estimates(found, Terminal())
    return 0


def print_estimates(found: Estimates, terminal: Terminal) -> None:
    """Write the sample, the estimates, warnings and the table."""
    terminal.show(found._document().blocks)
