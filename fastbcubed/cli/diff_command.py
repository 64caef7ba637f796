"""``fastbcubed diff``: changes from a baseline to an experiment, and whether a truth supports them."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastbcubed.cli.flag_values import arguments_of, check_report, column_names, read_flags
from fastbcubed.cli.gate_options import BOUND, bounds_of, code_of, gate_group, with_slices, write_page
from fastbcubed.cli.options import (
    OR_COLUMNS,
    PER_SIDE,
    add_engine_flags,
    add_input_flags,
    add_options,
    add_report_flags,
    add_score_flags,
)
from fastbcubed.cli.output import (
    Terminal,
    call,
    parquet_file,
    print_document,
    print_result,
    say,
    say_warnings,
    then,
    warnings_said,
    with_scores,
    write_parquet,
)
from fastbcubed.errors import OptionError
from fastbcubed.render.number_formats import count, counted

if TYPE_CHECKING:
    from fastbcubed.diff_runs.diff_result import Diff
    from fastbcubed.results.gates import Bound, Gate

SIDES = ("baseline", "experiment")


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of ``fastbcubed diff``."""
    add = parser.add_argument
    add("baseline", metavar="BASELINE", help=f"the clustering before{OR_COLUMNS}")
    add("experiment", metavar="EXPERIMENT", help="the clustering after, given in the same way")
    add_options(parser, "truth unlabelled")
    outside = (
        "they get no rates of their own but count as merged into their cluster; a truth that labels them "
        "judges these merges"
    )
    add_input_flags(parser, sides=SIDES, outside=outside)
    add_score_flags(parser, "baseline_size and experiment_size", beta=False)
    group = parser.add_argument_group("output")
    add_options(group, "json paths intervals")
    add_options(group, "worst", worst="most changed clusters and slices", per_side=PER_SIDE)
    add_options(group, "show out keep", show="baseline clusters that changed most")
    _add_id_flags(parser)
    add = gate_group(parser).add_argument
    lost = (
        "fail if more than this share of the weight loses its ids\n"
        "the share of the weight that is in clusters whose ids change; ids are those assigned "
        "for --ids, --item-ids or --registry, or else the cluster labels"
    )
    add("--fail-ids-lost", type=_share, metavar="SHARE", help=lost)
    over = "above a value; repeatable\nsuch as split_rate=0.05 or bad_distance=0.01@country=US"
    add("--fail-over", **BOUND, help=f"fail if a score is {over}")
    add("--fail-under", **BOUND, help="fail if a score is below a value, such as iq=0; repeatable")
    add_report_flags(parser, explained="")
    add_engine_flags(parser)


def _share(text: str) -> float:
    try:
        if 0 <= (value := float(text)) <= 1:
            return value
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"{text!r} is not a share from 0 to 1, such as 0.05")


def _add_id_flags(parser: argparse.ArgumentParser) -> None:
    ids = parser.add_argument_group("ids (the cluster labels of BASELINE are ids; new clusters get new ones)")
    clusters = "write the id and event of each EXPERIMENT cluster as Parquet"
    ids.add_argument("--ids", metavar="FILE", help=clusters)
    items = "write items with their cluster ids as Parquet\nfor use as BASELINE of the next diff"
    ids.add_argument("--item-ids", metavar="FILE", help=items)
    registry = (
        "Parquet file of all ids, past ones included\nwith first_seen, last_seen and replaced_by. If it exists, "
        "its ids are never reused, and it is updated unless a gate fails"
    )
    ids.add_argument("--registry", metavar="FILE", help=registry)
    add_options(ids, "release revive")
    group = ids.add_mutually_exclusive_group()
    add_options(group, "mint")
    smallest = "use the smallest item of a new cluster as its id"
    group.add_argument("--mint-item", action="store_true", help=smallest)


def run(options: argparse.Namespace) -> int:
    """Compare the two clusterings, print the requested output, and return 1 if a gate failed, else 0."""
    import fastbcubed

    check_report(options)
    files = _id_files(options)
    from fastbcubed.diff_runs.diff_document import change_of
    from fastbcubed.diff_runs.vocabulary import meant
    from fastbcubed.results.gates import try_bound

    bounds, _ = bounds_of(options, meant)
    arguments = _needed(_arguments(options), bounds)
    diff = call(fastbcubed.diff, arguments, options.noise)
    diff.evaluation.standard_errors.shown = options.intervals
    if options.json or not sys.stdout.isatty():  # on a terminal, they are shown with the figures
        say_warnings(diff.warnings)
    with warnings_said():
        gates = [try_bound(bound, diff) for bound in bounds]
    ids = _ids(options, diff, files)
    if options.fail_ids_lost is not None:
        gates.append(_gate_of_ids(diff, options.fail_ids_lost, given=bool(files)))
    rows = diff.clusters("baseline", limit=options.show).to_pylist() if options.show else []
    labels = [row["cluster"] for row in rows if row["cluster"] is not None and change_of(row) > 0]
    opened = [diff.cluster("baseline", label) for label in labels]
    found = {"opened": opened} if opened else {}
    with then(lambda: write_page(options, diff, gates, found)):
        if options.json:
            print_result(diff.to_dict(), gates, **found)
        else:
            terminal = Terminal()
            print_document(diff, terminal, options.worst, found)
            terminal.gates(gates)
    _write_ids(files, ids, keep_registry=bool(code_of(gates)))
    return code_of(gates)


# Stable ids of clusters


def _id_files(options: argparse.Namespace) -> dict[str, Path]:
    """Return the files to which ids are written; raise for other flags on ids if there are none."""
    named = {flag: getattr(options, flag) for flag in ("ids", "item_ids", "registry")}
    files = {flag: parquet_file(path, flag) for flag, path in named.items() if path is not None}
    if len({path.absolute() for path in files.values()}) < len(files):
        raise OptionError(
            "--ids, --item-ids and --registry must name different files; two of them are the same"
        )
    if not files and (options.mint is not None or options.mint_item):
        raise OptionError(
            "--mint and --mint-item create new ids; name a file for these with --ids, --item-ids or "
            "--registry"
        )
    if "registry" not in files and (options.release is not None or options.revive):
        raise OptionError("--release and --revive apply to the registry; name its file with --registry")
    return files


def _ids(options: argparse.Namespace, diff: Diff, files: dict[str, Path]) -> dict[str, Iterable[Any]]:
    """Return the tables to write to each file; of several tables of ids, only the first is made already."""
    if not files:
        return {}
    from fastbcubed.diff_runs.identity import ids_by_item, registry_and_ids, tables_of_ids

    mint: Any = min if options.mint_item else options.mint
    found: dict[str, Iterable[Any]] = {}
    if (registry := files.get("registry")) is None:
        tables = tables_of_ids(diff, None, mint, revive=False, whole="item_ids" in files)
        first = next(tables)
    else:
        before = str(registry) if registry.exists() else None
        made, first = registry_and_ids(diff, before, options.release, mint, revive=options.revive)
        found["registry"], tables = [made], iter(())
    if "item_ids" in files:
        found["item_ids"] = [ids_by_item(diff.evaluation, first)]
    return {**found, "ids": chain([first], tables)}


def _gate_of_ids(diff: Diff, most: float, *, given: bool) -> Gate:
    from fastbcubed.results.gates import Bound, gate_of

    known = diff.id_stability
    return gate_of(Bound("ids_lost", most, at_least=False), 1.0 - (known.best if given else known.as_named))


def _write_ids(files: dict[str, Path], ids: dict[str, Iterable[Any]], *, keep_registry: bool) -> None:
    """Write the tables, the registry last, and print their paths."""
    for flag in ("ids", "item_ids", "registry"):
        if (path := files.get(flag)) is None:
            continue
        if flag == "registry" and keep_registry:
            say(f"left {path} unchanged because a gate failed")
            continue
        n_rows, events = Counter[str](), Counter[str]()
        write_parquet(_counted(ids[flag], n_rows, events), path)
        more = (
            f": {', '.join(f'{count(n)} {event}' for event, n in sorted(events.items()))}" if events else ""
        )
        say(f"wrote {path}: {counted(n_rows['rows'], 'row')}{more}")


def _counted(tables: Iterable[Any], n_rows: Counter[str], events: Counter[str]) -> Iterator[Any]:
    """Yield the tables, counting their rows and events."""
    from fastbcubed.inputs import arrow_compute as pc

    for table in tables:
        n_rows["rows"] += table.num_rows
        if "event" in table.column_names:
            found = pc.value_counts(table["event"].combine_chunks())
            events.update({each["values"]: each["counts"] for each in found.to_pylist()})
        yield table


def _arguments(options: argparse.Namespace) -> dict[str, Any]:
    import fastbcubed

    given = arguments_of(fastbcubed.diff, options)
    if (options.show or options.report or options.item_ids or options.mint_item) and options.out is None:
        given["keep"] = "items"
    if options.table is not None:
        for side in (*SIDES, "truth"):
            if given[side] is not None:
                given[side] = column_names(given[side])
    return given | read_flags(options, ("baseline's", "experiment's", "truth's"))


# Gates


def _needed(arguments: dict[str, Any], bounds: Sequence[Bound]) -> dict[str, Any]:
    """Return the arguments with the slices that gates need, and the scores in them."""
    if not bounds:
        return arguments
    from fastbcubed.diff_runs.diff_summary import DEFAULT, JUDGING
    from fastbcubed.results.gates import is_score

    usual = [*DEFAULT, *(JUDGING if arguments["truth"] is not None else ())]
    return with_slices(
        with_scores(arguments, [b.name for b in bounds if is_score(b.name)], usual), bounds, usual
    )
