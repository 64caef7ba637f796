"""A diff as it is saved: beside its evaluation, what cannot be worked out from that again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from fastbcubed.changes.diffed import Diffed
from fastbcubed.changes.judgement import Judgement, Verdict
from fastbcubed.changes.labelling import labelled_again
from fastbcubed.changes.naming import TRUE_CLUSTER
from fastbcubed.errors import FileFormatError
from fastbcubed.metrics.registry import METRICS
from fastbcubed.results.evaluation import Evaluation
from fastbcubed.results.listings.summary import as_json

#: Where the manifest of a saved result has what belongs to a diff; without it, it is that of an evaluation.
MARK = "diff"


def state_of(diff: Diffed) -> dict[str, Any]:
    """Return what the manifest holds of a diff, as JSON has it."""
    found = diff.to_dict()
    state: dict[str, Any] = {
        name: found.get(name) for name in ("changes", "warnings", "not_computed", "truth", "verdict")
    }
    state |= {"errors": found.get("errors", {}), "judging": [metric.name for metric in diff.judging]}
    if diff.verdict is not None:
        state["verdict"]["scores"] = dict(diff.verdict.scores)
    return dict(json.loads(as_json(state, None)))


def parts_of(ev: Evaluation, state: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a diff is made of, from its evaluation and what the manifest holds."""
    verdict = None if state["verdict"] is None else _verdict(state["verdict"])
    saved = {"changes": state["changes"], "warnings": state["warnings"], "verdict": verdict}
    if state["errors"]:
        saved["errors"] = {name: _number(value) for name, value in state["errors"].items()}
    judgement = None
    if verdict is not None and ev.has_items and ev.policies.nulls != "singleton":
        if TRUE_CLUSTER not in ev.kept_items().attribute_sides().get("attributes", ()):
            raise FileFormatError("the items have no true cluster, by which the diff was judged")
        judgement = Judgement(ev, labelled_again(ev), verdict.unlabelled)
    return {
        "evaluation": ev,
        "judgement": judgement,
        "judging": [METRICS[name] for name in state["judging"] if METRICS[name].takes_three],
        "truth": state["truth"],
        "not_computed": dict(state["not_computed"]),
        "saved": saved,
    }


def _verdict(figures: Mapping[str, Any]) -> Verdict:
    """Return a verdict that was saved."""
    found = {each.name: figures[each.name] for each in fields(Verdict)}
    found["scores"] = {name: _number(value) for name, value in found["scores"].items()}
    found["levels"] = {
        side: {name: _number(value) for name, value in own.items()} for side, own in found["levels"].items()
    }
    return Verdict(**found)


def _number(value: Any) -> float:
    return float("nan") if value is None else float(value)
