"""``fastbcubed compare``: several runs against one truth, and the differences between them."""

from __future__ import annotations

import argparse
import re
import sys
from dataclasses import replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from fastbcubed.cli.flag_values import arguments_of, check_report, column_names, columns_by_run, read_flags
from fastbcubed.cli.gate_options import WORSE, add_bound_flags, bounds_of, code_of, with_slices, write_page
from fastbcubed.cli.options import (
    OR_COLUMNS,
    add_engine_flags,
    add_input_flags,
    add_options,
    add_report_flags,
    add_score_flags,
)
from fastbcubed.cli.output import (
    Terminal,
    as_markdown,
    call,
    in_flags,
    print_document,
    print_result,
    say_warnings,
    then,
    warnings_said,
    with_scores,
)
from fastbcubed.errors import OptionError, quoted, short
from fastbcubed.render.number_formats import counted
from fastbcubed.runtime.output_files import append_text

if TYPE_CHECKING:
    from fastbcubed.compare_runs.comparison import Comparison
    from fastbcubed.results.gates import Bound, Gate


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of ``fastbcubed compare``."""
    add = parser.add_argument
    add("truth", metavar="TRUTH", help=f"the true clustering{OR_COLUMNS}")
    add(
        "named", nargs="+", metavar="NAME=PATH",
        help="the runs to compare, given in the same way\nwithout NAME=, a run is named after the stem of its file",
    )  # fmt: skip
    add_input_flags(parser, by_run=True)
    add_score_flags(parser)
    group = parser.add_argument_group("comparison")
    add_options(group, "baseline align level bootstrap seed unit", seed="bootstrap")
    group = parser.add_argument_group("output")
    add_options(group, "json paths worst", worst="most changed true clusters and slices")
    add_options(group, "show out", show="most changed true clusters")
    add_report_flags(parser, "slices where runs differ from the baseline")
    add = add_bound_flags(parser)
    worse = (
        "a run's score is worse than the baseline's; repeatable\nby more than a value, such as f1=0.002, or "
        "significantly (f1=significant: the interval of the difference excludes 0)"
    )
    add("--fail-worse", **WORSE, help=f"fail if {worse}")
    add_engine_flags(parser)


def run(options: argparse.Namespace) -> int:
    """Compare the runs, print the requested output, and return 1 if a gate failed, else 0."""
    import fastbcubed

    check_report(options)
    bounds, worse = bounds_of(options)
    arguments = arguments_of(fastbcubed.compare, options) | read_flags(options)
    runs = arguments["runs"] = runs_of(options.named, in_table=options.table is not None)
    for name, given in (("item", options.run_item), ("cluster", options.run_cluster)):
        arguments[name] = columns_by_run(arguments[name], given, name, list(runs))
    if options.table is not None:
        arguments["truth"] = column_names(options.truth)
    arguments = with_slices(with_scores(arguments, _scores_of([*bounds, *worse])), [*bounds, *worse])
    cmp = call(fastbcubed.compare, arguments, options.noise)
    from fastbcubed.compare_runs.rankings import told

    if options.json or not sys.stdout.isatty():  # on a terminal, they are shown with the scores
        say_warnings(told(cmp))
    gates = _judged(cmp, bounds, worse, options.fail_on_warning)
    opened = [cmp.cluster("true", label) for label in _moved(cmp, options.show)]
    with then(lambda: _write(options, cmp, gates, opened)):
        if options.json:
            members = [{**each, "members": each.table.to_pylist()} for each in opened]
            print_result(cmp.to_dict(), gates, opened=members or None)
        else:
            terminal = Terminal()
            print_document(cmp, terminal, options.worst, {"opened": opened})
            terminal.gates(gates)
    return code_of(gates)


def _write(options: argparse.Namespace, cmp: Comparison, gates: list[Gate], opened: list[Any]) -> None:
    """Write the summary, the comparison and its report, where requested, and print their paths."""
    found = {"opened": opened}
    if options.summary is not None:
        title = f"{counted(len(cmp), 'run')} on {counted(cmp.n_items, 'item')}"
        append_text(options.summary, as_markdown(cmp, title, [cmp._verdict[0]], gates, found))
    write_page(options, cmp, gates, found, save=True)


def runs_of(named: list[str], *, in_table: bool) -> dict[str, Any]:
    """Return runs by name: the text before the first equals sign if that is a plain word, otherwise the file's stem.

    >>> runs_of(["new=out/a.parquet", "out/x=1/b.parquet"], in_table=False)
    {'new': 'out/a.parquet', 'b': 'out/x=1/b.parquet'}
    """
    found: dict[str, Any] = {}
    for text in named:
        name, sign, path = text.partition("=")
        if not sign or not re.fullmatch(r"\w[\w.+-]*", name):
            path = text
            name = text if in_table else PurePath(text).name.partition(".")[0] or text
        if not path:
            raise OptionError(
                f"{short(text)}: the run {quoted(name)} has no {'column' if in_table else 'path'}"
            )
        if name in found:
            raise OptionError(
                f"two runs are named {quoted(name)}; write NAME={short(path)} to rename one of them"
            )
        found[name] = column_names(path) if in_table else path
    return found


def _scores_of(bounds: list[Bound]) -> list[str]:
    """Return the names of the scores that have bounds, not those of coverage and sizes."""
    if not bounds:
        return []
    from fastbcubed.results.gates import is_score

    return [bound.name for bound in bounds if is_score(bound.name)]


def _judged(cmp: Comparison, bounds: list[Bound], worse: list[Bound], codes: list[str]) -> list[Gate]:
    if not (bounds or worse or codes):
        return []
    from fastbcubed.compare_runs.gates_of_runs import try_bound, try_worse
    from fastbcubed.results.gates import try_warnings

    with warnings_said():
        found = [gate for bound in bounds for gate in try_bound(cmp, bound)]
        tried = [gate for bound in worse for gate in try_worse(cmp, bound)]
    found += [replace(gate, reason=in_flags(gate.reason)) for gate in tried]
    return found + try_warnings(codes, cmp)


def _moved(cmp: Comparison, n: int) -> list[Any]:
    """Return the labels of the true clusters that changed most."""
    if not n or not cmp.experiments:
        return []
    from fastbcubed.compare_runs.comparison_document import changed

    rows = changed(cmp.clusters(limit=n)).to_pylist()
    return [row["cluster"] for row in rows if row["cluster"] is not None]
