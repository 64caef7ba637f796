"""``fastbcubed estimate``: scores of a whole prediction from a sample of complete true clusters."""

from __future__ import annotations

import argparse
import sys

from fastbcubed.cli.options import (
    FILES,
    add_paths_flag,
    add_report_flag,
    add_row_flags,
    add_spill_flags,
    add_work_flags,
    check_report,
    columns_of_sides,
    score_names,
)
from fastbcubed.cli.output import in_flags, print_json, say

#: Flags without an argument of the library.
OWN = ("run", "json", "report")


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
    add = parser.add_argument_group("input").add_argument
    add("--item", default="item", metavar="NAME", help="column of item ids (default: item); see below")
    add("--cluster", default="cluster", metavar="NAME", help="column of clusters (default: cluster)")
    add(
        "--sampling", default="uniform", metavar="uniform|cluster_size|NAME",
        help="how true clusters were drawn: each with the same chance (uniform, the default), in proportion to size "
        "(cluster_size), as when items were drawn, or by a column of SAMPLE with one over the chance of the cluster",
    )  # fmt: skip
    add(
        "--draws",
        metavar="NAME",
        help="column of SAMPLE with how often the cluster was drawn (default: once)",
    )
    add(
        "--population-clusters", type=int, metavar="N",
        help="how many true clusters there are; errors of a uniform sample without repetition are then smaller",
    )  # fmt: skip
    add(
        "--missing", default="singleton", choices=("singleton", "drop"),
        help="what to do with items of SAMPLE that PREDICTION lacks: each is predicted to be alone (default), or left "
        "out of its true cluster",
    )  # fmt: skip
    add_row_flags(add)
    add = parser.add_argument_group("scores").add_argument
    add(
        "--metric", "--metrics", dest="metrics", action="append", metavar="NAME,...",
        help="scores and families, such as pairs or jaccard_distance (default: by item, by true cluster, of pairs and "
        "of whole clusters); repeatable",
    )  # fmt: skip
    add("--beta", type=float, default=1.0, help="weight of recall in F; any but 1 adds an F to each F1")
    add("--level", type=float, default=0.95, metavar="P", help="confidence of intervals (default: 0.95)")
    add = parser.add_argument_group("output").add_argument
    add("--json", action="store_true", help="one JSON object on stdout, as described below")
    add_paths_flag(add)
    add_report_flag(add, "the estimates with their intervals, and what they rest on,")
    add = parser.add_argument_group("work").add_argument
    add(
        "--engine", choices=("memory", "disk"),
        help="read PREDICTION whole, or block by block (disk; default for Parquet and Arrow files of over 1,000,000 "
        "rows)",
    )  # fmt: skip
    add_spill_flags(add)
    add_work_flags(add, "threads to work with (default: all cores); the estimates do not depend on it")


def run(options: argparse.Namespace) -> int:
    """Estimate, and print the result."""
    import warnings

    import fastbcubed

    check_report(options)
    arguments = {name: value for name, value in vars(options).items() if name not in OWN}
    for name in ("item", "cluster"):
        arguments[name] = columns_of_sides(arguments[name], name)
    if options.metrics is not None:
        arguments["metrics"] = score_names(options.metrics)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fastbcubed.EvaluationWarning)
        found = fastbcubed.estimate(**arguments)
    if options.json or not sys.stdout.isatty():  # a terminal shows them with the estimates
        for warning in found.warnings:
            say(f"{warning['level']}: {in_flags(warning['message'])} [{warning['code']}]")
    if options.json:
        print_json(found.to_json())
    else:
        from fastbcubed.cli.terminal import Terminal
        from fastbcubed.render.text import drawn
        from fastbcubed.sample.estimates import document

        Terminal().line(drawn(document(found), in_flags))
    if options.report is not None:
        found.report(options.report, overwrite=True)
        say(f"wrote {options.report}")
    return 0
