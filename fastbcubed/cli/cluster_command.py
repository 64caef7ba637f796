"""``fastbcubed cluster``: the clusters that links connect, at one or several thresholds."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from fastbcubed._version import __version__
from fastbcubed.cli.flag_values import columns_of, numbers_of, read_as
from fastbcubed.cli.options import FILES, add_options, limit_of
from fastbcubed.cli.output import (
    Terminal,
    parquet_file,
    print_json,
    say,
    say_warnings,
    warnings_said,
    write_parquet,
)
from fastbcubed.inputs.tables import ITEM
from fastbcubed.render.number_formats import count, counted

if TYPE_CHECKING:
    import pyarrow as pa

    from fastbcubed.inputs.link_clusters import Connected
    from fastbcubed.inputs.links import Links


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of ``fastbcubed cluster``."""
    add = parser.add_argument
    add(
        "links", metavar="LINKS",
        help=f"table of links, one row per pair of items{FILES}",
    )  # fmt: skip
    several = (
        "minimum score for a link to connect its items; repeatable\n"
        "default: all connect; one column of clusters per threshold"
    )
    add_options(parser, "thresholds", thresholds=several)
    add_options(parser, "ascending left right score verdict no_verdict sources no_sources items")
    item = "id column of --items, if it has several columns (default: item)"
    add("--item", default=ITEM, metavar="NAME", help=item)
    add("--out", metavar="PATH", help="Parquet file to write, with one row per item")
    add_options(parser, "json memory_limit", memory=limit_of("the links"))


def run(options: argparse.Namespace) -> int:
    """Connect the links, write the clusters, and print their counts."""
    from fastbcubed.inputs.link_clusters import as_threshold, warnings_of
    from fastbcubed.inputs.link_columns import LinkRequest
    from fastbcubed.inputs.links import read_links, warn_if_distances
    from fastbcubed.runtime.memory_budget import Allowance
    from fastbcubed.runtime.progress_bar import announcing_compilation

    thresholds = list(dict.fromkeys(map(as_threshold, numbers_of(options.thresholds))))
    out = None if options.out is None else parquet_file(options.out, "out")
    with announcing_compilation(), warnings_said():
        asked = LinkRequest(
            columns_of(options.left), columns_of(options.right), options.score, bool(thresholds), options.verdict,
            options.sources,
        )  # fmt: skip
        links = read_links(
            options.links, asked, items=options.items, item=columns_of(options.item) or ITEM,
            allowance=Allowance(options.memory_limit),
        )  # fmt: skip
        if thresholds:
            warn_if_distances(links.columns.score, links.name, ascending=options.ascending, stacklevel=2)
        table = _clusters(links, thresholds, ascending=options.ascending)
    made = [
        _connected(links, table, k, threshold, options) for k, threshold in enumerate(thresholds or [None])
    ]
    told = [_counts(links, table, k, each) for k, each in enumerate(made)]
    said = [warning for each in made for warning in warnings_of(each)]
    say_warnings(said)
    if options.json:
        _print_json(links, told, said, options)
    else:
        _print(links, told)
    if out is not None:
        write_parquet([table], out)
        say(f"wrote {out}: {counted(table.num_rows, 'row')}")
    return 0


def _clusters(links: Links, thresholds: list[float], *, ascending: bool) -> pa.Table:
    """Return a table of items and clusters; if there is only one column of clusters, it is named "cluster"."""
    import pyarrow as pa

    from fastbcubed.inputs.link_clusters import connect, wide_table

    names = [*links.items.names, "cluster"]
    if thresholds:
        table = wide_table(links, thresholds, ascending=ascending)
        return table if len(thresholds) > 1 else table.rename_columns(names)
    return pa.table([*links.items.parts, pa.array(connect(links)[0])], names=names)


def _connected(
    links: Links, table: pa.Table, k: int, threshold: float | None, options: argparse.Namespace
) -> Connected:
    """Return the summary of one clustering, number `k` in the table."""
    import numpy as np

    from fastbcubed.inputs.arrays import to_numpy
    from fastbcubed.inputs.link_clusters import connected

    labels = to_numpy(table.column(len(links.items.names) + k))
    reached = None if threshold is None else links.reaches(threshold, ascending=options.ascending)
    n = len(links) if reached is None else int(np.count_nonzero(reached))
    return connected(links, n, labels, threshold, ascending=options.ascending)


def _counts(links: Links, table: pa.Table, k: int, made: Connected) -> dict[str, Any]:
    """Return the threshold, column name and counts of one clustering, number `k` in the table."""
    return {
        "threshold": made.threshold,
        "column": table.column_names[len(links.items.names) + k],
        "n_connecting": made.n_connecting,
        "clusters": made.n_clusters,
        "singletons": made.n_singletons,
        "largest": made.largest,
        "n_contradicted": made.n_contradicted,
    }


def _print(links: Links, told: list[dict[str, Any]]) -> None:
    from fastbcubed.inputs.link_clusters import as_typed
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
    if (apart := links.apart) is not None:
        terminal.line(f"\nKept apart because they were judged not to match: {counted(len(apart), 'pair')}.")
        if apart.n_unsure:
            terminal.line(
                f"Not used as links because the verdict is missing or unsure: {counted(apart.n_unsure, 'pair')}."
            )
    if told[0]["threshold"] is None and columns.scores:
        terminal.line(
            f"\nAll links connect, whatever their {columns.scores[0]}; set a minimum with --threshold."
        )
    if not links.complete:
        terminal.line(
            "\nItems without links are not included; to add them as singletons, name a table of all items "
            "with --items."
        )


def _print_json(
    links: Links, told: list[dict[str, Any]], said: list[dict[str, Any]], options: argparse.Namespace
) -> None:
    from fastbcubed.render.json import as_json

    columns, apart = links.columns, links.apart
    found = {
        "fastbcubed": __version__,
        "links": links.name,
        "columns": {name: getattr(columns, name) for name in ("left", "right", "score", "verdict", "tool")},
        "n_links": len(links),
        "n_items": len(links.items),
        "n_judged_different": 0 if apart is None else len(apart),
        "n_unsure": 0 if apart is None else apart.n_unsure,
        "all_items_given": links.complete,
        "clusterings": told,
        "warnings": said,
        "reading": {"links": columns.to_dict()},
        "out": options.out,
    }
    print_json(as_json(found))
