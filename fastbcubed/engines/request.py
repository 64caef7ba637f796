"""The request for an evaluation, whose arguments are checked once; and the answer of an engine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from fastbcubed.align.policies import Coverage, Policies
from fastbcubed.cells.contingency import MAX_PAIRS, Contingency
from fastbcubed.errors import MetricError, OptionError, SliceError, arg, quoted
from fastbcubed.inputs.files import require_outside
from fastbcubed.inputs.pair import Given, Pair
from fastbcubed.metrics.metric import Metric, beta_of
from fastbcubed.metrics.registry import METRICS, known_as, lifted, resolve
from fastbcubed.results.evaluation import Evaluation
from fastbcubed.results.figures import Bounds
from fastbcubed.results.items import AttributeTable, Items
from fastbcubed.results.slices import Element, SliceKey, check_key, elements, slice_name
from fastbcubed.results.table import COLUMN_ENDINGS, COLUMNS, Table
from fastbcubed.runtime.arguments import is_one_of, number_of, refuse_bare, refuse_idle
from fastbcubed.runtime.memory_budget import memory_limit
from fastbcubed.runtime.object_attributes import cached_property
from fastbcubed.runtime.spill import spill_directory
from fastbcubed.types import RowNumbers

if TYPE_CHECKING:
    from fastbcubed.inputs.fingerprint import Content
    from fastbcubed.results.cluster_ranges import ClusterRanges

#: A function of a side and codes of clusters that returns their labels.
Labels = Callable[[str, RowNumbers], pa.Array]


@dataclass(frozen=True)
class Request:
    """Checked arguments of an evaluation; its fields are documented at `evaluate`."""

    given: Given
    policies: Policies
    weighting: str = "pointwise"
    metrics: list[str | Metric] | None = None
    beta: float = 1.0
    max_pairs: float = MAX_PAIRS
    slices: list[SliceKey] = field(default_factory=list)
    keep: str = "cells"
    narrows: bool = False  #: whether `keep` becomes "scores" if the disk has no room for the cells
    names_clusters: bool = False  #: whether the labels of all clusters will probably be needed
    out: Any = None
    memory_limit: int | str | None = None
    spill_dir: Any = None
    #: True for only the scores that count all mentions, False for only the others, None for all scores
    of_mentions: bool | None = None
    outer: bool = field(init=False)  #: whether weights affect the mean only
    #: whether prediction-only items are false positives for the items they are clustered with
    outside: bool = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "beta", beta_of(self.beta))
        if not is_one_of(self.keep, ("scores", "cells", "items")):
            raise OptionError(f'{arg("keep")} must be "scores", "cells" or "items", not {quoted(self.keep)}')
        if not is_one_of(self.weighting, ("pointwise", "outer")):
            raise OptionError(
                f'{arg("weighting")} must be "pointwise" or "outer", not {quoted(self.weighting)}'
            )
        object.__setattr__(self, "outer", self.weighting == "outer")
        object.__setattr__(self, "outside", self.policies.prediction == "outside")
        limited = number_of(self.max_pairs, "max_pairs", "pairs") != MAX_PAIRS
        refuse_idle(limited and not self.given.overlapping, "max_pairs", arg("overlapping", True))
        if self.out is not None:
            require_outside(self.out, self.given.sources)
        if self.memory_limit is not None:
            memory_limit(self.memory_limit)
        if self.spill_dir is not None:
            spill_directory(self.spill_dir)
        self.resolve()  # raises an error before the work

    @cached_property
    def limit(self) -> int:
        """The memory limit in bytes; cached, since asking for free memory takes as long as scoring a thousand items."""
        return memory_limit(self.memory_limit)

    @property
    def named_metrics(self) -> set[str]:
        """The requested names of scores and families."""
        return {str(known_as(m)) if isinstance(m, str) else m.name for m in self.metrics or ()}

    def resolve(
        self, *, weighted: bool = False, cells_alone: bool = False
    ) -> tuple[list[Metric], dict[str, str]]:
        """Return the scores to compute, and the reason for each score of a family that is not defined here."""
        found, not_computed = resolve(
            self.metrics,
            weighted=weighted,
            weighting=self.weighting,
            outside=self.outside,
            overlapping=self.given.overlapping,
            cells_alone=cells_alone,
            beta=self.beta,
        )
        if self.of_mentions is not None:
            found = [metric for metric in found if metric.of_mentions == self.of_mentions]
        return found, dict(not_computed)

    def counts_mentions(self, *, weighted: bool) -> bool:
        """Return whether a requested score counts all mentions of both sides."""
        return any(metric.of_mentions for metric in self.resolve(weighted=weighted)[0])


@dataclass(frozen=True)
class Scored:
    """Scores over all items by name, the scores that tables show, and the reason for each score not computed."""

    overall: dict[str, float]
    metrics: list[Metric]
    not_computed: dict[str, str]


@dataclass(frozen=True)
class Answer:
    """The output of an engine.

    Attributes
    ----------
    engine : {"memory", "disk", "spark"}
        The engine used.
    cells : Contingency
        The cells, or a substitute if they were not kept.
    scored : Scored
        Scores over all items.
    coverage : Coverage
        The numbers of items on both sides and on one side only.
    names : (str, str)
        Names of the sides.
    items, labels, attributes, ranges, summary, bounds, change_if_alone
        Fields of `Evaluation`; None if it computes them itself, or if they were not kept.
    sliced : dict of str to Table
        Slices computed during the run.
    pair : Pair
        The two sides, which can be read again.
    odd_labels : dict of str to dict of str to int
        For each side, the labels that may stand for a missing value and their numbers of rows, if found in the run.
    contents : list of Content
        Fingerprints of the truth and the prediction, if computed during the run.
    notes : list of dict
        Notes for users on how the input was read.
    reading : dict
        How the columns of each side were read; see `readings_of`.
    kind : callable
        Creates the evaluation from its fields.
    complete : bool
        Whether the cells cover all items and mentions; False for a run that is restricted to common items.
    mentions : Answer
        If not complete, the answer for the scores that count all mentions, with its own cells.
    """

    engine: str
    cells: Contingency
    scored: Scored
    coverage: Coverage
    names: tuple[str, str]
    items: Items | None
    labels: Labels | None = None
    attributes: AttributeTable | None = None
    sliced: dict[str, Table] = field(default_factory=dict)
    ranges: ClusterRanges | None = None
    summary: dict[str, dict[str, Any]] | None = None
    bounds: Bounds | None = None
    notes: list[dict[str, Any]] = field(default_factory=list)
    reading: dict[str, Any] = field(default_factory=dict)
    change_if_alone: float | None = None
    pair: Pair | None = None
    contents: list[Content] | None = None
    odd_labels: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    kind: Callable[..., Evaluation] = Evaluation
    complete: bool = True
    mentions: Answer | None = None

    def with_mentions(self, own: Answer, request: Request) -> Answer:
        """Return this answer on common items, adding the scores that count all mentions from the run's own answer."""
        values = {m.name: self.scored.overall[m.name] for m in self.scored.metrics if not m.of_mentions}
        values |= own.scored.overall
        metrics = [m for m in request.resolve(weighted=self.cells.weighted)[0] if m.name in values]
        not_computed = self.scored.not_computed | own.scored.not_computed
        scored = Scored({m.name: values[m.name] for m in metrics}, metrics, not_computed)
        return replace(self, scored=scored, mentions=own)


def as_metrics(metrics: Any, *, outside: bool) -> list[str | Metric] | None:
    """Return the requested scores, with formulas converted to `Metric`; None for the default."""
    refuse_bare(metrics=metrics)
    if metrics is None:
        return None
    one = isinstance(metrics, str) or callable(metrics)
    if not one and not isinstance(metrics, Iterable):
        raise MetricError(
            f"{arg('metrics', ...)} must be names of scores, or formulas, not {quoted(metrics)}"
        )
    chosen = [lifted(m, outside=outside) if callable(m) else m for m in ([metrics] if one else metrics)]
    if not chosen:
        raise MetricError(f"{arg('metrics')} is empty; omit it for the default scores")
    given = [m for m in chosen if isinstance(m, Metric)]
    own = [m for m in given if METRICS.get(m.name) is not m and not m.options]  # no variants of known ones
    names = [m.name for m in own]
    for metric in own:
        require_own_name(metric.name, twice=names.count(metric.name) > 1)
        if not any((metric.formula, metric.formula_of_beta, metric.combine, metric.finalize, metric.of_sets)):
            raise MetricError(
                f"the score {metric.name} has no formula; pass {arg('formula')} or {arg('score')} to Metric"
            )
    return chosen


def require_own_name(name: Any, *, twice: bool = False) -> None:
    """Raise MetricError if a user's own score cannot have this name."""
    if not isinstance(name, str) or not name:
        raise MetricError(f"the name of a score must be a non-empty string, not {quoted(name)}")
    if twice or name in METRICS:
        raise MetricError(
            f"two scores would be named {name!r}; give each formula a different name (its __name__)"
        )
    if name in COLUMNS or name in {m.item_name for m in METRICS.values()} or name.endswith(COLUMN_ENDINGS):
        raise MetricError(f"{name!r} is a column of listings; give the formula another name (its __name__)")


def as_slices(slices: Any) -> list[SliceKey]:
    """Return the requested slices without repeats; a single slice needs no list, and a tuple crosses columns."""
    refuse_bare(slices=slices)
    names = isinstance(slices, tuple) and bool(slices) and all(isinstance(name, Element) for name in slices)
    if names or isinstance(slices, Element | Mapping):
        return [check_key(slices)]
    if not isinstance(slices, Iterable):
        raise SliceError(
            f"{arg('slices')} must be an attribute, several attributes, or a mapping, not {quoted(slices)}"
        )
    found: dict[str, SliceKey] = {}
    for key in map(check_key, slices):
        other = found.setdefault(name := slice_name(key), key)
        if other is not key and (not elements(key) or elements(other) != elements(key)):
            raise SliceError(
                f"two of the slices would be named {name!r} in the result: {_shown(other)} and "
                f"{_shown(key)}. Rename one of them, or get it later with Evaluation.slices"
            )
    return list(found.values())


def _shown(key: SliceKey) -> str:
    return f"subsets by name ({', '.join(map(repr, key))})" if isinstance(key, Mapping) else repr(key)
