"""The document of a sweep: its text form and the sections of its report."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from fastbcubed.render.document import (
    Beside,
    Block,
    Chart,
    Code,
    Document,
    Facts,
    Grid,
    Heading,
    Notices,
    Only,
    Prose,
    Section,
)
from fastbcubed.render.number_formats import count, counted, label, with_interval
from fastbcubed.results.evaluation_text import coverage, definition
from fastbcubed.results.intervals import Interval
from fastbcubed.results.page import IN_BRIEF, MESSAGES, Asked
from fastbcubed.results.table import Table
from fastbcubed.sweep_links.curve import COUNTED, Best, shown
from fastbcubed.sweep_links.curve_chart import curve_content, drawn
from fastbcubed.sweep_links.recall_stages import Stages
from fastbcubed.sweep_links.threshold_choice import Leading


def document(sweep: Any, leading: Leading, asked: Asked = IN_BRIEF, notes: Sequence[str] = ()) -> Document:
    """Return the document: links, best threshold, curve, merges and slices; `notes` are sentences on the links."""
    truth, links = (sweep.at_best.names[side] for side in ("truth", "prediction")) if asked.page else ("", "")
    head: list[Block] = [Only("text", [Beside([[Prose([what_was_swept(sweep)])], [Prose(notes)]])])]
    if asked.page:
        scored = counted(sweep.coverage.n_scored(sweep.policies), "item")
        head.append(Only("page", [Facts([("Truth", truth), ("Links", links), ("Scored", scored)], "sides")]))
    title = asked.title or f"Thresholds for {links}"
    return Document("sweep", title, head, _sections(sweep, leading, asked))


def _sections(sweep: Any, leading: Leading, asked: Asked) -> Iterator[Section]:
    best, chosen, _, stages = leading
    blocks: list[Block] = []
    if best is not None:
        more = _how_certain(sweep, best) if chosen is None else [chosen.sentence]
        blocks.append(Prose([best.sentence, best.range, *more], "lead"))
    warnings = [
        each for each in sweep.warnings if each["code"] != "made-of-links"
    ]  # this note is on the best F1
    blocks.append(Notices.of(warnings[: MESSAGES if asked.page else None], n=len(warnings)))
    if best is not None:
        blocks += _curve(sweep, best, asked)
    yield Section("best", "Best threshold", blocks)
    if asked.page and best is not None:
        yield from _along(sweep, best)
    for k, (title, said, grid) in enumerate(tables(sweep, leading, asked) if asked != IN_BRIEF else ()):
        heading = Heading(said or title) if grid.rows else Prose([f"{said}."])
        sentence = Prose([f"{said}."] if said else [])
        table = replace(grid, about=title)
        yield Section(f"table-{k}", title, [Only("text", [heading]), Only("page", [sentence]), table])
    if stages is not None and asked != IN_BRIEF:
        yield Section("stages", WHERE_LOST, list(_stages(stages)))
    if asked.page:
        yield Section("origin", "How it was made", [Prose([
            what_was_swept(sweep), *coverage(sweep.at_best), *definition(sweep.at_best),
            *(f"{name} is not available at every threshold: {reason}." for name, reason in sweep.not_computed.items()),
        ], "note")])  # fmt: skip


def interval_at(sweep: Any, best: Best) -> Interval | None:
    """Return the interval of the best score, if the evaluation at the best F1 has it."""
    ev = sweep.at_best
    if best.score not in ev.overall or best.threshold != sweep._curve.thresholds[sweep._best_f1]:
        return None
    found: Interval | None = ev.standard_errors.intervals_at_hand().get(best.score)
    return found


def _how_certain(sweep: Any, best: Best) -> list[str]:
    """Return a sentence on the interval of the best score, if it is known; else nothing."""
    ends = interval_at(sweep, best)
    if ends is None:
        return []
    known = f"With its 95 % interval, {best.score} there is {with_interval(best.value, *ends)}"
    return [
        f"{known}, which ignores that the threshold was chosen on these data; Sweep.chosen and --draws "
        "account for it."
    ]


def _curve(sweep: Any, best: Best, asked: Asked) -> Iterator[Block]:
    """Yield the scores by threshold, as charts on a page or as a chart of letters in text."""
    if not asked.page:
        yield Only("text", [Code("\n".join(drawn(sweep, best)))])
        return
    curve = curve_content(sweep, best)
    begins = f" The axis begins at {curve['axis'][0]:g}." if curve["axis"][0] else ""
    texts = {
        "thresholds": ("Scores by threshold", f"A strong threshold links few items.{begins}"),
        "precision_recall": (
            "Precision by recall",
            f"The curve runs from threshold to threshold; the best one is bold.{begins}",
        ),
    }
    there = {"thresholds": curve["scores"], "precision_recall": curve["named"]}
    charts = [
        [Chart(name, name, (curve,), f"{title}. {text}", title, text)]
        for name, (title, text) in texts.items()
        if there[name]
    ]
    if charts:
        yield Beside(charts)


#: Columns of the stages of recall: header, name of the value, form.
OF_STAGES = (
    ("stage", "stage", "text"), ("judged right", "judged", "text"), ("links", "links", "count"),
    ("recall", "recall", "score"), ("lost", "recall_lost", "delta"),
    ("pair recall", "pair_recall", "score"), ("lost", "pair_recall_lost", "delta"),
)  # fmt: skip
WHERE_LOST = "Where recall is lost"


def _stages(stages: Stages) -> Iterator[Block]:
    """Yield the blocks on lost recall: where most is lost, the loss of each stage, and notes on the links."""
    yield Only("text", [Heading(WHERE_LOST)])
    judged = ("every link", "links used", "none")
    rows = [{**row, "judged": how} for row, how in zip(stages.table().to_pylist(), judged, strict=True)]
    known = [column for column in OF_STAGES if column[1] in rows[0]]
    yield Prose([stages.sentence])
    yield Grid.of(rows, known, 2, about=WHERE_LOST)
    if stages.notes:
        yield Notices.of(stages.notes)


def _along(sweep: Any, best: Best) -> Iterator[Section]:
    points = sorted(sweep._point(row["threshold"]) for row in curve_content(sweep, best)["named"])
    rows = [{"threshold": float(sweep._curve.thresholds[at]), **sweep._curve.at(at, *SHOWN)} for at in points]
    if rows:
        grid = replace(_figures(rows, threshold=sweep.shown), about="Along the curve")
        along = Prose(["The thresholds marked on the curve, and the best one."])
        yield Section("along", "Along the curve", [along, grid])


def what_was_swept(sweep: Any) -> str:
    """Return a sentence on the links, their items and the thresholds."""
    tree = sweep.tree
    links = f"{counted(len(sweep.links), 'link')} over {counted(tree.n_items, 'item')}"
    if not tree.n_levels:
        return f"Sweep of {links}, none of which joins anything."
    first, last = (sweep.shown(float(sweep._level_thresholds[k])) for k in (0, -1))
    scores = "score" if tree.n_levels == 1 else "scores"
    reach = f"at {first}" if tree.n_levels == 1 else f"from {first} to {last}"
    return f"Sweep of {links}: clusters change at {count(tree.n_levels)} {scores} of links, {reach}."


#: Columns of the costliest merges: header, name of the value, form, rank.
OF_MERGES: tuple[tuple[Any, ...], ...] = (
    ("threshold", "threshold", "text"),
    ("left item", "left", "name"),
    ("right item", "right", "name"),
    ("cluster sizes", "sizes", "text", 2),
    ("F1 change", "f1_change", "delta"),
    ("P change", "precision_change", "delta", 1),
    ("R change", "recall_change", "delta", 1),
)


def _merges(rows: Sequence[Mapping[str, Any]], threshold: Callable[[float], str]) -> Grid:
    """Return the table of merges: both items of the link that causes each, sizes of the clusters, score changes."""
    told = []
    for row in rows:
        several = f" + … = {count(row['n_items'])}" if row["n_clusters"] > 2 else ""
        sizes = f"{count(row['n_left'])} + {count(row['n_right'])}{several}"
        told.append({**row, "threshold": threshold(row["threshold"]), "sizes": sizes})
    return Grid.of(told, OF_MERGES, 3)


def _figures(
    rows: Sequence[Mapping[str, Any]], names: Sequence[str] = (), threshold: Callable[[float], str] = shown
) -> Grid:
    """Return the table of thresholds with their scores, named by columns such as those of slices."""
    columns: list[tuple[Any, ...]] = [(name, name, "name") for name in names]
    for name in rows[0] if rows else ():
        form = "count" if name in COUNTED or name.startswith("n_") else "score"
        form = "text" if name == "threshold" else "amount" if name == "weight" else form
        if name not in names:
            header = "F1 lost" if name == "cost" else name.removeprefix("n_").replace("_", " ")
            columns.append((header, name, form, 0 if name in FIRST else 1 if name in SHOWN else 2))
    at = [row["threshold"] for row in rows]
    told = [
        {**row, "threshold": "-" if each is None else threshold(each)}
        for row, each in zip(rows, at, strict=True)
    ]
    return Grid.of(told, columns, max(1, len(names))) if rows else Grid([], [])


def tables(sweep: Any, leading: Leading, asked: Asked) -> Iterator[tuple[str, str, Grid]]:
    """Yield title, description and table of the costliest merges, the requested thresholds, and each slicing."""
    best, n_merges = leading.best, leading.merges
    if best is not None and n_merges:
        said = f"Costliest merges at threshold {best.shown}; a stronger threshold undoes them"
        rows = _costly(sweep, n_merges, best.threshold)
        if not rows:
            said = f"No merge at threshold {best.shown} lowers F1; a weaker threshold makes these merges"
            rows = _costly(sweep, n_merges, None)
        said = said if rows else "No merge lowers F1"
        yield "Costliest merges", said, _merges(rows, partial(sweep.shown, stronger=True))
    if sweep.asked:
        yield "At the requested thresholds", "", _figures(sweep.points().to_pylist())
    for name, table in sweep.sliced.items():
        yield f"By {name}", *_slicing(sweep, name, table, asked)


def _slicing(sweep: Any, name: str, table: Table, asked: Asked) -> tuple[str, Grid]:
    """Return a description and the table of the best thresholds of slices.

    Slices that lose most by using the common threshold come first; if there are many, only these are shown.
    """
    n = table.num_rows
    said = f"By {label(name)}: best threshold per slice, and F1 lost by using one for all"
    if n > asked.whole:
        said = (
            f"By {label(name)}: the {count(asked.slices)} of {count(n)} slices that lose most F1 by sharing "
            "one threshold"
        )
        table = table.slice(0, asked.slices)
    columns = table.column_names
    names = columns[: columns.index("n_items")]
    unweighted = table.drop_columns([] if sweep._curve.weighted else ["weight"])
    return said, _figures(unweighted.to_pylist(), names, partial(_of_slice, sweep))


def _of_slice(sweep: Any, threshold: float) -> str:
    """Return the text of a slice's best threshold; an infinite one uses no link, unless links have infinite scores."""
    is_none = not math.isfinite(threshold) and threshold not in sweep._level_thresholds
    return "no link" if is_none else str(sweep.shown(threshold))


def _costly(sweep: Any, limit: int, threshold: float | None) -> list[dict[str, Any]]:
    """Return the merges that lower F1 most, of those that a threshold uses or, if it is None, of all."""
    rows = sweep.merges(limit=limit, threshold=threshold).to_pylist()
    return [row for row in rows if row["f1_change"] < 0]


#: The figures that lists of thresholds show, and the columns for which every table has room.
SHOWN = ("clusters", "largest", "precision", "recall", "f1")
FIRST = ("threshold", "n_items", "f1", "cost")
