"""Results on a terminal or in a pipe: fitted to the one, whole and without colours in the other."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fastbcubed.metrics.losses import LOSS_OF_SIDE
from fastbcubed.results.display import overview
from fastbcubed.results.wording import Grid, amount, count, label, percent, score

if TYPE_CHECKING:
    import pyarrow as pa

    from fastbcubed.metrics.metric import Metric
    from fastbcubed.results.evaluation import Evaluation


#: A slicing into no more slices than these is shown as a whole.
FEW_SLICES = 12
#: Empty columns between two columns of a table.
GAP = 2
#: Scores that a listing shows where they were computed; else the first few that were.
LISTED = ("precision", "recall", "f1")
#: A mean over items whose loss adds up over slices, the first of these that was computed.
ADDITIVE = ("mean_f1", "jaccard_distance", "precision", "recall")


class Terminal:
    """Writes lines and tables to stdout; a pipe gets no colours, and no name is cut short there."""

    def __init__(self) -> None:
        self.to_people = sys.stdout.isatty()
        reconfigure = getattr(sys.stdout, "reconfigure", None)
        if reconfigure is not None:  # a name that the encoding lacks is no reason to fail
            reconfigure(errors="backslashreplace")

    def line(self, text: str = "") -> None:
        """Write a line, or several."""
        sys.stdout.write(f"{text}\n")

    def title(self, text: str) -> None:
        """Write a heading after an empty line."""
        self.line(f"\n\033[1m{text}\033[0m" if self._styled else f"\n{text}")

    def flush(self) -> None:
        """Show what was written so far."""
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


def print_evaluation(evaluation: Evaluation, terminal: Terminal, *, worst: int) -> None:
    """Write an evaluation, its slices, and its worst clusters of either side."""
    terminal.line(overview(evaluation))
    terminal.flush()
    for name in evaluation.sliced:
        print_slices(evaluation, terminal, name, worst=worst)
    if evaluation.sliced and (note := loss_note(evaluation)):
        terminal.line(note)
    if worst and evaluation.has_clusters:
        for side in ("pred", "true"):
            print_worst(evaluation, terminal, side, worst=worst)


def print_slices(
    evaluation: Evaluation, terminal: Terminal, name: str, *, worst: int, whole: int = FEW_SLICES
) -> None:
    """Write the slices by `name`: all, if they are few; else those where most of the score is lost."""
    table = evaluation.sliced[name]
    n = table.num_rows
    share = _shares_of_loss(evaluation, table)
    title = f"By {label(name)}"
    rows = np.arange(n)
    if n > max(worst, whole):
        if not worst:
            terminal.title(f"{title}: {count(n)} slices; --worst N lists the N that lose most")
            return
        most = table["weight"].to_numpy() if share is None else share
        rows = np.argsort(-most, kind="stable")[:worst]
        kind = "of most weight" if share is None else "that lose most"
        title += f": the {count(worst)} of {count(n)} slices {kind}"
    terminal.title(title)
    terminal.grid(_slice_grid(evaluation, table.take(rows), None if share is None else share[rows]))


def print_worst(evaluation: Evaluation, terminal: Terminal, side: str, *, worst: int) -> None:
    """Write the costliest clusters of a side, or that none costs anything."""
    table = evaluation.clusters(side, limit=worst)
    kind = "predicted" if side == "pred" else "true"
    lost = LOSS_OF_SIDE[side]
    table = table.filter(table[lost].to_numpy() > 0)
    what = lost.removesuffix("_loss")
    if not table.num_rows:
        terminal.title(f"Every {kind} cluster has the best {what}.")
        return
    n = evaluation.summary[side]["clusters"]
    terminal.title(
        f"{kind.capitalize()} clusters that cost most {what}: {count(table.num_rows)} of {count(n)}"
    )
    terminal.grid(cluster_grid(evaluation, table))


def cluster_grid(evaluation: Evaluation, table: pa.Table) -> Grid:
    """Return a listing of clusters: label, items, parts, scores."""
    weighted = evaluation.contingency.weighted
    scores = score_columns(evaluation.metrics, table.column_names)
    header = ["cluster", "items", *(["weight"] if weighted else []), "parts", *scores]
    rows = [
        [
            "(alone by policy)" if row["cluster"] is None else label(row["cluster"]),
            count(row["n_items"]),
            *([amount(row["weight"])] if weighted else []),
            count(row["n_parts"]),
            *(score(row[name]) for name in scores),
        ]
        for row in table.to_pylist()
    ]
    return Grid(header, rows)


def score_columns(metrics: Sequence[Metric], there: Sequence[str]) -> list[str]:
    """Return the scores that a listing shows, of those in a table."""
    listed = [name for name in LISTED if name in there]
    return listed if len(listed) == len(LISTED) else [m.name for m in metrics if m.name in there][:4]


def _slice_grid(evaluation: Evaluation, table: pa.Table, shares: Any) -> Grid:
    names = table.column_names[: table.column_names.index("n_items")]
    weighted = evaluation.contingency.weighted
    scores = score_columns(evaluation.metrics, table.column_names)
    total = evaluation.contingency.total_weight
    header = [*map(label, names), "items", f"of {'weight' if weighted else 'items'}", *scores]
    rows = []
    for at, row in enumerate(table.to_pylist()):
        cells = [*(label(row[name]) for name in names), count(row["n_items"])]
        cells += [percent(row["weight"] / total), *(score(row[name]) for name in scores)]
        rows.append(cells if shares is None else [*cells, percent(shares[at])])
    return Grid(header if shares is None else [*header, "of loss"], rows, len(names))


def loss_note(evaluation: Evaluation) -> str:
    """Return what the share of loss is a share of; nothing if there is no such score."""
    metric = _additive(evaluation)
    if metric is None:
        return ""
    loss = f"({metric.high:g} - {metric.name})" if metric.best == "higher" else metric.name
    weight = "weight × " if evaluation.contingency.weighted else ""
    return f"of loss: share of the sum over items of {weight}{loss}"


def _shares_of_loss(evaluation: Evaluation, table: pa.Table) -> Any:
    """Return each slice's share of what is lost, or None if there is no such score, or no loss."""
    metric = _additive(evaluation)
    if metric is None or metric.name not in table.column_names:
        return None
    value = table[metric.name].to_numpy()
    loss = metric.high - value if metric.best == "higher" else value - metric.low
    loss = loss * table["weight"].to_numpy()
    total = loss.sum()
    return loss / total if total > 0 else None


def _additive(evaluation: Evaluation) -> Metric | None:
    """Return the mean over items whose loss the slices share."""
    lifted = {m.name: m for m in evaluation.metrics if m.formula and m.best != "neither"}
    for name in (*ADDITIVE, *lifted):
        metric = lifted.get(name)
        if metric is not None and np.isfinite(metric.high if metric.best == "higher" else metric.low):
            return metric
    return None
