"""An evaluation as a document: verdict, sides, scores, losses, slices, clusters, repairs, and provenance."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from fastbcubed.cells.contingency import SIDES
from fastbcubed.errors import FastBCubedError, MetricError, NotKeptError, OptionError
from fastbcubed.inputs.arrays import from_numpy, to_numpy
from fastbcubed.metrics.bcubed import LOSS_OF_SIDE, distinct
from fastbcubed.metrics.metric import Metric
from fastbcubed.metrics.registry import DEFAULT
from fastbcubed.render.document import (
    ON_PAGE,
    Beside,
    Block,
    Chart,
    Clusters,
    Code,
    Document,
    Facts,
    Fold,
    Grid,
    Group,
    Heading,
    Members,
    Notices,
    Only,
    Opened,
    Prose,
    Section,
    sections,
)
from fastbcubed.render.number_formats import (
    count,
    counted,
    label,
    named,
    not_computed,
    percent,
    score_text,
    with_interval,
)
from fastbcubed.results import chart_data
from fastbcubed.results.clusters import list_clusters
from fastbcubed.results.concentration import KINDS
from fastbcubed.results.evaluation_data import EvaluationData
from fastbcubed.results.evaluation_text import (
    FEW_CELLS,
    HEADLINE,
    believe,
    coverage,
    definition,
    differing,
    if_otherwise,
    outcomes,
    title_lines,
    verdict,
)
from fastbcubed.results.explain_items import explain
from fastbcubed.results.explanation import whole_blocks
from fastbcubed.results.intervals import Interval
from fastbcubed.results.members import chosen_columns, opener
from fastbcubed.results.page import (
    IN_BRIEF,
    LISTED,
    MESSAGES,
    MOST_COLUMNS,
    Asked,
    anchor,
    command,
    opened_blocks,
    origin_of,
    title_of,
)
from fastbcubed.results.repairs import repairs_at_hand
from fastbcubed.results.slices import EXCESS, id_parts, slice_name

#: Number of slices drawn, and characters per name if three charts are to fit side by side.
DRAWN, SHORT = 20, 14
NOTHING = "No warnings."
#: Numbers of source pairs and of repairs printed: all if at most FEW, otherwise the first FIRST.
FEW, FIRST = 20, 10
#: Default scores that are listed only if scores were requested.
ON_REQUEST = ("mean_f1", "jaccard_distance")
#: Explanation of the last columns in a table of slices.
SHARES = "of P loss, of R loss: share of the total loss; excess: loss per item above the average"


def document(ev: EvaluationData, asked: Asked = IN_BRIEF) -> Document:
    """Return an evaluation as a document; parts that only pages show are made only for pages."""
    scored = f"{counted(ev.summary['true']['items'], 'item')}{', weighted' * ev.contingency.weighted}"
    facts = [
        ("Prediction", ev.names.get("prediction") or "the prediction"),
        ("Truth", ev.names.get("truth") or "the truth"),
        ("Scored", scored + "; clusters may overlap" * ev.contingency.overlapping),
    ]
    head = [
        Only("text", [Prose(title_lines(ev), "title")]),
        Only("page", [Facts(facts, "sides", ("pred", "true", ""))]),
    ]
    return Document("evaluation", asked.title or title_of(ev.names), head, _sections(ev, asked))


def _sections(ev: EvaluationData, asked: Asked) -> Iterator[Section]:
    """Yield the non-empty sections, each made when needed, as some take long."""
    if asked.columns:
        chosen_columns(ev.kept, asked.columns)
    found = None if asked.explain is None else explain(ev, asked.explained_by)
    parts: dict[tuple[str, str], Callable[..., Iterable[Block]]] = {
        ("verdict", "Verdict"): _verdict,
        ("sides", "The two sides"): _sides,
        ("definitions", "Scores"): scores_of,
        ("loss", "Where the loss is"): _losses,
        ("slices", "Slices"): _slices,
        ("explanation", "What kind of items lose more"): lambda *_: (
            () if found is None else whole_blocks(found)
        ),
        ("sources", "Links within and across sources"): _source_pairs,
        ("clusters", "Clusters to look at"): _clusters,
        ("opened", "Opened clusters"): lambda _, asked: opened_blocks(asked),
        ("repairs", "Repairs"): _repairs,
        ("origin", "How it was made"): _origin,
    }
    yield from sections(parts, ev, asked)


def _verdict(ev: EvaluationData, asked: Asked) -> Iterator[Block]:
    """Yield the verdict in sentences, followed by warnings; on a page, next to scores and trivial predictions."""
    sentences = Prose(verdict(ev), "lead")
    if asked.page:
        yield Beside([[sentences, Prose([believe(ev)], "lead")], _headline(ev)])
        yield Notices.of(ev.warnings[:MESSAGES], n=len(ev.warnings))
    else:
        yield sentences
        yield Notices.of(ev.warnings, none=NOTHING)


def _headline(ev: EvaluationData) -> list[Block]:
    """Return the main scores with intervals as a table, and as a chart together with those of trivial predictions."""
    known = ev.standard_errors.intervals_at_hand()
    names = [name for name in HEADLINE if name in ev.overall] or chart_data.drawn_scores(ev)[:3]
    rows: list[dict[str, Any]] = [
        {"score": name, "label": HEADLINE.get(name, name), "value": ev.overall[name], **ends_of(known, name)}
        for name in names
    ]
    if not rows:
        return []
    texts = [with_interval(row["value"], row["low"], row["high"]) for row in rows]
    cells = [
        [row["label"], *text.removesuffix(")").partition(" (")[::2]]
        for row, text in zip(rows, texts, strict=True)
    ]
    caption = f"Scores over all items{', with 95 % intervals' * bool(known)}"
    found: list[Block] = [Grid(["", "", ""], cells, 1, ("text", "text", "text"), caption, style="big")]
    defined = [row for row in rows if row["value"] == row["value"]]
    if all(0 <= row["value"] <= 1 for row in defined):
        trivial = chart_data.extremes(ev)
        marks = {"alone": "▲ every item a singleton", "one": "■ all items in one cluster"}
        shown = ", ".join(text for name, text in marks.items() if name in trivial)
        text = (
            "● this prediction. For comparison, grey marks show what useless predictions would score on the "
            f"same truth: {shown}."
        )
        told = ", ".join(f"{row['label']} {score_text(row['value'])}" for row in defined)
        data, said = {"scores": rows, "extremes": trivial}, f"Dot plot from 0 to 1: {told}"
        found.append(Chart("scores", "scores", (data,), said, text=text if shown else ""))
    return found


def _sides(ev: EvaluationData, asked: Asked) -> Iterator[Block]:
    """Yield the items, clusters, outcomes and sizes of both sides, with charts, and items that only one side has."""
    left: list[Block] = [sides_grid(ev), Prose(outcomes(ev))]
    found: Mapping[str, int] = ev.summary["pred"].get("outcomes") or {}
    # on a page, a chart shows the outcomes
    if any(found.get(name) for name in ("fragment", "union", "mixed")):
        left.append(Only("text", [Prose([chart_data.OUTCOMES["pred"][1]])]))
    if asked.page:
        yield from _sides_on_page(ev, left)
    else:
        yield Beside([left])
    lines, others = coverage(ev), list(if_otherwise(ev)) if asked.page else []
    if lines or others:
        yield Only("page", [Heading("Items missing from one side")])
    yield Prose(lines, "indented")
    yield Prose(others)


def sides_grid(ev: EvaluationData) -> Grid:
    """Return the numbers and sizes of clusters on both sides as a table."""
    rows = [
        {"side": side, **own, "median": own["size_quantiles"].get("0.5"), "exact": _exact(own)}
        for side, own in (("truth", ev.summary["true"]), ("prediction", ev.summary["pred"]))
    ]
    columns: list[tuple[Any, ...]] = [("side", "side", "text")]
    columns += [(name, name, "count") for name in ("items", "clusters", "singletons")]
    columns += [("median size", "median", "count", ON_PAGE), ("largest", "largest", "count")]
    columns += [("exactly recovered", "exact", "figure")] * ev.contingency.overlapping
    return Grid.of(rows, columns, about="Items and clusters of both sides")


def _exact(own: Mapping[str, Any]) -> str:
    return f"{count(own['exact'])} ({percent(own['exact'] / own['clusters'])})"


def _sides_on_page(ev: EvaluationData, left: list[Block]) -> Iterator[Block]:
    """Yield the sides next to charts of cluster outcomes and cluster sizes."""
    found, overlapping = (
        None if ev._outcomes is None else ev._outcomes.to_pylist(),
        ev.contingency.overlapping,
    )
    for side, (title, text) in chart_data.OUTCOMES.items() if found else ():
        said = f"Stacked bars: outcomes of {KINDS[side]}s"
        left.append(Chart(f"outcomes-{side}", "outcomes", (found, side), said, title, text))
    if not found and overlapping:
        why = "with overlapping clusters, an item can be split from some items and stay with others."
        left.append(Prose([f"The outcome of each cluster is not defined: {why}"], "note"))
    right: list[Block] = []
    if ev.contingency.has_cells:
        text = (
            "Share of items by cluster size. More orange at small sizes points to splitting, more orange at "
            "large sizes to merging."
        )
        said = "Bar chart: share of the items in clusters of each size, truth beside prediction"
        data = (chart_data.size_rows(ev), "memberships" if overlapping else "items")
        right.append(Chart("sizes", "sizes", data, said, "How large the clusters are", text))
    yield Beside([left, right])
    if found:
        shown = [{**row, "side": "true" if row["side"] == "true" else "predicted"} for row in found]
        columns = [("Side", "side", "text"), ("outcome", "outcome", "text")]
        columns += [("clusters", "n_clusters", "count"), ("items", "n_items", "count")]
        columns += [(f"{name} lost", f"{name}_loss", "share") for name in ("precision", "recall")]
        yield Only(
            "page", [Fold("Outcomes as a table", [Grid.of(shown, columns, 2, about="Outcomes of clusters")])]
        )


def scores_of(ev: EvaluationData, asked: Asked) -> Iterator[Block]:
    """Yield the scores with their definitions, how they were averaged, and calls to make next."""
    text = (
        "Precision is the share of an item's predicted cluster that belongs with it; recall is the share of "
        "its true cluster that is clustered with it. Both are means over items, and each item counts "
        "itself. F1 is high only if both are."
    )
    yield Only("page", [Prose([text])])
    yield _scores(ev, ev.standard_errors.intervals_at_hand())
    yield Prose([*definition(ev), *not_computed(ev.not_computed)])
    if asked == IN_BRIEF:
        yield Only("text", _next_steps(ev))


def definitions_of(ev: EvaluationData) -> Iterator[Block]:
    """Yield the definitions of the scores without their values."""
    score, _, meaning, source = range(4)
    yield _scores(ev, {}).only([score, meaning, source])
    yield Prose([*definition(ev), *not_computed(ev.not_computed)])


def _scores(ev: EvaluationData, intervals: Mapping[str, Interval]) -> Grid:
    return scores_grid({name: ev.overall[name] for name in listed_scores(ev.overall)}, intervals, ev.metrics)


def listed_scores(names: Iterable[str]) -> list[str]:
    """Return the scores to list: no complements of others and, of the default scores, none in `ON_REQUEST`."""
    names = tuple(names)
    return distinct(name for name in names if names != DEFAULT or name not in ON_REQUEST)


def ends_of(intervals: Mapping[str, Interval], score: str) -> dict[str, float | None]:
    """Return the ends of a score's interval, None if it has none."""
    low, high = intervals.get(score, (None, None))
    return {"low": low, "high": high}


def scores_grid(
    overall: Mapping[str, float], intervals: Mapping[str, Interval], metrics: Sequence[Metric]
) -> Grid:
    """Return a table of scores with intervals and definitions."""
    known = {metric.name: metric for metric in metrics}
    rows = []
    for name, value in overall.items():
        metric = known.get(name)
        source = "" if metric is None else metric.source
        row = {"score": name, "value": value, "meaning": _meaning(metric), "source": source}
        rows.append(row | ends_of(intervals, name))
    columns: list[tuple[Any, ...]] = [("score", "score", "text"), ("", ("value", "low", "high"), "interval")]
    columns += [("definition", "meaning", "name"), ("source", "source", "name", ON_PAGE)]
    return Grid.of(rows, columns, left=True, about="Scores and their definitions")


def _meaning(metric: Metric | None) -> str:
    if metric is None:
        return ""
    meaning = metric.definition.replace("mean over items of ", "mean of ", 1)
    meaning = meaning.replace("with P = precision and R = recall", "of precision and recall")
    return f"lower is better; {meaning}" if metric.best == "lower" else meaning


def steps_grid(steps: Iterable[tuple[str, str]]) -> list[Block]:
    """Return a table of calls to make next, each with what it does."""
    return [Grid(["Next:", ""], [[f"  {call}", effect] for call, effect in steps], 2)]


def _next_steps(ev: EvaluationData) -> list[Block]:
    """Return two or three calls that show which items lose score."""
    if not ev.has_clusters:
        return []
    steps = [('.clusters("pred", limit=5)', 'the worst predicted clusters; or "true"')]
    try:
        items = ev.kept_items()
    except ValueError:  # only clusters were kept
        return steps_grid(steps)
    attributes = [name for names in items.attribute_sides().values() for name in names] + [*id_parts(items)]
    if ev.attributes is not None:
        attributes += ev.attributes.names
    by = label(attributes[0] if attributes else "true_size")
    others = [o for o in dict.fromkeys(map(label, [*attributes[1:], "true_size", "pred_size"])) if o != by]
    listed = ", ".join(others[:3]) + (", …" if len(others) > 3 else "")
    steps.append((f'.slices("{by}")', f"scores by {by}; or {listed}"))
    steps.append((".item(id)", "one item: its confusion matrix, and who is in it"))
    return steps_grid(steps)


def _losses(ev: EvaluationData, asked: Asked) -> Iterator[Block]:
    """Yield blocks on how concentrated the loss is, and on scores by cluster size."""
    if not asked.page:
        return
    curves, by_size, charts = _curves(ev), chart_data.by_size(ev), list[Sequence[Block]]()
    if curves and any(curve["n_half"] for curve in curves.values()):
        halves = ", ".join(
            f"half of it in {counted(curve['n_half'], KINDS[side])}"
            for side, curve in curves.items()
            if curve["n_half"]
        )
        text = (
            "Cumulative share of the loss in the costliest clusters: precision loss in predicted clusters "
            "(dashed), recall loss in true clusters. If few clusters hold half of it, fix these; otherwise "
            "look for a systematic cause."
        )
        said = f"Line chart: share of the loss in the costliest clusters; {halves}"
        charts.append([Chart("lorenz", "lorenz", (curves,), said, "How concentrated is the loss?", text)])
    texts = {
        "pred_size": ("Precision by the size of the predicted cluster", (
            "The dashed line marks all items. Grey: fewer than 30 independent groups, so the value is "
            "uncertain."
        )),
        "true_size": ("Recall by the size of the true cluster", "The dashed line is all items."),
    }  # fmt: skip
    for key, (title, text) in texts.items():
        if key in by_size:
            if key == "true_size" and any(row["n_units"] for row in by_size[key]["rows"]):
                text = "Lines are 95 % intervals, where known; the dashed line marks all items."
            charts.append([_slice_chart(by_size[key], by_size[key]["scores"][0], key, title, text)])
    if charts:
        yield Beside(charts)
    if by_size:
        yield Prose([SHARES], "note")
    for key, slicing in sorted(by_size.items()):
        of = "predicted" if key == "pred_size" else "true"
        yield Fold(f"{slicing['scores'][0].capitalize()} by {of} size as a table", [slice_grid(slicing, ev)])


def _curves(ev: EvaluationData) -> dict[str, Any] | None:
    """Return the Lorenz curve of each side's loss; None if unknown or if computing it would take too long."""
    cells = ev.contingency
    if not cells.has_cells or (cells.overlapping and cells.n_cells > FEW_CELLS):
        return None
    try:
        return chart_data.lorenz_curves(ev)
    except OptionError:  # the memory limit is too low
        return None


def _slices(ev: EvaluationData, asked: Asked) -> Iterator[Block]:
    """Yield each slicing, of the evaluation or requested for the document: charts of its scores, and a table."""
    keys: dict[str, Any] = {name: name for name in ev.sliced} | {slice_name(key): key for key in asked.by}
    chosen = list(keys.items())[: asked.slicings]
    if not chosen:
        return
    shares = [SHARES] if chart_data.lost_by_all(ev) else []
    if asked.page:
        yield about_slicings(len(chosen), len(keys), chart_data.about_slices())
        yield Prose(shares, "note")
    for k, (name, key) in enumerate(chosen):
        yield from slicing_blocks(ev, name, key, asked, f"slices-{k}")
    if not asked.page:
        yield Prose(shares)


def slicing_blocks(ev: EvaluationData, name: str, key: Any, asked: Asked, place: str = "") -> Iterator[Block]:
    """Yield one slicing below its heading: all slices if there are few, otherwise the costliest."""
    if not asked.slices and (n := ev._sliced[name].num_rows) > asked.whole:
        yield Heading(f"By {label(name)}: {count(n)} slices; --worst N lists the N that cost most")
        return
    slicing = chart_data.slicing_of(ev, key, asked.whole, asked.slices, asked.order_by)
    rows, n, by = slicing["rows"], slicing["n"], asked.order_by
    which = "that cost most" if by is None else f"of most {EXCESS}" if by == EXCESS else f"of worst {by}"
    part = f": the {count(len(rows))} of {count(n)} slices {which}" if len(rows) < n else ""
    yield Heading(f"By {label(name)}{part}")
    if asked.page:
        if not slicing["ordered"] and len(slicing["names"]) != 2:
            drawn = f"{min(len(rows), DRAWN)} of {count(n)} slices are drawn"
            yield Prose([f"{drawn}: those that cost most."], "note")
        long = max((len(named(row["slice"])) for row in rows[:DRAWN]), default=0) > SHORT
        charts = slicing_charts(slicing, place)
        yield Beside([[chart] for chart in charts], "panels long" if long else "panels")
    yield Fold("As a table", [slice_grid(slicing, ev)])


#: How to read the intervals of slices; see `intervals.of_slice`.
COMPARE_SLICES = (
    "Intervals of slices, where shown, make no allowance for groups that were not drawn, so they are narrower than "
    "those of all items; use them to compare slices with each other."
)


def about_slicings(shown: int, n: int, text: str) -> Prose:
    """Return the note above all slicings, which also says if only some are shown."""
    part = [f"{shown} of {n} slicings are shown."] * (n > shown)
    return Prose([" ".join([text, COMPARE_SLICES, *part])], "note")


def slicing_charts(slicing: Mapping[str, Any], name: str) -> list[Chart]:
    """Return the charts of a slicing: one per score, or a heat map if two attributes are crossed."""
    if len(slicing["names"]) == 2 and slicing["scores"]:
        score, part = slicing["scores"][-1], len(slicing["rows"]) < slicing["n"]
        by = " and ".join(map(label, slicing["names"]))
        said = f"Heat map: {score} by {by}, with the values of the table below"
        text = chart_data.about_slices(slicing)
        text += f" Of {count(slicing['n'])} pairs, those that cost most." * part
        title = f"{'F1' if score == 'f1' else score} of each pair"
        return [Chart(name, "crossed", (slicing, score), said, title, text)]
    return [_slice_chart(slicing, score, f"{name}-{k}") for k, score in enumerate(slicing["scores"])]


def _slice_chart(slicing: Mapping[str, Any], score: str, name: str, title: str = "", text: str = "") -> Chart:
    said = f"Dot plot: {score} by {label(slicing['by'])}, with the values of the table below"
    return Chart(name, "slices", (slicing, score), said, title, text)


def slice_grid(slicing: Mapping[str, Any], ev: EvaluationData) -> Grid:
    """Return a table of slices with scores, intervals and losses; those with few independent groups are grey."""
    names, rows = slicing["names"], slicing["rows"]
    shown = [{**row, **dict(zip(names, row["slice"], strict=True))} for row in rows]
    columns: list[tuple[Any, ...]] = [(name, name, "name") for name in names]
    columns.append(("items", "n_items", "count"))
    columns.append((f"of {'weight' if ev.contingency.weighted else 'items'}", "share", "percent", 3))
    columns += [(score, (score, f"{score}_low", f"{score}_high"), "interval") for score in slicing["scores"]]
    for name in ("precision", "recall"):
        if any(f"share_of_{name}_loss" in row for row in rows):
            columns.append((f"of {name[0].upper()} loss", f"share_of_{name}_loss", "percent", 2))
        if len(slicing["scores"]) == 1:  # with more, there is no room
            columns.append((f"{name} lost", f"{name}_loss", "share", ON_PAGE))
    columns += [("excess", "excess", "delta", 3)] * any("excess" in row for row in rows)
    soft = [k for k, row in enumerate(rows) if row["few"]]
    return Grid.of(shown, columns, len(names), about=f"By {slicing['by']}", soft=soft)


def _clusters(ev: EvaluationData, asked: Asked) -> Iterator[Block]:
    """Yield the costliest clusters of each side; on a page, each can be opened to show its members."""
    if not ev.has_clusters or not asked.worst:
        return
    # excess is defined for slices only
    asked = replace(asked, order_by=None) if asked.order_by == EXCESS else asked
    if asked.page:
        text = "Those that cost most. Each opens to its members, grouped by the clusters of the other side"
        if not ev.has_items:
            text += '. The members were not kept; save with keep="items" to have them here.'
        elif asked.columns:
            text += "; a marked value differs from that of most members shown."
        else:
            text += ", as ids only; to show columns, name them in --report-columns, or in report(columns=…)."
        yield Prose([text], "note")
    numbers = {side: _n_lossy(ev, side) for side in SIDES}
    tables = {side: _costliest(ev, side, asked, numbers[side]) for side in SIDES[::-1]}
    codes = {side: to_numpy(table["code"]) for side, table in tables.items()}
    open_one = None
    if asked.page and ev.has_items:
        open_one = opener(ev.kept, ev.coverage, codes, asked.columns[:MOST_COLUMNS], asked.members)
    for side, table in tables.items():
        yield from _clusters_of(ev, side, table, open_one, asked, numbers[side])


def _n_lossy(ev: EvaluationData, side: str) -> int | None:
    try:
        return int(ev.concentration[side]["n_lossy"])
    except (OptionError, NotKeptError, AttributeError):
        return None


def _costliest(ev: EvaluationData, side: str, asked: Asked, n_lossy: int | None) -> Any:
    """Return the clusters of a side with the largest losses or worst scores, without perfect ones."""
    ordered = asked.order_by is not None
    limit = asked.worst if n_lossy is None or ordered else min(asked.worst, n_lossy)
    table = list_clusters(ev.kept, ev.figures, side, asked.order_by, limit)
    by = asked.order_by or LOSS_OF_SIDE[side]
    metric = next((metric for metric in ev.metrics if ordered and metric.name == by), None)
    best = np.inf if metric is None else {"higher": metric.high, "lower": metric.low}.get(metric.best, np.inf)
    values = to_numpy(table[by])
    return table.filter(from_numpy(values > 0 if metric is None else values != best))


def _clusters_of(
    ev: EvaluationData, side: str, table: Any, open_one: Any, asked: Asked, n_lossy: int | None
) -> Iterator[Block]:
    kind, other = ("predicted", "true") if side == "pred" else ("true", "predicted")
    lost, total = LOSS_OF_SIDE[side], ev.losses.of_all(side)
    what = lost.removesuffix("_loss")
    if not table.num_rows:
        yield Prose([f"Every {kind} cluster has the best {asked.order_by or what}."])
        return
    how = f"that cost most {what}" if asked.order_by is None else f"of worst {asked.order_by}"
    rows, n = table.to_pylist(), ev.summary[side]["clusters"]
    share = percent(sum(row[lost] for row in rows) / total if total else 0.0)
    title = f"{kind.capitalize()} clusters {how}"
    part = f"{count(len(rows))} of {count(n)}, with {share} of the loss"
    yield Heading(f"{title}: {part}", id=f"clusters-{side}", side=side)
    if n_lossy is not None:
        yield Only("page", [Prose([f"{count(n_lossy)} of {counted(n, 'cluster')} cost anything."], "note")])
    opened = [_opened(ev, row, side, open_one, f"{other} cluster") for row in rows] if asked.page else ()
    yield Clusters(title.lower(), opened, cluster_grid(ev, side, rows))


def cluster_grid(ev: EvaluationData, side: str, rows: Sequence[Mapping[str, Any]]) -> Grid:
    """Return a table of a side's clusters: label, outcome, items, parts, scores, and share of the loss."""
    lost, total, outcome = LOSS_OF_SIDE[side], ev.losses.of_all(side), "outcome" in rows[0]
    shown = [
        {**row, "cluster": ALONE if row["cluster"] is None else row["cluster"],
         "share": row[lost] / total if total else None}
        for row in rows
    ]  # fmt: skip
    columns = [
        ("cluster", "cluster", "name"),
        *[("outcome", "outcome", "text")] * outcome,
        ("items", "n_items", "count"),
        *[("weight", "weight", "amount")] * ev.contingency.weighted,
        (f"{'true' if side == 'pred' else 'predicted'} clusters", "n_parts", "count", 4),
        *((name, name, "score", 3) for name in chart_data.drawn_scores(ev) if name in rows[0]),
        ("of loss", "share", "percent"),
    ]
    return Grid.of(shown, columns, 1 + outcome)


#: Name of the clusters of items that a policy makes singletons.
ALONE = "(alone by policy)"


def _opened(ev: EvaluationData, row: Mapping[str, Any], side: str, open_one: Any, of: str) -> Opened:
    """Return a cluster with its costs, to be opened to its members."""
    loss, total, members = LOSS_OF_SIDE[side], ev.losses.of_all(side), list[Block]()
    share = row[loss] / total if total else None
    if open_one is not None and row["cluster"] is not None:
        with suppress(NotKeptError, MetricError):
            members = members_blocks(open_one(side, row["code"], row["cluster"]))
    text = counted(row["n_items"], "item")
    if row["n_parts"] is not None:
        text += f" {'of' if side == 'pred' else 'in'} {counted(row['n_parts'], of)}"
    names = {"precision": "precision of its items", "recall": "recall", "f1": "F1"}
    scores = [f"{name} {score_text(row[key])}" for key, name in names.items() if row.get(key) is not None]
    told = f"{percent(row[loss])} of the {loss.removesuffix('_loss')} of all items is lost here."
    if scores:
        listed = ", ".join(scores)
        told += f" {listed[0].upper()}{listed[1:]}."
    return Opened(
        anchor(side, row["cluster"]), row["cluster"], [row["outcome"]] if "outcome" in row else [], text,
        [] if share is None else [("", percent(share), f"of the loss of {score_text(total)}")],
        share, [Prose([told], "small"), *members],
    )  # fmt: skip


def members_blocks(opened: Any) -> list[Block]:
    """Return the members of an opened cluster as blocks, grouped by the clusters of the other side.

    Values of an attribute that differ from the most common one are marked, unless most members differ.
    """
    columns, weighted, alone = opened["columns"], opened["weighted"], opened["one_sided"]
    members = [member for part in (*opened["parts"], alone) for member in part["members"]]
    flags = [differing([member["attributes"][name] for member in members]) for name in columns]
    known = [sum(member["attributes"][name] is not None for member in members) for name in columns]
    odd = [own if 2 * sum(own) < n else [False] * len(members) for own, n in zip(flags, known, strict=True)]
    rows = iter([
        (
            [member["item"], *[member["weight"]] * weighted, *(member["attributes"][name] for name in columns)],
            [False, *[False] * weighted, *(own[k] for own in odd)],
        )
        for k, member in enumerate(members)
    ])  # fmt: skip
    other = next(side for side in opened.kinds if side != opened["side"])
    kind, groups = opened.kinds[other].capitalize(), []
    for part in opened["parts"]:
        of, n, whole = part[f"{other}_cluster"], part["n_items"], part.get("n_items_of_cluster")
        text = f"{counted(n, 'item')} here"
        if whole is not None:
            text = f"{count(n)} of its {counted(whole, 'item')} here"
        nameless = ALONE if of is None else "(none)" if of == [] else ""
        own = [next(rows) for _ in part["members"]]
        groups.append(Group(f"{kind} cluster {nameless}".rstrip(), None if nameless else of, text, own, n))
    if alone["n_items"]:
        text = f"{counted(alone['n_items'], 'item')}, by policy {alone['policy']}"
        groups.append(Group("Not on the other side", None, text, list(rows), alone["n_items"]))
    header = ["item", *["weight"] * weighted, *columns]
    forms = ["id", *["amount"] * weighted, *["name"] * len(columns)]
    left_out = opened.n_listed - len(opened["parts"])
    more = f"{counted(left_out, f'more {kind.lower()} cluster')} not shown."
    return [Members(header, forms, groups), *([Prose([more], "note")] if left_out > 0 else [])]


def _source_pairs(ev: EvaluationData, asked: Asked) -> Iterator[Block]:
    """Yield the quality of links within and between sources; of many pairs of sources, those with most wrong links."""
    columns = [
        ("sources", "pair", "text"),
        ("right", "pair_tp", "amount"),
        ("wrongly joined", "pair_fp", "amount"),
        ("wrongly separated", "pair_fn", "amount"),
        *((name, f"pair_{name}", "score") for name in ("precision", "recall", "f1")),
    ]
    for name, rows in asked.found.get("source_pairs", {}).items():
        title = f"Links within and across {name}, in pairs of items"
        if (n := len(rows)) > FEW:
            rows = sorted(rows, key=lambda row: -(row["pair_fp"] + row["pair_fn"]))[:FIRST]
            title += f": the {FIRST} of {count(n)} pairs of sources with most wrong ones"
        yield Heading(title)
        yield Grid.of(rows, columns, about=title)


def _repairs(ev: EvaluationData, asked: Asked) -> Iterator[Block]:
    """Yield the clusters to repair first, and F1 after each repair; nothing if undefined or unknown."""
    rows = asked.found.get("repairs")
    if rows is None and asked.page and asked.worst:
        rows = _repairs_at_hand(ev, asked.worst)
    elif rows == []:
        yield Prose(["No repair would gain anything."])
    if not rows:
        return
    if asked.page:
        yield Prose([
            "Repairing these clusters one by one to match the truth would gain most. Splitting divides a "
            "predicted cluster by the truth; gathering brings the items of a true cluster together."
        ])  # fmt: skip
    n, start, end = len(rows), rows[0]["running"] - rows[0]["gain"], rows[-1]["running"]
    gain = f"F1 +{score_text(end - start)}, from {score_text(start)} to {score_text(end)}"
    yield Heading(f"Repair {f'these {count(n)}' if n > 1 else 'this one'}: {gain}")
    rows, charts = rows if n <= FEW else rows[: LISTED if asked.page else FIRST], list[Block]()
    if asked.page:
        said = "Line chart: F1 after each repair, with the values of the table below"
        charts.append(Chart("repairs", "repairs", (rows, start), said, "F1 after each repair"))
    yield Beside([charts, [repairs_grid(ev, rows)]], "two aside")
    if len(rows) < n:
        yield Prose([f"… {count(n - len(rows))} more; --out DIR writes all, as repairs.parquet"])


def _repairs_at_hand(ev: EvaluationData, most: int) -> list[dict[str, Any]]:
    """Return the first repairs; none if undefined or if computing them would take long."""
    found = None
    if ev.contingency.has_cells and not ev.contingency.overlapping:
        with suppress(FastBCubedError):  # no labels, or too low a memory limit
            found = repairs_at_hand(ev.kept, ev.losses.of_all, most)
    return [] if found is None else found.to_pylist()


def repairs_grid(ev: EvaluationData, rows: Sequence[Mapping[str, Any]]) -> Grid:
    """Return a table of repairs with the gain in F1 of each alone, and F1 after this and all previous repairs."""
    kinds = {"split": "split predicted", "gather": "gather true"}
    shown = [
        {**row, "repair": kinds[row["kind"]], "cluster": ALONE if row["cluster"] is None else row["cluster"]}
        for row in rows
    ]
    columns: list[tuple[Any, ...]] = [
        ("#", "rank", "count", ON_PAGE),
        ("repair", "repair", "text"),
        ("cluster", "cluster", "name"),
        ("items", "n_items", "count"),
        *[("weight", "weight", "amount")] * ev.contingency.weighted,
        ("alone adds to F1", "gain", "score"),
        ("F1 then", "running", "score"),
    ]
    return Grid.of(shown, columns, 3, about="Repairs")


def _origin(ev: EvaluationData, asked: Asked) -> Iterator[Block]:
    if not asked.page:
        return
    again = command(ev.names, ev.manifest.get("arguments") or {})
    made = origin_of(ev.manifest, asked.requested(again))
    if not any(isinstance(block, Code) for block in made):
        text = "The result was computed from data in memory, so no command can reproduce it."
        yield Prose([text], "note")
    yield from made
