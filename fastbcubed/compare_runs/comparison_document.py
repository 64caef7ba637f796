"""The document of a comparison: the verdict, scores, differences, slices, and changed clusters."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from fastbcubed.compare_runs.comparison_listings import open_in_runs
from fastbcubed.compare_runs.explain_run import explain
from fastbcubed.compare_runs.rankings import ComparedRuns, lacks_more, n_dropped, told, why_no_ranks
from fastbcubed.compare_runs.true_clusters import flow_of_runs, list_true_clusters
from fastbcubed.compare_runs.units import (
    metrics_with_errors,
    require_cells,
    scores_without_errors,
    why_no_errors,
)
from fastbcubed.errors import MetricError, NotKeptError, OptionError
from fastbcubed.inputs.arrays import from_numpy, to_numpy
from fastbcubed.metrics.bcubed import distinct
from fastbcubed.metrics.metric import lead_score, without_rounding
from fastbcubed.metrics.sums_by_unit import is_share_of_pairs
from fastbcubed.render.document import (
    ON_PAGE,
    PAGE,
    Beside,
    Block,
    Chart,
    Clusters,
    Document,
    Facts,
    Grid,
    Heading,
    Notice,
    Notices,
    Only,
    Opened,
    Prose,
    Section,
    sections,
)
from fastbcubed.render.number_formats import count, counted, from_to, label, listed, score_text, with_interval
from fastbcubed.results.evaluation_document import about_slicings, definitions_of, listed_scores
from fastbcubed.results.evaluation_text import HEADLINE, coverage, if_otherwise
from fastbcubed.results.explanation import Explanation, whole_blocks
from fastbcubed.results.influences import is_mean
from fastbcubed.results.intervals import named_ends, of_slice
from fastbcubed.results.page import (
    IN_BRIEF,
    MESSAGES,
    MOST_COLUMNS,
    Asked,
    anchor,
    command,
    command_blocks,
    opened_blocks,
    origin_of,
)
from fastbcubed.results.slices import name_columns, slice_name
from fastbcubed.results.standard_errors import COMPONENT, FEW_DEGREES, TRUE_CLUSTER, are_uneven
from fastbcubed.results.table import Table
from fastbcubed.results.unit_cells import Units

#: With more experiments than this, differences are shown for the first score only, and without sentences.
FEW = 3
#: The opposite of a change.
OPPOSITE = {"better": "worse", "worse": "better", "higher": "lower", "lower": "higher"}
#: The most runs, or slices, that a sentence names; and the most slices among which it looks for exceptions.
NAMED, LOOKED_THROUGH = 5, 4096


#: The most experiments on a page; and the length of a score's name from which a table omits a column.
RUNS, LONG = 12, 24


def document(cmp: ComparedRuns, verdict: tuple[str, list[str]], asked: Asked = IN_BRIEF) -> Document:
    """Return the document of a comparison; parts that only pages show are made only for pages."""
    first, said = verdict
    shown = [cmp.baseline, *cmp.experiments[:RUNS]]
    facts = [
        (
            label(name) + (", the baseline" if name == cmp.baseline else ""),
            cmp[name].names.get("prediction") or "",
        )
        for name in shown
    ]
    facts += [("Runs", f"{len(shown)} of {len(cmp)} shown")] if len(cmp) > len(shown) else []
    common = " that all runs score" if cmp.align == "common" else ""
    facts.append(("Truth", cmp[cmp.baseline].names.get("truth") or "the truth"))
    facts.append(("Scored", counted(cmp.n_items, "item") + common))
    head = [
        Only("text", [Prose([first], "title"), Prose([heading(cmp)])]),
        Only("page", [Prose([first], "lead"), Facts(facts, "sides")]),
    ]
    return Document("comparison", asked.title or title_of_runs(cmp), head, _sections(cmp, said, asked, shown))


def _sections(
    cmp: ComparedRuns, said: Sequence[str], asked: Asked, shown: Sequence[str]
) -> Iterator[Section]:
    """Yield the sections that are not empty; each is made when needed, because some take long."""
    explained = [explain(cmp, run, asked.explained_by) for run in shown[1:] if asked.explain is not None]
    parts = {
        ("verdict", "Verdict"): lambda *rest: _verdict(said, *rest),
        ("differences", "Differences"): differences_section,
        ("slices", "Slices"): _slices,
        ("explanation", "Where runs differ most"): lambda *_: _explained(explained),
        ("clusters", "Clusters that changed"): _changed_clusters,
        ("opened", "Opened clusters"): lambda _, asked, __: opened_blocks(asked),
        ("definitions", "Scores"): _definitions,
        ("origin", "How it was made"): _origin,
    }
    yield from sections(parts, cmp, asked, shown)


def _explained(every: Sequence[Explanation]) -> Iterator[Block]:
    """Yield the blocks of each explanation, under the name of its run if there are several."""
    for found in every:
        if len(every) > 1:
            yield Heading(label(found.run))
        yield from whole_blocks(found)


def lead(comparison: ComparedRuns) -> str:
    """Return the leading sentence: which run is better, by how much, and whether that holds; or which is best."""
    if not comparison.experiments:
        return "Only one run was given; there is nothing to compare."
    if why_no_ranks(comparison) is not None:
        return _of_lacking(comparison) or (
            "No run can be called best: the runs lack different items of the truth, and these are dropped."
        )
    deltas = [row for row in comparison._deltas().to_pylist() if row["delta"] == row["delta"]]
    if not deltas:
        return "No score is defined for all runs."
    ranked = comparison._ranking
    if not any(row["delta"] for row in deltas):
        text = f"{_named(comparison.experiments)} against {label(comparison.baseline)}: no difference in any score."
        return text + f" Precision is {UNCHALLENGED}." * any(_says_nothing(comparison, row) for row in deltas)
    if len(comparison) > 2 and ranked:
        return _of_several(comparison, ranked)
    of_lead = (row for row in deltas if row["score"] == lead_score(comparison.metrics))
    return _of_two(comparison, next(of_lead, deltas[0]))


def _of_lacking(comparison: ComparedRuns) -> str:
    """Return a sentence on which of two runs is better if the other lacks more items, but has no worse scores."""
    if len(comparison) != 2:
        return ""
    places = {row.pop("run"): list(row.values()) for row in comparison._ranks().to_pylist()}
    (better, few), own = sorted(comparison, key=partial(n_dropped, comparison)), comparison._own_scores
    before, after = (own[name]["f1_if_alone"] for name in (better, few))
    ranked = [(a, b) for a, b in zip(places[few], places[better], strict=True) if None not in (a, b)]
    if not (lacks_more(comparison, few, better) and after < before and all(a >= b for a, b in ranked)):
        return ""
    return (
        f"{label(better)} is better: {label(few)} has no better score on common items, and counting its "
        f"missing items as singletons changes its F1 from {score_text(before)} to {score_text(after)}."
    )


#: What samples may lack, by unit.
LARGEST = {
    COMPONENT: "component as large as the largest",
    TRUE_CLUSTER: "cluster as large as the largest sampled one",
}


def _of_two(comparison: ComparedRuns, row: Mapping[str, Any]) -> str:
    """Return a sentence on how a run differs from the baseline in one score, and in how many slices it does so."""
    name, baseline, delta = label(row["experiment"]), label(comparison.baseline), row["delta"]
    what = HEADLINE.get(row["score"], row["score"])
    if not delta:
        same = UNCHALLENGED if _says_nothing(comparison, row) else score_text(row["experiment_value"])
        return f"{name} and {baseline} have the same {what}: {same}."
    word = _word(delta, {m.name: m.best for m in comparison.metrics}[row["score"]])
    values = (row[each] for each in ("baseline_value", "experiment_value", "low", "high"))
    figures, in_slices = f"{what} {from_to(*values)}", _in_slices(comparison, row, word)
    if comparison.align == "common" and any(each["n_left_out"] for each in comparison.coverage().to_pylist()):
        figures += " on common items"
    if row["holds"] is None:
        where = "on these items" if comparison.align == "common" else "on the items that each scores"
        return f"{name} is {word} {where}: {figures}; no interval is known{in_slices}."
    found = comparison._differences
    if not row["holds"]:
        key = row["experiment"], row["score"]
        why = "which may be chance"
        if found.df.get(key, math.inf) <= FEW_DEGREES:
            why = "which stems from few groups of items"
        elif found.is_clear_if_drawn(key, delta, comparison.level):
            largest = LARGEST.get(comparison.unit, "unit as large as the largest")
            why = f"which one more {largest} could reverse"
        return f"No clear difference between {baseline} and {name}: {figures}, {why}{in_slices}."
    seems = are_uneven(found.units_of[row["experiment"]])
    return f"{name} {'seems' if seems else 'is'} {word}: {figures}{in_slices}."


def _in_slices(comparison: ComparedRuns, row: Mapping[str, Any], word: str) -> str:
    """Return in how many slices of the first requested slicing the score changes in the same direction as overall."""
    for by in comparison[comparison.baseline].sliced:
        parts = comparison._deltas_in_slices(row["experiment"], by, row["score"])
        known = [part[~np.isnan(part)] * row["delta"] for part in parts]
        if sum(map(len, known)):
            same, opposite, n = (
                sum(map(each, known)) for each in (lambda d: (d > 0).sum(), lambda d: (d < 0).sum(), len)
            )
            other = f" and {OPPOSITE[word]} in {count(opposite)}" if opposite else ""
            text = f", {word} in {count(same)}{other} of {count(n)} slices by {label(by)}"
            text += ", including differences that may be chance"
            if 0 < opposite <= NAMED and n <= LOOKED_THROUGH:
                text += f" ({OPPOSITE[word]}: {', '.join(_opposite(comparison, row, by))})"
            return text
    return ""


def _opposite(comparison: ComparedRuns, row: Mapping[str, Any], by: str) -> Iterator[str]:
    """Yield the names of the slices in which the score changes in the opposite direction to the overall score."""
    table = comparison.slices(comparison._slicings[by])
    names = [name for name in name_columns(table.column_names) if name != "run"]
    for each in table.to_pylist():
        if each["run"] == row["experiment"] and (each[f"{row['score']}_delta"] or 0.0) * row["delta"] < 0:
            yield ", ".join(label(each[name]) for name in names)


def _of_several(comparison: ComparedRuns, ranked: Sequence[Mapping[str, Any]]) -> str:
    """Return a sentence on which run is best, and which may be as good."""
    first, second, *_ = ranked
    same = [row["run"] for row in ranked[1:] if row["as_good"] and not row["delta"]]
    good = [row["run"] for row in ranked[1:] if row["as_good"] and row["delta"]]
    what = f"the best {HEADLINE.get(first['score'], first['score'])}, {score_text(first['value'])}"
    if same:
        what += f"; {_named(same)} {'has' if len(same) == 1 else 'have'} the same"
    if good and len(good) + len(same) == len(ranked) - 1:
        others = "the others differ" if same else "all others differ from it"
        return f"No run is clearly best: {label(first['run'])} has {what}; how {others} may be chance."
    units = comparison._units_against_best.values()
    has = "seems to have" if any(map(are_uneven, units)) else "has"
    best = f"{label(first['run'])} {has} {what}"
    if good:
        return f"{best}; {_named(good)} may be as good: the difference may be chance."
    if same:
        return f"{best}."
    unknown = "; no interval is known" if second["as_good"] is None else ""
    least, most = sorted(abs(second[end]) for end in ("low", "high"))
    ahead = with_interval(abs(second["delta"]), least, most)
    return f"{best}, ahead of {label(second['run'])} by {ahead}{unknown}."


def _named(runs: Sequence[str]) -> str:
    """Return the names of runs or scores as a list in words; of many, only the first are named."""
    names = [label(name) for name in runs[:NAMED]]
    return listed(names if len(runs) <= NAMED else [*names, f"{count(len(runs) - NAMED)} more"])


def heading(comparison: ComparedRuns) -> str:
    """Return the heading: the runs that are compared."""
    runs = counted(len(comparison), "run")
    if comparison.align == "each":
        return f"Comparison of {runs}, each on the items it scores"
    return f"Comparison of {runs} on {counted(comparison.n_items, 'item')} that all of them score"


def sentences(comparison: ComparedRuns) -> list[str]:
    """Return further sentences: differences from the baseline, items left out, and the basis of the intervals."""
    few = comparison.experiments if len(comparison.experiments) <= FEW else ()
    found = [line for name in few for line in against_baseline(comparison, name)]
    found += [*best_by_score(comparison), *_left_out(comparison)]
    found += _how_sure(comparison)
    return found


def against_baseline(comparison: ComparedRuns, name: str) -> list[str]:
    """Return the sentence on how the main scores of an experiment differ from the baseline's."""
    rows = {row["score"]: row for row in comparison._deltas().to_pylist() if row["experiment"] == name}
    chosen = [rows[s] for s in HEADLINE if s in rows] or list(rows.values())[:1]
    versus = f"{label(name)} against {label(comparison.baseline)}"
    if chosen and all(row["delta"] == 0 for row in rows.values()):
        return [f"{versus}: no difference in any score."] * (len(comparison) > 2)  # else it leads
    best = {m.name: m.best for m in comparison.metrics}
    texts = []
    for row in chosen:
        delta = row["delta"]
        word = _word(delta, best.get(row["score"], "neither"))
        how = ", which may be chance" if row["holds"] is False else f", {word}"
        change = with_interval(delta, row["low"], row["high"], change=True)
        same = UNCHALLENGED if _says_nothing(comparison, row) else "the same"
        texts.append(f"{row['score']} {same if delta == 0 else f'{change}{how}'}")
    return [f"{versus}: {'; '.join(texts)}."]


#: The remark on precision if hardly any item that is wrongly in a cluster is labelled.
UNCHALLENGED = "1 by construction, because items without a true label are left out"


def _says_nothing(comparison: ComparedRuns, row: Mapping[str, Any]) -> bool:
    """Return whether precision is uninformative in both runs because most items have no label and are left out."""
    runs = row["experiment"], comparison.baseline
    return row["score"] == "precision" and all(map(comparison._is_unchallenged, runs))


def best_by_score(comparison: ComparedRuns) -> list[str]:
    """Return the sentence on which run is best by which scores, if these disagree; otherwise an empty list."""
    if why_no_ranks(comparison) is not None:
        return []
    table = comparison.ranks()
    first: dict[tuple[str, ...], list[str]] = {}
    for name in distinct(table.column_names[1:]):
        runs = tuple(r for r, rank in zip(comparison, table[name].to_pylist(), strict=True) if rank == 1)
        first.setdefault(runs, []).append(name)
    first = {runs: names for runs, names in first.items() if len(runs) < len(comparison)}
    if len(first) < 2:
        return []
    leaders = [f"{listed(list(map(label, runs)))} by {listed(names)}" for runs, names in first.items()]
    return [f"Which run is best depends on the score: {'; '.join(leaders)}."]


def _word(delta: float, best: str) -> str:
    if best == "neither":
        return "higher" if delta > 0 else "lower"
    return "better" if (delta > 0) == (best == "higher") else "worse"


def _left_out(comparison: ComparedRuns) -> list[str]:
    """Return the sentence on runs with items that not all runs score, if there are any."""
    if comparison.align == "each":
        return [
            "The runs are scored on different items, so differences also reflect the choice of items."
        ] * (len({ev.contingency.n_items for ev in comparison.runs.values()}) > 1)
    more = [
        f"{label(row['run'])} {count(row['n_left_out'])}"
        for row in comparison.coverage().to_pylist()
        if row["n_left_out"]
    ]
    if not more:
        return []
    left_out = f"Items that not all runs score are left out: {', '.join(more)}."
    return [
        left_out + " Coreference scores count all mentions of each run." * bool(comparison._counted_apart)
    ]


def _how_sure(comparison: ComparedRuns) -> list[str]:
    if not comparison.experiments:
        return []
    if (reason := why_no_errors(comparison)) is not None:
        return [f"There are no intervals: {reason}."]
    units = comparison._differences.units_of
    if all(own.n < 2 for own in units.values()):
        return [
            f"Shared clusters connect all items into one group{_connecting(comparison)}; no interval is known."
        ]
    if not has_intervals(comparison):
        by_unit = [m for m in metrics_with_errors(comparison) if comparison.unit == COMPONENT or is_mean(m)]
        why = ": in one run, shared clusters connect all items into one group" * bool(by_unit)
        return [f"No interval is known{why}.", *_without_errors(comparison)]
    line = f"In parentheses, {intervals_of(comparison)} of the difference, from {_groups(units)}"
    uneven = {name: own for name, own in units.items() if own.n > 1 and are_uneven(own)}
    found_few = comparison._differences.carried_by_few(comparison.metrics)
    if uneven:
        effective = min(own.effective for own in uneven.values())
        whose = f" for {_named(list(uneven))}" * (len(uneven) < len(units))
        line += f",{whose} so uneven that their effective number is only {effective:.1f}: "
        line += "these intervals are too narrow"
    elif few := distinct([name for own in found_few.values() for name in own]):
        line += f", few of which account for {listed(few[:NAMED])} or the error"
    single = [name for name, own in units.items() if own.n < 2]
    found = [f"{line}."]
    if single:
        found.append(
            f"No interval is known for {_named(single)}, whose clusters and those of "
            f"{label(comparison.baseline)} connect all items."
        )
    return found + _without_errors(comparison)


def _without_errors(comparison: ComparedRuns) -> list[str]:
    """Return sentences on scores without an interval, with the reasons."""
    return [
        f"No interval is known for {_named(names)}: {reason}."
        for reason, names in scores_without_errors(comparison, comparison._differences.warnings).items()
    ]


def _groups(units: Mapping[str, Units]) -> str:
    """Return the number of groups of items behind the errors, as a range if it differs between runs."""
    numbers = sorted({own.n for own in units.values() if own.n > 1})
    n = " to ".join(map(count, numbers[:: len(numbers) - 1 or 1]))
    run = "a run" if len(set(units.values())) == 1 else "one of the two runs"
    return f"{n} groups of items that share clusters in the truth or {run}"


def intervals_of(comparison: ComparedRuns) -> str:
    """Return a name for the figures in parentheses: intervals, with their confidence."""
    return f"{100 * comparison.level:g} % intervals"


def has_intervals(comparison: ComparedRuns) -> bool:
    """Return whether any difference has an interval."""
    return any(low == low for low in comparison._deltas()["low"].to_pylist())


def _connecting(comparison: ComparedRuns) -> str:
    """Return a remark on the runs whose clusters connect all items, if other runs' clusters do not."""
    if comparison.unit != COMPONENT:
        return ""
    found = [name for name, ev in comparison.runs.items() if ev.units.n < 2]
    rest = len(comparison) - len(found)
    if not found or not rest:
        return ""
    leave = f"; leave {'it' if len(found) == 1 else 'them'} out to compare the others" if rest > 1 else ""
    return f", because clusters of {_named(found)} connect them{leave}"


def _verdict(said: Sequence[str], cmp: ComparedRuns, asked: Asked, shown: Sequence[str]) -> Iterator[Block]:
    """Yield sentences, warnings, the scores of the runs, and the ranking."""
    yield Prose(said, "lead")
    notices, own = told(cmp), own_f1(cmp)
    yield Notices.of(notices[: MESSAGES if asked.page else None], n=len(notices))
    yield scores_grid(cmp, own, shown if asked.page else list(cmp))
    if own:
        yield Only("page", [Prose([
            "Own f1 covers all items that a run scores; f1 if alone counts the truth's items missing from "
            "the run as singletons."
        ], "note")])  # fmt: skip
    yield ranking_grid(cmp._ranking if len(cmp) > 2 else ())


def scores_grid(cmp: ComparedRuns, own: Mapping[str, tuple[float, float]], shown: Sequence[str]) -> Grid:
    """Return the table of the runs' scores; `own` has the figures of `own_f1`."""
    table, rows = cmp.scores(), []
    for row in table.to_pylist():
        if (run := row["run"]) in shown:
            errors = cmp[run].standard_errors
            known = errors.intervals_at_hand(cmp.level) if cmp.unit == COMPONENT else {}
            ends = {end: each for name, at in known.items() for end, each in named_ends(name, at).items()}
            rows.append({**row, **ends, **dict(zip(("own", "alone"), own.get(run, ()), strict=False))})
    columns: list[tuple[Any, ...]] = [("run", "run", "name")]
    columns += [(what, f"n_{what}", "count", 1) for what in ("items", "clusters")]
    mine = [("own f1", "own", "score", 3), ("f1 if alone", "alone", "score", 3)] * bool(own)
    for name in listed_scores(metric.name for metric in cmp.metrics):
        columns.append((name, (name, f"{name}_low", f"{name}_high"), "interval", int(name not in HEADLINE)))
        columns += mine if name == "f1" else []
    columns += [] if "f1" in table.column_names else mine
    return Grid.of(rows, columns, caption="Scores of each run")


def own_f1(comparison: ComparedRuns) -> dict[str, tuple[float, float]]:
    """Return each run's F1 on all own items, and with missing items as singletons; {} if these equal the F1 shown."""
    found = {name: (own["f1"], own["f1_if_alone"]) for name, own in comparison._own_scores.items()}
    shown = {name: comparison[name].overall.get("f1", each[0]) for name, each in found.items()}
    differ = any(
        abs(without_rounding(value - shown[name])) > 0 for name, each in found.items() for value in each
    )
    return found if differ else {}


def ranking_grid(ranking: Sequence[Mapping[str, Any]]) -> Grid:
    """Return the table of ranked runs, with differences from the best, and whether runs may be as good."""
    score = ranking[0]["score"] if ranking else ""
    columns = [
        ("run", "run", "name"),
        (score, "value", "score"),
        ("from the best", ("delta", "low", "high"), "change"),
        ("as good", "as_good", "yes"),
    ]
    return Grid.of(ranking, columns, caption=f"Runs by {score}, best first")


def differences_section(cmp: ComparedRuns, asked: Asked, shown: Sequence[str]) -> Iterator[Block]:
    """Yield the differences from the baseline; in a report, as a chart and a table for each run."""
    rows = list(deltas_of(cmp))
    if not asked.page:
        names = distinct([metric.name for metric in cmp.metrics], cmp[cmp.baseline].overall)
        if len(cmp.experiments) > FEW:
            names = [lead_score(cmp.metrics) or cmp.metrics[0].name]
        yield deltas_grid([row for row in rows if row["score"] in names])
        yield Prose([note(cmp)])
        return
    text = "Clusters that all runs treat alike cancel out, so a small difference can be significant."
    yield Prose([f"{note(cmp)} {text}"], "note")
    for k, name in enumerate(shown[1:]):
        own = [row for row in rows if row["experiment"] == name]
        yield Heading(difference_from(cmp, name))
        said = f"Forest plot: {difference_from(cmp, name)}, with the values of the table"
        chart = Chart(f"deltas-{k}", "deltas", (own,), said, "Difference of each score", about_deltas(own))
        _, score, verdict, before, now, delta, *_ = range(7)  # without the run's name, and `holds`
        narrow = any(len(row["score"]) > LONG for row in own)  # another table has the values before
        kept = [score, delta, verdict, *[before] * (not narrow), now]
        yield Beside([[chart], [deltas_grid(own).only(kept)]], "two aside")


def about_deltas(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return sentences on the meaning of the marks in a chart of differences."""
    text = "Lines: intervals. Filled dots: larger than chance explains; hollow dots: may be chance."
    turned = "Differences are reversed for scores where lower is better, so better is always to the right."
    return f"{text} {turned}" if any(row["best"] == "lower" for row in rows) else text


def difference_from(cmp: ComparedRuns, run: str | None = None) -> str:
    """Return the title of the section or chart of the differences from the baseline, of one run or of all."""
    title = f"ifference from {label(cmp.baseline)}"
    return f"D{title}" if run is None else f"{label(run)}: d{title}"


def deltas_of(cmp: ComparedRuns) -> Iterator[dict[str, Any]]:
    """Yield the differences of the listed scores, and whether a significant one is an improvement."""
    shown, best = listed_scores(m.name for m in cmp.metrics), {m.name: m.best for m in cmp.metrics}
    for row in cmp._deltas().to_pylist():
        if row["score"] in shown:
            sense = {"higher": 1, "lower": -1}.get(best[row["score"]], 0) * row["delta"]
            verdict = None if not row["holds"] or not sense else "better" if sense > 0 else "worse"
            said = verdict or chance(row["delta"], row["holds"])
            held = {True: "yes", False: "no" if row["delta"] else "the same", None: ""}[row["holds"]]
            yield {**row, "best": best[row["score"]], "verdict": verdict, "said": said, "held": held}


def chance(delta: float, holds: bool | None) -> str:
    """Return whether chance may explain a difference, in words; `holds` says whether its interval excludes 0."""
    return {None: "error unknown", True: "holds", False: "may be chance"}[holds] if delta else "the same"


def deltas_grid(rows: Sequence[Mapping[str, Any]]) -> Grid:
    """Return the table of differences from the baseline, with their intervals."""
    columns: list[tuple[Any, ...]] = [
        ("run", "experiment", "name"),
        ("score", "score", "text"),
        ("verdict", "said", "text", ON_PAGE),
        ("before", "baseline_value", "score", ON_PAGE),
        ("now", "experiment_value", "score", ON_PAGE),
        ("delta", ("delta", "low", "high"), "change"),
    ]
    columns += [("holds", "held", "text")] * any(row["held"] for row in rows)
    return Grid.of(rows, columns, 2, about="Differences")


def note(comparison: ComparedRuns) -> str:
    """Return the note on how intervals of differences are computed."""
    if not comparison.experiments:
        return "Name a second run."
    if not has_intervals(comparison):
        return f"Differences are from {label(comparison.baseline)}."
    n, n_bootstrap = len(comparison.experiments), comparison.n_bootstrap
    how = f"from {n_bootstrap:,} bootstrap replicates" if n_bootstrap else "by Student's t"
    text = f"Intervals are {how}; a difference is significant if its interval excludes 0."
    if n > 1:
        text += f" They are widened to hold simultaneously for the {n} runs of each score (Bonferroni)."
    if any(map(is_share_of_pairs, comparison.metrics)):
        text = f"{text} {comparison._of_pairs}"
    return text


def _slices(cmp: ComparedRuns, asked: Asked, shown: Sequence[str]) -> Iterator[Block]:
    """Yield the most changed slices of each slicing: a chart of the differences in one score, and a table."""
    keys: dict[str, Any] = cmp._slicings | {slice_name(key): key for key in asked.by}
    chosen = list(keys.items())[: asked.slicings]
    if not chosen or not cmp.experiments or not asked.slices:
        return
    if asked.page:
        text = "Slices that contribute most to the overall difference come first."
        if len(cmp.experiments) == 1:
            text += f" Scores are those of {label(cmp.experiments[0])}."
        yield about_slicings(len(chosen), len(keys), text)
    for k, (name, key) in enumerate(chosen):
        most = min(asked.slices, SLICES) if asked.page else asked.slices * len(cmp.experiments)
        known = all(name in ev.sliced for ev in cmp.runs.values())
        table = cmp.slices(key, order_by="delta", limit=most if known or not asked.page else None)
        n = sum(cmp[run].sliced[name].num_rows for run in cmp.experiments) if known else table.num_rows
        rows = table.slice(0, most).to_pylist()
        names, scores = names_and_scores(cmp, table)
        rows = [row | ends_in_slice(cmp, row, scores) for row in rows]
        part = f", {count(len(rows))} of {count(n)} rows" if asked.page and len(rows) < n else ""
        yield Heading(f"By {label(name)}: most changed slices, against {label(cmp.baseline)}{part}")
        if asked.page and scores and rows:
            yield slices_chart(cmp, name, names, scores, rows, k)
        own = ["run", *names] if len(cmp.experiments) > 1 else names
        columns: list[tuple[Any, ...]] = [
            *((name, name, "name") for name in own),
            ("items", "n_items", "count"),
        ]
        # pages scroll to the right, and text keeps the last columns
        in_order = scores[::-1] if asked.page else scores
        for score in in_order:
            ends = (f"{score}_{each}" for each in ("delta", "low", "high"))
            columns += [(score, score, "score", 2), (f"Δ {score}", tuple(ends), "change")]
        yield Grid.of(rows, columns, len(own), about=f"By {name}")


#: The most slices of a slicing on a page.
SLICES = 20


def names_and_scores(cmp: ComparedRuns, table: Table) -> tuple[list[str], list[str]]:
    """Return the columns that name the slices of a table, and the scores whose differences are shown."""
    names = [column for column in name_columns(table.column_names) if column != "run"]
    scores = [name for name in HEADLINE if f"{name}_delta" in table.column_names]
    return names, scores or [m.name for m in cmp.metrics if f"{m.name}_delta" in table.column_names][:3]


def ends_in_slice(
    cmp: ComparedRuns, row: Mapping[str, Any], scores: Sequence[str]
) -> dict[str, float | None]:
    """Return the ends of the intervals of the differences in a slice, None if unknown."""
    found = dict[str, float | None]()
    for score in scores:
        delta, error = row[f"{score}_delta"], row.get(f"{score}_delta_se")
        ends = of_slice(delta, error, row.get("n_units"), level=cmp.level)
        found |= named_ends(score, ends)
    return found


def slices_chart(
    cmp: ComparedRuns,
    by: str,
    names: Sequence[str],
    scores: Sequence[str],
    rows: Sequence[Mapping[str, Any]],
    k: int,
) -> Chart:
    """Return the chart of the differences in the last score by slice."""
    score, of_all = scores[-1], None
    if len(cmp.experiments) == 1:
        run, baseline = (cmp[each].overall for each in (cmp.experiments[0], cmp.baseline))
        of_all = run[score] - baseline[score]
    shown = []
    for row in rows:
        delta, low, high = (row[f"{score}_{end}"] for end in ("delta", "low", "high"))
        holds = None if None in (low, high) else not low <= 0 <= high
        own = {"run": row["run"], "slice": [row[name] for name in names], "said": chance(delta, holds)}
        shown.append({**own, "delta": delta, "low": low, "high": high})
    which = "F1" if score == "f1" else score
    said = f"Forest plot: difference of {score} by {label(by)}, with the values of the table below"
    text = f"Lines are {intervals_of(cmp)}; filled dots: the interval excludes 0."
    text += " The dashed line marks all items." * (of_all is not None)
    title = f"Difference of {which} in each slice"
    return Chart(f"slices-{k}", "slice_deltas", (shown, score, of_all), said, title, text)


def changed(table: Table) -> Table:
    """Return the clusters of a listing that contribute to the change in precision or recall."""
    deltas = [table[f"{name}_delta"] for name in ("precision", "recall")]
    changes = [(without_rounding(to_numpy(delta)) != 0) | to_numpy(delta.is_null()) for delta in deltas]
    return table.filter(from_numpy(np.any(changes, axis=0)))


def _changed_clusters(cmp: ComparedRuns, asked: Asked, shown: Sequence[str]) -> Iterator[Block]:
    """Yield the true clusters that changed most in each run; a page has only the first run, but shows items."""
    for run in (cmp.experiments[:1] if asked.page else cmp.experiments) if asked.worst else ():
        n, flow = 0, None
        if asked.page:
            with suppress(NotKeptError, MetricError, OptionError):
                n, flow = flow_of_runs(cmp.runs, cmp._pair(run), cmp._true_numbers)
        if flow is not None:
            yield from _outcomes(cmp, run, flow)
        title = f"Most changed true clusters from {label(cmp.baseline)} to {label(run)}"
        try:
            require_cells(cmp)
            table = list_true_clusters(cmp.runs, cmp._pair(run), cmp._true_numbers, "delta", asked.worst)
            rows = changed(Table(table)).to_pylist()
        except NotKeptError:
            return
        except MetricError:
            if asked.page:
                return
            raise
        except OptionError as error:  # for lack of memory
            yield Notices([Notice("note", error.message)], "Clusters that changed are left out")
            continue
        yield Heading(title)
        if not rows:
            yield Prose(["None changed."])
            continue
        if asked.page:
            yield Prose([
                f"{len(rows)}{f' of {count(n)}' if n else ''}, by how much they change overall precision and "
                "recall, for better or worse. Each opens to its items, grouped by their cluster in each run."
            ], "note")  # fmt: skip
        opened = [_opened(cmp, row, asked, run) for row in rows] if asked.page else ()
        yield Clusters(
            "true clusters that changed most", opened, clusters_grid(rows, [cmp.baseline, run]), printed=10
        )


def _outcomes(cmp: ComparedRuns, run: str, flow: Sequence[tuple[str, str, int]]) -> Iterator[Block]:
    """Yield a chart of how many true clusters have which outcome in the baseline and in a run."""
    exact = [sum(n for *outcomes, n in flow if outcomes[k] == "exact") for k in (0, 1)]
    yield Prose([
        f"{label(cmp.baseline)} finds {counted(exact[0], 'true cluster')} exactly, and {label(run)} {count(exact[1])}."
    ])  # fmt: skip
    caption = f"True clusters by their outcome in {label(cmp.baseline)} and in {label(run)}"
    yield Grid(("before", "now", "true clusters"), flow, 2, ("text", "text", "count"), caption)


def clusters_grid(rows: Sequence[Mapping[str, Any]], runs: Sequence[str]) -> Grid:
    """Return the table of true clusters with their outcomes in two runs, and the resulting score changes."""
    header = ["cluster", "items", *(f"in {label(name)}" for name in runs), "precision", "recall"]
    cells = []
    for row in rows:
        own = [row["cluster"], row["n_items"]]
        for name in runs:
            n_parts, outcome = row[f"{name}.n_parts"], row.get(f"{name}.outcome", "")
            own.append(f"{outcome}{f' in {count(n_parts)}' if n_parts > 1 else ''}".strip() or "1")
        cells.append([*own, row["precision_delta"], row["recall_delta"]])
    return Grid(header, cells, 1, ("name", "count", "figure", "figure", "delta", "delta"))


def _opened(cmp: ComparedRuns, row: Mapping[str, Any], asked: Asked, run: str) -> Opened:
    """Return a true cluster to open: its contribution, and its items by their cluster in each run."""
    parts = [row[f"{name}.n_parts"] for name in (cmp.baseline, run)]
    outcomes = [row.get(f"{name}.outcome") for name in (cmp.baseline, run)]
    text = f"{counted(row['n_items'], 'item')}, in {count(parts[0])} then {counted(parts[1], 'cluster')}"
    costs = [(name, PAGE["delta"](row[f"{name}_delta"]), "") for name in ("precision", "recall")]
    blocks: list[Block] = [
        Prose(["The values on the right are its contribution to overall precision and recall."], "small")
    ]
    if row["cluster"] is not None:
        with suppress(NotKeptError):
            columns = asked.columns[:MOST_COLUMNS]
            found = open_in_runs(cmp, "true", row["cluster"], columns, asked.members)
            grid = found.grid()
            forms = ["name"] * len(grid.header)
            blocks += [replace(grid, names=0, forms=forms, about="Members"), Prose(found.notes())]
    kept = [outcome for outcome in outcomes if outcome]
    return Opened(anchor("true", row["cluster"]), row["cluster"], kept, text, costs, None, blocks)


def _definitions(cmp: ComparedRuns, asked: Asked, shown: Sequence[str]) -> Iterator[Block]:
    """Yield the definitions of the scores, and how many items the truth and each run lack before restriction."""
    if not asked.page:
        return
    yield from definitions_of(cmp[cmp.baseline])
    lacking = [
        f"{label(name)}: {count(each.n_common)} of its items are in the truth, "
        f"{count(each.n_prediction_only)} are not; {count(each.n_truth_only)} items of the truth are missing "
        "from it."
        for name, each in cmp._coverage.items()
        if not each.complete
    ]
    yield Heading("Items missing from one side")
    yield Prose([*coverage(cmp[cmp.baseline]), *(lacking[:MESSAGES] or if_otherwise(cmp[cmp.baseline]))])


def _origin(cmp: ComparedRuns, asked: Asked, shown: Sequence[str]) -> Iterator[Block]:
    if asked.page:
        yield from command_blocks(asked.requested(_command(cmp)))
        for name in shown:
            yield Heading(label(name))
            yield from origin_of(cmp[name].manifest)


def title_of_runs(cmp: Any) -> str:
    """Return the title: the experiments against the baseline."""
    runs = [label(name) for name in cmp.experiments]
    named = ", ".join(runs) if len(runs) <= 3 else f"{count(len(runs))} runs"
    return f"{named} against {label(cmp.baseline)}" if runs else label(cmp.baseline)


def _command(cmp: Any) -> str | None:
    """Return the command that repeats the comparison; None if some data did not come from files."""
    first = cmp[cmp.baseline]
    arguments = dict(first.manifest.get("arguments") or {})
    given = arguments.pop("runs", None)
    paths = {name: ev.names.get("prediction") for name, ev in cmp.runs.items()}
    if given != {name: str(path) for name, path in paths.items()}:
        return None
    sides = {"truth": first.names.get("truth")} | {
        f"run {name}": f"{name}={path}" for name, path in paths.items()
    }
    return command(sides, arguments, "compare", {side: "the truth" for side in sides})
