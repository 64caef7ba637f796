"""Charts of what differs between runs, of a diff, and of thresholds."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from typing import Any

import altair as alt

from fastbcubed.results.report.axes import (
    ROW,
    TITLES,
    WIDTH,
    Row,
    chart_of,
    intervals_of,
    short,
)
from fastbcubed.results.report.palette import Palette
from fastbcubed.results.text.wording import label


def deltas_chart(rows: Iterable[Row], palette: Palette) -> Any:
    """Return differences from the baseline with intervals as a forest plot; those that do not hold are hollow."""
    own = [row for row in rows if row.get("delta") is not None]
    several = len({row["experiment"] for row in own}) > 1
    names = [
        short(f"{label(row['experiment'])}: {row['score']}" if several else row["score"], 40)
        + (" (low is good)" if row.get("best") == "lower" else "")
        for row in own
    ]
    return _forest(own, names, ("holds up", "may be chance"), "difference from the baseline", palette)


def slice_deltas_chart(slicing: Row, score: str, palette: Palette, most: int = 20) -> Any:
    """Return the differences of a score by slice; those within two standard errors of 0 are hollow."""
    at = slicing["scores"].index(score)
    own, names = [], []
    several = len({row["run"] for row in slicing["rows"]}) > 1
    for row in slicing["rows"][:most]:
        found = row["scores"][at]
        if found["delta"] is not None:
            reach = None if found["se"] is None else 2 * found["se"]
            ends = {} if reach is None else {"low": found["delta"] - reach, "high": found["delta"] + reach}
            own.append(
                {"delta": found["delta"], "holds": reach is not None and abs(found["delta"]) > reach, **ends}
            )
            name = ", ".join(map(label, row["slice"]))
            names.append(f"{short(label(row['run']), 12)}: {short(name, 20)}" if several else short(name, 32))
    title = f"difference of {TITLES.get(score, score)} from the baseline"
    held = ("beyond two standard errors", "within, or not known")
    return _forest(own, names, held, title, palette, slicing["overall"].get(score))


def _forest(
    rows: Sequence[Row],
    names: Sequence[str],
    held: tuple[str, str],
    title: str,
    palette: Palette,
    of_all: float | None = None,
) -> Any:
    """Return differences one below the other, with lines where there are intervals; hollow where they do not hold.

    `of_all` is the difference over all items, a dashed line.
    """
    points = [
        {"at": at, "delta": row["delta"], "holds": held[0] if row.get("holds") else held[1]}
        for at, row in enumerate(rows)
    ]
    spans = intervals_of([{**row, "at": at} for at, row in enumerate(rows)], lambda row: {"at": row["at"]})
    y = alt.Y("at:O", title=None, axis=alt.Axis(labelExpr=f"{json.dumps(names)}[datum.value]"))
    x = alt.X(
        "delta:Q",
        title=title,
        axis=alt.Axis(format="+.3~f", tickCount=5),
        scale=alt.Scale(padding=8, nice=False),
    )
    layers = [chart_of([{"delta": 0}]).mark_rule(color=palette.soft).encode(x=x)]
    if of_all is not None:
        dashed = chart_of([{"delta": of_all}]).mark_rule(strokeDash=[4, 3], color=palette.soft)
        layers.append(dashed.encode(x=x))
    if spans:
        lines = chart_of(spans).mark_rule(strokeWidth=2, color=palette.ink)
        layers.append(lines.encode(x=alt.X("low:Q"), x2="high:Q", y=y))
    scale = alt.Scale(domain=list(held), range=[palette.ink, palette.paper])
    fill = alt.Fill("holds:N", scale=scale, legend=alt.Legend(columns=1))
    dots = chart_of(points).mark_point(size=60, opacity=1, stroke=palette.ink)
    layers.append(dots.encode(x=x, y=y, fill=fill))
    return alt.layer(*layers).properties(width=WIDTH, height=max(2, len(rows)) * ROW)


def slice_changes_chart(slicing: Row, palette: Palette, most: int = 20) -> Any:
    """Return what each slice has of the split and of the merge rate, as stacked bars."""
    rows = slicing["rows"][:most]
    names = [short(", ".join(map(label, row["slice"])), 32) for row in rows]
    places = [(kind, slicing["figures"].index(f"{kind}_change")) for kind in ("split", "merge")]
    bars = [
        {"at": at, "kind": kind, "change": row["figures"][place] or 0.0}
        for at, row in enumerate(rows)
        for kind, place in places
    ]
    y = alt.Y("at:O", title=None, axis=alt.Axis(labelExpr=f"{json.dumps(names)}[datum.value]"))
    x = alt.X("change:Q", title="share of all items", axis=alt.Axis(format="~%", tickCount=5))
    scale = alt.Scale(domain=["split", "merge"], range=[palette.true, palette.pred])
    marks = chart_of(bars).mark_bar(height={"band": 0.7})
    return marks.encode(x=x, y=y, color=alt.Color("kind:N", scale=scale)).properties(
        width=WIDTH, height=max(2, len(rows)) * ROW
    )


def changes_chart(rows: Sequence[Row], palette: Palette, of: str) -> Any:
    """Return which share of the items, or of their weight, is in clusters that became one thing or another."""
    points = [{"became": row["became"], "share": row["share"] or 0.0} for row in rows]
    order = [row["became"] for row in rows]
    colours = {
        "unchanged": palette.calm,
        "split": palette.true,
        "merged": palette.pred,
        "split and merged": palette.both,
    }
    scale = alt.Scale(domain=order, range=[colours.get(name, palette.soft) for name in order])
    x = alt.X("share:Q", title=f"share of the {of}", axis=alt.Axis(format="~%", tickCount=5))
    bars = (
        chart_of(points)
        .mark_bar(height={"band": 0.7})
        .encode(
            x=x,
            y=alt.Y("became:N", sort=order, title=None),
            color=alt.Color("became:N", scale=scale, legend=None),
        )
    )
    return bars.properties(width=WIDTH, height=len(order) * 24)


def thresholds_chart(curve: Row, palette: Palette) -> Any:
    """Return scores by threshold on an axis on which they differ near the best one, which is marked."""
    rows, scores, best = curve["rows"], curve["scores"], curve["best"]
    colours = {"precision": palette.pred, "recall": palette.true, "f1": palette.ink}
    points = [
        {"threshold": row["threshold"], "score": score, "value": row[score]}
        for row in rows
        for score in scores
        if row["threshold"] is not None and math.isfinite(row["threshold"]) and row[score] is not None
    ]
    x = alt.X(
        "threshold:Q", title="threshold", scale=alt.Scale(zero=False, nice=False), axis=alt.Axis(tickCount=6)
    )
    scale = alt.Scale(domain=curve["axis"], nice=False)
    y = alt.Y("value:Q", title=None, scale=scale, axis=alt.Axis(grid=True, tickCount=5))
    order = [score for score in colours if score in scores] or list(scores)
    colour = alt.Color(
        "score:N", scale=alt.Scale(domain=order, range=[colours.get(s, palette.both) for s in order])
    )
    dash = alt.StrokeDash(
        "score:N", scale=alt.Scale(domain=order, range=[[1, 0], [6, 3], [2, 2]][: len(order)])
    )
    layers = [
        chart_of(points)
        .mark_line(interpolate="step-before", strokeWidth=2, clip=True)
        .encode(x=x, y=y, color=colour, strokeDash=dash)
    ]
    if best is not None:
        mark = [{"threshold": best, "text": curve["best_text"]}]
        right = best > sum(_ends(points)) / 2
        layers.append(chart_of(mark).mark_rule(strokeDash=[4, 3], color=palette.soft).encode(x=x))
        layers.append(
            chart_of(mark)
            .mark_text(
                align="right" if right else "left",
                dx=-5 if right else 5,
                fontSize=11,
                color=palette.soft,
                y=212,
            )
            .encode(x=x, text="text:N")
        )
    return alt.layer(*layers).properties(width=WIDTH + 110, height=220)


def precision_recall_chart(curve: Row, palette: Palette) -> Any:
    """Return precision by recall from threshold to threshold, near the best one; some are named, the best in bold."""
    points = [
        {"at": at, **{name: row[name] for name in ("precision", "recall")}}
        for at, row in enumerate(curve["rows"])
    ]
    low, high = curve["axis"]
    axis = alt.Axis(grid=True, tickCount=5)
    scale = alt.Scale(domain=[low, high], nice=False)
    x, y = (alt.X("recall:Q", title="recall", scale=scale, axis=axis),
            alt.Y("precision:Q", title="precision", scale=scale, axis=axis))  # fmt: skip
    layers = [
        chart_of(points)
        .mark_line(strokeWidth=2, color=palette.pred, clip=True)
        .encode(x=x, y=y, order="at:Q")
    ]
    for is_best, colour in ((False, palette.pred), (True, palette.ink)):
        some = chart_of([row for row in curve["named"] if row["best"] == is_best]).encode(x=x, y=y)
        weight = "bold" if is_best else "normal"
        layers.append(some.mark_point(filled=True, size=90 if is_best else 45, opacity=1, color=colour))
        layers.append(
            some.mark_text(
                align="right", dx=-7, dy=8, fontSize=11, fontWeight=weight, color=palette.ink
            ).encode(text="text:N")
        )
    return alt.layer(*layers).properties(width=WIDTH + 60, height=WIDTH + 10)


def _ends(points: Sequence[Row]) -> tuple[float, float]:
    """Return the first and the last threshold."""
    known = [point["threshold"] for point in points]
    return min(known, default=0.0), max(known, default=0.0)
