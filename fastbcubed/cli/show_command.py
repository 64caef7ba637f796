"""``fastbcubed show``: clusters and items opened, from a saved result or from two inputs."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fastbcubed.cli.options import WORST_LISTED, add_options, number
from fastbcubed.cli.output import Terminal, print_document, print_json
from fastbcubed.cli.result_or_inputs import (
    add_flags_of_inputs,
    add_paths,
    is_saved,
    require_items,
    result_of,
)
from fastbcubed.errors import Argument, NotKeptError, OptionError, rewording
from fastbcubed.runtime.suggestions import plain, split

if TYPE_CHECKING:
    from fastbcubed.diff_runs.diff_result import Diff
    from fastbcubed.results.evaluation import Evaluation

#: Flags of show itself, unlike those of the inputs.
OWN = ("pred", "true", "items", "columns", "members")
FLAGS = {"pred": "--pred", "true": "--true", "item": "--item"}


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of ``fastbcubed show``."""
    add_paths(
        parser,
        "a directory written by --out of evaluate, diff, compare or another command, shown whole if you "
        "name nothing to open",
    )
    group = parser.add_argument_group("what to open")
    add = group.add_argument
    many: dict[str, Any] = {"action": "append", "default": [], "metavar": "ID"}
    add(
        "--pred",
        "--experiment",
        dest="pred",
        **many,
        help="predicted or experiment cluster to open; repeatable",
    )
    add("--true", "--baseline", dest="true", **many, help="true or baseline cluster to open; repeatable")
    add("--item", dest="items", action="append", default=[], metavar="ID", help="item to open; repeatable")
    add(
        "--columns", metavar="NAME,...",
        help="attributes to show next to the members\ndefault: the first few for clusters, none for items",
    )  # fmt: skip
    add(
        "--members", type=number, metavar="N",
        help="number of members to show\nper cluster (default: 20), or per tp, fp, fn, tn of an item (default: 5)",
    )  # fmt: skip
    add_options(group, "json")
    add_flags_of_inputs(parser, group, "item_column")


def run(options: argparse.Namespace) -> int:
    """Print the requested clusters and items, opened; if none are requested, print the whole saved result."""
    if is_saved(options) and not _wanted(options):
        found = _result(options)
        print_json(found.to_json()) if options.json else _print_whole(found)
        return 0
    opened = open_all(options)
    if options.json:
        from fastbcubed.render.json import as_json

        print_json(as_json({"opened": opened}))
    else:
        Terminal().show(block for each in opened for block in each._document().blocks)
    return 0


def open_all(options: argparse.Namespace) -> list[Any]:
    """Return the requested clusters and items, opened."""
    if not _wanted(options):
        raise OptionError("name what to open: --pred ID, --true ID or --item ID")
    found = _result(options)
    ev, sides = _as_evaluation(found)
    columns = None if options.columns is None else [plain(name) for name in split(options.columns, ",")]
    of_clusters: dict[str, Any] = {"columns": columns}
    if options.members is not None:
        of_clusters["members"] = options.members
    opened: list[Any] = []
    for side, texts in (("pred", options.pred), ("true", options.true)):
        opened += [found.cluster(sides[side], as_id(ev, side, text), **of_clusters) for text in texts]
    of_items = {**of_clusters, "columns": columns or ()}
    return opened + [found.item(as_id(ev, "item", text), **of_items) for text in options.items]


def _wanted(options: argparse.Namespace) -> list[str]:
    return [*options.pred, *options.true, *options.items]


def _as_evaluation(found: Evaluation | Diff) -> tuple[Evaluation, dict[str, str]]:
    """Return the evaluation that a result is or contains, and what it calls the sides."""
    from fastbcubed.results.evaluation import Evaluation

    if isinstance(found, Evaluation):
        return found, {"pred": "pred", "true": "true"}
    return found.evaluation, {"pred": "experiment", "true": "baseline"}


def _result(options: argparse.Namespace) -> Any:
    """Return the named result, or evaluate the inputs."""
    with rewording(_of_show):
        found = result_of(options, OWN, "item-column")
    if is_saved(options) and _wanted(options):
        import fastbcubed as fb

        (path,) = options.paths
        if not isinstance(found, fb.Evaluation | fb.Diff):
            raise NotKeptError(
                f"{path} has no clusters or items to open; to show the result itself, omit --pred, --true "
                "and --item"
            )
        command = "diff" if isinstance(found, fb.Diff) else "evaluate"
        require_items(_as_evaluation(found)[0], path, "nothing can be opened", command)
    return found


def _of_show(part: Any) -> Any:
    """Return a part of a message in which --item-column names the item column, as --item names an item."""
    return replace(part, name="item_column") if isinstance(part, Argument) and part.name == "item" else part


def as_id(ev: Evaluation, kind: str, text: str) -> Any:
    """Return a side's label or an item id, converted from text to the type of its column."""
    import numpy as np
    import pyarrow as pa

    none = np.empty(0, np.int64)
    items = ev.kept_items()
    own = (items.ids(none) if kind == "item" else items.labels(kind, none)).type
    own = own.value_type if pa.types.is_large_list(own) else own
    if not pa.types.is_struct(own):
        return _value(text, own, FLAGS[kind])
    parts = split(text, ",")
    if len(parts) != own.num_fields:
        names = ", ".join(field.name for field in own.fields)
        raise OptionError(
            f"{FLAGS[kind]} {text}: an id has {own.num_fields} parts ({names}), separated by commas"
        )
    return tuple(
        _value(plain(part), field.type, FLAGS[kind]) for part, field in zip(parts, own.fields, strict=True)
    )


def _value(text: str, kind: Any, flag: str) -> Any:
    from fastbcubed.inputs.arrays import id_kind, plain_type

    found = id_kind(plain_type(kind), flag)
    try:
        if found == "integer":
            return int(text)
        return bytes.fromhex(text.replace("-", "")) if found == "binary" else text
    except ValueError:
        wanted = "an integer" if found == "integer" else "hexadecimal digits"
        raise OptionError(f"{flag} {text}: {wanted} is needed, as the column has {kind}") from None


# Text output


def _print_whole(found: Any) -> None:
    """Print a saved result in the same form as the command that made it."""
    import fastbcubed as fb

    terminal = Terminal()
    if isinstance(found, fb.Evaluation | fb.Diff | fb.Comparison):
        print_document(found, terminal, WORST_LISTED)
    elif isinstance(found, fb.Sweep):
        from fastbcubed.cli.sweep_command import print_sweep

        print_sweep(found, found._leading, terminal)
    else:
        terminal.show(found._document().blocks)
