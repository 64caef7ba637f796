"""A comparison as the content of a page: the better run, where it is better, and outcomes of true clusters."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fastbcubed.compare_runs.comparison_text import changed, lead, note, own_f1, ranking_grid, sentences
from fastbcubed.compare_runs.runs import LACKING
from fastbcubed.errors import EvaluationWarning, MetricError, NotKeptError
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
from fastbcubed.render.wording import count, counted, label
from fastbcubed.results.display import REPEATED
from fastbcubed.results.evaluation_document import command_blocks, definitions_section, origin
from fastbcubed.results.gates import Gate
from fastbcubed.results.page import Asked
from fastbcubed.results.page_content import (
    MESSAGES,
    MOST_COLUMNS,
    SLICINGS,
    Content,
    anchor,
    command,
    definitions_content,
    gates_content,
    head,
    key_of,
    manifest_content,
)
from fastbcubed.results.section_page import about_slicings, notices, slicing_head
from fastbcubed.results.slices import SliceKey, name_columns, slice_name

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
            "verdict": {"lead": lead(cmp), "sentences": sentences(cmp), "text": note(cmp)},
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
        for name, each in cmp.coverage_of.items()
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
    told = dict(first.manifest.get("arguments") or {})
    given = told.pop("runs", None)
    paths = {name: ev.names.get("prediction") for name, ev in cmp.runs.items()}
    if given != {name: str(path) for name, path in paths.items()}:
        return None
    sides = {"truth": first.names.get("truth")} | {
        f"run {name}": f"{name}={path}" for name, path in paths.items()
    }
    return command(sides, told, "compare", {side: "the truth" for side in sides})


def _scores(cmp: Any) -> list[str]:
    """Return the scores to show: not those that are 1 minus another one."""
    known = [m.name for m in cmp.metrics]
    return [name for name in known if REPEATED.get(name) not in known]


def deltas_content(cmp: Any) -> Iterator[dict[str, Any]]:
    """Yield the differences, and whether each one that holds is an improvement."""
    shown, best = _scores(cmp), {m.name: m.best for m in cmp.metrics}
    for row in cmp._deltas().to_pylist():
        if row["score"] in shown:
            sense = {"higher": 1, "lower": -1}.get(best[row["score"]], 0) * row["delta"]
            verdict = None if not row["holds"] or not sense else "better" if sense > 0 else "worse"
            yield {**row, "best": best[row["score"]], "verdict": verdict, "said": verdict or _how_sure(row)}


def _how_sure(row: Mapping[str, Any]) -> str:
    """Return whether a difference that is for better or worse in no sure way holds."""
    if not row["delta"]:
        return "the same"
    if row["holds"] is None:
        return "error not known"
    return "holds" if row["holds"] else "may be chance"


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
    keys: dict[str, SliceKey] = {
        name: key_of(name_columns(table.column_names)) for name, table in cmp[cmp.baseline].sliced.items()
    }
    keys |= {slice_name(key): key for key in asked.by}
    rows = [_slicing(cmp, name, key) for name, key in list(keys.items())[:SLICINGS]]
    return {"n": len(keys), "rows": rows}


def _slicing(cmp: Any, name: str, key: SliceKey) -> dict[str, Any]:
    table = cmp.slices(key, order_by="delta")
    names = [column for column in name_columns(table.column_names) if column != "run"]
    scores = [m.name for m in cmp.metrics if f"{m.name}_delta" in table.column_names]
    shown = [each for each in ("precision", "recall", "f1") if each in scores] or scores[:3]
    rows = [
        {"run": row["run"], "slice": [row[each] for each in names], "n_items": row["n_items"],
         "scores": [{"score": each, "value": row[each], "delta": row[f"{each}_delta"],
                     "se": row.get(f"{each}_delta_se")} for each in shown]}
        for row in table.slice(0, SLICES).to_pylist()
    ]  # fmt: skip
    return {
        "by": name, "names": names, "scores": shown, "n": table.num_rows, "rows": rows,
        "overall": _overall_deltas(cmp, shown),
    }  # fmt: skip


def _overall_deltas(cmp: Any, scores: list[str]) -> dict[str, float]:
    """Return the differences over all items, where there is one run that differs."""
    if len(cmp.experiments) != 1:
        return {}
    run, baseline = cmp[cmp.experiments[0]], cmp[cmp.baseline]
    return {score: run.overall[score] - baseline.overall[score] for score in scores}


def _movers(cmp: Any, asked: Asked) -> dict[str, Any] | None:
    """Return the true clusters that changed most in the first experiment, with the outcomes before and after."""
    if not asked.worst or not cmp.experiments:
        return None
    run = cmp.experiments[0]
    try:
        every = cmp.clusters(run=run)
    except (NotKeptError, MetricError):
        return None
    rows = changed(every.slice(0, asked.worst)).to_pylist()
    return {
        "run": run, "n": every.num_rows, "flow": _flow(every, cmp.baseline, run),
        "rows": [_mover(cmp, row, asked, run) for row in rows],
    }  # fmt: skip


def _flow(table: Any, baseline: str, run: str) -> list[dict[str, Any]]:
    """Return how many true clusters went from one outcome to another, the most first."""
    columns = [f"{name}.outcome" for name in (baseline, run)]
    if any(column not in table.column_names for column in columns):
        return []
    counted = Counter(zip(*(table[column].to_pylist() for column in columns), strict=True))
    return [{"before": a, "after": b, "n_clusters": n} for (a, b), n in sorted(counted.items(), key=_most)]


def _most(entry: tuple[tuple[str, str], int]) -> tuple[int, tuple[str, str]]:
    return -entry[1], entry[0]


def _mover(cmp: Any, row: Mapping[str, Any], asked: Asked, run: str) -> dict[str, Any]:
    """Return a true cluster, and where each run has its items."""
    own = {
        name: row[name]
        for name in ("cluster", "n_items", "weight", "delta", "precision_delta", "recall_delta")
    }
    for name, key in (("before", cmp.baseline), ("after", run)):
        own[name] = {"outcome": row.get(f"{key}.outcome"), "n_parts": row.get(f"{key}.n_parts")}
    opened = None
    if row["cluster"] is not None:
        try:
            found = cmp.cluster(
                "true", row["cluster"], columns=asked.columns[:MOST_COLUMNS], members=asked.members
            )
            grid = found.grid()
            opened = {
                "header": grid.header,
                "rows": [{"cells": each} for each in grid.rows],
                "lines": found.notes(),
            }
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
    sections = [
        Section("verdict", "Verdict", list(_verdict(content))),
        Section("differences", "Differences", list(_differences(content))),
        Section("slices", "Slices", list(_slices_of_runs(content["slices"]))),
        Section(
            "clusters",
            "Clusters that changed",
            list(_changed_clusters(content["movers"], content["baseline"])),
        ),
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
        header = [
            "run",
            *slicing["names"],
            "items",
            *(part for name in scores for part in (name, "difference", "±")),
        ]
        forms = (
            "name",
            *["name"] * len(slicing["names"]),
            "count",
            *["score", "delta", "error"] * len(scores),
        )
        cells = [
            [row["run"], *row["slice"], row["n_items"],
             *(each[key] for each in row["scores"] for key in ("value", "delta", "se"))]
            for row in rows
        ]  # fmt: skip
        yield Grid(header, cells, 1, forms, about=f"By {slicing['by']}")


def _changed_clusters(movers: Content | None, baseline: str) -> Iterator[Block]:
    """Yield what became of the true clusters, and those that changed most."""
    if not movers:
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
    """Return a true cluster with what it changes, and where each run has its items."""
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
