"""A sweep as the content of a page: the best threshold, the curve, merges to look at, and how it was made."""

from __future__ import annotations

from typing import Any

from fastbcubed.results.report.asked import Asked
from fastbcubed.results.report.document import chart, document, section
from fastbcubed.results.text.display import coverage, definition
from fastbcubed.results.text.wording import count
from fastbcubed.thresholds.best import Best
from fastbcubed.thresholds.curve_content import curve_content
from fastbcubed.thresholds.sweep_text import grid_of, tables, what_was_swept

#: Figures of the thresholds that are listed.
SHOWN = ("clusters", "largest", "precision", "recall", "f1")


def sweep_content(sweep: Any, best: Best, asked: Asked) -> dict[str, Any]:
    """Return the content of the page of a sweep."""
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
    facts = {"Truth": truth, "Links": links, "Scored": f"{count(sweep.coverage.n_common)} items"}
    warnings = [each for each in sweep.warnings if each["code"] != "made-of-links"]  # which is of the best F1
    return document("sweep", asked.title or f"Thresholds for {links}", facts, sections, warnings)
