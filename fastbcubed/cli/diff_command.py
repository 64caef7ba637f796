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
    in_flags,
    print_opened,
    print_result,
    say_warnings,
    then,
    with_scores,
)

if TYPE_CHECKING:
    from fastbcubed.diff_runs.diff_result import Diff
    from fastbcubed.results.gates import Bound
    from fastbcubed.results.table import Table

SIDES = ("baseline", "experiment")
#: Columns of listings that a terminal shows, if present.
SHOWN = (
    "outcome", "n_items", "n_parts", "split_rate", "merge_rate", "jaccard_distance", "bad_distance",
    "delta_precision", "delta_recall",
)  # fmt: skip
#: Their headings.
CALLED = {
    "n_items": "items", "n_parts": "parts", "split_rate": "split", "merge_rate": "merged",
    "jaccard_distance": "distance", "bad_distance": "bad", "delta_precision": "ΔP", "delta_recall": "ΔR",
}  # fmt: skip
#: How values are written that are no scores.
FORMS = {"outcome": "text", "n_items": "count", "n_parts": "count"}
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
    add_options(group, "json paths")
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
    if options.json or not sys.stdout.isatty():  # a terminal shows them with the figures
        say_warnings(diff.warnings)
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
    from fastbcubed.diff_runs.diff_document import overview
    from fastbcubed.diff_runs.diff_listings import requested_slices
    from fastbcubed.diff_runs.vocabulary import asked_order
    from fastbcubed.render.number_formats import count, label
    from fastbcubed.render.text import drawn

    terminal.line(drawn(overview(diff), in_flags))
    terminal.flush()
    for name, table in diff._sliced.items():
        n, title = table.num_rows, f"By {label(name)}"
        if table.is_large:
            table = requested_slices(diff, name, asked_order(None), worst)
        elif n > max(worst, FEW_SLICES):
            changes = [row["split_change"] + row["merge_change"] for row in table.to_pylist()]
            table = table.take(sorted(range(n), key=lambda k: -changes[k])[:worst])
        if table.num_rows < n:
            title += f": the {count(worst)} of {count(n)} slices that changed most"
        terminal.title(title)
        _print_table(terminal, table)
    for side in SIDES if worst and diff.evaluation.has_clusters else ():
        table = diff.clusters(side, limit=worst)
        n = sum(map(_has_changed, table.to_pylist()))
        if n:
            of = f"{count(n)} of {count(diff.summary[side]['clusters'])}"
            terminal.title(f"{side.capitalize()} clusters that changed most: {of}")
            _print_table(terminal, table.slice(0, n))


def _print_table(terminal: Terminal, table: Table) -> None:
    """Write a listing: the names of its rows, and selected figures with their standard errors."""
    from fastbcubed.render.document import Grid
    from fastbcubed.results.slices import name_columns

    names = name_columns(table.column_names)
    figures = [name for name in SHOWN if name in table.column_names and name not in names]
    columns = [(name, name, "name") for name in names]
    for name in figures:
        columns.append((CALLED.get(name, name), name, FORMS.get(name, "score")))
        if f"{name}_se" in table.column_names:
            columns.append(("±", f"{name}_se", "error"))
    terminal.grid(Grid.of(table.to_pylist(), columns, len(names) + figures.count("outcome")))
