"""The result of a sweep: scores at every threshold, clusters at any, and the costliest merges."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed._version import __version__
from fastbcubed.align.policies import Coverage, Policies
from fastbcubed.align.rows import Alignment
from fastbcubed.errors import EvaluationWarning, NotKeptError, OptionError, quoted
from fastbcubed.inputs.arrays import from_numpy
from fastbcubed.inputs.clustering import Clustering
from fastbcubed.inputs.id_columns import as_column
from fastbcubed.inputs.link_clusters import as_threshold, as_thresholds, column_at, connected
from fastbcubed.inputs.links import JoinedLinks, as_score
from fastbcubed.metrics.metric import Metric
from fastbcubed.metrics.registry import METRICS
from fastbcubed.render.document import Document
from fastbcubed.render.json import as_json
from fastbcubed.results.evaluation import Evaluation
from fastbcubed.results.intervals import Interval, check_level
from fastbcubed.results.page import IN_BRIEF, Asked, report_of
from fastbcubed.results.result import Result
from fastbcubed.results.slices import SliceKey, rows_for_json
from fastbcubed.results.standard_errors import COMPONENT, warn_of_units
from fastbcubed.results.table import Table, require_limit
from fastbcubed.results.warnings import give
from fastbcubed.runtime.arguments import is_one_of, seed_of, true_or_false, whole_number
from fastbcubed.runtime.memory_budget import Allowance
from fastbcubed.runtime.object_attributes import cached_property, documented
from fastbcubed.runtime.threads import Pool
from fastbcubed.sweep_links import question_memory, saved_sweep
from fastbcubed.sweep_links.curve import (
    Best,
    Curve,
    as_given,
    best_point,
    first_highest,
    heap_of,
    known_score,
    list_merges,
    list_weakest_links,
    shown,
    value_at,
)
from fastbcubed.sweep_links.merge_tree import Effects, MergeTree, PlacedRows, merge_effects
from fastbcubed.sweep_links.recall_stages import NOT_THERE, Stages, stages_of
from fastbcubed.sweep_links.slice_thresholds import slice_thresholds
from fastbcubed.sweep_links.sweep_document import document, interval_at
from fastbcubed.sweep_links.threshold_choice import Chosen, Leading, choose_again
from fastbcubed.sweep_links.unit_sums import UnitSums, even_levels, units_of_rows, units_of_weight

if TYPE_CHECKING:
    from fastbcubed.render.html import Report
    from fastbcubed.sweep_links.evaluator import Evaluator


@dataclass(eq=False, repr=False)
class Sweep(Result):
    """All match thresholds at once: the clusters of links at each threshold, scored against the truth.

    `fastbcubed.sweep` returns a Sweep. A threshold uses the links whose score is at least the threshold or, if low
    scores mean strong links (`ascending`), at most the threshold. The clusters are the connected components of the
    links that a threshold uses. Clusters change only at scores of links, so the values at these scores cover all
    thresholds.

    Attributes
    ----------
    links : JoinedLinks
        The items of the links, the number of links, and the columns that the links were read from.
    tree : MergeTree
        The scores at which clusters merge.
    metrics : list of Metric
        The scores that are known at every threshold.
    others : list of Metric
        Scores that are known only at the requested thresholds, which `points()` lists.
    not_computed : dict of str to str
        Scores that are not defined for this input or cannot be updated at every threshold, with the reasons.
    coverage : Coverage
        The extent to which truth and links have the same items.
    policies : Policies
        The policies for items missing from one side, null clusters, duplicates and noise.
    asked : list of float
        The requested thresholds.
    warnings : list of dict
        Warnings and notes, each with its code, level, message and values.
    sliced : dict of str to Table
        The best thresholds of the slices passed to `sweep`, by name.
    reading : dict
        How the columns of truth and links were read; see `Evaluation`.

    Examples
    --------
    >>> import fastbcubed as fb
    >>> links = [("a", "b", 0.9), ("b", "c", 0.4), ("c", "d", 0.8)]
    >>> sweep = fb.sweep({"a": 1, "b": 1, "c": 2, "d": 2}, links)
    >>> sweep.best("f1").threshold, sweep.best("f1").value
    (0.8, 1.0)
    >>> sweep.curve().select(["threshold", "clusters", "precision", "recall"])
    threshold  clusters  precision   recall
          inf         4          1  0.50000
      0.90000         3          1  0.75000
      0.80000         2          1        1
      0.40000         1    0.50000        1
    <BLANKLINE>
    4 rows
    """

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
    _saved: Mapping[str, pa.Table] | None = None  #: the tables of a loaded sweep
    _allowance: Allowance = field(default_factory=Allowance)

    __dir__ = documented

    def curve(self, *, limit: int | None = 1000, errors: bool = False) -> Table:
        """Return the scores by threshold, from no links to all links.

        The methods `to_pandas`, `to_polars` and `to_arrow` of the sweep convert the curve.

        Parameters
        ----------
        limit : int or None
            Maximum number of rows; None for all thresholds at which clusters change. The rows listed are the first and
            last rows, the rows at which a score is best or worst, and rows spaced evenly by the change in scores.
        errors : bool
            Whether to add standard errors, as columns such as f1_se. The units are the same at all thresholds: the
            components of the truth and the clusters at the weakest threshold whose effective number of components is at
            least a quarter of the number of true clusters. At weaker thresholds, errors are NaN, with a warning.

        Returns
        -------
        Table
            The columns threshold, clusters, largest and singletons, which count only scored items, and the scores. The
            first row has an infinite threshold and uses no links, unless a link has an infinite score.

        Raises
        ------
        OptionError
            If `limit` is not a number of rows, or `errors` is neither True nor False.
        """
        limit = require_limit(limit)
        errors = true_or_false(errors, "errors")
        points = self._curve.thinned(limit)
        columns, scored = self._curve.columns(points), {metric.name: metric for metric in self.metrics}
        if not errors:
            return Table(pa.table(columns))
        question_memory.require_units(self, scored, "standard errors along the curve")
        self._warn_of_weak_thresholds()
        known, shown = points[points < len(self._units.curve)], {}
        for name, column in columns.items():
            shown[name] = column
            if name in scored:
                found = np.full(points.size, np.nan)
                found[: known.size] = self._units.errors(scored[name], known)  # points ascend
                shown[f"{name}_se"] = from_numpy(found)
        return Table(pa.table(shown))

    _main_table = curve

    def interval(self, score: str, threshold: float | None = None, *, level: float = 0.95) -> Interval:
        """Return the confidence interval for a score at a threshold.

        Parameters
        ----------
        score : str
            A score of the curve.
        threshold : float, optional
            By default, the threshold of the best score; the interval then allows for this choice, as in `chosen`.
        level : float
            The confidence level.

        Returns
        -------
        Interval
            The ends low and high, as in `Evaluation.interval`. The units are those of `curve`; at thresholds too weak
            for these units, a warning is given, and the units are the components of the truth and the clusters of all
            links.

        Raises
        ------
        MetricError
            If the curve does not have the score.
        OptionError
            If the level is not between 0 and 1.

        Examples
        --------
        >>> import fastbcubed as fb
        >>> truth = {f"{k}{side}": f"{k}{side * (k % 4 == 0)}" for k in range(60) for side in "ab"}
        >>> links = [(f"{k}a", f"{k}b", (k * k % 11 + 3 * (k % 4 > 0)) / 14) for k in range(60)]
        >>> low, high = fb.sweep(truth, links).interval("pair_f1", 0.2)
        >>> round(low, 2), round(high, 2)
        (0.81, 0.95)
        """
        name, level = known_score(self._curve, score), check_level(level)
        if threshold is None:
            return self.chosen(name, level=level).interval
        metric, point = self._curve.metric(name), self._point(threshold)
        question_memory.require_units(self, [name], f"the interval of {name}")
        found = self._units_at(point).errors_at(metric, point)
        return found.interval(metric, self._curve.at(point, name)[name], level)

    def chosen(
        self,
        score: str = "f1",
        *,
        where: str | Iterable[str] | None = None,
        level: float = 0.95,
        draws: int = 1000,
        seed: int = 0,
    ) -> Chosen:
        """Return the best threshold, with intervals that allow for choosing the threshold on the same data.

        The score at the best threshold is partly due to chance; on other data, the same threshold tends to score lower.
        The units of `curve` are resampled, and the score at the best threshold of each resample is compared with the
        score at the same threshold on all data. Thresholds weaker than the one that defines the units are ignored,
        unless the best threshold is one of them.

        Parameters
        ----------
        score, where
            As for `best`. Conditions on clusters, largest and singletons always apply to the original data.
        level : float
            The confidence level.
        draws : int
            Number of resamples; each takes about as long as computing the scores along the curve.
        seed : int
            Seed of the resamples. The same seed gives the same resamples, regardless of the order of rows.

        Returns
        -------
        Chosen
            The best threshold, and the attributes low, high, expected, optimism, threshold_low and threshold_high.

        Raises
        ------
        MetricError
            If the curve does not have the score.
        OptionError
            If no threshold meets the conditions, the level is not between 0 and 1, or `draws` is less than 1.

        Examples
        --------
        >>> import fastbcubed as fb
        >>> truth = {f"{k}{side}": f"{k}{side * (k % 4 == 0)}" for k in range(60) for side in "ab"}
        >>> links = [(f"{k}a", f"{k}b", (k * k % 11 + 3 * (k % 4 > 0)) / 14) for k in range(60)]
        >>> sweep = fb.sweep(truth, links)
        >>> sweep.chosen("pair_f1", draws=200)
        pair_f1 is best at threshold 0.2: 0.90000 (precision 0.91667, recall 1, f1 0.95652), with 65 clusters, the largest of 2 items.
        The threshold was chosen on the same data. On other data of this kind, expect 0.89133, from 0.79980 to 0.94377 (95 %), based on 200 draws of 60 components. Each draw has its own best threshold, which was from 0.2 to 0.4 in 95 % of them.
        """  # noqa: E501
        level, draws = check_level(level), whole_number(draws, "draws", "samples", least=1)
        seed, best = seed_of(seed), self.best(score, where=where)
        point = self._point(best.threshold)
        question_memory.require_units(self, [best.score], "draws of the units")
        units = self._units_at(point)
        scale = {"df": units.n_units - 1.0, "low": -math.inf, "high": math.inf}
        if best.score in [metric.name for metric in self.metrics]:
            metric = self._curve.metric(best.score)
            scale = units.errors_at(metric, point).scale(metric)
        return choose_again(units, best, where, scale, level, draws, seed, self.shown)

    @cached_property
    def _units(self) -> UnitSums:
        """The sums by unit; units are the components at the weakest threshold with many of similar weight."""
        rows = self._placed.rows
        return UnitSums(rows, self._curve, even_levels(rows))

    def _units_at(self, point: int) -> UnitSums:
        """Return the sums by unit for a point; if the point is too weak, units are the components of all links."""
        rows, units = self._placed.rows, self._units
        if point >= len(units.curve):
            units = UnitSums(rows, self._curve, rows.n_levels)
        warn_of_units(units_of_weight(units.weight), COMPONENT, stacklevel=4)
        return units

    def _warn_of_weak_thresholds(self) -> None:
        """Warn if there are no standard errors at some thresholds."""
        if len(self._units.curve) == len(self._curve):
            return
        units = units_of_rows(self._placed.rows)
        weakest = self._curve.thresholds[len(self._units.curve) - 1].item()
        message = (
            f"there are no standard errors at thresholds weaker than {self.shown(weakest)}, whose links "
            f"leave too few independent components (all links: an effective number of {units.effective:.1f}, "
            f"with {units.largest_share:.0%} of the weight in one). Leave weak links out of the sweep"
        )
        warnings.warn(message, EvaluationWarning, stacklevel=3)

    def best(self, score: str = "f1", *, where: str | Iterable[str] | None = None) -> Best:
        """Return the threshold at which a score is best.

        Parameters
        ----------
        score : str
            A score of the curve, or a cost to minimise. A cost is an expression of numbers, scores, and the columns
            clusters, largest and singletons of the curve, with + - * / and parentheses, such as "5*pair_fp + pair_fn".
        where : str or list of str, optional
            Required bounds on scores, clusters, largest, singletons or threshold, such as "precision >= 0.98"; several
            conditions are joined by "and".

        Returns
        -------
        Best
            The best threshold; if several thresholds are equally good, up to rounding, the strongest of them.
            Thresholds at which the score or cost is undefined or infinite are ignored.

        Raises
        ------
        MetricError
            If the curve does not have the score.
        OptionError
            If no threshold meets the conditions, or the score or cost is not finite at any threshold that meets them.

        Examples
        --------
        >>> import fastbcubed as fb
        >>> links = [("a", "b", 0.9), ("b", "c", 0.8), ("c", "d", 0.7)]
        >>> sweep = fb.sweep({"a": 1, "b": 1, "c": 2, "d": 2}, links)
        >>> sweep.best("recall", where="precision >= 0.98")
        recall is best at threshold 0.9, where precision >= 0.98: 0.75000 (precision 1, f1 0.85714), with 3 clusters, the largest of 2 items.
        Any threshold from there to just before 0.8 gives the same clusters. It is at the strong end of the curve: no link is stronger, but a link score that separates these links may do better.
        >>> best = sweep.best("5*pair_fp + pair_fn")  # no pair is wrong, and one of two is missed
        >>> best.threshold, best.value
        (0.9, 1.0)
        """  # noqa: E501
        found = best_point(self._curve, score, where)
        value, said = value_at(self._curve, found.name, found.point), " and ".join(map(str, found.conditions))
        return self._best_at(found.point, found.name, value, said, found.as_good)

    def _best_at(self, point: int, score: str, value: float, where: str, as_good: Sequence[int]) -> Best:
        """Return the `Best` that describes a point of the curve."""
        weakest, strongest = (self._curve.thresholds[each].item() for each in as_good)
        first = min(max(as_good[1], len(self._curve) - self.tree.n_levels), as_good[0])  # that uses a link
        threshold = self._curve.thresholds[point].item()
        until = self._curve.thresholds[point + 1].item() if point + 1 < len(self._curve) else None
        figures = self._curve.at(point)
        until_shown = "" if until is None else self.shown(until, stronger=bool(np.isfinite(threshold)))
        ends = self.shown(weakest), self.shown(self._curve.thresholds[first].item())
        return Best(
            score, value, threshold, until, figures, where, self.shown(threshold), until_shown,
            point <= len(self._curve) - self.tree.n_levels, (weakest, strongest), ends,
        )  # fmt: skip

    def shown(self, threshold: float, *, stronger: bool = False) -> str:
        """Return a threshold as text, with as few digits as distinguish it from its neighbours.

        Parameters
        ----------
        threshold : float
            The score of a link, or any other number.
        stronger : bool
            Whether to round to a stronger score, which may change the clusters, instead of a weaker score, which does
            not.

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
        stronger = true_or_false(stronger, "stronger")
        levels, at = self._level_thresholds, self._n_used(threshold) - 1
        if at < 0 or levels[at] != threshold:
            return shown(threshold)
        sides = (at - 1, at + 1) if stronger else (at + 1, at - 1)  # rounding is towards the first
        neighbour = next((levels[each] for each in sides if 0 <= each < levels.size), threshold - 1.0)
        with np.errstate(over="ignore"):
            gap = min(np.abs(neighbour - threshold), abs(threshold) or 1.0)
        text = shown(threshold, float(gap), up=stronger != self.tree.ascending)
        same = stronger or self._n_used(float(text)) == at + 1  # scores of low precision may differ
        return text if same else shown(threshold)

    @property
    def _level_thresholds(self) -> NDArray[np.float64]:
        """The score of each level, as the curve shows it."""
        return self._curve.thresholds[len(self._curve) - self.tree.n_levels :]

    @cached_property
    def _best_f1(self) -> int:
        """The point of the best F1, even if F1 is not among the requested scores."""
        return first_highest(self._curve.scores(METRICS["f1"]))

    def _point(self, threshold: Any) -> int:
        """Return the point of the curve with the clusters of a threshold."""
        return self._n_used(threshold) + len(self._curve) - 1 - self.tree.n_levels

    def _n_used(self, threshold: Any) -> int:
        """Return the number of levels that a threshold uses, after rounding it to the precision of the scores."""
        return self.tree.n_used(as_score(as_threshold(threshold), self.links.precision))

    def _n_links_used(self, threshold: float) -> int:
        """Return the number of links that a threshold uses."""
        return self.tree.n_links_used(as_score(as_threshold(threshold), self.links.precision))

    @cached_property
    def _effects(self) -> Effects:
        question_memory.require_effects(self)
        with Pool() as pool:
            return merge_effects(self._placed.rows, pool)

    @cached_property
    def _leading(self) -> Leading:
        """The best threshold to show: of F1 if the curve has it or, for a loaded sweep, the one it was saved with."""
        return Leading(self.best("f1") if "f1" in self._curve.names else None)

    def _document(self, asked: Asked | None = None) -> Document:
        return document(self, self._leading, asked or IN_BRIEF)

    def points(self) -> Table:
        """Return all scores at the requested thresholds, including those that are not known at every threshold.

        Returns
        -------
        Table
            A row for each requested threshold, with the columns of `curve` and the scores of `others`.

        Examples
        --------
        At 0.4, all links are used, and all items are in one cluster.

        >>> import fastbcubed as fb
        >>> links = [("a", "b", 0.9), ("b", "c", 0.4), ("c", "d", 0.8)]
        >>> sweep = fb.sweep({"a": 1, "b": 1, "c": 2, "d": 2}, links, thresholds=[0.8, 0.4])
        >>> sweep.points().select(["threshold", "clusters", "precision", "recall"]).to_pylist()[1]
        {'threshold': 0.4, 'clusters': 1, 'precision': 0.5, 'recall': 1.0}
        """
        return self._points

    @cached_property
    def _points(self) -> Table:
        rows = []
        for threshold in self.asked:
            figures = self._curve.at(self._point(threshold))
            if self.others:
                ev = self._evaluated(threshold, {"metrics": as_given(self.others)})
                figures |= {metric.name: ev.overall[metric.name] for metric in self.others}
            rows.append({"threshold": threshold, **figures})
        if rows:
            return Table(pa.Table.from_pylist(rows))
        return Table(self.curve(limit=2).to_arrow().slice(0, 0))

    # Clusters at a threshold

    def at(self, threshold: float) -> Clustering:
        """Return the clusters at a threshold: the connected components of the links that it uses.

        Parameters
        ----------
        threshold : float
            Any number; links whose score equals the threshold are kept.

        Returns
        -------
        Clustering
            One row per item of the links or of `items`. Clusters are numbered from 0 in the order of their first
            items.
        """
        items = None if self._alignment.truth.items is None else self.links.items
        threshold = as_threshold(threshold)
        question_memory.require_clusters(self)
        labels, _ = self.tree.labels(self._n_used(threshold))
        links, ascending = self.links, self.tree.ascending
        n_connecting = self._n_links_used(threshold)
        made = connected(
            links, n_connecting, labels, float(threshold), ascending=ascending, by_position=items is None
        )
        return Clustering(as_column(labels, "cluster"), items, name=links.name, links=made)

    def clusterings(self, thresholds: Sequence[float]) -> Table:
        """Return the clusters at several thresholds side by side, in the form that `fastbcubed.compare` takes.

        Parameters
        ----------
        thresholds : list of float
            The thresholds. Columns are named as in Splink: "cluster_p_0_9" for a probability, else "cluster_0_9".

        Returns
        -------
        Table
            The item (one column, or several for a composite id) and a column of clusters for each threshold.
        """
        columns: dict[str, Any] = {}
        if self._alignment.truth.items is None:
            columns["item"] = from_numpy(np.arange(self.tree.n_items))
        else:
            columns |= dict(zip(self.links.items.names, self.links.items.parts, strict=True))
        question_memory.require_clusters(self, len(asked := as_thresholds(thresholds)))
        for threshold in asked:
            labels, _ = self.tree.labels(self._n_used(threshold))
            columns[column_at(threshold, self.links.columns.score)] = from_numpy(labels)
        return Table(pa.table(columns))

    def evaluate(self, threshold: float | None = None, **options: Any) -> Evaluation:
        """Return the evaluation of the clusters at a threshold.

        Parameters
        ----------
        threshold : float, optional
            By default, the threshold with the best F1.
        **options
            Arguments of `fastbcubed.evaluate`, which replace those passed to the sweep.

        Returns
        -------
        Evaluation
        """
        ev = self._evaluated(threshold, options)
        give(ev.warnings)
        return ev

    def _evaluated(self, threshold: float | None, options: Mapping[str, Any]) -> Evaluation:
        """Return the evaluation at a threshold, by default that of the best F1, without issuing warnings."""
        threshold = self._curve.thresholds[self._best_f1].item() if threshold is None else threshold
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EvaluationWarning)
            question_memory.require_clusters(self, scored=True)
            return self._evaluate(self.at(threshold), options)

    def slices(
        self,
        key: SliceKey,
        score: str = "f1",
        *,
        where: str | Iterable[str] | None = None,
        errors: bool = False,
    ) -> Table:
        """Return the best threshold of each slice, and how much worse the slice's score is at the common threshold.

        Parameters
        ----------
        key : str, Bins, tuple of these, or mapping
            As for `Evaluation.slices`: an attribute, several attributes to cross, or named subsets. "true_size" is
            available, but not "pred_size", because predicted sizes depend on the threshold.
        score : str
            A score of the curve that is defined for items: precision, recall, an F of precision and recall, or ELM.
        where : str or list of str, optional
            Conditions, as for `best`, which each slice has to meet separately.
        errors : bool
            Whether to add the standard errors of the scores and of the cost, as columns such as cost_se, and n_units.
            The units are those of `curve`; at thresholds weaker than the one that defines the units, errors are null,
            with a warning. The standard errors do not allow for the choice of thresholds on the same items, so a cost
            of two standard errors may be due to chance.

        Returns
        -------
        Table
            The slice, n_items, weight, the slice's best threshold, the score at that threshold with precision and
            recall, the score at the threshold that is best for all items (`<score>_at_common`), and the cost: how much
            better the score is at the slice's own threshold. The slice with the highest cost comes first. Figures of a
            slice are null if no threshold meets the conditions.

        Raises
        ------
        MetricError
            If the score is not defined for items.
        SliceError
            If the requested slices do not exist.
        OptionError
            If `errors` is neither True nor False.

        Notes
        -----
        The standard error of the cost is that of a difference: each component contributes its influence on the score
        at one threshold minus its influence at the other. The method is the same as for `Evaluation.errors`.

        Examples
        --------
        >>> import fastbcubed as fb
        >>> truth = {f"{k}{side}": f"{k}{side * (k % 4 == 0)}" for k in range(60) for side in "ab"}
        >>> links = [(f"{k}a", f"{k}b", (k * k % 11 + 3 * (k % 4 > 0)) / 14) for k in range(60)]
        >>> parts = {"ones": [f"{k}a" for k in range(10)], "tens": [f"{k}a" for k in range(10, 60)]}
        >>> found = fb.sweep(truth, links).slices(parts, errors=True)
        >>> found.select(["slice", "n_items", "n_units", "threshold", "f1", "f1_se", "cost", "cost_se"])
        slice  n_items  n_units  threshold       f1     f1_se       cost   cost_se
        ones        10       10    0.42857  0.95000  0.033333  0.0026316  0.039394
        tens        50       50    0.21429  0.95833  0.014207          0         0
        <BLANKLINE>
        2 rows
        """
        errors = true_or_false(errors, "errors")
        question_memory.require_slices(self, errors=errors)
        if errors:
            self._warn_of_weak_thresholds()
        return slice_thresholds(self, key, score, where, self._units if errors else None)

    # Where recall is lost, and the costliest merges

    def stages(self, threshold: float | None = None) -> Stages:
        """Return where recall is lost: before scoring, by the threshold, or by merging.

        Parameters
        ----------
        threshold : float, optional
            By default, the threshold with the best F1 or, for a loaded sweep, that of the saved stages.

        Returns
        -------
        Stages
            The recall lost at each stage (blocking, threshold, merging), and recall and pair recall in three cases: if
            every link were judged correctly (no threshold can recover the missing pairs), if the links that the
            threshold uses were judged correctly, and for the actual clusters. The method `table()` lists the figures.

        Raises
        ------
        NotKeptError
            If the links did not fit in the memory limit of the sweep, or if the sweep was saved without stages.

        Notes
        -----
        The losses add up to 1 minus the recall. Merging costs no recall, so the loss by merging is 0 or negative: by
        joining clusters, wrong links can regain matching pairs that no correct link joins. Merging costs precision, as
        `merges` shows. Links with an item that is missing from the truth count as wrong, and a note says how many.

        Examples
        --------
        The items a, b and c belong together, and so do d and e. No link proposes c; d and e are linked with score 0.4.

        >>> import fastbcubed as fb
        >>> truth = {"a": 1, "b": 1, "c": 1, "d": 2, "e": 2}
        >>> stages = fb.sweep(truth, [("a", "b", 0.9), ("b", "d", 0.5), ("d", "e", 0.4)]).stages(0.9)
        >>> print(stages.sentence)
        50.0 of the 75.0 points of pair recall lost at threshold 0.9 are lost before scoring: no threshold brings them back.
        >>> stages.recalls["pair_recall"].lost
        {'blocking': 0.5, 'threshold': 0.25, 'merging': 0.0}
        """  # noqa: E501
        if threshold is None:
            if self._saved is not None and self._leading.stages is not None:
                return self._leading.stages
            threshold = self._curve.thresholds[self._best_f1].item()
        point = self._point(threshold)
        if self._saved is not None:
            known = self._leading.stages
            if known is None or point != self._point(known.threshold):
                raise NotKeptError(NOT_THERE)
            return known
        if point not in self._stages_at:
            question_memory.require_stages(self)
            self._stages_at[point] = stages_of(self, as_threshold(threshold))
        return self._stages_at[point]

    @cached_property
    def _stages_at(self) -> dict[int, Stages]:
        """The stages that were computed, by point of the curve."""
        return {}

    @cached_property
    def _place_of_item(self) -> NDArray[np.integer]:
        """The place of each item in the tree."""
        places = np.empty_like(self.tree.order)
        places[self.tree.order] = np.arange(self.tree.n_items)
        return places

    @cached_property
    def _highest(self) -> NDArray[np.integer]:
        """The levels of the tree as a heap of maxima, which `measure_stretches` searches."""
        return heap_of(self.tree.levels, self.tree.n_levels)

    def merges(
        self, *, order_by: str | None = None, limit: int | None = 10, threshold: float | None = None
    ) -> Table:
        """Return the costliest merges of clusters, each with a link that causes it.

        Parameters
        ----------
        order_by : str, optional
            "f1_change" (default) or "precision_change" lists the most harmful first, "recall_change" the most useful.
        limit : int or None
            Maximum number of rows; None for all.
        threshold : float, optional
            A threshold; only merges that the threshold uses are listed.

        Returns
        -------
        Table
            The columns threshold (above which the merge is undone), left and right (the items of a link that causes the
            merge), n_left and n_right (the sizes of the clusters of left and right before the merge), n_clusters (the
            number of clusters that become one at the threshold), n_items (the total size of these clusters), and the
            changes in overall precision, recall and F1.

        Notes
        -----
        Links with equal scores are used together, so joining several clusters by links with equal scores counts as one
        merge.
        """
        limit = require_limit(limit)
        point = None if threshold is None else self._point(threshold)
        if self._saved is not None and is_one_of(order_by, (None, "f1_change")):
            best = self._leading.best
            at_best = point is not None and best is not None and point <= self._point(best.threshold)
            name = "merges_at_best" if at_best and "merges_at_best" in self._saved else "merges"
            return self._first(name, limit, threshold)
        return list_merges(self, self._effects, order_by, limit, point)

    def weakest_links(self, *, limit: int | None = 10) -> Table:
        """Return the true clusters that are completed at the weakest thresholds.

        Parameters
        ----------
        limit : int or None
            Maximum number of rows; None for all.

        Returns
        -------
        Table
            The columns cluster, n_items, threshold (the strongest threshold at which all items of the true cluster are
            in one predicted cluster), and left and right (the items of a link whose score is the threshold, on a path
            of used links between two items of the true cluster). True clusters that no threshold completes come last,
            with nulls in threshold, left and right.
        """
        limit = require_limit(limit)
        if self._saved is not None:
            return self._first("weakest_links", limit)
        return list_weakest_links(self, self._effects, limit)

    def _first(self, name: str, limit: int | None, threshold: float | None = None) -> Table:
        """Return the first rows of a saved listing, only those that a threshold uses if one is given."""
        assert self._saved is not None
        table = self._saved[name]
        whole = table.num_rows < saved_sweep.LISTED
        if threshold is not None:
            used = [self._n_used(each) <= self._n_used(threshold) for each in table["threshold"].to_pylist()]
            table = table.filter(pa.array(used, pa.bool_()))
        if not whole and (limit is None or limit > table.num_rows):
            raise NotKeptError(saved_sweep.NOT_SAVED)
        return Table(table.slice(0, limit))

    # Output

    @cached_property
    def at_best(self) -> Evaluation:
        """The evaluation, by the default scores, at the threshold with the best F1."""
        clustering = self.at(self._curve.thresholds[self._best_f1].item())
        return self._evaluate.aligned(clustering, self._alignment, self.policies)

    @cached_property
    def warnings(self) -> list[dict[str, Any]]:
        """Warnings and notes of the evaluation at the threshold with the best F1."""
        return self.at_best.warnings

    @property
    def reading(self) -> dict[str, Any]:
        """How the columns of truth and links were read."""
        return {"truth": self.at_best.reading.get("truth"), "links": self.links.columns.to_dict()}

    def save(
        self,
        directory: Any,
        *,
        score: str = "f1",
        where: str | Iterable[str] | None = None,
        chosen: Chosen | None = None,
        merges: int | None = None,
        stages: bool = False,
    ) -> None:
        """Write the curve and the clusters at the best threshold; `fastbcubed.load` reads the sweep back.

        A loaded sweep has all scores at every threshold and shows the best threshold that was saved with the sweep.
        Clusters at other thresholds, standard errors and further slices require the links.

        Parameters
        ----------
        directory : path
            The directory to write to; a missing directory is created. Files of an earlier result in the directory are
            replaced together, after the new files have been written.
        score, where
            The score that determines the best threshold, and conditions, as for `best`.
        chosen : Chosen, optional
            The result of `chosen` to save with the sweep; if given, its threshold is saved as the best threshold.
        merges : int, optional
            Number of costliest merges at the best threshold that ``fastbcubed show`` lists.
        stages : bool
            Whether to save where recall is lost at the best threshold, as in `stages`.

        Notes
        -----
        The file overall.json has the content of `to_json`, curve.parquet the curve at all thresholds, and
        clusters.parquet the items and clusters at the best threshold. The files merges.parquet, merges_at_best.parquet
        (only merges that the best threshold uses) and weakest_links.parquet have the first 1,000 rows of `merges` and
        `weakest_links`. The files points.parquet and slices.parquet have the requested thresholds and slices.
        """
        merges = None if merges is None else whole_number(merges, "merges", "merges")
        if not isinstance(chosen, Chosen | None):
            raise OptionError(f"chosen must be the result of `chosen`, not {quoted(chosen)}")
        best = self.best(score, where=where) if chosen is None else chosen.best
        found = self.stages(best.threshold) if true_or_false(stages, "stages") else None
        saved_sweep.save(self, directory, Leading(best, chosen, merges, found))

    @classmethod
    def _restored(cls, head: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> Sweep:
        """Return the sweep that `save` wrote, as `fastbcubed.load` does."""
        return saved_sweep.restored(cls, head, tables)

    def report(
        self,
        path: Any = None,
        *,
        score: str | None = None,
        where: str | Iterable[str] | None = None,
        title: str | None = None,
        worst: int = 10,
        stages: bool = False,
        overwrite: bool = False,
    ) -> Report:
        """Write an HTML report on the best threshold, the curve, the costliest merges, and the requested slices.

        Parameters
        ----------
        path : path, optional
            The file to write; by default, none. The report is always returned, and notebooks display it.
        score, where
            The score that determines the best threshold, and conditions, as for `best`. By default, F1 or, for a loaded
            sweep, the score and conditions saved with it.
        title : str, optional
            The heading.
        worst : int
            Number of merges to list.
        stages : bool
            Whether to show where recall is lost at the best threshold, as in `stages`.
        overwrite : bool
            Whether an existing file may be replaced.

        Returns
        -------
        Report
        """
        leading = self._leading.best if score is None and where is None else None
        best = leading or self.best("f1" if score is None else score, where=where)
        found = self.stages(best.threshold) if true_or_false(stages, "stages") else None

        def page(asked: Asked) -> Document:
            return document(self, Leading(best, None, asked.worst, found), asked)

        return report_of(page, path, {"title": title, "worst": worst}, overwrite=overwrite)

    def to_dict(self, *, limit: int = 1000, best: Best | None = None) -> dict[str, Any]:
        """Return the content of `to_json` as plain dicts, lists, numbers and strings; `best` replaces the best F1."""
        if not isinstance(best, Best | None):
            raise OptionError(f"best must be the result of `best`, not {quoted(best)}")
        return self._content(self._leading if best is None else Leading(best), limit)

    def _content(self, leading: Leading, limit: int = 1000) -> dict[str, Any]:
        """Return the content of `to_json`, with the best threshold and other results to show."""
        best, chosen, n_merges, stages = leading
        more: dict[str, Any] = {} if chosen is None else {"chosen": chosen.to_dict()}
        ends = None if best is None else interval_at(self, best)
        if best is not None and n_merges is not None:
            more["merges"] = self.merges(limit=n_merges, threshold=best.threshold).to_pylist()
        more |= {} if stages is None else {"stages": stages.to_dict()}
        return {
            "fastbcubed": __version__,
            "links": len(self.links),
            "items": self.tree.n_items,
            "ascending": self.tree.ascending,
            "thresholds": self.tree.n_levels,
            "unmatched": {"truth": self.policies.truth, "prediction": self.policies.prediction},
            "coverage": asdict(self.coverage),
            "best": None if best is None else best.to_dict() | ({} if ends is None else ends._asdict()),
            "warnings": [*self.warnings, *([] if best is None else best.notes)],
            "curve": self.curve(limit=limit).to_pylist(),
            "points": self.points().to_pylist(),
            "slices": {name: rows_for_json(table) for name, table in self.sliced.items()},
            "not_computed": self.not_computed,
            "reading": self.reading,
            **more,
        }

    def to_json(self, *, limit: int = 1000, indent: int | None = 2) -> str:
        """Return the curve, the best F1 and the requested thresholds as JSON; an infinite threshold becomes null.

        An infinite threshold uses no links, unless scores are infinite. For a loaded sweep, the best threshold that was
        saved replaces the best F1.
        """
        return as_json(self.to_dict(limit=limit), indent)
