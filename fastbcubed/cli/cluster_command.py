"""``fastbcubed cluster``: the clusters that links connect, at one threshold or at several."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastbcubed._version import __version__
from fastbcubed.cli.flag_values import columns_of, numbers_of, read_as
from fastbcubed.cli.options import add_options, limit_of
from fastbcubed.cli.output import Terminal, print_json, say, warnings_said
from fastbcubed.errors import OptionError
from fastbcubed.inputs.tables import ITEM
from fastbcubed.render.number_formats import count, counted

if TYPE_CHECKING:
    import pyarrow as pa

    from fastbcubed.inputs.links import Links


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of ``fastbcubed cluster``."""
    add = parser.add_argument
    add(
        "links", metavar="LINKS",
        help="table of links, one for each pair of items: file, glob or directory (Parquet, Arrow IPC, CSV, JSON "
        "lines), by path or URI; - is standard input",
    )  # fmt: skip
    several = (
        "the score that a link has to reach to connect its items (default: all connect); repeatable: several "
        "thresholds give a column of clusters each"
    )
    add_options(parser, "thresholds", thresholds=several)
    add_options(parser, "ascending left right score items")
    item = "column of --items, if that has several (default: item)"
    add("--item", default=ITEM, metavar="NAME", help=item)
    add("--out", metavar="PATH", help="Parquet file to write, with a row for each item")
    add_options(parser, "json memory_limit", memory=limit_of("the links"))


def run(options: argparse.Namespace) -> int:
    """Connect the links, write the clusters, and print their counts."""
    from fastbcubed.inputs.links import as_threshold, read_links, warn_if_distances, warn_if_none_reaches
    from fastbcubed.runtime.memory_budget import Allowance
    from fastbcubed.runtime.progress_bar import announcing_compilation

    thresholds = list(dict.fromkeys(map(as_threshold, numbers_of(options.thresholds))))
    out = None if options.out is None else _file(options.out)
    with announcing_compilation(), warnings_said():
        links = read_links(
            options.links, columns_of(options.left), columns_of(options.right), score=options.score,
            scored=bool(thresholds), items=options.items, item=columns_of(options.item) or ITEM,
            allowance=Allowance(options.memory_limit),
        )  # fmt: skip
        if thresholds:
            warn_if_distances(links.columns.score, links.name, ascending=options.ascending, stacklevel=2)
        table = _clusters(links, thresholds, ascending=options.ascending)
        for threshold in thresholds:
            warn_if_none_reaches(links, threshold, ascending=options.ascending, stacklevel=2)
    told = [_counts(links, table, k, threshold, options) for k, threshold in enumerate(thresholds or [None])]
    if options.json:
        _print_json(links, told, options)
    else:
        _print(links, told)
    if out is not None:
        _write(table, out)
        say(f"wrote {out}: {counted(table.num_rows, 'row')}")
    return 0


def _file(path: str) -> Path:
    from fastbcubed.runtime.output_files import require_writable

    if not path.lower().endswith((".parquet", ".pq")):
        raise OptionError(f"--out is a Parquet file, whose name ends in .parquet, not {path!r}")
    require_writable(Path(path).parent)
    return Path(path)


def _clusters(links: Links, thresholds: list[float], *, ascending: bool) -> pa.Table:
    """Return items and clusters; a single column of clusters is called cluster."""
    import pyarrow as pa

    from fastbcubed.inputs.links import connect, wide_table

    names = [*links.items.names, "cluster"]
    if thresholds:
        table = wide_table(links, thresholds, ascending=ascending)
        return table if len(thresholds) > 1 else table.rename_columns(names)
    return pa.table([*links.items.parts, pa.array(connect(links)[0])], names=names)


def _counts(
    links: Links, table: pa.Table, k: int, threshold: float | None, options: argparse.Namespace
) -> dict[str, Any]:
    """Return the threshold, column and counts of one clustering."""
    import numpy as np

    from fastbcubed.inputs.arrays import to_numpy

    at = len(links.items.names) + k
    sizes = np.bincount(to_numpy(table.column(at))) if table.num_rows else np.zeros(0, np.int64)
    reached = None if threshold is None else links.reaches(threshold, ascending=options.ascending)
    return {
        "threshold": threshold,
        "column": table.column_names[at],
        "n_connecting": len(links) if reached is None else int(np.count_nonzero(reached)),
        "clusters": sizes.size,
        "singletons": int(np.count_nonzero(sizes == 1)),
        "largest": int(sizes.max(initial=0)),
    }


def _print(links: Links, told: list[dict[str, Any]]) -> None:
    from fastbcubed.inputs.links import as_typed
    from fastbcubed.render.document import Grid

    terminal = Terminal()
    terminal.line(f"{counted(len(links), 'link')} of {counted(len(links.items), 'item')} ({links.name})")
    columns = links.columns
    terminal.line(f"read as {read_as(columns)}\n")
    names = ["n_connecting", "clusters", "singletons", "largest"]
    rows = []
    for each in told:
        threshold = "all" if each["threshold"] is None else as_typed(each["threshold"])
        rows.append([threshold, *(count(each[name]) for name in names)])
    terminal.grid(Grid(["threshold", "links", "clusters", "singletons", "largest"], rows))
    if told[0]["threshold"] is None and columns.scores:
        terminal.line(
            f"\nAll links connect, whatever their {columns.scores[0]}; --threshold says how much they need."
        )
    if not links.complete:
        terminal.line(
            "\nItems without any link are not among these; they are alone. --items names a table of all."
        )


def _print_json(links: Links, told: list[dict[str, Any]], options: argparse.Namespace) -> None:
    from fastbcubed.render.json import as_json

    columns = links.columns
    found = {
        "fastbcubed": __version__,
        "links": links.name,
        "columns": {name: getattr(columns, name) for name in ("left", "right", "score", "tool")},
        "n_links": len(links),
        "n_items": len(links.items),
        "all_items_given": links.complete,
        "clusterings": told,
        "out": options.out,
    }
    print_json(as_json(found))


def _write(table: pa.Table, out: Path) -> None:
    from fastbcubed.runtime.output_files import TableWriter, make_directory, written_aside

    make_directory(out.parent)
    with written_aside(out) as aside, TableWriter(aside) as writer:
        writer.add(table)
