"""A comparison: runs scored on the same items, differences between them, and their listings."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from types import MappingProxyType
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed._version import __version__
from fastbcubed.align.policies import Coverage
from fastbcubed.cells.contingency import side_of
from fastbcubed.compare_runs import explain_run, rankings
from fastbcubed.compare_runs.comparison_document import document, lead, sentences
from fastbcubed.compare_runs.comparison_listings import (
    ClusterInRuns,
    deltas_by_slice,
    items_of_runs,
    open_in_runs,
    slices_of_runs,
)
from fastbcubed.compare_runs.differences import (
    Differences,
    adjusted,
    differences_of,
    table_of_deltas,
    with_units,
)
from fastbcubed.compare_runs.mentions import differences_of_all
from fastbcubed.compare_runs.true_clusters import flow_of_runs, list_true_clusters
from fastbcubed.compare_runs.units import (
    NOT_SAVED,
    components_of_comparison,
    have_same_codes,
    numbers_of_true_clusters,
    require_cells,
    require_rows,
    why_no_errors,
    why_no_room,
)
from fastbcubed.errors import EvaluationWarning, Message, NotKeptError, OptionError, arg, quoted
from fastbcubed.inputs.arrays import from_texts, table_of
from fastbcubed.metrics.metric import Metric
from fastbcubed.render.document import Document, as_data, of_data
from fastbcubed.render.json import shortened
from fastbcubed.render.number_formats import label
from fastbcubed.results.evaluation import Evaluation
from fastbcubed.results.label_checks import is_unchallenged
from fastbcubed.results.large_tables import apart
from fastbcubed.results.load import evaluation_of, with_nan
from fastbcubed.results.page import IN_BRIEF, Asked, whole
from fastbcubed.results.result import ClusterResult
from fastbcubed.results.save import save_tables, scores_to_save
from fastbcubed.results.saved_files import in_one
from fastbcubed.results.slices import IN_JSON, SliceKey, check_key, rows_for_json
from fastbcubed.results.standard_errors import warn_of_few, warn_of_units
from fastbcubed.results.table import Table
from fastbcubed.results.unit_cells import CellUnits, Units
from fastbcubed.results.warnings import from_saved, if_alone
from fastbcubed.runtime.arguments import is_one_of, true_or_false
from fastbcubed.runtime.object_attributes import cached_property, documented
from fastbcubed.types import Floats

__all__ = ["Comparison"]

#: Cached values that depend on the baseline, and those that depend only on the runs.
OF_BASELINE = (
    "_differences",
    "_against_best",
    "_verdict",
    "_saved_page",
    "_saved_slices",
    "_slicings",
    "_sliced",
    "_large_slices",
    "_ranking",
)
OF_RUNS = ("_own_scores", "_scores", "_same_codes", "_true_numbers", "_components", "warnings")


class Comparison(ClusterResult):
    """Several runs against one truth: the evaluation of each, and their differences.

    Returned by `fastbcubed.compare`. ``cmp["old"]`` is the `Evaluation` of a run; iterating gives the names of the
    runs.

    Attributes
    ----------
    runs : mapping of str to Evaluation
        The evaluations by name, in the order given.
    baseline : str
        The run to compare the others with.
    experiments : tuple of str
        The other runs.
    metrics : list of Metric
        The scores shown in tables.
    n_items : int
        Number of scored items.
    align : {"common", "each"}
        Whether all runs are scored on the items that every run scores, or each run on its own items.
    level : float
        The confidence of intervals.
    unit : str
        The sampling unit.
    ranking : list of dict
        The runs by the score that `best` uses, the best first: run, score, value; delta, se, low, high of the
        difference from the best; as_good, whether that interval includes 0. Empty if `ranks` raises an error; a
        warning says why.
    warnings : list of dict
        Warnings and notes: code, level ("warning" or "note"), message, runs, values. One of them,
        ``runs-lack-items``, covers all runs that are missing items of the truth.
    n_bootstrap, seed : int
        Number of bootstrap replicates, and their seed; without replicates, intervals are by Student's t.

    Examples
    --------
    >>> import fastbcubed as fb
    >>> cmp = fb.compare(list("aabbccdd"), {"old": [1, 1, 2, 2, 3, 4, 5, 6], "new": [1, 1, 2, 2, 3, 3, 4, 5]})
    >>> cmp["new"].recall
    0.875
    >>> cmp.deltas().select(["experiment", "score", "delta"]).to_pylist()[1]
    {'experiment': 'new', 'score': 'recall', 'delta': 0.125}
    """

    __dir__ = documented
    explain = explain_run.explain

    def __init__(
        self,
        runs: Mapping[str, Evaluation],
        *,
        baseline: str,
        align: str,
        level: float,
        unit: str,
        n_bootstrap: int = 0,
        seed: int = 0,
        shared: bool = False,
        n_scored: Sequence[int],
        coverage: Sequence[Coverage],
        true_keys: Sequence[NDArray[np.int64]] | None = None,
        by_itself: Sequence[dict[str, Any] | None] = (),
    ) -> None:
        """Compare these evaluations; `shared` means that their scored rows and codes of true clusters are the same.

        Otherwise, `true_keys`, if known, has keys of true clusters by code, which are comparable between runs.
        `by_itself` has the result of `if_alone` for a run on all its own items; None if its evaluation covers them.
        """
        self._runs = dict(runs)
        self.baseline, self.align, self.level, self.unit = baseline, align, level, unit
        self.n_bootstrap, self.seed = n_bootstrap, seed
        self._shared = shared
        self._n_scored = dict(zip(runs, n_scored, strict=True))
        #: the coverage of the truth by each run, before restriction to common items
        self._coverage = dict(zip(runs, coverage, strict=True))
        self._true_keys = None if true_keys is None else dict(zip(runs, true_keys, strict=True))
        self._by_itself = dict(zip(runs, by_itself, strict=False))

    def _copy(self, runs: Iterable[str], baseline: str) -> Self:
        """Return a comparison of these runs on the same items, without scoring any run again."""
        found = copy.copy(self)
        found._runs, found.baseline = {name: self._runs[name] for name in runs}, baseline
        if self._true_keys is not None:
            found._true_keys = {name: self._true_keys[name] for name in found._runs}
        for name in OF_BASELINE if len(found) == len(self) else (*OF_BASELINE, *OF_RUNS):
            found.__dict__.pop(name, None)
        return found

    @property
    def runs(self) -> Mapping[str, Evaluation]:
        """The evaluations by name, in the order given."""
        return MappingProxyType(self._runs)

    def __getitem__(self, name: str) -> Evaluation:
        if not is_one_of(name, self._runs):
            raise OptionError(
                f"there is no run {quoted(name)}; the runs are {', '.join(map(repr, self._runs))}"
            )
        return self._runs[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._runs)

    def __len__(self) -> int:
        return len(self._runs)

    def __contains__(self, name: object) -> bool:
        return name in self._runs

    @property
    def experiments(self) -> tuple[str, ...]:
        """The runs other than the baseline."""
        return tuple(name for name in self._runs if name != self.baseline)

    @property
    def metrics(self) -> list[Metric]:
        """The scores that all runs have."""
        named = [{m.name for m in ev.metrics} for ev in self._runs.values()]
        return [m for m in self[self.baseline].metrics if all(m.name in own for own in named)]

    @property
    def n_items(self) -> int:
        """Number of items on which the baseline is scored and, with align="common", all runs are."""
        return self[self.baseline].contingency.n_items

    # Differences over all items

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
        return self._scores

    _main_table = scores

    @cached_property
    def _scores(self) -> Table:
        evs = self.runs.values()
        columns: dict[str, Any] = {
            "run": from_texts(list(self.runs)),
            "n_items": np.array([ev.contingency.n_items for ev in evs], np.int64),
            "weight": np.array([ev.contingency.total_weight for ev in evs], np.float64),
            "n_clusters": np.array([ev.summary["pred"]["clusters"] for ev in evs], np.int64),
        }
        columns |= {m.name: np.array([ev.overall[m.name] for ev in evs], np.float64) for m in self.metrics}
        return Table(table_of(columns))

    def deltas(self, *, adjust: str = "bonferroni") -> Table:
        """Return how the scores of each experiment differ from the baseline's, with intervals.

        Parameters
        ----------
        adjust : {"bonferroni", "none"}
            With several experiments, whether the intervals of a score are widened to hold simultaneously with the
            confidence `level`, or hold individually.

        Returns
        -------
        Table
            baseline, experiment, score, baseline_value, experiment_value, delta (experiment minus baseline), se, low,
            high, holds (whether the interval excludes 0). A score without a standard error has NaN, and null for
            holds; with ``unit="true_cluster"``, these are all scores that are not means over items. The text form of
            the comparison names such scores and gives the reason.

        Raises
        ------
        OptionError
            If the unit cannot be used here.

        Notes
        -----
        Errors are paired and linearised: with D_u the contribution of a unit u to the score of the experiment minus
        its contribution to that of the baseline, se² = U / (U - 1) Σ D_u². Units are the connected components of the
        truth and of all runs; where one of these has more than a tenth of the weight, the components of the truth,
        the baseline and the experiment, so that a third run with very large clusters does not change the error. A run
        equal to the baseline differs by 0 ± 0. With align="each", se is NaN where the items of one of the two runs
        are a single unit. Under "outside", items that only a run has do not connect clusters.

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
            for name, scores in found.carried_by_few(self.metrics).items():
                whose = "" if len(self.experiments) == 1 else f"{label(name)}: "
                warn_of_few(scores, found.units_of[name], self.unit, stacklevel=3, of=whose)
        elif self.experiments and (no_room := why_no_room(self)) is not None:
            message = f"differences have no standard errors: {no_room}"
            warnings.warn(EvaluationWarning(message), stacklevel=2)
        return self._deltas(level)

    def _deltas(self, level: float | None = None) -> Table:
        """Return the table of deltas; by default, intervals are adjusted for the number of experiments."""
        level = adjusted(self.level, len(self.experiments), "bonferroni") if level is None else level
        return Table(table_of_deltas(self, level))

    @cached_property
    def units(self) -> Units:
        """Number of independent units of all runs, effective number of them, and the share of the largest.

        Errors may use the units of only two runs, which are more numerous; see `deltas`.

        Raises
        ------
        NotKeptError
            If differences have no standard errors: if clusters may overlap and the units are not components, or for
            runs that the disk engine does not distinguish.
        """
        if self._differences.units is None:
            raise NotKeptError(why_no_errors(self) or "")
        return self._differences.units

    @cached_property
    def _differences(self) -> Differences:
        return differences_of_all(self)

    #: The caution on intervals of differences of pair scores.
    _of_pairs = (
        "Intervals of pair scores may be far too narrow, because a few large clusters dominate these scores."
    )
    #: The argument with which no item of the truth is dropped from a run.
    _without_drops = arg("unmatched", {"truth": "singleton"})

    @property
    def _drops(self) -> bool:
        """Whether items of the truth that a run lacks are dropped."""
        return self[self.baseline].policies.truth == "drop"

    def _is_unchallenged(self, run: str) -> bool:
        return is_unchallenged(self[run])

    def _deltas_in_slices(self, run: str, by: str, score: str) -> Iterator[Floats]:
        return deltas_by_slice(self, run, by, score)

    @cached_property
    def _verdict(self) -> tuple[str, list[str]]:
        """The leading sentence, and the other sentences."""
        return lead(self), sentences(self)

    @cached_property
    def _own_scores(self) -> dict[str, dict[str, Any]]:
        """Scores of each run on all its own items, and on these with the truth's missing items as singletons."""
        return {
            name: self._by_itself.get(name)
            or if_alone(own if isinstance(own := ev.figures.of_mentions, Evaluation) else ev)
            for name, ev in self._runs.items()
        }

    @cached_property
    def _same_codes(self) -> bool:
        return have_same_codes(self)

    @cached_property
    def _true_numbers(self) -> list[NDArray[np.int64]] | None:
        return numbers_of_true_clusters(self)

    @cached_property
    def _components(self) -> list[CellUnits]:
        return components_of_comparison(self)

    @property
    def best(self) -> str:
        """The run with the best F1, or with the best value of the first score that has a direction; the first if tied.

        If there is no such score, or runs are missing items of the truth (see `ranks`), it raises an OptionError.

        Examples
        --------
        >>> import fastbcubed as fb
        >>> fb.compare([1, 1, 2], {"a": [1, 1, 1], "b": [1, 2, 3], "c": [1, 1, 2]}).best
        'c'
        """
        return rankings.ranked(self)[0]

    def against(self, run: str | None = None) -> Self:
        """Return the same comparison with another baseline, without scoring any run again.

        Parameters
        ----------
        run : str, optional
            The run to compare the others with; by default the best.

        Returns
        -------
        Comparison

        Raises
        ------
        OptionError
            If there is no such run, or no run is best (see `best`).

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
        return self._copy(self._runs, run)

    @cached_property
    def _against_best(self) -> Self:
        return self.against()

    @property
    def ranking(self) -> list[dict[str, Any]]:
        """The runs by the score that `best` uses, the best first, with how each differs from the best.

        Empty if `ranks` raises an error; a warning says why. Each is a dict: run, score, value; delta, se, low, high
        (None for the best run); as_good, whether the interval of the difference includes 0 (None where there is none).
        """
        if (reason := rankings.why_no_ranks(self)) is not None:
            message = Message("The ranking is empty: ") + reason.marked + "."
            warnings.warn(EvaluationWarning(message, rankings.LACKING), stacklevel=2)
        return self._ranking

    @cached_property
    def _ranking(self) -> list[dict[str, Any]]:
        return rankings.ranking(self)

    def ranks(self) -> Table:
        """Return the rank of each run by each score: 1 is best, and runs that are equal share a rank.

        Returns
        -------
        Table
            run, then the scores that have a direction; null where a score is not defined.

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
        if (reason := rankings.why_no_ranks(self)) is not None:
            raise OptionError(reason)
        return self._ranks()

    def _ranks(self) -> Table:
        return Table(rankings.ranks(self))

    def agreement(self) -> Table:
        """Return how well each pair of scores agrees on the ranking of the runs: Kendall's tau-b.

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
        return Table(rankings.agreement(self))

    def coverage(self) -> Table:
        """Return how many items of the truth each run has, before restriction to the common items.

        Returns
        -------
        Table
            run, n_common, n_truth_only, n_prediction_only (items on both sides, and on one of them), truth_coverage and
            prediction_coverage (shares of weight), n_scored (items that the run scores), n_left_out (those that
            another run does not score); own_precision, own_recall and own_f1 (on all items that the run scores), and
            the same with `_if_alone`, which counts missing items of the truth as singletons. NaN if unknown.

        Examples
        --------
        >>> import fastbcubed as fb
        >>> cmp = fb.compare({"a": 1, "b": 1}, {"old": {"a": 1}, "new": {"a": 1, "b": 1}})
        >>> cmp.coverage().select(["run", "n_common", "n_truth_only", "n_left_out"]).to_pylist()[1]
        {'run': 'new', 'n_common': 2, 'n_truth_only': 0, 'n_left_out': 1}
        """
        return Table(rankings.coverage(self))

    @cached_property
    def warnings(self) -> list[dict[str, Any]]:
        """Warnings and notes: code, level (warning or note), message, the runs concerned, and values."""
        return rankings.notices_of_runs(self)

    # Where runs differ

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
            List the runs other than the baseline, ordered by how much a slice adds to the differences in precision
            and recall: the largest change first, or the largest loss, or the largest gain. By default slice by slice.
        limit : int, optional
            How many rows to return; all by default.

        Returns
        -------
        Table
            run, the slice, n_items, weight, the scores and the losses. With `deltas`, each score is followed by
            <score>_delta, and by <score>_delta_se, its standard error, where all runs have the same items in a slice,
            in memory and with align="common", clusters do not overlap, and the score has one; null for the baseline;
            and n_units, the units (those of `deltas`) that have items in the slice, null for the baseline where they
            differ from run to run. An attribute named run appears as attribute.run.

        Raises
        ------
        ColumnError, SliceError
            As `Evaluation.slices` does.
        OptionError
            If `deltas` is not a bool, or the order or number of rows is invalid.

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
            The experiment whose differences to list; by default the first.
        order_by : {"delta", "worse", "better"} or None
            The largest change in precision and recall together first, or the largest loss, or the largest gain; None
            for the order of the truth. Ties are broken by weight, then by id.
        limit : int, optional
            How many to return; all by default.

        Returns
        -------
        Table
            item, true_cluster, the attributes, weight; for each run <run>.pred_cluster and the scores; precision_delta
            and recall_delta (what the item adds to these differences), and delta, their sum.

        Raises
        ------
        NotKeptError
            If the rows of the runs are not kept in one order, as with align="each", the disk engine, or overlapping
            clusters.
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
        found = items_of_runs(self.runs, self._pair(run), require_rows(self), columns, order_by, limit)
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
            Predicted clusters differ between runs; those of one run are listed by ``cmp["new"].clusters("pred")``.
        run, order_by, limit
            As for `items`.

        Returns
        -------
        Table
            cluster, n_items, weight; for each run <run>.outcome, <run>.n_parts and the scores; precision_delta,
            recall_delta and delta, as in `items`. With the disk engine, clusters that a policy has created are
            missing if the runs have different items.

        Raises
        ------
        OptionError
            If the side is invalid, or there is no such run.

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
                "predicted clusters belong to one run and cannot be compared between runs; list "
                f'those of one run with cmp[{next(iter(self.runs))!r}].clusters("pred"), or list true '
                "clusters here"
            )
        require_cells(self)
        return Table(list_true_clusters(self.runs, self._pair(run), self._true_numbers, order_by, limit))

    def _flow(self, run: str) -> tuple[int, list[tuple[str, str, int]]]:
        """Return the number of true clusters, and the numbers of clusters by outcome in the baseline and in the run."""
        return flow_of_runs(self.runs, self._pair(run), self._true_numbers)

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
            A dict with a readable text form, whose `table` has all members.

        Raises
        ------
        SliceError
            If there is no such cluster.
        OptionError
            If the side is not a run.
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
        return open_in_runs(self.runs, self.baseline, side, which, require_rows(self), columns, members)

    # Output

    def _document(self, asked: Asked | None = None) -> Document:
        """Return the requested document; a loaded comparison has only the default one."""
        asked = asked or IN_BRIEF
        if self._saved_page is None or not asked.page:
            return document(self, asked)
        if not asked.is_usual:
            raise NotKeptError(f"{NOT_SAVED} a report with clusters or slices other than the default ones")
        saved = of_data(self._saved_page)
        return replace(saved, title=asked.title or saved.title)

    @cached_property
    def _saved_page(self) -> Mapping[str, Any] | None:
        """The default document of a loaded comparison; None for any other."""
        return None

    @cached_property
    def _saved_slices(self) -> Mapping[str, Table] | None:
        """The requested slices of a loaded comparison; None for any other."""
        return None

    @cached_property
    def _slicings(self) -> dict[str, SliceKey]:
        """The keys of the requested slices, by name; in a loaded comparison, the names are the keys."""
        saved = self._saved_slices
        return self[self.baseline].figures.slicings if saved is None else {name: name for name in saved}

    @cached_property
    def _sliced(self) -> dict[str, Table]:
        """The requested slices of all runs by name."""
        return {name: self.slices(key) for name, key in self._slicings.items()}

    @cached_property
    def _large_slices(self) -> dict[str, Table]:
        """Slices of all runs with their differences, by name, that were written to files when first needed."""
        return {}

    def _slices_for_json(self) -> dict[str, Any]:
        """Return the rows of the requested slices or, if there are many, those that differ most and their number."""
        cut = {by: each.num_rows for by, each in self._sliced.items() if each.is_large}
        order = "delta" if self.experiments else None
        rows = {
            by: self.slices(self._slicings[by], order_by=order, limit=IN_JSON) if by in cut else each
            for by, each in self._sliced.items()
        }
        found = {"slices": {by: rows_for_json(each) for by, each in rows.items()}} if rows else {}
        return found | ({"n_rows": cut} if cut else {})

    def save(self, directory: Any) -> None:
        """Write scores, differences, the evaluations of the runs and the report; `fastbcubed.load` reads them back.

        A loaded comparison shows the same results. Clusters, items, and slices and baselines that were not requested
        require the original runs.

        Parameters
        ----------
        directory : path
            Created if it does not exist. Files of an earlier result in it are replaced, all at the end.
            ``overall.json`` has the content of `to_json` and of the report; ``scores.parquet`` and ``deltas.parquet``
            are these tables, and ``slices.parquet`` has the requested slices, with a column ``by``.

        Examples
        --------
        >>> import tempfile, fastbcubed as fb
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     fb.compare([0, 0, 1], {"old": [0, 1, 1], "new": [0, 0, 1]}).save(directory)
        ...     fb.load(directory)["new"].f1
        1.0
        """
        own = {
            "verdict": self._verdict,
            "page": shortened(as_data(whole(lambda: self._document(Asked())))),
            "coverage": {name: asdict(each) for name, each in self._coverage.items()},
            "own_scores": self._own_scores,
            "cautions": self._differences.warnings,
            "sliced": {by: table.column_names for by, table in self._sliced.items()},
            "n_sliced": {by: table.num_rows for by, table in self._sliced.items()},
        }
        tables = {"scores": self.scores(), "deltas": with_units(self._deltas().to_arrow(), self._differences)}
        if self._sliced:
            tables["slices"] = lambda: in_one(self._sliced)
        runs = {name: scores_to_save(ev) for name, ev in self.runs.items()}
        save_tables(directory, "comparison", {**self.to_dict(), "runs": runs, "saved": own}, tables)

    @classmethod
    def _restored(cls, head: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> Comparison:
        """Return the comparison that `save` wrote."""
        own, numbers = head["saved"], [row["n_scored"] for row in head["coverage"]]
        runs = {name: evaluation_of(content) for name, content in head["runs"].items()}
        found = cls(
            runs,
            **{name: head[name] for name in ("baseline", "align", "level", "unit", "seed")},
            n_bootstrap=head["bootstrap"],
            n_scored=numbers,
            coverage=[Coverage.of(own["coverage"][name]) for name in runs],
            by_itself=[with_nan(own["own_scores"][name]) for name in runs],
        )
        units = None if head["units"] is None else Units(**head["units"])
        found.__dict__ |= {
            "_scores": Table(tables["scores"]),
            "_differences": differences_of(tables["deltas"], units, own["cautions"]),
            "_verdict": tuple(own["verdict"]),
            "_saved_page": own["page"],
            "_saved_slices": apart(
                tables["slices"], own["sliced"], own.get("n_sliced"), head.get("n_rows", ())
            )
            if own.get("sliced")
            else {},
            "_ranking": head["ranking"],
            "warnings": from_saved(head["warnings"]),
        }
        return found

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
            "ranks": None if rankings.why_no_ranks(self) else self.ranks().to_pylist(),
            "ranking": self._ranking,
            "warnings": self.warnings,
            "runs": {name: ev.to_dict() for name, ev in self.runs.items()},
            **self._slices_for_json(),
        }

    # Helpers of the methods above

    def _pair(self, run: str | None) -> tuple[str, str]:
        """Return the baseline, and the requested experiment."""
        if run is None:
            run = (*self.experiments, self.baseline)[0]
        self[run]
        return self.baseline, run
