"""Results on a terminal or in a pipe: fitted to the one, whole and without colours in the other."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from fastbcubed.cli.grids import SHARES, cluster_grid, lost_by_all, slice_grid
from fastbcubed.cli.rewording import in_flags
from fastbcubed.cli.saying import to_stdout
from fastbcubed.metrics.losses import LOSS_OF_SIDE
from fastbcubed.results.listings.listing import LOSS, listed
from fastbcubed.results.text.display import overview
from fastbcubed.results.text.wording import Grid, count, label, percent
from fastbcubed.sources.arrays import from_numpy, to_numpy

if TYPE_CHECKING:
    import pyarrow as pa

    from fastbcubed.results.evaluation import Evaluation


#: A slicing into no more slices than these is shown as a whole.
FEW_SLICES = 12
#: Empty columns between two columns of a table.
GAP = 2


class Terminal:
    """Writes lines and tables to stdout; a pipe gets no colours, and no name is cut short there."""

    def __init__(self) -> None:
        self.to_people = sys.stdout.isatty()
        reconfigure = getattr(sys.stdout, "reconfigure", None)
        if reconfigure is not None:  # a name that the encoding lacks is no reason to fail
            reconfigure(errors="backslashreplace")

    def line(self, text: str = "") -> None:
        """Write a line, or several."""
        with to_stdout():
            sys.stdout.write(f"{text}\n")

    def title(self, text: str) -> None:
        """Write a heading after an empty line."""
        self.line(f"\n\033[1m{text}\033[0m" if self._styled else f"\n{text}")

    def flush(self) -> None:
        """Show what was written so far."""
        with to_stdout():
            sys.stdout.flush()

    @property
    def width(self) -> int | None:
        """Columns of the terminal; None where there is no bound."""
        if not self.to_people:
            return None
        import shutil

        return shutil.get_terminal_size().columns

    def grid(self, grid: Grid, *, wrap: bool = False) -> None:
        """Write a table. Names that do not fit a terminal are cut, or wrapped if `wrap`; figures never."""
        from rich.cells import cell_len
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="dim")
        lines = [grid.header, *grid.rows]
        needed = [max(map(cell_len, column)) for column in zip(*lines, strict=True)]
        widths = needed if self.width is None else _fitted(needed, grid.names, self.width)
        for at, (name, width) in enumerate(zip(grid.header, widths, strict=True)):
            table.add_column(
                name,
                justify="left" if at < grid.names else "right",
                no_wrap=not wrap,
                overflow="fold" if wrap else "ellipsis",
                width=width,
            )
        for row in grid.rows:
            table.add_row(*map(Text, row))
        console = Console(
            width=sum(widths) + GAP * len(widths),
            force_terminal=self._styled,
            highlight=False,
            markup=False,
            emoji=False,
        )
        with console.capture() as captured:
            console.print(table)
        self.line("\n".join(line.rstrip() for line in captured.get().splitlines()))

    @property
    def _styled(self) -> bool:
        import os

        return self.to_people and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _fitted(needed: list[int], names: int, width: int) -> list[int]:
    """Return column widths for a terminal: the widest names give way, down to eight columns.

    Examples
    --------
    >>> _fitted([30, 12, 9], 2, 40)
    [15, 12, 9]
    """
    widths = list(needed)
    while sum(widths) + GAP * (len(widths) - 1) > width and max(widths[:names]) > 8:
        widths[widths.index(max(widths[:names]))] -= 1
    return widths


def print_evaluation(
    evaluation: Evaluation, terminal: Terminal, *, worst: int, order_by: str | None = None
) -> None:
    """Write an evaluation, its slices, and its clusters of either side that cost most, or of the worst score."""
    terminal.line(overview(evaluation, in_flags))
    terminal.flush()
    for name in evaluation.sliced:
        print_slices(evaluation, terminal, name, worst=worst)
    if evaluation.sliced and lost_by_all(evaluation):
        terminal.line(SHARES)
    if worst and evaluation.has_clusters:
        for side in ("pred", "true"):
            print_worst(evaluation, terminal, side, worst=worst, order_by=order_by)


def print_slices(
    evaluation: Evaluation, terminal: Terminal, name: str, *, worst: int, whole: int = FEW_SLICES
) -> None:
    """Write the slices by `name`: all, if they are few; else those that cost most."""
    table = evaluation.sliced[name]
    n = table.num_rows
    title = f"By {label(name)}"
    if n > max(worst, whole):
        if not worst:
            terminal.title(f"{title}: {count(n)} slices; --worst N lists the N that cost most")
            return
        table = listed(table, evaluation.metrics, LOSS, worst)
        title += f": the {count(worst)} of {count(n)} slices that cost most"
    terminal.title(title)
    terminal.grid(slice_grid(evaluation, table))


def print_worst(
    evaluation: Evaluation, terminal: Terminal, side: str, *, worst: int, order_by: str | None = None
) -> None:
    """Write the clusters of a side that cost most, or of the worst score, or that none is bad."""
    table = evaluation.clusters(side, limit=worst, order_by=order_by)
    kind = "predicted" if side == "pred" else "true"
    lost = LOSS_OF_SIDE[side]
    what = lost.removesuffix("_loss") if order_by is None else order_by
    table = table.filter(from_numpy(_not_best(evaluation, table, lost if order_by is None else order_by)))
    if not table.num_rows:
        terminal.title(f"Every {kind} cluster has the best {what}.")
        return
    listed = f"{count(table.num_rows)} of {count(evaluation.summary[side]['clusters'])}"
    whole = lost_by_all(evaluation)[lost]
    share = percent(to_numpy(table[lost]).sum() / whole if whole else 0.0)
    how = f"that cost most {what}" if order_by is None else f"of worst {what}"
    terminal.title(f"{kind.capitalize()} clusters {how}: {listed}, with {share} of what is lost")
    terminal.grid(cluster_grid(evaluation, table, lost))


def _not_best(evaluation: Evaluation, table: pa.Table, name: str) -> Any:
    """Return which rows do not have the best value that a loss, or a score, can have."""
    values = to_numpy(table[name])
    for metric in evaluation.metrics:
        if metric.name == name:
            best = {"higher": metric.high, "lower": metric.low}.get(metric.best, np.inf)
            return values != best
    return values > 0
