"""``fastbcubed sample-pairs``: draw pairs of items from a change, for people to judge."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from fastbcubed.cli.flag_values import arguments_of, column_names, key_of, read_flags
from fastbcubed.cli.options import OR_COLUMNS, add_engine_flags, add_input_flags, add_options, number
from fastbcubed.cli.output import call, say, to_stdout
from fastbcubed.errors import without_advice
from fastbcubed.render.number_formats import counted
from fastbcubed.runtime.suggestions import plain, split

if TYPE_CHECKING:
    from fastbcubed.results.table import Table

#: Arguments that may name a different column for each side.
SIDES = ("baseline's", "experiment's")


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of ``fastbcubed sample-pairs``."""
    parser.add_argument("baseline", metavar="BASELINE", help=f"the clustering before the change{OR_COLUMNS}")
    parser.add_argument(
        "experiment", metavar="EXPERIMENT", help="the clustering after the change, given in the same way"
    )
    group = parser.add_argument_group("sample")
    add = group.add_argument
    add("-n", type=number, default=200, metavar="N", help="number of pairs to draw (default: 200)")
    score = "score to estimate (default: rates)\nsee Scores (--score)"
    add("--score", default="rates", metavar="NAME", help=score)
    add(
        "--by", metavar="NAME",
        help="stratify by a column, several crossed, or bins\nsuch as country,year; as in evaluate --slice",
    )  # fmt: skip
    add(
        "--column", "--columns", dest="columns", action="append", default=[], metavar="NAME,...",
        help="attributes of both items to show; repeatable",
    )  # fmt: skip
    add_options(group, "seed", seed="random numbers")
    add(
        "--out", dest="pairs_out", metavar="FILE",
        help="file to write, ending in .csv or .parquet (default: CSV on stdout)",
    )  # fmt: skip
    outside = "they count as merged into their cluster"
    add_input_flags(parser, sides=("baseline", "experiment"), outside=outside, overlapping=False)
    add_options(group, "weighting")
    add_engine_flags(parser, results="pairs do")


def run(options: argparse.Namespace) -> int:
    """Draw the pairs, and write them."""
    import fastbcubed
    from fastbcubed.sample.pair_sample import require_place, write_csv, write_pairs

    if options.pairs_out is not None:
        require_place(options.pairs_out)  # checked before the work starts
    with without_advice(outer=True):
        diff = call(fastbcubed.diff, _arguments(options), options.noise)
    pairs = diff.sample_pairs(
        options.n, score=options.score, by=None if options.by is None else key_of(options.by),
        columns=[plain(name) for text in options.columns for name in split(text, ",")], seed=options.seed,
    )  # fmt: skip
    if options.pairs_out is None:
        with to_stdout():
            write_csv(pairs, sys.stdout.buffer)
        return 0
    write_pairs(pairs, options.pairs_out)
    say(_written(pairs, options.pairs_out))
    return 0


def _arguments(options: argparse.Namespace) -> dict[str, Any]:
    import fastbcubed

    given = arguments_of(fastbcubed.diff, options)
    given |= read_flags(argparse.Namespace(**given, slices=[], metrics=["split_rate"]), SIDES)
    if options.table is not None:
        for side in ("baseline", "experiment"):
            given[side] = column_names(given[side])
    return {**given, "keep": "items"}


def _written(pairs: Table, path: str) -> str:
    n, to_judge = len(pairs), pairs["repeats"].null_count
    again = "" if n == to_judge else f", {n - to_judge:,} of which repeat others and need no verdict"
    return (
        f"wrote {path}: {counted(n, 'pair')}{again}. Fill in same, different or unsure in the column "
        f"verdict, then run: fastbcubed estimate-pairs {path}"
    )
