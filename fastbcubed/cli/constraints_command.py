"""``fastbcubed constraints``: which scores satisfy which formal constraints."""

from __future__ import annotations

import argparse

from fastbcubed.cli.flag_values import score_names
from fastbcubed.cli.options import add_options, number
from fastbcubed.cli.output import Terminal, print_json


def run(options: argparse.Namespace) -> int:
    """Check the scores against the constraints, and print the table of verdicts."""
    from fastbcubed.constraints import table
    from fastbcubed.runtime.progress_bar import announcing_compilation

    with announcing_compilation():
        names = None if options.metrics is None else score_names(options.metrics)
        checked = table(metrics=names, n_random=options.n_random, seed=options.seed)
    if options.json:
        print_json(checked.to_json())
        return 0
    terminal = Terminal()
    terminal.grid(checked.grid())
    terminal.line("\n" + "\n".join(checked.legend()))
    for report in checked.reports.values() if options.examples else ():
        terminal.line(f"\n{report!r}")
    return 0


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of ``fastbcubed constraints``."""
    add = parser.add_argument
    add_options(parser, "metrics", metrics="scores or families (default: every score that has a direction)")
    add(
        "--random", dest="n_random", type=number, default=20, metavar="N",
        help="number of random instances per check, after the small ones (default: 20)",
    )  # fmt: skip
    add_options(parser, "seed", seed="random instances")
    add("--examples", action="store_true", help="show the smallest counterexample for each verdict")
    add("--json", action="store_true", help="print one JSON object, including counterexamples")
