"""A diff as text: the changes in sentences that a release note can quote, and their figures."""

from __future__ import annotations

import html
from collections.abc import Callable

from fastbcubed.cells.cell_parts import NoCells
from fastbcubed.diff_runs.diff_base import Diffed
from fastbcubed.diff_runs.vocabulary import APPEARED, GONE, PLACES, SIDES, SIZES
from fastbcubed.errors import OptionError
from fastbcubed.metrics.score import without_rounding
from fastbcubed.render.wording import (
    Grid,
    aligned,
    count,
    escaped,
    html_table,
    label,
    outcomes_of,
    paragraph,
    percent,
    plus_minus,
    score_text,
    with_error,
)
from fastbcubed.results.display import FATES_OF_NULLS, NOTHING, definition
from fastbcubed.results.slices import id_parts
from fastbcubed.results.warnings import sentence

#: One kind of change dominates where it is so many times the other.
DOMINATES = 3.0
#: A kind of change that is a smaller share of the other is not told of in detail.
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


def as_text(diff: Diffed) -> str:
    """Return a diff as text for a terminal of 80 columns or more."""
    parts = [overview(diff)]
    if steps := _next_steps(diff):
        parts.append(steps)
    return "\n\n".join(parts)


def overview(diff: Diffed, say: Callable[[str], str] = str) -> str:
    """Return the heading, the changes in sentences, warnings, and figures.

    `say` puts warnings in the words of whoever is told.
    """
    parts = ["\n".join(_heading(diff))]
    parts += ["\n".join(map(paragraph, each)) for each in (what_changed(diff), what_truth_says(diff)) if each]
    warned = [paragraph(say(sentence(found)), after="  ") for found in diff.warnings]
    parts.append("\n".join(warned) or NOTHING)
    parts.append("\n".join([aligned(_sides(diff)), *map(paragraph, what_became(diff))]))
    if lines := coverage(diff):
        parts.append("\n".join(paragraph(line, "  ", after="    ") for line in lines))
    parts += [aligned(grid) for grid in (changes_grid(diff),) if grid.rows]
    parts += [aligned(grid, figures_left=True) for grid in (others_grid(diff),) if grid.rows]
    return "\n\n".join([*parts, "\n".join(map(paragraph, notes(diff)))])


def as_html(diff: Diffed) -> str:
    """Return a diff as HTML for a notebook: plain tables, no style of its own but alignment."""
    title, *names = _heading(diff)
    parts = [f"<p><b>{escaped(title)}</b>{''.join(f'<br>{escaped(n)}' for n in names)}</p>"]
    warned = [sentence(found) for found in diff.warnings] or [NOTHING]
    parts += [
        f"<p>{'<br>'.join(map(escaped, each))}</p>"
        for each in (what_changed(diff), what_truth_says(diff), warned)
        if each
    ]
    parts.append(html_table(_sides(diff)))
    parts += [
        f"<p>{'<br>'.join(map(escaped, each))}</p>" for each in (what_became(diff), coverage(diff)) if each
    ]
    parts += [html_table(grid) for grid in (changes_grid(diff),) if grid.rows]
    parts += [html_table(grid, text_last=True) for grid in (others_grid(diff),) if grid.rows]
    parts.append(f"<p>{'<br>'.join(map(escaped, notes(diff)))}</p>")
    if steps := _next_steps(diff):
        parts.append(f"<pre>{html.escape(steps)}</pre>")
    return f"<div>{''.join(parts)}</div>"


# -- Sentences -------------------------------------------------------------------------------------


def what_changed(diff: Diffed) -> list[str]:
    """Return how many items are with other items now, whether clusters were split or merged, and where."""
    return [line for line in (_affected(diff), _kind_of_change(diff), _where(diff)) if line]


def _affected(diff: Diffed) -> str:
    n = diff.evaluation.contingency.n_items
    share = diff.overall.named("affected_rate")
    changed = _n_affected(diff)
    if changed is None:
        return (
            "" if share is None else f"{percent(diff.overall[share])} of the items are with other items now."
        )
    if not changed:
        return f"Nothing changed for the {count(n)} items that both have."
    text = f"Of {count(n)} items that both have, {count(changed)} ({percent(changed / n)}"
    if diff.evaluation.contingency.weighted and share is not None:
        text += f"; {percent(diff.overall[share])} of the weight"
    return f"{text}) {'is' if changed == 1 else 'are'} with other items now."


def _n_affected(diff: Diffed) -> int | None:
    """Return how many items are in clusters that changed; None where that is not known."""
    table = diff.known_changes
    if table is None:
        return None
    rows = {row["became"]: row["n_items"] for row in table.to_pylist()}
    return sum(rows[became] for became in ("split", "merged", "split and merged"))


def _kind_of_change(diff: Diffed) -> str:
    """Return the shares of an item's clusters that left and joined, the larger first."""
    split, merged = diff.rates
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


def _where(diff: Diffed) -> str:
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
            told.append(f"half of the {kind}{verb} in {count(n)} {side} cluster{'' if n == 1 else 's'}")
    return f"{', and '.join(told).capitalize()}." if told else ""


def what_became(diff: Diffed) -> list[str]:
    """Return the outcomes of the clusters; nothing where they are unknown."""
    table = diff.known_changes
    if table is None:
        return []
    rows = {row["became"]: row for row in table.to_pylist()}
    counted = {name: row["n_clusters"] for name, row in rows.items()}
    appeared = counted.pop(APPEARED)
    line = outcomes_of("baseline", sum(counted.values()), counted, past=True)
    if appeared:
        line += f". {count(appeared)} experiment cluster{'' if appeared == 1 else 's'} appeared"
    return [f"{line}."]


def coverage(diff: Diffed) -> list[str]:
    """Return the number of items on one side only, and their treatment; nothing if there are none."""
    found, policies = diff.coverage, diff.evaluation.policies
    lines = []
    for which, side, n in (("gone", "baseline", found.n_gone), ("new", "experiment", found.n_new)):
        if not n:
            continue
        whole = n + found.n_common
        verb = "is" if n == 1 else "are"
        text = f"{_items(n)} ({percent(n / whole)} of the {side}'s {count(whole)}) {verb} {which}: "
        policy = str(getattr(policies, PLACES[side]))
        lines.append(f"{text}{_whose(diff, which, n)}{FATES.get(policy, policy)}.")
    if lines:
        lines.append(
            f"All rates are about the {_items(diff.evaluation.contingency.n_items)} that are scored."
        )
    if found.n_null:
        lines.append(f"{_rows(found.n_null)} with a null cluster: {FATES_OF_NULLS[policies.nulls]}.")
    if found.n_noise:
        noise = label(policies.noise)
        lines.append(f"{_rows(found.n_noise)} labelled {noise} (noise): each in a cluster of its own.")
    if found.n_duplicates:
        lines.append(f"{_rows(found.n_duplicates)} repeated an earlier one: left out (drop).")
    return lines


def _whose(diff: Diffed, which: str, n: int) -> str:
    """Say how many of the items of one side are in clusters that are gone or new as a whole, and how many are not."""
    table = diff.known_changes
    name = GONE if which == "gone" else APPEARED
    if table is None:
        return ""
    row = next(row for row in table.to_pylist() if row["became"] == name)
    inner, rest = row["n_items"], n - row["n_items"]
    left = (
        f"{count(rest)} from clusters that remain" if which == "gone" else f"{count(rest)} in other clusters"
    )
    if not inner:
        return f"{left}; " if rest else ""
    clusters = f"{count(row['n_clusters'])} cluster{'' if row['n_clusters'] == 1 else 's'}"
    whole = (
        f"{count(inner)} with {clusters}"
        if which == "gone"
        else f"{count(inner)} in {clusters} of new items alone"
    )
    return f"{whole}, {left}; " if rest else f"{whole}; "


def what_truth_says(diff: Diffed) -> list[str]:
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
    lines = [f"By the truth, which labels {about}, {_right(diff)}"]
    before, after = (verdict.levels[side] for side in SIDES)
    known, told = diff.errors_at_hand(), list[str]()
    for name in ("precision", "recall"):
        delta = float(without_rounding(after[name] - before[name]))
        change = with_error(delta, known.get(f"delta_{name}"))
        sign = "" if change.startswith("-") else "+"
        goes = "" if told else " goes"
        told.append(
            f"{name}{goes} from {score_text(before[name])} to {score_text(after[name])} ({sign}{change})"
        )
    text = ", ".join(told)
    lines.append(f"{text[0].upper()}{text[1:]}.{_iq(diff)}")
    return lines


def _right(diff: Diffed) -> str:
    """Say which shares of the splitting and of the merging are right."""
    scores = diff.verdict_scores("good_split_rate", "bad_split_rate", "good_merge_rate", "bad_merge_rate")
    told, largest = [], max(sum(scores[:2]), sum(scores[2:]))
    for kind, (good, bad) in (("splitting", scores[:2]), ("merging", scores[2:])):
        if good + bad > TOLD * largest:
            told.append(f"{percent(good / (good + bad))} of the {kind}")
    return f"{' and '.join(told)} is right." if told else "nothing was split or merged."


def _iq(diff: Diffed) -> str:
    (iq,), error = diff.verdict_scores("iq"), diff.errors_at_hand().get("iq")
    if iq != iq:
        return ""
    direction = (
        "nearer to the truth"
        if iq > 0
        else "farther from the truth"
        if iq < 0
        else "neither nearer nor farther"
    )
    known = with_error(iq, error)
    return f" All in all the change brings items {direction}: iq is {known}, where 1 is straight to it and -1 away."


# -- Tables ----------------------------------------------------------------------------------------


def _heading(diff: Diffed) -> list[str]:
    lines = [f"Diff of {_items(diff.summary['baseline']['items'])}"]
    if any(name not in (None, f"the {side}") for side, name in diff.names.items()):
        lines += [f"  {side:<12}{label(name)}" for side, name in diff.names.items() if name]
    return lines


def _sides(diff: Diffed) -> Grid:
    header = ["", "items", "clusters", "singletons", "largest"]
    if diff.evaluation.contingency.overlapping:
        header.append("unchanged")
    rows = [[side, *(count(diff.summary[side][name]) for name in header[1:])] for side in SIDES]
    return Grid(header, rows)


def changes_grid(diff: Diffed) -> Grid:
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


def others_grid(diff: Diffed) -> Grid:
    """Return the other scores, each with its definition."""
    told = {name for of_kind in TABLE.values() for names in of_kind for name in names}
    known = diff.errors_at_hand()
    rows = []
    for metric in diff.metrics:
        if metric.name in told or metric.name not in diff.overall:
            continue
        meaning = metric.definition.replace("mean over items of ", "mean of ", 1)
        value = diff.overall[metric.name]
        rows.append([metric.name, score_text(value), plus_minus(known.get(metric.name), value), meaning])
    if not any(row[2] for row in rows):
        return Grid(["score", "", "definition"], [[name, value, meaning] for name, value, _, meaning in rows])
    return Grid(["score", "", "±", "definition"], rows)


def notes(diff: Diffed) -> list[str]:
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
            f"What is good and bad is about the {_items(diff.verdict.n_items)} that the truth labels, {among}."
        )
    by_reason: dict[str, list[str]] = {}
    for name, reason in diff.not_computed.items():
        by_reason.setdefault(reason, []).append(name)
    return [*found, *(f"Not computed: {', '.join(names)}: {reason}." for reason, names in by_reason.items())]


def _next_steps(diff: Diffed) -> str:
    """Return two or three calls that show where the change is."""
    ev = diff.evaluation
    if not ev.has_clusters:
        return ""
    steps = [('  .clusters("baseline", limit=5)', 'what changed most; or "experiment"')]
    if not ev.contingency.overlapping:
        steps.insert(0, ("  .changes()", "what became of the clusters, as a table"))
    if ev.has_items:
        items = ev.kept_items()
        attributes = [name for names in items.attribute_sides().values() for name in names] + [
            *id_parts(items)
        ]
        if ev.attributes is not None:
            attributes += ev.attributes.names
        by = label(next((name for name in attributes if name != "true_cluster"), SIZES["true_size"]))
        steps.append((f'  .slices("{by}")', f"the same by {by}"))
        steps.append(('  .cluster("baseline", label)', "one cluster: where its items are now; or .item(id)"))
    return aligned(Grid(["Next:", ""], steps), figures_left=True)


def _items(number: int) -> str:
    return f"{count(number)} item{'' if number == 1 else 's'}"


def _rows(number: int) -> str:
    return f"{count(number)} row{'' if number == 1 else 's'}"
