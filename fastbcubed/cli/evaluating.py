"""``fastbcubed evaluate``: score a prediction against the truth."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from fastbcubed.cli.between_sources import print_source_pairs
from fastbcubed.cli.calling import call_evaluate
from fastbcubed.cli.flags import add_evaluate_flags, evaluate_arguments
from fastbcubed.cli.gates import Gates, add_gate_flags, append_page
from fastbcubed.cli.link_flags import add_link_flags, with_links
from fastbcubed.cli.on_spark import with_frames
from fastbcubed.cli.ordering import with_order
from fastbcubed.cli.repair_list import print_repairs
from fastbcubed.cli.report_flags import check_report, write_report
from fastbcubed.cli.rewording import in_flags
from fastbcubed.cli.saying import print_json, say
from fastbcubed.cli.show import costliest, print_opened
from fastbcubed.results.slices.bins import element_of

#: The exit code if a gate failed.
FAILED_GATE = 1


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of ``fastbcubed evaluate``."""
    add_evaluate_flags(parser)
    add_link_flags(parser)
    add_gate_flags(parser)


def run(options: argparse.Namespace) -> int:
    """Evaluate, print what was asked for, and return 1 if a gate failed."""
    check_report(options)
    gates = Gates(options)
    arguments, order_by = with_order(with_links(evaluate_arguments(options), options), options.order_by)
    ev = call_evaluate(with_frames(gates.needs(arguments)), options.noise)
    if options.json or not sys.stdout.isatty():  # a terminal gets them with the scores
        for warning in ev.warnings:
            say(f"{warning['level']}: {in_flags(warning['message'])} [{warning['code']}]")
    opened = costliest(ev, options.show) if options.show else []
    repairs = ev.repairs(limit=options.repairs) if options.repairs else None
    pairs = {name: ev.source_pairs(element_of(name)) for name in options.slice_pairs}
    verified = ev.verify(options.verify) if options.verify else None
    tried = gates.judge(ev)
    if options.json:
        from fastbcubed.results.listings.summary import as_json

        asked = {
            "opened": opened or None,
            "repairs": None if repairs is None else repairs.to_pylist(),
            "source_pairs": {name: table.to_pylist() for name, table in pairs.items()} or None,
            "gates": [gate.to_dict() for gate in tried] or None,
        }
        print_json(as_json(ev.to_dict() | {name: each for name, each in asked.items() if each is not None}))
        for line in (gate.line for gate in tried if not gate.passed):
            say(line)
        if verified is not None:
            say(repr(verified))
    else:
        from fastbcubed.cli.terminal import Terminal, print_evaluation

        terminal = Terminal()
        print_evaluation(ev, terminal, worst=options.worst, order_by=order_by)
        print_source_pairs(pairs, terminal)
        print_opened(opened, terminal, first=False)
        if repairs is not None:
            print_repairs(ev, repairs, terminal)
        if terminal.to_people:
            terminal.line(f"\n{_more(ev, options)}")
        if verified is not None:
            terminal.line(f"\n{verified!r}")
        if tried:
            terminal.line("\n" + "\n".join(gate.line for gate in tried))
    if options.out is not None:
        say(f"wrote {options.out}; in Python, fastbcubed.load({options.out!r}) reads it")
    if options.summary is not None:
        append_page(options.summary, ev, tried)
    write_report(options, ev, tried)
    return 0 if all(gate.passed for gate in tried) else FAILED_GATE


def _more(ev: Any, options: argparse.Namespace) -> str:
    """Return which flags would show more."""
    from fastbcubed.results.slices.slicing import id_parts
    from fastbcubed.results.text.wording import label, paragraph

    hints = [f"--worst {max(20, 4 * options.worst)}"] if ev.has_clusters else []
    if ev.has_items:
        items = ev.kept_items()
        known = [name for side in items.attribute_sides().values() for name in side] + [*id_parts(items)]
        left = [label(n) for n in dict.fromkeys([*known, "true_size", "pred_size"]) if n not in ev.sliced]
        if left:
            hints.append(f"--slice NAME ({', '.join(left[:4])}{', …' if left[4:] else ''})")
    if options.out is None or not ev.has_clusters:
        hints.append(f"--out DIR --keep {'items' if ev.has_items else 'cells'}")
    return paragraph(f"More: {'; '.join(hints)}; see --help")
