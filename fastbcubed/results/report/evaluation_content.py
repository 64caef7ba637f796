"""An evaluation as the content of a page: plain data, from the verdict to the members of the costliest clusters."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

from fastbcubed._version import __version__
from fastbcubed.cells.cell_parts import NoCells
from fastbcubed.errors import EvaluationWarning, FastBCubedError
from fastbcubed.results.gates.gating import Gate
from fastbcubed.results.listings.opening import chosen_columns
from fastbcubed.results.report.asked import Asked
from fastbcubed.results.report.clusters_content import clusters_content
from fastbcubed.results.report.definitions_content import believe, definitions_content, manifest_content
from fastbcubed.results.report.shortening import shortened
from fastbcubed.results.report.sides_content import extremes, sides_content
from fastbcubed.results.report.slices_content import by_size_content, drawn_scores, slices_content
from fastbcubed.results.text.verdict import HEADLINE, outcomes, verdict

#: Version of the layout of what is embedded in a page.
LAYOUT = 1
NO_INTERVAL = {"se": None, "low": None, "high": None}
#: Entries of a listing of messages.
MESSAGES = 30


def evaluation_content(ev: Any, asked: Asked, gates: Sequence[Gate] = ()) -> dict[str, Any]:
    """Return the content of the page of an evaluation."""
    if asked.columns:
        chosen_columns(ev, asked.columns)
    with warnings.catch_warnings():  # what they say is on the page
        warnings.simplefilter("ignore", EvaluationWarning)
        content = {
            **head("evaluation", asked.title or title_of(ev.names)),
            "names": ev.names,
            "n_items": ev.summary["true"]["items"],
            "weighted": ev.contingency.weighted,
            "overlapping": ev.contingency.overlapping,
            "verdict": verdict_content(ev),
            "gates": gates_content(gates),
            "overall": dict(ev.overall),
            "coverage": _coverage(ev),
            "warnings": {"n": len(ev.warnings), "rows": ev.warnings[:MESSAGES]},
            "sides": sides_content(ev),
            "by_size": by_size_content(ev),
            "slices": slices_content(ev, asked.by),
            "clusters": clusters_content(ev, asked),
            "repairs": repairs_content(ev, asked.worst),
            "definitions": definitions_content(ev),
            "origin": manifest_content(ev),
        }
    found: dict[str, Any] = shortened(content)
    return found


def gates_content(gates: Sequence[Gate]) -> dict[str, Any]:
    """Return what gates came to."""
    return {"rows": [{**gate.to_dict(), "text": gate.line} for gate in gates]}


def head(kind: str, title: str) -> dict[str, Any]:
    """Return what says of content what it is."""
    return {
        "format": "fastbcubed report",
        "layout": LAYOUT,
        "fastbcubed": __version__,
        "kind": kind,
        "title": title,
    }


def title_of(names: Mapping[str, Any]) -> str:
    """Return what is evaluated, by the names of files without their folders.

    Examples
    --------
    >>> title_of({"truth": "data/truth.parquet", "prediction": "runs/new.parquet"}), title_of({})
    ('new against truth', 'Evaluation')
    """
    stems = [stem(name) if (name := names.get(side)) else "" for side in ("prediction", "truth")]
    given = all(stems) and names["truth"] != "the truth" and names["prediction"] != "the prediction"
    return " against ".join(stems) if given else "Evaluation"


def stem(name: str) -> str:
    """Return what a file is called without its folders and ending, or a column of a table without the table.

    Examples
    --------
    >>> stem("runs/new.parquet"), stem("the truth ('true_id' of all.parquet)")
    ('new', 'true_id')
    """
    column = re.fullmatch(r"the \w+ \((['\"])(.*)\1 of .*\)", name, re.DOTALL)
    return PurePath(name).stem if column is None else column[2]


def verdict_content(ev: Any) -> dict[str, Any]:
    """Return the first sentences, and the scores of the headline with intervals, beside those of trivial runs."""
    known = ev.intervals_at_hand()
    names = [name for name in HEADLINE if name in ev.overall] or drawn_scores(ev)
    scores = [
        {"score": name, "label": HEADLINE.get(name, name), "value": ev.overall[name]}
        | known.get(name, NO_INTERVAL)
        for name in names
    ]
    return {
        "sentences": [*verdict(ev), believe(ev)],
        "outcomes": {"lines": outcomes(ev)},
        "scores": scores,
        "extremes": extremes(ev),
        "units": None if (found := ev.errors_at_hand()) is None else found.units._asdict(),
    }


def repairs_content(ev: Any, limit: int) -> dict[str, Any] | None:
    """Return which clusters to mend first; None where that is not defined or not known."""
    if ev.contingency.overlapping or isinstance(ev.contingency, NoCells) or not limit:
        return None
    try:
        found = ev.repairs_at_hand(limit)
    except FastBCubedError:  # there are no labels, or no room
        return None
    if found is None:
        return None
    return {
        "rows": found.to_pylist(),
        "start": {name: ev.overall[name] for name in HEADLINE if name in ev.overall},
    }


def _coverage(ev: Any) -> dict[str, Any]:
    found: dict[str, Any] = ev.to_dict()["coverage"]
    return found
