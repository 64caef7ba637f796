"""Flags of ``fastbcubed evaluate`` → arguments of `fastbcubed.evaluate`, and the way back for messages."""

from __future__ import annotations

import argparse
import os
import re
from typing import Any

from fastbcubed.errors import OptionError
from fastbcubed.overlap.covers import MAX_PAIRS

__all__ = [
    "NOTES",
    "SHAPES",
    "WARM_UP",
    "add_constraints_flags",
    "add_evaluate_flags",
    "add_generate_flags",
    "constraints_arguments",
    "evaluate_arguments",
    "generate_arguments",
    "in_flags",
]

NOTES = """\
Names of columns
  a,b             the truth's and the prediction's          --item id,rec_id
  a+b             several columns that are one id           --item source+number
  both            each side may have several                --item source+number,src+no
  A comma or plus in a name is written \\, or \\+.
  A default name that a table lacks stands for the only column left.

Tables elsewhere
  s3://bucket/run7/*.parquet, gs://..., abfs://..., hdfs://... and file:///... as pyarrow knows them, options
  as in s3://bucket/truth.parquet?region=eu-west-1; other schemes through fsspec, where it is installed.

Examples
  fastbcubed evaluate truth.parquet pred.parquet --weight w --slice country --slice country,year
  fastbcubed evaluate true_label pred_label --table items.parquet --metric all
  fastbcubed evaluate truth.parquet 'run7/*.parquet' --json | jq .overall.f1
  fastbcubed evaluate truth.csv pred.csv --fail-under f1=0.9 --fail-under precision=0.95

JSON (--json): one object. Later versions may add keys; these stay.
  fastbcubed      version                    truth, prediction   what was compared
  definition      average, overlapping, weighted, weighting, beta,
                  unmatched {truth, prediction}, nulls, duplicates, noise; of CICE-BCubed match, similarity
  overall         score -> number, null where it is not defined
  coverage        n_common, n_truth_only, n_prediction_only, the same as weight_..., n_null, n_noise,
                  n_duplicates, truth_coverage, prediction_coverage,
                  bounds {precision_lower, precision_upper, unlabelled_mates}
  summary         true, pred -> items, clusters, singletons, largest, size_quantiles, exact
  slices          slicing -> list of {its attributes, n_items, weight, scores}
  warnings        list of {code, message, figures}
  not_computed    score of a family -> reason
"""

WARM_UP = """\
Compile the kernels and keep them, so that no evaluation has to wait for that: when the image of a
container is built, for example with this line of a Dockerfile.

  RUN pip install fastbcubed && fastbcubed warm-up

The kernels are kept in the directory that NUMBA_CACHE_DIR names, else beside the installed package, else
in ~/.cache/numba. If NUMBA_CACHE_DIR is set, set it to the same directory when the container runs. The kernels
are found there even if the container may not write to it. They serve the kind of processor that they were
compiled on; if NUMBA_CPU_NAME=generic is set both times, they serve any.
"""

SHAPES = """\
Shapes (of the true clusters)
  er              sizes geometric with mean 2.5, as in entity resolution
  heavy           sizes Zipf with exponent 1.9, at most 5 % of all items
  singletons      one item each
  one_giant       one with half of all items, the rest as in er
  The prediction splits 15 % of them in two (as far as they have two items) and puts 10 % into another
  one; it leaves the giant as it is. The same seed, shape and number of items give the same rows.

Examples
  fastbcubed generate items.parquet --items 1e9
  fastbcubed evaluate truth prediction --table items.parquet
  fastbcubed generate truth.parquet --prediction-out pred.parquet --items 1e8 --ids string --attributes
  fastbcubed evaluate truth.parquet pred.parquet --slice country
"""


def add_evaluate_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags, one for each argument of `fastbcubed.evaluate` and some of the command line's own."""
    add = parser.add_argument
    files = "file, glob or directory (Parquet, Arrow IPC, CSV), by path or URI; with --table a column"
    add("truth", metavar="TRUTH", help=files)
    add("prediction", metavar="PREDICTION", help=files)

    add = parser.add_argument_group("input").add_argument
    add("--table", metavar="PATH", help="one table that has both labels of each item")
    add("--item", default="item", metavar="NAME", help="column of item ids (default: item); see below")
    add("--cluster", default="cluster", metavar="NAME", help="column of clusters (default: cluster)")
    add(
        "--weight",
        metavar="NAME",
        help="column of weights, or a file of item and weight: a name that ends like one (.parquet, "
        ".csv, ...), a path with a slash, or a URI",
    )
    add("--attributes", metavar="PATH", help="table of further columns to slice by, joined by item")
    add(
        "--unmatched",
        default="drop",
        metavar="POLICY",
        help="items that one side lacks: drop (default), raise, singleton, outside (for the "
        "prediction's: wrong company for their mates); or truth=POLICY,prediction=POLICY",
    )
    add("--nulls", default="raise", choices=("raise", "singleton", "drop"), help="items with a null cluster")
    add("--duplicates", default="raise", choices=("raise", "drop"), help="rows that repeat an earlier one")
    add("--noise", metavar="LABEL", help="a label, such as -1, whose items are each alone")
    add(
        "--overlapping", action="store_true",
        help="items may be in several clusters: a row per membership; the scores are Extended BCubed's",
    )  # fmt: skip
    add(
        "--max-pairs", type=float, default=MAX_PAIRS, metavar="N",
        help=f"with --overlapping, how many pairs of cells to compare at most (default: {MAX_PAIRS:.0e})",
    )  # fmt: skip

    add = parser.add_argument_group("scores").add_argument
    add(
        "--metric", "--metrics", dest="metrics", action="append", metavar="NAME,...",
        help="scores, families, or all (see: fastbcubed metrics); repeatable",
    )  # fmt: skip
    add("--beta", type=float, default=1.0, help="weight of recall in F; other than 1 adds fbeta, mean_fbeta")
    add(
        "--weighting", default="pointwise", choices=("pointwise", "outer"),
        help="weights count in each confusion matrix and in the mean, or in the mean alone",
    )  # fmt: skip
    add(
        "--slice", "--slices", dest="slices", action="append", metavar="NAME", default=[],
        help="score by an attribute, or by several crossed: country,year; repeatable. true_size and "
        "pred_size (of the cluster, in powers of two) are always there",
    )  # fmt: skip

    add = parser.add_argument_group("output").add_argument
    add("--json", action="store_true", help="one JSON object on stdout, as described below")
    add(
        "--worst", type=_number, default=5, metavar="N",
        help="how many of the worst clusters of each side, and slices, to list (default: 5)",
    )  # fmt: skip
    add("--out", metavar="DIR", help="write the result there, as JSON and Parquet files")
    add(
        "--keep", default="cells", choices=("scores", "cells", "items"),
        help="how much of it to write to --out (default: cells); items allows later slices",
    )  # fmt: skip
    add(
        "--fail-under", type=_bound, action="append", default=[], metavar="SCORE=VALUE",
        help="exit with 1 if a score is less than a value; repeatable",
    )  # fmt: skip
    add(
        "--fail-over", type=_bound, action="append", default=[], metavar="SCORE=VALUE",
        help="exit with 1 if a score is more, for losses such as jaccard_distance; repeatable",
    )  # fmt: skip

    add = parser.add_argument_group("work").add_argument
    add(
        "--engine", choices=("memory", "disk"),
        help="where the work is done (default: disk for Parquet and Arrow files that would not fit in memory). "
        "The disk engine does not serve overlapping clusterings",
    )  # fmt: skip
    add("--memory-limit", metavar="SIZE", help="such as 2GiB (default: half of what is available)")
    add("--spill-dir", metavar="DIR", help="where to spill (default: /var/tmp)")
    _add_work_flags(add, "all cores when absent; scores do not depend on it")


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
        help="such as 1e8 (default: 1e6)",
    )
    add(
        "--shape",
        default="er",
        choices=("er", "heavy", "singletons", "one_giant"),
        help="default: er; see below",
    )
    add("--seed", type=_number, default=0, metavar="N", help="default: 0")
    add("--ids", default="int", choices=("int", "string"), help="type of items and labels (default: int)")
    add("--weights", action="store_true", help="add a column weight, uniform between 0.5 and 1.5")
    add("--attributes", action="store_true", help="add the columns country and year")
    add("--row-group", type=_amount, default=1 << 20, metavar="N", help="rows of a row group (default: 2^20)")
    add("--compression", default="none", choices=("none", "snappy", "lz4", "zstd"), help="default: none")
    add("--overwrite", action="store_true", help="replace files that exist")
    _add_work_flags(parser.add_argument, "all cores when absent; the files do not depend on it")


def generate_arguments(options: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments of `fastbcubed.synthetic.generate.generate` that the flags stand for.

    Parameters
    ----------
    options : argparse.Namespace
        The flags of ``fastbcubed generate``.
    """
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
        "--random", dest="n_random", type=_number, default=20, metavar="N",
        help="random instances of each check, after the small ones (default: 20)",
    )  # fmt: skip
    add("--seed", type=_number, default=0, metavar="N", help="of the random instances (default: 0)")
    add("--examples", action="store_true", help="show the smallest counterexample of each verdict")
    add("--json", action="store_true", help="one JSON object, counterexamples included")


def constraints_arguments(options: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments of `fastbcubed.constraints.table` that the flags stand for."""
    names = None
    if options.metrics is not None:
        names = [name for text in options.metrics for name in _split(text, ",")]
    return {"metrics": names, "n_random": options.n_random, "seed": options.seed}


def evaluate_arguments(options: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments of `fastbcubed.evaluate` that the flags stand for.

    Parameters
    ----------
    options : argparse.Namespace
        The flags of ``fastbcubed evaluate``.
    """
    given = dict(vars(options))
    for name in ("run", "json", "worst", "fail_under", "fail_over"):
        del given[name]
    given["item"] = _columns(options.item, "item")
    given["cluster"] = _columns(options.cluster, "cluster")
    if options.table is not None:
        given["truth"], given["prediction"] = (_names(options.truth), _names(options.prediction))
    given["weight"] = _weight(options.weight)
    given["slices"] = [_slice(text) for text in options.slices]
    if options.metrics is not None:
        given["metrics"] = [name for text in options.metrics for name in _split(text, ",")]
    given["unmatched"] = _policy(options.unmatched)
    given["noise"] = _label(options.noise)
    return given


def _split(text: str, mark: str) -> list[str]:
    r"""Split at a mark, unless a backslash is before it.

    Examples
    --------
    >>> _split(r"a,b\,c,d", ",")
    ['a', 'b\\,c', 'd']
    """
    return [part.strip() for part in re.split(rf"(?<!\\){re.escape(mark)}", text)]


def _plain(text: str) -> str:
    return re.sub(r"\\([,+\\])", r"\1", text)


def _names(text: str) -> str | list[str]:
    names = [_plain(name) for name in _split(text, "+")]
    return names[0] if len(names) == 1 else names


def _columns(text: str, flag: str) -> Any:
    sides = [_names(side) for side in _split(text, ",")]
    if len(sides) > 2 or "" in sides or any("" in side for side in sides if isinstance(side, list)):
        raise OptionError(
            f"--{flag} is a column, a pair of columns (truth's,prediction's), or columns joined by + that "
            f"are one id, not {text!r}"
        )
    return sides[0] if len(sides) == 1 else tuple(sides)


def _slice(text: str) -> str | tuple[str, ...]:
    names = [_plain(name) for name in _split(text, ",")]
    return names[0] if len(names) == 1 else tuple(names)


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
    pairs = [part.partition("=") for part in _split(text, ",")]
    return {side.strip(): policy.strip() for side, _, policy in pairs}


def _label(text: str | None) -> int | str | None:
    """Return an integer where the text is one; `_call_evaluate` finds out whether labels are strings."""
    if text is None or re.fullmatch(r"[+-]?\d+", text) is None:
        return text
    return int(text)


def _number(text: str) -> int:
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


def _bound(text: str) -> tuple[str, float]:
    name, _, value = text.partition("=")
    try:
        return name.strip(), float(value)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form SCORE=VALUE, such as f1=0.9") from None


_FLAGS = {
    "slices": "slice",
    "metrics": "metric",
    "memory_limit": "memory-limit",
    "spill_dir": "spill-dir",
}
_KEYWORD = re.compile(
    r"\b(item|cluster|weight|slices|attributes|metrics|beta|weighting|unmatched|nulls|duplicates|noise|table|"
    r"out|keep|engine|memory_limit|spill_dir|threads|progress|overwrite|overlapping|max_pairs)="
    r'(?:"([^"]*)"|\{([^}]*)\}|True\b|(?<=max_pairs=)(\d[\d.]*(?:e[+-]?\d+)?)|(?=[\s.,;)]|$))'
)


def in_flags(message: str) -> str:
    """Return a message of the library with keyword arguments written as flags.

    Examples
    --------
    >>> in_flags('Pass unmatched="drop" or unmatched={"prediction": "outside"}.')
    'Pass --unmatched drop or --unmatched prediction=outside.'
    """

    def flag(found: re.Match[str]) -> str:
        name, value, several, number = found.groups()
        value = value or number
        if several is not None:
            value = re.sub(r'"(\w+)": "(\w+)"', r"\1=\2", several).replace(", ", ",")
        return f"--{_FLAGS.get(name, name).replace('_', '-')}{f' {value}' if value else ''}"

    return re.sub(r'(?<=--)(\w+ \w+) or "(\w+)"', r"\1 or \2", _KEYWORD.sub(flag, message))
