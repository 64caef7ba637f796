"""Flags that other flags make ineffective; the library checks its own arguments."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import NamedTuple

from fastbcubed.cli.options import WORST_LISTED
from fastbcubed.errors import OptionError
from fastbcubed.inputs.tables import ITEM


class Idle(NamedTuple):
    """A flag of some commands, its default value, and the condition under which any other value has no effect."""

    flag: str
    commands: tuple[str, ...]
    default: object
    where: Callable[[argparse.Namespace], bool]
    why: str


def _opens_nothing(options: argparse.Namespace) -> bool:
    return not (options.pred or options.true or options.items)


_LISTING = ("evaluate", "compare", "diff")
#: All such flags; `why` ends the message.
IDLE = (
    Idle("worst", _LISTING, WORST_LISTED, lambda o: o.json, "with --json, which lists all"),
    Idle("rows", ("sweep",), 1000, lambda o: not o.json, "without --json"),
    Idle("seed", ("sweep",), 0, lambda o: not o.draws, "without --draws"),
    Idle("seed", ("constraints",), 0, lambda o: not o.n_random, "with --random 0"),
    Idle("examples", ("constraints",), False, lambda o: o.json, "with --json, which always has them"),
    Idle("ascending", ("cluster",), False, lambda o: not o.thresholds, "without --threshold"),
    Idle("item", ("cluster",), ITEM, lambda o: o.items is None, "without --items"),
    Idle("members", ("show",), None, _opens_nothing, "without --pred, --true or --item"),
    Idle("columns", ("show",), None, _opens_nothing, "without --pred, --true or --item"),
)  # fmt: skip


def refuse_idle_flags(options: argparse.Namespace) -> None:
    """Raise OptionError for a flag that has no effect on this command line."""
    command = options.run.__module__.rpartition(".")[2].removesuffix("_command")
    for each in IDLE:
        if command in each.commands and getattr(options, each.flag) != each.default and each.where(options):
            raise OptionError(f"--{each.flag} has no effect {each.why}; omit it")
