"""The public score functions of labels: their common steps, signatures and documentation."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import lru_cache, partial
from inspect import cleandoc
from math import inf
from textwrap import fill
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeVar

from numpy.typing import ArrayLike

from fastbcubed.align.policies import Policies
from fastbcubed.align.rows import Alignment, align
from fastbcubed.cells.build import build_cells
from fastbcubed.cells.contingency import MAX_PAIRS, Contingency, as_cells
from fastbcubed.errors import Argument, OptionError, Word, rewording
from fastbcubed.inputs.clustering import Clustering
from fastbcubed.inputs.pair import Given, Pair, open_pair
from fastbcubed.inputs.side_columns import NAMES
from fastbcubed.metrics.change import judged
from fastbcubed.metrics.coreference import FIGURES, SCORES, Three
from fastbcubed.metrics.entropy import entropy, v_of
from fastbcubed.metrics.metric import REFERENCES, Metric, Page, f_measure, weight_of_precision
from fastbcubed.metrics.registry import METRICS
from fastbcubed.metrics.sums import CellSums, overall
from fastbcubed.overlap.cover import build_cover
from fastbcubed.runtime.arguments import number
from fastbcubed.runtime.threads import Pool

if TYPE_CHECKING:
    from fastbcubed.cells.three_way import Joint

#: Accepted types of each side where clusters may overlap.
Labels = ArrayLike | Mapping[Any, Any] | Clustering
Result = TypeVar("Result", covariant=True)
Average = Literal["arithmetic", "geometric", "min", "max", "joint"]


class Score(Protocol):
    """A function from two labelings, or from a contingency instead, to a score."""

    def __call__(
        self,
        labels_true: ArrayLike | None = None,
        labels_pred: ArrayLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        contingency: Contingency | None = None,
    ) -> float:
        """Return the score."""


class ScoreOfDiff(Protocol):
    """A function from a baseline and an experiment, or from a contingency instead, to a score."""

    def __call__(
        self,
        labels_baseline: ArrayLike | None = None,
        labels_experiment: ArrayLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        contingency: Contingency | None = None,
    ) -> float:
        """Return the score."""


class ScoreOfThree(Protocol):
    """A function from a baseline, an experiment and the truth to a score."""

    def __call__(
        self,
        labels_baseline: ArrayLike,
        labels_experiment: ArrayLike,
        labels_true: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Return the score."""


class ScoreOfBeta(Protocol[Result]):
    """A function from two labelings, or from a contingency instead, to a score that favours recall as `beta` grows."""

    def __call__(
        self,
        labels_true: ArrayLike | None = None,
        labels_pred: ArrayLike | None = None,
        *,
        beta: float = ...,
        sample_weight: ArrayLike | None = None,
        contingency: Contingency | None = None,
    ) -> Result:
        """Return the score or scores."""


class ScoreOfCovers(Protocol):
    """A function from two clusterings that may overlap, or from a contingency instead, to a score."""

    def __call__(
        self,
        labels_true: Labels | None = None,
        labels_pred: Labels | None = None,
        *,
        sample_weight: ArrayLike | Mapping[Any, float] | None = None,
        contingency: Contingency | None = None,
    ) -> float:
        """Return the score."""


class ScoreOfCoversAndBeta(Protocol[Result]):
    """A function from two clusterings that may overlap to a score that favours recall as `beta` grows."""

    def __call__(
        self,
        labels_true: Labels | None = None,
        labels_pred: Labels | None = None,
        *,
        beta: float = ...,
        sample_weight: ArrayLike | Mapping[Any, float] | None = None,
        contingency: Contingency | None = None,
    ) -> Result:
        """Return the score or scores."""


class ScoreInBase(Protocol):
    """A function from two labelings to a score based on entropies, with logarithms to a given base."""

    def __call__(
        self,
        labels_true: ArrayLike | None = None,
        labels_pred: ArrayLike | None = None,
        *,
        base: float = ...,
        sample_weight: ArrayLike | None = None,
        contingency: Contingency | None = None,
    ) -> float:
        """Return the score."""


class ScoreOfAverage(Protocol):
    """A function from two labelings to a score that is normalized by an average of two entropies."""

    def __call__(
        self,
        labels_true: ArrayLike | None = None,
        labels_pred: ArrayLike | None = None,
        *,
        average_method: Average = "arithmetic",
        sample_weight: ArrayLike | None = None,
        contingency: Contingency | None = None,
    ) -> float:
        """Return the score."""


class CoreferenceScore(Protocol[Result]):
    """A function from two labelings to a coreference score, where the caller sets the value of 0 / 0."""

    def __call__(
        self,
        labels_true: ArrayLike | None = None,
        labels_pred: ArrayLike | None = None,
        *,
        zero_division: float = 0.0,
        sample_weight: ArrayLike | None = None,
        contingency: Contingency | None = None,
    ) -> Result:
        """Return the score or scores."""


Function = TypeVar("Function", bound=Callable[..., Any])

#: The public names of `fastbcubed.metrics`.
PUBLIC: list[str] = []


def public(function: Function, name: str = "", documentation: str = "") -> Function:
    """Make a function, or a class that one returns, part of `fastbcubed.metrics`: set its name and documentation."""
    function.__module__ = "fastbcubed.metrics"
    function.__name__ = function.__qualname__ = name or function.__name__
    function.__doc__ = documentation.rstrip("\n") or cleandoc(function.__doc__ or "")
    PUBLIC.append(function.__name__)
    return function


@public
class PrecisionRecallFscore(NamedTuple):
    """Precision, recall and their F1."""

    precision: float
    recall: float
    f1: float


@public
class PrecisionRecallFbeta(NamedTuple):
    """Precision, recall and their F for a `beta` other than 1."""

    precision: float
    recall: float
    fbeta: float


def as_contingency(
    labels_true: Labels | None,
    labels_pred: Labels | None,
    sample_weight: Any,
    contingency: Contingency | None,
    *sides: str,
    nulls: str = "raise",
) -> Contingency:
    """Return the cells of two labelings, or the contingency given instead; messages use the names `sides`."""
    if contingency is not None:
        return _given(labels_true, labels_pred, sample_weight, contingency)
    with Pool() as pool, _worded(CELLS, *sides):
        pair = _open(labels_true, labels_pred, sample_weight, *sides)
        return _build(pair, Policies(nulls=nulls), pool)


#: Calls that accept the arguments recommended by error messages, where score functions do not.
CELLS, DIFF = "contingency=fastbcubed.contingency(..., {})", "the labels to fastbcubed.diff(..., {})"


def _worded(call: str, *sides: str) -> AbstractContextManager[None]:
    """Reword error messages to say where arguments can be passed, and to use these names of the sides, if any."""
    names = dict(zip(("truth", "prediction"), sides, strict=False))

    def change(part: Any) -> Any:
        if isinstance(part, Argument) and part.name in ("overlapping", "nulls", "weighting"):
            return call.format(part)
        return names.get(part.name, part) if isinstance(part, Word) else part

    return rewording(change)


def as_cover(
    labels_true: Labels | None,
    labels_pred: Labels | None,
    sample_weight: Any,
    contingency: Contingency | None,
    *,
    always: bool = False,
) -> Contingency:
    """Return the cells of two clusterings that may overlap, or the contingency given instead.

    One label per item, by position, means that clusters do not overlap; with `always`, they are treated as a cover
    anyway.
    """
    if contingency is not None:
        return _given(labels_true, labels_pred, sample_weight, contingency)
    policies = Policies()
    with Pool() as pool, _worded(CELLS):
        pair = _open(labels_true, labels_pred, sample_weight, overlapping=True)
        if not always and pair.first[0].items is None:
            return _build(pair, policies, pool)
        covered = build_cover(pair, policies, pool, weighting="pointwise", max_pairs=MAX_PAIRS)
        return covered.cover


def _open(
    labels_true: Labels | None,
    labels_pred: Labels | None,
    weight: Any,
    *sides: str,
    overlapping: bool = False,
) -> Pair:
    if labels_true is None or labels_pred is None:
        raise OptionError("Pass labels_true and labels_pred, or contingency in their place.")
    names = (f"the {sides[0]}", f"the {sides[1]}") if sides else NAMES
    return open_pair(Given(labels_true, labels_pred, weight=weight, overlapping=overlapping, names=names))


def _build(pair: Pair, policies: Policies, pool: Pool) -> Contingency:
    rows = align(*pair.first, policies, pool, weight_table=pair.weight_table, narrow=True)
    return build_cells(rows, pool, weighting="pointwise", outside=False)


def as_joint(labels_baseline: Any, labels_experiment: Any, labels_true: Any, sample_weight: Any) -> Joint:
    """Return the joint cells of three labelings of the same items."""
    from fastbcubed.cells.three_way import join

    with Pool() as pool:

        def aligned(first: Any, second: Any, weight: Any, *sides: str) -> Alignment:
            with _worded(DIFF, *sides):
                pair = _open(first, second, weight, *sides)
                if pair.first[0].items is not None:
                    raise OptionError(
                        "labels_baseline, labels_experiment and labels_true must have one label per item, in the same "
                        "order; pass clusterings with item ids to fastbcubed.diff(baseline, experiment, truth=truth)"
                    )
                return align(*pair.first, Policies("raise", "raise"), pool, weight_table=pair.weight_table)

        rows = aligned(labels_baseline, labels_experiment, sample_weight, "baseline", "experiment")
        truth = aligned(labels_true, labels_baseline, None, "truth", "baseline")
        keys = truth.true_keys, rows.true_keys, rows.pred_keys
        return join(*keys, rows.weight, pool, weighting="pointwise")


def _given(labels_true: Any, labels_pred: Any, weight: Any, contingency: Any) -> Contingency:
    """Return the contingency given instead of labels; raise OptionError if labels were given as well."""
    if any(other is not None for other in (labels_true, labels_pred, weight)):
        raise OptionError(
            "contingency stands for labels_true, labels_pred and sample_weight, but some of them"
            " were given, too. Pass one or the other."
        )
    return as_cells(contingency)


def check_defined(contingency: Contingency, metrics: Sequence[Metric]) -> None:
    """Raise if a score is not defined for this input."""
    for metric in metrics:
        reason = metric.undefined(**contingency.how)
        if reason is not None:
            raise metric.not_defined(reason)


def compute(contingency: Contingency, metrics: Sequence[Metric], beta: float = 1.0) -> list[float]:
    """Return the scores of all items, in the given order; raise MetricError for a score that is not defined."""
    check_defined(contingency, metrics)
    with Pool() as pool:
        scores = overall(contingency, metrics, beta=beta, pool=pool)
    return [scores[metric.name] for metric in metrics]


_PAGE = """{summary}

Parameters
----------
{labels}
{options}sample_weight : array-like of shape (n_items,), optional
    {weight}
{contingency}
Returns
-------
{returns}

Raises
------
FastBCubedError
    If there are no items, if the two sides have different lengths, or if a label or a weight is
    missing or invalid. The errors listed below are subclasses of FastBCubedError.
{in_place}{undefined}
Notes
-----
{notes}

References
----------
{references}

Examples
--------
{example}
"""


class Option(NamedTuple):
    """An additional parameter of a function: its description, and when it raises OptionError."""

    text: str
    error: str


BETA = Option(
    "beta : float, default 1.0\n"
    "    Importance of recall relative to precision: 0 gives precision, and infinity gives recall.\n",
    ", or if beta is negative",
)
WEIGHT_OF_COMPLETENESS = Option(
    "beta : float, default 1.0\n"
    "    Weight of completeness relative to homogeneity, which is not squared, unlike in fbeta: 0 gives\n"
    "    homogeneity, and infinity gives completeness.\n",
    ", or if beta is negative",
)
SHARE_OF_CLUSTER_ENTROPY = Option(
    "beta : float, default 0.5\n    Weight of cluster_entropy in the mean, from 0 to 1.\n",
    ", or if beta is not between 0 and 1",
)
BASE = Option(
    "base : float, default {}\n    Base of the logarithms: 2 for bits, `math.e` for nats.\n",
    ", or if the base is invalid",
)
AVERAGE = Option(
    'average_method : {"arithmetic", "geometric", "min", "max", "joint"}\n'
    "    Normalizer of the score: the arithmetic or geometric mean of H(C) and H(K), the smaller or the larger\n"
    "    of H(C) and H(K), or the joint entropy.\n",
    ", or if average_method is unknown",
)
ZERO_DIVISION = Option(
    "    A null label on one side means that the item is missing from that side.\n"
    "zero_division : float, default 0.0\n"
    "    Value of 0 / 0, which occurs only in MUC (if all entities have one mention) and BLANC (if there are no\n"
    "    links).\n",
    ", or if zero_division is not a number",
)
NO_OPTION = Option("", "")

_LABELS = """labels_true, labels_pred : array-like of shape (n_items,)
    Cluster label of each item, in the same order on both sides."""

_LABELS_OF_DIFF = """labels_baseline, labels_experiment : array-like of shape (n_items,)
    Cluster label of each item in the baseline and in the experiment, in the same order."""

_LABELS_OF_THREE = """labels_baseline, labels_experiment, labels_true : array-like of shape (n_items,)
    Cluster label of each item in the baseline, the experiment and the truth, in the same order."""

_CONTINGENCY = """contingency : Contingency, table or matrix, optional
    Alternative to labels and weights: the cells, as returned by `fastbcubed.contingency`; a dense or sparse
    matrix of counts with one row per true cluster; or a table with the columns true_cluster, pred_cluster and n_items.
"""

_IN_PLACE = """OptionError
    If labels and a contingency are both given or both missing{or_option}.
"""

_LABELS_OF_COVERS = """labels_true, labels_pred : array-like of shape (n_items,), dict or Clustering
    Cluster label or set of labels of each item, in the same order on both sides; or a dict from item to
    cluster or set of clusters; or a clustering with one row per membership."""

_MATRIX = (
    "For each item, tp, fp, fn and tn are the total weights of the items that share its cluster on both sides"
    " (including the item itself), only on the predicted side, only on the true side, and on neither side."
)


def document(
    metric: Metric,
    called: str = "",
    *,
    option: Option = NO_OPTION,
    returns: str = "",
    on_covers: bool = False,
) -> str:
    """Return the docstring of a score's function, named `called` if given, else like the score.

    `returns` describes what the function returns, if not the score alone; `on_covers` states whether the function takes
    overlapping clusterings.
    """
    page = metric.also[called] if called else Page()
    example = page.example or metric.example.replace(f"{metric.name}(", f"{called or metric.name}(")
    weight = "Positive weight of each item, used within clusters and in the mean over items."
    reasons = []
    if metric.unweighted_only:
        weight = "Not supported, because all items count equally in this score."
        reasons.append("there are weights")
    if metric.uses_tn or metric.labelled_only:
        reasons.append("the contingency counts items outside the truth")
    return _PAGE.format(
        summary=metric.summary,
        labels=_labels(metric, on_covers),
        options=option.text,
        weight=weight,
        returns=returns or f"float\n    {_range(metric)}",
        contingency="" if metric.takes_three else _CONTINGENCY,
        in_place="" if metric.takes_three else _IN_PLACE.format(or_option=option.error),
        undefined=f"MetricError\n    If {', or '.join(reasons)}.\n" if reasons else "",
        notes=_notes(metric, page.note),
        references=_wrap(f".. [1] {REFERENCES.get(metric.source, 'Defined by this library.')}"),
        example=cleandoc(example),
    )


def _labels(metric: Metric, on_covers: bool) -> str:
    if metric.takes_three:
        return _LABELS_OF_THREE
    return _LABELS_OF_COVERS if on_covers else _LABELS_OF_DIFF if metric.family == "diff" else _LABELS


def _range(metric: Metric) -> str:
    end = "." if metric.best == "neither" else f"; {metric.best} is better."
    if metric.high == inf:
        return f"At least {metric.low:g}{end}"
    if metric.low == -inf:
        return f"At most {metric.high:g}{end}"
    return f"From {metric.low:g} to {metric.high:g}{end}"


def _notes(metric: Metric, note: str) -> str:
    cost = "One pass over the items counts the cells; all later steps take time proportional to the number of cells"
    cost += ", or of items if the items have weights." if metric.family == "elm" else "."
    notes = [f"Definition: {metric.definition}.", cost]
    if metric.names_matrix:
        notes.insert(1, _MATRIX)
    if about := f"{metric.note} {note}".strip():
        notes.append(about)
    if metric.experimental:
        notes.append("Experimental: the definition was compiled from summaries of [1]_.")
    return "\n\n".join(map(_wrap, notes))


@lru_cache
def _wrap(text: str) -> str:
    indent = "   " if text.startswith("..") else ""
    return fill(text, 96, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


THREE = "PrecisionRecallFscore\n    Named tuple (precision, recall, f1)"


def score(name: str, called: str = "") -> Score:
    """Make the function of a score, under its own name or another of its names."""

    def score(
        labels_true: ArrayLike | None = None,
        labels_pred: ArrayLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        contingency: Contingency | None = None,
    ) -> float:
        table = as_contingency(labels_true, labels_pred, sample_weight, contingency)
        return compute(table, [METRICS[name]])[0]

    return public(score, called or name, document(METRICS[name], called))


def score_of_beta(name: str) -> ScoreOfBeta[float]:
    """Make the function of a score that depends on beta."""

    def score(
        labels_true: ArrayLike | None = None,
        labels_pred: ArrayLike | None = None,
        *,
        beta: float = 1.0,
        sample_weight: ArrayLike | None = None,
        contingency: Contingency | None = None,
    ) -> float:
        weight_of_precision(beta)  # raises before the work if there is no such beta
        table = as_contingency(labels_true, labels_pred, sample_weight, contingency)
        return compute(table, [METRICS[name].at(beta)], beta)[0]

    return public(score, name, document(METRICS[name], option=BETA))


def three_scores(f_score: str) -> ScoreOfBeta[PrecisionRecallFscore]:
    """Make the function that returns precision, recall and their F for a `beta`."""
    metrics = _rates(f_score)

    def scores(
        labels_true: ArrayLike | None = None,
        labels_pred: ArrayLike | None = None,
        *,
        beta: float = 1.0,
        sample_weight: ArrayLike | None = None,
        contingency: Contingency | None = None,
    ) -> PrecisionRecallFscore:
        weight_of_precision(beta)  # raises before the work if there is no such beta
        table = as_contingency(labels_true, labels_pred, sample_weight, contingency)
        return _with_f(compute(table, metrics), beta)

    return _public_three(scores, f_score)


def _rates(f_score: str) -> list[Metric]:
    stem = f_score.removesuffix("f1")
    return [METRICS[f"{stem}{name}"] for name in ("precision", "recall")]


def _with_f(rates: list[float], beta: float) -> PrecisionRecallFscore:
    p, r = rates
    named: Any = PrecisionRecallFscore if beta == 1 else PrecisionRecallFbeta
    found: PrecisionRecallFscore = named(p, r, float(f_measure(p, r, weight_of_precision(beta))))
    return found


def _public_three(scores: Function, f_score: str, *, on_covers: bool = False) -> Function:
    p, r = (metric.name for metric in _rates(f_score))
    together = replace(
        METRICS[f_score],
        summary=METRICS[f_score].summary.replace(
            "F1 of", "Precision, recall and F; by default, F is the F1 of"
        ),
        definition=f"P = {p}, R = {r}, F = 1 / (alpha / P + (1 - alpha) / R), with alpha = 1 / (1 + beta^2)",
    )
    name = f"{f_score.removesuffix('f1')}precision_recall_fscore"
    returns = f"{THREE}; with a `beta` other than 1, (precision, recall, fbeta)."
    return public(scores, name, document(together, name, option=BETA, returns=returns, on_covers=on_covers))


# Scores of a change
def score_of_diff(name: str) -> ScoreOfDiff:
    """Make the function of a score of a baseline and an experiment."""

    def score(
        labels_baseline: ArrayLike | None = None,
        labels_experiment: ArrayLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        contingency: Contingency | None = None,
    ) -> float:
        sides = "baseline", "experiment"
        table = as_contingency(labels_baseline, labels_experiment, sample_weight, contingency, *sides)
        return compute(table, [METRICS[name]])[0]

    return public(score, name, document(METRICS[name]))


def score_of_three(name: str) -> ScoreOfThree:
    """Make the function of a score of a baseline, an experiment and a truth."""

    def score(
        labels_baseline: ArrayLike,
        labels_experiment: ArrayLike,
        labels_true: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        joint = as_joint(labels_baseline, labels_experiment, labels_true, sample_weight)
        return compute(joint.cells, judged(joint, [METRICS[name]]))[0]

    return public(score, name, document(METRICS[name]))


# Scores of clusterings that may overlap
def score_of_covers(name: str) -> ScoreOfCovers:
    """Make the function of a score of overlapping clusterings."""

    def score(
        labels_true: Labels | None = None,
        labels_pred: Labels | None = None,
        *,
        sample_weight: ArrayLike | Mapping[Any, float] | None = None,
        contingency: Contingency | None = None,
    ) -> float:
        always = METRICS[name].covers_only
        cells = as_cover(labels_true, labels_pred, sample_weight, contingency, always=always)
        return compute(cells, [METRICS[name]])[0]

    return public(score, name, document(METRICS[name], on_covers=True))


def three_of_covers(f_score: str) -> ScoreOfCoversAndBeta[PrecisionRecallFscore]:
    """Make the function that returns precision, recall and their F for overlapping clusterings."""
    metrics = _rates(f_score)

    def scores(
        labels_true: Labels | None = None,
        labels_pred: Labels | None = None,
        *,
        beta: float = 1.0,
        sample_weight: ArrayLike | Mapping[Any, float] | None = None,
        contingency: Contingency | None = None,
    ) -> PrecisionRecallFscore:
        weight_of_precision(beta)
        always = metrics[0].covers_only
        cells = as_cover(labels_true, labels_pred, sample_weight, contingency, always=always)
        return _with_f(compute(cells, metrics), beta)

    return _public_three(scores, f_score, on_covers=True)


# Coreference
def coreference_scores(stem: str) -> CoreferenceScore[PrecisionRecallFscore]:
    """Make the function that returns precision, recall and F1 of a coreference score."""
    metric = METRICS[f"{stem}_f1"]

    def scores(
        labels_true: ArrayLike | None = None,
        labels_pred: ArrayLike | None = None,
        *,
        zero_division: float = 0.0,
        sample_weight: ArrayLike | None = None,
        contingency: Contingency | None = None,
    ) -> PrecisionRecallFscore:
        found = _coreference(stem, zero_division, labels_true, labels_pred, sample_weight, contingency)
        return PrecisionRecallFscore(*found)

    together = replace(
        metric,
        summary=f"Return {stem}_precision, {stem}_recall and their F1.",
        definition=f"P = {stem}_precision, R = {stem}_recall, F1 = {metric.definition}",
    )
    name = f"{stem}_precision_recall_fscore"
    return public(scores, name, document(together, name, option=ZERO_DIVISION, returns=f"{THREE}."))


def coreference_score(name: str) -> CoreferenceScore[float]:
    """Make the function of precision, recall or F1 of a coreference score."""
    stem, _, role = name.rpartition("_")
    position = FIGURES.index(role)

    def score(
        labels_true: ArrayLike | None = None,
        labels_pred: ArrayLike | None = None,
        *,
        zero_division: float = 0.0,
        sample_weight: ArrayLike | None = None,
        contingency: Contingency | None = None,
    ) -> float:
        found = _coreference(stem, zero_division, labels_true, labels_pred, sample_weight, contingency)
        return found[position]

    return public(score, name, document(METRICS[name], option=ZERO_DIVISION))


def _coreference(
    stem: str,
    zero_division: float,
    labels_true: ArrayLike | None,
    labels_pred: ArrayLike | None,
    sample_weight: ArrayLike | None,
    contingency: Contingency | None,
) -> Three:
    if not isinstance(zero_division, float) or not math.isnan(zero_division):
        zero_division = number(zero_division, "zero_division", "a finite number or NaN")
    table = as_contingency(labels_true, labels_pred, sample_weight, contingency, nulls="drop")
    check_defined(table, [METRICS[f"{stem}_f1"]])
    three = partial(SCORES[stem], zero_division=float(zero_division))
    with Pool() as pool:
        return replace(METRICS[f"{stem}_f1"], finalize=three).of_sums(CellSums(table, pool))


def score_in_base(name: str, called: str = "", *, base: float = 2.0) -> ScoreInBase:
    """Make the function of a score whose unit depends on the base of logarithms."""
    usual = base

    def score(
        labels_true: ArrayLike | None = None,
        labels_pred: ArrayLike | None = None,
        *,
        base: float = usual,
        sample_weight: ArrayLike | None = None,
        contingency: Contingency | None = None,
    ) -> float:
        base = number(base, "base", "a positive number other than 1", lambda b: 0 < b < math.inf and b != 1)
        table = as_contingency(labels_true, labels_pred, sample_weight, contingency)
        return compute(table, [entropy[name]])[0] * (math.log(2) / math.log(base))

    option = BASE._replace(text=BASE.text.format("2" if usual == 2 else "e"))
    return public(score, called or name, document(entropy[name], called, option=option))


def score_of_average(name: str, called: str = "") -> ScoreOfAverage:
    """Make the function of a score that is normalized by an average of the entropies."""
    of_average: Any = entropy[name].finalize

    def score(
        labels_true: ArrayLike | None = None,
        labels_pred: ArrayLike | None = None,
        *,
        average_method: Average = "arithmetic",
        sample_weight: ArrayLike | None = None,
        contingency: Contingency | None = None,
    ) -> float:
        table = as_contingency(labels_true, labels_pred, sample_weight, contingency)
        return compute(table, [replace(entropy[name], finalize=partial(of_average, average=average_method))])[
            0
        ]

    return public(score, called or name, document(entropy[name], called, option=AVERAGE))


@public
class HomogeneityCompletenessVMeasure(NamedTuple):
    """Homogeneity, completeness, and the harmonic mean of the two, weighted by the requested `beta`."""

    homogeneity: float
    completeness: float
    v_measure: float


def _v_measures(table: Contingency, beta: float) -> HomogeneityCompletenessVMeasure:
    beta = number(beta, "beta", "a number from 0 (homogeneity alone) up", lambda found: found >= 0)
    h, c = compute(table, [entropy["homogeneity"], entropy["completeness"]])
    return HomogeneityCompletenessVMeasure(h, c, float(v_of(h, c, beta)))


V_OF_BETA = (
    "(1 + beta) h c / (beta h + c), with h = homogeneity and c = completeness; the score is 0 if both are 0"
)


def v_measure_of_beta(called: str = "") -> ScoreOfBeta[float]:
    """Make the function of the V measure, in which beta is not squared."""

    def score(
        labels_true: ArrayLike | None = None,
        labels_pred: ArrayLike | None = None,
        *,
        beta: float = 1.0,
        sample_weight: ArrayLike | None = None,
        contingency: Contingency | None = None,
    ) -> float:
        table = as_contingency(labels_true, labels_pred, sample_weight, contingency)
        return _v_measures(table, beta).v_measure

    metric = replace(entropy["v_measure"], definition=V_OF_BETA)
    return public(score, called or "v_measure", document(metric, called, option=WEIGHT_OF_COMPLETENESS))


def homogeneity_completeness_v_measure(
    labels_true: ArrayLike | None = None,
    labels_pred: ArrayLike | None = None,
    *,
    beta: float = 1.0,
    sample_weight: ArrayLike | None = None,
    contingency: Contingency | None = None,
) -> HomogeneityCompletenessVMeasure:
    """Return homogeneity, completeness and V measure; the public docstring is assembled below."""
    table = as_contingency(labels_true, labels_pred, sample_weight, contingency)
    return _v_measures(table, beta)


public(
    homogeneity_completeness_v_measure,
    documentation=document(
        replace(
            entropy["v_measure"],
            summary="Homogeneity, completeness and their harmonic mean.",
            definition=f"h = 1 - H(C|K) / H(C) or, if H(C) = 0, 1; c = 1 - H(K|C) / H(K) or, if H(K) = 0, 1; and"
            f" {V_OF_BETA}",
        ),
        "homogeneity_completeness_v_measure",
        option=WEIGHT_OF_COMPLETENESS,
        returns="HomogeneityCompletenessVMeasure\n    Named tuple (homogeneity, completeness, v_measure).",
    ),
)


def combined_entropy(
    labels_true: ArrayLike | None = None,
    labels_pred: ArrayLike | None = None,
    *,
    beta: float = 0.5,
    sample_weight: ArrayLike | None = None,
    contingency: Contingency | None = None,
) -> float:
    """Return the weighted mean of the two entropies; the public docstring is assembled below."""
    share = number(
        beta, "beta", "the share of the cluster entropy, from 0 to 1", lambda found: 0 <= found <= 1
    )
    table = as_contingency(labels_true, labels_pred, sample_weight, contingency)
    of_cluster, of_class = compute(table, [entropy["cluster_entropy"], entropy["class_entropy"]])
    return share * of_cluster + (1.0 - share) * of_class


public(
    combined_entropy,
    documentation=document(
        replace(
            entropy["variation_of_information"],
            summary="Weighted mean of cluster entropy and class entropy, in bits.",
            definition="beta H(C|K) + (1 - beta) H(K|C)",
        ),
        "combined_entropy",
        option=SHARE_OF_CLUSTER_ENTROPY,
    ),
)
