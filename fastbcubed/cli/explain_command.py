"""``fastbcubed explain``: which items, by their attributes, lose more than the rest, in a saved or new evaluation."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from fastbcubed.cli.flag_values import arguments_of, attributes_of, check_report
from fastbcubed.cli.gate_options import write_page
from fastbcubed.cli.options import add_options
from fastbcubed.cli.output import Terminal, print_json, say_warnings, then, warnings_said
from fastbcubed.cli.result_or_inputs import (
    add_flags_of_inputs,
    add_paths,
    is_saved,
    require_items,
    result_of,
)
from fastbcubed.errors import OptionError

if TYPE_CHECKING:
    from fastbcubed.results.evaluation import Evaluation

#: Flags of explain itself, unlike those of the inputs.
OWN = ("attribute", "loss", "depth", "min_items", "level", "limit", "seed", "report")
LEVEL = "expected share of false discoveries among the slices shown (default: 0.05)"


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of ``fastbcubed explain``."""
    add_paths(parser, "a directory written by evaluate --out, with items (see below)")
    group = parser.add_argument_group("what to look for")
    add_options(group, "attribute loss depth min_items")
    add_options(group, "level", level=LEVEL, default=0.05)
    add_options(group, "limit seed", seed="halves")
    output = parser.add_argument_group("output")
    add_options(output, "json report", report="the slices found")
    add_flags_of_inputs(parser, group, results="slices do")


def run(options: argparse.Namespace) -> int:
    """Find the slices that lose more than the rest, and print them."""
    check_report(options)
    looked_at = attributes_of(options.attribute, "--attribute")
    ev = _evaluation(options)
    say_warnings(ev.warnings)
    how = arguments_of(type(ev).explain, options) | {"attributes": looked_at or None}
    with warnings_said():
        found = ev.explain(**how)
    with then(lambda: write_page(options, found)):
        if options.json:
            print_json(found.to_json())
        else:
            Terminal().show(found._document().blocks)
    return 0


def _evaluation(options: argparse.Namespace) -> Evaluation:
    import fastbcubed as fb

    found = result_of(options, OWN)
    if isinstance(found, fb.Evaluation):
        if is_saved(options):
            require_items(found, options.paths[0], "there is nothing to slice by")
        return found
    if isinstance(found, fb.Comparison):
        raise OptionError(
            f"{options.paths[0]} is a comparison of runs, which explain does not accept. Name an "
            "evaluation of one run, or TRUTH and PREDICTION. In Python, "
            "fastbcubed.compare(...).explain(RUN) finds where a run differs"
        )
    raise OptionError(
        f"{options.paths[0]} is not an evaluation; name a directory written by evaluate --out DIR --keep "
        "items, or TRUTH and PREDICTION"
    )
