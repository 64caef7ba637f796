"""Warnings of a diff: those of an evaluation that apply to it, in the words of a diff."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from fastbcubed._version import __version__
from fastbcubed.align.policies import Coverage
from fastbcubed.cells.cell_parts import NoCells
from fastbcubed.diff_runs.diff_document import MEANT, OUTCOMES, PLACES, SIDES, in_diff
from fastbcubed.diff_runs.diff_listings import FIGURES, changes
from fastbcubed.errors import Message, MetricError, NotKeptError, arg
from fastbcubed.inputs.pair import CODES as OF_INPUT
from fastbcubed.metrics.score import Metric
from fastbcubed.render.wording import count, percent
from fastbcubed.results.evaluation import Evaluation
from fastbcubed.results.evaluation_base import Evaluated
from fastbcubed.results.evaluation_scores import ALWAYS
from fastbcubed.results.slices import rows_for_json
from fastbcubed.results.summary import Scores
from fastbcubed.results.table import HasTable, Table, refuse_table_verb
from fastbcubed.results.warnings import NOTE, WARNING, found_in
from fastbcubed.runtime.attributes import cached_property, documented

if TYPE_CHECKING:
    from fastbcubed.diff_runs.judgement import Judgement, Verdict

#: Warnings of an evaluation that say something of a diff, too; and what they say there, where words do not suffice.
TOLD: dict[str, str] = {
    "same-input": "Baseline and experiment are the same data, so that nothing has changed.",
    "few-ids-match": "",
    "all-singleton-truth": "Every item is alone in the baseline, so that nothing can be split. Check that its column "
    "of clusters is one, and not a column of ids.",
    "unlinked-alone": "",
    "giant-cluster": "",
    "slices-without-scores": "",
    "small-slice": "",
}
#: Where the truth labels less of the items, what it says of the others is worth a warning.
MOSTLY_LABELLED, ALL_BUT_FEW = 0.5, 0.99


def cautions(ev: Evaluated, verdict: Verdict | None) -> list[dict[str, Any]]:
    """Return warnings and notes of a diff: code, level, message, figures."""
    chosen = [code for code in TOLD if code != "same-input" or ev._origin.same_source is not None]
    found = [
        {**each, "message": TOLD[each["code"]] or in_diff(each["message"])} for each in found_in(ev, chosen)
    ]
    inputs = [note for note in ev._input_notes if note["code"] in OF_INPUT]
    found += [{**note, **_of_side(note), "message": in_diff(note["message"])} for note in inputs]
    return found if verdict is None else [*found, *_partly_labelled(verdict)]


def _of_side(note: Mapping[str, Any]) -> dict[str, str]:
    """Return the side that a note is about, if it is about one."""
    known = {place: side for side, place in PLACES.items()}
    return {"side": known[note["side"]]} if note.get("side") in known else {}


def _partly_labelled(verdict: Verdict) -> list[dict[str, Any]]:
    """Return a note, or a warning, that the truth labels a part of the items alone."""
    n = verdict.n_items + verdict.n_unlabelled
    share = verdict.n_items / n
    if share >= ALL_BUT_FEW or verdict.unlabelled == "outside":
        return []
    message = (
        f"The truth labels {percent(share)} of the {count(n)} items: it judges what happened among these, and the "
        "others are left out of all clusters that it judges. If true clusters are complete, so that no other item "
        f"belongs to them, pass {arg('unlabelled', 'outside')}."
    )
    level = WARNING if share < MOSTLY_LABELLED else NOTE
    return [
        {
            "code": "few-items-labelled",
            "level": level,
            "message": Message(message),
            "share": share,
            "n_items": n,
        }
    ]


#: Scores of a diff that are computed where none are named, and those that judge it.
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
    """Scores by name; merge_distance and split_distance are those of a diff."""

    def named(self, name: str) -> str | None:
        """Return under which name a score was computed that also goes by this one; None if it was not."""
        return MEANT[name] if MEANT.get(name) in self else super().named(name)


@dataclass(frozen=True)
class SharedItems:
    """How far baseline and experiment have the same items, before any policy; weights are NaN if not known.

    Attributes
    ----------
    n_common, n_gone, n_new : int
        Items of both, of the baseline alone, and of the experiment alone.
    weight_common, weight_gone, weight_new : float
        Their weight; their number where there are no weights.
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
        """Return the coverage of an evaluation in the words of a diff."""
        of_items = found.n_common, found.n_truth_only, found.n_prediction_only
        weights = found.weight_common, found.weight_truth_only, found.weight_prediction_only
        return cls(*of_items, *weights, found.n_null, found.n_noise, found.n_duplicates)

    @property
    def baseline_coverage(self) -> float:
        """Share of the weight of the baseline whose items the experiment has."""
        return _share(self.weight_common, self.weight_gone)

    @property
    def experiment_coverage(self) -> float:
        """Share of the weight of the experiment whose items the baseline has; NaN if it is not known."""
        return _share(self.weight_common, self.weight_new)


def _share(common: float, alone: float) -> float:
    return common / (common + alone) if common + alone else 1.0


@dataclass(eq=False, repr=False)
class Diffed(HasTable):
    """Attributes of a diff; described at `Diff`."""

    evaluation: Evaluation
    judgement: Judgement | None = None
    judging: list[Metric] = field(default_factory=list)
    truth: str | None = None
    not_computed: dict[str, str] = field(default_factory=dict)
    #: what was saved of what cannot be worked out again
    saved: Mapping[str, Any] = field(default_factory=dict)

    def __getattr__(self, name: str) -> float:
        if not name.startswith("_") and "evaluation" in self.__dict__:
            if (known := self.overall.named(name)) is not None:
                return float(self.overall[known])
        refuse_table_verb(name, "a diff", '.changes() and .clusters("experiment")')
        raise AttributeError(
            f"a diff has no attribute or computed score {name!r}; .metric({name!r}) computes a score"
        )

    def __dir__(self) -> list[str]:
        return documented(self, self.overall)

    def __getstate__(self) -> dict[str, Any]:
        state = {name: value for name, value in self.__dict__.items() if name != "known_changes"}
        if self.judgement is not None:
            state |= {"judgement": self.judgement.at_rest(), "verdict": self.verdict}
        return state

    # Scores

    @cached_property
    def overall(self) -> Scores:
        """Scores over all items, by name."""
        found = dict(self.evaluation.overall)
        return DiffScores(found if self.verdict is None else found | dict(self.verdict.scores))

    @property
    def metrics(self) -> list[Metric]:
        """The scores that tables show."""
        return [*self.evaluation.metrics, *self.judging]

    @cached_property
    def verdict(self) -> Verdict | None:
        """The truth's judgement of all items; None without a truth."""
        if self.judgement is None or self.saved.get("verdict") is not None:
            return self.saved.get("verdict")
        return self.judgement.verdict(self.judging)

    def verdict_scores(self, *names: str) -> list[float]:
        """Return scores that judge the change; NaN for one that is not known."""
        verdict = self.verdict
        known = {} if verdict is None else dict(verdict.scores)
        missing = [name for name in names if name not in known]
        if missing and self.judgement is not None:
            known |= self.judgement.overall(self._judging(missing))
        return [known.get(name, float("nan")) for name in names]

    @staticmethod
    def _judging(names: list[str]) -> list[Metric]:
        from fastbcubed.metrics.registry import METRICS

        return [METRICS[name] for name in names]

    @cached_property
    def rates(self) -> tuple[float, float]:
        """The split rate and the merge rate."""
        found = []
        for name in ("split_rate", "merge_rate"):
            known = self.evaluation.overall.named(name) is not None or not isinstance(
                self.evaluation.contingency, NoCells
            )
            found.append(float(self.evaluation.metric(name)) if known else float("nan"))
        return found[0], found[1]

    @cached_property
    def _judging_errors(self) -> dict[str, float]:
        """Standard errors of the scores that judge the change."""
        if self.judgement is not None:
            return self.judgement.errors(self.judging)
        if self.verdict is not None and "errors" not in self.saved:
            raise NotKeptError(
                "standard errors of the scores that judge the change were not kept; save with "
                f"{arg('keep', 'items')}, or ask for .errors before you save"
            )
        return dict(self.saved.get("errors", {}))

    def errors_at_hand(self) -> dict[str, float]:
        """Return standard errors of the scores that judge the change, if they are known or quickly computed."""
        if "_judging_errors" in self.__dict__ or "errors" in self.saved:
            return self._judging_errors
        if self.judgement is None or self.judgement.joint.cells.n_cells > ALWAYS:
            return {}
        return self._judging_errors

    # What was compared

    @cached_property
    def names(self) -> dict[str, str | None]:
        """The names of baseline, experiment and, if given, truth."""
        found: dict[str, str | None] = {}
        for side, place in PLACES.items():
            found[side] = self.evaluation.names.get(place)
        return found if self.truth is None else {**found, "truth": self.truth}

    @cached_property
    def coverage(self) -> SharedItems:
        """How far baseline and experiment have the same items."""
        return SharedItems.of(self.evaluation.coverage)

    @property
    def definition(self) -> dict[str, Any]:
        """The definition of the scores: average, weighting, policies."""
        found = self.evaluation.definition
        del found["beta"]
        found["unmatched"] = {side: found["unmatched"][place] for side, place in PLACES.items()}
        return found if self.verdict is None else {**found, "unlabelled": self.verdict.unlabelled}

    @cached_property
    def summary(self) -> dict[str, dict[str, Any]]:
        """Items, clusters, singletons, largest, size quantiles, unchanged clusters and outcomes, of each side."""
        found = {}
        for side, old in SIDES.items():
            figures = {
                ("unchanged" if k == "exact" else k): v for k, v in self.evaluation.summary[old].items()
            }
            if "outcomes" in figures:
                figures["outcomes"] = {OUTCOMES[old][name]: n for name, n in figures["outcomes"].items()}
            found[side] = figures
        return found

    @cached_property
    def known_changes(self) -> pa.Table | None:
        """The table of `changes`; None where it is unknown or undefined."""
        if "changes" in self.saved:
            columns = {"became": pa.string(), **FIGURES}
            return (
                None
                if self.saved["changes"] is None
                else pa.Table.from_pylist(self.saved["changes"], pa.schema(columns))
            )
        table = self.evaluation.contingency
        return None if table.overlapping or isinstance(table, NoCells) else changes(self.evaluation)

    @cached_property
    def warnings(self) -> list[dict[str, Any]]:
        """Warnings and notes: code, level (warning or note), message, figures."""
        if "warnings" in self.saved:
            return list(self.saved["warnings"])
        found = cautions(self.evaluation, self.verdict)
        if self.judgement is None or self.verdict is None:
            return found
        return [*self.judgement.lacking(self.verdict), *found]

    @property
    def sliced(self) -> dict[str, Table]:
        """Slices that were requested when the diff was made."""
        return self.evaluation.sliced

    @property
    def manifest(self) -> dict[str, Any]:
        """How this came about: versions, engine, arguments that were given, rows and fingerprint of either side."""
        found = dict(self.evaluation.manifest)
        sides = {side: found.pop(place) for side, place in PLACES.items()}
        return {**found, **sides}

    # Output

    def to_dict(self) -> dict[str, Any]:
        """Return the content of `to_json` as plain dicts, lists, numbers and strings."""
        verdict, table = self.verdict, self.known_changes
        found: dict[str, Any] = {
            "fastbcubed": __version__,
            **{side: self.names.get(side) for side in SIDES},
            "definition": self.definition,
            "overall": dict(self.overall),
            "coverage": {
                **asdict(self.coverage),
                "baseline_coverage": self.coverage.baseline_coverage,
                "experiment_coverage": self.coverage.experiment_coverage,
            },
            "summary": self.summary,
            "changes": None if table is None else table.to_pylist(),
            "slices": {name: rows_for_json(each) for name, each in self.sliced.items()},
            "warnings": self.warnings,
            "not_computed": self.not_computed,
            "manifest": self.manifest,
        }
        if verdict is None:
            return found
        judged = asdict(verdict)
        del judged["scores"]
        errors = self.errors_at_hand()
        return {**found, "truth": self.truth, "verdict": judged, **({"errors": errors} if errors else {})}

    def _require_judged(self, name: str) -> Judgement:
        if self.judgement is None:
            raise MetricError(
                f"{name} judges a change by a truth; pass fb.diff(..., truth=truth)"
                if self.verdict is None
                else f"{name} was not computed before the diff was saved, and the items were not kept"
            )
        return self.judgement
