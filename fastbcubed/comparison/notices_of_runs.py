"""What a reader of a comparison should know of its runs; of several runs with a warning of one code it is said once."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fastbcubed.results.text.wording import label
from fastbcubed.results.warnings.of_coverage import OfRun, runs_lack_items

if TYPE_CHECKING:
    from fastbcubed.comparison.runs import Runs

#: The warning of items that runs lack, in place of the one that each of their evaluations gives.
LACKING, INSTEAD_OF = "runs-lack-items", "dropping-truth-flatters"


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
    if not any(map(comparison.n_dropped, comparison)):
        return notices
    runs = {
        name: OfRun(
            comparison.coverage_of[name], own, comparison[name].overall.get("f1", math.nan), drops=True
        )
        for name, own in comparison.own_scores.items()
    }
    return [*runs_lack_items(runs, common=comparison.align == "common"), *notices]


def told(said: dict[str, Any], comparison: Runs, plain: Callable[[str], str] = str) -> str:
    """Return the message of a warning or note, `plain` in words, after the runs that it is of."""
    if said["code"] == LACKING:
        return plain(said["message"])
    every = 1 < len(said["runs"]) == len(comparison)
    return f"{'all runs' if every else ', '.join(said['runs'])}: {plain(said['message'])}"
