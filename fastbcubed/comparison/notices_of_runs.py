"""What a reader of a comparison should know of its runs; what holds for several of them is told once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastbcubed.results.evaluation import Evaluation


def notices_of_runs(runs: Mapping[str, Evaluation]) -> list[tuple[list[str], dict[str, Any]]]:
    """Return each warning and note, in the order of the runs, with the names of those that it is of."""
    found: dict[tuple[Any, ...], tuple[list[str], dict[str, Any]]] = {}
    for name, ev in runs.items():
        for said in ev.warnings:
            key = said["code"], said["level"], said["message"]
            found.setdefault(key, ([], said))[0].append(name)
    return list(found.values())


def told_of_runs(runs: Mapping[str, Evaluation]) -> list[tuple[str, dict[str, Any]]]:
    """Return each warning and note with what a message calls the runs that it is of."""
    return [
        ("all runs" if 1 < len(names) == len(runs) else ", ".join(names), said)
        for names, said in notices_of_runs(runs)
    ]
