"""Flags → arguments of the library, shared by several commands."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fastbcubed.cells.contingency import MAX_PAIRS
from fastbcubed.cli.output import in_flags, say, with_scores
from fastbcubed.errors import Argument, EvaluationWarning, OptionError, rewording
from fastbcubed.inputs.suggestions import plain, split
from fastbcubed.results.bins import element_of

if TYPE_CHECKING:
    from fastbcubed.inputs.layouts import LinkColumns
    from fastbcubed.results.gates import Gate

FILES = "file, glob or directory (Parquet, Arrow IPC, CSV, JSON lines), by path or URI; - is standard input"
OR_COLUMNS = f"{FILES}; with --table, a column"

#: Flags of gates, which are no arguments of the library's `evaluate`; see `cli.gate_options`.
GATE_FLAGS = ("fail_under", "fail_over", "fail_worse", "baseline", "fail_on_warning", "summary")
#: Flags for an input of links; see `add_link_flags`.
LINK_FLAGS = ("links", "threshold", "ascending", "link_left", "link_right", "link_score", "link_items")


def add_evaluate_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags, one for each argument of `fastbcubed.evaluate`, and some specific to the command line."""
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
    """Add the flags of scores and slices; return the function that adds more to their group."""
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
    """Add the flags of the two sides and their policies; `item` is the flag of the item column.

    `outside` explains that policy.
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
    """Add the flag for where weights count."""
    add(
        "--weighting", default="pointwise", choices=("pointwise", "outer"),
        help="whether weights count in each confusion matrix and in the mean (pointwise, the default), or in the "
        "mean only (outer)",
    )  # fmt: skip


def add_engine_flags(parser: argparse.ArgumentParser, *, spark: bool = False) -> None:
    """Add the flags that choose the engine and its resources; `spark` adds that engine."""
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
    """Add the flag for showing full paths of files."""
    text = "show the paths of files, as they were given, in all that is written (default: their names)"
    add("--paths", action="store_true", help=text)


def add_row_flags(add: Any) -> None:
    """Add the flags for rows that have no cluster, or repeat others."""
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
    """Add the flag of the memory limit; `what` is the work that it limits."""
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
    """Return the arguments of `fastbcubed.evaluate` for the flags."""
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
    """Return the arguments of `fastbcubed.evaluate` for flags of inputs and scores that need conversion."""
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
    """Return the column named by a text, or the several columns of a composite id."""
    names = [plain(name) for name in split(text, "+")]
    return names[0] if len(names) == 1 else names


def columns_of_sides(text: str, flag: str, sides: tuple[str, ...] = ("truth's", "prediction's")) -> Any:
    """Return the columns named by a flag: for all sides, or one for each."""
    found = [column_names(side) for side in split(text, ",")]
    if len(found) > len(sides) or "" in found or any("" in side for side in found if isinstance(side, list)):
        several = "a pair of columns" if len(sides) == 2 else "a column of each side"
        raise OptionError(
            f"--{flag} is a column, {several} ({','.join(sides)}), or columns joined by + that "
            f"are one id, not {text!r}"
        )
    return found[0] if len(found) == 1 else tuple(found)


def score_names(texts: list[str]) -> list[str]:
    """Return the names of scores in a flag that may be repeated."""
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
    """Return a column's name unchanged, a file as a path, and the table at a URI."""
    if text is None:
        return None
    from pathlib import Path

    from fastbcubed.inputs.files import open_files
    from fastbcubed.inputs.formats import ENDS
    from fastbcubed.inputs.locations import is_uri

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
    """Return an integer if the text is one; `call` finds out whether labels are strings."""
    if text is None or re.fullmatch(r"[+-]?\d+", text) is None:
        return text
    return int(text)


def number(text: str) -> int:
    """Return a flag's number, 0 or more."""
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number, 0 or more")
    return int(text)


def add_link_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags for TRUTH or PREDICTION given as links."""
    add = parser.add_argument_group("links (pairs of items instead of items and clusters)").add_argument
    add(
        "--links", nargs="?", const="prediction", choices=("prediction", "truth"), metavar="SIDE",
        help="the prediction is a table of links, one for each pair of items, or with --links=truth the truth; its "
        "clusters are what they connect",
    )  # fmt: skip
    add(
        "--threshold",
        type=float,
        metavar="T",
        help="the score that a link has to reach (default: all connect)",
    )
    add_column_flags(add, "--link-")


def add_column_flags(add: Any, prefix: str) -> None:
    """Add the flags for the columns of links."""
    add(
        "--ascending", action="store_true",
        help="scores are distances: a link reaches the threshold if it is at most that",
    )  # fmt: skip
    for side in ("left", "right"):
        add(
            f"{prefix}{side}", metavar="NAME",
            help=f"column of the {side} item of a link; a+b is an id of two columns (default: what Splink, dedupe, "
            f"Zingg and others write, such as unique_id_{side[0]} or {side}_id)",
        )  # fmt: skip
    add(
        f"{prefix}score", metavar="NAME",
        help="column of scores (default: match_probability, match_weight, score, ... or the only one left)",
    )  # fmt: skip
    add(
        f"{prefix}items", metavar="PATH",
        help="table of all items that there are; those without a link are alone (default: the items of the links)",
    )  # fmt: skip


def columns_of(text: str | None) -> str | list[str] | None:
    """Return the column, or the columns of a composite id, named by a flag, if given."""
    return None if text is None else column_names(text)


def read_as(columns: LinkColumns) -> str:
    """Return a text of the columns read for each part of a link."""
    read = {"left": " + ".join(columns.left), "right": " + ".join(columns.right), "score": columns.score}
    return ", ".join(f"{part} = {name}" for part, name in read.items() if name)


def numbers_of(texts: list[str] | None) -> list[float]:
    """Return the thresholds named by a flag, which may be repeated."""
    try:
        return [float(part) for text in texts or () for part in split(text, ",")]
    except ValueError:
        raise OptionError(
            f"--threshold is a number, or several with commas between them, not {', '.join(texts or ())!r}"
        ) from None


def with_links(arguments: dict[str, Any], options: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments of `evaluate`, with a clustering in place of links, if flags declare any."""
    side = options.links
    if side is None:
        for name in LINK_FLAGS:
            if getattr(options, name) not in (None, False):
                raise OptionError(f"--{name.replace('_', '-')} goes with --links")
        return arguments
    if arguments["table"] is not None:
        raise OptionError("--links goes with two inputs; with --table both are columns of one table")
    from fastbcubed.inputs.clustering import Clustering

    item = arguments["item"]
    with rewording(_of_links), warnings_said():
        made = Clustering.from_links(
            arguments[side], columns_of(options.link_left), columns_of(options.link_right),
            score=options.link_score, threshold=options.threshold, ascending=options.ascending,
            items=options.link_items, item=item[side == "prediction"] if isinstance(item, tuple) else item,
            memory_limit=options.memory_limit,
        )  # fmt: skip
    return {**arguments, side: made}


@contextmanager
def warnings_said() -> Iterator[None]:
    """Print warnings as the command line does."""
    import warnings

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", EvaluationWarning)
        yield
    for each in caught:
        say(f"warning: {in_flags(each.message.args[0])}")  # type: ignore[union-attr]


def _of_links(part: Any) -> Any:
    """Return a part of a message with the flags of links, which have other names where a clustering may be given."""
    is_of_links = isinstance(part, Argument) and part.name in ("left", "right", "score", "items")
    return replace(part, name=f"link_{part.name}") if is_of_links else part


#: The default order of clusters.
LOSS = "loss"


def with_order(arguments: dict[str, Any], asked: str) -> tuple[dict[str, Any], str | None]:
    """Return the arguments of `evaluate` including the score to order clusters by, and this score; None for loss."""
    from fastbcubed.metrics.registry import resolve

    if asked == LOSS:
        return arguments, None
    found = resolve([asked])[0]
    if len(found) > 1 or found[0].overall_only:
        what = (
            f"a family of {len(found)} scores"
            if len(found) > 1
            else "one score of all items, which clusters lack"
        )
        raise OptionError(f"--order-by {asked} is {what}; name a mean over items, such as f1, or {LOSS}")
    name = found[0].alias_of or found[0].name
    return with_scores(arguments, [name]), name


#: Clusters of each side on a page, and members of each.
WORST, MEMBERS = 20, 10


def add_report_flags(parser: argparse.ArgumentParser) -> None:
    """Add ``--report FILE``, and the flag of attributes for the page."""
    add = parser.add_argument_group("a page for people; takes fastbcubed[report]").add_argument
    add(
        "--report", metavar="FILE",
        help="write verdict, charts, slices and the clusters that cost most as one HTML file, which is replaced",
    )  # fmt: skip
    add(
        "--report-columns", metavar="NAME,...",
        help="attributes to show beside the members of clusters there (default: none)",
    )  # fmt: skip


def add_report_flag(add: Any, what: str) -> None:
    """Add ``--report FILE`` only; `what` is the content of the page."""
    add(
        "--report", metavar="FILE",
        help=f"write {what} as one HTML file, which is replaced; takes fastbcubed[report]",
    )  # fmt: skip


def check_report(options: argparse.Namespace) -> None:
    """Raise, before the work, if a page cannot be made or written."""
    if options.report is None and getattr(options, "report_columns", None) is not None:
        raise OptionError("--report-columns goes with --report")
    if options.report is not None:
        from fastbcubed.results.page import require_packages, require_place

        require_packages("--report")
        require_place(options.report, overwrite=True)


def report_columns(text: str | None) -> list[str]:
    """Return the attributes named by a flag."""
    return [] if text is None else [plain(name) for name in split(text, ",")]


def write_report(options: argparse.Namespace, result: Any, gates: Sequence[Gate] = ()) -> None:
    """Write the page of a result with the gates tried, if requested."""
    if options.report is None:
        return
    from fastbcubed.results.page import report_of

    asked = {"columns": report_columns(options.report_columns)}
    report_of(lambda found: result._page(found, gates), options.report, asked, overwrite=True)
    say(f"wrote {options.report}")
