"""A diff as text: the changes in sentences that a release note can quote, and their figures."""

from __future__ import annotations

from fastbcubed.cells.cell_parts import NoCells
from fastbcubed.diff_runs.diff_base import Diffed
from fastbcubed.diff_runs.vocabulary import APPEARED, GONE, PLACES, SIDES, SIZES
from fastbcubed.errors import OptionError
from fastbcubed.metrics.score import without_rounding
from fastbcubed.render.document import Beside, Block, Grid, Notices, Prose
from fastbcubed.render.wording import (
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
from fastbcubed.results.display import NOTHING, definition, rows_lines, scores_grid, steps_grid
from fastbcubed.results.slices import id_parts

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


def document(diff: Diffed) -> list[Block]:
    """Return a diff as a document: the overview, and what to ask next."""
    return [*overview(diff), *_next_steps(diff)]


def overview(diff: Diffed) -> list[Block]:
    """Return what was compared, the change in sentences, warnings and the figures."""
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
    found, alone = diff.coverage, _taken_as_alone(diff)
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


def _taken_as_alone(diff: Diffed) -> dict[str, bool]:
    """Return whether items that are gone, and new ones, are scored, as alone on the side that lacks them."""
    policies, found = diff.evaluation.policies, diff.coverage
    return {
        "gone": policies.truth == "singleton" and found.n_gone > 0,
        "new": policies.prediction == "singleton" and found.n_new > 0,
    }


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
    numbers = {name: row["n_clusters"] for name, row in rows.items()}
    appeared = numbers.pop(APPEARED)
    line = outcomes_of("baseline", sum(numbers.values()), numbers, past=True)
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
        text = f"{counted(n, 'item')} ({percent(n / whole)} of the {side}'s {count(whole)}) {verb} {which}: "
        policy = str(getattr(policies, PLACES[side]))
        lines.append(f"{text}{_whose(diff, which, n)}{FATES.get(policy, policy)}.")
    if lines:
        lines.append(
            f"All rates are about the {counted(diff.evaluation.contingency.n_items, 'item')} that are scored."
        )
    return [*lines, *rows_lines(found, policies)]


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
    lines = [f"Diff of {counted(diff.summary['baseline']['items'], 'item')}"]
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
    shown = [m for m in diff.metrics if m.name not in told and m.name in diff.overall]
    rows = [
        (m.name, score_text(value := diff.overall[m.name]), plus_minus(known.get(m.name), value))
        for m in shown
    ]
    return scores_grid(rows, shown)


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
            f"What is good and bad is about the {counted(diff.verdict.n_items, 'item')} that the truth labels, {among}."
        )
    return [*found, *not_computed(diff.not_computed)]


def _next_steps(diff: Diffed) -> list[Block]:
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
