"""The document of a comparison: the text in a terminal and the sections of its page."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from fastbcubed.compare_runs.comparison_listings import deltas_by_slice
from fastbcubed.compare_runs.rankings import LACKING, lacks_more, n_dropped, why_no_ranks
from fastbcubed.compare_runs.units import (
    counted_apart,
    metrics_with_errors,
    scores_without_errors,
    why_no_errors,
)
from fastbcubed.errors import EvaluationWarning, MetricError, NotKeptError, OptionError
from fastbcubed.metrics.bcubed import distinct
from fastbcubed.metrics.metric import lead_score, without_rounding
from fastbcubed.metrics.sums_by_unit import is_share_of_pairs
from fastbcubed.render.document import (
    PAGE,
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
from fastbcubed.render.json import shortened
from fastbcubed.render.number_formats import (
    change_with_error,
    count,
    counted,
    label,
    percent,
    plus_minus,
    score_text,
    signed,
    with_error,
)
from fastbcubed.results.evaluation_document import command_blocks, definitions_section, origin
from fastbcubed.results.evaluation_text import HEADLINE
from fastbcubed.results.gates import Gate
from fastbcubed.results.influences import is_mean
from fastbcubed.results.page import (
    MESSAGES,
    MOST_COLUMNS,
    SLICINGS,
    Asked,
    Content,
    about_slicings,
    anchor,
    command,
    definitions_content,
    gates_content,
    head,
    manifest_content,
    notices,
    slicing_head,
)
from fastbcubed.results.slices import SliceKey, name_columns, slice_name
from fastbcubed.results.standard_errors import COMPONENT, FEW_DEGREES, are_uneven
from fastbcubed.results.table import Table
from fastbcubed.results.unit_cells import Units

if TYPE_CHECKING:
    from fastbcubed.compare_runs.comparison import Comparison

#: Of more experiments than these, differences are shown of the first score alone, and in no sentences.
FEW = 3
#: The opposite of a change.
OPPOSITE = {"better": "worse", "worse": "better", "higher": "lower", "lower": "higher"}
#: Runs that a sentence names.
NAMED = 5


def document(comparison: Comparison) -> list[Block]:
    """Return a comparison as a document: the verdict, the scores of the runs, how good each is, the differences."""
    first, others = comparison._verdict
    return [
        Prose([first], "title"),
        Prose([heading(comparison)]),
        Prose(others),
        scores_grid(comparison),
        ranking_grid(comparison.ranking if len(comparison) > 2 else ()),
        deltas_grid(comparison),
        Prose([note(comparison)]),
    ]


def lead(comparison: Comparison) -> str:
    """Return the one thing: which run is better, by how much, and whether that holds; of several runs the best."""
    if not comparison.experiments:
        return "Only one run was given; there is nothing to compare."
    if why_no_ranks(comparison) is not None:
        return _of_lacking(comparison) or (
            "Which run is best is open: they lack different items of the truth, which are dropped."
        )
    deltas = [row for row in comparison._deltas().to_pylist() if row["delta"] == row["delta"]]
    if not deltas:
        return "No score is defined for all runs."
    ranked = comparison.ranking
    if not any(row["delta"] for row in deltas):
        return f"{_named(comparison.experiments)} against {label(comparison.baseline)}: no difference in any score."
    if len(comparison) > 2 and ranked:
        return _of_several(comparison, ranked)
    of_lead = (row for row in deltas if row["score"] == lead_score(comparison.metrics))
    return _of_two(comparison, next(of_lead, deltas[0]))


def _of_lacking(comparison: Comparison) -> str:
    """Return which of two runs is better where the other has fewer items and, even on common ones, no better score."""
    if len(comparison) != 2:
        return ""
    places = {row.pop("run"): list(row.values()) for row in comparison._ranks().to_pylist()}
    (better, few), own = sorted(comparison, key=partial(n_dropped, comparison)), comparison._own_scores
    before, after = (own[name]["f1_if_alone"] for name in (better, few))
    ranked = [(a, b) for a, b in zip(places[few], places[better], strict=True) if None not in (a, b)]
    if not (lacks_more(comparison, few, better) and after < before and all(a >= b for a, b in ranked)):
        return ""
    return (
        f"{label(better)} is better: {label(few)} has no better score on common items, and an F1 of "
        f"{score_text(after)}, not {score_text(before)}, if missing items are alone."
    )


def _of_two(comparison: Comparison, row: Mapping[str, Any]) -> str:
    """Return how a run differs from the baseline by one score, and in how many of the slices it does so, too."""
    name, baseline, delta = label(row["experiment"]), label(comparison.baseline), row["delta"]
    what = HEADLINE.get(row["score"], row["score"])
    before, after = (  # in the digits that the error leaves
        with_error(row[f"{which}_value"], row["se"], delta).partition(" ± ")[0]
        for which in ("baseline", "experiment")
    )
    if not delta:
        return f"{name} and {baseline} have the same {what}: {after}."
    word = _word(delta, {m.name: m.best for m in comparison.metrics}[row["score"]])
    change = change_with_error(delta, row["se"])
    figures, in_slices = f"{what} {before} → {after} ({change}", _in_slices(comparison, row, word)
    if row["holds"] is None:
        where = "on these items" if comparison.align == "common" else "on the items that each scores"
        return f"{name} is {word} {where}: {figures}; no standard error is known){in_slices}."
    found = comparison._differences
    if not row["holds"]:
        few = found.df.get((row["experiment"], row["score"]), math.inf) <= FEW_DEGREES
        why = "which few groups of items make" if few else "which may be chance"
        return f"No clear difference between {baseline} and {name}: {figures}, {why}){in_slices}."
    seems = are_uneven(found.units_of[row["experiment"]])
    return f"{name} {'seems' if seems else 'is'} {word}: {figures}){in_slices}."


def _in_slices(comparison: Comparison, row: Mapping[str, Any], word: str) -> str:
    """Return in how many of the first requested slices the score of a run differs in the same way."""
    for by in comparison[comparison.baseline].sliced:
        parts = deltas_by_slice(comparison, row["experiment"], by, row["score"])
        known = [part[~np.isnan(part)] * row["delta"] for part in parts]
        if known:
            same, opposite, n = (
                sum(map(each, known)) for each in (lambda d: (d > 0).sum(), lambda d: (d < 0).sum(), len)
            )
            other = f" and {OPPOSITE[word]} in {count(opposite)}" if opposite else ""
            return f", {word} in {count(same)}{other} of {count(n)} slices by {label(by)}"
    return ""


def _of_several(comparison: Comparison, ranked: Sequence[Mapping[str, Any]]) -> str:
    """Return which run is best, and which are as good."""
    first, second, *_ = ranked
    same = [row["run"] for row in ranked[1:] if row["as_good"] and not row["delta"]]
    good = [row["run"] for row in ranked[1:] if row["as_good"] and row["delta"]]
    what = f"the best {HEADLINE.get(first['score'], first['score'])}, {score_text(first['value'])}"
    if same:
        what += f"; {_named(same)} {'has' if len(same) == 1 else 'have'} the same"
    if good and len(good) + len(same) == len(ranked) - 1:
        others = "the others differ" if same else "all others differ from it"
        return f"No run is clearly best: {label(first['run'])} has {what}; how {others} may be chance."
    units = comparison._against_best._differences.units_of.values()  # none where there are no errors
    has = "seems to have" if any(map(are_uneven, units)) else "has"
    best = f"{label(first['run'])} {has} {what}"
    if good:
        return f"{best}; {_named(good)} {'is' if len(good) == 1 else 'are'} as good: the difference may be chance."
    if same:
        return f"{best}."
    unknown = "; no standard error is known" if second["as_good"] is None else ""
    return f"{best}, ahead of {label(second['run'])} by {with_error(abs(second['delta']), second['se'])}{unknown}."


def _named(runs: Sequence[str]) -> str:
    """Return the names of runs or scores, of many the first."""
    names = [label(name) for name in runs[:NAMED]]
    return _listed(names if len(runs) <= NAMED else [*names, f"{count(len(runs) - NAMED)} more"])


def heading(comparison: Comparison) -> str:
    """Return the heading: the runs that are compared."""
    runs = counted(len(comparison), "run")
    if comparison.align == "each":
        return f"Comparison of {runs}, each on the items that it scores"
    return f"Comparison of {runs} on {counted(comparison.n_items, 'item')} that all of them score"


def sentences(comparison: Comparison) -> list[str]:
    """Return further sentences: experiments against the baseline, items left out, how certain the differences are."""
    few = comparison.experiments if len(comparison.experiments) <= FEW else ()
    found = [line for name in few for line in _against_baseline(comparison, name)]
    found += [*_best(comparison), *_left_out(comparison)]
    found += _how_sure(comparison)
    return found


def _against_baseline(comparison: Comparison, name: str) -> list[str]:
    rows = {row["score"]: row for row in comparison._deltas().to_pylist() if row["experiment"] == name}
    chosen = [rows[s] for s in HEADLINE if s in rows] or list(rows.values())[:1]
    versus = f"{label(name)} against {label(comparison.baseline)}"
    if chosen and all(row["delta"] == 0 for row in rows.values()):
        return [f"{versus}: no difference in any score."] * (len(comparison) > 2)  # of two it comes first
    best = {m.name: m.best for m in comparison.metrics}
    texts = []
    for row in chosen:
        delta = row["delta"]
        how = "" if delta == 0 else _word(delta, best.get(row["score"], "neither"))
        held = {True: "", False: ", which may be chance", None: ""}[row["holds"]] if how else ""
        change = with_error(abs(delta), row["se"])
        texts.append(f"{row['score']} {'the same' if delta == 0 else f'{change} {how}{held}'}")
    return [f"{versus}: {'; '.join(texts)}."]


def _best(comparison: Comparison) -> list[str]:
    """Say which run is best by which scores, where these disagree."""
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
    leaders = [f"{_listed(list(map(label, runs)))} by {_listed(names)}" for runs, names in first.items()]
    return [f"Which run is best depends on the score: {'; '.join(leaders)}."]


def _listed(names: Sequence[str]) -> str:
    """Return names with commas, and an "and" before the last."""
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _word(delta: float, best: str) -> str:
    if best == "neither":
        return "higher" if delta > 0 else "lower"
    return "better" if (delta > 0) == (best == "higher") else "worse"


def _left_out(comparison: Comparison) -> list[str]:
    """Say which runs score more items than all of them do."""
    if comparison.align == "each":
        return ["The runs are scored on different items, so that differences are of items, too."] * (
            len({ev.contingency.n_items for ev in comparison.runs.values()}) > 1
        )
    more = [
        f"{label(row['run'])} {count(row['n_left_out'])}"
        for row in comparison.coverage().to_pylist()
        if row["n_left_out"]
    ]
    if not more:
        return []
    apart = any(counted_apart(comparison, metric) for metric in comparison.metrics)
    left_out = f"Items that a run scores and another does not are left out: {', '.join(more)}."
    return [left_out + " Coreference scores count all mentions of each run." * apart]


def _how_sure(comparison: Comparison) -> list[str]:
    if not comparison.experiments:
        return []
    if (reason := why_no_errors(comparison)) is not None:
        return [f"There are no standard errors: {reason}."]
    units = comparison._differences.units_of
    if all(own.n < 2 for own in units.values()):
        return [
            f"All items are in one group that shares clusters{_connecting(comparison)}; no standard error is known."
        ]
    if not _has_intervals(comparison):
        by_unit = [m for m in metrics_with_errors(comparison) if comparison.unit == COMPONENT or is_mean(m)]
        why = ": a run has a single group of items that share clusters" * bool(by_unit)
        return [f"No standard error is known{why}.", *_without_errors(comparison)]
    line = f"± is one standard error of the difference, from {_groups(units)}"
    uneven = {name: own for name, own in units.items() if own.n > 1 and are_uneven(own)}
    found_few = comparison._differences.carried_by_few(comparison.metrics)
    if uneven:
        effective = min(own.effective for own in uneven.values())
        whose = f" for {_named(list(uneven))}" * (len(uneven) < len(units))
        line += f",{whose} so uneven that they carry no more information than {effective:.1f} equal ones: "
        line += "this standard error is too small"
    elif few := distinct([name for own in found_few.values() for name in own]):
        line += f", few of which carry {_listed(few[:NAMED])} or the error"
    single = [name for name, own in units.items() if own.n < 2]
    found = [f"{line}."]
    if single:
        found.append(
            f"No standard error is known for {_named(single)}, whose clusters and those of "
            f"{label(comparison.baseline)} connect all items."
        )
    return found + _without_errors(comparison)


def _without_errors(comparison: Comparison) -> list[str]:
    """Say which scores have no standard error, and why."""
    return [
        f"No standard error is known for {_named(names)}: {reason}."
        for reason, names in scores_without_errors(comparison).items()
    ]


def _groups(units: Mapping[str, Units]) -> str:
    """Return the number of groups that errors are from; of several runs these may be different ones."""
    numbers = sorted({own.n for own in units.values() if own.n > 1})
    n = " to ".join(map(count, numbers[:: len(numbers) - 1 or 1]))
    run = "a run" if len(set(units.values())) == 1 else "one of the two runs"
    return f"{n} groups of items that share clusters in the truth or {run}"


def _has_intervals(comparison: Comparison) -> bool:
    return any(low == low for low in comparison._deltas()["low"].to_pylist())


def _connecting(comparison: Comparison) -> str:
    """Return whose clusters alone connect all items, where that is not so of each run."""
    if comparison.unit != COMPONENT:
        return ""
    found = [name for name, ev in comparison.runs.items() if ev.units.n < 2]
    rest = len(comparison) - len(found)
    if not found or not rest:
        return ""
    leave = f"; leave {'it' if len(found) == 1 else 'them'} out to compare the others" if rest > 1 else ""
    return f", because clusters of {_named(found)} connect them{leave}"


def scores_grid(comparison: Comparison) -> Grid:
    """Return the scores of each run, with F1 on its own items, and with missing ones alone, where these differ."""
    table, own = comparison.scores(), own_f1(comparison)
    names = distinct([name for name in table.column_names if name not in ("run", "weight")])
    rows = [
        [
            label(row["run"]),
            *(count(row[n]) if isinstance(row[n], int) else score_text(row[n]) for n in names),
        ]
        for row in table.to_pylist()
    ]
    header, at = ["run", *names], 1 + (names.index("f1") + 1 if "f1" in names else len(names))
    if own:
        header[at:at] = ["own f1", "f1 if alone"]
        for row, figures in zip(rows, own.values(), strict=True):
            row[at:at] = map(score_text, figures)
    return Grid(header, rows)


def own_f1(comparison: Comparison) -> dict[str, tuple[float, float]]:
    """Return the F1 of each run on all items that it scores, and if those it lacks were alone; {} where all agree."""
    found = {name: (own["f1"], own["f1_if_alone"]) for name, own in comparison._own_scores.items()}
    shown = {name: comparison[name].overall.get("f1", each[0]) for name, each in found.items()}
    differ = any(
        abs(without_rounding(value - shown[name])) > 0 for name, each in found.items() for value in each
    )
    return found if differ else {}


def ranking_grid(ranking: Sequence[Mapping[str, Any]]) -> Grid:
    """Return several runs by how good they are, with how far they are from the best, and whether they are as good."""
    score = ranking[0]["score"] if ranking else ""
    columns = [
        ("run", "run", "name"),
        (score, "value", "score"),
        ("less the best", "delta", "delta"),
        ("±", "se", "error"),
        ("as good", "as_good", "yes"),
    ]
    return Grid.of(ranking, columns, caption=f"Runs by {score}, the best first")


def deltas_grid(comparison: Comparison) -> Grid:
    """Return the differences from the baseline, with their intervals."""
    header = ["run", "score", "delta", "±", "low", "high", "holds"]
    rows, names = [], [metric.name for metric in comparison.metrics]
    if len(comparison.experiments) > FEW:
        names = [lead_score(comparison.metrics) or names[0]]
    names = distinct(names, comparison[comparison.baseline].overall)
    for row in comparison._deltas().to_pylist():
        if row["score"] not in names:
            continue
        ends = [signed(row["low"]), signed(row["high"])]
        holds = {True: "yes", False: "no" if row["delta"] else "the same", None: ""}[row["holds"]]
        error = plus_minus(row["se"], row["experiment_value"])
        rows.append([label(row["experiment"]), row["score"], signed(row["delta"]), error, *ends, holds])
    if not any(text for row in rows for text in row[3:]):
        return Grid(header[:3], [row[:3] for row in rows], 2)
    return Grid(header, rows, 2)


def note(comparison: Comparison) -> str:
    """Return the note on the intervals."""
    if not comparison.experiments:
        return "Name a second run."
    if not _has_intervals(comparison):
        return f"Differences are of the runs less {label(comparison.baseline)}."
    n, level = len(comparison.experiments), percent(comparison.level)
    n_bootstrap = comparison.n_bootstrap
    how = f"by {n_bootstrap:,} replicates of the bootstrap" if n_bootstrap else "by Student's t"
    text = f"low, high: {level} intervals, {how}; a difference holds if its interval excludes 0."
    if n > 1:
        text += f" They are widened, so that those of the {n} runs for one score hold together (Bonferroni)."
    if any(is_share_of_pairs(metric) for metric in comparison.metrics):
        text += " Those of scores of pairs may be far too narrow, as few large clusters decide these."
    return text


def slices_grid(table: Table) -> Grid:
    """Return slices with the scores of the headline, and how they differ from the baseline's."""
    columns = table.column_names
    names = columns[1 : columns.index("n_items")]
    scores = [name for name in HEADLINE if name in columns]
    rows = table.to_pylist()
    known = any(plus_minus(row.get(f"{name}_delta_se")) for row in rows for name in scores)
    columns = [
        ("run", "run", "name"),
        *((name, name, "name") for name in names),
        ("items", "n_items", "count"),
    ]
    for name in scores:
        columns += [(name, name, "score"), ("delta", f"{name}_delta", "delta")]
        columns += [("±", f"{name}_delta_se", "error")] * known
    return Grid.of(rows, columns, 1 + len(names))


def changed(table: Table) -> Table:
    """Return the clusters of a listing that change precision or recall."""
    changes = [table[f"{name}_delta"].to_numpy() for name in ("precision", "recall")]
    return table.filter(np.any(without_rounding(np.array(changes)), axis=0))


def clusters_grid(table: Table, runs: Sequence[str]) -> Grid:
    """Return true clusters with their outcomes in two runs, and the resulting change."""
    header = ["cluster", "items", *(f"in {label(name)}" for name in runs), "precision", "recall"]
    rows = []
    for row in table.to_pylist():
        cells = [label(row["cluster"]), count(row["n_items"])]
        for name in runs:
            n_parts, outcome = row[f"{name}.n_parts"], row.get(f"{name}.outcome", "")
            cells.append(f"{outcome}{f' in {count(n_parts)}' if n_parts > 1 else ''}".strip() or "1")
        rows.append([*cells, signed(row["precision_delta"]), signed(row["recall_delta"])])
    return Grid(header, rows, 1)


#: Runs beside the baseline: more than anybody compares by eye.
RUNS = 12
#: Slices of each slicing: those that changed most.
SLICES = 20


def comparison_content(cmp: Any, asked: Asked, gates: Sequence[Gate] = ()) -> dict[str, Any]:
    """Return the content of the page of a comparison."""
    shown, own = [cmp.baseline, *cmp.experiments[:RUNS]], own_f1(cmp)
    with warnings.catch_warnings():  # what they say is on the page
        warnings.simplefilter("ignore", EvaluationWarning)
        content = {
            **head("comparison", asked.title or _title(cmp)),
            "baseline": cmp.baseline, "experiments": shown[1:], "n_runs": len(cmp), "align": cmp.align,
            "level": cmp.level, "n_items": cmp.n_items, "truth": cmp[cmp.baseline].names.get("truth"),
            "runs": [
                {"run": name, "names": cmp[name].names, **manifest_content(cmp[name]), "command": None}
                for name in shown
            ],
            "command": _command(cmp),
            "verdict": {"lead": cmp._verdict[0], "sentences": cmp._verdict[1], "text": note(cmp)},
            "ranking": cmp.ranking if len(cmp) > 2 else [],
            "scores": [{**row, "own_f1": own.get(row["run"], ())} for row in cmp.scores().to_pylist()],
            "has_own_f1": bool(own), "score_names": _scores(cmp),
            "deltas": {"rows": list(deltas_content(cmp))},
            "coverage": cmp.coverage().to_pylist(),
            "gates": gates_content(gates), "warnings": _warnings(cmp),
            "slices": _slices(cmp, asked),
            "movers": _movers(cmp, asked),
            "definitions": _definitions(cmp),
        }  # fmt: skip
    found: dict[str, Any] = shortened(content)
    return found


def _definitions(cmp: Any) -> dict[str, Any]:
    """Return the definitions of scores, and which items each run and the truth lack before runs are restricted."""
    found = definitions_content(cmp[cmp.baseline])
    lacking = [
        f"{label(name)}: {count(each.n_common)} of its items are in the truth, {count(each.n_prediction_only)} are "
        f"not; it lacks {count(each.n_truth_only)} of the truth's."
        for name, each in cmp._coverage.items()
        if not each.complete
    ]
    return found | {"otherwise": {"lines": lacking[:MESSAGES]}} if lacking else found


def _title(cmp: Any) -> str:
    runs = [label(name) for name in cmp.experiments]
    named = ", ".join(runs) if len(runs) <= 3 else f"{count(len(runs))} runs"
    return f"{named} against {label(cmp.baseline)}" if runs else label(cmp.baseline)


def _command(cmp: Any) -> str | None:
    """Return the command that compares the same files again; None where data were given that are in no file."""
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


def _scores(cmp: Any) -> list[str]:
    """Return the scores to show: not those that are 1 minus another one."""
    return distinct([m.name for m in cmp.metrics])


def deltas_content(cmp: Any) -> Iterator[dict[str, Any]]:
    """Yield the differences, and whether each one that holds is an improvement."""
    shown, best = _scores(cmp), {m.name: m.best for m in cmp.metrics}
    for row in cmp._deltas().to_pylist():
        if row["score"] in shown:
            sense = {"higher": 1, "lower": -1}.get(best[row["score"]], 0) * row["delta"]
            verdict = None if not row["holds"] or not sense else "better" if sense > 0 else "worse"
            sure = {None: "error not known", True: "holds", False: "may be chance"}[row["holds"]]
            said = verdict or (sure if row["delta"] else "the same")
            yield {**row, "best": best[row["score"]], "verdict": verdict, "said": said}


def _warnings(cmp: Any) -> dict[str, Any]:
    """Return warnings and notes, each with the runs it concerns."""
    rows = []
    for each in cmp.warnings:
        runs = [label(name) for name in each["runs"]]
        of_some = each["code"] != LACKING and len(runs) < len(cmp.runs)
        rows.append({**each, "runs": runs, "message": f"{', '.join(runs)}: " * of_some + each["message"]})
    return {"n": len(rows), "rows": rows[:MESSAGES]}


def _slices(cmp: Any, asked: Asked) -> dict[str, Any]:
    """Return the slices in which the experiments differ most from the baseline."""
    keys = cmp._slicings | {slice_name(key): key for key in asked.by}
    rows = [_slicing(cmp, name, key) for name, key in list(keys.items())[:SLICINGS]]
    return {"n": len(keys), "rows": rows}


def _slicing(cmp: Any, name: str, key: SliceKey) -> dict[str, Any]:
    known = all(name in ev.sliced for ev in cmp.runs.values())
    table = cmp.slices(key, order_by="delta", limit=SLICES if known else None)
    names = [column for column in name_columns(table.column_names) if column != "run"]
    scores = [m.name for m in cmp.metrics if f"{m.name}_delta" in table.column_names]
    shown = [each for each in ("precision", "recall", "f1") if each in scores] or scores[:3]
    rows = [
        {"run": row["run"], "slice": [row[each] for each in names], "n_items": row["n_items"],
         "scores": [{"score": each, "value": row[each], "delta": row[f"{each}_delta"],
                     "se": row.get(f"{each}_delta_se")} for each in shown]}
        for row in table.slice(0, SLICES).to_pylist()
    ]  # fmt: skip
    overall = {}
    if len(cmp.experiments) == 1:
        run, baseline = (cmp[each].overall for each in (cmp.experiments[0], cmp.baseline))
        overall = {score: run[score] - baseline[score] for score in shown}
    n = sum(cmp[run].sliced[name].num_rows for run in cmp.experiments) if known else table.num_rows
    return {"by": name, "names": names, "scores": shown, "n": n, "rows": rows, "overall": overall}


def _movers(cmp: Any, asked: Asked) -> dict[str, Any] | None:
    """Return the true clusters that changed most in the first experiment, with the outcomes before and after."""
    if not asked.worst or not cmp.experiments:
        return None
    run = cmp.experiments[0]
    try:
        rows = changed(cmp.clusters(run=run, limit=asked.worst)).to_pylist()
        n, flow = cmp._flow(run)
    except (NotKeptError, MetricError):
        return None
    except OptionError as error:  # there is no room
        return {"run": run, "left_out": str(error)}
    return {
        "run": run, "n": n,
        "flow": [{"before": a, "after": b, "n_clusters": own} for a, b, own in flow],
        "rows": [_mover(cmp, row, asked, run) for row in rows],
    }  # fmt: skip


def _mover(cmp: Any, row: Mapping[str, Any], asked: Asked, run: str) -> dict[str, Any]:
    """Return a true cluster, and where each run has its items."""
    names = ("cluster", "n_items", "weight", "delta", "precision_delta", "recall_delta")
    own = {name: row[name] for name in names}
    for name, key in (("before", cmp.baseline), ("after", run)):
        own[name] = {"outcome": row.get(f"{key}.outcome"), "n_parts": row.get(f"{key}.n_parts")}
    opened = None
    if row["cluster"] is not None:
        try:
            found = cmp.cluster(
                "true", row["cluster"], columns=asked.columns[:MOST_COLUMNS], members=asked.members
            )
            grid = found.grid()
            rows = [{"cells": each} for each in grid.rows]
            opened = {"header": grid.header, "rows": rows, "lines": found.notes()}
        except NotKeptError:
            pass
    return {"id": anchor("true", row["cluster"]), **own, "opened": opened}


# -- The document ----------------------------------------------------------------------------------


def comparison_document(content: Content) -> Document:
    """Return the page of a comparison, from its content."""
    runs, named_runs = content["runs"], content["n_runs"]
    facts = [
        (label(each["run"]) + (", the baseline" if k == 0 else ""), each["names"].get("prediction") or "")
        for k, each in enumerate(runs)
    ]
    facts += [("Runs", f"{len(runs)} of {named_runs} shown")] if named_runs > len(runs) else []
    common = " that all runs score" if content["align"] == "common" else ""
    facts += [
        ("Truth", content["truth"] or "the truth"),
        ("Scored", counted(content["n_items"], "item") + common),
    ]
    made = command_blocks(content["command"])
    for each in runs:
        made += [Heading(each["run"]), *origin(each)]
    changed_blocks = list(_changed_clusters(content["movers"], content["baseline"]))
    sections = [
        Section("verdict", "Verdict", list(_verdict(content))),
        Section("differences", "Differences", list(_differences(content))),
        Section("slices", "Slices", list(_slices_of_runs(content["slices"]))),
        Section("clusters", "Clusters that changed", changed_blocks),
        definitions_section(content["definitions"]),
        Section("origin", "How it was made", made),
    ]
    head: list[Block] = [Prose([content["verdict"]["lead"]], "lead"), Facts(facts, "sides")]
    return Document(head, [each for each in sections if each.blocks])


def _verdict(content: Content) -> Iterator[Block]:
    """Yield the sentences, the ranking and the scores of the runs."""
    yield Prose(content["verdict"]["sentences"], "lead")
    yield ranking_grid(content["ranking"])
    names, own = content["score_names"], content["has_own_f1"]
    keys = ["run", "n_items", "n_clusters", *names]
    rows = [[*(row[key] for key in keys), *row["own_f1"]] for row in content["scores"]]
    header = ["run", "items", "clusters", *names, *["own f1", "f1 if alone"] * own]
    forms = ["name", "count", "count", *["score"] * (len(names) + 2 * own)]
    yield Grid(header, rows, 1, forms, "Scores of each run")
    if own:
        yield Prose([
            "Own f1 is of all items that a run scores; f1 if alone, if the items of the truth that it lacks were "
            "singletons in it."
        ], "note")  # fmt: skip
    yield from notices(content)


def _differences(content: Content) -> Iterator[Block]:
    """Yield the differences of each run from the baseline, as a chart and a table."""
    less = f"less {label(content['baseline'])}"
    text = "Clusters that all runs treat alike cancel out, so a small difference can be significant."
    yield Prose([f"{content['verdict']['text']} {text}"], "note")
    columns = [
        ("score", "score", "text"),
        ("verdict", "said", "text"),
        ("before", "baseline_value", "score"),
        ("now", "experiment_value", "score"),
        ("difference", "delta", "delta"),
        ("±", "se", "error"),
        ("low", "low", "delta"),
        ("high", "high", "delta"),
    ]
    for k, name in enumerate(content["experiments"]):
        rows = [row for row in content["deltas"]["rows"] if row["experiment"] == name]
        yield Heading(f"{label(name)} {less}")
        text = "Lines are intervals; a filled dot holds; a hollow one does not, or has no known error."
        said = f"Forest plot: {label(name)} {less}, as the table below has it"
        yield Chart(f"deltas-{k}", "deltas", (rows,), said, "Difference of each score", text)
        yield Grid.of(rows, columns, about=f"Differences of {label(name)}")


def _slices_of_runs(slices: Content) -> Iterator[Block]:
    """Yield each slicing: the differences of a score as a chart, and all scores as a table."""
    if slices["rows"]:
        yield about_slicings(slices, "Those that add most to the difference of all items come first.")
    for k, slicing in enumerate(slices["rows"]):
        rows, scores = slicing["rows"], slicing["scores"]
        yield from slicing_head(slicing, "rows")
        if scores and rows:
            which = "F1" if scores[-1] == "f1" else scores[-1]
            said = f"Forest plot: difference of {scores[-1]} by {label(slicing['by'])}, as the table below has it"
            text = "Lines reach two standard errors to either side; a filled dot is farther than that from 0."
            text += " The dashed line is all items." * bool(slicing["overall"])
            title = f"Difference of {which} in each slice"
            yield Chart(f"slices-{k}", "slice_deltas", (slicing, scores[-1]), said, title, text)
        header = ["run", *slicing["names"], "items"]
        header += [part for name in scores for part in (name, "difference", "±")]
        forms = [*["name"] * (1 + len(slicing["names"])), "count", *["score", "delta", "error"] * len(scores)]
        cells = [
            [row["run"], *row["slice"], row["n_items"],
             *(each[key] for each in row["scores"] for key in ("value", "delta", "se"))]
            for row in rows
        ]  # fmt: skip
        yield Grid(header, cells, 1, forms, about=f"By {slicing['by']}")


def _changed_clusters(movers: Content | None, baseline: str) -> Iterator[Block]:
    if not movers:
        return
    if "left_out" in movers:
        yield Prose([f"Clusters that changed are left out: {movers['left_out']}."], "note")
        return
    caption = f"True clusters by what they were in {label(baseline)} and are in {label(movers['run'])}"
    columns = [
        ("before", "before", "text"),
        ("now", "after", "text"),
        ("true clusters", "n_clusters", "count"),
    ]
    yield Grid.of(movers["flow"], columns, 2, caption=caption)
    yield Heading("True clusters that changed most")
    rows = movers["rows"]
    if not rows:
        yield Prose(["None changed."])
        return
    yield Prose([
        f"{len(rows)} of {count(movers['n'])}, by how far precision and recall of all items change through them, for "
        "better or worse. Each opens to its items, grouped by where the runs have them."
    ], "note")  # fmt: skip
    yield Clusters("true clusters that changed most", [_changed_cluster(row) for row in rows], printed=10)


def _changed_cluster(row: Content) -> Opened:
    """Return a true cluster with its contribution, and where each run has its items."""
    before, after, opened = row["before"], row["after"], row["opened"]
    text = f"{counted(row['n_items'], 'item')}, in {count(before['n_parts'])} then "
    text += counted(after["n_parts"], "cluster")
    costs = [(name, PAGE["delta"](row[f"{name}_delta"]), "") for name in ("precision", "recall")]
    blocks: list[Block] = [
        Prose(["The figures at the right are what it adds to precision and recall of all items."], "small")
    ]
    if opened:
        header = opened["header"]
        rows = [each["cells"] for each in opened["rows"]]
        blocks += [Grid(header, rows, 0, ["name"] * len(header), about="Members"), Prose(opened["lines"])]
    outcomes = [each["outcome"] for each in (before, after) if each["outcome"]]
    return Opened(row["id"], row["cluster"], outcomes, text, costs, None, blocks)
