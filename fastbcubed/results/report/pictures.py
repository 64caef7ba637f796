"""The charts of a page as SVG, by where they stand in its content."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastbcubed.results.report import plots, plots_of_runs
from fastbcubed.results.report.axes import KINDS
from fastbcubed.results.report.inline_svg import drawn
from fastbcubed.results.report.palette import LIGHT
from fastbcubed.results.text.wording import count, label, score

Content = Mapping[str, Any]
#: Charts of an evaluation, None where there is nothing to draw.
_OF_EVALUATION = (
    "scores",
    "sizes",
    "outcomes_true",
    "outcomes_pred",
    "lorenz",
    "pred_size",
    "true_size",
    "repairs",
)


def pictures_of(content: Content) -> dict[str, Any]:
    """Return the charts that a page of this content has."""
    return _KINDS.get(content["kind"], _of_document)(content)


def _of_evaluation(content: Content) -> dict[str, Any]:
    found: dict[str, Any] = dict.fromkeys(_OF_EVALUATION)
    verdict, sides = content["verdict"], content["sides"]
    if verdict["scores"] and all(
        0 <= row["value"] <= 1 for row in verdict["scores"] if row["value"] is not None
    ):
        told = ", ".join(
            f"{row['label']} {score(row['value'])}" for row in verdict["scores"] if row["value"] is not None
        )
        found["scores"] = drawn(
            plots.scores_chart(verdict, LIGHT, legend=False), "scores", f"Dot plot from 0 to 1: {told}"
        )
    if sides["sizes"]:
        of = "memberships" if content["overlapping"] else "items"
        said = "Bar chart: share of the items in clusters of each size, truth beside prediction"
        found["sizes"] = drawn(plots.sizes_chart(sides["sizes"], LIGHT, of), "sizes", said)
    for side, kind in KINDS.items() if sides["outcomes"] else ():
        said = f"Stacked bars: what became of {kind}"
        found[f"outcomes_{side}"] = drawn(
            plots.outcomes_chart(sides["outcomes"], side, LIGHT), f"outcomes-{side}", said
        )
    if (curves := sides["lorenz"]) and any(curve["n_half"] for curve in curves.values()):
        said = "Line chart: share of the loss in the costliest clusters; " + ", ".join(
            f"half of it in {count(curve['n_half'])} {KINDS[side]}"
            for side, curve in curves.items()
            if curve["n_half"]
        )
        found["lorenz"] = drawn(plots.lorenz_chart(curves, LIGHT), "lorenz", said)
    for key, slicing in content["by_size"].items():
        found[key] = slicing_picture(slicing, slicing["scores"][0], key)
    found["slices"] = [
        slicing_pictures(each, f"slices-{k}") for k, each in enumerate(content["slices"]["rows"])
    ]
    repairs = content["repairs"]
    if repairs and repairs["rows"] and repairs["start"].get("f1") is not None:
        chart = plots.repairs_chart(repairs["rows"], repairs["start"]["f1"], LIGHT)
        found["repairs"] = drawn(
            chart, "repairs", "Line chart: F1 after each repair, as the table below has it"
        )
    return found


def slicing_pictures(slicing: Content, name: str) -> list[dict[str, str]]:
    """Return the charts of a slicing: one for each score, or a heat map where two attributes are crossed."""
    if len(slicing["names"]) == 2 and slicing["scores"]:
        which = slicing["scores"][-1]
        said = f"Heat map: {which} by {' and '.join(map(label, slicing['names']))}, as the table below has it"
        chart = plots.crossed_chart(slicing, which, LIGHT)
        return [{"score": which, "svg": drawn(chart, name, said), "wide": "wide"}]
    return [
        {"score": which, "svg": slicing_picture(slicing, which, f"{name}-{k}"), "wide": ""}
        for k, which in enumerate(slicing["scores"])
    ]


def slicing_picture(slicing: Content, which: str, name: str) -> str:
    """Return the chart of a score by slice."""
    said = f"Dot plot: {which} by {label(slicing['by'])}, as the table below has it"
    return drawn(plots.slices_chart(slicing, which, LIGHT), name, said)


def _of_comparison(content: Content) -> dict[str, Any]:
    found: dict[str, Any] = {"deltas": [], "slices": []}
    for k, name in enumerate(content["experiments"]):
        rows = [row for row in content["deltas"]["rows"] if row["experiment"] == name]
        said = f"Forest plot: {label(name)} less {label(content['baseline'])}, as the table below has it"
        found["deltas"].append(drawn(plots_of_runs.deltas_chart(rows, LIGHT), f"deltas-{k}", said))
    for k, slicing in enumerate(content["slices"]["rows"]):
        which = slicing["scores"][-1] if slicing["scores"] and slicing["rows"] else None
        found["slices"].append(None)
        if which is not None:
            said = f"Forest plot: difference of {which} by {label(slicing['by'])}, as the table below has it"
            chart = plots_of_runs.slice_deltas_chart(slicing, which, LIGHT)
            found["slices"][-1] = drawn(chart, f"slices-{k}", said)
    return found


def _of_diff(content: Content) -> dict[str, Any]:
    found: dict[str, Any] = {"changes": None, "slices": []}
    if content["changes"]:
        of = "weight" if content["weighted"] else "items"
        said = f"Bar chart: share of the {of} in clusters that are unchanged, split, merged, gone or new"
        found["changes"] = drawn(plots_of_runs.changes_chart(content["changes"], LIGHT, of), "changes", said)
    for k, slicing in enumerate(content["slices"]["rows"]):
        found["slices"].append(None)
        if slicing["rows"] and {"split_change", "merge_change"} <= set(slicing["figures"]):
            said = f"Stacked bars: split and merge rate by {label(slicing['by'])}, as the table below has it"
            chart = plots_of_runs.slice_changes_chart(slicing, LIGHT)
            found["slices"][-1] = drawn(chart, f"slices-{k}", said)
    return found


def _of_document(content: Content) -> dict[str, Any]:
    return {
        "sections": [
            [
                drawn(
                    _DRAWS[each["draws"]](each["data"], LIGHT),
                    f"s{k}-{j}",
                    f"{each['title']}. {each['text']}",
                )
                for j, each in enumerate(section["charts"])
            ]
            for k, section in enumerate(content["sections"])
        ]
    }


#: What draws the charts of a document.
_DRAWS = {
    "thresholds": plots_of_runs.thresholds_chart,
    "precision_recall": plots_of_runs.precision_recall_chart,
    "intervals": plots.intervals_chart,
}
_KINDS = {"evaluation": _of_evaluation, "comparison": _of_comparison, "diff": _of_diff}
