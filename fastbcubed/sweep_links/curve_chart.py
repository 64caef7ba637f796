"""Drawings of the curve of a sweep: the axis of scores, the letters of a terminal, and the content of charts."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbcubed.metrics.registry import METRICS
from fastbcubed.render.text import paragraph
from fastbcubed.sweep_links.curve import Best
from fastbcubed.sweep_links.threshold_axis import ThresholdAxis, Values

#: The character at a place where several scores coincide.
SEVERAL = "*"
#: An axis covers the points where the loss of the leading score is at most so many times its least, or this loss.
TIMES, LEAST_LOSS = 2.0, 0.02
#: Parts into which the labels of an axis divide it.
PARTS = 5


def axis_of(curves: Mapping[str, Values], leading: str, marked: Sequence[float] = ()) -> tuple[float, float]:
    """Return the ends of an axis of scores, as round numbers, that covers the points near the best leading score.

    The axis includes all `marked` values, and all values of the curves if those near the best one are equal.

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
    ticks: Mapping[int, str],
    marked: int | None,
    *,
    height: int = 2 * PARTS + 1,
    axis: tuple[float, float] = (0.0, 1.0),
) -> list[str]:
    """Return the lines of a text chart of curves, each drawn with its name, a letter.

    A column of the chart shows one value of every curve; `ticks` has texts below columns, and `marked` is the column of
    the pointer. Values beyond the axis are left out.

    >>> curves = {"P": np.array([0.2, 0.9, 1.0]), "R": np.array([1.0, 0.9, 0.0])}
    >>> for line in draw(curves, {0: "0", 2: "1"}, 1, height=3):
    ...     print(line)
    1.0 |R*P
    0.5 |
    0.0 |P R
         +^+
         0 1
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
    below, texts = ["-"] * width, ""
    for column, text in sorted(ticks.items()):
        below[column] = "+"
        texts = texts.ljust(max(0, margin + 2 + column - len(text) // 2)) + text
    if marked is not None:
        below[marked] = "^"
    lines += [" " * (margin + 2) + "".join(below), texts]
    return lines


#: Scores that are drawn, and their letters.
DRAWN = {"precision": "P", "recall": "R", "f1": "F"}
COLUMNS, MARGIN = 60, " " * 5


def drawn(sweep: Any, best: Best) -> list[str]:
    """Return the lines of a text chart of scores by threshold, with a pointer to the best; empty if there is no axis.

    The chart shows precision, recall and F1 if the curve has them, and the optimised score if its range is 0 to 1; if
    there are none of these, it is empty. The axis of scores covers their values near the best F1.
    """
    curve, thresholds = sweep._curve, ThresholdAxis.of(sweep._level_thresholds)
    metric = METRICS.get(best.score)
    letters = {letter: name for name, letter in DRAWN.items() if name in curve.names}
    if metric is not None and best.score not in DRAWN and metric.low >= 0 and metric.high <= 1:
        letters["B"] = best.score
    if thresholds is None or not letters:
        return []
    at = thresholds.thresholds(np.linspace(*thresholds.ends, COLUMNS))
    column = thresholds.column(float(thresholds.places(best.threshold)), COLUMNS)
    at[column] = min(max(best.threshold, thresholds.least), thresholds.most)
    points = np.array([sweep._point(threshold) for threshold in at.tolist()])
    values = {letter: curve.figures(name, points) for letter, name in letters.items()}
    marked = [best.figures[name] for name in letters.values()]
    axis = axis_of(values, "F" if "F" in values else next(iter(values)), marked)
    ticks = {thresholds.column(place, COLUMNS): text for place, text in thresholds.ticks(COLUMNS)}
    lines = draw(values, ticks, column, axis=axis)
    named = ", ".join(f"{letter} {name}" for letter, name in letters.items())
    by = "the log odds of the threshold" if thresholds.log_odds else "threshold"
    said = [f"{named}, {SEVERAL} several, by {by}; ^ the best {best.score}"]
    said += [f"values below {axis[0]:g} are not drawn"] if axis[0] > 0 else []
    return [*lines, *(line for text in said for line in paragraph(text, MARGIN, MARGIN).splitlines())]


POINTS, NAMED = 400, 8
#: The least distance of a labelled threshold from the best one, as a share of the axis.
NEAR = 0.08


def curve_content(sweep: Any, best: Best | None = None) -> dict[str, Any]:
    """Return the content of charts: scores from 0 to 1 by threshold, and the best threshold, by default the sweep's.

    `ends` and `ticks` describe the axis of thresholds: the places of its ends, and places with their texts. Each row
    has its `place` on the axis, and `best` is the place of the best threshold.
    """
    known = [m.name for m in sweep.metrics if (m.low, m.high) == (0, 1)]
    scores = [name for name in ("precision", "recall", "f1") if name in known] or known[:3]
    best = sweep._leading.best if best is None else best
    table = sweep.curve(limit=POINTS)
    values = {name: table[name].to_numpy() for name in scores}
    marked = [best.figures[name] for name in scores if best is not None]
    axis = axis_of(values, "f1" if "f1" in values else scores[0], marked) if scores else (0.0, 1.0)
    found = {"rows": table.select(["threshold", *scores]).to_pylist(), "scores": scores, "axis": list(axis)}
    found |= {"best": None, "best_text": "", "named": [], "log_odds": False, "ends": None, "ticks": []}
    thresholds = ThresholdAxis.of(sweep._level_thresholds)
    places: Callable[[Any], NDArray[Any]] = np.asarray
    if thresholds is not None:
        places, ticks = thresholds.places, thresholds.ticks(COLUMNS)
        found |= {"log_odds": thresholds.log_odds, "ends": list(thresholds.ends), "ticks": ticks}
    for row, place in zip(found["rows"], places(table["threshold"].to_numpy()).tolist(), strict=True):
        row["place"] = place
    if best is not None and np.isfinite(best.threshold):
        found |= {"best": float(places(best.threshold)), "best_text": f"best {best.score} at {best.shown}"}
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
    """Return thresholds to label, spaced evenly along the drawn precision-recall curve, and the best one.

    Near each of the evenly spaced positions, the threshold with the shortest text is chosen.
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
    """Return the point with the shortest text near a place, which is a share of the length of the curve."""
    near = way[-1] * np.array([place, place - 0.25 / NAMED, place + 0.25 / NAMED])
    first, start, stop = np.searchsorted(way, near).tolist()
    return min(range(start, max(stop, first + 1)), key=lambda k: (len(texts[k]), abs(k - first)))
