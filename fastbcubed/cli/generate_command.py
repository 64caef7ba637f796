"""``fastbcubed generate``: write synthetic clusterings."""

from __future__ import annotations

import argparse
import os
from typing import Any

from fastbcubed.cli.options import add_options
from fastbcubed.cli.output import say
from fastbcubed.render.number_formats import counted


def run(options: argparse.Namespace) -> int:
    """Write the files, and report their contents."""
    from fastbcubed.synthetic.generate import generate

    generate(**generate_arguments(options))
    for path in filter(None, (options.path, options.prediction_out)):
        say(f"wrote {path}: {counted(options.n_items, 'row')}, {os.path.getsize(path):,} bytes")
    return 0


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags, one for each argument of `fastbcubed.synthetic.generate.generate`."""
    add = parser.add_argument
    what = "Parquet file to write, with both labels of each item: truth, prediction"
    add("path", metavar="PATH", help=what)
    add(
        "--prediction-out", metavar="PATH",
        help="write two tables of item and cluster, the truth to the first PATH and the prediction to this "
        "one, with rows in different orders",
    )  # fmt: skip
    items, shape = (
        "number of items, such as 1e8 (default: 1e6)",
        "shape of the true clusters, see below (default: er)",
    )
    add("--items", dest="n_items", type=_amount, default=1_000_000, metavar="N", help=items)
    add("--shape", default="er", choices=("er", "heavy", "singletons", "one_giant"), help=shape)
    add_options(parser, "seed", seed="random numbers")
    add("--ids", default="int", choices=("int", "string"), help="type of items and labels (default: int)")
    add("--weights", action="store_true", help="add a column weight, uniform between 0.5 and 1.5")
    add("--attributes", action="store_true", help="add the columns country and year")
    group = "rows of a row group (default: 1048576)"
    add("--row-group", type=_amount, default=1 << 20, metavar="N", help=group)
    add(
        "--compression", default="none", choices=("none", "snappy", "lz4", "zstd"),
        help="compression of the files (default: none)",
    )  # fmt: skip
    add_options(parser, "overwrite threads progress", results="files do")


def generate_arguments(options: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments of `fastbcubed.synthetic.generate.generate` for the flags."""
    return {name: value for name, value in vars(options).items() if name != "run"}


def _amount(text: str) -> int:
    try:
        value = float(text)
        if value >= 1 and value == int(value):
            return int(text) if text.isdigit() else int(value)
    except (ValueError, OverflowError):
        pass
    raise argparse.ArgumentTypeError(f"{text!r} is not a whole number, 1 or more, such as 1e6")
