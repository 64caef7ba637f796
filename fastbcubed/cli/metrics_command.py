"""``fastbcubed metrics``: the registry of scores: name, family, range, direction, definition and source."""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Sequence
from typing import Any

from fastbcubed.cli.output import Terminal, print_json
from fastbcubed.metrics.metric import REFERENCES, Metric
from fastbcubed.metrics.registry import FAMILIES, METRICS, known_as, resolve
from fastbcubed.render.document import Grid
from fastbcubed.render.text import paragraph

#: Minimum width of a terminal that shows every column.
WIDE = 160


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of ``fastbcubed metrics``."""
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="a score, or a family of scores, to explain in full"
    )
    parser.add_argument("--json", action="store_true", help="print a JSON list of objects, for programs")


def run(options: argparse.Namespace) -> int:
    """List the scores, or explain the named ones."""
    chosen = choose(options.names)
    if options.json:
        print_json(as_json(chosen))
        return 0
    (print_entries if options.names else print_list)(chosen, Terminal())
    return 0


def choose(names: Sequence[str]) -> list[Metric]:
    """Return the scores with these names or in these families; all scores if none are given."""
    chosen: dict[str, Metric] = {}
    for name in map(str, map(known_as, names or ("all",))):
        if name in METRICS:
            chosen[name] = METRICS[name]
        elif name == "all" or name in FAMILIES:
            chosen |= {m.name: m for m in METRICS.values() if name in ("all", m.family)}
        else:
            resolve([name])  # raises, with a suggestion, if unknown
    return list(chosen.values())


def as_json(metrics: Sequence[Metric]) -> str:
    """Return scores as a JSON list, in which an unbounded end of a range is null."""
    return json.dumps([entry_of(metric) for metric in metrics], indent=2, ensure_ascii=False)


def print_list(metrics: Sequence[Metric], terminal: Terminal) -> None:
    """Print a line per score; on a narrow terminal, the names of the scores in each family."""
    if terminal.width is None or terminal.width >= WIDE:
        header = ("name", "family", "range", "better", "definition", "source")
        rows: list[Sequence[str]] = [
            (m.name, m.family, range_of(m), m.best, m.definition, m.source) for m in metrics
        ]
        terminal.grid(Grid(header, rows, len(header)))
    else:
        for family, title in FAMILIES.items():
            terminal.title(f"{title} ({family})")
            own = [m for m in metrics if m.family == family]
            terminal.line("  " + ", ".join(m.name + "↓" * (m.best == "lower") for m in own))
    if terminal.to_people:
        terminal.line(
            "\n↓: lower is better. fastbcubed metrics NAME: meaning, definition and source of a score, or of each "
            "score of a family. fastbcubed metrics | less -S: a line for each score."
        )


def print_entries(metrics: Sequence[Metric], terminal: Terminal) -> None:
    """Print all details of each score."""
    for at, metric in enumerate(metrics):
        entry = entry_of(metric)
        if at:
            terminal.line()
        direction = "neither is better" if metric.best == "neither" else f"{metric.best} is better"
        terminal.line(f"{metric.name} ({metric.family}; {range_of(metric)}; {direction})")
        for text in (
            *(metric.summary, f"Definition: {metric.definition}.", *entry["notes"]),
            *(metric.use, f"Beware: {metric.caution}", f"Source: {entry['reference']}"),
        ):
            terminal.line(paragraph(text, "  ", "  "))


def entry_of(metric: Metric) -> dict[str, Any]:
    """Return all details of a score, as `--json` prints them."""
    return {
        "name": metric.name,
        "family": metric.family,
        "range": [bound if math.isfinite(bound) else None for bound in (metric.low, metric.high)],
        "better": metric.best,
        "summary": metric.summary,
        "definition": metric.definition,
        "source": metric.source,
        "reference": REFERENCES.get(metric.source, "Defined by this library."),
        "alias_of": metric.alias_of,
        "notes": _notes(metric),
        "use": metric.use,
        "caution": metric.caution,
    }


def _notes(metric: Metric) -> list[str]:
    notes = []
    if metric.names_matrix:
        notes.append(
            "For each item, tp, fp, fn and tn are the weights of the items that share its cluster on both "
            "sides (including the item itself), only on the predicted side, only on the true side, and on "
            "neither side."
        )
    if metric.note:
        notes.append(metric.note)
    if metric.alias_of:
        notes.append(f"The score is the same as {metric.alias_of}.")
    if metric.unweighted_only:
        notes.append("The score is not defined for weighted items.")
    if metric.overall_only:
        notes.append("The score is defined for all items at once, not for clusters or slices.")
    if metric.experimental:
        notes.append("The score is experimental.")
    return notes


def range_of(metric: Metric) -> str:
    """Return the range of a score as text."""
    if metric.high == math.inf:
        return "any" if metric.low == -math.inf else f"≥ {metric.low:g}"
    return f"≤ {metric.high:g}" if metric.low == -math.inf else f"{metric.low:g} to {metric.high:g}"
