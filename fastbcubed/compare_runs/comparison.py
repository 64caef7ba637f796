"""A comparison: runs scored on the same items, differences between them, and their listings."""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations, permutations
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa

from fastbcubed._version import __version__
from fastbcubed.cells.contingency import side_of
from fastbcubed.compare_runs.comparison_document import document
from fastbcubed.compare_runs.comparison_listings import (
    ClusterInRuns,
    items_of_runs,
    open_in_runs,
    slices_of_runs,
    true_clusters_of_runs,
)
from fastbcubed.compare_runs.differences import Differences, adjusted, estimated, table_of_deltas
from fastbcubed.compare_runs.runs import INSTEAD_OF, LACKING, Runs
from fastbcubed.errors import EvaluationWarning, Message, NotKeptError, OptionError, arg
from fastbcubed.inputs.arrays import from_texts, table_of
from fastbcubed.metrics.score import Metric, directed, lead_score, without_rounding
from fastbcubed.render.document import Block
from fastbcubed.render.html import Shown
from fastbcubed.render.json import as_json
from fastbcubed.render.wording import label
from fastbcubed.results.evaluation_scores import warn_of_units
from fastbcubed.results.slices import SliceKey, check_key
from fastbcubed.results.standard_errors import Units
from fastbcubed.results.table import Table
from fastbcubed.results.warnings import OfRun, runs_lack_items
from fastbcubed.runtime.arguments import true_or_false
from fastbcubed.runtime.attributes import cached_property

if TYPE_CHECKING:
    from fastbcubed.compare_runs.runs import Runs
    from fastbcubed.render.html import Page, Report
    from fastbcubed.results.gates import Gate
    from fastbcubed.results.page import Asked

__all__ = ["Comparison"]


def _goodness(metric: Metric, overall: Mapping[str, Mapping[str, float]]) -> list[float]:
    """Return the score of each run, turned so that more is better."""
    sign = 1.0 if metric.best == "higher" else -1.0
    return [sign * own[metric.name] for own in overall.values()]


def ranks(metrics: Sequence[Metric], overall: Mapping[str, Mapping[str, float]]) -> pa.Table:
    """Return the rank of each run by each score; runs that are equal share the best of their ranks."""
    columns: dict[str, pa.Array] = {"run": from_texts(list(overall))}
    for metric in directed(metrics):
        values = _goodness(metric, overall)
        own = [
            None if math.isnan(value) else 1 + sum(_order(other, value) > 0 for other in values)
            for value in values
        ]
        columns[metric.name] = pa.array(own, pa.int64())
    return table_of(columns)


def agreement(metrics: Sequence[Metric], overall: Mapping[str, Mapping[str, float]]) -> pa.Table:
    """Return Kendall's tau-b between the scores, over all pairs of runs."""
    chosen = directed(metrics)
    orders = {
        metric.name: [_order(a, b) for a, b in combinations(_goodness(metric, overall), 2)]
        for metric in chosen
    }
    columns: dict[str, pa.Array] = {"score": from_texts(list(orders))}
    for name, own in orders.items():
        columns[name] = np.array([_tau(own, other) for other in orders.values()], np.float64)
    return table_of(columns)


def _order(a: float, b: float) -> int:
    """Return 1, 0 or -1 as a is better than b, the same, or worse; 0 if one is not defined."""
    delta = without_rounding(a - b, max(abs(a), abs(b)))
    return int(delta > 0) - int(delta < 0)


def _tau(a: Sequence[int], b: Sequence[int]) -> float:
    """Return tau-b from the orders of pairs; NaN where a score has no two different runs.

    >>> round(_tau([1, 1, 0], [1, -1, 1]), 6), _tau([0, 0], [1, 1])
    (0.0, nan)
    """
    both = math.sqrt(sum(map(abs, a)) * sum(map(abs, b)))
    return sum(x * y for x, y in zip(a, b, strict=True)) / both if both else math.nan


#: Runs, at most, that have messages of their own where these differ.
FEW_RUNS = 3


def notices_of_runs(comparison: Runs) -> list[dict[str, Any]]:
    """Return the warnings and notes: that runs lack items, then each of the runs', once, in their order.

    Where messages of one kind differ, each of a few runs has its own; of more that of the first is given, and says so.
    """
    found: dict[tuple[Any, ...], dict[str, dict[str, Any]]] = {}
    for name, ev in comparison.runs.items():
        for said in ev.warnings:
            kind = said["code"], said["level"], *(said.get(key) for key in ("side", "by", "score"))
            if said["code"] != INSTEAD_OF:
                found.setdefault(kind, {})[name] = said
    notices = []
    for by_run in found.values():
        if len(by_run) <= FEW_RUNS:
            notices += _each_once(by_run)
            continue
        first, said = next(iter(by_run.items()))
        differ = any(each["message"] != said["message"] for each in by_run.values())
        details = f" (These are the details of {label(first)}.)" if differ else ""
        notices.append({**said, "message": said["message"] + details, "runs": list(by_run)})
    if not any(map(comparison.n_dropped, comparison)):
        return notices
    runs = {
        name: OfRun(
            comparison.coverage_of[name], own, comparison[name].overall.get("f1", math.nan), drops=True
        )
        for name, own in comparison.own_scores.items()
    }
    return [*runs_lack_items(runs, common=comparison.align == "common"), *notices]


def _each_once(by_run: Mapping[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the different messages, each with the runs that have it."""
    runs: dict[str, list[str]] = {}
    for name, said in by_run.items():
        runs.setdefault(said["message"], []).append(name)
    return [{**by_run[names[0]], "runs": names} for names in runs.values()]


def told(said: dict[str, Any], comparison: Runs, plain: Callable[[str], str] = str) -> str:
    """Return the message of a warning or note, `plain` in words, after the runs that it is of."""
    if said["code"] == LACKING:
        return plain(said["message"])
    every = 1 < len(said["runs"]) == len(comparison)
    return f"{'all runs' if every else ', '.join(said['runs'])}: {plain(said['message'])}"


class Compared(Runs):
    """Runs that are asked how they differ over all items; see `Comparison`."""

    def scores(self) -> Table:
        """Return the scores of each run.

        `to_pandas`, `to_polars` and `to_arrow` of the comparison convert this table.

        Returns
        -------
        Table
            run, n_items, weight, n_clusters (predicted ones with a scored item), then the scores.

        Examples
        --------
        >>> import fastbcubed as fb
        >>> cmp = fb.compare([1, 1, 2], {"a": [1, 1, 1], "b": [1, 2, 3]}, metrics=["precision", "recall"])
        >>> cmp.scores()
        run  n_items  weight  n_clusters  precision   recall
        a          3       3           1    0.55556        1
        b          3       3           3          1  0.66667
        <BLANKLINE>
        2 rows
        """
        evs = self.runs.values()
        columns: dict[str, Any] = {
            "run": from_texts(list(self.runs)),
            "n_items": np.array([ev.contingency.n_items for ev in evs], np.int64),
            "weight": np.array([ev.contingency.total_weight for ev in evs], np.float64),
            "n_clusters": np.array([ev.summary["pred"]["clusters"] for ev in evs], np.int64),
        }
        columns |= {m.name: np.array([ev.overall[m.name] for ev in evs], np.float64) for m in self.metrics}
        return Table(table_of(columns))

    def _main_table(self) -> Table:
        return self.scores()

    def deltas(self, *, adjust: str = "bonferroni") -> Table:
        """Return how the scores of each experiment differ from the baseline's, and whether that holds.

        Parameters
        ----------
        adjust : {"bonferroni", "none"}
            With several experiments, whether the intervals of a score are widened, so that all of them hold together
            with the confidence `level`; or each by itself.

        Returns
        -------
        Table
            baseline, experiment, score, baseline_value, experiment_value, delta (experiment minus baseline), se, low,
            high, holds (whether the interval excludes 0). A score that is no mean over items has no standard error:
            NaN, and null for holds.

        Raises
        ------
        OptionError
            If the unit does not serve here.

        Notes
        -----
        Errors are paired, and linearised: with D_u what a unit u adds to the score of the experiment less what it adds
        to that of the baseline, se² = U / (U - 1) Σ D_u². Units are the connected components of the truth and of
        all runs; where one of these has more than a tenth of the weight, the components of the truth, the baseline and
        the experiment, so that a third run that joins much leaves the error as it is. A run that is equal to the
        baseline differs by 0 ± 0. With align="each", se is NaN where the items of one of the two runs are a single
        unit. Under "outside", items that only a run has connect nothing.

        Examples
        --------
        Three of four components are treated alike, and the fourth is better by 1/2 in the second run. The error is
        sqrt(4/3 * (3 * 0.125**2 + 0.375**2)) / 4.

        >>> import fastbcubed as fb
        >>> runs = {"old": [1, 1, 2, 2, 3, 3, 4, 5], "new": [1, 1, 2, 2, 3, 3, 4, 4]}
        >>> cmp = fb.compare(list("aabbccdd"), runs, metrics="recall")
        >>> cmp.deltas().select(["experiment", "score", "delta", "se", "holds"])
        experiment  score     delta       se  holds
        new         recall  0.12500  0.12500     no
        <BLANKLINE>
        1 row
        """
        level, found = adjusted(self.level, len(self.experiments), adjust), self._differences
        if self.experiments and found.units is not None:
            for reason in found.warnings:
                warnings.warn(reason, EvaluationWarning, stacklevel=2)
            same = len(set(found.units_of.values())) == 1
            for name, units in list(found.units_of.items())[: 1 if same else None]:
                warn_of_units(units, self.unit, stacklevel=3, of="" if same else f"{label(name)}: ")
        return self._deltas(level)

    def _deltas(self, level: float | None = None) -> Table:
        """Return the table of deltas; without a level with intervals adjusted for all experiments."""
        level = adjusted(self.level, len(self.experiments), "bonferroni") if level is None else level
        overall = {name: ev.overall for name, ev in self.runs.items()}
        found = self._differences
        return Table(table_of_deltas(self.baseline, self.experiments, self.metrics, overall, found, level))

    @cached_property
    def units(self) -> Units:
        """Number of independent units of all runs, effective number of them, and the share of the largest.

        Errors may be by the units of two runs alone, of which there are more; see `deltas`.

        Raises
        ------
        MetricError
            If clusters may overlap: their units are not computed.
        """
        if self._differences.units is None:
            raise NotKeptError(self.why_no_errors() or "")
        return self._differences.units

    @cached_property
    def _differences(self) -> Differences:
        return estimated(self)

    @property
    def best(self) -> str:
        """The run with the best F1, or the best of the first score of which more or less is better; the first if tied.

        Examples
        --------
        >>> import fastbcubed as fb
        >>> fb.compare([1, 1, 2], {"a": [1, 1, 1], "b": [1, 2, 3], "c": [1, 1, 2]}).best
        'c'
        """
        return self._by_rank[0]

    @property
    def _by_rank(self) -> list[str]:
        """The runs, the best first."""
        score, names = lead_score(self.metrics), list(self.runs)
        ranked = [1] * len(names) if score is None else self.ranks()[score].to_pylist()
        rank = dict(zip(names, ranked, strict=True))
        return sorted(names, key=lambda name: rank[name] or len(names) + 1)

    def against(self, run: str | None = None) -> Self:
        """Return the same comparison with another baseline; no run is scored again.

        Parameters
        ----------
        run : str, optional
            The run that the others are compared with; the best one when absent.

        Returns
        -------
        Comparison

        Raises
        ------
        OptionError
            If there is no such run, or none is best, as runs lack items of the truth (see `ranks`).

        Examples
        --------
        >>> import fastbcubed as fb
        >>> runs = {"a": [1, 1, 1], "b": [1, 2, 3], "c": [1, 1, 2]}
        >>> cmp = fb.compare([1, 1, 2], runs)
        >>> cmp.baseline, cmp.against("b").baseline, cmp.against().baseline
        ('a', 'b', 'c')
        """
        run = self.best if run is None else run
        self[run]
        if run == self.baseline:
            return self
        found = copy.copy(self)
        found.baseline = run
        for name in ("_differences", "_against_best", "ranking"):
            found.__dict__.pop(name, None)
        return found

    @cached_property
    def _against_best(self) -> Self:
        return self.against()

    @cached_property
    def ranking(self) -> list[dict[str, Any]]:
        """The runs by the score that `best` goes by, the best first, with how each differs from the best.

        Empty where `ranks` refuses. Each is a dict: run, score, value; delta, se, low, high (None for the best run);
        as_good, whether the interval of the difference includes 0 (None where there is none).
        """
        score = lead_score(self.metrics)
        if score is None or self.why_no_ranks() is not None:
            return []
        best = self._against_best
        shown = ("delta", "se", "low", "high")
        found = {
            row["experiment"]: {name: row[name] for name in shown}
            | {"as_good": None if row["holds"] is None and row["delta"] else not row["holds"]}
            for row in best._deltas().to_pylist()
            if row["score"] == score
        } | {best.baseline: dict.fromkeys(shown) | {"as_good": True}}
        return [
            {"run": name, "score": score, "value": self[name].overall[score], **found[name]}
            for name in self._by_rank
        ]

    def ranks(self) -> Table:
        """Return the rank of each run by each score: 1 is best, and runs that are equal share a rank.

        Returns
        -------
        Table
            run, then the scores of which more or less is better; null where a score is not defined.

        Raises
        ------
        OptionError
            If a run drops more of the truth than another (by 0.01 of its weight), and is not ranked below it.

        Examples
        --------
        >>> import fastbcubed as fb
        >>> cmp = fb.compare([1, 1, 2], {"a": [1, 1, 1], "b": [1, 2, 3]}, metrics=["precision", "recall"])
        >>> cmp.ranks().to_pylist()
        [{'run': 'a', 'precision': 2, 'recall': 1}, {'run': 'b', 'precision': 1, 'recall': 2}]
        """
        if (reason := self.why_no_ranks()) is not None:
            raise OptionError(reason)
        return self._ranks()

    def _ranks(self) -> Table:
        return Table(ranks(self.metrics, {name: ev.overall for name, ev in self.runs.items()}))

    def why_no_ranks(self) -> Message | None:
        """Return why runs are not ranked; None if they are."""
        by_run = {row.pop("run"): row for row in self._ranks().to_pylist()}
        for run, other in permutations(self.runs, 2):
            places = zip(by_run[run].values(), by_run[other].values(), strict=True)
            if self.lacks_more(run, other) and any(
                a is not None and b is not None and a <= b for a, b in places
            ):
                return Message(
                    f"{run!r} lacks more items of the truth than {other!r}, which are dropped, and would not be "
                    f"ranked below it by every score. Pass {arg('unmatched', {'truth': 'singleton'})}, or compare "
                    "runs of the same items"
                )
        return None

    def agreement(self) -> Table:
        """Return how far each two scores rank the runs alike: Kendall's tau-b.

        Returns
        -------
        Table
            score, then a column for each score: 1 if both rank all runs alike, -1 if in opposite order, NaN if a score
            is the same for all runs.

        Examples
        --------
        >>> import fastbcubed as fb
        >>> cmp = fb.compare([1, 1, 2], {"a": [1, 1, 1], "b": [1, 2, 3]}, metrics=["precision", "recall"])
        >>> cmp.agreement()["recall"].to_pylist()
        [-1.0, 1.0]
        """
        return Table(agreement(self.metrics, {name: ev.overall for name, ev in self.runs.items()}))

    def coverage(self) -> Table:
        """Return how far each run has the items of the truth, before it is restricted to those of all runs.

        Returns
        -------
        Table
            run, n_common, n_truth_only, n_prediction_only (items on both sides, and on one of them), truth_coverage and
            prediction_coverage (shares of weight), n_scored (items that the run scores), n_left_out (those of
            them that another run does not score); own_precision, own_recall and own_f1 (on all items that the run
            scores), and the same with `_if_alone`: if items of the truth that it lacks were alone. NaN if not known.

        Examples
        --------
        >>> import fastbcubed as fb
        >>> cmp = fb.compare({"a": 1, "b": 1}, {"old": {"a": 1}, "new": {"a": 1, "b": 1}})
        >>> cmp.coverage().select(["run", "n_common", "n_truth_only", "n_left_out"]).to_pylist()[1]
        {'run': 'new', 'n_common': 2, 'n_truth_only': 0, 'n_left_out': 1}
        """
        of = self._coverage
        counts = {
            name: np.array([getattr(each, name) for each in of], np.int64)
            for name in ("n_common", "n_truth_only", "n_prediction_only")
        }
        shares = {
            name: np.array([getattr(each, name) for each in of], np.float64)
            for name in ("truth_coverage", "prediction_coverage")
        }
        kept = [ev.contingency.n_items for ev in self.runs.values()]
        scored = np.array(self._n_scored, np.int64)
        left = {"n_scored": scored, "n_left_out": scored - np.array(kept, np.int64)}
        own = {
            f"{before}{name}{after}": np.array(
                [each[name + after] for each in self.own_scores.values()], np.float64
            )
            for before, after in (("own_", ""), ("", "_if_alone"))
            for name in ("precision", "recall", "f1")
        }
        return Table(table_of({"run": from_texts(list(self.runs)), **counts, **shares, **left, **own}))

    @cached_property
    def warnings(self) -> list[dict[str, Any]]:
        """Warnings and notes: code, level (warning or note), message, the runs concerned, and figures."""
        return notices_of_runs(self)


class Comparison(Shown, Compared):
    """Several runs against one truth: the evaluation of each, and their differences.

    Made by `fastbcubed.compare`. ``cmp["old"]`` is the `Evaluation` of a run; iterating gives the names of the runs.

    Attributes
    ----------
    runs : mapping of str to Evaluation
        The evaluations by name, in the order given.
    baseline : str
        The run that the others are compared with.
    experiments : tuple of str
        The other runs.
    metrics : list of Metric
        The scores that tables show.
    n_items : int
        Items that are scored.
    align : {"common", "each"}
        Whether all runs are scored on the items that each of them scores, or each on its own.
    level : float
        The confidence of intervals.
    unit : str
        What could have been drawn otherwise, as a whole.
    ranking : list of dict
        The runs by the score that `best` goes by, the best first: run, score, value; delta, se, low, high of the
        difference from the best; as_good, whether that interval includes 0. Empty where `ranks` refuses.
    warnings : list of dict
        What a reader should know: code, level ("warning" or "note"), message, runs, figures. One, ``runs-lack-items``,
        is on all runs that lack items of the truth.
    n_bootstrap, seed : int
        Replicates of the bootstrap, and what they are drawn from; without any, intervals are those of
        Student's t.

    Examples
    --------
    >>> import fastbcubed as fb
    >>> cmp = fb.compare(list("aabbccdd"), {"old": [1, 1, 2, 2, 3, 4, 5, 6], "new": [1, 1, 2, 2, 3, 3, 4, 5]})
    >>> cmp["new"].recall
    0.875
    >>> cmp.deltas().select(["experiment", "score", "delta"]).to_pylist()[1]
    {'experiment': 'new', 'score': 'recall', 'delta': 0.125}
    """

    # Where it differs

    def slices(
        self, by: SliceKey, *, deltas: bool = True, order_by: str | None = None, limit: int | None = None
    ) -> Table:
        """Return the scores of all runs by slice, and how they differ from the baseline's.

        Parameters
        ----------
        by : str, Bins, tuple of these, or mapping
            As for `Evaluation.slices`.
        deltas : bool
            Whether to add the differences from the baseline.
        order_by : {"delta", "worse", "better"}, optional
            List the runs other than the baseline, by how much of precision and recall a slice adds to the difference:
            the largest change first, or what got worse, or better. Slice by slice when absent.
        limit : int, optional
            The number of rows to return; all when absent.

        Returns
        -------
        Table
            run, the slice, n_items, weight, the scores and the losses. With `deltas`, behind each stands
            <score>_delta, and <score>_delta_se, its standard error, where all runs have the same items in a slice and
            the score has one, null for the baseline; and n_units, the units (those of `deltas`) that have items in the
            slice, null for the baseline where they differ from run to run. An attribute that is called run is
            attribute.run here.

        Raises
        ------
        ColumnError, SliceError
            As `Evaluation.slices` does.
        OptionError
            If `deltas` is neither True nor False, or there is no such order or number of rows.

        Examples
        --------
        >>> import fastbcubed as fb
        >>> runs = {"old": dict(a=1, b=2, c=3, d=4), "new": dict(a=1, b=1, c=3, d=3)}
        >>> parts = {"item": list("abcd"), "part": list("xxyy")}
        >>> cmp = fb.compare(dict(a=1, b=1, c=2, d=2), runs, metrics="recall", attributes=parts)
        >>> cmp.slices("part").select(["run", "part", "n_items", "recall", "recall_delta"])
        run  part  n_items   recall  recall_delta
        old  x           2  0.50000
        new  x           2        1       0.50000
        old  y           2  0.50000
        new  y           2        1       0.50000
        <BLANKLINE>
        4 rows
        """
        deltas = true_or_false(deltas, "deltas") or order_by is not None
        return slices_of_runs(self, check_key(by), deltas, order_by, limit)

    def items(
        self,
        columns: str | Iterable[str] = (),
        *,
        run: str | None = None,
        order_by: str | None = "delta",
        limit: int | None = None,
    ) -> Table:
        """Return the items that all runs score, with their contribution to the difference between two runs.

        Parameters
        ----------
        columns : str or iterable of str
            Attributes to add, named as in `slices`.
        run : str, optional
            The experiment that differences are of; the first one when absent.
        order_by : {"delta", "worse", "better"} or None
            The largest change of precision and recall together first, or what got worse, or better; None for
            the order of the truth. Ties are broken by weight, then by id.
        limit : int, optional
            The number of items to return; all when absent.

        Returns
        -------
        Table
            item, true_cluster, the attributes, weight; for each run <run>.pred_cluster and the scores; precision_delta
            and recall_delta (what the item adds to these differences), and delta, their sum.

        Raises
        ------
        NotKeptError
            If the rows of the runs are not kept in one order, as with align="each" or the disk engine.
        OptionError
            If there is no such run.

        Examples
        --------
        Each item adds a quarter of the difference of its recall, 1/2.

        >>> import fastbcubed as fb
        >>> runs = {"old": dict(a=1, b=2, c=3, d=4), "new": dict(a=1, b=1, c=3, d=3)}
        >>> cmp = fb.compare(dict(a=1, b=1, c=2, d=2), runs, metrics="recall")
        >>> cmp.items(limit=1).select(["item", "old.pred_cluster", "new.pred_cluster", "recall_delta"]).to_pylist()
        [{'item': 'a', 'old.pred_cluster': 1, 'new.pred_cluster': 1, 'recall_delta': 0.125}]
        """
        found = items_of_runs(self.runs, self._pair(run), self.require_rows(), columns, order_by, limit)
        return Table(found)

    def clusters(
        self,
        side: str = "true",
        *,
        run: str | None = None,
        order_by: str | None = "delta",
        limit: int | None = None,
    ) -> Table:
        """Return the true clusters: the outcome of each in each run, and its contribution to the difference of two.

        Parameters
        ----------
        side : "true"
            Predicted clusters differ from run to run; those of one are listed by ``cmp["new"].clusters("pred")``.
        run, order_by, limit
            As for `items`.

        Returns
        -------
        Table
            cluster, n_items, weight; for each run <run>.outcome, <run>.n_parts and the scores; precision_delta,
            recall_delta and delta, as in `items`. Clusters that a policy has made of an item in each run are lacking
            where the runs do not have the same items and the disk engine is used.

        Raises
        ------
        OptionError
            If the side is another one, or there is no such run.

        Examples
        --------
        >>> import fastbcubed as fb
        >>> runs = {"old": dict(a=1, b=2, c=3, d=4), "new": dict(a=1, b=1, c=3, d=3)}
        >>> cmp = fb.compare(dict(a=1, b=1, c=2, d=2), runs, metrics="recall")
        >>> cmp.clusters().select(["cluster", "n_items", "old.outcome", "new.outcome", "recall_delta"])
        cluster  n_items  old.outcome  new.outcome  recall_delta
        1              2        split        exact       0.25000
        2              2        split        exact       0.25000
        <BLANKLINE>
        2 rows
        """
        if side_of(side) != "true":
            raise OptionError(
                "predicted clusters are of one run, so that they do not stand beside each other; list those of a run "
                f'with cmp[{next(iter(self.runs))!r}].clusters("pred"), or true clusters here'
            )
        return Table(true_clusters_of_runs(self.runs, self._pair(run), self.true_numbers, order_by, limit))

    def cluster(
        self, side: str, which: Any, *, columns: str | Iterable[str] | None = None, members: int = 20
    ) -> ClusterInRuns:
        """Return a cluster, and where each run has its items.

        Parameters
        ----------
        side : str
            "true", or the run whose predicted cluster it is.
        which : object
            Its label; a tuple if composite.
        columns : str or iterable of str, optional
            Attributes to show.
        members : int
            Items to show.

        Returns
        -------
        ClusterInRuns
            A dict that reads well, and that has as `table` all members.

        Raises
        ------
        SliceError
            If there is no such cluster.
        OptionError
            If the side is no run.
        NotKeptError
            As `items` does.

        Examples
        --------
        >>> import fastbcubed as fb
        >>> runs = {"old": dict(a=1, b=2, c=3, d=4), "new": dict(a=1, b=1, c=3, d=3)}
        >>> cmp = fb.compare(dict(a=1, b=1, c=2, d=2), runs, metrics="recall")
        >>> cmp.cluster("true", 1)
        True cluster 1: 2 items; in old in 2 clusters, in new in 1
        <BLANKLINE>
        old  new  items  item
        1    1    1      a
        2    1    1      b
        """
        return open_in_runs(self.runs, self.baseline, side, which, self.require_rows(), columns, members)

    # Output

    def report(
        self,
        path: Any = None,
        *,
        title: str | None = None,
        worst: int = 20,
        members: int = 10,
        columns: str | Iterable[str] = (),
        by: Any = None,
        overwrite: bool = False,
    ) -> Report:
        """Write a page for people: which run is better and whether that holds, slices, true clusters that changed.

        Parameters
        ----------
        path : path, optional
            The file to write. Without it, what is returned shows itself in a notebook.
        title, columns, by, overwrite
            As for `Evaluation.report`.
        worst : int
            True clusters to show, those that changed most in the first experiment.
        members : int
            Members of each to show.

        Returns
        -------
        Report

        Raises
        ------
        MissingPackageError, OptionError, ColumnError, SliceError, NotKeptError
            As `Evaluation.report` does.

        Examples
        --------
        >>> import fastbcubed as fb
        >>> cmp = fb.compare(list("aabbccdd"), {"old": [1, 1, 2, 2, 3, 4, 5, 6], "new": [1, 1, 2, 2, 3, 3, 4, 5]})
        >>> cmp.report().content["movers"]["flow"][1]
        {'before': 'split', 'after': 'exact', 'n_clusters': 1}
        """
        from fastbcubed.results.page import report_of

        asked = {"title": title, "worst": worst, "members": members, "columns": columns, "by": by}
        return report_of(self._page, path, asked, overwrite=overwrite)

    def _page(self, asked: Asked, gates: Sequence[Gate] = ()) -> Page:
        """Return the content of `report`, with the results of gates, and its document."""
        from fastbcubed.compare_runs.comparison_document import comparison_content, comparison_document
        from fastbcubed.render.html import Page

        return Page(comparison_content(self, asked, gates), comparison_document)

    def to_dict(self) -> dict[str, Any]:
        """Return the content of `to_json` as plain dicts, lists, numbers and strings."""
        found = self._differences
        return {
            "fastbcubed": __version__,
            "baseline": self.baseline,
            "align": self.align,
            "level": self.level,
            "unit": self.unit,
            "bootstrap": self.n_bootstrap,
            "seed": self.seed,
            "n_items": self.n_items,
            "coverage": self.coverage().to_pylist(),
            "scores": self.scores().to_pylist(),
            "deltas": self._deltas().to_pylist(),
            "units": None if found.units is None else found.units._asdict(),
            "ranks": None if self.why_no_ranks() else self.ranks().to_pylist(),
            "ranking": self.ranking,
            "warnings": self.warnings,
            "runs": {name: ev.to_dict() for name, ev in self.runs.items()},
        }

    def to_json(self, *, indent: int | None = 2) -> str:
        """Return scores, differences, coverage and the evaluation of each run as JSON; NaN becomes null."""
        return as_json(self.to_dict(), indent)

    def _document(self) -> list[Block]:
        return document(self)

    # Parts of the above

    def _pair(self, run: str | None) -> tuple[str, str]:
        """Return the baseline, and the requested experiment."""
        if run is None:
            run = (*self.experiments, self.baseline)[0]
        self[run]
        return self.baseline, run
