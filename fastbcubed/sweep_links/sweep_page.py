"""The curve as plain data for charts: the scores that are drawn, their axis, and thresholds to name along it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbcubed.render.report import Page
from fastbcubed.render.wording import count
from fastbcubed.results.display import coverage, definition
from fastbcubed.results.page import Asked
from fastbcubed.results.section_page import chart, page_of, section
from fastbcubed.sweep_links.best import Best
from fastbcubed.sweep_links.sweep_text import axis_of, grid_of, tables, what_was_swept

#: Points of the curve, and thresholds that are named along it besides the best one.
POINTS, NAMED = 400, 8
#: How far from the best one a named threshold is at least, as a share of the axis.
NEAR = 0.08


def curve_content(sweep: Any, best: Best | None = None) -> dict[str, Any]:
    """Return the scores from 0 to 1 by threshold, and the best one: that of F1 if none is given."""
    known = [m.name for m in sweep.metrics if (m.low, m.high) == (0, 1)]
    scores = [name for name in ("precision", "recall", "f1") if name in known] or known[:3]
    if best is None and "f1" in scores:
        best = sweep.best("f1")
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
        {
            "threshold": thresholds[k],
            **{name: of[k] for name, of in values.items()},
            "best": False,
            "text": shown(float(thresholds[k])),
        }
        for k in at
    ]
    if best is not None and marked is not None:
        figures = {name: best.figures[name] for name in values}
        found.append({"threshold": best.threshold, **figures, "best": True, "text": best.shown})
    return found


def _short(texts: Sequence[str], way: NDArray[np.float64], place: float) -> int:
    """Return which point near a place, a share of the way along the curve, has the shortest text."""
    near = way[-1] * np.array([place, place - 0.25 / NAMED, place + 0.25 / NAMED])
    first, start, stop = np.searchsorted(way, near).tolist()
    return min(range(start, max(stop, first + 1)), key=lambda k: (len(texts[k]), abs(k - first)))


#: Figures of the thresholds that are listed.
SHOWN = ("clusters", "largest", "precision", "recall", "f1")


def sweep_page(sweep: Any, best: Best, asked: Asked) -> Page:
    """Return the page of a sweep."""
    truth, links = (sweep.at_best.names[side] for side in ("truth", "prediction"))
    curve = curve_content(sweep, best)
    begins = f" The axis begins at {curve['axis'][0]:g}." if curve["axis"][0] else ""
    charts = []
    if curve["scores"]:
        charts.append(
            chart("thresholds", "Scores by threshold", f"A strong threshold links few items.{begins}", curve)
        )
    if curve["named"]:
        text = f"From threshold to threshold; the best one is bold.{begins}"
        charts.append(chart("precision_recall", "Precision by recall", text, curve))
    points = sorted(sweep._point(row["threshold"]) for row in curve["named"])
    rows = [{"threshold": float(sweep._curve.thresholds[at]), **sweep._curve.at(at, *SHOWN)} for at in points]
    along = "The thresholds that the curve names, and the best one."
    sections = [
        section("Best threshold", [best.sentence, best.range], charts=charts),
        section("Along the curve", [along], grids=[grid_of(rows, 1, sweep.shown)]) if rows else {},
        *(
            section(title, [f"{said}."] if said else [], grids=[grid])
            for title, said, grid in tables(sweep, best, asked.worst)
        ),
        section("How it was made", notes=[
            what_was_swept(sweep), *coverage(sweep.at_best), definition(sweep.at_best),
            *(f"{name} is not known at every threshold: {reason}." for name, reason in sweep.not_computed.items()),
        ]),
    ]  # fmt: skip
    facts = {
        "Truth": truth,
        "Links": links,
        "Scored": f"{count(sweep.coverage.n_scored(sweep.policies))} items",
    }
    warnings = [each for each in sweep.warnings if each["code"] != "made-of-links"]  # which is of the best F1
    return page_of("sweep", asked.title or f"Thresholds for {links}", facts, sections, warnings)
