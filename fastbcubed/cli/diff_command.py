"""``fastbcubed diff``: changes from a baseline to an experiment, and whether a truth supports them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fastbcubed.cli.flag_values import arguments_of, check_report, column_names, read_flags
from fastbcubed.cli.gate_options import BOUND, bounds_of, code_of, gate_group, with_slices, write_page
from fastbcubed.cli.options import (
    OR_COLUMNS,
    WORST_LISTED,
    add_engine_flags,
    add_input_flags,
    add_options,
    add_report_flags,
    add_score_flags,
    number,
)
from fastbcubed.cli.output import (
    Terminal,
    call,
    print_opened,
    print_result,
    say_warnings,
    then,
    warnings_said,
    with_scores,
)

if TYPE_CHECKING:
    from fastbcubed.diff_runs.diff_result import Diff
    from fastbcubed.results.gates import Bound

SIDES = ("baseline", "experiment")
#: Up to this many slices, all are listed.
FEW_SLICES = 10


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of ``fastbcubed diff``."""
    add = parser.add_argument
    add("baseline", metavar="BASELINE", help=f"the clustering before: {OR_COLUMNS}")
    add("experiment", metavar="EXPERIMENT", help="the clustering after, given in the same way")
    add_options(parser, "truth unlabelled")
    outside = (
        "they are merged to the items they are clustered with, which a truth that labels them judges, and have no "
        "rates of their own"
    )
    add_input_flags(parser, sides=SIDES, outside=outside)
    add_score_flags(parser, "baseline_size and experiment_size", beta=False)
    group = parser.add_argument_group("output")
    add_options(group, "json paths intervals")
    worst = (
        "how many clusters of either side, and how many slices, that changed most to list (default: "
        f"{WORST_LISTED})"
    )
    group.add_argument("--worst", type=number, default=WORST_LISTED, metavar="N", help=worst)
    add_options(group, "show out keep", show="baseline clusters that changed most")
    add = gate_group(parser)
    over = "above a value, such as split_rate=0.05 or bad_distance=0.01@country=US; repeatable"
    add("--fail-over", **BOUND, help=f"fail if a score is {over}")
    add("--fail-under", **BOUND, help="fail if a score is below a value, such as iq=0; repeatable")
    add_report_flags(parser)
    add_engine_flags(parser)


def run(options: argparse.Namespace) -> int:
    """Diff, print the requested output, and return 1 if a gate failed."""
    import fastbcubed

    check_report(options)
    from fastbcubed.diff_runs.vocabulary import meant
    from fastbcubed.results.gates import try_bound

    bounds, _ = bounds_of(options, meant)
    arguments = _needed(_arguments(options), bounds)
    diff = call(fastbcubed.diff, arguments, options.noise)
    diff.evaluation.standard_errors.shown = options.intervals
    if options.json or not sys.stdout.isatty():  # a terminal shows them with the figures
        say_warnings(diff.warnings)
    with warnings_said():
        gates = [try_bound(bound, diff) for bound in bounds]
    rows = diff.clusters("baseline", limit=options.show).to_pylist() if options.show else []
    labels = [row["cluster"] for row in rows if row["cluster"] is not None and _has_changed(row)]
    opened = [diff.cluster("baseline", label) for label in labels]
    with then(lambda: write_page(options, diff, gates)):
        if options.json:
            print_result(diff.to_dict(), gates, opened=opened or None)
        else:
            terminal = Terminal()
            print_diff(diff, terminal, options.worst)
            print_opened(opened, terminal, first=False)
            terminal.gates(gates)
    return code_of(gates)


def _arguments(options: argparse.Namespace) -> dict[str, Any]:
    import fastbcubed

    given = arguments_of(fastbcubed.diff, options)
    if (options.show or options.report) and options.out is None:
        given["keep"] = "items"
    if options.table is not None:
        for side in (*SIDES, "truth"):
            if given[side] is not None:
                given[side] = column_names(given[side])
    return given | read_flags(options, ("baseline's", "experiment's", "truth's"))


# Gates


def _needed(arguments: dict[str, Any], bounds: Sequence[Bound]) -> dict[str, Any]:
    """Return the arguments with the slices of the gates, and the scores of these."""
    if not bounds:
        return arguments
    from fastbcubed.diff_runs.diff_summary import DEFAULT, JUDGING
    from fastbcubed.results.gates import is_score

    usual = [*DEFAULT, *(JUDGING if arguments["truth"] is not None else ())]
    return with_slices(
        with_scores(arguments, [b.name for b in bounds if is_score(b.name)], usual), bounds, usual
    )


# Text


def _has_changed(row: dict[str, Any]) -> bool:
    return bool(row["split_change"] + row["merge_change"] > 0)


def print_diff(diff: Diff, terminal: Terminal, worst: int) -> None:
    """Write the diff, its slices, and the clusters that changed most."""
    from fastbcubed.results.page import Asked

    shown: dict[str, Any] = {"slicings": None, "whole": max(worst, FEW_SLICES), "slices": worst}
    terminal.show(diff._document(Asked(page=False, worst=worst, **shown)).blocks)
