"""The curve of a sweep: scores by threshold, the best of them, standard errors and intervals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed.alignment.align import Alignment
from fastbcubed.alignment.policies import Coverage, Policies
from fastbcubed.clusterings.clustering import Clustering
from fastbcubed.clusterings.components import as_threshold
from fastbcubed.clusterings.links import JoinedLinks, as_score
from fastbcubed.errors import MetricError
from fastbcubed.linkage.curve import Curve
from fastbcubed.linkage.merge_effects import Effects, merge_effects
from fastbcubed.linkage.merge_tree import MergeTree
from fastbcubed.linkage.placed_rows import PlacedRows
from fastbcubed.linkage.unit_errors import UnitErrors, unit_errors
from fastbcubed.metrics.metric import Metric
from fastbcubed.metrics.registry import METRICS
from fastbcubed.results.evaluation import Evaluation
from fastbcubed.results.listings.listing import require_limit
from fastbcubed.results.listings.table import Table
from fastbcubed.runtime.cached import cached_property
from fastbcubed.runtime.choices import true_or_false
from fastbcubed.runtime.completion import documented
from fastbcubed.runtime.pool import Pool
from fastbcubed.sources.arrays import from_numpy
from fastbcubed.thresholds.best import Best, best_point, known_score, shown
from fastbcubed.uncertainty.intervals import Interval, check_level, interval


class Evaluator(Protocol):
    """Evaluates a clustering of the items of the links against the truth of the sweep."""

    def __call__(self, clustering: Clustering, options: Mapping[str, Any]) -> Evaluation:
        """Return what `evaluate` does; `options` are arguments of it, in place of those of the sweep."""

    def aligned(self, clustering: Clustering, rows: Alignment, policies: Policies) -> Evaluation:
        """Return the same with the usual scores; `rows` are aligned with a clustering of the same items."""


@dataclass(eq=False, repr=False)
class SweptCurve:
    """What a sweep holds, and its curve; the attributes are described at `Sweep`."""

    links: JoinedLinks
    tree: MergeTree
    metrics: list[Metric]
    others: list[Metric]
    not_computed: dict[str, str]
    coverage: Coverage
    policies: Policies
    asked: list[float]
    _curve: Curve
    _placed: PlacedRows
    _alignment: Alignment
    _evaluate: Evaluator
    sliced: dict[str, Table] = field(default_factory=dict)

    __dir__ = documented

    def curve(self, *, limit: int | None = 1000, errors: bool = False) -> Table:
        """Return the scores by threshold, from no link at all to every link.

        Parameters
        ----------
        limit : int or None
            Rows at most: always the first and the last, and those where a score is best or worst; between these as
            many where scores change fast as where they do not. None for all thresholds at which clusters change.
        errors : bool
            Whether to add the standard errors of precision, recall and f1, as columns such as f1_se. Their units are
            the connected components of the truth and the clusters of the weakest threshold, the same for all
            thresholds.

        Returns
        -------
        Table
            threshold, clusters, largest, singletons (of scored items) and the scores. The first row, whose threshold
            is infinite, is that of no link.

        Raises
        ------
        OptionError
            If `limit` is no number of rows, or `errors` is neither True nor False.
        """
        require_limit(limit)
        errors = true_or_false(errors, "errors")
        points = self._curve.thinned(limit)
        columns: dict[str, Any] = {"threshold": from_numpy(self._curve.thresholds[points])}
        for name in self._curve.names:
            columns[name] = from_numpy(self._curve.figures(name, points))
            if errors and (error := self._error(name)) is not None:
                columns[f"{name}_se"] = from_numpy(error[points])
        return Table(pa.table(columns))

    def interval(self, score: str, threshold: float | None = None, *, level: float = 0.95) -> Interval:
        """Return the interval of a score at a threshold.

        Parameters
        ----------
        score : str
            precision, recall, f1 or what else is made of precision and recall.
        threshold : float, optional
            That at which the score is best when absent.
        level : float
            The confidence.

        Returns
        -------
        Interval
            low and high, as of `Evaluation.interval`, whose units are the connected components of the truth and the
            clusters of the weakest threshold. It does not allow for the choice of the threshold by these data.

        Raises
        ------
        MetricError
            If the score has no standard error here.
        """
        name = known_score(self._curve, score)
        error = self._error(name)
        if error is None:
            raise MetricError(
                f"{name} has no standard error at every threshold; take precision, recall or f1, or evaluate(threshold)"
            )
        point = best_point(self._curve, name, None)[0] if threshold is None else self._point(threshold)
        metric = next(each for each in self.metrics if each.name == name)
        n_units = self._errors.n_units
        return interval(
            self._curve.at(point, name)[name], float(error[point]), n_units=n_units, level=check_level(level),
            low=metric.low, high=metric.high,
        )  # fmt: skip

    def _error(self, name: str) -> NDArray[np.float64] | None:
        """Return the standard error of a score at every point; None if it has none."""
        metric = next((each for each in self.metrics if each.name == name), None)
        means = {"precision": self._curve.kept.rest("over"), "recall": self._curve.kept.rest("under")}
        return None if metric is None else self._errors.error(metric, means, self._curve.kept.beta)

    @cached_property
    def _errors(self) -> UnitErrors:
        """The standard errors, by the units of the weakest threshold."""
        kept = self._curve.kept
        return unit_errors(self._placed.rows, self._effects, kept.mean("over"), kept.mean("under"))

    def best(self, score: str = "f1", *, where: str | Iterable[str] | None = None) -> Best:
        """Return the threshold at which a score is best.

        Parameters
        ----------
        score : str
            A score of the curve.
        where : str or list of str, optional
            What has to hold: "precision >= 0.98", or several such conditions joined by "and"; on scores, on clusters,
            largest, singletons and threshold.

        Returns
        -------
        Best
            If several thresholds are equally good, the strongest of them.

        Raises
        ------
        MetricError
            If the curve has no such score.
        OptionError
            If no threshold meets the conditions.

        Examples
        --------
        >>> import fastbcubed as fb
        >>> links = [("a", "b", 0.9), ("b", "c", 0.8), ("c", "d", 0.7)]
        >>> sweep = fb.sweep({"a": 1, "b": 1, "c": 2, "d": 2}, links)
        >>> sweep.best("recall", where="precision >= 0.98")
        recall is best at threshold 0.9, where precision >= 0.98: 0.75000 (precision 1, f1 0.85714), with 3 clusters, the largest of 2 items.
        Any threshold from there to just before 0.8 gives the same clusters.
        """  # noqa: E501
        point, name, conditions = best_point(self._curve, score, where)
        threshold = self._curve.thresholds[point].item()
        until = self._curve.thresholds[point + 1].item() if point + 1 < len(self._curve) else None
        figures = self._curve.at(point)
        return Best(
            name,
            float(self._curve.at(point, name)[name]),
            threshold,
            until,
            figures,
            " and ".join(map(str, conditions)),
            self.shown(threshold),
            "" if until is None else self.shown(until, stronger=bool(np.isfinite(threshold))),
        )

    def shown(self, threshold: float, *, stronger: bool = False) -> str:
        """Return a threshold as it is to be typed: scores of links in as few digits as tell them from the next ones.

        Parameters
        ----------
        threshold : float
            The score of a link, or any other number.
        stronger : bool
            Whether to round to a stronger score. Else it is rounded to a weaker one, which gives the same clusters.

        Returns
        -------
        str

        Examples
        --------
        >>> import fastbcubed as fb
        >>> links = [("a", "b", 0.9123456789), ("b", "c", 0.9123), ("c", "d", 0.7)]
        >>> sweep = fb.sweep({"a": 1, "b": 1, "c": 2, "d": 2}, links)
        >>> sweep.shown(0.9123456789), sweep.shown(0.9123456789, stronger=True)
        ('0.91234', '0.91235')
        """
        levels, at = self._level_thresholds, self._n_used(threshold) - 1
        if at < 0 or levels[at] != threshold:
            return shown(threshold)
        beside = levels[[each for each in (at - 1, at + 1) if 0 <= each < levels.size]]
        gap = np.abs(beside - threshold).min(initial=abs(threshold) or 1.0)
        text = shown(threshold, float(gap), up=stronger != self.tree.ascending)
        same = stronger or self._n_used(float(text)) == at + 1  # which short floats may not be
        return text if same else shown(threshold)

    @property
    def _level_thresholds(self) -> NDArray[np.float64]:
        """The score of each level, as it is shown."""
        return self._curve.thresholds[len(self._curve) - self.tree.n_levels :]

    @cached_property
    def _best_f1(self) -> int:
        """The point of the best F1, whether it is among the scores or not."""
        return int(np.argmax(self._curve.scores(METRICS["f1"])))

    def _point(self, threshold: Any) -> int:
        """Return the point of the curve that a threshold is at."""
        return self._n_used(threshold) + len(self._curve) - 1 - self.tree.n_levels

    def _n_used(self, threshold: Any) -> int:
        """Return how many levels a threshold uses, which is rounded as scores are."""
        return self.tree.n_used(as_score(as_threshold(threshold), self.links.precision))

    @cached_property
    def _effects(self) -> Effects:
        """What each merge does."""
        with Pool() as pool:
            return merge_effects(self._placed.rows, pool)
