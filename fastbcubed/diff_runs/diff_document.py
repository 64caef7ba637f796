"""The document of a diff: the text in a terminal and the sections of its page."""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from fastbcubed.cells.cell_parts import NoCells
from fastbcubed.diff_runs.diff_listings import requested_slices
from fastbcubed.diff_runs.diff_summary import verdict_scores
from fastbcubed.diff_runs.vocabulary import APPEARED, GONE, PLACES, SIDES, SIZES, asked_order
from fastbcubed.errors import EvaluationWarning, NotKeptError, OptionError
from fastbcubed.render.document import (
    Beside,
    Block,
    Chart,
    Clusters,
    Document,
    Facts,
    Grid,
    Heading,
    Notices,
    Opened,
    Prose,
    Section,
)
from fastbcubed.render.json import few_entries, shortened
from fastbcubed.render.number_formats import (
    change_with_error,
    count,
    counted,
    label,
    not_computed,
    outcomes_of,
    percent,
    plus_minus,
    score_text,
    with_error,
)
from fastbcubed.results.evaluation_document import members_blocks, origin
from fastbcubed.results.evaluation_text import NOTHING, definition, rows_lines, scores_grid, steps_grid
from fastbcubed.results.gates import Gate
from fastbcubed.results.page import (
    MESSAGES,
    MOST_COLUMNS,
    SLICINGS,
    Asked,
    Content,
    about_slicings,
    anchor,
    command,
    gates_content,
    grid_block,
    head,
    notices,
    opened_content,
    slicing_head,
    stem,
    without_data,
)
from fastbcubed.results.slices import id_parts, name_columns, slice_name

if TYPE_CHECKING:
    from fastbcubed.diff_runs.diff_result import Diff

#: One kind of change dominates where it is so many times the other.
DOMINATES = 3.0
#: A kind of change that is a smaller share of the other is not described in detail.
TOLD = 0.05
#: What became of items that one side lacks, in a sentence.
FATES = {
    "drop": "left out (drop)",
    "singleton": "taken as alone on the other side (singleton)",
    "outside": "not scored, but merged to the items that they are clustered with (outside)",
}
#: Scores that stand in the table of splits and merges: what was split off, merged, and both; all of it, good, bad.
TABLE = {
    "split": (
        ("split_rate", "good_split_rate", "bad_split_rate"),
        ("split_jaccard_distance", "good_split_distance", "bad_split_distance"),
    ),
    "merged": (
        ("merge_rate", "good_merge_rate", "bad_merge_rate"),
        ("merge_jaccard_distance", "good_merge_distance", "bad_merge_distance"),
    ),
    "both": (("", "", ""), ("jaccard_distance", "good_distance", "bad_distance")),
}


def document(diff: Diff) -> list[Block]:
    """Return a diff as a document: the overview, and the next questions."""
    return [*overview(diff), *_next_steps(diff)]


def overview(diff: Diff) -> list[Block]:
    """Return the names of both sides, the change in sentences, warnings and the figures."""
    return [
        Prose(_heading(diff), "title"),
        Prose(what_changed(diff)),
        Prose(what_truth_says(diff)),
        Notices.of(diff.warnings, none=NOTHING),
        Beside([[_sides(diff)], [Prose(what_became(diff))]]),
        Prose(coverage(diff), "indented"),
        changes_grid(diff),
        others_grid(diff),
        Prose(notes(diff)),
    ]


# -- Sentences -------------------------------------------------------------------------------------


def what_changed(diff: Diff) -> list[str]:
    """Return how many items are with other items now, whether clusters were split or merged, and where."""
    lines = _affected(diff), _kind_of_change(diff), _where(diff), _new_ids(diff)
    return [line for line in lines if line]


def _new_ids(diff: Diff) -> str:
    churn = diff._known_id_churn
    if not churn:
        return ""
    return (
        f"{percent(churn)} of the items are in clusters whose id changed although their members did not; id_changes() "
        "lists old and new ids."
    )


def _affected(diff: Diff) -> str:
    n = diff.evaluation.contingency.n_items
    share = diff.overall.named("affected_rate")
    if diff._changes is None:
        return (
            "" if share is None else f"{percent(diff.overall[share])} of the items are with other items now."
        )
    rows = _became(diff)
    changed = sum(rows[became]["n_items"] for became in ("split", "merged", "split and merged"))
    found, policies = diff.coverage, diff.evaluation.policies
    alone = {  # scored, as alone on the side that lacks them
        "gone": policies.truth == "singleton" and found.n_gone > 0,
        "new": policies.prediction == "singleton" and found.n_new > 0,
    }
    whose = f"{counted(n, 'item')}{'' if any(alone.values()) else ' that both have'}"
    others = [
        f"{count(number)} {'of them' if alone[which] else 'more'} {'is' if number == 1 else 'are'} {which}"
        for which, number in (("gone", found.n_gone), ("new", found.n_new))
        if number
    ]
    rest = "".join(f"; {each}" for each in others)
    if not changed:
        return f"Nothing changed for the {whose}{rest}."
    text = f"Of {whose}, {count(changed)} ({percent(changed / n)}"
    if diff.evaluation.contingency.weighted and share is not None:
        text += f"; {percent(diff.overall[share])} of the weight"
    return f"{text}) {'is' if changed == 1 else 'are'} with other items now{rest}."


def _kind_of_change(diff: Diff) -> str:
    """Return the shares of an item's clusters that left and joined, the larger first."""
    split, merged = diff._rates
    if not split + merged > 0:
        return ""
    left = f"{percent(split)} of the baseline cluster of an item is no longer with it"
    joined = f"{percent(merged)} of its experiment cluster is new to it"
    if not merged:
        return f"Only splits: on average {left}."
    if not split:
        return f"Only merges: on average {percent(merged)} of the experiment cluster of an item is new to it."
    if merged >= DOMINATES * split:
        left = left.replace("the baseline cluster of an item", "its baseline cluster")
        joined = joined.replace("its experiment cluster", "the experiment cluster of an item")
        return f"Mostly merges: on average {joined}, and {left}."
    which = "Mostly splits" if split >= DOMINATES * merged else "Splits and merges"
    return f"{which}: on average {left}, and {joined}."


def _where(diff: Diff) -> str:
    """Say in how few clusters the change is."""
    cells = diff.evaluation.contingency
    if isinstance(cells, NoCells) or cells.overlapping:
        return ""
    try:
        figures = diff.evaluation.concentration
    except OptionError:  # there is no room
        return ""
    told: list[str] = []
    largest = max(each["loss"] for each in figures.values())
    for kind, side, of in (("splitting", "baseline", "true"), ("merging", "experiment", "pred")):
        if (n := figures[of]["n_half"]) and figures[of]["loss"] >= TOLD * largest:
            verb = "" if told else " is"
            told.append(f"half of the {kind}{verb} in {counted(n, f'{side} cluster')}")
    return f"{', and '.join(told).capitalize()}." if told else ""


def _became(diff: Diff) -> dict[str, dict[str, Any]]:
    """Return the figures of each outcome of clusters; none where they are unknown."""
    return {} if diff._changes is None else {row["became"]: row for row in diff._changes.to_pylist()}


def what_became(diff: Diff) -> list[str]:
    """Return the outcomes of the clusters; nothing where they are unknown."""
    numbers = {name: row["n_clusters"] for name, row in _became(diff).items()}
    if not numbers:
        return []
    appeared = numbers.pop(APPEARED)
    line = outcomes_of("baseline", sum(numbers.values()), numbers, past=True)
    if appeared:
        line += f". {counted(appeared, 'experiment cluster')} appeared"
    return [f"{line}."]


def coverage(diff: Diff) -> list[str]:
    """Return the number of items on one side only, and their treatment; nothing if there are none."""
    found, policies = diff.coverage, diff.evaluation.policies
    lines = []
    for which, side, n in (("gone", "baseline", found.n_gone), ("new", "experiment", found.n_new)):
        if not n:
            continue
        whole = n + found.n_common
        verb = "is" if n == 1 else "are"
        text = f"{counted(n, 'item')} ({percent(n / whole)} of the {side}'s {count(whole)}) {verb} {which}: "
        policy = str(getattr(policies, PLACES[side]))
        lines.append(f"{text}{_whose(diff, which, n)}{FATES.get(policy, policy)}.")
    if lines:
        lines.append(
            f"All rates are about the {counted(diff.evaluation.contingency.n_items, 'item')} that are scored."
        )
    return [*lines, *rows_lines(found, policies)]


def _whose(diff: Diff, which: str, n: int) -> str:
    """Say how many of the items of one side are in clusters that are gone or new as a whole, and how many are not."""
    row = _became(diff).get(GONE if which == "gone" else APPEARED)
    if row is None:
        return ""
    inner, rest = row["n_items"], n - row["n_items"]
    left = (
        f"{count(rest)} from clusters that remain" if which == "gone" else f"{count(rest)} in other clusters"
    )
    if not inner:
        return f"{left}; " if rest else ""
    clusters = counted(row["n_clusters"], "cluster")
    whole = (
        f"{count(inner)} with {clusters}"
        if which == "gone"
        else f"{count(inner)} in {clusters} of new items alone"
    )
    return f"{whole}, {left}; " if rest else f"{whole}; "


def what_truth_says(diff: Diff) -> list[str]:
    """Return the share of the change that the truth confirms, and the effect on precision and recall."""
    verdict = diff.verdict
    if verdict is None:
        return []
    n = verdict.n_items + verdict.n_unlabelled
    about = (
        "all of them"
        if not verdict.n_unlabelled
        else f"{count(verdict.n_items)} of them ({percent(verdict.n_items / n)})"
    )
    scores = verdict_scores(diff, "good_split_rate", "bad_split_rate", "good_merge_rate", "bad_merge_rate")
    right, largest = list[str](), max(sum(scores[:2]), sum(scores[2:]))
    for kind, (good, bad) in (("splitting", scores[:2]), ("merging", scores[2:])):
        if good + bad > TOLD * largest:
            right.append(f"{percent(good / (good + bad))} of the {kind}")
    judged = f"{' and '.join(right)} is right." if right else "nothing was split or merged."
    lines = [f"By the truth, which labels {about}, {judged}"]
    before, after = (verdict.levels[side] for side in SIDES)
    known, told = diff._known_errors(), list[str]()
    for name in ("precision", "recall"):
        change = change_with_error(after[name] - before[name], known.get(f"delta_{name}"))
        goes = "" if told else " goes"
        told.append(f"{name}{goes} from {score_text(before[name])} to {score_text(after[name])} ({change})")
    text = ", ".join(told)
    lines.append(f"{text[0].upper()}{text[1:]}.{_iq(diff)}")
    return lines


def _iq(diff: Diff) -> str:
    (iq,), error = verdict_scores(diff, "iq"), diff._known_errors().get("iq")
    if iq != iq:
        return ""
    direction = "neither nearer nor farther"
    if iq:
        direction = "nearer to the truth" if iq > 0 else "farther from the truth"
    known = with_error(iq, error)
    return f" All in all the change brings items {direction}: iq is {known}, where 1 is straight to it and -1 away."


# -- Tables ----------------------------------------------------------------------------------------


def _heading(diff: Diff) -> list[str]:
    lines = [f"Diff of {counted(diff.summary['baseline']['items'], 'item')}"]
    if any(name not in (None, f"the {side}") for side, name in diff.names.items()):
        lines += [f"  {side:<12}{label(name)}" for side, name in diff.names.items() if name]
    return lines


def _sides(diff: Diff) -> Grid:
    header = ["", "items", "clusters", "singletons", "largest"]
    if diff.evaluation.contingency.overlapping:
        header.append("unchanged")
    rows = [[side, *(count(diff.summary[side][name]) for name in header[1:])] for side in SIDES]
    return Grid(header, rows)


def changes_grid(diff: Diff) -> Grid:
    """Return rates and distances of splits and merges; with a truth, their good and bad parts."""
    judged = diff.verdict is not None
    header = ["", "rate", *(["good", "bad"] * judged), "distance", *(["good", "bad"] * judged)]
    rows = []
    for kind, (rates, distances) in TABLE.items():
        names = [*rates[: 3 if judged else 1], *distances[: 3 if judged else 1]]
        row = [score_text(diff.overall[name]) if name in diff.overall else "" for name in names]
        if any(row):
            rows.append([kind, *row])
    filled = [0, *(k for k in range(1, len(header)) if any(row[k] for row in rows))]
    return Grid([header[k] for k in filled], [[row[k] for k in filled] for row in rows])


def others_grid(diff: Diff) -> Grid:
    """Return the other scores, each with its definition."""
    told = {name for of_kind in TABLE.values() for names in of_kind for name in names}
    known = diff._known_errors()
    shown = [m for m in diff.metrics if m.name not in told and m.name in diff.overall]
    rows = [
        (m.name, score_text(value := diff.overall[m.name]), plus_minus(known.get(m.name), value))
        for m in shown
    ]
    return scores_grid(rows, shown)


def notes(diff: Diff) -> list[str]:
    """Return the meaning of the figures, and the scores that were not computed."""
    found = [definition(diff.evaluation)]
    table = (
        "A rate is the mean over items of what was split off, relative to the baseline cluster, or merged, relative to "
        "the experiment cluster; a distance is relative to both clusters together."
    )
    if changes_grid(diff).rows:
        found.append(table)
    if diff.verdict is not None and diff.verdict.n_unlabelled:
        among = "among each other" if diff.verdict.unlabelled == "drop" else "beside all others"
        found.append(
            f"What is good and bad is about the {counted(diff.verdict.n_items, 'item')} that the truth labels, {among}."
        )
    return [*found, *not_computed(diff.not_computed)]


def _next_steps(diff: Diff) -> list[Block]:
    """Return two or three calls that show where the change is."""
    ev = diff.evaluation
    if not ev.has_clusters:
        return []
    steps = [('.clusters("baseline", limit=5)', 'what changed most; or "experiment"')]
    if not ev.contingency.overlapping:
        steps.insert(0, (".changes()", "what became of the clusters, as a table"))
    if ev.has_items:
        items = ev.kept_items()
        attributes = [name for names in items.attribute_sides().values() for name in names]
        attributes += [*id_parts(items), *(() if ev.attributes is None else ev.attributes.names)]
        by = label(next((name for name in attributes if name != "true_cluster"), SIZES["true_size"]))
        steps.append((f'.slices("{by}")', f"the same by {by}"))
        steps.append(('.cluster("baseline", label)', "one cluster: where its items are now; or .item(id)"))
    return steps_grid(steps)


#: Slices of each slicing: those that changed most.
SLICES = 20
#: Figures of slices that come first, where they are there.
SHOWN = ("split_change", "merge_change", "split_rate", "merge_rate", "delta_precision", "delta_recall")
#: Figures of a cluster in a list, and the change that its side is listed by.
FIGURES = ("cluster", "n_items", "weight", "n_parts", "outcome", "split_change", "merge_change")


def diff_content(diff: Any, asked: Asked, gates: Sequence[Gate] = ()) -> dict[str, Any]:
    """Return the content of the page of a diff."""
    known = None if diff._changes is None else diff._changes.to_pylist()
    stems = [stem(diff.names.get(side) or side) for side in SIDES]
    named, truth = {side: f"the {side}" for side in SIDES}, diff._truth
    again = command(diff.names, diff.manifest.get("arguments") or {}, "diff", named)
    if again is not None and truth:
        again = None if truth == "the truth" else f"{again} --truth {shlex.quote(str(truth))}"
    grids = [
        {"header": grid.header, "rows": [{"cells": row} for row in grid.rows], "names": grid.names}
        for grid in (changes_grid(diff), others_grid(diff))
    ]
    with warnings.catch_warnings():  # what they say is on the page
        warnings.simplefilter("ignore", EvaluationWarning)
        content = {
            **head("diff", asked.title or f"From {stems[0]} to {stems[1]}"),
            "names": diff.names, "n_items": diff.evaluation.contingency.n_items,
            "weighted": diff.evaluation.contingency.weighted,
            "verdict": {"sentences": [*what_changed(diff), *what_truth_says(diff)], "lines": what_became(diff)},
            "overall": dict(diff.overall), "errors": dict(diff._known_errors()), "changes": known,
            "summary": diff.summary, "lines": coverage(diff), "notes": {"lines": notes(diff)},
            "grids": grids, "gates": gates_content(gates),
            "warnings": {"n": len(diff.warnings), "rows": diff.warnings[:MESSAGES]},
            "slices": _slices(diff, asked),
            "clusters": _clusters(diff, asked),
            "origin": {"manifest": few_entries(without_data(diff.manifest)), "command": again},
        }  # fmt: skip
    found: dict[str, Any] = shortened(content)
    return found


def _slices(diff: Any, asked: Asked) -> dict[str, Any]:
    keys = dict.fromkeys(diff.sliced) | {slice_name(key): key for key in asked.by}
    found = []
    for name, key in list(keys.items())[:SLICINGS]:
        if name in diff.sliced:
            n = diff.sliced[name].num_rows
            table = requested_slices(diff, name, asked_order("change"), SLICES)
        else:
            table = diff.slices(key, order_by="change")
            n = table.num_rows
        names = name_columns(table.column_names)
        figures = [each for each in dict.fromkeys((*SHOWN, *diff.overall)) if each in table.column_names][:6]
        rows = [
            {"slice": [row[each] for each in names], "n_items": row["n_items"],
             "figures": [row[each] for each in figures]}
            for row in table.slice(0, SLICES).to_pylist()
        ]  # fmt: skip
        found.append({"by": name, "names": names, "figures": figures, "n": n, "rows": rows})
    return {"n": len(keys), "rows": found}


def _clusters(diff: Any, asked: Asked) -> dict[str, Any] | None:
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
    """Yield the sentences, next to the outcomes of the clusters."""
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
    if not clusters:
        return
    text = "Those that changed most. Each opens to its members, grouped by the clusters of the other side."
    yield Prose([text], "note")
    for side, mark, other in (("baseline", "true", "experiment"), ("experiment", "pred", "baseline")):
        rows = clusters[side]["rows"]
        yield Heading(f"{side.capitalize()} clusters", side=mark)
        if rows:
            yield Prose([f"{len(rows)} of {counted(clusters[side]['n'], 'cluster')}."], "note")
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
