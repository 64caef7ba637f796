"""What a reader of a comparison should know of its runs; what holds for several of them is told once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastbcubed.results.evaluation import Evaluation


def notices_of_runs(runs: Mapping[str, Evaluation]) -> list[tuple[str, dict[str, Any]]]:
    """Return each warning and note, in the order of the runs, with the names of those that it is of."""
    found: dict[tuple[Any, ...], tuple[list[str], dict[str, Any]]] = {}
    for name, ev in runs.items():
        for said in ev.warnings:
            key = said["code"], said["level"], said["message"]
            found.setdefault(key, ([], said))[0].append(name)
    return [(_named(names, len(runs)), said) for names, said in found.values()]


def _named(names: list[str], n_runs: int) -> str:
    return "all runs" if 1 < len(names) == n_runs else ", ".join(names)
