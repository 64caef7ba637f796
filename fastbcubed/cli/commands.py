"""The commands: each is a module with `add_flags` and `run`, which is imported when its command is given."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NamedTuple, NoReturn

from fastbcubed._version import __version__
from fastbcubed.cli.notes import (
    CLUSTERED,
    COMPARED,
    DIFFED,
    ESTIMATED,
    EXIT_CODES,
    NOTES,
    PAIRS,
    SHAPES,
    SHOWN,
    SWEPT,
    VERDICTS,
    WARM_UP,
)

#: The exit code for wrong use.
WRONG = 2


class Command(NamedTuple):
    """A command, and what its help says before and after its flags."""

    name: str
    module: str  #: of this room
    help: str
    description: str
    epilog: str = EXIT_CODES


COMMANDS = (
    Command(
        "evaluate", "evaluating", "score a prediction against the truth",
        "Score a clustering against the truth. A table has one row for each item.",
        f"{NOTES}\n{EXIT_CODES}",
    ),
    Command(
        "show", "show", "open a cluster or an item: who is in it, and what is wrong with it",
        "Open clusters and items of a saved result, or of a truth and a prediction.",
        f"{SHOWN}\n{EXIT_CODES}",
    ),
    Command(
        "report", "page_command", "make a page for people of a saved result: one HTML file",
        "Write a saved result as one HTML file that can be mailed and kept: verdict, charts, slices, and the clusters\n"
        "that cost most with their members. It takes the extra fastbcubed[report].",
    ),
    Command(
        "compare", "comparing", "compare several runs against one truth: is the new one better, and where",
        "Score several runs against one truth on the items that all of them score, and say how they differ.",
        f"{COMPARED}\n{EXIT_CODES}",
    ),
    Command(
        "sample-pairs", "pair_sampling", "draw pairs of items from a change, for people to judge",
        "Draw pairs of items that a change has separated or joined, so that people say which belong together.",
        f"{PAIRS}\n{EXIT_CODES}",
    ),
    Command(
        "estimate-pairs", "judging", "estimate how good a change is from pairs that people have judged",
        "Estimate scores of a change from what sample-pairs wrote, once its column verdict has verdicts.",
        f"{VERDICTS}\n{EXIT_CODES}",
    ),
    Command(
        "diff", "diffing", "tell what changed from one clustering to another, and whether that is right",
        "Tell what an experiment does to the clusters of a baseline; no truth is needed. With one, the diff also\n"
        "says which changes are right.",
        f"{DIFFED}\n{EXIT_CODES}",
    ),
    Command(
        "cluster", "clustering_command", "turn links, which are pairs of items with a score, into clusters",
        "Connect items that are linked: the clusters at one threshold of the score, or at several.",
        f"{CLUSTERED}\n{EXIT_CODES}",
    ),
    Command(
        "estimate", "estimating", "estimate the scores of a whole prediction from a sample of true clusters",
        "Estimate the scores of a whole prediction from a random sample of complete true clusters.",
        f"{ESTIMATED}\n{EXIT_CODES}",
    ),
    Command(
        "sweep", "sweeping", "score the clusters of links at every threshold, and find the best one",
        "Score the clusters that links connect at every threshold of their scores against a truth: which threshold\n"
        "is best, and which merges cost most there.",
        f"{SWEPT}\n{EXIT_CODES}",
    ),
    Command(
        "demo", "demo", "evaluate data that come with the package, and explain each step",
        "Evaluate two releases of inventors named on US patents, step by step, and say what to\n"
        "look at. The data come with the package; no file is written.",
        "",
    ),
    Command(
        "metrics", "glossary", "list all scores and what they mean",
        "List all scores, with family, range, direction, definition and source; or explain some.",
        "",
    ),
    Command(
        "generate", "generating", "write synthetic clusterings of any size, for trials and measurements",
        "Write a synthetic truth and prediction as Parquet. However many items, memory stays the same.",
        f"{SHAPES}\n{EXIT_CODES}",
    ),
    Command(
        "warm-up", "warm_up", "compile the kernels ahead of use, for example in the image of a container", WARM_UP
    ),
    Command(
        "constraints", "constraint_table", "check which score meets which formal constraint",
        "Check scores against the formal constraints of Amigó et al. (2009) and further properties,\n"
        "on small and on random clusterings. No data are needed; the same seed gives the same table.",
        "",
    ),
)  # fmt: skip


class Parser(argparse.ArgumentParser):
    """Parses flags; a wrong one is said in two lines, as the usage would be twenty."""

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Refuse a command, or the value of a flag, that is not among the choices, and suggest the most similar."""
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            from fastbcubed.sources.suggestions import did_you_mean

            asked = did_you_mean(str(value), map(str, action.choices or ()))
            error.message = f"{error.message}{asked and '.'}{asked}"
            raise

    def error(self, message: str) -> NoReturn:
        """Say what is wrong and end."""
        self.exit(WRONG, f"{self.prog}: {message}\nTry: {self.prog} --help\n")


class CommandParser(Parser):
    """Parses the flags of a command, whose module is imported for that."""

    command: Command | None = None

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Add the flags of the command, and parse; what it does not know is its error, not one of the whole."""
        if self.command is not None:
            module: Any = import_module(f"fastbcubed.cli.{self.command.module}")
            self.command = None
            module.add_flags(self)
            self.set_defaults(run=module.run)
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            from fastbcubed.sources.suggestions import did_you_mean

            flags = [name for name in self._option_string_actions if name.startswith("--")]
            asked = did_you_mean(unknown[0], flags) if unknown[0].startswith("--") else ""
            if os.path.isfile(unknown[0]):
                asked = " A pattern for several files is quoted, so that the shell leaves it as it is"
            self.error(f"unrecognized arguments: {' '.join(unknown)}{asked and '.'}{asked}")
        return found, unknown


def parser() -> Parser:
    """Return the parser of the command line."""
    form: dict[str, Any] = {"formatter_class": argparse.RawDescriptionHelpFormatter, "allow_abbrev": False}
    whole = Parser(
        prog="fastbcubed",
        description="Score clusterings against the truth: overall, by cluster, by slice, by item.",
        epilog=f"Begin with: fastbcubed demo\n{EXIT_CODES}",
        **form,
    )
    whole.add_argument("--version", action="version", version=f"fastbcubed {__version__}")
    group = whole.add_subparsers(
        title="commands", metavar="COMMAND", required=True, parser_class=CommandParser
    )
    for command in COMMANDS:
        group.add_parser(
            command.name, help=command.help, description=command.description, epilog=command.epilog, **form
        ).command = command
    return whole
