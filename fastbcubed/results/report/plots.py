"""Charts of an evaluation, made with Altair: plain rows and a palette in, one chart out."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import altair as alt

from fastbcubed.results.report.axes import (
    KINDS,
    OUTCOMES,
    ROW,
    SIDES,
    TITLES,
    WIDTH,
    Row,
    chart_of,
    domain_of,
    intervals_of,
    short,
    side_colours,
    side_dashes,
)
from fastbcubed.results.report.palette import Palette
from fastbcubed.results.text.wording import label


def scores_chart(verdict: Mapping[str, Any], palette: Palette, *, legend: bool = True) -> Any:
    """Return precision, recall and F1 with intervals, beside what trivial predictions would reach."""
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
    shown: Any = {} if legend else {"legend": None}
    domain = ["this prediction", *(names[kind] for kind in verdict["extremes"])]
    shape = alt.Shape(
        "what:N",
        scale=alt.Scale(domain=domain, range=["circle", "triangle-up", "square"][: len(domain)]),
        **shown,
    )
    colour = alt.Color(
        "what:N",
        scale=alt.Scale(domain=domain, range=[palette.ink, palette.soft, palette.soft][: len(domain)]),
        **shown,
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
    layers = [chart_of(spans).mark_rule(strokeWidth=5, opacity=0.35, color=palette.ink).encode(
        x=alt.X("low:Q", title=None), x2="high:Q", y=y)] if spans else []  # fmt: skip
    return alt.layer(*layers, dots).properties(width=WIDTH, height=30 * len(labels))


def slices_chart(
    slicing: Mapping[str, Any],
    score: str,
    palette: Palette,
    *,
    most: int = 20,
    labels: bool = True,
    width: int = WIDTH,
) -> Any:
    """Return a score by slice as dots with intervals, and that of all items as a line."""
    rows = [row for row in slicing["rows"][:most] if row.get(score) is not None]
    names = [short(", ".join(map(label, row["slice"]))) for row in rows]
    side = {"pred_size": palette.pred, "true_size": palette.true}.get(slicing["by"], palette.true)
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
    colour = alt.Color(
        "few:N", legend=None, scale=alt.Scale(domain=[False, True], range=[side, palette.calm])
    )
    layers = []
    if overall is not None:
        layers.append(
            chart_of([{"value": overall}]).mark_rule(strokeDash=[4, 3], color=palette.soft).encode(x=x)
        )
    if spans:
        layers.append(
            chart_of(spans).mark_rule(strokeWidth=2, clip=True).encode(
                x=alt.X("low:Q", scale=alt.Scale(domain=domain)), x2="high:Q", y=y, color=colour)
        )  # fmt: skip
    layers.append(chart_of(points).mark_point(filled=True, size=55, opacity=1).encode(x=x, y=y, color=colour))
    return alt.layer(*layers).properties(width=width, height=max(2, len(rows)) * ROW)


def intervals_chart(estimated: Mapping[str, Any], palette: Palette) -> Any:
    """Return estimates as dots with intervals, each in a row of its own."""
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
    return slices_chart({"by": "", "rows": rows, "overall": {}}, "value", palette)


def crossed_chart(slicing: Mapping[str, Any], score: str, palette: Palette, *, most: int = 14) -> Any:
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
    tiles = base.mark_rect(color=palette.pred, stroke=palette.faint).encode(
        opacity=alt.Opacity("loss:Q", legend=None, scale=alt.Scale(domain=[0, worst], range=[0.04, 0.55]))
    )
    texts = base.mark_text(fontSize=10).encode(
        text="text:N",
        color=alt.Color(
            "few:N", legend=None, scale=alt.Scale(domain=[False, True], range=[palette.ink, palette.soft])
        ),
    )
    return alt.layer(tiles, texts).properties(width=alt.Step(30), height=alt.Step(22))


def sizes_chart(rows: Iterable[Row], palette: Palette, of: str = "items") -> Any:
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
            color=side_colours(palette),
        )
        .properties(width=WIDTH, height=max(2, len(order)) * 24)
    )


def outcomes_chart(rows: Iterable[Row], side: str, palette: Palette) -> Any:
    """Return what became of the clusters of a side, as two bars of 100 %: by clusters, and by their items."""
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
    scale = alt.Scale(domain=list(colours), range=[getattr(palette, name) for name in colours.values()])
    x = alt.X("start:Q", title=None, axis=alt.Axis(format="~%", tickCount=5), scale=alt.Scale(domain=[0, 1]))
    base = chart_of(bars)
    stacked = base.mark_bar(stroke=palette.paper, strokeWidth=1).encode(
        x=x, x2="end:Q", y=y, color=alt.Color("outcome:N", scale=scale, legend=alt.Legend(columns=4))
    )
    texts = base.mark_text(fontSize=11).encode(
        x="middle:Q", y=y, text="text:N",
        color=alt.condition("datum.outcome == 'exact'", alt.value(palette.ink), alt.value(palette.paper)),
    )  # fmt: skip
    return alt.layer(stacked, texts).properties(width=WIDTH + 40, height=64)


def lorenz_chart(curves: Mapping[str, Mapping[str, Any]], palette: Palette) -> Any:
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
    colour = side_colours(palette)
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


def repairs_chart(rows: Sequence[Row], start: float, palette: Palette) -> Any:
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
        .mark_line(interpolate="step-after", strokeWidth=2.5, color=palette.ink)
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
    """Return what sorts names as people do: by the number that they begin with, then as text; nulls last."""
    number = re.match(r"-?\d+(\.\d+)?", name)
    return name == label(None), float(number.group()) if number else -math.inf, name
