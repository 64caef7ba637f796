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
from fastbcubed.render.wording import label


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


def intervals_of(rows: Iterable[Row], named: Any) -> list[dict[str, Any]]:
    """Return the intervals of rows that have one, and their positions."""
    return [
        {**named(row), "low": row["low"], "high": row["high"]}
        for row in rows
        if row.get("low") is not None
        and row.get("high") is not None
        and math.isfinite(row["low"] + row["high"])
    ]


def side_colours() -> Any:
    """Return the colours of the sides, with a legend."""
    return alt.Color("side:N", scale=alt.Scale(domain=list(SIDES.values()), range=[LIGHT.true, LIGHT.pred]))


def side_dashes() -> Any:
    """Return the dashes of the lines of each side, so that they differ not only by colour."""
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


def scores_chart(verdict: Mapping[str, Any]) -> Any:
    """Return precision, recall and F1 with intervals, next to those of trivial predictions."""
    names = {"alone": "all alone", "one": "all in one cluster"}
    labels = [row["label"] for row in verdict["scores"]]
    points = [
        {"score": row["label"], "value": row["value"], "what": "this prediction"} for row in verdict["scores"]
    ]
    trivial = [
        {"score": row["label"], "value": figures[row["score"]], "what": names[kind]}
        for kind, figures in verdict["extremes"].items()
        for row in verdict["scores"]
        if row["score"] in figures
    ]
    y = alt.Y("score:N", sort=labels, title=None, axis=alt.Axis(labelPadding=12))
    domain = ["this prediction", *(names[kind] for kind in verdict["extremes"])]
    shape = alt.Shape(
        "what:N",
        scale=alt.Scale(domain=domain, range=["circle", "triangle-up", "square"][: len(domain)]),
        legend=None,
    )
    colour = alt.Color(
        "what:N",
        scale=alt.Scale(domain=domain, range=[LIGHT.ink, LIGHT.soft, LIGHT.soft][: len(domain)]),
        legend=None,
    )
    x = alt.X(
        "value:Q",
        title=None,
        scale=alt.Scale(domain=[0, 1]),
        axis=alt.Axis(values=[0, 0.2, 0.4, 0.6, 0.8, 1]),
    )
    dots = (
        chart_of([*trivial, *points])
        .mark_point(filled=True, size=70, opacity=1)
        .encode(x=x, y=y, shape=shape, color=colour)
    )
    spans = intervals_of(verdict["scores"], lambda row: {"score": row["label"]})
    layers = [chart_of(spans).mark_rule(strokeWidth=5, opacity=0.35, color=LIGHT.ink).encode(
        x=alt.X("low:Q", title=None), x2="high:Q", y=y)] if spans else []  # fmt: skip
    return alt.layer(*layers, dots).properties(width=WIDTH, height=30 * len(labels))


def slices_chart(
    slicing: Mapping[str, Any],
    score: str,
    *,
    most: int = 20,
    labels: bool = True,
    width: int = WIDTH,
) -> Any:
    """Return a score by slice as dots with intervals, and that of all items as a line."""
    rows = [row for row in slicing["rows"][:most] if row.get(score) is not None]
    names = [short(", ".join(map(label, row["slice"]))) for row in rows]
    side = {"pred_size": LIGHT.pred, "true_size": LIGHT.true}.get(slicing["by"], LIGHT.true)
    points = [{"at": at, "value": row[score], "few": bool(row["few"])} for at, row in enumerate(rows)]
    spans = intervals_of(
        [
            {**row, "low": row.get(f"{score}_low"), "high": row.get(f"{score}_high"), "at": at}
            for at, row in enumerate(rows)
        ],
        lambda row: {"at": row["at"], "few": bool(row["few"])},
    )
    overall = slicing["overall"].get(score)
    sure = [end for span in spans if not span["few"] for end in (span["low"], span["high"])]
    domain = domain_of([*sure, *(p["value"] for p in points), *([] if overall is None else [overall])])
    axis = alt.Axis(labelExpr=f"{json.dumps(names)}[datum.value]") if labels else None
    y = alt.Y("at:O", title=None, axis=axis)
    x = alt.X(
        "value:Q", title=TITLES.get(score, score), scale=alt.Scale(domain=domain), axis=alt.Axis(tickCount=4)
    )
    colour = alt.Color("few:N", legend=None, scale=alt.Scale(domain=[False, True], range=[side, LIGHT.calm]))
    layers = []
    if overall is not None:
        layers.append(
            chart_of([{"value": overall}]).mark_rule(strokeDash=[4, 3], color=LIGHT.soft).encode(x=x)
        )
    if spans:
        layers.append(
            chart_of(spans).mark_rule(strokeWidth=2, clip=True).encode(
                x=alt.X("low:Q", scale=alt.Scale(domain=domain)), x2="high:Q", y=y, color=colour)
        )  # fmt: skip
    layers.append(chart_of(points).mark_point(filled=True, size=55, opacity=1).encode(x=x, y=y, color=colour))
    return alt.layer(*layers).properties(width=width, height=max(2, len(rows)) * ROW)


def intervals_chart(estimated: Mapping[str, Any]) -> Any:
    """Return estimates as dots with intervals, one a row."""
    rows = [
        {
            "slice": [row["name"]],
            "value": row["value"],
            "value_low": row["low"],
            "value_high": row["high"],
            "few": False,
        }
        for row in estimated["rows"]
    ]
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
    a_names, b_names = (json.dumps([short(name, 14) for name in each]) for each in (firsts, seconds))
    y = alt.Y(
        "a:O", title=short(label(slicing["names"][0])), axis=alt.Axis(labelExpr=f"{a_names}[datum.value]")
    )
    x = alt.X("b:O", title=short(label(slicing["names"][1])), axis=alt.Axis(
        labelExpr=f"{b_names}[datum.value]", orient="top", ticks=False,
        labelAngle=0 if max(map(len, seconds), default=0) < 5 else -60))  # fmt: skip
    worst = max((cell["loss"] for cell in cells), default=0) or 1.0
    base = chart_of(cells).encode(x=x, y=y)
    tiles = base.mark_rect(color=LIGHT.pred, stroke=LIGHT.faint).encode(
        opacity=alt.Opacity("loss:Q", legend=None, scale=alt.Scale(domain=[0, worst], range=[0.04, 0.55]))
    )
    texts = base.mark_text(fontSize=10).encode(
        text="text:N",
        color=alt.Color(
            "few:N", legend=None, scale=alt.Scale(domain=[False, True], range=[LIGHT.ink, LIGHT.soft])
        ),
    )
    return alt.layer(tiles, texts).properties(width=alt.Step(30), height=alt.Step(22))


def sizes_chart(rows: Iterable[Row], of: str = "items") -> Any:
    """Return the sizes of the clusters of both sides over each other: which share of items is in clusters of a size."""
    found = list(rows)
    sizes = list(
        dict.fromkeys(row["size"] for row in sorted(found, key=lambda r: int(r["size"].split("-")[0])))
    )
    points = [
        {"size": row["size"].replace("-", "–"), "side": SIDES[row["side"]], "share": row["share_items"]}
        for row in found
    ]
    order = [size.replace("-", "–") for size in sizes]
    return (
        chart_of(points)
        .mark_bar(height={"band": 0.92})
        .encode(
            y=alt.Y("size:N", sort=order, title="size of the cluster", scale=alt.Scale(paddingInner=0.25)),
            yOffset=alt.YOffset("side:N", sort=list(SIDES.values())),
            x=alt.X("share:Q", title=f"share of {of}", axis=alt.Axis(format="~%", tickCount=5)),
            color=side_colours(),
        )
        .properties(width=WIDTH, height=max(2, len(order)) * 24)
    )


def outcomes_chart(rows: Iterable[Row], side: str) -> Any:
    """Return the outcomes of the clusters of a side, as two bars of 100 %: by clusters, and by their items."""
    colours = OUTCOMES[side]
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
    scale = alt.Scale(domain=list(colours), range=[getattr(LIGHT, name) for name in colours.values()])
    x = alt.X("start:Q", title=None, axis=alt.Axis(format="~%", tickCount=5), scale=alt.Scale(domain=[0, 1]))
    base = chart_of(bars)
    stacked = base.mark_bar(stroke=LIGHT.paper, strokeWidth=1).encode(
        x=x, x2="end:Q", y=y, color=alt.Color("outcome:N", scale=scale, legend=alt.Legend(columns=4))
    )
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
            halves.append(
                {"side": SIDES[side], "n": found["n_half"], "share": _share_at(found), "text": text}
            )
    most = max((point["n"] for point in points), default=1)
    tens = [10**power for power in range(len(str(most)))]
    x = alt.X("n:Q", title="clusters, the costliest first", axis=alt.Axis(values=tens, format="~s", grid=True),
              scale=alt.Scale(type="log", nice=False, domain=[1, max(most, 10)]))  # fmt: skip
    y = alt.Y("share:Q", title="share of the loss", axis=alt.Axis(format="~%", grid=True, tickCount=5))
    colour = side_colours()
    lines = (
        chart_of(points).mark_line(strokeWidth=2.5).encode(x=x, y=y, color=colour, strokeDash=side_dashes())
    )
    dots = chart_of(halves).mark_point(filled=True, size=70, opacity=1).encode(x=x, y=y, color=colour)
    texts = [
        chart_of([half])
        .mark_text(align="left", fontSize=11)
        .encode(x=alt.value(2), y=alt.value(-26 + 15 * k), text="text:N", color=colour)
        for k, half in enumerate(halves)
    ]
    return alt.layer(lines, dots, *texts).properties(width=WIDTH + 30, height=190)


def _share_at(found: Mapping[str, Any]) -> float:
    """Return the share of the loss in as few clusters as have half of it, which may be more than half."""
    rows = found["curve"]
    return next((row["share_loss"] for row in rows if row["n_clusters"] >= found["n_half"]), 0.5)


def repairs_chart(rows: Sequence[Row], start: float) -> Any:
    """Return F1 after the first repairs, one after the other."""
    points = [{"n": 0, "f1": start}, *({"n": row["rank"], "f1": row["running"]} for row in rows)]
    x = alt.X("n:Q", title="repairs, in this order", axis=alt.Axis(tickMinStep=1, tickCount=5, format="d"))
    y = alt.Y(
        "f1:Q",
        title="F1",
        scale=alt.Scale(domain=domain_of([p["f1"] for p in points])),
        axis=alt.Axis(grid=True, tickCount=5),
    )
    line = (
        chart_of(points)
        .mark_line(interpolate="step-after", strokeWidth=2.5, color=LIGHT.ink)
        .encode(x=x, y=y)
    )
    return line.properties(width=WIDTH + 30, height=150)


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
    return _forest(own, names, ("holds up", "does not hold"), "difference from the baseline")


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
    rows: Sequence[Row],
    names: Sequence[str],
    held: tuple[str, str],
    title: str,
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
    layers = [chart_of([{"delta": 0}]).mark_rule(color=LIGHT.soft).encode(x=x)]
    if of_all is not None:
        dashed = chart_of([{"delta": of_all}]).mark_rule(strokeDash=[4, 3], color=LIGHT.soft)
        layers.append(dashed.encode(x=x))
    if spans:
        lines = chart_of(spans).mark_rule(strokeWidth=2, color=LIGHT.ink)
        layers.append(lines.encode(x=alt.X("low:Q"), x2="high:Q", y=y))
    scale = alt.Scale(domain=list(held), range=[LIGHT.ink, LIGHT.paper])
    fill = alt.Fill("holds:N", scale=scale, legend=alt.Legend(columns=1))
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
    y = alt.Y("at:O", title=None, axis=alt.Axis(labelExpr=f"{json.dumps(names)}[datum.value]"))
    x = alt.X("change:Q", title="share of all items", axis=alt.Axis(format="~%", tickCount=5))
    scale = alt.Scale(domain=["split", "merge"], range=[LIGHT.true, LIGHT.pred])
    marks = chart_of(bars).mark_bar(height={"band": 0.7})
    return marks.encode(x=x, y=y, color=alt.Color("kind:N", scale=scale)).properties(
        width=WIDTH, height=max(2, len(rows)) * ROW
    )


def changes_chart(rows: Sequence[Row], of: str) -> Any:
    """Return which share of the items, or of their weight, is in clusters that became one thing or another."""
    points = [{"became": row["became"], "share": row["share"] or 0.0} for row in rows]
    order = [row["became"] for row in rows]
    colours = {
        "unchanged": LIGHT.calm,
        "split": LIGHT.true,
        "merged": LIGHT.pred,
        "split and merged": LIGHT.both,
    }
    scale = alt.Scale(domain=order, range=[colours.get(name, LIGHT.soft) for name in order])
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
    x = alt.X(
        "threshold:Q", title="threshold", scale=alt.Scale(zero=False, nice=False), axis=alt.Axis(tickCount=6)
    )
    scale = alt.Scale(domain=curve["axis"], nice=False)
    y = alt.Y("value:Q", title=None, scale=scale, axis=alt.Axis(grid=True, tickCount=5))
    order = [score for score in colours if score in scores] or list(scores)
    colour = alt.Color(
        "score:N", scale=alt.Scale(domain=order, range=[colours.get(s, LIGHT.both) for s in order])
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
        layers.append(chart_of(mark).mark_rule(strokeDash=[4, 3], color=LIGHT.soft).encode(x=x))
        layers.append(
            chart_of(mark)
            .mark_text(
                align="right" if right else "left",
                dx=-5 if right else 5,
                fontSize=11,
                color=LIGHT.soft,
                y=212,
            )
            .encode(x=x, text="text:N")
        )
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


def _ends(points: Sequence[Row]) -> tuple[float, float]:
    """Return the first and the last threshold."""
    known = [point["threshold"] for point in points]
    return min(known, default=0.0), max(known, default=0.0)


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
