"""A diff as the content of a page: the changes, how many a truth confirms, and the clusters that changed most."""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

from fastbcubed.diff_runs.diff_text import (
    changes_grid,
    coverage,
    notes,
    others_grid,
    what_became,
    what_changed,
    what_truth_says,
)
from fastbcubed.diff_runs.vocabulary import SIDES
from fastbcubed.errors import EvaluationWarning, NotKeptError
from fastbcubed.render.document import (
    Beside,
    Block,
    Chart,
    Clusters,
    Document,
    Facts,
    Grid,
    Heading,
    Opened,
    Prose,
    Section,
)
from fastbcubed.render.json import few_entries, shortened
from fastbcubed.render.wording import count, counted, label, percent
from fastbcubed.results.evaluation_document import members_blocks, origin
from fastbcubed.results.gates import Gate
from fastbcubed.results.page import Asked
from fastbcubed.results.page_content import (
    MESSAGES,
    MOST_COLUMNS,
    SLICINGS,
    Content,
    anchor,
    command,
    gates_content,
    head,
    key_of,
    opened_content,
    stem,
    without_data,
)
from fastbcubed.results.section_page import about_slicings, grid_block, notices, slicing_head
from fastbcubed.results.slices import SliceKey, name_columns, slice_name

#: Slices of each slicing: those that changed most.
SLICES = 20
#: Figures of slices that come first, where they are there.
SHOWN = ("split_change", "merge_change", "split_rate", "merge_rate", "delta_precision", "delta_recall")
#: Figures of a cluster in a list, and the change that its side is listed by.
FIGURES = ("cluster", "n_items", "weight", "n_parts", "outcome", "split_change", "merge_change")


def diff_content(diff: Any, asked: Asked, gates: Sequence[Gate] = ()) -> dict[str, Any]:
    """Return the content of the page of a diff."""
    known = None if diff.known_changes is None else diff.known_changes.to_pylist()
    with warnings.catch_warnings():  # what they say is on the page
        warnings.simplefilter("ignore", EvaluationWarning)
        content = {
            **head("diff", asked.title or _title(diff)),
            "names": diff.names, "n_items": diff.evaluation.contingency.n_items,
            "weighted": diff.evaluation.contingency.weighted,
            "verdict": {"sentences": [*what_changed(diff), *what_truth_says(diff)], "lines": what_became(diff)},
            "overall": dict(diff.overall), "errors": dict(diff.errors_at_hand()), "changes": known,
            "summary": diff.summary, "lines": coverage(diff), "notes": {"lines": notes(diff)},
            "grids": [_grid(each(diff)) for each in (changes_grid, others_grid)],
            "gates": gates_content(gates),
            "warnings": {"n": len(diff.warnings), "rows": diff.warnings[:MESSAGES]},
            "slices": _slices(diff, asked),
            "clusters": _clusters(diff, asked),
            "origin": {"manifest": few_entries(without_data(diff.manifest)), "command": _command(diff)},
        }  # fmt: skip
    found: dict[str, Any] = shortened(content)
    return found


def _command(diff: Any) -> str | None:
    """Return the command that makes the diff of the same files again; None where data are in no file."""
    told = diff.manifest.get("arguments") or {}
    named = {side: f"the {side}" for side in SIDES}
    found = command(diff.names, told, "diff", named)
    if found is None or not diff.truth:
        return found
    return None if diff.truth == "the truth" else f"{found} --truth {shlex.quote(str(diff.truth))}"


def _title(diff: Any) -> str:
    stems = [stem(diff.names.get(side) or side) for side in SIDES]
    return f"From {stems[0]} to {stems[1]}"


def _grid(grid: Grid) -> dict[str, Any]:
    return {"header": grid.header, "rows": [{"cells": row} for row in grid.rows], "names": grid.names}


def _slices(diff: Any, asked: Asked) -> dict[str, Any]:
    """Return the slices that changed most."""
    keys: dict[str, SliceKey | str] = {name: name for name in diff.sliced}
    if diff.evaluation.has_items:
        keys = {name: key_of(name_columns(table.column_names)) for name, table in diff.sliced.items()}
    keys |= {slice_name(key): key for key in asked.by}
    found = []
    for name, key in list(keys.items())[:SLICINGS]:
        table = diff.slices(key, order_by="change")
        names = name_columns(table.column_names)
        figures = [each for each in dict.fromkeys((*SHOWN, *diff.overall)) if each in table.column_names][:6]
        rows = [
            {"slice": [row[each] for each in names], "n_items": row["n_items"],
             "figures": [row[each] for each in figures]}
            for row in table.slice(0, SLICES).to_pylist()
        ]  # fmt: skip
        found.append({"by": name, "names": names, "figures": figures, "n": table.num_rows, "rows": rows})
    return {"n": len(keys), "rows": found}


def _clusters(diff: Any, asked: Asked) -> dict[str, Any] | None:
    """Return the clusters of either side that changed most."""
    if not asked.worst or not diff.evaluation.has_clusters:
        return None
    found, changed = {}, sum(diff.overall.get(name, 0.0) for name in ("split_rate", "merge_rate"))
    for side in SIDES:
        rows = diff.clusters(side, limit=asked.worst).to_pylist()
        rows = [row for row in rows if row["split_change"] + row["merge_change"] > 0]
        found[side] = {
            "n": diff.summary[side]["clusters"], "opened": diff.evaluation.has_items,
            "rows": [_cluster(diff, side, row, asked, changed) for row in rows],
        }  # fmt: skip
    return found


def _cluster(diff: Any, side: str, row: dict[str, Any], asked: Asked, changed: float) -> dict[str, Any]:
    """Return a cluster, its share of all that `changed`, and its members."""
    own = {name: row[name] for name in FIGURES if name in row}
    own["share_of_change"] = (row["split_change"] + row["merge_change"]) / changed if changed else None
    opened = None
    if row["cluster"] is not None and diff.evaluation.has_items:
        try:
            found = diff.cluster(
                side, row["cluster"], columns=asked.columns[:MOST_COLUMNS], members=asked.members
            )
            opened = opened_content(found)
        except NotKeptError:
            pass
    return {"id": anchor(side, row["cluster"]), **own, "opened": opened}


# -- The document ----------------------------------------------------------------------------------


def diff_document(content: Content) -> Document:
    """Return the page of a diff, from its content."""
    names = content["names"]
    facts = [(side.capitalize(), names.get(side) or f"the {side}") for side in SIDES]
    facts += [("Truth", names["truth"])] if names.get("truth") else []
    facts.append(("Compared", counted(content["n_items"], "item")))
    figures = [grid_block(grid, "Scores") for grid in content["grids"] if grid["rows"]]
    sections = [
        Section("verdict", "What changed", [*_verdict(content), *notices(content)]),
        Section("figures", "Figures", [*figures, Prose([*content["notes"]["lines"], *content["lines"]])]),
        Section("slices", "Slices", list(_changed_slices(content["slices"]))),
        Section("clusters", "Clusters that changed", list(_changed_clusters(content["clusters"]))),
        Section("origin", "How it was made", origin(content["origin"])),
    ]
    marks = ("true", "pred", "", "")[: len(facts)]
    return Document([Facts(facts, "sides", marks)], [each for each in sections if each.blocks])


def _verdict(content: Content) -> Iterator[Block]:
    """Yield the sentences, next to what became of the clusters."""
    aside: list[Block] = []
    if content["changes"]:
        of = "weight" if content["weighted"] else "items"
        said = f"Bar chart: share of the {of} in clusters that are unchanged, split, merged, gone or new"
        text = "Split: in several clusters now. Merged: whole, with others. Gone, appeared: items of one side alone."
        title = "What became of the clusters"
        aside.append(Chart("changes", "changes", (content["changes"], of), said, title, text))
    yield Beside(
        [[Prose(content["verdict"]["sentences"], "lead")], [*aside, Prose(content["verdict"]["lines"])]]
    )


def _changed_slices(slices: Content) -> Iterator[Block]:
    """Yield each slicing: its share of the change as a chart, and figures as a table."""
    if slices["rows"]:
        yield about_slicings(slices, "Those that changed most.")
    for k, slicing in enumerate(slices["rows"]):
        rows, figures = slicing["rows"], slicing["figures"]
        yield from slicing_head(slicing, "slices")
        if rows and {"split_change", "merge_change"} <= set(figures):
            said = f"Stacked bars: split and merge rate by {label(slicing['by'])}, as the table below has it"
            text = "Added up over all slices, these are the split rate and the merge rate."
            yield Chart(
                f"slices-{k}", "slice_changes", (slicing,), said, "Share of each slice in the change", text
            )
        forms = (*["name"] * len(slicing["names"]), "count", *["score"] * len(figures))
        cells = [[*row["slice"], row["n_items"], *row["figures"]] for row in rows]
        yield Grid([*slicing["names"], "items", *figures], cells, 1, forms, about=f"By {slicing['by']}")


def _changed_clusters(clusters: Content | None) -> Iterator[Block]:
    """Yield the clusters of either side that changed most."""
    if not clusters:
        return
    text = "Those that changed most. Each opens to its members, grouped by the clusters of the other side."
    yield Prose([text], "note")
    for side, mark, other in (("baseline", "true", "experiment"), ("experiment", "pred", "baseline")):
        rows = clusters[side]["rows"]
        yield Heading(f"{side.capitalize()} clusters", side=mark)
        if rows:
            yield Prose([f"{len(rows)} of {count(clusters[side]['n'])} clusters."], "note")
            yield Clusters(f"{side} clusters", [_changed_cluster(row, f"{other} cluster") for row in rows])
        else:
            yield Prose(["None changed."])


def _changed_cluster(row: Content, of: str) -> Opened:
    """Return a cluster with its share of the change, and its members."""
    share = row["share_of_change"]
    told = (
        f"Adds {percent(row['split_change'])} to the split rate and {percent(row['merge_change'])} to the merge rate "
        "of all items."
    )
    return Opened(
        row["id"], row["cluster"], [row["outcome"]] if "outcome" in row else [],
        f"{counted(row['n_items'], 'item')} in {counted(row['n_parts'], of)}",
        [] if share is None else [("", percent(share), "of the change")], share,
        [Prose([told], "small"), *members_blocks(row["opened"])],
    )  # fmt: skip
