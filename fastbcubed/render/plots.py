"""Charts of pages, made with Altair: palette, axes, one function a chart, and their SVG."""

from __future__ import annotations

import json
import math
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import altair as alt

from fastbcubed.render.document import Chart
from fastbcubed.render.number_formats import label


@dataclass(frozen=True)
class Palette:
    """Colours of the chart elements, as CSS.

    Truth and prediction are blue and orange, which all kinds of colour vision distinguish; they differ in lightness
    as well.
    """

    ink: str = "#22262b"
    soft: str = "#666e78"  #: axes and notes
    faint: str = "#dfe3e8"  #: grid
    paper: str = "#ffffff"
    true: str = "#1d5f8f"
    pred: str = "#c8600f"
    both: str = "#7a4a8c"  #: split and merged
    calm: str = "#b7c0ca"  #: exact, and small slices


LIGHT = Palette()
DARK = Palette(
    ink="#e6e9ed", soft="#a3acb7", faint="#343b44", paper="#15181c", true="#6fb3e6", pred="#f29b4c",
    both="#c99bdb", calm="#66717d",
)  # fmt: skip

#: Names of the colours, keyed by the colours in charts; in a page they follow the reader's preference.
NAMES = {colour: name for name, colour in asdict(LIGHT).items()}


def as_style(palette: Palette) -> str:
    """Return the colours as properties of a style.

    Examples
    --------
    >>> as_style(LIGHT)[:14]
    '--ink:#22262b;'
    """
    return "".join(f"--{name}:{colour};" for name, colour in asdict(palette).items())


#: Width of a chart without its labels, and height of a row of a dot plot.
WIDTH, ROW = 250, 20
#: Characters of a name at an axis.
LONGEST = 24
#: Values that differ by no more are one place of an axis.
ROUNDING = 1e-9
FONT = "Arial, Helvetica, 'Liberation Sans', sans-serif"
#: Names of the sides, and colours of outcomes.
SIDES = {"true": "truth", "pred": "prediction"}
KINDS = {"true": "true clusters", "pred": "predicted clusters"}
#: What scores are called at an axis, if not by their names.
TITLES = {"f1": "F1", "mean_f1": "mean F1"}
OUTCOMES = {
    "true": {"exact": "calm", "split": "true", "merged": "pred", "split and merged": "both"},
    "pred": {"exact": "calm", "fragment": "true", "union": "pred", "mixed": "both"},
}

Row = Mapping[str, Any]


def finished(chart: Any, title: str | None = None) -> Any:
    """Return a chart in the colours and fonts of all charts."""
    axis = {
        "labelColor": LIGHT.soft, "titleColor": LIGHT.soft, "gridColor": LIGHT.faint, "domain": False,
        "tickColor": LIGHT.faint, "labelFontSize": 11, "titleFontSize": 11, "titleFontWeight": "normal",
        "labelLimit": 260, "titlePadding": 6,
    }  # fmt: skip
    if title is not None:
        chart = chart.properties(title=title)
    return (
        chart.configure(font=FONT, background=LIGHT.paper, padding=4)
        .configure_view(stroke=None)
        .configure_axis(**axis)
        .configure_axisX(labelFlush=False)  # a number stands below its line
        .configure_axisY(grid=False, ticks=False, labelColor=LIGHT.ink, labelPadding=6)
        .configure_legend(
            labelColor=LIGHT.ink, titleColor=LIGHT.soft, labelFontSize=11, labelLimit=220, orient="top",
            title=None, offset=4, symbolSize=60,
        )
        .configure_title(color=LIGHT.ink, fontSize=13, anchor="start", fontWeight=600, offset=8)
    )  # fmt: skip


def beside(charts: Sequence[Any]) -> Any:
    """Return charts side by side."""
    return alt.hconcat(*charts, spacing=14)


def chart_of(rows: Sequence[Row]) -> Any:
    """Return a chart of rows that has no marks yet."""
    return alt.Chart(alt.InlineData(values=list(rows)))


def intervals_of(rows: Iterable[Row], *kept: str) -> list[dict[str, Any]]:
    """Return the intervals of rows that have one, and other values of the rows."""
    return [
        {name: row[name] for name in (*kept, "low", "high")}
        for row in rows
        if None not in (row.get("low"), row.get("high")) and math.isfinite(row["low"] + row["high"])
    ]


def mapped(channel: Any, field: str, values: Mapping[Any, Any], **how: Any) -> Any:
    """Return a channel (colour, shape, dash) that shows the values of a field as this mapping has them."""
    return channel(field, scale=alt.Scale(domain=list(values), range=list(values.values())), **how)


def names_axis(names: Sequence[str], field: str = "at:O") -> Any:
    """Return the axis of rows that are numbered, with their names."""
    return alt.Y(field, title=None, axis=alt.Axis(labelExpr=f"{json.dumps(names)}[datum.value]"))


def shares_axis(field: str, title: str | None, **how: Any) -> Any:
    """Return an axis of shares."""
    return alt.X(field, title=title, axis=alt.Axis(format="~%", tickCount=5), **how)


def dashed_at(value: float, x: Any, field: str) -> Any:
    """Return a dashed line at a value."""
    return chart_of([{field: value}]).mark_rule(strokeDash=[4, 3], color=LIGHT.soft).encode(x=x)


def side_colours() -> Any:
    """Return the colours of the sides, with a legend."""
    return mapped(alt.Color, "side:N", {SIDES["true"]: LIGHT.true, SIDES["pred"]: LIGHT.pred})


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


def scores_chart(verdict: Row) -> Any:
    """Return precision, recall and F1 with intervals, next to those of trivial predictions."""
    names = {"alone": "all alone", "one": "all in one cluster"}
    scores, extremes = verdict["scores"], verdict["extremes"]
    points = [
        {"score": row["label"], "value": figures[row["score"]], "what": names[kind]}
        for kind, figures in extremes.items()
        for row in scores
        if row["score"] in figures
    ]
    points += [{"score": row["label"], "value": row["value"], "what": "this prediction"} for row in scores]
    kinds = ["this prediction", *(names[kind] for kind in extremes)]
    shapes = dict(zip(kinds, ("circle", "triangle-up", "square"), strict=False))
    colours = dict(zip(kinds, (LIGHT.ink, LIGHT.soft, LIGHT.soft), strict=False))
    y = alt.Y("score:N", sort=[row["label"] for row in scores], title=None, axis=alt.Axis(labelPadding=12))
    ticks = alt.Axis(values=[0, 0.2, 0.4, 0.6, 0.8, 1])
    layers = []
    if spans := intervals_of([{**row, "score": row["label"]} for row in scores], "score"):
        bars = chart_of(spans).mark_rule(strokeWidth=5, opacity=0.35, color=LIGHT.ink)
        layers.append(bars.encode(x=alt.X("low:Q", title=None), x2="high:Q", y=y))
    dots = chart_of(points).mark_point(filled=True, size=70, opacity=1).encode(
        x=alt.X("value:Q", title=None, scale=alt.Scale(domain=[0, 1]), axis=ticks), y=y,
        shape=mapped(alt.Shape, "what:N", shapes, legend=None),
        color=mapped(alt.Color, "what:N", colours, legend=None),
    )  # fmt: skip
    return alt.layer(*layers, dots).properties(width=WIDTH, height=30 * len(scores))


def slices_chart(slicing: Row, score: str, *, most: int = 20, labels: bool = True, width: int = WIDTH) -> Any:
    """Return a score by slice as dots with intervals, and that of all items as a line."""
    rows = [
        {"at": at, "value": row[score], "few": bool(row["few"]), "low": row.get(f"{score}_low"),
         "high": row.get(f"{score}_high"), "name": short(", ".join(map(label, row["slice"])))}
        for at, row in enumerate(row for row in slicing["rows"][:most] if row.get(score) is not None)
    ]  # fmt: skip
    spans, overall = intervals_of(rows, "at", "few"), slicing["overall"].get(score)
    sure = [end for span in spans if not span["few"] for end in (span["low"], span["high"])]
    domain = domain_of([*sure, *(row["value"] for row in rows), *([] if overall is None else [overall])])
    y = names_axis([row["name"] for row in rows]) if labels else alt.Y("at:O", title=None, axis=None)
    scale = alt.Scale(domain=domain)
    x = alt.X("value:Q", title=TITLES.get(score, score), scale=scale, axis=alt.Axis(tickCount=4))
    side = LIGHT.pred if slicing["by"] == "pred_size" else LIGHT.true
    colour = mapped(alt.Color, "few:N", {False: side, True: LIGHT.calm}, legend=None)
    layers = [] if overall is None else [dashed_at(overall, x, "value")]
    if spans:
        lines = chart_of(spans).mark_rule(strokeWidth=2, clip=True)
        layers.append(lines.encode(x=alt.X("low:Q", scale=scale), x2="high:Q", y=y, color=colour))
    points = [{name: row[name] for name in ("at", "value", "few")} for row in rows]
    layers.append(chart_of(points).mark_point(filled=True, size=55, opacity=1).encode(x=x, y=y, color=colour))
    return alt.layer(*layers).properties(width=width, height=max(2, len(rows)) * ROW)


def intervals_chart(estimated: Row) -> Any:
    """Return estimates as dots with intervals, one a row."""
    rows = [
        {"slice": [row["name"]], "few": False, **{f"value_{end}": row[end] for end in ("low", "high")},
         "value": row["value"]}
        for row in estimated["rows"]
    ]  # fmt: skip
    return slices_chart({"by": "", "rows": rows, "overall": {}}, "value")


def crossed_chart(slicing: Mapping[str, Any], score: str, *, most: int = 14) -> Any:
    """Return a score by two attributes as a heat map: the darker, the more is lost; grey and small where few."""
    rows = slicing["rows"]
    firsts, seconds = (_heaviest(rows, at, most) for at in (0, 1))
    cells = [
        {"a": firsts[a], "b": seconds[b], "value": row[score], "loss": 1 - row[score], "few": bool(row["few"]),
         "text": _two_digits(row[score])}
        for row in rows
        if row.get(score) is not None
        and (a := label(row["slice"][0])) in firsts
        and (b := label(row["slice"][1])) in seconds
    ]  # fmt: skip
    a_names, b_names = ([short(name, 14) for name in each] for each in (firsts, seconds))
    y = names_axis(a_names, "a:O").title(short(label(slicing["names"][0])))
    angle = 0 if max(map(len, seconds), default=0) < 5 else -60
    axis = alt.Axis(
        labelExpr=f"{json.dumps(b_names)}[datum.value]", orient="top", ticks=False, labelAngle=angle
    )
    base = chart_of(cells).encode(x=alt.X("b:O", title=short(label(slicing["names"][1])), axis=axis), y=y)
    worst = max((cell["loss"] for cell in cells), default=0) or 1.0
    shades = alt.Scale(domain=[0, worst], range=[0.04, 0.55])
    tiles = base.mark_rect(color=LIGHT.pred, stroke=LIGHT.faint).encode(
        opacity=alt.Opacity("loss:Q", legend=None, scale=shades)
    )
    colour = mapped(alt.Color, "few:N", {False: LIGHT.ink, True: LIGHT.soft}, legend=None)
    texts = base.mark_text(fontSize=10).encode(text="text:N", color=colour)
    return alt.layer(tiles, texts).properties(width=alt.Step(30), height=alt.Step(22))


def sizes_chart(rows: Iterable[Row], of: str = "items") -> Any:
    """Return the share of items in clusters of each size, of both sides."""
    points = [
        {"size": row["size"].replace("-", "–"), "side": SIDES[row["side"]], "share": row["share_items"]}
        for row in rows
    ]
    sizes = sorted({point["size"] for point in points}, key=lambda size: int(size.partition("–")[0]))
    y = alt.Y("size:N", sort=sizes, title="size of the cluster", scale=alt.Scale(paddingInner=0.25))
    bars = chart_of(points).mark_bar(height={"band": 0.92}).encode(
        y=y, yOffset=alt.YOffset("side:N", sort=list(SIDES.values())),
        x=shares_axis("share:Q", f"share of {of}"), color=side_colours(),
    )  # fmt: skip
    return bars.properties(width=WIDTH, height=max(2, len(sizes)) * 24)


def outcomes_chart(rows: Iterable[Row], side: str) -> Any:
    """Return the outcomes of the clusters of a side, as two bars of 100 %: by clusters, and by their items."""
    colours = {outcome: getattr(LIGHT, name) for outcome, name in OUTCOMES[side].items()}
    own = [row for row in rows if row["side"] == side]
    bars = []
    for measure, name in (("n_clusters", "clusters"), ("n_items", "items")):
        total = sum(row[measure] for row in own) or 1
        start = 0.0
        for row in own:
            share = row[measure] / total
            bars.append({
                "of": name, "outcome": row["outcome"], "start": start, "end": start + share,
                "middle": start + share / 2, "text": f"{100 * share:.0f} %" if share >= 0.1 else "",
            })  # fmt: skip
            start += share
    y = alt.Y("of:N", sort=["clusters", "items"], title=None)
    x = shares_axis("start:Q", None, scale=alt.Scale(domain=[0, 1]))
    base = chart_of(bars)
    colour = mapped(alt.Color, "outcome:N", colours, legend=alt.Legend(columns=4))
    stacked = base.mark_bar(stroke=LIGHT.paper, strokeWidth=1).encode(x=x, x2="end:Q", y=y, color=colour)
    texts = base.mark_text(fontSize=11).encode(
        x="middle:Q", y=y, text="text:N",
        color=alt.condition("datum.outcome == 'exact'", alt.value(LIGHT.ink), alt.value(LIGHT.paper)),
    )  # fmt: skip
    return alt.layer(stacked, texts).properties(width=WIDTH + 40, height=64)


def lorenz_chart(curves: Mapping[str, Mapping[str, Any]]) -> Any:
    """Return how much of the loss is in how few clusters, with a mark at half of it."""
    points, halves = [], []
    for side, found in curves.items():
        points += [
            {"side": SIDES[side], "n": row["n_clusters"], "share": row["share_loss"]}
            for row in found["curve"]
            if row["share_loss"] is not None and math.isfinite(row["share_loss"]) and row["n_clusters"] > 0
        ]
        if found["n_half"]:
            kind = KINDS[side].removesuffix("s" * (found["n_half"] == 1))
            text = f"half in {found['n_half']:,} {kind}"
            reached = (row["share_loss"] for row in found["curve"] if row["n_clusters"] >= found["n_half"])
            share = next(reached, 0.5)  # of as few clusters as have half of the loss, it may be more
            halves.append({"side": SIDES[side], "n": found["n_half"], "share": share, "text": text})
    most = max((point["n"] for point in points), default=1)
    tens = [10**power for power in range(len(str(most)))]
    x = alt.X("n:Q", title="clusters, the costliest first", axis=alt.Axis(values=tens, format="~s", grid=True),
              scale=alt.Scale(type="log", nice=False, domain=[1, max(most, 10)]))  # fmt: skip
    y = alt.Y("share:Q", title="share of the loss", axis=alt.Axis(format="~%", grid=True, tickCount=5))
    colour = side_colours()
    dash = mapped(alt.StrokeDash, "side:N", {SIDES["true"]: [1, 0], SIDES["pred"]: [6, 3]}, legend=None)
    lines = chart_of(points).mark_line(strokeWidth=2.5).encode(x=x, y=y, color=colour, strokeDash=dash)
    dots = chart_of(halves).mark_point(filled=True, size=70, opacity=1).encode(x=x, y=y, color=colour)
    texts = [
        chart_of([half])
        .mark_text(align="left", fontSize=11)
        .encode(x=alt.value(2), y=alt.value(-26 + 15 * k), text="text:N", color=colour)
        for k, half in enumerate(halves)
    ]
    return alt.layer(lines, dots, *texts).properties(width=WIDTH + 30, height=190)


def repairs_chart(rows: Sequence[Row], start: float) -> Any:
    """Return F1 after the first repairs, one after the other."""
    points = [{"n": 0, "f1": start}, *({"n": row["rank"], "f1": row["running"]} for row in rows)]
    x = alt.X("n:Q", title="repairs, in this order", axis=alt.Axis(tickMinStep=1, tickCount=5, format="d"))
    scale = alt.Scale(domain=domain_of([point["f1"] for point in points]))
    y = alt.Y("f1:Q", title="F1", scale=scale, axis=alt.Axis(grid=True, tickCount=5))
    line = chart_of(points).mark_line(interpolate="step-after", strokeWidth=2.5, color=LIGHT.ink)
    return line.encode(x=x, y=y).properties(width=WIDTH + 30, height=150)


def _two_digits(value: float) -> str:
    return "1" if value == 1 else f"{math.floor(value * 100) / 100:.2f}".removeprefix("0")


def _heaviest(rows: Iterable[Row], at: int, most: int) -> dict[str, int]:
    """Return the values of an attribute with most items, and their places in the order of the rows."""
    items: dict[str, int] = {}
    for row in rows:
        name = label(row["slice"][at])
        items[name] = items.get(name, 0) + row["n_items"]
    kept = sorted(items, key=lambda name: -items[name])[:most]
    return {name: place for place, name in enumerate(sorted(kept, key=_in_order))}


def _in_order(name: str) -> tuple[bool, float, str]:
    """Return a natural sort key of names: by the leading number, then as text; nulls last."""
    number = re.match(r"-?\d+(\.\d+)?", name)
    return name == label(None), float(number.group()) if number else -math.inf, name


def deltas_chart(rows: Iterable[Row]) -> Any:
    """Return differences from the baseline with intervals as a forest plot; those that do not hold are hollow."""
    own = [row for row in rows if row.get("delta") is not None]
    several = len({row["experiment"] for row in own}) > 1
    names = [
        short(f"{label(row['experiment'])}: {row['score']}" if several else row["score"], 40)
        + (" (low is good)" if row.get("best") == "lower" else "")
        for row in own
    ]
    return _forest(own, names, ("holds", "does not hold"), "difference from the baseline")


def slice_deltas_chart(slicing: Row, score: str, most: int = 20) -> Any:
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
    return _forest(own, names, held, title, slicing["overall"].get(score))


def _forest(
    rows: Sequence[Row], names: Sequence[str], held: tuple[str, str], title: str, of_all: float | None = None
) -> Any:
    """Return differences one below the other, with lines where there are intervals; hollow where they do not hold.

    `of_all` is the difference over all items, a dashed line.
    """
    points = [
        {"at": at, "delta": row["delta"], "holds": held[0] if row.get("holds") else held[1]}
        for at, row in enumerate(rows)
    ]
    spans = intervals_of([{**row, "at": at} for at, row in enumerate(rows)], "at")
    y, axis = names_axis(names), alt.Axis(format="+.3~f", tickCount=5)
    x = alt.X("delta:Q", title=title, axis=axis, scale=alt.Scale(padding=8, nice=False))
    layers = [chart_of([{"delta": 0}]).mark_rule(color=LIGHT.soft).encode(x=x)]
    layers += [] if of_all is None else [dashed_at(of_all, x, "delta")]
    if spans:
        lines = chart_of(spans).mark_rule(strokeWidth=2, color=LIGHT.ink)
        layers.append(lines.encode(x=alt.X("low:Q"), x2="high:Q", y=y))
    colours = dict(zip(held, (LIGHT.ink, LIGHT.paper), strict=True))
    fill = mapped(alt.Fill, "holds:N", colours, legend=alt.Legend(columns=1))
    dots = chart_of(points).mark_point(size=60, opacity=1, stroke=LIGHT.ink)
    layers.append(dots.encode(x=x, y=y, fill=fill))
    return alt.layer(*layers).properties(width=WIDTH, height=max(2, len(rows)) * ROW)


def slice_changes_chart(slicing: Row, most: int = 20) -> Any:
    """Return the split and the merge rate of each slice, as stacked bars."""
    rows = slicing["rows"][:most]
    names = [short(", ".join(map(label, row["slice"])), 32) for row in rows]
    places = [(kind, slicing["figures"].index(f"{kind}_change")) for kind in ("split", "merge")]
    bars = [
        {"at": at, "kind": kind, "change": row["figures"][place] or 0.0}
        for at, row in enumerate(rows)
        for kind, place in places
    ]
    x = shares_axis("change:Q", "share of all items")
    colour = mapped(alt.Color, "kind:N", {"split": LIGHT.true, "merge": LIGHT.pred})
    marks = chart_of(bars).mark_bar(height={"band": 0.7}).encode(x=x, y=names_axis(names), color=colour)
    return marks.properties(width=WIDTH, height=max(2, len(rows)) * ROW)


def changes_chart(rows: Sequence[Row], of: str) -> Any:
    """Return which share of the items, or of their weight, is in clusters that became one thing or another."""
    points = [{"became": row["became"], "share": row["share"] or 0.0} for row in rows]
    kinds = {"unchanged": "calm", "split": "true", "merged": "pred", "split and merged": "both"}
    colours = {row["became"]: getattr(LIGHT, kinds.get(row["became"], "soft")) for row in rows}
    y = alt.Y("became:N", sort=list(colours), title=None)
    colour = mapped(alt.Color, "became:N", colours, legend=None)
    x = shares_axis("share:Q", f"share of the {of}")
    bars = chart_of(points).mark_bar(height={"band": 0.7}).encode(x=x, y=y, color=colour)
    return bars.properties(width=WIDTH, height=len(rows) * 24)


def thresholds_chart(curve: Row) -> Any:
    """Return scores by threshold on an axis on which they differ near the best one, which is marked."""
    rows, scores, best = curve["rows"], curve["scores"], curve["best"]
    colours = {"precision": LIGHT.pred, "recall": LIGHT.true, "f1": LIGHT.ink}
    points = [
        {"threshold": row["threshold"], "score": score, "value": row[score]}
        for row in rows
        for score in scores
        if row["threshold"] is not None and math.isfinite(row["threshold"]) and row[score] is not None
    ]
    scale = alt.Scale(zero=False, nice=False)
    x = alt.X("threshold:Q", title="threshold", scale=scale, axis=alt.Axis(tickCount=6))
    scale = alt.Scale(domain=curve["axis"], nice=False)
    y = alt.Y("value:Q", title=None, scale=scale, axis=alt.Axis(grid=True, tickCount=5))
    order = [score for score in colours if score in scores] or list(scores)
    colour = mapped(alt.Color, "score:N", {score: colours.get(score, LIGHT.both) for score in order})
    dash = mapped(alt.StrokeDash, "score:N", dict(zip(order, ([1, 0], [6, 3], [2, 2]), strict=False)))
    lines = chart_of(points).mark_line(interpolate="step-before", strokeWidth=2, clip=True)
    layers = [lines.encode(x=x, y=y, color=colour, strokeDash=dash)]
    if best is not None:
        known = [point["threshold"] for point in points] or [0.0]
        right = best > (min(known) + max(known)) / 2
        align, dx = ("right", -5) if right else ("left", 5)
        text = chart_of([{"threshold": best, "text": curve["best_text"]}]).mark_text(
            align=align, dx=dx, fontSize=11, color=LIGHT.soft, y=212
        )
        layers += [dashed_at(best, x, "threshold"), text.encode(x=x, text="text:N")]
    return alt.layer(*layers).properties(width=WIDTH + 110, height=220)


#: Where a label stands by its point, which is at the left end of the plot or not, and how much of the plot that is.
LABELS: dict[bool, Row] = {
    False: {"align": "right", "dx": -7, "dy": 8},
    True: {"align": "left", "dx": 7, "dy": -8},
}
LEFT = 0.25


def precision_recall_chart(curve: Row) -> Any:
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
        chart_of(points).mark_line(strokeWidth=2, color=LIGHT.pred, clip=True).encode(x=x, y=y, order="at:Q")
    ]
    for is_best, colour in ((False, LIGHT.pred), (True, LIGHT.ink)):
        rows = [row for row in curve["named"] if row["best"] == is_best]
        some = chart_of(rows).encode(x=x, y=y)
        text = {"fontSize": 11, "fontWeight": "bold" if is_best else "normal", "color": LIGHT.ink}
        layers.append(some.mark_point(filled=True, size=90 if is_best else 45, opacity=1, color=colour))
        for left, place in LABELS.items():
            here = [row for row in rows if (row["recall"] < low + LEFT * (high - low)) == left]
            layers += (
                [chart_of(here).mark_text(**place, **text).encode(x=x, y=y, text="text:N")] if here else []
            )
    return alt.layer(*layers).properties(width=WIDTH + 60, height=WIDTH + 10)


SVG = "http://www.w3.org/2000/svg"
#: Digits behind the point that are seen.
NUMBER = re.compile(r"-?\d+\.\d{2,}(?:e-?\d+)?")
LINK = re.compile(r"url\(#([^)]+)\)")
#: How much wider a text may be in a font of the reader (DejaVu Sans, Verdana) than in Arial, in which it is measured.
ROOM = 1.3
#: How much larger than it is laid out a chart is shown, where there is room.
SCALE = 1.15
#: Attributes that say where another element is.
REFERENCES = ("clip-path", "fill", "stroke", "mask", "filter")


def drawn(chart: Chart) -> str:
    """Return a chart as SVG."""
    import vl_convert

    spec = _enlarged(finished(_DRAWS[chart.draws](*chart.data)).to_dict(validate=False))
    spec["config"]["aria"] = False  # descriptions of Vega-Lite, which breaks on titles with a backslash
    return as_inline(vl_convert.vegalite_to_svg(json.dumps(spec)), chart.id, chart.said)


def _enlarged(spec: Any) -> Any:
    """Return a chart whose texts are laid out larger than they are shown, so that they fit in any usual font."""
    if isinstance(spec, dict):
        return {
            key: value * ROOM if key.endswith(("ontSize", "Limit")) else _enlarged(value)
            for key, value in spec.items()
        }
    return [_enlarged(each) for each in spec] if isinstance(spec, list) else spec


def as_inline(text: str, name: str, said: str) -> str:
    """Return SVG as an inline element: without roles and styles, and with numbers as long as visible."""
    ElementTree.register_namespace("", SVG)
    root = ElementTree.fromstring(text)
    ids = [element.attrib["id"] for element in root.iter() if "id" in element.attrib]
    own = {each: f"{name}-{k}" for k, each in enumerate(ids)}  # Vega counts on from chart to chart
    width, height = root.get("width", "0"), root.get("height", "0")
    for element in root.iter():
        for key in list(element.attrib):
            if key.startswith("aria-") or key in ("role", "class", "style", "pointer-events"):
                del element.attrib[key]
            elif key == "id":
                element.set(key, own[element.attrib[key]])
            elif key == "font-size":
                element.set(key, f"{float(element.attrib[key].removesuffix('px')) / ROOM:g}px")
            elif key in REFERENCES:
                value = LINK.sub(lambda link: f"url(#{own[link.group(1)]})", element.attrib[key])
                element.set(key, f"var(--{NAMES[value]})" if value in NAMES else value)
            elif key in ("d", "transform", "x2", "y2", "width", "height"):
                element.set(key, NUMBER.sub(_rounded, element.attrib[key]))
    if (ground := root.find(f"{{{SVG}}}rect")) is not None:  # that of the page
        root.remove(ground)
    root.attrib.clear()
    root.attrib |= {
        "viewBox": f"0 0 {width} {height}", "width": f"{SCALE * float(width):g}",
        "height": f"{SCALE * float(height):g}", "role": "img", "aria-label": said,
    }  # fmt: skip
    return ElementTree.tostring(root, encoding="unicode")


def _rounded(match: re.Match[str]) -> str:
    return f"{float(match.group()):.2f}".rstrip("0").rstrip(".")


#: Functions that draw charts, by name.
_DRAWS = {
    name.removesuffix("_chart"): draws for name, draws in list(globals().items()) if name.endswith("_chart")
}
