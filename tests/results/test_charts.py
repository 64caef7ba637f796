"""The charts of `fb.charts`: what they draw, in which order and on which scale; what marks and colours mean."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

import pytest

import fastbcubed as fb
from fastbcubed.errors import MetricError, OptionError
from fastbcubed.render import plots
from fastbcubed.render.number_formats import label, score_text

pytest.importorskip("altair")

#: Items of three true clusters; the first loses two items, which are together elsewhere.
TRUE = [1, 1, 1, 1, 2, 2, 3, 3, 3]
PRED = [1, 1, 5, 5, 2, 2, 3, 3, 4]


def layers(chart: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the marks of a specification with their data."""
    for name in ("hconcat", "vconcat", "layer"):
        for part in chart.get(name, ()):
            yield from layers(part)
    if "mark" in chart:
        yield chart


def sliced(values: list[Any], name: str = "by") -> fb.Evaluation:
    """Return the evaluation with one attribute."""
    return fb.evaluate(TRUE, PRED, attributes={name: values})


def names_of(chart: dict[str, Any]) -> list[str]:
    """Return the names of the rows of a chart, from above."""
    dots = [
        each
        for each in layers(chart)
        if each["mark"]["type"] == "point" and "name" in each["data"]["values"][0]
    ]
    rows = sorted(dots[0]["data"]["values"], key=lambda row: row["at"])
    return [row["name"] for row in rows]


def content(values: list[Any], score: str = "f1") -> dict[str, Any]:
    """Return the chart of one score by slice."""
    from fastbcubed.results.chart_data import slicing_of

    return plots.slices_chart(slicing_of(sliced(values), "by"), score)


def test_slices_by_numbers_come_in_their_order_and_others_by_cost() -> None:
    """The first four items lose 1 / 2 of their recall each, the last three 1 / 3, 1 / 3 and 2 / 3, the others none."""
    assert names_of(content([2010] * 4 + [9] * 2 + [None] * 3)) == ["9", "2010", "(null)"]
    assert names_of(content(["2-3"] * 4 + ["1"] * 2 + ["16-31"] * 3)) == ["1", "2-3", "16-31"]
    assert names_of(content(["m"] * 4 + ["a"] * 2 + ["z"] * 3)) == ["m", "z", "a"]
    assert names_of(content(["2nd"] * 4 + ["a"] * 2 + ["z"] * 3)) == ["2nd", "z", "a"]


@pytest.mark.parametrize(
    "names",
    [
        ["<5", "5-8", ">=9"],
        ["[-1.5, 0)", "[0, 0.5)", "[2e1, 30)"],
        ["1999-12-31", "2000-01-01", "2000-02-01"],
    ],
)
def test_names_of_bins_and_dates_have_an_order(names: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"slice": [name], "precision_loss": k, "recall_loss": None} for k, name in enumerate(names)]
    assert [row["slice"][0] for row in plots._charted({"by": "x", "rows": rows})] == names
    monkeypatch.setattr(plots, "DRAWN", 2)
    costliest = plots._charted({"by": "x", "rows": rows})
    assert [row["slice"][0] for row in costliest] == names[1:]


@pytest.mark.slow
def test_all_panels_have_one_scale() -> None:
    chart = fb.charts.slices(sliced(list("mmmmaazzz")), "by").to_dict()
    scales = [
        each["encoding"]["x"]["scale"]["domain"] for each in layers(chart) if "scale" in each["encoding"]["x"]
    ]
    assert len(chart["hconcat"]) == 3 and scales and all(scale == scales[0] for scale in scales)
    assert chart["title"]["text"] == "By by" and "Dashed" in " ".join(chart["title"]["subtitle"])


def test_scores_beyond_1_have_a_scale_of_their_own() -> None:
    rows = [
        {"slice": ["a"], "few": False, "precision": 0.5, "own": 7.0},
        {"slice": ["b"], "few": False, "precision": 0.7, "own": 9.0},
    ]
    slicing = {
        "by": "x",
        "rows": rows,
        "scores": ["precision", "own"],
        "overall": {"precision": 0.6, "own": 8.0},
    }
    low, high = (
        next(each["encoding"]["x"]["scale"]["domain"] for each in layers(plots.slices_chart(slicing, name)))
        for name in ("precision", "own")
    )
    assert low[1] < 1 and high[0] > 6


def test_intervals_that_leave_the_frame_end_in_arrows() -> None:
    rows = [
        {"slice": ["a"], "few": False, "f1": 0.8, "f1_low": 0.7, "f1_high": 0.9},
        {"slice": ["b"], "few": True, "f1": 0.75, "f1_low": 0.1, "f1_high": 0.95},
        {"slice": ["c"], "few": True, "f1": 0.75, "f1_low": 0.72, "f1_high": 0.8},
    ]
    chart = plots.slices_chart({"by": "x", "rows": rows, "scores": ["f1"], "overall": {}}, "f1")
    arrows = {each["mark"]["shape"]: each for each in layers(chart) if "shape" in each["mark"]}
    assert {way: [row["at"] for row in each["data"]["values"]] for way, each in arrows.items()} == {
        "triangle-left": [1], "triangle-right": [1]
    }  # fmt: skip
    (lines,) = (each["data"]["values"] for each in layers(chart) if each["mark"]["type"] == "rule")
    low, high = next(layers(chart))["encoding"]["x"]["scale"]["domain"]
    assert [(row["low"], row["high"]) for row in lines] == [(0.7, 0.9), (low, high), (0.72, 0.8)]


def test_better_is_right_whatever_the_direction_of_the_score() -> None:
    """The Jaccard distance falls, which is better, and is drawn to the right as recall is, which rises."""
    cmp = fb.compare(TRUE, {"old": PRED, "new": TRUE}, metrics=["recall", "jaccard_distance"])
    chart = fb.charts.deltas(cmp).to_dict()
    assert chart["title"]["text"] == "new: difference from old"
    dots = next(each for each in layers(chart) if each["mark"]["type"] == "point")
    drawn = {row["name"]: row["delta"] for row in dots["data"]["values"]}
    known = {row["score"]: row["delta"] for row in cmp.deltas().to_pylist()}
    assert known["jaccard_distance"] < 0 < known["recall"]
    assert drawn == {"recall": known["recall"], "jaccard_distance (reversed)": -known["jaccard_distance"]}
    title = dots["encoding"]["x"]["title"]
    assert title.startswith("←\u2002worse") and title.endswith("better\u2002→")


def test_differences_by_slice_are_drawn() -> None:
    """The new run merges the two true clusters of the slice x, which takes half of its precision."""
    truth, old, new = list("aabbccdd"), [1, 1, 2, 2, 3, 3, 4, 4], [1, 1, 1, 1, 3, 3, 4, 4]
    cmp = fb.compare(
        truth, {"old": old, "new": new}, attributes={"part": list("xxxxyyyy")}, metrics=["precision"]
    )
    chart = fb.charts.deltas(cmp, "part").to_dict()
    dots = next(each for each in layers(chart) if each["mark"]["type"] == "point")
    points = {row["name"]: (row["delta"], row["said"]) for row in dots["data"]["values"]}
    assert points == {"x": (-0.5, "error unknown"), "y": (0.0, "the same")}  # x is one component
    assert "precision" in dots["encoding"]["x"]["title"]
    with pytest.raises(MetricError, match="no score of the runs has slices"):
        fb.charts.deltas(fb.compare(truth, {"old": old, "new": new}, metrics=["rand"]), "true_size")


def test_intervals_of_reversed_differences_are_reversed() -> None:
    rows = [{"experiment": "b", "score": "s", "best": "lower", "delta": -0.3, "low": -0.4, "high": -0.1,
             "holds": True, "said": "better"}]  # fmt: skip
    marks = {each["mark"]["type"]: each for each in layers(plots.deltas_chart(rows))}
    assert marks["rule"]["data"]["values"] == [{"at": 0, "low": 0.1, "high": 0.4}]
    assert marks["point"]["encoding"]["fill"]["scale"] == {"domain": ["better"], "range": [plots.LIGHT.good]}


def test_what_is_said_of_a_difference_has_a_look_of_its_own() -> None:
    said = ["may be chance", "the same", "error unknown", "holds", "worse", "better"]
    rows = [
        {"run": "b", "slice": [each], "said": each, "delta": 0.1, "low": None, "high": None} for each in said
    ]
    dots = next(
        each for each in layers(plots.slice_deltas_chart(rows, "f1", None)) if each["mark"]["type"] == "point"
    )
    fill, stroke = (dots["encoding"][channel]["scale"] for channel in ("fill", "stroke"))
    assert {*fill["domain"]} == {*said} and fill["domain"] == stroke["domain"]
    assert len({*zip(fill["range"], stroke["range"], strict=True)}) == len(said)


def test_curves_by_threshold_are_whole_at_1_and_so_are_dashes_in_the_legend() -> None:
    sweep = fb.sweep(
        {0: 0, 1: 0, 2: 2}, {"left": [0, 1], "right": [1, 2], "score": [0.9, 0.5]}, items=range(3)
    )
    lines = [
        each
        for chart in (fb.charts.thresholds(sweep), fb.charts.precision_recall(sweep))
        for each in layers(chart.to_dict())
        if each["mark"]["type"] == "line"
    ]
    assert len(lines) == 2
    for line in lines:
        assert line["mark"]["clip"] and line["encoding"]["y"]["scale"]["domain"][1] == 1
        assert line["encoding"]["y"]["scale"]["range"][1] >= line["mark"]["strokeWidth"] / 2
    dash = lines[0]["encoding"]["strokeDash"]
    length = dash["legend"]["symbolSize"] ** 0.5  # of a symbol that is a stroke
    assert all(length >= 2 * sum(each) for each in dash["scale"]["range"])


def test_every_chart_has_tooltips() -> None:
    ev, cmp = sliced(list("mmmmaazzz")), fb.compare(TRUE, {"old": PRED, "new": TRUE})
    crossed = fb.evaluate(TRUE, PRED, attributes={"a": list("mmmmaazzz"), "b": list("xyxyxyxyx")})
    diff = fb.diff(TRUE, PRED, attributes={"by": list("mmmmaazzz")})
    estimates = fb.estimate({"a": 1, "b": 1, "c": 2}, {"a": 1, "b": 2, "c": 2, "d": 2})
    charts = [
        fb.charts.slices(ev, "by"), fb.charts.slices(crossed, ("a", "b")), fb.charts.sizes(ev), fb.charts.lorenz(ev),
        fb.charts.outcomes(ev), fb.charts.repairs(ev), fb.charts.deltas(cmp), fb.charts.changes(diff),
        fb.charts.changes(diff, "by"), fb.charts.estimates(estimates),
    ]  # fmt: skip
    for chart in charts:
        spec = chart.to_dict()
        marks = list(layers(spec))
        told = [hint["title"] for each in marks for hint in each["encoding"].get("tooltip", ())]
        fields = {hint["field"] for each in marks for hint in each["encoding"].get("tooltip", ())}
        assert told and any(fields <= {*chain(*rows)} for rows in rows_of(spec)), chart


def rows_of(chart: dict[str, Any]) -> list[list[dict[str, Any]]]:
    """Return the rows of each mark; Altair keeps them apart."""
    found = [each["data"].get("values") or chart["datasets"][each["data"]["name"]] for each in layers(chart)]
    return [rows for rows in found if rows]


@pytest.mark.slow
def test_outcomes_repairs_and_changes_have_the_figures_of_the_result() -> None:
    """Of three true clusters, that of two items is exact; the other two, of four and three, are split."""
    ev = sliced(list("mmmmaazzz"))
    (true, _) = fb.charts.outcomes(ev).to_dict()["vconcat"]
    bars = next(layers(true))["data"]["values"]
    assert [(row["of"], row["outcome"], round(row["share"], 4)) for row in bars if row["share"]] == [
        ("clusters", "exact", 0.3333), ("clusters", "split", 0.6667),
        ("items", "exact", 0.2222), ("items", "split", 0.7778),
    ]  # fmt: skip
    steps = next(layers(fb.charts.repairs(ev, limit=2).to_dict()))["data"]["values"]
    assert [row["f1"] for row in steps] == [ev.overall["f1"], *ev.repairs(limit=2)["running"].to_pylist()]
    assert steps[-1]["f1"] == 1
    diff = fb.diff(TRUE, PRED)
    rows = rows_of(fb.charts.changes(diff).to_dict())[0]
    assert {row["became"]: round(9 * row["share"]) for row in rows if row["share"]} == {
        "unchanged": 2,
        "split": 7,
    }


def test_what_cannot_be_drawn_is_an_error_by_name() -> None:
    perfect = fb.evaluate(TRUE, TRUE)
    with pytest.raises(MetricError, match="nothing to repair"):
        fb.charts.repairs(perfect)
    with pytest.raises(MetricError, match="charts of repairs need f1"):
        fb.charts.repairs(fb.evaluate(TRUE, PRED, metrics=["precision"]))
    with pytest.raises(
        OptionError, match=r"charts\.estimates draws Estimates or PairEstimates, not Evaluation"
    ):
        fb.charts.estimates(perfect)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match=r"charts\.changes draws Diff, not Evaluation"):
        fb.charts.changes(perfect)  # type: ignore[arg-type]


def test_a_colour_has_one_meaning() -> None:
    """No colour of a side is one of an outcome or of better and worse, in either palette."""
    for palette in (plots.LIGHT, plots.DARK):
        colours = [value for name, value in vars(palette).items()]
        assert len(set(colours)) == len(colours)
    used = {name for own in plots.OUTCOMES.values() for name in own.values()}
    assert not used & {"true", "pred", "good", "bad"} and label(None) == "(null)"


def test_cells_in_notebooks_have_padding_and_shares_their_whole() -> None:
    """The costliest true clusters have a share of 1 - recall."""
    ev = sliced(list("mmmmaazzz"))
    html = ev.slices("by")._repr_html_()
    assert html.count("padding:") == html.count("<td ") + html.count("<th ") > 0
    assert f"of the loss of {score_text(1 - ev.recall)}" in ev.report().html
