"""Pairs of sources on the command line: ``--slice-pairs``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fastbcubed.cli.terminal import Terminal
    from fastbcubed.results.listings.table import Table

#: Pairs of sources that are printed: all if they are no more than FEW, else the FIRST with most wrong pairs.
FEW, FIRST = 20, 10


def print_source_pairs(found: Mapping[str, Table], terminal: Terminal) -> None:
    """Write how links do within and across sources."""
    from fastbcubed.results.text.wording import Grid, count, score

    for name, table in found.items():
        rows = table.to_pylist()
        title = f"Links within and across {name}, in pairs of items"
        if len(rows) > FEW:
            rows = sorted(rows, key=lambda row: -(row["pair_fp"] + row["pair_fn"]))[:FIRST]
            title += f": the {FIRST} of {count(len(table))} pairs of sources with most wrong ones"
        terminal.title(title)
        header = ["sources", "right", "wrongly together", "wrongly apart", "precision", "recall", "f1"]
        terminal.grid(Grid(header, [_cells(row, count, score) for row in rows]))


def _cells(row: Mapping[str, Any], count: Any, score: Any) -> list[str]:
    counts = [count(int(row[f"pair_{name}"])) for name in ("tp", "fp", "fn")]
    return [row["pair"], *counts, *(score(row[f"pair_{name}"]) for name in ("precision", "recall", "f1"))]
