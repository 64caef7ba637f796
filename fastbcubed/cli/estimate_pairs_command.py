"""``fastbcubed estimate-pairs``: scores of a change, estimated from pairs that people have judged."""

from __future__ import annotations

import argparse
from typing import Any

from fastbcubed.cli.compare_command import runs_of
from fastbcubed.cli.flag_values import check_report, columns_of
from fastbcubed.cli.gate_options import write_page
from fastbcubed.cli.options import add_options
from fastbcubed.cli.output import Terminal, print_json, then, warnings_said
from fastbcubed.inputs.tables import CLUSTER, ITEM


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of ``fastbcubed estimate-pairs``."""
    add = parser.add_argument
    add(
        "pairs",
        metavar="PAIRS",
        help=(
            "output of sample-pairs with verdicts, or labelled pairs\nwith --prediction, labelled pairs of any "
            "origin: CSV, Parquet, JSON lines; - is standard input"
        ),
    )
    group = parser.add_argument_group("labelled pairs")
    group.add_argument(
        "--prediction", action="append", default=[], metavar="[NAME=]PATH",
        help="clustering to score with the labelled pairs; repeat for several runs",
    )  # fmt: skip
    add_options(
        group,
        "left right verdict sources no_sources item cluster",
        item="of the prediction",
        link="pair",
        matches="",
    )
    group.add_argument(
        "--weight", metavar="NAME", help="column with the inverse of each pair's sampling probability"
    )
    add(
        "--by-stratum",
        action="store_true",
        help="estimate scores per stratum instead of for all items",
    )
    add("--level", type=float, default=0.95, help="confidence level of the intervals (default: 0.95)")
    add("--json", action="store_true", help="print a JSON object with a list of estimates, for programs")
    add_options(parser, "out report", report="verdict and estimates with intervals")


def run(options: argparse.Namespace) -> int:
    """Estimate the share of correct pairs, and print it with a table."""
    import fastbcubed

    check_report(options)
    with warnings_said():
        runs: Any = runs_of(options.prediction, in_table=False) or None
        if runs and len(runs) == 1 and "=" not in options.prediction[0]:
            (runs,) = runs.values()
        found = fastbcubed.estimate_pairs(
            options.pairs, prediction=runs, left=columns_of(options.left), right=columns_of(options.right),
            verdict=options.verdict, weight=options.weight, sources=options.sources,
            item=columns_of(options.item) or ITEM, cluster=columns_of(options.cluster) or CLUSTER,
            by_stratum=options.by_stratum, level=options.level,
        )  # fmt: skip
    with then(lambda: write_page(options, found, save=True)):
        if options.json:
            print_json(found.to_json())
        else:
            Terminal().show(found._document().blocks)
    return 0
