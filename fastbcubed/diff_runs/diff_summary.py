"""The figures of a diff, its coverage, scores and warnings, and its saved form, which is that of an evaluation."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import pyarrow as pa

from fastbcubed.align.policies import Coverage
from fastbcubed.diff_runs.cluster_changes import changes, changes_of_rows
from fastbcubed.diff_runs.judgement import Judgement, Verdict, labelled_again
from fastbcubed.diff_runs.vocabulary import MEANT, OF_PLACES, OUTCOMES, PLACES, SIDES, TRUE_CLUSTER, in_diff
from fastbcubed.errors import FileFormatError, Message, NotKeptError, arg
from fastbcubed.inputs.reading_notes import CODES as OF_INPUT
from fastbcubed.metrics.metric import Metric
from fastbcubed.metrics.registry import METRICS
from fastbcubed.render.json import plain
from fastbcubed.render.number_formats import count, percent
from fastbcubed.results.evaluation import Evaluation
from fastbcubed.results.figures import Scores
from fastbcubed.results.intervals import Interval
from fastbcubed.results.notices import NOTE, WARNING
from fastbcubed.results.result import ScoredResult
from fastbcubed.results.standard_errors import ALWAYS
from fastbcubed.results.table import Table
from fastbcubed.results.warnings import found_in, from_saved, to_saved
from fastbcubed.runtime.object_attributes import cached_property
from fastbcubed.runtime.saved_figures import NUMBER, NUMBERS, numbers_in, require_shape, texts_in, with_nan

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


def cautions(diff: DiffData) -> list[dict[str, Any]]:
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
        Numbers of items on both sides, only in the baseline, and only in the experiment.
    weight_common, weight_gone, weight_new : float
        Weights of the items on both sides, only in the baseline, and only in the experiment (without weights, the
        numbers of items); NaN if unknown.
    n_null, n_noise, n_duplicates : int
        For both sides together, the numbers of rows whose cluster is null, that have the noise label, and that were
        dropped because they repeat an earlier row.
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
        """Share of the baseline's total weight that is on items of both sides."""
        return _share(self.weight_common, self.weight_gone)

    @property
    def experiment_coverage(self) -> float:
        """Share of the experiment's total weight that is on items of both sides; NaN if unknown."""
        return _share(self.weight_common, self.weight_new)


def _share(common: float, alone: float) -> float:
    return common / (common + alone) if common + alone else 1.0


class DiffData(ScoredResult):
    """The evaluation and the judgement of a diff, and the data used by its listings, ids and document."""

    def __init__(
        self,
        evaluation: Evaluation,
        *,
        judgement: Judgement | None = None,
        judging: Sequence[Metric] = (),
        truth: str | None = None,
        not_computed: Mapping[str, str],
        saved: Mapping[str, Any] | None = None,
    ) -> None:
        """Make a diff of an evaluation, its judgement by a truth, and saved figures that cannot be computed again."""
        self.evaluation, self.not_computed = evaluation, not_computed
        self._reading_of_truth: dict[str, Any] | None = None
        self._judgement, self._judging, self._truth = judgement, list(judging), truth
        self._saved = saved or {}
        self._shown_slices: dict[str, Table] | None = None

    @cached_property
    def names(self) -> dict[str, str | None]:
        """The names of baseline, experiment and, if given, truth."""
        found = {side: self.evaluation.names.get(place) for side, place in PLACES.items()}
        return found if self._truth is None else {**found, "truth": self._truth}

    @cached_property
    def coverage(self) -> SharedItems:
        """The extent to which baseline and experiment have the same items."""
        return SharedItems.of(self.evaluation.coverage)

    @property
    def definition(self) -> dict[str, Any]:
        """How the scores are defined: average, weighting, policies."""
        found = self.evaluation.definition
        del found["beta"]
        found["unmatched"] = {side: found["unmatched"][place] for side, place in PLACES.items()}
        return found if self.verdict is None else {**found, "unlabelled": self.verdict.unlabelled}

    @cached_property
    def summary(self) -> dict[str, dict[str, Any]]:
        """By side, numbers of items, clusters, singletons and unchanged clusters, sizes and, if known, outcomes."""
        found = {}
        for side, old in SIDES.items():
            of_side = self.evaluation.summary[old]
            figures = {("unchanged" if k == "exact" else k): v for k, v in of_side.items()}
            if "outcomes" in figures:
                figures["outcomes"] = {OUTCOMES[old][name]: n for name, n in figures["outcomes"].items()}
            found[side] = figures
        return found

    @cached_property
    def warnings(self) -> list[dict[str, Any]]:
        """Warnings and notes, each with its code, level (warning or note), message and values."""
        return list(self._saved["warnings"]) if "warnings" in self._saved else cautions(self)

    @property
    def reading(self) -> dict[str, Any]:
        """How the columns of baseline, experiment and, if given, truth were read; see `Evaluation`."""
        if "reading" in self._saved:
            return dict(self._saved["reading"])
        found = {side: self.evaluation.reading.get(place) for side, place in PLACES.items()}
        return found if self._truth is None else {**found, "truth": self._reading_of_truth}

    @property
    def manifest(self) -> dict[str, Any]:
        """Provenance: versions, engine, the arguments passed, and the number of rows and fingerprint of each side."""
        found = dict(self.evaluation.manifest)
        return found | {side: found.pop(place) for side, place in PLACES.items()}

    @cached_property
    def overall(self) -> Scores:
        """Scores over all items, by name."""
        found = dict(self.evaluation.overall)
        return DiffScores(found if self.verdict is None else found | dict(self.verdict.scores))

    @property
    def metrics(self) -> list[Metric]:
        """The scores that are shown in tables."""
        return [*self.evaluation.metrics, *self._judging]

    @cached_property
    def verdict(self) -> Verdict | None:
        """How right the change is according to the truth, over all items; None without a truth."""
        if self._judgement is None or self._saved.get("verdict") is not None:
            return self._saved.get("verdict")
        return self._judgement.verdict(self._judging)

    @property
    def sliced(self) -> dict[str, Table]:
        """The slices requested in the call of `diff`."""
        return self.evaluation.sliced

    @cached_property
    def _rates(self) -> tuple[float, float]:
        ev = self.evaluation
        known = ev.contingency.has_cells
        split, merged = (
            float(ev.metric(name)) if known or ev.overall.named(name) is not None else math.nan
            for name in ("split_rate", "merge_rate")
        )
        return split, merged

    @cached_property
    def _changes(self) -> pa.Table | None:
        """The table of `changes`; None if unknown, or undefined because clusters overlap."""
        if "changes" in self._saved:
            known: pa.Table | None = self._saved["changes"]
            return known
        table = self.evaluation.contingency
        return None if table.overlapping or not table.has_cells else changes(self.evaluation)

    @cached_property
    def _judging_errors(self) -> dict[str, float]:
        if self._judgement is not None:
            return dict(self._judgement.errors(self._judging).of)
        if self.verdict is not None and "errors" not in self._saved:
            raise NotKeptError(
                "standard errors of the scores that judge the change were not kept; save with "
                f"{arg('keep', 'items')}, or access .errors before saving"
            )
        return dict(self._saved.get("errors", {}))


def verdict_scores(diff: DiffData, *names: str) -> list[float]:
    """Return these scores that judge the change; NaN if unknown."""
    known = {} if diff.verdict is None else dict(diff.verdict.scores)
    missing = [METRICS[name] for name in names if name not in known]
    if missing and diff._judgement is not None:
        known |= diff._judgement.overall(missing)
    return [known.get(name, math.nan) for name in names]


# -- In files --------------------------------------------------------------------------------------


def known_errors(diff: DiffData) -> dict[str, float]:
    """Return standard errors of the scores that judge the change, by name, if known or quickly computed."""
    if not diff.evaluation.standard_errors.shown:
        return {}
    if "_judging_errors" in diff.__dict__ or "errors" in diff._saved:
        return diff._judging_errors
    quick = diff._judgement is not None and diff._judgement.joint.cells.n_cells <= ALWAYS
    return diff._judging_errors if quick else {}


def known_intervals(diff: DiffData) -> dict[str, Interval]:
    """Return the intervals of overall scores, by name, if known or quickly computed."""
    found, judged = diff.evaluation.standard_errors.intervals_at_hand(), known_errors(diff)
    if diff._judgement is not None and judged:
        errors, metrics = diff._judgement.errors(diff._judging), diff._judging
        return found | {m.name: errors.interval(m, diff.overall[m.name], 0.95) for m in metrics}
    return (diff._saved.get("intervals", {}) if judged else {}) | found


#: The key of a diff's entry in the manifest of a saved result; without this entry, the result is an evaluation.
MARK = "diff"
#: An outcome of clusters in that entry, and the shares of the weight that kept their ids.
_CHANGE = {"became": str, "n_clusters": int, "n_items": int, "weight": NUMBER, "share": NUMBER}
_ID_STABILITY = {"as_named": float, "best": float}
#: The judgement of a change in that entry.
_VERDICT = {
    **dict.fromkeys(("n_items", "n_unlabelled"), int),
    **dict.fromkeys(("weight", "weight_unlabelled"), float),
    "levels": dict.fromkeys(SIDES, NUMBERS),
    "scores": NUMBERS,
}


def state_of(diff: DiffData, found: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entry of a diff in the manifest, as plain values for JSON; `found` is its own JSON."""
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
    require_shape(ev.manifest, dict.fromkeys(PLACES.values()), "manifest")
    require_shape(state["verdict"], (_VERDICT, None), "verdict")
    figures: Any = state["verdict"] and with_nan(state["verdict"])
    verdict: Verdict | None = figures and Verdict(
        **{each.name: figures[each.name] for each in fields(Verdict)}
    )
    rows = state["changes"]
    require_shape(rows, ([_CHANGE], None), "changes")
    require_shape(state.get("id_stability"), (_ID_STABILITY, None), "id_stability")
    changes = None if rows is None else changes_of_rows(rows)
    saved = {"changes": changes, "warnings": from_saved(state["warnings"]), "verdict": verdict}
    saved["id_stability"] = state.get("id_stability")
    if "reading" in state:
        require_shape(state["reading"], {}, "reading")
        saved["reading"] = state["reading"]
    if state["errors"]:
        saved["errors"] = numbers_in(state["errors"])
        known = state.get("intervals", {})
        saved["intervals"] = {name: Interval(**numbers_in(ends)) for name, ends in known.items()}
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
        "not_computed": texts_in(state["not_computed"]),
        "saved": saved,
    }
