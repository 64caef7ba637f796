"""Flags that say that an input is links, and how they are read."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from fastbcubed.cli.flags import LINK_FLAGS, column_names
from fastbcubed.cli.rewording import in_flags
from fastbcubed.cli.saying import say
from fastbcubed.errors import EvaluationWarning, FastBCubedError, OptionError
from fastbcubed.sources.marks import split

if TYPE_CHECKING:
    from fastbcubed.sources.link_columns import LinkColumns


def add_link_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags that say that TRUTH or PREDICTION is links."""
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
    """Add the flags that say what is in links."""
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
    """Return the column, or the columns of a composite id, that a flag names, if it is given."""
    return None if text is None else column_names(text)


def read_as(columns: LinkColumns) -> str:
    """Return which parts of a link were read from which columns."""
    read = {"left": " + ".join(columns.left), "right": " + ".join(columns.right), "score": columns.score}
    return ", ".join(f"{part} = {name}" for part, name in read.items() if name)


def numbers_of(texts: list[str] | None) -> list[float]:
    """Return the thresholds that a flag names, which may be repeated."""
    try:
        return [float(part) for text in texts or () for part in split(text, ",")]
    except ValueError:
        raise OptionError(
            f"--threshold is a number, or several with commas between them, not {', '.join(texts or ())!r}"
        ) from None


def with_links(arguments: dict[str, Any], options: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments of `evaluate`, with a clustering in place of the links that flags say there are."""
    side = options.links
    if side is None:
        for name in LINK_FLAGS:
            if getattr(options, name) not in (None, False):
                raise OptionError(f"--{name.replace('_', '-')} goes with --links")
        return arguments
    if arguments["table"] is not None:
        raise OptionError("--links goes with two inputs; with --table both are columns of one table")
    from fastbcubed.clusterings.clustering import Clustering

    item = arguments["item"]
    with _in_link_flags(), warnings_said():
        made = Clustering.from_links(
            arguments[side], columns_of(options.link_left), columns_of(options.link_right),
            score=options.link_score, threshold=options.threshold, ascending=options.ascending,
            items=options.link_items, item=item[side == "prediction"] if isinstance(item, tuple) else item,
            memory_limit=options.memory_limit,
        )  # fmt: skip
    return {**arguments, side: made}


@contextmanager
def warnings_said() -> Iterator[None]:
    """Say warnings as the command line does."""
    import warnings

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", EvaluationWarning)
        yield
    for each in caught:
        say(f"warning: {in_flags(str(each.message))}")


@contextmanager
def _in_link_flags() -> Iterator[None]:
    """Write arguments in errors as the flags of links beside those of other inputs."""
    try:
        yield
    except FastBCubedError as error:
        raise type(error)(
            re.sub(r"--(?=(left|right|score|items)\b)", "--link-", in_flags(str(error)))
        ) from error
