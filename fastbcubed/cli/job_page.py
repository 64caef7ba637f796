"""An evaluation as Markdown, for the page of a job: verdict, gates, warnings, scores, and where the loss is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from fastbcubed.cli.grids import SHARES, cluster_grid, lost_by_all, slice_grid
from fastbcubed.cli.rewording import in_flags
from fastbcubed.metrics.losses import LOSS_OF_SIDE
from fastbcubed.results.gates.gating import Gate
from fastbcubed.results.listings.listing import LOSS, listed
from fastbcubed.results.text.display import score_rows
from fastbcubed.results.text.verdict import outcomes, verdict
from fastbcubed.results.text.wording import Grid, count, label, percent, visible
from fastbcubed.sources.arrays import from_numpy, to_numpy

if TYPE_CHECKING:
    from fastbcubed.results.evaluation import Evaluation

#: Slices of each slicing, and clusters of either side, that a page shows: those that cost most.
SLICES, CLUSTERS = 10, 3
KINDS = {"pred": "Predicted", "true": "True"}


def as_markdown(ev: Evaluation, gates: Sequence[Gate] = ()) -> str:
    """Return an evaluation as Markdown, and what the gates came to; it ends with an empty line."""
    failed = any(not gate.passed for gate in gates)
    mark = "" if not gates else " ✗" if failed else " ✓"
    blocks = [f"## fastbcubed: {count(ev.coverage.n_scored(ev.policies))} items{mark}"]
    names = [ev.names.get(side) for side in ("truth", "prediction")]
    if all(names):
        blocks.append(f"Prediction: {_plain(label(names[1]))}, truth: {_plain(label(names[0]))}")
    blocks += [_plain(" ".join(sentences)) for sentences in (verdict(ev), outcomes(ev)) if sentences]
    found = ev.coverage
    if not found.complete:
        shares = percent(found.truth_coverage), percent(found.prediction_coverage)
        blocks.append(f"Coverage: {shares[0]} of the truth, {shares[1]} of the prediction.")
    blocks += [*_gates(gates), *_warnings(ev), _table(_scores(ev)), *_slices(ev), *_clusters(ev)]
    return "\n\n".join(blocks) + "\n\n"


def _gates(gates: Sequence[Gate]) -> Iterator[str]:
    """Return a table of what was wanted and found, and below it why a gate failed where that does not say."""
    if not gates:
        return
    rows = [
        (
            "passed" if gate.passed else "failed",
            gate.figures.get("score", gate.subject),
            ",".join(f"{name}={value}" for name, value in (gate.figures.get("slice") or {}).items()),
            gate.found.removeprefix("is "),
            gate.wanted.removeprefix("wanted ") or "none",
        )
        for gate in gates
    ]
    text = _table(Grid(("gate", "score", "slice", "value", "wanted"), rows, 5))
    yield text.replace("\n| failed |", "\n| **failed** |")
    yield from (_plain(f"{reason}.") for reason in dict.fromkeys(gate.reason for gate in gates) if reason)


def _warnings(ev: Evaluation) -> Iterator[str]:
    """Return warnings and notes, which name what to pass in the language of flags."""
    for found in ev.warnings:
        yield f"> **{found['level']}** `{found['code']}`: {_plain(in_flags(found['message']))}"


def _scores(ev: Evaluation) -> Grid:
    """Return the scores and their standard errors; not those that are 1 minus another one."""
    rows = list(score_rows(ev))
    if any(row[2] for row in rows):
        return Grid(("score", "value", "±"), rows)
    return Grid(("score", "value"), [row[:2] for row in rows])


def _slices(ev: Evaluation) -> Iterator[str]:
    """Return the slices that were asked for: all in their order if they are few, else those that cost most."""
    for name, table in ev.sliced.items():
        n, title = table.num_rows, f"### By {_plain(label(name))}"
        if n > SLICES:
            table = listed(table, ev.metrics, LOSS, SLICES)
            title += f": the {SLICES} of {count(n)} slices that cost most"
        yield f"{title}\n\n{_table(slice_grid(ev, table, of_all=False))}"
    if ev.sliced and lost_by_all(ev):
        yield f"{SHARES}."


def _clusters(ev: Evaluation) -> Iterator[str]:
    """Return the clusters of either side that cost most."""
    if not ev.has_clusters:
        return
    for side, kind in KINDS.items():
        lost = LOSS_OF_SIDE[side]
        table: Any = ev.clusters(side, limit=CLUSTERS)
        table = table.filter(from_numpy(to_numpy(table[lost]) > 0))
        if table.num_rows:
            title = f"### {kind} clusters that cost most {lost.removesuffix('_loss')}"
            yield f"{title}\n\n{_table(cluster_grid(ev, table, lost))}"


def _table(grid: Grid) -> str:
    """Return a grid as a table of Markdown, names to the left and figures to the right."""
    under = ["---" if at < grid.names else "---:" for at in range(len(grid.header))]
    header, *rows = ([_plain(cell) for cell in row] for row in (grid.header, *grid.rows))
    return "\n".join(f"| {' | '.join(row)} |" for row in (header, under, *rows))


def _plain(text: str) -> str:
    r"""Return a text that Markdown shows as it is, on one line.

    Examples
    --------
    >>> print(_plain("a|b <x> f1_of_means &amp;"))
    a\|b \<x\> f1\_of\_means \&amp;
    """
    return re.sub(r"([\\`*_{}\[\]<>|~#&$])", r"\\\1", visible(" ".join(text.split())))
