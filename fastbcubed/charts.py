"""Altair charts of results, like those on the pages of `report`, to show in a notebook or to save.

All chart functions need the extra ``fastbcubed[report]``; without the extra, they raise MissingPackageError. Each
function returns an `altair.Chart`, which a notebook displays. The chart's ``save("chart.svg")`` writes SVG, PNG or
HTML; with ``inline=True``, the HTML needs no network.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from fastbcubed.compare_runs.comparison import Comparison
from fastbcubed.diff_runs.diff_result import Diff
from fastbcubed.errors import EvaluationWarning, MetricError, OptionError, SliceError, arg, quoted
from fastbcubed.render.number_formats import label
from fastbcubed.results.evaluation import Evaluation
from fastbcubed.results.page import IN_BRIEF, require_packages
from fastbcubed.results.slices import SliceKey, check_key, name_columns, slice_name
from fastbcubed.runtime.arguments import is_one_of
from fastbcubed.runtime.object_attributes import only_all
from fastbcubed.sweep_links.curve_chart import curve_content
from fastbcubed.sweep_links.sweep_result import Sweep

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from types import ModuleType

    import altair

    from fastbcubed.sample.estimates import Estimates
    from fastbcubed.sample.judged_pairs import PairEstimates

__all__ = [
    "changes", "deltas", "estimates", "lorenz", "outcomes", "precision_recall", "repairs", "sizes", "slices",
    "thresholds",
]  # fmt: skip
__dir__ = only_all(globals())


def slices(ev: Evaluation, by: SliceKey, *, score: str | None = None) -> altair.Chart:
    """Return a chart of the scores by slice: dots with intervals, and the score of all items as a line.

    All panels share one scale; an interval that extends beyond the scale ends in an arrow. Slices of numbers, times or
    ranges are drawn in ascending order, and other slices costliest first. Slices with few independent groups of items
    are grey. If there are more than 20 slices, only the 20 costliest are drawn. Slices by two crossed attributes are
    drawn as a heat map.

    Parameters
    ----------
    ev : Evaluation
        The result.
    by : str, Bins, tuple of these, or mapping
        As for `Evaluation.slices`.
    score : str, optional
        The score to draw; by default precision, recall and F1 side by side, or F1 in a heat map.

    Raises
    ------
    MetricError
        If the score is not defined for slices.
    ColumnError, SliceError, NotKeptError
        As for `Evaluation.slices`.

    Examples
    --------
    >>> import fastbcubed as fb
    >>> ev = fb.evaluate([0, 0, 1, 1], [0, 0, 0, 1], attributes={"part": list("xxyy")})
    >>> type(fb.charts.slices(ev, "part")).__name__
    'HConcatChart'
    """
    plots = _plots("slices", ev, Evaluation)
    from fastbcubed.results.chart_data import about_slices, slicing_of

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EvaluationWarning)
        content = slicing_of(ev, check_key(by))
    found = content["scores"] if score is None else [score]
    if not found or not all(is_one_of(name, content["scores"]) for name in found):
        raise MetricError(
            f"there is no chart of {quoted(score)}; available: {', '.join(content['scores']) or 'none'}"
        )
    content["scores"] = found
    if len(content["names"]) == 2:
        return _drawn(plots.crossed_chart(content, found[-1]), _by(content["names"]), about_slices(content))
    if not content["rows"]:
        raise SliceError(f"there is no slice by {slice_name(by)}")
    panels = [
        plots.slices_chart(content, name, longest=0 if k else 48, width=190 if found[1:] else 250)
        for k, name in enumerate(found)
    ]
    chart = panels[0] if len(panels) == 1 else plots.beside(panels)
    return _drawn(chart, _by(content["names"]), about_slices(content))


def sizes(ev: Evaluation) -> altair.Chart:
    """Return a chart of the cluster sizes of both sides: the share of items in clusters of each size.

    Parameters
    ----------
    ev : Evaluation
        The result.

    Raises
    ------
    NotKeptError
        If the cells were not kept.

    Examples
    --------
    >>> import fastbcubed as fb
    >>> type(fb.charts.sizes(fb.evaluate([0, 0, 1, 1], [0, 0, 0, 1]))).__name__
    'Chart'
    """
    plots = _plots("sizes", ev, Evaluation)
    from fastbcubed.results.chart_data import size_rows

    of = "memberships" if ev.contingency.overlapping else "items"
    return _drawn(plots.sizes_chart(size_rows(ev), of), "Cluster sizes")


def lorenz(ev: Evaluation) -> altair.Chart:
    """Return a Lorenz chart: the cumulative share of the loss by share of clusters, with half of the loss marked.

    Parameters
    ----------
    ev : Evaluation
        The result.

    Raises
    ------
    NotKeptError
        If the cells were not kept.

    Examples
    --------
    >>> import fastbcubed as fb
    >>> type(fb.charts.lorenz(fb.evaluate([0, 0, 1, 1], [0, 0, 0, 1]))).__name__
    'LayerChart'
    """
    plots = _plots("lorenz", ev, Evaluation)
    from fastbcubed.results.chart_data import lorenz_curves

    return _drawn(plots.lorenz_chart(lorenz_curves(ev)), "How concentrated the errors are")


def outcomes(ev: Evaluation) -> altair.Chart:
    """Return a chart of cluster outcomes: the share of each side's clusters, and of its items, with each outcome.

    Parameters
    ----------
    ev : Evaluation
        The result.

    Raises
    ------
    NotKeptError, MetricError
        As for `Evaluation.outcomes`.

    Examples
    --------
    >>> import fastbcubed as fb
    >>> type(fb.charts.outcomes(fb.evaluate([0, 0, 1, 1], [0, 0, 0, 1]))).__name__
    'VConcatChart'
    """
    plots = _plots("outcomes", ev, Evaluation)
    from fastbcubed.results.chart_data import OUTCOMES

    rows = ev.outcomes().to_pylist()
    panels = [
        plots.titled(plots.outcomes_chart(rows, side), title, text)
        for side, (title, text) in OUTCOMES.items()
    ]
    return _drawn({"vconcat": panels, "resolve": {"scale": {"color": "independent"}}})


def repairs(ev: Evaluation, *, limit: int = 20) -> altair.Chart:
    """Return a chart of F1 as the most useful repairs of clusters are applied one after another.

    Parameters
    ----------
    ev : Evaluation
        The result.
    limit : int
        Maximum number of repairs.

    Raises
    ------
    MetricError
        If the result has no F1, or if there is nothing to repair.
    NotKeptError, OptionError
        In the same cases as for `Evaluation.repairs`.

    Examples
    --------
    >>> import fastbcubed as fb
    >>> type(fb.charts.repairs(fb.evaluate([0, 0, 1, 1], [0, 0, 0, 1]))).__name__
    'LayerChart'
    """
    plots = _plots("repairs", ev, Evaluation)
    if "f1" not in ev.overall:
        raise MetricError(
            f"charts of repairs need f1, which the result lacks; name it in {arg('metrics', ...)}"
        )
    rows = ev.repairs(limit=limit).to_pylist()
    if not rows:
        raise MetricError("there is nothing to repair: no cluster costs anything")
    note = "Repairs that match the truth, largest gain first."
    return _drawn(plots.repairs_chart(rows, ev.overall["f1"]), "F1 after each repair", note)


def changes(diff: Diff, by: SliceKey | None = None) -> altair.Chart:
    """Return a chart of the outcomes of the baseline's clusters, or of the split and merge rates by slice.

    Parameters
    ----------
    diff : Diff
        The comparison of the baseline with the experiment.
    by : str, Bins, tuple of these, optional
        Slices, as for `Diff.slices`; the 20 slices that changed most are drawn.

    Raises
    ------
    NotKeptError, MetricError, ColumnError, SliceError
        In the same cases as for `Diff.changes` and `Diff.slices`.

    Examples
    --------
    >>> import fastbcubed as fb
    >>> diff = fb.diff({"a": 1, "b": 1, "c": 2}, {"a": 1, "b": 2, "c": 2})
    >>> type(fb.charts.changes(diff)).__name__
    'Chart'
    """
    plots = _plots("changes", diff, Diff)
    if by is None:
        of = "weight" if diff.evaluation.contingency.weighted else "items"
        return _drawn(plots.changes_chart(diff.changes().to_pylist(), of), "Outcomes of the clusters")
    rows = diff.slices(by, order_by="change", limit=20)
    names = name_columns(rows.column_names)
    shown = [{**row, "slice": [row[name] for name in names]} for row in rows.to_pylist()]
    note = "Summed over all slices, these are the split rate and the merge rate."
    return _drawn(plots.slice_changes_chart(shown), f"Change by {' and '.join(map(label, names))}", note)


def estimates(result: Estimates | PairEstimates) -> altair.Chart:
    """Return a chart of estimates with intervals, from a sample or from judged pairs.

    Parameters
    ----------
    result : Estimates or PairEstimates
        The result of `fastbcubed.estimate` or `fastbcubed.estimate_pairs`.

    Raises
    ------
    MetricError
        If no estimated score has a range from 0 to 1.

    Examples
    --------
    >>> import fastbcubed as fb
    >>> found = fb.estimate({"a": 1, "b": 1, "c": 2}, {"a": 1, "b": 2, "c": 2, "d": 2})
    >>> type(fb.charts.estimates(found)).__name__
    'LayerChart'
    """
    from fastbcubed.render.html import charts_of
    from fastbcubed.sample.estimates import Estimates
    from fastbcubed.sample.judged_pairs import PairEstimates

    plots = _plots("estimates", result, Estimates, PairEstimates)
    for chart in charts_of(result._document(IN_BRIEF).blocks):
        return _drawn(plots.intervals_chart(*chart.data), chart.title, chart.text)
    raise MetricError("no estimated score ranges from 0 to 1, so there is nothing to draw")


def deltas(cmp: Comparison, by: SliceKey | None = None) -> altair.Chart:
    """Return a chart of the differences from the baseline, with intervals.

    Hollow marks show differences that may be due to chance.

    Parameters
    ----------
    cmp : Comparison
        The comparison of the runs.
    by : str, Bins, tuple of these, or mapping, optional
        Slices, as for `Comparison.slices`. With slices, the chart shows the difference in F1 for the 20 slices that
        changed most, and the overall difference as a line. For runs without F1, the chart shows the last of the scores
        that the runs have.

    Raises
    ------
    OptionError
        If there is only one run.
    MetricError
        If no score is defined for slices.
    ColumnError, SliceError, NotKeptError
        As for `Comparison.slices`.

    Examples
    --------
    >>> import fastbcubed as fb
    >>> cmp = fb.compare(list("aabb"), {"old": [1, 2, 3, 4], "new": [1, 1, 3, 4]})
    >>> type(fb.charts.deltas(cmp)).__name__
    'LayerChart'
    """
    plots = _plots("deltas", cmp, Comparison)
    from fastbcubed.compare_runs import comparison_document as page

    if not cmp.experiments:
        raise OptionError("there is only one run, so there is no difference to draw")
    if by is not None:
        table = cmp.slices(by, order_by="delta", limit=page.SLICES)
        names, scores = page.names_and_scores(cmp, table)
        if not scores:
            raise MetricError("no score of the runs has slices")
        found = [row | page.ends_in_slice(cmp, row, scores) for row in table.to_pylist()]
        if not found:
            raise SliceError(f"there is no slice by {slice_name(by)}")
        chart = page.slices_chart(cmp, slice_name(by), names, scores, found, 0)
        return _drawn(plots.slice_deltas_chart(*chart.data), chart.title, chart.text)
    rows = list(page.deltas_of(cmp))
    title = page.difference_from(cmp, cmp.experiments[0] if len(cmp.experiments) == 1 else None)
    return _drawn(plots.deltas_chart(rows), title, page.about_deltas(rows))


def thresholds(sweep: Sweep) -> altair.Chart:
    """Return a chart of precision, recall and F1 by threshold, with the threshold of the best F1 marked.

    The axis of scores covers the values near the best F1, so its range may be smaller than 0 to 1.

    Parameters
    ----------
    sweep : Sweep
        The sweep over thresholds.

    Raises
    ------
    MetricError
        If the sweep has no score with a range from 0 to 1.

    Examples
    --------
    >>> import fastbcubed as fb
    >>> sweep = fb.sweep({"a": 1, "b": 1, "c": 2}, [("a", "b", 0.9), ("b", "c", 0.4)])
    >>> type(fb.charts.thresholds(sweep)).__name__
    'LayerChart'
    """
    plots = _plots("thresholds", sweep, Sweep)
    curve = curve_content(sweep)
    if not curve["scores"]:
        raise MetricError(
            "the sweep has no score that ranges from 0 to 1; sweep with precision, recall or f1"
        )
    return _drawn(plots.thresholds_chart(curve), "Scores by threshold")


def precision_recall(sweep: Sweep) -> altair.Chart:
    """Return a chart of precision by recall near the threshold of the best F1, with thresholds along the curve.

    For a loaded sweep, the curve is drawn near the best threshold saved with it.

    Parameters
    ----------
    sweep : Sweep
        The sweep over thresholds.

    Raises
    ------
    MetricError
        If the sweep has no precision, recall or F1.

    Examples
    --------
    >>> import fastbcubed as fb
    >>> sweep = fb.sweep({"a": 1, "b": 1, "c": 2}, [("a", "b", 0.9), ("b", "c", 0.4)])
    >>> type(fb.charts.precision_recall(sweep)).__name__
    'LayerChart'
    """
    plots = _plots("precision_recall", sweep, Sweep)
    curve = curve_content(sweep)
    if not curve["named"]:
        raise MetricError(
            "the curve needs precision, recall and f1, but the sweep lacks some of them; name them in "
            f"{arg('metrics', ...)}"
        )
    return _drawn(plots.precision_recall_chart(curve), "Precision by recall")


def _plots(name: str, result: Any, *kinds: type) -> ModuleType:
    """Return the module that draws; raise an error if a package is missing or the result has another type."""
    if not isinstance(result, kinds):
        hint = " Ask its .evaluation." if isinstance(result, Diff) else ""
        drawn = " or ".join(kind.__name__ for kind in kinds)
        raise OptionError(f"charts.{name} draws {drawn}, not {type(result).__name__}.{hint}")
    require_packages(f"charts.{name}")
    from fastbcubed.render import plots

    return plots


def _drawn(chart: Mapping[str, Any], title: str | None = None, note: str = "") -> altair.Chart:
    """Return a specification in the common style, as an object that notebooks show and that has `save`."""
    import altair  # takes a second, so only when needed

    from fastbcubed.render.plots import finished

    return altair.Chart.from_dict(finished(dict(chart), title, note))


def _by(names: Iterable[str]) -> str:
    return f"By {' and '.join(map(label, names))}"
