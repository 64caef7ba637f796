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

FILES = (
    "file, glob or directory (Parquet, Arrow IPC, CSV, JSON lines), by path or URI; - is standard input; with "
    "--table, a column"
)


#: Flags of gates, which `evaluate` of the library has no arguments for; see `cli.gates`.
GATE_FLAGS = ("fail_under", "fail_over", "fail_worse", "baseline", "fail_on_warning", "summary")


def add_evaluate_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags, one for each argument of `fastbcubed.evaluate` and some of the command line's own."""
    add = parser.add_argument
    add("truth", metavar="TRUTH", help=f"the true clustering: {FILES}")
    add("prediction", metavar="PREDICTION", help="the clustering to score, given in the same way")
    add_input_flags(parser)
    add = parser.add_argument_group("scores").add_argument
    add(
        "--metric", "--metrics", dest="metrics", action="append", metavar="NAME,...",
        help="scores, families, or all (see: fastbcubed metrics); repeatable",
    )  # fmt: skip
    add("--beta", type=float, default=1.0, help="weight of recall in F; any but 1 adds fbeta and mean_fbeta")
    add_weighting_flag(add)
    add(
        "--slice", "--slices", dest="slices", action="append", metavar="NAME", default=[],
        help="score by an attribute, or by several crossed, such as country,year; year:10 is in bins of that width, "
        "year:1990:2000 between edges; repeatable. There are always true_size and pred_size, the size of the cluster "
        "in powers of two",
    )  # fmt: skip

    add(
        "--slice-pairs", action="append", metavar="NAME", default=[],
        help="tell the sources of items by an attribute, and count links within each and across each two; repeatable",
    )  # fmt: skip

    add = parser.add_argument_group("output").add_argument
    add("--json", action="store_true", help="one JSON object on stdout, as described below")
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
    add_engine_flags(parser)


def add_input_flags(parser: argparse.ArgumentParser, item: str = "--item") -> None:
    """Add the flags that say what is in TRUTH and PREDICTION, and what is made of it; `item` is the column's."""
    add = parser.add_argument_group("input").add_argument
    add(
        "--table",
        metavar="PATH",
        help="one table with both labels of each item; TRUTH and PREDICTION are two of its columns",
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
        default="drop",
        metavar="POLICY",
        help="what to do with items that one side lacks: drop (default), raise, singleton, or outside (if "
        "only the prediction has them: they are not scored, but are false positives for the items they are "
        "clustered with); or truth=POLICY,prediction=POLICY",
    )
    add(
        "--nulls", default="raise", choices=("raise", "singleton", "drop"),
        help="what to do with items whose cluster is null (default: raise)",
    )  # fmt: skip
    add(
        "--duplicates", default="raise", choices=("raise", "drop"),
        help="what to do with rows that repeat an earlier one (default: raise)",
    )  # fmt: skip
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


def add_engine_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags that say where the work is done."""
    add = parser.add_argument_group("work").add_argument
    add(
        "--engine", choices=("memory", "disk"),
        help="where the work is done (default: disk for Parquet and Arrow files that would not fit in memory); "
        "overlapping clusterings are scored in memory only",
    )  # fmt: skip
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
    _add_work_flags(add, "threads to work with (default: all cores); the scores do not depend on it")


def add_generate_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags, one for each argument of `fastbcubed.synthetic.generate.generate`."""
    add = parser.add_argument
    add(
        "path", metavar="PATH", help="Parquet file to write, with both labels of each item: truth, prediction"
    )
    add(
        "--prediction-out", metavar="PATH",
        help="write two tables of item and cluster, the truth to the first PATH and the prediction to this "
        "one, with rows in different orders",
    )  # fmt: skip
    add(
        "--items",
        dest="n_items",
        type=_amount,
        default=1_000_000,
        metavar="N",
        help="number of items, such as 1e8 (default: 1e6)",
    )
    add(
        "--shape",
        default="er",
        choices=("er", "heavy", "singletons", "one_giant"),
        help="shape of the true clusters, see below (default: er)",
    )
    add("--seed", type=number, default=0, metavar="N", help="seed of the random numbers (default: 0)")
    add("--ids", default="int", choices=("int", "string"), help="type of items and labels (default: int)")
    add("--weights", action="store_true", help="add a column weight, uniform between 0.5 and 1.5")
    add("--attributes", action="store_true", help="add the columns country and year")
    add(
        "--row-group",
        type=_amount,
        default=1 << 20,
        metavar="N",
        help="rows of a row group (default: 1048576)",
    )
    add(
        "--compression", default="none", choices=("none", "snappy", "lz4", "zstd"),
        help="compression of the files (default: none)",
    )  # fmt: skip
    add("--overwrite", action="store_true", help="replace files that exist")
    _add_work_flags(
        parser.add_argument, "threads to work with (default: all cores); the files do not depend on it"
    )


def generate_arguments(options: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments of `fastbcubed.synthetic.generate.generate` that the flags stand for."""
    return {name: value for name, value in vars(options).items() if name != "run"}


def _add_work_flags(add: Any, threads: str) -> None:
    add("--threads", type=int, metavar="N", help=threads)
    add(
        "--progress", action=argparse.BooleanOptionalAction,
        help="show progress on stderr (default: on a terminal)",
    )  # fmt: skip


def add_constraints_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of ``fastbcubed constraints``."""
    add = parser.add_argument
    add(
        "--metric", "--metrics", dest="metrics", action="append", metavar="NAME,...",
        help="scores or families (default: every score that has a direction); repeatable",
    )  # fmt: skip
    add(
        "--random", dest="n_random", type=number, default=20, metavar="N",
        help="random instances of each check, after the small ones (default: 20)",
    )  # fmt: skip
    add("--seed", type=number, default=0, metavar="N", help="seed of the random instances (default: 0)")
    add("--examples", action="store_true", help="show the smallest counterexample of each verdict")
    add("--json", action="store_true", help="one JSON object, counterexamples included")


def constraints_arguments(options: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments of `fastbcubed.constraints.table` that the flags stand for."""
    names = None
    if options.metrics is not None:
        names = _scores(options.metrics)
    return {"metrics": names, "n_random": options.n_random, "seed": options.seed}


def evaluate_arguments(options: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments of `fastbcubed.evaluate` that the flags stand for."""
    given = {name: value for name, value in vars(options).items() if name not in GATE_FLAGS}
    for name in ("run", "json", "worst", "show", "order_by", "verify", "slice_pairs"):
        given.pop(name, None)
    if (options.show or options.verify or options.slice_pairs) and options.out is None:
        given["keep"] = "items"
    given["item"] = _columns(options.item, "item")
    given["cluster"] = _columns(options.cluster, "cluster")
    if options.table is not None:
        given["truth"], given["prediction"] = (_names(options.truth), _names(options.prediction))
    given["weight"] = _weight(options.weight)
    given["slices"] = [_slice(text) for text in options.slices]
    if options.metrics is not None:
        given["metrics"] = _scores(options.metrics)
    given["unmatched"] = _policy(options.unmatched)
    given["noise"] = _label(options.noise)
    return given


def _names(text: str) -> str | list[str]:
    names = [plain(name) for name in split(text, "+")]
    return names[0] if len(names) == 1 else names


def _columns(text: str, flag: str) -> Any:
    sides = [_names(side) for side in split(text, ",")]
    if len(sides) > 2 or "" in sides or any("" in side for side in sides if isinstance(side, list)):
        raise OptionError(
            f"--{flag} is a column, a pair of columns (truth's,prediction's), or columns joined by + that "
            f"are one id, not {text!r}"
        )
    return sides[0] if len(sides) == 1 else tuple(sides)


def _scores(texts: list[str]) -> list[str]:
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
    from fastbcubed.sources.formats import SUFFIXES
    from fastbcubed.sources.locations import is_uri

    if is_uri(text):
        return open_files(text)
    endings = tuple(ending for several in SUFFIXES.values() for ending in several)
    apart = os.sep in text or (os.altsep is not None and os.altsep in text)
    is_file = text.lower().endswith(endings) or (apart and os.path.exists(text))
    return Path(text) if is_file else text


def _policy(text: str) -> str | dict[str, str]:
    if "=" not in text:
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


def _amount(text: str) -> int:
    try:
        value = float(text)
        if value >= 1 and value == int(value):
            return int(text) if text.isdigit() else int(value)
    except (ValueError, OverflowError):
        pass
    raise argparse.ArgumentTypeError(f"{text!r} is not a whole number, 1 or more, such as 1e6")
