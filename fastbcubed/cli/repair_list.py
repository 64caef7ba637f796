"""Repairs on the command line: what the first of them bring together, and which they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fastbcubed.cli.terminal import Terminal
    from fastbcubed.results.evaluation import Evaluation
    from fastbcubed.results.listings.table import Table

#: Repairs that are printed: all if they are no more than FEW, else the first FIRST.
FEW, FIRST = 20, 10


def print_repairs(ev: Evaluation, repairs: Table, terminal: Terminal) -> None:
    """Write what repairs bring together, and the first of them."""
    from fastbcubed.results.text.wording import Grid, amount, count, label, score

    n = len(repairs)
    if not n:
        terminal.title("No repair would bring anything.")
        return
    shown = repairs.slice(0, n if n <= FEW else FIRST).to_pylist()
    before = ev.metric("f1")
    after = repairs["running"][n - 1].as_py()
    which = f"these {count(n)}" if n > 1 else "this one"
    terminal.title(f"Repair {which}: F1 +{score(after - before)}, from {score(before)} to {score(after)}")
    weighted = ev.contingency.weighted
    header = ["repair", "cluster", "items", *(["weight"] if weighted else []), "gain alone", "F1 after"]
    rows = [
        [
            f"{row['kind']} {'predicted' if row['side'] == 'pred' else 'true'}",
            label(row["cluster"]),
            count(row["n_items"]),
            *([amount(row["weight"])] if weighted else []),
            f"+{score(row['gain'])}",
            score(row["running"]),
        ]
        for row in shown
    ]
    terminal.grid(Grid(header, rows, 2))
    if len(shown) < n:
        terminal.line(f"… {count(n - len(shown))} more; --out DIR writes all, as repairs.parquet")
