"""Flags of ``fastbcubed evaluate`` → arguments of `fastbcubed.evaluate`."""

from __future__ import annotations

import argparse
import os
import re
from typing import Any

from fastbcubed.cells.contingency import MAX_PAIRS
from fastbcubed.errors import OptionError
from fastbcubed.results.slices.bins import element_of
from fastbcubed.sources.marks import plain, split

FILES = "file, glob or directory (Parquet, Arrow IPC, CSV, JSON lines), by path or URI; - is standard input"
OR_COLUMNS = f"{FILES}; with --table, a column"


#: Flags of gates, which `evaluate` of the library has no arguments for; see `cli.gates`.
GATE_FLAGS = ("fail_under", "fail_over", "fail_worse", "baseline", "fail_on_warning", "summary")
#: Flags that say that an input is links; see `cli.link_flags`.
LINK_FLAGS = ("links", "threshold", "ascending", "link_left", "link_right", "link_score", "link_items")


def add_evaluate_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags, one for each argument of `fastbcubed.evaluate` and some of the command line's own."""
    add = parser.add_argument
    add("truth", metavar="TRUTH", help=f"the true clustering: {OR_COLUMNS}")
    add("prediction", metavar="PREDICTION", help="the clustering to score, given in the same way")
    add_input_flags(parser)
    add = add_score_flags(parser)
    add(
        "--slice-pairs", action="append", metavar="NAME", default=[],
        help="tell the sources of items by an attribute, and count links within each and across each two; repeatable",
    )  # fmt: skip

    add = parser.add_argument_group("output").add_argument
    add("--json", action="store_true", help="one JSON object on stdout, as described below")
    add_paths_flag(add)
    add(
        "--show", type=number, default=0, metavar="N",
        help="open the N clusters that cost most, of either side: who is in them (see: fastbcubed show)",
    )  # fmt: skip
    add(
        "--worst", type=number, default=5, metavar="N",
        help="how many of the worst clusters of each side, and of the worst slices, to list (default: 5)",
    )  # fmt: skip
    add(
        "--repairs", type=number, default=0, metavar="N",
        help="list the N clusters to split or to gather that bring most; with --out, write them as repairs.parquet",
    )  # fmt: skip
    add(
        "--order-by", default="loss", metavar="loss|SCORE",
        help="list the clusters that cost most (loss, the default), or those of the worst score of this name",
    )  # fmt: skip
    add(
        "--verify", type=number, default=0, metavar="N",
        help="work N items drawn at random, and the scores, out anew from the rows by their definition",
    )  # fmt: skip
    add("--out", metavar="DIR", help="directory to write the result to, as JSON and Parquet files")
    add(
        "--keep", default="cells", choices=("scores", "cells", "items"),
        help="how much of the result to write to --out (default: cells); with items it can be sliced later",
    )  # fmt: skip
    add_engine_flags(parser, spark=True)


def add_score_flags(
    parser: argparse.ArgumentParser, sizes: tuple[str, str] = ("true_size", "pred_size"), *, beta: bool = True
) -> Any:
    """Add the flags that say which scores to compute and of what slices; return what adds further ones to them."""
    add = parser.add_argument_group("scores").add_argument
    add(
        "--metric", "--metrics", dest="metrics", action="append", metavar="NAME,...",
        help="scores, families, or all (see: fastbcubed metrics); repeatable",
    )  # fmt: skip
    if beta:
        text = "weight of recall in F; any but 1 adds fbeta and mean_fbeta"
        add("--beta", type=float, default=1.0, help=text)
    add_weighting_flag(add)
    add(
        "--slice", "--slices", dest="slices", action="append", metavar="NAME", default=[],
        help="score by an attribute, or by several crossed, such as country,year; year:10 is in bins of that width, "
        "year:1990:2000 between edges, day:month by the calendar (year, quarter, month, or several, as 6mo); "
        f"repeatable. There are always {' and '.join(sizes)}, the size of the cluster in powers of two",
    )  # fmt: skip
    return add


def add_input_flags(
    parser: argparse.ArgumentParser,
    item: str = "--item",
    sides: tuple[str, str] = ("truth", "prediction"),
    outside: str = "they are not scored, but are false positives for the items they are clustered with",
) -> None:
    """Add the flags that say what is in the two sides, and what is made of it; `item` is the column's.

    `outside` says what that policy means.
    """
    add = parser.add_argument_group("input").add_argument
    add(
        "--table",
        metavar="PATH",
        help="one table with both labels of each item; "
        f"{sides[0].upper()} and {sides[1].upper()} are two of its columns",
    )
    add(
        item,
        dest="item",
        default="item",
        metavar="NAME",
        help="column of item ids (default: item); see below",
    )
    add("--cluster", default="cluster", metavar="NAME", help="column of clusters (default: cluster)")
    add(
        "--weight",
        metavar="NAME",
        help="column of weights, or a file with the columns item and weight; a file is what ends in "
        ".parquet, .csv and so on, has a slash in its path, or is a URI",
    )
    add("--attributes", metavar="PATH", help="table of further columns to slice by, joined by item")
    add(
        "--unmatched",
        metavar="POLICY",
        help="what to do with items that one side lacks: drop (default, but of links see below), raise, singleton, or "
        f"outside (if only the {sides[1]} has them: {outside}); or {sides[0]}=POLICY,{sides[1]}=POLICY",
    )
    add_row_flags(add)
    add(
        "--noise", metavar="LABEL", help="a label, such as -1, for items that are in no cluster but their own"
    )
    add(
        "--overlapping", action="store_true",
        help="items may be in several clusters, with a row for each; the scores are those of Extended BCubed",
    )  # fmt: skip
    add(
        "--max-pairs", type=float, default=MAX_PAIRS, metavar="N",
        help=f"with --overlapping, the most pairs of cells to compare (default: 1e{len(f'{MAX_PAIRS:.0f}') - 1})",
    )  # fmt: skip


def add_weighting_flag(add: Any) -> None:
    """Add the flag that says where weights count."""
    add(
        "--weighting", default="pointwise", choices=("pointwise", "outer"),
        help="whether weights count in each confusion matrix and in the mean (pointwise, the default), or in the "
        "mean only (outer)",
    )  # fmt: skip


def add_engine_flags(parser: argparse.ArgumentParser, *, spark: bool = False) -> None:
    """Add the flags that say where the work is done; `spark` adds that engine."""
    add = parser.add_argument_group("work").add_argument
    on_spark = "; spark where this runs under spark-submit, for tables that one machine does not hold" * spark
    add(
        "--engine", choices=("memory", "disk", *(["spark"] if spark else [])),
        help="where the work is done (default: disk for Parquet and Arrow files that would not fit in memory); "
        f"of overlapping clusterings, disk keeps scores and slices alone{on_spark}",
    )  # fmt: skip
    add_spill_flags(add)
    add_work_flags(add, "threads to work with (default: all cores); the scores do not depend on it")


def add_paths_flag(add: Any) -> None:
    """Add the flag that shows where files are."""
    text = "show the paths of files, as they were given, in all that is written (default: their names)"
    add("--paths", action="store_true", help=text)


def add_row_flags(add: Any) -> None:
    """Add the flags that say what to do with rows that have no cluster, or repeat others."""
    add(
        "--nulls", default="raise", choices=("raise", "singleton", "drop"),
        help="what to do with items whose cluster is null (default: raise)",
    )  # fmt: skip
    add(
        "--duplicates", default="raise", choices=("raise", "drop"),
        help="what to do with rows that repeat an earlier one (default: raise)",
    )  # fmt: skip


def add_spill_flags(add: Any) -> None:
    """Add the flags of the memory and the directory that the disk engine may use."""
    add(
        "--memory-limit",
        metavar="SIZE",
        help="memory of the disk engine, such as 2GiB (default: half of what is free)",
    )
    add(
        "--spill-dir",
        metavar="DIR",
        help="directory for what does not fit in memory (default: /var/tmp); nothing is left there",
    )


def add_limit_flag(add: Any, what: str) -> None:
    """Add the flag of the memory that is not passed; `what` is what may not take more."""
    add(
        "--memory-limit", metavar="SIZE",
        help=f"memory that {what} may take, such as 8GiB; what would take more is an error that says what it needs "
        "(default: not looked at)",
    )  # fmt: skip


def add_work_flags(add: Any, threads: str) -> None:
    """Add the flags of threads and progress."""
    add("--threads", type=int, metavar="N", help=threads)
    add(
        "--progress", action=argparse.BooleanOptionalAction,
        help="show progress on stderr (default: on a terminal)",
    )  # fmt: skip


def evaluate_arguments(options: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments of `fastbcubed.evaluate` that the flags stand for."""
    unknown = (*GATE_FLAGS, *LINK_FLAGS)
    given = {name: value for name, value in vars(options).items() if name not in unknown}
    for name in ("run", "json", "worst", "show", "order_by", "verify", "slice_pairs"):
        given.pop(name, None)
    report = given.pop("report", None)
    given.pop("report_columns", None)
    paged = report and not (options.overlapping and options.engine == "disk")  # which keeps no items
    if (options.show or options.verify or options.slice_pairs or paged) and options.out is None:
        given["keep"] = "items"
    if options.table is not None:
        given["truth"], given["prediction"] = column_names(options.truth), column_names(options.prediction)
    return given | read_flags(options)


def read_flags(
    options: argparse.Namespace, sides: tuple[str, ...] = ("truth's", "prediction's")
) -> dict[str, Any]:
    """Return the arguments of `fastbcubed.evaluate` that flags of inputs and scores stand for and do not spell out."""
    given: dict[str, Any] = {
        "item": columns_of_sides(options.item, "item", sides),
        "cluster": columns_of_sides(options.cluster, "cluster", sides),
        "weight": _weight(options.weight),
        "slices": [_slice(text) for text in options.slices],
        "unmatched": _policy(options.unmatched),
        "noise": _label(options.noise),
    }
    if options.metrics is not None:
        given["metrics"] = score_names(options.metrics)
    return given


def column_names(text: str) -> str | list[str]:
    """Return the column that a text names, or several that are one id."""
    names = [plain(name) for name in split(text, "+")]
    return names[0] if len(names) == 1 else names


def columns_of_sides(text: str, flag: str, sides: tuple[str, ...] = ("truth's", "prediction's")) -> Any:
    """Return the columns that a flag names: for all sides, or one for each."""
    found = [column_names(side) for side in split(text, ",")]
    if len(found) > len(sides) or "" in found or any("" in side for side in found if isinstance(side, list)):
        several = "a pair of columns" if len(sides) == 2 else "a column of each side"
        raise OptionError(
            f"--{flag} is a column, {several} ({','.join(sides)}), or columns joined by + that "
            f"are one id, not {text!r}"
        )
    return found[0] if len(found) == 1 else tuple(found)


def score_names(texts: list[str]) -> list[str]:
    """Return the names of scores of a flag that may be repeated."""
    names = [name for text in texts for name in split(text, ",")]
    if "" in names:
        raise OptionError(
            "--metric is one score or family, or several with a comma between them; one has no name"
        )
    return names


def _slice(text: str) -> Any:
    found = [element_of(part) for part in split(text, ",")]
    if "" in found or len(set(map(str, found))) < len(found):
        raise OptionError(
            "--slice is an attribute, bins of one such as year:10, or different ones to be crossed, such as "
            f"country,year, not {text!r}"
        )
    return found[0] if len(found) == 1 else tuple(found)


def _weight(text: str | None) -> Any:
    """Return the name of a column as it is, a file as a path, and the table that a URI points to."""
    if text is None:
        return None
    from pathlib import Path

    from fastbcubed.sources.files import open_files
    from fastbcubed.sources.formats import ENDS
    from fastbcubed.sources.locations import is_uri

    if is_uri(text):
        return open_files(text)
    apart = os.sep in text or (os.altsep is not None and os.altsep in text)
    is_file = text.lower().endswith(ENDS) or (apart and os.path.exists(text))
    return Path(text) if is_file else text


def _policy(text: str | None) -> str | dict[str, str] | None:
    if text is None or "=" not in text:
        return text
    pairs = [part.partition("=") for part in split(text, ",")]
    return {side.strip(): policy.strip() for side, _, policy in pairs}


def _label(text: str | None) -> int | str | None:
    """Return an integer where the text is one; `_call_evaluate` finds out whether labels are strings."""
    if text is None or re.fullmatch(r"[+-]?\d+", text) is None:
        return text
    return int(text)


def number(text: str) -> int:
    """Return a flag's number, 0 or more."""
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number, 0 or more")
    return int(text)
