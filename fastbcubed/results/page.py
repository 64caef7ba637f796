"""The page of a result as plain data: its options, sections, charts and tables."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa

from fastbcubed._version import __version__, install
from fastbcubed.cells.cell_parts import NoCells
from fastbcubed.cells.contingency import SIDES, Contingency
from fastbcubed.errors import (
    EvaluationWarning,
    FastBCubedError,
    MetricError,
    MissingPackageError,
    NotKeptError,
    OptionError,
    arg,
)
from fastbcubed.inputs.arrays import table_of, to_numpy
from fastbcubed.inputs.locations import at_home
from fastbcubed.metrics.bcubed import LOSS_OF_SIDE, LOSSES, distinct
from fastbcubed.render.document import (
    Beside,
    Block,
    Chart,
    Document,
    Facts,
    Grid,
    Heading,
    Notice,
    Notices,
    Prose,
    Section,
)
from fastbcubed.render.html import Page, Report
from fastbcubed.render.json import few_entries, plain, shortened
from fastbcubed.render.number_formats import count, counted, named, percent, score_text
from fastbcubed.results.clusters import list_clusters
from fastbcubed.results.concentration import POINTS
from fastbcubed.results.evaluation_text import (
    FEW_CELLS,
    HEADLINE,
    coverage,
    definition,
    differing,
    outcomes,
    verdict,
)
from fastbcubed.results.figures import coverage_for_json
from fastbcubed.results.gates import Gate
from fastbcubed.results.intervals import interval
from fastbcubed.results.members import OpenOne, chosen_columns, opener
from fastbcubed.results.repairs import repairs_at_hand
from fastbcubed.results.slices import OURS, SliceKey, check_key, name_columns, size_names, slice_name
from fastbcubed.results.standard_errors import FEW
from fastbcubed.results.table import LOSS, listed
from fastbcubed.results.warnings import if_alone
from fastbcubed.runtime.arguments import a_text, as_several, path_of, true_or_false, whole_number
from fastbcubed.runtime.output_files import require_writable

if TYPE_CHECKING:
    from fastbcubed.results.evaluation import Evaluation


def page_of(
    kind: str,
    title: str,
    facts: Mapping[str, str],
    sections: Sequence[Mapping[str, Any]],
    warnings: Sequence[Mapping[str, Any]] = (),
) -> Page:
    """Return a page: facts below its title, and sections, the first of which has the warnings."""
    content = {
        **head(kind, title),
        "facts": [{"name": name, "message": text} for name, text in facts.items()],
        "warnings": {"n": len(warnings), "rows": list(warnings)[:MESSAGES]},
        "sections": [each for each in sections if each],
    }
    return Page(shortened(content), document_of_sections)


def section(
    title: str,
    sentences: Iterable[str] = (),
    *,
    charts: Sequence[Mapping[str, Any]] = (),
    grids: Iterable[Grid] = (),
    notes: Iterable[str] = (),
) -> dict[str, Any]:
    """Return a section: sentences, charts as `chart` returns them, tables, and notes below them."""
    return {
        "title": title, "sentences": list(sentences), "charts": list(charts), "lines": list(notes),
        "grids": [{"header": grid.header, "names": grid.names, "rows": [{"cells": row} for row in grid.rows]}
                  for grid in (each.texts for each in grids) if grid.rows],
    }  # fmt: skip


def chart(draws: str, title: str, text: str, data: Mapping[str, Any]) -> dict[str, Any]:
    """Return a chart as data; `draws` names its drawing function in `plots`."""
    return {"draws": draws, "title": title, "text": text, "data": data}


def document_of_sections(content: Content) -> Document:
    """Return the document of such a page, from its content."""
    sections = []
    for k, each in enumerate(content["sections"]):
        blocks: list[Block] = [Prose(each["sentences"], "" if k else "lead")]
        charts = []
        for j, one in enumerate(each["charts"]):
            title, text = one["title"], one["text"]
            charts.append([Chart(f"s{k}-{j}", one["draws"], (one["data"],), f"{title}. {text}", title, text)])
        blocks += [Beside(charts)] if charts else []
        blocks += [grid_block(grid, each["title"]) for grid in each["grids"]]
        blocks += [Prose(each["lines"], "note"), *(() if k else notices(content))]
        sections.append(Section(f"s{k + 1}", each["title"], blocks))
    return Document(
        [Facts([(fact["name"], fact["message"]) for fact in content["facts"]], "sides")], sections
    )


def grid_block(grid: Content, about: str) -> Grid:
    """Return a table of texts that content has, the definitions in it to the left."""
    header, names = grid["header"], grid["names"]
    forms = ["text" if k < names or name == "definition" else "figure" for k, name in enumerate(header)]
    return Grid(header, [row["cells"] for row in grid["rows"]], names, forms, about=about)


def about_slicings(slices: Content, text: str) -> Prose:
    """Return the note above all slicings, which also says how many are shown if not all are."""
    shown, n = len(slices["rows"]), slices["n"]
    return Prose([f"{text} {shown} of {n} slicings are shown." if n > shown else text], "note")


def slicing_head(slicing: Content, things: str) -> Iterator[Block]:
    """Yield the heading of a slicing, and how many of its `things` are shown if not all are."""
    yield Heading(f"By {named(slicing['names'])}")
    shown, n = len(slicing["rows"]), slicing["n"]
    if shown < n:
        yield Prose([f"{shown} of {count(n)} {things}."], "note")


def notices(content: Content) -> list[Block]:
    """Return the gates and the warnings of any result."""
    gates = [
        Notice("passed" if gate["passed"] else "failed", gate["text"].partition(": ")[2])
        for gate in content.get("gates", {"rows": ()})["rows"]
    ]
    warnings = content["warnings"]
    return [Notices(gates, "Gates"), Notices.of(warnings["rows"], n=warnings["n"])]


def size_rows(ev: Evaluation) -> list[dict[str, Any]]:
    """Return clusters and items by the size of the cluster, in powers of two, of each side.

    Raises
    ------
    NotKeptError
        If the cells were not kept.
    """
    if not isinstance(ev.contingency, Contingency):
        raise NotKeptError(
            'the cells were not kept; evaluate or save with keep="cells" to have cluster sizes'
        )
    rows = []
    for side in SIDES:
        found = ev.losses.size_classes(side)
        rows += [
            {"side": side, "size": name, "n_clusters": n, "share_clusters": n / found.n_clusters.sum(),
             "n_items": k, "share_items": k / found.n_items.sum()}
            for name, n, k in zip(
                size_names(found.smallest).to_pylist(), found.n_clusters.tolist(), found.n_items.tolist(), strict=False
            )
        ]  # fmt: skip
    return rows


def loss_curves_content(ev: Evaluation) -> dict[str, Any] | None:
    """Return how the loss of either side is spread over its clusters; None where that takes too long or is unknown."""
    cells = ev.contingency
    if not isinstance(cells, Contingency) or (cells.overlapping and cells.n_cells > FEW_CELLS):
        return None
    try:
        return lorenz_curves(ev)
    except OptionError:  # there is no room
        return None


def lorenz_curves(ev: Evaluation) -> dict[str, Any]:
    """Return the curves of the loss of each side, and their totals."""
    return {
        side: {**ev.concentration[side], "curve": ev.lorenz(side, limit=POINTS).to_pylist()} for side in SIDES
    }


def extremes(ev: Evaluation) -> dict[str, dict[str, float]]:
    """Return precision, recall and F1 if all items were alone in the prediction, and if all were in one cluster.

    Figures that the cells lack are left out: where clusters overlap, prediction-only items count, or nothing was kept.
    """
    cells = ev.contingency
    if not isinstance(cells, Contingency) or cells.overlapping or cells.outside:
        return {}
    recall = ev.losses.recall_alone()
    found = {} if recall is None else {"alone": (1.0, recall)}
    # in one cluster, the precision is the mean over items of their true cluster's share of all items
    true, total = ev.losses.size_classes("true"), cells.total_weight
    everything = true.n_items.sum() if cells.weighting == "outer" else total
    found["one"] = (float(true.squares.sum() / total / everything), 1.0)
    return {
        name: {"precision": p, "recall": r, "f1": 2 * p * r / (p + r) if p + r else 0.0}
        for name, (p, r) in found.items()
    }


#: Attributes shown next to members.
MOST_COLUMNS = 12
#: Figures of a cluster in a list.
FIGURES = ("cluster", "n_items", "weight", "n_parts", "outcome", "precision_loss", "recall_loss")


def clusters_content(ev: Evaluation, asked: Asked) -> dict[str, Any] | None:
    """Return the clusters of either side that cost most; None if the clusters were not kept."""
    if not ev.has_clusters or not asked.worst:
        return None
    tables = {}
    for side in SIDES[::-1]:
        n_lossy = _n_lossy(ev, side)
        limit = asked.worst if n_lossy is None else min(asked.worst, n_lossy)
        table = list_clusters(ev.kept, ev.figures, side, None, limit)
        tables[side] = table.filter(table[LOSS_OF_SIDE[side]].to_numpy() > 0)
    codes = {side: to_numpy(table["code"]) for side, table in tables.items()}
    open_one = None
    if ev.has_items:
        open_one = opener(ev.kept, ev.coverage, codes, asked.columns[:MOST_COLUMNS], asked.members)
    return {side: _side(ev, side, table, open_one) for side, table in tables.items()}


def _side(ev: Evaluation, side: str, table: Any, open_one: OpenOne | None) -> dict[str, Any]:
    """Return the clusters of a side that cost most, and how many there are."""
    lost, total = LOSS_OF_SIDE[side], ev.losses.of_all(side)
    rows = []
    for row in table.to_pylist():
        own = {name: row[name] for name in FIGURES if name in row}
        own |= {name: row[name] for name in ("precision", "recall", "f1") if name in row}
        own["share_of_loss"] = row[lost] / total if total else None
        opened = None  # of one that has no name, or whose items were not kept
        if open_one is not None and row["cluster"] is not None:
            with suppress(NotKeptError, MetricError):
                opened = opened_content(open_one(side, row["code"], row["cluster"]))
        rows.append({"id": anchor(side, row["cluster"]), **own, "opened": opened})
    return {
        "loss": lost, "n": ev.summary[side]["clusters"], "n_lossy": _n_lossy(ev, side),
        "share_shown": sum(row[lost] for row in rows) / total if total else None,
        "opened": ev.has_items, "rows": rows,
    }  # fmt: skip


def anchor(side: str, cluster: Any) -> str:
    """Return where a cluster is on a page, of any result that has one of this name.

    Examples
    --------
    >>> anchor("pred", 7) == anchor("pred", 7), anchor("pred", 7) == anchor("pred", "7")
    (True, False)
    """
    text = json.dumps(plain(cluster), sort_keys=True, ensure_ascii=False)
    return f"{side}-{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}"


def _n_lossy(ev: Evaluation, side: str) -> int | None:
    try:
        return int(ev.concentration[side]["n_lossy"])
    except (OptionError, NotKeptError, AttributeError):
        return None


def opened_content(found: Any) -> dict[str, Any]:
    """Return the content of an opened cluster, with the attributes that differ from the commonest value.

    None do unless most agree, as nothing is odd among many.
    """
    figures = dict(found)
    parts = [*figures["parts"], figures["one_sided"]]
    members = [member for part in parts for member in part["members"]]
    marked = {}
    for name in figures["columns"]:
        values = [member["attributes"][name] for member in members]
        flags = differing(values)
        if 2 * sum(flags) < sum(value is not None for value in values):
            marked[name] = flags
    for k, member in enumerate(members):
        member["differs"] = [name for name, flags in marked.items() if flags[k]]
    other = next(side for side in found.kinds if side != found["side"])
    return figures | {
        "n_listed": found.n_listed,
        "other": other,
        "other_kind": found.kinds[other].capitalize(),
    }


#: Arguments that may be data; and those that the command line has under another name.
DATA = ("attributes", "table", "weight")
FLAGS = {"metrics": "metric", "slices": "slice"}
#: What sides are called that are in no file.
UNNAMED = {"truth": "the truth", "prediction": "the prediction"}


def definitions_content(ev: Evaluation) -> dict[str, Any]:
    """Return the scores with their formulas, the average, and the policies on unmatched items."""
    names = distinct(ev.overall)
    scores = [
        {"score": m.name, "definition": m.definition, "source": m.source, "best": m.best,
         "value": ev.overall[m.name]}
        for m in ev.metrics
        if m.name in names
    ]  # fmt: skip
    not_computed = [{"score": name, "message": reason} for name, reason in list(ev.not_computed.items())[:50]]
    return {
        "rows": scores, "n": len(scores), "text": definition(ev), "lines": coverage(ev), "policies": ev.definition,
        "otherwise": {"lines": list(_otherwise(ev))}, "not_computed": not_computed,
    }  # fmt: skip


def _otherwise(ev: Evaluation) -> Iterator[str]:
    """Yield the scores under other policies, where known."""
    found = ev.coverage
    if not {"precision", "recall"} <= set(ev.overall):  # they would take all cells
        return
    if found.n_truth_only and ev.policies.truth == "drop" and ev.figures.change_if_alone is not None:
        figures = if_alone(ev)
        if figures["f1_if_alone"] == figures["f1_if_alone"]:
            yield (
                f'With unmatched={{"truth": "singleton"}}, the {counted(found.n_truth_only, "item")} that only the '
                f"truth has would be alone in the prediction: {'' if figures['exact'] else 'about '}precision "
                f"{score_text(figures['precision_if_alone'])}, recall {score_text(figures['recall_if_alone'])}, F1 "
                f"{score_text(figures['f1_if_alone'])}."
            )
    bounds = ev.bounds
    if bounds is not None and bounds.precision_lower == bounds.precision_lower:
        yield (
            f"Were the {counted(found.n_prediction_only, 'item')} that only the prediction has labelled, precision "
            f"would be between {score_text(bounds.precision_lower)} and {score_text(bounds.precision_upper)}."
        )
    if not (found.n_truth_only or found.n_prediction_only):
        yield "Both sides have the same items, so that no policy for unmatched items changes a figure."


def believe(ev: Evaluation) -> str:
    """Return in a sentence whether to believe the scores: coverage, independent groups, warnings."""
    found = ev.coverage
    if found.n_truth_only or found.n_prediction_only:
        shares = [
            percent(found.n_common / max(1, found.n_common + only))
            for only in (found.n_truth_only, found.n_prediction_only)
        ]
        said = [f"{shares[0]} of the truth's items and {shares[1]} of the prediction's are on both sides"]
    else:
        said = ["Truth and prediction have the same items"]
    known = ev.standard_errors.at_hand()
    if known is not None:
        said.append(
            f"the {count(known.units.n)} groups that share no cluster carry the information of "
            f"{count(round(known.units.effective))} of equal weight"
            if known.units.n > 1
            else "all items are connected by shared clusters, so no standard error is known"
        )
    levels = [each["level"] for each in ev.warnings]
    warned, noted = levels.count("warning"), levels.count("note")
    told = [f"{n} {kind}{'s' * (n != 1)}" for n, kind in ((warned, "warning"), (noted, "note")) if n]
    said.append(
        f"there {'is' if (warned or noted) == 1 else 'are'} {' and '.join(told)}"
        if told
        else "nothing to warn of"
    )
    return "; ".join(said) + "."


def manifest_content(ev: Evaluation) -> dict[str, Any]:
    """Return the manifest, and the command that makes the result again where it was made of files."""
    manifest = few_entries(without_data(ev.manifest))
    return {"manifest": manifest, "command": command(ev.names, ev.manifest.get("arguments") or {})}


def without_data(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return a manifest without data that were given as arguments: a page shows attributes only if they are named.

    Examples
    --------
    >>> without_data({"arguments": {"weight": "w", "attributes": {"a": [1]}, "slices": [{"few": [1, 2]}]}})
    {'arguments': {'weight': 'w', 'attributes': '(data)', 'slices': [['few']]}}
    """
    given = dict(manifest.get("arguments") or {})
    for name in DATA:
        if name in given and not isinstance(given[name], str):
            given[name] = "(data)"
    if isinstance(given.get("slices"), list):
        given["slices"] = [list(each) if isinstance(each, Mapping) else each for each in given["slices"]]
    return {**manifest, "arguments": given}


def command(
    names: Mapping[str, Any],
    arguments: Mapping[str, Any],
    verb: str = "evaluate",
    unnamed: Mapping[str, str] = UNNAMED,
) -> str | None:
    """Return the command that evaluates the same files again; None where data were given that are in no file.

    `unnamed` is the name of sides that are in no file.

    Examples
    --------
    >>> command({"truth": "a b.csv", "prediction": "p.csv"}, {"slices": ["x", ["x", "y"]], "overlapping": True})
    "fastbcubed evaluate 'a b.csv' p.csv --slice x --slice x,y --overlapping"
    >>> command({"truth": "the truth", "prediction": "the prediction"}, {})
    """
    told = list(arguments.items())
    if any(names.get(side) in (None, data) for side, data in unnamed.items()):
        return None
    if any(_is_data(value) for name, value in told if name in (*DATA, "slices")):
        return None
    words = ["fastbcubed", verb, *(str(names[side]) for side in unnamed)]
    for name, value in told:
        words += _flags(FLAGS.get(name, name), value)
    return shlex.join(words)


def _flags(name: str, value: Any) -> list[str]:
    flag = f"--{name.replace('_', '-')}"
    if isinstance(value, bool):
        return [flag] if value else []
    if name == "slice" and isinstance(value, list):
        each = [",".join(map(str, one)) if isinstance(one, list) else str(one) for one in value]
        return [word for one in each for word in (flag, one)]
    if isinstance(value, Mapping):
        return [flag, ",".join(f"{key}={one}" for key, one in value.items())]
    if isinstance(value, list):
        return [flag, ",".join(map(str, value))]
    return [] if value is None else [flag, str(value)]


def _is_data(value: Any) -> bool:
    """Return whether an argument was data, of which a manifest has only the type."""
    if isinstance(value, Mapping):
        return True
    if isinstance(value, list):
        return any(isinstance(each, Mapping) for each in value)
    libraries = ("numpy", "pandas", "polars", "pyarrow", "duckdb")
    return isinstance(value, str) and value.partition(".")[0] in libraries


#: Scores that are drawn, where computed; the first scores if none of them was.
DRAWN = ("precision", "recall", "f1")
#: Slicings on a page, slices of one in its chart, and in its table.
SLICINGS, CHARTED, LISTED = 12, 20, 100
LEVEL = 0.95


def slices_content(ev: Evaluation, by: tuple[SliceKey, ...]) -> dict[str, Any]:
    """Return the slicings of the evaluation and those added for the page."""
    keys: dict[str, SliceKey | None] = dict.fromkeys(ev.sliced)
    keys |= {slice_name(key): key for key in by}
    shown = list(keys.items())[:SLICINGS]
    return {
        "n": len(keys),
        "rows": [slicing_content(ev, name if key is None else key) for name, key in shown],
    }


def slicing_content(ev: Evaluation, key: SliceKey) -> dict[str, Any]:
    """Return one slicing: its slices with scores, losses and intervals; those that cost most if they are many."""
    name = slice_name(key)
    table = ev._sliced[name] if name in ev.sliced else ev.slices(key, errors=_has_errors(ev))
    names = name_columns(table.column_names)
    n, kind = table.num_rows, table.schema.field(names[0]).type
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_temporal(kind)
    if n > CHARTED:
        table = listed(table, ev.metrics, LOSS, LISTED)
    scores = drawn_scores(ev)
    rows = [_row(row, names, ev, scores) for row in table.to_pylist()]
    return {
        "by": name, "names": names, "scores": scores, "n": n, "ordered": n <= CHARTED,
        "numeric": len(names) == 1 and is_number, "overall": {score: ev.overall[score] for score in scores},
        "rows": rows,
    }  # fmt: skip


def by_size_content(ev: Evaluation) -> dict[str, Any]:
    """Return precision by the size of the predicted cluster, and recall by that of the true one.

    Raises
    ------
    NotKeptError
        If neither items nor cells were kept.
    """
    found = {}
    for key, score in (("pred_size", "precision"), ("true_size", "recall")):
        if score not in ev.overall:
            continue
        if _has_errors(ev):
            table = ev.slices(OURS + key, errors=True).rename_columns({OURS + key: key})
        elif isinstance(ev.contingency, Contingency) and not ev.contingency.overlapping:
            table = _by_size_of_clusters(ev, key, score)
        else:
            continue
        rows = [_row(row, [key], ev, [score]) for row in table.to_pylist()]
        rows.sort(key=lambda row: int(row["slice"][0].partition("-")[0]))  # 4 of "4-7"
        found[key] = {
            "by": key, "names": [key], "scores": [score], "n": len(rows), "ordered": True, "numeric": True,
            "overall": {score: ev.overall[score]}, "rows": rows,
        }  # fmt: skip
    return found


def drawn_scores(ev: Evaluation) -> list[str]:
    """Return the scores of slices that are drawn."""
    known = [m.name for m in ev.metrics if not m.overall_only and m.name in ev.overall]
    return [score for score in DRAWN if score in known] or known[:3]


def _has_errors(ev: Evaluation) -> bool:
    """Return whether standard errors of slices are quickly computed."""
    return ev.standard_errors.are_quick_by_slice


def _by_size_of_clusters(ev: Evaluation, key: str, score: str) -> Any:
    """Return slices by size with one score, which is known by its loss; no rows are needed."""
    found = ev.losses.size_classes(key.removesuffix("_size"))
    n = found.smallest.size
    lost = {name: getattr(found, name)[:n] for name in LOSSES}
    weight, total = found.weight[:n], ev.contingency.total_weight
    with np.errstate(invalid="ignore"):  # of sizes that no cluster has
        value = 1 - lost[f"{score}_loss"] * total / weight
    columns = {key: size_names(found.smallest), "n_items": found.n_items[:n], "weight": weight}
    table = table_of({**columns, **lost, score: value})
    return table.filter(table["n_items"].to_numpy() > 0)


def _row(row: Mapping[str, Any], names: list[str], ev: Evaluation, scores: list[str]) -> dict[str, Any]:
    """Return one slice: its names, its figures, its scores with intervals, and whether it is small.

    These do not move for components that were not drawn, as the overall one does: they are compared with each other.
    """
    n_units = row.get("n_units")
    few = (row["n_items"] if n_units is None else n_units) < FEW
    found = {
        "slice": [row[name] for name in names],
        **{k: row.get(k) for k in ("n_items", "weight", "n_units", "precision_loss", "recall_loss")},
        "few": few,
    }
    known = {metric.name: metric for metric in ev.metrics}
    for score in scores:
        value, error = row.get(score), row.get(f"{score}_se")
        found[score] = value
        if value is not None and error is not None and n_units is not None and n_units > 1 and error > 0:
            metric = known[score]
            low, high = interval(value, error, df=n_units - 1, level=LEVEL, low=metric.low, high=metric.high)
            found |= {f"{score}_se": error, f"{score}_low": low, f"{score}_high": high}
    return found


Content: TypeAlias = Mapping[str, Any]
#: Version of the layout of the data embedded in a page.
LAYOUT = 1
NO_INTERVAL = {"se": None, "low": None, "high": None}
#: Entries of a listing of messages.
MESSAGES = 30


def evaluation_content(ev: Evaluation, asked: Asked, gates: Sequence[Gate] = ()) -> dict[str, Any]:
    """Return the content of the page of an evaluation: that which was saved with it, if that is asked for."""
    saved = ev.kept.lazy.page() if ev.kept.lazy is not None and asked.is_usual else None
    if saved is not None:
        return {**saved, "title": asked.title or title_of(ev.names), "gates": gates_content(gates)}
    if asked.columns:
        chosen_columns(ev.kept, asked.columns)
    with warnings.catch_warnings():  # they are shown on the page
        warnings.simplefilter("ignore", EvaluationWarning)
        content = {
            **head("evaluation", asked.title or title_of(ev.names)),
            "names": ev.names,
            "n_items": ev.summary["true"]["items"],
            "weighted": ev.contingency.weighted,
            "overlapping": ev.contingency.overlapping,
            "verdict": verdict_content(ev),
            "gates": gates_content(gates),
            "overall": dict(ev.overall),
            "coverage": coverage_for_json(ev.coverage, ev.bounds),
            "warnings": {"n": len(ev.warnings), "rows": ev.warnings[:MESSAGES]},
            "sides": {
                "summary": ev.summary,
                "sizes": size_rows(ev) if isinstance(ev.contingency, Contingency) else None,
                "outcomes": None if ev._outcomes is None else ev._outcomes.to_pylist(),
                "lorenz": loss_curves_content(ev),
            },
            "by_size": by_size_content(ev),
            "slices": slices_content(ev, asked.by),
            "clusters": clusters_content(ev, asked),
            "repairs": repairs_content(ev, asked.worst),
            "definitions": definitions_content(ev),
            "origin": manifest_content(ev),
        }
    found: dict[str, Any] = shortened(content)
    return found


def gates_content(gates: Sequence[Gate]) -> dict[str, Any]:
    """Return the results of gates."""
    return {"rows": [{**gate.to_dict(), "text": gate.line} for gate in gates]}


def head(kind: str, title: str) -> dict[str, Any]:
    """Return the identifying head of content."""
    found = {"format": "fastbcubed report", "layout": LAYOUT, "fastbcubed": __version__}
    return {**found, "kind": kind, "title": title}


def title_of(names: Mapping[str, Any]) -> str:
    """Return the title: the names of the evaluated files without their folders.

    Examples
    --------
    >>> title_of({"truth": "data/truth.parquet", "prediction": "runs/new.parquet"}), title_of({})
    ('new against truth', 'Evaluation')
    """
    stems = [stem(name) if (name := names.get(side)) else "" for side in ("prediction", "truth")]
    given = all(stems) and names["truth"] != "the truth" and names["prediction"] != "the prediction"
    return " against ".join(stems) if given else "Evaluation"


def stem(name: str) -> str:
    """Return the name of a file without its folders and ending, or of a column without its table.

    Examples
    --------
    >>> stem("runs/new.parquet"), stem("the truth ('true_id' of all.parquet)")
    ('new', 'true_id')
    """
    column = re.fullmatch(r"the \w+ \((['\"])(.*)\1 of .*\)", name, re.DOTALL)
    return PurePath(name).stem if column is None else column[2]


def verdict_content(ev: Evaluation) -> dict[str, Any]:
    """Return the first sentences, and the scores of the headline with intervals, next to those of trivial runs."""
    known = ev.standard_errors.intervals_at_hand()
    names = [name for name in HEADLINE if name in ev.overall] or drawn_scores(ev)
    scores = [
        {"score": name, "label": HEADLINE.get(name, name), "value": ev.overall[name]}
        | known.get(name, NO_INTERVAL)
        for name in names
    ]
    return {
        "sentences": [*verdict(ev), believe(ev)],
        "outcomes": {"lines": outcomes(ev)},
        "scores": scores,
        "extremes": extremes(ev),
        "units": None if (found := ev.standard_errors.at_hand()) is None else found.units._asdict(),
    }


def repairs_content(ev: Evaluation, limit: int) -> dict[str, Any] | None:
    """Return which clusters to fix first; None where that is not defined or not known."""
    if ev.contingency.overlapping or isinstance(ev.contingency, NoCells) or not limit:
        return None
    found = None
    with suppress(FastBCubedError):  # there are no labels, or no room
        found = repairs_at_hand(ev.kept, ev.losses.of_all, limit)
    if found is None:
        return None
    return {
        "rows": found.to_pylist(),
        "start": {name: ev.overall[name] for name in HEADLINE if name in ev.overall},
    }


#: Packages of the extra, by the name that they are imported by.
PACKAGES = {"altair": "altair", "jinja2": "Jinja2", "vl_convert": "vl-convert-python"}
#: Clusters of a side, and members of each, beyond which nobody reads on.
MOST = 1000


@dataclass(frozen=True)
class Asked:
    """Options of a page: title, clusters of each side, members of each, attributes shown, slicings added."""

    title: str | None = None
    worst: int = 20
    members: int = 10
    columns: tuple[str, ...] = ()
    by: tuple[SliceKey, ...] = ()

    @classmethod
    def of(
        cls, *, title: Any = None, worst: Any = 20, members: Any = 10, columns: Any = (), by: Any = None
    ) -> Asked:
        """Check arguments as `Evaluation.report` takes them."""
        title = None if title is None else a_text(title, "title")
        worst, members = whole_number(worst, "worst", most=MOST), whole_number(members, "members", most=MOST)
        names = as_several(columns)
        keys = [] if by is None else by if isinstance(by, list) else [by]
        return cls(title, worst, members, tuple(names), tuple(map(check_key, keys)))

    @property
    def is_usual(self) -> bool:
        """Whether all options but the title have their defaults."""
        return replace(self, title=None) == Asked()


def require_packages(what: str) -> None:
    """Raise MissingPackageError if a package is not installed that pages and charts need; import none."""
    missing = [name for module, name in PACKAGES.items() if find_spec(module) is None]
    if missing:
        raise MissingPackageError(
            f"{what} needs {' and '.join(missing)}, which the extra report brings: {install('report')}"
        )


def require_place(path: Any, *, overwrite: bool) -> Path:
    """Return where a page is to be written; raise if that cannot be, or if a file is there that is to stay."""
    file = Path(at_home(path_of(path, "path is where to write the page, such as 'report.html'")))
    if os.path.isdir(file):
        raise OptionError(f"{file} is a directory; name a file, such as {file / 'report.html'}")
    if file.suffix.lower() not in ("", ".html", ".htm"):
        raise OptionError(
            f"the page is HTML, so its name ends in .html, not in {file.suffix}; name it {file.with_suffix('.html')}"
        )
    if os.path.exists(file) and not overwrite:
        raise OptionError(
            f"{file} is there already; pass {arg('overwrite', True)} to replace it, or another path"
        )
    require_writable(file.parent)
    return file


def report_of(
    page: Callable[[Asked], Page], path: Any, asked: Mapping[str, Any], *, overwrite: bool
) -> Report:
    """Return a page, written to `path` unless that is None; all checks come before the work."""
    require_packages("a report")
    found, overwrite = Asked.of(**asked), true_or_false(overwrite, "overwrite")
    file = None if path is None else require_place(path, overwrite=overwrite)
    report = Report(page(found))
    if file is not None:
        report.write(file)
    return report
