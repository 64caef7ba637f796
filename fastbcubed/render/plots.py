"""Charts of pages as Vega-Lite specifications: palette, axes, a function per chart, and conversion to SVG."""

from __future__ import annotations

import json
import math
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from textwrap import wrap
from typing import Any

from fastbcubed.render.document import Chart
from fastbcubed.render.number_formats import label
from fastbcubed.render.vega import svg_of


@dataclass(frozen=True)
class Palette:
    """Colours of chart elements in CSS notation; each colour has the same meaning in all charts and pages.

    Truth and prediction are blue and orange, which people with any kind of colour vision can distinguish; they also
    differ in lightness.
    """

    ink: str = "#22262b"
    soft: str = "#666e78"  #: axes and notes
    faint: str = "#dfe3e8"  #: grid
    paper: str = "#ffffff"
    true: str = "#1d5f8f"
    pred: str = "#c8600f"
    split: str = "#8a6a14"
    merged: str = "#a8417e"
    both: str = "#5a4a9c"  #: split and merged
    calm: str = "#b7c0ca"  #: no need to look: exact, unchanged, or too small a slice
    good: str = "#2b7a50"  #: better
    bad: str = "#b5303a"  #: worse, lost, failed


LIGHT = Palette()
DARK = Palette(
    ink="#e6e9ed", soft="#a3acb7", faint="#343b44", paper="#15181c", true="#6fb3e6", pred="#f29b4c",
    split="#d3b04a", merged="#e58cc0", both="#b3a2f0", calm="#66717d", good="#6cc795", bad="#f0838a",
)  # fmt: skip

#: Names of the colours used in charts; a page replaces them by variables to follow the reader's colour scheme.
NAMES = {colour: name for name, colour in asdict(LIGHT).items()}


def as_style(palette: Palette) -> str:
    """Return the colours as custom properties in CSS.

    Examples
    --------
    >>> as_style(LIGHT)[:14]
    '--ink:#22262b;'
    """
    return "".join(f"--{name}:{colour};" for name, colour in asdict(palette).items())


#: Width of a chart without labels, and height of a row in a dot plot.
WIDTH, ROW = 250, 20
#: Maximum characters per line of a note above a chart, and pixels per character.
NOTE, PER_LETTER = 64, 5
#: Maximum characters of a name on an axis.
LONGEST = 32
#: Maximum number of slices in a chart, and of values of either attribute in a heat map.
DRAWN, CROSSED = 20, 14
#: Values that differ by at most this much are the same on an axis.
ROUNDING = 1e-9
#: Pixels between the upper end of an axis and the edge of a clipped plot, so that a line at this end is drawn whole.
EDGE = 2
FONT = "Arial, Helvetica, 'Liberation Sans', sans-serif"
#: Names of the sides.
SIDES = {"true": "truth", "pred": "prediction"}
KINDS = {"true": "true clusters", "pred": "predicted clusters"}
#: Titles of scores on an axis, where they differ from the names.
TITLES = {"f1": "F1", "mean_f1": "mean F1"}
OUTCOMES = {
    "true": {"exact": "calm", "split": "split", "merged": "merged", "split and merged": "both"},
    "pred": {"exact": "calm", "fragment": "split", "union": "merged", "mixed": "both"},
}

Row = Mapping[str, Any]


#: A Vega-Lite specification of a chart.
Spec = dict[str, Any]
#: Types of values, by the letter that stands for them in a channel such as "share:Q".
TYPES = {"Q": "quantitative", "N": "nominal", "O": "ordinal"}


def finished(chart: Spec, title: str | None = None, note: str = "") -> Spec:
    """Return a chart in the common colours and fonts, with a title and a note on what its marks mean."""
    axis = {
        "labelColor": LIGHT.soft, "titleColor": LIGHT.soft, "gridColor": LIGHT.faint, "domain": False,
        "tickColor": LIGHT.faint, "labelFontSize": 11, "titleFontSize": 11, "titleFontWeight": "normal",
        "labelLimit": 260, "titlePadding": 6,
    }  # fmt: skip
    config = {
        "view": {"continuousWidth": 300, "continuousHeight": 300, "stroke": None},
        "font": FONT, "background": LIGHT.paper, "padding": 4,
        "axis": axis,
        "axisX": {"labelFlush": False},  # so that a number is centred below its line
        "axisY": {"grid": False, "ticks": False, "labelColor": LIGHT.ink, "labelPadding": 8},
        "legend": {
            "labelColor": LIGHT.ink, "titleColor": LIGHT.soft, "labelFontSize": 11, "labelLimit": 220,
            "orient": "top", "title": None, "offset": 4, "symbolSize": 60,
        },
        "title": {"color": LIGHT.ink, "fontSize": 13, "anchor": "start", "fontWeight": 600, "offset": 8,
                  "subtitleColor": LIGHT.soft, "subtitleFontSize": 11, "subtitlePadding": 5},
    }  # fmt: skip
    return {**(chart if title is None else titled(chart, title, note)), "config": config}


def titled(chart: Spec, title: str, note: str = "") -> Spec:
    """Return a chart with a title and a note below it, wrapped to the width of the chart."""
    width = chart.get("width")
    line = min(NOTE, int(width / PER_LETTER)) if isinstance(width, int | float) else NOTE
    return {**chart, "title": {"text": title, **({"subtitle": wrap(note, line)} if note else {})}}


def beside(charts: Sequence[Spec]) -> Spec:
    """Return charts side by side."""
    return {"hconcat": list(charts), "spacing": 14}


def layers(*charts: Spec, **size: Any) -> Spec:
    """Return charts drawn over each other in one frame."""
    return {"layer": list(charts), **size}


def marks(rows: Iterable[Row], kind: str, encoding: Spec, **how: Any) -> Spec:
    """Return a chart that draws each row as a mark of one kind, such as a point, rule or bar."""
    return {"data": {"values": list(rows)}, "mark": {"type": kind, **how}, "encoding": encoding}


def shown(short: str, **how: Any) -> Spec:
    """Return a channel that encodes a field, with its type.

    >>> shown("share:Q", title=None)
    {'field': 'share', 'type': 'quantitative', 'title': None}
    """
    field, _, kind = short.partition(":")
    return {"field": field, **({"type": TYPES[kind]} if kind else {}), **how}


def hints(fields: Mapping[str, str]) -> list[Spec]:
    """Return a tooltip: the fields to show, by title.

    >>> hints({"share of items": "share:Q"})
    [{'field': 'share', 'type': 'quantitative', 'title': 'share of items', 'format': '.1~%'}]
    """
    formats = {False: ",.4~f", True: ".1~%"}
    return [
        shown(short, title=title, **({"format": formats[title.startswith("share")]} if ":Q" in short else {}))
        for title, short in fields.items()
    ]


def intervals_of(rows: Iterable[Row], *kept: str) -> list[dict[str, Any]]:
    """Return the interval and the `kept` values of each row that has an interval."""
    return [
        {name: row[name] for name in (*kept, "low", "high")}
        for row in rows
        if None not in (row.get("low"), row.get("high")) and math.isfinite(row["low"] + row["high"])
    ]


def mapped(short: str, values: Mapping[Any, Any], **how: Any) -> Spec:
    """Return a channel (colour, shape or dash) that encodes the values of a field by this mapping."""
    return shown(short, scale={"domain": list(values), "range": list(values.values())}, **how)


def names_axis(names: Sequence[str], short: str = "at:O") -> Spec:
    """Return an axis of numbered rows, labelled with their names."""
    return shown(short, title=None, axis={"labelExpr": f"{json.dumps(names)}[datum.value]"})


def shares_axis(short: str, title: str | None, **how: Any) -> Spec:
    """Return an axis of shares, in percent."""
    return shown(short, title=title, axis={"format": "~%", "tickCount": 5}, **how)


def dashed_at(value: float, x: Spec, field: str) -> Spec:
    """Return a dashed rule at a value."""
    return marks([{field: value}], "rule", {"x": x}, strokeDash=[4, 3], color=LIGHT.soft)


def side_colours() -> Spec:
    """Return a colour channel for the sides, with a legend."""
    return mapped("side:N", {SIDES["true"]: LIGHT.true, SIDES["pred"]: LIGHT.pred})


def domain_of(values: Iterable[float]) -> list[float]:
    """Return the range of an axis, slightly wider than the values, but within 0 and 1 if they are."""
    known = [value for value in values if value is not None and math.isfinite(value)] or [0.0, 1.0]
    low, high = min(known), max(known)
    room = 0.06 * (high - low) if high - low > ROUNDING else 0.02
    inside = low >= 0 and high <= 1
    return [max(0.0, low - room), min(1.0, high + room)] if inside else [low - room, high + room]


def short(text: str, longest: int = LONGEST) -> str:
    """Return a name shortened to fit on an axis."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def scores_chart(verdict: Row) -> Spec:
    """Return a chart of precision, recall and F1 with intervals, next to those of trivial predictions."""
    names = {"alone": "all singletons", "one": "all in one cluster"}
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
    y = shown("score:N", sort=[row["label"] for row in scores], title=None, axis={"labelPadding": 12})
    drawn: list[Spec] = []
    if spans := intervals_of([{**row, "score": row["label"]} for row in scores], "score"):
        ends = {"x": shown("low:Q", title=None), "x2": shown("high"), "y": y}
        drawn.append(marks(spans, "rule", ends, strokeWidth=5, opacity=0.35, color=LIGHT.ink))
    ticks = {"values": [0, 0.2, 0.4, 0.6, 0.8, 1]}
    dots = {
        "x": shown("value:Q", title=None, scale={"domain": [0, 1]}, axis=ticks), "y": y,
        "tooltip": hints({"score": "score:N", "of": "what:N", "value": "value:Q"}),
        "shape": mapped("what:N", shapes, legend=None), "color": mapped("what:N", colours, legend=None),
    }  # fmt: skip
    drawn.append(marks(points, "point", dots, filled=True, size=70, opacity=1))
    return layers(*drawn, width=WIDTH, height=30 * len(scores))


def slices_chart(slicing: Row, score: str, *, longest: int = LONGEST, width: int = WIDTH) -> Spec:
    """Return a dot plot of a score by slice, with intervals and a dashed line for all items.

    The axis covers all scores of the slices; intervals that extend beyond it end in arrows. Names have at most
    `longest` characters; 0 leaves them out.
    """
    rows = [
        {"at": at, "value": row[score], "few": bool(row["few"]), "low": row.get(f"{score}_low"),
         "high": row.get(f"{score}_high"), "items": row.get("n_items"), "name": ", ".join(map(label, row["slice"]))}
        for at, row in enumerate(row for row in _charted(slicing) if row.get(score) is not None)
    ]  # fmt: skip
    spans, overall = intervals_of(rows, "at", "few"), slicing["overall"].get(score)
    reached = {each: _reached(slicing, each) for each in (score, *slicing.get("scores", ()))}
    alike = [ends for ends in reached.values() if 0 <= min(ends) and max(ends) <= 1]
    domain = domain_of(chain(*alike) if reached[score] in alike else reached[score])
    y = shown("at:O", title=None, axis=None)
    if longest:
        y = names_axis([short(row["name"], longest) for row in rows])
    scale = {"domain": domain, "nice": False}
    x = shown("value:Q", title=TITLES.get(score, score), scale=scale, axis={"tickCount": 4})
    side = {f"{side}_size": getattr(LIGHT, side) for side in SIDES}.get(slicing["by"], LIGHT.ink)
    colour = mapped("few:N", {False: side, True: LIGHT.calm}, legend=None)
    drawn = [] if overall is None else [dashed_at(overall, x, "value")]
    if spans:
        low, high = domain
        inside = [{**each, "low": max(each["low"], low), "high": min(each["high"], high)} for each in spans]
        ends = {"x": shown("low:Q", scale=scale), "x2": shown("high"), "y": y, "color": colour}
        drawn.append(marks(inside, "rule", ends, strokeWidth=2))
        beyond = (
            [each for each in spans if each["low"] < low],
            [each for each in spans if each["high"] > high],
        )
        for way, at, leaving in zip(("left", "right"), (0, width), beyond, strict=True):
            place = {"x": {"value": at}, "y": y, "color": colour}
            arrow = {"shape": f"triangle-{way}", "filled": True, "size": 45, "opacity": 1}
            drawn += [marks(leaving, "point", place, **arrow)] if leaving else []
    fields = {slicing["by"] or "score": "name:N", score: "value:Q", "low": "low:Q", "high": "high:Q"}
    fields["items"] = "items:Q"
    points = [{name: value for name, value in row.items() if value is not None} for row in rows]
    told = {title: field for title, field in fields.items() if any(field[:-2] in point for point in points)}
    dots = {"x": x, "y": y, "color": colour, "tooltip": hints(told)}
    drawn.append(marks(points, "point", dots, filled=True, size=55, opacity=1))
    return layers(*drawn, width=width, height=max(2, len(rows)) * ROW)


def _charted(slicing: Row) -> list[Row]:
    """Return the costliest slices, sorted by value if these are numbers, times or ranges, otherwise by cost."""

    def cost(row: Row) -> float:
        return sum(row.get(f"{name}_loss") or 0.0 for name in ("precision", "recall"))

    rows = sorted(slicing["rows"], key=cost, reverse=True)[:DRAWN]
    names = [row["slice"] for row in rows]
    ordered = all(len(name) == 1 and (name[0] is None or LEADING.match(label(name[0]))) for name in names)
    return sorted(rows, key=lambda row: _in_order(row["slice"][0])) if ordered and slicing["by"] else rows


def _reached(slicing: Row, score: str) -> list[float]:
    """Return the values of a score that a chart must cover: overall, by slice, and interval ends of larger slices."""
    rows = [row for row in _charted(slicing) if row.get(score) is not None]
    sure = [row.get(f"{score}_{end}") for row in rows if not row["few"] for end in ("low", "high")]
    found = [*(row[score] for row in rows), slicing["overall"].get(score), *sure]
    return [value for value in found if value is not None and math.isfinite(value)] or [0.0, 1.0]


def intervals_chart(estimated: Row) -> Spec:
    """Return a dot plot of estimates with intervals, one per row."""
    rows = [
        {"slice": [row["name"]], "few": False, **{f"estimate_{end}": row[end] for end in ("low", "high")},
         "estimate": row["value"]}
        for row in estimated["rows"]
    ]  # fmt: skip
    return slices_chart({"by": "", "rows": rows, "overall": {}}, "estimate", longest=48)


def crossed_chart(slicing: Mapping[str, Any], score: str) -> Spec:
    """Return a heat map of a score by two attributes: darker cells lose more, small slices are grey."""
    rows = slicing["rows"]
    firsts, seconds = (_heaviest(rows, at) for at in (0, 1))
    cells = [
        {"first": label(row["slice"][0]), "second": label(row["slice"][1]), "items": row["n_items"],
         "a": firsts[a], "b": seconds[b], "value": row[score], "loss": 1 - row[score], "few": bool(row["few"]),
         "text": _two_digits(row[score])}
        for row in rows
        if row.get(score) is not None
        and (a := label(row["slice"][0])) in firsts
        and (b := label(row["slice"][1])) in seconds
    ]  # fmt: skip
    a_names, b_names = ([short(name, 14) for name in each] for each in (firsts, seconds))
    y = names_axis(a_names, "a:O") | {"title": short(label(slicing["names"][0]))}
    angle = 0 if max(map(len, seconds), default=0) < 5 else -60
    x = names_axis(b_names, "b:O") | {"title": short(label(slicing["names"][1]))}
    x["axis"] |= {"orient": "top", "ticks": False, "labelAngle": angle}
    worst = max((cell["loss"] for cell in cells), default=0) or 1.0
    shades = shown("loss:Q", legend=None, scale={"domain": [0, worst], "range": [0.04, 0.55]})
    named = dict(zip(map(label, slicing["names"]), ("first:N", "second:N"), strict=True))
    told = hints({**named, score: "value:Q", "items": "items:Q"})
    place: Spec = {"x": x, "y": y, "opacity": shades, "tooltip": told}
    tiles = marks(cells, "rect", dict(place), color=LIGHT.bad, stroke=LIGHT.faint)
    colour = mapped("few:N", {False: LIGHT.ink, True: LIGHT.soft}, legend=None)
    place |= {"text": shown("text:N"), "color": colour, "opacity": {"value": 1}}
    texts = marks(cells, "text", place, fontSize=10)
    return layers(tiles, texts, width={"step": 30}, height={"step": 22})


def sizes_chart(rows: Iterable[Row], of: str = "items") -> Spec:
    """Return a bar chart of the share of items by cluster size, for both sides."""
    points = [
        {"size": row["size"].replace("-", "–"), "side": SIDES[row["side"]], "share": row["share_items"],
         "n": row["n_clusters"]}
        for row in rows
    ]  # fmt: skip
    sizes = sorted({point["size"] for point in points}, key=lambda size: int(size.partition("–")[0]))
    bars = {
        "y": shown("size:N", sort=sizes, title="size of the cluster", scale={"paddingInner": 0.25}),
        "yOffset": shown("side:N", sort=list(SIDES.values())),
        "x": shares_axis("share:Q", f"share of {of}"), "color": side_colours(),
        "tooltip": hints({"side": "side:N", "size": "size:N", f"share of {of}": "share:Q", "clusters": "n:Q"}),
    }  # fmt: skip
    size = {"width": WIDTH, "height": max(2, len(sizes)) * 24}
    return marks(points, "bar", bars, height={"band": 0.92}) | size


def outcomes_chart(rows: Iterable[Row], side: str) -> Spec:
    """Return the outcomes of one side's clusters as two stacked bars, by number of clusters and of items."""
    colours = {outcome: getattr(LIGHT, name) for outcome, name in OUTCOMES[side].items()}
    own = [row for row in rows if row["side"] == side]
    bars = []
    for measure, name in (("n_clusters", "clusters"), ("n_items", "items")):
        total = sum(row[measure] for row in own) or 1
        start = 0.0
        for row in own:
            share = row[measure] / total
            bars.append({
                "of": name, "outcome": row["outcome"], "share": share, "n": row[measure],
                "start": start, "end": start + share, "middle": start + share / 2,
                "text": f"{100 * share:.0f} %" if share >= 0.1 else "",
            })  # fmt: skip
            start += share
    y = shown("of:N", sort=["clusters", "items"], title=None)
    x = shares_axis("start:Q", None, scale={"domain": [0, 1]})
    colour = mapped("outcome:N", colours, legend={"columns": 4})
    told = hints({"of": "of:N", "outcome": "outcome:N", "share": "share:Q", "number": "n:Q"})
    ends = {"x": x, "x2": shown("end"), "y": y, "color": colour, "tooltip": told}
    stacked = marks(bars, "bar", ends, stroke=LIGHT.paper, strokeWidth=1)
    ink = {"condition": {"test": "datum.outcome == 'exact'", "value": LIGHT.ink}, "value": LIGHT.paper}
    names = {"x": shown("middle:Q"), "y": y, "text": shown("text:N"), "color": ink, "tooltip": told}
    return layers(stacked, marks(bars, "text", names, fontSize=11), width=WIDTH + 40, height=64)


def lorenz_chart(curves: Mapping[str, Mapping[str, Any]]) -> Spec:
    """Return Lorenz curves of the loss over clusters, costliest first, with a mark where half is reached."""
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
            # the smallest number of clusters that reaches half of the loss may exceed it
            share = next(reached, 0.5)
            halves.append({"side": SIDES[side], "n": found["n_half"], "share": share, "text": text})
    most = max((point["n"] for point in points), default=1)
    tens = [10**power for power in range(len(str(most)))]
    scale = {"type": "log", "nice": False, "domain": [1, max(most, 10)]}
    axis = {"values": tens, "format": "~s", "grid": True}
    place: Spec = {
        "x": shown("n:Q", title="clusters, the costliest first", axis=axis, scale=scale),
        "y": shown("share:Q", title="share of the loss", axis={"format": "~%", "grid": True, "tickCount": 5}),
        "color": side_colours(),
    }
    place["tooltip"] = hints({"side": "side:N", "costliest clusters": "n:Q", "share of the loss": "share:Q"})
    dash = mapped("side:N", {SIDES["true"]: [1, 0], SIDES["pred"]: [6, 3]}, legend=None)
    lines = marks(points, "line", {**place, "strokeDash": dash}, strokeWidth=2.5)
    dots = marks(halves, "point", place, filled=True, size=70, opacity=1)
    texts = [
        marks([half], "text", {
            "x": {"value": 2}, "y": {"value": -26 + 15 * k}, "text": shown("text:N"), "color": place["color"],
        }, align="left", fontSize=11)
        for k, half in enumerate(halves)
    ]  # fmt: skip
    return layers(lines, dots, *texts, width=WIDTH + 30, height=190)


def repairs_chart(rows: Sequence[Row], start: float) -> Spec:
    """Return a chart of F1 after each of the first repairs."""
    points = [{"n": 0, "f1": start}, *(
        {"n": row["rank"], "f1": row["running"], "kind": row["kind"], "cluster": label(row["cluster"])} for row in rows
    )]  # fmt: skip
    axis = {"tickMinStep": 1, "tickCount": 5, "format": "d"}
    scale = {"domain": domain_of([point["f1"] for point in points])}
    place = {
        "x": shown("n:Q", title="repairs, in this order", axis=axis),
        "y": shown("f1:Q", title="F1", scale=scale, axis={"grid": True, "tickCount": 5}),
    }
    told = hints({"repairs": "n:Q", "the last": "kind:N", "cluster": "cluster:N", "F1 then": "f1:Q"})
    line = marks(points, "line", place, interpolate="step-after", strokeWidth=2.5, color=LIGHT.ink)
    how = {"filled": True, "size": 30, "opacity": 1, "color": LIGHT.ink}
    dots = marks(points, "point", {**place, "tooltip": told}, **how)
    return layers(line, dots, width=WIDTH + 30, height=150)


def _two_digits(value: float) -> str:
    return "1" if value == 1 else f"{math.floor(value * 100) / 100:.2f}".removeprefix("0")


def _heaviest(rows: Iterable[Row], at: int) -> dict[str, int]:
    """Return the values of an attribute that have most items, each with its position on the axis."""
    items: dict[str, int] = {}
    for row in rows:
        name = label(row["slice"][at])
        items[name] = items.get(name, 0) + row["n_items"]
    kept = sorted(items, key=lambda name: -items[name])[:CROSSED]
    return {name: place for place, name in enumerate(sorted(kept, key=_in_order))}


#: The number at the beginning of a name, also in the name of a bin.
LEADING = re.compile(r"(?:\[|<|>=)?(-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)")


def _in_order(value: Any) -> tuple[bool, float, str]:
    """Return a key that sorts by leading number, then by text, with nulls last."""
    name = label(value)
    number = LEADING.match(name)
    first = -math.inf if number is None or name[0] == "<" else float(number.group(1))
    return name == label(None), first, name


def deltas_chart(rows: Iterable[Row]) -> Spec:
    """Return a forest plot of differences from the baseline with intervals, better always to the right.

    Differences that may be due to chance are hollow.
    """
    own = [row for row in rows if row.get("delta") is not None]
    several = len({row["experiment"] for row in own}) > 1
    names = [
        short(f"{label(row['experiment'])}: {row['score']}" if several else row["score"], 48)
        + (" (reversed)" if row.get("best") == "lower" else "")
        for row in own
    ]
    title = "difference from the baseline"
    if any(row.get("best") != "neither" for row in own):
        title = f"←\u2002worse\u2003{title}\u2003better\u2002→"
    return _forest([_turned(row) if row.get("best") == "lower" else row for row in own], names, title)


def _turned(row: Row) -> dict[str, Any]:
    """Return the difference of a score for which lower is better with its sign reversed."""
    ends = {"delta": "delta", "low": "high", "high": "low"}
    return {**row, **{end: -row[other] for end, other in ends.items() if row.get(other) is not None}}


def slice_deltas_chart(rows: Sequence[Row], score: str, of_all: float | None) -> Spec:
    """Return a forest plot of a score's differences by slice, hollow if they may be chance, grey if there is none."""
    own, names = [], []
    several = len({row["run"] for row in rows}) > 1
    for row in rows[:DRAWN]:
        if row["delta"] is not None:
            own.append(row)
            name = ", ".join(map(label, row["slice"]))
            names.append(f"{short(label(row['run']), 12)}: {short(name, 20)}" if several else short(name, 32))
    title = f"difference of {TITLES.get(score, score)} from the baseline"
    return _forest(own, names, title, of_all)


def _forest(rows: Sequence[Row], names: Sequence[str], title: str, of_all: float | None = None) -> Spec:
    """Return a forest plot of differences, with their intervals if known; hollow where they may be chance.

    `of_all` is the difference over all items, drawn as a dashed line.
    """
    points = [
        {"at": at, "name": name, "delta": row["delta"], "said": row["said"]}
        for at, (name, row) in enumerate(zip(names, rows, strict=True))
    ]
    spans = intervals_of([{**row, "at": at} for at, row in enumerate(rows)], "at")
    y, axis = names_axis(names), {"format": "+.3~f", "tickCount": 5}
    x = shown("delta:Q", title=title, axis=axis, scale={"padding": 8, "nice": True})
    drawn = [marks([{"delta": 0}], "rule", {"x": x}, color=LIGHT.soft)]
    drawn += [] if of_all is None else [dashed_at(of_all, x, "delta")]
    if spans:
        ends = {"x": shown("low:Q"), "x2": shown("high"), "y": y}
        drawn.append(marks(spans, "rule", ends, strokeWidth=2, color=LIGHT.ink))
    fills = {
        "better": LIGHT.good, "worse": LIGHT.bad, "holds": LIGHT.ink,
        "may be chance": LIGHT.paper, "the same": LIGHT.calm, "error unknown": LIGHT.paper,
    }  # fmt: skip
    strokes = fills | {"may be chance": LIGHT.ink, "error unknown": LIGHT.calm}
    there = [kind for kind in fills if any(point["said"] == kind for point in points)]
    legend = {"columns": 4}
    dots = {
        "x": x, "y": y, "fill": mapped("said:N", {kind: fills[kind] for kind in there}, legend=legend),
        "stroke": mapped("said:N", {kind: strokes[kind] for kind in there}, legend=legend),
        "tooltip": hints({"of": "name:N", "difference": "delta:Q", "that is": "said:N"}),
    }  # fmt: skip
    drawn.append(marks(points, "point", dots, size=60, opacity=1))
    return layers(*drawn, width=WIDTH, height=max(2, len(rows)) * ROW)


def slice_changes_chart(rows: Sequence[Row]) -> Spec:
    """Return the split and merge rates of each slice as stacked bars."""
    names = [short(", ".join(map(label, row["slice"])), 32) for row in rows[:DRAWN]]
    bars = [
        {"at": at, "name": names[at], "kind": kind, "change": row[f"{kind}_change"] or 0.0}
        for at, row in enumerate(rows[:DRAWN])
        for kind in ("split", "merge")
    ]
    colour = mapped("kind:N", {"split": LIGHT.split, "merge": LIGHT.merged})
    place: Spec = {
        "x": shares_axis("change:Q", "share of all items"),
        "y": names_axis(names),
        "color": colour,
    }
    place["tooltip"] = hints({"slice": "name:N", "rate": "kind:N", "share of all items": "change:Q"})
    size = {"width": WIDTH, "height": max(2, len(names)) * ROW}
    return marks(bars, "bar", place, height={"band": 0.7}) | size


def changes_chart(rows: Sequence[Row], of: str) -> Spec:
    """Return a bar chart of the share of items (or of their weight) by what became of their clusters."""
    points = [{"became": row["became"], "share": row["share"] or 0.0} for row in rows]
    kinds = {"unchanged": "calm", **OUTCOMES["true"]}
    colours = {row["became"]: getattr(LIGHT, kinds.get(row["became"], "soft")) for row in rows}
    place = {
        "x": shares_axis("share:Q", f"share of the {of}"),
        "y": shown("became:N", sort=list(colours), title=None),
        "color": mapped("became:N", colours, legend=None),
        "tooltip": hints({"became": "became:N", f"share of the {of}": "share:Q"}),
    }
    return marks(points, "bar", place, height={"band": 0.7}) | {"width": WIDTH, "height": len(rows) * 24}


def thresholds_chart(curve: Row) -> Spec:
    """Return scores by threshold, on an axis that magnifies the range around the best threshold, which is marked."""
    rows, scores, best = curve["rows"], curve["scores"], curve["best"]
    colours = {"precision": LIGHT.pred, "recall": LIGHT.true, "f1": LIGHT.ink}
    points = [
        {"place": row["place"], "threshold": row["threshold"], "score": score, "value": row[score]}
        for row in rows
        for score in scores
        if row["threshold"] is not None and math.isfinite(row["threshold"]) and row[score] is not None
    ]
    scale = {"zero": False, "nice": False} | ({"domain": curve["ends"]} if curve["ends"] else {})
    places, texts = [place for place, _ in curve["ticks"]], [text for _, text in curve["ticks"]]
    written = f"{json.dumps(texts)}[indexof({json.dumps(places)}, datum.value)]"
    axis = {"values": places, "labelExpr": written} if places else {"tickCount": 6}
    title = "threshold (even in log odds)" if curve["log_odds"] else "threshold"
    x = shown("place:Q", title=title, scale=scale, axis=axis)
    scale = {"domain": curve["axis"], "nice": False, "range": [220, EDGE]}
    y = shown("value:Q", title=None, scale=scale, axis={"grid": True, "tickCount": 5})
    order = [score for score in colours if score in scores] or list(scores)
    legend = {"symbolType": "stroke", "symbolSize": 500}  # long enough for two dashes
    colour = mapped("score:N", {score: colours.get(score, LIGHT.both) for score in order}, legend=legend)
    dash = mapped("score:N", dict(zip(order, ([1, 0], [6, 3], [2, 2]), strict=False)), legend=legend)
    place = {"x": x, "y": y, "color": colour, "strokeDash": dash}
    drawn = [marks(points, "line", place, interpolate="step-before", strokeWidth=2, clip=True)]
    if best is not None:
        known = [point["place"] for point in points] or [0.0]
        right = best > (min(known) + max(known)) / 2
        align, dx = ("right", -5) if right else ("left", 5)
        text = [{"place": best, "text": curve["best_text"]}]
        how = {"align": align, "dx": dx, "fontSize": 11, "color": LIGHT.soft, "y": 212}
        drawn.append(dashed_at(best, x, "place"))
        drawn.append(marks(text, "text", {"x": x, "text": shown("text:N")}, **how))
    return layers(*drawn, width=WIDTH + 110, height=220)


#: Places of a label next to its point, best first: its alignment, and the offset of its end and middle.
LABELS: tuple[Row, ...] = (
    {"align": "right", "dx": -7, "dy": 8},
    {"align": "left", "dx": 7, "dy": -8},
    {"align": "right", "dx": -7, "dy": -8},
    {"align": "left", "dx": 7, "dy": 8},
)
#: Width of a letter of a label, height of its line, and half of the width of a point, in pixels.
LETTER, LINE, POINT = 7.5, 13.0, 4.0


def placed(
    rows: Sequence[Row], low: float, high: float, width: float, height: float
) -> list[tuple[Row, Row]]:
    """Return the labels that fit into the plot without overlapping another label or a point, with their places.

    The label of the best threshold is placed first. Labels that do not fit are left out: the table of the curve has
    their thresholds.

    >>> rows = [{"recall": 0.5, "precision": 0.9, "text": text, "best": text == "0.7"} for text in ("0.6", "0.7")]
    >>> [(row["text"], place["align"]) for row, place in placed(rows, 0.0, 1.0, 300, 300)]
    [('0.7', 'right'), ('0.6', 'left')]
    >>> [place["dy"] for row, place in placed([rows[0] | {"precision": 0.0}], 0.0, 1.0, 300, 300)]  # above the axis
    [-8]
    """
    at = [
        tuple(
            size * (row[name] - low) / (high - low)
            for name, size in (("recall", width), ("precision", height))
        )
        for row in rows
    ]
    taken = [(x - POINT, x + POINT, y - POINT, y + POINT) for x, y in at]
    found: list[tuple[Row, Row]] = []
    for row, (x, y) in sorted(zip(rows, at, strict=True), key=lambda each: not each[0]["best"]):
        long = LETTER * len(row["text"])
        for place in LABELS:
            left = x + place["dx"] - (long if place["align"] == "right" else 0.0)
            middle = y - place["dy"]
            box = (left, left + long, middle - LINE / 2, middle + LINE / 2)
            is_hit = any(box[0] < b and a < box[1] and box[2] < d and c < box[3] for a, b, c, d in taken)
            if box[0] >= 0 <= box[2] and box[1] <= width and not is_hit:
                taken.append(box)
                found.append((row, place))
                break
    return found


def precision_recall_chart(curve: Row) -> Spec:
    """Return a precision-recall curve over the thresholds around the best one; some points are labelled."""
    points = [
        {"at": at, **{name: row[name] for name in ("precision", "recall")}}
        for at, row in enumerate(curve["rows"])
    ]
    low, high = curve["axis"]
    width, height = WIDTH + 60, WIDTH + 10
    axis, scale = {"grid": True, "tickCount": 5}, {"domain": [low, high], "nice": False}
    place = {
        "x": shown("recall:Q", title="recall", axis=axis, scale={**scale, "range": [0, width - EDGE]}),
        "y": shown("precision:Q", title="precision", axis=axis, scale={**scale, "range": [height, EDGE]}),
    }
    ordered = {**place, "order": shown("at:Q")}
    drawn = [marks(points, "line", ordered, strokeWidth=2, color=LIGHT.pred, clip=True)]
    labels = placed(curve["named"], low, high, width, height)
    for is_best, colour in ((False, LIGHT.pred), (True, LIGHT.ink)):
        rows = [row for row in curve["named"] if row["best"] == is_best]
        text = {"fontSize": 11, "fontWeight": "bold" if is_best else "normal", "color": LIGHT.ink}
        size = 90 if is_best else 45
        drawn.append(marks(rows, "point", place, filled=True, size=size, opacity=1, color=colour))
        for beyond in LABELS:
            here = [row for row, own in labels if own is beyond and row["best"] == is_best]
            if here:
                drawn.append(marks(here, "text", {**place, "text": shown("text:N")}, **beyond, **text))
    return layers(*drawn, width=width, height=height)


SVG = "http://www.w3.org/2000/svg"
#: A number with decimals beyond those that are visible.
NUMBER = re.compile(r"-?\d+\.\d{2,}(?:e-?\d+)?")
LINK = re.compile(r"url\(#([^)]+)\)")
#: How much wider text may be in the reader's font (DejaVu Sans, Verdana) than in Arial, which is measured.
ROOM = 1.3
#: Factor by which charts are enlarged on a page that has room.
SCALE = 1.15
#: Attributes that may refer to other elements.
REFERENCES = ("clip-path", "fill", "stroke", "mask", "filter")


def drawn(chart: Chart) -> str:
    """Return a chart as SVG."""
    spec = _enlarged(finished(_DRAWS[chart.draws](*chart.data)))
    spec["config"]["aria"] = False  # omits Vega-Lite's descriptions, which fail on titles with a backslash
    return as_inline(svg_of(json.dumps(spec)), chart.id, chart.said)


def _enlarged(spec: Any) -> Any:
    """Return a chart with text laid out larger than it is shown, so that any common font fits."""
    if isinstance(spec, dict):
        return {
            key: value * ROOM if key.endswith(("ontSize", "Limit")) else _enlarged(value)
            for key, value in spec.items()
        }
    return [_enlarged(each) for each in spec] if isinstance(spec, list) else spec


def as_inline(text: str, name: str, said: str) -> str:
    """Return SVG as an inline element, without roles and styles, and with numbers rounded to visible digits."""
    ElementTree.register_namespace("", SVG)
    root = ElementTree.fromstring(text)
    ids = [element.attrib["id"] for element in root.iter() if "id" in element.attrib]
    own = {each: f"{name}-{k}" for k, each in enumerate(ids)}  # Vega numbers ids across charts
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
    if (ground := root.find(f"{{{SVG}}}rect")) is not None:  # the background
        root.remove(ground)
    root.attrib.clear()
    root.attrib |= {
        "viewBox": f"0 0 {width} {height}", "width": f"{SCALE * float(width):g}",
        "height": f"{SCALE * float(height):g}", "role": "img", "aria-label": said,
    }  # fmt: skip
    return ElementTree.tostring(root, encoding="unicode")


def _rounded(match: re.Match[str]) -> str:
    return f"{float(match.group()):.2f}".rstrip("0").rstrip(".")


#: The functions that draw charts, by name.
_DRAWS = {
    name.removesuffix("_chart"): draws for name, draws in list(globals().items()) if name.endswith("_chart")
}
