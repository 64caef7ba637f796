"""Conversion of flags, shared by several commands, into arguments of the library."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from inspect import signature
from typing import TYPE_CHECKING, Any

from fastbcubed.cli.options import LINK_FLAGS, WORST_LISTED
from fastbcubed.cli.output import say, warnings_said, with_scores
from fastbcubed.errors import Argument, OptionError, quoted, rewording
from fastbcubed.inputs.typed_columns import Unnamed
from fastbcubed.results.slice_bins import element_of
from fastbcubed.runtime.arguments import path_of
from fastbcubed.runtime.suggestions import plain, split

if TYPE_CHECKING:
    from fastbcubed.inputs.link_columns import LinkColumns


def arguments_of(function: Callable[..., Any], options: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments of a library function that have flags of the same name, as given."""
    return {name: getattr(options, name) for name in signature(function).parameters if hasattr(options, name)}


def evaluate_arguments(options: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments of `fastbcubed.evaluate` for the flags."""
    given = input_arguments(options)
    if (options.show or options.slice_pairs or options.report) and options.out is None:
        given["keep"] = "items"
    elif options.keep is None and (
        options.worst != WORST_LISTED or options.order_by != LOSS or options.repairs
    ):
        given["keep"] = "cells"  # needed for the requested listings
    return given


def input_arguments(options: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments of `fastbcubed.evaluate`, with `keep` as given even if the output needs more."""
    import fastbcubed

    given = arguments_of(fastbcubed.evaluate, options)
    if options.table is not None:
        given["truth"], given["prediction"] = column_names(options.truth), column_names(options.prediction)
    return given | read_flags(options)


def read_flags(
    options: argparse.Namespace, sides: tuple[str, ...] = ("truth's", "prediction's")
) -> dict[str, Any]:
    """Return the arguments of `fastbcubed.evaluate` for flags whose values are to be converted."""
    given: dict[str, Any] = {
        "item": columns_of_sides(options.item, "item", sides),
        "cluster": columns_of_sides(options.cluster, "cluster", sides),
        "weight": _weight(options.weight),
        "slices": [slice_key(text) for text in options.slices],
        "unmatched": options.unmatched,
        "noise": _noise(options.noise),
    }
    if options.unmatched is not None and "=" in options.unmatched:
        pairs = [part.partition("=") for part in split(options.unmatched, ",")]
        given["unmatched"] = {side.strip(): policy.strip() for side, _, policy in pairs}
    if options.metrics is not None:
        given["metrics"] = score_names(options.metrics)
    return given


#: A noise label for one side.
_OF_SIDE = re.compile("(truth|prediction|baseline|experiment)=(.*)")


def _noise(text: str | None) -> Any:
    """Return the noise label, or a dict of noise labels by side if sides are named."""
    parts = [] if text is None else [_OF_SIDE.fullmatch(part) for part in split(text, ",")]
    if not parts or None in parts:
        return _label(text)
    return {found[1]: _label(found[2]) for found in parts if found is not None}


def column_names(text: str) -> str | list[str]:
    """Return the column that a text names, or the list of columns of a composite id; a default unchanged."""
    if isinstance(text, Unnamed):
        return text
    names = [plain(name) for name in split(text, "+")]
    return names[0] if len(names) == 1 else names


def columns_of_sides(text: str, flag: str, sides: tuple[str, ...] = ("truth's", "prediction's")) -> Any:
    """Return the column for all sides, or a tuple with one per side; sides left empty are None."""
    found: list[Any] = (
        [text] if isinstance(text, Unnamed) else [column_names(side) for side in split(text, ",")]
    )
    if (
        len(found) > len(sides)
        or not any(found)
        or any("" in side for side in found if isinstance(side, list))
    ):
        several = "a pair of columns" if len(sides) == 2 else "a column of each side"
        raise OptionError(
            f"--{flag} takes a column, {several} ({','.join(sides)}), or columns joined by + that form one "
            f"id, not {quoted(text)}"
        )
    return found[0] if len(found) == 1 else tuple(side or None for side in found)


def columns_by_run(of_sides: Any, given: Sequence[str], flag: str, runs: Sequence[str]) -> Any:
    """Return the columns of the truth and of the runs, where those given for single runs replace the common one."""
    if not given:
        return of_sides
    of_truth, of_runs = of_sides if isinstance(of_sides, tuple) else (of_sides, of_sides)
    found = {} if of_runs is None or isinstance(of_runs, Unnamed) else dict.fromkeys(runs, of_runs)
    for text in given:
        run, sign, column = text.partition("=")
        if not (run and sign and column):
            raise OptionError(f"--run-{flag} takes RUN=COLUMN, not {quoted(text)}")
        found[run] = column_names(column)
    return None if isinstance(of_truth, Unnamed) else of_truth, found


def score_names(texts: list[str]) -> list[str]:
    """Return the score names in the values of a repeatable flag."""
    names = [name for text in texts for name in split(text, ",")]
    if "" in names:
        raise OptionError(
            "--metric takes one score or family, or several separated by commas; one of them is empty"
        )
    return names


def slice_key(text: str) -> Any:
    """Return the slicing key that a value of ``--slice`` stands for."""
    found = [element_of(part) for part in split(text, ",")]
    if "" in found or len(set(map(str, found))) < len(found):
        raise OptionError(
            "--slice takes an attribute, bins such as year:10, or different attributes to cross, such as "
            f"country,year, not {quoted(text)}"
        )
    return key_of(text)


def key_of(text: str) -> Any:
    """Return the slicing key that a text in the syntax of ``--slice`` stands for."""
    found = tuple(element_of(part) for part in split(text, ","))
    return found[0] if len(found) == 1 else found


def _weight(text: str | None) -> Any:
    """Return a column name unchanged, the name of a file as a path, and a URI as the table it refers to."""
    if text is None:
        return None
    from pathlib import Path

    from fastbcubed.inputs.file_formats import ENDS
    from fastbcubed.inputs.files import open_files
    from fastbcubed.inputs.locations import is_uri

    if is_uri(text):
        return open_files(text)
    apart = os.sep in text or (os.altsep is not None and os.altsep in text)
    is_file = text.lower().endswith(ENDS) or (apart and os.path.exists(text))
    return Path(path_of(text)) if is_file else text


def _label(text: str | None) -> int | str | None:
    """Return an integer if the text is one, else the text; `call` tries again with text if labels are strings."""
    if text is None or re.fullmatch(r"[+-]?\d+", text) is None:
        return text
    return int(text)


def columns_of(text: str | None) -> str | list[str] | None:
    """Return the column, or the columns of a composite id, that a flag names; None if it was not given."""
    return None if text is None else column_names(text)


def read_as(columns: LinkColumns) -> str:
    """Return text that says which column was read for each part of a link."""
    items = {"left": " + ".join(columns.left), "right": " + ".join(columns.right)}
    read = {**items, "score": columns.score, "verdict": columns.verdict}
    return ", ".join(f"{part} = {name}" for part, name in read.items() if name)


def numbers_of(texts: list[str] | None) -> list[float]:
    """Return the thresholds in the values of a repeatable flag."""
    try:
        return [float(part) for text in texts or () for part in split(text, ",")]
    except ValueError:
        raise OptionError(
            f"--threshold takes a number, or several separated by commas, not {quoted(', '.join(texts or ()))}"
        ) from None


def with_links(arguments: dict[str, Any], options: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments of `evaluate`, with links replaced by a clustering if flags declare any."""
    side = options.links
    if side is None:
        for name in LINK_FLAGS:
            if (value := getattr(options, name)) is not None and (
                value is not False or name in ("verdict", "sources")
            ):
                flag = "link_sources" if name == "sources" else name
                raise OptionError(f"--{flag.replace('_', '-')} goes with --links")
        return arguments
    if arguments["table"] is not None:
        raise OptionError("--links needs two inputs, but with --table both sides are columns of one table")
    from fastbcubed.inputs.clustering import Clustering
    from fastbcubed.inputs.side_columns import per_side

    made: dict[str, Any] = {}
    for k, each in enumerate(("truth", "prediction")):
        if side not in (each, "both"):
            continue
        parts = ("link_left", "link_right", "link_score", "verdict")
        left, right, score, verdict = (_of_side(options, name, k) for name in parts)
        scored = side != "both" or each == "prediction"
        with rewording(_of_links), warnings_said():
            of_items: dict[str, Any] = (
                {} if options.link_items is None else {"item": per_side(arguments["item"], "item")[k]}
            )
            made[each] = Clustering.from_links(
                arguments[each], left, right, score=score, threshold=options.threshold if scored else None,
                ascending=options.ascending and scored, verdict=verdict, sources=options.sources,
                items=options.link_items, memory_limit=options.memory_limit, **of_items,
            )  # fmt: skip
    item = arguments["item"]
    if isinstance(item, tuple) and options.link_items is not None:  # read with the links
        item = tuple(
            None if side in made else own for side, own in zip(("truth", "prediction"), item, strict=True)
        )
    return {**arguments, **made, "item": item}


def _of_side(options: argparse.Namespace, part: str, k: int) -> Any:
    """Return the column of a part of links for side `k`; if both sides are links, the flag may name a pair."""
    given = getattr(options, part)
    if options.links != "both" or given is None:
        return columns_of(given) if part in ("link_left", "link_right") else given
    of_sides = columns_of_sides(given, part.replace("_", "-"))
    return of_sides[k] if isinstance(of_sides, tuple) else of_sides


def _of_links(part: Any) -> Any:
    """Return a part of a message with flags for links as named by commands that also accept clusterings."""
    is_of_links = isinstance(part, Argument) and part.name in ("left", "right", "score", "items")
    return replace(part, name=f"link_{part.name}") if is_of_links else part


#: The default order of clusters and slices, and an order of slices only.
LOSS, EXCESS = "loss", "excess"


def with_order(arguments: dict[str, Any], asked: str) -> tuple[dict[str, Any], str | None]:
    """Return the arguments of `evaluate` with the score to order by included, and its name; None for the loss."""
    from fastbcubed.metrics.registry import resolve

    if asked in (LOSS, EXCESS):
        return arguments, None if asked == LOSS else EXCESS
    found = resolve([asked])[0]
    if len(found) > 1 or found[0].overall_only:
        what = (
            f"a family of {len(found)} scores"
            if len(found) > 1
            else "a score of all items at once, not of single clusters"
        )
        raise OptionError(f"--order-by {asked} is {what}; name a mean over items, such as f1, or {LOSS}")
    name = found[0].alias_of or found[0].name
    return with_scores(arguments, [name]), name


#: Number of clusters of each side on a page, and of members of each.
WORST, MEMBERS = 20, 10


def check_report(options: argparse.Namespace) -> None:
    """Raise, before the work starts, if a report cannot be made or a result cannot be written."""
    for name in ("report_columns", "report_explain") if options.report is None else ():
        if getattr(options, name, None) is not None:
            raise OptionError(f"--{name.replace('_', '-')} goes with --report")
    explain_of(getattr(options, "report_explain", None))
    if options.report is not None:
        from fastbcubed.results.page import require_packages, require_place

        require_packages("--report")
        require_place(options.report, overwrite=True)
    if getattr(options, "out", None) is not None:
        from pathlib import Path

        from fastbcubed.runtime.output_files import require_writable

        require_writable(Path(path_of(options.out)))


def say_saved(directory: str) -> None:
    """Print the directory of a saved result, and how to load it in Python."""
    say(f"wrote {directory}; in Python, load it with fastbcubed.load({directory!r})")


def explain_of(text: str | None, flag: str = "--report-explain") -> Any:
    """Return the argument `explain` of `report`: None without the flag, True for all attributes, or a list."""
    return None if text is None else True if text == "" else attributes_of([text], flag)


def attributes_of(texts: Sequence[str], flag: str) -> list[Any]:
    """Return the attributes, or bins of attributes, in the values of a repeatable flag."""
    found = [element_of(name) for text in texts for name in split(text, ",")]
    if "" in found:
        raise OptionError(f"{flag} takes one attribute or several separated by commas; one of them is empty")
    return found


def report_columns(text: str | None) -> list[str]:
    """Return the attributes that a flag names."""
    return [] if text is None else [plain(name) for name in split(text, ",")]
