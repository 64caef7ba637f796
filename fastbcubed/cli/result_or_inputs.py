"""Positional arguments of commands on an evaluation: RESULT, or TRUTH and PREDICTION."""

from __future__ import annotations

import argparse
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from fastbcubed.cli.flag_values import input_arguments, with_links
from fastbcubed.cli.options import OR_COLUMNS, add_engine_flags, add_input_flags, add_link_flags, add_options
from fastbcubed.cli.output import call
from fastbcubed.errors import FileFormatError, NotKeptError, OptionError

if TYPE_CHECKING:
    from fastbcubed.results.evaluation import Evaluation

#: Flags of inputs that also apply to a saved result.
OF_BOTH = ("memory_limit", "threads", "progress")


def add_paths(parser: argparse.ArgumentParser, saved: str) -> None:
    """Add the positional arguments; `saved` describes the directories that are accepted."""
    parser.add_argument(
        "paths", nargs="+", metavar="RESULT|TRUTH PREDICTION", help=(
            f"a saved result, or both clusterings\n{saved}; or both clusterings: {OR_COLUMNS.strip()}"
        )
    )  # fmt: skip


def add_flags_of_inputs(
    parser: argparse.ArgumentParser, group: Any, item: str = "item", **words: Any
) -> None:
    """Add the flags of inputs after those of the command, --weighting to its `group`, and store all defaults."""
    add_input_flags(parser, item, links=True)
    add_link_flags(parser)
    add_options(group, "weighting")
    add_engine_flags(parser, **words)
    parser.set_defaults(defaults=vars(parser.parse_args([""])))


def is_saved(options: argparse.Namespace) -> bool:
    """Return whether the arguments name a saved result."""
    return len(options.paths) == 1 and options.table is None


def result_of(options: argparse.Namespace, own: Collection[str], item_flag: str = "item") -> Any:
    """Return the named result, or evaluate the inputs; flags not among the command's `own` require inputs."""
    import fastbcubed

    left = ("paths", "json", "run", "defaults")
    given = {name: value for name, value in vars(options).items() if name not in (*own, *left)}
    if is_saved(options):
        for name, value in given.items():
            if value != options.defaults[name] and name not in OF_BOTH:
                flag = item_flag if name == "item" else name.replace("_", "-")
                raise OptionError(
                    f"--{flag} applies to TRUTH and PREDICTION, but {options.paths[0]} is already evaluated"
                )
        return _loaded(options.paths[0], options.memory_limit)
    if len(options.paths) != 2:
        raise OptionError(
            "name a directory written by evaluate --out, or TRUTH and PREDICTION, not "
            f"{len(options.paths)} paths ({', '.join(options.paths[:4])})"
        )
    truth, prediction = options.paths
    asked = argparse.Namespace(**given, truth=truth, prediction=prediction, metrics=None, slices=[])
    arguments = with_links(input_arguments(asked), asked)
    return call(fastbcubed.evaluate, {**arguments, "keep": "items"}, options.noise)


def _loaded(path: str, limit: str | None) -> Any:
    import fastbcubed

    try:
        return fastbcubed.load(path, memory_limit=limit)
    except FileFormatError as error:
        raise FileFormatError(
            f"{error.message.marked}. To evaluate first, name TRUTH and PREDICTION"
        ) from error


def require_items(ev: Evaluation, path: str, so_that: str, command: str = "evaluate") -> None:
    """Raise NotKeptError if the items of a saved result were not kept."""
    if not ev.has_items:
        raise NotKeptError(
            f"{path} has no items, so that {so_that}; write it with {command} --out DIR --keep items"
        )
