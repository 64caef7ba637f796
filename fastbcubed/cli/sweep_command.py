"""``fastbcubed sweep``: the clusters of links at every threshold, scored against the truth."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from fastbcubed.cli.flag_values import (
    arguments_of,
    check_report,
    columns_of,
    numbers_of,
    read_as,
    read_flags,
    say_saved,
)
from fastbcubed.cli.options import FILES, WORST_LISTED, add_options, limit_of, number
from fastbcubed.cli.output import (
    FEW_SLICES,
    Terminal,
    call,
    print_result,
    say,
    say_warnings,
    then,
    warnings_said,
)
from fastbcubed.errors import Argument, Either, rewording

if TYPE_CHECKING:
    from fastbcubed.sweep_links.sweep_result import Sweep
    from fastbcubed.sweep_links.threshold_choice import Leading


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of ``fastbcubed sweep``."""
    add = parser.add_argument
    add("truth", metavar="TRUTH", help=f"the true clustering{FILES}")
    add("edges", metavar="LINKS", help="table of links with scores, one row per pair of items")
    add_options(
        parser.add_argument_group("links"),
        "ascending left right score verdict no_verdict sources no_sources items",
    )
    group = parser.add_argument_group("truth")
    add_options(group, "item cluster weight attributes", item="a+b is one id", weight="")
    add = group.add_argument
    add(
        "--unmatched", metavar="POLICY",
        help="policy for items missing from one side\ndrop, raise, singleton, or outside (items that "
        "only links have are then false positives for those they are clustered with); or "
        "truth=POLICY,prediction=POLICY (default: prediction=drop and, unless --items is given, "
        "truth=singleton, since they have no link)",
    )  # fmt: skip
    add_options(group, "nulls duplicates noise")
    _add_score_flags(parser)
    group = parser.add_argument_group("output")
    add_options(group, "json")
    add = group.add_argument
    add(
        "--merges", type=number, default=3, metavar="N",
        help="number of costliest merges at the best threshold to list (default: 3)",
    )  # fmt: skip
    add(
        "--stages", action="store_true",
        help="show where recall is lost at the best threshold\nbefore scoring, by the threshold, or by merging",
    )  # fmt: skip
    add(
        "--rows", type=number, default=1000, metavar="N",
        help="maximum number of rows of the curve in JSON (default: 1000)\nends and extremes are kept",
    )  # fmt: skip
    add_options(group, "report", report="best threshold, curve, costliest merges and slices")
    add(
        "--out", metavar="DIR",
        help="write the result to this directory\nthe whole curve, the clusters at the best threshold, the "
        "costliest merges and the weakest links",
    )  # fmt: skip
    limit = limit_of("the sweep") + ". The list of merges (--merges) is not included"
    add_options(parser.add_argument_group("work"), "memory_limit threads progress", memory=limit)


def _add_score_flags(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("scores")
    add = group.add_argument
    add(
        "--best",
        default="f1",
        metavar="SCORE",
        help="score to maximize, or cost to minimize (default: f1)\na cost such as '5*pair_fp + pair_fn'",
    )
    add_options(group, "where")
    add(
        "--draws", type=number, default=0, metavar="N",
        help="number of bootstrap draws, e.g. 1000 (default: no draws)\ndraws of connected components, each with "
        "its own best threshold: reports the score expected on other data and how far thresholds vary",
    )  # fmt: skip
    add_options(group, "seed", seed="draws")
    also = "also list the scores at these thresholds\nsome, such as mean_f1, are computed only there"
    add_options(group, "thresholds metrics beta", thresholds=also, beta="fbeta")
    add(
        "--slice", "--slices", dest="slices", action="append", metavar="NAME", default=[],
        help="list the best threshold of each slice; repeatable\nand the F1 lost by using one for all; "
        "an attribute, several crossed, such as country,year, or true_size",
    )  # fmt: skip


def run(options: argparse.Namespace) -> int:
    """Sweep the thresholds, print the requested output, and write the result."""
    import fastbcubed

    arguments = arguments_of(fastbcubed.sweep, options) | read_flags(options, ("truth's",))
    arguments |= {side: columns_of(getattr(options, side)) for side in ("left", "right")}
    arguments["thresholds"] = None if options.thresholds is None else numbers_of(options.thresholds)
    check_report(options)
    sweep = call(fastbcubed.sweep, arguments, options.noise)
    with rewording(_of_best):
        best = sweep.best(options.best, where=options.where)
    if options.json or not sys.stdout.isatty():  # on a terminal, they are shown with the scores
        say_warnings(each for each in sweep.warnings if options.json or each["code"] != "made-of-links")
    from fastbcubed.sweep_links.threshold_choice import Leading

    asked: dict[str, Any] = {"score": options.best, "where": options.where}
    with warnings_said():
        chosen = sweep.chosen(**asked, draws=options.draws, seed=options.seed) if options.draws else None
    stages = sweep.stages(best.threshold) if options.stages else None
    leading = Leading(best, chosen, options.merges, stages)
    asked["stages"] = options.stages

    def write() -> None:
        if options.out is not None:
            sweep.save(options.out, **asked, chosen=chosen, merges=options.merges)
            say_saved(options.out)
        if options.report is not None:
            sweep.report(options.report, **asked, worst=options.merges, overwrite=True)
            say(f"wrote {options.report}")

    with then(write):
        if options.json:
            print_result(sweep._content(leading, options.rows))
        else:
            print_sweep(sweep, leading, Terminal())
    return 0


def _of_best(part: Any) -> Any:
    """Return a part of a message in which --best names the score to maximize, as --score names that of the links."""
    return Either("score", "--best") if isinstance(part, Argument) and part.name == "score" else part


def print_sweep(sweep: Sweep, leading: Leading, terminal: Terminal) -> None:
    """Print the sweep: the best threshold, the curve, critical merges, requested thresholds and slices."""
    from fastbcubed.results.page import Asked
    from fastbcubed.sweep_links.sweep_document import document

    notes = [f"Read as {read_as(sweep.links.columns)}."]
    asked = Asked(page=False, whole=FEW_SLICES, slices=WORST_LISTED)
    terminal.show(document(sweep, leading, asked, notes).blocks)
