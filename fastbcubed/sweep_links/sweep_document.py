"""The document of a sweep: the text in a terminal and the sections of its page."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbcubed.metrics.registry import METRICS
from fastbcubed.render.document import (
    Beside,
    Block,
    Chart,
    Code,
    Document,
    Facts,
    Grid,
    Heading,
    Notices,
    Only,
    Prose,
    Section,
)
from fastbcubed.render.number_formats import count, counted, label
from fastbcubed.results.evaluation_text import coverage, definition
from fastbcubed.results.page import IN_BRIEF, MESSAGES, Asked
from fastbcubed.results.table import Table
from fastbcubed.sweep_links.curve import COUNTED, Best, shown
from fastbcubed.sweep_links.threshold_choice import Leading

#: What a place shows that several scores have.
SEVERAL = "*"
#: An axis shows where a score has up to so many times its least loss, and this loss at least.
TIMES, LEAST_LOSS = 2.0, 0.02
#: Parts of an axis between two labels.
PARTS = 5

Values = NDArray[np.float64]


def axis_of(curves: Mapping[str, Values], leading: str, marked: Sequence[float] = ()) -> tuple[float, float]:
    """Return the ends of an axis on which scores from 0 to 1 differ near the best value of the leading one.

    They are round, and `marked` are values that are between them, too. All values are, where those near the best one
    are alike.

    >>> axis_of({"p": np.array([0.99, 0.98, 0.2]), "f": np.array([0.91, 0.97, 0.33])}, "f")
    (0.95, 1.0)
    >>> axis_of({"p": np.array([0.6, 0.2]), "f": np.array([0.4, 0.3])}, "f", [0.05])
    (0.0, 1.0)
    >>> axis_of({"p": np.array([1.0, 1.0, 0.8]), "f": np.array([0.7, 1.0, 0.9])}, "f")
    (0.5, 1.0)
    """
    every = np.stack([*curves.values()])
    loss = 1.0 - curves[leading]
    shown = every[:, loss <= max(TIMES * np.nanmin(loss, initial=1.0), LEAST_LOSS)]
    if not (shown < np.nanmax(shown, initial=0.0)).any():
        shown = every
    low = float(np.nanmin([*shown.ravel(), *marked], initial=1.0 - LEAST_LOSS))
    step = 10.0 ** math.floor(math.log10((1.0 - low) / PARTS))
    step *= next(n for n in (1, 2, 3, 4, 5, 10) if n * step * PARTS >= 1.0 - low - 1e-9)
    return max(0.0, round(1.0 - PARTS * step, 9)), 1.0


def draw(
    curves: Mapping[str, Values],
    ends: Sequence[str],
    marked: int | None,
    *,
    height: int = 2 * PARTS + 1,
    axis: tuple[float, float] = (0.0, 1.0),
) -> list[str]:
    """Return the lines of a chart of scores, one letter for each, whose names are letters.

    Each column of it is a value of every curve; `ends` stand below the first and the last, and `marked` is a column
    to point at. Values that are not on the axis are left out.

    >>> for line in draw({"P": np.array([1.0, 0.9, 0.2]), "R": np.array([0.0, 0.9, 1.0])}, ("1", "0"), 1, height=3):
    ...     print(line)
    1.0 |P*R
    0.5 |
    0.0 |R P
         ---
          ^
        1   0
    """
    width, (low, high) = next(iter(curves.values())).size, axis
    grid = np.full((height, width), " ")
    for letter, values in curves.items():
        for column, value in enumerate(values):
            row = (high - value) / (high - low) * (height - 1)
            if -0.5 <= row <= height - 0.5:  # not if it is NaN
                at = round(min(max(row, 0.0), height - 1)), column
                grid[at] = letter if grid[at] == " " else SEVERAL
    levels = {
        k: high - (high - low) * k / (height - 1) for k in range(0, height, 2 if height >= PARTS else 1)
    }
    decimals = next((n for n in range(1, 9) if all(abs(round(v, n) - v) < 1e-9 for v in levels.values())), 9)
    margin = decimals + 2
    lines = []
    for row, line in enumerate(grid):
        named = f"{levels[row]:.{decimals}f}" if row in levels else ""
        lines.append(f"{named:{margin}} |{''.join(line)}".rstrip())
    lines.append(" " * (margin + 2) + "-" * width)
    if marked is not None:
        lines.append(" " * (margin + 2 + marked) + "^")
    between = max(1, width + 2 - len(ends[0]) - len(ends[1]))
    lines.append(" " * (margin + 1) + ends[0] + " " * between + ends[1])
    return lines


#: Scores that are drawn, and their letters.
DRAWN = {"precision": "P", "recall": "R", "f1": "F"}
COLUMNS = 60


def document(sweep: Any, leading: Leading, asked: Asked = IN_BRIEF, notes: Sequence[str] = ()) -> Document:
    """Return the links, the best threshold, the curve, merges to look at and slices; `notes` are on the links."""
    truth, links = (sweep.at_best.names[side] for side in ("truth", "prediction")) if asked.page else ("", "")
    head: list[Block] = [Only("text", [Beside([[Prose([what_was_swept(sweep)])], [Prose(notes)]])])]
    if asked.page:
        scored = counted(sweep.coverage.n_scored(sweep.policies), "item")
        head.append(Only("page", [Facts([("Truth", truth), ("Links", links), ("Scored", scored)], "sides")]))
    title = asked.title or f"Thresholds for {links}"
    return Document("sweep", title, head, _sections(sweep, leading, asked))


def _sections(sweep: Any, leading: Leading, asked: Asked) -> Iterator[Section]:
    best, chosen, _ = leading
    blocks: list[Block] = []
    if best is not None:
        more = [] if chosen is None else [chosen.sentence]
        blocks.append(Prose([best.sentence, best.range, *more], "lead"))
    warnings = [each for each in sweep.warnings if each["code"] != "made-of-links"]  # which is of the best F1
    blocks.append(Notices.of(warnings[: MESSAGES if asked.page else None], n=len(warnings)))
    if best is not None:
        blocks += _curve(sweep, best, asked)
    yield Section("best", "Best threshold", blocks)
    if asked.page and best is not None:
        yield from _along(sweep, best)
    for k, (title, said, grid) in enumerate(tables(sweep, leading, asked) if asked != IN_BRIEF else ()):
        heading = Heading(said or title) if grid.rows else Prose([f"{said}."])
        sentence = Prose([f"{said}."] if said else [])
        table = replace(grid, about=title)
        yield Section(f"table-{k}", title, [Only("text", [heading]), Only("page", [sentence]), table])
    if asked.page:
        yield Section("origin", "How it was made", [Prose([
            what_was_swept(sweep), *coverage(sweep.at_best), definition(sweep.at_best),
            *(f"{name} is not known at every threshold: {reason}." for name, reason in sweep.not_computed.items()),
        ], "note")])  # fmt: skip


def _curve(sweep: Any, best: Best, asked: Asked) -> Iterator[Block]:
    """Yield the scores by threshold: charts on a page, and letters in a text."""
    if not asked.page:
        yield Only("text", [Code("\n".join(drawn(sweep, best)))])
        return
    curve = curve_content(sweep, best)
    begins = f" The axis begins at {curve['axis'][0]:g}." if curve["axis"][0] else ""
    texts = {
        "thresholds": ("Scores by threshold", f"A strong threshold links few items.{begins}"),
        "precision_recall": (
            "Precision by recall",
            f"From threshold to threshold; the best one is bold.{begins}",
        ),
    }
    there = {"thresholds": curve["scores"], "precision_recall": curve["named"]}
    charts = [
        [Chart(name, name, (curve,), f"{title}. {text}", title, text)]
        for name, (title, text) in texts.items()
        if there[name]
    ]
    if charts:
        yield Beside(charts)


def _along(sweep: Any, best: Best) -> Iterator[Section]:
    points = sorted(sweep._point(row["threshold"]) for row in curve_content(sweep, best)["named"])
    rows = [{"threshold": float(sweep._curve.thresholds[at]), **sweep._curve.at(at, *SHOWN)} for at in points]
    if rows:
        grid = replace(_figures(rows, threshold=sweep.shown), about="Along the curve")
        along = Prose(["The thresholds that the curve names, and the best one."])
        yield Section("along", "Along the curve", [along, grid])


def what_was_swept(sweep: Any) -> str:
    """Return a sentence on the links, their items and the thresholds."""
    tree = sweep.tree
    links = f"{counted(len(sweep.links), 'link')} over {counted(tree.n_items, 'item')}"
    if not tree.n_levels:
        return f"Sweep of {links}, none of which joins anything."
    first, last = (sweep.shown(float(sweep._level_thresholds[k])) for k in (0, -1))
    scores = "score" if tree.n_levels == 1 else "scores"
    reach = f"at {first}" if tree.n_levels == 1 else f"from {first} to {last}"
    return f"Sweep of {links}: clusters change at {count(tree.n_levels)} {scores} of links, {reach}."


#: Columns of the merges to look at: the header, the name of the value, its form and rank.
OF_MERGES: tuple[tuple[Any, ...], ...] = (
    ("threshold", "threshold", "text"),
    ("left item", "left", "name"),
    ("right item", "right", "name"),
    ("cluster sizes", "sizes", "text", 2),
    ("F1 change", "f1_change", "delta"),
    ("P change", "precision_change", "delta", 1),
    ("R change", "recall_change", "delta", 1),
)


def _merges(rows: Sequence[Mapping[str, Any]], threshold: Callable[[float], str]) -> Grid:
    """Return merges: an item on either side of the link that joins, and the sizes of the clusters that become one."""
    told = []
    for row in rows:
        several = f" + … = {count(row['n_items'])}" if row["n_clusters"] > 2 else ""
        sizes = f"{count(row['n_left'])} + {count(row['n_right'])}{several}"
        told.append({**row, "threshold": threshold(row["threshold"]), "sizes": sizes})
    return Grid.of(told, OF_MERGES, 3)


def _figures(
    rows: Sequence[Mapping[str, Any]], names: Sequence[str] = (), threshold: Callable[[float], str] = shown
) -> Grid:
    """Return rows with a threshold and its figures, named by some columns; precision, recall and F1 have room first."""
    columns: list[tuple[Any, ...]] = [(name, name, "name") for name in names]
    for name in rows[0] if rows else ():
        form = "count" if name in COUNTED or name.startswith("n_") else "score"
        form = "text" if name == "threshold" else "amount" if name == "weight" else form
        if name not in names:
            header = "F1 lost" if name == "cost" else name.removeprefix("n_").replace("_", " ")
            columns.append((header, name, form, 0 if name in FIRST else 1 if name in SHOWN else 2))
    at = [row["threshold"] for row in rows]
    told = [
        {**row, "threshold": "-" if each is None else threshold(each)}
        for row, each in zip(rows, at, strict=True)
    ]
    return Grid.of(told, columns, max(1, len(names))) if rows else Grid([], [])


def tables(sweep: Any, leading: Leading, asked: Asked) -> Iterator[tuple[str, str, Grid]]:
    """Yield tables, each after a title and a line on it: merges to look at, the requested thresholds, each slicing."""
    best, _, n_merges = leading
    if best is not None and n_merges:
        said = f"Merges to look at, of those at threshold {best.shown}: a stronger one undoes them"
        rows = _costly(sweep, n_merges, best.threshold)
        if not rows:
            said = f"Merges to look at: threshold {best.shown} makes none that lowers F1; a weaker one makes these"
            rows = _costly(sweep, n_merges, None)
        said = said if rows else "No merge lowers F1"
        yield "Merges to look at", said, _merges(rows, partial(sweep.shown, stronger=True))
    if sweep.asked:
        yield "At the requested thresholds", "", _figures(sweep.points().to_pylist())
    for name, table in sweep.sliced.items():
        yield f"By {name}", *_slicing(sweep, name, table, asked)


def _slicing(sweep: Any, name: str, table: Table, asked: Asked) -> tuple[str, Grid]:
    """Return a line on the best thresholds of slices and their table: all if they are few, else those that lose most.

    The listing has those first that one threshold for all costs most.
    """
    n = table.num_rows
    said = f"By {label(name)}: best threshold per slice, and F1 lost by using one for all"
    if n > asked.whole:
        said = f"By {label(name)}: the {count(asked.slices)} of {count(n)} slices that lose most F1 by one threshold"
        table = table.slice(0, asked.slices)
    columns = table.column_names
    names = columns[: columns.index("n_items")]
    unweighted = table.drop_columns([] if sweep._curve.weighted else ["weight"])
    return said, _figures(unweighted.to_pylist(), names, partial(_of_slice, sweep))


def _of_slice(sweep: Any, threshold: float) -> str:
    """Return the best threshold of a slice; an infinite one uses no link, unless links have infinite scores."""
    is_none = not math.isfinite(threshold) and threshold not in sweep._level_thresholds
    return "no link" if is_none else str(sweep.shown(threshold))


def _costly(sweep: Any, limit: int, threshold: float | None) -> list[dict[str, Any]]:
    """Return the merges that lower F1 most, of those that a threshold uses."""
    rows = sweep.merges(limit=limit, threshold=threshold).to_pylist()
    return [row for row in rows if row["f1_change"] < 0]


def drawn(sweep: Any, best: Best) -> list[str]:
    """Return the lines of a chart of scores by threshold, strongest left, with the best marked; none for one level.

    The scores are precision, recall and F1 where they are known, and the one that is best, if it is a share; without
    any, there is no chart. The axis begins where they are near the best F1.
    """
    curve, known = sweep._curve, sweep._level_thresholds
    finite = known[np.isfinite(known)]
    metric = METRICS.get(best.score)
    letters = {letter: name for name, letter in DRAWN.items() if name in curve.names}
    if metric is not None and best.score not in DRAWN and metric.low >= 0 and metric.high <= 1:
        letters["B"] = best.score
    if finite.size < 2 or not letters:
        return []
    first, last = finite[[0, -1]].tolist()
    points = np.array([sweep._point(threshold) for threshold in np.linspace(first, last, COLUMNS).tolist()])
    at = min(max(best.threshold, min(first, last)), max(first, last))
    values = {letter: curve.figures(name, points) for letter, name in letters.items()}
    marked = [best.figures[name] for name in letters.values()]
    axis = axis_of(values, "F" if "F" in values else next(iter(values)), marked)
    ends, column = (sweep.shown(first), sweep.shown(last)), (at - first) / (last - first) * (COLUMNS - 1)
    lines = draw(values, ends, round(column), axis=axis)
    named = ", ".join(f"{letter} {name}" for letter, name in letters.items())
    lines.append(f"     {named}, {SEVERAL} several, by threshold; ^ the best {best.score}")
    if axis[0] > 0:
        lines.append(f"     values below {axis[0]:g} are not drawn")
    return lines


POINTS, NAMED = 400, 8
#: How far from the best one a named threshold is at least, as a share of the axis.
NEAR = 0.08


def curve_content(sweep: Any, best: Best | None = None) -> dict[str, Any]:
    """Return the scores from 0 to 1 by threshold, and the best one: that which the sweep shows if none is given."""
    known = [m.name for m in sweep.metrics if (m.low, m.high) == (0, 1)]
    scores = [name for name in ("precision", "recall", "f1") if name in known] or known[:3]
    best = sweep._leading.best if best is None else best
    table = sweep.curve(limit=POINTS)
    values = {name: table[name].to_numpy() for name in scores}
    marked = [best.figures[name] for name in scores if best is not None]
    axis = axis_of(values, "f1" if "f1" in values else scores[0], marked) if scores else (0.0, 1.0)
    found = {"rows": table.select(["threshold", *scores]).to_pylist(), "scores": scores, "axis": list(axis)}
    found |= {"best": None, "best_text": "", "named": []}
    if best is not None and np.isfinite(best.threshold):
        found |= {"best": best.threshold, "best_text": f"best {best.score} at {best.shown}"}
    if scores == ["precision", "recall", "f1"]:
        found["named"] = _named(sweep.shown, table["threshold"].to_numpy(), values, axis, best)
    return found


def _named(
    shown: Callable[[float], str],
    thresholds: NDArray[np.float64],
    values: Mapping[str, NDArray[np.float64]],
    axis: tuple[float, float],
    best: Best | None,
) -> list[dict[str, Any]]:
    """Return thresholds spaced evenly along the drawn precision-recall curve, and the best one.

    Of those near an even place, the one that `shown` writes in the fewest characters is named.
    """
    places = np.stack([values["recall"], values["precision"]])
    inside = np.flatnonzero(np.isfinite(thresholds) & (places >= axis[0]).all(0))
    if not inside.size:
        return []
    way = np.append(0.0, np.cumsum(np.hypot(*np.diff(places[:, inside]))))
    texts = [shown(float(thresholds[k])) for k in inside]
    at = inside[np.unique([_short(texts, way, place) for place in (np.arange(NAMED) + 0.5) / NAMED])]
    marked = None
    if best is not None and np.isfinite(best.threshold):
        marked = np.array([[best.figures["recall"]], [best.figures["precision"]]])
        apart = np.hypot(*(places[:, at] - marked))
        at = at[apart > NEAR * (axis[1] - axis[0])]
    found = [
        {"threshold": thresholds[k], **{name: of[k] for name, of in values.items()}, "best": False,
         "text": shown(float(thresholds[k]))}
        for k in at
    ]  # fmt: skip
    if best is not None and marked is not None:
        figures = {name: best.figures[name] for name in values}
        found.append({"threshold": best.threshold, **figures, "best": True, "text": best.shown})
    return found


def _short(texts: Sequence[str], way: NDArray[np.float64], place: float) -> int:
    """Return which point near a place, a share of the way along the curve, has the shortest text."""
    near = way[-1] * np.array([place, place - 0.25 / NAMED, place + 0.25 / NAMED])
    first, start, stop = np.searchsorted(way, near).tolist()
    return min(range(start, max(stop, first + 1)), key=lambda k: (len(texts[k]), abs(k - first)))


#: Figures of the thresholds that are listed, and those of a table for which every line has room.
SHOWN = ("clusters", "largest", "precision", "recall", "f1")
FIRST = ("threshold", "n_items", "f1", "cost")
