"""Coverage, scores and warnings of a diff, and its saved form, which is that of an evaluation."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from fastbcubed.align.policies import Coverage
from fastbcubed.diff_runs.judgement import Judgement, Verdict, labelled_again
from fastbcubed.diff_runs.vocabulary import MEANT, OF_PLACES, TRUE_CLUSTER, in_diff
from fastbcubed.errors import FileFormatError, Message, arg
from fastbcubed.inputs.reading_notes import CODES as OF_INPUT
from fastbcubed.metrics.registry import METRICS
from fastbcubed.render.json import plain
from fastbcubed.render.number_formats import count, percent
from fastbcubed.results.evaluation import Evaluation
from fastbcubed.results.figures import Scores
from fastbcubed.results.intervals import Interval
from fastbcubed.results.notices import NOTE, WARNING
from fastbcubed.results.standard_errors import ALWAYS
from fastbcubed.results.warnings import found_in, from_saved, to_saved

if TYPE_CHECKING:
    from fastbcubed.diff_runs.diff_result import Diff

#: Warnings of an evaluation that also apply to a diff, with the message if it is not the same in a diff's words.
TOLD: dict[str, str] = {
    "same-input": "Baseline and experiment are the same data, so nothing has changed.",
    "few-ids-match": "",
    "all-singleton-truth": (
        "Every item is a singleton in the baseline, so nothing can be split. Check that its cluster column "
        "does not contain item ids."
    ),
    "unlinked-alone": "",
    "giant-cluster": "",
    "labels-like-nulls": "",
    "labels-with-spaces": "",
    "slices-without-scores": "",
    "slices-of-nulls": "",
    "small-slice": "",
}
#: If the truth labels a smaller share of the items than these, there is a warning, or a note.
MOSTLY_LABELLED, ALL_BUT_FEW = 0.5, 0.99


def cautions(diff: Diff) -> list[dict[str, Any]]:
    """Return warnings and notes of a diff: code, level, message, figures."""
    ev, verdict = diff.evaluation, diff.verdict
    chosen = [code for code in TOLD if code != "same-input" or ev.origin.same_source is not None]
    found = []
    for each in (*found_in(ev, chosen), *(note for note in ev.origin.notes if note["code"] in OF_INPUT)):
        side = {"side": OF_PLACES[each["side"]]} if each.get("side") in OF_PLACES else {}
        found.append({**each, **side, "message": TOLD.get(each["code"]) or in_diff(each["message"])})
    if verdict is not None:
        found += _partly_labelled(verdict)
    if verdict is None or diff._judgement is None:
        return found
    return [*diff._judgement.lacking(verdict), *found]


def _partly_labelled(verdict: Verdict) -> list[dict[str, Any]]:
    """Return a note, or a warning, that the truth labels only some of the items."""
    n = verdict.n_items + verdict.n_unlabelled
    share = verdict.n_items / n
    if share >= ALL_BUT_FEW or verdict.unlabelled == "outside":
        return []
    message = Message(
        f"The truth labels {percent(share)} of the {count(n)} items. Only changes among these are judged; "
        "the other items are left out of all judged clusters. If true clusters are complete, so that no "
        f"other item belongs to them, pass {arg('unlabelled', 'outside')}."
    )
    level = WARNING if share < MOSTLY_LABELLED else NOTE
    figures = {"share": share, "n_items": n}
    return [{"code": "few-items-labelled", "level": level, "message": message, **figures}]


#: The default scores of a diff, and those that judge it.
DEFAULT = (
    "split_rate", "merge_rate", "split_jaccard_distance", "merge_jaccard_distance", "jaccard_distance",
    "affected_rate",
)  # fmt: skip
JUDGING = (
    "good_split_rate", "bad_split_rate", "good_merge_rate", "bad_merge_rate", "good_split_distance",
    "bad_split_distance", "good_merge_distance", "bad_merge_distance", "good_distance", "bad_distance",
    "delta_precision", "delta_recall", "iq",
)  # fmt: skip


class DiffScores(Scores):
    """The scores of a diff by name; merge_distance and split_distance have the meaning that they have in a diff."""

    def named(self, name: str) -> str | None:
        """Return the name under which a score was computed, given any of its names; None if it was not computed."""
        return MEANT[name] if MEANT.get(name) in self else super().named(name)


@dataclass(frozen=True)
class SharedItems:
    """The extent to which baseline and experiment have the same items, before any policy.

    Attributes
    ----------
    n_common, n_gone, n_new : int
        Numbers of items in both, only in the baseline, and only in the experiment.
    weight_common, weight_gone, weight_new : float
        The weights of these items, or their numbers if there are no weights; NaN if unknown.
    n_null, n_noise, n_duplicates : int
        Rows of either side whose cluster is null, that have the noise label, and that repeat an earlier one.
    """

    n_common: int
    n_gone: int
    n_new: int
    weight_common: float
    weight_gone: float
    weight_new: float
    n_null: int = 0
    n_noise: int = 0
    n_duplicates: int = 0

    @classmethod
    def of(cls, found: Coverage) -> SharedItems:
        """Return the coverage of an evaluation under the names of a diff."""
        return cls(*(getattr(found, each.name) for each in fields(found)))

    @property
    def baseline_coverage(self) -> float:
        """Share of the baseline's weight that is in items of the experiment."""
        return _share(self.weight_common, self.weight_gone)

    @property
    def experiment_coverage(self) -> float:
        """Share of the experiment's weight that is in items of the baseline; NaN if unknown."""
        return _share(self.weight_common, self.weight_new)


def _share(common: float, alone: float) -> float:
    return common / (common + alone) if common + alone else 1.0


def verdict_scores(diff: Diff, *names: str) -> list[float]:
    """Return these scores that judge the change; NaN if unknown."""
    known = {} if diff.verdict is None else dict(diff.verdict.scores)
    missing = [METRICS[name] for name in names if name not in known]
    if missing and diff._judgement is not None:
        known |= diff._judgement.overall(missing)
    return [known.get(name, math.nan) for name in names]


# -- In files --------------------------------------------------------------------------------------


def known_errors(diff: Diff) -> dict[str, float]:
    """Return standard errors of the scores that judge the change, by name, if known or quickly computed."""
    if not diff.evaluation.standard_errors.shown:
        return {}
    if "_judging_errors" in diff.__dict__ or "errors" in diff._saved:
        return diff._judging_errors
    quick = diff._judgement is not None and diff._judgement.joint.cells.n_cells <= ALWAYS
    return diff._judging_errors if quick else {}


def known_intervals(diff: Diff) -> dict[str, Interval]:
    """Return the intervals of overall scores, by name, if known or quickly computed."""
    found, judged = diff.evaluation.standard_errors.intervals_at_hand(), known_errors(diff)
    if diff._judgement is not None and judged:
        errors, metrics = diff._judgement.errors(diff._judging), diff._judging
        return found | {m.name: errors.interval(m, diff.overall[m.name], 0.95) for m in metrics}
    return (diff._saved.get("intervals", {}) if judged else {}) | found


#: The key of a diff's entry in the manifest of a saved result; without this entry, the result is an evaluation.
MARK = "diff"


def state_of(diff: Diff) -> dict[str, Any]:
    """Return the entry of a diff in the manifest, as plain values for JSON."""
    found = diff.to_dict()
    state: dict[str, Any] = {
        name: found.get(name)
        for name in ("changes", "id_stability", "warnings", "not_computed", "reading", "truth", "verdict")
    }
    state |= {name: found.get(name, {}) for name in ("errors", "intervals")}
    state |= {"judging": [metric.name for metric in diff._judging]}
    if diff.verdict is not None:
        state["verdict"]["scores"] = dict(diff.verdict.scores)
    return dict(plain(state | {"warnings": to_saved(diff.warnings)}))


def parts_of(ev: Evaluation, state: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that restore a diff from its evaluation and its entry in the manifest."""
    figures = state["verdict"]
    verdict = figures and Verdict(**{each.name: _with_nan(figures[each.name]) for each in fields(Verdict)})
    saved = {"changes": state["changes"], "warnings": from_saved(state["warnings"]), "verdict": verdict}
    saved["id_stability"] = state.get("id_stability")
    if "reading" in state:
        saved["reading"] = state["reading"]
    if state["errors"]:
        saved["errors"] = _with_nan(state["errors"])
        known = state.get("intervals", {})
        saved["intervals"] = {name: Interval(**_with_nan(ends)) for name, ends in known.items()}
    judgement = None
    if verdict is not None and ev.has_items and ev.policies.nulls != "singleton":
        if TRUE_CLUSTER not in ev.kept_items().attribute_sides().get("attributes", ()):
            raise FileFormatError("the items lack the true clusters against which the diff was judged")
        judgement = Judgement(ev, labelled_again(ev), verdict.unlabelled)
    return {
        "evaluation": ev,
        "judgement": judgement,
        "judging": [METRICS[name] for name in state["judging"] if METRICS[name].takes_three],
        "truth": state["truth"],
        "not_computed": dict(state["not_computed"]),
        "saved": saved,
    }


def _with_nan(value: Any) -> Any:
    """Return figures from JSON, with NaN instead of null."""
    if isinstance(value, Mapping):
        return {name: _with_nan(each) for name, each in value.items()}
    return math.nan if value is None else value
