"""What all charts share: colours, fonts, axes, intervals and names."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import altair as alt

from fastbcubed.results.report.palette import Palette

#: Width of what is drawn, without its labels, and height of a row of a dot plot.
WIDTH, ROW = 250, 20
#: Characters of a name at an axis.
LONGEST = 24
#: Values that differ by no more are one place of an axis.
ROUNDING = 1e-9
FONT = "Arial, Helvetica, 'Liberation Sans', sans-serif"
#: What the sides are called, and what outcomes are drawn in.
SIDES = {"true": "truth", "pred": "prediction"}
KINDS = {"true": "true clusters", "pred": "predicted clusters"}
#: What scores are called at an axis, if not by their names.
TITLES = {"f1": "F1", "mean_f1": "mean F1"}
OUTCOMES = {
    "true": {"exact": "calm", "split": "true", "merged": "pred", "split and merged": "both"},
    "pred": {"exact": "calm", "fragment": "true", "union": "pred", "mixed": "both"},
}

Row = Mapping[str, Any]


def finished(chart: Any, palette: Palette, title: str | None = None) -> Any:
    """Return a chart in the colours and fonts of all charts."""
    axis = {
        "labelColor": palette.soft, "titleColor": palette.soft, "gridColor": palette.faint, "domain": False,
        "tickColor": palette.faint, "labelFontSize": 11, "titleFontSize": 11, "titleFontWeight": "normal",
        "labelLimit": 260, "titlePadding": 6,
    }  # fmt: skip
    if title is not None:
        chart = chart.properties(title=title)
    return (
        chart.configure(font=FONT, background=palette.paper, padding=4)
        .configure_view(stroke=None)
        .configure_axis(**axis)
        .configure_axisX(labelFlush=False)  # a number stands below its line
        .configure_axisY(grid=False, ticks=False, labelColor=palette.ink, labelPadding=6)
        .configure_legend(
            labelColor=palette.ink, titleColor=palette.soft, labelFontSize=11, labelLimit=220, orient="top",
            title=None, offset=4, symbolSize=60,
        )
        .configure_title(color=palette.ink, fontSize=13, anchor="start", fontWeight=600, offset=8)
    )  # fmt: skip


def beside(charts: Sequence[Any]) -> Any:
    """Return charts side by side."""
    return alt.hconcat(*charts, spacing=14)


def chart_of(rows: Sequence[Row]) -> Any:
    """Return a chart of rows that has no marks yet."""
    return alt.Chart(alt.InlineData(values=list(rows)))


def intervals_of(rows: Iterable[Row], named: Any) -> list[dict[str, Any]]:
    """Return the intervals of rows that have one, and what places them."""
    return [
        {**named(row), "low": row["low"], "high": row["high"]}
        for row in rows
        if row.get("low") is not None
        and row.get("high") is not None
        and math.isfinite(row["low"] + row["high"])
    ]


def side_colours(palette: Palette) -> Any:
    """Return the colours of the sides, with a legend."""
    return alt.Color(
        "side:N", scale=alt.Scale(domain=list(SIDES.values()), range=[palette.true, palette.pred])
    )


def side_dashes() -> Any:
    """Return how lines of the sides are dashed, so that colour is not all that tells them apart."""
    return alt.StrokeDash(
        "side:N", legend=None, scale=alt.Scale(domain=list(SIDES.values()), range=[[1, 0], [6, 3]])
    )


def domain_of(values: Iterable[float]) -> list[float]:
    """Return the range of an axis, with a little room; scores do not pass 0 and 1."""
    known = [value for value in values if value is not None and math.isfinite(value)] or [0.0, 1.0]
    low, high = min(known), max(known)
    room = 0.06 * (high - low) if high - low > ROUNDING else 0.02
    inside = low >= 0 and high <= 1
    return [max(0.0, low - room), min(1.0, high + room)] if inside else [low - room, high + room]


def short(text: str, longest: int = LONGEST) -> str:
    """Return a name as an axis has room for it."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
