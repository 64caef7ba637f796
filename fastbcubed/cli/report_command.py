"""``fastbcubed report``: a saved result as an HTML file."""

from __future__ import annotations

import argparse
from inspect import signature
from typing import Any

from fastbcubed.cli.flag_values import MEMBERS, WORST, explain_of, key_of, report_columns
from fastbcubed.cli.options import EXPLAIN, add_options, limit_of, number
from fastbcubed.cli.output import say
from fastbcubed.errors import OptionError


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of ``fastbcubed report``."""
    parser.add_argument(
        "result",
        metavar="RESULT",
        help="a directory written by --out of evaluate, diff, compare or another command",
    )
    add = parser.add_argument
    add("--out", metavar="FILE", required=True, help="the HTML file to write; an existing one is replaced")
    add("--title", metavar="TEXT", help="heading of the page (default: what was compared)")
    add(
        "--worst", type=number, metavar="N",
        help=f"number of costliest clusters of each side to show (default: {WORST})",
    )  # fmt: skip
    add(
        "--members", type=number, metavar="N",
        help=f"number of members to show per cluster (default: {MEMBERS})",
    )  # fmt: skip
    add("--columns", metavar="NAME,...", help="attributes to show next to the members (default: none)")
    add(
        "--by", metavar="NAME", action="append", default=[],
        help="also slice by an attribute, several crossed, or bins; repeatable\nsuch as country,year or year:10",
    )  # fmt: skip
    add(
        "--explain", **EXPLAIN,
        help="add a section on slices that explain lost F1\nsee fastbcubed explain",
    )  # fmt: skip
    add_options(parser, "memory_limit", memory=limit_of("the result"))


def run(options: argparse.Namespace) -> int:
    """Write the report of a saved result."""
    import fastbcubed
    from fastbcubed.results.page import require_packages, require_place

    require_packages("report")
    require_place(options.out, overwrite=True)
    result = fastbcubed.load(options.result, check=False, memory_limit=options.memory_limit)
    asked: dict[str, Any] = {name: getattr(options, name) for name in ("title", "worst", "members")}
    asked |= {"columns": report_columns(options.columns), "by": [key_of(text) for text in options.by]}
    asked["explain"] = explain_of(options.explain, "--explain")
    asked = {name: value for name, value in asked.items() if value not in (None, [])}
    known = signature(result.report).parameters
    if strange := [name for name in asked if name not in known]:
        raise OptionError(f"--{strange[0]} does not apply to a result of the kind in {options.result}")
    result.report(options.out, **asked, overwrite=True)
    say(f"wrote {options.out}")
    return 0
