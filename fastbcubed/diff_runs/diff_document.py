"""The document of a diff: what changed, figures, slices, and changed clusters."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from fastbcubed.diff_runs.diff_listings import (
    cluster_of,
    clusters_of,
    requested_slices,
    shown_slices,
    slices_of,
)
from fastbcubed.diff_runs.diff_summary import known_intervals, verdict_scores
from fastbcubed.diff_runs.identity import DiffWithIds, known_stability
from fastbcubed.diff_runs.vocabulary import APPEARED, GONE, PLACES, SIDES, SIZES, asked_order
from fastbcubed.errors import Either, Message, NotKeptError, OptionError
from fastbcubed.metrics.registry import METRICS
from fastbcubed.render.document import (
    ON_PAGE,
    Beside,
    Block,
    Chart,
    Clusters,
    Document,
    Facts,
    Grid,
    Heading,
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
    from_to,
    label,
    not_computed,
    outcomes_of,
    percent,
    with_interval,
)
from fastbcubed.results.evaluation_document import (
    NOTHING,
    about_slicings,
    members_blocks,
    scores_grid,
    steps_grid,
)
from fastbcubed.results.evaluation_text import definition, lines_of_names, rows_lines
from fastbcubed.results.intervals import named_ends, of_slice
from fastbcubed.results.page import (
    IN_BRIEF,
    MESSAGES,
    MOST_COLUMNS,
    Asked,
    anchor,
    command,
    opened_blocks,
    origin_of,
    stem,
)
from fastbcubed.results.slices import check_key, id_parts, name_columns, slice_name

#: A kind of change dominates if it is at least this multiple of the other.
DOMINATES = 3.0
#: A kind of change that is a smaller share of the other than this is not described.
TOLD = 0.05
#: The treatment of items that one side lacks, by policy, as sentences put it.
FATES = {
    "drop": "left out (drop)",
    "singleton": "treated as singletons on the other side (singleton)",
    "outside": "not scored, but counted as merged into their cluster (outside)",
}
#: Scores in the table of splits and merges, by row: rates and distances, each in total, good and bad.
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


def document(diff: DiffWithIds, asked: Asked = IN_BRIEF) -> Document:
    """Return the document of a diff; parts that only pages show are made only for pages."""
    names, stems = diff.names, [stem(diff.names.get(side) or side) for side in SIDES]
    facts = [(side.capitalize(), names.get(side) or f"the {side}") for side in SIDES]
    facts += [("Truth", truth)] if (truth := names.get("truth")) else []
    facts.append(("Compared", counted(diff.evaluation.contingency.n_items, "item")))
    items = counted(diff.summary["baseline"]["items"], "item")
    head = [
        Only("text", [Prose([f"Diff of {items}", *lines_of_names(names)], "title")]),
        Only("page", [Facts(facts, "sides", ("true", "pred", "", "")[: len(facts)])]),
    ]
    return Document("diff", asked.title or f"From {stems[0]} to {stems[1]}", head, _sections(diff, asked))


def _sections(diff: DiffWithIds, asked: Asked) -> Iterator[Section]:
    """Yield the sections that are not empty; each is made when needed, because some take long."""
    if asked.explain is not None:
        raise OptionError(
            "a diff has no loss to explain; compare both runs with a truth: fastbcubed.compare(...).explain(RUN)"
        )
    parts = {
        ("verdict", "What changed"): _verdict,
        ("figures", "Figures"): _figures,
        ("slices", "Slices"): _slices,
        ("clusters", "Clusters that changed"): _clusters,
        ("opened", "Opened clusters"): lambda _, asked: opened_blocks(asked),
        ("origin", "How it was made"): _origin,
    }
    yield from sections(parts, diff, asked)


# -- Sentences -------------------------------------------------------------------------------------


def what_changed(diff: DiffWithIds) -> list[str]:
    """Return sentences on how many items changed, the kind of change, its concentration, and ids."""
    lines = _affected(diff), _kind_of_change(diff), _where(diff), _ids(diff)
    return [line for line in lines if line]


def _ids(diff: DiffWithIds) -> str:
    known = known_stability(diff)
    if known is None or not known.as_named < known.best:
        return ""
    of = "weight" if diff.evaluation.contingency.weighted else "items"
    return Message(
        f"{percent(known.as_named)} of the {of} that both have are in a cluster with the same id as before; "
        f"{percent(known.best)} can be: {Either('ids()', '--ids FILE')} says which cluster carries which id."
    )


def _affected(diff: DiffWithIds) -> str:
    n = diff.evaluation.contingency.n_items
    share = diff.overall.named("affected_rate")
    if diff._changes is None:
        return (
            "" if share is None else f"{percent(diff.overall[share])} of the items are with other items now."
        )
    rows = _became(diff)
    changed = sum(rows[became]["n_items"] for became in ("split", "merged", "split and merged"))
    found, policies = diff.coverage, diff.evaluation.policies
    alone = {  # counted as singletons on the side that lacks them
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


def _kind_of_change(diff: DiffWithIds) -> str:
    """Return the sentence on the shares of an item's clusters that left and joined it, the larger one first."""
    split, merged = diff._rates
    if not split + merged > 0:
        return ""
    left = f"{percent(split)} of an item's baseline cluster is no longer with it"
    joined = f"{percent(merged)} of its experiment cluster is new to it"
    if not merged:
        return f"Only splits: on average, {left}."
    if not split:
        return f"Only merges: on average, {percent(merged)} of an item's experiment cluster is new to it."
    if merged >= DOMINATES * split:
        left = left.replace("an item's baseline cluster", "its baseline cluster")
        joined = joined.replace("its experiment cluster", "an item's experiment cluster")
        return f"Mostly merges: on average, {joined}, and {left}."
    which = "Mostly splits" if split >= DOMINATES * merged else "Splits and merges"
    return f"{which}: on average, {left}, and {joined}."


def _where(diff: DiffWithIds) -> str:
    """Return the sentence on how few clusters have half of the change."""
    cells = diff.evaluation.contingency
    if not cells.has_cells or cells.overlapping:
        return ""
    try:
        figures = diff.evaluation.concentration
    except OptionError:  # for lack of memory
        return ""
    told: list[str] = []
    largest = max(each["loss"] for each in figures.values())
    for kind, side, of in (("splitting", "baseline", "true"), ("merging", "experiment", "pred")):
        if (n := figures[of]["n_half"]) and figures[of]["loss"] >= TOLD * largest:
            verb = "" if told else " is"
            told.append(f"half of the {kind}{verb} in {counted(n, f'{side} cluster')}")
    return f"{', and '.join(told).capitalize()}." if told else ""


def _became(diff: DiffWithIds) -> dict[str, dict[str, Any]]:
    """Return the rows of `Diff.changes` by outcome; empty if these are unknown."""
    return {} if diff._changes is None else {row["became"]: row for row in diff._changes.to_pylist()}


def what_became(diff: DiffWithIds) -> list[str]:
    """Return the sentence on the outcomes of clusters; empty if these are unknown."""
    numbers = {name: row["n_clusters"] for name, row in _became(diff).items()}
    if not numbers:
        return []
    appeared = numbers.pop(APPEARED)
    line = outcomes_of("baseline", sum(numbers.values()), numbers, past=True)
    if appeared:
        line += f". {counted(appeared, 'experiment cluster')} appeared"
    return [f"{line}."]


def coverage(diff: DiffWithIds) -> list[str]:
    """Return sentences on the items that only one side has, and on their treatment; empty if there are none."""
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
            f"All rates cover the {counted(diff.evaluation.contingency.n_items, 'item')} that are scored."
        )
    return [*lines, *rows_lines(found, policies)]


def _whose(diff: DiffWithIds, which: str, n: int) -> str:
    """Return a phrase on how many of the items of one side are in clusters that are gone or new as a whole."""
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
        else f"{count(inner)} in {clusters} of new items only"
    )
    return f"{whole}, {left}; " if rest else f"{whole}; "


def what_truth_says(diff: DiffWithIds) -> list[str]:
    """Return sentences on the share of the change that is right, and its effect on precision and recall."""
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
    lines = [f"According to the truth, which labels {about}, {judged}"]
    before, after = (verdict.levels[side] for side in SIDES)
    known, told = known_intervals(diff), list[str]()
    for name in ("precision", "recall"):
        told.append(f"{name} {from_to(before[name], after[name], *known.get(f'delta_{name}', (None, None)))}")
    text = "; ".join(told)
    lines.append(f"{text[0].upper()}{text[1:]}.{_iq(diff)}")
    return lines


def _iq(diff: DiffWithIds) -> str:
    (iq,) = verdict_scores(diff, "iq")
    if iq != iq:
        return ""
    direction = "neither nearer nor farther"
    if iq:
        direction = "nearer to the truth" if iq > 0 else "farther from the truth"
    known = with_interval(iq, *known_intervals(diff).get("iq", ()))
    return (
        f" Overall, the change moves items {direction}: iq is {known}, where 1 means straight to the truth "
        "and -1 straight away."
    )


# -- Tables ----------------------------------------------------------------------------------------


def _sides(diff: DiffWithIds) -> Grid:
    header = ["", "items", "clusters", "singletons", "largest"]
    if diff.evaluation.contingency.overlapping:
        header.append("unchanged")
    rows = [[side, *(count(diff.summary[side][name]) for name in header[1:])] for side in SIDES]
    return Grid(header, rows)


def changes_grid(diff: DiffWithIds) -> Grid:
    """Return the table of rates and distances of splits and merges and, with a truth, their good and bad parts."""
    judged, known = diff.verdict is not None, known_intervals(diff)
    header = ["", "rate", *(["good", "bad"] * judged), "distance", *(["good", "bad"] * judged)]
    rows = []
    for kind, (rates, distances) in TABLE.items():
        names = [*rates[: 3 if judged else 1], *distances[: 3 if judged else 1]]
        row = [[diff.overall[name], *known.get(name, ())] if name in diff.overall else None for name in names]
        if any(row):
            rows.append([kind, *row])
    grid = Grid(header, rows, 1, ["text", *["interval"] * (len(header) - 1)])
    for part in (2, 3, 5, 6) if judged else ():
        grid = grid.without_intervals(part)
    return grid.only([0, *(k for k in range(1, len(header)) if any(row[k] for row in rows))])


def others_grid(diff: DiffWithIds) -> Grid:
    """Return the table of the other scores, with definitions."""
    told = {name for of_kind in TABLE.values() for names in of_kind for name in names}
    known = known_intervals(diff)
    shown = [m for m in diff.metrics if m.name not in told and m.name in diff.overall]
    return scores_grid({m.name: diff.overall[m.name] for m in shown}, known, shown)


def notes(diff: DiffWithIds) -> list[str]:
    """Return sentences on the meaning of the figures, and on scores that were not computed."""
    found = definition(diff.evaluation)
    table = (
        "A rate is a mean over items: the share of the baseline cluster that was split off, or of the "
        "experiment cluster that was merged in. A distance is relative to both clusters together."
    )
    if changes_grid(diff).rows:
        found.append(table)
    if diff.verdict is not None:
        found.append(
            "Good and bad are the parts of it that the truth supports and contradicts; ΔP and ΔR are the changes in "
            "precision and recall. In definitions, B, E and I are the clusters of an item in baseline, experiment and "
            "truth, and w is the weight of the items in a set."
        )
    if diff.verdict is not None and diff.verdict.n_unlabelled:
        among = "relative to each other" if diff.verdict.unlabelled == "drop" else "relative to all items"
        found.append(
            f"Good and bad changes are judged on the {counted(diff.verdict.n_items, 'item')} that the truth "
            f"labels, {among}."
        )
    return [*found, *not_computed(diff.not_computed)]


def _next_steps(diff: DiffWithIds) -> list[Block]:
    """Return a few calls that show where the change is."""
    ev = diff.evaluation
    if not ev.has_clusters:
        return []
    steps = [('.clusters("baseline", limit=5)', 'what changed most; or "experiment"')]
    if not ev.contingency.overlapping:
        steps.insert(0, (".changes()", "outcomes of the clusters, as a table"))
    if ev.has_items:
        items = ev.kept_items()
        attributes = [name for names in items.attribute_sides().values() for name in names]
        attributes += [*id_parts(items), *(() if ev.attributes is None else ev.attributes.names)]
        by = label(next((name for name in attributes if name != "true_cluster"), SIZES["true_size"]))
        steps.append((f'.slices("{by}")', f"the same by {by}"))
        steps.append(('.cluster("baseline", label)', "one cluster: where its items are now; or .item(id)"))
    return steps_grid(steps)


def _verdict(diff: DiffWithIds, asked: Asked) -> Iterator[Block]:
    """Yield sentences, warnings, and figures of both sides; on a page, also the chart of the outcomes of clusters."""
    aside: list[Block] = []
    if asked.page and diff._changes is not None:
        of = "weight" if diff.evaluation.contingency.weighted else "items"
        said = f"Bar chart: share of the {of} in clusters that are unchanged, split, merged, gone or new"
        text = (
            "Split: now in several clusters. Merged: whole, but with others. Gone, appeared: items on one "
            "side only."
        )
        title = "Outcomes of the clusters"
        aside.append(Chart("changes", "changes", (diff._changes.to_pylist(), of), said, title, text))
    yield Beside([[Prose(what_changed(diff), "lead"), Prose(what_truth_says(diff), "lead")], aside])
    most = MESSAGES if asked.page else None
    yield Notices.of(diff.warnings[:most], n=len(diff.warnings), none=NOTHING)
    yield Beside([[_sides(diff), Prose(what_became(diff))]], "")
    yield Prose(coverage(diff), "indented")


def _figures(diff: DiffWithIds, asked: Asked) -> Iterator[Block]:
    """Yield the scores, their meaning, and suggested calls."""
    yield changes_grid(diff)
    yield others_grid(diff)
    yield Prose(notes(diff))
    if asked == IN_BRIEF:
        yield Only("text", _next_steps(diff))


#: The most slices of a slicing on a page.
SLICES = 20
#: Figures of slices and clusters, if listed, with their headings and forms.
SHOWN = {
    "outcome": ("outcome", "text"), "n_items": ("items", "count"), "n_parts": ("now in", "count"),
    "split_rate": ("split", "score"), "merge_rate": ("merged", "score"), "jaccard_distance": ("distance", "score"),
    "bad_distance": ("bad", "score"), "delta_precision": ("ΔP", "score"), "delta_recall": ("ΔR", "score"),
}  # fmt: skip


def listing_grid(table: Any, about: str = "") -> Grid:
    """Return the table of slices or clusters: names, and selected figures with intervals."""
    names = name_columns(table.column_names)
    figures = [name for name in SHOWN if name in table.column_names and name not in names]
    columns: list[tuple[Any, ...]] = [(name, name, "name") for name in names]
    rows = table.to_pylist()
    for name in figures:
        title, form = SHOWN[name]
        if f"{name}_se" not in table.column_names:
            columns.append((title, name, form))
            continue
        columns.append((title, (name, f"{name}_low", f"{name}_high"), "interval"))
        ranges = {"low": METRICS[name].low, "high": METRICS[name].high}
        for row in rows:
            ends = of_slice(row[name], row[f"{name}_se"], row.get("n_units"), **ranges)
            row |= named_ends(name, ends)
    added = {"split_change": "adds to splits", "merge_change": "adds to merges"}
    columns += [(added[name], name, "score", ON_PAGE) for name in added if name in table.column_names]
    return Grid.of(rows, columns, len(names) + figures.count("outcome"), about=about)


def change_of(row: Mapping[str, Any]) -> float:
    """Return the contribution of a slice or cluster to the sum of split and merge rate."""
    return float(row["split_change"] + row["merge_change"])


def _slices(diff: DiffWithIds, asked: Asked) -> Iterator[Block]:
    """Yield for each slicing a chart of the slices' shares in the change and a table; of many, the most changed."""
    keys: dict[str, Any] = dict.fromkeys(diff.sliced) | {slice_name(key): key for key in asked.by}
    chosen = list(keys.items())[: asked.slicings]
    if chosen and asked.page:
        yield about_slicings(len(chosen), len(keys), "Most changed first.")
    for k, (name, key) in enumerate(chosen):
        table = shown_slices(diff)[name] if name in diff.sliced else slices_of(diff, check_key(key))
        n = table.num_rows
        most = min(asked.slices, SLICES) if asked.page else asked.slices
        if table.is_large:
            table = requested_slices(diff, name, asked_order("change"), most)
        elif asked.page or n > asked.whole:
            changes = [change_of(row) for row in table.to_pylist()]
            table = table.take(sorted(range(n), key=lambda k: -changes[k])[:most])
        part = f": the {count(most)} most changed of {count(n)} slices" * (table.num_rows < n)
        yield Heading(f"By {label(name)}{part}")
        if asked.page and table.num_rows and {"split_change", "merge_change"} <= set(table.column_names):
            names = name_columns(table.column_names)
            rows = [{**row, "slice": [row[each] for each in names]} for row in table.to_pylist()]
            said = f"Stacked bars: split and merge rate by {label(name)}, with the values of the table below"
            text = "Summed over all slices, these are the split rate and the merge rate."
            yield Chart(
                f"slices-{k}", "slice_changes", (rows,), said, "Share of each slice in the change", text
            )
        yield listing_grid(table, f"By {name}")


def _clusters(diff: DiffWithIds, asked: Asked) -> Iterator[Block]:
    """Yield the most changed clusters of each side; on a page, they open to their members."""
    if not asked.worst or not diff.evaluation.has_clusters:
        return
    if asked.page:
        text = "Most changed first. Each opens to its members, grouped by the clusters of the other side."
        yield Prose([text], "note")
    whole = sum(diff.overall.get(name, 0.0) for name in ("split_rate", "merge_rate"))
    for side, mark, other in (("baseline", "true", "experiment"), ("experiment", "pred", "baseline")):
        table = clusters_of(diff, side, None, asked.worst, None)
        n = sum(change_of(row) > 0 for row in table.to_pylist())
        of = f"{count(n)} of {count(diff.summary[side]['clusters'])}"
        if n:
            table = table.slice(0, n)
            yield Heading(f"Most changed {side} clusters: {of}", side=mark)
            opened = (
                [_opened(diff, side, row, asked, whole, other) for row in table.to_pylist()]
                if asked.page
                else ()
            )
            grid = listing_grid(table)
            if side == "experiment":
                grid = replace(grid, header=["were in" if name == "now in" else name for name in grid.header])
            yield Clusters(f"{side} clusters", opened, grid)
        elif asked.page:
            yield Prose([f"No {side} cluster changed."])


def _opened(
    diff: DiffWithIds, side: str, row: Mapping[str, Any], asked: Asked, whole: float, other: str
) -> Opened:
    """Return a cluster to open: its share of the change, and its members."""
    share, members = change_of(row) / whole if whole else None, list[Block]()
    if row["cluster"] is not None and diff.evaluation.has_items:
        with suppress(NotKeptError):
            columns = asked.columns[:MOST_COLUMNS]
            members = members_blocks(cluster_of(diff, side, row["cluster"], columns, asked.members))
    told = (
        f"Adds {percent(row['split_change'])} to the split rate and {percent(row['merge_change'])} to the merge rate "
        "of all items."
    )
    return Opened(
        anchor(side, row["cluster"]), row["cluster"], [row["outcome"]] if "outcome" in row else [],
        f"{counted(row['n_items'], 'item')} in {counted(row['n_parts'], f'{other} cluster')}",
        [] if share is None else [("", percent(share), "of the change")], share,
        [Prose([told], "small"), *members],
    )  # fmt: skip


def _origin(diff: DiffWithIds, asked: Asked) -> Iterator[Block]:
    if not asked.page:
        return
    named, truth = {side: f"the {side}" for side in SIDES}, diff._truth
    again = command(diff.names, diff.manifest.get("arguments") or {}, "diff", named)
    if again is not None and truth:
        again = None if truth == "the truth" else f"{again} --truth {shlex.quote(str(truth))}"
    yield from origin_of(diff.manifest, asked.requested(again))
