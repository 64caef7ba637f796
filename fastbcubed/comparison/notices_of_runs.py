"""What a reader of a comparison should know of its runs; of several runs with a warning of one code it is said once."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator
from itertools import permutations
from typing import TYPE_CHECKING, Any

from fastbcubed.results.gates.baseline import covered
from fastbcubed.results.text.wording import count, label, percent, score
from fastbcubed.results.warnings.notices import FEW_ITEMS, NOTE, WARNING
from fastbcubed.results.warnings.of_coverage import FLATTERED

if TYPE_CHECKING:
    from fastbcubed.comparison.runs import Runs

#: The warning of items that runs lack, in place of the one that each of their evaluations gives.
LACKING, INSTEAD_OF = "runs-lack-items", "dropping-truth-flatters"
#: Runs that its message names: those that lack most, and those whose F1 would change most.
SHOWN = 5
#: A smaller change of F1 is not seen in what is printed.
VISIBLE = 1e-5


def notices_of_runs(comparison: Runs) -> list[dict[str, Any]]:
    """Return the warnings and notes: that runs lack items, then each of the runs', once, in their order.

    Where messages of one kind differ from run to run, that of the first is given, and says whose it is.
    """
    found: dict[tuple[Any, ...], dict[str, dict[str, Any]]] = {}
    for name, ev in comparison.runs.items():
        for said in ev.warnings:
            kind = said["code"], said["level"], *(said.get(key) for key in ("side", "by", "score"))
            if said["code"] != INSTEAD_OF:
                found.setdefault(kind, {})[name] = said
    notices = []
    for by_run in found.values():
        first, said = next(iter(by_run.items()))
        differ = any(each["message"] != said["message"] for each in by_run.values())
        details = f" (These are the details of {label(first)}.)" if differ else ""
        notices.append({**said, "message": said["message"] + details, "runs": list(by_run)})
    return [*_lacking(comparison), *notices]


def told(said: dict[str, Any], comparison: Runs, plain: Callable[[str], str] = str) -> str:
    """Return the message of a warning or note, `plain` in words, after the runs that it is of."""
    if said["code"] == LACKING:
        return plain(said["message"])
    every = 1 < len(said["runs"]) == len(comparison)
    return f"{'all runs' if every else ', '.join(said['runs'])}: {plain(said['message'])}"


def _lacking(comparison: Runs) -> Iterator[dict[str, Any]]:
    """Warn if runs drop items of the truth, and scores would be lower if these were alone, or runs lack unlike shares.

    The bounds are those of one evaluation, and of the baseline of a gate.
    """
    lacking = [name for name in comparison if comparison.n_dropped(name)]
    if not lacking:
        return
    figures, losses = {}, {}
    for name, own in comparison.own_scores.items():
        shown = comparison[name].overall.get("f1", own["f1"])
        share = covered(comparison.coverage_of[name])
        counts = {"n_items": comparison.n_dropped(name), "truth_coverage": share}
        figures[name] = {**counts, "shown_f1": shown, **own}
        losses[name] = 1 - share if math.isnan(own["f1_if_alone"]) else shown - own["f1_if_alone"]
    unlike = any(comparison.lacks_more(*pair) for pair in permutations(comparison, 2))
    loss, of_truth = max(losses.values()), comparison.coverage_of[lacking[0]]
    if loss <= VISIBLE and not unlike:
        return
    few = of_truth.n_common + of_truth.n_truth_only < FEW_ITEMS
    level = WARNING if (unlike or loss >= FLATTERED) and not few else NOTE
    most = sorted(lacking, key=lambda name: -comparison.n_dropped(name))
    parts = [
        f"{label(name)} {count(figures[name]['n_items'])} ({percent(1 - figures[name]['truth_coverage'])})"
        for name in most[:SHOWN]
    ]
    message = f"Items of the truth that runs lack are dropped: {', '.join(parts)}{_more(lacking)}."
    named = list(figures)
    if len(figures) > SHOWN:
        named = sorted(figures, key=losses.__getitem__, reverse=True)[:SHOWN]
    if known := [name for name in named if not math.isnan(figures[name]["f1_if_alone"])]:
        kinds = ("shown_f1", "f1", "f1_if_alone") if comparison.align == "common" else ("f1", "f1_if_alone")
        what = "common items, own items" if len(kinds) == 3 else "own items"
        of = "; ".join(f"{label(name)} {', '.join(score(figures[name][k]) for k in kinds)}" for name in known)
        about = "" if all(each["exact"] for each in figures.values()) else ", about,"
        message += f" F1 of {what}, and{about} if missing items were alone: {of}{_more(figures)}."
    message += ' If runs lack items that nothing was linked to, pass unmatched={"truth": "singleton"}.'
    yield {"code": LACKING, "level": level, "message": message, "runs": lacking, "by_run": figures}


def _more(runs: Collection[str]) -> str:
    return f" and {count(len(runs) - SHOWN)} more" if len(runs) > SHOWN else ""
