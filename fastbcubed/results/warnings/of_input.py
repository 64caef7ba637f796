"""Warnings of what was given: the same data twice, or the two sides in the wrong order."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from fastbcubed.cells.cell_parts import NoCells
from fastbcubed.results.text.wording import count
from fastbcubed.results.warnings.notices import FEW_ITEMS, NOTE, WARNING, Notice
from fastbcubed.sources.tables import is_path

#: Words of file and column names that say which side it is.
TRUTH_WORDS = {"truth", "true", "gold", "golden", "reference", "gt", "labels", "labelled", "labeled"}
PREDICTION_WORDS = {"pred", "preds", "prediction", "predictions", "predicted", "output", "system", "response"}
#: Rows whose labels are compared where the two sides are alike: the first one tells different names apart.
ROWS_COMPARED = 1 << 16
#: A prediction with a tenth of the truth's items, and no others, may be the sample that was labelled.
SAMPLE = 0.1


def same_input(ev: Any) -> Iterator[Notice]:
    """Warn if truth and prediction are the same file, column or object; or have the same clusters of the same names."""
    n_items = ev.coverage.n_scored(ev.policies)
    source = ev._origin.same_source
    if source is not None and (ev._origin.by_name or n_items >= FEW_ITEMS):
        yield Notice(WARNING, f"Truth and prediction are the same {source}, so every score is perfect.", {})
    elif source is None and n_items >= FEW_ITEMS and _is_perfect(ev) and _same_names(ev):
        yield Notice(
            WARNING,
            "Truth and prediction have the same clusters under the same names: is one a copy of the other?",
            {},
        )


def _is_perfect(ev: Any) -> bool:
    """Tell whether each cluster is one of the other side; told from the number of cells where there are any."""
    table = ev.contingency
    if table.overlapping or isinstance(table, NoCells):
        return ev.coverage.complete and all(s["exact"] == s["clusters"] for s in ev._sides.values())
    return ev.coverage.complete and set(table.n_codes.values()) == {table.n_cells}


def _same_names(ev: Any) -> bool:
    """Tell whether the first items have equal labels on both sides; not if the items were not kept."""
    if not ev.has_items:
        return False
    items = ev.kept_items()
    rows = np.arange(min(len(items), ROWS_COMPARED))
    return bool(items.labels("true", rows).equals(items.labels("pred", rows)))


def maybe_swapped(ev: Any) -> Iterator[Notice]:
    """Note that names or sizes look as if truth and prediction were in the wrong order."""
    swap = "The truth comes first: if they are swapped, so are precision and recall."
    if ev._origin.swapped_names is not None:
        yield Notice(NOTE, f"{ev._origin.swapped_names} {swap}", {"by": "name"})
        return
    found = ev.coverage
    of_truth = found.n_common / (found.n_common + found.n_truth_only)
    if found.n_common >= FEW_ITEMS and not found.n_prediction_only and of_truth <= SAMPLE:
        yield Notice(
            NOTE,
            f"The prediction has {count(found.n_common)} of the truth's {count(found.n_common + found.n_truth_only)} "
            f"items and no others, as a labelled sample would. {swap}",
            {"by": "size"},
        )


def same_source(given: Any) -> str | None:
    """Return what both sides are, if they are one thing: "file", "column", "object"."""
    truth, prediction = given.truth, given.prediction
    if given.table is not None:
        return "column" if truth == prediction else None
    columns = [names for names in (given.item, given.cluster) if isinstance(names, tuple)]
    if any(names[0] != names[1] for names in columns if len(names) == 2):
        return None
    if is_path(truth) and is_path(prediction):
        return "file" if _same_file(os.fspath(truth), os.fspath(prediction)) else None
    return "object" if truth is prediction else None


def _same_file(a: str, b: str) -> bool:
    if a == b:
        return True
    try:
        return os.path.samefile(a, b)
    except (OSError, ValueError):
        return False


def swapped_names(given: Any) -> str | None:
    """Say that the name of one side is that of the other, if it is, and the other's is not."""
    names = [_name(side) for side in (given.truth, given.prediction)]
    looks = [_looks_like(name) for name in names]
    if "prediction" == looks[0] != looks[1]:
        return f"The truth is called {names[0]!r}, which sounds like a prediction."
    if "truth" == looks[1] != looks[0]:
        return f"The prediction is called {names[1]!r}, which sounds like a truth."
    return None


def _name(given: Any) -> str:
    if isinstance(given, str | os.PathLike):
        return os.path.basename(str(os.fspath(given)).rstrip("/"))
    return ", ".join(given) if isinstance(given, list) and all(isinstance(n, str) for n in given[:8]) else ""


def _looks_like(name: str) -> str | None:
    """Return the side that a name sounds like, if it is one.

    Examples
    --------
    >>> _looks_like("pred_2021.parquet"), _looks_like("gold.csv"), _looks_like("truth_vs_pred.csv")
    ('prediction', 'truth', None)
    """
    words = set(re.split(r"[^a-z]+", name.lower()))
    sounds = [bool(words & TRUTH_WORDS), bool(words & PREDICTION_WORDS)]
    if sounds[0] == sounds[1]:
        return None
    return "truth" if sounds[0] else "prediction"
